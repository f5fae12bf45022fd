"""Venn-ABERS steps: what isotonic regression would say of one more row, if it came true and if it did not.

For a new score there are only so many places: at one of the ``k`` distinct scores that were seen, or in one
of the ``k + 1`` gaps around them. For each place and each outcome the isotonic value of the new row is found
by merging it with the blocks to its left and right; the blocks of every prefix and suffix of the data are
known from two passes, so that no place fits anew.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from abstain.tally import total_by

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

__all__ = ["venn_abers_steps"]


def venn_abers_steps(score: Floats, outcome: Floats, weight: Floats) -> tuple[Floats, Floats, Floats]:
    """Return the distinct scores and the lower and upper probability below, at and above each of them.

    Reference: Vovk, Petej and Fedorova, "Large-scale probabilistic predictors with and without guarantees of
    validity", 2015.

    >>> thresholds, lower, upper = venn_abers_steps(np.array([0.2, 0.8]), np.array([0.0, 1.0]), np.ones(2))
    >>> lower.tolist(), upper.tolist()
    ([0.0, 0.0, 0.0, 0.5, 0.5], [0.5, 0.5, 1.0, 1.0, 1.0])
    """
    distinct, place = np.unique(score, return_inverse=True)
    blocks = _Blocks(total_by(place, weight), total_by(place, weight * outcome))
    places = range(2 * len(distinct) + 1)
    lower, upper = (
        np.array([blocks.value_of(position, label) for position in places]) for label in (0.0, 1.0)
    )
    return distinct, lower, upper


class _Blocks:
    """Groups of tied rows with running sums, and the last block of every prefix and the first of every suffix."""

    def __init__(self, count: Floats, total: Floats) -> None:
        self._count = np.concatenate([[0.0], np.cumsum(count)]).tolist()
        self._total = np.concatenate([[0.0], np.cumsum(total)]).tolist()
        self._groups = len(count)
        # The last block of the isotonic fit to groups 0..j starts at _start[j]; the rest is the fit to
        # 0.._start[j]-1.
        self._start: list[int] = []
        for last in range(self._groups):
            first = last
            while first > 0 and self._mean(self._start[first - 1], first - 1) >= self._mean(first, last):
                first = self._start[first - 1]
            self._start.append(first)
        # Likewise the first block of the fit to groups i..k-1 ends at _end[i].
        self._end = [0] * self._groups
        for first in reversed(range(self._groups)):
            last = first
            while last < self._groups - 1 and self._mean(last + 1, self._end[last + 1]) <= self._mean(
                first, last
            ):
                last = self._end[last + 1]
            self._end[first] = last

    def value_of(self, position: int, label: float) -> float:
        """Return the isotonic value of a new row: even positions are gaps, odd ones the groups themselves."""
        group, inside = divmod(position, 2)
        left, right = group - 1, group + inside
        count, total = 1.0, label
        if inside:
            count, total = count + self._size(group, group), total + self._sum(group, group)
        merged = True
        while merged:
            merged = False
            while right < self._groups and self._mean(right, self._end[right]) <= total / count:
                count, total = (
                    count + self._size(right, self._end[right]),
                    total + self._sum(right, self._end[right]),
                )
                right, merged = self._end[right] + 1, True
            while left >= 0 and self._mean(self._start[left], left) >= total / count:
                count, total = (
                    count + self._size(self._start[left], left),
                    total + self._sum(self._start[left], left),
                )
                left, merged = self._start[left] - 1, True
        return min(max(total / count, 0.0), 1.0)

    def _size(self, first: int, last: int) -> float:
        return self._count[last + 1] - self._count[first]

    def _sum(self, first: int, last: int) -> float:
        return self._total[last + 1] - self._total[first]

    def _mean(self, first: int, last: int) -> float:
        return self._sum(first, last) / self._size(first, last)
