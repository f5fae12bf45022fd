from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

from abstain import check
from abstain.readers import engines
from examples import EXAMPLES

if TYPE_CHECKING:
    from pathlib import Path

    from commands import Run

TABLE = """label,pred,prob,patient_id,abstained,note
1,1,0.9,a,false,x
0,1,0.9,a,false,y
1,,,b,true,z
0,0,0.4,b,false,w
,1,0.5,c,false,v
"""


def test_check_describes_a_table(run: Run, tmp_path: Path) -> None:
    (tmp_path / "preds.csv").write_text(TABLE)
    code, out, _ = run("check", "preds.csv")
    assert code == 0
    text = " ".join(out.split())
    for words in (
        "preds.csv: CSV table",
        "truth = label (guessed), prediction = pred (guessed)",
        "3 answered, 1 abstained, 0 failed, 1 without a label (coverage 0.750)",
        "3 patients, 1 to 2 items each, median 2",
        "Metadata: note",
        "Defaults: ranked by confidence, loss zero_one (whole-number labels, no scale declared)",
        "yes risk-coverage curve, AURC, AUGRC",
        "no abstention safety, deferral alignment: no row has guidance on whether to abstain",
        "No problems found.",
    ):
        assert words in text, words
    prob = next(line for line in out.splitlines() if line.startswith("prob "))
    assert prob.split() == ["prob", "0.4", "0.9", "2", "67%", "0"]


def test_check_as_json(run: Run, tmp_path: Path) -> None:
    (tmp_path / "preds.csv").write_text(TABLE)
    code, out, _ = run("check", "preds.csv", "--json", "--cluster", "note")
    assert code == 0
    found = json.loads(out)
    assert found["outcomes"] == {"answered": 3, "abstained": 1, "failed": 0, "unscored": 1}
    assert found["columns"]["cluster"] == "note"
    assert found["clusters"] == {"noun": "note", "count": 5, "smallest": 1, "median": 1.0, "largest": 1}
    assert found["signals"]["prob"]["tied_proportion"] == pytest.approx(2 / 3)
    assert found["metrics"]["balanced accuracy"] == {"possible": True, "reason": ""}
    assert found["confidences"]["consistency"]["possible"] is False
    assert found["problems"] == []


def test_check_lists_every_problem_by_row(run: Run, tmp_path: Path) -> None:
    (tmp_path / "bad.csv").write_text("id,label,pred,prob\n1,1,,0.5\n1,0,1,\n2,1,1,0.5\n")
    code, out, _ = run("check", "bad.csv")
    assert code == 3
    text = " ".join(out.split())
    assert "the prediction (pred) is missing at line 2 for an unknown reason" in text
    assert "the item ids (id) must be unique; there is a duplicate at line 3" in text
    assert "the confidence (prob) is missing or not finite for an answered item at line 3" in text
    code, _, err = run("evaluate", "bad.csv")
    assert code == 3
    assert "for an unknown reason; name a column of abstentions" in err


def test_check_a_run_file(run: Run) -> None:
    code, out, _ = run("check", EXAMPLES / "run_a.json", "--mode", "few_shot")
    assert code == 0
    assert "run file" in out
    assert "150 answered, 66 abstained, 24 failed, 0 without a label" in out
    found = check(EXAMPLES / "run_a.json", mode="few_shot")
    assert "hybrid_consistency" in found.servable
    assert found.metrics["mean absolute error (abs)"].possible
    code, _, err = run("check", EXAMPLES / "run_a.json")
    assert code == 2
    assert "choose a mode: zero_shot, few_shot" in err


def test_evaluate_a_table_in_one_command(run: Run, tmp_path: Path) -> None:
    (tmp_path / "preds.csv").write_text(TABLE)
    flags = ("--truth", "label", "--prediction", "pred", "--confidence", "prob", "--cluster", "patient_id")
    common = ("--loss", "zero_one", "--bootstrap-resamples", 20, "--json")
    code, out, err = run("evaluate", "preds.csv", *flags, *common)
    assert code == 0
    assert "guessed abstained = abstained" in err
    results_json = json.loads(out)
    assert results_json["population"]["participants_total"] == 3
    # Confidences 0.9 (one of two wrong) and 0.4: N is 4.
    assert results_json["confidence_variants"]["prob"]["cmax"] == 0.75
    assert results_json["confidence_variants"]["prob"]["aurc_full"] == pytest.approx(
        0.25 + 0.25 * (1 / 2 + 1 / 3) / 2
    )
    assert results_json["inputs"][0]["sha256"]
    code, out, err = run("evaluate", "preds.csv", "--bootstrap-resamples", 20, "--json")
    assert code == 0
    assert "preds.csv: a CSV table; guessed truth = label, prediction = pred, confidence = prob" in err
    assert json.loads(out)["loss"]["name"] == "zero_one"
    code, _, err = run("evaluate", "preds.csv", "--truth", "lable")
    assert code == 2
    assert "has no column 'lable' (did you mean 'label'?)" in err
    code, _, err = run("evaluate", "preds.csv", "--confidence", "note")
    assert code == 3
    assert "the column 'note' contains text (first at line 2)" in err


