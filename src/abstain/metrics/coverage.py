"""Statistics of coverage: means, strata, quantiles and groups of rows that were covered or not.

Every statistic reads ``covered`` and ``width`` (or another number per row) of one level and is computed from cluster
sums: one key for means, one key per group, and one key per distinct value for strata and quantiles. The metrics of
intervals and of sets therefore share one implementation, in array functions, registry and evaluation. Infinite values
are counted separately from the sums, because 0 times infinity is not 0 and a row of weight 0 must have no effect. Two
metrics are not functions of sums and reweight rows: HSIC (`abstain.metrics._gauss`) and the worst slab, which is
searched among rows and then summed (`worst_slab`).

A slab is ``{x : low <= v.x <= high}`` for a direction ``v``. Over many random directions, the slab with the lowest
coverage that contains a given proportion of the rows is found on one part of the rows. On these rows its coverage is
biased downwards, because it was chosen as the worst, so the coverage is computed on the other part. Clusters are never
split between the two parts. Reference: Cauchois, Gupta and Duchi, "Knowing what You Know: valid and validated
confidence sets in multiclass and multilabel prediction", JMLR 22, 2021.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from abstain import _validate
from abstain.errors import DataError
from abstain.metrics._columns import ratio
from abstain.resampling import Statistic, WeightBatch, keys_ascending

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from abstain._types import Floats, Indices, Mask
    from abstain.metrics._columns import Rows
    from abstain.resampling import ClusterSums


def means_statistic(names: tuple[str, ...], columns: Sequence[Floats | Mask], rows: Rows) -> Statistic:
    """Return the statistic of weighted means of columns; a mean of an infinite value is infinite.

    >>> from abstain.metrics.predictions import IntervalRows
    >>> rows = IntervalRows.checked([[0, 1], [0, np.inf]]).in_units(np.array([0, 1]))
    >>> means_statistic(("width",), rows.width, rows)(np.array([[1.0, 1.0], [1.0, 0.0]])).tolist()
    [[inf], [1.0]]
    """
    split = [_without_infinity(column) for column in columns]
    infinite_columns = [number for number, (_, infinite) in enumerate(split) if infinite is not None]

    def compute(count: Floats, *sums: Floats) -> list[Floats]:
        means = [ratio(total, count) for total in sums[: len(split)]]
        for number, infinite in zip(infinite_columns, sums[len(split) :], strict=True):
            means[number] = np.where(infinite > 0.0, np.inf, means[number])
        return means

    summed = [finite for finite, _ in split] + [part for _, part in split if part is not None]
    return rows.statistic_of_sums(names, summed, compute)


def _without_infinity(column: Floats | Mask) -> tuple[Floats | Mask, Mask | None]:
    """Split a column into its finite part and a mask of infinite rows; None if all rows are finite."""
    if column.dtype == np.bool_ or not np.isinf(column.max(initial=0.0)):
        return column, None
    infinite = np.isinf(column)
    return np.where(infinite, 0.0, column), infinite


def criterion_statistic(
    name: str, truth: Floats, covered: Mask, width: Floats, rows: Rows, *, eta: float, level: float
) -> Statistic:
    """Return the statistic of the width criterion of one level; the range of truths is that of the drawn units.

    It is NaN if all truths are equal, and -inf if the mean width is infinite.
    """
    means = means_statistic(("coverage", "width"), (covered, width), rows)
    lowest, highest = _extremes(truth[rows.counted], rows.cluster[rows.counted], rows.units)

    def compute(batch: WeightBatch) -> Floats:
        coverage, mean_width = means(batch).T
        drawn = batch.weights > 0.0
        top = np.where(drawn, highest, -np.inf).max(axis=1)
        bottom = np.where(drawn, lowest, np.inf).min(axis=1)
        scale = np.where(top > bottom, top - bottom, np.nan)
        reward = np.exp(-eta * (coverage - level) ** 2)
        finite = np.isfinite(mean_width)
        values = np.where(finite, (1.0 - np.where(finite, mean_width, 0.0) / scale) * reward, -np.inf)
        return np.where(np.isnan(scale), np.nan, values)[:, None]

    return Statistic((name,), rows.units, 3 * rows.units, compute)


def _extremes(values: Floats, unit: Indices, units: int) -> tuple[Floats, Floats]:
    """Return the smallest and the largest value of each unit; inf and -inf for a unit without rows."""
    if units == 1:
        return values.min(keepdims=True, initial=np.inf), values.max(keepdims=True, initial=-np.inf)
    lowest, highest = np.full(units, np.inf), np.full(units, -np.inf)
    np.minimum.at(lowest, unit, values)
    np.maximum.at(highest, unit, values)
    return lowest, highest


@dataclass(frozen=True, eq=False, slots=True)
class Strata:
    """Chunks of equal size of the rows ranked by a key; build them with `of_rows`.

    If rows with the same key belong to two chunks, they are divided proportionally, which is the average over all
    orders, so the order of rows does not matter. If all rows have the same key, the first chunk contains all of them
    and the others are empty.

    Attributes:
        cluster_sums: counts and covered rows by distinct key, ascending.
        keys: the distinct keys.
        bins: the number of chunks.
        whole: True if rows are whole numbers of items, so that they have ranks; otherwise chunks have equal weight.
        one_key: True if all rows have the same key.
        item_weight: the weight of one item.
    """

    cluster_sums: ClusterSums
    keys: Floats
    bins: int
    whole: bool
    one_key: bool
    item_weight: float

    @classmethod
    def of_rows(cls, key: Floats, covered: Mask, rows: Rows, *, bins: int) -> Strata:
        """Sum the rows by their key."""
        cluster_sums, keys = _by_key(key, rows, covered)
        return cls(cluster_sums, keys, bins, rows.whole, rows.have_one(key), rows.item_weight)

    def edges(self, total: Floats) -> Floats:
        """Return the number of items before each edge, (batch, bins + 1); a remainder goes to the first chunks."""
        number = np.arange(self.bins + 1)
        if self.one_key:
            return total[:, None] * (number > 0)
        if not self.whole:
            return total[:, None] * number / self.bins
        size, rest = np.divmod(total, self.bins)
        return np.asarray(size[:, None] * number + np.minimum(number, rest[:, None]), dtype=np.float64)

    def ends(self) -> tuple[Floats, Floats, Floats]:
        """Return the lowest key, the highest key and the weight of each chunk, with all cluster weights 1."""
        count = self.cluster_sums.run(np.ones((1, self.cluster_sums.units)))[0, 0]
        edge = self.edges(count[-1:])[0]
        tolerance = 0.0 if self.whole else 1e-12 * edge[-1]
        low = np.searchsorted(count[1:], edge[:-1] + tolerance, side="right")
        high = np.searchsorted(count[1:], edge[1:] - tolerance, side="left")
        size, last = np.diff(edge), len(self.keys) - 1
        empty = size <= 0.0
        return (
            np.where(empty, np.nan, self.keys[np.minimum(low, last)]),
            np.where(empty, np.nan, self.keys[np.minimum(high, last)]),
            size * self.item_weight,
        )

    def parts(self, key: Floats) -> list[tuple[float, Mask | None]]:
        """Return the weight and the rows of each chunk; None if some of the rows are also in its neighbour."""
        low, high, size = self.ends()
        parts: list[tuple[float, Mask | None]] = []
        for k, (first, last, count) in enumerate(zip(low, high, size.tolist(), strict=True)):
            apart = not (k and high[k - 1] >= first) and not (k + 1 < len(low) and low[k + 1] <= last)
            parts.append((count, (key >= first) & (key <= last) if apart and count else None))
        return parts

    def statistic(self, name: str) -> Statistic:
        """Return the statistic of the coverage of each chunk, and of the lowest coverage, which is called `name`."""
        names = (*(f"{name}[{number}]" for number in range(self.bins)), name)
        return Statistic(names, self.cluster_sums.units, 2 * self.cluster_sums.width, self._compute)

    def _compute(self, batch: WeightBatch) -> Floats:
        count, hit = self.cluster_sums.run(batch.weights)
        edges = self.edges(count[:, -1])
        covered = np.stack([np.interp(*row) for row in zip(edges, count, hit, strict=True)])
        coverage = ratio(np.diff(covered, axis=1), np.diff(edges, axis=1))
        return np.column_stack([coverage, _lowest(coverage)])


def quantiles_statistic(
    key: Floats, rows: Rows, *, probabilities: Sequence[float] | Floats, name: str
) -> Statistic:
    """Return the statistic of quantiles of a key.

    They are linear between ranks; with fractional weights they are the inverse of the distribution function.
    """
    cluster_sums, keys = _by_key(key, rows)
    proportions, whole = np.asarray(probabilities, np.float64), rows.whole

    def compute(batch: WeightBatch) -> Floats:
        (count,) = cluster_sums.run(batch.weights)
        return np.stack([_quantiles(row[1:], keys, proportions, whole=whole) for row in count])

    names = tuple(f"{name}[{proportion:g}]" for proportion in proportions)
    return Statistic(names, rows.units, 2 * cluster_sums.width, compute)


def _quantiles(count: Floats, keys: Floats, proportions: Floats, *, whole: bool) -> Floats:
    """Return the quantiles of ascending keys; `count` is the number of rows up to and including each key."""
    last = len(keys) - 1
    if not len(keys) or count[-1] <= 0.0:
        return np.full(len(proportions), np.nan)
    if not whole:
        target = proportions * count[-1] * (1.0 - 1e-12)
        return np.asarray(keys[np.minimum(np.searchsorted(count, target), last)])
    rank = proportions * (count[-1] - 1.0)
    below = np.floor(rank)
    low = keys[np.minimum(np.searchsorted(count, below, side="right"), last)]
    high = keys[np.minimum(np.searchsorted(count, below + 1.0, side="right"), last)]
    fraction = rank - below
    between = (fraction > 0.0) & (low < high)
    value = low.copy()
    finite = between & np.isfinite(high)
    value[finite] += fraction[finite] * (high[finite] - low[finite])
    value[between & np.isinf(high)] = np.inf
    return value


def groups_statistic(
    covered: Mask,
    group: Indices,
    groups: int,
    rows: Rows,
    *,
    name: str,
    gap: str = "coverage_gap",
    level: float = np.nan,
    by_proportion: bool = False,
) -> Statistic:
    """Return the statistic of the coverage of each group, of the lowest (`name`) and of the mean gap (`gap`).

    The gap of a group is the distance of its coverage from `level`. In the mean all groups have the same weight, or
    with `by_proportion` the weight of their rows.
    """
    cluster_sums = rows.sum_by(group, groups, covered)

    def compute(batch: WeightBatch) -> Floats:
        count, hit = cluster_sums.evaluate(batch)
        proportion, present = ratio(hit, count), count > 0.0
        weight = count if by_proportion else present.astype(np.float64)
        distance = np.where(present, weight * np.abs(proportion - level), 0.0).sum(axis=1)
        return np.column_stack([proportion, _lowest(proportion), ratio(distance, weight.sum(axis=1))])

    names = (*(f"{name}[{number}]" for number in range(groups)), name, gap)
    return Statistic(names, rows.units, max(rows.units, 2 * groups), compute)


def size_borders(classes: int, bins: int | None) -> Indices:
    """Return the smallest set size of each stratum, for sizes from 0 to `classes`; None for one stratum per size."""
    if bins is None:
        return np.arange(classes + 1)
    number = _validate.whole(bins, "bins", least=1, most=classes + 1)
    return np.array([part[0] for part in np.array_split(np.arange(classes + 1), number)])


def size_stratum(size: Floats, borders: Indices) -> Indices:
    """Return the stratum of each set size."""
    return np.searchsorted(borders, size, side="right") - 1


def _by_key(key: Floats, rows: Rows, *columns: Mask) -> tuple[ClusterSums, Floats]:
    """Sum rows by a number, ascending, in numbers of items, and return the distinct numbers."""
    rank, keys = keys_ascending(key)
    return rows.sum_items_by(rank, len(keys), *columns), keys


def _lowest(values: Floats) -> Floats:
    """Return the smallest value of each row, ignoring NaN; NaN if all values are NaN."""
    lowest = np.where(np.isnan(values), np.inf, values).min(axis=1, initial=np.inf)
    return np.where(np.isinf(lowest), np.nan, lowest)


@dataclass(frozen=True, eq=False, slots=True)
class WorstSlab:
    """The slab with the lowest coverage, and its coverage on held-out rows.

    Attributes:
        coverage: the coverage of the held-out rows in the slab; NaN if there are none.
        searched_coverage: the coverage of the rows on which the slab was chosen, which is biased downwards.
        count: the weight of the held-out rows in the slab.
        proportion: the proportion of the held-out rows that are in the slab.
        direction: the unit vector ``v``.
        low: the lower end of ``v.x``.
        high: the upper end of ``v.x``.
        reason: why the coverage is undefined; empty if it is defined.
    """

    coverage: float
    searched_coverage: float
    count: float
    proportion: float
    direction: Floats = field(repr=False)
    low: float
    high: float
    reason: str = ""


def checked_features(features: ArrayLike, rows: int) -> Floats:
    """Return finite features (rows, features); a single feature may have one axis only."""
    array = np.asarray(features)
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim != 2 or array.shape[1] == 0:
        raise DataError(f"features must have shape (rows, features), got {array.shape}")
    columns = [_validate.finite(column, f"features[:, {number}]") for number, column in enumerate(array.T)]
    _validate.same_length(rows, features=columns[0])
    return np.column_stack(columns)


def worst_slab(
    features: Floats,
    covered: Mask,
    rows: Rows,
    *,
    seed: int,
    proportion: float = 0.1,
    directions: int = 1000,
    held_out: float = 0.75,
    cluster: Indices | None = None,
) -> tuple[WorstSlab, Mask]:
    """Find the slab on one part of the rows and evaluate it on the other; also return the held-out rows inside it.

    A cluster is never split between the parts. Default: each row is a cluster. The other parameters are those of
    `abstain.metrics.intervals.interval_worst_slab_coverage`.
    """
    stream = np.random.default_rng(seed)
    weight = rows.weight
    is_held_out = _split(np.arange(len(rows)) if cluster is None else cluster, weight, held_out, stream)
    vectors = stream.normal(size=(directions, features.shape[1]))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    if features.shape[1] == 1:
        vectors = np.ones((1, 1))
    searched = features[~is_held_out]
    (lowest, low, high), direction = (math.inf, 0.0, 0.0), vectors[0]
    for vector in vectors:
        candidate = _worst_range(searched @ vector, covered[~is_held_out], weight[~is_held_out], proportion)
        if candidate < (lowest, low, high):
            (lowest, low, high), direction = candidate, vector
    position = features @ direction
    inside = is_held_out & (position >= low) & (position <= high)
    count, total = float(weight[inside].sum()), float(weight[is_held_out].sum())
    slab = WorstSlab(
        coverage=slab_statistic(covered, inside, rows).point,
        searched_coverage=lowest,
        count=int(count) if count.is_integer() else count,
        proportion=count / total if total else math.nan,
        direction=direction,
        low=low,
        high=high,
        reason="" if count else "no held-out row falls into the slab",
    )
    return slab, inside


def slab_statistic(covered: Mask, inside: Mask, rows: Rows) -> Statistic:
    """Return the statistic of the coverage of the rows inside a slab, which is the same for all weights."""
    return rows.statistic_of_sums(
        ("worst_slab_coverage",), [covered & inside, inside], lambda _, hit, count: [ratio(hit, count)]
    )


def _split(cluster: Indices, weight: Floats, proportion: float, stream: np.random.Generator) -> Mask:
    """Hold out a proportion of the clusters, at least one and not all; none if there is only one cluster."""
    # A row of weight 0 must neither change the split nor be held out.
    present = np.unique(cluster[weight > 0.0])
    if len(present) < 2:
        return np.zeros(len(cluster), np.bool_)
    size = min(max(round(proportion * len(present)), 1), len(present) - 1)
    return np.isin(cluster, stream.permutation(present)[:size]) & (weight > 0.0)


def _worst_range(
    position: Floats, covered: Mask, weight: Floats, proportion: float
) -> tuple[float, float, float]:
    """Return the lowest coverage of a range of positions with at least `proportion` of the weight, and the range.

    By Dinkelbach's method: for a guess of the lowest mean, a running maximum finds the range with the smallest sum of
    ``covered - guess``. Its mean is the next guess. A few iterations give the exact minimum. Equal positions are never
    separated.
    """
    order = np.argsort(position)
    position = position[order]
    end = np.flatnonzero(np.r_[position[1:] != position[:-1], True])
    mass = np.r_[0.0, np.cumsum(weight[order])[end]]
    hit = np.r_[0.0, np.cumsum((weight * covered)[order])[end]]
    least = proportion * mass[-1] * (1.0 - 1e-12)
    # For each end, the last start of a range that still has enough weight.
    start = np.searchsorted(mass, mass - least, side="right") - 1
    ends = np.flatnonzero(start >= 0)
    if not len(ends) or mass[-1] <= 0.0:
        return math.inf, 0.0, 0.0
    guess, begin, stop = hit[-1] / mass[-1], 0, len(end)
    while True:
        surplus = hit - guess * mass
        highest = np.maximum.accumulate(surplus)
        gain = surplus[ends] - highest[start[ends]]
        index = int(np.argmin(gain))
        if gain[index] >= -1e-12 * mass[-1]:
            break
        stop = int(ends[index])
        begin = int(np.argmax(surplus[: start[stop] + 1]))
        guess = (hit[stop] - hit[begin]) / (mass[stop] - mass[begin])
    first = position[end[begin - 1] + 1] if begin else position[0]
    return float(guess), float(first), float(position[end[stop - 1]])
