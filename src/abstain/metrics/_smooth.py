"""The smooth plan: calibration error without bins, for any batch of cluster weights.

Residuals ``y - s`` are laid on a fine grid over [0, 1], each shared by its two neighbours, and smoothed with
a Gaussian that is reflected at both ends. In cosines that smoothing is a damping of each frequency, so that a
width costs one transform; the grid sums are linear in the weights. The width is the one that equals the error
it gives.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from abstain.metrics._bins import cluster_table, total_by

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Indices = NDArray[np.intp]

# Cells of the grid: a power of two for the transform, and far finer than any width that data can tell from
# zero.
_CELLS = 2048
_NARROWEST = 1.0 / _CELLS
_PRECISION = 1e-10


@dataclass(frozen=True, eq=False, slots=True)
class SmoothPlan:
    """Residuals and weights by cluster on the grid; build one with `build`.

    >>> plan = SmoothPlan.build("smooth", np.array([1.0, 1.0]), np.array([0.75, 0.75]))
    >>> plan(np.ones((1, 1))).round(3)
    array([[0.25]])
    """

    names: tuple[str, ...]
    residual: Any
    total: Floats

    @classmethod
    def build(
        cls,
        name: str,
        outcome: Floats,
        confidence: Floats,
        *,
        weight: Floats | None = None,
        cluster: Indices | None = None,
    ) -> SmoothPlan:
        """Lay rows on the grid; `cluster` numbers clusters from 0 without a gap, one for all when left out."""
        weight = np.ones(len(outcome)) if weight is None else weight
        cluster = np.zeros(len(outcome), np.intp) if cluster is None else cluster
        clusters = int(cluster.max()) + 1
        place = confidence * _CELLS
        left = np.minimum(place.astype(np.intp), _CELLS - 1)
        right_share = place - left
        residual = weight * (outcome - confidence)
        table = cluster_table(
            np.tile(cluster, 2),
            np.concatenate([left, left + 1]),
            np.concatenate([residual * (1.0 - right_share), residual * right_share]),
            (clusters, _CELLS + 1),
        )
        return cls((name,), table, total_by(cluster, weight, clusters))

    @property
    def clusters(self) -> int:
        """How many clusters a weight vector has."""
        return len(self.total)

    @property
    def width(self) -> int:
        """How many numbers one resample occupies while it is worked on."""
        return max(self.clusters, _CELLS)

    def __call__(self, weights: Floats) -> Floats:
        """Map weights (resamples, clusters) to values (resamples, 1); NaN where no weight is left."""
        total = weights @ self.total
        mass = np.asarray(weights @ self.residual)
        mass = np.divide(mass, total[:, None], out=np.zeros_like(mass), where=total[:, None] > 0)
        return np.where(total > 0, _fixed_point(_cosines(mass)), np.nan)[:, None]


def _cosines(mass: Floats) -> Floats:
    """Return ``sum_m mass_m cos(pi k m / cells)`` for every frequency k."""
    from scipy.fft import dct  # noqa: PLC0415

    halved = mass / 2.0
    halved[:, [0, -1]] *= 2.0
    return np.asarray(dct(halved, type=1, axis=1))


def _error(cosines: Floats, width: Floats) -> Floats:
    """Return the integral of ``|smoothed residual|`` over [0, 1], one width a row."""
    from scipy.fft import dct  # noqa: PLC0415

    frequency = np.pi * np.arange(_CELLS + 1)
    smoothed = np.abs(dct(cosines * np.exp(-((width[:, None] * frequency) ** 2) / 2.0), type=1, axis=1))
    trapezoid = smoothed.sum(axis=1) - (smoothed[:, 0] + smoothed[:, -1]) / 2.0
    return np.asarray(trapezoid / _CELLS)


def _fixed_point(cosines: Floats) -> Floats:
    """Return the error that equals its own width, by the Illinois form of false position on all rows at once.

    The error falls as the width grows, so there is one crossing. Where even the narrowest width is wider than
    its error, that error is returned: it is below the resolution of the grid.
    """
    rows = len(cosines)
    low, high = np.full(rows, _NARROWEST), np.ones(rows)
    narrowest = _error(cosines, low)
    below, above = narrowest - low, _error(cosines, high) - high
    open_ = (below > 0.0) & (above < 0.0)
    width = np.where(below > 0.0, 1.0, narrowest)
    active = np.flatnonzero(open_)
    last_rising = np.zeros(rows, np.int8)
    for _ in range(100):
        if not len(active):
            break
        a, b, fa, fb = low[active], high[active], below[active], above[active]
        middle = (a * fb - b * fa) / (fb - fa)
        value = _error(cosines[active], middle) - middle
        rising = value > 0.0
        # Halving an end that was kept twice stops false position from creeping up on the root from one side.
        again = last_rising[active] == np.where(rising, 1, -1)
        last_rising[active] = np.where(rising, 1, -1)
        low[active], below[active] = (
            np.where(rising, middle, a),
            np.where(rising, value, np.where(again, fa / 2.0, fa)),
        )
        high[active], above[active] = (
            np.where(rising, b, middle),
            np.where(rising, np.where(again, fb / 2.0, fb), value),
        )
        width[active] = middle
        active = active[np.abs(value) > _PRECISION]
    return width
