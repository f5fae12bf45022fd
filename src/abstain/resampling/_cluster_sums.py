"""Sums by cluster and key, the weights that are applied to them, and the statistics computed from both.

`ClusterSums` has one cell for each pair of unit and key that occurs. It maps weights of units to sums by key. A small
table is stored dense, so that applying weights is a matrix product; otherwise cells are gathered. A `WeightBatch`
contains weight vectors in the layouts of numpy and of the compiled kernel. A `Statistic` prepares its data once and
then maps weights to values. Most statistics are computed from cluster sums. A few (HSIC, user-defined metrics) reweight
rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from abstain.resampling import _kernel

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from numpy.typing import NDArray

    from abstain._types import Floats, Indices
    from abstain.resampling._kernel import RandomStream

    Values = Sequence[float] | Floats | NDArray[np.bool_]
    Lanes = NDArray[np.uint8] | NDArray[np.float64]

# A matrix product is faster than gathering cells unless its table is much larger than the number of cells.
_DENSE_FACTOR = 64
_DENSE_LIMIT = 1 << 23
# If at most this proportion of the units is excluded, their sums are subtracted from the sums of all units.
_FEW_EXCLUDED = 0.1


class StopFlag:
    """A flag that stops the kernel, which reads it many times per millisecond."""

    def __init__(self) -> None:
        self.flag = np.zeros(1, np.int32)

    def set(self) -> None:
        """Request the stop."""
        self.flag[0] = 1

    @property
    def asked(self) -> bool:
        """True after a stop was requested."""
        return bool(self.flag[0])


class WeightBatch:
    """A batch of weights (batch, units), and a cache of results that several statistics use.

    The kernel processes vectors in groups of *lanes*: an array (groups, units, width) of bytes if weights are
    multiplicities up to 255, otherwise of doubles. Lanes after the last vector have no meaning. Each layout is computed
    from the other when it is first needed. `places` contains the positions of the vectors among all resamples.

    >>> batch = WeightBatch(np.array([[1.0, 2.0]]))
    >>> batch.lanes.shape, batch.lanes[0, :, 0].tolist()
    ((1, 2, 8), [1, 2])
    >>> WeightBatch.of_lanes(batch.lanes, 1).weights.tolist()
    [[1.0, 2.0]]
    """

    # True if the kernel may sum risks over stretches of ranks, with a relative error of 2e-13.
    quick = False
    # The sum of every vector, if it is known and the same for all.
    total: int | None = None
    _stream: RandomStream | None = None

    def __init__(self, weights: Floats, stop: StopFlag | None = None, *, start: int = 0) -> None:
        self.weights = weights
        self.units = weights.shape[1]
        self.stop = StopFlag() if stop is None else stop
        self.places: slice | Indices = slice(start, start + len(weights))
        self._length = len(weights)
        self._done: dict[Hashable, Any] = {}

    @classmethod
    def of_lanes(
        cls, lanes: Lanes, length: int, stop: StopFlag | None = None, *, start: int = 0, quick: bool = False
    ) -> WeightBatch:
        """Return the batch of the first `length` vectors of some lanes; `quick` allows faster sums in the kernel."""
        batch = cls.__new__(cls)
        batch.units, batch._length, batch._done = lanes.shape[1], length, {}
        batch.stop = StopFlag() if stop is None else stop
        batch.places = slice(start, start + length)
        batch.lanes, batch.quick = lanes, quick
        return batch

    @classmethod
    def drawn(
        cls, stream: RandomStream, units: int, length: int, stop: StopFlag | None = None
    ) -> WeightBatch:
        """Return `length` resamples of all units from a stream, which reuses their memory after `done`.

        Other threads may draw from the stream in between; `places` contains the positions of the resamples.
        """
        number = np.empty(length, np.int64)
        lanes = stream.multiplicities(units, length, number=number, stop=stop)
        batch = cls.of_lanes(lanes, length, stop, start=int(number[0]), quick=True)
        if number[-1] - number[0] >= length:
            batch.places = number
        batch.total, batch._stream = units, stream
        return batch

    def done(self) -> None:
        """Return the memory of the weights to the stream."""
        if self._stream is not None:
            self._stream.take_back(self.lanes)
            del self.lanes

    def __len__(self) -> int:
        return self._length

    @cached_property
    def weights(self) -> Floats:
        """The weights (batch, units)."""
        vectors = self.lanes.transpose(0, 2, 1).reshape(-1, self.units)
        return vectors[: self._length].astype(np.float64)

    @cached_property
    def lanes(self) -> Lanes:
        """The weights (groups, units, width)."""
        weights = self.weights
        small = bool(((weights >= 0.0) & (weights <= 255.0) & (weights == np.floor(weights))).all())
        width = _kernel.lanes_for(self.units, self._length) if small else _kernel.FEWEST_LANES
        groups = -(-self._length // width)
        padded = np.zeros((groups * width, self.units), np.uint8 if small else np.float64)
        padded[: self._length] = weights
        return np.ascontiguousarray(padded.reshape(groups, width, self.units).transpose(0, 2, 1))

    @property
    def whole(self) -> bool:
        """True if all weights are multiplicities up to 255."""
        return self.lanes.dtype == np.uint8

    def compute_once(self, key: Hashable, work: Callable[[], Any]) -> Any:
        """Return the result of `work`, which is called only the first time that `key` is used."""
        if key not in self._done:
            self._done[key] = work()
        return self._done[key]


@dataclass(frozen=True, eq=False)
class Cells:
    """The cells of cluster sums in the layout of the compiled kernel.

    Attributes:
        unit: the unit of each cell.
        ends: the number of cells before each key, and the number of all cells.
        sums: (columns, cells); the first column is the count.
        keys: the number of keys.
        complete: True if there is a cell for every pair of unit and key.
    """

    unit: NDArray[np.uint32]
    ends: NDArray[np.int64]
    sums: Floats
    keys: int
    complete: bool = False

    @cached_property
    def ends_if_several(self) -> NDArray[np.int64] | None:
        """The ends; None if every key has exactly one cell."""
        return None if self.keys == len(self.unit) and bool((np.diff(self.ends) == 1).all()) else self.ends

    @cached_property
    def ones(self) -> NDArray[np.uint8]:
        """1 for each column that is 1 in all cells."""
        return (self.sums == 1.0).all(axis=1).astype(np.uint8)

    @property
    def counts(self) -> Floats | None:
        """The number of rows of each cell; None if it is one for all cells."""
        return None if self.ones[0] else self.sums[0]

    @cached_property
    def even(self) -> Floats | None:
        """The sums of each unit if they are the same for all units and there is one key; otherwise None."""
        even = self.keys == 1 and bool((self.sums == self.sums[:, :1]).all())
        return self.sums[:, 0] if even and len(self.unit) and self.complete else None

    @cached_property
    def grades(self) -> bool:
        """True if the losses of all cells are whole numbers from 0 to 7, which the kernel sums as integers."""
        losses = self.sums[1]
        return bool(((losses >= 0.0) & (losses <= 7.0) & (losses == np.floor(losses))).all())

    @cached_property
    def values(self) -> Floats:
        """The mean of the second column over the rows of each key."""
        if self.keys == len(self.unit):
            count, total = self.sums[:2]
        else:
            running = np.cumsum(self.sums[:2], axis=1)
            count, total = np.diff(np.insert(running, 0, 0.0, axis=1)[:, self.ends], axis=1)
        return np.divide(total, count, out=np.zeros(self.keys), where=count > 0)


@dataclass(frozen=True, eq=False)
class ClusterSums:
    """Sums by unit and key; build them from rows with `of_rows`.

    Attributes:
        unit: the unit of each cell; empty for a single unit, whose cells are the keys in order.
        key: the key of each cell, ascending; empty for a single unit.
        sums: (columns, cells); the first column is the count.
        units: the number of units.
        keys: the number of keys.

    >>> sums = ClusterSums.of_rows(unit=[0, 1, 1], key=[0, 0, 1], columns=[[0.5, 1.0, 2.0]], units=2, keys=2)
    >>> sums.evaluate(np.array([[1.0, 2.0]])).tolist()                    # counts, then the sums of the column
    [[[3.0, 2.0]], [[2.5, 4.0]]]
    >>> sums.run(np.array([[1.0, 2.0]])).tolist()                     # running sums, starting with 0
    [[[0.0, 3.0, 5.0]], [[0.0, 2.5, 6.5]]]
    """

    unit: Indices
    key: Indices
    sums: Floats
    units: int
    keys: int

    @classmethod
    @np.errstate(over="ignore", invalid="ignore")  # sums of very large numbers overflow
    def of_rows(
        cls,
        *,
        unit: Sequence[int] | Indices,
        key: Sequence[int] | Indices,
        columns: Sequence[Values],
        units: int,
        keys: int,
        weight: Floats | None = None,
    ) -> ClusterSums:
        """Sum rows by unit and key: the number of rows, then each column. A weight of 2 counts a row twice."""
        if units == keys == 1:
            return cls._of_one_cell(len(key), columns, weight)
        if units == 1:
            return cls._of_one_unit(np.asarray(key, np.intp), columns, keys, weight)
        code = np.asarray(key, np.intp) * units + np.asarray(unit, np.intp)
        if units * keys <= max(_DENSE_LIMIT, 4 * len(code)):
            occurs = np.bincount(code, minlength=units * keys)
            cells, cell, size = np.flatnonzero(occurs), code, units * keys
        else:
            cells, cell = np.unique(code, return_inverse=True)
            size = len(cells)
        mass = [weight, *(column if weight is None else np.asarray(column) * weight for column in columns)]
        summed = np.empty((len(mass), len(cells)))
        for row, values in enumerate(mass):
            totals = total_by(cell, values, size)
            summed[row] = totals if len(totals) == len(cells) else totals[cells]
        return cls(cells % units, cells // units, summed, units, keys)

    @classmethod
    def _of_one_cell(cls, rows: int, columns: Sequence[Values], weight: Floats | None) -> ClusterSums:
        """Sum all rows into one cell, which is much faster without keys."""
        summed = [_sum_of(np.asarray(column), weight) for column in columns]
        sums = np.array([float(rows) if weight is None else weight.sum(), *summed])[:, None]
        return cls(np.empty(0, np.intp), np.empty(0, np.intp), sums, 1, 1)

    @classmethod
    def _of_one_unit(
        cls, key: Indices, columns: Sequence[Values], keys: int, weight: Floats | None
    ) -> ClusterSums:
        """Sum the rows of one unit, whose cells are its keys, without a search and with little memory."""
        summed = np.empty((1 + len(columns), keys))
        summed[0] = total_by(key, weight, keys)
        for row, column in enumerate(columns, start=1):
            summed[row] = total_by(key, column if weight is None else np.asarray(column) * weight, keys)
        return cls(np.empty(0, np.intp), np.empty(0, np.intp), summed, 1, keys)

    @property
    def width(self) -> int:
        """The number of values that one weight vector needs while it is evaluated."""
        numbers = self.keys if self._dense or self.units == 1 else len(self.unit)
        return max(self.units, numbers) * (2 if len(self.sums) > 2 else 1)

    @property
    def curve_width(self) -> int:
        """The number of values that one weight vector needs while a curve is integrated.

        The kernel needs one byte per unit and little else. But it reads all cells, and a call should return within a
        few hundredths of a second, so the number also grows with the cells.
        """
        if _kernel.kernel().compiled and self.cells is not None:
            return max(self.units // 8, self.sums.shape[1] // 128, 1)
        return self.width

    @cached_property
    def cells(self) -> Cells | None:
        """The cells in the layout of the compiled kernel; None if there are more than it can number."""
        count = self.sums.shape[1]
        if count > _kernel.MOST_CELLS or self.units > _kernel.MOST_UNITS:
            return None
        sums = np.ascontiguousarray(self.sums)  # the kernel reads memory row by row
        if self.units == 1:
            return Cells(np.zeros(count, np.uint32), np.arange(count + 1), sums, self.keys, True)
        unit, ends = self.unit.astype(np.uint32), self._ends.astype(np.int64)
        return Cells(unit, ends, sums, self.keys, count == self.units * self.keys)

    def evaluate(self, weights: Floats | WeightBatch) -> Floats:
        """Return the sums by key (columns, batch, keys) for weights (batch, units)."""
        if isinstance(weights, WeightBatch):
            chosen = _kernel.kernel()
            if chosen.library is not None and self.cells is not None:
                return _kernel.evaluate(chosen.library, self.cells, weights)
            weights = weights.weights
        if self.units == 1:
            return weights * self.sums[:, None, :]
        if self._dense:
            return np.matmul(weights, self._table)
        sums = np.asarray(weights @ self._sparse)
        return sums.reshape(len(weights), len(self.sums), self.keys).transpose(1, 0, 2)

    def run(self, weights: Floats) -> Floats:
        """Return the running sums (columns, batch, keys + 1) for weights (batch, units).

        Index 0 is 0, followed by the sums up to and including each key.
        """
        if self.units == 1:
            running = np.zeros((len(self.sums), len(weights), self.keys + 1))
            np.cumsum(self.sums[:, None, :], axis=2, out=running[:, :1, 1:])
            # The unweighted sums are stored in row 0, so row 0 is scaled last.
            for row in range(len(weights) - 1, -1, -1):
                np.multiply(running[:, 0], weights[row, 0], out=running[:, row])
            return running
        if self._dense:
            return np.matmul(weights, self._running)
        running = np.empty((len(self.sums), len(weights), self.keys + 1))
        # If few units are excluded, it is cheaper to subtract their sums from the sums of all units.
        few_excluded = self.whole & ((weights == 1.0).sum(axis=1) >= (1.0 - _FEW_EXCLUDED) * self.units)
        few_excluded &= ((weights == 0.0) | (weights == 1.0)).all(axis=1)
        for row in np.flatnonzero(few_excluded).tolist():
            self._run_without(np.flatnonzero(weights[row] == 0.0), running[:, row])
        if not few_excluded.all():
            running[:, ~few_excluded] = self._run_of_cells(weights[~few_excluded])
        return running

    def _run_of_cells(self, weights: Floats) -> Floats:
        """Return the running sums of gathered cells."""
        multiplicity = weights.take(self.unit, axis=1)
        by_key = np.empty((len(self.sums), len(weights), self.keys + 1))
        running = np.empty((len(weights), len(self.unit) + 1))
        running[:, 0] = 0.0
        for column, values in enumerate(self.sums):
            np.multiply(multiplicity, values, out=running[:, 1:])
            np.cumsum(running[:, 1:], axis=1, out=running[:, 1:])
            np.take(running, self._ends, axis=1, out=by_key[column])
        return by_key

    def _run_without(self, units: Indices, out: Floats) -> None:
        """Write the running sums of all units except some to `out` (columns, keys + 1)."""
        starts = self._starts
        parts = [self._by_unit[starts[unit] : starts[unit + 1]] for unit in units]
        cells = np.sort(np.concatenate([np.empty(0, np.intp), *parts]))
        lengths = np.diff(self.key[cells] + 1, prepend=0, append=self.keys + 1)
        for column, values in enumerate(self.sums):
            excluded = np.cumsum(np.r_[0.0, values[cells]])
            np.subtract(self._run_of_all[column], np.repeat(excluded, lengths), out=out[column])

    @cached_property
    def whole(self) -> bool:
        """True if counts are whole numbers, which can be subtracted without rounding errors."""
        return bool((self.sums[0] == np.floor(self.sums[0])).all())

    @cached_property
    def _run_of_all(self) -> Floats:
        return self._run_of_cells(np.ones((1, self.units)))[:, 0]

    @cached_property
    def _by_unit(self) -> Indices:
        """The cells, sorted by unit."""
        return np.argsort(self.unit, kind="stable")

    @cached_property
    def _starts(self) -> Indices:
        return np.searchsorted(self.unit[self._by_unit], np.arange(self.units + 1)).astype(np.intp)

    def cut_units(self, target: Floats, *, others: bool = False) -> Floats:
        """Return the count of each unit up to a target, in the order of keys, and the second column's sum: (2, units).

        The key that is cut by the target counts proportionally. With `others`, the sums of each unit are those of all
        other units together. There must be several units. The key of each unit is found by bisection, so the time does
        not grow with the product of units and keys.
        """
        cells = self._by_unit
        position = self.unit[cells] * self.keys + self.key[cells]
        running = np.zeros((2, len(cells) + 1))
        np.cumsum(self.sums[:2, cells], axis=1, out=running[:, 1:])
        first = np.arange(self.units) * self.keys
        start = running[:, np.searchsorted(position, first)]
        run_of_all = np.zeros((2, self.keys + 1))
        if others:
            by_key = [total_by(self.key, values, self.keys) for values in self.sums[:2]]
            np.cumsum(by_key, axis=1, out=run_of_all[:, 1:])

        def sum_before(key: Indices) -> Floats:
            """Sum the keys before a key, which may differ for each unit."""
            unit_sum = running[:, np.searchsorted(position, first + key)] - start
            return run_of_all[:, key] - unit_sum if others else unit_sum

        low, high = np.zeros(self.units, np.intp), np.full(self.units, self.keys + 1)
        while (low < high).any():
            middle = np.minimum((low + high) // 2, self.keys)
            count = sum_before(middle)[0]
            reached = (count >= target) & (count > 0.0)
            low, high = np.where(reached, low, middle + 1), np.where(reached, middle, high)
        # A target beyond all keys gives the sums of all of them.
        below = sum_before(np.maximum(low - 1, 0))
        step = sum_before(np.minimum(low, self.keys)) - below
        proportion = np.divide(target - below[0], step[0], out=np.zeros(self.units), where=step[0] > 0.0)
        return np.stack([np.where(low > self.keys, below[0], target), below[1] + proportion * step[1]])

    def area(self, weights: Floats) -> Floats | None:
        """Return the area under the running sum of the second column over that of the first, linear between keys.

        Both the steps and the sums are linear in the weights, so the area is a quadratic form of the weights, which is
        cheap if there are fewer units than keys. Otherwise None is returned, and the caller integrates along the keys.
        """
        if self.units == 1 or self.units > self.keys or not self._dense:
            return None
        return np.vecdot(weights @ self._moments, weights)

    @cached_property
    def _moments(self) -> Floats:
        count, values = self._running[:2]
        return np.diff(count, axis=1) @ (0.5 * (values[:, 1:] + values[:, :-1])).T

    @cached_property
    def _dense(self) -> bool:
        pairs = self.units * self.keys
        return pairs <= min(_DENSE_FACTOR * len(self.unit), _DENSE_LIMIT)

    @cached_property
    def _table(self) -> Floats:
        table = np.zeros((len(self.sums), self.units, self.keys))
        table[:, self.unit, self.key] = self.sums
        return table

    @cached_property
    def _running(self) -> Floats:
        running = np.zeros((len(self.sums), self.units, self.keys + 1))
        running[:, self.unit, self.key + 1] = self.sums
        return np.cumsum(running, axis=2, out=running)

    @cached_property
    def _sparse(self) -> Any:
        from scipy.sparse import csr_array  # noqa: PLC0415

        columns = len(self.sums)
        column = (np.arange(columns)[:, None] * self.keys + self.key).ravel()
        shape = (self.units, columns * self.keys)
        return csr_array((self.sums.ravel(), (np.tile(self.unit, columns), column)), shape=shape)

    @cached_property
    def _ends(self) -> Indices:
        """The number of cells before each key, and the number of all cells."""
        return np.searchsorted(self.key, np.arange(self.keys + 1)).astype(np.intp)


@dataclass(frozen=True, eq=False)
class Statistic:
    """A function of weights that computes metrics from prepared data.

    Attributes:
        names: the metrics, one per column of the result.
        units: the number of units of a weight vector.
        width: the number of values that one weight vector needs while it is evaluated, which limits the batch size.
        compute: maps a batch to values (batch, metrics); NaN if a metric is undefined.

    >>> rows = {"unit": [0, 1], "units": 2}
    >>> accuracy = Statistic.of_sums(("accuracy",), [[1.0, 0.0]], **rows, compute=lambda n, hit: [hit / n])
    >>> accuracy.points, accuracy(np.array([[2.0, 0.0]]))
    (array([0.5]), array([[1.]]))
    """

    names: tuple[str, ...]
    units: int
    width: int
    compute: Callable[[WeightBatch], Floats]

    @classmethod
    def of_sums(
        cls,
        names: tuple[str, ...],
        columns: Sequence[Values],
        *,
        unit: Sequence[int] | Indices,
        units: int,
        compute: Callable[..., Sequence[Floats]],
        weight: Floats | None = None,
    ) -> Statistic:
        """Return metrics that are functions of sums over rows; `compute` takes the count and the sum of each column."""
        key = np.zeros(len(unit), np.intp)
        sums = ClusterSums.of_rows(unit=unit, key=key, columns=columns, units=units, keys=1, weight=weight)

        def compute_batch(batch: WeightBatch) -> Floats:
            return np.stack(compute(*sums.evaluate(batch)[:, :, 0])).T

        return cls(names, units, max(units, len(columns)), compute_batch)

    @classmethod
    def undefined(cls, names: tuple[str, ...], units: int) -> Statistic:
        """Return undefined metrics: NaN for all weights."""
        return cls(names, units, 1, lambda batch: np.full((len(batch), len(names)), np.nan))

    @classmethod
    def joined(cls, parts: Sequence[Statistic], order: Sequence[int] | None = None) -> Statistic:
        """Return several statistics over the same units as one. Default: all columns in the order of the parts."""
        if len(parts) == 1 and order is None:
            return parts[0]
        names = tuple(name for part in parts for name in part.names)
        selected = list(range(len(names))) if order is None else list(order)

        def compute(batch: WeightBatch) -> Floats:
            columns = [column for part in parts for column in part.compute(batch).T]
            return np.stack([columns[number] for number in selected]).T

        width = max(part.width for part in parts)
        return cls(tuple(names[number] for number in selected), parts[0].units, width, compute)

    def only(self, *columns: int) -> Statistic:
        """Return some of the columns."""
        return Statistic.joined([self], [column % len(self.names) for column in columns])

    def __call__(self, weights: Floats | WeightBatch) -> Floats:
        """Map weights (batch, units) to values (batch, metrics)."""
        # Sums of very large numbers overflow; the metric is then infinite or undefined.
        with np.errstate(over="ignore", invalid="ignore"):
            return self.compute(weights if isinstance(weights, WeightBatch) else WeightBatch(weights))

    @cached_property
    def points(self) -> Floats:
        """The point estimates, which are the values with all weights 1."""
        return self(np.ones((1, self.units)))[0]

    @property
    def point(self) -> float:
        """The first point estimate."""
        return float(self(np.ones((1, self.units)))[0, 0])


def _sum_of(column: NDArray[Any], weight: Floats | None) -> float:
    if weight is not None:
        # Summed in the same order as the weights, so that rounding never makes a proportion exceed 1.
        return float((column * weight).sum())
    return float(np.count_nonzero(column) if column.dtype == np.bool_ else column.sum())


def keys_ascending(values: Floats) -> tuple[Indices, Floats]:
    """Number rows by value, from 0 for the lowest; return the key of each row and the value of each key.

    >>> keys_ascending(np.array([0.5, 0.1, 0.5]))
    (array([1, 0, 1]), array([0.1, 0.5]))
    """
    distinct, key = np.unique(values, return_inverse=True)
    return key.astype(np.intp, copy=False), distinct


def keys_descending(values: Floats) -> tuple[Indices, Floats]:
    """Number rows by value, from 0 for the highest; return the key of each row and the value of each key.

    >>> keys_descending(np.array([0.5, 0.1, 0.5]))
    (array([0, 1, 0]), array([0.5, 0.1]))
    """
    key, distinct = keys_ascending(values)
    return np.subtract(len(distinct) - 1, key, out=key), distinct[::-1]


def keys_of_pairs(first: Indices, second: Indices) -> tuple[Indices, Indices, Indices]:
    """Number rows by two keys, sorted by the first and then the second; also return both keys of each pair.

    >>> keys_of_pairs(np.array([1, 0, 1]), np.array([2, 0, 2]))
    (array([1, 0, 1]), array([0, 1]), array([0, 2]))
    """
    seconds = np.intp(second.max(initial=0) + 1)
    number = first * seconds + second
    occurs = np.zeros(int(number.max(initial=-1)) + 1, np.bool_)
    if len(occurs) > 8 * len(number):
        distinct, pair = np.unique(number, return_inverse=True)
    else:  # there are few possible pairs, so sorting is not necessary
        occurs[number] = True
        distinct, pair = np.flatnonzero(occurs), (np.cumsum(occurs) - 1)[number]
    return pair.astype(np.intp, copy=False), *np.divmod(distinct, seconds)


def total_by(key: Indices, values: Values | None = None, size: int = 0) -> Floats:
    """Sum `values` by key, numbered from 0. Default: count the rows of each key.

    >>> total_by(np.array([0, 2, 2]), [0.5, 1.0, 1.0], 4)
    array([0.5, 0. , 2. , 0. ])
    """
    return np.bincount(key, weights=values, minlength=size).astype(np.float64, copy=False)
