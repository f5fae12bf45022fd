"""The profile of an evaluation: what a picture of it needs beyond its figures.

Figures sum a curve up; a profile has the curve itself: its working points with the interval of the risk at
each threshold, the curves of a perfect and of a random order, how the confidences differ from the best of
them, and how far those that claim to be probabilities can be believed. The intervals come from the same draws
as those of the figures. Nothing here knows what a picture looks like.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from abstain.inference import Band, Draws, Estimate, band, estimates, points
from abstain.metrics._ladder import Ladder, rungs_ascending
from abstain.metrics._working_points import WorkingPointsPlan
from abstain.metrics.reliability import reliability_curve
from abstain.metrics.selective import risk_coverage_curve

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from abstain.evaluation._results import Settings
    from abstain.items import Items
    from abstain.losses import ItemLoss
    from abstain.metrics._ranks import RanksPlan
    from abstain.metrics.reliability import ReliabilityCurve
    from abstain.metrics.selective import RiskCoverageCurve

    Floats = NDArray[np.float64]
    Indices = NDArray[np.intp]
    Progress = Callable[[int], None]

__all__ = ["Basis", "Line", "Profile", "WorkingPoints", "profile_of", "thinned"]

RELIABILITY_BINS = 10
# Confidences that order items and claim no probability, even where their numbers happen to lie within [0, 1].
_ORDERS_ONLY = ("llm", "total_evidence", "token_pe", "token_energy", "consistency_inverse_std")
_ORDERS_ONLY_PREFIXES = ("retrieval_", "hybrid_", "secondary:")
# As many columns as a chart of a report has pixels from left to right.
_COLUMNS = 480
_OPTIMAL_POINTS = 200


@dataclass(frozen=True, eq=False, slots=True)
class Basis:
    """What an evaluation rests on.

    Attributes:
        judged: the items of N.
        loss: the loss of each.
        confidences: each confidence, by name.
        plans: the plan of each confidence; those that are the same numbers share theirs.
        settings: what was asked for.
        augrc: the AUGRC of each confidence in every resample.
        weight: how many items each row stands for, where not for one.
    """

    judged: Items
    loss: ItemLoss
    confidences: Mapping[str, Floats]
    plans: Mapping[str, RanksPlan]
    settings: Settings
    augrc: Mapping[str, Floats]
    weight: Floats | None = None

    @property
    def weights(self) -> Floats:
        """How many items each row stands for."""
        return np.ones(len(self.judged)) if self.weight is None else self.weight


@dataclass(frozen=True, eq=False, slots=True)
class Line:
    """A curve to be drawn: both risks over coverage."""

    coverage: Floats
    selective_risk: Floats
    generalized_risk: Floats

    def __len__(self) -> int:
        return len(self.coverage)


@dataclass(frozen=True, eq=False, slots=True)
class WorkingPoints:
    """Working points that one can choose from, most confident first, each an exact point of the curve.

    Attributes:
        threshold: the confidence from which on items are answered.
        answered: how many items that is.
        wrong: how many of them have a loss above 0.
        coverage: answered, as a share of all items.
        selective_risk: mean loss of what is answered.
        selective_low: lower end of its interval, at this threshold; NaN without resamples.
        selective_high: upper end of its interval.
        generalized_risk: loss of what is answered, divided by all items.
        generalized_low: lower end of its interval.
        generalized_high: upper end of its interval.
        in_curve: how many working points the whole curve has; more than there are here when it was thinned.
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

    def __len__(self) -> int:
        return len(self.threshold)


@dataclass(frozen=True, eq=False, slots=True)
class Profile:
    """What pictures of an evaluation are made of.

    Attributes:
        points: the working points of each confidence.
        lines: the curve of each confidence, thinned to what can be seen.
        optimal: the curve of a perfect ranking of the same answers.
        random: the curve of a ranking that knows nothing.
        random_augrc: the area under its generalized risk.
        leader: the confidence with the lowest AUGRC; empty when nothing was answered.
        contrasts: AUGRC of each other confidence less the leader's, with the same draws.
        reliability: accuracy by confidence, for confidences that may be read as probabilities of being right
            (a loss of 0): those within [0, 1] that are not known to mean something else.
    """

    points: Mapping[str, WorkingPoints]
    lines: Mapping[str, Line]
    optimal: Line
    random: Line
    random_augrc: float
    leader: str
    contrasts: Mapping[str, Estimate]
    reliability: Mapping[str, ReliabilityCurve]


