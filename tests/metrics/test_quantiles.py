"""Predictive quantiles: pinball loss and the histogram of the probability integral transform."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from sklearn.metrics import mean_pinball_loss

from abstain.errors import ArgumentError, DataError
from abstain.metrics.quantiles import pinball_loss, pit_histogram

if TYPE_CHECKING:
    from collections.abc import Callable


def test_pinball_loss_agrees_with_scikit_learn() -> None:
    rng = np.random.default_rng(0)
    truth, prediction, weight = rng.normal(size=50), rng.normal(size=50), rng.integers(0, 3, 50)
    for proportion in (0.05, 0.5, 0.9):
        expected = mean_pinball_loss(truth, prediction, alpha=proportion, sample_weight=weight)
        assert pinball_loss(
            truth, prediction, probabilities=proportion, sample_weight=weight
        ) == pytest.approx(expected)


def test_pit_by_hand() -> None:
    # Below the first quantile, equal to it, between two, above the last; then a truth that equals all three.
    histogram = pit_histogram([0, 1, 1.5, 9], [[1, 2, 3]] * 4, probabilities=[0.1, 0.5, 0.9])
    assert histogram.counts.tolist() == [2, 1, 0, 1]
    assert histogram.proportion.tolist() == [0.5, 0.25, 0.0, 0.25]
    assert histogram.density.tolist() == pytest.approx([5.0, 0.625, 0.0, 2.5])
    assert histogram.edges.tolist() == [0.0, 0.1, 0.5, 0.9, 1.0]
    tied = pit_histogram([4], [[4, 4, 4]], probabilities=[0.1, 0.2, 0.5])
    assert tied.proportion.tolist() == pytest.approx([0.0, 0.25, 0.75, 0.0])


def test_a_calibrated_forecast_has_density_one() -> None:
    truth = (np.arange(1000) + 0.5) / 1000
    histogram = pit_histogram(truth, np.tile([0.2, 0.5, 0.7], (1000, 1)), probabilities=[0.2, 0.5, 0.7])
    assert histogram.density.tolist() == pytest.approx([1.0] * 4)


def test_infinite_quantiles_are_allowed() -> None:
    losses = np.asarray(pinball_loss([0], [[-np.inf, 1.0]], probabilities=[0.1, 0.9]))
    assert losses.tolist() == [np.inf, pytest.approx(0.1)]
    assert pit_histogram([0], [[-np.inf, np.inf]], probabilities=[0.1, 0.9]).counts.tolist() == [0, 1, 0]


def test_weights_are_repetitions() -> None:
    rng = np.random.default_rng(1)
    truth, quantiles = rng.normal(size=20), np.sort(rng.normal(size=(20, 3)), axis=1)
    weight = rng.integers(0, 3, 20)
    kept = pit_histogram(truth, quantiles, probabilities=[0.2, 0.5, 0.8], sample_weight=weight)
    copied = pit_histogram(
        np.repeat(truth, weight), np.repeat(quantiles, weight, axis=0), probabilities=[0.2, 0.5, 0.8]
    )
    assert kept.counts.tolist() == copied.counts.tolist()
    assert kept.proportion == pytest.approx(copied.proportion)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: pinball_loss([1], [1], probabilities=95), ArgumentError, "did you mean 0.95"),
        (lambda: pinball_loss([1], [[1, 2]], probabilities=[0.9, 0.1]), ArgumentError, "must ascend"),
        (lambda: pinball_loss([1], [[1, 2]], probabilities=0.5), DataError, r"shape \(rows, 1\)"),
        (
            lambda: pinball_loss([1], [[2, 1]], probabilities=[0.1, 0.9]),
            DataError,
            "quantiles descend at row 0",
        ),
        (lambda: pinball_loss([1], [np.nan], probabilities=0.5), DataError, "quantiles is nan at row 0"),
        (lambda: pinball_loss([1, 2], [1], probabilities=0.5), DataError, "y_true has 2 rows, but 1"),
        (lambda: pinball_loss([], [], probabilities=0.5), DataError, "y_true is empty"),
        (lambda: pit_histogram([1], [1], probabilities=0.5), ArgumentError, "must be a sequence"),  # type: ignore[arg-type]
    ],
)
def test_wrong_calls_are_refused(call: Callable[[], object], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()
