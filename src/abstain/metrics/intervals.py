"""Prediction intervals: how often they contain the truth, overall and in parts of the data, and how wide they are.

Intervals are closed, ``low <= y <= high``. They are an array (rows, 2) or, for several nominal coverages at once,
(rows, 2, levels). A metric of (rows, 2) is a float; of (rows, 2, levels) it is an array with one value per level.
Infinite bounds are allowed: their width, and any mean that includes it, is infinite. Crossed bounds, NaN and
inconsistent shapes are errors that name the first such row. ``sample_weight`` contains multiplicities: a weight of 2
counts a row twice.

The statistics are in `abstain.metrics.coverage`. Sets of classes are in `abstain.metrics.sets`, predictive quantiles in
`abstain.metrics.quantiles`, confidence intervals of these metrics and verdicts in `abstain.evaluation.conformal`.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from abstain import _validate
from abstain.errors import ArgumentError, DataError
from abstain.metrics import _conditions as undefined_if
from abstain.metrics import _strata
from abstain.metrics._gauss import hsic_statistic
from abstain.metrics._specification import (
    HIGHER,
    LOWER,
    NEITHER,
    MetricSpecification,
    Parameter,
    Parts,
    specify,
)
from abstain.metrics._strata import (
    CoverageBin,
    GroupCoverage,
    StratifiedCoverage,
    mean_of,
    over_rows,
    per_level,
)
from abstain.metrics.coverage import (
    Strata,
    WorstSlab,
    criterion_statistic,
    means_statistic,
    quantiles_statistic,
)
from abstain.metrics.predictions import IntervalRows, nominal_coverages
from abstain.metrics.scales import WIDTH_CRITERION, Scale, costly_scale, dependence_scale, part_scale
from abstain.resampling import Statistic

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from abstain._types import Floats
    from abstain.metrics._columns import Columns

    Values = float | Floats

__all__ = [
    "CoverageBin",
    "GroupCoverage",
    "StratifiedCoverage",
    "WorstSlab",
    "interval_coverage",
    "interval_coverage_by_group",
    "interval_coverage_gap",
    "interval_coverage_width_criterion",
    "interval_feature_stratified_coverage",
    "interval_hsic",
    "interval_mean_width",
    "interval_size_stratified_coverage",
    "interval_width_quantiles",
    "interval_worst_slab_coverage",
    "weighted_interval_score",
    "winkler_score",
]

# The penalty of the width criterion in the registry for a coverage that differs from the level.
_ETA = 30.0
# Why HSIC is undefined if all intervals have the same width.
ONE_WIDTH = "all intervals have the same width: no information about conditional coverage"
# The number of width strata in the registry.
_BINS = 3


def interval_coverage(
    y_true: ArrayLike, intervals: ArrayLike, *, sample_weight: ArrayLike | None = None
) -> Values:
    """Return the proportion of labels that are in their interval: the mean of ``1(low <= y <= high)``.

    It should be at least the nominal coverage.

    >>> interval_coverage([1, 2, 3, 4], [[0, 1], [0, 1], [3, 5], [4, 4]])
    0.75
    >>> interval_coverage([1], [[[0, 2], [1, 3]]])             # two levels: [0, 1] and [2, 3]
    array([1., 0.])
    """
    rows = IntervalRows.with_truth(y_true, intervals, sample_weight)
    return _strata.means(rows, rows.covered)


def interval_mean_width(intervals: ArrayLike, *, sample_weight: ArrayLike | None = None) -> Values:
    """Return the mean width of the intervals: the mean of ``high - low``; infinite if one interval is infinite.

    >>> interval_mean_width([[0, 1], [2, 5]])
    2.0
    >>> interval_mean_width([[0, 1], [-np.inf, 5]])
    inf
    """
    rows = IntervalRows.checked(intervals, sample_weight)
    return _strata.means(rows, rows.width)


def interval_size_stratified_coverage(
    y_true: ArrayLike, intervals: ArrayLike, *, bins: int = 3, sample_weight: ArrayLike | None = None
) -> StratifiedCoverage:
    """Return the coverage by interval width and, as ``score``, the lowest coverage of a stratum.

    Higher is better. The strata are `bins` chunks of equal size of the rows ranked by width. If the rows do not divide
    evenly, the first chunks have one row more. If rows of the same width belong to two chunks, they are divided
    proportionally, so the order of rows does not matter. Widths that differ only by the rounding of ``high - low`` are
    the same width. If all rows have the same width, the first chunk contains all of them and the others are empty. With
    fractional weights, chunks have equal weight. Reference: Angelopoulos et al., "Uncertainty Sets for Image
    Classifiers using Conformal Prediction", ICLR 2021.

    >>> strata = interval_size_stratified_coverage([1, 1, 1, 9], [[0, 1], [0, 2], [0, 3], [0, 4]], bins=2)
    >>> strata.coverage, strata.counts, strata.score
    (array([1. , 0.5]), array([2, 2]), 0.5)
    >>> strata.bins[1]
    CoverageBin(low=3.0, high=4.0, count=2, coverage=0.5)
    """
    number = _validate.whole(bins, "bins", least=1)
    rows = IntervalRows.with_truth(y_true, intervals, sample_weight)
    return _strata.by_key(rows, rows.ranked_width, number)


def interval_hsic(
    y_true: ArrayLike,
    intervals: ArrayLike,
    *,
    kernel_sizes: tuple[float, float] = (1.0, 1.0),
    raw: bool = False,
    sample_weight: ArrayLike | None = None,
) -> Values:
    """Return the dependence of coverage on interval width (HSIC): ``sqrt(trace(HKHL) / (n - 1)**2)``.

    The Hilbert-Schmidt independence criterion: ``K`` and ``L`` are Gaussian kernels ``exp(-d**2 / size)`` over widths
    and over coverage, and ``H`` centres them. Lower is better: 0 means that coverage does not depend on width. Time and
    memory are linear in the number of rows (after a sort), and the result is within 1e-12 of the definition. Two
    infinite widths are equal; the distance between an infinite and a finite width is infinite. It is NaN for a single
    row, or if all rows have the same width. Reference: Gretton et al., "A Kernel Statistical Test of Independence",
    2007.

    Args:
        y_true: the true values.
        intervals: (rows, 2) or (rows, 2, levels).
        kernel_sizes: the sizes of the kernels over widths and over coverage.
        raw: return ``trace(HKHL)`` itself.
        sample_weight: multiplicities.

    >>> round(interval_hsic([0, 0, 5], [[0, 1], [0, 1], [0, 3]]), 6)
    0.525164
    >>> interval_hsic([0, 5, 0, 5], [[0, 1]] * 4)                    # all widths are equal
    nan
    """
    sizes = _kernel_sizes(kernel_sizes)
    rows = IntervalRows.with_truth(y_true, intervals, sample_weight)
    values = [
        width_hsic_statistic(rows, level, kernel_sizes=sizes, raw=raw).point for level in range(rows.levels)
    ]
    return per_level(rows, values)


def interval_coverage_width_criterion(
    y_true: ArrayLike,
    intervals: ArrayLike,
    *,
    eta: float,
    level: float | Sequence[float],
    sample_weight: ArrayLike | None = None,
) -> Values:
    """Return the coverage width-based criterion, a score that rewards narrow intervals with the nominal coverage.

    ``(1 - width / (max(y) - min(y))) * exp(-eta * (coverage - level)**2)`` of the mean width and the coverage. Higher
    is better. It is -inf if the mean width is infinite. Constant true values are an error, because their range is 0.
    Reference: Khosravi et al., "Comprehensive Review of Neural Network-Based Prediction Intervals", 2011.

    Args:
        y_true: the true values.
        intervals: (rows, 2) or (rows, 2, levels).
        eta: the penalty for a coverage that differs from the level, at least 0.
        level: the nominal coverage, or one for each level of the intervals.
        sample_weight: multiplicities.

    >>> interval_coverage_width_criterion([0, 4], [[0, 1], [3, 4]], eta=30, level=0.999999)
    0.749999...
    """
    penalty = checked_eta(eta)
    rows = IntervalRows.with_truth(y_true, intervals, sample_weight)
    counted = rows.truth[rows.counted]
    if counted.min() == counted.max():
        raise DataError(
            f"y_true is constant ({counted[0]:g} in every row); the width criterion divides by max(y) - min(y)"
        )
    by_nominal = nominal_coverages(level, rows.levels).tolist()
    values = [
        criterion_statistic("cwc", rows.truth, covered, width, rows, eta=penalty, level=nominal).point
        for covered, width, nominal in zip(rows.covered, rows.width, by_nominal, strict=True)
    ]
    return per_level(rows, values)


def winkler_score(
    y_true: ArrayLike,
    intervals: ArrayLike,
    *,
    level: float | Sequence[float],
    sample_weight: ArrayLike | None = None,
) -> Values:
    """Return the mean interval score: the width, plus a penalty for labels outside the interval.

    The mean of ``(high - low) + 2/alpha * ((low - y)+ + (y - high)+)`` with ``alpha = 1 - level``. Lower is better. Its
    expectation is smallest for the true quantiles. Reference: Winkler, "A Decision-Theoretic Approach to Interval
    Estimation", 1972.

    >>> winkler_score([1, 7], [[0, 2], [0, 4]], level=0.5)        # (2 + 4 + 4*3) / 2
    9.0
    """
    rows = IntervalRows.with_truth(y_true, intervals, sample_weight)
    return _strata.means(rows, winkler_losses(rows, nominal_coverages(level, rows.levels)))


def weighted_interval_score(
    y_true: ArrayLike,
    intervals: ArrayLike,
    *,
    level: float | Sequence[float],
    median: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Return the weighted interval score: the weighted mean of the interval scores over all levels.

    With ``K`` levels and the interval score ``IS`` of `winkler_score`, the score of a row is
    ``(|y - median| / 2 + sum of alpha_k / 2 * IS_k) / (K + 1/2)``. Without a median, its term and the 1/2 are omitted.
    Lower is better. Reference: Bracher et al., "Evaluating epidemic forecasts in an interval format", 2021.

    >>> weighted_interval_score([3], [[1, 2]], level=0.5, median=[1.5])     # (1.5/2 + 0.25 * (1 + 4)) / 1.5
    1.3333333333333333
    """
    rows = IntervalRows.with_truth(y_true, intervals, sample_weight)
    center = None if median is None else _validate.finite(median, "median")
    if center is not None:
        _validate.same_length(len(rows.truth), median=center)
    column = weighted_interval_losses(rows, nominal_coverages(level, rows.levels), center)
    return means_statistic(("wis",), (column,), rows).point


