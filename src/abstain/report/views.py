"""A `Result` as sentences and tables.

The terminal summary, `--format`, the notebook and the HTML report use these. Which system is better is not decided
here, but by the verdict of a difference (`Difference.conclusion`, `Difference.sentence`).
"""

from __future__ import annotations

import math
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

from rich.console import Group

from abstain.evaluation import DEFAULT_AREA_COVERAGE, DEFAULT_GRID, OWN_COVERAGES, POSSIBLE_SCALE, Key
from abstain.inference import Estimate
from abstain.report import console
from abstain.report.console import format_item, format_lines, format_table, line
from abstain.report.tables import Column, Table, finite

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rich.text import Text

    from abstain.evaluation import Difference, MetricTable, Result, SystemResult
    from abstain.losses import ItemLoss
    from abstain.report.tables import Cell

# More confidences do not fit side by side in the table of risks; the table of all estimates has them.
_SIDE_BY_SIDE = 4
# The summary shows the risk at so many coverages of the default grid.
_MOST_RISKS = 5
# The summary has at most so many sentences; the table of differences has all of them.
_MOST_SENTENCES = 16
# Of more groups, the summary shows the worst. Each group may have its own method.
MOST_GROUPS = 20
_MOST_METHODS = 5
# The metrics of a comparison's summary if no metric was requested by name.
_HEADLINE = ("augrc", "aurc", "cmax")
BETTER = {"higher": "higher", "lower": "lower", "neither": "depends"}

# What `--explain` prints. Areas are not means over coverage: their range ends at Cmax.
_MEANINGS = {
    "coverage": "proportion of items that are answered. Cmax is the largest coverage that the system can reach.",
    "error rate": "proportion of the answers that are wrong.",
    "accuracy": "proportion of all items that are answered correctly. An abstention counts as not correct.",
    "risk": "mean loss of the answers (selective risk). With the loss zero_one it is the error rate.",
    "AURC": "area under the curve of risk over coverage, from 0 to Cmax. Lower is better.",
    "AUGRC": "area under the curve of generalized risk over coverage. Generalized risk is the loss of the answers "
    "divided by all items: how often a wrong answer is given. Lower is better.",
    "e-AURC": "AURC minus the AURC of a perfect ranking of the same answers: what a better confidence could save.",
}
# A risk that was measured this far beyond the requested coverage has a note.
_FAR = 0.02


def source_line(provenance: Mapping[str, object]) -> str:
    """Return the source of items: the path, and the mode of a run file.

    >>> source_line({"path": "run.json", "mode": "few_shot"}), source_line({})
    ('run.json (few_shot)', 'items')
    """
    path, mode = provenance.get("path"), provenance.get("mode")
    return f"{path or 'items'}{f' ({mode})' if mode else ''}"


def population_line(system: SystemResult) -> str:
    """Return the number of evaluated items and clusters, and how many items are in no number."""
    population = system.population
    text = f"{format_count(population.items, 'item')}, treated as independent"
    if is_clustered(system):
        text = f"{format_count(population.items, 'item')} of {format_count(population.included, system.cluster_noun)}"
    left_out = {"failed": population.items_failed, "have no label": population.items_unscored}
    reasons = [f"{count:,} {reason}" for reason, count in left_out.items() if count]
    return text + (f" (not counted: {', '.join(reasons)})" if reasons else "")


def is_clustered(system: SystemResult) -> bool:
    """Return whether the source names clusters; otherwise every row is one."""
    return "cluster" not in system.basis.source.unnamed


def outcome_table(system: SystemResult) -> Table:
    """Return coverage, error rate and accuracy, with the counts that they come from.

    If no prediction equals its label, as in regression, there is only the coverage.
    """
    population = system.population
    answered = f"{population.answered:,} of {format_count(population.items, 'item')} answered"
    rows: list[tuple[Cell, ...]] = [
        ("coverage", system.coverage, f"{answered}, {population.abstained:,} abstained")
    ]
    if population.right:
        wrong = f"{population.wrong:,} of {format_count(population.answered, 'answer')} wrong"
        right = f"{population.right:,} of {format_count(population.items, 'item')} answered correctly"
        rows += [("error rate", system.error_rate, wrong), ("accuracy", system.accuracy, right)]
    return Table("", (Column("metric"), Column("value", estimate=True), Column("counts")), tuple(rows))


