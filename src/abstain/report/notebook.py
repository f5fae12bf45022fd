"""How results look in a notebook: a table of estimates, as plain HTML without script or style."""

from __future__ import annotations

from typing import TYPE_CHECKING

from abstain.evaluation import Comparison, Evaluation, SystemsComparison

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from abstain.evaluation.conformal import ConformalEvaluation

__all__ = ["result_html"]

_FIGURES = {"Cmax": "cmax", "AURC": "aurc", "AUGRC": "augrc", "e-AURC": "eaurc"}


def result_html(result: Evaluation | Comparison | SystemsComparison | ConformalEvaluation) -> str:
    """Return a result as HTML: one line about whom, one table, and what to take care of."""
    if isinstance(result, Evaluation):
        population = result.population
        title = (
            f"{population.items:,} items: {population.answered:,} answered, {population.abstained:,} abstained; "
            f"loss {result.loss.name}"
        )
        rows = [
            [name, *(str(getattr(variant, field)) for field in _FIGURES.values())]
            for name, variant in result.items()
        ]
        rows += [[name, str(estimate)] for name, estimate in (result.metrics or {}).items()]
        return _page(title, ["confidence", *_FIGURES], rows, map(str, result.cautions))
    if isinstance(result, Comparison):
        title = f"Right less left over {result.overlap.included:,} {result.left.cluster_noun}s"
        rows = [
            [name, *(str(getattr(delta, field)) for field in _FIGURES.values())]
            for name, delta in result.deltas.items()
        ]
        return _page(title, ["confidence", *_FIGURES], rows, map(str, result.cautions))
    if isinstance(result, SystemsComparison):
        title = f"{len(result.systems)} systems over {result.matching.judged:,} items"
        rows = [
            [f"{each.right} - {each.left}", each.metric, str(each.difference), each.words]
            for each in result.differences
        ]
        return _page(
            title, ["comparison", "metric", "difference", "in words"], rows, map(str, result.cautions)
        )
    names = list(dict.fromkeys(name for level in result.levels for name in level))
    rows = [
        [f"{level.level:g}", level.verdict.verdict, *(str(level[name]) for name in names)]
        for level in result.levels
    ]
    title = f"{result.rows:,} {result.kind} of {result.clusters:,} clusters"
    return _page(title, ["level", "verdict", *names], rows, map(str, result.cautions))


def _page(title: str, headings: Sequence[str], rows: Sequence[Sequence[str]], cautions: Iterable[str]) -> str:
    from markupsafe import escape  # noqa: PLC0415

    head = "".join(f"<th>{escape(heading)}</th>" for heading in headings)
    body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    care = "".join(f"<li>{escape(caution)}</li>" for caution in cautions)
    listed = f"<ul>{care}</ul>" if care else ""
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return f"<div><p>{escape(title)}</p>{table}{listed}</div>"
