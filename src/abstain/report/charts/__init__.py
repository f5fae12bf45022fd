"""Charts as Vega-Lite specifications: one description for notebook, HTML, PNG, SVG and PDF, all of them offline.

A chart draws a result and computes no statistics. `draw` finds a chart by name, for Python and for `abstain plot`.
`save_chart` writes it in the format of the file's ending, without a network.

To add a chart, write the function that draws it in a module of this package, and add one line to the registry of the
results that it is of: `SYSTEM_CHARTS` (one system), `COMPARISON_CHARTS` (two or more) or `intervals.CHARTS` (intervals
and sets). The first chart of a registry is the default.
"""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import vl_convert

from abstain import _outputs, _validate
from abstain.errors import ArgumentError, DataError, list_names
from abstain.evaluation import Result
from abstain.metrics.registry import metric_name
from abstain.report import CHART_FORMATS as FORMATS
from abstain.report.charts._look import COLOURS, describe_interval, unchecked
from abstain.report.charts._notebook import chart_svg, specification, title_text
from abstain.report.charts.calibration import (
    before_and_after_diagram,
    cumulative_difference_plot,
    reliability_diagram,
)
from abstain.report.charts.curves import curves_chart, risk_coverage_chart, systems_chart
from abstain.report.charts.forest import differences_chart, groups_chart, metric_chart
from abstain.report.charts.intervals import chart_functions as coverage_charts

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

    from abstain.evaluation import SystemResult
    from abstain.evaluation.conformal import CoverageResult
    from abstain.report.charts._look import Chart

__all__ = [
    "COLOURS",
    "COMPARISON_CHARTS",
    "FORMATS",
    "SYSTEM_CHARTS",
    "before_and_after_diagram",
    "chart_content",
    "chart_format",
    "chart_svg",
    "content_hash",
    "cumulative_difference_plot",
    "curves_chart",
    "describe_interval",
    "differences_chart",
    "draw",
    "groups_chart",
    "main_chart",
    "metric_chart",
    "metric_name",
    "reliability_diagram",
    "risk_coverage_chart",
    "save_chart",
    "systems_chart",
    "title_text",
    "unchecked",
]

_PIXELS_PER_POINT = 2.0


def draw(
    result: Result | CoverageResult,
    chart: str | None = None,
    *,
    confidence: str | None = None,
    risk: str = "selective",
    metric: str | None = None,
    system: str | None = None,
) -> Chart:
    """Draw a result.

    One system has the charts "curve" (one confidence with its band), "curves" (several confidences), "areas" (one
    metric of every confidence) and "reliability". Several systems have "difference", "curve" (all systems on one set of
    axes), and the charts of each system, which `system` names. Intervals and sets have "coverage", "coverage-by-size",
    "width" and one chart per grouping.

    Args:
        result: the result of `evaluate`, `compare`, `evaluate_intervals` or `evaluate_sets`.
        chart: the name of the chart. Default: the first chart for the kind of result.
        confidence: the confidence of a curve, a reliability diagram or differences. Default: the first one, and all
            confidences for differences.
        risk: "selective" or "generalized".
        metric: the metric of areas and differences. Default: AUGRC if it was evaluated, otherwise the first metric.
        system: the system whose curves, areas or reliability diagram to draw, if there are several.
    """
    if not isinstance(result, Result):
        charts = coverage_charts(result)
        return charts[_validate.choice(chart or next(iter(charts)), "chart", charts)](result)
    options = ChartOptions(confidence, risk, metric)
    if len(result.systems) == 1:
        return _draw_system(result.only, chart, options)
    default = next(iter(COMPARISON_CHARTS if system is None else SYSTEM_CHARTS))
    name = _validate.choice(chart or default, "chart", {**COMPARISON_CHARTS, **SYSTEM_CHARTS})
    if system is not None and name in SYSTEM_CHARTS:
        one_system = result.systems[_validate.choice(system, "system", result.systems)]
        return _draw_system(one_system, name, options)
    if name in COMPARISON_CHARTS:
        return COMPARISON_CHARTS[name](result, options)
    raise ArgumentError(
        f"{name} is of one system; name it (system=, --of-system): {list_names(result.systems)}"
    )


def main_chart(result: Result | CoverageResult) -> Chart | None:
    """Return the default chart; None if there is nothing to draw."""
    if not isinstance(result, Result):
        return draw(result)
    if len(result.systems) == 1:
        drawable = bool(result.only) and result.population.answered > 0
    else:
        drawable = any(each.estimate.defined for each in result.differences if not each.group)
    return draw(result) if drawable else None


