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
# The tests with exponential weights, which differ in the size of their pseudo-cluster.
CLUSTER_TESTS = ("pseudo-cluster", "gaffke")
# Numbers per block of steps in the test over clusters, which limits its memory.
_BLOCK = 1 << 18


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
        largest: the largest number of items that a cluster can have. Default: the largest in `asked`.
        risk_type: "selective" for the risk among answers, "joint" for the risk per item asked.
    """

    thresholds: Floats = field(repr=False)
    cluster_sums: ClusterSums = field(repr=False)
    asked: Floats = field(repr=False)
    independent: bool
    binary: bool
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
        return cls(thresholds, cluster_sums, asked, independent, binary, largest or largest_seen, risk_type)

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

    def p_values(self, method: str, risk: float, steps: range | None = None, repeats: float = 1.0) -> Floats:
        """Return the p-value of "the true risk is above `risk`" at each step or some of them, by a named test.

        `repeats` is the number of clusters relative to these, for the tests with exponential weights.
        """
        steps = range(len(self)) if steps is None else steps
        if method in CLUSTER_TESTS:
            return self.exponential_weights(risk, steps, repeats, finite_sample=method == "gaffke")
        p_values = self.binomial(risk) if method == "binomial" else self.hoeffding_bentkus(risk)
        return p_values[steps.start : steps.stop]

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

    def exponential_weights(
        self, risk: float, steps: range, repeats: float = 1.0, *, finite_sample: bool
    ) -> Floats:
        """Return the p-values of exponential weights over clusters, at some steps.

        The pseudo-cluster is as bad as clusters that were not drawn may be. For a finite-sample test, it has the
        largest possible size and is wholly wrong. Otherwise it exceeds the worst cluster by as much as that one exceeds
        the second worst, and each of them counts as at least one wrong answer. All p-values are 1 for a single cluster.
        """
        p_values = np.ones(len(steps))
        if self.cluster_sums.units < 2:
            return p_values
        for rows, excess in self._excess_by_cluster(risk, steps):
            if finite_sample:
                excess[:, -1] = self.largest * (1.0 - risk)
            else:
                second, worst = np.maximum(excess[:, -3:-1].T, 1.0 - risk)
                excess[:, -1] = 2.0 * worst - second
            p_values[rows] = _p_values.exponential_weights_p(excess, repeats)
        return np.where(self.count[steps.start : steps.stop] > 0, p_values, 1.0)

    def _excess_by_cluster(self, risk: float, steps: range) -> Iterator[tuple[slice, Floats]]:
        """Yield blocks of steps: their rows, and the loss of each cluster above the risk, with a last column of 0.

        The clusters of a step are in ascending order of this loss, so that their names cannot matter.
        """
        sums = self.cluster_sums
        ends = np.searchsorted(sums.key, np.arange(len(self) + 1))
        block = max(_BLOCK // sums.units, 1)
        answers, losses = np.zeros(sums.units), np.zeros(sums.units)
        begin = 0
        for first in range(0, len(steps), block):
            rows = slice(first, min(first + block, len(steps)))
            excess = np.zeros((rows.stop - first, sums.units + 1))
            for row, step in zip(excess, steps[rows], strict=True):
                cells = slice(ends[begin], ends[step + 1])
                begin = step + 1
                answers += total_by(sums.unit[cells], sums.sums[0, cells], sums.units)
                losses += total_by(sums.unit[cells], sums.sums[1, cells], sums.units)
                row[:-1] = losses - risk * (answers if self.risk_type == SELECTIVE else self.asked)
            excess[:, :-1].sort(axis=1)
            yield rows, excess
