"""Progress: an Inspect hook that reports every finished sample, for a progress bar."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from inspect_ai.hooks import Hooks, SampleEnd, hooks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_listeners: list[Callable[[int], None]] = []


@hooks(name="abstain_progress", description="Reports finished samples to abstain run.")
class Progress(Hooks):
    """Reports finished samples to all listeners."""

    def enabled(self) -> bool:
        """Return whether there are listeners."""
        return bool(_listeners)

    async def on_sample_end(self, data: SampleEnd) -> None:  # noqa: ARG002
        """Count a sample."""
        for listener in _listeners:
            listener(1)


@contextlib.contextmanager
def reporting_to(listener: Callable[[int], None]) -> Iterator[None]:
    """Call a function with 1 for every sample that ends inside the ``with`` block."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)
