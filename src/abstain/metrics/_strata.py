"""What intervals and sets share: coverage in strata, in groups and in the worst slab."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from abstain import _validate
from abstain.metrics import _slab
from abstain.metrics._coverage import Frame, StrataPlan, groups_plan
from abstain.metrics._predictions import IntervalRows, SetRows, named_groups, nominal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    from abstain.metrics._plan import Plan

    Floats = NDArray[np.float64]
    Rows = IntervalRows | SetRows
    Values = float | Floats


@dataclass(frozen=True, slots=True)
class CoverageBin:
    """One stratum: from which key to which, how many rows (or how much weight), and their coverage."""

    low: float
    high: float
    count: float
    coverage: float


@dataclass(frozen=True, eq=False, slots=True)
class StratifiedCoverage:
    """Coverage in strata of width, set size or a feature.

    With several levels every array has one row a level; otherwise it has one number a stratum.

    Attributes:
        coverage: share of covered rows in each stratum; NaN where it is empty.
        counts: how many rows (or how much weight) each stratum holds; empty ones are kept, with 0.
        low: the smallest key of each stratum: a width, a size or a feature.
        high: the largest key of each stratum.
        score: the worst coverage of a stratum that is not empty.
    """

    coverage: Floats
    counts: NDArray[Any]
    low: Floats
    high: Floats
    score: float | Floats

    @property
    def bins(self) -> tuple[Any, ...]:
        """The strata as `CoverageBin`s; with several levels, one tuple of them a level."""
        columns = (self.low, self.high, self.counts, self.coverage)
        if self.coverage.ndim == 1:
            return tuple(
                CoverageBin(*row) for row in zip(*(column.tolist() for column in columns), strict=True)
            )
        return tuple(
            tuple(
                CoverageBin(*row) for row in zip(*(column[level].tolist() for column in columns), strict=True)
            )
            for level in range(len(self.coverage))
        )


@dataclass(frozen=True, eq=False, slots=True)
class GroupCoverage:
    """Coverage in groups that the user named; with several levels coverage has one row a level.

    Attributes:
        groups: the labels of the groups, ascending.
        coverage: share of covered rows in each group.
        counts: how many rows (or how much weight) each group holds.
        score: the worst coverage of a group.
    """

    groups: tuple[Any, ...]
    coverage: Floats
    counts: NDArray[Any]
    score: float | Floats


def at_ones(plan: Plan) -> Floats:
    """The values of a plan when every row counts once."""
    values: Floats = plan(np.ones((1, plan.clusters)))[0]
    return values


def per_level(values: Sequence[float] | Floats, *, several: bool) -> Values:
    """One number when one level was given, else one number a level."""
    return np.asarray(values, dtype=np.float64) if several else float(values[0])


def as_counts(weights: Floats) -> NDArray[Any]:
    """Counts are whole numbers unless the weights are not."""
    return weights.astype(np.int64) if (weights == np.floor(weights)).all() else weights


def by_key(rows: Rows, keys: Sequence[Floats] | Floats, bins: int) -> StratifiedCoverage:
    """Coverage in equal chunks of the rows ranked by a key, which may differ from level to level."""
    frame = Frame(rows.covered.shape[1], rows.weight)
    plans = [
        StrataPlan.build(key, covered, frame, bins=bins, name="size_stratified_coverage")
        for key, covered in zip(keys, rows.covered, strict=True)
    ]
    values = np.stack([at_ones(plan) for plan in plans])
    low, high, size = (np.stack(part) for part in zip(*(plan.ends() for plan in plans), strict=True))
    return _stratified(values[:, :bins], size, low, high, values[:, bins], several=rows.several)


def by_size(rows: SetRows, bins: int | None) -> StratifiedCoverage:
    """Coverage by set size, each size apart or in `bins` groups of neighbouring sizes."""
    borders = size_borders(rows.classes, bins)
    frame = Frame(rows.covered.shape[1], rows.weight)
    strata = len(borders)
    values, counts = [], []
    for size, covered in zip(rows.width, rows.covered, strict=True):
        stratum = size_stratum(size, borders)
        values.append(at_ones(groups_plan(covered, stratum, strata, frame, name="size_stratified_coverage")))
        counts.append(np.bincount(stratum, weights=rows.weight, minlength=strata).astype(np.float64))
    table = np.stack(values)
    low = np.tile(borders.astype(np.float64), (len(table), 1))
    high = np.tile(np.r_[borders[1:] - 1.0, float(rows.classes)], (len(table), 1))
    return _stratified(table[:, :strata], np.stack(counts), low, high, table[:, strata], several=rows.several)


def size_borders(classes: int, bins: int | None) -> NDArray[np.intp]:
    """Return the smallest size of each stratum of the sizes 0 to `classes`."""
    if bins is None:
        return np.arange(classes + 1)
    number = _validate.whole(bins, "bins", least=1, most=classes + 1)
    return np.array([part[0] for part in np.array_split(np.arange(classes + 1), number)])


def size_stratum(size: Floats, borders: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return the stratum of each set size."""
    return np.searchsorted(borders, size, side="right") - 1