def interval_coverage_by_group(
    y_true: ArrayLike, intervals: ArrayLike, groups: ArrayLike, *, sample_weight: ArrayLike | None = None
) -> GroupCoverage:
    """Return the coverage of each group, such as a site or a sex; ``score`` is the lowest coverage.

    >>> by_site = interval_coverage_by_group([1, 2, 3], [[0, 1], [3, 4], [3, 4]], ["a", "b", "b"])
    >>> by_site.groups, by_site.coverage, by_site.score
    (('a', 'b'), array([1. , 0.5]), 0.5)
    """
    return _strata.by_group(IntervalRows.with_truth(y_true, intervals, sample_weight), groups)


def interval_coverage_gap(
    y_true: ArrayLike,
    intervals: ArrayLike,
    groups: ArrayLike | None = None,
    *,
    level: float | Sequence[float],
    sample_weight: ArrayLike | None = None,
) -> Values:
    """Return the mean over groups of ``|coverage - level|``. Default: all rows are one group.

    Lower is better. Reference: Ding et al., "Class-Conditional Conformal Prediction with Many Classes", 2023.

    >>> interval_coverage_gap([1, 2, 3], [[0, 1], [3, 4], [3, 4]], ["a", "b", "b"], level=0.75)    # both 0.25
    0.25
    """
    return _strata.gap(IntervalRows.with_truth(y_true, intervals, sample_weight), groups, level)


