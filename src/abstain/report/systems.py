"""A comparison of systems for people and programs: verdicts in words, a table of differences, one of systems."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from abstain.report.tables import Column, Table, plain_text, render

if TYPE_CHECKING:
    from abstain.evaluation import SystemDifference, SystemsComparison
    from abstain.report.tables import Cell

__all__ = ["systems_tables", "systems_text"]

_DIFFERENCES = (
    Column("metric"),
    Column("comparison"),
    Column("left", detail=True),
    Column("right", detail=True),
    Column("at_coverage", "at coverage"),
    Column("coverage", digits=3, detail=True),
    Column("left_value", digits=3, detail=True),
    Column("right_value", digits=3, detail=True),
    Column("left_rank", digits=0, detail=True),
    Column("right_rank", digits=0, detail=True),
    Column("difference", estimate=True),
    Column("p", digits=4),
    Column("p_holm", "p (Holm)", digits=4),
    Column("better"),
    Column("more_clusters", digits=0, detail=True),
    Column("in_words", "in words", detail=True),
)


def systems_text(comparison: SystemsComparison) -> str:
    """Return the comparison for the terminal: first what it says, then what it says it from."""
    lines = [f"{len(comparison.systems)} systems, {_basis(comparison)}", ""]
    lines += [f"  {plain_text(sentence)}" for sentence in comparison.words]
    return "\n".join(lines) + "\n\n" + render(systems_tables(comparison)[::-1], "text")


def systems_tables(comparison: SystemsComparison) -> list[Table]:
    """Return the table of differences, which is what the comparison is about, and the table of systems."""
    return [_differences(comparison), _systems(comparison)]


def _differences(comparison: SystemsComparison) -> Table:
    rows = []
    for each in comparison.differences:
        ranks = [comparison.systems[name].ranks.get(each.metric) for name in (each.left, each.right)]
        places = [None if rank is None or each.matched else rank.place for rank in ranks]
        cells: tuple[Cell, ...] = (
            each.metric,
            f"{each.right} - {each.left}",
            each.left,
            each.right,
            f"{each.coverage:.2f} (both)" if each.matched else "its own",
            each.coverage,
            each.left_value,
            each.right_value,
            *places,
            each.difference,
            each.p,
            each.p_adjusted,
            _better(each),
            _count(each.more_clusters),
            each.words,
        )
        rows.append(cells)
    settings = comparison.settings
    notes = [f"Differences over {_basis(comparison)}."]
    if settings.resamples:
        notes.append(
            f"{100 * settings.level:g}% percentile intervals of {settings.resamples:,} resamples of "
            f"{comparison.matching.clusters} {comparison.cluster_noun}s (seed {settings.seed}); p-values corrected for "
            f"{comparison.tested} comparisons by Holm's method; "
            "how much more data would tell is for a power of 80%"
            + (
                " and the difference as observed."
                if settings.margin is None
                else f" and a difference of {settings.margin:g}."
            )
        )
    notes += [str(caution) for caution in comparison.cautions]
    return Table("Differences between systems", _DIFFERENCES, tuple(rows), tuple(notes))


def _systems(comparison: SystemsComparison) -> Table:
    columns = [
        Column("system"),
        Column("confidence"),
        Column("items", digits=0),
        Column("answered", digits=0),
        Column("coverage", estimate=True),
    ]
    for name, metric in comparison.metrics.items():
        columns.append(Column(name, estimate=True))
        if metric.direction != "neither":
            columns.append(Column(f"{name}_rank", "rank"))
    rows = []
    for system in comparison.systems.values():
        cells: list[Cell] = [
            system.name,
            system.confidence,
            system.items,
            system.answered,
            system.coverage,
        ]
        for name, metric in comparison.metrics.items():
            cells.append(system.estimates[name])
            if metric.direction != "neither":
                rank = system.ranks[name]
                cells.append("none" if rank is None else str(rank))
        rows.append(tuple(cells))
    notes = ("A rank stands with the ranks that cannot be ruled out.",)
    return Table("Systems", tuple(columns), tuple(rows), notes)


def _basis(comparison: SystemsComparison) -> str:
    matching, noun = comparison.matching, comparison.cluster_noun
    clusters = f"{matching.clusters:,} {noun}{'' if matching.clusters == 1 else 's'}"
    loss = f", loss {comparison.loss}" if comparison.loss else ""
    return f"{matching.judged:,} items of {clusters}, matched by {' and '.join(matching.by)}{loss}"


def _better(each: SystemDifference) -> str:
    if math.isnan(each.p):
        return "not compared"
    if each.winner is None:
        return "cannot tell"
    return f"{each.winner} is higher" if each.direction == "neither" else each.winner


def _count(more: float) -> int | None:
    return None if not math.isfinite(more) else max(int(more), 0)
