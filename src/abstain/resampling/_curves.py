"""Counts, losses and areas along the ranks of a curve, for a batch of weight vectors.

All areas are over counts: dividing by N gives an area over coverage, and dividing again by N gives an area under the
generalized risk. Index 0 is the start, at which nothing is accepted. A rank without weight repeats the previous rank
and adds nothing. `integrate_curve` calls the compiled kernel if there is one. The numpy twin below defines the numbers:
it computes running sums at every rank and derives everything from them.
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


# Running sums of more numbers than this are processed in parts, to limit memory.
_BLOCK = 1 << 22
_TABLE = 1 << 16
_NEAR = 64
# The functions of the count in a sum of prefix means: harmonic numbers or the logarithm.
HARMONIC, LOGARITHM = "harmonic", "logarithm"
# The kernel reads this function from a table of all counts. If the table would be much larger than the sums, numpy is
# used.
_FEW_COUNTS, _COUNTS_PER_CELL = 1 << 20, 16


@dataclass(frozen=True, slots=True)
class CurveRequest:
    """The quantities that are computed in addition to counts, losses and the area under the loss sum.

    Attributes:
        risk: the area under the selective risk.
        hull: the area under its lower convex hull.
        growth: sums of prefix means, `HARMONIC` or `LOGARITHM`.
        bounds: risks; for each of them the largest count with at most this risk.
        areas_at: for each target, True if the areas below it are needed.
        alike: True if all rows of a rank have the same loss, which saves the kernel a division.
    """

    risk: bool = False
    hull: bool = False
    growth: tuple[str, ...] = ()
    bounds: tuple[float, ...] = ()
    areas_at: tuple[bool, ...] = ()
    alike: bool = False


@dataclass(frozen=True, eq=False, slots=True)
class Crossing:
    """The rank at which the count first reaches a target, one entry per weight vector; NaN if it never does.

    The values of the rank below are only set if the areas below the target were requested.

    Attributes:
        count_below: the count at the rank below.
        loss_below: the loss sum at the rank below.
        count_at: the count at the rank that reaches the target.
        loss_at: the loss sum at the rank that reaches the target.
        risk_area_below: the area under the selective risk up to the rank below.
        loss_area_below: the area under the loss sum up to the rank below.
    """

    count_below: Floats
    loss_below: Floats
    count_at: Floats
    loss_at: Floats
    risk_area_below: Floats
    loss_area_below: Floats


@dataclass(frozen=True, eq=False, slots=True)
class CurveSums:
    """The results of an integration, one entry per weight vector; values that were not requested have no meaning.

    Attributes:
        count: the count of all ranks.
        loss: the loss sum of all ranks.
        first_count: the count at the first rank with any weight; 0 if there is none.
        first_loss: the loss sum at the first rank with any weight.
        risk_area: the trapezoid area of the selective risk over the count, constant up to the first operating point.
        loss_area: the area under the loss sum over the count; the same by item and by tied block.
        hull_area: the area under the lower convex hull of the selective risk.
        prefix_means: by growth, the sum of selective risks over single items (the expectation over the order of ties),
            or its integral.
        within: by bound, the largest count with at most this selective risk.
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
        """The selective risk at the first rank with any weight and at the last; 0 if nothing is accepted."""
        return _risk_of(self.first_loss, self.first_count), _risk_of(self.loss, self.count)


def _risk_of(loss: Floats, count: Floats) -> Floats:
    """Return loss sum / count; 0 if the count is 0."""
    return loss / np.maximum(count, np.finfo(np.float64).tiny)


def integrate_curve(
    cluster_sums: ClusterSums, batch: WeightBatch, request: CurveRequest, targets: Floats | None = None
) -> CurveSums:
    """Return counts, losses and areas along the ranks.

    Args:
        cluster_sums: sums whose keys are the ranks and whose second column is the losses.
        batch: the weights.
        request: additional quantities.
        targets: (targets, batch), the counts whose crossing is computed, ascending in every vector.

    >>> from abstain.resampling import WeightBatch, ClusterSums
    >>> cluster_sums = ClusterSums.of_rows(unit=[0, 0, 1], key=[0, 0, 1], columns=[[0.0, 2.0, 0.0]], units=2, keys=2)
    >>> curve_sums = integrate_curve(cluster_sums, WeightBatch(np.ones((1, 2))), CurveRequest(risk=True))
    >>> curve_sums.count.tolist(), curve_sums.loss.tolist(), curve_sums.risk_area.round(3).tolist()
    ([3.0], [2.0], [2.833])
    """
    counts = np.empty((0, len(batch))) if targets is None else targets
    chosen = _kernel.kernel()
    # The table of growth has whole counts only.
    supported = not request.growth or (cluster_sums.whole and batch.whole)
    if chosen.library is not None and cluster_sums.cells is not None and supported:
        try:
            return _integrate_by_kernel(chosen.library, cluster_sums.cells, batch, request, counts)
        except OverflowError:  # the table of growth would be too large
            pass
    return integrate_running_sums(RunningSums.of(cluster_sums, batch.weights), request, counts)


