"""Inference: how certain a number is.

`Draws` say which clusters enter a resample; `replicates` weighs plans with them; `estimates` turns replicates
into intervals. `bootstrap` and `paired_delta` do all of it for any function of `Items`. Metrics are defined
elsewhere.
"""

from abstain.inference._bands import Band, band
from abstain.inference._bootstrap import MetricPlan, bootstrap, estimates, paired_delta, points, replicates
from abstain.inference._draws import Draws
from abstain.inference._estimate import Estimate

__all__ = [
    "Band",
    "Draws",
    "Estimate",
    "MetricPlan",
    "band",
    "bootstrap",
    "estimates",
    "paired_delta",
    "points",
    "replicates",
]