def interval_feature_stratified_coverage(
    y_true: ArrayLike,
    intervals: ArrayLike,
    feature: ArrayLike,
    *,
    bins: int = 3,
    sample_weight: ArrayLike | None = None,
) -> StratifiedCoverage:
    """Return the coverage by a feature, in `bins` chunks of equal size; ``score`` is the lowest coverage.

    >>> interval_feature_stratified_coverage([1, 9], [[0, 1], [0, 1]], [70, 20], bins=2).coverage
    array([0., 1.])
    """
    return _strata.by_feature(IntervalRows.with_truth(y_true, intervals, sample_weight), feature, bins)


def interval_worst_slab_coverage(
    y_true: ArrayLike,
    intervals: ArrayLike,
    features: ArrayLike,
    *,
    proportion: float = 0.1,
    directions: int = 1000,
    held_out: float = 0.75,
    cluster: ArrayLike | None = None,
    seed: int = 42,
    sample_weight: ArrayLike | None = None,
) -> WorstSlab | tuple[WorstSlab, ...]:
    """Return the slab ``low <= v.x <= high`` of features with the lowest coverage, evaluated on held-out rows.

    Reference: Cauchois, Gupta and Duchi, "Knowing what You Know", JMLR 22, 2021.

    Args:
        y_true: the true values.
        intervals: (rows, 2) or (rows, 2, levels); several levels give one slab each.
        features: (rows, features), finite. Use similar scales, because slabs have arbitrary directions.
        proportion: the smallest proportion of the searched rows that a slab must contain.
        directions: the number of random directions; not used for a single feature.
        held_out: the proportion of rows (or clusters) on which the slab is evaluated and which are not searched.
        cluster: cluster ids. A cluster is never split between the two parts. Default: each row is a cluster.
        seed: the seed of the split and of the directions.
        sample_weight: multiplicities.

    >>> x = np.arange(100.0)
    >>> truth = np.where(x < 20, 5.0, 0.0)                  # no interval with x < 20 contains its truth
    >>> slab = interval_worst_slab_coverage(truth, [[-1, 1]] * 100, x, proportion=0.15)
    >>> slab.coverage, slab.low < 20
    (0.0, True)
    """
    rows = IntervalRows.with_truth(y_true, intervals, sample_weight)
    return _strata.worst_slab(
        rows, features, cluster, proportion=proportion, directions=directions, held_out=held_out, seed=seed
    )


