"""Input validation: every check and conversion of the arguments of public functions.

Public functions call these first, and the functions that they call trust their input. Each check raises an
``ArgumentError`` (the call is wrong) or a ``DataError`` (the data are wrong) that names the argument, the rule, the
wrong value or row, and the remedy.
"""

from __future__ import annotations

import difflib
import itertools
import math
import operator
import re
from typing import TYPE_CHECKING, Any

import numpy as np

from abstain._row_names import first_row_name, row_name
from abstain.errors import ArgumentError, DataError, list_names

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from numpy.typing import ArrayLike, NDArray

    from abstain._types import Floats

    Column = ArrayLike | Sequence[Any]

# Longer names may be free text, so they are shortened in messages.
_LONGEST_NAME = 24
_DATE = re.compile(r"[0-9]{1,4}[-/.][0-9]{1,2}[-/.][0-9]{1,4}", re.ASCII)
_LONGEST_COLUMN, _MOST_WORDS, _MOST_COLUMNS = 40, 3, 30
# A suggestion is searched among the first options only, because the search is slow.
_MOST_SUGGESTIONS = 1000

# The remedy for a caller who passes arrays to a function that takes a source.
FROM_ARRAYS = "for arrays, pass abstain.Items.from_arrays(truth, prediction, confidence=...)"
# The names in other packages of arguments that name columns here.
_OTHER_ARGUMENTS = {
    **dict.fromkeys(("y_true", "y", "labels", "label", "target", "targets"), "truth"),
    **dict.fromkeys(("y_pred", "pred", "preds", "predictions"), "prediction"),
    **dict.fromkeys(("y_prob", "y_score", "prob", "probs", "score", "scores"), "confidence"),
    **dict.fromkeys(("group", "groups", "clusters"), "cluster"),
    **dict.fromkeys(("sample_weight", "weights"), "weight"),
}

# Sums with larger weights could overflow.
HEAVIEST = 1e100


def one_dimensional(values: Column, name: str) -> NDArray[Any]:
    """Return `values` as an array of one dimension and any type."""
    array = np.asarray(values)
    if array.ndim != 1:
        raise DataError(f"{name} must have one dimension, got shape {array.shape}")
    return array


def objects(values: Sequence[Any]) -> NDArray[Any]:
    """Return a column of unchanged objects."""
    return np.fromiter(values, dtype=object, count=len(values))


def untouched(values: Column, name: str) -> NDArray[Any]:
    """Return `values` as an array of one dimension; a list with None or of mixed types does not become text."""
    return objects(values) if isinstance(values, (list, tuple)) else one_dimensional(values, name)


def floats(values: Column, name: str) -> Floats:
    """Return `values` as float64 of one dimension; None becomes NaN, text is an error that names its row."""
    array = one_dimensional(values, name)
    if array.dtype.kind in "fiub":
        return array.astype(np.float64, copy=False)
    if array.dtype.kind != "O":
        raise DataError(f"{name} must hold numbers, got values of type {array.dtype.name}")
    result = np.empty(len(array), dtype=np.float64)
    for row, value in enumerate(array):
        if value is None:
            result[row] = math.nan
        elif isinstance(value, (int, float, np.integer, np.floating, np.bool_)):
            try:
                result[row] = value
            except OverflowError:
                raise DataError(f"{name} is too large for a float at {row_name(row)}") from None
        else:
            raise DataError(f"{name} must hold numbers, got a {type(value).__name__} at {row_name(row)}")
    return result


def finite(values: Column, name: str, *, among: NDArray[np.bool_] | None = None, hint: str = "") -> Floats:
    """Return `values` as float64 without NaN or infinity in the rows `among`. Default: all rows."""
    array = floats(values, name)
    wrong = ~np.isfinite(array)
    if among is not None:
        wrong &= among
    if wrong.any():
        raise DataError(
            f"{name} is {array[np.argmax(wrong)]} at {first_row_name(wrong)}; "
            f"it must be a finite number{hint and '; ' + hint}"
        )
    return array


def unit_interval(values: Column, name: str) -> Floats:
    """Return `values` as finite float64 within [0, 1]; the error names the first wrong row."""
    array = finite(values, name)
    _refuse_first((array < 0.0) | (array > 1.0), array, f"{name} must lie in [0, 1]")
    return array


def _refuse_first(wrong: NDArray[np.bool_], values: Floats, rule: str, remedy: str = "") -> None:
    """Raise if a value is wrong: the rule, the first wrong value and its row, and the remedy."""
    if wrong.any():
        row = int(np.argmax(wrong))
        raise DataError(f"{rule}, got {values[row]:g} at {row_name(row)}{remedy and '; ' + remedy}")


