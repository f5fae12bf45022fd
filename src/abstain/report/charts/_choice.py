"""Which chart a result is drawn as: one name each for Python and for `abstain plot`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from abstain import _validate
from abstain.errors import ArgumentError, DataError
from abstain.evaluation import Comparison, Evaluation, SystemsComparison
from abstain.report.charts.calibration import reliability_diagram
from abstain.report.charts.curves import (
    curves_chart,
    difference_chart,
    figures_chart,
    risk_coverage_chart,
    systems_chart,
)
from abstain.report.charts.intervals import charts as conformal_charts

if TYPE_CHECKING:
    from abstain.evaluation.conformal import ConformalEvaluation
    from abstain.report.charts._look import Chart

__all__ = ["COMPARISON_CHARTS", "EVALUATION_CHARTS", "draw"]

EVALUATION_CHARTS = ("curve", "curves", "areas", "reliability")
COMPARISON_CHARTS = ("difference", "left", "right")


def draw(
    result: Evaluation | Comparison | SystemsComparison | ConformalEvaluation,
    chart: str | None = None,
    *,
    confidence: str | None = None,
    risk: str = "selective",
    figure: str = "augrc",
) -> Chart:
    """Draw a result.

    An evaluation has the charts "curve" (one confidence with its band), "curves" (several), "areas" (one
    figure of every confidence) and "reliability"; a comparison has "difference", and "left" and "right" for
    the curves of its sides; several systems have one for each metric; intervals and sets have "coverage",
    "coverage-by-size", "width" and one for each grouping.

    Args:
        result: what `evaluate`, `compare`, `compare_systems`, `evaluate_intervals` or `evaluate_sets` returns.
        chart: which chart; the one that says most when left out.
        confidence: which confidence a curve or a reliability diagram is of; the first when left out.
        risk: "selective" or "generalized".
        figure: which figure areas and differences show, such as "augrc" or "aurc".
    """
    if isinstance(result, Evaluation):
        return _evaluation_chart(result, chart, confidence, risk, figure)
    if isinstance(result, Comparison):
        name = _validate.choice(chart or "difference", "chart", COMPARISON_CHARTS)
        if name == "difference":
            return difference_chart(result, figure)
        side = result.left if name == "left" else result.right
        return _evaluation_chart(side, None, confidence, risk, figure)
    if isinstance(result, SystemsComparison):
        return systems_chart(result, chart)
    found = conformal_charts(result)
    return found[_validate.choice(chart or next(iter(found)), "chart", found)]


def _evaluation_chart(
    evaluation: Evaluation, chart: str | None, confidence: str | None, risk: str, figure: str
) -> Chart:
    single = confidence is not None or len(evaluation) == 1
    name = _validate.choice(chart or ("curve" if single else "curves"), "chart", EVALUATION_CHARTS)
    if not evaluation:
        raise ArgumentError("there is no confidence to draw; evaluate with confidence=")
    if name == "curve":
        return risk_coverage_chart(evaluation, confidence, risk=risk)
    if name == "curves":
        return curves_chart(evaluation, risk=risk)
    if name == "areas":
        return figures_chart(evaluation, figure)
    asked = evaluation[confidence].name if confidence is not None else next(iter(evaluation))
    curves = evaluation.profile().reliability
    if asked not in curves:
        others = f"; these are: {', '.join(curves)}" if curves else ""
        raise DataError(f"{asked} is not within 0 and 1, or is known to be no probability{others}")
    return reliability_diagram(curves[asked], title=f"Reliability of {asked}")
