"""Checks of single rows in an engine, with the same errors and rows as for a table in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from abstain._row_names import rows_named_by
from abstain._validate import HEAVIEST
from abstain.errors import AggregationError
from abstain.labels import EXACT
from abstain.readers._columns import TableRows
from abstain.readers._engine import NAME_KEYS, is_blank
from abstain.readers._values import SHOWN_ROWS, Problems, report_missing

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from abstain._types import Mask
    from abstain.readers._row_query import RowQuery


def problems_of(
    query: RowQuery, counts: NDArray[np.int64] | int, first_rows: Callable[[Mask], NDArray[np.intp]]
) -> Problems:
    """Return an object that reports the problems of aggregated rows.

    `counts` is the number of rows that each aggregated row represents. `first_rows` finds the first of some of them.
    """
    return Problems(
        collect=query.problems.collect,
        label=query.table.label,
        found=query.problems.found,
        counts=np.atleast_1d(np.asarray(counts, np.int64)),
        first_rows=first_rows if query.engine.in_order else None,
    )


def first_rows(query: RowQuery, rows: str) -> NDArray[np.intp]:
    """Return the numbers ``r`` of the first rows that a query selects."""
    found = query.engine.fetch(f"SELECT r FROM ({rows}) AS found ORDER BY 1 LIMIT {SHOWN_ROWS}")
    return found["r"].astype(np.intp)


def check_rows(query: RowQuery) -> None:
    """Report duplicate or missing names, and signals that are not numbers; not for tables of very many rows."""
    if query.has_many_rows:
        return
    named = [field for field in ("cluster", "item") if field in query.columns]
    for name in named:
        check_all_named(query, name)
    if "item" in named:
        check_unique(query, named)
    confidence = query.columns.get("confidence")
    if confidence in query.signals:
        check_numbers(query, confidence)


def check_all_named(query: RowQuery, field: str) -> None:
    """Report rows without a name in the column of a field."""
    value, kind = query.column(field, "text")
    missing = f"{value} IS NULL"
    if kind == "text":
        missing += f" OR {is_blank(value, query.engine)}"
    elif kind == "number":
        missing += f" OR isnan({value})"
    count = query.number(f"{query.engine.source()} WHERE {missing}")
    if not count:
        return
    source = query.engine.source(numbers=True)
    numbered = f"SELECT {query.engine.row_number} AS r FROM {source} WHERE {missing}"
    problems = problems_of(query, count, lambda _: first_rows(query, numbered))
    with rows_named_by(query.table.paths):
        report_missing(np.ones(1, np.bool_), query.columns[field], problems)


def check_whole_names(query: RowQuery, field: str) -> None:
    """Raise if names are floating-point numbers that are not whole."""
    check_all_named(query, field)
    value = query.column(field).expression
    wrong = f"{value} <> floor({value}) OR abs({value}) > {float(EXACT)}"
    count = query.number(f"{query.engine.source()} WHERE {wrong}")
    if count:
        raise AggregationError(
            query.table.label,
            f"the column {query.columns[field]!r} contains names as floating-point numbers, which are not whole in "
            f"{count:,} rows",
            way_out="store them as text or as whole numbers, or ",
        )


def check_unique(query: RowQuery, fields: Sequence[str]) -> None:
    """Report duplicate items; `fields` identify an item: cluster and item, or only item."""
    keys = ", ".join(NAME_KEYS[field] for field in fields)
    counts = f"(SELECT count(*) AS n FROM ({query.select_named(fields)}) AS b GROUP BY {keys}) AS counts"
    count = query.number(counts, "CAST(coalesce(sum(n - 1), 0) AS BIGINT)")
    if count:
        problems = problems_of(query, count, lambda _: first_rows(query, select_repeated(query, fields)))
        with rows_named_by(query.table.paths):
            TableRows(query.table, query.columns, {}, problems).report_duplicates(np.ones(1, np.bool_))


def select_repeated(query: RowQuery, fields: Sequence[str]) -> str:
    """Return a query of the rows whose item appears in an earlier row, in the order of the table."""
    keys = ", ".join(NAME_KEYS[field] for field in fields)
    ranked = f"SELECT {keys}, r, row_number() OVER (PARTITION BY {keys} ORDER BY r) AS occurrence"
    rows = f"{ranked} FROM ({query.select_named(fields, numbers=True)}) AS b"
    return f"SELECT {keys}, r FROM ({rows}) AS ranked WHERE occurrence > 1"


def check_numbers(query: RowQuery, name: str) -> None:
    """Report a signal whose column contains text or booleans."""
    value, kind = query.table.column(name, "value")
    if kind in ("number", "whole"):
        return
    engine = query.engine
    wrong = f"{value} IS NOT NULL"
    if kind == "text":
        wrong += f" AND NOT {query.spells_number(value)}"
    found = engine.fetch(
        f"SELECT {engine.row_number} AS r, {value} AS v FROM {engine.source(numbers=True)} WHERE {wrong} ORDER BY 1"
    )
    rows = found["r"].astype(np.intp)
    problems = problems_of(query, np.ones(len(rows), np.int64), lambda wrong_rows: rows[wrong_rows])
    with rows_named_by(query.table.paths):
        TableRows(query.table, {}, {}, problems).signal(name, {name: found["v"].astype(object)})


def count_weights(query: RowQuery) -> tuple[int, int, int]:
    """Return the number of rows with an invalid weight, with a positive weight, and with the weight 0."""
    # In an engine, NaN is greater than any number.
    conditions = {"wrong": f"w < 0 OR w > {HEAVIEST}", "positive": "w > 0", "zero": "w = 0"}
    counts = ", ".join(
        f"count(CASE WHEN {condition} THEN 1 END) AS {key}" for key, condition in conditions.items()
    )
    numbers = query.engine.fetch(f"SELECT {counts} FROM ({query.select()}) AS b")
    return int(numbers["wrong"][0]), int(numbers["positive"][0]), int(numbers["zero"][0])


def report_weights(query: RowQuery, wrong: int) -> None:
    """Report invalid weights, given that some are wrong or none is positive."""
    if query.engine.in_order:
        weight = query.column("weight", "value").expression
        values = query.engine.fetch(f"SELECT {weight} AS w FROM {query.engine.source()}")["w"]
        problems = Problems(query.problems.collect, query.table.label, query.problems.found)
        with rows_named_by(query.table.paths):
            TableRows(query.table, query.columns, {"weight": values}, problems).weight()
    else:
        problem = f"is not in {wrong:,} rows" if wrong else "is zero in every row"
        problems_of(query, 1, lambda _: np.arange(0)).report(
            f"weight ({query.columns['weight']}): weight must be finite and not negative, and {problem}"
        )
