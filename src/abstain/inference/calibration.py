"""Calibration figures with their intervals, from outcomes and confidences in arrays.

The plans of all figures are weighed with the same draws of clusters. What the figures mean is said in
`abstain.metrics.calibration`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from abstain import _validate
from abstain.errors import ArgumentError
from abstain.inference._bootstrap import estimates, points, replicates
from abstain.inference._draws import Draws
from abstain.metrics.calibration import calibration_plan

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import ArrayLike

    from abstain.inference._estimate import Estimate

__all__ = ["calibration_estimates"]

FIGURES = ("expected_calibration_error", "brier_score", "negative_log_likelihood")
_KNOWN = (*FIGURES, "smooth_calibration_error")


def calibration_estimates(
    y_true: ArrayLike,
    confidence: ArrayLike,
    *,
    clusters: ArrayLike | None = None,
    figures: Sequence[str] = FIGURES,
    bins: int = 15,
    strategy: str = "uniform",
    norm: float | str = 1,
    debiased: bool = False,
    resamples: int = 10_000,
    seed: int = 42,
    level: float = 0.95,
    weights: ArrayLike | None = None,
    progress: Callable[[int], None] | None = None,
) -> dict[str, Estimate]:
    """Return calibration figures with cluster-bootstrap intervals, by name.

    A binned error is biased upwards, and a resample, which repeats rows, is biased further: its percentile
    interval can lie above the value. Where it does, the estimate's reason says so; the debiased error suffers
    less.

    Args:
        y_true: 1 where the row came true, else 0.
        confidence: the stated probability, in [0, 1].
        clusters: ids of what belongs together; each row is a cluster of its own when left out.
        figures: "expected_calibration_error", "smooth_calibration_error", "brier_score",
            "negative_log_likelihood".
        bins: how many bins the calibration error has.
        strategy: "uniform" or "quantile"; equal-mass bins are formed anew in every resample.
        norm: 1, 2 or "max".
        debiased: take the bias of small bins off.
        resamples: how many times the clusters are drawn; 0 for no intervals.
        seed: the same seed gives the same intervals.
        level: confidence level of the intervals.
        weights: multiplicities.
        progress: called with the number of resamples done since the last call.

    >>> found = calibration_estimates([1, 1, 0, 1, 0, 1], [0.9, 0.8, 0.3, 0.7, 0.4, 0.6], resamples=200)
    >>> print(found["brier_score"])
    0.092 [0.048, 0.137]
    """
    if not figures:
        raise ArgumentError(f"figures is empty; known: {', '.join(_KNOWN)}")
    for name in figures:
        _validate.choice(name, "figure", _KNOWN)
    settings: dict[str, dict[str, Any]] = {
        "expected_calibration_error": {"bins": bins, "strategy": strategy, "norm": norm, "debiased": debiased}
    }
    plans = {
        name: calibration_plan(
            name, y_true, confidence, clusters=clusters, weights=weights, **settings.get(name, {})
        )
        for name in figures
    }
    some = next(iter(plans.values()))
    draws = Draws(some.clusters, resamples, seed)
    replicated = replicates(list(plans.values()), draws, progress)
    rows = len(np.asarray(y_true))
    return {
        name: _explained(estimates(points(plan), values, draws, n=rows, level=level)[0])
        for (name, plan), values in zip(plans.items(), replicated, strict=True)
    }


def _explained(estimate: Estimate) -> Estimate:
    if estimate.interval is None or estimate.low <= estimate.value <= estimate.high:
        return estimate
    reason = "the value lies outside its percentile interval: resampling adds to the bias of binned errors"
    return replace(estimate, reason=reason)
