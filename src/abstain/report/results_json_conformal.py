"""The results JSON of intervals or sets: every number, its interval and its verdict.

As in `results_json`, a record's fields are the JSON keys, and the function that builds it follows it;
`abstain schema conformal` publishes them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from abstain.report.results_json import WarningPart, build_record, build_stamp, build_warnings

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from abstain.evaluation.conformal import CoverageResult, NominalResult, Stratum
    from abstain.inference import CoverageVerdict, Estimate


class EstimatePart(Struct):
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


def _metrics(metrics: Mapping[str, Estimate]) -> dict[str, EstimatePart]:
    return {name: build_record(EstimatePart, estimate) for name, estimate in metrics.items()}


class VerdictPart(Struct):
    """Whether the nominal coverage is reached: covered, over-covered, under-covered or inconclusive."""

    verdict: str
    reason: str
    margin: float
    coverage: EstimatePart


def _verdict(verdict: CoverageVerdict) -> VerdictPart:
    return build_record(VerdictPart, verdict, coverage=build_record(EstimatePart, verdict.estimate))


class StratumPart(Struct):
    """Coverage in one stratum of width or in one group."""

    label: str | int | float | bool
    low: float | None
    high: float | None
    count: float
    coverage: EstimatePart
    verdict: VerdictPart | None


def _stratum(part: Stratum) -> StratumPart:
    return build_record(
        StratumPart,
        part,
        coverage=build_record(EstimatePart, part.coverage),
        verdict=None if part.verdict is None else _verdict(part.verdict),
    )


class SlabPart(Struct):
    """The slab of worst coverage, evaluated on held-out rows."""

    coverage: float | None
    searched_coverage: float
    count: float
    proportion: float
    direction: list[float]
    low: float
    high: float
    reason: str


class NominalPart(Struct):
    """The results at one nominal coverage."""

    nominal: float
    verdict: VerdictPart
    metrics: dict[str, EstimatePart]
    strata: list[StratumPart]
    groups: dict[str, list[StratumPart]]
    width_quantiles: list[float | None]
    worst_slab: SlabPart | None


def _nominal_result(result: NominalResult) -> NominalPart:
    slab = None
    if result.slab is not None:
        slab = build_record(SlabPart, result.slab, direction=result.slab.direction.tolist())
    return NominalPart(
        nominal=result.nominal,
        verdict=_verdict(result.verdict),
        metrics=_metrics(result),
        strata=[_stratum(part) for part in result.strata],
        groups={name: [_stratum(part) for part in parts] for name, parts in result.groups.items()},
        width_quantiles=result.width_quantiles.tolist(),
        worst_slab=slab,
    )


class InputPart(Struct):
    """The source of the predictions, and the columns that were read."""

    path: str | None
    sha256: str | None
    columns: dict[str, str | list[str]]


class SettingsPart(Struct):
    """The settings; `level` is that of the confidence intervals of the metrics."""

    bins: int | None
    eta: float
    margin: float
    resamples: int
    seed: int
    level: float


class ConformalResults(Struct, kw_only=True):
    """What `abstain intervals` and `abstain sets` write."""

    schema_version: str = "2"
    kind: str
    created_at: str
    abstain_version: str
    kernel: str
    input: InputPart
    rows: int
    clusters: int
    settings: SettingsPart
    by_nominal: list[NominalPart]
    metrics: dict[str, EstimatePart]
    warnings: list[WarningPart]


def conformal_results_json(result: CoverageResult, created_at: datetime) -> ConformalResults:
    """Return the results JSON of intervals or sets."""
    source = result.provenance
    return ConformalResults(
        kind=result.kind,
        **build_stamp(created_at),
        input=InputPart(source.get("path"), source.get("sha256"), source.get("columns", {})),
        rows=result.rows,
        clusters=result.clusters,
        settings=build_record(SettingsPart, result.settings),
        by_nominal=[_nominal_result(nominal) for nominal in result.by_nominal],
        metrics=_metrics(result.metrics),
        warnings=build_warnings(result.warnings),
    )


def conformal_schema() -> dict[str, Any]:
    """Return the JSON Schema of the results JSON of intervals or sets.

    >>> conformal_schema()["title"]
    'abstain conformal results JSON'
    """
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "abstain conformal results JSON",
        "description": "What `abstain intervals` and `abstain sets` write.",
        **msgspec.json.schema(ConformalResults, ref_template="#/$defs/{name}"),
    }
