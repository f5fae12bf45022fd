"""MAPIE's names: the same signatures, and the same values if its definitions agree with ours."""

from __future__ import annotations

import inspect
import math

import mapie.metrics as theirs
import numpy as np
import pytest
from mapie.metrics import calibration as peer

from abstain.compat import mapie as ours
from abstain.errors import ArgumentError

MODULES = (theirs.calibration, theirs.regression, theirs.classification)


def sample(seed: int, rows: int = 120) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    scores = rng.random(rows)
    return (rng.random(rows) < scores).astype(int), scores


@pytest.mark.parametrize("name", ours.__all__)
def test_arguments_have_the_names_and_the_order_of_mapie(name: str) -> None:
    other = next(getattr(module, name) for module in MODULES if hasattr(module, name))
    mine, its = (inspect.signature(function).parameters.values() for function in (getattr(ours, name), other))
    assert [(p.name, p.default, p.kind) for p in mine] == [(p.name, p.default, p.kind) for p in its]


@pytest.mark.parametrize("seed", range(5))
def test_tests_of_calibration_agree(seed: int) -> None:
    y, s = sample(seed)
    for name in ("kolmogorov_smirnov_statistic", "kolmogorov_smirnov_p_value"):
        assert getattr(ours, name)(y, s) == pytest.approx(getattr(peer, name)(y, s), abs=1e-6)
    for name in ("spiegelhalter_statistic", "spiegelhalter_p_value"):
        assert getattr(ours, name)(y, s) == pytest.approx(getattr(peer, name)(y, s), abs=1e-12)
    # MAPIE's range does not include the start, so it is at most ours.
    assert ours.kuiper_statistic(y, s) >= peer.kuiper_statistic(y, s) - 1e-6
    assert ours.kuiper_p_value(y, s) <= peer.kuiper_p_value(y, s) + 1e-6
    for x in (0.5, 1.0, 2.5):
        assert ours.kolmogorov_smirnov_cdf(x) == pytest.approx(peer.kolmogorov_smirnov_cdf(x), abs=1e-9)
        assert ours.kuiper_cdf(x) == pytest.approx(peer.kuiper_cdf(x), abs=1e-9)


def test_errors_agree_if_mapie_has_one_bin_more() -> None:
    y, s = sample(1)
    assert ours.expected_calibration_error(y, s, num_bins=15) == pytest.approx(
        peer.expected_calibration_error(y, s, num_bins=16)
    )
    rng = np.random.default_rng(2)
    matrix, labels = rng.dirichlet([1, 1, 2], 200), rng.integers(0, 3, 200)
    right = (matrix.argmax(axis=1) == labels).astype(int)
    assert ours.expected_calibration_error(right, matrix, 15) == pytest.approx(
        peer.expected_calibration_error(right, matrix, 16)
    )
    assert ours.expected_calibration_error(right, matrix, 15, None, True, labels) == pytest.approx(
        peer.expected_calibration_error(right, matrix, 16, None, True, labels)
    )
    assert ours.top_label_ece(labels, matrix, num_bins=10) == pytest.approx(
        peer.top_label_ece(labels, matrix, num_bins=11)
    )
    top = (matrix.max(axis=1), matrix.argmax(axis=1))
    assert ours.top_label_ece(labels, *top, num_bins=10) == ours.top_label_ece(labels, matrix, num_bins=10)
    names = np.array(["a", "b", "c"])
    assert ours.top_label_ece(names[labels], matrix, num_bins=10, classes=names) == pytest.approx(
        peer.top_label_ece(labels, matrix, num_bins=11)
    )


