"""`evaluate` computes every metric that `check` reports as possible, and `check` reports problems of logs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hypothesis
import pytest
from hypothesis import HealthCheck, Phase
from typer.testing import CliRunner

import abstain
from abstain.cli import app
from abstain.evaluation._check import _METRICS
from abstain.readers._rules import REFUSALS
from examples import EXAMPLES
from fuzz._tables import Table, as_csv, sound_tables

if TYPE_CHECKING:
    from abstain.evaluation import SourceCheck

DATA = Path(__file__).parents[2] / "docs" / "data"


def called(*arguments: str) -> Any:
    return CliRunner().invoke(app, list(arguments))


def evaluate_possible_metrics(checked: SourceCheck, source: Any, **options: Any) -> int:
    """Evaluate every kind of metric that `check` reports as possible, and return their number."""
    count = 0
    for kind, state in checked.metrics.items():
        names = _METRICS.get(kind, ())
        if not state.possible or not names:
            continue
        confidence = state.reason.removeprefix("with --confidence ") or None
        if confidence:
            assert state.reason.startswith("with --confidence ")
        items = abstain.read(source, **options)
        table = abstain.evaluate(items, metrics=names, confidence=confidence, interval="none").metrics
        assert table is not None
        estimates = [table.estimates[name] for name, key in table.keys_of.items() if key.metric in names]
        assert len(estimates) >= len(names), kind
        assert all(estimate.defined for estimate in estimates), kind
        count += 1
    return count


@pytest.mark.parametrize("name", ["run_a.json", "run_b.json"])
@pytest.mark.parametrize("mode", ["zero_shot", "few_shot"])
def test_possible_metrics_of_run_files_can_be_evaluated(name: str, mode: str) -> None:
    checked = abstain.check(EXAMPLES / name, mode=mode)
    assert evaluate_possible_metrics(checked, EXAMPLES / name, mode=mode) >= 5
    # The default confidence counts evidence and is not a probability, but another one is.
    assert checked.metrics["calibration (ECE, smooth ECE)"].possible
    assert checked.metrics["calibration (ECE, smooth ECE)"].reason.startswith("with --confidence ")


@pytest.mark.parametrize("path", sorted(DATA.glob("*.csv")), ids=lambda path: path.name)
def test_possible_metrics_of_tutorial_tables_can_be_evaluated(path: Path) -> None:
    checked = abstain.check(path, prediction="answer")
    assert evaluate_possible_metrics(checked, path, prediction="answer") >= 4


@pytest.mark.slow
@hypothesis.given(table=sound_tables())
@hypothesis.settings(
    max_examples=25, deadline=None, suppress_health_check=list(HealthCheck), phases=(Phase.generate,)
)
def test_possible_metrics_of_fuzz_tables_can_be_evaluated(
    tmp_path_factory: pytest.TempPathFactory, table: Table
) -> None:
    path = tmp_path_factory.mktemp("check") / "t.csv"
    path.write_bytes(as_csv(table))
    options: dict[str, Any] = {name: value for name, value in table.options.items() if name != "loss"}
    if "scale" in options:
        options["scale"] = [float(end) for end in options["scale"].split(",")]
    checked = abstain.check(path, **options)
    if not checked.problems:
        evaluate_possible_metrics(checked, path, **options)


def test_the_reason_names_answered_rows_without_a_confidence(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("truth,prediction,confidence\n1,1,0.5\n0,1,\n")
    checked = abstain.check(path)
    area = checked.metrics["risk-coverage curve, AURC, AUGRC"]
    assert not area.possible
    assert "some answered rows have no confidence, so they cannot be ranked" in area.reason
    # Real numbers have no default loss.
    path.write_text("truth,prediction,confidence\n1.5,1,0.5\n0.2,1,0.7\n")
    checked = abstain.check(path)
    assert not checked.metrics["risk-coverage curve, AURC, AUGRC"].possible
    assert checked.metrics["mean absolute error (abs)"].possible


def test_guidance_needs_values_and_not_only_a_column(tmp_path: Path) -> None:
    path, kind = tmp_path / "t.csv", "abstention safety, deferral alignment"
    path.write_text("truth,prediction,abstained,should_abstain\n1,1,false,\n0,1,true,\n")
    assert not abstain.check(path).metrics[kind].possible
    path.write_text("truth,prediction,abstained,should_abstain\n1,1,false,false\n0,1,true,true\n")
    assert abstain.check(path).metrics[kind].possible


def sample(number: int, answer: str, grade: str | None, *, failed: bool = False) -> dict[str, Any]:
    scores = {} if failed else {"match": {"value": grade, "answer": answer}}
    error = {"error": {"message": "timeout", "traceback": "", "traceback_ansi": ""}} if failed else {}
    output = {"choices": [{"message": {"role": "assistant", "content": answer}}]}
    return {"id": number, "epoch": 1, "target": "Paris", "scores": scores, "output": output, **error}


def log(path: Path, samples: list[dict[str, Any]]) -> Path:
    path.write_text(
        json.dumps({"version": 2, "status": "success", "eval": {"task": "t"}, "samples": samples})
    )
    return path


def test_a_log_in_which_everything_failed_is_a_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = log(tmp_path / "log.json", [sample(number, "", None, failed=True) for number in range(4)])
    message = "there is no item to evaluate: of 4 items, 4 failed and 0 have no label"
    assert abstain.check(path).problems == (message,)
    done = called("evaluate", "log.json")
    assert done.exit_code == 3
    assert done.stdout == ""
    assert done.stderr.splitlines()[-1] == f"abstain: log.json: {message}"
    done = called("check", "log.json")
    assert done.exit_code == 3
    assert "no problems found" not in done.stdout


def test_a_warning_about_answers_that_look_like_refusals_proposes_a_rule(tmp_path: Path) -> None:
    answers = ["I don\u2019t know, Mrs. Example", "We CANNOT answer this", "Sorry: i don't  know", "Rome"]
    samples = [sample(number, answers[number % 4], "I") for number in range(40)]
    # A right answer does not count as a refusal.
    samples.append(sample(40, "I don't know", "C"))
    path = log(tmp_path / "log.json", samples)
    result = abstain.evaluate(abstain.read(path))
    (warning,) = [warning for warning in result.warnings if warning.code == "looks_like_refusals"]
    rule = "phrases:I don't know|cannot answer"
    assert str(warning) == (
        "30 of 41 answers look like refusals; to treat them as abstentions, add "
        f'--abstain-rule "{rule}" (abstain_rule=)'
    )
    assert abstain.read(path, abstain_rule=rule).counts.abstained == 30
    assert "Example" not in str(warning)
    # If any rule was passed, there is no warning.
    with_rule = abstain.evaluate(abstain.read(path, abstain_rule="phrases:Rome"))
    assert "looks_like_refusals" not in [warning.code for warning in with_rule.warnings]
    # A few refusals do not cause a warning.
    log(path, [sample(number, "I don't know" if number < 2 else "Rome", "I") for number in range(40)])
    assert "looks_like_refusals" not in [each.code for each in abstain.evaluate(abstain.read(path)).warnings]


def test_check_proposes_the_rule_and_how_to_record_a_confidence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    log(tmp_path / "log.json", [sample(number, "cannot say", "I") for number in range(5)])
    done = called("check", "log.json")
    text = " ".join(done.stdout.split())
    rule = '--abstain-rule "phrases:cannot say"'
    assert f"log.json: 5 of 5 answers look like refusals; to treat them as abstentions, add {rule}" in text
    assert "request log-probabilities (logprobs=True) or epochs, or put a number into Score.metadata" in text
    assert "docs/guides/tables.md#recording-a-confidence" in text
    done = called("evaluate", "log.json")
    assert "record one: request log-probabilities" in " ".join(done.stdout.split())


def test_refusals_are_counted_for_each_system_of_a_table(tmp_path: Path) -> None:
    rows = [f"m{row % 2},{row // 2},x,{'not enough information' if row % 2 else 'x'}" for row in range(20)]
    (tmp_path / "t.csv").write_text("\n".join(["system,item,truth,prediction", *rows, ""]))
    result = abstain.evaluate(abstain.readers.read_systems(tmp_path / "t.csv"), metrics="accuracy")
    messages = {
        name: [str(each) for each in system.warnings if each.code == "looks_like_refusals"]
        for name, system in result.systems.items()
    }
    assert messages["m0"] == []
    assert messages["m1"][0].startswith("10 of 10 answers look like refusals")


def test_the_rule_of_every_phrase_finds_it() -> None:
    for phrase in REFUSALS:
        rule = abstain.readers.AbstentionRule.parse(f"phrases:{phrase}")
        assert rule.determine(f"Well, {phrase.upper()}.").value == "abstained"


def test_the_unusual_status_of_a_log_has_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = log(tmp_path / "log.json", [sample(number, "x", "C") for number in range(2)])
    for status, message in (("cancelled", "is cancelled"), ("Mrs. Example", "is unknown")):
        path.write_text(path.read_text().replace('"success"', json.dumps(status)))
        done = called("evaluate", "log.json")
        assert f"log.json: the log's status {message}; samples may be missing" in done.stderr
        assert "Example" not in done.stderr
        path.write_text(path.read_text().replace(json.dumps(status), '"success"'))
