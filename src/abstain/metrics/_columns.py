"""Rows with weights and units, and columns of checked values from which every metric is computed.

The array functions, the metric objects and the evaluation all build `Columns`, so each metric has one implementation:
a statistic of columns. Rows are items of N, answered or abstained; failed and unscored items are excluded before. The
checks and the division that all metrics share are here too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self, TypeVar

import numpy as np

from abstain import _validate, labels
from abstain._row_names import row_name
from abstain._units import ROUNDING, weight_of_one_item, weight_of_one_row
from abstain.errors import DataError
from abstain.resampling import ClusterSums, Statistic, keys_ascending, keys_descending, total_by

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from abstain._types import Floats, Indices, Mask
    from abstain._validate import Column
    from abstain.results import EvaluationResult


T = TypeVar("T")

# Sums of fractional weights of the same rows may differ by this proportion.
_LEAST_REST = 1e-12


@dataclass(frozen=True, eq=False, kw_only=True)
class Rows:
    """The weight and the unit of each row, for rows of any kind: items, intervals, sets or quantiles.

    Attributes:
        weight: multiplicities.
        cluster: the number of each row's unit.
        units: how many units a weight vector has; some may have no row here.
        row_weight: the weight of one row, for the number of rows that intervals are computed from.
        item_weight: the weight of one item, for metrics that depend on the number of items; see `weight_of_one_item`.
    """

    weight: Floats
    cluster: Indices
    units: int = 1
    row_weight: float = 1.0
    item_weight: float = 1.0

    def __len__(self) -> int:
        return len(self.cluster)

    @property
    def mass(self) -> Floats | None:
        """The weights; None if none were passed and every row counts once."""
        return None if self.weight.strides == (0,) else self.weight

    @property
    def whole(self) -> bool:
        """True if all weights are multiples of the weight of one item, so that rows have ranks."""
        if self.mass is None:
            return True
        multiples = self.weight / self.item_weight
        return bool((np.abs(multiples - multiples.round()) <= ROUNDING * multiples).all())

    @property
    def items_in_rows(self) -> Floats:
        """The number of items that each row counts as: its weight in multiples of the weight of one item."""
        if self.mass is None or self.item_weight == 1.0:
            return self.weight
        multiples = self.weight / self.item_weight
        return multiples.round() if self.whole else multiples

    @property
    def counted(self) -> Mask | slice:
        """The rows that count: those whose weight is not 0."""
        return slice(None) if self.mass is None else self.weight > 0.0

    def have_one(self, values: Floats) -> bool:
        """Return whether all rows that count have the same value."""
        counted = values[self.counted]
        return len(counted) > 0 and bool((counted == counted[0]).all())

    def mass_by_unit(self, counted: Mask | slice = slice(None)) -> Floats:
        """Return the weight that some rows have in each unit. Default: all rows."""
        return total_by(self.cluster[counted], self.weight[counted], self.units)

    def rows_by_unit(self, counted: Mask | slice = slice(None)) -> Floats:
        """Return the number of rows that some of the rows are worth in each unit. Default: all rows."""
        return self.mass_by_unit(counted) / self.row_weight

    def with_row_weight(self) -> Self:
        """Return the same rows with the weight of one row, which their weights imply.

        If all weights are multiples of the smallest, a row with the smallest weight counts as one row. Otherwise the
        rows count as many as Kish's effective number. So intervals do not depend on the unit of the weights.
        """
        weight = self.weight[self.counted]
        if self.mass is None or not len(weight):
            return self
        return replace(self, row_weight=weight_of_one_row(weight))

    def sum_by(self, key: Indices, keys: int, *values: Floats | Mask) -> ClusterSums:
        """Sum the rows and some of their values by unit and key."""
        return self._sum_by(key, keys, values, self.mass)

    def sum_items_by(self, key: Indices, keys: int, *values: Floats | Mask) -> ClusterSums:
        """Sum the rows and some of their values by unit and key, in numbers of items."""
        return self._sum_by(key, keys, values, None if self.mass is None else self.items_in_rows)

    def _sum_by(
        self, key: Indices, keys: int, values: Sequence[Floats | Mask], weight: Floats | None
    ) -> ClusterSums:
        return ClusterSums.of_rows(
            unit=self.cluster, key=key, columns=values, units=self.units, keys=keys, weight=weight
        )

    def statistic_of_sums(
        self,
        names: tuple[str, ...],
        values: Sequence[Floats | Mask],
        compute: Callable[..., Sequence[Floats]],
    ) -> Statistic:
        """Return the statistic that `compute` makes of the number of rows and the sum of each of the values."""
        return Statistic.of_sums(
            names, values, unit=self.cluster, units=self.units, weight=self.mass, compute=compute
        )

    def in_units(self, cluster: Indices | None, units: int | None = None) -> Self:
        """Return the same rows in other units, numbered from 0; None for a single unit with all rows."""
        if cluster is None:
            return replace(self, cluster=np.broadcast_to(np.intp(0), len(self)), units=1)
        return replace(self, cluster=cluster, units=int(cluster.max()) + 1 if units is None else units)

    def weighted_like(self, rows: Rows) -> Self:
        """Return the same rows with the weights and units of others."""
        return replace(
            self,
            weight=rows.weight,
            cluster=rows.cluster,
            units=rows.units,
            row_weight=rows.row_weight,
            item_weight=rows.item_weight,
        )


@dataclass(frozen=True, eq=False)
class Columns(Rows):
    """Rows of N, by column; NaN throughout if a column was not passed.

    Attributes:
        answered: True if the model answered.
        truth: canonical labels, see `abstain.labels`.
        prediction: canonical labels; without meaning if the row is not answered.
        confidence: NaN if none was stated.
        should_abstain: 1, 0, or NaN if unknown.
        loss: one number per row; NaN if the row is not answered.
        scale: the declared lowest and highest truth.
        largest_loss: the largest possible loss; NaN if unknown.
        may_abstain: False if the source has no way to abstain.
        intervals: (rows, 2), the lower and upper bound of a prediction; NaN if there is none.
        sets: (rows, classes), True if a class is in the set; (0, 0) if there are no sets.
        class_index: the index of the true class among the classes; None if the truths are such indices.
        results: the rows as objects, for metrics of objects; None if there are none.
        positive: the label that counts as 1 for binary metrics, in its canonical form; all others count as 0. None if
            it was not named: then the labels must be 0 and 1.
        shared: results of these rows that do not depend on the confidence, for columns that differ only in it.
    """

    answered: Mask
    truth: NDArray[Any]
    prediction: NDArray[Any]
    confidence: Floats
    should_abstain: Floats
    loss: Floats
    scale: tuple[float, float] | None = None
    largest_loss: float = math.nan
    may_abstain: bool = True
    intervals: Floats = field(default_factory=lambda: np.empty((0, 2)))
    sets: Mask = field(default_factory=lambda: np.empty((0, 0), np.bool_))
    class_index: Indices | None = None
    results: Sequence[EvaluationResult] | None = None
    positive: labels.Label = None
    shared: dict[str, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, length: int, **arrays: Any) -> Columns:
        """Return columns of one length; missing ones are NaN, and by default all rows are one unit."""
        # A value that is the same in every row is broadcast and takes no memory.
        columns: dict[str, Any] = dict.fromkeys(_ROW_COLUMNS, np.broadcast_to(np.nan, length))
        columns |= weights_and_units(length) | {"answered": np.broadcast_to(np.True_, length)}
        if "weight" in arrays:
            columns["item_weight"] = weight_of_one_item(arrays["weight"])
        return cls(**columns | arrays)

    @classmethod
    def checked(
        cls,
        y_true: Column | None = None,
        y_pred: Column | None = None,
        *,
        abstained: Column | None = None,
        confidence: Column | None = None,
        should_abstain: Column | None = None,
        sample_weight: Column | None = None,
        positive: object = None,
    ) -> Columns:
        """Check the arguments of an array function, all of one length and in one unit."""
        columns: dict[str, NDArray[Any]] = {}
        if y_true is not None:
            columns["y_true"] = labels.truths(y_true)
        if y_pred is not None:
            columns["y_pred"] = labels.column(y_pred, "y_pred")
        if abstained is not None:
            columns["abstained"] = _validate.one_dimensional(abstained, "abstained")
        if confidence is not None:
            columns["confidence"] = _validate.floats(confidence, "confidence")
        if should_abstain is not None:
            columns["should_abstain"] = guidance(should_abstain)
        first, column = next(iter(columns.items()))
        length = len(column)
        _validate.same_length(length, **columns)
        if not length:
            raise DataError(f"{first} is empty; there must be at least one row")
        if "y_true" in columns and labels.missing(columns["y_true"]).any():
            row = int(np.argmax(labels.missing(columns["y_true"])))
            raise DataError(f"y_true is missing at {row_name(row)}; remove rows without a ground truth")
        declined = _validate.mask(columns.pop("abstained", np.zeros(length, np.bool_)), "abstained", length)
        names = {"y_true": "truth", "y_pred": "prediction"}
        return cls.of(
            length,
            answered=~declined,
            weight=_validate.weights(sample_weight, length),
            positive=labels.canonical(positive, "positive", 0),
            **{names.get(name, name): values for name, values in columns.items()},
        )

    @classmethod
    def ranked(
        cls,
        loss: Column,
        confidence: Column | None = None,
        *,
        abstained: Column | int | None = None,
        sample_weight: Column | None = None,
    ) -> Columns:
        """Check the arguments of a selective metric; a number of abstentions becomes as many additional rows."""
        losses = _validate.floats(loss, "loss")
        length = len(losses)
        levels = np.zeros(length) if confidence is None else _validate.floats(confidence, "confidence")
        _validate.same_length(length, confidence=levels)
        weight = _validate.weights(sample_weight, length)
        declined = np.zeros(length, np.bool_)
        if abstained is not None and np.ndim(abstained) == 0:
            added = _validate.whole(abstained, "abstained")  # type: ignore[arg-type]
            declined = np.r_[declined, np.ones(added, np.bool_)]
            weight = np.r_[weight, np.ones(added)]
            losses, levels = np.r_[losses, np.zeros(added)], np.r_[levels, np.zeros(added)]
        elif abstained is not None:
            declined = _validate.mask(abstained, "abstained", length)
        if not len(losses):
            raise DataError("loss is empty; there must be at least one item")
        hint = "mark the item in abstained= if the model declined"
        _validate.finite(losses, "loss", among=~declined, hint=hint)
        _validate.finite(levels, "confidence", among=~declined, hint=hint)
        return cls.of(len(losses), answered=~declined, loss=losses, confidence=levels, weight=weight)

    @classmethod
    def believed(
        cls,
        y_true: Column,
        confidence: Column,
        *,
        sample_weight: Column | None = None,
        cluster: Column | None = None,
    ) -> Columns:
        """Check outcomes of 0 or 1 and the probabilities stated for them. Default: all rows are one unit.

        The prediction of every row is 1, so a row is right if its outcome is 1.
        """
        outcome = _validate.binary(y_true, "y_true")
        probability = probabilities(confidence, "confidence")
        length = len(outcome)
        _validate.same_length(length, confidence=probability)
        if not length:
            raise DataError("y_true is empty; there must be at least one row")
        return cls.of(
            length,
            truth=outcome,
            prediction=np.broadcast_to(np.float64(1.0), length),
            confidence=probability,
            shared={"correct": outcome},
            **weights_and_units(length, sample_weight, cluster),
        )

    @property
    def abstained(self) -> Mask:
        """True if the model declined."""
        return ~self.answered

    def compute_once(self, name: str, work: Callable[[], T], *, by_confidence: bool = False) -> T:
        """Return the result of `work`, called only the first time; `by_confidence` if it depends on the confidence."""
        results = self.in_order if by_confidence else self.shared
        if name not in results:
            results[name] = work()
        result: T = results[name]
        return result

    @cached_property
    def ranks(self) -> tuple[Indices, Floats]:
        """The rank of every answered row (0: the most confident), and the confidence of each rank."""
        return keys_descending(self.confidence[self.answered])

    @property
    def loss_keys(self) -> tuple[Indices, Floats]:
        """The rank of the loss of every answered row (0: the smallest), and the loss of each rank."""
        return self.compute_once("loss_keys", lambda: keys_ascending(self.loss[self.answered]))

    @cached_property
    def in_order(self) -> dict[str, Any]:
        """Results of these rows that depend on their confidence; see `compute_once`."""
        return {}

    @property
    def correct(self) -> Floats:
        """1 if the row is answered and right, otherwise 0. An abstention is never right, nor is the answer None."""
        return self.compute_once(
            "correct",
            lambda: (labels.matches(self.truth, self.prediction) & self.answered).astype(np.float64),
        )

    def with_confidence(self, confidence: Floats) -> Columns:
        """Return the same rows under another confidence."""
        return replace(self, confidence=confidence)

    @property
    def worst_loss(self) -> float:
        """The largest possible loss; if it is unknown, the largest that occurs."""
        if not math.isnan(self.largest_loss):
            return self.largest_loss
        return self.compute_once(
            "worst_loss",
            lambda: float(np.max(self.loss, where=self.answered & np.isfinite(self.loss), initial=0.0)),
        )

    @property
    def highest_coverage(self) -> float:
        """The proportion of the total weight that is answered; 0 if there is no weight."""
        return self.compute_once("highest_coverage", self._highest_coverage)

    def _highest_coverage(self) -> float:
        total = float(self.weight.sum())
        return float(self.weight[self.answered].sum()) / total if total else 0.0

    @property
    def lossless(self) -> bool:
        """True if some answered row has no loss."""
        return self.compute_once("lossless", lambda: bool((self.answered & np.isnan(self.loss)).any()))

    @cached_property
    def unranked(self) -> bool:
        """True if some answered row has no confidence."""
        return bool((self.answered & np.isnan(self.confidence)).any())

    def in_units(self, cluster: Indices | None, units: int | None = None) -> Self:
        """Return the same rows in other units, numbered from 0; None for a single unit with all rows."""
        return replace(super().in_units(cluster, units), shared={})

    def with_further(self, count: float, *, right: bool, loss: float) -> Columns:
        """Return the rows and one more of weight `count`, which is the most confident: right, or wrong with a loss."""
        ranked = self.answered & np.isfinite(self.confidence)
        top = np.max(self.confidence, where=ranked, initial=-np.inf) + 1.0
        added = {
            "answered": True,
            "confidence": top,
            "loss": 0.0 if right else loss,
            "cluster": 0,
            "weight": count,
        }
        columns = {name: getattr(self, name) for name in _ROW_COLUMNS}
        extended = {
            name: np.r_[column, np.full(1, added.get(name, np.nan), dtype=column.dtype)]
            for name, column in columns.items()
        }
        correct = np.r_[self.correct, float(right)]
        return replace(self, **extended, results=None, shared={"correct": correct})

    def with_loss(self, loss: Floats) -> Columns:
        """Return the same rows under another loss."""
        return replace(self, loss=loss, shared={})

    @cached_property
    def predicted(self) -> Mask:
        """True if the row is answered with a prediction, not None."""
        return self.answered & ~labels.missing(self.prediction)

    @cached_property
    def stated(self) -> Mask:
        """True if the row is answered with a prediction and a confidence."""
        return self.predicted & ~np.isnan(self.confidence)

    @cached_property
    def bounded(self) -> Mask:
        """True if the row is answered with an interval and its truth is a number."""
        if not len(self.intervals):
            return np.zeros(len(self), np.bool_)
        return self.answered & ~np.isnan(self.intervals).any(axis=1) & ~np.isnan(self.truth_number)

    @cached_property
    def gathered(self) -> Mask:
        """True if the row is answered with a set."""
        return self.answered & np.full(len(self), bool(self.sets.size))

    @cached_property
    def guided(self) -> Mask:
        """True if it is known whether the model should have abstained."""
        return ~np.isnan(self.should_abstain)

    @cached_property
    def truth_number(self) -> Floats:
        """The truth as a number; NaN if it is text."""
        return labels.numbers(self.truth)

    @cached_property
    def truth_class(self) -> Indices:
        """The truth as the index of a class; -1 if it is not a class."""
        if self.class_index is not None:
            return self.class_index
        return np.nan_to_num(self.truth_number, nan=-1.0).astype(np.intp)

    @cached_property
    def prediction_number(self) -> Floats:
        """The prediction as a number; NaN if it is text or missing."""
        return labels.numbers(self.prediction)

    @cached_property
    def event(self) -> Floats:
        """1 if the truth is the positive label, otherwise 0."""
        return _is_label(self.truth, self._positive)

    @cached_property
    def prediction_is_positive(self) -> Floats:
        """1 if the prediction is the positive label, otherwise 0."""
        return _is_label(self.prediction, self._positive)

    @property
    def _positive(self) -> labels.Label:
        return 1 if self.positive is None else self.positive

    @cached_property
    def event_probability(self) -> Floats:
        """The stated probability of the positive label: the confidence if it was predicted, otherwise 1 minus it."""
        return np.where(self.prediction_is_positive == 1.0, self.confidence, 1.0 - self.confidence)

    @cached_property
    def binary(self) -> Mask:
        """True if truth and prediction are 0 or 1, or if the positive label was named."""
        if self.positive is not None:
            return np.ones(len(self), np.bool_)
        columns = (self.truth, self.prediction)
        return np.logical_and(*((_is_label(column, 0) + _is_label(column, 1)) > 0 for column in columns))

    @cached_property
    def positive_unnamed(self) -> bool:
        """True if truths are text and the positive label was not named."""
        text = self.truth.dtype.kind == "O" and any(isinstance(label, str) for label in self.truth.tolist())
        return self.positive is None and text

    def take(self, rows: Mask | Indices) -> Columns:
        """Return some rows; the units stay as they are."""
        if rows.dtype == np.bool_ and rows.all():
            return self
        taken: dict[str, Any] = {name: getattr(self, name)[rows] for name in _ROW_COLUMNS}
        for name in ("intervals", "sets", "class_index"):
            values = getattr(self, name)
            taken[name] = values[rows] if values is not None and len(values) else values
        if self.results is not None:
            taken["results"] = [self.results[row] for row in np.arange(len(self))[rows]]
        return replace(self, **taken, shared={})


_ROW_COLUMNS = (
    "answered",
    "truth",
    "prediction",
    "confidence",
    "should_abstain",
    "loss",
    "weight",
    "cluster",
)


def weights_and_units(
    length: int, sample_weight: Column | None = None, cluster: Column | None = None
) -> dict[str, Any]:
    """Return the fields of `Rows`. Units are numbered by ascending cluster id. Default: weights of 1, one unit."""
    weight = _validate.weights(sample_weight, length)
    weights = {"weight": weight, "item_weight": weight_of_one_item(weight)}
    if cluster is None:
        return {**weights, "cluster": np.broadcast_to(np.intp(0), length), "units": 1}
    distinct, unit = named_groups(cluster, "cluster", length)
    return {**weights, "cluster": unit, "units": len(distinct)}


def named_groups(values: Column, name: str, rows: int) -> tuple[list[Any], Indices]:
    """Return the distinct labels, ascending, and the index of each row's label; a missing label is an error."""
    group_labels = _validate.one_dimensional(values, name)
    _validate.same_length(rows, **{name: group_labels})
    try:
        missing = _missing_labels(group_labels)
        if missing.any():
            raise DataError(
                f"{name} is missing at {row_name(int(np.argmax(missing)))} ({int(missing.sum())} such rows); "
                "every row needs one"
            )
        distinct, index = np.unique(group_labels, return_inverse=True)
    except TypeError:
        raise DataError(
            f"{name} must be all text or all numbers, because a mixture cannot be sorted; convert the values to text"
        ) from None
    return distinct.tolist(), index.astype(np.intp, copy=False)


