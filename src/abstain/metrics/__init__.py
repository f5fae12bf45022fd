"""Metrics: plain functions of arrays, each with the statistic from which its confidence interval is computed.

    from abstain.metrics import aurc, expected_calibration_error, interval_coverage, selective_accuracy

Every function takes the evaluated data as its first arguments (``loss, confidence`` or ``y_true, y_pred``). All other
arguments are passed by name: ``abstained``, ``sample_weight``, ``cluster``, ``bins``. `abstain.metrics.registry` lists
every metric. To write your own metric, subclass `BaseMetric`. The metric objects, and the ``compute_*`` functions for
lists of `ItemPrediction`, are interfaces of other systems (see `abstain.compat`). A metric does not depend on files,
confidence variants or confidence intervals.
"""

# Type checkers read the public names from the `__all__` of each module.
# ruff: noqa: F403, F405

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from abstain.metrics._columns import Columns, guidance
    from abstain.metrics._specification import measure_metrics
    from abstain.metrics.abstention import *
    from abstain.metrics.answers import *
    from abstain.metrics.base import BaseMetric
    from abstain.metrics.calibration import *
    from abstain.metrics.calibration_tests import *
    from abstain.metrics.curves import *
    from abstain.metrics.instruments import *
    from abstain.metrics.intervals import *
    from abstain.metrics.quantiles import *
    from abstain.metrics.registry import *
    from abstain.metrics.regression import *
    from abstain.metrics.reliability import *
    from abstain.metrics.selective import *
    from abstain.metrics.sets import *
    from abstain.results import EvaluationResult, MetricScore, items_to_results, results_to_items

    # The interfaces of other systems import the metrics above, so they come last.
    from abstain.compat.objects import *  # isort: skip
    from abstain.compat.rows import *  # isort: skip

# The modules that define the public names. Those that most evaluations need come first.
_MODULES = (
    "abstain.metrics._columns",
    "abstain.metrics._specification",
    "abstain.metrics.selective",
    "abstain.metrics.abstention",
    "abstain.metrics.registry",
    "abstain.metrics.answers",
    "abstain.metrics.regression",
    "abstain.metrics.calibration",
    "abstain.metrics.calibration_tests",
    "abstain.metrics.curves",
    "abstain.metrics.reliability",
    "abstain.metrics.instruments",
    "abstain.metrics.intervals",
    "abstain.metrics.sets",
    "abstain.metrics.quantiles",
    "abstain.results",
    "abstain.compat.objects",
    "abstain.compat.rows",
)

__all__ = [
    "INSTRUMENTS",
    "AbstentionRate",
    "Accuracy",
    "AnswerRate",
    "BalancedAccuracy",
    "BaseMetric",
    "BrierDecomposition",
    "BrierScore",
    "CalibrationTest",
    "ClassificationScores",
    "Columns",
    "CoverageBin",
    "CumulativeDifferences",
    "DeferralAlignment",
    "DeferralConfusion",
    "EvaluationResult",
    "ExpectedCalibrationError",
    "GroupCoverage",
    "Instrument",
    "ItemPrediction",
    "MetricScore",
    "MetricSpecification",
    "PitHistogram",
    "PopulationTable",
    "RegressionScores",
    "ReliabilityCurve",
    "RiskCoverageCurve",
    "SelectiveAccuracy",
    "StratifiedCoverage",
    "TieSensitivity",
    "Totals",
    "WorstSlab",
    "abstention_accuracy",
    "abstention_auroc",
    "abstention_f1",
    "abstention_precision",
    "abstention_rate",
    "abstention_recall",
    "accuracy",
    "accuracy_when_answered",
    "answer_rate",
    "auarc",
    "augrc",
    "augrc_at_coverage",
    "augrc_optimal",
    "aurc",
    "aurc_achievable",
    "aurc_at_coverage",
    "aurc_optimal",
    "auroc",
    "balanced_accuracy",
    "brier_decomposition",
    "brier_score",
    "class_balanced_aurc",
    "classification_scores",
    "classwise_calibration_error",
    "cmax",
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
    "confidence_target_score",
    "correctness_auroc",
    "coverage_at_accuracy",
    "coverage_at_risk",
    "cumulative_differences",
    "default_abstention_metrics",
    "default_accuracy_metrics",
    "default_benchmark_metrics",
    "default_calibration_metrics",
    "deferral_alignment",
    "deferral_confusion",
    "eaugrc",
    "eaurc",
    "effective_reliability",
    "expected_calibration_error",
    "f1",
    "find_instrument",
    "find_metric",
    "guidance",
    "hallucination_rate",
    "interval_coverage",
    "interval_coverage_by_group",
    "interval_coverage_gap",
    "interval_coverage_width_criterion",
    "interval_feature_stratified_coverage",
    "interval_hsic",
    "interval_mean_width",
    "interval_size_stratified_coverage",
    "interval_width_quantiles",
    "interval_worst_slab_coverage",
    "items_to_results",
    "known_metrics",
    "kolmogorov_smirnov",
    "kuiper",
    "macro_f1",
    "mean_absolute_error",
    "measure_metrics",
    "multiclass_brier_score",
    "negative_log_likelihood",
    "over_conservativeness",
    "pearson_r",
    "pinball_loss",
    "pit_histogram",
    "population_table",
    "precision",
    "prediction_rejection_ratio",
    "recall",
    "register_metric",
    "regression_scores",
    "reliability_curve",
    "reliable_accuracy",
    "results_to_items",
    "risk_at_coverage",
    "risk_coverage_curve",
    "root_mean_squared_error",
    "select_metrics",
    "selective_accuracy",
    "set_coverage",
    "set_coverage_by_group",
    "set_coverage_by_label",
    "set_coverage_gap",
    "set_empty_rate",
    "set_feature_stratified_coverage",
    "set_mean_width",
    "set_singleton_rate",
    "set_size_stratified_coverage",
    "set_weighted_coverage_gap",
    "set_worst_slab_coverage",
    "severity_tier_accuracy",
    "simpleqa_f",
    "smooth_calibration_error",
    "spiegelhalter",
    "tie_sensitivity",
    "top_label_calibration_error",
    "total_items",
    "totals",
    "unregister_metric",
    "weighted_interval_score",
    "winkler_score",
    "wrong_rate",
]


def __getattr__(name: str) -> Any:
    """Import a public module, or the module of a public name, when it is first used."""
    if f"{__name__}.{name}" in _MODULES:
        return import_module(f"{__name__}.{name}")
    for module in _MODULES if name in __all__ else ():
        contents = vars(import_module(module))
        if name in contents:
            globals()[name] = contents[name]
            return contents[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return list(__all__)