def binary(values: Column, name: str) -> Floats:
    """Return `values` as 0.0 or 1.0; the error names the first wrong row."""
    converted = np.asarray(values)
    array = floats(converted, name)
    # Two reductions handle the usual case of whole numbers without a temporary array.
    if len(array) and converted.dtype.kind in "iub" and converted.min() >= 0 and converted.max() <= 1:
        return array
    remedy = "compute the correctness first, such as y_true = (truth == prediction)"
    _refuse_first((array != 0.0) & (array != 1.0), array, f"{name} must be 0 or 1", remedy)
    return array


def mask(values: Column, name: str, length: int) -> NDArray[np.bool_]:
    """Return `values` as booleans of `length`; 0/1 integers are accepted, anything else is an error."""
    array = one_dimensional(values, name)
    is_numeric = array.dtype.kind in "iuf" and np.isin(array, (0, 1)).all()
    is_objects = array.dtype.kind == "O" and all(isinstance(value, (bool, np.bool_)) for value in array)
    if len(array) == 0 or is_numeric or is_objects:
        array = array.astype(np.bool_)
    if array.dtype.kind != "b":
        raise DataError(f"{name} must hold booleans, got values of type {array.dtype.name}")
    same_length(length, **{name: array})
    return array


def weights(values: Column | None, length: int, name: str = "sample_weight") -> Floats:
    """Return row weights: finite, not negative, not all zero. Default: ones."""
    if values is None:
        return np.broadcast_to(1.0, length)
    array = finite(values, name)
    same_length(length, **{name: array})
    _refuse_first(array < 0.0, array, f"{name} must not be negative")
    _refuse_first(array > HEAVIEST, array, f"{name} must be at most {HEAVIEST:g}", "scale it down")
    if length and not array.any():
        raise DataError(f"{name} is zero in every row; at least one row needs a positive weight")
    return array


def same_length(length: int, **arrays: Sequence[Any] | NDArray[Any]) -> None:
    """Raise unless every array has `length` rows; the error names the wrong array."""
    for name, array in arrays.items():
        if len(array) != length:
            raise DataError(f"{name} has {len(array)} rows, but {length} were expected")


def level(value: float, name: str = "level") -> float:
    """Return a confidence level strictly between 0 and 1."""
    return _within(value, name, f"fulfil 0 < {name} < 1", lambda number: 0.0 < number < 1.0)


def coverage(value: float, name: str = "coverage") -> float:
    """Return a coverage in (0, 1]."""
    return _within(value, name, "be in (0, 1]", lambda number: 0.0 < number <= 1.0)


def proportion(value: float, name: str) -> float:
    """Return a number in [0, 1]."""
    return _within(value, name, "lie in [0, 1]", lambda number: 0.0 <= number <= 1.0)


def _within(value: float, name: str, rule: str, fits: Callable[[float], bool]) -> float:
    number = real(value, name)
    if not fits(number):
        # The caller may have passed percent.
        hint = f"; did you mean {number / 100:g}?" if number > 1.0 and fits(number / 100) else ""
        raise ArgumentError(f"{name} must {rule}, got {number:g}{hint}")
    return number


def coverages(values: Iterable[float], name: str) -> tuple[float, ...]:
    """Return a grid of coverages in (0, 1], ascending, that differ in the first two decimals."""
    grid = tuple(coverage(value, name) for value in values)
    if len({f"{value:.2f}" for value in grid}) != len(grid):
        listed = list_names(f"{value:g}" for value in grid)
        raise ArgumentError(f"{name} must differ in the first two decimals, got {listed}")
    return tuple(sorted(grid))


