"""A `Result` as sentences and tables.

The terminal summary, `--format`, the notebook and the HTML report use these. Which system is better is not decided
here: the verdict of a difference says so (`Difference.conclusion`, `Difference.sentence`).
"""

from __future__ import annotations

import math
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

from rich.console import Group

from abstain.evaluation import OWN_COVERAGES, POSSIBLE_SCALE, Key
from abstain.inference import Estimate
from abstain.report import console
from abstain.report.console import format_item, format_table, heading, line
from abstain.report.tables import Column, Table, finite

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rich.text import Text

    from abstain.evaluation import Difference, MetricTable, Result, SystemResult
    from abstain.losses import ItemLoss
    from abstain.report.tables import Cell

# Beyond this many confidences their risks would not fit side by side; the table of all estimates has them.
_SIDE_BY_SIDE = 4
# The table of differences has the others.
_MOST_SENTENCES = 16
# Of more groups, a summary shows the worst; each group may have its own method.
MOST_GROUPS = 20
_MOST_METHODS = 5
# The metrics of a comparison's summary if no metric was requested by name.
_HEADLINE = ("augrc", "aurc", "cmax")
BETTER = {"higher": "higher", "lower": "lower", "neither": "depends"}

_MEANINGS = {
    "coverage": "share of items answered; Cmax is the most that a system can answer",
    "AURC": "mean loss of what is answered, averaged over coverage up to Cmax; lower is better",
    "AUGRC": "loss per item asked, averaged the same way: how often a silent failure gets through; lower is better",
    "e-AURC": "how much of the AURC a perfect ranking of the same answers would save",
}
# A risk that was measured this far beyond the requested coverage has a note.
_FAR = 0.02


def source_line(provenance: Mapping[str, object]) -> str:
    """Return where items came from: the path, and the mode of a run file.

    >>> source_line({"path": "run.json", "mode": "few_shot"}), source_line({})
    ('run.json (few_shot)', 'items')
    """
    path, mode = provenance.get("path"), provenance.get("mode")
    return f"{path or 'items'}{f' ({mode})' if mode else ''}"


def population_line(system: SystemResult) -> str:
    """Return how many clusters and items were evaluated."""
    population, noun = system.population, system.cluster_noun
    text = (
        f"{population.included:,} of {format_count(population.total, noun)} judged; {population.items:,} items: "
        f"{population.answered:,} answered, {population.abstained:,} abstained"
    )
    if population.items_failed or population.items_unscored:
        text += (
            f" (and {population.items_failed:,} failed, {population.items_unscored:,} unscored, not counted)"
        )
    if not math.isnan(system.design_effect):
        meaning = "clusters do not widen the intervals"
        if system.design_effect > 1.0:
            worth = population.answered / system.design_effect
            meaning = f"the answers say as much as {worth:,.0f} independent ones"
        text += f"; design effect {system.design_effect:.2f}: {meaning}"
    return text


def loss_line(loss: ItemLoss | None) -> str:
    """Return the definition of the loss and why it was chosen; empty if no metric needs a loss."""
    if loss is None:
        return ""
    why = loss.rule.removeprefix(f"loss {loss.name}: ")
    return f"loss {loss.name} = {loss.definition}" + ("" if why == loss.definition else f" ({why})")


def basis_line(result: Result) -> str:
    """Return which items are compared, and which clusters are left out."""
    matching, noun = result.matching, result.cluster_noun
    if matching is None:
        return population_line(result.only)
    clusters = format_count(matching.clusters, noun)
    text = f"{matching.evaluated:,} items of {clusters}, matched by {' and '.join(matching.by)}"
    left_out = [f"{count:,} failed in {name}" for name, count in matching.clusters_failed.items() if count]
    where = "only in" if len(result.systems) == 2 else "not in all systems, of"
    left_out += [f"{count:,} {where} {name}" for name, count in matching.clusters_unmatched.items() if count]
    return text + (f"; {noun}s left out: {', '.join(left_out)}" if left_out else "")


def interval_lines(result: Result) -> list[str]:
    """Return how the intervals were computed: those of single numbers, and those of differences."""
    settings = result.settings
    level = f"{100 * settings.level:g}% intervals"
    lines = []
    own = [estimate for system in result.systems.values() for estimate in system.estimates.values()]
    methods = _methods(own)
    if methods:
        lines.append(f"{level}: {methods}; convention {settings.convention}")
    elif result.population.items:
        lines.append("no intervals" + (" were asked for" if settings.interval == "none" else ""))
    compared = [each for each in result.differences if each.compared]
    if not compared:
        return lines
    text = f"{level} of differences: {_methods(each.estimate for each in compared)}"
    if max(each.family for each in compared) > 1:
        together = "they hold for all pairs of systems together"
        text += f"; {together if settings.simultaneous else 'each is for one comparison by itself'}"
        text += "; p-values are corrected by Holm's method for all pairs of systems"
    if settings.margin is not None:
        needed = f"the number of {result.cluster_noun}s needed is for a difference of {settings.margin:g}"
        text += f"; {needed} and a power of 80%"
    lines.append(text)
    return lines


