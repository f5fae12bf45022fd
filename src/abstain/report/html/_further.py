"""The panels that only some reports have: abstention safety, groups, intervals or sets, the most confident mistakes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from abstain.report.charts import groups_chart
from abstain.report.charts.intervals import charts
from abstain.report.html import _words
from abstain.report.html._parts import Panel, TableView, figure
from abstain.report.tables import Column, Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from abstain.evaluation import MetricTable, Result, SystemResult
    from abstain.evaluation.conformal import CoverageResult, Stratum
    from abstain.report.html._parts import Part
    from abstain.report.tables import Cell

__all__ = ["coverage_panel", "metric_panels", "mistakes_panel"]

# Texts that a source may carry beside an item: shown only when asked for.
_TEXTS = ("prompt", "raw_response")
_MOST_GROUPS = 20
_MOST_CHARTS = 3
_BETTER = {"higher": "higher", "lower": "lower", "neither": "depends"}


def metric_panels(result: Result) -> list[Panel]:
    """Return the panels of abstention safety and of groups, where metrics were asked for.

    Of several systems, the metrics stand in the comparison.
    """
    table = result.metrics if len(result.systems) == 1 else None
    if table is None:
        return []
    return [_safety(table), _groups(table)] if table.groups else [_safety(table)]


def _safety(table: MetricTable) -> Panel:
    counts = table.outcomes
    parts: list[Part] = (
        []
        if not table.of_predictions
        else [
            f"Of all items, {counts.right:,} were answered rightly, {counts.wrong:,} answered wrongly, "
            f"{counts.abstained:,} declined, and {counts.failed:,} failed."
        ]
    )
    reasons: dict[str, list[str]] = {}
    for name, estimate in table.items():
        if not estimate.defined:
            reasons.setdefault(estimate.reason, []).append(name)
    parts += [f"Undefined here: {', '.join(names)} ({reason})." for reason, names in reasons.items()]
    rows = tuple(
        (name, estimate, _BETTER[specification.direction], specification.summary.replace("``", ""))
        for name, estimate in table.items()
        for specification in (table.specifications[name],)
        if estimate.defined
    )
    if rows:
        columns = (Column("metric"), _estimate("value"), Column("better"), Column("what it is"))
        parts.append(TableView(Table("", columns, rows), "Metrics"))
    title = "Abstention safety: is declining, and answering, to be relied on?"
    return Panel("safety", title, "Abstention safety", parts)


def _groups(table: MetricTable) -> Panel:
    defined = [name for name, estimate in table.items() if estimate.defined]
    small = [group.label for group in table.groups if group.note]
    parts: list[Part] = ["Every group is judged with the same draws as the whole."]
    parts += [f"Too small to judge: {', '.join(small)}."] if small else []
    columns = (
        Column("group"),
        Column("items", digits=0),
        Column("answered", digits=0),
        *map(_estimate, defined),
    )
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (group.label, group.items, group.answered, *(group.estimates[name] for name in defined))
        for group in table.groups
    )
    parts.append(TableView(Table("", columns, rows), "Metrics by group", compact=True))
    gaps = tuple((name, gap.group, gap.worst, gap.rest, gap.gap) for name, gap in table.gaps.items())
    if gaps:
        caption = (
            "Worst group against all others; it was chosen by its value, so its gap is not a fair sample."
        )
        headings = (Column("metric"), Column("worst group"), *map(_estimate, ("there", "all others", "gap")))
        parts.append(TableView(Table(caption, headings, gaps), "Worst groups"))
    parts += [
        figure(groups_chart(table, name), f"{name} by group with its interval", wide=True)
        for name in defined[:_MOST_CHARTS]
    ]
    return Panel("groups", f"By {' and '.join(table.by)}", "Groups", parts)


def _estimate(name: str) -> Column:
    return Column(name, name, digits=3, estimate=True)


def coverage_panel(result: CoverageResult) -> Panel:
    """Return the panel of intervals or sets."""
    names = list(result.claims[0])
    rows: list[tuple[Cell, ...]] = [(name, *(claim[name] for claim in result.claims)) for name in names]
    rows += [
        (f"{name} (all claims)", estimate, *[None] * (len(result.claims) - 1))
        for name, estimate in result.metrics.items()
    ]
    table = Table(
        f"Metrics of {result.rows:,} {result.kind} in {result.clusters:,} clusters",
        (Column("metric"), *(_estimate(f"claim {claim.claim:g}") for claim in result.claims)),
        tuple(rows),
    )
    parts: list[Part] = [*_words.coverage_verdict(result), TableView(table, table.title)]
    what = "width" if result.kind == "intervals" else "set size"
    for claim in result.claims:
        parts.append(_strata(f"Coverage by {what} at a claim of {claim.claim:g}", what, claim.strata))
        parts += [
            _strata(f"Coverage by {grouping} at a claim of {claim.claim:g}", grouping, groups)
            for grouping, groups in claim.groups.items()
        ]
    parts += [figure(chart, f"Chart: {name}", wide=True) for name, chart in charts(result).items()]
    kind = result.kind.capitalize()
    return Panel("coverage", f"{kind}: does coverage hold?", kind, parts)


def _strata(caption: str, what: str, strata: Sequence[Stratum]) -> TableView:
    known = [part for part in strata if part.coverage.defined]
    worst = sorted(known, key=lambda part: part.coverage.value)[:_MOST_GROUPS]
    shown = known if len(known) <= _MOST_GROUPS else worst
    if len(shown) < len(known):
        caption += f" (the {_MOST_GROUPS} lowest of {len(known):,})"
    rows = tuple(
        (str(part.label), f"{part.count:g}", part.coverage, part.verdict.verdict if part.verdict else "")
        for part in shown
    )
    columns = (Column(what, what), Column("rows"), _estimate("coverage"), Column("verdict"))
    return TableView(Table(caption, columns, rows), caption)


def mistakes_panel(system: SystemResult, most: int, *, responses: bool, several: bool) -> Panel:
    """Return the most confident wrong answers by the first confidence, with the ids of their clusters."""
    title = f"The most confident mistakes{f' of {system.name}' if several else ''}"
    if system.loss is None:
        words = "Mistakes are told by a loss, and no metric here needs one; name one (--loss, loss=)."
        return Panel("mistakes", title, "Mistakes", [words])
    judged, loss = system.basis.judged, system.basis.loss
    named = dict(list(system.basis.confidences.items())[:1])
    wrong = np.flatnonzero(judged.answered & (loss > 0))
    # The surest first, and of equally sure ones those that cost most.
    keys = [-loss[wrong], *(-confidence[wrong] for confidence in named.values())]
    wrong = wrong[np.lexsort(keys)][:most]
    texts = [key for key in judged.metadata if responses and key.rsplit(".", 1)[-1] in _TEXTS]
    noun = system.cluster_noun
    rows = tuple(
        (
            str(judged.cluster[row]),
            str(judged.item[row]),
            _plain(judged.truth[row]),
            _plain(judged.prediction[row]),
            *(f"{confidence[row]:.4g}" for confidence in named.values()),
            f"{loss[row]:.4g}",
            *(str(judged.metadata[key][row]) for key in texts),
        )
        for row in wrong
    )
    headings = [noun, "item", "truth", "prediction", *named, "loss", *texts]
    told = f"Asked for by whoever made this report: it names {noun}s and items"
    words = f"{told}{' and shows what the model was asked and wrote' if texts else ''}."
    table = Table("", tuple(Column(heading, heading) for heading in headings), rows)
    return Panel("mistakes", title, "Mistakes", [words, TableView(table, "Mistakes")])


def _plain(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
