"""The metrics artifact: one JSON document with every number, its interval, and where it came from.

What it holds is in `_schemas`, and `abstain schema metrics` publishes it as JSON Schema; here it is filled.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from msgspec import UNSET, Struct
from msgspec.structs import asdict

import abstain
from abstain.errors import ArgumentError
from abstain.report import _schemas as schema
from abstain.resampling import kernel

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from abstain.calibrators import Calibration
    from abstain.errors import ResultWarning
    from abstain.evaluation import ConfidenceResult, Difference, MetricTable, Result, Settings, SystemResult
    from abstain.inference import Estimate
    from abstain.metrics.curves import RiskCoverageCurve

__all__ = ["artifact", "encode", "metrics_schema"]

Part = TypeVar("Part", bound=Struct)

_CURVE_POINTS = 10_000
_FURTHER = ("aurc_optimal", "augrc_optimal", "eaurc", "eaugrc", "aurc_achievable")
# What the artifact calls a metric: the seed's names for those that it has.
_NAMES = {"cmax": "cmax", "aurc": "aurc_full", "augrc": "augrc_full"} | {name: name for name in _FURTHER}
_AT_COVERAGE = {"aurc_at_coverage": "aurc_at_c", "augrc_at_coverage": "augrc_at_c"}


def artifact(result: Result, created_at: datetime) -> schema.SingleArtifact | schema.PairedArtifact:
    """Return the artifact of one system or two."""
    if len(result.systems) > 2:
        raise ArgumentError(
            f"the artifact holds one system or two, and there are {len(result.systems)}; "
            "write their tables as JSON (--format json)"
        )
    return _single(result, created_at) if len(result.systems) == 1 else _paired(result, created_at)


def encode(document: Struct) -> bytes:
    """Return an artifact as JSON that people can read, ending in a newline."""
    return msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"


def metrics_schema() -> dict[str, Any]:
    """Return the JSON Schema of the metrics artifact.

    >>> metrics_schema()["title"]
    'abstain metrics artifact'
    """
    choices, definitions = msgspec.json.schema_components(
        (schema.SingleArtifact, schema.PairedArtifact), ref_template="#/$defs/{name}"
    )
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "abstain metrics artifact",
        "description": "What `abstain evaluate` writes for one input or for two.",
        "anyOf": list(choices),
        "$defs": dict(definitions),
    }


def filled(kind: type[Part], source: object, **own: Any) -> Part:
    """Return a structure of an artifact: its fields are the attributes of `source`, but for its `own`."""
    names = [name for name in kind.__struct_fields__ if name not in own]
    return kind(**{name: finite(getattr(source, name)) for name in names}, **own)


def finite(value: Any) -> Any:
    """Return a value as JSON has it: a number that is undefined or infinite is null."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def stamp(created_at: datetime) -> dict[str, str]:
    """Return when an artifact was made, by which version, and what weighed: the compiled kernel or numpy."""
    return {
        "created_at": created_at.isoformat().replace("+00:00", "Z"),
        "abstain_version": abstain.__version__,
        "kernel": "compiled" if kernel().compiled else "numpy",
    }


def warning_parts(warnings: Iterable[ResultWarning]) -> list[schema.WarningPart]:
    """Return warnings as parts of an artifact."""
    return [filled(schema.WarningPart, warning) for warning in warnings]


def _single(result: Result, created_at: datetime) -> schema.SingleArtifact:
    system = result.only
    return schema.SingleArtifact(
        **_head(result, created_at),
        confidence_variants={name: _variant(variant, system) for name, variant in system.items()},
        comparison=schema.NoComparison(),
        metrics=UNSET if system.metrics is None else _metrics_part(system.metrics),
    )


def _paired(result: Result, created_at: datetime) -> schema.PairedArtifact:
    left, right, matching = result.left, result.right, result.matching
    assert matching is not None
    deltas = {name: found for name, found in result.deltas.items() if name in left and name in right}
    return schema.PairedArtifact(
        **_head(result, created_at),
        confidence_variants={
            name: schema.VariantPair(input_0=_variant(left[name], left), input_1=_variant(right[name], right))
            for name in deltas
        },
        comparison=schema.ComparisonPart(
            enabled=True,
            intersection_only=matching.intersection_only,
            headline=None if result.headline is None else filled(schema.HeadlinePart, result.headline),
            deltas={name: _deltas(found.differences) for name, found in deltas.items()},
            differences=[
                _difference(each, words) for each, words in zip(result.differences, result.words, strict=True)
            ],
            participants_left_only=matching.clusters_alone[left.name],
            participants_right_only=matching.clusters_alone[right.name],
            participants_overlap_total=matching.clusters_shared,
            participants_overlap_included=matching.clusters,
            participants_failed_left=matching.clusters_failed[left.name],
            participants_failed_right=matching.clusters_failed[right.name],
        ),
        metrics=_paired_metrics(result) or UNSET,
    )


