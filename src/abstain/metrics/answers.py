"""Accuracy and related metrics of classifiers that may decline.

`accuracy` and `balanced_accuracy` are over all rows: an abstention counts as wrong, so declining brings no advantage.
All other metrics are over the answered rows and cannot be compared without the coverage. `classification_scores`
returns both. `abstain.labels` defines when labels match. ``abstained`` is a mask (default: no abstentions), and
``sample_weight`` contains multiplicities. The answer None is wrong. A metric of no rows is NaN.

The statistics and the registry entries are below the functions. Answers that are numbers are in
`abstain.metrics.regression`, abstentions in `abstain.metrics.abstention`, confidences in `abstain.metrics.calibration`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from abstain import _validate, labels
from abstain._row_names import row_name
from abstain.errors import DataError
from abstain.metrics import _conditions as undefined_if
from abstain.metrics._columns import Columns, ratio, subtract
from abstain.metrics._outcomes import OUTCOMES, harmonic
from abstain.metrics._specification import (
    HIGHER,
    LABELS,
    PENALIZED,
    Family,
    MetricSpecification,
    metrics_of_sums,
    specify,
)
from abstain.metrics.scales import auroc_scale, balanced_proportion_scale, proportion_of
from abstain.resampling import CurveRequest, Statistic, WeightBatch, integrate_curve, keys_ascending

if TYPE_CHECKING:
    from collections.abc import Sequence

    from abstain._types import Floats, Mask
    from abstain._validate import Column

    Label = int | float | str

__all__ = [
    "ClassificationScores",
    "accuracy",
    "auroc",
    "balanced_accuracy",
    "classification_scores",
    "correctness_auroc",
    "f1",
    "macro_f1",
    "precision",
    "recall",
]


def accuracy(
    y_true: Column,
    y_pred: Column,
    *,
    abstained: Column | None = None,
    treat_abstention_as_neutral: bool = False,
    sample_weight: Column | None = None,
) -> float:
    """Return the proportion of all rows that are answered correctly; an abstention counts as wrong.

    Higher is better. An abstention counts as wrong even if a stored prediction matches the label.

    Args:
        y_true: the true label of every row.
        y_pred: the predicted label of every row.
        abstained: True for rows that the model declined.
        treat_abstention_as_neutral: exclude abstentions, which gives the selective accuracy.
        sample_weight: multiplicities.

    >>> accuracy([1, 0, 1, 1], [1, 1, 1, 1], abstained=[False, False, False, True])
    0.5
    >>> round(accuracy([1, 0, 1, 1], [1, 1, 1, 1], abstained=[0, 0, 0, 1], treat_abstention_as_neutral=True), 4)
    0.6667
    """
    columns = Columns.checked(y_true, y_pred, abstained=abstained, sample_weight=sample_weight)
    return _point("accuracy", columns.take(columns.answered) if treat_abstention_as_neutral else columns)


def balanced_accuracy(
    y_true: Column, y_pred: Column, *, abstained: Column | None = None, sample_weight: Column | None = None
) -> float:
    """Return the mean over true classes of the proportion of rows answered correctly; an abstention counts as wrong.

    Higher is better. The answer None is wrong. NaN if there are fewer than two true classes.

    >>> balanced_accuracy([1, 1, 1, 0], [1, 1, 0, 0])
    0.8333333333333333
    """
    columns = Columns.checked(y_true, y_pred, abstained=abstained, sample_weight=sample_weight)
    return _point("balanced_accuracy", columns)


def precision(
    y_true: Column,
    y_pred: Column,
    *,
    positive: Label = 1,
    abstained: Column | None = None,
    sample_weight: Column | None = None,
) -> float:
    """Return the proportion of the answers with the positive label that are correct; NaN if there are none.

    Higher is better. Computed over the answered rows.

    >>> precision([1, 0, 1, 1], [1, 1, 1, 0], abstained=[False, False, False, True])
    0.6666666666666666
    """
    return _detection_metric("precision", y_true, y_pred, positive, abstained, sample_weight)


def recall(
    y_true: Column,
    y_pred: Column,
    *,
    positive: Label = 1,
    abstained: Column | None = None,
    sample_weight: Column | None = None,
) -> float:
    """Return the proportion of the positive answered rows whose answer is positive; NaN if there are none.

    Higher is better. Computed over the answered rows.

    >>> recall([1, 1, 1, 0], [1, 0, 1, 0], abstained=[False, False, True, False])
    0.5
    """
    return _detection_metric("recall", y_true, y_pred, positive, abstained, sample_weight)


def f1(
    y_true: Column,
    y_pred: Column,
    *,
    positive: Label = 1,
    abstained: Column | None = None,
    sample_weight: Column | None = None,
) -> float:
    """Return the harmonic mean of precision and recall; 0 if both are 0, NaN if one is undefined.

    Higher is better. Computed over the answered rows.

    >>> f1([1, 1, 0, 0], [1, 0, 1, 0])
    0.5
    """
    return _detection_metric("f1", y_true, y_pred, positive, abstained, sample_weight)


def macro_f1(
    y_true: Column, y_pred: Column, *, abstained: Column | None = None, sample_weight: Column | None = None
) -> float:
    """Return the mean over true classes of F1, computed over the answered rows.

    The F1 of a class is ``2 hits / (class size + times predicted)``. Higher is better. NaN if nothing is answered.

    >>> macro_f1(["a", "b", "b"], ["a", "a", "b"])
    0.6666666666666666
    """
    columns = Columns.checked(y_true, y_pred, abstained=abstained, sample_weight=sample_weight)
    return _point("macro_f1", columns)


def auroc(
    y_true: Column, score: Column, *, abstained: Column | None = None, sample_weight: Column | None = None
) -> float:
    """Return the probability that a positive row has a higher score than a negative one; ties count half.

    Higher is better. Computed over the answered rows. NaN if either class is missing.

    Args:
        y_true: 1 or 0.
        score: a probability or any other number that is higher if 1 is more likely.
        abstained: True for rows that the model declined.
        sample_weight: multiplicities.

    >>> auroc([1, 0, 1, 0], [0.9, 0.4, 0.4, 0.1])
    0.875
    """
    columns = Columns.checked(y_true, abstained=abstained, sample_weight=sample_weight)
    scores = _validate.floats(score, "score")
    _validate.same_length(len(columns), score=scores)
    _validate.finite(scores, "score", among=columns.answered)
    wrong = columns.answered & ~np.isin(columns.truth_number, (0.0, 1.0))
    if wrong.any():
        raise DataError(f"y_true must be 0 or 1, and is not at {row_name(int(np.argmax(wrong)))}")
    rows = columns.take(columns.answered)
    return auroc_statistic(rows.truth_number, scores[columns.answered], rows).point


def correctness_auroc(
    y_true: Column,
    y_pred: Column,
    confidence: Column,
    *,
    abstained: Column | None = None,
    sample_weight: Column | None = None,
) -> float:
    """Return the probability that a right answer has a higher confidence than a wrong one; ties count half.

    Higher is better. Computed over answered rows with a prediction and a confidence. NaN if all are right or all are
    wrong.

    >>> correctness_auroc([1, 1, 1], [1, 0, 1], [0.9, 0.6, 0.6])
    0.75
    """
    columns = Columns.checked(
        y_true, y_pred, abstained=abstained, confidence=confidence, sample_weight=sample_weight
    )
    return _point("correctness_auroc", columns)


@dataclass(frozen=True, slots=True)
class ClassificationScores:
    """The scores of a classifier that may decline, with its coverage.

    Attributes:
        coverage: answered / n.
        n: the weight of all rows.
        accuracy: correct / n.
        balanced_accuracy: the mean over true classes of hits / class size.
        selective_accuracy: correct / answered.
        precision: precision of the positive label, over answered rows.
        recall: recall of the positive label, over answered rows.
        f1: the harmonic mean of precision and recall.
        macro_f1: the mean F1 over true classes, over answered rows.
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
    positive: Label = 1,
    abstained: Column | None = None,
    sample_weight: Column | None = None,
) -> ClassificationScores:
    """Return the scores of a classifier that may decline, with its coverage.

    >>> scores = classification_scores([1, 0, 1, 1], [1, 1, 1, None], abstained=[0, 0, 0, 1])
    >>> scores.coverage, scores.recall
    (0.75, 1.0)
    """
    columns = Columns.checked(
        y_true, y_pred, abstained=abstained, sample_weight=sample_weight, positive=positive
    )
    return ClassificationScores(
        coverage=columns.highest_coverage,
        n=float(columns.weight.sum()),
        accuracy=_point("accuracy", columns),
        balanced_accuracy=_point("balanced_accuracy", columns),
        selective_accuracy=_point("accuracy", columns.take(columns.answered)),
        precision=_point("precision", columns),
        recall=_point("recall", columns),
        f1=_point("f1", columns),
        macro_f1=_point("macro_f1", columns),
    )


