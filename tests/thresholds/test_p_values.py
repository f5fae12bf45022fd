"""P-values against values worked out by hand or by another library, and the meaning of each."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from abstain import DataError
from abstain.thresholds import (
    RiskTable,
    betting_wealth,
    binomial_p,
    binomial_upper,
    cluster_t_p,
    hoeffding_bentkus_p,
    thresholds_between,
)


@pytest.mark.parametrize(
    ("mean", "count", "risk", "binary", "general"),
    [(0.02, 500, 0.05, 4.60007e-4, 1.250429e-3), (0.1, 100, 0.15, 0.0994474, 0.2703261)],
)
def test_hoeffding_bentkus_vectors(
    mean: float, count: int, risk: float, binary: float, general: float
) -> None:
    assert hoeffding_bentkus_p([mean], [count], risk, binary=True)[0] == pytest.approx(binary, rel=1e-5)
    assert hoeffding_bentkus_p([mean], [count], risk)[0] == pytest.approx(general, rel=1e-5)


def test_hoeffding_bentkus_without_an_error() -> None:
    assert hoeffding_bentkus_p([0.0], [59], 0.05, binary=True)[0] == pytest.approx(0.0484945, rel=1e-5)


def test_rounding_does_not_add_an_error() -> None:
    """The ceiling of n * (k / n) must be k."""
    for count in (49, 98, 103, 107, 500, 999):
        for errors in range(20):
            p_value = hoeffding_bentkus_p([errors / count], [count], 0.05, binary=True)[0]
            exact = stats.binom.cdf(errors, count, 0.05)
            assert p_value <= exact * (1 + 1e-9)


def test_clopper_pearson_vector() -> None:
    assert binomial_upper(3, 200, 0.05) == pytest.approx(0.0383097, rel=1e-6)
    assert binomial_upper(5, 5, 0.05) == 1.0
    # At the bound, the p-value equals the tail.
    assert binomial_p([3], [200], binomial_upper(3, 200, 0.05))[0] == pytest.approx(0.05)


def test_binomial_p_values_are_those_of_scipy() -> None:
    errors, answered = np.array([0, 1, 7, 30]), np.array([10, 100, 250, 600])
    assert binomial_p(errors, answered, 0.03) == pytest.approx(stats.binom.cdf(errors, answered, 0.03))
    assert binomial_p([0], [0], 0.03)[0] == 1.0
    with pytest.raises(DataError, match="whole errors among whole answers"):
        binomial_p([0.5], [10], 0.1)


def test_cluster_t_is_students_t_test() -> None:
    values = np.array([-0.3, 0.1, -0.2, -0.4, 0.05, -0.1])
    p_value = cluster_t_p(np.array([values.sum()]), np.array([(values**2).sum()]), len(values))
    assert p_value[0] == pytest.approx(stats.ttest_1samp(values, 0.0, alternative="less").pvalue)


def test_a_fair_game_is_rarely_won() -> None:
    """Ville's inequality: if the risk equals the limit, a stake of 1 grows to 10 at most once in ten games."""
    generator, games, risk = np.random.default_rng(5), 2000, 0.2
    lost = generator.random((150, games)) < risk
    gains = ((risk - lost) / (1.0 - risk)).astype(np.float64)
    best, _ = betting_wealth(gains)
    assert (best >= math.log(10.0)).mean() <= 0.1


def test_a_game_can_be_interrupted() -> None:
    generator = np.random.default_rng(6)
    gains = ((0.3 - (generator.random((90, 4)) < 0.1)) / 0.7).astype(np.float64)
    uninterrupted, _ = betting_wealth(gains)
    _, state = betting_wealth(gains[:40])
    resumed, _ = betting_wealth(gains[40:], state)
    assert resumed == pytest.approx(uninterrupted)


def test_without_errors_betting_needs_little_more_than_the_binomial() -> None:
    """80 clusters of 3 items, all right: the largest bet wins 0.99 * risk / (1 - risk) on each of them."""
    table = RiskTable.of_rows(
        np.full(240, 0.9), np.zeros(240), cluster=np.repeat(np.arange(80), 3), asked=np.full(80, 3.0)
    )
    assert table.betting(0.1)[0] == pytest.approx((1 + 0.99 / 9) ** -80)


def loss_above_risk(cluster: np.ndarray, loss: np.ndarray, kept: np.ndarray, risk: float) -> np.ndarray:
    """Sum ``loss - risk`` over the rows of every cluster."""
    return np.array(
        [
            sum(loss[row] - risk for row in np.flatnonzero((cluster == number) & kept))
            for number in range(int(cluster.max()) + 1)
        ]
    )


@pytest.mark.parametrize("risk_type", ["selective", "joint"])
def test_moments_are_those_of_the_rows(risk_type: str) -> None:
    generator = np.random.default_rng(7)
    cluster = generator.integers(0, 12, 90)
    loss, confidence = generator.random(90), generator.integers(0, 30, 90) / 30
    asked = (np.bincount(cluster, minlength=12) + 2.0).astype(np.float64)
    table = RiskTable.of_rows(confidence, loss, cluster=cluster, asked=asked, most=10, risk_type=risk_type)
    assert len(table) <= 11
    for step, threshold in enumerate(table.thresholds):
        kept = confidence >= threshold
        above = loss_above_risk(cluster, loss, kept, 0.3)
        if risk_type == "joint":
            total = np.bincount(cluster[kept], weights=loss[kept], minlength=12)
            above = total - 0.3 * asked
        assert table.answered[step] == kept.sum()
        assert table.spread(0.3)[step] == pytest.approx((above**2).sum())
        student = stats.ttest_1samp(above, 0.0, alternative="less").pvalue
        assert table.cluster_t(0.3, 0.1)[step] >= student * (1 - 1e-9)


def test_without_errors_the_cluster_t_test_is_not_certain() -> None:
    """Without an error, the plain t test would have a p-value near 0 from three answers on."""
    asked = np.array([1.0, 2.0, 1.0, 2.0] * 10)
    cluster = np.repeat(np.arange(40), asked.astype(int))
    table = RiskTable.of_rows(np.full(60, 0.9), np.zeros(60), cluster=cluster, asked=asked)
    assert table.cluster_t(0.05, 0.05)[0] >= 0.95**60
    plain = cluster_t_p(table.loss - 0.05 * table.count, table.spread(0.05), 40)
    assert plain[0] < 1e-9


def test_a_step_lies_strictly_above_the_next_confidence() -> None:
    steps, last = thresholds_between(np.array([0.9, 0.8713, 0.8648]), np.ones(3), 3.0, None)
    assert last.tolist() == [0, 1, 2]
    assert steps[1] == np.nextafter(0.8648, 1.0)
    levels, _ = thresholds_between(np.array([0.9, 0.6]), np.array([5.0, 5.0]), 10.0, None)
    assert levels.tolist() == [0.9, 0.6]


def test_few_steps_reach_each_hundredth_of_the_items() -> None:
    levels = np.linspace(1.0, 0.0, 1000)
    steps, last = thresholds_between(levels, np.ones(1000), 1000.0, 100)
    assert len(steps) == 100
    assert (last + 1).tolist() == list(range(10, 1001, 10))
