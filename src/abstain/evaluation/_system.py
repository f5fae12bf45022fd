"""One system, ready to be weighed: its rows as columns, one measure per confidence and group, and their estimates.

Every measure is over the clusters of all items, so that one set of weights serves all metrics, confidences
and groups of all systems that are compared. Metrics that need no confidence are measured once, under the
empty name.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from abstain import labels
from abstain._units import unit_of
from abstain.errors import DataError
from abstain.evaluation._metric_tables import ALL, GroupGap, GroupResult, Key, MetricTable
from abstain.evaluation._result import ConfidenceResult
from abstain.evaluation._warnings import EMPTY_RANGE, binned, nothing_judged, variant_warnings
from abstain.groups import groups
from abstain.inference import Replicates, Within, with_companions
from abstain.inference.points import read_off_points
from abstain.losses import item_loss
from abstain.metrics import Columns, guidance, measure_metrics
from abstain.metrics.curves import NO_CURVE, NO_TIES, curve_of, ties_of
from abstain.metrics.matched import matched_statistic
from abstain.metrics.registry import UNDIRECTED
from abstain.results import items_to_results

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

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


# Fewer clusters than this say next to nothing: an interval over them is not to be believed.
SMALLEST_GROUP = 10
# Where more than this share of the items is left out, their fate could matter.
MOST_LEFT_OUT = 0.01


@dataclass(frozen=True, eq=False, slots=True)
class View:
    """The rows that metrics are measured over: the items, what metrics read of them, and their groups.

    There is one for all confidences, but for a table that is counted: its rows are counted anew for each of them.
    """

    items: Items
    columns: Columns
    groups: tuple[Group, ...]

    @classmethod
    def of(
        cls, items: Items, loss: ItemLoss | None, needed: set[str], by: tuple[str, ...], intervals: Intervals
    ) -> View:
        """Prepare rows, in the units that the intervals weigh."""
        columns = _columns(items, loss, needed)
        if intervals.units > 1:
            columns = columns.in_units(intervals.unit_of_cluster[items.cluster_index], intervals.units)
        return cls(items, columns, groups(items, by) if by else ())

    def group(self, label: str) -> Group | None:
        """Return a group by its label; None for all rows."""
        return next((group for group in self.groups if group.label == label), None)

    def rows(self, label: str) -> Columns:
        """Return the rows of a group."""
        group = self.group(label)
        return self.columns if group is None else self.columns.take(group.rows)


@dataclass(frozen=True, eq=False)
class SystemWork:
    """One system under work; make it with `prepare`.

    Attributes:
        name: what it is called.
        source: its items, judged or not.
        loss: the loss of each judged item, or None where no metric needs one.
        confidences: by name, the confidence of every item.
        views: by confidence, the rows with it; under the empty name those without one.
        by: the columns that groups are made of.
        statistics: by (confidence, group): the statistic of its metrics.
        intervals: how intervals are made.
        metrics: by confidence, the metrics that are measured under it; the empty name for those that need none.
        rest_statistics: by (confidence, metric, group): the statistic of the rows outside the worst group of a metric.
    """

    name: str
    source: Items
    loss: ItemLoss | None
    confidences: Mapping[str, VariantConfidence]
    views: Mapping[str, View]
    by: tuple[str, ...]
    metrics: Mapping[str, tuple[MetricSpecification, ...]]
    statistics: Mapping[tuple[str, str], Statistic]
    intervals: Intervals
    rest_statistics: dict[Key, Statistic] = field(default_factory=dict)

    @classmethod
    def prepare(
        cls,
        name: str,
        source: Items,
        judged: Items,
        metrics: Sequence[MetricSpecification],
        *,
        confidences: Mapping[str, VariantConfidence],
        loss: ItemLoss | None,
        asked_loss: Loss | None = None,
        intervals: Intervals,
        by: tuple[str, ...] = (),
    ) -> SystemWork:
        """Build the measures of judged items, over the units that the intervals weigh."""
        needed = {column for metric in metrics for column in metric.needs}
        whole = View.of(judged, loss, needed, by, intervals)
        views = {ALL: whole}
        for slot, confidence in confidences.items():
            view = whole
            if confidence.items is not judged:
                own = loss and item_loss(confidence.items, asked_loss if callable(asked_loss) else loss.name)
                view = View.of(confidence.items, own, needed, by, intervals)
            views[slot] = replace(view, columns=view.columns.with_confidence(confidence.values))
        ranked = tuple(metric for metric in metrics if metric.ranked)
        by_confidence = {ALL: tuple(metric for metric in metrics if not metric.ranked)}
        if confidences:
            by_confidence |= dict.fromkeys(confidences, ranked)
        else:  # the metrics that need a confidence are undefined, and say so
            by_confidence[ALL] += ranked
        work = cls(name, source, loss, confidences, views, by, by_confidence, {}, intervals)
        built: dict[tuple[object, str], Statistic] = {}
        statistics: dict[tuple[str, str], Statistic] = {}
        for slot, asked in by_confidence.items():
            if not asked:
                continue
            view = views[slot]
            _check_probabilities(view.items, asked, view.columns.confidence, slot)
            for label in (ALL, *(group.label for group in whole.groups)):
                # Confidences that are the same numbers under another name share their statistic.
                same = (work.ranking(slot), label)
                if same not in built:
                    built[same] = measure_metrics(view.rows(label), with_companions(asked))
                statistics[slot, label] = built[same]
        work = replace(work, statistics=statistics)
        work.rest_statistics.update(work._rests())
        return work

    @property
    def judged(self) -> Items:
        """The items that are judged."""
        return self.views[ALL].items

    @property
    def found(self) -> dict[str, Any]:
        """What was found out about confidences when they were counted: which of them are per cent."""
        told = [view.items.provenance.get("percent", ()) for view in self.views.values()]
        percent = tuple(dict.fromkeys(name for names in told for name in names))
        return {"percent": percent} if percent else {}

    @property
    def columns(self) -> Columns:
        """The judged rows, without a confidence."""
        return self.views[ALL].columns

    @property
    def groups(self) -> tuple[Group, ...]:
        """The groups of the judged rows."""
        return self.views[ALL].groups

    def rows(self, slot: str) -> Columns:
        """Return the rows under one of the confidences."""
        return self.views[slot].columns

    def ranked_view(self, slot: str) -> View:
        """Return the rows under one of the confidences; under none of them, all answers are tied."""
        view = self.views[slot]
        return (
            view if slot else replace(view, columns=view.columns.with_confidence(np.zeros(len(view.items))))
        )

    def ranking(self, slot: str) -> tuple[int, bytes]:
        """Return what tells the rows of a confidence and their order apart from those of others.

        Rows that are counted for each confidence anew are others, even where the same numbers stand in them.
        """
        view = self.views[slot]
        return id(view.items), _fingerprint(view.columns.confidence) if slot else b""

    def unstated(self, slot: str) -> bool:
        """Return whether no answered item has a number for this confidence."""
        stated = self.rows(slot).confidence[self.rows(slot).answered]
        return len(stated) > 0 and bool(np.isnan(stated).all())

    @property
    def answered(self) -> int:
        """How many items were answered."""
        return self.judged.counts.answered

    @property
    def all_statistics(self) -> list[Statistic]:
        """All statistics that need replicates."""
        return [*self.statistics.values(), *self.rest_statistics.values()]

    def points(self) -> dict[Key, float]:
        """Return the point estimates."""
        return {
            Key(slot, metric.key, label): float(value)
            for (slot, label), statistic in self.statistics.items()
            # Columns beyond these are debiased forms, which only intervals need.
            for metric, value in zip(self.metrics[slot], statistic.points, strict=False)
        }

    def by_key(self, replicates: Mapping[Statistic, Replicates]) -> dict[Key, Replicates]:
        """Return the replicates of every metric."""
        return {
            Key(slot, metric.key, label): replicates[statistic].column(place)
            for (slot, label), statistic in self.statistics.items()
            for place, metric in enumerate(self.metrics[slot])
        }

    def estimates(self, replicates: Mapping[Statistic, Replicates]) -> dict[Key, Estimate]:
        """Return every estimate with its interval, and why it is undefined or must not be trusted."""
        found = {}
        for (slot, label), statistic in self.statistics.items():
            rows, group = self.views[slot].rows(label), self.views[ALL].group(label)
            within = None if group is None else self._within(group)
            made = self.intervals.metrics(
                rows,
                self.metrics[slot],
                statistic,
                replicates[statistic],
                n=_count(rows.weight),
                within=within,
            )
            made = read_off_points(self.metrics[slot], made, rows, self.intervals)
            for metric, estimate in zip(self.metrics[slot], made, strict=True):
                reason = estimate.reason if group is None else self.note(group) or estimate.reason
                if metric.unit == "loss" and not rows.answered.any():
                    reason = EMPTY_RANGE
                if not len(self.judged):
                    reason = nothing_judged(self.source)
                elif not estimate.defined:
                    problem = metric.problem(rows)
                    reason = problem.sentence if problem else "the metric gives no number for these rows"
                found[Key(slot, metric.key, label)] = replace(estimate, reason=reason)
        return found

    def with_bounds(self, found: Mapping[Key, Estimate]) -> dict[Key, Estimate]:
        """Return estimates with what they would be if all items that were left out had gone wrong, or right.

        Those items stand before all others, at the largest loss that there can be or at none; only where more than a
        hundredth is left out does it matter. Groups are left as they are, because nobody knows whose the items were.
        """
        left_out = self.source.counts.failed + self.source.counts.unscored
        if left_out <= MOST_LEFT_OUT * self.source.counts.total or not len(self.judged):
            return dict(found)
        worst = self.columns.worst_loss if self.loss is not None else 1.0
        bounded = dict(found)
        for slot, asked in self.metrics.items():
            metrics = [metric for metric in asked if metric.of_outcomes]
            if not metrics:
                continue
            ends = [
                measure_metrics(
                    self.rows(slot).with_further(left_out, right=right, loss=worst), metrics
                ).points
                for right in (False, True)
            ]
            for metric, wrong, right in zip(metrics, *(end.tolist() for end in ends), strict=True):
                key = Key(slot, metric.key)
                bounded[key] = replace(found[key], bounds=(wrong, right))
        return bounded

    def design_effect(self) -> float:
        """Return how many times the variance of the mean loss is what it were if all answers were independent.

        Very many clusters are taken in groups, whose variances add up to the same. Without a loss, the share of right
        answers is taken. NaN where no cluster has several answers.
        """
        if self.judged.clusters == self.judged.counts.n:
            return math.nan
        answered, weight = self.judged.answered, self.columns.weight
        values = self.columns.correct if self.loss is None else self.columns.loss
        unit = unit_of(self.judged.cluster_ids)[self.judged.cluster_index[answered]]
        values, weight = values[answered], weight[answered]
        count, units = float(weight.sum()), int((np.bincount(unit, weights=weight) > 0).sum())
        if units < 2:
            return math.nan
        with np.errstate(over="ignore", invalid="ignore"):  # squares of the largest numbers are beyond them
            excess = values - float(values @ weight) / count
            independent = float(excess**2 @ weight) * count / (count - 1.0)
            together = float((np.bincount(unit, weights=excess * weight) ** 2).sum()) * units / (units - 1)
        return together / independent if independent > 0.0 else math.nan

    def clusters(self, group: Group | None = None) -> int:
        """Return how many clusters the items, or those of a group, come from."""
        if group is None:
            return self.judged.clusters
        members = self._within(group).members
        if members is not None:
            return int(members.sum())
        return len(np.unique(self.judged.cluster_index[group.rows]))

    def note(self, group: Group) -> str:
        """Return why a group is too small to judge; empty when it is not."""
        clusters = self.clusters(group)
        if clusters >= SMALLEST_GROUP:
            return ""
        return f"too small to judge: {clusters} of the {SMALLEST_GROUP} clusters that a judgement needs"

    def variants(self, found: Mapping[Key, Estimate], settings: Settings) -> dict[str, ConfidenceResult]:
        """Return the selective metrics of each confidence."""
        results = {}
        for slot, confidence in self.confidences.items():
            metrics = {
                key.metric: estimate
                for key, estimate in found.items()
                if key.confidence in (ALL, slot) and key.group == ALL
            }
            items, rows = self.views[slot].items, self.rows(slot)
            curve, ties = (curve_of(rows), ties_of(rows)) if len(items) else (NO_CURVE, NO_TIES)
            warnings = (
                *confidence.warnings,
                *binned(slot, items, rows, curve),
                *variant_warnings(metrics, ties, settings, ranks=len(curve)),
            )
            results[slot] = ConfidenceResult(slot, metrics, curve, ties, warnings)
        return results

    def table(
        self,
        asked: Sequence[MetricSpecification],
        found: Mapping[Key, Estimate],
        replicates: Mapping[Statistic, Replicates],
        *,
        by: tuple[str, ...],
        outcomes: PopulationTable,
    ) -> MetricTable:
        """Return the table of the metrics that were asked for by name."""
        specifications: dict[str, MetricSpecification] = {}
        keys: dict[str, Key] = {}
        several = len(self.confidences) > 1
        for metric in asked:
            for slot in (self.confidences or (ALL,)) if metric.ranked else (ALL,):
                name = f"{metric.key}[{slot}]" if several and metric.ranked else metric.key
                specifications[name], keys[name] = metric, Key(slot, metric.key)
        return MetricTable(
            specifications=specifications,
            keys_of=keys,
            estimates={name: found[key] for name, key in keys.items()},
            by=by,
            groups=tuple(self._group(group, keys, found) for group in self.groups),
            gaps=self._gaps(keys, found, replicates),
            outcomes=outcomes,
        )

    def _group(self, group: Group, keys: Mapping[str, Key], found: Mapping[Key, Estimate]) -> GroupResult:
        return GroupResult(
            label=group.label,
            values=group.values,
            items=_count(self.columns.weight[group.rows]),
            answered=_count(self.columns.weight[group.rows & self.columns.answered]),
            clusters=self.clusters(group),
            estimates={name: found[key._replace(group=group.label)] for name, key in keys.items()},
            note=self.note(group),
        )

    def _gaps(
        self,
        keys: Mapping[str, Key],
        found: Mapping[Key, Estimate],
        replicates: Mapping[Statistic, Replicates],
    ) -> dict[str, GroupGap]:
        values, n = self.by_key(replicates), _count(self.columns.weight)
        gaps = {}
        for name, key in keys.items():
            for worst in (rest for rest in self.rest_statistics if rest[:2] == key[:2]):
                statistic, metric = self.rest_statistics[worst], self._metric(worst)
                if metric.matched is not None:
                    gaps[name] = self._matched_gap(worst, metric, replicates[statistic], n)
                    continue
                rows, others = self.rows(key.confidence), replicates[statistic]
                rest = self.intervals.metrics(rows, [metric], statistic, others, n=n)[0]
                change = values[worst].less(others.column(0))
                gap = self.intervals.difference(found[worst].value - rest.value, change, n=n)
                gaps[name] = GroupGap(worst.group, found[worst], rest, gap)
        return gaps

    def _matched_gap(self, worst: Key, metric: MetricSpecification, weighed: Replicates, n: int) -> GroupGap:
        """The gap of a group at the largest coverage that both the group and all other rows reach."""
        rest, group = self._sides(worst)
        coverage, *values = self.rest_statistics[worst].points.tolist()
        scales = [
            metric.scale(side) if metric.scale_at is None else metric.scale_at(side, coverage)
            for side in (rest, group)
        ]
        sides = Replicates(weighed.left_out[:, 1:], weighed.drawn[:, 1:])
        left, right = self.intervals.estimates(np.array(values), sides, scales, n=n)
        change = sides.column(1).less(sides.column(0))
        gap = self.intervals.difference(values[1] - values[0], change, n=n)
        return GroupGap(worst.group, right, left, gap, coverage)

    def _sides(self, key: Key) -> tuple[Columns, Columns]:
        """All other rows, and those of a group, ranked by the confidence of a key or by the first one."""
        ranked = [slot for slot in self.confidences if not self.rows(slot).unranked]
        view = self.ranked_view(key.confidence or next(iter(ranked), ALL))
        own = view.group(key.group)
        assert own is not None
        return view.columns.take(~own.rows), view.columns.take(own.rows)

    def _metric(self, key: Key) -> MetricSpecification:
        return next(metric for metric in self.metrics[key.confidence] if metric.key == key.metric)

    def _within(self, group: Group) -> Within:
        """Which clusters have items of a group."""
        ids, rows = self.judged.cluster_ids, group.rows
        index, weight = self.judged.cluster_index[rows], self.columns.weight[rows]
        items = np.bincount(index, weights=weight, minlength=len(ids)).astype(np.float64)
        return Within(items, None if self._having is None else self._having[group.label][ids])

    @cached_property
    def _having(self) -> Mapping[str, Floats] | None:
        """By group, how many clusters of each group of clusters have any of its items; None where they have names."""
        counted = self.judged.counted
        return None if counted is None or counted.members is None else counted.having(self.by)

    def _rests(self) -> dict[Key, Statistic]:
        """The rows outside the worst group of every metric."""
        if not self.groups:
            return {}
        points, rests = self.points(), {}
        for slot, asked in self.metrics.items():
            for metric in asked:
                key = Key(slot, metric.key)
                if metric.comparison == UNDIRECTED:
                    continue
                if metric.matched is not None:
                    rests.update(self._worst_at_matched_coverage(key, metric, points))
                    continue
                worst = self._worst(key, metric.direction, points)
                if worst is not None:
                    own = self.views[slot].group(worst.label)
                    assert own is not None
                    rows = self.rows(slot).take(~own.rows)
                    rests[key._replace(group=worst.label)] = measure_metrics(rows, with_companions([metric]))
        return rests

    def _evaluated(self, key: Key, points: Mapping[Key, float]) -> list[Group]:
        """The groups that are large enough and in which a metric is defined."""
        return [
            group
            for group in self.groups
            if not self.note(group) and not math.isnan(points[key._replace(group=group.label)])
        ]

    def _worst(self, key: Key, direction: str, points: Mapping[Key, float]) -> Group | None:
        """The group with the worst value; None if fewer than two can be compared."""
        groups = self._evaluated(key, points)
        if len(groups) < 2:
            return None
        sign = 1.0 if direction == "lower" else -1.0
        return max(groups, key=lambda group: sign * points[key._replace(group=group.label)])

    def _worst_at_matched_coverage(
        self, key: Key, metric: MetricSpecification, points: Mapping[Key, float]
    ) -> dict[Key, Statistic]:
        """The group that is furthest behind all other rows at the coverage that both reach, if there is one.

        An area grows with the coverage that it ends at, so that gaps are compared after division by its power.
        """
        groups = self._evaluated(key, points)
        if len(groups) < 2:
            return {}
        sign = 1.0 if metric.direction == "lower" else -1.0
        gaps: dict[Key, tuple[float, Statistic]] = {}
        for group in groups:
            own = key._replace(group=group.label)
            measure = matched_statistic(*self._sides(own), [metric])
            coverage, rest, value = measure.points.tolist()
            gap = sign * (value - rest) / coverage**metric.coverage_power if coverage else math.nan
            if not math.isnan(gap):
                gaps[own] = gap, measure
        if len(gaps) < 2:
            return {}
        worst = max(gaps, key=lambda own: gaps[own][0])
        return {worst: gaps[worst][1]}


@dataclass(frozen=True, eq=False, slots=True)
class ResultData:
    """What the numbers of a system rest on.

    Attributes:
        work: the judged items with their loss, confidences and columns.
        settings: what was asked for.
        confidences: the confidences that have a curve, by name: one number per judged item.
    """

    work: SystemWork
    settings: Settings
    confidences: Mapping[str, Floats]

    @classmethod
    def of(cls, work: SystemWork, settings: Settings) -> ResultData:
        """Keep what a profile is made of; without a loss or a stated confidence there is no curve."""
        named = {} if work.loss is None else work.confidences
        curves = {name: each.values for name, each in named.items() if not work.unstated(name)}
        return cls(work, settings, curves)

    @property
    def judged(self) -> Items:
        """The items of N."""
        return self.work.judged

    @property
    def loss(self) -> Floats:
        """The loss of each; NaN where no metric needed one."""
        return self.work.columns.loss

    @property
    def weights(self) -> Floats:
        """How many items each row stands for."""
        return self.work.columns.weight


def _fingerprint(values: Floats) -> bytes:
    """Return what tells arrays of numbers apart, without a copy of them."""
    return hashlib.blake2b(np.ascontiguousarray(values).data, digest_size=16).digest()


def _largest_loss(loss: ItemLoss | None, items: Items) -> float:
    """The largest loss there can be: 1 for right and wrong or on a scale, else that of the scale, else the largest."""
    if loss is None or loss.name in ("zero_one", "abs_norm"):
        return 1.0
    if loss.name == "abs" and items.scale is not None:
        return items.scale[1] - items.scale[0]
    return float(np.nanmax(loss.values, initial=0.0))


def _count(weight: Floats) -> int:
    return round(float(weight.sum()))


def _columns(items: Items, loss: ItemLoss | None, needed: set[str]) -> Columns:
    """The columns of items; guidance and objects are only looked at where a metric needs them."""
    guide = items.metadata.get("should_abstain") if "should_abstain" in needed else None
    given: dict[str, Any] = {
        "answered": items.answered,
        "truth": labels.truths(items.truth, "truth"),
        "prediction": labels.column(items.prediction, "prediction"),
        "scale": items.scale,
        "largest_loss": _largest_loss(loss, items),
        "may_abstain": items.may_abstain,
        "positive": items.positive,
    }
    if items.weight is not None:
        given["weight"] = items.weight
    if items.intervals is not None:
        given["intervals"] = items.intervals
    if items.sets is not None:
        given |= {"sets": items.sets, "class_index": items.class_index}
    if loss is not None:
        given["loss"] = loss.values
    if guide is not None:
        given["should_abstain"] = guidance(guide)
    if "results" in needed:
        given["results"] = items_to_results(items)
    return Columns.of(len(items), **given)


def _check_probabilities(
    items: Items, metrics: Sequence[MetricSpecification], confidence: Floats, slot: str
) -> None:
    """Check that what is believed as a probability is one; the error says where it is not."""
    believed = next((metric for metric in metrics if metric.rows == "stated"), None)
    wrong = (confidence < 0.0) | (confidence > 1.0)
    if believed is not None and slot and wrong.any():
        row = int(np.argmax(wrong))
        known = confidence[~np.isnan(confidence)]
        percent = f'; if it is in percent, add --percent {slot} (percent=["{slot}"])'
        raise DataError(
            f"{believed.name} needs a confidence in [0, 1], got {confidence[row]:g} for {items.where(wrong)}; ask for "
            "it with a confidence that is a probability"
            f"{percent if slot in items.signals and known.min() >= 0.0 and known.max() <= 100.0 else ''}"
        )
