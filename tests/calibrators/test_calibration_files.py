"""Calibration files: those of another implementation, our own, and invalid ones."""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, Any

import jsonschema
import numpy as np
import pytest

import abstain
from abstain import Items
from abstain.calibrators import (
    CALIBRATORS,
    LinearCalibrator,
    TrainedCalibration,
    VerbalizedCalibration,
    calibration_schema,
    extract_features,
    fit_verbalized,
    read_calibration,
    target_values,
    train,
)
from abstain.calibrators._training import assign_folds
from abstain.errors import ArgumentError, DataError, FormatError, SignalError
from examples import EXAMPLES, load

if TYPE_CHECKING:
    from pathlib import Path

FEATURES = ("verbalized_confidence", "retrieval_similarity_mean")


@pytest.fixture(scope="module")
def run() -> Items:
    return abstain.read(EXAMPLES / "run_b.json", mode="few_shot")


def expected(name: str) -> Any:
    return load(f"expected_calibration_{name}.json")


def assert_near(
    actual: Any, reference: Any, rel: float, skip: tuple[str, ...] = ("created_at", "trained_at", "path")
) -> None:
    """Assert that all fields of the reference have these values; additional fields are allowed."""
    if isinstance(reference, dict):
        for key in reference.keys() - set(skip):
            assert_near(actual[key], reference[key], rel)
    elif isinstance(reference, float) or (
        isinstance(reference, list) and reference and isinstance(reference[0], float)
    ):
        assert actual == pytest.approx(reference, rel=rel, abs=1e-9)
    else:
        assert actual == reference


# Calibration files of another implementation


@pytest.mark.parametrize(("name", "rel"), [("verbalized", 5e-3), ("logistic", 1e-5), ("isotonic", 1e-5)])
def test_fitting_the_same_run_gives_the_same_calibration_file(run: Items, name: str, rel: float) -> None:
    features = {"logistic": FEATURES, "isotonic": ("token_msp",)}
    fitted = train(run, method=name, features=features[name]) if name in features else fit_verbalized(run)
    assert_near(json.loads(fitted.to_json()), expected(name), rel)


def test_calibration_files_of_another_implementation_give_its_confidences() -> None:
    logistic = read_calibration(EXAMPLES / "expected_calibration_logistic.json")
    standard = [
        (4 - 3.2628205128205128) / 1.0102816279554678,
        (0.7 - 0.529914423076923) / 0.22434804166380656,
    ]
    combined = 0.6415831721024852 + 0.5119885334851864 * standard[0] + 0.6690998743088974 * standard[1]
    assert logistic.calibrator.predict([[4, 0.7]]) == pytest.approx([1 / (1 + np.exp(-combined))])
    assert logistic.feature_names == FEATURES
    verbalized = read_calibration(EXAMPLES / "expected_calibration_verbalized.json")
    assert isinstance(verbalized, VerbalizedCalibration)
    assert verbalized.calibrator.predict([0.75]) == pytest.approx([1 / (1 + 3 ** (-1 / 10.000000000000002))])
    isotonic = read_calibration(EXAMPLES / "expected_calibration_isotonic.json")
    assert isotonic.calibrator.predict([0.0, 0.45, 1.0]) == pytest.approx([0.0, 1 / 3, 29 / 33])
    assert isotonic.source.run_id == "seeded-102"


def test_a_temperature_is_read_from_the_top_level_or_the_model(tmp_path: Path) -> None:
    record = expected("verbalized")
    record["model"] = {"temperature": record.pop("temperature")}
    assert read_calibration(write(tmp_path, record)).calibrator.predict([0.5]) == pytest.approx([0.5])
    trained = {**expected("isotonic"), "method": "temperature_scaling", "model": {}, "temperature": 2.0}
    assert read_calibration(write(tmp_path, trained)).calibrator.predict([0.9]) == pytest.approx([0.75])


def test_logistic_with_an_identity_link_is_linear(tmp_path: Path) -> None:
    record = expected("logistic")
    record["model"]["link"] = "identity"
    calibrator = read_calibration(write(tmp_path, record)).calibrator
    assert isinstance(calibrator, LinearCalibrator)
    assert calibrator.predict([[5, 1.0]]) == pytest.approx([1.0])


