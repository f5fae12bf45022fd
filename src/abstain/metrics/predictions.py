"""Checked predictions that are intervals, sets or quantiles, with the values that coverage metrics read.

An interval is closed, ``low <= y <= high``; its width is ``high - low``. A set is a row of booleans, one per class; its
width is its size. Both may have several levels along a last axis. In any case, the metrics read ``covered`` and
``width`` with one row per level. All rows are one unit until `in_units` divides them. The metrics are in `intervals`,
`sets` and `quantiles`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NoReturn, Self

import numpy as np

from abstain import _validate
from abstain._row_names import row_name
from abstain.errors import ArgumentError, DataError
from abstain.metrics._columns import Rows, named_groups, weights_and_units

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    from abstain._types import Floats, Indices, Mask


__all__ = ["IntervalRows", "QuantileRows", "Rows", "SetRows", "named_groups", "nominal_coverages"]

_CHUNK = 1 << 14


@dataclass(frozen=True, eq=False, kw_only=True)
class LevelRows(Rows):
    """Rows of one or several levels, and the truths, which are empty if they were not passed."""

    several: bool
    truth: NDArray[Any] = field(default_factory=lambda: np.empty(0))


@dataclass(frozen=True, eq=False, kw_only=True)
class IntervalRows(LevelRows):
    """Checked intervals: bounds and widths (levels, rows)."""

    low: Floats
    high: Floats
    width: Floats

    @classmethod
    def checked(cls, intervals: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Check intervals; errors name the first row that is wrong."""
        bounds = _numbers(intervals, "intervals")
        if bounds.ndim not in (2, 3) or bounds.shape[1] != 2:
            raise DataError(
                f"intervals must have shape (rows, 2) or (rows, 2, levels), got {bounds.shape}; "
                "column 0 contains the lower bounds and column 1 the upper bounds"
            )
        several = bounds.ndim == 3
        if not several:
            bounds = bounds[:, :, None]
        _some_rows(bounds.shape, "intervals")
        low, high = bounds[:, 0, :].T, bounds[:, 1, :].T
        width = _widths(low, high)
        fields = weights_and_units(len(bounds), sample_weight)
        return cls(low=low, high=high, width=width, several=several, **fields)

    @classmethod
    def with_truth(
        cls, y_true: ArrayLike, intervals: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Check intervals and the true values."""
        rows = cls.checked(intervals, sample_weight)
        truth = _validate.finite(y_true, "y_true")
        _validate.same_length(len(rows), y_true=truth)
        return replace(rows, truth=truth)

    @property
    def levels(self) -> int:
        """The number of levels."""
        return len(self.low)

    @cached_property
    def covered(self) -> Mask:
        """True if the closed interval contains the truth; one row per level."""
        covered = np.empty(self.low.shape, np.bool_)
        # Both comparisons of a chunk use values that are still in the processor's cache.
        for start in range(0, len(self), _CHUNK):
            chunk = slice(start, start + _CHUNK)
            truth = self.truth[chunk]
            np.less_equal(self.low[:, chunk], truth, out=covered[:, chunk])
            covered[:, chunk] &= truth <= self.high[:, chunk]
        return covered

    @cached_property
    def ranked_width(self) -> Floats:
        """The widths by which rows are ranked; widths that differ only by rounding are made equal.

        Intervals of the same width, such as ``y - 0.1`` to ``y + 0.1``, have computed widths that differ in the last
        digits.
        """
        return np.stack(
            [_without_rounding(*level) for level in zip(self.width, self.low, self.high, strict=True)]
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class SetRows(LevelRows):
    """Checked sets: membership (rows, classes, levels)."""

    member: Mask

    @classmethod
    def checked(cls, sets: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Check sets; errors name the first row that is wrong."""
        member = _members(sets)
        several = member.ndim == 3
        if not several:
            member = member[:, :, None]
        _some_rows(member.shape, "sets")
        if member.shape[1] == 0:
            raise DataError("sets has no class; its second axis must have one column per class")
        return cls(member=member, several=several, **weights_and_units(len(member), sample_weight))

    @classmethod
    def with_truth(cls, y_true: ArrayLike, sets: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Check sets and the true classes."""
        rows = cls.checked(sets, sample_weight)
        return replace(rows, truth=_class_indices(y_true, len(rows), rows.classes))

    @property
    def classes(self) -> int:
        """The number of classes."""
        return int(self.member.shape[1])

    @property
    def levels(self) -> int:
        """The number of levels."""
        return int(self.member.shape[2])

    @cached_property
    def width(self) -> Floats:
        """The number of classes in the set; one row per level."""
        if self.classes <= np.iinfo(np.uint8).max:
            # Much faster than a sum over a short axis.
            size = np.einsum("ncl->ln", self.member.view(np.uint8))
        else:
            size = self.member.sum(axis=1, dtype=np.int32).T
        return size.astype(np.float64)

    @cached_property
    def covered(self) -> Mask:
        """True if the set contains the true class; one row per level."""
        rows, classes, levels = self.member.shape
        position = np.arange(0, rows * classes, classes)
        position += self.truth
        return self.member.reshape(rows * classes, levels).take(position, axis=0).T


@dataclass(frozen=True, eq=False, kw_only=True)
class QuantileRows(Rows):
    """Checked quantiles (rows, probabilities), and the true values."""

    truth: Floats
    quantiles: Floats
    probabilities: Floats

    @property
    def edges(self) -> Floats:
        """The edges of the bins: 0, the probabilities, 1."""
        return np.r_[0.0, self.probabilities, 1.0]

    @classmethod
    def checked(
        cls,
        y_true: ArrayLike,
        quantiles: ArrayLike,
        probabilities: float | Sequence[float],
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Check quantiles and the true values; errors name the first row that is wrong."""
        proportions = [
            _validate.level(value, "probabilities")
            for value in np.ravel(np.asarray(probabilities, dtype=object))
        ]
        if sorted(set(proportions)) != proportions:
            raise ArgumentError("probabilities must ascend, without duplicates")
        truth = _validate.finite(y_true, "y_true")
        table = np.asarray(quantiles)
        if table.ndim == 1:
            table = table[:, None]
        if table.ndim != 2 or table.shape[1] != len(proportions):
            raise DataError(
                f"quantiles must have shape (rows, {len(proportions)}), one column per probability, "
                f"got {table.shape}"
            )
        columns = np.column_stack([_validate.floats(column, "quantiles") for column in table.T])
        _validate.same_length(len(columns), y_true=truth)
        if not len(truth):
            raise DataError("y_true is empty; there must be at least one row")
        _check_ascending(columns)
        return cls(
            truth=truth,
            quantiles=columns,
            probabilities=np.array(proportions),
            **weights_and_units(len(truth), sample_weight),
        )


def nominal_coverages(level: float | Sequence[float] | ArrayLike, levels: int, name: str = "level") -> Floats:
    """Return the nominal coverage of each level of the predictions; a single number applies to all levels."""
    if np.ndim(level) == 0:
        return np.full(levels, _validate.level(level, name))  # type: ignore[arg-type]
    values = [_validate.level(value, name) for value in np.asarray(level, dtype=object).ravel()]
    if len(values) != levels:
        raise ArgumentError(f"{name} has {len(values)} values, but the predictions have {levels} levels")
    return np.array(values)


def _rectangular(values: ArrayLike, name: str) -> NDArray[Any]:
    try:
        return np.asarray(values)
    except ValueError:
        raise DataError(f"{name} must be a rectangular array; its rows differ in length") from None


def _numbers(values: ArrayLike, name: str) -> Floats:
    array = _rectangular(values, name)
    if array.dtype.kind in "fiub":
        return array.astype(np.float64, copy=False)
    if array.dtype.kind == "O":
        flat = _validate.floats(array.reshape(-1), name) if array.size else np.empty(0)
        return flat.reshape(array.shape)
    raise DataError(f"{name} must be numbers, got values of type {array.dtype.name}")


def _some_rows(shape: tuple[int, ...], name: str) -> None:
    if shape[0] == 0:
        raise DataError(f"{name} is empty; there must be at least one row")
    if shape[2] == 0:
        raise DataError(f"{name} has no level; its last axis must have at least one")


def _widths(low: Floats, high: Floats) -> Floats:
    """Return ``high - low``; the smallest width detects both crossed bounds and NaN."""
    with np.errstate(over="ignore", invalid="ignore"):
        width = np.subtract(high, low)
    if not width.min() >= 0.0:
        _refuse_bounds(low, high)
    return width


# The rounding error of two widths, each of which is the rounded difference of two rounded bounds.
_ROUNDING = 4.0 * np.finfo(np.float64).eps


def _without_rounding(width: Floats, low: Floats, high: Floats) -> Floats:
    """Return widths in which neighbours are equal if they may differ only by rounding."""
    with np.errstate(invalid="ignore"):
        error = _ROUNDING * np.maximum(np.abs(low), np.abs(high))
        # Infinite bounds and widths have no rounding error.
        error[~np.isfinite(error)] = 0.0
        gaps = np.diff(np.sort(width))
        if not ((gaps > 0.0) & (gaps <= error.max(initial=0.0))).any():  # a fast check for the usual case
            return width
        order = np.lexsort((error, width))
        sorted_width, sorted_error = width[order], error[order]
        differs = np.diff(sorted_width) > np.maximum(sorted_error[1:], sorted_error[:-1])
    group = np.r_[0, np.cumsum(differs)]
    merged = np.empty_like(width)
    merged[order] = sorted_width[np.r_[True, differs]][group]
    return merged


def _refuse_bounds(low: Floats, high: Floats) -> NoReturn:
    ordered = low <= high
    if not ordered.all():
        rows = ~ordered.all(axis=0)
        row = int(np.argmax(rows))
        level = int(np.argmax(~ordered[:, row]))
        location = row_name(row) + (f", level {level}" if len(low) > 1 else "")
        ends = float(low[level, row]), float(high[level, row])
        if np.isnan(ends).any():
            side = "low" if np.isnan(ends[0]) else "high"
            raise DataError(
                f"intervals: the {side} bound is nan at {location}; every bound must be a number, "
                "and a missing bound must be -inf or inf"
            )
        raise DataError(
            f"intervals are crossed at {location}: low {ends[0]:g} > high {ends[1]:g} "
            f"({int(rows.sum())} such rows); the lower bound comes first: swap them, or read the table with "
            '--crossed sort (crossed="sort")'
        )
    row = int(np.argmax(((low == np.inf) | (high == -np.inf)).any(axis=0)))
    raise DataError(
        f"intervals: both bounds of {row_name(row)} are the same infinity, so the interval contains no number; "
        "an open interval has low -inf or high inf"
    )


def _members(sets: ArrayLike) -> Mask:
    array = _rectangular(sets, "sets")
    if array.ndim not in (2, 3):
        raise DataError(
            f"sets must have shape (rows, classes) or (rows, classes, levels), got {array.shape}; "
            "True means that the class is in the set"
        )
    if array.dtype.kind in "iufO":
        yes = array == 1
        wrong = ~(yes | (array == 0))
        if np.any(wrong):
            row = int(np.argmax(wrong.reshape(len(array), -1).any(axis=1)))
            raise DataError(
                f"sets must be booleans, got another value at {row_name(row)}; convert scores to True or False first"
            )
        return np.asarray(yes, dtype=np.bool_)
    if array.dtype.kind != "b":
        raise DataError(f"sets must be booleans, got values of type {array.dtype.name}")
    return array


def _class_indices(values: ArrayLike, rows: int, classes: int) -> Indices:
    indices: NDArray[Any] = _validate.one_dimensional(values, "y_true")
    _validate.same_length(rows, y_true=indices)
    if indices.dtype.kind not in "iu":
        numbers = _validate.finite(indices, "y_true")
        fractional = numbers != np.floor(numbers)
        if fractional.any():
            row = int(np.argmax(fractional))
            raise DataError(f"y_true must be class indices, got {numbers[row]:g} at {row_name(row)}")
        indices = numbers
    if indices.min() < 0 or indices.max() >= classes:
        row = int(np.argmax((indices < 0) | (indices >= classes)))
        raise DataError(
            f"y_true must be a class index from 0 to {classes - 1}, got {indices[row]:g} at {row_name(row)}; "
            f"sets has {classes} classes"
        )
    return indices.astype(np.intp, copy=False)


def _check_ascending(quantiles: Floats) -> None:
    missing = np.isnan(quantiles).any(axis=1)
    if missing.any():
        raise DataError(
            f"quantiles is nan at {row_name(int(np.argmax(missing)))}; every quantile must be a number"
        )
    crossed = (quantiles[:, 1:] < quantiles[:, :-1]).any(axis=1)
    if crossed.any():
        raise DataError(
            f"quantiles descend at {row_name(int(np.argmax(crossed)))} ({int(crossed.sum())} such rows); "
            "a higher probability cannot have a lower quantile"
        )
