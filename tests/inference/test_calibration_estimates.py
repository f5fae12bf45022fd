"""Calibration metrics with intervals: the same as resampling rows by hand, and errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from abstain.errors import ArgumentError, DataError
from abstain.inference import BootstrapWeights
from abstain.inference.calibration import calibration_estimates
from abstain.metrics import calibration


def sample() -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(0)
    s = rng.random(120).round(2)
    return (rng.random(120) < s).astype(int), s, np.repeat(np.arange(15), 8)


@pytest.mark.parametrize("strategy", ["uniform", "quantile"])
def test_intervals_are_those_of_copied_rows(strategy: str) -> None:
    y, s, clusters = sample()
    names = (
        "expected_calibration_error",
        "smooth_calibration_error",
        "brier_score",
        "negative_log_likelihood",
    )
    found = calibration_estimates(
        y,
        s,
        cluster=clusters,
        metrics=names,
        strategy=strategy,
        bins=6,
        interval="percentile",
        resamples=40,
        seed=7,
    )
    draws = np.concatenate([batch.weights for batch in BootstrapWeights(15, 40, 7).batches(1)])
    for name in names:
        options = {"strategy": strategy, "bins": 6} if name.startswith("expected") else {}
        values = []
        for weights in draws:
            rows = np.repeat(np.arange(120), weights[clusters].astype(int))
            values.append(getattr(calibration, name)(y[rows], s[rows], **options))
        estimate = found[name]
        assert estimate.value == pytest.approx(getattr(calibration, name)(y, s, **options))
        assert estimate.interval == pytest.approx(tuple(np.quantile(values, [0.025, 0.975])), abs=1e-8)
        assert (estimate.clusters, estimate.resamples, estimate.n) == (15, 40, 120)


def test_an_interval_that_misses_its_value_has_a_reason() -> None:
    # Perfectly calibrated in its bins, so that no resample can be better.
    y, s = np.tile([1, 0], 50), np.full(100, 0.5)
    estimate = calibration_estimates(y, s, interval="percentile", resamples=200)["expected_calibration_error"]
    assert estimate.value == 0.0
    many = calibration_estimates(
        np.tile([1, 0], 100),
        np.repeat(np.linspace(0.02, 0.98, 20), 10),
        bins=20,
        interval="percentile",
        resamples=200,
        norm="max",
    )["expected_calibration_error"]
    assert bool(many.reason) == (not many.low <= many.value <= many.high)


def test_without_an_interval_the_value_is_the_same() -> None:
    y, s, _ = sample()
    estimate = calibration_estimates(y, s, interval="none")["brier_score"]
    assert estimate.interval is None
    assert estimate.value == pytest.approx(calibration.brier_score(y, s))


def test_invalid_arguments_are_errors() -> None:
    with pytest.raises(ArgumentError, match="unknown metric 'brier'.*did you mean 'brier_score'"):
        calibration_estimates([1, 0], [0.5, 0.6], metrics=["brier"])
    with pytest.raises(ArgumentError, match="metrics is empty"):
        calibration_estimates([1, 0], [0.5, 0.6], metrics=[])
    with pytest.raises(DataError, match="cluster has 1 rows, but 2 were expected"):
        calibration_estimates([1, 0], [0.5, 0.6], cluster=[1])
    with pytest.raises(DataError, match="y_true is empty"):
        calibration_estimates([], [])
