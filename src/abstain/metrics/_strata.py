"""Shared functions of intervals and sets: coverage in strata, in groups and in the worst slab, per level.

These functions turn the statistics of `abstain.metrics.coverage` into results with counts. They also build the
registry's metrics of intervals and sets, over the rows that have such a prediction.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from abstain import _validate
from abstain.metrics import coverage
from abstain.metrics._specification import Family
from abstain.metrics.coverage import Strata, groups_statistic, means_statistic, size_borders, size_stratum
from abstain.metrics.predictions import IntervalRows, SetRows, named_groups, nominal_coverages
from abstain.resampling import total_by

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import ArrayLike, NDArray

    from abstain._types import Floats, Mask
    from abstain.metrics._columns import Columns
    from abstain.metrics.coverage import WorstSlab
    from abstain.resampling import Statistic

    Rows = IntervalRows | SetRows
    Values = float | Floats


@dataclass(frozen=True, slots=True)
class CoverageBin:
    """One stratum: its lowest and highest key, the weight of its rows, and their coverage."""

    low: float
    high: float
    count: float
    coverage: float


@dataclass(frozen=True, eq=False, slots=True)
class StratifiedCoverage:
    """Coverage in strata of width, set size or a feature.

    With several levels every array has one row per level; otherwise it has one number per stratum.

    Attributes:
        coverage: the proportion of covered rows in each stratum; NaN if it is empty.
        counts: the weight of the rows in each stratum; empty strata are kept, with 0.
        low: the smallest key of each stratum: a width, a size or a feature.
        high: the largest key of each stratum.
        score: the lowest coverage of a stratum that is not empty.
    """

    coverage: Floats
    counts: NDArray[Any]
    low: Floats
    high: Floats
    score: float | Floats

    def __repr__(self) -> str:
        return f"StratifiedCoverage({np.shape(self.coverage)[-1]} strata, score {np.round(self.score, 3).tolist()})"

    @property
    def bins(self) -> tuple[Any, ...]:
        """The strata as `CoverageBin`s; with several levels, one tuple of them per level."""
        columns = map(np.atleast_2d, (self.low, self.high, self.counts, self.coverage))
        bins = tuple(
            tuple(CoverageBin(*row) for row in zip(*(part.tolist() for part in level), strict=True))
            for level in zip(*columns, strict=True)
        )
        return bins[0] if self.coverage.ndim == 1 else bins


@dataclass(frozen=True, eq=False, slots=True)
class GroupCoverage:
    """Coverage in the user's groups; with several levels, coverage has one row per level.

    Attributes:
        groups: the labels of the groups, ascending.
        coverage: the proportion of covered rows in each group.
        counts: the weight of the rows in each group.
        score: the lowest coverage of a group.
    """

    groups: tuple[Any, ...]
    coverage: Floats
    counts: NDArray[Any]
    score: float | Floats

    def __repr__(self) -> str:
        return f"GroupCoverage({len(self.groups)} groups, score {np.round(self.score, 3).tolist()})"


def per_level(rows: Rows, values: Sequence[float] | Floats) -> Values:
    """Return one number if there is a single level without an axis, otherwise one number per level."""
    return np.asarray(values, dtype=np.float64) if rows.several else float(values[0])


def as_counts(weights: Floats) -> NDArray[Any]:
    """Return weights as integers if they are whole numbers."""
    return weights.astype(np.int64) if (weights == np.floor(weights)).all() else weights


def means(rows: Rows, columns: Sequence[Floats] | Sequence[Mask] | Floats | Mask) -> Values:
    """Return the weighted mean of each level's column."""
    names = tuple(str(number) for number in range(len(columns)))
    return per_level(rows, means_statistic(names, list(columns), rows).points)


def by_key(rows: Rows, keys: Sequence[Floats] | Floats, bins: int) -> StratifiedCoverage:
    """Return the coverage in chunks of equal size of the rows ranked by a key; each level has its own keys."""
    strata = [
        Strata.of_rows(key, covered, rows, bins=bins) for key, covered in zip(keys, rows.covered, strict=True)
    ]
    values = np.stack([part.statistic("coverage").points for part in strata])
    low, high, size = (np.stack(part) for part in zip(*(part.ends() for part in strata), strict=True))
    return _stratified(rows, values[:, :bins], size, low, high, values[:, bins])


