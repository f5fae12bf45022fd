"""Metrics of two systems at the largest coverage that both reach.

A system that declines more items has a smaller area and a smaller risk for that reason alone. At matched coverage each
system is limited to its most confident items: as many as the system with the smaller maximum coverage answers, out of
all items. A metric at matched coverage is the metric of the system so limited. If the coverage cuts a block of tied
confidences, a proportional part of the block counts. The coverage is computed again for every weight vector.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING

import numpy as np

from abstain.metrics import _curve
from abstain.metrics._columns import Columns, ratio
from abstain.metrics._curve import BALANCED_CURVE, CURVE, GROWTH, BalancedRanking, RankedCurve, Ranking
from abstain.metrics._specification import LOWER, MATCHED, MetricSpecification
from abstain.metrics.scales import risk_scale
from abstain.resampling import (
    CurveRequest,
    CurveSums,
    RunningSums,
    Statistic,
    WeightBatch,
    integrate_curve,
    integrate_running_sums,
    truncated,
)

if TYPE_CHECKING:
    from abstain._types import Floats


# Running sums are computed for as many weight vectors at once as make about so many numbers.
_NUMBERS_AT_ONCE = 1 << 20
AtMatchedCoverage = Callable[["Limited", str], "Floats"]


class Limited:
    """One ranking in one batch of weights, limited to its most confident items up to a coverage."""

    def __init__(self, curve: RankedCurve, coverage: Floats) -> None:
        self.curve = curve
        self.total = curve.total
        # Weights that leave no row at all have no coverage; what is divided by their total is undefined anyway.
        self.target = np.nan_to_num(coverage * curve.total)
        asked = CurveRequest(risk=True, areas_at=(True,))
        self.curve_sums = integrate_curve(curve.ranking.by_confidence, curve.batch, asked, self.target[None])
        (self.crossing,) = self.curve_sums.crossings
        self.count = np.minimum(self.target, self.curve_sums.count)

    @cached_property
    def areas(self) -> tuple[Floats, Floats]:
        """The areas under the selective risk and under the loss sum, both in counts."""
        return _curve.cut_areas(self.curve_sums, self.crossing, self.count)

    @cached_property
    def loss(self) -> Floats:
        """The loss sum of the items that are left."""
        return _curve.loss_at(self.curve_sums, self.crossing, self.count)

    @property
    def _parts(self) -> list[slice]:
        """The weight vectors, a few at a time: the running sums of a long ranking take much memory."""
        rows = max(_NUMBERS_AT_ONCE // max(self.curve.ranking.by_confidence.keys, 1), 1)
        return [slice(start, start + rows) for start in range(0, len(self.count), rows)]

    def over_runs(self, compute: Callable[[RunningSums, Floats], Floats]) -> Floats:
        """Compute a number per weight vector from the running sums of the items that are left, and from N."""
        cluster_sums, weights = self.curve.ranking.by_confidence, self.curve.batch.weights
        return np.concatenate(
            [
                compute(
                    truncated(RunningSums.of(cluster_sums, weights[part]), self.count[part]), self.total[part]
                )
                for part in self._parts
            ]
        )

    def optimum(self, convention: str) -> CurveSums:
        """The items that are left in the best order there could be: the smallest losses first."""
        levels = self.curve.ranking.losses
        count = self._counts_by_loss()
        ground = np.zeros((len(count), 1))
        run = RunningSums(
            np.concatenate([ground, np.cumsum(count, axis=1)], axis=1),
            np.concatenate([ground, np.cumsum(count * levels, axis=1)], axis=1),
        )
        return integrate_running_sums(run, CurveRequest(growth=(GROWTH[convention],)))

    def _counts_by_loss(self) -> Floats:
        """How many of the items that are left have each loss, the smallest first: (vectors, losses)."""
        levels = self.curve.ranking.losses
        if len(levels) == 2 and levels[0] == 0.0:
            wrong = self.loss / levels[1]
            return np.stack([np.maximum(self.count - wrong, 0.0), wrong], axis=1)
        cluster_sums, weights = self.curve.ranking.by_confidence, self.curve.batch.weights
        cells, rank_of_cell, starts = self.curve.ranking.by_loss_and_rank
        found = []
        for part in self._parts:
            run = RunningSums.of(cluster_sums, weights[part])
            left = np.clip(self.count[part, None] - run.count[:, :-1], 0.0, run.step)
            counts = cells.evaluate(weights[part])[0] * ratio(left, run.step, empty=0.0)[:, rank_of_cell]
            found.append(np.add.reduceat(counts, starts, axis=1))
        return np.concatenate(found)


def aurc(side: Limited, convention: str) -> Floats:
    """Return the AURC up to the matched coverage, as the truncated area is defined."""
    if convention == "trapezoid":
        return side.areas[0] / side.total
    return _curve.aurc_at(side.curve.running, side.count, side.total, convention)


def augrc(side: Limited, convention: str) -> Floats:
    """Return the AUGRC up to the matched coverage."""
    if convention == "mean":
        return _curve.mean_augrc_at(side.curve.running, side.count, side.total)
    return _curve.augrc_at(side.curve_sums, side.count, side.areas[1], side.total, convention)


def eaurc(side: Limited, convention: str) -> Floats:
    """Return the AURC less that of the best order of the same items."""
    best = _curve.aurc(side.optimum(convention), side.total, convention, by_item=True)
    return aurc(side, convention) - best


def eaugrc(side: Limited, convention: str) -> Floats:
    """Return the AUGRC less that of the best order of the same items."""
    return augrc(side, convention) - _curve.augrc(side.optimum(convention), side.total, convention)


def auarc(side: Limited, convention: str) -> Floats:
    """Return the area under the accuracy up to the matched coverage."""
    everything_wrong = _curve.aurc(_curve.one_block_of(side.count, side.count), side.total, convention)
    return everything_wrong - aurc(side, convention)


def aurc_achievable(side: Limited, convention: str) -> Floats:
    """Return the area under the lower convex hull up to the matched coverage."""
    if convention == "interpolated":
        return side.over_runs(lambda run, total: _curve.mixed_area(run) / total)
    return side.over_runs(
        lambda run, total: _curve.aurc_achievable(
            integrate_running_sums(run, CurveRequest(hull=True)), total, convention
        )
    )


def selective_risk(side: Limited, _convention: str) -> Floats:
    """Return the mean loss of the items that are left."""
    return ratio(side.loss, side.count)


def selective_accuracy(side: Limited, _convention: str) -> Floats:
    """Return the proportion of right answers among the items that are left; losses are 1 for a wrong answer."""
    return ratio(side.count - side.loss, side.count)


def wrong_rate(side: Limited, _convention: str) -> Floats:
    """Return the wrong answers that are left, divided by all items."""
    return ratio(side.loss, side.total)


def hallucination_rate(side: Limited, _convention: str) -> Floats:
    """Return the wrong answers that are left, divided by all items that are not answered correctly."""
    return ratio(side.loss, side.total - side.count + side.loss)


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
            ("limited", *chosen, end), lambda: [Limited(curve, coverage) for curve in curves]
        )
        assert metric.matched is not None
        return [coverage, *(metric.matched(side, metric.convention) for side in limited)]

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
