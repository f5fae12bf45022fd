"""Calibration: whether answers with a confidence of 0.8 are right 8 times out of 10.

``y_true`` is the outcome of every row: 1 if the answer was right (or the event happened), otherwise 0. ``confidence``
is the probability that was stated for it. ``sample_weight`` contains multiplicities: a weight of 2 counts the row
twice. Binned metrics have the arguments ``bins``, ``strategy`` (``uniform`` or ``quantile``, see
`abstain.metrics._calibration_errors`) and ``norm`` (1, 2 or "max"), because a calibration error cannot be interpreted
without them.

`calibration_measure` returns the statistic of a metric. Tests of calibration are in `abstain.metrics.calibration_tests`
and reliability curves in `abstain.metrics.reliability`; both can also be imported from here. Exclude abstained items
before the call.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from abstain import _validate, labels
from abstain._row_names import row_name
from abstain.errors import ArgumentError, DataError
from abstain.metrics import _conditions as undefined_if
from abstain.metrics._calibration_errors import STRATEGIES, bins_statistic, row_bins, smooth_statistic
from abstain.metrics._columns import Columns, named_groups
from abstain.metrics._columns import probabilities as checked
from abstain.metrics._specification import LOWER, Family, MetricSpecification, Parameter, specify
from abstain.metrics.calibration_tests import (
    CalibrationTest,
    CumulativeDifferences,
    cumulative_differences,
    kolmogorov_smirnov,
    kuiper,
    spiegelhalter,
)
from abstain.metrics.coverage import means_statistic
from abstain.metrics.reliability import ReliabilityCurve, reliability_curve
from abstain.metrics.scales import Scale, calibration_scale, costly_scale, mean_scale, unseen_cost
from abstain.resampling import Statistic

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import ArrayLike, NDArray

    from abstain._types import Floats

    Classes = Sequence[Any] | NDArray[Any] | None

__all__ = [
    "BrierDecomposition",
    "CalibrationTest",
    "CumulativeDifferences",
    "ReliabilityCurve",
    "brier_decomposition",
    "brier_score",
    "calibration_measure",
    "classwise_calibration_error",
    "cumulative_differences",
    "expected_calibration_error",
    "kolmogorov_smirnov",
    "kuiper",
    "multiclass_brier_score",
    "negative_log_likelihood",
    "reliability_curve",
    "smooth_calibration_error",
    "spiegelhalter",
    "top_label_calibration_error",
]

DEFAULT_BINS = 15
# Without clipping, a wrong answer with confidence 1 would have an infinite cost.
DEFAULT_CLIP = 1e-6
# Probabilities in single precision do not add up to 1 exactly.
_SUM_TOLERANCE = 1e-4


def expected_calibration_error(
    y_true: ArrayLike,
    confidence: ArrayLike,
    *,
    bins: int = DEFAULT_BINS,
    strategy: str = "uniform",
    norm: float | str = 1,
    debiased: bool = False,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Return the expected calibration error: the mean gap between accuracy and confidence over bins.

    With ``n_b`` rows in bin b, their accuracy ``acc_b`` and mean confidence ``conf_b``::

        norm 1      sum_b (n_b / n) |acc_b - conf_b|
        norm 2      sqrt( sum_b (n_b / n) (acc_b - conf_b)^2 )
        norm "max"  max_b |acc_b - conf_b|

    Lower is better. The plug-in value is biased upwards, and the bias grows as the bins get smaller. ``debiased=True``
    subtracts the bias. For norm 2 it is the variance ``acc_b (1 - acc_b) / (n_b - 1)`` of each bin's accuracy. For
    norm 1 it is the excess of ``E|Z|`` over ``|gap|`` for a normal ``Z`` around the gap with variance
    ``acc_b (1 - acc_b) / n_b``. The result is at least 0.

    References: Naeini, Cooper and Hauskrecht, "Obtaining Well Calibrated Probabilities Using Bayesian
    Binning", 2015; Kumar, Liang and Ma, "Verified Uncertainty Calibration", 2019 (debiased).

    Args:
        y_true: the outcome, 1 or 0.
        confidence: the stated probability, in [0, 1].
        bins: the number of bins.
        strategy: "uniform" for equal widths, "quantile" for equal mass.
        norm: 1, 2 or "max".
        debiased: subtract the bias of small bins; for norms 1 and 2.
        sample_weight: multiplicities.

    >>> round(expected_calibration_error([1, 0, 1, 1], [0.9, 0.8, 0.6, 0.55], bins=10), 6)
    0.4375
    """
    rows = Columns.believed(y_true, confidence, sample_weight=sample_weight)
    settings = _bin_settings(bins=bins, strategy=strategy, norm=norm, debiased=debiased)
    return bins_statistic(rows, **settings).point


