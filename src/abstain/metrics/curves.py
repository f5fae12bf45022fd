"""Risk-coverage curves: operating points, the effect of ties on the areas, and the curve of the best possible order.

The module also contains the statistic of a ranking at fixed thresholds. The areas in `abstain.metrics.selective` are
integrals over these curves. The arguments are the same: one loss and one confidence per item, ``abstained`` (a mask, or
the number of additional items that were declined) and ``sample_weight``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from abstain import _validate
from abstain._export import columns_frame
from abstain.metrics._columns import Columns, ratio
from abstain.metrics._curve import TOLERANCE, Ranking, single_item_trapezoid
from abstain.resampling import (
    HARMONIC,
    ClusterSums,
    CurveRequest,
    RunningSums,
    Statistic,
    WeightBatch,
    integrate_curve,
    keys_of_pairs,
)

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from abstain._types import Floats


__all__ = [
    "NO_CURVE",
    "NO_TIES",
    "RiskCoverageCurve",
    "TieSensitivity",
    "curve_of",
    "optimal_curve",
    "risk_coverage_curve",
    "threshold_statistic",
    "tie_sensitivity",
    "ties_of",
]

_ONE = np.ones((1, 1))
_NOTHING = np.empty(0)
_OPTIMAL_POINTS = 200


@dataclass(frozen=True, eq=False, slots=True)
class RiskCoverageCurve(Sequence[tuple[float, float]]):
    """The operating points of a ranking, most confident first; also a sequence of (coverage, selective risk) pairs.

    Attributes:
        coverage: the proportion of all items that is answered at each operating point, ascending.
        selective_risk: the mean loss of these answered items.
        generalized_risk: the loss sum of these answered items, divided by the number of all items.
        threshold: the lowest confidence that is answered at each operating point, descending.
        total: N, the weight of all items, abstained ones included.

    >>> curve = risk_coverage_curve([0, 2, 0], [2, 2, 1], abstained=5)
    >>> list(curve)
    [(0.25, 1.0), (0.375, 0.6666666666666666)]
    >>> curve.threshold
    array([2., 1.])
    """

    coverage: Floats
    selective_risk: Floats
    generalized_risk: Floats
    threshold: Floats
    total: float

    def __repr__(self) -> str:
        return f"RiskCoverageCurve({len(self.threshold)} operating points of {self.total:g} items)"

    @property
    def cmax(self) -> float:
        """The maximum coverage; 0 if nothing is answered."""
        return float(self.coverage[-1]) if len(self) else 0.0

    def first_reaching(self, coverage: float) -> int | None:
        """Return the index of the first operating point with at least `coverage`; None if there is none."""
        index = int(np.searchsorted(self.coverage, coverage - TOLERANCE))
        return index if index < len(self) else None

    def __len__(self) -> int:
        return len(self.coverage)

    def to_frame(self, *, backend: str | None = None) -> Any:
        """Return the operating points as a pandas, polars or pyarrow data frame, with one row each."""
        return columns_frame(self, backend)

    @overload
    def __getitem__(self, index: int) -> tuple[float, float]: ...
    @overload
    def __getitem__(self, index: slice) -> list[tuple[float, float]]: ...
    def __getitem__(self, index: int | slice) -> tuple[float, float] | list[tuple[float, float]]:
        if isinstance(index, slice):
            return [self[position] for position in range(*index.indices(len(self)))]
        return float(self.coverage[index]), float(self.selective_risk[index])


@dataclass(frozen=True, slots=True)
class TieSensitivity:
    """How much an area depends on the order of tied items.

    Attributes:
        best: the area if each tied block is sorted with its smallest losses first.
        worst: the area if each tied block is sorted with its largest losses first.
        tied_proportion: the proportion of answered items that have the same confidence as another item.
    """

    best: float
    worst: float
    tied_proportion: float

    @property
    def matters(self) -> bool:
        """True if tied blocks contain more than a tenth of the answered items."""
        return self.tied_proportion > 0.1


# The results if there are no items.
NO_CURVE = RiskCoverageCurve(_NOTHING, _NOTHING, _NOTHING, _NOTHING, 0.0)
NO_TIES = TieSensitivity(math.nan, math.nan, 0.0)


def risk_coverage_curve(
    loss: ArrayLike,
    confidence: ArrayLike,
    *,
    abstained: ArrayLike | int | None = None,
    sample_weight: ArrayLike | None = None,
) -> RiskCoverageCurve:
    """Return the operating points of a ranking.

    Reference: Geifman and El-Yaniv, "Selective Classification for Deep Neural Networks", 2017.

    >>> risk_coverage_curve([0, 1], [0.9, 0.4]).selective_risk
    array([0. , 0.5])
    """
    return curve_of(Columns.ranked(loss, confidence, abstained=abstained, sample_weight=sample_weight))


def curve_of(columns: Columns) -> RiskCoverageCurve:
    """Return the operating points of checked rows, which are computed only once."""
    return columns.compute_once("curve", lambda: _build_curve(columns), by_confidence=True)


def _build_curve(columns: Columns) -> RiskCoverageCurve:
    rank, thresholds = columns.ranks
    run = RunningSums.of(_as_one_unit(columns).sum_answers(rank, len(thresholds)), _ONE)
    items = float(columns.items_in_rows.sum())
    # A confidence whose rows have no weight is not an operating point.
    weighted = slice(None) if columns.mass is None else run.step[0] > 0.0
    return RiskCoverageCurve(
        coverage=run.count[0, 1:][weighted] / items,
        selective_risk=run.risk[0, 1:][weighted],
        generalized_risk=run.risk_sum[0, 1:][weighted] / items,
        threshold=thresholds[weighted],
        total=float(columns.weight.sum()),
    )


def _as_one_unit(columns: Columns) -> Ranking:
    """Return the ranking of the same rows, all in one unit."""
    if columns.mass is not None:
        _validate.weights(columns.mass, len(columns), "weight")
    return Ranking(columns.in_units(None))


def binning_bounds(
    curve: RiskCoverageCurve, largest_loss: float, is_mixed: NDArray[np.bool_] | None = None
) -> tuple[float, float]:
    """Return the largest errors of AUGRC and AURC if tied blocks of a curve are bins of different confidences.

    Consider a bin with a proportion ``w`` of the items that begins at coverage ``c``. In any order, the cumulative loss
    rises by at most ``L`` per item, so the area between it and the straight line that replaces it is at most
    ``L*w^2/8``. This is the largest error of the AUGRC. For the AURC, the loss is divided by the coverage, which is at
    least ``c``, and the mean loss is replaced by a straight line although it is a hyperbola. Its largest error is
    ``L*(w^2/(8*c) + c*(w/2*(1/c + 1/(c+w)) - ln(1 + w/c)))``, and ``L*w`` in the first bin. The errors of areas that
    end earlier are not larger. A bin with one value is a real tie and adds no error.

    Args:
        curve: the curve whose tied blocks are bins.
        largest_loss: ``L``, the largest loss of an item.
        is_mixed: True for bins with several different confidences. Default: all bins.

    >>> from abstain.metrics import risk_coverage_curve
    >>> curve = risk_coverage_curve([0, 1, 1, 0], [0.9, 0.9, 0.4, 0.4])
    >>> [round(bound, 3) for bound in binning_bounds(curve, 1.0)]
    [0.062, 0.591]
    >>> [round(bound, 3) for bound in binning_bounds(curve, 1.0, np.array([False, True]))]
    [0.031, 0.091]
    """
    proportion = np.diff(curve.coverage, prepend=0.0)
    if is_mixed is not None:
        # A bin of one value adds no error, as if its width were 0.
        proportion = np.where(is_mixed, proportion, 0.0)
    before = np.r_[0.0, curve.coverage[:-1]][1:]
    later = proportion[1:]
    curvature = before * (0.5 * later * (1.0 / before + 1.0 / (before + later)) - np.log1p(later / before))
    first = float(proportion[0]) if len(proportion) else 0.0
    aurc_bound = largest_loss * (first + float((later**2 / (8.0 * before) + curvature).sum()))
    return largest_loss * float((proportion**2).sum()) / 8.0, aurc_bound


def optimal_curve(columns: Columns) -> RiskCoverageCurve:
    """Return the curve with the smallest losses first and each item a separate operating point, at selected counts."""
    total = float(columns.items_in_rows.sum())
    if not columns.answered.any():
        return replace(NO_CURVE, total=total)
    run = RunningSums.of(Ranking(columns.in_units(None)).by_loss, _ONE)
    items = int(run.last_count[0])
    spread = np.unique(np.linspace(1, items, min(_OPTIMAL_POINTS, items)).astype(np.intp))
    counts = np.union1d(spread, run.count[0, 1:])
    # Items of one rank have the same loss, so the sum is linear within the rank.
    sums = np.interp(counts, run.count[0], run.risk_sum[0])
    return RiskCoverageCurve(counts / total, sums / counts, sums / total, np.full(len(counts), np.nan), total)


def tie_sensitivity(
    loss: ArrayLike,
    confidence: ArrayLike,
    *,
    abstained: ArrayLike | int | None = None,
    sample_weight: ArrayLike | None = None,
    area: str = "aurc",
) -> TieSensitivity:
    """Return the best and the worst area over all orders of tied items, with each item a separate operating point.

    If tied blocks are large, the area over blocks does not show how much the order inside them could matter.

    Args:
        loss: one loss per item.
        confidence: one confidence per item.
        abstained: a mask over the items, or the number of additional items that were declined.
        sample_weight: multiplicities.
        area: "aurc" or "augrc".

    >>> ties = tie_sensitivity([0, 1], [1, 1])
    >>> ties.best, ties.worst, ties.tied_proportion
    (0.125, 0.875, 1.0)
    """
    _validate.choice(area, "area", ("aurc", "augrc"))
    return ties_of(Columns.ranked(loss, confidence, abstained=abstained, sample_weight=sample_weight), area)


def ties_of(columns: Columns, area: str = "aurc") -> TieSensitivity:
    """Return how much the order of tied items could matter among checked rows."""
    ranking, total = _as_one_unit(columns), float(columns.items_in_rows.sum())
    rank, thresholds = columns.ranks
    blocks = ranking.sum_answers(rank, len(thresholds))
    sizes = blocks.sums[0]
    tied_proportion = float(sizes[sizes > 1].sum() / sizes.sum()) if sizes.any() else 0.0
    if len(thresholds) == len(rank):  # all confidences are distinct, so there is only one order
        value = _single_item_area(blocks, total, area)
        return TieSensitivity(value, value, tied_proportion)
    key, rank_of_key, loss_of_key = keys_of_pairs(rank, columns.loss_keys[0])
    best = ranking.sum_answers(key, len(rank_of_key))
    # In the worst order, the largest losses of each tied block come first.
    worst = replace(best, sums=best.sums[:, np.lexsort((-loss_of_key, rank_of_key))])
    areas = [_single_item_area(sums, total, area) for sums in (best, worst)]
    return TieSensitivity(best=areas[0], worst=areas[1], tied_proportion=tied_proportion)


def _single_item_area(cluster_sums: ClusterSums, total: float, area: str) -> float:
    """Return the area with each item a separate operating point; the items of each rank must have the same loss."""
    single = bool((cluster_sums.sums[0] == 1.0).all())
    request = CurveRequest(risk=True) if single else CurveRequest(growth=(HARMONIC,))
    with np.errstate(over="ignore", invalid="ignore"):  # sums of very large numbers can overflow
        curve_sums = integrate_curve(cluster_sums, WeightBatch(_ONE), request)
        if area == "aurc":
            return float((curve_sums.risk_area if single else single_item_trapezoid(curve_sums))[0]) / total
    return float(curve_sums.loss_area[0]) / total**2


def threshold_statistic(columns: Columns, thresholds: Floats) -> Statistic:
    """Return the statistic of selective risk, generalized risk and coverage at fixed thresholds.

    The thresholds are confidences that occur, descending. A fixed threshold accepts the same rows for all weights, so
    all three are ratios of running sums. Ranks between two thresholds are merged, which does not change the values at
    the thresholds but makes the cost depend on the number of thresholds and not of rows.
    """
    answered = columns.answered
    # Negated, because the search needs ascending values. A row is accepted from the highest threshold that it reaches.
    key = np.searchsorted(-thresholds, -columns.confidence[answered])
    ranking = Ranking(columns)
    # Rows below the last threshold are an additional rank, which is dropped.
    cluster_sums, total = ranking.sum_answers(key, len(thresholds) + 1), ranking.counts

    def compute(batch: WeightBatch) -> Floats:
        count, risk_sum = np.cumsum(cluster_sums.evaluate(batch)[:, :, :-1], axis=2)
        everything = total.evaluate(batch)[0]
        return np.concatenate([ratio(risk_sum, count), risk_sum / everything, count / everything], axis=1)

    kinds = ("selective", "generalized", "coverage")
    names = [f"{kind}[{number}]" for kind in kinds for number in range(len(thresholds))]
    return Statistic(tuple(names), columns.units, max(columns.units, cluster_sums.width), compute)
