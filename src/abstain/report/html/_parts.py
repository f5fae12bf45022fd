"""What panels are built of: figures and tables, and how a figure becomes markup."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from abstain.report.charts import chart_svg

if TYPE_CHECKING:
    from collections.abc import Sequence

    from markupsafe import Markup

__all__ = ["Figure", "Panel", "TableView", "figure", "figure_markup"]


@dataclass(frozen=True, slots=True)
class Figure:
    """A chart and what it shows, in words; a wide one scrolls where there is no room for it."""

    svg: str
    words: str
    wide: bool = False


@dataclass(frozen=True, slots=True)
class TableView:
    """A table whose cells are texts or estimates; the first cell of a row is its heading.

    A compact one has intervals below their values.
    """

    caption: str
    headings: Sequence[str]
    rows: Sequence[Sequence[Any]]
    compact: bool = False


@dataclass(frozen=True, slots=True)
class Panel:
    """A section of the page: sentences, tables, charts."""

    anchor: str
    title: str
    short: str
    words: Sequence[str] = ()
    tables: Sequence[TableView] = ()
    figures: Sequence[Figure] = ()


def figure(chart: Any, words: str, *, wide: bool = False) -> Figure:
    """Return a chart as a figure of the page."""
    return Figure(chart_svg(chart), words, wide)


def figure_markup(shown: Figure | None) -> Markup:
    """Return a chart as a figure that a screen reader announces by its words."""
    from markupsafe import Markup  # noqa: PLC0415

    if shown is None:
        return Markup("")
    # The renderer escapes the texts of a chart; the words are escaped here.
    frame = Markup('<figure class="chart{}" role="group" aria-label="{}">{}</figure>')
    return frame.format(" wide" if shown.wide else "", shown.words, Markup(shown.svg))
