"""Tables that an engine aggregates: which of their rows are equal for the requested metrics.

Metrics of risk and of outcomes depend on the outcome and the loss of a row, so that all rows with the same outcome and
loss are equal, whatever their labels. Metrics of the labels themselves distinguish every pair of truth and prediction.
The loss is computed by the same rule as for rows in memory.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from abstain import labels
from abstain.errors import AbstainError, AggregationError
from abstain.groups import group_numbers, groups
from abstain.items import GUIDANCE
from abstain.losses import item_loss
from abstain.metrics import Columns
from abstain.resampling import keys_of_pairs

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from abstain.items import Items
    from abstain.losses import Loss
    from abstain.matching import Matching
    from abstain.metrics import MetricSpecification
    from abstain.readers.aggregation import AggregatedTable
    from abstain.readers.engines import EngineTable


@dataclass(frozen=True, eq=False, slots=True)
class AggregationRequest:
    """The arguments of `evaluate` that decide which rows are equal.

    `metrics_by_group` are those of the metrics that are evaluated by group. `units` is True if clusters are left out.
    """

    metrics: tuple[MetricSpecification, ...]
    metrics_by_group: tuple[MetricSpecification, ...]
    confidence: Any
    by: tuple[str, ...]
    loss: Loss | None
    units: bool

    def codes(self, row_types: Items, *, ranked: bool, compared: bool) -> NDArray[np.intp]:
        """Return a number for each row type; types that are equal for the requested metrics have the same number.

        Systems that are compared are also compared at matched coverage, which needs the loss of the labels.
        """
        if any(metric.labelled for metric in self.metrics if metric.ranked == ranked):
            return np.arange(len(row_types))
        truth, prediction = (
            labels.column(getattr(row_types, name), name) for name in ("truth", "prediction")
        )
        columns = Columns.of(len(row_types), answered=row_types.answered, truth=truth, prediction=prediction)
        parts = [
            row_types.outcome.astype(np.float64),
            columns.correct,
            labels.missing(prediction).astype(np.float64),
        ]
        if compared or any("loss" in metric.needs for metric in self.metrics):
            with suppress(AbstainError):  # the metric that needs it reports the problem
                parts.append(np.nan_to_num(item_loss(row_types, self.loss).values, nan=-1.0))
        if self.by and (not ranked or ranks_groups(self.metrics_by_group, compared=compared)):
            parts.append(group_numbers(groups(row_types, self.by)).astype(np.float64))
        guide = row_types.metadata.get(GUIDANCE)
        if guide is not None:
            different = np.unique(list(map(repr, guide.tolist())), return_inverse=True)[1]
            parts.append(different.astype(np.float64))
        return np.unique(np.stack(parts), axis=1, return_inverse=True)[1].reshape(-1).astype(np.intp)


def ranks_groups(metrics: Sequence[MetricSpecification], *, compared: bool) -> bool:
    """Return whether metrics by group need the confidences within each group, by cluster.

    Metrics that need no confidence are compared between systems at matched coverage, which cuts the ranking of each
    group. To find the worst group of one system, groups are aggregated separately; see `SystemStatistics`.
    """
    return any(metric.ranked or (metric.matched is not None and compared) for metric in metrics)


def aggregate_items(table: EngineTable, request: AggregationRequest, *, compared: bool) -> Items:
    """Return the rows of a table as items, each with the number of rows that it represents.

    `compared` is True if the system is compared with others, which have different items.
    """
    return _items(_aggregate(table, request), request, compared=compared)


def aggregate_systems(
    tables: Mapping[str, EngineTable], request: AggregationRequest, **matching: Any
) -> tuple[dict[str, Items], dict[str, Items], Matching]:
    """Return the items of several tables, those of them that are compared, and how they were matched.

    Args:
        tables: the tables by the system's name, of one engine.
        request: the request.
        **matching: how rows are matched; see `abstain.readers.matching.match_tables`.
    """
    from abstain.readers.matching import match_tables  # noqa: PLC0415  (engine code, slow to import)

    sides: dict[str, AggregatedTable] = {}
    for name, table in tables.items():
        sides[name] = _aggregate(table, request, first=next(iter(sides.values()), None))
    kept, matched = match_tables(sides, **matching)
    compared = {name: _items(side, request, compared=True) for name, side in kept.items()}
    every = {
        # Only the number of all rows is reported.
        name: compared[name]
        if kept[name] is side
        else _items(replace(side, units=False), request, compared=False)
        for name, side in sides.items()
    }
    noun = next((items.cluster_noun for items in every.values() if "cluster" not in items.unnamed), None)
    if noun is not None:
        compared = {name: replace(items, cluster_noun=noun) for name, items in compared.items()}
    return every, compared, matched


def _aggregate(
    table: EngineTable, request: AggregationRequest, *, first: AggregatedTable | None = None
) -> AggregatedTable:
    refused = {
        "a loss per item needs every row": not (
            request.loss is None or isinstance(request.loss, str) or callable(request.loss)
        ),
        "a custom metric needs every row": any(metric.custom for metric in request.metrics),
    }
    for reason, is_requested in refused.items():
        if is_requested:
            raise AggregationError(table.label, reason)
    guided = any(GUIDANCE in metric.needs for metric in request.metrics)
    return table.aggregate(
        metadata=request.by,
        further=(GUIDANCE,) if guided else (),
        units=request.units,
        other=first,
    )


def _items(table: AggregatedTable, request: AggregationRequest, *, compared: bool) -> Items:
    row_types = table.row_types
    every, ranked = (request.codes(row_types, ranked=wanted, compared=compared) for wanted in (False, True))

    def view(
        names: tuple[str, ...], *, unit: NDArray[np.intp] | None = None, part: NDArray[np.intp] | None = None
    ) -> Items:
        code = ranked if part is None else keys_of_pairs(ranked, part)[0]
        declined = any(metric.ranks_declined for metric in request.metrics)
        return table.items(code, names, unit=unit, ranks_declined=declined)

    return table.items(every, view=view)