@pytest.mark.parametrize("seed", range(6))
def test_intervals_agree(seed: int) -> None:
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=40)
    low = truth[:, None] + rng.normal(-1.0, 1.0, (40, 3))
    bounds = np.stack([low, low + rng.exponential(2.0, (40, 3))], axis=1)
    for name in ("regression_coverage_score", "regression_ssc", "regression_ssc_score"):
        actual, expected = (getattr(module, name)(truth, bounds) for module in (ours, theirs.regression))
        assert actual.shape == expected.shape
        assert actual == pytest.approx(expected, rel=1e-12)
    assert ours.regression_ssc(truth, bounds[:, :, 0], num_bins=2) == pytest.approx(
        theirs.regression.regression_ssc(truth, bounds[:, :, 0], num_bins=2)
    )
    assert ours.regression_mean_width_score(bounds) == pytest.approx(
        theirs.regression.regression_mean_width_score(bounds)
    )
    assert ours.hsic(truth, bounds, np.array([1.5, 0.5])) == pytest.approx(
        theirs.regression.hsic(truth, bounds, np.array([1.5, 0.5])), abs=1e-7
    )
    first = bounds[:, :, :1]
    assert ours.regression_mwi_score(truth, first, 0.8) == pytest.approx(
        theirs.regression.regression_mwi_score(truth, first, 0.8)
    )
    crossed = first[:, ::-1]
    assert ours.regression_mwi_score(truth, crossed, 0.8) == ours.regression_mwi_score(truth, first, 0.8)
    arguments = (truth, first[:, 0, 0], first[:, 1, 0], 3.0, 0.8)
    assert ours.coverage_width_based(*arguments) == pytest.approx(
        theirs.regression.coverage_width_based(*arguments)
    )


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.filterwarnings("ignore:Mean of empty slice:RuntimeWarning")
@pytest.mark.filterwarnings("ignore:invalid value encountered in divide:RuntimeWarning")
def test_sets_agree(seed: int) -> None:
    rng = np.random.default_rng(seed)
    truth, members = rng.integers(0, 5, 60), rng.random((60, 5, 2)) < 0.5
    for name in ("classification_coverage_score", "classification_ssc", "classification_ssc_score"):
        actual, expected = (getattr(module, name)(truth, members) for module in (ours, theirs.classification))
        assert actual.shape == expected.shape
        assert actual == pytest.approx(expected, nan_ok=True)
    assert ours.classification_ssc(truth, members, 2) == pytest.approx(
        theirs.classification.classification_ssc(truth, members, 2), nan_ok=True
    )
    assert ours.classification_mean_width_score(members) == pytest.approx(
        theirs.classification.classification_mean_width_score(members)
    )


def test_an_array_split_does_not_depend_on_the_row_order() -> None:
    y, s = sample(3)
    order = np.random.default_rng(4).permutation(len(y))
    actual = [
        ours.expected_calibration_error(y[rows], s[rows], 10, "array split") for rows in (slice(None), order)
    ]
    assert actual[0] == pytest.approx(actual[1], abs=1e-15)
    assert actual[0] == ours.expected_calibration_error(y, s, 10, "quantile")


def test_a_statistic_without_variance_is_nan() -> None:
    assert math.isnan(ours.kuiper_statistic([1, 0], [1.0, 0.0]))
    assert math.isnan(ours.spiegelhalter_p_value([1, 0], [0.5, 0.5]))


def test_bad_arguments() -> None:
    with pytest.raises(ArgumentError, match="unknown split_strategy 'unifrom' .did you mean 'uniform'"):
        ours.expected_calibration_error([1, 0], [0.4, 0.5], split_strategy="unifrom")
    with pytest.raises(ArgumentError, match="class_labels, the true class of every row, is required"):
        ours.expected_calibration_error([1, 0], [[0.4, 0.6], [0.5, 0.5]], classwise=True)
    with pytest.raises(ArgumentError, match="confidence_level must fulfil 0 < confidence_level < 1, got 90"):
        ours.regression_mwi_score([1], [[[0], [2]]], 90)
    with pytest.raises(ArgumentError, match=r"y_pis must have the shape \(rows, 2, 1\), got \(1, 2, 2\)"):
        ours.regression_mwi_score([1], [[[0, 0], [2, 2]]], 0.9)
