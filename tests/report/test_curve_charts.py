from __future__ import annotations

import json
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from abstain import Items, compare, evaluate, read
from abstain.errors import ArgumentError, DataError
from abstain.report.charts import (
    COMPARISON_CHARTS,
    FORMATS,
    SYSTEM_CHARTS,
    curves_chart,
    differences_chart,
    draw,
    metric_chart,
    risk_coverage_chart,
    save_chart,
)
from examples import EXAMPLES

if TYPE_CHECKING:
    from pathlib import Path

    from abstain.evaluation import Result


def run(*confidences: str, resamples: int = 50, interval: str = "jackknife") -> Result:
    items = read(EXAMPLES / "run_a.json", mode="few_shot")
    named = list(confidences) or "llm"
    return evaluate(items, confidence=named, loss="abs", resamples=resamples, interval=interval)


def rows(chart: Any, field: str) -> list[Any]:
    datasets = json.loads(chart.to_json())["datasets"].values()
    return [row for records in datasets for row in records if field in row]


def subtitle(chart: Any) -> str:
    """Return the lines of a chart's subtitle as one text."""
    return " ".join(json.loads(chart.to_json())["title"]["subtitle"])


def test_a_curve_has_its_band_and_its_references() -> None:
    result = run()
    chart = risk_coverage_chart(result)
    assert len(rows(chart, "low")) == len(result["llm"].curve)
    assert {row["line"] for row in rows(chart, "line")} == {"this ranking", "perfect ranking", "random order"}
    assert "band: 95% confidence intervals at each threshold (jackknife over participants)" in subtitle(chart)
    generalized = risk_coverage_chart(result, risk="generalized")
    last = [row for row in rows(generalized, "line") if row["line"] == "this ranking"][-1]
    assert last["risk"] == pytest.approx(result["llm"].curve.generalized_risk[-1])


def test_without_intervals_the_subtitle_explains_the_missing_band() -> None:
    result = run(interval="none")
    chart = risk_coverage_chart(result)
    assert rows(chart, "low") == []
    assert "no band: no confidence intervals were requested" in subtitle(chart)
    assert "no confidence intervals" in subtitle(metric_chart(result))


def test_several_curves_are_drawn_once_each() -> None:
    chart = curves_chart(run("llm", "total_evidence", "token_msp"))
    assert {row["confidence"] for row in rows(chart, "confidence")} == {"llm", "token_msp"}


def test_areas_come_best_first() -> None:
    result = run("token_pe", "llm")
    drawn = rows(metric_chart(result), "value")
    assert [row["value"] for row in drawn] == sorted(row["value"] for row in drawn)
    assert drawn[0]["low"] == result[drawn[0]["name"]].augrc.low


@pytest.mark.parametrize("chart", SYSTEM_CHARTS)
def test_every_chart_of_a_system_is_valid(chart: str, tmp_path: Path) -> None:
    drawn = draw(run("token_msp", "llm"), chart)
    assert save_chart(drawn, tmp_path / "chart.svg").read_bytes().startswith(b"<svg")


@pytest.mark.parametrize("chart", COMPARISON_CHARTS)
def test_every_chart_of_a_comparison_is_valid(chart: str) -> None:
    left, right = (read(EXAMPLES / "run_a.json", mode=mode) for mode in ("zero_shot", "few_shot"))
    result = compare(left, right, confidence="llm", resamples=20)
    assert json.loads(draw(result, chart).to_json())["$schema"].startswith("https://vega")


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMATS)
def test_a_curve_in_every_form(form: str, tmp_path: Path) -> None:
    assert save_chart(draw(run()), tmp_path / f"curve{form}").stat().st_size > 1000


def test_one_item_and_nothing_answered_can_be_drawn() -> None:
    one = evaluate(Items.from_arrays([1], [1], confidence=[0.5]), loss="abs", resamples=10)
    for chart in SYSTEM_CHARTS:
        draw(one, chart).to_json()
    none = evaluate(
        Items.from_arrays([1], [None], abstained=[True], confidence=[0.5]), loss="abs", resamples=10
    )
    for chart in ("curve", "curves", "areas"):
        draw(none, chart).to_json()


