"""What an evaluation gives back: frozen results whose numbers carry their intervals and their cautions.

Nothing is computed here but percentages of what is already there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from abstain import _validate
from abstain.evaluation._shown import Shown
from abstain.metrics._areas import CONVENTIONS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from abstain.calibrators import Calibration
    from abstain.evaluation._metrics import MetricDeltas, MetricTable
    from abstain.evaluation._profile import Basis, Profile, Progress
    from abstain.inference import Estimate
    from abstain.losses import ItemLoss
    from abstain.metrics.selective import RiskCoverageCurve, TieSensitivity

__all__ = [
    "Caution",
    "Comparison",
    "Evaluation",
    "Overlap",
    "Population",
    "Settings",
    "VariantDelta",
    "VariantResult",
]

# The reason of an area where nothing was answered: 0 is the best value there is, and must not pass for one.
EMPTY_RANGE = "nothing was answered: the area over an empty range, no achievement"


@dataclass(frozen=True, slots=True)
class Caution:
    """Something that the reader of a number must know: a stable code, and a sentence."""

    code: str
    message: str

    def __str__(self) -> str:
        return self.message


@dataclass(frozen=True, slots=True)
class Settings:
    """What was asked for, checked; the same settings on the same items give the same numbers."""

    coverage_grid: tuple[float, ...]
    area_coverage: float
    resamples: int
    seed: int
    level: float
    convention: str

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
    ) -> Settings:
        """Return the settings, or raise an `ArgumentError` that names the one that cannot be."""
        return cls(
            coverage_grid=_validate.coverages(coverage_grid, "coverage_grid"),
            area_coverage=_validate.coverage(area_coverage, "area_coverage"),
            resamples=_validate.whole(resamples, "resamples"),
            seed=_validate.seed(seed),
            level=_validate.level(level),
            convention=_validate.choice(convention, "convention", CONVENTIONS),
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


@dataclass(frozen=True, eq=False, slots=True)
class VariantResult:
    """All figures of one confidence, each an `Estimate`.

    Attributes:
        name: the confidence.
        cmax: largest coverage that can be reached, K / N.
        aurc: area under the risk-coverage curve.
        augrc: area under the generalized risk-coverage curve.
        aurc_optimal: the AURC of a perfect ranking.
        augrc_optimal: the AUGRC of a perfect ranking.
        eaurc: excess AURC.
        eaugrc: excess AUGRC.
        aurc_achievable: AURC of the lower convex hull.
        aurc_at_coverage: AURC up to the area coverage.
        augrc_at_coverage: AUGRC up to the area coverage.
        risk_at_coverage: selective risk at each coverage of the grid.
        curve: the working points.
        ties: how far the order of tied items could move the AURC.
        cautions: what the reader of these numbers must know.
    """

    name: str
    cmax: Estimate
    aurc: Estimate
    augrc: Estimate
    aurc_optimal: Estimate
    augrc_optimal: Estimate
    eaurc: Estimate
    eaugrc: Estimate
    aurc_achievable: Estimate
    aurc_at_coverage: Estimate
    augrc_at_coverage: Estimate
    risk_at_coverage: Mapping[float, Estimate]
    curve: RiskCoverageCurve
    ties: TieSensitivity
    cautions: tuple[Caution, ...]

    @property
    def aurc_gap_pct(self) -> float:
        """Excess AURC in percent of the optimal AURC; 0 when that is 0."""
        return _percent(self.eaurc.value, self.aurc_optimal.value)

    @property
    def augrc_gap_pct(self) -> float:
        """Excess AUGRC in percent of the optimal AUGRC; 0 when that is 0."""
        return _percent(self.eaugrc.value, self.augrc_optimal.value)

    @property
    def achievable_gain_pct(self) -> float:
        """What the hull saves, in percent of the AURC; 0 when that is 0."""
        return _percent(self.aurc.value - self.aurc_achievable.value, self.aurc.value)


@dataclass(frozen=True, eq=False, slots=True)
class VariantDelta:
    """The differences of one confidence, right - left, each an `Estimate`; the fields are those of `VariantResult`."""

    name: str
    cmax: Estimate
    aurc: Estimate
    augrc: Estimate
    aurc_optimal: Estimate
    augrc_optimal: Estimate
    eaurc: Estimate
    eaugrc: Estimate
    aurc_achievable: Estimate
    aurc_at_coverage: Estimate
    augrc_at_coverage: Estimate
    risk_at_coverage: Mapping[float, Estimate]


@dataclass(frozen=True, eq=False, slots=True)
class Evaluation(Shown, Mapping[str, VariantResult]):
    """The result of `evaluate`: one `VariantResult` a confidence, by name.

    Attributes:
        variants: the results.
        population: who was judged.
        loss: what a wrong answer costs, by item.
        settings: what was asked for.
        provenance: where the items came from.
        cautions: what holds for all variants.
        cluster_noun: what a cluster is called.
        calibrations: the artifacts that calibrated variants rest on.
        metrics: the table of further metrics, where some were asked for.
        basis: the judged items, losses and confidences that all this was made from.
    """

    variants: Mapping[str, VariantResult]
    population: Population
    loss: ItemLoss
    settings: Settings
    provenance: Mapping[str, object]
    cautions: tuple[Caution, ...]
    cluster_noun: str = "cluster"
    calibrations: tuple[Calibration, ...] = ()
    metrics: MetricTable | None = None
    basis: Basis = field(repr=False, kw_only=True)

    def profile(self, *, most: int = 400, progress: Progress | None = None) -> Profile:
        """Return what pictures are made of: working points with intervals, reference curves, contrasts, reliability.

        The intervals come from the same draws as those of the figures.

        Args:
            most: about how many working points each confidence has at most; a longer curve is thinned.
            progress: called with the number of resamples done since the last call.
        """
        from abstain.evaluation._profile import profile_of  # noqa: PLC0415

        return profile_of(self.basis, most=_validate.whole(most, "most", least=2), progress=progress)

    def __getitem__(self, name: str) -> VariantResult:
        return self.variants[_validate.choice(name, "confidence", self.variants)]

    def __contains__(self, name: object) -> bool:
        return name in self.variants

    def __iter__(self) -> Iterator[str]:
        return iter(self.variants)

    def __len__(self) -> int:
        return len(self.variants)

    def __repr__(self) -> str:
        lines = [f"  {name}: AURC {result.aurc}, AUGRC {result.augrc}" for name, result in self.items()]
        lines += [f"  {name}: {estimate}" for name, estimate in (self.metrics or {}).items()]
        return "\n".join([f"Evaluation of {self.population.items} items", *lines])


@dataclass(frozen=True, slots=True)
class Overlap:
    """Which clusters a comparison rests on."""

    intersection_only: bool
    left_only: int
    right_only: int
    total: int
    included: int
    failed_left: int
    failed_right: int


@dataclass(frozen=True, eq=False, slots=True)
class Comparison(Shown):
    """The result of `compare`: both sides over the clusters that they share, and the differences right - left."""

    left: Evaluation
    right: Evaluation
    deltas: Mapping[str, VariantDelta]
    overlap: Overlap
    population: Population
    cautions: tuple[Caution, ...]
    metrics: MetricDeltas | None = None

    def __repr__(self) -> str:
        lines = [f"  {name}: AURC {delta.aurc}, AUGRC {delta.augrc}" for name, delta in self.deltas.items()]
        lines += [f"  {name}: {estimate}" for name, estimate in (self.metrics or {}).items()]
        return "\n".join([f"Comparison over {self.overlap.included} clusters, right - left", *lines])


def _percent(part: float, whole: float) -> float:
    return 100.0 * part / whole if whole else 0.0
