"""Views: what a `Result` says, as sentences and tables; the one place that words results.

The terminal summary, `--format`, the notebook and the HTML report read these. Who is better is said by the verdict of a
difference (`Difference.in_words`, `Difference.words`) and decided nowhere here. How a table looks is in `tables`.
"""

from __future__ import annotations

import math
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from rich.console import Group

from abstain.evaluation import OWN_COVERAGES, POSSIBLE_SCALE, Key
from abstain.inference import Estimate
from abstain.report.console import WIDTH, heading, line, listed, shown, warnings_list, word_list
from abstain.report.tables import Column, Table

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rich.text import Text

    from abstain.evaluation import Difference, Headline, MetricTable, Population, Result, SystemResult
    from abstain.losses import ItemLoss
    from abstain.report.tables import Cell

# Beyond this many confidences their risks would not fit side by side; the table of all estimates has them.
_SIDE_BY_SIDE = 4
# So many sentences are read; the table of differences has the others.
_MOST_SENTENCES = 16
# What systems are compared by in a summary where no metric was asked for by name.
_HEADLINE = ("augrc", "aurc", "cmax")
BETTER = {"higher": "higher", "lower": "lower", "neither": "depends"}

MEANINGS = {
    "coverage": "share of items answered; Cmax is the most that a system can answer",
    "AURC": "mean loss of what is answered, averaged over coverage up to Cmax; lower is better",
    "AUGRC": "loss per item asked, averaged the same way: how often a silent failure gets through; lower is better",
    "e-AURC": "how much of the AURC a perfect ranking of the same answers would save",
}
# A risk that was measured further beyond the coverage that was asked for is said to be.
_FAR = 0.02
_COMPARED_MEANINGS = {name: text for name, text in MEANINGS.items() if name != "e-AURC"}


def source_line(provenance: Mapping[str, object]) -> str:
    """Return where items came from: the path, and the mode of a run file.

    >>> source_line({"path": "run.json", "mode": "few_shot"}), source_line({})
    ('run.json (few_shot)', 'items')
    """
    path, mode = provenance.get("path"), provenance.get("mode")
    return f"{path or 'items'}{f' ({mode})' if mode else ''}"


