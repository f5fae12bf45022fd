"""Prediction sets: how often they contain the true class, overall and in parts of the data, and how large they are.

Sets are booleans (rows, classes) or, for several nominal coverages at once, (rows, classes, levels). True means that
the class is in the set. Truths are class indices from 0. A metric of (rows, classes) is a float; of (rows, classes,
levels) it is an array with one value per level. Sets may be empty. ``sample_weight`` contains multiplicities.

The statistics are in `abstain.metrics.coverage`. Intervals of numbers are in `abstain.metrics.intervals`, confidence
intervals of these metrics and verdicts in `abstain.evaluation.conformal`.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from abstain import _validate
from abstain.metrics import _conditions as undefined_if
from abstain.metrics import _strata
from abstain.metrics._specification import (
    HIGHER,
    LOWER,
    NEITHER,
    MetricSpecification,
    Parameter,
    Parts,
    specify,
)
from abstain.metrics._strata import CoverageBin, GroupCoverage, StratifiedCoverage, mean_of, over_rows
from abstain.metrics.coverage import WorstSlab, groups_statistic
from abstain.metrics.predictions import SetRows
from abstain.metrics.scales import Scale, gap_scale, proportion_scale, set_size_scale

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from abstain._types import Floats, Indices
    from abstain.metrics._columns import Columns
    from abstain.resampling import Statistic

    Values = float | Floats

__all__ = [
    "CoverageBin",
    "GroupCoverage",
    "StratifiedCoverage",
    "WorstSlab",
    "set_coverage",
    "set_coverage_by_group",
    "set_coverage_by_label",
    "set_coverage_gap",
    "set_empty_rate",
    "set_feature_stratified_coverage",
    "set_mean_width",
    "set_singleton_rate",
    "set_size_stratified_coverage",
    "set_weighted_coverage_gap",
    "set_worst_slab_coverage",
]


def set_coverage(y_true: ArrayLike, sets: ArrayLike, *, sample_weight: ArrayLike | None = None) -> Values:
    """Return the proportion of true classes that are in their set: the mean of ``1(y in set)``.

    It should be at least the nominal coverage.

    >>> set_coverage([0, 1, 1], [[True, False], [True, False], [True, True]])
    0.6666666666666666
    """
    rows = SetRows.with_truth(y_true, sets, sample_weight)
    return _strata.means(rows, rows.covered)


def set_mean_width(sets: ArrayLike, *, sample_weight: ArrayLike | None = None) -> Values:
    """Return the mean number of classes in a set.

    >>> set_mean_width([[True, False], [True, True]])
    1.5
    """
    rows = SetRows.checked(sets, sample_weight)
    return _strata.means(rows, rows.width)


def set_size_stratified_coverage(
    y_true: ArrayLike, sets: ArrayLike, *, bins: int | None = None, sample_weight: ArrayLike | None = None
) -> StratifiedCoverage:
    """Return the coverage by set size and, as ``score``, the lowest coverage of a size.

    Higher is better. Sizes that do not occur are kept with count 0.

    Args:
        y_true: class indices.
        sets: (rows, classes) or (rows, classes, levels).
        bins: the number of groups of neighbouring sizes. Default: one stratum per size, from 0 to the number of
            classes.
        sample_weight: multiplicities.

    Reference: Angelopoulos et al., "Uncertainty Sets for Image Classifiers using Conformal Prediction", ICLR
    2021.

    >>> strata = set_size_stratified_coverage([0, 1, 1], [[True, False], [True, False], [True, True]])
    >>> strata.coverage, strata.counts, strata.score
    (array([nan, 0.5, 1. ]), array([0, 2, 1]), 0.5)
    """
    return _strata.by_size(SetRows.with_truth(y_true, sets, sample_weight), bins)


def set_singleton_rate(sets: ArrayLike, *, sample_weight: ArrayLike | None = None) -> Values:
    """Return the proportion of sets with exactly one class.

    >>> set_singleton_rate([[True, False], [True, True]])
    0.5
    """
    rows = SetRows.checked(sets, sample_weight)
    return _strata.means(rows, rows.width == 1.0)


def set_empty_rate(sets: ArrayLike, *, sample_weight: ArrayLike | None = None) -> Values:
    """Return the proportion of empty sets.

    >>> set_empty_rate([[False, False], [True, True]])
    0.5
    """
    rows = SetRows.checked(sets, sample_weight)
    return _strata.means(rows, rows.width == 0.0)


def set_coverage_by_label(
    y_true: ArrayLike, sets: ArrayLike, *, sample_weight: ArrayLike | None = None
) -> GroupCoverage:
    """Return the coverage of each true class and, as ``score``, the lowest coverage of a class.

    Higher is better.

    >>> set_coverage_by_label([0, 1, 1], [[True, False], [True, False], [True, True]]).coverage
    array([1. , 0.5])
    """
    rows = SetRows.with_truth(y_true, sets, sample_weight)
    return _strata.by_group(rows, rows.truth, "y_true")


def set_coverage_by_group(
    y_true: ArrayLike, sets: ArrayLike, groups: ArrayLike, *, sample_weight: ArrayLike | None = None
) -> GroupCoverage:
    """Return the coverage of each group, such as a site or a sex; ``score`` is the lowest coverage.

    >>> set_coverage_by_group([0, 1], [[True, False], [True, False]], ["a", "b"]).coverage
    array([1., 0.])
    """
    return _strata.by_group(SetRows.with_truth(y_true, sets, sample_weight), groups)


def set_coverage_gap(
    y_true: ArrayLike,
    sets: ArrayLike,
    groups: ArrayLike | None = None,
    *,
    level: float | Sequence[float],
    sample_weight: ArrayLike | None = None,
) -> Values:
    """Return the mean over groups of ``|coverage - level|``. Default: the groups are the true classes.

    Lower is better. Reference: Ding et al., "Class-Conditional Conformal Prediction with Many Classes", 2023, in which
    the unit is percent.

    >>> set_coverage_gap([0, 1], [[True, False], [True, False]], level=0.75)      # (0.25 + 0.75) / 2
    0.5
    """
    rows = SetRows.with_truth(y_true, sets, sample_weight)
    return _strata.gap(rows, rows.truth if groups is None else groups, level)


def set_weighted_coverage_gap(
    y_true: ArrayLike,
    sets: ArrayLike,
    groups: ArrayLike | None = None,
    *,
    level: float | Sequence[float],
    sample_weight: ArrayLike | None = None,
) -> Values:
    """Return the mean over groups of ``|coverage - level|``, weighted by the number of rows in each group.

    Lower is better. By default the groups are the true classes. A class with few rows, whose coverage is mostly noise,
    has a small weight here; in `set_coverage_gap` all classes have the same weight.

    >>> gap = set_weighted_coverage_gap([0, 0, 0, 1], [[True, False]] * 4, level=0.75)
    >>> gap == (3 * 0.25 + 1 * 0.75) / 4
    True
    """
    rows = SetRows.with_truth(y_true, sets, sample_weight)
    return _strata.gap(rows, rows.truth if groups is None else groups, level, by_proportion=True)


def set_feature_stratified_coverage(
    y_true: ArrayLike,
    sets: ArrayLike,
    feature: ArrayLike,
    *,
    bins: int = 3,
    sample_weight: ArrayLike | None = None,
) -> StratifiedCoverage:
    """Return the coverage by a feature, in `bins` chunks of equal size; ``score`` is the lowest coverage.

    >>> set_feature_stratified_coverage([0, 1], [[True, False], [True, False]], [70, 20], bins=2).coverage
    array([0., 1.])
    """
    return _strata.by_feature(SetRows.with_truth(y_true, sets, sample_weight), feature, bins)


def set_worst_slab_coverage(
    y_true: ArrayLike,
    sets: ArrayLike,
    features: ArrayLike,
    *,
    proportion: float = 0.1,
    directions: int = 1000,
    held_out: float = 0.75,
    cluster: ArrayLike | None = None,
    seed: int = 42,
    sample_weight: ArrayLike | None = None,
) -> WorstSlab | tuple[WorstSlab, ...]:
    """Return the slab of features with the lowest coverage, evaluated on held-out rows.

    The parameters are those of `abstain.metrics.intervals.interval_worst_slab_coverage`.

    >>> x = np.arange(60.0)
    >>> sets = np.column_stack([x >= 20, x >= 0])           # class 0 is missing if x < 20
    >>> set_worst_slab_coverage(np.zeros(60, int), sets, x, proportion=0.25).coverage
    0.0
    """
    rows = SetRows.with_truth(y_true, sets, sample_weight)
    return _strata.worst_slab(
        rows, features, cluster, proportion=proportion, directions=directions, held_out=held_out, seed=seed
    )


def _set_rows(columns: Columns) -> SetRows:
    """Return the answered rows with a set, which are checked only once for all metrics."""

    def check() -> SetRows:
        gathered = columns.take(columns.gathered)
        return SetRows.with_truth(gathered.truth_class, gathered.sets).weighted_like(gathered)

    return columns.compute_once("set rows", check)


def _worst_size(rows: SetRows) -> Statistic:
    size = rows.width[0].astype(np.intp)
    return groups_statistic(rows.covered[0], size, rows.classes + 1, rows, name="worst").only(-2)


def _worst_label(rows: SetRows) -> Statistic:
    return groups_statistic(rows.covered[0], rows.truth, rows.classes, rows, name="worst").only(-2)


def _gap(rows: SetRows, *, level: float, by_proportion: bool = False) -> Statistic:
    group = (rows.truth, rows.classes)
    return groups_statistic(
        rows.covered[0], *group, rows, name="worst", level=level, by_proportion=by_proportion
    ).only(-1)


def _sizes(columns: Columns) -> Indices:
    return columns.sets.sum(axis=1)


def _size_scale(columns: Columns, _value: Any) -> Scale:
    if not columns.gathered.any():
        return Scale()
    return set_size_scale(columns, _sizes(columns)[columns.gathered].astype(np.float64), columns.gathered)


def _parts(rows: SetRows, part: Indices) -> Parts:
    """Return the coverage of the parts that have rows."""
    occurring = np.unique(part[rows.counted])
    statistic = groups_statistic(rows.covered[0], part, int(part.max()) + 1, rows, name="part")
    return Parts(statistic.only(*occurring), [proportion_scale(rows, part == number) for number in occurring])


def _gap_scale(columns: Columns, level: float) -> Scale:
    return (
        gap_scale(columns, columns.truth_class, level, columns.gathered)
        if columns.gathered.any()
        else Scale()
    )


def _parts_by_size(columns: Columns) -> Parts:
    rows = _set_rows(columns)
    return _parts(rows, rows.width[0].astype(np.intp))


def _parts_by_label(columns: Columns) -> Parts:
    rows = _set_rows(columns)
    return _parts(rows, rows.truth)


_over = partial(over_rows, _set_rows)
_LEVEL = Parameter("level", 0.9, _validate.level)
_metric = specify(
    undefined_if.NO_SETS,
    arguments={"y_true": "truth_class", "sets": "sets"},
    direction=NEITHER,
    unit="proportion",
    rows="gathered",
    answered_only=True,
)
_SETS = {"sets": "sets"}
METRICS: tuple[MetricSpecification, ...] = (
    _metric(set_coverage, family=_over(mean_of(lambda rows: rows.covered[0]))),
    _metric(
        set_mean_width,
        family=_over(mean_of(lambda rows: rows.width[0])),
        direction=NEITHER,
        unit="classes",
        arguments=_SETS,
        scale_at=_size_scale,
    ),
    _metric(set_size_stratified_coverage, family=_over(_worst_size), direction=HIGHER, parts=_parts_by_size),
    _metric(set_coverage_by_label, family=_over(_worst_label), direction=HIGHER, parts=_parts_by_label),
    _metric(
        set_coverage_gap,
        family=_over(_gap),
        direction=LOWER,
        parameter=_LEVEL,
        scale_at=_gap_scale,
    ),
    _metric(
        set_weighted_coverage_gap,
        family=_over(partial(_gap, by_proportion=True)),
        direction=LOWER,
        parameter=_LEVEL,
        scale_at=_gap_scale,
    ),
    _metric(set_singleton_rate, family=_over(mean_of(lambda rows: rows.width[0] == 1.0)), arguments=_SETS),
    _metric(set_empty_rate, family=_over(mean_of(lambda rows: rows.width[0] == 0.0)), arguments=_SETS),
)
