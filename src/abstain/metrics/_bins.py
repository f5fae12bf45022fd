"""The bins plan: metrics of reliability bins, for any batch of cluster weights.

Rows fall into bins by their confidence. Per bin three sums are enough: how many rows, how many outcomes that
came true, how much confidence. Bins are left-closed, the last one closed, and an empty bin stays, with count
0.

``uniform`` bins have equal widths on [0, 1]: the bin of a row never changes, so that the sums of a resample
are one product of its weights with a table. ``quantile`` bins have equal mass: lower edge ``b`` of ``B`` is
the smallest confidence with more than a share ``b / B`` of the mass at or below it, so that tied confidences
share a bin. Edges move with the weights; the rows are sorted once, and every resample finds its edges on
running sums. A weight of 2 is the row twice in either case.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from abstain.metrics._areas import rung_reaching
from abstain.metrics._ladder import Ladder, rungs_ascending

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Indices = NDArray[np.intp]

STRATEGIES = ("uniform", "quantile")

# A share of a bin by which a running sum of fractional weights may miss an edge that it should land on.
_TOLERANCE = 1e-9
# A table with more numbers than this is kept sparse: a cluster seldom has rows in many of the bins.
_DENSE_LIMIT = 1 << 22
_BLOCK = 1 << 15


@dataclass(frozen=True, eq=False, slots=True)
class BinSums:
    """What stands in the bins, each array (resamples, groups, bins)."""

    count: Floats
    outcome: Floats
    confidence: Floats


class Tally(Protocol):
    """Rows prepared to be summed by bin."""

    @property
    def clusters(self) -> int:
        """How many clusters a weight vector has."""

    @property
    def width(self) -> int:
        """How many numbers one resample occupies while it is worked on."""

    def sums(self, weights: Floats) -> BinSums:
        """Sum the bins for weights (resamples, clusters)."""


@dataclass(frozen=True, eq=False, slots=True)
class BinsPlan:
    """Calibration error over bins, averaged over groups of rows (one group, or a group a class); build with `build`.

    >>> rows = {"outcome": np.array([1.0, 0.0]), "confidence": np.array([0.9, 0.8]), "cluster": np.array([0, 1])}
    >>> plan = BinsPlan.build("ece", **rows, bins=10)
    >>> plan(np.array([[1.0, 1.0], [2.0, 0.0]])).round(6)
    array([[0.45],
           [0.1 ]])
    """

    names: tuple[str, ...]
    tally: Tally
    norm: str
    debiased: bool

    @classmethod
    def build(
        cls,
        name: str,
        outcome: Floats,
        confidence: Floats,
        *,
        weight: Floats | None = None,
        cluster: Indices | None = None,
        group: Indices | None = None,
        bins: int = 15,
        strategy: str = "uniform",
        norm: str = "1",
        debiased: bool = False,
    ) -> BinsPlan:
        """Bin rows; `cluster` and `group` number theirs from 0 without a gap, one for all when left out."""
        build = uniform_tally if strategy == "uniform" else quantile_tally
        return cls((name,), build(outcome, confidence, weight, cluster, group, bins), norm, debiased)

    @property
    def clusters(self) -> int:
        """How many clusters a weight vector has."""
        return self.tally.clusters

    @property
    def width(self) -> int:
        """How many numbers one resample occupies while it is worked on."""
        return self.tally.width

    def __call__(self, weights: Floats) -> Floats:
        """Map weights (resamples, clusters) to values (resamples, 1); NaN where no weight is left."""
        error = calibration_errors(self.tally.sums(weights), self.norm, debiased=self.debiased)
        present = ~np.isnan(error)
        groups = present.sum(axis=1)
        total = np.where(present, error, 0.0).sum(axis=1)
        return np.divide(total, groups, out=np.full(len(weights), np.nan), where=groups > 0)[:, None]


def calibration_errors(sums: BinSums, norm: str, *, debiased: bool = False) -> Floats:
    """Return the error of every (resample, group): NaN for a group without weight."""
    total = sums.count.sum(axis=2)
    difference = sums.outcome - sums.confidence
    if debiased:
        error = _debiased(sums, difference, total, norm)
    elif norm == "1":
        error = _ratio(np.abs(difference).sum(axis=2), total)
    elif norm == "2":
        error = np.sqrt(_ratio(_ratio(difference**2, sums.count, empty=0.0).sum(axis=2), total))
    else:
        error = np.abs(_ratio(difference, sums.count, empty=0.0)).max(axis=2)
    return np.where(total > 0, error, np.nan)


def _debiased(sums: BinSums, difference: Floats, total: Floats, norm: str) -> Floats:
    """Take off what chance alone adds: a bin's variance (norm 2), the excess of a folded normal (norm 1)."""
    accuracy = _ratio(sums.outcome, sums.count, empty=0.0)
    spread = np.clip(accuracy * (1.0 - accuracy), 0.0, None)
    if norm == "2":
        squares = _ratio(difference**2, sums.count, empty=0.0)
        variances = spread * _ratio(sums.count, sums.count - 1.0, empty=0.0)
        # A bin with a single row has no estimate of its variance: it says nothing, rather than everything.
        squares = np.where(sums.count > 1.0, squares - variances, 0.0)
        return np.sqrt(np.clip(_ratio(squares.sum(axis=2), total), 0.0, None))
    from scipy.special import ndtr  # noqa: PLC0415

    gap = np.abs(_ratio(difference, sums.count, empty=0.0))
    deviation = np.sqrt(_ratio(spread, sums.count, empty=0.0))
    standard = np.divide(gap, deviation, out=np.full_like(gap, np.inf), where=deviation > 0)
    folded = deviation * np.sqrt(2.0 / np.pi) * np.exp(-(standard**2) / 2.0)
    folded += gap * (1.0 - 2.0 * ndtr(-standard))
    return np.clip(_ratio((sums.count * (2.0 * gap - folded)).sum(axis=2), total), 0.0, None)