def auroc_statistic(positive: Floats, score: Floats, columns: Columns) -> Statistic:
    """Return the statistic of the probability that a positive row (1) has a higher score than a negative one (0).

    Ties count half: a positive row wins against all negative rows of lower ranks and half of those of the same rank.
    One pass over the ascending scores gives the area for every weight vector.
    """
    key, distinct = keys_ascending(score)
    cluster_sums = columns.sum_by(key, len(distinct), positive)

    def compute(batch: WeightBatch) -> Floats:
        curve_sums = integrate_curve(cluster_sums, batch, CurveRequest())
        positives, negatives = curve_sums.loss, subtract(curve_sums.count, curve_sums.loss)
        # The sum over positives of the rows below them is the rectangle count * positives less the area under the curve
        # of positives. The positives among these rows do not count.
        wins = subtract(curve_sums.count * positives, curve_sums.loss_area + 0.5 * positives**2)
        return ratio(wins, positives * negatives)[:, None]

    return Statistic(("auroc",), columns.units, cluster_sums.curve_width, compute)


def detection_statistic(columns: Columns, metrics: Sequence[MetricSpecification]) -> Statistic:
    """Return the statistic of precision, recall and F1 of the positive label, over the answered rows."""
    rows = columns.take(columns.answered)
    truth, predicted = rows.event, rows.prediction_is_positive
    return metrics_of_sums(rows, metrics, [truth * predicted, predicted, truth], _DetectionSums)


