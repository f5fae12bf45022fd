"""Kernels: areas, hulls and points of a climbed ladder, for a whole batch of resamples at once.

Everything is in counts: an area over coverage is an area over the count divided by N, one over generalized
risk is divided by N again. A rung without weight repeats the rung below it and so adds nothing; before the
first weighted rung the count is 0. The four conventions of the risk-coverage area meet here:

- ``trapezoid``: straight lines between working points, flat from 0 to the first one;
- ``interpolated``: inside a plateau the loss sum grows linearly, so the selective risk is a hyperbola,
  integrated exactly;
- ``mean``: the mean of the selective risks after each single item, ties in expectation;
- ``torch-uncertainty``: trapezoid over single items from the first item on, stretched by ``1 / (1 - 1/N)``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from abstain.metrics._ladder import Climb

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Indices = NDArray[np.intp]

CONVENTIONS = ("trapezoid", "interpolated", "mean", "torch-uncertainty")

# Guards against float noise where a coverage is asked for that a count meets exactly.
TOLERANCE = 1e-9


def selective_risk(climb: Climb) -> Floats:
    """Return loss sum / count at every rung; below the first weighted rung, where nothing is accepted, its risk."""
    # Where the count is 0 so is the loss sum; a tiny divisor is faster than a masked division.
    risk = np.maximum(climb.count, np.finfo(np.float64).tiny)
    np.divide(climb.risk_sum, risk, out=risk)
    first = first_weighted(climb)
    leading = int(first.max(initial=0))
    if leading:
        empty = climb.count[:, :leading] <= 0
        np.copyto(risk[:, :leading], pick(risk, first)[:, None], where=empty)
    return risk


def first_weighted(climb: Climb) -> Indices:
    """Return the first rung with any weight; rung 0 where there is none."""
    return np.argmax(climb.count > 0, axis=1) if climb.count.shape[1] else np.zeros(len(climb.count), np.intp)


def rung_reaching(climb: Climb, target: Floats) -> Indices:
    """Return the first rung whose count reaches each target (resamples, targets); the number of rungs if none does."""
    rows, rungs = climb.count.shape
    if rows * rungs <= 1:
        return (climb.count < target).astype(np.intp) if rungs else np.zeros(target.shape, np.intp)
    if rungs > 4096 or rows == 1:
        return np.stack([np.searchsorted(*pair) for pair in zip(climb.count, target, strict=True)])
    # One sorted search for all rows: each row is lifted above the one before it.
    lift = np.arange(rows) * (max(float(climb.last_count.max()), float(target.max())) + 1.0)
    found = np.searchsorted((climb.count + lift[:, None]).ravel(), (target + lift[:, None]).ravel())
    position: Indices = found.reshape(target.shape) - (np.arange(rows) * rungs)[:, None]
    return position


def pick(values: Floats, rung: Indices) -> Floats:
    """Return the value of each row at its own rung, or rungs."""
    flat = (np.arange(len(values)) * values.shape[1]).reshape((-1,) + (1,) * (rung.ndim - 1))
    return values.ravel().take(flat + rung)


def full_areas(climb: Climb, risk: Floats) -> tuple[Floats, Floats]:
    """Return the trapezoid areas of the selective risk (flat below the first point) and of the loss sum (from 0)."""
    if not climb.count.shape[1]:
        return np.zeros(len(climb.count)), np.zeros(len(climb.count))
    step = np.diff(climb.count, axis=1)
    loss_sum = climb.risk_sum
    return (
        0.5 * _trapezoids(step, risk) + loss_sum[:, 0],
        0.5 * (_trapezoids(step, loss_sum) + climb.count[:, 0] * loss_sum[:, 0]),
    )


def cut_areas(climb: Climb, risk: Floats, limit: Floats, rung: Indices) -> tuple[Floats, Floats]:
    """Return the `full_areas` up to the count `limit`, which lies on `rung`: interpolation lands exactly there."""
    if not climb.count.shape[1]:
        return np.zeros(len(climb.count)), np.zeros(len(climb.count))
    cut = Cut(climb, limit, rung)
    reached = np.minimum(climb.count, limit[:, None])
    step = np.diff(reached, axis=1)
    # Steps beyond the limit have no width; the step that is cut ends lower than its rung by the share that is cut off.
    above = cut.width * (1.0 - cut.share)
    rise = np.where(rung > 0, pick(risk, rung) - pick(risk, cut.below), 0.0)
    gain = pick(climb.risk_sum, rung) - np.where(rung > 0, pick(climb.risk_sum, cut.below), 0.0)
    first_step = reached[:, 0]
    return (
        0.5 * (_trapezoids(step, risk) - above * rise) + first_step * risk[:, 0],
        0.5 * (_trapezoids(step, climb.risk_sum) + first_step * climb.risk_sum[:, 0] - above * gain),
    )


class Cut:
    """Where a ladder is cut: the rung below, the count there, and which share of the cut rung remains."""

    def __init__(self, climb: Climb, limit: Floats, rung: Indices) -> None:
        self.below = np.maximum(rung - 1, 0)
        self.count_below = np.where(rung > 0, pick(climb.count, self.below), 0.0)
        self.width = limit - self.count_below
        height = pick(climb.count, rung) - self.count_below
        self.share = np.divide(self.width, height, out=np.zeros_like(limit), where=height > 0)


def _trapezoids(step: Floats, values: Floats) -> Floats:
    return np.einsum("rp,rp->r", step, values[:, 1:]) + np.einsum("rp,rp->r", step, values[:, :-1])


def truncated(climb: Climb, limit: Floats) -> Climb:
    """Cut the ladder itself at the count `limit`, with the loss sum linear inside the rung that is cut."""
    if not climb.count.shape[1]:
        return climb
    limit = np.minimum(limit, climb.last_count)
    rung = rung_reaching(climb, limit[:, None])[:, 0]
    cut = Cut(climb, limit, rung)
    loss_below = np.where(rung > 0, pick(climb.risk_sum, cut.below), 0.0)
    cut_sum = loss_below + cut.share * (pick(climb.risk_sum, rung) - loss_below)
    beyond = climb.count > limit[:, None]
    return Climb(np.minimum(climb.count, limit[:, None]), np.where(beyond, cut_sum[:, None], climb.risk_sum))


def harmonic(count: Floats) -> Floats:
    """Return the harmonic numbers, continued to fractions by the digamma function."""
    whole = count.astype(np.intp)
    if (whole == count).all():
        table = np.zeros(int(whole.max(initial=0)) + 1)
        np.cumsum(1.0 / np.arange(1, len(table)), out=table[1:])
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
    if not climb.count.shape[1]:
        return np.zeros(len(climb.count))
    before_count, before_sum = _below(climb.count), _below(climb.risk_sum)
    items = climb.count - before_count
    mean = np.divide(climb.risk_sum - before_sum, items, out=np.zeros_like(items), where=items > 0)
    growth = logarithm(climb.count) if continuous else harmonic(climb.count)
    step = growth - _below(growth)
    return climb.last_risk_sum + np.einsum("rp,rp->r", before_sum - before_count * mean, step)


def single_item_trapezoid(climb: Climb) -> Floats:
    """Return the trapezoid area of selective risk when each item is a working point of its own."""
    first, last = end_risks(climb)
    return prefix_mean_sum(climb) + 0.5 * (first - last)


def end_risks(climb: Climb) -> tuple[Floats, Floats]:
    """Return the selective risk at the first weighted rung and at the last."""
    if not climb.count.shape[1]:
        return np.zeros(len(climb.count)), np.zeros(len(climb.count))
    first = first_weighted(climb)
    lowest, highest = pick(climb.count, first), climb.last_count
    return (
        np.divide(pick(climb.risk_sum, first), lowest, out=np.zeros_like(lowest), where=lowest > 0),
        np.divide(climb.last_risk_sum, highest, out=np.zeros_like(highest), where=highest > 0),
    )


def _below(values: Floats) -> Floats:
    shifted = np.empty_like(values)
    shifted[:, 0] = 0.0
    shifted[:, 1:] = values[:, :-1]
    return shifted


def hull_area(climb: Climb, risk: Floats) -> Floats:
    """Return the area under the lower convex hull of the (coverage, risk) points, in counts, flat below the first.

    The hulls of all resamples are found together. A point on or above the line between any two other points
    is no corner of the hull, so all such points can be dropped at once, whoever else is dropped with them:
    first those above the two lines that join the lowest point to the ends, then those above lines between
    neighbours, until none is. Lines between far neighbours come first where many points are left: they clear
    what would else be taken down point by point.
    """
    rows = len(climb.count)
    if not climb.count.shape[1]:
        return np.zeros(rows)
    x, y, row = _hull_candidates(climb, risk)
    reach = max(int(np.bincount(row, minlength=1).max()) // 16, 1)
    while True:
        keep = _below_lines(x, y, row, reach)
        if not keep.all():
            x, y, row = x[keep], y[keep], row[keep]
        elif reach == 1:
            break
        reach = max(reach // 4, 1)
    starts = np.r_[True, row[1:] != row[:-1]][: len(row)]
    pieces = x * y
    pieces[1:] = np.where(starts[1:], pieces[1:], 0.5 * (x[1:] - x[:-1]) * (y[1:] + y[:-1]))
    return np.bincount(row, weights=pieces, minlength=rows).astype(np.float64)


def _hull_candidates(climb: Climb, risk: Floats) -> tuple[Floats, Floats, Indices]:
    """Return the distinct points that are ends, lowest, or below a line from an end to the lowest; with their rows."""
    count, rows, rungs = climb.count, *climb.count.shape
    first = first_weighted(climb)
    last = np.full(rows, rungs - 1)
    lowest = np.maximum(np.argmin(risk, axis=1), first)
    x, y = pick(count, lowest), pick(risk, lowest)
    below = np.zeros(count.shape, np.bool_)
    for end in (first, last):
        run, rise = pick(count, end) - x, pick(risk, end) - y
        slope = np.divide(rise, run, out=np.zeros_like(run), where=run != 0)
        # Each line runs below every point on the far side of the lowest, so both tests can be made everywhere.
        height = np.multiply(count, slope[:, None])
        np.subtract(risk, height, out=height)
        below |= height < (y - slope * x)[:, None]
    for corner in (first, last, lowest):
        below[np.arange(rows), corner] = True
    place = np.flatnonzero(below)
    row, x, y = place // rungs, count.ravel().take(place), risk.ravel().take(place)
    # A rung without weight repeats the one below it; below the first weighted rung there is nothing.
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