# Our own files


@pytest.mark.parametrize("method", CALIBRATORS)
@pytest.mark.parametrize("target", ["correctness", "near_correct"])
def test_a_calibration_file_fits_the_schema_and_can_be_read_again(
    run: Items, method: str, target: str, tmp_path: Path
) -> None:
    trained = train(run, method=method, features="token_msp", target=target)
    record = json.loads(trained.to_json())
    jsonschema.validate(record, calibration_schema())
    assert record["validation"]["held_out"].keys() == record["validation"]["in_sample"].keys()
    assert set(record["validation_metrics"]) == {"auc_roc", "brier_score", "ece"}
    again = read_calibration(write(tmp_path, record))
    assert again == trained
    grid = np.linspace(0, 1, 50)
    np.testing.assert_array_equal(again.calibrator.predict(grid), trained.calibrator.predict(grid))


def test_every_example_fits_the_schema(run: Items) -> None:
    for name in ("verbalized", "logistic", "isotonic"):
        jsonschema.validate(expected(name), calibration_schema())
    jsonschema.validate(json.loads(fit_verbalized(run).to_json()), calibration_schema())


@pytest.mark.parametrize("method", ["linear", "logistic", "platt", "isotonic", "histogram_binning"])
def test_the_target_loss(run: Items, method: str) -> None:
    trained = train(run, method=method, features="token_msp", target="loss")
    assert set(trained.validation_metrics) == {"mae", "mse"}
    assert trained.method == method
    # A loss is not an event, so it has no positive rate.
    assert json.loads(trained.to_json())["training_metadata"]["positive_rate"] is None
    if method in ("linear", "logistic", "platt"):
        assert trained.model.link == "identity"  # type: ignore[attr-defined]


def test_held_out_metrics_are_reported_with_the_in_sample_ones(run: Items) -> None:
    trained = train(run, method="isotonic", features="token_msp")
    validation = trained.validation
    assert validation is not None
    assert validation.held_out is not None
    assert validation.in_sample["ece"] == pytest.approx(0.0, abs=1e-9)
    assert (validation.held_out["ece"] or 0) > 0.02
    assert validation.method == "5-fold cross-validation by participant"


def test_folds_never_split_a_cluster(run: Items) -> None:
    answered = run.take(run.answered)
    fold = assign_folds(answered.cluster_index, 5, seed=42)
    folds_of_cluster = [set(fold[answered.cluster == name].tolist()) for name in answered.cluster_ids]
    assert all(len(folds) == 1 for folds in folds_of_cluster)
    sizes = np.bincount([folds.pop() for folds in folds_of_cluster])
    assert sizes.max() - sizes.min() <= 1
    assert len(sizes) == 5
    np.testing.assert_array_equal(fold, assign_folds(answered.cluster_index, 5, seed=42))


def test_held_out_predictions_do_not_use_their_cluster() -> None:
    # The feature determines the outcome within a cluster but is not informative across clusters.
    rng = np.random.default_rng(0)
    outcome = np.repeat(rng.integers(0, 2, 60), 5)
    cluster = np.repeat(np.arange(60), 5)
    items = Items.from_arrays(np.ones(300), outcome, cluster=cluster, signals={"s": cluster})
    validation = train(items, method="histogram_binning", features="s").validation
    assert validation is not None
    assert validation.held_out is not None
    assert (validation.in_sample["auc_roc"] or 0) > 0.6
    assert abs((validation.held_out["auc_roc"] or 0) - 0.5) < 0.15


def test_one_cluster_cannot_be_held_out() -> None:
    items = Items.from_arrays(
        [1, 0, 1, 0], [1, 1, 1, 0], cluster=[7] * 4, signals={"s": [0.9, 0.1, 0.8, 0.4]}
    )
    validation = train(items, method="platt", features="s").validation
    assert validation is not None
    assert validation.held_out is None
    assert validation.reason == "there is only one cluster, which cannot be held out"


