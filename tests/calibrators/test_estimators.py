"""Calibrators on arrays: by hand, invariants, agreement with scikit-learn, and invalid input."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import log_loss

from abstain.calibrators import (
    CALIBRATORS,
    BetaCalibrator,
    HistogramBinningCalibrator,
    IsotonicCalibrator,
    LinearCalibrator,
    LogisticCalibrator,
    PlattCalibrator,
    TemperatureScalingCalibrator,
    VennAbersCalibrator,
)
from abstain.calibrators._models import LinearModel, Scaler, TemperatureModel, logit, sigmoid
from abstain.errors import ArgumentError, DataError
from abstain.metrics.calibration import expected_calibration_error, negative_log_likelihood

ALL = list(CALIBRATORS.values())


def sample(n: int = 400, seed: int = 0, digits: int | None = None) -> tuple[Any, Any]:
    """Return overconfident scores: the true probability is closer to 0.5 than the score."""
    rng = np.random.default_rng(seed)
    stated = rng.beta(2, 1, n)
    if digits is not None:
        stated = stated.round(digits)
    came_true = (rng.random(n) < sigmoid(logit(stated) / 2.5 - 0.3)).astype(int)
    return stated, came_true


# By hand


def test_a_temperature_of_one_is_the_identity() -> None:
    stated = [0.25] * 4 + [0.75] * 4
    fitted = TemperatureScalingCalibrator().fit(stated, [1, 0, 0, 0, 1, 1, 1, 0])
    assert fitted.predict([0.25, 0.9]) == pytest.approx([0.25, 0.9])


def test_the_temperature_stays_within_its_range() -> None:
    stated = [0.1, 0.9]
    sharpest = TemperatureScalingCalibrator().fit(stated, [0, 1])
    assert sharpest.model.temperature == 0.05  # type: ignore[attr-defined]
    flattest = TemperatureScalingCalibrator().fit(stated, [1, 0])
    assert flattest.model.temperature == 10.0  # type: ignore[attr-defined]


def test_temperature_scaling_accepts_confidences_of_0_and_1() -> None:
    fitted = TemperatureScalingCalibrator().fit([0.0, 1.0, 1.0, 0.5], [0, 1, 0, 1])
    assert np.isfinite(fitted.predict([0.0, 1.0])).all()


def test_the_temperature_minimizes_the_negative_log_likelihood() -> None:
    stated, came_true = sample()
    fitted = TemperatureScalingCalibrator().fit(stated, came_true)
    best = minimize_scalar(
        lambda t: log_loss(came_true, sigmoid(logit(stated) / t)), bounds=(0.05, 10), method="bounded"
    )
    assert fitted.model.temperature == pytest.approx(best.x, rel=1e-3)  # type: ignore[attr-defined]


def test_isotonic_is_constant_outside_and_linear_inside() -> None:
    fitted = IsotonicCalibrator().fit([1, 2, 3], [0, 0.5, 1])
    assert fitted.predict([-5, 1.5, 2.25, 9]).tolist() == [0, 0.25, 0.625, 1]


def test_histogram_binning_keeps_ties_together_and_drops_empty_bins() -> None:
    fitted = HistogramBinningCalibrator(bins=4).fit([1, 1, 1, 1, 1, 2, 3, 3], [0, 0, 0, 0, 1, 1, 1, 0])
    # More than half of the rows are at or below 1, and three quarters at or below 2: the only inner edge is 3.
    assert fitted.predict([0, 1, 2, 2.9, 3, 7]) == pytest.approx([1 / 3] * 4 + [1 / 2] * 2)


def test_linear_is_clipped_and_accepts_a_constant_feature() -> None:
    fitted = LinearCalibrator().fit([[1, 7], [2, 7], [3, 7]], [0.0, 0.5, 1.0])
    assert fitted.predict([[-50, 7], [2, 7], [50, 7]]) == pytest.approx([0, 0.5, 1])


@pytest.mark.parametrize("seed", range(4))
def test_venn_abers_agrees_with_two_isotonic_fits_per_row(seed: int) -> None:
    rng = np.random.default_rng(seed)
    score, outcome = rng.integers(0, 12, 40) / 12, rng.integers(0, 2, 40)
    fitted = VennAbersCalibrator().fit(score, outcome)
    requested = np.concatenate([np.unique(score), rng.random(20), [-1.0, 2.0]])
    lower, upper = fitted.predict_interval(requested)
    for row, value in enumerate(requested):
        for label, actual in ((0, lower[row]), (1, upper[row])):
            slow = IsotonicRegression().fit(np.append(score, value), np.append(outcome, label))
            assert actual == pytest.approx(slow.predict([value])[0], abs=1e-12)
    assert fitted.predict(requested) == pytest.approx(upper / (1 - lower + upper))
    assert (lower <= upper).all()


# Invariants


@pytest.mark.parametrize("estimator", ALL)
def test_predictions_are_probabilities_and_rise_with_the_feature(estimator: Any) -> None:
    fitted = estimator().fit(*sample(digits=2))
    predicted = fitted.predict(np.linspace(0, 1, 101))
    assert ((predicted >= 0) & (predicted <= 1)).all()
    if estimator is not HistogramBinningCalibrator:
        assert (np.diff(predicted) >= -1e-9).all()


@pytest.mark.parametrize("estimator", ALL)
def test_row_order_does_not_matter_and_weights_are_repetitions(estimator: Any) -> None:
    stated, came_true = sample(120, digits=1)
    rng = np.random.default_rng(1)
    order, weights = rng.permutation(120), rng.integers(0, 4, 120)
    grid = np.linspace(0, 1, 31)
    plain = estimator().fit(stated, came_true).predict(grid)
    assert estimator().fit(stated[order], came_true[order]).predict(grid) == pytest.approx(plain, abs=1e-4)
    weighed = estimator().fit(stated, came_true, weights=weights).predict(grid)
    repeated = estimator().fit(np.repeat(stated, weights), np.repeat(came_true, weights)).predict(grid)
    assert weighed == pytest.approx(repeated, abs=1e-4)


@pytest.mark.parametrize("estimator", ALL)
def test_calibration_reduces_calibration_error_and_log_loss(estimator: Any) -> None:
    stated, came_true = sample(2000)
    fresh, fresh_true = sample(2000, seed=1)
    calibrated = estimator().fit(stated, came_true).predict(fresh)
    assert expected_calibration_error(fresh_true, calibrated) < expected_calibration_error(fresh_true, fresh)
    assert negative_log_likelihood(fresh_true, calibrated) < negative_log_likelihood(fresh_true, fresh)


@pytest.mark.parametrize("estimator", ALL)
def test_a_fitted_calibrator_cannot_be_changed(estimator: Any) -> None:
    fitted = estimator().fit(*sample(100))
    with pytest.raises(ArgumentError, match="is already fitted; create a new one"):
        fitted.fit(*sample(100, seed=2))
    with pytest.raises(AttributeError, match="is fitted and cannot be changed"):
        fitted.bins = 3
    with pytest.raises(AttributeError, match="is fitted and cannot be changed"):
        del fitted.bins
    with pytest.raises(AttributeError, match="immutable"):
        fitted.model.anything = 1
    assert "not fitted" not in repr(fitted)
    same = estimator.from_model(fitted.model)
    np.testing.assert_array_equal(same.predict([0.3, 0.6]), fitted.predict([0.3, 0.6]))


def test_fit_returns_itself_as_in_scikit_learn() -> None:
    calibrator = PlattCalibrator()
    assert calibrator.fit([1, 2, 3, 4], [0, 1, 0, 1]) is calibrator
    assert calibrator.fitted


# Agreement with scikit-learn


def test_logistic_agrees_with_scikit_learn() -> None:
    rng = np.random.default_rng(3)
    features, target = rng.normal(2, 3, (200, 3)), rng.integers(0, 2, 200)
    standard = (features - features.mean(axis=0)) / features.std(axis=0)
    theirs = LogisticRegression().fit(standard, target).predict_proba(standard)[:, 1]
    np.testing.assert_allclose(
        LogisticCalibrator().fit(features, target).predict(features), theirs, atol=1e-12
    )


def test_linear_agrees_with_scikit_learn() -> None:
    rng = np.random.default_rng(4)
    features, target = rng.normal(2, 3, (200, 2)), rng.random(200)
    standard = (features - features.mean(axis=0)) / features.std(axis=0)
    theirs = np.clip(Ridge().fit(standard, target).predict(standard), 0, 1)
    np.testing.assert_allclose(LinearCalibrator().fit(features, target).predict(features), theirs, atol=1e-12)


def test_isotonic_agrees_with_scikit_learn() -> None:
    stated, came_true = sample(300, digits=2)
    theirs = IsotonicRegression(out_of_bounds="clip").fit(stated, came_true)
    grid = np.linspace(-0.5, 1.5, 301)
    np.testing.assert_allclose(
        IsotonicCalibrator().fit(stated, came_true).predict(grid), theirs.predict(grid), atol=1e-12
    )


def test_beta_without_active_bounds_agrees_with_unpenalized_logistic_regression() -> None:
    stated, came_true = sample(2000)
    model = BetaCalibrator().fit(stated, came_true).model
    columns = np.stack([np.log(stated), -np.log1p(-stated)], axis=1)
    theirs = LogisticRegression(C=np.inf, tol=1e-10, max_iter=10_000).fit(columns, came_true)
    assert [model.a, model.b, model.c] == pytest.approx(  # type: ignore[attr-defined]
        [*theirs.coef_[0], theirs.intercept_[0]], abs=1e-3
    )


def test_beta_is_never_decreasing_even_if_the_data_are() -> None:
    rng = np.random.default_rng(5)
    stated = rng.random(300)
    model = BetaCalibrator().fit(stated, rng.random(300) > stated).model
    assert (model.a, model.b) == (0.0, 0.0)  # type: ignore[attr-defined]


# Bad input


@pytest.mark.parametrize("estimator", ALL)
def test_bad_rows_are_refused(estimator: Any) -> None:
    with pytest.raises(DataError, match=r"features is nan at row 1"):
        estimator().fit([0.1, math.nan], [0, 1])
    with pytest.raises(DataError, match="target"):
        estimator().fit([0.1, 0.2], [0, 7])
    with pytest.raises(DataError, match="target has 3 rows, but 2 were expected"):
        estimator().fit([0.1, 0.2], [0, 1, 1])
    with pytest.raises(DataError, match="target is empty"):
        estimator().fit([], [])
    with pytest.raises(DataError, match="one or two dimensions"):
        estimator().fit(np.zeros((2, 2, 2)), [0, 1])
    with pytest.raises(ArgumentError, match="is not fitted; call fit first"):
        estimator().predict([0.5])


@pytest.mark.parametrize("estimator", [e for e in ALL if e.binary_target])
def test_one_class_is_refused(estimator: Any) -> None:
    with pytest.raises(DataError, match="target is 1 for all 2 rows"):
        estimator().fit([0.1, 0.2], [1, 1])


@pytest.mark.parametrize("estimator", [e for e in ALL if e.one_feature])
def test_calibrators_of_one_feature_refuse_two(estimator: Any) -> None:
    with pytest.raises(ArgumentError, match="takes one feature, got 2"):
        estimator().fit([[0.1, 0.2], [0.3, 0.4]], [0, 1])


@pytest.mark.parametrize("estimator", [TemperatureScalingCalibrator, BetaCalibrator])
def test_features_outside_the_unit_interval_are_refused(estimator: Any) -> None:
    with pytest.raises(DataError, match=r"must lie in \[0, 1\], got 4 at row 1"):
        estimator().fit([0.5, 4], [0, 1])
    with pytest.raises(DataError, match=r"must lie in \[0, 1\], got -1 at row 0"):
        estimator().fit([0.5, 0.4, 0.6, 0.3], [0, 1, 1, 0]).predict([-1])


@pytest.mark.parametrize("estimator", ALL)
def test_extremely_large_features_are_refused(estimator: Any) -> None:
    with pytest.raises(DataError, match=r"features must be at most 1e\+100 in absolute value|must lie in"):
        estimator().fit([1e308, -1e308, 0.5], [0, 1, 1])


def test_the_number_of_features_must_be_that_of_the_fit() -> None:
    fitted = LogisticCalibrator().fit([[1, 2], [2, 1], [3, 1]], [0, 1, 1])
    with pytest.raises(ArgumentError, match="takes 2 features, got 3"):
        fitted.predict([[1, 2, 3]])
    assert fitted.predict(np.empty((0, 2))).shape == (0,)


def test_an_overflowing_prediction_is_an_error() -> None:
    scaler = Scaler(mean=(0.0,), std=(1e-300,))
    model = LinearModel(coefficients=(0.0,), intercept=0.0, link="sigmoid", scaler=scaler)
    with pytest.raises(DataError, match="the prediction is nan at row 0"):
        LogisticCalibrator.from_model(model).predict([1e9])
    sharp = TemperatureScalingCalibrator.from_model(TemperatureModel(temperature=1e-308))
    assert sharp.predict([0.2, 0.5, 0.9]).tolist() == [0.0, 0.5, 1.0]
