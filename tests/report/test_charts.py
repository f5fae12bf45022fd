"""Charts: what they draw, in every form, and what they refuse. How they look is looked at by people."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from abstain.errors import ArgumentError
from abstain.metrics.calibration import cumulative_differences, reliability_curve
from abstain.report.charts import (
    FORMATS,
    before_and_after_diagram,
    cumulative_difference_plot,
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


def test_the_plot_draws_the_walk_and_its_band() -> None:
    walk = cumulative_differences([1, 0, 1], [0.2, 0.5, 0.6])
    rows = values(cumulative_difference_plot(walk, level=0.9))
    assert [row["difference"] for row in rows if "difference" in row] == pytest.approx(walk.difference)
    assert {row["high"] for row in rows if "high" in row} == {walk.band(0.9)}
    assert walk.band(0.9) == pytest.approx(1.96 * walk.sigma, rel=1e-3)


def test_a_long_walk_is_thinned_without_losing_its_extremes() -> None:
    walk = cumulative_differences(*sample(50_000))
    drawn = [row["difference"] for row in values(cumulative_difference_plot(walk)) if "difference" in row]
    assert len(drawn) <= 4002
    assert (min(drawn), max(drawn)) == (walk.difference.min(), walk.difference.max())
    assert drawn[-1] == walk.difference[-1]


def test_an_undefined_test_is_said_in_the_plot() -> None:
    chart = cumulative_difference_plot(cumulative_differences([1, 0], [1.0, 0.0]))
    assert "every confidence is 0 or 1" in specification(chart)["title"]["subtitle"]


def test_what_is_refused(tmp_path: Path) -> None:
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
