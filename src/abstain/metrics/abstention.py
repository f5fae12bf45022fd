"""Abstention safety: whether a model declines when it should, and how reliable its answers are.

All functions take labels (``y_true`` and ``y_pred``), ``abstained`` (a mask, by default no abstentions) and
``sample_weight`` (multiplicities). `abstain.labels` defines when labels match. Some metrics need guidance on which rows
*should* be declined: ``should_abstain`` is True, False, or None if unknown. Rows with guidance fall into five cells::

                          right    wrong    abstained
    should be answered    N1       N2       N3
    should be declined    N4 (answered)     N5

An abstention is never right, even if a stored prediction matches the label. The answer None is wrong. A ratio with
denominator 0 is NaN. Accuracy and related metrics are in `abstain.metrics.answers`, rankings and areas in
`abstain.metrics.selective`.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from abstain import _validate
from abstain.errors import ArgumentError
from abstain.losses import item_loss
from abstain.metrics import _conditions as undefined_if
from abstain.metrics._columns import Columns, ratio, subtract
from abstain.metrics._curve import CURVE
from abstain.metrics._outcomes import OUTCOMES, OutcomeSums, harmonic, outcome_columns
from abstain.metrics._specification import (
    CONDITIONAL,
    HIGHER,
    LABELS,
    LOWER,
    MATCHED,
    NEITHER,
    PENALIZED,
    UNDIRECTED,
    Family,
    MetricSpecification,
    OperatingPoint,
    Parameter,
    specify,
)
from abstain.metrics.answers import auroc_statistic
from abstain.metrics.scales import Scale, auroc_scale, coverage_scale, mean_scale, proportion_of
from abstain.metrics.selective import METRICS as SELECTIVE
from abstain.metrics.selective import coverage_at_risk

if TYPE_CHECKING:
    from collections.abc import Sequence

    from abstain._types import Mask
    from abstain._validate import Column
    from abstain.items import Items
    from abstain.resampling import Statistic

__all__ = [
    "DeferralConfusion",
    "PopulationTable",
    "abstention_accuracy",
    "abstention_auroc",
    "abstention_f1",
    "abstention_precision",
    "abstention_rate",
    "abstention_recall",
    "accuracy_when_answered",
    "answer_rate",
    "confidence_target_score",
    "coverage_at_accuracy",
    "coverage_at_risk",
    "deferral_alignment",
    "deferral_confusion",
    "effective_reliability",
    "hallucination_rate",
    "over_conservativeness",
    "population_table",
    "reliable_accuracy",
    "selective_accuracy",
    "simpleqa_f",
    "wrong_rate",
]


def abstention_rate(abstained: Column, *, sample_weight: Column | None = None) -> float:
    """Return the proportion of rows that the model declined: abstained / all rows.

    >>> abstention_rate([True, False, False, False])
    0.25
    """
    return _outcome("abstention_rate", abstained=abstained, sample_weight=sample_weight)


def answer_rate(abstained: Column, *, sample_weight: Column | None = None) -> float:
    """Return the coverage, the proportion of rows that the model answered: answered / all rows.

    >>> answer_rate([True, False, False, False])
    0.75
    """
    return _outcome("answer_rate", abstained=abstained, sample_weight=sample_weight)


def selective_accuracy(
    y_true: Column, y_pred: Column, *, abstained: Column | None = None, sample_weight: Column | None = None
) -> float:
    """Return the proportion of answered rows that are correct: correct / answered.

    Higher is better at equal coverage only: a model that answers fewer, easier rows looks better. NaN if nothing is
    answered.

    >>> selective_accuracy([1, 0, 1], [1, 1, None], abstained=[False, False, True])
    0.5
    """
    return _outcome("selective_accuracy", y_true, y_pred, abstained=abstained, sample_weight=sample_weight)


def accuracy_when_answered(
    y_true: Column, y_pred: Column, *, abstained: Column | None = None, sample_weight: Column | None = None
) -> float:
    """Return the proportion of answered rows that are correct; another name of `selective_accuracy`.

    >>> accuracy_when_answered([1, 0, 1], [1, 1, None], abstained=[False, False, True])
    0.5
    """
    return selective_accuracy(y_true, y_pred, abstained=abstained, sample_weight=sample_weight)


def wrong_rate(
    y_true: Column, y_pred: Column, *, abstained: Column | None = None, sample_weight: Column | None = None
) -> float:
    """Return the proportion of all rows that were answered wrongly: wrong / all rows, declined ones included.

    Lower is better at equal coverage only: a model that declines more gives fewer wrong answers. Two systems are
    therefore compared at the largest coverage that both reach.

    >>> wrong_rate([1, 0, 1, 1], [1, 1, None, 1], abstained=[False, False, True, False])
    0.25
    """
    return _outcome("wrong_rate", y_true, y_pred, abstained=abstained, sample_weight=sample_weight)


def hallucination_rate(
    y_true: Column, y_pred: Column, *, abstained: Column | None = None, sample_weight: Column | None = None
) -> float:
    """Return the proportion of wrong answers among wrong and declined rows: wrong / (wrong + declined).

    NaN if every row was answered correctly. Lower is better at equal coverage only: declining at random lowers it. Two
    systems are therefore compared at the largest coverage that both reach.

    >>> hallucination_rate([1, 0, 1, 1], [1, 1, None, 1], abstained=[False, False, True, False])
    0.5
    """
    return _outcome("hallucination_rate", y_true, y_pred, abstained=abstained, sample_weight=sample_weight)


def deferral_alignment(
    abstained: Column, should_abstain: Column, *, sample_weight: Column | None = None
) -> float:
    """Return the proportion of rows with guidance on which the model followed it: ``abstained == should_abstain``.

    Higher is better. NaN if no row has guidance.

    >>> deferral_alignment([True, False, False], [True, True, None])
    0.5
    """
    return _outcome(
        "deferral_alignment", abstained=abstained, should_abstain=should_abstain, sample_weight=sample_weight
    )


@dataclass(frozen=True, slots=True)
class DeferralConfusion:
    """The confusion matrix of declining, over the rows with guidance.

    Attributes:
        defer_when_needed: rows that should be declined and were declined.
        answer_when_safe: rows that should be answered and were answered.
        abstain_when_should_answer: rows that should be answered and were declined.
        answer_when_should_defer: rows that should be declined and were answered.
    """

    defer_when_needed: float
    answer_when_safe: float
    abstain_when_should_answer: float
    answer_when_should_defer: float

    @property
    def n_labeled(self) -> float:
        """The number of rows with guidance."""
        return sum(astuple(self))


def deferral_confusion(
    abstained: Column, should_abstain: Column, *, sample_weight: Column | None = None
) -> DeferralConfusion:
    """Return the confusion matrix of whether rows were declined and whether they should have been.

    >>> deferral_confusion([True, False, True], [True, True, False])
    DeferralConfusion(defer_when_needed=1.0, answer_when_safe=0.0, abstain_when_should_answer=1.0,
        answer_when_should_defer=1.0)
    """
    columns = Columns.checked(abstained=abstained, should_abstain=should_abstain, sample_weight=sample_weight)
    sums = OutcomeSums(
        columns.weight.sum(), *(columns.weight @ column for column in outcome_columns(columns))
    )
    return DeferralConfusion(float(sums.n5), float(sums.n1 + sums.n2), float(sums.n3), float(sums.n4))


def abstention_accuracy(
    y_true: Column,
    y_pred: Column,
    *,
    abstained: Column,
    should_abstain: Column,
    sample_weight: Column | None = None,
) -> float:
    """Return the proportion of rows with guidance that were correctly answered or correctly declined.

    ``(N1 + N5) / (N1 + N2 + N3 + N4 + N5)``. Higher is better. NaN if no row has guidance. Reference: Wen et al., "Know
    Your Limits: A Survey of Abstention in Large Language Models", 2025.

    >>> rows = dict(abstained=[0, 0, 1, 0, 1], should_abstain=[False, False, False, True, True])
    >>> abstention_accuracy([1, 1, 1, 1, 1], [1, 0, 1, 1, 1], **rows)
    0.4
    """
    return _safety("abstention_accuracy", y_true, y_pred, abstained, should_abstain, sample_weight)


def abstention_precision(
    y_true: Column,
    y_pred: Column,
    *,
    abstained: Column,
    should_abstain: Column,
    sample_weight: Column | None = None,
) -> float:
    """Return the proportion of abstentions that are correct (the row should be declined): ``N5 / (N3 + N5)``.

    Higher is better. NaN if there are no abstentions.

    >>> rows = dict(abstained=[0, 0, 1, 0, 1], should_abstain=[False, False, False, True, True])
    >>> abstention_precision([1, 1, 1, 1, 1], [1, 0, 1, 1, 1], **rows)
    0.5
    """
    return _safety("abstention_precision", y_true, y_pred, abstained, should_abstain, sample_weight)


def abstention_recall(
    y_true: Column,
    y_pred: Column,
    *,
    abstained: Column,
    should_abstain: Column,
    sample_weight: Column | None = None,
) -> float:
    """Return the proportion of correct abstentions among rows that should be declined or were answered wrongly.

    ``N5 / (N2 + N4 + N5)``. A model that declines everything has a recall of 1. NaN if there are no such rows.

    >>> rows = dict(abstained=[0, 0, 1, 0, 1], should_abstain=[False, False, False, True, True])
    >>> abstention_recall([1, 1, 1, 1, 1], [1, 0, 1, 1, 1], **rows)
    0.3333333333333333
    """
    return _safety("abstention_recall", y_true, y_pred, abstained, should_abstain, sample_weight)


def abstention_f1(
    y_true: Column,
    y_pred: Column,
    *,
    abstained: Column,
    should_abstain: Column,
    sample_weight: Column | None = None,
) -> float:
    """Return the harmonic mean of abstention precision and recall; 0 if both are 0, NaN if one is undefined.

    Higher is better.

    >>> rows = dict(abstained=[0, 0, 1, 0, 1], should_abstain=[False, False, False, True, True])
    >>> abstention_f1([1, 1, 1, 1, 1], [1, 0, 1, 1, 1], **rows)
    0.4
    """
    return _safety("abstention_f1", y_true, y_pred, abstained, should_abstain, sample_weight)


def over_conservativeness(
    y_true: Column,
    y_pred: Column,
    *,
    abstained: Column,
    should_abstain: Column,
    sample_weight: Column | None = None,
) -> float:
    """Return the proportion of rows that should be answered but were declined: ``N3 / (N1 + N2 + N3)``.

    Lower is better. NaN if no row should be answered.

    >>> rows = dict(abstained=[0, 0, 1, 0, 1], should_abstain=[False, False, False, True, True])
    >>> over_conservativeness([1, 1, 1, 1, 1], [1, 0, 1, 1, 1], **rows)
    0.3333333333333333
    """
    return _safety("over_conservativeness", y_true, y_pred, abstained, should_abstain, sample_weight)


def reliable_accuracy(
    y_true: Column,
    y_pred: Column,
    *,
    abstained: Column | None = None,
    should_abstain: Column | None = None,
    sample_weight: Column | None = None,
) -> float:
    """Return the proportion of answers that are right; an answer to a row that should be declined counts as wrong.

    ``N1 / (N1 + N2 + N4)``. Higher is better. Rows without guidance should be answered. NaN if nothing is answered.

    >>> reliable_accuracy([1, 1, 1], [1, 0, 1], should_abstain=[False, False, True])
    0.3333333333333333
    """
    return _safety("reliable_accuracy", y_true, y_pred, abstained, should_abstain, sample_weight)


def effective_reliability(
    y_true: Column,
    y_pred: Column,
    *,
    abstained: Column | None = None,
    should_abstain: Column | None = None,
    cost: float = 1.0,
    sample_weight: Column | None = None,
) -> float:
    """Return the mean score per row: 1 for a right answer, ``-cost`` for a wrong one, 0 for an abstention.

    With cost 1 it is ``(N1 - N2 - N4) / N``. Higher is better. An answer to a row that should be declined counts as
    wrong. Rows without guidance should be answered. Reference: Whitehead et al., "Reliable Visual Question Answering:
    Abstain Rather Than Answer Incorrectly", 2022.

    >>> effective_reliability([1, 1, 1, 1], [1, 1, 0, None], abstained=[0, 0, 0, 1])
    0.25
    >>> effective_reliability([1, 1, 1, 1], [1, 1, 0, None], abstained=[0, 0, 0, 1], cost=2)
    0.0
    """
    return _safety("effective_reliability", y_true, y_pred, abstained, should_abstain, sample_weight, cost)


def simpleqa_f(
    y_true: Column, y_pred: Column, *, abstained: Column | None = None, sample_weight: Column | None = None
) -> float:
    """Return SimpleQA's F score: the harmonic mean of accuracy over all rows and accuracy over answered rows.

    With the proportions ``c`` of correct and ``i`` of incorrect answers, ``CGA = c / (c + i)`` and
    ``F = 2 * CGA * c / (CGA + c)``. Higher is better. It is 0 if every answer is wrong and NaN if nothing is answered.
    Reference: Wei et al., "Measuring short-form factuality in large language models", 2024.

    >>> simpleqa_f([1, 1, 1, 1], [1, 0, None, None], abstained=[0, 0, 1, 1])
    0.3333333333333333
    """
    return _outcome("simpleqa_f", y_true, y_pred, abstained=abstained, sample_weight=sample_weight)


def confidence_target_score(
    y_true: Column,
    y_pred: Column,
    *,
    abstained: Column | None = None,
    target: float = 0.75,
    sample_weight: Column | None = None,
) -> float:
    """Return the mean score per row: 1 for a right answer, ``-t / (1 - t)`` for a wrong one, 0 for an abstention.

    Higher is better. An answer improves the expected score exactly if it is right with a probability above the target
    ``t``, so a model that knows ``t`` should decline below it. Reference: Kalai et al., "Why Language Models
    Hallucinate", 2025.

    >>> confidence_target_score([1, 1, 1, 1], [1, 1, 0, None], abstained=[0, 0, 0, 1], target=0.5)
    0.25
    >>> confidence_target_score([1, 1, 1, 1], [1, 1, 0, None], abstained=[0, 0, 0, 1], target=0.75)
    -0.25
    """
    return _outcome(
        "confidence_target_score", y_true, y_pred, target, abstained=abstained, sample_weight=sample_weight
    )


def coverage_at_accuracy(
    y_true: Column,
    y_pred: Column,
    confidence: Column,
    accuracy: float,
    *,
    abstained: Column | None = None,
    sample_weight: Column | None = None,
) -> float:
    """Return the largest coverage at which the selective accuracy is at least this accuracy; 0 if there is none.

    Higher is better. Only operating points are considered: a tied block is never split. This is `coverage_at_risk`
    with a loss of 1 for a wrong answer.

    >>> coverage_at_accuracy([1, 1, 1, 1], [1, 1, 0, 0], [4, 3, 2, 1], 0.66)
    0.75
    """
    metric = _BY_NAME["coverage_at_accuracy"].at(accuracy)
    columns = Columns.checked(
        y_true, y_pred, abstained=abstained, confidence=confidence, sample_weight=sample_weight
    )
    _validate.finite(columns.confidence, "confidence", among=columns.answered)
    return metric.point(columns)


def abstention_auroc(
    confidence: Column, should_abstain: Column, *, sample_weight: Column | None = None
) -> float:
    """Return the AUROC of low confidence for rows that should be declined; ties count half.

    The probability that a row that should be declined has a lower confidence than a row that should be answered. It
    uses all rows with guidance and a confidence, including abstained ones, and shows how well a threshold could decide
    which rows to decline. Higher is better. NaN if either kind of row is missing.

    >>> abstention_auroc([0.9, 0.2, 0.2, 0.6], [False, True, False, None])
    0.75
    """
    return _outcome(
        "abstention_auroc", confidence=confidence, should_abstain=should_abstain, sample_weight=sample_weight
    )


@dataclass(frozen=True, slots=True)
class PopulationTable:
    """The number of items with each outcome.

    Attributes:
        right: answered correctly.
        wrong: answered wrongly.
        abstained: declined.
        failed: without any output, because the run failed.
        unscored: without a ground truth.
    """

    right: int
    wrong: int
    abstained: int
    failed: int
    unscored: int

    @property
    def total(self) -> int:
        """All items."""
        return sum(astuple(self))

    def proportions(self) -> dict[str, float]:
        """Return the proportion of each outcome among the scored and failed items; NaN if there are none."""
        counts = {name: getattr(self, name) for name in ("right", "wrong", "abstained", "failed")}
        total = sum(counts.values())
        return {name: count / total if total else float("nan") for name, count in counts.items()}


def population_table(items: Items) -> PopulationTable:
    """Return the number of items with each outcome; weights are multiplicities.

    >>> from abstain import Items
    >>> population_table(Items.from_arrays([1, 0, 1, 1], [1, 1, None, None], abstained=[0, 0, 1, 0],
    ...     failed=[0, 0, 0, 1]))
    PopulationTable(right=1, wrong=1, abstained=1, failed=1, unscored=0)
    """
    counts = items.counts
    losses = item_loss(items, "zero_one").values if counts.answered else np.zeros(len(items))
    losses = np.where(items.answered, losses, 0.0) * (1.0 if items.weight is None else items.weight)
    wrong = min(max(round(float(losses.sum())), int(losses.any())), counts.answered)
    return PopulationTable(counts.answered - wrong, wrong, counts.abstained, counts.failed, counts.unscored)


def _outcome(
    name: str,
    y_true: Column | None = None,
    y_pred: Column | None = None,
    at: float | None = None,
    **columns: Column | None,
) -> float:
    """Return one metric, with its parameter if it has one."""
    metric = _BY_NAME[name] if at is None else _BY_NAME[name].at(at)
    return metric.point(Columns.checked(y_true, y_pred, **columns))


def _safety(
    name: str,
    y_true: Column,
    y_pred: Column,
    abstained: Column | None,
    should_abstain: Column | None,
    sample_weight: Column | None,
    at: float | None = None,
) -> float:
    columns = {"abstained": abstained, "should_abstain": should_abstain, "sample_weight": sample_weight}
    return _outcome(name, y_true, y_pred, at, **columns)


def checked_target(target: float, name: str = "target") -> float:
    """Return a confidence target in [0, 1); with a target of 1 a wrong answer would have an infinite cost."""
    number = _validate.real(target, name)
    if not 0.0 <= number < 1.0:
        raise ArgumentError(f"{name} must be at least 0 and less than 1, got {number:g}")
    return number


def _count_outcomes(columns: Columns, *names: str) -> Mask:
    """Return the rows that any of some sums of `OutcomeSums` counts."""
    counted = dict(zip(OutcomeSums._fields[1:], outcome_columns(columns), strict=True))
    return np.logical_or.reduce([counted[name] for name in names])


def _points_scale(columns: Columns, cost: float, right: Mask) -> Scale:
    """Return the scale of the mean of 1 for a right answer, 0 for a declined row and ``-cost`` for other answers."""
    points = np.where(right, 1.0, np.where(columns.answered, -cost, 0.0))
    return mean_scale(columns, points, low=-cost)


def _abstention_auroc_scale(columns: Columns, _value: Any) -> Scale:
    counted = columns.guided & ~np.isnan(columns.confidence)
    return auroc_scale(columns, columns.should_abstain[counted], counted)


def _abstention_auroc(columns: Columns) -> Statistic:
    rows = columns.take(columns.guided & ~np.isnan(columns.confidence))
    return auroc_statistic(rows.should_abstain, -rows.confidence, rows)


def _coverage_at_accuracy(columns: Columns, metrics: Sequence[MetricSpecification]) -> Statistic:
    """Return the coverages at the risks that correspond to the accuracies; the loss is 1 for a wrong answer."""
    statistic = CURVE.build(
        columns.with_loss(1.0 - columns.correct),
        [replace(_COVERAGE_AT_RISK, value=1.0 - metric.value) for metric in metrics],
    )
    return replace(statistic, names=tuple(metric.key for metric in metrics))


def _accuracy_point(columns: Columns, accuracy: float) -> OperatingPoint:
    wrong = np.where(columns.answered, 1.0 - columns.correct, np.nan)
    return OperatingPoint(replace(columns, loss=wrong, largest_loss=1.0), risk=1.0 - accuracy)


_COVERAGE_AT_RISK = next(metric for metric in SELECTIVE if metric.name == "coverage_at_risk")
_DONE = {"abstained": "abstained"}
_GUIDANCE = {"should_abstain": "should_abstain"}
_COMMON = {"direction": HIGHER, "unit": "proportion", "family": OUTCOMES}
_metric = specify(arguments=LABELS, **_COMMON)
_guided = specify(undefined_if.NO_GUIDANCE, arguments=LABELS | _GUIDANCE, comparison=PENALIZED, **_COMMON)
# At matched coverage, the losses of these metrics are 1 for a wrong answer.
METRICS: tuple[MetricSpecification, ...] = (
    # Over all rows.
    _metric(
        answer_rate,
        compute=lambda t: ratio(t.answered, t.n),
        arguments=_DONE,
        direction=NEITHER,
        scale_at=coverage_scale,
    ),
    _metric(
        abstention_rate,
        compute=lambda t: ratio(t.declined, t.n),
        arguments=_DONE,
        direction=NEITHER,
        scale_at=coverage_scale,
    ),
    _metric(
        simpleqa_f,
        undefined_if.NOTHING_ANSWERED,
        compute=lambda t: harmonic(ratio(t.correct, t.answered), ratio(t.correct, t.n)),
        comparison=PENALIZED,
    ),
    _metric(
        wrong_rate,
        compute=lambda t: ratio(t.wrong, t.n),
        direction=LOWER,
        comparison=MATCHED,
        matched=lambda side, _: ratio(side.loss, side.total),
        coverage_power=1,
    ),
    _metric(
        hallucination_rate,
        undefined_if.ALL_CORRECT,
        compute=lambda t: ratio(t.wrong, t.wrong + t.declined),
        direction=LOWER,
        comparison=MATCHED,
        matched=lambda side, _: ratio(side.loss, subtract(side.total, side.count) + side.loss),
        coverage_power=1,
        scale_at=proportion_of(lambda columns: columns.correct == 0.0),
    ),
    _metric(
        effective_reliability,
        compute=lambda t, cost: ratio(t.right - cost * subtract(t.answered, t.right), t.n),
        unit="points per row",
        comparison=PENALIZED,
        parameter=Parameter("cost", 1.0, _validate.not_negative),
        arguments=LABELS | _GUIDANCE,
        scale_at=lambda columns, cost: _points_scale(columns, cost, outcome_columns(columns)[2]),
    ),
    _metric(
        confidence_target_score,
        compute=lambda t, target: ratio(t.correct - target / (1.0 - target) * t.wrong, t.n),
        unit="points per row",
        comparison=PENALIZED,
        parameter=Parameter("target", 0.75, checked_target),
        scale_at=lambda columns, target: _points_scale(
            columns, target / (1.0 - target), columns.correct == 1.0
        ),
    ),
    # Compared with guidance on which rows should be declined.
    _guided(
        deferral_alignment,
        compute=lambda t: ratio(t.n1 + t.n2 + t.n5, t.guided),
        arguments=_DONE | _GUIDANCE,
        scale_at=proportion_of(lambda columns: columns.guided),
    ),
    _guided(
        abstention_accuracy,
        compute=lambda t: ratio(t.n1 + t.n5, t.guided),
        scale_at=proportion_of(lambda columns: columns.guided),
    ),
    _guided(
        abstention_precision,
        undefined_if.NEVER_ABSTAINED,
        compute=lambda t: t.abstention_precision,
        scale_at=proportion_of(lambda columns: columns.guided & columns.abstained),
        comparison=CONDITIONAL,
    ),
    _guided(
        abstention_recall,
        undefined_if.NOTHING_TO_DECLINE,
        compute=lambda t: t.abstention_recall,
        scale_at=proportion_of(lambda columns: _count_outcomes(columns, "n2", "n4", "n5")),
        # A system that declines everything has a recall of 1, so the recall does not determine a winner.
        comparison=UNDIRECTED,
    ),
    _guided(
        abstention_f1,
        undefined_if.NEVER_ABSTAINED,
        undefined_if.NOTHING_TO_DECLINE,
        compute=lambda t: harmonic(t.abstention_precision, t.abstention_recall),
        scale_at=proportion_of(lambda columns: _count_outcomes(columns, "n2", "n3", "n4", "n5")),
    ),
    _guided(
        over_conservativeness,
        undefined_if.NOTHING_TO_ANSWER,
        compute=lambda t: ratio(t.n3, t.n1 + t.n2 + t.n3),
        scale_at=proportion_of(lambda columns: columns.should_abstain == 0.0),
        direction=LOWER,
    ),
    _guided(
        abstention_auroc,
        undefined_if.ONE_GUIDANCE,
        arguments={"confidence": "confidence"} | _GUIDANCE,
        family=Family.of_one(_abstention_auroc),
        scale_at=_abstention_auroc_scale,
    ),
    # Over the answered rows; these values mean little without the coverage.
    _metric(
        selective_accuracy,
        undefined_if.NOTHING_ANSWERED,
        compute=lambda t: ratio(t.correct, t.answered),
        answered_only=True,
        comparison=MATCHED,
        matched=lambda side, _: ratio(subtract(side.count, side.loss), side.count),
    ),
    _metric(
        reliable_accuracy,
        undefined_if.NOTHING_ANSWERED,
        compute=lambda t: ratio(t.right, t.answered),
        answered_only=True,
        arguments=LABELS | _GUIDANCE,
    ),
    # Along the ranking.
    _metric(
        coverage_at_accuracy,
        undefined_if.NOT_ALL_RANKED,
        arguments=LABELS | {"confidence": "confidence"},
        family=Family(_coverage_at_accuracy),
        operating_point=_accuracy_point,
        comparison=PENALIZED,
        parameter=Parameter("accuracy", 0.9, _validate.proportion),
    ),
)
_BY_NAME = {metric.name: metric for metric in METRICS}
