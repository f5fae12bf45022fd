"""Scales: what a metric can be, which decides how its interval is made. What an interval is, is known elsewhere."""

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
    """What a metric can be, and so the scale on which its interval is made.

    Attributes:
        low: the least that it can be; minus infinity where it has no end.
        high: the most; infinity where it has no end.
        trials: how many independent rows its value is worth at most: clusters that agree by chance make no interval
            narrower than the rows alone would.
        power: with which power of the share of wrong answers the metric grows; 2 for areas of a perfect ranking.
        worst: the part of its range that it would reach if a share of the rows went wrong at the worst place; that
            share itself when left out.
        falls: True where wrong rows make the metric fall, so that `worst` is said of its lower end.
        units: how many units the rows are worth, each as large as the largest: where all of them agree, a large one
            hides as much as several small ones. None where every cluster counts.
        least_error: the standard error is taken to be at least this: what rows that were not seen to go wrong hide.
        chosen: of how many parts it is the lowest; chance makes that too low, so that its upper end is as far as for
            all of them together.
        upper_only: True where chance alone makes the metric positive, so that only its upper end can be estimated.
        refused: why there is no interval; empty if there is one.
        fixed: True where the metric cannot be anything else, as the coverage of a source that cannot abstain.
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
        """True where both ends are known."""
        return math.isfinite(self.low) and math.isfinite(self.high)

    def is_end(self, value: float) -> bool:
        """True where a value is as low or as high as it can be, as far as numbers on the scale can tell.

        >>> scale = Scale(0.0, 1.0, power=2.0)
        >>> scale.is_end(0.0), scale.is_end(0.5), scale.is_end(math.nextafter(1.0, 0.0))
        (True, False, True)
        """
        if not self.bounded or self.low == self.high:
            return value in (self.low, self.high)
        position = ((value - self.low) / (self.high - self.low)) ** (1.0 / self.power)
        return position * (1.0 - position) <= 0.0


# What one unit of a metric says of its ends; a share and a loss say more, see below.
BY_UNIT = {
    **dict.fromkeys(("unit of the truth", "nats", "classes"), Scale(low=0.0)),
    "correlation": Scale(-1.0, 1.0),
}


# It divides by the range of the truths, which is wider the more of them there are.
WIDTH_CRITERION = Scale(
    refused="no interval: it divides by the range of the truths, which grows with their number"
)
# How far coverage depends on width is at most 1, and above 0 by chance alone.
DEPENDENCE = Scale(0.0, 1.0, upper_only=True)


def proportion_scale(columns: Columns, counted: Mask, *, parts: int = 1) -> Scale:
    """Return the scale of a share of the rows that are `counted`, or of the least share of so many parts of them."""
    trials = float(columns.weight[counted].sum()) / parts
    return Scale(0.0, 1.0, trials, units=_units(columns, counted), chosen=parts)


def coverage_scale(columns: Columns, _value: Any) -> Scale:
    """Return the scale of how much is answered, which cannot vary where the source cannot abstain."""
    proportions = proportion_scale(columns, np.ones(len(columns), np.bool_))
    return replace(proportions, fixed=not columns.may_abstain)


def mean_scale(columns: Columns, values: Floats, counted: Mask) -> Scale:
    """Return the scale of a mean of numbers in [0, 1], one per row that is counted."""
    weight = columns.weight[counted]
    return Scale(0.0, 1.0, _trials(values, weight), units=_units(columns, counted))


def auroc_scale(columns: Columns, positive: Floats, counted: Mask) -> Scale:
    """Return the scale of an AUROC: it is worth about the harmonic mean of both counts, which the smaller one rules."""
    weight = columns.weight[counted]
    positives = float(weight @ positive)
    negatives = float(weight.sum()) - positives
    pairs = positives + negatives
    trials = 2.0 * positives * negatives / pairs if pairs else 0.0
    return Scale(0.0, 1.0, max(trials, 1.0), units=_units(columns, counted))


def calibration_scale(columns: Columns, _value: Any) -> Scale:
    """Return the scale of a calibration error in [0, 1], which noise alone makes positive."""
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
    """Return the scale of a mean without an end that rare rows rule.

    Args:
        wrong: the share of rows that went wrong.
        count: how many rows there are.
        cost: how much more a row costs that goes wrong.
    """
    return Scale(low=0.0, least_error=cost * _least_error(wrong, max(count, 1.0)))


def _least_error(proportion: float, count: float) -> float:
    """The standard error of a share, were one row more to come out otherwise."""
    return math.sqrt((proportion * (1.0 - proportion) + 1.0 / count) / count)


def risk_scale(kind: str, *, power: float = 1.0) -> Callable[[Columns, Any], Scale]:
    """Return what gives the scale of a selective metric: an "area", a "generalized" area, or a "risk".

    Its range ends where every answer is as wrong as it can be: at that loss, times the coverage for an area, and times
    half of its square for a generalized one.
    """

    def scale(columns: Columns, coverage: Any) -> Scale:
        reachable, largest = columns.highest_coverage, columns.worst_loss
        if not reachable or not largest > 0.0:
            return Scale(low=0.0)
        reach = reachable if coverage is None else min(float(coverage), reachable)
        ceiling = {"area": reach, "generalized": reach * reach / 2.0, "risk": 1.0}[kind]
        worth, units = columns.once("risk_scale", lambda: _worth(columns, largest))
        return Scale(
            0.0,
            largest * ceiling,
            worth * reach / reachable,
            power=power,
            worst=lambda proportion: _WORST[kind](min(proportion * reachable / reach, 1.0)) ** power,
            units=units,
        )

    return scale


def accuracy_area_scale(columns: Columns, _value: Any) -> Scale:
    """Return the scale of an area under accuracy, which ends where every answer is right."""
    reachable = columns.highest_coverage
    if not reachable:
        return Scale(low=0.0)
    answered = columns.answered
    worth = _trials(columns.loss[answered], columns.weight[answered])
    return Scale(0.0, reachable, worth, worst=_WORST["area"], falls=True, units=_units(columns, answered))


def balanced_area_scale(columns: Columns, value: Any) -> Scale:
    """Return the scale of an area in which every true class counts alike: rows are worth as many as equal ones are."""
    label, classes = labels.classes(columns.truth)
    size = np.bincount(label, weights=columns.weight, minlength=classes)
    weight = columns.weight / np.maximum(size, np.finfo(np.float64).tiny)[label]
    # Kish's effective number of rows.
    squares = float(weight @ weight)
    worth = weight * (float(weight.sum()) / squares if squares else 0.0)
    return risk_scale("area")(replace(columns, weight=worth, shared={}), value)


def _worth(columns: Columns, largest: float) -> tuple[float, float | None]:
    """How many trials and how many units the losses of answered rows are worth; the same for all metrics of them."""
    answered = columns.answered
    return _trials(columns.loss[answered] / largest, columns.weight[answered]), _units(columns, answered)


# The part of the range that is reached where a share of what is answered is wrong, all of it at the top.
_WORST: dict[str, Callable[[float], float]] = {
    "area": lambda proportion: proportion * (1.0 - math.log(proportion)) if proportion > 0.0 else 0.0,
    "generalized": lambda proportion: 2.0 * proportion - proportion * proportion,
    "risk": lambda proportion: proportion,
}


def _trials(values: Floats, weight: Floats) -> float:
    moments = (weight.sum(), values @ weight, values**2 @ weight)
    return float(trials(*(np.array([moment]) for moment in moments))[0])


def trials(count: Floats, total: Floats, squares: Floats) -> Floats:
    """Return how many rows of right or wrong means of numbers in [0, 1] are worth: more where the numbers vary less.

    Args:
        count: how many numbers each mean is of.
        total: their sum.
        squares: the sum of their squares.

    >>> halves = np.array([50.0, 50.0])                     # 50 each of 0 and 1, then of 0.2 and 0.8
    >>> trials(2 * halves, halves, np.array([50.0, 34.0])).round(1)
    array([100. , 277.8])
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = total / count
        # One row more could have gone wrong altogether, and that alone would make this much variance.
        variance = np.maximum(squares / count - mean**2, 1.0 / count)
        worth = count * mean * (1.0 - mean) / variance
    return np.where((mean > 0.0) & (mean < 1.0), worth, np.maximum(count, 1.0))


def _units(columns: Columns, counted: Mask) -> float | None:
    if columns.units == 1:
        return None
    return units_of(columns.mass_by_unit(counted))


def units_of(mass: Floats) -> float | None:
    """Return how many units rows are worth that have this much mass in each; None where there is none.

    >>> units_of(np.array([2.0, 2.0, 2.0])), units_of(np.array([4.0, 1.0, 1.0]))
    (3.0, 1.5)
    """
    largest = float(mass.max(initial=0.0))
    return float(mass.sum()) / largest if largest else None
