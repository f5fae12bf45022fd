"""The cluster bootstrap of any plan, and the paired difference of two.

A plan is weighed with every draw; the interval is the percentile interval of the replicates in which the
metric is defined. Plans that are weighed together share their draws, so that any two of them can be compared
resample by resample.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from abstain import _validate
from abstain.errors import DataError
from abstain.inference._draws import Draws
from abstain.inference._estimate import Estimate

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from abstain.items import Items
    from abstain.tally import Measure

    Floats = NDArray[np.float64]
    Metric = Callable[[Items], float | None]
    Progress = Callable[[int], None]

__all__ = ["MetricPlan", "bootstrap", "estimates", "paired_delta", "points", "replicates"]

METHOD = "cluster bootstrap (percentile)"


def points(plan: Measure) -> Floats:
    """Return the point estimates of a plan: its values at weights all one."""
    return plan(np.ones((1, plan.units)))[0]


def replicates(plans: Sequence[Measure], draws: Draws, progress: Progress | None = None) -> list[Floats]:
    """Weigh every plan with the same draws; one array (resamples, metrics) a plan, and one for all uses of a plan.

    Args:
        plans: plans over the same clusters.
        draws: the resamples.
        progress: called with the number of resamples done since the last call.
    """
    if draws.resamples and any(plan.units != draws.clusters for plan in plans):
        raise DataError("plans that are weighed together must have the same clusters")
    _settle_heap()
    single = {id(plan): plan for plan in plans}
    values = {key: np.empty((draws.resamples, len(plan.names))) for key, plan in single.items()}
    done = 0
    for weights in draws.batches(max((plan.width for plan in plans), default=1)):
        for key, plan in single.items():
            values[key][done : done + len(weights)] = plan(weights)
        done += len(weights)
        if progress is not None:
            progress(len(weights))
    return [values[id(plan)] for plan in plans]


def estimates(
    values: Floats, replicated: Floats, draws: Draws, *, n: int, level: float = 0.95
) -> list[Estimate]:
    """Turn point estimates and their replicates into estimates, one a metric.

    A replicate that is NaN is dropped; with fewer than two left the interval is the point itself. Without any
    resamples, or where the point is undefined, there is no interval.
    """
    level = _validate.level(level)
    valid = ~np.isnan(replicated)
    counts = valid.sum(axis=0)
    low, high, spread = _percentiles(replicated, valid, level)
    result = []
    for column, value in enumerate(values.tolist()):
        drop_rate = 1.0 - int(counts[column]) / draws.resamples if draws.resamples else 0.0
        ends = (math.nan, math.nan)
        if draws.resamples and not math.isnan(value):
            ends = (float(low[column]), float(high[column])) if counts[column] >= 2 else (value, value)
        result.append(
            Estimate(
                value=value,
                low=ends[0],
                high=ends[1],
                level=level,
                se=float(spread[column]),
                method=METHOD if draws.resamples else "none",
                n=n,
                clusters=draws.clusters,
                resamples=draws.resamples,
                drop_rate=1.0 if math.isnan(value) and draws.resamples else drop_rate,
                seed=draws.seed,
            )
        )
    return result


class MetricPlan:
    """Any function of `Items` as a plan: slower, because it sees copied rows, but with the same draws.

    >>> from abstain import Items
    >>> items = Items.from_arrays([1, 0], [1, 1])
    >>> MetricPlan(lambda items: float((items.truth == items.prediction).mean()), items)(np.array([[2.0, 0.0]]))
    array([[1.]])
    """

    def __init__(self, metric: Metric, items: Items) -> None:
        self._metric = metric
        self._items = items.judged
        order = np.argsort(self._items.cluster_index, kind="stable")
        sizes = np.bincount(self._items.cluster_index, minlength=len(self._items.cluster_ids))
        self._rows_of_cluster = np.split(order, np.cumsum(sizes)[:-1]) if len(order) else []
        self.names = (getattr(metric, "__name__", "metric").strip("<>"),)
        self.units = len(self._items.cluster_ids)
        self.width = len(self._items)

    def __call__(self, weights: Floats) -> Floats:
        """Map weights (resamples, clusters) to values (resamples, 1)."""
        values = np.empty((len(weights), 1))
        for place, weight in enumerate(weights):
            drawn = np.repeat(np.arange(self.units), weight.astype(np.intp))
            rows = np.concatenate([self._rows_of_cluster[cluster] for cluster in drawn])
            value = self._metric(self._items.take(rows))
            values[place, 0] = math.nan if value is None else float(value)
        return values


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
    return _estimate_metric(
        [MetricPlan(metric, _some(items))], resamples, seed, level, len(items.judged), progress
    )


def paired_delta(
    metric: Metric,
    left: Items,
    right: Items,
    *,
    resamples: int = 10_000,
    seed: int = 42,
    level: float = 0.95,
    progress: Progress | None = None,
) -> Estimate:
    """Return right - left for any metric of yours, the same draws applied to both, over the clusters present in both.

    >>> from abstain import Items
    >>> truth = [1, 0, 1, 1]
    >>> left, right = Items.from_arrays(truth, [0, 1, 1, 1]), Items.from_arrays(truth, [1, 0, 1, 1])
    >>> def accuracy(items):
    ...     return (items.truth == items.prediction).mean()
    >>> print(paired_delta(accuracy, left, right, resamples=500))
    0.500 [0.000, 1.000]
    """
    shared = np.intersect1d(_some(left).judged.cluster_ids, _some(right).judged.cluster_ids)
    if not len(shared):
        raise DataError(
            "left and right have no cluster in common; a paired comparison needs the same clusters"
        )
    sides = [items.judged.take(np.isin(items.judged.cluster, shared)) for items in (left, right)]
    plans = [MetricPlan(metric, side) for side in sides]
    return _estimate_metric(plans, resamples, seed, level, len(sides[0]), progress)


def _estimate_metric(
    plans: list[MetricPlan], resamples: int, seed: int, level: float, n: int, progress: Progress | None
) -> Estimate:
    """The estimate of one plan, or of the difference of two (last - first)."""
    draws = Draws(plans[0].units, resamples, seed)
    replicated = replicates(plans, draws, progress)
    values = [points(plan) for plan in plans]
    if len(plans) == 2:
        replicated, values = [replicated[1] - replicated[0]], [values[1] - values[0]]
    return estimates(values[0], replicated[0], draws, n=n, level=level)[0]


def _some(items: Items) -> Items:
    if not len(items.judged):
        raise DataError("there is no item to judge: none is answered or abstained")
    return items


def _percentiles(replicated: Floats, valid: NDArray[np.bool_], level: float) -> tuple[Floats, Floats, Floats]:
    """The ends of the interval and the standard error of each column, over its valid replicates."""
    metrics = replicated.shape[1]
    low, high, spread = np.full(metrics, np.nan), np.full(metrics, np.nan), np.full(metrics, np.nan)
    quantiles = [(1.0 - level) / 2.0, (1.0 + level) / 2.0]
    for column in range(metrics):
        kept = np.ascontiguousarray(replicated[:, column])
        if not valid[:, column].all():
            kept = kept[valid[:, column]]
        if len(kept) >= 2:
            if np.isfinite(kept).all():
                low[column], high[column] = np.quantile(kept, quantiles)
                spread[column] = kept.std(ddof=1)
            else:  # infinite replicates cannot be interpolated between, and have no spread
                low[column], high[column] = np.quantile(kept, quantiles, method="inverted_cdf")
    return low, high, spread


def _settle_heap() -> None:
    # Arrays of a batch are freed and asked for again thousands of times. One large block, freed at once and never
    # touched, teaches the C library of Linux to keep such memory instead of handing it back to the kernel each time.
    np.empty((1 << 22) - 4096)
