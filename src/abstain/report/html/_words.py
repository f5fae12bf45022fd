"""What the report says in sentences: the verdict, the comparison, and the exact definitions that were used.

Every number in a sentence is read off a result; none is computed here.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from abstain.evaluation import Comparison, Evaluation
    from abstain.evaluation._profile import Profile
    from abstain.inference import Estimate

__all__ = [
    "band_words",
    "comparison_verdict",
    "definitions",
    "difference_words",
    "evaluation_verdict",
    "interval_words",
    "listed",
]

_MANY = 4
_HALF = 0.5

_CONVENTIONS = {
    "trapezoid": "straight lines between working points, flat from 0 to the first one",
    "interpolated": "inside a plateau the loss sum grows straight, and the hyperbola of its risk is integrated exactly",
    "mean": "the mean of the selective risks after each single item, ties in expectation",
    "torch-uncertainty": "trapezoid over single items from the first item on, divided by 1 - 1/n",
}


def evaluation_verdict(evaluation: Evaluation, profile: Profile) -> list[str]:
    """Return the verdict on one set of items, a sentence or two a paragraph."""
    population = evaluation.population
    if not population.answered:
        return [
            f"Nothing was answered: all {population.items:,} items were declined. There is no risk to judge, and an "
            "area of 0 over an empty range is no achievement."
        ]
    if not profile.leader:
        return [
            f"The model answers {population.answered:,} of {population.items:,} items and declines the rest."
        ]
    leader = evaluation[profile.leader]
    points = profile.points[profile.leader]
    full = Tell(points.selective_risk[-1], points.selective_low[-1], points.selective_high[-1])
    wrong = int(points.wrong[-1])
    lines = [
        f"The model answers {population.answered:,} of {population.items:,} items and declines "
        f"{population.abstained:,}: its coverage ends at {leader.cmax}. Of what it answers, {wrong:,} "
        f"{'is' if wrong == 1 else 'are'} wrong; the mean loss is {full}."
    ]
    order = f"Ordered by {leader.name}" if len(evaluation) == 1 else f"{leader.name} orders the answers best"
    lines.append(
        f"{order}: AUGRC {leader.augrc}, where a perfect order of the same answers would have "
        f"{leader.augrc_optimal.value:.3f} and a random one {profile.random_augrc:.3f}."
    )
    half = leader.risk_at_coverage.get(_HALF)
    if half is not None and half.defined:
        lines[-1] += (
            f" At the first threshold that answers at least half of all items, the mean loss is {half}."
        )
    if profile.contrasts:
        lines.append(_contrasts(evaluation, profile))
    return lines


def _contrasts(evaluation: Evaluation, profile: Profile) -> str:
    level = f"{100 * evaluation.settings.level:g}%"
    if not evaluation.settings.resamples:
        return "Without resamples there is no telling whether the other confidences are worse by more than chance."
    close = [name for name, contrast in profile.contrasts.items() if contrast.low <= 0.0]
    worse = len(profile.contrasts) - len(close)
    parts = []
    if close:
        parts.append(f"{listed(close)} cannot be told apart from it")
    if worse:
        what = "All others are" if not close else f"{worse} other{'s are' if worse > 1 else ' is'}"
        parts.append(f"{what} worse by more than chance")
    return (
        f"{'; '.join(parts)} ({level} intervals of the paired differences in AUGRC, each for itself: "
        "whoever picks the best of many should judge it on new data)."
    )


def comparison_verdict(comparison: Comparison) -> list[str]:
    """Return the verdict on a comparison."""
    lines = []
    for name, delta in list(comparison.deltas.items())[:_MANY]:
        lines.append(f"By {name}: {difference_words(delta.augrc, 'AUGRC')}; {_coverage_words(delta.cmax)}.")
    if len(comparison.deltas) > _MANY:
        lines.append(f"The table below has the other {len(comparison.deltas) - _MANY} confidences.")
    return lines


def difference_words(change: Estimate, figure: str) -> str:
    """Return which side is better in a figure that goes down, or that one cannot tell."""
    if not change.defined:
        return f"the difference in {figure} is undefined"
    if change.interval is None:
        return f"{figure} differs by {change}, without an interval"
    low, high = change.interval
    if low <= 0.0 <= high:
        return f"cannot tell the sides apart, {figure} differs by {change}"
    return f"the {'left' if low > 0 else 'right'} side is better, {figure} differs by {change}"


def _coverage_words(change: Estimate) -> str:
    low, high = change.interval or (0.0, 0.0)
    if low > 0.0:
        return f"the right side answers more, Cmax differs by {change}"
    if high < 0.0:
        return f"the right side answers less, Cmax differs by {change}"
    return f"Cmax differs by {change}"


def interval_words(evaluation: Evaluation) -> str:
    """Return what the intervals are."""
    settings, population = evaluation.settings, evaluation.population
    if not settings.resamples:
        return "no intervals, because no resamples were drawn"
    return (
        f"{100 * settings.level:g}% percentile intervals over {settings.resamples:,} resamples of "
        f"{population.included:,} {evaluation.cluster_noun}{'' if population.included == 1 else 's'}"
    )


def band_words(evaluation: Evaluation) -> str:
    """Return what the band around a curve is."""
    if not evaluation.settings.resamples:
        return "There is no band, because no resamples were drawn."
    return (
        f"The band holds the {100 * evaluation.settings.level:g}% interval of the risk at each threshold by itself, "
        f"from the same resamples of {evaluation.cluster_noun}s as all other intervals."
    )


def definitions(evaluation: Evaluation) -> list[tuple[str, str]]:
    """Return the definitions that the report's numbers follow."""
    settings, loss = evaluation.settings, evaluation.loss
    found = [
        (
            "Items",
            "An item is one decision that was asked for. N counts answered and abstained items, K the answered ones; "
            "failed and unscored items are counted and enter no figure.",
        ),
        ("Loss", f"{loss.name} = {loss.definition}. An answer is called wrong where its loss is above 0."),
        (
            "Working point",
            "Answered items are sorted by confidence, descending; each distinct confidence is one working point, and "
            "all items that share it enter at once. After k items with loss sum S: coverage k/N, selective risk S/k, "
            "generalized risk S/N, threshold that confidence.",
        ),
        ("Cmax", "K / N, the largest coverage that can be reached."),
        (
            "AURC",
            "Area under selective risk over coverage from 0 to Cmax. Convention "
            f"{settings.convention}: {_CONVENTIONS[settings.convention]}.",
        ),
        ("AUGRC", "Area under generalized risk over coverage from 0 to Cmax, starting at 0."),
        (
            "e-AURC, e-AUGRC",
            "The area less that of a perfect ranking, which takes the same answers by their loss, smallest first.",
        ),
        (
            f"AURC@{settings.area_coverage:g}, AUGRC@{settings.area_coverage:g}",
            f"The areas up to a coverage of {settings.area_coverage:g}, or Cmax if that is less.",
        ),
        (
            "Risk at a coverage",
            "Selective risk of the first working point that reaches the coverage; none beyond Cmax.",
        ),
    ]
    if settings.resamples:
        found.append(
            (
                "Intervals",
                f"{100 * settings.level:g}% percentile intervals of {settings.resamples:,} resamples of whole "
                f"{evaluation.cluster_noun}s (seed {settings.seed}). Resamples in which a figure is undefined are "
                "dropped.",
            )
        )
    return found


def listed(names: Sequence[str]) -> str:
    """Return names as a list in words, shortened when there are many.

    >>> listed(["a", "b", "c"])
    'a, b and c'
    """
    if len(names) > _MANY + 1:
        return f"{', '.join(names[:_MANY])} and {len(names) - _MANY} others"
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


class Tell:
    """A number with its interval, as an estimate is printed.

    >>> print(Tell(0.5, 0.4, 0.6))
    0.500 [0.400, 0.600]
    """

    def __init__(self, value: float, low: float, high: float) -> None:
        self._text = f"{value:.3f}" if math.isnan(low) else f"{value:.3f} [{low:.3f}, {high:.3f}]"

    def __str__(self) -> str:
        return self._text
