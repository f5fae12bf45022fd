"""The terminal summary: population, tables that line up, cautions, and what the numbers mean.

Everything that came from a file (labels, paths, modes) is printed as plain text, never as markup.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich import box
from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from abstain.report.metric_tables import comparison_tables, metric_tables

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rich.console import RenderableType

    from abstain.evaluation import Caution, Comparison, Evaluation, VariantDelta
    from abstain.inference import Estimate

__all__ = ["comparison_summary", "console_for", "evaluation_summary"]

# Without a terminal there is no width to keep to; this one keeps every table on one line a row.
_WIDTH_WITHOUT_TERMINAL = 120
# An estimate as it is printed, with the space around its column.
_ESTIMATE_WIDTH = 23
# Beyond this many variants the risks by coverage would not fit side by side; the artifact has them.
_SIDE_BY_SIDE = 4

_MEANINGS = {
    "coverage": "share of items answered; Cmax is the most this run can answer",
    "AURC": "mean loss of what is answered, averaged over coverage up to Cmax; lower is better",
    "AUGRC": "loss per item asked, averaged the same way: how often a silent failure gets through; lower is better",
    "e-AURC": "how much of the AURC a perfect ranking of the same answers would save",
}


_COMPARED_MEANINGS = {name: text for name, text in _MEANINGS.items() if name != "e-AURC"}
_COMPARED = (("Cmax", "cmax"), ("AURC", "aurc"), ("AUGRC", "augrc"))


def console_for(*, stderr: bool = False) -> Console:
    """Return a console: the terminal's width where there is a terminal, wide enough for every table elsewhere."""
    console = Console(stderr=stderr, highlight=False, soft_wrap=False)
    return (
        console
        if console.is_terminal
        else Console(stderr=stderr, highlight=False, width=_WIDTH_WITHOUT_TERMINAL)
    )


