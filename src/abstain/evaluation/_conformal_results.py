"""What the judgement of intervals or sets gives back: frozen results whose numbers carry their intervals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from abstain.evaluation._shown import Shown

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np
    from numpy.typing import NDArray

    from abstain.evaluation._results import Caution
    from abstain.inference import CoverageVerdict, Estimate
    from abstain.metrics._slab import WorstSlab

    Floats = NDArray[np.float64]

__all__ = [
    "ConformalEvaluation",
    "ConformalSettings",
    "LevelResult",
    "PitBin",
    "QuantileEvaluation",
    "Stratum",
]


@dataclass(frozen=True, slots=True)
class ConformalSettings:
    """What was asked for, checked.

    Attributes:
        bins: how many strata of width, or None for one a set size.
        eta: how hard the width criterion punishes a coverage away from the level.
        margin: how far below its level a coverage still counts as covered.
        resamples: how many times the clusters were drawn.
        seed: the seed of the draws.
        confidence_level: the level of the intervals around the figures, not of the predictions.
    """

    bins: int | None
    eta: float
    margin: float
    resamples: int
    seed: int
    confidence_level: float


@dataclass(frozen=True, slots=True)
class Stratum:
    """Coverage in one part of the rows: a stratum of width, or a group.

    Attributes:
        label: the group, or the range of widths or sizes in words.
        low: the smallest width or size of the stratum; NaN for a group.
        high: the largest width or size of the stratum; NaN for a group.
        count: how many rows (or how much weight) it holds.
        coverage: with the interval of the cluster bootstrap.
        verdict: with the exact binomial interval; None where there is no row.
    """

    label: Any
    low: float
    high: float
    count: float
    coverage: Estimate
    verdict: CoverageVerdict | None


@dataclass(frozen=True, eq=False, slots=True)
class LevelResult(Mapping[str, "Estimate"]):
    """Everything about one confidence level of the predictions; a mapping from figures to estimates.

    Attributes:
        level: the level that the predictions claim.
        figures: estimates by name.
        verdict: whether coverage reaches the level, with the exact binomial interval.
        strata: coverage by width or by set size.
        groups: coverage within each group, by the name of the grouping.
        width_quantiles: the distribution of width or size: its quantiles at 0, 0.01, ..., 1.
        slab: the slab of worst coverage, when features were given.
    """

    level: float
    figures: Mapping[str, Estimate]
    verdict: CoverageVerdict
    strata: tuple[Stratum, ...]
    groups: Mapping[str, tuple[Stratum, ...]]
    width_quantiles: Floats
    slab: WorstSlab | None = None

    def __getitem__(self, name: str) -> Estimate:
        return self.figures[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.figures)

    def __len__(self) -> int:
        return len(self.figures)


@dataclass(frozen=True, eq=False, slots=True)
class ConformalEvaluation(Shown):
    """Intervals or sets, judged at each of their levels.

    Attributes:
        kind: "intervals" or "sets".
        rows: how many predictions were judged.
        clusters: how many clusters they belong to.
        levels: one result a level, in the order given.
        figures: estimates that concern all levels together.
        settings: what was asked for.
        cautions: what the reader of the numbers must know.
        provenance: where the predictions came from, for the report.
    """

    kind: str
    rows: int
    clusters: int
    levels: tuple[LevelResult, ...]
    figures: Mapping[str, Estimate]
    settings: ConformalSettings
    cautions: tuple[Caution, ...]
    provenance: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PitBin:
    """How many truths lie between two neighbouring quantiles.

    Attributes:
        low: probability of the lower quantile; 0 below the first.
        high: probability of the upper quantile; 1 above the last.
        share: the share of truths between them; a calibrated forecast has ``high - low``.
    """

    low: float
    high: float
    share: Estimate


@dataclass(frozen=True, eq=False, slots=True)
class QuantileEvaluation:
    """Predictive quantiles, judged.

    Attributes:
        pinball: the pinball loss of each probability.
        pit: the histogram of the probability integral transform.
    """

    pinball: Mapping[float, Estimate]
    pit: tuple[PitBin, ...]
