"""Accuracy with abstentions: by hand, and compared with scikit-learn on the answered rows."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from sklearn import metrics as sklearn

from abstain.errors import DataError
from abstain.metrics import answers


def test_an_abstention_is_wrong_even_if_the_stored_prediction_is_right() -> None:
    rows: dict[str, Any] = {"abstained": [False, False, False, True]}
    assert answers.accuracy([1, 0, 1, 1], [1, 1, 1, 1], **rows) == 0.5
    neutral = answers.accuracy([1, 0, 1, 1], [1, 1, 1, 1], **rows, treat_abstention_as_neutral=True)
    assert neutral == pytest.approx(2 / 3)


def test_balanced_accuracy_by_hand() -> None:
    # Class 1: two of three are hits, one is declined. Class 0: one hit, and the answer None is a miss.
    truth, prediction = [1, 1, 1, 0, 0], [1, 1, 1, None, 0]
    actual = answers.balanced_accuracy(truth, prediction, abstained=[False, False, True, False, False])
    assert actual == pytest.approx((2 / 3 + 1 / 2) / 2)
    assert math.isnan(answers.balanced_accuracy([1, 1], [1, 0]))


def test_labels_match_across_spellings() -> None:
    assert answers.accuracy(["1", "2"], [1, 2]) == 1.0
    assert answers.accuracy([" Stable", "WORSE"], ["stable", "worse "]) == 1.0


@pytest.mark.parametrize("seed", range(20))
def test_classification_agrees_with_scikit_learn_on_the_answered_rows(seed: int) -> None:
    rng = np.random.default_rng(seed)
    size = 60
    truth, prediction = rng.integers(0, 3, size), rng.integers(0, 3, size)
    abstained, score = rng.random(size) < 0.3, rng.integers(0, 8, size) / 7
    kept = ~abstained
    rows: dict[str, Any] = {"abstained": abstained}
    binary, said = truth[kept] == 1, prediction[kept] == 1
    assert answers.precision(truth, prediction, **rows) == pytest.approx(
        sklearn.precision_score(binary, said)
    )
    assert answers.recall(truth, prediction, **rows) == pytest.approx(sklearn.recall_score(binary, said))
    assert answers.f1(truth, prediction, **rows) == pytest.approx(sklearn.f1_score(binary, said))
    assert answers.macro_f1(truth, prediction, **rows) == pytest.approx(
        sklearn.f1_score(truth[kept], prediction[kept], average="macro")
    )
    assert answers.auroc(truth == 1, score, **rows) == pytest.approx(
        sklearn.roc_auc_score(binary, score[kept])
    )
    right = truth[kept] == prediction[kept]
    assert answers.correctness_auroc(truth, prediction, score, **rows) == pytest.approx(
        sklearn.roc_auc_score(right, score[kept])
    )
    assert answers.balanced_accuracy(truth[kept], prediction[kept]) == pytest.approx(
        sklearn.balanced_accuracy_score(truth[kept], prediction[kept])
    )


def test_weighted_scores_agree_with_scikit_learn() -> None:
    rng = np.random.default_rng(3)
    truth, prediction, weight = rng.integers(0, 2, 80), rng.integers(0, 2, 80), rng.random(80)
    assert answers.accuracy(truth, prediction, sample_weight=weight) == pytest.approx(
        sklearn.accuracy_score(truth, prediction, sample_weight=weight)
    )
    assert answers.balanced_accuracy(truth, prediction, sample_weight=weight) == pytest.approx(
        sklearn.balanced_accuracy_score(truth, prediction, sample_weight=weight)
    )
    score = rng.integers(0, 5, 80)
    assert answers.auroc(truth, score, sample_weight=weight) == pytest.approx(
        sklearn.roc_auc_score(truth, score, sample_weight=weight)
    )


def test_scores_include_the_coverage() -> None:
    actual = answers.classification_scores([1, 0, 1, 1], [1, 1, 1, None], abstained=[0, 0, 0, 1])
    assert (actual.coverage, actual.n, actual.accuracy) == (0.75, 4.0, 0.5)
    assert actual.precision == pytest.approx(2 / 3)


def test_undefined_is_nan() -> None:
    nothing: dict[str, Any] = {"abstained": [True, True]}
    for metric in (answers.precision, answers.recall, answers.f1, answers.macro_f1):
        assert math.isnan(metric([1, 0], [None, None], **nothing))
    assert math.isnan(answers.auroc([1, 1], [0.5, 0.6]))


def test_many_classes_need_little_memory() -> None:
    truth = np.arange(200_000) % 100_000
    assert answers.balanced_accuracy(truth, truth) == 1.0
    assert answers.macro_f1(truth, truth) == 1.0


class TestBadInput:
    def test_mixed_label_types(self) -> None:
        with pytest.raises(
            DataError, match="y_true has mixed label types: a number at row 0 and text at row 2"
        ):
            answers.accuracy([1, 2, "stable"], [1, 2, "stable"])

    def test_a_label_that_is_a_list(self) -> None:
        with pytest.raises(DataError, match="y_pred is a list at row 1; a label must be a number or text"):
            answers.accuracy([1, 2], [1, [2]])

    def test_an_auroc_needs_zeros_and_ones(self) -> None:
        with pytest.raises(DataError, match="y_true must be 0 or 1, and is not at row 1"):
            answers.auroc([1, 2], [0.1, 0.2])

    def test_errors_of_an_auroc_name_the_score(self) -> None:
        with pytest.raises(DataError, match="score must hold numbers"):
            answers.auroc([1, 0], ["a", "b"])
        with pytest.raises(DataError, match="score has 1 rows, but 2 were expected"):
            answers.auroc([1, 0], [0.1])

    def test_two_dimensions(self) -> None:
        with pytest.raises(DataError, match=r"y_true must have one dimension, got shape \(1, 2\)"):
            answers.accuracy(np.ones((1, 2)), [1, 2])
