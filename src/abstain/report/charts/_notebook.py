"""Charts that a notebook shows without any network: as an SVG, drawn here, beside the specification.

Altair's own charts are shown by a page that fetches a library from elsewhere; without a network nothing is seen, and
with one the reader's browser tells somebody. Ours bring the picture. A notebook that has Vega itself, as JupyterLab
does, draws the specification instead, and the picture answers to the pointer.
"""

from __future__ import annotations

from typing import Any

import altair as alt
import vl_convert

from abstain.report.text import plain_text, printable

# JupyterLab and others know by this name which specifications they can draw.
_VEGA_LITE = f"application/vnd.vegalite.{alt.SCHEMA_VERSION.partition('.')[0]}+json"


def specification(chart: Any) -> dict[str, Any]:
    """Return what a chart is, in Vega-Lite; every text in it is letters alone.

    Names come from files, and a control character among their letters would end the renderer, and Python with it.
    """
    return _in_letters(chart.to_dict(validate=False))


def _in_letters(part: Any) -> Any:
    if isinstance(part, str):
        return printable(part)
    if isinstance(part, dict):
        return {name: _in_letters(each) for name, each in part.items()}
    return [_in_letters(each) for each in part] if isinstance(part, list) else part


def chart_svg(chart: Any) -> str:
    """Return a chart as an SVG element."""
    return str(vl_convert.vegalite_to_svg(specification(chart)))


class ChartRows(alt.InlineData):
    """Records that a chart carries itself; they never change, and charts that are made of each other share them."""

    def __deepcopy__(self, memo: object) -> ChartRows:
        return self


class _Offline:
    """What our charts do where Altair's would ask for a library."""

    def _repr_mimebundle_(self, *args: Any, **options: Any) -> dict[str, Any]:
        del args, options
        return {
            _VEGA_LITE: specification(self),
            "image/svg+xml": chart_svg(self),
            "text/plain": repr(self),
        }

    def __repr__(self) -> str:
        title = self._kwds.get("title")  # type: ignore[attr-defined]
        words = title.text if isinstance(title, alt.TitleParams) else ""
        return f"Chart({plain_text(words)!r})" if words else "Chart()"


class _Chart(_Offline, alt.Chart):
    pass


class _Layers(_Offline, alt.LayerChart):
    pass


class _Beside(_Offline, alt.HConcatChart):
    pass


class _Below(_Offline, alt.VConcatChart):
    pass


_OURS: dict[type, type] = {each.__mro__[2]: each for each in (_Chart, _Layers, _Beside, _Below)}


def in_notebooks(chart: Any) -> Any:
    """Return the chart as one that shows itself offline; changing it with Altair keeps that."""
    # Altair takes what is set on a chart for a part of its specification.
    object.__setattr__(chart, "__class__", _OURS.get(type(chart), type(chart)))
    return chart
