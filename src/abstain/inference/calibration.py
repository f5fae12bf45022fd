"""Calibration metrics with confidence intervals, from arrays of outcomes and confidences.

All metrics are evaluated with the same weights of clusters. They are defined in `abstain.metrics.calibration`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from abstain import _validate
from abstain._units import counted_clusters
from abstain.errors import ArgumentError
from abstain.inference._estimate import JACKKNIFE
from abstain.inference._intervals import Intervals, with_companions
from abstain.metrics import Columns, measure_metrics
from abstain.metrics.calibration import binned_error_metric
from abstain.metrics.registry import find_metric

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import ArrayLike

    from abstain.inference._estimate import Estimate

__all__ = ["calibration_estimates"]

USUAL = ("expected_calibration_error", "brier_score", "negative_log_likelihood")
_KNOWN = (*USUAL, "smooth_calibration_error")


def calibration_estimates(
    y_true: ArrayLike,
    confidence: ArrayLike,
    *,
    cluster: ArrayLike | None = None,
    metrics: Sequence[str] = USUAL,
    bins: int = 15,
    strategy: str = "uniform",
    norm: float | str = 1,
    debiased: bool = False,
    interval: str = JACKKNIFE,
    resamples: int | None = None,
    seed: int = 42,
    level: float = 0.95,
    sample_weight: ArrayLike | None = None,
    progress: Callable[[int], None] | None = None,
) -> dict[str, Estimate]:
    """Return calibration metrics with their intervals over clusters, by name.

    A binned error is biased upwards. A resample, which repeats rows, is biased further, so its percentile interval can
    lie above the value; the estimate then has a reason. The debiased error is less affected. The jackknife interval
    accounts for the bias, see `abstain.metrics.scales`.

    Args:
        y_true: 1 if the event occurred, otherwise 0.
        confidence: the stated probability, in [0, 1].
        cluster: the cluster of each row. Default: each row is its own cluster.
        metrics: "expected_calibration_error", "smooth_calibration_error", "brier_score",
            "negative_log_likelihood".
        bins: number of bins of the calibration error.
        strategy: "uniform" or "quantile"; equal-mass bins are formed again for every weight vector.
        norm: 1, 2 or "max".
        debiased: subtract the bias of small bins.
        interval: "jackknife" over clusters, "percentile" or "bca" for the bootstrap, "none" for no intervals.
        resamples: number of bootstrap resamples. Default: 10,000 for a bootstrap interval, otherwise 0.
        seed: the seed of the resamples.
        level: confidence level of the intervals.
        sample_weight: multiplicities.
        progress: called with the number of resamples done since the last call.

    >>> estimates = calibration_estimates([1, 1, 0, 1, 0, 1], [0.9, 0.8, 0.3, 0.7, 0.4, 0.6])
    >>> print(estimates["brier_score"])
    0.092 [0.000, 0.679]
    """
    if not metrics:
        raise ArgumentError(f"metrics is empty; known: {', '.join(_KNOWN)}")
    for name in metrics:
        _validate.choice(name, "metric", _KNOWN)
    rows = Columns.believed(y_true, confidence, sample_weight=sample_weight, cluster=cluster)
    n = len(rows)
    ids = np.arange(n) if cluster is None else np.unique(np.asarray(cluster))
    unit = np.arange(n) if cluster is None else rows.cluster
    counted, unit = counted_clusters(unit, rows.weight)
    intervals = Intervals.of(
        ids[counted], unit, rows.weight, interval=interval, resamples=resamples, seed=seed, level=level
    )
    rows = rows.in_units(intervals.unit_of_cluster[unit], intervals.units).with_row_weight()
    binned = binned_error_metric(bins=bins, strategy=strategy, norm=norm, debiased=debiased)
    requested = [binned if name == binned.name else find_metric(name) for name in metrics]
    statistic = measure_metrics(rows, with_companions(requested))
    replicates = intervals.replicate([statistic], progress)[statistic]
    estimates = intervals.metrics(rows, requested, statistic, replicates, n=n)
    return dict(zip(metrics, map(_explained, estimates), strict=True))


def _explained(estimate: Estimate) -> Estimate:
    if estimate.interval is None or estimate.low <= estimate.value <= estimate.high:
        return estimate
    reason = (
        "the value is outside its percentile interval, because resampling adds to the bias of binned errors"
    )
    return replace(estimate, reason=reason)
