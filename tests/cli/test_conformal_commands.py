"""`abstain intervals` and `abstain sets`: input files, exit codes and output files."""

from __future__ import annotations

import csv
import gzip
import json
import sys
from typing import TYPE_CHECKING

import numpy as np
import pytest

from abstain import cli
from abstain.metrics import intervals, sets

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


class Outcome:
    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err


@pytest.fixture
def run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Callable[..., Outcome]:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    truth = rng.normal(size=90)
    rows = [
        {
            "y": value,
            "lo": -1.0,
            "hi": 1.0,
            "lo90": -1.7,
            "hi90": "inf" if row == 0 else 1.7,
            "patient": row // 3,
            "site": "ab"[row % 2],
            "age": 20 + row,
            "crossed": 5 if row == 7 else -1,
            "word": "secret" if row == 4 else row,
        }
        for row, value in enumerate(truth.tolist())
    ]
    with (tmp_path / "preds.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    lines = [
        json.dumps({"label": "xyz"[row % 3], "set": ["x", "y"][: row % 3], "x": 1, "y": row % 2, "z": 0})
        for row in range(60)
    ]
    (tmp_path / "sets.jsonl").write_text("\n".join(lines) + "\n")

    def call(*arguments: object) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["abstain", *(str(argument) for argument in arguments)])
        code: object = 0
        try:
            cli.main()
        except SystemExit as stop:
            code = stop.code
        text = capsys.readouterr()
        assert isinstance(code, int)
        return Outcome(code, text.out, text.err)

    return call


BASIC = ("intervals", "preds.csv", "--truth", "y", "--low", "lo", "--high", "hi", "--nominal", "0.7")
QUICK = ("--bootstrap-resamples", "20")


def test_intervals_writes_results_json_and_charts(run: Callable[..., Outcome], tmp_path: Path) -> None:
    outcome = run(
        *BASIC, *QUICK, "--cluster", "patient", "--by", "site", "-o", "out.json", "--charts", "pictures"
    )
    assert outcome.code == 0, outcome.err
    results_json = json.loads((tmp_path / "out.json").read_text())
    table = list(csv.DictReader((tmp_path / "preds.csv").read_text().splitlines()))
    truth = [float(row["y"]) for row in table]
    nominal = results_json["by_nominal"][0]
    assert nominal["metrics"]["coverage"]["value"] == intervals.interval_coverage(truth, [[-1, 1]] * 90)
    assert nominal["metrics"]["coverage"]["clusters"] == results_json["clusters"] == 30
    assert [group["label"] for group in nominal["groups"]["site"]] == ["a", "b"]
    assert results_json["input"]["columns"] == {
        "truth": "y",
        "low": ["lo"],
        "high": ["hi"],
        "cluster": "patient",
        "by": ["site"],
    }
    assert nominal["verdict"]["verdict"] in outcome.out
    names = {row.name for row in (tmp_path / "pictures").iterdir()}
    assert names == {"coverage.svg", "coverage-by-size.svg", "width.svg", "coverage-by-site.svg"}
    assert outcome.out.count("pictures/") == 4


def test_several_levels_and_infinite_bounds(run: Callable[..., Outcome]) -> None:
    outcome = run(
        *BASIC, "--low", "lo90", "--high", "hi90", "--nominal", "0.9", *QUICK, "--feature", "age", "--json"
    )
    assert outcome.code == 0, outcome.err
    results_json = json.loads(outcome.out)
    assert [nominal["nominal"] for nominal in results_json["by_nominal"]] == [0.7, 0.9]
    assert results_json["by_nominal"][1]["metrics"]["mean_width"]["value"] is None
    assert results_json["by_nominal"][0]["worst_slab"]["direction"] == [1.0]
    assert results_json["metrics"]["weighted_interval_score"]["reason"] == "at least one interval is infinite"
    assert results_json["warnings"][0]["code"] == "infinite_intervals"


def test_quiet_prints_only_paths(run: Callable[..., Outcome]) -> None:
    outcome = run(*BASIC, *QUICK, "--quiet", "-o", "out.json", "--charts", "p", "--chart-format", "json")
    assert outcome.out.splitlines() == [
        "out.json",
        "p/coverage.json",
        "p/coverage-by-size.json",
        "p/width.json",
    ]


def test_no_file_is_written_without_an_option_for_it(run: Callable[..., Outcome], tmp_path: Path) -> None:
    before = sorted(tmp_path.iterdir())
    assert "\n\nTo save it: -o NAME.json (all results)" in run(*BASIC, *QUICK).out
    assert run(*BASIC, *QUICK).out.startswith(run(*BASIC, *QUICK, "--quiet").out)
    assert sorted(tmp_path.iterdir()) == before
    table = run(*BASIC, *QUICK, "-q", "-o", "t.md").out
    assert table == "t.md\n"
    assert (tmp_path / "t.md").read_text().startswith("**")
    refused = run(*BASIC, *QUICK, "-o", "t.xlsx")
    assert refused.code == 2
    assert "t.xlsx: the ending decides the format, and must be one of .txt, .md, .csv" in refused.err


