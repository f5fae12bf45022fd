"""The panels that only some reports have: abstention safety, groups, intervals or sets, the most confident mistakes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from abstain.evaluation import Comparison
from abstain.report.charts import groups_chart, systems_chart
from abstain.report.charts.intervals import charts
from abstain.report.html._parts import Panel, TableView, figure

if TYPE_CHECKING:
    from collections.abc import Sequence

    from abstain.evaluation import Evaluation, MetricTable, SystemResult, SystemsComparison
    from abstain.evaluation.conformal import ConformalEvaluation, Stratum

__all__ = ["conformal_panel", "conformal_verdict", "metric_panels", "mistakes_panel", "systems_panel"]

# Texts that a source may carry beside an item: shown only when asked for.
_TEXTS = ("prompt", "raw_response")
_MOST_GROUPS = 20
_MOST_CHARTS = 3


def metric_panels(result: Evaluation | Comparison) -> list[Panel]:
    """Return the panels of abstention safety and of groups, where metrics were asked for."""
    if isinstance(result, Comparison):
        return _compared_metrics(result)
    table = result.metrics
    if table is None:
        return []
    panels = [_safety(table)]
    if table.groups:
        panels.append(_groups(table))
    return panels


def _safety(table: MetricTable) -> Panel:
    counts = table.outcomes
    rows = [
        [name, estimate, _better(table, name), table.specifications[name].summary.replace("``", "")]
        for name, estimate in table.items()
        if estimate.defined
    ]
    words = [
        f"Of all items, {counts.right:,} were answered rightly, {counts.wrong:,} answered wrongly, "
        f"{counts.abstained:,} declined, and {counts.failed:,} failed."
    ]
    reasons: dict[str, list[str]] = {}
    for name, estimate in table.items():
        if not estimate.defined:
            reasons.setdefault(estimate.reason, []).append(name)
    words += [f"Undefined here: {', '.join(names)} ({reason})." for reason, names in reasons.items()]
    return Panel(
        anchor="safety",
        title="Abstention safety: is declining, and answering, to be relied on?",
        short="Abstention safety",
        words=words,
        tables=[TableView("", ["metric", "value", "better", "what it is"], rows)] if rows else [],
    )


def _groups(table: MetricTable) -> Panel:
    defined = [name for name, estimate in table.items() if estimate.defined]
    rows = [
        [group.label, f"{group.items:,}", f"{group.answered:,}", *(group.estimates[name] for name in defined)]
        for group in table.groups
    ]
    tables = [TableView("", ["group", "items", "answered", *defined], rows, compact=True)]
    gaps = [[name, gap.group, gap.worst, gap.rest, gap.gap] for name, gap in table.gaps.items()]
    if gaps:
        headings = ["metric", "worst group", "there", "all others", "gap"]
        caption = (
            "Worst group against all others; it was chosen by its value, so its gap is not a fair sample."
        )
        tables.append(TableView(caption, headings, gaps))
    small = [group.label for group in table.groups if group.note]
    words = ["Every group is judged with the same draws as the whole."]
    words += [f"Too small to judge: {', '.join(small)}."] if small else []
    return Panel(
        anchor="groups",
        title=f"By {' and '.join(table.by)}",
        short="Groups",
        words=words,
        tables=tables,
        figures=[
            figure(groups_chart(table, name), f"{name} by group with its interval", wide=True)
            for name in defined[:_MOST_CHARTS]
        ],
    )


def _compared_metrics(comparison: Comparison) -> list[Panel]:
    left, right, deltas = comparison.left.metrics, comparison.right.metrics, comparison.metrics
    if left is None or right is None or deltas is None:
        return []
    rows = [
        [name, left[name], right[name], delta, _better(left, name)]
        for name, delta in deltas.items()
        if delta.defined
    ]
    return [
        Panel(
            anchor="safety",
            title="Abstention safety, right - left",
            short="Abstention safety",
            tables=[TableView("", ["metric", "left", "right", "right - left", "better"], rows)],
        )
    ]


def _better(table: MetricTable, name: str) -> str:
    return {"higher": "higher", "lower": "lower", "neither": "depends"}[table.specifications[name].direction]


def systems_panel(comparison: SystemsComparison) -> Panel:
    """Return the panel of several systems on the same items."""
    tables = [
        TableView(
            "Systems over the compared items; a rank stands with the ranks that cannot be ruled out",
            ["system", "answered", "coverage", *(f"{name}, rank" for name in comparison.metrics)],
            [
                [system.name, f"{system.answered:,} of {system.items:,}", system.coverage, *_ranked(system)]
                for system in comparison.systems.values()
            ],
        ),
        TableView(
            f"Differences; p corrected for {comparison.tested} comparisons by Holm's method",
            ["comparison", "metric", "at coverage", "difference", "p", "p (Holm)", "in words"],
            [
                [
                    f"{each.right} - {each.left}",
                    each.metric,
                    f"{each.coverage:.2f} (both)" if each.matched else "its own",
                    each.difference,
                    _p_value(each.p),
                    _p_value(each.p_adjusted),
                    each.words,
                ]
                for each in comparison.differences
            ],
        ),
    ]
    return Panel(
        anchor="systems",
        title="Systems compared",
        short="Systems",
        tables=tables,
        figures=[
            figure(systems_chart(comparison, name), f"Differences in {name} with their intervals", wide=True)
            for name in comparison.metrics
        ],
    )


def _ranked(system: SystemResult) -> list[str]:
    return [
        f"{estimate}{'' if system.ranks[name] is None else f', {system.ranks[name]}'}"
        for name, estimate in system.estimates.items()
    ]


def _p_value(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.4f}"


def conformal_verdict(result: ConformalEvaluation) -> list[str]:
    """Return whether coverage holds, one sentence a level."""
    return [
        f"At level {level.level:g} the {result.kind} are {level.verdict.verdict}: coverage {level.verdict.estimate} "
        f"({level.verdict.reason})."
        for level in result.levels
    ]


def conformal_panel(result: ConformalEvaluation) -> Panel:
    """Return the panel of intervals or sets."""
    names = list(result.levels[0])
    headings = [f"level {level.level:g}" for level in result.levels]
    tables = [
        TableView(
            f"Figures of {result.rows:,} {result.kind} in {result.clusters:,} clusters",
            ["figure", *headings],
            [[name, *(level[name] for level in result.levels)] for name in names]
            + [[f"{name} (all levels)", estimate] for name, estimate in result.figures.items()],
        )
    ]
    what = "width" if result.kind == "intervals" else "set size"
    for level in result.levels:
        tables.append(_strata(f"Coverage by {what} at level {level.level:g}", what, level.strata))
        for grouping, groups in level.groups.items():
            tables.append(_strata(f"Coverage by {grouping} at level {level.level:g}", grouping, groups))
    return Panel(
        anchor="coverage",
        title=f"{result.kind.capitalize()}: does coverage hold?",
        short=result.kind.capitalize(),
        words=conformal_verdict(result),
        tables=tables,
        figures=[figure(chart, f"Chart: {name}", wide=True) for name, chart in charts(result).items()],
    )


def _strata(caption: str, what: str, strata: Sequence[Stratum]) -> TableView:
    known = [part for part in strata if part.coverage.defined]
    worst = sorted(known, key=lambda part: part.coverage.value)[:_MOST_GROUPS]
    shown = known if len(known) <= _MOST_GROUPS else worst
    if len(shown) < len(known):
        caption += f" (the {_MOST_GROUPS} lowest of {len(known):,})"
    rows = [
        [str(part.label), f"{part.count:g}", part.coverage, part.verdict.verdict if part.verdict else ""]
        for part in shown
    ]
    return TableView(caption, [what, "rows", "coverage", "verdict"], rows)


def mistakes_panel(evaluation: Evaluation, most: int, *, responses: bool) -> Panel:
    """Return the most confident wrong answers by the first confidence, with the ids of their clusters."""
    judged, loss = evaluation.basis.judged, evaluation.basis.loss.values
    name, confidence = next(iter(evaluation.basis.confidences.items()))
    wrong = np.flatnonzero(judged.answered & (loss > 0))
    wrong = wrong[np.lexsort((-loss[wrong], -confidence[wrong]))][:most]
    texts = [key for key in judged.metadata if responses and key.rsplit(".", 1)[-1] in _TEXTS]
    noun = evaluation.cluster_noun
    rows = [
        [
            str(judged.cluster[row]),
            str(judged.item[row]),
            _plain(judged.truth[row]),
            _plain(judged.prediction[row]),
            f"{confidence[row]:.4g}",
            f"{loss[row]:.4g}",
            *(str(judged.metadata[key][row]) for key in texts),
        ]
        for row in wrong
    ]
    told = f"Asked for by whoever made this report: it names {noun}s and items"
    return Panel(
        anchor="mistakes",
        title="The most confident mistakes",
        short="Mistakes",
        words=[f"{told}{' and shows what the model was asked and wrote' if texts else ''}."],
        tables=[TableView("", [noun, "item", "truth", "prediction", name, "loss", *texts], rows)],
    )


def _plain(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