def _methods(estimates: Iterable[Estimate]) -> str:
    """Return how intervals were computed, without the scale of each metric; exact bounds last, constants not at all."""
    methods = dict.fromkeys(each.method for each in estimates if each.interval is not None)
    usual = ["".join(method.partition("t distribution")[:2]) for method in methods if is_usual(method)]
    shown = list(dict.fromkeys(usual))
    if len(shown) > _MOST_METHODS:
        shown[_MOST_METHODS:] = [f"and {len(shown) - _MOST_METHODS:,} more like these"]
    if any(method.startswith("exact bound") for method in methods):
        shown.append("exact bounds where nothing varied")
    return "; ".join(shown)


def is_usual(method: str) -> bool:
    """Return whether an interval is neither an exact bound nor of a constant."""
    return not method.startswith(("exact bound", "it cannot vary"))


def warning_lines(result: Result) -> list[str]:
    """Return every warning once, after the names that it holds for if these are not all."""
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


def areas_table(system: SystemResult) -> Table:
    """Return the areas of every confidence of one system; what needs no confidence where it has none."""
    if not system.variants:
        return _unranked_table(system)
    end = f"{system.settings.area_coverage:g}"
    headings = {"AURC": "aurc", "AUGRC": "augrc", "e-AURC": "eaurc", f"AURC@{end}": f"aurc_at_coverage@{end}"}
    columns = (
        Column("confidence"),
        *(Column(key, title, estimate=True) for title, key in headings.items()),
    )
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (name, *(system[slot].estimates[key] for key in headings.values()))
        for slot, name in distinct_rankings(system).items()
    )
    return Table("", columns, rows, _reasons(rows, columns))


def distinct_rankings(system: SystemResult) -> dict[str, str]:
    """Return the confidences of a system by what each is called; those with the same numbers under one name.

    A run file's `llm` and `total_evidence` are the same counts unless it says otherwise; nobody reads them twice.
    """
    first: dict[tuple[object, ...], str] = {}
    names: dict[str, list[str]] = {}
    for slot, variant in system.items():
        curve = variant.curve
        same = (curve.threshold.tobytes(), curve.coverage.tobytes(), curve.selective_risk.tobytes())
        names.setdefault(first.setdefault(same, slot), []).append(system.confidences[slot])
    return {slot: " = ".join(parts) for slot, parts in names.items()}


def _unranked_table(system: SystemResult) -> Table:
    """Return the metrics that need no confidence, without those that were requested by name."""
    elsewhere = {"answer_rate", "cmax", *requested_metrics(system)}
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


def risks_table(system: SystemResult) -> Table:
    """Return the selective risk at every coverage of the grid, one column per confidence."""
    shown_by = distinct_rankings(system)
    columns = (
        Column("coverage", "risk at coverage"),
        *(Column(slot, name, estimate=True) for slot, name in shown_by.items()),
    )
    rows = []
    for coverage in system.settings.coverage_grid:
        risks = [system[slot].estimates[f"risk_at_coverage@{coverage:g}"] for slot in shown_by]
        rows.append((f"{coverage:.2f}", *(risk if risk.defined else "not reached" for risk in risks)))
    return Table("", columns, tuple(rows), tuple(_measured_beyond(system, shown_by)))


def _measured_beyond(system: SystemResult, shown_by: Mapping[str, str]) -> list[str]:
    """Return notes on risks that were measured far beyond their coverage, at the first threshold that reaches it."""
    notes = []
    for slot, name in shown_by.items():
        curve = system[slot].curve
        indices = {coverage: curve.first_reaching(coverage) for coverage in system.settings.coverage_grid}
        beyond = [
            f"{coverage:.2f} at {curve.coverage[index]:.2f}"
            for coverage, index in indices.items()
            if index is not None and curve.coverage[index] > coverage + _FAR
        ]
        if beyond:
            notes.append(f"{name}: measured at the next threshold there is, beyond: {', '.join(beyond)}.")
    return notes


def metrics_table(table: MetricTable) -> Table:
    """Return the metrics that were asked for by name, over all items."""
    columns = (Column("metric"), Column("value", estimate=True), Column("better"), Column("remark"))
    rows = tuple(
        (name, estimate, BETTER[table.specifications[name].direction], estimate.reason)
        for name, estimate in table.items()
    )
    return Table("", columns, rows).without_empty(remark="")


