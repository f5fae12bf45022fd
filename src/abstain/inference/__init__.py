"""Inference: confidence intervals, p-values and verdicts.

`Intervals` computes the confidence intervals of one evaluation: statistics are evaluated with the weights of clusters
from `JackknifeWeights` and `BootstrapWeights`. `p_value` returns the p-value of a difference, and `decide` its verdict.
`jackknife`, `bootstrap` and `paired_delta` are for any function of `Items`. `coverage_verdict` compares a coverage with
its nominal level.
"""

from abstain.inference._both_sides import difference_of_samples, difference_over_jumps
from abstain.inference._estimate import (
    INTERVALS,
    JACKKNIFE,
    NONE,
    DifferenceRange,
    Estimate,
    number_text,
    replicates,
    set_digits,
)
from abstain.inference._functions import bootstrap, function_measure, jackknife, paired_delta
from abstain.inference._halves import errors_over_halves, with_error_over_halves
from abstain.inference._intervals import (
    Intervals,
    Replicates,
    Within,
    against_margin,
    at_level,
    difference_estimate,
    difference_range,
    p_value,
    resamples_wanted,
    simultaneous_level,
    subtract,
    with_companions,
    with_uncertain_bias,
)
from abstain.inference._threads import set_threads, threads
from abstain.inference._verdict import (
    INCONCLUSIVE,
    LEFT,
    POWER,
    RIGHT,
    CoverageVerdict,
    MarginVerdict,
    beyond,
    clusters_needed,
    coverage_verdict,
    decide,
    holm,
    within_margin,
)
from abstain.inference._weights import BootstrapWeights, JackknifeWeights

__all__ = [
    "INCONCLUSIVE",
    "INTERVALS",
    "JACKKNIFE",
    "LEFT",
    "NONE",
    "POWER",
    "RIGHT",
    "BootstrapWeights",
    "CoverageVerdict",
    "DifferenceRange",
    "Estimate",
    "Intervals",
    "JackknifeWeights",
    "MarginVerdict",
    "Replicates",
    "Within",
    "against_margin",
    "at_level",
    "beyond",
    "bootstrap",
    "clusters_needed",
    "coverage_verdict",
    "decide",
    "difference_estimate",
    "difference_of_samples",
    "difference_over_jumps",
    "difference_range",
    "errors_over_halves",
    "function_measure",
    "holm",
    "jackknife",
    "number_text",
    "p_value",
    "paired_delta",
    "replicates",
    "resamples_wanted",
    "set_digits",
    "set_threads",
    "simultaneous_level",
    "subtract",
    "threads",
    "with_companions",
    "with_error_over_halves",
    "with_uncertain_bias",
    "within_margin",
]
