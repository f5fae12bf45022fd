"""Parts of the artifact: differences with their verdicts, and the tables of metrics that were asked for by name.

Both are structures of its schema, and how they are filled.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Meta, Struct
from msgspec.structs import asdict

if TYPE_CHECKING:
    from collections.abc import Mapping

    from abstain.evaluation import Difference, MetricTable, Result
    from abstain.inference import Estimate

__all__ = [
    "Delta",
    "Interval",
    "MetricsPart",
    "PairedMetricsPart",
    "delta",
    "finite",
    "metrics_part",
    "paired_metrics_part",
]

Interval = Annotated[tuple[float, float], Meta(description="lower and upper end")]


class MetricPart(Struct, kw_only=True):
    """One metric: its value, its interval, and why it is undefined or must not be trusted."""

    value: float | None
    ci95: Interval | None
    n: int
    clusters: int
    drop_rate: float
    reason: str


class Told(Struct, kw_only=True):
    """Who is better: the verdict, the two systems, and what it rests on."""

    verdict: Annotated[
        str, Meta(description="left, right or cannot tell; who is higher where no direction is better")
    ]
    left: str
    right: str
    p: float | None
    p_holm: float | None
    interval: Interval | None
    method: str


class Delta(Told, kw_only=True):
    """A difference, right - left, with its percentile interval beside the one that the verdict rests on."""

    delta: float | None
    ci95: Interval | None


class MetricDelta(Told, kw_only=True):
    """The difference of a metric that was asked for by name: what a `MetricPart` holds, and the verdict."""

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
    deltas: dict[str, MetricDelta]
    group_deltas: dict[str, dict[str, MetricDelta]]


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


def paired_metrics_part(result: Result) -> PairedMetricsPart | None:
    """Return the tables of two systems, or None when no metrics were asked for."""
    left, right = result.left.metrics, result.right.metrics
    if left is None or right is None:
        return None
    known = {
        (each.confidence, each.metric, each.group): each for each in result.differences if not each.matched
    }
    labels = [group.label for group in left.groups]
    found = {
        label: {
            name: _metric_delta(known[key._replace(group=label)])
            for name, key in left.keys_of.items()
            if key._replace(group=label) in known
        }
        for label in ("", *labels)
    }
    return PairedMetricsPart(
        input_0=metrics_part(left),
        input_1=metrics_part(right),
        deltas=found[""],
        group_deltas={label: found[label] for label in labels if found[label]},
    )


def delta(difference: Difference) -> Delta:
    """Return a difference as the seed's schema has it, and its verdict beside."""
    estimate = difference.estimate
    return Delta(delta=finite(estimate.value), ci95=_percentile(estimate), **_told(difference))


def _metric_delta(difference: Difference) -> MetricDelta:
    part = asdict(_metric(difference.estimate)) | {"ci95": _percentile(difference.estimate)}
    return MetricDelta(**part, **_told(difference))


def _told(difference: Difference) -> dict[str, Any]:
    estimate = difference.estimate
    return {
        "verdict": difference.verdict,
        "left": difference.left,
        "right": difference.right,
        "p": finite(difference.p),
        "p_holm": finite(difference.p_adjusted),
        "interval": _ends(estimate.interval),
        "method": estimate.method,
    }


def _percentile(estimate: Estimate) -> tuple[float, float] | None:
    """The bootstrap's interval; without resamples the point repeated, as the seed has it."""
    if not math.isfinite(estimate.value):
        return None
    return (estimate.value, estimate.value) if estimate.percentile is None else _ends(estimate.percentile)


def _metrics(estimates: Mapping[str, Estimate]) -> dict[str, MetricPart]:
    return {name: _metric(estimate) for name, estimate in estimates.items()}


def _metric(estimate: Estimate) -> MetricPart:
    return MetricPart(
        value=finite(estimate.value),
        ci95=_ends(estimate.interval),
        n=estimate.n,
        clusters=estimate.clusters,
        drop_rate=estimate.drop_rate,
        # JSON has no word for infinity; a null needs its reason.
        reason="the value is infinite" if math.isinf(estimate.value) else estimate.reason,
    )


def finite(value: float) -> float | None:
    """Return a number as JSON has it: null where it is undefined or infinite."""
    return value if math.isfinite(value) else None


def _ends(interval: tuple[float, float] | None) -> tuple[float, float] | None:
    return interval if interval is not None and all(map(math.isfinite, interval)) else None