def _integrate_by_kernel(
    library: Library, cells: Cells, batch: WeightBatch, request: CurveRequest, targets: Floats
) -> CurveSums:
    risk = request.risk or request.hull or bool(request.bounds) or any(request.areas_at)
    stretches = batch.quick and cells.grades
    wanted = risk * _kernel.WANT_RISK + request.hull * _kernel.WANT_HULL + stretches * _kernel.BY_STRETCHES
    integrate = partial(
        _kernel.integrate,
        library,
        cells,
        batch,
        value=cells.values if request.alike else None,
        threshold=targets,
        with_areas=np.array(request.areas_at, np.uint8),
        bound=np.array(request.bounds, np.float64),
    )
    prefix_means = {}
    if not request.growth:
        out = integrate(wanted=wanted)
    # Each growth needs a separate pass; no caller requests both.
    for growth in request.growth:
        out = _with_table(partial(integrate, wanted=wanted + _kernel.WANT_GROWTH), growth, cells)
        prefix_means[growth] = out[_kernel.LOSS] + out[_kernel.GROWTH]
    fixed, bounds = _kernel.FIXED, len(request.bounds)
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
        within=dict(zip(request.bounds, out[fixed : fixed + bounds], strict=True)),
        crossings=tuple(Crossing(*crossing) for crossing in crossings),
    )


def _with_table(integrate: Callable[..., Floats], growth: str, cells: Cells) -> Floats:
    """Integrate with a table of growth, which is enlarged until it includes all counts."""
    largest = _FEW_COUNTS + _COUNTS_PER_CELL * len(cells.unit)
    # Most batches leave units out, so that no count is larger than the sum of all rows.
    size = int(min(max(cells.sums[0].sum() + 1.0, 1024.0), largest))
    while True:
        try:
            return integrate(table=_table(growth, size))
        except OverflowError:
            if size == largest:
                raise
            size = min(2 * size, largest)


_tables: dict[str, Floats] = {}


def _table(growth: str, size: int) -> Floats:
    """Return the growth function at every whole count from 0. The table is kept, because all rankings use it."""
    table = _tables.get(growth)
    if table is None or len(table) < size:
        count = np.arange(size, dtype=np.float64)
        table = _tables[growth] = harmonic(count) if growth == HARMONIC else logarithm(count)
    return table


def integrate_running_sums(
    run: RunningSums, request: CurveRequest, targets: Floats | None = None
) -> CurveSums:
    """Integrate along given running sums; the other arguments are those of `integrate_curve`."""
    nothing = np.empty(0)
    first = run.row_start + run.first
    growth = {name: prefix_mean_sum(run, continuous=name == LOGARITHM) for name in request.growth}
    return CurveSums(
        count=run.last_count,
        loss=run.last_risk_sum,
        first_count=run.count.take(first),
        first_loss=run.risk_sum.take(first),
        risk_area=risk_area(run) if request.risk else nothing,
        loss_area=loss_area(run),
        hull_area=hull_area(run) if request.hull else nothing,
        prefix_means=growth,
        within={bound: run.within(bound) for bound in request.bounds},
        crossings=() if targets is None or not len(targets) else _crossings(run, request, targets),
    )


def _crossings(run: RunningSums, request: CurveRequest, targets: Floats) -> tuple[Crossing, ...]:
    """Return the crossings of all targets, with one search."""
    columns = run.count.shape[1]
    crossings = []
    for rank, areas in zip(run.reaching(targets.T).T, request.areas_at, strict=True):
        # A target of 0 is reached by the first rank with any weight, like any very small count.
        reaching = np.maximum(rank, run.first)
        reached = (reaching < columns) & (run.last_count > 0)
        reaching = np.where(reached, reaching, columns - 1)
        index_at = run.row_start + reaching
        index_below = index_at - (reaching > 0)
        parts = [
            values.take(index) for index in (index_below, index_at) for values in (run.count, run.risk_sum)
        ]
        parts += _areas_below(run, parts[0], reaching) if areas else [np.full(len(reaching), np.nan)] * 2
        crossings.append(Crossing(*(np.where(reached, part, np.nan) for part in parts)))
    return tuple(crossings)


