"""Metrics of outcomes: functions of how many rows were right, wrong and abstained from, and rightly so.

With guidance on which rows should be abstained from, the rows that have it fall into five cells: N1 answerable and
right, N2 answerable and wrong, N3 answerable and abstained from, N4 not answerable and answered, N5 not answerable and
abstained from.
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
    """Sums over rows, one entry per weight vector; `right` leaves out right answers where there should be none."""

    n: Floats
    answered: Floats
    correct: Floats
    right: Floats
    n1: Floats
    n2: Floats
    n3: Floats
    n4: Floats
    n5: Floats

    @property
    def guided(self) -> Floats:
        """How many rows have guidance."""
        return self.n1 + self.n2 + self.n3 + self.n4 + self.n5

    @property
    def abstention_precision(self) -> Floats:
        """How many of the abstentions were called for."""
        return ratio(self.n5, self.n3 + self.n5)

    @property
    def abstention_recall(self) -> Floats:
        """How many of the rows better left unanswered were left so."""
        return ratio(self.n5, self.n2 + self.n4 + self.n5)


def outcome_columns(columns: Columns) -> list[Mask]:
    """Return which rows count for each sum of `OutcomeSums` after the first, which counts all rows."""
    answered, declined = columns.answered, columns.abstained
    correct, guide = columns.correct == 1.0, columns.should_abstain
    hold, safe = guide == 1.0, guide == 0.0
    return [
        answered,
        correct,
        correct & ~hold,
        safe & correct,
        safe & answered & ~correct,
        safe & declined,
        hold & answered,
        hold & declined,
    ]


def _outcome_statistic(columns: Columns, metrics: Sequence[MetricSpecification]) -> Statistic:
    return metrics_of_sums(columns, metrics, outcome_columns(columns), OutcomeSums)


# Metrics whose `compute` is a function of `OutcomeSums`.
OUTCOMES = Family(_outcome_statistic, reads_labels=False)


def harmonic(first: Floats, second: Floats) -> Floats:
    """Return the harmonic mean: 0 where both are 0, NaN where either is undefined."""
    both = first + second
    mean = np.divide(2.0 * first * second, both, out=np.zeros(np.shape(both)), where=both > 0)
    return np.where(np.isnan(both), np.nan, mean)
