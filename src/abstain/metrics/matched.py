"""Metrics of two systems at the largest coverage that both reach.

A system that declines more items has a smaller area and a smaller risk for that reason alone. At matched coverage each
system is limited to its most confident items: as many as the system with the smaller maximum coverage answers, out of
all items. A metric at matched coverage is the metric of the system so limited. If the coverage cuts a block of tied
confidences, a proportional part of the block counts. The coverage is computed again for every weight vector.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

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
    balanced = [BalancedRanking.of(side) for side in (left, right)] if any(map(_balanced, metrics)) else []

    def values(metric: MetricSpecification, batch: WeightBatch) -> list[Floats]:
        if _balanced(metric):
            return _balanced_values(balanced, batch, metric.convention)
        chosen = [side if "loss" in metric.needs else _zero_one(side) for side in (left, right)]
        # A ranking is in several pairs and metrics, and is prepared once for all of them.
        curves = [
            batch.once(("matched", side), partial(RankedCurve, batch=batch, ranking=_ranking(side)))
            for side in chosen
        ]
        coverage = np.minimum(curves[0].cmax, curves[1].cmax)
        end = _own_end(metric)
        if end is not None:
            coverage = np.minimum(coverage, end)
        limited = batch.once(
            ("limited", *chosen, end), lambda: [Limited.to_coverage(curve, coverage) for curve in curves]
        )
        assert metric.matched is not None
        return [coverage, *(metric.matched(side, metric) for side in limited)]

    def compute(batch: WeightBatch) -> Floats:
        with np.errstate(invalid="ignore"):
            return np.stack([each for metric in metrics for each in values(metric, batch)], axis=1)

    names = tuple(f"{metric.key} {part}" for metric in metrics for part in ("coverage", "left", "right"))
    width = sum(_ranking(side).by_confidence.curve_width for side in (left, right))
    if any(metric.convention != "trapezoid" for metric in metrics):
        # Running sums of every rank are kept.
        width = max(width, *(_ranking(side).by_confidence.width for side in (left, right)))
    return Statistic(names, left.units, width, compute)


def _zero_one(columns: Columns) -> Columns:
    """The same rows in the same order with a loss of 1 for a wrong answer."""
    return columns.once("zero_one", lambda: columns.with_loss(1.0 - columns.correct), by_confidence=True)


def _ranking(columns: Columns) -> Ranking:
    return columns.once("ranking", lambda: Ranking(columns), by_confidence=True)


def _own_end(metric: MetricSpecification) -> float | None:
    """The coverage that a truncated metric ends at; None for a metric of the whole curve."""
    return metric.value if metric.parameter is not None and metric.parameter.name == "coverage" else None


def _balanced(metric: MetricSpecification) -> bool:
    return metric.family is BALANCED_CURVE


def _balanced_values(
    rankings: Sequence[BalancedRanking], batch: WeightBatch, convention: str
) -> list[Floats]:
    """The area in which every true class counts alike, up to the smaller of the two balanced coverages."""
    runs = [ranking.run(batch) for ranking in rankings]
    coverage = np.minimum(*(run.last_count / total for run, total in runs))
    areas = [
        _curve.area_of_run(truncated(run, np.nan_to_num(coverage * total)), total, convention)
        for run, total in runs
    ]
    return [coverage, *areas]