def _areas_below(run: RunningSums, count_below: Floats, reaching: Indices) -> list[Floats]:
    # Steps after the rank below have width 0, so columns after the last cut rank are not needed.
    end = int(reaching.max()) + 1
    step = np.diff(np.minimum(run.count[:, :end], count_below[:, None]), axis=1)
    return [0.5 * _trapezoids(step, values[:, :end]) for values in (run.risk, run.risk_sum)]


@dataclass(frozen=True, eq=False)
class RunningSums:
    """Running sums along ranks, one row per weight vector; index 0 is 0, followed by every rank."""

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
        """The count of all ranks."""
        return self.count[:, -1]

    @property
    def last_risk_sum(self) -> Floats:
        """The loss sum of all ranks."""
        return self.risk_sum[:, -1]

    @cached_property
    def row_start(self) -> Indices:
        """The index of the first element of each row in the flattened sums."""
        return np.arange(len(self.count)) * self.count.shape[1]

    @cached_property
    def first(self) -> Indices:
        """The first rank with any weight; 0 if there is none."""
        # It is nearly always among the first few ranks.
        near = self.count[:, :_NEAR] > 0
        return np.argmax(near if near[:, -1].all() else self.count > 0, axis=1)

    @cached_property
    def step(self) -> Floats:
        """The count that each rank adds."""
        return np.diff(self.count, axis=1)

    @cached_property
    def risk(self) -> Floats:
        """Loss sum / count at every rank; before the first rank with any weight, the risk of that rank."""
        with np.errstate(invalid="ignore"):
            risk = self.risk_sum / self.count
        first = risk.take(self.row_start + self.first)
        leading = max(int(self.first.max(initial=0)), 1)
        np.copyto(risk[:, :leading], first[:, None], where=self.count[:, :leading] <= 0)
        return np.nan_to_num(risk, copy=False) if np.isnan(first).any() else risk

    def within(self, bound: float) -> Floats:
        """Return the largest count with a selective risk of at most the bound; 0 if there is none."""
        return np.max(np.where(self.risk <= bound, self.count, 0.0), axis=1, initial=0.0)

    @cached_property
    def ends(self) -> tuple[Floats, Floats]:
        """The selective risk at the first rank with any weight and at the last; 0 if nothing is accepted."""
        position = self.row_start + self.first
        first = _risk_of(self.risk_sum.take(position), self.count.take(position))
        return first, _risk_of(self.last_risk_sum, self.last_count)

    def reaching(self, target: Floats) -> Indices:
        """Return the first rank whose count reaches each target (batch, targets); one after the last if none does."""
        rows, columns = self.count.shape
        if columns > 4096 or rows == 1:
            return np.stack([np.searchsorted(*pair) for pair in zip(self.count, target, strict=True)])
        # An offset puts each row above the previous one, so that one sorted search serves all rows.
        offset = (np.arange(rows) * (max(float(self.last_count.max()), float(target.max())) + 1.0))[:, None]
        position = np.searchsorted((self.count + offset).ravel(), (target + offset).ravel())
        rank = position.reshape(target.shape) - self.row_start[:, None]
        # With the offset, a count and a target just above it may be rounded to the same number.
        while True:
            reached = self.row_start[:, None] + np.minimum(rank, columns - 1)
            short = (rank < columns) & (self.count.take(reached) < target)
            if not short.any():
                return rank
            rank = rank + short


def risk_area(run: RunningSums) -> Floats:
    """Return the trapezoid area of the selective risk over the count, constant up to the first operating point."""
    return 0.5 * _trapezoids(run.step, run.risk)


def loss_area(run: RunningSums) -> Floats:
    """Return the area under the loss sum over the count; the same by item and by tied block."""
    area = run.known_area()
    return 0.5 * _trapezoids(run.step, run.risk_sum) if area is None else area


def _trapezoids(step: Floats, values: Floats) -> Floats:
    """Return twice the area under values that are joined by straight lines, for each row."""
    return np.vecdot(step, values[:, 1:]) + np.vecdot(step, values[:, :-1])


class Cut:
    """The rank at which a ranking is cut: its index, the index of the rank below, and the remaining proportion."""

    def __init__(self, run: RunningSums, limit: Floats, rank: Indices) -> None:
        self.index_at = run.row_start + rank
        # Only a limit of 0 is reached at index 0, which has no rank below.
        self.index_below = self.index_at - (rank > 0)
        self.count_below = run.count.take(self.index_below)
        height = run.count.take(self.index_at) - self.count_below
        self.proportion = (limit - self.count_below) / np.maximum(height, np.finfo(np.float64).tiny)


