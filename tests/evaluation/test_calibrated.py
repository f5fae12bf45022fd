"""Calibrated variants in an evaluation: values, warnings, and the calibration file of each variant."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import jsonschema
import numpy as np
import pytest

from abstain import Items, compare, evaluate, read
from abstain.calibrators import fit_verbalized, read_calibration, train
from abstain.confidence import confidence_values
from abstain.errors import ArgumentError, DataError
from abstain.report.results_json import encode, metrics_schema, results_json
from examples import EXAMPLES, differences, load

LOGISTIC, ISOTONIC, VERBALIZED = (
    EXAMPLES / f"expected_calibration_{name}.json" for name in ("logistic", "isotonic", "verbalized")
)


@pytest.fixture(scope="module")
def test_run() -> Items:
    return read(EXAMPLES / "run_a.json", mode="few_shot")


@pytest.fixture(scope="module")
def training_run() -> Items:
    return read(EXAMPLES / "run_b.json", mode="few_shot")


def codes(result: Any) -> list[str]:
    return [warning.code for warning in result.warnings]


def test_the_published_results_json_of_a_calibrated_evaluation(test_run: Items) -> None:
    result = evaluate(
        test_run, confidence="calibrated", calibration=LOGISTIC, loss="abs", resamples=300, seed=42
    )
    document = json.loads(encode(results_json(result, datetime(2026, 1, 3, tzinfo=UTC))))
    assert differences(load("expected_single_calibrated.json"), document) == []
    assert document["calibrations"][0]["run_id"] == "seeded-102"
    jsonschema.validate(document, metrics_schema())


def test_verbalized_calibrated_has_the_same_ranking_as_verbalized(test_run: Items) -> None:
    result = evaluate(
        test_run, confidence="verbalized,verbalized_calibrated", calibration=VERBALIZED, resamples=0
    )
    assert result["verbalized_calibrated"].aurc.value == pytest.approx(result["verbalized"].aurc.value)
    scaled = 1 / (1 + 3.0 ** (-1 / load("expected_calibration_verbalized.json")["temperature"]))
    thresholds = result["verbalized_calibrated"].curve.threshold
    assert np.isclose(thresholds, scaled).any()


def test_calibrated_of_another_confidence(test_run: Items) -> None:
    result = evaluate(test_run, confidence="calibrated:token_msp", calibration=ISOTONIC, resamples=0)
    calibrator = read_calibration(ISOTONIC).calibrator
    expected = np.unique(
        calibrator.predict(confidence_values(test_run.evaluated, "token_msp")[test_run.evaluated.answered])
    )
    assert result["calibrated:token_msp"].curve.threshold == pytest.approx(expected[::-1])
    assert "calibrated_elsewhere" not in codes(result["calibrated:token_msp"])
    other = evaluate(test_run, confidence="calibrated:consistency", calibration=ISOTONIC, resamples=0)
    assert "calibrated_elsewhere" in codes(other["calibrated:consistency"])


def test_each_calibration_file_is_used_for_its_variant(test_run: Items) -> None:
    names = "calibrated,verbalized_calibrated,calibrated:verbalized,calibrated:secondary:token_msp+token_pe:average"
    result = evaluate(test_run, confidence=names, calibration=[LOGISTIC, VERBALIZED], resamples=0)
    assert list(result) == names.split(",")
    both = evaluate(
        test_run, confidence="calibrated:token_msp", calibration=[VERBALIZED, ISOTONIC], resamples=0
    )
    assert codes(both["calibrated:token_msp"]).count("calibrated_elsewhere") == 0


def test_filled_features_are_counted(test_run: Items) -> None:
    result = evaluate(test_run, confidence="calibrated", calibration=LOGISTIC, resamples=0)
    [message] = [c.message for c in result["calibrated"].warnings if c.code == "features_filled"]
    assert "verbalized_confidence for 23 of 150 items" in message


def test_evaluating_the_training_run_has_a_warning(test_run: Items, training_run: Items) -> None:
    own = fit_verbalized(training_run)
    for calibration in (VERBALIZED, own):
        result = evaluate(
            training_run, confidence="verbalized_calibrated", calibration=calibration, resamples=0
        )
        assert "calibrated_in_sample" in codes(result["verbalized_calibrated"])
        result = evaluate(test_run, confidence="verbalized_calibrated", calibration=calibration, resamples=0)
        assert "calibrated_in_sample" not in codes(result["verbalized_calibrated"])
    other_mode = read(EXAMPLES / "run_b.json", mode="zero_shot")
    result = evaluate(other_mode, confidence="verbalized_calibrated", calibration=own, resamples=0)
    [message] = [
        c.message for c in result["verbalized_calibrated"].warnings if c.code == "calibrated_in_sample"
    ]
    assert "in mode few_shot: it has seen these participants" in message


def test_a_comparison_calibrates_both_sides(test_run: Items) -> None:
    left = read(EXAMPLES / "run_a.json", mode="zero_shot")
    result = compare(left, test_run, confidence="calibrated", calibration=LOGISTIC, resamples=50)
    assert "calibrated" in result.deltas


def test_invalid_calibrations_are_errors(test_run: Items, training_run: Items) -> None:
    def evaluate_with(confidence: str, calibration: Any) -> None:
        evaluate(test_run, confidence=confidence, calibration=calibration, resamples=0)

    for name in ("calibrated", "verbalized_calibrated", "calibrated:token_msp"):
        with pytest.raises(ArgumentError, match=f"'{name}' needs a calibration file, and none was passed"):
            evaluate_with(name, None)
    with pytest.raises(
        ArgumentError, match="needs a calibrator trained on features .* verbalized_calibrated uses"
    ):
        evaluate_with("calibrated", VERBALIZED)
    with pytest.raises(
        ArgumentError, match=r"needs a temperature_scaling calibration file .* got logistic on"
    ):
        evaluate_with("verbalized_calibrated", LOGISTIC)
    with pytest.raises(ArgumentError, match="needs a temperature_scaling or isotonic calibration file"):
        evaluate_with("calibrated:token_msp", LOGISTIC)
    with pytest.raises(ArgumentError, match="2 calibration files fit confidence 'calibrated'; pass only one"):
        evaluate_with("calibrated", [LOGISTIC, ISOTONIC])
    with pytest.raises(ArgumentError, match="but no requested confidence uses it"):
        evaluate_with("llm", LOGISTIC)
    with pytest.raises(ArgumentError, match="calibrates a base confidence, not a calibrated one"):
        evaluate_with("calibrated:calibrated", ISOTONIC)
    with pytest.raises(ArgumentError, match="unknown confidence 'token_mps' .did you mean 'token_msp'"):
        evaluate_with("calibrated:token_mps", ISOTONIC)
    with pytest.raises(DataError, match=r"confidence calibrated:llm: .* must lie in \[0, 1\], got"):
        evaluate_with("calibrated:llm", VERBALIZED)
    with pytest.raises(ArgumentError, match="combines base confidences only"):
        evaluate_with("secondary:calibrated+llm:average", LOGISTIC)
    with pytest.raises(ArgumentError, match="no such file"):
        evaluate_with("calibrated", "nowhere.json")
    trained = train(training_run, method="platt", features="token_msp")
    bare = Items.from_arrays([1, 0], [1, 1], confidence=[0.1, 0.2])
    with pytest.raises(DataError, match="there is no signal 'token_msp' to use as a feature"):
        evaluate(bare, confidence="calibrated", calibration=trained, resamples=0)
