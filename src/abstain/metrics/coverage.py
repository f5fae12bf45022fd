"""Statistics of coverage: means, strata, quantiles and groups of rows that were covered or not.

Every statistic reads ``covered`` and ``width`` (or any other number per row) of one level and is computed from cluster
sums: one key for means, one per group, one per distinct value in order for strata and quantiles. So the metrics of
intervals and of sets share one implementation each, and so do array functions, registry and evaluation. Infinite
values are counted apart from the sums, because a row of infinite width that has weight 0 must leave no trace: 0 times
infinity is not 0. Two metrics are not functions of sums and reweight rows: HSIC (`abstain.metrics._gauss`) and the
worst slab, which is searched among rows and then summed (`worst_slab`).

A slab is ``{x : low <= v.x <= high}`` for a direction ``v``. Among many random directions, the slab of lowest coverage
that still holds a given share of the rows is found on one part of the rows; its coverage on the other part is an
honest number, because the worst of many is always bad on the rows it was chosen by. Clusters are never split between
the two parts. Reference: Cauchois, Gupta and Duchi, "Knowing what You Know: valid and validated confidence sets in
multiclass and multilabel prediction", JMLR 22, 2021.
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
    """Weighted means of columns; a mean over any infinite value is infinite.

    >>> from abstain.metrics.predictions import IntervalRows
    >>> rows = IntervalRows.checked([[0, 1], [0, np.inf]]).in_units(np.array([0, 1]))
    >>> means_statistic(("width",), rows.width, rows)(np.array([[1.0, 1.0], [1.0, 0.0]])).tolist()
    [[inf], [1.0]]
    """
    split = [_without_infinity(column) for column in columns]
    holes = [number for number, (_, infinite) in enumerate(split) if infinite is not None]

    def compute(count: Floats, *sums: Floats) -> list[Floats]:
        means = [ratio(total, count) for total in sums[: len(split)]]
        for number, infinite in zip(holes, sums[len(split) :], strict=True):
            means[number] = np.where(infinite > 0.0, np.inf, means[number])
        return means

    summed = [finite for finite, _ in split] + [part for _, part in split if part is not None]
    return rows.statistic_of_sums(names, summed, compute)


def _without_infinity(column: Floats | Mask) -> tuple[Floats | Mask, Mask | None]:
    """Split a column into its finite part and a mask of infinite rows, None when there is none."""
    if column.dtype == np.bool_ or not np.isinf(column.max(initial=0.0)):
        return column, None
    holes = np.isinf(column)
    return np.where(holes, 0.0, column), holes


def criterion_statistic(
    name: str, truth: Floats, covered: Mask, width: Floats, rows: Rows, *, eta: float, level: float
) -> Statistic:
    """Return the width criterion of one level; the range of the truths is that of the units which are drawn.

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
    """The smallest and the largest value of each unit; without a row, infinities that other units replace."""
    if units == 1:
        return values.min(keepdims=True, initial=np.inf), values.max(keepdims=True, initial=-np.inf)
    lowest, highest = np.full(units, np.inf), np.full(units, -np.inf)
    np.minimum.at(lowest, unit, values)
    np.maximum.at(highest, unit, values)
    return lowest, highest


