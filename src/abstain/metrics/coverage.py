"""Coverage, weighed: means, strata, quantiles and groups of rows that were covered or not.

Every measure reads ``covered`` and ``width`` (or any other number per row) of one level, tallies them by the units
of the rows, and finishes the tally: one key for means, one per group, one per distinct value in order for strata and
quantiles. So the metrics of intervals and of sets share one implementation each, and array functions, registry and
evaluation share it too. Infinite values are counted apart from the sums, because a row of infinite width that a
weight leaves out must not leave a trace: 0 times infinity is not 0. Two metrics are no function of sums and weigh
rows: HSIC (`hsic_measure`) and the worst slab, which is looked for among rows and then summed (`worst_slab`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from abstain import _validate
from abstain.metrics._gauss import hsic_measure
from abstain.metrics._slab import Search, WorstSlab, slab_measure, worst_slab
from abstain.tally import Batch, Measure, Tally, keys_ascending

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from abstain.metrics.predictions import PredictionRows

    Floats = NDArray[np.float64]
    Indices = NDArray[np.intp]
    Mask = NDArray[np.bool_]

__all__ = [
    "Search",
    "Strata",
    "WorstSlab",
    "criterion_measure",
    "groups_measure",
    "hsic_measure",
    "means_measure",
    "quantiles_measure",
    "size_borders",
    "size_stratum",
    "slab_measure",
    "worst_slab",
]


def means_measure(names: tuple[str, ...], columns: Sequence[Floats | Mask], rows: PredictionRows) -> Measure:
    """Weighted means of columns; a mean over any infinite value is infinite.

    >>> from abstain.metrics.predictions import IntervalRows
    >>> rows = IntervalRows.checked([[0, 1], [0, np.inf]]).in_units(np.array([0, 1]))
    >>> means_measure(("width",), rows.width, rows)(np.array([[1.0, 1.0], [1.0, 0.0]])).tolist()
    [[inf], [1.0]]
    """
    split = [_without_infinity(column) for column in columns]
    holes = [place for place, (_, infinite) in enumerate(split) if infinite is not None]

    def finish(count: Floats, *sums: Floats) -> list[Floats]:
        means = [_ratio(total, count) for total in sums[: len(split)]]
        for place, infinite in zip(holes, sums[len(split) :], strict=True):
            means[place] = np.where(infinite > 0.0, np.inf, means[place])
        return means

    summed = [finite for finite, _ in split] + [part for _, part in split if part is not None]
    return Measure.of_sums(names, summed, unit=rows.unit, units=rows.units, weight=rows.weight, finish=finish)


def _without_infinity(column: Floats | Mask) -> tuple[Floats | Mask, Mask | None]:
    """Split a column into its finite part and a mask of infinite rows, None when there is none."""
    if column.dtype == np.bool_ or not np.isinf(column.max(initial=0.0)):
        return column, None
    holes = np.isinf(column)
    return np.where(holes, 0.0, column), holes


def criterion_measure(
    name: str, truth: Floats, covered: Mask, width: Floats, rows: PredictionRows, *, eta: float, level: float
) -> Measure:
    """Weigh the width criterion of one level; the range of the truths is that of the units which are drawn.

    It is NaN where all truths are alike, and -inf where the mean width is infinite.
    """
    means = means_measure(("coverage", "width"), (covered, width), rows)
    counted = slice(None) if rows.weight is None else rows.weight > 0.0
    lowest, highest = _extremes(truth[counted], rows.unit[counted], rows.units)

    def finish(batch: Batch) -> Floats:
        coverage, mean_width = means(batch).T
        drawn = batch.weights > 0.0
        top = np.where(drawn, highest, -np.inf).max(axis=1)
        bottom = np.where(drawn, lowest, np.inf).min(axis=1)
        scale = np.where(top > bottom, top - bottom, np.nan)
        reward = np.exp(-eta * (coverage - level) ** 2)
        finite = np.isfinite(mean_width)
        values = np.where(finite, (1.0 - np.where(finite, mean_width, 0.0) / scale) * reward, -np.inf)
        return np.where(np.isnan(scale), np.nan, values)[:, None]

    return Measure((name,), rows.units, 3 * rows.units, finish)


def _extremes(values: Floats, unit: Indices, units: int) -> tuple[Floats, Floats]:
    """The smallest and the largest value of each unit; infinities the wrong way round where it has none."""
    if units == 1:
        return values.min(keepdims=True, initial=np.inf), values.max(keepdims=True, initial=-np.inf)
    lowest, highest = np.full(units, np.inf), np.full(units, -np.inf)
    np.minimum.at(lowest, unit, values)
    np.maximum.at(highest, unit, values)
    return lowest, highest


@dataclass(frozen=True, eq=False, slots=True)
class Strata:
    """Equal chunks of the rows ranked by a key, which know where they end; build them with `of_rows`.

    Rows that share a key and stand across the border of two chunks are spread evenly over both: what a random order
    of them would give on average, so that the order of rows plays no part.

    Attributes:
        tally: counts and covered rows by distinct key, ascending.
        keys: the distinct keys.
        bins: how many chunks there are.
        whole: True when rows have ranks; else chunks have equal weight.
    """

    tally: Tally
    keys: Floats
    bins: int
    whole: bool

    @classmethod
    def of_rows(cls, key: Floats, covered: Mask, rows: PredictionRows, *, bins: int) -> Strata:
        """Tally the rows by their key."""
        tally, keys = _by_key(key, [covered], rows)
        return cls(tally, keys, bins, rows.whole)

    def borders(self, total: Floats) -> Floats:
        """Return the weight before each border, (batch, bins + 1); the first chunks take the rest."""
        place = np.arange(self.bins + 1)
        if not self.whole:
            return total[:, None] * place / self.bins
        size, rest = np.divmod(total, self.bins)
        return np.asarray(size[:, None] * place + np.minimum(place, rest[:, None]), dtype=np.float64)

    def ends(self) -> tuple[Floats, Floats, Floats]:
        """Return the lowest key, the highest key and the weight of each chunk when every row counts."""
        count = self.tally.run(np.ones((1, self.tally.units)))[0, 0]
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

    def measure(self, name: str) -> Measure:
        """Return the coverage of each chunk, then the worst of them under `name`."""
        names = (*(f"{name}[{place}]" for place in range(self.bins)), name)
        return Measure(names, self.tally.units, 2 * self.tally.width, self._finish)

    def _finish(self, batch: Batch) -> Floats:
        count, hit = self.tally.run(batch.weights)
        borders = self.borders(count[:, -1])
        covered = np.stack([np.interp(*row) for row in zip(borders, count, hit, strict=True)])
        chunks = _ratio(np.diff(covered, axis=1), np.diff(borders, axis=1))
        return np.column_stack([chunks, _lowest(chunks)])


def quantiles_measure(
    key: Floats, rows: PredictionRows, *, probabilities: Sequence[float] | Floats, name: str
) -> Measure:
    """Quantiles of a key, linear between ranks; with fractional weights, the inverse of the distribution."""
    tally, keys = _by_key(key, [], rows)
    shares, whole = np.asarray(probabilities, np.float64), rows.whole

    def finish(batch: Batch) -> Floats:
        (count,) = tally.run(batch.weights)
        return np.stack([_quantiles(row[1:], keys, shares, whole=whole) for row in count])

    names = tuple(f"{name}[{share:g}]" for share in shares)
    return Measure(names, rows.units, 2 * tally.width, finish)


def _quantiles(count: Floats, keys: Floats, shares: Floats, *, whole: bool) -> Floats:
    """The quantiles of keys, ascending, of which there are `count` up to and with each."""
    last = len(keys) - 1
    if not len(keys) or count[-1] <= 0.0:
        return np.full(len(shares), np.nan)
    if not whole:
        target = shares * count[-1] * (1.0 - 1e-12)
        return np.asarray(keys[np.minimum(np.searchsorted(count, target), last)])
    rank = shares * (count[-1] - 1.0)
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


def groups_measure(
    covered: Mask,
    group: Indices,
    groups: int,
    rows: PredictionRows,
    *,
    name: str,
    gap: str = "coverage_gap",
    level: float = np.nan,
) -> Measure:
    """Coverage in each group, then the worst under `name` and the mean distance of all from `level` under `gap`."""
    tally = Tally.of_rows(
        unit=rows.unit, key=group, columns=[covered], units=rows.units, keys=groups, weight=rows.weight
    )

    def finish(batch: Batch) -> Floats:
        count, hit = tally.weigh(batch.weights)
        ratio, present = _ratio(hit, count), count > 0.0
        distance = np.where(present, np.abs(ratio - level), 0.0).sum(axis=1)
        return np.column_stack([ratio, _lowest(ratio), _ratio(distance, present.sum(axis=1))])

    names = (*(f"{name}[{place}]" for place in range(groups)), name, gap)
    return Measure(names, rows.units, max(rows.units, 2 * groups), finish)


def size_borders(classes: int, bins: int | None) -> Indices:
    """Return the smallest size of each stratum of the sizes 0 to `classes`; one stratum per size for None."""
    if bins is None:
        return np.arange(classes + 1)
    number = _validate.whole(bins, "bins", least=1, most=classes + 1)
    return np.array([part[0] for part in np.array_split(np.arange(classes + 1), number)])


def size_stratum(size: Floats, borders: Indices) -> Indices:
    """Return the stratum of each set size."""
    return np.searchsorted(borders, size, side="right") - 1


def _by_key(key: Floats, columns: Sequence[Floats | Mask], rows: PredictionRows) -> tuple[Tally, Floats]:
    """Rows tallied by a number, ascending, and the number of each key."""
    place, keys = keys_ascending(key)
    tally = Tally.of_rows(
        unit=rows.unit, key=place, columns=columns, units=rows.units, keys=len(keys), weight=rows.weight
    )
    return tally, keys


def _ratio(above: Floats, below: Floats) -> Floats:
    """Divide; NaN where there is nothing to divide by."""
    return np.divide(above, below, out=np.full(np.shape(above), np.nan), where=below > 0.0)


def _lowest(values: Floats) -> Floats:
    """The smallest value of each row that is not NaN; NaN when there is none."""
    lowest = np.where(np.isnan(values), np.inf, values).min(axis=1, initial=np.inf)
    return np.where(np.isinf(lowest), np.nan, lowest)
