"""Reliability curves: accuracy by bins of confidence, with counts and exact binomial confidence intervals.

Bins are those of `abstain.metrics.calibration`: closed on the left, the last one closed on both sides. Empty bins are
kept with count 0. The interval of a bin is the Clopper-Pearson interval of its accuracy (`_clopper_pearson`). Rows of
one cluster are not independent, so with clusters the interval is computed for the effective number of independent rows
(`_effective_counts`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from abstain import _validate
from abstain._export import frame_of, nullable
from abstain.metrics._calibration_errors import STRATEGIES, row_bins
from abstain.metrics._columns import Columns, ratio
from abstain.resampling import keys_of_pairs, total_by

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from abstain._types import Floats, Indices


__all__ = ["ReliabilityCurve", "reliability_curve", "row_bins"]


@dataclass(frozen=True, eq=False, slots=True)
class ReliabilityCurve:
    """The bins of a reliability diagram; an empty bin has count 0 and NaN for all other values.

    Attributes:
        edges: the edges of the bins, one more than there are bins.
        count: the weight of the rows in each bin.
        confidence: the mean confidence of each bin.
        accuracy: the proportion of rows in each bin whose outcome is 1.
        low: the lower end of the confidence interval of the accuracy.
        high: the upper end of the confidence interval of the accuracy.
        effective_count: the effective number of independent rows; equal to `count` without clusters.
        level: the confidence level of the intervals.
    """

    edges: Floats
    count: Floats
    confidence: Floats
    accuracy: Floats
    low: Floats
    high: Floats
    effective_count: Floats
    level: float

    def __repr__(self) -> str:
        return f"ReliabilityCurve({len(self.count)} bins)"

    def __len__(self) -> int:
        return len(self.count)

    @property
    def gap(self) -> Floats:
        """Accuracy minus confidence; negative if the bin is overconfident."""
        return self.accuracy - self.confidence

    def to_frame(self, *, backend: str | None = None) -> Any:
        """Return the bins as a data frame with one row each.

        Args:
            backend: "pandas", "polars" or "pyarrow". Default: the first of these that is installed.
        """
        columns = {"left": self.edges[:-1], "right": self.edges[1:]}
        for name in ("count", "confidence", "accuracy", "low", "high", "effective_count"):
            columns[name] = getattr(self, name)
        return frame_of({name: nullable(column) for name, column in columns.items()}, backend)


def reliability_curve(
    y_true: ArrayLike,
    confidence: ArrayLike,
    *,
    bins: int = 15,
    strategy: str = "uniform",
    cluster: ArrayLike | None = None,
    level: float = 0.95,
    sample_weight: ArrayLike | None = None,
) -> ReliabilityCurve:
    """Return the accuracy by bins of confidence, with Clopper-Pearson intervals.

    With clusters, the ``n`` rows of a bin are replaced by ``n / D * (t_{n-1} / t_{m-1})^2`` rows, at most ``n``. ``D``
    is the design effect: the variance of the accuracy between the ``m`` clusters of the bin, divided by the variance
    for independent rows. ``t`` denotes quantiles of Student's t. If the design effect is not defined (all outcomes of a
    bin are equal, or the bin has only one cluster), each cluster counts as one row. References: Clopper and Pearson,
    "The use of confidence or fiducial limits illustrated in the case of the binomial", 1934; Korn and Graubard,
    "Confidence intervals for proportions with small expected number of positive counts estimated from survey data",
    1998.

    Args:
        y_true: the outcome, 1 or 0.
        confidence: the stated probability, in [0, 1].
        bins: the number of bins.
        strategy: "uniform" for equal widths, "quantile" for equal mass.
        cluster: cluster ids. Default: all rows are independent.
        level: the confidence level of the intervals.
        sample_weight: multiplicities.

    >>> curve = reliability_curve([1, 0, 1, 1], [0.2, 0.3, 0.8, 0.9], bins=2)
    >>> curve.count, curve.accuracy
    (array([2., 2.]), array([0.5, 1. ]))
    >>> curve.low.round(4), curve.high.round(4)
    (array([0.0126, 0.1581]), array([0.9874, 1.    ]))
    """
    bins = _validate.whole(bins, "bins", least=1)
    _validate.choice(strategy, "strategy", STRATEGIES)
    level = _validate.level(level)
    rows = Columns.believed(y_true, confidence, sample_weight=sample_weight, cluster=cluster)
    weight = rows.weight
    bin_, edges = row_bins(rows.confidence, weight, bins, strategy)
    sums = rows.in_units(None).sum_by(bin_, bins, rows.correct, rows.confidence).sums
    count, outcome_sum, confidence_sum = sums
    accuracy, mean_confidence = ratio(outcome_sum, count), ratio(confidence_sum, count)
    effective = count
    if cluster is not None:
        counted = weight > 0
        rows_of_bins = (bin_[counted], rows.cluster[counted], weight[counted], rows.correct[counted])
        effective = _effective_counts(*rows_of_bins, count, accuracy, level)
    low, high = _clopper_pearson(accuracy * effective, effective, level)
    return ReliabilityCurve(edges, count, mean_confidence, accuracy, low, high, effective, level)


def _effective_counts(
    bin_: Indices,
    cluster: Indices,
    weight: Floats,
    outcome: Floats,
    count: Floats,
    accuracy: Floats,
    level: float,
) -> Floats:
    """Return the effective number of independent rows of each bin, at most its number of rows."""
    from scipy.special import stdtrit  # noqa: PLC0415

    cell, cell_bin, _ = keys_of_pairs(bin_, cluster)
    cell_count = total_by(cell, weight)
    excess = total_by(cell, weight * outcome) - accuracy[cell_bin] * cell_count
    members = np.bincount(cell_bin, minlength=len(count)).astype(np.float64)
    between = total_by(cell_bin, excess**2, len(count))
    spread = accuracy * (1.0 - accuracy)
    defined = (members > 1) & (spread > 0) & (count > 1)
    effective = np.minimum(count, members)
    n, m = count[defined], members[defined]
    variance = between[defined] / n**2 * m / (m - 1.0)
    design = variance / (spread[defined] / (n - 1.0))
    half = (1.0 + level) / 2.0
    students = (stdtrit(n - 1.0, half) / stdtrit(m - 1.0, half)) ** 2
    # A design effect below 1 is due to chance and must not make the interval narrower.
    effective[defined] = n / np.maximum(design, 1.0) * np.minimum(students, 1.0)
    return effective


def _clopper_pearson(successes: Floats, count: Floats, level: float) -> tuple[Floats, Floats]:
    """Return the ends of the interval of each proportion `successes` / `count`; NaN if there are no rows."""
    from scipy.special import betaincinv  # noqa: PLC0415

    tail = (1.0 - level) / 2.0
    low, high = np.full(len(count), np.nan), np.full(len(count), np.nan)
    filled = count > 0
    yes, no = successes[filled], count[filled] - successes[filled]
    low[filled] = np.where(yes > 0, betaincinv(np.maximum(yes, 1e-300), no + 1.0, tail), 0.0)
    high[filled] = np.where(no > 0, betaincinv(yes + 1.0, np.maximum(no, 1e-300), 1.0 - tail), 1.0)
    return low, high
