"""Judging intervals and sets: does coverage hold, where does it fail, and how certain is that?

`evaluate_intervals` and `evaluate_sets` take truths and predictions at one or several levels, with clusters and
groups, and give every figure of `abstain.metrics.intervals` and `abstain.metrics.sets` an interval from the
cluster bootstrap. Coverage also gets the exact binomial interval, and a verdict: covered, under-covered or undecided.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from abstain import _validate
from abstain.errors import ArgumentError
from abstain.evaluation._conformal_job import MOST_HSIC_CLUSTERS, Job, in_words
from abstain.evaluation._conformal_results import (
    ConformalEvaluation,
    ConformalSettings,
    LevelResult,
    PitBin,
    QuantileEvaluation,
    Stratum,
)
from abstain.inference import Draws, estimates, points, replicates
from abstain.metrics._coverage import CriterionPlan, Frame, QuantilePlan, StrataPlan, groups_plan, means_plan
from abstain.metrics._gauss import HsicPlan
from abstain.metrics._predictions import IntervalRows, SetRows, named_groups
from abstain.metrics._strata import size_borders, size_stratum
from abstain.metrics.intervals import weighted_interval_losses, winkler_losses
from abstain.metrics.quantiles import QuantileRows, pinball_plan, pit_plan

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import ArrayLike

    Progress = Callable[[int], None]
    Groups = Mapping[str, ArrayLike]

__all__ = [
    "ConformalEvaluation",
    "ConformalSettings",
    "LevelResult",
    "PitBin",
    "QuantileEvaluation",
    "Stratum",
    "evaluate_intervals",
    "evaluate_quantiles",
    "evaluate_sets",
]

TRUE_CLASS = "true class"
_QUANTILES = np.array([0.5, 0.95])


def evaluate_intervals(
    y_true: ArrayLike,
    intervals: ArrayLike,
    *,
    level: float | Sequence[float],
    clusters: ArrayLike | None = None,
    groups: Groups | None = None,
    features: Groups | None = None,
    weights: ArrayLike | None = None,
    bins: int = 3,
    eta: float = 30.0,
    margin: float = 0.0,
    resamples: int = 2_000,
    seed: int = 42,
    confidence_level: float = 0.95,
    progress: Progress | None = None,
) -> ConformalEvaluation:
    """Judge prediction intervals at one or several levels.

    Args:
        y_true: the truths.
        intervals: (rows, 2), or (rows, 2, levels) for several levels.
        level: the level that the intervals claim, one for each level of them.
        clusters: ids of what belongs together; each row is a cluster of its own when left out.
        groups: labels by the name of the grouping, such as ``{"site": [...]}``, to see where coverage fails.
        features: numbers by the name of the feature: coverage by each, and the slab of worst coverage in all.
        weights: multiplicities.
        bins: how many strata of width.
        eta: how hard the width criterion punishes a coverage away from the level.
        margin: how far below its level a coverage still counts as covered.
        resamples: how many times the clusters are drawn; 0 for no bootstrap.
        seed: the same seed gives the same intervals.
        confidence_level: the level of the intervals around the figures.
        progress: called with the number of resamples done since the last call.

    >>> truth = np.arange(200.0)
    >>> bounds = np.column_stack([truth - 1, truth + 1])
    >>> bounds[:60] += 5                                    # the first 60 miss
    >>> result = evaluate_intervals(truth, bounds, level=0.9, resamples=200)
    >>> print(result.levels[0]["coverage"], result.levels[0].verdict)
    0.700 [0.640, 0.755] under-covered
    """
    settings = _settings(
        _validate.whole(bins, "bins", least=1), eta, margin, resamples, seed, confidence_level
    )
    rows = IntervalRows.with_truth(y_true, intervals, weights)
    job = Job.prepare(rows, level, clusters, groups or {}, features or {}, settings)
    frame, truth = job.frame, rows.known_truth
    losses = winkler_losses(rows, job.levels)
    for place, target in enumerate(job.levels.tolist()):
        covered, width = rows.covered[place], rows.width[place]
        names = ("coverage", "mean_width", "winkler_score")
        job.add(means_plan(names, (covered, width, losses[place]), frame), place)
        name = "coverage_width_criterion"
        job.add(
            CriterionPlan.build(name, truth, covered, width, frame, eta=settings.eta, level=target), place
        )
        strata = StrataPlan.build(width, covered, frame, bins=bins, name="size_stratified_coverage")
        job.add(strata, place, job.key_parts(strata, width))
        cluster = frame.cluster if frame.clusters <= MOST_HSIC_CLUSTERS else None
        hsic = HsicPlan.build(width, covered, kernel_sizes=(1.0, 1.0), weight=frame.weight, cluster=cluster)
        job.add(hsic, place)
        job.add(QuantilePlan.build(width, frame, probabilities=_QUANTILES, name="width_quantile"), place)
        job.add_groups(place)
        job.add_features(place)
    if len(job.levels) > 1:
        loss = weighted_interval_losses(rows, job.levels, None)
        job.add(means_plan(("weighted_interval_score",), (loss,), frame), None)
    return job.finish("intervals", progress)


def evaluate_sets(
    y_true: ArrayLike,
    sets: ArrayLike,
    *,
    level: float | Sequence[float],
    clusters: ArrayLike | None = None,
    groups: Groups | None = None,
    features: Groups | None = None,
    labels: Sequence[Any] | None = None,
    weights: ArrayLike | None = None,
    bins: int | None = None,
    margin: float = 0.0,
    resamples: int = 2_000,
    seed: int = 42,
    confidence_level: float = 0.95,
    progress: Progress | None = None,
) -> ConformalEvaluation:
    """Judge prediction sets at one or several levels; coverage by true class is always among the groups.

    Args:
        y_true: class indices.
        sets: booleans (rows, classes), or (rows, classes, levels) for several levels.
        level: the level that the sets claim, one for each level of them.
        clusters: ids of what belongs together; each row is a cluster of its own when left out.
        groups: labels by the name of the grouping, to see where coverage fails.
        features: numbers by the name of the feature: coverage by each, and the slab of worst coverage in all.
        labels: the names of the classes, for the report.
        weights: multiplicities.
        bins: None for one stratum a set size, else how many groups of neighbouring sizes.
        margin: how far below its level a coverage still counts as covered.
        resamples: how many times the clusters are drawn; 0 for no bootstrap.
        seed: the same seed gives the same intervals.
        confidence_level: the level of the intervals around the figures.
        progress: called with the number of resamples done since the last call.

    >>> truth = [0, 1] * 50
    >>> result = evaluate_sets(truth, [[True, True]] * 100, level=0.9, resamples=100)
    >>> print(result.levels[0]["mean_width"], result.levels[0].verdict)
    2.000 [2.000, 2.000] covered
    """
    settings = _settings(bins, 0.0, margin, resamples, seed, confidence_level)
    rows = SetRows.with_truth(y_true, sets, weights)
    borders = size_borders(rows.classes, bins)
    uppers = np.r_[borders[1:] - 1, rows.classes]
    names = _class_names(labels, rows.classes)
    by_class = np.array([names[place] for place in rows.known_truth], dtype=object)
    job = Job.prepare(
        rows, level, clusters, {TRUE_CLASS: by_class, **(groups or {})}, features or {}, settings
    )
    for place in range(len(job.levels)):
        covered, size = rows.covered[place], rows.width[place]
        figures = ("coverage", "mean_width", "singleton_rate", "empty_rate")
        job.add(means_plan(figures, (covered, size, size == 1.0, size == 0.0), job.frame), place)
        stratum = size_stratum(size, borders)
        parts = [
            job.part(in_words(low, high, ".0f"), float(low), float(high), stratum == number)
            for number, (low, high) in enumerate(zip(borders.tolist(), uppers.tolist(), strict=True))
        ]
        plan = groups_plan(covered, stratum, len(borders), job.frame, name="size_stratified_coverage")
        job.add(plan, place, parts)
        job.add(QuantilePlan.build(size, job.frame, probabilities=_QUANTILES, name="width_quantile"), place)
        job.add_groups(place)
        job.add_features(place)
    return job.finish("sets", progress)


def evaluate_quantiles(
    y_true: ArrayLike,
    quantiles: ArrayLike,
    *,
    probabilities: Sequence[float],
    clusters: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    resamples: int = 2_000,
    seed: int = 42,
    confidence_level: float = 0.95,
    progress: Progress | None = None,
) -> QuantileEvaluation:
    """Judge predictive distributions given as quantiles: pinball losses and the histogram of ``F(y)``.

    Args:
        y_true: the truths.
        quantiles: (rows, probabilities), not descending within a row.
        probabilities: the probabilities of the columns, ascending.
        clusters: ids of what belongs together; each row is a cluster of its own when left out.
        weights: multiplicities.
        resamples: how many times the clusters are drawn; 0 for no bootstrap.
        seed: the same seed gives the same intervals.
        confidence_level: the level of the intervals around the figures.
        progress: called with the number of resamples done since the last call.

    >>> truth = np.arange(100.0)
    >>> result = evaluate_quantiles(truth, np.full((100, 1), 49.5), probabilities=[0.5], resamples=200)
    >>> print(result.pinball[0.5], result.pit[0].share)
    12.500 [11.155, 13.815] 0.500 [0.400, 0.600]
    """
    rows = QuantileRows.checked(y_true, quantiles, probabilities, weights)
    n = len(rows.truth)
    cluster = np.arange(n) if clusters is None else named_groups(clusters, "clusters", n)[1]
    frame = Frame(n, rows.weight, cluster)
    draws = Draws(frame.clusters, resamples, seed)
    plans = [pinball_plan(rows, frame), pit_plan(rows, frame)]
    replicated = replicates(plans, draws, progress)
    pinball, shares = (
        estimates(points(plan), values, draws, n=n, level=confidence_level)
        for plan, values in zip(plans, replicated, strict=True)
    )
    edges = rows.edges.tolist()
    pit = tuple(PitBin(*bounds) for bounds in zip(edges[:-1], edges[1:], shares, strict=True))
    return QuantileEvaluation(dict(zip(rows.probabilities.tolist(), pinball, strict=True)), pit)


def _settings(
    bins: int | None, eta: float, margin: float, resamples: int, seed: int, confidence_level: float
) -> ConformalSettings:
    strength = _validate.real(eta, "eta")
    if strength < 0.0:
        raise ArgumentError(
            f"eta must be at least 0, got {strength:g}; it punishes a coverage away from the level"
        )
    return ConformalSettings(
        bins=bins,
        eta=strength,
        margin=_validate.real(margin, "margin"),
        resamples=_validate.whole(resamples, "resamples"),
        seed=_validate.seed(seed),
        confidence_level=_validate.level(confidence_level, "confidence_level"),
    )


def _class_names(labels: Sequence[Any] | None, classes: int) -> list[Any]:
    names = list(range(classes)) if labels is None else list(labels)
    if len(names) != classes or len(set(names)) != classes:
        raise ArgumentError(
            f"labels must name each of the {classes} classes once, got {len(set(names))} names"
        )
    return names
