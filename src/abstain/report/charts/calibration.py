"""Charts of calibration: reliability, before and after, and cumulative differences."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import altair as alt
import numpy as np

from abstain import _validate
from abstain.errors import ArgumentError
from abstain.report.charts._look import BLUE, GREY, ORANGE, PALE, chart_of, finish_chart, heading

if TYPE_CHECKING:
    from collections.abc import Sequence

    from abstain.metrics.calibration import CumulativeDifferences, ReliabilityCurve
    from abstain.report.charts._look import Chart

_SIDE, _STRIP = 320, 70
_MOST_STEPS = 4000
_FIFTHS = {"values": [0.0, 0.2, 0.4, 0.6, 0.8, 1.0], "format": ".1f"}
_TOOLTIP = [
    alt.Tooltip("count:Q", title="rows"),
    alt.Tooltip("confidence:Q", title="mean confidence", format=".3f"),
    alt.Tooltip("accuracy:Q", title="positive outcomes", format=".3f"),
    alt.Tooltip("low:Q", title="from", format=".3f"),
    alt.Tooltip("high:Q", title="to", format=".3f"),
]


def reliability_diagram(
    curve: ReliabilityCurve, *, title: str = "Reliability", subtitle: str = "", noun: str = "cluster"
) -> Chart:
    """Draw accuracy against confidence with interval bars, and below it the number of rows in each bin.

    Args:
        curve: the result of `reliability_curve`.
        title: the heading.
        subtitle: the line below it. Default: the number of rows and the intervals.
        noun: the word for a cluster.
    """
    return finish_chart(_reliability(curve, title, subtitle or _describe_bins(curve, noun), BLUE))


def before_and_after_diagram(
    before: ReliabilityCurve,
    after: ReliabilityCurve,
    *,
    names: Sequence[str] = ("before", "after"),
    title: str = "Before and after calibration",
) -> Chart:
    """Draw two reliability diagrams side by side on the same axes.

    Args:
        before: the curve of the raw confidence.
        after: the curve of the calibrated confidence, preferably on rows that the calibrator was not fitted on.
        names: the names of the two.
        title: the heading.
    """
    if len(names) != 2:
        raise ArgumentError(f"names must be two, before and after, got {len(names)}")
    sides = zip((before, after), names, (ORANGE, BLUE), strict=True)
    most = max(before.count.max(), after.count.max())
    panels = [_reliability(curve, name, _describe_bins(curve), colour, most) for curve, name, colour in sides]
    return finish_chart(alt.hconcat(*panels, spacing=40, title=heading(title, width=2 * _SIDE, size=16)))


def cumulative_difference_plot(
    differences: CumulativeDifferences,
    *,
    level: float = 0.95,
    title: str = "Cumulative differences",
    subtitle: str = "",
) -> Chart:
    """Draw the cumulative sum of outcome - confidence, and the band that calibrated confidences stay within.

    The line leaves the band exactly if the Kolmogorov-Smirnov test rejects at ``1 - level``. The confidences are too
    high in the range in which the line falls, and too low in the range in which it rises.

    Args:
        differences: the result of `cumulative_differences`.
        level: the probability that calibrated confidences stay within the band everywhere.
        title: the heading.
        subtitle: the line below it. Default: the test and the number of rows.
    """
    height = differences.band(_validate.level(level))
    points = _steps(differences)
    proportion = alt.X(
        "proportion:Q",
        title="proportion of rows, least confident first",
        scale=alt.Scale(domain=[0, 1], nice=False),
    )
    ends = [{"proportion": end, "low": -height, "high": height} for end in (0.0, 1.0)]
    band = (
        chart_of(ends)
        .mark_area(color=PALE, opacity=0.7)
        .encode(
            x=proportion, y=alt.Y("low:Q", title="sum of outcome - confidence, divided by n"), y2="high:Q"
        )
    )
    zero = chart_of([{"zero": 0.0}]).mark_rule(color=GREY, strokeDash=[4, 4]).encode(y="zero:Q")
    tooltip = [
        alt.Tooltip("proportion:Q", format=".3f"),
        alt.Tooltip("confidence:Q", title="confidence up to", format=".3f"),
        alt.Tooltip("difference:Q", format=".4f"),
    ]
    line = (
        chart_of(points)
        .mark_line(
            color=BLUE, strokeWidth=1.8, point={"color": BLUE, "size": 12} if len(points) <= 60 else False
        )
        .encode(x=proportion, y=alt.Y("difference:Q"), tooltip=tooltip)
    )
    test = (
        differences.reason
        or f"Kolmogorov-Smirnov {differences.statistic:.2f}, p = {differences.p_value:.3f}, n = {differences.n:g}"
    )
    subtitle = subtitle or f"{test}; grey: {100 * level:g}% band of calibrated confidences"
    return finish_chart(alt.layer(band, zero, line), title, subtitle, width=1.6 * _SIDE, height=_SIDE)


def _reliability(
    curve: ReliabilityCurve, title: str, subtitle: str, colour: str, most: float | None = None
) -> alt.VConcatChart:
    """Return the diagram of one curve: points with bars above, counts up to `most` below, on one axis of confidence."""
    unit = alt.Scale(domain=[0, 1], nice=False)
    counts = alt.Scale(domain=[0, float(curve.count.max() if most is None else most)])
    bins = _bins(curve)
    held = chart_of([row for row in bins if row["count"] > 0])
    across = alt.X("confidence:Q", scale=unit, title=None, axis={**_FIFTHS, "labels": False})
    corners = chart_of([{"x": 0.0, "y": 0.0}, {"x": 1.0, "y": 1.0}])
    diagonal = corners.mark_line(color=GREY, strokeDash=[4, 4]).encode(
        x=alt.X("x:Q", scale=unit), y=alt.Y("y:Q", scale=unit)
    )
    bars = held.mark_rule(color=colour, strokeWidth=1.6, opacity=0.7).encode(
        x=across,
        y=alt.Y("low:Q", scale=unit, title="proportion of positive outcomes", axis=_FIFTHS),
        y2="high:Q",
    )
    line = held.mark_line(color=colour, opacity=0.35).encode(x=across, y="accuracy:Q")
    points = held.mark_point(color=colour, filled=True, size=55, opacity=1.0).encode(
        x=across, y=alt.Y("accuracy:Q", scale=unit), tooltip=_TOOLTIP
    )
    upper = alt.layer(diagonal, bars, line, points).properties(width=_SIDE, height=_SIDE)
    lower = (
        chart_of(bins)
        .mark_bar(color=colour, opacity=0.45, stroke="white", strokeWidth=1)
        .encode(
            x=alt.X("left:Q", scale=unit, title="stated confidence", axis=_FIFTHS),
            x2="right:Q",
            y=alt.Y("count:Q", title="rows", scale=counts, axis=alt.Axis(tickCount=3, format="d")),
            y2=alt.datum(0),
            tooltip=_TOOLTIP,
        )
        .properties(width=_SIDE, height=_STRIP)
    )
    return alt.vconcat(upper, lower, spacing=6, title=heading(title, subtitle, width=_SIDE))


def _bins(curve: ReliabilityCurve) -> list[dict[str, Any]]:
    """Return one record per bin, with None for the statistics of an empty bin."""
    columns = {
        "left": curve.edges[:-1],
        "right": curve.edges[1:],
        "count": curve.count,
        "confidence": curve.confidence,
        "accuracy": curve.accuracy,
        "low": curve.low,
        "high": curve.high,
    }
    rows = zip(*(column.tolist() for column in columns.values()), strict=True)
    return [
        {name: None if math.isnan(value) else value for name, value in zip(columns, row, strict=True)}
        for row in rows
    ]


def _steps(differences: CumulativeDifferences) -> list[dict[str, Any]]:
    """Return one record per step. A long line is thinned to the lowest and the highest step of every part."""
    kept = np.arange(len(differences.difference))
    if len(kept) > _MOST_STEPS:
        stretches = np.array_split(kept, _MOST_STEPS // 2)
        ends = [
            (part[differences.difference[part].argmin()], part[differences.difference[part].argmax()])
            for part in stretches
        ]
        kept = np.unique([0, *np.ravel(ends), len(kept) - 1])
    columns = (differences.proportion[kept], differences.difference[kept], differences.confidence[kept])
    return [
        {
            "proportion": proportion,
            "difference": difference,
            "confidence": None if math.isnan(level) else level,
        }
        for proportion, difference, level in zip(*(column.tolist() for column in columns), strict=True)
    ]


def _describe_bins(curve: ReliabilityCurve, noun: str = "cluster") -> str:
    widened = f" over {noun}s" if (curve.effective_count < curve.count).any() else ""
    intervals = f"{100 * curve.level:g}% confidence intervals{widened}"
    return f"{curve.count.sum():g} rows in {len(curve)} bins; bars: {intervals}"
