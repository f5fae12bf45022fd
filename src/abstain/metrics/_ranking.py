"""Rows ranked by a key: how many there are and how many of them are covered, up to each distinct key.

The running sums of all resamples come from one sort. They are kept as a table of clusters by keys where that is
small, so that a resample is a matrix product, and are summed along the rows where it is not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Indices = NDArray[np.intp]

# A matrix product is faster than a walk along the rows as long as its table is not much larger than they are.
_TABLE_FACTOR = 16
_TABLE_LIMIT = 1 << 23


@dataclass(frozen=True, eq=False, slots=True)
class Running:
    """The sums up to each key, one row a resample: column 0 comes before the first key, where nothing is counted."""

    count: Floats
    hit: Floats

    @property
    def total(self) -> Floats:
        """The weight of all rows."""
        return self.count[:, -1]


@dataclass(frozen=True, eq=False, slots=True)
class Ranking:
    """Ranked rows; build them with `build`.

    Attributes:
        keys: the distinct keys, ascending.
        clusters: how many clusters a weight vector has.
        tables: running count and hits (clusters, keys + 1), or None.
        cluster: the cluster of each row in rank order, where there are no tables.
        mass: weight of each row, and of each row that is covered, in rank order, where there are no tables.
        end: how many rows come up to each key, 0 first.
    """

    keys: Floats
    clusters: int
    tables: tuple[Floats, Floats] | None
    cluster: Indices
    mass: tuple[Floats, Floats]
    end: Indices

    @classmethod
    def build(
        cls, key: Floats, covered: NDArray[np.bool_], weight: Floats | None, cluster: Indices | None
    ) -> Ranking:
        """Sort the rows once."""
        order = np.argsort(key)
        key, covered = key[order], covered[order]
        end = np.flatnonzero(np.r_[True, key[1:] != key[:-1], True])
        keys = key[end[:-1]]
        none = np.empty(0, np.intp)
        if cluster is None:
            count = end.astype(np.float64) if weight is None else _up_to(weight[order], end)
            hit = _up_to(covered if weight is None else covered * weight[order], end)
            return cls(keys, 1, (count[None, :], hit[None, :]), none, (key[:0], key[:0]), end)
        clusters, cluster = int(cluster.max()) + 1, cluster[order]
        mass = np.ones(len(key)) if weight is None else weight[order]
        pair = (mass, mass * covered)
        if clusters * len(end) > min(_TABLE_FACTOR * len(key), _TABLE_LIMIT):
            return cls(keys, clusters, None, cluster, pair, end)
        place = cluster * len(end) + np.repeat(np.arange(1, len(end)), np.diff(end))
        count, hit = (_table(place, values, (clusters, len(end))) for values in pair)
        return cls(keys, clusters, (count, hit), none, (key[:0], key[:0]), end)

    @property
    def width(self) -> int:
        """How many numbers one resample occupies while it is worked on."""
        return 2 * max(len(self.end), len(self.cluster)) + self.clusters

    def running(self, weights: Floats) -> Running:
        """Return the running sums for weights (resamples, clusters)."""
        if self.tables is not None:
            return Running(weights @ self.tables[0], weights @ self.tables[1])
        drawn = weights.take(self.cluster, axis=1)
        count, hit = (_up_to(drawn * values, self.end) for values in self.mass)
        return Running(count, hit)


def _up_to(values: Floats | NDArray[np.bool_], end: Indices) -> Floats:
    """The sums of the values before each end, along the last axis."""
    sums = np.zeros((*values.shape[:-1], values.shape[-1] + 1))
    np.cumsum(values, axis=-1, out=sums[..., 1:])
    return sums.take(end, axis=-1)


def _table(place: Indices, values: Floats, shape: tuple[int, int]) -> Floats:
    table = np.asarray(np.bincount(place, weights=values, minlength=shape[0] * shape[1]), dtype=np.float64)
    return np.cumsum(table.reshape(shape), axis=1)
