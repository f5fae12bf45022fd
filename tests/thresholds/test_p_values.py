"""P-values against values worked out by hand or by another library, and the meaning of each."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from abstain import DataError
from abstain.thresholds import (
    RiskTable,
    binomial_p,
    binomial_upper,
    exponential_weights_p,
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


@pytest.mark.parametrize("risk", [0.02, 0.1, 0.3])
def test_exponential_weights_of_independent_answers_give_the_binomial_p_value(risk: float) -> None:
    """k + 1 exponential weights against n - k others: the probability that a Beta(k + 1, n - k) is above the risk."""
    for answers in (20, 59, 400):
        for errors in (0, 1, 3, 10):
            excess = np.array([[-risk] * (answers - errors) + [1 - risk] * (errors + 1)])
            expected = stats.binom.cdf(errors, answers, risk)
            assert exponential_weights_p(excess)[0] == pytest.approx(expected, rel=0.03, abs=1e-6)


def test_exponential_weights_with_one_loss_above_the_limit_by_hand() -> None:
    """P(3 E_0 >= 1 E_1 + 2 E_2) = 3 / (3 + 1) * 3 / (3 + 2) = 0.45, and 40 such pairs: (0.45) ** 40."""
    assert exponential_weights_p(np.array([[-1.0, -2.0, 3.0]]))[0] == pytest.approx(0.45, rel=0.01)
    many = np.array([[-1.0, -2.0] * 40 + [3.0]])
    assert exponential_weights_p(many)[0] == pytest.approx(0.45**40, rel=0.03)
    assert exponential_weights_p(np.array([[-1.0, -2.0, 3.0]]), repeats=40)[0] == pytest.approx(
        exponential_weights_p(many)[0], rel=1e-9
    )


def test_exponential_weights_agree_with_drawn_weights() -> None:
    generator = np.random.default_rng(8)
    excess = np.array(
        [[-0.8] * 30 + [0.2, 1.2, 3.2, 4.0], [-5.0, -0.1, 2.0, 0.3] * 8 + [1.0, 1.0], [0.5, -0.4] * 17]
    )
    sums = generator.exponential(size=(200_000, excess.shape[1])) @ excess.T
    assert exponential_weights_p(excess) == pytest.approx((sums >= 0).mean(axis=0), abs=0.004)


def test_exponential_weights_at_the_edges() -> None:
    no_evidence = np.array([[0.0, 0.0, 0.9], [0.0, 0.0, 0.0], [0.3, 0.0, 0.9]])
    assert exponential_weights_p(no_evidence).tolist() == [1.0, 1.0, 1.0]
    # Without a pseudo-cluster and without a loss above the limit, no weights give a risk above it.
    assert exponential_weights_p(np.array([[-1.0, -0.5, 0.0]])).tolist() == [0.0]
    assert exponential_weights_p(np.array([[-1.0, 1.0]])).tolist() == [0.5]
    # The p-value is continuous at a mean of 0, and grows with every loss.
    means = np.array([-1e-2, -1e-3, -1e-4, -1e-6, 0.0, 1e-6, 1e-4, 1e-3, 1e-2])
    p_values = exponential_weights_p(means[:, None] + np.array([[-1.0, -1.0, -1.0, 2.0, 1.0]]))
    assert (np.diff(p_values) > 0.0).all()
    assert np.diff(p_values).max() < 0.007


def loss_above_risk(cluster: np.ndarray, loss: np.ndarray, kept: np.ndarray, risk: float) -> np.ndarray:
    """Sum ``loss - risk`` over the rows of every cluster."""
    return np.array(
        [
            sum(loss[row] - risk for row in np.flatnonzero((cluster == number) & kept))
            for number in range(int(cluster.max()) + 1)
        ]
    )


@pytest.mark.parametrize("risk_type", ["selective", "joint"])
@pytest.mark.parametrize("method", ["pseudo-cluster", "gaffke"])
def test_the_tests_over_clusters_are_those_of_the_rows(risk_type: str, method: str) -> None:
    generator = np.random.default_rng(7)
    cluster = generator.integers(0, 12, 90)
    loss, confidence = generator.random(90) * 0.6, generator.integers(0, 30, 90) / 30
    asked = (np.bincount(cluster, minlength=12) + 2.0).astype(np.float64)
    table = RiskTable.of_rows(confidence, loss, cluster=cluster, asked=asked, most=10, risk_type=risk_type)
    assert len(table) <= 11
    p_values = table.p_values(method, 0.4)
    for step, threshold in enumerate(table.thresholds):
        kept = confidence >= threshold
        above = loss_above_risk(cluster, loss, kept, 0.4)
        if risk_type == "joint":
            above = np.bincount(cluster[kept], weights=loss[kept], minlength=12) - 0.4 * asked
        assert table.answered[step] == kept.sum()
        second, worst = (max(each, 0.6) for each in sorted(above)[-2:])
        pseudo = asked.max() * 0.6 if method == "gaffke" else 2 * worst - second
        assert p_values[step] == pytest.approx(exponential_weights_p(np.array([[*above, pseudo]]))[0])


def table_of_clusters(wrong: list[int], size: int) -> RiskTable:
    """Clusters of one size, with a number of wrong answers each and one confidence."""
    loss = np.concatenate([np.repeat([1.0, 0.0], [errors, size - errors]) for errors in wrong])
    count = len(wrong)
    cluster = np.repeat(np.arange(count), size)
    return RiskTable.of_rows(
        np.full(size * count, 0.9), loss, cluster=cluster, asked=np.full(count, float(size))
    )


def test_without_errors_the_p_values_over_clusters_by_hand() -> None:
    """40 clusters of 3 right answers, risk 0.1: each is 0.3 below, and the pseudo-cluster 0.9 or 3 * 0.9 above."""
    table = table_of_clusters([0] * 40, 3)
    assert table.p_values("pseudo-cluster", 0.1)[0] == pytest.approx((0.9 / 1.2) ** 40, rel=0.035)
    # The same as the binomial p-value of 40 answers: each cluster counts as one of the largest size.
    assert table.p_values("gaffke", 0.1)[0] == pytest.approx(0.9**40, rel=0.035)


def test_the_pseudo_cluster_extrapolates_the_two_worst_clusters() -> None:
    """With risk 0.1 and clusters of 10, errors 6 and 4 are 5 and 3 above the limit, so the pseudo-cluster is 7."""
    table = table_of_clusters([0] * 60 + [4, 6], 10)
    excess = np.array([[-1.0] * 60 + [3.0, 5.0, 7.0]])
    assert table.p_values("pseudo-cluster", 0.1)[0] == pytest.approx(exponential_weights_p(excess)[0])


def test_one_cluster_or_no_answer_supports_nothing() -> None:
    assert table_of_clusters([0], 500).p_values("pseudo-cluster", 0.1).tolist() == [1.0]
    unanswered = RiskTable.of_rows(
        np.full(4, 0.5),
        np.zeros(4),
        cluster=np.array([0, 0, 1, 1]),
        asked=np.full(2, 2.0),
        thresholds=np.array([0.9, 0.5]),
    )
    assert unanswered.p_values("pseudo-cluster", 0.4)[0] == 1.0
    assert unanswered.p_values("pseudo-cluster", 0.4)[1] < 1.0


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
