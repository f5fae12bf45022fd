"""Accuracy and regression with abstentions: how good the answers are, always beside how many there are.

`accuracy` and `balanced_accuracy` are over all rows: an abstention is a miss, so that who declines gains
nothing. Everything else is over the answered rows, and cannot be compared without the coverage at which it was
had: `classification_scores` and `regression_scores` give both at once. Labels match as `abstain.labels` says;
``abstained`` is a mask (nothing abstained from when left out), ``weights`` are multiplicities. An answered
None is wrong, and has no place in a regression. A metric over nothing is NaN.

Each function is the plan that the bootstrap weighs, at weights all one. Whether abstentions were called for is
in `abstain.metrics.abstention`, whether confidences can be believed in `abstain.metrics.calibration`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from abstain import _validate, labels
from abstain.errors import DataError
from abstain.metrics import _plans
from abstain.metrics._columns import Columns, point

if TYPE_CHECKING:
    from collections.abc import Callable

    from abstain._validate import Column
    from abstain.metrics._plan import Plan

__all__ = [
    "ClassificationScores",
    "RegressionScores",
    "accuracy",
    "auroc",
    "balanced_accuracy",
    "classification_scores",
    "correctness_auroc",
    "f1",
    "macro_f1",
    "mean_absolute_error",
    "pearson_r",
    "precision",
    "recall",
    "regression_scores",
    "root_mean_squared_error",
]


def accuracy(
    y_true: Column,
    y_pred: Column,
    *,
    abstained: Column | None = None,
    treat_abstention_as_neutral: bool = False,
    weights: Column | None = None,
) -> float:
    """Return correct / all; an abstention is wrong even where a stored prediction happens to be right.

    Args:
        y_true: what is right.
        y_pred: what the model said.
        abstained: True where it declined.
        treat_abstention_as_neutral: leave abstentions out of both counts: then it is the selective accuracy.
        weights: multiplicities.

    >>> accuracy([1, 0, 1, 1], [1, 1, 1, 1], abstained=[False, False, False, True])
    0.5
    >>> round(accuracy([1, 0, 1, 1], [1, 1, 1, 1], abstained=[0, 0, 0, 1], treat_abstention_as_neutral=True), 4)
    0.6667
    """
    name = "selective_accuracy" if treat_abstention_as_neutral else "accuracy"
    return _labelled(partial(_plans.outcome, name=name), y_true, y_pred, abstained, weights)


def balanced_accuracy(
    y_true: Column, y_pred: Column, *, abstained: Column | None = None, weights: Column | None = None
) -> float:
    """Return the mean over truth classes of hits / class size; abstained rows and answered Nones are misses.

    NaN with fewer than two truth classes.

    >>> balanced_accuracy([1, 1, 1, 0], [1, 1, 0, 0])
    0.8333333333333333
    """
    return _labelled(_plans.balanced_accuracy, y_true, y_pred, abstained, weights)


def precision(
    y_true: Column,
    y_pred: Column,
    *,
    positive: int | float | str = 1,
    abstained: Column | None = None,
    weights: Column | None = None,
) -> float:
    """Return how many of the answers `positive` are right; NaN when there is none.

    >>> precision([1, 0, 1, 1], [1, 1, 1, 0], abstained=[False, False, False, True])
    0.6666666666666666
    """
    plan = partial(_plans.detection, name="precision", positive=positive)
    return _labelled(plan, y_true, y_pred, abstained, weights)


def recall(
    y_true: Column,
    y_pred: Column,
    *,
    positive: int | float | str = 1,
    abstained: Column | None = None,
    weights: Column | None = None,
) -> float:
    """Return how many of the answered rows that are `positive` were said to be; NaN when there is none.

    >>> recall([1, 1, 1, 0], [1, 0, 1, 0], abstained=[False, False, True, False])
    0.5
    """
    plan = partial(_plans.detection, name="recall", positive=positive)
    return _labelled(plan, y_true, y_pred, abstained, weights)


def f1(
    y_true: Column,
    y_pred: Column,
    *,
    positive: int | float | str = 1,
    abstained: Column | None = None,
    weights: Column | None = None,
) -> float:
    """Return the harmonic mean of precision and recall; 0 where both are 0, NaN where one is undefined.

    >>> f1([1, 1, 0, 0], [1, 0, 1, 0])
    0.5
    """
    plan = partial(_plans.detection, name="f1", positive=positive)
    return _labelled(plan, y_true, y_pred, abstained, weights)


def macro_f1(
    y_true: Column, y_pred: Column, *, abstained: Column | None = None, weights: Column | None = None
) -> float:
    """Return the mean over the truth classes of the answered rows of ``2 hits / (class size + times predicted)``.

    >>> macro_f1(["a", "b", "b"], ["a", "a", "b"])
    0.6666666666666666
    """
    return _labelled(_plans.macro_f1, y_true, y_pred, abstained, weights)


def auroc(
    y_true: Column, score: Column, *, abstained: Column | None = None, weights: Column | None = None
) -> float:
    """Return how often a row that is 1 has a higher score than one that is 0, on answered rows; ties count half.

    NaN when either class is missing.

    Args:
        y_true: 1 or 0.
        score: higher where 1 is more likely; a probability or any other number.
        abstained: True where the model declined.
        weights: multiplicities.

    >>> auroc([1, 0, 1, 0], [0.9, 0.4, 0.4, 0.1])
    0.875
    """
    columns = Columns.checked(y_true, abstained=abstained, confidence=score, weights=weights)
    _validate.finite(columns.confidence, "score", among=columns.answered)
    wrong = columns.answered & ~np.isin(columns.truth_number, (0.0, 1.0))
    if wrong.any():
        raise DataError(f"y_true must be 0 or 1, and is not at row {int(np.argmax(wrong))}")
    return point(_plans.score_auroc(columns))


def correctness_auroc(
    y_true: Column,
    y_pred: Column,
    confidence: Column,
    *,
    abstained: Column | None = None,
    weights: Column | None = None,
) -> float:
    """Return how often a right answer has a higher confidence than a wrong one; ties count half.

    Answered rows with a prediction and a confidence count; NaN when all are right or all are wrong.

    >>> correctness_auroc([1, 1, 1], [1, 0, 1], [0.9, 0.6, 0.6])
    0.75
    """
    columns = Columns.checked(y_true, y_pred, abstained=abstained, confidence=confidence, weights=weights)
    return point(_plans.correctness_auroc(columns))


def mean_absolute_error(
    y_true: Column, y_pred: Column, *, abstained: Column | None = None, weights: Column | None = None
) -> float:
    """Return ``mean |y_pred - y_true|`` over the answered rows; NaN when there is none.

    >>> mean_absolute_error([3, 0, 2], [1, 0, None], abstained=[False, False, True])
    1.0
    """
    return _numeric(_plans.mean_absolute_error, y_true, y_pred, abstained, weights)


def root_mean_squared_error(
    y_true: Column, y_pred: Column, *, abstained: Column | None = None, weights: Column | None = None
) -> float:
    """Return ``sqrt(mean (y_pred - y_true)^2)`` over the answered rows; NaN when there is none.

    >>> root_mean_squared_error([3, 0], [1, 0]) ** 2
    2.0000000000000004
    """
    return _numeric(_plans.root_mean_squared_error, y_true, y_pred, abstained, weights)


def pearson_r(
    y_true: Column, y_pred: Column, *, abstained: Column | None = None, weights: Column | None = None
) -> float:
    """Return the correlation of truths and predictions over the answered rows; NaN when either is constant.

    >>> round(pearson_r([0, 1, 2, 3], [0, 1, 1, 2]), 6)
    0.948683
    """
    return _numeric(_plans.pearson_r, y_true, y_pred, abstained, weights)


@dataclass(frozen=True, slots=True)
class ClassificationScores:
    """How good the answers are, beside how many there are.

    Attributes:
        coverage: answered / n.
        n: weight of all rows.
        accuracy: correct / n.
        balanced_accuracy: mean over truth classes of hits / class size.
        selective_accuracy: correct / answered.
        precision: of the answers `positive`, on answered rows.
        recall: of the rows that are `positive`, on answered rows.
        f1: harmonic mean of the two.
        macro_f1: mean over classes, on answered rows.
    """

    coverage: float
    n: float
    accuracy: float
    balanced_accuracy: float
    selective_accuracy: float
    precision: float
    recall: float
    f1: float
    macro_f1: float


def classification_scores(
    y_true: Column,
    y_pred: Column,
    *,
    positive: int | float | str = 1,
    abstained: Column | None = None,
    weights: Column | None = None,
) -> ClassificationScores:
    """Return the scores of a classifier that may decline, beside its coverage.

    >>> scores = classification_scores([1, 0, 1, 1], [1, 1, 1, None], abstained=[0, 0, 0, 1])
    >>> scores.coverage, scores.recall
    (0.75, 1.0)
    """
    columns = Columns.checked(y_true, y_pred, abstained=abstained, weights=weights)
    outcome = {
        name: point(_plans.outcome(columns, name=name))
        for name in ("answer_rate", "accuracy", "selective_accuracy")
    }
    detected = {
        name: point(_plans.detection(columns, name=name, positive=positive))
        for name in ("precision", "recall", "f1")
    }
    return ClassificationScores(
        coverage=outcome["answer_rate"],
        n=float(columns.weight.sum()),
        accuracy=outcome["accuracy"],
        balanced_accuracy=point(_plans.balanced_accuracy(columns)),
        selective_accuracy=outcome["selective_accuracy"],
        macro_f1=point(_plans.macro_f1(columns)),
        **detected,
    )


@dataclass(frozen=True, slots=True)
class RegressionScores:
    """How close the answers are, beside how many there are.

    Attributes:
        coverage: answered / n.
        n: weight of all rows.
        mean_absolute_error: over the answered rows.
        root_mean_squared_error: over the answered rows.
        pearson_r: over the answered rows.
    """

    coverage: float
    n: float
    mean_absolute_error: float
    root_mean_squared_error: float
    pearson_r: float


def regression_scores(
    y_true: Column, y_pred: Column, *, abstained: Column | None = None, weights: Column | None = None
) -> RegressionScores:
    """Return the scores of a regression that may decline, beside its coverage.

    >>> scores = regression_scores([3, 0, 2], [1, 0, None], abstained=[False, False, True])
    >>> scores.mean_absolute_error, round(scores.coverage, 4)
    (1.0, 0.6667)
    """
    columns = _numbers(y_true, y_pred, abstained, weights)
    return RegressionScores(
        coverage=point(_plans.outcome(columns, name="answer_rate")),
        n=float(columns.weight.sum()),
        mean_absolute_error=point(_plans.mean_absolute_error(columns)),
        root_mean_squared_error=point(_plans.root_mean_squared_error(columns)),
        pearson_r=point(_plans.pearson_r(columns)),
    )


def _labelled(
    build: Callable[[Columns], Plan],
    y_true: Column,
    y_pred: Column,
    abstained: Column | None,
    weights: Column | None,
) -> float:
    return point(build(Columns.checked(y_true, y_pred, abstained=abstained, weights=weights)))


def _numeric(
    build: Callable[[Columns], Plan],
    y_true: Column,
    y_pred: Column,
    abstained: Column | None,
    weights: Column | None,
) -> float:
    return point(build(_numbers(y_true, y_pred, abstained, weights)))


def _numbers(y_true: Column, y_pred: Column, abstained: Column | None, weights: Column | None) -> Columns:
    """Check that what is answered is answered with finite numbers; a missing answer has no distance from the truth."""
    columns = Columns.checked(y_true, y_pred, abstained=abstained, weights=weights)
    named = {"y_true": columns.truth_number, "y_pred": columns.prediction_number}
    for (name, numbers), given in zip(named.items(), (columns.truth, columns.prediction), strict=True):
        text = columns.answered & np.isnan(numbers) & ~labels.missing(given)
        if text.any():
            raise DataError(f"{name} must hold numbers, got text at row {int(np.argmax(text))}")
        _validate.finite(
            numbers, name, among=columns.answered, hint="mark rows that were declined in abstained="
        )
    return columns
