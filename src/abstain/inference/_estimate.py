"""What every number carries, and where its interval comes from: measures weighed many times.

Measures that are weighed together share their weights, so that any two of them can be compared vector by vector.
The percentile interval of the bootstrap is that of the replicates in which the metric is defined.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from abstain import _validate
from abstain.errors import DataError
from abstain.tally import Batch

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from abstain.inference._weights import Draws, Weights
    from abstain.tally import Measure

    Floats = NDArray[np.float64]
    Progress = Callable[[int], None]

__all__ = ["Band", "Estimate", "band", "estimates", "replicates", "with_percentile"]

METHOD = "cluster bootstrap, percentile interval"


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number with its interval.

    Attributes:
        value: the point estimate; NaN when undefined, and then `reason` says why.
        low: lower end of the interval; NaN when there is none.
        high: upper end of the interval; NaN when there is none.
        level: confidence level of the interval.
        se: standard error; NaN when there is none.
        method: how the interval was made, in words that can be printed; "none" where there is none.
        n: how many items were judged.
        clusters: how many clusters they come from.
        degrees: degrees of freedom of the t distribution behind the interval; 0 where it has none.
        resamples: how many resamples were drawn.
        drop_rate: share of resamples in which the metric was undefined.
        seed: the seed of the draws.
        percentile: the percentile interval of the bootstrap, whatever `low` and `high` are; None without resamples.
        bounds: the value if all items that were left out had gone wrong, and if all had gone right; None where hardly
            any was left out.
        reason: why the value is undefined or must not be trusted; empty when there is nothing to say.

    >>> print(Estimate(0.1342, 0.0941, 0.1759))
    0.134 [0.094, 0.176]
    >>> print(Estimate(math.nan, reason="coverage 0.9 cannot be reached"))
    undefined (coverage 0.9 cannot be reached)
    >>> f"{Estimate(0.1342, 0.0941, 0.1759):.2f}"
    '0.13 [0.09, 0.18]'
    """

    value: float
    low: float = math.nan
    high: float = math.nan
    level: float = 0.95
    se: float = math.nan
    method: str = "none"
    n: int = 0
    clusters: int = 0
    degrees: float = 0.0
    resamples: int = 0
    drop_rate: float = 0.0
    seed: int | None = None
    percentile: tuple[float, float] | None = None
    bounds: tuple[float, float] | None = None
    reason: str = ""

    @property
    def defined(self) -> bool:
        """True unless the value is NaN."""
        return not math.isnan(self.value)

    @property
    def interval(self) -> tuple[float, float] | None:
        """The ends of the interval, or None when there is none."""
        return None if math.isnan(self.low) or math.isnan(self.high) else (self.low, self.high)

    def __float__(self) -> float:
        return self.value

    def __str__(self) -> str:
        return format(self, ".3f")

    def __format__(self, specification: str) -> str:
        specification = specification or ".3f"
        if not self.defined:
            return f"undefined ({self.reason})" if self.reason else "undefined"
        value = format(self.value, specification)
        if self.interval is None:
            return value
        return f"{value} [{format(self.low, specification)}, {format(self.high, specification)}]"


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


def with_percentile(difference: Estimate, replicated: Floats, draws: Draws) -> Estimate:
    """Return a difference with the bootstrap's percentile interval beside its own."""
    value, level = np.array([difference.value]), difference.level
    beside = estimates(value, replicated.reshape(-1, 1), draws, n=difference.n, level=level)[0]
    return replace(
        difference,
        resamples=draws.resamples,
        seed=draws.seed,
        drop_rate=beside.drop_rate,
        percentile=beside.percentile,
    )


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


@dataclass(frozen=True, eq=False, slots=True)
class Band:
    """Pointwise intervals: each holds for its own column, not for all of them at once."""

    low: Floats
    high: Floats


def band(measure: Measure, draws: Draws, *, level: float = 0.95, progress: Progress | None = None) -> Band:
    """Return the percentile interval of every column of a measure; NaN where there are no resamples.

    It is the one that `estimates` gives, to seven digits: replicates are kept in single precision, which is plenty
    for a picture, and is what makes hundreds of columns cost as much as a few.

    A replicate that is NaN is dropped; with fewer than two left the interval is the point itself.
    """
    level = _validate.level(level)
    columns = len(measure.names)
    if not draws.resamples or not columns:
        return Band(np.full(columns, np.nan), np.full(columns, np.nan))
    values = np.empty((columns, draws.resamples), np.float32)
    done = 0
    for weights in draws.batches(measure.width):
        values[:, done : done + len(weights)] = measure(weights).T
        done += len(weights)
        if progress is not None:
            progress(len(weights))
    gaps = np.flatnonzero(np.isnan(values).any(axis=1))
    incomplete = {int(column): values[column][~np.isnan(values[column])] for column in gaps}
    share = (1.0 - level) / 2.0
    low, high = _lower(values, share), -_lower(np.negative(values, out=values), share)
    point = measure.points if len(gaps) else np.empty(0)
    for column, kept in incomplete.items():
        ends = np.quantile(kept, [share, 1.0 - share]) if len(kept) >= 2 else (point[column], point[column])
        low[column], high[column] = ends
    return Band(low, high)


def _lower(values: NDArray[np.float32], share: float) -> Floats:
    """The quantile at a share below one half, straight between order statistics; reorders each row in place."""
    position = share * (values.shape[1] - 1)
    below = int(position)
    # One place is cheap to find, several are not; the next one up is the least of all that lie above.
    values.partition(below, axis=1)
    found = values[:, below].astype(np.float64)
    if below + 1 < values.shape[1]:
        found = found + (position - below) * (values[:, below + 1 :].min(axis=1) - found)
    return found
