"""Rankings at the coverage that both of a pair reach: the plan behind comparisons at matched coverage.

In every resample the matched coverage is the smaller of the two ``Cmax``, so that both sides are always judged
over the same range, however the draws move their ends. Areas are cut there as truncated areas are; the
selective risk there takes of the plateau that is cut only the share that fits, in expectation over its order,
because the next working point could lie far beyond.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from abstain.metrics import _areas, _conventions

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from abstain.metrics._ranks import RanksPlan

    Floats = NDArray[np.float64]

MATCHED_FIGURES = ("aurc", "augrc", "risk")


@dataclass(frozen=True, eq=False, slots=True)
class MatchedPlan:
    """Figures of pairs of rankings over the same clusters, at the coverage that both of a pair reach.

    Every ranking is climbed once, however many pairs it is in. The columns of a pair are its coverage, then for
    every figure the left value and the right one.

    Attributes:
        rankings: the rankings.
        pairs: which of them are compared: (left, right), by their places.
        figures: "aurc", "augrc", or "risk" for the selective risk.
    """

    rankings: tuple[RanksPlan, ...]
    pairs: tuple[tuple[int, int], ...]
    figures: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The columns."""
        parts = ("coverage", *(f"{figure} {side}" for figure in self.figures for side in ("left", "right")))
        return tuple(f"{part} [{left}, {right}]" for left, right in self.pairs for part in parts)

    @property
    def clusters(self) -> int:
        """How many clusters a weight vector has."""
        return self.rankings[0].clusters

    @property
    def width(self) -> int:
        """How many numbers one resample occupies while it is worked on."""
        return sum(ranking.width for ranking in self.rankings)

    def __call__(self, weights: Floats) -> Floats:
        """Map weights (resamples, clusters) to values (resamples, columns)."""
        climbed = [_Climbed(ranking, weights) for ranking in self.rankings]
        columns = []
        for pair in self.pairs:
            left, right = (climbed[place] for place in pair)
            coverage = np.minimum(left.cmax, right.cmax)
            columns.append(coverage)
            columns += [side.figure(name, coverage) for name in self.figures for side in (left, right)]
        return np.stack(columns, axis=1)


class _Climbed:
    """One ranking in one batch; what several pairs share is worked out once."""

    def __init__(self, ranking: RanksPlan, weights: Floats) -> None:
        self.convention = ranking.convention
        self.total = weights @ ranking.total
        self.climb = ranking.by_confidence.climb(weights)
        self.cmax = self.climb.last_count / self.total

    @cached_property
    def risk(self) -> Floats:
        return _areas.selective_risk(self.climb)

    def figure(self, name: str, coverage: Floats) -> Floats:
        limit = np.minimum(coverage * self.total, self.climb.last_count)
        if name == "risk":
            sums = _areas.truncated(self.climb, limit).last_risk_sum
            return np.divide(sums, limit, out=np.full_like(sums, np.nan), where=limit > 0.0)
        rung = _areas.rung_reaching(self.climb, limit[:, None])[:, 0]
        areas = _areas.cut_areas(self.climb, self.risk, limit, rung)
        if name == "aurc":
            return _conventions.aurc_at(self.climb, areas[0], limit, self.total, self.convention)
        return _conventions.augrc_at(self.climb, areas[1], limit, self.total, self.convention)