def evaluation_summary(evaluation: Evaluation, width: int = _WIDTH_WITHOUT_TERMINAL) -> Group:
    """Return the summary of one evaluation, with as many columns as fit into `width`."""
    columns = {
        "AURC": "aurc",
        "AUGRC": "augrc",
        "e-AURC": "eaurc",
        f"AURC@{evaluation.settings.area_coverage:g}": "aurc_at_coverage",
    }
    if not evaluation:
        return _metrics_summary(evaluation)
    names = max(len(name) for name in [*evaluation, "confidence"])
    fitting = max((width - names) // _ESTIMATE_WIDTH, 1)
    table = _table("confidence", list(columns)[:fitting])
    for name, result in evaluation.items():
        figures = [getattr(result, field) for field in list(columns.values())[:fitting]]
        table.add_row(Text(name), *(Text(str(figure)) for figure in figures))
    parts: list[RenderableType] = [
        _title(
            f"{_source(evaluation.provenance)}, loss {evaluation.loss.name} = {evaluation.loss.definition}"
        ),
        _population(evaluation),
        table,
    ]
    if len(evaluation) <= min(_SIDE_BY_SIDE, (width - len("risk at coverage")) // _ESTIMATE_WIDTH):
        risks = {name: result.risk_at_coverage for name, result in evaluation.items()}
        parts.append(_risk_table(risks, evaluation.settings.coverage_grid))
    if evaluation.metrics is not None:
        parts += metric_tables(evaluation.metrics)
    return Group(*parts, *_method(evaluation), *_cautions({"": evaluation}), *_meanings(_MEANINGS))


def _metrics_summary(evaluation: Evaluation) -> Group:
    """The summary of metrics alone, where no confidence was asked for."""
    tables = [] if evaluation.metrics is None else metric_tables(evaluation.metrics)
    title = _title(_source(evaluation.provenance))
    return Group(title, _population(evaluation), *tables, *_method(evaluation), *_cautions({"": evaluation}))


def comparison_summary(comparison: Comparison, width: int = _WIDTH_WITHOUT_TERMINAL) -> Group:
    """Return the summary of a comparison: both sides and the differences, without the sides' intervals where narrow."""
    left, right = comparison.left, comparison.right
    table = _table("confidence", ())
    table.add_column("figure")
    for heading in ("left", "right", "right - left"):
        table.add_column(heading, justify="right")
    table.add_column("in words")
    narrow = width < _WIDTH_WITHOUT_TERMINAL
    for name, delta in comparison.deltas.items():
        for place, (label, before, after, change) in enumerate(rows := _compared(comparison, delta)):
            sides = [_value(side) if narrow else str(side) for side in (before, after)]
            words = _in_words(change, more_coverage=label == "Cmax")
            first = Text(name if place == 0 else "")
            table.add_row(first, label, *sides, str(change), words, end_section=place == len(rows) - 1)
    overlap = comparison.overlap
    shared = f"{overlap.included} of {overlap.total} shared {left.cluster_noun}s are judged on both sides"
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
        *([table] if comparison.deltas else []),
        *comparison_tables(comparison),
        *_method(left),
        *_cautions({"left ": left, "right ": right}, comparison.cautions),
        *(_meanings(_COMPARED_MEANINGS) if comparison.deltas else []),
    )


def _compared(comparison: Comparison, delta: VariantDelta) -> list[tuple[str, Estimate, Estimate, Estimate]]:
    """The rows of one confidence: label, left, right, difference; last the risk at a coverage that both reach."""
    left, right = comparison.left[delta.name], comparison.right[delta.name]
    rows = [
        (label, getattr(left, field), getattr(right, field), getattr(delta, field))
        for label, field in _COMPARED
    ]
    matched = [coverage for coverage, change in delta.risk_at_coverage.items() if change.defined]
    if matched:
        at = matched[-1]
        rows.append(
            (
                f"risk at {at:.2f}",
                left.risk_at_coverage[at],
                right.risk_at_coverage[at],
                delta.risk_at_coverage[at],
            )
        )
    return rows


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
    lines = [
        f"population: {population.included} of {population.total} {evaluation.cluster_noun}s judged; "
        f"{population.items} items: {population.answered} answered, {population.abstained} abstained"
    ]
    if population.items_failed or population.items_unscored:
        lines[0] += (
            f" (and {population.items_failed} failed, {population.items_unscored} unscored, not counted)"
        )
    lines += [f"Cmax:       {result.cmax}" for result in list(evaluation.values())[:1]]
    return Text("\n".join(lines))


def _method(evaluation: Evaluation) -> list[Text]:
    settings = evaluation.settings
    if not settings.resamples:
        return [Text("no intervals: 0 resamples", style="dim")]
    return [
        Text(
            f"[{100 * settings.level:g}% intervals: {settings.resamples:,} resamples of "
            f"{evaluation.population.included} {evaluation.cluster_noun}s, seed {settings.seed}, "
            f"convention {settings.convention}]",
            style="dim",
        )
    ]


def _cautions(sides: Mapping[str, Evaluation], general: Sequence[Caution] = ()) -> list[RenderableType]:
    """Each caution once, after the names of all that it holds for."""
    messages: dict[str, list[str]] = {str(caution): [] for caution in general}
    for side, evaluation in sides.items():
        messages |= {str(caution): [] for caution in evaluation.cautions}
        for name, result in evaluation.items():
            for caution in result.cautions:
                messages.setdefault(str(caution), []).append(f"{side}{name}")
    if not messages:
        return []
    lines = [f"{', '.join(names)}: {message}" if names else message for message, names in messages.items()]
    return [Text(), Text("take care", style="bold"), *(_listed("!", line, "yellow") for line in lines)]


def _meanings(meanings: Mapping[str, str]) -> list[RenderableType]:
    width = max(len(name) for name in meanings)
    lines = [_listed(f"{name:<{width}}", text) for name, text in meanings.items()]
    return [Text(), Text("what the numbers mean", style="bold"), *lines]


def _listed(mark: str, text: str, style: str = "") -> Table:
    """A mark and a text that wraps beside it, not below it."""
    row = Table.grid(padding=(0, 1))
    row.add_column(width=len(mark) + 2, no_wrap=True)
    row.add_column()
    row.add_row(Text(f"  {mark}", style=style), Text(text, style=style))
    return row


def _value(estimate: Estimate) -> str:
    return f"{estimate.value:.3f}" if estimate.defined else "undefined"


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
