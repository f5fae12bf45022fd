"""The panels of a page: population, comparison, estimates, curves, reliability, safety, groups, coverage and mistakes.

Tables and verdicts are those of `abstain.report.views` and `abstain.report.coverage`; a page chooses their columns. A
panel for which a result has no data is None.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from abstain.losses import SHARES
from abstain.metrics.registry import metric_name
from abstain.report import charts, coverage, views
from abstain.report.charts import describe_interval, intervals
from abstain.report.html import _sentences
from abstain.report.html._parts import (
    Explorer,
    Figure,
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
from abstain.thresholds import format_percent

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from abstain.evaluation import MetricTable, Profile, Result, SystemResult
    from abstain.evaluation.conformal import CoverageResult, Stratum
    from abstain.report.html._parts import Part
    from abstain.report.tables import Cell

# The page draws the curves of at most so many systems.
_MOST_SIDES = 2
_FEW_CONFIDENCES = 4
_RISKS = (
    "Selective risk (mean loss of what is answered) at the first working point that reaches each coverage."
)
_AREAS = ("aurc", "augrc", "eaurc", "eaugrc", "aurc_achievable")
_OF_TWO = ("confidence", "label", "group", "left_value", "right_value", "difference", "p", "conclusion")
_OF_MANY = ("left", "right", "confidence", "label", "group", "difference", "p", "p_holm", "sentence")
# Texts of an item, which are shown only on request.
_TEXTS = ("prompt", "raw_response")
_MOST_GROUPS = 20
_MOST_CHARTS = 3


@dataclass(frozen=True, slots=True)
class Side:
    """A system whose curves are drawn, with the label of its confidences, which is empty for a single system."""

    label: str
    system: SystemResult
    # None if nothing ranks its answers.
    profile: Profile | None

    def title(self, confidence: str) -> str:
        """Return what a confidence of the side is called."""
        return f"{self.label}: {confidence}" if self.label else confidence


def sides_of(result: Result, progress: Callable[[int], None] | None) -> list[Side]:
    """Return the systems with their profiles: of one or two; of more there are none."""
    if len(result.systems) > _MOST_SIDES:
        return []
    alone = len(result.systems) == 1
    return [
        Side("" if alone else name, system, system.profile(progress=progress) if system else None)
        for name, system in result.systems.items()
    ]


def file_name(path: object) -> str:
    """Return the last part of a path of any system."""
    return str(path).replace("\\", "/").rsplit("/", 1)[-1]


def source_of(system: SystemResult) -> str:
    """Return where the items of a system came from; "Items" where that is not known."""
    path = system.provenance.get("path")
    return views.source_line({**system.provenance, "path": file_name(path) if path else "Items"})


def _heading(system: SystemResult) -> Heading:
    source = source_of(system)
    named = system.provenance.get("path") and source != system.name
    return Heading(f"{system.name}: {source}" if named else system.name)


def population_panel(result: Result) -> Panel:
    """Return who was judged: what became of the items of each system."""
    parts: list[Part] = []
    for system in result.systems.values():
        parts += [_heading(system)] if len(result.systems) > 1 else []
        parts.append(_strip(system, with_tiles=len(result.systems) <= _MOST_SIDES))
    return Panel("population", "Who was judged", "Who was judged", parts)


def _strip(system: SystemResult, *, with_tiles: bool) -> Strip:
    population = system.population
    counts = {
        "answered": population.answered,
        "abstained": population.abstained,
        "failed": population.items_failed,
        "unscored": population.items_unscored,
    }
    parts, start = [], 0.0
    for outcome, count in counts.items():
        if count or outcome in ("answered", "abstained"):
            name = "without truth" if outcome == "unscored" else outcome
            proportion = 100.0 * count / sum(counts.values())
            parts.append(StripPart(outcome, name, count, f"{start:.3f}", f"{proportion:.3f}"))
            start += proportion
    tiles = [
        ("items judged (N)", f"{population.items:,}"),
        (f"{system.cluster_noun}s judged", (f"{population.included:,}", f"of {population.total:,}")),
        ("Cmax (coverage)", system.coverage),
    ]
    return Strip(parts, tiles if with_tiles else [])


def compared_panel(result: Result, sides: Sequence[Side]) -> Panel | None:
    """Return the panel of the differences between systems, and of the ranks of more than two; None for one system."""
    if len(result.systems) == 1:
        return None
    own = [each for system in result.systems.values() for each in system.estimates.values()]
    typical = _sentences.typical_estimate(own) or result.first.coverage
    intervals_of_values = describe_interval(typical, result.cluster_noun)
    compared = [each.estimate for each in result.differences if each.compared]
    typical = _sentences.typical_estimate(compared) or result.differences[0].estimate
    intervals_of_differences = describe_interval(typical, result.cluster_noun)
    two = len(result.systems) == 2
    where = "on both sides" if two else "in all systems"
    basis = f"Paired over what is judged {where}: {views.basis_line(result)}."
    if two:
        first, second = result.systems
        title = (
            f"{first} and {second}: {intervals_of_values}. {second} - {first}: {intervals_of_differences}."
        )
        parts: list[Part] = [
            basis,
            TableView(_differences(result, _OF_TWO, title), "Differences", compact=True),
            *_difference_charts(result),
            *_overlay(result, sides),
        ]
        return Panel("comparison", f"Comparison: {second} - {first}", "Comparison", parts)
    title = f"Second - first: {intervals_of_differences}."
    parts = [
        basis,
        TableView(_systems(result, intervals_of_values), "Systems with their ranks", compact=True),
        _sentences.describe_family(result),
        TableView(_differences(result, _OF_MANY, title), "Differences between systems"),
        *_difference_charts(result),
    ]
    return Panel("systems", "Systems compared", "Systems", parts)


def _systems(result: Result, intervals_of_values: str) -> Table:
    """Every system with its metrics and ranks; Cmax is the coverage once more, and the items are the same for all."""
    table = views.systems_table(result)
    table = table.only(
        [index for index, each in enumerate(table.columns) if each.key not in ("cmax", "items")]
    )
    columns = tuple(replace(each, heading=metric_name(each.title)) for each in table.columns)
    title = f"Systems over the compared items. {sentence(intervals_of_values)}"
    return replace(table, columns=columns, title=title)


def _differences(result: Result, keys: Sequence[str], title: str) -> Table:
    """Return the differences of a summary, with only some columns."""
    differences = views.choose_differences(result)
    table = views.differences_table(result, differences)
    index = {column.key: position for position, column in enumerate(table.columns)}
    kept = [key for key in keys if key in index]
    columns = [
        replace(column, detail=False, heading="in words" if column.key == "sentence" else column.heading)
        for column in (table.columns[index[key]] for key in kept)
    ]
    rows = []
    for each, row in zip(differences, table.rows, strict=True):
        label = metric_name(each.metric) + each.label.removeprefix(each.metric)
        changed = {"label": label, "confidence": each.confidence or "any"}
        rows.append(tuple(changed.get(key, row[index[key]]) for key in kept))
    return Table(title, tuple(columns), tuple(rows))


def _difference_charts(result: Result) -> list[Figure]:
    defined = {each.metric for each in result.differences if not each.group and each.estimate.defined}
    metrics = [key for key in _sentences.headline_metrics(result) if key in defined]
    # Cmax is in the table, so it is drawn only if there is nothing else to draw.
    metrics = [key for key in metrics if key != "cmax"] or metrics
    return [
        figure(
            charts.differences_chart(result, key),
            f"Differences in {metric_name(key)} with their intervals",
            wide=True,
        )
        for key in metrics[:_MOST_CHARTS]
    ]


def _overlay(result: Result, sides: Sequence[Side]) -> list[Figure]:
    """Return both systems on one set of axes, if both have a confidence."""
    profiles = {side.system.name: side.profile for side in sides if side.profile and side.profile.leader}
    slots = [slot for slot in result.first if all(slot in side.system for side in sides)]
    if len(profiles) < len(result.systems) or not slots:
        return []
    chart = charts.systems_chart(result, slots[0], profiles=profiles)
    return [figure(chart, f"Selective risk over coverage of {' and '.join(profiles)}", wide=True)]


def estimates_panel(sides: Sequence[Side]) -> Panel | None:
    """Return the areas and risks of every confidence; without one, the metrics that need none."""
    parts: list[Part] = []
    for side in sides:
        # Screen readers distinguish tables by the name of the system.
        whose = f" of {side.system.name}" if side.label else ""
        own = _areas(side, whose) if side.system else _unranked(side.system, whose)
        parts += [_heading(side.system), *own] if own and side.label else own
    return Panel("estimates", "Estimates", "Estimates", parts) if parts else None


def _areas(side: Side, whose: str) -> list[Part]:
    system, profile = side.system, side.profile
    first = next(iter(system.values()))
    end = f"{system.settings.area_coverage:g}"
    keys = [*_AREAS, f"aurc_at_coverage@{end}", f"augrc_at_coverage@{end}"]
    keys = [key for key in keys if key in first.estimates]
    several = len(system) > 1
    areas = Table(
        f"Areas; lower is better. {sentence(describe_interval(first.augrc, system.cluster_noun))}",
        (Column("confidence"), *(Column(key, metric_name(key), digits=3, estimate=True) for key in keys)),
        tuple((name, *(variant.estimates[key] for key in keys)) for name, variant in system.items()),
    )
    leader = profile.leader if several and profile is not None else ""
    parts: list[Part] = [TableView(areas, f"Areas by confidence{whose}", compact=True, marked=leader)]
    if several and system.population.answered:
        chart = charts.metric_chart(system)
        parts.append(figure(chart, "AUGRC of every confidence with its interval", wide=True))
    unfolded = not side.label and len(system) <= _FEW_CONFIDENCES
    title = "Risk at given coverages"
    risks = replace(views.risks_table(system), title=_RISKS)
    parts.append(TableView(risks, f"{title}{whose}", compact=True, folded=title, unfolded=unfolded))
    return parts


def _unranked(system: SystemResult, whose: str) -> list[Part]:
    """Return the metrics of a system without a confidence, except for those that were requested by name."""
    table = views.areas_table(system)
    if not table.rows:
        return []
    title = "Metrics that need no confidence"
    intervals_of_values = sentence(describe_interval(system.coverage, system.cluster_noun))
    rows = tuple((metric_name(str(row[0])), *row[1:]) for row in table.rows)
    table = replace(table, rows=rows, title=f"{title}. {intervals_of_values}")
    return [TableView(table, f"{title}{whose}")]


def curves_panel(sides: Sequence[Side]) -> Panel | None:
    """Return the curves with the threshold explorer; None where there is no curve."""
    side = next((side for side in sides if side.profile is not None and side.profile.leader), None)
    if side is None or side.profile is None:
        return None
    name = side.profile.leader
    figures = [
        figure(
            charts.risk_coverage_chart(side.system, name, risk=risk, profile=side.profile),
            f"{risk} risk over coverage, {side.title(name)}",
        )
        for risk in ("selective", "generalized")
    ]
    words = "Each point of a curve is a threshold that could be set: answers below it would be deferred."
    return Panel(
        "curves",
        "Risk against coverage, and where to set the threshold",
        "Curves and threshold",
        [
            f"{words} {_sentences.describe_band(side.system)}",
            Explorer(
                figures,
                side.system.cluster_noun,
                proportion=side.system.loss is not None and side.system.loss.name in SHARES,
                sure=format_percent(side.system.settings.level),
            ),
        ],
    )


def reliability_panel(sides: Sequence[Side]) -> Panel | None:
    """Return a reliability diagram of each confidence within [0, 1], and the names of the others."""
    figures, left_out, seen = [], [], set()
    for side in sides:
        if side.profile is None:
            continue
        for name in side.system:
            title = side.title(name)
            curve = side.profile.reliability.get(name)
            if curve is None:
                left_out += [title] if len(side.profile.points[name]) else []
            elif (same := (side.label, curve.confidence.tobytes(), curve.count.tobytes())) not in seen:
                seen.add(same)
                words = f"Reliability of {title}: accuracy against stated confidence"
                figures.append(figure(charts.reliability_diagram(curve, title=title), words))
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


def metric_panels(result: Result) -> list[Panel]:
    """Return the panels of abstention safety and of groups, where metrics were asked for.

    Of several systems, the metrics stand in the comparison.
    """
    table = result.metrics if len(result.systems) == 1 else None
    if table is None:
        return []
    return [_safety(table), _groups(table)] if table.groups else [_safety(table)]


def _safety(table: MetricTable) -> Panel:
    counts = table.outcomes
    parts: list[Part] = []
    if table.of_predictions:
        parts.append(
            f"Of all items, {counts.right:,} were answered rightly, {counts.wrong:,} answered wrongly, "
            f"{counts.abstained:,} declined, and {counts.failed:,} failed."
        )
    rows, reasons = [], defaultdict(list)
    for name, estimate in table.items():
        specification = table.specifications[name]
        if estimate.defined:
            summary = specification.summary.replace("``", "")
            rows.append((name, estimate, views.BETTER[specification.direction], summary))
        else:
            reasons[estimate.reason].append(name)
    parts += [f"Undefined here: {', '.join(names)} ({reason})." for reason, names in reasons.items()]
    if rows:
        columns = (Column("metric"), _estimate("value"), Column("better"), Column("what it is"))
        parts.append(TableView(Table("", columns, tuple(rows)), "Metrics"))
    title = "Abstention safety: is declining, and answering, to be relied on?"
    return Panel("safety", title, "Abstention safety", parts)


def _groups(table: MetricTable) -> Panel:
    defined = [name for name, estimate in table.items() if estimate.defined]
    small = [group.label for group in table.groups if group.note]
    parts: list[Part] = ["Every group is judged with the same draws as the whole."]
    if len(small) > views.MOST_GROUPS:
        small[views.MOST_GROUPS :] = [f"and {len(small) - views.MOST_GROUPS:,} more"]
    parts += [f"Too small to judge: {', '.join(small)}."] if small else []
    # The table shows the groups that are worst by the first metric that has a worst group.
    first = next(iter([*table.gaps, *table]))
    parts += views.more_groups(len(table.groups), f"the worst by {first}")
    columns = (
        Column("group"),
        Column("items", digits=0),
        Column("answered", digits=0),
        *map(_estimate, defined),
    )
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (group.label, group.items, group.answered, *(group.estimates[name] for name in defined))
        for group in table.worst_groups(first, views.MOST_GROUPS)
    )
    parts.append(TableView(Table("", columns, rows), "Metrics by group", compact=True))
    gaps = tuple((name, gap.group, gap.worst, gap.rest, gap.gap) for name, gap in table.gaps.items())
    if gaps:
        caption = (
            "Worst group against all others; it was chosen by its value, so its gap is not a fair sample."
        )
        headings = (Column("metric"), Column("worst group"), *map(_estimate, ("there", "all others", "gap")))
        parts.append(TableView(Table(caption, headings, gaps), "Worst groups"))
    parts += [
        figure(charts.groups_chart(table, name), f"{name} by group with its interval", wide=True)
        for name in defined[:_MOST_CHARTS]
    ]
    return Panel("groups", f"By {' and '.join(table.by)}", "Groups", parts)


def _estimate(name: str) -> Column:
    return Column(name, name, digits=3, estimate=True)


def coverage_panel(result: CoverageResult) -> Panel:
    """Return the panel of intervals or sets."""
    title = f"Metrics of {result.rows:,} {result.kind} in {result.clusters:,} clusters"
    table = replace(coverage.metrics_table(result), title=title, notes=())
    parts: list[Part] = [*_sentences.coverage_verdict(result), TableView(table, title)]
    parts += [
        _strata(f"Coverage by {name} at a claim of {nominal.nominal:g}", name, strata)
        for nominal in result.by_nominal
        for name, strata in coverage.groupings_of(result, nominal)
    ]
    parts += [figure(chart, f"Chart: {name}", wide=True) for name, chart in intervals.charts(result).items()]
    kind = result.kind.capitalize()
    return Panel("coverage", f"{kind}: does coverage hold?", kind, parts)


def _strata(caption: str, what: str, strata: Sequence[Stratum]) -> TableView:
    shown = [part for part in strata if part.coverage.defined]
    if len(shown) > _MOST_GROUPS:
        caption += f" (the {_MOST_GROUPS} lowest of {len(shown):,})"
        shown = sorted(shown, key=lambda part: part.coverage.value)[:_MOST_GROUPS]
    rows = tuple(
        (str(part.label), f"{part.count:g}", part.coverage, part.verdict.verdict if part.verdict else "")
        for part in shown
    )
    columns = (Column(what, what), Column("rows"), _estimate("coverage"), Column("verdict"))
    return TableView(Table(caption, columns, rows), caption)


def mistakes_panel(system: SystemResult, most: int, *, responses: bool, several: bool) -> Panel:
    """Return the most confident wrong answers by the first confidence, with the ids of their clusters."""
    title = f"The most confident mistakes{f' of {system.name}' if several else ''}"
    if system.loss is None:
        words = "Mistakes are told by a loss, and no metric here needs one; name one (--loss, loss=)."
        return Panel("mistakes", title, "Mistakes", [words])
    evaluated, loss = system.basis.evaluated, system.loss.values
    if evaluated.aggregation is not None:
        words = "This table was aggregated, so that single rows are not shown; --engine numpy loads it."
        return Panel("mistakes", title, "Mistakes", [words])
    first = dict(list(system.basis.drawn_confidences.items())[:1])
    wrong = np.flatnonzero(evaluated.answered & (loss > 0))
    # The surest first, and of equally sure ones those that cost most.
    keys = [-loss[wrong], *(-confidence[wrong] for confidence in first.values())]
    wrong = wrong[np.lexsort(keys)][:most]
    texts = [key for key in evaluated.metadata if responses and key.rsplit(".", 1)[-1] in _TEXTS]
    noun = system.cluster_noun
    rows = tuple(
        (
            str(evaluated.cluster[row]),
            str(evaluated.item[row]),
            _plain(evaluated.truth[row]),
            _plain(evaluated.prediction[row]),
            *(f"{confidence[row]:.4g}" for confidence in first.values()),
            f"{loss[row]:.4g}",
            *(str(evaluated.metadata[key][row]) for key in texts),
        )
        for row in wrong
    )
    headings = [noun, "item", "truth", "prediction", *first, "loss", *texts]
    names = f"Asked for by whoever made this report: it names {noun}s and items"
    words = f"{names}{' and shows what the model was asked and wrote' if texts else ''}."
    table = Table("", tuple(Column(heading, heading) for heading in headings), rows)
    return Panel("mistakes", title, "Mistakes", [words, TableView(table, "Mistakes")])


def _plain(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