def _missing_labels(group_labels: NDArray[Any]) -> Mask:
    if group_labels.dtype.kind in "fmM":
        return np.isnan(group_labels)
    if group_labels.dtype.kind != "O":
        return np.zeros(len(group_labels), np.bool_)
    # Only NaN and NaT differ from themselves.
    return np.array([value is None or value != value for value in group_labels.tolist()], np.bool_)  # noqa: PLR0124


def probabilities(values: Column, name: str) -> Floats:
    """Return `values` as numbers in [0, 1]; the error names the first row outside this range."""
    array = _validate.floats(values, name)
    # This quick check is enough for valid values. A NaN fails both comparisons.
    if len(array) and array.min() >= 0.0 and array.max() <= 1.0:
        return array
    return _validate.unit_interval(array, name)


def guidance(values: Column, name: str = "should_abstain") -> Floats:
    """Return guidance as 1, 0, or NaN for None; in an object array only booleans are guidance.

    >>> guidance([True, None, False])
    array([ 1., nan,  0.])
    """
    array = _validate.one_dimensional(values, name)
    if array.dtype.kind in "biuf":
        wrong = ~(np.isin(array, (0, 1)) | np.isnan(array.astype(np.float64)))
        if wrong.any():
            row = int(np.argmax(wrong))
            raise DataError(f"{name} must be True or False, got {array[row]:g} at {row_name(row)}")
        return array.astype(np.float64)
    result = np.full(len(array), np.nan)
    # As an array, a list with one text would be text in every element, so the list itself is read.
    for row, value in enumerate(values if isinstance(values, (list, tuple)) else array.tolist()):
        if isinstance(value, (bool, np.bool_)):
            result[row] = value
        elif value is not None:
            raise DataError(f"{name} must be True or False, got {_validate.kind(value)} at {row_name(row)}")
    return result


def _is_label(column: NDArray[Any], label: labels.Label) -> Floats:
    if column.dtype.kind == "f" and not isinstance(label, str):
        return (column == label).astype(np.float64)
    return np.array([value == label for value in column.tolist()], dtype=np.float64)


def ratio(above: Floats, below: Floats | Indices, *, empty: float = np.nan) -> Floats:
    """Divide sums over rows; the result is `empty` if the divisor is not positive."""
    return np.divide(above, below, out=np.full(np.shape(above), empty), where=below > 0)


def subtract(total: Floats, part: Floats) -> Floats:
    """Subtract the sum over some of the rows from the sum over all; the rest is 0 if it is due to rounding."""
    rest = total - part
    return np.where(rest > _LEAST_REST * total, rest, 0.0)
