"""The reach plan: the largest coverage at which the selective risk keeps to a bound, for any batch of weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from abstain.metrics import _areas
from abstain.metrics._ladder import Ladder, rungs_descending

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Indices = NDArray[np.intp]


@dataclass(frozen=True, eq=False, slots=True)
class ReachPlan:
    """Rows ranked once by confidence; build one with `build`.

    >>> loss, confidence, rows = np.array([0.0, 0.0, 1.0, 1.0]), np.array([4.0, 3.0, 2.0, 1.0]), np.arange(4)
    >>> plan = ReachPlan.build("coverage_at_risk", loss, confidence, np.ones(4, bool), np.ones(4), rows, bound=0.34)
    >>> plan(np.array([[1.0, 1.0, 1.0, 1.0], [1.0, 0.0, 1.0, 2.0]]))
    array([[0.75],
           [0.25]])
    """

    names: tuple[str, ...]
    ladder: Ladder
    total: Floats
    bound: float

    @classmethod
    def build(
        cls,
        name: str,
        loss: Floats,
        confidence: Floats,
        answered: NDArray[np.bool_],
        weight: Floats,
        cluster: Indices,
        *,
        bound: float,
    ) -> ReachPlan:
        """Rank the answered rows; coverage is measured against all rows."""
        clusters = int(cluster.max()) + 1
        ladder = Ladder.build(
            rungs_descending(confidence[answered]),
            cluster[answered],
            clusters,
            weight[answered],
            loss[answered],
        )
        total = np.bincount(cluster, weights=weight, minlength=clusters).astype(np.float64)
        return cls((name,), ladder, total, bound)

    @property
    def clusters(self) -> int:
        """How many clusters a weight vector has."""
        return len(self.total)

    @property
    def width(self) -> int:
        """How many numbers one resample occupies while it is worked on."""
        return max(self.clusters, self.ladder.width)

    def __call__(self, weights: Floats) -> Floats:
        """Map weights (resamples, clusters) to values (resamples, 1); 0 where no working point keeps to the bound."""
        climb = self.ladder.climb(weights)
        total = weights @ self.total
        within = _areas.selective_risk(climb) <= self.bound + _areas.TOLERANCE
        reached = np.max(np.where(within, climb.count, 0.0), axis=1, initial=0.0)
        return np.divide(reached, total, out=np.full(len(total), np.nan), where=total > 0)[:, None]
