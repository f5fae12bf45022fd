"""The risk-coverage areas in each of the four conventions, whole or cut at a coverage.

`_areas` knows how to integrate a climbed ladder over the count; this module knows which integral a convention
means and divides by the number of items. Coverage is always measured against N, abstentions included, in
every convention.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from abstain.metrics import _areas
from abstain.metrics._ladder import loss_area

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from abstain.metrics._ladder import Climb

    Floats = NDArray[np.float64]


def aurc(climb: Climb, trapezoid: Floats, total: Floats, convention: str) -> Floats:
    """Return the area under selective risk over coverage; `trapezoid` is that area in counts by working points."""
    if convention == "trapezoid":
        return trapezoid / total
    if convention == "interpolated":
        return _areas.prefix_mean_sum(climb, continuous=True) / total
    if convention == "mean":
        return _areas.prefix_mean_sum(climb) / total
    return _stretched(_inner_trapezoid(climb), total)


def augrc(climb: Climb, area: Floats, total: Floats, convention: str) -> Floats:
    """Return the area under generalized risk over coverage; `area` is that under the loss sum, in counts."""
    if convention == "mean":
        return (area + 0.5 * climb.last_risk_sum) / total**2
    if convention == "torch-uncertainty":
        return _stretched(area - 0.5 * _areas.end_risks(climb)[0], total) / total
    return area / total**2


def aurc_achievable(climb: Climb, risk: Floats, total: Floats, convention: str) -> Floats:
    """Return the area under the lower convex hull of the working points."""
    area = _areas.hull_area(climb, risk)
    first, last = _areas.end_risks(climb)
    if convention == "mean":
        # The sum over whole counts of a line exceeds its integral by half of what it climbs.
        return (area + 0.5 * (last - first)) / total
    if convention == "torch-uncertainty":
        return _stretched(area - first, total)
    return area / total


def aurc_at(climb: Climb, trapezoid: Floats, limit: Floats, total: Floats, convention: str) -> Floats:
    """Return the AURC cut at the count `limit`; `trapezoid` is that area in counts by working points."""
    if convention == "trapezoid":
        return trapezoid / total
    if convention == "interpolated":
        return _areas.prefix_mean_sum(_areas.truncated(climb, limit), continuous=True) / total
    whole, done, after, rest = _whole_items(climb, limit)
    next_risk = _areas.end_risks(after)[1]
    if convention == "mean":
        return (_areas.prefix_mean_sum(done) + rest * next_risk) / total
    here = _areas.end_risks(done)[1]
    partial = rest * (here + 0.5 * rest * (next_risk - here))
    return _stretched(np.where(whole >= 1.0, _inner_trapezoid(done) + partial, 0.0), total)


def augrc_at(climb: Climb, area: Floats, limit: Floats, total: Floats, convention: str) -> Floats:
    """Return the AUGRC cut at the count `limit`; `area` is that under the loss sum, in counts."""
    if convention == "mean":
        _, done, after, rest = _whole_items(climb, limit)
        whole_area = loss_area(done)
        return (whole_area + 0.5 * done.last_risk_sum + rest * after.last_risk_sum) / total**2
    if convention == "torch-uncertainty":
        from_first = area - 0.5 * _areas.end_risks(climb)[0]
        return _stretched(np.where(limit >= 1.0, from_first, 0.0), total) / total
    return area / total**2


def _whole_items(climb: Climb, limit: Floats) -> tuple[Floats, Climb, Climb, Floats]:
    """Split a limit into whole items and a rest: their number, the ladder to there, to one item further, the rest."""
    whole = np.floor(limit + _areas.TOLERANCE)
    rest = np.maximum(limit - whole, 0.0)
    return whole, _areas.truncated(climb, whole), _areas.truncated(climb, whole + 1.0), rest


def _inner_trapezoid(climb: Climb) -> Floats:
    """The trapezoid over single items from the first to the last, without the flat piece before the first."""
    first, last = _areas.end_risks(climb)
    return _areas.prefix_mean_sum(climb) - 0.5 * (first + last)


def _stretched(area: Floats, total: Floats) -> Floats:
    # (area / N) / (1 - 1/N); a single item leaves no range to integrate over.
    return np.divide(area, total - 1.0, out=np.full_like(area, np.nan), where=total > 1.0)
