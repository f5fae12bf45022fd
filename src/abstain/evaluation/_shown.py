"""How a result shows itself: as a chart, in a notebook, as a report.

Results know nothing of charts and pages, which are made by `abstain.report`; it is looked up by its name when
somebody asks, so that data go on moving one way.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import os
    from pathlib import Path

__all__ = ["Shown"]


class Shown:
    """A result that can be drawn, shown in a notebook, and written as a report."""

    __slots__ = ()

    def plot(self, chart: str | None = None, **options: Any) -> Any:
        """Return a chart, which a notebook shows; see `abstain.report.charts.draw` for the charts and their options."""
        return import_module("abstain.report.charts").draw(self, chart, **options)

    def report(self, path: str | os.PathLike[str], **options: Any) -> Path:
        """Write the HTML report; see `abstain.report.html.report_html` for the options."""
        written: Path = import_module("abstain.report.html").write_report(path, self, **options)
        return written

    def _repr_html_(self) -> str:
        shown: str = import_module("abstain.report.notebook").result_html(self)
        return shown
