"""Everything that a verb prints goes through here, and nothing that could be more than letters gets through.

Names, labels, paths and modes come from files that others wrote. A line, a summary, an error and a bar are printed as
plain text: control characters of a terminal, text that runs backwards and invisible letters are replaced.
"""

from __future__ import annotations

import contextlib
import sys
import time
from typing import TYPE_CHECKING, Any

import typer

from abstain.report.text import plain_text, printable, printable_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rich.progress import Progress

_PATIENCE_SECONDS, _LONG_SECONDS = 1.0, 60.0
_shown_bars: list[Progress] = []


def say(text: object = "", *, error: bool = False, end: str = "\n") -> None:
    """Print a text, to stderr where it is about an error."""
    typer.echo(printable(f"{text}{end}"), err=error, nl=False)


def say_error(sentence: object) -> None:
    """Print one line to stderr."""
    say(f"abstain: {plain_text(str(sentence))}", error=True)


def say_json(content: str) -> None:
    """Print JSON; what a terminal would not show as a letter is written as JSON writes it, and so is not lost."""
    say(printable_json(content), end="")


def show(summary: Callable[..., Any], *arguments: Any) -> None:
    """Print a summary at the width of the screen."""
    from abstain.report.console import console_for  # noqa: PLC0415

    screen = console_for()
    screen.print(summary(*arguments, width=screen.width))


@contextlib.contextmanager
def progress_bar(
    what: str, total: int, *, wanted: bool = True, shorter: str = ""
) -> Iterator[Callable[[int], None] | None]:
    """Yield a function that takes how many steps of a `total` were done, or None when nobody would see the bar.

    The bar is on stderr, with the time that is left, for work that takes longer than a second; silent where stderr is
    no terminal. After a minute one line says what would make the work `shorter`, and stays.
    """
    if not wanted or not sys.stderr.isatty():
        yield None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn  # noqa: PLC0415

    from abstain.report.console import console_for  # noqa: PLC0415

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    bar = Progress(*columns, console=console_for(stderr=True), transient=True)
    task = bar.add_task(what, total=total)
    began, hinted = time.monotonic(), not shorter

    def advance(steps: int) -> None:
        nonlocal hinted
        bar.advance(task, steps)
        passed = time.monotonic() - began
        if not bar.live.is_started and passed > _PATIENCE_SECONDS:
            for other in _shown_bars:  # two bars would write over each other
                other.stop()
            _shown_bars[:] = [bar]
            bar.start()
        if not hinted and passed > _LONG_SECONDS and not bar.finished:
            hinted = True
            bar.console.print(f"{what} takes more than a minute; {shorter} would shorten it", highlight=False)

    try:
        yield advance
    finally:
        bar.stop()