def interval_width_quantiles(
    intervals: ArrayLike,
    *,
    probabilities: Sequence[float] = (0.05, 0.25, 0.5, 0.75, 0.95),
    sample_weight: ArrayLike | None = None,
) -> Floats:
    """Return quantiles of the width, linear between neighbouring ranks; several levels give one row each.

    With fractional weights there are no ranks. A quantile is then the smallest width such that at least the given
    proportion of the weight is at or below it.

    >>> interval_width_quantiles([[0, 1], [0, 2], [0, 4]], probabilities=(0, 0.5, 0.75))
    array([1., 2., 3.])
    """
    proportions = _validate.unit_interval(probabilities, "probabilities")
    rows = IntervalRows.checked(intervals, sample_weight)
    statistics = [
        quantiles_statistic(width, rows, probabilities=proportions, name="width") for width in rows.width
    ]
    values = np.stack([statistic.points for statistic in statistics])
    return values if rows.several else np.asarray(values[0])


def winkler_losses(rows: IntervalRows, levels: Floats) -> list[Floats]:
    """Return the interval score of every row, one array per level."""
    losses = []
    for width, low, high, level in zip(rows.width, rows.low, rows.high, levels.tolist(), strict=True):
        # A truth is outside on one side at most, so the larger distance is the one that counts.
        loss = low - rows.truth
        np.maximum(loss, rows.truth - high, out=loss)
        np.maximum(loss, 0.0, out=loss)
        with np.errstate(over="ignore"):  # an overflow to infinity is a valid score
            loss *= 2.0 / (1.0 - level)
            loss += width
        losses.append(loss)
    return losses


