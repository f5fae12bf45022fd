"""Calibration files: a fitted calibrator, its source and its metrics, as strict JSON.

There are two forms: the temperature of a verbalized confidence, and a calibrator trained on features. The structures
below are the schema (version "1") that `abstain schema calibration` publishes. Reading checks every field before a
number is used. ``metrics`` and ``validation_metrics`` are in-sample, as in other implementations of this format.
``validation`` has in-sample and held-out metrics under these names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from abstain import _files, _validate
from abstain.calibrators import _models
from abstain.calibrators._estimators import (
    CALIBRATORS,
    Calibrator,
    LinearCalibrator,
    TemperatureScalingCalibrator,
)
from abstain.errors import DataError, FormatError, ResultWarning

if TYPE_CHECKING:
    import os

Metrics = dict[str, float | None]
Target = Literal["correctness", "near_correct", "loss"]
FeatureNames = Annotated[tuple[str, ...], Meta(min_length=1)]


class Source(Struct, frozen=True, kw_only=True):
    """The run that a calibrator was fitted on."""

    path: str | None = None
    run_id: str | int | None = None
    git_commit: str | None = None
    mode: str | None = None
    n_samples: int
    n_clusters: int | None = None
    sha256: str | None = None


class TrainingSource(Source, frozen=True, kw_only=True):
    """The run that a calibrator was trained on, with the proportion of positive targets."""

    positive_rate: float | None = None
    trained_at: str | None = None


class Validation(Struct, frozen=True, kw_only=True):
    """Metrics of the calibrator on its training rows and on held-out clusters."""

    in_sample: Metrics
    held_out: Metrics | None
    method: str
    reason: str = ""


class Calibration(Struct, frozen=True, kw_only=True):
    """Base class of both forms of a calibration file."""

    schema_version: Literal["1"] = "1"
    abstain_version: str | None = None
    validation: Validation | None = None
    warnings: tuple[ResultWarning, ...] = ()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.calibrator!r})"

    if TYPE_CHECKING:  # defined by every subclass

        @property
        def calibrator(self) -> Calibrator:
            """The fitted calibrator."""

        @property
        def source(self) -> Source:
            """The run that it was fitted on."""

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The signals that it uses; empty for the temperature of a verbalized confidence."""
        return ()

    def to_json(self) -> bytes:
        """Return the content of a calibration file: indented JSON that ends in a newline."""
        return msgspec.json.format(msgspec.json.encode(self), indent=2) + b"\n"


class VerbalizedMetrics(Struct, frozen=True, kw_only=True):
    """In-sample metrics before and after scaling."""

    nll_before: float | None = None
    nll_after: float | None = None
    ece_before: float | None = None
    ece_after: float | None = None


class VerbalizedCalibration(Calibration, frozen=True, kw_only=True):
    """The temperature of a verbalized confidence."""

    method: Literal["temperature_scaling"]
    created_at: str | None = None
    temperature: Annotated[float, Meta(gt=0.0)]
    fitted_on: Source
    metrics: VerbalizedMetrics

    @property
    def calibrator(self) -> Calibrator:
        """The fitted calibrator."""
        return TemperatureScalingCalibrator.from_model(_models.TemperatureModel(temperature=self.temperature))

    @property
    def source(self) -> Source:
        """The run that it was fitted on."""
        return self.fitted_on


