"""The warnings of an evaluation, each with a stable code and a sentence."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from abstain.confidence import no_confidence
from abstain.errors import AggregationError, ResultWarning
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

# Below so many clusters the coverage of an interval was found to fall short in simulations, by how it is made.
FEW_CLUSTERS = {"jackknife": 10, "percentile": 40, "bca": 40}
# How often the 95% interval of an AURC held the truth with 10 clusters, and where errors were rare (see simulations).
SIMULATED_COVERAGE = {
    "percentile": "95% intervals of the AURC held the truth 90 times in 100 with 10, and 61 where errors were rare",
    "bca": "95% intervals of the AURC held the truth 90 times in 100 with 10, and 63 where errors were rare",
}
# Of which metrics it is said what the items that were left out could do to them, and of how many at most.
_BOUNDED = ("augrc", "aurc", "accuracy", "selective_accuracy")
_MOST_BOUNDED = 3
# Half a unit of the third decimal: a table whose areas are less exact in bins is loaded, unless an engine was named.
_LARGEST_BOUND = 0.0005
# The code of the warning that comes before all others: it puts every number in doubt.
POSSIBLE_SCALE = "possible_scale"
NEVER_EQUAL = (
    "no prediction ever equals its truth; are truth and prediction the right columns, and written alike?"
)
# The reason of an area where nothing was answered: 0 is the best value there is, and must not pass for one.
EMPTY_RANGE = "nothing was answered: the area over an empty range, no achievement"


def general_warnings(
    items: Items, population: Population, settings: Settings, *, ranked: bool, loss_named: bool
) -> tuple[ResultWarning, ...]:
    """Return what holds for all numbers of a system: its answers, and clusters that are few, forgotten or left out."""
    noun = items.cluster_noun
    if not population.items:
        return (ResultWarning("nothing_evaluated", nothing_evaluated(items)),)
    column = items.provenance.get("possible_cluster")
    messages: dict[str, str] = {POSSIBLE_SCALE: "" if loss_named else scale_hint(items)}
    if not population.answered:
        messages["nothing_answered"] = (
            "nothing was answered: every area is 0 over an empty range, which must not win a comparison"
        )
    if items.never_equal:
        messages["never_equal"] = NEVER_EQUAL
    if not ranked:
        messages["no_confidence"] = f"areas are not computed: {no_confidence(items)}"
    messages["looks_like_refusals"] = refusal_hint(items)
    if population.failed:
        are = "is" if population.failed == 1 else "are"
        left_out = f"{population.failed} of {population.total} {noun}s {are} left out of every number"
        messages["failed_clusters"] = f"{left_out}: failed or without truth"
    if column and "cluster" in items.unnamed:
        messages["cluster_unnamed"] = (
            f"every item counts as independent, but the column {column!r} holds names that repeat; if they belong "
            "together, name it (--cluster, cluster=)"
        )
    if items.aggregation is not None and items.aggregation.random_units:
        messages["rows_unnamed"] = (
            "every row counts as independent, and rows have no names here: which of them are left out together depends "
            "on the partitions, and the last digits of the intervals with it; name a cluster (--cluster, cluster=)"
        )
    warnings = [ResultWarning(code, message) for code, message in messages.items() if message]
    return (*warnings, *few_clusters(population.included, noun, settings.interval))


def scale_hint(items: Items) -> str:
    """Return how to declare a scale if the labels look like scores, else nothing."""
    scale = possible_scale(items)
    if scale is None:
        return ""
    low, high = scale
    return (
        f"truth and prediction are whole numbers from {low} to {high}, and answers are only right or wrong (loss "
        f"zero_one). If these are scores, add --scale {low},{high} --loss abs (scale=({low}, {high}), "
        'loss="abs"); if they are classes, add --loss zero_one (loss="zero_one")'
    )


def refusal_hint(items: Items) -> str:
    """Return how to count answers as abstentions that look like refusals, where nobody said so; else nothing."""
    refusals = items.provenance.get("refusals")
    if refusals is None or "abstention_rule" in items.provenance or items.abstained.any():
        return ""
    rule = f'"phrases:{"|".join(refusals["phrases"])}"'
    return (
        f"{refusals['count']:,} of {refusals['answers']:,} answers look like refusals; --abstain-rule {rule} "
        "(abstain_rule=) would count them as abstentions"
    )


def left_out_warnings(estimates: Mapping[Key, Estimate], population: Population) -> tuple[ResultWarning, ...]:
    """Return what the metrics could be if the items that were left out had all gone wrong, or right."""
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
    are, had = (
        ("is", "it gone wrong, or right") if count == 1 else ("are", "they all gone wrong, or all right")
    )
    lost = f"{count} of {population.items + count} items {are} left out: failed or without truth"
    message = f"{lost}; had {had}, {'; '.join(parts)}"
    return (ResultWarning("left_out", message),)


def nothing_evaluated(items: Items) -> str:
    """Return why there is no item to judge."""
    counts = items.counts
    return (
        f"there is no item to judge: of {counts.total} items {counts.failed} failed and {counts.unscored} have no "
        "truth"
    )


def few_clusters(clusters: int, noun: str, interval: str = "jackknife") -> list[ResultWarning]:
    """Return the warning that intervals over few clusters deserve, if they are few."""
    enough = FEW_CLUSTERS.get(interval, 0)
    if clusters >= enough:
        return []
    many = f"{clusters} {noun}{'' if clusters == 1 else 's'}"
    message = f"intervals rest on {many}; with fewer than {enough} they can cover less often than they say"
    if interval in SIMULATED_COVERAGE:
        message += f": in simulations {SIMULATED_COVERAGE[interval]}"
    return [ResultWarning("few_clusters", message)]


def binned(name: str, items: Items, rows: Columns, curve: RiskCoverageCurve) -> tuple[ResultWarning, ...]:
    """Return how exact the numbers of a confidence are that was counted in bins of several values each.

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
        raise AggregationError(table, f"bins of {name} would give its AURC only to {aurc:.1g}")
    widest = float(np.diff(curve.coverage, prepend=0.0)[is_bin].max())
    message = (
        f"{name} is continuous and was aggregated in {len(curve):,} bins: its AUGRC is right to {augrc:.1g}, its AURC "
        f"to {aurc:.1g}; other numbers by it are those of bins, which hold at most {100.0 * widest:.2g}% of the items "
        "each"
    )
    return (ResultWarning("binned", message),)


