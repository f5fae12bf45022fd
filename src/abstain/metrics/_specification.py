"""How a metric is specified: what it needs, which way is better, when it is undefined, how it is measured.

A specification lists the conditions under which its metric is undefined, in the order in which they are looked at; the
first that holds is the reason. Their codes stand in files and in ``MetricScore.details["reason"]``, their sentences in
tables and estimates.

Most metrics are functions of a few sums over rows, so that all metrics of one family are summed once. Outcome metrics
are made of how many rows were right, wrong and abstained from, and rightly so: with guidance on which rows should be
abstained from, rows that have it fall into five cells, N1 answerable and right, N2 answerable and wrong, N3 answerable
and abstained from, N4 not answerable and answered, N5 not answerable and abstained from. What the metrics mean is said
where they are public.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from abstain import _validate, labels
from abstain.errors import ArgumentError
from abstain.metrics._columns import ratio
from abstain.metrics._risk import TOLERANCE, risk_measure
from abstain.metrics.scales import BY_UNIT, Scale, share_scale
from abstain.resampling import Statistic

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from abstain.metrics._columns import Columns
    from abstain.metrics.instruments import Instrument
    from abstain.metrics.matched import AtMatchedCoverage

    Floats = NDArray[np.float64]
    Mask = NDArray[np.bool_]
    Build = Callable[[Columns, Sequence["MetricSpecification"]], Statistic]

HIGHER, LOWER, NEITHER = DIRECTIONS = ("higher", "lower", "neither")
# How a metric treats declined items, which decides how two systems are compared by it.
PENALIZED, MATCHED, CONDITIONAL, UNDIRECTED = ("penalized", "matched", "conditional", "undirected")
# What a function of labelled answers is called with.
LABELS = {"y_true": "truth", "y_pred": "prediction", "abstained": "abstained"}

# What a column that is made from others asks of the data.
_MADE_OF = {
    "correct": ("truth", "prediction"),
    "event": ("truth",),
    "event_probability": ("prediction", "confidence"),
    "truth_number": ("truth",),
    "truth_class": ("truth",),
}
# What tells labels apart that are equally right or wrong.
_LABELS = {"truth", "prediction", "event", "event_probability", "truth_number", "truth_class", "results"}
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


# What metrics are called in sentences, tables and charts, if not by their names.
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
    """Return a metric as people write it.

    >>> metric_name("augrc"), metric_name("aurc_at_coverage@0.5"), metric_name("selective_accuracy")
    ('AUGRC', 'AURC@0.5', 'selective accuracy')
    """
    base, at, value = key.partition("@")
    return f"{_NAMES.get(base, base.replace('_', ' '))}{at}{value}"


@dataclass(frozen=True, slots=True)
class Condition:
    """A state of the rows in which a metric is undefined."""

    code: str
    sentence: str
    holds: Callable[[Columns], bool]


@dataclass(frozen=True, slots=True)
class Parameter:
    """The one number (or name) that a metric may be asked with, as in ``risk_at_coverage@0.8``.

    Attributes:
        name: the argument of the metric's function.
        default: what it is when nobody says.
        check: returns a value that is right, and raises where it is not.
        number: False where it is a name.
        default_said: False where the metric's name alone is its key at the default, because other tools know it so.
    """

    name: str
    default: Any
    check: Callable[[Any, str], Any]
    number: bool = True
    default_said: bool = True

    def text(self, value: Any) -> str:
        """Return a value as it is written after the ``@``."""
        return f"{value:g}" if self.number else str(getattr(value, "name", value))

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
        scale_at: what the metric can be for some rows and a parameter, where its unit does not say.
        debiased: the same metric without the bias of small bins, around which its interval is made.
        rows: which rows the function is called with: "all", "stated" (answered, with a confidence), "bounded"
            (answered, with an interval) or "gathered" (answered, with a set).
        answered_only: True where only answered rows are judged, so that the value means little without coverage.
        comparison: how two systems are compared by it. "penalized": over all items, because a declined item costs.
            "matched": at the largest coverage that both reach, because declining alone improves the metric.
            "conditional": over the answered items of each, with both coverages named. "undirected": no winner; every
            metric without a better direction.
        matched: computes the metric of a system that is limited to a coverage; see `abstain.metrics.matched`. None for
            a matched metric that names its own coverage.
        coverage_power: the largest possible value grows with this power of the coverage; 0 if it does not grow.
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
    scale_at: Callable[[Columns, Any], Scale] | None = None
    debiased: MetricSpecification | None = None
    rows: str = "all"
    answered_only: bool = False
    comparison: str = CONDITIONAL
    matched: AtMatchedCoverage | None = None
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
        """What the metric is called in results: its name, with its parameter where it has one."""
        asked = self.parameter
        if asked is None or (not asked.default_said and self.value == asked.default):
            return self.name
        return f"{self.name}@{asked.text(self.value)}"

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
    def labelled(self) -> bool:
        """True where a metric looks at labels themselves, and not only at whether they match."""
        matched = self.measure in (risk_measure, outcome_measure)
        return not matched and bool(_LABELS & set(self.arguments.values()))

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
            checked = self.parameter.parse(value, self.name)
        else:
            checked = self.parameter.check(value, self.parameter.name)
        debiased = None if self.debiased is None else replace(self.debiased, value=checked)
        return replace(self, value=checked, debiased=debiased)

    def problem(self, columns: Columns) -> Condition | None:
        """Return why the metric is undefined for these rows, or None."""
        found = next((condition for condition in self.undefined if condition.holds(columns)), None)
        if found is None and self.undefined_at is not None:
            return self.undefined_at(columns, self.value)
        return found

    def scale(self, columns: Columns) -> Scale:
        """Return what the metric can be for these rows."""
        if self.scale_at is not None:
            return self.scale_at(columns, self.value)
        if self.unit == "share":
            everything = self.rows == "all" and not self.answered_only
            rows = "answered" if self.rows == "all" else self.rows
            return share_scale(
                columns, np.ones(len(columns), np.bool_) if everything else getattr(columns, rows)
            )
        return BY_UNIT.get(self.unit, Scale())

    @property
    def shrinks_by_declining(self) -> bool:
        """True if a system can improve the metric by declining more items."""
        return self.direction == LOWER and self.coverage_power > 0

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


def alike(*conditions: Condition, **common: Any) -> Callable[..., MetricSpecification]:
    """Return what specifies metrics that have much in common: of a function, its own conditions, and what differs."""

    def metric(function: Callable[..., Any], *further: Condition, **own: Any) -> MetricSpecification:
        return MetricSpecification(function, undefined=(*conditions, *further), **common | own)

    return metric


def alone(build: Callable[..., Statistic]) -> Build:
    """Let every metric have a measure of its own, built from the columns and the metric's parameter."""

    def built(columns: Columns, metrics: Sequence[MetricSpecification]) -> Statistic:
        return Statistic.joined(
            [replace(build(columns, **metric.parameters), names=(metric.key,)) for metric in metrics]
        )

    return built


