"""Calibration metrics with their intervals, from outcomes and confidences in arrays.

All metrics are weighed with the same draws of clusters. What they mean is said in
`abstain.metrics.calibration`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from abstain import _validate
from abstain.errors import ArgumentError
from abstain.inference._estimate import estimates, replicates
from abstain.inference._weights import Draws
from abstain.metrics.calibration import calibration_measure

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
    less. The jackknife interval is made for that bias, see `abstain.metrics.Scale`.

    Args:
        y_true: 1 where the row came true, else 0.
        confidence: the stated probability, in [0, 1].
        cluster: ids of what belongs together; each row is a cluster of its own when left out.
        metrics: "expected_calibration_error", "smooth_calibration_error", "brier_score",
            "negative_log_likelihood".
        bins: how many bins the calibration error has.
        strategy: "uniform" or "quantile"; equal-mass bins are formed anew in every resample.
        norm: 1, 2 or "max".
        debiased: take the bias of small bins off.
        interval: "jackknife" over clusters, "percentile" or "bca" for those of the bootstrap, "none" for none.
        resamples: how many times the clusters are drawn, where a bootstrap interval is asked for.
        seed: the same seed gives the same intervals.
        level: confidence level of the intervals.
        sample_weight: multiplicities.
        progress: called with the number of resamples done since the last call.

    >>> found = calibration_estimates([1, 1, 0, 1, 0, 1], [0.9, 0.8, 0.3, 0.7, 0.4, 0.6], resamples=200)
    >>> print(found["brier_score"])
    0.092 [0.048, 0.137]
    """
    if not metrics:
        raise ArgumentError(f"metrics is empty; known: {', '.join(_KNOWN)}")
    for name in metrics:
        _validate.choice(name, "metric", _KNOWN)
    settings: dict[str, dict[str, Any]] = {
        "expected_calibration_error": {"bins": bins, "strategy": strategy, "norm": norm, "debiased": debiased}
    }
    measures = {
        name: calibration_measure(
            name, y_true, confidence, cluster=cluster, sample_weight=sample_weight, **settings.get(name, {})
        )
        for name in metrics
    }
    some = next(iter(measures.values()))
    draws = Draws(some.units, resamples, seed)
    replicated = replicates(list(measures.values()), draws, progress)
    rows = len(np.asarray(y_true))
    return {
        name: _explained(estimates(measure.points, values, draws, n=rows, level=level)[0])
        for (name, measure), values in zip(measures.items(), replicated, strict=True)
    }


def _explained(estimate: Estimate) -> Estimate:
    if estimate.interval is None or estimate.low <= estimate.value <= estimate.high:
        return estimate
    reason = "the value lies outside its percentile interval: resampling adds to the bias of binned errors"
    return replace(estimate, reason=reason)
