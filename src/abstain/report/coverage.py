"""Intervals and sets in sentences and tables: the verdict first, then the metrics, then coverage by group.

`coverage_summary` is for the terminal, `coverage_tables` for ``--format`` and other programs.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from rich.console import Group

from abstain.report.console import WIDTH, format_meanings, format_table, format_warnings, heading, line
from abstain.report.tables import Column, Table
from abstain.report.views import format_count

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import RenderableType

    from abstain.evaluation.conformal import CoverageResult, NominalResult, Stratum
    from abstain.report.tables import Cell

# Of more groups than this only the worst are shown; the results JSON has them all.
_MOST_GROUPS = 20
_STYLES = {
    r"(?<![-\w])covered\b": "green",
    r"\bover-covered\b": "cyan",
    r"\bunder-covered\b": "bold red",
    r"\binconclusive\b": "yellow",
}

_MEANINGS = {
    "intervals": {
        "coverage": "proportion of labels within their interval. It should reach the nominal coverage.",
        "mean_width": "mean width of the intervals. Narrower is better if the coverage is reached.",
        "winkler_score": "width plus a penalty for every label outside its interval. Lower is better.",
        "coverage_width_criterion": "rewards narrow intervals, and penalizes coverage other than the nominal one. "
        "Higher is better.",
        "size_stratified_coverage": "coverage of the worst stratum of width.",
        "hsic": "dependence of coverage on width. 0 if there is none.",
    },
    "sets": {
        "coverage": "proportion of labels that are in their set. It should reach the nominal coverage.",
        "mean_width": "mean number of classes in a set. Fewer are better if the coverage is reached.",
        "size_stratified_coverage": "coverage of the worst set size.",
        "singleton_rate": "proportion of sets with exactly one class.",
    },
}


def coverage_summary(result: CoverageResult, width: int = WIDTH) -> Group:
    """Return the summary of intervals or sets for a terminal of some width."""
    predictions = format_count(result.rows, result.kind[:-1])
    population = f"{predictions} in {format_count(result.clusters, 'cluster')}"
    verdicts = format_table(nominal_table(result), width)
    for word, style in _STYLES.items():
        verdicts.highlight_regex(word, style)
    parts: list[RenderableType] = [
        heading(f"{_source(result)}: {population}"),
        line(),
        verdicts,
        *format_warnings(map(str, result.warnings), width),
        format_table(metrics_table(result), width),
    ]
    for nominal in result.by_nominal:
        suffix = f" at nominal coverage {nominal.nominal:g}" if len(result.by_nominal) > 1 else ""
        parts += [
            format_table(parts_table(f"coverage by {name}{suffix}", strata), width)
            for name, strata in groupings_of(result, nominal)
        ]
        if nominal.slab is not None:
            slab, coverage = nominal.slab, format(nominal["worst_slab_coverage"], ".3f")
            direction = ", ".join(f"{part:.3g}" for part in slab.direction)
            location = f"along ({direction}) from {slab.low:.4g} to {slab.high:.4g}"
            parts += [
                line(f"worst slab{suffix}: {coverage} over {slab.count:,} held-out rows, {location}"),
                line(),
            ]
    parts += [
        line(_method(result), dim=True),
        *format_meanings("Terms", _MEANINGS[result.kind], width),
    ]
    return Group(*parts)


def coverage_tables(result: CoverageResult) -> list[Table]:
    """Return every metric at every nominal coverage, and coverage by stratum and group, as one table."""
    rows: list[tuple[Cell, ...]] = []
    for nominal in result.by_nominal:
        for name, estimate in nominal.items():
            verdict = nominal.verdict.verdict if name == "coverage" else ""
            rows.append((nominal.nominal, name, "all", result.rows, estimate, verdict))
        for name, strata in groupings_of(result, nominal):
            rows += [(nominal.nominal, f"coverage by {name}", *_cells(part)) for part in strata]
    rows += [("all", name, "all", result.rows, estimate, "") for name, estimate in result.metrics.items()]
    columns = (
        Column("nominal"),
        Column("metric"),
        Column("part"),
        Column("rows", digits=0),
        Column("value", estimate=True),
        Column("verdict"),
    )
    notes = tuple(str(warning) for warning in result.warnings)
    return [Table(_source(result), columns, tuple(rows), notes)]


def nominal_table(result: CoverageResult) -> Table:
    """Return the verdict at each nominal coverage, with the coverage and the interval that decide it."""
    columns = (
        Column("nominal"),
        Column("coverage", estimate=True),
        Column("verdict"),
        Column("why"),
    )
    rows = tuple(
        (nominal.nominal, nominal.verdict.estimate, nominal.verdict.verdict, nominal.verdict.reason)
        for nominal in result.by_nominal
    )
    return Table("Is the nominal coverage reached?", columns, rows)


def metrics_table(result: CoverageResult) -> Table:
    """Return the metrics, one column per nominal coverage, then those of all nominal coverages together."""
    by_nominal = [
        Column(f"nominal_{nominal.nominal:g}", f"nominal {nominal.nominal:g}", estimate=True)
        for nominal in result.by_nominal
    ]
    rows: list[tuple[Cell, ...]] = [
        (name, *(nominal[name] for nominal in result.by_nominal)) for name in result.by_nominal[0]
    ]
    rest = ("",) * (len(by_nominal) - 1)
    rows += [(f"{name} (all)", estimate, *rest) for name, estimate in result.metrics.items()]
    metrics = [*(pair for nominal in result.by_nominal for pair in nominal.items()), *result.metrics.items()]
    reasons = dict.fromkeys(f"{name}: {estimate.reason}." for name, estimate in metrics if estimate.reason)
    return Table("Metrics", (Column("metric"), *by_nominal), tuple(rows), tuple(reasons))


def parts_table(title: str, parts: Sequence[Stratum]) -> Table:
    """Return coverage within strata or groups; of very many the worst."""
    notes: tuple[str, ...] = ()
    if len(parts) > _MOST_GROUPS:
        notes = (f"{len(parts) - _MOST_GROUPS} groups with higher coverage are in the results JSON.",)
        worst = sorted(parts, key=lambda part: part.coverage.value if part.coverage.defined else math.inf)
        title, parts = f"{title}, lowest first", worst[:_MOST_GROUPS]
    columns = (
        Column("part"),
        Column("rows", digits=0),
        Column("coverage", estimate=True),
        Column("verdict"),
    )
    return Table(title, columns, tuple(_cells(part) for part in parts), notes)


def _cells(part: Stratum) -> tuple[Cell, Cell, Cell, Cell]:
    verdict = "" if part.verdict is None else part.verdict.verdict
    return str(part.label), part.count, part.coverage, verdict


def groupings_of(result: CoverageResult, nominal: NominalResult) -> list[tuple[str, Sequence[Stratum]]]:
    """Return the strata and the groups at a nominal coverage, each with the name of the grouping."""
    return [("width" if result.kind == "intervals" else "set size", nominal.strata), *nominal.groups.items()]


def _method(result: CoverageResult) -> str:
    settings = result.settings
    percent = f"{100 * settings.level:g}% confidence intervals"
    method = f"{settings.interval} over {format_count(result.clusters, 'cluster')}"
    if settings.interval == "none":
        method = "none"
    elif settings.resamples:
        method += f", {format_count(settings.resamples, 'resample')}, seed {settings.seed}"
    return f"{percent}: {method}."


def _source(result: CoverageResult) -> str:
    return str(result.provenance.get("path") or result.kind)
