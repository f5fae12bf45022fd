"""Calibration: whether a confidence of 0.8 comes true 8 times in 10.

``y_true`` is the outcome of every row, 1 where the answer was right (or the event happened) and 0 where not;
``confidence`` is the probability that was stated for it. ``weights`` are multiplicities: a weight of 2 is the
row twice. Binned metrics name their ``bins``, ``strategy`` (``uniform`` or ``quantile``, see
`abstain.metrics._bins`) and ``norm`` (1, 2 or "max") explicitly, because a calibration error without them
means nothing.

Each scalar is the plan that the bootstrap weighs, at weights all one. Tests of calibration are in
`abstain.metrics.calibration_tests` and reliability curves in `abstain.metrics.reliability`; both are found
here too. Abstained items have no place here: leave them out before the call.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from abstain import _validate
from abstain.errors import ArgumentError, DataError
from abstain.metrics._bins import STRATEGIES, BinsPlan, row_bins, total_by
from abstain.metrics._probabilities import Rows, class_columns, probabilities
from abstain.metrics._smooth import SmoothPlan
from abstain.metrics._sums import SumsPlan, ratios
from abstain.metrics.calibration_tests import (
    CalibrationTest,
    CumulativeDifferences,
    cumulative_differences,
    kolmogorov_smirnov,
    kuiper,
    spiegelhalter,
)
from abstain.metrics.reliability import ReliabilityCurve, reliability_curve

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    from abstain.metrics._plan import Plan

    Floats = NDArray[np.float64]
    Indices = NDArray[np.intp]

__all__ = [
    "BrierDecomposition",
    "CalibrationTest",
    "CumulativeDifferences",
    "ReliabilityCurve",
    "brier_decomposition",
    "brier_score",
    "calibration_plan",
    "classwise_calibration_error",
    "cumulative_differences",
    "expected_calibration_error",
    "kolmogorov_smirnov",
    "kuiper",
    "negative_log_likelihood",
    "reliability_curve",
    "smooth_calibration_error",
    "spiegelhalter",
    "top_label_calibration_error",
]

# Stated certainties that turn out wrong would otherwise cost infinitely much.
DEFAULT_CLIP = 1e-6


def expected_calibration_error(
    y_true: ArrayLike,
    confidence: ArrayLike,
    *,
    bins: int = 15,
    strategy: str = "uniform",
    norm: float | str = 1,
    debiased: bool = False,
    weights: ArrayLike | None = None,
) -> float:
    """Return the expected calibration error: the gap between accuracy and confidence, averaged over bins.

    With ``n_b`` rows in bin b, their accuracy ``acc_b`` and mean confidence ``conf_b``::

        norm 1      sum_b (n_b / n) |acc_b - conf_b|
        norm 2      sqrt( sum_b (n_b / n) (acc_b - conf_b)^2 )
        norm "max"  max_b |acc_b - conf_b|

    The plug-in value is biased upwards, the more so the fewer rows a bin has. ``debiased=True`` takes the
    bias off: for norm 2 the variance ``acc_b (1 - acc_b) / (n_b - 1)`` of each bin's accuracy, for norm 1 the
    excess of ``E|Z|`` over ``|gap|``, ``Z`` normal around the gap with variance ``acc_b (1 - acc_b) / n_b``;
    the result is not below 0.

    References: Naeini, Cooper and Hauskrecht, "Obtaining Well Calibrated Probabilities Using Bayesian
    Binning", 2015; Kumar, Liang and Ma, "Verified Uncertainty Calibration", 2019 (debiased).

    Args:
        y_true: 1 where the row came true, else 0.
        confidence: the stated probability, in [0, 1].
        bins: how many bins.
        strategy: "uniform" for equal widths, "quantile" for equal mass.
        norm: 1, 2 or "max".
        debiased: take the bias of small bins off; for norms 1 and 2.
        weights: multiplicities.

    >>> round(expected_calibration_error([1, 0, 1, 1], [0.9, 0.8, 0.6, 0.55], bins=10), 6)
    0.4375
    """
    settings = _settings(bins, strategy, norm, debiased=debiased)
    rows = Rows.checked(y_true, confidence, weights)
    return _point(BinsPlan.build("ece", rows.outcome, rows.confidence, weight=rows.weight, **settings))


def classwise_calibration_error(
    y_true: ArrayLike,
    probabilities: ArrayLike,
    *,
    classes: Sequence[Any] | NDArray[Any] | None = None,
    bins: int = 15,
    strategy: str = "uniform",
    norm: float | str = 1,
    debiased: bool = False,
    weights: ArrayLike | None = None,
) -> float:
    """Return the mean over classes of the calibration error of ``1[y_true = class]`` against that class's probability.

    Reference: Kull et al., "Beyond temperature scaling: Obtaining well-calibrated multi-class probabilities
    with Dirichlet calibration", 2019.

    Args:
        y_true: the true class of every row.
        probabilities: (rows, classes), each in [0, 1]; rows need not add up to 1, each class is judged by
            itself.
        classes: the class of each column; 0, 1, 2, ... when left out.
        bins: how many bins.
        strategy: "uniform" or "quantile".
        norm: 1, 2 or "max".
        debiased: take the bias of small bins off.
        weights: multiplicities.

    >>> round(classwise_calibration_error([0, 1], [[0.9, 0.1], [0.3, 0.7]]), 6)
    0.2
    """
    settings = _settings(bins, strategy, norm, debiased=debiased)
    column, scores, _ = class_columns(y_true, probabilities, classes)
    rows, number = scores.shape
    weight = None if weights is None else np.repeat(_validate.weights(weights, rows), number)
    group = np.tile(np.arange(number), rows)
    outcome = (group == np.repeat(column, number)).astype(np.float64)
    return _point(
        BinsPlan.build("classwise", outcome, scores.ravel(), weight=weight, group=group, **settings)
    )


def top_label_calibration_error(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    confidence: ArrayLike | None = None,
    *,
    classes: Sequence[Any] | NDArray[Any] | None = None,
    bins: int = 15,
    strategy: str = "uniform",
    norm: float | str = 1,
    debiased: bool = False,
    weights: ArrayLike | None = None,
) -> float:
    """Return the mean over predicted labels of each label's own calibration error.

    ``(1/L) * sum_l ECE_l``, where ``ECE_l`` is over the rows that were predicted as ``l`` and ``L`` counts
    the labels that were predicted at all: a rare label weighs as much as a common one. Reference: Gupta and
    Ramdas, "Top-label calibration and multiclass-to-binary reductions", 2022.

    Args:
        y_true: the true label of every row.
        y_pred: the predicted label of every row, or (rows, classes) probabilities, whose largest is the
            prediction (the first of equals) and its confidence.
        confidence: the confidence in the predicted label; leave it out with probabilities.
        classes: the class of each column of probabilities; 0, 1, 2, ... when left out.
        bins: how many bins.
        strategy: "uniform" or "quantile".
        norm: 1, 2 or "max".
        debiased: take the bias of small bins off.
        weights: multiplicities.

    >>> round(top_label_calibration_error(["a", "b", "b"], ["a", "a", "b"], [0.9, 0.7, 0.6]), 6)
    0.4
    """
    settings = _settings(bins, strategy, norm, debiased=debiased)
    if confidence is None:
        column, scores, _ = class_columns(y_true, y_pred, classes)
        label = scores.argmax(axis=1)
        outcome, stated = (label == column).astype(np.float64), scores.max(axis=1)
    else:
        truth = _validate.one_dimensional(y_true, "y_true")
        label = _validate.one_dimensional(y_pred, "y_pred")
        stated = probabilities(confidence, "confidence")
        _validate.same_length(len(truth), y_pred=label, confidence=stated)
        if not len(truth):
            raise DataError("y_true is empty; there must be at least one row")
        outcome = np.asarray(truth == label, dtype=np.float64)
    group = np.unique(label, return_inverse=True)[1].astype(np.intp)
    weight = None if weights is None else _validate.weights(weights, len(outcome))
    return _point(BinsPlan.build("top_label", outcome, stated, weight=weight, group=group, **settings))


def smooth_calibration_error(
    y_true: ArrayLike, confidence: ArrayLike, *, weights: ArrayLike | None = None
) -> float:
    """Return the smooth calibration error: calibration error without bins.

    ``smECE_h = integral over [0, 1] of |r_h(t)| dt`` with ``r_h(t) = (1/n) * sum_i K_h(t, s_i) (y_i - s_i)``
    and ``K_h`` the Gaussian of width ``h`` reflected at 0 and 1; the width is the one with ``smECE_h = h``.
    It moves continuously with the confidences, where a binned error jumps when one of them crosses an edge.
    Residuals are laid on a grid of 2048 cells; a value below 1/2048 is below its resolution. Reference:
    Błasiok and Nakkiran, "Smooth ECE: Principled Reliability Diagrams via Kernel Smoothing", 2023.

    >>> round(smooth_calibration_error([1, 1, 0, 1], [0.8, 0.8, 0.8, 0.8]), 4)
    0.05
    """
    rows = Rows.checked(y_true, confidence, weights)
    return _point(SmoothPlan.build("smooth", rows.outcome, rows.confidence, weight=rows.weight))


def brier_score(y_true: ArrayLike, confidence: ArrayLike, *, weights: ArrayLike | None = None) -> float:
    """Return the Brier score, ``mean (s - y)^2``; lower is better.

    Reference: Brier, "Verification of Forecasts Expressed in Terms of Probability", 1950.

    >>> round(brier_score([1, 0], [0.9, 0.2]), 6)
    0.025
    """
    return _point(_brier_plan(Rows.checked(y_true, confidence, weights)))


def negative_log_likelihood(
    y_true: ArrayLike, confidence: ArrayLike, *, clip: float = DEFAULT_CLIP, weights: ArrayLike | None = None
) -> float:
    """Return the mean negative log-likelihood, ``-mean(y log s + (1 - y) log(1 - s))``, in nats; lower is better.

    Args:
        y_true: 1 where the row came true, else 0.
        confidence: the stated probability, in [0, 1].
        clip: confidences are moved into ``[clip, 1 - clip]``, so that no certainty costs infinitely much.
        weights: multiplicities.

    >>> round(negative_log_likelihood([1, 0], [0.5, 0.5]), 6)
    0.693147
    """
    return _point(_likelihood_plan(Rows.checked(y_true, confidence, weights), _checked_clip(clip)))


@dataclass(frozen=True, slots=True)
class BrierDecomposition:
    """The Brier score taken apart: ``brier_score = reliability - resolution + uncertainty + within_bin``.

    Attributes:
        brier_score: ``mean (s - y)^2``.
        reliability: ``sum_b (n_b / n) (conf_b - acc_b)^2``; lower is better.
        resolution: ``sum_b (n_b / n) (acc_b - acc)^2``; higher is better.
        uncertainty: ``acc (1 - acc)``, which no forecaster can change.
        within_bin: what the spread of confidences inside bins adds; 0 when each distinct confidence is a
            group.
        n: the weight of all rows.
        groups: how many groups hold rows.
    """

    brier_score: float
    reliability: float
    resolution: float
    uncertainty: float
    within_bin: float
    n: float
    groups: int


def brier_decomposition(
    y_true: ArrayLike,
    confidence: ArrayLike,
    *,
    bins: int | None = None,
    strategy: str = "uniform",
    weights: ArrayLike | None = None,
) -> BrierDecomposition:
    """Return the Brier score with its reliability, resolution and uncertainty.

    Rows are grouped by their distinct confidences, for which the three parts add up exactly. Where
    confidences are continuous nearly every row is a group of its own, and the parts say little: group them
    with ``bins`` then, and the remainder is `within_bin`. References: Murphy, "A New Vector Partition of the
    Probability Score", 1973; Stephenson, Coelho and Jolliffe, "Two Extra Components in the Brier Score
    Decomposition", 2008.

    >>> parts = brier_decomposition([1, 0, 1, 1], [0.4, 0.4, 0.8, 0.8])
    >>> round(parts.reliability, 6), round(parts.resolution, 6), round(parts.uncertainty, 6)
    (0.025, 0.0625, 0.1875)
    """
    rows = Rows.checked(y_true, confidence, weights)
    if bins is None:
        group = np.unique(rows.confidence, return_inverse=True)[1]
    else:
        settings = _settings(bins, strategy, 2, debiased=False)
        group, _ = row_bins(rows.confidence, rows.counted, settings["bins"], settings["strategy"])
    columns = (rows.counted, rows.counted * rows.outcome, rows.counted * rows.confidence)
    count, happened, stated = (total_by(group, column) for column in columns)
    held = count > 0
    count, happened, stated = count[held], happened[held], stated[held]
    total = float(count.sum())
    base = float(happened.sum()) / total
    score = brier_score(rows.outcome, rows.confidence, weights=rows.weight)
    reliability = float(((stated - happened) ** 2 / count).sum()) / total
    resolution = float((count * (happened / count - base) ** 2).sum()) / total
    uncertainty = base * (1.0 - base)
    within = 0.0 if bins is None else score - (reliability - resolution + uncertainty)
    return BrierDecomposition(score, reliability, resolution, uncertainty, within, total, int(held.sum()))


def calibration_plan(
    metric: str,
    y_true: ArrayLike,
    confidence: ArrayLike,
    *,
    cluster: Indices,
    weights: ArrayLike | None = None,
    **settings: Any,
) -> Plan:
    """Return the plan of a metric, for intervals: weigh several of them with the same draws.

    Args:
        metric: "expected_calibration_error", "smooth_calibration_error", "brier_score" or
            "negative_log_likelihood".
        y_true: 1 where the row came true, else 0.
        confidence: the stated probability, in [0, 1].
        cluster: the number of each row's cluster, counted from 0 without a gap.
        weights: multiplicities.
        settings: the keyword arguments of the metric.

    >>> plan = calibration_plan("brier_score", [1, 0], [0.9, 0.2], cluster=np.array([0, 1]))
    >>> plan(np.array([[1.0, 1.0], [0.0, 2.0]])).round(6)
    array([[0.025],
           [0.04 ]])
    """
    known = (
        "expected_calibration_error",
        "smooth_calibration_error",
        "brier_score",
        "negative_log_likelihood",
    )
    _validate.choice(metric, "metric", known)
    rows = Rows.checked(y_true, confidence, weights)
    _validate.same_length(len(rows.outcome), cluster=cluster)
    if metric == "negative_log_likelihood":
        return _likelihood_plan(rows, _checked_clip(settings.pop("clip", DEFAULT_CLIP)), cluster)
    if metric == "brier_score":
        return _brier_plan(rows, cluster)
    columns = (rows.outcome, rows.confidence)
    if metric == "smooth_calibration_error":
        return SmoothPlan.build(metric, *columns, weight=rows.weight, cluster=cluster)
    checked = _settings(**{"bins": 15, "strategy": "uniform", "norm": 1, "debiased": False, **settings})
    return BinsPlan.build(metric, *columns, weight=rows.weight, cluster=cluster, **checked)


def _point(plan: Plan) -> float:
    """One metric over one cluster, at weight one."""
    return float(plan(np.ones((1, 1)))[0, 0])


def _brier_plan(rows: Rows, cluster: Indices | None = None) -> SumsPlan:
    return _mean_plan("brier_score", (rows.confidence - rows.outcome) ** 2, rows, cluster)


def _likelihood_plan(rows: Rows, clip: float, cluster: Indices | None = None) -> SumsPlan:
    stated = np.clip(rows.confidence, clip, 1.0 - clip)
    surprise = -np.log(np.where(rows.outcome == 1.0, stated, 1.0 - stated))
    return _mean_plan("negative_log_likelihood", surprise, rows, cluster)


def _mean_plan(name: str, values: Floats, rows: Rows, cluster: Indices | None) -> SumsPlan:
    columns = np.stack([values, np.ones(len(values))], axis=1)
    cluster = np.zeros(len(values), np.intp) if cluster is None else cluster
    return SumsPlan.build((name,), columns, cluster, ratios, weight=rows.weight)


def _checked_clip(clip: float) -> float:
    number = _validate.real(clip, "clip")
    if not 0.0 < number < 0.5:
        raise ArgumentError(f"clip must fulfil 0 < clip < 0.5, got {number:g}")
    return number


def _settings(bins: int, strategy: str, norm: float | str, *, debiased: bool) -> dict[str, Any]:
    """Check the parameters that define a binned error."""
    name = (
        "max" if norm in ("max", math.inf) else f"{norm:g}" if isinstance(norm, (int, float)) else str(norm)
    )
    if name not in ("1", "2", "max"):
        raise ArgumentError(f'norm must be 1, 2 or "max", got {norm!r}')
    if debiased and name == "max":
        raise ArgumentError('debiased=True is defined for norm 1 and 2, not for "max"')
    return {
        "bins": _validate.whole(bins, "bins", least=1),
        "strategy": _validate.choice(strategy, "strategy", STRATEGIES),
        "norm": name,
        "debiased": bool(debiased),
    }
