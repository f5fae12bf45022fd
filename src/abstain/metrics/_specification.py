"""What the registry says of a metric: what it needs, which way is better, when it is undefined, how it is measured."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from abstain import _validate
from abstain.errors import ArgumentError
from abstain.metrics import _reasons
from abstain.metrics._risk import risk_measure
from abstain.metrics._sums import outcome_measure
from abstain.tally import Measure

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from abstain.metrics._columns import Columns
    from abstain.metrics._reasons import Condition

    Build = Callable[[Columns, Sequence["MetricSpecification"]], Measure]

HIGHER, LOWER, NEITHER = DIRECTIONS = ("higher", "lower", "neither")

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
    "answers": "docs/definitions/accuracy.md#{name}",
    "calibration": "docs/definitions/calibration.md#errors",
    "instruments": "docs/definitions/accuracy.md#{name}",
    "intervals": "docs/definitions/intervals-and-sets.md#intervals",
    "objects": "docs/definitions/metric-objects.md#the-objects",
    "regression": "docs/definitions/accuracy.md#{name}",
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
        measure: builds the measure of metrics that share it, one column each; see `alone` for a metric by itself.
        finish: where a family shares its sums, what makes this metric of them and of the parameter.
        undefined: the conditions under which the metric is undefined, in order.
        undefined_at: the same, where it depends on the parameter.
        rows: which rows the function is called with: "all", "stated" (answered, with a confidence), "bounded"
            (answered, with an interval) or "gathered" (answered, with a set).
        answered_only: True where only answered rows are judged, so that the value means little without coverage.
        parameter: what the metric may be asked with.
        value: the parameter's value.
        settings: what else the function is called with.
        name: the metric's name; the function's own when left out.
    """

    function: Callable[..., Any]
    arguments: Mapping[str, str]
    direction: str
    unit: str
    measure: Build
    finish: Callable[..., Any] | None = None
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
        """What the metric is called in results: its name, with its parameter where it has one."""
        return self.name if self.parameter is None else f"{self.name}@{self.parameter.text(self.value)}"

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
    def ranked(self) -> bool:
        """True where the metric needs a confidence."""
        return "confidence" in self.needs

    @property
    def of_outcomes(self) -> bool:
        """True where a metric only asks whether a row was answered, and rightly, at which confidence and loss."""
        return self.measure in (risk_measure, outcome_measure) and "should_abstain" not in self.needs

    @property
    def definition(self) -> str:
        """Where the exact definition stands; for a metric of the user's, its module."""
        named = self.function if hasattr(self.function, "__name__") else type(self.function)
        package, _, page = named.__module__.rpartition(".")
        if package not in ("abstain.metrics", "abstain.compat") or page not in _DEFINED_IN:
            return named.__module__
        return _DEFINED_IN[page].format(name=self.name)

    def at(self, value: Any) -> MetricSpecification:
        """Return the metric asked with another parameter, given as such or as text."""
        if self.parameter is None:
            raise ArgumentError(f"metric {self.name} takes no parameter, got @{value}")
        if isinstance(value, str):
            return replace(self, value=self.parameter.parse(value, self.name))
        return replace(self, value=self.parameter.check(value, self.parameter.name))

    def problem(self, columns: Columns) -> Condition | None:
        """Return why the metric is undefined for these rows, or None."""
        found = _reasons.first_that_holds(self.undefined, columns)
        if found is None and self.undefined_at is not None:
            return self.undefined_at(columns, self.value)
        return found

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameter by its name, where there is one."""
        return {} if self.parameter is None else {self.parameter.name: self.value}

    def point(self, columns: Columns) -> float:
        """Return the value of the measure over these rows, at weights all one; NaN where it is undefined."""
        return self.measure(columns, [self]).point

    def compute(self, columns: Columns) -> float:
        """Return the value that the public function gives for these rows."""
        rows = columns if self.rows == "all" else columns.take(getattr(columns, self.rows))
        arguments = {argument: getattr(rows, column) for argument, column in self.arguments.items()}
        found = self.function(**arguments, **self.settings, **self.parameters, sample_weight=rows.weight)
        return float(getattr(found, "score", found))


def alone(build: Callable[..., Measure]) -> Build:
    """Let every metric have a measure of its own, built from the columns and the metric's parameter."""

    def built(columns: Columns, metrics: Sequence[MetricSpecification]) -> Measure:
        return Measure.joined(
            [replace(build(columns, **metric.parameters), names=(metric.key,)) for metric in metrics]
        )

    return built


def measure_metrics(columns: Columns, metrics: Sequence[MetricSpecification]) -> Measure:
    """Return one measure of several metrics over the same rows, one column each, in their order.

    Metrics that can share their tallies do. Where a metric is undefined for these rows, its column is NaN.
    """
    families: dict[Any, list[int]] = {}
    for place, metric in enumerate(metrics):
        build = metric.measure if len(columns) and metric.problem(columns) is None else None
        families.setdefault(build, []).append(place)
    parts = []
    for build, places in families.items():
        chosen = [metrics[place] for place in places]
        names = tuple(metric.key for metric in chosen)
        parts.append(Measure.undefined(names, columns.units) if build is None else build(columns, chosen))
    order = [place for places in families.values() for place in places]
    return Measure.joined(parts, [order.index(place) for place in range(len(metrics))])
