"""Reliability curves: accuracy against confidence, bin by bin, with counts and exact binomial intervals.

Bins are those of `abstain.metrics.calibration`: left-closed, the last closed, empty ones kept with count 0.
The interval of a bin is Clopper and Pearson's for its accuracy (`_clopper_pearson`). Rows of one cluster are not
independent, so with clusters it is Clopper and Pearson's for the number of independent rows that would be as
informative (`_effective_counts`). Errors over bins are computed elsewhere.
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
    """The bins of a reliability diagram; an empty bin has count 0 and NaN for everything that it cannot know.

    Attributes:
        edges: the ends of the bins, one more than there are bins.
        count: rows in each bin, weights counted.
        confidence: mean confidence of each bin.
        accuracy: share of each bin that came true.
        low: lower end of the interval for the accuracy.
        high: upper end of the interval for the accuracy.
        effective_count: how many independent rows would be as informative; `count` without clusters.
        level: confidence level of the intervals.
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
        """Accuracy less confidence: negative where the bin is overconfident."""
        return self.accuracy - self.confidence

    def to_frame(self, *, backend: str | None = None) -> Any:
        """Return the bins as a data frame with one row each, from their left to their right edge.

        Args:
            backend: "pandas", "polars" or "pyarrow"; the first of these that is installed when left out.
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
    """Return accuracy against confidence by bin, with Clopper-Pearson intervals.

    With clusters, the ``n`` rows of a bin are replaced by ``n / D * (t_{n-1} / t_{m-1})^2``, at most ``n``,
    where ``D`` is the design effect (the variance of the accuracy between the ``m`` clusters of the bin, over
    that of independent rows) and ``t`` the quantiles of Student's t. Where a design effect cannot be known
    (all rows of a bin agree, or one cluster fills it) only its clusters count. References: Clopper and
    Pearson, "The use of confidence or fiducial limits illustrated in the case of the binomial", 1934; Korn
    and Graubard, "Confidence intervals for proportions with small expected number of positive counts
    estimated from survey data", 1998.

    Args:
        y_true: 1 where the row came true, else 0.
        confidence: the stated probability, in [0, 1].
        bins: how many bins.
        strategy: "uniform" for equal widths, "quantile" for equal mass.
        cluster: ids of what belongs together; rows are independent when left out.
        level: confidence level of the intervals.
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
    count, happened, stated = rows.in_units(None).sum_by(bin_, bins, rows.correct, rows.confidence).sums
    accuracy, mean = ratio(happened, count), ratio(stated, count)
    effective = count
    if cluster is not None:
        kept = weight > 0
        rows_of_bins = (bin_[kept], rows.cluster[kept], weight[kept], rows.correct[kept])
        effective = _effective_counts(*rows_of_bins, count, accuracy, level)
    low, high = _clopper_pearson(accuracy * effective, effective, level)
    return ReliabilityCurve(edges, count, mean, accuracy, low, high, effective, level)


def _effective_counts(
    bin_: Indices,
    cluster: Indices,
    weight: Floats,
    outcome: Floats,
    count: Floats,
    accuracy: Floats,
    level: float,
) -> Floats:
    """Return how many independent rows each bin is worth, at most the rows it holds."""
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
    # Clusters may also agree by chance less than single rows would; that is no ground for a narrower
    # interval.
    effective[defined] = n / np.maximum(design, 1.0) * np.minimum(students, 1.0)
    return effective


def _clopper_pearson(happened: Floats, count: Floats, level: float) -> tuple[Floats, Floats]:
    """Return the ends of the interval for each share of `happened` in `count`; NaN where there is no row."""
    from scipy.special import betaincinv  # noqa: PLC0415

    tail = (1.0 - level) / 2.0
    low, high = np.full(len(count), np.nan), np.full(len(count), np.nan)
    held = count > 0
    yes, no = happened[held], count[held] - happened[held]
    low[held] = np.where(yes > 0, betaincinv(np.maximum(yes, 1e-300), no + 1.0, tail), 0.0)
    high[held] = np.where(no > 0, betaincinv(yes + 1.0, np.maximum(no, 1e-300), 1.0 - tail), 1.0)
    return low, high
