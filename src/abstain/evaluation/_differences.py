"""Differences between systems: every pair by every metric, with intervals, corrected p-values and verdicts.

A system that declines more items must not look better because of it. How a metric treats declined items (see
`MetricSpecification.comparison`) decides what two systems are compared by:

- "penalized": the difference over all items;
- "matched": the difference at the largest coverage that both reach. The difference over the whole curve is computed
  too, but has no verdict if the coverages differ;
- "conditional": the difference over the answered items of each. Its sentence names both coverages, and nothing is
  ranked if they differ;
- "undirected": a difference without a winner.

Ranks, headlines, sentences and gates all come from the differences that `deciding` returns.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from abstain.evaluation._metric_tables import ALL, Key
from abstain.inference import (
    INCONCLUSIVE,
    LEFT,
    RIGHT,
    DifferenceRange,
    at_level,
    clusters_needed,
    decide,
    holm,
    p_value,
    within_margin,
)
from abstain.metrics.matched import SELECTIVE_RISK, end_coverage, matched_statistic
from abstain.metrics.registry import CONDITIONAL, MATCHED, UNDIRECTED, metric_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from abstain.evaluation._result import Settings
    from abstain.evaluation._system import SystemWork
    from abstain.inference import Estimate, Intervals, MarginVerdict, Replicates
    from abstain.matching import Matching
    from abstain.metrics import Columns, MetricSpecification
    from abstain.resampling import Statistic

    Pair = tuple[str, str]

# So many times the clusters there are say no more than "very many".
_MANY_TIMES = 100
# Coverages that differ by no more than rounding are equal.
_SAME_COVERAGE = 1e-12
MATCHED_COVERAGE, ALL_ITEMS, ANSWERED_ITEMS, OWN_COVERAGES = (
    "matched coverage",
    "all items",
    "answered items",
    "own coverages",
)


class Rank(NamedTuple):
    """The range of ranks that a system can have by a metric, 1 for the best.

    Attributes:
        best: one more than the number of systems that beat it.
        worst: the number of ranked systems less the number that it beats.

    >>> print(Rank(1, 3), Rank(2, 2))
    1-3 2
    """

    best: int
    worst: int

    def __str__(self) -> str:
        return f"{self.best}-{self.worst}" if self.best < self.worst else str(self.best)


@dataclass(frozen=True, eq=False, slots=True)
class Difference:
    """How two systems differ by one metric, right - left, and the verdict on it.

    Attributes:
        metric: the metric; "risk" for the selective risk at matched coverage.
        direction: "higher" or "lower" if that is better, "neither" if it depends.
        comparison: how the metric treats declined items: "penalized", "matched", "conditional" or "undirected".
        confidence: the confidence that ranks the answers; empty if none is needed.
        group: the group of items; empty for all of them.
        left: one system.
        right: the other.
        left_value: the metric of the left system.
        right_value: the metric of the right system.
        left_coverage: the coverage at which the metric of the left system ends: its answer rate, unless the metric
            ends earlier.
        right_coverage: the same of the right system.
        estimate: right - left, with its interval; the bootstrap's is in ``estimate.percentile``.
        matched: True if both values are at the largest coverage that both systems reach.
        coverage: the coverage of both values; NaN if it is not the same for both, or if the metric is over all items.
        p: two-sided p-value; NaN if there is none, and then ``estimate.reason`` says why.
        p_adjusted: the same after Holm's correction within its family; NaN if there is no verdict.
        family: how many pairs of systems the correction is for: those of one metric, confidence and group.
        clusters_needed: if the verdict is inconclusive, how many clusters in all would decide it; NaN otherwise.
        margin: the verdict against the smallest difference that would matter, if a margin was passed.
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
    comparison: str = CONDITIONAL
    left_coverage: float = math.nan
    right_coverage: float = math.nan
    matched: bool = False
    coverage: float = math.nan
    p: float = math.nan
    p_adjusted: float = math.nan
    family: int = 1
    clusters_needed: float = math.nan
    margin: MarginVerdict | None = None
    cluster_noun: str = "cluster"

    @property
    def basis(self) -> str:
        """What both values are over: "matched coverage", "all items", "answered items" or "own coverages"."""
        if self.comparison == MATCHED:
            return OWN_COVERAGES if math.isnan(self.coverage) else MATCHED_COVERAGE
        return ANSWERED_ITEMS if self.comparison == CONDITIONAL else ALL_ITEMS

    @property
    def no_verdict(self) -> str:
        """Why there is no verdict; empty if there is one, even an inconclusive one."""
        if self.comparison == UNDIRECTED:
            return "no direction is better" if self.direction == "neither" else "declining alone improves it"
        if self.basis == OWN_COVERAGES:
            return f"not comparable: coverages {self._coverages}"
        return ""

    @property
    def verdict(self) -> str | None:
        """Which side is better: "left", "right" or "inconclusive"; None if there is no verdict (see `no_verdict`)."""
        return None if self.no_verdict else decide(self.estimate, self.direction, self.p_adjusted)

    @property
    def winner(self) -> str | None:
        """The system that is better; None if that is inconclusive or there is no verdict."""
        return {LEFT: self.left, RIGHT: self.right}.get(self.verdict or "")

    @property
    def compared(self) -> bool:
        """True if the difference has a p-value."""
        return not math.isnan(self.p)

    @property
    def more_clusters(self) -> float:
        """How many clusters beyond those there are would decide the verdict; NaN if that is unknown."""
        return self.clusters_needed - self.estimate.clusters

    @property
    def where(self) -> str:
        """What distinguishes this difference from the other one of a matched metric; empty if there is one."""
        if self.matched:
            return f"at coverage {self.coverage:.2f}"
        return "over whole curves" if self.basis == OWN_COVERAGES else ""

    @property
    def label(self) -> str:
        """The metric with the coverage of both values, for the rows of a table."""
        return f"{self.metric} at {self.coverage:.2f}" if self.matched else self.metric

    @property
    def in_words(self) -> str:
        """The verdict in the few words of a table: which system is better, by name."""
        if not self.compared:
            return f"not compared: {self.estimate.reason}" if self.estimate.reason else "not compared"
        if self.no_verdict:
            return "not comparable" if self.basis == OWN_COVERAGES else "no winner"
        return INCONCLUSIVE if self.winner is None else f"{self.winner} is better"

    @property
    def words(self) -> str:
        """The finding as a sentence that names the metric and what it is over."""
        return f"{self.subject()}: {self.finding}"

    def subject(self, *, confidence: bool = False) -> str:
        """Return the metric, the group and what it is over, as a sentence begins."""
        parts = [_capitalized(metric_name(self.metric))]
        if confidence and self.confidence:
            parts.append(f"by {self.confidence}")
        if self.group:
            parts.append(f"in {self.group}")
        if self.basis == MATCHED_COVERAGE and self.metric.partition("@")[0] != "risk_at_coverage":
            parts.append(f"at coverage {self.coverage:.2f}")
        elif self.basis == OWN_COVERAGES:
            parts.append(f"up to coverages {self._coverages}")
        elif self.basis == ANSWERED_ITEMS:
            parts.append("of answered items")
            if not _same(self.left_coverage, self.right_coverage):
                parts.append(f"(coverages {self._coverages})")
        return " ".join(parts)

    @property
    def finding(self) -> str:
        """The rest of the sentence: which system is better, by how much, or why that is not known."""
        if not self.compared:
            return f"cannot compare {self.left} and {self.right}: {self.estimate.reason}"
        if self.basis == OWN_COVERAGES:
            return f"not comparable, {self.right} - {self.left} = {self.estimate}"
        higher = decide(self.estimate, "neither" if self.no_verdict else self.direction, self._p)
        if higher == INCONCLUSIVE:
            found = f"{INCONCLUSIVE}, {self.right} - {self.left} = {self.estimate}"
            return f"{found}{self._against_margin()}{self._hope()}"
        first, second = (self.left, self.right) if higher == LEFT else (self.right, self.left)
        size = self.estimate if self.estimate.value >= 0.0 else self.estimate.turned
        kind = "higher" if self.no_verdict else "better"
        return f"{first} is {kind} than {second} by {size}{self._against_margin()}"

    @property
    def _p(self) -> float:
        return self.p if self.no_verdict else self.p_adjusted

    @property
    def _coverages(self) -> str:
        """Both coverages, with as many digits as it takes to see that they differ."""
        digits = 2
        while digits < 6 and f"{self.left_coverage:.{digits}f}" == f"{self.right_coverage:.{digits}f}":
            digits += 1
        return f"{self.left_coverage:.{digits}f} and {self.right_coverage:.{digits}f}"

    def _against_margin(self) -> str:
        """The verdict against the margin: within it, or one not worse than the other by more."""
        if self.margin is None or self.no_verdict:
            return ""
        size = f"{self.margin.margin:g}"
        if self.margin.equivalent:
            return f"; they are within {size} of each other"
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
            return f"; more than {_MANY_TIMES} times as many {noun} would decide it"
        return f"; about {_rounded(more):,} more {noun} would decide it"


