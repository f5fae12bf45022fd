"""Standard errors over random halves of the clusters, for custom metrics.

A custom metric may jump, as a median or a maximum does, and then its jackknife is invalid. So it is also evaluated on
random halves of the clusters. The squared distance of half a sample from the whole has the same mean as the squared
standard error of the jackknife if the metric is a mean or a smooth function of means. If the halves differ clearly
more, the metric jumps, and their standard error is used, which is also valid for quantiles. Reference: Shao and Wu, "A
General Theory for Jackknife Variance Estimation", Annals of Statistics, 1989.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from abstain.inference._estimate import JACKKNIFE
from abstain.inference._intervals import subtract, with_error

if TYPE_CHECKING:
    from collections.abc import Sequence

    from abstain._types import Floats
    from abstain.inference._estimate import Estimate
    from abstain.inference._intervals import Intervals
    from abstain.resampling import Statistic

# The number of random halves, and how many times larger than the jackknife's their standard error is if a metric jumps.
# For a mean, the ratio of the two exceeds 1.25 by chance in about one data set of a hundred.
_HALVES, _JUMPS = 60, 1.25


def errors_over_halves(statistics: Sequence[Statistic], intervals: Intervals) -> Floats:
    """Return the standard errors of the values of a statistic, or of the differences (second - first) of two.

    NaN for other intervals than the jackknife's, and for values that are undefined on many of the halves.
    """
    units, columns = intervals.units, len(statistics[-1].names)
    if intervals.interval != JACKKNIFE or units < 2:
        return np.full(columns, np.nan)
    order = np.random.default_rng(0).permuted(np.tile(np.arange(units), (_HALVES, 1)), axis=1)
    kept = units // 2
    weights = np.vstack([np.ones(units), order < kept])
    values = statistics[-1](weights)
    if len(statistics) > 1:
        values = subtract(values, statistics[0](weights))
    squares = subtract(values[1:], values[0]) ** 2
    defined = np.isfinite(squares)
    enough = 2 * defined.sum(axis=0) >= _HALVES
    # A part of k of n clusters is (n - k)/k times as far from the whole, squared, as the whole is from the population.
    mean = np.where(defined, squares, 0.0).sum(axis=0) / np.maximum(defined.sum(axis=0), 1)
    return np.where(enough, np.sqrt(mean * kept / (units - kept)), np.nan)


def jumps(estimate: Estimate, error: float) -> bool:
    """Return whether the standard error over halves is clearly larger than the jackknife's."""
    return bool(error > _JUMPS * estimate.se)


def with_error_over_halves(estimate: Estimate, error: float) -> Estimate:
    """Return an estimate without known ends, with the standard error over halves if the metric jumps."""
    return with_error(estimate, error, over_halves(estimate)) if jumps(estimate, error) else estimate


def over_halves(estimate: Estimate) -> str:
    """Return the beginning of the method of an estimate whose standard error is that over halves."""
    return f"random halves of {estimate.clusters:,} clusters"
