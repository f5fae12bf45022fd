"""The terminal summary: population, tables that line up, cautions, and what the numbers mean.

Everything that came from a file (labels, paths, modes) is printed as plain text, never as markup.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich import box
from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rich.console import RenderableType

    from abstain.evaluation import Caution, Comparison, Evaluation
    from abstain.inference import Estimate

__all__ = ["comparison_summary", "console_for", "evaluation_summary"]

# Without a terminal there is no width to keep to; this one keeps every table on one line a row.
_WIDTH_WITHOUT_TERMINAL = 120
# Beyond this many variants the risks by coverage would not fit side by side; the artifact has them.
_SIDE_BY_SIDE = 4

_MEANINGS = {
    "coverage": "share of items answered; Cmax is the most this run can answer",
    "AURC": "mean loss of what is answered, averaged over coverage up to Cmax; lower is better",
    "AUGRC": "loss per item asked, averaged the same way: how often a silent failure gets through; lower is better",
    "e-AURC": "how much of the AURC a perfect ranking of the same answers would save",
}


_COMPARED = (("Cmax", "cmax"), ("AURC", "aurc"), ("AUGRC", "augrc"))


def console_for(*, stderr: bool = False) -> Console:
    """Return a console: the terminal's width where there is a terminal, wide enough for every table elsewhere."""
    console = Console(stderr=stderr, highlight=False, soft_wrap=False)
    return (
        console
        if console.is_terminal
        else Console(stderr=stderr, highlight=False, width=_WIDTH_WITHOUT_TERMINAL)
    )


def evaluation_summary(evaluation: Evaluation) -> Group:
    """Return the summary of one evaluation."""
    settings = evaluation.settings
    columns = ("AURC", "AUGRC", "e-AURC", f"AURC@{settings.area_coverage:g}")
    table = _table("confidence", columns)
    for name, result in evaluation.items():
        figures = (result.aurc, result.augrc, result.eaurc, result.aurc_at_coverage)
        table.add_row(Text(name), *(Text(str(figure)) for figure in figures))
    parts: list[RenderableType] = [
        _title(
            f"{_source(evaluation.provenance)}, loss {evaluation.loss.name} = {evaluation.loss.definition}"
        ),
        _population(evaluation),
        Text(),
        table,
    ]
    if len(evaluation) <= _SIDE_BY_SIDE:
        risks = {name: result.risk_at_coverage for name, result in evaluation.items()}
        parts += [Text(), _risk_table(risks, evaluation.settings.coverage_grid)]
    parts += [*_method(evaluation), *_cautions(_all_cautions([evaluation])), *_meanings(_MEANINGS)]
    return Group(*parts)


def comparison_summary(comparison: Comparison) -> Group:
    """Return the summary of a comparison: both sides and the differences."""
    left, right = comparison.left, comparison.right
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in ("confidence", "figure"):
        table.add_column(heading)
    for heading in ("left", "right", "right - left"):
        table.add_column(heading, justify="right")
    table.add_column("in words")
    for name, delta in comparison.deltas.items():
        rows = [
            (label, getattr(left[name], field), getattr(right[name], field), getattr(delta, field))
            for label, field in _COMPARED
        ]
        matched = [at for at, change in delta.risk_at_coverage.items() if change.defined]
        if matched:
            at = matched[-1]
            sides = (left[name].risk_at_coverage[at], right[name].risk_at_coverage[at])
            rows.append((f"risk at {at:.2f}", *sides, delta.risk_at_coverage[at]))
        for place, (label, before, after, change) in enumerate(rows):
            words = _in_words(change, more_coverage=label == "Cmax")
            cells = (Text(name if place == 0 else ""), label, str(before), str(after), str(change), words)
            table.add_row(*cells, end_section=place == len(rows) - 1)
    overlap = comparison.overlap
    shared = f"{overlap.included} of {overlap.total} shared clusters are judged on both sides"
    left_out = {
        "failed left": overlap.failed_left,
        "failed right": overlap.failed_right,
        "only left": overlap.left_only,
        "only right": overlap.right_only,
    }
    shared += "".join(f", {count} {what}" for what, count in left_out.items() if count)
    return Group(
        _title(f"left:  {_source(left.provenance)}"),
        _title(f"right: {_source(right.provenance)}"),
        Text(f"loss {left.loss.name} = {left.loss.definition}\npopulation: {shared}"),
        Text(),
        table,
        *_method(left),
        *_cautions([str(caution) for caution in comparison.cautions] + _all_cautions([left, right])),
        *_meanings({name: text for name, text in _MEANINGS.items() if name != "e-AURC"}),
    )


