"""The sums plan: metrics that are functions of weighted sums over rows, such as ratios of two of them.

Each row brings a few numbers; they are summed once within every cluster, so that a weight vector costs one
small matrix product, however many rows there are. `finish` turns the totals into metrics: most are ratios,
see `ratios`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False, slots=True)
class SumsPlan:
    """Sums by cluster and what to make of their totals; build one with `build`.

    >>> plan = SumsPlan.build(("accuracy",), np.array([[1.0, 1.0], [0.0, 1.0]]), np.array([0, 1]), ratios)
    >>> plan(np.array([[1.0, 1.0], [2.0, 0.0]]))
    array([[0.5],
           [1. ]])
    """

    names: tuple[str, ...]
    sums: Floats
    finish: Callable[[Floats], Floats]

    @classmethod
    def build(
        cls,
        names: tuple[str, ...],
        columns: Floats,
        cluster: NDArray[np.intp],
        finish: Callable[[Floats], Floats],
        *,
        weight: Floats | None = None,
    ) -> SumsPlan:
        """Sum the columns (rows, sums) within clusters, which are numbered from 0 without a gap."""
        clusters = int(cluster.max()) + 1 if len(cluster) else 1
        weighted = columns if weight is None else columns * weight[:, None]
        sums = np.stack(
            [np.bincount(cluster, weights=column, minlength=clusters) for column in weighted.T], axis=1
        )
        return cls(names, sums.astype(np.float64), finish)

    @property
    def clusters(self) -> int:
        """How many clusters a weight vector has."""
        return len(self.sums)

    @property
    def width(self) -> int:
        """How many numbers one resample occupies while it is worked on."""
        return max(self.sums.shape)

    def __call__(self, weights: Floats) -> Floats:
        """Map weights (resamples, clusters) to values (resamples, metrics); NaN where a metric is undefined."""
        return self.finish(weights @ self.sums)


def ratios(totals: Floats) -> Floats:
    """Divide the first half of the totals by the second half; NaN where a divisor is 0."""
    above, below = np.split(totals, 2, axis=1)
    return np.divide(above, below, out=np.full_like(above, np.nan), where=below != 0)
