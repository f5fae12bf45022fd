"""What every number carries: its interval, how it was made, and why it is undefined when it is."""

from __future__ import annotations

import math
from dataclasses import dataclass

__all__ = ["Estimate"]


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
    degrees: int = 0
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
        value = _written(self.value, specification)
        if self.interval is None:
            return value
        return f"{value} [{_written(self.low, specification)}, {_written(self.high, specification)}]"


def _written(number: float, specification: str) -> str:
    """A number as text; what rounds to nothing has no sign."""
    text = format(number, specification)
    nothing = math.isfinite(number) and not any(digit in "123456789" for digit in text)
    return text.removeprefix("-") if nothing else text
