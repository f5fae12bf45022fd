"""Searches: from p-values at steps to the step that is promised, with an error of at most delta for all that was tried.

Steps go from the most confident answers to all of them. The risk among answers need not grow along them, so that each
step is a hypothesis of its own ("the risk here is above what was asked for"), and the search is what keeps many tries
from making a promise by chance.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from abstain.inference import holm
from abstain.thresholds._p_values import binomial_upper

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

# A p-value that is delta but for rounding is delta.
_NOISE = 1e-12


def fixed_sequence(p_values: Floats, delta: float, start: int = 0) -> int | None:
    """Return the last step that is promised when steps are tested one after the other from `start`, until one fails.

    Every test is at `delta`: the first wrong promise would have to be the first false step that is reached, which its
    own p-value keeps to `delta`. None where the first test fails.

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
    promised = np.flatnonzero(holm(p_values) <= delta + _NOISE)
    return int(promised[-1]) if len(promised) else None


def selection_with_guaranteed_risk(
    errors: Floats, answered: Floats, risk: float, delta: float
) -> tuple[int | None, float]:
    """Return the step of SGR, and the bound on its risk: a binary search, each try at ``delta / ceil(log2 n)``.

    The bound of a try is the upper end of Clopper and Pearson. Reference: Geifman and El-Yaniv, "Selective
    Classification for Deep Neural Networks", 2017, algorithm 2; here the last try that kept to the risk is returned,
    because the very last one need not.

    Args:
        errors: how many answers are wrong at each step.
        answered: how many there are.
        risk: the risk that is asked for.
        delta: how often the promise may be broken.

    >>> wrong = np.cumsum([0.0] * 180 + [1.0] * 20)
    >>> selection_with_guaranteed_risk(wrong, np.arange(1.0, 201.0), 0.05, 0.05)[0]
    181
    """
    count = float(answered[-1]) if len(answered) else 0.0
    tries = max(math.ceil(math.log2(count)), 1) if count > 1.0 else 1
    low, high = 0, len(answered) - 1
    found, bound = None, math.nan
    for _ in range(tries):
        if low > high:
            break
        middle = (low + high) // 2
        upper = binomial_upper(float(errors[middle]), float(answered[middle]), delta / tries)
        if upper <= risk:
            found, bound, low = middle, upper, middle + 1
        else:
            high = middle - 1
    return found, bound


def conformal_risk_control(mean_loss: Floats, count: int, risk: float) -> int | None:
    """Return the last step with ``(n R + 1) / (n + 1) <= risk``: its risk is at most `risk` in expectation.

    It needs a loss that never falls when more is answered, which losses of at least 0 make sure of. Reference:
    Angelopoulos, Bates, Fisch, Lei and Schuster, "Conformal Risk Control", 2024.

    Args:
        mean_loss: at each step the mean loss per item, or the mean over clusters of such means; 0 for what is declined.
        count: how many items, or clusters.
        risk: the risk that is asked for.

    >>> wrong = np.cumsum([0, 0, 1, 0, 1, 0, 0, 0, 0, 0]) / 10
    >>> [conformal_risk_control(wrong, 10, risk) for risk in (0.1, 0.2, 0.3)]
    [1, 3, 9]
    """
    kept = np.flatnonzero((count * mean_loss + 1.0) / (count + 1.0) <= risk + _NOISE)
    return int(kept[-1]) if len(kept) else None
