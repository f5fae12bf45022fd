"""Charts that a notebook shows without a network: as an SVG in addition to the Vega-Lite specification.

Altair's own charts fetch a JavaScript library when a notebook shows them. These bring the picture. A notebook that has
Vega, as JupyterLab does, draws the specification instead, with tooltips.
"""

from __future__ import annotations

from typing import Any

import altair as alt
import vl_convert

from abstain.report.text import plain_text, printable

# The media type of the specifications that JupyterLab and others can draw.
_VEGA_LITE = f"application/vnd.vegalite.{alt.SCHEMA_VERSION.partition('.')[0]}+json"


def specification(chart: Any) -> dict[str, Any]:
    """Return the Vega-Lite specification of a chart, with every text made printable.

    Names come from files, and a control character in one of them would crash the renderer, and Python with it.
    """
    return _make_printable(chart.to_dict(validate=False))


def _make_printable(part: Any) -> Any:
    if isinstance(part, str):
        return printable(part)
    if isinstance(part, dict):
        return {name: _make_printable(value) for name, value in part.items()}
    return [_make_printable(value) for value in part] if isinstance(part, list) else part


def chart_svg(chart: Any) -> str:
    """Return a chart as an SVG element."""
    return str(vl_convert.vegalite_to_svg(specification(chart)))


def title_text(title: Any) -> str:
    """Return the title of a chart in one line."""
    return title.text if isinstance(title.text, str) else " ".join(title.text)


class ChartRows(alt.InlineData):
    """Records that a chart carries itself.

    Altair copies a chart at every step. The records never change, so copies share them: this makes drawing three times
    as fast.
    """

    def __deepcopy__(self, memo: object) -> ChartRows:
        return self


class _Offline:
    """Shows a chart in a notebook without a network."""

    def _repr_mimebundle_(self, *args: Any, **options: Any) -> dict[str, Any]:
        del args, options
        return {
            _VEGA_LITE: specification(self),
            "image/svg+xml": chart_svg(self),
            "text/plain": repr(self),
        }

    def __repr__(self) -> str:
        title = self._kwds.get("title")  # type: ignore[attr-defined]
        text = title_text(title) if isinstance(title, alt.TitleParams) else ""
        return f"Chart({plain_text(text)!r})" if text else "Chart()"


_OFFLINE = {
    kind: type(f"Offline{kind.__name__}", (_Offline, kind), {})
    for kind in (alt.LayerChart, alt.HConcatChart, alt.VConcatChart)
}


def offline_chart(chart: Any) -> Any:
    """Return the chart as one that shows itself without a network; changing it with Altair keeps that."""
    return _OFFLINE[type(chart)](**chart._kwds)
