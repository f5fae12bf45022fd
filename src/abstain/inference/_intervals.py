"""How the intervals of one judgement are made: which clusters, which method, which level; decided once for all metrics.

The jackknife over clusters is the default (see `_jackknife`). The bootstrap stands beside it where resamples were asked
for, and gives the intervals themselves where that was asked for. All measures of a judgement are weighed together.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from abstain import _validate
from abstain.inference._estimate import BCA, INTERVALS, JACKKNIFE, NONE, Estimate, replicates, with_draws
from abstain.inference._jackknife import around_debiased, difference_estimate, jackknife_estimates
from abstain.inference._weights import Draws, LeaveOut

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from abstain.metrics import Columns, MetricSpecification, Scale
    from abstain.tally import Measure

    Floats = NDArray[np.float64]
    Indices = NDArray[np.intp]
    Progress = Callable[[int], None]

__all__ = ["Intervals", "Weighed", "resamples_wanted", "with_companions"]

# As many as the bootstrap has where it was asked for without a number.
USUAL_RESAMPLES = 10_000


def with_companions(metrics: Sequence[MetricSpecification]) -> list[MetricSpecification]:
    """Return metrics, and after them the debiased forms of those that have one, for their intervals."""
    return [*metrics, *(metric.debiased for metric in metrics if metric.debiased is not None)]


class Weighed(NamedTuple):
    """The values of a measure without each group of clusters, and in each resample: (vectors, metrics)."""

    left_out: Floats
    drawn: Floats

    def column(self, place: int) -> Weighed:
        """Return one metric."""
        return Weighed(self.left_out[:, place], self.drawn[:, place])

    def less(self, other: Weighed) -> Weighed:
        """Return the differences to other values with the same weights."""
        # Infinite on both sides is no difference at all.
        with np.errstate(invalid="ignore"):
            return Weighed(self.left_out - other.left_out, self.drawn - other.drawn)


def resamples_wanted(resamples: int | None, interval: str, *, of_a_run: bool = False) -> int:
    """Return how many resamples to draw: those asked for; else 10,000 where the bootstrap is wanted, or none.

    A run file's artifact has a bootstrap block, and so wants it.

    >>> resamples_wanted(None, "jackknife"), resamples_wanted(None, "percentile"), resamples_wanted(500, "bca")
    (0, 10000, 500)
    """
    bootstrapped = _validate.choice(interval, "interval", INTERVALS) not in (JACKKNIFE, NONE)
    if resamples is None:
        return USUAL_RESAMPLES if bootstrapped or (of_a_run and interval != NONE) else 0
    return _validate.whole(resamples, "resamples", least=2 if bootstrapped else 0)


@dataclass(frozen=True, eq=False, slots=True)
class Intervals:
    """Which clusters are left out and drawn, and what is made of it; make one with `of`."""

    leave: LeaveOut
    draws: Draws
    interval: str
    level: float

    @classmethod
    def of(
        cls,
        cluster_ids: NDArray[Any],
        items: Floats | None = None,
        *,
        interval: str = JACKKNIFE,
        resamples: int | None = None,
        seed: int = 42,
        level: float = 0.95,
    ) -> Intervals:
        """Prepare the weights over some clusters.

        Args:
            cluster_ids: the names of the clusters.
            items: how many items each has; alike when left out.
            interval: "jackknife", "percentile", "bca" or "none".
            resamples: how many times the clusters are drawn; see `resamples_wanted`.
            seed: the seed of the draws.
            level: confidence level of the intervals.
        """
        draws = Draws(len(cluster_ids), resamples_wanted(resamples, interval), seed)
        # Percentile ends need nothing left out, and without any interval nothing needs to be weighed at all.
        wanted = interval in (JACKKNIFE, BCA)
        leave = LeaveOut.nothing(len(cluster_ids))
        if wanted:
            leave = LeaveOut.of(cluster_ids, items, by_group=not draws.resamples)
        elif draws.resamples:
            leave = replace(leave, by_group=False)
        return cls(leave, draws, interval, _validate.level(level))

    @property
    def clusters(self) -> int:
        """How many clusters there are."""
        return self.draws.clusters

    @property
    def units(self) -> int:
        """How many units a measure must have to be weighed."""
        return self.leave.units

    @property
    def unit_of_cluster(self) -> Indices:
        """The unit that each cluster is counted in."""
        return self.leave.unit_of_cluster

    def weigh(self, measures: Sequence[Measure], progress: Progress | None = None) -> list[Weighed]:
        """Weigh measures together: without each group, then in each resample, of which `progress` is told."""
        left_out = replicates(measures, self.leave)
        drawn = replicates(measures, self.draws, progress)
        return [Weighed(*pair) for pair in zip(left_out, drawn, strict=True)]

    def estimates(
        self,
        values: Floats,
        weighed: Weighed,
        scales: Sequence[Scale],
        *,
        n: int,
        items: Floats | None = None,
    ) -> list[Estimate]:
        """Return metrics with their intervals.

        Args:
            values: the metrics.
            weighed: what weighing gave.
            scales: what each metric can be.
            n: how many items were judged.
            items: how many items each cluster has here, where they are some of all.
        """
        leave, left_out = self.leave, weighed.left_out
        if items is not None and leave.vectors:
            leave, kept = leave.within(items)
            left_out = left_out[kept]
        if self.interval == JACKKNIFE:
            made = jackknife_estimates(values, left_out, leave, scales, n=n, level=self.level)
        else:
            made = [
                Estimate(value, level=self.level, n=n, clusters=leave.clusters) for value in values.tolist()
            ]
        return [
            with_draws(each, weighed.drawn[:, place], self.draws, self.interval, left_out[:, place])
            for place, each in enumerate(made)
        ]

    def metrics(
        self,
        columns: Columns,
        metrics: Sequence[MetricSpecification],
        measure: Measure,
        weighed: Weighed,
        *,
        n: int,
        items: Floats | None = None,
    ) -> list[Estimate]:
        """Return the metrics of a measure of `with_companions`; the other arguments are those of `estimates`."""
        count, scales = len(metrics), [metric.scale(columns) for metric in with_companions(metrics)]
        found = self.estimates(measure.points, weighed, scales, n=n, items=items)
        companions = iter(found[count:])
        return [
            around_debiased(each, next(companions))
            if metric.debiased and self.interval == JACKKNIFE
            else each
            for metric, each in zip(metrics, found[:count], strict=True)
        ]

    def difference(self, value: float, weighed: Weighed, *, n: int) -> Estimate:
        """Return a difference with its interval."""
        if self.interval == JACKKNIFE:
            made = difference_estimate(value, weighed.left_out, self.leave, n=n, level=self.level)
        else:
            made = Estimate(value, level=self.level, n=n, clusters=self.clusters)
            if not made.defined:
                made = replace(made, reason="undefined on at least one side")
        return with_draws(made, weighed.drawn, self.draws, self.interval, weighed.left_out)
