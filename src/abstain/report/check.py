"""The result of `abstain check`, as a summary for the terminal and as a table for programs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group

from abstain.report.console import (
    WIDTH,
    format_item,
    format_lines,
    format_table,
    format_warnings,
    heading,
    line,
)
from abstain.report.tables import Column, Table
from abstain.report.views import format_count

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from abstain.evaluation import Availability, ClusterSizes, SourceCheck
    from abstain.report.tables import Cell

_LISTED = 12


def check_summary(source: SourceCheck, notes: Sequence[str] = (), width: int = WIDTH) -> Group:
    """Return the summary of a source: its problems first, then its contents, its confidences and its metrics."""
    counts = source.counts
    parts = format_lines(f"{source.source}: {source.format}", width, style="bold")
    problems = [format_item("!", problem, width, "red") for problem in source.problems]
    parts += [
        line(),
        *([heading("Problems"), *problems] if problems else [line("No problems found.")]),
        line(),
    ]
    parts += format_warnings(notes, width)
    coverage = f" (coverage {counts.coverage:.3f})" if counts.n else ""
    facts = [
        _columns_line(source),
        _systems_line(source),
        f"Outcomes: {counts.answered:,} answered, {counts.abstained:,} abstained, {counts.failed:,} failed, "
        f"{counts.unscored:,} without a label{coverage}",
        f"Clusters: {source.clusters.count:,} {source.clusters.noun}s, {_sizes(source.clusters)}",
        _metadata_line(source),
        f"Defaults: {_defaults(source.defaults)}",
    ]
    parts += [*(text for fact in filter(None, facts) for text in format_lines(fact, width)), line()]
    if source.signals:
        parts.append(format_table(_signals(source), width))
    # A source that serves no variant, such as a table, is not expected to have the signals of all others.
    if source.servable:
        served = f"{', '.join(source.servable)}, and every signal by its name"
        parts += [heading("Confidences"), format_item("yes", served, width)]
        parts += [*(format_item("no ", reason, width) for reason in _reasons(source.confidences)), line()]
    parts.append(heading("Metrics"))
    for name, state in source.metrics.items():
        text = f"{name}: {state.reason}" if state.reason else name
        parts.append(format_item("yes" if state.possible else "no ", text, width))
    return Group(*parts)


def _columns_line(source: SourceCheck) -> str:
    columns = (
        f"{role} = {name}{' (guessed)' if role in source.guessed else ''}"
        for role, name in source.columns.items()
    )
    return f"Columns: {', '.join(columns)}" if source.columns else ""


def _systems_line(source: SourceCheck) -> str:
    systems = (f"{name} ({items.counts.total:,} items)" for name, items in source.systems.items())
    return f"Systems: {', '.join(systems)}" if len(source.systems) > 1 else ""


def _metadata_line(source: SourceCheck) -> str:
    further = f" and {len(source.metadata) - _LISTED} more" if len(source.metadata) > _LISTED else ""
    return f"Metadata: {', '.join(source.metadata[:_LISTED])}{further}" if source.metadata else ""


def _defaults(defaults: Mapping[str, str]) -> str:
    """Return the default confidence and loss, and the reason for this loss or for none."""
    confidence = (
        "no confidence" if defaults["confidence"] == "none" else f"ranked by {defaults['confidence']}"
    )
    rule = defaults["loss_rule"].removeprefix(f"loss {defaults['loss']}: ")
    loss = "no loss" if defaults["loss"] == "none" else f"loss {defaults['loss']}"
    return f"{confidence}, {loss} ({rule})"


def _sizes(clusters: ClusterSizes) -> str:
    if clusters.smallest == clusters.largest:
        return f"{format_count(clusters.smallest, 'item')} each"
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
    """Return the variants that are not possible, with one sentence for each reason."""
    variants: dict[str, list[str]] = {}
    for name, state in confidences.items():
        if not state.possible:
            reason = state.reason.partition(" needs ")[2].partition(";")[0].partition(" (first")[0]
            variants.setdefault(reason or "the values are not finite", []).append(name)
    return [f"{', '.join(names)}: {reason}" for reason, names in variants.items()]


def check_table(source: SourceCheck) -> Table:
    """Return the contents of a source, and the confidences and metrics that it supports, one row each."""
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
