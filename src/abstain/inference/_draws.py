"""Draws: which clusters enter a resample, and how often.

One legacy random stream, one row of whole numbers a resample: the same seed gives the same resamples on every
machine and whatever the size of a batch. Clusters are numbered by their id, ascending.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from abstain import _validate

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

__all__ = ["Draws"]

# A batch should stay in the processor's cache, and yet be large enough for the calls on it to cost nothing.
_BATCH_NUMBERS = 1 << 17
_FEWEST, _MOST = 1, 1024


@dataclass(frozen=True, slots=True)
class Draws:
    """Cluster resamples: how many of how many clusters, from which seed.

    >>> draws = Draws(clusters=3, resamples=2, seed=42)
    >>> [batch.tolist() for batch in draws.batches(width=3)]
    [[[1.0, 0.0, 2.0], [2.0, 0.0, 1.0]]]
    """

    clusters: int
    resamples: int
    seed: int

    def __post_init__(self) -> None:
        _validate.whole(self.resamples, "resamples")
        _validate.seed(self.seed)

    def batches(self, width: int) -> Iterator[NDArray[np.float64]]:
        """Yield the weights (resamples, clusters) in batches sized for `width` numbers a resample."""
        stream = np.random.RandomState(self.seed)
        size = min(max(_BATCH_NUMBERS // max(width, 1), _FEWEST), _MOST)
        for start in range(0, self.resamples, size):
            rows = min(size, self.resamples - start)
            drawn = stream.randint(0, self.clusters, size=(rows, self.clusters))
            drawn += (np.arange(rows) * self.clusters)[:, None]
            counts = np.bincount(drawn.ravel(), minlength=rows * self.clusters)
            yield counts.reshape(rows, self.clusters).astype(np.float64)
