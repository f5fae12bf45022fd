"""Metrics of two systems at the largest coverage that both reach.

A system that declines more items has a smaller area and a smaller risk only because it declines more. At matched
coverage each system is limited to its most confident items: as many, relative to all items, as the system with the
smaller maximum coverage answers. A metric at matched coverage is the metric of the limited system. If the coverage cuts
a tied block, a proportional part of the block counts. The coverage is computed again for every weight vector.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, cast

import numpy as np

from abstain.metrics import _curve
from abstain.metrics._columns import Columns, ratio
from abstain.metrics._curve import BALANCED_CURVE, CURVE, BalancedRanking, Limited, RankedCurve, Ranking
from abstain.metrics._specification import LOWER, MATCHED, MetricSpecification
from abstain.metrics.scales import risk_scale
from abstain.resampling import Statistic, WeightBatch, truncated

if TYPE_CHECKING:
    from collections.abc import Sequence

    from abstain._types import Floats


# Groups are compared with all other rows several at a time, up to about this many numbers.
_NUMBERS_PER_PART = 1 << 20


def selective_risk(side: Limited, _metric: MetricSpecification) -> Floats:
    """Return the mean loss of the remaining items."""
    return ratio(side.loss, side.count)


# The selective risk at matched coverage is reported with metrics that have no matched form. It is not in the registry.
SELECTIVE_RISK = MetricSpecification(
    selective_risk,
    arguments={"loss": "loss", "abstained": "abstained"},
    direction=LOWER,
    unit="loss",
    family=CURVE,
    comparison=MATCHED,
    matched=selective_risk,
    scale_at=risk_scale("risk"),
    name="risk",
)


def end_coverage(metric: MetricSpecification, columns: Columns) -> float:
    """Return the coverage at which a metric of these rows ends: the answer rate, or the metric's parameter."""
    if _balanced(metric):
        run, total = BalancedRanking.of(columns).run(WeightBatch(np.ones((1, columns.units))))
        return float((run.last_count / total)[0])
    reach = columns.highest_coverage
    return min(reach, metric.value) if _own_end(metric) is not None else reach


def matched_statistic(left: Columns, right: Columns, metrics: Sequence[MetricSpecification]) -> Statistic:
    """Return metrics of two rankings over the same units, at the largest coverage that both reach.

    Every metric has three columns: the coverage, the value of the left ranking and that of the right one.
    """
    sides = (left, right)
    if any(map(_balanced, metrics)):
        for side in sides:
            _balanced_ranking(side)  # computed here, before threads evaluate the statistic

    def compute(batch: WeightBatch) -> Floats:
        with np.errstate(invalid="ignore"):
            values = [_matched_values(metric, sides, (batch, batch)) for metric in metrics]
            return np.concatenate(values).T

    names = tuple(f"{metric.key} {part}" for metric in metrics for part in ("coverage", "left", "right"))
    return Statistic(names, left.units, _width(sides, metrics), compute)


def _width(sides: tuple[Columns, Columns], metrics: Sequence[MetricSpecification]) -> int:
    """Return the number of values that one weight vector needs while metrics of both sides are evaluated."""
    sums = [_ranking(side).by_confidence for side in sides]
    width = sum(each.curve_width for each in sums)
    if any(metric.convention != "trapezoid" or _balanced(metric) for metric in metrics):
        # Running sums of every rank are kept.
        width = max(width, *(each.width for each in sums))
    return width


