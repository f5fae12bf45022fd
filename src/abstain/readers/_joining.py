"""Joining predictions in one table with truths in another by a key.

Every row of the first table gets the columns of the row of the second table with the same key. Keys are text or
whole numbers and are compared exactly. A row without a partner is an error, because the most likely reason is a
misspelt key. Rows of the second table without a partner are counted in the provenance.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from abstain._row_names import rows_named_by
from abstain.errors import ArgumentError, DataError
from abstain.readers._tables import SourceTable
from abstain.readers._values import Problems

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from abstain._types import Indices, Mask
    from abstain.readers._tables import Form


class JoinedTable(SourceTable):
    """Two tables as one: the rows of the first, each with the columns of its partner in the second.

    Attributes:
        origin: the provenance of the second table.
    """

    def __init__(self, main: SourceTable, other: SourceTable, key: str) -> None:
        for table in (main, other):
            table.check_columns([key])
        added = {name: kind for name, kind in other.kinds.items() if name != key}
        in_both = [name for name in added if name in main.kinds]
        if in_both:
            raise ArgumentError(
                f"{main.label}: the column {in_both[0]!r} is also in {other.label}; drop or rename it in one of them"
            )
        self.label, self.paths, self.declared = main.label, main.paths, main.declared
        self._kinds = {**main.kinds, **added}
        self._main, self._other = main, other
        self._partner = _partner_rows(main, other, key)
        unused = other.rows - len(np.unique(self._partner))
        self.origin = {"key": key, "path": other.label, "sha256": other.sha256(), "unused": unused}

    def marked(self, name: str, marks: Mask, words: tuple[str, str], part: Path | None) -> Any:
        """Return or write the first table with one more column."""
        return self._main.marked(name, marks, words, part)

    @property
    def rows(self) -> int:
        """The number of rows."""
        return self._main.rows

    def spells_numbers(self, name: str) -> bool:
        """Return whether a column contains, or its text spells, booleans, or numbers that are not all whole."""
        return (self._main if name in self._main.kinds else self._other).spells_numbers(name)

    def load(self, names: Sequence[str], form: Form = "text") -> dict[str, NDArray[Any]]:
        """Return columns as arrays, with as many rows as the first table has."""
        loaded = self._main.load([name for name in names if name in self._main.kinds], form)
        added = self._other.load([name for name in names if name not in self._main.kinds], form)
        return loaded | {name: values[self._partner] for name, values in added.items()}


def _partner_rows(main: SourceTable, other: SourceTable, key: str) -> Indices:
    """Return the row of the second table for every row of the first."""
    keys, other_keys = (table.labels(key).astype(str).tolist() for table in (main, other))
    last_row = {name: row for row, name in enumerate(other_keys)}
    if len(last_row) < len(other_keys):
        repeated = np.array([last_row[name] != row for row, name in enumerate(other_keys)], np.bool_)
        raise DataError(
            f"{other.label}: the key {key!r} must be unique, but the one {_locate(other, repeated)} "
            "appears again further down"
        )
    partner = np.array([last_row.get(name, -1) for name in keys], dtype=np.intp)
    if (partner < 0).any():
        raise DataError(
            f"{main.label}: the key ({key}) {_locate(main, partner < 0)} is not in {other.label}; every row "
            "needs a partner there"
        )
    return partner


def _locate(table: SourceTable, rows: Mask) -> str:
    with rows_named_by(table.paths):
        return Problems().place(rows)
