"""The columns of items: what they hold, and how what a user hands over becomes one.

Every column is checked here on its way in: outcomes that are said and not guessed, labels, identifiers, signals,
weights that count rows, bounds in their order, sets over named classes. The table of them is `abstain.items`.
"""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from abstain import _validate, labels
from abstain.errors import ArgumentError, DataError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import ArrayLike, NDArray

    Mask = NDArray[np.bool_]
    # Lists with None are no ArrayLike to numpy, and yet what people have.
    Column = ArrayLike | Sequence[Any]

__all__ = [
    "Outcome",
    "Signal",
    "checked_intervals",
    "checked_sets",
    "checked_weight",
    "frozen",
    "identifiers",
    "label_column",
    "objects",
    "outcomes",
    "signal_column",
    "signals_from_rows",
]


class Outcome(enum.IntEnum):
    """What became of an item; every item has exactly one."""

    ANSWERED = 0
    ABSTAINED = 1
    FAILED = 2
    UNSCORED = 3


@dataclass(frozen=True, eq=False, slots=True)
class Signal:
    """One numeric column that a confidence may be made of.

    Attributes:
        values: the numbers, NaN where the source says null or says nothing.
        absent: True where the source does not even have the key, which is not the same as a null.
    """

    values: NDArray[np.float64]
    absent: Mask

    @property
    def null(self) -> Mask:
        """True where the source has the key and says null."""
        return np.isnan(self.values) & ~self.absent

    def take(self, rows: NDArray[np.intp] | Mask) -> Signal:
        """Return the signal of some rows."""
        return Signal(frozen(self.values[rows]), frozen(self.absent[rows]))


def signals_from_rows(
    rows: Sequence[Mapping[str, Any]], describe: Callable[[int], str] = "row {}".format
) -> dict[str, Signal]:
    """Turn one mapping of numbers per row into columns; a key that some rows lack is absent there, None is null.

    True and false are no numbers: an error that names the key and, with the words of `describe`, the row.
    """
    names = dict.fromkeys(name for row in rows for name in row)
    signals = {}
    for name in names:
        column = [row.get(name) for row in rows]
        flags = [isinstance(value, (bool, np.bool_)) for value in column]
        if any(flags):
            place = describe(flags.index(True))
            raise DataError(
                f"signal {name} is true or false for {place} ({sum(flags)} such items); a signal must be a number or "
                "null"
            )
        values = _validate.floats(np.fromiter(column, dtype=object, count=len(column)), f"signal {name}")
        absent = np.array([name not in row for row in rows], dtype=np.bool_)
        signals[name] = Signal(frozen(values), frozen(absent))
    return signals


def checked_weight(values: Column | None, length: int) -> NDArray[np.float64] | None:
    """Return weights that can count rows: finite, not negative, not all zero; None where there are none."""
    return None if values is None else _validate.weights(values, length, "weight").copy()


def checked_intervals(values: Column | None, outcome: NDArray[np.uint8]) -> NDArray[np.float64] | None:
    """Return bounds (rows, 2) that are there, and in order, wherever an item is answered."""
    if values is None:
        return None
    bounds = np.array(values, dtype=np.float64)
    if bounds.shape != (len(outcome), 2):
        raise DataError(f"intervals must have the shape ({len(outcome)}, 2), got {bounds.shape}")
    answered = outcome == Outcome.ANSWERED
    gaps = answered & np.isnan(bounds).any(axis=1)
    if gaps.any():
        raise DataError(
            f"the interval has no lower or no upper bound at row {int(np.argmax(gaps))} ({int(gaps.sum())} such rows); "
            "every answered row needs both"
        )
    crossed = answered & (bounds[:, 0] > bounds[:, 1])
    if crossed.any():
        row = int(np.argmax(crossed))
        raise DataError(
            f"the lower bound {bounds[row, 0]:g} is above the upper bound {bounds[row, 1]:g} at row {row} "
            f"({int(crossed.sum())} such rows)"
        )
    return bounds


