"""The terminal: its width, and lines that are bold, dim or coloured.

Everything that came from a file (labels, paths, modes) is printed as plain text, never as markup: `Terminal` prints
only printable characters and its own styles.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.segment import Segment
from rich.text import Text

from abstain.report.tables import table_text
from abstain.report.text import display_width, plain_text, printable, wrapped

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from abstain.report.tables import Table

# The width without a terminal: nearly every table has one line per row.
WIDTH = 120


class Terminal(Console):
    """A console that prints text from files as plain text."""

    def render(self, *arguments: Any, **options: Any) -> Iterator[Segment]:
        """Yield segments with printable text only; the console's own styles and cursor movements stay."""
        for part in super().render(*arguments, **options):
            yield part if part.control else Segment(printable(part.text), part.style)


def console_for(*, stderr: bool = False) -> Console:
    """Return a console as wide as the terminal; without one, wide enough for every table."""
    console = Terminal(stderr=stderr, highlight=False, markup=False, emoji=False, soft_wrap=False)
    if not console.is_terminal:
        console.width = WIDTH
    return console


def heading(text: str) -> Text:
    """Return a line in bold."""
    return Text(plain_text(text), style="bold")


def line(text: str = "", *, dim: bool = False) -> Text:
    """Return a line."""
    return Text(plain_text(text), style="dim" if dim else "")


def format_lines(text: str, width: int, *, style: str = "", dim: bool = False) -> list[Text]:
    """Return a text as lines that are wrapped at a width."""
    return [Text(part, style="dim" if dim else style) for part in wrapped(plain_text(text), width)]


def format_table(table: Table, width: int) -> Text:
    """Return a table within a width, with a blank line below it."""
    return Text(table_text(table, width), no_wrap=True, overflow="ignore")


def format_item(mark: str, text: str, width: int, style: str = "") -> Text:
    """Return a mark and a text that is wrapped next to it."""
    indent = 3 + display_width(mark)
    lines = wrapped(plain_text(text), max(width - indent, 20))
    return Text(f"  {mark} " + f"\n{' ' * indent}".join(lines), style=style)


def format_warnings(messages: Iterable[str], width: int) -> list[Text]:
    """Return warnings below their heading, with a blank line after them; nothing if there are none."""
    lines = [format_item("!", message, width, "yellow") for message in messages]
    return [heading("Warnings"), *lines, Text()] if lines else []


def format_meanings(title: str, meanings: Mapping[str, str], width: int) -> list[Text]:
    """Return terms and their meanings, below a heading."""
    longest = max(len(name) for name in meanings)
    lines = [format_item(f"{name:<{longest + 1}}", text, width) for name, text in meanings.items()]
    return [Text(), heading(title), *lines]
