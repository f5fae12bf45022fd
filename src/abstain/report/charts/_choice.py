"""Which chart a result is drawn as: one name each for Python and for `abstain plot`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from abstain import _validate
from abstain.errors import ArgumentError, DataError
from abstain.evaluation import Result
from abstain.report.charts.calibration import reliability_diagram
from abstain.report.charts.curves import curves_chart, risk_coverage_chart
from abstain.report.charts.forest import differences_chart, metric_chart
from abstain.report.charts.intervals import charts as coverage_charts

if TYPE_CHECKING:
    from abstain.evaluation import SystemResult
    from abstain.evaluation.conformal import CoverageResult
    from abstain.report.charts._look import Chart

__all__ = ["COMPARISON_CHARTS", "SYSTEM_CHARTS", "draw"]

SYSTEM_CHARTS = ("curve", "curves", "areas", "reliability")
COMPARISON_CHARTS = ("difference", "left", "right")


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

    One system has the charts "curve" (one confidence with its band), "curves" (several), "areas" (one metric of
    every confidence) and "reliability". Several systems have "difference", and the charts of each system, which is
    named by `system`; of two, "left" and "right" are their curves. Intervals and sets have "coverage",
    "coverage-by-size", "width" and one per grouping.

    Args:
        result: what `evaluate`, `compare`, `evaluate_intervals` or `evaluate_sets` returns.
        chart: which chart; the one that says most when left out.
        confidence: which confidence a curve, a reliability diagram or differences are of; when left out the first
            one, or all.
        risk: "selective" or "generalized".
        metric: which metric areas and differences show; AUGRC, where there is one, when left out.
        system: which of several systems a curve, areas or a reliability diagram are of.
    """
    if not isinstance(result, Result):
        found = coverage_charts(result)
        return found[_validate.choice(chart or next(iter(found)), "chart", found)]
    if len(result.systems) == 1:
        return _system_chart(result.only, chart, confidence, risk, metric)
    name = _validate.choice(chart or ("curve" if system else "difference"), "chart", _charts_of(result))
    if name == "difference":
        return differences_chart(result, metric, confidence=confidence)
    if name in COMPARISON_CHARTS:
        return _system_chart(result.left if name == "left" else result.right, None, confidence, risk, metric)
    if system is None:
        raise ArgumentError(f"{name} is of one system; name it (system=): {', '.join(result.systems)}")
    own = result.systems[_validate.choice(system, "system", result.systems)]
    return _system_chart(own, chart, confidence, risk, metric)


def _charts_of(result: Result) -> tuple[str, ...]:
    """The charts of several systems."""
    sides = COMPARISON_CHARTS if len(result.systems) == 2 else COMPARISON_CHARTS[:1]
    return (*sides, *SYSTEM_CHARTS)


def _system_chart(
    system: SystemResult, chart: str | None, confidence: str | None, risk: str, metric: str | None
) -> Chart:
    single = confidence is not None or len(system) == 1
    name = _validate.choice(chart or ("curve" if single else "curves"), "chart", SYSTEM_CHARTS)
    if not system:
        raise ArgumentError("there is no confidence to draw; evaluate with confidence=")
    if name == "curve":
        return risk_coverage_chart(system, confidence, risk=risk)
    if name == "curves":
        return curves_chart(system, risk=risk)
    if name == "areas":
        return metric_chart(system, metric or "augrc")
    asked = system[confidence].name if confidence is not None else next(iter(system))
    curves = system.profile().reliability
    if asked not in curves:
        others = f"; these are: {', '.join(curves)}" if curves else ""
        raise DataError(f"{asked} is not within 0 and 1, or is known to be no probability{others}")
    return reliability_diagram(curves[asked], title=f"Reliability of {asked}")
