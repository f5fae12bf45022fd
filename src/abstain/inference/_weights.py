"""Weights of clusters: for bootstrap resamples and for the jackknife.

Resamples come from one legacy random stream, one row of whole numbers per resample: the same seed gives the same
resamples on every machine and for every batch size. The jackknife leaves out one cluster at a time, or one group of
clusters if there are very many (see `abstain._units`). Clusters are numbered by their id, ascending.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from abstain import _validate
from abstain._units import unit_of
from abstain.inference._threads import InTurn
from abstain.resampling import RandomStream, WeightBatch, kernel, lanes_for, total_by

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

    from abstain._types import Floats, Indices, Mask
    from abstain.resampling import StopFlag

    T = TypeVar("T")

# A batch should fit into the processor's cache, but be large enough to make the overhead of calls small.
_BATCH_NUMBERS = 1 << 17
_FEWEST, _MOST, _MOST_COMPILED = 1, 1024, 4096

# The largest number of clusters that the kernel can draw from.
_MOST_DRAWN_FROM = (1 << 31) - 1


def _batch_size(width: int, units: int, vectors: int) -> int:
    size = max(_BATCH_NUMBERS // max(width, 1), _FEWEST)
    if not kernel().compiled:
        return min(size, _MOST)
    # The kernel is fastest with complete groups of lanes.
    group = lanes_for(units, vectors)
    return min(-(-size // group) * group, _MOST_COMPILED)


@dataclass(frozen=True, slots=True)
class BootstrapWeights:
    """Bootstrap resamples of clusters.

    >>> weights = BootstrapWeights(clusters=3, resamples=2, seed=42)
    >>> [batch.weights.tolist() for batch in weights.batches(width=3)]
    [[[1.0, 0.0, 2.0], [2.0, 0.0, 1.0]]]
    """

    clusters: int
    resamples: int
    seed: int

    def __post_init__(self) -> None:
        _validate.whole(self.resamples, "resamples")
        _validate.seed(self.seed)

    @property
    def units(self) -> int:
        """Number of units of a weight vector: the clusters."""
        return self.clusters

    @property
    def vectors(self) -> int:
        """Number of weight vectors."""
        return self.resamples

    def batches(
        self, width: int, stop: StopFlag | None = None, *, shared: bool = False
    ) -> Iterator[WeightBatch]:
        """Yield the weights (resamples, clusters) in batches sized for `width` numbers per resample, until `stop`.

        Threads may take batches at the same time if they are `shared`.
        """
        size, library = _batch_size(width, self.clusters, self.resamples), kernel().library
        starts = range(0, self.resamples, size)
        if library is None or not 0 < self.clusters <= _MOST_DRAWN_FROM:
            return _in_turn(self._drawn_by_numpy(starts, size, stop), shared=shared)
        stream = RandomStream(library, self.seed, shared=shared)
        sizes = _in_turn((min(size, self.resamples - start) for start in starts), shared=shared)
        # Unlike a generator, `map` may be used by several threads at the same time, so they draw in parallel.
        return map(partial(WeightBatch.drawn, stream, self.clusters, stop=stop), sizes)

    def _drawn_by_numpy(
        self, starts: Iterable[int], size: int, stop: StopFlag | None
    ) -> Iterator[WeightBatch]:
        stream = np.random.RandomState(self.seed)
        for start in starts:
            rows = min(size, self.resamples - start)
            drawn = stream.randint(0, max(self.clusters, 1), size=(rows, self.clusters))
            drawn += (np.arange(rows) * self.clusters)[:, None]
            counts = np.bincount(drawn.ravel(), minlength=rows * self.clusters)
            yield WeightBatch(counts.reshape(rows, self.clusters).astype(np.float64), stop, start=start)


@dataclass(frozen=True, eq=False, slots=True)
class JackknifeWeights:
    """Weights that leave out clusters, one by one or in groups; make one with `of`.

    Attributes:
        group: the group of each cluster, numbered from 0 without a gap; if an engine made groups, that of each of them.
        sizes: number of clusters of each group.
        degrees: degrees of freedom: the effective number of groups, by items, minus one.
        clusters: number of clusters.
        by_group: True if the units of a weight vector are the groups, False if they are the clusters.

    >>> weights = JackknifeWeights.of(np.array(["ann", "bob", "cat"]))
    >>> [batch.weights.tolist() for batch in weights.batches(width=3)]
    [[[0.0, 1.0, 1.0], [1.0, 0.0, 1.0], [1.0, 1.0, 0.0]]]
    """

    group: Indices = field(repr=False)
    sizes: Floats = field(repr=False)
    degrees: float
    clusters: int
    by_group: bool = False

    @classmethod
    def of(
        cls,
        cluster_ids: NDArray[Any],
        items: Floats | None = None,
        *,
        by_group: bool = False,
        members: Floats | None = None,
    ) -> JackknifeWeights:
        """Leave out each of these clusters, or each of 200 groups if there are more than 1,000.

        Args:
            cluster_ids: the names of the clusters, or the numbers of groups that have `members`.
            items: number of items of each cluster. Default: all clusters have the same size.
            by_group: make weight vectors over groups, which is cheaper if nothing else needs single clusters.
            members: if an engine put clusters into groups, the number of clusters of each group.
        """
        count = len(cluster_ids)
        clusters = count if members is None else int(members.sum())
        if count == 1:  # the only cluster cannot be left out
            return cls(np.zeros(1, np.intp), np.empty(0), 0.0, clusters, by_group)
        group = unit_of(cluster_ids)
        degrees = degrees_of_freedom(total_by(group, items))
        return cls(group, total_by(group, members), degrees, clusters, by_group)

    @classmethod
    def nothing(
        cls, cluster_ids: NDArray[Any], members: Floats | None = None, *, by_group: bool = True
    ) -> JackknifeWeights:
        """Return weights without weight vectors; by group, all rows are one unit."""
        count = len(cluster_ids)
        clusters = count if members is None else int(members.sum())
        return cls(np.zeros(count, np.intp), np.empty(0), 0.0, clusters, by_group)

    @property
    def units(self) -> int:
        """Number of units of a weight vector."""
        return max(self.vectors, 1) if self.by_group else len(self.group)

    @property
    def vectors(self) -> int:
        """Number of weight vectors: one per group."""
        return len(self.sizes)

    @property
    def unit_of_cluster(self) -> Indices:
        """The unit of each cluster."""
        return self.group if self.by_group else np.arange(len(self.group))

    def within(
        self, clusters: Indices, items: Floats, members: Floats | None = None
    ) -> tuple[JackknifeWeights, Indices]:
        """Return the weights of the clusters that have some items, and the indices of their weight vectors.

        Args:
            clusters: the clusters, or the groups that an engine made, ascending.
            items: how many of the items each of them has.
            members: how many clusters of each such group have any.
        """
        group = self.group[clusters]
        held = total_by(group, items, self.vectors)[: self.vectors]
        having = total_by(group, items > 0.0 if members is None else members, self.vectors)
        kept = np.flatnonzero(held)
        if len(kept) == self.vectors and (having == self.sizes).all():
            return self, kept
        sizes = having[kept]
        count, group = int(sizes.sum()), np.arange(len(kept))
        if len(kept) == 1:
            return JackknifeWeights(group, np.empty(0), 0.0, count, self.by_group), kept[:0]
        return JackknifeWeights(group, sizes, degrees_of_freedom(held[kept]), count, self.by_group), kept

    def followed_by(self, other: JackknifeWeights) -> JackknifeWeights:
        """Return weights over the groups of two samples without resamples: these, and then those of another one."""
        clusters = self.clusters + other.clusters
        if not self.vectors and not other.vectors:  # without intervals, or with one cluster each
            return JackknifeWeights(np.zeros(1, np.intp), np.empty(0), 0.0, clusters, by_group=True)
        # Without its only cluster, the values of a sample are undefined.
        sizes = np.concatenate(
            [each.sizes if each.vectors else [float(each.clusters)] for each in (self, other)]
        )
        degrees = min(self.degrees, other.degrees)
        return JackknifeWeights(np.arange(len(sizes)), sizes, degrees, clusters, by_group=True)

    def by_group_of_clusters(self, values: Floats) -> Floats:
        """Return the sums of one number per unit over the units of each weight vector."""
        return values if self.by_group else total_by(self.group, values, self.vectors)[: self.vectors]

    def only(self, kept: Mask, items: Floats) -> JackknifeWeights:
        """Return some of the weight vectors, with the degrees of freedom of these numbers of items."""
        count = int(kept.sum())
        sizes = self.sizes[kept] if count > 1 else np.empty(0)
        return replace(self, group=np.arange(count), sizes=sizes, degrees=degrees_of_freedom(items[kept]))

    def batches(
        self, width: int, stop: StopFlag | None = None, *, shared: bool = False
    ) -> Iterator[WeightBatch]:
        """Yield the weights (groups, units), which are 0 for one group and 1 for the others; see `BootstrapWeights`."""
        return _in_turn(self._left_out(width, stop), shared=shared)

    def _left_out(self, width: int, stop: StopFlag | None) -> Iterator[WeightBatch]:
        size = _batch_size(width, self.units, self.vectors)
        left_out = np.arange(self.vectors) if self.by_group else self.group
        for start in range(0, self.vectors, size):
            rows = min(size, self.vectors - start)
            lanes = lanes_for(self.units, rows)
            groups = start + np.arange(-(-rows // lanes) * lanes).reshape(-1, 1, lanes)
            weights = (left_out[None, :, None] != groups).view(np.uint8)
            yield WeightBatch.of_lanes(weights, rows, stop, start=start)


def _in_turn(items: Iterator[T], *, shared: bool) -> Iterator[T]:
    """Return the iterator, or one that several threads may use if it is shared."""
    return InTurn(items) if shared else items


def degrees_of_freedom(items: Floats) -> float:
    """Return Kish's effective number of groups minus one, at least one."""
    largest = float(items.max(initial=0.0))
    if not largest:
        return 1.0
    parts = items / largest  # whose squares cannot overflow
    return max(float(parts.sum()) ** 2 / float((parts**2).sum()) - 1.0, 1.0)
