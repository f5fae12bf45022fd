"""What the reader of an evaluation must know beside its numbers: cautions, each with a stable code and a sentence."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from abstain.evaluation._results import Caution

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from abstain.evaluation._results import Evaluation, Population, Settings, VariantDelta
    from abstain.inference import Estimate
    from abstain.metrics.selective import TieSensitivity

__all__ = ["FEW_CLUSTERS", "comparison_cautions", "few_clusters", "general_cautions", "variant_cautions"]

FEW_CLUSTERS = 20


def general_cautions(population: Population, noun: str, settings: Settings) -> tuple[Caution, ...]:
    """Return what holds for all variants: nothing answered, clusters left out, few clusters."""
    cautions = []
    if not population.answered:
        message = "nothing was answered: every area is 0 over an empty range, which must not win a comparison"
        cautions.append(Caution("nothing_answered", message))
    if population.failed:
        left_out = f"{population.failed} of {population.total} {noun}s are left out of every number"
        cautions.append(Caution("failed_clusters", f"{left_out}: failed or without truth"))
    if settings.resamples:
        cautions += few_clusters(population.included, noun)
    return tuple(cautions)


def few_clusters(clusters: int, noun: str) -> list[Caution]:
    """Return the caution that intervals over few clusters deserve, if they are few."""
    if clusters >= FEW_CLUSTERS:
        return []
    many = f"{clusters} {noun}{'' if clusters == 1 else 's'}"
    message = f"intervals rest on {many}; with fewer than {FEW_CLUSTERS} they tend to be too narrow"
    return [Caution("few_clusters", message)]


def variant_cautions(
    figures: Mapping[str, Estimate], ties: TieSensitivity, settings: Settings
) -> tuple[Caution, ...]:
    """Return what holds for one variant: ties that matter, an area below its optimum."""
    cautions = []
    if ties.matters:
        message = (
            f"{100 * ties.tied_share:.0f}% of the answered items share their confidence with others: the order of "
            f"tied items alone could put the AURC anywhere from {ties.best:.3f} to {ties.worst:.3f}"
        )
        cautions.append(Caution("ties", message))
    excess = figures["eaurc"].value
    if settings.convention == "trapezoid" and not math.isnan(excess) and excess < -1e-12:
        message = "the AURC lies below its optimum: large plateaus flatter the trapezoid; see convention interpolated"
        cautions.append(Caution("below_optimal", message))
    return tuple(cautions)


def comparison_cautions(
    deltas: Mapping[str, VariantDelta], evaluations: Sequence[Evaluation]
) -> tuple[Caution, ...]:
    """What holds for the comparison itself, then what holds for either side."""
    cautions: list[Caution] = []
    own = [caution for side in evaluations for caution in side.cautions]
    if not deltas:
        return tuple(dict.fromkeys(own))
    change = next(iter(deltas.values())).cmax
    low, high = change.interval or (change.value, change.value)
    if low > 0.0 or high < 0.0:
        ends = " and ".join(f"{next(iter(side.values())).cmax.value:.3f}" for side in evaluations)
        message = (
            f"the sides answer different shares: their areas end at coverages {ends}, and the side that answers less "
            "integrates over less; judge them at a coverage that both reach"
        )
        cautions.append(Caution("coverage_differs", message))
    return tuple(dict.fromkeys(cautions + own))
