"""Kernels: exact binomial intervals, and how many independent rows clustered ones are worth.

References: Clopper and Pearson, "The use of confidence or fiducial limits illustrated in the case of the binomial",
1934; Korn and Graubard, "Confidence intervals for proportions with small expected number of positive counts
estimated from survey data", 1998. What is counted, and what follows from it, is known to the callers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from abstain.tally import total_by

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Indices = NDArray[np.intp]

__all__ = ["clopper_pearson", "effective_counts"]


def effective_counts(
    bin_: Indices,
    cluster: Indices,
    weight: Floats,
    outcome: Floats,
    count: Floats,
    accuracy: Floats,
    level: float,
) -> Floats:
    """Return how many independent rows each bin is worth, at most the rows it holds."""
    from scipy.special import stdtrit  # noqa: PLC0415

    # One cell for each (bin, cluster) pair that occurs.
    pair, cell = np.unique(bin_ * (int(cluster.max()) + 1) + cluster, return_inverse=True)
    cell_bin = pair // (int(cluster.max()) + 1)
    cell_count = total_by(cell, weight)
    excess = total_by(cell, weight * outcome) - accuracy[cell_bin] * cell_count
    members = np.bincount(cell_bin, minlength=len(count)).astype(np.float64)
    between = total_by(cell_bin, excess**2, len(count))
    spread = accuracy * (1.0 - accuracy)
    known = (members > 1) & (spread > 0) & (count > 1)
    effective = np.minimum(count, members)
    n, m = count[known], members[known]
    variance = between[known] / n**2 * m / (m - 1.0)
    design = variance / (spread[known] / (n - 1.0))
    half = (1.0 + level) / 2.0
    students = (stdtrit(n - 1.0, half) / stdtrit(m - 1.0, half)) ** 2
    # Clusters may also agree by chance less than single rows would; that is no ground for a narrower
    # interval.
    effective[known] = n / np.maximum(design, 1.0) * np.minimum(students, 1.0)
    return effective


def clopper_pearson(happened: Floats, count: Floats, level: float) -> tuple[Floats, Floats]:
    """Return the ends of the interval for each share of `happened` in `count`; NaN where there is no row."""
    from scipy.special import betaincinv  # noqa: PLC0415

    tail = (1.0 - level) / 2.0
    low, high = np.full(len(count), np.nan), np.full(len(count), np.nan)
    held = count > 0
    yes, no = happened[held], count[held] - happened[held]
    low[held] = np.where(yes > 0, betaincinv(np.maximum(yes, 1e-300), no + 1.0, tail), 0.0)
    high[held] = np.where(no > 0, betaincinv(yes + 1.0, np.maximum(no, 1e-300), 1.0 - tail), 1.0)
    return low, high
