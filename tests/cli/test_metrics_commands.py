"""Metrics on the command line: the list, tables by group, comparisons, and the custom metric of the how-to page."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import numpy as np
import pytest

from abstain import cli
from abstain.metrics import EvaluationResult, expected_calibration_error
from abstain.metrics.registry import METRICS
from abstain.readers import write_evaluation_file
from abstain.report.results_json import metrics_schema
from examples import EXAMPLES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Run = Callable[..., tuple[int, str, str]]

SECRET = "Mrs. Example"
HOW_TO = Path(__file__).parents[2] / "docs" / "guides" / "custom-metrics.md"


@pytest.fixture
def run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Callable[..., tuple[int, str, str]]:
    monkeypatch.chdir(tmp_path)

    def call(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["abstain", *(str(argument) for argument in arguments)])
        code: Any = 0
        try:
            cli.main()
        except SystemExit as stop:
            code = stop.code
        text = capsys.readouterr()
        return int(code or 0), text.out, text.err

    return call


def results(seed: int, right: float) -> list[EvaluationResult]:
    rng = np.random.default_rng(seed)
    return [
        EvaluationResult(
            int(rng.random() < right),
            1,
            abstained=bool(rng.random() < 0.2),
            confidence=float(rng.random()),
            raw_response=SECRET,
            metadata={"ckd_stage": int(rng.integers(1, 4)), "sex": str(rng.choice(["F", "M"]))},
            output_tokens=float(rng.integers(5, 50)),
        )
        for _ in range(90)
    ]


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    left = write_evaluation_file(tmp_path / "old.json", results(1, 0.5))
    return left, write_evaluation_file(tmp_path / "new.json", results(1, 0.9))


@pytest.fixture
def own_metric(tmp_path: Path) -> Iterator[str]:
    """The metric of the how-to page, in the file that the page names."""
    text = HOW_TO.read_text()
    found = re.search(r"<!-- file: (\S+) -->\n```python\n(.*?)```", text, flags=re.DOTALL)
    assert found is not None
    name, code = found.groups()
    assert len([line for line in code.splitlines() if line.strip()]) <= 10
    (tmp_path / name).write_text(code)
    yield f"{Path(name).stem}:TokensPerRightAnswer"
    sys.modules.pop(Path(name).stem, None)


def test_the_table_by_stage(run: Run, files: tuple[Path, Path]) -> None:
    code, out, err = run(
        "evaluate", "--input", files[0], "--metric", "default_benchmark", "--by", "ckd_stage", "-o", "m.json",
        "--bootstrap-resamples", 200,
    )  # fmt: skip
    assert (code, err) == (0, "")
    for words in (
        "accuracy",
        "deferral_alignment",
        "undefined",
        "ckd_stage=3",
        "worst against the rest",
        "answers wrong",
    ):
        assert words in out
    assert SECRET not in out
    results_json = json.loads(Path("m.json").read_text())
    jsonschema.validate(results_json, metrics_schema())
    part = results_json["metrics"]
    assert part["by"] == ["ckd_stage"]
    assert [group["values"]["ckd_stage"] for group in part["groups"]] == [1, 2, 3]
    assert part["overall"]["deferral_alignment"]["value"] is None
    assert "should_abstain" in part["overall"]["deferral_alignment"]["reason"]
    assert part["overall"]["accuracy"]["ci95"][0] < part["overall"]["accuracy"]["value"]
    assert part["gaps"]["accuracy"]["gap"]["ci95"]
    assert part["definitions"]["accuracy"]["definition"] == "docs/definitions/accuracy.md#accuracy"
    assert results_json["confidence_variants"] == {}
    assert SECRET not in Path("m.json").read_text()


def test_the_metric_of_the_how_to_is_bootstrapped_compared_and_printed(
    run: Run, files: tuple[Path, Path], own_metric: str
) -> None:
    code, out, err = run(
        "evaluate", files[0], "--metric", f"{own_metric},accuracy", "--by", "sex", "-o", "one.json",
        "--bootstrap-resamples", 60,
    )  # fmt: skip
    assert (code, err) == (0, "")
    assert re.search(r"tokens_per_right_answer +\d+\.\d{3} \[\d+\.\d{3}, \d+\.\d{3}\] +lower", out)
    one = json.loads(Path("one.json").read_text())["metrics"]
    assert one["overall"]["tokens_per_right_answer"]["ci95"]
    assert one["definitions"]["tokens_per_right_answer"]["definition"] == own_metric.split(":", maxsplit=1)[0]
    arguments = ("evaluate", *files, "--metric", own_metric, "-o", "two.json", "--bootstrap-resamples", 60)
    code, _, err = run(*arguments)
    assert code == 3
    assert "--match rows" in err
    code, out, err = run(*arguments, "--match", "rows")
    assert (code, err) == (0, "")
    assert re.search(r"tokens_per_right_answer .* \w+ is better$", out, re.M)
    paired = json.loads(Path("two.json").read_text())
    jsonschema.validate(paired, metrics_schema())
    assert paired["metrics"]["deltas"]["tokens_per_right_answer"]["ci95"][1] < 0
    assert paired["comparison"]["deltas"] == {}


def test_metrics_and_a_confidence_on_a_run(run: Run) -> None:
    code, out, err = run(
        "evaluate", EXAMPLES / "run_a.json", "--mode", "few_shot", "--confidence", "llm", "--metric", "regression",
        "--by", "item", "--bootstrap-resamples", 50, "-o", "m.json",
    )  # fmt: skip
    assert (code, err) == (0, "")
    for words in ("AURC", "mean_absolute_error", "item=Sleep"):
        assert words in out
    results_json = json.loads(Path("m.json").read_text())
    assert set(results_json["confidence_variants"]) == {"llm"}


def test_totals_of_an_instrument(run: Run, tmp_path: Path) -> None:
    arguments = ("evaluate", EXAMPLES / "run_a.json", "--mode", "few_shot", "--bootstrap-resamples", 20)
    metrics = ("--metric", "severity_tier_accuracy,mae", "-o", "m.json")
    code, out, err = run(*arguments, *metrics, "--instrument", "PHQ-8")
    assert (code, err) == (0, "")
    assert "severity_tier_accuracy" in out
    assert "2 of 27 items answered" in out
    code, _, err = run(*arguments, *metrics, "--instrument", "PHQ-9")
    assert code == 2
    assert "unknown instrument 'PHQ-9' (did you mean 'PHQ-8'?)" in err
    (tmp_path / "own.json").write_text('{"name": "x"}')
    code, _, err = run(*arguments, *metrics, "--instrument", "own.json")
    assert code == 3
    assert "an instrument needs name, items, item_scale" in err


class TestList:
    def test_every_metric_is_listed(self, run: Run) -> None:
        code, out, err = run("metrics")
        assert (code, err) == (0, "")
        for name in METRICS:
            assert name in out
        assert "default_benchmark" in out

    def test_one_metric_in_full(self, run: Run) -> None:
        _, out, _ = run("metrics", "abstention_precision", "coverage_at_risk@0.05")
        assert "undefined if: no row has guidance on whether to abstain" in out
        assert "docs/definitions/abstention.md#abstention_precision" in out
        assert "parameter: risk = 0.05" in out

    def test_a_bundle_in_full(self, run: Run) -> None:
        _, out, _ = run("metrics", "default_accuracy")
        assert "balanced_accuracy" in out

    def test_as_json(self, run: Run) -> None:
        _, out, _ = run("metrics", "--json")
        listed = json.loads(out)
        assert [metric["name"] for metric in listed] == list(METRICS)
        assert set(listed[0]) >= {"name", "direction", "needs", "unit", "definition"}

    def test_an_unknown_one(self, run: Run) -> None:
        code, _, err = run("metrics", "acuracy")
        assert code == 2
        assert "did you mean 'accuracy'?" in err


@pytest.mark.parametrize(
    ("flags", "code", "message"),
    [
        (("--metric", "acuracy"), 2, "unknown metric 'acuracy' (did you mean 'accuracy'?)"),
        (
            ("--metric", "accuracy", "--by", "stage"),
            2,
            "unknown group column 'stage' (did you mean 'ckd_stage'?)",
        ),
        (("--by", "stage"), 2, "unknown group column 'stage' (did you mean 'ckd_stage'?)"),
        (("--metric", "nowhere:Metric"), 2, "cannot import 'nowhere'"),
        (("--metric", "risk_at_coverage@95"), 2, "did you mean 0.95?"),
        (("--metric", ","), 2, "unknown metric ''"),
    ],
)
def test_mistakes(
    run: Run, files: tuple[Path, Path], flags: tuple[str, ...], code: int, message: str
) -> None:
    found, out, err = run("evaluate", files[0], *flags, "-o", "m.json")
    assert found == code
    assert message in err
    assert out == ""
    assert not Path("m.json").exists()


def test_the_bins_of_a_calibration_error_are_set_by_name(run: Run, tmp_path: Path) -> None:
    rows = results(3, 0.7)
    write_evaluation_file(tmp_path / "results.json", rows)
    code, out, _ = run("evaluate", "results.json", "-m", "ece,ece@3", "--json")
    assert code == 0
    found = json.loads(out)["metrics"]["overall"]
    answered = [row for row in rows if not row.abstained]
    right = [float(row.prediction == row.ground_truth) for row in answered]
    stated: list[Any] = [row.confidence for row in answered]
    for name, bins in (("expected_calibration_error", 15), ("expected_calibration_error@3", 3)):
        expected = expected_calibration_error(right, stated, bins=bins)
        assert found[name]["value"] == pytest.approx(expected)
    assert "ece@10 is the error in 10 bins" in " ".join(run("metrics", "--help")[1].split())