@dataclass(frozen=True, eq=False, slots=True)
class Strata:
    """Equal chunks of the rows ranked by a key; build them with `of_rows`.

    Rows that share a key across the border of two chunks are spread evenly over both, as a random order would on
    average, so the order of rows does not matter. If all rows share one key, the first chunk holds them all and the
    others are empty.

    Attributes:
        cluster_sums: counts and covered rows by distinct key, ascending.
        keys: the distinct keys.
        bins: how many chunks there are.
        whole: True when rows have ranks; else chunks have equal weight.
        one_key: True if all rows share one key.
    """

    cluster_sums: ClusterSums
    keys: Floats
    bins: int
    whole: bool
    one_key: bool

    @classmethod
    def of_rows(cls, key: Floats, covered: Mask, rows: Rows, *, bins: int) -> Strata:
        """Sum the rows by their key."""
        cluster_sums, keys = _by_key(key, rows, covered)
        return cls(cluster_sums, keys, bins, rows.whole, rows.have_one(key))

    def borders(self, total: Floats) -> Floats:
        """Return the weight before each border, (batch, bins + 1); the first chunks take the rest."""
        number = np.arange(self.bins + 1)
        if self.one_key:
            return total[:, None] * (number > 0)
        if not self.whole:
            return total[:, None] * number / self.bins
        size, rest = np.divmod(total, self.bins)
        return np.asarray(size[:, None] * number + np.minimum(number, rest[:, None]), dtype=np.float64)

    def ends(self) -> tuple[Floats, Floats, Floats]:
        """Return the lowest key, the highest key and the weight of each chunk when every row counts."""
        count = self.cluster_sums.run(np.ones((1, self.cluster_sums.units)))[0, 0]
        border = self.borders(count[-1:])[0]
        tolerance = 0.0 if self.whole else 1e-12 * border[-1]
        low = np.searchsorted(count[1:], border[:-1] + tolerance, side="right")
        high = np.searchsorted(count[1:], border[1:] - tolerance, side="left")
        size, last = np.diff(border), len(self.keys) - 1
        empty = size <= 0.0
        return (
            np.where(empty, np.nan, self.keys[np.minimum(low, last)]),
            np.where(empty, np.nan, self.keys[np.minimum(high, last)]),
            size,
        )

    def statistic(self, name: str) -> Statistic:
        """Return the coverage of each chunk, then the worst of them under `name`."""
        names = (*(f"{name}[{number}]" for number in range(self.bins)), name)
        return Statistic(names, self.cluster_sums.units, 2 * self.cluster_sums.width, self._compute)

    def _compute(self, batch: WeightBatch) -> Floats:
        count, hit = self.cluster_sums.run(batch.weights)
        borders = self.borders(count[:, -1])
        covered = np.stack([np.interp(*row) for row in zip(borders, count, hit, strict=True)])
        chunks = ratio(np.diff(covered, axis=1), np.diff(borders, axis=1))
        return np.column_stack([chunks, _lowest(chunks)])


def quantiles_statistic(
    key: Floats, rows: Rows, *, probabilities: Sequence[float] | Floats, name: str
) -> Statistic:
    """Quantiles of a key, linear between ranks; with fractional weights, the inverse of the distribution."""
    cluster_sums, keys = _by_key(key, rows)
    proportions, whole = np.asarray(probabilities, np.float64), rows.whole

    def compute(batch: WeightBatch) -> Floats:
        (count,) = cluster_sums.run(batch.weights)
        return np.stack([_quantiles(row[1:], keys, proportions, whole=whole) for row in count])

    names = tuple(f"{name}[{proportion:g}]" for proportion in proportions)
    return Statistic(names, rows.units, 2 * cluster_sums.width, compute)


def _quantiles(count: Floats, keys: Floats, proportions: Floats, *, whole: bool) -> Floats:
    """The quantiles of ascending keys, given the count of rows up to and including each key."""
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
    part = rank - below
    inside = (part > 0.0) & (low < high)
    value = low.copy()
    finite = inside & np.isfinite(high)
    value[finite] += part[finite] * (high[finite] - low[finite])
    value[inside & np.isinf(high)] = np.inf
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
    """Coverage in each group, then the worst under `name` and the mean distance of all from `level` under `gap`.

    In that mean each group counts once, or as much as its share of the rows.
    """
    cluster_sums = rows.sum_by(group, groups, covered)

    def compute(batch: WeightBatch) -> Floats:
        count, hit = cluster_sums.evaluate(batch)
        proportion, present = ratio(hit, count), count > 0.0
        worth = count if by_proportion else present.astype(np.float64)
        distance = np.where(present, worth * np.abs(proportion - level), 0.0).sum(axis=1)
        return np.column_stack([proportion, _lowest(proportion), ratio(distance, worth.sum(axis=1))])

    names = (*(f"{name}[{number}]" for number in range(groups)), name, gap)
    return Statistic(names, rows.units, max(rows.units, 2 * groups), compute)


