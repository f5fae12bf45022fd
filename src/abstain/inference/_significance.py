"""Significance: whether a paired difference can be told from none, among many, and how much more data would tell.

The p-value of a difference is the larger of two that agree in the limit, because with a few dozen clusters
either alone raises more false alarms than its level allows:

- *percentile*: the share of replicates on the far side of zero, with one added to both counts, made wider as
  a t distribution is wider than a normal one (Hesterberg's expanded percentile interval, inverted);
- *t*: the difference over its standard error, on ``clusters - 1`` degrees of freedom.

A difference whose p-value is at most ``1 - level`` therefore has a percentile interval that excludes zero.
Estimates themselves are made elsewhere.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from abstain import _validate
from abstain.errors import DataError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]

__all__ = ["POWER", "clusters_needed", "holm", "p_value"]

# The chance of telling a difference that is there, at which a number of clusters is called enough.
POWER = 0.8


def p_value(difference: float, replicated: ArrayLike, clusters: int) -> float:
    """Return the two-sided p-value of a paired difference from its cluster-bootstrap replicates.

    With ``C`` clusters and ``R`` replicates ``d*`` in which the difference is defined::

        tail = (1 + min(#{d* <= 0}, #{d* >= 0})) / (1 + R)
        p_percentile = 2 * T(Phi^-1(tail) * sqrt((C - 1) / C))       1 where tail >= 1/2
        p_t = 2 * T(-|d| / (se * sqrt(C / (C - 1))))                 se with ddof 1
        p = max(p_percentile, p_t)

    ``T`` is the distribution function of t on ``C - 1`` degrees of freedom. NaN with fewer than two clusters
    or two valid replicates, and where the difference is undefined.
    Reference: Hesterberg, "What Teachers Should Know About the Bootstrap", The American Statistician, 2015.

    Args:
        difference: the point estimate.
        replicated: its replicates; those that are NaN or infinite are left out.
        clusters: how many clusters were resampled.

    >>> round(p_value(0.0, [-1.0, 0.0, 1.0], clusters=40), 3)
    1.0
    >>> p_value(2.0, [1.0] * 499 + [2.0] * 500, clusters=40) < 0.01
    True
    """
    values = _validate.floats(replicated, "replicated")
    values = values[np.isfinite(values)]
    if math.isnan(difference) or clusters < 2 or len(values) < 2:
        return math.nan
    from scipy.special import ndtri, stdtr  # noqa: PLC0415  (judging one run needs no scipy)

    far = min(int((values <= 0.0).sum()), int((values >= 0.0).sum()))
    tail = min((1 + far) / (1 + len(values)), 0.5)
    by_percentile = 2.0 * float(stdtr(clusters - 1, ndtri(tail) * math.sqrt((clusters - 1) / clusters)))
    error = float(values.std(ddof=1)) * math.sqrt(clusters / (clusters - 1))
    if error == 0.0:
        return by_percentile if difference else 1.0
    return max(by_percentile, 2.0 * float(stdtr(clusters - 1, -abs(difference) / error)))


def holm(p_values: ArrayLike) -> Floats:
    """Return Holm's adjusted p-values: those at most alpha hold together with a family-wise error of alpha.

    The ``i``-th smallest of ``m`` becomes ``max over j <= i of min(1, (m - j + 1) * p_j)``. An undefined one
    (NaN) stays so and does not count: nothing is claimed from it.
    Reference: Holm, "A Simple Sequentially Rejective Multiple Test Procedure", 1979.

    >>> holm([0.01, 0.04, 0.03]).tolist()        # 3 * 0.01, then 2 * 0.03, which 0.04 may not fall below
    [0.03, 0.06, 0.06]
    """
    values = _validate.floats(p_values, "p_values")
    tested = np.flatnonzero(~np.isnan(values))
    wrong = (values[tested] < 0.0) | (values[tested] > 1.0)
    if wrong.any():
        row = int(tested[np.argmax(wrong)])
        raise DataError(f"p_values must lie in [0, 1], got {values[row]:g} at row {row}")
    adjusted = values.copy()
    order = tested[np.argsort(values[tested], kind="stable")]
    factors = len(order) - np.arange(len(order))
    adjusted[order] = np.maximum.accumulate(np.minimum(values[order] * factors, 1.0))
    return adjusted


def clusters_needed(
    difference: float, se: float, clusters: int, *, level: float = 0.95, power: float = POWER
) -> float:
    """Return how many clusters would tell a difference of that size apart from none, in all.

    The standard error falls with the square root of the clusters, so with ``C`` of them now::

        needed = C * ((z(1 - alpha / 2) + z(power)) * se / difference)^2        alpha = 1 - level

    rounded up. Infinite for a difference of 0; NaN where the difference or its standard error is undefined.

    Args:
        difference: the difference to be told: the one observed, or the smallest that would matter.
        se: its standard error now.
        clusters: how many clusters there are now.
        level: the confidence level at which it is to be told.
        power: the chance of telling it.

    >>> clusters_needed(0.005, 0.01, 40)         # 40 * (2.8016 * 2)^2 = 1255.8
    1256.0
    """
    from scipy.special import ndtri  # noqa: PLC0415

    alpha = 1.0 - _validate.level(level)
    reach = float(ndtri(1.0 - alpha / 2.0) + ndtri(_validate.level(power, "power")))
    if math.isnan(difference) or math.isnan(se):
        return math.nan
    ratio = reach * se / abs(difference) if difference else math.inf
    needed = clusters * ratio * ratio
    return float(math.ceil(needed)) if math.isfinite(needed) else math.inf
