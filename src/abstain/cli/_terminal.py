"""All output of the commands: texts, errors, JSON, summaries and progress bars, printed as plain text.

Names, labels, paths and modes come from files of unknown origin. Terminal control characters, bidirectional controls
and invisible characters in them are replaced before anything is printed.
"""

from __future__ import annotations

import contextlib
import sys
import time
from typing import TYPE_CHECKING, Any

import typer

from abstain.report.text import plain_text, printable, printable_json, wrapped

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from rich.progress import Progress

_PATIENCE_SECONDS, _LONG_SECONDS = 1.0, 60.0
_LONGEST_ERROR = 6000
_shown_bars: list[Progress] = []


def print_text(text: object = "", *, error: bool = False, end: str = "\n") -> None:
    """Print a text to stdout, or to stderr if `error`."""
    typer.echo(printable(f"{text}{end}"), err=error, nl=False)


def print_error(sentence: object) -> None:
    """Print one line to stderr, which is cut if it is very long."""
    text = str(sentence)
    if len(text) > _LONGEST_ERROR:
        text = f"{text[:_LONGEST_ERROR]}… ({len(text) - _LONGEST_ERROR:,} more characters)"
    print_text(f"abstain: {plain_text(text)}", error=True)


def print_json(content: str) -> None:
    """Print JSON; characters that are not printable become JSON escapes, so that nothing is lost."""
    print_text(printable_json(content), end="")


def print_sentences(sentences: Iterable[object], *, error: bool = False) -> None:
    """Print sentences, each on a new line and wrapped at the width of the terminal.

    On stderr without a terminal, as in a log, each sentence is one line.
    """
    from abstain.report.console import console_for  # noqa: PLC0415

    screen = console_for(stderr=error)
    for sentence in map(plain_text, map(str, sentences)):
        lines = [sentence] if error and not screen.is_terminal else wrapped(sentence, screen.width)
        print_text("\n".join(lines), error=error)


def print_warnings(warnings: Iterable[object]) -> None:
    """Print warnings to stderr; commands print them before the numbers that they concern."""
    print_sentences((f"warning: {warning}" for warning in warnings), error=True)


def print_summary(summary: Callable[..., Any], *arguments: Any) -> None:
    """Print a summary at the width of the terminal."""
    from abstain.report.console import console_for  # noqa: PLC0415

    screen = console_for()
    screen.print(summary(*arguments, width=screen.width))


@contextlib.contextmanager
def progress_bar(
    task_name: str, total: int, *, wanted: bool = True, shorter: str = ""
) -> Iterator[Callable[[int], None] | None]:
    """Yield a function that takes the number of steps done since its last call, or None if there is no bar.

    The bar is on stderr and appears after one second. There is no bar if stderr is not a terminal. After a minute one
    line names the options that would make the work `shorter`.
    """
    if not wanted or not sys.stderr.isatty():
        yield None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn  # noqa: PLC0415

    from abstain.report.console import console_for  # noqa: PLC0415

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    bar = Progress(*columns, console=console_for(stderr=True), transient=True)
    task = bar.add_task(task_name, total=total)
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
            bar.console.print(
                f"{task_name} takes more than a minute; {shorter} would shorten it", highlight=False
            )

    try:
        yield advance
    finally:
        bar.stop()
