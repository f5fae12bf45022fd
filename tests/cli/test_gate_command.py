"""`abstain gate`: exit codes for CI, and files that CI systems read."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import pytest
from typer.testing import CliRunner

from abstain import Items, gate
from abstain.cli import app
from abstain.report.gate import gate_junit, gate_markdown, gate_text
from examples import EXAMPLES

if TYPE_CHECKING:
    from pathlib import Path

RUN = EXAMPLES / "run_b.json"
FEW_SHOT = (RUN, "--mode", "few_shot", "--bootstrap-resamples", 200)
PASS, FAIL, OPEN = "cmax below 0.5", "cmax below 0.9", "cmax below 0.68"


def call(*arguments: object) -> Any:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("conditions", "options", "code"),
    [
        ((PASS,), (), 0),
        ((FAIL,), (), 1),
        ((OPEN,), (), 4),
        ((OPEN,), ("--inconclusive", "pass"), 0),
        ((OPEN,), ("--inconclusive", "fail"), 1),
        ((PASS, OPEN), (), 4),
        ((OPEN, FAIL), ("--inconclusive", "pass"), 1),
        ((PASS,), ("--quiet",), 0),
        ((FAIL,), ("--format", "json"), 1),
    ],
)
def test_exit_codes(conditions: tuple[str, ...], options: tuple[str, ...], code: int) -> None:
    flags = [part for condition in conditions for part in ("--fail-if", condition)]
    done = call("gate", *FEW_SHOT, *flags, *options)
    assert done.exit_code == code, done.stdout
    assert done.stderr == ""
    assert (done.stdout == "") == ("--quiet" in options)


def test_against_a_baseline() -> None:
    options = ("--baseline", RUN, "--baseline-mode", "zero_shot")
    assert call("gate", *FEW_SHOT, *options, "--fail-if", "augrc worse by 0.02").exit_code == 0
    done = call("gate", *FEW_SHOT, *options, "--fail-if", "augrc worse by 0.001")
    assert done.exit_code == 4
    assert "augrc at coverage 0.58 is better by 0.009 [-0.002, 0.021], which spans 0.001\n" in done.stdout
    # The same run twice: no cluster differs, which 55 clusters do not make certain.
    same = call(
        "gate",
        *FEW_SHOT,
        "--baseline",
        RUN,
        "--fail-if",
        "augrc worse by 0",
        "--fail-if",
        "augrc worse by 0.1",
    )
    assert same.exit_code == 4
    assert "augrc is worse by 0.000 [-0.0" in same.stdout
    assert "within 0.1\n" in same.stdout


def test_files_for_ci_systems(tmp_path: Path) -> None:
    conditions = [part for text in (PASS, FAIL, OPEN) for part in ("--fail-if", text)]
    done = call(
        "gate", *FEW_SHOT, *conditions, "--junit", "gate.xml", "--markdown", "summary.md", "-o", "gate.json"
    )
    assert (done.exit_code, done.stdout) == (1, "")
    suites = ET.parse(tmp_path / "gate.xml").getroot()
    assert suites.attrib == {"tests": "3", "failures": "1", "errors": "1"}
    cases = suites.findall("testsuite/testcase")
    assert [case.get("name") for case in cases] == [f"fails if {text}" for text in (PASS, FAIL, OPEN)]
    assert [case[0].tag for case in cases] == ["system-out", "failure", "error"]
    assert cases[2][0].get("type") == "inconclusive"
    summary = (tmp_path / "summary.md").read_text()
    assert summary.startswith("**Gate: fail**\n\n| fails if | verdict | measured | conclusion |\n")
    assert "| cmax below 0.9 | fail | 0.672 [" in summary
    rows = json.loads((tmp_path / "gate.json").read_text())["tables"][0]["rows"]
    assert [(row["verdict"], row["bound"]) for row in rows] == [
        ("pass", 0.5),
        ("fail", 0.9),
        ("inconclusive", 0.68),
    ]


def test_json_is_printed_as_by_format_json_and_a_file_is_written_as_well(tmp_path: Path) -> None:
    conditions = [part for text in (PASS, FAIL) for part in ("--fail-if", text)]
    done = call("gate", *FEW_SHOT, *conditions, "--json", "-o", "gate.md")
    assert (done.exit_code, done.stderr) == (1, "")
    assert done.stdout == call("gate", *FEW_SHOT, *conditions, "--format", "json").stdout
    assert [row["verdict"] for row in json.loads(done.stdout)["tables"][0]["rows"]] == ["pass", "fail"]
    assert "| cmax below 0.9 | fail |" in (tmp_path / "gate.md").read_text()


def test_junit_counts_inconclusive_conditions_as_requested(tmp_path: Path) -> None:
    for verdict, tag in (("pass", "system-out"), ("fail", "failure")):
        call("gate", *FEW_SHOT, "--fail-if", OPEN, "--inconclusive", verdict, "--junit", "gate.xml")
        case = ET.parse(tmp_path / "gate.xml").getroot().find("testsuite/testcase")
        assert case is not None
        assert case[0].tag == tag


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ((*FEW_SHOT,), 2, "--fail-if"),
        ((*FEW_SHOT, "--fail-if", "cmax bellow 0.5"), 2, "did you mean 'below'?"),
        ((*FEW_SHOT, "--fail-if", "aurc worse by 0.1"), 2, "pass the baseline"),
        ((*FEW_SHOT, "--fail-if", PASS, "--inconclusive", "maybe"), 2, "unknown inconclusive 'maybe'"),
        ((*FEW_SHOT, "--fail-if", PASS, "--junit", "no/such/gate.xml"), 2, "create it first"),
        ((*FEW_SHOT, "--fail-if", "ece above 0.1"), 3, "needs a confidence in [0, 1]"),
        ((*FEW_SHOT, "--fail-if", PASS, "--json", "--quiet"), 2, "--json and --quiet exclude each other"),
        ((*FEW_SHOT, "--fail-if", PASS, "--json", "--github"), 2, "--json and --github exclude each other"),
        ((*FEW_SHOT, "--fail-if", PASS, "--json", "--format", "csv"), 2, "--json and --format exclude"),
        ((*FEW_SHOT, "--fail-if", PASS, "--interval", "none"), 2, "unknown interval 'none'"),
        (
            (*FEW_SHOT, "--fail-if", "aurc worse by 1", "--baseline", EXAMPLES / "run_a.json"),
            3,
            "--intersection-only",
        ),
    ],
)
def test_a_wrong_call_ends_with_an_error_message(
    arguments: tuple[object, ...], code: int, message: str
) -> None:
    done = call("gate", *arguments)
    assert done.exit_code == code, done.stdout
    assert message in done.stderr


def test_hostile_names_stay_text() -> None:
    """The name of a metric or a cluster is escaped in XML, in Markdown and on the terminal."""
    hostile = "</testcase><script>alert(1)</script>\x1b[31m|x|\x00"
    run = Items.from_arrays([1] * 20, [1] * 20, confidence=[1.0] * 20)
    result = gate(run, "accuracy below 0.5", resamples=50)
    (check,) = result.checks
    bad = replace(result, checks=(replace(check, verdict="fail", sentence=hostile),), cluster_noun=hostile)
    case = ET.fromstring(gate_junit(bad)).find("testsuite/testcase")
    assert case is not None
    assert [child.tag for child in case] == ["failure"]
    assert "<script" not in gate_markdown(bad)
    assert "\x1b" not in gate_text(bad)


def test_conditions_from_a_file(tmp_path: Path) -> None:
    gates = tmp_path / "gates.txt"
    gates.write_text("# what a release must keep\ncmax below 0.1\n\n  aurc above 0.9  \n")
    done = call("gate", RUN, "--mode", "few_shot", "--fail-if", f"@{gates}")
    assert done.exit_code == 0, done.output
    assert "cmax is 0.672" in done.stdout
    assert "not above 0.9" in done.stdout
    gates.write_text("# nothing\n")
    done = call("gate", RUN, "--mode", "few_shot", "--fail-if", f"@{gates}")
    assert (done.exit_code, "has no conditions" in done.stderr) == (2, True)
    gates.write_bytes(b"\xff\xfe")
    assert call("gate", RUN, "--mode", "few_shot", "--fail-if", f"@{gates}").exit_code == 3
    done = call("gate", RUN, "--mode", "few_shot", "--fail-if", f"@{tmp_path / 'none.txt'}")
    assert (done.exit_code, "no such file" in done.stderr) == (2, True)


def test_github_gets_annotations_and_a_summary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    summary = tmp_path / "summary.md"
    summary.write_text("# before\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    conditions = (
        "--fail-if",
        "cmax below 90%",
        "--fail-if",
        "aurc above 0.9",
        "--fail-if",
        "cmax below 0.69",
    )
    done = call("gate", RUN, "--mode", "few_shot", *conditions, "--github")
    assert done.exit_code == 1
    lines = [line for line in done.stdout.splitlines() if line.startswith("::")]
    assert [line.partition("::cmax is 0.672 [")[0] for line in lines] == [
        "::error title=abstain gate, fail",
        "::warning title=abstain gate, inconclusive",
    ]
    text = summary.read_text()
    assert text.startswith("# before\n**Gate: fail**")
    assert "Answers are ranked by" in text
    assert call("gate", RUN, "--mode", "few_shot", *conditions).stdout.count("::") == 0
    assert summary.read_text() == text
