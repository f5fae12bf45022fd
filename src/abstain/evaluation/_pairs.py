"""Compute the differences of every pair of systems by every metric, with intervals and corrected p-values.

`PairDifferences` first builds the statistics at matched coverage, which are evaluated with the same weights as those
of the systems. From the replicates of both it makes one `Difference` per pair, metric, confidence and group, and Holm's
correction completes each family: all pairs of systems by one metric, confidence and group.

Independent samples have no items in common. So each has its own weights, and the interval of a difference comes from
the intervals of both. At matched coverage, a pair is evaluated over the clusters of both samples.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from abstain.evaluation._differences import Difference, same_coverage
from abstain.evaluation._metric_tables import ALL, Key
from abstain.inference import (
    Replicates,
    at_level,
    clusters_needed,
    difference_of_samples,
    difference_over_jumps,
    errors_over_halves,
    holm,
    p_value,
    subtract,
    with_error_over_halves,
    within_margin,
)
from abstain.metrics.matched import SELECTIVE_RISK, end_coverage, matched_statistic
from abstain.metrics.registry import MATCHED

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from abstain.evaluation._result import Settings
    from abstain.evaluation._system import SystemStatistics
    from abstain.inference import Estimate, Intervals, MarginVerdict
    from abstain.matching import Matching
    from abstain.metrics import Columns, MetricSpecification
    from abstain.metrics.scales import Scale
    from abstain.resampling import Statistic

    Pair = tuple[str, str]


@dataclass(frozen=True, eq=False, slots=True)
class _MatchedPair:
    """The metrics by which a pair is compared at matched coverage, under one confidence and in one group.

    The statistic has three columns per metric: the coverage, and the metric of both sides.
    """

    pair: Pair
    confidence: str
    group: str
    metrics: tuple[MetricSpecification, ...]
    sides: tuple[Columns, Columns]
    statistic: Statistic
    intervals: Intervals

    def scales(self, number: int) -> list[Scale]:
        """Return the scale of a metric on both sides, at their coverage."""
        return _scales(self.metrics[number], self.sides, float(self.statistic.points[3 * number]))

    def estimates(self, number: int, replicates: Replicates) -> list[Estimate]:
        """Return a metric of both sides, with the intervals of independent samples."""
        columns = slice(3 * number + 1, 3 * number + 3)
        return self.intervals.estimates(
            self.statistic.points[columns],
            Replicates(replicates.left_out[:, columns], replicates.drawn[:, columns]),
            self.scales(number),
            n=round(sum(float(side.weight.sum()) for side in self.sides)),
        )


class _Entry(NamedTuple):
    """The pair, metric, confidence and group of one difference, and whether it is at matched coverage."""

    pair: Pair
    key: Key
    matched: bool


@dataclass(frozen=True, eq=False, slots=True)
class PairDifferences:
    """The differences between systems, before they have replicates; make one with `prepare`."""

    systems: Mapping[str, SystemStatistics]
    pairs: list[Pair]
    matched_pairs: list[_MatchedPair]
    matching: Matching
    settings: Settings
    compared: frozenset[str]

    @classmethod
    def prepare(
        cls,
        systems: Mapping[str, SystemStatistics],
        matching: Matching,
        settings: Settings,
        metrics: Sequence[MetricSpecification],
    ) -> PairDifferences:
        """Find the pairs, and the requested metrics that need a difference at matched coverage."""
        pairs = list(itertools.combinations(systems, 2))
        if settings.reference is not None:
            pairs = [(settings.reference, name) for name in systems if name != settings.reference]
        compared = frozenset(metric.key for metric in metrics)
        matched_pairs = _matched_pairs(systems, pairs, metrics, paired=matching.paired)
        return cls(systems, pairs, matched_pairs, matching, settings, compared)

    @property
    def statistics(self) -> list[tuple[Intervals, Statistic]]:
        """The statistics at matched coverage, each with the weights that it is evaluated with."""
        return [(each.intervals, each.statistic) for each in self.matched_pairs]

    def differences(
        self, replicates: Mapping[Statistic, Replicates], estimates: Mapping[str, Mapping[Key, Estimate]]
    ) -> tuple[Difference, ...]:
        """Return every difference, those at matched coverage last; `estimates` are the metrics of each system."""
        uncorrected = dict(
            [*self._over_all_items(replicates, estimates), *self._at_matched_coverage(replicates)]
        )
        corrected = {
            entry: difference
            for family in self._families(uncorrected)
            for entry, difference in zip(
                family, self._correct([uncorrected[entry] for entry in family]), strict=True
            )
        }
        return tuple({**uncorrected, **corrected}.values())

    def _over_all_items(
        self, replicates: Mapping[Statistic, Replicates], estimates: Mapping[str, Mapping[Key, Estimate]]
    ) -> Iterator[tuple[_Entry, Difference]]:
        """Yield the differences over all items or answered items, and over whole curves."""
        values = {name: system.by_key(replicates) for name, system in self.systems.items()}
        points = {name: system.points() for name, system in self.systems.items()}
        first = next(iter(self.systems.values()))
        labels = _common_labels(self.systems)
        rows = {
            (name, confidence_name, label): system.ranked_rows[confidence_name].rows(label)
            for name, system in self.systems.items()
            for confidence_name in first.metrics
            for label in labels
            if first.metrics_of(confidence_name, label)
        }
        for confidence_name, metrics in first.metrics.items():
            compared = [metric for metric in metrics if metric.key in self.compared]
            for metric, label, (left, right) in itertools.product(compared, labels, self.pairs):
                key = Key(confidence_name, metric.key, label)
                if all(key in own for own in points.values()):
                    ends = points[left][key], points[right][key]
                    sides = rows[left, confidence_name, label], rows[right, confidence_name, label]
                    scales = []
                    if all(map(math.isfinite, ends)) and all(map(len, sides)):
                        scales = _scales(metric, sides, metric.value)
                    if self.matching.paired:
                        change = values[right][key].less(values[left][key])
                        estimate = self._paired(ends, change, scales)
                        estimate = self._wider(estimate, metric, (left, right), key, estimates)
                    else:
                        own = [estimates[name][key] for name in (left, right)]
                        estimate = self._unpaired((left, right), own, scales)
                    entry = _Entry((left, right), key, matched=False)
                    yield entry, self._difference(entry, metric, ends, estimate, sides)

    def _paired(self, ends: tuple[float, float], change: Replicates, scales: Sequence[Scale]) -> Estimate:
        """Return the difference of two systems on the same items."""
        intervals = next(iter(self.systems.values())).intervals
        value = float(subtract(ends[1], ends[0]))
        return intervals.difference(value, change, scales, n=self.matching.evaluated)

    def _unpaired(self, pair: Pair, sides: Sequence[Estimate], scales: Sequence[Scale]) -> Estimate:
        """Return the difference of two independent samples."""
        systems = [self.systems[name] for name in pair]
        return difference_of_samples(
            sides,
            scales,
            n=sum(system.evaluated.counts.n for system in systems),
            clusters=sum(system.intervals.clusters for system in systems),
        )

    def _wider(
        self,
        difference: Estimate,
        metric: MetricSpecification,
        pair: Pair,
        key: Key,
        estimates: Mapping[str, Mapping[Key, Estimate]],
    ) -> Estimate:
        """Return a difference with its interval, which is wider if the metric has no valid jackknife."""
        if not metric.custom:
            return difference_over_jumps(difference, metric, *(estimates[name][key] for name in pair))
        systems = [self.systems[name] for name in pair]
        statistics = [system.statistics[key.confidence, key.group] for system in systems]
        column = systems[0].metrics_of(key.confidence, key.group).index(metric)
        return with_error_over_halves(
            difference, float(errors_over_halves(statistics, systems[0].intervals)[column])
        )

    def _at_matched_coverage(
        self, replicates: Mapping[Statistic, Replicates]
    ) -> Iterator[tuple[_Entry, Difference]]:
        for each in self.matched_pairs:
            points, values = each.statistic.points.tolist(), replicates[each.statistic]
            for number, metric in enumerate(each.metrics):
                coverage, left, right = points[3 * number : 3 * number + 3]
                scales = each.scales(number)
                if self.matching.paired:
                    change = values.column(3 * number + 2).less(values.column(3 * number + 1))
                    estimate = self._paired((left, right), change, scales)
                else:
                    estimate = self._unpaired(each.pair, each.estimates(number, values), scales)
                entry = _Entry(each.pair, Key(each.confidence, metric.key, each.group), matched=True)
                yield entry, self._difference(entry, metric, (left, right), estimate, each.sides, coverage)

    def _difference(
        self,
        entry: _Entry,
        metric: MetricSpecification,
        ends: tuple[float, float],
        estimate: Estimate,
        sides: Sequence[Columns],
        coverage: float = math.nan,
    ) -> Difference:
        """Return one difference before correction; `coverage` is that of both sides if they are at matched coverage."""
        (left, right), key, matched = entry
        reason = self._obstacle(entry.pair, metric, ends, sides)
        if reason:  # without a comparison there is no interval
            estimate = estimate.without_interval(reason)
        coverages = [end_coverage(metric, side) if len(side) else math.nan for side in sides]
        if not matched and metric.comparison == MATCHED:
            if metric.matched is None:  # the metric names its own coverage
                coverage = metric.value
            elif same_coverage(*coverages):
                coverage = coverages[0]
        return Difference(
            metric=key.metric,
            direction=metric.direction,
            comparison=metric.comparison,
            confidence=key.confidence,
            group=key.group,
            left=left,
            right=right,
            left_value=ends[0],
            right_value=ends[1],
            left_coverage=coverages[0],
            right_coverage=coverages[1],
            estimate=estimate,
            matched=matched,
            coverage=coverage,
            p=p_value(estimate),
            cluster_noun=next(iter(self.systems.values())).evaluated.unit_noun,
        )

    def _obstacle(
        self, pair: Pair, metric: MetricSpecification, values: Sequence[float], sides: Sequence[Columns]
    ) -> str:
        """Return why a pair is not compared by a metric; empty if it is."""
        for name in pair:
            if not self.systems[name].evaluated.counts.answered:
                return f"{name} answered no item, and a system without answers must not win"
        for name, value, rows in zip(pair, values, sides, strict=True):
            if not math.isfinite(value):
                problem = metric.problem(rows) if len(rows) else None
                why = f": {problem.sentence}" if problem else ""
                return f"{metric.key} is {'undefined' if math.isnan(value) else 'infinite'} for {name}{why}"
        return ""

    def _families(self, differences: Mapping[_Entry, Difference]) -> list[list[_Entry]]:
        """Return the differences that are corrected together: per metric, confidence and group, one of each pair.

        It is the difference at matched coverage if the pair has one. Differences without a verdict are not corrected.
        """
        at_matched = list(dict.fromkeys(entry.key for entry in differences if entry.matched))
        confidences: dict[tuple[str, str], list[str]] = {}
        for key in at_matched:
            confidences.setdefault((key.metric, key.group), []).append(key.confidence)
        candidates = []
        for key in dict.fromkeys(entry.key for entry in differences if not entry.matched):
            # A metric that needs no confidence is compared at matched coverage once for every confidence.
            names = [
                name for name in confidences.get((key.metric, key.group), []) if key.confidence in (ALL, name)
            ]
            for name in names or [key.confidence]:
                own = key._replace(confidence=name)
                candidates.append(
                    [
                        _Entry(pair, own, True)
                        if (pair, own, True) in differences
                        else _Entry(pair, key, False)
                        for pair in self.pairs
                    ]
                )
        risks = [key for key in at_matched if key.metric == SELECTIVE_RISK.key]
        candidates += [[_Entry(pair, key, True) for pair in self.pairs] for key in risks]
        return [
            [entry for entry in family if entry in differences and not differences[entry].no_verdict]
            for family in candidates
        ]

    def _correct(self, family: Sequence[Difference]) -> list[Difference]:
        """Correct the p-values of one family for its size, and complete each difference with its consequences."""
        settings = self.settings
        tested = sum(each.compared for each in family)
        # Each of several comparisons has a part of alpha, and the smallest part is always sufficient.
        family_level = 1.0 - (1.0 - settings.level) / max(tested, 1)
        margins: Sequence[MarginVerdict | None] = [None] * len(family)
        if settings.margin is not None and family:
            estimates = [each.estimate for each in family]
            margins = within_margin(estimates, family[0].direction, settings.margin)
        corrected = []
        for each, p, margin in zip(family, holm([each.p for each in family]).tolist(), margins, strict=True):
            made = replace(each, p_adjusted=p, family=tested, margin=margin if each.compared else None)
            estimate, needed = made.estimate, math.nan
            if made.compared and made.winner is None:
                size = estimate.value if settings.margin is None else settings.margin
                needed = clusters_needed(
                    size,
                    estimate.se,
                    estimate.clusters,
                    level=family_level,
                    degrees=estimate.degrees or estimate.clusters - 1.0,
                )
            if settings.simultaneous and tested > 1:
                wider = at_level(estimate, family_level)
                method = f"{wider.method}, simultaneous for {tested} pairs"
                estimate = replace(wider, level=settings.level, method=method)
            corrected.append(replace(made, estimate=estimate, clusters_needed=needed))
        return corrected


def _scales(metric: MetricSpecification, sides: Sequence[Columns], end: Any) -> list[Scale]:
    """Return the scale of each side; `end` is the metric's parameter, or the coverage at which it ends."""
    return [
        metric.scale_at(side, end) if metric.scale_at is not None else metric.scale(side) for side in sides
    ]


