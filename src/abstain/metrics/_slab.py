"""Worst-slab coverage: where in feature space coverage fails most, judged on rows that played no part in it.

A slab is ``{x : low <= v.x <= high}`` for a direction ``v``. Among many random directions, the slab of
lowest coverage that still holds a given share of the rows is found on one part of the rows; its coverage on
the other part is an honest number, because the worst of many is always bad on the rows it was chosen by.
Clusters are never split between the two parts.

Reference: Cauchois, Gupta and Duchi, "Knowing what You Know: valid and validated confidence sets in
multiclass and multilabel prediction", JMLR 22, 2021. The search weighs rows; no tally of them would do.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from abstain import _validate
from abstain.errors import DataError
from abstain.tally import Measure

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from abstain.metrics.predictions import PredictionRows

    Floats = NDArray[np.float64]
    Indices = NDArray[np.intp]
    Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False, slots=True)
class WorstSlab:
    """The slab of lowest coverage, and what it comes to on rows that were held out.

    Attributes:
        coverage: coverage of the held-out rows in the slab; NaN when none fell into it.
        found_coverage: coverage of the rows by which the slab was chosen: too low, by its choice.
        count: how many held-out rows (or how much weight) the slab holds.
        share: which share of the held-out rows that is.
        direction: the unit vector ``v``.
        low: lower end of ``v.x``.
        high: upper end of ``v.x``.
        reason: why the coverage is undefined; empty when it is defined.
    """

    coverage: float
    found_coverage: float
    count: float
    share: float
    direction: Floats
    low: float
    high: float
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Search:
    """How the slab is looked for: its least share, how many directions, how much is held out, the seed."""

    share: float
    directions: int
    held_out: float
    seed: int

    @classmethod
    def checked(cls, *, share: float, directions: int, held_out: float, seed: int) -> Search:
        """Check what a user asked for."""
        return cls(
            share=_validate.level(share, "share"),
            directions=_validate.whole(directions, "directions", least=1),
            held_out=_validate.level(held_out, "held_out"),
            seed=_validate.seed(seed),
        )


def checked_features(features: ArrayLike, rows: int) -> Floats:
    """Return finite features (rows, features); one feature may come without a second axis."""
    array = np.asarray(features)
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim != 2 or array.shape[1] == 0:
        raise DataError(f"features must have shape (rows, features), got {array.shape}")
    columns = [_validate.finite(column, f"features[:, {place}]") for place, column in enumerate(array.T)]
    _validate.same_length(rows, features=columns[0])
    return np.column_stack(columns)


def worst_slab(
    features: Floats, covered: Mask, rows: PredictionRows, search: Search, *, cluster: Indices | None = None
) -> tuple[WorstSlab, Mask]:
    """Find the slab on one part of the rows and judge it on the other; with it, the rows that judge it.

    A cluster is never split between the parts; each row is one of its own when there are none.
    """
    stream = np.random.default_rng(search.seed)
    weight = rows.masses
    held_out = _split(np.arange(len(rows)) if cluster is None else cluster, weight, search.held_out, stream)
    directions = stream.normal(size=(search.directions, features.shape[1]))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    if features.shape[1] == 1:
        directions = np.ones((1, 1))
    searched = features[~held_out], covered[~held_out], weight[~held_out]
    best, where = (math.inf, 0.0, 0.0), directions[0]
    for direction in directions:
        found = _worst_range(searched[0] @ direction, searched[1], searched[2], search.share)
        if found < best:
            best, where = found, direction
    position = features @ where
    inside = held_out & (position >= best[1]) & (position <= best[2])
    count = float(weight[inside].sum())
    slab = WorstSlab(
        coverage=slab_measure(covered, inside, rows).point,
        found_coverage=best[0],
        count=int(count) if count.is_integer() else count,
        share=count / float(weight[held_out].sum()),
        direction=where,
        low=best[1],
        high=best[2],
        reason="" if count else "no held-out row falls into the slab",
    )
    return slab, inside


def slab_measure(covered: Mask, inside: Mask, rows: PredictionRows) -> Measure:
    """Coverage of the rows inside, whatever the weights of the units; the slab stays where it was found."""

    def finish(_: Floats, hit: Floats, count: Floats) -> list[Floats]:
        return [np.divide(hit, count, out=np.full_like(hit, np.nan), where=count > 0.0)]

    columns = [covered & inside, inside]
    return Measure.of_sums(
        ("worst_slab_coverage",),
        columns,
        unit=rows.unit,
        units=rows.units,
        weight=rows.weight,
        finish=finish,
    )


def _split(cluster: Indices, weight: Floats, share: float, stream: np.random.Generator) -> Mask:
    """Hold out a share of the clusters, at least one and not all."""
    # A row of weight 0 is not there: it must neither move the split nor be held out alone.
    present = np.unique(cluster[weight > 0.0])
    if len(present) < 2:
        raise DataError(
            "worst-slab coverage needs at least two rows (or clusters): one to find the slab, one to judge it"
        )
    size = min(max(round(share * len(present)), 1), len(present) - 1)
    return np.isin(cluster, stream.permutation(present)[:size]) & (weight > 0.0)


def _worst_range(position: Floats, covered: Mask, weight: Floats, share: float) -> tuple[float, float, float]:
    """Return the lowest coverage of a range of positions with at least `share` of the weight, and the range.

    Dinkelbach's method: for a guess of the lowest mean, the best range under ``covered - guess`` is found by
    one running maximum; its mean is the next guess, and a few rounds end at the exact minimum. Equal
    positions are never parted.
    """
    order = np.argsort(position)
    position = position[order]
    end = np.flatnonzero(np.r_[position[1:] != position[:-1], True])
    mass = np.r_[0.0, np.cumsum(weight[order])[end]]
    hit = np.r_[0.0, np.cumsum((weight * covered)[order])[end]]
    least = share * mass[-1] * (1.0 - 1e-12)
    # The last start from which a range that ends at each end still weighs enough.
    start = np.searchsorted(mass, mass - least, side="right") - 1
    ends = np.flatnonzero(start >= 0)
    if not len(ends) or mass[-1] <= 0.0:
        return math.inf, 0.0, 0.0
    guess, begin, stop = hit[-1] / mass[-1], 0, len(end)
    while True:
        surplus = hit - guess * mass
        highest = np.maximum.accumulate(surplus)
        gain = surplus[ends] - highest[start[ends]]
        place = int(np.argmin(gain))
        if gain[place] >= -1e-12 * mass[-1]:
            break
        stop = int(ends[place])
        begin = int(np.argmax(surplus[: start[stop] + 1]))
        guess = (hit[stop] - hit[begin]) / (mass[stop] - mass[begin])
    first = position[end[begin - 1] + 1] if begin else position[0]
    return float(guess), float(first), float(position[end[stop - 1]])