def by_size(rows: SetRows, bins: int | None) -> StratifiedCoverage:
    """Return the coverage by set size, or with `bins` by groups of neighbouring sizes."""
    borders = size_borders(rows.classes, bins)
    strata = len(borders)
    values, counts = [], []
    for size, covered in zip(rows.width, rows.covered, strict=True):
        stratum = size_stratum(size, borders)
        values.append(groups_statistic(covered, stratum, strata, rows, name="coverage").points)
        counts.append(total_by(stratum, rows.mass, strata))
    table = np.stack(values)
    low = np.tile(borders.astype(np.float64), (len(table), 1))
    high = np.tile(np.r_[borders[1:] - 1.0, float(rows.classes)], (len(table), 1))
    return _stratified(rows, table[:, :strata], np.stack(counts), low, high, table[:, strata])


def by_group(rows: Rows, groups: ArrayLike, name: str = "groups") -> GroupCoverage:
    """Return the coverage in the user's groups."""
    labels, index = named_groups(groups, name, len(rows))
    statistics = [groups_statistic(covered, index, len(labels), rows, name=name) for covered in rows.covered]
    values = np.stack([statistic.points for statistic in statistics])
    proportions = values[:, : len(labels)]
    return GroupCoverage(
        groups=tuple(labels),
        coverage=proportions if rows.several else proportions[0],
        counts=as_counts(total_by(index, rows.mass, len(labels))),
        score=per_level(rows, values[:, len(labels)]),
    )


def gap(
    rows: Rows, groups: ArrayLike | None, level: float | Sequence[float], *, by_proportion: bool = False
) -> Values:
    """Return the mean distance of the groups' coverage from the level. Default: all rows are one group.

    All groups have the same weight, or with `by_proportion` the weight of their rows.
    """
    n = len(rows)
    labels, index = ([None], np.zeros(n, np.intp)) if groups is None else named_groups(groups, "groups", n)
    by_nominal = nominal_coverages(level, rows.levels).tolist()
    values = [
        groups_statistic(
            covered, index, len(labels), rows, name="coverage", level=nominal, by_proportion=by_proportion
        ).points[-1]
        for covered, nominal in zip(rows.covered, by_nominal, strict=True)
    ]
    return per_level(rows, values)


def by_feature(rows: Rows, feature: ArrayLike, bins: int) -> StratifiedCoverage:
    """Return the coverage in chunks of equal size of the rows ranked by a feature."""
    key = _validate.finite(feature, "feature")
    _validate.same_length(len(rows), feature=key)
    return by_key(rows, [key] * len(rows.covered), _validate.whole(bins, "bins", least=1))


def worst_slab(
    rows: Rows,
    features: ArrayLike,
    cluster: ArrayLike | None,
    *,
    proportion: float,
    directions: int,
    held_out: float,
    seed: int,
) -> WorstSlab | tuple[WorstSlab, ...]:
    """Return the slab of features with the lowest coverage, found on some rows and evaluated on the others."""
    search: dict[str, Any] = {
        "proportion": _validate.level(proportion, "proportion"),
        "directions": _validate.whole(directions, "directions", least=1),
        "held_out": _validate.level(held_out, "held_out"),
        "seed": _validate.seed(seed),
    }
    points = coverage.checked_features(features, len(rows))
    unit = None if cluster is None else named_groups(cluster, "cluster", len(rows))[1]
    slabs = tuple(coverage.worst_slab(points, hit, rows, cluster=unit, **search)[0] for hit in rows.covered)
    return slabs if rows.several else slabs[0]


def _stratified(
    rows: Rows, proportions: Floats, weights: Floats, low: Floats, high: Floats, score: Floats
) -> StratifiedCoverage:
    level = slice(None) if rows.several else 0
    proportions, counts, low, high = (part[level] for part in (proportions, as_counts(weights), low, high))
    return StratifiedCoverage(proportions, counts, low, high, per_level(rows, score))


def over_rows(rows_of: Callable[[Columns], Rows], build: Callable[..., Statistic]) -> Family:
    """Return the family of a metric that is computed from checked predictions."""
    return Family.of_one(lambda columns, **parameters: build(rows_of(columns), **parameters))


def mean_of(column: Callable[..., Any]) -> Callable[..., Statistic]:
    """Return a function that builds the statistic of the mean of one column of the rows."""
    return lambda rows, **parameters: means_statistic(("mean",), (column(rows, **parameters),), rows)