def groups_table(table: MetricTable) -> Table:
    """Return the metrics by group, of many groups the worst; beside the worst group how far it is from all others."""
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
    """Return differences, the second system less the first, with their verdicts; all of them when none are given.

    With two systems people read both values, under the names of the systems; with more the names of the two, and the
    p-values that the number of pairs corrects. Programs read all of it.
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
    """Return the metric of one side with its interval; only the value at matched coverage, where it has none."""
    if each.matched:
        return each.left_value if name == each.left else each.right_value
    return result.systems[name].estimates[Key(each.confidence, each.metric, each.group)]


def _ranks(result: Result, each: Difference, name: str) -> tuple[int | None, int | None]:
    ranks = [result.ranks.get((name, slot, each.metric)) for slot in (each.confidence, "")]
    rank = None if each.group else ranks[0] or ranks[1]
    return (None, None) if rank is None else (rank.best, rank.worst)


def systems_table(result: Result) -> Table:
    """Return every system by each confidence: what it answered, and each metric with the rank that it gives."""
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
        for slot, confidence in system.confidences.items() or (("", ""),):
            cells: list[Cell] = [name, confidence, population.items, population.answered, system.coverage]
            for metric in names:
                own = slot if Key(slot, metric) in system.estimates else ""
                cells.append(system.estimates[Key(own, metric)])
                if metric in ranked:
                    cells.append(str(result.ranks.get((name, own, metric)) or "none"))
            rows.append(tuple(cells))
    notes = ("A rank is a range: the ranks that cannot be ruled out.",)
    return Table("Systems", tuple(columns), tuple(rows), notes).without_empty(confidence="")


def tables(result: Result) -> list[Table]:
    """Return what `--format` renders: every estimate of one system; of several the differences, and the systems."""
    if len(result.systems) == 1:
        return [estimates_table(result)]
    return [differences_table(result), systems_table(result)]


def _notes(result: Result) -> tuple[str, ...]:
    """Return the notes of every table of a result."""
    lines = [basis_line(result), loss_line(result.loss), *interval_lines(result)]
    return (*(f"{text[:1].upper()}{text[1:]}." for text in lines if text), *warning_lines(result))


def summary(result: Result, width: int = console.WIDTH) -> Group:
    """Return the summary for the terminal; of several systems it says the verdicts first."""
    # These come before everything else: the numbers may not be the intended ones.
    first = [str(warning) for warning in result.warnings if warning.code == POSSIBLE_SCALE]
    rest = [text for text in warning_lines(result) if text not in first]
    parts = [format_item("!", text, width, "yellow") for text in first]
    meanings = dict(_MEANINGS)
    if len(result.systems) == 1:
        parts += _summarize_system(result.only, width)
    else:
        parts += _summarize_comparison(result, width)
        del meanings["e-AURC"]
    parts += [line(f"[{text}]", dim=True) for text in interval_lines(result)]
    parts += console.format_warnings(rest, width)
    if result.first.variants:
        parts += console.format_meanings("what the numbers mean", meanings, width)
    return Group(*parts)


def _summarize_system(system: SystemResult, width: int) -> list[Text]:
    population, metrics = system.population, system.metrics
    parts = [heading(source_line(system.provenance)), line(f"population: {population_line(system)}")]
    if system.loss is not None:
        parts.append(line(loss_line(system.loss)))
    cmax = system.estimates.get(Key("", "cmax"))
    parts.append(line(f"answer rate: {system.coverage}" if cmax is None else f"Cmax: {cmax}"))
    if population.right:
        wrong = f"{population.wrong:,} of {population.answered:,} wrong ({100 * population.error_rate:.1f}%)"
        parts.append(line(f"answers: {wrong}; accuracy over all items {population.accuracy:.3f}"))
    parts.append(line())
    areas = areas_table(system)
    if areas.rows:
        parts.append(format_table(areas, width))
    if population.answered and 0 < len(system) <= _SIDE_BY_SIDE:
        parts.append(format_table(risks_table(system), width))
    elif len(system) > _SIDE_BY_SIDE:
        parts += [line(f"risk at coverage: of {len(system)} confidences, in what -o writes"), line()]
    if metrics is not None:
        if metrics.of_predictions:
            counts = metrics.outcomes
            answers = f"{counts.right:,} right, {counts.wrong:,} wrong"
            others = f"{counts.abstained:,} abstained, {counts.failed:,} failed"
            parts += [line(f"outcomes: {answers}, {others}"), line()]
        parts.append(format_table(metrics_table(metrics), width))
        if metrics.groups:
            parts.append(format_table(groups_table(metrics), width))
    return parts


def _summarize_comparison(result: Result, width: int) -> list[Text]:
    two = len(result.systems) == 2
    parts = [heading(f"{len(result.systems)} systems, {basis_line(result)}")]
    parts += [line(text) for text in _named_sources(result)] if two else []
    if result.loss is not None:
        parts.append(line(loss_line(result.loss)))
    parts += [line(), *(format_item("-", sentence, width) for sentence in summary_sentences(result)), line()]
    if not two:
        parts.append(format_table(systems_table(result), width))
    # The notes of this table are printed below everything.
    differences = replace(differences_table(result, choose_differences(result)), title="", notes=())
    count = len({each.group for each in result.differences if each.group})
    notes = more_groups(count, "those with the smallest p-values")
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
