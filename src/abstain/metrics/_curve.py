"""The risk-coverage curve of one ranking under many weight vectors, and the areas below it.

Answered rows are summed by confidence, most confident first, and by loss, smallest first. N is summed separately,
because it includes abstentions: coverage is always relative to N. A metric declares which quantities it reads from the
curve (`CurveNeeds`), and one pass over the ranks computes all metrics of a ranking. A ranking that is limited to its
most confident items (`Limited`) has the same methods as the full ranking. The metrics are defined in
`abstain.metrics.selective`, the pass over the ranks in `abstain.resampling`.

Areas are integrated in one of four conventions:

- ``trapezoid``: straight lines between operating points, constant from 0 to the first one.
- ``interpolated``: inside a tied block the loss sum grows linearly, so the selective risk is a hyperbola, which is
  integrated exactly.
- ``mean``: the mean of the selective risks after each single item, with the expectation over the order of ties.
- ``torch-uncertainty``: trapezoid over single items from the first item on, multiplied by ``1 / (1 - 1/N)``.

A ranking without information is one tied block. Its area is the average over all orders of the items.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property, reduce
from operator import or_
from typing import TYPE_CHECKING

import numpy as np

from abstain import labels
from abstain.metrics._columns import ratio
from abstain.metrics._specification import Family
from abstain.resampling import (
    HARMONIC,
    LOGARITHM,
    ClusterSums,
    CurveRequest,
    CurveSums,
    RunningSums,
    Statistic,
    WeightBatch,
    integrate_curve,
    integrate_running_sums,
    keys_of_pairs,
    loss_area,
    prefix_mean_sum,
    truncated,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from abstain._types import Floats, Indices
    from abstain.metrics._columns import Columns
    from abstain.metrics._specification import MetricSpecification
    from abstain.resampling import Crossing


# The sum of prefix means from which an area over single items is computed.
GROWTH = {"trapezoid": HARMONIC, "interpolated": LOGARITHM, "mean": HARMONIC, "torch-uncertainty": HARMONIC}
# Allows for rounding errors if a count reaches a requested coverage exactly.
TOLERANCE = 1e-9
# Running sums are computed for several weight vectors at a time, up to about this many numbers.
_NUMBERS_PER_PART = 1 << 20


@dataclass(frozen=True, eq=False)
class Ranking:
    """The answered rows of some columns, summed by confidence and by loss when first needed, in numbers of items."""

    columns: Columns

    @cached_property
    def by_confidence(self) -> ClusterSums:
        """Counts and losses by confidence, most confident first."""
        key, distinct = self.columns.ranks
        return self.sum_answers(key, len(distinct))

    @property
    def by_loss(self) -> ClusterSums:
        """Counts and losses by loss, smallest first; the same for every confidence of these rows."""
        return self.columns.compute_once("by_loss", self._sum_by_loss)

    def _sum_by_loss(self) -> ClusterSums:
        key, distinct = self.columns.loss_keys
        return self.sum_answers(key, len(distinct))

    @property
    def losses(self) -> Floats:
        """The distinct losses of answered rows, smallest first."""
        return self.columns.loss_keys[1]

    @cached_property
    def by_loss_and_rank(self) -> tuple[ClusterSums, Indices, Indices]:
        """Sums by loss and rank, smallest loss first, with the rank of each cell and the first cell of each loss."""
        loss, _ = self.columns.loss_keys
        key, loss_of_cell, rank_of_cell = keys_of_pairs(loss, self.columns.ranks[0])
        starts = np.flatnonzero(np.diff(loss_of_cell, prepend=-1))
        return self.sum_answers(key, len(rank_of_cell)), rank_of_cell, starts

    def sum_answers(self, key: Indices, keys: int) -> ClusterSums:
        """Sum counts and losses of the answered rows by unit and any key."""
        columns, answered = self.columns, self.columns.answered
        return ClusterSums.of_rows(
            unit=columns.cluster[answered],
            key=key,
            columns=[columns.loss[answered]],
            units=columns.units,
            keys=keys,
            weight=None if columns.mass is None else columns.items_in_rows[answered],
        )

    @property
    def counts(self) -> ClusterSums:
        """N and the number of answers of each unit; the same for every confidence of these rows."""
        return self.columns.compute_once("counts", self._sum_counts)

    def _sum_counts(self) -> ClusterSums:
        columns = self.columns
        return columns.sum_items_by(np.zeros(len(columns), np.intp), 1, columns.answered.astype(np.float64))


@dataclass(frozen=True, slots=True)
class CurveNeeds:
    """The quantities that a metric reads from the curve, in addition to N and the number of answers.

    Attributes:
        ranking: the items in the order of confidence.
        optimum: the items in the order of loss.
        risk: the area under the selective risk.
        hull: the area under its lower convex hull.
        growth: sums of prefix means, `HARMONIC` or `LOGARITHM`.
        bounds: risks for which the largest coverage is computed.
        areas_to: coverages at which an area ends.
        risk_at: coverages at which the risk is read.
        running: the running sums at every rank, which take much memory.
    """

    ranking: bool = True
    optimum: bool = False
    risk: bool = False
    hull: bool = False
    growth: frozenset[str] = frozenset()
    bounds: frozenset[float] = frozenset()
    areas_to: frozenset[float] = frozenset()
    risk_at: frozenset[float] = frozenset()
    running: bool = False

    def __or__(self, other: CurveNeeds) -> CurveNeeds:
        """Return the quantities that at least one of two metrics reads."""
        return CurveNeeds(*(getattr(self, each.name) | getattr(other, each.name) for each in fields(self)))

    @property
    def targets(self) -> list[tuple[float, bool]]:
        """The coverages whose crossing is needed, ascending, each with True if the areas below it are needed too."""
        return sorted(
            [*((end, True) for end in self.areas_to), *((coverage, False) for coverage in self.risk_at)]
        )


class RankedCurve:
    """One ranking with one batch of weights; each part is computed when it is first read."""

    def __init__(self, ranking: Ranking, batch: WeightBatch, needs: CurveNeeds | None = None) -> None:
        self.ranking = ranking
        self.batch = batch
        self.needs = CurveNeeds(risk=True) if needs is None else needs
        counts = ranking.counts
        self.total, self.answered = batch.compute_once(counts, lambda: counts.evaluate(batch)[:, :, 0])

    @cached_property
    def sums(self) -> CurveSums:
        """Counts, losses and areas along the confidences."""
        needs, targets = self.needs, self.needs.targets
        request = CurveRequest(
            risk=needs.risk,
            hull=needs.hull,
            growth=tuple(sorted(needs.growth)),
            bounds=tuple(sorted(needs.bounds)),
            areas_at=tuple(areas for _, areas in targets),
        )
        counts = np.array([coverage for coverage, _ in targets])[:, None] * self.total
        return integrate_curve(self.ranking.by_confidence, self.batch, request, counts)

    @cached_property
    def running(self) -> RunningSums:
        """The running sums at every rank."""
        return RunningSums.of(self.ranking.by_confidence, self.batch.weights)

    @property
    def cmax(self) -> Floats:
        """The largest coverage: answers / N."""
        return self.answered / self.total

    def optimum(self, convention: str) -> CurveSums:
        """Counts, losses and areas along the losses: the perfect ranking. The same for all confidences of a batch."""
        by_loss, growth = self.ranking.by_loss, GROWTH[convention]
        request = CurveRequest(growth=(growth,), alike=True)
        curve_sums: CurveSums = self.batch.compute_once(
            (by_loss, growth), lambda: integrate_curve(by_loss, self.batch, request)
        )
        return curve_sums

    def crossing(self, coverage: float, *, areas: bool) -> Crossing:
        """Return the crossing of a coverage."""
        return self.sums.crossings[self.needs.targets.index((coverage, areas))]

    @property
    def count(self) -> Floats:
        """The number of ranked items."""
        return self.sums.count

    def aurc(self, convention: str) -> Floats:
        """Return the area under the selective risk."""
        return aurc(self.sums, self.total, convention)

    def augrc(self, convention: str) -> Floats:
        """Return the area under the generalized risk."""
        return augrc(self.sums, self.total, convention)

    def aurc_achievable(self, convention: str) -> Floats:
        """Return the area under the lower convex hull of the operating points."""
        if convention == "interpolated":
            return mixed_area(self.running) / self.total
        return aurc_achievable(self.sums, self.total, convention)


@dataclass(frozen=True, eq=False)
class Limited:
    """One ranking with one batch of weights, limited to its most confident items.

    Its methods are those of `RankedCurve`.

    Attributes:
        curve: the full ranking.
        curve_sums: the sums of a pass over the ranks.
        crossing: the sums of that pass at the limit.
        count: the number of remaining items.
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
        # If all weights are 0, the coverage is NaN; everything divided by the total is undefined in any case.
        target = np.nan_to_num(coverage * curve.total)
        request = CurveRequest(risk=True, areas_at=(True,))
        curve_sums = integrate_curve(curve.ranking.by_confidence, curve.batch, request, target[None])
        return cls(curve, curve_sums, curve_sums.crossings[0], np.minimum(target, curve_sums.count))

    @cached_property
    def _cut_proportion(self) -> Floats:
        """The remaining proportion of the rank that is cut."""
        above = self.crossing.count_at - self.crossing.count_below
        return (self.count - self.crossing.count_below) / np.maximum(above, np.finfo(np.float64).tiny)

    @cached_property
    def areas(self) -> tuple[Floats, Floats]:
        """The areas under the selective risk and the loss sum, over counts; both curves are linear in the cut rank."""
        crossing, all_items = self.crossing, self.curve_sums
        risk_at = crossing.loss_at / crossing.count_at
        # Below the first operating point the risk is constant.
        risk_below = np.divide(
            crossing.loss_below, crossing.count_below, out=risk_at.copy(), where=crossing.count_below > 0
        )
        risk = self._cut_area(crossing.risk_area_below, risk_below, risk_at, all_items.risk_area)
        loss = self._cut_area(
            crossing.loss_area_below, crossing.loss_below, crossing.loss_at, all_items.loss_area
        )
        return risk, loss

    def _cut_area(self, before: Floats, below: Floats, reached: Floats, total: Floats) -> Floats:
        """Return the area up to the limit: `before` is the area up to the cut rank.

        In the cut rank, the curve goes from `below` to `reached`.
        """
        height = self.count - self.crossing.count_below
        cut = before + height * (below + 0.5 * self._cut_proportion * (reached - below))
        return np.where(np.isnan(self.crossing.count_at), total, cut)

    @cached_property
    def loss(self) -> Floats:
        """The loss sum of the remaining items; it is linear in the cut rank."""
        crossing = self.crossing
        cut = crossing.loss_below + self._cut_proportion * (crossing.loss_at - crossing.loss_below)
        return np.where(np.isnan(crossing.count_at), self.curve_sums.loss, cut)

    def aurc(self, convention: str) -> Floats:
        """Return the area under the selective risk; all conventions but the trapezoid split the cut rank."""
        if convention == "trapezoid":
            return self.areas[0] / self.total
        if convention == "interpolated":
            return prefix_mean_sum(truncated(self.curve.running, self.count), continuous=True) / self.total
        items, done, after, rest = self._whole_items()
        next_risk = after.ends[1]
        if convention == "mean":
            return (prefix_mean_sum(done) + rest * next_risk) / self.total
        here = done.ends[1]
        of_next_item = rest * (here + 0.5 * rest * (next_risk - here))
        inner = _without_ends(prefix_mean_sum(done), done)
        return _stretched(np.where(items >= 1.0, inner + of_next_item, 0.0), self.total)

    def augrc(self, convention: str) -> Floats:
        """Return the area under the generalized risk."""
        if convention == "mean":
            _, done, after, rest = self._whole_items()
            return (loss_area(done) + 0.5 * done.last_risk_sum + rest * after.last_risk_sum) / self.total**2
        area = self.areas[1]
        if convention == "torch-uncertainty":
            from_first = area - 0.5 * self.curve_sums.ends[0]
            return _stretched(np.where(self.count >= 1.0, from_first, 0.0), self.total) / self.total
        return area / self.total**2

    def _whole_items(self) -> tuple[Floats, RunningSums, RunningSums, Floats]:
        """Split the limit into whole items and the rest of an item.

        Returns the number of whole items, the ranking up to them, the ranking up to one item more, and the rest.
        """
        items = np.floor(self.count + TOLERANCE)
        rest = np.maximum(self.count - items, 0.0)
        return items, truncated(self.curve.running, items), truncated(self.curve.running, items + 1.0), rest

    def aurc_achievable(self, convention: str) -> Floats:
        """Return the area under the lower convex hull of the operating points."""
        areas = []
        for part in self._parts:
            run = RunningSums.of(self.curve.ranking.by_confidence, self.curve.batch.weights[part])
            left, total = truncated(run, self.count[part]), self.total[part]
            if convention == "interpolated":
                areas.append(mixed_area(left) / total)
            else:
                sums = integrate_running_sums(left, CurveRequest(hull=True))
                areas.append(aurc_achievable(sums, total, convention))
        return np.concatenate(areas)

    @property
    def _parts(self) -> list[slice]:
        """The weight vectors in parts, because the running sums of a long ranking take much memory."""
        rows = max(_NUMBERS_PER_PART // max(self.curve.ranking.by_confidence.keys, 1), 1)
        return [slice(start, start + rows) for start in range(0, len(self.count), rows)]

    def optimum(self, convention: str) -> CurveSums:
        """Return the sums of the remaining items in the best possible order, smallest losses first."""
        levels = self.curve.ranking.losses
        count = self._counts_by_loss()
        ground = np.zeros((len(count), 1))
        run = RunningSums(
            np.concatenate([ground, np.cumsum(count, axis=1)], axis=1),
            np.concatenate([ground, np.cumsum(count * levels, axis=1)], axis=1),
        )
        return integrate_running_sums(run, CurveRequest(growth=(GROWTH[convention],)))

    def _counts_by_loss(self) -> Floats:
        """Return how many of the remaining items have each loss, smallest first: (vectors, losses)."""
        levels = self.curve.ranking.losses
        if len(levels) == 2 and levels[0] == 0.0:
            wrong = self.loss / levels[1]
            return np.stack([np.maximum(self.count - wrong, 0.0), wrong], axis=1)
        cluster_sums, weights = self.curve.ranking.by_confidence, self.curve.batch.weights
        cells, rank_of_cell, starts = self.curve.ranking.by_loss_and_rank
        by_loss = []
        for part in self._parts:
            run = RunningSums.of(cluster_sums, weights[part])
            left = np.clip(self.count[part, None] - run.count[:, :-1], 0.0, run.step)
            counts = cells.evaluate(weights[part])[0] * ratio(left, run.step, empty=0.0)[:, rank_of_cell]
            by_loss.append(np.add.reduceat(counts, starts, axis=1))
        return np.concatenate(by_loss)


def _curve_statistic(columns: Columns, metrics: Sequence[MetricSpecification]) -> Statistic:
    """Return the statistic of metrics of one ranking, one column each, from one pass over the ranks."""
    ranking = Ranking(columns)
    needs = reduce(or_, [metric.curve_needs(metric) for metric in metrics])

    def compute(batch: WeightBatch) -> Floats:
        curve = RankedCurve(ranking, batch, needs)
        # If all weights are 0, every metric is 0 / 0, which is undefined.
        with np.errstate(invalid="ignore"):
            return np.stack([metric.compute(curve, metric) for metric in metrics]).T

    width = ranking.counts.curve_width
    if needs.ranking:
        width = max(width, ranking.by_confidence.curve_width)
    if needs.optimum:
        width = max(width, ranking.by_loss.curve_width)
    if needs.running:
        width = max(width, ranking.by_confidence.width)
    return Statistic(tuple(metric.key for metric in metrics), columns.units, width, compute)


# Metrics whose `compute` is a function of a `RankedCurve`.
CURVE = Family(_curve_statistic, reads_labels=False, has_convention=True)


@dataclass(frozen=True, eq=False)
class BalancedRanking:
    """Answered rows summed by confidence and true class, and all rows by true class.

    The weight of a class depends on how many of its rows a resample contains.

    Attributes:
        by_class: all rows, by class.
        cells: the answered rows, by confidence (most confident first) and then by class.
        class_of: the class of each cell.
        last: True for the last cell of each confidence, which is an operating point.
    """

    by_class: ClusterSums
    cells: ClusterSums
    class_of: Indices
    last: NDArray[np.bool_]

    @classmethod
    def of(cls, columns: Columns) -> BalancedRanking:
        """Sum some rows."""
        answered = columns.answered
        label, classes = labels.classes(columns.truth)
        key, rank_of, class_of = keys_of_pairs(columns.ranks[0], label[answered])
        return cls(
            by_class=columns.sum_items_by(label, classes),
            cells=Ranking(columns).sum_answers(key, len(class_of)),
            class_of=class_of,
            last=np.r_[np.diff(rank_of) != 0, np.ones(min(len(rank_of), 1), np.bool_)],
        )

    def run(self, batch: WeightBatch) -> tuple[RunningSums, Floats]:
        """Return the running sums in which all classes that occur have the same weight, and N, which is unchanged."""
        (size,) = self.by_class.evaluate(batch)
        total = size.sum(axis=1)
        proportion = ratio(np.broadcast_to(total[:, None], size.shape), size, empty=0.0)
        proportion /= np.maximum((size > 0.0).sum(axis=1), 1)[:, None]
        sums = np.cumsum(self.cells.evaluate(batch) * proportion[:, self.class_of], axis=2)[:, :, self.last]
        ground = np.zeros((*sums.shape[:2], 1))
        count, loss = np.concatenate([ground, sums], axis=2)
        return RunningSums(count, loss), total


def _balanced_statistic(columns: Columns, metrics: Sequence[MetricSpecification]) -> Statistic:
    """Return the statistic of areas in which every true class has the same weight."""
    ranking = BalancedRanking.of(columns)

    def compute(batch: WeightBatch) -> Floats:
        running, total = ranking.run(batch)
        with np.errstate(invalid="ignore"):
            areas = [area_of_run(running, total, metric.convention) for metric in metrics]
        return np.stack(areas).T

    width = 3 * max(len(ranking.class_of), columns.units)
    return Statistic(tuple(metric.key for metric in metrics), columns.units, width, compute)


BALANCED_CURVE = Family(_balanced_statistic, has_convention=True)


def area_of_run(run: RunningSums, total: Floats, convention: str) -> Floats:
    """Return the area under the selective risk of running sums, in any convention."""
    growth = () if convention == "trapezoid" else (GROWTH[convention],)
    sums = integrate_running_sums(run, CurveRequest(risk=True, growth=growth))
    return aurc(sums, total, convention)


def single_item_trapezoid(sums: CurveSums) -> Floats:
    """Return the trapezoid area under the selective risk if each item is a separate operating point."""
    first, last = sums.ends
    return sums.prefix_means[HARMONIC] + 0.5 * (first - last)


def one_block(count: Floats, loss: Floats) -> CurveSums:
    """Return the sums of one tied block, in which the selective risk is the mean loss at every count."""
    return CurveSums(
        count=count,
        loss=loss,
        first_count=count,
        first_loss=loss,
        risk_area=loss,
        loss_area=0.5 * count * loss,
        hull_area=loss,
        prefix_means=dict.fromkeys((HARMONIC, LOGARITHM), loss),
    )


def mixed_area(run: RunningSums) -> Floats:
    """Return the area, in counts, under the selective risk of the best random mixture of operating points.

    A system that applies one threshold with some probability, and another one otherwise, reaches every point between
    the two on the curve of the loss sum. The lower convex hull of that curve, starting at zero answers, is therefore
    the smallest loss at every count. Its slopes are the mean losses of the ranks after an isotonic regression.
    """
    from scipy.optimize import isotonic_regression  # noqa: PLC0415  (few calls need it)

    lowest = np.zeros_like(run.risk_sum)
    for row, (step, loss) in enumerate(zip(run.step, np.diff(run.risk_sum, axis=1), strict=True)):
        filled = step > 0.0
        if filled.any():
            slopes = isotonic_regression(loss[filled] / step[filled], weights=step[filled]).x
            lowest[row, 1:][filled] = slopes * step[filled]
    np.cumsum(lowest, axis=1, out=lowest)
    return prefix_mean_sum(RunningSums(run.count, lowest), continuous=True)


def aurc(sums: CurveSums, total: Floats, convention: str, *, by_item: bool = False) -> Floats:
    """Return the area under selective risk over coverage.

    The trapezoids are between operating points, or with `by_item` between single items.
    """
    if convention == "trapezoid":
        return (single_item_trapezoid(sums) if by_item else sums.risk_area) / total
    if convention == "interpolated":
        return sums.prefix_means[LOGARITHM] / total
    means = sums.prefix_means[HARMONIC]
    if convention == "mean":
        return means / total
    return _stretched(_without_ends(means, sums), total)


def augrc(sums: CurveSums, total: Floats, convention: str) -> Floats:
    """Return the area under generalized risk over coverage."""
    area = sums.loss_area
    if convention == "mean":
        return (area + 0.5 * sums.loss) / total**2
    if convention == "torch-uncertainty":
        return _stretched(area - 0.5 * sums.ends[0], total) / total
    return area / total**2


def aurc_achievable(sums: CurveSums, total: Floats, convention: str) -> Floats:
    """Return the area under the lower convex hull of the operating points."""
    area = sums.hull_area
    first, last = sums.ends
    if convention == "mean":
        # The sum of a straight line over whole counts exceeds its integral by half of its rise.
        return (area + 0.5 * (last - first)) / total
    if convention == "torch-uncertainty":
        return _stretched(area - first, total)
    return area / total


def _without_ends(means: Floats, ended: RunningSums | CurveSums) -> Floats:
    """Return the trapezoid area over single items, from the first to the last, without the part before the first."""
    first, last = ended.ends
    return means - 0.5 * (first + last)


def _stretched(area: Floats, total: Floats) -> Floats:
    """Return ``(area / N) / (1 - 1/N)``, which is undefined for a single item."""
    return ratio(area, total - 1.0)
