"""The results JSON, the summary and the charts of intervals and sets: strict JSON, plain text, files that open."""

from __future__ import annotations

import io
import json
import math
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import jsonschema
import numpy as np
import pytest
from rich.console import Console

from abstain.evaluation.conformal import CoverageResult, evaluate_intervals, evaluate_sets
from abstain.report.charts import FORMATS, save_chart
from abstain.report.charts.intervals import charts, coverage_chart
from abstain.report.console import console_for
from abstain.report.coverage import coverage_summary, coverage_tables
from abstain.report.results_json import encode
from abstain.report.results_json_conformal import conformal_results_json, conformal_schema
from abstain.report.tables import render

if TYPE_CHECKING:
    from pathlib import Path

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def _judged(*, infinite: bool = False) -> CoverageResult:
    rng = np.random.default_rng(0)
    truth = rng.normal(size=120)
    half = np.stack([np.full(120, 0.7), rng.gamma(9, 0.2, 120)], axis=1)
    bounds = np.stack([-half, half], axis=1)
    if infinite:
        bounds[:3, 1, 1] = math.inf
    site = np.array(["[red]north[/red]", "south"])[np.arange(120) % 2]
    return evaluate_intervals(
        truth,
        bounds,
        nominal=[0.5, 0.9],
        cluster=np.repeat(np.arange(40), 3),
        groups={"site": site},
        features={"x": rng.normal(size=120)},
        resamples=50,
    )


def _judged_sets() -> CoverageResult:
    rng = np.random.default_rng(1)
    return evaluate_sets(
        rng.integers(0, 3, 60), rng.random((60, 3)) < 0.7, nominal=0.9, labels=["a", "b", "c"], resamples=20
    )


def _loaded(result: CoverageResult) -> dict[str, Any]:
    def refuse(name: str) -> None:
        raise AssertionError(name)

    loaded: dict[str, Any] = json.loads(encode(conformal_results_json(result, NOW)), parse_constant=refuse)
    return loaded


@pytest.mark.parametrize("make", [_judged, _judged_sets, lambda: _judged(infinite=True)])
def test_the_results_json_follows_its_schema(make: Any) -> None:
    result = make()
    loaded = _loaded(result)
    jsonschema.validate(loaded, conformal_schema())
    assert loaded["schema_version"] == "2"
    assert loaded["created_at"] == "2026-01-02T03:04:05Z"
    assert loaded["kind"] == result.kind
    assert len(loaded["by_nominal"]) == len(result.by_nominal)
    coverage = loaded["by_nominal"][0]["metrics"]["coverage"]
    assert coverage["value"] == result.by_nominal[0]["coverage"].value
    assert coverage["interval"] == [
        result.by_nominal[0]["coverage"].low,
        result.by_nominal[0]["coverage"].high,
    ]
    assert loaded["by_nominal"][0]["verdict"]["verdict"] in {
        "covered",
        "over-covered",
        "under-covered",
        "inconclusive",
    }


def test_a_grouping_called_width_hides_no_stratum() -> None:
    truth = np.linspace(-1.0, 1.0, 40)
    half = np.repeat([0.5, 0.9], 20)
    result = evaluate_intervals(
        truth,
        np.stack([-half, half], axis=1),
        nominal=0.9,
        bins=2,
        groups={"width": np.arange(40) % 2},
        resamples=0,
    )
    table = coverage_tables(result)[0]
    parts = [row[2] for row in table.rows if row[1] == "coverage by width"]
    assert parts == [
        str(part.label) for part in (*result.by_nominal[0].strata, *result.by_nominal[0].groups["width"])
    ]
    assert len(parts) == 4


def test_a_grouping_called_size_hides_no_chart() -> None:
    rng = np.random.default_rng(2)
    result = evaluate_sets(
        rng.integers(0, 3, 30),
        rng.random((30, 3)) < 0.7,
        nominal=0.9,
        groups={"size": np.arange(30) % 2},
        resamples=0,
    )
    drawn = {name: chart.to_dict()["title"]["text"] for name, chart in charts(result).items()}
    assert drawn["coverage-by-size"] == "Coverage by set size"
    assert drawn["coverage-by-size-group"] == "Coverage by size"


