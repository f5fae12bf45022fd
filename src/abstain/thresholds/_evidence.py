"""Evidence: a ranked tally, read at the thresholds that may be promised.

A step is a threshold and everything that it answers. At each step are known: how many answers there are, their loss,
and what both are cluster by cluster, which is what the p-values need. Rows are summed once; any risk can be asked for
afterwards. What is not known here: which step is chosen.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from abstain.resampling import ClusterSums, keys_descending, total_by
from abstain.thresholds import _p_values

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Indices = NDArray[np.intp]

SELECTIVE, JOINT = "selective", "joint"
# How many clusters are played with at once: what a game occupies is this times thresholds and bets.
_BLOCK = 512


@dataclass(frozen=True, eq=False, slots=True)
class Steps:
    """The thresholds of some confidences, most confident first.

    Attributes:
        threshold: answered is what is at least this confident.
    """

    threshold: Floats

    def __repr__(self) -> str:
        return f"Steps({len(self.threshold)} thresholds)"

    def __len__(self) -> int:
        return len(self.threshold)

    @classmethod
    def of_confidences(
        cls, levels: Floats, counts: Floats, total: float, most: int | None
    ) -> tuple[Steps, Indices]:
        """Return the steps of distinct confidences, descending, at most so many, and the last level of each.

        A step lies strictly above the next confidence. With independent items whose confidences all differ, what lies
        above it is then a plain sample of what the policy will answer, so that the binomial stays exact although the
        threshold was read off the data; at the confidence itself, the least confident answer would not be.
        """
        reached = np.cumsum(counts)
        places = np.arange(len(levels), dtype=np.intp)
        if most is not None and len(levels) > most:
            wanted = np.arange(1, most + 1) * (total / most)
            places = np.unique(
                np.minimum(np.searchsorted(reached, np.minimum(wanted, reached[-1]) - 1e-9), len(levels) - 1)
            )
        after = np.minimum(places + 1, len(levels) - 1)
        here, below = levels[places], np.where(places < len(levels) - 1, levels[after], -np.inf)
        # Confidences that recur are levels that the source has, not chance: there the level itself is the threshold,
        # and so it is where nothing lies below.
        tied = (counts[places] > 1) | (counts[after] > 1) | np.isinf(below)
        return cls(np.where(tied, here, np.nextafter(below, np.inf))), places


def shortest_between(low: float, high: float) -> float:
    """Return the shortest decimal number above `low` and at most `high`, the largest of those.

    >>> shortest_between(0.8648, 0.8713), shortest_between(0.85, 0.9), shortest_between(-math.inf, 0.4123)
    (0.87, 0.9, 0.412)
    """
    if not math.isfinite(low):  # nothing lies below, and a thousandth less parts the same
        low = high - 1e-3 * abs(high)
    for digits in range(17):
        scale = 10.0**digits
        found = math.floor(high * scale) / scale
        if low < found <= high:
            return found
    return high


@dataclass(frozen=True, eq=False)
class RiskTable:
    """Sums at steps; build it with `of_rows` or `of_tally`.

    Attributes:
        steps: the thresholds.
        tally: counts and losses (and squared losses, where all rows are one unit) of what each step adds, by cluster.
        asked: how many items each cluster was asked, declined ones too.
        independent: True where every item is a cluster of its own.
        binary: True where every loss is 0 or 1.
        order: clusters in an order that knows nothing of their losses; as they are when left out.
        largest: the most items that a cluster can have.
        promise: "selective" for risk among what is answered, "joint" for risk per item asked.
    """

    steps: Steps
    tally: ClusterSums = field(repr=False)
    asked: Floats = field(repr=False)
    independent: bool
    binary: bool
    order: Indices | None = field(default=None, repr=False)
    largest: float = 1.0
    promise: str = SELECTIVE

    @classmethod
    def of_rows(
        cls,
        confidence: Floats,
        loss: Floats,
        *,
        cluster: Indices | None,
        asked: Floats,
        weight: Floats | None = None,
        most: int | None = 100,
        steps: Steps | None = None,
        order: Indices | None = None,
        largest: float | None = None,
        promise: str = SELECTIVE,
    ) -> RiskTable:
        """Sum answered rows.

        Args:
            confidence: of each answered row.
            loss: of each, in [0, 1].
            cluster: the number of each row's cluster; None where every row is one of its own.
            asked: how many items each cluster was asked; one number, for all, where there are no clusters.
            weight: how many rows each row stands for.
            most: how many steps there are at most; None for one per distinct confidence.
            steps: thresholds that were declared, or found on other data; else read off the confidences.
            order: the clusters in the order in which a player meets them.
            largest: the most items that a cluster can have; the most that one has, when left out.
            promise: which risk is meant.
        """
        if steps is None:
            rank, levels = keys_descending(confidence)
            counts = total_by(rank, weight, len(levels))
            steps, places = Steps.of_confidences(levels, counts, float(asked.sum()), most)
            key = rank if len(places) == len(levels) else np.searchsorted(places, rank).astype(np.intp)
        else:
            # Answered is what is at least as confident as a step; below the last one is a key of its own.
            key = np.searchsorted(-steps.threshold, -confidence, side="left").astype(np.intp)
        binary = bool(((loss == 0.0) | (loss == 1.0)).all())
        alone = cluster is None
        columns = [loss, loss if binary else loss**2] if alone else [loss]
        tally = ClusterSums.of_rows(
            unit=np.broadcast_to(np.intp(0), len(key)) if cluster is None else cluster,
            key=key,
            columns=columns,
            units=1 if alone else len(asked),
            keys=len(steps) + 1,
            weight=weight,
        )
        most_asked = 1.0 if alone else float(asked.max(initial=1.0))
        return cls(steps, tally, asked, alone, binary, order, largest or most_asked, promise)

    @classmethod
    def of_tally(
        cls,
        tally: ClusterSums,
        levels: Floats,
        asked: Floats,
        *,
        binary: bool,
        most: int | None = 100,
        order: Indices | None = None,
        largest: float | None = None,
        promise: str = SELECTIVE,
    ) -> RiskTable:
        """Read a ranked tally, whichever engine made it: counts and losses by cluster and confidence.

        Args:
            tally: the sums; key 0 is the highest confidence.
            levels: the confidence of each key, descending.
            asked: how many items each unit was asked.
            binary: True where every loss is 0 or 1.
            most: how many steps there are at most; None for one per confidence.
            order: the units in the order in which a player meets them.
            largest: the most items that a unit can have; the most that one has, when left out.
            promise: which risk is meant.
        """
        steps, places = Steps.of_confidences(
            levels, total_by(tally.key, tally.sums[0], len(levels)), float(asked.sum()), most
        )
        step = np.searchsorted(places, tally.key).astype(np.intp)
        cells, place = np.unique(step * tally.units + tally.unit, return_inverse=True)
        sums = np.stack([total_by(place, values, len(cells)) for values in tally.sums[:2]])
        merged = ClusterSums(cells % tally.units, cells // tally.units, sums, tally.units, len(steps) + 1)
        bound = largest or float(asked.max(initial=1.0))
        return cls(steps, merged, asked, False, binary, order, bound, promise)

    def __len__(self) -> int:
        return len(self.steps)

    @property
    def clusters(self) -> int:
        """How many clusters there are; items, where each is its own."""
        return round(self.items) if self.independent else len(self.asked)

    @property
    def items(self) -> float:
        """How many items were asked."""
        return float(self.asked.sum())

    @cached_property
    def _added(self) -> Floats:
        """What each step adds: counts, losses, and squared losses where all rows are one unit."""
        tally, steps = self.tally, len(self)
        if tally.units == 1:
            return tally.sums[:, :steps]
        return np.stack([total_by(tally.key, values, steps + 1)[:steps] for values in tally.sums])

    @cached_property
    def answered(self) -> Floats:
        """How many items each step answers."""
        return np.cumsum(self._added[0])

    @cached_property
    def loss(self) -> Floats:
        """The loss of what each step answers."""
        return np.cumsum(self._added[1])

    @property
    def coverage(self) -> Floats:
        """The share of items that each step answers."""
        return self.answered / self.items

    @property
    def count(self) -> Floats:
        """What the risk is counted over: answers, or items asked."""
        return self.answered if self.promise == SELECTIVE else np.full(len(self), self.items)

    @cached_property
    def risk(self) -> Floats:
        """The risk that was seen at each step; NaN where nothing is counted."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return self.loss / self.count

    @cached_property
    def _moments(self) -> tuple[Floats, Floats, Floats]:
        """Over clusters, the sums of squared loss, of loss times base, and of squared base, at each step.

        The base of a cluster is what its risk is counted over: its answers, or the items that it was asked.
        """
        steps = len(self)
        if self.independent:
            squares = np.cumsum(self._added[2])
            return squares, self.loss, self.count
        tally = self.tally
        ends = np.searchsorted(tally.key, np.arange(steps + 1))
        answers, losses = np.zeros(tally.units), np.zeros(tally.units)
        moments, total = np.zeros((3, steps)), np.zeros(3)
        joint = self.promise == JOINT
        if joint:
            total[2] = float(self.asked @ self.asked)
        for step in range(steps):
            cells = slice(ends[step], ends[step + 1])
            unit, more, loss = tally.unit[cells], tally.sums[0, cells], tally.sums[1, cells]
            had, lost = answers[unit], losses[unit]
            total[0] += float((2.0 * lost * loss + loss * loss).sum())
            if joint:
                total[1] += float((loss * self.asked[unit]).sum())
            else:
                total[1] += float((had * loss + more * lost + more * loss).sum())
                total[2] += float((2.0 * had * more + more * more).sum())
            # A cluster has one cell per step, so that nothing is added twice.
            answers[unit], losses[unit] = had + more, lost + loss
            moments[:, step] = total
        return moments[0], moments[1], moments[2]

    def spread(self, rate: float | Floats) -> Floats:
        """Return the sum over clusters of the squares of ``loss - rate * base``, at each step."""
        squares, mixed, bases = self._moments
        return np.maximum(squares - 2.0 * rate * mixed + rate**2 * bases, 0.0)

    @cached_property
    def design(self) -> Floats:
        """How many clustered answers are worth one independent one at each step; never fewer than one."""
        if self.independent:
            return np.ones(len(self))
        clusters = self.clusters
        with np.errstate(invalid="ignore", divide="ignore"):
            own = self.spread(self.risk) / (self.count * self.risk * (1.0 - self.risk))
        # Without an error, or with errors alone, it cannot be known.
        return np.fmax(own * clusters / max(clusters - 1, 1), 1.0)

    def standard_error(self) -> Floats:
        """Return the standard error of the risk at each step, over clusters."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.sqrt(self.design * self.risk * (1.0 - self.risk) / self.count)

    def binomial(self, risk: float) -> Floats:
        """Return the exact p-values of independent answers that are right or wrong."""
        return _p_values.binomial_p(np.rint(self.loss), np.rint(self.count), risk)

    def hoeffding_bentkus(self, risk: float) -> Floats:
        """Return the p-values of Hoeffding and Bentkus: over answers that are independent, else over clusters."""
        if self.independent:
            mean = np.nan_to_num(self.risk)
            return _p_values.hoeffding_bentkus_p(mean, np.rint(self.count), risk, binary=self.binary)
        mean = risk + (self.loss - risk * self.count) / (self.largest * self.clusters)
        return _p_values.hoeffding_bentkus_p(mean, np.full(len(self), self.clusters), risk)

    def cluster_t(self, risk: float, delta: float) -> Floats:
        """Return the p-values of Student's t over clusters, and of the answers that they are worth: the larger."""
        clusters = self.clusters
        student = _p_values.cluster_t_p(self.loss - risk * self.count, self.spread(risk), clusters)
        mean = np.nan_to_num(self.risk, nan=1.0)
        worth = _p_values.effective_binomial_p(mean, self.count, self.design, clusters, risk, delta)
        return np.where(self.count > 0, np.maximum(student, worth), 1.0)

    def betting(self, risk: float) -> Floats:
        """Return the p-values of a player who bets on cluster after cluster; finite-sample for any bounded loss."""
        best, state = np.zeros(len(self)), None
        for gains in self._gains(risk):
            best, state = _p_values.betting_wealth(gains, state)
        return np.where(self.count > 0, np.exp(-np.maximum(best, 0.0)), 1.0)

    def _gains(self, risk: float) -> Iterator[Floats]:
        """Yield, for blocks of clusters in their order, the largest bet times the risk less the cluster's loss."""
        bet, tally, steps = _p_values.largest_bet(risk), self.tally, len(self)
        units = tally.units
        order = np.arange(units) if self.order is None else self.order
        place = np.empty(units, np.intp)
        place[order] = np.arange(units)
        inside = tally.key < steps
        row, key = place[tally.unit[inside]], tally.key[inside]
        sums = tally.sums[:2, inside]
        by_row = np.argsort(row, kind="stable")
        row, key, sums = row[by_row], key[by_row], sums[:, by_row]
        for start in range(0, units, _BLOCK):
            stop = min(start + _BLOCK, units)
            cells = slice(*np.searchsorted(row, [start, stop]))
            block = np.zeros((2, stop - start, steps))
            block[:, row[cells] - start, key[cells]] = sums[:, cells]
            answers, losses = np.cumsum(block, axis=2)
            base = answers if self.promise == SELECTIVE else self.asked[order[start:stop], None]
            yield (bet / self.largest) * (risk * base - losses)
