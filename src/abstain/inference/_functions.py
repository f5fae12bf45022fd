"""Inference for any function of items. It is slower, because rows are copied, but has the same weights and rules."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from abstain.errors import DataError
from abstain.inference._estimate import JACKKNIFE, PERCENTILE
from abstain.inference._halves import errors_over_halves, jumps, over_halves, with_error_over_halves
from abstain.inference._intervals import USUAL_RESAMPLES, Intervals, subtract
from abstain.matching import match
from abstain.metrics.scales import Scale
from abstain.resampling import Statistic, WeightBatch

if TYPE_CHECKING:
    from collections.abc import Callable

    from abstain._types import Floats, Progress
    from abstain.inference._estimate import Estimate
    from abstain.items import Items

    Metric = Callable[[Items], float | None]


def function_measure(metric: Metric, items: Items, intervals: Intervals | None = None) -> Statistic:
    """Return any function of `Items` as a statistic of the evaluated items, over the units of the intervals.

    >>> from abstain import Items
    >>> items = Items.from_arrays([1, 0], [1, 1])
    >>> function_measure(lambda items: float((items.truth == items.prediction).mean()), items)(np.array([[2.0, 0.0]]))
    array([[1.]])
    """
    evaluated = items.evaluated
    if not len(evaluated):
        raise DataError("there is no item to evaluate: no item is answered or abstained")
    unit, units = evaluated.cluster_index, len(evaluated.cluster_ids)
    if intervals is not None:
        unit, units = intervals.unit_of_cluster[unit], intervals.units
    order = np.argsort(unit, kind="stable")
    rows_of_unit = np.split(order, np.cumsum(np.bincount(unit, minlength=units))[:-1])

    def compute(batch: WeightBatch) -> Floats:
        values = np.full((len(batch), 1), np.nan)
        for row, weight in enumerate(batch.weights):
            drawn = np.repeat(np.arange(units), weight.astype(np.intp))
            rows = np.concatenate([rows_of_unit[number] for number in drawn])
            value = metric(evaluated.take(rows))
            values[row, 0] = math.nan if value is None else float(value)
        return values

    name = getattr(metric, "__name__", "metric").strip("<>")
    return Statistic((name,), units, len(evaluated), compute)


def jackknife(
    metric: Metric,
    items: Items,
    *,
    low: float = -math.inf,
    high: float = math.inf,
    level: float = 0.95,
) -> Estimate:
    """Return a custom metric with its jackknife interval over clusters.

    Args:
        metric: a function of `Items` that returns a number; None or NaN if it is undefined.
        items: the items to evaluate; failed and unscored ones are ignored.
        low: the smallest possible value of the metric, which limits the interval.
        high: the largest possible value of the metric.
        level: the confidence level.

    >>> from abstain import Items
    >>> items = Items.from_arrays([1, 0, 1, 1], [1, 1, 1, 0])
    >>> def accuracy(items):
    ...     return (items.truth == items.prediction).mean()
    >>> print(jackknife(accuracy, items, low=0.0, high=1.0))
    0.500 [0.061, 0.939]
    """
    return _estimate(metric, items, _intervals(items.evaluated, JACKKNIFE, 0, 0, level), Scale(low, high))


def bootstrap(
    metric: Metric,
    items: Items,
    *,
    resamples: int = USUAL_RESAMPLES,
    seed: int = 42,
    level: float = 0.95,
    progress: Progress | None = None,
) -> Estimate:
    """Return a custom metric with a cluster-bootstrap interval.

    Args:
        metric: a function of `Items` that returns a number; None or NaN if it is undefined.
        items: the items to evaluate; failed and unscored ones are ignored.
        resamples: number of resamples of the clusters.
        seed: the seed of the resamples.
        level: the confidence level.
        progress: called with the number of resamples done since the last call.

    >>> from abstain import Items
    >>> items = Items.from_arrays([1, 0, 1, 1], [1, 1, 1, 0])
    >>> def accuracy(items):
    ...     return (items.truth == items.prediction).mean()
    >>> print(bootstrap(accuracy, items, resamples=500))
    0.500 [0.000, 1.000]
    """
    intervals = _intervals(items.evaluated, PERCENTILE, resamples, seed, level)
    return _estimate(metric, items, intervals, Scale(), progress)


def _intervals(evaluated: Items, interval: str, resamples: int | None, seed: int, level: float) -> Intervals:
    rows = (evaluated.cluster_ids, evaluated.cluster_index, evaluated.weight)
    return Intervals.of(*rows, interval=interval, resamples=resamples, seed=seed, level=level)


def _estimate(
    metric: Metric, items: Items, intervals: Intervals, scale: Scale, progress: Progress | None = None
) -> Estimate:
    statistic = function_measure(metric, items, intervals)
    replicates = intervals.replicate([statistic], progress)[statistic]
    made = intervals.estimates(statistic.points, replicates, [scale], n=len(items.evaluated))[0]
    error = float(errors_over_halves([statistic], intervals)[0])
    if jumps(made, error):
        scale = replace(scale, least_error=error)
        made = intervals.estimates(statistic.points, replicates, [scale], n=made.n)[0]
        _, base, scaled = made.method.partition("t distribution")
        made = replace(made, method=f"{over_halves(made)}, {base}{scaled}")
    return made


def paired_delta(
    metric: Metric,
    left: Items,
    right: Items,
    *,
    match_by: str = "names",
    intersection_only: bool = False,
    truth_may_differ: bool = False,
    low: float = -math.inf,
    high: float = math.inf,
    interval: str = JACKKNIFE,
    resamples: int | None = None,
    seed: int = 42,
    level: float = 0.95,
    progress: Progress | None = None,
) -> Estimate:
    """Return right - left for a custom metric, over the items that are evaluated on both sides.

    Items are matched as in `abstain.compare`, and both sides have the same weights.

    Args:
        metric: a function of `Items` that returns a number; None or NaN if it is undefined.
        left: one side.
        right: the other.
        match_by: "names", or "rows" for the order of rows.
        intersection_only: use only the items that both sides have. Default: items that one side lacks are an error.
        truth_may_differ: allow labels that differ between the sides. Default: different labels are an error.
        low: the smallest possible value of the metric. With `high`, it limits the difference and its interval.
        high: the largest possible value of the metric.
        interval: "jackknife" over clusters, or "percentile" or "bca" for the bootstrap.
        resamples: number of resamples of the clusters; with the jackknife, for a percentile interval in addition.
        seed: the seed of the resamples.
        level: the confidence level.
        progress: called with the number of resamples done since the last call.

    >>> from abstain import Items
    >>> truth = [1, 0, 1, 1]
    >>> left, right = Items.from_arrays(truth, [0, 1, 1, 1]), Items.from_arrays(truth, [1, 0, 1, 1])
    >>> def accuracy(items):
    ...     return (items.truth == items.prediction).mean()
    >>> print(paired_delta(accuracy, left, right, match_by="rows", low=0.0, high=1.0))
    0.500 [-0.419, 1.000]
    """
    kept, matching = match(
        {"left": left, "right": right},
        by=match_by,
        intersection_only=intersection_only,
        truth_may_differ=truth_may_differ,
    )
    intervals = _intervals(kept["left"], interval, resamples, seed, level)
    left_statistic, right_statistic = (function_measure(metric, side, intervals) for side in kept.values())
    replicates = intervals.replicate([left_statistic, right_statistic], progress)
    change = replicates[right_statistic].less(replicates[left_statistic]).column(0)
    value = float(subtract(right_statistic.point, left_statistic.point))
    made = intervals.difference(value, change, [Scale(low, high)], n=matching.evaluated)
    error = float(errors_over_halves([left_statistic, right_statistic], intervals)[0])
    return with_error_over_halves(made, error)