def design_effect_line(system: SystemResult) -> str:
    """Return how much clusters widen the intervals; empty if this is unknown."""
    effect, answered = system.design_effect, system.population.answered
    if math.isnan(effect) or not is_clustered(system):
        return ""
    if effect <= 1.0:
        return f"design effect {effect:.2f}: clusters do not widen the intervals"
    worth = format_count(round(answered / effect), "independent one")
    return f"design effect {effect:.2f}: {format_count(answered, 'answer')} are worth {worth}"


def loss_line(loss: ItemLoss | None) -> str:
    """Return the definition of the loss and the reason for choosing it; empty if no metric needs a loss."""
    if loss is None:
        return ""
    why = loss.rule.removeprefix(f"loss {loss.name}: ")
    return f"loss {loss.name} = {loss.definition}" + ("" if why == loss.definition else f" ({why})")


def basis_line(result: Result) -> str:
    """Return which items are compared, and which clusters are left out."""
    matching, noun = result.matching, result.cluster_noun
    if matching is None:
        return population_line(result.only)
    if not matching.paired:
        each = [f"{name}, {population_line(system)}" for name, system in result.systems.items()]
        return f"independent samples: {'; '.join(each)}"
    text = format_count(matching.evaluated, "item")
    if any(map(is_clustered, result.systems.values())):
        text += f" of {format_count(matching.clusters, noun)}"
    text += f", matched by {' and '.join(matching.by).replace('rows', 'the order of rows')}"
    left_out = [f"{count:,} failed in {name}" for name, count in matching.clusters_failed.items() if count]
    where = "only in" if len(result.systems) == 2 else "not in all systems, of"
    left_out += [f"{count:,} {where} {name}" for name, count in matching.clusters_unmatched.items() if count]
    return text + (f"; {noun}s left out: {', '.join(left_out)}" if left_out else "")


def interval_lines(result: Result) -> list[str]:
    """Return how the confidence intervals were computed: those of single numbers, and those of differences."""
    settings, noun = result.settings, result.cluster_noun
    level = f"{100 * settings.level:g}% confidence intervals"
    own = [estimate for system in result.systems.values() for estimate in system.estimates.values()]
    compared = [each for each in result.differences if each.compared]
    methods = _methods(own, noun)
    lines = []
    if methods:
        lines.append(f"{level}: {methods}; areas by the convention {settings.convention}")
    elif result.population.items:
        lines.append("no confidence intervals" + (" were requested" if settings.interval == "none" else ""))
    if not compared:
        return lines
    text = f"intervals of differences: {_methods((each.estimate for each in compared), noun)}"
    if max(each.family for each in compared) > 1:
        together = "they hold for all pairs of systems together"
        text += f"; {together if settings.simultaneous else 'each holds for one pair of systems'}"
        text += "; p-values are corrected for all pairs by Holm's method"
    if settings.margin is not None:
        text += (
            f"; the number of {noun}s needed is for a difference of {settings.margin:g} and a power of 80%"
        )
    return [*lines, text]


def _methods(estimates: Iterable[Estimate], noun: str) -> str:
    """Return how intervals were computed, without the scale of each metric and without constants; exact bounds last."""
    methods = dict.fromkeys(each.method for each in estimates if each.interval is not None)
    usual = ["".join(method.partition("t distribution")[:2]) for method in methods if is_usual(method)]
    shown = [method.replace(" clusters", f" {noun}s") for method in dict.fromkeys(usual)]
    if len(shown) > _MOST_METHODS:
        shown[_MOST_METHODS:] = [f"and {len(shown) - _MOST_METHODS:,} more like these"]
    if any(method.startswith("exact bound") for method in methods):
        shown.append("exact bounds if nothing varied")
    return "; ".join(shown)


def is_usual(method: str) -> bool:
    """Return whether an interval is neither an exact bound nor of a constant."""
    return not method.startswith(("exact bound", "it cannot vary"))


