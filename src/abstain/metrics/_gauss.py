"""HSIC: dependence of coverage on width, without the n-by-n matrix.

The definition is ``trace(HKHL)`` with Gaussian kernels ``K`` over widths and ``L`` over coverage. Coverage
is binary, so that ``HLH = 2 * (1 - exp(-1/s)) * c c'`` with ``c`` the centred indicator, and only ``c'Kc``
remains. A Gaussian is the convolution of two narrower ones, ``exp(-(x-y)^2 / s) = integral of g(x-t) g(y-t)
dt`` with ``g(t) = (4/(pi s))^(1/4) exp(-2 t^2 / s)``, hence

    c'Kc = integral of F(t)^2 dt,    F(t) = sum of c_i g(x_i - t).

The integral becomes a sum over a regular grid of step ``h``, to which every row adds at the few nodes within
its reach ``T``.

How exact it is. With ``A = sum |c_i|`` the root of ``c'Kc`` is off by no more than

    A * (4 * sqrt(erfc(pi * sqrt(s) / (2 h))) + sqrt(erfc(2 (T - h) / sqrt(s)))):

the first term is what the grid folds back from beyond its Nyquist frequency (Poisson's sum, then Cauchy and
Schwarz), the second what lies beyond the reach. ``h <= sqrt(s) / 5`` and ``T >= 3.9 sqrt(s)`` make it 4e-13
* A, and ``A`` is at most half the number of rows. The bound is one for the root, and a sum of squares cannot
be negative: independence comes out as 0, not as the root of a rounding error. The step is 1 or 1.5
times a power of two, so that nodes and distances to them are free of rounding.

Two infinite widths are alike (distance 0), an infinite and a finite one are not (distance infinite).

HSIC is not a function of sums by key: every pair of rows matters. So its statistic reweights rows; they are spread over
the grid once, by unit, and a weight vector then costs one product with that table.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from abstain.resampling import Statistic, WeightBatch, total_by

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from abstain._types import Floats, Indices
    from abstain.metrics._columns import Rows


_STEP = 0.2
_REACH = 3.9
# Rows that are spread over the grid at once: their table of nodes should stay in the cache.
_CHUNK = 2048
# A dense product is so much faster that a table may be mostly empty, as long as it is not large.
_DENSE_FACTOR = 8
_DENSE_LIMIT = 1 << 25


@dataclass(frozen=True, eq=False, slots=True)
class Grid:
    """The nodes that sorted widths can reach: distant widths share no node and leave no gap of nodes.

    Attributes:
        offset: how far each width lies above the node nearest to it.
        first: the first node that each width reaches.
        step: the distance of two nodes.
        reach: how many nodes a width reaches to either side of the nearest.
        root: the root of the kernel size, the unit of distance.
    """

    offset: Floats
    first: Indices
    step: float
    reach: int
    root: float

    @classmethod
    def over(cls, width: Floats, kernel_size: float) -> Grid:
        """Lay the grid under widths that are sorted and finite."""
        root = math.sqrt(kernel_size)
        step = _step(_STEP * root, width[-1] if len(width) else 0.0)
        reach = math.ceil(_REACH * root / step)
        with np.errstate(over="ignore", invalid="ignore"):
            node = np.rint(width / step)
            apart = np.diff(node, prepend=node[:1])
        # Widths too large to be counted in steps are whole numbers of steps, and far apart unless they are
        # equal.
        countable = np.isfinite(node)
        offset = np.where(countable, width - np.where(countable, node, 0.0) * step, 0.0)
        apart = np.where(np.isnan(apart), np.diff(width, prepend=width[:1]), apart)
        # Nodes are numbered without the stretches that no row reaches: memory follows the rows, not their
        # range.
        jump = np.minimum(apart, 2 * reach + 1)
        return cls(offset, np.cumsum(jump).astype(np.intp), step, reach, root)

    @property
    def touched(self) -> int:
        """How many nodes one row reaches."""
        return 2 * self.reach + 1

    @property
    def nodes(self) -> int:
        """How many nodes are reached by any row."""
        return int(self.first[-1]) + self.touched if len(self.first) else 0

    def chunks(self) -> Iterator[tuple[slice, Floats]]:
        """Yield rows, and what they are worth at each node that they reach, (rows, touched)."""
        unit = math.sqrt(2.0) / self.root
        away = (np.arange(self.touched) - self.reach) * (self.step * unit)
        for start in range(0, len(self.first), _CHUNK):
            rows = slice(start, min(start + _CHUNK, len(self.first)))
            worth = (self.offset[rows] * unit)[:, None] - away
            np.square(worth, out=worth)
            np.negative(worth, out=worth)
            np.exp(worth, out=worth)
            yield rows, worth

    def nodes_of(self, rows: slice | Indices) -> Indices:
        """Return the nodes that rows reach, (rows, touched)."""
        return self.first[rows, None] + np.arange(self.touched)

    @property
    def height(self) -> float:
        """What the worth of rows is to be multiplied by, for the squares to add up to an integral."""
        return (4.0 / math.pi) ** 0.25 * math.sqrt(self.step / self.root)


def _step(most: float, widest: float) -> float:
    """The largest step up to `most` whose multiples are free of rounding: 1 or 1.5 times a power of two."""
    power = 2.0 ** math.floor(math.log2(most))
    # Beyond 2**50 steps only a power of two still divides the widths, which are then few and far between.
    return 1.5 * power if 1.5 * power <= most and widest < power * 2.0**50 else power


def quadratic_form(grid: Grid, charge: Floats) -> float:
    """Return ``sum of charge_i charge_j K_ij``, one chunk of the grid in memory at a time."""
    total = 0.0
    carried = np.empty(0)
    starts = grid.first[::_CHUNK].tolist()
    for chunk, (rows, worth) in enumerate(grid.chunks()):
        np.multiply(worth, charge[rows, None], out=worth)
        # Rows next to the same node reach the same nodes: they are added up before they are put there.
        groups = np.flatnonzero(np.diff(grid.first[rows], prepend=-1))
        summed = np.add.reduceat(worth, groups, axis=0) if len(groups) < len(worth) else worth
        node = grid.nodes_of(groups + rows.start) - starts[chunk]
        field = total_by(node.ravel(), summed.ravel())
        field[: len(carried)] += carried
        # Nodes before the next chunk's first one receive nothing more.
        done = starts[chunk + 1] - starts[chunk] if chunk + 1 < len(starts) else len(field)
        total += float(field[:done] @ field[:done])
        carried = field[done:]
    return grid.height**2 * total


def hsic_statistic(
    width: Floats,
    covered: NDArray[np.bool_],
    rows: Rows,
    *,
    kernel_sizes: tuple[float, float] = (1.0, 1.0),
    raw: bool = False,
    name: str = "hsic",
) -> Statistic:
    """Return HSIC, or the trace itself where `raw` is asked for; NaN where at most one row is left."""
    mass, unit = rows.weight, rows.cluster
    total, hit = total_by(unit, mass, rows.units), total_by(unit, mass * covered, rows.units)
    order = np.argsort(width, kind="stable")
    width, covered, mass, unit = width[order], covered[order], mass[order], unit[order]
    finite = int(np.searchsorted(width, np.inf))
    grid = Grid.over(width[:finite], kernel_sizes[0])
    # What the coverage kernel comes to.
    factor = -2.0 * math.expm1(-1.0 / kernel_sizes[1])

    def computed(weights: Floats, form: Floats) -> Floats:
        count = weights @ total
        defined = count > 1.0
        values = factor * form
        if not raw:
            values = np.sqrt(values) / np.where(defined, count - 1.0, 1.0)
        return np.where(defined, values, np.nan)[:, None]

    if rows.units == 1:
        charge = mass * (covered - (hit[0] / total[0] if total[0] else 0.0))
        form = quadratic_form(grid, charge[:finite]) + float(charge[finite:].sum()) ** 2
        return Statistic(
            (name,), 1, 1, lambda batch: computed(batch.weights, batch.weights[:, 0] ** 2 * form)
        )
    # Units by nodes, for covered rows and for the others.
    held = _field(grid, np.where(covered, mass, 0.0), unit, rows.units)
    missed = _field(grid, np.where(covered, 0.0, mass), unit, rows.units)

    def compute(batch: WeightBatch) -> Floats:
        weights = batch.weights
        count = weights @ total
        proportion = np.divide(weights @ hit, count, out=np.zeros_like(count), where=count > 0.0)[:, None]
        field = (1.0 - proportion) * (weights @ held)
        field -= proportion * (weights @ missed)
        return computed(weights, np.einsum("rt,rt->r", field, field))

    return Statistic((name,), rows.units, max(rows.units, 2 * int(held.shape[1])), compute)


def _field(grid: Grid, mass: Floats, unit: Indices, units: int) -> Any:
    """What each unit brings to each node, and to one further node where all infinite widths meet."""
    shape = (units, grid.nodes + 1)
    finite = len(grid.first)
    entries = int(np.count_nonzero(mass[:finite])) * grid.touched
    infinite = total_by(unit[finite:], mass[finite:], units)
    if shape[0] * shape[1] > min(_DENSE_FACTOR * entries, _DENSE_LIMIT):
        return _sparse_field(grid, mass, unit, infinite)
    table = np.zeros(shape)
    for rows, worth in grid.chunks():
        np.multiply(worth, grid.height * mass[rows, None], out=worth)
        np.add.at(table, (unit[rows, None], grid.nodes_of(rows)), worth)
    table[:, -1] = infinite
    return table


def _sparse_field(grid: Grid, mass: Floats, unit: Indices, infinite: Floats) -> Any:
    """The same with only the nodes that are reached: every row owns one stretch of the table."""
    from scipy import sparse  # noqa: PLC0415  (only many units need it)

    finite, units = len(grid.first), len(infinite)
    kept = np.flatnonzero(mass[:finite])
    slot = np.empty(finite, np.intp)
    slot[kept[np.argsort(unit[kept], kind="stable")]] = np.arange(len(kept))
    value = np.empty((len(kept), grid.touched))
    column = np.empty((len(kept), grid.touched), np.int32 if grid.nodes < 2**31 else np.int64)
    for rows, worth in grid.chunks():
        here = mass[rows] != 0.0
        position = slot[rows][here]
        value[position] = worth[here] * (grid.height * mass[rows][here, None])
        column[position] = grid.nodes_of(rows)[here]
    ends = np.cumsum(np.bincount(unit[kept], minlength=units)) * grid.touched
    pointer = np.r_[0, ends].astype(column.dtype if ends[-1] < 2**31 else np.int64)
    table = sparse.csr_array((value.ravel(), column.ravel(), pointer), shape=(units, grid.nodes + 1))
    if not infinite.any():
        return table
    where = np.flatnonzero(infinite)
    return table + sparse.csr_array(
        (infinite[where], (where, np.full(len(where), grid.nodes))), shape=table.shape
    )