def _table(first: str, others: Iterable[str]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column(first)
    for heading in others:
        table.add_column(heading, justify="right")
    return table


def _risk_table(risks: Mapping[str, Mapping[float, Estimate]], grid: Sequence[float]) -> Table:
    table = _table("risk at coverage", ())
    for name in risks:
        table.add_column(Text(name), justify="right")
    for coverage in grid:
        cells = [risks[name][coverage] for name in risks]
        table.add_row(f"{coverage:.2f}", *(str(cell) if cell.defined else "not reached" for cell in cells))
    return table


def _title(text: str) -> Text:
    return Text(text, style="bold")


def _source(provenance: Mapping[str, object]) -> str:
    path, mode = provenance.get("path"), provenance.get("mode")
    return f"{path or 'items'}{f' ({mode})' if mode else ''}"


def _population(evaluation: Evaluation) -> Text:
    population = evaluation.population
    cmax = next(iter(evaluation.values())).cmax
    lines = [
        f"population: {population.included} of {population.total} clusters judged, {population.failed} failed; "
        f"{population.items} items: {population.answered} answered, {population.abstained} abstained"
    ]
    if population.items_failed or population.items_unscored:
        lines[0] += (
            f" (and {population.items_failed} failed, {population.items_unscored} unscored, not counted)"
        )
    lines.append(f"Cmax:       {cmax}")
    return Text("\n".join(lines))


def _method(evaluation: Evaluation) -> list[Text]:
    settings = evaluation.settings
    if not settings.resamples:
        return [Text("no intervals: 0 resamples", style="dim")]
    clusters = next(iter(evaluation.values())).cmax.clusters
    return [
        Text(
            f"[{100 * settings.level:g}% intervals: {settings.resamples:,} resamples of {clusters} clusters, seed "
            f"{settings.seed}, convention {settings.convention}]",
            style="dim",
        )
    ]


def _all_cautions(evaluations: Sequence[Evaluation]) -> list[str]:
    general = [str(caution) for evaluation in evaluations for caution in evaluation.cautions]
    single = [
        _named(name, caution)
        for evaluation in evaluations
        for name, result in evaluation.items()
        for caution in result.cautions
    ]
    return list(dict.fromkeys(general + single))


def _named(name: str, caution: Caution) -> str:
    return f"{name}: {caution}"


def _cautions(messages: Sequence[str]) -> list[RenderableType]:
    if not messages:
        return []
    return [
        Text(),
        Text("take care", style="bold"),
        *(_listed("!", message, "yellow") for message in messages),
    ]


def _meanings(meanings: Mapping[str, str]) -> list[RenderableType]:
    width = max(len(name) for name in meanings)
    lines = [_listed(f"{name:<{width}}", text) for name, text in meanings.items()]
    return [Text(), Text("what the numbers mean", style="bold"), *lines]


def _listed(mark: str, text: str, style: str = "") -> Table:
    """A mark and a text that wraps beside it, not below it."""
    row = Table.grid(padding=(0, 1))
    row.add_column(width=len(mark) + 2, justify="right", no_wrap=True)
    row.add_column()
    row.add_row(Text(mark, style=style), Text(text, style=style))
    return row


def _in_words(change: Estimate, *, more_coverage: bool) -> str:
    interval = change.interval
    if not change.defined or interval is None:
        return "no interval"
    low, high = interval
    if low <= 0.0 <= high:
        return "cannot tell"
    if more_coverage:
        return "right answers more" if low > 0 else "right answers less"
    return "left is better" if low > 0 else "right is better"
