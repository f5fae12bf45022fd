"""Cells: the rows of a table grouped by unit, code and confidence."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from abstain.errors import AggregationError
from abstain.items import FirstRow, Outcome
from abstain.readers._engine import NAME_KEYS, rounded
from abstain.readers._row_checks import first_rows
from abstain.readers._row_types import total_weight

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from abstain._types import Mask
    from abstain.readers.aggregation import AggregatedTable

# With more cells, the result would be as large as its source.
_MOST_CELLS = 1 << 25


@dataclass(frozen=True, eq=False)
class RowCells:
    """The rows of a table, grouped by unit, code and signals.

    The engine keeps the code of each row type as ``codes``, and the cells as ``cells``.

    Attributes:
        table: the table.
        names: the columns of the signals.
        unit: the expression that selects the unit of a row.
        kept: identifies the cells in the engine, which keeps only those of the last call.
        fetched: the columns of the cells: unit ``u``, ``code``, signals, number of rows ``n``, weight ``total``, and in
            engines with an order of rows their ``number``.
    """

    table: AggregatedTable
    names: Sequence[str]
    unit: str
    kept: object
    fetched: Mapping[str, NDArray[Any]]

    @classmethod
    def group(cls, table: AggregatedTable, names: Sequence[str], unit: str) -> RowCells:
        """Group the rows of a table."""
        query, engine = table.query, table.engine
        keys = _keys(table, names)
        parts = [f"{value} AS {key}" for key, value in keys.items()]
        parts += ["count(*) AS n", f"{total_weight(table.weighted)} AS total"]
        parts += [
            f"sum(b.{key}) AS sum_{key}, min(b.{key}) AS low_{key}, max(b.{key}) AS high_{key}"
            for key in (query.signal_keys[name] for name in names if query.is_continuous(name))
        ]
        rows = _select_coded(table, table.select(names), names, unit, ["b.w AS w"] * table.weighted)
        positions = ", ".join(str(number + 1) for number in range(len(keys)))
        statement = f"SELECT {', '.join(parts)} FROM ({rows}) AS b GROUP BY {positions}"
        kept = engine.keep("cells", statement, number=engine.in_order)
        count = query.number(engine.known("cells"))
        if count > _MOST_CELLS:
            raise AggregationError(
                query.table.label,
                f"{count:,} different rows are too many to aggregate",
                way_out="request one confidence at a time, or ",
            )
        return cls(table, names, unit, kept, engine.fetch(f"SELECT * FROM {engine.known('cells')}"))

    def without_values(self) -> RowCells:
        """Return the cells with only the columns that finding their rows needs."""
        return replace(
            self, fetched={key: self.fetched[key] for key in ("n", "number") if key in self.fetched}
        )

    def first_rows(self, wrong: Mask) -> NDArray[np.intp]:
        """Return the numbers of the first rows that some cells represent."""
        return first_rows(self.table.query, self._select_rows(self.fetched["number"][wrong]))

    def first_row(self, numbers: NDArray[Any]) -> FirstRow | None:
        """Return the first row that some cells represent, by their numbers; None if it is unknown."""
        engine = self.table.engine
        if not engine.in_order or not engine.keeps("cells", self.kept):
            return None
        rows = f"({self._select_rows(numbers)}) AS rows_of_cells"
        first = engine.fetch(f"SELECT r, number FROM {rows} ORDER BY r LIMIT 1")
        row, cell = int(first["r"][0]), int(first["number"][0])
        count = int(self.fetched["n"][np.isin(self.fetched["number"], numbers)].sum())
        return FirstRow(row, cell, self._names_of_row(row), count)

    def _select_rows(self, numbers: NDArray[Any]) -> str:
        """Select the rows ``r`` of some cells, with the number of each row's cell."""
        engine, keys = self.table.engine, _keys(self.table, self.names)
        engine.give("wrong", {"number": numbers})
        coded = _select_coded(
            self.table, self.table.select(numbers=True), self.names, self.unit, ["b.r AS r"]
        )
        parts = ", ".join(f"{value} AS {key}" for key, value in keys.items())
        same = " AND ".join(f"b.{key} IS NOT DISTINCT FROM cells.{key}" for key in keys)
        return (
            f"SELECT b.r AS r, cells.number AS number FROM (SELECT {parts}, b.r AS r FROM ({coded}) AS b) AS b "
            f"JOIN {engine.known('cells')} ON {same} JOIN {engine.known('wrong')} ON cells.number = wrong.number"
        )

    def _names_of_row(self, row: int) -> dict[str, object]:
        """Return the names of a row's cluster and item, as far as the table has them."""
        query = self.table.query
        fields = [field for field in ("cluster", "item") if field in query.columns]
        if not fields:
            return {}
        keys = ", ".join(NAME_KEYS[field] for field in fields)
        rows = query.select_named(fields, numbers=True)
        names = query.engine.fetch(f"SELECT {keys} FROM ({rows}) AS b WHERE r = {row}")
        return {field: names[NAME_KEYS[field]][0] for field in fields}


def _keys(table: AggregatedTable, names: Sequence[str]) -> dict[str, str]:
    """Return the short names of the keys of cells, and the expression that selects each from coded rows."""
    keys = {"u": "b.u", "code": "b.code"}
    for name in names:
        value = f"b.{table.query.signal_keys[name]}"
        keys[table.query.signal_keys[name]] = rounded(value) if table.query.is_continuous(name) else value
    return keys


def _select_coded(
    table: AggregatedTable, rows: str, names: Sequence[str], unit: str, further: Sequence[str]
) -> str:
    """Return a query of rows with unit, code and signals; the signals only of rows that are ranked."""
    query = table.query
    all_answered = bool((table.row_types.outcome == Outcome.ANSWERED).all())
    parts = [f"{unit} AS u", "codes.code AS code", *further]
    for name in names:
        key = query.signal_keys[name]
        value = f"b.{key}" if all_answered else f"CASE WHEN codes.ranked = 1 THEN b.{key} END"
        if query.is_continuous(name):
            value = query.as_number(value, query.table.column(name, "value").kind)
        parts.append(f"{value} AS {key}")
    return f"SELECT {', '.join(parts)} FROM {table.join(rows, 'codes')}"
