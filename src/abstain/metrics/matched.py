"""Metrics of two systems at the largest coverage that both reach.

A system that declines more items has a smaller area and a smaller risk for that reason alone. At matched coverage each
system is limited to its most confident items: as many as the system with the smaller maximum coverage answers, out of
all items. A metric at matched coverage is the metric of the system so limited. If the coverage cuts a block of tied
confidences, a proportional part of the block counts. The coverage is computed again for every weight vector.
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


# As many groups are compared with all other rows at once as make about so many numbers.
_NUMBERS_AT_ONCE = 1 << 20


def selective_risk(side: Limited, _metric: MetricSpecification) -> Floats:
    """Return the mean loss of the items that are left."""
    return ratio(side.loss, side.count)


# The selective risk at matched coverage accompanies metrics that have no such form; it is not in the registry.
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
    """Return the coverage at which a metric of these rows ends: the answer rate, or the metric's own coverage."""
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
            _balanced_ranking(side)  # prepared here, before threads evaluate the statistic

    def compute(batch: WeightBatch) -> Floats:
        with np.errstate(invalid="ignore"):
            values = [_matched_values(metric, sides, (batch, batch)) for metric in metrics]
            return np.concatenate(values).T

    names = tuple(f"{metric.key} {part}" for metric in metrics for part in ("coverage", "left", "right"))
    return Statistic(names, left.units, _width(sides, metrics), compute)


def _width(sides: tuple[Columns, Columns], metrics: Sequence[MetricSpecification]) -> int:
    """Return how many numbers one weight vector occupies while metrics of both sides are evaluated."""
    sums = [_ranking(side).by_confidence for side in sides]
    width = sum(each.curve_width for each in sums)
    if any(metric.convention != "trapezoid" or _balanced(metric) for metric in metrics):
        # Running sums of every rank are kept.
        width = max(width, *(each.width for each in sums))
    return width


def values_of_groups(columns: Columns, metric: MetricSpecification) -> Floats:
    """Return a metric of each group against all other rows, at the largest coverage that both reach: (3, groups).

    The units of the columns are the groups, so that all other rows are those without one unit. The three rows are the
    coverage, the value of all other rows and the value of the group.
    """
    if not metric.ranked and columns.units > 1:
        return _values_at_cuts(columns, metric)
    sides, groups, values = (columns, columns), columns.units, []
    at_once = max(_NUMBERS_AT_ONCE // max(_width(sides, [metric]), groups), 1)
    for start in range(0, groups, at_once):
        group = np.arange(start, min(start + at_once, groups))
        inside = (np.arange(groups) == group[:, None]).astype(np.float64)
        batches = (WeightBatch(1.0 - inside), WeightBatch(inside))
        with np.errstate(invalid="ignore"):
            values.append(_matched_values(metric, sides, batches))
    return np.concatenate(values, axis=1)


@dataclass(frozen=True, eq=False, slots=True)
class _CutGroups:
    """What a metric that needs no confidence reads of rankings that are limited to a coverage."""

    total: Floats
    count: Floats
    loss: Floats


def _values_at_cuts(columns: Columns, metric: MetricSpecification) -> Floats:
    """Return `values_of_groups` for a metric that needs no confidence: it reads only the sums up to the cut."""
    assert metric.matched is not None
    chosen = columns if "loss" in metric.needs else _zero_one(columns)
    # Only the sums are kept: a ranking refers to its columns, and both would be freed late.
    cluster_sums = chosen.once("cuts", lambda: Ranking(chosen).by_confidence, by_confidence=True)
    total, answered = columns.mass_by_unit(), columns.mass_by_unit(columns.answered)
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
    """Return the coverage, and the metric of each side with its own batch of weights: (3, batch)."""
    if _balanced(metric):
        rankings = [_balanced_ranking(side) for side in sides]
        return np.stack(_balanced_values(rankings, batches, metric.convention))
    chosen = [side if "loss" in metric.needs else _zero_one(side) for side in sides]
    # A ranking is in several pairs and metrics, and is prepared once for all of them.
    curves = [
        batch.once(("matched", side), partial(RankedCurve, batch=batch, ranking=_ranking(side)))
        for side, batch in zip(chosen, batches, strict=True)
    ]
    coverage = np.minimum(curves[0].cmax, curves[1].cmax)
    end = _own_end(metric)
    if end is not None:
        coverage = np.minimum(coverage, end)
    limited = batches[0].once(
        ("limited", *chosen, end), lambda: [Limited.to_coverage(curve, coverage) for curve in curves]
    )
    assert metric.matched is not None
    return np.stack([coverage, *(metric.matched(side, metric) for side in limited)])


def _zero_one(columns: Columns) -> Columns:
    """The same rows in the same order with a loss of 1 for a wrong answer."""
    return columns.once("zero_one", lambda: columns.with_loss(1.0 - columns.correct), by_confidence=True)


def _ranking(columns: Columns) -> Ranking:
    return columns.once("ranking", lambda: Ranking(columns), by_confidence=True)


def _balanced_ranking(columns: Columns) -> BalancedRanking:
    return columns.once("balanced", lambda: BalancedRanking.of(columns), by_confidence=True)


def _own_end(metric: MetricSpecification) -> float | None:
    """The coverage that a truncated metric ends at; None for a metric of the whole curve."""
    return metric.value if metric.parameter is not None and metric.parameter.name == "coverage" else None


def _balanced(metric: MetricSpecification) -> bool:
    return metric.family is BALANCED_CURVE


def _balanced_values(
    rankings: Sequence[BalancedRanking], batches: Sequence[WeightBatch], convention: str
) -> list[Floats]:
    """The area in which every true class counts alike, up to the smaller of the two balanced coverages."""
    runs = [ranking.run(batch) for ranking, batch in zip(rankings, batches, strict=True)]
    coverage = np.minimum(*(run.last_count / total for run, total in runs))
    areas = [
        _curve.area_of_run(truncated(run, np.nan_to_num(coverage * total)), total, convention)
        for run, total in runs
    ]
    return [coverage, *areas]
