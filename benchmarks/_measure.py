"""How contenders are timed: in turns, each several times, the best of each."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING, NamedTuple

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
    """Return the least CPU time and the least peak of each process; they take turns, in a folder that sets nothing.

    They run as people have them: with modules compiled, as installing leaves them, and with as many threads as they
    start by themselves.
    """
    ours = ("PYTHONDONTWRITEBYTECODE", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
    environment = {name: value for name, value in os.environ.items() if name not in ours}

    def run(command: Sequence[str]) -> Usage:
        launch = [sys.executable, "-c", _LAUNCH, *command]
        done = subprocess.run(launch, check=True, capture_output=True, text=True, env=environment, cwd=folder)
        return Usage(*map(float, done.stdout.split()))

    measured = [[run(command) for command in commands] for _ in range(rounds)]
    return [
        Usage(min(each.cpu for each in runs), min(each.megabytes for each in runs))
        for runs in zip(*measured, strict=True)
    ]


def report(
    what: str, ratio: float, wanted: float | None = None, note: str = "", *, most: float | None = None
) -> None:
    """Print one ratio, and the least, or the most, that is wanted."""
    goal = "" if wanted is None else f"  (wanted: at least {wanted:g})"
    if most is not None:
        goal = f"  (wanted: below {most:g})"
    print(f"  {what:<62} {ratio:9.1f} x{goal}{note and '  ' + note}")
