"""The requested metrics: over all items, by group, and the gap between the worst group and the rest.

A group is named by its columns and values, such as ``ckd_stage=3`` or ``sex=F, site=A``. Rows without a value are a
separate group, so that they are not hidden.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from abstain import _validate
from abstain._text import few_lines
from abstain.errors import ArgumentError
from abstain.evaluation._frames import table_frame
from abstain.metrics.registry import find_metric

if TYPE_CHECKING:
    from collections.abc import Iterator

    from abstain.inference import Estimate
    from abstain.metrics import MetricSpecification
    from abstain.metrics.abstention import PopulationTable


# The label of all rows, and of metrics that need no confidence.
ALL = ""


class Key(NamedTuple):
    """The key of an estimate of a system: the confidence (empty if none is needed), the metric and the group."""

    confidence: str
    metric: str
    group: str = ALL


@dataclass(frozen=True, eq=False, slots=True)
class GroupResult:
    """The metrics of one group.

    Attributes:
        label: the group's name, such as "ckd_stage=3".
        values: the values that make the group, by column.
        items: number of items.
        answered: number of answered items.
        clusters: number of clusters that the items come from.
        estimates: the metrics, by the names of the table.
        note: why the group is too small to evaluate; empty if it is not.
    """

    label: str
    values: Mapping[str, Any] = field(repr=False)
    items: int
    answered: int
    clusters: int
    estimates: Mapping[str, Estimate] = field(repr=False)
    note: str


@dataclass(frozen=True, eq=False, slots=True)
class GroupGap:
    """The gap between the worst group by a metric and all other rows.

    Attributes:
        group: the worst group: the one with the worst value or, for a metric that declining more items improves, the
            one that is furthest behind all other rows at matched coverage. Groups that are too small are not
            considered.
        worst: the metric of the group; at matched coverage if there is one.
        rest: the metric of all other rows; at matched coverage if there is one.
        gap: worst - rest, with the same resamples; for a binned calibration error, of its debiased form. Because the
            group was chosen for being the worst, the gap is biased upwards, and its interval holds for all groups
            together.
        coverage: the largest coverage that both the group and all other rows reach, if the metric is compared at it;
            NaN otherwise.
    """

    group: str
    worst: Estimate
    rest: Estimate
    gap: Estimate
    coverage: float = math.nan


@dataclass(frozen=True, eq=False, slots=True)
class MetricTable(Mapping[str, "Estimate"]):
    """The requested metrics, over all items and by group.

    A metric that needs a confidence is called ``metric[confidence]`` if several confidences were requested.

    Attributes:
        specifications: the specification of each metric.
        keys_of: the key of each metric among the estimates of its system.
        estimates: the metrics over all items.
        by: the columns that define the groups.
        groups: the metrics of each group.
        gaps: the gap of each metric that has one.
        outcomes: number of items that were answered right, answered wrong, abstained, and failed.
    """

    specifications: Mapping[str, MetricSpecification]
    keys_of: Mapping[str, Key]
    estimates: Mapping[str, Estimate]
    by: tuple[str, ...]
    groups: tuple[GroupResult, ...]
    gaps: Mapping[str, GroupGap]
    outcomes: PopulationTable

    def __getitem__(self, name: str) -> Estimate:
        return self.estimates[self._name(name)]

    def _name(self, name: str) -> str:
        """Return the name in the table; the parameter of a metric may be omitted if it is the default."""
        if name in self.estimates:
            return name
        base, bracket, confidence = name.partition("[")
        try:
            longer = find_metric(base).key + bracket + confidence
        except ArgumentError:
            longer = name
        return longer if longer in self.estimates else _validate.choice(name, "metric", self.estimates)

    def __contains__(self, name: object) -> bool:
        return name in self.estimates

    def __iter__(self) -> Iterator[str]:
        return iter(self.estimates)

    def __len__(self) -> int:
        return len(self.estimates)

    @property
    def of_predictions(self) -> bool:
        """True if any of the metrics evaluates predictions, and not only intervals, sets or abstentions."""
        return any("prediction" in metric.needs for metric in self.specifications.values())

    def group(self, label: str) -> GroupResult:
        """Return one group by its label."""
        _validate.choice(label, "group", [group.label for group in self.groups])
        return next(group for group in self.groups if group.label == label)

    def worst_groups(self, name: str, most: int) -> tuple[GroupResult, ...]:
        """Return at most `most` groups: those with the worst values of a metric, in the order of all groups.

        The group of the metric's gap is the first choice. Groups that are too small or undefined are the last. For a
        metric without a direction, the groups with the lowest values are returned.
        """
        if len(self.groups) <= most:
            return self.groups
        name = self._name(name)
        gap = self.gaps.get(name)
        sign = -1.0 if self.specifications[name].direction == "lower" else 1.0

        def order(number: int) -> tuple[bool, bool, float]:
            group = self.groups[number]
            estimate = group.estimates[name]
            in_gap = gap is not None and gap.group == group.label
            value = sign * estimate.value if estimate.defined else math.inf
            return not in_gap, bool(group.note), value

        return tuple(
            self.groups[number] for number in sorted(sorted(range(len(self.groups)), key=order)[:most])
        )

    def to_frame(self, *, backend: str | None = None) -> Any:
        """Return the metrics as a data frame: one row each over all items (``group`` is empty) and per group.

        Args:
            backend: "pandas", "polars" or "pyarrow". Default: the first of these that is installed.
        """
        return table_frame(self, backend)

    def __repr__(self) -> str:
        groups = f" in {len(self.groups)} groups" if self.groups else ""
        return few_lines(f"Metrics{groups}", [f"{name}: {estimate}" for name, estimate in self.items()])