def warning_lines(result: Result) -> list[str]:
    """Return every warning once, with the confidences that it concerns unless it concerns all of them."""
    messages: dict[str, list[str]] = {str(warning): [] for warning in result.warnings}
    for name, system in result.systems.items():
        for confidence, variant in system.items():
            for warning in variant.warnings:
                own = system.confidences.get(confidence, confidence)
                whose = own if len(result.systems) == 1 else f"{name} {own}"
                messages.setdefault(str(warning), []).append(whose)
    return [f"{', '.join(names)}: {message}" if names else message for message, names in messages.items()]


def summary_sentences(result: Result) -> list[str]:
    """Return the conclusion and the other findings of a summary, at most 16 of them."""
    lines = conclusion_lines(result, choose_differences(result))
    if len(lines) > _MOST_SENTENCES:
        more = len(lines) - _MOST_SENTENCES
        lines[_MOST_SENTENCES:] = [f"... and {more:,} more, in the table of differences"]
    return lines


def conclusion_lines(result: Result, differences: Iterable[Difference]) -> list[str]:
    """Return the headline and the findings on differences, each once.

    A whole-curve difference at unequal coverages is left out. Each finding names its confidence if there are several.
    """
    several = len({each.confidence for each in result.differences} - {""}) > 1
    headline = [] if result.headline is None else [result.headline.sentence]
    findings = [
        f"{each.subject(confidence=several)}: {each.finding}"
        for each in differences
        if each.basis != OWN_COVERAGES or not each.compared
    ]
    return list(dict.fromkeys([*headline, *findings]))


def choose_differences(result: Result) -> list[Difference]:
    """Return the differences that a summary shows: by confidence, those with a verdict first.

    They are those of the metrics that were requested by name. If none was, Cmax, both areas, and the risk at the
    largest coverage of the grid that both reach. The selective risk at matched coverage accompanies either. Of many
    groups, they are those of the groups with the smallest p-values.
    """
    metrics = _summary_metrics(result)
    chosen = [each for each in result.differences if each.metric in metrics or each.metric == "risk"]
    risks = {
        (each.left, each.right, each.confidence): each
        for each in result.differences
        if each.metric.startswith("risk_at_coverage@") and each.compared
    }
    if result.first.metrics is None:
        chosen += risks.values()
    shown_groups = _groups_that_differ(chosen)
    chosen = [each for each in chosen if each.group in shown_groups]
    confidences = ["", *result.first.confidences]

    def order(each: Difference) -> tuple[bool, bool, int, int]:
        # Differences that could not be compared come last, with their reason.
        position = metrics.index(each.metric) if each.metric in metrics else len(metrics)
        return not each.compared, bool(each.no_verdict), confidences.index(each.confidence), position

    return sorted(chosen, key=order)


def _groups_that_differ(differences: Iterable[Difference]) -> set[str]:
    """Return the groups whose differences are shown: at most 20, with the smallest p-values; "" is all items."""
    smallest: dict[str, float] = {}
    for each in differences:
        p = math.inf if math.isnan(each.p) else each.p
        smallest[each.group] = min(p, smallest.get(each.group, math.inf))
    smallest.pop("", None)
    return {"", *sorted(smallest, key=lambda group: smallest[group])[:MOST_GROUPS]}


def _summary_metrics(result: Result) -> list[str]:
    """Return the metrics of a comparison's summary, in order."""
    named = requested_metrics(result.first)
    headline = [] if result.first.metrics is not None and not result.first.variants else _HEADLINE
    metrics = {key.metric for key in result.first.estimates}
    return [name for name in dict.fromkeys((*headline, *named)) if name in metrics]


def requested_metrics(system: SystemResult) -> list[str]:
    """Return the metrics of a system that were requested by name, each once."""
    keys = () if system.metrics is None else system.metrics.keys_of.values()
    return list(dict.fromkeys(key.metric for key in keys))


def areas_table(system: SystemResult, *, truncated: bool = True) -> Table:
    """Return the areas of every confidence of one system; without a confidence, the metrics that need none.

    With `truncated`, the table has the AURC up to a smaller coverage, too.
    """
    if not system.variants:
        return _unranked_table(system)
    end = f"{system.settings.area_coverage:g}"
    headings = {"AURC": "aurc", "AUGRC": "augrc", "e-AURC": "eaurc"}
    headings |= {f"AURC@{end}": f"aurc_at_coverage@{end}"} if truncated else {}
    columns = (
        Column("confidence"),
        *(Column(key, title, estimate=True) for title, key in headings.items()),
    )
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (name, *(system[confidence_name].estimates[key] for key in headings.values()))
        for confidence_name, name in distinct_rankings(system).items()
    )
    return Table("", columns, rows, _reasons(rows, columns))


