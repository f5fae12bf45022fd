"""The difference of two systems by one metric: its verdict, its sentences, and the ranks and headlines that follow.

A system that declines more items must not look better because of it. How a metric treats declined items (see
`MetricSpecification.comparison`) determines how two systems are compared:

- "penalized": by the difference over all items.
- "matched": by the difference at the largest coverage that both reach. The difference over the whole curve is computed,
  too, but has no verdict if the coverages differ.
- "conditional": by the difference over the answered items of each. Its sentence names both coverages, and there is no
  rank if they differ.
- "undirected": a difference without a winner.

Ranks, headlines, sentences and gates all come from the differences that `deciding` returns.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from abstain.evaluation._metric_tables import ALL, Key
from abstain.inference import INCONCLUSIVE, LEFT, RIGHT, decide
from abstain.metrics.registry import CONDITIONAL, MATCHED, UNDIRECTED, metric_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from abstain.inference import Estimate, MarginVerdict

    Pair = tuple[str, str]

# A larger multiple of the present number of clusters is not printed as a number.
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
        right_coverage: the same for the right system.
        estimate: right - left, with its interval; the bootstrap's is in ``estimate.percentile``.
        matched: True if both values are at the largest coverage that both systems reach.
        coverage: the coverage of both values; NaN if it is not the same for both, or if the metric is over all items.
        p: two-sided p-value; NaN if there is none, and then ``estimate.reason`` is the reason.
        p_adjusted: the same after Holm's correction within its family; NaN if there is no verdict.
        family: number of pairs of systems that the correction is for: those of one metric, confidence and group.
        clusters_needed: if the verdict is inconclusive, the total number of clusters needed to detect a difference as
            large as the margin with a power of 80%. Without a margin it is for the observed difference, which is not a
            plan for a study. NaN otherwise.
        margin: the verdict against the smallest difference that would matter, if a margin was passed.
        cluster_noun: the noun for a cluster.
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
        """The basis of both values: "matched coverage", "all items", "answered items" or "own coverages"."""
        if self.comparison == MATCHED:
            return OWN_COVERAGES if math.isnan(self.coverage) else MATCHED_COVERAGE
        return ANSWERED_ITEMS if self.comparison == CONDITIONAL else ALL_ITEMS

    @property
    def no_verdict(self) -> str:
        """Why there is no verdict; empty if there is one, even an inconclusive one."""
        if self.comparison == UNDIRECTED:
            return (
                "no direction is better"
                if self.direction == "neither"
                else "declining more items improves it"
            )
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
        """The number of clusters needed in addition to the present ones (see `clusters_needed`); NaN if unknown."""
        return self.clusters_needed - self.estimate.clusters

    @property
    def where(self) -> str:
        """The coverage, if a matched metric has two differences: at matched coverage and over whole curves."""
        if self.matched:
            return f"at coverage {self.coverage:.2f}"
        return "over whole curves" if self.basis == OWN_COVERAGES else ""

    @property
    def label(self) -> str:
        """The metric with the coverage of both values, for the rows of a table."""
        return f"{self.metric} at {self.coverage:.2f}" if self.matched else self.metric

    @property
    def conclusion(self) -> str:
        """The verdict in a few words, for a table: which system is better, by name."""
        if not self.compared:
            return f"not compared: {self.estimate.reason}" if self.estimate.reason else "not compared"
        if self.no_verdict:
            return "not comparable" if self.basis == OWN_COVERAGES else "no winner"
        return INCONCLUSIVE if self.winner is None else f"{self.winner} is better"

    @property
    def sentence(self) -> str:
        """The finding as a sentence that names the metric and its basis."""
        return f"{self.subject()}: {self.finding}"

    def subject(self, *, confidence: bool = False) -> str:
        """Return the beginning of the sentence: the metric, the group and the basis."""
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
            if not same_coverage(self.left_coverage, self.right_coverage):
                parts.append(f"(coverages {self._coverages})")
        return " ".join(parts)

    @property
    def finding(self) -> str:
        """The rest of the sentence: which system is better, by how much, or why that is inconclusive."""
        if not self.compared and self.estimate.defined and not self.estimate.reason:
            difference = f"{self.right} - {self.left} = {self.estimate}"
            return f"no verdict without a confidence interval, {difference}"
        if not self.compared:
            return f"cannot compare {self.left} and {self.right}: {self.estimate.reason}"
        if self.basis == OWN_COVERAGES:
            return f"not comparable, {self.right} - {self.left} = {self.estimate}"
        # Without a verdict, the sentence names the side that is higher.
        side = self.verdict or decide(self.estimate, "neither", self.p)
        if side == INCONCLUSIVE:
            difference = f"{INCONCLUSIVE}, {self.right} - {self.left} = {self.estimate}"
            return f"{difference}{self._against_margin()}{self._clusters_for_margin()}"
        first, second = (self.left, self.right) if side == LEFT else (self.right, self.left)
        size = self.estimate if self.estimate.value >= 0.0 else self.estimate.turned
        kind = "higher" if self.no_verdict else "better"
        return f"{first} is {kind} than {second} by {size}{self._against_margin()}"

    @property
    def _coverages(self) -> str:
        """Both coverages, with enough digits to show that they differ."""
        digits = 2
        while digits < 6 and f"{self.left_coverage:.{digits}f}" == f"{self.right_coverage:.{digits}f}":
            digits += 1
        return f"{self.left_coverage:.{digits}f} and {self.right_coverage:.{digits}f}"

    def _against_margin(self) -> str:
        """The verdict against the margin: equivalent, or one system is not worse than the other by more than it."""
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

    def _clusters_for_margin(self) -> str:
        """The number of further clusters needed to detect the margin; empty without one.

        Power at the observed difference would only restate the p-value, so nothing is printed for it.
        """
        more, noun = self.more_clusters, f"{self.cluster_noun}s"
        if self.margin is None or self.margin.equivalent or not more > 0.0:
            return ""
        many = f"more than {_MANY_TIMES} times as many"
        if self.clusters_needed <= _MANY_TIMES * self.estimate.clusters:
            many = f"about {_round_up(more):,} more"
        return f"; {many} {noun} are needed to detect a difference of {self.margin.margin:g}"


def _round_up(count: float) -> int:
    """Return a number of clusters rounded up to two digits, because it is only approximate."""
    rounded_up = math.ceil(max(count, 1.0))
    step = 10 ** max(len(str(rounded_up)) - 2, 0)
    return math.ceil(rounded_up / step) * step


def _capitalized(text: str) -> str:
    return text if text.startswith("e-") else text[:1].upper() + text[1:]


def same_coverage(*coverages: float) -> bool:
    """Return whether coverages differ by no more than rounding."""
    return not coverages or not max(coverages) - min(coverages) > _SAME_COVERAGE


def deciding(
    differences: Iterable[Difference], metric: str, confidence: str = ALL, group: str = ALL
) -> dict[Pair, Difference]:
    """Return, for every pair of systems, the difference that its verdict comes from.

    It is at matched coverage if the coverages of a matched metric differ, and otherwise over all items. A metric that
    needs no confidence has one difference at matched coverage per confidence. Default: that of the first confidence.
    """
    by_pair: dict[Pair, Difference] = {}
    for each in differences:
        named = not confidence or not each.confidence or each.confidence == confidence
        if (each.metric, each.group) == (metric, group) and named and not each.no_verdict:
            by_pair.setdefault((each.left, each.right), each)
    return by_pair


def cycles(names: Sequence[str], decided: Iterable[Difference]) -> list[list[str]]:
    """Return the systems that beat each other in a cycle, one list per cycle.

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
    of_each = [[other for other in names if other in below[name] and name in below[other]] for name in names]
    return [list(cycle) for cycle in dict.fromkeys(map(tuple, of_each)) if cycle]


