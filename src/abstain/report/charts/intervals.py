"""Charts of prediction intervals and sets: coverage by nominal coverage, width and group, and the widths.

Each function takes a result and returns an Altair chart. A chart computes nothing. Undefined numbers are left out.
"""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any

import altair as alt

from abstain.report.charts._look import BLUE, COLOURS, DASHES, GREEN, GREY, ORANGE, chart_of, finish_chart

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from abstain.evaluation.conformal import CoverageResult, Stratum
    from abstain.inference import Estimate
    from abstain.report.charts._look import Chart

# Colours that differ for every kind of colour vision; the shapes repeat the information.
_VERDICTS = ["covered", "over-covered", "under-covered", "inconclusive"]
_COLOUR = alt.Color(
    "verdict:N", title="verdict", scale=alt.Scale(domain=_VERDICTS, range=[BLUE, GREEN, ORANGE, GREY])
)
_SHAPES = ["circle", "triangle-up", "triangle-down", "square"]
_SHAPE = alt.Shape("verdict:N", title="verdict", scale=alt.Scale(domain=_VERDICTS, range=_SHAPES))
_ROW_HEIGHT = 22
_MOST_GROUPS = 40


def coverage_chart(result: CoverageResult) -> Chart:
    """Draw coverage against nominal coverage with confidence intervals; on the diagonal they agree."""
    rows = [_row(each.nominal, each.verdict.estimate, each.verdict.verdict) for each in result.by_nominal]
    ends = [row[key] for row in rows for key in ("low", "high", "x") if row[key] is not None]
    low = max(0.0, min(ends) - 0.03)
    axis = alt.Scale(domain=[low, 1.0], nice=False)
    ticks = alt.Axis(tickCount=5, format=".2f" if low < 0.95 else ".3f")
    diagonal = chart_of([{"x": low, "y": low}, {"x": 1.0, "y": 1.0}]).mark_line(
        strokeDash=[4, 4], color="#888888"
    )
    base = chart_of(rows).encode(x=alt.X("x:Q", title="nominal coverage", scale=axis, axis=ticks))
    layers = [diagonal.encode(x=alt.X("x:Q", scale=axis, axis=ticks), y=alt.Y("y:Q", scale=axis, axis=ticks))]
    if len(rows) > 1:
        band = base.mark_area(opacity=0.15, color=BLUE)
        layers.append(band.encode(y=alt.Y("low:Q", title="coverage"), y2="high:Q"))
        layers.append(base.mark_line(color=BLUE).encode(y="y:Q"))
    layers.append(
        base.mark_rule().encode(y=alt.Y("low:Q", title="coverage", scale=axis), y2="high:Q", color=_COLOUR)
    )
    layers.append(_points(base).encode(y=alt.Y("y:Q", title="coverage", scale=axis)))
    return finish_chart(alt.layer(*layers), "Coverage and nominal coverage", width=320, height=320)


def strata_chart(result: CoverageResult) -> Chart:
    """Draw coverage by stratum of width or by set size; the line is the nominal coverage."""
    what = "width" if result.kind == "intervals" else "set size"
    return _by_part(result, lambda nominal: nominal.strata, f"Coverage by {what}")


def groups_chart(result: CoverageResult, grouping: str) -> Chart:
    """Draw coverage by group; the line is the nominal coverage. Of many groups the lowest are shown."""
    return _by_part(result, lambda nominal: nominal.groups[grouping], f"Coverage by {grouping}")


