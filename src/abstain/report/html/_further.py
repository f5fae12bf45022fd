"""The panels that only some reports have: intervals or sets, and the most confident mistakes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from abstain.report.charts.intervals import charts
from abstain.report.html._parts import Panel, TableView, figure

if TYPE_CHECKING:
    from collections.abc import Sequence

    from abstain.evaluation import Evaluation
    from abstain.evaluation.conformal import ConformalEvaluation, Stratum

__all__ = ["conformal_panel", "conformal_verdict", "mistakes_panel"]

# Texts that a source may carry beside an item: shown only when asked for.
_TEXTS = ("prompt", "raw_response")
_MOST_GROUPS = 20


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
