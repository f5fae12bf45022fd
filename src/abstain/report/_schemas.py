"""What the artifacts hold: the structures that are their JSON Schemas. How they are filled is in `artifact`.

An undefined number is null, never NaN, and its reason stands beside it. JSON has no infinity: an infinite number is
null as well, and the reason says so. The metrics artifact is of version "1"; the one of intervals and sets of version
"2" (version "1" said levels for claims and figures for metrics).
"""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType

Share = Annotated[float, Meta(ge=0.0, le=1.0)]
Interval = Annotated[tuple[float, float], Meta(description="lower and upper end")]


class MetricPart(Struct, kw_only=True):
    """One metric: its value, its interval, and why it is undefined or must not be trusted."""

    value: float | None
    ci95: Interval | None
    n: int
    clusters: int
    drop_rate: float
    reason: str


class Told(Struct, kw_only=True):
    """Who is better: the verdict, the two systems, and what it rests on."""

    verdict: Annotated[
        str | None,
        Meta(description="left, right or inconclusive; null if there is no verdict, see no_verdict"),
    ]
    no_verdict: Annotated[str, Meta(description="why the verdict is null; empty otherwise")]
    basis: Annotated[str, Meta(description="matched coverage, all items, answered items, or own coverages")]
    coverage: Annotated[float | None, Meta(description="the coverage of both values, if they share one")]
    left: str
    right: str
    p: float | None
    p_holm: float | None
    interval: Interval | None
    method: str


class Delta(Told, kw_only=True):
    """A difference, right - left, with its percentile interval beside the one that the verdict rests on."""

    delta: float | None
    ci95: Interval | None


class MetricDelta(Told, kw_only=True):
    """The difference of a metric that was asked for by name: what a `MetricPart` holds, and the verdict."""

    value: float | None
    ci95: Interval | None
    n: int
    clusters: int
    drop_rate: float
    reason: str


class DifferencePart(Told, kw_only=True):
    """One difference, right - left, of one metric, confidence and group; `matched` if it is at matched coverage."""

    metric: str
    confidence: str
    group: str
    matched: bool
    left_value: float | None
    right_value: float | None
    left_coverage: float | None
    right_coverage: float | None
    value: float | None
    winner: str | None
    reason: str
    sentence: str


class HeadlinePart(Struct, kw_only=True):
    """The conclusion of a comparison, by the first requested metric that has a direction."""

    metric: str
    basis: str
    coverage: float | None
    winner: str | None
    difference: float | None
    low: float | None
    high: float | None
    sentence: str


class GroupPart(Struct, kw_only=True):
    """The metrics of one group."""

    label: str
    values: dict[str, str | float | int | bool | None]
    items: int
    answered: int
    clusters: int
    note: str
    metrics: dict[str, MetricPart]


class GapPart(Struct, kw_only=True):
    """The worst group of a metric against all other rows."""

    group: str
    coverage: Annotated[float | None, Meta(description="the coverage of both, at matched coverage")]
    worst: MetricPart
    rest: MetricPart
    gap: MetricPart


class DefinitionPart(Struct, kw_only=True):
    """What a metric is."""

    direction: str
    unit: str
    needs: list[str]
    definition: str


class OutcomesPart(Struct, kw_only=True):
    """What became of every item."""

    right: int
    wrong: int
    abstained: int
    failed: int
    unscored: int


class MetricsPart(Struct, kw_only=True):
    """Metrics over all rows and by group."""

    outcomes: OutcomesPart
    definitions: dict[str, DefinitionPart]
    overall: dict[str, MetricPart]
    by: list[str]
    groups: list[GroupPart]
    gaps: dict[str, GapPart]


class PairedMetricsPart(Struct, kw_only=True):
    """Metrics of both sides of a comparison, and their differences, right - left."""

    input_0: MetricsPart
    input_1: MetricsPart
    deltas: dict[str, MetricDelta]
    group_deltas: dict[str, dict[str, MetricDelta]]