def test_infinity_is_null_with_a_reason() -> None:
    width = _loaded(_judged(infinite=True))["by_nominal"][1]["metrics"]["mean_width"]
    assert width["value"] is None
    assert width["reason"] == "at least one interval is infinite"
    assert width["interval"] is None


def test_an_empty_stratum_is_kept_with_count_zero() -> None:
    result = evaluate_sets([0, 1], [[1, 0], [1, 0]], nominal=0.9, resamples=0)
    stratum = _loaded(result)["by_nominal"][0]["strata"][2]
    assert (stratum["count"], stratum["coverage"]["value"], stratum["verdict"]) == (0, None, None)


def _printed(result: CoverageResult) -> str:
    console = console_for()
    with console.capture() as capture:
        console.print(coverage_summary(result))
    return capture.get()


def test_the_summary_shows_the_verdict_and_plain_labels() -> None:
    result = _judged()
    text = _printed(result)
    assert result.by_nominal[0].verdict.verdict in text
    assert "[red]north[/red]" in text
    assert "coverage by site at nominal coverage 0.9" in text
    assert "worst slab" in text
    assert "weighted_interval_score (all)" in text
    assert "inf" in _printed(_judged(infinite=True))
    assert "coverage by set size" in _printed(_judged_sets())


def test_the_verdict_comes_first_and_warnings_before_metrics() -> None:
    text = _printed(_judged(infinite=True))
    assert text.index("Is the nominal coverage reached?") < text.index("Warnings") < text.index("Metrics")
    assert (
        "Warnings\n  ! 2.5% of the intervals with nominal coverage 0.9 are infinite, and so are their means"
        in text
    )
    assert "mean_width: at least one interval is infinite." in text
    for word in ("figure", "take care", "caution"):
        assert word not in text


def test_the_summary_keeps_to_the_width_of_a_terminal() -> None:
    console = Console(width=80, file=io.StringIO())
    console.print(coverage_summary(_judged(), 80))
    lines = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
    assert max(map(len, lines)) <= 80
    assert any(line.startswith("0.9 ") and "inconclusive" in line for line in lines)


def test_the_table_for_programs_has_every_metric_and_every_part() -> None:
    result = _judged_sets()
    (table,) = coverage_tables(result)
    nominal = result.by_nominal[0]
    assert [row[1] for row in table.rows[: len(nominal)]] == list(nominal)
    assert {row[5] for row in table.rows if row[1] == "coverage"} == {nominal.verdict.verdict}
    classes = [row[2:5] for row in table.rows if row[1] == "coverage by true class"]
    assert classes == [(part.label, part.count, part.coverage) for part in nominal.groups["true class"]]
    assert render([table], "csv").startswith("nominal,metric,part,rows,value,value_low,value_high,verdict\n")


def test_many_groups_show_the_worst() -> None:
    truth = np.zeros(60)
    bounds = np.array([[-1.0, 1.0]] * 59 + [[1.0, 2.0]])
    result = evaluate_intervals(truth, bounds, nominal=0.9, groups={"id": np.arange(60)}, resamples=0)
    text = _printed(result)
    assert "coverage by id, lowest first" in text
    assert "40 groups with higher coverage are in the results JSON" in text


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMATS)
def test_charts_are_written_in_every_form(form: str, tmp_path: Path) -> None:
    place = save_chart(coverage_chart(_judged()), tmp_path / f"chart{form}")
    assert place.stat().st_size > 1000


@pytest.mark.slow
def test_every_chart_of_every_kind_is_drawn(tmp_path: Path) -> None:
    for result in (_judged(), _judged(infinite=True), _judged_sets()):
        drawn = charts(result)
        assert {"coverage", "coverage-by-size", "width"} < set(drawn)
        for name, chart in drawn.items():
            assert b"<svg" in save_chart(chart, tmp_path / "chart.svg").read_bytes(), name
    assert "coverage-by-site" in charts(_judged())
    assert "coverage-by-true class" in charts(_judged_sets())


def test_a_chart_shows_the_numbers_of_the_result() -> None:
    result = _judged()
    specification = coverage_chart(result).to_dict()
    rows = [row for values in specification["datasets"].values() for row in values]
    found = {row["x"]: (row["y"], row["low"], row["high"]) for row in rows if "verdict" in row}
    for each in result.by_nominal:
        estimate = each.verdict.estimate
        assert found[each.nominal] == (estimate.value, estimate.low, estimate.high)
