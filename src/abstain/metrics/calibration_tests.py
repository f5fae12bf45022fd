"""Tests of calibration: are the outcomes compatible with correct confidences?

Rows are sorted by confidence ``s``, ascending. Tied confidences are one step, so the order of rows does not matter.
With ``C_0 = 0``::

    C_k = (1/n) * sum_{i <= k} (y_i - s_i)        sigma = sqrt(sum s (1 - s)) / n

If the confidences are correct, ``C / sigma`` is approximately a Brownian motion. The Kolmogorov-Smirnov test uses its
largest distance from 0, Kuiper's test its range. Spiegelhalter's test compares the Brier score with its expectation.
p-values are asymptotic. For few rows those of the first two tests are slightly too large, so the tests are
conservative. Metrics without a hypothesis are in `abstain.metrics.calibration`.

The distributions of the supremum and of the range of Brownian motion on [0, 1] are at the end. Each has two series; one
is the Poisson transform of the other. One converges quickly for small arguments and gives the distribution function.
The other converges quickly for large arguments and gives the upper tail to full relative precision. They are switched
at a point where both need only a few terms, so p-values are accurate everywhere.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from abstain import _validate
from abstain._export import columns_frame
from abstain.metrics._columns import Columns
from abstain.resampling import keys_ascending

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from abstain._types import Floats


__all__ = [
    "CalibrationTest",
    "CumulativeDifferences",
    "cumulative_differences",
    "kolmogorov_smirnov",
    "kuiper",
    "range_survival",
    "spiegelhalter",
    "supremum_quantile",
    "supremum_survival",
]

ALTERNATIVES = ("two-sided", "greater", "less")

# The arguments at which the series are switched, and the number of terms for a remainder below 1e-16 on both sides.
_SUPREMUM_SWITCH, _RANGE_SWITCH = 1.5, 2.0
_TERMS = 8
# Below this argument the survival function is 1 in floating point.
_CERTAIN = 0.05


@dataclass(frozen=True, slots=True)
class CalibrationTest:
    """The result of a test of calibration.

    Attributes:
        name: the name of the test.
        statistic: the test statistic; NaN if undefined.
        p_value: the probability of a statistic at least as extreme if the confidences are correct; NaN if undefined.
        n: the weight of all rows.
        reason: why the test is undefined; empty if it is defined.

    >>> print(spiegelhalter([1, 0, 1, 1], [0.9, 0.1, 0.8, 0.7]))
    spiegelhalter: statistic -0.880, p = 0.379 (n = 4)
    """

    name: str
    statistic: float
    p_value: float
    n: float
    reason: str = ""

    def __str__(self) -> str:
        if self.reason:
            return f"{self.name}: undefined ({self.reason})"
        return f"{self.name}: statistic {self.statistic:.3f}, p = {self.p_value:.3f} (n = {self.n:g})"


@dataclass(frozen=True, eq=False, slots=True)
class CumulativeDifferences:
    """The cumulative sums of residuals, starting with ``C_0 = 0``, and their Kolmogorov-Smirnov test.

    Attributes:
        proportion: the proportion of all rows up to each step, from 0 to 1.
        confidence: the confidence of each step; NaN at the start.
        difference: ``C_k`` at each step. It falls if the confidence is too high and rises if it is too low.
        deviation: the standard deviation of ``C_k`` if the confidences are correct.
        sigma: the standard deviation at the last step.
        statistic: the largest ``|C_k| / sigma``; NaN if undefined.
        p_value: the probability of a statistic at least as large if the confidences are correct; NaN if undefined.
        n: the weight of all rows.
        reason: why the statistic is undefined; empty if it is defined.
    """

    proportion: Floats = field(repr=False)
    confidence: Floats = field(repr=False)
    difference: Floats = field(repr=False)
    deviation: Floats = field(repr=False)
    sigma: float
    statistic: float
    p_value: float
    n: float
    reason: str = ""

    def band(self, level: float = 0.95) -> float:
        """Return the bound within which all ``C_k`` lie with probability `level`, if the confidences are correct."""
        return supremum_quantile(_validate.level(level)) * self.sigma

    def to_frame(self, *, backend: str | None = None) -> Any:
        """Return the steps as a pandas, polars or pyarrow data frame, with one row each."""
        return columns_frame(self, backend)


def cumulative_differences(
    y_true: ArrayLike, confidence: ArrayLike, *, sample_weight: ArrayLike | None = None
) -> CumulativeDifferences:
    """Return the cumulative differences between outcomes and confidences.

    Reference: Arrieta-Ibarra et al., "Metrics of Calibration for Probabilistic Predictions", 2022.

    >>> curve = cumulative_differences([1, 0, 1], [0.5, 0.5, 0.75])
    >>> curve.difference.round(4).tolist(), curve.proportion.round(4).tolist()
    ([0.0, 0.0, 0.0833], [0.0, 0.6667, 1.0])
    """
    rows = Columns.believed(y_true, confidence, sample_weight=sample_weight)
    step, level = keys_ascending(rows.confidence)
    sums = rows.sum_by(step, len(level), rows.correct).sums
    filled = sums[0] > 0
    level, (count, outcome_sum) = level[filled], sums[:, filled]
    residual = outcome_sum - count * level
    total = float(count.sum())
    difference = np.concatenate([[0.0], np.cumsum(residual)]) / total
    deviation = np.sqrt(np.concatenate([[0.0], np.cumsum(count * level * (1.0 - level))])) / total
    sigma = float(deviation[-1])
    reason = "" if sigma > 0.0 else _no_variance_reason(residual)
    statistic = math.nan if reason else float(np.abs(difference).max()) / sigma
    return CumulativeDifferences(
        proportion=np.concatenate([[0.0], np.cumsum(count)]) / total,
        confidence=np.concatenate([[np.nan], level]),
        difference=difference,
        deviation=deviation,
        sigma=sigma,
        statistic=statistic,
        p_value=supremum_survival(statistic),
        n=_whole(total),
        reason=reason,
    )


def kolmogorov_smirnov(
    y_true: ArrayLike, confidence: ArrayLike, *, sample_weight: ArrayLike | None = None
) -> CalibrationTest:
    """Test calibration by ``max |C| / sigma``.

    The p-value is from the distribution of ``sup |B|`` of Brownian motion on [0, 1]. Reference: Tygert, "Cumulative
    deviation of a subpopulation from the full population", 2021.

    >>> print(kolmogorov_smirnov([1, 0, 0, 0], [0.9, 0.8, 0.7, 0.6]))
    kolmogorov_smirnov: statistic 2.510, p = 0.024 (n = 4)
    """
    curve = cumulative_differences(y_true, confidence, sample_weight=sample_weight)
    return CalibrationTest("kolmogorov_smirnov", curve.statistic, curve.p_value, curve.n, curve.reason)


def kuiper(
    y_true: ArrayLike, confidence: ArrayLike, *, sample_weight: ArrayLike | None = None
) -> CalibrationTest:
    """Test calibration by ``(max C - min C) / sigma``, including ``C_0``.

    The p-value is from the distribution of the range of Brownian motion on [0, 1]. Reference: Tygert, "Calibration of
    P-values for calibration and for deviation of a subpopulation from the full population", 2022.

    >>> print(kuiper([1, 0, 0, 0], [0.9, 0.8, 0.7, 0.6]))
    kuiper: statistic 2.510, p = 0.048 (n = 4)
    """
    curve = cumulative_differences(y_true, confidence, sample_weight=sample_weight)
    statistic = math.nan if curve.reason else float(np.ptp(curve.difference)) / curve.sigma
    return CalibrationTest("kuiper", statistic, range_survival(statistic), curve.n, curve.reason)


def spiegelhalter(
    y_true: ArrayLike,
    confidence: ArrayLike,
    *,
    alternative: str = "two-sided",
    sample_weight: ArrayLike | None = None,
) -> CalibrationTest:
    """Test calibration by Spiegelhalter's z, the Brier score minus its expectation, in standard deviations.

    ``z = sum (y - s)(1 - 2s) / sqrt(sum (1 - 2s)^2 s (1 - s))`` is standard normal if the confidences are correct. The
    alternative "greater" tests only whether the Brier score is larger than expected (overconfidence), "less" only
    whether it is smaller. Reference: Spiegelhalter, "Probabilistic prediction in patient management and clinical
    trials", 1986.

    >>> round(spiegelhalter([0, 0], [0.9, 0.8], alternative="greater").p_value, 4)
    0.0002
    """
    _validate.choice(alternative, "alternative", ALTERNATIVES)
    rows = Columns.believed(y_true, confidence, sample_weight=sample_weight).with_row_weight()
    weight, stated = rows.weight / rows.row_weight, rows.confidence
    n = _whole(float(rows.weight.sum()))
    slope = 1.0 - 2.0 * stated
    variance = float((weight * slope**2 * stated * (1.0 - stated)).sum())
    if variance <= 0.0:
        reason = "every confidence is 0, 0.5 or 1, so the Brier score has no variance"
        return CalibrationTest("spiegelhalter", math.nan, math.nan, n, reason)
    z = float((weight * (rows.correct - stated) * slope).sum()) / math.sqrt(variance)
    tails = {"two-sided": 2.0 * _upper_tail(abs(z)), "greater": _upper_tail(z), "less": _upper_tail(-z)}
    return CalibrationTest("spiegelhalter", z, tails[alternative], n)


def supremum_survival(x: float) -> float:
    """Return ``P(sup |B| > x)``.

    It is ``4 * sum_k (-1)^k Q((2k+1) x)`` with the normal tail ``Q`` (reflection), or 1 minus
    ``(4/pi) * sum_k (-1)^k / (2k+1) * exp(-(2k+1)^2 pi^2 / (8 x^2))`` (eigenfunctions), ``k = 0, 1, ...``
    Reference: Feller, "An Introduction to Probability Theory and Its Applications", volume II, chapter X.

    >>> round(supremum_survival(2.241), 3), supremum_survival(0.0)
    (0.05, 1.0)
    """
    if math.isnan(x):
        return math.nan
    if x < _CERTAIN:
        return 1.0
    if x >= _SUPREMUM_SWITCH:
        return _within_unit(4.0 * math.fsum((-1) ** k * _upper_tail((2 * k + 1) * x) for k in range(_TERMS)))
    rate = math.pi**2 / (8.0 * x * x)
    terms = ((-1) ** k / (2 * k + 1) * math.exp(-((2 * k + 1) ** 2) * rate) for k in range(_TERMS))
    return _within_unit(1.0 - 4.0 / math.pi * math.fsum(terms))


def supremum_quantile(level: float) -> float:
    """Return the quantile of ``sup |B|`` for the probability `level`, by bisection.

    >>> round(supremum_quantile(0.95), 3)
    2.241
    """
    low, high = 0.0, 40.0
    while high - low > 1e-12:
        middle = (low + high) / 2.0
        low, high = (middle, high) if supremum_survival(middle) > 1.0 - level else (low, middle)
    return high


def range_survival(x: float) -> float:
    """Return ``P(max B - min B > x)``.

    It is ``8 * sum_k (-1)^(k-1) k Q(k x)``, ``k = 1, 2, ...``, with the normal tail ``Q``, or 1 minus
    ``8 * sum_k (1/x^2 + 1/((2k+1)^2 pi^2)) * exp(-(2k+1)^2 pi^2 / (2 x^2))``, ``k = 0, 1, ...``
    Reference: Feller, "The Asymptotic Distribution of the Range of Sums of Independent Random Variables",
    1951.

    >>> round(range_survival(2.50), 3), range_survival(0.0)
    (0.05, 1.0)
    """
    if math.isnan(x):
        return math.nan
    if x < _CERTAIN:
        return 1.0
    if x >= _RANGE_SWITCH:
        return _within_unit(
            8.0 * math.fsum((-1) ** (k - 1) * k * _upper_tail(k * x) for k in range(1, _TERMS + 1))
        )
    squares = [((2 * k + 1) * math.pi) ** 2 for k in range(_TERMS)]
    inverse = 1.0 / (x * x)
    return _within_unit(
        1.0 - 8.0 * math.fsum((inverse + 1.0 / s) * math.exp(-s * inverse / 2.0) for s in squares)
    )


def _upper_tail(z: float) -> float:
    return 0.5 * math.erfc(z / math.sqrt(2.0))


def _within_unit(probability: float) -> float:
    return min(max(probability, 0.0), 1.0)


def _no_variance_reason(residual: Floats) -> str:
    reason = "every confidence is 0 or 1, so the outcomes have no variance"
    wrong = float(np.abs(residual).sum())
    return f"{reason}; {wrong:g} of the outcomes contradict their confidence" if wrong else reason


def _whole(total: float) -> float:
    return int(total) if total.is_integer() else total
