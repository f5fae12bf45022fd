"""`abstain threshold`, `abstain apply` and a gate with a policy: output, files and error messages."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from jsonschema import Draft202012Validator
from typer.testing import CliRunner

import abstain
from abstain.cli import app
from guaranteed import drawn

CLUSTERED = ("--cluster", "patient")


def call(*arguments: object) -> Any:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, options in {
        "calibration": {"seed": 1},
        "test": {"seed": 2, "base": -3.5},
        "worse": {"seed": 3, "base": -2.0, "effect": 3.0},
        "few": {"seed": 4},
    }.items():
        columns = drawn(10 if name == "few" else 300, **options)  # type: ignore[arg-type]
        pl.DataFrame(columns).write_csv(f"{name}.csv")


def words_of(text: str) -> str:
    """A text without its line breaks."""
    return " ".join(text.split())


def chosen(*options: object) -> Any:
    return call("threshold", "calibration.csv", "--risk", "12%", *CLUSTERED, "-o", "policy.json", *options)


def test_the_command_gives_the_result_of_the_python_function(tmp_path: Path) -> None:
    done = chosen("--sure", "95%")
    assert done.exit_code == 0, done.stderr
    items = abstain.read(tmp_path / "calibration.csv", cluster="patient")
    policy = abstain.choose_threshold(items, risk=0.12, sure=0.95)
    observed = policy.observed
    assert observed is not None
    assert words_of(done.stdout).startswith(
        "To be 95% sure that at most 12% of answers are wrong, answer those with a confidence of at least "
        f"{policy.shown_threshold:g}: {round(100 * observed.coverage)}% of items, {observed.answered:,} of 1,800. "
    )
    assert "random weights of the patients and of one pseudo-cluster. This test is asymptotic" in words_of(
        done.stdout
    )
    assert done.stdout.splitlines()[-1] == "policy: policy.json"
    written = abstain.read_policy("policy.json")
    assert written.threshold == policy.threshold
    assert written.data.sha256 == items.provenance["sha256"]
    assert written.confidence.name == "prob"


def test_the_file_fits_the_schema_that_is_printed() -> None:
    chosen()
    schema = json.loads(call("schema", "policy").stdout)
    with open("policy.json") as file:  # noqa: PTH123
        Draft202012Validator(schema).validate(json.load(file))
    printed = chosen("--json")
    Draft202012Validator(schema).validate(json.loads(printed.stdout))


def test_without_a_guarantee_the_exit_code_is_4_and_there_is_no_threshold() -> None:
    done = call("threshold", "few.csv", *CLUSTERED, "-o", "policy.json")
    assert done.exit_code == 4
    assert words_of(done.stdout).startswith(
        "No threshold has this guarantee: 95% sure that at most 5% of answers are wrong."
    )
    assert (
        "even without a single error, 59 patients are needed, and there are 10"
        in words_of(done.stdout).lower()
    )
    assert abstain.read_policy("policy.json").threshold is None
    refused = call("apply", "policy.json", "test.csv", "-o", "decided.csv")
    assert refused.exit_code == 2
    assert "this policy has no risk guarantee" in refused.stderr


def test_check_split_and_gate() -> None:
    chosen()
    kept = call("threshold", "policy.json", "--check", "test.csv", *CLUSTERED)
    assert kept.exit_code == 0
    assert kept.stdout.startswith(
        "The risk guarantee that at most 12% of answers are wrong is kept.\nRisk among answers "
    )
    assert "(95% confidence intervals over 300 patients)" in words_of(kept.stdout)
    document = json.loads(
        call("threshold", "policy.json", "--check", "worse.csv", *CLUSTERED, "--json").stdout
    )
    assert document["verdict"] == "broken"
    assert document["risk"]["low"] > document["guaranteed"] == 0.12
    split = call("threshold", "calibration.csv", "--risk", "15%", *CLUSTERED, "--split")
    assert split.exit_code == 0
    assert "\nCheck on the other " in split.stdout
    both = json.loads(
        call("threshold", "calibration.csv", "--risk", "15%", *CLUSTERED, "--split", "--json").stdout
    )
    assert set(both) == {"policy", "check"}
    assert both["policy"]["data"]["clusters"] + both["check"]["clusters"] == 300
    passed = call("gate", "test.csv", "--policy", "policy.json", *CLUSTERED)
    assert passed.exit_code == 0
    assert "the risk guarantee that at most 12% of answers are wrong is kept: its risk is " in passed.stdout
    failed = call("gate", "worse.csv", "--policy", "policy.json", *CLUSTERED, "--fail-if", "cmax below 0.5")
    assert failed.exit_code == 1
    assert "the risk guarantee that at most 12% of answers are wrong is broken: its risk is " in failed.stdout
    assert call("gate", "few.csv", "--policy", "policy.json", *CLUSTERED).exit_code == 4
    assert (
        call("gate", "few.csv", "--policy", "policy.json", *CLUSTERED, "--inconclusive", "fail").exit_code
        == 1
    )


def test_a_split_into_equal_halves_is_checked() -> None:
    """60 patients with 8 items each; 30 of them choose, and 30 check."""
    pl.DataFrame(drawn(60, 8, seed=3)).write_csv("balanced.csv")
    done = call("threshold", "balanced.csv", "--risk", "30%", *CLUSTERED, "--split")
    assert done.exit_code == 0, done.stderr
    assert "\nCheck on the other 30 patients:\n" in done.stdout


def test_a_check_and_a_gate_have_the_same_exit_codes() -> None:
    chosen()
    for data, code, verdict in (("test", 0, "kept"), ("worse", 1, "broken"), ("few", 4, "inconclusive")):
        checked = call("threshold", "policy.json", "--check", f"{data}.csv", *CLUSTERED, "--json")
        assert (checked.exit_code, json.loads(checked.stdout)["verdict"]) == (code, verdict)
        assert call("threshold", "policy.json", "--check", f"{data}.csv", *CLUSTERED).exit_code == code
        assert call("gate", f"{data}.csv", "--policy", "policy.json", *CLUSTERED).exit_code == code


def test_a_declared_scale_bounds_the_absolute_error() -> None:
    done = call(
        "threshold", "calibration.csv", "--risk", "12%", *CLUSTERED, "--loss", "abs", "--scale", "0,1"
    )
    assert done.exit_code == 0, done.stderr
    same = call(
        "threshold", "calibration.csv", "--risk", "12%", *CLUSTERED, "--loss", "abs_norm", "--scale", "0,1"
    )
    assert words_of(done.stdout).replace("(abs)", "(abs_norm)") == words_of(same.stdout)


def test_failed_items_of_a_run_need_no_signal(tmp_path: Path) -> None:
    run = Path(__file__).parents[1] / "data" / "examples" / "run_a.json"
    options = (run, "--mode", "few_shot", "--confidence", "token_msp")
    assert call("evaluate", *options, "--interval", "none").exit_code == 0
    chosen = call("threshold", *options, "--risk", "40%")
    assert chosen.exit_code == 0, chosen.stderr
    assert "of 216. " in words_of(chosen.stdout)


def test_warnings_come_before_the_numbers_and_lines_are_wrapped() -> None:
    run = Path(__file__).parents[1] / "data" / "examples" / "run_a.json"
    done = call("threshold", run, "--mode", "few_shot", "--confidence", "token_msp", "--risk", "40%")
    assert done.output.startswith("warning: 27 participants are few")
    assert done.output.index("To be 95% sure") > done.output.rindex("warning: ")
    assert max(map(len, done.stdout.splitlines())) <= 120


def test_apply_reports_its_decisions_and_a_drift() -> None:
    chosen()
    done = call("apply", "policy.json", "test.csv", "-o", "decided.csv")
    assert done.exit_code == 0
    assert done.stdout.splitlines()[-1] == "decisions: decided.csv"
    found = pl.read_csv("decided.csv")
    policy = abstain.read_policy("policy.json")
    answered = int((found["decision"] == "answer").sum())
    assert done.stdout.splitlines()[0] == (
        f"{answered:,} of 1,800 rows ({answered / 18:.1f}%) are answered, {1800 - answered:,} deferred."
    )
    assert ((found["prob"] >= policy.threshold) == (found["decision"] == "answer")).all()
    moved = call("apply", "policy.json", "worse.csv", "-q")
    assert moved.exit_code == 0
    assert moved.stdout == ""
    pl.DataFrame(drawn(300, seed=5, base=0.0)).write_csv("moved.csv")
    moved = call("apply", "policy.json", "moved.csv", "--column", "policy")
    assert "warning: the confidences have changed" in moved.stderr
    assert "the risk guarantee may be void" in moved.stderr


def test_apply_keeps_cells_unless_a_safe_csv_is_requested() -> None:
    chosen()
    cells = ["=1+1", "+cmd", "-2.5", "-a", "@x", " =y", "\tz", "\uff1dw", "plain", '=1,"2"', ""]
    Path("notes.csv").write_text(
        '"=note",prob\n' + "".join(f'"{cell.replace(chr(34), chr(34) * 2)}",0.5\n' for cell in cells)
    )

    def rows(path: str) -> list[list[str]]:
        with Path(path).open(newline="", encoding="utf-8") as file:
            return list(csv.reader(file))

    assert call("apply", "policy.json", "notes.csv", "-o", "kept.csv").exit_code == 0
    assert [row[0] for row in rows("kept.csv")] == ["=note", *cells]
    assert call("apply", "policy.json", "notes.csv", "-o", "safe.csv", "--safe-csv").exit_code == 0
    unchanged = ("-2.5", "plain", "")
    safe = [cell if cell in unchanged else f"'{cell}" for cell in cells]
    assert [row[0] for row in rows("safe.csv")] == ["'=note", *safe]
    assert rows("safe.csv")[0][1:] == ["prob", "decision"]
    failed = call("apply", "policy.json", "notes.csv", "--safe-csv")
    assert failed.exit_code == 2
    assert "is for an output file" in failed.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("threshold", "calibration.csv", "--risk", "5"), 2, "got 5; did you mean 5%?"),
        (("threshold", "calibration.csv", "--risk", "0%"), 2, "risk must lie strictly between 0 and 1"),
        (("threshold", "calibration.csv", "--sure", "95"), 2, "did you mean 95%?"),
        (("threshold", "calibration.csv", "--loss", "abs"), 2, "loss abs has no largest value"),
        (("threshold", "calibration.csv", "--confidence", "pro"), 2, "has no column 'pro'"),
        (
            ("threshold", "calibration.csv", *CLUSTERED, "--method", "binomial"),
            2,
            "some patients have several items",
        ),
        (("threshold", "one.csv", *CLUSTERED), 3, "there is only one patient"),
        (("threshold", "unsure.csv", *CLUSTERED), 2, "a threshold needs a confidence"),
        (
            ("threshold", "policy.json", "--check", "calibration.csv", *CLUSTERED),
            2,
            "a check on them would be too optimistic",
        ),
        (("threshold", "policy.json", "--check", "other.csv", *CLUSTERED), 2, "has no column 'prob'"),
        (
            ("threshold", "policy.json", "--check", "test.csv", "--confidence", "x"),
            2,
            "its threshold is not valid for x",
        ),
        (("threshold", "policy.json", "--check", "test.csv", "--split"), 2, "omit --split and -o"),
        (("threshold", "newer.json", "--check", "test.csv"), 3, "is newer than this release of abstain"),
        (("threshold", "test.csv", "--check", "test.csv"), 3, "not JSON"),
        (("apply", "policy.json", "other.csv"), 2, "A threshold is valid for one confidence only"),
        (("apply", "newer.json", "test.csv"), 3, "update abstain"),
        (("apply", "policy.json", "test.csv", "-o", "test.csv"), 2, "is the input"),
        (("apply", "policy.json", "policy.json"), 3, "not a run file"),
        (
            ("apply", "test.csv", "policy.json"),
            2,
            "test.csv is not a policy, and policy.json is one; the policy comes first: "
            "abstain apply policy.json test.csv",
        ),
        (
            ("threshold", "test.csv", "--check", "policy.json"),
            2,
            "test.csv is not a policy, and policy.json is one; the policy comes first: "
            "abstain threshold policy.json --check test.csv",
        ),
        (
            ("threshold", "policy.json"),
            2,
            "policy.json is a policy, and INPUT is the calibration data; to check the policy, add --check",
        ),
        (("gate", "test.csv"), 2, "a gate needs a condition (--fail-if) or a policy (--policy)"),
        (("gate", "test.csv", "--policy", "newer.json"), 3, "update abstain"),
    ],
)
def test_a_wrong_call_ends_with_an_error_message(arguments: tuple[str, ...], code: int, words: str) -> None:
    chosen()
    with open("policy.json") as file:  # noqa: PTH123
        text = file.read()
    with open("newer.json", "w") as file:  # noqa: PTH123
        file.write(text.replace('"schema_version": "1"', '"schema_version": "2"'))
    frame = pl.DataFrame(drawn(40, seed=7))
    frame.rename({"prob": "sureness"}).write_csv("other.csv")
    frame.drop("prob").write_csv("unsure.csv")
    frame.with_columns(pl.lit("p1").alias("patient")).write_csv("one.csv")
    done = call(*arguments)
    assert done.exit_code == code, done.stderr
    assert words in done.stderr
