"""How a result reaches what can draw it without knowing it: the package's root says who draws.

Results know nothing of charts and pages. `abstain/__init__.py`, which may know every room, names the one that shows
results; a result asks here when somebody wants to see it. Nothing is imported until then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import os
    from collections.abc import Callable
    from pathlib import Path

__all__ = ["Presenter", "Shown", "present_with"]


class Presenter(Protocol):
    """What can show a result."""

    def draw(self, result: Any, chart: str | None = None, **options: Any) -> Any:
        """Return a chart."""

    def write_report(self, path: str | os.PathLike[str], result: Any, **options: Any) -> Path:
        """Write the HTML report."""

    def result_html(self, result: Any) -> str:
        """Return the table that a notebook shows."""


_load: list[Callable[[], Presenter]] = []


def present_with(load: Callable[[], Presenter]) -> None:
    """Say who shows results; `load` is called when the first one is to be shown."""
    _load[:] = [load]


class Shown:
    """A result that can be drawn, shown in a notebook, and written as a report."""

    __slots__ = ()

    def plot(self, chart: str | None = None, **options: Any) -> Any:
        """Return a chart, which a notebook shows; see `abstain.report.draw` for the charts and their options."""
        return _load[0]().draw(self, chart, **options)

    def report(self, path: str | os.PathLike[str], **options: Any) -> Path:
        """Write the HTML report; see `abstain.report.report_html` for the options."""
        return _load[0]().write_report(path, self, **options)

    def _repr_html_(self) -> str:
        return _load[0]().result_html(self)
