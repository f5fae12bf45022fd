"""The statistics of one system: its rows as columns, one statistic per confidence and group, and their estimates.

Every statistic is over the clusters of all items, so that the same weights are used for all metrics, confidences and
groups of all systems that are compared. Metrics that need no confidence are evaluated once, with the empty name.
"""

from __future__ import annotations

import hashlib
import itertools
import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from abstain import labels
from abstain._units import unit_of
from abstain.errors import DataError
from abstain.evaluation._metric_tables import ALL, GroupGap, GroupResult, Key, MetricTable
from abstain.evaluation._result import ConfidenceResult
from abstain.evaluation._warnings import EMPTY_RANGE, binned, nothing_evaluated, variant_warnings
from abstain.groups import group_numbers, groups
from abstain.inference import (
    Replicates,
    Within,
    at_level,
    difference_over_jumps,
    errors_over_halves,
    subtract,
    with_companions,
    with_error_over_halves,
    with_uncertain_bias,
)
from abstain.inference.points import read_off_points, take_lowest_parts
from abstain.items import Outcome, whole_count
from abstain.losses import item_loss
from abstain.metrics import Columns, guidance, measure_metrics
from abstain.metrics.curves import NO_CURVE, NO_TIES, curve_of, ties_of
from abstain.metrics.matched import matched_statistic, values_of_groups
from abstain.metrics.registry import UNDIRECTED
from abstain.results import items_to_results

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from abstain._confidences import VariantConfidence
    from abstain._types import Floats
    from abstain.evaluation._result import Settings
    from abstain.groups import Group
    from abstain.inference import Estimate, Intervals
    from abstain.items import Items
    from abstain.losses import ItemLoss, Loss
    from abstain.metrics import MetricSpecification
    from abstain.metrics.abstention import PopulationTable
    from abstain.resampling import Statistic


# An interval over fewer clusters is not reliable.
SMALLEST_GROUP = 10
# If a larger proportion of the items is not evaluated, bounds show how much they could change the metrics.
MOST_LEFT_OUT = 0.01
_BIASED_BY_BINS = "no interval: bins bias it upwards, and more so in a small group than in all other rows"
# Groups of about so many cells are aggregated by confidence in one pass, in at most so many passes.
_CELLS_PER_PASS, _MOST_PASSES = 1 << 21, 8


@dataclass(frozen=True, eq=False, slots=True)
class RankedRows:
    """The rows that metrics are computed from, with one confidence: the items, their columns and groups by label.

    All confidences have the same items, except those of an aggregated table, which is aggregated for each confidence.
    """

    items: Items
    columns: Columns
    groups: Mapping[str, Group]

    @classmethod
    def of(
        cls,
        items: Items,
        loss: ItemLoss | None,
        needed: set[str],
        by: tuple[str, ...],
        intervals: Intervals | None,
    ) -> RankedRows:
        """Prepare rows, in the units of the intervals; without intervals, all rows are one unit."""
        columns = _columns(items, loss, needed)
        if intervals is not None and intervals.units > 1:
            columns = columns.in_units(intervals.unit_of_cluster[items.cluster_index], intervals.units)
        return cls(items, columns, {group.label: group for group in groups(items, by)} if by else {})

    @property
    def ranking(self) -> tuple[Items, bytes]:
        """A key that is equal for two confidences if their rows and their order are the same."""
        confidence = np.ascontiguousarray(self.columns.confidence)
        return self.items, hashlib.blake2b(confidence.data, digest_size=16).digest()

    def rows(self, label: str) -> Columns:
        """Return the rows of a group, or all rows."""
        return self.columns.take(self.groups[label].rows) if label else self.columns

    def outside(self, label: str) -> Columns:
        """Return the rows outside a group."""
        outside = np.ones(len(self.items), np.bool_)
        outside[self.groups[label].rows] = False
        return self.columns.take(outside)


