"""Reliability bins: the measure of every metric over them, and the bins of rows that count once.

Rows fall into bins by their confidence. Per bin three sums are enough: how many rows, how many outcomes that came
true, how much confidence. Bins are left-closed, the last one closed, and an empty bin stays, with count 0.

``uniform`` bins have equal widths on [0, 1]: the bin of a row never changes, so that it is a key of the tally.
``quantile`` bins have equal mass: lower edge ``b`` of ``B`` is the smallest confidence with more than a share
``b / B`` of the mass at or below it, so that tied confidences share a bin. Edges move with the weights, so that the
key is the confidence, and every weight vector finds its edges on running sums. A weight of 2 is the row twice in
either case. What the metrics mean is said in `abstain.metrics.calibration`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from abstain.metrics._areas import Run
from abstain.tally import Batch, Measure, Tally, keys_ascending, total_by

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from abstain.metrics._columns import Columns

    Floats = NDArray[np.float64]
    Indices = NDArray[np.intp]

STRATEGIES = ("uniform", "quantile")

# A share of a bin by which a running sum of fractional weights may miss an edge that it should land on.
_TOLERANCE = 1e-9


@dataclass(frozen=True, eq=False, slots=True)
class BinSums:
    """What stands in the bins, each array (batch, groups, bins)."""

    count: Floats
    outcome: Floats
    confidence: Floats


def bins_measure(
    name: str,
    rows: Columns,
    *,
    group: Indices | None = None,
    bins: int = 15,
    strategy: str = "uniform",
    norm: str = "1",
    debiased: bool = False,
) -> Measure:
    """Return the calibration error of rows that are right or not, averaged over groups of rows, one when left out."""
    group = np.zeros(len(rows), np.intp) if group is None else group
    binned = _uniform if strategy == "uniform" else _quantile
    sums, width = binned(rows, group, int(group.max(initial=0)) + 1, bins)

    def finish(batch: Batch) -> Floats:
        error = calibration_errors(sums(batch.weights), norm, debiased=debiased)
        present = ~np.isnan(error)
        total = np.where(present, error, 0.0).sum(axis=1)
        return _ratio(total, present.sum(axis=1))[:, None]

    return Measure((name,), rows.units, max(rows.units, width), finish)


def calibration_errors(sums: BinSums, norm: str, *, debiased: bool = False) -> Floats:
    """Return the error of every (weight vector, group): NaN for a group without weight."""
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


def _uniform(
    rows: Columns, group: Indices, groups: int, bins: int
) -> tuple[Callable[[Floats], BinSums], int]:
    """Tally rows by group and equal-width bin."""
    tally = _tally(rows, group * bins + uniform_bin(rows.confidence, bins), groups * bins)

    def sums(weights: Floats) -> BinSums:
        return BinSums(*tally.weigh(weights).reshape(3, len(weights), groups, bins))

    return sums, 3 * tally.width


def _quantile(
    rows: Columns, group: Indices, groups: int, bins: int
) -> tuple[Callable[[Floats], BinSums], int]:
    """Tally the rows of each group by confidence; edges are found on the running sums."""
    tallies = []
    for number in range(groups):
        part = rows.take(group == number)
        key, distinct = keys_ascending(part.confidence)
        tallies.append(_tally(part, key, len(distinct)))
    share = (np.arange(1, bins + 1) + _TOLERANCE) / bins

    def sums(weights: Floats) -> BinSums:
        parts = [_between(tally.run(weights), share) for tally in tallies]
        return BinSums(*np.stack(parts, axis=2))

    return sums, 3 * max(tally.width for tally in tallies)


def _between(running: Floats, share: Floats) -> Floats:
    """Turn running sums (columns, batch, ranks with the ground) into what lies between edges of equal mass."""
    run = Run(running[0], running[1])
    # A bin ends below the rank that reaches its share.
    edge = np.maximum(run.reaching(run.last_count[:, None] * share) - 1, 0)
    return np.diff(np.take_along_axis(running, edge[None], axis=2), prepend=0.0, axis=2)


def _tally(rows: Columns, key: Indices, keys: int) -> Tally:
    return Tally.of_rows(
        unit=rows.cluster,
        key=key,
        columns=[rows.correct, rows.confidence],
        units=rows.units,
        keys=keys,
        weight=rows.mass,
    )


def _ratio(above: Floats, below: Floats | Indices, *, empty: float = np.nan) -> Floats:
    return np.divide(above, below, out=np.full(np.shape(above), empty), where=below > 0)