def test_a_chart_that_cannot_be_drawn_is_an_error() -> None:
    result = run("llm", "token_msp")
    with pytest.raises(ArgumentError, match="unknown chart 'pie'; known: curve, curves, areas, reliability"):
        draw(result, "pie")
    with pytest.raises(ArgumentError, match="unknown confidence 'token_mps' \\(did you mean 'token_msp'"):
        draw(result, "curve", confidence="token_mps")
    with pytest.raises(ArgumentError, match="unknown risk"):
        draw(result, risk="both")
    with pytest.raises(
        DataError,
        match="llm is not within 0 and 1, or .* not to be a probability; probabilities are: token_msp",
    ):
        draw(result, "reliability", confidence="llm")
    with pytest.raises(ArgumentError, match="unknown metric 'aurk' \\(did you mean 'aurc'"):
        draw(result, "areas", metric="aurk")
    with pytest.raises(ArgumentError, match="no difference to draw: the result has one system"):
        differences_chart(result)


def systems(*wrong: int) -> dict[str, Items]:
    """Systems that are called by how many of their forty answers are wrong, the surest ones first."""
    item = list(range(40))
    return {
        f"{count} wrong": Items.from_arrays(
            [0] * 40, [1] * count + [0] * (40 - count), item=item, confidence=[1 - row / 40 for row in item]
        )
        for count in wrong
    }


@pytest.mark.parametrize("order", [(0, 20), (20, 0)])
def test_a_difference_is_drawn_by_its_verdict(order: tuple[int, int]) -> None:
    result = compare(systems(*order, 21), metrics="accuracy", resamples=0)
    drawn = {row["name"]: row["verdict"] for row in rows(draw(result), "verdict")}
    first, second = (f"{count} wrong" for count in order)
    assert drawn[f"{second} - {first}"] == "decided"
    assert drawn["21 wrong - 20 wrong"] == "inconclusive"
    text = subtitle(draw(result))
    assert (
        "above 0 the system named first is higher, which is better; hollow: inconclusive or not comparable"
        in text
    )
    # The items have no cluster, so that each row is one.
    assert "jackknife over 40 rows, t distribution; each for one comparison by itself" in text


def test_the_sides_of_zero_are_named() -> None:
    result = compare(systems(0, 20), resamples=0)
    chart = draw(result, metric="augrc")
    assert "below 0 20 wrong is lower, which is better" in subtitle(chart)
    assert "by itself" not in subtitle(chart)
    assert "difference in AUGRC, 20 wrong - 0 wrong" in chart.to_json()
    assert "above 0 20 wrong is higher; hollow" in subtitle(draw(result, metric="cmax"))


def encodings(chart: Any) -> list[set[str]]:
    """Return the encodings of each layer of a chart."""
    return [set(layer["encoding"]) for layer in json.loads(chart.to_json())["layer"]]


