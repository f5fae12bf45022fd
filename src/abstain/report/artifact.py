"""The metrics artifact: one JSON document with every number, its interval, and where it came from.

The structures below are its schema (version "1"); `abstain schema metrics` publishes them as JSON Schema. An
undefined number is null, never NaN, and its reason stands beside it.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

import abstain
from abstain.report.metric_parts import (
    MetricsPart,
    PairedMetricsPart,
    metrics_part,
    paired_metrics_part,
)

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from abstain.calibrators import Calibration
    from abstain.evaluation import Caution, Comparison, Evaluation, Population, VariantDelta, VariantResult
    from abstain.inference import Estimate
    from abstain.metrics.selective import RiskCoverageCurve

__all__ = ["comparison_artifact", "encode", "evaluation_artifact", "metrics_schema"]

Interval = Annotated[tuple[float, float], Meta(description="lower and upper end")]
Share = Annotated[float, Meta(ge=0.0, le=1.0)]

_CURVE_POINTS = 10_000
_FURTHER = ("aurc_optimal", "augrc_optimal", "eaurc", "eaugrc", "aurc_achievable")
_CI_NAMES = {
    "cmax": "cmax",
    "aurc": "aurc_full",
    "augrc": "augrc_full",
    "aurc_at_coverage": "aurc_at_c",
    "augrc_at_coverage": "augrc_at_c",
} | {name: name for name in _FURTHER}
_DELTA_NAMES = {"aurc": "aurc_full", "augrc": "augrc_full", "cmax": "cmax"} | {
    name: name for name in _FURTHER
}


class Input(Struct, kw_only=True):
    """Where the items came from."""

    path: str | None
    run_id: str | int | None
    git_commit: str | None
    mode: str | None
    sha256: str | None


class CalibrationInput(Struct, kw_only=True):
    """A calibrator that a confidence rests on, and the run that it was fitted on."""

    method: str
    features: list[str]
    path: str | None
    run_id: str | int | None
    mode: str | None
    sha256: str | None


class PopulationPart(Struct, kw_only=True):
    """Who was judged; participants are the clusters."""

    participants_total: int
    participants_included: int
    participants_failed: int
    items_total: int
    items_answered: int
    items_abstained: int
    items_failed: int
    items_unscored: int


class LossPart(Struct, kw_only=True):
    """What a wrong answer costs."""

    name: str
    definition: str
    raw_multiplier: float


class Interpretation(Struct, kw_only=True):
    """Room for improvement, in percent."""

    aurc_gap_pct: float
    augrc_gap_pct: float
    achievable_gain_pct: float


class AreaAtCoverage(Struct, kw_only=True):
    """An area up to a coverage."""

    requested: Share
    used: Share
    value: float | None


class RiskAtCoverage(Struct, kw_only=True):
    """The selective risk at the first working point that reaches a coverage."""

    requested: Share
    achieved: Share
    value: float


class Intervals(Struct, kw_only=True):
    """Percentile intervals of the figures, at the level that the bootstrap names."""

    cmax: Interval | None
    aurc_full: Interval | None
    augrc_full: Interval | None
    aurc_at_c: Interval | None
    augrc_at_c: Interval | None
    aurc_optimal: Interval | None
    augrc_optimal: Interval | None
    eaurc: Interval | None
    eaugrc: Interval | None
    aurc_achievable: Interval | None
    mae_at_coverage: dict[str, Interval | None]


class DropRate(Struct, kw_only=True):
    """The share of resamples in which a figure was undefined."""

    mae_at_coverage: dict[str, Share]


class Bootstrap(Struct, kw_only=True, omit_defaults=True):
    """How the intervals were made; empty when none were asked for."""

    seed: int | UnsetType = UNSET
    n_resamples: int | UnsetType = UNSET
    level: float | UnsetType = UNSET
    n_clusters: int | UnsetType = UNSET
    ci95: Intervals | UnsetType = UNSET
    drop_rate: DropRate | UnsetType = UNSET


class Curve(Struct, kw_only=True):
    """The working points, most confident first; of very many an even choice, which `points` tells from all."""

    points: int
    coverage: list[float]
    selective_risk: list[float]
    generalized_risk: list[float]
    threshold: list[float]


class Ties(Struct, kw_only=True):
    """How far the order of tied items alone could move the AURC."""

    tied_share: Share
    aurc_best: float
    aurc_worst: float


class CautionPart(Struct, kw_only=True):
    """What the reader of the numbers must know."""

    code: str
    message: str


class VariantPart(Struct, kw_only=True):
    """All figures of one confidence."""

    cmax: float
    aurc_full: float | None
    augrc_full: float | None
    aurc_optimal: float | None
    augrc_optimal: float | None
    eaurc: float | None
    eaugrc: float | None
    aurc_achievable: float | None
    interpretation: Interpretation
    aurc_at_c: AreaAtCoverage
    augrc_at_c: AreaAtCoverage
    mae_at_coverage: dict[str, RiskAtCoverage | None]
    bootstrap: Bootstrap
    curve: Curve
    tie_sensitivity: Ties
    reasons: dict[str, str]
    warnings: list[CautionPart]


class VariantPair(Struct, kw_only=True):
    """The figures of one confidence on both sides of a comparison."""

    input_0: VariantPart
    input_1: VariantPart


class Delta(Struct, kw_only=True):
    """A difference, right - left."""

    delta: float | None
    ci95: Interval | None


class NoComparison(Struct, kw_only=True):
    """One input: nothing is compared."""

    enabled: bool = False
    intersection_only: bool = False
    deltas: None = None


class ComparisonPart(Struct, kw_only=True):
    """Two inputs: the differences, and which participants they rest on."""

    enabled: bool
    intersection_only: bool
    deltas: dict[str, dict[str, Delta]]
    participants_left_only: int
    participants_right_only: int
    participants_overlap_total: int
    participants_overlap_included: int
    participants_failed_left: int
    participants_failed_right: int


class Head(Struct, kw_only=True):
    """What both kinds of artifact share."""

    schema_version: str = "1"
    created_at: str
    abstain_version: str
    convention: str
    inputs: list[Input]
    calibrations: list[CalibrationInput]
    population: PopulationPart
    loss: LossPart
    warnings: list[CautionPart]


class SingleArtifact(Head, kw_only=True):
    """The artifact of one input."""

    confidence_variants: dict[str, VariantPart]
    comparison: NoComparison
    metrics: MetricsPart | UnsetType = UNSET


class PairedArtifact(Head, kw_only=True):
    """The artifact of two inputs."""

    confidence_variants: dict[str, VariantPair]
    comparison: ComparisonPart
    metrics: PairedMetricsPart | UnsetType = UNSET


def evaluation_artifact(evaluation: Evaluation, created_at: datetime) -> SingleArtifact:
    """Return the artifact of one evaluation."""
    return SingleArtifact(
        **_head([evaluation], evaluation.population, evaluation.cautions, created_at),
        confidence_variants={name: _variant(result, evaluation) for name, result in evaluation.items()},
        comparison=NoComparison(),
        metrics=UNSET if evaluation.metrics is None else metrics_part(evaluation.metrics),
    )


def comparison_artifact(comparison: Comparison, created_at: datetime) -> PairedArtifact:
    """Return the artifact of a comparison."""
    left, right, overlap = comparison.left, comparison.right, comparison.overlap
    return PairedArtifact(
        **_head([left, right], comparison.population, comparison.cautions, created_at),
        confidence_variants={
            name: VariantPair(input_0=_variant(left[name], left), input_1=_variant(right[name], right))
            for name in comparison.deltas
        },
        comparison=ComparisonPart(
            enabled=True,
            intersection_only=overlap.intersection_only,
            deltas={name: _deltas(delta) for name, delta in comparison.deltas.items()},
            participants_left_only=overlap.left_only,
            participants_right_only=overlap.right_only,
            participants_overlap_total=overlap.total,
            participants_overlap_included=overlap.included,
            participants_failed_left=overlap.failed_left,
            participants_failed_right=overlap.failed_right,
        ),
        metrics=paired_metrics_part(comparison) or UNSET,
    )


def encode(artifact: Struct) -> bytes:
    """Return an artifact as JSON that people can read, ending in a newline."""
    return msgspec.json.format(msgspec.json.encode(artifact), indent=2) + b"\n"


def metrics_schema() -> dict[str, Any]:
    """Return the JSON Schema of the metrics artifact.

    >>> metrics_schema()["title"]
    'abstain metrics artifact'
    """
    choices, definitions = msgspec.json.schema_components(
        (SingleArtifact, PairedArtifact), ref_template="#/$defs/{name}"
    )
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "abstain metrics artifact",
        "description": "What `abstain evaluate` writes for one input or for two.",
        "anyOf": list(choices),
        "$defs": dict(definitions),
    }


def _head(
    evaluations: list[Evaluation], population: Population, cautions: tuple[Caution, ...], created_at: datetime
) -> dict[str, Any]:
    loss = evaluations[0].loss
    return {
        "created_at": created_at.isoformat().replace("+00:00", "Z"),
        "abstain_version": abstain.__version__,
        "convention": evaluations[0].settings.convention,
        "inputs": [_input(evaluation.provenance) for evaluation in evaluations],
        "calibrations": [_calibration(used) for used in evaluations[0].calibrations],
        "population": PopulationPart(
            participants_total=population.total,
            participants_included=population.included,
            participants_failed=population.failed,
            items_total=population.items,
            items_answered=population.answered,
            items_abstained=population.abstained,
            items_failed=population.items_failed,
            items_unscored=population.items_unscored,
        ),
        "loss": LossPart(name=loss.name, definition=loss.definition, raw_multiplier=loss.raw_multiplier),
        "warnings": _cautions(cautions),
    }


def _input(provenance: Mapping[str, Any]) -> Input:
    return Input(
        **{name: provenance.get(name) for name in ("path", "run_id", "git_commit", "mode", "sha256")}
    )


def _calibration(used: Calibration) -> CalibrationInput:
    source = used.source
    return CalibrationInput(
        method=used.calibrator.method,
        features=list(used.feature_names),
        path=source.path,
        run_id=source.run_id,
        mode=source.mode,
        sha256=source.sha256,
    )


def _variant(result: VariantResult, evaluation: Evaluation) -> VariantPart:
    settings = evaluation.settings
    used = min(settings.area_coverage, result.cmax.value)

    def area(estimate: Estimate) -> AreaAtCoverage:
        return AreaAtCoverage(requested=settings.area_coverage, used=used, value=_number(estimate))

    return VariantPart(
        cmax=result.cmax.value,
        aurc_full=_number(result.aurc),
        augrc_full=_number(result.augrc),
        aurc_optimal=_number(result.aurc_optimal),
        augrc_optimal=_number(result.augrc_optimal),
        eaurc=_number(result.eaurc),
        eaugrc=_number(result.eaugrc),
        aurc_achievable=_number(result.aurc_achievable),
        interpretation=Interpretation(
            aurc_gap_pct=result.aurc_gap_pct,
            augrc_gap_pct=result.augrc_gap_pct,
            achievable_gain_pct=result.achievable_gain_pct,
        ),
        aurc_at_c=area(result.aurc_at_coverage),
        augrc_at_c=area(result.augrc_at_coverage),
        mae_at_coverage={_key(coverage): _risk(result, coverage) for coverage in settings.coverage_grid},
        bootstrap=_bootstrap(result, evaluation),
        curve=_curve(result.curve),
        tie_sensitivity=Ties(
            tied_share=result.ties.tied_share, aurc_best=result.ties.best, aurc_worst=result.ties.worst
        ),
        reasons=_reasons(result),
        warnings=_cautions(result.cautions),
    )


def _curve(curve: RiskCoverageCurve) -> Curve:
    count = len(curve)
    # Every point of a small curve; of a large one both ends and an even choice between them, which looks the same.
    kept = [count * place // _CURVE_POINTS for place in range(_CURVE_POINTS)] + [count - 1]
    chosen = kept if count > _CURVE_POINTS else slice(None)
    return Curve(
        points=count,
        coverage=curve.coverage[chosen].tolist(),
        selective_risk=curve.selective_risk[chosen].tolist(),
        generalized_risk=curve.generalized_risk[chosen].tolist(),
        threshold=curve.threshold[chosen].tolist(),
    )


def _reasons(result: VariantResult) -> dict[str, str]:
    figures = {name: getattr(result, field) for field, name in _CI_NAMES.items()}
    figures |= {
        f"mae_at_coverage.{_key(coverage)}": risk for coverage, risk in result.risk_at_coverage.items()
    }
    return {name: estimate.reason for name, estimate in figures.items() if estimate.reason}


def _risk(result: VariantResult, coverage: float) -> RiskAtCoverage | None:
    index = result.curve.first_reaching(coverage)
    if index is None:
        return None
    achieved = float(result.curve.coverage[index])
    return RiskAtCoverage(
        requested=coverage, achieved=achieved, value=result.risk_at_coverage[coverage].value
    )


def _bootstrap(result: VariantResult, evaluation: Evaluation) -> Bootstrap:
    settings, risks = evaluation.settings, result.risk_at_coverage
    if not settings.resamples:
        return Bootstrap()
    return Bootstrap(
        seed=settings.seed,
        n_resamples=settings.resamples,
        level=settings.level,
        n_clusters=result.cmax.clusters,
        ci95=Intervals(
            **{name: getattr(result, field).interval for field, name in _CI_NAMES.items()},
            mae_at_coverage={_key(coverage): risk.interval for coverage, risk in risks.items()},
        ),
        drop_rate=DropRate(
            mae_at_coverage={_key(coverage): risk.drop_rate for coverage, risk in risks.items()}
        ),
    )


def _deltas(delta: VariantDelta) -> dict[str, Delta]:
    figures = {name: getattr(delta, field) for field, name in _DELTA_NAMES.items()}
    return {name: Delta(delta=_number(value), ci95=value.interval) for name, value in figures.items()}


def _cautions(cautions: tuple[Caution, ...]) -> list[CautionPart]:
    return [CautionPart(code=caution.code, message=caution.message) for caution in cautions]


def _key(coverage: float) -> str:
    return f"{coverage:.2f}"


def _number(estimate: Estimate) -> float | None:
    return None if math.isnan(estimate.value) else estimate.value