def distinct_rankings(system: SystemResult) -> dict[str, str]:
    """Return the names of the confidences of a system; those with the same numbers have one name.

    For example, `llm` and `total_evidence` of most run files are the same counts.
    """
    first: dict[tuple[object, ...], str] = {}
    names: dict[str, list[str]] = {}
    for confidence_name, variant in system.items():
        curve = variant.curve
        same = (curve.threshold.tobytes(), curve.coverage.tobytes(), curve.selective_risk.tobytes())
        names.setdefault(first.setdefault(same, confidence_name), []).append(
            system.confidences[confidence_name]
        )
    return {confidence_name: " = ".join(parts) for confidence_name, parts in names.items()}


def _unranked_table(system: SystemResult) -> Table:
    """Return the metrics that need no confidence, without those that were requested by name."""
    elsewhere = {"answer_rate", "cmax", "accuracy", "selective_accuracy", *requested_metrics(system)}
    rows = tuple(
        (key.metric, estimate, estimate.reason)
        for key, estimate in system.estimates.items()
        if not key.confidence and not key.group and key.metric not in elsewhere and estimate.defined
    )
    columns = (Column("metric"), Column("value", estimate=True), Column("remark"))
    return Table("", columns, rows).without_empty(remark="")


def _reasons(rows: Sequence[tuple[Cell, ...]], columns: Sequence[Column]) -> tuple[str, ...]:
    """Return why cells are undefined, each reason once after its columns."""
    columns_by_reason: dict[str, list[str]] = {}
    for row in rows:
        for cell, column in zip(row, columns, strict=True):
            if isinstance(cell, Estimate) and cell.reason:
                columns_by_reason.setdefault(cell.reason, []).append(column.title)
    return tuple(
        f"{', '.join(dict.fromkeys(names))}: {reason}" for reason, names in columns_by_reason.items()
    )


def risks_table(system: SystemResult, coverages: Sequence[float] | None = None) -> Table:
    """Return the selective risk at some coverages, one column per confidence. Default: every coverage of the grid."""
    shown_by = distinct_rankings(system)
    columns = (
        Column("coverage", "risk at coverage"),
        *(Column(confidence, name, estimate=True) for confidence, name in shown_by.items()),
    )
    shown = system.settings.coverage_grid if coverages is None else coverages
    rows = []
    for coverage in shown:
        risks = [system[name].estimates[f"risk_at_coverage@{coverage:g}"] for name in shown_by]
        rows.append((f"{coverage:.2f}", *(risk if risk.defined else "not reached" for risk in risks)))
    return Table("", columns, tuple(rows), tuple(_measured_beyond(system, shown_by, shown)))


def _summary_coverages(system: SystemResult) -> list[float]:
    """Return the coverages whose risk a summary shows.

    They are the requested ones. Of the default grid, they are about five of those that some confidence reaches: each
    operating point appears once, with the largest coverage that it is the answer to.
    """
    grid = system.settings.coverage_grid
    if tuple(grid) != tuple(DEFAULT_GRID):
        return list(grid)
    curves = [system[name].curve for name in distinct_rankings(system)]
    by_points: dict[tuple[int | None, ...], float] = {}
    for coverage in grid:
        points = tuple(curve.first_reaching(coverage) for curve in curves)
        if any(point is not None for point in points):
            by_points[points] = coverage
    reached = list(by_points.values())
    if len(reached) <= _MOST_RISKS:
        return reached
    step = (len(reached) - 1) / (_MOST_RISKS - 1)
    return [reached[round(number * step)] for number in range(_MOST_RISKS)]


def _measured_beyond(
    system: SystemResult, shown_by: Mapping[str, str], coverages: Sequence[float]
) -> list[str]:
    """Return notes on risks that were measured far beyond their coverage, at the first threshold that reaches it."""
    notes = []
    for confidence, name in shown_by.items():
        curve = system[confidence].curve
        indices = {coverage: curve.first_reaching(coverage) for coverage in coverages}
        beyond = [
            f"{coverage:.2f} at {curve.coverage[index]:.2f}"
            for coverage, index in indices.items()
            if index is not None and curve.coverage[index] > coverage + _FAR
        ]
        if beyond:
            notes.append(f"{name}: measured at the next operating point: {', '.join(beyond)}.")
    return notes


