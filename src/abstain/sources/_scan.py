"""Tables that are scanned and not loaded: rows that are alike become one row with a weight.

Point estimates of the risk-coverage metrics only need to know how often each truth, prediction and confidence
occur together, and how many items came to each outcome. DuckDB counts rows that are alike, within a fixed memory and on
disk beyond it; what comes back is as large as there are different kinds of rows, not as there are rows. What the values
mean is then decided as for every other table, in `_columns`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from abstain.errors import ArgumentError, DataError
from abstain.items import Items, Outcome, OutcomeCounts
from abstain.sources._columns import Rows, items_from_rows
from abstain.sources._roles import Roles, assign_columns, system_column, unnamed_roles
from abstain.sources._tables import LEAST, ROWS, WEIGHT
from abstain.sources._values import Problems

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from abstain.sources._tables import DuckTable

__all__ = ["ScannedTable", "scan_table"]

# Intervals and sets are judged row by row, which only a table in memory can be.
_LOADED_ONLY = ("low", "high", "set")
_NOT_COUNTED = ("cluster", "item", "weight")


@dataclass(frozen=True, eq=False, slots=True)
class ScannedTable:
    """The judged rows of a table, each kind of row once.

    Attributes:
        items: one answered item for each truth, prediction and confidence that occur together, and one
            abstained item for all that are; its weight says how many rows each stands for.
        counts: how many rows came to each outcome.
        clusters: how many clusters there are.
        judged_clusters: how many of them have a judged row.
    """

    items: Items
    counts: OutcomeCounts
    clusters: int
    judged_clusters: int


def scan_table(table: DuckTable, roles: Roles) -> ScannedTable:
    """Count the rows of a table; see `abstain.scan`."""
    columns = assign_columns(table, roles)
    for role in _LOADED_ONLY:
        if role in columns:
            raise ArgumentError(f"{table.label}: {role} is not scanned; read the table and evaluate it")
    if "confidence" not in columns:
        raise ArgumentError(
            f"{table.label}: which column is the confidence? Name it (confidence, --confidence)"
        )
    system = system_column(table, roles, columns)
    if system is not None and table.counted(f"count(DISTINCT {table.expression(system)})")[0] > 1:
        raise ArgumentError(
            f"{table.label}: the column {system!r} tells several systems apart, and a scan judges one; read the table "
            "and compare them"
        )
    counted = {role: name for role, name in columns.items() if role not in _NOT_COUNTED}
    names = list(dict.fromkeys(counted.values()))
    found = table.alike(names, columns.get("weight"))
    rows, weight = found[ROWS].astype(np.int64), found[WEIGHT]
    if not len(rows):
        raise DataError(f"{table.label}: the table has no rows")
    problems = Problems(collect=False, label=table.label, counts=rows)
    unweighed = ~np.isfinite(weight) | (found[LEAST] < 0.0)
    if unweighed.any():
        problems.report(
            f"the weight ({columns['weight']}) is missing, negative or not finite {problems.place(unweighed)}, or in "
            "some of those"
        )
    kinds = Rows(table, counted, {role: found[name] for role, name in counted.items()}, problems)
    confidence = counted["confidence"]
    items = items_from_rows(kinds, replace(roles, signals=(), metadata=()), {confidence: found[confidence]})
    counts = OutcomeCounts(
        *(int(total) for total in np.bincount(items.outcome, weights=rows, minlength=len(Outcome)))
    )
    clusters = _clusters(table, columns, names, items, counts)
    judged = _judged(items, weight, confidence)
    judged = replace(judged, unnamed=unnamed_roles(columns, roles)).with_provenance(columns=columns)
    return ScannedTable(judged, counts, *clusters)


def _judged(items: Items, weight: NDArray[np.float64], confidence: str) -> Items:
    """Return the answered kinds of rows and one row for all abstentions, with their weights."""
    if not weight.any():
        raise DataError("weight is zero throughout; at least one row must count")
    weight = weight.copy()
    declined = np.flatnonzero(items.abstained)
    kept = np.r_[np.flatnonzero(items.answered), declined[:1]]
    if len(declined):
        weight[declined[0]] = weight[declined].sum()
    judged = replace(items, weight=weight).take(kept)
    return replace(
        judged,
        cluster=np.zeros(len(judged), np.int8),
        item=np.zeros(len(judged), np.int8),
        signals={confidence: judged.signals[confidence]},
    )


def _clusters(
    table: DuckTable,
    columns: Mapping[str, str],
    names: Sequence[str],
    items: Items,
    counts: OutcomeCounts,
) -> tuple[int, int]:
    """Return how many clusters there are, and how many with a judged row; every row is one where none are named."""
    if "cluster" not in columns:
        return counts.total, counts.n
    (total,) = table.counted(f"count(DISTINCT {table.expression(columns['cluster'])})")
    judged = items.outcome <= Outcome.ABSTAINED
    if judged.all():
        return int(total), int(total)
    return int(total), table.distinct_within(columns["cluster"], names, np.flatnonzero(judged))