@np.errstate(over="ignore", invalid="ignore")  # squares and products of the largest numbers lie beyond them
def measure_metrics(columns: Columns, metrics: Sequence[MetricSpecification]) -> Statistic:
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
        parts.append(Statistic.undefined(names, columns.units) if build is None else build(columns, chosen))
    order = [place for places in families.values() for place in places]
    return Statistic.joined(parts, [order.index(place) for place in range(len(metrics))])


class OutcomeSums(NamedTuple):
    """Sums over rows, one entry per weight vector; `right` leaves out right answers where there should be none."""

    n: Floats
    answered: Floats
    correct: Floats
    right: Floats
    n1: Floats
    n2: Floats
    n3: Floats
    n4: Floats
    n5: Floats

    @property
    def guided(self) -> Floats:
        """How many rows have guidance."""
        return self.n1 + self.n2 + self.n3 + self.n4 + self.n5

    @property
    def abstention_precision(self) -> Floats:
        """How many of the abstentions were called for."""
        return ratio(self.n5, self.n3 + self.n5)

    @property
    def abstention_recall(self) -> Floats:
        """How many of the rows better left unanswered were left so."""
        return ratio(self.n5, self.n2 + self.n4 + self.n5)


def outcome_measure(columns: Columns, metrics: Sequence[MetricSpecification]) -> Statistic:
    """Return the measure of metrics whose `finish` is a function of `OutcomeSums`, all from the same sums."""
    return sums_measure(columns, metrics, outcome_columns(columns), OutcomeSums)


