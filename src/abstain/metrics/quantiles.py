"""Predictive distributions in the form of quantiles: pinball loss and PIT histogram.

Quantiles are an array (rows, probabilities). The probabilities are the same for all rows and ascend. A quantile may be
infinite but not NaN, and the quantiles of a row must not descend. Intervals are in `abstain.metrics.intervals`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from abstain.errors import ArgumentError
from abstain.metrics.coverage import means_statistic
from abstain.metrics.predictions import QuantileRows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    from abstain._types import Floats
    from abstain.resampling import Statistic


__all__ = ["PitHistogram", "pinball_loss", "pit_histogram"]


@dataclass(frozen=True, eq=False, slots=True)
class PitHistogram:
    """The histogram of truths within their predictive distributions; if calibrated, its density is 1 everywhere.

    Attributes:
        edges: 0, the probabilities, 1.
        proportion: the proportion of truths between neighbouring quantiles, one number per bin.
        expected: the expected proportion, which is the difference of the edges.
        counts: the weight of the rows in each bin; not a whole number if quantiles are tied.
    """

    edges: Floats
    proportion: Floats
    expected: Floats
    counts: NDArray[Any]

    def __repr__(self) -> str:
        return f"PitHistogram({len(self.proportion)} bins)"

    @property
    def density(self) -> Floats:
        """``proportion / expected``, the height of each bar."""
        return self.proportion / self.expected


def pinball_loss(
    y_true: ArrayLike,
    quantiles: ArrayLike,
    *,
    probabilities: float | Sequence[float],
    sample_weight: ArrayLike | None = None,
) -> float | Floats:
    """Return the mean pinball loss of each quantile: the mean of ``p * (y - q)+ + (1 - p) * (q - y)+``.

    Lower is better. One number per probability. Reference: Koenker and Bassett, "Regression Quantiles", 1978.

    >>> pinball_loss([3, 0], [1, 1], probabilities=0.75)            # (0.75 * 2 + 0.25 * 1) / 2
    0.875
    >>> pinball_loss([3, 0], [[1, 2], [1, 1]], probabilities=[0.25, 0.75])
    array([0.625, 0.5 ])
    """
    rows = QuantileRows.checked(y_true, quantiles, probabilities, sample_weight)
    values = pinball_statistic(rows).points
    return float(values[0]) if np.ndim(probabilities) == 0 else values


def pit_histogram(
    y_true: ArrayLike,
    quantiles: ArrayLike,
    *,
    probabilities: Sequence[float],
    sample_weight: ArrayLike | None = None,
) -> PitHistogram:
    """Return the histogram of the probability integral transform (PIT) ``F(y)``, with the quantiles as edges.

    A truth is in the bin that ends at the first quantile not below it. If several quantiles equal it, it is divided
    among the bins between them in proportion to their probability, which is the mean of the randomized PIT. Reference:
    Gneiting, Balabdaoui and Raftery, "Probabilistic forecasts, calibration and sharpness", 2007.

    >>> histogram = pit_histogram([1, 5, 6, 9], [[2, 6]] * 4, probabilities=[0.25, 0.75])
    >>> histogram.proportion, histogram.density
    (array([0.25, 0.5 , 0.25]), array([1., 1., 1.]))
    """
    if np.ndim(probabilities) == 0:
        raise ArgumentError("probabilities must be a sequence, one probability per column of quantiles")
    rows = QuantileRows.checked(y_true, quantiles, probabilities, sample_weight)
    proportion = pit_statistic(rows).points
    counts = proportion * float(rows.weight.sum())
    rounded = np.rint(counts)
    if np.allclose(counts, rounded, rtol=0.0, atol=1e-9 * max(float(counts.sum()), 1.0)):
        counts = rounded.astype(np.int64)
    return PitHistogram(rows.edges, proportion, np.diff(rows.edges), counts)


def pinball_statistic(rows: QuantileRows) -> Statistic:
    """Return the statistic of the mean pinball losses, one per probability."""
    columns = []
    for quantile, probability in zip(rows.quantiles.T, rows.probabilities.tolist(), strict=True):
        above = rows.truth - quantile
        columns.append(np.maximum(probability * above, (probability - 1.0) * above))
    return means_statistic(tuple(f"pinball[{value:g}]" for value in rows.probabilities), columns, rows)


def pit_statistic(rows: QuantileRows) -> Statistic:
    """Return the statistic of the proportions of truths between neighbouring quantiles, one per bin."""
    table = pit_proportions(rows.truth, rows.quantiles, rows.edges)
    return means_statistic(tuple(f"pit[{number}]" for number in range(table.shape[1])), list(table.T), rows)


def pit_proportions(truth: Floats, quantiles: Floats, edges: Floats) -> Floats:
    """Return the proportion of each row in each bin, (rows, bins)."""
    rows, bins = len(truth), len(edges) - 1
    below = (quantiles < truth[:, None]).sum(axis=1)
    not_above = (quantiles <= truth[:, None]).sum(axis=1)
    table = np.zeros((rows, bins))
    tied = not_above > below + 1
    table[np.flatnonzero(~tied), below[~tied]] = 1.0
    for row in np.flatnonzero(tied):
        between = slice(below[row] + 1, not_above[row])
        gap = np.diff(edges)[between]
        table[row, between] = gap / gap.sum()
    return table