def by_group(rows: Rows, groups: ArrayLike, name: str = "groups") -> GroupCoverage:
    """Coverage in groups that the user named."""
    labels, index = named_groups(groups, name, rows.covered.shape[1])
    frame = Frame(rows.covered.shape[1], rows.weight)
    counts = np.bincount(index, weights=rows.weight, minlength=len(labels)).astype(np.float64)
    values = np.stack(
        [
            at_ones(groups_plan(covered, index, len(labels), frame, name="coverage"))
            for covered in rows.covered
        ]
    )
    coverage = values[:, : len(labels)]
    return GroupCoverage(
        groups=tuple(labels),
        coverage=coverage if rows.several else coverage[0],
        counts=as_counts(counts),
        score=per_level(values[:, len(labels)], several=rows.several),
    )


def gap(rows: Rows, groups: ArrayLike | None, level: float | Sequence[float]) -> Values:
    """The mean distance of the groups' coverage from the level; without groups, all rows are one."""
    n = rows.covered.shape[1]
    labels, index = ([None], np.zeros(n, np.intp)) if groups is None else named_groups(groups, "groups", n)
    levels = nominal(level, len(rows.covered))
    frame = Frame(n, rows.weight)
    values = [
        at_ones(groups_plan(covered, index, len(labels), frame, name="coverage", level=target))[-1]
        for covered, target in zip(rows.covered, levels.tolist(), strict=True)
    ]
    return per_level(values, several=rows.several)


def by_feature(rows: Rows, feature: ArrayLike, bins: int) -> StratifiedCoverage:
    """Coverage in equal chunks of the rows ranked by a feature."""
    key = _validate.finite(feature, "feature")
    _validate.same_length(rows.covered.shape[1], feature=key)
    return by_key(rows, [key] * len(rows.covered), _validate.whole(bins, "bins", least=1))


def worst_slab(
    rows: Rows,
    features: ArrayLike,
    *,
    share: float,
    directions: int,
    held_out: float,
    clusters: ArrayLike | None,
    seed: int,
) -> _slab.WorstSlab | tuple[_slab.WorstSlab, ...]:
    """The slab of the features in which coverage is worst, found on some rows and judged on the others."""
    n = rows.covered.shape[1]
    points = _slab.checked_features(features, n)
    cluster = None if clusters is None else named_groups(clusters, "clusters", n)[1]
    frame = Frame(n, rows.weight, cluster)
    settings = _slab.Search(
        share=_validate.level(share, "share"),
        directions=_validate.whole(directions, "directions", least=1),
        held_out=_validate.level(held_out, "held_out"),
        seed=_validate.seed(seed),
    )
    found = tuple(_slab.worst_slab(points, covered, frame, settings)[0] for covered in rows.covered)
    return found if rows.several else found[0]


def _stratified(
    coverage: Floats, counts: Floats, low: Floats, high: Floats, score: Floats, *, several: bool
) -> StratifiedCoverage:
    parts = [coverage, as_counts(counts), low, high]
    if not several:
        parts = [part[0] for part in parts]
    return StratifiedCoverage(parts[0], parts[1], parts[2], parts[3], per_level(score, several=several))
