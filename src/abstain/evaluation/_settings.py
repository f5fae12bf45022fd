"""What was asked for, and of whom: the settings of an evaluation, and the population that it judged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from abstain import _validate
from abstain.errors import ArgumentError
from abstain.metrics.selective import CONVENTIONS

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Population", "Settings"]


@dataclass(frozen=True, slots=True)
class Settings:
    """What was asked for, checked; the same settings on the same items give the same numbers.

    Attributes:
        coverage_grid: coverages at which the selective risk is asked for.
        area_coverage: coverage at which the truncated areas end.
        resamples: how many times the clusters are drawn.
        seed: the seed of the draws.
        level: confidence level of the intervals; a difference is told at ``1 - level``.
        convention: how areas are integrated.
        reference: the system that all others are compared with; every pair when None.
        margin: the smallest difference that would matter, or None.
        simultaneous: True where the intervals of differences hold for a whole family together.
    """

    coverage_grid: tuple[float, ...]
    area_coverage: float
    resamples: int
    seed: int
    level: float
    convention: str
    reference: str | None = None
    margin: float | None = None
    simultaneous: bool = False

    @classmethod
    def checked(
        cls,
        *,
        coverage_grid: Iterable[float],
        area_coverage: float,
        resamples: int,
        seed: int,
        level: float,
        convention: str,
        reference: str | None = None,
        margin: float | None = None,
        simultaneous: bool = False,
    ) -> Settings:
        """Return the settings, or raise an `ArgumentError` that names the one that cannot be."""
        if margin is not None and not _validate.real(margin, "margin") > 0.0:
            raise ArgumentError(f"margin must be greater than 0, got {margin:g}")
        return cls(
            coverage_grid=_validate.coverages(coverage_grid, "coverage_grid"),
            area_coverage=_validate.coverage(area_coverage, "area_coverage"),
            resamples=_validate.whole(resamples, "resamples"),
            seed=_validate.seed(seed),
            level=_validate.level(level),
            convention=_validate.choice(convention, "convention", CONVENTIONS),
            reference=reference,
            margin=None if margin is None else float(margin),
            simultaneous=bool(simultaneous),
        )


@dataclass(frozen=True, slots=True)
class Population:
    """Who was judged: clusters (participants) in all, with judged items, and without any; and the items.

    Attributes:
        total: clusters in the source.
        included: clusters with at least one judged item.
        failed: the rest.
        items: N, the judged items.
        answered: K, the answered ones among them.
        abstained: the declined ones among them.
        items_failed: items for which the run produced nothing.
        items_unscored: items without a truth.
    """

    total: int
    included: int
    failed: int
    items: int
    answered: int
    abstained: int
    items_failed: int
    items_unscored: int