def variant_warnings(
    metrics: Mapping[str, Estimate], ties: TieSensitivity, settings: Settings, *, ranks: int
) -> tuple[ResultWarning, ...]:
    """Return what holds for one confidence: ties that matter, an area below its optimum.

    Args:
        metrics: the estimates of the selective metrics.
        ties: how far the order of tied items can move the AURC.
        settings: how the areas were computed.
        ranks: how many different confidences the answered items have.
    """
    warnings = []
    best, worst = number_text(ties.best), number_text(ties.worst)
    if ranks == 1 and ties.matters:
        message = "every answered item has the same confidence, so it ranks nothing; name another confidence"
        warnings.append(ResultWarning("constant_confidence", message))
    elif ties.matters and best != worst:
        message = (
            f"{100 * ties.tied_proportion:.0f}% of the answered items share their confidence with others: the order of "
            f"tied items alone could put the AURC anywhere from {best} to {worst}"
        )
        warnings.append(ResultWarning("ties", message))
    excess = metrics["eaurc"].value
    if settings.convention == "trapezoid" and not math.isnan(excess) and excess < -1e-12:
        message = "the AURC lies below its optimum: large plateaus flatter the trapezoid; see convention interpolated"
        warnings.append(ResultWarning("below_optimal", message))
    return tuple(warnings)


def comparison_warnings(systems: Mapping[str, SystemResult]) -> list[ResultWarning]:
    """Return the warnings about a comparison itself: systems that answered nothing, and coverages that differ."""
    warnings = []
    silent = [name for name, system in systems.items() if not system.population.answered]
    if silent:
        message = "answered nothing: neither compared nor ranked, because 0 over an empty range is not an achievement"
        warnings.append(ResultWarning("nothing_answered", f"{', '.join(silent)} {message}"))
    coverages = {name: system.coverage.value for name, system in systems.items() if name not in silent}
    if len(set(coverages.values())) > 1:
        listed = ", ".join(f"{name} {coverage:.3f}" for name, coverage in coverages.items())
        how = "at the largest coverage that each pair reaches"
        if not any(system.confidences for system in systems.values()):
            how += "; without a confidence, answers are left out at random"
        message = (
            f"the systems answer different proportions of the items ({listed}), and declining alone lowers areas and "
            f"error rates: they are compared {how}"
        )
        warnings.append(ResultWarning("coverage_differs", message))
    return warnings