def _head(result: Result, created_at: datetime) -> dict[str, Any]:
    population = result.population
    return {
        **stamp(created_at),
        "convention": result.settings.convention,
        "inputs": [
            schema.Input(**{name: system.provenance.get(name) for name in schema.Input.__struct_fields__})
            for system in result.systems.values()
        ],
        "calibrations": [_calibration(used) for used in result.first.calibrations],
        "population": schema.PopulationPart(
            participants_total=population.total,
            participants_included=population.included,
            participants_failed=population.failed,
            items_total=population.items,
            items_answered=population.answered,
            items_abstained=population.abstained,
            items_failed=population.items_failed,
            items_unscored=population.items_unscored,
        ),
        "loss": None if result.loss is None else filled(schema.LossPart, result.loss),
        "warnings": warning_parts(result.warnings),
    }


def _calibration(used: Calibration) -> schema.CalibrationInput:
    method, features = used.calibrator.method, list(used.feature_names)
    return filled(schema.CalibrationInput, used.source, method=method, features=features)


def _variant(variant: ConfidenceResult, system: SystemResult) -> schema.VariantPart:
    settings = system.settings
    named, risks = _named(variant, settings), _risks(variant, settings)
    # Where there is no item to judge, no coverage is used.
    used = min(settings.area_coverage, variant.cmax.value) if variant.cmax.defined else 0.0
    parts: dict[str, Any] = {name: finite(named[name].value) for name in _NAMES.values()}
    parts |= {
        name: schema.AreaAtCoverage(
            requested=settings.area_coverage, used=used, value=finite(named[name].value)
        )
        for name in _AT_COVERAGE.values()
    }
    told = named | {f"mae_at_coverage.{_key(coverage)}": risk for coverage, risk in risks.items()}
    return schema.VariantPart(
        **parts,
        interpretation=filled(schema.Interpretation, variant),
        mae_at_coverage={_key(coverage): _risk(variant, coverage, risk) for coverage, risk in risks.items()},
        intervals=_intervals(told, risks, settings),
        bootstrap=_bootstrap(variant, settings),
        curve=_curve(variant.curve),
        tie_sensitivity=filled(
            schema.Ties,
            variant.ties,
            aurc_best=finite(variant.ties.best),
            aurc_worst=finite(variant.ties.worst),
        ),
        reasons={name: estimate.reason for name, estimate in told.items() if estimate.reason},
        warnings=warning_parts(variant.warnings),
    )


def _named(variant: ConfidenceResult, settings: Settings) -> dict[str, Estimate]:
    """The estimates that the artifact holds, by its names for them."""
    found = {name: variant.estimates[key] for key, name in _NAMES.items()}
    return found | {
        name: variant.estimates[f"{key}@{settings.area_coverage:g}"] for key, name in _AT_COVERAGE.items()
    }


def _risks(variant: ConfidenceResult, settings: Settings) -> dict[float, Estimate]:
    """The risks at the coverages of the grid."""
    return {
        coverage: variant.estimates[f"risk_at_coverage@{coverage:g}"] for coverage in settings.coverage_grid
    }


def _key(coverage: float) -> str:
    return f"{coverage:.2f}"


def _risk(variant: ConfidenceResult, coverage: float, risk: Estimate) -> schema.RiskAtCoverage | None:
    index = variant.curve.first_reaching(coverage)
    if index is None:
        return None
    achieved = float(variant.curve.coverage[index])
    return schema.RiskAtCoverage(requested=coverage, achieved=achieved, value=risk.value)


