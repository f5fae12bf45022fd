"""Estimates with intervals, and the replicates that the intervals come from.

Statistics that are evaluated together have the same weights, so that any two of them can be compared vector by vector.
The bootstrap intervals, percentile and BCa, come from the replicates in which the metric is defined.
"""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from abstain import _validate
from abstain.errors import DataError
from abstain.inference._threads import for_each, threads
from abstain.resampling import StopFlag, kernel

if TYPE_CHECKING:
    from collections.abc import Sequence

    from abstain._types import Floats, Progress
    from abstain.inference._weights import BootstrapWeights, JackknifeWeights
    from abstain.resampling import Statistic, WeightBatch


JACKKNIFE, PERCENTILE, BCA, NONE = INTERVALS = ("jackknife", "percentile", "bca", "none")
# Smaller relative differences are rounding errors.
_NOISE = 1e-12
# Starting a thread takes longer than less work than this; the unit is that of the width of statistics.
_WORTH_A_THREAD = 1 << 17
METHODS = {PERCENTILE: "cluster bootstrap, percentile interval", BCA: "cluster bootstrap, BCa interval"}


@dataclass(frozen=True, eq=False, slots=True)
class Drawn:
    """The replicates of a bootstrap, from which intervals at any level and p-values are read.

    Attributes:
        values: the replicates in which the metric is defined.
        bias: the distance of the median of the replicates from the value, in standard deviations; 0 for percentile
            ends.
        acceleration: how fast the standard error changes with the value; 0 for percentile ends.
    """

    values: Floats = field(repr=False)
    bias: float = 0.0
    acceleration: float = 0.0

    @classmethod
    def corrected(cls, values: Floats, value: float, left_out: Floats) -> Drawn:
        """Return replicates with the corrections of BCa, from the value and those without each cluster.

        Reference: Efron, "Better Bootstrap Confidence Intervals", 1987.
        """
        from scipy.special import ndtri  # noqa: PLC0415

        proportion = _proportion_below(values, value)
        finite = left_out[np.isfinite(left_out)]
        away = finite.mean() - finite if len(finite) else np.zeros(1)
        spread = float((away**2).sum()) ** 1.5
        acceleration = float((away**3).sum()) / (6.0 * spread) if spread > 0.0 else 0.0
        least = 0.5 / len(values)
        return cls(values, float(ndtri(min(max(proportion, least), 1.0 - least))), acceleration)

    def ends(self, level: float) -> tuple[float, float]:
        """Return the interval at a level."""
        proportions = [self._proportion((1.0 - level) / 2.0), self._proportion((1.0 + level) / 2.0)]
        # Interpolation between infinite replicates is impossible.
        interpolated = np.isfinite(self.values).all()
        low, high = np.quantile(
            self.values, proportions, method="linear" if interpolated else "inverted_cdf"
        ).tolist()
        return low, high

    def _proportion(self, nominal: float) -> float:
        """Return the proportion of replicates below an end, from its nominal proportion."""
        if not self.bias and not self.acceleration:
            return nominal
        from scipy.special import ndtr, ndtri  # noqa: PLC0415

        moved = self.bias + float(ndtri(nominal))
        return float(ndtr(self.bias + moved / (1.0 - self.acceleration * moved)))

    def p_value(self, bound: float) -> float:
        """Return the smallest ``1 - level`` whose interval excludes the bound."""
        from scipy.special import ndtr, ndtri  # noqa: PLC0415

        count = len(self.values)
        proportion = _proportion_below(self.values, bound)
        moved = float(ndtri(min(max(proportion, 1.0 / (count + 1)), count / (count + 1)))) - self.bias
        tail = float(ndtr(moved / (1.0 + self.acceleration * moved) - self.bias))
        return 2.0 * min(tail, 1.0 - tail)


def _proportion_below(values: Floats, bound: float) -> float:
    """Return the proportion of values below a bound; those that are equal within rounding count half."""
    equal = np.isclose(values, bound, rtol=_NOISE, atol=0.0)
    return float(((values < bound) & ~equal).sum() + 0.5 * equal.sum()) / len(values)


# The number of decimals that was set for the whole process; None for as many as a number needs.
_set_decimals: int | None = None
_FEWEST_DECIMALS, _MOST_DECIMALS = 3, 9


