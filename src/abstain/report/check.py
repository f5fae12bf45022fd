"""The result of `abstain check`, as a summary for the terminal and as a table for programs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group

from abstain.report.console import WIDTH, format_item, format_table, heading, line
from abstain.report.tables import Column, Table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from abstain.evaluation import Availability, ClusterSizes, SourceCheck
    from abstain.report.tables import Cell

_LISTED = 12


def check_summary(source: SourceCheck, notes: Sequence[str] = (), width: int = WIDTH) -> Group:
    """Return the summary of a source and of the confidences and metrics that it supports."""
    counts, clusters = source.counts, source.clusters
    parts = [heading(f"{source.source}: {source.format}")]
    if source.columns:
        columns = ", ".join(
            f"{role} = {name}{' (guessed)' if role in source.guessed else ''}"
            for role, name in source.columns.items()
        )
        parts.append(line(f"columns: {columns}"))
    if len(source.systems) > 1:
        systems = ", ".join(
            f"{name} ({items.counts.total:,} items)" for name, items in source.systems.items()
        )
        parts.append(line(f"systems: {systems}"))
    coverage = f", coverage {counts.coverage:.3f}" if counts.n else ""
    parts += [
        line(
            f"outcomes: {counts.answered:,} answered, {counts.abstained:,} abstained, {counts.failed:,} failed, "
            f"{counts.unscored:,} unscored{coverage}"
        ),
        line(f"clusters: {clusters.count:,} {clusters.noun}s, {_sizes(clusters)}"),
    ]
    if source.metadata:
        further = f" and {len(source.metadata) - _LISTED} more" if len(source.metadata) > _LISTED else ""
        parts.append(line(f"metadata: {', '.join(source.metadata[:_LISTED])}{further}"))
    parts += [line(note) for note in notes]
    parts += [line(), *([format_table(_signals(source), width)] if source.signals else [])]
    served = ", ".join(source.servable) or "none"
    parts += [
        heading("confidence variants"),
        format_item("-", f"this source can serve: {served}, and every signal above by its own name", width),
        format_item("-", f"when none is named: {_defaults(source.defaults)}", width),
        *(format_item("-", reason, width) for reason in _reasons(source.confidences)),
        line(),
        heading("metrics"),
    ]
    for name, state in source.metrics.items():
        words = f"{name}: {state.reason}" if state.reason else name
        parts.append(format_item("yes" if state.possible else "no ", words, width))
    parts += [line(), heading("problems") if source.problems else line("no problems found")]
    parts += [format_item("!", problem, width, "red") for problem in source.problems]
    return Group(*parts)


def _defaults(defaults: Mapping[str, str]) -> str:
    """Return the default confidence and loss, and why this loss, or why there is none."""
    confidence = "no confidence" if defaults["confidence"] == "none" else defaults["confidence"]
    rule = defaults["loss_rule"].removeprefix(f"loss {defaults['loss']}: ")
    loss = "no loss" if defaults["loss"] == "none" else f"loss {defaults['loss']}"
    return f"{confidence}, with {loss} ({rule})"


def _sizes(clusters: ClusterSizes) -> str:
    return f"{clusters.smallest} to {clusters.largest} items each, median {clusters.median:g}"


def _signals(source: SourceCheck) -> Table:
    columns = (
        Column("signal"),
        Column("from", digits=3),
        Column("to", digits=3),
        Column("distinct", digits=0),
        Column("tied", digits=0),
        Column("missing", digits=0),
    )
    rows = []
    for name, signal in source.signals.items():
        tied = f"{100 * signal.tied_proportion:.0f}%"
        rows.append((name, f"{signal.low:g}", f"{signal.high:g}", signal.distinct, tied, signal.missing))
    return Table("", columns, tuple(rows))


def _reasons(confidences: Mapping[str, Availability]) -> list[str]:
    """One sentence for each reason, with the variants that share it."""
    grouped: dict[str, list[str]] = {}
    for name, state in confidences.items():
        if not state.possible:
            reason = state.reason.partition(" needs ")[2].partition(";")[0].partition(" (first")[0]
            grouped.setdefault(reason or "the values are not finite", []).append(name)
    return [f"not {', '.join(names)}: {reason}" for reason, names in grouped.items()]


def check_table(source: SourceCheck) -> Table:
    """Return the contents of a source and what it supports, one row each."""
    counts, clusters = source.counts, source.clusters
    rows: list[tuple[Cell, ...]] = [
        ("column", role, name, "guessed" if role in source.guessed else "")
        for role, name in source.columns.items()
    ]
    rows += [("system", name, items.counts.total, "") for name, items in source.systems.items() if name]
    outcomes = ("answered", "abstained", "failed", "unscored")
    rows += [("outcome", name, getattr(counts, name), "") for name in outcomes]
    rows.append(("clusters", clusters.noun, clusters.count, _sizes(clusters)))
    for name, signal in source.signals.items():
        tied = f"{100 * signal.tied_proportion:.0f}% tied"
        remark = f"{signal.distinct} distinct, {tied}, {signal.missing} missing"
        rows.append(("signal", name, f"{signal.low:g} to {signal.high:g}", remark))
    for what, states in (("confidence", source.confidences), ("metric", source.metrics)):
        rows += [(what, name, state.possible, state.reason) for name, state in states.items()]
    rows += [("default", name, value, "") for name, value in source.defaults.items()]
    rows += [("problem", "", "", problem) for problem in source.problems]
    columns = (Column("about"), Column("name"), Column("value"), Column("remark"))
    return Table(f"{source.source}: {source.format}", columns, tuple(rows))
