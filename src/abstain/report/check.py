"""The summary of `abstain check` for the terminal; everything that came from a file is plain text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich import box
from rich.console import Group
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.console import RenderableType

    from abstain.evaluation import Availability, SourceCheck

__all__ = ["check_summary"]

_LISTED = 12


def check_summary(found: SourceCheck, notes: Sequence[str] = ()) -> Group:
    """Return the summary of what a source is and can serve."""
    counts, clusters = found.counts, found.clusters
    parts: list[RenderableType] = [Text(f"{found.source}: {found.format}", style="bold")]
    if found.columns:
        columns = ", ".join(
            f"{role} = {name}{' (guessed)' if role in found.guessed else ''}"
            for role, name in found.columns.items()
        )
        parts.append(Text(f"columns:   {columns}"))
    coverage = f", coverage {counts.coverage:.3f}" if counts.n else ""
    sizes = f"{clusters.smallest} to {clusters.largest} items each, median {clusters.median:g}"
    parts += [
        Text(
            f"outcomes:  {counts.answered:,} answered, {counts.abstained:,} abstained, {counts.failed:,} failed, "
            f"{counts.unscored:,} unscored{coverage}"
        ),
        Text(f"clusters:  {clusters.count:,} {clusters.noun}s, {sizes}"),
    ]
    if found.metadata:
        further = f" and {len(found.metadata) - _LISTED} more" if len(found.metadata) > _LISTED else ""
        parts.append(Text(f"metadata:  {', '.join(found.metadata[:_LISTED])}{further}"))
    parts += [Text(note) for note in notes]
    if found.signals:
        parts += [Text(), _signals(found)]
    served = ", ".join(found.servable) or "none"
    parts += [
        Text(),
        Text("confidence variants", style="bold"),
        Padding(
            Text(f"this source can serve: {served}, and every signal above by its own name"), (0, 0, 0, 2)
        ),
        Padding(
            Text(f"when none is named: {found.defaults['confidence']}, with loss {found.defaults['loss']}"),
            (0, 0, 0, 2),
        ),
        *_reasons(found.confidences),
        Text(),
        Text("metrics", style="bold"),
        *(
            Padding(Text(f"{'yes' if state.possible else 'no '}  {name}{_because(state)}"), (0, 0, 0, 2))
            for name, state in found.metrics.items()
        ),
        Text(),
    ]
    if found.problems:
        parts += [
            Text("problems", style="bold"),
            *(Padding(Text(f"! {problem}", style="red"), (0, 0, 0, 2)) for problem in found.problems),
        ]
    else:
        parts.append(Text("no problems found"))
    return Group(*parts)


def _signals(found: SourceCheck) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("signal")
    for heading in ("from", "to", "distinct", "tied", "missing"):
        table.add_column(heading, justify="right")
    for name, signal in found.signals.items():
        table.add_row(
            Text(name),
            f"{signal.low:g}",
            f"{signal.high:g}",
            f"{signal.distinct:,}",
            f"{100 * signal.tied_share:.0f}%",
            f"{signal.missing:,}",
        )
    return table


def _reasons(confidences: Mapping[str, Availability]) -> list[RenderableType]:
    """One line for each reason, with the variants that share it."""
    grouped: dict[str, list[str]] = {}
    for name, state in confidences.items():
        if not state.possible:
            reason = state.reason.partition(" needs ")[2].partition(";")[0].partition(" (first")[0]
            grouped.setdefault(reason, []).append(name)
    return [
        Padding(Text(f"not {', '.join(names)}: {_first_need(reason)}"), (0, 0, 0, 2))
        for reason, names in grouped.items()
    ]


def _first_need(reason: str) -> str:
    return reason or "the values are not finite"


def _because(state: Availability) -> str:
    return f": {state.reason}" if state.reason else ""
