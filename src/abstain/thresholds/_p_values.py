"""P-values against "the risk is above what was asked for", each exact, finite-sample or asymptotic as its name says.

Every function takes sums at one or more thresholds and returns one p-value per threshold; a small one speaks for the
promise. Which thresholds are asked, and in which order, is known to `_search`; where the sums come from, to
`_evidence`.
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

# Guards a count that was computed, such as n * r, against being rounded up by noise: that would add an error.
_NOISE = 1e-9
# The shares of the largest bet among which a player chooses. Errors that come one by one are so small beside a cluster
# that is wrong throughout that the largest bet is nearly always the best; never all, which one such cluster would take.
BETS = (0.1, 0.25, 0.5, 0.75, 0.9, 0.99)


def binomial_p(errors: ArrayLike, answered: ArrayLike, risk: float) -> Floats:
    """Return how likely at most so many errors are where the risk is exactly `risk`: ``Binom.cdf(errors; answered)``.

    Exact where every answer is independent of all others and right or wrong. Nothing answered: 1.

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
    """Return the risk that so few errors would exclude: the upper end of Clopper and Pearson, one-sided.

    >>> round(binomial_upper(3, 200, 0.05), 7)
    0.0383097
    """
    from scipy.special import betaincinv  # noqa: PLC0415

    if errors >= answered:
        return 1.0
    return float(betaincinv(errors + 1.0, answered - errors, 1.0 - tail))


def hoeffding_bentkus_p(mean: ArrayLike, count: ArrayLike, risk: float, *, binary: bool = False) -> Floats:
    """Return the p-value of Hoeffding and Bentkus for a mean of independent numbers in [0, 1].

    ``min(exp(-n h(min(r, a), a)), c * Binom.cdf(ceil(n r); n, a))`` with ``h`` the relative entropy, ``c = 1`` for
    numbers that are 0 or 1 and ``e`` for others. Reference: Bates, Angelopoulos, Lei, Malik and Jordan,
    "Distribution-Free, Risk-Controlling Prediction Sets", 2021.

    >>> hoeffding_bentkus_p([0.02], [500], 0.05, binary=True), hoeffding_bentkus_p([0.02], [500], 0.05)
    (array([0.00046001]), array([0.00125043]))
    """
    from scipy.special import bdtr, rel_entr  # noqa: PLC0415

    seen = np.asarray(mean, dtype=np.float64)
    many = np.asarray(count, dtype=np.float64)
    low = np.minimum(np.where(many > 0, seen, risk), risk)
    entropy = rel_entr(low, risk) + rel_entr(1.0 - low, 1.0 - risk)
    # A mean that is k / n times n may come out above k, and its ceiling would be one error that nobody made.
    whole = np.ceil(np.where(many > 0, seen, 0.0) * many - _NOISE * np.maximum(many, 1.0))
    bentkus = (1.0 if binary else math.e) * bdtr(np.minimum(whole, many), many.astype(np.int64), risk)
    return np.where(many > 0, np.minimum(np.minimum(np.exp(-many * entropy), bentkus), 1.0), 1.0)


def cluster_t_p(total: Floats, squares: Floats, clusters: int) -> Floats:
    """Return the one-sided p-value of Student's t for a mean over clusters that is below 0: asymptotic.

    Args:
        total: the sum over clusters of each cluster's loss above the risk, ``sum of (L - risk)``.
        squares: the sum of its squares.
        clusters: how many clusters there are.

    >>> cluster_t_p(np.array([-4.0]), np.array([8.0]), 16).round(4)        # mean -1/4, sd 0.6831, t = -1.4639
    array([0.0819])
    """
    from scipy.special import stdtr  # noqa: PLC0415

    mean = total / clusters
    variance = np.maximum(squares / clusters - mean**2, 0.0) * clusters / (clusters - 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        found = stdtr(clusters - 1, mean / np.sqrt(variance / clusters))
    # Where no cluster differs from another, only the side is known.
    return np.where(variance > 0.0, found, np.where(mean < 0.0, 0.0, 1.0))


def effective_binomial_p(
    mean: Floats, count: Floats, design: Floats, clusters: int, risk: float, delta: float
) -> Floats:
    """Return the binomial p-value of as many independent answers as clustered ones are worth.

    ``count / design`` answers, fewer by the ratio of the normal to Student's quantile for few clusters (Korn and
    Graubard, 1998). It stands beside `cluster_t_p`, which believes that nothing can go wrong where nothing has.
    """
    from scipy.special import betainc, ndtri, stdtrit  # noqa: PLC0415

    shrink = (float(ndtri(delta)) / float(stdtrit(clusters - 1, delta))) ** 2 if delta < 0.5 else 1.0
    worth = count / design * shrink
    hits = np.clip(mean, 0.0, 1.0) * worth
    with np.errstate(invalid="ignore"):
        found = betainc(np.maximum(worth - hits, 1e-300), hits + 1.0, 1.0 - risk)
    return np.where((count > 0) & (mean < 1.0), found, 1.0)


def largest_bet(risk: float) -> float:
    """Return the largest bet that cannot lose more than all: ``1 + bet * (risk - Z)`` is at least 0 for Z up to 1."""
    return 1.0 / (1.0 - _validate.level(risk, "risk"))


def betting_wealth(gains: Floats, state: Floats | None = None) -> tuple[Floats, Floats]:
    """Return what a player owns at most, in logarithms, who bets on each cluster that its loss is below the risk.

    The game is fair where the risk is exactly what was asked for, and unfavourable where it is higher: by Ville's
    inequality a player then ever owns ``1 / delta`` times the stake with a probability of at most ``delta``, so that
    ``1 / (largest wealth)`` is a p-value for any number of clusters. With ``Z`` the loss of a cluster on [0, 1], a
    bet ``b`` turns wealth ``W`` into ``W * (1 + b * (risk - Z))``; each bet is fixed before its cluster is seen: it
    is the one among `BETS` that would have won most so far, beginning with the largest. Reference: Waudby-Smith
    and Ramdas, "Estimating means of bounded random variables by betting", 2024.

    Args:
        gains: (clusters, thresholds): the largest bet times ``risk - Z``, clusters in an order that knows no losses.
        state: what an earlier call returned second, to go on from there.

    Returns:
        The largest logarithm of wealth at each threshold, and the state.
    """
    clusters, thresholds = gains.shape
    shares = np.array(BETS)
    if state is None:
        state = np.zeros((len(BETS) + 2, thresholds))
        # As if larger bets had already won: errors are rare where a promise can be made.
        state[: len(BETS)] = (2.0 * shares)[:, None]
    won, wealth, best = state[:-2].copy(), state[-2].copy(), state[-1].copy()
    steps = np.log1p(np.maximum(shares[:, None, None] * gains, -1.0 + 1e-12))
    # What each fixed bet would own before each cluster.
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
