"""Metrics of outcomes: functions of how many rows were right, wrong and declined, and of how many should have been.

Rows with guidance on whether to decline fall into five cells. Rows that should be answered: N1 right, N2 wrong, N3
declined. Rows that should be declined: N4 answered, N5 declined.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from abstain.metrics._columns import ratio
from abstain.metrics._specification import Family, metrics_of_sums

if TYPE_CHECKING:
    from collections.abc import Sequence

    from abstain._types import Floats, Mask
    from abstain.metrics._columns import Columns
    from abstain.metrics._specification import MetricSpecification
    from abstain.resampling import Statistic


class OutcomeSums(NamedTuple):
    """Sums over rows, one entry per weight vector; `right` excludes correct answers that should be declined.

    Every kind of row has its own sum, because differences of sums of fractional weights are inexact.
    """

    n: Floats
    answered: Floats
    correct: Floats
    right: Floats
    wrong: Floats
    declined: Floats
    n1: Floats
    n2: Floats
    n3: Floats
    n4: Floats
    n5: Floats

    @property
    def guided(self) -> Floats:
        """The number of rows with guidance."""
        return self.n1 + self.n2 + self.n3 + self.n4 + self.n5

    @property
    def abstention_precision(self) -> Floats:
        """The proportion of abstentions that are correct."""
        return ratio(self.n5, self.n3 + self.n5)

    @property
    def abstention_recall(self) -> Floats:
        """The proportion of correct abstentions among rows that should be declined or were answered wrongly."""
        return ratio(self.n5, self.n2 + self.n4 + self.n5)


def outcome_columns(columns: Columns) -> list[Mask]:
    """Return the rows that each sum of `OutcomeSums` counts, except the first sum, which counts all rows."""
    answered, declined = columns.answered, columns.abstained
    correct = columns.correct == 1.0
    should_decline, should_answer = columns.should_abstain == 1.0, columns.should_abstain == 0.0
    return [
        answered,
        correct,
        correct & ~should_decline,
        answered & ~correct,
        declined,
        should_answer & correct,
        should_answer & answered & ~correct,
        should_answer & declined,
        should_decline & answered,
        should_decline & declined,
    ]


def _outcome_statistic(columns: Columns, metrics: Sequence[MetricSpecification]) -> Statistic:
    return metrics_of_sums(columns, metrics, outcome_columns(columns), OutcomeSums)


# Metrics whose `compute` is a function of `OutcomeSums`.
OUTCOMES = Family(_outcome_statistic, reads_labels=False)


def harmonic(first: Floats, second: Floats) -> Floats:
    """Return the harmonic mean: 0 if both are 0, NaN if either is undefined."""
    both = first + second
    mean = np.divide(2.0 * first * second, both, out=np.zeros(np.shape(both)), where=both > 0)
    return np.where(np.isnan(both), np.nan, mean)
