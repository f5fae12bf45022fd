"""`abstain calibrate`, and evaluations with the calibration file that it writes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
from typer.testing import CliRunner

from abstain.cli import app
from examples import EXAMPLES, load

if TYPE_CHECKING:
    from pathlib import Path

TRAIN, TEST = EXAMPLES / "run_b.json", EXAMPLES / "run_a.json"
FEW_SHOT = ("--mode", "few_shot")


def call(*arguments: object) -> Any:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def calibrate(kind: str, output: Path, *options: object) -> Any:
    return call("calibrate", kind, "--input", TRAIN, *FEW_SHOT, "--output", output, *options)


LOGISTIC = ("--method", "logistic", "--features", "verbalized_confidence,retrieval_similarity_mean")


def test_verbalized_then_evaluate(tmp_path: Path) -> None:
    results_json, metrics = tmp_path / "temperature.json", tmp_path / "metrics.json"
    done = calibrate("verbalized", results_json)
    assert (done.exit_code, done.stderr) == (0, "")
    assert "in-sample" in done.stdout
    assert "held out" in done.stdout
    written = json.loads(results_json.read_text())
    expected = load("expected_calibration_verbalized.json")
    assert written["temperature"] == pytest.approx(expected["temperature"], rel=5e-3)
    assert written.keys() >= expected.keys()
    done = call(
        "evaluate", "--input", TEST, *FEW_SHOT, "--confidence", "verbalized_calibrated", "--calibration", results_json,
        "--bootstrap-resamples", 20, "--output", metrics,
    )  # fmt: skip
    assert done.exit_code == 0
    assert "verbalized_calibrated" in json.loads(metrics.read_text())["confidence_variants"]


def test_train_then_evaluate_on_the_training_run(tmp_path: Path) -> None:
    results_json, metrics = tmp_path / "logistic.json", tmp_path / "metrics.json"
    done = calibrate("train", results_json, *LOGISTIC, "--target", "correctness")
    assert (done.exit_code, done.stderr) == (0, "")
    assert "verbalized_confidence for 49 of 312 items" in done.stdout
    expected = load("expected_calibration_logistic.json")
    written = json.loads(results_json.read_text())
    assert written["model"]["coefficients"] == pytest.approx(expected["model"]["coefficients"], rel=1e-5)
    done = call(
        "evaluate", "--input", TRAIN, *FEW_SHOT, "--confidence", "calibrated", "--calibration", results_json,
        "--bootstrap-resamples", 20, "--output", metrics,
    )  # fmt: skip
    assert done.exit_code == 0
    assert "in-sample and too optimistic" in " ".join(done.stdout.split())
    [variant] = json.loads(metrics.read_text())["confidence_variants"].values()
    assert "calibrated_in_sample" in [warning["code"] for warning in variant["warnings"]]


def test_json_and_quiet(tmp_path: Path) -> None:
    results_json = tmp_path / "c.json"
    done = calibrate("train", results_json, *LOGISTIC, "--json")
    assert json.loads(done.stdout) == json.loads(results_json.read_text())
    done = calibrate("verbalized", results_json, "--quiet")
    assert done.stdout.strip() == str(results_json)


def test_the_schema_is_published(tmp_path: Path) -> None:
    done = call("schema", "calibration")
    assert done.exit_code == 0
    schema = json.loads(done.stdout)
    jsonschema.Draft202012Validator.check_schema(schema)
    for name in ("verbalized", "logistic", "isotonic"):
        jsonschema.validate(load(f"expected_calibration_{name}.json"), schema)


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (("--method", "logit", "--features", "token_msp"), 2, "unknown method 'logit'"),
        (
            ("--method", "isotonic", "--features", "token_msp,token_pe"),
            2,
            "isotonic takes one feature, got 2",
        ),
        (("--method", "temperature_scaling", "--features", "llm_evidence_count"), 3, "must lie in [0, 1]"),
        (("--method", "logistic", "--features", "nothing"), 3, "no signal 'nothing'"),
        ((*LOGISTIC, "--target", "truth"), 2, "unknown target 'truth'"),
        ((*LOGISTIC, "--folds", "1"), 2, "folds must be at least 2"),
        ((*LOGISTIC, "--json", "--quiet"), 2, "exclude each other"),
        ((*LOGISTIC, "--input", TEST), 2, "pass one input to learn from, got 2"),
        ((*LOGISTIC, "--confidence", "token_msp"), 2, "--confidence and --features exclude each other"),
        (("--method", "isotonic"), 2, "name the signals to learn from"),
    ],
)
def test_no_file_is_written_if_the_usage_or_the_data_are_wrong(
    options: Any, code: int, message: str, tmp_path: Path
) -> None:
    results_json = tmp_path / "c.json"
    done = calibrate("train", results_json, *options)
    assert (done.exit_code, done.stdout) == (code, "")
    assert message in done.stderr
    assert not results_json.exists()


def test_one_class_writes_nothing(tmp_path: Path) -> None:
    run = json.loads(TRAIN.read_text())
    for experiment in run["experiments"]:
        for record in experiment["results"]["results"]:
            if record["success"]:
                record["predicted_items"] = dict(record["ground_truth_items"])
    perfect, results_json = tmp_path / "run.json", tmp_path / "c.json"
    perfect.write_text(json.dumps(run))
    done = call("calibrate", "verbalized", "--input", perfect, *FEW_SHOT, "--output", results_json)
    assert done.exit_code == 3
    assert "needs rows of both outcomes" in done.stderr
    assert not results_json.exists()


def test_a_broken_calibration_file_stops_the_evaluation(tmp_path: Path) -> None:
    record = load("expected_calibration_logistic.json")
    del record["model"]["scaler"]
    broken, metrics = tmp_path / "broken.json", tmp_path / "m.json"
    broken.write_text(json.dumps(record))
    done = call(
        "evaluate", "--input", TEST, *FEW_SHOT, "--confidence", "calibrated", "--calibration", broken,
        "--output", metrics,
    )  # fmt: skip
    assert done.exit_code == 3
    assert "model has no scaler" in done.stderr
    assert not metrics.exists()


def table(path: Path, rows: int = 60) -> Path:
    """Every third answer is wrong, every tenth prediction is missing; wrong answers have the lower confidence."""
    lines = ["patient_id,y,p,prob"]
    for row in range(rows):
        wrong = row % 3 == 0
        prediction = "" if row % 10 == 9 else "no" if wrong else "yes"
        lines.append(f"{row // 2},yes,{prediction},{0.3 + row / 200 if wrong else 0.6 + row / 200:.3f}")
    path.write_text("\n".join(lines) + "\n")
    return path


COLUMNS = ("--truth", "y", "--prediction", "p", "--null-prediction", "abstained")


@pytest.mark.parametrize("feature", [("--confidence", "prob"), ("--features", "prob"), ()])
def test_evaluate_uses_a_calibrator_that_was_trained_on_a_table(
    feature: tuple[str, ...], tmp_path: Path
) -> None:
    preds, results_json, metrics = (
        table(tmp_path / "preds.csv"),
        tmp_path / "isotonic.json",
        tmp_path / "m.json",
    )
    done = call("calibrate", "train", preds, *COLUMNS, *feature, "--method", "isotonic", "-o", results_json)
    assert done.exit_code == 0, done.stderr
    assert "54 answered items in 30 clusters" in done.stdout
    done = call(
        "evaluate", preds, *COLUMNS, "--confidence", "calibrated", "--calibration", results_json, "-o", metrics,
    )  # fmt: skip
    assert done.exit_code == 0, done.stderr
    assert "calibrated" in json.loads(metrics.read_text())["confidence_variants"]


def test_the_error_for_unexplained_missing_predictions_names_an_option_of_calibrate(
    tmp_path: Path,
) -> None:
    preds = table(tmp_path / "preds.csv")
    done = call("calibrate", "train", preds, *COLUMNS[:4], "--method", "isotonic", "-o", tmp_path / "c.json")
    assert done.exit_code == 3
    assert "--null-prediction" in done.stderr
    assert "--null-prediction" in call("calibrate", "train", "--help-all").stdout


def test_a_missing_confidence_of_a_table_is_never_filled_in(tmp_path: Path) -> None:
    preds = tmp_path / "preds.csv"
    preds.write_text("truth,prediction,confidence\n1,1,0.9\n0,1,\n1,1,0.8\n0,1,0.3\n")
    done = call("calibrate", "train", preds, "--method", "isotonic", "-o", tmp_path / "c.json")
    assert done.exit_code == 3
    assert "the confidence 'confidence' is missing (empty, null or NaN) for line 3" in done.stderr


def test_the_option_features_replaces_the_confidence_of_the_project_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "abstain.toml").write_text('[columns]\ntruth = "y"\nprediction = "p"\nconfidence = "other"\n')
    preds = table(tmp_path / "preds.csv")
    flags = ("--null-prediction", "abstained", "--method", "isotonic", "-o", tmp_path / "c.json")
    done = call("calibrate", "train", preds, *flags, "--features", "prob")
    assert done.exit_code == 0, done.stderr
    assert "isotonic calibrator of correctness on prob" in done.stdout


def test_calibrate_without_a_subcommand_names_the_subcommands(tmp_path: Path) -> None:
    done = call("calibrate", table(tmp_path / "preds.csv"))
    assert (done.exit_code, done.stdout) == (2, "")
    assert "abstain calibrate needs a subcommand (verbalized or train)" in done.stderr