def _curve(curve: RiskCoverageCurve) -> schema.Curve:
    count = len(curve)
    # Every point of a small curve; of a large one both ends and an even choice between them, which looks the same.
    kept = [count * place // _CURVE_POINTS for place in range(_CURVE_POINTS)] + [count - 1]
    chosen = kept if count > _CURVE_POINTS else slice(None)
    columns = ("coverage", "selective_risk", "generalized_risk", "threshold")
    return schema.Curve(points=count, **{name: getattr(curve, name)[chosen].tolist() for name in columns})


def _intervals(
    told: Mapping[str, Estimate], risks: Mapping[float, Estimate], settings: Settings
) -> schema.OwnIntervals:
    """The intervals of the metrics, and the method of most of them."""
    methods = Counter(estimate.method for estimate in told.values() if estimate.interval is not None)
    usual = methods.most_common(1)[0][0] if methods else "none"
    risk_keys = {f"mae_at_coverage.{_key(coverage)}" for coverage in risks}
    return schema.OwnIntervals(
        **{name: _ends(estimate.interval) for name, estimate in told.items() if name not in risk_keys},
        mae_at_coverage={_key(coverage): _ends(risk.interval) for coverage, risk in risks.items()},
        method=usual,
        level=settings.level,
        methods={
            name: estimate.method
            for name, estimate in told.items()
            if estimate.interval is not None and estimate.method != usual
        },
    )


def _bootstrap(variant: ConfidenceResult, settings: Settings) -> schema.Bootstrap:
    if not settings.resamples:
        return schema.Bootstrap()
    risks = {_key(coverage): risk for coverage, risk in _risks(variant, settings).items()}
    return schema.Bootstrap(
        seed=settings.seed,
        n_resamples=settings.resamples,
        level=settings.level,
        n_clusters=variant.cmax.clusters,
        ci95=schema.IntervalsRecord(
            **{name: estimate.percentile for name, estimate in _named(variant, settings).items()},
            mae_at_coverage={key: risk.percentile for key, risk in risks.items()},
        ),
        drop_rate=schema.DropRate(mae_at_coverage={key: risk.drop_rate for key, risk in risks.items()}),
    )


def _deltas(differences: Mapping[str, Difference]) -> dict[str, schema.Delta]:
    """Differences as the seed's schema has them, and their verdicts beside."""
    return {
        name: filled(schema.Delta, each, delta=finite(each.estimate.value), **_told(each))
        for name, each in ((name, differences.get(key)) for key, name in _NAMES.items())
        if each is not None
    }


def _difference(each: Difference, sentence: str) -> schema.DifferencePart:
    told = _told(each)
    del told["ci95"]
    return filled(
        schema.DifferencePart,
        each,
        value=finite(each.estimate.value),
        reason=each.estimate.reason,
        sentence=sentence,
        **told,
    )


def _told(difference: Difference) -> dict[str, Any]:
    """What a verdict rests on, and the percentile interval beside it."""
    estimate = difference.estimate
    return {
        "p_holm": finite(difference.p_adjusted),
        "interval": _ends(estimate.interval),
        "method": estimate.method,
        "ci95": _percentile(estimate),
    }


def _percentile(estimate: Estimate) -> tuple[float, float] | None:
    """The bootstrap's interval; without resamples the point repeated, as the seed has it."""
    if not math.isfinite(estimate.value):
        return None
    return (estimate.value, estimate.value) if estimate.percentile is None else _ends(estimate.percentile)


def _ends(interval: tuple[float, float] | None) -> tuple[float, float] | None:
    return interval if interval is not None and all(map(math.isfinite, interval)) else None


def _metrics_part(table: MetricTable) -> schema.MetricsPart:
    """The metrics that were asked for by name."""
    return schema.MetricsPart(
        outcomes=filled(schema.OutcomesPart, table.outcomes),
        definitions={
            name: filled(schema.DefinitionPart, metric, needs=list(metric.needs))
            for name, metric in table.specifications.items()
        },
        overall=_metrics(table.estimates),
        by=list(table.by),
        groups=[
            filled(schema.GroupPart, group, values=dict(group.values), metrics=_metrics(group.estimates))
            for group in table.groups
        ],
        gaps={
            name: schema.GapPart(
                group=gap.group,
                coverage=finite(gap.coverage),
                worst=_metric(gap.worst),
                rest=_metric(gap.rest),
                gap=_metric(gap.gap),
            )
            for name, gap in table.gaps.items()
        },
    )


def _paired_metrics(result: Result) -> schema.PairedMetricsPart | None:
    """The metrics of two systems, or None when none were asked for."""
    left, right = result.left.metrics, result.right.metrics
    if left is None or right is None:
        return None
    known = {
        (each.confidence, each.metric, each.group): each for each in result.differences if not each.matched
    }
    labels = [group.label for group in left.groups]
    found = {
        label: {
            name: _metric_delta(known[key._replace(group=label)])
            for name, key in left.keys_of.items()
            if key._replace(group=label) in known
        }
        for label in ("", *labels)
    }
    return schema.PairedMetricsPart(
        input_0=_metrics_part(left),
        input_1=_metrics_part(right),
        deltas=found[""],
        group_deltas={label: found[label] for label in labels if found[label]},
    )


def _metric_delta(difference: Difference) -> schema.MetricDelta:
    return filled(
        schema.MetricDelta, difference, **(asdict(_metric(difference.estimate)) | _told(difference))
    )


def _metrics(estimates: Mapping[str, Estimate]) -> dict[str, schema.MetricPart]:
    return {name: _metric(estimate) for name, estimate in estimates.items()}


def _metric(estimate: Estimate) -> schema.MetricPart:
    # JSON has no word for infinity; a null needs its reason.
    reason = "the value is infinite" if math.isinf(estimate.value) else estimate.reason
    return filled(schema.MetricPart, estimate, ci95=_ends(estimate.interval), reason=reason)
