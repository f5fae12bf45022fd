"""Metrics of two systems at the largest coverage that both reach.

A system that declines more items has a smaller area and a smaller risk for that reason alone. At matched coverage each
system is limited to its most confident items: as many as the system with the smaller maximum coverage answers, out of
all items. A metric at matched coverage is the metric of the system so limited. If the coverage cuts a block of tied
confidences, a proportional part of the block counts. The coverage is computed again for every weight vector.
"""

from __future__ import annotations

from dataclasses import dataclass
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
    loss_area,
    prefix_mean_sum,
    truncated,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from abstain._types import Floats
    from abstain.resampling import Crossing


# Running sums are computed for as many weight vectors at once as make about so many numbers.
_NUMBERS_AT_ONCE = 1 << 20


@dataclass(frozen=True, eq=False)
class Limited:
    """One ranking in one batch of weights, limited to its most confident items.

    Its areas and its best order are read as those of the whole `RankedCurve` are.

    Attributes:
        curve: the whole ranking.
        curve_sums: the sums of a pass along the ranks.
        crossing: where that pass crosses the limit.
        count: how many items are left.
    """

    curve: RankedCurve
    curve_sums: CurveSums
    crossing: Crossing
    count: Floats

    @property
    def total(self) -> Floats:
        """N, declined items included."""
        return self.curve.total

    @classmethod
    def to_coverage(cls, curve: RankedCurve, coverage: Floats) -> Limited:
        """Limit a ranking to a coverage for each weight vector."""
        # Weights that leave no row at all have no coverage; what is divided by their total is undefined anyway.
        target = np.nan_to_num(coverage * curve.total)
        request = CurveRequest(risk=True, areas_at=(True,))
        curve_sums = integrate_curve(curve.ranking.by_confidence, curve.batch, request, target[None])
        return cls(curve, curve_sums, curve_sums.crossings[0], np.minimum(target, curve_sums.count))

    @cached_property
    def _cut_share(self) -> Floats:
        """The part of the rank that is cut which is left."""
        above = self.crossing.count_at - self.crossing.count_below
        return (self.count - self.crossing.count_below) / np.maximum(above, np.finfo(np.float64).tiny)

    @cached_property
    def areas(self) -> tuple[Floats, Floats]:
        """The areas under the selective risk and under the loss sum, both in counts, linear inside the cut rank."""
        crossing, whole = self.crossing, self.curve_sums
        risk_at = crossing.loss_at / crossing.count_at
        # Below the first operating point the risk is flat.
        risk_below = np.divide(
            crossing.loss_below, crossing.count_below, out=risk_at.copy(), where=crossing.count_below > 0
        )
        risk = self._cut_area(crossing.risk_area_below, risk_below, risk_at, whole.risk_area)
        loss = self._cut_area(
            crossing.loss_area_below, crossing.loss_below, crossing.loss_at, whole.loss_area
        )
        return risk, loss

    def _cut_area(self, before: Floats, below: Floats, at: Floats, whole: Floats) -> Floats:
        """The area up to the limit: `before` the cut rank, in which the curve rises from `below` to `at`."""
        height = self.count - self.crossing.count_below
        cut = before + height * (below + 0.5 * self._cut_share * (at - below))
        return np.where(np.isnan(self.crossing.count_at), whole, cut)

    @cached_property
    def loss(self) -> Floats:
        """The loss sum of the items that are left, linear inside the cut rank."""
        crossing = self.crossing
        cut = crossing.loss_below + self._cut_share * (crossing.loss_at - crossing.loss_below)
        return np.where(np.isnan(crossing.count_at), self.curve_sums.loss, cut)

    def aurc(self, convention: str) -> Floats:
        """Return the area under the selective risk; only the trapezoid does not look inside the cut rank."""
        if convention == "trapezoid":
            return self.areas[0] / self.total
        if convention == "interpolated":
            return prefix_mean_sum(truncated(self.curve.running, self.count), continuous=True) / self.total
        whole, done, after, rest = self._whole_items()
        next_risk = after.ends[1]
        if convention == "mean":
            return (prefix_mean_sum(done) + rest * next_risk) / self.total
        here = done.ends[1]
        of_next_item = rest * (here + 0.5 * rest * (next_risk - here))
        inner = _curve.without_ends(prefix_mean_sum(done), done)
        return _curve.stretched(np.where(whole >= 1.0, inner + of_next_item, 0.0), self.total)

    def augrc(self, convention: str) -> Floats:
        """Return the area under the generalized risk."""
        if convention == "mean":
            _, done, after, rest = self._whole_items()
            return (loss_area(done) + 0.5 * done.last_risk_sum + rest * after.last_risk_sum) / self.total**2
        area = self.areas[1]
        if convention == "torch-uncertainty":
            from_first = area - 0.5 * self.curve_sums.ends[0]
            return _curve.stretched(np.where(self.count >= 1.0, from_first, 0.0), self.total) / self.total
        return area / self.total**2

    def _whole_items(self) -> tuple[Floats, RunningSums, RunningSums, Floats]:
        """Split the limit: whole items, the ranking up to them, up to one item further, and the rest of an item."""
        whole = np.floor(self.count + _curve.TOLERANCE)
        rest = np.maximum(self.count - whole, 0.0)
        return whole, truncated(self.curve.running, whole), truncated(self.curve.running, whole + 1.0), rest

    def aurc_achievable(self, convention: str) -> Floats:
        """Return the area under the lower convex hull of the operating points."""
        areas = []
        for part in self._parts:
            run = RunningSums.of(self.curve.ranking.by_confidence, self.curve.batch.weights[part])
            left, total = truncated(run, self.count[part]), self.total[part]
            if convention == "interpolated":
                areas.append(_curve.mixed_area(left) / total)
            else:
                sums = integrate_running_sums(left, CurveRequest(hull=True))
                areas.append(_curve.aurc_achievable(sums, total, convention))
        return np.concatenate(areas)

    @property
    def _parts(self) -> list[slice]:
        """The weight vectors, a few at a time: the running sums of a long ranking take much memory."""
        rows = max(_NUMBERS_AT_ONCE // max(self.curve.ranking.by_confidence.keys, 1), 1)
        return [slice(start, start + rows) for start in range(0, len(self.count), rows)]

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
