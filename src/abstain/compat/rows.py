"""Selective metrics of a list of `ItemPrediction`, for code with one object per item.

Each ``compute_x`` is `abstain.metrics.x` of the arrays of the items. The default loss is the absolute error, and
``abs_norm`` divides it by the width of the item scale 0 to 3. The risk at a coverage above the maximum coverage is
None.
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

    Predictions = Sequence["ItemPrediction"]

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

# The item scale of the system that this interface comes from.
_SCALE = (0.0, 3.0)


@dataclass(frozen=True, slots=True)
class ItemPrediction:
    """One prediction with its confidence.

    Attributes:
        score: the prediction; None if the model abstained.
        ground_truth: the true score.
        confidence: higher is more confident.
        participant_id: the cluster of the item.
        item: the name of the item.

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


def compute_risk_coverage_curve(items: Predictions, *, loss: str = "abs") -> RiskCoverageCurve:
    """Return the operating points.

    >>> compute_risk_coverage_curve([ItemPrediction(2, 2, 1.0), ItemPrediction(None, 1, 0.0)])[0]
    (0.5, 0.0)
    """
    return curves.risk_coverage_curve(**_arrays(items, loss))


def compute_aurc(items: Predictions, *, loss: str = "abs", convention: str = "trapezoid") -> float:
    """Return the AURC, the area under the curve of selective risk over coverage.

    >>> compute_aurc([ItemPrediction(2, 1, 1.0), ItemPrediction(None, 0, 0.0)])
    0.5
    """
    return selective.aurc(**_arrays(items, loss), convention=convention)


def compute_augrc(items: Predictions, *, loss: str = "abs", convention: str = "trapezoid") -> float:
    """Return the AUGRC, the area under the curve of generalized risk over coverage.

    >>> compute_augrc([ItemPrediction(2, 1, 1.0), ItemPrediction(None, 0, 0.0)])
    0.125
    """
    return selective.augrc(**_arrays(items, loss), convention=convention)


def compute_aurc_optimal(items: Predictions, *, loss: str = "abs", convention: str = "trapezoid") -> float:
    """Return the AURC of a perfect ranking.

    >>> compute_aurc_optimal([ItemPrediction(2, 1, 1.0), ItemPrediction(0, 0, 0.5)])
    0.125
    """
    return selective.aurc_optimal(**_arrays(items, loss), convention=convention)


def compute_augrc_optimal(items: Predictions, *, loss: str = "abs", convention: str = "trapezoid") -> float:
    """Return the AUGRC of a perfect ranking.

    >>> compute_augrc_optimal([ItemPrediction(2, 1, 1.0), ItemPrediction(0, 0, 0.5)])
    0.125
    """
    return selective.augrc_optimal(**_arrays(items, loss), convention=convention)


def compute_eaurc(items: Predictions, *, loss: str = "abs", convention: str = "trapezoid") -> float:
    """Return the excess AURC over a perfect ranking.

    >>> compute_eaurc([ItemPrediction(2, 1, 1.0), ItemPrediction(0, 0, 0.5)])
    0.75
    """
    return selective.eaurc(**_arrays(items, loss), convention=convention)


def compute_eaugrc(items: Predictions, *, loss: str = "abs", convention: str = "trapezoid") -> float:
    """Return the excess AUGRC over a perfect ranking.

    >>> compute_eaugrc([ItemPrediction(2, 1, 1.0), ItemPrediction(0, 0, 0.5)])
    0.25
    """
    return selective.eaugrc(**_arrays(items, loss), convention=convention)


def compute_aurc_achievable(items: Predictions, *, loss: str = "abs", convention: str = "trapezoid") -> float:
    """Return the area under the lower convex hull of the risk-coverage curve.

    >>> compute_aurc_achievable([ItemPrediction(2, 1, 1.0), ItemPrediction(0, 0, 0.5)])
    0.875
    """
    return selective.aurc_achievable(**_arrays(items, loss), convention=convention)


def compute_aurc_at_coverage(
    items: Predictions, target_coverage: float, *, loss: str = "abs", convention: str = "trapezoid"
) -> float:
    """Return the AURC up to a coverage.

    >>> compute_aurc_at_coverage([ItemPrediction(2, 1, 1.0), ItemPrediction(0, 0, 0.5)], 0.5)
    0.5
    """
    coverage = _validate.coverage(target_coverage, "target_coverage")
    return selective.aurc_at_coverage(**_arrays(items, loss), coverage=coverage, convention=convention)


def compute_augrc_at_coverage(
    items: Predictions, target_coverage: float, *, loss: str = "abs", convention: str = "trapezoid"
) -> float:
    """Return the AUGRC up to a coverage.

    >>> compute_augrc_at_coverage([ItemPrediction(2, 1, 1.0), ItemPrediction(0, 0, 0.5)], 0.5)
    0.125
    """
    coverage = _validate.coverage(target_coverage, "target_coverage")
    return selective.augrc_at_coverage(**_arrays(items, loss), coverage=coverage, convention=convention)


def compute_risk_at_coverage(
    items: Predictions, target_coverage: float, *, loss: str = "abs"
) -> float | None:
    """Return the selective risk at a coverage; None if the maximum coverage is smaller.

    >>> compute_risk_at_coverage([ItemPrediction(2, 1, 1.0), ItemPrediction(0, 0, 0.5)], target_coverage=1.0)
    0.5
    """
    coverage = _validate.coverage(target_coverage, "target_coverage")
    risk = selective.risk_at_coverage(**_arrays(items, loss), coverage=coverage)
    return None if math.isnan(risk) else risk


def compute_coverage_at_risk(items: Predictions, target_risk: float, *, loss: str = "abs") -> float:
    """Return the largest coverage whose selective risk is at most `target_risk`.

    >>> compute_coverage_at_risk([ItemPrediction(2, 1, 0.1), ItemPrediction(0, 0, 0.5)], 0.2)
    0.5
    """
    return selective.coverage_at_risk(**_arrays(items, loss), risk=target_risk)


def compute_cmax(items: Predictions) -> float:
    """Return the maximum coverage, the proportion of items that were answered.

    >>> compute_cmax([ItemPrediction(2, 1, 0.1), ItemPrediction(None, 0, 0.5)])
    0.5
    """
    return selective.cmax(**_arrays(items, "abs"))


def compute_tie_sensitivity(items: Predictions, *, loss: str = "abs", area: str = "aurc") -> TieSensitivity:
    """Return the best and the worst area over all orders of tied items.

    >>> compute_tie_sensitivity([ItemPrediction(2, 1, 1), ItemPrediction(0, 0, 1)]).worst
    0.875
    """
    return curves.tie_sensitivity(**_arrays(items, loss), area=area)


def _arrays(items: Predictions, loss: str) -> dict[str, Any]:
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
