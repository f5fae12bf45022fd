"""How contenders are timed: in turns, each several times, the best of each."""

from __future__ import annotations

import os
import resource
import subprocess
import time
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


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


def child_cpu(*commands: Sequence[str], folder: str) -> list[float]:
    """Return the least CPU time of each process in seconds; they take turns, in a folder that sets nothing.

    They run as people have them: with modules compiled, as installing leaves them, and with as many threads as they
    start by themselves.
    """
    ours = ("PYTHONDONTWRITEBYTECODE", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
    environment = {name: value for name, value in os.environ.items() if name not in ours}

    def run(command: Sequence[str]) -> None:
        subprocess.run(command, check=True, capture_output=True, env=environment, cwd=folder)

    runs = [partial(run, command) for command in commands]
    return best_times(*runs, rounds=15, clock=_children)


def _children() -> float:
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime


def report(
    what: str, ratio: float, wanted: float | None = None, note: str = "", *, most: float | None = None
) -> None:
    """Print one ratio, and the least, or the most, that is wanted."""
    goal = "" if wanted is None else f"  (wanted: at least {wanted:g})"
    if most is not None:
        goal = f"  (wanted: below {most:g})"
    print(f"  {what:<62} {ratio:9.1f} x{goal}{note and '  ' + note}")
