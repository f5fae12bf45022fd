"""Standard streams of the process, and the signals that stop it.

`abstain.__main__` calls `prepare` before anything heavy is imported, so that signals are handled from the beginning.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import os
import signal
import sys
import threading
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TextIO

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from types import FrameType

# If this variable is 1, crashes print a traceback, and Python prints its warnings.
DEBUG = "ABSTAIN_DEBUG"
_STOPS = ("SIGINT", "SIGTERM", "SIGHUP")
_GARBAGE_THRESHOLDS = gc.get_threshold()
_stopped_by: list[int] = []


def prepare() -> None:
    """Make the streams safe to print to, turn signals that stop the process into KeyboardInterrupt, start quickly."""
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
    """Avoid work that only pays off in long processes.

    The threads of numpy's matrix library would spin for a tenth of a second on every core, and no command multiplies
    large matrices. Imports create many objects and hardly any garbage, so the garbage collector runs less often.
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    gc.set_threshold(50_000, *_GARBAGE_THRESHOLDS[1:])


def collect_garbage_as_usual() -> None:
    """Let the garbage collector run as often as by default, in a command that creates garbage for a long time."""
    gc.set_threshold(*_GARBAGE_THRESHOLDS)


def debugging() -> bool:
    """Return whether tracebacks were requested."""
    return os.environ.get(DEBUG) == "1"


def stop_code() -> int | None:
    """Return the exit code if a signal stopped the process, otherwise None.

    An engine may replace the KeyboardInterrupt by another error, so the exception does not show this reliably.
    """
    return 128 + _stopped_by[0] if _stopped_by else None


def ignore_stops() -> None:
    """Ignore signals from now on, while files are written or the last line is printed.

    Only handlers that `prepare` installed are changed, so tests and notebooks are not affected.
    """
    for name in _STOPS:
        number = getattr(signal, name, None)
        if number and signal.getsignal(number) is _stop:
            signal.signal(number, signal.SIG_IGN)


def begin_to_write() -> None:
    """Ignore signals from now on; stop if one came while no exception could be raised."""
    ignore_stops()
    if _stopped_by:
        raise KeyboardInterrupt


@contextlib.contextmanager
def cancelling_event_loop() -> Iterator[Callable[[], Callable[[], None] | None]]:
    """Let signals cancel an asyncio loop that runs inside the ``with`` block, so that it can close its files.

    A KeyboardInterrupt inside a task would be lost, or the loop would wait for that task for ever. asyncio replaces
    Python's own handler of SIGINT by one that cancels the loop. The yielded function connects the other signals with
    it, and must be called inside the loop. It returns a function that cancels the loop, or None without such a handler.
    """
    if threading.current_thread() is not threading.main_thread():
        yield lambda: None
        return
    numbers = [number for name in _STOPS if (number := getattr(signal, name, None))]
    handlers = {number: signal.getsignal(number) for number in numbers}
    if _stop in handlers.values():
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield lambda: _connect_signals(handlers)
    finally:
        for number, handler in handlers.items():
            if signal.getsignal(number) is not handler:
                signal.signal(number, handler)


def _connect_signals(handlers: Mapping[int, Any]) -> Callable[[], None] | None:
    """Let the signals of which `_stop` was the handler cancel the running loop, and restore the other handlers."""
    cancel_loop = signal.getsignal(signal.SIGINT)
    if not callable(cancel_loop) or cancel_loop in (signal.default_int_handler, *handlers.values()):
        return None

    def stop(number: int, frame: FrameType | None) -> None:
        _stopped_by.append(number)
        if len(_stopped_by) > 1:
            os._exit(128 + number)  # the second signal does not wait for the files
        cancel_loop(signal.SIGINT, frame)

    if _stop in handlers.values():
        for number, handler in handlers.items():
            signal.signal(number, stop if handler is _stop else handler)
    return lambda: cancel_loop(signal.SIGINT, None)


def leave(code: int) -> NoReturn:
    """End a stopped process with an exit code.

    Python would end it by the signal if a KeyboardInterrupt ever passed through `exec`, even if it was caught later.
    """
    ignore_stops()
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError):
            stream.flush()
    os._exit(code)


def silence(stream: TextIO) -> None:
    """Discard further output to a stream that cannot be written to."""
    if stream not in (sys.__stdout__, sys.__stderr__):
        return  # the stream of a test or a notebook
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, stream.fileno())
    os.close(nothing)


def _stop(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
    _stopped_by.append(number)
    raise KeyboardInterrupt


def _ignored(problem: sys.UnraisableHookArgs) -> None:
    """Print nothing about a signal that came while no exception could be raised, as in `__del__`; it is remembered."""
    if not (_stopped_by and issubclass(problem.exc_type, KeyboardInterrupt)):
        sys.__unraisablehook__(problem)


def _open_streams() -> None:
    """Open closed streams on /dev/null, so that a file that is opened later does not become stdout."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            mode = "r" if number == 0 else "w"
            nothing = Path(os.devnull).open(mode, encoding="utf-8")  # noqa: SIM115
            setattr(sys, name, nothing)
            setattr(sys, f"__{name}__", nothing)
    for stream in (sys.stdout, sys.stderr):
        # Characters that the terminal cannot encode become question marks.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