def _rounded(count: float) -> int:
    """Two digits are all that a forecast deserves; rounded up, so that it does not promise too much."""
    whole = math.ceil(max(count, 1.0))
    step = 10 ** max(len(str(whole)) - 2, 0)
    return math.ceil(whole / step) * step


def _capitalized(text: str) -> str:
    return text if text.startswith("e-") else text[:1].upper() + text[1:]


def _same(one: float, other: float) -> bool:
    return not abs(one - other) > _SAME_COVERAGE


def deciding(
    differences: Iterable[Difference], metric: str, confidence: str = ALL, group: str = ALL
) -> dict[Pair, Difference]:
    """Return, for every pair of systems, the difference that its verdict comes from.

    At matched coverage if the coverages of a matched metric differ, otherwise over all items. A metric that needs no
    confidence has one difference at matched coverage for each; the first is taken unless one is named.
    """
    found: dict[Pair, Difference] = {}
    for each in differences:
        named = not confidence or not each.confidence or each.confidence == confidence
        if (each.metric, each.group) == (metric, group) and named and not each.no_verdict:
            found.setdefault((each.left, each.right), each)
    return found


def cycles(names: Sequence[str], decided: Iterable[Difference]) -> list[list[str]]:
    """Return the systems that beat each other in a circle, one list per circle.

    >>> from abstain.inference import Estimate
    >>> def beats(winner, loser):
    ...     return Difference("augrc", "lower", "", "", loser, winner, 0.2, 0.1, Estimate(-0.1), p=0.0,
    ...                       p_adjusted=0.0, comparison="penalized")
    >>> cycles(["a", "b", "c", "d"], [beats("a", "b"), beats("b", "c"), beats("c", "a"), beats("a", "d")])
    [['a', 'b', 'c']]
    """
    beaten: dict[str, set[str]] = {name: set() for name in names}
    for each in decided:
        if each.winner is not None:
            beaten[each.winner].add(each.left if each.winner == each.right else each.right)
    below = {name: _reached(name, beaten) for name in names}
    circles = [[other for other in names if other in below[name] and name in below[other]] for name in names]
    return [list(circle) for circle in dict.fromkeys(map(tuple, circles)) if circle]