def classwise_calibration_error(
    y_true: ArrayLike,
    probabilities: ArrayLike,
    *,
    classes: Classes = None,
    bins: int = DEFAULT_BINS,
    strategy: str = "uniform",
    norm: float | str = 1,
    debiased: bool = False,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Return the mean over classes of the calibration error of the probability of each class.

    For each class, the outcome is ``1[y_true = class]``. Lower is better. Reference: Kull et al., "Beyond temperature
    scaling: Obtaining well-calibrated multi-class probabilities with Dirichlet calibration", 2019.

    Args:
        y_true: the true class of every row.
        probabilities: (rows, classes), each in [0, 1]; rows need not add up to 1, because each class is evaluated
            separately.
        classes: the class of each column. Default: 0, 1, 2, ...
        bins: the number of bins.
        strategy: "uniform" or "quantile".
        norm: 1, 2 or "max".
        debiased: subtract the bias of small bins.
        sample_weight: multiplicities.

    >>> round(classwise_calibration_error([0, 1], [[0.9, 0.1], [0.3, 0.7]]), 6)
    0.2
    """
    settings = _bin_settings(bins=bins, strategy=strategy, norm=norm, debiased=debiased)
    column, scores = _class_columns(y_true, probabilities, classes)
    items, number = scores.shape
    # One row per item and class.
    group = np.tile(np.arange(number), items)
    rows = Columns.of(
        items * number,
        confidence=scores.ravel(),
        weight=np.repeat(_validate.weights(sample_weight, items), number),
        shared={"correct": (group == np.repeat(column, number)).astype(np.float64)},
    )
    return bins_statistic(rows, group=group, **settings).point


def top_label_calibration_error(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    confidence: ArrayLike | None = None,
    *,
    classes: Classes = None,
    bins: int = DEFAULT_BINS,
    strategy: str = "uniform",
    norm: float | str = 1,
    debiased: bool = False,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Return the mean over predicted labels of the calibration error of the rows with that label.

    ``(1/L) * sum_l ECE_l``. ``ECE_l`` is the calibration error of the rows predicted as ``l``, and ``L`` is the number
    of labels that were predicted. A rare label has the same weight as a common one. Lower is better. Reference:
    Gupta and Ramdas, "Top-label calibration and multiclass-to-binary reductions", 2022.

    Args:
        y_true: the true label of every row.
        y_pred: the predicted label of every row, or (rows, classes) probabilities. The class with the largest
            probability (the first of equal ones) is then the prediction, and its probability the confidence.
        confidence: the confidence in the predicted label. Omit it if you pass probabilities.
        classes: the class of each column of probabilities. Default: 0, 1, 2, ...
        bins: the number of bins.
        strategy: "uniform" or "quantile".
        norm: 1, 2 or "max".
        debiased: subtract the bias of small bins.
        sample_weight: multiplicities.

    >>> round(top_label_calibration_error(["a", "b", "b"], ["a", "a", "b"], [0.9, 0.7, 0.6]), 6)
    0.4
    """
    settings = _bin_settings(bins=bins, strategy=strategy, norm=norm, debiased=debiased)
    if confidence is None:
        column, scores = _class_columns(y_true, y_pred, classes)
        label = scores.argmax(axis=1)
        outcome, stated = (label == column).astype(np.float64), scores.max(axis=1)
    else:
        truth = _validate.one_dimensional(y_true, "y_true")
        label = _validate.one_dimensional(y_pred, "y_pred")
        stated = checked(confidence, "confidence")
        _validate.same_length(len(truth), y_pred=label, confidence=stated)
        if not len(truth):
            raise DataError("y_true is empty; there must be at least one row")
        _comparable(truth, label)
        outcome = np.asarray(truth == label, dtype=np.float64)
    rows = Columns.believed(outcome, stated, sample_weight=sample_weight)
    return bins_statistic(rows, group=named_groups(label, "y_pred", len(rows))[1], **settings).point


def smooth_calibration_error(
    y_true: ArrayLike, confidence: ArrayLike, *, sample_weight: ArrayLike | None = None
) -> float:
    """Return the smooth calibration error (smECE), which smooths with a kernel instead of bins.

    ``smECE_h = integral over [0, 1] of |r_h(t)| dt`` with ``r_h(t) = (1/n) * sum_i K_h(t, s_i) (y_i - s_i)``.
    ``K_h`` is the Gaussian of width ``h`` reflected at 0 and 1. The width is chosen so that ``smECE_h = h``. Lower is
    better. The error is continuous in the confidences, whereas a binned error jumps if one of them crosses an edge.
    Residuals are put on a grid of 2048 cells, so values below 1/2048 are below the resolution. Reference: Błasiok and
    Nakkiran, "Smooth ECE: Principled Reliability Diagrams via Kernel Smoothing", 2023.

    >>> round(smooth_calibration_error([1, 1, 0, 1], [0.8, 0.8, 0.8, 0.8]), 4)
    0.05
    """
    return smooth_statistic(Columns.believed(y_true, confidence, sample_weight=sample_weight)).point


def brier_score(y_true: ArrayLike, confidence: ArrayLike, *, sample_weight: ArrayLike | None = None) -> float:
    """Return the Brier score, the mean squared difference between confidence and outcome: ``mean (s - y)^2``.

    Lower is better. Reference: Brier, "Verification of Forecasts Expressed in Terms of Probability", 1950.

    >>> round(brier_score([1, 0], [0.9, 0.2]), 6)
    0.025
    """
    return _brier_score(Columns.believed(y_true, confidence, sample_weight=sample_weight)).point


def multiclass_brier_score(
    y_true: ArrayLike,
    probabilities: ArrayLike,
    *,
    classes: Classes = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Return the Brier score of all classes: ``mean over rows of sum over classes (p - 1[y = class])^2``, in [0, 2].

    Lower is better. For two classes it is twice the `brier_score` of either class. It needs the probability of every
    class, so it is available only as a function of arrays. Reference: Brier, "Verification of Forecasts Expressed in
    Terms of Probability", 1950.

    Args:
        y_true: the true class of every row.
        probabilities: (rows, classes), each in [0, 1]; those of a row add up to 1.
        classes: the class of each column. Default: 0, 1, 2, ...
        sample_weight: multiplicities.

    >>> round(multiclass_brier_score([0, 2], [[0.7, 0.2, 0.1], [0.5, 0.0, 0.5]]), 6)    # (0.14 + 0.5) / 2
    0.32
    """
    column, scores = _class_columns(y_true, probabilities, classes)
    rows, total = len(scores), scores.sum(axis=1)
    wrong = np.abs(total - 1.0) > _SUM_TOLERANCE
    if wrong.any():
        row = int(np.argmax(wrong))
        raise DataError(
            f"probabilities at {row_name(row)} add up to {total[row]:g} ({int(wrong.sum())} such rows); "
            "those of a row must add up to 1"
        )
    stated = scores[np.arange(rows), column]
    # The sum of p^2 over all classes, corrected for the true class: (p - 1)^2 = p^2 - 2p + 1.
    distance = np.vecdot(scores, scores) - 2.0 * stated + 1.0
    weighted = Columns.of(rows, weight=_validate.weights(sample_weight, rows))
    return means_statistic(("multiclass_brier_score",), [distance], weighted).point


def negative_log_likelihood(
    y_true: ArrayLike,
    confidence: ArrayLike,
    *,
    clip: float = DEFAULT_CLIP,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Return the mean negative log-likelihood in nats: ``-mean(y log s + (1 - y) log(1 - s))``.

    Lower is better.

    Args:
        y_true: the outcome, 1 or 0.
        confidence: the stated probability, in [0, 1].
        clip: confidences are clipped to ``[clip, 1 - clip]``, so that every cost is finite.
        sample_weight: multiplicities.

    >>> round(negative_log_likelihood([1, 0], [0.5, 0.5]), 6)
    0.693147
    """
    rows = Columns.believed(y_true, confidence, sample_weight=sample_weight)
    return _negative_log_likelihood(rows, clip=clip).point


@dataclass(frozen=True, slots=True)
class BrierDecomposition:
    """The components of the Brier score: ``brier_score = reliability - resolution + uncertainty + within_bin``.

    Attributes:
        brier_score: ``mean (s - y)^2``.
        reliability: ``sum_b (n_b / n) (conf_b - acc_b)^2``; lower is better.
        resolution: ``sum_b (n_b / n) (acc_b - acc)^2``; higher is better.
        uncertainty: ``acc (1 - acc)``, which does not depend on the confidences.
        within_bin: the contribution of different confidences in the same bin; 0 if each distinct confidence is a
            group.
        n: the weight of all rows.
        groups: the number of groups with rows.
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
    sample_weight: ArrayLike | None = None,
) -> BrierDecomposition:
    """Return the Brier score with its reliability, resolution and uncertainty.

    By default rows are grouped by distinct confidence, and the three components add up exactly. If confidences are
    continuous, nearly every row is a separate group and the components are not informative. Group rows with ``bins`` in
    that case; the remainder is `within_bin`. References: Murphy, "A New Vector Partition of the Probability Score",
    1973; Stephenson, Coelho and Jolliffe, "Two Extra Components in the Brier Score Decomposition", 2008.

    >>> parts = brier_decomposition([1, 0, 1, 1], [0.4, 0.4, 0.8, 0.8])
    >>> round(parts.reliability, 6), round(parts.resolution, 6), round(parts.uncertainty, 6)
    (0.025, 0.0625, 0.1875)
    """
    rows = Columns.believed(y_true, confidence, sample_weight=sample_weight)
    if bins is None:
        group = np.unique(rows.confidence, return_inverse=True)[1]
    else:
        settings = _bin_settings(bins=bins, strategy=strategy)
        group, _ = row_bins(rows.confidence, rows.weight, settings["bins"], settings["strategy"])
    sums = rows.sum_by(group, int(group.max()) + 1, rows.correct, rows.confidence).sums
    filled = sums[0] > 0
    count, outcome_sum, confidence_sum = sums[:, filled]
    total = float(count.sum())
    base_rate = float(outcome_sum.sum()) / total
    score = _brier_score(rows).point
    reliability = float(((confidence_sum - outcome_sum) ** 2 / count).sum()) / total
    resolution = float((count * (outcome_sum / count - base_rate) ** 2).sum()) / total
    uncertainty = base_rate * (1.0 - base_rate)
    within = 0.0 if bins is None else score - (reliability - resolution + uncertainty)
    return BrierDecomposition(score, reliability, resolution, uncertainty, within, total, int(filled.sum()))


def calibration_measure(
    metric: str,
    y_true: ArrayLike,
    *arguments: ArrayLike,
    cluster: ArrayLike | None = None,
    **settings: Any,
) -> Statistic:
    """Return the statistic of a metric, which maps cluster weights to values; a weight of 2 counts a cluster twice.

    Args:
        metric: the name of one of the scalar metrics above.
        y_true: the metric's outcomes or labels.
        arguments: the metric's other array arguments, in order.
        cluster: ids of clusters. Default: each row is a cluster. A weight vector has one number for each distinct id,
            ascending.
        settings: the metric's keyword arguments.

    >>> measure = calibration_measure("brier_score", [1, 0], [0.9, 0.2], cluster=["a", "b"])
    >>> measure(np.array([[1.0, 1.0], [0.0, 2.0]])).round(6)
    array([[0.025],
           [0.04 ]])
    """
    function = _SCALARS[_validate.choice(metric, "metric", _SCALARS)]
    rows = len(np.asarray(y_true))
    names, index = named_groups(np.arange(rows) if cluster is None else cluster, "cluster", rows)

    def value(weights: Floats) -> float:
        if not weights.any():
            return math.nan
        return function(y_true, *arguments, sample_weight=weights[index], **settings)

    return Statistic(
        (metric,), len(names), rows, lambda batch: np.array([[value(weights)] for weights in batch.weights])
    )


_SCALARS: dict[str, Callable[..., float]] = {
    function.__name__: function
    for function in (
        expected_calibration_error,
        classwise_calibration_error,
        top_label_calibration_error,
        smooth_calibration_error,
        brier_score,
        multiclass_brier_score,
        negative_log_likelihood,
    )
}


def _expected_calibration_error(rows: Columns, **settings: Any) -> Statistic:
    return bins_statistic(rows, **_bin_settings(**settings))


def _brier_score(rows: Columns) -> Statistic:
    return means_statistic(("brier_score",), [(rows.event_probability - rows.event) ** 2], rows)


def _negative_log_likelihood(rows: Columns, *, clip: float = DEFAULT_CLIP) -> Statistic:
    clip = _validate.real(clip, "clip")
    if not 0.0 < clip < 0.5:
        raise ArgumentError(f"clip must be greater than 0 and less than 0.5, got {clip:g}")
    right, wrong = _log_losses(rows, clip)
    return means_statistic(("negative_log_likelihood",), [np.where(rows.correct == 1.0, right, wrong)], rows)


def _log_losses(rows: Columns, clip: float = DEFAULT_CLIP) -> tuple[Floats, Floats]:
    """Return the log loss of each row if its outcome is 1, and if it is 0."""
    stated = np.clip(rows.confidence, clip, 1.0 - clip)
    return -np.log(stated), -np.log(1.0 - stated)


def _comparable(truth: NDArray[Any], label: NDArray[Any]) -> None:
    """Raise an error unless true and predicted labels have the same type: 1 never equals "1"."""
    types = ["text" if column.dtype.kind in "US" else "numbers" for column in (truth, label)]
    if "O" not in (truth.dtype.kind, label.dtype.kind) and types[0] != types[1]:
        raise DataError(f"y_true contains {types[0]} and y_pred contains {types[1]}, so they never match")


def _class_columns(y_true: ArrayLike, matrix: ArrayLike, classes: Classes) -> tuple[NDArray[np.intp], Floats]:
    """Return the column of the true class of each row, and the checked (rows, classes) probabilities."""
    try:
        scores = np.asarray(matrix, dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError(
            "probabilities must be a table of numbers, one row per item and one column per class"
        ) from None
    if scores.ndim != 2 or scores.shape[1] < 2:
        raise DataError(
            f"probabilities must have one row per item and at least two classes, got shape {scores.shape}"
        )
    names = np.arange(scores.shape[1]) if classes is None else _validate.one_dimensional(classes, "classes")
    if len(names) != scores.shape[1] or len(np.unique(names)) != len(names):
        raise ArgumentError(
            f"classes must name each of the {scores.shape[1]} columns of probabilities once, got {len(names)} names"
        )
    for column in range(scores.shape[1]):
        checked(scores[:, column], f"probabilities[:, {column}]")
    truth = _validate.one_dimensional(y_true, "y_true")
    _validate.same_length(len(scores), y_true=truth)
    if not len(truth):
        raise DataError("y_true is empty; there must be at least one row")
    match = truth[:, None] == names[None, :]
    unknown = ~match.any(axis=1)
    if unknown.any():
        raise DataError(
            f"y_true at {row_name(int(np.argmax(unknown)))} is not one of the {len(names)} classes "
            f"({int(unknown.sum())} such rows); pass classes= in the order of the columns"
        )
    return match.argmax(axis=1), scores


def _bin_settings(
    *, bins: int = DEFAULT_BINS, strategy: str = "uniform", norm: float | str = 1, debiased: bool = False
) -> dict[str, Any]:
    """Check the parameters that define a binned error."""
    norms: tuple[tuple[float | str, str], ...] = ((1, "1"), (2, "2"), ("max", "max"), (math.inf, "max"))
    name = next((name for value, name in norms if value == norm), None)
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


def _stated(build: Callable[..., Statistic]) -> Family:
    """Return the family of a builder that is called with the rows with a confidence, which must be a probability."""

    def built(columns: Columns, **settings: Any) -> Statistic:
        rows = columns.take(columns.stated)
        checked(rows.confidence, "confidence")
        return build(rows, **settings)

    return Family.of_one(built)


def binned_error_metric(*, bins: int = DEFAULT_BINS, **settings: Any) -> MetricSpecification:
    """Return the registry entry of the expected calibration error, with the given bins, strategy and norm."""
    checked_settings = _bin_settings(bins=bins, **settings)
    metric = _binned_error(settings)
    if not checked_settings["debiased"] and checked_settings["norm"] != "max":
        metric = replace(metric, debiased=_binned_error({**settings, "debiased": True}))
    return metric.at(bins)


def _binned_error(settings: Mapping[str, Any]) -> MetricSpecification:
    build = partial(_expected_calibration_error, **settings)
    return _metric(
        expected_calibration_error,
        family=_stated(build),
        settings=settings,
        parameter=_BINS,
        scale_at=calibration_scale,
    )


def _whole_bins(value: float, name: str) -> int:
    # A number from the command line is read as a float.
    bins: Any = int(value) if float(value).is_integer() else value
    return _validate.whole(bins, name, least=1)


def _log_loss_scale(columns: Columns, _value: Any) -> Scale:
    rows = columns.take(columns.stated)
    right, wrong = _log_losses(rows)
    total = float(rows.weight.sum())
    if not total:
        return Scale(low=0.0)
    error_rate = 1.0 - float(rows.correct @ rows.weight) / total
    cost = max(float((wrong - right) @ rows.weight) / total, 0.0)
    return costly_scale(error_rate, total / rows.row_weight, cost)


def _brier_scale(columns: Columns, _value: Any) -> Scale:
    stated = columns.stated
    rows = columns.take(stated)
    errors = (rows.event_probability - rows.event) ** 2
    others = (rows.event_probability - (1.0 - rows.event)) ** 2
    weight = rows.weight / columns.row_weight
    count = max(float(weight.sum()), 1.0)
    wrong = float((1.0 - rows.correct) @ weight) / count
    cost = max(float((others - errors) @ weight) / count, 0.0)
    return replace(mean_scale(columns, errors, stated), unseen=unseen_cost(wrong, count, cost))


_BINS = Parameter("bins", DEFAULT_BINS, _whole_bins, default_text=False)
_metric = specify(
    undefined_if.NO_CONFIDENCE,
    arguments={"y_true": "correct", "confidence": "confidence"},
    direction=LOWER,
    unit="proportion",
    rows="stated",
    answered_only=True,
)
METRICS: tuple[MetricSpecification, ...] = (
    binned_error_metric(),
    _metric(smooth_calibration_error, family=_stated(smooth_statistic), scale_at=calibration_scale),
    _metric(
        negative_log_likelihood,
        family=_stated(_negative_log_likelihood),
        unit="nats",
        scale_at=_log_loss_scale,
    ),
    _metric(
        top_label_calibration_error,
        family=_stated(
            lambda rows, bins: bins_statistic(rows, group=labels.classes(rows.prediction)[0], bins=bins)
        ),
        arguments={"y_true": "truth", "y_pred": "prediction", "confidence": "confidence"},
        parameter=_BINS,
        scale_at=calibration_scale,
    ),
    _metric(
        brier_score,
        undefined_if.POSITIVE_UNNAMED,
        undefined_if.NOT_BINARY,
        family=_stated(_brier_score),
        arguments={"y_true": "event", "confidence": "event_probability"},
        unit="squared probability",
        scale_at=_brier_scale,
    ),
)
