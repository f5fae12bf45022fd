"""The tables of the other verbs: calibrations, checked sources, and the list of metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from abstain.report.tables import Column, Table

if TYPE_CHECKING:
    from collections.abc import Iterable

    from abstain.calibrators import Calibration
    from abstain.evaluation import SourceCheck
    from abstain.metrics.registry import MetricSpecification
    from abstain.report.tables import Cell

__all__ = ["calibration_table", "check_table", "metrics_table"]


def calibration_table(calibration: Calibration) -> Table:
    """Return the figures of a calibration, in-sample and held out."""
    columns = (Column("figure"), Column("in_sample", "in-sample", digits=3), Column("held_out", digits=3))
    validation = calibration.validation
    rows: list[tuple[Cell, ...]] = []
    notes = [notice.message for notice in calibration.warnings]
    if validation is not None:
        held_out = validation.held_out or {}
        rows = [(name, value, held_out.get(name)) for name, value in validation.in_sample.items()]
        notes.insert(0, f"Held out: {validation.reason or validation.method}.")
    source = calibration.source
    where = f"{source.path or 'items'}{f' ({source.mode})' if source.mode else ''}"
    title = f"Calibration learned from {source.n_samples} answered items of {where}"
    return Table(title, columns, tuple(rows), tuple(notes))


def check_table(found: SourceCheck) -> Table:
    """Return what a source holds and what it can serve: one row for each finding."""
    counts, clusters = found.counts, found.clusters
    rows: list[tuple[Cell, ...]] = [
        ("column", role, name, "guessed" if role in found.guessed else "")
        for role, name in found.columns.items()
    ]
    rows += [
        ("outcome", name, getattr(counts, name), "")
        for name in ("answered", "abstained", "failed", "unscored")
    ]
    sizes = f"{clusters.smallest} to {clusters.largest} items each, median {clusters.median:g}"
    rows.append(("clusters", clusters.noun, clusters.count, sizes))
    rows += [
        (
            "signal",
            name,
            f"{signal.low:g} to {signal.high:g}",
            f"{signal.distinct} distinct, {100 * signal.tied_share:.0f}% tied, {signal.missing} missing",
        )
        for name, signal in found.signals.items()
    ]
    for what, states in (("confidence", found.confidences), ("metric", found.metrics)):
        rows += [(what, name, state.possible, state.reason) for name, state in states.items()]
    rows += [("problem", "", "", problem) for problem in found.problems]
    columns = (Column("about"), Column("name"), Column("value"), Column("remark"))
    return Table(f"{found.source}: {found.format}", columns, tuple(rows))


def metrics_table(metrics: Iterable[MetricSpecification]) -> Table:
    """Return what there is to ask for."""
    columns = (
        Column("metric"),
        Column("better"),
        Column("needs"),
        Column("unit", detail=True),
        Column("what_it_is", "what it is"),
        Column("definition", detail=True),
    )
    rows = tuple(
        (
            metric.key,
            metric.direction,
            ", ".join(metric.needs),
            metric.unit,
            metric.summary.replace("``", ""),
            metric.definition,
        )
        for metric in metrics
    )
    return Table("Metrics", columns, rows)
