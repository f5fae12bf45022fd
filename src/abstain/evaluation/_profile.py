"""The profile of a system: the data of its charts.

A profile has the risk-coverage curve: its operating points with the interval of the risk at each threshold, the curves
of a perfect and of a random ranking, the differences between the confidences and the best of them, and the reliability
of those that may be probabilities. Intervals are computed as for the metrics.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from abstain._export import columns_frame
from abstain._units import unit_of
from abstain.evaluation._differences import Difference
from abstain.inference import holm, p_value, subtract
from abstain.inference.points import points_of
from abstain.losses import SHARES
from abstain.metrics import measure_metrics, reliability_curve
from abstain.metrics.curves import curve_of, optimal_curve
from abstain.metrics.registry import METRICS
from abstain.thresholds import guaranteed_thresholds

if TYPE_CHECKING:
    from collections.abc import Mapping

    from abstain._types import Floats, Indices, Progress
    from abstain.evaluation._result import Settings
    from abstain.evaluation._system import SystemStatistics
    from abstain.metrics import Columns, ReliabilityCurve, RiskCoverageCurve


RELIABILITY_BINS = 10
# The risk limits for which a guaranteed threshold is searched.
RISK_LIMITS = tuple(part / 100 for part in (*range(1, 21), 25, 30, 35, 40, 45, 50))
# Confidences that only rank items: they are not probabilities, even if their numbers are within [0, 1].
_RANK_ONLY = ("llm", "total_evidence", "token_pe", "token_energy", "consistency_inverse_std")
_RANK_ONLY_PREFIXES = ("retrieval_", "hybrid_", "secondary:")
# The width of a chart of the report, in pixels.
_COLUMNS = 480


@dataclass(frozen=True, eq=False, slots=True)
class Line:
    """A curve to be drawn: both risks over coverage."""

    coverage: Floats
    selective_risk: Floats
    generalized_risk: Floats

    def __repr__(self) -> str:
        return f"Line({len(self.coverage)} points)"

    def __len__(self) -> int:
        return len(self.coverage)

    def to_frame(self, *, backend: str | None = None) -> Any:
        """Return the points as a data frame with one row each: pandas, polars or pyarrow, see `Result.to_frame`."""
        return columns_frame(self, backend)


@dataclass(frozen=True, eq=False, slots=True)
class OperatingPoints:
    """Operating points of a curve, the most confident first. Each is an exact point of the curve.

    Attributes:
        threshold: items with at least this confidence are answered.
        answered: number of answered items.
        wrong: number of answered items with a loss above 0.
        coverage: proportion of all items that are answered.
        selective_risk: mean loss of answered items.
        selective_low: lower end of its interval, at this threshold; NaN if there is none.
        selective_high: upper end of its interval.
        generalized_risk: total loss of answered items, divided by the number of all items.
        generalized_low: lower end of its interval.
        generalized_high: upper end of its interval.
        in_curve: number of operating points of the whole curve; larger than the number of these points if it was
            thinned.
        guaranteed: by risk limit, the index of the point that answers most with a risk guarantee, for each limit
            separately; limits without such a point are omitted.
    """

    threshold: Floats
    answered: Indices
    wrong: Indices
    coverage: Floats
    selective_risk: Floats
    selective_low: Floats
    selective_high: Floats
    generalized_risk: Floats
    generalized_low: Floats
    generalized_high: Floats
    in_curve: int
    guaranteed: Mapping[float, int] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"OperatingPoints({len(self.threshold)} thresholds)"

    def __len__(self) -> int:
        return len(self.threshold)

    def to_frame(self, *, backend: str | None = None) -> Any:
        """Return the points as a data frame with one row each: pandas, polars or pyarrow, see `Result.to_frame`."""
        return columns_frame(self, backend)


@dataclass(frozen=True, eq=False, slots=True)
class Profile:
    """The data of the charts of a system.

    Attributes:
        points: the operating points of each confidence.
        lines: the curve of each confidence, thinned to the visible points.
        optimal: the curve of a perfect ranking of the same answers.
        random: the curve of a random ranking.
        random_augrc: the area under its generalized risk.
        leader: the confidence with the lowest AUGRC; empty if nothing was answered.
        contrasts: AUGRC of each other confidence minus the leader's, with verdicts that are corrected for their number.
        reliability: accuracy by confidence, for confidences that may be probabilities of a right answer (a loss of 0):
            those within [0, 1] that are not known to mean something else.
    """

    points: Mapping[str, OperatingPoints] = field(repr=False)
    lines: Mapping[str, Line] = field(repr=False)
    optimal: Line
    random: Line
    random_augrc: float
    leader: str
    contrasts: Mapping[str, Difference] = field(repr=False)
    reliability: Mapping[str, ReliabilityCurve] = field(repr=False)


def profile_of(
    system: SystemStatistics, settings: Settings, *, most: int, progress: Progress | None
) -> Profile:
    """Return the profile of a system, with at most about `most` operating points per confidence."""
    if not len(system.evaluated):
        empty = Line(np.empty(0), np.empty(0), np.empty(0))
        return Profile({}, {}, empty, empty, math.nan, "", {}, {})
    # Confidences that are the same numbers are evaluated once.
    rankings = {name: system.ranked_rows[name].ranking for name in system.drawn_confidences}
    lines, points = {}, {}
    for name, ranking in rankings.items():
        if ranking in lines:
            continue
        curve = curve_of(system.rows(name))
        lines[ranking] = _line(curve)
        guaranteed = _guaranteed(curve, system, name, settings.level)
        chosen = _choose_points(curve, settings.coverage_grid, most)
        chosen = np.unique(np.r_[chosen, list(guaranteed.values())]).astype(np.intp)
        indices = {risk: int(np.searchsorted(chosen, point)) for risk, point in guaranteed.items()}
        operating_points = _operating_points(curve, chosen, system, name, settings, progress)
        points[ranking] = replace(operating_points, guaranteed=indices)
    leader, contrasts = _contrasts(system, rankings, settings)
    columns = system.columns
    best = optimal_curve(columns)
    random = _random(columns)
    return Profile(
        points={name: points[ranking] for name, ranking in rankings.items()},
        lines={name: lines[ranking] for name, ranking in rankings.items()},
        optimal=Line(best.coverage, best.selective_risk, best.generalized_risk),
        random=random,
        random_augrc=0.5 * float(random.generalized_risk[-1] * random.coverage[-1]),
        leader=leader,
        contrasts=contrasts,
        reliability=_reliability(system, settings.level),
    )


def _guaranteed(
    curve: RiskCoverageCurve, system: SystemStatistics, name: str, level: float
) -> dict[float, int]:
    """Return by risk limit the point of the curve with the largest guaranteed coverage; the loss must be in [0, 1]."""
    if system.loss is None or system.loss.name not in SHARES or not len(curve):
        return {}
    items, rows = system.ranked_rows[name].items, system.rows(name)
    if items.members is not None:  # the tests need single clusters
        return {}
    thresholds = guaranteed_thresholds(items, rows.confidence, rows.loss, RISK_LIMITS, sure=level)
    return {
        risk: int(np.searchsorted(-curve.threshold, -threshold, side="right")) - 1
        for risk, threshold in thresholds.items()
    }


def _contrasts(
    system: SystemStatistics, rankings: Mapping[str, object], settings: Settings
) -> tuple[str, dict[str, Difference]]:
    """Return the confidence with the lowest AUGRC, and the differences of the others from it: one family."""
    evaluated, intervals = system.evaluated, system.intervals
    if not rankings or not evaluated.answered.any():
        return "", {}
    metric = METRICS["augrc"].in_convention(settings.convention)
    statistics = {name: measure_metrics(system.rows(name), [metric]) for name in rankings}
    area = {name: statistic.point for name, statistic in statistics.items()}
    leader = min(area, key=area.__getitem__)
    others = [name for name in area if rankings[name] != rankings[leader]]
    if not others:
        return leader, {}
    replicates = intervals.replicate(statistics[name] for name in (leader, *others))
    estimates = {}
    for name in others:
        change = replicates[statistics[name]].less(replicates[statistics[leader]]).column(0)
        value = float(subtract(area[name], area[leader]))
        estimates[name] = intervals.difference(value, change, n=evaluated.counts.n)
    p_values = {name: p_value(estimate) for name, estimate in estimates.items()}
    adjusted = holm(list(p_values.values())).tolist()
    return leader, {
        name: Difference(
            metric="augrc",
            direction="lower",
            confidence="",
            group="",
            left=leader,
            right=name,
            left_value=area[leader],
            right_value=area[name],
            estimate=estimates[name],
            p=p_values[name],
            p_adjusted=p_adjusted,
            family=len(others),
            cluster_noun=evaluated.unit_noun,
        )
        for name, p_adjusted in zip(others, adjusted, strict=True)
    }


def thinned(x: Floats, y: Floats, columns: int = _COLUMNS) -> Indices:
    """Return the visible points of a line: in each column of pixels the first, last, lowest and highest.

    A line through these covers the same pixels as the line through all of them. Reference: Jugel, Jerzak,
    Hackenbroich and Markl, "M4: a visualization-oriented time series data aggregation", 2014.

    >>> thinned(np.arange(1000.0), np.arange(1000.0) ** 2, columns=3).tolist()
    [0, 332, 333, 665, 666, 999]
    """
    if len(x) <= 4 * columns:
        return np.arange(len(x))
    column = np.minimum((x - x[0]) / (x[-1] - x[0]) * columns, columns - 1).astype(np.intp)
    order = np.lexsort((y, column))
    starts = np.flatnonzero(np.r_[True, np.diff(column) != 0])
    ends = np.r_[starts[1:], len(x)] - 1
    # Within a column the order by height begins with its lowest point and ends with its highest.
    return np.unique(np.concatenate([starts, ends, order[starts], order[ends]]))


def _choose_points(curve: RiskCoverageCurve, grid: tuple[float, ...], most: int) -> Indices:
    """Return all operating points, or evenly spaced ones by coverage and those of the grid."""
    if len(curve) <= most:
        return np.arange(len(curve))
    even = np.searchsorted(curve.coverage, np.linspace(curve.coverage[0], curve.coverage[-1], most))
    in_grid = [point for point in map(curve.first_reaching, grid) if point is not None]
    return np.unique(np.r_[even, in_grid, len(curve) - 1]).astype(np.intp)


def _operating_points(
    curve: RiskCoverageCurve,
    chosen: Indices,
    system: SystemStatistics,
    name: str,
    settings: Settings,
    progress: Progress | None,
) -> OperatingPoints:
    rows = system.rows(name)
    answered = rows.answered
    thresholds, count = curve.threshold[chosen], len(chosen)
    point = np.searchsorted(-thresholds, -rows.confidence[answered])
    weight, wrong = rows.weight[answered], rows.loss[answered] > 0

    def count_up_to_points(weights: Floats) -> Indices:
        added = np.bincount(point, weights=weights, minlength=count)
        return np.cumsum(added).round().astype(np.intp)

    points = points_of(
        rows, thresholds, system.intervals, simultaneous=settings.simultaneous, progress=progress
    )
    return OperatingPoints(
        threshold=thresholds,
        answered=count_up_to_points(weight),
        wrong=count_up_to_points(weight * wrong),
        coverage=curve.coverage[chosen],
        selective_risk=curve.selective_risk[chosen],
        selective_low=points.low[0],
        selective_high=points.high[0],
        generalized_risk=curve.generalized_risk[chosen],
        generalized_low=points.low[1],
        generalized_high=points.high[1],
        in_curve=len(curve),
    )


def _line(curve: RiskCoverageCurve) -> Line:
    kept = thinned(curve.coverage, curve.selective_risk) if len(curve) else np.arange(0)
    return Line(curve.coverage[kept], curve.selective_risk[kept], curve.generalized_risk[kept])


def _random(columns: Columns) -> Line:
    """Return the curve of a random ranking: the mean loss at every coverage."""
    answered, weight = columns.answered, columns.weight
    kept = weight[answered]
    mean = float(np.average(columns.loss[answered], weights=kept)) if len(kept) else 0.0
    cmax = float(kept.sum() / weight.sum())
    return Line(np.array([0.0, cmax]), np.array([mean, mean]), np.array([0.0, mean * cmax]))


def _reliability(system: SystemStatistics, level: float) -> dict[str, ReliabilityCurve]:
    curves = {}
    for name in system.drawn_confidences:
        rows, items = system.rows(name), system.ranked_rows[name].items
        answered = rows.answered
        stated = rows.confidence[answered]
        if name in _RANK_ONLY or name.startswith(_RANK_ONLY_PREFIXES):
            continue
        if len(stated) and stated.min() >= 0.0 and stated.max() <= 1.0:
            curves[name] = reliability_curve(
                rows.loss[answered] == 0.0,
                stated,
                bins=RELIABILITY_BINS,
                cluster=unit_of(items.cluster_ids)[items.cluster_index[answered]],
                level=level,
                sample_weight=rows.weight[answered],
            )
    return curves
