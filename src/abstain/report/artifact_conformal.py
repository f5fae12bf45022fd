"""The artifact of intervals or sets: one JSON document with every number, its interval and its verdict.

The structures below are its schema (version "2"; version "1" said levels for claims and figures for metrics).
JSON has no infinity: an infinite number is null, as an undefined one is, and the reason beside it says which.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

import abstain
from abstain.report.artifact import WarningPart, warning_parts

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from abstain.evaluation.conformal import ClaimResult, CoverageResult, Stratum
    from abstain.inference import CoverageVerdict, Estimate
    from abstain.metrics.coverage import WorstSlab

__all__ = ["ConformalArtifact", "conformal_artifact", "conformal_schema"]


class EstimatePart(Struct, kw_only=True):
    """A number with its interval; `interval` is null when there is none, and an infinite end of it is null."""

    value: float | None
    interval: tuple[float | None, float | None] | None
    level: float
    se: float | None
    method: str
    n: int
    clusters: int
    resamples: int
    drop_rate: float
    reason: str


class VerdictPart(Struct, kw_only=True):
    """Whether coverage reaches its claim: covered, under-covered or undecided."""

    verdict: str
    reason: str
    margin: float
    coverage: EstimatePart
    p_under: float | None
    p_over: float | None


class StratumPart(Struct, kw_only=True):
    """Coverage in one stratum of width or in one group."""

    label: str | int | float | bool
    low: float | None
    high: float | None
    count: float
    coverage: EstimatePart
    verdict: VerdictPart | None


class SlabPart(Struct, kw_only=True):
    """The slab of worst coverage, judged on rows held out."""

    coverage: float | None
    found_coverage: float
    count: float
    share: float
    direction: list[float]
    low: float
    high: float
    reason: str


class ClaimPart(Struct, kw_only=True):
    """Everything about one claim of the predictions."""

    claim: float
    verdict: VerdictPart
    metrics: dict[str, EstimatePart]
    strata: list[StratumPart]
    groups: dict[str, list[StratumPart]]
    width_quantiles: list[float | None]
    worst_slab: SlabPart | None


class InputPart(Struct, kw_only=True):
    """Where the predictions came from, and which columns were read."""

    path: str | None
    sha256: str | None
    columns: dict[str, str | list[str]]


class SettingsPart(Struct, kw_only=True):
    """What was asked for; `level` is that of the intervals around the metrics."""

    bins: int | None
    eta: float
    margin: float
    resamples: int
    seed: int
    level: float


class ConformalArtifact(Struct, kw_only=True):
    """What `abstain intervals` and `abstain sets` write."""

    schema_version: str = "2"
    kind: str
    created_at: str
    abstain_version: str
    input: InputPart
    rows: int
    clusters: int
    settings: SettingsPart
    claims: list[ClaimPart]
    metrics: dict[str, EstimatePart]
    warnings: list[WarningPart]


def conformal_artifact(result: CoverageResult, created_at: datetime) -> ConformalArtifact:
    """Return the artifact of a judgement of intervals or sets."""
    settings, provenance = result.settings, result.provenance
    return ConformalArtifact(
        kind=result.kind,
        created_at=created_at.isoformat().replace("+00:00", "Z"),
        abstain_version=abstain.__version__,
        input=InputPart(
            path=provenance.get("path"),
            sha256=provenance.get("sha256"),
            columns=provenance.get("columns", {}),
        ),
        rows=result.rows,
        clusters=result.clusters,
        settings=SettingsPart(
            bins=settings.bins,
            eta=settings.eta,
            margin=settings.margin,
            resamples=settings.resamples,
            seed=settings.seed,
            level=settings.level,
        ),
        claims=[_claim(claim) for claim in result.claims],
        metrics=_metrics(result.metrics),
        warnings=warning_parts(result.warnings),
    )


def conformal_schema() -> dict[str, Any]:
    """Return the JSON Schema of the artifact.

    >>> conformal_schema()["title"]
    'abstain conformal artifact'
    """
    schema = msgspec.json.schema(ConformalArtifact, ref_template="#/$defs/{name}")
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "abstain conformal artifact",
        "description": "What `abstain intervals` and `abstain sets` write.",
        **schema,
    }


def _claim(result: ClaimResult) -> ClaimPart:
    return ClaimPart(
        claim=result.claim,
        verdict=_verdict(result.verdict),
        metrics=_metrics(result),
        strata=[_stratum(part) for part in result.strata],
        groups={name: [_stratum(part) for part in parts] for name, parts in result.groups.items()},
        width_quantiles=[_number(value) for value in result.width_quantiles.tolist()],
        worst_slab=None if result.slab is None else _slab(result.slab),
    )


def _metrics(metrics: Mapping[str, Estimate]) -> dict[str, EstimatePart]:
    return {name: _estimate(estimate) for name, estimate in metrics.items()}


def _estimate(estimate: Estimate) -> EstimatePart:
    interval = estimate.interval
    return EstimatePart(
        value=_number(estimate.value),
        interval=None if interval is None else (_number(interval[0]), _number(interval[1])),
        level=estimate.level,
        se=_number(estimate.se),
        method=estimate.method,
        n=estimate.n,
        clusters=estimate.clusters,
        resamples=estimate.resamples,
        drop_rate=estimate.drop_rate,
        reason=estimate.reason,
    )


def _verdict(verdict: CoverageVerdict) -> VerdictPart:
    return VerdictPart(
        verdict=verdict.verdict,
        reason=verdict.reason,
        margin=verdict.margin,
        coverage=_estimate(verdict.estimate),
        p_under=_number(verdict.p_under),
        p_over=_number(verdict.p_over),
    )


def _stratum(part: Stratum) -> StratumPart:
    return StratumPart(
        label=part.label,
        low=_number(part.low),
        high=_number(part.high),
        count=part.count,
        coverage=_estimate(part.coverage),
        verdict=None if part.verdict is None else _verdict(part.verdict),
    )


def _slab(slab: WorstSlab) -> SlabPart:
    return SlabPart(
        coverage=_number(slab.coverage),
        found_coverage=slab.found_coverage,
        count=slab.count,
        share=slab.share,
        direction=slab.direction.tolist(),
        low=slab.low,
        high=slab.high,
        reason=slab.reason,
    )


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None
