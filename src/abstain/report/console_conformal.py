"""The terminal summary of intervals or sets: the verdict first, then the figures, then where coverage fails.

Everything that came from a file (labels, paths) is printed as plain text, never as markup.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from rich import box
from rich.console import Group
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import RenderableType

    from abstain.evaluation.conformal import ConformalEvaluation, LevelResult, Stratum
    from abstain.inference import CoverageVerdict, Estimate

__all__ = ["conformal_summary"]

# A grouping with more groups than this shows its worst; the artifact has them all.
_MOST_GROUPS = 20
_STYLES = {"covered": "green", "under-covered": "bold red", "undecided": "yellow"}

_MEANINGS = {
    "intervals": {
        "coverage": "share of truths that their interval holds; it should reach the level",
        "mean_width": "how wide an interval is on average; narrower is better, once coverage holds",
        "winkler_score": "width plus a penalty for every miss; lower is better",
        "coverage_width_criterion": "narrow is rewarded, coverage off its level punished; higher is better",
        "size_stratified_coverage": "coverage of the worst stratum of width",
        "hsic": "how far coverage depends on width; 0 when it does not",
    },
    "sets": {
        "coverage": "share of truths that are in their set; it should reach the level",
        "mean_width": "how many classes a set holds on average; fewer is better, once coverage holds",
        "size_stratified_coverage": "coverage of the worst set size",
        "singleton_rate": "share of sets with exactly one class",
    },
}


def conformal_summary(result: ConformalEvaluation) -> Group:
    """Return the summary of a judgement of intervals or sets."""
    path = result.provenance.get("path") or result.kind
    parts: list[RenderableType] = [
        Text(f"{path}", style="bold"),
        Text(f"population: {_many(result.rows, result.kind[:-1])} in {_many(result.clusters, 'cluster')}"),
        _verdicts(result),
        _figures(result),
    ]
    for level in result.levels:
        at = f" at level {level.level:g}" if len(result.levels) > 1 else ""
        what = "width" if result.kind == "intervals" else "set size"
        parts += [_strata(f"coverage by {what}{at}", level.strata)]
        for name, groups in level.groups.items():
            parts += _groups(f"coverage by {name}{at}", groups)
        parts += _slab(level, at)
    parts += [*_method(result), *_cautions(result), *_meanings(result.kind)]
    return Group(*parts)


def _verdicts(result: ConformalEvaluation) -> Table:
    table = _table("level", "coverage (exact interval)", "verdict", "why")
    for level in result.levels:
        verdict = level.verdict
        table.add_row(f"{level.level:g}", _number(verdict.estimate), _word(verdict), Text(verdict.reason))
    return table


def _figures(result: ConformalEvaluation) -> Table:
    headings = [f"level {level.level:g}" for level in result.levels]
    table = _table("figure", *headings, right=True)
    for name in result.levels[0]:
        table.add_row(Text(name), *(Text(_number(level[name])) for level in result.levels))
    for name, estimate in result.figures.items():
        table.add_row(
            Text(f"{name} (all levels)"), Text(_number(estimate)), *([Text()] * (len(headings) - 1))
        )
    return table


def _strata(title: str, strata: Sequence[Stratum]) -> Table:
    table = _table(title, "rows", "coverage", "verdict")
    for part in strata:
        table.add_row(Text(str(part.label)), _count(part), _number(part.coverage), _word(part.verdict))
    return table


def _groups(title: str, groups: Sequence[Stratum]) -> list[RenderableType]:
    if len(groups) <= _MOST_GROUPS:
        return [_strata(title, groups)]
    worst = sorted(groups, key=lambda part: part.coverage.value if part.coverage.defined else math.inf)
    left = len(groups) - _MOST_GROUPS
    note = Text(f"{left} groups with higher coverage are in the artifact", style="dim")
    return [_strata(f"{title}, lowest first", worst[:_MOST_GROUPS]), note]


def _slab(level: LevelResult, at: str) -> list[RenderableType]:
    if level.slab is None:
        return []
    direction = ", ".join(f"{part:.3g}" for part in level.slab.direction)
    text = f"worst slab{at}: {_number(level['worst_slab_coverage'])} over {level.slab.count:,} held-out rows"
    return [Text(f"{text}, along ({direction}) from {level.slab.low:.4g} to {level.slab.high:.4g}")]


def _method(result: ConformalEvaluation) -> list[Text]:
    settings = result.settings
    percent = f"{100 * settings.confidence_level:g}% intervals"
    exact = "of the verdict: exact binomial, scaled to clusters"
    if not settings.resamples:
        return [Text(f"[{percent}: none by bootstrap (0 resamples); {exact}]", style="dim")]
    drawn = f"{_many(settings.resamples, 'resample')} of {_many(result.clusters, 'cluster')}, seed {settings.seed}"
    return [Text(f"[{percent}: {drawn}; {exact}]", style="dim")]


def _cautions(result: ConformalEvaluation) -> list[RenderableType]:
    if not result.cautions:
        return []
    lines = [Padding(Text(f"! {caution}", style="yellow"), (0, 0, 0, 2)) for caution in result.cautions]
    return [Text(), Text("take care", style="bold"), *lines]


def _meanings(kind: str) -> list[RenderableType]:
    meanings = _MEANINGS[kind]
    width = max(len(name) for name in meanings)
    lines = [Padding(Text(f"{name:<{width}}  {text}"), (0, 0, 0, 2)) for name, text in meanings.items()]
    return [Text(), Text("what the numbers mean", style="bold"), *lines]


def _table(first: str, *others: str, right: bool = False) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column(Text(first))
    for heading in others:
        table.add_column(heading, justify="right" if right or heading in {"rows", "coverage"} else "left")
    return table


def _number(estimate: Estimate) -> str:
    if not estimate.defined:
        return f"undefined: {estimate.reason}" if estimate.reason else "undefined"
    return format(estimate, ".3f" if abs(estimate.value) < 1000 or math.isinf(estimate.value) else ".4g")


def _many(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _count(part: Stratum) -> str:
    return f"{part.count:,}" if isinstance(part.count, int) else f"{part.count:,.2f}"


def _word(verdict: CoverageVerdict | None) -> Text:
    if verdict is None:
        return Text("")
    return Text(verdict.verdict, style=_STYLES[verdict.verdict])
