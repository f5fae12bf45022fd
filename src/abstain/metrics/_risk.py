"""Risk over coverage, weighed: the tallies of a ranking, and the finishers of every metric that is read off it.

Answered rows are tallied by confidence, most confident first, and by loss, smallest first; N is summed apart, because
it counts abstentions too. All selective metrics of one ranking are finished from one walk along each tally, and only
what the metrics asked for need is built and walked along. What the metrics mean is said in `abstain.metrics.selective`,
how a walk goes in `abstain.resampling`. Coverage is always measured against N, abstentions included. The four
conventions of the risk-coverage area meet here:

- ``trapezoid``: straight lines between working points, flat from 0 to the first one;
- ``interpolated``: inside a plateau the loss sum grows linearly, so the selective risk is a hyperbola,
  integrated exactly;
- ``mean``: the mean of the selective risks after each single item, ties in expectation;
- ``torch-uncertainty``: trapezoid over single items from the first item on, stretched by ``1 / (1 - 1/N)``.

A ranking that knows nothing is one plateau: its area is what any order of the items gives on average. Where every true
class counts alike, rows are tallied by class within each confidence, because the weight of a class depends on how many
of its rows are drawn.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from abstain import _validate, labels
from abstain.metrics._columns import ratio
from abstain.resampling import (
    HARMONIC,
    LOGARITHM,
    ClusterSums,
    CurveRequest,
    CurveSums,
    RunningSums,
    Statistic,
    WeightBatch,
    keys_ascending,
    loss_area,
    prefix_mean_sum,
    truncated,
    walk,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from abstain.metrics._columns import Columns
    from abstain.metrics._specification import MetricSpecification
    from abstain.resampling import Crossing

    Floats = NDArray[np.float64]
    Indices = NDArray[np.intp]

CONVENTIONS = ("trapezoid", "interpolated", "mean", "torch-uncertainty")

# Guards against float noise where a coverage is asked for that a count meets exactly.
TOLERANCE = 1e-9
# Which sum of prefix means an area by single items is made of.
_GROWTH = {"trapezoid": HARMONIC, "interpolated": LOGARITHM, "mean": HARMONIC, "torch-uncertainty": HARMONIC}
# Metrics that are not read off the order of confidences, areas that end at a coverage, and metrics that compare with
# the order of losses.
_UNRANKED = ("cmax", "aurc_optimal", "augrc_optimal")
_TRUNCATED = ("aurc_at_coverage", "augrc_at_coverage")
_RATIO = "prediction_rejection_ratio"
_AGAINST_OPTIMUM = ("aurc_optimal", "augrc_optimal", "eaurc", "eaugrc", _RATIO)
# Areas under the loss sum, for which the selective risk need not be known.
_GENERALIZED = ("augrc", "eaugrc")


@dataclass(frozen=True, eq=False)
class Ranking:
    """The answered rows of some columns, ready to be run along; each tally is made when it is first asked for."""

    columns: Columns

    @cached_property
    def by_confidence(self) -> ClusterSums:
        """Counts and losses by confidence, most confident first."""
        key, distinct = self.columns.ranks
        return self.tally(key, len(distinct))

    @property
    def by_loss(self) -> ClusterSums:
        """Counts and losses by loss, smallest first; the same for every confidence of these rows."""
        return self.columns.once("by_loss", self._by_loss)

    def _by_loss(self) -> ClusterSums:
        key, distinct = keys_ascending(self.columns.loss[self.columns.answered])
        return self.tally(key, len(distinct))

    @cached_property
    def losses(self) -> Floats:
        """The different losses of answered rows, smallest first."""
        return np.unique(self.columns.loss[self.columns.answered])

    @cached_property
    def by_loss_and_rank(self) -> tuple[ClusterSums, Indices, Indices]:
        """Cells of one loss and one rank, smallest loss first: their sums, their ranks, where each loss begins."""
        rank, confidences = self.columns.ranks
        loss, _ = keys_ascending(self.columns.loss[self.columns.answered])
        ranks = np.intp(max(len(confidences), 1))
        distinct, key = np.unique(loss * ranks + rank, return_inverse=True)
        loss_of_cell, rank_of_cell = np.divmod(distinct, ranks)
        starts = np.flatnonzero(np.diff(loss_of_cell, prepend=-1))
        return self.tally(key.astype(np.intp, copy=False), len(distinct)), rank_of_cell, starts

    def tally(self, key: Indices, keys: int) -> ClusterSums:
        """Sum counts and losses by unit and any key of the answered rows."""
        columns, answered = self.columns, self.columns.answered
        return ClusterSums.of_rows(
            unit=columns.cluster[answered],
            key=key,
            columns=[columns.loss[answered]],
            units=columns.units,
            keys=keys,
            weight=None if columns.mass is None else columns.mass[answered],
        )

    @property
    def counts(self) -> ClusterSums:
        """N and K of each unit."""
        return self.columns.once("counts", self._counts)

    def _counts(self) -> ClusterSums:
        columns = self.columns
        return columns.tally(np.zeros(len(columns), np.intp), 1, columns.answered.astype(np.float64))


@dataclass(frozen=True, slots=True)
class Sought:
    """What the metrics of a measure need of a walk along confidences.

    Attributes:
        asked: beside counts, losses and areas.
        targets: the coverages whose crossing is needed, ascending.
    """

    asked: CurveRequest
    targets: tuple[float, ...] = ()

    @classmethod
    def by(cls, metrics: Sequence[MetricSpecification]) -> Sought:
        """Return what metrics need."""
        names = {area_of(metric) for metric in metrics}
        ends = {metric.value for metric in metrics if metric.name in _TRUNCATED}
        grid = {metric.value - TOLERANCE for metric in metrics if metric.name == "risk_at_coverage"}
        targets = sorted([*((end, True) for end in ends), *((point, False) for point in grid)])
        whole = {convention_of(metric) for metric in metrics if area_of(metric) in ("aurc", "eaurc", "auarc")}
        hulls = {convention_of(metric) for metric in metrics if metric.name == "aurc_achievable"}
        asked = CurveRequest(
            risk=not names <= {*_UNRANKED, *_GENERALIZED},
            hull=bool(hulls - {"interpolated"}),
            growth=tuple(sorted({_GROWTH[way] for way in whole - {"trapezoid"}})),
            bounds=tuple(sorted({m.value + TOLERANCE for m in metrics if m.name == "coverage_at_risk"})),
            areas_at=tuple(areas for _, areas in targets),
        )
        return cls(asked, tuple(coverage for coverage, _ in targets))


class Work:
    """One ranking in one batch; what several metrics share is worked out once."""

    def __init__(self, ranking: Ranking, batch: WeightBatch, sought: Sought | None = None) -> None:
        self.ranking = ranking
        self.batch = batch
        self.sought = Sought(CurveRequest(risk=True)) if sought is None else sought
        # The same for every confidence of a batch.
        counts = ranking.counts
        self.total, self.answered = batch.once(id(counts), lambda: counts.weigh(batch)[:, :, 0])
        self._values: dict[tuple[str, str], Floats] = {}
        self._cuts: dict[float, tuple[Floats, Floats, Floats]] = {}

    @cached_property
    def walked(self) -> CurveSums:
        """The walk along confidences."""
        targets = np.array(self.sought.targets)[:, None] * self.total
        return walk(self.ranking.by_confidence, self.batch, self.sought.asked, targets)

    @cached_property
    def run(self) -> RunningSums:
        """The run along confidences, for the metrics that need all of it."""
        return RunningSums.of(self.ranking.by_confidence, self.batch.weights)

    @cached_property
    def cmax(self) -> Floats:
        """K / N."""
        return self.answered / self.total

    def area(self, name: str, convention: str) -> Floats:
        """Return a whole area, worked out once; those of the optimum once for all confidences of a batch."""
        if (name, convention) not in self._values:
            self._values[name, convention] = _AREAS[name](self, convention)
        return self._values[name, convention]

    def optimum(self, name: str, convention: str) -> Floats:
        """Return the area of the perfect ranking; or, by the name "alike", whether all losses are the same."""
        tally = self.ranking.by_loss

        def work() -> dict[str, Floats]:
            walked = walk(tally, self.batch, CurveRequest(growth=(_GROWTH[convention],), alike=True))
            return {
                "aurc": aurc(walked, self.total, convention, by_item=True),
                "augrc": augrc(walked, self.total, convention),
                "alike": (walked.first_count == walked.count).astype(np.float64),
            }

        found: Floats = self.batch.once((id(tally), convention), work)[name]
        return found

    def rejection_ratio(self, name: str, convention: str) -> Floats:
        """Return how much of what a perfect ranking gains over a random one this ranking gains; NaN without a gain."""
        one = one_plateau(self.walked)
        random = (aurc if name == "aurc" else augrc)(one, self.total, convention)
        gain, most = random - self.area(name, convention), random - self.area(f"{name}_optimal", convention)
        return np.where(self.optimum("alike", convention) > 0.0, np.nan, ratio(gain, most))

    def crossing(self, coverage: float) -> Crossing:
        """Return where a coverage is crossed."""
        return self.walked.crossings[self.sought.targets.index(coverage)]

    def limit(self, coverage: float | Floats) -> Floats:
        """Return the count at which an area ends that is cut at a coverage."""
        return np.minimum(coverage * self.total, self.walked.count)

    def risk_at(self, coverage: float) -> Floats:
        """Return the selective risk at the first working point that reaches a coverage; NaN where none does."""
        crossing = self.crossing(coverage - TOLERANCE)
        return crossing.loss_at / crossing.count_at

    def cut(self, coverage: float) -> tuple[Floats, Floats, Floats]:
        """Return the count at which areas end that are cut at a coverage, and both areas up to there."""
        if coverage not in self._cuts:
            limit = self.limit(coverage)
            self._cuts[coverage] = (limit, *cut_areas(self.walked, self.crossing(coverage), limit))
        return self._cuts[coverage]

    def aurc_at(self, coverage: float, convention: str) -> Floats:
        """Return the AURC cut at a coverage."""
        limit, area, _ = self.cut(coverage)
        if convention == "trapezoid":
            return area / self.total
        return aurc_at(self.run, limit, self.total, convention)

    def augrc_at(self, coverage: float, convention: str) -> Floats:
        """Return the AUGRC cut at a coverage."""
        limit, _, area = self.cut(coverage)
        if convention == "mean":
            return mean_augrc_at(self.run, limit, self.total)
        return augrc_at(self.walked, limit, area, self.total, convention)

    def coverage_at_risk(self, bound: float) -> Floats:
        """Return the largest coverage whose selective risk keeps to a bound, 0 where none does."""
        return ratio(self.walked.within[bound + TOLERANCE], self.total)


_AREAS: dict[str, Callable[[Work, str], Floats]] = {
    "aurc": lambda work, way: aurc(work.walked, work.total, way),
    "augrc": lambda work, way: augrc(work.walked, work.total, way),
    "aurc_optimal": lambda work, way: work.optimum("aurc", way),
    "augrc_optimal": lambda work, way: work.optimum("augrc", way),
    "eaurc": lambda work, way: work.area("aurc", way) - work.area("aurc_optimal", way),
    "eaugrc": lambda work, way: work.area("augrc", way) - work.area("augrc_optimal", way),
    "auarc": lambda work, way: (
        aurc(one_plateau(work.walked, risk=1.0), work.total, way) - work.area("aurc", way)
    ),
    "aurc_achievable": lambda work, way: (
        mixed_area(work.run) / work.total
        if way == "interpolated"
        else aurc_achievable(work.walked, work.total, way)
    ),
}
_AT: dict[str, Callable[[Work, Any, str], Floats]] = {
    "cmax": lambda work, _, __: work.cmax,
    "aurc_at_coverage": lambda work, at, way: work.aurc_at(at, way),
    "augrc_at_coverage": lambda work, at, way: work.augrc_at(at, way),
    "risk_at_coverage": lambda work, at, _: work.risk_at(at),
    "coverage_at_risk": lambda work, bound, _: work.coverage_at_risk(bound),
    _RATIO: lambda work, area, way: work.rejection_ratio(area, way),
}


def risk_measure(columns: Columns, metrics: Sequence[MetricSpecification]) -> Statistic:
    """Return the measure of selective metrics of one ranking, one column each, all from the same walks."""
    ranking, sought = Ranking(columns), Sought.by(metrics)

    def finish(batch: WeightBatch) -> Floats:
        work = Work(ranking, batch, sought)
        # Weights that leave no row at all make 0 / 0 of every metric, which is what is undefined there.
        with np.errstate(invalid="ignore"):
            return np.stack([_value(work, metric) for metric in metrics]).T

    tallies = [ranking.counts]
    if any(metric.name not in _UNRANKED for metric in metrics):
        tallies.append(ranking.by_confidence)
    if any(metric.name in _AGAINST_OPTIMUM for metric in metrics):
        tallies.append(ranking.by_loss)
    width = max(tally.walk_width for tally in tallies)
    if any(map(_needs_run, metrics)):
        # Running sums of every rank are kept, and not only walked along.
        width = max(width, ranking.by_confidence.width)
    return Statistic(tuple(metric.key for metric in metrics), columns.units, width, finish)


def _needs_run(metric: MetricSpecification) -> bool:
    convention = convention_of(metric)
    if metric.name == "aurc_achievable":
        return convention == "interpolated"
    return metric.name in _TRUNCATED and convention != "trapezoid"


@dataclass(frozen=True, eq=False)
class BalancedRanking:
    """Answered rows by confidence and, within each, by true class; and how many rows each class has in all.

    Attributes:
        by_class: all rows, by class.
        cells: the answered rows, by confidence (most confident first) and then by class.
        class_of: the class of each of these cells.
        last: True for the last cell of each confidence: the working points.
    """

    by_class: ClusterSums
    cells: ClusterSums
    class_of: Indices
    last: NDArray[np.bool_]

    @classmethod
    def of(cls, columns: Columns) -> BalancedRanking:
        """Tally some rows."""
        answered = columns.answered
        label, classes = labels.classes(columns.truth)
        rank = columns.ranks[0]
        distinct, key = np.unique(rank * np.intp(max(classes, 1)) + label[answered], return_inverse=True)
        rank_of, class_of = np.divmod(distinct, max(classes, 1))
        return cls(
            by_class=columns.tally(label, classes),
            cells=Ranking(columns).tally(key.astype(np.intp, copy=False), len(distinct)),
            class_of=class_of,
            last=np.r_[np.diff(rank_of) != 0, np.ones(min(len(rank_of), 1), np.bool_)],
        )

    def run(self, batch: WeightBatch) -> tuple[RunningSums, Floats]:
        """Run along confidences with all classes that have a row counting alike; with N, which stays as it is."""
        (size,) = self.by_class.weigh(batch)
        total = size.sum(axis=1)
        share = ratio(np.broadcast_to(total[:, None], size.shape), size, empty=0.0)
        share /= np.maximum((size > 0.0).sum(axis=1), 1)[:, None]
        sums = np.cumsum(self.cells.weigh(batch) * share[:, self.class_of], axis=2)[:, :, self.last]
        ground = np.zeros((*sums.shape[:2], 1))
        count, loss = np.concatenate([ground, sums], axis=2)
        return RunningSums(count, loss), total


def balanced_risk_measure(columns: Columns, metrics: Sequence[MetricSpecification]) -> Statistic:
    """Return the measure of areas in which every true class counts alike."""
    ranking = BalancedRanking.of(columns)

    def finish(batch: WeightBatch) -> Floats:
        run, total = ranking.run(batch)
        with np.errstate(invalid="ignore"):
            areas = [area_of_run(run, total, convention_of(metric)) for metric in metrics]
        return np.stack(areas).T

    width = 3 * max(len(ranking.class_of), columns.units)
    return Statistic(tuple(metric.key for metric in metrics), columns.units, width, finish)


def area_of_run(run: RunningSums, total: Floats, convention: str) -> Floats:
    """Return the area under the selective risk of running sums, in any convention."""
    if convention == "trapezoid":
        return 0.5 * np.vecdot(run.step, run.risk[:, 1:] + run.risk[:, :-1]) / total
    growth = _GROWTH[convention]
    whole = replace(
        one_plateau_of(run.last_count, run.last_risk_sum),
        first_count=run.count.take(run.row_start + run.first),
        first_loss=run.risk_sum.take(run.row_start + run.first),
        prefix_means={growth: prefix_mean_sum(run, continuous=growth == LOGARITHM)},
    )
    return aurc(whole, total, convention)


def area_of(metric: MetricSpecification) -> str:
    """Return the area that a selective metric is made of, or its own name."""
    return str(metric.value) if metric.name == _RATIO else metric.name


def convention_of(metric: MetricSpecification) -> str:
    """Return how a selective metric is integrated."""
    return str(metric.settings.get("convention", "trapezoid"))


def growth_of(convention: str) -> str:
    """Return which sum of prefix means an area by single items is made of."""
    return _GROWTH[convention]


def in_convention(metric: MetricSpecification, convention: str) -> MetricSpecification:
    """Return a selective metric integrated in another convention; any other metric as it is."""
    if metric.measure not in (risk_measure, balanced_risk_measure):
        return metric
    return replace(metric, settings={"convention": _validate.choice(convention, "convention", CONVENTIONS)})


def _value(work: Work, metric: MetricSpecification) -> Floats:
    convention = convention_of(metric)
    if metric.name in _AREAS:
        return work.area(metric.name, convention)
    return _AT[metric.name](work, metric.value, convention)


def cut_areas(walked: CurveSums, crossing: Crossing, limit: Floats) -> tuple[Floats, Floats]:
    """Return both areas (risk, loss sum) up to the count `limit`, interpolated between ranks to land there."""
    reached = ~np.isnan(crossing.count_at)
    height, above = limit - crossing.count_below, crossing.count_at - crossing.count_below
    share = height / np.maximum(above, np.finfo(np.float64).tiny)
    risk_at = crossing.loss_at / crossing.count_at
    # Below the first working point the risk is flat.
    risk_below = np.divide(
        crossing.loss_below, crossing.count_below, out=risk_at.copy(), where=crossing.count_below > 0
    )
    areas = []
    for below, at, before, whole in (
        (risk_below, risk_at, crossing.risk_area_below, walked.risk_area),
        (crossing.loss_below, crossing.loss_at, crossing.loss_area_below, walked.loss_area),
    ):
        areas.append(np.where(reached, before + height * (below + 0.5 * share * (at - below)), whole))
    return areas[0], areas[1]


def loss_at(walked: CurveSums, crossing: Crossing, limit: Floats) -> Floats:
    """Return the loss sum at the count `limit`, linear inside the rank that is cut."""
    above = np.maximum(crossing.count_at - crossing.count_below, np.finfo(np.float64).tiny)
    share = (limit - crossing.count_below) / above
    cut = crossing.loss_below + share * (crossing.loss_at - crossing.loss_below)
    return np.where(np.isnan(crossing.count_at), walked.loss, cut)


def single_item_trapezoid(walked: CurveSums) -> Floats:
    """Return the trapezoid area of selective risk when each item is a working point of its own."""
    first, last = walked.ends
    return walked.prefix_means[HARMONIC] + 0.5 * (first - last)


def one_plateau(walked: CurveSums, *, risk: float | None = None) -> CurveSums:
    """Return the walk along the same items when all have one confidence, with their losses or with one `risk`."""
    return one_plateau_of(walked.count, walked.loss if risk is None else risk * walked.count)


def one_plateau_of(count: Floats, loss: Floats) -> CurveSums:
    """Return the walk along a single rank: the selective risk is the mean loss from the first item to the last."""
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
    """Return the area, in counts, under the selective risk of the best random mixture of working points.

    Who answers an item at one threshold with some probability and at another one otherwise reaches every point between
    the two on the curve of the loss sum. So the lower convex hull of that curve, from where nothing is answered, is the
    least loss at every count. Its slopes are the mean losses of the ranks after an isotonic regression.
    """
    from scipy.optimize import isotonic_regression  # noqa: PLC0415  (few calls ask for it)

    lowest = np.zeros_like(run.risk_sum)
    for row, (step, loss) in enumerate(zip(run.step, np.diff(run.risk_sum, axis=1), strict=True)):
        held = step > 0.0
        if held.any():
            slopes = isotonic_regression(loss[held] / step[held], weights=step[held]).x
            lowest[row, 1:][held] = slopes * step[held]
    np.cumsum(lowest, axis=1, out=lowest)
    return prefix_mean_sum(RunningSums(run.count, lowest), continuous=True)


def aurc(walked: CurveSums, total: Floats, convention: str, *, by_item: bool = False) -> Floats:
    """Return the area under selective risk over coverage; a trapezoid goes by working points, or by single items."""
    if convention == "trapezoid":
        return (single_item_trapezoid(walked) if by_item else walked.risk_area) / total
    if convention == "interpolated":
        return walked.prefix_means[LOGARITHM] / total
    means = walked.prefix_means[HARMONIC]
    if convention == "mean":
        return means / total
    return _stretched(_without_ends(means, walked), total)


def augrc(walked: CurveSums, total: Floats, convention: str) -> Floats:
    """Return the area under generalized risk over coverage."""
    area = walked.loss_area
    if convention == "mean":
        return (area + 0.5 * walked.loss) / total**2
    if convention == "torch-uncertainty":
        return _stretched(area - 0.5 * walked.ends[0], total) / total
    return area / total**2


def aurc_achievable(walked: CurveSums, total: Floats, convention: str) -> Floats:
    """Return the area under the lower convex hull of the working points."""
    area = walked.hull_area
    first, last = walked.ends
    if convention == "mean":
        # The sum over whole counts of a line exceeds its integral by half of what it climbs.
        return (area + 0.5 * (last - first)) / total
    if convention == "torch-uncertainty":
        return _stretched(area - first, total)
    return area / total


def aurc_at(run: RunningSums, limit: Floats, total: Floats, convention: str) -> Floats:
    """Return the AURC cut at the count `limit` in a convention that looks inside the rank that is cut."""
    if convention == "interpolated":
        return prefix_mean_sum(truncated(run, limit), continuous=True) / total
    whole, done, after, rest = _whole_items(run, limit)
    next_risk = after.ends[1]
    if convention == "mean":
        return (prefix_mean_sum(done) + rest * next_risk) / total
    here = done.ends[1]
    partial = rest * (here + 0.5 * rest * (next_risk - here))
    inner = _without_ends(prefix_mean_sum(done), done)
    return _stretched(np.where(whole >= 1.0, inner + partial, 0.0), total)


def augrc_at(walked: CurveSums, limit: Floats, area: Floats, total: Floats, convention: str) -> Floats:
    """Return the AUGRC cut at the count `limit`; `area` is that under the loss sum, in counts."""
    if convention == "torch-uncertainty":
        from_first = area - 0.5 * walked.ends[0]
        return _stretched(np.where(limit >= 1.0, from_first, 0.0), total) / total
    return area / total**2


def mean_augrc_at(run: RunningSums, limit: Floats, total: Floats) -> Floats:
    """Return the AUGRC cut at the count `limit`, as the mean over whole items and what is left of the next."""
    _, done, after, rest = _whole_items(run, limit)
    return (loss_area(done) + 0.5 * done.last_risk_sum + rest * after.last_risk_sum) / total**2


def _whole_items(run: RunningSums, limit: Floats) -> tuple[Floats, RunningSums, RunningSums, Floats]:
    """Split a limit into whole items and a rest: their number, the ranking to there, to one item further, the rest."""
    whole = np.floor(limit + TOLERANCE)
    rest = np.maximum(limit - whole, 0.0)
    return whole, truncated(run, whole), truncated(run, whole + 1.0), rest


def _without_ends(means: Floats, ended: RunningSums | CurveSums) -> Floats:
    """The trapezoid over single items from the first to the last, without the flat piece before the first."""
    first, last = ended.ends
    return means - 0.5 * (first + last)


def _stretched(area: Floats, total: Floats) -> Floats:
    # (area / N) / (1 - 1/N); a single item leaves no range to integrate over.
    return ratio(area, total - 1.0)
