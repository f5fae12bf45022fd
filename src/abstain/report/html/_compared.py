"""The panels of a comparison: two systems side by side, or many with their ranks and every pair.

Numbers and verdicts are read off the result's differences; nothing is decided here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from abstain.evaluation import Key
from abstain.report.charts import differences_chart, metric_name
from abstain.report.html import _words
from abstain.report.html._parts import Figure, Panel, TableView, figure
from abstain.report.tables import Column, Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from abstain.evaluation import Difference, Result
    from abstain.report.html._parts import Part
    from abstain.report.tables import Cell

__all__ = ["compared_panel"]

_AREAS = ("cmax", "aurc", "augrc")
_MOST_CHARTS = 3


def compared_panel(result: Result) -> Panel | None:
    """Return the panel of what is compared; None where there is one system."""
    if len(result.systems) == 1:
        return None
    return _pair_panel(result) if len(result.systems) == 2 else _systems_panel(result)


def _pair_panel(result: Result) -> Panel:
    parts: list[Part] = [
        _basis(result),
        TableView(_pair_table(result), "Differences", compact=True, grouped=True),
    ]
    return Panel("comparison", "Comparison, right - left", "Comparison", [*parts, *_charts(result)])


def _systems_panel(result: Result) -> Panel:
    parts: list[Part] = [
        _basis(result),
        TableView(_systems_table(result), "Systems with their ranks"),
        _words.each_by_itself(result),
        TableView(_differences_table(result), "Differences between systems", grouped=True),
    ]
    return Panel("systems", "Systems compared, right - left", "Systems", [*parts, *_charts(result)])


def _basis(result: Result) -> str:
    """What the differences rest on."""
    matching, noun = result.matching, result.cluster_noun
    if matching is None:
        return ""
    which = "both sides" if len(result.systems) == 2 else "all systems"
    return (
        f"Paired over the {matching.clusters:,} of {matching.clusters_shared:,} shared {noun}s that are judged on "
        f"{which}, matched by {' and '.join(matching.by)}. Every difference is right less left, with the same weights "
        "on both."
    )


def _shown(result: Result) -> list[Difference]:
    """The differences that a page lists: areas, the risk at the largest coverage that all reach, what was asked."""
    metrics = dict.fromkeys([*_AREAS, *_words.headline_metrics(result)])
    risks = {each.metric for each in result.differences if each.metric.startswith("risk_at_coverage@")}
    risks -= {each.metric for each in result.differences if not each.estimate.defined}
    last = sorted(risks, key=lambda key: float(key.partition("@")[2]))[-1:]
    kept = {*metrics, *last}
    shown = [each for each in result.differences if each.metric in kept or each.matched]
    slots = list(dict.fromkeys(each.confidence for each in result.differences))
    # By confidence; those that need none come first, those at matched coverage last of their confidence.
    slots.sort(key=bool)
    return sorted(shown, key=lambda each: (slots.index(each.confidence), each.matched))


def _columns(shown: Sequence[Difference], *columns: Column) -> tuple[Column, ...]:
    """Leave the groups out where there are none."""
    grouped = any(each.group for each in shown)
    return tuple(column for column in columns if grouped or column.key != "group")


def _pair_table(result: Result) -> Table:
    left, right = result.systems
    shown = _shown(result)
    columns = _columns(
        shown,
        Column("confidence"),
        Column("metric"),
        Column("group"),
        Column("left", left if left == "left" else f"left: {left}", digits=3, estimate=True),
        Column("right", right if right == "right" else f"right: {right}", digits=3, estimate=True),
        Column("difference", "right - left", digits=3, estimate=True),
        Column("p", digits=4),
        Column("in_words", "in words"),
    )
    rows = []
    for each in shown:
        cells: dict[str, Cell] = {
            "confidence": _confidence(each),
            "metric": _name(each),
            "group": each.group or "all",
            "left": _side(result, each, each.left),
            "right": _side(result, each, each.right),
            "difference": each.estimate,
            "p": each.p,
            "in_words": each.in_words,
        }
        rows.append(tuple(cells[column.key] for column in columns))
    return Table("", columns, tuple(rows))


def _differences_table(result: Result) -> Table:
    shown = _shown(result)
    columns = _columns(
        shown,
        Column("comparison"),
        Column("confidence"),
        Column("metric"),
        Column("group"),
        Column("difference", "right - left", digits=3, estimate=True),
        Column("p", digits=4),
        Column("p_holm", "p (Holm)", digits=4),
        Column("in_words", "in words"),
    )
    rows = []
    pairs = list(dict.fromkeys((each.left, each.right) for each in result.differences))
    for each in sorted(shown, key=lambda each: pairs.index((each.left, each.right))):
        cells: dict[str, Cell] = {
            "comparison": f"{each.right} - {each.left}",
            "confidence": _confidence(each),
            "metric": _name(each),
            "group": each.group or "all",
            "difference": each.estimate,
            "p": each.p,
            "p_holm": each.p_adjusted,
            "in_words": each.words,
        }
        rows.append(tuple(cells[column.key] for column in columns))
    return Table("Differences", columns, tuple(rows))


def _systems_table(result: Result) -> Table:
    """Every system with the metrics that the verdict speaks of; those that need a confidence, for each."""
    told = [key for key in _words.headline_metrics(result) if key != "cmax"]
    slots = list(result.first.confidences)
    keys = [
        key
        for metric in told
        for key in (Key(slot, metric) for slot in ("", *slots))
        if key in result.first.estimates
    ]
    several = len(slots) > 1
    columns = [Column("system"), Column("answered"), Column("coverage", digits=3, estimate=True)]
    for key in keys:
        name = metric_name(key.metric) + (f", {key.confidence}" if several and key.confidence else "")
        column = f"{key.metric} {key.confidence}".strip()
        columns += [Column(column, name, digits=3, estimate=True), Column(f"{column} rank", "rank")]
    rows = []
    for name, system in result.systems.items():
        population = system.population
        cells: list[Cell] = [name, f"{population.answered:,} of {population.items:,}", system.coverage]
        for key in keys:
            rank = result.ranks.get((name, key.confidence, key.metric))
            cells += [system.estimates[key], "none" if rank is None else str(rank)]
        rows.append(tuple(cells))
    title = "Systems over the compared items; a rank stands with the ranks that cannot be ruled out"
    return Table(title, tuple(columns), tuple(rows))


def _charts(result: Result) -> list[Figure]:
    defined = {each.metric for each in result.differences if not each.group and each.estimate.defined}
    drawn = [key for key in _words.headline_metrics(result) if key in defined]
    # Who answers more stands in the table; it is drawn where nothing else can be.
    drawn = [key for key in drawn if key != "cmax"] or drawn
    return [
        figure(
            differences_chart(result, key),
            f"Differences in {metric_name(key)} with their intervals",
            wide=True,
        )
        for key in drawn[:_MOST_CHARTS]
    ]


def _confidence(each: Difference) -> str:
    return each.confidence or "any"


def _name(each: Difference) -> str:
    name = metric_name(each.metric)
    return f"{name} at coverage {each.coverage:.2f}" if each.matched else name


def _side(result: Result, each: Difference, name: str) -> Cell:
    """The metric of one side: with its interval, or its value alone at matched coverage."""
    key = Key(each.confidence, each.metric, each.group)
    if each.matched:
        return each.left_value if name == each.left else each.right_value
    return result.systems[name].estimates[key]
