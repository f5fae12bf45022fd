"""Fitted models: frozen records of plain numbers with a `predict` method.

They are the ``model`` part of a calibration file, so reading one is reading JSON. `check` verifies that the numbers
are consistent. The estimators fit them.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
from msgspec import Meta, Struct

from abstain import _validate
from abstain.errors import DataError

if TYPE_CHECKING:
    from abstain._types import Floats


CLIP = 1e-6

Numbers = Annotated[tuple[float, ...], Meta(min_length=1)]


class Model(Struct, frozen=True, kw_only=True):
    """Base class of all models."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.features} feature{'s' if self.features > 1 else ''})"

    if TYPE_CHECKING:  # defined by every subclass

        def predict(self, features: Floats) -> Floats:
            """Map (rows, features) to one calibrated confidence per row."""

    @property
    def features(self) -> int:
        """Number of features."""
        return 1

    def check(self, features: int) -> None:
        """Raise a `DataError` unless the numbers are a valid model of this many features."""
        if features != self.features:
            raise DataError(f"the model takes {self.features} features, got {features}")


class TemperatureModel(Model, frozen=True, kw_only=True):
    """``sigmoid(logit(p) / temperature)``, with p clipped to [1e-6, 1 - 1e-6]."""

    temperature: Annotated[float, Meta(gt=0.0)]

    def predict(self, features: Floats) -> Floats:
        """Scale the logits of probabilities."""
        stated = _validate.unit_interval(features[:, 0], "the feature of a temperature")
        return sigmoid(logit(stated) / self.temperature)


class Scaler(Struct, frozen=True, kw_only=True):
    """Mean and standard deviation of the features; a standard deviation of 0 counts as 1."""

    mean: Numbers
    std: Numbers


class LinearModel(Model, frozen=True, kw_only=True):
    """``link(intercept + coefficients * (x - mean) / std)``; the identity link is clipped to [0, 1]."""

    coefficients: Numbers
    intercept: float
    link: Literal["sigmoid", "identity"]
    scaler: Scaler

    def predict(self, features: Floats) -> Floats:
        """Standardize, combine, and map into [0, 1]."""
        spread = np.array(self.scaler.std)
        standard = (features - np.array(self.scaler.mean)) / np.where(spread == 0.0, 1.0, spread)
        combined = standard @ np.array(self.coefficients) + self.intercept
        return sigmoid(combined) if self.link == "sigmoid" else np.clip(combined, 0.0, 1.0)

    @property
    def features(self) -> int:
        """Number of features."""
        return len(self.coefficients)

    def check(self, features: int) -> None:
        """Raise unless there is one coefficient, mean and spread for each feature."""
        parts = {"coefficients": self.coefficients, "mean": self.scaler.mean, "std": self.scaler.std}
        for name, values in parts.items():
            if len(values) != features:
                raise DataError(f"model.{name} has {len(values)} numbers for {features} features")
        if min(self.scaler.std) < 0.0:
            raise DataError("model.scaler.std must not be negative")


class IsotonicModel(Model, frozen=True, kw_only=True):
    """Linear interpolation between thresholds, constant outside them."""

    x_thresholds: Numbers
    y_thresholds: Numbers

    def predict(self, features: Floats) -> Floats:
        """Interpolate."""
        return np.interp(features[:, 0], self.x_thresholds, self.y_thresholds)

    def check(self, features: int) -> None:
        """Raise unless both are ascending and of equal length."""
        super().check(features)
        if len(self.x_thresholds) != len(self.y_thresholds):
            raise DataError(
                f"model.x_thresholds has {len(self.x_thresholds)} numbers and model.y_thresholds has "
                f"{len(self.y_thresholds)}; they must have the same length"
            )
        _ascending(self.x_thresholds, "model.x_thresholds")
        _ascending(self.y_thresholds, "model.y_thresholds", strictly=False)
        _within_unit(self.y_thresholds, "model.y_thresholds")


