"""Summaries of an aggregated table: the values of a column, and the sizes of clusters."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from abstain.readers.aggregation import AggregatedTable

__all__ = ["ColumnProfile", "cluster_sizes", "column_profile"]


class ColumnProfile(NamedTuple):
    """One column of numbers among the answered rows.

    Attributes:
        distinct: the number of different values.
        tied: the number of rows that have the same value as another row.
        known: the number of rows with a value.
        missing: the number of rows without a value.
        low: the smallest value, NaN if there is none.
        high: the largest value, NaN if there is none.
    """

    distinct: int
    tied: int
    known: int
    missing: int
    low: float
    high: float


def column_profile(table: AggregatedTable, name: str) -> ColumnProfile:
    """Return the profile of a column of numbers among the answered rows."""
    engine = table.engine
    values = f"SELECT v, count(*) AS n FROM ({table.select_answered(name)}) AS answered_rows GROUP BY v"
    known = "v IS NOT NULL AND NOT isnan(v)"
    tied = f"CASE WHEN {known} AND n > 1 THEN n ELSE 0 END"
    found = engine.fetch(
        f"SELECT count(CASE WHEN {known} THEN 1 END) AS several, CAST(coalesce(sum({tied}), 0) AS BIGINT) AS tied, "
        f"CAST(coalesce(sum(CASE WHEN {known} THEN n END), 0) AS BIGINT) AS known, "
        f"CAST(coalesce(sum(n), 0) AS BIGINT) AS total, "
        f"min(CASE WHEN {known} THEN v END) AS low, max(CASE WHEN {known} THEN v END) AS high "
        f"FROM ({values}) AS each_value"
    )
    distinct, tied_rows, stated, total = (int(found[key][0]) for key in ("several", "tied", "known", "total"))
    low, high = (float(found[key][0]) if distinct else math.nan for key in ("low", "high"))
    return ColumnProfile(distinct, tied_rows, stated, total - stated, low, high)


def cluster_sizes(table: AggregatedTable) -> tuple[int, int, float, int]:
    """Return the number of clusters, and the numbers of rows of the smallest, the median and the largest."""
    engine = table.engine
    if "cluster" not in table.columns:
        return table.query.number(f"({table.query.select()}) AS b"), 1, 1.0, 1
    sizes = f"SELECT count(*) AS n FROM ({table.query.select_named(('cluster',))}) AS b GROUP BY c"
    found = engine.fetch(
        f"SELECT count(*) AS several, min(n) AS low, median(n) AS middle, max(n) AS high FROM ({sizes}) AS sizes"
    )
    return (
        int(found["several"][0]),
        int(found["low"][0]),
        float(found["middle"][0]),
        int(found["high"][0]),
    )
