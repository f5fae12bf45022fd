"""The registry: every metric by name, collected from the modules that define them, and how metrics are selected.

A specification contains a metric's name, the function that computes it from arrays, the columns it needs, its better
direction, its unit, the conditions under which it is undefined, and how it is computed. It is at the end of the module
that defines the function. The exact definition is in ``docs/definitions`` under the metric's name. The command line,
the report, the docs and the tests read the registry. A user-defined metric is added with `register_metric`, by an entry
point of the group ``abstain.metrics``, or by passing its import path (``package.module:Class``) as a metric name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib import import_module
from itertools import chain
from typing import TYPE_CHECKING, Any

from abstain import _validate
from abstain.errors import ArgumentError
from abstain.metrics._conditions import NO_GUIDANCE
from abstain.metrics._outcomes import OUTCOMES
from abstain.metrics._specification import (
    CONDITIONAL,
    MATCHED,
    PENALIZED,
    UNDIRECTED,
    MetricSpecification,
    metric_name,
)
from abstain.metrics.base import (
    ENTRY_POINT_GROUP,
    BaseMetric,
    entry_point_metrics,
    imported_metric,
    user_specification,
)

if TYPE_CHECKING:
    MetricLike = str | MetricSpecification | BaseMetric | type[BaseMetric]

__all__ = [
    "ALIASES",
    "BUNDLES",
    "CONDITIONAL",
    "ENTRY_POINT_GROUP",
    "GROUPED",
    "MATCHED",
    "METRICS",
    "PENALIZED",
    "UNDIRECTED",
    "MetricSpecification",
    "find_metric",
    "known_metrics",
    "metric_name",
    "register_metric",
    "select_metrics",
    "unregister_metric",
]


def _section(metric: MetricSpecification) -> int:
    """Return the section of a metric in lists.

    0: over all rows. 1: compared with guidance. 2 and 3: over answered rows. 4: along a ranking.
    """
    if metric.answered_only:
        return 2 if metric.family is OUTCOMES else 3
    if NO_GUIDANCE in metric.undefined:
        return 1
    return 4 if metric.ranked or "loss" in metric.needs else 0


_OF_ANSWERS = ("answers", "regression", "abstention", "instruments", "calibration", "selective")
_OF_COVERAGE = ("intervals", "sets")
# Modules that nearly every evaluation needs are searched first.
_SEARCHED = ("selective", "abstention", "answers", "regression", "calibration", "instruments", *_OF_COVERAGE)


def _defined_in(module: str) -> tuple[MetricSpecification, ...]:
    metrics: tuple[MetricSpecification, ...] = import_module(f"abstain.metrics.{module}").METRICS
    return metrics


@cache
def _in_order() -> dict[str, MetricSpecification]:
    answers = sorted(chain.from_iterable(map(_defined_in, _OF_ANSWERS)), key=_section)
    return {metric.name: metric for metric in chain(answers, *map(_defined_in, _OF_COVERAGE))}


class _BuiltIn(Mapping[str, MetricSpecification]):
    """The built-in metrics by name.

    A lookup imports modules until one of them defines the metric. Iteration imports them all.
    """

    def __getitem__(self, name: str) -> MetricSpecification:
        for module in _SEARCHED:
            for metric in _defined_in(module):
                if metric.name == name:
                    return metric
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return iter(_in_order())

    def __len__(self) -> int:
        return len(_in_order())


METRICS: Mapping[str, MetricSpecification] = _BuiltIn()
# The metrics of groups, unless others are requested.
GROUPED = ("accuracy", "selective_accuracy", "answer_rate")

_DEFAULTS: dict[str, tuple[str, ...]] = {
    "default_accuracy": ("accuracy", "balanced_accuracy"),
    "default_calibration": ("expected_calibration_error", "brier_score"),
    "default_abstention": ("answer_rate", "selective_accuracy", "abstention_rate", "deferral_alignment"),
}
BUNDLES: dict[str, tuple[str, ...]] = {
    **_DEFAULTS,
    "default_benchmark": tuple(name for bundle in _DEFAULTS.values() for name in bundle),
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
    "selective": (
        "cmax",
        "aurc",
        "augrc",
        "aurc_optimal",
        "augrc_optimal",
        "eaurc",
        "eaugrc",
        "aurc_achievable",
        "aurc_at_coverage",
        "augrc_at_coverage",
    ),
    "answers": (
        "accuracy",
        "selective_accuracy",
        "answer_rate",
        "wrong_rate",
        "hallucination_rate",
        "simpleqa_f",
    ),
    "regression": ("answer_rate", "mean_absolute_error", "root_mean_squared_error", "pearson_r"),
}

ALIASES: dict[str, str] = {
    "accuracy_when_answered": "selective_accuracy",
    "brier": "brier_score",
    "coverage": "answer_rate",
    "covgap": "set_coverage_gap",
    "ece": "expected_calibration_error",
    "mae": "mean_absolute_error",
    "prr": "prediction_rejection_ratio",
    "rmse": "root_mean_squared_error",
}

_registered: dict[str, MetricSpecification] = {}


def register_metric(metric: BaseMetric | type[BaseMetric] | MetricSpecification) -> MetricSpecification:
    """Add your own metric to the registry. A name that is already in use is an error.

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
        raise _name_taken(specification.name)
    _registered[specification.name] = specification
    return specification