def checked_sets(
    values: Column | None, classes: Sequence[Any] | None, truth: NDArray[Any], outcome: NDArray[np.uint8]
) -> tuple[Mask | None, tuple[str, ...]]:
    """Return sets (rows, classes) and the names of the classes, among them the truth of every answered row."""
    if values is None:
        if classes is not None:
            raise ArgumentError("classes name the columns of sets, and there are no sets")
        return None, ()
    member = np.array(values)
    if member.ndim != 2 or len(member) != len(outcome):
        raise DataError(f"sets must have the shape ({len(outcome)}, classes), got {member.shape}")
    if member.dtype.kind != "b" and not (member.dtype.kind in "iuf" and np.isin(member, (0, 1)).all()):
        raise DataError(f"sets must hold booleans, got values of type {member.dtype.name}")
    given = range(member.shape[1]) if classes is None else classes
    names = tuple(str(name) for name in given)
    if len(names) != member.shape[1] or len(labels.class_names(names)) != len(names):
        raise ArgumentError(f"classes must name each of the {member.shape[1]} columns of sets once")
    unknown = labels.class_index(labels.column(truth, "truth"), names) < 0
    unknown &= outcome == Outcome.ANSWERED
    if unknown.any():
        raise DataError(
            f"the truth is none of the {len(names)} classes at row {int(np.argmax(unknown))} "
            f"({int(unknown.sum())} such rows); name them all in classes="
        )
    return member.astype(np.bool_), names


def outcomes(
    truth: NDArray[Any],
    prediction: NDArray[Any],
    abstained: Column | None,
    failed: Column | None,
    null_prediction: str | None,
) -> NDArray[np.uint8]:
    length = len(truth)
    declined = (
        np.zeros(length, np.bool_) if abstained is None else _validate.mask(abstained, "abstained", length)
    )
    broken = np.zeros(length, np.bool_) if failed is None else _validate.mask(failed, "failed", length)
    both = declined & broken
    if both.any():
        raise DataError(f"row {int(np.argmax(both))} is both abstained and failed; an item has one outcome")
    if null_prediction is not None:
        _validate.choice(null_prediction, "null_prediction", ("abstained", "failed", "answered"))
    silent = _missing(prediction) & ~declined & ~broken
    if silent.any() and null_prediction is None:
        raise DataError(
            f"prediction is missing at row {int(np.argmax(silent))} ({int(silent.sum())} such rows) and the row is "
            'not marked; pass abstained= or failed=, or null_prediction="abstained"'
        )
    outcome = np.full(length, Outcome.ANSWERED, dtype=np.uint8)
    outcome[declined | (silent if null_prediction == "abstained" else False)] = Outcome.ABSTAINED
    outcome[_missing(truth)] = Outcome.UNSCORED
    outcome[broken | (silent if null_prediction == "failed" else False)] = Outcome.FAILED
    return outcome


def label_column(values: Column, name: str) -> NDArray[Any]:
    """Numbers become float64 (None is NaN); a column with any text stays as objects, each label as it was."""
    array = objects(values, name)
    if array.dtype.kind in "fiub":
        return array.astype(np.float64)
    if all(value is None or isinstance(value, (bool, int, float, np.number, np.bool_)) for value in array):
        return _validate.floats(array, name)
    return array


def objects(values: Column, name: str) -> NDArray[Any]:
    # A list with None or of mixed types must not become text on its way into an array.
    if isinstance(values, (list, tuple)):
        return np.fromiter(values, dtype=object, count=len(values))
    return _validate.one_dimensional(values, name).copy()


def _missing(labels: NDArray[Any]) -> Mask:
    if labels.dtype.kind == "f":
        return np.isnan(labels)
    return np.array([_is_missing(value) for value in labels], dtype=np.bool_)


def _is_missing(value: object) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))


def identifiers(values: Column | None, name: str, length: int) -> NDArray[Any]:
    if values is None:
        return np.arange(length)
    array = _validate.one_dimensional(values, name)
    _validate.same_length(length, **{name: array})
    if array.dtype.kind in "iuU":
        return array.copy()
    kinds = {type(value) for value in array.tolist()}
    if kinds <= {str}:
        return array.astype(np.str_)
    if kinds <= {int}:
        return array.astype(np.int64)
    missing = [_is_missing(value) for value in array.tolist()]
    if any(missing):
        raise DataError(f"{name} is missing at row {missing.index(True)}; every item needs one")
    raise ArgumentError(
        f"{name} must hold text or whole numbers, not {', '.join(sorted(k.__name__ for k in kinds))}"
    )


def signal_column(values: Column, name: str) -> Signal:
    numbers = _validate.floats(values, f"signal {name}").copy()
    return Signal(frozen(numbers), frozen(np.zeros(len(numbers), dtype=np.bool_)))


def frozen(array: NDArray[Any]) -> NDArray[Any]:
    # A view, so that the caller's own array stays writeable; user data were copied on their way in.
    view = array.view()
    view.flags.writeable = False
    return view
