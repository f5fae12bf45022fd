"""The exact binomial interval of a share, scaled to clusters where rows are not independent, and a verdict on it.

Without clusters and weights it is the interval of Clopper and Pearson, which holds its level for every number
of rows. With them, the rows count as fewer: as many as show the variance that the clusters show (Korn and
Graubard), never more than there are. Where every row agrees, a cluster counts as one. It needs no resamples.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from abstain import _validate
from abstain.errors import ArgumentError
from abstain.inference._estimate import Estimate
from abstain.inference._verdict import beyond
from abstain.metrics.reliability import clopper_pearson, effective_counts

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

__all__ = ["CoverageVerdict", "Trials", "binomial_interval", "coverage_verdict"]

COVERED, UNDER_COVERED, UNDECIDED = "covered", "under-covered", "undecided"


@dataclass(frozen=True, slots=True)
class Trials:
    """A share as binomial trials: how many there are in effect, and from how many rows and clusters.

    Attributes:
        share: the share of successes.
        effective: the number of independent trials that it is worth; 0 when that cannot be said.
        rows: how many rows there are.
        clusters: how many clusters they belong to.
    """

    share: float
    effective: float
    rows: int
    clusters: int

    @classmethod
    def of_rows(
        cls,
        hit: NDArray[np.bool_],
        weight: Floats | None = None,
        cluster: NDArray[np.intp] | None = None,
        *,
        level: float = 0.95,
    ) -> Trials:
        """Count the trials of rows that are hit or not; rows that are weighted are clusters of their own.

        Args:
            hit: which rows are hits.
            weight: one number per row; rows that differ in weight are worth fewer.
            cluster: numbers from 0, which may leave some out.
            level: the confidence level for which the trials are counted.
        """
        rows = len(hit)
        if weight is None and (cluster is None or len(np.unique(cluster)) == rows):
            return cls(int(np.count_nonzero(hit)) / rows if rows else math.nan, float(rows), rows, rows)
        counted = np.arange(rows) if weight is None else np.flatnonzero(weight)
        if not len(counted):
            return cls(math.nan, 0.0, rows, 0)
        mass = np.ones(rows) if weight is None else weight[counted] / weight.max()
        index = (np.arange(rows) if cluster is None else cluster)[counted]
        clusters = len(np.unique(index))
        # Weights are scaled to sum to Kish's number of rows, which does not depend on their unit.
        mass = mass * (mass.sum() / (mass**2).sum())
        happened = hit[counted].astype(np.float64)
        count = mass.sum(keepdims=True)
        # Summed in the order of the weights themselves, a part of them never exceeds the whole by rounding.
        share = (mass * happened).sum(keepdims=True) / count
        one_bin = np.zeros(len(counted), np.intp)
        worth = effective_counts(one_bin, index, mass, happened, count, share, level)
        return cls(float(share[0]), float(worth[0]) if clusters > 1 else 0.0, rows, clusters)


@dataclass(frozen=True, slots=True)
class CoverageVerdict:
    """Whether a nominal coverage is reached, as far as the data can say.

    Attributes:
        verdict: "covered" (the whole interval is at or above the nominal level), "under-covered" (the whole
            interval is below it) or "undecided".
        nominal: the level that was claimed.
        margin: how far below the nominal level still counts as covered.
        estimate: the coverage with its exact binomial interval.
        p_under: how likely so few covered rows would be if coverage were nominal.
        p_over: how likely so many covered rows would be if coverage were nominal.
        reason: the verdict in a sentence.
    """

    verdict: str
    nominal: float
    margin: float
    estimate: Estimate
    p_under: float
    p_over: float
    reason: str

    @property
    def plausible(self) -> bool:
        """True when the nominal level itself lies within the interval."""
        interval = self.estimate.interval
        return interval is not None and interval[0] <= self.nominal <= interval[1]

    def __str__(self) -> str:
        return self.verdict


def binomial_interval(trials: Trials, *, level: float = 0.95) -> Estimate:
    """Return the share with its exact (Clopper-Pearson) interval.

    >>> print(binomial_interval(Trials(share=0.9, effective=10, rows=10, clusters=10)))
    0.900 [0.555, 0.997]
    """
    level = _validate.level(level)
    method = "exact binomial"
    if trials.effective != trials.rows:
        method += f", worth {trials.effective:.4g} independent rows"
    about = {"level": level, "n": trials.rows, "clusters": trials.clusters}
    if math.isnan(trials.share) or trials.effective <= 0.0:
        reason = "there is no row" if math.isnan(trials.share) else "one cluster alone shows no variance"
        return Estimate(trials.share, method="none", reason=reason, **about)  # type: ignore[arg-type]
    hits, count = np.array([trials.share * trials.effective]), np.array([trials.effective])
    low, high = (float(end[0]) for end in clopper_pearson(hits, count, level))
    error = math.sqrt(trials.share * (1.0 - trials.share) / trials.effective)
    return Estimate(trials.share, low, high, se=error, method=method, **about)  # type: ignore[arg-type]


def coverage_verdict(
    trials: Trials, nominal: float, *, margin: float = 0.0, level: float = 0.95
) -> CoverageVerdict:
    """Say whether a coverage reaches its nominal level: covered, under-covered or undecided.

    Args:
        trials: the covered rows.
        nominal: the level that was claimed.
        margin: how far below the nominal level still counts as covered, at least 0.
        level: confidence level of the interval that decides.

    >>> few, many = Trials(0.8, 10, 10, 10), Trials(0.8, 1000, 1000, 1000)
    >>> coverage_verdict(few, 0.9).verdict, coverage_verdict(many, 0.9).verdict
    ('undecided', 'under-covered')
    """
    from scipy.special import betainc  # noqa: PLC0415

    nominal = _validate.level(nominal, "nominal")
    margin = _validate.real(margin, "margin")
    if not 0.0 <= margin < nominal:
        raise ArgumentError(
            f"margin must be at least 0 and below the nominal level {nominal:g}, got {margin:g}"
        )
    estimate = binomial_interval(trials, level=level)
    if estimate.interval is None:
        return CoverageVerdict(UNDECIDED, nominal, margin, estimate, math.nan, math.nan, estimate.reason)
    hits, misses = trials.share * trials.effective, (1.0 - trials.share) * trials.effective
    p_under = float(betainc(misses, hits + 1.0, 1.0 - nominal)) if trials.share < 1.0 else 1.0
    p_over = float(betainc(hits, misses + 1.0, nominal)) if trials.share > 0.0 else 1.0
    bar = f"{nominal:g}" if not margin else f"{nominal:g} - {margin:g}"
    short = beyond(estimate, nominal - margin, upwards=False)
    if short:
        verdict, reason = UNDER_COVERED, f"the whole interval is below {bar}"
    elif short is False:
        verdict, reason = COVERED, f"the whole interval is at or above {bar}"
    else:
        verdict, reason = UNDECIDED, f"{bar} lies within the interval: plausible, not shown"
    return CoverageVerdict(verdict, nominal, margin, estimate, p_under, p_over, reason)