def _reached(start: str, beaten: Mapping[str, set[str]]) -> set[str]:
    """Every system that a system beats, or that is beaten by one that it beats, and so on."""
    found: set[str] = set()
    left = [start]
    while left:
        for name in beaten[left.pop()] - found:
            found.add(name)
            left.append(name)
    return found


def rank(name: str, names: Sequence[str], decided: Sequence[Difference]) -> Rank | None:
    """Return the range of ranks of a system among `names`; None if it is in a circle."""
    if any(name in circle for circle in cycles(names, decided)):
        return None
    winners = [each.winner for each in decided if each.winner is not None and name in (each.left, each.right)]
    return Rank(1 + sum(winner != name for winner in winners), len(names) - winners.count(name))


@dataclass(frozen=True, eq=False, slots=True)
class Headline:
    """The conclusion of a comparison: by the first requested metric that has a direction, over all items.

    Attributes:
        metric: the metric.
        basis: what it is over: "matched coverage", "all items" or "answered items".
        coverage: the coverage of both systems at matched coverage; NaN otherwise, and if several pairs differ in it.
        winner: the system that beats every other one; None if there is none.
        difference: by how much the second system of the pair is higher than the first; of more than two systems, the
            winner's smallest lead, and NaN if there is no winner.
        low: the lower end of its interval.
        high: the upper end of its interval.
        sentence: the conclusion in words.
    """

    metric: str
    basis: str
    coverage: float
    winner: str | None
    difference: float
    low: float
    high: float
    sentence: str


