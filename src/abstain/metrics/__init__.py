"""Metrics: pure functions of arrays, each with the plan that the bootstrap weighs.

`abstain.metrics.selective` holds the risk-coverage figures on arrays; the names below are the same figures
for lists of `ItemPrediction`. A metric knows nothing of files, of confidence variants or of intervals.
"""

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

__all__ = [
    "ItemPrediction",
    "RiskCoverageCurve",
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
]