def test_a_training_set_with_one_class_is_reported() -> None:
    items = Items.from_arrays(
        [1, 0, 0, 0], [1, 1, 1, 1], cluster=[0, 1, 2, 3], signals={"s": [0.9, 0.1, 0.8, 0.4]}
    )
    validation = train(items, method="platt", features="s").validation
    assert validation is not None
    assert validation.held_out is None
    assert "needs rows of both outcomes" in validation.reason


# Features and targets


def test_nulls_are_filled_and_counted(run: Items) -> None:
    trained = train(run, method="logistic", features=FEATURES)
    assert trained.filled == {"verbalized_confidence": 49, "retrieval_similarity_mean": 29}
    [warning] = [notice for notice in trained.warnings if notice.code == "features_filled"]
    assert "verbalized_confidence for 49 of 312 items" in warning.message


def test_defaults_by_name() -> None:
    names = ("retrieval_similarity_max", "verbalized_confidence", "consistency_modal_confidence", "token_pe")
    items = Items.from_arrays([1], [1], signals={name: [None] for name in names})
    assert extract_features(items, names).matrix.tolist() == [[0.0, 3.0, 3.0, 0.0]]


def test_targets_by_hand() -> None:
    items = Items.from_arrays([3, 0, 2, 1], [1, 0, 1, None], abstained=[0, 0, 0, 1], scale=(0, 3))
    assert target_values(items, "correctness")[:3].tolist() == [0, 1, 0]
    assert target_values(items, "near_correct")[:3].tolist() == [0, 1, 1]
    assert target_values(items, "loss")[:3] == pytest.approx([1 / 3, 1, 2 / 3])
    assert np.isnan(target_values(items, "loss")[3])
    with pytest.raises(
        ArgumentError, match="loss abs_norm divides by the width of the scale, but no scale is declared"
    ):
        target_values(Items.from_arrays([3], [1]), "loss")


def test_temperature_is_an_alias_of_temperature_scaling(run: Items) -> None:
    short, long = (
        train(run, method=word, features="token_msp") for word in ("temperature", "temperature_scaling")
    )
    assert short.method == long.method == "temperature_scaling"
    assert short.model == long.model


def test_only_answered_items_are_used(run: Items) -> None:
    assert train(run, method="platt", features="token_msp").training_metadata.n_samples == run.counts.answered
    assert fit_verbalized(run).fitted_on.n_samples == 263


# Invalid input


def write(folder: Path, record: Any) -> Path:
    path = folder / "calibration.json"
    path.write_text(json.dumps(record))
    return path


def changed(record: Any, *path: str, value: Any = None) -> Any:
    record = copy.deepcopy(record)
    part = record
    for key in path[:-1]:
        part = part[key]
    if value is None:
        del part[path[-1]]
    else:
        part[path[-1]] = value
    return record


@pytest.mark.parametrize(
    ("name", "path", "value", "message"),
    [
        ("logistic", ("method",), None, "it must be a JSON object with a method"),
        ("logistic", ("method",), "logitsic", "unknown calibration method .did you mean 'logistic'"),
        ("logistic", ("model",), None, "it has no model"),
        ("logistic", ("model", "scaler"), None, "model has no scaler"),
        ("logistic", ("model", "coefficients"), [1.0], "model.coefficients has 1 numbers for 2 features"),
        ("logistic", ("model", "intercept"), "x", "model.intercept must be a number, got text"),
        ("logistic", ("model", "link"), "probit", "link"),
        ("logistic", ("features",), None, "it has no features"),
        ("logistic", ("features",), ["a", "a"], "features contains a duplicate signal"),
        ("logistic", ("target",), "truth", "target"),
        ("isotonic", ("features",), ["a", "b"], "isotonic takes one feature, got 2"),
        ("isotonic", ("model", "x_thresholds"), [1.0], "they must have the same length"),
        ("isotonic", ("model", "y_thresholds"), [0.5] * 17 + [0.1], "must be in ascending order"),
        ("isotonic", ("model", "y_thresholds"), [0.5] * 17 + [1.5], r"must lie in \[0, 1\]"),
        ("verbalized", ("temperature",), None, "it has no features"),
        ("verbalized", ("temperature",), -1.0, "> 0.0"),
        ("verbalized", ("fitted_on",), None, "it has no fitted_on"),
    ],
)
def test_invalid_calibration_files_are_refused(
    name: str, path: Any, value: Any, message: str, tmp_path: Path
) -> None:
    file = write(tmp_path, changed(expected(name), *path, value=value))
    with pytest.raises(FormatError, match=message):
        read_calibration(file)