def _reached(start: str, beaten: Mapping[str, set[str]]) -> set[str]:
    """Return every system that a system beats, directly or through others that it beats."""
    reached: set[str] = set()
    to_follow = [start]
    while to_follow:
        for name in beaten[to_follow.pop()] - reached:
            reached.add(name)
            to_follow.append(name)
    return reached


def rank(name: str, names: Sequence[str], decided: Sequence[Difference]) -> Rank | None:
    """Return the range of ranks of a system among `names`; None if it is in a cycle."""
    if any(name in cycle for cycle in cycles(names, decided)):
        return None
    winners = [each.winner for each in decided if each.winner is not None and name in (each.left, each.right)]
    return Rank(1 + sum(winner != name for winner in winners), len(names) - winners.count(name))


@dataclass(frozen=True, eq=False, slots=True)
class Headline:
    """The conclusion of a comparison: by the first requested metric that has a direction, over all items.

    Attributes:
        metric: the metric.
        basis: the basis of both values: "matched coverage", "all items" or "answered items".
        coverage: the coverage of both systems at matched coverage; NaN otherwise, and if it differs between pairs.
        winner: the system that beats every other one; None if there is none.
        difference: the second system of the pair minus the first. With more than two systems: the winner's smallest
            lead, and NaN if there is no winner.
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
    """Return the headline of a comparison by one metric; None if no pair has a verdict by it."""
    decided = list(deciding(differences, key.metric, key.confidence).values())
    if not decided:
        return None
    wins = {name: [each for each in decided if each.winner == name] for name in names}
    winner = next((name for name in names if len(wins[name]) == len(names) - 1), None)
    name, bases = _capitalized(metric_name(key.metric)), {each.basis for each in decided}
    basis = bases.pop() if len(bases) == 1 else MATCHED_COVERAGE
    if len(names) == 2:
        (shown,), sentence = decided, decided[0].sentence
    elif winner is None:
        sentence = f"{name}: no system is shown to be better than every other one"
        return Headline(key.metric, basis, math.nan, None, math.nan, math.nan, math.nan, sentence)
    else:
        shown = min(wins[winner], key=lambda each: abs(each.estimate.value))
        sentence = f"{name}: {winner} is better than every other system. Smallest lead: {shown.sentence}"
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