def population_line(system: SystemResult) -> str:
    """Return who was judged."""
    population, noun = system.population, system.cluster_noun
    text = (
        f"{population.included:,} of {many(population.total, noun)} judged; {population.items:,} items: "
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


def answers_line(population: Population) -> str:
    """Return how many answers are wrong, and the accuracy; empty where nothing was answered, or never exactly."""
    if not population.right:
        return ""
    return (
        f"answers: {population.wrong:,} of {population.answered:,} wrong ({100 * population.share_wrong:.1f}%); "
        f"accuracy over all items {population.accuracy:.3f}"
    )


def loss_line(loss: ItemLoss | None) -> str:
    """Return what a wrong answer costs, and by which rule; empty where no metric needs a loss."""
    if loss is None:
        return ""
    why = loss.rule.removeprefix(f"loss {loss.name}: ")
    return f"loss {loss.name} = {loss.definition}" + ("" if why == loss.definition else f" ({why})")


def basis_line(result: Result) -> str:
    """Return which items a comparison rests on, and which clusters it leaves out."""
    matching, noun = result.matching, result.cluster_noun
    if matching is None:
        return population_line(result.only)
    text = f"{matching.judged:,} items of {many(matching.clusters, noun)}, matched by {' and '.join(matching.by)}"
    left_out = [f"{count:,} failed in {name}" for name, count in matching.clusters_failed.items() if count]
    where = "only in" if len(result.systems) == 2 else "not in all systems, of"
    left_out += [f"{count:,} {where} {name}" for name, count in matching.clusters_alone.items() if count]
    return text + (f"; {noun}s left out: {', '.join(left_out)}" if left_out else "")


def interval_lines(result: Result) -> list[str]:
    """Return how the intervals were made: those of single numbers, and those of differences."""
    settings = result.settings
    level = f"{100 * settings.level:g}% intervals"
    lines = []
    own = [estimate for system in result.systems.values() for estimate in system.estimates.values()]
    methods = "; ".join(_methods(own))
    if methods:
        lines.append(f"{level}: {methods}; convention {settings.convention}")
    elif result.population.items:
        lines.append("no intervals" + (" were asked for" if settings.interval == "none" else ""))
    compared = [each for each in result.differences if each.compared]
    if not compared:
        return lines
    text = f"{level} of differences: {'; '.join(_methods(each.estimate for each in compared))}"
    if max(each.family for each in compared) > 1:
        text += (
            "; they hold for all pairs of systems together"
            if settings.simultaneous
            else "; each is for one comparison by itself"
        )
        text += "; p-values are corrected by Holm's method for all pairs of systems"
    size = "the difference as observed" if settings.margin is None else f"a difference of {settings.margin:g}"
    return [
        *lines,
        f"{text}; how many more {result.cluster_noun}s would tell is for {size} and a power of 80%",
    ]


def _methods(estimates: Iterable[Estimate]) -> list[str]:
    """How intervals were made, without the scale of each metric; exact bounds last, and not what cannot vary."""
    found = dict.fromkeys(each.method for each in estimates if each.interval is not None)
    bounds = any(method.startswith(_BOUND) for method in found)
    usual = [
        "".join(method.partition(_DISTRIBUTION)[:2])
        for method in found
        if not method.startswith((_BOUND, "it cannot vary"))
    ]
    return [*dict.fromkeys(usual), *(["exact bounds where nothing varied"] if bounds else [])]


_BOUND, _DISTRIBUTION = "exact bound", "t distribution"


def outcomes_line(table: MetricTable) -> str:
    """Return what became of the items."""
    counts = table.outcomes
    return f"{counts.right:,} right, {counts.wrong:,} wrong, {counts.abstained:,} abstained, {counts.failed:,} failed"


def first_warnings(result: Result) -> list[str]:
    """Return the warnings that come before everything else: the numbers may not be the intended ones."""
    return [str(warning) for warning in result.warnings if warning.code == POSSIBLE_SCALE]


def warning_lines(result: Result) -> list[str]:
    """Return every warning once, after the names of all that it holds for where it is not for everything."""
    messages: dict[str, list[str]] = {str(warning): [] for warning in result.warnings}
    for name, system in result.systems.items():
        for confidence, variant in system.items():
            for warning in variant.warnings:
                own = system.confidences.get(confidence, confidence)
                whose = own if len(result.systems) == 1 else f"{name} {own}"
                messages.setdefault(str(warning), []).append(whose)
    return [f"{', '.join(names)}: {message}" if names else message for message, names in messages.items()]


def sentences(result: Result) -> list[str]:
    """Return the conclusion and the other findings of a summary, at most so many as are read.

    Differences over whole curves that are not comparable are in the table only.
    """
    words = dict(zip(map(id, result.differences), result.words, strict=True))
    first = [] if result.headline is None else [result.headline.sentence]
    found = [words[id(each)] for each in chosen(result) if each.basis != OWN_COVERAGES or not each.compared]
    told = list(dict.fromkeys([*first, *found]))
    more = len(told) - _MOST_SENTENCES
    return [
        *told[:_MOST_SENTENCES],
        *([f"... and {more:,} more, in the table of differences"] if more > 0 else []),
    ]


def chosen(result: Result) -> list[Difference]:
    """Return the differences that a summary shows: by confidence, those with a verdict first.

    They are those of the metrics that were requested by name. If none was, Cmax, both areas, and the risk at the
    largest coverage of the grid that both reach. The selective risk at matched coverage accompanies either.
    """
    asked = _asked(result)
    found = [each for each in result.differences if each.metric in asked or each.metric == "risk"]
    risks = {
        (each.left, each.right, each.confidence): each
        for each in result.differences
        if each.metric.startswith("risk_at_coverage@") and each.compared
    }
    if result.first.metrics is None:
        found += risks.values()
    slots = ["", *result.first.confidences]
    places = {name: place for place, name in enumerate(asked)}

    def order(each: Difference) -> tuple[bool, bool, int, int]:
        # Differences that could not be compared come last, with their reason.
        place = places.get(each.metric, len(places))
        return not each.compared, bool(each.no_verdict), slots.index(each.confidence), place

    return sorted(found, key=order)


def _asked(result: Result) -> list[str]:
    """The metrics that a summary compares by, in order."""
    named = asked_by_name(result.first)
    headline = [] if result.first.metrics is not None and not result.first.variants else _HEADLINE
    known = {key.metric for key in result.first.estimates}
    return [name for name in dict.fromkeys((*headline, *named)) if name in known]


def asked_by_name(system: SystemResult) -> list[str]:
    """Return the metrics of a system that were asked for by name, each once."""
    keys = () if system.metrics is None else system.metrics.keys_of.values()
    return list(dict.fromkeys(key.metric for key in keys))


def areas_table(system: SystemResult) -> Table:
    """Return the areas of every confidence of one system; what needs no confidence where it has none."""
    if not system.variants:
        return _free_table(system)
    end = f"{system.settings.area_coverage:g}"
    headings = {"AURC": "aurc", "AUGRC": "augrc", "e-AURC": "eaurc", f"AURC@{end}": f"aurc_at_coverage@{end}"}
    columns = (
        Column("confidence"),
        *(Column(key, title, estimate=True) for title, key in headings.items()),
    )
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (name, *(system[slot].estimates[key] for key in headings.values()))
        for slot, name in rankings(system).items()
    )
    return Table("", columns, rows, _reasons(rows, columns))