def weighted_interval_losses(rows: IntervalRows, levels: Floats, median: Floats | None) -> Floats:
    """Return the weighted interval score of every row."""
    alpha = 1.0 - levels
    total = sum(
        proportion / 2.0 * loss
        for proportion, loss in zip(alpha.tolist(), winkler_losses(rows, levels), strict=True)
    )
    if median is None:
        return np.asarray(total / len(levels))
    return np.asarray((total + np.abs(rows.truth - median) / 2.0) / (len(levels) + 0.5))


def width_hsic_statistic(
    rows: IntervalRows, level: int = 0, *, kernel_sizes: tuple[float, float] = (1.0, 1.0), raw: bool = False
) -> Statistic:
    """Return the statistic of the HSIC of width and coverage at one level; undefined if all widths are equal.

    In that case the formula is always 0, which is not evidence that coverage is independent of width.
    """
    if rows.have_one(rows.ranked_width[level]):
        return Statistic.undefined(("hsic",), rows.units)
    return hsic_statistic(rows.width[level], rows.covered[level], rows, kernel_sizes=kernel_sizes, raw=raw)


def checked_eta(eta: float) -> float:
    """Return the penalty of the width criterion, which must not be negative."""
    penalty = _validate.real(eta, "eta")
    if penalty < 0.0:
        raise ArgumentError(
            f"eta must be at least 0, got {penalty:g}; it is the penalty for a coverage that differs from the level"
        )
    return penalty


def _kernel_sizes(sizes: Sequence[float]) -> tuple[float, float]:
    if np.ndim(sizes) != 1 or len(sizes) != 2:
        raise ArgumentError(f"kernel_sizes must be two numbers, for widths and for coverage, got {sizes!r}")
    first, second = (_validate.real(size, "kernel_sizes") for size in sizes)
    if min(first, second) <= 0.0:
        raise ArgumentError(f"kernel_sizes must be greater than 0, got {first:g} and {second:g}")
    return first, second


def _interval_rows(columns: Columns) -> IntervalRows:
    """Return the answered rows with an interval, which are checked only once for all metrics."""

    def check() -> IntervalRows:
        bounded = columns.take(columns.bounded)
        return IntervalRows.with_truth(bounded.truth_number, bounded.intervals).weighted_like(bounded)

    return columns.compute_once("interval rows", check)


def _have_one_width(columns: Columns) -> bool:
    if not columns.bounded.any():
        return False
    rows = _interval_rows(columns)
    return rows.have_one(rows.ranked_width[0])


def _worst_stratum(rows: IntervalRows) -> Statistic:
    return Strata.of_rows(rows.ranked_width[0], rows.covered[0], rows, bins=_BINS).statistic("worst").only(-1)


def _parts_by_width(columns: Columns) -> Parts:
    rows = _interval_rows(columns)
    key = rows.ranked_width[0]
    strata = Strata.of_rows(key, rows.covered[0], rows, bins=1 if rows.have_one(key) else _BINS)
    parts = strata.parts(key)
    occurring = [number for number, (count, _) in enumerate(parts) if count > 0.0]
    scales = [part_scale(rows, *parts[number]) for number in occurring]
    return Parts(strata.statistic("part").only(*occurring), scales)


def _criterion(rows: IntervalRows, *, level: float) -> Statistic:
    columns = (rows.truth, rows.covered[0], rows.width[0])
    return criterion_statistic("criterion", *columns, rows, eta=_ETA, level=level)


