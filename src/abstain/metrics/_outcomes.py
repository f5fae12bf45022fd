"""Kernels: metrics that are made of how many rows were right, wrong, abstained from, and rightly so.

Every row adds to a few sums; each metric is a function of their totals, so that one matrix product serves all
of them and a resample costs next to nothing. With guidance on which rows should be abstained from, rows that
have it fall into five cells: N1 answerable and right, N2 answerable and wrong, N3 answerable and abstained
from, N4 not answerable and answered, N5 not answerable and abstained from.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from abstain.metrics._sums import SumsPlan

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from abstain.metrics._columns import Columns

    Floats = NDArray[np.float64]


class Totals(NamedTuple):
    """Sums over rows, one entry a resample; `right` leaves out right answers where there should be none."""

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


def ratio(above: Floats, below: Floats) -> Floats:
    """Divide, with NaN where the divisor is 0."""
    return np.divide(above, below, out=np.full(np.shape(above), np.nan), where=below != 0)


def harmonic(first: Floats, second: Floats) -> Floats:
    """Return the harmonic mean: 0 where both are 0, NaN where either is undefined."""
    both = first + second
    mean = np.divide(2.0 * first * second, both, out=np.zeros(np.shape(both)), where=both > 0)
    return np.where(np.isnan(both), np.nan, mean)


FIGURES: dict[str, Callable[[Totals], Floats]] = {
    "accuracy": lambda t: ratio(t.correct, t.n),
    "selective_accuracy": lambda t: ratio(t.correct, t.answered),
    "abstention_rate": lambda t: ratio(t.n - t.answered, t.n),
    "answer_rate": lambda t: ratio(t.answered, t.n),
    "deferral_alignment": lambda t: ratio(t.n1 + t.n2 + t.n5, t.guided),
    "abstention_accuracy": lambda t: ratio(t.n1 + t.n5, t.guided),
    "abstention_precision": lambda t: ratio(t.n5, t.n3 + t.n5),
    "abstention_recall": lambda t: ratio(t.n5, t.n2 + t.n4 + t.n5),
    "abstention_f1": lambda t: harmonic(ratio(t.n5, t.n3 + t.n5), ratio(t.n5, t.n2 + t.n4 + t.n5)),
    "over_conservativeness": lambda t: ratio(t.n3, t.n1 + t.n2 + t.n3),
    "reliable_accuracy": lambda t: ratio(t.right, t.answered),
    "simpleqa_f": lambda t: harmonic(ratio(t.correct, t.answered), ratio(t.correct, t.n)),
}


def effective_reliability(cost: float) -> Callable[[Totals], Floats]:
    """Return the figure that gives 1 for a right answer and takes `cost` for a wrong one."""
    return lambda t: ratio(t.right - cost * (t.answered - t.right), t.n)


def confidence_target(target: float) -> Callable[[Totals], Floats]:
    """Return the figure that gives 1 for a right answer and takes ``t / (1 - t)`` for a wrong one."""
    penalty = target / (1.0 - target)
    return lambda t: ratio(t.correct - penalty * (t.answered - t.correct), t.n)


def outcome_plan(columns: Columns, figures: dict[str, Callable[[Totals], Floats]]) -> SumsPlan:
    """Return the plan of some figures, all from the same sums."""

    def finish(totals: Floats) -> Floats:
        sums = Totals(*totals.T)
        return np.stack([figure(sums) for figure in figures.values()], axis=1)

    return SumsPlan.build(
        tuple(figures), outcome_sums(columns), columns.cluster, finish, weight=columns.weight
    )


def outcome_sums(columns: Columns) -> Floats:
    """Return what each row adds to the sums of `Totals`."""
    answered = columns.answered.astype(np.float64)
    declined = 1.0 - answered
    correct, guide = columns.correct, columns.should_abstain
    hold, safe = (guide == 1.0).astype(np.float64), (guide == 0.0).astype(np.float64)
    return np.stack(
        [
            np.ones(len(columns)),
            answered,
            correct,
            correct * (1.0 - hold),
            safe * correct,
            safe * (answered - correct),
            safe * declined,
            hold * answered,
            hold * declined,
        ],
        axis=1,
    )
