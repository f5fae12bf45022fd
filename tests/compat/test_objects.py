"""Features of metric objects that krisis does not have: groups by any key, unscored rows, bad input."""

from __future__ import annotations

import math
from typing import Any

import pytest

from abstain import metrics
from abstain.errors import ArgumentError, DataError
from abstain.metrics import BaseMetric, EvaluationResult, MetricScore, default_benchmark_metrics

ROWS = [
    EvaluationResult(1, 1, confidence=0.9, metadata={"sex": "F", "ckd_stage": 1}),
    EvaluationResult(0, 1, confidence=0.6, metadata={"sex": "F", "ckd_stage": 2}),
    EvaluationResult(None, 0, abstained=True, metadata={"sex": "M"}),
    EvaluationResult(0, 0, confidence=0.7, metadata={"sex": "M", "ckd_stage": 2}),
]


def test_the_default_benchmark_has_these_scores() -> None:
    scores = [metric(ROWS) for metric in default_benchmark_metrics()]
    assert [score.name for score in scores] == [
        "accuracy",
        "balanced_accuracy",
        "expected_calibration_error",
        "brier_score",
        "answer_rate",
        "selective_accuracy",
        "abstention_rate",
        "deferral_alignment",
    ]
    assert scores[0].value == 0.5
    assert scores[7].reason == "no_should_abstain_metadata"


def test_breakdowns_by_any_key() -> None:
    assert metrics.Accuracy()(ROWS).breakdown == {"stage_1": 1.0, "stage_2": 0.5, "unknown_stage": 0.0}
    assert metrics.Accuracy(by="sex")(ROWS).breakdown == {"sex_F": 0.5, "sex_M": 0.5}
    assert metrics.Accuracy(by=None)(ROWS).breakdown == {}
    assert metrics.AbstentionRate(by="sex")(ROWS).breakdown == {"sex_F": 0.0, "sex_M": 0.5}
    assert metrics.BrierScore(by="sex")(ROWS).breakdown == pytest.approx({"sex_F": 0.185, "sex_M": 0.09})
    assert metrics.Accuracy()([EvaluationResult(1, 1)]).breakdown == {"unknown_stage": 1.0}
    with pytest.raises(ArgumentError, match="unknown group column 'site'; columns: sex, ckd_stage"):
        metrics.Accuracy(by="site")(ROWS)


def test_failed_and_unscored_rows_are_counted_and_excluded() -> None:
    rows = [*ROWS, EvaluationResult(1, None), EvaluationResult(None, 1, failed=True)]
    score = metrics.Accuracy()(rows)
    assert score.value == 0.5
    assert score.n_evaluated == 4
    assert (score.details["n_failed"], score.details["n_unscored"]) == (1, 1)
    with pytest.raises(DataError, match="there is no row to evaluate"):
        metrics.Accuracy()([EvaluationResult(1, None)])


def test_rows_may_be_a_generator() -> None:
    assert metrics.AnswerRate()(row for row in ROWS).value == 0.75


def test_a_subclass_needs_only_compute() -> None:
    class Wordy(BaseMetric):
        name = "wordy"

        def compute(self, results: list[EvaluationResult]) -> MetricScore:
            return MetricScore(self.name, float(len(results)), n_evaluated=len(results))

    assert Wordy()(ROWS).value == 4.0
    with pytest.raises(TypeError, match="abstract"):
        BaseMetric()  # type: ignore[abstract]


@pytest.mark.parametrize("metric", default_benchmark_metrics(), ids=lambda metric: metric.name)
class TestBadInput:
    def test_an_empty_list(self, metric: BaseMetric) -> None:
        with pytest.raises(DataError, match="results is empty"):
            metric([])

    def test_a_nan_confidence(self, metric: BaseMetric) -> None:
        with pytest.raises(DataError, match="confidence is NaN at row 0"):
            metric([EvaluationResult(1, 1, confidence=math.nan)])

    def test_a_confidence_above_one(self, metric: BaseMetric) -> None:
        with pytest.raises(DataError, match=r"confidence must lie in \[0, 1\], got 95 at row 1"):
            metric([EvaluationResult(1, 1), EvaluationResult(1, 1, confidence=95)])

    def test_mixed_label_types(self, metric: BaseMetric) -> None:
        with pytest.raises(DataError, match="mixed label types: a number at row 0 and text at row 1"):
            metric([EvaluationResult(1, 1), EvaluationResult(1, "stable")])


def test_guidance_that_is_not_boolean() -> None:
    wrongs: tuple[Any, ...] = ("yes", 1, 0.0, [])
    for wrong in wrongs:
        with pytest.raises(DataError, match="should_abstain must be True or False, got .* at row 1"):
            metrics.DeferralAlignment()([ROWS[0], EvaluationResult(1, 1, metadata={"should_abstain": wrong})])
    assert metrics.Accuracy()([EvaluationResult(1, 1, metadata={"should_abstain": "yes"})]).value == 1.0


def test_too_few_bins() -> None:
    with pytest.raises(ArgumentError, match="n_bins must be at least 2, got 1"):
        metrics.ExpectedCalibrationError(n_bins=1)
