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

    from abstain.evaluation.conformal import ClaimResult, CoverageResult, Stratum
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
    verdicts = format_table(claims_table(result), width)
    for word, style in _STYLES.items():
        verdicts.highlight_regex(word, style)
    parts: list[RenderableType] = [
        heading(_source(result)),
        line(f"population: {predictions} in {clusters}"),
        line(),
        verdicts,
        format_table(metrics_table(result), width),
    ]
    for claim in result.claims:
        suffix = f" at claim {claim.claim:g}" if len(result.claims) > 1 else ""
        parts += [
            format_table(parts_table(f"coverage by {name}{suffix}", strata), width)
            for name, strata in groupings_of(result, claim)
        ]
        if claim.slab is not None:
            slab, coverage = claim.slab, format(claim["worst_slab_coverage"], ".3f")
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
    for claim in result.claims:
        for name, estimate in claim.items():
            verdict = claim.verdict.verdict if name == "coverage" else ""
            rows.append((claim.claim, name, "all", result.rows, estimate, verdict))
        for name, strata in groupings_of(result, claim):
            rows += [(claim.claim, f"coverage by {name}", *_cells(part)) for part in strata]
    rows += [("all", name, "all", result.rows, estimate, "") for name, estimate in result.metrics.items()]
    columns = (
        Column("claim"),
        Column("metric"),
        Column("part"),
        Column("rows", digits=0),
        Column("value", estimate=True),
        Column("verdict"),
    )
    notes = tuple(str(warning) for warning in result.warnings)
    return [Table(_source(result), columns, tuple(rows), notes)]


def claims_table(result: CoverageResult) -> Table:
    """Return the verdict on each claim, with the coverage and the interval that decide it."""
    columns = (
        Column("claim"),
        Column("coverage", estimate=True),
        Column("verdict"),
        Column("why"),
    )
    rows = tuple(
        (claim.claim, claim.verdict.estimate, claim.verdict.verdict, claim.verdict.reason)
        for claim in result.claims
    )
    return Table("Does coverage reach what is claimed?", columns, rows)


def metrics_table(result: CoverageResult) -> Table:
    """Return the metrics, one column per claim, then those that concern all claims together."""
    claims = [
        Column(f"claim_{claim.claim:g}", f"claim {claim.claim:g}", estimate=True) for claim in result.claims
    ]
    rows: list[tuple[Cell, ...]] = [
        (name, *(claim[name] for claim in result.claims)) for name in result.claims[0]
    ]
    rest = ("",) * (len(claims) - 1)
    rows += [(f"{name} (all claims)", estimate, *rest) for name, estimate in result.metrics.items()]
    metrics = [*(pair for claim in result.claims for pair in claim.items()), *result.metrics.items()]
    reasons = dict.fromkeys(f"{name}: {estimate.reason}." for name, estimate in metrics if estimate.reason)
    return Table("Metrics", (Column("metric"), *claims), tuple(rows), tuple(reasons))


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


def groupings_of(result: CoverageResult, claim: ClaimResult) -> list[tuple[str, Sequence[Stratum]]]:
    """Return the strata and the groups of a claim, each with the name of the grouping."""
    return [("width" if result.kind == "intervals" else "set size", claim.strata), *claim.groups.items()]


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
