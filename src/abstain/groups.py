"""Groups: items that have a column's value in common, whoever asks for them, and what such a group is called."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from abstain import _validate
from abstain._row_names import row_name
from abstain.errors import ArgumentError, DataError
from abstain.results import PREFIX

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from abstain.items import Items

__all__ = ["Group", "columns_for_groups", "group_names", "group_numbers", "groups"]

MISSING = "(missing)"
# Beyond this a column is no grouping but a measurement.
MOST_GROUPS = 100


@dataclass(frozen=True, eq=False, slots=True)
class Group:
    """Some rows and what they have in common."""

    label: str
    values: Mapping[str, Any] = field(repr=False)
    rows: NDArray[np.bool_] = field(repr=False)


def columns_for_groups(items: Items) -> tuple[str, ...]:
    """Return the columns that items can be grouped by: their metadata, their signals, and their item names."""
    plain = (name for name in items.metadata if not name.startswith(PREFIX))
    return tuple(dict.fromkeys((*plain, *items.signals, "item")))


def groups(items: Items, by: str | Sequence[str]) -> tuple[Group, ...]:
    """Return the groups of items by the values of some columns, in the order of their values."""
    names = [by] if isinstance(by, str) else list(by)
    if not names or len(set(names)) != len(names):
        raise ArgumentError(f"by must name columns, each once; {_listed(items)}")
    keys = list(zip(*(_values(items, name) for name in names), strict=True))
    distinct = sorted(set(keys), key=lambda key: tuple(map(_order, key)))
    if len(distinct) > MOST_GROUPS:
        raise DataError(
            f"{', '.join(names)} makes {len(distinct)} groups; name a column with at most {MOST_GROUPS} values"
        )
    number = {key: index for index, key in enumerate(distinct)}
    code = np.array([number[key] for key in keys], dtype=np.intp)
    return tuple(
        Group(
            label=", ".join(f"{name}={_text(value)}" for name, value in zip(names, key, strict=True)),
            values=dict(zip(names, key, strict=True)),
            rows=code == index,
        )
        for index, key in enumerate(distinct)
    )


def group_numbers(all_groups: Sequence[Group]) -> NDArray[np.intp]:
    """Return the place of every item's group among all groups of some columns."""
    return np.argmax(np.stack([group.rows for group in all_groups]), axis=0)


def group_names(items: Items, by: str) -> NDArray[Any]:
    """Return the name of every item's group by one column."""
    return _validate.objects(list(map(_text, _values(items, by))))


def _listed(items: Items) -> str:
    """The columns in words, unless they may be the first record of a file without a header."""
    if items.provenance.get("headless"):
        return "the first line of the file may hold values and not names: does it have a header?"
    return _validate.listed_columns(columns_for_groups(items))


def _values(items: Items, name: str) -> list[Any]:
    columns = columns_for_groups(items)
    if name not in columns:
        raise ArgumentError(
            f"unknown group column {name!r}{_validate.suggestion(name, columns)}; {_listed(items)}"
        )
    if name in items.metadata:
        column = items.metadata[name]
    else:
        # A table's reader takes every column of numbers for a signal; a stage or an age group may be one.
        column = items.signals[name].values if name in items.signals else items.item
    values = column.tolist()
    for row, value in enumerate(values):
        if not (value is None or isinstance(value, (str, bool, int, float))):
            raise DataError(
                f"{name} is {_validate.kind(value)} at {row_name(row)}; groups are made of text, numbers and booleans"
            )
    return [None if isinstance(value, float) and np.isnan(value) else value for value in values]


def _order(value: Any) -> tuple[int, Any]:
    """Numbers ascending, then text, then what is missing."""
    if value is None:
        return (2, "")
    return (1, value) if isinstance(value, str) else (0, value)


def _text(value: Any) -> str:
    """A value as the name of its group: no two values have the same, and 3.0 is 3."""
    if value is None:
        return MISSING
    short = f"{value:g}" if isinstance(value, float) else ""
    return short if short and float(short) == value else str(value)
