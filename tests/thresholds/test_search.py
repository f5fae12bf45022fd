"""Searches: examples worked out by hand, and SGR against an independent implementation with scipy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import optimize, stats

from abstain import Items, choose_threshold
from abstain.thresholds import (
    conformal_risk_control,
    fixed_sequence,
    holm_search,
    selection_with_guaranteed_risk,
)

SURE = [0.9, 0.8, 0.75, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1]
WRONG = [0, 0, 1, 0, 1, 0, 0, 0, 0, 0]


@pytest.mark.parametrize(("risk", "threshold"), [(0.1, 0.8), (0.2, 0.7), (0.3, 0.1)])
def test_conformal_risk_control_by_hand(risk: float, threshold: float) -> None:
    items = Items.from_arrays([1] * 10, [1 - wrong for wrong in WRONG], confidence=SURE)
    policy = choose_threshold(items, risk=risk, sure=None, risk_type="joint")
    assert policy.method == "crc"
    assert policy.shown_threshold == threshold
    assert policy.observed is not None
    assert policy.observed.answered == SURE.index(threshold) + 1
    assert str(policy).startswith(
        f"So that on average at most {100 * risk:g}% of items are answered wrongly, answer"
    )


def test_conformal_risk_control_over_clusters_takes_the_mean_of_their_means() -> None:
    """Clusters of 4 and 1 items: one error in the first is a risk of 1/8, one in the second of 1/2."""
    wrong = np.array([1.0, 0, 0, 0, 0])
    items = Items.from_arrays(
        [1] * 5, (1 - wrong).tolist(), confidence=[0.9, 0.8, 0.7, 0.6, 0.5], cluster=[0, 0, 0, 0, 1]
    )
    # (2 * 1/8 + 1) / 3 = 0.4167
    assert choose_threshold(items, risk=0.42, sure=None, risk_type="joint").threshold == 0.5
    assert choose_threshold(items, risk=0.41, sure=None, risk_type="joint").threshold is None
    assert conformal_risk_control(np.array([0.125]), 2, 0.42) == 0


def test_the_fixed_sequence_ends_at_the_first_test_that_fails() -> None:
    values = np.array([0.2, 0.01, 0.03, 0.05, 0.06, 0.0])
    assert fixed_sequence(values, 0.05, 1) == 3
    assert fixed_sequence(values, 0.05, 0) is None
    assert fixed_sequence(values[1:4], 0.05) == 2
    assert fixed_sequence(np.empty(0), 0.05) is None


def test_holm_takes_the_last_of_those_that_hold_together() -> None:
    # 4 * 0.001 and 3 * 0.01 are at most 0.05, and 2 * 0.03 is not; 2 * 0.02 is.
    assert holm_search(np.array([0.001, 0.6, 0.01, 0.03]), 0.05) == 2
    assert holm_search(np.array([0.001, 0.6, 0.01, 0.02]), 0.05) == 3
    assert holm_search(np.array([0.3, 0.02]), 0.03) is None


def sgr_by_definition(errors: np.ndarray, risk: float, delta: float) -> int | None:
    """SGR as in the paper; each bound is the risk at which scipy's binomial probability equals the tail."""
    count = len(errors)
    tries = math.ceil(math.log2(count))

    def bound(answers: int) -> float:
        wrong = int(errors[answers - 1])
        if wrong == answers:
            return 1.0
        return optimize.brentq(
            lambda rate: stats.binom.cdf(wrong, answers, rate) - delta / tries, 1e-12, 1.0 - 1e-12, xtol=1e-14
        )

    low, high, answered = 1, count, None
    for _ in range(tries):
        if low > high:
            break
        middle = (low - 1 + high - 1) // 2 + 1
        if bound(middle) <= risk:
            answered, low = middle, middle + 1
        else:
            high = middle - 1
    return answered


@pytest.mark.parametrize(
    ("count", "risk", "delta"), [(5000, 0.05, 0.05), (20_000, 0.02, 0.01), (1023, 0.1, 0.1)]
)
def test_sgr_on_a_large_case(count: int, risk: float, delta: float) -> None:
    generator = np.random.default_rng(count)
    confidence = np.sort(generator.random(count))[::-1]
    errors = np.cumsum(generator.random(count) < 0.3 * (1.0 - confidence) ** 2)
    answers = np.arange(1.0, count + 1.0)
    step, bound = selection_with_guaranteed_risk(errors.astype(float), answers, risk, delta)
    expected = sgr_by_definition(errors, risk, delta)
    assert expected is not None
    assert step == expected - 1
    assert bound <= risk
    # At this bound, scipy's binomial probability is exactly the tail of one try.
    tail = delta / math.ceil(math.log2(count))
    assert stats.binom.cdf(errors[expected - 1], expected, bound) == pytest.approx(tail, rel=1e-6)


def test_choose_threshold_with_sgr_agrees_with_its_definition() -> None:
    generator = np.random.default_rng(3)
    confidence = generator.random(3000)
    wrong = generator.random(3000) < 0.3 * (1.0 - confidence) ** 2
    items = Items.from_arrays(np.ones(3000), np.where(wrong, 0, 1), confidence=confidence)
    policy = choose_threshold(items, risk=0.05, method="sgr")
    order = np.argsort(-confidence)
    expected = sgr_by_definition(np.cumsum(wrong[order]), 0.05, 0.05)
    assert policy.observed is not None
    assert policy.observed.answered == expected
    assert policy.search == "binary-search"