def sums_measure(
    columns: Columns,
    metrics: Sequence[MetricSpecification],
    values: Sequence[Floats | Mask],
    named: Callable[..., object],
) -> Statistic:
    """Return the measure of a family: `named` holds the sums of rows and values, each metric's `finish` reads them."""

    def finish(*sums: Floats) -> list[Floats]:
        totals = named(*sums)
        return [metric.finish(totals, **metric.parameters) for metric in metrics if metric.finish is not None]

    names = tuple(metric.key for metric in metrics)
    return Statistic.of_sums(
        names, values, unit=columns.cluster, units=columns.units, finish=finish, weight=columns.mass
    )


def mean_measure(name: str, values: Floats, columns: Columns) -> Statistic:
    """Return the measure of a mean over rows; NaN where no row counts."""
    return Statistic.of_sums(
        (name,),
        [values],
        unit=columns.cluster,
        units=columns.units,
        finish=lambda count, total: [ratio(total, count)],
        weight=columns.mass,
    )


def outcome_columns(columns: Columns) -> list[Mask]:
    """Return which rows count for the sums of `OutcomeSums`, but for the first of them, which counts all rows."""
    answered, declined = columns.answered, columns.abstained
    correct, guide = columns.correct == 1.0, columns.should_abstain
    hold, safe = guide == 1.0, guide == 0.0
    return [
        answered,
        correct,
        correct & ~hold,
        safe & correct,
        safe & answered & ~correct,
        safe & declined,
        hold & answered,
        hold & declined,
    ]


def coverage_of(columns: Columns) -> float:
    """Return answered / n of rows that are counted by their weight alone."""
    return float(columns.weight[columns.answered].sum() / columns.weight.sum())


def harmonic(first: Floats, second: Floats) -> Floats:
    """Return the harmonic mean: 0 where both are 0, NaN where either is undefined."""
    both = first + second
    mean = np.divide(2.0 * first * second, both, out=np.zeros(np.shape(both)), where=both > 0)
    return np.where(np.isnan(both), np.nan, mean)