def width_chart(result: CoverageResult) -> Chart:
    """Draw the proportion of predictions up to each width."""
    what = "width of the interval" if result.kind == "intervals" else "classes in the set"
    rows = []
    for each in result.by_nominal:
        values = each.width_quantiles.tolist()
        for index, width in enumerate(values):
            last = index + 1 == len(values) or values[index + 1] != width
            if math.isfinite(width) and last:
                rows.append(
                    {"width": width, "proportion": index / (len(values) - 1), "nominal": f"{each.nominal:g}"}
                )
    ticks = alt.Axis(tickCount=6, tickMinStep=1) if result.kind == "sets" else alt.Axis(tickCount=6)
    unit, percent = alt.Scale(domain=[0, 1]), alt.Axis(format="%")
    chart = (
        chart_of(rows)
        .mark_line(interpolate="step-after" if result.kind == "sets" else "linear", point=len(rows) < 12)
        .encode(
            x=alt.X("width:Q", title=what, axis=ticks),
            y=alt.Y("proportion:Q", title="proportion up to this width", scale=unit, axis=percent),
            color=alt.Color("nominal:N", title="nominal coverage", scale=alt.Scale(range=list(COLOURS))),
            strokeDash=alt.StrokeDash("nominal:N", title="nominal coverage", scale=alt.Scale(range=DASHES)),
        )
    )
    return finish_chart(alt.layer(chart), "Width of the predictions", width=420, height=260)


CHARTS: dict[str, Callable[[CoverageResult], Chart]] = {
    "coverage": coverage_chart,
    "coverage-by-size": strata_chart,
    "width": width_chart,
}


def chart_functions(result: CoverageResult) -> dict[str, Callable[[CoverageResult], Chart]]:
    """Return the functions that draw a result by the names of the charts: those of `CHARTS`, and one per grouping."""
    functions = dict(CHARTS)
    for grouping in result.by_nominal[0].groups:
        name = f"coverage-by-{grouping}"
        functions[f"{name}-group" if name in CHARTS else name] = partial(groups_chart, grouping=grouping)
    return functions


def charts(result: CoverageResult) -> dict[str, Chart]:
    """Return every chart of a result by name."""
    return {name: draw(result) for name, draw in chart_functions(result).items()}


def _by_part(result: CoverageResult, parts_of: Callable[[Any], Sequence[Stratum]], title: str) -> Chart:
    panels, labels = [], []
    for each in result.by_nominal:
        parts = [part for part in parts_of(each) if part.coverage.defined]
        if len(parts) > _MOST_GROUPS:
            parts = sorted(parts, key=lambda part: part.coverage.value)[:_MOST_GROUPS]
        rows = []
        for part in parts:
            verdict = "inconclusive" if part.verdict is None else part.verdict.verdict
            rows.append(_row(str(part.label), part.coverage, verdict) | {"rows": part.count})
        order = [row["x"] for row in rows]
        labels += order
        base = chart_of(rows).encode(
            y=alt.Y("x:N", title=None, sort=order, axis=alt.Axis(labelLimit=260)),
            tooltip=["x:N", "y:Q", "low:Q", "high:Q", "rows:Q"],
        )
        scale, ticks = alt.Scale(domain=[0, 1]), alt.Axis(tickCount=5, format=".1f")
        nominal = chart_of([{"nominal": each.nominal}]).mark_rule(strokeDash=[4, 4], color="#888888")
        spans = base.mark_rule(strokeWidth=2).encode(
            x=alt.X("low:Q", title="coverage", scale=scale, axis=ticks), x2="high:Q", color=_COLOUR
        )
        points = _points(base).encode(x=alt.X("y:Q", title="coverage", scale=scale))
        panel = alt.layer(nominal.encode(x="nominal:Q"), spans, points)
        panel = panel.properties(width=360, height=_ROW_HEIGHT * max(len(rows), 2))
        panels.append(
            panel.properties(title=f"nominal coverage {each.nominal:g}")
            if len(result.by_nominal) > 1
            else panel
        )
    return finish_chart(panels[0] if len(panels) == 1 else alt.vconcat(*panels), title, row_labels=labels)


def _row(x: object, coverage: Estimate, verdict: str) -> dict[str, Any]:
    low, high = coverage.interval or (None, None)
    return {"x": x, "y": coverage.value, "low": low, "high": high, "verdict": verdict}


def _points(base: alt.Chart) -> alt.Chart:
    return base.mark_point(filled=True, size=80, opacity=1).encode(shape=_SHAPE, color=_COLOUR)
