"""Row types: the rows of a table grouped by all columns except confidence and cluster, as items."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from abstain.errors import AggregationError, DataError
from abstain.readers._columns import TableRows, items_from_rows
from abstain.readers._fields import column_provenance, scale_and_noun, unnamed_fields
from abstain.readers._row_checks import first_rows, problems_of
from abstain.readers._row_query import OTHER_FIELDS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from abstain._types import Mask
    from abstain.items import Items
    from abstain.readers._engine import Engine
    from abstain.readers._row_query import RowQuery

    Fetched = Mapping[str, NDArray[Any]]

# With more row types, the result would be as large as its source.
_MOST_TYPES = 1 << 20


@dataclass(frozen=True, eq=False)
class RowTypes:
    """The row types of a table.

    Attributes:
        engine: the engine that keeps them, as ``row_types``.
        numbers: their numbers there.
        counts: the number of rows of each.
        items: one item for each, with the weight of its rows.
        kept_signals: the columns of the signals of the rows that the engine keeps as ``rows``, with the number ``t`` of
            their type; None if rows are read again by every query.
    """

    engine: Engine
    numbers: NDArray[np.intp]
    counts: NDArray[np.int64]
    items: Items
    kept_signals: frozenset[str] | None = None


def group_row_types(query: RowQuery, *, weighted: bool) -> Fetched:
    """Keep the row types in the engine. Return their columns by short name, rows ``n`` and weight ``total``."""
    engine, keys = query.engine, ", ".join(query.type_keys.values())
    counts = f"count(*) AS n, {total_weight(weighted)} AS total"
    engine.keep(
        "row_types", f"SELECT {keys}, {counts} FROM ({query.select()}) AS b GROUP BY {keys}", number=True
    )
    count = query.number(engine.known("row_types"))
    if count > _MOST_TYPES:
        raise AggregationError(
            query.table.label,
            f"{count:,} different pairs of truth and prediction, with the columns of groups, are too many to "
            "aggregate",
            way_out="round them, or ",
        )
    if not count:
        raise DataError(f"{query.table.label}: the table has no rows")
    return engine.fetch(f"SELECT * FROM {engine.known('row_types')} ORDER BY number")


def find_row_types(some: Fetched, every: Fetched, keys: Sequence[str]) -> NDArray[np.intp]:
    """Return the positions of some row types among all of them."""

    def types(fetched: Fetched) -> Iterator[tuple[Any, ...]]:
        columns = ([None if _is_missing(value) else value for value in fetched[key].tolist()] for key in keys)
        return zip(*columns, strict=True)

    position = {row_type: number for number, row_type in enumerate(types(every))}
    return np.array([position[row_type] for row_type in types(some)], dtype=np.intp)


def _is_missing(value: object) -> bool:
    """Return whether a value is null, which is NaN in a column of numbers."""
    return value is None or (isinstance(value, float) and math.isnan(value))


def total_weight(weighted: bool) -> str:
    return "sum(b.w)" if weighted else "CAST(count(*) AS DOUBLE)"


def items_of_row_types(query: RowQuery, fetched: Fetched, origin: Mapping[str, Any]) -> Items:
    """Return one item for each row type, made by `_columns`."""
    table, arguments, engine = query.table, query.arguments, query.engine

    def rows_of_types(wrong: Mask) -> NDArray[np.intp]:
        engine.give("wrong", {"number": np.flatnonzero(wrong)})
        rows = query.join_types(query.select(numbers=True), engine.known("row_types"))
        return first_rows(
            query,
            f"SELECT b.r AS r FROM {rows} JOIN {engine.known('wrong')} ON row_types.number = wrong.number",
        )

    problems = problems_of(query, fetched["n"].astype(np.int64), rows_of_types)
    values = {name: fetched[key] for name, key in query.type_keys.items()}
    columns = {name: column for name, column in query.columns.items() if name not in OTHER_FIELDS}
    fields = {name: values[column] for name, column in columns.items()}
    metadata = {name: values[name] for name in arguments.metadata or ()}
    items = items_from_rows(
        TableRows(table, columns, fields, problems),
        replace(arguments, signals=(), metadata=tuple(metadata), positive=None),
        metadata,
    )
    items = replace(
        items,
        weight=fetched["total"].astype(np.float64),
        unnamed=unnamed_fields(query.columns, arguments),
        **scale_and_noun(table, query.columns, arguments),
    )
    return items.with_provenance(**column_provenance(table, query.columns, arguments), **origin)
