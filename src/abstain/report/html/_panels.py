"""The panels of systems: who was judged, estimates, curves with the threshold explorer, reliability.

A panel that a system has nothing for is None, and the page goes without it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from abstain.report import views
from abstain.report.charts import (
    interval_words,
    metric_chart,
    metric_name,
    reliability_diagram,
    risk_coverage_chart,
)
from abstain.report.html import _words
from abstain.report.html._parts import (
    Explorer,
    Gallery,
    Heading,
    Note,
    Panel,
    Strip,
    StripPart,
    TableView,
    figure,
    sentence,
)
from abstain.report.tables import Column, Table

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from abstain.evaluation import Population, Profile, Result, SystemResult
    from abstain.report.html._parts import Part

__all__ = [
    "Side",
    "curves_panel",
    "estimates_panel",
    "population_panel",
    "reliability_panel",
    "sides_of",
    "source_of",
]

# The page draws curves of so many systems; more are told by their differences.
_MOST_SIDES = 2
_FEW_CONFIDENCES = 4
_OUTCOMES = (
    ("answered", "answered", "answered"),
    ("abstained", "abstained", "abstained"),
    ("items_failed", "failed", "failed"),
    ("items_unscored", "unscored", "without truth"),
)
_RISKS = (
    "Selective risk (mean loss of what is answered) at the first working point that reaches each coverage."
)
_AREAS = ("aurc", "augrc", "eaurc", "eaugrc", "aurc_achievable", "aurc_at_coverage", "augrc_at_coverage")


@dataclass(frozen=True, slots=True)
class Side:
    """A system whose curves are drawn.

    Attributes:
        label: what stands before its confidences; empty where it is alone.
        system: its numbers.
        profile: its curves; None where nothing ranks its answers.
    """

    label: str
    system: SystemResult
    profile: Profile | None


def sides_of(result: Result, progress: Callable[[int], None] | None) -> list[Side]:
    """Return the systems with their profiles: of one or two; of more there are none."""
    if len(result.systems) > _MOST_SIDES:
        return []
    alone = len(result.systems) == 1
    return [
        Side("" if alone else name, system, system.profile(progress=progress) if system else None)
        for name, system in result.systems.items()
    ]


def source_of(system: SystemResult) -> str:
    """Return where the items of a system came from; "Items" where that is not known."""
    path, mode = system.provenance.get("path"), system.provenance.get("mode")
    name = str(path).replace("\\", "/").rsplit("/", 1)[-1] if path else "Items"
    return f"{name} ({mode})" if mode else name


def _heading(system: SystemResult) -> Heading:
    known = system.provenance.get("path") and source_of(system) != system.name
    return Heading(f"{system.name}: {source_of(system)}" if known else system.name)


def population_panel(result: Result) -> Panel:
    """Return who was judged: what became of the items of each system."""
    parts: list[Part] = []
    for system in result.systems.values():
        parts += [_heading(system)] if len(result.systems) > 1 else []
        parts.append(_strip(system, tiles=len(result.systems) <= _MOST_SIDES))
    return Panel("population", "Who was judged", "Who was judged", parts)


def _strip(system: SystemResult, *, tiles: bool) -> Strip:
    population = system.population
    counts = [(outcome, name, getattr(population, field)) for field, outcome, name in _OUTCOMES]
    total = sum(count for _, _, count in counts)
    parts, start = [], 0.0
    for outcome, name, count in counts:
        if count or outcome in ("answered", "abstained"):
            share = 100.0 * count / total
            parts.append(StripPart(outcome, name, count, f"{start:.3f}", f"{share:.3f}"))
            start += share
    return Strip(parts, _tiles(system, population) if tiles else [])


def _tiles(system: SystemResult, population: Population) -> list[tuple[str, object]]:
    judged = f"{population.included:,}"
    return [
        ("items judged (N)", f"{population.items:,}"),
        (f"{system.cluster_noun}s judged", (judged, f"of {population.total:,}")),
        ("Cmax (coverage)", system.coverage),
    ]


def estimates_panel(sides: Sequence[Side]) -> Panel | None:
    """Return the areas and risks of every confidence; without one, the metrics that need none."""
    parts: list[Part] = []
    for side in sides:
        own = _areas(side, alone=len(sides) == 1) if side.system else _unranked(side.system)
        parts += [_heading(side.system), *own] if own and len(sides) > 1 else own
    return Panel("estimates", "Estimates", "Estimates", parts) if parts else None


def _areas(side: Side, *, alone: bool) -> list[Part]:
    system, profile = side.system, side.profile
    first = next(iter(system.values()))
    at = f"@{system.settings.area_coverage:g}"
    keys = [key if key in first.estimates else f"{key}{at}" for key in _AREAS]
    keys = [key for key in keys if key in first.estimates]
    several = len(system) > 1
    areas = Table(
        f"Areas; lower is better. {sentence(interval_words(first.augrc, system.cluster_noun))}",
        (Column("confidence"), *(Column(key, metric_name(key), digits=3, estimate=True) for key in keys)),
        tuple((name, *(variant.estimates[key] for key in keys)) for name, variant in system.items()),
    )
    leader = profile.leader if several and profile is not None else ""
    parts: list[Part] = [TableView(areas, "Areas by confidence", compact=True, marked=leader)]
    if several and system.population.answered:
        parts.append(figure(metric_chart(system), "AUGRC of every confidence with its interval", wide=True))
    unfolded = alone and len(system) <= _FEW_CONFIDENCES
    title = "Risk at given coverages"
    risks = replace(views.risks_table(system), title=_RISKS)
    parts.append(TableView(risks, title, compact=True, folded=title, unfolded=unfolded))
    return parts


def _unranked(system: SystemResult) -> list[Part]:
    """What is known of a system whose answers nothing ranks; what was asked for by name has a panel of its own."""
    table = views.areas_table(system)
    if not table.rows:
        return []
    words = interval_words(system.coverage, system.cluster_noun)
    rows = tuple((metric_name(str(row[0])), *row[1:]) for row in table.rows)
    title = "Metrics that need no confidence"
    return [TableView(replace(table, rows=rows, title=f"{title}. {sentence(words)}"), title)]


def curves_panel(sides: Sequence[Side]) -> Panel | None:
    """Return the curves with the threshold explorer; None where there is no curve."""
    side = next((side for side in sides if side.profile is not None and side.profile.leader), None)
    if side is None or side.profile is None:
        return None
    name = side.profile.leader
    charts = [
        figure(
            risk_coverage_chart(side.system, name, risk=risk, profile=side.profile),
            f"{risk} risk over coverage, {f'{side.label}: {name}' if side.label else name}",
        )
        for risk in ("selective", "generalized")
    ]
    words = "Each point of a curve is a threshold that could be set: answers below it would be deferred."
    return Panel(
        "curves",
        "Risk against coverage, and where to set the threshold",
        "Curves and threshold",
        [f"{words} {_words.band_words(side.system)}", Explorer(charts, side.system.cluster_noun)],
    )


def reliability_panel(sides: Sequence[Side]) -> Panel | None:
    """Return a reliability diagram of each confidence within [0, 1], and the names of the others."""
    figures, left_out, seen = [], [], set()
    for side in sides:
        if side.profile is None:
            continue
        for name in side.system:
            title = f"{side.label}: {name}" if side.label else name
            curve = side.profile.reliability.get(name)
            if curve is None:
                left_out += [title] if len(side.profile.points[name]) else []
            elif (same := (side.label, curve.confidence.tobytes(), curve.count.tobytes())) not in seen:
                seen.add(same)
                told = f"Reliability of {title}: accuracy against stated confidence"
                figures.append(figure(reliability_diagram(curve, title=title), told))
    if not figures:
        return None
    system = sides[0].system
    words = (
        "Answers are put into ten bins by their confidence, read as the probability of being exactly right (loss 0). "
        "On the diagonal, confidence and accuracy agree; below it the model is overconfident. Bars are "
        f"{100 * system.settings.level:g}% intervals of the accuracy that know about {system.cluster_noun}s; the strip "
        "below counts the answers."
    )
    parts: list[Part] = [words, Gallery(figures)]
    if left_out:
        parts.append(
            Note(f"Not drawn, because they order answers and are no probabilities: {', '.join(left_out)}.")
        )
    return Panel("reliability", "Reliability: can the stated confidence be believed?", "Reliability", parts)
