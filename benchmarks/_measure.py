"""How contenders are timed: in turns, each several times, the best of each."""

from __future__ import annotations

import os
import subprocess
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


def best_times(
    *contenders: Callable[[], object], rounds: int = 5, clock: Callable[[], float] = time.perf_counter
) -> list[float]:
    """Return the best time of each contender in seconds; they take turns, so that a busy machine slows all of them."""
    best = [float("inf")] * len(contenders)
    for _ in range(rounds):
        for place, contender in enumerate(contenders):
            began = clock()
            contender()
            best[place] = min(best[place], clock() - began)
    return best


def child_cpu(*command: str) -> float:
    """Return the least CPU time of a process in seconds, with its modules compiled, as installing leaves them."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    best = float("inf")
    for _ in range(7):
        before = os.times()
        subprocess.run(command, check=True, capture_output=True, env=environment)
        after = os.times()
        spent = after.children_user + after.children_system - before.children_user - before.children_system
        best = min(best, spent)
    return best


def report(
    what: str, ratio: float, wanted: float | None = None, note: str = "", *, most: float | None = None
) -> None:
    """Print one ratio, and the least, or the most, that is wanted."""
    goal = "" if wanted is None else f"  (wanted: at least {wanted:g})"
    if most is not None:
        goal = f"  (wanted: below {most:g})"
    print(f"  {what:<62} {ratio:9.1f} x{goal}{note and '  ' + note}")
