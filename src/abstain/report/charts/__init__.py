"""Charts as Vega-Lite specifications: one description for notebook, HTML, PNG, SVG and PDF, all of them offline.

A chart draws a result and computes no statistics; every band and every bar says what it is. `save_chart`
writes it in the form that the file's ending names.
"""

from abstain.report.charts._choice import COMPARISON_CHARTS, EVALUATION_CHARTS, draw
from abstain.report.charts._look import COLOURS, unchecked
from abstain.report.charts._saving import FORMATS, chart_svg, check_chart_output, save_chart
from abstain.report.charts.calibration import (
    before_and_after_diagram,
    cumulative_difference_plot,
    reliability_diagram,
)
from abstain.report.charts.curves import (
    curves_chart,
    difference_chart,
    figures_chart,
    groups_chart,
    risk_coverage_chart,
    systems_chart,
)

__all__ = [
    "COLOURS",
    "COMPARISON_CHARTS",
    "EVALUATION_CHARTS",
    "FORMATS",
    "before_and_after_diagram",
    "chart_svg",
    "check_chart_output",
    "cumulative_difference_plot",
    "curves_chart",
    "difference_chart",
    "draw",
    "figures_chart",
    "groups_chart",
    "reliability_diagram",
    "risk_coverage_chart",
    "save_chart",
    "systems_chart",
    "unchecked",
]
