"""Evaluation: what was asked, and every estimate that answers it.

`evaluate` judges one set of items under one or more confidences; `compare` judges two sets over the clusters
that they share and estimates the differences, right - left, with the same draws on both sides. Both return
frozen results whose numbers carry their intervals, and whose cautions travel with them into every output.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from abstain.confidence import NO_CONFIDENCE
from abstain.errors import DataError
from abstain.evaluation._cautions import comparison_cautions, general_cautions, variant_cautions
from abstain.evaluation._check import Availability, ClusterSizes, SignalSummary, SourceCheck, check
from abstain.evaluation._conditions import Condition, parse_condition
from abstain.evaluation._confidences import load_calibrations, variant_confidences
from abstain.evaluation._gate import GateCheck, GateResult, gate
from abstain.evaluation._matching import Matching
from abstain.evaluation._metrics import (
    GroupGap,
    GroupResult,
    MetricDeltas,
    MetricTable,
    TablePlans,
    asked_metrics,
    metric_deltas,
    table_loss,
)
from abstain.evaluation._profile import Basis, Line, Profile, WorkingPoints
from abstain.evaluation._results import (
    EMPTY_RANGE,
    Caution,
    Comparison,
    Evaluation,
    Overlap,
    Population,
    Settings,
    VariantDelta,
    VariantResult,
)
from abstain.evaluation._systems import compare_systems
from abstain.evaluation._systems_results import (
    Rank,
    SystemDifference,
    SystemResult,
    SystemsComparison,
    SystemsSettings,
)
from abstain.inference import Draws, Estimate, estimates, points, replicates
from abstain.losses import common_loss, item_loss
from abstain.metrics._ranks import FIGURES, RanksPlan
from abstain.metrics.abstention import population_table
from abstain.metrics.selective import risk_coverage_curve, tie_sensitivity

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from abstain.calibrators import Calibration
    from abstain.evaluation._confidences import CalibrationLike
    from abstain.items import Items
    from abstain.losses import ItemLoss, Loss
    from abstain.metrics.registry import MetricLike, MetricSpecification

    Floats = NDArray[np.float64]
    Progress = Callable[[int], None]

__all__ = [
    "Availability",
    "Basis",
    "Caution",
    "ClusterSizes",
    "Comparison",
    "Condition",
    "Evaluation",
    "GateCheck",
    "GateResult",
    "GroupGap",
    "GroupResult",
    "Line",
    "Matching",
    "MetricDeltas",
    "MetricTable",
    "Overlap",
    "Population",
    "Profile",
    "Rank",
    "Settings",
    "SignalSummary",
    "SourceCheck",
    "SystemDifference",
    "SystemResult",
    "SystemsComparison",
    "SystemsSettings",
    "VariantDelta",
    "VariantResult",
    "WorkingPoints",
    "check",
    "compare",
    "compare_systems",
    "evaluate",
    "gate",
    "parse_condition",
]

DEFAULT_GRID = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)


def evaluate(
    items: Items,
    *,
    confidence: str | Sequence[str] | None = None,
    calibration: CalibrationLike = None,
    metrics: MetricLike | Iterable[MetricLike] | None = None,
    by: str | Sequence[str] | None = None,
    loss: Loss | None = None,
    coverage_grid: Iterable[float] = DEFAULT_GRID,
    area_coverage: float = 0.5,
    resamples: int = 10_000,
    seed: int = 42,
    level: float = 0.95,
    convention: str = "trapezoid",
    progress: Progress | None = None,
) -> Evaluation:
    """Judge items that may be abstained from, under one or more confidences.

    Args:
        items: the items.
        confidence: names of variants or signals, "default", "all", or a sequence of those; when left out,
            "default" unless `metrics` are asked for.
        calibration: the artifact that calibrated variants need, or its path; several in a sequence.
        metrics: further metrics, by name, as objects or as import paths; see `abstain.metrics.registry`.
        by: one or more metadata columns; every one of the metrics is also given by group.
        loss: "abs", "abs_norm", "zero_one", a function of (truth, prediction), or one number per item; when left
            out, what the source declares or its labels imply, see `abstain.losses`.
        coverage_grid: coverages at which the selective risk is asked for.
        area_coverage: coverage at which the truncated areas end.
        resamples: how many times the clusters are drawn; 0 for no intervals.
        seed: the same seed gives the same intervals.
        level: confidence level of the intervals.
        convention: how areas are integrated: "trapezoid", "interpolated", "mean" or "torch-uncertainty".
        progress: called with the number of resamples done since the last call.

    >>> from abstain import Items
    >>> truth, prediction, sure = [0, 1, 1, 0], [0, 1, 0, None], [0.9, 0.8, 0.3, 0.1]
    >>> items = Items.from_arrays(truth, prediction, abstained=[0, 0, 0, 1], confidence=sure)
    >>> result = evaluate(items, loss="zero_one", resamples=200)
    >>> print(result["confidence"].cmax)
    0.750 [0.250, 1.000]
    """
    settings = Settings.checked(
        coverage_grid=coverage_grid,
        area_coverage=area_coverage,
        resamples=resamples,
        seed=seed,
        level=level,
        convention=convention,
    )
    calibrations = load_calibrations(calibration)
    asked = asked_metrics(metrics, by)
    side = _Side.prepare(items, items.judged, confidence, loss, settings, calibrations, asked)
    table = side.metric_plans(asked, by)
    draws = Draws(side.clusters, settings.resamples, settings.seed)
    replicated = replicates([*side.plans.values(), *(table.ordered if table else [])], draws, progress)
    evaluation = side.evaluation(dict(zip(side.plans, replicated, strict=False)), draws, _population(items))
    if table is None:
        return evaluation
    made = table.table(replicated[len(side.plans) :], draws, level=settings.level)
    return replace(evaluation, metrics=made)


def compare(
    left: Items,
    right: Items,
    *,
    confidence: str | Sequence[str] | None = None,
    calibration: CalibrationLike = None,
    metrics: MetricLike | Iterable[MetricLike] | None = None,
    by: str | Sequence[str] | None = None,
    loss: Loss | None = None,
    coverage_grid: Iterable[float] = DEFAULT_GRID,
    area_coverage: float = 0.5,
    resamples: int = 10_000,
    seed: int = 42,
    level: float = 0.95,
    convention: str = "trapezoid",
    intersection_only: bool = False,
    progress: Progress | None = None,
) -> Comparison:
    """Judge two sets of items over the same clusters, and the differences right - left.

    Only clusters that both sides have judged items for enter. If the sides do not hold the same clusters to
    begin with, that is an error unless `intersection_only` is set. The other arguments are those of
    `evaluate`; a loss given as an array is not possible here, because the sides have rows of their own.

    >>> from abstain import Items
    >>> truth, sure = [0, 1, 1, 0], [0.9, 0.8, 0.3, 0.1]
    >>> left = Items.from_arrays(truth, [0, 0, 0, 1], confidence=sure)
    >>> right = Items.from_arrays(truth, [0, 1, 1, 1], confidence=sure)
    >>> print(compare(left, right, loss="zero_one", resamples=200).deltas["confidence"].augrc)
    -0.250 [-0.500, 0.000]
    """
    settings = Settings.checked(
        coverage_grid=coverage_grid,
        area_coverage=area_coverage,
        resamples=resamples,
        seed=seed,
        level=level,
        convention=convention,
    )
    if loss is not None and not isinstance(loss, str) and not callable(loss):
        raise DataError(
            "compare needs a loss by name or as a function: an array cannot fit the rows of both sides"
        )
    calibrations = load_calibrations(calibration)
    overlap, kept = _overlap(left, right, intersection_only=intersection_only)
    asked = asked_metrics(metrics, by)
    sides = []
    shared = [items.judged.take(np.isin(items.judged.cluster, kept)) for items in (left, right)]
    ranked = confidence is not None or not asked
    if loss is None and (ranked or any("loss" in metric.needs for metric in asked)):
        loss = common_loss(shared)[0].name
    for items, judged in zip((left, right), shared, strict=True):
        sides.append(_Side.prepare(items, judged, confidence, loss, settings, calibrations, asked))
    tables = [side.metric_plans(asked, by) for side in sides]
    draws = Draws(len(kept), settings.resamples, settings.seed)
    pairs = [(number, name) for number, side in enumerate(sides) for name in side.plans]
    plans = [sides[number].plans[name] for number, name in pairs]
    tabled = [plan for table in tables if table for plan in table.ordered]
    weighed = replicates([*plans, *tabled], draws, progress)
    replicated = dict(zip(pairs, weighed, strict=False))
    evaluations = []
    for number, side in enumerate(sides):
        own = {name: values for (owner, name), values in replicated.items() if owner == number}
        evaluations.append(side.evaluation(own, draws, _shared_population(side, overlap)))
    deltas = {
        name: _delta(name, (sides[0], sides[1]), (replicated[0, name], replicated[1, name]), draws)
        for name in evaluations[0]
        if name in evaluations[1]
    }
    if not deltas and not asked:
        raise DataError("the two sides have no confidence in common; name one that both can serve")
    table_deltas = None
    if tables[0] and tables[1]:
        middle = len(pairs) + len(tables[0].ordered)
        halves = (weighed[len(pairs) : middle], weighed[middle:])
        for number, table in enumerate((tables[0], tables[1])):
            made = table.table(halves[number], draws, level=settings.level)
            evaluations[number] = replace(evaluations[number], metrics=made)
        table_deltas = metric_deltas((tables[0], tables[1]), halves, draws, level=settings.level)
    return Comparison(
        left=evaluations[0],
        right=evaluations[1],
        deltas=deltas,
        overlap=overlap,
        population=evaluations[0].population,
        cautions=comparison_cautions(deltas, evaluations),
        metrics=table_deltas,
    )


def judge_weighted(items: Items, loss: Loss | None, settings: Settings, population: Population) -> Evaluation:
    """Judge items that each stand for several alike, without resamples; see `abstain.scan`."""
    side = _Side.prepare(items, items, tuple(items.signals), loss, settings, (), ())
    nothing = {name: np.empty((0, len(plan.names))) for name, plan in side.plans.items()}
    return side.evaluation(nothing, Draws(max(population.included, 1), 0, settings.seed), population)


@dataclass(frozen=True, eq=False, slots=True)
class _Side:
    """Judged items with their loss, and one plan a confidence, ready to be weighed."""

    source: Items
    judged: Items
    loss: ItemLoss
    confidences: Mapping[str, Floats]
    cautions: Mapping[str, tuple[Caution, ...]]
    plans: Mapping[str, RanksPlan]
    settings: Settings
    calibrations: Sequence[Calibration]
    weight: Floats | None = None

    @classmethod
    def prepare(
        cls,
        source: Items,
        judged: Items,
        confidence: str | Sequence[str] | None,
        loss: Loss | None,
        settings: Settings,
        calibrations: Sequence[Calibration],
        asked: Sequence[MetricSpecification],
    ) -> _Side:
        weight = judged.weight
        if not len(judged):
            raise DataError("there is no item to judge: none is answered or abstained")
        if confidence is None and asked:
            measured = table_loss(source, judged, loss, asked)
            return cls(source, judged, measured, {}, {}, {}, settings, calibrations)
        if loss is None or isinstance(loss, str) or callable(loss):
            measured = item_loss(judged, loss)
        else:
            everything = item_loss(source, loss)
            measured = replace(everything, values=everything.values[np.isin(source.outcome, (0, 1))])
        found = variant_confidences("default" if confidence is None else confidence, judged, calibrations)
        confidences = {name: variant.values for name, variant in found.items()}
        cautions = {name: variant.cautions for name, variant in found.items()}
        if not found:
            cautions = {"": (Caution("no_confidence", NO_CONFIDENCE),)}
        # Variants that are the same numbers under another name share their plan, and so are weighed once.
        built: dict[bytes, RanksPlan] = {}
        plans = {}
        for name, values in confidences.items():
            key = values.tobytes()
            if key not in built:
                built[key] = RanksPlan.build(
                    measured.values,
                    values,
                    judged.answered,
                    weight=weight,
                    # Without resamples clusters do not matter, and a single one costs much less memory.
                    cluster=judged.cluster_index if settings.resamples else None,
                    area_coverage=settings.area_coverage,
                    coverage_grid=settings.coverage_grid,
                    convention=settings.convention,
                )
            plans[name] = built[key]
        return cls(source, judged, measured, confidences, cautions, plans, settings, calibrations, weight)

    @property
    def clusters(self) -> int:
        return len(self.judged.cluster_ids)

    def metric_plans(
        self, asked: Sequence[MetricSpecification], by: str | Sequence[str] | None
    ) -> TablePlans | None:
        """The plans of a metric table; where no confidence was asked for, the one that the items state serves."""
        if not asked:
            return None
        stated = self.judged.signals.get("confidence")
        confidences = self.confidences or ({"confidence": stated.values} if stated else {})
        counts = self.source.counts
        outcomes = replace(population_table(self.judged), failed=counts.failed, unscored=counts.unscored)
        return TablePlans.prepare(
            self.judged, asked, by=by, confidences=confidences, loss=self.loss.values, outcomes=outcomes
        )

    def evaluation(
        self, replicated: Mapping[str, Floats], draws: Draws, population: Population
    ) -> Evaluation:
        results = {name: self._result(name, replicated[name], draws) for name in self.plans}
        cautions = general_cautions(population, self.source.cluster_noun, self.settings)
        cautions = (*cautions, *self.cautions.get("", ()))
        return Evaluation(
            variants=results,
            population=population,
            loss=self.loss,
            settings=self.settings,
            provenance=self.source.provenance,
            cautions=cautions,
            cluster_noun=self.source.cluster_noun,
            calibrations=tuple(self.calibrations),
            basis=Basis(
                judged=self.judged,
                loss=self.loss,
                confidences=self.confidences,
                plans=self.plans,
                settings=self.settings,
                # A copy, so that the replicates of all other figures need not be kept.
                augrc={name: replicated[name][:, FIGURES.index("augrc")].copy() for name in self.plans},
                weight=self.weight,
            ),
        )

    def _result(self, name: str, replicated: Floats, draws: Draws) -> VariantResult:
        plan = self.plans[name]
        count = len(self.judged) if self.weight is None else int(self.weight.sum())
        found = estimates(points(plan), replicated, draws, n=count, level=self.settings.level)
        figures = dict(zip(FIGURES, found, strict=False))
        risks = dict(zip(self.settings.coverage_grid, found[len(FIGURES) :], strict=True))
        rows = (self.loss.values, self.confidences[name])
        ties = tie_sensitivity(*rows, abstained=self.judged.abstained, weights=self.weight)
        if not self.judged.counts.answered:
            figures = {
                key: value if key == "cmax" else replace(value, reason=EMPTY_RANGE)
                for key, value in figures.items()
            }
        return VariantResult(
            name=name,
            **figures,
            risk_at_coverage={
                coverage: _with_reason(risk, coverage, figures["cmax"].value)
                for coverage, risk in risks.items()
            },
            curve=risk_coverage_curve(*rows, abstained=self.judged.abstained, weights=self.weight),
            ties=ties,
            cautions=(*self.cautions[name], *variant_cautions(figures, ties, self.settings)),
        )


def _with_reason(risk: Estimate, coverage: float, cmax: float) -> Estimate:
    if risk.defined:
        return risk
    return replace(risk, reason=f"coverage {coverage:g} cannot be reached: Cmax is {cmax:.3f}")


def _delta(
    name: str, sides: tuple[_Side, _Side], replicated: tuple[Floats, Floats], draws: Draws
) -> VariantDelta:
    left, right = sides
    settings = left.settings
    difference = points(right.plans[name]) - points(left.plans[name])
    found = estimates(
        difference, replicated[1] - replicated[0], draws, n=len(left.judged), level=settings.level
    )
    found = [
        value if value.defined else replace(value, reason="undefined on at least one side") for value in found
    ]
    return VariantDelta(
        name=name,
        **dict(zip(FIGURES, found, strict=False)),
        risk_at_coverage=dict(zip(settings.coverage_grid, found[len(FIGURES) :], strict=True)),
    )


def _population(items: Items) -> Population:
    total, included = len(items.cluster_ids), len(items.judged.cluster_ids)
    counts = items.counts
    return Population(
        total=total,
        included=included,
        failed=total - included,
        items=counts.n,
        answered=counts.answered,
        abstained=counts.abstained,
        items_failed=counts.failed,
        items_unscored=counts.unscored,
    )


def _shared_population(side: _Side, overlap: Overlap) -> Population:
    """The population of one side of a comparison: the clusters of the overlap and this side's items in them."""
    counts = side.judged.counts
    return replace(
        _population(side.source),
        total=overlap.total,
        included=overlap.included,
        failed=overlap.total - overlap.included,
        items=counts.n,
        answered=counts.answered,
        abstained=counts.abstained,
    )


