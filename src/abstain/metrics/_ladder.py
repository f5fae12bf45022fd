"""Ladders: ranked rows collapsed to rungs, climbed once for every weight vector.

All risk-coverage metrics rest on two running sums along a ranking: how many items were accepted, ``count``,
and how much loss they brought, ``risk_sum``. Rows that share a rank share a rung. A ladder keeps one cell for
each (rung, cluster) pair that occurs and answers, for a batch of cluster weights, with both sums at the top
of every rung.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Indices = NDArray[np.intp]

# A matrix product is faster than gathering cells as long as its table is not much larger than the cells themselves.
_DENSE_FACTOR = 64
_DENSE_LIMIT = 1 << 23
_NEAR = 64


@dataclass(frozen=True, eq=False)
class Climb:
    """The running sums, one row a resample: column 0 is the ground, where nothing is accepted, then every rung."""

    count: Floats
    risk_sum: Floats

    @property
    def last_count(self) -> Floats:
        """How many items stand on the whole ladder."""
        return self.count[:, -1]

    @property
    def last_risk_sum(self) -> Floats:
        """How much loss stands on the whole ladder."""
        return self.risk_sum[:, -1]

    @cached_property
    def row_start(self) -> Indices:
        """Where each row begins in the flattened sums, so that one index finds a place in all of them."""
        return np.arange(len(self.count)) * self.count.shape[1]

    @cached_property
    def first(self) -> Indices:
        """The first rung with any weight; the ground where there is none."""
        # It is nearly always among the first few.
        near = self.count[:, :_NEAR] > 0
        return np.argmax(near if near[:, -1].all() else self.count > 0, axis=1)

    @cached_property
    def step(self) -> Floats:
        """How many items each rung adds."""
        return np.diff(self.count, axis=1)


@dataclass(frozen=True, eq=False, slots=True)
class Ladder:
    """Rungs in rank order, as dense cumulative tables or as cells; build one with `build`."""

    rungs: int
    tables: tuple[Floats, Floats] | None
    moments: Floats | None
    cell_cluster: Indices
    cell_count: Floats
    cell_risk: Floats
    rung_end: Indices

    @classmethod
    def build(cls, rung: Indices, cluster: Indices, clusters: int, weight: Floats, loss: Floats) -> Ladder:
        """Collapse rows to cells; `rung` counts from 0 in rank order and skips no number."""
        rungs = int(rung.max()) + 1 if len(rung) else 0
        if clusters == 1:
            return cls._single(rung, rungs, weight, loss)
        order = np.lexsort((cluster, rung))
        rung, cluster = rung[order], cluster[order]
        starts = (
            np.flatnonzero(np.r_[True, (np.diff(rung) != 0) | (np.diff(cluster) != 0)]) if rungs else order
        )
        count = np.add.reduceat(weight[order], starts) if rungs else weight
        risk = np.add.reduceat((weight * loss)[order], starts) if rungs else loss
        cell_rung, cell_cluster = rung[starts], cluster[starts]
        tables = moments = None
        if clusters * rungs <= min(_DENSE_FACTOR * len(starts), _DENSE_LIMIT):
            tables = (
                _cumulative(cell_rung, cell_cluster, count, (clusters, rungs)),
                _cumulative(cell_rung, cell_cluster, risk, (clusters, rungs)),
            )
            if clusters <= rungs:
                moments = np.diff(tables[0], axis=1) @ (0.5 * (tables[1][:, 1:] + tables[1][:, :-1])).T
        rung_end = (
            np.r_[0, np.flatnonzero(np.r_[np.diff(cell_rung) != 0, True]) + 1]
            if rungs
            else np.zeros(1, np.intp)
        )
        return cls(rungs, tables, moments, cell_cluster, count, risk, rung_end)

    @classmethod
    def _single(cls, rung: Indices, rungs: int, weight: Floats, loss: Floats) -> Ladder:
        """The ladder of one cluster: its cells are its rungs, so nothing is sorted and little memory is needed."""
        tables = np.zeros((1, rungs + 1)), np.zeros((1, rungs + 1))
        np.cumsum(np.bincount(rung, weights=weight, minlength=rungs), out=tables[0][0, 1:])
        np.cumsum(np.bincount(rung, weights=weight * loss, minlength=rungs), out=tables[1][0, 1:])
        none = np.zeros(0, np.intp)
        return cls(rungs, tables, None, none, np.zeros(0), np.zeros(0), none)

    @property
    def width(self) -> int:
        """How many numbers one climb occupies."""
        return self.rungs if self.tables else len(self.cell_cluster)

    def climb(self, weights: Floats) -> Climb:
        """Return the running sums for every weight vector."""
        if self.tables:
            return Climb(weights @ self.tables[0], weights @ self.tables[1])
        multiplicity = weights.take(self.cell_cluster, axis=1)
        return Climb(
            self._running(multiplicity, self.cell_count), self._running(multiplicity, self.cell_risk)
        )

    def loss_area(self, weights: Floats, climb: Climb) -> Floats:
        """Return the area under the loss sum over the count, from 0 on the ground, straight from rung to rung."""
        if self.moments is not None:
            # Both the steps and the sums are linear in the weights, so the area is a quadratic form of them.
            return np.vecdot(weights @ self.moments, weights)
        return loss_area(climb)

    def _running(self, multiplicity: Floats, values: Floats) -> Floats:
        sums = np.empty((len(multiplicity), len(values) + 1))
        sums[:, 0] = 0.0
        np.multiply(multiplicity, values, out=sums[:, 1:])
        np.cumsum(sums[:, 1:], axis=1, out=sums[:, 1:])
        if self.rungs == len(values):
            return sums
        return sums.take(self.rung_end, axis=1)


def loss_area(climb: Climb) -> Floats:
    """Return the area under the loss sum over the count; the same by item and by plateau."""
    return 0.5 * trapezoids(climb.step, climb.risk_sum)


def trapezoids(step: Floats, values: Floats) -> Floats:
    """Return, for each row, twice the area under values that are joined by straight lines."""
    return np.vecdot(step, values[:, 1:]) + np.vecdot(step, values[:, :-1])


def rungs_descending(keys: Floats) -> Indices:
    """Number rows by their key, the highest key on rung 0; equal keys share a rung."""
    distinct, position = np.unique(keys, return_inverse=True)
    return (len(distinct) - 1 - position).astype(np.intp)


def rungs_ascending(keys: Floats) -> Indices:
    """Number rows by their key, the lowest key on rung 0; equal keys share a rung."""
    return np.unique(keys, return_inverse=True)[1].astype(np.intp)


def _cumulative(rung: Indices, cluster: Indices, values: Floats, shape: tuple[int, int]) -> Floats:
    table = np.zeros((shape[0], shape[1] + 1))
    table[cluster, rung + 1] = values
    return np.cumsum(table, axis=1, out=table)
