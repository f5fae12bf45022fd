"""Agreement with krisis: values, breakdowns, counts, reasons and details on many random lists of results.

Where the two differ on purpose the difference has a test of its own at the end.
"""

from __future__ import annotations

import math
from typing import Any

import krisis.metrics as krisis
import numpy as np
import pytest

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
    """Rows as keyword arguments; every feature is missing altogether in some lists."""
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
    """Equality of nested values, NaN equal to NaN and floats to rounding."""
    if isinstance(ours, dict):
        return ours.keys() == theirs.keys() and all(same(ours[key], theirs[key]) for key in ours)
    if isinstance(ours, list):
        return len(ours) == len(theirs) and all(map(same, ours, theirs))
    if isinstance(ours, float):
        return (math.isnan(ours) and math.isnan(theirs)) or ours == pytest.approx(theirs, abs=1e-12)
    return bool(ours == theirs)


@pytest.mark.parametrize("kind", LABELS)
@pytest.mark.parametrize(("ours", "theirs"), PAIRS, ids=lambda metric: type(metric).__module__.split(".")[0])
def test_scores_are_those_of_krisis(kind: str, ours: Any, theirs: Any) -> None:
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


def test_the_default_bundles_are_those_of_krisis() -> None:
    for bundle in ("accuracy", "abstention", "calibration", "benchmark"):
        name = f"default_{bundle}_metrics"
        ours = [metric.name for metric in getattr(metrics, name)()]
        assert ours == [metric.name for metric in getattr(krisis, name)()]


def test_rows_of_krisis_itself_are_taken() -> None:
    rows = [krisis.EvaluationResult(1, 1, confidence=0.8), krisis.EvaluationResult(None, 0, abstained=True)]
    assert metrics.Accuracy()(rows).value == 0.5


class TestDocumentedDifferences:
    def test_a_nan_confidence_is_an_error_where_krisis_counts_it_as_one(self) -> None:
        rows: list[dict[str, Any]] = [{"prediction": 1, "ground_truth": 1, "confidence": math.nan}]
        assert krisis.BrierScore()([krisis.EvaluationResult(**row) for row in rows]).value == 0.0
        with pytest.raises(DataError, match="confidence is NaN at row 0"):
            metrics.BrierScore()([EvaluationResult(**row) for row in rows])

    def test_a_confidence_outside_the_unit_interval_is_an_error_where_krisis_clips_it(self) -> None:
        rows = [EvaluationResult(1, 1, confidence=0.4), EvaluationResult(1, 1, confidence=80)]
        with pytest.raises(DataError, match=r"confidence must lie in \[0, 1\], got 80 at row 1"):
            metrics.ExpectedCalibrationError()(rows)

    def test_guidance_that_is_no_boolean_is_an_error_where_krisis_takes_its_truthiness(self) -> None:
        rows: list[dict[str, Any]] = [
            {"prediction": 1, "ground_truth": 1, "metadata": {"should_abstain": "no"}}
        ]
        theirs = krisis.DeferralAlignment()([krisis.EvaluationResult(**row) for row in rows])
        assert theirs.details["confusion"]["answer_when_should_defer"] == 1
        with pytest.raises(DataError, match="should_abstain must be True or False, got text at row 0"):
            metrics.DeferralAlignment()([EvaluationResult(**row) for row in rows])

    def test_null_guidance_is_none_where_krisis_counts_it_as_false(self) -> None:
        rows: list[dict[str, Any]] = [
            {"prediction": 1, "ground_truth": 1, "metadata": {"should_abstain": None}}
        ]
        assert krisis.DeferralAlignment()([krisis.EvaluationResult(**row) for row in rows]).value == 1.0
        ours = metrics.DeferralAlignment()([EvaluationResult(**row) for row in rows])
        assert math.isnan(ours.value)
        assert ours.reason == "no_should_abstain_metadata"

    def test_truths_of_both_kinds_are_an_error_where_krisis_makes_classes_of_them(self) -> None:
        rows = [EvaluationResult(1, 1), EvaluationResult("stable", "stable")]
        with pytest.raises(DataError, match="mixed label types: a number at row 0 and text at row 1"):
            metrics.Accuracy()(rows)

    def test_digits_with_underscores_are_text(self) -> None:
        row: dict[str, Any] = {"prediction": "1_0", "ground_truth": 10}
        assert krisis.Accuracy()([krisis.EvaluationResult(**row)]).value == 1.0
        assert metrics.Accuracy()([EvaluationResult(**row)]).value == 0.0