NOTHING_ANSWERED = Condition(
    "no_non_abstained_predictions", "nothing was answered", lambda rows: not rows.answered.any()
)
ALL_CORRECT = Condition(
    "every_row_is_correct",
    "every item was answered correctly",
    lambda rows: bool((rows.correct == 1.0).all()),
)
NOTHING_PREDICTED = Condition(
    "no_non_abstained_predictions",
    "nothing was answered with a prediction",
    lambda rows: not rows.predicted.any(),
)
ONE_CLASS = Condition(
    "needs_at_least_two_classes_in_ground_truth",
    "the truths hold fewer than two classes",
    lambda rows: labels.classes(rows.truth)[1] < 2,
)
NO_GUIDANCE = Condition(
    "no_should_abstain_metadata",
    "no row says whether it should be abstained from: should_abstain is missing in the metadata",
    lambda rows: not rows.guided.any(),
)
NO_CONFIDENCE = Condition(
    "no_rows_with_confidence", "no answered row has a confidence", lambda rows: not rows.stated.any()
)
NOT_ALL_RANKED = Condition(
    "answered_rows_without_confidence",
    "some answered rows have no confidence to be ranked by; name another confidence",
    lambda rows: rows.unranked,
)
NOT_BINARY = Condition(
    "non_binary_labels_or_predictions",
    "some labels or predictions are neither 0 nor 1; name the positive class (--positive, positive=)",
    lambda rows: bool((rows.stated & ~rows.binary).any()),
)
POSITIVE_UNNAMED = Condition(
    "non_binary_labels_or_predictions",
    "the labels are text; name the positive class (--positive, positive=)",
    lambda rows: rows.positive_unnamed,
)
NOT_NUMBERS = Condition(
    "labels_are_not_numbers",
    "some truths or answers are text",
    lambda rows: bool((rows.predicted & np.isnan(rows.truth_number + rows.prediction_number)).any()),
)
CONSTANT = Condition(
    "constant_truth_or_prediction",
    "the truths or the answers do not vary",
    lambda rows: any(
        len(np.unique(values[rows.predicted])) < 2 for values in (rows.truth_number, rows.prediction_number)
    ),
)
NEVER_ABSTAINED = Condition(
    "no_abstentions",
    "no row with guidance was abstained from",
    lambda rows: not (rows.guided & rows.abstained).any(),
)
NOTHING_TO_DECLINE = Condition(
    "nothing_to_abstain_from",
    "no row should have been abstained from, and none was answered wrongly",
    lambda rows: (
        not (
            (rows.should_abstain == 1.0)
            | ((rows.should_abstain == 0.0) & rows.answered & (rows.correct == 0.0))
        ).any()
    ),
)
NOTHING_TO_ANSWER = Condition(
    "nothing_to_answer",
    "no row with guidance should have been answered",
    lambda rows: not (rows.should_abstain == 0.0).any(),
)
ONE_GUIDANCE = Condition(
    "one_kind_of_row",
    "all rows with guidance and a confidence are of one kind, and an AUROC compares two",
    lambda rows: len(np.unique(rows.should_abstain[rows.guided & ~np.isnan(rows.confidence)])) < 2,
)
ONE_CORRECTNESS = Condition(
    "one_kind_of_row",
    "the answers are all right or all wrong, and an AUROC compares two kinds",
    lambda rows: len(np.unique(rows.correct[rows.stated])) < 2,
)
ONE_EVENT = Condition(
    "one_kind_of_row",
    "the truths are all positive or all negative, and an AUROC compares two kinds",
    lambda rows: len(np.unique(rows.event[rows.stated])) < 2,
)
NO_POSITIVE_ANSWER = Condition(
    "no_positive_answers",
    "nothing was answered with the positive label (1, unless another is named)",
    lambda rows: not ((rows.prediction_is_positive == 1.0) & rows.answered).any(),
)
NO_POSITIVE_TRUTH = Condition(
    "no_positive_truths",
    "no answered row has the positive label (1, unless another is named) as its truth",
    lambda rows: not ((rows.event == 1.0) & rows.answered).any(),
)
NO_INTERVALS = Condition(
    "no_intervals",
    "no answered row has an interval; name the columns of its bounds (--low and --high, low= and high=)",
    lambda rows: not rows.bounded.any(),
)
CONSTANT_BOUNDED = Condition(
    "constant_truth",
    "the truths do not vary, and the criterion divides by their range",
    lambda rows: len(np.unique(rows.truth_number[rows.bounded])) < 2,
)
SINGLE_INTERVAL = Condition(
    "single_interval", "there is one interval, and it depends on nothing", lambda rows: rows.bounded.sum() < 2
)
NO_SETS = Condition(
    "no_sets",
    "no answered row has a set; name the column of it (--set, set=)",
    lambda rows: not rows.gathered.any(),
)
NO_LOSS = Condition(
    "no_loss",
    "the loss that was asked for is not defined for these labels",
    lambda rows: rows.lossless,
)

NOT_RIGHT_OR_WRONG = Condition(
    "losses_not_0_or_1",
    "some losses are neither 0 nor 1, and accuracy is the share of right answers; ask with the loss zero_one",
    lambda rows: not np.isin(rows.loss[rows.answered], (0.0, 1.0)).all(),
)
ONE_LOSS = Condition(
    "one_loss",
    "all answers have the same loss, so that no ranking is better than another",
    lambda rows: len(np.unique(rows.loss[rows.answered & (rows.weight > 0.0)])) < 2,
)


def unreached(rows: Columns, coverage: float) -> Condition | None:
    """Return the condition of a coverage that these rows cannot reach, or None."""
    highest = rows.highest_coverage
    if highest >= coverage - TOLERANCE:
        return None
    return _stated("coverage_not_reached", f"coverage {coverage:g} cannot be reached: Cmax is {highest:.3f}")


def not_totals(rows: Columns, instrument: Instrument) -> Condition | None:
    """Return the condition of rows that are items of an instrument and not its totals, or None."""
    if rows.scale in (None, instrument.total_scale):
        return None
    return _stated("not_totals", f"the rows are not totals of {instrument.name}; make them with total_items")


def _stated(code: str, sentence: str) -> Condition:
    return Condition(code, sentence, lambda _: True)
