"""Selective prediction: what a model risks at each share of items that it answers.

Answered items are sorted by confidence, descending. Each distinct confidence is one working point; all items
of a plateau
enter at once. After ``k`` of ``N`` items with loss sum ``S``::

    coverage = k / N        selective risk = S / k        generalized risk = S / N

AURC is the area under selective risk over coverage on ``[0, Cmax]``, AUGRC the one under generalized risk;
``N`` counts the abstained items too. Areas that end at different ``Cmax`` cannot be compared alone. All
functions take one loss and one confidence an item, ``abstained`` (a mask over the same items, or a whole
number of further items that were declined), ``weights`` (multiplicities: a weight of 2 is the item twice)
and, where an area is integrated, ``convention`` (see `CONVENTIONS`).

The figures are computed by the same plan that the bootstrap weighs (see `abstain.metrics._ranks`); this
module holds their public face and nothing of files, clusters or intervals.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from abstain import _validate
from abstain.metrics import _areas
from abstain.metrics._areas import CONVENTIONS
from abstain.metrics._ladder import Ladder, loss_area, rungs_descending
from abstain.metrics._ranked_rows import RankedRows
from abstain.metrics._ranks import RanksPlan
from abstain.metrics._reach import ReachPlan

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]

__all__ = [
    "CONVENTIONS",
    "RiskCoverageCurve",
    "TieSensitivity",
    "augrc",
    "augrc_at_coverage",
    "augrc_optimal",
    "aurc",
    "aurc_achievable",
    "aurc_at_coverage",
    "aurc_optimal",
    "cmax",
    "coverage_at_risk",
    "eaugrc",
    "eaurc",
    "risk_at_coverage",
    "risk_coverage_curve",
    "tie_sensitivity",
]


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


def risk_coverage_curve(
    loss: ArrayLike,
    confidence: ArrayLike,
    *,
    abstained: ArrayLike | int | None = None,
    weights: ArrayLike | None = None,
) -> RiskCoverageCurve:
    """Return the working points of a ranking.

    Reference: Geifman and El-Yaniv, "Selective Classification for Deep Neural Networks", 2017.

    >>> risk_coverage_curve([0, 1], [0.9, 0.4]).selective_risk
    array([0. , 0.5])
    """
    rows = RankedRows.checked(loss, confidence, abstained, weights)
    total = float(rows.weight.sum())
    levels = np.unique(rows.confidence[rows.answered & (rows.weight > 0)])[::-1]
    keep = rows.answered & (rows.weight > 0)
    ladder = Ladder.build(
        rungs_descending(rows.confidence[keep]),
        np.zeros(int(keep.sum()), np.intp),
        1,
        rows.weight[keep],
        rows.loss[keep],
    )
    climb = ladder.climb(np.ones((1, 1)))
    return RiskCoverageCurve(
        coverage=climb.count[0, 1:] / total,
        selective_risk=_areas.selective_risk(climb)[0, 1:],
        generalized_risk=climb.risk_sum[0, 1:] / total,
        threshold=levels,
        total=total,
    )


def aurc(
    loss: ArrayLike,
    confidence: ArrayLike,
    *,
    abstained: ArrayLike | int | None = None,
    weights: ArrayLike | None = None,
    convention: str = "trapezoid",
) -> float:
    """Return the area under the risk-coverage curve: the integral of ``S/k`` over coverage on ``[0, Cmax]``.

    Lower is better. Nothing answered gives 0.0, the integral over an empty range: degenerate, not good.
    Reference: Geifman, Uziel and El-Yaniv, "Bias-Reduced Uncertainty Estimation for Deep Neural Classifiers",
        2019.

    >>> aurc([0, 2, 0], [2, 2, 1], abstained=5) * 48
    17.0
    """
    return _figure("aurc", loss, confidence, abstained, weights, convention=convention)


def augrc(
    loss: ArrayLike,
    confidence: ArrayLike,
    *,
    abstained: ArrayLike | int | None = None,
    weights: ArrayLike | None = None,
    convention: str = "trapezoid",
) -> float:
    """Return the area under the generalized risk-coverage curve: the integral of ``S/N`` on ``[0, Cmax]``.

    Lower is better. For 0/1 loss without abstention it is ``(1 - AUROC)*acc*(1 - acc) + (1 - acc)**2 / 2``.
    Reference: Traub et al., "Overcoming Common Flaws in the Evaluation of Selective Classification Systems",
        2024.

    >>> augrc([0, 2, 0], [2, 2, 1], abstained=5) * 16
    1.0
    """
    return _figure("augrc", loss, confidence, abstained, weights, convention=convention)


def aurc_optimal(
    loss: ArrayLike,
    confidence: ArrayLike | None = None,
    *,
    abstained: ArrayLike | int | None = None,
    weights: ArrayLike | None = None,
    convention: str = "trapezoid",
) -> float:
    """Return the AURC of a perfect ranking: items sorted by loss, ascending, each its own working point.

    The confidence plays no part; it is accepted so that all figures can be called alike.

    >>> aurc_optimal([1, 0])          # risks 0 and 1/2 at coverages 1/2 and 1
    0.125
    """
    return _figure("aurc_optimal", loss, confidence, abstained, weights, convention=convention)


def augrc_optimal(
    loss: ArrayLike,
    confidence: ArrayLike | None = None,
    *,
    abstained: ArrayLike | int | None = None,
    weights: ArrayLike | None = None,
    convention: str = "trapezoid",
) -> float:
    """Return the AUGRC of a perfect ranking: items sorted by loss, ascending, each its own working point.

    >>> augrc_optimal([1, 0])
    0.125
    """
    return _figure("augrc_optimal", loss, confidence, abstained, weights, convention=convention)


def eaurc(
    loss: ArrayLike,
    confidence: ArrayLike,
    *,
    abstained: ArrayLike | int | None = None,
    weights: ArrayLike | None = None,
    convention: str = "trapezoid",
) -> float:
    """Return the excess ``AURC - AURC_optimal``: what the ranking loses against a perfect one.

    >>> eaurc([1, 0], [0.9, 0.1])     # 7/8 - 1/8
    0.75
    """
    return _figure("eaurc", loss, confidence, abstained, weights, convention=convention)


def eaugrc(
    loss: ArrayLike,
    confidence: ArrayLike,
    *,
    abstained: ArrayLike | int | None = None,
    weights: ArrayLike | None = None,
    convention: str = "trapezoid",
) -> float:
    """Return the excess ``AUGRC - AUGRC_optimal``: what the ranking loses against a perfect one.

    >>> eaugrc([1, 0], [0.9, 0.1])    # 3/8 - 1/8
    0.25
    """
    return _figure("eaugrc", loss, confidence, abstained, weights, convention=convention)


def aurc_achievable(
    loss: ArrayLike,
    confidence: ArrayLike,
    *,
    abstained: ArrayLike | int | None = None,
    weights: ArrayLike | None = None,
    convention: str = "trapezoid",
) -> float:
    """Return the AURC of the lower convex hull of the working points: what choosing among them can achieve.

    >>> aurc_achievable([0, 1, 0], [3, 2, 1]) < aurc([0, 1, 0], [3, 2, 1])
    True
    """
    return _figure("aurc_achievable", loss, confidence, abstained, weights, convention=convention)


def aurc_at_coverage(
    loss: ArrayLike,
    confidence: ArrayLike,
    coverage: float,
    *,
    abstained: ArrayLike | int | None = None,
    weights: ArrayLike | None = None,
    convention: str = "trapezoid",
) -> float:
    """Return the AURC up to ``min(coverage, Cmax)``, linear interpolation landing exactly on the end.

    >>> aurc_at_coverage([0, 1], [2, 1], 0.5)
    0.0
    """
    at = _validate.coverage(coverage)
    return _figure(
        "aurc_at_coverage", loss, confidence, abstained, weights, convention=convention, area_coverage=at
    )


def augrc_at_coverage(
    loss: ArrayLike,
    confidence: ArrayLike,
    coverage: float,
    *,
    abstained: ArrayLike | int | None = None,
    weights: ArrayLike | None = None,
    convention: str = "trapezoid",
) -> float:
    """Return the AUGRC up to ``min(coverage, Cmax)``, linear interpolation landing exactly on the end.

    >>> augrc_at_coverage([1, 1], [2, 1], 0.5)    # a triangle: 0.5 * 0.5 / 2
    0.125
    """
    at = _validate.coverage(coverage)
    return _figure(
        "augrc_at_coverage", loss, confidence, abstained, weights, convention=convention, area_coverage=at
    )


def risk_at_coverage(
    loss: ArrayLike,
    confidence: ArrayLike,
    coverage: float,
    *,
    abstained: ArrayLike | int | None = None,
    weights: ArrayLike | None = None,
) -> float:
    """Return the selective risk of the first working point with at least `coverage`; NaN when ``coverage > Cmax``.

    With absolute losses this is MAE@coverage.

    >>> risk_at_coverage([0, 2, 0, 2], [1.0, 0.8, 0.5, 0.3], 0.5)
    1.0
    >>> risk_at_coverage([0], [1.0], 0.5, abstained=3)      # only a quarter can be reached
    nan
    """
    at = _validate.coverage(coverage)
    return _figure(None, loss, confidence, abstained, weights, coverage_grid=(at,))


def coverage_at_risk(
    loss: ArrayLike,
    confidence: ArrayLike,
    risk: float,
    *,
    abstained: ArrayLike | int | None = None,
    weights: ArrayLike | None = None,
) -> float:
    """Return the largest coverage whose selective risk is at most `risk`, never splitting a plateau; 0.0 when none is.

    >>> coverage_at_risk([0, 0, 1, 1], [4, 3, 2, 1], 0.34)
    0.75
    """
    bound = _validate.real(risk, "risk")
    rows = RankedRows.checked(loss, confidence, abstained, weights)
    one_cluster = np.zeros(len(rows.loss), np.intp)
    columns = (rows.loss, rows.confidence, rows.answered, rows.weight, one_cluster)
    return float(ReachPlan.build("coverage_at_risk", *columns, bound=bound)(np.ones((1, 1)))[0, 0])


def cmax(
    loss: ArrayLike,
    confidence: ArrayLike | None = None,
    *,
    abstained: ArrayLike | int | None = None,
    weights: ArrayLike | None = None,
) -> float:
    """Return ``K / N``, the largest coverage that can be reached: neither loss nor confidence plays a part.

    >>> cmax([0, 2, 0], [2, 2, 1], abstained=5)
    0.375
    """
    return _figure("cmax", loss, confidence, abstained, weights)


def tie_sensitivity(
    loss: ArrayLike,
    confidence: ArrayLike,
    *,
    abstained: ArrayLike | int | None = None,
    weights: ArrayLike | None = None,
    area: str = "aurc",
) -> TieSensitivity:
    """Return the best and the worst area over all orders of tied items, each item its own working point.

    Where plateaus are large, the area by plateaus hides how much the order inside them could matter.

    Args:
        loss: one loss an item.
        confidence: one confidence an item.
        abstained: a mask over the items, or how many further items were declined.
        weights: multiplicities.
        area: "aurc" or "augrc".

    >>> ties = tie_sensitivity([0, 1], [1, 1])
    >>> ties.best, ties.worst, ties.tied_share
    (0.125, 0.875, 1.0)
    """
    _validate.choice(area, "area", ("aurc", "augrc"))
    rows = RankedRows.checked(loss, confidence, abstained, weights)
    keep = rows.answered & (rows.weight > 0)
    losses, levels, weight = rows.loss[keep], rows.confidence[keep], rows.weight[keep]
    total = float(rows.weight.sum())
    distinct, plateau = np.unique(levels, return_inverse=True)
    size = np.bincount(plateau, weights=weight)
    tied = float(size[size > 1].sum() / size.sum()) if len(size) else 0.0
    del size
    if len(distinct) == len(levels):
        # Where no row shares its confidence with another there is one order, and one area.
        only = _single_area(len(levels) - 1 - plateau, losses, weight, total, area)
        return TieSensitivity(only, only, tied)
    del plateau
    return TieSensitivity(
        best=_split_area(losses, levels, weight, total, area, worst_first=False),
        worst=_split_area(losses, levels, weight, total, area, worst_first=True),
        tied_share=tied,
    )


def _split_area(
    loss: Floats, confidence: Floats, weight: Floats, total: float, area: str, *, worst_first: bool
) -> float:
    """The area over single items when every plateau is ordered by loss: runs of equal loss need no taking apart."""
    order = np.lexsort((-loss if worst_first else loss, -confidence))
    step = np.diff(confidence[order]) != 0
    loss, weight = loss[order], weight[order]
    del order
    step |= np.diff(loss) != 0
    rung = np.zeros(len(loss), np.intp)
    np.cumsum(step, out=rung[1:])
    return _single_area(rung, loss, weight, total, area)


def _single_area(rung: NDArray[np.intp], loss: Floats, weight: Floats, total: float, area: str) -> float:
    climb = Ladder.build(rung, np.broadcast_to(np.intp(0), len(rung)), 1, weight, loss).climb(np.ones((1, 1)))
    if area == "aurc":
        return float(_areas.single_item_trapezoid(climb)[0]) / total
    return float(loss_area(climb)[0]) / total**2


def _figure(
    name: str | None,
    loss: ArrayLike,
    confidence: ArrayLike | None,
    abstained: ArrayLike | int | None,
    weights: ArrayLike | None,
    *,
    convention: str = "trapezoid",
    **settings: Any,
) -> float:
    """One figure of the ranks plan, at weights all one."""
    _validate.choice(convention, "convention", CONVENTIONS)
    rows = RankedRows.checked(loss, confidence, abstained, weights)
    plan = RanksPlan.build(
        rows.loss,
        rows.confidence,
        rows.answered,
        weight=rows.weight,
        figures=() if name is None else (name,),
        convention=convention,
        **settings,
    )
    return float(plan(np.ones((1, 1)))[0, 0])
