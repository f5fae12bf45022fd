"""Regression: the error of answers that are numbers.

All metrics are over the answered rows and cannot be compared without the coverage. `regression_scores` returns both.
``abstained`` is a mask (default: no abstentions), and ``sample_weight`` contains multiplicities. The answer None is an
error. A metric of no rows is NaN. Answers that are labels are in `abstain.metrics.answers`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from abstain import _validate, labels
from abstain._row_names import row_name
from abstain.errors import DataError
from abstain.metrics import _conditions as undefined_if
from abstain.metrics._columns import Columns, ratio
from abstain.metrics._specification import (
    HIGHER,
    LABELS,
    LOWER,
    Family,
    MetricSpecification,
    metrics_of_sums,
    specify,
)
from abstain.metrics.scales import Scale, mean_scale

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from abstain._types import Floats
    from abstain._validate import Column
    from abstain.resampling import Statistic


__all__ = [
    "RegressionScores",
    "mean_absolute_error",
    "pearson_r",
    "regression_scores",
    "root_mean_squared_error",
]


def mean_absolute_error(
    y_true: Column, y_pred: Column, *, abstained: Column | None = None, sample_weight: Column | None = None
) -> float:
    """Return the mean absolute error of the answered rows: ``mean |y_pred - y_true|``.

    Lower is better. NaN if nothing is answered.

    >>> mean_absolute_error([3, 0, 2], [1, 0, None], abstained=[False, False, True])
    1.0
    """
    return _BY_NAME["mean_absolute_error"].point(_numbers(y_true, y_pred, abstained, sample_weight))


def root_mean_squared_error(
    y_true: Column, y_pred: Column, *, abstained: Column | None = None, sample_weight: Column | None = None
) -> float:
    """Return the root mean squared error of the answered rows: ``sqrt(mean (y_pred - y_true)^2)``.

    Lower is better. NaN if nothing is answered.

    >>> root_mean_squared_error([3, 0], [1, 0]) ** 2
    2.0000000000000004
    """
    return _BY_NAME["root_mean_squared_error"].point(_numbers(y_true, y_pred, abstained, sample_weight))


def pearson_r(
    y_true: Column, y_pred: Column, *, abstained: Column | None = None, sample_weight: Column | None = None
) -> float:
    """Return Pearson's correlation of labels and predictions over the answered rows; NaN if either is constant.

    Higher is better.

    >>> round(pearson_r([0, 1, 2, 3], [0, 1, 1, 2]), 6)
    0.948683
    """
    return _BY_NAME["pearson_r"].point(_numbers(y_true, y_pred, abstained, sample_weight))


@dataclass(frozen=True, slots=True)
class RegressionScores:
    """The scores of a regression that may decline, with its coverage.

    Attributes:
        coverage: answered / n.
        n: the weight of all rows.
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
    y_true: Column, y_pred: Column, *, abstained: Column | None = None, sample_weight: Column | None = None
) -> RegressionScores:
    """Return the scores of a regression that may decline, with its coverage.

    >>> scores = regression_scores([3, 0, 2], [1, 0, None], abstained=[False, False, True])
    >>> scores.mean_absolute_error, round(scores.coverage, 4)
    (1.0, 0.6667)
    """
    columns = _numbers(y_true, y_pred, abstained, sample_weight)
    names = ("mean_absolute_error", "root_mean_squared_error", "pearson_r")
    statistic = regression_statistic(columns, [_BY_NAME[name] for name in names])
    return RegressionScores(columns.highest_coverage, float(columns.weight.sum()), *statistic.points.tolist())


def regression_statistic(columns: Columns, metrics: Sequence[MetricSpecification]) -> Statistic:
    """Return the statistic of errors and correlation, over the rows that are answered with a number."""
    rows = columns.take(columns.predicted)
    error = rows.prediction_number - rows.truth_number
    # Values are centred on the median of all rows to avoid cancellation in the sums of products.
    x, y = (
        values - (np.median(values) if len(values) else 0.0)
        for values in (rows.truth_number, rows.prediction_number)
    )
    return metrics_of_sums(rows, metrics, [np.abs(error), error**2, x, y, x * x, y * y, x * y], _Moments)


class _Moments(NamedTuple):
    """Sums of errors, and of centred truths x, centred predictions y and their products."""

    n: Floats
    error: Floats
    squared: Floats
    x: Floats
    y: Floats
    xx: Floats
    yy: Floats
    xy: Floats

    @property
    def correlation(self) -> Floats:
        n = self.n
        spread_x, spread_y = n * self.xx - self.x**2, n * self.yy - self.y**2
        # A spread that is 0 up to rounding errors belongs to constant values.
        varied = (spread_x > 1e-12 * n * self.xx) & (spread_y > 1e-12 * n * self.yy)
        scale = np.sqrt(np.where(varied, spread_x * spread_y, 1.0))
        return np.where(varied, np.clip((n * self.xy - self.x * self.y) / scale, -1.0, 1.0), np.nan)


def _numbers(
    y_true: Column, y_pred: Column, abstained: Column | None, sample_weight: Column | None
) -> Columns:
    """Check that all answers are finite numbers; the error of a missing answer is not defined."""
    columns = Columns.checked(y_true, y_pred, abstained=abstained, sample_weight=sample_weight)
    checked = (
        ("y_true", columns.truth_number, columns.truth),
        ("y_pred", columns.prediction_number, columns.prediction),
    )
    for name, numbers, values in checked:
        text = columns.answered & np.isnan(numbers) & ~labels.missing(values)
        if text.any():
            raise DataError(f"{name} must be numbers, got text at {row_name(int(np.argmax(text)))}")
        _validate.finite(
            numbers, name, among=columns.answered, hint="mark rows that were declined in abstained="
        )
    return columns


def _error_scale(power: float) -> Callable[[Columns, Any], Scale]:
    """Return a function that returns the scale of a power of a mean error, which ends at the width of the scale."""

    def scale(columns: Columns, _value: Any) -> Scale:
        rows = columns.predicted
        errors = np.abs(columns.prediction_number - columns.truth_number)[rows]
        width = math.inf if columns.scale is None else columns.scale[1] - columns.scale[0]
        if not 0.0 < width < math.inf or errors.max(initial=0.0) > width:
            return Scale(low=0.0, mass=columns.rows_by_unit(rows))
        return replace(mean_scale(columns, (errors / width) ** (1.0 / power), rows), high=width, power=power)

    return scale


_metric = specify(
    undefined_if.NOTHING_PREDICTED,
    undefined_if.NOT_NUMBERS,
    arguments=LABELS,
    direction=LOWER,
    unit="unit of the truth",
    family=Family(regression_statistic),
    answered_only=True,
)
METRICS: tuple[MetricSpecification, ...] = (
    _metric(mean_absolute_error, compute=lambda t: ratio(t.error, t.n), scale_at=_error_scale(1.0)),
    _metric(
        root_mean_squared_error,
        compute=lambda t: np.sqrt(ratio(t.squared, t.n)),
        scale_at=_error_scale(0.5),
    ),
    _metric(
        pearson_r,
        undefined_if.CONSTANT,
        compute=lambda t: t.correlation,
        direction=HIGHER,
        unit="correlation",
    ),
)
_BY_NAME = {metric.name: metric for metric in METRICS}
