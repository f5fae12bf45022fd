"""Inference: how certain a number is.

`Draws` say which clusters enter a resample; `replicates` weighs plans with them; `estimates` turns replicates
into intervals. `bootstrap` and `paired_delta` do all of it for any function of `Items`. Metrics are defined
elsewhere. `binomial_interval` and `coverage_verdict` say how certain a share is without any resample.
"""

from abstain.inference._bands import Band, band
from abstain.inference._binomial import CoverageVerdict, Trials, binomial_interval, coverage_verdict
from abstain.inference._bootstrap import MetricPlan, bootstrap, estimates, paired_delta, points, replicates
from abstain.inference._draws import Draws
from abstain.inference._estimate import Estimate

__all__ = [
    "Band",
    "CoverageVerdict",
    "Draws",
    "Estimate",
    "MetricPlan",
    "Trials",
    "band",
    "binomial_interval",
    "bootstrap",
    "coverage_verdict",
    "estimates",
    "paired_delta",
    "points",
    "replicates",
]
