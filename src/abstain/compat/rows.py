"""Rows as objects: selective metrics for a list of `ItemPrediction`.

A thin face on `abstain.metrics.selective` for code that holds one object per item. The loss is the absolute
error unless another is named; ``abs_norm`` is on the item scale 0 to 3. Each ``compute_x`` is ``x`` of the arrays;
where that is NaN because a coverage cannot be reached, it is None here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from abstain import _validate
from abstain.losses import named_loss
from abstain.metrics import curves, selective

if TYPE_CHECKING:
    from collections.abc import Sequence

    from abstain.metrics.curves import RiskCoverageCurve, TieSensitivity

__all__ = [
    "ItemPrediction",
    "compute_augrc",
    "compute_augrc_at_coverage",
    "compute_augrc_optimal",
    "compute_aurc",
    "compute_aurc_achievable",
    "compute_aurc_at_coverage",
    "compute_aurc_optimal",
    "compute_cmax",
    "compute_coverage_at_risk",
    "compute_eaugrc",
    "compute_eaurc",
    "compute_risk_at_coverage",
    "compute_risk_coverage_curve",
    "compute_tie_sensitivity",
]


# The item scale of the system whose interface this is; "abs_norm" divides by its width.
_SCALE = (0.0, 3.0)


@dataclass(frozen=True, slots=True)
class ItemPrediction:
    """One prediction with its confidence.

    Attributes:
        score: what the model said, or None if it abstained.
        ground_truth: what is right.
        confidence: higher is more confident.
        participant_id: the cluster that the item belongs to.
        item: the item's name.

    >>> ItemPrediction(score=3, ground_truth=1, confidence=0.8).absolute_error
    2
    """

    score: float | None
    ground_truth: float
    confidence: float
    participant_id: int | str | None = None
    item: str | None = None

    @property
    def is_predicted(self) -> bool:
        """True if the model answered."""
        return self.score is not None

    @property
    def absolute_error(self) -> float:
        """The distance between score and truth; 0 if the model abstained."""
        return 0 if self.score is None else abs(self.score - self.ground_truth)


def compute_risk_coverage_curve(items: Sequence[ItemPrediction], *, loss: str = "abs") -> RiskCoverageCurve:
    """Return the working points.

    >>> compute_risk_coverage_curve([ItemPrediction(2, 2, 1.0), ItemPrediction(None, 1, 0.0)])[0]
    (0.5, 0.0)
    """
    return curves.risk_coverage_curve(**_arrays(items, loss))


def compute_aurc(
    items: Sequence[ItemPrediction], *, loss: str = "abs", convention: str = "trapezoid"
) -> float:
    """Return the AURC.

    >>> compute_aurc([ItemPrediction(2, 1, 1.0), ItemPrediction(None, 0, 0.0)])
    0.5
    """
    return selective.aurc(**_arrays(items, loss), convention=convention)


def compute_augrc(
    items: Sequence[ItemPrediction], *, loss: str = "abs", convention: str = "trapezoid"
) -> float:
    """Return the AUGRC.

    >>> compute_augrc([ItemPrediction(2, 1, 1.0), ItemPrediction(None, 0, 0.0)])
    0.125
    """
    return selective.augrc(**_arrays(items, loss), convention=convention)


def compute_aurc_optimal(
    items: Sequence[ItemPrediction], *, loss: str = "abs", convention: str = "trapezoid"
) -> float:
    """Return the AURC of a perfect ranking.

    >>> compute_aurc_optimal([ItemPrediction(2, 1, 1.0), ItemPrediction(0, 0, 0.5)])
    0.125
    """
    return selective.aurc_optimal(**_arrays(items, loss), convention=convention)


def compute_augrc_optimal(
    items: Sequence[ItemPrediction], *, loss: str = "abs", convention: str = "trapezoid"
) -> float:
    """Return the AUGRC of a perfect ranking.

    >>> compute_augrc_optimal([ItemPrediction(2, 1, 1.0), ItemPrediction(0, 0, 0.5)])
    0.125
    """
    return selective.augrc_optimal(**_arrays(items, loss), convention=convention)


def compute_eaurc(
    items: Sequence[ItemPrediction], *, loss: str = "abs", convention: str = "trapezoid"
) -> float:
    """Return the excess AURC.

    >>> compute_eaurc([ItemPrediction(2, 1, 1.0), ItemPrediction(0, 0, 0.5)])
    0.75
    """
    return selective.eaurc(**_arrays(items, loss), convention=convention)


def compute_eaugrc(
    items: Sequence[ItemPrediction], *, loss: str = "abs", convention: str = "trapezoid"
) -> float:
    """Return the excess AUGRC.

    >>> compute_eaugrc([ItemPrediction(2, 1, 1.0), ItemPrediction(0, 0, 0.5)])
    0.25
    """
    return selective.eaugrc(**_arrays(items, loss), convention=convention)


def compute_aurc_achievable(
    items: Sequence[ItemPrediction], *, loss: str = "abs", convention: str = "trapezoid"
) -> float:
    """Return the AURC of the lower convex hull of the working points.

    >>> compute_aurc_achievable([ItemPrediction(2, 1, 1.0), ItemPrediction(0, 0, 0.5)])
    0.875
    """
    return selective.aurc_achievable(**_arrays(items, loss), convention=convention)


def compute_aurc_at_coverage(
    items: Sequence[ItemPrediction],
    target_coverage: float,
    *,
    loss: str = "abs",
    convention: str = "trapezoid",
) -> float:
    """Return the AURC up to a coverage.

    >>> compute_aurc_at_coverage([ItemPrediction(2, 1, 1.0), ItemPrediction(0, 0, 0.5)], 0.5)
    0.5
    """
    at = _validate.coverage(target_coverage, "target_coverage")
    return selective.aurc_at_coverage(**_arrays(items, loss), coverage=at, convention=convention)


def compute_augrc_at_coverage(
    items: Sequence[ItemPrediction],
    target_coverage: float,
    *,
    loss: str = "abs",
    convention: str = "trapezoid",
) -> float:
    """Return the AUGRC up to a coverage.

    >>> compute_augrc_at_coverage([ItemPrediction(2, 1, 1.0), ItemPrediction(0, 0, 0.5)], 0.5)
    0.125
    """
    at = _validate.coverage(target_coverage, "target_coverage")
    return selective.augrc_at_coverage(**_arrays(items, loss), coverage=at, convention=convention)


def compute_risk_at_coverage(
    items: Sequence[ItemPrediction], target_coverage: float, *, loss: str = "abs"
) -> float | None:
    """Return the selective risk at a coverage, or None when too few items are answered to reach it.

    >>> compute_risk_at_coverage([ItemPrediction(2, 1, 1.0), ItemPrediction(0, 0, 0.5)], target_coverage=1.0)
    0.5
    """
    at = _validate.coverage(target_coverage, "target_coverage")
    risk = selective.risk_at_coverage(**_arrays(items, loss), coverage=at)
    return None if math.isnan(risk) else risk


def compute_coverage_at_risk(
    items: Sequence[ItemPrediction], target_risk: float, *, loss: str = "abs"
) -> float:
    """Return the largest coverage whose selective risk is at most `target_risk`.

    >>> compute_coverage_at_risk([ItemPrediction(2, 1, 0.1), ItemPrediction(0, 0, 0.5)], 0.2)
    0.5
    """
    return selective.coverage_at_risk(**_arrays(items, loss), risk=target_risk)


def compute_cmax(items: Sequence[ItemPrediction]) -> float:
    """Return the largest coverage that can be reached.

    >>> compute_cmax([ItemPrediction(2, 1, 0.1), ItemPrediction(None, 0, 0.5)])
    0.5
    """
    return selective.cmax(**_arrays(items, "abs"))


def compute_tie_sensitivity(
    items: Sequence[ItemPrediction], *, loss: str = "abs", area: str = "aurc"
) -> TieSensitivity:
    """Return the best and the worst area over all orders of tied items.

    >>> compute_tie_sensitivity([ItemPrediction(2, 1, 1), ItemPrediction(0, 0, 1)]).worst
    0.875
    """
    return curves.tie_sensitivity(**_arrays(items, loss), area=area)


def _arrays(items: Sequence[ItemPrediction], loss: str) -> dict[str, Any]:
    answered = np.array([item.is_predicted for item in items], dtype=np.bool_)
    truth = np.array([item.ground_truth for item in items], dtype=np.float64)
    score = np.array([math.nan if item.score is None else item.score for item in items], dtype=np.float64)
    values = np.zeros(len(items))
    values[answered] = named_loss(loss, truth[answered], score[answered], _SCALE)
    return {
        "loss": values,
        "confidence": np.array([item.confidence for item in items], dtype=np.float64),
        "abstained": ~answered,
    }
