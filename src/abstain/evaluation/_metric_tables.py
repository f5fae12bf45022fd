"""The metrics that were asked for by name: over all items, by group, and how far the worst group is from the rest.

A group is named by its columns and values, such as ``ckd_stage=3`` or ``sex=F, site=A``. Rows without a value
are a group of their own, because leaving them out would hide them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from abstain import _validate
from abstain.errors import ArgumentError, DataError
from abstain.metrics.registry import find_metric
from abstain.results import PREFIX

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from abstain.inference import Estimate
    from abstain.items import Items
    from abstain.metrics import MetricSpecification
    from abstain.metrics.abstention import PopulationTable


__all__ = ["ALL", "Group", "GroupGap", "GroupResult", "Key", "MetricTable", "columns_for_groups", "groups"]

MISSING = "(missing)"
# Beyond this a column is no grouping but a measurement.
MOST_GROUPS = 100


@dataclass(frozen=True, eq=False, slots=True)
class Group:
    """Some rows and what they have in common."""

    label: str
    values: Mapping[str, Any]
    rows: NDArray[np.bool_]


def columns_for_groups(items: Items) -> tuple[str, ...]:
    """Return the columns that items can be grouped by: their metadata, their signals, and their item names."""
    plain = (name for name in items.metadata if not name.startswith(PREFIX))
    return tuple(dict.fromkeys((*plain, *items.signals, "item")))


def groups(items: Items, by: str | Sequence[str]) -> tuple[Group, ...]:
    """Return the groups of items by the values of some columns, in the order of their values."""
    names = [by] if isinstance(by, str) else list(by)
    known = columns_for_groups(items)
    if not names or len(set(names)) != len(names):
        raise ArgumentError(f"by must name columns, each once; {_validate.listed_columns(known)}")
    for name in names:
        if name not in known:
            raise ArgumentError(
                f"unknown group column {name!r}{_validate.suggestion(name, known)}; {_validate.listed_columns(known)}"
            )
    columns = [_values(items, name) for name in names]
    keys = list(zip(*columns, strict=True))
    distinct = sorted(set(keys), key=lambda key: tuple(map(_order, key)))
    if len(distinct) > MOST_GROUPS:
        raise DataError(
            f"{', '.join(names)} makes {len(distinct)} groups; name a column with at most {MOST_GROUPS} values"
        )
    number = {key: place for place, key in enumerate(distinct)}
    code = np.array([number[key] for key in keys], dtype=np.intp)
    return tuple(
        Group(
            label=", ".join(f"{name}={_text(value)}" for name, value in zip(names, key, strict=True)),
            values=dict(zip(names, key, strict=True)),
            rows=code == place,
        )
        for place, key in enumerate(distinct)
    )


def _values(items: Items, name: str) -> list[Any]:
    if name in items.metadata:
        column = items.metadata[name]
    else:
        # A table's reader takes every column of numbers for a signal; a stage or an age group may be one.
        column = items.signals[name].values if name in items.signals else items.item
    values = column.tolist()
    for row, value in enumerate(values):
        if not (value is None or isinstance(value, (str, bool, int, float))):
            raise DataError(
                f"{name} is {_validate.kind(value)} at row {row}; groups are made of text, numbers and booleans"
            )
    return [None if isinstance(value, float) and np.isnan(value) else value for value in values]


def _order(value: Any) -> tuple[int, Any]:
    """Numbers ascending, then text, then what is missing."""
    if value is None:
        return (2, "")
    return (1, value) if isinstance(value, str) else (0, value)


def _text(value: Any) -> str:
    return MISSING if value is None else f"{value:g}" if isinstance(value, float) else str(value)


# The label of all rows, and of metrics that need no confidence.
ALL = ""


class Key(NamedTuple):
    """What an estimate of a system is known by: the confidence (empty where none is needed), the metric, the group."""

    confidence: str
    metric: str
    group: str = ALL


@dataclass(frozen=True, eq=False, slots=True)
class GroupResult:
    """The metrics of one group.

    Attributes:
        label: the group's name, such as "ckd_stage=3".
        values: the values that make the group, by column.
        items: how many items it has.
        answered: how many of them are answered.
        clusters: how many clusters they come from.
        estimates: the metrics, by the names of the table.
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
class MetricTable(Mapping[str, "Estimate"]):
    """The metrics that were asked for by name, over all items and by group.

    A metric that needs a confidence is called ``metric[confidence]`` where several were asked for.

    Attributes:
        specifications: what each metric is.
        keys_of: what each is known by among the estimates of its system.
        estimates: the metrics over all items.
        by: the columns that make the groups.
        groups: the metrics of each group.
        gaps: the gap of each metric that has one.
        outcomes: how many items were answered rightly, answered wrongly, abstained from, and failed.
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
        """The name in the table; a metric's parameter may be left out where it is the default."""
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
        """True where any of the metrics judges predictions, and not only intervals, sets or who declined."""
        return any("prediction" in metric.needs for metric in self.specifications.values())

    def group(self, label: str) -> GroupResult:
        """Return one group by its label."""
        _validate.choice(label, "group", [group.label for group in self.groups])
        return next(group for group in self.groups if group.label == label)

    def __repr__(self) -> str:
        return "\n".join(f"{name}: {estimate}" for name, estimate in self.items())
