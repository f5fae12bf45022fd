"""How a metric is specified: its function, direction and unit, when it is undefined, and how it is computed.

Most metrics are functions of a few sums, and metrics of one family use the same sums. A family builds one `Statistic`
for several of its metrics; the `compute` of each metric turns the family's sums into the value. A metric with separate
sums is a family of one (`Family.of_one`).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import numpy as np

from abstain import _validate
from abstain.errors import ArgumentError
from abstain.metrics.scales import BY_UNIT, Scale, proportion_scale
from abstain.resampling import Statistic

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from abstain._types import Floats, Mask
    from abstain.metrics._columns import Columns
    from abstain.metrics._conditions import Condition
    from abstain.metrics._curve import CurveNeeds, Limited


HIGHER, LOWER, NEITHER = DIRECTIONS = ("higher", "lower", "neither")
# How a metric treats declined items, which decides how two systems are compared by it.
PENALIZED, MATCHED, CONDITIONAL, UNDIRECTED = ("penalized", "matched", "conditional", "undirected")
# How areas of the risk-coverage curve are integrated; see `abstain.metrics._curve`.
CONVENTIONS = ("trapezoid", "interpolated", "mean", "torch-uncertainty")
# The arguments of a function of labelled answers, and the column of each.
LABELS = {"y_true": "truth", "y_pred": "prediction", "abstained": "abstained"}

# The columns of the data from which other columns are computed.
_SOURCE_COLUMNS = {
    "correct": ("truth", "prediction"),
    "event": ("truth",),
    "event_probability": ("prediction", "confidence"),
    "truth_number": ("truth",),
    "truth_class": ("truth",),
}
# Columns that distinguish between labels that are equally right or wrong.
_LABELS = {"truth", "prediction", "event", "event_probability", "truth_number", "truth_class", "results"}
# The page that defines the metrics of each module.
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


# The names of metrics in sentences, tables and charts, if they differ from the key.
_NAMES = {
    "aurc": "AURC",
    "augrc": "AUGRC",
    "aurc_optimal": "optimal AURC",
    "augrc_optimal": "optimal AUGRC",
    "eaurc": "e-AURC",
    "eaugrc": "e-AUGRC",
    "auarc": "AUARC",
    "aurc_achievable": "achievable AURC",
    "aurc_at_coverage": "AURC",
    "augrc_at_coverage": "AUGRC",
    "class_balanced_aurc": "class-balanced AURC",
    "cmax": "Cmax",
    "risk": "selective risk",
    "risk_at_coverage": "risk",
    "simpleqa_f": "SimpleQA F",
    "expected_calibration_error": "ECE",
    "prediction_rejection_ratio": "PRR",
    "auroc": "AUROC",
    "f1": "F1",
    "macro_f1": "macro F1",
}


def metric_name(key: str) -> str:
    """Return the name of a metric as people write it.

    >>> metric_name("augrc"), metric_name("aurc_at_coverage@0.5"), metric_name("selective_accuracy")
    ('AUGRC', 'AURC@0.5', 'selective accuracy')
    """
    base, separator, value = key.partition("@")
    return f"{_NAMES.get(base, base.replace('_', ' '))}{separator}{value}"


@dataclass(frozen=True, eq=False, slots=True)
class Family:
    """Metrics that are computed from the same sums.

    Attributes:
        build: builds the statistic of some of its metrics, one column each.
        reads_labels: False if only the outcome, the loss and the confidence of a row matter, not its labels.
        has_convention: True if its metrics are areas that can be integrated in several conventions.
    """

    build: Callable[[Columns, Sequence[MetricSpecification]], Statistic]
    reads_labels: bool = True
    has_convention: bool = False

    @classmethod
    def of_one(cls, build: Callable[..., Statistic]) -> Family:
        """Return the family of a metric with separate sums; `build` takes the rows and the metric's parameter."""

        def build_each(columns: Columns, metrics: Sequence[MetricSpecification]) -> Statistic:
            return Statistic.joined(
                [replace(build(columns, **metric.parameters), names=(metric.key,)) for metric in metrics]
            )

        return cls(build_each)