@pytest.mark.parametrize("text", ["NaN", "Infinity", "1e999"])
def test_numbers_that_are_not_finite_are_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "calibration.json"
    path.write_text(
        (EXAMPLES / "expected_calibration_verbalized.json").read_text().replace("10.000000000000002", text)
    )
    with pytest.raises(FormatError, match=r"is not JSON|too large"):
        read_calibration(path)


def test_other_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="not a calibration file"):
        read_calibration(write(tmp_path, [1]))
    with pytest.raises(FormatError, match="not a calibration file"):
        read_calibration(EXAMPLES / "run_b.json")
    with pytest.raises(ArgumentError, match="no such file"):
        read_calibration(tmp_path / "none.json")


def test_wrong_calls_are_refused(run: Items) -> None:
    with pytest.raises(ArgumentError, match="unknown method 'probit'"):
        train(run, method="probit", features="token_msp")
    with pytest.raises(ArgumentError, match="unknown target 'right'"):
        train(run, method="platt", features="token_msp", target="right")
    with pytest.raises(ArgumentError, match="method isotonic takes one feature, got 2; use logistic"):
        train(run, method="isotonic", features="token_msp,token_pe")
    with pytest.raises(ArgumentError, match="for the target loss use linear, isotonic, histogram_binning"):
        train(run, method="temperature_scaling", features="token_msp", target="loss")
    with pytest.raises(ArgumentError, match="at least one signal, without duplicates"):
        train(run, method="logistic", features="token_msp,token_msp")
    with pytest.raises(SignalError, match=r"no signal 'token_mps'.*did you mean 'token_msp'"):
        train(run, method="platt", features="token_mps")
    with pytest.raises(DataError, match=r"verbalized_confidence: .*must lie in \[0, 1\], got"):
        train(run, method="temperature_scaling", features="verbalized_confidence")
    with pytest.raises(ArgumentError, match="folds must be at least 2, got 1"):
        train(run, method="platt", features="token_msp", folds=1)


def test_unsuitable_items_are_refused() -> None:
    right = Items.from_arrays([1, 0], [1, 0], signals={"s": [0.4, 0.6], "verbalized_confidence": [1, 5]})
    with pytest.raises(DataError, match="correctness is 1 for all 2 answered items"):
        train(right, method="isotonic", features="s")
    with pytest.raises(DataError, match="target is 1 for all 2 rows"):
        fit_verbalized(right)
    silent = Items.from_arrays([1], [None], abstained=[1], signals={"s": [0.4]})
    with pytest.raises(DataError, match="no item is answered"):
        train(silent, method="isotonic", features="s")
    with pytest.raises(SignalError, match="no signal verbalized_confidence"):
        fit_verbalized(Items.from_arrays([1], [1]))
    with pytest.raises(SignalError, match="null for every answered item"):
        fit_verbalized(Items.from_arrays([1], [1], signals={"verbalized_confidence": [None]}))
    with pytest.raises(SignalError, match="must be from 1 to 5, got 9 for row 1"):
        fit_verbalized(Items.from_arrays([1, 0], [1, 1], signals={"verbalized_confidence": [1, 9]}))


def test_a_feature_that_is_missing_for_some_items_is_refused() -> None:
    items = Items.from_records(
        [
            {"truth": 1, "prediction": 1, "signals": {"s": 0.5}},
            {"truth": 1, "prediction": 0, "signals": {}},
        ]
    )
    with pytest.raises(SignalError, match=r"feature s is missing for row 1$"):
        train(items, method="platt", features="s")


def test_a_trained_calibration_is_frozen(run: Items) -> None:
    trained = train(run, method="platt", features="token_msp")
    assert isinstance(trained, TrainedCalibration)
    with pytest.raises(AttributeError, match="immutable"):
        trained.method = "logistic"  # type: ignore[misc]
