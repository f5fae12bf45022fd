"""Saving a chart: PNG, SVG, PDF, HTML or Vega-Lite JSON, as the ending of the name says, without any network."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from abstain import _files
from abstain.errors import ArgumentError

if TYPE_CHECKING:
    import os
    from collections.abc import Callable
    from pathlib import Path

    from abstain.report.charts._look import Chart

__all__ = ["FORMATS", "chart_svg", "check_chart_output", "save_chart"]

FORMATS = (".png", ".svg", ".html", ".pdf", ".json")
_PIXELS_PER_POINT = 2.0


def check_chart_output(path: str | os.PathLike[str]) -> Path:
    """Return `path` if a chart can be put there: call this before the work, not after it."""
    place = _files.check_output(path)
    form = place.suffix.lower()
    if form not in FORMATS:
        raise ArgumentError(f"{place}: a chart ends in {', '.join(FORMATS)}, not in {form or 'nothing'!r}")
    return place


def save_chart(chart: Chart, path: str | os.PathLike[str]) -> Path:
    """Write a chart as PNG, SVG, HTML, PDF or Vega-Lite JSON, as the ending of `path` says; HTML needs no network."""
    import vl_convert  # noqa: PLC0415

    place = check_chart_output(path)
    specification = chart.to_json()
    writers: dict[str, Callable[[str], bytes]] = {
        ".png": lambda text: vl_convert.vegalite_to_png(text, scale=_PIXELS_PER_POINT),
        ".svg": lambda text: vl_convert.vegalite_to_svg(text).encode(),
        ".html": lambda text: _page(
            vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;"), text
        ).encode(),
        ".pdf": vl_convert.vegalite_to_pdf,
        ".json": lambda text: (json.dumps(json.loads(text), indent=2) + "\n").encode(),
    }
    return _files.write_whole(place, writers[place.suffix.lower()](specification))


def chart_svg(chart: Chart) -> str:
    """Return a chart as an SVG element."""
    import vl_convert  # noqa: PLC0415

    return str(vl_convert.vegalite_to_svg(chart.to_dict(validate=False)))


_PAGE = """<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><title>abstain</title><link rel="icon" href="data:,"></head>
<body>
<div id="chart"></div>
<script>%s</script>
<script>vegaEmbed("#chart", %s, {renderer: "svg"}).catch(console.error);</script>
</body>
</html>
"""


def _page(library: str, specification: str) -> str:
    """A page that needs nothing else. A chart's texts may come from a model, so none of them can end the script."""
    return _PAGE % (library.replace("</script", "<\\/script"), specification.replace("<", "\\u003c"))
