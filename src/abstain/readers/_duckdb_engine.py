"""DuckDB counts the rows of files: within a fixed memory, and on disk beyond it."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np

from abstain import _sql
from abstain.readers import _arrow
from abstain.readers._duckdb_tables import plain_array
from abstain.readers._engine import Engine
from abstain.resampling import CountedRows, RowsRefused, kernel

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from abstain.readers._duckdb_tables import DuckTable

_numbers = itertools.count()

_TYPES = {
    f"{sign}{name}": np.dtype(f"{'u' if sign else 'i'}{size}")
    for name, size in (("TINYINT", 1), ("SMALLINT", 2), ("INTEGER", 4), ("BIGINT", 8))
    for sign in ("", "U")
} | {"BOOLEAN": np.dtype(np.bool_)}
# Clusters further apart than this have too many bits; and what the kernel calls a whole number.
_MOST_APART, _LEAST = 1 << 27, -(1 << 62)


def _narrowest(own: str, ends: tuple[int, int]) -> str:
    """Return the smallest type that holds the whole numbers between two."""
    for name in ("UTINYINT", "TINYINT", "USMALLINT", "SMALLINT", "UINTEGER", "INTEGER"):
        limits = np.iinfo(_TYPES[name])
        if limits.min <= ends[0] <= ends[1] <= limits.max:
            return name
    return own


class DuckEngine(Engine):
    """The rows of a table that DuckDB reads from files."""

    name = "duckdb"
    text = "VARCHAR"
    row_number = _sql.identifier("number of the row")
    in_order = True

    def __init__(self, table: DuckTable) -> None:
        self._table = table
        # Tables that are compared share a connection, and each has names of its own there.
        self._prefix = f"abstain_{next(_numbers)}"
        # What was kept with numbers: DuckDB numbers the rows of its own tables from 0 without being asked.
        self._numbered: set[str] = set()
        self._given: set[str] = set()
        table.relation.create_view(self._own("source"))

    def again(self) -> DuckEngine:
        """Return the same rows with nothing kept or given yet."""
        return DuckEngine(self._table)

    def _own(self, name: str) -> str:
        return f"{self._prefix}_{name}"

    def source(self, *, numbers: bool = False) -> str:
        """Return what to select the rows from; with `numbers` they have a number."""
        if not numbers:
            return f"{self._own('source')} AS source"
        rows = f"SELECT *, row_number() OVER () - 1 AS {self.row_number} FROM {self._own('source')}"
        return f"({rows}) AS source"

    def fetch(self, statement: str) -> dict[str, NDArray[Any]]:
        """Return the columns that a statement gives."""
        found = self._table.fetch(lambda: self._table.query(statement).fetchnumpy())
        return {name: plain_array(values) for name, values in found.items()}

    def keep(self, name: str, statement: str, *, number: bool = False) -> None:
        """Keep what a statement gives under a name; with `number` its rows get a column ``number``, from 0."""
        if name in self._given:
            self._table.run(f"DROP VIEW IF EXISTS {self._own(name)}")
            self._given.remove(name)
        self._table.run(f"CREATE OR REPLACE TEMP TABLE {self._own(name)} AS {statement}")
        (self._numbered.add if number else self._numbered.discard)(name)

    def give(self, name: str, columns: Mapping[str, NDArray[Any]]) -> None:
        """Make numbers of ours known under a name."""
        if name not in self._given:
            self._table.run(f"DROP TABLE IF EXISTS {self._own(name)}")
        self._table.give(self._own(name), columns)
        self._given.add(name)
        self._numbered.discard(name)

    def known(self, name: str) -> str:
        """Return what to select from to get what was kept or given under a name, by that name."""
        if name in self._numbered:
            return f"(SELECT *, rowid AS number FROM {self._own(name)}) AS {name}"
        return f"{self._own(name)} AS {name}"

    def matches(self, text: str, pattern: str) -> str:
        """Return what is true where a whole text fits a pattern."""
        return f"regexp_full_match({text}, {_sql.literal(pattern)})"

    def count_rows(
        self, select: str, keys: Sequence[str], signal: str | None, *, rounded: bool
    ) -> CountedRows | None:
        """Count rows in one pass, by the compiled kernel; None where columns are not numbers, or have gaps."""
        library, relation = kernel().library, self._table.query(select)
        types = dict(zip(relation.columns, map(str, relation.types), strict=True))
        whole = ("c", *keys)
        if library is None or not hasattr(relation, "__arrow_c_stream__"):
            return None
        if any(types[key] not in _TYPES for key in whole) or types.get(signal or "", "DOUBLE") != "DOUBLE":
            return None
        plain = [key for key in whole if types[key] != "BOOLEAN"]
        total, ends = self._ends(select, plain)
        ends |= {key: (0, 1) for key in keys if key not in ends}
        low, high = ends["c"]
        if not (_LEAST < low <= high < -_LEAST and high - low <= _MOST_APART):
            return None
        # Fewer bytes are handed over sooner than numbers are made smaller.
        read = [_narrowest(types[key], ends[key]) for key in whole]
        own = [_TYPES[types[key]] for key in keys]
        parts = [f"CAST({key} AS {name})" for key, name in zip(whole, read, strict=True)]
        sizes = [_TYPES[name].itemsize for name in read]
        if signal is not None:
            parts.append(signal)
            sizes.append(8)

        done = 0

        def count() -> CountedRows | None:
            nonlocal done
            columns = [_TYPES[name] for name in read[1:]]
            stream = self._table.query(f"SELECT {', '.join(parts)} FROM ({select}) AS r")
            try:
                rows = CountedRows(library, _TYPES[read[0]], (low, high), columns, own, rounded=rounded)
                for length, places in _arrow.pieces(stream.__arrow_c_stream__(), tuple(sizes)):
                    confidence = None if signal is None else places.pop()
                    rows.add(length, places[0], confidence, places[1:])
                    done += length
            except (_arrow.Gaps, RowsRefused):
                return None
            return rows

        # A stream does not say how far it is.
        found: CountedRows | None = self._table.fetch(count, lambda: 100.0 * done / max(total, 1))
        return found

    def _ends(self, select: str, keys: Sequence[str]) -> tuple[int, dict[str, tuple[int, int]]]:
        """Return how many rows there are, and the ends of columns of whole numbers; 1 and 0 where there is none."""
        asked = "".join(
            f", coalesce(min({key}), 1) AS low_{key}, coalesce(max({key}), 0) AS high_{key}" for key in keys
        )
        found = self.fetch(f"SELECT count(*) AS n{asked} FROM ({select}) AS r")
        ends = {key: (int(found[f"low_{key}"][0]), int(found[f"high_{key}"][0])) for key in keys}
        return int(found["n"][0]), ends

    def present(self, number: str, low: int, high: int) -> str:
        """Return what has a bit for every whole number from low to high, 1 where it occurs."""
        return f"CAST(bitstring_agg(CAST({number} AS BIGINT), {low}, {high}) AS BLOB)"

    def from_hexadecimal(self, digits: str) -> str:
        """Return what reads hexadecimal digits as a whole number."""
        return f"CAST('0x' || {digits} AS BIGINT)"
