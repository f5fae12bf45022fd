"""The panels of a page: population, comparison, estimates, curves, reliability, metrics, groups, coverage and mistakes.

Tables and verdicts come from `abstain.report.views` and `abstain.report.coverage`; a page chooses their columns. A
function returns None if the result has no data for its panel.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from abstain.evaluation import Key
from abstain.items import GUIDANCE
from abstain.losses import SHARES
from abstain.metrics.registry import metric_name
from abstain.report import charts, coverage, views
from abstain.report.charts import describe_interval, intervals
from abstain.report.html import _sentences
from abstain.report.html._parts import (
    Explorer,
    Figure,
    Fold,
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
    from collections.abc import Callable, Collection, Mapping, Sequence

    from abstain.evaluation import Difference, MetricTable, Profile, Result, SystemResult
    from abstain.evaluation.conformal import CoverageResult, Stratum
    from abstain.report.html._parts import Part
    from abstain.report.tables import Cell

# The page has the curves of at most so many systems, and estimates and reliability of at most two.
_MOST_SIDES = 8
_MOST_DETAILED = 2
_FEW_CONFIDENCES = 4
_RISKS = "Selective risk (mean loss of the answers) at the first operating point that reaches each coverage."
_AREAS = ("aurc", "augrc", "eaurc", "eaugrc", "aurc_achievable")
# The columns of differences. The conclusion follows the name of the row, so that a narrow screen shows both.
_OF_TWO = ("label", "conclusion", "group", "left_value", "right_value", "difference", "p")
_OF_MANY = ("label", "conclusion", "group", "difference", "p", "p_holm")
# Texts of an item, which are shown only on request.
_TEXTS = ("prompt", "raw_response")
_MOST_GROUPS = 20
_MOST_CHARTS = 3
_VERDICTS = (
    "Verdicts: the best system is better than every other one. At least one system is better than an outperformed one. "
    "Inconclusive means that no system is shown to be better, and that it is not shown to be better than every other "
    "one. A rank is the range of ranks that cannot be ruled out."
)


@dataclass(frozen=True, slots=True)
class Side:
    """A system whose curves are drawn, with the label of its confidences, which is empty for a single system."""

    label: str
    system: SystemResult
    # None if no confidence ranks its answers.
    profile: Profile | None

    def title(self, confidence: str) -> str:
        """Return the name of a confidence with the label of the side."""
        return f"{self.label}: {confidence}" if self.label else confidence


def sides_of(result: Result, progress: Callable[[int], None] | None) -> list[Side]:
    """Return the first systems with their profiles, at most eight."""
    single = len(result.systems) == 1
    return [
        Side("" if single else name, system, system.profile(progress=progress) if system else None)
        for name, system in list(result.systems.items())[:_MOST_SIDES]
    ]


def shown_metrics(result: Result, optional: Collection[str]) -> list[str]:
    """Return the requested metrics that the page shows.

    An optional metric is omitted if it is undefined for every system. Without guidance on which items to decline, the
    reliable accuracy is omitted too, because it equals the selective accuracy.
    """
    systems = result.systems.values()
    guided = any(GUIDANCE in system.basis.evaluated.metadata for system in systems)

    def available(name: str) -> bool:
        if name == "reliable_accuracy" and not guided:
            return False
        keys = [(system, key) for system in systems for key in system.estimates]
        return any(
            system.estimates[key].defined for system, key in keys if key.metric == name and not key.group
        )

    names = views.requested_metrics(result.first)
    return [
        name
        for name in names
        if (name not in optional and name.partition("@")[0] not in optional) or available(name)
    ]


def file_name(path: object) -> str:
    """Return the last part of a path of any operating system."""
    return str(path).replace("\\", "/").rsplit("/", 1)[-1]


def source_of(system: SystemResult) -> str:
    """Return the source of the items of a system; "Items" if it is unknown."""
    path = system.provenance.get("path")
    return views.source_line({**system.provenance, "path": file_name(path) if path else "Items"})


def _heading(system: SystemResult) -> Heading:
    source = source_of(system)
    named = system.provenance.get("path") and source != system.name
    return Heading(f"{system.name}: {source}" if named else system.name)


def population_panel(result: Result) -> Panel:
    """Return the panel of the evaluated items: the outcomes of each system."""
    parts: list[Part] = []
    if len(result.systems) > _MOST_DETAILED:
        parts.append(TableView(_outcomes(result), "Outcomes of the items"))
    else:
        for system in result.systems.values():
            parts += [_heading(system)] if len(result.systems) > 1 else []
            parts.append(_strip(system, result.cluster_noun))
    return Panel("population", "Evaluated items", "Items", parts)


_OUTCOMES = {
    "answered": "answered",
    "abstained": "abstained",
    "items_failed": "failed",
    "items_unscored": "without label",
}


def _outcomes(result: Result) -> Table:
    columns = (
        Column("system"),
        *(Column(field, name, digits=0) for field, name in _OUTCOMES.items()),
    )
    rows = tuple(
        (name, *(getattr(system.population, field) for field in _OUTCOMES))
        for name, system in result.systems.items()
    )
    return Table("", columns, rows).without_empty(items_failed=0, items_unscored=0)


def _strip(system: SystemResult, noun: str) -> Strip:
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
            name = "without label" if outcome == "unscored" else outcome
            proportion = 100.0 * count / sum(counts.values())
            parts.append(StripPart(outcome, name, count, f"{start:.3f}", f"{proportion:.3f}"))
            start += proportion
    clusters = (f"{noun}s evaluated", (f"{population.included:,}", f"of {population.total:,}"))
    if noun == "row":
        clusters = ("rows", (f"{population.items:,}", "treated as independent"))
    tiles = [
        ("items evaluated (N)", f"{population.items:,}"),
        clusters,
        ("coverage (Cmax)", _sentences.Percentage(system.coverage)),
    ]
    return Strip(parts, tiles)


def compared_panel(result: Result, sides: Sequence[Side], metrics: Collection[str]) -> Panel | None:
    """Return the panel of a comparison: both values and differences of two systems, a ranking of more than two."""
    if len(result.systems) == 1:
        return None
    noun = result.cluster_noun
    own = [each for system in result.systems.values() for each in system.estimates.values()]
    typical = _sentences.typical_estimate(own) or result.first.coverage
    intervals_of_values = describe_interval(typical, noun)
    compared = [each.estimate for each in result.differences if each.compared]
    typical = _sentences.typical_estimate(compared) or result.differences[0].estimate
    intervals_of_differences = describe_interval(typical, noun)
    if len(result.systems) == 2:
        first, second = result.systems
        title = (
            f"{first} and {second}: {intervals_of_values}. {second} - {first}: {intervals_of_differences}."
        )
        parts: list[Part] = [
            _sentences.describe_compared_items(result),
            TableView(_differences(result, _OF_TWO, title, metrics), "Differences", compact=True),
            Gallery([*_overlay(result, sides), *_difference_charts(result)]),
            Fold("All findings as sentences", _sentences.findings(result, metrics)),
        ]
        return Panel("comparison", f"Comparison: {second} - {first}", "Comparison", parts)
    title = f"Second - first: {intervals_of_differences}. {_sentences.describe_family(result)}"
    pairs: list[Part] = [
        TableView(
            _differences(result, _OF_MANY, title, metrics), "Differences between systems", compact=True
        ),
        *_difference_charts(result),
        *_sentences.findings(result, metrics),
    ]
    profiles = {side.system.name: side.profile for side in sides}
    parts = [
        _sentences.describe_compared_items(result),
        TableView(_ranking(result, profiles, intervals_of_values), "Systems by rank", compact=True),
        *_overlay(result, sides),
        Fold("Differences between all pairs of systems", pairs),
    ]
    others = [name for name in metrics if result.headline is None or name != result.headline.metric]
    if others:
        table = TableView(_systems(result, metrics), "Other metrics of the systems", compact=True)
        parts.append(Fold("Other metrics of the systems", [table]))
    return Panel("systems", "Ranking of the systems", "Ranking", parts)


def _ranking(result: Result, profiles: Mapping[str, Profile | None], how: str) -> Table:
    """Return the systems by their rank, with the verdict, the coverage, the error rate and the headline metric."""
    headline = result.headline
    if headline is None:
        return _systems(result, ())
    ranks = _sentences.rank_by_headline(result)
    name = metric_name(headline.metric)
    binary = result.loss is not None and result.loss.name == "zero_one"
    columns = (
        Column("system"),
        Column("verdict"),
        Column("rank"),
        Column("coverage", digits=3, estimate=True),
        Column("errors", "wrong answers" if binary else "mean loss", digits=3, estimate=True),
        Column("metric", name, digits=3, estimate=True),
    )
    order = sorted(result.systems, key=lambda each: ranks[each] or (len(ranks) + 1, 0))
    rows = []
    for system_name in order:
        system, rank = result.systems[system_name], ranks[system_name]
        verdict = _sentences.rank_verdict(result, system_name, rank)
        loss: Any = _sentences.answers_loss(system, profiles.get(system_name))
        loss = _sentences.Percentage(loss) if binary and loss is not None else loss
        coverage: Any = _sentences.Percentage(system.coverage)
        value = _estimate_of(system, headline.metric)
        rows.append((system_name, verdict, _sentences.format_rank(rank), coverage, loss, value))
    own = f"{name} is over the coverage of each system. " if headline.basis == "matched coverage" else ""
    basis = {
        "matched coverage": "at the largest coverage that both systems reach",
        "all items": "over all items",
    }.get(headline.basis, "over the answered items of each")
    note = f"{own}Ranks and verdicts come from comparisons by {name} of all pairs {basis}. {_VERDICTS}"
    return Table(sentence(how), columns, tuple(rows), (note,))


def _estimate_of(system: SystemResult, metric: str) -> Cell:
    """Return the estimate of a metric by the first confidence."""
    keys = [Key(confidence, metric) for confidence in ("", *system.confidences)]
    return next((system.estimates[key] for key in keys if key in system.estimates), None)


def _systems(result: Result, metrics: Collection[str]) -> Table:
    """Return every system with its metrics and ranks, without the columns of the ranking and omitted metrics."""
    table = views.systems_table(result)
    requested = set(views.requested_metrics(result.first))
    omitted = {"cmax", "items", "answered", "answer_rate"} | (requested - set(metrics))
    kept = [
        index
        for index, each in enumerate(table.columns)
        if each.key not in omitted and each.key.removesuffix("_rank") not in omitted
    ]
    table = table.only(kept)
    columns = tuple(replace(each, heading=metric_name(each.title)) for each in table.columns)
    return replace(table, columns=columns, title="", notes=())


def _differences(result: Result, keys: Sequence[str], title: str, metrics: Collection[str]) -> Table:
    """Return the differences of a summary, with only some columns and without omitted metrics."""
    differences = _sentences.shown_differences(result, metrics)
    # The differences that the conclusion comes from are first.
    headline = "" if result.headline is None else result.headline.metric
    differences.sort(key=lambda each: each.metric != headline or bool(each.no_verdict) or bool(each.group))
    table = views.differences_table(result, differences)
    index = {column.key: position for position, column in enumerate(table.columns)}
    kept = [key for key in keys if key in index]
    headings = {"label": "metric" if len(result.systems) == 2 else "systems and metric"}
    columns = [
        replace(column, detail=False, once=False, heading=headings.get(column.key, column.heading))
        for column in (table.columns[index[key]] for key in kept)
    ]
    several = len({each.confidence for each in differences} - {""}) > 1
    rows = []
    for each, row in zip(differences, table.rows, strict=True):
        label = _label(each, confidence=several, pair=len(result.systems) > 2)
        rows.append(tuple(label if key == "label" else row[index[key]] for key in kept))
    return Table(title, tuple(columns), tuple(rows))


def _label(each: Difference, *, confidence: bool, pair: bool) -> str:
    """Return the name of a difference in a table: the pair if there are several, the metric and the confidence."""
    text = metric_name(each.metric) + each.label.removeprefix(each.metric)
    text += f" by {each.confidence}" if confidence and each.confidence else ""
    return f"{each.right} - {each.left}: {text}" if pair else text


def _difference_charts(result: Result) -> list[Figure]:
    defined = {each.metric for each in result.differences if not each.group and each.estimate.defined}
    metrics = [key for key in _sentences.headline_metrics(result) if key in defined]
    # Cmax is in the table, so it is drawn only if there is nothing else to draw.
    metrics = [key for key in metrics if key != "cmax"] or metrics
    return [
        figure(
            charts.differences_chart(result, key),
            f"Differences in {metric_name(key)} with their confidence intervals",
            wide=True,
        )
        for key in metrics[:_MOST_CHARTS]
    ]


def _overlay(result: Result, sides: Sequence[Side]) -> list[Figure]:
    """Return the curves of all systems on one set of axes, if all have the same confidence."""
    profiles = {side.system.name: side.profile for side in sides if side.profile and side.profile.leader}
    names = [name for name in result.first if all(name in side.system for side in sides)]
    if len(profiles) < len(sides) or not names:
        return []
    chart = charts.systems_chart(result, names[0], profiles=profiles)
    return [
        figure(chart, f"Selective risk over coverage of {_sentences.join_names(list(profiles))}", wide=True)
    ]


def estimates_panel(sides: Sequence[Side]) -> Panel | None:
    """Return the areas and risks of every confidence; without a confidence, the metrics that need none."""
    if len(sides) > _MOST_DETAILED:
        return None
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
        parts.append(figure(chart, "AUGRC of every confidence with its confidence interval", wide=True))
    unfolded = not side.label and len(system) <= _FEW_CONFIDENCES
    title = "Risk at given coverages"
    risks = replace(
        _transposed_risks(system) if len(system) == 1 else views.risks_table(system), title=_RISKS
    )
    parts.append(Fold(title, [TableView(risks, f"{title}{whose}", compact=True)], unfolded=unfolded))
    return parts


def _transposed_risks(system: SystemResult) -> Table:
    """Return the risks of the only confidence in one row, one column per coverage that can be reached."""
    table = views.risks_table(system)
    reached = [row for row in table.rows if not isinstance(row[1], str)]
    columns = (
        Column("coverage"),
        *(Column(f"at_{row[0]}", str(row[0]), digits=3, estimate=True) for row in reached),
    )
    return replace(table, columns=columns, rows=((table.columns[1].title, *(row[1] for row in reached)),))


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
    """Return the curves with the threshold explorer; None if there is no curve."""
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
    words = (
        "Each point of a curve is a possible threshold: answers with a lower confidence would be deferred."
    )
    return Panel(
        "curves",
        "Risk over coverage, and the choice of a threshold",
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
    for side in sides if len(sides) <= _MOST_DETAILED else ():
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
                chart = charts.reliability_diagram(curve, title=title, noun=side.system.cluster_noun)
                figures.append(figure(chart, words))
    if not figures:
        return None
    system = sides[0].system
    words = (
        "Answers are grouped into ten bins by their confidence, which is read as the probability that an answer is "
        "right (loss 0). On the diagonal, confidence and accuracy agree; below it the model is overconfident. Bars are "
        f"{100 * system.settings.level:g}% confidence intervals of the accuracy over {system.cluster_noun}s. The "
        "strip below counts the answers."
    )
    parts: list[Part] = [words, Gallery(figures)]
    if left_out:
        parts.append(Note(f"Not drawn, because they are not probabilities: {', '.join(left_out)}."))
    return Panel("reliability", "Reliability of the stated confidence", "Reliability", parts)


def metric_panels(result: Result, metrics: Collection[str]) -> list[Panel]:
    """Return the panels of the requested metrics and of groups; several systems have them in their comparison."""
    table = result.metrics if len(result.systems) == 1 else None
    if table is None:
        return []
    names = [name for name in table if table.keys_of[name].metric in metrics]
    panels = [_safety(table, names)] if names else []
    return [*panels, _groups(table, names, result.cluster_noun)] if table.groups else panels


def _safety(table: MetricTable, names: Sequence[str]) -> Panel:
    counts = table.outcomes
    parts: list[Part] = []
    if table.of_predictions:
        parts.append(
            f"Of all items, {counts.right:,} were answered rightly, {counts.wrong:,} were answered wrongly, "
            f"{counts.abstained:,} were declined, and {counts.failed:,} failed."
        )
    rows, reasons = [], defaultdict(list)
    for name in names:
        estimate, specification = table[name], table.specifications[name]
        if estimate.defined:
            summary = specification.summary.replace("``", "")
            rows.append((name, estimate, views.BETTER[specification.direction], summary))
        else:
            reasons[estimate.reason].append(name)
    parts += [f"Undefined: {', '.join(undefined)} ({reason})." for reason, undefined in reasons.items()]
    if rows:
        columns = (Column("metric"), _estimate("value"), Column("better"), Column("definition"))
        parts.append(TableView(Table("", columns, tuple(rows)), "Metrics"))
    if _sentences.uses_outcome_counts(row[-1] for row in rows):
        parts.append(Note(_sentences.OUTCOME_COUNTS))
    return Panel("safety", "Accuracy and abstention", "Accuracy and abstention", parts)


def _groups(table: MetricTable, names: Sequence[str], noun: str) -> Panel:
    defined = [name for name in names if table[name].defined]
    small = [group.label for group in table.groups if group.note]
    parts: list[Part] = ["The intervals of every group come from the same weights as those of all items."]
    if len(small) > views.MOST_GROUPS:
        small[views.MOST_GROUPS :] = [f"and {len(small) - views.MOST_GROUPS:,} more"]
    parts += [f"Too small to evaluate: {', '.join(small)}."] if small else []
    # The table shows the groups that are worst by the first metric that has a worst group.
    first = next(iter([*(name for name in table.gaps if name in names), *table]))
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
    gaps = tuple(
        (name, gap.group, gap.worst, gap.rest, gap.gap) for name, gap in table.gaps.items() if name in names
    )
    if gaps:
        caption = (
            "Worst group against all others. The worst group was selected by its value, so that its gap is likely to "
            "be smaller in new data."
        )
        headings = (
            Column("metric"),
            Column("worst group"),
            *map(_estimate, ("worst group value", "all others", "gap")),
        )
        parts.append(TableView(Table(caption, headings, gaps), "Worst groups", compact=True))
    drawn = [
        figure(
            charts.groups_chart(table, name, noun=noun),
            f"{name} by group with its confidence interval",
            wide=True,
        )
        for name in defined[:_MOST_CHARTS]
    ]
    return Panel("groups", f"By {' and '.join(table.by)}", "Groups", [*parts, Gallery(drawn)])


def _estimate(name: str) -> Column:
    return Column(name, name, digits=3, estimate=True)


def coverage_panel(result: CoverageResult) -> Panel:
    """Return the panel of prediction intervals or sets."""
    title = f"Metrics of {result.rows:,} {result.kind} in {result.clusters:,} clusters"
    table = replace(coverage.metrics_table(result), title=title, notes=())
    parts: list[Part] = [*_sentences.coverage_verdict(result), TableView(table, title)]
    parts += [
        _strata(f"Coverage by {name} at a nominal coverage of {nominal.nominal:g}", name, strata)
        for nominal in result.by_nominal
        for name, strata in coverage.groupings_of(result, nominal)
    ]
    drawn = [figure(chart, f"Chart: {name}", wide=True) for name, chart in intervals.charts(result).items()]
    kind = result.kind.capitalize()
    return Panel("coverage", f"{kind}: coverage", kind, [*parts, Gallery(drawn)])


def _strata(caption: str, heading: str, strata: Sequence[Stratum]) -> TableView:
    shown = [part for part in strata if part.coverage.defined]
    if len(shown) > _MOST_GROUPS:
        caption += f" (the {_MOST_GROUPS} lowest of {len(shown):,})"
        shown = sorted(shown, key=lambda part: part.coverage.value)[:_MOST_GROUPS]
    rows = tuple(
        (str(part.label), part.verdict.verdict if part.verdict else "", part.coverage, f"{part.count:g}")
        for part in shown
    )
    columns = (Column(heading, heading), Column("verdict"), _estimate("coverage"), Column("rows"))
    return TableView(Table(caption, columns, rows), caption)


def mistakes_panel(system: SystemResult, most: int, *, responses: bool, several: bool) -> Panel:
    """Return the most confident wrong answers by the first confidence, with the ids of their clusters."""
    title = f"The most confident mistakes{f' of {system.name}' if several else ''}"
    if system.loss is None:
        words = "Mistakes are found by a loss, and no metric here needs one. Name one (--loss, loss=)."
        return Panel("mistakes", title, "Mistakes", [words])
    evaluated, loss = system.basis.evaluated, system.loss.values
    if evaluated.aggregation is not None:
        words = (
            "This table was aggregated, so that single rows cannot be shown. Use --engine numpy to load it."
        )
        return Panel("mistakes", title, "Mistakes", [words])
    first = dict(list(system.basis.drawn_confidences.items())[:1])
    wrong = np.flatnonzero(evaluated.answered & (loss > 0))
    # The most confident first, and of equal confidences those with the largest loss.
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
    headings = [noun, "item", "label", "prediction", *first, "loss", *texts]
    words = f"This list was requested for this report. It names {noun}s and items"
    words += f"{' and shows prompts and responses of the model' if texts else ''}."
    table = Table("", tuple(Column(heading, heading) for heading in headings), rows)
    return Panel("mistakes", title, "Mistakes", [words, TableView(table, "Mistakes")])


def _plain(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
