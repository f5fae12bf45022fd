"""Searches: from the p-values of all steps to the guaranteed step, with a total error of at most delta.

Steps run from the most confident answers to all of them. The risk among answers need not grow along them, so every step
has its own hypothesis ("the risk here is above the limit"). The search keeps the error from growing with their number.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from abstain.inference import holm
from abstain.thresholds._p_values import binomial_upper

if TYPE_CHECKING:
    from abstain._types import Floats


# Tolerance for p-values that equal delta except for rounding.
_NOISE = 1e-12


def fixed_sequence(p_values: Floats, delta: float, start: int = 0) -> int | None:
    """Return the last guaranteed step if steps are tested one after the other from `start` until one fails.

    Every test is at level `delta`: a wrong guarantee requires rejecting the first true hypothesis of the sequence,
    which has a probability of at most `delta`. Returns None if the first test fails.

    >>> fixed_sequence(np.array([0.5, 0.01, 0.02, 0.2, 0.001]), 0.05, start=1)
    2
    >>> fixed_sequence(np.array([0.5, 0.01]), 0.05) is None
    True
    """
    failed = np.flatnonzero(~(p_values[start:] <= delta + _NOISE))
    reached = start + (int(failed[0]) if len(failed) else len(p_values) - start)
    return reached - 1 if reached > start else None


def holm_search(p_values: Floats, delta: float) -> int | None:
    """Return the last step among those whose p-value, corrected for all of them by Holm's method, is at most `delta`.

    >>> holm_search(np.array([0.001, 0.5, 0.002, 0.04]), 0.05)
    2
    """
    guaranteed = np.flatnonzero(holm(p_values) <= delta + _NOISE)
    return int(guaranteed[-1]) if len(guaranteed) else None


def selection_with_guaranteed_risk(
    errors: Floats, answered: Floats, risk: float, delta: float
) -> tuple[int | None, float]:
    """Return the step of SGR, and the bound on its risk: a binary search, each try at ``delta / ceil(log2 n)``.

    The bound of a try is the upper end of the Clopper-Pearson interval. Reference: Geifman and El-Yaniv, "Selective
    Classification for Deep Neural Networks", 2017, algorithm 2. Here the last try within the limit is returned, because
    the final try need not be within it. `errors` of the `answered` items are wrong at each step.

    >>> wrong = np.cumsum([0.0] * 180 + [1.0] * 20)
    >>> selection_with_guaranteed_risk(wrong, np.arange(1.0, 201.0), 0.05, 0.05)[0]
    181
    """
    count = float(answered[-1]) if len(answered) else 0.0
    tries = max(math.ceil(math.log2(count)), 1) if count > 1.0 else 1
    low, high = 0, len(answered) - 1
    step, bound = None, math.nan
    for _ in range(tries):
        if low > high:
            break
        middle = (low + high) // 2
        upper = binomial_upper(float(errors[middle]), float(answered[middle]), delta / tries)
        if upper <= risk:
            step, bound, low = middle, upper, middle + 1
        else:
            high = middle - 1
    return step, bound


def conformal_risk_control(mean_loss: Floats, count: int, risk: float) -> int | None:
    """Return the last step with ``(n R + 1) / (n + 1) <= risk``: its risk is at most `risk` in expectation.

    The total loss must not fall when more is answered, so losses must be at least 0. Reference: Angelopoulos, Bates,
    Fisch, Lei and Schuster, "Conformal Risk Control", 2024.

    Args:
        mean_loss: mean loss per item at each step, or the mean over clusters of such means; a declined item has loss 0.
        count: number of items or clusters.
        risk: the risk limit.

    >>> wrong = np.cumsum([0, 0, 1, 0, 1, 0, 0, 0, 0, 0]) / 10
    >>> [conformal_risk_control(wrong, 10, risk) for risk in (0.1, 0.2, 0.3)]
    [1, 3, 9]
    """
    kept = np.flatnonzero((count * mean_loss + 1.0) / (count + 1.0) <= risk + _NOISE)
    return int(kept[-1]) if len(kept) else None