def metrics_table(table: MetricTable) -> Table:
    """Return the metrics that were requested by name, over all items."""
    columns = (Column("metric"), Column("value", estimate=True), Column("better"), Column("remark"))
    rows = tuple(
        (name, estimate, BETTER[table.specifications[name].direction], estimate.reason)
        for name, estimate in table.items()
    )
    return Table("", columns, rows).without_empty(remark="")


def groups_table(table: MetricTable) -> Table:
    """Return the metrics by group, of many groups the worst, and the distance of the worst group from all others."""
    columns = (
        Column("metric", once=True),
        Column("group"),
        Column("items", digits=0),
        Column("answered", digits=0),
        Column("value", estimate=True),
        Column("worst_against_the_rest"),
    )
    rows = []
    for name in table:
        gap = table.gaps.get(name)
        for group in table.worst_groups(name, MOST_GROUPS):
            estimate = group.estimates[name]
            remark = estimate.reason
            if gap is not None and gap.group == group.label:
                where = "" if math.isnan(gap.coverage) else f" at coverage {gap.coverage:.2f}"
                remark = f"{gap.gap}{where}"
            rows.append((name, group.label, group.items, group.answered, estimate, remark))
    return Table("", columns, tuple(rows), more_groups(len(table.groups), "the worst by each metric"))


def more_groups(count: int, shown: str) -> tuple[str, ...]:
    """Return a note if not all groups are shown.

    >>> more_groups(20, "the worst"), more_groups(3000, "the worst")
    ((), ('20 of 3,000 groups are shown, the worst; the results JSON has all of them (-o results.json).',))
    """
    if count <= MOST_GROUPS:
        return ()
    where = "the results JSON has all of them (-o results.json)"
    return (f"{MOST_GROUPS} of {count:,} groups are shown, {shown}; {where}.",)


def estimates_table(result: Result) -> Table:
    """Return every estimate of every system: one row per confidence, metric and group."""
    columns = (
        Column("system", once=True),
        Column("confidence", once=True),
        Column("metric"),
        Column("group"),
        Column("value", estimate=True),
        Column("items", digits=0, detail=True),
        Column("clusters", digits=0, detail=True),
        Column("method", detail=True),
        Column("remark"),
    )
    rows = tuple(
        (
            *(name, system.confidences.get(key.confidence, ""), key.metric, key.group or "all"),
            *(each, each.n, each.clusters, each.method, each.reason),
        )
        for name, system in result.systems.items()
        for key, each in system.estimates.items()
    )
    title = "; ".join(_named_sources(result))
    one = {"system": result.first.name} if len(result.systems) == 1 else {}
    return Table(title, columns, rows, _notes(result)).without_empty(
        confidence="", group="all", remark="", **one
    )


def differences_table(result: Result, differences: Sequence[Difference] | None = None) -> Table:
    """Return differences, the second system minus the first, with their verdicts. Default: all differences.

    For two systems the readable columns are both values, under the names of the systems. For more systems they are the
    names of each pair and the p-values that are corrected for the number of pairs. Programs read all columns.
    """
    two = len(result.systems) == 2
    first, second = result.systems if two else ("first", "second")
    columns = (
        Column("confidence", once=True),
        Column("metric", detail=True),
        Column("label", "metric", once=not two),
        Column("group"),
        Column("left", first, detail=two),
        Column("right", second, detail=two),
        Column("basis", detail=True),
        Column("coverage", digits=3, detail=True),
        Column("left_coverage", digits=3, detail=True),
        Column("right_coverage", digits=3, detail=True),
        Column("left_value", first, digits=3, estimate=True, detail=not two),
        Column("right_value", second, digits=3, estimate=True, detail=not two),
        Column("left_rank", digits=0, detail=True),
        Column("left_rank_worst", digits=0, detail=True),
        Column("right_rank", digits=0, detail=True),
        Column("right_rank_worst", digits=0, detail=True),
        Column("difference", f"{second} - {first}", estimate=True),
        Column("p", digits=4, detail=two, p_value=True),
        Column("p_holm", "p (Holm)", digits=4, detail=two, p_value=True),
        Column("method", detail=True),
        Column("verdict", detail=True),
        Column("winner", detail=True),
        Column("no_verdict", detail=True),
        Column("more_clusters", digits=0, detail=True),
        Column("conclusion"),
        Column("sentence", detail=True),
    )
    shown = result.differences if differences is None else differences
    rows = tuple(_difference_row(result, each) for each in shown)
    sources = _named_sources(result) if two else []
    headline = {} if result.headline is None else asdict(result.headline)
    facts = {
        "headline": {name: finite(value) for name, value in headline.items()} or None,
        "warnings": [{"code": warning.code, "message": warning.message} for warning in result.warnings],
    }
    table = Table("Differences between systems", columns, rows, (*sources, *_notes(result)), facts)
    return table.without_empty(confidence="", group="all")


