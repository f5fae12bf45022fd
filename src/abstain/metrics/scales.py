"""Scales: the possible values of a metric, which determine how `abstain.inference` computes its confidence interval."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from abstain import labels
from abstain.resampling import total_by

if TYPE_CHECKING:
    from collections.abc import Callable

    from abstain._types import Floats, Indices, Mask
    from abstain.metrics._columns import Columns, Rows


__all__ = ["BY_UNIT", "WIDTH_CRITERION", "Scale", "costly_scale", "trials", "units_of"]


@dataclass(frozen=True, slots=True)
class Scale:
    """The possible values of a metric, which determine the scale on which its confidence interval is computed.

    Attributes:
        low: the smallest possible value; minus infinity if there is none.
        high: the largest possible value; infinity if there is none.
        trials: the largest effective number of independent rows. If clusters agree by chance, the interval does not
            become narrower than for independent rows.
        power: the metric grows with this power of the proportion of wrong answers; 2 for areas of a perfect ranking.
        mass: the number of rows of each unit that the metric counts. It gives the degrees of freedom, and how many
            independent rows the clusters are worth as long as few of them differ. None if it is unknown.
        least_error: the smallest standard error that is used, because wrong rows may be missing from the sample.
        unseen: how much one more wrong row would change the metric, if the sample has fewer than four of them. It
            widens differences, whose spread does not show the cost of wrong rows that are missing.
        chosen: the number of parts for which the upper end holds together, because the lowest of them is chosen.
        upper_only: True if the metric is positive by chance, so that only the upper end can be estimated.
        refused: why there is no interval; empty if there is one.
        fixed: True if the metric has only one possible value, as the coverage of a source that cannot abstain.
        largest: the largest value in any sample, if `high` is the largest value for the answer rate of this sample.
    """

    low: float = -math.inf
    high: float = math.inf
    trials: float = math.inf
    power: float = 1.0
    mass: Floats | None = field(default=None, repr=False, compare=False)
    least_error: float = 0.0
    unseen: float = 0.0
    chosen: int = 1
    upper_only: bool = False
    refused: str = ""
    fixed: bool = False
    largest: float = math.nan

    @property
    def bounded(self) -> bool:
        """True if both ends are finite."""
        return math.isfinite(self.low) and math.isfinite(self.high)

    @property
    def units(self) -> float | None:
        """The effective number of units, each as large as the largest; None if it is unknown."""
        return None if self.mass is None else units_of(self.mass)


# With this many wrong rows, a sample shows what they cost.
_ENOUGH_WRONG = 4.0
_ROUNDING = 1e-9
# The scale of a metric by its unit. The scales of proportions and losses also depend on the rows, see below.
BY_UNIT = {
    **dict.fromkeys(("unit of the truth", "nats", "classes"), Scale(low=0.0)),
    "correlation": Scale(-1.0, 1.0),
}


WIDTH_CRITERION = Scale(
    refused="no interval: it divides by the range of the truths, which grows with their number"
)


def dependence_scale(rows: Rows, counted: Mask | slice = slice(None)) -> Scale:
    """Return the scale of the dependence of coverage on width, which is at most 1 and positive by chance."""
    return Scale(0.0, 1.0, mass=rows.rows_by_unit(counted), upper_only=True)


def proportion_scale(rows: Rows, counted: Mask | slice = slice(None)) -> Scale:
    """Return the scale of a proportion of the rows that are `counted`."""
    mass = rows.rows_by_unit(counted)
    return Scale(0.0, 1.0, float(mass.sum()), mass=mass)


def part_scale(rows: Rows, count: float, part: Mask | None) -> Scale:
    """Return the scale of the proportion of a part with a weight; None if its rows are also in other parts."""
    if part is not None:
        return proportion_scale(rows, part)
    return replace(proportion_scale(rows), trials=count / rows.row_weight)


def gap_scale(rows: Rows, part: Indices, level: float, counted: Mask | slice = slice(None)) -> Scale:
    """Return the scale of the mean distance of the coverage of parts from a level, which is positive by chance."""
    parts = max(len(np.unique(part[counted][rows.weight[counted] > 0.0])), 1)
    mass = rows.rows_by_unit(counted)
    # A metric of several parts is treated as having as many rows as one part.
    return Scale(0.0, max(level, 1.0 - level), float(mass.sum()) / parts, mass=mass, upper_only=True)


def set_size_scale(rows: Rows, size: Floats, counted: Mask | slice = slice(None)) -> Scale:
    """Return the scale of the mean of set sizes, which ends at the largest size that occurs."""
    largest = float(size.max(initial=0.0, where=rows.weight[counted] > 0.0))
    return mean_scale(rows, size, counted, high=largest or 1.0)


def proportion_of(select: Callable[[Columns], Mask]) -> Callable[[Columns, Any], Scale]:
    """Return a function that returns the scale of a proportion of the rows that `select` returns."""
    return lambda columns, _value: proportion_scale(columns, select(columns))


def coverage_scale(columns: Columns, _value: Any) -> Scale:
    """Return the scale of a coverage, which is fixed if the source cannot abstain."""
    return replace(proportion_scale(columns), fixed=not columns.may_abstain)


def mean_scale(
    rows: Rows,
    values: Floats,
    counted: Mask | slice = slice(None),
    *,
    low: float = 0.0,
    high: float = 1.0,
) -> Scale:
    """Return the scale of a mean of numbers from `low` to `high`, one per counted row."""
    trials = _trials((values - low) / (high - low), rows.weight[counted] / rows.row_weight)
    return Scale(low, high, trials, mass=rows.rows_by_unit(counted))


def auroc_scale(columns: Columns, positive: Floats, counted: Mask, *, low: float = 0.0) -> Scale:
    """Return the scale of an AUROC; its effective number of rows is about the harmonic mean of both class sizes.

    The rows of the rarer class determine how uncertain it is, so only these are counted by cluster.

    Args:
        columns: the rows.
        positive: 1 for a positive row and 0 for a negative one, for the counted rows. A loss from 0 to 1 counts as a
            part of a positive row.
        counted: the rows that are ranked.
        low: the smallest possible value; -1 if the metric is ``2 * AUROC - 1``.
    """
    weight = columns.weight[counted] / columns.row_weight
    positives = float(weight @ positive)
    negatives = float(weight.sum()) - positives
    pairs = positives + negatives
    trials = 2.0 * positives * negatives / pairs if pairs else 0.0
    rarer = positive if positives <= negatives else 1.0 - positive
    mass = total_by(columns.cluster[counted], weight * rarer, columns.units)
    return Scale(low, 1.0, max(trials, 1.0), mass=mass)


def rejection_scale(columns: Columns, _value: Any) -> Scale:
    """Return the scale of a prediction rejection ratio, which for 0/1 losses and AUGRC is ``2 * AUROC - 1``."""
    answered, largest = columns.answered, columns.worst_loss
    return auroc_scale(columns, columns.loss[answered] / (largest or 1.0), answered, low=-1.0)


def calibration_scale(columns: Columns, _value: Any) -> Scale:
    """Return the scale of a calibration error in [0, 1], which is positive by chance."""
    counted = columns.stated
    mass, weight = columns.rows_by_unit(counted), columns.weight[counted]
    count = max(float(mass.sum()), 1.0)
    total = float(weight.sum())
    wrong = 1.0 - float(columns.correct[counted] @ weight) / total if total else 1.0
    least, unseen = _least_error(wrong, count), unseen_cost(wrong, count, 1.0)
    return Scale(0.0, 1.0, count, mass=mass, least_error=least, unseen=unseen, upper_only=True)


def costly_scale(wrong: float, count: float, cost: float) -> Scale:
    """Return the scale of a mean without an upper end that depends mostly on a few costly rows.

    Args:
        wrong: the proportion of wrong rows.
        count: the number of rows.
        cost: the additional cost of a wrong row.
    """
    count = max(count, 1.0)
    return Scale(
        low=0.0, least_error=cost * _least_error(wrong, count), unseen=unseen_cost(wrong, count, cost)
    )


def unseen_cost(wrong: float, count: float, cost: float) -> float:
    """Return how much one more wrong row would change a mean; less if there are wrong rows, and 0 if there are four.

    >>> unseen_cost(0.0, 50, 2.0), unseen_cost(0.02, 50, 2.0), unseen_cost(0.5, 50, 2.0)
    (0.04, 0.03, 0.0)
    """
    missing = 1.0 - wrong * count / _ENOUGH_WRONG
    return cost / count * missing if missing > _ROUNDING else 0.0


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
        requested = 1.0 if coverage is None else float(coverage)
        reach = min(requested, reachable)
        rows, mass = columns.compute_once("risk_scale", lambda: _effective_sizes(columns, largest))
        count, wrong = columns.compute_once(
            f"wrong answers up to {reach!r}",
            lambda: _count_wrong(columns, largest, reach),
            by_confidence=True,
        )
        high = largest * _CEILINGS[kind](reach)
        return Scale(
            0.0,
            high,
            rows * reach / reachable,
            power=power,
            mass=mass,
            unseen=unseen_cost(wrong, count, high),
            largest=largest * _CEILINGS[kind](requested),
        )

    return scale


def answers_up_to(columns: Columns, coverage: float) -> Mask:
    """Return which rows are answered up to the first operating point with at least a coverage."""
    answered = columns.answered
    if columns.unranked or coverage >= columns.highest_coverage:
        return answered
    rank, levels = columns.ranks
    reached = np.cumsum(np.bincount(rank, weights=columns.weight[answered], minlength=len(levels)))
    last = np.searchsorted(reached, coverage * float(columns.weight.sum()))
    kept = answered.copy()
    kept[answered] = rank <= last
    return kept


def _count_wrong(columns: Columns, largest: float, coverage: float) -> tuple[float, float]:
    """Return the number of answers up to a coverage, at least 1, and the proportion that are wrong."""
    kept = answers_up_to(columns, coverage - 1e-9)
    weight = columns.weight[kept] / columns.row_weight
    count = max(float(weight.sum()), 1.0)
    return count, float(columns.loss[kept] @ weight) / (largest * count)


# The largest value of a selective metric up to a coverage, if the largest loss is 1.
_CEILINGS: dict[str, Callable[[float], float]] = {
    "area": lambda coverage: coverage,
    "generalized": lambda coverage: coverage * coverage / 2.0,
    "risk": lambda _coverage: 1.0,
}


def accuracy_area_scale(columns: Columns, _value: Any) -> Scale:
    """Return the scale of an area under accuracy, which is 1 if every item is answered correctly."""
    # The coverage is known exactly, so the difference of two areas is that of the areas under risk.
    unseen = risk_scale("area")(columns, None).unseen
    return replace(proportion_scale(columns), mass=columns.rows_by_unit(columns.answered), unseen=unseen)


def balanced_area_scale(columns: Columns, value: Any) -> Scale:
    """Return the scale of an area in which every true class has the same weight, with the effective number of rows."""
    return risk_scale("area")(replace(columns, **balance_classes(columns), shared={}), value)


def balanced_proportion_scale(columns: Columns, counted: Mask | slice = slice(None)) -> Scale:
    """Return the scale of a mean of proportions in which every true class has the same weight."""
    balanced = replace(columns, **balance_classes(columns, counted), shared={})
    return replace(proportion_scale(balanced, counted), mass=columns.rows_by_unit(counted))


def balance_classes(columns: Columns, counted: Mask | slice = slice(None)) -> dict[str, Any]:
    """Return weights that give every true class the same total weight, and sum to Kish's effective number of rows."""
    label, classes = labels.classes(columns.truth)
    rows = columns.weight / columns.row_weight
    size = np.bincount(label[counted], weights=rows[counted], minlength=classes)
    part = np.divide(1.0, size, out=np.zeros(classes), where=size > 0.0)[label]
    total, squares = (float((power * rows)[counted].sum()) for power in (part, part**2))
    return {"weight": part * rows * (total / squares if squares else 0.0), "row_weight": 1.0}


def _effective_sizes(columns: Columns, largest: float) -> tuple[float, Floats]:
    """Return the effective number of the answered rows, which all their metrics share, and the rows of each unit."""
    answered = columns.answered
    weight = columns.weight[answered] / columns.row_weight
    return _trials(columns.loss[answered] / largest, weight), columns.rows_by_unit(answered)


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
    # If all values are 0 or all are 1, rounding may give another mean.
    return np.where((mean > _ROUNDING) & (mean < 1.0 - _ROUNDING), rows, np.maximum(count, 1.0))


def units_of(mass: Floats) -> float | None:
    """Return the effective number of units with these masses, each as large as the largest; None if all are 0.

    >>> units_of(np.array([2.0, 2.0, 2.0])), units_of(np.array([4.0, 1.0, 1.0]))
    (3.0, 1.5)
    """
    largest = float(mass.max(initial=0.0))
    return float(mass.sum()) / largest if largest else None
