"""Evaluation files: both forms, old and new names of metrics, exchange with krisis, and errors."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import krisis.metrics as krisis
import numpy as np
import pytest
from krisis.results.result import BenchmarkResult

import abstain
from abstain.errors import ArgumentError, DataError, FormatError
from abstain.metrics import EvaluationResult, MetricScore, default_benchmark_metrics, items_to_results
from abstain.readers import load_evaluation_file, write_evaluation_file
from abstain.readers._evaluation_file import looks_like_evaluation_file, metric_name

if TYPE_CHECKING:
    from pathlib import Path

SECRET = "Mrs. Example"
RESULTS = [
    EvaluationResult(
        1,
        1,
        confidence=0.9,
        raw_response=SECRET,
        prompt=[{"role": "user", "content": "redacted"}],
        prompt_mode="single",
        metadata={"ckd_stage": 3, "patient": "p1", "should_abstain": False, "egfr": None},
        input_tokens=12.0,
        output_tokens=3.0,
        total_tokens=15.0,
    ),
    EvaluationResult(None, 0, abstained=True, metadata={"patient": "p1"}),
    EvaluationResult("1", 0, confidence=0.4, metadata={"ckd_stage": 4, "patient": "p2"}),
]


def written_by_krisis(path: Path, *, full: bool) -> dict[str, krisis.MetricScore]:
    """Return a file that krisis wrote."""
    rng = np.random.default_rng(5)
    rows = [
        krisis.EvaluationResult(
            int(rng.integers(2)),
            int(rng.integers(2)),
            abstained=bool(rng.random() < 0.3),
            confidence=float(rng.random()),
            raw_response=SECRET,
            metadata={"ckd_stage": int(rng.integers(1, 6))},
        )
        for _ in range(40)
    ]
    scores = {metric.name: metric(rows) for metric in krisis.default_benchmark_metrics()}
    run = BenchmarkResult(
        evaluation_results=rows,
        metric_scores=scores,
        suite_description={"task": "detection"},
        backend_name="mock",
        extras={"seconds": 1.5},
    )
    path.write_text(run.to_json() if full else run.metrics_to_json())
    return scores


def test_files_of_krisis_are_read_with_its_scores(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    theirs = written_by_krisis(path, full=True)
    items = abstain.read(path)
    assert len(items) == 40
    assert items.provenance["backend_name"] == "mock"
    table = abstain.evaluate(items, metrics="default_benchmark", resamples=0).metrics
    assert table is not None
    stored = load_evaluation_file(path)
    assert stored.suite == {"task": "detection"}
    assert stored.extras == {"seconds": 1.5}
    for name, score in theirs.items():
        assert table[name].value == pytest.approx(score.value, nan_ok=True)
        assert stored.metrics[name].value == pytest.approx(score.value, nan_ok=True)
        assert stored.metrics[name].breakdown == pytest.approx(score.breakdown)
        assert stored.metrics[name].n_evaluated == score.n_evaluated


def test_the_short_form_has_scores_and_no_rows(tmp_path: Path) -> None:
    path = tmp_path / "metrics.json"
    theirs = written_by_krisis(path, full=False)
    stored = load_evaluation_file(path)
    assert stored.results is None
    assert stored.metrics["accuracy"].value == theirs["accuracy"].value
    assert stored.extras == {"seconds": 1.5}
    with pytest.raises(FormatError, match="contains the scores of 8 metrics but no rows"):
        abstain.read(path)


def test_krisis_reads_written_files(tmp_path: Path) -> None:
    scores = [metric(RESULTS) for metric in default_benchmark_metrics()]
    path = write_evaluation_file(tmp_path / "ours.json", RESULTS, scores, backend_name="mock", suite={"a": 1})
    content = json.loads(path.read_text())
    rows = [krisis.EvaluationResult(**row) for row in content["evaluation_results"]]
    assert krisis.Accuracy()(rows).value == scores[0].value
    assert content["n_evaluation_results"] == 3
    assert content["metrics"]["deferral_alignment"]["value"] == 1.0
    assert list(content["metrics"]) == sorted(content["metrics"])
    # Fields that only abstain has are written only if they are not the defaults.
    assert "cluster" not in content["evaluation_results"][0]


def test_a_written_file_is_read_back_unchanged(tmp_path: Path) -> None:
    rows = [
        *RESULTS,
        EvaluationResult(None, 1, failed=True, signals={"margin": 0.3}),
        EvaluationResult(1, None),
    ]
    path = write_evaluation_file(tmp_path / "ours.json", rows)
    assert list(load_evaluation_file(path).results or ()) == rows
    assert items_to_results(abstain.read(path)) == rows


def test_undefined_scores_are_null_with_their_reason(tmp_path: Path) -> None:
    scores = [metric(RESULTS[:1]) for metric in default_benchmark_metrics()]
    path = write_evaluation_file(tmp_path / "short.json", None, scores, extras={"seconds": 2})
    content = json.loads(path.read_text())
    assert set(content) == {"metrics", "execution"}
    assert content["metrics"]["balanced_accuracy"]["value"] is None
    back = load_evaluation_file(path).metrics["balanced_accuracy"]
    assert math.isnan(back.value)
    assert back.reason == "needs_at_least_two_classes_in_ground_truth"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Accuracy", "accuracy"),
        ("Balanced Accuracy", "balanced_accuracy"),
        ("Expected Calibration Error", "expected_calibration_error"),
        ("Expected Calibration Error (ECE)", "expected_calibration_error"),
        ("Brier Score", "brier_score"),
        ("Answer Rate (Coverage)", "answer_rate"),
        ("Selective Accuracy (answered only)", "selective_accuracy"),
        ("Abstention Rate", "abstention_rate"),
        ("Deferral Alignment", "deferral_alignment"),
        ("deferral_alignment", "deferral_alignment"),
        ("My Metric", "My Metric"),
    ],
)
def test_old_names_of_metrics_are_read_as_the_new_ones(tmp_path: Path, old: str, new: str) -> None:
    path = tmp_path / "old.json"
    path.write_text(json.dumps({"metrics": {old: {"name": old, "value": 0.5}}, "execution": {}}))
    assert load_evaluation_file(path).metrics == {new: MetricScore(new, 0.5)}
    assert metric_name(old) == new


def test_clusters_and_scale_can_be_set(tmp_path: Path) -> None:
    path = write_evaluation_file(tmp_path / "ours.json", RESULTS)
    assert len(abstain.read(path).cluster_ids) == 3
    items = abstain.read(path, cluster="patient", scale=(0, 1))
    assert items.cluster_ids.tolist() == ["p1", "p2"]
    assert items.scale == (0.0, 1.0)


def test_representations_contain_no_record_text(tmp_path: Path) -> None:
    path = write_evaluation_file(tmp_path / "ours.json", RESULTS)
    assert SECRET not in repr(load_evaluation_file(path))
    assert SECRET not in repr(abstain.read(path))


def test_evaluation_files_are_recognised_by_their_keys() -> None:
    assert looks_like_evaluation_file({"evaluation_results": []})
    assert looks_like_evaluation_file({"metrics": {}, "n_evaluation_results": 3})
    others: list[Any] = [
        {"experiments": []},
        {"metrics": {}},
        {"schema_version": "1", "metrics": {}},
        [],
        None,
        {},
    ]
    for other in others:
        assert not looks_like_evaluation_file(other)


class TestBadInput:
    def write(self, tmp_path: Path, **changes: Any) -> Path:
        row = {"prediction": 1, "ground_truth": 1, **changes}
        row = {key: value for key, value in row.items() if value != "absent"}
        path = tmp_path / "bad.json"
        path.write_text(json.dumps({"evaluation_results": [{"prediction": 1, "ground_truth": 0}, row]}))
        return path

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"prediction": "absent"}, r"evaluation_results\[1\] has no prediction"),
            ({"ground_truth": "absent"}, r"evaluation_results\[1\] has no ground_truth"),
            (
                {"prediction": [1]},
                r"evaluation_results\[1\].prediction must be true or false, a number, text or null, got a list",
            ),
            (
                {"abstained": 1},
                r"evaluation_results\[1\].abstained must be true or false, got a whole number",
            ),
            (
                {"confidence": "high"},
                r"evaluation_results\[1\].confidence must be a number or null, got text",
            ),
            ({"metadata": []}, r"evaluation_results\[1\].metadata must be an object, got a list"),
            (
                {"output_tokens": "many"},
                r"evaluation_results\[1\].output_tokens must be a number or null, got text",
            ),
        ],
    )
    def test_the_error_for_a_wrong_row_names_the_row(
        self, tmp_path: Path, changes: dict[str, Any], message: str
    ) -> None:
        with pytest.raises(FormatError, match=message):
            abstain.read(self.write(tmp_path, **changes))

    def test_a_confidence_outside_its_range_is_an_error(self, tmp_path: Path) -> None:
        with pytest.raises(DataError, match=r"bad.json: confidence must lie in \[0, 1\], got 3 at record 2"):
            abstain.read(self.write(tmp_path, confidence=3))

    def test_a_row_must_be_an_object(self, tmp_path: Path) -> None:
        path = tmp_path / "bad.json"
        path.write_text('{"evaluation_results": [3]}')
        with pytest.raises(FormatError, match=r"evaluation_results\[0\] must be an object"):
            abstain.read(path)

    def test_a_file_without_rows_is_an_error(self, tmp_path: Path) -> None:
        path = tmp_path / "bad.json"
        path.write_text('{"evaluation_results": []}')
        with pytest.raises(FormatError, match="evaluation_results must be a list of at least 1"):
            abstain.read(path)

    def test_nan_is_not_json(self, tmp_path: Path) -> None:
        path = tmp_path / "bad.json"
        path.write_text('{"evaluation_results": [{"prediction": 1, "ground_truth": 1, "confidence": NaN}]}')
        with pytest.raises(FormatError, match="NaN is not JSON"):
            abstain.read(path)

    def test_a_score_must_be_a_number(self, tmp_path: Path) -> None:
        path = tmp_path / "bad.json"
        path.write_text('{"metrics": {"accuracy": {"value": "good"}}, "execution": {}}')
        with pytest.raises(FormatError, match=r"metrics.accuracy: value must be a number or null, got text"):
            load_evaluation_file(path)

    def test_an_evaluation_file_has_no_mode(self, tmp_path: Path) -> None:
        path = write_evaluation_file(tmp_path / "ours.json", RESULTS)
        with pytest.raises(ArgumentError, match="an evaluation file has no mode to choose"):
            abstain.read(path, mode="few_shot")

    def test_another_file_is_an_error(self, tmp_path: Path) -> None:
        path = tmp_path / "other.json"
        path.write_text("{}")
        with pytest.raises(FormatError, match="not an evaluation file"):
            load_evaluation_file(path)

    def test_a_value_that_json_cannot_contain_is_an_error(self, tmp_path: Path) -> None:
        with pytest.raises(DataError, match="a Path cannot be written to JSON|cannot be written to JSON"):
            write_evaluation_file(tmp_path / "x.json", [EvaluationResult(1, 1, metadata={"where": tmp_path})])
        assert not (tmp_path / "x.json").exists()