def truncated(run: RunningSums, limit: Floats) -> RunningSums:
    """Return the running sums up to the count `limit`, with the loss sum linear inside the cut rank."""
    limit = np.minimum(limit, run.last_count)
    cut = Cut(run, limit, run.reaching(limit[:, None])[:, 0])
    below = run.risk_sum.take(cut.index_below)
    cut_sum = below + cut.proportion * (run.risk_sum.take(cut.index_at) - below)
    beyond = run.count > limit[:, None]
    return RunningSums(
        np.minimum(run.count, limit[:, None]), np.where(beyond, cut_sum[:, None], run.risk_sum)
    )


def harmonic(count: Floats) -> Floats:
    """Return the harmonic numbers minus that of the smallest count, continued to fractions by the digamma function.

    Whole counts are read from a table. For very large counts, which would need a much larger table, the digamma
    function is used as well.
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
    """Return log(count), and 0 for a count of 0, whose term in the sum is 0 in any case."""
    return np.log(count, out=np.zeros_like(count), where=count > 0)


def prefix_mean_sum(run: RunningSums, *, continuous: bool = False) -> Floats:
    """Return the sum of selective risks over single items, in expectation over ties; with `continuous` its integral.

    After ``k0`` items with loss sum ``S0``, a rank of ``m`` items of mean loss ``l`` adds
    ``m*l + (S0 - k0*l) * (H[k0 + m] - H[k0])``. In the integral, the logarithm replaces the harmonic numbers ``H``.
    """
    total = run.last_risk_sum.copy()
    for part in _blocks(run):
        before_count, before_sum = part.count[:, :-1], part.risk_sum[:, :-1]
        # A rank without weight has no mean, although rounding may give it a small loss.
        mean = np.divide(
            np.diff(part.risk_sum, axis=1), part.step, out=np.zeros_like(part.step), where=part.step > 0.0
        )
        growth = logarithm(part.count) if continuous else harmonic(part.count)
        total += np.vecdot(before_sum - before_count * mean, np.diff(growth, axis=1))
    return total


def _blocks(run: RunningSums) -> Iterator[RunningSums]:
    """Yield consecutive parts of a ranking, or all of it if it is not very long."""
    rows, columns = run.count.shape
    ranks = max(_BLOCK // max(rows, 1), 1)
    if columns - 1 <= ranks:
        yield run
        return
    for start in range(0, columns - 1, ranks):
        part = slice(start, start + ranks + 1)
        yield RunningSums(run.count[:, part], run.risk_sum[:, part])


def hull_area(run: RunningSums) -> Floats:
    """Return the area under the lower convex hull of the (count, risk) points, constant below the first.

    The hulls of all weight vectors are computed together. A point on or above the line between any two other points is
    not a corner of the hull, so all such points can be removed at the same time: first those above the two lines that
    join the lowest point to the ends, then those above lines between neighbours, until none is left. If many points are
    left, lines between distant neighbours are used first, because they remove many points at once.
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
    """Return the distinct points that may be corners, and their rows: the ends, the lowest, and points below two lines.

    The lines join the ends to the lowest point.
    """
    count, risk, start, columns = run.count, run.risk, run.row_start, run.count.shape[1]
    lowest = np.maximum(np.argmin(risk, axis=1), run.first)
    corners = (start + run.first, start + columns - 1, start + lowest)
    x, y = count.take(corners[2]), risk.take(corners[2])
    below = np.zeros(count.shape, np.bool_)
    # Left of the lowest point the line from the first point applies, right of it the line to the last point. Each line
    # is below every point on its other side, so all rows can use the same columns.
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
    # A rank without weight repeats the previous one; before the first rank with any weight the count is 0.
    distinct = x > 0
    distinct[1:] &= (x[1:] != x[:-1]) | (row[1:] != row[:-1])
    return x[distinct], y[distinct], row[distinct]


def _below_lines(x: Floats, y: Floats, row: Indices, reach: int) -> NDArray[np.bool_]:
    """Return True for points strictly below the line between the points that are `reach` positions left and right."""
    keep = np.ones(len(x), np.bool_)
    if len(x) <= 2 * reach:
        return keep
    left, here, right = slice(None, -2 * reach), slice(reach, -reach), slice(2 * reach, None)
    wide = x[right] - x[left]
    cross = (x[here] - x[left]) * (y[right] - y[left]) - (y[here] - y[left]) * wide
    keep[here] = (cross > 0.0) | (row[left] != row[right])
    return keep
