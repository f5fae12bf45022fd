"""The DuckDB engine: it aggregates tables within a fixed amount of memory, and uses the disk beyond it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from abstain import _sql
from abstain.readers._duckdb_tables import unused_name
from abstain.readers._engine import Engine

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from abstain.readers._duckdb_tables import DuckTable


class DuckEngine(Engine):
    """The rows of a table that DuckDB reads."""

    name = "duckdb"
    text = "VARCHAR"
    row_number = _sql.identifier("number of the row")
    in_order = True

    def __init__(self, table: DuckTable) -> None:
        self._table = table
        # Tables that are compared use the same connection, so their names need a prefix.
        self._prefix = unused_name()
        # The kept results whose rows have a number: DuckDB numbers the rows of every table from 0.
        self._numbered: set[str] = set()

    def again(self) -> DuckEngine:
        """Return an engine for the same rows that keeps nothing yet."""
        return DuckEngine(self._table)

    def _own(self, name: str) -> str:
        return f"{self._prefix}_{name}"

    def source(self, *, numbers: bool = False) -> str:
        """Return the source of the rows, as ``source``; with `numbers` they have a number."""
        if not numbers:
            return f"{self._table.source} AS source"
        rows = f"SELECT *, row_number() OVER () - 1 AS {self.row_number} FROM {self._table.source}"
        return f"({rows}) AS source"

    def fetch(self, statement: str) -> dict[str, NDArray[Any]]:
        """Return the columns of a result."""
        return self._table.columns_of(statement)

    def _keep(self, name: str, statement: str, *, number: bool) -> None:
        self._table.create(self._own(name), statement)
        (self._numbered.add if number else self._numbered.discard)(name)

    def give(self, name: str, columns: Mapping[str, NDArray[Any]]) -> None:
        """Keep columns of whole numbers under a name."""
        self._table.fetch(lambda: self._table.database.give(self._own(name), columns))
        self._numbered.discard(name)

    def known(self, name: str) -> str:
        """Return the source of a kept result, by its name."""
        if name in self._numbered:
            return f"(SELECT *, rowid AS number FROM {self._own(name)}) AS {name}"
        return f"{self._own(name)} AS {name}"

    def matches(self, text: str, pattern: str) -> str:
        """Return the condition that all of a text matches a pattern."""
        return f"regexp_full_match({text}, {_sql.literal(pattern)})"

    def from_hexadecimal(self, digits: str) -> str:
        """Return the expression that reads hexadecimal digits as a whole number."""
        return f"CAST('0x' || {digits} AS BIGINT)"
