"""What a page is built of: panels, and the parts of a panel, each of which the template shows by its kind.

A part holds text, numbers and estimates; the template escapes all of it. Only charts come as markup, and they are made
by the chart renderer from specifications. Tables are those of `abstain.report.tables`, with what a page adds to them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from abstain.report.charts import chart_svg

if TYPE_CHECKING:
    from collections.abc import Sequence

    from markupsafe import Markup

    from abstain.report.tables import Table


class _Fragment:
    """A part of a panel."""

    __slots__ = ()

    @property
    def kind(self) -> str:
        """The name by which the template knows it."""
        return type(self).__name__.lower()


@dataclass(frozen=True, slots=True)
class Heading(_Fragment):
    """A heading within a panel."""

    text: str


@dataclass(frozen=True, slots=True)
class Note(_Fragment):
    """A quiet sentence."""

    text: str


@dataclass(frozen=True, slots=True)
class Figure(_Fragment):
    """A chart and what it shows, in words; a wide one scrolls where there is no room for it."""

    svg: str
    words: str
    wide: bool = False


@dataclass(frozen=True, slots=True)
class Gallery(_Fragment):
    """Charts of one kind, side by side."""

    figures: Sequence[Figure]


@dataclass(frozen=True, slots=True)
class TableView(_Fragment):
    """A table in a page; the first cell of a row is its heading, which is shown once where its column says so.

    Attributes:
        table: the table.
        label: what a screen reader calls it.
        compact: intervals stand below their values.
        folded: the line that unfolds the table; empty where it is not folded.
        unfolded: a folded table that begins open.
        marked: the heading of the row that stands out.
    """

    table: Table
    label: str
    compact: bool = False
    folded: str = ""
    unfolded: bool = False
    marked: str = ""


@dataclass(frozen=True, slots=True)
class StripPart:
    """A part of all items: what became of them, how many, and where the part begins and ends, in percent."""

    outcome: str
    name: str
    count: int
    start: str
    share: str


@dataclass(frozen=True, slots=True)
class Strip(_Fragment):
    """What became of the items of a system: a strip with its parts, and beside them further numbers, if any."""

    parts: Sequence[StripPart]
    tiles: Sequence[tuple[str, Any]]

    @property
    def words(self) -> str:
        """The strip in words."""
        return "Items: " + ", ".join(f"{part.count:,} {part.name}" for part in self.parts)


@dataclass(frozen=True, slots=True)
class Explorer(_Fragment):
    """The curves with the threshold explorer; the still charts stand where scripts do not run.

    Attributes:
        charts: the still charts.
        noun: what a cluster is called.
        share: True where the loss is a share, and risks are told in per cent.
        sure: how sure a promise is, in per cent.
    """

    charts: Sequence[Figure]
    noun: str
    share: bool
    sure: str


Part = str | Heading | Note | Figure | Gallery | TableView | Strip | Explorer


@dataclass(frozen=True, slots=True)
class Panel:
    """A section of the page: a title, the short one of the menu, and parts in their order; a text is a paragraph."""

    anchor: str
    title: str
    short: str
    parts: Sequence[Part]


def figure(chart: Any, words: str, *, wide: bool = False) -> Figure:
    """Return a chart as a figure of the page."""
    return Figure(chart_svg(chart), words, wide)


def figure_markup(shown: Figure) -> Markup:
    """Return a chart as a figure that a screen reader announces by its words."""
    from markupsafe import Markup  # noqa: PLC0415

    # The renderer escapes the texts of a chart; the words are escaped here.
    frame = Markup('<figure class="chart{}"{} role="group" aria-label="{}">{}</figure>')
    # On a narrow screen a wide chart scrolls, which the keyboard must reach.
    look = (" wide", Markup(' tabindex="0"')) if shown.wide else ("", "")
    return frame.format(*look, shown.words, Markup(shown.svg))


def sentence(words: str) -> str:
    """Return words as a sentence.

    >>> sentence("no intervals")
    'No intervals.'
    """
    return f"{words[:1].upper()}{words[1:]}."