def _difference_row(result: Result, each: Difference) -> tuple[Cell, ...]:
    more = each.more_clusters
    return (
        *(_confidence(result, each), each.metric, each.label, each.group or "all", each.left, each.right),
        *(each.basis, each.coverage, each.left_coverage, each.right_coverage),
        *(_side_value(result, each, name) for name in (each.left, each.right)),
        *(cell for name in (each.left, each.right) for cell in _ranks(result, each, name)),
        *(each.estimate, each.p, each.p_adjusted, each.estimate.method),
        *(each.verdict, each.winner, each.no_verdict),
        max(int(more), 0) if 0.0 <= more < float("inf") else None,
        *(each.conclusion, each.sentence),
    )


def _confidence(result: Result, each: Difference) -> str:
    """Return the confidence of a difference; both names if the systems have different ones."""
    sides = (result.systems[name].confidences.get(each.confidence, "") for name in (each.left, each.right))
    return " / ".join(dict.fromkeys(sides))


def _side_value(result: Result, each: Difference, name: str) -> Cell:
    """Return the metric of one side with its interval; at matched coverage only the value, which has no interval."""
    if each.matched:
        return each.left_value if name == each.left else each.right_value
    return result.systems[name].estimates[Key(each.confidence, each.metric, each.group)]


def _ranks(result: Result, each: Difference, name: str) -> tuple[int | None, int | None]:
    ranks = [
        result.ranks.get((name, confidence_name, each.metric)) for confidence_name in (each.confidence, "")
    ]
    rank = None if each.group else ranks[0] or ranks[1]
    return (None, None) if rank is None else (rank.best, rank.worst)


def systems_table(result: Result) -> Table:
    """Return every system by each confidence: its coverage, and each metric with its rank."""
    names = _summary_metrics(result)
    ranked = [name for name in names if result.specifications[name].comparison != "undirected"]
    columns = [
        Column("system", once=True),
        Column("confidence"),
        Column("items", digits=0),
        Column("answered", digits=0),
        Column("coverage", estimate=True),
    ]
    for name in names:
        columns.append(Column(name, name, estimate=True))
        if name in ranked:
            columns.append(Column(f"{name}_rank", "rank"))
    rows = []
    for name, system in result.systems.items():
        population = system.population
        for confidence_name, confidence in system.confidences.items() or (("", ""),):
            cells: list[Cell] = [name, confidence, population.items, population.answered, system.coverage]
            for metric in names:
                own = confidence_name if Key(confidence_name, metric) in system.estimates else ""
                cells.append(system.estimates[Key(own, metric)])
                if metric in ranked:
                    cells.append(str(result.ranks.get((name, own, metric)) or "none"))
            rows.append(tuple(cells))
    notes = ("A rank is a range: the ranks that the data do not rule out.",)
    return Table("Systems", tuple(columns), tuple(rows), notes).without_empty(confidence="")


def tables(result: Result) -> list[Table]:
    """Return the tables of `--format`: every estimate of one system; of several systems, differences and systems."""
    if len(result.systems) == 1:
        return [estimates_table(result)]
    return [differences_table(result), systems_table(result)]


def _notes(result: Result) -> tuple[str, ...]:
    """Return the notes of every table of a result."""
    lines = [basis_line(result), loss_line(result.loss), *interval_lines(result)]
    return (*(f"{text[:1].upper()}{text[1:]}." for text in lines if text), *warning_lines(result))


