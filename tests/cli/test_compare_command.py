"""`abstain compare`, and `--format` of every command."""

from __future__ import annotations

import csv
import io
import json
import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from typer.testing import CliRunner

from abstain.cli import app
from abstain.cli._options import system_names
from examples import EXAMPLES

if TYPE_CHECKING:
    from pathlib import Path

RUN = EXAMPLES / "run_b.json"
BOTH = (RUN, RUN, "--mode", "zero_shot", "--mode", "few_shot", "--bootstrap-resamples", 200)
FORMATS = ("text", "markdown", "csv", "latex", "json")


def call(*arguments: object) -> Any:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def rows_of(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_the_conclusion_comes_before_the_table() -> None:
    smaller = [EXAMPLES / "run_a.json" if part == RUN else part for part in BOTH]
    done = call("compare", *smaller, "--metric", "augrc,simpleqa_f", "--bootstrap-resamples", 1000)
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout.startswith("2 systems, 200 items of 25 participants, matched by participant")
    sentences, table = done.stdout.split("\n----------", maxsplit=1)
    assert sentences.split("\n\n")[1].startswith(
        "AUGRC at coverage 0.56: inconclusive, few_shot - zero_shot = -0.014 [-0.032, 0.003]"
    )
    assert "  - SimpleQA F: few_shot is better than zero_shot by 0.144 [" in sentences
    assert "  - Selective risk at coverage 0.56: few_shot is better than zero_shot by 0.131 [" in sentences
    assert "not comparable" not in sentences
    assert "few_shot is better" in table
    assert "zero_shot is better" not in table


def test_csv_has_the_differences_with_ranks_and_verdicts() -> None:
    done = call("compare", *BOTH, "--format", "csv")
    whole, matched = rows_of(done.stdout)
    assert (whole["metric"], whole["left"], whole["right"]) == ("augrc", "zero_shot", "few_shot")
    assert [matched[f"{side}_rank{end}"] for side in ("left", "right") for end in ("", "_worst")] == [
        "1",
        "2",
    ] * 2
    assert float(whole["difference_low"]) < float(whole["difference"]) < float(whole["difference_high"])
    assert float(whole["difference"]) == pytest.approx(
        float(whole["right_value"]) - float(whole["left_value"])
    )
    assert 0 < float(matched["p"]) <= float(matched["p_holm"]) <= 1
    assert int(matched["more_clusters"]) > 0
    assert (whole["verdict"], whole["conclusion"], whole["basis"]) == ("", "not comparable", "own coverages")
    assert whole["no_verdict"] == "not comparable: coverages 0.58 and 0.67"
    assert (matched["verdict"], matched["conclusion"]) == ("inconclusive", "inconclusive")
    assert matched["sentence"].startswith("AUGRC at coverage 0.58: inconclusive, few_shot - zero_shot = ")
    assert (matched["basis"], matched["no_verdict"]) == ("matched coverage", "")
    assert float(matched["coverage"]) == pytest.approx(245 / 424)


@pytest.mark.parametrize("form", FORMATS)
def test_every_format_has_the_verdict(form: str) -> None:
    done = call("compare", *BOTH, "--format", form)
    assert (done.exit_code, done.stderr) == (0, "")
    assert "inconclusive" in done.stdout
    if form == "json":
        document = json.loads(done.stdout)
        headline, tables = document["headline"], document["tables"]
        assert headline.keys() == {
            "metric", "basis", "coverage", "winner", "difference", "low", "high", "sentence",
        }  # fmt: skip
        assert (headline["metric"], headline["basis"], headline["winner"]) == (
            "augrc",
            "matched coverage",
            None,
        )
        assert headline["coverage"] == pytest.approx(245 / 424)
        assert [table["title"] for table in tables] == ["Differences between systems", "Systems"]
        assert tables[1]["rows"][0]["system"] == "zero_shot"


def test_the_ending_of_the_output_file_sets_its_format(tmp_path: Path) -> None:
    done = call("compare", *BOTH, "-o", tmp_path / "table.tex")
    assert done.exit_code == 0
    assert done.stdout.startswith("2 systems, ")
    assert done.stdout.endswith(f"\n\ntable: {tmp_path / 'table.tex'}\n")
    assert call("compare", *BOTH, "-q", "-o", tmp_path / "table.tex").stdout == f"{tmp_path / 'table.tex'}\n"
    assert "\\toprule" in (tmp_path / "table.tex").read_text()


def test_the_same_seed_gives_the_same_bytes() -> None:
    options = ("--format", "json", "--interval", "percentile", "--bootstrap-resamples", 100)
    outputs = [call("compare", *BOTH, *options, "--seed", seed).stdout for seed in (1, 1, 2)]
    assert outputs[0] == outputs[1] != outputs[2]
    # The jackknife draws nothing.
    plain = [call("compare", *BOTH, "--format", "json", "--seed", seed).stdout for seed in (1, 2)]
    assert plain[0] == plain[1]


def test_reference_margin_and_three_systems() -> None:
    third = EXAMPLES / "run_b.json"
    done = call(
        "compare", RUN, RUN, third, "--mode", "zero_shot", "--mode", "few_shot", "--mode", "few_shot",
        "--confidence", "llm", "--confidence", "llm", "--confidence", "token_msp",
        "--reference", "run_b (2)", "--margin", 0.001, "--bootstrap-resamples", 50, "--format", "csv",
    )  # fmt: skip
    assert done.exit_code == 0, done.stderr
    assert {row["left"] for row in rows_of(done.stdout)} == {"run_b (2)"}
    assert {row["right"] for row in rows_of(done.stdout)} == {"run_b (1)", "run_b (3)"}


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ((RUN,), 2, "pass at least two inputs to compare, got 1"),
        ((RUN, RUN), 2, "choose a mode: zero_shot, few_shot"),
        (
            (*BOTH, "--mode", "few_shot"),
            2,
            "--mode was passed 3 times for 2 inputs; pass it once, or once per input",
        ),
        ((*BOTH, "--metric", "augcr"), 2, "did you mean 'augrc'?"),
        ((*BOTH, "--format", "markdow"), 2, "did you mean 'markdown'?"),
        ((*BOTH, "--reference", "nobody"), 2, "unknown reference 'nobody'; known: zero_shot, few_shot"),
        ((*BOTH, "--loss", "square"), 2, "unknown loss 'square'"),
        ((RUN, EXAMPLES / "run_a.json", "--mode", "few_shot"), 3, "--intersection-only"),
        ((RUN, "missing.json", "--mode", "few_shot"), 2, "missing.json: no such file"),
        ((*BOTH, "-o", "no/such/place.md"), 2, "does not exist; create it first"),
    ],
)
def test_a_wrong_call_ends_with_an_error_message(
    arguments: tuple[object, ...], code: int, message: str
) -> None:
    done = call("compare", *arguments)
    assert done.exit_code == code, done.stderr
    assert message in done.stderr
    assert done.stdout == ""