def unregister_metric(name: str) -> None:
    """Remove a registered metric."""
    _validate.choice(name, "metric", _registered)
    del _registered[name]


def known_metrics() -> dict[str, MetricSpecification]:
    """Return every metric by name: the built-in ones, the registered ones, and those of entry points."""
    entries = entry_point_metrics()
    return {
        **{name: user_specification(metric, name) for name, metric in entries.items()},
        **METRICS,
        **_registered,
    }


def find_metric(metric: MetricLike) -> MetricSpecification:
    """Return the specification of one metric, which is a name, an alias, an import path or a metric object.

    A name may have a parameter (``risk_at_coverage@0.8``). Upper and lower case are not distinguished.

    >>> find_metric("ece").key, find_metric("ece@10").key, find_metric("coverage_at_risk@0.05").key
    ('expected_calibration_error', 'expected_calibration_error@10', 'coverage_at_risk@0.05')
    """
    if isinstance(metric, MetricSpecification):
        return metric
    if not isinstance(metric, str):
        return user_specification(metric)
    text, _, parameter = metric.strip().partition("@")
    text = _match_case(text)
    name = ALIASES.get(text, text)
    if ":" in name:
        specification: MetricSpecification | None = user_specification(imported_metric(name))
    else:
        specification = METRICS.get(name) or _registered.get(name) or known_metrics().get(name)
    if specification is None:
        names = [*known_metrics(), *BUNDLES]
        raise ArgumentError(
            f"unknown metric {name!r}{_validate.suggestion(name, [*names, *ALIASES])}; known: {', '.join(names)}, or "
            "your own as package.module:Class"
        )
    return specification.at(parameter) if parameter else specification


def select_metrics(
    requested: MetricLike | Iterable[MetricLike], *, coverage: bool = True
) -> tuple[MetricSpecification, ...]:
    """Return the requested metrics in order, without duplicates. A bundle is replaced by its metrics.

    If any of them is computed over answered rows only, the answer rate is added, because such a number cannot be
    interpreted without it. `coverage=False` turns this off.

    >>> [metric.name for metric in select_metrics("default_accuracy,mae")]
    ['accuracy', 'balanced_accuracy', 'mean_absolute_error', 'answer_rate']
    """
    single = isinstance(requested, (str, MetricSpecification, BaseMetric, type))
    if not single and not isinstance(requested, Iterable):
        raise ArgumentError(f"metrics must be names or metrics, got {_validate.kind(requested)}")
    selected: dict[str, MetricSpecification] = {}
    for part in [requested] if single else requested:  # type: ignore[union-attr]
        pieces: list[Any] = [piece.strip() for piece in part.split(",")] if isinstance(part, str) else [part]
        for piece in pieces:
            # A bundle has no parameter. Other names are not compared with entry points, which are slow to list.
            is_name = isinstance(piece, str) and "@" not in piece
            names = BUNDLES.get(_match_case(piece), (piece,)) if is_name else (piece,)
            for metric in map(find_metric, names):
                first = selected.setdefault(metric.key, metric)
                if (first.function, first.settings) != (metric.function, metric.settings):
                    raise _name_taken(metric.name)
    if not selected:
        raise ArgumentError("no metric was requested; `abstain metrics` lists all metrics")
    if coverage and any(metric.answered_only for metric in selected.values()):
        selected.setdefault("answer_rate", METRICS["answer_rate"])
    return tuple(selected.values())


def _match_case(name: str) -> str:
    """Return a name with the upper and lower case of the metric, alias or bundle that it matches."""
    if ":" in name or name in METRICS or name in ALIASES or name in BUNDLES or name in _registered:
        return name
    names = [*known_metrics(), *ALIASES, *BUNDLES]
    if name in names:
        return name
    return next((each for each in names if each.casefold() == name.casefold()), name)


def _name_taken(name: str) -> ArgumentError:
    return ArgumentError(f"a metric named {name!r} already exists; give yours another name")
