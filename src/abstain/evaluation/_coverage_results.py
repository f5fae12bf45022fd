"""What the judgement of intervals or sets gives back: frozen results whose numbers carry their intervals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from abstain import _validate
from abstain._text import few_lines
from abstain.evaluation._frames import coverage_frame
from abstain.evaluation._shown import Shown
from abstain.inference import resamples_wanted
from abstain.metrics.intervals import checked_eta

if TYPE_CHECKING:
    from collections.abc import Iterator

    from abstain._types import Floats
    from abstain.errors import ResultWarning
    from abstain.inference import CoverageVerdict, Estimate
    from abstain.metrics.coverage import WorstSlab


@dataclass(frozen=True, slots=True)
class CoverageSettings:
    """What was asked for, checked.

    Attributes:
        bins: how many strata of width, or None for one per set size.
        eta: how hard the width criterion punishes a coverage away from the claim.
        margin: the distance of a coverage from its claim that does not matter to the verdict.
        interval: how the intervals around the metrics are made: "jackknife", "percentile", "bca" or "none".
        resamples: how many times the clusters were drawn.
        seed: the seed of the draws.
        level: the level of the intervals around the metrics, not what the predictions claim.
    """

    bins: int | None
    eta: float
    margin: float
    interval: str
    resamples: int
    seed: int
    level: float

    @classmethod
    def checked(
        cls,
        *,
        bins: int | None,
        eta: float,
        margin: float,
        interval: str,
        resamples: int | None,
        seed: int,
        level: float,
    ) -> CoverageSettings:
        """Check what a user asked for; what goes with the predictions is checked against them."""
        return cls(
            bins=bins,
            eta=checked_eta(eta),
            margin=_validate.real(margin, "margin"),
            interval=interval,
            resamples=resamples_wanted(resamples, interval),
            seed=_validate.seed(seed),
            level=_validate.level(level),
        )


@dataclass(frozen=True, slots=True)
class Stratum:
    """Coverage in one part of the rows: a stratum of width, or a group.

    Attributes:
        label: the group, or the range of widths or sizes in words.
        low: the smallest width or size of the stratum; NaN for a group.
        high: the largest width or size of the stratum; NaN for a group.
        count: how many rows (or how much weight) it holds.
        coverage: with its interval over clusters.
        verdict: by that interval; None where there is no row.
    """

    label: Any
    low: float
    high: float
    count: float
    coverage: Estimate
    verdict: CoverageVerdict | None


@dataclass(frozen=True, eq=False, slots=True)
class NominalResult(Mapping[str, "Estimate"]):
    """Everything about one claim of the predictions; a mapping from metrics to estimates.

    Attributes:
        nominal: the coverage that the predictions claim.
        metrics: estimates by name.
        verdict: whether coverage reaches the claim, by its interval.
        strata: coverage by width or by set size.
        groups: coverage within each group, by the name of the grouping.
        width_quantiles: the distribution of width or size: its quantiles at 0, 0.01, ..., 1.
        slab: the slab of worst coverage, when features were given.
    """

    nominal: float
    metrics: Mapping[str, Estimate]
    verdict: CoverageVerdict
    strata: tuple[Stratum, ...]
    groups: Mapping[str, tuple[Stratum, ...]]
    width_quantiles: Floats
    slab: WorstSlab | None = None

    def __repr__(self) -> str:
        lines = [f"{name}: {estimate}" for name, estimate in self.metrics.items()]
        return few_lines(f"claim {self.nominal:g}: {self.verdict}", lines)

    def __getitem__(self, name: str) -> Estimate:
        return self.metrics[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.metrics)

    def __len__(self) -> int:
        return len(self.metrics)


@dataclass(frozen=True, eq=False, slots=True)
class CoverageResult(Shown):
    """Intervals or sets, judged by each of their claims.

    Attributes:
        kind: "intervals" or "sets".
        rows: how many predictions were judged.
        clusters: how many clusters they belong to.
        by_nominal: one result per claim, in the order given.
        metrics: estimates that concern all claims together.
        settings: what was asked for.
        warnings: what the reader of the numbers must know.
        provenance: where the predictions came from, for the report.
    """

    kind: str
    rows: int
    clusters: int
    by_nominal: tuple[NominalResult, ...]
    metrics: Mapping[str, Estimate]
    settings: CoverageSettings
    warnings: tuple[ResultWarning, ...]
    provenance: Mapping[str, Any] = field(default_factory=dict)

    def to_frame(self, what: str = "estimates", *, backend: str | None = None) -> Any:
        """Return the estimates of every claim, or the coverage in every part of the rows, as a data frame.

        Args:
            what: "estimates", or "strata" for coverage by width or set size and by group.
            backend: "pandas", "polars" or "pyarrow"; the first of these that is installed when left out.
        """
        return coverage_frame(self, what, backend)

    def __repr__(self) -> str:
        lines = [
            f"claim {each.nominal:g}: {each.verdict}, coverage {each['coverage']}" for each in self.by_nominal
        ]
        lines += [f"{name}: {estimate}" for name, estimate in self.metrics.items()]
        return few_lines(f"{self.rows:,} {self.kind} of {self.clusters:,} clusters", lines)


@dataclass(frozen=True, slots=True)
class PitBin:
    """How many truths lie between two neighbouring quantiles.

    Attributes:
        low: probability of the lower quantile; 0 below the first.
        high: probability of the upper quantile; 1 above the last.
        proportion: the share of truths between them; a calibrated forecast has ``high - low``.
    """

    low: float
    high: float
    proportion: Estimate


@dataclass(frozen=True, eq=False, slots=True)
class QuantileResult:
    """Predictive quantiles, judged.

    Attributes:
        pinball: the pinball loss of each probability.
        pit: the histogram of the probability integral transform.
    """

    pinball: Mapping[float, Estimate]
    pit: tuple[PitBin, ...]

    def __repr__(self) -> str:
        lines = [f"pinball loss at {name:g}: {estimate}" for name, estimate in self.pinball.items()]
        return few_lines(f"Quantiles at {len(self.pinball)} probabilities", lines)
