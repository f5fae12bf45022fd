"""Rows as objects: selective metrics of a list of predictions."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from abstain import metrics
from abstain.metrics import (
    ItemPrediction,
    compute_aurc,
    compute_risk_at_coverage,
    compute_risk_coverage_curve,
    selective,
)

if TYPE_CHECKING:
    from pathlib import Path


class TestComputeAURC:
    """Tests for compute_aurc function."""

    def test_perfect_ranking_low_aurc(self) -> None:
        items = [
            ItemPrediction(score=2, ground_truth=2, confidence=1.0),
            ItemPrediction(score=1, ground_truth=1, confidence=0.9),
            ItemPrediction(score=0, ground_truth=0, confidence=0.8),
            ItemPrediction(score=None, ground_truth=1, confidence=0.0),
        ]
        aurc = compute_aurc(items)
        assert aurc == 0.0

    def test_random_ranking_higher_aurc(self) -> None:
        items = [
            ItemPrediction(score=3, ground_truth=0, confidence=1.0),
            ItemPrediction(score=2, ground_truth=2, confidence=0.5),
            ItemPrediction(score=1, ground_truth=1, confidence=0.3),
        ]
        aurc = compute_aurc(items)
        assert aurc > 0.0

    def test_all_abstained_returns_zero(self) -> None:
        items = [
            ItemPrediction(score=None, ground_truth=1, confidence=0.0),
            ItemPrediction(score=None, ground_truth=2, confidence=0.0),
        ]
        aurc = compute_aurc(items)
        assert aurc == 0.0

    def test_single_prediction(self) -> None:
        items = [
            ItemPrediction(score=2, ground_truth=1, confidence=1.0),
            ItemPrediction(score=None, ground_truth=0, confidence=0.0),
        ]
        aurc = compute_aurc(items)
        assert aurc == pytest.approx(0.5, abs=0.01)

    def test_coverage_denominator_includes_abstentions(self) -> None:
        items = [
            ItemPrediction(score=2, ground_truth=2, confidence=1.0),
            ItemPrediction(score=None, ground_truth=1, confidence=0.0),
            ItemPrediction(score=None, ground_truth=0, confidence=0.0),
        ]
        curve = compute_risk_coverage_curve(items)
        assert len(curve) == 1
        coverage, risk = curve[0]
        assert coverage == pytest.approx(1 / 3)
        assert risk == 0.0


class TestComputeRiskAtCoverage:
    """Tests for matched-coverage comparison."""

    def test_risk_at_50_percent(self) -> None:
        items = [
            ItemPrediction(score=2, ground_truth=2, confidence=1.0),
            ItemPrediction(score=3, ground_truth=1, confidence=0.8),
            ItemPrediction(score=1, ground_truth=1, confidence=0.5),
            ItemPrediction(score=0, ground_truth=2, confidence=0.3),
        ]
        risk = compute_risk_at_coverage(items, target_coverage=0.5)
        assert risk == pytest.approx(1.0)

    def test_risk_at_100_percent(self) -> None:
        items = [
            ItemPrediction(score=2, ground_truth=2, confidence=1.0),
            ItemPrediction(score=1, ground_truth=0, confidence=0.5),
        ]
        risk = compute_risk_at_coverage(items, target_coverage=1.0)
        assert risk == pytest.approx(0.5)

    def test_insufficient_coverage_returns_none(self) -> None:
        items = [
            ItemPrediction(score=2, ground_truth=2, confidence=1.0),
            ItemPrediction(score=None, ground_truth=1, confidence=0.0),
            ItemPrediction(score=None, ground_truth=0, confidence=0.0),
            ItemPrediction(score=None, ground_truth=1, confidence=0.0),
        ]
        risk = compute_risk_at_coverage(items, target_coverage=0.5)
        assert risk is None

    def test_target_outside_its_range_is_a_value_error(self) -> None:
        with pytest.raises(ValueError, match=r"target_coverage must be in \(0, 1\], got 0"):
            compute_risk_at_coverage([ItemPrediction(2, 2, 1.0)], target_coverage=0.0)


class TestRiskCoverageCurve:
    """Tests for risk-coverage curve generation."""

    def test_curve_is_sorted_by_coverage(self) -> None:
        items = [
            ItemPrediction(score=1, ground_truth=1, confidence=0.5),
            ItemPrediction(score=2, ground_truth=2, confidence=1.0),
            ItemPrediction(score=0, ground_truth=1, confidence=0.3),
        ]
        curve = compute_risk_coverage_curve(items)
        coverages = [c for c, r in curve]
        assert coverages == sorted(coverages)

    def test_curve_length_equals_predictions(self) -> None:
        items = [
            ItemPrediction(score=1, ground_truth=1, confidence=1.0),
            ItemPrediction(score=None, ground_truth=2, confidence=0.0),
            ItemPrediction(score=2, ground_truth=2, confidence=0.5),
        ]
        curve = compute_risk_coverage_curve(items)
        assert len(curve) == 2


def test_predictions_of_an_older_run_file(tmp_path: Path) -> None:
    data = {
        "experiments": [
            {
                "results": {
                    "results": [
                        {
                            "participant_id": 300,
                            "success": True,
                            "predicted_items": {"NoInterest": 2, "Depressed": None, "Sleep": 1},
                            "ground_truth_items": {"NoInterest": 2, "Depressed": 1, "Sleep": 2},
                            "evidence_counts": {"NoInterest": 3, "Depressed": 0, "Sleep": 1},
                        }
                    ]
                }
            }
        ]
    }
    path = tmp_path / "output.json"
    path.write_text(json.dumps(data))
    results = json.loads(path.read_text())["experiments"][0]["results"]["results"]
    items: list[ItemPrediction] = []
    for r in results:
        for item_name in r["predicted_items"]:
            pred = r["predicted_items"][item_name]
            gt = r["ground_truth_items"][item_name]
            conf = r["evidence_counts"][item_name]
            items.append(ItemPrediction(score=pred, ground_truth=gt, confidence=conf))
    assert compute_aurc(items) >= 0.0
    risk_50 = compute_risk_at_coverage(items, target_coverage=0.5)
    assert risk_50 is not None
    assert risk_50 >= 0.0


def test_every_selective_metric_has_a_function_for_rows() -> None:
    prefixed = {name.removeprefix("compute_") for name in metrics.__all__ if name.startswith("compute_")}
    # The system from which this interface comes does not have these.
    ours_alone = {"auarc", "class_balanced_aurc", "prediction_rejection_ratio"}
    assert prefixed == {metric.name for metric in selective.METRICS} - ours_alone | {
        "risk_coverage_curve",
        "tie_sensitivity",
    }


@pytest.mark.parametrize(("loss", "expected"), [("abs", 2.0), ("abs_norm", 2 / 3), ("zero_one", 1.0)])
def test_losses_by_name(loss: str, expected: float) -> None:
    assert compute_aurc([ItemPrediction(3, 1, 0.5)], loss=loss) == pytest.approx(expected)


def test_a_row_is_frozen_and_has_an_absolute_error() -> None:
    row = ItemPrediction(score=None, ground_truth=1, confidence=0.0, participant_id=7, item="Sleep")
    assert not row.is_predicted
    assert row.absolute_error == 0
    with pytest.raises(AttributeError, match="cannot assign"):
        row.score = 2  # type: ignore[misc]
