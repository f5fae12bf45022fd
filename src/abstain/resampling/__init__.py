"""Resampling: rows summed once by cluster and key, so that any number of weight vectors can be applied to the sums.

A *unit* is resampled as a whole: a cluster, or a group of clusters. A *key* is a rank (a distinct confidence, in
order), a loss value, a bin or a class; some metrics need only a single key. `ClusterSums` contains a few sums for each
pair of unit and key that occurs, and is evaluated with one weight per unit. Nearly every metric uses one of three
forms:

- **ranks**: keys in order, read as running sums (`integrate_curve`, `ClusterSums.run`).
- **bins**: unordered keys, read as one sum per key (`ClusterSums.evaluate`).
- **sums**: a single key.

A `Statistic` computes metrics from such sums. Weights of one give the point estimate, one unit with weight zero gives
the jackknife, and drawn multiplicities give the bootstrap, so each metric needs only one implementation. The metrics
are defined in `abstain.metrics`. The weights come from `abstain.inference`.
"""

from abstain.resampling._cluster_sums import (
    ClusterSums,
    Statistic,
    StopFlag,
    WeightBatch,
    keys_ascending,
    keys_descending,
    keys_of_pairs,
    total_by,
)
from abstain.resampling._curves import (
    HARMONIC,
    LOGARITHM,
    Crossing,
    CurveRequest,
    CurveSums,
    RunningSums,
    integrate_curve,
    integrate_running_sums,
    loss_area,
    prefix_mean_sum,
    truncated,
)
from abstain.resampling._kernel import RandomStream, description, kernel, lanes_for

__all__ = [
    "HARMONIC",
    "LOGARITHM",
    "ClusterSums",
    "Crossing",
    "CurveRequest",
    "CurveSums",
    "RandomStream",
    "RunningSums",
    "Statistic",
    "StopFlag",
    "WeightBatch",
    "description",
    "integrate_curve",
    "integrate_running_sums",
    "kernel",
    "keys_ascending",
    "keys_descending",
    "keys_of_pairs",
    "lanes_for",
    "loss_area",
    "prefix_mean_sum",
    "total_by",
    "truncated",
]
