"""Texts for a paper: the methods paragraph of a result, and its tables in Markdown and LaTeX."""

from __future__ import annotations

from typing import TYPE_CHECKING

import abstain
from abstain.evaluation.conformal import CoverageResult
from abstain.metrics.registry import metric_name
from abstain.report.coverage import coverage_tables
from abstain.report.tables import render
from abstain.report.views import format_count, is_usual, tables

if TYPE_CHECKING:
    from collections.abc import Sequence

    from abstain.evaluation import Result

_RISK = "risk_at_coverage"
_BOOTSTRAPS = {"percentile": "percentile", "bca": "BCa"}
# Words of `Estimate.method`, and how they are described.
_FORMS = {
    "Wilson's score interval": "Wilson score intervals for bounded metrics",
    "logarithmic scale": "on a logarithmic scale for metrics without an upper bound",
    "around the debiased value": "around the debiased value for binned errors",
    "upper end only": "upper ends only for metrics that are positive by chance",
}


def render_result(result: Result | CoverageResult, form: str) -> str:
    """Return the tables of a result as "markdown", "latex" or another format of `abstain.report.tables.render`."""
    all_tables = coverage_tables(result) if isinstance(result, CoverageResult) else tables(result)
    return render(all_tables, form)


def methods_paragraph(result: Result) -> str:
    """Return a paragraph for the methods section of a paper; see `Result.methods`."""
    sentences = _describe_data(result)
    if any(system.population.items for system in result.systems.values()):
        sentences += [
            *_describe_loss(result),
            *_describe_metrics(result),
            *_describe_intervals(result),
            *_describe_comparison(result),
        ]
    sentences.append(f"All numbers were computed with abstain {abstain.__version__}.")
    return " ".join(sentences)


def _describe_data(result: Result) -> list[str]:
    """Return the number of items and clusters, the coverage, and the excluded items."""
    matching, noun = result.matching, result.cluster_noun
    if matching is not None and not matching.paired:
        return _describe_samples(result)
    if matching is not None:
        compared = f"The systems {_listed([*result.systems])} were compared on"
        by = "the order of rows" if matching.by == ("rows",) else " and ".join(matching.by)
        items = _count_items(matching.evaluated, matching.clusters, noun)
        coverages = [
            f"{_percent(system.coverage.value)} for {name}" for name, system in result.systems.items()
        ]
        excluded = {
            "that not all systems had": matching.total - matching.shared,
            "that failed or had no label in at least one system": matching.shared - matching.evaluated,
        }
        return [
            f"{compared} {items}, matched by {by}.",
            *([f"The coverage was {_listed(coverages)}."] if matching.evaluated else []),
            *_describe_excluded(excluded),
        ]
    population = result.population
    excluded = {"that failed": population.items_failed, "without a label": population.items_unscored}
    if not population.items:
        return ["No item could be evaluated.", *_describe_excluded(excluded)]
    items = _count_items(population.items, population.included, noun)
    answered = "The system answered all of them."
    if population.abstained:
        coverage = _percent(result.only.coverage.value)
        answered = f"The system answered {population.answered:,} of them (a coverage of {coverage})"
        answered += f" and declined {population.abstained:,}."
    return [f"The evaluation included {items}.", answered, *_describe_excluded(excluded)]


def _describe_samples(result: Result) -> list[str]:
    """Return the number of items and clusters of independent samples, their coverages, and the excluded items."""
    populations = {name: system.population for name, system in result.systems.items()}
    samples = [
        f"{_count_items(each.items, each.included, result.cluster_noun)} for {name}"
        for name, each in populations.items()
    ]
    coverages = [f"{_percent(system.coverage.value)} for {name}" for name, system in result.systems.items()]
    excluded = {
        "that failed": sum(each.items_failed for each in populations.values()),
        "without a label": sum(each.items_unscored for each in populations.values()),
    }
    return [
        f"The systems {_listed([*result.systems])} have different items: {_listed(samples)}.",
        f"The coverage was {_listed(coverages)}.",
        *_describe_excluded(excluded),
    ]


def _count_items(items: int, clusters: int, noun: str) -> str:
    if items == clusters:
        return f"{format_count(items, 'item')}, treated as independent"
    return f"{format_count(items, 'item')} of {format_count(clusters, noun)}"


def _describe_excluded(excluded: dict[str, int]) -> list[str]:
    return [
        f"{format_count(count, 'item')} {reason} {'was' if count == 1 else 'were'} excluded."
        for reason, count in excluded.items()
        if count
    ]


def _describe_loss(result: Result) -> list[str]:
    loss = result.loss
    return [] if loss is None else [f"The loss of an answer was {loss.name} = {loss.definition}."]


