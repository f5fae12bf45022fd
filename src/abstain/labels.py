"""Labels: the rule for whether a prediction equals the truth, for the whole package.

Two labels match if they are equal numbers, written as numbers or as text; true is 1 and false is 0. Otherwise they
match if their text is equal, ignoring case and blanks at the ends. For example, ``1`` matches ``"1"``, ``"1.0"`` and
``"True"``, and ``" Stable"`` matches ``"stable"``. So a label means the same in a file with types and in one without.
Whole numbers of any size are compared exactly. A missing label (None or NaN) matches nothing. Truths are all numbers or
all text. A set of labels contains the truth if one of its labels matches it.
"""

from __future__ import annotations

import math
import re
import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from abstain import _validate
from abstain._row_names import row_name
from abstain.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import ArrayLike, NDArray

    from abstain._types import Mask

    Column = ArrayLike | Sequence[Any]
    Label = int | float | str | None

# Longer runs of digits are treated as text, because converting them to a number is slow.
_WHOLE_NUMBER = re.compile(r"[+-]?[0-9]{1,300}", re.ASCII)
_NUMBER = re.compile(r"[+-]?([0-9]{1,300}(\.[0-9]{0,300})?|\.[0-9]{1,300})([eE][+-]?[0-9]{1,4})?", re.ASCII)
_DECIMAL_COMMA = re.compile(r"\s*[+-]?[0-9]*,[0-9]+([eE][+-]?[0-9]+)?\s*", re.ASCII)
_BOOLEANS = {"true": 1, "false": 0}
# Above this number a float cannot distinguish neighbouring whole numbers.
EXACT = 2**53
_NUMBER_TYPES = (bool, int, float, np.bool_, np.integer, np.floating)


def column(values: Column, name: str) -> NDArray[Any]:
    """Return labels of one dimension: float64 if all are numbers, otherwise objects in their canonical form.

    >>> column([1, None], "y_true")
    array([ 1., nan])
    >>> column(["1", " Stable"], "y_true").tolist()
    [1, 'stable']
    """
    array = _validate.untouched(values, name)
    if array.dtype.kind in "fiub":
        return exact(array)
    cells = array.tolist()
    if set(map(type, cells)) <= {str, type(None)}:
        by_text = {text: canonical(text, name, 0) for text in set(cells)}
        canonical_values = [by_text[text] for text in cells]
    else:
        canonical_values = [canonical(value, name, row) for row, value in enumerate(cells)]
    result = _validate.objects(canonical_values)
    return result if str in set(map(type, canonical_values)) else exact(result)


def exact(numbers: NDArray[Any]) -> NDArray[Any]:
    """Return numbers and None as float64, NaN for None; as objects if one of them cannot be a float exactly.

    >>> exact(np.array([1, None], dtype=object)), exact(np.array([2**53 + 1])).tolist()
    (array([ 1., nan]), [9007199254740993])
    """
    if numbers.dtype.kind in "iu":
        large = len(numbers) and max(int(numbers.max()), -int(numbers.min())) > EXACT
        return numbers.astype(object) if large else numbers.astype(np.float64)
    if numbers.dtype.kind == "O":
        if any(
            isinstance(value, (int, np.integer)) and abs(int(value)) > EXACT for value in numbers.tolist()
        ):
            return numbers
        numbers = np.array([math.nan if value is None else value for value in numbers.tolist()])
    return numbers.astype(np.float64, copy=False)


def canonical(value: object, name: str, row: int) -> Label:
    """Return the form in which labels are compared: a number, case-folded text without outer blanks, or None."""
    if value is None:
        return None
    if isinstance(value, str):
        return _read(value.strip())
    if isinstance(value, (bool, int, np.bool_, np.integer)):
        return int(value)
    if isinstance(value, _NUMBER_TYPES):
        number = float(value)
        return None if math.isnan(number) else _whole(number)
    raise DataError(f"{name} is {_validate.kind(value)} at {row_name(row)}; a label must be a number or text")


def _read(text: str) -> int | float | str:
    if _WHOLE_NUMBER.fullmatch(text):
        return int(text)
    if _NUMBER.fullmatch(text) and math.isfinite(number := float(text)):
        return _whole(number)
    # Numbers too large for a float are compared as text, so that different ones do not match.
    lowered = text.casefold()
    return _BOOLEANS.get(lowered, lowered)


def _whole(number: float) -> int | float:
    return int(number) if number.is_integer() else number


def truths(values: Column, name: str = "y_true") -> NDArray[Any]:
    """Return `column`, with an error if it has both numbers and text, whose classes are ambiguous."""
    array = column(values, name)
    if array.dtype.kind == "O":
        raw = values if isinstance(values, (list, tuple)) else np.asarray(values).tolist()
        text = [isinstance(value, str) for value in array]
        number = [isinstance(value, _NUMBER_TYPES) and canonical(value, name, 0) is not None for value in raw]
        if any(number) and any(text):
            raise DataError(
                f"{name} has mixed label types: a number at {row_name(number.index(True))} and text at "
                f"{row_name(text.index(True))}; truths must be all numbers or all text"
            )
    return array


def missing(labels: NDArray[Any]) -> Mask:
    """Return True for each missing label: None or NaN."""
    if labels.dtype.kind == "f":
        return np.isnan(labels)
    if labels.dtype.kind in "iubU":
        return np.zeros(len(labels), np.bool_)
    cells = labels.tolist()
    if set(map(type, cells)) <= {str, int, type(None)}:
        return np.equal(labels, np.array(None), dtype=object).astype(np.bool_)
    return np.array([is_missing(cell) for cell in cells], dtype=np.bool_)


