"""The registry: one literal table of every metric, which the command line, the report, the docs and the tests read.

A specification says what a metric is called, which function computes it on arrays, what it needs of every row,
which direction is better, its unit, when it is undefined, and which plan the bootstrap weighs; its definition
stands in ``docs/definitions`` under its name. A metric of the user's joins by `register_metric`, by an entry
point of the group ``abstain.metrics``, or by its import path (``package.module:Class``) wherever a metric is
named.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

from abstain import _validate
from abstain.errors import ArgumentError
from abstain.metrics import _loading, _plans, abstention, accuracy, calibration, instruments, selective
from abstain.metrics import _reasons as when
from abstain.metrics._conformal_metrics import CONFORMAL
from abstain.metrics._specification import MetricSpecification, Parameter, user_specification
from abstain.metrics.objects import BaseMetric

if TYPE_CHECKING:
    MetricLike = str | MetricSpecification | BaseMetric | type[BaseMetric]

__all__ = [
    "ALIASES",
    "BUNDLES",
    "ENTRY_POINT_GROUP",
    "METRICS",
    "MetricSpecification",
    "find_metric",
    "known_metrics",
    "register_metric",
    "select_metrics",
    "unregister_metric",
]

ENTRY_POINT_GROUP = _loading.ENTRY_POINT_GROUP

HIGHER, LOWER, NEITHER = "higher", "lower", "neither"

# What the array functions are called with: argument by column.
_DONE = {"abstained": "abstained"}
_LABELS = {"y_true": "truth", "y_pred": "prediction", "abstained": "abstained"}
_GUIDED = {**_LABELS, "should_abstain": "should_abstain"}
_SURE = {**_LABELS, "confidence": "confidence"}
_RANKED = {"loss": "loss", "confidence": "confidence", "abstained": "abstained"}
_LOSS = {"loss": "loss", "abstained": "abstained"}
_BELIEVED = {"y_true": "correct", "confidence": "confidence"}
_TOP_LABEL = {"y_true": "truth", "y_pred": "prediction", "confidence": "confidence"}

_UNRANKED = (when.NOT_ALL_RANKED, when.NO_LOSS)
_NO_NUMBERS = (when.NOTHING_PREDICTED, when.NOT_NUMBERS)

_AT_COVERAGE = Parameter("coverage", 0.5, _validate.coverage)
_AT_RISK = Parameter("risk", 0.1, _validate.real)
_AT_ACCURACY = Parameter("accuracy", 0.9, _validate.share)
_AT_COST = Parameter("cost", 1.0, _validate.not_negative)
_AT_TARGET = Parameter("target", 0.75, abstention.checked_target)
_FORM = Parameter(
    "instrument",
    instruments.find_instrument("PHQ-8"),
    lambda name, _: instruments.find_instrument(name),
    number=False,
)

_M = MetricSpecification
_METRICS: tuple[MetricSpecification, ...] = (
    # Over all rows.
    _M(accuracy.accuracy, _LABELS, HIGHER, "share"),
    _M(
        accuracy.balanced_accuracy,
        _LABELS,
        HIGHER,
        "share",
        plan=_plans.balanced_accuracy,
        undefined=(when.ONE_CLASS,),
    ),
    _M(abstention.answer_rate, _DONE, NEITHER, "share"),
    _M(abstention.abstention_rate, _DONE, NEITHER, "share"),
    _M(abstention.simpleqa_f, _LABELS, HIGHER, "share", undefined=(when.NOTHING_ANSWERED,)),
    _M(
        abstention.effective_reliability,
        _GUIDED,
        HIGHER,
        "points per row",
        plan=_plans.effective_reliability,
        parameter=_AT_COST,
    ),
    _M(
        abstention.confidence_target_score,
        _LABELS,
        HIGHER,
        "points per row",
        plan=_plans.confidence_target_score,
        parameter=_AT_TARGET,
    ),
    # Against guidance on which rows should be abstained from.
    _M(
        abstention.deferral_alignment,
        {**_DONE, "should_abstain": "should_abstain"},
        HIGHER,
        "share",
        undefined=(when.NO_GUIDANCE,),
    ),
    _M(abstention.abstention_accuracy, _GUIDED, HIGHER, "share", undefined=(when.NO_GUIDANCE,)),
    _M(
        abstention.abstention_precision,
        _GUIDED,
        HIGHER,
        "share",
        undefined=(when.NO_GUIDANCE, when.NEVER_ABSTAINED),
    ),
    _M(
        abstention.abstention_recall,
        _GUIDED,
        HIGHER,
        "share",
        undefined=(when.NO_GUIDANCE, when.NOTHING_TO_DECLINE),
    ),
    _M(
        abstention.abstention_f1,
        _GUIDED,
        HIGHER,
        "share",
        undefined=(when.NO_GUIDANCE, when.NEVER_ABSTAINED, when.NOTHING_TO_DECLINE),
    ),
    _M(
        abstention.over_conservativeness,
        _GUIDED,
        LOWER,
        "share",
        undefined=(when.NO_GUIDANCE, when.NOTHING_TO_ANSWER),
    ),
    _M(
        abstention.abstention_auroc,
        {"confidence": "confidence", "should_abstain": "should_abstain"},
        HIGHER,
        "share",
        plan=_plans.abstention_auroc,
        undefined=(when.NO_GUIDANCE, when.ONE_GUIDANCE),
    ),
    # Over the answered rows, which means little without the coverage.
    _M(
        abstention.selective_accuracy,
        _LABELS,
        HIGHER,
        "share",
        undefined=(when.NOTHING_ANSWERED,),
        answered_only=True,
    ),
    _M(
        abstention.reliable_accuracy,
        _GUIDED,
        HIGHER,
        "share",
        undefined=(when.NOTHING_ANSWERED,),
        answered_only=True,
    ),
    *(
        _M(
            function,
            _LABELS,
            HIGHER,
            "share",
            plan=partial(_plans.detection, name=function.__name__),
            undefined=conditions,
            answered_only=True,
        )
        for function, conditions in (
            (accuracy.precision, (when.NO_POSITIVE_ANSWER,)),
            (accuracy.recall, (when.NO_POSITIVE_TRUTH,)),
            (accuracy.f1, (when.NO_POSITIVE_ANSWER, when.NO_POSITIVE_TRUTH)),
        )
    ),
    _M(
        accuracy.macro_f1,
        _LABELS,
        HIGHER,
        "share",
        plan=_plans.macro_f1,
        undefined=(when.NOTHING_ANSWERED,),
        answered_only=True,
    ),
    _M(
        accuracy.auroc,
        {"y_true": "event", "score": "event_probability"},
        HIGHER,
        "share",
        plan=_plans.auroc,
        undefined=(when.NO_CONFIDENCE, when.NOT_BINARY, when.ONE_EVENT),
        rows="stated",
        answered_only=True,
    ),
    _M(
        accuracy.correctness_auroc,
        _SURE,
        HIGHER,
        "share",
        plan=_plans.correctness_auroc,
        undefined=(when.NO_CONFIDENCE, when.ONE_CORRECTNESS),
        answered_only=True,
    ),
    _M(
        accuracy.mean_absolute_error,
        _LABELS,
        LOWER,
        "unit of the truth",
        plan=_plans.mean_absolute_error,
        undefined=_NO_NUMBERS,
        answered_only=True,
    ),
    _M(
        accuracy.root_mean_squared_error,
        _LABELS,
        LOWER,
        "unit of the truth",
        plan=_plans.root_mean_squared_error,
        undefined=_NO_NUMBERS,
        answered_only=True,
    ),
    _M(
        accuracy.pearson_r,
        _LABELS,
        HIGHER,
        "correlation",
        plan=_plans.pearson_r,
        undefined=(*_NO_NUMBERS, when.CONSTANT),
        answered_only=True,
    ),
    _M(
        instruments.severity_tier_accuracy,
        _LABELS,
        HIGHER,
        "share",
        plan=_plans.tier_accuracy,
        undefined=_NO_NUMBERS,
        undefined_at=when.not_totals,
        answered_only=True,
        parameter=_FORM,
    ),
    # Whether a confidence can be believed.
    *(
        _M(
            function,
            _BELIEVED,
            LOWER,
            unit,
            plan=partial(_plans.calibration, name=function.__name__),
            undefined=(when.NO_CONFIDENCE,),
            rows="stated",
            answered_only=True,
        )
        for function, unit in (
            (calibration.expected_calibration_error, "share"),
            (calibration.smooth_calibration_error, "share"),
            (calibration.negative_log_likelihood, "nats"),
        )
    ),
    _M(
        calibration.top_label_calibration_error,
        _TOP_LABEL,
        LOWER,
        "share",
        plan=_plans.top_label_calibration_error,
        undefined=(when.NO_CONFIDENCE,),
        rows="stated",
        answered_only=True,
    ),
    _M(
        calibration.brier_score,
        {"y_true": "event", "confidence": "event_probability"},
        LOWER,
        "squared probability",
        plan=_plans.brier_score,
        undefined=(when.NO_CONFIDENCE, when.NOT_BINARY),
        rows="stated",
        answered_only=True,
    ),
    # Rankings: what a model risks at each share of rows that it answers.
    _M(
        abstention.coverage_at_accuracy,
        _SURE,
        HIGHER,
        "share",
        plan=_plans.coverage_at_accuracy,
        undefined=(when.NOT_ALL_RANKED,),
        parameter=_AT_ACCURACY,
    ),
    _M(
        selective.coverage_at_risk,
        _RANKED,
        HIGHER,
        "share",
        plan=_plans.coverage_at_risk,
        undefined=_UNRANKED,
        parameter=_AT_RISK,
    ),
    _M(
        selective.risk_at_coverage,
        _RANKED,
        LOWER,
        "loss",
        plan=_plans.risk_at_coverage,
        undefined=_UNRANKED,
        undefined_at=when.unreached,
        parameter=_AT_COVERAGE,
    ),
    *(
        _M(
            function,
            _RANKED,
            LOWER,
            "loss",
            plan=partial(_plans.area_at_coverage, name=function.__name__),
            undefined=_UNRANKED,
            parameter=_AT_COVERAGE,
        )
        for function in (selective.aurc_at_coverage, selective.augrc_at_coverage)
    ),
    *(
        _M(
            function,
            _RANKED,
            LOWER,
            "loss",
            plan=partial(_plans.selective, name=function.__name__),
            undefined=_UNRANKED,
        )
        for function in (
            selective.aurc,
            selective.augrc,
            selective.eaurc,
            selective.eaugrc,
            selective.aurc_achievable,
        )
    ),
    *(
        _M(
            function,
            _LOSS,
            direction,
            unit,
            plan=partial(_plans.selective, name=function.__name__),
            undefined=(when.NO_LOSS,),
        )
        for function, direction, unit in (
            (selective.cmax, NEITHER, "share"),
            (selective.aurc_optimal, LOWER, "loss"),
            (selective.augrc_optimal, LOWER, "loss"),
        )
    ),
    # Predictions that are intervals or sets.
    *CONFORMAL,
)

METRICS: dict[str, MetricSpecification] = {metric.name: metric for metric in _METRICS}

BUNDLES: dict[str, tuple[str, ...]] = {
    "default_accuracy": ("accuracy", "balanced_accuracy"),
    "default_calibration": ("expected_calibration_error", "brier_score"),
    "default_abstention": ("answer_rate", "selective_accuracy", "abstention_rate", "deferral_alignment"),
    "default_benchmark": (
        "accuracy",
        "balanced_accuracy",
        "expected_calibration_error",
        "brier_score",
        "answer_rate",
        "selective_accuracy",
        "abstention_rate",
        "deferral_alignment",
    ),
    "safety": (
        "answer_rate",
        "abstention_accuracy",
        "abstention_precision",
        "abstention_recall",
        "abstention_f1",
        "over_conservativeness",
        "reliable_accuracy",
        "effective_reliability",
        "simpleqa_f",
        "confidence_target_score",
        "deferral_alignment",
        "abstention_auroc",
    ),
    "regression": ("answer_rate", "mean_absolute_error", "root_mean_squared_error", "pearson_r"),
}

ALIASES: dict[str, str] = {
    "accuracy_when_answered": "selective_accuracy",
    "brier": "brier_score",
    "coverage": "answer_rate",
    "ece": "expected_calibration_error",
    "mae": "mean_absolute_error",
    "rmse": "root_mean_squared_error",
}

_registered: dict[str, MetricSpecification] = {}


def register_metric(metric: BaseMetric | type[BaseMetric] | MetricSpecification) -> MetricSpecification:
    """Add a metric of yours to the registry; a name that is taken is an error. Works as a decorator's body, too.

    >>> from abstain.metrics import BaseMetric, MetricScore
    >>> class Rows(BaseMetric):
    ...     name = "rows"
    ...     def compute(self, results):
    ...         return MetricScore(self.name, float(len(results)), n_evaluated=len(results))
    >>> register_metric(Rows).name
    'rows'
    >>> unregister_metric("rows")
    """
    specification = metric if isinstance(metric, MetricSpecification) else user_specification(metric)
    if specification.name in {*METRICS, *BUNDLES, *ALIASES, *_registered}:
        raise _taken(specification.name)
    _registered[specification.name] = specification
    return specification


def unregister_metric(name: str) -> None:
    """Take a registered metric out again."""
    _validate.choice(name, "metric", _registered)
    del _registered[name]


def known_metrics() -> dict[str, MetricSpecification]:
    """Return every metric by name: the built-in ones, the registered ones, and those of entry points."""
    entries = _loading.entry_point_metrics()
    return {
        **{name: user_specification(metric, name) for name, metric in entries.items()},
        **METRICS,
        **_registered,
    }


def find_metric(metric: MetricLike) -> MetricSpecification:
    """Return one metric: by name, by alias, with a parameter (``risk_at_coverage@0.8``), by import path, or itself.

    >>> find_metric("ece").name, find_metric("coverage_at_risk@0.05").key
    ('expected_calibration_error', 'coverage_at_risk@0.05')
    """
    if isinstance(metric, MetricSpecification):
        return metric
    if not isinstance(metric, str):
        return user_specification(metric)
    text, _, parameter = metric.strip().partition("@")
    name = ALIASES.get(text, text)
    if ":" in name:
        found: MetricSpecification | None = user_specification(_loading.imported_metric(name))
    else:
        found = METRICS.get(name) or _registered.get(name) or known_metrics().get(name)
    if found is None:
        known = [*known_metrics(), *BUNDLES]
        raise ArgumentError(
            f"unknown metric {name!r}{_validate.suggestion(name, [*known, *ALIASES])}; known: {', '.join(known)}, or "
            "your own as package.module:Class"
        )
    return found.at(parameter) if parameter else found


def select_metrics(asked: MetricLike | Iterable[MetricLike]) -> tuple[MetricSpecification, ...]:
    """Return the metrics that were asked for, each once, in order; a bundle stands for its metrics.

    Where any of them is over answered rows only, the answer rate comes along: such a number cannot be
    compared without it.

    >>> [metric.name for metric in select_metrics("default_accuracy,mae")]
    ['accuracy', 'balanced_accuracy', 'mean_absolute_error', 'answer_rate']
    """
    single = isinstance(asked, (str, MetricSpecification, BaseMetric, type))
    if not single and not isinstance(asked, Iterable):
        raise ArgumentError(f"metrics must be names or metrics, got {_validate.kind(asked)}")
    found: dict[str, MetricSpecification] = {}
    for part in [asked] if single else asked:  # type: ignore[union-attr]
        pieces: list[Any] = [piece.strip() for piece in part.split(",")] if isinstance(part, str) else [part]
        for piece in pieces:
            names = BUNDLES.get(piece, (piece,)) if isinstance(piece, str) else (piece,)
            for metric in map(find_metric, names):
                if found.setdefault(metric.key, metric).function != metric.function:
                    raise _taken(metric.name)
    if not found:
        raise ArgumentError("no metric was asked for; see `abstain metrics` for what there is")
    if any(metric.answered_only for metric in found.values()):
        found.setdefault("answer_rate", METRICS["answer_rate"])
    return tuple(found.values())


def _taken(name: str) -> ArgumentError:
    return ArgumentError(f"there is a metric {name!r} already; give yours another name")