def summary(result: Result, width: int = console.WIDTH, *, explain: bool = False) -> Group:
    """Return the summary for the terminal: the conclusion, the warnings, the evidence, and a footnote.

    A warning that puts every number in doubt comes before the conclusion.

    Args:
        result: one system, or several that were compared.
        width: the width of the terminal.
        explain: whether to explain the terms below the footnote.
    """
    first = [str(warning) for warning in result.warnings if warning.code == POSSIBLE_SCALE]
    warnings = [text for text in warning_lines(result) if text not in first]
    one = len(result.systems) == 1
    parts = [format_item("!", text, width, "yellow") for text in first]
    parts += [line()] if first else []
    parts += (_summarize_system if one else _summarize_comparison)(result, warnings, width)
    effect = [design_effect_line(result.only)] if one else []
    footnote = [f"{text[:1].upper()}{text[1:]}." for text in (*interval_lines(result), *effect) if text]
    parts += format_lines(" ".join(footnote), width, dim=True) if footnote else []
    if explain:
        parts += console.format_meanings("Terms", _MEANINGS, width)
    return Group(*parts)


def _summarize_system(result: Result, warnings: Sequence[str], width: int) -> list[Text]:
    """Return items and coverage, error rate and accuracy, warnings, areas, risks, and the requested metrics."""
    system = result.only
    population, metrics = system.population, system.metrics
    source = f"{source_line(system.provenance)}: " if "path" in system.provenance else ""
    parts = format_lines(f"{source}{population_line(system)}", width, style="bold")
    parts += [line(), format_table(outcome_table(system), width)]
    parts += console.format_warnings(warnings, width)
    if system.loss is not None:
        parts += [*format_lines(f"Risk is the mean of {loss_line(system.loss)}.", width), line()]
    # The truncated area is shown only if its end was named, so that the table fits 80 columns.
    areas = areas_table(system, truncated=system.settings.area_coverage != DEFAULT_AREA_COVERAGE)
    if areas.rows:
        parts.append(format_table(areas, width))
    if population.answered and 0 < len(system) <= _SIDE_BY_SIDE:
        parts.append(format_table(risks_table(system, _summary_coverages(system)), width))
    elif len(system) > _SIDE_BY_SIDE:
        parts += [
            line(f"The risks of {len(system)} confidences are in the results JSON (-o NAME.json)."),
            line(),
        ]
    if metrics is not None:
        parts.append(format_table(metrics_table(metrics), width))
        if metrics.groups:
            parts.append(format_table(groups_table(metrics), width))
    return parts


def _summarize_comparison(result: Result, warnings: Sequence[str], width: int) -> list[Text]:
    """Return the conclusion, warnings, the other findings, and the tables of systems and differences."""
    two = len(result.systems) == 2
    sentences = summary_sentences(result)
    count = 0 if result.headline is None else 1
    parts = format_lines(f"{len(result.systems)} systems, {basis_line(result)}", width, style="bold")
    for text in _named_sources(result) if two else []:
        parts += format_lines(text, width)
    parts += [
        line(),
        *(text for each in sentences[:count] for text in format_lines(f"{each}.", width)),
        line(),
    ]
    parts += console.format_warnings(warnings, width)
    if result.loss is not None:
        parts += [*format_lines(f"Risk is the mean of {loss_line(result.loss)}.", width), line()]
    if sentences[count:]:
        parts += [*(format_item("-", each, width) for each in sentences[count:]), line()]
    if not two:
        parts.append(format_table(systems_table(result), width))
    # The footnote of the summary has the notes of this table.
    differences = replace(differences_table(result, choose_differences(result)), title="", notes=())
    groups = len({each.group for each in result.differences if each.group})
    notes = more_groups(groups, "those with the smallest p-values")
    return [*parts, format_table(differences, width), *(format_item("-", note, width) for note in notes)]


def _named_sources(result: Result) -> list[str]:
    """Return the source of each system after its name."""
    if len(result.systems) == 1:
        return [source_line(result.only.provenance)]
    return [f"{name}: {source_line(system.provenance)}" for name, system in result.systems.items()]


def format_count(count: int, noun: str) -> str:
    """Return a count with its noun.

    >>> format_count(1, "item"), format_count(1200, "item")
    ('1 item', '1,200 items')
    """
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