def values_of_groups(columns: Columns, metric: MetricSpecification) -> Floats:
    """Return a metric of each group and of all other rows, at the largest coverage that both reach: (3, groups).

    The units of the columns are the groups. The three rows are the coverage, the value of all other rows and the value
    of the group.
    """
    if not metric.ranked and columns.units > 1:
        return _values_at_cuts(columns, metric)
    sides, groups, values = (columns, columns), columns.units, []
    groups_per_part = max(_NUMBERS_PER_PART // max(_width(sides, [metric]), groups), 1)
    for start in range(0, groups, groups_per_part):
        group = np.arange(start, min(start + groups_per_part, groups))
        inside = (np.arange(groups) == group[:, None]).astype(np.float64)
        batches = (WeightBatch(1.0 - inside), WeightBatch(inside))
        with np.errstate(invalid="ignore"):
            values.append(_matched_values(metric, sides, batches))
    return np.concatenate(values, axis=1)


@dataclass(frozen=True, eq=False, slots=True)
class _CutGroups:
    """The sums of limited rankings that a metric without a confidence reads."""

    total: Floats
    count: Floats
    loss: Floats


def _values_at_cuts(columns: Columns, metric: MetricSpecification) -> Floats:
    """Return `values_of_groups` for a metric that needs no confidence and reads only the sums up to the limit."""
    assert metric.matched is not None
    with_loss = columns if "loss" in metric.needs else _zero_one(columns)
    # Only the sums are kept: a ranking refers to its columns, and such a cycle would be freed late.
    cluster_sums = with_loss.compute_once(
        "cuts", lambda: Ranking(with_loss).by_confidence, by_confidence=True
    )
    total, answered = (
        mass / columns.item_weight
        for mass in (columns.mass_by_unit(), columns.mass_by_unit(columns.answered))
    )
    total_of_rest, answered_of_rest = total.sum() - total, answered.sum() - answered
    with np.errstate(invalid="ignore"):
        coverage = np.minimum(answered / total, answered_of_rest / total_of_rest)
        values = [coverage]
        for side_total, others in ((total_of_rest, True), (total, False)):
            cut = cluster_sums.cut_units(np.nan_to_num(coverage * side_total), others=others)
            values.append(metric.matched(cast("Limited", _CutGroups(side_total, *cut)), metric))
    return np.stack(values)


def _matched_values(
    metric: MetricSpecification, sides: tuple[Columns, Columns], batches: tuple[WeightBatch, WeightBatch]
) -> Floats:
    """Return the coverage and the metric of each side, which has its own batch of weights: (3, batch)."""
    if _balanced(metric):
        rankings = [_balanced_ranking(side) for side in sides]
        return np.stack(_balanced_values(rankings, batches, metric.convention))
    with_loss = [side if "loss" in metric.needs else _zero_one(side) for side in sides]
    # A ranking is used in several pairs and metrics, and is computed once for all of them.
    curves = [
        batch.compute_once(("matched", side), partial(RankedCurve, batch=batch, ranking=_ranking(side)))
        for side, batch in zip(with_loss, batches, strict=True)
    ]
    coverage = np.minimum(curves[0].cmax, curves[1].cmax)
    end = _own_end(metric)
    if end is not None:
        coverage = np.minimum(coverage, end)
    limited = batches[0].compute_once(
        ("limited", *with_loss, end), lambda: [Limited.to_coverage(curve, coverage) for curve in curves]
    )
    assert metric.matched is not None
    return np.stack([coverage, *(metric.matched(side, metric) for side in limited)])


def _zero_one(columns: Columns) -> Columns:
    """Return the same rows in the same order with a loss of 1 for a wrong answer."""
    return columns.compute_once(
        "zero_one", lambda: columns.with_loss(1.0 - columns.correct), by_confidence=True
    )


def _ranking(columns: Columns) -> Ranking:
    return columns.compute_once("ranking", lambda: Ranking(columns), by_confidence=True)


def _balanced_ranking(columns: Columns) -> BalancedRanking:
    return columns.compute_once("balanced", lambda: BalancedRanking.of(columns), by_confidence=True)


def _own_end(metric: MetricSpecification) -> float | None:
    """Return the coverage at which a truncated metric ends; None for a metric of the whole curve."""
    return metric.value if metric.parameter is not None and metric.parameter.name == "coverage" else None


def _balanced(metric: MetricSpecification) -> bool:
    return metric.family is BALANCED_CURVE


def _balanced_values(
    rankings: Sequence[BalancedRanking], batches: Sequence[WeightBatch], convention: str
) -> list[Floats]:
    """Return the areas in which every true class has the same weight, up to the smaller of the balanced coverages."""
    runs = [ranking.run(batch) for ranking, batch in zip(rankings, batches, strict=True)]
    coverage = np.minimum(*(run.last_count / total for run, total in runs))
    areas = [
        _curve.area_of_run(truncated(run, np.nan_to_num(coverage * total)), total, convention)
        for run, total in runs
    ]
    return [coverage, *areas]
