"""Columns: what a metric may ask for of every row, checked once and prepared for plans.

The array functions, the metric objects and the evaluation all come through here, so that each metric has one
implementation: a plan built from columns. Rows are items of N, answered or abstained; failed and unscored
ones are left out before.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from abstain import _validate, labels
from abstain.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from abstain._validate import Column
    from abstain.metrics._plan import Plan
    from abstain.results import EvaluationResult

    Floats = NDArray[np.float64]
    Indices = NDArray[np.intp]
    Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Columns:
    """Rows of N, by column; NaN throughout where nobody gave the column.

    Attributes:
        answered: True where the model answered.
        truth: canonical labels, see `abstain.labels`.
        prediction: canonical labels; they mean nothing where the row is not answered.
        confidence: NaN where none was stated.
        should_abstain: 1, 0, or NaN where nobody said.
        loss: one number a row; NaN where the row is not answered.
        cluster: the number of each row's cluster, from 0 without a gap.
        weight: multiplicities.
        scale: the declared lowest and highest truth.
        intervals: (rows, 2), the lower and upper bound of a prediction; NaN where there is none.
        sets: (rows, classes), True where a class is in the set; without a column where there are no sets.
        class_index: which of these classes the truth is; None where truths are such numbers themselves.
        results: the rows as objects, for metrics that are written for them; None where they are not at hand.
    """

    answered: Mask
    truth: NDArray[Any]
    prediction: NDArray[Any]
    confidence: Floats
    should_abstain: Floats
    loss: Floats
    cluster: Indices
    weight: Floats
    scale: tuple[float, float] | None = None
    intervals: Floats = field(default_factory=lambda: np.empty((0, 2)))
    sets: Mask = field(default_factory=lambda: np.empty((0, 0), np.bool_))
    class_index: Indices | None = None
    results: Sequence[EvaluationResult] | None = None

    @classmethod
    def checked(
        cls,
        y_true: Column | None = None,
        y_pred: Column | None = None,
        *,
        abstained: Column | None = None,
        confidence: Column | None = None,
        should_abstain: Column | None = None,
        weights: Column | None = None,
    ) -> Columns:
        """Check the arguments of an array function, all of one length and in one cluster."""
        given: dict[str, NDArray[Any]] = {}
        if y_true is not None:
            given["y_true"] = labels.truths(y_true)
        if y_pred is not None:
            given["y_pred"] = labels.column(y_pred, "y_pred")
        if abstained is not None:
            given["abstained"] = _validate.one_dimensional(abstained, "abstained")
        if confidence is not None:
            given["confidence"] = _validate.floats(confidence, "confidence")
        if should_abstain is not None:
            given["should_abstain"] = guidance(should_abstain)
        first, column = next(iter(given.items()))
        length = len(column)
        _validate.same_length(length, **given)
        if not length:
            raise DataError(f"{first} is empty; there must be at least one row")
        if "y_true" in given and labels.missing(given["y_true"]).any():
            row = int(np.argmax(labels.missing(given["y_true"])))
            raise DataError(f"y_true is missing at row {row}; leave out rows without a truth")
        nothing = np.full(length, np.nan)
        declined = _validate.mask(given.get("abstained", np.zeros(length, np.bool_)), "abstained", length)
        return cls(
            answered=~declined,
            truth=given.get("y_true", nothing),
            prediction=given.get("y_pred", nothing),
            confidence=given.get("confidence", nothing),
            should_abstain=given.get("should_abstain", nothing),
            loss=nothing,
            cluster=np.zeros(length, np.intp),
            weight=_validate.weights(weights, length),
        )

    def __len__(self) -> int:
        return len(self.answered)

    @property
    def clusters(self) -> int:
        """How many clusters the rows have."""
        return int(self.cluster.max()) + 1 if len(self) else 1

    @property
    def abstained(self) -> Mask:
        """True where the model declined."""
        return ~self.answered

    @cached_property
    def correct(self) -> Floats:
        """1 where the row is answered and right, else 0: an abstention is never right, nor is an answered None."""
        return (labels.matches(self.truth, self.prediction) & self.answered).astype(np.float64)

    @cached_property
    def predicted(self) -> Mask:
        """True where the row is answered with something, not None."""
        return self.answered & ~labels.missing(self.prediction)

    @cached_property
    def stated(self) -> Mask:
        """True where the row is answered with something and a confidence was stated."""
        return self.predicted & ~np.isnan(self.confidence)

    @cached_property
    def bounded(self) -> Mask:
        """True where the row is answered with an interval, and its truth is a number."""
        if not len(self.intervals):
            return np.zeros(len(self), np.bool_)
        return self.answered & ~np.isnan(self.intervals).any(axis=1) & ~np.isnan(self.truth_number)

    @cached_property
    def gathered(self) -> Mask:
        """True where the row is answered with a set."""
        return self.answered & np.full(len(self), bool(self.sets.size))

    @cached_property
    def guided(self) -> Mask:
        """True where somebody said whether the row should be abstained from."""
        return ~np.isnan(self.should_abstain)

    @cached_property
    def truth_number(self) -> Floats:
        """The truth as a number; NaN where it is text."""
        return labels.numbers(self.truth)

    @cached_property
    def truth_class(self) -> Indices:
        """The truth as the index of a class; -1 where it is none."""
        if self.class_index is not None:
            return self.class_index
        return np.nan_to_num(self.truth_number, nan=-1.0).astype(np.intp)

    @cached_property
    def prediction_number(self) -> Floats:
        """The prediction as a number; NaN where it is text or missing."""
        return labels.numbers(self.prediction)

    @cached_property
    def event(self) -> Floats:
        """1 where the truth is the label 1, else 0; for labels that are all 0 or 1."""
        return _is_label(self.truth, 1)

    @cached_property
    def prediction_is_one(self) -> Floats:
        """1 where the prediction is the label 1, else 0."""
        return _is_label(self.prediction, 1)

    @cached_property
    def event_probability(self) -> Floats:
        """The stated probability of the label 1: the confidence where that was predicted, else its complement."""
        return np.where(self.prediction_is_one == 1.0, self.confidence, 1.0 - self.confidence)

    @cached_property
    def binary(self) -> Mask:
        """True where both truth and prediction are 0 or 1."""
        labels = (self.truth, self.prediction)
        return np.logical_and(*((_is_label(column, 0) + _is_label(column, 1)) > 0 for column in labels))

    def take(self, rows: Mask | Indices) -> tuple[Columns, Indices]:
        """Return some rows with their clusters numbered anew, and which clusters those are."""
        kept, cluster = np.unique(self.cluster[rows], return_inverse=True)
        results = self.results
        if results is not None:
            results = [results[row] for row in np.arange(len(self))[rows]]
        part = Columns(
            **{name: getattr(self, name)[rows] for name in _ROW_COLUMNS},
            cluster=cluster.astype(np.intp),
            scale=self.scale,
            intervals=self.intervals[rows] if len(self.intervals) else self.intervals,
            sets=self.sets[rows] if len(self.sets) else self.sets,
            class_index=None if self.class_index is None else self.class_index[rows],
            results=results,
        )
        return part, kept


_ROW_COLUMNS = ("answered", "truth", "prediction", "confidence", "should_abstain", "loss", "weight")


@dataclass(frozen=True, eq=False, slots=True)
class SubsetPlan:
    """A plan over some clusters, weighed with the weights of all of them; build one with `over`."""

    plan: Plan
    kept: Indices
    clusters: int

    @classmethod
    def over(cls, columns: Columns, rows: Mask, build: Callable[[Columns], Plan]) -> Plan:
        """Build a plan over some rows; where there are none it is undefined."""
        if rows.all():
            return build(columns)
        if not rows.any():
            return UndefinedPlan(("undefined",), columns.clusters)
        part, kept = columns.take(rows)
        return cls(build(part), kept, columns.clusters)

    @property
    def names(self) -> tuple[str, ...]:
        """The metrics of the plan within."""
        return self.plan.names

    @property
    def width(self) -> int:
        """How many numbers one resample occupies while it is worked on."""
        return max(self.plan.width, self.clusters)

    def __call__(self, weights: Floats) -> Floats:
        """Map weights (resamples, clusters) to values (resamples, metrics)."""
        return self.plan(weights[:, self.kept])


@dataclass(frozen=True, eq=False, slots=True)
class ColumnPlan:
    """One metric of a plan that has several."""

    plan: Plan
    place: int

    @property
    def names(self) -> tuple[str, ...]:
        """The metric."""
        return (self.plan.names[self.place],)

    @property
    def clusters(self) -> int:
        """How many clusters a weight vector has."""
        return self.plan.clusters

    @property
    def width(self) -> int:
        """How many numbers one resample occupies while it is worked on."""
        return self.plan.width

    def __call__(self, weights: Floats) -> Floats:
        """Map weights (resamples, clusters) to values (resamples, 1)."""
        return self.plan(weights)[:, self.place][:, None]


@dataclass(frozen=True, slots=True)
class UndefinedPlan:
    """A plan of metrics that nothing is known of: NaN, whatever the weights."""

    names: tuple[str, ...]
    clusters: int
    width: int = 1

    def __call__(self, weights: Floats) -> Floats:
        """Map weights (resamples, clusters) to NaN (resamples, metrics)."""
        return np.full((len(weights), len(self.names)), np.nan)


def guidance(values: Column, name: str = "should_abstain") -> Floats:
    """Return guidance as 1, 0, or NaN where there is none (None); in an object array only booleans are guidance.

    >>> guidance([True, None, False])
    array([ 1., nan,  0.])
    """
    array = _validate.one_dimensional(values, name)
    if array.dtype.kind in "biuf":
        wrong = ~(np.isin(array, (0, 1)) | np.isnan(array.astype(np.float64)))
        if wrong.any():
            row = int(np.argmax(wrong))
            raise DataError(f"{name} must be True or False, got {array[row]:g} at row {row}")
        return array.astype(np.float64)
    result = np.full(len(array), np.nan)
    # A list that holds text would be text throughout as an array.
    for row, value in enumerate(values if isinstance(values, (list, tuple)) else array.tolist()):
        if isinstance(value, (bool, np.bool_)):
            result[row] = value
        elif value is not None:
            raise DataError(f"{name} must be True or False, got {_validate.kind(value)} at row {row}")
    return result


def _is_label(labels: NDArray[Any], label: int) -> Floats:
    if labels.dtype.kind == "f":
        return (labels == label).astype(np.float64)
    return np.array([value == label for value in labels.tolist()], dtype=np.float64)


def point(plan: Plan) -> float:
    """Return the first metric of a plan at weights all one."""
    return float(plan(np.ones((1, plan.clusters)))[0, 0])
