"""What the registry says of a metric, and how a metric of the user's becomes one of its entries."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from abstain import _validate
from abstain.errors import AbstainError, ArgumentError
from abstain.metrics import _plans, _reasons
from abstain.metrics._columns import UndefinedPlan
from abstain.metrics.objects import BaseMetric, PlannedMetric
from abstain.results import MetricScore

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from abstain.metrics._columns import Columns
    from abstain.metrics._plan import Plan
    from abstain.metrics._reasons import Condition

    Floats = NDArray[np.float64]

DIRECTIONS = ("higher", "lower", "neither")

# What a column that is made from others asks of the data.
_MADE_OF = {
    "correct": ("truth", "prediction"),
    "event": ("truth",),
    "event_probability": ("prediction", "confidence"),
    "truth_number": ("truth",),
    "truth_class": ("truth",),
}
# Where the metrics of each module are defined.
_DEFINED_IN = {
    "abstention": "docs/definitions/abstention.md#{name}",
    "accuracy": "docs/definitions/accuracy.md#{name}",
    "calibration": "docs/definitions/calibration.md#errors",
    "instruments": "docs/definitions/accuracy.md#{name}",
    "intervals": "docs/definitions/intervals-and-sets.md#intervals",
    "objects": "docs/definitions/metric-objects.md#the-objects",
    "selective": "docs/definitions.md#risk-coverage-curve",
    "sets": "docs/definitions/intervals-and-sets.md#sets",
}


@dataclass(frozen=True, slots=True)
class Parameter:
    """The one number (or name) that a metric may be asked with, as in ``risk_at_coverage@0.8``."""

    name: str
    default: Any
    check: Callable[[Any, str], Any]
    number: bool = True

    def text(self, value: Any) -> str:
        """Return a value as it is written after the ``@``."""
        return f"{value:g}" if self.number else str(value.name)

    def parse(self, text: str, metric: str) -> Any:
        """Return the value of a text, or say what is wrong with it."""
        if self.number:
            try:
                return self.check(float(text), f"{metric}: {self.name}")
            except ValueError as problem:
                if isinstance(problem, ArgumentError):
                    raise
                raise ArgumentError(f"{metric}: {self.name} must be a number, got {text!r}") from None
        return self.check(text, self.name)


@dataclass(frozen=True, eq=False)
class MetricSpecification:
    """One metric of the registry.

    Attributes:
        function: the function of arrays, or the object that is called with results.
        arguments: what the function is called with: argument by column.
        direction: "higher" or "lower" where that is better, "neither" where it depends.
        unit: what one unit of the value is.
        plan: builds the plan that the bootstrap weighs from columns; the outcome figure of that name when None.
        undefined: the conditions under which the metric is undefined, in order.
        undefined_at: the same, where it depends on the parameter.
        rows: which rows the function is called with: "all", "stated" (answered, with a confidence), "bounded"
            (answered, with an interval) or "gathered" (answered, with a set).
        answered_only: True where only answered rows are judged, so that the value means little without coverage.
        parameter: what the metric may be asked with.
        value: the parameter's value.
        settings: what else the function is called with.
        name: the metric's key; the function's own name when left out.
    """

    function: Callable[..., Any]
    arguments: Mapping[str, str]
    direction: str
    unit: str
    plan: Callable[..., Plan] | None = None
    undefined: tuple[Condition, ...] = ()
    undefined_at: Callable[[Columns, Any], Condition | None] | None = None
    rows: str = "all"
    answered_only: bool = False
    parameter: Parameter | None = None
    value: Any = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    name: str = field(default="")

    def __post_init__(self) -> None:
        _validate.choice(self.direction, "direction", DIRECTIONS)
        if not self.name:
            object.__setattr__(self, "name", self.function.__name__)
        if self.parameter is not None and self.value is None:
            object.__setattr__(self, "value", self.parameter.default)

    @property
    def key(self) -> str:
        """What the metric is called in results: its name, with its parameter where that is not the default."""
        if self.parameter is None or self.value == self.parameter.default:
            return self.name
        return f"{self.name}@{self.parameter.text(self.value)}"

    @property
    def title(self) -> str:
        """The name as words."""
        return self.name.replace("_", " ")

    @property
    def summary(self) -> str:
        """The first sentence of the documentation, without its full stop."""
        text = (self.function.__doc__ or "").strip().split("\n")[0]
        return text.removeprefix("Return ").rstrip(".")

    @property
    def needs(self) -> tuple[str, ...]:
        """The columns that the metric is made of."""
        columns = [_MADE_OF.get(column, (column,)) for column in self.arguments.values()]
        return tuple(dict.fromkeys(column for part in columns for column in part))

    @property
    def definition(self) -> str:
        """Where the exact definition stands; for a metric of the user's, its module."""
        named = self.function if hasattr(self.function, "__name__") else type(self.function)
        package, _, page = named.__module__.rpartition(".")
        if package != "abstain.metrics" or page not in _DEFINED_IN:
            return named.__module__
        return _DEFINED_IN[page].format(name=self.name)

    def at(self, text: str) -> MetricSpecification:
        """Return the metric asked with another parameter."""
        if self.parameter is None:
            raise ArgumentError(f"metric {self.name} takes no parameter, got @{text}")
        return replace(self, value=self.parameter.parse(text, self.name))

    def problem(self, columns: Columns) -> Condition | None:
        """Return why the metric is undefined for these rows, or None."""
        found = _reasons.first_that_holds(self.undefined, columns)
        if found is None and self.undefined_at is not None:
            return self.undefined_at(columns, self.value)
        return found

    def build(self, columns: Columns) -> Plan:
        """Return the plan over these rows; where the metric is undefined, so is the plan."""
        if self.problem(columns) is not None:
            return UndefinedPlan((self.name,), columns.clusters)
        build = self.plan or partial(_plans.outcome, name=self.name)
        return build(columns, **self._parameters())

    def compute(self, columns: Columns) -> float:
        """Return the value that the public function gives for these rows."""
        rows = columns if self.rows == "all" else columns.take(getattr(columns, self.rows))[0]
        arguments = {argument: getattr(rows, column) for argument, column in self.arguments.items()}
        found = self.function(**arguments, **self.settings, **self._parameters(), weights=rows.weight)
        return float(getattr(found, "score", found))

    def _parameters(self) -> dict[str, Any]:
        return {} if self.parameter is None else {self.parameter.name: self.value}