class Input(Struct, kw_only=True):
    """Where the items came from."""

    path: str | None
    run_id: str | int | None
    git_commit: str | None
    mode: str | None
    sha256: str | None


class CalibrationInput(Struct, kw_only=True):
    """A calibrator that a confidence rests on, and the run that it was fitted on."""

    method: str
    features: list[str]
    path: str | None
    run_id: str | int | None
    mode: str | None
    sha256: str | None


class PopulationPart(Struct, kw_only=True):
    """Who was judged; participants are the clusters."""

    participants_total: int
    participants_included: int
    participants_failed: int
    items_total: int
    items_answered: int
    items_abstained: int
    items_failed: int
    items_unscored: int


class LossPart(Struct, kw_only=True):
    """What a wrong answer costs."""

    name: str
    definition: str
    raw_multiplier: float
    rule: Annotated[str, Meta(description="why this loss was taken")]


class Interpretation(Struct, kw_only=True):
    """Room for improvement, in percent."""

    aurc_gap_pct: float | None
    augrc_gap_pct: float | None
    achievable_gain_pct: float | None


class AreaAtCoverage(Struct, kw_only=True):
    """An area up to a coverage."""

    requested: Share
    used: Share
    value: float | None


class RiskAtCoverage(Struct, kw_only=True):
    """The selective risk at the first working point that reaches a coverage."""

    requested: Share
    achieved: Share
    value: float


class IntervalsRecord(Struct, kw_only=True):
    """Intervals of the metrics; those of the bootstrap are percentile intervals at the level that it names."""

    cmax: Interval | None
    aurc_full: Interval | None
    augrc_full: Interval | None
    aurc_at_c: Interval | None
    augrc_at_c: Interval | None
    aurc_optimal: Interval | None
    augrc_optimal: Interval | None
    eaurc: Interval | None
    eaugrc: Interval | None
    aurc_achievable: Interval | None
    mae_at_coverage: dict[str, Interval | None]


class OwnIntervals(IntervalsRecord, kw_only=True):
    """The intervals that summaries, reports and verdicts go by, and how they were made.

    `methods` names the metrics whose interval was made in another way than most.
    """

    method: str
    level: Share
    methods: dict[str, str]


class DropRate(Struct, kw_only=True):
    """The share of resamples in which a metric was undefined."""

    mae_at_coverage: dict[str, Share]


class Bootstrap(Struct, kw_only=True, omit_defaults=True):
    """The percentile intervals of the cluster bootstrap; empty when no resamples were drawn."""

    seed: int | UnsetType = UNSET
    n_resamples: int | UnsetType = UNSET
    level: float | UnsetType = UNSET
    n_clusters: int | UnsetType = UNSET
    ci95: IntervalsRecord | UnsetType = UNSET
    drop_rate: DropRate | UnsetType = UNSET


class Curve(Struct, kw_only=True):
    """The working points, most confident first; of very many an even choice, which `points` tells from all."""

    points: int
    coverage: list[float]
    selective_risk: list[float]
    generalized_risk: list[float]
    threshold: list[float]


class Ties(Struct, kw_only=True):
    """How far the order of tied items alone could move the AURC."""

    tied_share: Share
    aurc_best: float | None
    aurc_worst: float | None


class WarningPart(Struct, kw_only=True):
    """What the reader of the numbers must know."""

    code: str
    message: str


class VariantPart(Struct, kw_only=True):
    """All metrics of one confidence."""

    cmax: float | None
    aurc_full: float | None
    augrc_full: float | None
    aurc_optimal: float | None
    augrc_optimal: float | None
    eaurc: float | None
    eaugrc: float | None
    aurc_achievable: float | None
    interpretation: Interpretation
    aurc_at_c: AreaAtCoverage
    augrc_at_c: AreaAtCoverage
    mae_at_coverage: dict[str, RiskAtCoverage | None]
    intervals: OwnIntervals
    bootstrap: Bootstrap
    curve: Curve
    tie_sensitivity: Ties
    reasons: dict[str, str]
    warnings: list[WarningPart]


