"""Metric objects: metrics that are called with a list of evaluation results.

``metric(results)`` checks the rows and returns a `MetricScore` with the value, counts, breakdown and details. Each
object is an entry of the metric registry, so its value is the same as from every other entry point. Custom metrics
subclass `abstain.metrics.BaseMetric`, as these do.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from abstain import _validate, labels
from abstain.errors import ArgumentError
from abstain.metrics import Columns, guidance
from abstain.metrics.abstention import deferral_confusion
from abstain.metrics.base import BaseMetric
from abstain.metrics.calibration import DEFAULT_BINS, binned_error_metric
from abstain.metrics.registry import METRICS
from abstain.metrics.reliability import reliability_curve
from abstain.results import EvaluationResult, MetricScore

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from abstain.metrics.registry import MetricSpecification

__all__ = [
    "AbstentionRate",
    "Accuracy",
    "AnswerRate",
    "BalancedAccuracy",
    "BrierScore",
    "DeferralAlignment",
    "ExpectedCalibrationError",
    "SelectiveAccuracy",
    "default_abstention_metrics",
    "default_accuracy_metrics",
    "default_benchmark_metrics",
    "default_calibration_metrics",
]

STAGE = "ckd_stage"
# A group is named by its metadata key and value; this key is abbreviated.
_SHORT_NAMES = {STAGE: "stage"}


class BuiltInMetric(BaseMetric):
    """A metric of the registry as an object, broken down by a metadata key; subclasses set `name`.

    Attributes:
        metric: the entry of the registry.
        by: the metadata key of the breakdown; None for no breakdown.
    """

    metric: MetricSpecification

    def __init_subclass__(cls) -> None:
        # A custom subclass with another name inherits the entry of its base class.
        if cls.name in METRICS:
            cls.metric = METRICS[cls.name]
            cls.direction, cls.unit = cls.metric.direction, cls.metric.unit

    def __init__(self, *, by: str | None = STAGE) -> None:
        self.by = by

    def __repr__(self) -> str:
        return f"{type(self).__name__}(by={self.by!r})"

    def specification(self, name: str = "") -> MetricSpecification:
        """Return the registry entry with the options of this object."""
        if type(self).compute is not BuiltInMetric.compute:
            return super().specification(name)
        return replace(self.metric, name=name or self.name)

    def compute(self, results: list[EvaluationResult]) -> MetricScore:
        """Compute the metric, its breakdown and its details."""
        columns = columns_of(results, guided="should_abstain" in self.metric.needs)
        n_evaluated, n_abstained = int(self._rows(columns).sum()), int(columns.abstained.sum())
        problem = self.metric.problem(columns)
        if problem is not None:
            return MetricScore(self.name, math.nan, {}, n_evaluated, n_abstained, {"reason": problem.code})
        return MetricScore(
            name=self.name,
            value=self.metric.point(columns),
            breakdown=self._breakdown(columns, results),
            n_evaluated=n_evaluated,
            n_abstained=n_abstained,
            details=self._details(columns),
        )

    def _rows(self, columns: Columns) -> NDArray[np.bool_]:
        """Return a mask of the scored rows."""
        return np.ones(len(columns), np.bool_)

    def _details(self, columns: Columns) -> dict[str, Any]:  # noqa: ARG002
        return {}

    def _breakdown(self, columns: Columns, results: Sequence[EvaluationResult]) -> dict[str, float]:
        if self.by is None:
            return {}
        keys = dict.fromkeys(str(name) for result in results for name in result.metadata)
        # The default key may be missing from all rows; a requested one may not.
        if self.by not in keys and self.by != STAGE:
            raise ArgumentError(
                f"unknown group column {self.by!r}{_validate.suggestion(self.by, keys)}; "
                f"{_validate.listed_columns(keys)}"
            )
        groups = np.array([_group_name(result.metadata.get(self.by), self.by) for result in results])
        scored, breakdown = self._rows(columns), {}
        for group in sorted(set(groups.tolist())):
            part = columns.take((groups == group) & scored)
            if len(part) and self.metric.problem(part) is None:
                breakdown[group] = self.metric.point(part)
        return breakdown


class Accuracy(BuiltInMetric):
    """Correct / all rows; an abstention is wrong even if the stored prediction is right.

    Args:
        treat_abstention_as_neutral: exclude abstentions.
        by: the metadata key of the breakdown; None for no breakdown.

    >>> rows = [EvaluationResult(1, 1), EvaluationResult(0, 1), EvaluationResult(1, 1, abstained=True)]
    >>> Accuracy()(rows).value, Accuracy(treat_abstention_as_neutral=True)(rows).value
    (0.3333333333333333, 0.5)
    """

    name = "accuracy"

    def __init__(self, treat_abstention_as_neutral: bool = False, *, by: str | None = STAGE) -> None:
        super().__init__(by=by)
        self.treat_abstention_as_neutral = treat_abstention_as_neutral
        if treat_abstention_as_neutral:
            self.metric = replace(METRICS["selective_accuracy"], name=self.name)

    def _rows(self, columns: Columns) -> NDArray[np.bool_]:
        return columns.answered if self.treat_abstention_as_neutral else super()._rows(columns)

    def _details(self, columns: Columns) -> dict[str, Any]:
        correct = int(columns.correct.sum())
        return {
            "n_correct": correct,
            "n_incorrect": int(self._rows(columns).sum()) - correct,
            "treat_abstention_as_neutral": self.treat_abstention_as_neutral,
        }


class BalancedAccuracy(BuiltInMetric):
    """Mean over true classes of hits / class size; abstentions and the answer None are misses.

    >>> BalancedAccuracy()([EvaluationResult(1, 1), EvaluationResult(0, 1), EvaluationResult(0, 0)]).value
    0.75
    """

    name = "balanced_accuracy"


class AbstentionRate(BuiltInMetric):
    """Abstained / n.

    >>> AbstentionRate()([EvaluationResult(None, 1, abstained=True), EvaluationResult(1, 1)]).value
    0.5
    """

    name = "abstention_rate"

    def _details(self, columns: Columns) -> dict[str, Any]:
        return {"n_answered": int(columns.answered.sum())}


class AnswerRate(BuiltInMetric):
    """Answered / n, which is the coverage.

    >>> AnswerRate()([EvaluationResult(None, 1, abstained=True), EvaluationResult(1, 1)]).value
    0.5
    """

    name = "answer_rate"

    def _details(self, columns: Columns) -> dict[str, Any]:
        return {"n_answered": int(columns.answered.sum())}


class SelectiveAccuracy(BuiltInMetric):
    """Correct / answered; the answer None is wrong.

    >>> SelectiveAccuracy()([EvaluationResult(None, 1, abstained=True), EvaluationResult(1, 1)]).value
    1.0
    """

    name = "selective_accuracy"

    def _rows(self, columns: Columns) -> NDArray[np.bool_]:
        return columns.answered

    def _details(self, columns: Columns) -> dict[str, Any]:
        correct = int(columns.correct.sum())
        return {"n_correct": correct, "n_incorrect": int(columns.answered.sum()) - correct}


class DeferralAlignment(BuiltInMetric):
    """Mean of (abstained == should_abstain) over rows with ``metadata["should_abstain"]``, with the confusion matrix.

    >>> rows = [EvaluationResult(None, 1, abstained=True, metadata={"should_abstain": True}),
    ...         EvaluationResult(1, 1, metadata={"should_abstain": True}), EvaluationResult(0, 0)]
    >>> DeferralAlignment()(rows).value
    0.5
    """

    name = "deferral_alignment"

    def __init__(self, *, by: str | None = None) -> None:
        super().__init__(by=by)

    def _rows(self, columns: Columns) -> NDArray[np.bool_]:
        return columns.guided

    def _details(self, columns: Columns) -> dict[str, Any]:
        table = deferral_confusion(columns.abstained, columns.should_abstain)
        cells = {name: int(getattr(table, name)) for name in table.__slots__}
        return {"n_labeled": int(table.n_labeled), "confusion": cells}


class ExpectedCalibrationError(BuiltInMetric):
    """Mean gap between accuracy and confidence over equal-width bins on [0, 1], weighted by the size of the bins.

    Args:
        n_bins: the number of bins; a confidence ``c`` is in bin ``min(floor(n_bins * c), n_bins - 1)``.
        by: the metadata key of the breakdown. Default: the gap of every bin.

    >>> rows = [EvaluationResult(1, 1, confidence=0.9), EvaluationResult(0, 1, confidence=0.8)]
    >>> round(ExpectedCalibrationError()(rows).value, 6)
    0.45
    """

    name = "expected_calibration_error"

    def __init__(self, n_bins: int = DEFAULT_BINS, *, by: str | None = None) -> None:
        super().__init__(by=by)
        self.n_bins = _validate.whole(n_bins, "n_bins", least=2)
        if self.n_bins != DEFAULT_BINS:
            self.metric = binned_error_metric(bins=self.n_bins)

    def _rows(self, columns: Columns) -> NDArray[np.bool_]:
        return columns.stated

    def _details(self, columns: Columns) -> dict[str, Any]:
        return {"n_bins": self.n_bins, "bins": self._bins(columns)}

    def _breakdown(self, columns: Columns, results: Sequence[EvaluationResult]) -> dict[str, float]:
        if self.by is not None:
            return super()._breakdown(columns, results)
        return {f"bin_{row['bin']}_gap": row["gap"] for row in self._bins(columns) if row["count"]}

    def _bins(self, columns: Columns) -> list[dict[str, Any]]:
        part = columns.take(columns.stated)
        curve = reliability_curve(part.correct, part.confidence, bins=self.n_bins)
        return [
            {
                "bin": index,
                "low": index / self.n_bins,
                "high": (index + 1) / self.n_bins,
                "count": int(curve.count[index]),
                "accuracy": float(curve.accuracy[index]),
                "mean_confidence": float(curve.confidence[index]),
                "gap": abs(float(curve.gap[index])),
            }
            for index in range(self.n_bins)
        ]


class BrierScore(BuiltInMetric):
    """``mean (p - y)^2`` for labels 0 and 1; ``p`` is the confidence if 1 was predicted, otherwise 1 minus it.

    >>> rows = [EvaluationResult(1, 1, confidence=0.9), EvaluationResult(0, 1, confidence=0.8)]
    >>> round(BrierScore()(rows).value, 6)
    0.325
    """

    name = "brier_score"

    def __init__(self, *, by: str | None = None) -> None:
        super().__init__(by=by)

    def _rows(self, columns: Columns) -> NDArray[np.bool_]:
        return columns.stated


def default_accuracy_metrics() -> list[BaseMetric]:
    """Return accuracy and balanced accuracy.

    >>> [metric.name for metric in default_accuracy_metrics()]
    ['accuracy', 'balanced_accuracy']
    """
    return [Accuracy(), BalancedAccuracy()]


def default_abstention_metrics() -> list[BaseMetric]:
    """Return answer rate, selective accuracy, abstention rate and deferral alignment.

    >>> [metric.name for metric in default_abstention_metrics()]
    ['answer_rate', 'selective_accuracy', 'abstention_rate', 'deferral_alignment']
    """
    return [AnswerRate(), SelectiveAccuracy(), AbstentionRate(), DeferralAlignment()]


def default_calibration_metrics() -> list[BaseMetric]:
    """Return the expected calibration error and the Brier score.

    >>> [metric.name for metric in default_calibration_metrics()]
    ['expected_calibration_error', 'brier_score']
    """
    return [ExpectedCalibrationError(), BrierScore()]


def default_benchmark_metrics() -> list[BaseMetric]:
    """Return all of these: accuracy, calibration, abstention and deferral.

    >>> len(default_benchmark_metrics())
    8
    """
    return [*default_accuracy_metrics(), *default_calibration_metrics(), *default_abstention_metrics()]


def columns_of(results: Sequence[EvaluationResult], *, guided: bool) -> Columns:
    """Return checked results as columns; `guided` reads whether each row should have been declined."""
    should_abstain = [result.metadata.get("should_abstain") if guided else None for result in results]
    return Columns.of(
        len(results),
        answered=np.array([not result.abstained for result in results], dtype=np.bool_),
        truth=labels.truths([result.ground_truth for result in results], "ground_truth"),
        prediction=labels.column([result.prediction for result in results], "prediction"),
        confidence=_validate.floats([result.confidence for result in results], "confidence"),
        should_abstain=guidance(_validate.objects(should_abstain)),
        results=results,
    )


def _group_name(value: object, key: str) -> str:
    """Return the name of a group, such as ``stage_3``."""
    short = _SHORT_NAMES.get(key, key)
    if value is None or (key == STAGE and isinstance(value, (int, float)) and value < 0):
        return f"unknown_{short}"
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return f"{short}_{value}"
