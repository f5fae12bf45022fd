"""Which plan computes which metric: builders from `Columns`, one a metric or a family of them.

The array functions check their arguments and take a builder's plan at weights all one; the registry names the
same builders, and the bootstrap weighs them. Every builder can serve any rows: where its metric is undefined
the plan says NaN. Formulas that need more than a line live in the plans' own modules.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from abstain import labels
from abstain.metrics import _outcomes
from abstain.metrics._auroc import AurocPlan
from abstain.metrics._bins import BinsPlan, cluster_table
from abstain.metrics._calibration_plans import PLANS as CALIBRATION_PLANS
from abstain.metrics._columns import Columns, SubsetPlan
from abstain.metrics._outcomes import harmonic, ratio
from abstain.metrics._ranks import RanksPlan
from abstain.metrics._reach import ReachPlan
from abstain.metrics._sums import SumsPlan, ratios

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from abstain.metrics._plan import Plan
    from abstain.metrics.instruments import Instrument

    Floats = NDArray[np.float64]
    Indices = NDArray[np.intp]


def outcome(columns: Columns, *, name: str) -> Plan:
    """Return the plan of one of the figures of `_outcomes`."""
    return _outcomes.outcome_plan(columns, {name: _outcomes.FIGURES[name]})


def effective_reliability(columns: Columns, *, cost: float = 1.0) -> Plan:
    """Return the plan of the mean of 1, ``-cost`` and 0 for right, wrong and declined rows."""
    figure = {"effective_reliability": _outcomes.effective_reliability(cost)}
    return _outcomes.outcome_plan(columns, figure)


def confidence_target_score(columns: Columns, *, target: float = 0.75) -> Plan:
    """Return the plan of the mean of 1, ``-t / (1 - t)`` and 0 for right, wrong and declined rows."""
    figure = {"confidence_target_score": _outcomes.confidence_target(target)}
    return _outcomes.outcome_plan(columns, figure)


def selective(columns: Columns, *, name: str, area_coverage: float = 1.0) -> Plan:
    """Return the plan of one risk-coverage figure."""
    return RanksPlan.build(
        columns.loss,
        columns.confidence,
        columns.answered,
        weight=columns.weight,
        cluster=columns.cluster,
        figures=(name,),
        area_coverage=area_coverage,
    )


def area_at_coverage(columns: Columns, *, name: str, coverage: float) -> Plan:
    """Return the plan of a risk-coverage area that ends at a coverage."""
    return selective(columns, name=name, area_coverage=coverage)


def risk_at_coverage(columns: Columns, *, coverage: float) -> Plan:
    """Return the plan of the selective risk of the first working point that reaches a coverage."""
    return RanksPlan.build(
        columns.loss,
        columns.confidence,
        columns.answered,
        weight=columns.weight,
        cluster=columns.cluster,
        figures=(),
        coverage_grid=(coverage,),
    )


def coverage_at_risk(columns: Columns, *, risk: float) -> Plan:
    """Return the plan of the largest coverage whose selective risk keeps to a bound."""
    return _reach("coverage_at_risk", columns, columns.loss, risk)


def coverage_at_accuracy(columns: Columns, *, accuracy: float) -> Plan:
    """Return the plan of the largest coverage whose selective accuracy is at least so much."""
    return _reach("coverage_at_accuracy", columns, 1.0 - columns.correct, 1.0 - accuracy)


def abstention_auroc(columns: Columns) -> Plan:
    """Return the plan of the AUROC of low confidence for rows that should be declined."""
    return SubsetPlan.over(
        columns,
        columns.guided & ~np.isnan(columns.confidence),
        lambda rows: _auroc("abstention_auroc", rows.should_abstain, -rows.confidence, rows),
    )


def correctness_auroc(columns: Columns) -> Plan:
    """Return the plan of the AUROC of confidence for right answers."""
    return SubsetPlan.over(
        columns,
        columns.stated,
        lambda rows: _auroc("correctness_auroc", rows.correct, rows.confidence, rows),
    )


def score_auroc(columns: Columns) -> Plan:
    """Return the plan of the AUROC of any score for truths of 0 and 1 on answered rows."""
    return SubsetPlan.over(
        columns, columns.answered, lambda rows: _auroc("auroc", rows.truth_number, rows.confidence, rows)
    )


def auroc(columns: Columns) -> Plan:
    """Return the plan of the AUROC of the stated probability of the label 1."""
    return SubsetPlan.over(
        columns, columns.stated, lambda rows: _auroc("auroc", rows.event, rows.event_probability, rows)
    )


def calibration(columns: Columns, *, name: str, **settings: Any) -> Plan:
    """Return the plan of a calibration metric of right answers against their confidence."""
    return SubsetPlan.over(
        columns,
        columns.stated,
        lambda rows: CALIBRATION_PLANS[name](
            rows.correct, rows.confidence, cluster=rows.cluster, weights=rows.weight, **settings
        ),
    )


def top_label_calibration_error(columns: Columns) -> Plan:
    """Return the plan of the mean over predicted labels of each label's own calibration error."""

    def build(rows: Columns) -> Plan:
        return BinsPlan.build(
            "top_label_calibration_error",
            rows.correct,
            rows.confidence,
            weight=rows.weight,
            cluster=rows.cluster,
            group=labels.classes(rows.prediction)[0],
        )

    return SubsetPlan.over(columns, columns.stated, build)


