"""Groups of items that have the same values in some columns, and their names."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from abstain import _validate
from abstain._row_names import row_name
from abstain.errors import ArgumentError, DataError, list_names
from abstain.labels import EXACT
from abstain.results import PREFIX

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from abstain.items import Items

__all__ = ["Group", "columns_for_groups", "group_names", "group_numbers", "groups"]

MISSING = "(missing)"
_TYPES = (str, bool, int, float, type(None))
# Every group gets its own estimates, and a column with more values is probably a measurement or an identifier.
MOST_GROUPS = 10_000


@dataclass(frozen=True, eq=False, slots=True)
class Group:
    """The rows that have the same values in some columns.

    Attributes:
        label: the name of the group, such as "sex=F, site=A".
        values: the values by column.
        rows: the indices of the rows, ascending.
    """

    label: str
    values: Mapping[str, Any] = field(repr=False)
    rows: NDArray[np.intp] = field(repr=False)


def columns_for_groups(items: Items) -> tuple[str, ...]:
    """Return the columns that items can be grouped by: their metadata, their signals, and their item names."""
    plain = (name for name in items.metadata if not name.startswith(PREFIX))
    return tuple(dict.fromkeys((*plain, *items.signals, "item")))


def groups(items: Items, by: str | Sequence[str]) -> tuple[Group, ...]:
    """Return the groups of items by the values of some columns, in the order of their values."""
    names = [by] if isinstance(by, str) else list(by)
    if not names or len(set(names)) != len(names):
        raise ArgumentError(f"by must name at least one column, and none twice; {_listed(items)}")
    (first, number), *further = (_distinct_values(items, name) for name in names)
    # Rows are numbered by the columns so far, in the order of their values; `keys` holds the values of each number.
    keys: list[tuple[Any, ...]] = [(value,) for value in first]
    for values, index in further:
        pairs, number = np.unique(number * len(values) + index, return_inverse=True)
        keys = [(*keys[pair // len(values)], values[pair % len(values)]) for pair in pairs.tolist()]
    if len(keys) > MOST_GROUPS:
        raise DataError(
            f"{list_names(names)} makes {len(keys):,} groups, and at most {MOST_GROUPS:,} are evaluated; name a column "
            "with fewer values, or add one to the table that combines values, such as a week instead of a time"
        )
    # Numbers of 16 bits are sorted in linear time.
    order = np.argsort(number.astype(np.uint16), kind="stable")
    ends = np.cumsum(np.bincount(number, minlength=len(keys)))
    return tuple(
        Group(
            label=", ".join(f"{name}={_text(value)}" for name, value in zip(names, key, strict=True)),
            values=dict(zip(names, key, strict=True)),
            rows=rows,
        )
        for key, rows in zip(keys, np.split(order, ends)[:-1], strict=True)
    )


def group_numbers(all_groups: Sequence[Group]) -> NDArray[np.intp]:
    """Return the index of every item's group among all groups of some columns."""
    numbers = np.empty(sum(len(group.rows) for group in all_groups), np.intp)
    for number, group in enumerate(all_groups):
        numbers[group.rows] = number
    return numbers


def group_names(items: Items, by: str) -> NDArray[Any]:
    """Return the name of every item's group by one column."""
    values, index = _distinct_values(items, by)
    return _validate.objects(list(map(_text, values)))[index]


def _listed(items: Items) -> str:
    """Return the columns for a message, unless they may be the first record of a file without a header."""
    if items.provenance.get("headless"):
        return "the first line of the file may contain values and not names: does it have a header?"
    return _validate.listed_columns(columns_for_groups(items))


def _distinct_values(items: Items, name: str) -> tuple[list[Any], NDArray[np.intp]]:
    """Return the distinct values of a column in the order of groups, and the index of each row's value among them."""
    columns = columns_for_groups(items)
    if name not in columns:
        raise ArgumentError(
            f"unknown group column {name!r}{_validate.suggestion(name, columns)}; {_listed(items)}"
        )
    if name in items.metadata:
        column = items.metadata[name]
    else:
        # The reader of a table makes every numeric column a signal, and a stage or an age group may be numeric.
        column = items.signals[name].values if name in items.signals else items.item
    if column.dtype.kind in "iub":
        distinct, index = np.unique(column, return_inverse=True)
        return distinct.tolist(), index.astype(np.intp, copy=False)
    values = column.tolist()
    types = set(map(type, values))
    _check_types(name, values, types)
    if any(issubclass(each, float) for each in types):
        values = [None if isinstance(value, float) and math.isnan(value) else value for value in values]
    ordered = sorted(dict.fromkeys(values), key=_order)
    position = {value: number for number, value in enumerate(ordered)}
    return ordered, np.fromiter(map(position.__getitem__, values), np.intp, len(values))


def _check_types(name: str, values: Sequence[Any], types: Iterable[type]) -> None:
    """Raise if a value is not text, a number or a boolean; `types` are the types that occur."""
    if all(issubclass(each, _TYPES) for each in types):
        return
    row, value = next((row, value) for row, value in enumerate(values) if not isinstance(value, _TYPES))
    raise DataError(
        f"{name} is {_validate.kind(value)} at {row_name(row)}; "
        "a column for groups must contain text, numbers or booleans"
    )


def _order(value: Any) -> tuple[int, Any]:
    """Return a sort key: numbers ascending, then text, then missing values."""
    if value is None:
        return (2, "")
    return (1, value) if isinstance(value, str) else (0, value)


def _text(value: Any) -> str:
    """Return the name of a value's group. Different values have different names, and 3.0 is written as 3."""
    if value is None:
        return MISSING
    if not isinstance(value, float):
        return str(value)
    if value.is_integer() and abs(value) <= EXACT:
        return str(int(value))
    short = f"{value:g}"
    return short if float(short) == value else str(value)
