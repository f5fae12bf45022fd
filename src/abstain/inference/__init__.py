"""Inference: how certain a number is, and which of two is better.

`Draws` and `LeaveOut` say which clusters enter; `replicates` weighs measures with them; `estimates` turns
replicates into percentile intervals; `difference_estimate` gives a difference its jackknife interval,
`p_value` its p-value, and `decide` the one verdict. `bootstrap` and `paired_delta` do all of it for any
function of `Items`. `binomial_interval` and `coverage_verdict` say how certain a share is without any
resample. Metrics are defined elsewhere.
"""

from abstain.inference._binomial import CoverageVerdict, Trials, binomial_interval, coverage_verdict
from abstain.inference._estimate import Band, Estimate, band, estimates, replicates, with_percentile
from abstain.inference._functions import bootstrap, function_measure, paired_delta
from abstain.inference._jackknife import Scale, at_level, difference_estimate, jackknife_estimates, p_value
from abstain.inference._verdict import (
    CANNOT_TELL,
    LEFT,
    RIGHT,
    MarginVerdict,
    beyond,
    clusters_needed,
    decide,
    holm,
    verdict_words,
    within_margin,
)
from abstain.inference._weights import Draws, LeaveOut, group_of

__all__ = [
    "CANNOT_TELL",
    "LEFT",
    "RIGHT",
    "Band",
    "CoverageVerdict",
    "Draws",
    "Estimate",
    "LeaveOut",
    "MarginVerdict",
    "Scale",
    "Trials",
    "at_level",
    "band",
    "beyond",
    "binomial_interval",
    "bootstrap",
    "clusters_needed",
    "coverage_verdict",
    "decide",
    "difference_estimate",
    "estimates",
    "function_measure",
    "group_of",
    "holm",
    "jackknife_estimates",
    "p_value",
    "paired_delta",
    "replicates",
    "verdict_words",
    "with_percentile",
    "within_margin",
]
