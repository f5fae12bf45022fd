"""The AUROC plan: how often a positive row outranks a negative one, for any batch of cluster weights.

Rows climb one ladder by score; at each rung the positives stand above all negatives of the rungs below and
beside those of their own, which count half. One pass over the running sums gives the area of every resample.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from abstain.metrics._ladder import Ladder, rungs_ascending

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Indices = NDArray[np.intp]


@dataclass(frozen=True, eq=False, slots=True)
class AurocPlan:
    """Rows ranked once by score; build one with `build`.

    >>> rows = np.array([1.0, 0.0, 1.0]), np.array([0.9, 0.4, 0.4]), np.ones(3), np.array([0, 1, 2])
    >>> AurocPlan.build("auroc", *rows)(np.array([[1.0, 1.0, 1.0], [0.0, 2.0, 1.0]]))
    array([[0.75],
           [0.5 ]])
    """

    names: tuple[str, ...]
    ladder: Ladder
    clusters: int

    @classmethod
    def build(cls, name: str, positive: Floats, score: Floats, weight: Floats, cluster: Indices) -> AurocPlan:
        """Rank rows; `positive` is 1 or 0, `cluster` numbers clusters from 0 without a gap."""
        clusters = int(cluster.max()) + 1
        ladder = Ladder.build(rungs_ascending(score), cluster, clusters, weight, positive)
        return cls((name,), ladder, clusters)

    @property
    def width(self) -> int:
        """How many numbers one resample occupies while it is worked on."""
        return max(self.clusters, self.ladder.width)

    def __call__(self, weights: Floats) -> Floats:
        """Map weights (resamples, clusters) to values (resamples, 1); NaN where one kind of row is missing."""
        climb = self.ladder.climb(weights)
        positives = np.diff(climb.risk_sum, axis=1, prepend=0.0)
        below = climb.count - climb.risk_sum
        own = np.diff(below, axis=1, prepend=0.0)
        wins = np.einsum("rp,rp->r", positives, below - 0.5 * own)
        total = climb.last_risk_sum
        pairs = total * (climb.last_count - total)
        return np.divide(wins, pairs, out=np.full(len(weights), np.nan), where=pairs > 0)[:, None]
