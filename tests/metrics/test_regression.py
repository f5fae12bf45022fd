"""Regression with abstentions: by hand, and compared with scikit-learn and scipy on the answered rows."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats
from sklearn import metrics as sklearn

from abstain.errors import DataError
from abstain.metrics import regression


@pytest.mark.parametrize("seed", range(20))
def test_regression_agrees_with_scikit_learn_and_scipy(seed: int) -> None:
    rng = np.random.default_rng(seed)
    truth = 1e4 + rng.normal(size=50)
    prediction = truth + rng.normal(size=50)
    abstained = rng.random(50) < 0.4
    kept, rows = ~abstained, {"abstained": abstained}
    pair = (truth[kept], prediction[kept])
    assert regression.mean_absolute_error(truth, prediction, **rows) == pytest.approx(
        sklearn.mean_absolute_error(*pair)
    )
    assert regression.root_mean_squared_error(truth, prediction, **rows) == pytest.approx(
        sklearn.root_mean_squared_error(*pair)
    )
    assert regression.pearson_r(truth, prediction, **rows) == pytest.approx(stats.pearsonr(*pair).statistic)


def test_scores_by_hand_include_the_coverage() -> None:
    near = regression.regression_scores([3, 0, 2, 1], [1, 0, 2, None], abstained=[0, 0, 0, 1])
    assert near.coverage == 0.75
    assert near.mean_absolute_error == pytest.approx(2 / 3)
    assert near.root_mean_squared_error == pytest.approx(math.sqrt(4 / 3))
    # Truths 3, 0, 2 (mean 5/3) and answers 1, 0, 2 (mean 1): 2 / sqrt(14/3 * 2).
    assert near.pearson_r == pytest.approx(2 / math.sqrt(28 / 3))


def test_undefined_is_nan() -> None:
    nothing = {"abstained": [True, True]}
    assert math.isnan(regression.mean_absolute_error([1, 0], [None, None], **nothing))
    assert math.isnan(regression.pearson_r([1, 1], [0, 1]))


class TestBadInput:
    def test_text_is_refused(self) -> None:
        with pytest.raises(DataError, match="y_pred must be numbers, got text at row 1"):
            regression.mean_absolute_error([1, 2], [1, "two"])

    def test_text_of_a_declined_row_does_not_matter(self) -> None:
        assert regression.mean_absolute_error([1, 2], [1, "no idea"], abstained=[False, True]) == 0.0

    def test_the_answer_none_is_refused(self) -> None:
        with pytest.raises(DataError, match="y_pred is nan at row 1"):
            regression.mean_absolute_error([1, 2], [1, None])
