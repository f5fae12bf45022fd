"""Agreement with krisis: values, breakdowns, counts, reasons and details on many random lists of results.

Each intentional difference has a separate test at the end.
"""

from __future__ import annotations

import math
from typing import Any

import krisis.metrics as krisis
import numpy as np
import pytest
from krisis.backends.base import BackendResponse, BaseBackend
from krisis.benchmark import Benchmark
from krisis.data.base import BaseDataSuite, PatientRecord, SuiteConfig, Task
from krisis.results.report import format_report

from abstain import metrics
from abstain.errors import DataError
from abstain.metrics import EvaluationResult

LABELS: dict[str, list[Any]] = {
    "binary": [0, 1],
    "binary_as_text": ["0", "1", " 1"],
    "stages": [1, 2, 3, 4, 5],
    "stages_written_both_ways": [1, "1", 2, "2 ", 3],
    "words": ["stable", "worsening", "improving"],
    "words_in_any_case": ["Stable", "stable ", "WORSENING", "improving"],
}
PAIRS: list[tuple[Any, Any]] = [
    (metrics.Accuracy(), krisis.Accuracy()),
    (metrics.Accuracy(treat_abstention_as_neutral=True), krisis.Accuracy(treat_abstention_as_neutral=True)),
    (metrics.BalancedAccuracy(), krisis.BalancedAccuracy()),
    (metrics.AbstentionRate(), krisis.AbstentionRate()),
    (metrics.AnswerRate(), krisis.AnswerRate()),
    (metrics.SelectiveAccuracy(), krisis.SelectiveAccuracy()),
    (metrics.DeferralAlignment(), krisis.DeferralAlignment()),
    (metrics.ExpectedCalibrationError(), krisis.ExpectedCalibrationError()),
    (metrics.ExpectedCalibrationError(n_bins=7), krisis.ExpectedCalibrationError(n_bins=7)),
    (metrics.BrierScore(), krisis.BrierScore()),
]


def random_rows(rng: np.random.Generator, labels: list[Any]) -> list[dict[str, Any]]:
    """Return rows as keyword arguments; every feature is missing from some lists."""
    size = int(rng.integers(1, 30))
    abstains, stated, staged, guided, silent = rng.choice([0.0, 0.3, 0.9, 1.0], size=5)
    strays = labels if rng.random() < 0.5 else [*labels, 9, "other"]
    rows = []
    for _ in range(size):
        metadata: dict[str, Any] = {}
        if rng.random() < staged:
            metadata["ckd_stage"] = int(rng.integers(1, 6))
        if rng.random() < guided:
            metadata["should_abstain"] = bool(rng.random() < 0.5)
        prediction = None if rng.random() < silent * 0.3 else strays[rng.integers(len(strays))]
        levels = np.r_[rng.random(3), np.arange(16) / 15.0]
        rows.append(
            {
                "prediction": prediction,
                "ground_truth": labels[rng.integers(len(labels))],
                "abstained": bool(rng.random() < abstains * 0.8),
                "confidence": float(rng.choice(levels)) if rng.random() < stated else None,
                "metadata": metadata,
            }
        )
    return rows


def same(ours: Any, theirs: Any) -> bool:
    """Return whether nested values are equal; NaN equals NaN, and floats are equal up to rounding."""
    if isinstance(ours, dict):
        return ours.keys() == theirs.keys() and all(same(ours[key], theirs[key]) for key in ours)
    if isinstance(ours, list):
        return len(ours) == len(theirs) and all(map(same, ours, theirs))
    if isinstance(ours, float):
        return (math.isnan(ours) and math.isnan(theirs)) or ours == pytest.approx(theirs, abs=1e-12)
    return bool(ours == theirs)


@pytest.mark.parametrize("kind", LABELS)
@pytest.mark.parametrize(("ours", "theirs"), PAIRS, ids=lambda metric: type(metric).__module__.split(".")[0])
def test_scores_agree_with_krisis(kind: str, ours: Any, theirs: Any) -> None:
    rng = np.random.default_rng(2026)
    for _ in range(60):
        rows = random_rows(rng, LABELS[kind])
        left = ours([EvaluationResult(**row) for row in rows])
        right = theirs([krisis.EvaluationResult(**row) for row in rows])
        assert left.name == right.name
        assert same(left.value, right.value), (rows, left, right)
        assert same(dict(left.breakdown), right.breakdown), rows
        assert (left.n_evaluated, left.n_abstained) == (right.n_evaluated, right.n_abstained)
        assert same(dict(left.details), right.details), (left.details, right.details)


def test_the_default_bundles_agree_with_krisis() -> None:
    for bundle in ("accuracy", "abstention", "calibration", "benchmark"):
        name = f"default_{bundle}_metrics"
        ours = [metric.name for metric in getattr(metrics, name)()]
        assert ours == [metric.name for metric in getattr(krisis, name)()]


def test_evaluation_results_of_krisis_are_accepted() -> None:
    rows = [krisis.EvaluationResult(1, 1, confidence=0.8), krisis.EvaluationResult(None, 0, abstained=True)]
    assert metrics.Accuracy()(rows).value == 0.5


