"""Two laws of Brownian motion on [0, 1]: how far it strays from 0, and how wide its range is.

Each law has two series, one the Poisson transform of the other: one converges at once for small arguments and
gives the distribution, the other for large ones and gives the upper tail to full relative precision. They
meet where both need a handful of terms, so that a p-value is right to the last digits everywhere. Tests that
use the laws live elsewhere.
"""

from __future__ import annotations

import math

__all__ = ["range_survival", "supremum_quantile", "supremum_survival"]

# Where the series change over, and how many terms put the remainder below 1e-16 on either side.
_SUPREMUM_SWITCH, _RANGE_SWITCH = 1.5, 2.0
_TERMS = 8
# Below this the motion strays further with a probability that a float cannot tell from one.
_CERTAIN = 0.05


def supremum_survival(x: float) -> float:
    """Return ``P(sup |B| > x)``.

    ``4 * sum_k (-1)^k Q((2k+1) x)`` with ``Q`` the normal tail (reflection), or one minus
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
        return _within_unit(4.0 * math.fsum((-1) ** k * _tail((2 * k + 1) * x) for k in range(_TERMS)))
    rate = math.pi**2 / (8.0 * x * x)
    terms = ((-1) ** k / (2 * k + 1) * math.exp(-((2 * k + 1) ** 2) * rate) for k in range(_TERMS))
    return _within_unit(1.0 - 4.0 / math.pi * math.fsum(terms))


def supremum_quantile(level: float) -> float:
    """Return the height that ``|B|`` stays below with probability `level`, by bisection.

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

    ``8 * sum_k (-1)^(k-1) k Q(k x)``, ``k = 1, 2, ...``, with ``Q`` the normal tail, or one minus
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
        return _within_unit(8.0 * math.fsum((-1) ** (k - 1) * k * _tail(k * x) for k in range(1, _TERMS + 1)))
    squares = [((2 * k + 1) * math.pi) ** 2 for k in range(_TERMS)]
    inverse = 1.0 / (x * x)
    return _within_unit(
        1.0 - 8.0 * math.fsum((inverse + 1.0 / s) * math.exp(-s * inverse / 2.0) for s in squares)
    )


def _tail(z: float) -> float:
    return 0.5 * math.erfc(z / math.sqrt(2.0))


def _within_unit(probability: float) -> float:
    return min(max(probability, 0.0), 1.0)