def test_two_weeks_are_compared_by_site(tmp_path: Path) -> None:
    """The weeks have different items. All formats name the samples, and each site has a verdict."""
    weeks = []
    for week in (13, 14):
        generator = np.random.default_rng(week)
        truth = generator.integers(0, 2, 120)
        right = generator.random(120) < 0.5 + (week == 13) * 0.4 * (np.arange(120) % 2)
        lines = ["id,site,truth,prediction,sure"]
        for number in range(120):
            predicted = truth[number] if right[number] else 1 - truth[number]
            lines.append(f"{week}-{number},{'AB'[number % 2]},{truth[number]},{predicted},{number}")
        weeks.append(tmp_path / f"week-{week}.csv")
        weeks[-1].write_text("\n".join(lines))
    done = call("compare", *weeks, "--unpaired", "--by", "site", "--metric", "accuracy", "-o", "both.json")
    assert done.exit_code == 0
    assert done.stdout.startswith(
        "2 systems, independent samples: week-13, 120 items, treated as independent; week-14, 120 items,"
    )
    assert "  - Accuracy in site=A: inconclusive, week-14 - week-13 = " in done.stdout
    assert "  - Accuracy in site=B: week-13 is better than week-14 by " in done.stdout
    call(
        "evaluate", *weeks, "--unpaired", "--by", "site", "--metric", "accuracy", "-q", "-o", "evaluated.json"
    )
    compared = json.loads((tmp_path / "both.json").read_text())["tables"][0]["rows"]
    evaluated = json.loads((tmp_path / "evaluated.json").read_text())["comparison"]["differences"]
    assert [(each["group"], each["p"], each["verdict"]) for each in compared] == [
        (each["group"] or "all", each["p"], each["verdict"]) for each in evaluated
    ]
    assert [each["verdict"] for each in evaluated] == ["left", "inconclusive", "left"]
    call("report", *weeks, "--unpaired", "--confidence", "sure", "-q", "-o", "both.html")
    page = (tmp_path / "both.html").read_text()
    assert "Independent samples: week-13, 120 items, treated as independent; week-14" in page
    assert "The systems have different items and are compared as independent samples" in page
    gate = call("gate", weeks[1], "--baseline", weeks[0], "--unpaired", "--fail-if", "accuracy worse by 0.01")
    assert (gate.exit_code, "in the smaller of run and baseline" in gate.stdout) == (4, True)