def profile_of(basis: Basis, *, most: int, progress: Progress | None) -> Profile:
    """Return the profile of an evaluation, with at most about `most` working points a confidence."""
    judged, settings = basis.judged, basis.settings
    draws = Draws(len(judged.cluster_ids), settings.resamples, settings.seed)
    # Confidences that are the same numbers share a plan, and here as well they are weighed once.
    shared = {name: id(plan) for name, plan in basis.plans.items()}
    first = {key: name for name, key in reversed(shared.items())}
    curves, found = {}, {}
    for key, name in first.items():
        rows = (basis.loss.values, basis.confidences[name])
        curves[key] = risk_coverage_curve(*rows, abstained=judged.abstained, weights=basis.weight)
        chosen = _choice(curves[key], settings.coverage_grid, most)
        thresholds = curves[key].threshold[chosen]
        plan = WorkingPointsPlan.build(*rows, judged.answered, judged.cluster_index, thresholds, basis.weight)
        ends = band(plan, draws, level=settings.level, progress=progress)
        found[key] = _working_points(curves[key], chosen, ends, basis, name)
    lines = {key: _line(curve) for key, curve in curves.items()}
    area = {
        name: float(points(replace(plan, figures=("augrc",), coverage_grid=()))[0])
        for name, plan in basis.plans.items()
    }
    leader = min(area, key=area.__getitem__) if area and judged.answered.any() else ""
    random = _random(basis)
    return Profile(
        points={name: found[key] for name, key in shared.items()},
        lines={name: lines[key] for name, key in shared.items()},
        optimal=_optimal(basis),
        random=random,
        random_augrc=0.5 * float(random.generalized_risk[-1] * random.coverage[-1]),
        leader=leader,
        contrasts={
            name: estimates(
                np.array([area[name] - area[leader]]),
                (basis.augrc[name] - basis.augrc[leader])[:, None],
                draws,
                n=len(judged),
                level=settings.level,
            )[0]
            for name, key in shared.items()
            if leader and key != shared[leader]
        },
        reliability=_reliability(basis),
    )


def thinned(x: Floats, y: Floats, columns: int = _COLUMNS) -> Indices:
    """Return which points of a line can be seen: of each column of pixels the first, last, lowest and highest.

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


def _choice(curve: RiskCoverageCurve, grid: tuple[float, ...], most: int) -> Indices:
    """Which working points to offer: all, or an even choice by coverage with those that the grid asks for."""
    if len(curve) <= most:
        return np.arange(len(curve))
    even = np.searchsorted(curve.coverage, np.linspace(curve.coverage[0], curve.coverage[-1], most))
    asked = [place for place in map(curve.first_reaching, grid) if place is not None]
    return np.unique(np.r_[even, asked, len(curve) - 1]).astype(np.intp)


def _working_points(
    curve: RiskCoverageCurve, chosen: Indices, ends: Band, basis: Basis, name: str
) -> WorkingPoints:
    answered = basis.judged.answered
    thresholds, count = curve.threshold[chosen], len(chosen)
    rung = np.searchsorted(-thresholds, -basis.confidences[name][answered])
    weight, wrong = basis.weights[answered], basis.loss.values[answered] > 0

    def climbed(weights: Floats) -> Indices:
        added = np.bincount(rung, weights=weights, minlength=count)
        return np.cumsum(added).round().astype(np.intp)

    return WorkingPoints(
        threshold=thresholds,
        answered=climbed(weight),
        wrong=climbed(weight * wrong),
        coverage=curve.coverage[chosen],
        selective_risk=curve.selective_risk[chosen],
        selective_low=ends.low[:count],
        selective_high=ends.high[:count],
        generalized_risk=curve.generalized_risk[chosen],
        generalized_low=ends.low[count:],
        generalized_high=ends.high[count:],
        in_curve=len(curve),
    )


def _line(curve: RiskCoverageCurve) -> Line:
    kept = thinned(curve.coverage, curve.selective_risk) if len(curve) else np.arange(0)
    return Line(curve.coverage[kept], curve.selective_risk[kept], curve.generalized_risk[kept])


def _random(basis: Basis) -> Line:
    """The curve of a random order: the mean loss everywhere."""
    answered, weight = basis.judged.answered, basis.weights
    kept = weight[answered]
    mean = float(np.average(basis.loss.values[answered], weights=kept)) if len(kept) else 0.0
    cmax = float(kept.sum() / weight.sum())
    return Line(np.array([0.0, cmax]), np.array([mean, mean]), np.array([0.0, mean * cmax]))


def _optimal(basis: Basis) -> Line:
    """The curve of the smallest losses first, each item its own working point, at a choice of counts."""
    answered = basis.judged.answered
    loss, weight, total = basis.loss.values[answered], basis.weights[answered], float(basis.weights.sum())
    if not len(loss):
        return Line(np.empty(0), np.empty(0), np.empty(0))
    ladder = Ladder.build(rungs_ascending(loss), np.zeros(len(loss), np.intp), 1, weight, loss)
    climb = ladder.climb(np.ones((1, 1)))
    items = int(climb.last_count[0])
    spread = np.unique(np.linspace(1, items, min(_OPTIMAL_POINTS, items)).astype(np.intp))
    counts = np.union1d(spread, climb.count[0, 1:])
    # Items of one rung have the same loss, so the sum grows straight within it.
    sums = np.interp(counts, climb.count[0], climb.risk_sum[0])
    return Line(counts / total, sums / counts, sums / total)


def _reliability(basis: Basis) -> dict[str, ReliabilityCurve]:
    judged = basis.judged
    answered = judged.answered
    found = {}
    for name, values in basis.confidences.items():
        stated = values[answered]
        if name in _ORDERS_ONLY or name.startswith(_ORDERS_ONLY_PREFIXES):
            continue
        if len(stated) and stated.min() >= 0.0 and stated.max() <= 1.0:
            found[name] = reliability_curve(
                basis.loss.values[answered] == 0.0,
                stated,
                bins=RELIABILITY_BINS,
                clusters=judged.cluster_index[answered],
                level=basis.settings.level,
                weights=basis.weights[answered],
            )
    return found
