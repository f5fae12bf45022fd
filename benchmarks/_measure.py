"""Time functions and processes alternately, several times each, and keep the best time of each."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def best_times(
    *functions: Callable[[], object], rounds: int = 5, clock: Callable[[], float] = time.perf_counter
) -> list[float]:
    """Return the best time of each function in seconds; they alternate, so that other load slows all of them."""
    best = [float("inf")] * len(functions)
    for _ in range(rounds):
        for index, function in enumerate(functions):
            start = clock()
            function()
            best[index] = min(best[index], clock() - start)
    return best


class Usage(NamedTuple):
    """The CPU time of a process in seconds and its peak memory in megabytes."""

    cpu: float
    megabytes: float


# The peak memory of a child includes that of its parent, so a small process starts the command.
_LAUNCH = """
import os, subprocess, sys
process = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL)
_, status, used = os.wait4(process.pid, 0)
print(used.ru_utime + used.ru_stime, used.ru_maxrss * 1024 / 1e6)
sys.exit(os.waitstatus_to_exitcode(status))
"""


def child_usage(*commands: Sequence[str], folder: str, rounds: int = 15) -> list[Usage]:
    """Return the lowest CPU time and the lowest peak memory of each process; the processes alternate.

    They run as for users, with compiled modules and the default number of threads, in a folder without settings.
    """
    removed = ("PYTHONDONTWRITEBYTECODE", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
    environment = {name: value for name, value in os.environ.items() if name not in removed}

    def run(command: Sequence[str]) -> Usage:
        launch = [sys.executable, "-c", _LAUNCH, *command]
        done = subprocess.run(launch, check=True, capture_output=True, text=True, env=environment, cwd=folder)
        return Usage(*map(float, done.stdout.split()))

    measured = [[run(command) for command in commands] for _ in range(rounds)]
    return [
        Usage(min(usage.cpu for usage in runs), min(usage.megabytes for usage in runs))
        for runs in zip(*measured, strict=True)
    ]


def report(
    label: str, ratio: float, target: float | None = None, note: str = "", *, most: float | None = None
) -> None:
    """Print a ratio and its target: at least `target`, or below `most`."""
    goal = "" if target is None else f"  (target: at least {target:g})"
    if most is not None:
        goal = f"  (target: below {most:g})"
    print(f"  {label:<62} {ratio:9.1f} x{goal}{note and '  ' + note}")
