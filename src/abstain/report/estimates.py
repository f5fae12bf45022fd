"""Evaluations and comparisons of two as one long table: a row for every figure of a confidence, metric and group."""

from __future__ import annotations

from typing import TYPE_CHECKING

from abstain.report.tables import Column, Table

if TYPE_CHECKING:
    from abstain.evaluation import Caution, Comparison, Evaluation, VariantDelta, VariantResult
    from abstain.inference import Estimate
    from abstain.report.tables import Cell

__all__ = ["comparison_table", "evaluation_table"]

_FIGURES = (
    "cmax",
    "aurc",
    "augrc",
    "aurc_optimal",
    "augrc_optimal",
    "eaurc",
    "eaugrc",
    "aurc_achievable",
)
_TRUNCATED = ("aurc_at_coverage", "augrc_at_coverage")


def evaluation_table(evaluation: Evaluation) -> Table:
    """Return every figure of one evaluation with its interval."""
    rows: list[tuple[Cell, ...]] = []
    cautions = list(evaluation.cautions)
    for name, result in evaluation.items():
        cautions += result.cautions
        for figure, estimate in _figures(result, evaluation.settings.area_coverage).items():
            rows.append((name, figure, "all", estimate, *_counts(estimate)))
    if evaluation.metrics is not None:
        for name, estimate in evaluation.metrics.items():
            rows.append(("", name, "all", estimate, *_counts(estimate)))
            rows += [
                ("", name, group.label, group.estimates[name], *_counts(group.estimates[name]))
                for group in evaluation.metrics.groups
            ]
    columns = (
        Column("confidence"),
        Column("figure"),
        Column("group"),
        Column("value", estimate=True),
        Column("items", digits=0, detail=True),
        Column("clusters", digits=0, detail=True),
        Column("remark"),
    )
    notes = (_population(evaluation), *_method(evaluation), *_sentences(cautions))
    return _tidied(Table(_source(evaluation), columns, tuple(rows), notes))


def comparison_table(comparison: Comparison) -> Table:
    """Return every figure of both sides and its difference, right - left."""
    left, right = comparison.left, comparison.right
    rows: list[tuple[Cell, ...]] = []
    cautions = list(comparison.cautions)
    for name, delta in comparison.deltas.items():
        cautions += [*left[name].cautions, *right[name].cautions]
        sides = [_figures(side, left.settings.area_coverage) for side in (left[name], right[name], delta)]
        for figure, change in sides[2].items():
            rows.append((name, figure, "all", sides[0][figure], sides[1][figure], change, change.reason))
    if comparison.metrics is not None and left.metrics is not None and right.metrics is not None:
        for name, change in comparison.metrics.items():
            rows.append(("", name, "all", left.metrics[name], right.metrics[name], change, change.reason))
            for label, deltas in comparison.metrics.groups.items():
                ends = (left.metrics.group(label).estimates[name], right.metrics.group(label).estimates[name])
                rows.append(("", name, label, *ends, deltas[name], deltas[name].reason))
    columns = (
        Column("confidence"),
        Column("figure"),
        Column("group"),
        Column("left", estimate=True),
        Column("right", estimate=True),
        Column("difference", "right - left", estimate=True),
        Column("remark"),
    )
    title = f"left: {_source(left)}; right: {_source(right)}"
    return _tidied(Table(title, columns, tuple(rows), (*_method(left), *_sentences(cautions))))


def _figures(result: VariantResult | VariantDelta, area_coverage: float) -> dict[str, Estimate]:
    figures: dict[str, Estimate] = {name: getattr(result, name) for name in _FIGURES}
    figures |= {f"{name}@{area_coverage:g}": getattr(result, name) for name in _TRUNCATED}
    return figures | {f"risk_at_coverage@{at:g}": risk for at, risk in result.risk_at_coverage.items()}


def _tidied(table: Table) -> Table:
    """Leave out what says nothing: groups where there are none, remarks where none is made, confidences likewise."""
    empty = {"confidence": "", "group": "all", "remark": ""}
    kept = [
        place
        for place, column in enumerate(table.columns)
        if column.key not in empty or any(row[place] != empty[column.key] for row in table.rows)
    ]
    rows = tuple(tuple(row[place] for place in kept) for row in table.rows)
    return Table(table.title, tuple(table.columns[place] for place in kept), rows, table.notes)


def _counts(estimate: Estimate) -> tuple[int, int, str]:
    return estimate.n, estimate.clusters, estimate.reason


def _source(evaluation: Evaluation) -> str:
    path, mode = evaluation.provenance.get("path"), evaluation.provenance.get("mode")
    return f"{path or 'items'}{f' ({mode})' if mode else ''}"


def _population(evaluation: Evaluation) -> str:
    population = evaluation.population
    return (
        f"{population.included} of {population.total} {evaluation.cluster_noun}s judged; {population.items} items: "
        f"{population.answered} answered, {population.abstained} abstained. Loss {evaluation.loss.name} = "
        f"{evaluation.loss.definition}."
    )


def _method(evaluation: Evaluation) -> list[str]:
    settings = evaluation.settings
    if not settings.resamples:
        return []
    return [
        f"{100 * settings.level:g}% percentile intervals of {settings.resamples:,} cluster resamples, seed "
        f"{settings.seed}; convention {settings.convention}."
    ]


def _sentences(cautions: list[Caution]) -> list[str]:
    return list(dict.fromkeys(str(caution) for caution in cautions))
