"""The results JSON of one system or two: every number, its interval and its source.

Each record is a msgspec structure: its fields are the JSON keys, and `abstain schema metrics` publishes them as JSON
Schema. The function that builds a record follows it. Keys of the seed system (`aurc_full`, `mae_at_coverage`, `ci95`)
keep their names. msgspec writes a number that is undefined (NaN) or infinite as null, and its reason is in the record.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

import abstain
from abstain.errors import ArgumentError
from abstain.resampling import kernel

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from abstain.calibrators import Calibration
    from abstain.errors import ResultWarning
    from abstain.evaluation import ConfidenceResult, Difference, MetricTable, Result, Settings
    from abstain.inference import Estimate
    from abstain.metrics.curves import RiskCoverageCurve

Proportion = Annotated[float, Meta(ge=0.0, le=1.0)]
Interval = Annotated[tuple[float, float], Meta(description="lower and upper end")]
Record = TypeVar("Record", bound=Struct)

_CURVE_POINTS = 10_000
# The JSON names of the metrics of a confidence, by their keys.
_NAMES = {
    "cmax": "cmax",
    "aurc": "aurc_full",
    "augrc": "augrc_full",
    **{key: key for key in ("aurc_optimal", "augrc_optimal", "eaurc", "eaugrc", "aurc_achievable")},
}
_AT_COVERAGE = {"aurc_at_coverage": "aurc_at_c", "augrc_at_coverage": "augrc_at_c"}


def encode(document: Struct) -> bytes:
    """Return a document as indented JSON that ends in a newline."""
    return msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"


def build_record(kind: type[Record], source: object, **fields: Any) -> Record:
    """Return a record: the given fields, and the attributes of `source` that are named like the other fields."""
    names = [name for name in kind.__struct_fields__ if name not in fields]
    return kind(**{name: getattr(source, name) for name in names}, **fields)


def build_stamp(created_at: datetime) -> dict[str, str]:
    """Return when a document was created, by which version, and whether the compiled kernel or numpy was used."""
    return {
        "created_at": created_at.isoformat().replace("+00:00", "Z"),
        "abstain_version": abstain.__version__,
        "kernel": "compiled" if kernel().compiled else "numpy",
    }


def _finite_interval(interval: tuple[float, float] | None) -> tuple[float, float] | None:
    """Return an interval, or None if an end is infinite."""
    return interval if interval is not None and all(map(math.isfinite, interval)) else None


class WarningPart(Struct):
    """What the reader of the numbers must know."""

    code: str
    message: str


def build_warnings(warnings: Iterable[ResultWarning]) -> list[WarningPart]:
    """Return the records of warnings."""
    return [build_record(WarningPart, warning) for warning in warnings]


# Metrics that were requested by name.


class MetricPart(Struct):
    """One metric: its value, its interval, and why it is undefined or must not be trusted."""

    value: float | None
    ci95: Interval | None
    n: int
    clusters: int
    drop_rate: float
    reason: str


def _metric(estimate: Estimate) -> MetricPart:
    reason = "the value is infinite" if math.isinf(estimate.value) else estimate.reason
    return build_record(MetricPart, estimate, ci95=_finite_interval(estimate.interval), reason=reason)


def _metrics(estimates: Mapping[str, Estimate]) -> dict[str, MetricPart]:
    return {name: _metric(estimate) for name, estimate in estimates.items()}


class GroupPart(Struct):
    """The metrics of one group."""

    label: str
    values: dict[str, str | float | int | bool | None]
    items: int
    answered: int
    clusters: int
    note: str
    metrics: dict[str, MetricPart]


class GapPart(Struct):
    """The worst group of a metric against all other rows."""

    group: str
    coverage: Annotated[float | None, Meta(description="the coverage of both, at matched coverage")]
    worst: MetricPart
    rest: MetricPart
    gap: MetricPart


class DefinitionPart(Struct):
    """What a metric is."""

    direction: str
    unit: str
    needs: list[str]
    definition: str


class OutcomesPart(Struct):
    """What became of every item."""

    right: int
    wrong: int
    abstained: int
    failed: int
    unscored: int


class MetricsPart(Struct):
    """Metrics over all rows and by group."""

    outcomes: OutcomesPart
    definitions: dict[str, DefinitionPart]
    overall: dict[str, MetricPart]
    by: list[str]
    groups: list[GroupPart]
    gaps: dict[str, GapPart]


def _metric_table(table: MetricTable) -> MetricsPart:
    return MetricsPart(
        outcomes=build_record(OutcomesPart, table.outcomes),
        definitions={
            name: build_record(DefinitionPart, metric) for name, metric in table.specifications.items()
        },
        overall=_metrics(table.estimates),
        by=list(table.by),
        groups=[
            build_record(GroupPart, group, values=dict(group.values), metrics=_metrics(group.estimates))
            for group in table.groups
        ],
        gaps={
            name: build_record(
                GapPart, gap, worst=_metric(gap.worst), rest=_metric(gap.rest), gap=_metric(gap.gap)
            )
            for name, gap in table.gaps.items()
        },
    )


# Differences of two systems.


class _Verdict(Struct):
    """Which system is better, and the numbers behind that."""

    verdict: Annotated[
        str | None,
        Meta(description="left, right or inconclusive; null if there is no verdict, see no_verdict"),
    ]
    no_verdict: Annotated[str, Meta(description="why the verdict is null; empty otherwise")]
    basis: Annotated[str, Meta(description="matched coverage, all items, answered items, or own coverages")]
    coverage: Annotated[float | None, Meta(description="the coverage of both values, if they share one")]
    left: str
    right: str
    p: float | None
    p_holm: float | None
    interval: Interval | None
    method: str


def _verdict_fields(difference: Difference) -> dict[str, Any]:
    """Return the fields of a verdict that are not attributes of the difference."""
    estimate = difference.estimate
    return {
        "p_holm": difference.p_adjusted,
        "interval": _finite_interval(estimate.interval),
        "method": estimate.method,
    }


def _percentile_interval(estimate: Estimate) -> tuple[float, float] | None:
    """Return the bootstrap interval. Without resamples it is the point repeated, as in the seed system."""
    if not math.isfinite(estimate.value):
        return None
    return _finite_interval(estimate.percentile or (estimate.value, estimate.value))


class Delta(_Verdict):
    """A difference, right - left, with its percentile interval in addition to the one that decides the verdict."""

    delta: float | None
    ci95: Interval | None


def _delta(difference: Difference) -> Delta:
    value, ci95 = difference.estimate.value, _percentile_interval(difference.estimate)
    return build_record(Delta, difference, delta=value, ci95=ci95, **_verdict_fields(difference))


class MetricDelta(_Verdict):
    """The difference of a metric that was requested by name: the fields of a `MetricPart`, and the verdict."""

    value: float | None
    ci95: Interval | None
    n: int
    clusters: int
    drop_rate: float
    reason: str


def _metric_delta(difference: Difference) -> MetricDelta:
    metric = msgspec.structs.asdict(_metric(difference.estimate))
    metric["ci95"] = _percentile_interval(difference.estimate)
    return build_record(MetricDelta, difference, **metric, **_verdict_fields(difference))


class PairedMetricsPart(Struct):
    """Metrics of both sides of a comparison, and their differences, right - left."""

    input_0: MetricsPart
    input_1: MetricsPart
    deltas: dict[str, MetricDelta]
    group_deltas: dict[str, dict[str, MetricDelta]]


def _paired_metrics(result: Result) -> PairedMetricsPart | UnsetType:
    left, right = result.left.metrics, result.right.metrics
    if left is None or right is None:
        return UNSET
    differences = {
        (each.confidence, each.metric, each.group): each for each in result.differences if not each.matched
    }
    deltas = {
        label: {
            name: _metric_delta(differences[key._replace(group=label)])
            for name, key in left.keys_of.items()
            if key._replace(group=label) in differences
        }
        for label in ("", *(group.label for group in left.groups))
    }
    return PairedMetricsPart(
        input_0=_metric_table(left),
        input_1=_metric_table(right),
        deltas=deltas.pop(""),
        group_deltas={label: metrics for label, metrics in deltas.items() if metrics},
    )


class DifferencePart(_Verdict):
    """One difference, right - left, of one metric, confidence and group; `matched` if it is at matched coverage."""

    metric: str
    confidence: str
    group: str
    matched: bool
    left_value: float | None
    right_value: float | None
    left_coverage: float | None
    right_coverage: float | None
    value: float | None
    winner: str | None
    reason: str
    sentence: str


class HeadlinePart(Struct):
    """The conclusion of a comparison, by the first requested metric that has a direction."""

    metric: str
    basis: str
    coverage: float | None
    winner: str | None
    difference: float | None
    low: float | None
    high: float | None
    sentence: str


class NoComparison(Struct, kw_only=True):
    """One input: nothing is compared."""

    enabled: bool = False
    intersection_only: bool = False
    deltas: None = None


class ComparisonPart(Struct):
    """Two inputs: the differences, and which participants they rest on."""

    enabled: bool
    intersection_only: bool
    unpaired: bool
    headline: HeadlinePart | None
    deltas: dict[str, dict[str, Delta]]
    differences: list[DifferencePart]
    participants_left_only: int
    participants_right_only: int
    participants_overlap_total: int
    participants_overlap_included: int
    participants_failed_left: int
    participants_failed_right: int


def _comparison(result: Result) -> ComparisonPart:
    left, right, matching = result.left, result.right, result.matching
    assert matching is not None
    return ComparisonPart(
        enabled=True,
        intersection_only=matching.intersection_only,
        unpaired=not matching.paired,
        headline=None if result.headline is None else build_record(HeadlinePart, result.headline),
        deltas={
            confidence: {
                name: _delta(deltas.differences[key])
                for key, name in _NAMES.items()
                if key in deltas.differences
            }
            for confidence, deltas in result.deltas.items()
            if confidence in left and confidence in right
        },
        differences=[
            build_record(
                DifferencePart,
                each,
                value=each.estimate.value,
                reason=each.estimate.reason,
                sentence=sentence,
                **_verdict_fields(each),
            )
            for each, sentence in zip(result.differences, result.sentences, strict=True)
        ],
        participants_left_only=matching.clusters_unmatched[left.name],
        participants_right_only=matching.clusters_unmatched[right.name],
        participants_overlap_total=matching.clusters_shared,
        participants_overlap_included=matching.clusters if matching.paired else 0,
        participants_failed_left=matching.clusters_failed[left.name],
        participants_failed_right=matching.clusters_failed[right.name],
    )


# The selective metrics of one confidence.


class Interpretation(Struct):
    """Possible improvement, in percent."""

    aurc_gap_pct: float | None
    augrc_gap_pct: float | None
    achievable_gain_pct: float | None


class AreaAtCoverage(Struct):
    """An area up to a coverage."""

    requested: Proportion
    used: Proportion
    value: float | None


class RiskAtCoverage(Struct):
    """The selective risk at the first operating point that reaches a coverage."""

    requested: Proportion
    achieved: Proportion
    value: float


def _risk(variant: ConfidenceResult, coverage: float, risk: Estimate) -> RiskAtCoverage | None:
    index = variant.curve.first_reaching(coverage)
    if index is None:
        return None
    achieved = float(variant.curve.coverage[index])
    return RiskAtCoverage(requested=coverage, achieved=achieved, value=risk.value)


class IntervalsRecord(Struct):
    """Intervals of the metrics; those of the bootstrap are percentile intervals at the level that it names."""

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


class OwnIntervals(IntervalsRecord):
    """The intervals that summaries, reports and verdicts go by, and how they were made.

    `methods` names the metrics whose interval was made in another way than most.
    """

    method: str
    level: Proportion
    methods: dict[str, str]


def _intervals(areas: dict[str, Estimate], risks: dict[str, Estimate], settings: Settings) -> OwnIntervals:
    estimates = areas | _with_prefix(risks)
    methods = {name: each.method for name, each in estimates.items() if each.interval is not None}
    usual = Counter(methods.values()).most_common(1)[0][0] if methods else "none"
    return OwnIntervals(
        **{name: _finite_interval(estimate.interval) for name, estimate in areas.items()},
        mae_at_coverage={name: _finite_interval(risk.interval) for name, risk in risks.items()},
        method=usual,
        level=settings.level,
        methods={name: method for name, method in methods.items() if method != usual},
    )


def _with_prefix(risks: Mapping[str, Estimate]) -> dict[str, Estimate]:
    return {f"mae_at_coverage.{name}": risk for name, risk in risks.items()}


class DropRate(Struct):
    """The proportion of resamples in which a metric was undefined."""

    mae_at_coverage: dict[str, Proportion]


class Bootstrap(Struct, kw_only=True, omit_defaults=True):
    """The percentile intervals of the cluster bootstrap; empty when no resamples were drawn."""

    seed: int | UnsetType = UNSET
    n_resamples: int | UnsetType = UNSET
    level: float | UnsetType = UNSET
    n_clusters: int | UnsetType = UNSET
    ci95: IntervalsRecord | UnsetType = UNSET
    drop_rate: DropRate | UnsetType = UNSET


def _bootstrap(areas: Mapping[str, Estimate], risks: Mapping[str, Estimate], settings: Settings) -> Bootstrap:
    if not settings.resamples:
        return Bootstrap()
    return Bootstrap(
        seed=settings.seed,
        n_resamples=settings.resamples,
        level=settings.level,
        n_clusters=areas["cmax"].clusters,
        ci95=IntervalsRecord(
            **{name: estimate.percentile for name, estimate in areas.items()},
            mae_at_coverage={name: risk.percentile for name, risk in risks.items()},
        ),
        drop_rate=DropRate(mae_at_coverage={name: risk.drop_rate for name, risk in risks.items()}),
    )


class Curve(Struct):
    """The operating points, most confident first; an even choice of them if there are more than `points` states."""

    points: int
    coverage: list[float]
    selective_risk: list[float]
    generalized_risk: list[float]
    threshold: list[float]


def _curve(curve: RiskCoverageCurve) -> Curve:
    count = len(curve)
    # A long curve keeps both ends and an even choice of the points between them, which looks the same.
    even = [count * number // _CURVE_POINTS for number in range(_CURVE_POINTS)] + [count - 1]
    kept = even if count > _CURVE_POINTS else slice(None)
    columns = ("coverage", "selective_risk", "generalized_risk", "threshold")
    return Curve(points=count, **{name: getattr(curve, name)[kept].tolist() for name in columns})


class Ties(Struct):
    """The range of the AURC over all orders of tied items."""

    tied_proportion: Proportion
    aurc_best: float | None
    aurc_worst: float | None


class VariantPart(Struct):
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
    intervals: OwnIntervals
    bootstrap: Bootstrap
    curve: Curve
    tie_sensitivity: Ties
    reasons: dict[str, str]
    warnings: list[WarningPart]


def _variant(variant: ConfidenceResult, settings: Settings) -> VariantPart:
    estimates, end = variant.estimates, settings.area_coverage
    areas = {name: estimates[key] for key, name in _NAMES.items()}
    areas |= {name: estimates[f"{key}@{end:g}"] for key, name in _AT_COVERAGE.items()}
    grid = {f"{coverage:.2f}": coverage for coverage in settings.coverage_grid}
    risks = {name: estimates[f"risk_at_coverage@{coverage:g}"] for name, coverage in grid.items()}
    # Without any item no coverage is used.
    used = min(end, variant.cmax.value) if variant.cmax.defined else 0.0
    reasons = {name: estimate.reason for name, estimate in (areas | _with_prefix(risks)).items()}
    values: dict[str, Any] = {name: areas[name].value for name in _NAMES.values()}
    for name in _AT_COVERAGE.values():
        values[name] = AreaAtCoverage(requested=end, used=used, value=areas[name].value)
    return VariantPart(
        **values,
        interpretation=build_record(Interpretation, variant),
        mae_at_coverage={name: _risk(variant, grid[name], risk) for name, risk in risks.items()},
        intervals=_intervals(areas, risks, settings),
        bootstrap=_bootstrap(areas, risks, settings),
        curve=_curve(variant.curve),
        tie_sensitivity=Ties(
            tied_proportion=variant.ties.tied_proportion,
            aurc_best=variant.ties.best,
            aurc_worst=variant.ties.worst,
        ),
        reasons={name: reason for name, reason in reasons.items() if reason},
        warnings=build_warnings(variant.warnings),
    )


class VariantPair(Struct):
    """The metrics of one confidence on both sides of a comparison."""

    input_0: VariantPart
    input_1: VariantPart


# The document.


class Input(Struct):
    """The source of the items."""

    path: str | None
    run_id: str | int | None
    git_commit: str | None
    mode: str | None
    sha256: str | None


class CalibrationInput(Struct):
    """A calibrator that a confidence rests on, and the run that it was fitted on."""

    method: str
    features: list[str]
    path: str | None
    run_id: str | int | None
    mode: str | None
    sha256: str | None


def _calibration(used: Calibration) -> CalibrationInput:
    method, features = used.calibrator.method, list(used.feature_names)
    return build_record(CalibrationInput, used.source, method=method, features=features)


class PopulationPart(Struct):
    """The evaluated items and participants, which are the clusters."""

    participants_total: int
    participants_included: int
    participants_failed: int
    items_total: int
    items_answered: int
    items_abstained: int
    items_failed: int
    items_unscored: int


class LossPart(Struct):
    """What a wrong answer costs."""

    name: str
    definition: str
    raw_multiplier: float
    rule: Annotated[str, Meta(description="why this loss was taken")]


class Head(Struct, kw_only=True):
    """The fields of every results JSON."""

    schema_version: str = "1"
    created_at: str
    abstain_version: str
    kernel: str
    convention: str
    inputs: list[Input]
    calibrations: list[CalibrationInput]
    population: PopulationPart
    loss: LossPart | None
    warnings: list[WarningPart]


def _head(result: Result, created_at: datetime) -> dict[str, Any]:
    population = result.population
    return {
        **build_stamp(created_at),
        "convention": result.settings.convention,
        "inputs": [
            Input(**{name: system.provenance.get(name) for name in Input.__struct_fields__})
            for system in result.systems.values()
        ],
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
        "loss": None if result.loss is None else build_record(LossPart, result.loss),
        "warnings": build_warnings(result.warnings),
    }


class SingleResults(Head, kw_only=True):
    """The results JSON of one input."""

    confidence_variants: dict[str, VariantPart]
    comparison: NoComparison
    metrics: MetricsPart | UnsetType = UNSET


class PairedResults(Head, kw_only=True):
    """The results JSON of two inputs."""

    confidence_variants: dict[str, VariantPair]
    comparison: ComparisonPart
    metrics: PairedMetricsPart | UnsetType = UNSET


def results_json(result: Result, created_at: datetime) -> SingleResults | PairedResults:
    """Return the results JSON of one system or two."""
    if len(result.systems) > 2:
        raise ArgumentError(
            f"the results JSON holds one system or two, and there are {len(result.systems)}; "
            "write their tables as JSON (--format json)"
        )
    settings, head = result.settings, _head(result, created_at)
    if len(result.systems) == 1:
        system = result.only
        return SingleResults(
            **head,
            confidence_variants={name: _variant(variant, settings) for name, variant in system.items()},
            comparison=NoComparison(),
            metrics=UNSET if system.metrics is None else _metric_table(system.metrics),
        )
    left, right = result.left, result.right
    return PairedResults(
        **head,
        confidence_variants={
            name: VariantPair(_variant(left[name], settings), _variant(right[name], settings))
            for name in result.deltas
            if name in left and name in right
        },
        comparison=_comparison(result),
        metrics=_paired_metrics(result),
    )


def metrics_schema() -> dict[str, Any]:
    """Return the JSON Schema of the results JSON.

    >>> metrics_schema()["title"]
    'abstain results JSON'
    """
    choices, definitions = msgspec.json.schema_components(
        (SingleResults, PairedResults), ref_template="#/$defs/{name}"
    )
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "abstain results JSON",
        "description": "What `abstain evaluate` writes for one input or for two.",
        "anyOf": list(choices),
        "$defs": dict(definitions),
    }