def test_inputs_have_distinct_names() -> None:
    assert system_names(["x/a.json", "y/b.json"], [None, None]) == ["a", "b"]
    assert system_names(["r.json", "r.json"], ["m", "n"]) == ["m", "n"]
    assert system_names(["r.json", "s.json", "r.json"], ["m", "m", "n"]) == ["r m", "s m", "r n"]
    assert system_names(["x/r.json", "y/r.json"], ["m", "m"]) == ["x/r.json m", "y/r.json m"]
    assert system_names(["r.json", "r.json"], ["m", "m"]) == ["r (1)", "r (2)"]


@pytest.mark.parametrize("form", FORMATS[1:])
def test_evaluate_prints_tables_and_writes_no_file(form: str, tmp_path: Path) -> None:
    arguments = ("evaluate", RUN, "--mode", "few_shot", "--bootstrap-resamples", 20, "--format", form)
    done = call(*arguments)
    assert (done.exit_code, done.stderr) == (0, "")
    assert "aurc" in done.stdout
    assert list(tmp_path.iterdir()) == []


def test_the_tables_of_evaluate_agree_with_the_results_json(tmp_path: Path) -> None:
    options = ("--metric", "accuracy,mae", "--confidence", "llm", "--bootstrap-resamples", 20)
    for name in ("m.csv", "m.json"):
        assert call("evaluate", RUN, "--mode", "few_shot", *options, "-o", name).exit_code == 0
    rows = {row["metric"]: row for row in rows_of((tmp_path / "m.csv").read_text())}
    variant = json.loads((tmp_path / "m.json").read_text())["confidence_variants"]["llm"]
    assert float(rows["aurc"]["value"]) == variant["aurc_full"]
    assert [float(rows["cmax"][f"value_{end}"]) for end in ("low", "high")] == variant["intervals"]["cmax"]
    assert float(rows["risk_at_coverage@0.5"]["value"]) == variant["mae_at_coverage"]["0.50"]["value"]
    assert rows["risk_at_coverage@0.9"]["value"] == ""
    assert "cannot be reached" in rows["risk_at_coverage@0.9"]["remark"]
    assert {"accuracy", "mean_absolute_error", "answer_rate"} <= rows.keys()


def test_two_inputs_give_a_table_of_differences() -> None:
    done = call("evaluate", *BOTH, "--metric", "accuracy", "--confidence", "llm", "--format", "csv")
    rows = {row["metric"]: row for row in rows_of(done.stdout)}  # the last of a metric is at matched coverage
    for name in ("aurc", "accuracy"):
        row = rows[name]
        assert (row["left"], row["right"]) == ("zero_shot", "few_shot")
        assert float(row["difference"]) == pytest.approx(float(row["right_value"]) - float(row["left_value"]))
        assert row["difference_low"]
        assert row["verdict"] in ("left", "right", "inconclusive")


def test_format_excludes_other_ways_to_print() -> None:
    for flag in ("--json", "--quiet"):
        done = call("evaluate", RUN, "--mode", "few_shot", "--format", "csv", flag)
        assert (done.exit_code, done.stdout) == (2, "")
        assert "exclude each other; pass one of them" in done.stderr


