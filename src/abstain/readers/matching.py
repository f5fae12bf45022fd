"""Matching the rows of aggregated tables by name, in their engine.

One query groups the rows of all tables by their names and finds, for every item, the tables that have it, those in
which it is evaluated, and its truth in each. There are few different patterns of these, and only they are fetched.
`abstain.matching` interprets them and raises errors, as for items in memory. If every row of every table
matches, the tables remain as they are; otherwise they are restricted to the names that match.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from abstain import labels
from abstain.errors import AggregationError, DataError
from abstain.items import Outcome
from abstain.matching import (
    ROWS,
    Matching,
    check_equal_rows,
    check_kinds,
    check_truths,
    different_truths,
    items_differ,
    known_by,
    nothing_evaluated,
    nothing_shared,
    twice,
)
from abstain.readers._engine import NAME_KEYS
from abstain.readers._row_checks import check_all_named, check_unique, select_repeated
from abstain.readers._row_query import Name

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from abstain.readers.aggregation import AggregatedTable

    Counts = NDArray[np.int64]

__all__ = ["match_tables"]


def match_tables(
    sides: Mapping[str, AggregatedTable], *, by: str, intersection_only: bool, truth_may_differ: bool
) -> tuple[dict[str, AggregatedTable], Matching]:
    """Return every table with the compared rows, and a summary of the omitted rows.

    Args:
        sides: at least two tables of one engine, by the names of their systems.
        by: "names", or "rows" to match rows by their order.
        intersection_only: leave out items that a system lacks; if False, they are an error.
        truth_may_differ: allow different truths for an item; if False, they are an error.
    """
    for name, side in sides.items():
        if not (side.row_types.outcome <= Outcome.ABSTAINED).any():
            raise DataError(nothing_evaluated(name))
    if by == ROWS and not all(side.engine.in_order for side in sides.values()):
        engine = next(iter(sides.values())).engine.name
        raise AggregationError(
            "the tables",
            f"{engine} has no order of rows to match them by",
            way_out="name the items (item=, --item), or ",
        )
    fields = known_by({name: side.row_types.unnamed for name, side in sides.items()}, by)
    work = _Match(sides, fields)
    matching = work.matching(intersection_only=intersection_only)
    check_truths(matching, may_differ=truth_may_differ)
    if work.all_kept and "cluster" in fields:
        return dict(sides), matching
    names, clusters = work.kept_names, work.cluster
    return {name: side.restrict(names, fields, clusters) for name, side in sides.items()}, matching


@dataclass(eq=False)
class _Match:
    """The rows of several tables, grouped by the names of the fields `by`."""

    sides: Mapping[str, AggregatedTable]
    by: tuple[str, ...]

    @property
    def _first(self) -> AggregatedTable:
        return next(iter(self.sides.values()))

    @cached_property
    def _keys(self) -> list[str]:
        return [NAME_KEYS[role] for role in self.by]

    @cached_property
    def _whose_clusters(self) -> int | None:
        """The number of the first table that has clusters, which all tables use; None if no table has any."""
        named = [place for place, side in enumerate(self.sides.values()) if "cluster" in side.columns]
        return named[0] if named else None

    @cached_property
    def cluster(self) -> Name:
        """The form of the names of clusters; if no table has clusters, every item is one."""
        if self._whose_clusters is not None:
            return list(self.sides.values())[self._whose_clusters].query.name("cluster")
        return Name(True) if self.by == (ROWS,) else self._first.query.name("item")

    def _check_names(self) -> None:
        for role in (role for role in self.by if role != ROWS):
            for side in self.sides.values():
                check_all_named(side.query, role)
            check_kinds({name: side.query.name(role).whole for name, side in self.sides.items()}, role)

    @cached_property
    def _truths(self) -> list[tuple[NDArray[Any], NDArray[np.intp]]]:
        """The different truths of each table, and the number of the truth of each row type."""
        found = []
        for side in self.sides.values():
            truth = labels.column(side.row_types.truth, "truth")
            _, first, index = np.unique(
                [repr(value) for value in truth.tolist()], return_index=True, return_inverse=True
            )
            found.append((truth[first], index.astype(np.intp)))
        return found

    def _rows(self, place: int, side: AggregatedTable) -> str:
        """Select the rows of one table: their names, whether they are evaluated, and their truth."""
        evaluated = (side.row_types.outcome <= Outcome.ABSTAINED).astype(np.int8)
        side.give_by_type("sides", j=evaluated, truth=self._truths[place][1])
        keys = [*self._keys]
        if place == self._whose_clusters and "c" not in keys:
            keys.append("c")
        parts = [f"b.{key} AS {key}" for key in keys]
        if self._whose_clusters is not None and "c" not in keys:
            parts.append("NULL AS c")
        rows = side.join(side.type_rows(side.query.select_named(self.by)), "sides")
        return (
            f"SELECT {', '.join(sorted(parts))}, sides.j AS j, sides.truth AS t, {place} AS side FROM {rows}"
        )

    @cached_property
    def _names(self) -> str:
        """A source with one row for each item: its names and cluster, and its rows, outcome and truth in each table."""
        self._check_names()
        rows = " UNION ALL ".join(self._rows(place, side) for place, side in enumerate(self.sides.values()))
        keys = ", ".join(self._keys)
        parts = [keys]
        if "c" not in self._keys:
            parts.append(f"{'max(c)' if self._whose_clusters is not None else self._keys[0]} AS c")
        for place in range(len(self.sides)):
            own = f"CASE WHEN side = {place} THEN"
            parts += [
                f"CAST(sum({own} 1 ELSE 0 END) AS BIGINT) AS n{place}",
                f"max({own} j ELSE 0 END) AS j{place}",
                f"max({own} t ELSE -1 END) AS t{place}",
            ]
        statement = f"SELECT {', '.join(parts)} FROM ({rows}) AS rows_of_all GROUP BY {keys}"
        self._first.engine.keep("names", statement)
        return self._first.engine.known("names")

    @property
    def kept_names(self) -> str:
        """A source of the names and clusters of the items that are compared."""
        keys = ", ".join(dict.fromkeys((*self._keys, "c")))
        return f"(SELECT {keys} FROM {self._names} WHERE {self._shared} AND {self._evaluated}) AS names"

    @property
    def _shared(self) -> str:
        return " AND ".join(f"n{place} > 0" for place in range(len(self.sides)))

    @property
    def _evaluated(self) -> str:
        return " AND ".join(f"j{place} = 1" for place in range(len(self.sides)))

    @cached_property
    def _patterns(self) -> Mapping[str, Counts]:
        """The different patterns of rows, outcomes and truths, and the number of items with each."""
        keys = ", ".join(f"{key}{place}" for place in range(len(self.sides)) for key in "njt")
        found = self._first.engine.fetch(
            f"SELECT {keys}, count(*) AS items FROM {self._names} GROUP BY {keys}"
        )
        return {key: values.astype(np.int64) for key, values in found.items()}

    def _each(self, key: str) -> dict[str, Counts]:
        return {name: self._patterns[f"{key}{place}"] for place, name in enumerate(self.sides)}

    @cached_property
    def all_kept(self) -> bool:
        """Whether every row of every table is compared."""
        return all((values == 1).all() for key in "nj" for values in self._each(key).values())

    def matching(self, *, intersection_only: bool) -> Matching:
        """Return a summary of the compared and the omitted items; raise if items differ and must not."""
        patterns, held, evaluated = self._patterns, self._each("n"), self._each("j")
        items = patterns["items"]
        self._check_duplicates()
        shared = np.logical_and.reduce([own > 0 for own in held.values()])
        total, common = int(items.sum()), int(items[shared].sum())
        missing = {name: int(items[own == 0].sum()) for name, own in held.items()}
        if self.by == (ROWS,):
            check_equal_rows(
                {name: side.query.number(side.query.engine.source()) for name, side in self.sides.items()}
            )
        if common < total and not intersection_only:
            raise DataError(items_differ(total, common, missing, self._first_missing(missing)))
        both = shared & np.logical_and.reduce([own == 1 for own in evaluated.values()])
        if not both.any():
            raise DataError(nothing_shared(common, self._first.row_types.cluster_noun))
        truths = [
            truth[np.where(shared, own, 0)]
            for (truth, _), own in zip(self._truths, self._each("t").values(), strict=True)
        ]
        clusters = self._clusters() if self._whose_clusters is not None else None
        return Matching(
            by=self.by,
            total=total,
            shared=common,
            evaluated=int(items[both].sum()),
            missing=missing,
            left_out={name: int(items[shared & (own == 0)].sum()) for name, own in evaluated.items()},
            different_truths=int(items[shared & different_truths(truths)].sum()),
            intersection_only=intersection_only,
            clusters=int(items[both].sum()) if clusters is None else clusters["compared"],
            clusters_shared=common if clusters is None else clusters["shared"],
            clusters_unmatched={
                name: clusters[f"held{place}"] - clusters["shared"]
                if clusters and "cluster" in self.by
                else 0
                for place, name in enumerate(self.sides)
            },
            clusters_failed={
                name: int(items[shared & (evaluated[name] == 0)].sum())
                if clusters is None
                else clusters["shared"] - clusters[f"evaluated{place}"]
                for place, name in enumerate(self.sides)
            },
        )

    def _clusters(self) -> dict[str, int]:
        """Return the numbers of clusters that tables have, share, and have evaluated items of."""
        conditions = {"shared": self._shared, "compared": f"{self._shared} AND {self._evaluated}"}
        for place in range(len(self.sides)):
            conditions[f"held{place}"] = f"n{place} > 0"
            conditions[f"evaluated{place}"] = f"{self._shared} AND j{place} = 1"
        flags = ", ".join(
            f"max(CASE WHEN {condition} THEN 1 ELSE 0 END) AS {key}" for key, condition in conditions.items()
        )
        each = f"(SELECT {flags} FROM {self._names} GROUP BY c) AS each_cluster"
        sums = ", ".join(f"CAST(sum({key}) AS BIGINT) AS {key}" for key in conditions)
        found = self._first.engine.fetch(f"SELECT {sums} FROM {each}")
        return {key: int(values[0]) for key, values in found.items()}

    # Errors.

    def _check_duplicates(self) -> None:
        """Raise if a table has a duplicate item."""
        keys = ", ".join(self._keys)
        for (name, side), held in zip(self.sides.items(), self._each("n").values(), strict=True):
            if not (held > 1).any():
                continue
            if "item" in self.by and ("cluster" in self.by) == ("cluster" in side.columns):
                check_unique(side.query, self.by)
            if side.engine.in_order:
                chosen = f"{select_repeated(side.query, self.by)} ORDER BY r LIMIT 1"
            else:
                rows = f"SELECT {keys} FROM ({side.query.select_named(self.by)}) AS b"
                chosen = f"{rows} GROUP BY {keys} HAVING count(*) > 1 ORDER BY {keys} LIMIT 1"
            raise DataError(twice(name, self._place(side, chosen, occurrence=1), self.by))

    def _first_missing(self, missing: Mapping[str, int]) -> str:
        """Return the location of the first item, by name, that is missing in the first system that lacks any."""
        lacking = next(place for place, count in enumerate(missing.values()) if count)
        keys = ", ".join(self._keys)
        chosen = f"SELECT * FROM {self._names} WHERE n{lacking} = 0 ORDER BY {keys} LIMIT 1"
        found = self._first.engine.fetch(chosen)
        having = next(place for place in range(len(self.sides)) if found[f"n{place}"][0] > 0)
        return self._place(list(self.sides.values())[having], chosen)

    def _place(self, side: AggregatedTable, chosen: str, occurrence: int = 0) -> str:
        """Return the location in a table of an item that a query selects, by default of its first row."""
        named = [role for role in ("cluster", "item") if role in side.columns]
        numbered = side.engine.in_order
        parts = [f"b.{NAME_KEYS[role]} AS {NAME_KEYS[role]}" for role in named]
        same = " AND ".join(f"b.{key} = chosen.{key}" for key in self._keys)
        rows = side.query.select_named((*self.by, *named), numbers=numbered)
        found = side.engine.fetch(
            f"SELECT {', '.join([*parts, *['b.r AS r'] * numbered])} FROM ({rows}) AS b JOIN ({chosen}) AS chosen "
            f"ON {same} ORDER BY {'r' if numbered else '1'} LIMIT 2"
        )
        return side.row_types.place_of(
            {role: found[NAME_KEYS[role]][occurrence] for role in named},
            int(found["r"][occurrence]) if numbered else None,
        )
