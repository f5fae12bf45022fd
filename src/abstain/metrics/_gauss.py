"""HSIC: dependence of coverage on width, computed without the n-by-n matrix.

The definition is ``trace(HKHL)`` with Gaussian kernels ``K`` over widths and ``L`` over coverage. Coverage is binary,
so ``HLH = 2 * (1 - exp(-1/s)) * c c'`` with the centred indicator ``c``, and only ``c'Kc`` remains. A Gaussian is the
convolution of two narrower ones, ``exp(-(x-y)^2 / s) = integral of g(x-t) g(y-t) dt`` with
``g(t) = (4/(pi s))^(1/4) exp(-2 t^2 / s)``, hence

    c'Kc = integral of F(t)^2 dt,    F(t) = sum of c_i g(x_i - t).

The integral is replaced by a sum over a regular grid of step ``h``. Every row contributes to the few nodes within its
reach ``T``.

Accuracy: with ``A = sum |c_i|``, the error of the root of ``c'Kc`` is at most

    A * (4 * sqrt(erfc(pi * sqrt(s) / (2 h))) + sqrt(erfc(2 (T - h) / sqrt(s)))).

The first term is the aliasing error of the grid (by Poisson summation and the Cauchy-Schwarz inequality), the second
one is the part beyond the reach. With ``h <= sqrt(s) / 5`` and ``T >= 3.9 sqrt(s)`` the bound is 4e-13 * A, and ``A``
is at most half the number of rows. The bound holds for the root, and a sum of squares is not negative, so independence
gives 0 and not the root of a rounding error. The step is 1 or 1.5 times a power of two, so nodes and distances to them
have no rounding error.

Two infinite widths are equal (distance 0); an infinite and a finite one have infinite distance.

HSIC is not a function of sums by key, because it depends on every pair of rows. Its statistic therefore reweights rows:
they are distributed over the grid once, by unit, and each weight vector then costs one product with that table.
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
# The number of rows that are processed at once, so that their table of nodes stays in the processor's cache.
_CHUNK = 2048
# A dense product is much faster, so a dense table is used even if it is mostly empty, unless it is large.
_DENSE_FACTOR = 8
_DENSE_LIMIT = 1 << 25


@dataclass(frozen=True, eq=False, slots=True)
class Grid:
    """The nodes within reach of sorted widths; nodes that no width reaches are not numbered.

    Attributes:
        offset: the difference between each width and its nearest node.
        first: the first node that each width reaches.
        step: the distance between two nodes.
        reach: the number of nodes that a width reaches on each side of the nearest one.
        root: the root of the kernel size, the unit of distance.
    """

    offset: Floats
    first: Indices
    step: float
    reach: int
    root: float

    @classmethod
    def over(cls, width: Floats, kernel_size: float) -> Grid:
        """Return the grid of widths that are sorted and finite."""
        root = math.sqrt(kernel_size)
        step = _step(_STEP * root, width[-1] if len(width) else 0.0)
        reach = math.ceil(_REACH * root / step)
        with np.errstate(over="ignore", invalid="ignore"):
            node = np.rint(width / step)
            apart = np.diff(node, prepend=node[:1])
        # Widths that are too large to be counted in steps are multiples of the step, and far apart unless equal.
        countable = np.isfinite(node)
        offset = np.where(countable, width - np.where(countable, node, 0.0) * step, 0.0)
        apart = np.where(np.isnan(apart), np.diff(width, prepend=width[:1]), apart)
        # Ranges of nodes that no row reaches are not numbered, so memory depends on the rows and not on their range.
        jump = np.minimum(apart, 2 * reach + 1)
        return cls(offset, np.cumsum(jump).astype(np.intp), step, reach, root)

    @property
    def touched(self) -> int:
        """The number of nodes that one row reaches."""
        return 2 * self.reach + 1

    @property
    def nodes(self) -> int:
        """The number of nodes that any row reaches."""
        return int(self.first[-1]) + self.touched if len(self.first) else 0

    def chunks(self) -> Iterator[tuple[slice, Floats]]:
        """Yield rows, and their kernel value at each node that they reach, (rows, touched)."""
        unit = math.sqrt(2.0) / self.root
        distance = (np.arange(self.touched) - self.reach) * (self.step * unit)
        for start in range(0, len(self.first), _CHUNK):
            rows = slice(start, min(start + _CHUNK, len(self.first)))
            values = (self.offset[rows] * unit)[:, None] - distance
            np.square(values, out=values)
            np.negative(values, out=values)
            np.exp(values, out=values)
            yield rows, values

    def nodes_of(self, rows: slice | Indices) -> Indices:
        """Return the nodes that rows reach, (rows, touched)."""
        return self.first[rows, None] + np.arange(self.touched)

    @property
    def height(self) -> float:
        """The factor of the kernel values with which the sum of squares approximates the integral."""
        return (4.0 / math.pi) ** 0.25 * math.sqrt(self.step / self.root)


def _step(most: float, widest: float) -> float:
    """Return the largest step up to `most` whose multiples have no rounding error: 1 or 1.5 times a power of two."""
    power = 2.0 ** math.floor(math.log2(most))
    # Widths beyond 2**50 steps are multiples of powers of two only.
    return 1.5 * power if 1.5 * power <= most and widest < power * 2.0**50 else power


def quadratic_form(grid: Grid, charge: Floats) -> float:
    """Return ``sum of charge_i charge_j K_ij``, one chunk of the grid in memory at a time."""
    total = 0.0
    unfinished = np.empty(0)
    starts = grid.first[::_CHUNK].tolist()
    for chunk, (rows, values) in enumerate(grid.chunks()):
        np.multiply(values, charge[rows, None], out=values)
        # Rows with the same nearest node reach the same nodes, so they are summed first.
        groups = np.flatnonzero(np.diff(grid.first[rows], prepend=-1))
        summed = np.add.reduceat(values, groups, axis=0) if len(groups) < len(values) else values
        node = grid.nodes_of(groups + rows.start) - starts[chunk]
        field = total_by(node.ravel(), summed.ravel())
        field[: len(unfinished)] += unfinished
        # Nodes before the first one of the next chunk are complete.
        complete = starts[chunk + 1] - starts[chunk] if chunk + 1 < len(starts) else len(field)
        total += float(field[:complete] @ field[:complete])
        unfinished = field[complete:]
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
    """Return the statistic of HSIC, or of the trace itself with `raw`; NaN if at most one row has weight."""
    mass, unit = rows.items_in_rows, rows.cluster
    total, hit = total_by(unit, mass, rows.units), total_by(unit, mass * covered, rows.units)
    order = np.argsort(width, kind="stable")
    width, covered, mass, unit = width[order], covered[order], mass[order], unit[order]
    finite = int(np.searchsorted(width, np.inf))
    grid = Grid.over(width[:finite], kernel_sizes[0])
    # The factor of the coverage kernel, see above.
    factor = -2.0 * math.expm1(-1.0 / kernel_sizes[1])

    def from_form(weights: Floats, form: Floats) -> Floats:
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
            (name,), 1, 1, lambda batch: from_form(batch.weights, batch.weights[:, 0] ** 2 * form)
        )
    # Units by nodes, for covered rows and for the others.
    covered_field = _field(grid, np.where(covered, mass, 0.0), unit, rows.units)
    uncovered_field = _field(grid, np.where(covered, 0.0, mass), unit, rows.units)

    def compute(batch: WeightBatch) -> Floats:
        weights = batch.weights
        count = weights @ total
        proportion = np.divide(weights @ hit, count, out=np.zeros_like(count), where=count > 0.0)[:, None]
        field = (1.0 - proportion) * (weights @ covered_field)
        field -= proportion * (weights @ uncovered_field)
        return from_form(weights, np.einsum("rt,rt->r", field, field))

    return Statistic((name,), rows.units, max(rows.units, 2 * int(covered_field.shape[1])), compute)


def _field(grid: Grid, mass: Floats, unit: Indices, units: int) -> Any:
    """Return the sum of each unit at each node, and at one more node for all infinite widths."""
    shape = (units, grid.nodes + 1)
    finite = len(grid.first)
    entries = int(np.count_nonzero(mass[:finite])) * grid.touched
    infinite = total_by(unit[finite:], mass[finite:], units)
    if shape[0] * shape[1] > min(_DENSE_FACTOR * entries, _DENSE_LIMIT):
        return _sparse_field(grid, mass, unit, infinite)
    table = np.zeros(shape)
    for rows, values in grid.chunks():
        np.multiply(values, grid.height * mass[rows, None], out=values)
        np.add.at(table, (unit[rows, None], grid.nodes_of(rows)), values)
    table[:, -1] = infinite
    return table


def _sparse_field(grid: Grid, mass: Floats, unit: Indices, infinite: Floats) -> Any:
    """Return the same table in sparse form; every row with weight has its own range of entries."""
    from scipy import sparse  # noqa: PLC0415  (only many units need it)

    finite, units = len(grid.first), len(infinite)
    counted = np.flatnonzero(mass[:finite])
    position_of_row = np.empty(finite, np.intp)
    position_of_row[counted[np.argsort(unit[counted], kind="stable")]] = np.arange(len(counted))
    value = np.empty((len(counted), grid.touched))
    column = np.empty((len(counted), grid.touched), np.int32 if grid.nodes < 2**31 else np.int64)
    for rows, values in grid.chunks():
        has_mass = mass[rows] != 0.0
        position = position_of_row[rows][has_mass]
        value[position] = values[has_mass] * (grid.height * mass[rows][has_mass, None])
        column[position] = grid.nodes_of(rows)[has_mass]
    ends = np.cumsum(np.bincount(unit[counted], minlength=units)) * grid.touched
    pointer = np.r_[0, ends].astype(column.dtype if ends[-1] < 2**31 else np.int64)
    table = sparse.csr_array((value.ravel(), column.ravel(), pointer), shape=(units, grid.nodes + 1))
    if not infinite.any():
        return table
    infinite_units = np.flatnonzero(infinite)
    return table + sparse.csr_array(
        (infinite[infinite_units], (infinite_units, np.full(len(infinite_units), grid.nodes))),
        shape=table.shape,
    )
