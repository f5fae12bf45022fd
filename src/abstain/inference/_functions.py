"""Inference for any function of items: slower, because it sees copied rows, but with the same draws and rules."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from abstain.errors import DataError
from abstain.inference._estimate import estimates, replicates, with_percentile
from abstain.inference._jackknife import difference_estimate
from abstain.inference._weights import Draws, LeaveOut
from abstain.matching import match
from abstain.tally import Batch, Measure

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from abstain.inference._estimate import Estimate
    from abstain.items import Items

    Floats = NDArray[np.float64]
    Metric = Callable[[Items], float | None]
    Progress = Callable[[int], None]

__all__ = ["bootstrap", "function_measure", "paired_delta"]


def function_measure(metric: Metric, items: Items) -> Measure:
    """Return any function of `Items` as a measure of the judged items.

    >>> from abstain import Items
    >>> items = Items.from_arrays([1, 0], [1, 1])
    >>> function_measure(lambda items: float((items.truth == items.prediction).mean()), items)(np.array([[2.0, 0.0]]))
    array([[1.]])
    """
    judged = items.judged
    if not len(judged):
        raise DataError("there is no item to judge: none is answered or abstained")
    order = np.argsort(judged.cluster_index, kind="stable")
    clusters = len(judged.cluster_ids)
    rows_of_cluster = np.split(order, np.cumsum(np.bincount(judged.cluster_index, minlength=clusters))[:-1])

    def finish(batch: Batch) -> Floats:
        values = np.full((len(batch), 1), np.nan)
        for place, weight in enumerate(batch.weights):
            drawn = np.repeat(np.arange(clusters), weight.astype(np.intp))
            rows = np.concatenate([rows_of_cluster[cluster] for cluster in drawn])
            value = metric(judged.take(rows))
            values[place, 0] = math.nan if value is None else float(value)
        return values

    name = getattr(metric, "__name__", "metric").strip("<>")
    return Measure((name,), clusters, len(judged), finish)


def bootstrap(
    metric: Metric,
    items: Items,
    *,
    resamples: int = 10_000,
    seed: int = 42,
    level: float = 0.95,
    progress: Progress | None = None,
) -> Estimate:
    """Return any metric of yours with a cluster-bootstrap interval.

    Args:
        metric: a function of `Items` that returns a number, or None or NaN where it is undefined.
        items: the items to judge; failed and unscored ones are left out.
        resamples: how many times the clusters are drawn.
        seed: the same seed gives the same interval.
        level: the confidence level.
        progress: called with the number of resamples done since the last call.

    >>> from abstain import Items
    >>> items = Items.from_arrays([1, 0, 1, 1], [1, 1, 1, 0])
    >>> def accuracy(items):
    ...     return (items.truth == items.prediction).mean()
    >>> print(bootstrap(accuracy, items, resamples=500))
    0.500 [0.000, 1.000]
    """
    measure = function_measure(metric, items)
    draws = Draws(measure.units, resamples, seed)
    replicated = replicates([measure], draws, progress)[0]
    return estimates(measure.points, replicated, draws, n=len(items.judged), level=level)[0]


def paired_delta(
    metric: Metric,
    left: Items,
    right: Items,
    *,
    match_by: str = "names",
    intersection_only: bool = False,
    truth_may_differ: bool = False,
    resamples: int = 10_000,
    seed: int = 42,
    level: float = 0.95,
    progress: Progress | None = None,
) -> Estimate:
    """Return right - left for any metric of yours, over the items that both sides have judged.

    Items are matched as `abstain.compare` matches them. The interval is that of the jackknife over clusters; the
    percentile interval of the bootstrap, with the same draws on both sides, stands beside it in ``percentile``.

    Args:
        metric: a function of `Items` that returns a number, or None or NaN where it is undefined.
        left: one side.
        right: the other.
        match_by: "names", or "rows" where the order of rows is the match.
        intersection_only: leave out items that one side lacks; an error otherwise.
        truth_may_differ: go on where the sides disagree about the truth of an item; an error otherwise.
        resamples: how many times the clusters are drawn; 0 for no percentile interval.
        seed: the same seed gives the same draws.
        level: the confidence level.
        progress: called with the number of resamples done since the last call.

    >>> from abstain import Items
    >>> truth = [1, 0, 1, 1]
    >>> left, right = Items.from_arrays(truth, [0, 1, 1, 1]), Items.from_arrays(truth, [1, 0, 1, 1])
    >>> def accuracy(items):
    ...     return (items.truth == items.prediction).mean()
    >>> print(paired_delta(accuracy, left, right, match_by="rows", resamples=500))
    0.500 [-0.419, 1.419]
    """
    kept, matching = match(
        {"left": left, "right": right},
        by=match_by,
        intersection_only=intersection_only,
        truth_may_differ=truth_may_differ,
    )
    measures = [function_measure(metric, side) for side in kept.values()]
    leave = LeaveOut.of(kept["left"].cluster_ids)
    without = replicates(measures, leave)
    value = measures[1].point - measures[0].point
    found = difference_estimate(value, (without[1] - without[0])[:, 0], leave, n=matching.judged, level=level)
    draws = Draws(measures[0].units, resamples, seed)
    drawn = replicates(measures, draws, progress)
    return with_percentile(found, drawn[1] - drawn[0], draws)
