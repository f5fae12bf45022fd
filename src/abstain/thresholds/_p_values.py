"""P-values of the hypothesis "the risk is above the limit": exact, finite-sample or asymptotic.

Every function takes sums at one or more thresholds and returns one p-value per threshold. A small one supports the
guarantee. `_risk_table` computes the sums, and `_search` decides which thresholds are tested in which order.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from abstain.errors import DataError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from abstain._types import Floats


# Tolerance for computed counts such as n * r: rounding one up would add an error.
_NOISE = 1e-9
# Newton's method needs fewer than ten iterations, except next to a pole.
_MOST_ITERATIONS = 100
# Below this distance from the mean, in standard errors, the saddlepoint approximation is replaced by its limit.
_NEAR_MEAN = 1e-3


def binomial_p(errors: ArrayLike, answered: ArrayLike, risk: float) -> Floats:
    """Return the probability of at most `errors` errors if the risk is exactly `risk`: ``Binom.cdf(errors; answered)``.

    Exact if answers are independent and right or wrong. 1 if nothing is answered.

    >>> binomial_p([0, 3], [59, 200], 0.05).round(6)
    array([0.048495, 0.009048])
    """
    from scipy.special import bdtr  # noqa: PLC0415

    wrong, count = np.broadcast_arrays(
        np.asarray(errors, dtype=np.float64), np.asarray(answered, dtype=np.float64)
    )
    if (np.floor(wrong) != wrong).any() or (np.floor(count) != count).any() or (wrong > count).any():
        raise DataError("the binomial p-value counts whole errors among whole answers; choose another method")
    return np.where(count > 0, bdtr(wrong, count.astype(np.int64), risk), 1.0)


def binomial_upper(errors: float, answered: float, tail: float) -> float:
    """Return the upper end of the one-sided Clopper-Pearson interval of the risk.

    >>> round(binomial_upper(3, 200, 0.05), 7)
    0.0383097
    """
    from scipy.special import betaincinv  # noqa: PLC0415

    if errors >= answered:
        return 1.0
    return float(betaincinv(errors + 1.0, answered - errors, 1.0 - tail))


def hoeffding_bentkus_p(mean: ArrayLike, count: ArrayLike, risk: float, *, binary: bool = False) -> Floats:
    """Return the Hoeffding-Bentkus p-value for a mean of independent numbers in [0, 1].

    ``min(exp(-n h(min(r, a), a)), c * Binom.cdf(ceil(n r); n, a))`` with ``h`` the relative entropy, ``c = 1`` for
    numbers that are 0 or 1 and ``e`` for others. Reference: Bates, Angelopoulos, Lei, Malik and Jordan,
    "Distribution-Free, Risk-Controlling Prediction Sets", 2021.

    >>> hoeffding_bentkus_p([0.02], [500], 0.05, binary=True), hoeffding_bentkus_p([0.02], [500], 0.05)
    (array([0.00046001]), array([0.00125043]))
    """
    from scipy.special import bdtr, rel_entr  # noqa: PLC0415

    means = np.asarray(mean, dtype=np.float64)
    counts = np.asarray(count, dtype=np.float64)
    low = np.minimum(np.where(counts > 0, means, risk), risk)
    entropy = rel_entr(low, risk) + rel_entr(1.0 - low, 1.0 - risk)
    # (k / n) * n may be slightly above k in floating point; without the tolerance, the ceiling would be k + 1.
    errors = np.ceil(np.where(counts > 0, means, 0.0) * counts - _NOISE * np.maximum(counts, 1.0))
    bentkus = (1.0 if binary else math.e) * bdtr(np.minimum(errors, counts), counts.astype(np.int64), risk)
    return np.where(counts > 0, np.minimum(np.minimum(np.exp(-counts * entropy), bentkus), 1.0), 1.0)


def exponential_weights_p(excess: Floats, repeats: float = 1.0) -> Floats:
    """Return the probability that clusters with random weights, and a pseudo-cluster, have a risk above the limit.

    ``P(sum of E_c y_c + E_0 y_0 >= 0)`` with independent exponential weights ``E``, where ``y`` is the loss above the
    risk limit: the sum of ``loss - risk`` over the answers of a cluster. The pseudo-cluster ``y_0`` represents clusters
    that were not drawn. The order of the clusters does not matter. For independent answers that are right or wrong, and
    ``y_0 = 1 - risk``, this is exactly the binomial p-value. It is computed by the saddlepoint approximation of
    Lugannani and Rice (1980), whose relative error is about 1%, or 3% for very small p-values.

    Args:
        excess: (thresholds, clusters + 1): the loss of each cluster above the risk, and the pseudo-cluster in the last
            column, which is at least 0.
        repeats: how many times there are clusters like these. There is always one pseudo-cluster.

    >>> exponential_weights_p(np.array([[-0.05] * 59 + [0.95]])).round(3)        # exactly 0.95 ** 59 = 0.0485
    array([0.049])
    """
    from scipy.special import ndtr  # noqa: PLC0415

    low, high = excess.min(axis=1), excess.max(axis=1)
    # The weighted sum has one sign if the losses have. Without a loss below the limit, nothing supports the guarantee.
    mixed = (low < 0.0) & (high > 0.0)
    p_values = np.where(low < 0.0, 0.0, 1.0)
    values = excess[mixed]
    if not len(values):
        return p_values
    counts = np.full(values.shape[1], repeats)
    counts[-1] = 1.0
    point = _solve_saddlepoint(values, counts, 1.0 / low[mixed], 1.0 / high[mixed])
    remaining = 1.0 - point[:, None] * values
    ratios = values / remaining
    curvature = ratios**2 @ counts
    root = np.sign(point) * np.sqrt(np.maximum(2.0 * (np.log(remaining) @ counts), 0.0))
    scaled = point * np.sqrt(curvature)
    density = np.exp(-0.5 * root**2) / math.sqrt(2.0 * math.pi)
    # The correction is a difference of two large numbers if the mean is near 0. Its limit comes from the skewness.
    near = np.abs(root) < _NEAR_MEAN
    limit = -(ratios**3 @ counts) / (3.0 * curvature**1.5)
    with np.errstate(divide="ignore", invalid="ignore"):
        correction = np.where(near, limit, 1.0 / scaled - 1.0 / root)
    p_values[mixed] = np.clip(ndtr(-root) + density * correction, 0.0, 1.0)
    return p_values


def _solve_saddlepoint(values: Floats, counts: Floats, low: Floats, high: Floats) -> Floats:
    """Return the root of ``K'(s) = sum of y / (1 - s y)`` between its poles, by Newton's method within brackets."""
    point = np.zeros(len(values))
    for _ in range(_MOST_ITERATIONS):
        ratios = values / (1.0 - point[:, None] * values)
        slope = ratios @ counts
        low, high = np.where(slope < 0.0, point, low), np.where(slope < 0.0, high, point)
        proposed = point - slope / (ratios**2 @ counts)
        inside = (proposed > low) & (proposed < high)
        moved = np.where(inside, proposed, 0.5 * (low + high))
        converged = np.abs(moved - point) <= _NOISE * np.abs(moved)
        point = np.where(slope == 0.0, point, moved)
        if (converged | (slope == 0.0)).all():
            break
    return point
