"""Curves: the working points of a ranking, how far ties could move its areas, and the best order there could be.

Definitions are those of `abstain.metrics.selective`, whose areas are integrals over these curves. Arguments are the
same: one loss and one confidence per item, ``abstained`` (a mask, or how many further items were declined) and
``sample_weight``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, overload

import numpy as np

from abstain import _validate
from abstain.metrics import _areas
from abstain.metrics._areas import Run
from abstain.metrics._columns import Columns
from abstain.metrics._risk import MATCHED_METRICS, matched_measure, threshold_measure
from abstain.tally import Tally, keys_ascending, keys_descending

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]

__all__ = [
    "MATCHED_METRICS",
    "NO_CURVE",
    "NO_TIES",
    "RiskCoverageCurve",
    "TieSensitivity",
    "matched_measure",
    "optimal_curve",
    "risk_coverage_curve",
    "threshold_measure",
    "tie_sensitivity",
]

_ONE = np.ones((1, 1))
_NOTHING = np.empty(0)
_OPTIMAL_POINTS = 200


@dataclass(frozen=True, eq=False, slots=True)
class RiskCoverageCurve(Sequence[tuple[float, float]]):
    """The working points of a ranking, most confident first; also the sequence of (coverage, selective risk) pairs.

    Attributes:
        coverage: share of all items that is answered at each working point, ascending.
        selective_risk: mean loss of the answered items there.
        generalized_risk: loss sum of the answered items there, divided by all items.
        threshold: the confidence from which on items are answered there, descending.
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

    @property
    def cmax(self) -> float:
        """The largest coverage that can be reached; 0 when nothing is answered."""
        return float(self.coverage[-1]) if len(self) else 0.0

    def first_reaching(self, coverage: float) -> int | None:
        """Return the index of the first working point with at least `coverage`; None when there is none."""
        index = int(np.searchsorted(self.coverage, coverage - _areas.TOLERANCE))
        return index if index < len(self) else None

    def __len__(self) -> int:
        return len(self.coverage)

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
    """How far the order of tied items alone could move an area.

    Attributes:
        best: the area when each plateau is taken apart with its smallest losses first.
        worst: the area when each plateau is taken apart with its largest losses first.
        tied_share: the share of answered items that share their confidence with another.
    """

    best: float
    worst: float
    tied_share: float

    @property
    def matters(self) -> bool:
        """True when plateaus hold more than a tenth of the answered items."""
        return self.tied_share > 0.1


# Where there is no item at all.
NO_CURVE = RiskCoverageCurve(_NOTHING, _NOTHING, _NOTHING, _NOTHING, 0.0)
NO_TIES = TieSensitivity(math.nan, math.nan, 0.0)


def risk_coverage_curve(
    loss: ArrayLike,
    confidence: ArrayLike,
    *,
    abstained: ArrayLike | int | None = None,
    sample_weight: ArrayLike | None = None,
) -> RiskCoverageCurve:
    """Return the working points of a ranking.

    Reference: Geifman and El-Yaniv, "Selective Classification for Deep Neural Networks", 2017.

    >>> risk_coverage_curve([0, 1], [0.9, 0.4]).selective_risk
    array([0. , 0.5])
    """
    rows = Columns.ranked(loss, confidence, abstained=abstained, sample_weight=sample_weight)
    total = float(rows.weight.sum())
    kept = rows.answered & (rows.weight > 0)
    key, levels = keys_descending(rows.confidence[kept])
    run = _single_run(key, len(levels), rows.loss[kept], None if rows.mass is None else rows.mass[kept])
    return RiskCoverageCurve(
        coverage=run.count[0, 1:] / total,
        selective_risk=run.risk[0, 1:],
        generalized_risk=run.risk_sum[0, 1:] / total,
        threshold=levels,
        total=total,
    )


def optimal_curve(loss: Floats, weight: Floats, total: float) -> RiskCoverageCurve:
    """Return the curve of the smallest losses first, each item its own working point, at a choice of counts."""
    if not len(loss):
        return replace(NO_CURVE, total=total)
    key, distinct = keys_ascending(loss)
    run = _single_run(key, len(distinct), loss, weight)
    items = int(run.last_count[0])
    spread = np.unique(np.linspace(1, items, min(_OPTIMAL_POINTS, items)).astype(np.intp))
    counts = np.union1d(spread, run.count[0, 1:])
    # Items of one rank have the same loss, so the sum grows straight within it.
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
    """Return the best and the worst area over all orders of tied items, each item its own working point.

    Where plateaus are large, the area by plateaus hides how much the order inside them could matter.

    Args:
        loss: one loss per item.
        confidence: one confidence per item.
        abstained: a mask over the items, or how many further items were declined.
        sample_weight: multiplicities.
        area: "aurc" or "augrc".

    >>> ties = tie_sensitivity([0, 1], [1, 1])
    >>> ties.best, ties.worst, ties.tied_share
    (0.125, 0.875, 1.0)
    """
    _validate.choice(area, "area", ("aurc", "augrc"))
    rows = Columns.ranked(loss, confidence, abstained=abstained, sample_weight=sample_weight)
    total = float(rows.weight.sum())
    kept = rows.answered & (rows.weight > 0)
    losses, levels = rows.loss[kept], rows.confidence[kept]
    weight = None if rows.mass is None else rows.mass[kept]
    del rows, kept
    plateau, distinct = keys_descending(levels)
    plateaus = len(distinct)
    size = np.bincount(plateau, weights=weight)
    tied = float(size[size > 1].sum() / size.sum()) if len(size) else 0.0
    del size, distinct
    if plateaus == len(levels):
        # Where no row shares its confidence with another there is one order, and one area.
        del levels
        only = _single_area(plateau, losses, weight, total, area)
        return TieSensitivity(only, only, tied)
    del plateau
    return TieSensitivity(
        best=_split_area(losses, levels, weight, total, area, worst_first=False),
        worst=_split_area(losses, levels, weight, total, area, worst_first=True),
        tied_share=tied,
    )


def _split_area(
    loss: Floats, confidence: Floats, weight: Floats | None, total: float, area: str, *, worst_first: bool
) -> float:
    """The area over single items when every plateau is ordered by loss: runs of equal loss need no taking apart."""
    order = np.lexsort((-loss if worst_first else loss, -confidence))
    step = np.diff(confidence[order]) != 0
    loss, weight = loss[order], None if weight is None else weight[order]
    del order
    step |= np.diff(loss) != 0
    rank = np.zeros(len(loss), np.intp)
    np.cumsum(step, out=rank[1:])
    return _single_area(rank, loss, weight, total, area)


def _single_area(
    rank: NDArray[np.intp], loss: Floats, weight: Floats | None, total: float, area: str
) -> float:
    run = _single_run(rank, int(rank.max(initial=-1)) + 1, loss, weight)
    if area == "aurc":
        return float(_areas.single_item_trapezoid(run)[0]) / total
    return float(_areas.loss_area(run)[0]) / total**2


def _single_run(rank: NDArray[np.intp], ranks: int, loss: Floats, weight: Floats | None) -> Run:
    """The run along rows that all count once."""
    unit = np.broadcast_to(np.intp(0), len(rank))
    tally = Tally.of_rows(unit=unit, key=rank, columns=[loss], units=1, keys=ranks, weight=weight)
    return Run.of(tally, _ONE)
