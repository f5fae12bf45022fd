"""Calibration metrics: by hand, invariants, and agreement with other implementations."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from krisis.metrics.base import EvaluationResult
from krisis.metrics.calibration import BrierScore, ExpectedCalibrationError
from mapie.metrics import calibration as mapie
from scipy import stats
from sklearn.calibration import calibration_curve
from sklearn.metrics import brier_score_loss, log_loss

from abstain.errors import ArgumentError, DataError
from abstain.metrics import Columns, calibration, find_metric, measure_metrics
from abstain.metrics._calibration_errors import row_bins
from abstain.metrics.calibration import (
    binned_error_metric,
    brier_decomposition,
    brier_score,
    calibration_measure,
    classwise_calibration_error,
    expected_calibration_error,
    multiclass_brier_score,
    negative_log_likelihood,
    reliability_curve,
    smooth_calibration_error,
    top_label_calibration_error,
)

if TYPE_CHECKING:
    from abstain.resampling import Statistic

SCALARS: dict[str, Any] = {
    "ece": expected_calibration_error,
    "ece-quantile": lambda y, s, **k: expected_calibration_error(y, s, strategy="quantile", bins=4, **k),
    "ece-2": lambda y, s, **k: expected_calibration_error(y, s, norm=2, **k),
    "ece-max": lambda y, s, **k: expected_calibration_error(y, s, norm="max", bins=5, **k),
    "ece-debiased": lambda y, s, **k: expected_calibration_error(y, s, debiased=True, bins=3, **k),
    "ece-2-debiased": lambda y, s, **k: expected_calibration_error(y, s, norm=2, debiased=True, bins=3, **k),
    "smooth": smooth_calibration_error,
    "brier": brier_score,
    "nll": negative_log_likelihood,
}


def sample(n: int = 300, seed: int = 0, digits: int | None = None) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    s = rng.beta(3, 2, n)
    if digits is not None:
        s = s.round(digits)
    return (rng.random(n) < s**1.3).astype(int), s


# By hand


def test_one_bin_each_norm() -> None:
    # Bins [0, 0.5): conf 0.25, acc 0.5 (2 rows); [0.5, 1]: conf 0.8, acc 0 (1 row).
    y, s = [1, 0, 0], [0.2, 0.3, 0.8]
    assert expected_calibration_error(y, s, bins=2) == pytest.approx((2 * 0.25 + 0.8) / 3)
    assert expected_calibration_error(y, s, bins=2, norm=2) == pytest.approx(
        math.sqrt((2 * 0.0625 + 0.64) / 3)
    )
    assert expected_calibration_error(y, s, bins=2, norm="max") == pytest.approx(0.8)
    assert expected_calibration_error(y, s, bins=2, norm=math.inf) == pytest.approx(0.8)


def test_bins_are_left_closed_and_the_last_is_closed() -> None:
    curve = reliability_curve([0, 1, 1, 1], [0.0, 0.5, 0.999, 1.0], bins=2)
    assert curve.count.tolist() == [1, 3]
    assert reliability_curve([1], [1.0], bins=10).count.tolist() == [0] * 9 + [1]


def test_empty_bins_are_kept_with_count_0_and_nan() -> None:
    curve = reliability_curve([1, 0], [0.05, 0.95], bins=10)
    assert curve.count.tolist() == [1, 0, 0, 0, 0, 0, 0, 0, 0, 1]
    assert np.isnan(curve.accuracy[1:9]).all()
    assert np.isnan(curve.low[1:9]).all()
    assert len(curve) == 10
    assert curve.edges.tolist() == [number / 10 for number in range(11)]


def test_tied_confidences_are_in_the_same_quantile_bin() -> None:
    s = [0.1, 0.2, 0.2, 0.2, 0.2, 0.9]
    bin_, edges = row_bins(np.array(s), np.ones(6), 3, "quantile")
    # More than two thirds of the rows are at or below 0.2, so both edges are 0.2 and the second bin is empty.
    assert bin_.tolist() == [0, 2, 2, 2, 2, 2]
    assert edges.tolist() == [0.1, 0.2, 0.2, 0.9]
    curve = reliability_curve([0, 1, 1, 0, 0, 1], s, bins=3, strategy="quantile")
    assert curve.count.tolist() == [1, 0, 5]


def test_quantile_bins_have_equal_mass_without_ties() -> None:
    y, s = sample(60)
    assert reliability_curve(y, s, bins=15, strategy="quantile").count.tolist() == [4] * 15


def test_debiased_squared_error_by_hand() -> None:
    # One bin, 4 rows, accuracy 3/4, confidence 0.5: 1/16 - (3/16)/3 = 0.
    assert expected_calibration_error([1, 1, 1, 0], [0.5] * 4, bins=1, norm=2, debiased=True) == 0.0
    # Confidence 0.25: 1/4 - 1/16.
    value = expected_calibration_error([1, 1, 1, 0], [0.25] * 4, bins=1, norm=2, debiased=True)
    assert value == pytest.approx(math.sqrt(3 / 16))


def test_debiased_absolute_error_by_hand() -> None:
    gap, deviation = 0.25, math.sqrt(0.75 * 0.25 / 4)
    folded = stats.foldnorm.mean(gap / deviation, scale=deviation)
    value = expected_calibration_error([1, 1, 1, 0], [0.5] * 4, bins=1, debiased=True)
    assert value == pytest.approx(2 * gap - folded)


@pytest.mark.slow
@pytest.mark.parametrize("norm", [1, 2])
def test_debiasing_removes_a_large_part_of_the_bias(norm: int) -> None:
    rng = np.random.default_rng(3)
    plain, debiased = [], []
    for _ in range(200):
        s = rng.uniform(0.2, 0.9, 300)
        y = (rng.random(300) < s).astype(int)
        plain.append(expected_calibration_error(y, s, norm=norm))
        debiased.append(expected_calibration_error(y, s, norm=norm, debiased=True))
    assert np.mean(debiased) < 0.65 * np.mean(plain)


def test_a_bin_with_one_row_contributes_zero_to_the_debiased_error() -> None:
    assert expected_calibration_error([1, 0], [0.1, 0.9], bins=2, norm=2, debiased=True) == 0.0


def test_classwise_by_hand() -> None:
    scores = [[0.6, 0.3, 0.1], [0.2, 0.2, 0.6]]
    # Class 0: bins 0.6 and 0.2 gaps 0.4, 0.2; class 1: 0.3, 0.2; class 2: 0.1, 0.4. Each over two rows.
    expected = np.mean([0.3, 0.25, 0.25])
    assert classwise_calibration_error([0, 2], scores) == pytest.approx(expected)
    assert classwise_calibration_error(["x", "z"], scores, classes=["x", "y", "z"]) == pytest.approx(expected)


def test_top_label_by_hand_and_from_probabilities() -> None:
    # Predicted a: 0.9 right, 0.7 wrong: (0.1 + 0.7) / 2. Predicted b: 0.6 wrong. Mean 0.5.
    value = top_label_calibration_error(["a", "c", "c"], ["a", "a", "b"], [0.9, 0.7, 0.6])
    assert value == pytest.approx(0.5)
    scores = [[0.9, 0.05, 0.05], [0.7, 0.2, 0.1], [0.3, 0.6, 0.1]]
    assert top_label_calibration_error(["a", "c", "c"], scores, classes=["a", "b", "c"]) == pytest.approx(0.5)


def test_brier_decomposition_by_hand() -> None:
    parts = brier_decomposition([1, 0, 1, 1], [0.4, 0.4, 0.8, 0.8])
    # acc 0.5 against 0.4, acc 1 against 0.8, base 0.75.
    assert parts.reliability == pytest.approx(0.5 * 0.01 + 0.5 * 0.04)
    assert parts.resolution == pytest.approx(0.0625)
    assert parts.uncertainty == pytest.approx(0.1875)
    assert (parts.within_bin, parts.n, parts.groups) == (0.0, 4.0, 2)


@pytest.mark.parametrize("options", [{}, {"bins": 7}, {"bins": 4, "strategy": "quantile"}])
def test_brier_decomposition_adds_up(options: dict[str, Any]) -> None:
    y, s = sample(digits=1)
    weights = np.random.default_rng(1).integers(0, 4, len(y))
    parts = brier_decomposition(y, s, sample_weight=weights, **options)
    total = parts.reliability - parts.resolution + parts.uncertainty + parts.within_bin
    assert total == pytest.approx(parts.brier_score, abs=1e-12)
    assert parts.brier_score == pytest.approx(brier_score(y, s, sample_weight=weights))
    if not options:
        assert abs(parts.reliability - parts.resolution + parts.uncertainty - parts.brier_score) < 1e-12


def test_the_smooth_error_of_a_single_confidence_is_its_gap() -> None:
    assert smooth_calibration_error([1, 1, 1, 0], [0.5] * 4) == pytest.approx(0.25, abs=1e-6)
    assert smooth_calibration_error([1, 0], [1.0, 0.0]) == 0.0
    assert smooth_calibration_error([1, 0], [0.0, 1.0]) <= 1.0
    assert smooth_calibration_error([1, 1], [0.0, 0.0]) == pytest.approx(1.0)


@pytest.mark.slow
@pytest.mark.parametrize("n", [3, 40, 400])
def test_smooth_error_agrees_with_the_integral_of_its_definition(n: int) -> None:
    y, s = sample(n, seed=n)
    value = smooth_calibration_error(y, s)
    t = np.linspace(0, 1, 4001)
    images = np.concatenate([s + 2 * k for k in range(-3, 4)] + [-s + 2 * k for k in range(-3, 4)])
    residual = np.tile(y - s, 14)
    smoothed = stats.norm.pdf((t[:, None] - images) / value) @ residual / value / n
    assert np.trapezoid(np.abs(smoothed), t) == pytest.approx(value, rel=2e-4)


def test_likelihood_is_clipped() -> None:
    assert negative_log_likelihood([1], [0.0]) == pytest.approx(-math.log(1e-6))
    assert negative_log_likelihood([1], [0.0], clip=0.01) == pytest.approx(-math.log(0.01))
    with pytest.raises(ArgumentError, match=r"clip must be greater than 0 and less than 0.5, got 0"):
        negative_log_likelihood([1], [0.5], clip=0)


# Invariants


@pytest.mark.parametrize("name", SCALARS)
def test_row_order_does_not_matter(name: str) -> None:
    y, s = sample(digits=1)
    order = np.random.default_rng(5).permutation(len(y))
    assert SCALARS[name](y[order], s[order]) == pytest.approx(SCALARS[name](y, s), abs=1e-9)


@pytest.mark.parametrize("name", SCALARS)
@pytest.mark.parametrize("digits", [1, None])
def test_weights_are_repetitions(name: str, digits: int | None) -> None:
    y, s = sample(80, digits=digits)
    weights = np.random.default_rng(6).integers(0, 4, len(y))
    repeated = SCALARS[name](np.repeat(y, weights), np.repeat(s, weights))
    assert SCALARS[name](y, s, sample_weight=weights) == pytest.approx(repeated, abs=1e-9)


@pytest.mark.parametrize("strategy", ["uniform", "quantile"])
def test_class_metrics_take_weights_as_repetitions(strategy: str) -> None:
    rng = np.random.default_rng(7)
    scores = rng.dirichlet([1, 1, 1], 60)
    y, weights = rng.integers(0, 3, 60), rng.integers(0, 3, 60)
    for metric in (classwise_calibration_error, top_label_calibration_error):
        repeated = metric(
            np.repeat(y, weights), np.repeat(scores, weights, axis=0), strategy=strategy, bins=5
        )
        assert metric(y, scores, sample_weight=weights, strategy=strategy, bins=5) == pytest.approx(repeated)


MEASURES: dict[str, dict[str, Any]] = {
    "expected_calibration_error": {"strategy": "quantile", "bins": 5, "norm": 2},
    "smooth_calibration_error": {},
    "brier_score": {},
    "negative_log_likelihood": {},
}


def statistic(name: str, y: Any, s: Any, cluster: Any, **options: Any) -> Statistic:
    """Return the statistic of a metric over clusters, from which intervals are computed."""
    metric = binned_error_metric(**options) if options else find_metric(name)
    return measure_metrics(Columns.believed(y, s, cluster=cluster), [metric])


@pytest.mark.parametrize("name", MEASURES)
@pytest.mark.parametrize("digits", [1, None])
def test_statistics_equal_the_metric_on_copied_rows(name: str, digits: int | None) -> None:
    y, s = sample(90, digits=digits)
    rng = np.random.default_rng(8)
    cluster = np.sort(rng.integers(0, 12, 90))
    cluster = np.unique(cluster, return_inverse=True)[1]
    clusters = int(cluster.max()) + 1
    weights = rng.multinomial(clusters, np.full(clusters, 1 / clusters), size=20).astype(float)
    measure = statistic(name, y, s, cluster, **MEASURES[name])
    values = measure(weights)
    metric = getattr(calibration, name)
    for weight, value in zip(weights, values[:, 0], strict=True):
        rows = np.repeat(np.arange(90), weight[cluster].astype(int))
        assert value == pytest.approx(metric(y[rows], s[rows], **MEASURES[name]), abs=1e-8)
    assert measure(np.ones((1, clusters)))[0, 0] == pytest.approx(metric(y, s, **MEASURES[name]), abs=1e-12)


def test_the_top_label_statistic_equals_the_metric_on_copied_rows() -> None:
    rng = np.random.default_rng(13)
    scores, y = rng.dirichlet([1, 1, 2], 40), rng.integers(0, 3, 40)
    clusters = np.arange(40) // 4
    weights = rng.multinomial(10, np.full(10, 0.1), size=5).astype(float)
    rows = Columns.checked(y, scores.argmax(axis=1), confidence=scores.max(axis=1)).in_units(clusters)
    values = measure_metrics(rows, [find_metric("top_label_calibration_error@4")])(weights)[:, 0]
    for weight, value in zip(weights, values, strict=True):
        copied = np.repeat(np.arange(40), weight[clusters].astype(int))
        assert value == pytest.approx(top_label_calibration_error(y[copied], scores[copied], bins=4))


def test_statistics_of_class_metrics_equal_the_metric_on_copied_rows() -> None:
    rng = np.random.default_rng(13)
    scores, y = rng.dirichlet([1, 1, 2], 40), rng.integers(0, 3, 40)
    clusters = np.arange(40) // 4
    weights = rng.multinomial(10, np.full(10, 0.1), size=5).astype(float)
    for name in ("classwise_calibration_error", "top_label_calibration_error"):
        metric = getattr(calibration, name)
        values = calibration_measure(name, y, scores, cluster=clusters, bins=4)(weights)[:, 0]
        for weight, value in zip(weights, values, strict=True):
            rows = np.repeat(np.arange(40), weight[clusters].astype(int))
            assert value == pytest.approx(metric(y[rows], scores[rows], bins=4))


@pytest.mark.parametrize("name", MEASURES)
def test_the_measure_of_a_metric_is_its_statistic_over_clusters(name: str) -> None:
    y, s = sample(50)
    cluster = np.arange(50) % 7
    weights = np.vstack([np.random.default_rng(2).integers(0, 3, (4, 7)), np.zeros((1, 7))]).astype(float)
    measure = calibration_measure(name, y, s, cluster=cluster, **MEASURES[name])
    expected = statistic(name, y, s, cluster, **MEASURES[name])(weights)
    assert np.isnan(expected[-1, 0])
    np.testing.assert_allclose(measure(weights), expected, atol=1e-12)


def test_dense_and_sparse_tables_give_the_same_statistic(monkeypatch: pytest.MonkeyPatch) -> None:
    y, s = sample(50)
    weights = np.random.default_rng(2).integers(0, 3, (4, 7)).astype(float)
    for name, options in (*MEASURES.items(), ("expected_calibration_error", {})):
        rows = (name, y, s, np.arange(50) % 7)
        dense = statistic(*rows, **options)(weights)
        with monkeypatch.context() as patched:
            patched.setattr("abstain.resampling._cluster_sums._DENSE_LIMIT", 0)
            np.testing.assert_allclose(statistic(*rows, **options)(weights), dense, atol=1e-12)


def test_a_resample_without_weight_is_nan() -> None:
    for name in MEASURES:
        measure = statistic(name, [1, 0], [0.4, 0.7], [0, 1])
        assert np.isnan(measure(np.zeros((1, 2)))).all()


def test_top_label_error_ignores_labels_that_a_resample_does_not_predict() -> None:
    rows = Columns.checked(["a", "a"], ["a", "b"], confidence=[0.9, 0.6]).in_units(np.arange(2))
    measure = measure_metrics(rows, [find_metric("top_label_calibration_error")])
    np.testing.assert_allclose(measure(np.array([[1.0, 1.0], [2.0, 0.0]]))[:, 0], [0.35, 0.1])


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.tuples(st.booleans(), st.floats(0, 1)), min_size=1, max_size=30),
    st.integers(1, 20),
    st.sampled_from(["uniform", "quantile"]),
)
def test_the_error_can_be_computed_from_the_reliability_curve(
    rows: list[tuple[bool, float]], bins: int, strategy: str
) -> None:
    y, s = np.array([row[0] for row in rows]), np.array([row[1] for row in rows])
    curve = reliability_curve(y, s, bins=bins, strategy=strategy)
    error = expected_calibration_error(y, s, bins=bins, strategy=strategy)
    held = curve.count > 0
    assert curve.count.sum() == len(rows)
    assert error == pytest.approx((curve.count[held] * np.abs(curve.gap[held])).sum() / len(rows), abs=1e-9)
    assert 0 <= error <= 1
    assert (curve.low[held] <= curve.accuracy[held]).all()
    assert (curve.high[held] >= curve.accuracy[held]).all()


# Reliability intervals


def test_intervals_are_clopper_pearson() -> None:
    y, s = sample(200, digits=1)
    curve = reliability_curve(y, s, bins=5, level=0.9)
    for count, accuracy, low, high in zip(curve.count, curve.accuracy, curve.low, curve.high, strict=True):
        if count:
            exact = stats.binomtest(round(count * accuracy), int(count)).proportion_ci(0.9, method="exact")
            assert (low, high) == pytest.approx((exact.low, exact.high))


def test_clusters_of_one_row_change_nothing() -> None:
    y, s = sample(100)
    plain, single = reliability_curve(y, s, bins=4), reliability_curve(y, s, bins=4, cluster=np.arange(100))
    np.testing.assert_allclose(single.low, plain.low)
    np.testing.assert_allclose(single.high, plain.high)


def test_clusters_of_equal_rows_count_once() -> None:
    y, s = sample(120)
    clusters = np.repeat(np.arange(120), 8)
    copied = reliability_curve(np.repeat(y, 8), np.repeat(s, 8), bins=3, cluster=clusters)
    plain = reliability_curve(y, s, bins=3)
    assert (copied.effective_count <= plain.count + 1).all()
    assert (copied.low <= plain.low + 0.01).all()
    assert (copied.high >= plain.high - 0.01).all()


def test_clusters_never_narrow_an_interval() -> None:
    rng = np.random.default_rng(11)
    y, s = sample(400)
    plain = reliability_curve(y, s)
    for clusters in (rng.integers(0, 50, 400), np.zeros(400), np.arange(400) // 2):
        curve = reliability_curve(y, s, cluster=clusters)
        held = plain.count > 0
        assert (curve.low[held] <= plain.low[held] + 1e-12).all()
        assert (curve.high[held] >= plain.high[held] - 1e-12).all()


def test_if_all_rows_of_a_bin_agree_each_cluster_counts_once() -> None:
    curve = reliability_curve([1] * 8, [0.9] * 8, bins=1, cluster=[0, 0, 0, 0, 1, 1, 1, 1])
    assert curve.effective_count.tolist() == [2.0]
    assert curve.low[0] == pytest.approx(0.025 ** (1 / 2))


@pytest.mark.slow
def test_intervals_with_clusters_cover_and_intervals_without_do_not() -> None:
    rng = np.random.default_rng(12)
    clusters = np.repeat(np.arange(30), 10)
    hits = {"plain": 0, "clustered": 0}
    for _ in range(300):
        rate = rng.beta(1.2, 0.8, 30)
        y = (rng.random(300) < rate[clusters]).astype(int)
        for name, given_clusters in (("plain", None), ("clustered", clusters)):
            curve = reliability_curve(y, np.full(300, 0.6), bins=1, cluster=given_clusters)
            hits[name] += bool(curve.low[0] <= 0.6 <= curve.high[0])
    assert hits["plain"] / 300 < 0.8
    assert hits["clustered"] / 300 > 0.92


# Agreement with other implementations


@pytest.mark.parametrize("seed", range(3))
def test_brier_and_log_loss_agree_with_scikit_learn(seed: int) -> None:
    y, s = sample(200, seed)
    weights = np.random.default_rng(seed).random(200)
    assert brier_score(y, s) == pytest.approx(brier_score_loss(y, s))
    assert brier_score(y, s, sample_weight=weights) == pytest.approx(
        brier_score_loss(y, s, sample_weight=weights)
    )
    assert negative_log_likelihood(y, s) == pytest.approx(log_loss(y, s))
    assert negative_log_likelihood(y, s, sample_weight=weights) == pytest.approx(
        log_loss(y, s, sample_weight=weights)
    )


def test_reliability_of_filled_bins_agrees_with_scikit_learn() -> None:
    y, s = sample(500)
    for strategy, bins in (("uniform", 10), ("quantile", 10)):
        curve = reliability_curve(y, s, bins=bins, strategy=strategy)
        accuracy, confidence = calibration_curve(y, s, n_bins=bins, strategy=strategy)
        held = curve.count > 0
        np.testing.assert_allclose(curve.accuracy[held], accuracy, atol=1e-12)
        np.testing.assert_allclose(curve.confidence[held], confidence, atol=1e-12)


def test_error_agrees_with_mapie_which_has_one_bin_fewer_than_requested() -> None:
    y, s = sample(500)
    theirs = mapie.expected_calibration_error(y, s, num_bins=16, split_strategy="uniform")
    assert expected_calibration_error(y, s, bins=15) == pytest.approx(theirs)


def test_top_label_error_agrees_with_mapie_which_has_one_bin_fewer_than_requested() -> None:
    rng = np.random.default_rng(4)
    scores = rng.dirichlet([2, 1, 1], 300)
    y = rng.integers(0, 3, 300)
    theirs = mapie.top_label_ece(y, scores, num_bins=11, split_strategy="uniform")
    assert top_label_calibration_error(y, scores, bins=10) == pytest.approx(theirs)


@pytest.mark.parametrize("digits", [1, 2, None])
def test_error_and_brier_agree_with_krisis(digits: int | None) -> None:
    rng = np.random.default_rng(9)
    prediction, truth = rng.integers(0, 2, 150), rng.integers(0, 2, 150)
    confidence = rng.random(150) if digits is None else rng.random(150).round(digits)
    rows = [
        EvaluationResult(prediction=int(p), ground_truth=int(t), abstained=False, confidence=float(c))
        for p, t, c in zip(prediction, truth, confidence, strict=True)
    ]
    assert expected_calibration_error(prediction == truth, confidence) == pytest.approx(
        ExpectedCalibrationError()(rows).value
    )
    positive = np.where(prediction == 1, confidence, 1 - confidence)
    assert brier_score(truth, positive) == pytest.approx(BrierScore()(rows).value)


# Bad input


@pytest.mark.parametrize("metric", [*SCALARS.values(), brier_decomposition, reliability_curve])
def test_bad_rows_are_named(metric: Any) -> None:
    with pytest.raises(DataError, match=r"y_true must be 0 or 1, got 2 at row 1"):
        metric([0, 2], [0.5, 0.5])
    with pytest.raises(DataError, match=r"y_true must be 0 or 1, got nan at row 0"):
        metric([math.nan, 1], [0.5, 0.5])
    with pytest.raises(DataError, match=r"confidence must lie in \[0, 1\], got 1.5 at row 2"):
        metric([0, 1, 1], [0.5, 0.5, 1.5])
    with pytest.raises(DataError, match=r"confidence is nan at row 1"):
        metric([0, 1], [0.5, math.nan])
    with pytest.raises(DataError, match=r"confidence is inf at row 1"):
        metric([0, 1], [0.5, math.inf])
    with pytest.raises(DataError, match="confidence has 1 rows, but 2 were expected"):
        metric([0, 1], [0.5])
    with pytest.raises(DataError, match="y_true is empty"):
        metric([], [])
    with pytest.raises(DataError, match="sample_weight must not be negative, got -1 at row 0"):
        metric([0, 1], [0.5, 0.5], sample_weight=[-1, 1])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bins": 0}, "bins must be at least 1, got 0"),
        ({"bins": 2.5}, "bins must be a whole number"),
        ({"strategy": "equal"}, "unknown strategy 'equal'"),
        ({"norm": 3}, 'norm must be 1, 2 or "max", got 3'),
        ({"norm": [1]}, 'norm must be 1, 2 or "max"'),
        ({"norm": "l1"}, 'norm must be 1, 2 or "max"'),
        ({"norm": "max", "debiased": True}, "debiased=True is defined for norm 1 and 2"),
    ],
)
def test_bad_parameters_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        expected_calibration_error([0, 1], [0.5, 0.5], **options)


def test_bad_class_probabilities_are_named() -> None:
    with pytest.raises(DataError, match="at least two classes, got shape"):
        classwise_calibration_error([0], [[1.0]])
    with pytest.raises(DataError, match=r"probabilities\[:, 1\] must lie in \[0, 1\], got 2 at row 0"):
        classwise_calibration_error([0], [[0.1, 2.0]])
    with pytest.raises(DataError, match="y_true at row 0 is not one of the 2 classes"):
        classwise_calibration_error([5], [[0.1, 0.9]])
    with pytest.raises(ArgumentError, match="classes must name each of the 2 columns"):
        classwise_calibration_error([0], [[0.1, 0.9]], classes=[0, 0])
    with pytest.raises(ArgumentError, match="unknown metric 'brier'"):
        calibration_measure("brier", [0], [0.5])


def test_labels_and_clusters_that_cannot_be_matched_are_refused() -> None:
    with pytest.raises(
        DataError, match="y_true contains numbers and y_pred contains text, so they never match"
    ):
        top_label_calibration_error([1, 2], ["1", "2"], [0.1, 0.2])
    with pytest.raises(DataError, match="y_pred is missing at row 1"):
        top_label_calibration_error([1, 2], np.array([1, None]), [0.1, 0.2])
    with pytest.raises(DataError, match="cluster is missing at row 0"):
        reliability_curve([1, 0], [0.5, 0.5], cluster=[math.nan, 1])
    with pytest.raises(DataError, match="cluster must be all text or all numbers"):
        reliability_curve([1, 0], [0.5, 0.5], cluster=np.array([1, "a"], dtype=object))
    with pytest.raises(DataError, match="probabilities must be a table of numbers"):
        classwise_calibration_error([0, 1], [[0.1, 0.9], [0.5]])


def test_one_class_is_enough() -> None:
    assert expected_calibration_error([1, 1], [1.0, 1.0]) == 0.0
    assert brier_score([0], [0.0]) == 0.0
    assert brier_decomposition([1, 1], [0.5, 0.5]).uncertainty == 0.0


def test_the_arguments_are_not_changed() -> None:
    y, s = np.array([0.0, 1.0]), np.array([0.3, 0.6])
    before = (y.copy(), s.copy())
    for metric in (*SCALARS.values(), reliability_curve):
        metric(y, s)
    np.testing.assert_array_equal(y, before[0])
    np.testing.assert_array_equal(s, before[1])


class TestMulticlassBrier:
    def test_by_hand(self) -> None:
        # 0.3^2 + 0.2^2 + 0.1^2 and 0.5^2 + 0 + 0.5^2.
        assert multiclass_brier_score([0, 2], [[0.7, 0.2, 0.1], [0.5, 0.0, 0.5]]) == pytest.approx(0.32)
        named = multiclass_brier_score(
            ["c", "a"], [[0.7, 0.2, 0.1], [0.5, 0.0, 0.5]], classes=["c", "b", "a"]
        )
        assert named == pytest.approx(0.32)
        assert multiclass_brier_score([0, 1], [[0.9, 0.1], [0.2, 0.8]]) == pytest.approx(
            2 * brier_score([1, 0], [0.9, 0.2])
        )

    def test_it_agrees_with_scikit_learn(self) -> None:
        pytest.importorskip("sklearn", minversion="1.7", reason="older versions support only two classes")
        rng = np.random.default_rng(4)
        truth, scores = rng.integers(0, 4, 300), rng.dirichlet(np.ones(4), 300)
        weight = rng.integers(1, 4, 300)
        expected = brier_score_loss(truth, scores, sample_weight=weight, labels=range(4), scale_by_half=False)
        assert multiclass_brier_score(truth, scores, sample_weight=weight) == pytest.approx(expected)

    def test_its_statistic_over_clusters(self) -> None:
        measure = calibration_measure(
            "multiclass_brier_score", [0, 1], [[0.9, 0.1], [0.2, 0.8]], cluster=["a", "b"]
        )
        assert measure(np.array([[1.0, 1.0], [0.0, 3.0]])).ravel() == pytest.approx([0.05, 0.08])

    def test_a_weight_is_a_repetition(self) -> None:
        weighted = multiclass_brier_score([0, 1], [[0.9, 0.1], [0.2, 0.8]], sample_weight=[0, 3])
        assert weighted == pytest.approx(0.08)

    def test_probabilities_add_up_to_1(self) -> None:
        with pytest.raises(
            DataError, match=r"probabilities at row 1 add up to 0\.9 \(1 such rows\).*must add up to 1"
        ):
            multiclass_brier_score([0, 1], [[0.5, 0.5], [0.5, 0.4]])
        singles = np.float32(np.random.default_rng(1).dirichlet(np.ones(50), 20))
        assert multiclass_brier_score(np.zeros(20, int), singles) > 0.0
