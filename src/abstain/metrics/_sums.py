"""Metrics of sums over rows: means, ratios, and those that are made of what became of every row.

Each metric is a function of a few sums, so that all metrics of one family are summed once. Outcome metrics are made of
how many rows were right, wrong and abstained from, and rightly so: with guidance on which rows should be abstained
from, rows that have it fall into five cells, N1 answerable and right, N2 answerable and wrong, N3 answerable and
abstained from, N4 not answerable and answered, N5 not answerable and abstained from. What the metrics mean is said
where they are public.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from abstain.tally import Measure

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from abstain.metrics._columns import Columns
    from abstain.metrics._specification import MetricSpecification

    Floats = NDArray[np.float64]


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


def outcome_measure(columns: Columns, metrics: Sequence[MetricSpecification]) -> Measure:
    """Return the measure of metrics whose `finish` is a function of `OutcomeSums`, all from the same sums."""
    return sums_measure(columns, metrics, outcome_columns(columns), OutcomeSums)


def sums_measure(
    columns: Columns,
    metrics: Sequence[MetricSpecification],
    values: Sequence[Floats],
    named: Callable[..., object],
) -> Measure:
    """Return the measure of a family: `named` holds the sums of rows and values, each metric's `finish` reads them."""

    def finish(*sums: Floats) -> list[Floats]:
        totals = named(*sums)
        return [metric.finish(totals, **metric.parameters) for metric in metrics if metric.finish is not None]

    names = tuple(metric.key for metric in metrics)
    return Measure.of_sums(
        names, values, unit=columns.cluster, units=columns.units, finish=finish, weight=columns.mass
    )


def mean_measure(name: str, values: Floats, columns: Columns) -> Measure:
    """Return the measure of a mean over rows; NaN where no row counts."""
    return Measure.of_sums(
        (name,),
        [values],
        unit=columns.cluster,
        units=columns.units,
        finish=lambda count, total: [ratio(total, count)],
        weight=columns.mass,
    )


def outcome_columns(columns: Columns) -> list[Floats]:
    """Return what each row adds to the sums of `OutcomeSums`, but for the first of them, which counts rows."""
    answered = columns.answered.astype(np.float64)
    declined = 1.0 - answered
    correct, guide = columns.correct, columns.should_abstain
    hold, safe = (guide == 1.0).astype(np.float64), (guide == 0.0).astype(np.float64)
    return [
        answered,
        correct,
        correct * (1.0 - hold),
        safe * correct,
        safe * (answered - correct),
        safe * declined,
        hold * answered,
        hold * declined,
    ]


def coverage_of(columns: Columns) -> float:
    """Return answered / n of rows that are counted by their weight alone."""
    return float(columns.weight[columns.answered].sum() / columns.weight.sum())


def ratio(above: Floats, below: Floats) -> Floats:
    """Divide, with NaN where the divisor is 0."""
    return np.divide(above, below, out=np.full(np.shape(above), np.nan), where=below != 0)


def harmonic(first: Floats, second: Floats) -> Floats:
    """Return the harmonic mean: 0 where both are 0, NaN where either is undefined."""
    both = first + second
    mean = np.divide(2.0 * first * second, both, out=np.zeros(np.shape(both)), where=both > 0)
    return np.where(np.isnan(both), np.nan, mean)