def _describe_metrics(result: Result) -> list[str]:
    """Return the confidences, the metrics and the groups."""
    sentences = []
    confidences = list(
        dict.fromkeys(name for system in result.systems.values() for name in system.confidences.values())
    )
    if confidences == ["confidence"]:
        sentences.append("Answers were ranked by their confidence.")
    elif confidences:
        plural = "" if len(confidences) == 1 else "s"
        sentences.append(f"Answers were ranked by the confidence{plural} {_listed(confidences)}.")
    keys = [key for key in result.specifications if key.partition("@")[0] != _RISK]
    names = [metric_name(key) for key in keys]
    coverages = [key.partition("@")[2] for key in result.specifications if key.partition("@")[0] == _RISK]
    if coverages:
        names.append(f"the selective risk at coverage {_listed(coverages)}")
    metrics = f"The metrics were {_listed(names)}." if len(names) > 1 else f"The metric was {names[0]}."
    areas = any(metric.family.has_convention for metric in result.specifications.values())
    if areas:
        metrics += f" Areas under curves were integrated in the convention {result.settings.convention}."
    sentences.append(metrics)
    table = result.first.metrics
    if table is not None and table.groups:
        sentences.append(f"Metrics were also computed by group ({_listed(table.by)}).")
    return sentences


def _describe_intervals(result: Result) -> list[str]:
    """Return the method, the level and the number of clusters of the confidence intervals."""
    settings, intervals = result.settings, result.first.basis.intervals
    estimates = [each for system in result.systems.values() for each in system.estimates.values()]
    estimates += [each.estimate for each in result.differences]
    methods = {each.method for each in estimates if each.interval is not None}
    level = f"{100 * settings.level:g}% confidence intervals were"
    clusters = format_count(intervals.clusters, result.cluster_noun)
    if not methods:
        return ["No confidence intervals were computed."]
    sentences = []
    if not any(map(is_usual, methods)):
        sentences.append(f"{level} exact bounds, because all of {clusters} had the same values.")
    elif settings.interval in _BOOTSTRAPS:
        resamples = f"{settings.resamples:,} resamples of {clusters}, seed {settings.seed}"
        method = _BOOTSTRAPS[settings.interval]
        sentences.append(f"{level} computed with a cluster bootstrap ({method} method, {resamples}).")
    else:
        groups = intervals.jackknife_weights.vectors
        left_out = clusters if groups == intervals.clusters else f"{groups} groups of {clusters}"
        sentences.append(f"{level} computed with a jackknife over {left_out} and the t distribution.")
        if any(key.group for key in result.first.estimates):
            sentences.append("Those of groups were computed over the clusters of each group.")
        forms = [text for words, text in _FORMS.items() if any(words in method for method in methods)]
        if forms:
            sentences.append(f"Intervals of single metrics were {_listed(forms)}.")
    if any(map(is_usual, methods)) and any(method.startswith("exact bound") for method in methods):
        sentences.append("If all clusters had the same value, the interval was an exact bound.")
    if settings.interval == "jackknife" and any(each.percentile is not None for each in estimates):
        resamples = f"{settings.resamples:,} resamples, seed {settings.seed}"
        sentences.append(
            f"In addition, percentile intervals of a cluster bootstrap were computed ({resamples})."
        )
    return sentences


def _describe_comparison(result: Result) -> list[str]:
    """Return how systems were compared: differences, matched coverage, correction and margin."""
    compared = [each for each in result.differences if each.compared]
    if not compared:
        return []
    settings = result.settings
    sentences = ["Systems were compared by paired differences over the same items."]
    if settings.unpaired:
        sentences = ["Systems were compared as independent samples."]
    if settings.reference is not None:
        sentences.append(f"Every system was compared with {settings.reference}.")
    matched = dict.fromkeys(each.metric for each in compared if each.matched)
    if matched:
        names = _listed(["the selective risk" if name == "risk" else metric_name(name) for name in matched])
        were = "was" if len(matched) == 1 else "were"
        sentences.append(
            f"{names[:1].upper()}{names[1:]} {were} compared at matched coverage, the largest coverage that both "
            "systems of a pair reached."
        )
    pairs = max(each.family for each in compared)
    tests = f"Differences were tested two-sided at a level of {1.0 - settings.level:.3g}"
    if pairs > 1:
        tests += f", and p-values were corrected with Holm's method for {pairs} pairs of systems"
    sentences.append(f"{tests}.")
    if settings.simultaneous and pairs > 1:
        sentences.append("Confidence intervals of differences were simultaneous for all pairs.")
    if settings.margin is not None:
        sentences.append(f"The margin of equivalence and non-inferiority was {settings.margin:g}.")
    return sentences


def _percent(proportion: float) -> str:
    return f"{100.0 * proportion:.1f}%"


def _listed(names: Sequence[str]) -> str:
    """Return names with commas and "and".

    >>> _listed(["a"]), _listed(["a", "b"]), _listed(["a", "b", "c"])
    ('a', 'a and b', 'a, b and c')
    """
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last
