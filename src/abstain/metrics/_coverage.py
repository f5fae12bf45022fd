"""Plans for coverage: means, strata, quantiles and groups of rows that were covered or not.

Every plan reads ``covered`` and ``width`` (or any other number a row) of one level and turns cluster weights
into values, so that the metrics of intervals and of sets share one implementation each. Infinite values are
counted apart from the sums, because a row of infinite width that a resample leaves out must not leave a
trace: 0 times infinity is not 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from abstain.metrics._ranking import Ranking
from abstain.metrics._sums import SumsPlan

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Indices = NDArray[np.intp]
    Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False, slots=True)
class Frame:
    """The rows under a plan: how many, how heavy, in which cluster; one cluster holds them all when None."""

    rows: int
    weight: Floats | None = None
    cluster: Indices | None = None

    @property
    def clusters(self) -> int:
        """How many clusters there are."""
        return 1 if self.cluster is None else int(self.cluster.max()) + 1

    @property
    def whole(self) -> bool:
        """True when weights are multiplicities, so that rows have ranks."""
        return self.weight is None or bool((self.weight == np.floor(self.weight)).all())

    def masses(self) -> Floats:
        """Return the weights, ones when there are none."""
        return np.ones(self.rows) if self.weight is None else self.weight

    def sums(self, values: Floats | Mask | None = None) -> Floats:
        """Return the weighted sum of a column in each cluster; without a column, the weight itself."""
        if values is None:
            values = np.broadcast_to(np.True_, self.rows)
        if self.cluster is not None:
            weighted = values if self.weight is None else values * self.weight
            return np.asarray(
                np.bincount(self.cluster, weights=weighted, minlength=self.clusters), np.float64
            )
        if self.weight is not None:
            return np.array([float(values @ self.weight)])
        if values.dtype == np.bool_:
            return np.array([float(np.count_nonzero(values))])
        with np.errstate(over="ignore"):
            return np.array([float(values.sum())])


def means_plan(names: tuple[str, ...], columns: Sequence[Floats | Mask], frame: Frame) -> SumsPlan:
    """Weighted means of columns; a mean over any infinite value is infinite."""
    sums, infinite = [], []
    for column in columns:
        finite, holes = _without_infinity(column)
        sums.append(frame.sums(finite))
        infinite.append(np.zeros(frame.clusters) if holes is None else frame.sums(holes))
    return SumsPlan(names, np.stack([*sums, *infinite, frame.sums()], axis=1), _means)


def _without_infinity(column: Floats | Mask) -> tuple[Floats | Mask, Mask | None]:
    """Split a column into its finite part and a mask of infinite rows, None when there is none."""
    if column.dtype == np.bool_ or not np.isinf(column.max()):
        return column, None
    holes = np.isinf(column)
    return np.where(holes, 0.0, column), holes


def _means(totals: Floats) -> Floats:
    metrics = totals.shape[1] // 2
    sums, infinite, weight = totals[:, :metrics], totals[:, metrics:-1], totals[:, -1:]
    means = np.divide(sums, weight, out=np.full_like(sums, np.nan), where=weight > 0.0)
    return np.where(infinite > 0.0, np.inf, means)


@dataclass(frozen=True, eq=False, slots=True)
class CriterionPlan:
    """The width criterion of one level; the range of the truths is that of the rows which are drawn."""

    names: tuple[str, ...]
    means: SumsPlan
    lowest: Floats
    highest: Floats
    eta: float
    level: float

    @classmethod
    def build(
        cls, name: str, truth: Floats, covered: Mask, width: Floats, frame: Frame, *, eta: float, level: float
    ) -> CriterionPlan:
        """Prepare the means of coverage and width, and the extremes of the truths in each cluster."""
        means = means_plan(("coverage", "width"), (covered, width), frame)
        if frame.weight is not None and not frame.weight.all():
            counts = frame.weight > 0.0
            cluster = None if frame.cluster is None else frame.cluster[counts]
            truth, frame = truth[counts], Frame(int(counts.sum()), None, cluster)
        if frame.cluster is None:
            lowest, highest = np.array([truth.min()]), np.array([truth.max()])
        else:
            lowest, highest = np.full(means.clusters, np.inf), np.full(means.clusters, -np.inf)
            np.minimum.at(lowest, frame.cluster, truth)
            np.maximum.at(highest, frame.cluster, truth)
        return cls((name,), means, lowest, highest, eta, level)

    @property
    def clusters(self) -> int:
        """How many clusters a weight vector has."""
        return self.means.clusters

    @property
    def width(self) -> int:
        """How many numbers one resample occupies while it is worked on."""
        return 3 * self.clusters

    def __call__(self, weights: Floats) -> Floats:
        """Map weights (resamples, clusters) to values (resamples, 1); NaN where all truths are alike."""
        coverage, width = self.means(weights).T
        drawn = weights > 0.0
        highest = np.where(drawn, self.highest, -np.inf).max(axis=1)
        lowest = np.where(drawn, self.lowest, np.inf).min(axis=1)
        scale = np.where(highest > lowest, highest - lowest, np.nan)
        reward = np.exp(-self.eta * (coverage - self.level) ** 2)
        finite = np.isfinite(width)
        values = np.where(finite, (1.0 - np.where(finite, width, 0.0) / scale) * reward, -np.inf)
        return np.where(np.isnan(scale), np.nan, values)[:, None]


@dataclass(frozen=True, eq=False, slots=True)
class StrataPlan:
    """Coverage in equal chunks of the rows ranked by a key, then the worst of them.

    Rows that share a key and stand across the border of two chunks are spread evenly over both: what a random order
    of them would give on average, so that the order of rows plays no part.
    """

    names: tuple[str, ...]
    ranking: Ranking
    bins: int
    whole: bool

    @classmethod
    def build(cls, key: Floats, covered: Mask, frame: Frame, *, bins: int, name: str) -> StrataPlan:
        """Rank the rows once."""
        names = (*(f"{name}[{place}]" for place in range(bins)), name)
        return cls(names, Ranking.build(key, covered, frame.weight, frame.cluster), bins, frame.whole)

    @property
    def clusters(self) -> int:
        """How many clusters a weight vector has."""
        return self.ranking.clusters

    @property
    def width(self) -> int:
        """How many numbers one resample occupies while it is worked on."""
        return self.ranking.width

    def borders(self, total: Floats) -> Floats:
        """Return the weight before each border, (resamples, bins + 1); the first chunks take the rest."""
        place = np.arange(self.bins + 1)
        if not self.whole:
            return total[:, None] * place / self.bins
        size, rest = np.divmod(total, self.bins)
        return np.asarray(size[:, None] * place + np.minimum(place, rest[:, None]), dtype=np.float64)

    def ends(self) -> tuple[Floats, Floats, Floats]:
        """Return the lowest key, the highest key and the weight of each chunk when every row counts."""
        running = self.ranking.running(np.ones((1, self.clusters)))
        border, count = self.borders(running.total)[0], running.count[0, 1:]
        tolerance = 0.0 if self.whole else 1e-12 * border[-1]
        low = np.searchsorted(count, border[:-1] + tolerance, side="right")
        high = np.searchsorted(count, border[1:] - tolerance, side="left")
        keys, size = self.ranking.keys, np.diff(border)
        empty, last = size <= 0.0, len(keys) - 1
        return (
            np.where(empty, np.nan, keys[np.minimum(low, last)]),
            np.where(empty, np.nan, keys[np.minimum(high, last)]),
            size,
        )

    def __call__(self, weights: Floats) -> Floats:
        """Map weights (resamples, clusters) to values (resamples, bins + 1), the worst last."""
        running = self.ranking.running(weights)
        borders = self.borders(running.total)
        covered = np.stack([np.interp(*row) for row in zip(borders, running.count, running.hit, strict=True)])
        size = np.diff(borders, axis=1)
        chunks = np.divide(np.diff(covered, axis=1), size, out=np.full_like(size, np.nan), where=size > 0.0)
        return np.column_stack([chunks, _lowest(chunks)])


@dataclass(frozen=True, eq=False, slots=True)
class QuantilePlan:
    """Quantiles of a key, linear between ranks; with fractional weights, the inverse of the distribution."""

    names: tuple[str, ...]
    ranking: Ranking
    probabilities: Floats
    whole: bool

    @classmethod
    def build(cls, key: Floats, frame: Frame, *, probabilities: Floats, name: str) -> QuantilePlan:
        """Rank the rows once."""
        names = tuple(f"{name}[{probability:g}]" for probability in probabilities)
        ranking = Ranking.build(key, np.zeros(len(key), np.bool_), frame.weight, frame.cluster)
        return cls(names, ranking, probabilities, frame.whole)

    @property
    def clusters(self) -> int:
        """How many clusters a weight vector has."""
        return self.ranking.clusters

    @property
    def width(self) -> int:
        """How many numbers one resample occupies while it is worked on."""
        return self.ranking.width

    def __call__(self, weights: Floats) -> Floats:
        """Map weights (resamples, clusters) to values (resamples, probabilities)."""
        count = self.ranking.running(weights).count[:, 1:]
        return np.stack([self._quantiles(row) for row in count])

    def _quantiles(self, count: Floats) -> Floats:
        keys = self.ranking.keys
        last = len(keys) - 1
        if not self.whole:
            target = self.probabilities * count[-1] * (1.0 - 1e-12)
            return np.asarray(keys[np.minimum(np.searchsorted(count, target), last)])
        rank = self.probabilities * (count[-1] - 1.0)
        below = np.floor(rank)
        low = keys[np.minimum(np.searchsorted(count, below, side="right"), last)]
        high = keys[np.minimum(np.searchsorted(count, below + 1.0, side="right"), last)]
        part = rank - below
        inside = (part > 0.0) & (low < high)
        value = low.copy()
        finite = inside & np.isfinite(high)
        value[finite] += part[finite] * (high[finite] - low[finite])
        value[inside & np.isinf(high)] = np.inf
        return value


def groups_plan(
    covered: Mask, group: Indices, groups: int, frame: Frame, *, name: str, level: float = np.nan
) -> SumsPlan:
    """Coverage in each group, then the worst of them and the mean distance of them from `level`."""
    index = group if frame.cluster is None else frame.cluster * groups + group
    shape = (frame.clusters, groups)

    def table(weights: Floats | None) -> Floats:
        return (
            np.bincount(index, weights=weights, minlength=shape[0] * shape[1])
            .reshape(shape)
            .astype(np.float64)
        )

    hit = table(covered.astype(np.float64) if frame.weight is None else covered * frame.weight)
    names = (*(f"{name}[{place}]" for place in range(groups)), name, "coverage_gap")
    return SumsPlan(names, np.hstack([hit, table(frame.weight)]), partial(_group_ratios, level=level))


def _group_ratios(totals: Floats, level: float) -> Floats:
    hit, count = np.split(totals, 2, axis=1)
    present = count > 0.0
    ratio = np.divide(hit, count, out=np.full_like(hit, np.nan), where=present)
    distance = np.where(present, np.abs(ratio - level), 0.0).sum(axis=1)
    gap = np.divide(distance, present.sum(axis=1), out=np.full(len(ratio), np.nan), where=present.any(axis=1))
    return np.column_stack([ratio, _lowest(ratio), gap])


def _lowest(values: Floats) -> Floats:
    """The smallest value of each row that is not NaN; NaN when there is none."""
    lowest = np.where(np.isnan(values), np.inf, values).min(axis=1)
    return np.where(np.isinf(lowest), np.nan, lowest)
