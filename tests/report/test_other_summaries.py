"""Summaries of gate, check, calibrate and metrics: one table model, within the terminal, only text."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from rich.console import Console

from abstain import Items, read
from abstain.calibrators import fit_verbalized, train
from abstain.evaluation import check, gate
from abstain.evaluation.conformal import evaluate_intervals
from abstain.metrics.registry import known_metrics
from abstain.report.calibration import calibration_summary, calibration_table
from abstain.report.check import check_summary, check_table
from abstain.report.gate import gate_junit, gate_markdown, gate_table, gate_text
from abstain.report.html import result_html
from abstain.report.listings import metrics_table
from abstain.report.tables import render, table_text
from examples import EXAMPLES

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import RenderableType

HOSTILE = "</td><script>alert(1)</script>[red]\x1b[31m"


def printed(summary: RenderableType, width: int = 80) -> str:
    console = Console(file=io.StringIO(), width=width, highlight=False)
    console.print(summary)
    text = str(console.file.getvalue())  # type: ignore[attr-defined]
    assert max(map(len, text.splitlines())) <= width
    return text


def test_a_gate_shows_its_verdict_and_every_condition() -> None:
    run = Items.from_arrays([1] * 30, [1] * 24 + [0] * 6, confidence=[0.9] * 30)
    result = gate(run, ["accuracy below 0.5", "accuracy below 0.75", "accuracy above 0.6"], resamples=200)
    text = gate_text(result, 80)
    assert text.startswith("gate: fail\n\nverdict       conclusion\n")
    assert "pass          accuracy is 0.800 [0.615, 0.915], not below 0.5\n" in text
    assert "inconclusive  accuracy is 0.800 [0.615, 0.915], which spans 0.75\n" in text
    assert "fail          accuracy is 0.800 [0.615, 0.915], above 0.6\n" in text
    assert "Verdicts by 95% confidence intervals over 30 rows of the run. Inconclusive: the\ninterval" in text
    assert max(map(len, text.splitlines())) <= 80
    rows = json.loads(render([gate_table(result)], "json"))["tables"][0]["rows"]
    assert [(row["metric"], row["relation"], row["bound"], row["verdict"]) for row in rows] == [
        ("accuracy", "below", 0.5, "pass"),
        ("accuracy", "below", 0.75, "inconclusive"),
        ("accuracy", "above", 0.6, "fail"),
    ]


def test_the_warnings_of_a_gate_are_shown_as_text() -> None:
    run = Items.from_arrays([1] * 9, [1] * 9, confidence=[0.9] * 9)
    result = gate(run, "accuracy below 0.5", resamples=50)
    assert "with fewer than 10" in " ".join(gate_text(result).split())
    (evaluated,) = result.checks
    bad = replace(
        result, checks=(replace(evaluated, verdict="fail", sentence=HOSTILE),), cluster_noun=HOSTILE
    )
    assert "\x1b" not in gate_text(bad)
    assert "<script" not in gate_markdown(bad)
    assert [case[0].tag for case in ET.fromstring(gate_junit(bad)).findall("testsuite/testcase")] == [
        "failure"
    ]


def test_a_checked_source_shows_problems_first_and_defaults_with_their_rule(tmp_path: Path) -> None:
    run = printed(check_summary(check(EXAMPLES / "run_a.json", mode="few_shot"), width=80))
    lines = " ".join(run.split())
    assert (
        "Outcomes: 150 answered, 66 abstained, 24 failed, 0 without a label (coverage 0.694) Clusters"
        in lines
    )
    assert "ranked by llm, total_evidence, loss abs_norm (the source declares a scale of 0 to 3)" in lines
    assert run.index("\nNo problems found.\n") < run.index("Outcomes")
    assert "no p_true: the signal p_true" in lines
    table = tmp_path / "answers.csv"
    table.write_text("truth,prediction,row\n" + "".join(f"{n % 2},1,{n}\n" for n in range(30)))
    found = check(table)
    text = " ".join(printed(check_summary(found, ["a note"], 80)).split())
    assert "a note" in text
    assert "Defaults: no confidence, loss zero_one (whole-number labels, no scale declared)" in text
    assert "p_true" not in text  # a table is not expected to have the signals of a run file
    assert "no risk-coverage curve, AURC, AUGRC: no confidence in this source; name one" in text
    rows = json.loads(render([check_table(found)], "json"))["tables"][0]["rows"]
    assert {"about": "default", "name": "loss", "value": "zero_one", "remark": ""} in rows
    assert {"about": "outcome", "name": "answered", "value": 30, "remark": ""} in rows


def test_a_hostile_column_stays_text_in_a_check(tmp_path: Path) -> None:
    table = tmp_path / "answers.csv"
    table.write_text(f'truth,prediction,"{HOSTILE}"\n1,1,0.5\n0,1,0.25\n')
    text = printed(check_summary(check(table), width=80))
    assert "\x1b" not in text
    assert "[red]" in text


def test_a_calibration_shows_its_fit_and_its_held_out_metrics() -> None:
    run = read(EXAMPLES / "run_b.json", mode="few_shot")
    stated = fit_verbalized(run)
    text = printed(calibration_summary(stated, 80))
    assert f"temperature {stated.temperature:.3f}: the stated confidence is overconfident" in text
    assert "NLL after" in text
    trained = train(run, method="logistic", features=["verbalized_confidence"], target="correctness")
    text = printed(calibration_summary(trained, 80))
    assert "logistic calibrator of correctness on verbalized_confidence, learned from" in text
    assert "\nWarnings\n  ! " in text
    assert "take care" not in text
    held_out = trained.validation
    assert held_out is not None
    assert held_out.held_out is not None
    (row,) = (line.split() for line in text.splitlines() if line.startswith("AUROC "))
    assert row[1:] == [f"{held_out.in_sample['auc_roc']:.3f}", f"{held_out.held_out['auc_roc']:.3f}"]
    keys = [column.key for column in calibration_table(trained).columns]
    assert keys == ["metric", "in_sample", "held_out"]


@pytest.mark.parametrize("width", [80, 120])
def test_no_metric_name_is_broken_in_their_list(width: int) -> None:
    metrics = known_metrics().values()
    text = table_text(metrics_table(metrics), width)
    assert max(map(len, text.splitlines())) <= width
    assert all(f"\n{metric.key} " in text for metric in metrics)


def test_a_notebook_shows_the_coverage_of_intervals() -> None:
    truth = np.arange(60.0)
    ends = np.column_stack([truth - 1.0, truth + np.where(truth % 10 == 0, -0.5, 1.0)])
    result = evaluate_intervals(truth, ends, nominal=0.9, resamples=20)
    page = result_html(result)
    (nominal,) = result.by_nominal
    assert f"<td>{nominal.verdict.verdict}</td>" in page
    assert f'<td class="number">{nominal["coverage"]}</td>' in page
    assert page.startswith("<div><p>60 intervals of 60 clusters</p><table>")
