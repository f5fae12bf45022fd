"""Differences between systems: every pair by every metric, with intervals, corrected p-values and verdicts in words."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from abstain._brief import brief
from abstain.evaluation._metric_tables import ALL, Key
from abstain.inference import (
    CANNOT_TELL,
    LEFT,
    at_level,
    clusters_needed,
    decide,
    holm,
    p_value,
    within_margin,
)
from abstain.metrics.curves import MATCHED_METRICS, matched_measure

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from abstain.evaluation._result import Settings
    from abstain.evaluation._system import SystemWork
    from abstain.inference import Estimate, Intervals, MarginVerdict, Weighed
    from abstain.matching import Matching
    from abstain.metrics import MetricSpecification
    from abstain.tally import Measure

    Pair = tuple[str, str]

__all__ = ["Difference", "DifferenceWork", "Rank"]

# So many times the clusters there are say no more than "very many".
_MANY_TIMES = 100


@dataclass(frozen=True, slots=True)
class Rank:
    """A system's place by a metric, 1 for the best, and the places that cannot be ruled out.

    Attributes:
        place: by the point estimate; equal values share the better place.
        best: one more than the systems that are told to be better.
        worst: the number of ranked systems, less those that are told to be worse.

    >>> print(Rank(2, 1, 3))
    2 (1-3)
    """

    place: int
    best: int
    worst: int

    def __str__(self) -> str:
        return f"{self.place} ({self.best}-{self.worst})" if self.best < self.worst else str(self.place)


@dataclass(frozen=True, eq=False, slots=True)
class Difference:
    """How two systems differ by one metric, right - left, and the verdict on it.

    Attributes:
        metric: the metric; at matched coverage "aurc", "augrc", or "risk" for the selective risk.
        direction: "higher" or "lower" where that is better, "neither" where it depends.
        confidence: the confidence that ranks the answers; empty where none is needed.
        group: the group of items; empty for all of them.
        left: one system.
        right: the other.
        left_value: the metric there.
        right_value: the metric here.
        estimate: right - left, with its interval; the bootstrap's stands in ``estimate.percentile``.
        coverage: the coverage that both reach, where they are compared at it; NaN where over all items.
        p: two-sided p-value; NaN where there is none, and then ``estimate.reason`` says why.
        p_adjusted: the same after Holm's correction within its family.
        family: how many pairs of systems the correction is for: those of one metric, confidence and group.
        clusters_needed: where it cannot be told: how many clusters in all would tell it; NaN otherwise.
        margin: what can be said against the smallest difference that would matter, where one was named.
        cluster_noun: what a cluster is called.
    """

    metric: str
    direction: str
    confidence: str
    group: str
    left: str
    right: str
    left_value: float
    right_value: float
    estimate: Estimate
    coverage: float = math.nan
    p: float = math.nan
    p_adjusted: float = math.nan
    family: int = 1
    clusters_needed: float = math.nan
    margin: MarginVerdict | None = None
    cluster_noun: str = "cluster"

    __repr__ = brief

    @property
    def matched(self) -> bool:
        """True where the systems are compared at a coverage that both reach."""
        return not math.isnan(self.coverage)

    @property
    def verdict(self) -> str:
        """Who is better: "left", "right" or "cannot tell"; who is higher where no direction is better."""
        return decide(self.estimate, self.direction, self.p_adjusted)

    @property
    def winner(self) -> str | None:
        """The system that the verdict is for, or None where it cannot be told."""
        verdict = self.verdict
        return None if verdict == CANNOT_TELL else self.left if verdict == LEFT else self.right

    @property
    def compared(self) -> bool:
        """True where there is anything to tell: a p-value."""
        return not math.isnan(self.p)

    @property
    def in_words(self) -> str:
        """The verdict in the few words of a table: who is better, by name."""
        if not self.compared:
            return f"not compared: {self.estimate.reason}" if self.estimate.reason else "not compared"
        return CANNOT_TELL if self.winner is None else f"{self.winner} is {self._kind}"

    @property
    def _kind(self) -> str:
        return "higher" if self.direction == "neither" else "better"

    @property
    def more_clusters(self) -> float:
        """How many clusters beyond those there are would tell the difference; NaN where that cannot be said."""
        return self.clusters_needed - self.estimate.clusters

    @property
    def words(self) -> str:
        """The verdict as a sentence."""
        where = f"at coverage {self.coverage:.2f}, " if self.matched else ""
        if not self.compared:
            return f"{where}cannot compare {self.left} and {self.right}: {self.estimate.reason}"
        winner = self.winner
        if winner is None:
            return (
                f"{where}cannot tell {self.left} and {self.right} apart{self._against_margin()}{self._hope()}"
            )
        loser = self.left if winner == self.right else self.right
        low, high = self.estimate.low, self.estimate.high
        if self.estimate.value < 0.0:
            low, high = -high, -low
        size = f"{abs(self.estimate.value):.3f} [{low:.3f}, {high:.3f}]"
        return f"{where}{winner} is {self._kind} than {loser} by {size}{self._against_margin()}"

    def _against_margin(self) -> str:
        """What can be said against the margin: within it, or one not worse than the other by more."""
        if self.margin is None:
            return ""
        size = f"{self.margin.margin:g}"
        if self.margin.equivalent:
            return f"; they are within {size} of each other"
        if self.direction == "neither":
            return ""
        pairs = (
            (self.margin.left_not_worse, self.left, self.right),
            (self.margin.right_not_worse, self.right, self.left),
        )
        return "".join(
            f"; {one} is not worse than {other} by more than {size}"
            for shown, one, other in pairs
            if shown and one != self.winner
        )

    def _hope(self) -> str:
        more, noun = self.more_clusters, f"{self.cluster_noun}s"
        if math.isnan(more) or more <= 0.0:
            return ""
        if math.isinf(more):
            return "; they do not differ here"
        if self.clusters_needed > _MANY_TIMES * self.estimate.clusters:
            return f"; more than {_MANY_TIMES} times as many {noun} would"
        return f"; about {_rounded(more):,} more {noun} would"


def _rounded(count: float) -> int:
    """Two digits are all that a forecast deserves; rounded up, so that it does not promise too much."""
    whole = math.ceil(max(count, 1.0))
    step = 10 ** max(len(str(whole)) - 2, 0)
    return math.ceil(whole / step) * step


@dataclass(frozen=True, eq=False, slots=True)
class _Matched:
    """What a pair is compared by at the coverage that both reach."""

    pair: Pair
    confidence: str
    names: tuple[str, ...]
    measure: Measure


@dataclass(frozen=True, eq=False, slots=True)
class DifferenceWork:
    """The differences of systems under work; make one with `prepare`."""

    works: Mapping[str, SystemWork]
    pairs: list[Pair]
    matched: list[_Matched]
    matching: Matching
    settings: Settings
    compared: frozenset[str]
    intervals: Intervals

    @classmethod
    def prepare(
        cls,
        works: Mapping[str, SystemWork],
        matching: Matching,
        settings: Settings,
        metrics: Sequence[MetricSpecification],
        intervals: Intervals,
    ) -> DifferenceWork:
        """Find the pairs, and what they are compared by, `metrics` and those at matched coverage."""
        names, reference = list(works), settings.reference
        pairs = list(itertools.combinations(names, 2))
        if reference is not None:
            pairs = [(reference, name) for name in names if name != reference]
        matched = _matched(works, pairs, settings, metrics)
        compared = frozenset(metric.key for metric in metrics)
        return cls(works, pairs, matched, matching, settings, compared, intervals)

    @property
    def measures(self) -> list[Measure]:
        """What is weighed beside the measures of the systems."""
        return [each.measure for each in self.matched]

    def differences(
        self, weighed: Mapping[str, Sequence[Weighed]], matched: Sequence[Weighed]
    ) -> tuple[Difference, ...]:
        """Return every difference; `weighed` and `matched` are what weighing the measures gave."""
        values = {name: self.works[name].by_key(own) for name, own in weighed.items()}
        points = {name: work.points() for name, work in self.works.items()}
        first = next(iter(self.works.values()))
        found: list[Difference] = []
        for slot, metrics in first.metrics.items():
            for metric in (metric for metric in metrics if metric.key in self.compared):
                for label in (ALL, *(group.label for group in first.groups)):
                    key = Key(slot, metric.key, label)
                    if not all(key in own for own in points.values()):
                        continue
                    family = [self._difference(pair, key, metric, points, values) for pair in self.pairs]
                    found += self._judged(family)
        for each, own in zip(self.matched, matched, strict=True):
            found += self._at_matched(each, own)
        return tuple(self._families(found))

    def _difference(
        self,
        pair: Pair,
        key: Key,
        metric: MetricSpecification,
        points: Mapping[str, Mapping[Key, float]],
        values: Mapping[str, Mapping[Key, Weighed]],
    ) -> Difference:
        left, right = pair
        ends = (points[left][key], points[right][key])
        estimate = self._estimate(ends, values[right][key].less(values[left][key]))
        reason = self._obstacle(pair, key, metric, ends)
        if reason:  # what is not compared has no interval
            estimate = replace(estimate, low=math.nan, high=math.nan, method="none", reason=reason)
        return Difference(
            metric=key.metric,
            direction=metric.direction,
            confidence=key.confidence,
            group=key.group,
            left=left,
            right=right,
            left_value=ends[0],
            right_value=ends[1],
            estimate=estimate,
            p=p_value(estimate),
            cluster_noun=self._noun,
        )

    def _estimate(self, ends: Sequence[float], change: Weighed) -> Estimate:
        """Second - first with its interval."""
        with np.errstate(invalid="ignore"):
            value = float(np.subtract(ends[1], ends[0]))
        return self.intervals.difference(value, change, n=self.matching.judged)

    def _obstacle(self, pair: Pair, key: Key, metric: MetricSpecification, values: Sequence[float]) -> str:
        """Why a pair is not compared by a metric; empty where it is."""
        for name in pair:
            if not self.works[name].answered:
                return f"{name} answered nothing, and what is not answered must not win"
        for name, value in zip(pair, values, strict=True):
            if not math.isfinite(value):
                problem = metric.problem(self.works[name].views[key.confidence].rows(key.group))
                why = f": {problem.sentence}" if problem else ""
                return f"{key.metric} is {'undefined' if math.isnan(value) else 'infinite'} for {name}{why}"
        return ""

    def _at_matched(self, matched: _Matched, weighed: Weighed) -> list[Difference]:
        points = matched.measure.points
        found = []
        for place, name in enumerate(matched.names):
            left, right = 1 + 2 * place, 2 + 2 * place
            ends = (float(points[left]), float(points[right]))
            estimate = self._estimate(ends, weighed.column(right).less(weighed.column(left)))
            found.append(
                Difference(
                    metric=name,
                    direction="lower",
                    confidence=matched.confidence,
                    group=ALL,
                    left=matched.pair[0],
                    right=matched.pair[1],
                    left_value=ends[0],
                    right_value=ends[1],
                    estimate=estimate,
                    coverage=float(points[0]),
                    p=p_value(estimate),
                    cluster_noun=self._noun,
                )
            )
        return found

    def _families(self, found: Sequence[Difference]) -> list[Difference]:
        """Correct the differences at matched coverage by family, too, and put them last, metric by metric."""
        whole = [each for each in found if not each.matched]
        for name in MATCHED_METRICS:
            for slot in dict.fromkeys(each.confidence for each in found if each.matched):
                whole += self._judged(
                    [
                        each
                        for each in found
                        if each.matched and (each.metric, each.confidence) == (name, slot)
                    ]
                )
        return whole

    def _judged(self, family: list[Difference]) -> list[Difference]:
        """Correct one family for its number, and say of what cannot be told what would tell it."""
        settings = self.settings
        tested = sum(each.compared for each in family)
        adjusted = holm([each.p for each in family]).tolist()
        margins = [None] * len(family)
        if settings.margin is not None and family:
            direction = family[0].direction
            margins = within_margin([each.estimate for each in family], direction, settings.margin)  # type: ignore[assignment]
        result = []
        for each, p, margin in zip(family, adjusted, margins, strict=True):
            found = replace(each, p_adjusted=p, family=tested, margin=margin if each.compared else None)
            if found.compared and found.winner is None:
                size = found.estimate.value if settings.margin is None else settings.margin
                # With many comparisons each is held against a share of alpha, and the smallest one is sure to do.
                level = 1.0 - (1.0 - settings.level) / tested
                needed = clusters_needed(size, found.estimate.se, found.estimate.clusters, level=level)
                found = replace(found, clusters_needed=needed)
            if settings.simultaneous and tested > 1:
                together = 1.0 - (1.0 - settings.level) / tested
                wider = at_level(found.estimate, together)
                method = f"{wider.method}, simultaneous for {tested} pairs"
                found = replace(found, estimate=replace(wider, level=settings.level, method=method))
            result.append(found)
        return result

    @property
    def _noun(self) -> str:
        return next(iter(self.works.values())).judged.cluster_noun


def _matched(
    works: Mapping[str, SystemWork],
    pairs: Sequence[Pair],
    settings: Settings,
    metrics: Sequence[MetricSpecification],
) -> list[_Matched]:
    """The pairs that answer different shares, and the metrics that have a form at the coverage that both reach."""
    first = next(iter(works.values()))
    names = tuple(
        dict.fromkeys(
            metric.name if metric.name in MATCHED_METRICS else "risk"
            for metric in metrics
            if metric.parameter is None or metric.parameter.name not in ("coverage", "risk", "accuracy")
        )
    )
    names = tuple(name for name in MATCHED_METRICS if name in names)
    unequal = [
        (left, right)
        for left, right in pairs
        if works[left].answered != works[right].answered and works[left].answered and works[right].answered
    ]
    if not unequal or any(work.loss is None for work in works.values()):
        return []
    found = []
    for slot in first.confidences:
        rows = {name: work.rows(slot) for name, work in works.items()}
        if any(np.isnan(rows[name].confidence[rows[name].answered]).any() for name in works):
            continue
        found += [
            _Matched(
                pair, slot, names, matched_measure(rows[pair[0]], rows[pair[1]], names, settings.convention)
            )
            for pair in unequal
        ]
    return found
