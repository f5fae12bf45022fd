"""The smooth calibration error: calibration error without bins, for any batch of weights.

Residuals ``y - s`` are laid on a fine grid over [0, 1], each shared by its two neighbours, and smoothed with a Gaussian
that is reflected at both ends. The error is no function of sums over rows, but the grid sums that stand in for the
rows are, so that they are a tally, with the cells of the grid as its keys. In cosines the smoothing is a damping of
each frequency, so that a width costs one transform. The width is the one that equals the error it gives.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from abstain.tally import Batch, Measure, Tally

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from abstain.metrics._columns import Columns

    Floats = NDArray[np.float64]

# Cells of the grid: a power of two for the transform, and far finer than any width that data can tell from
# zero.
_CELLS = 2048
_NARROWEST = 1.0 / _CELLS
_PRECISION = 1e-10


def smooth_measure(name: str, rows: Columns) -> Measure:
    """Return the smooth calibration error of rows that are right or not; NaN where no row counts."""
    place = rows.confidence * _CELLS
    left = np.minimum(place.astype(np.intp), _CELLS - 1)
    right_share = place - left
    tally = Tally.of_rows(
        unit=np.tile(rows.cluster, 2),
        key=np.concatenate([left, left + 1]),
        columns=[np.tile(rows.correct - rows.confidence, 2)],
        units=rows.units,
        keys=_CELLS + 1,
        weight=np.concatenate([rows.weight * (1.0 - right_share), rows.weight * right_share]),
    )

    def finish(batch: Batch) -> Floats:
        count, residual = tally.weigh(batch.weights)
        total = count.sum(axis=1)
        mass = np.divide(residual, total[:, None], out=np.zeros_like(residual), where=total[:, None] > 0)
        return np.where(total > 0, _fixed_point(_cosines(mass)), np.nan)[:, None]

    return Measure((name,), rows.units, max(rows.units, tally.width), finish)


def _cosines(mass: Floats) -> Floats:
    """Return ``sum_m mass_m cos(pi k m / cells)`` for every frequency k."""
    from scipy.fft import dct  # noqa: PLC0415

    halved = mass / 2.0
    halved[:, [0, -1]] *= 2.0
    return np.asarray(dct(halved, type=1, axis=1))


def _error(cosines: Floats, width: Floats) -> Floats:
    """Return the integral of ``|smoothed residual|`` over [0, 1], one width per row."""
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