@dataclass(frozen=True, eq=False, slots=True)
class AggregatedGroups:
    """The groups of a table that an engine aggregates, in the order of a confidence.

    Rows are aggregated by confidence and cluster for all of them together, but not within every group: with thousands
    of groups, that would be nearly every row. To find the worst group, rows are aggregated by confidence and group,
    without clusters. Clusters are needed for the worst group only.

    Attributes:
        row_types: those of `Aggregation`.
        by: the columns that groups are made of.
        recount: returns a confidence, by its name, of rows that are aggregated again; see `Aggregation.view`.
        rank: returns the rows with a confidence; `by` and `intervals` are those of `RankedRows.of`.
    """

    row_types: Items
    by: tuple[str, ...]
    recount: Callable[..., VariantConfidence]
    rank: Callable[..., RankedRows]

    def columns_by_group(self, confidence_name: str, *, ranks: int) -> Iterator[tuple[list[str], Columns]]:
        """Yield all rows several times, each time with some of the groups as units, and the labels of the units.

        All other groups are one unit, whose label is empty. `ranks` is the number of distinct confidences.
        """
        all_groups = groups(self.row_types, self.by)
        number = group_numbers(all_groups)
        # A group has at most as many cells as rows, and as right and wrong answers of each confidence.
        cells = np.minimum(np.bincount(number, weights=self.row_types.weight), 2 * ranks).cumsum()
        passes = min(math.ceil(cells[-1] / _CELLS_PER_PASS), _MOST_PASSES)
        pass_of_group = np.minimum(cells * passes // cells[-1], passes - 1)
        for each in range(passes):
            chosen = np.flatnonzero(pass_of_group == each)
            unit = np.zeros(len(all_groups), np.intp)
            unit[chosen] = 1 + np.arange(len(chosen))
            unit_labels = ["", *(all_groups[group].label for group in chosen)]
            # Not kept in a variable here, so that the rows of one pass are freed before the next.
            yield self._columns_of_units(confidence_name, unit[number], unit_labels)

    def _columns_of_units(
        self, confidence_name: str, unit: NDArray[np.intp], unit_labels: Sequence[str]
    ) -> tuple[list[str], Columns]:
        """Return the labels of the units that have rows, and all rows; `unit` is a number for each of `row_types`."""
        rows = self.rank(self.recount(confidence_name, unit=unit), by=(), intervals=None)
        units = rows.items.cluster_ids
        columns = rows.columns.in_units(rows.items.cluster_index, len(units))
        return [unit_labels[number] for number in units], columns

    def rows_with_group(self, confidence_name: str, label: str) -> RankedRows:
        """Return all rows by cluster; only one group is distinguished from the others."""
        all_groups = groups(self.row_types, self.by)
        part = np.array([group.label == label for group in all_groups], np.intp)[group_numbers(all_groups)]
        return self.rank(self.recount(confidence_name, part=part), by=self.by)


class WorstGroup(NamedTuple):
    """The worst group by a metric, and the statistic that its gap to all other rows comes from.

    It is the statistic of the other rows or, for a matched metric, that of both at matched coverage. Such a metric also
    has both sides: all other rows and those of the group, in the order in which they are cut. `candidates` is the
    number of groups that it is the worst of.
    """

    group: str
    metric: MetricSpecification
    candidates: int
    statistic: Statistic
    sides: tuple[Columns, ...] = ()

    def widen(self, gap: Estimate) -> Estimate:
        """Return the gap with an interval that holds for all groups together, because the group was selected."""
        wider = at_level(gap, 1.0 - (1.0 - gap.level) / self.candidates)
        method = (
            f"{wider.method}, simultaneous for {self.candidates} groups" if wider.interval else wider.method
        )
        return replace(wider, level=gap.level, method=method)


@dataclass(frozen=True, eq=False)
class SystemStatistics:
    """The statistics of one system; make it with `prepare`.

    Attributes:
        name: the name of the system.
        source: all of its items, also those that are not evaluated.
        loss: the loss of each evaluated item, or None if no metric needs one.
        confidences: by name, the confidence of every item.
        ranked_rows: by confidence, the rows with it; the empty name is for rows without one.
        by: the columns that define the groups.
        metrics: by confidence, the metrics that are evaluated with it; the empty name is for those that need none.
        group_metrics: those of them that are also evaluated by group.
        statistics: by (confidence, group): the statistic of its metrics.
        intervals: how intervals are computed.
        aggregated_groups: the groups in the order of a confidence, if `ranked_rows` do not distinguish them.
    """

    name: str
    source: Items
    loss: ItemLoss | None
    confidences: Mapping[str, VariantConfidence]
    ranked_rows: Mapping[str, RankedRows]
    by: tuple[str, ...]
    metrics: Mapping[str, tuple[MetricSpecification, ...]]
    group_metrics: Mapping[str, tuple[MetricSpecification, ...]]
    statistics: Mapping[tuple[str, str], Statistic]
    intervals: Intervals
    aggregated_groups: AggregatedGroups | None = None

    @classmethod
    def prepare(
        cls,
        name: str,
        source: Items,
        evaluated: Items,
        metrics: Sequence[MetricSpecification],
        *,
        confidences: Mapping[str, VariantConfidence],
        loss: ItemLoss | None,
        requested_loss: Loss | None = None,
        intervals: Intervals,
        by: tuple[str, ...] = (),
        metrics_by_group: Sequence[MetricSpecification] = (),
        recount: Callable[..., VariantConfidence] | None = None,
    ) -> SystemStatistics:
        """Build the statistics of evaluated items, over the units of the intervals.

        `recount` is that of `AggregatedGroups`; None if the items of all confidences distinguish groups.
        """
        needed = {column for metric in metrics for column in metric.needs}
        ranked_rows = {ALL: RankedRows.of(evaluated, loss, needed, by, intervals)}

        def rank(
            confidence: VariantConfidence, *, by: tuple[str, ...], intervals: Intervals | None = intervals
        ) -> RankedRows:
            rows = ranked_rows[ALL]
            if confidence.items is not evaluated:
                own_loss = None
                if loss is not None:
                    rule = requested_loss if callable(requested_loss) else loss.name
                    own_loss = item_loss(confidence.items, rule)
                rows = RankedRows.of(confidence.items, own_loss, needed, by, intervals)
            return replace(rows, columns=rows.columns.with_confidence(confidence.values))

        aggregated_groups = None
        if recount is not None:
            aggregated_groups = AggregatedGroups(evaluated.labelled, by, recount, rank)
        for confidence_name, confidence in confidences.items():
            ranked_rows[confidence_name] = rank(confidence, by=() if aggregated_groups else by)
        ranked = tuple(metric for metric in metrics if metric.ranked)
        by_confidence = {ALL: tuple(metric for metric in metrics if not metric.ranked)}
        if confidences:
            by_confidence |= dict.fromkeys(confidences, ranked)
        else:  # metrics that need a confidence are undefined, with a reason
            by_confidence[ALL] += ranked
        keys = {metric.key for metric in metrics_by_group}
        by_group = {
            confidence_name: tuple(metric for metric in own_metrics if metric.key in keys)
            for confidence_name, own_metrics in by_confidence.items()
        }
        return cls(
            name=name,
            source=source,
            loss=loss,
            confidences=confidences,
            ranked_rows=ranked_rows,
            by=by,
            metrics=by_confidence,
            group_metrics=by_group,
            statistics=_build_statistics(ranked_rows, by_confidence, by_group),
            intervals=intervals,
            aggregated_groups=aggregated_groups,
        )

    def metrics_of(self, confidence_name: str, label: str) -> tuple[MetricSpecification, ...]:
        """Return the metrics that are evaluated with a confidence for a group, or for all rows."""
        return (self.group_metrics if label else self.metrics)[confidence_name]

    @property
    def evaluated(self) -> Items:
        """The evaluated items."""
        return self.ranked_rows[ALL].items

    @property
    def percent_provenance(self) -> dict[str, Any]:
        """Which confidences were found to be in percent when the table was aggregated."""
        named = (rows.items.provenance.get("percent", ()) for rows in self.ranked_rows.values())
        percent = tuple(dict.fromkeys(itertools.chain.from_iterable(named)))
        return {"percent": percent} if percent else {}

    @property
    def columns(self) -> Columns:
        """The evaluated rows, without a confidence."""
        return self.ranked_rows[ALL].columns

    @property
    def groups(self) -> tuple[Group, ...]:
        """The groups of the evaluated rows."""
        return tuple(self.ranked_rows[ALL].groups.values())

    def rows(self, confidence_name: str) -> Columns:
        """Return the rows with one of the confidences."""
        return self.ranked_rows[confidence_name].columns

    def rows_in_order(self, confidence_name: str) -> RankedRows:
        """Return the rows with one of the confidences; without one, all answers are tied."""
        rows = self.ranked_rows[confidence_name]
        if confidence_name:
            return rows
        return replace(rows, columns=rows.columns.with_confidence(np.zeros(len(rows.items))))

    @property
    def drawn_confidences(self) -> dict[str, Floats]:
        """The confidences that have a curve, with one number per evaluated item; a curve needs a loss and numbers."""
        if self.loss is None:
            return {}
        drawn = {}
        for name, confidence in self.confidences.items():
            stated = self.rows(name).confidence[self.rows(name).answered]
            if not len(stated) or not np.isnan(stated).all():
                drawn[name] = confidence.values
        return drawn

    @property
    def all_statistics(self) -> list[Statistic]:
        """All statistics that need replicates."""
        return [*self.statistics.values(), *(worst.statistic for worst in self.worst_groups.values())]

    def points(self) -> dict[Key, float]:
        """Return the point estimates."""
        return {
            Key(confidence_name, metric.key, label): float(value)
            for (confidence_name, label), statistic in self.statistics.items()
            # Columns beyond these are debiased forms, which only intervals need.
            for metric, value in zip(self.metrics_of(confidence_name, label), statistic.points, strict=False)
        }

    def by_key(self, replicates: Mapping[Statistic, Replicates]) -> dict[Key, Replicates]:
        """Return the replicates of every metric."""
        return {
            Key(confidence_name, metric.key, label): replicates[statistic].column(column)
            for (confidence_name, label), statistic in self.statistics.items()
            for column, metric in enumerate(self.metrics_of(confidence_name, label))
        }

    def estimates(self, replicates: Mapping[Statistic, Replicates]) -> dict[Key, Estimate]:
        """Return every estimate with its interval, and the reason why it is undefined or not reliable."""
        estimates = {}
        for (confidence_name, label), statistic in self.statistics.items():
            metrics = self.metrics_of(confidence_name, label)
            rows = self.ranked_rows[confidence_name].rows(label)
            of_metrics = self.intervals.metrics(
                rows,
                metrics,
                statistic,
                replicates[statistic],
                n=_count(rows.weight),
                within=self._within[label] if label else None,
            )
            of_metrics = self._read_off(metrics, of_metrics, rows)
            if any(metric.custom for metric in metrics):
                errors = errors_over_halves([statistic], self.intervals).tolist()
                of_metrics = [
                    with_error_over_halves(estimate, error) if metric.custom else estimate
                    for metric, estimate, error in zip(metrics, of_metrics, errors, strict=False)
                ]
            for metric, estimate in zip(metrics, of_metrics, strict=True):
                reason = (self.note(label) if label else "") or estimate.reason
                if metric.unit == "loss" and not rows.answered.any():
                    reason = EMPTY_RANGE
                if not len(self.evaluated):
                    reason = nothing_evaluated(self.source)
                elif not estimate.defined:
                    problem = metric.problem(rows)
                    reason = problem.sentence if problem else "the metric gives no number for these rows"
                estimates[Key(confidence_name, metric.key, label)] = replace(estimate, reason=reason)
        return estimates

    def _read_off(
        self, metrics: Sequence[MetricSpecification], estimates: Sequence[Estimate], rows: Columns
    ) -> list[Estimate]:
        """Return estimates; the intervals of metrics that jump come from operating points or parts of the rows."""
        at_points = read_off_points(metrics, estimates, rows, self.intervals)
        return take_lowest_parts(metrics, at_points, rows, self.intervals)

    def with_bounds(self, estimates: Mapping[Key, Estimate]) -> dict[Key, Estimate]:
        """Return estimates with bounds: their values if all items that are not evaluated were wrong, or right.

        Those items are ranked before all others, with the largest possible loss or with none. Bounds are computed if
        more than 1% of the items are not evaluated. Groups have no bounds, because the groups of these items may be
        unknown.
        """
        weight = np.ones(len(self.source)) if self.source.weight is None else self.source.weight
        left_out = float(weight[self.source.outcome > Outcome.ABSTAINED].sum())
        if left_out <= MOST_LEFT_OUT * float(weight.sum()) or not len(self.evaluated):
            return dict(estimates)
        worst = self.columns.worst_loss if self.loss is not None else 1.0
        bounded = dict(estimates)
        for confidence_name, own_metrics in self.metrics.items():
            metrics = [metric for metric in own_metrics if metric.of_outcomes]
            if not metrics:
                continue
            ends = [
                measure_metrics(
                    self.rows(confidence_name).with_further(left_out, right=right, loss=worst), metrics
                ).points
                for right in (False, True)
            ]
            for metric, wrong, right in zip(metrics, *(end.tolist() for end in ends), strict=True):
                key = Key(confidence_name, metric.key)
                bounded[key] = replace(estimates[key], bounds=(wrong, right))
        return bounded

    def design_effect(self) -> float:
        """Return the variance of the mean loss, divided by that of independent answers.

        Very many clusters are put into groups, which gives the same variance. Without a loss, the proportion of right
        answers is used. NaN if no cluster has several answers.
        """
        if self.evaluated.clusters == self.evaluated.counts.n:
            return math.nan
        answered, weight = self.evaluated.answered, self.columns.weight
        values = self.columns.correct if self.loss is None else self.columns.loss
        unit = unit_of(self.evaluated.cluster_ids)[self.evaluated.cluster_index[answered]]
        # The number of rows does not depend on the unit of the weights.
        values, weight = values[answered], weight[answered] / self.columns.row_weight
        count, units = float(weight.sum()), int((np.bincount(unit, weights=weight) > 0).sum())
        if units < 2 or not count > 1.0:
            return math.nan
        with np.errstate(over="ignore", invalid="ignore"):  # squares of the largest numbers overflow
            excess = values - float(values @ weight) / count
            independent = float(excess**2 @ weight) * count / (count - 1.0)
            together = float((np.bincount(unit, weights=excess * weight) ** 2).sum()) * units / (units - 1)
        return together / independent if independent > 0.0 else math.nan

    @cached_property
    def clusters_of_groups(self) -> dict[str, int]:
        """By group, the number of clusters that its items come from."""
        return {
            label: len(within.clusters) if within.members is None else int(within.members.sum())
            for label, within in self._within.items()
        }

    def note(self, label: str) -> str:
        """Return why a group is too small to evaluate; empty if it is not."""
        clusters = self.clusters_of_groups[label]
        if clusters >= SMALLEST_GROUP:
            return ""
        return f"too small to evaluate: {clusters} of at least {SMALLEST_GROUP} clusters"

    def variants(self, estimates: Mapping[Key, Estimate], settings: Settings) -> dict[str, ConfidenceResult]:
        """Return the selective metrics of each confidence."""
        results = {}
        for confidence_name, confidence in self.confidences.items():
            metrics = {
                key.metric: estimate
                for key, estimate in estimates.items()
                if key.confidence in (ALL, confidence_name) and key.group == ALL
            }
            items, rows = self.ranked_rows[confidence_name].items, self.rows(confidence_name)
            curve, ties = (curve_of(rows), ties_of(rows)) if len(items) else (NO_CURVE, NO_TIES)
            warnings = (
                *confidence.warnings,
                *binned(confidence_name, items, rows, curve),
                *variant_warnings(metrics, ties, settings, ranks=len(curve)),
            )
            results[confidence_name] = ConfidenceResult(confidence_name, metrics, curve, ties, warnings)
        return results

    def table(
        self,
        requested: Sequence[MetricSpecification],
        estimates: Mapping[Key, Estimate],
        replicates: Mapping[Statistic, Replicates],
        *,
        outcomes: PopulationTable,
    ) -> MetricTable:
        """Return the table of the requested metrics."""
        specifications: dict[str, MetricSpecification] = {}
        keys: dict[str, Key] = {}
        names_confidence = len(self.confidences) > 1
        for metric in requested:
            for confidence_name in (self.confidences or (ALL,)) if metric.ranked else (ALL,):
                name = (
                    f"{metric.key}[{confidence_name}]" if names_confidence and metric.ranked else metric.key
                )
                specifications[name], keys[name] = metric, Key(confidence_name, metric.key)
        return MetricTable(
            specifications=specifications,
            keys_of=keys,
            estimates={name: estimates[key] for name, key in keys.items()},
            by=self.by,
            groups=tuple(self._group(group, keys, estimates) for group in self.groups),
            gaps=self._gaps(keys, estimates, replicates),
            outcomes=outcomes,
        )

    def _group(self, group: Group, keys: Mapping[str, Key], estimates: Mapping[Key, Estimate]) -> GroupResult:
        weight = self.columns.weight[group.rows]
        return GroupResult(
            label=group.label,
            values=group.values,
            items=_count(weight),
            answered=_count(weight[self.columns.answered[group.rows]]),
            clusters=self.clusters_of_groups[group.label],
            estimates={name: estimates[key._replace(group=group.label)] for name, key in keys.items()},
            note=self.note(group.label),
        )

    def _gaps(
        self,
        keys: Mapping[str, Key],
        estimates: Mapping[Key, Estimate],
        replicates: Mapping[Statistic, Replicates],
    ) -> dict[str, GroupGap]:
        """Return how far the worst group is from all other rows, for each metric that has one."""
        n, gaps = _count(self.columns.weight), {}
        for name, key in keys.items():
            if key not in self.worst_groups:
                continue
            worst = self.worst_groups[key]
            rest_replicates = replicates[worst.statistic]
            if worst.metric.matched is not None:
                gaps[name] = self._matched_gap(worst, rest_replicates, n)
                continue
            own, ranked = estimates[key._replace(group=worst.group)], self.ranked_rows[key.confidence]
            sides = ranked.outside(worst.group), ranked.rows(worst.group)
            rest_only = self.intervals.metrics(
                sides[0], [worst.metric], worst.statistic, rest_replicates, n=n
            )
            rest = self._read_off([worst.metric], rest_only, sides[0])[0]
            statistic, column = self._gap_column(key.confidence, worst.group, worst.metric)
            last = len(worst.statistic.points) - 1  # the debiased form, if there is one
            change = replicates[statistic].column(column).less(rest_replicates.column(last))
            value = float(subtract(statistic.points[column], worst.statistic.points[last]))
            gap = self.intervals.difference(value, change, [*map(worst.metric.scale, sides)], n=n, gap=True)
            gap = difference_over_jumps(gap, worst.metric, rest, own)
            if worst.metric.debiased is not None:
                gap = with_uncertain_bias(gap, own.value - rest.value - value)
            if worst.metric.biased_by_bins:
                gap = gap.without_interval(_BIASED_BY_BINS)
            gaps[name] = GroupGap(worst.group, own, rest, worst.widen(gap))
        return gaps

    def _gap_column(
        self, confidence_name: str, label: str, metric: MetricSpecification
    ) -> tuple[Statistic, int]:
        """Return the statistic of a group, and its column for gaps: the debiased form of a metric, if it has one.

        The bias of a binned error grows as a group gets smaller, so that the smallest group would often be the worst.
        """
        compared = metric.debiased or metric
        columns = with_companions(self.metrics_of(confidence_name, label))
        column = next(number for number, each in enumerate(columns) if each is compared)
        return self.statistics[confidence_name, label], column

    def _matched_gap(self, worst: WorstGroup, replicates: Replicates, n: int) -> GroupGap:
        """Return the gap of a group at the largest coverage that both the group and all other rows reach."""
        metric = worst.metric
        coverage, *values = worst.statistic.points.tolist()
        scales = [
            metric.scale(side) if metric.scale_at is None else metric.scale_at(side, coverage)
            for side in worst.sides
        ]
        sides = Replicates(replicates.left_out[:, 1:], replicates.drawn[:, 1:])
        left, right = self.intervals.estimates(np.array(values), sides, scales, n=n)
        change = sides.column(1).less(sides.column(0))
        value = float(subtract(values[1], values[0]))
        gap = worst.widen(self.intervals.difference(value, change, scales, n=n, gap=True))
        return GroupGap(worst.group, right, left, gap, coverage)

    def _sides(self, confidence_name: str, label: str) -> tuple[Columns, Columns]:
        """Return all other rows and those of a group, in the order in which they are cut at matched coverage."""
        order = self._order_to_match(confidence_name)
        if order and self.aggregated_groups is not None:
            rows = self.aggregated_groups.rows_with_group(self.confidences[order].name, label)
        else:
            rows = self.rows_in_order(order)
        return rows.outside(label), rows.rows(label)

    def _order_to_match(self, confidence_name: str) -> str:
        """Return the confidence that rows are cut by: that of the metric or, if it needs none, the first.

        If every row is answered, no group is cut, so that such a metric needs no order.
        """
        if confidence_name or self.columns.answered.all():
            return confidence_name
        return next((name for name in self.confidences if not self.rows(name).unranked), ALL)

    @cached_property
    def _within(self) -> dict[str, Within]:
        """By group, which clusters have items of it."""
        cluster, weight = self.evaluated.cluster_index, self.columns.weight
        clusters_within = {}
        for label, group in self.ranked_rows[ALL].groups.items():
            rows = group.rows[weight[group.rows] > 0.0]
            within = Within.of(cluster[rows], weight[rows])
            if self._having is not None:
                members = self._having[label][self.evaluated.cluster_ids[within.clusters]]
                within = within._replace(members=members)
            clusters_within[label] = within
        return clusters_within

    @cached_property
    def _having(self) -> Mapping[str, Floats] | None:
        """By group, how many clusters of each unit have any of its items; None if clusters have names."""
        aggregation = self.evaluated.aggregation
        if aggregation is None or aggregation.members is None:
            return None
        return aggregation.members_of_groups(self.by)

    @cached_property
    def worst_groups(self) -> dict[Key, WorstGroup]:
        """The worst group by each metric that has a direction, if at least two groups can be compared."""
        if not self.groups:
            return {}
        worst_groups: dict[Key, WorstGroup] = {}
        compared = [group.label for group in self.groups if not self.note(group.label)]
        for confidence_name, metrics in self.group_metrics.items():
            values: dict[MetricSpecification, dict[str, float]] = {}
            for metric in metrics:
                defined = _defined(
                    {label: self._gap_value(confidence_name, label, metric) for label in compared}
                )
                if metric.comparison != UNDIRECTED and len(defined) > 1:
                    values[metric] = defined
            # The worst group by a matched metric is that with the worst gap at matched coverage.
            gaps = self._gaps_to_rest(confidence_name, [metric for metric in values if metric.matched])
            for metric, gaps_of_metric in gaps.items():
                values[metric] = _defined({label: gaps_of_metric[label] for label in values[metric]})
            for metric, by_label in values.items():
                if len(by_label) > 1:
                    worst = _extreme(by_label, largest=metric.direction == "lower")
                    key = Key(confidence_name, metric.key)
                    worst_groups[key] = self._worst_group(confidence_name, metric, worst, len(by_label))
        return worst_groups

    def _gap_value(self, confidence_name: str, label: str, metric: MetricSpecification) -> float:
        statistic, column = self._gap_column(confidence_name, label, metric)
        return float(statistic.points[column])

    def _worst_group(
        self, confidence_name: str, metric: MetricSpecification, label: str, candidates: int
    ) -> WorstGroup:
        if metric.matched is None:
            outside = self.ranked_rows[confidence_name].outside(label)
            statistic = measure_metrics(outside, with_companions([metric]))
            return WorstGroup(label, metric, candidates, statistic)
        sides = self._sides(confidence_name, label)
        return WorstGroup(label, metric, candidates, matched_statistic(*sides, [metric]), sides)

    def _gaps_to_rest(
        self, confidence_name: str, metrics: Sequence[MetricSpecification]
    ) -> dict[MetricSpecification, dict[str, float]]:
        """Return by group how far matched metrics are from those of all other rows, at the coverage that both reach."""
        gaps: dict[MetricSpecification, dict[str, float]] = {metric: {} for metric in metrics}
        if not metrics:
            return gaps
        for group_labels, columns in self._columns_by_group(confidence_name):
            for metric in metrics:
                coverage, rest, value = values_of_groups(columns, metric)
                with np.errstate(divide="ignore", invalid="ignore"):
                    # An area grows with a power of the coverage that it ends at.
                    gap = np.where(coverage > 0.0, (value - rest) / coverage**metric.coverage_power, math.nan)
                gaps[metric].update(zip(group_labels, gap.tolist(), strict=True))
            del columns  # free them before the next ones are built
        return gaps

    def _columns_by_group(self, confidence_name: str) -> Iterable[tuple[Iterable[str], Columns]]:
        """Return rows in the order in which they are cut, whose units are groups, with the labels of the groups."""
        order = self._order_to_match(confidence_name)
        if order and self.aggregated_groups is not None:
            ranks = len(self.rows(order).ranks[1])
            return self.aggregated_groups.columns_by_group(self.confidences[order].name, ranks=ranks)
        rows = self.rows_in_order(order)
        numbers = group_numbers(tuple(rows.groups.values()))
        return [(rows.groups, rows.columns.in_units(numbers, len(rows.groups)))]


def _defined(values: Mapping[str, float]) -> dict[str, float]:
    """Return the values that are not NaN."""
    return {label: value for label, value in values.items() if not math.isnan(value)}


def _build_statistics(
    ranked_rows: Mapping[str, RankedRows],
    metrics: Mapping[str, tuple[MetricSpecification, ...]],
    group_metrics: Mapping[str, tuple[MetricSpecification, ...]],
) -> dict[tuple[str, str], Statistic]:
    """Return the statistic of each confidence and group; confidences with equal numbers have the same statistic."""
    labels = [ALL, *ranked_rows[ALL].groups]
    built: dict[Any, Statistic] = {}
    statistics = {}
    for confidence_name, own_metrics in metrics.items():
        if not own_metrics:
            continue
        rows = ranked_rows[confidence_name]
        _check_probabilities(rows.items, own_metrics, rows.columns.confidence, confidence_name)
        ranking = rows.ranking if confidence_name else ALL
        for label in labels if group_metrics[confidence_name] else [ALL]:
            if (ranking, label) not in built:
                evaluated = (group_metrics if label else metrics)[confidence_name]
                built[ranking, label] = measure_metrics(rows.rows(label), with_companions(evaluated))
            statistics[confidence_name, label] = built[ranking, label]
    return statistics


def _largest_loss(loss: ItemLoss | None, items: Items) -> float:
    """Return the largest possible loss: 1 for proportions, otherwise the width of the scale or the largest observed."""
    if loss is None or loss.name in ("zero_one", "abs_norm"):
        return 1.0
    if loss.name == "abs" and items.scale is not None:
        return items.scale[1] - items.scale[0]
    return float(np.nanmax(loss.values, initial=0.0))


def _extreme(by_label: Mapping[str, float], *, largest: bool) -> str:
    """Return the first label with the largest or smallest value; values within rounding of it count as equal."""
    extreme = (max if largest else min)(by_label.values())
    return next(label for label, value in by_label.items() if not subtract(value, extreme))


def _count(weight: Floats) -> int:
    return whole_count(float(weight.sum()))


def _columns(items: Items, loss: ItemLoss | None, needed: set[str]) -> Columns:
    """Return the columns of items; guidance and result objects only if a metric needs them."""
    guide = items.metadata.get("should_abstain") if "should_abstain" in needed else None
    columns: dict[str, Any] = {
        "answered": items.answered,
        "truth": labels.truths(items.truth, "truth"),
        "prediction": labels.column(items.prediction, "prediction"),
        "scale": items.scale,
        "largest_loss": _largest_loss(loss, items),
        "may_abstain": items.may_abstain,
        "positive": items.positive,
    }
    if items.weight is not None:
        columns["weight"] = items.weight
    if items.intervals is not None:
        columns["intervals"] = items.intervals
    if items.sets is not None:
        columns |= {"sets": items.sets, "class_index": items.class_index}
    if loss is not None:
        columns["loss"] = loss.values
    if guide is not None:
        columns["should_abstain"] = guidance(guide)
    if "results" in needed:
        columns["results"] = items_to_results(items)
    rows = Columns.of(len(items), **columns)
    if items.aggregation is None:
        return rows.with_row_weight()
    # The weights of an engine are sums over equal rows.
    return replace(rows, row_weight=items.aggregation.row_weight, item_weight=items.aggregation.item_weight)


def _check_probabilities(
    items: Items, metrics: Sequence[MetricSpecification], confidence: Floats, confidence_name: str
) -> None:
    """Raise an error if a metric needs a probability and the confidence is outside [0, 1]."""
    calibration_metric = next((metric for metric in metrics if metric.rows == "stated"), None)
    wrong = ((confidence < 0.0) | (confidence > 1.0)) & items.answered
    if calibration_metric is not None and confidence_name and wrong.any():
        row = items.first_row(wrong)
        stated = confidence[~np.isnan(confidence) & items.answered]
        percent = f'; if it is in percent, add --percent {confidence_name} (percent=["{confidence_name}"])'
        raise DataError(
            f"{calibration_metric.name} needs a confidence in [0, 1], got {confidence[row]:g} for "
            f"{items.where(wrong)}; use a confidence that is a probability"
            f"{percent if confidence_name in items.signals and stated.min() >= 0.0 and stated.max() <= 100.0 else ''}"
        )