class TestDocumentedDifferences:
    def test_a_nan_confidence_is_an_error_and_1_in_krisis(self) -> None:
        rows: list[dict[str, Any]] = [{"prediction": 1, "ground_truth": 1, "confidence": math.nan}]
        assert krisis.BrierScore()([krisis.EvaluationResult(**row) for row in rows]).value == 0.0
        with pytest.raises(DataError, match="confidence is NaN at row 0"):
            metrics.BrierScore()([EvaluationResult(**row) for row in rows])

    def test_a_confidence_outside_the_unit_interval_is_an_error_and_clipped_in_krisis(self) -> None:
        rows = [EvaluationResult(1, 1, confidence=0.4), EvaluationResult(1, 1, confidence=80)]
        with pytest.raises(DataError, match=r"confidence must lie in \[0, 1\], got 80 at row 1"):
            metrics.ExpectedCalibrationError()(rows)

    def test_guidance_that_is_not_boolean_is_an_error_and_converted_in_krisis(self) -> None:
        rows: list[dict[str, Any]] = [
            {"prediction": 1, "ground_truth": 1, "metadata": {"should_abstain": "no"}}
        ]
        theirs = krisis.DeferralAlignment()([krisis.EvaluationResult(**row) for row in rows])
        assert theirs.details["confusion"]["answer_when_should_defer"] == 1
        with pytest.raises(DataError, match="should_abstain must be True or False, got text at row 0"):
            metrics.DeferralAlignment()([EvaluationResult(**row) for row in rows])

    def test_null_guidance_is_missing_and_false_in_krisis(self) -> None:
        rows: list[dict[str, Any]] = [
            {"prediction": 1, "ground_truth": 1, "metadata": {"should_abstain": None}}
        ]
        assert krisis.DeferralAlignment()([krisis.EvaluationResult(**row) for row in rows]).value == 1.0
        ours = metrics.DeferralAlignment()([EvaluationResult(**row) for row in rows])
        assert math.isnan(ours.value)
        assert ours.reason == "no_should_abstain_metadata"

    def test_mixed_label_types_are_an_error_and_separate_classes_in_krisis(self) -> None:
        rows = [EvaluationResult(1, 1), EvaluationResult("stable", "stable")]
        with pytest.raises(DataError, match="mixed label types: a number at row 0 and text at row 1"):
            metrics.Accuracy()(rows)

    def test_digits_with_underscores_are_text(self) -> None:
        row: dict[str, Any] = {"prediction": "1_0", "ground_truth": 10}
        assert krisis.Accuracy()([krisis.EvaluationResult(**row)]).value == 1.0
        assert metrics.Accuracy()([EvaluationResult(**row)]).value == 0.0


class Replay(BaseBackend):  # type: ignore[misc]
    """A model whose answer is stored in the record."""

    @property
    def name(self) -> str:
        return "replay"

    def evaluate(self, record: PatientRecord, task: Task) -> BackendResponse:
        return BackendResponse(**record.features)


class Rows(BaseDataSuite):  # type: ignore[misc]
    """Two patients; the model declines to answer for one of them."""

    def load(self) -> list[PatientRecord]:
        answers: list[dict[str, Any]] = [
            {"prediction": 1, "abstained": False, "confidence": 0.8, "raw_response": "yes"},
            {"prediction": None, "abstained": True, "confidence": None, "raw_response": "cannot say"},
        ]
        metadata = ({"ckd_stage": 3, "should_abstain": False}, {"ckd_stage": 4, "should_abstain": True})
        return [
            PatientRecord(features=features, label=1, metadata=patient)
            for features, patient in zip(answers, metadata, strict=True)
        ]

    def describe(self) -> dict[str, Any]:
        return {"rows": 2}


def test_krisis_runs_our_metrics_in_its_benchmark() -> None:
    class Tokens(metrics.BaseMetric):
        name = "tokens"

        def compute(self, results: list[EvaluationResult]) -> metrics.MetricScore:
            return metrics.MetricScore(self.name, 7.0, n_evaluated=len(results))

    suite = Rows(SuiteConfig(task=Task.DETECTION))
    ours = [*metrics.default_benchmark_metrics(), Tokens()]
    run = Benchmark(suite, Replay(), metrics=ours).run()
    theirs = Benchmark(suite, Replay()).run()
    assert {name: type(score) for name, score in run.metric_scores.items()} == dict.fromkeys(
        [metric.name for metric in ours], krisis.MetricScore
    )
    assert run.metric_scores["tokens"].value == 7.0
    for name, score in theirs.metric_scores.items():
        assert same(run.metric_scores[name].model_dump(), score.model_dump()), name
    assert "Accuracy: 0.5000 (n_evaluated=2, n_abstained=1)" in format_report(run)
    assert '"tokens"' in run.to_json()


def test_a_score_is_a_mapping_of_its_fields() -> None:
    score = metrics.MetricScore("accuracy", 0.5, {"stage_1": 0.5}, 2, 1, {"reason": ""})
    assert dict(score) == {
        "name": "accuracy",
        "value": 0.5,
        "breakdown": {"stage_1": 0.5},
        "n_evaluated": 2,
        "n_abstained": 1,
        "details": {"reason": ""},
    }
    assert len(score) == 6
    assert krisis.MetricScore(**score).value == 0.5
    with pytest.raises(KeyError, match="reason"):
        score["reason"]
    assert score == metrics.MetricScore("accuracy", 0.5, {"stage_1": 0.5}, 2, 1, {"reason": ""})
