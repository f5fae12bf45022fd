"""Differences whose interval comes from the intervals of both sides.

An end of the difference is as far away as the ends of both intervals on its side are together, and the larger distance
counts for both ends. The dependence of the two sides is not used: the interval is that of independent samples, and
conservative for two systems on the same items. Reference: Zou and Donner, "Construction of Confidence Limits about
Effect Measures: A General Approach", Statistics in Medicine, 2008.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from abstain.inference._distributions import t_quantile
from abstain.inference._estimate import Estimate
from abstain.inference._intervals import difference_range, subtract, with_error

if TYPE_CHECKING:
    from collections.abc import Sequence

    from abstain.metrics import MetricSpecification
    from abstain.metrics.scales import Scale


def difference_over_jumps(
    difference: Estimate, metric: MetricSpecification, left: Estimate, right: Estimate
) -> Estimate:
    """Return a difference (right - left); if the metric jumps, its interval comes from those of both sides.

    A metric that jumps, or whose value could fall on several steps of a side, has no valid jackknife, but an interval
    from its operating points or parts. A bootstrap interval is returned as it is.
    """
    if not (metric.jumps or left.over_steps or right.over_steps):
        return difference
    is_jackknife = difference.degrees > 0.0 and not math.isnan(difference.se)
    if not (is_jackknife and left.interval and right.interval):
        return difference
    return _from_both_sides(difference, left, right)


def difference_of_samples(
    sides: Sequence[Estimate], scales: Sequence[Scale] = (), *, n: int, clusters: int
) -> Estimate:
    """Return the difference of two independent samples (right - left), with an interval from those of both.

    Args:
        sides: a metric of the left sample and of the right one.
        scales: the scale of the metric on both sides. Default: the difference can have any size.
        n: number of evaluated items of both samples.
        clusters: number of clusters of both samples.

    >>> sides = Estimate(0.5, 0.4, 0.6, degrees=30), Estimate(0.8, 0.7, 0.85, degrees=20)
    >>> difference = difference_of_samples(sides, n=200, clusters=65)
    >>> print(difference, difference.degrees)
    0.300 [0.159, 0.441] 20
    """
    left, right = sides
    difference = Estimate(
        float(subtract(right.value, left.value)),
        level=left.level,
        n=n,
        clusters=clusters,
        degrees=min(filter(None, (left.degrees, right.degrees)), default=1.0),
        range=difference_range(scales),
    )
    if not difference.defined:
        return replace(difference, reason="undefined on at least one side")
    for side in sides:
        if side.interval is None:
            return replace(difference, reason=side.reason)
    return _from_both_sides(difference, left, right)


def _from_both_sides(difference: Estimate, left: Estimate, right: Estimate) -> Estimate:
    reach = max(
        math.hypot(left.high - left.value, right.value - right.low),
        math.hypot(left.value - left.low, right.high - right.value),
    )
    error = reach / t_quantile(difference.degrees, (1.0 + difference.level) / 2.0)
    return with_error(difference, error, "from the intervals of both sides")
