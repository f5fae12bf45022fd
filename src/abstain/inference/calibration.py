"""Calibration metrics with their intervals, from outcomes and confidences in arrays.

All metrics are weighed with the same clusters left out or drawn. What they mean is said in
`abstain.metrics.calibration`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from abstain import _validate
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

    A binned error is biased upwards, and a resample, which repeats rows, is biased further: its percentile
    interval can lie above the value. Where it does, the estimate's reason says so; the debiased error suffers
    less. The jackknife interval is made for that bias, see `abstain.metrics.scales`.

    Args:
        y_true: 1 where the row came true, else 0.
        confidence: the stated probability, in [0, 1].
        cluster: ids of what belongs together; each row is a cluster of its own when left out.
        metrics: "expected_calibration_error", "smooth_calibration_error", "brier_score",
            "negative_log_likelihood".
        bins: how many bins the calibration error has.
        strategy: "uniform" or "quantile"; equal-mass bins are formed anew in every weighing.
        norm: 1, 2 or "max".
        debiased: take the bias of small bins off.
        interval: "jackknife" over clusters, "percentile" or "bca" for those of the bootstrap, "none" for none.
        resamples: how many times the clusters are drawn, where a bootstrap interval is asked for.
        seed: the same seed gives the same intervals.
        level: confidence level of the intervals.
        sample_weight: multiplicities.
        progress: called with the number of resamples done since the last call.

    >>> found = calibration_estimates([1, 1, 0, 1, 0, 1], [0.9, 0.8, 0.3, 0.7, 0.4, 0.6])
    >>> print(found["brier_score"])
    0.092 [0.006, 0.636]
    """
    if not metrics:
        raise ArgumentError(f"metrics is empty; known: {', '.join(_KNOWN)}")
    for name in metrics:
        _validate.choice(name, "metric", _KNOWN)
    rows = Columns.believed(y_true, confidence, sample_weight=sample_weight, cluster=cluster)
    n = len(rows)
    ids = np.arange(n) if cluster is None else np.unique(np.asarray(cluster))
    unit = np.arange(n) if cluster is None else rows.cluster
    intervals = Intervals.of(
        ids, unit, rows.weight, interval=interval, resamples=resamples, seed=seed, level=level
    )
    rows = rows.in_units(intervals.unit_of_cluster[unit], intervals.units)
    binned = binned_error_metric(bins=bins, strategy=strategy, norm=norm, debiased=debiased)
    asked = [binned if name == binned.name else find_metric(name) for name in metrics]
    statistic = measure_metrics(rows, with_companions(asked))
    replicates = intervals.replicate([statistic], progress)[statistic]
    estimates = intervals.metrics(rows, asked, statistic, replicates, n=n)
    return dict(zip(metrics, map(_explained, estimates), strict=True))


def _explained(estimate: Estimate) -> Estimate:
    if estimate.interval is None or estimate.low <= estimate.value <= estimate.high:
        return estimate
    reason = "the value lies outside its percentile interval: resampling adds to the bias of binned errors"
    return replace(estimate, reason=reason)