def headline(names: Sequence[str], differences: Sequence[Difference], key: Key) -> Headline | None:
    """Return the headline of a comparison by one metric; None if the metric has no verdict anywhere."""
    decided = list(deciding(differences, key.metric, key.confidence).values())
    if not decided:
        return None
    wins = {name: [each for each in decided if each.winner == name] for name in names}
    winner = next((name for name in names if len(wins[name]) == len(names) - 1), None)
    name, bases = _capitalized(metric_name(key.metric)), {each.basis for each in decided}
    basis = bases.pop() if len(bases) == 1 else MATCHED_COVERAGE
    if len(names) == 2:
        (shown,), sentence = decided, decided[0].words
    elif winner is None:
        sentence = f"{name}: no system is shown to be better than every other one"
        return Headline(key.metric, basis, math.nan, None, math.nan, math.nan, math.nan, sentence)
    else:
        shown = min(wins[winner], key=lambda each: abs(each.estimate.value))
        sentence = f"{name}: {winner} is better than every other system. Smallest lead: {shown.words}"
    estimate = shown.estimate
    return Headline(
        key.metric,
        basis,
        shown.coverage if basis == MATCHED_COVERAGE else math.nan,
        winner,
        estimate.value,
        estimate.low,
        estimate.high,
        sentence,
    )


@dataclass(frozen=True, eq=False, slots=True)
class _MatchedPair:
    """The metrics by which a pair is compared at matched coverage, under one confidence and in one group."""

    pair: Pair
    confidence: str
    group: str
    metrics: tuple[MetricSpecification, ...]
    sides: tuple[Columns, Columns]
    statistic: Statistic