def is_missing(value: object) -> bool:
    """Return whether a label is missing: None or NaN."""
    return value is None or (isinstance(value, float) and math.isnan(value))


def decimal_commas(values: NDArray[Any]) -> Mask:
    """Return True for each text that is a number with a decimal comma.

    >>> decimal_commas(np.array(["0,5", "0.5", "a,5", None], dtype=object)).tolist()
    [True, False, False, False]
    """
    if values.dtype.kind not in "OU":
        return np.zeros(len(values), np.bool_)
    return np.array(
        [isinstance(value, str) and _DECIMAL_COMMA.fullmatch(value) is not None for value in values.tolist()],
        dtype=np.bool_,
    )


def numbers(labels: NDArray[Any]) -> NDArray[np.float64]:
    """Return labels of `column` as numbers, with NaN if a label is missing or is text."""
    if labels.dtype.kind == "f":
        return labels
    return np.array([_number(label) for label in labels.tolist()], dtype=np.float64)


def _number(label: Label) -> float:
    if label is None or isinstance(label, str):
        return math.nan
    if abs(label) < sys.float_info.max:
        return float(label)
    return math.inf if label > 0 else -math.inf


def whole(labels: NDArray[Any]) -> bool:
    """Return whether every label of `column` is missing, text, or a number with a whole value.

    >>> whole(column([1.0, None, 2], "y_true")), whole(column(["a", "b"], "y_true")), whole(column([0.5], "y_true"))
    (True, True, False)
    """
    if labels.dtype.kind == "f":
        stated = labels[~np.isnan(labels)]
        return bool(np.isfinite(stated).all() and (stated == np.floor(stated)).all())
    cells = labels.tolist()
    return float not in set(map(type, cells)) or all(
        not isinstance(label, float) or math.isnan(label) for label in cells
    )


def matches(truth: NDArray[Any], prediction: NDArray[Any]) -> Mask:
    """Return True for each row in which two columns of `column` match; a missing label matches nothing.

    >>> matches(column([1, 2, 3], "y_true"), column(["1", "two", None], "y_pred"))
    array([ True, False, False])
    """
    if truth.dtype.kind == "f" and prediction.dtype.kind == "f":
        return np.asarray(truth == prediction)
    return np.equal(truth, prediction, dtype=object).astype(np.bool_) & ~missing(truth)


def classes(truth: NDArray[Any]) -> tuple[NDArray[np.intp], int]:
    """Return the class number of each truth, from 0, or -1 if missing; and the number of classes.

    >>> classes(column(["b", "a", None, "b"], "y_true"))
    (array([ 1,  0, -1,  1]), 2)
    """
    labelled = ~missing(truth)
    codes = np.full(len(truth), -1, dtype=np.intp)
    present = truth[labelled]
    if present.dtype.kind == "O":
        # Numbers written as text may be mixed with words, so numbers are sorted before text.
        order = sorted(set(present.tolist()), key=lambda label: (isinstance(label, str), label))
        number = {label: index for index, label in enumerate(order)}
        codes[labelled] = [number[label] for label in present.tolist()]
        return codes, len(order)
    distinct, codes[labelled] = np.unique(present, return_inverse=True)
    return codes, len(distinct)


def class_names(values: Iterable[object]) -> tuple[str, ...]:
    """Return the distinct labels as they are written first, numbers before text.

    >>> class_names(["cat", " Cat", 10, "2", None])
    ('2', '10', 'cat')
    """
    names: dict[int | float | str, str] = {}
    for value in values:
        label = canonical(value, "label", 0)
        if label is not None:
            names.setdefault(label, value.strip() if isinstance(value, str) else str(label))
    return tuple(names[label] for label in sorted(names, key=lambda label: (isinstance(label, str), label)))


def class_index(labels: NDArray[Any], names: Sequence[str]) -> NDArray[np.intp]:
    """Return the class index of each label of `column`; -1 if it is missing or not one of the classes.

    >>> class_index(column(["dog", "CAT", None], "y_true"), ("cat", "dog")).tolist()
    [1, 0, -1]
    """
    index_of = _class_positions(names)
    if labels.dtype.kind == "f":
        distinct, inverse = np.unique(labels, return_inverse=True)
        indices = [index_of.get(label, -1) for label in distinct.tolist()]
        return np.array(indices, dtype=np.intp)[inverse]
    return np.array([index_of.get(label, -1) for label in labels.tolist()], dtype=np.intp)


def members(sets: Iterable[Iterable[object]], names: Sequence[str], *, name: str = "set") -> Mask:
    """Return one row for each set and one column for each class, True if the class is in the set.

    >>> members([["dog"], ["Cat", "dog"], []], ("cat", "dog")).tolist()
    [[False, True], [True, True], [False, False]]
    """
    index_of, rows = _class_positions(names), list(sets)
    member = np.zeros((len(rows), len(names)), np.bool_)
    for row, labels in enumerate(rows):
        for label in labels:
            number = index_of.get(canonical(label, name, row))
            if number is None:
                raise DataError(
                    f"{name} has a label that is not one of the {len(names)} classes at {row_name(row)}"
                )
            member[row, number] = True
    return member


def _class_positions(names: Sequence[str]) -> dict[Label, int]:
    return {canonical(name, "classes", number): number for number, name in enumerate(names)}
