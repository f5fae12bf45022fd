"""Risk over coverage, weighed: the tallies of a ranking, and the finishers of every metric that is read off it.

Answered rows are tallied by confidence, most confident first, and by loss, smallest first; N is summed apart, because
it counts abstentions too. All selective metrics of one ranking are finished from one run along each tally, and only
what the metrics asked for need is built and run. What the metrics mean is said in `abstain.metrics.selective`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from abstain.metrics import _areas
from abstain.metrics._areas import Run
from abstain.tally import Batch, Measure, Tally, keys_ascending, keys_descending, total_by

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from abstain.metrics._columns import Columns
    from abstain.metrics._specification import MetricSpecification

    Floats = NDArray[np.float64]

__all__ = ["MATCHED_METRICS", "matched_measure", "risk_measure", "threshold_measure"]

MATCHED_METRICS = ("aurc", "augrc", "risk")
# Metrics that are not read off the order of confidences, areas that end at a coverage, and metrics that compare with
# the order of losses.
_UNRANKED = ("cmax", "aurc_optimal", "augrc_optimal")
_TRUNCATED = ("aurc_at_coverage", "augrc_at_coverage")
_AGAINST_OPTIMUM = ("aurc_optimal", "augrc_optimal", "eaurc", "eaugrc")


@dataclass(frozen=True, eq=False)
class Ranking:
    """The answered rows of some columns, ready to be run along; each tally is made when it is first asked for."""

    columns: Columns

    @property
    def units(self) -> int:
        """How many units a weight vector has."""
        return self.columns.units

    @cached_property
    def by_confidence(self) -> Tally:
        """Counts and losses by confidence, most confident first."""
        key, distinct = keys_descending(self.columns.confidence[self.columns.answered])
        return self._tally(key, len(distinct))

    @property
    def by_loss(self) -> Tally:
        """Counts and losses by loss, smallest first; the same for every confidence of these rows."""
        found: Tally = self.columns.once("by_loss", self._by_loss)
        return found

    def _by_loss(self) -> Tally:
        key, distinct = keys_ascending(self.columns.loss[self.columns.answered])
        return self._tally(key, len(distinct))

    def _tally(self, key: NDArray[np.intp], keys: int) -> Tally:
        columns, answered = self.columns, self.columns.answered
        return Tally.of_rows(
            unit=columns.cluster[answered],
            key=key,
            columns=[columns.loss[answered]],
            units=columns.units,
            keys=keys,
            weight=None if columns.mass is None else columns.mass[answered],
        )

    @property
    def counts(self) -> Floats:
        """N and K of each unit, (units, 2)."""
        found: Floats = self.columns.once("counts", self._counts)
        return found

    def _counts(self) -> Floats:
        columns = self.columns
        kept = (columns.weight, columns.weight * columns.answered)
        return np.stack([total_by(columns.cluster, mass, columns.units) for mass in kept], axis=1)


class _Work:
    """One ranking in one batch; what several metrics share is worked out once."""

    def __init__(
        self, ranking: Ranking, batch: Batch, coverages: Sequence[float] = (), ends: Sequence[float] = ()
    ) -> None:
        self.ranking = ranking
        self.batch = batch
        self.coverages = list(coverages)
        self.ends = list(ends)
        self.total, self.answered = (batch.weights @ ranking.counts).T
        self._values: dict[tuple[str, str], Floats] = {}
        self._cuts: dict[float, tuple[Floats, Floats, Floats]] = {}

    @cached_property
    def run(self) -> Run:
        """The run along confidences."""
        return Run.of(self.ranking.by_confidence, self.batch.weights)

    @cached_property
    def cmax(self) -> Floats:
        """K / N."""
        return self.answered / self.total

    def area(self, name: str, convention: str) -> Floats:
        """Return a whole area, worked out once; those of the optimum once for all confidences of a batch."""
        if (name, convention) not in self._values:
            self._values[name, convention] = _AREAS[name](self, convention)
        return self._values[name, convention]

    def optimum(self, name: str, convention: str) -> Floats:
        """Return the area of the perfect ranking."""
        tally = self.ranking.by_loss

        def work() -> dict[str, Floats]:
            run = Run.of(tally, self.batch.weights)
            return {
                "aurc": _areas.aurc(run, self.total, convention, by_item=True),
                "augrc": _areas.augrc(run, self.total, convention),
            }

        found: Floats = self.batch.once((id(tally), convention), work)[name]
        return found

    def limit(self, coverage: float | Floats) -> Floats:
        """Return the count at which an area ends that is cut at a coverage."""
        return np.minimum(coverage * self.total, self.run.last_count)

    @cached_property
    def ranks(self) -> NDArray[np.intp]:
        """The ranks on which the truncated areas end, then those that reach each coverage: one search for all."""
        grid = self.total[:, None] * (np.array(self.coverages) - _areas.TOLERANCE)
        return self.run.reaching(np.column_stack([*map(self.limit, self.ends), grid]))

    def cut(self, coverage: float) -> tuple[Floats, Floats, Floats]:
        """Return the count at which areas end that are cut at a coverage, and both areas up to there."""
        if coverage not in self._cuts:
            limit, rank = self.limit(coverage), self.ranks[:, self.ends.index(coverage)]
            self._cuts[coverage] = (limit, *_areas.cut_areas(self.run, limit, rank))
        return self._cuts[coverage]

    @cached_property
    def risks(self) -> Floats:
        """The selective risk at the first working point that reaches each coverage; NaN where none does."""
        run, reached = self.run, self.ranks[:, len(self.ends) :]
        columns = run.count.shape[1]
        found = run.risk.take(np.minimum(reached, columns - 1) + run.row_start[:, None])
        return np.where((reached < columns) & (self.total[:, None] > 0), found, np.nan)

    def coverage_at_risk(self, bound: float) -> Floats:
        """Return the largest coverage whose selective risk keeps to a bound, 0 where none does."""
        within = self.run.risk <= bound + _areas.TOLERANCE
        reached = np.max(np.where(within, self.run.count, 0.0), axis=1, initial=0.0)
        return np.divide(reached, self.total, out=np.full(len(self.total), np.nan), where=self.total > 0)

    def risk_within(self, limit: Floats) -> Floats:
        """Return the selective risk at a count itself, taking of the plateau that is cut the share that fits."""
        sums = _areas.truncated(self.run, limit).last_risk_sum
        return np.divide(sums, limit, out=np.full_like(sums, np.nan), where=limit > 0.0)


_AREAS: dict[str, Callable[[_Work, str], Floats]] = {
    "aurc": lambda work, way: _areas.aurc(work.run, work.total, way),
    "augrc": lambda work, way: _areas.augrc(work.run, work.total, way),
    "aurc_optimal": lambda work, way: work.optimum("aurc", way),
    "augrc_optimal": lambda work, way: work.optimum("augrc", way),
    "eaurc": lambda work, way: work.area("aurc", way) - work.area("aurc_optimal", way),
    "eaugrc": lambda work, way: work.area("augrc", way) - work.area("augrc_optimal", way),
    "aurc_achievable": lambda work, way: _areas.aurc_achievable(work.run, work.total, way),
}
_AT: dict[str, Callable[[_Work, Any, str], Floats]] = {
    "cmax": lambda work, _, __: work.cmax,
    "aurc_at_coverage": lambda work, at, way: _areas.aurc_at(
        work.run, work.cut(at)[0], work.cut(at)[1], work.total, way
    ),
    "augrc_at_coverage": lambda work, at, way: _areas.augrc_at(
        work.run, work.cut(at)[0], work.cut(at)[2], work.total, way
    ),
    "risk_at_coverage": lambda work, at, _: work.risks[:, work.coverages.index(at)],
    "coverage_at_risk": lambda work, bound, _: work.coverage_at_risk(bound),
}


def risk_measure(columns: Columns, metrics: Sequence[MetricSpecification]) -> Measure:
    """Return the measure of selective metrics of one ranking, one column each, all from the same runs."""
    ranking = Ranking(columns)
    coverages = [metric.value for metric in metrics if metric.name == "risk_at_coverage"]
    ends = list(dict.fromkeys(metric.value for metric in metrics if metric.name in _TRUNCATED))

    def finish(batch: Batch) -> Floats:
        work = _Work(ranking, batch, coverages, ends)
        # Weights that leave no row at all make 0 / 0 of every metric, which is what is undefined there.
        with np.errstate(invalid="ignore"):
            return np.stack([_value(work, metric) for metric in metrics], axis=1)

    widths = [columns.units]
    if any(metric.name not in _UNRANKED for metric in metrics):
        widths.append(ranking.by_confidence.width)
    if any(metric.name in _AGAINST_OPTIMUM for metric in metrics):
        widths.append(ranking.by_loss.width)
    return Measure(tuple(metric.key for metric in metrics), columns.units, max(widths), finish)


def _value(work: _Work, metric: MetricSpecification) -> Floats:
    convention = metric.settings.get("convention", "trapezoid")
    if metric.name in _AREAS:
        return work.area(metric.name, convention)
    return _AT[metric.name](work, metric.value, convention)


def matched_measure(left: Columns, right: Columns, metrics: Sequence[str], convention: str) -> Measure:
    """Return metrics of two rankings over the same units, at the coverage that both reach.

    For every weight vector the matched coverage is the smaller of the two ``Cmax``, so that both sides are always
    judged over the same range, however the draws move their ends. Areas are cut there as truncated areas are; the
    selective risk there takes of the plateau that is cut only the share that fits, in expectation over its order,
    because the next working point could lie far beyond. The columns are the coverage, then for every metric (of
    `MATCHED_METRICS`) the left value and the right one.
    """
    rankings = (Ranking(left), Ranking(right))

    def finish(batch: Batch) -> Floats:
        # A ranking is in several pairs, and run along once for all of them.
        works = [batch.once(("matched", id(side.columns)), partial(_Work, side, batch)) for side in rankings]
        coverage = np.minimum(works[0].cmax, works[1].cmax)
        sides = [_matched(work, metrics, coverage, convention) for work in works]
        return np.stack([coverage, *(value for pair in zip(*sides, strict=True) for value in pair)], axis=1)

    names = ("coverage", *(f"{name} {side}" for name in metrics for side in ("left", "right")))
    return Measure(names, left.units, sum(side.by_confidence.width for side in rankings), finish)


def _matched(work: _Work, metrics: Sequence[str], coverage: Floats, convention: str) -> list[Floats]:
    run, limit = work.run, work.limit(coverage)
    areas = _areas.cut_areas(run, limit, run.reaching(limit[:, None])[:, 0])
    made = {
        "aurc": lambda: _areas.aurc_at(run, limit, areas[0], work.total, convention),
        "augrc": lambda: _areas.augrc_at(run, limit, areas[1], work.total, convention),
        "risk": lambda: work.risk_within(limit),
    }
    return [made[name]() for name in metrics]


def threshold_measure(columns: Columns, thresholds: Floats) -> Measure:
    """Return the selective risk, then the generalized risk, at fixed thresholds: confidences that occur, descending.

    A threshold that is fixed accepts the same rows whatever their weights, so its risks are ratios of running
    sums. Ranks between the thresholds asked for are one rank, which changes nothing at the thresholds
    themselves and makes a curve of a million rows as cheap as one of a hundred.
    """
    answered = columns.answered
    # Ascending for the search; a row enters at the highest threshold that it reaches.
    key = np.searchsorted(-thresholds, -columns.confidence[answered])
    tally = Ranking(columns)._tally(key, len(thresholds))
    total = Ranking(columns).counts[:, 0]

    def finish(batch: Batch) -> Floats:
        count, risk_sum = tally.run(batch.weights)[:, :, 1:]
        selective = np.divide(risk_sum, count, out=np.full_like(count, np.nan), where=count > 0)
        return np.concatenate([selective, risk_sum / (batch.weights @ total)[:, None]], axis=1)

    names = [f"{risk}[{place}]" for risk in ("selective", "generalized") for place in range(len(thresholds))]
    return Measure(tuple(names), columns.units, max(columns.units, tally.width), finish)
