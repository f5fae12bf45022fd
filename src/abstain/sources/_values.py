"""What the values of a column mean: numbers, flags, labels, lists of labels; and what is wrong with them.

Each function takes a column as `SourceTable.load` gives it and returns it as what it must be. Whatever is not that is
reported with the column and the rows (counted from 0, without the header), never with the value itself: it may
be a patient's. Problems are raised one by one, or collected for whoever wants the whole list. Which column is asked
for, and why, is known to the callers.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from abstain import labels
from abstain.errors import DataError
from abstain.labels import is_missing, missing

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Mask = NDArray[np.bool_]

__all__ = [
    "FLAGS",
    "VERDICTS",
    "Problems",
    "as_flags",
    "as_labels",
    "as_lists",
    "as_number",
    "as_numbers",
    "as_verdicts",
    "blank",
    "listed_rows",
]

LIST_SEPARATOR = "|"
# What says yes and no, in lower case; a verdict may also be the letter of a grade.
FLAGS: Mapping[str, float] = {"true": 1.0, "1": 1.0, "1.0": 1.0, "false": 0.0, "0": 0.0, "0.0": 0.0}
VERDICTS: Mapping[str, float] = {**FLAGS, "c": 1.0, "i": 0.0}
_WHOLE = re.compile(r"-?[1-9][0-9]{0,17}|0", re.ASCII)


@dataclass(slots=True)
class Problems:
    """What is wrong with the rows of a source.

    Attributes:
        collect: False to raise the first problem, True to go on and remember all.
        label: what the source is called.
        found: the problems so far.

    >>> problems = Problems()
    >>> problems.report("the item ids must be unique; one stands again at row 3", way_out="name another column")
    >>> problems.found
    ['the item ids must be unique; one stands again at row 3; name another column']
    """

    collect: bool = True
    label: str = ""
    found: list[str] = field(default_factory=list)

    def report(self, message: str, *, way_out: str = "") -> None:
        """Raise the problem, or remember it."""
        text = f"{message}{way_out and '; ' + way_out}"
        if not self.collect:
            raise DataError(f"{self.label}: {text}")
        self.found.append(text)


def as_numbers(values: NDArray[Any], name: str, problems: Problems, *, gaps: bool = False) -> Floats:
    """Return a column of numbers, infinite ones among them; NaN only where `gaps` allows nothing to be said."""
    if values.dtype.kind in "iuf":
        numbers = values.astype(np.float64, copy=False)
        nothing = np.isnan(numbers)
        wrong = np.zeros(len(values), np.bool_)
    else:
        nothing = blank(values)
        parsed = [as_number(value) for value in values.tolist()]
        wrong = np.array([number is None for number in parsed], np.bool_) & ~nothing
        numbers = np.array([math.nan if number is None else number for number in parsed])
        nothing |= np.isnan(numbers) & ~wrong
    if wrong.any():
        problems.report(
            f"the column {name!r} must hold numbers, got something else at row {listed_rows(wrong)}"
        )
    if not gaps:
        _complete(nothing, name, problems)
    return numbers


def as_number(value: object) -> float | None:
    """Return the number that a value is or spells; None for anything else."""
    try:
        return float(value)  # type: ignore[arg-type]
    except (OverflowError, TypeError, ValueError):
        return None


def as_flags(values: NDArray[Any], name: str, problems: Problems) -> Mask:
    """Return a column of booleans: true and false, or 1 and 0."""
    numbers = _flags(values, FLAGS)
    wrong = np.isnan(numbers)
    if wrong.any():
        problems.report(
            f"the column {name!r} must hold true or false (or 1 and 0), and does not at row {listed_rows(wrong)}"
        )
    return numbers == 1.0


def as_verdicts(values: NDArray[Any], name: str, problems: Problems) -> Floats:
    """Return a column that says right or wrong as 1 and 0; NaN where it says nothing."""
    nothing = blank(values)
    numbers = _flags(values, VERDICTS)
    wrong = np.isnan(numbers) & ~nothing
    if wrong.any():
        problems.report(
            f"the column {name!r} must say right or wrong (true and false, 1 and 0, or C and I), and does not at row "
            f"{listed_rows(wrong)}",
            way_out="name the columns of truth and prediction instead if it means something else",
        )
    return numbers


def as_labels(values: NDArray[Any], name: str, problems: Problems) -> NDArray[Any]:
    """Return a column of labels: whole numbers where all of them are, else text."""
    _complete(blank(values), name, problems)
    if values.dtype.kind in "iu":
        return values
    if values.dtype.kind == "f":
        known = np.nan_to_num(values, nan=0.0)
        if np.isfinite(known).all() and (known == np.floor(known)).all():
            return known.astype(np.int64)
    texts = [_text(value) for value in values.tolist()]
    # A number written with leading zeros is a name, and so is every other label beside it.
    if all(_WHOLE.fullmatch(text) for text in texts):
        return np.array([int(text) for text in texts])
    return np.array(texts, dtype=np.str_)


def as_lists(
    values: NDArray[Any], name: str, problems: Problems, *, needed: Mask | None = None
) -> list[list[str]]:
    """Return a column of lists of labels: lists as such, JSON arrays, or text divided by ``|``.

    Nothing in a row is the empty list, but for rows that are `needed` to say something.
    """
    if needed is not None:
        _complete(blank(values) & needed, name, problems)
    found = []
    for row, value in enumerate(values.tolist()):
        parts = _parts(value, name, row, problems)
        if any(isinstance(part, (list, dict)) or part is None for part in parts):
            problems.report(f"the column {name!r} must hold lists of labels, got a nested one at row {row}")
            parts = []
        found.append([_text(part) for part in parts])
    return found


def blank(values: NDArray[Any]) -> Mask:
    """Return True where a column says nothing, or has nothing but blanks."""
    if values.dtype.kind != "O":
        return missing(values)
    return np.array(
        [is_missing(value) or (isinstance(value, str) and not value.strip()) for value in values.tolist()],
        dtype=np.bool_,
    )


def listed_rows(wrong: Mask) -> str:
    """Return the first rows of a mask in words.

    >>> listed_rows(np.array([True, False, True]))
    '0, 2'
    """
    rows = np.flatnonzero(wrong)
    listed = ", ".join(str(row) for row in rows[:5])
    return listed if len(rows) <= 5 else f"{listed} ... ({len(rows):,} such rows)"


def _complete(nothing: Mask, name: str, problems: Problems) -> None:
    if nothing.any():
        problems.report(
            f"the column {name!r} is empty or nan at row {listed_rows(nothing)}",
            way_out="every row needs a value",
        )


def _flags(values: NDArray[Any], words: Mapping[str, float]) -> Floats:
    if values.dtype.kind in "biuf":
        numbers = values.astype(np.float64)
        return np.where(np.isin(numbers, (0.0, 1.0)), numbers, np.nan)
    found = [words.get(_text(value).strip().casefold(), math.nan) for value in values.tolist()]
    return np.array(found, dtype=np.float64)


def _parts(value: object, name: str, row: int, problems: Problems) -> list[Any]:
    if is_missing(value):
        return []
    if not isinstance(value, str):
        return list(value) if isinstance(value, (list, tuple, np.ndarray)) else [value]
    if not value.lstrip().startswith("["):
        return [part.strip() for part in value.split(LIST_SEPARATOR) if part.strip()]
    try:
        return list(json.loads(value))
    except ValueError:
        problems.report(f"the column {name!r} holds a list that is not JSON at row {row}")
        return []


def _text(value: object) -> str:
    """Return a label as text: numbers that are whole by value as such, booleans in lower case."""
    if isinstance(value, (bool, np.bool_)):
        return str(value).lower()
    if isinstance(value, (int, float, np.number)):
        return str(labels.canonical(value, "label", 0))
    return str(value)
