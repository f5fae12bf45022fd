"""Tables: columns by name, loaded when they are needed.

A `SourceTable` lists its columns and their kinds, loads some of them as arrays, and returns single ones as numbers,
flags, labels or lists. A column that is incomplete or has other values is an error that names the file, the column and
the row. `_file_tables` opens files, `_frame_tables` data frames. `_values` interprets text, and `_fields`
and `_columns` convert columns to items.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from abstain import _validate, labels
from abstain.errors import ArgumentError, DataError
from abstain.readers import _values
from abstain.readers._values import Problems

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

# A column of text is loaded as the text itself, as the numbers or booleans that all of it spells, or as names: whole
# numbers if all of it spells those, otherwise text.
Form = Literal["text", "value", "name"]

_MOST_CELLS = 1 << 25


class SourceTable(ABC):
    """A source of columns; `abstain.readers.open_table` returns one.

    Attributes:
        label: its name in messages.
        paths: its files; none for a frame.
        declared: properties of the items that the source declares: the scale, the word for a cluster, the classes of
            sets.
    """

    label: str
    paths: tuple[Path, ...] = ()
    declared: Mapping[str, Any]

    _kinds: Mapping[str, str]

    @property
    def kinds(self) -> Mapping[str, str]:
        """The kind of each column: "whole", "number", "boolean", "text", "list", "other", or "unknown" until loaded."""
        return self._kinds

    @property
    @abstractmethod
    def rows(self) -> int:
        """The number of rows."""

    @abstractmethod
    def load(self, names: Sequence[str], form: Form = "text") -> dict[str, NDArray[Any]]:
        """Return columns as arrays: numbers, NaN for null, or objects, None for null.

        Lists are objects, each a list or a JSON array. A source may return text in any form, and `_values` interprets
        it. If a source interprets text, the result is that of `_values`.
        """

    def head(self, names: Sequence[str]) -> dict[str, NDArray[Any]]:
        """Return columns as `load` does; of a file, only the first rows."""
        return self.load(names)

    def prepare(self, names: Iterable[str]) -> None:  # noqa: B027  (most sources need nothing)
        """Read all of these columns at once, if the source is slow to read, before they are loaded one by one."""

    @property
    def headed(self) -> bool:
        """False if the names of the columns may be a record, which must not be printed."""
        return True

    @property
    def usual(self) -> bool:
        """False if no column has a usual name, and the source may have no names at all."""
        return True

    @property
    def listed_columns(self) -> str:
        """The names of the columns for a message."""
        return _validate.listed_columns(self.kinds, headed=self.headed)

    def check_columns(self, names: Iterable[str], *, lists: bool = False) -> None:
        """Raise unless all named columns exist and are plain, or also lists if `lists`; suggest the nearest name."""
        for name in names:
            if name not in self.kinds:
                hint = _validate.suggestion(name, self.kinds)
                raise ArgumentError(f"{self.label}: has no column {name!r}{hint}; {self.listed_columns}")
            if self.kinds[name] == "other" or (self.kinds[name] == "list" and not lists):
                raise DataError(
                    f"{self.label}: the column {name!r} is nested or binary; a plain column is required"
                )

    def repeats(self, name: str) -> bool:
        """Return whether a column has at least two different values, and one of them more than once."""
        values = self.load([name])[name]
        stated = values[~labels.missing(values)].tolist()
        return 1 < len(set(stated)) < len(stated)

    def numbers(self, name: str, *, gaps: bool = False) -> NDArray[np.float64]:
        """Return a column of numbers, which may be infinite; NaN for a missing one if `gaps` allows it."""
        return _values.as_numbers(self._plain(name, "numbers", "value"), name, self._problems, gaps=gaps)

    def bounds(
        self, low: str, high: str, truth: NDArray[np.float64], crossed: str | None = None
    ) -> NDArray[np.float64]:
        """Return the bounds of intervals, (rows, 2); `crossed` is how to order crossed ones (see `read`)."""
        pair = self.numbers(low), self.numbers(high)
        return np.column_stack(pair if crossed is None else _values.uncrossed(*pair, truth, crossed))

    def flags(self, name: str) -> NDArray[np.bool_]:
        """Return a column of booleans: true and false, or 1 and 0."""
        return _values.as_flags(self._plain(name, "true or false", "value"), name, self._problems)

    def labels(self, name: str) -> NDArray[Any]:
        """Return a column of labels: whole numbers if all of them are, otherwise text."""
        return _values.as_names(self._plain(name, "single labels", "name"), name, self._problems)

    def texts(self, name: str) -> list[str | None]:
        """Return a column as text, None for a missing value."""
        values = self._plain(name, "text", "text")
        gaps = _values.blank(values)
        return [
            None if gap else _values.text_of(value) for value, gap in zip(values.tolist(), gaps, strict=True)
        ]

    def spells_numbers(self, name: str) -> bool:
        """Return whether a column contains, or its text spells, booleans, or numbers that are not all whole."""
        kind = self.kinds[name]
        if kind == "text":
            kind = _values.spelling({text: _values.as_number(text) for text in set(self.texts(name))})
        return kind in ("number", "boolean")

    def loadable(self, names: Sequence[str]) -> Sequence[str]:
        """Return the names of columns that the caller did not name; raise if they are too many to load."""
        if len(names) > 100 and len(names) * self.rows > self._most_cells:
            raise ArgumentError(
                f"{self.label}: {self.rows:,} rows of {len(names):,} columns are too many to load; name the columns "
                "that are needed (signals=, metadata=)"
            )
        return names

    def lists(self, name: str) -> list[list[str]]:
        """Return a column of lists of labels: lists as such, JSON arrays, or text divided by ``|``."""
        self.check_columns([name], lists=True)
        # In a table of text, an empty field is an empty list.
        values = self._loaded(name, "text")
        needed = np.full(len(values), self.kinds[name] == "list")
        return _values.as_lists(values, name, self._problems, needed=needed)

    def marked_for_spreadsheets(
        self,
        name: str,  # noqa: ARG002
        marks: NDArray[np.bool_],  # noqa: ARG002
        words: tuple[str, str],  # noqa: ARG002
        part: Path | None,  # noqa: ARG002
    ) -> Any:
        """Write the rows with one more column as CSV in which no cell is a formula; an error for other tables."""
        raise ArgumentError(f"{self.label}: safe_csv (--safe-csv) is for CSV files")

    @abstractmethod
    def marked(self, name: str, marks: NDArray[np.bool_], words: tuple[str, str], part: Path | None) -> Any:
        """Add a column: `words[1]` in marked rows, otherwise `words[0]`. Return a frame, or write a file to `part`."""

    def sha256(self) -> str | None:
        """Return the SHA-256 of the files in hexadecimal, one after the other; None for a frame."""
        return None

    @property
    def _most_cells(self) -> int:
        """The most cells that are loaded if the caller does not name the columns."""
        return _MOST_CELLS

    @property
    def _problems(self) -> Problems:
        return Problems(collect=False, label=self.label)

    def _plain(self, name: str, content: str, form: Form) -> NDArray[Any]:
        if self.kinds.get(name) in ("list", "other"):
            raise DataError(
                f"{self.label}: the column {name!r} must hold {content}, but it is nested or binary"
            )
        self.check_columns([name])
        return self._loaded(name, form)

    def _loaded(self, name: str, form: Form) -> NDArray[Any]:
        values = self.load([name], form)[name]
        if not len(values):
            raise DataError(f"{self.label}: the table has no rows")
        return values


class QueriedColumn(NamedTuple):
    """The expression that selects a column, and its kind. Text may spell anything."""

    expression: str
    kind: str


class QueriedTable(SourceTable):
    """A table that is queried in SQL.

    Attributes:
        is_text: True if every column is text, which each query converts.
    """

    is_text = False

    @abstractmethod
    def column(self, name: str, form: Form) -> QueriedColumn:
        """Return the expression that selects a column in a form; see `load`."""