def test_sets_by_lists_and_by_members(run: Callable[..., Outcome]) -> None:
    listed = run(
        "sets", "sets.jsonl", "--truth", "label", "--set", "set", "--nominal", "0.9", *QUICK, "--json"
    )
    assert listed.code == 0, listed.err
    truth = np.arange(60) % 3
    members = np.stack([truth > 0, truth > 1, np.zeros(60, bool)], axis=1)
    nominal = json.loads(listed.out)["by_nominal"][0]
    assert nominal["metrics"]["coverage"]["value"] == sets.set_coverage(truth, members)
    assert [group["label"] for group in nominal["groups"]["true class"]] == ["x", "y", "z"]
    by_member = run(
        "sets", "sets.jsonl", "--truth", "label", "--members", "x,y,z", "--nominal", "0.9", *QUICK, "--json"
    )
    assert by_member.code == 0, by_member.err
    members = np.stack([np.ones(60), np.arange(60) % 2, np.zeros(60)], axis=1)
    metrics = json.loads(by_member.out)["by_nominal"][0]["metrics"]
    assert metrics["coverage"]["value"] == sets.set_coverage(truth, members)
    shown = run("sets", "sets.jsonl", "--truth", "label", "--set", "set", "--nominal", "0.9", *QUICK)
    assert "coverage by set size" in shown.out
    by_number = run(
        "sets", "sets.jsonl", "--truth", "y", "--members", "x,z", "--nominal", "0.9", *QUICK, "--json"
    )
    assert json.loads(by_number.out)["by_nominal"][0]["metrics"]["coverage"]["value"] == 0.5


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ((*BASIC[:-1], "95"), 2, "did you mean 0.95"),
        ((*BASIC, "--low", "lo"), 2, "pass --low, --high and --nominal equally often, got 2, 1 and 1"),
        (("intervals", "absent.csv", *BASIC[2:]), 2, "absent.csv: no such file"),
        ((*BASIC, "--by", "sites"), 2, "has no column 'sites' (did you mean 'site'?)"),
        (
            (*BASIC[:4], "--low", "crossed", *BASIC[6:]),
            3,
            "the lower bound comes first: swap them, or read the table with --crossed sort",
        ),
        (
            (*BASIC[:4], "--low", "word", *BASIC[6:]),
            3,
            "column 'word' must hold numbers, got something else at line 6",
        ),
        ((*BASIC, "--json", "--quiet"), 2, "exclude each other"),
        ((*BASIC, "-o", "nowhere/out.json"), 2, "nowhere does not exist"),
        ((*BASIC, "--charts", "preds.csv"), 2, "is a file; pass the path of a directory"),
        ((*BASIC, "--chart-format", "gif"), 2, "unknown chart format 'gif'"),
        ((*BASIC, "--margin", "2"), 2, "margin must be at least 0 and below the nominal level"),
        (
            ("sets", "sets.jsonl", "--truth", "label", "--nominal", "0.9"),
            2,
            "either --set COLUMN or --members",
        ),
        (
            (
                "sets",
                "sets.jsonl",
                "--truth",
                "label",
                "--set",
                "set",
                "--nominal",
                "0.9",
                "--classes",
                "x,z",
            ),
            3,
            "column 'set' has a label that is not one of the 2 classes at line 3",
        ),
        (
            ("sets", "sets.jsonl", "--truth", "label", "--members", "x,y", "--nominal", "0.9"),
            3,
            "column 'label' has a label that is not a class at line 3",
        ),
        (
            ("sets", "sets.jsonl", "--truth", "y", "--members", "x", "--nominal", "0.9"),
            3,
            "class index from 0 to 0, got 1 at line 2",
        ),
        (
            ("sets", "sets.jsonl", "--truth", "label", "--set", "set", "--set", "set", "--nominal", "0.9"),
            2,
            "one --nominal per set",
        ),
    ],
)
def test_a_wrong_call_ends_with_an_error_message(
    run: Callable[..., Outcome], arguments: tuple[str, ...], code: int, message: str
) -> None:
    outcome = run(*arguments)
    assert (outcome.code, outcome.out) == (code, "")
    assert message in outcome.err
    assert "secret" not in outcome.err
    assert "Traceback" not in outcome.err