def _common_labels(systems: Mapping[str, SystemStatistics]) -> list[str]:
    """Return the labels of the groups that all systems have, after that of all rows."""
    first, *others = systems.values()
    in_others = [{group.label for group in other.groups} for other in others]
    return [ALL, *(group.label for group in first.groups if all(group.label in own for own in in_others))]


def _over_both_samples(
    left: Intervals, right: Intervals, sides: tuple[Columns, Columns]
) -> tuple[Intervals, tuple[Columns, Columns]]:
    """Return the rows of two independent samples in the units of both, and how intervals are computed over these."""
    intervals = left.followed_by(right)
    offset = intervals.units - right.units
    return intervals, (
        sides[0].in_units(sides[0].cluster, intervals.units),
        sides[1].in_units(sides[1].cluster + offset, intervals.units),
    )


def _matched_pairs(
    systems: Mapping[str, SystemStatistics],
    pairs: Sequence[Pair],
    metrics: Sequence[MetricSpecification],
    *,
    paired: bool,
) -> list[_MatchedPair]:
    """Return the pairs whose coverages differ, with the metrics that are compared at the coverage that both reach."""
    wanted = [metric for metric in metrics if metric.comparison == MATCHED and metric.matched is not None]
    without_matched_form = any(metric.comparison != MATCHED for metric in metrics)
    if without_matched_form and all(system.loss is not None for system in systems.values()):
        # Metrics without a form at matched coverage are accompanied by the selective risk there.
        wanted.append(SELECTIVE_RISK)
    if not wanted:
        return []
    first = next(iter(systems.values()))
    by_group = {metric.key for own in first.group_metrics.values() for metric in own}
    labels = _common_labels(systems)
    confidences = [
        name
        for name in first.confidences
        if not any(system.rows(name).unranked for system in systems.values())
    ] or [ALL]
    rows = {
        (name, confidence_name, label): system.rows_in_order(confidence_name).rows(label)
        for confidence_name, label, (name, system) in itertools.product(confidences, labels, systems.items())
    }
    matched_pairs = []
    for confidence_name, label, (left, right) in itertools.product(confidences, labels, pairs):
        sides = (rows[left, confidence_name, label], rows[right, confidence_name, label])
        if not all(side.answered.any() for side in sides):
            continue
        own_metrics = tuple(
            metric
            for metric in wanted
            if (confidence_name or not metric.ranked)
            and (not label or metric.key in by_group)
            and not same_coverage(*(end_coverage(metric, side) for side in sides))
            and all(metric.problem(side) is None for side in sides)
        )
        if own_metrics:
            intervals = systems[left].intervals
            if not paired:
                intervals, sides = _over_both_samples(intervals, systems[right].intervals, sides)
            statistic = matched_statistic(*sides, own_metrics)
            matched_pairs.append(
                _MatchedPair((left, right), confidence_name, label, own_metrics, sides, statistic, intervals)
            )
    return matched_pairs
