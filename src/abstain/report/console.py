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

# Without a terminal there is no width to keep to; this one keeps nearly every table on one line per row.
WIDTH = 120


class Terminal(Console):
    """A console that shows text as text, whoever wrote it."""

    def render(self, *arguments: Any, **options: Any) -> Iterator[Segment]:
        """Yield what is printed: text made plain, and the console's own styles and movements as they are."""
        for part in super().render(*arguments, **options):
            yield part if part.control else Segment(printable(part.text), part.style)


def console_for(*, stderr: bool = False) -> Console:
    """Return a console: the terminal's width where there is a terminal, wide enough for every table elsewhere."""
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


def format_table(table: Table, width: int) -> Text:
    """Return a table within a width, with a blank line below it; no line of it is broken."""
    return Text(table_text(table, width), no_wrap=True, overflow="ignore")


def format_item(mark: str, text: str, width: int, style: str = "") -> Text:
    """Return a mark and a text that wraps beside it, not below it."""
    indent = 3 + display_width(mark)
    lines = wrapped(plain_text(text), max(width - indent, 20))
    return Text(f"  {mark} " + f"\n{' ' * indent}".join(lines), style=style)


def format_warnings(messages: Iterable[str], width: int) -> list[Text]:
    """Return warnings below their heading; nothing where there are none."""
    lines = [format_item("!", message, width, "yellow") for message in messages]
    return [Text(), heading("warnings"), *lines] if lines else []


def format_meanings(title: str, meanings: Mapping[str, str], width: int) -> list[Text]:
    """Return words and what they mean, below a heading."""
    longest = max(len(name) for name in meanings)
    lines = [format_item(f"{name:<{longest + 1}}", text, width) for name, text in meanings.items()]
    return [Text(), heading(title), *lines]
