"""The peak memory of a program, measured in a separate process."""

from __future__ import annotations

import subprocess
import sys

import pytest

# The peak of the process itself; getrusage would include the process that started it.
_REPORT = "\nprint(open('/proc/self/status').read().split('VmHWM:')[1].split()[0])"


def run_measured(program: str, *arguments: object) -> tuple[str, int]:
    """Return the output of a program and its peak memory in kilobytes; skip the test except on Linux."""
    if sys.platform != "linux":
        pytest.skip("the peak of a process is read from Linux's /proc")
    done = subprocess.run(
        [sys.executable, "-c", program + _REPORT, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=True,
    )
    printed, _, kilobytes = done.stdout.rstrip("\n").rpartition("\n")
    return printed, int(kilobytes)