class ResultsPlan:
    """A metric object as a plan: slower, because it sees copied rows, but with the same draws.

    A resample in which the metric divides by zero, or says NaN, is one in which it is undefined.
    """

    def __init__(self, columns: Columns, *, metric: BaseMetric) -> None:
        if columns.results is None:
            raise ArgumentError(f"metric {metric.name} needs the rows as evaluation results")
        self._metric = metric
        self._results = columns.results
        order = np.argsort(columns.cluster, kind="stable")
        sizes = np.bincount(columns.cluster, minlength=columns.clusters)
        self._rows_of_cluster = np.split(order, np.cumsum(sizes)[:-1])
        self.names = (metric.name,)
        self.clusters = columns.clusters
        self.width = len(columns)

    def __call__(self, weights: Floats) -> Floats:
        """Map weights (resamples, clusters) to values (resamples, 1)."""
        values = np.full((len(weights), 1), np.nan)
        for place, weight in enumerate(weights):
            drawn = np.repeat(np.arange(self.clusters), weight.astype(np.intp))
            rows = [self._results[row] for cluster in drawn for row in self._rows_of_cluster[cluster]]
            if rows:
                values[place, 0] = self._value(rows)
        return values

    def _value(self, rows: list[Any]) -> float:
        try:
            score = self._metric.compute(rows)
        except ZeroDivisionError:
            return math.nan
        except AbstainError:
            raise
        except Exception as problem:
            # What it says may hold the text of a row, so that only its kind is told.
            kind = type(problem).__name__
            raise ArgumentError(f"metric {self._metric.name}: compute() raised {kind}") from problem
        if not isinstance(score, MetricScore):
            raise ArgumentError(
                f"metric {self._metric.name}: compute() must return a MetricScore, got {_validate.kind(score)}"
            )
        return float(score.value)


def user_specification(metric: object, name: str = "") -> MetricSpecification:
    """Return the entry of a metric object, or of a class that can be made without arguments."""
    made = metric
    if isinstance(metric, type):
        try:
            made = metric()
        except TypeError as problem:
            raise ArgumentError(
                f"metric {metric.__name__} cannot be made without arguments ({problem})"
            ) from None
    if not isinstance(made, BaseMetric):
        raise ArgumentError(f"a metric must be a BaseMetric, got {_validate.kind(made)}")
    common: dict[str, Any] = {
        "function": made,
        "direction": made.direction,
        "unit": made.unit,
        "name": name or made.name or type(made).__name__,
    }
    if isinstance(made, PlannedMetric):
        return MetricSpecification(
            **common,
            arguments={column: column for column in made.needs},
            plan=made.plan,
            undefined=made.undefined,
            rows="stated" if "confidence" in made.needs else "all",
        )
    plan = partial(ResultsPlan, metric=made)
    return MetricSpecification(**common, arguments={"results": "results"}, plan=plan)
