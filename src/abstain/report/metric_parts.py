"""The part of the artifact that holds metric tables: the structures of its schema, and how they are filled."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta, Struct

if TYPE_CHECKING:
    from collections.abc import Mapping

    from abstain.evaluation import Comparison, MetricTable
    from abstain.inference import Estimate

__all__ = ["MetricsPart", "PairedMetricsPart", "metrics_part", "paired_metrics_part"]

Interval = Annotated[tuple[float, float], Meta(description="lower and upper end")]


class MetricPart(Struct, kw_only=True):
    """One metric: its value, its interval, and why it is undefined or must not be trusted."""

    value: float | None
    ci95: Interval | None
    n: int
    clusters: int
    drop_rate: float
    reason: str


class GroupPart(Struct, kw_only=True):
    """The metrics of one group."""

    label: str
    values: dict[str, str | float | int | bool | None]
    items: int
    answered: int
    clusters: int
    note: str
    metrics: dict[str, MetricPart]


class GapPart(Struct, kw_only=True):
    """The worst group of a metric against all other rows."""

    group: str
    worst: MetricPart
    rest: MetricPart
    gap: MetricPart


class DefinitionPart(Struct, kw_only=True):
    """What a metric is."""

    direction: str
    unit: str
    needs: list[str]
    definition: str


class OutcomesPart(Struct, kw_only=True):
    """What became of every item."""

    right: int
    wrong: int
    abstained: int
    failed: int
    unscored: int


class MetricsPart(Struct, kw_only=True):
    """Metrics over all rows and by group."""

    outcomes: OutcomesPart
    definitions: dict[str, DefinitionPart]
    overall: dict[str, MetricPart]
    by: list[str]
    groups: list[GroupPart]
    gaps: dict[str, GapPart]


class PairedMetricsPart(Struct, kw_only=True):
    """Metrics of both sides of a comparison, and their differences, right - left."""

    input_0: MetricsPart
    input_1: MetricsPart
    deltas: dict[str, MetricPart]
    group_deltas: dict[str, dict[str, MetricPart]]


def metrics_part(table: MetricTable) -> MetricsPart:
    """Return one table."""
    outcomes = table.outcomes
    return MetricsPart(
        outcomes=OutcomesPart(
            right=outcomes.right,
            wrong=outcomes.wrong,
            abstained=outcomes.abstained,
            failed=outcomes.failed,
            unscored=outcomes.unscored,
        ),
        definitions={
            name: DefinitionPart(
                direction=metric.direction,
                unit=metric.unit,
                needs=list(metric.needs),
                definition=metric.definition,
            )
            for name, metric in table.specifications.items()
        },
        overall=_metrics(table.estimates),
        by=list(table.by),
        groups=[
            GroupPart(
                label=group.label,
                values=dict(group.values),
                items=group.items,
                answered=group.answered,
                clusters=group.clusters,
                note=group.note,
                metrics=_metrics(group.estimates),
            )
            for group in table.groups
        ],
        gaps={
            name: GapPart(
                group=gap.group, worst=_metric(gap.worst), rest=_metric(gap.rest), gap=_metric(gap.gap)
            )
            for name, gap in table.gaps.items()
        },
    )


def paired_metrics_part(comparison: Comparison) -> PairedMetricsPart | None:
    """Return the tables of a comparison, or None when no metrics were asked for."""
    left, right, deltas = comparison.left.metrics, comparison.right.metrics, comparison.metrics
    if left is None or right is None or deltas is None:
        return None
    return PairedMetricsPart(
        input_0=metrics_part(left),
        input_1=metrics_part(right),
        deltas=_metrics(deltas),
        group_deltas={label: _metrics(group) for label, group in deltas.groups.items()},
    )


def _metrics(estimates: Mapping[str, Estimate]) -> dict[str, MetricPart]:
    return {name: _metric(estimate) for name, estimate in estimates.items()}


def _metric(estimate: Estimate) -> MetricPart:
    interval = estimate.interval
    if interval is not None and not all(map(math.isfinite, interval)):
        interval = None
    return MetricPart(
        value=estimate.value if math.isfinite(estimate.value) else None,
        ci95=interval,
        n=estimate.n,
        clusters=estimate.clusters,
        drop_rate=estimate.drop_rate,
        # JSON has no word for infinity; a null needs its reason.
        reason="the value is infinite" if math.isinf(estimate.value) else estimate.reason,
    )