def size_borders(classes: int, bins: int | None) -> Indices:
    """Return the smallest size of each stratum of the sizes 0 to `classes`; one stratum per size for None."""
    if bins is None:
        return np.arange(classes + 1)
    number = _validate.whole(bins, "bins", least=1, most=classes + 1)
    return np.array([part[0] for part in np.array_split(np.arange(classes + 1), number)])


def size_stratum(size: Floats, borders: Indices) -> Indices:
    """Return the stratum of each set size."""
    return np.searchsorted(borders, size, side="right") - 1


def _by_key(key: Floats, rows: Rows, *columns: Mask) -> tuple[ClusterSums, Floats]:
    """Sum rows by a number, ascending; with the number of each key."""
    rank, keys = keys_ascending(key)
    return rows.sum_by(rank, len(keys), *columns), keys


def _lowest(values: Floats) -> Floats:
    """The smallest value of each row that is not NaN; NaN when there is none."""
    lowest = np.where(np.isnan(values), np.inf, values).min(axis=1, initial=np.inf)
    return np.where(np.isinf(lowest), np.nan, lowest)


@dataclass(frozen=True, eq=False, slots=True)
class WorstSlab:
    """The slab of lowest coverage, and what it comes to on rows that were held out.

    Attributes:
        coverage: coverage of the held-out rows in the slab; NaN when none fell into it.
        searched_coverage: coverage of the rows by which the slab was chosen: too low, by its choice.
        count: how many held-out rows (or how much weight) the slab holds.
        proportion: which share of the held-out rows that is.
        direction: the unit vector ``v``.
        low: lower end of ``v.x``.
        high: upper end of ``v.x``.
        reason: why the coverage is undefined; empty when it is defined.
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
    """Return finite features (rows, features); one feature may come without a second axis."""
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
    held = _split(np.arange(len(rows)) if cluster is None else cluster, weight, held_out, stream)
    vectors = stream.normal(size=(directions, features.shape[1]))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    if features.shape[1] == 1:
        vectors = np.ones((1, 1))
    searched = features[~held]
    (lowest, low, high), direction = (math.inf, 0.0, 0.0), vectors[0]
    for vector in vectors:
        candidate = _worst_range(searched @ vector, covered[~held], weight[~held], proportion)
        if candidate < (lowest, low, high):
            (lowest, low, high), direction = candidate, vector
    position = features @ direction
    inside = held & (position >= low) & (position <= high)
    count, total = float(weight[inside].sum()), float(weight[held].sum())
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
    """Coverage of the rows inside a slab, which stays the same for all weights."""
    return rows.statistic_of_sums(
        ("worst_slab_coverage",), [covered & inside, inside], lambda _, hit, count: [ratio(hit, count)]
    )


def _split(cluster: Indices, weight: Floats, proportion: float, stream: np.random.Generator) -> Mask:
    """Hold out a share of the clusters, at least one and not all; of a single one, nothing."""
    # A row of weight 0 does not count: it must neither move the split nor be held out.
    present = np.unique(cluster[weight > 0.0])
    if len(present) < 2:
        return np.zeros(len(cluster), np.bool_)
    size = min(max(round(proportion * len(present)), 1), len(present) - 1)
    return np.isin(cluster, stream.permutation(present)[:size]) & (weight > 0.0)


def _worst_range(
    position: Floats, covered: Mask, weight: Floats, proportion: float
) -> tuple[float, float, float]:
    """Return the lowest coverage of a range of positions with at least `proportion` of the weight, and the range.

    Dinkelbach's method: for a guess of the lowest mean, the best range under ``covered - guess`` is found by
    one running maximum; its mean is the next guess, and a few rounds end at the exact minimum. Equal
    positions are never parted.
    """
    order = np.argsort(position)
    position = position[order]
    end = np.flatnonzero(np.r_[position[1:] != position[:-1], True])
    mass = np.r_[0.0, np.cumsum(weight[order])[end]]
    hit = np.r_[0.0, np.cumsum((weight * covered)[order])[end]]
    least = proportion * mass[-1] * (1.0 - 1e-12)
    # The last start from which a range that ends at each end still has enough weight.
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
