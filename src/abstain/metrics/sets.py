"""Prediction sets: do they hold the true class as often as they claim, where not, and how large are they?

Sets come as booleans (rows, classes) or, for several confidence levels at once, as (rows, classes, levels);
True says that the class is in the set. Truths are class indices from 0. A metric of (rows, classes) is a
float; of (rows, classes, levels) it is an array with one value a level. Empty sets are legal: they cover
nothing. ``weights`` are multiplicities.

Each figure is its plan at weights all one (see `_coverage`), the same plan that the bootstrap weighs.
Intervals of numbers are in `abstain.metrics.intervals`; intervals for these figures, and a verdict, in
`abstain.evaluation.conformal`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np  # noqa: TC002  (the examples use it)

from abstain.metrics import _strata
from abstain.metrics._coverage import Frame, means_plan
from abstain.metrics._predictions import SetRows
from abstain.metrics._slab import WorstSlab
from abstain.metrics._strata import CoverageBin, GroupCoverage, StratifiedCoverage, at_ones, per_level

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]
    Mask = NDArray[np.bool_]
    Values = float | Floats

__all__ = [
    "CoverageBin",
    "GroupCoverage",
    "StratifiedCoverage",
    "WorstSlab",
    "coverage_by_group",
    "coverage_by_label",
    "coverage_gap",
    "coverage_score",
    "empty_rate",
    "feature_stratified_coverage",
    "mean_width_score",
    "singleton_rate",
    "size_stratified_coverage",
    "worst_slab_coverage",
]


def coverage_score(y_true: ArrayLike, sets: ArrayLike, *, weights: ArrayLike | None = None) -> Values:
    """Return the share of truths that are in their set: the mean of ``1(y in set)``.

    >>> coverage_score([0, 1, 1], [[True, False], [True, False], [True, True]])
    0.6666666666666666
    """
    rows = SetRows.with_truth(y_true, sets, weights)
    return _means(rows, list(rows.covered))


def mean_width_score(sets: ArrayLike, *, weights: ArrayLike | None = None) -> Values:
    """Return the mean number of classes in a set.

    >>> mean_width_score([[True, False], [True, True]])
    1.5
    """
    rows = SetRows.checked(sets, weights)
    return _means(rows, list(rows.width))


def size_stratified_coverage(
    y_true: ArrayLike, sets: ArrayLike, *, bins: int | None = None, weights: ArrayLike | None = None
) -> StratifiedCoverage:
    """Return coverage by set size; ``score`` is the worst, and sizes that do not occur are kept with count 0.

    Args:
        y_true: class indices.
        sets: (rows, classes) or (rows, classes, levels).
        bins: None for one stratum a size from 0 to the number of classes, else how many groups of
            neighbouring sizes.
        weights: multiplicities.

    Reference: Angelopoulos et al., "Uncertainty Sets for Image Classifiers using Conformal Prediction", ICLR
    2021.

    >>> strata = size_stratified_coverage([0, 1, 1], [[True, False], [True, False], [True, True]])
    >>> strata.coverage, strata.counts, strata.score
    (array([nan, 0.5, 1. ]), array([0, 2, 1]), 0.5)
    """
    return _strata.by_size(SetRows.with_truth(y_true, sets, weights), bins)


def singleton_rate(sets: ArrayLike, *, weights: ArrayLike | None = None) -> Values:
    """Return the share of sets with exactly one class: how often the predictor commits itself.

    >>> singleton_rate([[True, False], [True, True]])
    0.5
    """
    rows = SetRows.checked(sets, weights)
    return _means(rows, list(rows.width == 1.0))


def empty_rate(sets: ArrayLike, *, weights: ArrayLike | None = None) -> Values:
    """Return the share of sets without any class: how often nothing looks plausible.

    >>> empty_rate([[False, False], [True, True]])
    0.5
    """
    rows = SetRows.checked(sets, weights)
    return _means(rows, list(rows.width == 0.0))


def coverage_by_label(
    y_true: ArrayLike, sets: ArrayLike, *, weights: ArrayLike | None = None
) -> GroupCoverage:
    """Return coverage within each true class that occurs, and the worst of them as ``score``.

    >>> coverage_by_label([0, 1, 1], [[True, False], [True, False], [True, True]]).coverage
    array([1. , 0.5])
    """
    rows = SetRows.with_truth(y_true, sets, weights)
    return _strata.by_group(rows, rows.known_truth, "y_true")


def coverage_by_group(
    y_true: ArrayLike, sets: ArrayLike, groups: ArrayLike, *, weights: ArrayLike | None = None
) -> GroupCoverage:
    """Return coverage within each group, such as a site or a sex, and the worst of them as ``score``.

    >>> coverage_by_group([0, 1], [[True, False], [True, False]], ["a", "b"]).coverage
    array([1., 0.])
    """
    return _strata.by_group(SetRows.with_truth(y_true, sets, weights), groups)


def coverage_gap(
    y_true: ArrayLike,
    sets: ArrayLike,
    groups: ArrayLike | None = None,
    *,
    level: float | Sequence[float],
    weights: ArrayLike | None = None,
) -> Values:
    """Return the mean over groups of ``|coverage - level|``; the groups are the true classes unless given.

    Reference: Ding et al., "Class-Conditional Conformal Prediction with Many Classes", 2023 (there in per
    cent).

    >>> coverage_gap([0, 1], [[True, False], [True, False]], level=0.75)      # (0.25 + 0.75) / 2
    0.5
    """
    rows = SetRows.with_truth(y_true, sets, weights)
    return _strata.gap(rows, rows.known_truth if groups is None else groups, level)


def feature_stratified_coverage(
    y_true: ArrayLike,
    sets: ArrayLike,
    feature: ArrayLike,
    *,
    bins: int = 3,
    weights: ArrayLike | None = None,
) -> StratifiedCoverage:
    """Return coverage by a feature: `bins` equal chunks of the rows ranked by it; ``score`` is the worst.

    >>> feature_stratified_coverage([0, 1], [[True, False], [True, False]], [70, 20], bins=2).coverage
    array([0., 1.])
    """
    return _strata.by_feature(SetRows.with_truth(y_true, sets, weights), feature, bins)


def worst_slab_coverage(
    y_true: ArrayLike,
    sets: ArrayLike,
    features: ArrayLike,
    *,
    share: float = 0.1,
    directions: int = 1000,
    held_out: float = 0.75,
    clusters: ArrayLike | None = None,
    seed: int = 42,
    weights: ArrayLike | None = None,
) -> WorstSlab | tuple[WorstSlab, ...]:
    """Return the slab of the features with the lowest coverage, judged on rows held out.

    The parameters are those of `abstain.metrics.intervals.worst_slab_coverage`.

    >>> x = np.arange(60.0)
    >>> sets = np.column_stack([x >= 20, x >= 0])           # class 0 is missed where x < 20
    >>> worst_slab_coverage(np.zeros(60, int), sets, x, share=0.25).coverage
    0.0
    """
    rows = SetRows.with_truth(y_true, sets, weights)
    return _strata.worst_slab(
        rows, features, share=share, directions=directions, held_out=held_out, clusters=clusters, seed=seed
    )


def _means(rows: SetRows, columns: list[Floats] | list[Mask]) -> Values:
    names = tuple(str(place) for place in range(len(columns)))
    frame = Frame(len(rows.member), rows.weight)
    return per_level(at_ones(means_plan(names, columns, frame)), several=rows.several)
