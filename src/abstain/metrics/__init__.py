"""Metrics: pure functions of arrays, each with the plan that the bootstrap weighs.

`abstain.metrics.selective` holds the risk-coverage figures on arrays; the names below are the same figures
for lists of `ItemPrediction`. The metric objects take lists of `EvaluationResult`; `abstain.metrics.registry`
lists every metric. A metric knows nothing of files, of confidence variants or of intervals.
"""

from abstain.metrics.registry import known_metrics
from abstain.metrics._columns import Columns, guidance
from abstain.metrics._specification import MetricSpecification, measure_metrics
from abstain.metrics.curves import RiskCoverageCurve, TieSensitivity, risk_coverage_curve, tie_sensitivity
from abstain.metrics.reliability import ReliabilityCurve, reliability_curve
