"""The public names of `abstain.metrics`, and the consistency of their arguments."""

from __future__ import annotations

import inspect

import pytest

from abstain import metrics
from abstain.metrics.registry import METRICS

NAMES = [
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
# The names that the interface of each other system requires, according to its documentation.
SEEDS = {
    "selective metrics of rows": [
        "ItemPrediction",
        "compute_augrc",
        "compute_aurc",
        "compute_cmax",
        "compute_risk_at_coverage",
        "compute_risk_coverage_curve",
    ],
    "metric objects": [
        "AbstentionRate",
        "Accuracy",
        "AnswerRate",
        "BalancedAccuracy",
        "BaseMetric",
        "BrierScore",
        "DeferralAlignment",
        "EvaluationResult",
        "ExpectedCalibrationError",
        "MetricScore",
        "SelectiveAccuracy",
        "default_abstention_metrics",
        "default_accuracy_metrics",
        "default_benchmark_metrics",
        "default_calibration_metrics",
    ],
}


def test_the_public_names_are_exactly_these() -> None:
    assert metrics.__all__ == NAMES
    for name in NAMES:
        assert getattr(metrics, name) is not None


@pytest.mark.parametrize("interface", SEEDS)
def test_the_interfaces_of_other_systems_are_complete(interface: str) -> None:
    assert set(SEEDS[interface]) <= set(NAMES)


@pytest.mark.parametrize("metric", METRICS.values(), ids=lambda metric: metric.name)
def test_every_metric_of_the_registry_is_a_function_with_its_name(
    metric: metrics.MetricSpecification,
) -> None:
    function = getattr(metrics, metric.name)
    assert inspect.isfunction(function)
    assert function is metric.function


POSITIONAL = {
    ("loss", "confidence"),
    ("y_true", "y_pred"),
    ("y_true", "confidence"),
    ("y_true", "score"),
    ("y_true", "intervals"),
    ("y_true", "sets"),
    ("abstained",),
    ("abstained", "should_abstain"),
    ("confidence", "should_abstain"),
    ("intervals",),
    ("sets",),
}


@pytest.mark.parametrize("metric", METRICS.values(), ids=lambda metric: metric.name)
def test_arguments_have_consistent_names_and_order(metric: metrics.MetricSpecification) -> None:
    parameters = inspect.signature(metric.function).parameters
    ordered = [
        name for name, parameter in parameters.items() if parameter.kind is parameter.POSITIONAL_OR_KEYWORD
    ]
    assert tuple(ordered[:2]) in POSITIONAL
    assert parameters["sample_weight"].kind is inspect.Parameter.KEYWORD_ONLY
    assert parameters["sample_weight"].default is None
    assert not {"weights", "weight", "clusters", "num_bins", "n_bins"} & set(parameters)