def brier_score(columns: Columns) -> Plan:
    """Return the plan of the Brier score of the stated probability of the label 1."""
    return SubsetPlan.over(
        columns,
        columns.stated,
        lambda rows: CALIBRATION_PLANS["brier_score"](
            rows.event, rows.event_probability, cluster=rows.cluster, weights=rows.weight
        ),
    )


def balanced_accuracy(columns: Columns) -> Plan:
    """Return the plan of the mean over truth classes of hits / class size; NaN with fewer than two classes."""
    codes, classes = labels.classes(columns.truth)
    sums = _by_class(columns, classes, (codes, columns.correct), (codes, None))

    def finish(totals: Floats) -> Floats:
        hits, size = np.split(totals, 2, axis=1)
        present = (size > 0).sum(axis=1)
        mean = np.nansum(ratio(hits, size), axis=1) / np.maximum(present, 1)
        return np.where(present >= 2, mean, np.nan)[:, None]

    return SumsPlan(("balanced_accuracy",), sums, finish)


def macro_f1(columns: Columns) -> Plan:
    """Return the plan of the mean over truth classes of ``2 hits / (size + predicted)`` on answered rows."""
    return SubsetPlan.over(columns, columns.answered, _macro_f1)


def _macro_f1(columns: Columns) -> Plan:
    both = np.concatenate([columns.truth, columns.prediction])
    codes, classes = labels.classes(both)
    truth, prediction = np.split(codes, 2)
    # A prediction of None belongs to no class: it counts into an extra one that is no truth.
    prediction = np.where(prediction < 0, classes, prediction)
    sums = _by_class(columns, classes + 1, (truth, columns.correct), (truth, None), (prediction, None))

    def finish(totals: Floats) -> Floats:
        hits, size, predicted = np.split(totals, 3, axis=1)
        scores = np.where(size > 0, ratio(2.0 * hits, size + predicted), 0.0)
        return ratio(scores.sum(axis=1), (size > 0).sum(axis=1).astype(np.float64))[:, None]

    return SumsPlan(("macro_f1",), sums, finish)


def detection(columns: Columns, *, name: str, positive: int | float | str = 1) -> Plan:
    """Return the plan of the precision, recall or F1 of one label on answered rows."""
    label = labels.column([positive], "positive")
    every = np.repeat(label, len(columns))
    truth, said = labels.matches(columns.truth, every), labels.matches(every, columns.prediction)
    said &= columns.answered
    truth &= columns.answered
    sums = np.stack([truth & said, said, truth], axis=1).astype(np.float64)

    def finish(totals: Floats) -> Floats:
        hits, predicted, actual = totals.T
        precision, recall = ratio(hits, predicted), ratio(hits, actual)
        figures = {"precision": precision, "recall": recall, "f1": harmonic(precision, recall)}
        return figures[name][:, None]

    return SumsPlan.build((name,), sums, columns.cluster, finish, weight=columns.weight)


