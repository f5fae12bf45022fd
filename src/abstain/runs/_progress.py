"""Progress: Inspect tells of every sample that ends, and whoever shows a bar is told of it."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from inspect_ai.hooks import Hooks, SampleEnd, hooks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_listeners: list[Callable[[int], None]] = []


@hooks(name="abstain_progress", description="Tells abstain run of samples that are done.")
class Progress(Hooks):
    """Inspect's hook; silent unless somebody listens."""

    def enabled(self) -> bool:
        """Return whether anybody listens."""
        return bool(_listeners)

    async def on_sample_end(self, data: SampleEnd) -> None:  # noqa: ARG002
        """Count a sample."""
        for listener in _listeners:
            listener(1)


@contextlib.contextmanager
def reporting_to(listener: Callable[[int], None]) -> Iterator[None]:
    """Tell a function of every sample that ends within the statement."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)