class _DetectionSums(NamedTuple):
    """The number of rows, of true positives, of positive predictions and of positive labels."""

    n: Floats
    hits: Floats
    predicted: Floats
    positive: Floats

    @property
    def precision(self) -> Floats:
        return ratio(self.hits, self.predicted)

    @property
    def recall(self) -> Floats:
        return ratio(self.hits, self.positive)


def _balanced_accuracy(columns: Columns) -> Statistic:
    """Return the statistic of the mean over true classes of hits / class size; NaN with fewer than two classes."""
    codes, classes = labels.classes(columns.truth)
    cluster_sums = columns.sum_by(codes, classes, columns.correct)

    def compute(batch: WeightBatch) -> Floats:
        size, hits = cluster_sums.evaluate(batch)
        present = (size > 0).sum(axis=1)
        mean = np.nansum(ratio(hits, size), axis=1) / np.maximum(present, 1)
        return np.where(present >= 2, mean, np.nan)[:, None]

    return Statistic(("balanced_accuracy",), columns.units, max(columns.units, cluster_sums.width), compute)


def _macro_f1(columns: Columns) -> Statistic:
    """Return the statistic of the mean over true classes of ``2 hits / (size + predicted)``, over answered rows."""
    rows = columns.take(columns.answered)
    codes, classes = labels.classes(np.concatenate([rows.truth, rows.prediction]))
    truth, prediction = np.split(codes, 2)
    by_truth = rows.sum_by(truth, classes, rows.correct)
    # The prediction None has no class.
    has_class = prediction >= 0
    by_prediction = rows.take(has_class).sum_by(prediction[has_class], classes)

    def compute(batch: WeightBatch) -> Floats:
        size, hits = by_truth.evaluate(batch)
        predicted = by_prediction.evaluate(batch)[0]
        scores = np.where(size > 0, ratio(2.0 * hits, size + predicted), 0.0)
        return ratio(scores.sum(axis=1), (size > 0).sum(axis=1).astype(np.float64))[:, None]

    width = max(columns.units, by_truth.width + by_prediction.width)
    return Statistic(("macro_f1",), columns.units, width, compute)


