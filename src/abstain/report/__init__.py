"""Report: what people and pipelines see. It reads results and computes no statistics.

`tables` is the one model of a table and its forms; `views` turns a Result into tables and sentences, and is the one
place that words results; `console` is the terminal; `artifact` builds the JSON document and publishes its schema;
`charts` are Vega-Lite specifications; `html` writes the one page with all of it, and what a notebook shows.
`gate`, `check`, `calibration`, `coverage` and `listings` are for what the other verbs find.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import os
    from pathlib import Path

__all__ = ["draw", "result_html", "write_report"]

# Charts and pages need libraries that take a while to load: each is imported when it is first asked for.


def draw(result: Any, chart: str | None = None, **options: Any) -> Any:
    """Return a chart of a result; see `abstain.report.charts.draw`."""
    from abstain.report import charts  # noqa: PLC0415

    return charts.draw(result, chart, **options)


def write_report(path: str | os.PathLike[str], result: Any, **options: Any) -> Path:
    """Write the HTML report of a result; see `abstain.report.html.write_report`."""
    from abstain.report import html  # noqa: PLC0415

    return html.write_report(path, result, **options)


def result_html(result: Any) -> str:
    """Return a result as the HTML that a notebook shows."""
    from abstain.report import html  # noqa: PLC0415

    return html.result_html(result)
