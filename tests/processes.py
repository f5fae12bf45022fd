"""Calls of the command line in separate processes, with a timeout or without the rights of an administrator."""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from examples import EXAMPLES

# Only Linux has /proc, which shows whether a process handles signals, and /dev/full.
on_linux = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc or /dev/full")
RUN = EXAMPLES / "run_a.json"
FEW_SHOT = (str(RUN), "--mode", "few_shot", "--bootstrap-resamples", "10")
_DROP_FROM_BOUNDING_SET = 24
_MAY_WRITE_ANYWHERE, _MAY_READ_ANYWHERE = 1, 2


def abstain(*arguments: object, cwd: Path, **options: Any) -> subprocess.CompletedProcess[bytes]:
    command = [os.fsencode(str(part)) for part in (sys.executable, "-m", "abstain", *arguments)]
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "stdin": subprocess.DEVNULL}
    return subprocess.run(command, cwd=cwd, check=False, timeout=120, **{**streams, **options})


def without_rights() -> None:
    """Obey file permissions even as root; only on Linux, because tests run as root only there."""
    if sys.platform != "linux":
        return
    library = ctypes.CDLL(None)
    for right in (_MAY_WRITE_ANYWHERE, _MAY_READ_ANYWHERE):
        library.prctl(_DROP_FROM_BOUNDING_SET, right, 0, 0, 0)


def with_small_disk() -> None:
    """Let no file grow beyond 1,000 bytes, as on a nearly full disk."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))


def started(*arguments: object, cwd: Path) -> subprocess.Popen[bytes]:
    """Start a call and return once it handles signals; Python needs a moment before the package runs."""
    if sys.platform != "linux":
        pytest.skip("only Linux's /proc shows whether a process handles signals")
    process = subprocess.Popen(
        [sys.executable, "-m", "abstain", *(str(part) for part in arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=cwd,
        preexec_fn=_with_signals,  # noqa: PLW1509
    )
    while process.poll() is None and not _is_prepared(process.pid):
        time.sleep(0.005)
    return process


def _with_signals() -> None:
    """Handle signals as in an interactive shell, however the tests were started."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def _is_prepared(pid: int) -> bool:
    """Return whether the process handles SIGTERM, which Python does not do by default."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return False
    handled = next(int(line.split()[1], 16) for line in lines if line.startswith("SigCgt"))
    return bool(handled >> (signal.SIGTERM - 1) & 1)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())
