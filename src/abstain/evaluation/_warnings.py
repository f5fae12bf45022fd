"""The warnings of an evaluation, each with a stable code and a sentence."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from abstain.confidence import no_confidence
from abstain.errors import AggregationError, ResultWarning, list_names
from abstain.evaluation._differences import same_coverage
from abstain.inference import number_text
from abstain.losses import possible_scale
from abstain.metrics.curves import binning_bounds

if TYPE_CHECKING:
    from collections.abc import Mapping

    from abstain.evaluation._metric_tables import Key
    from abstain.evaluation._result import Population, Settings, SystemResult
    from abstain.inference import Estimate
    from abstain.items import Items
    from abstain.metrics import Columns, RiskCoverageCurve, TieSensitivity

# By method: with fewer clusters, intervals covered too rarely in simulations.
FEW_CLUSTERS = {"jackknife": 10, "percentile": 40, "bca": 40}
# How often the 95% interval of an AURC contained the true value with 10 clusters (see simulations).
_SIMULATED = "95% intervals of the AURC contained the true value 90 times in 100 with 10 clusters, and"
SIMULATED_COVERAGE = {
    "percentile": f"{_SIMULATED} 61 times in 100 if errors were rare",
    "bca": f"{_SIMULATED} 63 times in 100 if errors were rare",
}
# The metrics whose bounds are in the warning about items that are not evaluated, and at most how many bounds.
_BOUNDED = ("augrc", "aurc", "accuracy", "selective_accuracy")
_MOST_BOUNDED = 3
# Half a unit of the third decimal. If binning is less exact than this, the table is loaded, unless an engine was named.
_LARGEST_BOUND = 0.0005
# The code of the warning that comes before all others, because it concerns every number.
POSSIBLE_SCALE = "possible_scale"
NEVER_EQUAL = (
    "no prediction equals its label; check the columns of truth and prediction, and the spelling of labels"
)
# An area without answers is 0, which is the best value, and must not look like a good result.
EMPTY_RANGE = "no item was answered, so the area is 0 over an empty range"


def general_warnings(
    items: Items, population: Population, settings: Settings, *, ranked: bool, loss_named: bool
) -> tuple[ResultWarning, ...]:
    """Return the warnings that apply to all numbers of a system."""
    noun = items.unit_noun
    if not population.items:
        return (ResultWarning("nothing_evaluated", nothing_evaluated(items)),)
    column = items.provenance.get("possible_cluster")
    messages: dict[str, str] = {POSSIBLE_SCALE: "" if loss_named else scale_hint(items)}
    if not population.answered:
        messages["nothing_answered"] = (
            "no item was answered: every area is 0 over an empty range, which is not a good result"
        )
    if items.never_equal:
        messages["never_equal"] = NEVER_EQUAL
    if not ranked:
        messages["no_confidence"] = f"areas are not computed: {no_confidence(items)}"
    messages["looks_like_refusals"] = refusal_hint(items)
    if population.failed:
        one = population.failed == 1
        messages["failed_clusters"] = (
            f"{population.failed} of {population.total} {noun}s {'is' if one else 'are'} not in any number: "
            f"{'it failed or has' if one else 'they failed or have'} no label"
        )
    if column and "cluster" in items.unnamed:
        messages["cluster_unnamed"] = (
            f"every item is treated as independent, but the column {column!r} has repeated names; if items with the "
            "same name belong together, name the column (--cluster, cluster=)"
        )
    if items.aggregation is not None and items.aggregation.random_units:
        messages["rows_unnamed"] = (
            "every row is treated as independent, but rows have no names, so the last digits of the intervals depend "
            "on the partitions of the table; name a cluster (--cluster, cluster=)"
        )
    warnings = [ResultWarning(code, message) for code, message in messages.items() if message]
    return (*warnings, *few_clusters(population.included, noun, settings.interval))


def scale_hint(items: Items) -> str:
    """Return how to declare a scale if the labels look like scores, otherwise an empty text."""
    scale = possible_scale(items)
    if scale is None:
        return ""
    low, high = scale
    return (
        f"truth and prediction are whole numbers from {low} to {high}, but every answer counts only as right or wrong "
        f"(loss zero_one). If these are scores, add --scale {low},{high} --loss abs (scale=({low}, {high}), "
        'loss="abs"). If they are classes, add --loss zero_one (loss="zero_one")'
    )


def refusal_hint(items: Items) -> str:
    """Return how to treat answers as abstentions that look like refusals; empty if a rule was set or none does."""
    refusals = items.provenance.get("refusals")
    if refusals is None or "abstention_rule" in items.provenance or items.abstained.any():
        return ""
    rule = f'"phrases:{"|".join(refusals["phrases"])}"'
    return (
        f"{refusals['count']:,} of {refusals['answers']:,} answers look like refusals; to treat them as abstentions, "
        f"add --abstain-rule {rule} (abstain_rule=)"
    )


def left_out_warnings(estimates: Mapping[Key, Estimate], population: Population) -> tuple[ResultWarning, ...]:
    """Return a warning with the bounds of metrics: their values if all missing items were wrong, or right."""
    # Confidences with the same bounds, such as the same signal by two names, are reported together.
    confidences: dict[tuple[str, str], list[str]] = {}
    for name in _BOUNDED:
        for key, estimate in estimates.items():
            if key.metric == name and estimate.bounds is not None:
                ends = " or ".join(map(number_text, estimate.bounds))
                confidences.setdefault((name, ends), []).append(key.confidence)
    if not confidences:
        return ()
    parts = [
        f"{metric}{' by ' * any(names)}{' and '.join(filter(None, names))} would be {ends}"
        for (metric, ends), names in list(confidences.items())[:_MOST_BOUNDED]
    ]
    count = population.items_failed + population.items_unscored
    missing = "are not in any number: they failed or have no label"
    condition = "if all of them were wrong, or all right"
    if count == 1:
        missing = "is not in any number: it failed or has no label"
        condition = "if it were wrong, or right"
    message = f"{count} of {population.items + count} items {missing}; {condition}, {', '.join(parts)}"
    return (ResultWarning("left_out", message),)


def nothing_evaluated(items: Items) -> str:
    """Return why there is no item to evaluate."""
    counts = items.counts
    return (
        f"there is no item to evaluate: of {counts.total} items, {counts.failed} failed and {counts.unscored} have no "
        "label"
    )


def few_clusters(clusters: int, noun: str, interval: str = "jackknife") -> list[ResultWarning]:
    """Return a warning if intervals are computed over few clusters."""
    enough = FEW_CLUSTERS.get(interval, 0)
    if clusters >= enough:
        return []
    many = f"{clusters} {noun}{'' if clusters == 1 else 's'}"
    message = (
        f"the confidence intervals are based on {many}; with fewer than {enough}, they can contain the true value less "
        "often than their level states"
    )
    if interval in SIMULATED_COVERAGE:
        message += f": in simulations {SIMULATED_COVERAGE[interval]}"
    return [ResultWarning("few_clusters", message)]


def binned(name: str, items: Items, rows: Columns, curve: RiskCoverageCurve) -> tuple[ResultWarning, ...]:
    """Return how exact the numbers of a confidence are that was aggregated in bins of several values each.

    Raises:
        AggregationError: bins are too coarse for the printed digits, and the caller did not name the engine.
    """
    masks = [signal.binned for signal in items.signals.values() if signal.binned is not None]
    if not masks or not len(curve):
        return ()
    is_bin = np.isin(curve.threshold, rows.confidence[rows.answered & np.logical_or.reduce(masks)])
    if not is_bin.any():
        return ()
    augrc, aurc = binning_bounds(curve, rows.worst_loss, is_bin)
    if (
        max(augrc, aurc) >= _LARGEST_BOUND
        and items.aggregation is not None
        and not items.aggregation.requested
    ):
        table = str(items.provenance.get("path", "the table"))
        raise AggregationError(table, f"with bins of {name}, its AURC would be exact only to {aurc:.1g}")
    widest = float(np.diff(curve.coverage, prepend=0.0)[is_bin].max())
    message = (
        f"{name} is continuous and was aggregated in {len(curve):,} bins: its AUGRC is exact to {augrc:.1g}, its AURC "
        f"to {aurc:.1g}; its other metrics are computed from the bins, each with at most {100.0 * widest:.2g}% of the "
        "items"
    )
    return (ResultWarning("binned", message),)


def variant_warnings(
    metrics: Mapping[str, Estimate], ties: TieSensitivity, settings: Settings, *, ranks: int
) -> tuple[ResultWarning, ...]:
    """Return the warnings of one confidence: ties that matter, and an area below its optimum.

    Args:
        metrics: the estimates of the selective metrics.
        ties: how much the order within ties can change the AURC.
        settings: how the areas were computed.
        ranks: number of different confidences of the answered items.
    """
    warnings = []
    best, worst = number_text(ties.best), number_text(ties.worst)
    if ranks == 1 and ties.matters:
        message = (
            "every answered item has the same confidence, so it cannot rank them; name another confidence"
        )
        warnings.append(ResultWarning("constant_confidence", message))
    elif ties.matters and best != worst:
        message = (
            f"{100 * ties.tied_proportion:.0f}% of the answered items have the same confidence as another item: the "
            f"order within ties could put the AURC anywhere from {best} to {worst}"
        )
        warnings.append(ResultWarning("ties", message))
    excess = metrics["eaurc"].value
    if settings.convention == "trapezoid" and not math.isnan(excess) and excess < -1e-12:
        message = (
            "the AURC is below its optimum, because the trapezoidal rule underestimates it for large tied blocks; use "
            "the convention interpolated (--convention, convention=)"
        )
        warnings.append(ResultWarning("below_optimal", message))
    return tuple(warnings)


def comparison_warnings(systems: Mapping[str, SystemResult]) -> list[ResultWarning]:
    """Return the warnings about a comparison itself: systems without answers, and coverages that differ."""
    warnings = []
    without_answers = [name for name, system in systems.items() if not system.population.answered]
    if without_answers:
        message = "no item was answered, and systems without answers are neither compared nor ranked"
        warnings.append(ResultWarning("nothing_answered", f"{list_names(without_answers)}: {message}"))
    coverages = {
        name: system.coverage.value for name, system in systems.items() if name not in without_answers
    }
    if not same_coverage(*coverages.values()):
        listed = list_names(f"{name} {coverage:.3f}" for name, coverage in coverages.items())
        how = "at the largest coverage that both reach"
        if not any(system.confidences for system in systems.values()):
            how += "; without a confidence, the answers up to that coverage are chosen at random"
        message = (
            f"the systems answer different proportions of the items ({listed}), and declining more items lowers areas "
            f"and error rates: each pair is compared {how}"
        )
        warnings.append(ResultWarning("coverage_differs", message))
    return warnings
