"""The progress of a run: an Inspect hook that counts finished samples, and stops a run whose samples only fail."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from inspect_ai.hooks import Hooks, RunStart, SampleEnd, hooks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from inspect_ai.log import EvalSample


@dataclass(slots=True)
class Monitor:
    """Counts finished samples, and cancels a run after too many equal failures in a row.

    Attributes:
        connect: called inside Inspect's event loop; returns a function that cancels the loop, or None.
        error_reason: returns the reason why the requests of a sample failed, or None.
        advance: called with 1 for every finished sample.
        max_failures: the number of equal failures in a row that stops the run; 0 for no limit.
        stopped_by: the reason of these failures, after the run was stopped.
    """

    connect: Callable[[], Callable[[], None] | None]
    error_reason: Callable[[EvalSample], str | None]
    advance: Callable[[int], None] | None = None
    max_failures: int = 0
    stopped_by: str | None = None
    _cancel: Callable[[], None] | None = None
    _last_reason: str | None = None
    _repetitions: int = 0

    def start(self) -> None:
        """Connect to the event loop that has just started."""
        self._cancel = self.connect()

    def finish_sample(self, sample: EvalSample) -> None:
        """Count a finished sample, and cancel the run after too many equal failures in a row."""
        if self.advance is not None:
            self.advance(1)
        reason = self.error_reason(sample)
        self._repetitions = self._repetitions + 1 if reason == self._last_reason else 1
        self._last_reason = reason
        if reason is None or self._repetitions != self.max_failures or self._cancel is None:
            return
        self.stopped_by = reason
        self._cancel()


_monitors: list[Monitor] = []


@hooks(name="abstain_progress", description="Reports finished samples to abstain run.")
class Progress(Hooks):
    """Reports the start of a run and its finished samples to the monitor."""

    def enabled(self) -> bool:
        """Return whether there is a monitor."""
        return bool(_monitors)

    async def on_run_start(self, data: RunStart) -> None:  # noqa: ARG002
        """Report the start."""
        for monitor in _monitors:
            monitor.start()

    async def on_sample_end(self, data: SampleEnd) -> None:
        """Report a sample."""
        for monitor in _monitors:
            monitor.finish_sample(data.sample)


@contextlib.contextmanager
def reporting_to(monitor: Monitor) -> Iterator[None]:
    """Report runs that start inside the ``with`` block to a monitor."""
    _monitors.append(monitor)
    try:
        yield
    finally:
        _monitors.remove(monitor)
