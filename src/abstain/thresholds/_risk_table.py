"""The risk table: answers, losses and p-values at every candidate threshold.

A step is a candidate threshold together with all items that it answers. Steps run from the most confident answers to
all of them. Rows are summed once by cluster and step; afterwards every risk limit can be tested. `_selection` decides
which step is chosen.
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

    from abstain._types import Floats, Indices


SELECTIVE, JOINT = "selective", "joint"
# Clusters per block in the betting test: memory grows with this number times thresholds and bets.
_BLOCK = 512


def thresholds_between(
    levels: Floats, counts: Floats, total: float, most: int | None
) -> tuple[Floats, Indices]:
    """Return at most `most` thresholds for distinct confidences, descending, and the last level that each answers.

    A threshold lies strictly above the next confidence. If items are independent and all confidences differ, the
    answers above it are then a plain sample of what the policy will answer, and the binomial test stays exact although
    the threshold was read from the data. At the confidence itself, the least confident answer would not be one.
    """
    reached = np.cumsum(counts)
    last = np.arange(len(levels), dtype=np.intp)
    if most is not None and len(levels) > most:
        wanted = np.arange(1, most + 1) * (total / most)
        last = np.unique(
            np.minimum(np.searchsorted(reached, np.minimum(wanted, reached[-1]) - 1e-9), len(levels) - 1)
        )
    after = np.minimum(last + 1, len(levels) - 1)
    here, below = levels[last], np.where(last < len(levels) - 1, levels[after], -np.inf)
    # Repeated confidences are discrete levels of the source, so the level itself is the threshold. The same holds for
    # the lowest level.
    tied = (counts[last] > 1) | (counts[after] > 1) | np.isinf(below)
    return np.where(tied, here, np.nextafter(below, np.inf)), last


def shortest_between(low: float, high: float) -> float:
    """Return the decimal number in (low, high] with the fewest digits; the largest of those.

    >>> shortest_between(0.8648, 0.8713), shortest_between(0.85, 0.9), shortest_between(-math.inf, 0.4123)
    (0.87, 0.9, 0.412)
    """
    if not math.isfinite(low):  # no confidence lies below, so a thousandth less separates the same answers
        low = high - 1e-3 * abs(high)
    for digits in range(17):
        scale = 10.0**digits
        rounded = math.floor(high * scale) / scale
        if low < rounded <= high:
            return rounded
    return high


@dataclass(frozen=True, eq=False)
class RiskTable:
    """Sums at every step; build it with `of_rows`.

    Attributes:
        thresholds: one per step, descending; items with at least this confidence are answered.
        cluster_sums: counts and losses that each step adds, by cluster; also squared losses if items are independent.
        asked: number of items of each cluster, including declined ones; if items are independent, one total.
        independent: True if every item is its own cluster.
        binary: True if every loss is 0 or 1.
        order: order of the clusters in the betting test, which must not depend on losses. Default: as they are.
        largest: the largest number of items that a cluster can have. Default: the largest in `asked`.
        risk_type: "selective" for the risk among answers, "joint" for the risk per item asked.
    """

    thresholds: Floats = field(repr=False)
    cluster_sums: ClusterSums = field(repr=False)
    asked: Floats = field(repr=False)
    independent: bool
    binary: bool
    order: Indices | None = field(default=None, repr=False)
    largest: float = 1.0
    risk_type: str = SELECTIVE

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
        thresholds: Floats | None = None,
        order: Indices | None = None,
        largest: float | None = None,
        risk_type: str = SELECTIVE,
    ) -> RiskTable:
        """Sum answered rows, whose losses lie in [0, 1]; a weight is the number of items that a row represents.

        Without `thresholds`, which are descending, they are read from the confidences: at most `most` of them, None for
        one per distinct confidence. Pass no `cluster` if items are independent. The other arguments are attributes.
        """
        if thresholds is None:
            rank, levels = keys_descending(confidence)
            counts = total_by(rank, weight, len(levels))
            thresholds, last = thresholds_between(levels, counts, float(asked.sum()), most)
            key = rank if len(last) == len(levels) else np.searchsorted(last, rank).astype(np.intp)
        else:
            # Rows below the last threshold get one additional key.
            key = np.searchsorted(-thresholds, -confidence, side="left").astype(np.intp)
        binary = bool(((loss == 0.0) | (loss == 1.0)).all())
        independent = cluster is None
        cluster_sums = ClusterSums.of_rows(
            unit=np.broadcast_to(np.intp(0), len(key)) if cluster is None else cluster,
            key=key,
            columns=[loss, loss if binary else loss**2] if independent else [loss],
            units=1 if independent else len(asked),
            keys=len(thresholds) + 1,
            weight=weight,
        )
        largest_seen = 1.0 if independent else float(asked.max(initial=1.0))
        return cls(
            thresholds, cluster_sums, asked, independent, binary, order, largest or largest_seen, risk_type
        )

    def __len__(self) -> int:
        return len(self.thresholds)

    @property
    def clusters(self) -> int:
        """Number of clusters; of items if they are independent."""
        return round(self.items) if self.independent else len(self.asked)

    @property
    def items(self) -> float:
        """Number of items, including declined ones."""
        return float(self.asked.sum())

    @cached_property
    def _added(self) -> Floats:
        """Counts, losses and, if items are independent, squared losses that each step adds."""
        sums, steps = self.cluster_sums, len(self)
        if sums.units == 1:
            return sums.sums[:, :steps]
        return np.stack([total_by(sums.key, values, steps + 1)[:steps] for values in sums.sums])

    @cached_property
    def answered(self) -> Floats:
        """Number of items that each step answers."""
        return np.cumsum(self._added[0])

    @cached_property
    def loss(self) -> Floats:
        """Total loss of the answers of each step."""
        return np.cumsum(self._added[1])

    @property
    def coverage(self) -> Floats:
        """Proportion of items that each step answers."""
        return self.answered / self.items

    @property
    def count(self) -> Floats:
        """Denominator of the risk: answers, or all items for the joint risk."""
        return self.answered if self.risk_type == SELECTIVE else np.full(len(self), self.items)

    @cached_property
    def risk(self) -> Floats:
        """Observed risk at each step; NaN if the denominator is 0."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return self.loss / self.count

    @cached_property
    def _moments(self) -> tuple[Floats, Floats, Floats]:
        """Sums over clusters of loss², loss × base and base², at each step.

        The base of a cluster is the denominator of its risk: its answers, or all its items for the joint risk.
        """
        steps = len(self)
        if self.independent:
            return np.cumsum(self._added[2]), self.loss, self.count
        sums = self.cluster_sums
        ends = np.searchsorted(sums.key, np.arange(steps + 1))
        answers, losses = np.zeros(sums.units), np.zeros(sums.units)
        moments, total = np.zeros((3, steps)), np.zeros(3)
        joint = self.risk_type == JOINT
        if joint:
            total[2] = float(self.asked @ self.asked)
        for step in range(steps):
            cells = slice(ends[step], ends[step + 1])
            unit, added_answers, added_loss = sums.unit[cells], sums.sums[0, cells], sums.sums[1, cells]
            old_answers, old_loss = answers[unit], losses[unit]
            total[0] += float((2.0 * old_loss * added_loss + added_loss * added_loss).sum())
            if joint:
                total[1] += float((added_loss * self.asked[unit]).sum())
            else:
                total[1] += float(
                    (old_answers * added_loss + added_answers * old_loss + added_answers * added_loss).sum()
                )
                total[2] += float((2.0 * old_answers * added_answers + added_answers * added_answers).sum())
            # A cluster has at most one cell per step, so plain indexing adds every cell.
            answers[unit], losses[unit] = old_answers + added_answers, old_loss + added_loss
            moments[:, step] = total
        return moments[0], moments[1], moments[2]

    def spread(self, rate: float | Floats) -> Floats:
        """Return the sum over clusters of ``(loss - rate * base)²`` at each step."""
        squared_loss, mixed, squared_base = self._moments
        return np.maximum(squared_loss - 2.0 * rate * mixed + rate**2 * squared_base, 0.0)

    @cached_property
    def design(self) -> Floats:
        """Design effect at each step, at least 1: how many clustered answers are worth one independent answer."""
        if self.independent:
            return np.ones(len(self))
        clusters = self.clusters
        with np.errstate(invalid="ignore", divide="ignore"):
            ratio = self.spread(self.risk) / (self.count * self.risk * (1.0 - self.risk))
        # The ratio is NaN, and 1 is used, if no answer or every answer is wrong.
        return np.fmax(ratio * clusters / max(clusters - 1, 1), 1.0)

    def standard_error(self) -> Floats:
        """Return the standard error of the risk over clusters, at each step."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.sqrt(self.design * self.risk * (1.0 - self.risk) / self.count)

    def p_values(self, method: str, risk: float, delta: float) -> Floats:
        """Return the p-value of "the true risk is above `risk`" at each step, by a named test."""
        if method == "binomial":
            return self.binomial(risk)
        if method == "cluster-t":
            return self.cluster_t(risk, delta)
        if method == "betting":
            return self.betting(risk)
        return self.hoeffding_bentkus(risk)

    def binomial(self, risk: float) -> Floats:
        """Return exact p-values for independent answers with loss 0 or 1."""
        return _p_values.binomial_p(np.rint(self.loss), np.rint(self.count), risk)

    def hoeffding_bentkus(self, risk: float) -> Floats:
        """Return Hoeffding-Bentkus p-values, over items if they are independent, otherwise over clusters."""
        if self.independent:
            mean = np.nan_to_num(self.risk)
            return _p_values.hoeffding_bentkus_p(mean, np.rint(self.count), risk, binary=self.binary)
        mean = risk + (self.loss - risk * self.count) / (self.largest * self.clusters)
        return _p_values.hoeffding_bentkus_p(mean, np.full(len(self), self.clusters), risk)

    def cluster_t(self, risk: float, delta: float) -> Floats:
        """Return the larger p-value of Student's t over clusters and the binomial with the effective sample size."""
        clusters = self.clusters
        student = _p_values.cluster_t_p(self.loss - risk * self.count, self.spread(risk), clusters)
        mean = np.nan_to_num(self.risk, nan=1.0)
        effective = _p_values.effective_binomial_p(mean, self.count, self.design, clusters, risk, delta)
        return np.where(self.count > 0, np.maximum(student, effective), 1.0)

    def betting(self, risk: float) -> Floats:
        """Return the p-values of bets on one cluster after another: finite-sample for any bounded loss."""
        log_wealth, state = np.zeros(len(self)), None
        for gains in self._betting_gains(risk):
            log_wealth, state = _p_values.betting_wealth(gains, state)
        return np.where(self.count > 0, np.exp(-np.maximum(log_wealth, 0.0)), 1.0)

    def _betting_gains(self, risk: float) -> Iterator[Floats]:
        """Yield, for blocks of clusters in `order`, the largest bet times (risk - loss of the cluster)."""
        sums, steps = self.cluster_sums, len(self)
        # A bet must not lose more than the wealth: ``1 + bet * (risk - loss) >= 0`` for losses up to 1.
        largest_bet = 1.0 / (1.0 - risk)
        order = np.arange(sums.units) if self.order is None else self.order
        position = np.empty(sums.units, np.intp)
        position[order] = np.arange(sums.units)
        inside = sums.key < steps
        row, key = position[sums.unit[inside]], sums.key[inside]
        cell_sums = sums.sums[:2, inside]
        by_row = np.argsort(row, kind="stable")
        row, key, cell_sums = row[by_row], key[by_row], cell_sums[:, by_row]
        for start in range(0, sums.units, _BLOCK):
            stop = min(start + _BLOCK, sums.units)
            cells = slice(*np.searchsorted(row, [start, stop]))
            block = np.zeros((2, stop - start, steps))
            block[:, row[cells] - start, key[cells]] = cell_sums[:, cells]
            answers, losses = np.cumsum(block, axis=2)
            base = answers if self.risk_type == SELECTIVE else self.asked[order[start:stop], None]
            yield (largest_bet / self.largest) * (risk * base - losses)