def mean_absolute_error(columns: Columns) -> Plan:
    """Return the plan of ``mean |y_pred - y_true|`` on answered rows."""
    return _mean("mean_absolute_error", columns, lambda truth, prediction: np.abs(prediction - truth))


def root_mean_squared_error(columns: Columns) -> Plan:
    """Return the plan of ``sqrt(mean (y_pred - y_true)^2)`` on answered rows."""
    return _mean(
        "root_mean_squared_error",
        columns,
        lambda truth, prediction: (prediction - truth) ** 2,
        finish=lambda totals: np.sqrt(ratios(totals)),
    )


def pearson_r(columns: Columns) -> Plan:
    """Return the plan of the correlation of truths and predictions on answered rows."""
    return SubsetPlan.over(columns, columns.predicted, _pearson_r)


def _pearson_r(columns: Columns) -> Plan:
    # Centred on what all rows have in common, so that the products of a resample do not cancel.
    x, y = (values - np.median(values) for values in (columns.truth_number, columns.prediction_number))
    sums = np.stack([np.ones(len(x)), x, y, x * x, y * y, x * y], axis=1)

    def finish(totals: Floats) -> Floats:
        n, sum_x, sum_y, xx, yy, xy = totals.T
        spread_x, spread_y = n * xx - sum_x**2, n * yy - sum_y**2
        # A spread within rounding of zero is the spread of a constant.
        varied = (spread_x > 1e-12 * n * xx) & (spread_y > 1e-12 * n * yy)
        scale = np.sqrt(np.where(varied, spread_x * spread_y, 1.0))
        return np.where(varied, np.clip((n * xy - sum_x * sum_y) / scale, -1.0, 1.0), np.nan)[:, None]

    return SumsPlan.build(("pearson_r",), sums, columns.cluster, finish, weight=columns.weight)


def tier_accuracy(columns: Columns, *, instrument: Instrument) -> Plan:
    """Return the plan of the share of answered totals that lie in the tier of the true total."""
    edges = instrument.edges

    def same(truth: Floats, prediction: Floats) -> Floats:
        tiers = [np.searchsorted(edges, values, side="right") for values in (truth, prediction)]
        return (tiers[0] == tiers[1]).astype(np.float64)

    return _mean("severity_tier_accuracy", columns, same)


def _mean(
    name: str,
    columns: Columns,
    row: Callable[[Floats, Floats], Floats],
    finish: Callable[[Floats], Floats] = ratios,
) -> Plan:
    """A mean over the rows that are answered with a number."""
    kept = columns.predicted
    values = np.zeros((len(columns), 2))
    values[kept, 0] = row(columns.truth_number[kept], columns.prediction_number[kept])
    values[kept, 1] = 1.0
    return SumsPlan.build((name,), values, columns.cluster, finish, weight=columns.weight)


def _auroc(name: str, positive: Floats, score: Floats, columns: Columns) -> Plan:
    return AurocPlan.build(name, positive, score, columns.weight, columns.cluster)


def _reach(name: str, columns: Columns, loss: Floats, bound: float) -> Plan:
    return ReachPlan.build(
        name,
        loss,
        columns.confidence,
        columns.answered,
        columns.weight,
        columns.cluster,
        bound=bound,
    )


def _by_class(columns: Columns, classes: int, *parts: tuple[Indices, Floats | None]) -> Any:
    """Sum values, or rows, by cluster and class, one block of columns a part; sparse where classes are many."""
    places = [codes + place * classes for place, (codes, _) in enumerate(parts)]
    values = [columns.weight if part is None else columns.weight * part for _, part in parts]
    return cluster_table(
        np.tile(columns.cluster, len(parts)),
        np.concatenate(places),
        np.concatenate(values),
        (columns.clusters, len(parts) * classes),
    )
