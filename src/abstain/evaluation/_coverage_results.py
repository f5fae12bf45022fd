"""The results of evaluating prediction intervals, sets and quantiles."""

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
    """The checked settings of an evaluation of intervals or sets.

    Attributes:
        bins: number of strata of width, or None for one per set size.
        eta: how strongly the width criterion penalizes a coverage that differs from the nominal one.
        margin: the difference between coverage and nominal coverage that does not matter for the verdict.
        interval: the method of the confidence intervals of metrics: "jackknife", "percentile", "bca" or "none".
        resamples: number of bootstrap resamples of the clusters.
        seed: the seed of the resamples.
        level: the confidence level of the intervals of metrics; it is not the nominal coverage of the predictions.
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
        """Check the arguments that do not depend on the predictions."""
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
        count: the number of rows, or their weight.
        coverage: the coverage, with its interval over clusters.
        verdict: the verdict by that interval; None if there is no row.
    """

    label: Any
    low: float
    high: float
    count: float
    coverage: Estimate
    verdict: CoverageVerdict | None


@dataclass(frozen=True, eq=False, slots=True)
class NominalResult(Mapping[str, "Estimate"]):
    """The result for one nominal coverage; a mapping from metrics to estimates.

    Attributes:
        nominal: the nominal coverage of the predictions.
        metrics: estimates by name.
        verdict: whether the coverage reaches the nominal one, by its confidence interval.
        strata: coverage by width or by set size.
        groups: coverage within each group, by the name of the grouping.
        width_quantiles: the distribution of width or size: its quantiles at 0, 0.01, ..., 1.
        slab: the slab of worst coverage, if features were passed.
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
        return few_lines(f"nominal {self.nominal:g}: {self.verdict}", lines)

    def __getitem__(self, name: str) -> Estimate:
        return self.metrics[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.metrics)

    def __len__(self) -> int:
        return len(self.metrics)


@dataclass(frozen=True, eq=False, slots=True)
class CoverageResult(Shown):
    """The result of `evaluate_intervals` and `evaluate_sets`.

    Attributes:
        kind: "intervals" or "sets".
        rows: number of evaluated predictions.
        clusters: number of clusters that they belong to.
        by_nominal: one result per nominal coverage, in the order in which they were passed.
        metrics: estimates over all nominal coverages together.
        settings: the settings.
        warnings: warnings that apply to the numbers.
        provenance: the origin of the predictions, for the report.
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
        """Return the estimates of every nominal coverage, or the coverage in every part, as a data frame.

        Args:
            what: "estimates", or "strata" for coverage by width or set size and by group.
            backend: "pandas", "polars" or "pyarrow". Default: the first of these that is installed.
        """
        return coverage_frame(self, what, backend)

    def __repr__(self) -> str:
        lines = [
            f"nominal {each.nominal:g}: {each.verdict}, coverage {each['coverage']}"
            for each in self.by_nominal
        ]
        lines += [f"{name}: {estimate}" for name, estimate in self.metrics.items()]
        return few_lines(f"{self.rows:,} {self.kind} of {self.clusters:,} clusters", lines)


@dataclass(frozen=True, slots=True)
class PitBin:
    """The proportion of true values between two neighbouring quantiles.

    Attributes:
        low: probability of the lower quantile; 0 below the first.
        high: probability of the upper quantile; 1 above the last.
        proportion: the proportion of true values between them; a calibrated forecast has ``high - low``.
    """

    low: float
    high: float
    proportion: Estimate


@dataclass(frozen=True, eq=False, slots=True)
class QuantileResult:
    """The result of `evaluate_quantiles`.

    Attributes:
        pinball: the pinball loss of each probability.
        pit: the histogram of the probability integral transform.
    """

    pinball: Mapping[float, Estimate]
    pit: tuple[PitBin, ...]

    def __repr__(self) -> str:
        lines = [f"pinball loss at {name:g}: {estimate}" for name, estimate in self.pinball.items()]
        return few_lines(f"Quantiles at {len(self.pinball)} probabilities", lines)
