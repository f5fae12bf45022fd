"""Intervals and sets in words and tables: the verdict first, then the metrics, then where coverage fails.

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
        "coverage": "share of truths that their interval holds; it should reach the claim",
        "mean_width": "how wide an interval is on average; narrower is better, once coverage holds",
        "winkler_score": "width plus a penalty for every miss; lower is better",
        "coverage_width_criterion": "narrow is rewarded, coverage off its claim punished; higher is better",
        "size_stratified_coverage": "coverage of the worst stratum of width",
        "hsic": "how far coverage depends on width; 0 when it does not",
    },
    "sets": {
        "coverage": "share of truths that are in their set; it should reach the claim",
        "mean_width": "how many classes a set holds on average; fewer is better, once coverage holds",
        "size_stratified_coverage": "coverage of the worst set size",
        "singleton_rate": "share of sets with exactly one class",
    },
}


def coverage_summary(result: CoverageResult, width: int = WIDTH) -> Group:
    """Return the summary of intervals or sets for a terminal of some width."""
    predictions, clusters = (
        format_count(result.rows, result.kind[:-1]),
        format_count(result.clusters, "cluster"),
    )
    verdicts = format_table(nominal_table(result), width)
    for word, style in _STYLES.items():
        verdicts.highlight_regex(word, style)
    parts: list[RenderableType] = [
        heading(_source(result)),
        line(f"population: {predictions} in {clusters}"),
        line(),
        verdicts,
        format_table(metrics_table(result), width),
    ]
    for nominal in result.by_nominal:
        suffix = f" at claim {nominal.nominal:g}" if len(result.by_nominal) > 1 else ""
        parts += [
            format_table(parts_table(f"coverage by {name}{suffix}", strata), width)
            for name, strata in groupings_of(result, nominal)
        ]
        if nominal.slab is not None:
            slab, coverage = nominal.slab, format(nominal["worst_slab_coverage"], ".3f")
            direction = ", ".join(f"{part:.3g}" for part in slab.direction)
            where = f"along ({direction}) from {slab.low:.4g} to {slab.high:.4g}"
            words = f"worst slab{suffix}: {coverage} over {slab.count:,} held-out rows, {where}"
            parts += [line(words), line()]
    parts += [
        line(_method(result), dim=True),
        *format_warnings(map(str, result.warnings), width),
        *format_meanings("what the numbers mean", _MEANINGS[result.kind], width),
    ]
    return Group(*parts)


def coverage_tables(result: CoverageResult) -> list[Table]:
    """Return every metric of intervals or sets at every claim, and coverage by stratum and by group, as one table."""
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
    """Return the verdict on each claim, with the coverage and the interval that decide it."""
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
    return Table("Does coverage reach what is claimed?", columns, rows)


def metrics_table(result: CoverageResult) -> Table:
    """Return the metrics, one column per claim, then those that concern all claims together."""
    by_nominal = [
        Column(f"claim_{nominal.nominal:g}", f"claim {nominal.nominal:g}", estimate=True)
        for nominal in result.by_nominal
    ]
    rows: list[tuple[Cell, ...]] = [
        (name, *(nominal[name] for nominal in result.by_nominal)) for name in result.by_nominal[0]
    ]
    rest = ("",) * (len(by_nominal) - 1)
    rows += [(f"{name} (all claims)", estimate, *rest) for name, estimate in result.metrics.items()]
    metrics = [*(pair for nominal in result.by_nominal for pair in nominal.items()), *result.metrics.items()]
    reasons = dict.fromkeys(f"{name}: {estimate.reason}." for name, estimate in metrics if estimate.reason)
    return Table("Metrics", (Column("metric"), *by_nominal), tuple(rows), tuple(reasons))


def parts_table(title: str, parts: Sequence[Stratum]) -> Table:
    """Return coverage within strata or groups; of very many the worst."""
    notes: tuple[str, ...] = ()
    if len(parts) > _MOST_GROUPS:
        notes = (f"{len(parts) - _MOST_GROUPS} groups with higher coverage are in the artifact.",)
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
    """Return the strata and the groups of a claim, each with the name of the grouping."""
    return [("width" if result.kind == "intervals" else "set size", nominal.strata), *nominal.groups.items()]


def _method(result: CoverageResult) -> str:
    settings = result.settings
    percent = f"{100 * settings.level:g}% intervals"
    method = f"{settings.interval} over {format_count(result.clusters, 'cluster')}"
    if settings.interval == "none":
        method = "none"
    elif settings.resamples:
        method += f", {format_count(settings.resamples, 'resample')}, seed {settings.seed}"
    return f"[{percent}: {method}]"


def _source(result: CoverageResult) -> str:
    return str(result.provenance.get("path") or result.kind)