class TrainedCalibration(Calibration, frozen=True, kw_only=True):
    """A calibrator trained on features; each type of model has a subclass."""

    method: str
    version: Literal["1.0"] = "1.0"
    features: FeatureNames
    target: Target
    training_metadata: TrainingSource
    validation_metrics: Metrics
    filled: dict[str, int] = {}
    model: _models.Model

    @property
    def calibrator(self) -> Calibrator:
        """The fitted calibrator."""
        identity = isinstance(self.model, _models.LinearModel) and self.model.link == "identity"
        return (LinearCalibrator if identity else CALIBRATORS[self.method]).from_model(self.model)

    @property
    def source(self) -> Source:
        """The run that it was trained on."""
        return self.training_metadata

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The signals that it uses."""
        return self.features


class TrainedTemperature(TrainedCalibration, frozen=True, kw_only=True):
    """Temperature scaling of one feature in [0, 1]."""

    method: Literal["temperature_scaling"]
    model: _models.TemperatureModel


class TrainedLinear(TrainedCalibration, frozen=True, kw_only=True):
    """Logistic regression (sigmoid link) or ridge regression (identity link)."""

    method: Literal["logistic", "platt", "linear"]
    model: _models.LinearModel


class TrainedIsotonic(TrainedCalibration, frozen=True, kw_only=True):
    """Isotonic regression of one feature."""

    method: Literal["isotonic"]
    model: _models.IsotonicModel


class TrainedBeta(TrainedCalibration, frozen=True, kw_only=True):
    """Beta calibration of one feature in [0, 1]."""

    method: Literal["beta"]
    model: _models.BetaModel


class TrainedHistogram(TrainedCalibration, frozen=True, kw_only=True):
    """Histogram binning of one feature."""

    method: Literal["histogram_binning"]
    model: _models.HistogramModel


class TrainedVennAbers(TrainedCalibration, frozen=True, kw_only=True):
    """Venn-ABERS of one feature."""

    method: Literal["venn_abers"]
    model: _models.VennAbersModel


TRAINED: dict[str, type[TrainedCalibration]] = {
    "temperature_scaling": TrainedTemperature,
    "logistic": TrainedLinear,
    "platt": TrainedLinear,
    "linear": TrainedLinear,
    "isotonic": TrainedIsotonic,
    "beta": TrainedBeta,
    "histogram_binning": TrainedHistogram,
    "venn_abers": TrainedVennAbers,
}


def read_calibration(path: str | os.PathLike[str]) -> Calibration:
    """Read a calibration file written by abstain or by another implementation, and check every field."""
    file = _files.SourceFile(path)
    record = _files.parse_json(file.read(), file)
    if not isinstance(record, dict) or not isinstance(record.get("method"), str):
        raise FormatError(f"{file}: not a calibration file; it must be a JSON object with a method")
    method = record["method"]
    if method not in TRAINED:
        hint = _validate.suggestion(method, TRAINED)
        raise FormatError(f"{file}: unknown calibration method{hint}; known: {', '.join(TRAINED)}")
    form: type[Calibration] = TRAINED[method]
    if method == "temperature_scaling":
        record, form = _temperature_record(record, form)
    message = f"{file}: not a {method} calibration file"
    calibration = _files.convert(record, form, message)
    if isinstance(calibration, TrainedCalibration):
        try:
            _check_trained(calibration)
        except DataError as problem:
            raise FormatError(f"{message}: {problem}") from None
    return calibration


def calibration_schema() -> dict[str, Any]:
    """Return the JSON Schema of calibration files.

    >>> calibration_schema()["title"]
    'abstain calibration file'
    """
    forms = (VerbalizedCalibration, *dict.fromkeys(TRAINED.values()))
    choices, definitions = msgspec.json.schema_components(forms, ref_template="#/$defs/{name}")
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "abstain calibration file",
        "description": "A file written by `abstain calibrate`: a temperature, or a calibrator trained on features.",
        "anyOf": list(choices),
        "$defs": dict(definitions),
    }


def _temperature_record(
    record: dict[str, Any], form: type[Calibration]
) -> tuple[dict[str, Any], type[Calibration]]:
    """Move the temperature to abstain's position; other implementations store it at the top or under the model."""
    model = record.get("model")
    nested = model.get("temperature") if isinstance(model, dict) else None
    temperature = record.get("temperature", nested)
    if temperature is None:
        return record, form
    if "features" in record:
        return {**record, "model": {"temperature": temperature if nested is None else nested}}, form
    return {**record, "temperature": temperature}, VerbalizedCalibration


def _check_trained(calibration: TrainedCalibration) -> None:
    if len(set(calibration.features)) != len(calibration.features):
        raise DataError("features contains a duplicate signal")
    if CALIBRATORS[calibration.method].one_feature and len(calibration.features) != 1:
        raise DataError(f"{calibration.method} takes one feature, got {len(calibration.features)}")
    calibration.model.check(len(calibration.features))
