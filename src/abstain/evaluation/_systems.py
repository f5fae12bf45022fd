"""Systems compared: any number of them, on the same items, by any metrics of the registry.

Items are matched by their names (see `_matching`), clusters are drawn once for all systems, and every difference
is paired: right - left in the same resample. All p-values of a comparison are one family for Holm's correction.
Where two systems answer different shares of the items, they are compared at the coverage that both reach, too,
because the one that answers less else looks better. A system that answered nothing is not compared and not
ranked: the area over an empty range is 0, and 0 must not win.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from abstain import _validate
from abstain.errors import ArgumentError
from abstain.evaluation._cautions import few_clusters
from abstain.evaluation._matching import match_systems
from abstain.evaluation._results import Caution
from abstain.evaluation._system_plans import COVERAGE, SystemPlans, metrics_by_key
from abstain.evaluation._systems_results import (
    Rank,
    SystemDifference,
    SystemResult,
    SystemsComparison,
    SystemsSettings,
)
from abstain.inference import Draws, Estimate, clusters_needed, estimates, holm, p_value, points, replicates
from abstain.losses import common_loss
from abstain.metrics._matched import MatchedPlan

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from numpy.typing import NDArray

    from abstain.evaluation._matching import Matching
    from abstain.items import Items
    from abstain.losses import Loss
    from abstain.metrics._plan import Plan
    from abstain.metrics.registry import MetricLike, MetricSpecification

    Floats = NDArray[np.float64]
    Progress = Callable[[int], None]
    Pair = tuple[str, str]

__all__ = ["compare_systems"]

# The metrics that have a form of their own at matched coverage; all others are accompanied by the selective risk.
_AREAS = ("aurc", "augrc")


def compare_systems(
    systems: Mapping[str, Items],
    *,
    metrics: MetricLike | Iterable[MetricLike] = "augrc",
    confidence: str | Mapping[str, str] | None = None,
    loss: Loss | None = None,
    reference: str | None = None,
    margin: float | None = None,
    resamples: int = 10_000,
    seed: int = 42,
    level: float = 0.95,
    intersection_only: bool = False,
    progress: Progress | None = None,
) -> SystemsComparison:
    """Compare any number of systems on the same items, every pair of them or all against one.

    Args:
        systems: items by the system's name; matched by cluster and item, never by position.
        metrics: one or more metrics, by name, as objects or as import paths; see `abstain.metrics.registry`.
        confidence: what ranks the answers: one name for all systems, or one by system; when left out, the default.
        loss: "abs", "abs_norm", "zero_one", or a function of (truth, prediction); else what the sources imply.
        reference: the system that all others are compared with; every pair when left out.
        margin: the smallest difference that would matter: how many clusters would tell that, instead of the
            observed difference, is then said where systems cannot be told apart.
        resamples: how many times the clusters are drawn; 0 for no intervals and no verdicts.
        seed: the same seed gives the same numbers.
        level: confidence level of the intervals; a difference is told at ``1 - level``, after Holm's correction.
        intersection_only: compare the items that all systems have when some lack some; an error otherwise.
        progress: called with the number of resamples done since the last call.

    >>> from abstain import Items
    >>> truth, item = [0, 1] * 20, list(range(40))
    >>> careful = Items.from_arrays(truth, truth, item=item, confidence=[0.9] * 40)
    >>> careless = Items.from_arrays(truth, [0] * 40, item=item, confidence=[0.9] * 40)
    >>> print(compare_systems({"A": careless, "B": careful}, loss="zero_one", resamples=500))
    Comparison of 2 systems over 40 items
      B is better than A by 0.250 [0.168, 0.325]
    """
    settings = _settings(systems, reference, margin, resamples, seed, level)
    if loss is not None and not isinstance(loss, str) and not callable(loss):
        raise ArgumentError(
            "loss must be a name or a function here: an array cannot fit the rows of all systems"
        )
    asked = metrics_by_key(metrics)
    kept, matching = match_systems(systems, intersection_only=intersection_only)
    if loss is None and any("loss" in metric.needs for metric in asked.values()):
        loss = common_loss(tuple(kept.values()))[0].name
    sides = {
        name: SystemPlans.prepare(name, items, asked, _confidence_of(name, confidence, systems), loss)
        for name, items in kept.items()
    }
    job = _Job(sides, asked, matching, settings)
    return job.run(progress)


@dataclass(frozen=True, eq=False, slots=True)
class _Matched:
    """The pairs that are compared at matched coverage, and the plan of all of them."""

    pairs: list[Pair]
    plan: MatchedPlan


@dataclass(frozen=True, eq=False, slots=True)
class _Job:
    """One comparison in work."""

    sides: Mapping[str, SystemPlans]
    asked: Mapping[str, MetricSpecification]
    matching: Matching
    settings: SystemsSettings

    @property
    def pairs(self) -> list[Pair]:
        names, reference = list(self.sides), self.settings.reference
        if reference is None:
            return list(itertools.combinations(names, 2))
        return [(reference, name) for name in names if name != reference]

    def run(self, progress: Progress | None) -> SystemsComparison:
        settings = self.settings
        keys = list(next(iter(self.sides.values())).table.metrics)
        plans: dict[tuple[str, str], Plan] = {
            (name, key): side.plan(key) for name, side in self.sides.items() for key in keys
        }
        matched = self._matched()
        draws = Draws(self.matching.clusters, settings.resamples, settings.seed)
        values = replicates([*plans.values(), *([matched.plan] if matched else [])], draws, progress)
        weighed = dict(zip(plans, values, strict=False))
        drafts = [self._draft(pair, key, weighed, draws) for key in self.asked for pair in self.pairs]
        if matched:
            drafts += self._matched_drafts(matched, values[-1], draws)
        differences = self._adjusted(drafts)
        tables = {
            name: side.table.table([weighed[name, key] for key in keys], draws, level=settings.level)
            for name, side in self.sides.items()
        }
        found = {
            name: {key: _without_achievement(table[key], self.sides[name]) for key in self.asked}
            for name, table in tables.items()
        }
        results = {
            name: SystemResult(
                name=name,
                items=self.matching.judged,
                answered=side.answered,
                coverage=tables[name][COVERAGE],
                confidence=side.confidence,
                estimates=found[name],
                ranks={key: self._rank(name, key, found, differences) for key in self.asked},
                provenance=side.items.provenance,
            )
            for name, side in self.sides.items()
        }
        first = next(iter(self.sides.values()))
        return SystemsComparison(
            systems=results,
            metrics=self.asked,
            differences=differences,
            matching=self.matching,
            settings=settings,
            loss=first.loss,
            cautions=self._cautions(results, differences),
            cluster_noun=first.items.cluster_noun,
        )

    def _matched(self) -> _Matched | None:
        """What is compared at matched coverage: pairs that answer different shares, by the figures asked for."""
        figures = dict.fromkeys(
            metric.name if metric.name in _AREAS else "risk"
            for metric in self.asked.values()
            if metric.parameter is None or metric.parameter.name not in ("coverage", "risk", "accuracy")
        )
        ranked = {name: side.ranking for name, side in self.sides.items() if side.ranking is not None}
        pairs = [
            (left, right)
            for left, right in self.pairs
            if {left, right} <= ranked.keys() and self.sides[left].answered != self.sides[right].answered
        ]
        if not pairs or not figures:
            return None
        places = {name: place for place, name in enumerate(ranked)}
        numbered = tuple((places[left], places[right]) for left, right in pairs)
        return _Matched(pairs, MatchedPlan(tuple(ranked.values()), numbered, tuple(figures)))

    def _draft(
        self, pair: Pair, key: str, weighed: Mapping[tuple[str, str], Floats], draws: Draws
    ) -> SystemDifference:
        left, right = pair
        ends = [float(points(self.sides[name].plan(key))[0]) for name in pair]
        # Infinite on both sides is no difference at all.
        with np.errstate(invalid="ignore"):
            replicated = weighed[right, key][:, 0] - weighed[left, key][:, 0]
        reason = self._obstacle(pair, key, ends)
        return self._difference(key, self.asked[key].direction, pair, ends, replicated, draws, reason)

    def _matched_drafts(self, matched: _Matched, replicated: Floats, draws: Draws) -> list[SystemDifference]:
        """The differences at matched coverage, figure by figure; a pair's columns are as `MatchedPlan` says."""
        figures = matched.plan.figures
        ends = points(matched.plan).reshape(len(matched.pairs), -1).tolist()
        columns = replicated.reshape(len(replicated), len(matched.pairs), 1 + 2 * len(figures))
        drafts = []
        for number, figure in enumerate(figures):
            for place, pair in enumerate(matched.pairs):
                left = 1 + 2 * number
                change = columns[:, place, left + 1] - columns[:, place, left]
                values = ends[place][left : left + 2]
                draft = self._difference(figure, "lower", pair, values, change, draws, "")
                drafts.append(replace(draft, coverage=ends[place][0]))
        return drafts

    def _difference(
        self,
        metric: str,
        direction: str,
        pair: Pair,
        ends: list[float],
        replicated: Floats,
        draws: Draws,
        reason: str,
    ) -> SystemDifference:
        settings, change = self.settings, ends[1] - ends[0]
        found = estimates(
            np.array([change]), replicated[:, None], draws, n=self.matching.judged, level=settings.level
        )[0]
        p = math.nan if reason else p_value(change, replicated, draws.clusters)
        if math.isnan(p) and not reason:
            reason = self._no_verdict(draws)
        return SystemDifference(
            metric=metric,
            direction=direction,
            left=pair[0],
            right=pair[1],
            left_value=ends[0],
            right_value=ends[1],
            difference=replace(found, reason=reason),
            coverage=math.nan,
            p=p,
            p_adjusted=math.nan,
            alpha=1.0 - settings.level,
            clusters_needed=math.nan,
            margin=math.nan if settings.margin is None else settings.margin,
            cluster_noun=self._noun,
        )

    def _no_verdict(self, draws: Draws) -> str:
        if not draws.resamples:
            return "without resamples there is no verdict"
        if draws.clusters < 2:
            return f"one {self._noun} alone says nothing about others"
        return "it is undefined in almost every resample"

    def _obstacle(self, pair: Pair, key: str, values: list[float]) -> str:
        """Why a pair is not compared by a metric; empty where it is."""
        for name in pair:
            if not self.sides[name].answered:
                return f"{name} answered nothing, and what is not answered must not win"
        for name, value in zip(pair, values, strict=True):
            if not math.isfinite(value):
                problem = self.asked[key].problem(self.sides[name].table.columns[key])
                why = f": {problem.sentence}" if problem else ""
                return f"{key} is {'undefined' if math.isnan(value) else 'infinite'} for {name}{why}"
        return ""

    def _adjusted(self, drafts: list[SystemDifference]) -> tuple[SystemDifference, ...]:
        """Correct for all comparisons made, and say of those that cannot be told what would tell them."""
        family = sum(not math.isnan(draft.p) for draft in drafts)
        adjusted = holm([draft.p for draft in drafts])
        result = []
        for draft, p in zip(drafts, adjusted.tolist(), strict=True):
            found = replace(draft, p_adjusted=p)
            if not math.isnan(p) and not found.told:
                size = found.difference.value if math.isnan(found.margin) else found.margin
                # With many comparisons each is held against a share of alpha, and the smallest one is sure to do.
                level = 1.0 - found.alpha / family
                needed = clusters_needed(size, found.difference.se, found.difference.clusters, level=level)
                found = replace(found, clusters_needed=needed)
            result.append(found)
        return tuple(result)

    def _rank(
        self,
        name: str,
        key: str,
        values: Mapping[str, Mapping[str, Estimate]],
        differences: tuple[SystemDifference, ...],
    ) -> Rank | None:
        direction = self.asked[key].direction
        ranked = {
            other: values[other][key].value
            for other, side in self.sides.items()
            if side.answered and values[other][key].defined
        }
        if direction == "neither" or name not in ranked:
            return None
        sign = 1.0 if direction == "lower" else -1.0
        told = [each for each in differences if each.metric == key and not each.matched and each.told]
        lost = sum(each.winner != name for each in told if name in (each.left, each.right))
        won = sum(each.winner == name for each in told)
        better = sum(sign * value < sign * ranked[name] for value in ranked.values())
        return Rank(1 + better, 1 + lost, len(ranked) - won)

    @property
    def _noun(self) -> str:
        return next(iter(self.sides.values())).items.cluster_noun

    def _cautions(
        self, results: Mapping[str, SystemResult], differences: tuple[SystemDifference, ...]
    ) -> tuple[Caution, ...]:
        cautions: list[Caution] = []
        silent = [name for name, result in results.items() if not result.answered]
        if silent:
            message = "answered nothing: neither compared nor ranked, because 0 over an empty range is no achievement"
            cautions.append(Caution("nothing_answered", f"{', '.join(silent)} {message}"))
        shares = {result.answered for result in results.values() if result.answered}
        if len(shares) > 1:
            listed = ", ".join(f"{name} {result.coverage.value:.3f}" for name, result in results.items())
            matched = any(each.matched for each in differences)
            message = f"the systems answer different shares ({listed}), and the one that answers less looks better; "
            message += (
                "go by matched coverage"
                if matched
                else "without a confidence and a loss they cannot be compared at matched coverage"
            )
            cautions.append(Caution("coverage_differs", message))
        cautions += self.matching.cautions
        tested = sum(not math.isnan(each.p) for each in differences)
        # The smallest p-value that so many resamples can give: none of them beyond zero.
        smallest = p_value(1.0, np.ones(self.settings.resamples), self.matching.clusters)
        if tested and smallest * tested > 1.0 - self.settings.level:
            message = f"{self.settings.resamples} resamples are too few to tell any of {tested} differences"
            cautions.append(Caution("few_resamples", f"{message}; ask for more"))
        if self.settings.resamples:
            cautions += few_clusters(self.matching.clusters, self._noun)
        return tuple(cautions)


def _settings(
    systems: Mapping[str, Items],
    reference: str | None,
    margin: float | None,
    resamples: int,
    seed: int,
    level: float,
) -> SystemsSettings:
    if not isinstance(systems, Mapping):
        raise ArgumentError(
            "systems must be a mapping from names to items, such as {'a': items, 'b': others}"
        )
    if reference is not None:
        _validate.choice(reference, "reference", systems)
    if margin is not None and not _validate.real(margin, "margin") > 0.0:
        raise ArgumentError(f"margin must be greater than 0, got {margin:g}")
    return SystemsSettings(
        resamples=_validate.whole(resamples, "resamples"),
        seed=_validate.seed(seed),
        level=_validate.level(level),
        margin=None if margin is None else float(margin),
        reference=reference,
    )


def _confidence_of(
    name: str, confidence: str | Mapping[str, str] | None, systems: Mapping[str, Items]
) -> str | None:
    if confidence is None or isinstance(confidence, str):
        return confidence
    for key in confidence:
        _validate.choice(key, "system", systems)
    return confidence.get(name)


def _without_achievement(estimate: Estimate, side: SystemPlans) -> Estimate:
    if side.answered or estimate.reason:
        return estimate
    return replace(estimate, reason="nothing was answered: no achievement")