def set_digits(count: int | None) -> None:
    """Set the number of decimals of printed numbers in this process; None for as many as each number needs.

    >>> set_digits(2)
    >>> print(Estimate(0.1342, 0.0941, 0.1759))
    0.13 [0.09, 0.18]
    >>> set_digits(None)
    """
    global _set_decimals  # noqa: PLW0603
    _set_decimals = None if count is None else _validate.whole(count, "digits", most=_MOST_DECIMALS)


def number_text(value: float, half_width: float = math.nan) -> str:
    """Return a number with at least three decimals, and more until the half-width of its interval shows two digits.

    Without an interval, until the number itself shows two digits.

    >>> number_text(0.0066512, 0.0009), number_text(0.0066512), number_text(-0.00001, 0.01), number_text(12.5)
    ('0.00665', '0.0067', '0.000', '12.500')
    """
    shown = abs(value) if math.isnan(half_width) else half_width
    decimals = _set_decimals
    if decimals is None:
        decimals = _FEWEST_DECIMALS
        if 0.0 < shown < math.inf:
            decimals = min(max(1 - math.floor(math.log10(shown)), _FEWEST_DECIMALS), _MOST_DECIMALS)
    return f"{value:z.{decimals}f}"


class DifferenceRange(NamedTuple):
    """How large a difference can be, for intervals of differences that no cluster changes.

    Attributes:
        largest: the largest absolute value that the difference can have in this sample; NaN if it is unknown.
        clusters: the effective number of clusters, each as large as the largest; None for the number of clusters.
        most: the largest absolute value in any sample, which limits every interval.
    """

    largest: float
    clusters: float | None = None
    most: float = math.inf


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number with its interval.

    Attributes:
        value: the point estimate; NaN if it is undefined, and then `reason` is the reason.
        low: lower end of the interval; NaN if there is none.
        high: upper end of the interval; NaN if there is none.
        level: confidence level of the interval.
        se: standard error; NaN if there is none.
        method: the method of the interval, in words; "none" without an interval.
        n: number of evaluated items.
        clusters: number of clusters that they come from.
        degrees: degrees of freedom of the t distribution behind the interval; 0 without one.
        resamples: number of bootstrap resamples.
        drop_rate: proportion of resamples in which the metric was undefined.
        seed: the seed of the resamples.
        percentile: the percentile interval of the bootstrap, whatever `low` and `high` are; None without resamples.
        drawn: the replicates of a bootstrap interval; None for other intervals.
        margin_se: for a difference, the standard error against a margin; NaN if there is none.
        range: for a difference, how large it can be; None if that is unknown.
        over_steps: True if the interval spans several steps of a curve, because the value could fall on each of them.
        bounds: the value if all items that were not evaluated were wrong, and if all were right; None if there are
            hardly any.
        reason: why the value is undefined or not reliable; empty otherwise.

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
    drawn: Drawn | None = field(default=None, repr=False, compare=False)
    margin_se: float = field(default=math.nan, repr=False, compare=False)
    range: DifferenceRange | None = field(default=None, repr=False, compare=False)
    over_steps: bool = field(default=False, repr=False, compare=False)
    bounds: tuple[float, float] | None = None
    reason: str = ""

    @property
    def defined(self) -> bool:
        """True unless the value is NaN."""
        return not math.isnan(self.value)

    def without_interval(self, reason: str) -> Estimate:
        """Return the value without an interval, with the reason."""
        return replace(self, low=math.nan, high=math.nan, se=math.nan, method="none", reason=reason)

    @property
    def interval(self) -> tuple[float, float] | None:
        """The ends of the interval, or None without one."""
        return None if math.isnan(self.low) or math.isnan(self.high) else (self.low, self.high)

    @property
    def turned(self) -> Estimate:
        """The same difference with the opposite sign."""
        return replace(self, value=0.0 - self.value, low=0.0 - self.high, high=0.0 - self.low)

    def __float__(self) -> float:
        return self.value

    def __str__(self) -> str:
        return format(self, "")

    def __repr__(self) -> str:
        return f"Estimate({self})"

    def __format__(self, specification: str) -> str:
        if not self.defined:
            return f"undefined ({self.reason})" if self.reason else "undefined"
        numbers = [self.value] if self.interval is None else [self.value, self.low, self.high]
        texts = [format(number, specification) for number in numbers] if specification else self.texts
        return texts[0] if len(texts) == 1 else f"{texts[0]} [{texts[1]}, {texts[2]}]"

    @property
    def texts(self) -> list[str]:
        """The value and, if there is an interval, its ends, all with the same number of decimals."""
        if self.interval is None:
            return [number_text(self.value)]
        half_width = (self.high - self.low) / 2.0
        return [number_text(number, half_width) for number in (self.value, self.low, self.high)]