def _draw_system(system: SystemResult, chart: str | None, options: ChartOptions) -> Chart:
    name = _validate.choice(chart or next(iter(SYSTEM_CHARTS)), "chart", SYSTEM_CHARTS)
    if not system.basis.drawn_confidences:
        raise ArgumentError("there is no confidence to draw; name one (--confidence, confidence=)")
    return SYSTEM_CHARTS[name](system, options)


class ChartOptions(NamedTuple):
    """The options of `draw` that a chart may use."""

    confidence: str | None
    risk: str
    metric: str | None


def _draw_areas(system: SystemResult, options: ChartOptions) -> Chart:
    if not system:
        raise ArgumentError(
            "areas draws the selective metrics, which were not evaluated because metrics were named; add selective=True"
        )
    return metric_chart(system, options.metric or "augrc")


def _draw_reliability(system: SystemResult, options: ChartOptions) -> Chart:
    confidences = system.basis.drawn_confidences
    first = next(iter(confidences))
    name = _validate.choice(
        first if options.confidence is None else options.confidence, "confidence", confidences
    )
    curves = system.profile().reliability
    if name not in curves:
        others = f"; probabilities are: {list_names(curves)}" if curves else ""
        raise DataError(
            f"the confidence {name} is not within 0 and 1, or is known not to be a probability{others}; name another "
            "(confidence, --of)"
        )
    return reliability_diagram(curves[name], title=f"Reliability of {name}", noun=system.cluster_noun)


SYSTEM_CHARTS: dict[str, Callable[[SystemResult, ChartOptions], Chart]] = {
    "curve": lambda system, options: risk_coverage_chart(system, options.confidence, risk=options.risk),
    "curves": lambda system, options: curves_chart(system, risk=options.risk),
    "areas": _draw_areas,
    "reliability": _draw_reliability,
}
COMPARISON_CHARTS: dict[str, Callable[[Result, ChartOptions], Chart]] = {
    "difference": lambda result, options: differences_chart(
        result, options.metric, confidence=options.confidence
    ),
    "curve": lambda result, options: systems_chart(result, options.confidence, risk=options.risk),
}


def chart_format(path: str | os.PathLike[str]) -> str:
    """Return the format of a chart, one of `FORMATS`, by the ending of its file."""
    form = Path(path).suffix.lower()
    if form not in FORMATS:
        raise ArgumentError(f"{path}: a chart ends in {', '.join(FORMATS)}, not in {form or 'nothing'!r}")
    return form


def chart_content(chart: Chart, form: str) -> bytes:
    """Return the content of a chart file: PNG, SVG, HTML, PDF or Vega-Lite JSON. HTML needs no network."""
    writers: dict[str, Callable[[str], bytes]] = {
        ".png": lambda text: vl_convert.vegalite_to_png(text, scale=_PIXELS_PER_POINT),
        ".svg": lambda text: vl_convert.vegalite_to_svg(text).encode(),
        ".html": lambda text: _page(
            vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;"), text
        ).encode(),
        ".pdf": vl_convert.vegalite_to_pdf,
        ".json": lambda text: (json.dumps(json.loads(text), indent=2) + "\n").encode(),
    }
    return writers[form](json.dumps(specification(chart)))


def save_chart(chart: Chart, path: str | os.PathLike[str]) -> Path:
    """Write a chart in the format of the ending of `path`."""
    form = chart_format(path)
    output = _outputs.check_output(path)
    return _outputs.write_whole(output, chart_content(chart, form))


# The menu of the chart saves it and opens no online editor; the policy blocks every request. Expressions are
# interpreted (`ast`), so that the page need not allow code that is made from text.
_PAGE = """<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="%(policy)s">
<title>abstain</title><link rel="icon" href="data:,"></head>
<body>
<div id="chart"></div>
<script>%(library)s</script>
<script>%(drawing)s</script>
</body>
</html>
"""
_DRAWING = """vegaEmbed("#chart", %s, {
  renderer: "svg", ast: true, actions: {export: true, source: false, compiled: false, editor: false}
}).catch(console.error);"""
_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src %s",
        "style-src 'unsafe-inline'",
        "img-src data: blob:",
        "base-uri 'none'",
        "form-action 'none'",
    )
)


def _page(library: str, specification: str) -> str:
    """Return a self-contained page. A chart's texts may come from a model, so none of them can end the script."""
    scripts = {
        "library": library.replace("</script", "<\\/script"),
        "drawing": _DRAWING % specification.replace("<", "\\u003c"),
    }
    return _PAGE % {
        "policy": _POLICY % " ".join(f"'{content_hash(script)}'" for script in scripts.values()),
        **scripts,
    }


def content_hash(text: str) -> str:
    """Return the hash by which a content security policy recognizes a script or a style in the page."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
