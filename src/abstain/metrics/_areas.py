"""Kernels: areas, hulls and points of a climbed ladder, for a whole batch of resamples at once.

Everything is in counts: an area over coverage is an area over the count divided by N, one over generalized
risk is divided by N again. Column 0 is the ground, where nothing is accepted; a rung without weight repeats
the one below it and so adds nothing. The four conventions of the risk-coverage area meet here:

- ``trapezoid``: straight lines between working points, flat from 0 to the first one;
- ``interpolated``: inside a plateau the loss sum grows linearly, so the selective risk is a hyperbola,
  integrated exactly;
- ``mean``: the mean of the selective risks after each single item, ties in expectation;
- ``torch-uncertainty``: trapezoid over single items from the first item on, stretched by ``1 / (1 - 1/N)``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from abstain.metrics._ladder import Climb, trapezoids

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Indices = NDArray[np.intp]

CONVENTIONS = ("trapezoid", "interpolated", "mean", "torch-uncertainty")

# Guards against float noise where a coverage is asked for that a count meets exactly.
TOLERANCE = 1e-9
# A ladder of more numbers than this is worked on in stretches, so that its length costs no memory beyond its own.
_BLOCK = 1 << 22


def selective_risk(climb: Climb) -> Floats:
    """Return loss sum / count on every rung; up to the first weighted rung, where nothing is accepted, its risk."""
    with np.errstate(invalid="ignore"):
        risk = climb.risk_sum / climb.count
    first = risk.take(climb.row_start + climb.first)
    leading = max(int(climb.first.max(initial=0)), 1)
    np.copyto(risk[:, :leading], first[:, None], where=climb.count[:, :leading] <= 0)
    return np.nan_to_num(risk, copy=False) if np.isnan(first).any() else risk


def rung_reaching(climb: Climb, target: Floats) -> Indices:
    """Return the first rung whose count reaches each target (resamples, targets); one beyond the last if none does."""
    rows, columns = climb.count.shape
    if columns > 4096 or rows == 1:
        return np.stack([np.searchsorted(*pair) for pair in zip(climb.count, target, strict=True)])
    # One sorted search for all rows: each row is lifted above the one before it.
    lift = (np.arange(rows) * (max(float(climb.last_count.max()), float(target.max())) + 1.0))[:, None]
    found = np.searchsorted((climb.count + lift).ravel(), (target + lift).ravel())
    return found.reshape(target.shape) - climb.row_start[:, None]


def risk_area(climb: Climb, risk: Floats) -> Floats:
    """Return the trapezoid area of the selective risk over the count, flat up to the first working point."""
    return 0.5 * trapezoids(climb.step, risk)


def cut_areas(climb: Climb, risk: Floats, limit: Floats, rung: Indices) -> tuple[Floats, Floats]:
    """Return both areas (risk, loss sum) up to the count `limit`, which lies on `rung`, interpolated to land there."""
    cut = Cut(climb, limit, rung)
    # Steps beyond the limit have no width, so that columns beyond the last rung that is cut need not be looked at; the
    # step that is cut ends lower than its rung by the share that is cut off.
    end = int(rung.max()) + 1
    step = np.diff(np.minimum(climb.count[:, :end], limit[:, None]), axis=1)
    above = (limit - cut.count_below) * (1.0 - cut.share)
    areas = [
        0.5 * (trapezoids(step, values[:, :end]) - above * (values.take(cut.at) - values.take(cut.below)))
        for values in (risk, climb.risk_sum)
    ]
    return areas[0], areas[1]


class Cut:
    """Where a ladder is cut: the places of the rung and of the one below, and which share of the rung remains."""

    def __init__(self, climb: Climb, limit: Floats, rung: Indices) -> None:
        self.at = climb.row_start + rung
        # Only a limit of 0 is reached on the ground, below which there is nothing.
        self.below = self.at - (rung > 0)
        self.count_below = climb.count.take(self.below)
        height = climb.count.take(self.at) - self.count_below
        self.share = (limit - self.count_below) / np.maximum(height, np.finfo(np.float64).tiny)


def truncated(climb: Climb, limit: Floats) -> Climb:
    """Cut the ladder itself at the count `limit`, with the loss sum linear inside the rung that is cut."""
    limit = np.minimum(limit, climb.last_count)
    cut = Cut(climb, limit, rung_reaching(climb, limit[:, None])[:, 0])
    below = climb.risk_sum.take(cut.below)
    cut_sum = below + cut.share * (climb.risk_sum.take(cut.at) - below)
    beyond = climb.count > limit[:, None]
    return Climb(np.minimum(climb.count, limit[:, None]), np.where(beyond, cut_sum[:, None], climb.risk_sum))


def harmonic(count: Floats) -> Floats:
    """Return the harmonic numbers less that of the smallest count, continued to fractions by the digamma function."""
    whole = count.astype(np.intp)
    if (whole == count).all():
        low, high = (int(whole.min()), int(whole.max())) if whole.size else (0, 0)
        table = np.zeros(high - low + 1)
        np.cumsum(1.0 / np.arange(low + 1, high + 1), out=table[1:])
        whole -= low
        return table.take(whole)
    from scipy.special import digamma  # noqa: PLC0415  (only fractional weights need it)

    values: Floats = digamma(count + 1.0) + np.euler_gamma
    return values


def logarithm(count: Floats) -> Floats:
    """Return log(count), 0 at 0: nothing lies below the first rung, so its term vanishes anyway."""
    return np.log(count, out=np.zeros_like(count), where=count > 0)


def prefix_mean_sum(climb: Climb, *, continuous: bool = False) -> Floats:
    """Return the sum of selective risks over single items, ties in expectation; or its integral when `continuous`.

    After ``k0`` items with loss sum ``S0``, a rung of ``m`` items of mean loss ``l`` adds
    ``m*l + (S0 - k0*l) * (H[k0 + m] - H[k0])``, where the logarithm takes the place of ``H`` in the integral.
    """
    total = climb.last_risk_sum.copy()
    for part in _blocks(climb):
        before_count, before_sum = part.count[:, :-1], part.risk_sum[:, :-1]
        mean = np.diff(part.risk_sum, axis=1) / np.maximum(part.step, np.finfo(np.float64).tiny)
        growth = logarithm(part.count) if continuous else harmonic(part.count)
        total += np.vecdot(before_sum - before_count * mean, np.diff(growth, axis=1))
    return total


def _blocks(climb: Climb) -> Iterator[Climb]:
    """Yield stretches of a ladder, each from where the one before ends; all of it at once unless it is very long."""
    rows, columns = climb.count.shape
    rungs = max(_BLOCK // max(rows, 1), 1)
    if columns - 1 <= rungs:
        yield climb
        return
    for start in range(0, columns - 1, rungs):
        stretch = slice(start, start + rungs + 1)
        yield Climb(climb.count[:, stretch], climb.risk_sum[:, stretch])


def single_item_trapezoid(climb: Climb) -> Floats:
    """Return the trapezoid area of selective risk when each item is a working point of its own."""
    first, last = end_risks(climb)
    return prefix_mean_sum(climb) + 0.5 * (first - last)


def end_risks(climb: Climb) -> tuple[Floats, Floats]:
    """Return the selective risk on the first weighted rung and on the last; 0 where nothing is accepted."""
    place = climb.row_start + climb.first
    tiny = np.finfo(np.float64).tiny
    return (
        climb.risk_sum.take(place) / np.maximum(climb.count.take(place), tiny),
        climb.last_risk_sum / np.maximum(climb.last_count, tiny),
    )


def hull_area(climb: Climb, risk: Floats) -> Floats:
    """Return the area under the lower convex hull of the (coverage, risk) points, in counts, flat below the first.

    The hulls of all resamples are found together. A point on or above the line between any two other points
    is no corner of the hull, so all such points can be dropped at once, whoever else is dropped with them:
    first those above the two lines that join the lowest point to the ends, then those above lines between
    neighbours, until none is. Lines between far neighbours come first where many points are left: they clear
    what would else be taken down point by point.
    """
    rows = len(climb.count)
    x, y, row = _hull_candidates(climb, risk)
    reach = max(int(np.bincount(row, minlength=1).max()) // 16, 1)
    while True:
        keep = np.flatnonzero(_below_lines(x, y, row, reach))
        if len(keep) < len(x):
            x, y, row = x.take(keep), y.take(keep), row.take(keep)
        elif reach == 1:
            break
        reach = max(reach // 4, 1)
    starts = np.r_[True, row[1:] != row[:-1]][: len(row)]
    pieces = x * y
    pieces[1:] = np.where(starts[1:], pieces[1:], 0.5 * (x[1:] - x[:-1]) * (y[1:] + y[:-1]))
    return np.bincount(row, weights=pieces, minlength=rows).astype(np.float64)


def _hull_candidates(climb: Climb, risk: Floats) -> tuple[Floats, Floats, Indices]:
    """Return the distinct points that are ends, lowest, or below a line from an end to the lowest; with their rows."""
    count, start, columns = climb.count, climb.row_start, climb.count.shape[1]
    lowest = np.maximum(np.argmin(risk, axis=1), climb.first)
    corners = (start + climb.first, start + columns - 1, start + lowest)
    x, y = count.take(corners[2]), risk.take(corners[2])
    below = np.zeros(count.shape, np.bool_)
    # Left of the lowest point the line from the first counts, right of it the one to the last; each runs below every
    # point on the far side, so that no row needs its own columns.
    sides = (slice(0, int(lowest.max()) + 1), slice(int(lowest.min()), columns))
    for end, side in zip(corners, sides, strict=False):
        run = count.take(end) - x
        slope = np.divide(risk.take(end) - y, run, out=np.zeros_like(run), where=run != 0)
        height = np.multiply(count[:, side], slope[:, None])
        np.subtract(risk[:, side], height, out=height)
        np.logical_or(below[:, side], height < (y - slope * x)[:, None], out=below[:, side])
    for corner in corners:
        below.put(corner, True)
    place = np.flatnonzero(below)
    row, x, y = place // columns, count.take(place), risk.take(place)
    # A rung without weight repeats the one below it; up to the first weighted rung there is nothing.
    distinct = x > 0
    distinct[1:] &= (x[1:] != x[:-1]) | (row[1:] != row[:-1])
    return x[distinct], y[distinct], row[distinct]


def _below_lines(x: Floats, y: Floats, row: Indices, reach: int) -> NDArray[np.bool_]:
    """True for points strictly below the line between the points `reach` places left and right of them in their row."""
    keep = np.ones(len(x), np.bool_)
    if len(x) <= 2 * reach:
        return keep
    left, here, right = slice(None, -2 * reach), slice(reach, -reach), slice(2 * reach, None)
    wide = x[right] - x[left]
    cross = (x[here] - x[left]) * (y[right] - y[left]) - (y[here] - y[left]) * wide
    keep[here] = (cross > 0.0) | (row[left] != row[right])
    return keep
