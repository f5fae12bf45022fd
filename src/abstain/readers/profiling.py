"""What a table holds that is counted where it is: its columns of numbers, its clusters, in a few queries each."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from abstain.readers._engine import NUMBER, is_blank

if TYPE_CHECKING:
    from abstain.readers.counting import AggregatedTable

__all__ = ["ColumnProfile", "cluster_sizes", "column_profile", "number_columns"]


class ColumnProfile(NamedTuple):
    """One column of numbers among the answered rows.

    Attributes:
        distinct: how many different values it has.
        tied: how many rows share their value with another.
        known: how many have a value.
        missing: how many have none.
        low: the smallest value, NaN when there is none.
        high: the largest value, NaN when there is none.
    """

    distinct: int
    tied: int
    known: int
    missing: int
    low: float
    high: float


def number_columns(counting: AggregatedTable) -> tuple[str, ...]:
    """Return the columns of signals that hold numbers; of a file that knows no types, those whose text spells some.

    That of the confidence is one of them, whatever it holds.
    """
    engine, table = counting.engine, counting.table
    confidence = counting.columns.get("confidence")
    kinds = {name: table.column(name, "value").kind for name in counting.signals if name in table.kinds}
    names = [name for name, kind in kinds.items() if kind != "boolean" or name == confidence]
    texts = [name for name in names if kinds[name] == "text" and name != confidence]
    if not texts:
        return tuple(names)
    asked = []
    for place, name in enumerate(texts):
        value = table.column(name, "text").expression
        said = f"{value} IS NOT NULL AND NOT {is_blank(value, engine)}"
        asked.append(f"count(CASE WHEN {said} THEN 1 END) AS n{place}")
        asked.append(
            f"count(CASE WHEN {said} AND NOT {engine.matches(value, NUMBER)} THEN 1 END) AS w{place}"
        )
    found = engine.fetch(f"SELECT {', '.join(asked)} FROM {engine.source()}")
    spelled = {
        name
        for place, name in enumerate(texts)
        if int(found[f"n{place}"][0]) and not int(found[f"w{place}"][0])
    }
    return tuple(name for name in names if name not in texts or name in spelled)


def column_profile(counting: AggregatedTable, name: str) -> ColumnProfile:
    """Return what a column of numbers holds among the answered rows."""
    engine = counting.engine
    values = f"SELECT v, count(*) AS n FROM ({counting.answered_values(name)}) AS answered_rows GROUP BY v"
    known = "v IS NOT NULL AND NOT isnan(v)"
    tied = f"CASE WHEN {known} AND n > 1 THEN n ELSE 0 END"
    found = engine.fetch(
        f"SELECT count(CASE WHEN {known} THEN 1 END) AS several, CAST(coalesce(sum({tied}), 0) AS BIGINT) AS tied, "
        f"CAST(coalesce(sum(CASE WHEN {known} THEN n END), 0) AS BIGINT) AS known, "
        f"CAST(coalesce(sum(n), 0) AS BIGINT) AS total, "
        f"min(CASE WHEN {known} THEN v END) AS low, max(CASE WHEN {known} THEN v END) AS high "
        f"FROM ({values}) AS each_value"
    )
    several, tied_rows, stated, total = (int(found[key][0]) for key in ("several", "tied", "known", "total"))
    low, high = (float(found[key][0]) if several else math.nan for key in ("low", "high"))
    return ColumnProfile(several, tied_rows, stated, total - stated, low, high)


def cluster_sizes(counting: AggregatedTable) -> tuple[int, int, float, int]:
    """Return how many clusters there are, and how many rows the smallest, the median and the largest of them have."""
    engine = counting.engine
    if "cluster" not in counting.columns:
        rows = int(engine.fetch(f"SELECT count(*) AS n FROM {engine.source()}")["n"][0])
        return rows, 1, 1.0, 1
    sizes = f"SELECT count(*) AS n FROM ({counting.by_name(('cluster',))}) AS b GROUP BY c"
    found = engine.fetch(
        f"SELECT count(*) AS several, min(n) AS low, median(n) AS middle, max(n) AS high FROM ({sizes}) AS sizes"
    )
    return (
        int(found["several"][0]),
        int(found["low"][0]),
        float(found["middle"][0]),
        int(found["high"][0]),
    )