def _overlap(left: Items, right: Items, *, intersection_only: bool) -> tuple[Overlap, NDArray[np.generic]]:
    if (left.cluster_ids.dtype.kind in "iu") != (right.cluster_ids.dtype.kind in "iu"):
        raise DataError("the clusters are numbers on one side and text on the other; they cannot be matched")
    shared = np.intersect1d(left.cluster_ids, right.cluster_ids)
    only = [len(np.setdiff1d(a.cluster_ids, b.cluster_ids)) for a, b in ((left, right), (right, left))]
    noun = left.cluster_noun
    if not len(shared):
        raise DataError(f"the two sides have no {noun} in common; a comparison needs the same {noun}s")
    if any(only) and not intersection_only:
        raise DataError(
            f"the two sides do not hold the same {noun}s: {only[0]} only left, {only[1]} only right, {len(shared)} in "
            "both; ask for the intersection only (--intersection-only) to compare those in both"
        )
    judged = [np.intersect1d(shared, items.judged.cluster_ids) for items in (left, right)]
    kept = np.intersect1d(judged[0], judged[1])
    if not len(kept):
        raise DataError(f"no {noun} has judged items on both sides; there is nothing to compare")
    overlap = Overlap(
        intersection_only=intersection_only,
        left_only=only[0],
        right_only=only[1],
        total=len(shared),
        included=len(kept),
        failed_left=len(shared) - len(judged[0]),
        failed_right=len(shared) - len(judged[1]),
    )
    return overlap, kept
