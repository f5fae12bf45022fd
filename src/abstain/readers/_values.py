"""The values of a column as numbers, flags, labels, names or lists of labels, and the problems with them.

The same rule applies to every source: text that spells only numbers is a column of numbers, in a CSV file, which has
only text, and in a frame. Names (of clusters, items, groups) are exact: text or whole numbers, never floats, which
cannot distinguish neighbouring numbers beyond 2 to the power of 53.

Each function takes a column as `SourceTable.load` returns it. Values of another kind are reported with the column and
the rows (as `abstain._row_names` counts them). They are never shown, because a value may be confidential. Problems are
either raised one by one, or collected in a list.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from abstain import _validate, labels
from abstain._row_names import row_name
from abstain.errors import DataError
from abstain.labels import EXACT, is_missing, missing

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from abstain._types import Floats, Mask


# The most rows that a message names.
SHOWN_ROWS = 5
LIST_SEPARATOR = "|"
# Words for yes and no, in lower case; a verdict may also be the letter or the word of a grade.
FLAGS: Mapping[str, float] = {
    **dict.fromkeys(("true", "t", "yes", "y"), 1.0),
    **dict.fromkeys(("false", "f", "no", "n"), 0.0),
}
VERDICTS: Mapping[str, float] = {
    **FLAGS,
    **dict.fromkeys(("c", "correct", "right"), 1.0),
    **dict.fromkeys(("i", "incorrect", "wrong"), 0.0),
}
CROSSED = ("sort", "empty")
_TRUTH_WORDS = {"true", "false"}
# A name with leading zeros is text, and so are all other names of its column.
_WHOLE = re.compile(r"[+-]?(?:0|[1-9][0-9]*)", re.ASCII)
_WHOLE_NAME = re.compile(r"-?[1-9][0-9]*|0", re.ASCII)
_WHOLE_FLOAT = re.compile(r"(-?[1-9][0-9]*|0)\.0+", re.ASCII)
_LEADING_ZERO = re.compile(r"[+-]?0[0-9]+", re.ASCII)
LONGEST_NUMBER = 400
# A whole number of so many digits fits 64 bits.
MOST_DIGITS = 18


@dataclass(slots=True)
class Problems:
    """The problems with the rows of a source.

    Attributes:
        collect: False to raise the first problem, True to collect all.
        label: the name of the source.
        found: the problems so far.
        counts: the number of rows of the source that each row represents, if the source was aggregated.
        first_rows: returns the first rows of the source that a mask of rows represents; None if they are unknown.

    >>> problems = Problems()
    >>> problems.report("the column 'w' is empty at row 3", way_out="every row needs a value")
    >>> problems.found
    ["the column 'w' is empty at row 3; every row needs a value"]
    """

    collect: bool = True
    label: str = ""
    found: list[str] = field(default_factory=list)
    counts: NDArray[np.int64] | None = None
    first_rows: Callable[[Mask], NDArray[np.intp] | None] | None = None

    def report(self, message: str, *, way_out: str = "") -> None:
        """Raise or collect a problem."""
        text = f"{message}{way_out and '; ' + way_out}"
        if not self.collect:
            raise DataError(f"{self.label}: {text}")
        self.found.append(text)

    def report_rows(self, wrong: Mask, message: str, *, way_out: str = "") -> None:
        """Report the rows of a mask, if there are any, at the end of a message."""
        if wrong.any():
            self.report(f"{message} {self.place(wrong)}", way_out=way_out)

    def place(self, wrong: Mask, *, most: int | None = None) -> str:
        """Return the location of the first rows of a mask, at most `most` of them; if unknown, the number of rows.

        >>> Problems().place(np.array([True, False, True]))
        'at row 0, 2'
        """
        if self.counts is None:
            rows, count = np.flatnonzero(wrong), int(wrong.sum())
        else:
            count = int(self.counts[wrong].sum())
            first = None if self.first_rows is None else self.first_rows(wrong)
            if first is None:
                return f"in {count:,} row{'' if count == 1 else 's'}"
            rows = first
        listed = row_name(*rows[: most or SHOWN_ROWS].tolist())
        return f"at {listed}" if most or count <= SHOWN_ROWS else f"at {listed} ... ({count:,} such rows)"


def typed(values: NDArray[Any]) -> NDArray[Any]:
    """Return a column of text as the booleans or numbers that all of its values spell, otherwise as text.

    >>> typed(np.array(["1", None, "3"], dtype=object)), typed(np.array(["a", "1"], dtype=object)).tolist()
    (array([ 1., nan,  3.]), ['a', '1'])
    """
    if values.dtype.kind != "O":
        return values
    gaps = blank(values)
    texts = values[~gaps].tolist()
    spelled = _spelled(texts) if texts and all(isinstance(text, str) for text in texts) else None
    if spelled is None:
        return values
    cells = np.full(len(values), None, dtype=object)
    cells[~gaps] = spelled
    complete = not gaps.any()
    if isinstance(spelled[0], bool):
        return cells.astype(np.bool_) if complete else cells
    if isinstance(spelled[0], int) and complete and max(map(abs, spelled)) < 1 << 63:
        return cells.astype(np.int64)
    return labels.exact(cells)


def is_numeric(values: NDArray[Any]) -> bool:
    """Return whether a typed column can be a signal: numbers that a float represents exactly.

    >>> is_numeric(np.array([1, 2])), is_numeric(np.array([2**53 + 1])), is_numeric(np.array(["a"], dtype=object))
    (True, False, False)
    """
    return values.dtype.kind in "iuf" and labels.exact(values).dtype.kind == "f"


def _spelled(texts: list[str]) -> list[Any] | None:
    """Return the booleans or numbers that all texts spell, otherwise None."""
    first = texts[0].strip().casefold()
    if first not in _TRUTH_WORDS and as_number(first) is None:
        return None
    stripped = [text.strip() for text in texts]
    if first in _TRUTH_WORDS:
        lowered = [text.casefold() for text in stripped]
        return [text == "true" for text in lowered] if _TRUTH_WORDS.issuperset(lowered) else None
    numbers = [as_number(text) for text in stripped]
    if None in numbers or any(map(_LEADING_ZERO.fullmatch, stripped)):
        return None
    return [int(text) for text in stripped] if all(map(_WHOLE.fullmatch, stripped)) else numbers


def spelling(texts: Mapping[str | None, float | None]) -> str:
    """Return "whole", "number" or "boolean" if all texts spell that, otherwise "text".

    Whole numbers are those that are also whole as names. The values are the numbers that another reader reads
    from the texts, or None. If they are different numbers, the result is "text".

    >>> spelling({"1": 1.0, "25": 25.0}), spelling({"1": 1.0, "0.5": 0.5}), spelling({"01": 1.0})
    ('whole', 'number', 'text')
    """
    stated = [text for text in texts if text is not None and text.strip()]
    spelled = _spelled(stated) if stated else None
    if spelled is None:
        return "text"
    if isinstance(spelled[0], bool):
        return "boolean" if all(text.casefold() in _TRUTH_WORDS for text in stated) else "text"
    if isinstance(spelled[0], int):
        plain = all(len(text) <= MOST_DIGITS and _WHOLE_NAME.fullmatch(text) for text in stated)
        return "whole" if plain else "text"
    same = all(
        texts[text] == number or (texts[text] is not None and math.isnan(number))
        for text, number in zip(stated, spelled, strict=True)
    )
    return "number" if same else "text"


def as_numbers(values: NDArray[Any], name: str, problems: Problems, *, gaps: bool = False) -> Floats:
    """Return a column of numbers, which may be infinite; NaN for a missing one if `gaps` allows it."""
    numbers, wrong = parse_numbers(values)
    if not report_decimal_commas(values, name, problems):
        problems.report_rows(wrong, f"the column {name!r} must hold numbers, got something else")
    if not gaps:
        report_missing(np.isnan(numbers) & ~wrong, name, problems)
    return numbers


def parse_numbers(values: NDArray[Any]) -> tuple[Floats, Mask]:
    """Return the number that each value is or spells, otherwise NaN; and a mask of values that are something else."""
    if values.dtype.kind in "iuf":
        return values.astype(np.float64, copy=False), np.zeros(len(values), np.bool_)
    parsed = [as_number(value) for value in values.tolist()]
    numbers = np.array([math.nan if number is None else number for number in parsed], dtype=np.float64)
    return numbers, np.array([number is None for number in parsed], np.bool_) & ~blank(values)


def report_decimal_commas(values: NDArray[Any], name: str, problems: Problems) -> bool:
    """Report numbers that are written with a decimal comma; return whether there are any."""
    commas = labels.decimal_commas(values)
    problems.report_rows(
        commas,
        f"the column {name!r} has a decimal comma",
        way_out="write numbers with a decimal point, such as 0.5",
    )
    return bool(commas.any())


def as_number(value: object) -> float | None:
    """Return the number that a value is or spells; None for anything else, including true and false.

    >>> as_number(" 1e3"), as_number("1_000"), as_number(True)
    (1000.0, None, None)
    """
    if isinstance(value, (bool, np.bool_)):
        return None
    # Python also reads digits of other scripts and digits in groups, which other readers of tables do not.
    if isinstance(value, str) and ("_" in value or not value.isascii() or len(value) > LONGEST_NUMBER):
        return None
    try:
        return float(value)  # type: ignore[arg-type]
    except OverflowError:
        return math.inf if value > 0 else -math.inf  # type: ignore[operator]
    except (TypeError, ValueError):
        return None


def as_flags(values: NDArray[Any], name: str, problems: Problems) -> Mask:
    """Return a column of booleans: true and false, yes and no, or 1 and 0."""
    numbers = _flags(values, FLAGS)
    problems.report_rows(
        np.isnan(numbers),
        f"the column {name!r} must hold true or false (yes and no, or 1 and 0), and does not",
        way_out="rename the column if it means something else",
    )
    return numbers == 1.0


def as_verdicts(values: NDArray[Any], name: str, problems: Problems) -> Floats:
    """Return a column of verdicts as 1 (right) and 0 (wrong), NaN for a missing one."""
    values = typed(values)  # "nan" among numbers is missing
    numbers = _flags(values, VERDICTS)
    problems.report_rows(
        np.isnan(numbers) & ~blank(values),
        f"the column {name!r} must contain right or wrong (true and false, yes and no, 1 and 0, or C and I), "
        "and does not",
        way_out="name the columns of truth and prediction instead if it means something else",
    )
    return numbers


def as_labels(values: NDArray[Any]) -> NDArray[Any]:
    """Return a column of labels: float64 if that is exact, otherwise unchanged labels, None for a missing one.

    >>> as_labels(np.array(["true", "false"], dtype=object)), as_labels(np.array([2**60 + 1])).tolist()
    (array([1., 0.]), [1152921504606846977])
    """
    column = typed(values)
    if column.dtype.kind == "O":
        column = column.copy()
        column[blank(column)] = None
        if any(isinstance(value, str) for value in column.tolist()):
            return column
    return labels.exact(column)


def as_names(values: NDArray[Any], name: str, problems: Problems) -> NDArray[Any]:
    """Return a column of names of clusters, items or groups: whole numbers if all of them are, otherwise text."""
    gaps = blank(values)
    report_missing(gaps, name, problems)
    if values.dtype.kind in "iu":
        return values
    if values.dtype.kind == "f":
        return _names_of_floats(np.where(gaps, 0.0, values), name, problems)
    texts = ["" if gap else text_of(value) for value, gap in zip(values.tolist(), gaps, strict=True)]
    for pattern in (_WHOLE_NAME, _WHOLE_FLOAT):
        if all(pattern.fullmatch(text) for text in texts):
            texts = [text.partition(".")[0] for text in texts]
            if all(len(text) <= MOST_DIGITS for text in texts):
                return np.array([int(text) for text in texts], dtype=np.int64)
    return _validate.objects(texts)


def _names_of_floats(values: Floats, name: str, problems: Problems) -> NDArray[Any]:
    beyond = np.abs(values) > EXACT
    problems.report_rows(
        beyond,
        f"the column {name!r} contains names as floating-point numbers beyond 2**53, which cannot be exact,",
        way_out="store them as text or as whole numbers",
    )
    if not beyond.any() and (values == np.floor(values)).all():
        return values.astype(np.int64)
    return _validate.objects([text_of(value) for value in values.tolist()])


def as_lists(values: NDArray[Any], name: str, problems: Problems, *, needed: Mask) -> list[list[str]]:
    """Return a column of lists of labels: lists as such, JSON arrays, or text divided by ``|``.

    A missing value is an empty list, and an error in rows of the mask `needed`.
    """
    report_missing(blank(values) & needed, name, problems)
    lists = []
    for row, value in enumerate(values.tolist()):
        parts = _parts(value, name, row, problems)
        if any(isinstance(part, (list, dict)) or part is None for part in parts):
            problems.report(
                f"the column {name!r} must hold lists of labels, got a nested one at {row_name(row)}"
            )
            parts = []
        lists.append([text_of(part) for part in parts])
    return lists


def blank(values: NDArray[Any]) -> Mask:
    """Return a mask of missing values and of text that is empty or consists of blanks."""
    if values.dtype.kind != "O":
        return missing(values)
    cells = values.tolist()
    if set(map(type, cells)) <= {str, type(None)}:
        blank_texts = {text for text in set(cells) if text is None or not text.strip()}
        return np.fromiter(map(blank_texts.__contains__, cells), np.bool_, len(cells))
    return np.array(
        [is_missing(value) or (isinstance(value, str) and not value.strip()) for value in cells],
        dtype=np.bool_,
    )


def report_missing(gaps: Mask, name: str, problems: Problems) -> None:
    """Report the rows of a mask: they need a value and have none."""
    problems.report_rows(gaps, f"the column {name!r} is empty or nan", way_out="every row needs a value")


def uncrossed(low: Floats, high: Floats, truth: Floats, how: str) -> tuple[Floats, Floats]:
    """Return bounds in order; quantile regressions may cross them.

    "sort" exchanges crossed bounds. "empty" replaces both by their middle, moved if it is the truth, so that the
    interval has no width and does not contain the truth.

    >>> uncrossed(np.array([3.0]), np.array([1.0]), np.array([2.0]), "sort")
    (array([1.]), array([3.]))
    >>> low, high = uncrossed(np.array([3.0]), np.array([1.0]), np.array([2.0]), "empty")
    >>> bool(low[0] == high[0] != 2.0)
    True
    """
    _validate.choice(how, "crossed", CROSSED)
    crossed = low > high
    if how == "sort":
        return np.where(crossed, high, low), np.where(crossed, low, high)
    middle = low / 2 + high / 2
    middle = np.where(middle == truth, np.nextafter(middle, np.inf), middle)
    return np.where(crossed, middle, low), np.where(crossed, middle, high)


def _flags(values: NDArray[Any], words: Mapping[str, float]) -> Floats:
    if values.dtype.kind in "biuf":
        numbers = values.astype(np.float64)
    else:
        codes = {value: _flag(value, words) for value in set(values.tolist())}
        numbers = np.array([codes[value] for value in values.tolist()], dtype=np.float64)
    return np.where(np.isin(numbers, (0.0, 1.0)), numbers, np.nan)


def _flag(value: object, words: Mapping[str, float]) -> float:
    if isinstance(value, (bool, np.bool_)):
        return float(value)
    word = words.get(value.strip().casefold()) if isinstance(value, str) else None
    number = as_number(value) if word is None else word
    return math.nan if number is None else number


def _parts(value: object, name: str, row: int, problems: Problems) -> list[Any]:
    if is_missing(value):
        return []
    if not isinstance(value, str):
        return list(value) if isinstance(value, (list, tuple, np.ndarray)) else [value]
    if not value.lstrip().startswith("["):
        return [part.strip() for part in value.split(LIST_SEPARATOR) if part.strip()]
    try:
        return list(json.loads(value))
    except (RecursionError, ValueError):
        problems.report(f"the column {name!r} contains a list that is not JSON at {row_name(row)}")
        return []


def text_of(value: object) -> str:
    """Return a name or label as text: 1.0 as 1, and booleans in lower case."""
    if isinstance(value, str):
        return value
    if isinstance(value, (bool, np.bool_)):
        return str(value).lower()
    if isinstance(value, (int, np.integer)):
        return _digits(int(value))
    if isinstance(value, (float, np.floating)):
        number = float(value)
        return str(int(number)) if number.is_integer() and abs(number) <= EXACT else repr(number)
    return str(value)


def _digits(number: int) -> str:
    try:
        return str(number)
    except ValueError:  # Python refuses to write numbers of thousands of digits
        return hex(number)