def rankings(system: SystemResult) -> dict[str, str]:
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


def _free_table(system: SystemResult) -> Table:
    """What can be measured without a confidence, beside what was asked for by name."""
    told = {"answer_rate", "cmax", *asked_by_name(system)}
    rows = tuple(
        (key.metric, estimate, estimate.reason)
        for key, estimate in system.estimates.items()
        if not key.confidence and not key.group and key.metric not in told and estimate.defined
    )
    columns = (Column("metric"), Column("value", estimate=True), Column("remark"))
    return Table("", columns, rows).without_empty(remark="")


def _reasons(rows: Sequence[tuple[Cell, ...]], columns: Sequence[Column]) -> tuple[str, ...]:
    """Why cells are undefined, each reason once after the columns that it holds for."""
    found: dict[str, list[str]] = {}
    for row in rows:
        for cell, column in zip(row, columns, strict=True):
            if isinstance(cell, Estimate) and cell.reason:
                found.setdefault(cell.reason, []).append(column.title)
    return tuple(f"{', '.join(dict.fromkeys(names))}: {reason}" for reason, names in found.items())


def risks_table(system: SystemResult) -> Table:
    """Return the selective risk at every coverage of the grid, one column per confidence."""
    shown_by = rankings(system)
    columns = (
        Column("coverage", "risk at coverage"),
        *(Column(slot, name, estimate=True) for slot, name in shown_by.items()),
    )
    rows = []
    for coverage in system.settings.coverage_grid:
        risks = [system[slot].estimates[f"risk_at_coverage@{coverage:g}"] for slot in shown_by]
        rows.append((f"{coverage:.2f}", *(risk if risk.defined else "not reached" for risk in risks)))
    return Table("", columns, tuple(rows), tuple(_measured_at(system, shown_by)))