@dataclass(frozen=True, eq=False, slots=True)
class DifferenceWork:
    """The differences of systems before they are weighed; make one with `prepare`."""

    works: Mapping[str, SystemWork]
    pairs: list[Pair]
    matched: list[_MatchedPair]
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
        """Find the pairs, and the requested metrics that need a difference at matched coverage."""
        names, reference = list(works), settings.reference
        pairs = list(itertools.combinations(names, 2))
        if reference is not None:
            pairs = [(reference, name) for name in names if name != reference]
        compared = frozenset(metric.key for metric in metrics)
        return cls(
            works, pairs, _matched_pairs(works, pairs, metrics), matching, settings, compared, intervals
        )

    @property
    def statistics(self) -> list[Statistic]:
        """The statistics at matched coverage, which are evaluated together with those of the systems."""
        return [each.statistic for each in self.matched]

    def differences(self, replicates: Mapping[Statistic, Replicates]) -> tuple[Difference, ...]:
        """Return every difference, those at matched coverage last."""
        whole = self._whole(replicates)
        at_matched = {
            (each.left, each.right, Key(each.confidence, each.metric, each.group)): each
            for pair in self.matched
            for each in self._at_matched(pair, replicates[pair.statistic])
        }
        for key in dict.fromkeys(key for *_, key in whole):
            # A metric without a confidence is compared at matched coverage once for every confidence.
            slots = dict.fromkeys(
                other.confidence
                for *_, other in at_matched
                if other[1:] == key[1:] and key.confidence in (ALL, other.confidence)
            )
            for slot in slots or (key.confidence,):
                own = key._replace(confidence=slot)
                places = [
                    (at_matched, (*pair, own)) if (*pair, own) in at_matched else (whole, (*pair, key))
                    for pair in self.pairs
                ]
                self._decide([(table, place) for table, place in places if place in table])
        for key in dict.fromkeys(key for *_, key in at_matched if key.metric == SELECTIVE_RISK.key):
            self._decide([(at_matched, place) for place in at_matched if place[2] == key])
        return (*whole.values(), *at_matched.values())

    def _whole(self, replicates: Mapping[Statistic, Replicates]) -> dict[tuple[str, str, Key], Difference]:
        """The differences over all items or answered items, and over whole curves."""
        values = {name: work.by_key(replicates) for name, work in self.works.items()}
        points = {name: work.points() for name, work in self.works.items()}
        first = next(iter(self.works.values()))
        labels = (ALL, *(group.label for group in first.groups))
        rows = {
            (name, slot, label): work.views[slot].rows(label)
            for name, work in self.works.items()
            for slot in first.metrics
            for label in labels
        }
        found = {}
        for slot, metrics in first.metrics.items():
            for metric in (metric for metric in metrics if metric.key in self.compared):
                for label in labels:
                    key = Key(slot, metric.key, label)
                    if not all(key in own for own in points.values()):
                        continue
                    for left, right in self.pairs:
                        sides = [rows[name, slot, label] for name in (left, right)]
                        ends = (points[left][key], points[right][key])
                        change = values[right][key].less(values[left][key])
                        found[left, right, key] = self._difference(
                            (left, right), key, metric, ends, change, sides
                        )
        return found

    def _difference(
        self,
        pair: Pair,
        key: Key,
        metric: MetricSpecification,
        ends: tuple[float, float],
        change: Replicates,
        sides: Sequence[Columns],
        coverage: float = math.nan,
    ) -> Difference:
        """One difference; `coverage` is that of both sides if they are at matched coverage."""
        matched = not math.isnan(coverage)
        with np.errstate(invalid="ignore"):
            value = float(np.subtract(ends[1], ends[0]))
        limits = (
            _limits(metric, sides, coverage if matched else metric.value) if math.isfinite(value) else None
        )
        estimate = self.intervals.difference(value, change, n=self.matching.judged, limits=limits)
        reason = self._obstacle(pair, metric, ends, sides)
        if reason:  # what is not compared has no interval
            estimate = replace(
                estimate, low=math.nan, high=math.nan, se=math.nan, method="none", reason=reason
            )
        coverages = [end_coverage(metric, side) if len(side) else math.nan for side in sides]
        if not matched and metric.comparison == MATCHED:
            if metric.matched is None:  # the metric names its own coverage
                coverage = metric.value
            elif _same(*coverages):
                coverage = coverages[0]
        return Difference(
            metric=key.metric,
            direction=metric.direction,
            comparison=metric.comparison,
            confidence=key.confidence,
            group=key.group,
            left=pair[0],
            right=pair[1],
            left_value=ends[0],
            right_value=ends[1],
            left_coverage=coverages[0],
            right_coverage=coverages[1],
            estimate=estimate,
            matched=matched,
            coverage=coverage,
            p=p_value(estimate),
            cluster_noun=next(iter(self.works.values())).judged.cluster_noun,
        )

    def _obstacle(
        self, pair: Pair, metric: MetricSpecification, values: Sequence[float], sides: Sequence[Columns]
    ) -> str:
        """Why a pair is not compared by a metric; empty if it is."""
        for name in pair:
            if not self.works[name].answered:
                return f"{name} answered nothing, and a system that answers nothing must not win"
        for name, value, rows in zip(pair, values, sides, strict=True):
            if not math.isfinite(value):
                problem = metric.problem(rows) if len(rows) else None
                why = f": {problem.sentence}" if problem else ""
                return f"{metric.key} is {'undefined' if math.isnan(value) else 'infinite'} for {name}{why}"
        return ""

    def _at_matched(self, matched: _MatchedPair, replicates: Replicates) -> list[Difference]:
        points = matched.statistic.points.tolist()
        found = []
        for place, metric in enumerate(matched.metrics):
            coverage, left, right = points[3 * place : 3 * place + 3]
            change = replicates.column(3 * place + 2).less(replicates.column(3 * place + 1))
            key = Key(matched.confidence, metric.key, matched.group)
            found.append(
                self._difference(matched.pair, key, metric, (left, right), change, matched.sides, coverage)
            )
        return found

    def _decide(self, family: Sequence[tuple[dict[Any, Difference], Any]]) -> None:
        """Correct the p-values of one family for its number, and complete what follows from the verdicts."""
        settings = self.settings
        members = [(table, place) for table, place in family if not table[place].no_verdict]
        found = [table[place] for table, place in members]
        tested = sum(each.compared for each in found)
        adjusted = holm([each.p for each in found]).tolist()
        margins: list[MarginVerdict | None] = [None] * len(found)
        if settings.margin is not None and found:
            margins = [*within_margin([each.estimate for each in found], found[0].direction, settings.margin)]
        for (table, place), each, p, margin in zip(members, found, adjusted, margins, strict=True):
            made = replace(each, p_adjusted=p, family=tested, margin=margin if each.compared else None)
            if made.compared and made.winner is None:
                size = made.estimate.value if settings.margin is None else settings.margin
                # Each of several comparisons has a part of alpha, and the smallest part suffices for certain.
                level = 1.0 - (1.0 - settings.level) / tested
                needed = clusters_needed(size, made.estimate.se, made.estimate.clusters, level=level)
                made = replace(made, clusters_needed=needed)
            if settings.simultaneous and tested > 1:
                together = 1.0 - (1.0 - settings.level) / tested
                wider = at_level(made.estimate, together)
                method = f"{wider.method}, simultaneous for {tested} pairs"
                made = replace(made, estimate=replace(wider, level=settings.level, method=method))
            table[place] = made


