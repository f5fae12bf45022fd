"""Counts, losses and areas along the ranks of a curve, for a whole batch of weight vectors.

Everything is in counts: an area over coverage is an area over the count divided by N, and one over generalized risk is
divided by N again. Place 0 is the start, where nothing is accepted. A rank without weight repeats the one below it and
adds nothing. `integrate_curve` calls the compiled kernel if there is one. Its numpy twin below defines the numbers:
running sums at every rank, and what is computed from them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING

import numpy as np

from abstain.resampling import _kernel

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from numpy.typing import NDArray

    from abstain._types import Floats, Indices
    from abstain.resampling._cluster_sums import Cells, ClusterSums, WeightBatch
    from abstain.resampling._kernel import Library


# A run of more numbers than this is worked on in stretches, so that its length costs no memory beyond its own.
_BLOCK = 1 << 22
_TABLE = 1 << 16
_NEAR = 64
# What may grow with the count in a sum of prefix means.
HARMONIC, LOGARITHM = "harmonic", "logarithm"
# The kernel looks growth up in a table of all counts; where that would be far larger than the sums, numpy is used.
_FEW_COUNTS, _COUNTS_PER_CELL = 1 << 20, 16


@dataclass(frozen=True, slots=True)
class CurveRequest:
    """What a walk is asked for beside counts, losses and areas.

    Attributes:
        risk: the area under the selective risk.
        hull: the area under its lower convex hull.
        growth: which sums of prefix means, `HARMONIC` or `LOGARITHM`.
        bounds: the largest count whose risk is at most each of these.
        areas_at: for each target of a walk, whether the areas below it are asked for.
        alike: True where all rows of a rank have the same loss, which spares the kernel a division.
    """

    risk: bool = False
    hull: bool = False
    growth: tuple[str, ...] = ()
    bounds: tuple[float, ...] = ()
    areas_at: tuple[bool, ...] = ()
    alike: bool = False


@dataclass(frozen=True, eq=False, slots=True)
class Crossing:
    """Where the count first reaches a target, one entry per weight vector; NaN where it never does.

    What lies below is only known where the areas below were asked for.

    Attributes:
        count_below: the count on the rank below.
        loss_below: the loss sum there.
        count_at: the count on the rank that reaches the target.
        loss_at: the loss sum there.
        risk_area_below: the area under the selective risk up to the rank below.
        loss_area_below: the same under the loss sum.
    """

    count_below: Floats
    loss_below: Floats
    count_at: Floats
    loss_at: Floats
    risk_area_below: Floats
    loss_area_below: Floats


@dataclass(frozen=True, eq=False, slots=True)
class CurveSums:
    """What a walk gave, one entry per weight vector; what was not asked for means nothing.

    Attributes:
        count: how many items there are on all ranks.
        loss: how much loss they have.
        first_count: the count on the first rank with any weight; 0 where there is none.
        first_loss: the loss sum there.
        risk_area: the trapezoid area of the selective risk over the count, flat up to the first operating point.
        loss_area: the area under the loss sum over the count; the same by item and by tied block.
        hull_area: the area under the lower convex hull of the selective risk.
        prefix_means: by growth, the sum of selective risks over single items, ties in expectation, or its integral.
        within: by bound, the largest count whose selective risk keeps to it.
        crossings: one per target.
    """

    count: Floats
    loss: Floats
    first_count: Floats
    first_loss: Floats
    risk_area: Floats
    loss_area: Floats
    hull_area: Floats
    prefix_means: Mapping[str, Floats] = field(default_factory=dict)
    within: Mapping[float, Floats] = field(default_factory=dict)
    crossings: tuple[Crossing, ...] = ()

    @property
    def ends(self) -> tuple[Floats, Floats]:
        """The selective risk on the first weighted rank and on the last; 0 where nothing is accepted."""
        return _risk_of(self.first_loss, self.first_count), _risk_of(self.loss, self.count)


def _risk_of(loss: Floats, count: Floats) -> Floats:
    """Loss sum / count; 0 where nothing is counted."""
    return loss / np.maximum(count, np.finfo(np.float64).tiny)


def integrate_curve(
    cluster_sums: ClusterSums, batch: WeightBatch, asked: CurveRequest, targets: Floats | None = None
) -> CurveSums:
    """Return counts, losses and areas along the ranks.

    Args:
        cluster_sums: its keys are the ranks, its second column the losses.
        batch: the weights.
        asked: what else is computed.
        targets: (targets, batch), the counts whose crossing is computed, ascending in every vector.

    >>> from abstain.resampling import WeightBatch, ClusterSums
    >>> cluster_sums = ClusterSums.of_rows(unit=[0, 0, 1], key=[0, 0, 1], columns=[[0.0, 2.0, 0.0]], units=2, keys=2)
    >>> curve_sums = integrate_curve(cluster_sums, WeightBatch(np.ones((1, 2))), CurveRequest(risk=True))
    >>> curve_sums.count.tolist(), curve_sums.loss.tolist(), curve_sums.risk_area.round(3).tolist()
    ([3.0], [2.0], [2.833])
    """
    counts = np.empty((0, len(batch))) if targets is None else targets
    chosen = _kernel.kernel()
    # Growth is looked up by the count, which must be a whole number for it.
    served = not asked.growth or (cluster_sums.whole and batch.whole)
    if chosen.library is not None and cluster_sums.cells is not None and served:
        try:
            return _integrate_by_kernel(chosen.library, cluster_sums.cells, batch, asked, counts)
        except OverflowError:  # no table is that large
            pass
    return integrate_running_sums(RunningSums.of(cluster_sums, batch.weights), asked, counts)


def _integrate_by_kernel(
    library: Library, cells: Cells, batch: WeightBatch, asked: CurveRequest, targets: Floats
) -> CurveSums:
    risk = asked.risk or asked.hull or bool(asked.bounds) or any(asked.areas_at)
    stretches = batch.quick and cells.grades
    wanted = risk * _kernel.WANT_RISK + asked.hull * _kernel.WANT_HULL + stretches * _kernel.BY_STRETCHES
    work = partial(
        _kernel.walk,
        library,
        cells,
        batch,
        value=cells.values if asked.alike else None,
        threshold=targets,
        with_areas=np.array(asked.areas_at, np.uint8),
        bound=np.array(asked.bounds, np.float64),
    )
    prefix_means = {}
    if not asked.growth:
        out = work(wanted=wanted)
    # Each growth is a walk of its own; nobody asks for both.
    for growth in asked.growth:
        out = _with_table(partial(work, wanted=wanted + _kernel.WANT_GROWTH), growth, cells)
        prefix_means[growth] = out[_kernel.LOSS] + out[_kernel.GROWTH]
    fixed, bounds = _kernel.FIXED, len(asked.bounds)
    crossings = out[fixed + bounds :].reshape(len(targets), _kernel.PER_CROSSING, len(batch))
    return CurveSums(
        count=out[_kernel.COUNT],
        loss=out[_kernel.LOSS],
        first_count=out[_kernel.FIRST_COUNT],
        first_loss=out[_kernel.FIRST_LOSS],
        risk_area=out[_kernel.RISK_AREA],
        loss_area=out[_kernel.LOSS_AREA],
        hull_area=out[_kernel.HULL_AREA],
        prefix_means=prefix_means,
        within=dict(zip(asked.bounds, out[fixed : fixed + bounds], strict=True)),
        crossings=tuple(Crossing(*crossing) for crossing in crossings),
    )


def _with_table(work: Callable[..., Floats], growth: str, cells: Cells) -> Floats:
    """Walk with a table of growth, which is made larger as long as some count lies beyond it."""
    most = _FEW_COUNTS + _COUNTS_PER_CELL * len(cells.unit)
    size = int(min(max(2.0 * cells.sums[0].sum(), 1024.0), most))
    while True:
        try:
            return work(table=_table(growth, size))
        except OverflowError:
            if size == most:
                raise
            size = min(8 * size, most)


_tables: dict[str, Floats] = {}


def _table(growth: str, size: int) -> Floats:
    """What grows with the count, at every whole count from 0; kept, because all rankings share it."""
    table = _tables.get(growth)
    if table is None or len(table) < size:
        count = np.arange(size, dtype=np.float64)
        table = _tables[growth] = harmonic(count) if growth == HARMONIC else logarithm(count)
    return table


def integrate_running_sums(run: RunningSums, asked: CurveRequest, targets: Floats | None = None) -> CurveSums:
    """Walk along running sums that are at hand; the arguments are those of `integrate_curve`."""
    nothing = np.empty(0)
    first = run.row_start + run.first
    growth = {name: prefix_mean_sum(run, continuous=name == LOGARITHM) for name in asked.growth}
    return CurveSums(
        count=run.last_count,
        loss=run.last_risk_sum,
        first_count=run.count.take(first),
        first_loss=run.risk_sum.take(first),
        risk_area=risk_area(run) if asked.risk else nothing,
        loss_area=loss_area(run),
        hull_area=hull_area(run) if asked.hull else nothing,
        prefix_means=growth,
        within={bound: run.within(bound) for bound in asked.bounds},
        crossings=() if targets is None or not len(targets) else _crossings(run, asked, targets),
    )


def _crossings(run: RunningSums, asked: CurveRequest, targets: Floats) -> tuple[Crossing, ...]:
    """Find the ranks that reach the targets: one search for all."""
    columns = run.count.shape[1]
    crossings = []
    for rank, areas in zip(run.reaching(targets.T).T, asked.areas_at, strict=True):
        # A target of 0 is met by the first rank with any weight, as the smallest count above 0 would be.
        reaching = np.maximum(rank, run.first)
        reached = (reaching < columns) & (run.last_count > 0)
        reaching = np.where(reached, reaching, columns - 1)
        at_place = run.row_start + reaching
        below_place = at_place - (reaching > 0)
        parts = [
            values.take(position)
            for position in (below_place, at_place)
            for values in (run.count, run.risk_sum)
        ]
        parts += _areas_below(run, parts[0], reaching) if areas else [np.full(len(reaching), np.nan)] * 2
        crossings.append(Crossing(*(np.where(reached, part, np.nan) for part in parts)))
    return tuple(crossings)


def _areas_below(run: RunningSums, count_below: Floats, reaching: Indices) -> list[Floats]:
    # Steps beyond the rank below have no width, so that columns beyond the last that is cut need not be looked at.
    end = int(reaching.max()) + 1
    step = np.diff(np.minimum(run.count[:, :end], count_below[:, None]), axis=1)
    return [0.5 * _trapezoids(step, values[:, :end]) for values in (run.risk, run.risk_sum)]


@dataclass(frozen=True, eq=False)
class RunningSums:
    """Running sums along ranks, one row per weight vector: place 0 is the ground, then every rank."""

    count: Floats
    risk_sum: Floats
    known_area: Callable[[], Floats | None] = lambda: None

    @classmethod
    def of(cls, cluster_sums: ClusterSums, weights: Floats) -> RunningSums:
        """Return the running sums of counts and losses."""
        count, risk_sum = cluster_sums.run(weights)
        return cls(count, risk_sum, partial(cluster_sums.area, weights))

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

    def within(self, bound: float) -> Floats:
        """The largest count whose selective risk is at most the bound; 0 where none is."""
        return np.max(np.where(self.risk <= bound, self.count, 0.0), axis=1, initial=0.0)

    @cached_property
    def ends(self) -> tuple[Floats, Floats]:
        """The selective risk on the first weighted rank and on the last; 0 where nothing is accepted."""
        position = self.row_start + self.first
        first = _risk_of(self.risk_sum.take(position), self.count.take(position))
        return first, _risk_of(self.last_risk_sum, self.last_count)

    def reaching(self, target: Floats) -> Indices:
        """Return the first rank whose count reaches each target (batch, targets); one beyond the last if none does."""
        rows, columns = self.count.shape
        if columns > 4096 or rows == 1:
            return np.stack([np.searchsorted(*pair) for pair in zip(self.count, target, strict=True)])
        # One sorted search for all rows: each row is lifted above the one before it.
        lift = (np.arange(rows) * (max(float(self.last_count.max()), float(target.max())) + 1.0))[:, None]
        position = np.searchsorted((self.count + lift).ravel(), (target + lift).ravel())
        rank = position.reshape(target.shape) - self.row_start[:, None]
        # Lifted, a count and a target just above it may be the same number.
        while True:
            reached = self.row_start[:, None] + np.minimum(rank, columns - 1)
            short = (rank < columns) & (self.count.take(reached) < target)
            if not short.any():
                return rank
            rank = rank + short


def risk_area(run: RunningSums) -> Floats:
    """Return the trapezoid area of the selective risk over the count, flat up to the first operating point."""
    return 0.5 * _trapezoids(run.step, run.risk)


def loss_area(run: RunningSums) -> Floats:
    """Return the area under the loss sum over the count; the same by item and by tied block."""
    area = run.known_area()
    return 0.5 * _trapezoids(run.step, run.risk_sum) if area is None else area


def _trapezoids(step: Floats, values: Floats) -> Floats:
    """Return, for each row, twice the area under values that are joined by straight lines."""
    return np.vecdot(step, values[:, 1:]) + np.vecdot(step, values[:, :-1])


class Cut:
    """Where a ranking is cut: the places of the rank and of the one below, and which share of the rank remains."""

    def __init__(self, run: RunningSums, limit: Floats, rank: Indices) -> None:
        self.at = run.row_start + rank
        # Only a limit of 0 is reached on the ground, below which there is nothing.
        self.below = self.at - (rank > 0)
        self.count_below = run.count.take(self.below)
        height = run.count.take(self.at) - self.count_below
        self.proportion = (limit - self.count_below) / np.maximum(height, np.finfo(np.float64).tiny)


def truncated(run: RunningSums, limit: Floats) -> RunningSums:
    """Cut the ranking itself at the count `limit`, with the loss sum linear inside the rank that is cut."""
    limit = np.minimum(limit, run.last_count)
    cut = Cut(run, limit, run.reaching(limit[:, None])[:, 0])
    below = run.risk_sum.take(cut.below)
    cut_sum = below + cut.proportion * (run.risk_sum.take(cut.at) - below)
    beyond = run.count > limit[:, None]
    return RunningSums(
        np.minimum(run.count, limit[:, None]), np.where(beyond, cut_sum[:, None], run.risk_sum)
    )


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


def prefix_mean_sum(run: RunningSums, *, continuous: bool = False) -> Floats:
    """Return the sum of selective risks over single items, ties in expectation; or its integral when `continuous`.

    After ``k0`` items with loss sum ``S0``, a rank of ``m`` items of mean loss ``l`` adds
    ``m*l + (S0 - k0*l) * (H[k0 + m] - H[k0])``, where the logarithm takes the place of ``H`` in the integral.
    """
    total = run.last_risk_sum.copy()
    for part in _blocks(run):
        before_count, before_sum = part.count[:, :-1], part.risk_sum[:, :-1]
        # A rank without weight has no mean, though rounding may leave it a loss.
        mean = np.divide(
            np.diff(part.risk_sum, axis=1), part.step, out=np.zeros_like(part.step), where=part.step > 0.0
        )
        growth = logarithm(part.count) if continuous else harmonic(part.count)
        total += np.vecdot(before_sum - before_count * mean, np.diff(growth, axis=1))
    return total


def _blocks(run: RunningSums) -> Iterator[RunningSums]:
    """Yield stretches of a ranking, each from where the one before ends; all of it at once unless it is very long."""
    rows, columns = run.count.shape
    ranks = max(_BLOCK // max(rows, 1), 1)
    if columns - 1 <= ranks:
        yield run
        return
    for start in range(0, columns - 1, ranks):
        stretch = slice(start, start + ranks + 1)
        yield RunningSums(run.count[:, stretch], run.risk_sum[:, stretch])


def hull_area(run: RunningSums) -> Floats:
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


def _hull_candidates(run: RunningSums) -> tuple[Floats, Floats, Indices]:
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
    position = np.flatnonzero(below)
    row, x, y = position // columns, count.take(position), risk.take(position)
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