def uniform_bin(confidence: Floats, bins: int) -> Indices:
    """Return the equal-width bin of every confidence: ``min(floor(bins * c), bins - 1)``."""
    position = (confidence * bins).astype(np.intp)
    return np.minimum(position, bins - 1, out=position)


def row_bins(confidence: Floats, weight: Floats, bins: int, strategy: str) -> tuple[Indices, Floats]:
    """Return the bin of every row and the ``bins + 1`` edges.

    Edges of quantile bins run from the lowest to the highest confidence that counts.
    """
    if strategy == "uniform":
        return uniform_bin(confidence, bins), np.arange(bins + 1) / bins
    counted = weight > 0
    level, position = np.unique(confidence[counted], return_inverse=True)
    running = np.cumsum(total_by(position, weight[counted]))
    share = (np.arange(1, bins) + _TOLERANCE) / bins
    inner = level[np.searchsorted(running, running[-1] * share)]
    return np.searchsorted(inner, confidence, side="right"), np.concatenate([level[:1], inner, level[-1:]])


@dataclass(frozen=True, eq=False, slots=True)
class _UniformTally:
    """Sums by cluster, with the columns (count, outcome, confidence) x groups x bins."""

    table: Any
    groups: int
    bins: int

    @property
    def clusters(self) -> int:
        return int(self.table.shape[0])

    @property
    def width(self) -> int:
        return int(max(self.table.shape))

    def sums(self, weights: Floats) -> BinSums:
        columns = np.asarray(weights @ self.table).reshape(len(weights), 3, self.groups, self.bins)
        return BinSums(columns[:, 0], columns[:, 1], columns[:, 2])


def uniform_tally(
    outcome: Floats,
    confidence: Floats,
    weight: Floats | None,
    cluster: Indices | None,
    group: Indices | None,
    bins: int,
) -> Tally:
    """Sum rows by cluster, group and equal-width bin."""
    groups = int(group.max()) + 1 if group is not None else 1
    size = groups * bins
    if cluster is None:
        # In blocks that stay in the processor's cache: a million rows need no temporary array of their own length.
        table = np.zeros((1, 3 * size))
        for start in range(0, len(outcome), _BLOCK):
            rows = slice(start, start + _BLOCK)
            cell, columns = _cells(outcome, confidence, weight, group, bins, rows)
            table += np.concatenate([total_by(cell, column, size) for column in columns])
        return _UniformTally(table, groups, bins)
    cell, columns = _cells(outcome, confidence, weight, group, bins, slice(None))
    places = np.concatenate([cell + part * size for part in range(3)])
    shape = (int(cluster.max()) + 1, 3 * size)
    table = cluster_table(np.tile(cluster, 3), places, np.concatenate(columns), shape)
    return _UniformTally(table, groups, bins)


