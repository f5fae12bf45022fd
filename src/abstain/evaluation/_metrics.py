"""Metric tables: any metrics of the registry on items, with intervals, by group, and compared.

Every (group, metric) pair has a plan over the clusters of all items, so that one set of draws serves the whole
table and both sides of a comparison. The gap of a metric is between its worst group and all other rows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from abstain import _validate, labels
from abstain.errors import ArgumentError, DataError
from abstain.evaluation._groups import Group, groups
from abstain.evaluation._results import EMPTY_RANGE
from abstain.inference import Estimate, estimates, points
from abstain.items import Outcome
from abstain.losses import ItemLoss, item_loss
from abstain.metrics._columns import Columns, SubsetPlan, guidance
from abstain.metrics.registry import MetricSpecification, select_metrics
from abstain.results import items_to_results

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from abstain.inference import Draws
    from abstain.items import Items
    from abstain.losses import Loss
    from abstain.metrics._plan import Plan
    from abstain.metrics.abstention import PopulationTable
    from abstain.metrics.registry import MetricLike

    Floats = NDArray[np.float64]
    Place = tuple[str, str]

__all__ = ["GroupGap", "GroupResult", "MetricDeltas", "MetricTable", "TablePlans", "metric_deltas"]

# Fewer clusters than this say next to nothing: an interval over them is not to be believed.
SMALLEST_GROUP = 10
_ALL = ""


@dataclass(frozen=True, eq=False, slots=True)
class GroupResult:
    """The metrics of one group.

    Attributes:
        label: the group's name, such as "ckd_stage=3".
        values: the values that make the group, by column.
        items: how many items it has.
        answered: how many of them are answered.
        clusters: how many clusters they come from.
        estimates: the metrics.
        note: why the group is too small to judge; empty when it is not.
    """

    label: str
    values: Mapping[str, Any]
    items: int
    answered: int
    clusters: int
    estimates: Mapping[str, Estimate]
    note: str


@dataclass(frozen=True, eq=False, slots=True)
class GroupGap:
    """How far the worst group of a metric is from all other rows.

    Attributes:
        group: the worst group: the lowest value where higher is better, the highest where lower is, else the
            one furthest from the rest. Groups that are too small to judge are not looked at.
        worst: the metric there.
        rest: the metric on all other rows.
        gap: worst - rest, with the same draws. The group was chosen for being the worst, so that chance alone
            makes the gap look larger than it is, the more so the more groups there are.
    """

    group: str
    worst: Estimate
    rest: Estimate
    gap: Estimate


@dataclass(frozen=True, eq=False, slots=True)
class MetricTable(Mapping[str, Estimate]):
    """Metrics by name, over all items and by group.

    Attributes:
        specifications: what each metric is.
        estimates: the metrics over all items.
        by: the columns that make the groups.
        groups: the metrics of each group.
        gaps: the gap of each metric that has one.
        outcomes: how many items were answered rightly, answered wrongly, abstained from, and failed.
    """

    specifications: Mapping[str, MetricSpecification]
    estimates: Mapping[str, Estimate]
    by: tuple[str, ...]
    groups: tuple[GroupResult, ...]
    gaps: Mapping[str, GroupGap]
    outcomes: PopulationTable

    def __getitem__(self, name: str) -> Estimate:
        return self.estimates[_validate.choice(name, "metric", self.estimates)]

    def __iter__(self) -> Iterator[str]:
        return iter(self.estimates)

    def __len__(self) -> int:
        return len(self.estimates)

    def group(self, label: str) -> GroupResult:
        """Return one group by its label."""
        _validate.choice(label, "group", [group.label for group in self.groups])
        return next(group for group in self.groups if group.label == label)

    def __repr__(self) -> str:
        return "\n".join(f"{name}: {estimate}" for name, estimate in self.items())


@dataclass(frozen=True, eq=False, slots=True)
class MetricDeltas(Mapping[str, Estimate]):
    """Differences of metrics, right - left: over all items, and by group where both sides have it."""

    deltas: Mapping[str, Estimate]
    groups: Mapping[str, Mapping[str, Estimate]]

    def __getitem__(self, name: str) -> Estimate:
        return self.deltas[_validate.choice(name, "metric", self.deltas)]

    def __iter__(self) -> Iterator[str]:
        return iter(self.deltas)

    def __len__(self) -> int:
        return len(self.deltas)

    def __repr__(self) -> str:
        return "\n".join(f"{name}: {estimate}" for name, estimate in self.items())


@dataclass(frozen=True, eq=False, slots=True)
class TablePlans:
    """The plans of a metric table, ready to be weighed; make one with `prepare`.

    Attributes:
        plans: by (group label, metric), the label of all rows being empty.
        rests: by (group label, metric): the plan of the rows that are not in that group.
        columns: the rows, by metric, since metrics may be asked with different confidences.
        metrics: the specifications.
        groups: the groups.
        by: the columns that make the groups.
        outcomes: what became of every item.
    """

    plans: Mapping[Place, Plan]
    rests: Mapping[Place, Plan]
    columns: Mapping[str, Columns]
    metrics: Mapping[str, MetricSpecification]
    groups: tuple[Group, ...]
    by: tuple[str, ...]
    outcomes: PopulationTable

    @classmethod
    def prepare(
        cls,
        items: Items,
        asked: Sequence[MetricSpecification],
        *,
        by: str | Sequence[str] | None,
        confidences: Mapping[str, Floats],
        loss: Floats,
        outcomes: PopulationTable,
    ) -> TablePlans:
        """Prepare judged items: every metric on all rows and on every group, and on the rest of the worst group."""
        found = () if by is None else groups(items, by)
        names = () if by is None else (by,) if isinstance(by, str) else tuple(by)
        rows = _columns(items, loss, {column for metric in asked for column in metric.needs})
        columns: dict[str, Columns] = {}
        specifications: dict[str, MetricSpecification] = {}
        for metric in asked:
            ranked = confidences if "confidence" in metric.needs else {}
            for confidence in ranked or [_ALL]:
                several = len(ranked) > 1
                key = f"{metric.key}[{confidence}]" if several else metric.key
                specifications[key] = metric
                columns[key] = rows
                if ranked:
                    columns[key] = replace(rows, confidence=_checked(items, metric, ranked[confidence]))
        plans = {(_ALL, key): metric.build(columns[key]) for key, metric in specifications.items()}
        for group in found:
            for key, metric in specifications.items():
                plans[group.label, key] = SubsetPlan.over(columns[key], group.rows, metric.build)
        table = cls(plans, {}, columns, specifications, found, names, outcomes)
        return replace(table, rests=table._rests())

    def _rests(self) -> dict[Place, Plan]:
        rests = {}
        for key, metric in self.metrics.items():
            worst = self._worst(key, metric)
            if worst is not None:
                rests[worst.label, key] = SubsetPlan.over(self.columns[key], ~worst.rows, metric.build)
        return rests

    def _worst(self, key: str, metric: MetricSpecification) -> Group | None:
        values = {
            group.label: float(points(self.plans[group.label, key])[0])
            for group in self.groups
            if not self._note(group)
        }
        judged = [group for group in self.groups if not math.isnan(values.get(group.label, math.nan))]
        if len(judged) < 2:
            return None
        overall = float(points(self.plans[_ALL, key])[0])
        badness = {
            "higher": lambda group: -values[group.label],
            "lower": lambda group: values[group.label],
            "neither": lambda group: abs(values[group.label] - overall),
        }
        return max(judged, key=badness[metric.direction])

    @property
    def ordered(self) -> list[Plan]:
        """All plans, in the order in which their replicates are handed back."""
        return [*self.plans.values(), *self.rests.values()]

    def table(self, replicated: Sequence[Floats], draws: Draws, *, level: float) -> MetricTable:
        """Make the table of the replicates."""
        values = dict(
            zip([*self.plans, *((label, key, "rest") for label, key in self.rests)], replicated, strict=True)
        )
        made = {place: self._estimate(place, values[place], draws, level) for place in self.plans}
        gaps = {}
        for (label, key), plan in self.rests.items():
            replicas, others = values[label, key], values[label, key, "rest"]
            ends = [points(plan), points(self.plans[label, key])]
            n = len(self.columns[key])
            rest = estimates(ends[0], others, draws, n=n, level=level)[0]
            gap = estimates(*_differences(ends, [others, replicas]), draws, n=n, level=level)[0]
            gaps[key] = GroupGap(label, made[label, key], rest, gap)
        return MetricTable(
            specifications=self.metrics,
            estimates={key: made[_ALL, key] for key in self.metrics},
            by=self.by,
            groups=tuple(self._group(group, made) for group in self.groups),
            gaps=gaps,
            outcomes=self.outcomes,
        )

    def _group(self, group: Group, made: Mapping[Place, Estimate]) -> GroupResult:
        rows = next(iter(self.columns.values()))
        return GroupResult(
            label=group.label,
            values=group.values,
            items=int(group.rows.sum()),
            answered=int((group.rows & rows.answered).sum()),
            clusters=len(np.unique(rows.cluster[group.rows])),
            estimates={key: made[group.label, key] for key in self.metrics},
            note=self._note(group),
        )

    def _note(self, group: Group) -> str:
        rows = next(iter(self.columns.values()))
        clusters = len(np.unique(rows.cluster[group.rows]))
        if clusters >= SMALLEST_GROUP:
            return ""
        return f"too small to judge: {clusters} of the {SMALLEST_GROUP} clusters that a judgement needs"

    def _estimate(self, place: Place, replicated: Floats, draws: Draws, level: float) -> Estimate:
        label, key = place
        columns = self.columns[key]
        group = next((group for group in self.groups if group.label == label), None)
        rows = columns if group is None else columns.take(group.rows)[0]
        found = estimates(points(self.plans[place]), replicated, draws, n=len(rows), level=level)[0]
        note = "" if group is None else self._note(group)
        if self.metrics[key].unit == "loss" and not rows.answered.any():
            note = EMPTY_RANGE
        if not found.defined:
            problem = self.metrics[key].problem(rows)
            note = problem.sentence if problem else "the metric gives no number for these rows"
        return replace(found, reason=note, clusters=len(np.unique(rows.cluster)))


def metric_deltas(
    sides: tuple[TablePlans, TablePlans],
    replicated: tuple[Sequence[Floats], Sequence[Floats]],
    draws: Draws,
    *,
    level: float,
) -> MetricDeltas:
    """Return the differences right - left of every metric that both sides have, over all rows and by group."""
    values = [dict(zip(side.plans, own, strict=False)) for side, own in zip(sides, replicated, strict=True)]
    made: dict[str, dict[str, Estimate]] = {}
    for place in sides[0].plans:
        if place not in sides[1].plans:
            continue
        label, key = place
        ends = [points(side.plans[place]) for side in sides]
        differences = _differences(ends, [side[place] for side in values])
        found = estimates(*differences, draws, n=len(sides[0].columns[key]), level=level)[0]
        reason = "" if found.defined else "undefined on at least one side"
        made.setdefault(label, {})[key] = replace(found, reason=reason)
    return MetricDeltas(made.pop(_ALL, {}), made)


def _differences(ends: Sequence[Floats], replicated: Sequence[Floats]) -> tuple[Floats, Floats]:
    """Second less first, of the points and of the replicates; infinite on both sides is no difference at all."""
    with np.errstate(invalid="ignore"):
        return ends[1] - ends[0], replicated[1] - replicated[0]


def asked_metrics(
    metrics: MetricLike | Iterable[MetricLike] | None, by: str | Sequence[str] | None
) -> tuple[MetricSpecification, ...]:
    """Return the metrics of a call, none when none were asked for; groups without metrics are an error."""
    if metrics is not None:
        return select_metrics(metrics)
    if by is not None:
        raise ArgumentError("by= gives metrics by group, and none were asked for; name some in metrics=")
    return ()


def table_loss(
    source: Items, judged: Items, loss: Loss | None, asked: Sequence[MetricSpecification]
) -> ItemLoss:
    """Return the loss for a table without confidences: only where a metric needs one must it be defined."""
    needed = any("loss" in metric.needs for metric in asked)
    if not needed:
        name = loss if isinstance(loss, str) else "custom"
        why = "not needed by these metrics"
        return ItemLoss(name, why, 1.0, np.full(len(judged), np.nan), f"loss {name}: {why}")
    if loss is None or isinstance(loss, str) or callable(loss):
        return item_loss(judged, loss)
    everything = item_loss(source, loss)
    return replace(everything, values=everything.values[source.outcome <= Outcome.ABSTAINED])


def _columns(items: Items, loss: Floats, needed: set[str]) -> Columns:
    """The columns of items; guidance and objects are only looked at where a metric needs them."""
    nothing = np.full(len(items), np.nan)
    guide = items.metadata.get("should_abstain") if "should_abstain" in needed else None
    return Columns(
        answered=items.answered,
        truth=labels.truths(items.truth, "truth"),
        prediction=labels.column(items.prediction, "prediction"),
        confidence=nothing,
        should_abstain=nothing if guide is None else guidance(guide),
        loss=loss,
        cluster=items.cluster_index,
        weight=np.ones(len(items)) if items.weight is None else items.weight,
        scale=items.scale,
        intervals=np.empty((0, 2)) if items.intervals is None else items.intervals,
        sets=np.empty((0, 0), np.bool_) if items.sets is None else items.sets,
        class_index=None if items.sets is None else items.class_index,
        results=items_to_results(items) if "results" in needed else None,
    )


def _checked(items: Items, metric: MetricSpecification, confidence: Floats) -> Floats:
    """Check that what is believed as a probability is one; the error says where it is not."""
    if metric.rows == "stated":
        wrong = (confidence < 0.0) | (confidence > 1.0)
        if wrong.any():
            row = int(np.argmax(wrong))
            raise DataError(
                f"{metric.name} needs a confidence in [0, 1], got {confidence[row]:g} for {items.describe_row(row)} "
                f"(row {row}); ask for it with a confidence that is a probability"
            )
    return confidence