def _limits(metric: MetricSpecification, sides: Sequence[Columns], end: Any) -> DifferenceRange | None:
    """How large a difference can be; `end` is the metric's parameter, or the coverage at which it ends."""
    if not all(map(len, sides)):
        return None
    scales = [
        metric.scale_at(side, end) if metric.scale_at is not None else metric.scale(side) for side in sides
    ]
    if not all(scale.bounded for scale in scales):
        return None
    units = [scale.units for scale in scales if scale.units is not None]
    largest = 0.0 if all(scale.fixed for scale in scales) else max(scale.high - scale.low for scale in scales)
    return DifferenceRange(largest, min(units, default=None))


def _matched_pairs(
    works: Mapping[str, SystemWork], pairs: Sequence[Pair], metrics: Sequence[MetricSpecification]
) -> list[_MatchedPair]:
    """The pairs whose coverages differ, with the metrics that are compared at the coverage that both reach."""
    first = next(iter(works.values()))
    wanted = [metric for metric in metrics if metric.comparison == MATCHED and metric.matched is not None]
    if all(work.loss is not None for work in works.values()) and any(
        metric.comparison != MATCHED for metric in metrics
    ):
        # Metrics without a form at matched coverage are accompanied by the selective risk there.
        wanted.append(SELECTIVE_RISK)
    if not wanted:
        return []
    labels = (ALL, *(group.label for group in first.groups))
    rows: dict[tuple[str, str, str], Columns] = {}
    slots = [
        slot for slot in first.confidences if not any(work.rows(slot).unranked for work in works.values())
    ]
    for slot, label, (name, work) in itertools.product(slots or [ALL], labels, works.items()):
        rows[name, slot, label] = work.ranked_view(slot).rows(label)
    found = []
    for slot, label, pair in itertools.product(slots or [ALL], labels, pairs):
        sides = (rows[pair[0], slot, label], rows[pair[1], slot, label])
        if not all(side.answered.any() for side in sides):
            continue
        own_metrics = tuple(
            metric
            for metric in wanted
            if (slot or not metric.ranked)
            and not (metric is SELECTIVE_RISK and label)
            and not _same(*(end_coverage(metric, side) for side in sides))
            and all(metric.problem(side) is None for side in sides)
        )
        if own_metrics:
            found.append(
                _MatchedPair(pair, slot, label, own_metrics, sides, matched_statistic(*sides, own_metrics))
            )
    return found