def _measured_at(system: SystemResult, shown_by: Mapping[str, str]) -> list[str]:
    """Where risks were really measured: at the first threshold that reaches a coverage, which can lie far beyond it."""
    found = []
    for slot, name in shown_by.items():
        curve = system[slot].curve
        places = {coverage: curve.first_reaching(coverage) for coverage in system.settings.coverage_grid}
        beyond = [
            f"{coverage:.2f} at {curve.coverage[place]:.2f}"
            for coverage, place in places.items()
            if place is not None and curve.coverage[place] > coverage + _FAR
        ]
        if beyond:
            found.append(f"{name}: measured at the next threshold there is, beyond: {', '.join(beyond)}.")
    return found


def metrics_table(table: MetricTable) -> Table:
    """Return the metrics that were asked for by name, over all items."""
    columns = (Column("metric"), Column("value", estimate=True), Column("better"), Column("remark"))
    rows = tuple(
        (name, estimate, BETTER[table.specifications[name].direction], estimate.reason)
        for name, estimate in table.items()
    )
    return Table("", columns, rows).without_empty(remark="")


def groups_table(table: MetricTable) -> Table:
    """Return the metrics by group; beside the worst group how far it is from all other rows."""
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
        for group in table.groups:
            estimate = group.estimates[name]
            remark = estimate.reason
            if gap is not None and gap.group == group.label:
                remark = str(gap.gap) + (
                    "" if math.isnan(gap.coverage) else f" at coverage {gap.coverage:.2f}"
                )
            rows.append((name, group.label, group.items, group.answered, estimate, remark))
    return Table("", columns, tuple(rows))


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
        Column("in_words"),
        Column("sentence", detail=True),
    )
    told = result.differences if differences is None else differences
    rows = tuple(_difference_row(result, each) for each in told)
    sources = _named_sources(result) if two else []
    facts = {
        "headline": None if result.headline is None else headline_facts(result.headline),
        "warnings": [{"code": warning.code, "message": warning.message} for warning in result.warnings],
    }
    table = Table("Differences between systems", columns, rows, (*sources, *_notes(result)), facts)
    return table.without_empty(confidence="", group="all")


def headline_facts(headline: Headline) -> dict[str, Any]:
    """Return a headline as JSON has it: undefined numbers are null."""
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in ((each.name, getattr(headline, each.name)) for each in fields(headline))
    }


def _difference_row(result: Result, each: Difference) -> tuple[Cell, ...]:
    more = each.more_clusters
    return (
        *(_confidence(result, each), each.metric, each.label, each.group or "all", each.left, each.right),
        *(each.basis, each.coverage, each.left_coverage, each.right_coverage),
        *(_side(result, each, name) for name in (each.left, each.right)),
        *(cell for name in (each.left, each.right) for cell in _ranks(result, each, name)),
        *(each.estimate, each.p, each.p_adjusted, each.estimate.method),
        *(each.verdict, each.winner, each.no_verdict),
        max(int(more), 0) if 0.0 <= more < float("inf") else None,
        *(each.in_words, each.words),
    )


def _confidence(result: Result, each: Difference) -> str:
    """What ranks the answers of both systems; both names where each has its own."""
    sides = (result.systems[name].confidences.get(each.confidence, "") for name in (each.left, each.right))
    return " / ".join(dict.fromkeys(sides))


def _side(result: Result, each: Difference, name: str) -> Cell:
    """The metric of one side with its own interval; the bare value at matched coverage, where it has none."""
    if each.matched:
        return each.left_value if name == each.left else each.right_value
    return result.systems[name].estimates[Key(each.confidence, each.metric, each.group)]


def _ranks(result: Result, each: Difference, name: str) -> tuple[int | None, int | None]:
    known = [result.ranks.get((name, slot, each.metric)) for slot in (each.confidence, "")]
    rank = None if each.group else known[0] or known[1]
    return (None, None) if rank is None else (rank.best, rank.worst)


