"""Bands: the percentile intervals of a measure with many columns, such as a risk at every threshold.

The interval of each column is the one that `estimates` gives, to seven digits: replicates are kept in single
precision, which is plenty for a picture, and is what makes hundreds of columns cost as much as a few.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from abstain import _validate

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from abstain.inference._weights import Draws
    from abstain.tally import Measure

    Floats = NDArray[np.float64]

__all__ = ["Band", "band"]


@dataclass(frozen=True, eq=False, slots=True)
class Band:
    """Pointwise intervals: each holds for its own column, not for all of them at once."""

    low: Floats
    high: Floats


def band(
    measure: Measure, draws: Draws, *, level: float = 0.95, progress: Callable[[int], None] | None = None
) -> Band:
    """Return the percentile interval of every column of a measure; NaN where there are no resamples.

    A replicate that is NaN is dropped; with fewer than two left the interval is the point itself.
    """
    level = _validate.level(level)
    columns = len(measure.names)
    if not draws.resamples or not columns:
        return Band(np.full(columns, np.nan), np.full(columns, np.nan))
    values = np.empty((columns, draws.resamples), np.float32)
    done = 0
    for weights in draws.batches(measure.width):
        values[:, done : done + len(weights)] = measure(weights).T
        done += len(weights)
        if progress is not None:
            progress(len(weights))
    gaps = np.flatnonzero(np.isnan(values).any(axis=1))
    incomplete = {int(column): values[column][~np.isnan(values[column])] for column in gaps}
    share = (1.0 - level) / 2.0
    low, high = _lower(values, share), -_lower(np.negative(values, out=values), share)
    point = measure.points if len(gaps) else np.empty(0)
    for column, kept in incomplete.items():
        ends = np.quantile(kept, [share, 1.0 - share]) if len(kept) >= 2 else (point[column], point[column])
        low[column], high[column] = ends
    return Band(low, high)


def _lower(values: NDArray[np.float32], share: float) -> Floats:
    """The quantile at a share below one half, straight between order statistics; reorders each row in place."""
    position = share * (values.shape[1] - 1)
    below = int(position)
    # One place is cheap to find, several are not; the next one up is the least of all that lie above.
    values.partition(below, axis=1)
    found = values[:, below].astype(np.float64)
    if below + 1 < values.shape[1]:
        found = found + (position - below) * (values[:, below + 1 :].min(axis=1) - found)
    return found
