"""The process: its standard streams, and the signals that stop it.

`abstain.__main__` calls `prepare` before anything heavy is imported, so that a stop is minded from the beginning.
What a verb does and what its errors mean is not known here.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import os
import signal
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, TextIO

if TYPE_CHECKING:
    from types import FrameType

# With this variable set to 1, a crash shows its traceback, and Python its warnings.
DEBUG = "ABSTAIN_DEBUG"
_STOPS = ("SIGINT", "SIGTERM", "SIGHUP")
_stopped_by: list[int] = []


def prepare() -> None:
    """Make the streams safe to print to, let every signal that stops the process clean up first, and start quickly."""
    _open_streams()
    _start_quickly()
    for name in _STOPS:
        number = getattr(signal, name, None)
        # A signal that is ignored, as under nohup, stays ignored.
        if number and signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
            signal.signal(number, _stop)
    sys.unraisablehook = _ignored
    if not debugging() and not sys.warnoptions:
        warnings.simplefilter("ignore")


def _start_quickly() -> None:
    """Spare a short process what serves long ones.

    numpy's matrix library would start threads that wait by spinning, a tenth of a second on every core; the kernel has
    threads of its own, and no verb multiplies large matrices. Imports make many objects and next to no garbage, which
    Python would look for a hundred times.
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    gc.set_threshold(50_000, *gc.get_threshold()[1:])


def debugging() -> bool:
    """Return whether tracebacks are asked for."""
    return os.environ.get(DEBUG) == "1"


def stop_code() -> int | None:
    """Return the exit code of a process that was asked to stop, else None.

    An engine may turn the exception of a stop into one of its own, so nobody has to look at the exception.
    """
    return 128 + _stopped_by[0] if _stopped_by else None


def ignore_stops() -> None:
    """Let nothing stop the process any more: files go to their places, or the last line is printed.

    Elsewhere than in a process of its own (a test, a notebook) signals are left alone.
    """
    for name in _STOPS:
        number = getattr(signal, name, None)
        if number and signal.getsignal(number) is _stop:
            signal.signal(number, signal.SIG_IGN)


def begin_to_write() -> None:
    """Let nothing stop the process from here on; if a stop was lost in a place that cannot raise, stop now."""
    ignore_stops()
    if _stopped_by:
        raise KeyboardInterrupt


def leave(code: int) -> NoReturn:
    """End a stopped process with an exit code of ours.

    Python would end it by the signal if an interrupt ever passed through `exec`, even one that was caught later.
    """
    ignore_stops()
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError):
            stream.flush()
    os._exit(code)


def silence(stream: TextIO) -> None:
    """Send what is still to come on a stream that cannot be written to into nothing."""
    if stream not in (sys.__stdout__, sys.__stderr__):
        return  # not of the process: a test's, or a notebook's
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, stream.fileno())
    os.close(nothing)


def _stop(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
    _stopped_by.append(number)
    raise KeyboardInterrupt


def _ignored(problem: sys.UnraisableHookArgs) -> None:
    """Say nothing of a stop that came where nothing can be raised, such as the end of an object: it is remembered."""
    if not (_stopped_by and issubclass(problem.exc_type, KeyboardInterrupt)):
        sys.__unraisablehook__(problem)


def _open_streams() -> None:
    """Give a stream that the caller closed to nothing: a file that is opened later must not become stdout."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            mode = "r" if number == 0 else "w"
            nothing = Path(os.devnull).open(mode, encoding="utf-8")  # noqa: SIM115
            setattr(sys, name, nothing)
            setattr(sys, f"__{name}__", nothing)
    for stream in (sys.stdout, sys.stderr):
        # A terminal that lacks a letter shows a question mark.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
