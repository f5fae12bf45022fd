"""The ranks plan: every risk-coverage figure of one ranking, for any batch of cluster weights.

The rows are sorted once by confidence and once by loss; a weight vector then costs two climbs (see `_ladder`)
and the integrals over them (see `_conventions`). Only what the asked-for figures need is worked out.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from abstain.metrics import _areas, _conventions
from abstain.metrics._ladder import Ladder, rungs_ascending, rungs_descending

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from abstain.metrics._ladder import Climb

    Floats = NDArray[np.float64]

FIGURES = (
    "cmax",
    "aurc",
    "augrc",
    "aurc_optimal",
    "augrc_optimal",
    "eaurc",
    "eaugrc",
    "aurc_achievable",
    "aurc_at_coverage",
    "augrc_at_coverage",
)


@dataclass(frozen=True, eq=False)
class RanksPlan:
    """Rows ranked once; call it with weights (resamples, clusters) for values (resamples, figures).

    Attributes:
        figures: which of `FIGURES`, in the order of the columns.
        area_coverage: where the truncated areas end.
        coverage_grid: the coverages at which risk is asked for; one further column each.
        convention: how areas are integrated.
        total: N of each cluster.
        by_confidence: the answered rows, most confident first.
        by_loss: the answered rows, best first, or None when no figure needs it.
    """

    figures: tuple[str, ...]
    area_coverage: float
    coverage_grid: tuple[float, ...]
    convention: str
    total: Floats
    by_confidence: Ladder
    by_loss: Ladder | None
    names: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        risks = tuple(f"risk_at_coverage[{coverage:g}]" for coverage in self.coverage_grid)
        object.__setattr__(self, "names", self.figures + risks)

    @classmethod
    def build(
        cls,
        loss: Floats,
        confidence: Floats,
        answered: NDArray[np.bool_],
        *,
        weight: Floats | None = None,
        cluster: NDArray[np.intp] | None = None,
        figures: tuple[str, ...] = FIGURES,
        area_coverage: float = 1.0,
        coverage_grid: tuple[float, ...] = (),
        convention: str = "trapezoid",
    ) -> RanksPlan:
        """Rank rows; `cluster` numbers clusters from 0 without a gap, one cluster for all when left out."""
        weight = np.ones(len(loss)) if weight is None else weight
        cluster = np.zeros(len(loss), np.intp) if cluster is None else cluster
        clusters = int(cluster.max()) + 1 if len(cluster) else 1
        rows = (cluster[answered], clusters, weight[answered], loss[answered])
        optimal = any(name.endswith("_optimal") or name.startswith("e") for name in figures)
        return cls(
            figures=figures,
            area_coverage=area_coverage,
            coverage_grid=coverage_grid,
            convention=convention,
            total=np.bincount(cluster, weights=weight, minlength=clusters).astype(np.float64),
            by_confidence=Ladder.build(rungs_descending(confidence[answered]), *rows),
            by_loss=Ladder.build(rungs_ascending(loss[answered]), *rows) if optimal else None,
        )

    @property
    def clusters(self) -> int:
        """How many clusters a weight vector has."""
        return len(self.total)

    @property
    def width(self) -> int:
        """How many numbers one resample occupies while it is worked on."""
        ladders = [self.by_confidence] + ([self.by_loss] if self.by_loss else [])
        return max(self.clusters, *(ladder.width for ladder in ladders))

    def __call__(self, weights: Floats) -> Floats:
        """Map weights (resamples, clusters) to values (resamples, figures); NaN where a figure is undefined."""
        work = _Work(self, weights)
        values = np.empty((len(weights), len(self.names)))
        for column, name in enumerate(self.figures):
            values[:, column] = work.figure(name)
        if self.coverage_grid:
            values[:, len(self.figures) :] = work.risk_at_coverages()
        return values


class _Work:
    """One batch in work: what several figures share is worked out once, when first asked for."""

    def __init__(self, plan: RanksPlan, weights: Floats) -> None:
        self.plan = plan
        self.weights = weights
        self.total = weights @ plan.total
        self.climb = plan.by_confidence.climb(weights)
        self.risk = _areas.selective_risk(self.climb)
        self._figures: dict[str, Floats] = {}

    def figure(self, name: str) -> Floats:
        if name not in self._figures:
            self._figures[name] = _FIGURES[name](self)
        return self._figures[name]

    @cached_property
    def limit(self) -> Floats:
        return np.minimum(self.plan.area_coverage * self.total, self.climb.last_count)

    @cached_property
    def rungs(self) -> NDArray[np.intp]:
        """The rung that holds the limit of the truncated areas, then those that reach each coverage of the grid."""
        grid = self.total[:, None] * (np.array(self.plan.coverage_grid) - _areas.TOLERANCE)
        return _areas.rung_reaching(self.climb, np.concatenate([self.limit[:, None], grid], axis=1))

    @cached_property
    def cut_areas(self) -> tuple[Floats, Floats]:
        return _areas.cut_areas(self.climb, self.risk, self.limit, self.rungs[:, 0])

    @cached_property
    def optimal(self) -> Climb:
        ladder = self.plan.by_loss or self.plan.by_confidence
        return ladder.climb(self.weights)

    def aurc(self) -> Floats:
        trapezoid = _areas.risk_area(self.climb, self.risk)
        return _conventions.aurc(self.climb, trapezoid, self.total, self.plan.convention)

    def augrc(self) -> Floats:
        area = self.plan.by_confidence.loss_area(self.weights, self.climb)
        return _conventions.augrc(self.climb, area, self.total, self.plan.convention)

    def aurc_optimal(self) -> Floats:
        convention = self.plan.convention
        # Each item is a working point of its own, so only here does the trapezoid go by single items.
        trapezoid = _areas.single_item_trapezoid(self.optimal) if convention == "trapezoid" else self.total
        return _conventions.aurc(self.optimal, trapezoid, self.total, convention)

    def augrc_optimal(self) -> Floats:
        ladder = self.plan.by_loss or self.plan.by_confidence
        area = ladder.loss_area(self.weights, self.optimal)
        return _conventions.augrc(self.optimal, area, self.total, self.plan.convention)

    def risk_at_coverages(self) -> Floats:
        columns = self.climb.count.shape[1]
        reached = self.rungs[:, 1:]
        found = self.risk.take(np.minimum(reached, columns - 1) + self.climb.row_start[:, None])
        return np.where(reached < columns, found, np.nan)


_FIGURES: dict[str, Callable[[_Work], Floats]] = {
    "cmax": lambda work: work.climb.last_count / work.total,
    "aurc": _Work.aurc,
    "augrc": _Work.augrc,
    "aurc_optimal": _Work.aurc_optimal,
    "augrc_optimal": _Work.augrc_optimal,
    "eaurc": lambda work: work.figure("aurc") - work.figure("aurc_optimal"),
    "eaugrc": lambda work: work.figure("augrc") - work.figure("augrc_optimal"),
    "aurc_achievable": lambda work: _conventions.aurc_achievable(
        work.climb, work.risk, work.total, work.plan.convention
    ),
    "aurc_at_coverage": lambda work: _conventions.aurc_at(
        work.climb, work.cut_areas[0], work.limit, work.total, work.plan.convention
    ),
    "augrc_at_coverage": lambda work: _conventions.augrc_at(
        work.climb, work.cut_areas[1], work.limit, work.total, work.plan.convention
    ),
}