class BetaModel(Model, frozen=True, kw_only=True):
    """``sigmoid(a log p - b log(1 - p) + c)``, with p clipped to [1e-6, 1 - 1e-6]."""

    a: Annotated[float, Meta(ge=0.0)]
    b: Annotated[float, Meta(ge=0.0)]
    c: float

    def predict(self, features: Floats) -> Floats:
        """Map probabilities through the ratio of two beta densities."""
        stated = clipped(_validate.unit_interval(features[:, 0], "the feature of a beta calibrator"))
        return sigmoid(self.a * np.log(stated) - self.b * np.log1p(-stated) + self.c)


class HistogramModel(Model, frozen=True, kw_only=True):
    """One value per bin; bins are closed on the left, and the outer ones are unbounded."""

    edges: tuple[float, ...]
    values: Numbers

    def predict(self, features: Floats) -> Floats:
        """Return the value of each row's bin."""
        return np.array(self.values)[np.searchsorted(self.edges, features[:, 0], side="right")]

    def check(self, features: int) -> None:
        """Raise unless the inner edges are ascending and there is one value per bin."""
        super().check(features)
        if len(self.values) != len(self.edges) + 1:
            raise DataError(f"model.values has {len(self.values)} numbers for {len(self.edges)} inner edges")
        _ascending(self.edges, "model.edges")
        _within_unit(self.values, "model.values")


class VennAbersModel(Model, frozen=True, kw_only=True):
    """Lower and upper probabilities as steps: below, at and above every threshold."""

    x_thresholds: Numbers
    lower: Numbers
    upper: Numbers

    def predict(self, features: Floats) -> Floats:
        """Return the probability that minimizes the largest regret: ``p1 / (1 - p0 + p1)``."""
        lower, upper = self.predict_interval(features)
        return upper / (1.0 - lower + upper)

    def predict_interval(self, features: Floats) -> tuple[Floats, Floats]:
        """Return the lower and the upper probability of every row."""
        score = features[:, 0]
        thresholds = np.array(self.x_thresholds)
        below = np.searchsorted(thresholds, score, side="left")
        step = below + np.searchsorted(thresholds, score, side="right")
        return np.array(self.lower)[step], np.array(self.upper)[step]

    def check(self, features: int) -> None:
        """Raise unless there are steps below, at and above every threshold and no lower one exceeds its upper one."""
        super().check(features)
        _ascending(self.x_thresholds, "model.x_thresholds")
        for name, values in (("lower", self.lower), ("upper", self.upper)):
            if len(values) != 2 * len(self.x_thresholds) + 1:
                raise DataError(
                    f"model.{name} has {len(values)} numbers for {len(self.x_thresholds)} thresholds"
                )
            _within_unit(values, f"model.{name}")
        if any(low > high for low, high in zip(self.lower, self.upper, strict=True)):
            raise DataError("model.lower must not exceed model.upper")


def clipped(probability: Floats) -> Floats:
    """Clip probabilities to ``[1e-6, 1 - 1e-6]``."""
    return np.clip(probability, CLIP, 1.0 - CLIP)


def logit(probability: Floats) -> Floats:
    """Return ``log(p / (1 - p))``, with p clipped to [1e-6, 1 - 1e-6]."""
    probability = clipped(probability)
    return np.log(probability) - np.log1p(-probability)


def sigmoid(value: Floats) -> Floats:
    """Return ``1 / (1 + exp(-value))`` without overflow."""
    decay = np.exp(-np.abs(value))
    return np.where(value >= 0.0, 1.0, decay) / (1.0 + decay)


def _ascending(values: tuple[float, ...], name: str, *, strictly: bool = True) -> None:
    steps = np.diff(values)
    if (steps < 0.0).any() or (strictly and (steps == 0.0).any()):
        raise DataError(f"{name} must be in ascending order")


def _within_unit(values: tuple[float, ...], name: str) -> None:
    if any(not math.isfinite(value) or not 0.0 <= value <= 1.0 for value in values):
        raise DataError(f"{name} must lie in [0, 1]")
