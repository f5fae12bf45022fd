"""Operating points with intervals: selective risk, generalized risk and coverage at fixed thresholds.

Charts show them as bands. Two metrics jump from one operating point to another, so that the usual interval would be
invalid; theirs comes from the points. The interval of the coverage at a risk is the range of coverages that could have
this risk. The interval of the risk at a coverage, if few levels of confidence make the curve a step there, is the range
over all steps that the coverage could fall on.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from abstain.inference._estimate import JACKKNIFE
from abstain.inference._intervals import Replicates, simultaneous_level
from abstain.metrics.curves import curve_of, threshold_statistic
from abstain.metrics.scales import Scale, trials
from abstain.resampling import total_by

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from abstain._types import Floats, Indices, Progress
    from abstain.inference._estimate import Estimate
    from abstain.inference._intervals import Intervals
    from abstain.metrics import Columns, MetricSpecification, RiskCoverageCurve


__all__ = [
    "Points",
    "lowest_of_parts",
    "points_of",
    "read_off_points",
    "take_lowest_parts",
]

# With more pairs of unit and threshold, there are so many clusters that their sizes hardly matter.
_MOST_CELLS = 5_000_000
# Number of operating points that an interval is taken from, and of steps that a coverage may fall on.
_READ_OFF, _STEPS = 200, 3


@dataclass(frozen=True, eq=False, slots=True)
class Points:
    """Selective risk, generalized risk and coverage at thresholds: (3, thresholds) values and ends of intervals."""

    value: Floats
    low: Floats
    high: Floats

    def __repr__(self) -> str:
        return f"Points({len(self.value)} values)"

    def some(self, indices: Indices) -> Points:
        """Return the points at some of the thresholds."""
        return Points(self.value[:, indices], self.low[:, indices], self.high[:, indices])


def points_of(
    columns: Columns,
    thresholds: Floats,
    intervals: Intervals,
    *,
    simultaneous: bool = False,
    generalized: bool = True,
    progress: Progress | None = None,
) -> Points:
    """Return operating points with their intervals.

    Each interval holds at its own threshold. Simultaneous intervals have a higher level, so that they hold together.

    Args:
        columns: the rows, with one confidence.
        thresholds: confidences that occur, descending.
        intervals: how intervals are computed.
        simultaneous: compute intervals of the selective risk that hold together.
        generalized: compute intervals of the generalized risk too.
        progress: called with the number of resamples done since the last call.
    """
    count = len(thresholds)
    if intervals.interval == JACKKNIFE:  # only metrics have a bootstrap interval in addition
        no_resamples = replace(intervals.bootstrap_weights, resamples=0)
        intervals = replace(intervals, bootstrap_weights=no_resamples)
    statistic = threshold_statistic(columns, thresholds)
    replicates = intervals.replicate([statistic], progress)[statistic]
    if simultaneous:
        level = simultaneous_level(
            replicates.left_out[:, :count], intervals.jackknife_weights, intervals.level
        )
        intervals = replace(intervals, level=level)
    answered = columns.answered
    point = np.searchsorted(-thresholds, -columns.confidence[answered])
    values, scales = statistic.points, _scales(columns, point, count)
    computed = np.arange(3 * count)
    if not generalized:
        computed = np.r_[computed[:count], computed[2 * count :]]
        scales = [*scales[:count], *scales[2 * count :]]
    estimates = intervals.estimates(
        values[computed],
        Replicates(replicates.left_out[:, computed], replicates.drawn[:, computed]),
        scales,
        n=round(float(columns.weight.sum())),
    )
    low, high = np.full((2, 3 * count), np.nan)
    low[computed] = [each.low for each in estimates]
    high[computed] = [each.high for each in estimates]
    return Points(*(part.reshape(3, count) for part in (values, low, high)))


def _scales(columns: Columns, point: Indices, count: int) -> list[Scale]:
    """Return the range of both risks and of the coverage at each threshold; `point` is that of each answer."""
    largest, everything = columns.worst_loss, columns.rows_by_unit()
    total = float(everything.sum())
    coverages = [Scale(0.0, 1.0, total, mass=everything)] * count
    if not largest > 0.0:
        return [*[Scale(low=0.0)] * (2 * count), *coverages]
    answered = columns.answered
    weight, loss = columns.weight[answered] / columns.row_weight, columns.loss[answered] / largest
    kept, losses, squares = (
        np.cumsum(total_by(point, weight * part, count)[:count])
        for part in (np.ones(len(loss)), loss, loss**2)
    )
    mass = _rows_by_unit(columns, point, count)
    selective, generalized = (
        trials(base, losses, squares).tolist() for base in (kept, np.full(count, total))
    )
    return [
        *(Scale(0.0, largest, rows, mass=part) for rows, part in zip(selective, mass, strict=True)),
        *(Scale(0.0, largest, rows, mass=everything) for rows in generalized),
        *coverages,
    ]


def _rows_by_unit(columns: Columns, point: Indices, count: int) -> Iterable[Floats]:
    """Return the number of answers of each unit at each threshold."""
    answered, units = columns.answered, columns.units
    if units * count > _MOST_CELLS:
        return [columns.rows_by_unit(answered)] * count
    inside = point < count
    code = columns.cluster[answered][inside] * count + point[inside]
    cells = total_by(code, columns.weight[answered][inside] / columns.row_weight, units * count)
    return np.cumsum(cells.reshape(units, count), axis=1).T


def read_off_points(
    metrics: Sequence[MetricSpecification],
    estimates: Sequence[Estimate],
    columns: Columns,
    intervals: Intervals,
) -> list[Estimate]:
    """Return estimates; the intervals of metrics that jump between operating points come from these points."""
    replaced = list(estimates)
    steps: dict[int, list[_Step]] = {}
    for number, (metric, estimate) in enumerate(zip(metrics, estimates, strict=True)):
        if metric.operating_point is None or estimate.interval is None or intervals.interval != JACKKNIFE:
            continue
        rows, coverage, risk = metric.operating_point(columns, metric.value)
        curve = curve_of(rows)
        if coverage is not None:
            index = curve.first_reaching(coverage)
            if index is not None and _is_step(curve, index, float(rows.rows_by_unit().sum())):
                near = np.arange(max(index - _STEPS, 0), min(index + _STEPS + 1, len(curve)))
                steps.setdefault(id(rows), []).append(_Step(number, rows, curve, coverage, near))
        elif risk is not None:
            replaced[number] = _at_risk(estimate, risk, rows, curve, intervals)
    for same_rows in steps.values():
        # The points that all coverages need are evaluated once.
        needed = np.unique(np.concatenate([step.near for step in same_rows]))
        points = points_of(
            same_rows[0].rows, same_rows[0].curve.threshold[needed], intervals, generalized=False
        )
        for step in same_rows:
            near_points = points.some(np.searchsorted(needed, step.near))
            replaced[step.number] = _at_coverage(
                replaced[step.number], step.coverage, near_points, int(step.near[0])
            )
    return replaced


def take_lowest_parts(
    metrics: Sequence[MetricSpecification],
    estimates: Sequence[Estimate],
    columns: Columns,
    intervals: Intervals,
) -> list[Estimate]:
    """Return estimates; the interval of a metric that is the lowest of several parts comes from the parts."""
    replaced = list(estimates)
    for number, (metric, estimate) in enumerate(zip(metrics, estimates, strict=True)):
        if metric.parts is None or not estimate.defined or intervals.interval != JACKKNIFE:
            continue
        statistic, scales = metric.parts(columns)
        no_resamples = replace(intervals.bootstrap_weights, resamples=0)
        part_intervals = replace(intervals, bootstrap_weights=no_resamples)
        replicates = part_intervals.replicate([statistic])[statistic]
        parts, upper = (
            part_intervals.estimates(
                statistic.points,
                replicates,
                [replace(scale, chosen=together) for scale in scales],
                n=estimate.n,
            )
            for together in (1, len(scales))
        )
        replaced[number] = lowest_of_parts(estimate, parts, upper)
    return replaced


def lowest_of_parts(lowest: Estimate, parts: Sequence[Estimate], upper: Sequence[Estimate]) -> Estimate:
    """Return the lowest of several parts with an interval from theirs; the ends of `upper` hold for all of them."""
    if len(parts) == 1:
        if parts[0].interval is None:
            return lowest
        return replace(lowest, low=parts[0].low, high=parts[0].high, method=parts[0].method)
    # A part in a single cluster has no interval, and its value may be the lowest.
    low = min(part.low if part.interval else 0.0 for part in parts)
    high = min(part.high if part.interval else 1.0 for part in upper)
    method = f"the lowest ends of the intervals of {len(parts)} parts"
    return replace(lowest, low=min(low, lowest.value), high=max(high, lowest.value), method=method)


class _Step(NamedTuple):
    """An estimate of the risk at a coverage that falls on a step of a curve, and the operating points near it."""

    number: int
    rows: Columns
    curve: RiskCoverageCurve
    coverage: float
    near: Indices


def _at_coverage(estimate: Estimate, coverage: float, points: Points, first: int) -> Estimate:
    """Return the risk at a coverage, with an interval over the few steps that the coverage could fall on."""
    before = np.r_[-np.inf if first == 0 else points.low[2, 0], points.low[2, :-1]]
    possible = (points.high[2] >= coverage) & (before < coverage)
    if not 1 < possible.sum() <= _STEPS:
        return estimate
    # A step that only one cluster reaches has no interval, and does not change the ends.
    low = float(np.fmin.reduce(points.low[0, possible], initial=estimate.low))
    high = float(np.fmax.reduce(points.high[0, possible], initial=estimate.high))
    method = f"{estimate.method}, over the steps that the coverage could fall on"
    return replace(estimate, low=low, high=high, method=method, over_steps=True)


def _is_step(curve: RiskCoverageCurve, index: int, total: float) -> bool:
    """Return whether the coverage jumps at an operating point by more than it varies by chance."""
    coverage = float(curve.coverage[index])
    jump = coverage - (float(curve.coverage[index - 1]) if index else 0.0)
    return jump > 0.5 * (coverage * max(1.0 - coverage, 0.0) / total) ** 0.5


def _at_risk(
    estimate: Estimate, risk: float, columns: Columns, curve: RiskCoverageCurve, intervals: Intervals
) -> Estimate:
    """Return the coverage at a risk; its interval goes from coverages that have this risk to those that could."""
    if not len(curve):
        return estimate
    chosen = np.unique(np.linspace(0, len(curve) - 1, min(len(curve), _READ_OFF)).round().astype(np.intp))
    points = points_of(columns, curve.threshold[chosen], intervals, generalized=False)
    sure, possible = points.high[0] <= risk, points.low[0] <= risk
    low = float(points.low[2, sure].max(initial=0.0))
    high = float(points.high[2, possible].max(initial=0.0))
    method = f"{estimate.method.partition(', Wilson')[0]}, read off the curve's intervals"
    return replace(estimate, low=min(low, estimate.value), high=max(high, estimate.value), method=method)