class VariantPair(Struct, kw_only=True):
    """The metrics of one confidence on both sides of a comparison."""

    input_0: VariantPart
    input_1: VariantPart


class NoComparison(Struct, kw_only=True):
    """One input: nothing is compared."""

    enabled: bool = False
    intersection_only: bool = False
    deltas: None = None


class ComparisonPart(Struct, kw_only=True):
    """Two inputs: the differences, and which participants they rest on."""

    enabled: bool
    intersection_only: bool
    headline: HeadlinePart | None
    deltas: dict[str, dict[str, Delta]]
    differences: list[DifferencePart]
    participants_left_only: int
    participants_right_only: int
    participants_overlap_total: int
    participants_overlap_included: int
    participants_failed_left: int
    participants_failed_right: int


class Head(Struct, kw_only=True):
    """What both kinds of artifact share."""

    schema_version: str = "1"
    created_at: str
    abstain_version: str
    kernel: str
    convention: str
    inputs: list[Input]
    calibrations: list[CalibrationInput]
    population: PopulationPart
    loss: LossPart | None
    warnings: list[WarningPart]


class SingleArtifact(Head, kw_only=True):
    """The artifact of one input."""

    confidence_variants: dict[str, VariantPart]
    comparison: NoComparison
    metrics: MetricsPart | UnsetType = UNSET


class PairedArtifact(Head, kw_only=True):
    """The artifact of two inputs."""

    confidence_variants: dict[str, VariantPair]
    comparison: ComparisonPart
    metrics: PairedMetricsPart | UnsetType = UNSET


class EstimatePart(Struct, kw_only=True):
    """A number with its interval; `interval` is null when there is none, and an infinite end of it is null."""

    value: float | None
    interval: tuple[float | None, float | None] | None
    level: float
    se: float | None
    method: str
    n: int
    clusters: int
    resamples: int
    drop_rate: float
    reason: str


class VerdictPart(Struct, kw_only=True):
    """Whether coverage reaches its claim: covered, over-covered, under-covered or inconclusive."""

    verdict: str
    reason: str
    margin: float
    coverage: EstimatePart


class StratumPart(Struct, kw_only=True):
    """Coverage in one stratum of width or in one group."""

    label: str | int | float | bool
    low: float | None
    high: float | None
    count: float
    coverage: EstimatePart
    verdict: VerdictPart | None


class SlabPart(Struct, kw_only=True):
    """The slab of worst coverage, judged on rows held out."""

    coverage: float | None
    found_coverage: float
    count: float
    share: float
    direction: list[float]
    low: float
    high: float
    reason: str


class ClaimPart(Struct, kw_only=True):
    """Everything about one claim of the predictions."""

    claim: float
    verdict: VerdictPart
    metrics: dict[str, EstimatePart]
    strata: list[StratumPart]
    groups: dict[str, list[StratumPart]]
    width_quantiles: list[float | None]
    worst_slab: SlabPart | None


class InputPart(Struct, kw_only=True):
    """Where the predictions came from, and which columns were read."""

    path: str | None
    sha256: str | None
    columns: dict[str, str | list[str]]


class SettingsPart(Struct, kw_only=True):
    """What was asked for; `level` is that of the intervals around the metrics."""

    bins: int | None
    eta: float
    margin: float
    resamples: int
    seed: int
    level: float


class ConformalArtifact(Struct, kw_only=True):
    """What `abstain intervals` and `abstain sets` write."""

    schema_version: str = "2"
    kind: str
    created_at: str
    abstain_version: str
    kernel: str
    input: InputPart
    rows: int
    clusters: int
    settings: SettingsPart
    claims: list[ClaimPart]
    metrics: dict[str, EstimatePart]
    warnings: list[WarningPart]
