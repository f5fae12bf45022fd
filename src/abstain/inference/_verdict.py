"""Verdicts: which system is better, and whether a coverage reaches its nominal level.

A difference (right - left) has a direction that is better, an interval, and a p-value from the same statistic (see
`_intervals`) that is corrected for its family. From these, `decide` returns "left", "right" or "inconclusive". All
sentences, charts, gates and files use this verdict. With two systems the family is one difference, and one of them is
better exactly if the interval excludes 0. "Inconclusive" never means "the same". Equivalence within a margin, and
non-inferiority, are separate verdicts (`within_margin`). The verdict on a coverage comes from its printed interval
(`coverage_verdict`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from abstain import _validate
from abstain.errors import ArgumentError, DataError
from abstain.inference._intervals import against_margin, p_value

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from abstain._types import Floats
    from abstain.inference._estimate import Estimate


LEFT: str = "left"
RIGHT: str = "right"
INCONCLUSIVE: str = "inconclusive"

# The default power of sample sizes.
POWER = 0.8


def decide(difference: Estimate, direction: str, p: float) -> str:
    """Return which side is better: "left", "right" or "inconclusive"; which is higher if no direction is better.

    Args:
        difference: right - left.
        direction: "higher" or "lower" if that is better, otherwise "neither".
        p: the p-value, corrected for its family; compared with ``1 - difference.level``.

    >>> from abstain.inference import Estimate
    >>> lower = Estimate(-0.02, -0.03, -0.01)
    >>> decide(lower, "lower", 0.001), decide(lower, "higher", 0.001), decide(lower, "lower", 0.2)
    ('right', 'left', 'inconclusive')
    """
    # Computed as for the interval, so that both agree despite rounding.
    if math.isnan(p) or difference.value == 0.0 or p > 1.0 - difference.level + 1e-12:
        return INCONCLUSIVE
    return RIGHT if (difference.value > 0.0) == (direction != "lower") else LEFT


def beyond(estimate: Estimate, bound: float, *, upwards: bool) -> bool | None:
    """Return whether a number lies beyond a bound; None if its interval contains the bound, or if it has none.

    >>> from abstain.inference import Estimate
    >>> [beyond(Estimate(0.3, 0.2, 0.4), bound, upwards=True) for bound in (0.1, 0.4, 0.3)]
    [True, False, None]
    """
    if estimate.interval is None:
        return None
    low, high = estimate.interval
    if low > bound if upwards else high < bound:
        return True
    return False if (high <= bound if upwards else low >= bound) else None


COVERED, OVER_COVERED, UNDER_COVERED = "covered", "over-covered", "under-covered"


@dataclass(frozen=True, slots=True)
class CoverageVerdict:
    """Whether a coverage reaches its nominal level.

    Attributes:
        verdict: "under-covered" (the whole interval is below the nominal level minus the margin), "over-covered"
            (the whole interval is above the nominal level plus the margin), "covered" (the interval is at or above
            the nominal level minus the margin, but not over-covered) or "inconclusive".
        nominal: the nominal level.
        margin: the distance from the nominal level that does not matter.
        estimate: the coverage with the interval that decides.
        reason: the verdict in a sentence.
    """

    verdict: str
    nominal: float
    margin: float
    estimate: Estimate
    reason: str

    @property
    def plausible(self) -> bool:
        """True if the nominal level itself lies within the interval."""
        interval = self.estimate.interval
        return interval is not None and interval[0] <= self.nominal <= interval[1]

    def __str__(self) -> str:
        return self.verdict


def coverage_verdict(coverage: Estimate, nominal: float, *, margin: float = 0.0) -> CoverageVerdict:
    """Compare a coverage with its nominal level: covered, over-covered, under-covered or inconclusive.

    Args:
        coverage: the coverage with its confidence interval, which decides.
        nominal: the nominal level.
        margin: the distance from the nominal level that does not matter, at least 0.

    >>> from abstain.inference import Estimate
    >>> [coverage_verdict(Estimate(0.8, *ends), 0.9).verdict for ends in ((0.5, 0.95), (0.77, 0.83))]
    ['inconclusive', 'under-covered']
    >>> [coverage_verdict(Estimate(0.95, 0.92, 0.97), 0.9, margin=margin).verdict for margin in (0, 0.03)]
    ['over-covered', 'covered']
    """
    nominal = _validate.level(nominal, "nominal")
    margin = _validate.real(margin, "margin")
    if not 0.0 <= margin < nominal:
        raise ArgumentError(
            f"margin must be at least 0 and below the nominal level {nominal:g}, got {margin:g}"
        )
    if coverage.interval is None:
        reason = coverage.reason or "no interval was requested"
        return CoverageVerdict(INCONCLUSIVE, nominal, margin, coverage, reason)
    lower_bar, upper_bar = (f"{nominal:g} {sign} {margin:g}" if margin else f"{nominal:g}" for sign in "-+")
    below = beyond(coverage, nominal - margin, upwards=False)
    if below:
        verdict, reason = UNDER_COVERED, f"the whole interval is below {lower_bar}"
    elif beyond(coverage, nominal + margin, upwards=True):
        verdict, reason = OVER_COVERED, f"the whole interval is above {upper_bar}"
    elif below is False:
        verdict, reason = COVERED, f"the whole interval is at or above {lower_bar}"
    else:
        verdict, reason = INCONCLUSIVE, f"{lower_bar} lies within the interval: plausible, not shown"
    return CoverageVerdict(verdict, nominal, margin, coverage, reason)


@dataclass(frozen=True, slots=True)
class MarginVerdict:
    """The verdict on a difference against the smallest one that would matter.

    Attributes:
        margin: the smallest difference that would matter.
        left_not_worse: the left side is not worse than the right by more than the margin.
        right_not_worse: the right side is not worse than the left by more than the margin.
    """

    margin: float
    left_not_worse: bool
    right_not_worse: bool

    @property
    def equivalent(self) -> bool:
        """True if the sides are within the margin of each other."""
        return self.left_not_worse and self.right_not_worse


def within_margin(differences: Sequence[Estimate], direction: str, margin: float) -> list[MarginVerdict]:
    """Return the verdict on each difference of one family against a margin, corrected by Holm's method.

    >>> from abstain.inference import Estimate
    >>> near = Estimate(0.01, 0.0, 0.02, se=0.005, degrees=40, clusters=41)
    >>> within_margin([near], "lower", 0.05)[0].equivalent, within_margin([near], "lower", 0.015)[0].left_not_worse
    (True, True)
    """
    sides = []
    differences = [against_margin(each) for each in differences]
    for sign in (-1.0, 1.0):
        bound = sign * margin
        tested = holm([p_value(each, bound) for each in differences])
        # The difference is shown to lie above -margin, or below +margin.
        sides.append(
            [
                bool(p <= 1.0 - each.level + 1e-12) and (each.value - bound) * sign < 0.0
                for each, p in zip(differences, tested.tolist(), strict=True)
            ]
        )
    above, below = sides
    # If lower is better, a large difference means that the right side is worse.
    pairs = zip(above, below, strict=True) if direction == "lower" else zip(below, above, strict=True)
    return [MarginVerdict(margin, left, right) for left, right in pairs]


def holm(p_values: ArrayLike) -> Floats:
    """Return Holm's adjusted p-values: those at most alpha hold together with a family-wise error of alpha.

    The ``i``-th smallest of ``m`` becomes ``max over j <= i of min(1, (m - j + 1) * p_j)``. Undefined p-values (NaN)
    stay undefined, and ``m`` does not include them. Reference: Holm, "A Simple Sequentially Rejective Multiple Test
    Procedure", 1979.

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
    difference: float,
    se: float,
    clusters: int,
    *,
    level: float = 0.95,
    power: float = POWER,
    degrees: float = math.inf,
) -> float:
    """Return the total number of clusters needed to detect a difference.

    The standard error falls with the square root of the clusters, so with ``C`` of them now::

        needed = C * ((t(1 - alpha / 2) + t(power)) * se / difference)^2        alpha = 1 - level

    with quantiles of the t distribution on ``needed - 1`` degrees of freedom, rounded up. Infinite for a difference of
    0; NaN if the difference or its standard error is undefined, as for a single cluster.

    A standard error that was estimated is too small about half of the time, and so is the number of clusters. With its
    `degrees` of freedom, the quantile of the noncentral t distribution replaces the sum of the two. The power is then
    right on average over such estimates. Reference: Julious and Owen, "Sample size calculations for clinical studies
    allowing for uncertainty about the variance", 2006.

    Args:
        difference: the difference to detect.
        se: its standard error now.
        clusters: the number of clusters now.
        level: the confidence level of the test.
        power: the probability of detecting the difference.
        degrees: the degrees of freedom of the standard error. Default: infinite, for one that is known.

    >>> clusters_needed(0.005, 0.01, 40)         # 40 * (2.8039 * 2)^2 = 1257.9
    1258.0
    >>> clusters_needed(0.005, 0.01, 40, degrees=39)    # 40 * (2.8648 * 2)^2 = 1313.1
    1314.0
    """
    from scipy.special import nctdtrit, stdtrit  # noqa: PLC0415

    half, chance = (1.0 + _validate.level(level)) / 2.0, _validate.level(power, "power")
    if math.isnan(difference) or math.isnan(se) or degrees <= 0.0:
        return math.nan
    ratio = se / abs(difference) if difference else math.inf
    if not math.isfinite(clusters * ratio * ratio):
        return math.inf
    # The quantiles depend slightly on the result, so a few iterations are enough.
    needed = 1e6
    for _ in range(50):
        planned = max(needed - 1.0, 1.0)
        quantile = stdtrit(planned, half)
        reach = (
            quantile + stdtrit(planned, chance)
            if math.isinf(degrees)
            else nctdtrit(degrees, quantile, chance)
        )
        needed = max(math.ceil(clusters * (float(reach) * ratio) ** 2), 2)
    return float(needed)