def real(value: float, name: str) -> float:
    """Return a finite number."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise ArgumentError(f"{name} must be a number, got {value!r}") from None
    if not math.isfinite(number):
        raise ArgumentError(f"{name} must be a finite number, got {number}")
    return number


def not_negative(value: float, name: str) -> float:
    """Return a finite number that is at least 0."""
    number = real(value, name)
    if number < 0.0:
        raise ArgumentError(f"{name} must not be negative, got {number:g}")
    return number


def whole(value: int, name: str, *, least: int = 0, most: int | None = None) -> int:
    """Return an integer within [least, most]."""
    try:
        number = operator.index(value)
    except TypeError:
        raise ArgumentError(f"{name} must be a whole number, got {value!r}") from None
    if number < least or (most is not None and number > most):
        bounds = f"at least {least}" if most is None else f"from {least} to {most}"
        raise ArgumentError(f"{name} must be {bounds}, got {number}")
    return number


def seed(value: int) -> int:
    """Return a seed that the legacy random stream accepts."""
    return whole(value, "seed", most=2**32 - 1)


def scale(value: Sequence[float], name: str = "scale") -> tuple[float, float]:
    """Return the declared (lowest, highest) value of a truth."""
    if len(value) != 2:
        raise ArgumentError(f"{name} must be two numbers, lowest and highest, got {len(value)}")
    low, high = real(value[0], name), real(value[1], name)
    if not low < high:
        raise ArgumentError(f"{name} must go from low to high, got {low:g} to {high:g}")
    return low, high


def kind(value: object) -> str:
    """Return the type of a value in words, without the value.

    >>> kind("Mrs. Example"), kind(0.5), kind([1])
    ('text', 'a number', 'a list')
    """
    if isinstance(value, str):
        return "text"
    if isinstance(value, (int, float, np.number)) and not isinstance(value, (bool, np.bool_)):
        return "a number"
    return "None" if value is None else f"a {type(value).__name__}"


def choice(value: str, name: str, options: Iterable[str]) -> str:
    """Return `value` if it is one of `options`; the error suggests the nearest and lists them all."""
    names = list(options)
    if value not in names:
        raise ArgumentError(
            f"unknown {name} {list_names([value])!r}{suggestion(value, names)}; known: {list_names(names)}"
        )
    return value


def unknown_argument(function: str, name: str, known: Iterable[str]) -> ArgumentError:
    """Return the error for an unknown argument; it names the likely one.

    >>> print(unknown_argument("evaluate", "y_true", ["truth"]))
    evaluate has no argument y_true; pass truth=
    """
    likely = _OTHER_ARGUMENTS.get(name)
    return ArgumentError(
        f"{function} has no argument {name}{f'; pass {likely}=' if likely else suggestion(name, known)}"
    )


def suggestion(value: str, options: Iterable[str]) -> str:
    """Return `` (did you mean 'x'?)`` for the option nearest to `value`, or an empty text if none is near."""
    text = str(value)
    if len(text) > _LONGEST_COLUMN:
        return ""
    near = difflib.get_close_matches(text, itertools.islice(options, _MOST_SUGGESTIONS), n=1)
    return f" (did you mean {near[0]!r}?)" if near else ""


def place_name(value: object) -> str:
    """Return the name of a cluster or an item for an error message, shortened because it may be free text.

    >>> place_name("P-17"), place_name("The patient, a man of 43, came in with a cough and a fever")
    ('P-17', 'The patient, a man of 43…')
    """
    text = str(value)
    return text if len(text) <= _LONGEST_NAME else f"{text[:_LONGEST_NAME]}…"


def listed_columns(names: Iterable[str], *, headed: bool = True) -> str:
    """Return a list of the columns of a table for a message, without anything that may be a value of a record.

    The first line of a file without a header is a record. If a heading is a number or a date, or if the table may have
    no header (`headed` is False), only the number of columns is shown. Otherwise headings that are empty, long, or of
    more than three words are omitted.

    >>> listed_columns(["label", "pred", "patient id"])
    'columns: label, pred, patient id'
    >>> listed_columns(["Mrs. Example coughs", "1", "0.4"])
    '3 columns; the first line contains values and not names: does the file have a header?'
    >>> listed_columns(["label", "what the patient answered at first"])
    '2 columns; those that look like names: label'
    """
    headings = list(names)
    values = any(map(_is_value, headings))
    if values or not headed:
        contains = "contains" if values else "may contain"
        return f"{len(headings)} columns; the first line {contains} values and not names: does the file have a header?"
    named = [
        name for name in headings if len(name) <= _LONGEST_COLUMN and 0 < len(name.split()) <= _MOST_WORDS
    ]
    listed = ", ".join(named[:_MOST_COLUMNS]) + (" ..." if len(named) > _MOST_COLUMNS else "")
    if len(named) == len(headings):
        return f"columns: {listed}"
    return f"{len(headings)} columns; those that look like names: {listed or 'none'}"


def _is_value(text: str) -> bool:
    """Return whether text cannot be the name of a column: a number, a date, or text of several lines."""
    if _DATE.match(text) or not text.isprintable():
        return True
    try:
        float(text)
    except ValueError:
        return False
    # "nan" and "inf" may be names of columns.
    return any(map(str.isdigit, text))
