from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from abstain import Items, compare, evaluate, read
from abstain.errors import ArgumentError, DataError
from abstain.report.charts import (
    COMPARISON_CHARTS,
    EVALUATION_CHARTS,
    FORMATS,
    curves_chart,
    draw,
    figures_chart,
    risk_coverage_chart,
    save_chart,
)
from examples import EXAMPLES

if TYPE_CHECKING:
    from pathlib import Path

    from abstain import Evaluation


def run(*confidences: str, resamples: int = 50) -> Evaluation:
    items = read(EXAMPLES / "run_a.json", mode="few_shot")
    return evaluate(items, confidence=list(confidences) or "llm", loss="abs", resamples=resamples)


def rows(chart: Any, field: str) -> list[Any]:
    datasets = json.loads(chart.to_json())["datasets"].values()
    return [row for records in datasets for row in records if field in row]


def test_a_curve_has_its_band_and_its_references() -> None:
    result = run()
    chart = risk_coverage_chart(result)
    assert len(rows(chart, "low")) == len(result["llm"].curve)
    assert {row["line"] for row in rows(chart, "line")} == {"this ranking", "perfect ranking", "random order"}
    text = chart.to_json()
    assert "band: 95% intervals, 50 resamples of participants, at each threshold" in text
    generalized = risk_coverage_chart(result, risk="generalized")
    last = [row for row in rows(generalized, "line") if row["line"] == "this ranking"][-1]
    assert last["risk"] == pytest.approx(result["llm"].curve.generalized_risk[-1])


def test_without_resamples_there_is_no_band_and_the_chart_says_so() -> None:
    chart = risk_coverage_chart(run(resamples=0))
    assert rows(chart, "low") == []
    assert "no intervals: 0 resamples" in chart.to_json()


def test_several_curves_are_drawn_once_each() -> None:
    chart = curves_chart(run("llm", "total_evidence", "token_msp"))
    assert {row["confidence"] for row in rows(chart, "confidence")} == {"llm", "token_msp"}


def test_areas_come_best_first() -> None:
    result = run("token_pe", "llm")
    drawn = rows(figures_chart(result), "value")
    assert [row["value"] for row in drawn] == sorted(row["value"] for row in drawn)
    assert drawn[0]["low"] == result[drawn[0]["name"]].augrc.low


@pytest.mark.parametrize("chart", EVALUATION_CHARTS)
def test_every_chart_of_an_evaluation_is_valid(chart: str, tmp_path: Path) -> None:
    drawn = run("token_msp", "llm").plot(chart)
    assert save_chart(drawn, tmp_path / "chart.svg").read_bytes().startswith(b"<svg")


@pytest.mark.parametrize("chart", COMPARISON_CHARTS)
def test_every_chart_of_a_comparison_is_valid(chart: str) -> None:
    left, right = (read(EXAMPLES / "run_a.json", mode=mode) for mode in ("zero_shot", "few_shot"))
    result = compare(left, right, confidence="llm", resamples=20)
    assert json.loads(result.plot(chart).to_json())["$schema"].startswith("https://vega")


@pytest.mark.parametrize("form", FORMATS)
def test_a_curve_in_every_form(form: str, tmp_path: Path) -> None:
    assert save_chart(run().plot(), tmp_path / f"curve{form}").stat().st_size > 1000


def test_one_item_and_nothing_answered_can_be_drawn() -> None:
    one = evaluate(Items.from_arrays([1], [1], confidence=[0.5]), loss="abs", resamples=10)
    for chart in EVALUATION_CHARTS:
        one.plot(chart).to_json()
    none = evaluate(
        Items.from_arrays([1], [None], abstained=[True], confidence=[0.5]), loss="abs", resamples=10
    )
    for chart in ("curve", "curves", "areas"):
        none.plot(chart).to_json()


def test_what_cannot_be_drawn_is_said() -> None:
    result = run("llm", "token_msp")
    with pytest.raises(ArgumentError, match="unknown chart 'pie'; known: curve, curves, areas, reliability"):
        result.plot("pie")
    with pytest.raises(ArgumentError, match="unknown confidence 'token_mps' \\(did you mean 'token_msp'"):
        result.plot("curve", confidence="token_mps")
    with pytest.raises(ArgumentError, match="unknown risk"):
        draw(result, risk="both")
    with pytest.raises(
        DataError, match="llm is not within 0 and 1, or .* no probability; these are: token_msp"
    ):
        result.plot("reliability", confidence="llm")
