"""Charts: their data, their formats, and their errors. People check their look."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from abstain import Items, compare, evaluate, evaluate_intervals
from abstain.errors import ArgumentError
from abstain.metrics.calibration import cumulative_differences, reliability_curve
from abstain.report.charts import (
    COMPARISON_CHARTS,
    FORMATS,
    SYSTEM_CHARTS,
    before_and_after_diagram,
    cumulative_difference_plot,
    draw,
    reliability_diagram,
    save_chart,
)

if TYPE_CHECKING:
    from pathlib import Path

BEGINNINGS = {
    ".png": b"\x89PNG",
    ".svg": b"<svg",
    ".html": b"<!DOCTYPE html>",
    ".pdf": b"%PDF",
    ".json": b"{",
}


def sample(n: int = 200) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    s = rng.random(n)
    return (rng.random(n) < s).astype(int), s


def specification(chart: Any) -> Any:
    return json.loads(chart.to_json())


def values(chart: Any) -> list[Any]:
    """All rows that the chart draws."""
    return [row for rows in specification(chart)["datasets"].values() for row in rows]


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMATS)
def test_every_chart_in_every_form(form: str, tmp_path: Path) -> None:
    y, s = sample()
    curve = reliability_curve(y, s, bins=10)
    charts = {
        "reliability": reliability_diagram(curve),
        "walk": cumulative_difference_plot(cumulative_differences(y, s)),
        "both": before_and_after_diagram(curve, reliability_curve(y, s, strategy="quantile")),
    }
    for name, chart in charts.items():
        place = save_chart(chart, tmp_path / f"{name}{form}")
        assert place.read_bytes().lstrip().startswith(BEGINNINGS[form])


@pytest.mark.slow
def test_html_needs_no_network(tmp_path: Path) -> None:
    page = save_chart(reliability_diagram(reliability_curve(*sample())), tmp_path / "chart.html").read_text()
    assert 'src="http' not in page
    assert "import " not in page.split("<script", maxsplit=1)[0]


@pytest.mark.slow
def test_a_page_sends_nothing_anywhere(tmp_path: Path) -> None:
    page = save_chart(reliability_diagram(reliability_curve(*sample())), tmp_path / "chart.html").read_text()
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]+)"', page)
    assert policy is not None
    allowed = dict(part.split(" ", 1) for part in policy[1].split("; "))
    scripts = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    hashes = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in scripts]
    assert allowed["script-src"].split() == [f"'sha256-{known}'" for known in hashes]
    assert allowed["default-src"] == "'none'"
    assert "connect-src" not in allowed
    assert "editor: false" in scripts[1]


@pytest.mark.slow
def test_hostile_text_cannot_leave_the_script(tmp_path: Path) -> None:
    title = "</script><script>alert(1)</script>"
    chart = reliability_diagram(reliability_curve(*sample()), title=title)
    page = save_chart(chart, tmp_path / "chart.html").read_text()
    assert title not in page
    assert page.count("<script>") == page.count("</script>") == 2


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMATS)
def test_control_characters_in_a_name_end_no_renderer(form: str, tmp_path: Path) -> None:
    """They came from a file; one of them in a title used to abort Python itself."""
    chart = reliability_diagram(reliability_curve(*sample()), title="red \x1b[31m, nothing \x00, half \ud800")
    place = save_chart(chart, tmp_path / f"chart{form}")
    content = place.read_bytes()
    assert content.lstrip().startswith(BEGINNINGS[form])
    assert b"\x1b" not in content or form in (".png", ".pdf")
    assert repr(chart) == "Chart('red \ufffd[31m, nothing \ufffd, half \ufffd')"


def test_the_diagram_draws_the_curve_and_keeps_empty_bins() -> None:
    curve = reliability_curve([1, 0, 1], [0.05, 0.95, 0.96], bins=10)
    rows = values(reliability_diagram(curve))
    bins = [row for row in rows if isinstance(row, dict) and "left" in row]
    assert sorted({row["left"] for row in bins}) == pytest.approx(np.arange(10) / 10)
    assert {row["count"] for row in bins} == {0, 1, 2}
    assert any(row["accuracy"] == 0.5 and row["count"] == 2 for row in bins)
    assert all(row["accuracy"] is None for row in bins if row["count"] == 0)


def test_the_plot_draws_the_cumulative_differences_and_their_band() -> None:
    walk = cumulative_differences([1, 0, 1], [0.2, 0.5, 0.6])
    rows = values(cumulative_difference_plot(walk, level=0.9))
    assert [row["difference"] for row in rows if "difference" in row] == pytest.approx(walk.difference)
    assert {row["high"] for row in rows if "high" in row} == {walk.band(0.9)}
    assert walk.band(0.9) == pytest.approx(1.96 * walk.sigma, rel=1e-3)


def test_a_long_line_is_thinned_without_losing_its_extremes() -> None:
    walk = cumulative_differences(*sample(50_000))
    drawn = [row["difference"] for row in values(cumulative_difference_plot(walk)) if "difference" in row]
    assert len(drawn) <= 4002
    assert (min(drawn), max(drawn)) == (walk.difference.min(), walk.difference.max())
    assert drawn[-1] == walk.difference[-1]


def test_the_plot_names_the_reason_of_an_undefined_test() -> None:
    chart = cumulative_difference_plot(cumulative_differences([1, 0], [1.0, 0.0]))
    assert "every confidence is 0 or 1" in " ".join(specification(chart)["title"]["subtitle"])


def encoded_fields(part: Any, datasets: Any, inherited: Any = None) -> Any:
    """Yield the fields that each layer of a specification encodes, with the rows that it draws."""
    data = part.get("data", inherited)
    records = datasets.get(data["name"], []) if data and "name" in data else (data or {}).get("values", [])
    for encoding in part.get("encoding", {}).values():
        for channel in encoding if isinstance(encoding, list) else [encoding]:
            if "field" in channel and records:
                yield channel["field"], records
    for name in ("layer", "vconcat", "hconcat"):
        for below in part.get(name, ()):
            yield from encoded_fields(below, datasets, data)


def all_charts() -> list[Any]:
    y, s = sample()
    curve = reliability_curve(y, s, bins=10)
    items = Items.from_arrays(y, np.ones(200), confidence=s, item=np.arange(200))
    one = evaluate(items, resamples=0)
    two = compare({"a": items, "b": items}, resamples=0)
    bounds = np.column_stack([s - 0.2, s + 0.2])
    covered = evaluate_intervals(s, bounds, nominal=0.9, resamples=10, groups={"site": ["a", "b"] * 100})
    return [
        reliability_diagram(curve),
        before_and_after_diagram(curve, curve),
        cumulative_difference_plot(cumulative_differences(y, s)),
        *(draw(one, name) for name in SYSTEM_CHARTS),
        *(draw(two, name) for name in COMPARISON_CHARTS),
        *(draw(covered, name) for name in ("coverage", "coverage-by-size", "width", "coverage-by-site")),
    ]


def test_every_encoded_field_is_in_the_data() -> None:
    """A field that no row has is drawn as nothing, without an error."""
    for chart in all_charts():
        spec = specification(chart)
        fields = list(encoded_fields(spec, spec["datasets"]))
        assert fields
        for field, records in fields:
            assert all(field in row for row in records), (repr(chart), field)


def test_titles_and_subtitles_are_wrapped_to_the_width_of_the_chart() -> None:
    """Vega cuts off a line that is wider than the chart."""
    title = "A rather long title of a reliability diagram of a system with a long name"
    for chart in [*all_charts(), reliability_diagram(reliability_curve(*sample()), title=title)]:
        spec = specification(chart)
        heading = spec["title"]
        width = spec.get("width", 320)
        lines = heading.get("subtitle", [])
        assert isinstance(lines, list)
        assert all(6 * len(line) <= width for line in lines), (repr(chart), lines)
    assert len(heading["text"]) > 1
    assert repr(chart) == f"Chart({title!r})"


def test_invalid_arguments_are_errors(tmp_path: Path) -> None:
    curve = reliability_curve(*sample())
    with pytest.raises(ArgumentError, match=r"a chart ends in \.png, \.svg"):
        save_chart(reliability_diagram(curve), tmp_path / "chart.gif")
    with pytest.raises(ArgumentError, match="does not exist; create it first"):
        save_chart(reliability_diagram(curve), tmp_path / "none" / "chart.png")
    with pytest.raises(ArgumentError, match="names must be two"):
        before_and_after_diagram(curve, curve, names=["one"])
    with pytest.raises(ArgumentError, match="level must fulfil"):
        cumulative_difference_plot(cumulative_differences(*sample()), level=95)
    assert list(tmp_path.iterdir()) == []