@pytest.mark.parametrize("form", FORMATS[1:])
def test_other_commands_also_print_tables(form: str, tmp_path: Path) -> None:
    (tmp_path / "preds.csv").write_text("y,lo,hi\n" + "".join(f"{i},{i - 1},{i + 1}\n" for i in range(30)))
    calls = (
        ("metrics",),
        ("intervals", "preds.csv", "--truth", "y", "--low", "lo", "--high", "hi", "--nominal", 0.9,
         "--bootstrap-resamples", 20),
        ("calibrate", "verbalized", "--input", RUN, "--mode", "few_shot", "--output", "t.json"),
    )  # fmt: skip
    for arguments, words in zip(calls, ("augrc", "coverage", "ece_before"), strict=True):
        done = call(*arguments, "--format", form)
        assert (done.exit_code, done.stderr) == (0, ""), arguments
        assert words in done.stdout.replace("\\_", "_")
        if form == "json":
            assert json.loads(done.stdout)["tables"][0]["rows"]
        if form == "csv":
            assert len(rows_of(done.stdout)) > 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["preds.csv", "t.json"]


def write_tables(directory: Path, *, item: str = "item_id") -> None:
    """Three systems as tables: 40 patients of 3 questions, rows in another order in every file."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, (40, 3))
    for name, skill in (("a", 0.55), ("b", 0.6), ("c", 0.95)):
        right = rng.random((40, 3)) < skill
        rows = [
            {
                "patient_id": f"p{patient}",
                item: f"q{question}",
                "label": int(truth[patient, question]),
                "pred": int(truth[patient, question] == right[patient, question]),
                "confidence": round(float(rng.random()), 3),
            }
            for patient in range(40)
            for question in range(3)
        ]
        rng.shuffle(rows)
        with (directory / f"{name}.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, rows[0].keys())
            writer.writeheader()
            writer.writerows(rows)


TABLES = ("compare", "a.csv", "b.csv", "c.csv", "--metric", "augrc", "--cluster", "patient_id")


def test_tables_are_matched_by_the_names_of_their_items(tmp_path: Path) -> None:
    write_tables(tmp_path)
    done = call(*TABLES, "--bootstrap-resamples", 1000)
    assert done.exit_code == 0, done.stderr
    assert done.stdout.startswith(
        "3 systems, 120 items of 40 patients, matched by cluster and item\n\nAUGRC: c is better"
    )
    assert "c is better than a by " in done.stdout
    assert "c is better than b by " in done.stdout
    assert (
        "AUGRC: c is better than every other system. Smallest lead: AUGRC at coverage 1.00: c is"
        in done.stdout
    )
    # Without a margin, nothing is printed about the number of patients needed.
    assert "inconclusive, b - a = " in done.stdout
    assert "needed" not in done.stdout
    with_margin = " ".join(call(*TABLES, "--margin", 0.01).stdout.split())
    needed = r"(?:about [\d,]+ more|more than 100 times as many) patients are needed to detect a difference of 0.01"
    assert re.search(rf"inconclusive, b - a = .*; {needed}", with_margin)
    assert "the number of patients needed is for a difference of 0.01 and a power of 80%" in with_margin
    assert "guessed truth = label" in done.stderr
    assert call(*TABLES, "--bootstrap-resamples", 100, "--quiet").stderr == ""


def test_tables_without_item_names_are_not_matched_by_row(tmp_path: Path) -> None:
    write_tables(tmp_path, item="wording")
    done = call(*TABLES, "--bootstrap-resamples", 100)
    assert done.exit_code == 3
    assert "appears twice" in done.stderr
    assert "--item" in done.stderr
    assert call(*TABLES, "--bootstrap-resamples", 100, "--item", "wording").exit_code == 0


def test_a_gate_reads_tables(tmp_path: Path) -> None:
    write_tables(tmp_path)
    options = ("--cluster", "patient_id", "--bootstrap-resamples", 300)
    worse = ("--fail-if", "augrc worse by 0.01")
    assert call("gate", "c.csv", "--baseline", "a.csv", *worse, *options).exit_code == 0
    assert call("gate", "a.csv", "--baseline", "c.csv", *worse, *options).exit_code == 1
    assert call("gate", "a.csv", "--fail-if", "ece above 0.9", *options).exit_code == 0
    assert call("gate", "c.csv", "--fail-if", "accuracy below 0.9999", *options).exit_code in (1, 4)


def test_check_prints_a_table(tmp_path: Path) -> None:
    write_tables(tmp_path)
    done = call("check", "a.csv", "--cluster", "patient_id", "--format", "csv")
    assert done.exit_code == 0, done.stderr
    rows = rows_of(done.stdout)
    assert {"about": "outcome", "name": "answered", "value": "120", "remark": ""} in rows
    assert any(row["about"] == "metric" and row["value"] == "true" for row in rows)
