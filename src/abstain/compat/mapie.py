"""MAPIE's metrics with its names, arguments and argument order; every value is computed by `abstain.metrics`.

    from abstain.compat.mapie import regression_coverage_score, expected_calibration_error

A program that calls ``mapie.metrics`` only needs another import. If MAPIE's value contradicts its documentation or
depends on the order of rows, abstain's value is returned:

- A calibration error has as many bins as requested; MAPIE has one fewer. Bins are closed on the left; MAPIE's are
  closed on the right. "array split" gives bins of equal mass, independent of the order of the rows.
- Tied scores are one step of the cumulative differences, without jitter, and Kuiper's range includes the start.
- A statistic that cannot vary by chance is NaN; MAPIE divides by zero.
- Intervals of equal width at a boundary between strata are divided evenly; MAPIE follows the order of the rows. Any
  number of strata is allowed.
- Infinite bounds are allowed. Crossed bounds are an error, except in the Winkler score, which swaps them as MAPIE does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from abstain import _validate
from abstain.errors import ArgumentError
from abstain.metrics import calibration, intervals, sets
from abstain.metrics.calibration_tests import range_survival, supremum_survival

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from abstain._types import Floats


__all__ = [
    "classification_coverage_score",
    "classification_mean_width_score",
    "classification_ssc",
    "classification_ssc_score",
    "coverage_width_based",
    "expected_calibration_error",
    "hsic",
    "kolmogorov_smirnov_cdf",
    "kolmogorov_smirnov_p_value",
    "kolmogorov_smirnov_statistic",
    "kuiper_cdf",
    "kuiper_p_value",
    "kuiper_statistic",
    "regression_coverage_score",
    "regression_mean_width_score",
    "regression_mwi_score",
    "regression_ssc",
    "regression_ssc_score",
    "spiegelhalter_p_value",
    "spiegelhalter_statistic",
    "top_label_ece",
]

# MAPIE's binning strategies and ours.
_STRATEGIES = {"uniform": "uniform", "quantile": "quantile", "array split": "quantile"}


def regression_coverage_score(y_true: ArrayLike, y_intervals: ArrayLike) -> Floats:
    """Return the coverage of intervals, one value per level: see `abstain.metrics.interval_coverage`.

    >>> regression_coverage_score([1, 2, 3, 4], [[0, 1], [0, 1], [3, 5], [4, 4]])
    array([0.75])
    """
    return np.atleast_1d(intervals.interval_coverage(y_true, y_intervals))


def regression_mean_width_score(y_intervals: ArrayLike) -> Floats:
    """Return the mean width of intervals, one value per level: see `abstain.metrics.interval_mean_width`.

    >>> regression_mean_width_score([[[4, 6], [6, 9]], [[9, 10], [10, 12]]])
    array([1.5, 2.5])
    """
    return np.atleast_1d(intervals.interval_mean_width(y_intervals))


def regression_ssc(y_true: ArrayLike, y_intervals: ArrayLike, num_bins: int = 3) -> Floats:
    """Return the coverage by width, (levels, strata): see `abstain.metrics.interval_size_stratified_coverage`.

    >>> regression_ssc([1, 1, 1, 9], [[0, 1], [0, 2], [0, 3], [0, 4]], num_bins=2)
    array([[1. , 0.5]])
    """
    strata = intervals.interval_size_stratified_coverage(y_true, y_intervals, bins=num_bins)
    return np.atleast_2d(strata.coverage)


def regression_ssc_score(y_true: ArrayLike, y_intervals: ArrayLike, num_bins: int = 3) -> Floats:
    """Return the lowest coverage of a width stratum, one value per level.

    >>> regression_ssc_score([1, 1, 1, 9], [[0, 1], [0, 2], [0, 3], [0, 4]], num_bins=2)
    array([0.5])
    """
    strata = intervals.interval_size_stratified_coverage(y_true, y_intervals, bins=num_bins)
    return np.atleast_1d(strata.score)


def hsic(y_true: ArrayLike, y_intervals: ArrayLike, kernel_sizes: ArrayLike = (1, 1)) -> Floats:
    """Return the dependence of coverage on width, one value per level: see `abstain.metrics.interval_hsic`.

    >>> hsic([0, 0, 5], [[0, 1], [0, 1], [0, 3]]).round(6)
    array([0.525164])
    """
    sizes: Any = tuple(np.asarray(kernel_sizes).tolist())
    return np.atleast_1d(intervals.interval_hsic(y_true, y_intervals, kernel_sizes=sizes))


def coverage_width_based(
    y_true: ArrayLike, y_pred_low: ArrayLike, y_pred_up: ArrayLike, eta: float, confidence_level: float
) -> float:
    """Return the coverage-width criterion: see `abstain.metrics.interval_coverage_width_criterion`.

    >>> round(coverage_width_based([5, 7.5, 9.5, 10.5, 12.5], [4, 6, 9, 8.5, 10.5], [6, 9, 10, 12.5, 12], 0.01, 0.9), 2)
    0.69
    """
    bounds = np.column_stack([np.asarray(y_pred_low), np.asarray(y_pred_up)])
    level = _validate.level(confidence_level, "confidence_level")
    return float(intervals.interval_coverage_width_criterion(y_true, bounds, eta=eta, level=level))


def regression_mwi_score(y_true: ArrayLike, y_pis: ArrayLike, confidence_level: float) -> float:
    """Return the Winkler score of the first level of intervals (rows, 2, 1): see `abstain.metrics.winkler_score`.

    >>> regression_mwi_score([1, 7], [[[0], [2]], [[0], [4]]], 0.5)
    9.0
    """
    bounds = np.asarray(y_pis, dtype=np.float64)
    if bounds.ndim == 3 and bounds.shape[1:] != (2, 1):
        raise ArgumentError(
            f"y_pis must have the shape (rows, 2, 1), got {bounds.shape}; pass one level at a time"
        )
    level = _validate.level(confidence_level, "confidence_level")
    ordered = np.sort(bounds.reshape(len(bounds), -1), axis=1)
    return float(intervals.winkler_score(y_true, ordered, level=level))


def classification_coverage_score(y_true: ArrayLike, y_pred_set: ArrayLike) -> Floats:
    """Return the coverage of sets, one value per level: see `abstain.metrics.set_coverage`.

    >>> classification_coverage_score([0, 1], [[True, False], [True, False]])
    array([0.5])
    """
    return np.atleast_1d(sets.set_coverage(y_true, y_pred_set))


def classification_mean_width_score(y_pred_set: ArrayLike) -> Floats:
    """Return the mean number of classes in a set, one value per level: see `abstain.metrics.set_mean_width`.

    >>> classification_mean_width_score([[True, False], [True, True]])
    array([1.5])
    """
    return np.atleast_1d(sets.set_mean_width(y_pred_set))


def classification_ssc(y_true: ArrayLike, y_pred_set: ArrayLike, num_bins: int | None = None) -> Floats:
    """Return the coverage by set size, (levels, strata): see `abstain.metrics.set_size_stratified_coverage`.

    >>> classification_ssc([0, 1, 1], [[True, False], [True, False], [True, True]])
    array([[nan, 0.5, 1. ]])
    """
    return np.atleast_2d(sets.set_size_stratified_coverage(y_true, y_pred_set, bins=num_bins).coverage)


def classification_ssc_score(y_true: ArrayLike, y_pred_set: ArrayLike, num_bins: int | None = None) -> Floats:
    """Return the lowest coverage of a set-size stratum, one value per level.

    >>> classification_ssc_score([0, 1, 1], [[True, False], [True, False], [True, True]])
    array([0.5])
    """
    return np.atleast_1d(sets.set_size_stratified_coverage(y_true, y_pred_set, bins=num_bins).score)


def expected_calibration_error(
    y_true: ArrayLike,
    y_scores: ArrayLike,
    num_bins: int = 50,
    split_strategy: str | None = None,
    classwise: bool = False,
    class_labels: ArrayLike | None = None,
) -> float:
    """Return the expected calibration error: see `abstain.metrics.expected_calibration_error`.

    Args:
        y_true: 1 if the prediction is right, 0 otherwise.
        y_scores: the confidence of every row, or (rows, classes); the largest is then the confidence.
        num_bins: number of bins.
        split_strategy: "uniform" (default), "quantile" or "array split".
        classwise: average the error of every class instead; see `abstain.metrics.classwise_calibration_error`.
        class_labels: the true class of every row, for `classwise`.

    >>> round(expected_calibration_error([1, 0, 1, 1], [0.9, 0.8, 0.6, 0.55], num_bins=10), 6)
    0.4375
    """
    settings = {"bins": num_bins, "strategy": _strategy(split_strategy)}
    scores = np.asarray(y_scores)
    if not classwise:
        confidence = scores.max(axis=1) if scores.ndim == 2 and scores.shape[1] else scores
        return calibration.expected_calibration_error(y_true, confidence, **settings)  # type: ignore[arg-type]
    if class_labels is None:
        raise ArgumentError("class_labels, the true class of every row, is required with classwise=True")
    return calibration.classwise_calibration_error(class_labels, scores, **settings)  # type: ignore[arg-type]


def top_label_ece(
    y_true: ArrayLike,
    y_scores: ArrayLike,
    y_score_arg: ArrayLike | None = None,
    num_bins: int = 50,
    split_strategy: str | None = None,
    classes: ArrayLike | None = None,
) -> float:
    """Return the mean over predicted labels of each label's error: see `abstain.metrics.top_label_calibration_error`.

    Args:
        y_true: the true label of every row.
        y_scores: (rows, classes) probabilities, or the largest of every row.
        y_score_arg: the predicted label of every row, if `y_scores` is the largest probability of every row.
        num_bins: number of bins.
        split_strategy: "uniform" (default), "quantile" or "array split".
        classes: the class of each column of `y_scores`. Default: 0, 1, 2, ...

    >>> round(top_label_ece([0, 1, 1], [0.9, 0.7, 0.6], [0, 0, 1]), 6)
    0.4
    """
    settings = {"bins": num_bins, "strategy": _strategy(split_strategy)}
    arrays = (y_true, y_scores) if y_score_arg is None else (y_true, y_score_arg, y_scores)
    names = None if classes is None else np.asarray(classes)
    return calibration.top_label_calibration_error(*arrays, classes=names, **settings)  # type: ignore[arg-type]


def kolmogorov_smirnov_statistic(y_true: ArrayLike, y_score: ArrayLike) -> float:
    """Return the largest absolute cumulative difference: see `abstain.metrics.kolmogorov_smirnov`.

    >>> round(kolmogorov_smirnov_statistic([0, 1, 0, 1, 0], [0.1, 0.9, 0.21, 0.9, 0.5]), 3)
    0.978
    """
    return calibration.kolmogorov_smirnov(y_true, y_score).statistic


def kolmogorov_smirnov_cdf(x: float) -> float:
    """Return ``P(sup |B| <= x)`` of Brownian motion on [0, 1].

    >>> round(kolmogorov_smirnov_cdf(1), 4)
    0.3708
    """
    return 1.0 - supremum_survival(_validate.real(x, "x"))


def kolmogorov_smirnov_p_value(y_true: ArrayLike, y_score: ArrayLike) -> float:
    """Return the probability of a statistic at least as large if the scores are calibrated.

    >>> round(kolmogorov_smirnov_p_value([1, 0, 0, 0], [0.9, 0.8, 0.7, 0.6]), 3)
    0.024
    """
    return calibration.kolmogorov_smirnov(y_true, y_score).p_value


def kuiper_statistic(y_true: ArrayLike, y_score: ArrayLike) -> float:
    """Return the range of the cumulative differences, including their start: see `abstain.metrics.kuiper`.

    >>> round(kuiper_statistic([1, 0, 0, 0], [0.9, 0.8, 0.7, 0.6]), 2)
    2.51
    """
    return calibration.kuiper(y_true, y_score).statistic


def kuiper_cdf(x: float) -> float:
    """Return ``P(max B - min B <= x)`` of Brownian motion on [0, 1].

    >>> round(kuiper_cdf(1), 4)
    0.0634
    """
    return 1.0 - range_survival(_validate.real(x, "x"))


def kuiper_p_value(y_true: ArrayLike, y_score: ArrayLike) -> float:
    """Return the probability of a range at least as large if the scores are calibrated.

    >>> round(kuiper_p_value([1, 0, 0, 0], [0.9, 0.8, 0.7, 0.6]), 3)
    0.048
    """
    return calibration.kuiper(y_true, y_score).p_value


def spiegelhalter_statistic(y_true: ArrayLike, y_score: ArrayLike) -> float:
    """Return Spiegelhalter's z: see `abstain.metrics.spiegelhalter`.

    >>> round(spiegelhalter_statistic([0, 1, 0, 1, 0], [0.1, 0.9, 0.21, 0.9, 0.5]), 3)
    -0.757
    """
    return calibration.spiegelhalter(y_true, y_score).statistic


def spiegelhalter_p_value(y_true: ArrayLike, y_score: ArrayLike) -> float:
    """Return the p-value of Spiegelhalter's z, one-sided as in MAPIE: only overconfidence counts.

    >>> round(spiegelhalter_p_value([1, 0, 1, 0, 1, 0], [0.8, 0.3, 0.5, 0.5, 0.7, 0.1]), 4)
    0.8486
    """
    return calibration.spiegelhalter(y_true, y_score, alternative="greater").p_value


def _strategy(name: str | None) -> str:
    return _STRATEGIES[_validate.choice("uniform" if name is None else name, "split_strategy", _STRATEGIES)]
