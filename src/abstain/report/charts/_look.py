"""The common look of all charts: a few colours, one font, quiet axes.

The colours differ for every kind of colour vision, and no information is in the colour only. The report maps exactly
these colours to its light and dark theme, so a chart uses no others.
"""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

import altair as alt
from altair.utils import schemapi

from abstain.report.charts._notebook import ChartRows, offline_chart

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractContextManager

    from abstain.inference import Estimate

    Chart = alt.LayerChart | alt.VConcatChart | alt.HConcatChart | alt.Chart

BLUE, ORANGE, GREEN, GREY, PALE = "#0072B2", "#D55E00", "#009E73", "#555555", "#D9D9D9"
INK, GRID = "#222222", "#EEEEEE"
# Okabe and Ito's colours, in an order that keeps neighbours apart.
COLOURS = (BLUE, ORANGE, GREEN, "#CC79A7", "#E69F00", "#56B4E9", "#8C6D31", GREY)
# Dashes and marks distinguish lines if colours do not, one for each colour.
DASHES: list[list[int]] = [[1, 0], [8, 3], [2, 2], [8, 3, 2, 3], [12, 3], [4, 4], [2, 5], [12, 3, 2, 3, 2, 3]]
SHAPES = [
    "circle",
    "square",
    "triangle-up",
    "diamond",
    "cross",
    "triangle-down",
    "triangle-right",
    "triangle-left",
]
_FONT = "system-ui, -apple-system, 'Segoe UI', Helvetica, Arial, sans-serif"
# The width of a letter as a proportion of the font size, in a wide font: lines that are wrapped by it are not cut off.
_LETTER_WIDTH = 0.58
_WIDTH = 460
_TITLE_SIZE, _SUBTITLE_SIZE = 14, 11
# Pixels around a chart, the extra pixels per letter of a label, and the longest label that is not shortened.
_PADDING, _EXTRA_WIDTH, _LONGEST_LABEL = 5.0, 1.1, 45


def unchecked() -> AbstractContextManager[None]:
    """Return a context in which charts are built without being checked against the schema at every step.

    The tests build every chart with the checks on; a report need not pay for them again.
    """
    return schemapi.debug_mode(False)


def chart_of(rows: list[dict[str, Any]]) -> alt.Chart:
    """Return a chart of records, which it carries itself."""
    return alt.Chart(ChartRows(values=rows))


def describe_interval(estimate: Estimate, noun: str) -> str:
    """Return the level of an interval and how it was computed.

    >>> from abstain.inference import Estimate
    >>> describe_interval(Estimate(0.2, 0.1, 0.3, method="jackknife over 9 clusters", degrees=8), "patient")
    '95% confidence intervals: jackknife over 9 patients'
    """
    if estimate.method == "none":
        return "no confidence intervals"
    drawn = "" if estimate.drawn is None else f", {estimate.resamples:,} resamples of {noun}s"
    method = estimate.method.replace("clusters", f"{noun}s")
    return f"{100 * estimate.level:g}% confidence intervals: {method}{drawn}"


def heading(
    title: str, subtitle: str | Sequence[str] = "", *, width: float = _WIDTH, size: int = _TITLE_SIZE
) -> Any:
    """Return a title with quiet lines below it, all wrapped to the width of the chart.

    >>> heading("Reliability", "200 rows in 10 bins; bars: 95% confidence intervals", width=200).subtitle
    ['200 rows in 10 bins; bars: 95%', 'confidence intervals']
    """
    paragraphs = [subtitle] if isinstance(subtitle, str) else subtitle
    lines = [line for text in paragraphs if text for line in _wrap_text(text, width, _SUBTITLE_SIZE)]
    titles = _wrap_text(title, width, size)
    return alt.TitleParams(
        text=titles[0] if len(titles) == 1 else titles,
        subtitle=lines or alt.Undefined,
        anchor="start",
        fontSize=size,
        subtitleColor=GREY,
    )


def _longest(labels: Sequence[str]) -> int:
    """Return the length of the longest label as drawn."""
    return min(max(map(len, labels), default=0), _LONGEST_LABEL)


def _wrap_text(text: str, width: float, size: int) -> list[str]:
    """Return a text as lines that fit a width in pixels, broken only at spaces."""
    letters = max(int(width / (_LETTER_WIDTH * size)), 20)
    return textwrap.wrap(text, letters, break_long_words=False, break_on_hyphens=False) or [""]


def finish_chart(
    chart: Any,
    title: str = "",
    subtitle: str | Sequence[str] = "",
    *,
    row_labels: Sequence[str] = (),
    end_labels: Sequence[str] = (),
    **size: float,
) -> Any:
    """Return a chart with its title and the common look. This is the last step of drawing it.

    Browsers draw letters wider than the renderer measures them. Labels of rows, on the left, and of the ends of lines,
    on the right, therefore have extra space, so that an image does not cut them off.
    """
    titled = {"title": heading(title, subtitle, width=size.get("width", _WIDTH))} if title else {}
    left, right = (_PADDING + _EXTRA_WIDTH * _longest(labels) for labels in (row_labels, end_labels))
    padding = {"left": left, "right": right, "top": _PADDING, "bottom": _PADDING}
    return offline_chart(
        chart.properties(**size, **titled, padding=padding)
        .configure(font=_FONT, background="white")
        .configure_view(stroke=None)
        .configure_axis(
            gridColor=GRID,
            domainColor="#888888",
            tickColor="#888888",
            labelColor=GREY,
            titleColor=INK,
            labelFontSize=11,
            titleFontSize=12,
            titleFontWeight="normal",
        )
        # Browsers may draw letters wider than they were measured: labels that would come close are left out.
        .configure_axisX(labelOverlap="parity", labelSeparation=14)
        .configure_title(color=INK, fontWeight="bold", subtitleFontSize=_SUBTITLE_SIZE, offset=8)
        .configure_legend(labelColor=INK, titleColor=INK, labelFontSize=11)
    )
