"""A progress bar on stderr for work that takes longer than a second; silent when stderr is not a terminal."""

from __future__ import annotations

import contextlib
import sys
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_PATIENCE_SECONDS = 1.0


@contextlib.contextmanager
def progress_bar(what: str, total: int, *, wanted: bool = True) -> Iterator[Callable[[int], None] | None]:
    """Yield a function that takes how many steps were done, or None when nobody would see the bar."""
    if not wanted or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console  # noqa: PLC0415
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn  # noqa: PLC0415

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    bar = Progress(*columns, console=Console(stderr=True), transient=True)
    task = bar.add_task(what, total=total)
    began = time.monotonic()

    def advance(steps: int) -> None:
        bar.advance(task, steps)
        if not bar.live.is_started and time.monotonic() - began > _PATIENCE_SECONDS:
            bar.start()

    try:
        yield advance
    finally:
        bar.stop()
