"""Quantiles of the normal and of Student's t distribution, without scipy, whose import costs more than a small run.

They agree with scipy's to about twelve digits, and to nine with thousands of degrees of freedom. Functions that need
other distributions, or quantiles of arrays, import scipy when they are called.
"""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist

_TINY = 1e-300


def normal_quantile(probability: float) -> float:
    """Return the value that a normal variable stays below with a probability.

    >>> round(normal_quantile(0.975), 12)
    1.95996398454
    """
    if probability in (0.0, 1.0):
        return math.inf if probability else -math.inf
    return NormalDist().inv_cdf(probability)


@lru_cache(maxsize=256)
def t_quantile(degrees: float, probability: float) -> float:
    """Return the value that Student's t with some degrees of freedom, whole or not, stays below with a probability.

    >>> round(t_quantile(9.0, 0.975), 10), round(t_quantile(1.0, 0.75), 10)
    (2.2621571628, 1.0)
    """
    if probability in (0.0, 0.5, 1.0):
        return (probability - 0.5) * math.inf if probability != 0.5 else 0.0
    if math.isinf(degrees):
        return normal_quantile(probability)
    if probability > 0.5:
        return -t_quantile(degrees, 1.0 - probability)
    # The tail is monotone in the value. Newton steps that stay inside the known range make the first guess exact, which
    # is an expansion around the normal quantile (Abramowitz and Stegun, 26.7.5).
    near, far = 0.0, math.inf
    z = -normal_quantile(probability)
    value = z * (
        1.0 + (z * z + 1.0) / (4.0 * degrees) + (5.0 * z**4 + 16.0 * z * z + 3.0) / (96.0 * degrees**2)
    )
    constant = (
        math.lgamma((degrees + 1.0) / 2.0) - math.lgamma(degrees / 2.0) - 0.5 * math.log(degrees * math.pi)
    )
    for _ in range(1000):
        error = _t_tail(degrees, value) - probability
        near, far = (value, far) if error > 0.0 else (near, value)
        density = math.exp(constant - (degrees + 1.0) / 2.0 * math.log1p(value * value / degrees))
        following = value + error / density if density > 0.0 else math.inf
        if not near < following < far:
            following = 2.0 * value if math.isinf(far) else 0.5 * (near + far)
        if abs(following - value) <= 1e-15 * following:
            break
        value = following
    return -value


@lru_cache(maxsize=4096)
def beta_quantile(first: float, second: float, probability: float) -> float:
    """Return the value that a beta variable stays below with a small probability.

    >>> round(beta_quantile(1.0, 10.0, 0.05), 10), round(0.05 ** (1 / 3), 10), round(beta_quantile(3.0, 1.0, 0.05), 10)
    (0.0051161969, 0.3684031499, 0.3684031499)
    """
    # Near 0 the distribution function is a power of the value. Newton steps of its logarithm are monotone from there.
    constant = math.lgamma(first + second) - math.lgamma(first) - math.lgamma(second)
    logarithm = min((math.log(probability * first) - constant) / first, math.log(0.5))
    for _ in range(100):
        value = math.exp(logarithm)
        reached = _regularized_beta(first, second, value)
        if reached <= 0.0:
            return 0.0
        density = math.exp(constant + first * logarithm + (second - 1.0) * math.log1p(-value))
        step = math.log(reached / probability) * reached / density
        following = min(logarithm - step, 0.5 * logarithm)
        if abs(following - logarithm) <= 1e-11 * max(abs(logarithm), 1e-3):
            break
        logarithm = following
    return math.exp(logarithm)


def _t_tail(degrees: float, value: float) -> float:
    """Return the probability that t lies above a value that is not negative."""
    square = value * value
    if square > degrees:
        return 0.5 * _regularized_beta(degrees / 2.0, 0.5, degrees / (degrees + square))
    return 0.5 - 0.5 * _regularized_beta(0.5, degrees / 2.0, square / (degrees + square))


def _regularized_beta(first: float, second: float, bound: float) -> float:
    """Return the regularized incomplete beta function, by Lentz's continued fraction.

    Reference: Press et al., "Numerical Recipes", 6.4.
    """
    if bound <= 0.0 or bound >= 1.0:
        return float(bound >= 1.0)
    if bound > (first + 1.0) / (first + second + 2.0):
        return 1.0 - _regularized_beta(second, first, 1.0 - bound)
    log_front = math.lgamma(first + second) - math.lgamma(first) - math.lgamma(second)
    front = math.exp(log_front + first * math.log(bound) + second * math.log1p(-bound)) / first
    above, below, fraction = 1.0, 0.0, 1.0
    for step in range(10_000):
        half = step // 2
        if step == 0:
            term = 1.0
        elif step % 2:
            term = -(first + half) * (first + second + half) * bound
            term /= (first + 2 * half) * (first + 2 * half + 1.0)
        else:
            term = half * (second - half) * bound / ((first + 2 * half - 1.0) * (first + 2 * half))
        below = 1.0 / (1.0 + term * below or _TINY)
        above = 1.0 + term / above or _TINY
        fraction *= above * below
        if abs(above * below - 1.0) < 1e-16:
            break
    return front * (fraction - 1.0)
