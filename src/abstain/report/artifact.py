"""The metrics artifact: one JSON document with every number, its interval, and where it came from.

The structures below are its schema (version "1"); `abstain schema metrics` publishes them as JSON Schema. An
undefined number is null, never NaN, and its reason stands beside it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

import abstain
from abstain.errors import ArgumentError
from abstain.report.metric_parts import (
    Delta,
    Interval,
    MetricsPart,
    PairedMetricsPart,
    delta,
    finite,
    metrics_part,
    paired_metrics_part,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from abstain.calibrators import Calibration
    from abstain.errors import ResultWarning
    from abstain.evaluation import ConfidenceResult, Deltas, Result, Settings, SystemResult
    from abstain.inference import Estimate
    from abstain.losses import ItemLoss
    from abstain.metrics.curves import RiskCoverageCurve

__all__ = ["artifact", "encode", "metrics_schema"]

Share = Annotated[float, Meta(ge=0.0, le=1.0)]

_CURVE_POINTS = 10_000
_FURTHER = ("aurc_optimal", "augrc_optimal", "eaurc", "eaugrc", "aurc_achievable")
# What the artifact calls a metric: the seed's names for those that it has.
_NAMES = {"cmax": "cmax", "aurc": "aurc_full", "augrc": "augrc_full"} | {name: name for name in _FURTHER}
_AT_COVERAGE = {"aurc_at_coverage": "aurc_at_c", "augrc_at_coverage": "augrc_at_c"}


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
    rule: Annotated[str, Meta(description="why this loss was taken")]


class Interpretation(Struct, kw_only=True):
    """Room for improvement, in percent."""

    aurc_gap_pct: float | None
    augrc_gap_pct: float | None
    achievable_gain_pct: float | None


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
    """Percentile intervals of the metrics, at the level that the bootstrap names."""

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
    """The share of resamples in which a metric was undefined."""

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
    aurc_best: float | None
    aurc_worst: float | None


class WarningPart(Struct, kw_only=True):
    """What the reader of the numbers must know."""

    code: str
    message: str


class VariantPart(Struct, kw_only=True):
    """All metrics of one confidence."""

    cmax: float | None
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
    warnings: list[WarningPart]


class VariantPair(Struct, kw_only=True):
    """The metrics of one confidence on both sides of a comparison."""

    input_0: VariantPart
    input_1: VariantPart


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
    loss: LossPart | None
    warnings: list[WarningPart]


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


def artifact(result: Result, created_at: datetime) -> SingleArtifact | PairedArtifact:
    """Return the artifact of one system or two."""
    if len(result.systems) > 2:
        raise ArgumentError(
            f"the artifact holds one system or two, and there are {len(result.systems)}; "
            "write their tables as JSON (--format json)"
        )
    return _single(result, created_at) if len(result.systems) == 1 else _paired(result, created_at)


def _single(result: Result, created_at: datetime) -> SingleArtifact:
    system = result.only
    return SingleArtifact(
        **_head(result, created_at),
        confidence_variants={name: _variant(variant, system) for name, variant in system.items()},
        comparison=NoComparison(),
        metrics=UNSET if system.metrics is None else metrics_part(system.metrics),
    )


def _paired(result: Result, created_at: datetime) -> PairedArtifact:
    left, right, matching = result.left, result.right, result.matching
    assert matching is not None
    deltas = {name: found for name, found in result.deltas.items() if name in left and name in right}
    return PairedArtifact(
        **_head(result, created_at),
        confidence_variants={
            name: VariantPair(input_0=_variant(left[name], left), input_1=_variant(right[name], right))
            for name in deltas
        },
        comparison=ComparisonPart(
            enabled=True,
            intersection_only=matching.intersection_only,
            deltas={name: _deltas(found) for name, found in deltas.items()},
            participants_left_only=matching.clusters_alone[left.name],
            participants_right_only=matching.clusters_alone[right.name],
            participants_overlap_total=matching.clusters_shared,
            participants_overlap_included=matching.clusters,
            participants_failed_left=matching.clusters_failed[left.name],
            participants_failed_right=matching.clusters_failed[right.name],
        ),
        metrics=paired_metrics_part(result) or UNSET,
    )


def encode(document: Struct) -> bytes:
    """Return an artifact as JSON that people can read, ending in a newline."""
    return msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"


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


def _head(result: Result, created_at: datetime) -> dict[str, Any]:
    population = result.population
    return {
        "created_at": created_at.isoformat().replace("+00:00", "Z"),
        "abstain_version": abstain.__version__,
        "convention": result.settings.convention,
        "inputs": [_input(system.provenance) for system in result.systems.values()],
        "calibrations": [_calibration(used) for used in result.first.calibrations],
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
        "loss": None if result.loss is None else _loss(result.loss),
        "warnings": warning_parts(result.warnings),
    }


def _loss(loss: ItemLoss) -> LossPart:
    return LossPart(
        name=loss.name, definition=loss.definition, raw_multiplier=loss.raw_multiplier, rule=loss.rule
    )


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


def _variant(variant: ConfidenceResult, system: SystemResult) -> VariantPart:
    settings, found = system.settings, _named(variant, system.settings)
    # Where there is no item to judge, no coverage is used.
    used = min(settings.area_coverage, variant.cmax.value) if variant.cmax.defined else 0.0
    parts: dict[str, Any] = {name: finite(found[name].value) for name in _NAMES.values()}
    parts |= {
        name: AreaAtCoverage(requested=settings.area_coverage, used=used, value=finite(found[name].value))
        for name in _AT_COVERAGE.values()
    }
    return VariantPart(
        **parts,
        interpretation=Interpretation(
            aurc_gap_pct=finite(variant.aurc_gap_pct),
            augrc_gap_pct=finite(variant.augrc_gap_pct),
            achievable_gain_pct=finite(variant.achievable_gain_pct),
        ),
        mae_at_coverage={_key(coverage): _risk(variant, coverage) for coverage in settings.coverage_grid},
        bootstrap=_bootstrap(variant, settings),
        curve=_curve(variant.curve),
        tie_sensitivity=Ties(
            tied_share=variant.ties.tied_share,
            aurc_best=finite(variant.ties.best),
            aurc_worst=finite(variant.ties.worst),
        ),
        reasons=_reasons(variant, settings),
        warnings=warning_parts(variant.warnings),
    )


def _named(variant: ConfidenceResult, settings: Settings) -> dict[str, Estimate]:
    """The estimates that the artifact holds, by its names for them."""
    found = {name: variant.estimates[key] for key, name in _NAMES.items()}
    return found | {
        name: variant.estimates[f"{key}@{settings.area_coverage:g}"] for key, name in _AT_COVERAGE.items()
    }


def _risks(variant: ConfidenceResult, settings: Settings) -> dict[str, Estimate]:
    return {_key(coverage): _risk_estimate(variant, coverage) for coverage in settings.coverage_grid}


def _risk_estimate(variant: ConfidenceResult, coverage: float) -> Estimate:
    return variant.estimates[f"risk_at_coverage@{coverage:g}"]


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


def _reasons(variant: ConfidenceResult, settings: Settings) -> dict[str, str]:
    found = _named(variant, settings)
    found |= {f"mae_at_coverage.{key}": risk for key, risk in _risks(variant, settings).items()}
    return {name: estimate.reason for name, estimate in found.items() if estimate.reason}


def _risk(variant: ConfidenceResult, coverage: float) -> RiskAtCoverage | None:
    index = variant.curve.first_reaching(coverage)
    if index is None:
        return None
    achieved = float(variant.curve.coverage[index])
    value = _risk_estimate(variant, coverage).value
    return RiskAtCoverage(requested=coverage, achieved=achieved, value=value)


def _bootstrap(variant: ConfidenceResult, settings: Settings) -> Bootstrap:
    if not settings.resamples:
        return Bootstrap()
    risks = _risks(variant, settings)
    return Bootstrap(
        seed=settings.seed,
        n_resamples=settings.resamples,
        level=settings.level,
        n_clusters=variant.cmax.clusters,
        ci95=Intervals(
            **{name: estimate.percentile for name, estimate in _named(variant, settings).items()},
            mae_at_coverage={key: risk.percentile for key, risk in risks.items()},
        ),
        drop_rate=DropRate(mae_at_coverage={key: risk.drop_rate for key, risk in risks.items()}),
    )


def _deltas(deltas: Deltas) -> dict[str, Delta]:
    return {name: delta(deltas.differences[key]) for key, name in _NAMES.items() if key in deltas.differences}


def warning_parts(warnings: Iterable[ResultWarning]) -> list[WarningPart]:
    """Return warnings as parts of an artifact."""
    return [WarningPart(code=warning.code, message=warning.message) for warning in warnings]


def _key(coverage: float) -> str:
    return f"{coverage:.2f}"
