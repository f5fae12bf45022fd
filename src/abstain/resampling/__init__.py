"""Resampling: rows summed once by cluster and key, so that any number of weight vectors can be applied to the sums.

A *unit* is drawn or left out as a whole: a cluster, or a group of clusters. A *key* is what a metric runs along: a rank
(a distinct confidence, in order), a loss value, a bin, a class, or nothing. `ClusterSums` keeps a few sums for each
pair of them that occurs and is evaluated with a weight per unit. Three shapes carry nearly every metric:

- **ranks**: keys in order, read as running sums (`integrate_curve`, `ClusterSums.run`);
- **bins**: keys next to each other, read as one sum per key (`ClusterSums.evaluate`);
- **sums**: a single key.

A `Statistic` computes metrics from such sums. Weights of one give the point estimate, a unit left out gives the
jackknife, drawn multiplicities give the bootstrap: one implementation of each metric serves all three. The metrics are
defined in `abstain.metrics`, the weights come from `abstain.inference`.
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
