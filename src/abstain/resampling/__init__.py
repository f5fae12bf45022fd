"""Tallies: rows summed once by unit and key, so that any number of weights can be tried on them.

A *unit* is what is drawn or left out: a cluster, or a group of clusters. A *key* is what a metric runs along:
a rank (a distinct confidence, in order), a loss value, a bin, a class, or nothing. A `ClusterSums` keeps a few sums
for each pair of them that occurs; to *weigh* it is to give every unit a weight. Three shapes carry nearly
every metric:

- **ranks**: keys in order, read as running sums (`walk`, `ClusterSums.run`);
- **bins**: keys side by side, read as one sum per key (`ClusterSums.weigh`);
- **sums**: a single key.

A `Statistic` is a tally (or several) with its *finisher*, which turns weighed sums into metrics. Weights all
one give the point estimate, a unit left out gives the jackknife, drawn multiplicities give the bootstrap: one
implementation of each metric serves all three. What a metric means is known elsewhere, and so is where the
weights come from.
"""

from abstain.resampling._kernel import RandomStream, description, kernel, lanes_for
from abstain.resampling._rows import CountedRows, RowsRefused
from abstain.resampling._table import (
    ClusterSums,
    Statistic,
    StopFlag,
    WeightBatch,
    keys_ascending,
    keys_descending,
    total_by,
)
from abstain.resampling._weigh import (
    HARMONIC,
    LOGARITHM,
    Crossing,
    CurveRequest,
    CurveSums,
    RunningSums,
    loss_area,
    prefix_mean_sum,
    truncated,
    walk,
    walk_run,
)

__all__ = [
    "HARMONIC",
    "LOGARITHM",
    "ClusterSums",
    "CountedRows",
    "Crossing",
    "CurveRequest",
    "CurveSums",
    "RandomStream",
    "RowsRefused",
    "RunningSums",
    "Statistic",
    "StopFlag",
    "WeightBatch",
    "description",
    "kernel",
    "keys_ascending",
    "keys_descending",
    "lanes_for",
    "loss_area",
    "prefix_mean_sum",
    "total_by",
    "truncated",
    "walk",
    "walk_run",
]
