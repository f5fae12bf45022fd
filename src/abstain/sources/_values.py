"""What the values of a column mean: numbers, flags, labels, lists of labels, names of units.

Each function takes a column as `SourceTable.load` gives it and returns it as what it must be. Whatever is not that is
reported with the column and the rows (counted from 0, without the header), never with the value itself: it may
be a patient's. Which column is asked for, and why, is known to the callers.
"""

from __future__ import annotations

import json
import math
import re
from typing import TYPE_CHECKING, Any

import numpy as np

from abstain import labels

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from abstain.sources._problems import Problems

    Floats = NDArray[np.float64]
    Mask = NDArray[np.bool_]

__all__ = ["as_flags", "as_labels", "as_lists", "as_numbers", "as_verdicts", "listed_rows", "missing"]

LIST_SEPARATOR = "|"
_FLAGS: Mapping[object, float] = {"true": 1.0, "1": 1.0, "1.0": 1.0, "false": 0.0, "0": 0.0, "0.0": 0.0}
_VERDICTS: Mapping[object, float] = {**_FLAGS, "c": 1.0, "i": 0.0}
_WHOLE = re.compile(r"-?[1-9][0-9]{0,17}|0", re.ASCII)


def as_numbers(values: NDArray[Any], name: str, problems: Problems, *, gaps: bool = False) -> Floats:
    """Return a column of numbers, infinite ones among them; NaN only where `gaps` allows nothing to be said."""
    if values.dtype.kind in "iuf":
        numbers = values.astype(np.float64, copy=False)
        nothing = np.isnan(numbers)
        wrong = np.zeros(len(values), np.bool_)
    else:
        nothing = blank(values)
        parsed = [_number(value) for value in values.tolist()]
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


def as_flags(values: NDArray[Any], name: str, problems: Problems) -> Mask:
    """Return a column of booleans: true and false, or 1 and 0."""
    numbers = _flags(values, _FLAGS)
    wrong = np.isnan(numbers)
    if wrong.any():
        problems.report(
            f"the column {name!r} must hold true or false (or 1 and 0), and does not at row {listed_rows(wrong)}"
        )
    return numbers == 1.0


def as_verdicts(values: NDArray[Any], name: str, problems: Problems) -> Floats:
    """Return a column that says right or wrong as 1 and 0; NaN where it says nothing."""
    nothing = blank(values)
    numbers = _flags(values, _VERDICTS)
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


def missing(values: NDArray[Any]) -> Mask:
    """Return True where a column says nothing: None or NaN."""
    if values.dtype.kind == "f":
        return np.isnan(values)
    if values.dtype.kind != "O":
        return np.zeros(len(values), np.bool_)
    return np.array([is_missing(value) for value in values.tolist()], dtype=np.bool_)


def is_missing(value: object) -> bool:
    """True for None and NaN."""
    return value is None or (isinstance(value, float) and math.isnan(value))


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


def _flags(values: NDArray[Any], words: Mapping[object, float]) -> Floats:
    if values.dtype.kind in "biuf":
        numbers = values.astype(np.float64)
        return np.where(np.isin(numbers, (0.0, 1.0)), numbers, np.nan)
    found = [
        float(value)
        if isinstance(value, (bool, int, float, np.bool_, np.number)) and value in (0, 1)
        else words.get(value.strip().casefold(), math.nan)
        if isinstance(value, str)
        else math.nan
        for value in values.tolist()
    ]
    return np.array(found, dtype=np.float64)


def _number(value: object) -> float | None:
    if isinstance(value, bool):
        return float(value)
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None


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