def _cells(
    outcome: Floats, confidence: Floats, weight: Floats | None, group: Indices | None, bins: int, rows: slice
) -> tuple[Indices, tuple[Floats, Floats, Floats]]:
    """Return the (group, bin) of some rows, and what each of them adds to its count, outcome and confidence."""
    stated, happened = confidence[rows], outcome[rows]
    cell = uniform_bin(stated, bins)
    if group is not None:
        cell += group[rows] * bins
    if weight is None:
        return cell, (np.ones(len(cell)), happened, stated)
    return cell, (weight[rows], weight[rows] * happened, weight[rows] * stated)


def total_by(place: Indices, values: Floats, size: int = 0) -> Floats:
    """Add `values` up by their place, counted from 0."""
    return np.bincount(place, weights=values, minlength=size).astype(np.float64, copy=False)


def cluster_table(row: Indices, column: Indices, values: Floats, shape: tuple[int, int]) -> Any:
    """Add `values` up in a table (clusters, columns), dense while it is small, else sparse."""
    if shape[0] * shape[1] <= _DENSE_LIMIT:
        return total_by(row * shape[1] + column, values, shape[0] * shape[1]).reshape(shape)
    from scipy.sparse import coo_array  # noqa: PLC0415

    return coo_array((values, (row, column)), shape=shape).tocsr()


@dataclass(frozen=True, eq=False, slots=True)
class _QuantileTally:
    """For each group two ladders over confidence, one that sums outcomes and one that sums confidence."""

    ladders: tuple[tuple[Ladder, Ladder], ...]
    clusters: int
    bins: int

    @property
    def width(self) -> int:
        return max(self.clusters, *(ladder.width for pair in self.ladders for ladder in pair))

    def sums(self, weights: Floats) -> BinSums:
        parts = [self._group(weights, *pair) for pair in self.ladders]
        return BinSums(*(np.stack(part, axis=1) for part in zip(*parts, strict=True)))

    def _group(self, weights: Floats, outcomes: Ladder, confidences: Ladder) -> tuple[Floats, Floats, Floats]:
        climb = outcomes.climb(weights)
        share = (np.arange(1, self.bins + 1) + _TOLERANCE) / self.bins
        edge = rung_reaching(climb, climb.last_count[:, None] * share)
        running = (climb.count, climb.risk_sum, confidences.climb(weights).risk_sum)
        count, outcome, confidence = (_between(values, edge) for values in running)
        return count, outcome, confidence


def quantile_tally(
    outcome: Floats,
    confidence: Floats,
    weight: Floats | None,
    cluster: Indices | None,
    group: Indices | None,
    bins: int,
) -> Tally:
    """Rank rows by confidence within each group."""
    weight = np.ones(len(outcome)) if weight is None else weight
    cluster = np.zeros(len(outcome), np.intp) if cluster is None else cluster
    clusters = int(cluster.max()) + 1
    groups = int(group.max()) + 1 if group is not None else 1
    ladders = []
    for number in range(groups):
        rows = slice(None) if group is None else np.flatnonzero(group == number)
        rung = rungs_ascending(confidence[rows])
        common = (rung, cluster[rows], clusters, weight[rows])
        ladders.append((Ladder.build(*common, outcome[rows]), Ladder.build(*common, confidence[rows])))
    return _QuantileTally(tuple(ladders), clusters, bins)


def _between(running: Floats, edge: Indices) -> Floats:
    """Turn running sums (resamples, rungs) into what lies between successive edges."""
    padded = np.concatenate([np.zeros((len(running), 1)), running], axis=1)
    return np.diff(np.take_along_axis(padded, edge, axis=1), prepend=0.0, axis=1)


def _ratio(above: Floats, below: Floats, *, empty: float = np.nan) -> Floats:
    return np.divide(above, below, out=np.full(np.shape(above), empty), where=below > 0)