def systems_table(result: Result) -> Table:
    """Return every system by each confidence: what it answered, and each metric with the rank that it gives."""
    names = _asked(result)
    columns = [
        Column("system", once=True),
        Column("confidence"),
        Column("items", digits=0),
        Column("answered", digits=0),
        Column("coverage", estimate=True),
    ]
    for name in names:
        columns.append(Column(name, name, estimate=True))
        if result.specifications[name].comparison != "undirected":
            columns.append(Column(f"{name}_rank", "rank"))
    rows = []
    for name, system in result.systems.items():
        population = system.population
        for slot, confidence in system.confidences.items() or (("", ""),):
            cells: list[Cell] = [name, confidence, population.items, population.answered, system.coverage]
            for metric in names:
                own = slot if Key(slot, metric) in system.estimates else ""
                cells.append(system.estimates[Key(own, metric)])
                if result.specifications[metric].comparison != "undirected":
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
    """What is read with every table of a result."""
    lines = [basis_line(result), loss_line(result.loss), *interval_lines(result)]
    return (*(f"{text[:1].upper()}{text[1:]}." for text in lines if text), *warning_lines(result))


def summary(result: Result, width: int = WIDTH) -> Group:
    """Return the summary for the terminal; of several systems it says the verdicts first."""
    if len(result.systems) == 1:
        parts = _one(result.only, width)
        meanings = MEANINGS if result.only.variants else {}
    else:
        parts = _several(result, width)
        meanings = _COMPARED_MEANINGS if result.first.variants else {}
    first = first_warnings(result)
    rest = [text for text in warning_lines(result) if text not in first]
    return Group(
        *(listed("!", text, width, "yellow") for text in first),
        *parts,
        *(line(f"[{text}]", dim=True) for text in interval_lines(result)),
        *warnings_list(rest, width),
        *(word_list("what the numbers mean", meanings, width) if meanings else []),
    )


def _one(system: SystemResult, width: int) -> list[Text]:
    parts = [heading(source_line(system.provenance)), line(f"population: {population_line(system)}")]
    if system.loss is not None:
        parts.append(line(loss_line(system.loss)))
    cmax = system.estimates.get(Key("", "cmax"))
    parts.append(line(f"answer rate: {system.coverage}" if cmax is None else f"Cmax: {cmax}"))
    parts += [line(text) for text in [answers_line(system.population)] if text]
    parts.append(line())
    areas = areas_table(system)
    if areas.rows:
        parts.append(shown(areas, width))
    if system.population.answered and 0 < len(system) <= _SIDE_BY_SIDE:
        parts.append(shown(risks_table(system), width))
    elif len(system) > _SIDE_BY_SIDE:
        parts += [line(f"risk at coverage: of {len(system)} confidences, in what -o writes"), line()]
    if system.metrics is not None:
        if system.metrics.of_predictions:
            parts += [line(f"outcomes: {outcomes_line(system.metrics)}"), line()]
        parts.append(shown(metrics_table(system.metrics), width))
        if system.metrics.groups:
            parts.append(shown(groups_table(system.metrics), width))
    return parts


def _several(result: Result, width: int) -> list[Text]:
    two = len(result.systems) == 2
    parts = [heading(f"{len(result.systems)} systems, {basis_line(result)}")]
    parts += [line(text) for text in _named_sources(result)] if two else []
    if result.loss is not None:
        parts.append(line(loss_line(result.loss)))
    parts += [line(), *(listed("-", sentence, width) for sentence in sentences(result)), line()]
    differences = differences_table(result, chosen(result))
    # What is noted with the tables stands below all of them here.
    bare = [Table("", differences.columns, differences.rows)]
    if not two:
        systems = systems_table(result)
        bare = [Table(systems.title, systems.columns, systems.rows, systems.notes), *bare]
    return [*parts, *(shown(table, width) for table in bare)]


def _named_sources(result: Result) -> list[str]:
    """Where each system came from, after its name."""
    if len(result.systems) == 1:
        return [source_line(result.only.provenance)]
    return [f"{name}: {source_line(system.provenance)}" for name, system in result.systems.items()]


def many(count: int, noun: str) -> str:
    """Return a count with its noun.

    >>> many(1, "item"), many(1200, "item")
    ('1 item', '1,200 items')
    """
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
