"""The parts of a page: panels, and the parts of a panel, which the template renders by their class.

A part holds text, numbers and estimates, and the template escapes all of it. Only charts are markup: the chart renderer
makes it from specifications, and escapes the texts of a chart.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from abstain.report.charts import chart_svg

if TYPE_CHECKING:
    from collections.abc import Sequence

    from abstain.report.tables import Table


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading within a panel."""

    text: str


@dataclass(frozen=True, slots=True)
class Note:
    """A quiet sentence."""

    text: str


@dataclass(frozen=True, slots=True)
class Figure:
    """A chart and its description; a wide one scrolls on a narrow screen."""

    svg: Markup
    words: str
    wide: bool = False


@dataclass(frozen=True, slots=True)
class Gallery:
    """Charts of one kind, side by side."""

    figures: Sequence[Figure]


@dataclass(frozen=True, slots=True)
class TableView:
    """A table in a page; the first cell of a row is its heading.

    Screen readers read the label. A compact table has intervals below their values. The row with the marked heading is
    highlighted. On a narrow screen, the first columns stay visible while the others scroll.
    """

    table: Table
    label: str
    compact: bool = False
    marked: str = ""


@dataclass(frozen=True, slots=True)
class StripPart:
    """A part of the strip: an outcome, the number of its items, and the start and length of the part in percent."""

    outcome: str
    name: str
    count: int
    start: str
    proportion: str


@dataclass(frozen=True, slots=True)
class Strip:
    """The outcomes of the items of a system as a strip, and further numbers below it."""

    parts: Sequence[StripPart]
    tiles: Sequence[tuple[str, Any]]


@dataclass(frozen=True, slots=True)
class Explorer:
    """The curves with the threshold explorer; static charts replace it without scripts and on paper."""

    charts: Sequence[Figure]
    noun: str
    # True if the loss is a proportion, so that risks are printed in percent.
    proportion: bool
    # The confidence level of a risk guarantee, in percent.
    sure: str


@dataclass(frozen=True, slots=True)
class Fold:
    """Parts behind a line that unfolds them; paper omits them unless they are unfolded."""

    summary: str
    parts: Sequence[Part]
    unfolded: bool = False


Part = str | Heading | Note | Figure | Gallery | TableView | Strip | Explorer | Fold


@dataclass(frozen=True, slots=True)
class Panel:
    """A section of the page: its title, the short title in the menu, and its parts in order; a text is a paragraph."""

    anchor: str
    title: str
    short: str
    parts: Sequence[Part]


def figure(chart: Any, words: str, *, wide: bool = False) -> Figure:
    """Return a chart as a part of the page."""
    return Figure(Markup(chart_svg(chart)), words, wide)


def sentence(words: str) -> str:
    """Return words as a sentence.

    >>> sentence("no intervals")
    'No intervals.'
    """
    return f"{words[:1].upper()}{words[1:]}."
