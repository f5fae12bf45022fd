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
# Proportions of the largest bet. A large bet is nearly always best, because most clusters have few errors. Betting
# everything is excluded: a single cluster in which every answer is wrong would end the game.
BETS = (0.1, 0.25, 0.5, 0.75, 0.9, 0.99)


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


def cluster_t_p(total: Floats, squares: Floats, clusters: int) -> Floats:
    """Return the one-sided p-value of Student's t test that the mean over clusters is below 0: asymptotic.

    Args:
        total: sum over clusters of the loss above the risk, ``sum of (L - risk)``.
        squares: sum over clusters of its squares.
        clusters: number of clusters.

    >>> cluster_t_p(np.array([-4.0]), np.array([8.0]), 16).round(4)        # mean -1/4, sd 0.6831, t = -1.4639
    array([0.0819])
    """
    from scipy.special import stdtr  # noqa: PLC0415

    mean = total / clusters
    variance = np.maximum(squares / clusters - mean**2, 0.0) * clusters / (clusters - 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        p_values = stdtr(clusters - 1, mean / np.sqrt(variance / clusters))
    # If all clusters are equal, only the sign of the mean matters.
    return np.where(variance > 0.0, p_values, np.where(mean < 0.0, 0.0, 1.0))


def effective_binomial_p(
    mean: Floats, count: Floats, design: Floats, clusters: int, risk: float, delta: float
) -> Floats:
    """Return the binomial p-value with the effective number of independent answers.

    That number is ``count / design``, reduced for few clusters by the squared ratio of the normal to Student's quantile
    (Korn and Graubard, 1998). It complements `cluster_t_p`, whose p-value is 0 if no error was observed.
    """
    from scipy.special import betainc, ndtri, stdtrit  # noqa: PLC0415

    shrink = (float(ndtri(delta)) / float(stdtrit(clusters - 1, delta))) ** 2 if delta < 0.5 else 1.0
    effective = count / design * shrink
    errors = np.clip(mean, 0.0, 1.0) * effective
    with np.errstate(invalid="ignore"):
        p_values = betainc(np.maximum(effective - errors, 1e-300), errors + 1.0, 1.0 - risk)
    return np.where((count > 0) & (mean < 1.0), p_values, 1.0)


def betting_wealth(gains: Floats, state: Floats | None = None) -> tuple[Floats, Floats]:
    """Return the largest log wealth of a player who bets that the loss of each cluster is below the risk.

    The game is fair if the risk equals the limit, and unfavourable if it is higher. By Ville's inequality the player
    then ever owns ``1 / delta`` times the stake with a probability of at most ``delta``, so ``1 / (largest wealth)`` is
    a p-value for any number of clusters. With ``Z`` the loss of a cluster on [0, 1], a bet ``b`` turns wealth ``W``
    into ``W * (1 + b * (risk - Z))``. Each bet is fixed before its cluster is seen: the one among `BETS` that would
    have won most so far, beginning with the largest. Reference: Waudby-Smith and Ramdas, "Estimating means of bounded
    random variables by betting", 2024.

    Args:
        gains: (clusters, thresholds): the largest bet times ``risk - Z``, clusters in an order independent of losses.
        state: the second return value of an earlier call, to continue its game.

    Returns:
        The largest log wealth at each threshold, and the state.
    """
    clusters, thresholds = gains.shape
    proportions = np.array(BETS)
    if state is None:
        state = np.zeros((len(BETS) + 2, thresholds))
        # Begin as if larger bets had already won, because errors are rare if a guarantee is possible.
        state[: len(BETS)] = (2.0 * proportions)[:, None]
    won, wealth, best = state[:-2].copy(), state[-2].copy(), state[-1].copy()
    steps = np.log1p(np.maximum(proportions[:, None, None] * gains, -1.0 + 1e-12))
    # Log wealth of each fixed bet before each cluster.
    before = np.empty((len(BETS), clusters, thresholds))
    np.cumsum(steps[:, :-1], axis=1, out=before[:, 1:])
    before[:, 0] = 0.0
    before += won[:, None]
    chosen = np.argmax(before, axis=0)
    growth = np.take_along_axis(steps, chosen[None], axis=0)[0]
    path = wealth + np.cumsum(growth, axis=0)
    best = np.maximum(best, path.max(axis=0, initial=-np.inf))
    won = before[:, -1] + steps[:, -1]
    return best, np.vstack([won, path[-1:], best[None]])