def _auroc(columns: Columns) -> Statistic:
    """Return the statistic of the AUROC of the stated probability of the positive label."""
    rows = columns.take(columns.stated)
    return auroc_statistic(rows.event, rows.event_probability, rows)


def _correctness_auroc(columns: Columns) -> Statistic:
    rows = columns.take(columns.stated)
    return auroc_statistic(rows.correct, rows.confidence, rows)


def _point(name: str, columns: Columns) -> float:
    """Return the value of one metric for some rows."""
    return _BY_NAME[name].point(columns)


def _detection_metric(
    name: str,
    y_true: Column,
    y_pred: Column,
    positive: Label,
    abstained: Column | None,
    sample_weight: Column | None,
) -> float:
    columns = Columns.checked(
        y_true, y_pred, abstained=abstained, sample_weight=sample_weight, positive=positive
    )
    return _point(name, columns)


def _predicted_positive(columns: Columns) -> Mask:
    return columns.answered & (columns.prediction_is_positive == 1.0)


def _truly_positive(columns: Columns) -> Mask:
    return columns.answered & (columns.event == 1.0)


_COMMON = {"arguments": LABELS, "direction": HIGHER, "unit": "proportion", "answered_only": True}
_metric = specify(**_COMMON)
_detection = specify(undefined_if.POSITIVE_UNNAMED, family=Family(detection_statistic), **_COMMON)
_ALL_ITEMS = {"answered_only": False, "comparison": PENALIZED}
METRICS: tuple[MetricSpecification, ...] = (
    _metric(accuracy, family=OUTCOMES, compute=lambda t: ratio(t.correct, t.n), **_ALL_ITEMS),
    _metric(
        balanced_accuracy,
        undefined_if.ONE_CLASS,
        family=Family.of_one(_balanced_accuracy),
        scale_at=lambda columns, _value: balanced_proportion_scale(columns),
        **_ALL_ITEMS,
    ),
    _detection(
        precision,
        undefined_if.NO_POSITIVE_ANSWER,
        compute=lambda t: t.precision,
        scale_at=proportion_of(_predicted_positive),
    ),
    _detection(
        recall,
        undefined_if.NO_POSITIVE_TRUTH,
        compute=lambda t: t.recall,
        scale_at=proportion_of(_truly_positive),
    ),
    _detection(
        f1,
        undefined_if.NO_POSITIVE_ANSWER,
        undefined_if.NO_POSITIVE_TRUTH,
        compute=lambda t: harmonic(t.precision, t.recall),
        scale_at=proportion_of(lambda columns: _predicted_positive(columns) | _truly_positive(columns)),
    ),
    _metric(
        macro_f1,
        undefined_if.NOTHING_ANSWERED,
        family=Family.of_one(_macro_f1),
        scale_at=lambda columns, _value: balanced_proportion_scale(columns, columns.answered),
    ),
    _metric(
        auroc,
        undefined_if.NO_CONFIDENCE,
        undefined_if.POSITIVE_UNNAMED,
        undefined_if.NOT_BINARY,
        undefined_if.ONE_EVENT,
        arguments={"y_true": "event", "score": "event_probability"},
        family=Family.of_one(_auroc),
        scale_at=lambda columns, _value: auroc_scale(columns, columns.event[columns.stated], columns.stated),
        rows="stated",
    ),
    _metric(
        correctness_auroc,
        undefined_if.NO_CONFIDENCE,
        undefined_if.ONE_CORRECTNESS,
        arguments={**LABELS, "confidence": "confidence"},
        family=Family.of_one(_correctness_auroc),
        scale_at=lambda columns, _value: auroc_scale(
            columns, columns.correct[columns.stated], columns.stated
        ),
    ),
)
_BY_NAME = {metric.name: metric for metric in METRICS}
