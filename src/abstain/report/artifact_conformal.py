"""The artifact of intervals or sets: one JSON document with every number, its interval and its verdict.

What it holds is in `_schemas`, and `abstain schema conformal` publishes it as JSON Schema; here it is filled.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from abstain.report import _schemas as schema
from abstain.report._schemas import ConformalArtifact
from abstain.report.artifact import filled, finite, stamp, warning_parts

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from abstain.evaluation.conformal import ClaimResult, CoverageResult, Stratum
    from abstain.inference import CoverageVerdict, Estimate

__all__ = ["ConformalArtifact", "conformal_artifact", "conformal_schema"]


def conformal_artifact(result: CoverageResult, created_at: datetime) -> ConformalArtifact:
    """Return the artifact of a judgement of intervals or sets."""
    source = result.provenance
    return ConformalArtifact(
        kind=result.kind,
        **stamp(created_at),
        rows=result.rows,
        clusters=result.clusters,
        input=schema.InputPart(
            path=source.get("path"), sha256=source.get("sha256"), columns=source.get("columns", {})
        ),
        settings=filled(schema.SettingsPart, result.settings),
        claims=[_claim(claim) for claim in result.claims],
        metrics=_metrics(result.metrics),
        warnings=warning_parts(result.warnings),
    )


def conformal_schema() -> dict[str, Any]:
    """Return the JSON Schema of the artifact.

    >>> conformal_schema()["title"]
    'abstain conformal artifact'
    """
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "abstain conformal artifact",
        "description": "What `abstain intervals` and `abstain sets` write.",
        **msgspec.json.schema(ConformalArtifact, ref_template="#/$defs/{name}"),
    }


def _claim(result: ClaimResult) -> schema.ClaimPart:
    slab = result.slab
    return schema.ClaimPart(
        claim=result.claim,
        verdict=_verdict(result.verdict),
        metrics=_metrics(result),
        strata=[_stratum(part) for part in result.strata],
        groups={name: [_stratum(part) for part in parts] for name, parts in result.groups.items()},
        width_quantiles=[finite(value) for value in result.width_quantiles.tolist()],
        worst_slab=None if slab is None else filled(schema.SlabPart, slab, direction=slab.direction.tolist()),
    )


def _metrics(metrics: Mapping[str, Estimate]) -> dict[str, schema.EstimatePart]:
    return {name: _estimate(estimate) for name, estimate in metrics.items()}


def _estimate(estimate: Estimate) -> schema.EstimatePart:
    interval = estimate.interval
    ends = None if interval is None else (finite(interval[0]), finite(interval[1]))
    return filled(schema.EstimatePart, estimate, interval=ends)


def _verdict(verdict: CoverageVerdict) -> schema.VerdictPart:
    return filled(schema.VerdictPart, verdict, coverage=_estimate(verdict.estimate))


def _stratum(part: Stratum) -> schema.StratumPart:
    verdict = None if part.verdict is None else _verdict(part.verdict)
    return filled(schema.StratumPart, part, coverage=_estimate(part.coverage), verdict=verdict)