def _undefined_statistic(columns: Columns, metrics: Sequence[MetricSpecification]) -> Statistic:
    return Statistic.undefined(tuple(metric.key for metric in metrics), columns.units)


_UNDEFINED = Family(_undefined_statistic)


@dataclass(frozen=True, slots=True)
class Parameter:
    """The parameter of a metric, a number or a name, as in ``risk_at_coverage@0.8``.

    Attributes:
        name: the argument of the metric's function.
        default: the default value.
        check: returns a valid value, and raises an error otherwise.
        number: False if the value is a name.
        default_text: False if the key omits the default value, because other tools know the metric without it.
    """

    name: str
    default: Any
    check: Callable[[Any, str], Any]
    number: bool = True
    default_text: bool = True

    def text(self, value: Any) -> str:
        """Return a value as it is written after the ``@``."""
        return f"{value:g}" if self.number else str(getattr(value, "name", value))

    def parse(self, text: str, metric: str) -> Any:
        """Return the value that a text contains; the error states why a text is not valid."""
        if not self.number:
            return self.check(text, self.name)
        try:
            value = float(text)
        except ValueError:
            raise ArgumentError(f"{metric}: {self.name} must be a number, got {text!r}") from None
        return self.check(value, f"{metric}: {self.name}")


def _not_specified(*_arguments: Any, **_parameters: Any) -> NoReturn:
    raise TypeError("the metric's family requires compute, and for a metric of the curve also curve_needs")


class OperatingPoint(NamedTuple):
    """The coverage or the risk at which the interval of a discontinuous metric is read off the risk-coverage curve."""

    columns: Columns
    coverage: float | None = None
    risk: float | None = None


class Parts(NamedTuple):
    """The parts of the rows of which a metric is the lowest: a statistic with one column for each, and their scales."""

    statistic: Statistic
    scales: list[Scale]


