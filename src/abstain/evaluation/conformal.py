"""Evaluate prediction intervals, prediction sets and predictive quantiles.

`evaluate_intervals` and `evaluate_sets` take true values and predictions with one or several nominal coverages, and
optionally clusters and groups. Every metric of `abstain.metrics.intervals` and `abstain.metrics.sets` gets a confidence
interval over clusters. Coverage also gets a verdict: covered, over-covered, under-covered or inconclusive. The metrics
are defined in `abstain.metrics`, confidence intervals and verdicts in `abstain.inference`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from abstain import _validate
from abstain.errors import ArgumentError, DataError
from abstain.evaluation._coverage import (
    CRITERION,
    MOST_HSIC_CLUSTERS,
    CoverageEvaluation,
    describe_range,
    intervals_over,
)
from abstain.evaluation._coverage_results import (
    CoverageResult,
    CoverageSettings,
    NominalResult,
    PitBin,
    QuantileResult,
    Stratum,
)
from abstain.labels import class_index, column
from abstain.metrics.coverage import (
    Strata,
    criterion_statistic,
    groups_statistic,
    means_statistic,
    size_borders,
    size_stratum,
)
from abstain.metrics.intervals import (
    weighted_interval_losses,
    width_hsic_statistic,
    winkler_losses,
    winkler_scale,
)
from abstain.metrics.predictions import IntervalRows, QuantileRows, SetRows
from abstain.metrics.quantiles import pinball_statistic, pit_statistic
from abstain.metrics.scales import WIDTH_CRITERION, Scale, dependence_scale, proportion_scale, set_size_scale

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import ArrayLike, NDArray

    from abstain._types import Progress

    Groups = Mapping[str, ArrayLike]

__all__ = [
    "CoverageResult",
    "CoverageSettings",
    "NominalResult",
    "PitBin",
    "QuantileResult",
    "Stratum",
    "evaluate_intervals",
    "evaluate_quantiles",
    "evaluate_sets",
]

TRUE_CLASS = "true class"


def evaluate_intervals(
    y_true: ArrayLike,
    intervals: ArrayLike,
    *,
    nominal: float | Sequence[float],
    cluster: ArrayLike | None = None,
    groups: Groups | None = None,
    features: Groups | None = None,
    sample_weight: ArrayLike | None = None,
    bins: int = 3,
    eta: float = 30.0,
    margin: float = 0.0,
    interval: str = "jackknife",
    resamples: int | None = None,
    seed: int = 42,
    level: float = 0.95,
    progress: Progress | None = None,
) -> CoverageResult:
    """Evaluate prediction intervals with one or several nominal coverages.

    Args:
        y_true: the true values.
        intervals: (rows, 2), or (rows, 2, levels) for several nominal coverages; or the pair that MAPIE's
            ``predict_interval`` returns, predictions and intervals.
        nominal: the nominal coverage of the intervals, such as 0.9; one for each level.
        cluster: the cluster of each row. Default: each row is its own cluster.
        groups: labels by the name of the grouping, such as ``{"site": [...]}``, for coverage by group.
        features: numbers by the name of the feature, for coverage by each feature and the slab of worst coverage.
        sample_weight: multiplicities.
        bins: number of strata of width.
        eta: how strongly the width criterion penalizes a coverage that differs from the nominal one.
        margin: the difference between coverage and nominal coverage that does not matter for the verdict. Default: 0.
        interval: the method of the confidence intervals of metrics: "jackknife", "percentile", "bca" or "none".
        resamples: number of bootstrap resamples. Default: 10,000 for a bootstrap interval, otherwise 0.
        seed: the seed of the resamples.
        level: the confidence level of the intervals of metrics.
        progress: called with the number of resamples done since the last call.

    >>> truth = np.arange(200.0)
    >>> bounds = np.column_stack([truth - 1, truth + 1])
    >>> bounds[:60] += 5                                    # the first 60 miss
    >>> result = evaluate_intervals(truth, bounds, nominal=0.9)
    >>> print(result.by_nominal[0]["coverage"], result.by_nominal[0].verdict)
    0.700 [0.633, 0.760] under-covered
    """
    bins = _validate.whole(bins, "bins", least=1)
    settings = CoverageSettings.checked(
        bins=bins, eta=eta, margin=margin, interval=interval, resamples=resamples, seed=seed, level=level
    )
    rows = IntervalRows.with_truth(y_true, _without_predictions(intervals), sample_weight)
    job = CoverageEvaluation.prepare(rows, nominal, cluster, groups or {}, features or {}, settings)
    rows = job.rows
    losses, positive = winkler_losses(rows, job.by_nominal), Scale(low=0.0, mass=rows.rows_by_unit())
    for nominal_index, target in enumerate(job.by_nominal.tolist()):
        covered, width = rows.covered[nominal_index], rows.width[nominal_index]
        names = ("coverage", "mean_width", "winkler_score")
        job.add(
            means_statistic(names, (covered, width, losses[nominal_index]), rows),
            [job.proportion, positive, winkler_scale(rows, nominal_index, losses[nominal_index], target)],
            nominal_index,
        )
        criterion = (rows.truth, covered, width)
        criterion_ = criterion_statistic(CRITERION, *criterion, rows, eta=settings.eta, level=target)
        job.add(criterion_, WIDTH_CRITERION, nominal_index)
        ranked = rows.ranked_width[nominal_index]
        strata = Strata.of_rows(ranked, covered, rows, bins=1 if rows.have_one(ranked) else bins)
        by_width = strata.statistic("size_stratified_coverage")
        job.add(by_width, job.proportion, nominal_index, job.chunks(strata, ranked))
        hsic_rows = rows if job.clusters <= MOST_HSIC_CLUSTERS else rows.in_units(None)
        job.add(width_hsic_statistic(hsic_rows, nominal_index), dependence_scale(rows), nominal_index)
        job.add_quantiles(nominal_index)
        job.add_groups(nominal_index)
        job.add_features(nominal_index)
    if len(job.by_nominal) > 1:
        loss = weighted_interval_losses(rows, job.by_nominal, None)
        job.add(means_statistic(("weighted_interval_score",), (loss,), rows), positive, None)
    return job.finish("intervals", progress)


def evaluate_sets(
    y_true: ArrayLike,
    sets: ArrayLike,
    *,
    nominal: float | Sequence[float],
    cluster: ArrayLike | None = None,
    groups: Groups | None = None,
    features: Groups | None = None,
    labels: Sequence[Any] | None = None,
    classes: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    bins: int | None = None,
    margin: float = 0.0,
    interval: str = "jackknife",
    resamples: int | None = None,
    seed: int = 42,
    level: float = 0.95,
    progress: Progress | None = None,
) -> CoverageResult:
    """Evaluate prediction sets with one or several nominal coverages; coverage by true class is always included.

    Args:
        y_true: class indices; the classes themselves if `classes` is passed.
        sets: booleans (rows, classes), or (rows, classes, levels) for several nominal coverages; or the pair that
            MAPIE's ``predict_set`` returns, predictions and sets.
        nominal: the nominal coverage of the sets; one for each level.
        cluster: the cluster of each row. Default: each row is its own cluster.
        groups: labels by the name of the grouping, for coverage by group.
        features: numbers by the name of the feature, for coverage by each feature and the slab of worst coverage.
        labels: the names of the classes, for the report, if `y_true` contains indices.
        classes: the class of each column of `sets`, such as ``model.classes_``, if `y_true` contains classes.
        sample_weight: multiplicities.
        bins: number of strata of neighbouring set sizes. Default: one stratum per set size.
        margin: the difference between coverage and nominal coverage that does not matter for the verdict. Default: 0.
        interval: the method of the confidence intervals of metrics: "jackknife", "percentile", "bca" or "none".
        resamples: number of bootstrap resamples. Default: 10,000 for a bootstrap interval, otherwise 0.
        seed: the seed of the resamples.
        level: the confidence level of the intervals of metrics.
        progress: called with the number of resamples done since the last call.

    >>> truth = [0, 1] * 50
    >>> result = evaluate_sets(truth, [[True, True]] * 100, nominal=0.9)
    >>> print(result.by_nominal[0]["mean_width"], result.by_nominal[0].verdict)
    2.000 [1.924, 2.000] over-covered
    """
    settings = CoverageSettings.checked(
        bins=bins, eta=0.0, margin=margin, interval=interval, resamples=resamples, seed=seed, level=level
    )
    members = _without_predictions(sets)
    if classes is not None:
        y_true, labels = _indices(y_true, classes, labels)
    rows = SetRows.with_truth(y_true, members, sample_weight)
    borders = size_borders(rows.classes, bins)
    uppers = np.r_[borders[1:] - 1, rows.classes]
    names = _class_names(labels, rows.classes)
    by_class = np.array([names[nominal_index] for nominal_index in rows.truth], dtype=object)
    groupings = {TRUE_CLASS: by_class, **(groups or {})}
    job = CoverageEvaluation.prepare(rows, nominal, cluster, groupings, features or {}, settings)
    rows = job.rows
    for nominal_index in range(len(job.by_nominal)):
        covered, size = rows.covered[nominal_index], rows.width[nominal_index]
        metrics = ("coverage", "mean_width", "singleton_rate", "empty_rate")
        kinds = [
            job.proportion,
            set_size_scale(rows, size),
            job.proportion,
            job.proportion,
        ]
        job.add(
            means_statistic(metrics, (covered, size, size == 1.0, size == 0.0), rows), kinds, nominal_index
        )
        stratum = size_stratum(size, borders)
        parts = [
            job.part(describe_range(low, high, ".0f"), float(low), float(high), stratum == number)
            for number, (low, high) in enumerate(zip(borders.tolist(), uppers.tolist(), strict=True))
        ]
        sizes = groups_statistic(covered, stratum, len(borders), rows, name="size_stratified_coverage")
        job.add(sizes.only(*range(len(borders) + 1)), job.proportion, nominal_index, parts)
        job.add_quantiles(nominal_index)
        job.add_groups(nominal_index)
        job.add_features(nominal_index)
    return job.finish("sets", progress)


def evaluate_quantiles(
    y_true: ArrayLike,
    quantiles: ArrayLike,
    *,
    probabilities: Sequence[float],
    cluster: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    interval: str = "jackknife",
    resamples: int | None = None,
    seed: int = 42,
    level: float = 0.95,
    progress: Progress | None = None,
) -> QuantileResult:
    """Evaluate predictive distributions given as quantiles: pinball losses and the histogram of ``F(y)``.

    Args:
        y_true: the true values.
        quantiles: (rows, probabilities), not descending within a row.
        probabilities: the probabilities of the columns, ascending.
        cluster: the cluster of each row. Default: each row is its own cluster.
        sample_weight: multiplicities.
        interval: the method of the confidence intervals of metrics: "jackknife", "percentile", "bca" or "none".
        resamples: number of bootstrap resamples. Default: 10,000 for a bootstrap interval, otherwise 0.
        seed: the seed of the resamples.
        level: the confidence level of the intervals of metrics.
        progress: called with the number of resamples done since the last call.

    >>> truth = np.arange(100.0)
    >>> result = evaluate_quantiles(truth, np.full((100, 1), 49.5), probabilities=[0.5])
    >>> print(result.pinball[0.5], result.pit[0].proportion)
    12.500 [11.141, 14.025] 0.500 [0.402, 0.598]
    """
    rows = QuantileRows.checked(y_true, quantiles, probabilities, sample_weight)
    rows, _, intervals = intervals_over(
        rows, cluster, interval=interval, resamples=resamples, seed=seed, level=level
    )
    n = len(rows)
    scales = {
        pinball_statistic(rows): Scale(low=0.0, mass=rows.rows_by_unit()),
        pit_statistic(rows): proportion_scale(rows),
    }
    replicates = intervals.replicate(scales, progress)
    pinball, proportions = (
        intervals.estimates(statistic.points, replicates[statistic], [scale] * len(statistic.names), n=n)
        for statistic, scale in scales.items()
    )
    edges = rows.edges.tolist()
    pit = tuple(PitBin(*bounds) for bounds in zip(edges[:-1], edges[1:], proportions, strict=True))
    return QuantileResult(dict(zip(rows.probabilities.tolist(), pinball, strict=True)), pit)


def _without_predictions(predicted: Any) -> Any:
    """Return the intervals or sets; MAPIE returns them in a pair, after the point predictions."""
    pair = isinstance(predicted, tuple) and len(predicted) == 2
    return (
        predicted[1] if pair and np.ndim(predicted[0]) == 1 and np.ndim(predicted[1]) in (2, 3) else predicted
    )


def _indices(
    y_true: ArrayLike, classes: ArrayLike, labels: Sequence[Any] | None
) -> tuple[NDArray[np.intp], list[Any]]:
    """Return the index of every true class among `classes`, and the names of the classes."""
    if labels is not None:
        raise ArgumentError(
            "classes and labels both name the classes; pass only classes= if y_true contains classes"
        )
    names = _validate.one_dimensional(classes, "classes").tolist()
    indices = class_index(column(y_true, "y_true"), [str(name) for name in names])
    unknown = indices < 0
    if unknown.any():
        raise DataError(
            f"y_true is not one of the {len(names)} classes at row {int(np.argmax(unknown))} "
            f"({int(unknown.sum())} such rows); pass all classes in classes="
        )
    return indices, names


def _class_names(labels: Sequence[Any] | None, classes: int) -> list[Any]:
    names = list(range(classes)) if labels is None else list(labels)
    if len(names) != classes or len(set(names)) != classes:
        raise ArgumentError(
            f"labels, or classes, must name each of the {classes} classes once, got {len(set(names))} names"
        )
    return names
