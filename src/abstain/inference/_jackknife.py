"""The jackknife over clusters: the standard error of a difference, its interval and its p-value.

With ``g`` groups of clusters left out in turn, of ``m_j`` out of ``n`` clusters (one each, up to 400), ``h_j
= n/m_j``, the value ``t`` and the values ``t_j`` without group ``j``::

    pseudo_j = h_j*t - (h_j - 1)*t_j          centre = g*t - sum_j (1 - m_j/n) * t_j
    se^2 = (1/g) * sum_j (pseudo_j - centre)^2 / (h_j - 1)

which for single clusters is ``(n-1)/n * sum (t_j - mean)^2``. The interval is ``t +- q * se`` with the
quantile of the t distribution on ``g - 1`` degrees of freedom, and the p-value comes from the same statistic:
the one says "0 lies outside" exactly where the other falls below ``1 - level``. Reference: Busing, Meijer and
van der Leeden, "Delete-m Jackknife for Unequal m", Statistics and Computing, 1999.

Where the difference is the same whichever group is left out, there is no spread to go by. Were it the other
way round in a share ``u`` of all clusters, ``n`` that agree would be seen with probability ``(1-u)^n``; so
``u`` is at most ``1 - ((1-level)/2)^(1/n)``, the interval reaches from ``t`` to ``(1-2u)*t``, and the p-value
is ``2^(1-n)``.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from abstain import _validate
from abstain.inference._estimate import Estimate

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from abstain.inference._weights import LeaveOut

    Floats = NDArray[np.float64]

__all__ = ["at_level", "difference_estimate", "p_value"]

# An undefined value tells nothing of the spread; where more than this share of the groups gives one, nothing does.
_MOST_UNDEFINED = 0.1
# What is left of equal values by rounding is no spread.
_NOISE = 1e-12


def difference_estimate(
    value: float, left_out: Floats, leave: LeaveOut, *, n: int, level: float = 0.95
) -> Estimate:
    """Return a difference with its jackknife interval.

    Args:
        value: the difference over all clusters.
        left_out: the differences without each group of `leave`.
        leave: what was left out.
        n: how many items were judged.
        level: confidence level of the interval.

    >>> from abstain.inference import LeaveOut
    >>> leave = LeaveOut.of(np.arange(4))                     # the mean of 1, 2, 3 and 6, each left out
    >>> print(difference_estimate(3.0, np.array([11.0, 10.0, 9.0, 6.0]) / 3, leave, n=4))
    3.000 [-0.437, 6.437]
    """
    level = _validate.level(level)
    base = Estimate(value, level=level, n=n, clusters=leave.clusters)
    if math.isnan(value):
        return replace(base, reason="undefined on at least one side")
    if leave.vectors < 2:
        return replace(base, reason="one cluster alone says nothing about others")
    se = _standard_error(value, left_out, leave)
    if math.isnan(se):
        return replace(base, reason="it is undefined as soon as some clusters are left out")
    degrees = leave.vectors - 1
    made = replace(base, se=se, degrees=degrees, method=_method(leave))
    return _with_interval(made)


def at_level(estimate: Estimate, level: float) -> Estimate:
    """Return a difference with its interval at another level."""
    return estimate if estimate.interval is None else _with_interval(replace(estimate, level=level))


def _with_interval(estimate: Estimate) -> Estimate:
    from scipy.special import stdtrit  # noqa: PLC0415

    value, tail = estimate.value, (1.0 - estimate.level) / 2.0
    if estimate.se > 0.0:
        reach = float(stdtrit(estimate.degrees, 1.0 - tail)) * estimate.se
        return replace(estimate, low=value - reach, high=value + reach)
    share = 1.0 - tail ** (1.0 / estimate.clusters)
    ends = sorted((value, (1.0 - 2.0 * share) * value))
    return replace(estimate, low=ends[0], high=ends[1])


def p_value(difference: Estimate, bound: float = 0.0) -> float:
    """Return the two-sided p-value of a difference being `bound`, from the statistic that its interval comes from.

    NaN where the difference has no interval. It can be as small as the data say; where every cluster agrees, it is
    ``2^(1 - clusters)``, and 1 where the difference is the bound itself.

    >>> p_value(Estimate(0.0, -0.1, 0.1, se=0.05, degrees=40))
    1.0
    >>> p_value(Estimate(0.5, 0.4, 0.6, se=0.05, degrees=40)) < 1e-9
    True
    >>> p_value(Estimate(1.0, 0.5, 1.0, se=0.0, degrees=9, clusters=10))
    0.001953125
    """
    if difference.interval is None or math.isnan(difference.se):
        return math.nan
    distance = abs(difference.value - bound)
    if distance <= _NOISE * max(abs(difference.value), abs(bound)):
        return 1.0
    if difference.se == 0.0:
        return min(2.0 ** (1 - difference.clusters), 1.0)
    from scipy.special import stdtr  # noqa: PLC0415

    return float(2.0 * stdtr(difference.degrees, -distance / difference.se))


def _standard_error(value: float, left_out: Floats, leave: LeaveOut) -> float:
    known = np.isfinite(left_out)
    if not math.isfinite(value) or known.mean() < 1.0 - _MOST_UNDEFINED or known.sum() < 2:
        return math.nan
    values, sizes = left_out[known], leave.sizes[known]
    groups, total = len(values), float(sizes.sum())
    inverse = total / sizes
    centre = groups * value - float(((1.0 - sizes / total) * values).sum())
    pseudo = inverse * value - (inverse - 1.0) * values
    error = math.sqrt(float(((pseudo - centre) ** 2 / (inverse - 1.0)).mean()))
    return 0.0 if error <= _NOISE * max(abs(value), float(np.abs(values).max())) else error


def _method(leave: LeaveOut) -> str:
    if leave.vectors == leave.clusters:
        return f"jackknife over {leave.clusters:,} clusters, t distribution"
    return f"jackknife over {leave.vectors} groups of {leave.clusters:,} clusters, t distribution"