@dataclass(frozen=True, eq=False)
class MetricSpecification:
    """One metric of the registry.

    Attributes:
        function: the function of arrays, or the object that is called with results.
        arguments: the arguments of the function, and the column that is passed as each.
        direction: "higher" or "lower", whichever is better; "neither" if there is no better direction.
        unit: the unit of the value.
        family: builds the statistic of this metric and of others with the same sums.
        compute: computes the metric from the sums of its family, which documents the arguments. Required unless the
            metric is a family of one.
        curve_needs: the quantities that a metric of the risk-coverage curve reads. Required in that family.
        operating_point: the point of the curve at which the interval of a discontinuous metric is read.
        parts: the parts of which the metric is the lowest, from which its interval is taken.
        undefined: the conditions under which the metric is undefined, in the order in which they are checked.
        undefined_at: such a condition that depends on the parameter.
        scale_at: the possible values of the metric for some rows and a parameter, if the unit does not determine them.
        debiased: the same metric without the bias of small bins; its interval is computed around this value.
        rows: the rows that the function is called with: "all", "stated" (answered, with a confidence), "bounded"
            (answered, with an interval) or "gathered" (answered, with a set).
        answered_only: True if only answered rows are evaluated, so that the value means little without coverage.
        comparison: how two systems are compared by the metric. "penalized": over all items, because a declined item
            costs. "matched": at the largest coverage that both reach, because declining more improves the metric.
            "conditional": over the answered items of each system, with both coverages named. "undirected": no winner.
            Every metric without a better direction is undirected.
        matched: computes the metric of a ranking that is limited to a coverage, see `abstain.metrics._curve`. Most
            metrics of the curve use the same function for the whole ranking. None if the parameter of a matched metric
            is its coverage.
        coverage_power: the largest possible value grows with this power of the coverage; 0 if it does not grow.
        parameter: the parameter of the metric, if it has one.
        value: the parameter's value.
        settings: further arguments of the function.
        name: the metric's name. Default: the function's name.
    """

    function: Callable[..., Any]
    arguments: Mapping[str, str]
    direction: str
    unit: str
    family: Family
    compute: Callable[..., Floats] = _not_specified
    curve_needs: Callable[[MetricSpecification], CurveNeeds] = _not_specified
    operating_point: Callable[[Columns, Any], OperatingPoint] | None = None
    parts: Callable[[Columns], Parts] | None = None
    undefined: tuple[Condition, ...] = ()
    undefined_at: Callable[[Columns, Any], Condition | None] | None = None
    scale_at: Callable[[Columns, Any], Scale] | None = None
    debiased: MetricSpecification | None = None
    rows: str = "all"
    answered_only: bool = False
    comparison: str = CONDITIONAL
    matched: Callable[[Limited, MetricSpecification], Floats] | None = None
    coverage_power: int = 0
    parameter: Parameter | None = None
    value: Any = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    name: str = ""

    def __repr__(self) -> str:
        return f"MetricSpecification({self.key})"

    def __post_init__(self) -> None:
        _validate.choice(self.direction, "direction", DIRECTIONS)
        if self.direction == NEITHER:
            object.__setattr__(self, "comparison", UNDIRECTED)
        if not self.name:
            object.__setattr__(self, "name", self.function.__name__)
        if self.parameter is not None and self.value is None:
            object.__setattr__(self, "value", self.parameter.default)

    @property
    def key(self) -> str:
        """The metric's key in results: its name and, if it has one, its parameter."""
        parameter = self.parameter
        if parameter is None or (not parameter.default_text and self.value == parameter.default):
            return self.name
        return f"{self.name}@{parameter.text(self.value)}"

    @property
    def summary(self) -> str:
        """The first line of the documentation, without its full stop."""
        text = (self.function.__doc__ or "").strip().split("\n")[0]
        return text.removeprefix("Return ").rstrip(".")

    @property
    def needs(self) -> tuple[str, ...]:
        """The columns that the metric is computed from."""
        columns = [_SOURCE_COLUMNS.get(column, (column,)) for column in self.arguments.values()]
        return tuple(dict.fromkeys(column for part in columns for column in part))

    @property
    def ranked(self) -> bool:
        """True if the metric needs a confidence."""
        return "confidence" in self.needs

    @property
    def custom(self) -> bool:
        """True if the metric is computed by an object of the user."""
        return "results" in self.needs

    @property
    def jumps(self) -> bool:
        """True if the metric jumps, as the lowest of several parts or the coverage of an operating point does."""
        return self.parts is not None or (self.operating_point is not None and self.unit == "proportion")

    @property
    def biased_by_bins(self) -> bool:
        """True if bins bias the metric upwards, more so with fewer rows, and it has no debiased form."""
        binned = self.parameter is not None and self.parameter.name == "bins"
        return binned and self.debiased is None and not self.settings.get("debiased", False)

    @property
    def ranks_declined(self) -> bool:
        """True if the metric needs the confidence of abstained rows, too."""
        return self.rows == "all" and {"confidence", "should_abstain"} <= set(self.arguments.values())

    @property
    def labelled(self) -> bool:
        """True if the metric reads labels themselves, and not only whether they match."""
        return self.family.reads_labels and bool(_LABELS & set(self.arguments.values()))

    @property
    def of_outcomes(self) -> bool:
        """True if the metric depends only on the outcome, the loss and the confidence of a row."""
        return not self.family.reads_labels and "should_abstain" not in self.needs

    @property
    def convention(self) -> str:
        """How an area is integrated."""
        return str(self.settings.get("convention", "trapezoid"))

    def in_convention(self, convention: str) -> MetricSpecification:
        """Return the same metric integrated in another convention; any other metric as it is."""
        if not self.family.has_convention:
            return self
        return replace(self, settings={"convention": _validate.choice(convention, "convention", CONVENTIONS)})

    @property
    def definition(self) -> str:
        """The page with the exact definition; the module of a user-defined metric."""
        named = self.function if hasattr(self.function, "__name__") else type(self.function)
        package, _, page = named.__module__.rpartition(".")
        if package not in ("abstain.metrics", "abstain.compat") or page not in _DEFINED_IN:
            return named.__module__
        return _DEFINED_IN[page].format(name=self.name)

    def at(self, value: Any) -> MetricSpecification:
        """Return the metric with another parameter, which may be text."""
        if self.parameter is None:
            raise ArgumentError(f"metric {self.name} takes no parameter, got @{value}")
        if isinstance(value, str):
            checked = self.parameter.parse(value, self.name)
        else:
            checked = self.parameter.check(value, self.parameter.name)
        debiased = None if self.debiased is None else replace(self.debiased, value=checked)
        return replace(self, value=checked, debiased=debiased)

    def problem(self, columns: Columns) -> Condition | None:
        """Return why the metric is undefined for these rows, or None."""
        problem = next((condition for condition in self.undefined if condition.holds(columns)), None)
        if problem is None and self.undefined_at is not None:
            return self.undefined_at(columns, self.value)
        return problem

    def scale(self, columns: Columns) -> Scale:
        """Return the possible values of the metric for these rows."""
        if self.scale_at is not None:
            scale = self.scale_at(columns, self.value)
        elif self.unit == "proportion":
            return proportion_scale(columns, self._counted(columns))
        else:
            scale = BY_UNIT.get(self.unit, Scale())
        return (
            scale
            if scale.mass is not None
            else replace(scale, mass=columns.rows_by_unit(self._counted(columns)))
        )

    def _counted(self, columns: Columns) -> Mask | slice:
        """Return the rows that the metric is computed from."""
        if self.rows == "all" and not self.answered_only:
            return slice(None)
        return columns.answered if self.rows == "all" else getattr(columns, self.rows)

    @property
    def shrinks_by_declining(self) -> bool:
        """True if a system can improve the metric by declining more items."""
        return self.direction == LOWER and self.coverage_power > 0

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameter by name; empty if there is none."""
        return {} if self.parameter is None else {self.parameter.name: self.value}

    def point(self, columns: Columns) -> float:
        """Return the value of the metric for these rows; NaN if it is undefined."""
        return self.family.build(columns, [self]).point


def specify(*conditions: Condition, **common: Any) -> Callable[..., MetricSpecification]:
    """Return a function that specifies metrics which have these conditions and fields in common."""

    def metric(function: Callable[..., Any], *further: Condition, **own: Any) -> MetricSpecification:
        return MetricSpecification(function, undefined=(*conditions, *further), **common | own)

    return metric


@np.errstate(over="ignore", invalid="ignore")  # squares and products of very large numbers overflow
def measure_metrics(columns: Columns, metrics: Sequence[MetricSpecification]) -> Statistic:
    """Return one statistic of several metrics over the same rows, one column each, in their order.

    Metrics of one family share their sums. A metric that is undefined for these rows has a column of NaN.
    """
    families: dict[Family, list[int]] = {}
    for number, metric in enumerate(metrics):
        undefined = not len(columns) or metric.problem(columns) is not None
        families.setdefault(_UNDEFINED if undefined else metric.family, []).append(number)
    if len(families) == 1:
        return next(iter(families)).build(columns, metrics)
    parts = [
        family.build(columns, [metrics[number] for number in numbers]) for family, numbers in families.items()
    ]
    order = [number for numbers in families.values() for number in numbers]
    return Statistic.joined(parts, np.argsort(order).tolist())


def metrics_of_sums(
    columns: Columns,
    metrics: Sequence[MetricSpecification],
    values: Sequence[Floats | Mask],
    sums_type: Callable[..., object],
) -> Statistic:
    """Return the statistic of metrics that are computed from the sums of `values` over rows.

    The `compute` of each metric takes a `sums_type` (the number of rows and these sums) and the metric's parameter.
    """

    def compute(*sums: Floats) -> list[Floats]:
        totals = sums_type(*sums)
        return [metric.compute(totals, **metric.parameters) for metric in metrics]

    return columns.statistic_of_sums(tuple(metric.key for metric in metrics), values, compute)
