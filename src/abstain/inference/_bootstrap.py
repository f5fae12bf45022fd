"""Measures weighed many times, and the percentile interval of the cluster bootstrap.

Measures that are weighed together share their weights, so that any two of them can be compared vector by vector.
The interval is the percentile interval of the replicates in which the metric is defined.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from abstain import _validate
from abstain.errors import DataError
from abstain.inference._estimate import Estimate
from abstain.tally import Batch

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from abstain.inference._weights import Draws, Weights
    from abstain.tally import Measure

    Floats = NDArray[np.float64]
    Progress = Callable[[int], None]

__all__ = ["estimates", "replicates"]

METHOD = "cluster bootstrap, percentile interval"


def replicates(
    measures: Sequence[Measure], source: Weights, progress: Progress | None = None
) -> list[Floats]:
    """Weigh every measure with the same weights; one array (vectors, metrics) per measure.

    Args:
        measures: measures over the same clusters.
        source: the weights.
        progress: called with the number of weight vectors done since the last call.
    """
    if source.vectors and any(measure.units != source.clusters for measure in measures):
        raise DataError("measures that are weighed together must have the same clusters")
    _settle_heap()
    values = [np.empty((source.vectors, len(measure.names))) for measure in measures]
    done = 0
    for weights in source.batches(max((measure.width for measure in measures), default=1)):
        batch = Batch(weights)
        for found, measure in zip(values, measures, strict=True):
            # A measure that is asked for twice is weighed once.
            found[done : done + len(weights)] = batch.once(
                ("measure", id(measure)),
                lambda measure=measure: measure(batch),  # type: ignore[misc]  # noqa: B023
            )
        done += len(weights)
        if progress is not None:
            progress(len(weights))
    return values


def estimates(
    values: Floats, replicated: Floats, draws: Draws, *, n: int, level: float = 0.95
) -> list[Estimate]:
    """Turn point estimates and their replicates into estimates, one per metric.

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
        ends = None
        if draws.resamples and not math.isnan(value):
            ends = (float(low[column]), float(high[column])) if counts[column] >= 2 else (value, value)
        result.append(
            Estimate(
                value=value,
                low=math.nan if ends is None else ends[0],
                high=math.nan if ends is None else ends[1],
                level=level,
                se=float(spread[column]),
                method=METHOD if draws.resamples else "none",
                n=n,
                clusters=draws.clusters,
                resamples=draws.resamples,
                drop_rate=1.0 if math.isnan(value) and draws.resamples else drop_rate,
                seed=draws.seed,
                percentile=ends,
            )
        )
    return result


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
