"""Scales: the possible values of a metric, which determine how `abstain.inference` computes its confidence interval."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from abstain import labels

if TYPE_CHECKING:
    from collections.abc import Callable

    from abstain._types import Floats, Mask
    from abstain.metrics._columns import Columns


__all__ = ["BY_UNIT", "DEPENDENCE", "WIDTH_CRITERION", "Scale", "costly_scale", "trials", "units_of"]


@dataclass(frozen=True, slots=True)
class Scale:
    """The possible values of a metric, which determine the scale on which its confidence interval is computed.

    Attributes:
        low: the smallest possible value; minus infinity if there is none.
        high: the largest possible value; infinity if there is none.
        trials: the largest effective number of independent rows. If clusters agree by chance, the interval does not
            become narrower than for independent rows.
        power: the metric grows with this power of the proportion of wrong answers; 2 for areas of a perfect ranking.
        worst: maps a proportion of wrong rows to the part of the range that the metric reaches if these rows are at the
            worst place. Default: the proportion itself.
        falls: True if wrong rows make the metric smaller, so that `worst` applies to its lower end.
        units: the effective number of units, each as large as the largest. If all rows agree, a large unit gives no
            more information than a small one. None if every cluster counts as one unit.
        least_error: the smallest standard error that is used, because wrong rows may be missing from the sample.
        chosen: the number of parts of which the metric is the lowest. The lowest is biased downwards, so the upper end
            is computed as for all parts together.
        upper_only: True if the metric is positive by chance, so that only the upper end can be estimated.
        refused: why there is no interval; empty if there is one.
        fixed: True if the metric has only one possible value, as the coverage of a source that cannot abstain.
    """

    low: float = -math.inf
    high: float = math.inf
    trials: float = math.inf
    power: float = 1.0
    worst: Callable[[float], float] | None = None
    falls: bool = False
    units: float | None = None
    least_error: float = 0.0
    chosen: int = 1
    upper_only: bool = False
    refused: str = ""
    fixed: bool = False

    @property
    def bounded(self) -> bool:
        """True if both ends are finite."""
        return math.isfinite(self.low) and math.isfinite(self.high)

    def is_end(self, value: float) -> bool:
        """Return whether a value is the smallest or the largest possible one, up to rounding errors.

        >>> scale = Scale(0.0, 1.0, power=2.0)
        >>> scale.is_end(0.0), scale.is_end(0.5), scale.is_end(math.nextafter(1.0, 0.0))
        (True, False, True)
        """
        if not self.bounded or self.low == self.high:
            return value in (self.low, self.high)
        position = ((value - self.low) / (self.high - self.low)) ** (1.0 / self.power)
        return position * (1.0 - position) <= 0.0


# The scale of a metric by its unit. The scales of proportions and losses also depend on the rows, see below.
BY_UNIT = {
    **dict.fromkeys(("unit of the truth", "nats", "classes"), Scale(low=0.0)),
    "correlation": Scale(-1.0, 1.0),
}


WIDTH_CRITERION = Scale(
    refused="no interval: it divides by the range of the truths, which grows with their number"
)
# The dependence of coverage on width is at most 1, and positive by chance.
DEPENDENCE = Scale(0.0, 1.0, upper_only=True)


def proportion_scale(columns: Columns, counted: Mask, *, parts: int = 1) -> Scale:
    """Return the scale of a proportion of the rows that are `counted`, or of the lowest proportion among `parts`."""
    trials = float(columns.weight[counted].sum()) / parts
    return Scale(0.0, 1.0, trials, units=_units(columns, counted), chosen=parts)


def coverage_scale(columns: Columns, _value: Any) -> Scale:
    """Return the scale of a coverage, which is fixed if the source cannot abstain."""
    proportions = proportion_scale(columns, np.ones(len(columns), np.bool_))
    return replace(proportions, fixed=not columns.may_abstain)


def mean_scale(columns: Columns, values: Floats, counted: Mask) -> Scale:
    """Return the scale of a mean of numbers in [0, 1], one per counted row."""
    weight = columns.weight[counted]
    return Scale(0.0, 1.0, _trials(values, weight), units=_units(columns, counted))


def auroc_scale(columns: Columns, positive: Floats, counted: Mask) -> Scale:
    """Return the scale of an AUROC; its effective number of rows is about the harmonic mean of both class sizes."""
    weight = columns.weight[counted]
    positives = float(weight @ positive)
    negatives = float(weight.sum()) - positives
    pairs = positives + negatives
    trials = 2.0 * positives * negatives / pairs if pairs else 0.0
    return Scale(0.0, 1.0, max(trials, 1.0), units=_units(columns, counted))


def calibration_scale(columns: Columns, _value: Any) -> Scale:
    """Return the scale of a calibration error in [0, 1], which is positive by chance."""
    counted = columns.stated
    weight = columns.weight[counted]
    count = max(float(weight.sum()), 1.0)
    wrong = 1.0 - float(columns.correct[counted] @ weight) / count
    return Scale(
        0.0,
        1.0,
        count,
        units=_units(columns, counted),
        least_error=_least_error(wrong, count),
        upper_only=True,
    )


def costly_scale(wrong: float, count: float, cost: float) -> Scale:
    """Return the scale of a mean without an upper end that depends mostly on a few costly rows.

    Args:
        wrong: the proportion of wrong rows.
        count: the number of rows.
        cost: the additional cost of a wrong row.
    """
    return Scale(low=0.0, least_error=cost * _least_error(wrong, max(count, 1.0)))


def _least_error(proportion: float, count: float) -> float:
    """Return the standard error of a proportion with the variance of one additional different row."""
    return math.sqrt((proportion * (1.0 - proportion) + 1.0 / count) / count)


def risk_scale(kind: str, *, power: float = 1.0) -> Callable[[Columns, Any], Scale]:
    """Return a function that returns the scale of a selective metric: an "area", a "generalized" area, or a "risk".

    The upper end is the value if every answer has the largest loss: that loss for a risk, times the coverage for an
    area, and times half of its square for a generalized area.
    """

    def scale(columns: Columns, coverage: Any) -> Scale:
        reachable, largest = columns.highest_coverage, columns.worst_loss
        if not reachable or not largest > 0.0:
            return Scale(low=0.0)
        reach = reachable if coverage is None else min(float(coverage), reachable)
        ceiling = {"area": reach, "generalized": reach * reach / 2.0, "risk": 1.0}[kind]
        rows, units = columns.compute_once("risk_scale", lambda: _effective_sizes(columns, largest))
        return Scale(
            0.0,
            largest * ceiling,
            rows * reach / reachable,
            power=power,
            worst=lambda proportion: _WORST[kind](min(proportion * reachable / reach, 1.0)) ** power,
            units=units,
        )

    return scale


def accuracy_area_scale(columns: Columns, _value: Any) -> Scale:
    """Return the scale of an area under accuracy, whose upper end is the value if every answer is right."""
    reachable = columns.highest_coverage
    if not reachable:
        return Scale(low=0.0)
    answered = columns.answered
    rows = _trials(columns.loss[answered], columns.weight[answered])
    return Scale(0.0, reachable, rows, worst=_WORST["area"], falls=True, units=_units(columns, answered))


def balanced_area_scale(columns: Columns, value: Any) -> Scale:
    """Return the scale of an area in which every true class has the same weight, with the effective number of rows."""
    label, classes = labels.classes(columns.truth)
    size = np.bincount(label, weights=columns.weight, minlength=classes)
    weight = columns.weight / np.maximum(size, np.finfo(np.float64).tiny)[label]
    # Kish's effective number of rows.
    squares = float(weight @ weight)
    scaled = weight * (float(weight.sum()) / squares if squares else 0.0)
    return risk_scale("area")(replace(columns, weight=scaled, shared={}), value)


def _effective_sizes(columns: Columns, largest: float) -> tuple[float, float | None]:
    """Return the effective number of rows and of units of the answered rows, which all their metrics share."""
    answered = columns.answered
    return _trials(columns.loss[answered] / largest, columns.weight[answered]), _units(columns, answered)


# The part of the range that is reached if a proportion of the answers is wrong, all of them the most confident ones.
_WORST: dict[str, Callable[[float], float]] = {
    "area": lambda proportion: proportion * (1.0 - math.log(proportion)) if proportion > 0.0 else 0.0,
    "generalized": lambda proportion: 2.0 * proportion - proportion * proportion,
    "risk": lambda proportion: proportion,
}


def _trials(values: Floats, weight: Floats) -> float:
    moments = (weight.sum(), values @ weight, values**2 @ weight)
    return float(trials(*(np.array([moment]) for moment in moments))[0])


def trials(count: Floats, total: Floats, squares: Floats) -> Floats:
    """Return the number of 0/1 rows that have the same variance as the mean of numbers in [0, 1].

    The less the numbers vary, the larger it is.

    Args:
        count: the number of values in each mean.
        total: the sum of the values.
        squares: the sum of their squares.

    >>> halves = np.array([50.0, 50.0])                     # 50 each of 0 and 1, then of 0.2 and 0.8
    >>> trials(2 * halves, halves, np.array([50.0, 34.0])).round(1)
    array([100. , 277.8])
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = total / count
        # One additional row that is completely wrong would add at least this variance.
        variance = np.maximum(squares / count - mean**2, 1.0 / count)
        rows = count * mean * (1.0 - mean) / variance
    return np.where((mean > 0.0) & (mean < 1.0), rows, np.maximum(count, 1.0))


def _units(columns: Columns, counted: Mask) -> float | None:
    if columns.units == 1:
        return None
    return units_of(columns.mass_by_unit(counted))


def units_of(mass: Floats) -> float | None:
    """Return the effective number of units with these masses, each as large as the largest; None if all are 0.

    >>> units_of(np.array([2.0, 2.0, 2.0])), units_of(np.array([4.0, 1.0, 1.0]))
    (3.0, 1.5)
    """
    largest = float(mass.max(initial=0.0))
    return float(mass.sum()) / largest if largest else None
