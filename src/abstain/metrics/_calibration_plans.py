"""The plan of every calibration metric: arguments checked, rows binned or summed, ready to be weighed.

A metric's function is its plan here over one cluster at weight one; the bootstrap asks for the same plan over
many clusters. What the metrics mean is said where they are public, in `abstain.metrics.calibration`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from abstain import _validate
from abstain.errors import ArgumentError, DataError
from abstain.metrics._bins import STRATEGIES, BinsPlan
from abstain.metrics._probabilities import Rows, class_columns, comparable, numbered, probabilities
from abstain.metrics._smooth import SmoothPlan
from abstain.metrics._sums import SumsPlan, ratios

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import ArrayLike, NDArray

    from abstain.metrics._plan import Plan

    Floats = NDArray[np.float64]
    Indices = NDArray[np.intp]
    Classes = Sequence[Any] | NDArray[Any] | None

# Stated certainties that turn out wrong would otherwise cost infinitely much.
DEFAULT_CLIP = 1e-6


def expected_calibration_error(
    y_true: ArrayLike,
    confidence: ArrayLike,
    *,
    weights: ArrayLike | None = None,
    cluster: Indices | None = None,
    **settings: Any,
) -> BinsPlan:
    """Bin confidences."""
    checked = bin_settings(**settings)
    rows = Rows.checked(y_true, confidence, weights)
    name, columns = "expected_calibration_error", (rows.outcome, rows.confidence)
    return BinsPlan.build(name, *columns, weight=rows.weight, cluster=cluster, **checked)


def classwise_calibration_error(
    y_true: ArrayLike,
    matrix: ArrayLike,
    *,
    classes: Classes = None,
    weights: ArrayLike | None = None,
    cluster: Indices | None = None,
    **settings: Any,
) -> BinsPlan:
    """Bin each class's probability against that class."""
    checked = bin_settings(**settings)
    column, scores = class_columns(y_true, matrix, classes)
    rows, number = scores.shape
    group = np.tile(np.arange(number), rows)
    return BinsPlan.build(
        "classwise_calibration_error",
        (group == np.repeat(column, number)).astype(np.float64),
        scores.ravel(),
        weight=None if weights is None else np.repeat(_validate.weights(weights, rows), number),
        cluster=None if cluster is None else np.repeat(cluster, number),
        group=group,
        **checked,
    )


def top_label_calibration_error(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    confidence: ArrayLike | None = None,
    *,
    classes: Classes = None,
    weights: ArrayLike | None = None,
    cluster: Indices | None = None,
    **settings: Any,
) -> BinsPlan:
    """Bin the confidence in the predicted label, by label."""
    checked = bin_settings(**settings)
    if confidence is None:
        column, scores = class_columns(y_true, y_pred, classes)
        label = scores.argmax(axis=1)
        outcome, stated = (label == column).astype(np.float64), scores.max(axis=1)
    else:
        truth = _validate.one_dimensional(y_true, "y_true")
        label = _validate.one_dimensional(y_pred, "y_pred")
        stated = probabilities(confidence, "confidence")
        _validate.same_length(len(truth), y_pred=label, confidence=stated)
        if not len(truth):
            raise DataError("y_true is empty; there must be at least one row")
        comparable(truth, label)
        outcome = np.asarray(truth == label, dtype=np.float64)
    return BinsPlan.build(
        "top_label_calibration_error",
        outcome,
        stated,
        weight=None if weights is None else _validate.weights(weights, len(outcome)),
        cluster=cluster,
        group=numbered(label, "y_pred", len(outcome)),
        **checked,
    )


def smooth_calibration_error(
    y_true: ArrayLike,
    confidence: ArrayLike,
    *,
    weights: ArrayLike | None = None,
    cluster: Indices | None = None,
) -> SmoothPlan:
    """Lay residuals on the grid."""
    rows = Rows.checked(y_true, confidence, weights)
    name, columns = "smooth_calibration_error", (rows.outcome, rows.confidence)
    return SmoothPlan.build(name, *columns, weight=rows.weight, cluster=cluster)


def brier_score(
    y_true: ArrayLike,
    confidence: ArrayLike,
    *,
    weights: ArrayLike | None = None,
    cluster: Indices | None = None,
) -> SumsPlan:
    """Sum squared differences."""
    rows = Rows.checked(y_true, confidence, weights)
    return _mean("brier_score", (rows.confidence - rows.outcome) ** 2, rows, cluster)


def negative_log_likelihood(
    y_true: ArrayLike,
    confidence: ArrayLike,
    *,
    clip: float = DEFAULT_CLIP,
    weights: ArrayLike | None = None,
    cluster: Indices | None = None,
) -> SumsPlan:
    """Sum surprises."""
    inside = _validate.real(clip, "clip")
    if not 0.0 < inside < 0.5:
        raise ArgumentError(f"clip must fulfil 0 < clip < 0.5, got {inside:g}")
    rows = Rows.checked(y_true, confidence, weights)
    stated = np.clip(rows.confidence, inside, 1.0 - inside)
    surprise = -np.log(np.where(rows.outcome == 1.0, stated, 1.0 - stated))
    return _mean("negative_log_likelihood", surprise, rows, cluster)


PLANS: dict[str, Callable[..., Plan]] = {
    "expected_calibration_error": expected_calibration_error,
    "classwise_calibration_error": classwise_calibration_error,
    "top_label_calibration_error": top_label_calibration_error,
    "smooth_calibration_error": smooth_calibration_error,
    "brier_score": brier_score,
    "negative_log_likelihood": negative_log_likelihood,
}


def bin_settings(
    *, bins: int = 15, strategy: str = "uniform", norm: float | str = 1, debiased: bool = False
) -> dict[str, Any]:
    """Check the parameters that define a binned error."""
    known: tuple[tuple[float | str, str], ...] = ((1, "1"), (2, "2"), ("max", "max"), (math.inf, "max"))
    name = next((name for value, name in known if value == norm), None)
    if name is None:
        raise ArgumentError(f'norm must be 1, 2 or "max", got {norm!r}')
    if debiased and name == "max":
        raise ArgumentError('debiased=True is defined for norm 1 and 2, not for "max"')
    return {
        "bins": _validate.whole(bins, "bins", least=1),
        "strategy": _validate.choice(strategy, "strategy", STRATEGIES),
        "norm": name,
        "debiased": bool(debiased),
    }


def _mean(name: str, values: Floats, rows: Rows, cluster: Indices | None) -> SumsPlan:
    columns = np.stack([values, np.ones(len(values))], axis=1)
    cluster = np.zeros(len(values), np.intp) if cluster is None else cluster
    return SumsPlan.build((name,), columns, cluster, ratios, weight=rows.weight)
