"""What a comparison of systems gives back: every system's numbers and ranks, every difference and its verdict."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from abstain import _validate
from abstain.errors import ArgumentError
from abstain.evaluation._shown import Shown

if TYPE_CHECKING:
    from collections.abc import Mapping

    from abstain.evaluation._matching import Matching
    from abstain.evaluation._results import Caution
    from abstain.inference import Estimate
    from abstain.metrics.registry import MetricSpecification

__all__ = ["Rank", "SystemDifference", "SystemResult", "SystemsComparison", "SystemsSettings"]

# A count of clusters beyond this says no more than "very many".
_VERY_MANY = 1_000_000


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
class SystemResult:
    """One system over the compared items.

    Attributes:
        name: what it is called in the comparison.
        items: how many items are compared.
        answered: how many of them it answered.
        coverage: answered / items.
        confidence: the confidence that ranks its answers; empty where none is needed.
        estimates: the metrics.
        ranks: by metric; None for a metric without a better direction, an undefined value, or nothing answered.
        provenance: where its items came from.
    """

    name: str
    items: int
    answered: int
    coverage: Estimate
    confidence: str
    estimates: Mapping[str, Estimate]
    ranks: Mapping[str, Rank | None]
    provenance: Mapping[str, object]


@dataclass(frozen=True, eq=False, slots=True)
class SystemDifference:
    """How two systems differ by one metric, right - left.

    Attributes:
        metric: the metric; at matched coverage "aurc", "augrc", or "risk" for the selective risk.
        direction: "higher" or "lower" where that is better, "neither" where it depends.
        left: one system.
        right: the other.
        left_value: the metric there.
        right_value: the metric here.
        difference: right - left, with the same draws on both sides.
        coverage: the coverage that both reach, where they are compared at it; NaN where over all items.
        p: two-sided p-value; NaN where there is none, and then `difference.reason` says why.
        p_adjusted: the same after Holm's correction for all differences of the comparison.
        alpha: the significance level that `p_adjusted` is held against.
        clusters_needed: where it cannot be told: how many clusters in all would tell it; NaN otherwise.
        margin: the smallest difference that matters, where one was named; NaN otherwise.
        cluster_noun: what a cluster is called.
    """

    metric: str
    direction: str
    left: str
    right: str
    left_value: float
    right_value: float
    difference: Estimate
    coverage: float
    p: float
    p_adjusted: float
    alpha: float
    clusters_needed: float
    margin: float
    cluster_noun: str

    @property
    def matched(self) -> bool:
        """True where the systems are compared at a coverage that both reach."""
        return not math.isnan(self.coverage)

    @property
    def told(self) -> bool:
        """True where the difference can be told from none."""
        return self.p_adjusted <= self.alpha

    @property
    def winner(self) -> str | None:
        """The better system (the higher one where no direction is better), or None where it cannot be told."""
        if not self.told:
            return None
        return self.right if (self.difference.value > 0.0) == (self.direction != "lower") else self.left

    @property
    def more_clusters(self) -> float:
        """How many clusters beyond those there are would tell the difference; NaN where it is told already."""
        return self.clusters_needed - self.difference.clusters

    @property
    def words(self) -> str:
        """The verdict as a sentence."""
        where = f"at coverage {self.coverage:.2f}, " if self.matched else ""
        if math.isnan(self.p):
            return f"{where}cannot compare {self.left} and {self.right}: {self.difference.reason}"
        winner = self.winner
        if winner is None:
            return f"{where}cannot tell {self.left} and {self.right} apart{self._what_would()}"
        loser = self.left if winner == self.right else self.right
        low, high = self.difference.low, self.difference.high
        if self.difference.value < 0.0:
            low, high = -high, -low
        kind = "higher" if self.direction == "neither" else "better"
        size = f"{abs(self.difference.value):.3f} [{low:.3f}, {high:.3f}]"
        return f"{where}{winner} is {kind} than {loser} by {size}"

    def _what_would(self) -> str:
        more, noun = self.more_clusters, f"{self.cluster_noun}s"
        if math.isnan(more):
            return ""
        if not math.isnan(self.margin) and more <= 0.0:
            return f", though a difference of {self.margin:g} would have shown"
        if math.isinf(more):
            return "; they do not differ here"
        if more > _VERY_MANY:
            return f"; more than a million more {noun} would"
        return f"; about {_rounded(max(more, 1.0)):,} more {noun} would"


@dataclass(frozen=True, slots=True)
class SystemsSettings:
    """What was asked for: the same settings on the same items give the same numbers."""

    resamples: int
    seed: int
    level: float
    margin: float | None
    reference: str | None


@dataclass(frozen=True, eq=False, slots=True)
class SystemsComparison(Shown):
    """The result of `compare_systems`.

    Attributes:
        systems: each system, by name.
        metrics: what each metric is.
        differences: every pair and metric; those at matched coverage after those over all items.
        matching: which items the comparison rests on.
        settings: what was asked for.
        loss: the name of the loss, or empty where none is needed.
        cautions: what the reader must know.
        cluster_noun: what a cluster is called.
    """

    systems: Mapping[str, SystemResult]
    metrics: Mapping[str, MetricSpecification]
    differences: tuple[SystemDifference, ...]
    matching: Matching
    settings: SystemsSettings
    loss: str
    cautions: tuple[Caution, ...]
    cluster_noun: str = "cluster"

    def difference(
        self, left: str, right: str, metric: str | None = None, *, matched: bool = False
    ) -> SystemDifference:
        """Return one difference; the metric may be left out where there is one alone."""
        for name in (left, right):
            _validate.choice(name, "system", self.systems)
        wanted = next(iter(self.metrics)) if metric is None else metric
        found = [
            each
            for each in self.differences
            if {each.left, each.right} == {left, right} and each.matched == matched and each.metric == wanted
        ]
        if not found:
            where = " at matched coverage" if matched else ""
            raise ArgumentError(f"{left} and {right} were not compared by {wanted}{where}")
        return found[0]

    @property
    def tested(self) -> int:
        """How many differences have a p-value: the family that Holm's correction is for."""
        return sum(not math.isnan(each.p) for each in self.differences)

    @property
    def words(self) -> tuple[str, ...]:
        """Every verdict as a sentence, with its metric where there are several."""
        several = len(self.metrics) > 1
        return tuple(f"{each.metric}: {each.words}" if several else each.words for each in self.differences)

    def __repr__(self) -> str:
        head = f"Comparison of {len(self.systems)} systems over {self.matching.judged} items"
        return "\n".join([head, *(f"  {sentence}" for sentence in self.words)])


def _rounded(count: float) -> int:
    """Two figures are all that a forecast deserves; rounded up, so that it does not promise too much."""
    whole = math.ceil(count)
    step = 10 ** max(len(str(whole)) - 2, 0)
    return math.ceil(whole / step) * step
