"""One difference between two systems with its verdict in words, and a system's rank among others."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from abstain.inference import CANNOT_TELL, LEFT, decide, verdict_words

if TYPE_CHECKING:
    from abstain.inference import Estimate, MarginVerdict

__all__ = ["Difference", "Rank"]

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
        estimate: right - left, with its jackknife interval; the bootstrap's stands in ``estimate.percentile``.
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
        """The verdict in the words of a table whose columns are left and right."""
        if not self.compared:
            return f"not compared: {self.estimate.reason}" if self.estimate.reason else "not compared"
        return verdict_words(self.verdict, self.direction)

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
        kind = "higher" if self.direction == "neither" else "better"
        size = f"{abs(self.estimate.value):.3f} [{low:.3f}, {high:.3f}]"
        return f"{where}{winner} is {kind} than {loser} by {size}{self._against_margin()}"

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
