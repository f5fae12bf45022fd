"""Charts as Vega-Lite specifications: one description for notebook, HTML, PNG, SVG and PDF, all of them offline.

A chart draws a result and computes no statistics; every band and every bar says what it is. `save_chart`
writes it in the form that the file's ending names.
"""

from abstain.report.charts._choice import COMPARISON_CHARTS, SYSTEM_CHARTS, draw
from abstain.report.charts._look import COLOURS, interval_words, metric_name, unchecked
from abstain.report.charts._saving import FORMATS, chart_svg, check_chart_output, save_chart
from abstain.report.charts.calibration import (
    before_and_after_diagram,
    cumulative_difference_plot,
    reliability_diagram,
)
from abstain.report.charts.curves import curves_chart, risk_coverage_chart
from abstain.report.charts.forest import differences_chart, groups_chart, metric_chart

__all__ = [
    "COLOURS",
    "COMPARISON_CHARTS",
    "FORMATS",
    "SYSTEM_CHARTS",
    "before_and_after_diagram",
    "chart_svg",
    "check_chart_output",
    "cumulative_difference_plot",
    "curves_chart",
    "differences_chart",
    "draw",
    "groups_chart",
    "interval_words",
    "metric_chart",
    "metric_name",
    "reliability_diagram",
    "risk_coverage_chart",
    "save_chart",
    "unchecked",
]