def _winkler(rows: IntervalRows, *, level: float) -> Floats:
    return winkler_losses(rows, np.array([level]))[0]


def _weighted(rows: IntervalRows, *, level: float) -> Floats:
    return weighted_interval_losses(rows, np.array([level]), None)


def winkler_scale(rows: IntervalRows, nominal_index: int, losses: Floats, nominal: float) -> Scale:
    """Return the range of an interval score: the fewer clusters have misses, the less is known about their cost.

    One cluster is added to those with misses. Its true value lies a tenth of the mean width outside, which is about the
    distance for a normal distribution. The cost of misses is assumed to vary about as much as their number.
    """
    width, missed = rows.width[nominal_index], ~rows.covered[nominal_index]
    weight = rows.weight / rows.row_weight
    counted = np.isfinite(width) & (weight > 0.0)
    mass, hit = rows.rows_by_unit(), rows.rows_by_unit(missed)
    if not counted.any():
        return Scale(low=0.0, mass=mass)
    missed_clusters, largest = float(np.count_nonzero(hit)), float(mass.max())
    with np.errstate(over="ignore", invalid="ignore"):  # sums of the largest numbers overflow
        penalties = float(weight[missed] @ (losses[missed] - width[missed]))
    # Weights are divided first, because the sum of large widths could overflow.
    mean = float(width[counted] @ (weight[counted] / weight[counted].sum()))
    assumed = 0.2 / (1.0 - nominal) * mean
    cost = math.sqrt(2.0) * (penalties + assumed) / (missed_clusters + 1.0) / largest
    clusters = missed_clusters / float(np.count_nonzero(mass))
    return replace(costly_scale(clusters, float(mass.sum()) / largest, cost), mass=mass)


def _winkler_scale(columns: Columns, level: float) -> Scale:
    if not columns.bounded.any():
        return Scale(low=0.0)
    rows = _interval_rows(columns)
    return winkler_scale(rows, 0, _winkler(rows, level=level), level)


_over = partial(over_rows, _interval_rows)
_metric = specify(
    undefined_if.NO_INTERVALS,
    arguments={"y_true": "truth_number", "intervals": "intervals"},
    unit="unit of the truth",
    rows="bounded",
    answered_only=True,
)
_ONE_WIDTH = undefined_if.Condition("one_width", ONE_WIDTH, _have_one_width)
_LEVEL = Parameter("level", 0.9, _validate.level)
METRICS: tuple[MetricSpecification, ...] = (
    _metric(
        interval_coverage,
        family=_over(mean_of(lambda rows: rows.covered[0])),
        direction=NEITHER,
        unit="proportion",
    ),
    _metric(
        interval_mean_width,
        family=_over(mean_of(lambda rows: rows.width[0])),
        direction=NEITHER,
        arguments={"intervals": "intervals"},
    ),
    _metric(
        interval_size_stratified_coverage,
        family=_over(_worst_stratum),
        direction=HIGHER,
        unit="proportion",
        parts=_parts_by_width,
    ),
    _metric(
        interval_hsic,
        undefined_if.SINGLE_INTERVAL,
        _ONE_WIDTH,
        family=_over(width_hsic_statistic),
        direction=LOWER,
        unit="dependence",
        scale_at=lambda columns, _value: dependence_scale(columns, columns.bounded),
    ),
    _metric(
        interval_coverage_width_criterion,
        undefined_if.CONSTANT_BOUNDED,
        family=_over(_criterion),
        direction=HIGHER,
        unit="points",
        parameter=_LEVEL,
        settings={"eta": _ETA},
        scale_at=lambda _columns, _value: WIDTH_CRITERION,
    ),
    _metric(
        winkler_score,
        family=_over(mean_of(_winkler)),
        direction=LOWER,
        parameter=_LEVEL,
        scale_at=_winkler_scale,
    ),
    _metric(weighted_interval_score, family=_over(mean_of(_weighted)), direction=LOWER, parameter=_LEVEL),
)