def replicates(
    statistics: Sequence[Statistic],
    weights: BootstrapWeights | JackknifeWeights,
    progress: Progress | None = None,
) -> list[Floats]:
    """Evaluate every statistic with the same weights; one array (vectors, metrics) per statistic.

    Args:
        statistics: statistics over the same clusters.
        weights: the weights.
        progress: called with the number of weight vectors done since the last call.
    """
    if weights.vectors and any(each.units != weights.units for each in statistics):
        raise DataError("statistics that are evaluated together must have the same clusters")
    _settle_heap()
    # The values of each metric are contiguous.
    values = [np.empty((len(each.names), weights.vectors)).T for each in statistics]
    width, stop = max((each.width for each in statistics), default=1), StopFlag()
    # Even one worker thread helps: the waiting main thread receives an interrupt at once.
    workers = threads() if kernel().compiled and weights.vectors * width > _WORTH_A_THREAD else 0
    batches, reporting = weights.batches(width, stop, shared=workers > 1), threading.Lock()

    def evaluate(batch: WeightBatch) -> None:
        for replicated, statistic in zip(values, statistics, strict=True):
            replicated[batch.places] = statistic(batch)
        batch.done()
        if progress is not None:
            with reporting:
                progress(len(batch))

    if workers:
        for_each(batches, evaluate, stop, workers=workers)
    else:
        for batch in batches:
            evaluate(batch)
    return values


def with_draws(
    estimate: Estimate,
    replicated: Floats,
    bootstrap_weights: BootstrapWeights,
    interval: str = JACKKNIFE,
    left_out: Floats | None = None,
) -> Estimate:
    """Return an estimate with the bootstrap's percentile interval in addition to its own, or instead of it.

    Replicates that are NaN are dropped. If fewer than two remain, the interval is the point itself. Without resamples,
    or if the value is undefined, there is none. The jackknife keeps its interval. BCa needs the values without each
    cluster (`left_out`).
    """
    if not bootstrap_weights.resamples:
        return estimate
    undefined = np.isnan(replicated)
    kept = replicated[~undefined] if undefined.any() else np.ascontiguousarray(replicated)
    dropped = 1.0 - len(kept) / bootstrap_weights.resamples if estimate.defined else 1.0
    estimate = replace(
        estimate, resamples=bootstrap_weights.resamples, seed=bootstrap_weights.seed, drop_rate=dropped
    )
    if not estimate.defined:
        return estimate
    drawn = Drawn(kept if len(kept) >= 2 else np.array([estimate.value]))
    low, high = drawn.ends(estimate.level)
    estimate = replace(estimate, percentile=(low, high))
    # A difference that is the same in every resample keeps its exact bound, because it is still uncertain.
    if interval not in METHODS or (estimate.interval is not None and low == high == estimate.value):
        return estimate
    if interval == BCA and left_out is not None:
        drawn = Drawn.corrected(drawn.values, estimate.value, left_out)
        low, high = drawn.ends(estimate.level)
    finite = len(kept) >= 2 and np.isfinite(kept).all()
    se = float(np.std(kept, ddof=1)) if finite else math.nan
    return replace(
        estimate, low=low, high=high, se=se, drawn=drawn, degrees=0.0, method=METHODS[interval], reason=""
    )


def _settle_heap() -> None:
    # Arrays of a batch are freed and allocated again thousands of times. After one large block was allocated and freed,
    # the C library of Linux keeps such memory instead of returning it to the kernel each time.
    np.empty((1 << 22) - 4096)
