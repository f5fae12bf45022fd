"""Statistics of calibration errors: binned errors, and the smooth error without bins.

Rows are binned by confidence. Three sums per bin are enough: the number of rows, the outcomes and the confidences. Bins
are closed on the left, and the last one is closed on both sides. Empty bins are kept with count 0.

``uniform`` bins have equal widths on [0, 1]. The bin of a row does not depend on the weights, so the bin is the key of
the cluster sums. ``quantile`` bins have equal mass: lower edge ``b`` of ``B`` bins is the smallest confidence for which
more than a proportion ``b / B`` of the mass is at or below it, so tied confidences are in the same bin. The edges
depend on the weights, so the key is the confidence, and the edges are found on the running sums of every weight vector.
In both cases a weight of 2 counts a row twice.

The smooth error puts residuals ``y - s`` on a fine grid over [0, 1], each divided between its two neighbours, and
smooths them with a Gaussian that is reflected at both ends. The sums over the grid are cluster sums with the cells as
keys. After a cosine transform, smoothing multiplies each frequency by a factor, so every width costs only one
transform. The width is chosen so that it equals the resulting error. The metrics are defined in
`abstain.metrics.calibration`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from abstain.metrics._columns import ratio
from abstain.resampling import ClusterSums, RunningSums, Statistic, WeightBatch, keys_ascending, total_by

if TYPE_CHECKING:
    from collections.abc import Callable

    from abstain._types import Floats, Indices
    from abstain.metrics._columns import Columns


STRATEGIES = ("uniform", "quantile")

# The rounding error that is allowed, in bins, if a running sum of fractional weights should end at an edge.
_TOLERANCE = 1e-9

# Cells of the grid of the smooth error: a power of two for the transform, and much finer than any width that data can
# distinguish from zero.
_CELLS = 2048
_NARROWEST = 1.0 / _CELLS
_PRECISION = 1e-10


@dataclass(frozen=True, eq=False, slots=True)
class BinSums:
    """The sums of the bins, each array (batch, groups, bins)."""

    count: Floats
    outcome: Floats
    confidence: Floats


def bins_statistic(
    rows: Columns,
    *,
    group: Indices | None = None,
    bins: int = 15,
    strategy: str = "uniform",
    norm: str = "1",
    debiased: bool = False,
) -> Statistic:
    """Return the statistic of the calibration error, averaged over groups of rows. Default: one group."""
    group = np.zeros(len(rows), np.intp) if group is None else group
    binned = _uniform if strategy == "uniform" else _quantile
    sums, width = binned(rows, group, int(group.max(initial=0)) + 1, bins)

    def compute(batch: WeightBatch) -> Floats:
        binned_sums = sums(batch)
        if debiased and rows.item_weight != 1.0:  # the bias depends on the number of items in a bin
            columns = (binned_sums.count, binned_sums.outcome, binned_sums.confidence)
            binned_sums = BinSums(*(column / rows.item_weight for column in columns))
        error = calibration_errors(binned_sums, norm, debiased=debiased)
        present = ~np.isnan(error)
        total = np.where(present, error, 0.0).sum(axis=1)
        return ratio(total, present.sum(axis=1))[:, None]

    return Statistic(("calibration_error",), rows.units, max(rows.units, width), compute)


def calibration_errors(sums: BinSums, norm: str, *, debiased: bool = False) -> Floats:
    """Return the error of every (weight vector, group): NaN for a group without weight."""
    total = sums.count.sum(axis=2)
    difference = sums.outcome - sums.confidence
    if debiased:
        error = _debiased(sums, difference, total, norm)
    elif norm == "1":
        error = ratio(np.abs(difference).sum(axis=2), total)
    elif norm == "2":
        error = np.sqrt(ratio(ratio(difference**2, sums.count, empty=0.0).sum(axis=2), total))
    else:
        error = np.abs(ratio(difference, sums.count, empty=0.0)).max(axis=2)
    return np.where(total > 0, error, np.nan)


def _debiased(sums: BinSums, difference: Floats, total: Floats, norm: str) -> Floats:
    """Subtract the bias due to chance: the variance of each bin (norm 2), or the excess of a folded normal (norm 1)."""
    accuracy = ratio(sums.outcome, sums.count, empty=0.0)
    spread = np.clip(accuracy * (1.0 - accuracy), 0.0, None)
    if norm == "2":
        squares = ratio(difference**2, sums.count, empty=0.0)
        variances = spread * ratio(sums.count, sums.count - 1.0, empty=0.0)
        # A bin with a single row has no variance estimate, so it contributes 0.
        squares = np.where(sums.count > 1.0, squares - variances, 0.0)
        return np.sqrt(np.clip(ratio(squares.sum(axis=2), total), 0.0, None))
    from scipy.special import ndtr  # noqa: PLC0415

    gap = np.abs(ratio(difference, sums.count, empty=0.0))
    deviation = np.sqrt(ratio(spread, sums.count, empty=0.0))
    standard = np.divide(gap, deviation, out=np.full_like(gap, np.inf), where=deviation > 0)
    folded = deviation * np.sqrt(2.0 / np.pi) * np.exp(-(standard**2) / 2.0)
    folded += gap * (1.0 - 2.0 * ndtr(-standard))
    return np.clip(ratio((sums.count * (2.0 * gap - folded)).sum(axis=2), total), 0.0, None)


def uniform_bin(confidence: Floats, bins: int) -> Indices:
    """Return the equal-width bin of every confidence: ``min(floor(bins * c), bins - 1)``."""
    position = (confidence * bins).astype(np.intp)
    return np.minimum(position, bins - 1, out=position)


def row_bins(confidence: Floats, weight: Floats, bins: int, strategy: str) -> tuple[Indices, Floats]:
    """Return the bin of every row and the ``bins + 1`` edges.

    The outer edges of quantile bins are the lowest and the highest confidence with a positive weight.
    """
    if strategy == "uniform":
        return uniform_bin(confidence, bins), np.arange(bins + 1) / bins
    counted = weight > 0
    level, position = np.unique(confidence[counted], return_inverse=True)
    running = np.cumsum(total_by(position, weight[counted]))
    proportion = (np.arange(1, bins) + _TOLERANCE) / bins
    inner = level[np.searchsorted(running, running[-1] * proportion)]
    return np.searchsorted(inner, confidence, side="right"), np.concatenate([level[:1], inner, level[-1:]])


def _uniform(
    rows: Columns, group: Indices, groups: int, bins: int
) -> tuple[Callable[[WeightBatch], BinSums], int]:
    """Sum rows by group and equal-width bin."""
    key = group * bins + uniform_bin(rows.confidence, bins)
    cluster_sums = rows.sum_by(key, groups * bins, rows.correct, rows.confidence)

    def sums(batch: WeightBatch) -> BinSums:
        return BinSums(*cluster_sums.evaluate(batch).reshape(3, len(batch), groups, bins))

    return sums, 3 * cluster_sums.width


def _quantile(
    rows: Columns, group: Indices, groups: int, bins: int
) -> tuple[Callable[[WeightBatch], BinSums], int]:
    """Sum the rows of each group by confidence; edges are found on the running sums."""
    by_group = []
    for number in range(groups):
        part = rows.take(group == number)
        key, distinct = keys_ascending(part.confidence)
        by_group.append(part.sum_by(key, len(distinct), part.correct, part.confidence))
    proportion = (np.arange(1, bins + 1) + _TOLERANCE) / bins

    def sums(batch: WeightBatch) -> BinSums:
        parts = [_between(cluster_sums.run(batch.weights), proportion) for cluster_sums in by_group]
        return BinSums(*np.stack(parts, axis=2))

    return sums, 3 * max(cluster_sums.width for cluster_sums in by_group)


def _between(running: Floats, proportion: Floats) -> Floats:
    """Return the sums between edges of equal mass, from running sums (columns, batch, ranks with a leading 0)."""
    run = RunningSums(running[0], running[1])
    # A bin ends below the rank at which its mass is reached.
    edge = np.maximum(run.reaching(run.last_count[:, None] * proportion) - 1, 0)
    return np.diff(np.take_along_axis(running, edge[None], axis=2), prepend=0.0, axis=2)


def smooth_statistic(rows: Columns) -> Statistic:
    """Return the statistic of the smooth calibration error; NaN if all weights are 0."""
    position = rows.confidence * _CELLS
    left = np.minimum(position.astype(np.intp), _CELLS - 1)
    right_proportion = position - left
    cluster_sums = ClusterSums.of_rows(
        unit=np.tile(rows.cluster, 2),
        key=np.concatenate([left, left + 1]),
        columns=[np.tile(rows.correct - rows.confidence, 2)],
        units=rows.units,
        keys=_CELLS + 1,
        weight=np.concatenate([rows.weight * (1.0 - right_proportion), rows.weight * right_proportion]),
    )

    def compute(batch: WeightBatch) -> Floats:
        count, residual = cluster_sums.evaluate(batch)
        total = count.sum(axis=1)
        mass = ratio(residual, total[:, None], empty=0.0)
        return np.where(total > 0, _fixed_point(_cosines(mass)), np.nan)[:, None]

    return Statistic(("smooth_calibration_error",), rows.units, max(rows.units, cluster_sums.width), compute)


def _cosines(mass: Floats) -> Floats:
    """Return ``sum_m mass_m cos(pi k m / cells)`` for every frequency k."""
    from scipy.fft import dct  # noqa: PLC0415

    halved = mass / 2.0
    halved[:, [0, -1]] *= 2.0
    return np.asarray(dct(halved, type=1, axis=1))


def _error(cosines: Floats, width: Floats) -> Floats:
    """Return the integral of ``|smoothed residual|`` over [0, 1], one width per row."""
    from scipy.fft import dct  # noqa: PLC0415

    frequency = np.pi * np.arange(_CELLS + 1)
    smoothed = np.abs(dct(cosines * np.exp(-((width[:, None] * frequency) ** 2) / 2.0), type=1, axis=1))
    trapezoid = smoothed.sum(axis=1) - (smoothed[:, 0] + smoothed[:, -1]) / 2.0
    return np.asarray(trapezoid / _CELLS)


def _fixed_point(cosines: Floats) -> Floats:
    """Return the error that equals its width, by the Illinois form of false position on all rows at once.

    The error falls as the width grows, so there is one crossing. If even the narrowest width exceeds its error, that
    error is returned. It is below the resolution of the grid.
    """
    rows = len(cosines)
    low, high = np.full(rows, _NARROWEST), np.ones(rows)
    narrowest = _error(cosines, low)
    below, above = narrowest - low, _error(cosines, high) - high
    open_ = (below > 0.0) & (above < 0.0)
    width = np.where(below > 0.0, 1.0, narrowest)
    active = np.flatnonzero(open_)
    last_rising = np.zeros(rows, np.int8)
    for _ in range(100):
        if not len(active):
            break
        a, b, fa, fb = low[active], high[active], below[active], above[active]
        middle = (a * fb - b * fa) / (fb - fa)
        value = _error(cosines[active], middle) - middle
        rising = value > 0.0
        # Halving the value of an end that was kept twice prevents slow convergence from one side.
        again = last_rising[active] == np.where(rising, 1, -1)
        last_rising[active] = np.where(rising, 1, -1)
        low[active], below[active] = (
            np.where(rising, middle, a),
            np.where(rising, value, np.where(again, fa / 2.0, fa)),
        )
        high[active], above[active] = (
            np.where(rising, b, middle),
            np.where(rising, np.where(again, fb / 2.0, fb), value),
        )
        width[active] = middle
        active = active[np.abs(value) > _PRECISION]
    return width
