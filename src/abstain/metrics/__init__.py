"""Metrics: pure functions of arrays, each with the plan that the bootstrap weighs.

`abstain.metrics.selective` holds the risk-coverage figures on arrays; the names below are the same figures
for lists of `ItemPrediction`. The metric objects take lists of `EvaluationResult`; `abstain.metrics.registry`
lists every metric. A metric knows nothing of files, of confidence variants or of intervals.
"""

from abstain.metrics.objects import (
    AbstentionRate,
    Accuracy,
    AnswerRate,
    BalancedAccuracy,
    BaseMetric,
    BrierScore,
    DeferralAlignment,
    ExpectedCalibrationError,
    SelectiveAccuracy,
    default_abstention_metrics,
    default_accuracy_metrics,
    default_benchmark_metrics,
    default_calibration_metrics,
)
from abstain.metrics.registry import (
    MetricSpecification,
    known_metrics,
    register_metric,
    unregister_metric,
)
from abstain.metrics.rows import (
    ItemPrediction,
    compute_augrc,
    compute_augrc_at_coverage,
    compute_augrc_optimal,
    compute_aurc,
    compute_aurc_achievable,
    compute_aurc_at_coverage,
    compute_aurc_optimal,
    compute_cmax,
    compute_coverage_at_risk,
    compute_eaugrc,
    compute_eaurc,
    compute_risk_at_coverage,
    compute_risk_coverage_curve,
    compute_tie_sensitivity,
)
from abstain.metrics.selective import RiskCoverageCurve, TieSensitivity
from abstain.results import EvaluationResult, MetricScore, items_to_results, results_to_items

__all__ = [
    "AbstentionRate",
    "Accuracy",
    "AnswerRate",
    "BalancedAccuracy",
    "BaseMetric",
    "BrierScore",
    "DeferralAlignment",
    "EvaluationResult",
    "ExpectedCalibrationError",
    "ItemPrediction",
    "MetricScore",
    "MetricSpecification",
    "RiskCoverageCurve",
    "SelectiveAccuracy",
    "TieSensitivity",
    "compute_augrc",
    "compute_augrc_at_coverage",
    "compute_augrc_optimal",
    "compute_aurc",
    "compute_aurc_achievable",
    "compute_aurc_at_coverage",
    "compute_aurc_optimal",
    "compute_cmax",
    "compute_coverage_at_risk",
    "compute_eaugrc",
    "compute_eaurc",
    "compute_risk_at_coverage",
    "compute_risk_coverage_curve",
    "compute_tie_sensitivity",
    "default_abstention_metrics",
    "default_accuracy_metrics",
    "default_benchmark_metrics",
    "default_calibration_metrics",
    "items_to_results",
    "known_metrics",
    "register_metric",
    "results_to_items",
    "unregister_metric",
]
