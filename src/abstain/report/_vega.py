"""Saving a Vega-Lite chart: PNG, SVG, PDF, HTML or JSON by the ending of the name, without any network."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from abstain import _files
from abstain.errors import ArgumentError

if TYPE_CHECKING:
    import os

    import altair as alt

__all__ = ["FORMATS", "rendered", "save_chart"]

FORMATS = ("svg", "png", "pdf", "html", "json")
_PNG_SCALE = 2.0


def save_chart(chart: alt.TopLevelMixin, path: str | os.PathLike[str]) -> Path:
    """Write a chart in the format that the name ends in; the file is whole or it is not there."""
    place = Path(path)
    form = place.suffix.lower().lstrip(".")
    if form not in FORMATS:
        raise ArgumentError(
            f"{place}: cannot tell the format of the chart; end the name in .{', .'.join(FORMATS)}"
        )
    return _files.write_whole(place, rendered(chart, form))


def rendered(chart: alt.TopLevelMixin, form: str) -> bytes:
    """Return a chart as bytes of one of `FORMATS`; HTML carries all it needs and opens offline."""
    import vl_convert  # noqa: PLC0415

    specification: dict[str, Any] = chart.to_dict()
    if form == "json":
        return (json.dumps(specification, indent=2, sort_keys=True) + "\n").encode()
    if form == "svg":
        return str(vl_convert.vegalite_to_svg(specification)).encode()
    if form == "png":
        return bytes(vl_convert.vegalite_to_png(specification, scale=_PNG_SCALE))
    if form == "pdf":
        return bytes(vl_convert.vegalite_to_pdf(specification))
    return str(vl_convert.vegalite_to_html(specification, bundle=True)).encode()
