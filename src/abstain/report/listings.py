"""The table of all metrics in the registry."""

from __future__ import annotations

from typing import TYPE_CHECKING

from abstain.report.tables import Column, Table

if TYPE_CHECKING:
    from collections.abc import Iterable

    from abstain.metrics.registry import MetricSpecification


def metrics_table(metrics: Iterable[MetricSpecification]) -> Table:
    """Return every metric: its name, which direction is better, how it compares systems, and a summary."""
    columns = (
        Column("metric", whole=True),
        Column("better"),
        Column("compared"),
        Column("needs"),
        Column("unit", detail=True),
        Column("what_it_is"),
        Column("definition", detail=True),
    )
    rows = tuple(
        (
            metric.key,
            metric.direction,
            metric.comparison,
            ", ".join(metric.needs),
            metric.unit,
            metric.summary.replace("``", ""),
            metric.definition,
        )
        for metric in metrics
    )
    return Table("Metrics", columns, rows)
