"""Risk over coverage, weighed: the tallies of a ranking, and the finishers of every metric that is read off it.

Answered rows are tallied by confidence, most confident first, and by loss, smallest first; N is summed apart, because
it counts abstentions too. All selective metrics of one ranking are finished from one run along each tally, and only
what the metrics asked for need is built and run. What the metrics mean is said in `abstain.metrics.selective`.

Below stand the kernels: areas, hulls and points of a ranking that was run along, for a whole batch of weights at once.
Everything there is in counts: an area over coverage is an area over the count divided by N, one over generalized risk
is divided by N again. Place 0 is the ground, where nothing is accepted; a rank without weight repeats the one below it
and so adds nothing. Coverage is always measured against N, abstentions included. The four conventions of the
risk-coverage area meet there:

- ``trapezoid``: straight lines between working points, flat from 0 to the first one;
- ``interpolated``: inside a plateau the loss sum grows linearly, so the selective risk is a hyperbola,
  integrated exactly;
- ``mean``: the mean of the selective risks after each single item, ties in expectation;
- ``torch-uncertainty``: trapezoid over single items from the first item on, stretched by ``1 / (1 - 1/N)``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from abstain import _validate
from abstain.metrics._columns import ratio
from abstain.tally import Batch, Measure, Tally, keys_ascending, keys_descending, total_by

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from abstain.metrics._columns import Columns
    from abstain.metrics._specification import MetricSpecification

    Floats = NDArray[np.float64]
    Indices = NDArray[np.intp]

CONVENTIONS = ("trapezoid", "interpolated", "mean", "torch-uncertainty")

# Guards against float noise where a coverage is asked for that a count meets exactly.
TOLERANCE = 1e-9
# A run of more numbers than this is worked on in stretches, so that its length costs no memory beyond its own.
_BLOCK = 1 << 22
_TABLE = 1 << 16
_NEAR = 64
# Metrics that are not read off the order of confidences, areas that end at a coverage, and metrics that compare with
# the order of losses.
_UNRANKED = ("cmax", "aurc_optimal", "augrc_optimal")
_TRUNCATED = ("aurc_at_coverage", "augrc_at_coverage")
_AGAINST_OPTIMUM = ("aurc_optimal", "augrc_optimal", "eaurc", "eaugrc")


@dataclass(frozen=True, eq=False)
class Ranking:
    """The answered rows of some columns, ready to be run along; each tally is made when it is first asked for."""

    columns: Columns

    @cached_property
    def by_confidence(self) -> Tally:
        """Counts and losses by confidence, most confident first."""
        key, distinct = keys_descending(self.columns.confidence[self.columns.answered])
        return self.tally(key, len(distinct))

    @property
    def by_loss(self) -> Tally:
        """Counts and losses by loss, smallest first; the same for every confidence of these rows."""
        return self.columns.once("by_loss", self._by_loss)

    def _by_loss(self) -> Tally:
        key, distinct = keys_ascending(self.columns.loss[self.columns.answered])
        return self.tally(key, len(distinct))

    def tally(self, key: Indices, keys: int) -> Tally:
        """Sum counts and losses by unit and any key of the answered rows."""
        columns, answered = self.columns, self.columns.answered
        return Tally.of_rows(
            unit=columns.cluster[answered],
            key=key,
            columns=[columns.loss[answered]],
            units=columns.units,
            keys=keys,
            weight=None if columns.mass is None else columns.mass[answered],
        )

    @property
    def counts(self) -> Floats:
        """N and K of each unit, (units, 2)."""
        return self.columns.once("counts", self._counts)

    def _counts(self) -> Floats:
        columns = self.columns
        kept = (columns.weight, columns.weight * columns.answered)
        return np.stack([total_by(columns.cluster, mass, columns.units) for mass in kept], axis=1)


class Work:
    """One ranking in one batch; what several metrics share is worked out once."""

    def __init__(
        self, ranking: Ranking, batch: Batch, coverages: Sequence[float] = (), ends: Sequence[float] = ()
    ) -> None:
        self.ranking = ranking
        self.batch = batch
        self.coverages = list(coverages)
        self.ends = list(ends)
        self.total, self.answered = (batch.weights @ ranking.counts).T
        self._values: dict[tuple[str, str], Floats] = {}
        self._cuts: dict[float, tuple[Floats, Floats, Floats]] = {}

    @cached_property
    def run(self) -> Run:
        """The run along confidences."""
        return Run.of(self.ranking.by_confidence, self.batch.weights)

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
        """Return the area of the perfect ranking."""
        tally = self.ranking.by_loss

        def work() -> dict[str, Floats]:
            run = Run.of(tally, self.batch.weights)
            return {
                "aurc": aurc(run, self.total, convention, by_item=True),
                "augrc": augrc(run, self.total, convention),
            }

        found: Floats = self.batch.once((id(tally), convention), work)[name]
        return found

    def limit(self, coverage: float | Floats) -> Floats:
        """Return the count at which an area ends that is cut at a coverage."""
        return np.minimum(coverage * self.total, self.run.last_count)

    @cached_property
    def ranks(self) -> Indices:
        """The ranks on which the truncated areas end, then those that reach each coverage: one search for all."""
        grid = self.total[:, None] * (np.array(self.coverages) - TOLERANCE)
        return self.run.reaching(np.column_stack([*map(self.limit, self.ends), grid]))

    def cut(self, coverage: float) -> tuple[Floats, Floats, Floats]:
        """Return the count at which areas end that are cut at a coverage, and both areas up to there."""
        if coverage not in self._cuts:
            limit, rank = self.limit(coverage), self.ranks[:, self.ends.index(coverage)]
            self._cuts[coverage] = (limit, *cut_areas(self.run, limit, rank))
        return self._cuts[coverage]

    @cached_property
    def risks(self) -> Floats:
        """The selective risk at the first working point that reaches each coverage; NaN where none does."""
        run, reached = self.run, self.ranks[:, len(self.ends) :]
        columns = run.count.shape[1]
        found = run.risk.take(np.minimum(reached, columns - 1) + run.row_start[:, None])
        return np.where((reached < columns) & (self.total[:, None] > 0), found, np.nan)

    def coverage_at_risk(self, bound: float) -> Floats:
        """Return the largest coverage whose selective risk keeps to a bound, 0 where none does."""
        within = self.run.risk <= bound + TOLERANCE
        reached = np.max(np.where(within, self.run.count, 0.0), axis=1, initial=0.0)
        return ratio(reached, self.total)


_AREAS: dict[str, Callable[[Work, str], Floats]] = {
    "aurc": lambda work, way: aurc(work.run, work.total, way),
    "augrc": lambda work, way: augrc(work.run, work.total, way),
    "aurc_optimal": lambda work, way: work.optimum("aurc", way),
    "augrc_optimal": lambda work, way: work.optimum("augrc", way),
    "eaurc": lambda work, way: work.area("aurc", way) - work.area("aurc_optimal", way),
    "eaugrc": lambda work, way: work.area("augrc", way) - work.area("augrc_optimal", way),
    "aurc_achievable": lambda work, way: aurc_achievable(work.run, work.total, way),
}
_AT: dict[str, Callable[[Work, Any, str], Floats]] = {
    "cmax": lambda work, _, __: work.cmax,
    "aurc_at_coverage": lambda work, at, way: aurc_at(
        work.run, work.cut(at)[0], work.cut(at)[1], work.total, way
    ),
    "augrc_at_coverage": lambda work, at, way: augrc_at(
        work.run, work.cut(at)[0], work.cut(at)[2], work.total, way
    ),
    "risk_at_coverage": lambda work, at, _: work.risks[:, work.coverages.index(at)],
    "coverage_at_risk": lambda work, bound, _: work.coverage_at_risk(bound),
}


def risk_measure(columns: Columns, metrics: Sequence[MetricSpecification]) -> Measure:
    """Return the measure of selective metrics of one ranking, one column each, all from the same runs."""
    ranking = Ranking(columns)
    coverages = [metric.value for metric in metrics if metric.name == "risk_at_coverage"]
    ends = list(dict.fromkeys(metric.value for metric in metrics if metric.name in _TRUNCATED))

    def finish(batch: Batch) -> Floats:
        work = Work(ranking, batch, coverages, ends)
        # Weights that leave no row at all make 0 / 0 of every metric, which is what is undefined there.
        with np.errstate(invalid="ignore"):
            return np.stack([_value(work, metric) for metric in metrics], axis=1)

    widths = [columns.units]
    if any(metric.name not in _UNRANKED for metric in metrics):
        widths.append(ranking.by_confidence.width)
    if any(metric.name in _AGAINST_OPTIMUM for metric in metrics):
        widths.append(ranking.by_loss.width)
    return Measure(tuple(metric.key for metric in metrics), columns.units, max(widths), finish)


def in_convention(metric: MetricSpecification, convention: str) -> MetricSpecification:
    """Return a selective metric integrated in another convention; any other metric as it is."""
    if metric.measure is not risk_measure:
        return metric
    return replace(metric, settings={"convention": _validate.choice(convention, "convention", CONVENTIONS)})


def _value(work: Work, metric: MetricSpecification) -> Floats:
    convention = metric.settings.get("convention", "trapezoid")
    if metric.name in _AREAS:
        return work.area(metric.name, convention)
    return _AT[metric.name](work, metric.value, convention)


@dataclass(frozen=True, eq=False)
class Run:
    """Running sums along ranks, one row per weight vector: place 0 is the ground, then every rank."""

    count: Floats
    risk_sum: Floats
    known_area: Callable[[], Floats | None] = lambda: None

    @classmethod
    def of(cls, tally: Tally, weights: Floats) -> Run:
        """Run along a tally of counts and losses."""
        count, risk_sum = tally.run(weights)
        return cls(count, risk_sum, partial(tally.area, weights))

    @property
    def last_count(self) -> Floats:
        """How many items there are on all ranks."""
        return self.count[:, -1]

    @property
    def last_risk_sum(self) -> Floats:
        """How much loss there is on all ranks."""
        return self.risk_sum[:, -1]

    @cached_property
    def row_start(self) -> Indices:
        """Where each row begins in the flattened sums, so that one index finds a place in all of them."""
        return np.arange(len(self.count)) * self.count.shape[1]

    @cached_property
    def first(self) -> Indices:
        """The first rank with any weight; the ground where there is none."""
        # It is nearly always among the first few.
        near = self.count[:, :_NEAR] > 0
        return np.argmax(near if near[:, -1].all() else self.count > 0, axis=1)

    @cached_property
    def step(self) -> Floats:
        """How many items each rank adds."""
        return np.diff(self.count, axis=1)

    @cached_property
    def risk(self) -> Floats:
        """Loss sum / count on every rank; up to the first weighted one, where nothing is accepted, its risk."""
        with np.errstate(invalid="ignore"):
            risk = self.risk_sum / self.count
        first = risk.take(self.row_start + self.first)
        leading = max(int(self.first.max(initial=0)), 1)
        np.copyto(risk[:, :leading], first[:, None], where=self.count[:, :leading] <= 0)
        return np.nan_to_num(risk, copy=False) if np.isnan(first).any() else risk

    @cached_property
    def ends(self) -> tuple[Floats, Floats]:
        """The selective risk on the first weighted rank and on the last; 0 where nothing is accepted."""
        place = self.row_start + self.first
        tiny = np.finfo(np.float64).tiny
        return (
            self.risk_sum.take(place) / np.maximum(self.count.take(place), tiny),
            self.last_risk_sum / np.maximum(self.last_count, tiny),
        )

    def reaching(self, target: Floats) -> Indices:
        """Return the first rank whose count reaches each target (batch, targets); one beyond the last if none does."""
        rows, columns = self.count.shape
        if columns > 4096 or rows == 1:
            return np.stack([np.searchsorted(*pair) for pair in zip(self.count, target, strict=True)])
        # One sorted search for all rows: each row is lifted above the one before it.
        lift = (np.arange(rows) * (max(float(self.last_count.max()), float(target.max())) + 1.0))[:, None]
        found = np.searchsorted((self.count + lift).ravel(), (target + lift).ravel())
        return found.reshape(target.shape) - self.row_start[:, None]


def risk_area(run: Run) -> Floats:
    """Return the trapezoid area of the selective risk over the count, flat up to the first working point."""
    return 0.5 * _trapezoids(run.step, run.risk)


def loss_area(run: Run) -> Floats:
    """Return the area under the loss sum over the count; the same by item and by plateau."""
    known = run.known_area()
    return 0.5 * _trapezoids(run.step, run.risk_sum) if known is None else known


def _trapezoids(step: Floats, values: Floats) -> Floats:
    """Return, for each row, twice the area under values that are joined by straight lines."""
    return np.vecdot(step, values[:, 1:]) + np.vecdot(step, values[:, :-1])


def cut_areas(run: Run, limit: Floats, rank: Indices) -> tuple[Floats, Floats]:
    """Return both areas (risk, loss sum) up to the count `limit`, which lies on `rank`, interpolated to land there."""
    cut = Cut(run, limit, rank)
    # Steps beyond the limit have no width, so that columns beyond the last rank that is cut need not be looked at; the
    # step that is cut ends lower than its rank by the share that is cut off.
    end = int(rank.max()) + 1
    step = np.diff(np.minimum(run.count[:, :end], limit[:, None]), axis=1)
    above = (limit - cut.count_below) * (1.0 - cut.share)
    areas = [
        0.5 * (_trapezoids(step, values[:, :end]) - above * (values.take(cut.at) - values.take(cut.below)))
        for values in (run.risk, run.risk_sum)
    ]
    return areas[0], areas[1]


class Cut:
    """Where a ranking is cut: the places of the rank and of the one below, and which share of the rank remains."""

    def __init__(self, run: Run, limit: Floats, rank: Indices) -> None:
        self.at = run.row_start + rank
        # Only a limit of 0 is reached on the ground, below which there is nothing.
        self.below = self.at - (rank > 0)
        self.count_below = run.count.take(self.below)
        height = run.count.take(self.at) - self.count_below
        self.share = (limit - self.count_below) / np.maximum(height, np.finfo(np.float64).tiny)


def truncated(run: Run, limit: Floats) -> Run:
    """Cut the ranking itself at the count `limit`, with the loss sum linear inside the rank that is cut."""
    limit = np.minimum(limit, run.last_count)
    cut = Cut(run, limit, run.reaching(limit[:, None])[:, 0])
    below = run.risk_sum.take(cut.below)
    cut_sum = below + cut.share * (run.risk_sum.take(cut.at) - below)
    beyond = run.count > limit[:, None]
    return Run(np.minimum(run.count, limit[:, None]), np.where(beyond, cut_sum[:, None], run.risk_sum))


def harmonic(count: Floats) -> Floats:
    """Return the harmonic numbers less that of the smallest count, continued to fractions by the digamma function.

    Counts of rows are looked up in a table. Large weights would need a table far beyond the counts themselves; for
    them, too, the digamma function serves, and what it adds by rounding is the same for all.
    """
    low, high = (float(count.min()), float(count.max())) if count.size else (0.0, 0.0)
    if high - low <= _TABLE + 4 * count.size and (count == np.floor(count)).all():
        table = np.zeros(int(high - low) + 1)
        np.cumsum(1.0 / np.arange(low + 1.0, high + 1.0), out=table[1:])
        return table.take((count - low).astype(np.intp))
    from scipy.special import digamma  # noqa: PLC0415  (only large and fractional weights need it)

    values: Floats = digamma(count + 1.0) - digamma(low + 1.0)
    return values


def logarithm(count: Floats) -> Floats:
    """Return log(count), 0 at 0: nothing lies below the first rank, so its term vanishes anyway."""
    return np.log(count, out=np.zeros_like(count), where=count > 0)


def prefix_mean_sum(run: Run, *, continuous: bool = False) -> Floats:
    """Return the sum of selective risks over single items, ties in expectation; or its integral when `continuous`.

    After ``k0`` items with loss sum ``S0``, a rank of ``m`` items of mean loss ``l`` adds
    ``m*l + (S0 - k0*l) * (H[k0 + m] - H[k0])``, where the logarithm takes the place of ``H`` in the integral.
    """
    total = run.last_risk_sum.copy()
    for part in _blocks(run):
        before_count, before_sum = part.count[:, :-1], part.risk_sum[:, :-1]
        mean = np.diff(part.risk_sum, axis=1) / np.maximum(part.step, np.finfo(np.float64).tiny)
        growth = logarithm(part.count) if continuous else harmonic(part.count)
        total += np.vecdot(before_sum - before_count * mean, np.diff(growth, axis=1))
    return total


def _blocks(run: Run) -> Iterator[Run]:
    """Yield stretches of a ranking, each from where the one before ends; all of it at once unless it is very long."""
    rows, columns = run.count.shape
    ranks = max(_BLOCK // max(rows, 1), 1)
    if columns - 1 <= ranks:
        yield run
        return
    for start in range(0, columns - 1, ranks):
        stretch = slice(start, start + ranks + 1)
        yield Run(run.count[:, stretch], run.risk_sum[:, stretch])


def single_item_trapezoid(run: Run) -> Floats:
    """Return the trapezoid area of selective risk when each item is a working point of its own."""
    first, last = run.ends
    return prefix_mean_sum(run) + 0.5 * (first - last)


def hull_area(run: Run) -> Floats:
    """Return the area under the lower convex hull of the (coverage, risk) points, in counts, flat below the first.

    The hulls of all weight vectors are found together. A point on or above the line between any two other points
    is no corner of the hull, so all such points can be dropped at once, whoever else is dropped with them:
    first those above the two lines that join the lowest point to the ends, then those above lines between
    neighbours, until none is. Lines between far neighbours come first where many points are left: they clear
    what would else be taken down point by point.
    """
    rows = len(run.count)
    x, y, row = _hull_candidates(run)
    reach = max(int(np.bincount(row, minlength=1).max()) // 16, 1)
    while True:
        keep = np.flatnonzero(_below_lines(x, y, row, reach))
        if len(keep) < len(x):
            x, y, row = x.take(keep), y.take(keep), row.take(keep)
        elif reach == 1:
            break
        reach = max(reach // 4, 1)
    starts = np.r_[True, row[1:] != row[:-1]][: len(row)]
    pieces = x * y
    pieces[1:] = np.where(starts[1:], pieces[1:], 0.5 * (x[1:] - x[:-1]) * (y[1:] + y[:-1]))
    return np.bincount(row, weights=pieces, minlength=rows).astype(np.float64)


def _hull_candidates(run: Run) -> tuple[Floats, Floats, Indices]:
    """Return the distinct points that are ends, lowest, or below a line from an end to the lowest; with their rows."""
    count, risk, start, columns = run.count, run.risk, run.row_start, run.count.shape[1]
    lowest = np.maximum(np.argmin(risk, axis=1), run.first)
    corners = (start + run.first, start + columns - 1, start + lowest)
    x, y = count.take(corners[2]), risk.take(corners[2])
    below = np.zeros(count.shape, np.bool_)
    # Left of the lowest point the line from the first counts, right of it the one to the last; each runs below every
    # point on the far side, so that no row needs its own columns.
    sides = (slice(0, int(lowest.max()) + 1), slice(int(lowest.min()), columns))
    for end, side in zip(corners, sides, strict=False):
        across = count.take(end) - x
        slope = np.divide(risk.take(end) - y, across, out=np.zeros_like(across), where=across != 0)
        height = np.multiply(count[:, side], slope[:, None])
        np.subtract(risk[:, side], height, out=height)
        np.logical_or(below[:, side], height < (y - slope * x)[:, None], out=below[:, side])
    for corner in corners:
        below.put(corner, True)
    place = np.flatnonzero(below)
    row, x, y = place // columns, count.take(place), risk.take(place)
    # A rank without weight repeats the one below it; up to the first weighted rank there is nothing.
    distinct = x > 0
    distinct[1:] &= (x[1:] != x[:-1]) | (row[1:] != row[:-1])
    return x[distinct], y[distinct], row[distinct]


def _below_lines(x: Floats, y: Floats, row: Indices, reach: int) -> NDArray[np.bool_]:
    """True for points strictly below the line between the points `reach` places left and right of them in their row."""
    keep = np.ones(len(x), np.bool_)
    if len(x) <= 2 * reach:
        return keep
    left, here, right = slice(None, -2 * reach), slice(reach, -reach), slice(2 * reach, None)
    wide = x[right] - x[left]
    cross = (x[here] - x[left]) * (y[right] - y[left]) - (y[here] - y[left]) * wide
    keep[here] = (cross > 0.0) | (row[left] != row[right])
    return keep


def aurc(run: Run, total: Floats, convention: str, *, by_item: bool = False) -> Floats:
    """Return the area under selective risk over coverage; a trapezoid goes by working points, or by single items."""
    if convention == "trapezoid":
        return (single_item_trapezoid(run) if by_item else risk_area(run)) / total
    if convention == "interpolated":
        return prefix_mean_sum(run, continuous=True) / total
    if convention == "mean":
        return prefix_mean_sum(run) / total
    return _stretched(_inner_trapezoid(run), total)


def augrc(run: Run, total: Floats, convention: str) -> Floats:
    """Return the area under generalized risk over coverage."""
    area = loss_area(run)
    if convention == "mean":
        return (area + 0.5 * run.last_risk_sum) / total**2
    if convention == "torch-uncertainty":
        return _stretched(area - 0.5 * run.ends[0], total) / total
    return area / total**2


def aurc_achievable(run: Run, total: Floats, convention: str) -> Floats:
    """Return the area under the lower convex hull of the working points."""
    area = hull_area(run)
    first, last = run.ends
    if convention == "mean":
        # The sum over whole counts of a line exceeds its integral by half of what it climbs.
        return (area + 0.5 * (last - first)) / total
    if convention == "torch-uncertainty":
        return _stretched(area - first, total)
    return area / total


def aurc_at(run: Run, limit: Floats, trapezoid: Floats, total: Floats, convention: str) -> Floats:
    """Return the AURC cut at the count `limit`; `trapezoid` is that area in counts by working points."""
    if convention == "trapezoid":
        return trapezoid / total
    if convention == "interpolated":
        return prefix_mean_sum(truncated(run, limit), continuous=True) / total
    whole, done, after, rest = _whole_items(run, limit)
    next_risk = after.ends[1]
    if convention == "mean":
        return (prefix_mean_sum(done) + rest * next_risk) / total
    here = done.ends[1]
    partial = rest * (here + 0.5 * rest * (next_risk - here))
    return _stretched(np.where(whole >= 1.0, _inner_trapezoid(done) + partial, 0.0), total)


def augrc_at(run: Run, limit: Floats, area: Floats, total: Floats, convention: str) -> Floats:
    """Return the AUGRC cut at the count `limit`; `area` is that under the loss sum, in counts."""
    if convention == "mean":
        _, done, after, rest = _whole_items(run, limit)
        whole_area = loss_area(done)
        return (whole_area + 0.5 * done.last_risk_sum + rest * after.last_risk_sum) / total**2
    if convention == "torch-uncertainty":
        from_first = area - 0.5 * run.ends[0]
        return _stretched(np.where(limit >= 1.0, from_first, 0.0), total) / total
    return area / total**2


def _whole_items(run: Run, limit: Floats) -> tuple[Floats, Run, Run, Floats]:
    """Split a limit into whole items and a rest: their number, the ranking to there, to one item further, the rest."""
    whole = np.floor(limit + TOLERANCE)
    rest = np.maximum(limit - whole, 0.0)
    return whole, truncated(run, whole), truncated(run, whole + 1.0), rest


def _inner_trapezoid(run: Run) -> Floats:
    """The trapezoid over single items from the first to the last, without the flat piece before the first."""
    first, last = run.ends
    return prefix_mean_sum(run) - 0.5 * (first + last)


def _stretched(area: Floats, total: Floats) -> Floats:
    # (area / N) / (1 - 1/N); a single item leaves no range to integrate over.
    return ratio(area, total - 1.0)
