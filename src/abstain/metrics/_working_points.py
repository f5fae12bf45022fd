"""The working points plan: both risks at fixed thresholds, for any batch of cluster weights.

A threshold that is fixed accepts the same rows in every resample, so its risks are ratios of two running sums.
Rungs between the thresholds asked for are collapsed into one, which changes nothing at the thresholds
themselves and makes a curve of a million rows as cheap as one of a hundred.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from abstain.metrics._ladder import Ladder

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Indices = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class WorkingPointsPlan:
    """Selective risk, then generalized risk, at every threshold; build one with `build`.

    >>> loss, confidence, cluster = np.array([0.0, 1.0, 1.0]), np.array([3.0, 2.0, 1.0]), np.array([0, 1, 1])
    >>> plan = WorkingPointsPlan.build(loss, confidence, np.array([True, True, True]), cluster, np.array([2.0, 1.0]))
    >>> plan(np.array([[1.0, 1.0], [2.0, 0.0]])).round(3)
    array([[0.5  , 0.667, 0.333, 0.667],
           [0.   , 0.   , 0.   , 0.   ]])
    """

    ladder: Ladder
    total: Floats
    names: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        places = range(self.ladder.rungs)
        risks = [f"{risk}[{place}]" for risk in ("selective_risk", "generalized_risk") for place in places]
        object.__setattr__(self, "names", tuple(risks))

    @classmethod
    def build(
        cls,
        loss: Floats,
        confidence: Floats,
        answered: NDArray[np.bool_],
        cluster: Indices,
        thresholds: Floats,
        weight: Floats | None = None,
    ) -> WorkingPointsPlan:
        """Collapse rows to the thresholds: confidences that occur, descending to the lowest."""
        clusters = int(cluster.max()) + 1
        # Ascending for the search; a row enters at the highest threshold that it reaches.
        rung = np.searchsorted(-thresholds, -confidence[answered]).astype(np.intp)
        weight = np.ones(len(loss)) if weight is None else weight
        return cls(
            ladder=Ladder.build(rung, cluster[answered], clusters, weight[answered], loss[answered]),
            total=np.bincount(cluster, weights=weight, minlength=clusters).astype(np.float64),
        )

    @property
    def clusters(self) -> int:
        """How many clusters a weight vector has."""
        return len(self.total)

    @property
    def width(self) -> int:
        """How many numbers one resample occupies while it is worked on."""
        return max(self.clusters, self.ladder.width)

    def __call__(self, weights: Floats) -> Floats:
        """Map weights (resamples, clusters) to risks (resamples, 2 * thresholds); NaN where nothing is accepted."""
        climb = self.ladder.climb(weights)
        count, risk_sum = climb.count[:, 1:], climb.risk_sum[:, 1:]
        selective = np.divide(risk_sum, count, out=np.full_like(count, np.nan), where=count > 0)
        return np.concatenate([selective, risk_sum / (weights @ self.total)[:, None]], axis=1)