class TestSeveralSystemsOnOneSetOfAxes:
    def test_each_has_its_line_its_band_and_its_name(self) -> None:
        result = compare(systems(0, 20), resamples=0)
        chart = draw(result, "curve")
        named = {row["system"] for row in rows(chart, "system")}
        assert named == {"0 wrong", "20 wrong"}
        for name, system in result.systems.items():
            points = system.profile().points["confidence"]
            band = [row for row in rows(chart, "low") if row["system"] == name]
            # One answer is one row, which has no interval.
            drawn = points.coverage[np.isfinite(points.selective_low)]
            assert [row["coverage"] for row in band] == pytest.approx(drawn)
            (label, *_) = [
                row for row in rows(chart, "risk") if row["system"] == name and row["coverage"] == 1.0
            ]
            assert label["risk"] <= 1.08
        assert "Selective risk, 0 wrong and 20 wrong" in chart.to_json()
        assert "band: 95% confidence intervals at each threshold (jackknife over rows)" in subtitle(chart)

    def test_more_than_three_have_no_bands(self) -> None:
        assert rows(draw(compare(systems(0, 5, 20), resamples=0), "curve"), "low")
        chart = draw(compare(systems(0, 5, 10, 20), resamples=0), "curve")
        assert not rows(chart, "low")
        assert {row["system"] for row in rows(chart, "risk")} == {
            "0 wrong",
            "5 wrong",
            "10 wrong",
            "20 wrong",
        }

    def test_they_differ_in_more_than_colour(self) -> None:
        chart = json.loads(draw(compare(systems(0, 5, 20), resamples=0), "curve").to_json())
        for mean in ("strokeDash", "shape"):
            (scale,) = [
                layer["encoding"][mean]["scale"] for layer in chart["layer"] if mean in layer["encoding"]
            ]
            assert scale["domain"] == ["0 wrong", "5 wrong", "20 wrong"]
            assert len({str(look) for look in scale["range"]}) == 3
        assert {"text"} <= set().union(*encodings(draw(compare(systems(0, 5), resamples=0), "curve")))

    def test_names_do_not_overlap(self) -> None:
        chart = draw(compare(systems(0, 1, 2, 3), resamples=0), "curve")
        labels = [
            records
            for records in json.loads(chart.to_json())["datasets"].values()
            if len(records) == 4 and all(set(row) == {"system", "coverage", "risk"} for row in records)
        ]
        heights = sorted(row["risk"] for row in labels[-1])
        top = json.loads(chart.to_json())["layer"][1]["encoding"]["y"]["scale"]["domain"][1]
        assert all(b - a >= 0.05 * top - 1e-9 for a, b in pairwise(heights))

    def test_the_confidence_must_be_one_that_all_have(self) -> None:
        result = compare(systems(0, 20), resamples=0)
        with pytest.raises(ArgumentError, match="unknown confidence 'sure'; known: confidence"):
            draw(result, "curve", confidence="sure")
        bare = {name: Items.from_arrays([0, 1], [0, 1], item=[1, 2]) for name in "ab"}
        with pytest.raises(ArgumentError, match="no confidence that all systems have"):
            draw(compare(bare, metrics="accuracy", resamples=0), "curve")

    @pytest.mark.parametrize("metric", ["aurc", "accuracy"])
    def test_a_comparison_by_named_metrics_has_a_curve(self, metric: str) -> None:
        named = compare(systems(0, 20), confidence="confidence", metrics=[metric], resamples=0)
        whole = compare(systems(0, 20), resamples=0)
        for chart in ("curve", "reliability"):
            system = None if chart == "curve" else "20 wrong"
            assert draw(named, chart, system=system).to_dict() == draw(whole, chart, system=system).to_dict()
        with pytest.raises(
            ArgumentError, match="areas draws the selective metrics, which were not evaluated"
        ):
            draw(named, "areas", system="20 wrong")

    def test_a_confidence_that_one_system_lacks_is_not_drawn(self) -> None:
        bare = Items.from_arrays([0] * 40, [0, 1] * 20, item=list(range(40)))
        with pytest.raises(ArgumentError, match="no confidence that all systems have"):
            draw(compare({**systems(20), "bare": bare}, metrics="accuracy", resamples=0), "curve")

    def test_systems_beyond_the_eighth_are_named(self) -> None:
        result = compare(systems(*range(9)), resamples=0)
        assert "not drawn: 8 wrong" in subtitle(draw(result, "curve"))


def test_curves_name_the_confidences_they_omit() -> None:
    items = Items.from_arrays(
        [0] * 40,
        [0, 1] * 20,
        signals={f"s{number}": [(row * (number + 3)) % 41 for row in range(40)] for number in range(10)}
        | {"twin": [row * 3 % 41 for row in range(40)]},
    )
    names = [f"s{number}" for number in range(10)]
    chart = curves_chart(evaluate(items, confidence=["twin", *names], resamples=0))
    assert len({row["confidence"] for row in rows(chart, "confidence")}) == 8
    assert "the same ranking: twin = s0" in subtitle(chart)
    assert "not drawn: s8, s9" in subtitle(chart)
    few = curves_chart(evaluate(items, confidence=["s1", "s2"], resamples=0))
    assert "not drawn" not in few.to_json()
    assert "declined" not in few.to_json()


def test_one_confidence_is_drawn_with_its_band_by_default() -> None:
    chart = draw(run("llm", "token_msp"))
    assert "Selective risk, llm" in chart.to_json()
    assert rows(chart, "low")


def test_a_system_of_several_has_its_own_charts() -> None:
    result = compare(systems(0, 5, 20), resamples=0)
    assert "Selective risk, confidence" in draw(result, system="5 wrong").to_json()
    with pytest.raises(
        ArgumentError, match=r"areas is of one system; name it \(system=, --of-system\): 0 wrong, 5 wrong, 20"
    ):
        draw(result, "areas")
    with pytest.raises(ArgumentError, match="unknown chart 'left'"):
        draw(result, "left")
    with pytest.raises(ArgumentError, match="unknown system '6 wrong'"):
        draw(result, system="6 wrong")
