"""Counting the clusters that have an evaluated row, in an engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from abstain._units import GROUPS
from abstain.items import Outcome
from abstain.readers import _values

if TYPE_CHECKING:
    from abstain._types import Floats, Indices
    from abstain.readers.aggregation import AggregatedTable


def count_members(table: AggregatedTable, part: Indices | None = None) -> Floats:
    """Return the number of clusters of each group that have an evaluated row, by part of the row types.

    `part` is the number of the part of each row type. Default: one part.
    """
    evaluated = table.row_types.outcome <= Outcome.ABSTAINED
    if part is None and evaluated.all():
        rows, part_key = f"({table.select(typed=False)}) AS b", "0"
    else:
        parts = np.zeros(len(evaluated), np.intp) if part is None else part
        table.give_by_type("parts", evaluated, part=parts)
        rows, part_key = table.join(table.select(), "parts"), "parts.part"
    if part is not None and table.weighted:  # rows of weight 0 belong to no group of items
        rows += " WHERE b.w > 0"
    count = 1 if part is None else int(part.max(initial=-1)) + 1
    each = (
        f"SELECT {part_key} AS part, {'b.c' if table.has_clusters or table.units else '0'} AS c FROM {rows}"
    )
    if table.has_clusters:  # otherwise every row is a cluster
        each += " GROUP BY 1, 2"
    group = table.cluster_name.group("c", table.engine) if table.units else "0"
    counts = table.engine.fetch(
        f"SELECT {group} AS g, part, count(*) AS n FROM ({each}) AS clusters GROUP BY 1, 2"
    )
    members = np.zeros((count, GROUPS))
    named = ~_values.blank(counts["g"])  # rows without a cluster are reported with the cells
    members[counts["part"][named].astype(np.intp), counts["g"][named].astype(np.intp)] = counts["n"][named]
    return members