def test_verdicts_depend_on_the_nominal_coverage_and_confidence_intervals_on_the_level(
    run: Callable[..., Outcome],
) -> None:
    """About 0.68 of the truths are covered: more than a nominal coverage of 0.3, less than 0.95."""
    for nominal, verdict in (("0.3", "over-covered"), ("0.95", "under-covered"), ("0.7", "inconclusive")):
        options = (*BASIC[:-1], nominal, *QUICK)
        results = json.loads(run(*options, "--json", "--level", "0.9").out)
        assert results["by_nominal"][0]["nominal"] == float(nominal)
        assert results["by_nominal"][0]["verdict"]["verdict"] == verdict
        assert results["settings"]["level"] == results["by_nominal"][0]["metrics"]["coverage"]["level"] == 0.9
        shown = run(*options, "-o", "out.json").out
        row = next(line for line in shown.splitlines() if line.startswith(f"{nominal} "))
        assert row.split("]", 1)[1].split("  ")[1].strip() == verdict
    assert "95% confidence intervals" in shown
    assert "90% confidence intervals" in run(*BASIC, *QUICK, "-o", "out.json", "--level", "0.9").out


def test_the_table_agrees_with_the_results_json(run: Callable[..., Outcome]) -> None:
    results_json = json.loads(run(*BASIC, *QUICK, "--by", "site", "--json").out)
    rows = list(csv.DictReader(run(*BASIC, *QUICK, "--by", "site", "--format", "csv").out.splitlines()))
    assert list(rows[0]) == [
        "nominal",
        "metric",
        "part",
        "rows",
        "value",
        "value_low",
        "value_high",
        "verdict",
    ]
    nominal = results_json["by_nominal"][0]
    assert rows[0]["metric"] == "coverage"
    assert rows[0]["verdict"] == nominal["verdict"]["verdict"]
    metrics = {
        row["metric"]: float(row["value"]) if row["value"] else None for row in rows if row["part"] == "all"
    }
    assert metrics["hsic"] is None  # all intervals have one width
    assert nominal["metrics"]["hsic"]["reason"] == (
        "all intervals have the same width: no information about conditional coverage"
    )
    assert metrics == {name: part["value"] for name, part in nominal["metrics"].items()}
    sites = [row for row in rows if row["metric"] == "coverage by site"]
    assert [(row["part"], float(row["value"]), row["verdict"]) for row in sites] == [
        (group["label"], group["coverage"]["value"], group["verdict"]["verdict"])
        for group in nominal["groups"]["site"]
    ]


def test_the_schema_is_published(run: Callable[..., Outcome]) -> None:
    outcome = run("schema", "conformal")
    assert json.loads(outcome.out)["title"] == "abstain conformal results JSON"


def _results(run: Callable[..., Outcome], command: tuple[str, ...], *sources: str) -> list[object]:
    """Return the results by nominal coverage from each source, after checking that it could be read."""
    results = []
    for source in sources:
        outcome = run(*command[:1], source, *command[2:], *QUICK, "--json")
        assert outcome.code == 0, outcome.err
        results.append(json.loads(outcome.out)["by_nominal"])
    return results


def test_intervals_from_every_kind_of_table(run: Callable[..., Outcome], tmp_path: Path) -> None:
    text = (tmp_path / "preds.csv").read_text()
    (tmp_path / "preds.csv.gz").write_bytes(gzip.compress(text.encode()))
    (tmp_path / "preds.txt").write_text(text.replace(",", "\t"))
    header, *rows = text.splitlines(keepends=True)
    (tmp_path / "part_1.csv").write_text(header + "".join(rows[:40]))
    (tmp_path / "part_2.csv").write_text(header + "".join(rows[40:]))
    first, *others = _results(run, BASIC, "preds.csv", "preds.csv.gz", "preds.txt", "part_*.csv")
    assert all(other == first for other in others)


def test_sets_from_every_kind_of_table(run: Callable[..., Outcome], tmp_path: Path) -> None:
    command = ("sets", "sets.jsonl", "--truth", "label", "--set", "set", "--nominal", "0.9")
    text = (tmp_path / "sets.jsonl").read_text()
    (tmp_path / "sets.jsonl.gz").write_bytes(gzip.compress(text.encode()))
    records = [json.loads(line) for line in text.splitlines()]
    lines = [f"{record['label']};{'|'.join(record['set'])}" for record in records]
    (tmp_path / "sets.txt").write_text("\n".join(["label;set", *lines]) + "\n")
    (tmp_path / "half_1.jsonl").write_text("".join(text.splitlines(keepends=True)[:30]))
    (tmp_path / "half_2.jsonl").write_text("".join(text.splitlines(keepends=True)[30:]))
    first, *others = _results(run, command, "sets.jsonl", "sets.jsonl.gz", "sets.txt", "half_*.jsonl")
    assert all(other == first for other in others)
