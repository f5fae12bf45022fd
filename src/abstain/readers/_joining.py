"""Joining: predictions in one table and truths in another, put together by a key.

Every row of the first table gets the columns of the one row of the second that has the same key. Keys are names, and
so exact: text or whole numbers. A row that finds no partner is an error, because a truth that is missing for want of a
key is more often a misspelt key; keys that nobody asks for are counted and said.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from abstain._row_names import rows_named_by
from abstain.errors import ArgumentError, DataError
from abstain.readers._tables import SourceTable
from abstain.readers._values import Problems

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray


class JoinedTable(SourceTable):
    """Two tables as one: the rows of the first, each with the columns of its partner in the second."""

    def __init__(self, main: SourceTable, other: SourceTable, key: str) -> None:
        self.label = main.label
        self.paths = main.paths
        self.declared = main.declared
        self._main, self._other, self._key = main, other, key
        for table in (main, other):
            table.check_columns([key])
        twice = [name for name in other.kinds if name != key and name in main.kinds]
        if twice:
            raise ArgumentError(
                f"{main.label}: the column {twice[0]!r} stands in {other.label}, too; drop or rename it in one of them"
            )

    def marked(self, name: str, marks: NDArray[np.bool_], words: tuple[str, str], part: Path | None) -> Any:
        """Return the first table with one more column; what was joined stays where it is."""
        return self._main.marked(name, marks, words, part)

    @cached_property
    def _partner(self) -> NDArray[np.intp]:
        """The row of the second table for every row of the first."""
        mine, theirs = (table.labels(self._key).astype(str).tolist() for table in (self._main, self._other))
        places = {name: place for place, name in enumerate(theirs)}
        if len(places) < len(theirs):
            again = np.array([places[name] != place for place, name in enumerate(theirs)], np.bool_)
            with rows_named_by(self._other.paths):
                where = Problems().place(again)
            raise DataError(
                f"{self._other.label}: the key {self._key!r} must be unique, and what stands {where} "
                "stands again further down"
            )
        found = np.array([places.get(name, -1) for name in mine], dtype=np.intp)
        if (found < 0).any():
            with rows_named_by(self.paths):
                where = Problems().place(found < 0)
            raise DataError(
                f"{self.label}: {self._other.label} has no row with the key ({self._key}) of what stands {where}; "
                "every row needs one"
            )
        return found

    @property
    def origin(self) -> dict[str, Any]:
        """What the provenance of the items says of the second table."""
        unused = self._other.rows - len(np.unique(self._partner))
        return {"key": self._key, "path": self._other.label, "sha256": self._other.sha256(), "unused": unused}

    @property
    def kinds(self) -> Mapping[str, str]:
        """The kind of each column, those of the first table first."""
        return {
            **self._main.kinds,
            **{name: kind for name, kind in self._other.kinds.items() if name != self._key},
        }

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return self._main.rows

    def spells_numbers(self, name: str) -> bool:
        """True where a column holds numbers that are not whole."""
        return (self._main if name in self._main.kinds else self._other).spells_numbers(name)

    def load(self, names: Sequence[str]) -> dict[str, NDArray[Any]]:
        """Return columns as arrays, as many rows as the first table has."""
        found = self._main.load([name for name in names if name in self._main.kinds])
        theirs = self._other.load([name for name in names if name not in self._main.kinds])
        return found | {name: values[self._partner] for name, values in theirs.items()}

    def sha256(self) -> str | None:
        """Return the SHA-256 of the first table's files; that of the second stands in `origin`."""
        return self._main.sha256()
