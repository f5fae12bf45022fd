"""Metric tables for the terminal: every metric with its interval, by group, and compared.

What came from a file, such as the name of a group, is printed as plain text, never as markup.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich import box
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.console import RenderableType

    from abstain.evaluation import Comparison, MetricTable
    from abstain.inference import Estimate
    from abstain.metrics.registry import MetricSpecification

__all__ = ["comparison_tables", "metric_list", "metric_tables"]

_BETTER = {"higher": "higher", "lower": "lower", "neither": "depends"}


def metric_tables(table: MetricTable) -> list[RenderableType]:
    """Return what became of the items, the table of all rows and, where there are groups, the table by group."""
    counts = table.outcomes
    outcomes = Text(
        f"outcomes:   {counts.right} right, {counts.wrong} wrong, {counts.abstained} abstained, {counts.failed} failed"
    )
    overall = _table(("metric", "left"), ("value", "right"), ("better", "left"), ("", "left"))
    for name, estimate in table.items():
        better = _BETTER[table.specifications[name].direction]
        overall.add_row(Text(name), _value(estimate), better, Text(estimate.reason))
    return [outcomes, overall, *([_by_group(table)] if table.groups else [])]


def _by_group(table: MetricTable) -> Table:
    columns = (("metric", "left"), ("group", "left"), ("items", "right"), ("answered", "right"))
    groups = _table(*columns, ("value", "right"), ("worst against the rest", "left"))
    for name in table:
        gap = table.gaps.get(name)
        for place, group in enumerate(table.groups):
            worst = gap is not None and gap.group == group.label
            remark = str(gap.gap) if gap is not None and worst else group.estimates[name].reason
            groups.add_row(
                Text(name if place == 0 else ""),
                Text(group.label),
                str(group.items),
                str(group.answered),
                _value(group.estimates[name]),
                Text(remark),
                end_section=place == len(table.groups) - 1,
            )
    return groups


def comparison_tables(comparison: Comparison) -> list[RenderableType]:
    """Return the table of both sides and their differences; by group where there are groups."""
    left, right, deltas = comparison.left.metrics, comparison.right.metrics, comparison.metrics
    if left is None or right is None or deltas is None:
        return []
    columns = (("metric", "left"), ("group", "left"), ("left", "right"), ("right", "right"))
    table = _table(*columns, ("right - left", "right"), ("in words", "left"))
    for name, delta in deltas.items():
        direction = left.specifications[name].direction
        shared = [group for group in left.groups if group.label in deltas.groups]
        cells = (_value(left[name]), _value(right[name]), _value(delta), _in_words(delta, direction))
        table.add_row(Text(name), "all", *cells, end_section=not shared)
        for place, group in enumerate(shared):
            change = deltas.groups[group.label][name]
            other = right.group(group.label).estimates[name]
            cells = (
                _value(group.estimates[name]),
                _value(other),
                _value(change),
                _in_words(change, direction),
            )
            table.add_row("", Text(group.label), *cells, end_section=place == len(shared) - 1)
    return [table]


def metric_list(metrics: Iterable[MetricSpecification]) -> Table:
    """Return what there is to ask for: names, what they need, which way is better, and what they are."""
    table = _table(("metric", "left"), ("better", "left"), ("needs", "left"), ("what it is", "left"))
    # A name that is wrapped cannot be copied.
    table.columns[0].no_wrap = True
    for metric in metrics:
        name = metric.name
        if metric.parameter is not None:
            name = f"{name}@{metric.parameter.text(metric.value)}"
        summary = metric.summary.replace("``", "")
        table.add_row(Text(name), _BETTER[metric.direction], ", ".join(metric.needs), Text(summary))
    return table


def _table(*columns: tuple[str, str]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading, side in columns:
        table.add_column(heading, justify="right" if side == "right" else "left")
    return table


def _value(estimate: Estimate) -> str:
    return str(estimate) if estimate.defined else "undefined"


def _in_words(change: Estimate, direction: str) -> str:
    if not change.defined:
        return change.reason
    if change.interval is None:
        return "no interval"
    low, high = change.interval
    if low <= 0.0 <= high:
        return "cannot tell"
    if direction == "neither":
        return "right is higher" if low > 0 else "right is lower"
    return "right is better" if (low > 0) == (direction == "higher") else "left is better"