def test_compare_two_tables(run: Run, tmp_path: Path) -> None:
    (tmp_path / "left.csv").write_text(TABLE)
    (tmp_path / "right.csv").write_text(TABLE.replace("0,1,0.9", "0,0,0.9"))
    flags = ("evaluate", "left.csv", "right.csv", "--bootstrap-resamples", 20, "--json")
    code, _, err = run(*flags)
    assert code == 3
    assert "appears twice" in err
    assert "name them (item=, --item)" in err
    code, out, _ = run(*flags, "--item", "note")
    assert code == 0
    assert json.loads(out)["comparison"]["deltas"]["confidence"]["augrc_full"]["delta"] < 0


def test_the_counts_of_an_abstention_rule_are_printed(run: Run, tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_text(
        '{"truth": "a", "prediction": "a"}\n{"truth": "a", "prediction": "I cannot say"}\n'
        '{"truth": "b", "prediction": ""}\n'
    )
    arguments = ("evaluate", "t.jsonl", "--abstain-rule", "phrases:cannot say", "--bootstrap-resamples", 0)
    code, _, err = run(*arguments)
    assert code == 3
    assert "the prediction (prediction) is missing at line 3 for an unknown reason" in err
    code, out, err = run(*arguments, "--null-prediction", "failed")
    assert code == 0
    assert "the abstention rule found 1 abstained, 1 answered, 1 undetermined" in err
    assert "no confidence in this source; name one (--confidence, confidence=) or record one" in " ".join(
        out.split()
    )
    assert "constant" not in out
    code, _, err = run("evaluate", "t.jsonl", "--abstain-rule", "cannot say")
    assert code == 2
    assert "must be choice:<choice>, regex:<pattern>" in err


@pytest.mark.slow
def test_an_engine_compares_tables_as_numpy_does(run: Run, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(TABLE)
    (tmp_path / "b.csv").write_text(TABLE.replace("0.9", "0.2"))
    flags = ("--confidence", "prob", "--match", "rows")
    for arguments in (
        ("evaluate", "a.csv", "b.csv", "--json"),
        ("compare", "a.csv", "b.csv", "--json"),
        ("compare", "a.csv", "b.csv"),
        ("gate", "a.csv", "--baseline", "b.csv", "--fail-if", "augrc worse by 0.1"),
        ("plot", "a.csv", "b.csv", "-o", "c.json"),
        ("report", "a.csv", "b.csv", "-o", "r.html"),
    ):
        loaded, aggregated = (run(*arguments, *flags, "--engine", engine) for engine in ("numpy", "duckdb"))
        assert aggregated[0] == loaded[0] in (0, 4), aggregated[2]
        assert "a.csv: aggregated by duckdb" in aggregated[2]
        if "--json" in arguments and arguments[0] == "evaluate":
            documents = [json.loads(out) for _, out, _ in (loaded, aggregated)]
            for part in ("population", "comparison", "loss", "inputs"):
                assert documents[0][part] == documents[1][part]
        else:
            assert aggregated[1] == loaded[1]


@pytest.mark.slow
def test_a_very_large_table_is_aggregated(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "preds.csv").write_text(TABLE)
    flags = ("--confidence", "prob", "--json")
    loaded = json.loads(run("evaluate", "preds.csv", *flags)[1])
    requested = json.loads(run("evaluate", "preds.csv", "--engine", "duckdb", "--memory", "500MB", *flags)[1])
    monkeypatch.setattr(engines, "AGGREGATED_ROWS", 1)
    code, out, err = run("evaluate", "preds.csv", *flags)
    assert code == 0, err
    assert "preds.csv: aggregated by duckdb; --engine numpy loads it instead" in err
    for aggregated in (json.loads(out), requested):
        for part in ("population", "confidence_variants", "loss", "inputs"):
            assert aggregated[part] == loaded[part]
    code, out, _ = run("evaluate", "preds.csv")
    assert code == 0
    assert out.rstrip().endswith(".md .csv .tex .txt")
    long = TABLE.replace("note\n", "note,model\n").replace("x\n", "x,A\n").replace("y\n", "y,B\n")
    (tmp_path / "long.csv").write_text(
        re.sub(r",([zwv])\n", lambda found: f",{found[1]},{'AB'[found[1] == 'w']}\n", long)
    )
    code, out, err = run("compare", "long.csv", "--match", "rows", "--intersection-only")
    assert "rows can only be matched by their order if the systems have equally many: A 3, B 2" in err
    code, _, err = run("power", "preds.csv", "--metric", "augrc", "--difference", 0.1, "--confidence", "prob")
    assert "aggregated by duckdb" in err
    assert "confidence" not in err.partition("guessed")[2]
    code, _, err = run("compare", "preds.csv", "--engine", "duckdb")
    assert (code, "the systems of one table are separated row by row, and --engine duckdb" in err) == (
        2,
        True,
    )
    for command in (("report", "-o", "r.html"), ("plot", "-o", "c.svg")):
        code, _, err = run(
            command[0], "preds.csv", *command[1:], "--engine", "duckdb", "--confidence", "prob"
        )
        assert code == 0, err
    assert "This table was aggregated" not in (tmp_path / "r.html").read_text()
    assert run("report", "preds.csv", "-o", "m.html", "--engine", "duckdb", "--mistakes", 3)[0] == 0
    assert (
        "This table was aggregated, so that single rows cannot be shown" in (tmp_path / "m.html").read_text()
    )
