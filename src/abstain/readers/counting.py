"""Tables whose rows are counted where they are: rows that are alike become one item with a weight.

No metric asks where a row stands. So an engine groups rows by what metrics look at, and only the groups are handed
over; what comes back is as large as there are different rows, not as there are rows. It goes in three steps:

- **kinds**: the rows by all columns but the confidence and the cluster: the labels, who abstained or failed, the
  columns of groups. There are few kinds, and what they mean is decided as for every other table, in `_columns`.
- **codes**: whoever judges says which kinds are alike to him, such as all that have the same loss.
- **cells**: the rows by unit, code and confidence. A unit is a cluster, or a group of them where there are more than
  are left out one by one (see `abstain._units`).

Confidences that take few values are counted as they are. Continuous ones are rounded to ten leading bits, of the
confidence or of what it lacks of 1: sums, differences and products of floating-point numbers, which are the same in
every engine. The rounded values are bins in the order of the confidence; each is represented by its mean. A bin whose
least and largest confidence are equal holds one value, and nothing is lost by it.

Engines differ in their words (`_engine`), not in what they are asked (`_statements`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from abstain._export import ABSENT_SUFFIX
from abstain._row_names import rows_named_by
from abstain._units import GROUPS, MOST_SINGLE, group_of
from abstain.errors import CountingError, DataError
from abstain.groups import group_numbers, groups
from abstain.items import Aggregation, FirstRow, Items, Outcome, Signal, identifiers, numbered
from abstain.readers import _values
from abstain.readers._columns import BEYOND_SCALES, TableRows, in_percent, items_from_rows, unread_columns
from abstain.readers._engine import DIGITS, NUMBER, rounded
from abstain.readers._fields import (
    assign_columns,
    column_provenance,
    scale_and_noun,
    system_column,
    unnamed_fields,
)
from abstain.readers._statements import NAME_KEYS, NOT_OF_KINDS, Statements
from abstain.readers._values import Problems

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from abstain._types import Floats, Indices, Mask
    from abstain.readers._engine import Engine
    from abstain.readers._read import ReadArguments
    from abstain.readers._tables import QueriedTable

    Found = Mapping[str, NDArray[Any]]

__all__ = ["AggregatedTable"]

# Intervals and sets are judged row by row, which only a table in memory can be.
_LOADED_ONLY = ("low", "high", "set")
# More kinds of rows, or cells, would be a table as large as its source.
_MOST_KINDS, _MOST_CELLS = 1 << 20, 1 << 24
# Whole numbers that lie within so many are counted by one bit each.
_MOST_BITS = 1 << 27


class AggregatedTable(Statements):
    """What the rows of a table that is counted mean. Make one with `of`."""

    @classmethod
    def of(
        cls,
        table: QueriedTable,
        engine: Engine,
        roles: ReadArguments,
        *,
        named: Sequence[str] | None = None,
        units: bool = True,
        origin: Mapping[str, Any] | None = None,
        asked: bool = True,
    ) -> AggregatedTable:
        """Find out which column plays which role."""
        columns = assign_columns(table, roles)
        for role in _LOADED_ONLY:
            if role in columns:
                raise CountingError(table.label, "intervals and sets are judged row by row")
        table.check_columns([*(named or ()), *(roles.metadata or ()), *(roles.percent or ())])
        table.prepare([name for name, kind in table.kinds.items() if kind not in ("list", "other")])
        problems = roles.problems or Problems(collect=False)
        made = cls(
            table, engine, roles, columns, units, origin or {}, problems=problems, asked=asked, named=named
        )
        made._check_one_system()
        return made

    def _check_one_system(self) -> None:
        column = system_column(self.table, self.roles, self.columns)
        if column is None:
            return
        if (
            self._number(
                self.engine.source(), f"count(DISTINCT {self.table.column(column, 'text').expression})"
            )
            > 1
        ):
            raise CountingError(
                self.table.label,
                f"the column {column!r} tells several systems apart, and rows are counted for one",
            )

    @property
    def unread(self) -> tuple[str, ...]:
        """The plain columns that play no role."""
        return unread_columns(
            self.table, {*self.columns.values(), *self.signals, *(self.roles.metadata or ())}
        )

    # The kinds of rows, and what they mean.

    @cached_property
    def _kinds(self) -> dict[str, NDArray[Any]]:
        keys, base = ", ".join(self._kind_keys.values()), self._base()
        counted = f"{base.count} AS n, {base.total} AS total"
        self.engine.keep(
            "kinds", f"SELECT {keys}, {counted} FROM ({base.select}) AS b GROUP BY {keys}", number=True
        )
        many = self._number(self.engine.known("kinds"))
        if many > _MOST_KINDS:
            raise CountingError(
                self.table.label,
                f"{many:,} different pairs of truth and prediction, with the columns of groups, are too many to be "
                "counted",
                way_out="round them, or ",
            )
        if self.whole is None:
            return self.engine.fetch(f"SELECT * FROM {self.engine.known('kinds')} ORDER BY number")
        same = " AND ".join(
            f"every_kind.{key} IS NOT DISTINCT FROM kinds.{key}" for key in self._kind_keys.values()
        )
        every = f"(SELECT * FROM {self.whole.engine.known('kinds')}) AS every_kind"
        return self.engine.fetch(
            f"SELECT kinds.*, every_kind.number AS in_whole FROM {self.engine.known('kinds')} JOIN {every} ON {same} "
            "ORDER BY kinds.number"
        )

    @cached_property
    def kinds(self) -> Items:
        """One item for each kind of row; its weight says how many rows it stands for."""
        with rows_named_by(self.table.paths):
            return self._decoded_kinds()

    def _decoded_kinds(self) -> Items:
        found = self._kinds
        rows = found["n"].astype(np.int64)
        if not len(rows):
            raise DataError(f"{self.table.label}: the table has no rows")
        problems = self._wrong(rows, self._rows_of_kinds)
        weight = found["total"].astype(np.float64)
        if self.whole is not None:
            return replace(self.whole.kinds.take(found["in_whole"].astype(np.intp)), weight=weight)
        columns = {role: name for role, name in self.columns.items() if role not in NOT_OF_KINDS}
        values = {name: found[key] for name, key in self._kind_keys.items()}
        fields = {role: values[name] for role, name in columns.items()}
        alike = _KindsOfRows(self.table, columns, fields, problems, counting=self)
        further = {name: values[name] for name in self.roles.metadata or ()}
        items = items_from_rows(alike, replace(self.roles, signals=(), metadata=tuple(further)), further)
        said = scale_and_noun(self.table, self.columns, self.roles)
        unnamed = unnamed_fields(self.columns, self.roles)
        items = replace(items, weight=weight, unnamed=unnamed, **said)
        return items.with_provenance(**column_provenance(self.table, self.columns, self.roles), **self.origin)

    def check_names(self, role: str) -> None:
        """Report clusters or items without a name; of very many rows it costs more than all else."""
        if role in self.columns and not self._many:
            self.check_there(self.columns[role])

    def check_items(self) -> None:
        """Report items that stand twice; of very many rows it costs more than all else."""
        if "item" in self.columns and not self._many:
            self.check_unique(("cluster", "item") if "cluster" in self.columns else ("item",))

    def check_confidence_column(self) -> None:
        """Report a confidence that is not a number; of very many rows, only where the confidence is needed."""
        confidence = self.columns.get("confidence")
        if confidence in self.signals and not self._many:
            self._check_numbers(confidence)

    def check_weights(self) -> None:
        """Report rows without a valid weight."""
        if "weight" not in self.columns or self._weighed:
            return
        if self.engine.in_order:
            weight = self._column("weight", "value").expression
            values = self.engine.fetch(f"SELECT {weight} AS w FROM {self.engine.source()}")["w"]
            problems = Problems(self.problems.collect, self.table.label, self.problems.found)
            TableRows(self.table, self.columns, {"weight": values}, problems).weight()
        else:
            count = self._weights["wrong"]
            wrong = f"is not in {count:,} rows" if count else "is zero throughout"
            self._wrong(1, lambda _: np.arange(0)).report(
                f"weight ({self.columns['weight']}): weight must be finite and not negative, and {wrong}"
            )

    def check_unique(self, by: Sequence[str]) -> None:
        """Raise where an item stands twice, which is known by its cluster and name, or by its name alone."""
        keys = ", ".join(NAME_KEYS[role] for role in by)
        again = f"(SELECT count(*) AS n FROM ({self.by_name(by)}) AS b GROUP BY {keys}) AS each_item"
        count = self._number(again, "CAST(coalesce(sum(n - 1), 0) AS BIGINT)")
        if not count:
            return
        problems = self._wrong(count, lambda _: self.first(self.standing_again(by)))
        with rows_named_by(self.table.paths):
            TableRows(self.table, self.columns, {}, problems).report_again(np.ones(1, np.bool_))

    def standing_again(self, by: Sequence[str]) -> str:
        """Select the rows whose name stands before them already, in the order of the table."""
        keys = ", ".join(NAME_KEYS[role] for role in by)
        ranked = f"SELECT {keys}, r, row_number() OVER (PARTITION BY {keys} ORDER BY r) AS place"
        rows = f"{ranked} FROM ({self.by_name(by, numbers=True)}) AS b"
        return f"SELECT {keys}, r FROM ({rows}) AS ranked WHERE place > 1"

    # The cells: rows by unit, code and confidence.

    def items(
        self,
        code: Indices,
        signals: Sequence[str] = (),
        *,
        unit: Indices | None = None,
        view: Callable[..., Items] | None = None,
    ) -> Items:
        """Return one item for each unit, code and confidence that occur together.

        Args:
            code: for each of `kinds`, a number that kinds share that are alike.
            signals: the confidences that the rows are told apart by; they are of answered rows alone.
            unit: for each of `kinds`, the number of its unit, which is the cluster of the items. Default: units are
                clusters, or groups of them.
            view: counts the rows anew with other signals; with the same code when left out.
        """
        names = self._columns_of(signals)
        for name in names:
            if not name.endswith(ABSENT_SUFFIX):
                self._check_numbers(name)
        found = self._cells(code, names, unit)
        first = np.unique(code, return_index=True)[1].astype(np.intp)
        kind = first[found["code"].astype(np.intp)]
        rows = found["n"].astype(np.int64, copy=False)
        items = self._without_names.take(kind)
        problems = self._wrong(
            rows, lambda wrong: self.first(self._rows_of_cells(found["number"][wrong], names))
        )
        with rows_named_by(self.table.paths):
            if unit is None:
                cluster, members, clusters = self._clusters(found, items, problems)
            else:
                cluster = found["u"].astype(np.int32, copy=False)
                members, clusters = None, len(np.unique(unit))
            made, percent = self._signals(names, found, items, problems)
        if self.units and self._unit != "c" and members is not None and members.sum() <= MOST_SINGLE:
            # Of many clusters few are judged, and those are left out one by one.
            self._unit = "c"
            self.__dict__.pop("_distinct_rows", None)
            return self.items(code, signals, view=view)
        counted = Aggregation(
            engine=self.engine.name,
            kinds=self.kinds,
            clusters=clusters,
            members=members,
            view=view or (lambda names: self.items(code, names, unit=unit)),
            first=self._first_row(names, found),
            having=self._having,
            asked=self.asked,
            by_chance=self.units and not self._named and not self.engine.in_order,
        )
        return replace(
            items,
            weight=found["total"].astype(np.float64, copy=False),
            cluster=cluster,
            item=found["number"].astype(np.int32)
            if self.engine.in_order
            else np.broadcast_to(np.int8(0), len(rows)),
            signals={**self._unseen(len(rows)), **made},
            counted=counted,
        ).with_provenance(**({"percent": percent} if percent else {}))

    @property
    def _without_names(self) -> Items:
        """The kinds of rows as small as can be: cells have a name, a cluster and a weight of their own."""
        nothing = np.broadcast_to(np.int8(0), len(self.kinds))
        return replace(self.kinds, cluster=nothing, item=nothing, weight=None)

    def _unseen(self, rows: int) -> dict[str, Signal]:
        """The signals that there are, by name alone: their values are counted when a confidence is made of them."""
        nothing = np.broadcast_to(np.nan, rows)
        return {name: Signal(nothing, np.broadcast_to(np.False_, rows)) for name in self.signals}

    def _check_numbers(self, name: str) -> None:
        """Report a column of texts or booleans that are not numbers."""
        value, kind = self.table.column(name, "value")
        if kind in ("number", "whole"):
            return
        wrong = f"{value} IS NOT NULL"
        if kind == "text":
            wrong += f" AND NOT {self.engine.matches(value, NUMBER)}"
        found = self.engine.fetch(
            f"SELECT {self.engine.row_number} AS r, {value} AS v FROM {self.engine.source(numbers=True)} "
            f"WHERE {wrong} ORDER BY 1"
        )
        rows = found["r"].astype(np.intp)
        problems = self._wrong(np.ones(len(rows), np.int64), lambda those: rows[those])
        with rows_named_by(self.table.paths):
            TableRows(self.table, {}, {}, problems).signal(name, {name: found["v"].astype(object)})

    def _give_codes(self, code: Indices, unit: Indices | None) -> None:
        """Make the code of each kind of row known to the engine, and its unit if it has one."""
        answered = (self.kinds.outcome == Outcome.ANSWERED).astype(np.int8)
        numbered = {"number": np.arange(len(code)), "code": code.astype(np.int32), "answered": answered}
        if unit is not None:
            numbered["u"] = unit.astype(np.int32)
        self.engine.give("codes", numbered)

    def _cells(
        self, code: Indices, names: Sequence[str], unit: Indices | None = None
    ) -> dict[str, NDArray[Any]]:
        self._give_codes(code, unit)
        base, keys = self._base(names), self._cell_keys(names)
        counts = [*["b.n AS n"] * base.counts, *["b.w AS w"] * base.weighed]
        rows = self._coded(base.select, names, counts, unit="b.u" if unit is None else "codes.u")
        times = " * b.n" if base.counts else ""
        sums = [
            f"sum(b.{key}{times}) AS sum_{key}, min(b.{key}) AS low_{key}, max(b.{key}) AS high_{key}"
            for name, key in keys.items()
            if self._is_continuous(name)
        ]
        parts = [f"{self._cell(name, f'b.{key}')} AS {key}" for name, key in keys.items()]
        counted = [f"{base.count} AS n", f"{base.total} AS total", *sums]
        places = ", ".join(str(place + 1) for place in range(len(keys)))
        statement = f"SELECT {', '.join([*parts, *counted])} FROM ({rows}) AS b GROUP BY {places}"
        self.engine.keep("cells", statement, number=self.engine.in_order)
        self._counted_cells = object()
        many = self._number(self.engine.known("cells"))
        if many > _MOST_CELLS:
            raise CountingError(
                self.table.label,
                f"{many:,} different rows are too many to be counted",
                way_out="ask for one confidence at a time, or ",
            )
        return self.engine.fetch(f"SELECT * FROM {self.engine.known('cells')}")

    def _cell_keys(self, names: Sequence[str]) -> dict[str, str]:
        """What cells are told apart by: unit, code and signals."""
        return {"": "u", "\0": "code", **{name: self._signal_keys[name] for name in names}}

    def _coded(self, select: str, names: Sequence[str], further: Sequence[str], *, unit: str = "b.u") -> str:
        """Select rows with their unit, code and signals; signals of answered rows alone."""
        parts = [f"{unit} AS u", "codes.code AS code", *further]
        for name in names:
            key = self._signal_keys[name]
            value = f"b.{key}" if self._all_answered else f"CASE WHEN codes.answered = 1 THEN b.{key} END"
            if self._is_continuous(name):
                value = self.as_number(value, self.table.column(name, "value").kind)
            parts.append(f"{value} AS {key}")
        return f"SELECT {', '.join(parts)} FROM {self.with_kinds(select, 'codes')}"

    def answered_values(self, name: str) -> str:
        """Select the values ``v`` of a column of numbers, of answered rows alone."""
        answered = np.flatnonzero(self.kinds.outcome == Outcome.ANSWERED)
        self.engine.give("answers", {"number": answered})
        number = self.as_number(f"b.{self._signal_keys[name]}", self.table.column(name, "value").kind)
        return f"SELECT {number} AS v FROM {self.with_kinds(self._raw, 'answers')}"

    def with_kinds(self, select: str, given: str) -> str:
        """Join rows to their kinds, and to what was given for some of those."""
        known = self.engine.known
        same = " AND ".join(f"b.{key} IS NOT DISTINCT FROM kinds.{key}" for key in self._kind_keys.values())
        return (
            f"({select}) AS b JOIN {known('kinds')} ON {same} "
            f"JOIN {known(given)} ON kinds.number = {given}.number"
        )

    def _cell(self, name: str, value: str) -> str:
        """What a value is counted as: itself, or its bin."""
        return rounded(value) if self._is_continuous(name) else value

    # Where something is wrong.

    def _rows_of_kinds(self, wrong: Mask) -> NDArray[np.intp]:
        """Return the first rows of some kinds."""
        self.engine.give("wrong", {"number": np.flatnonzero(wrong)})
        return self.first(f"SELECT b.r AS r FROM {self.with_kinds(self._select(numbers=True), 'wrong')}")

    def _rows_of_cells(self, wrong: NDArray[Any], names: Sequence[str]) -> str:
        """Select the rows ``r`` of some cells, by their numbers, and the number of each row's cell."""
        self.engine.give("wrong", {"number": wrong})
        keys = self._cell_keys(names)
        select = f"SELECT *, {self._unit} AS u FROM ({self._select(numbers=True)}) AS raw_rows"
        parts = [f"{self._cell(name, f'b.{key}')} AS {key}" for name, key in keys.items()]
        rows = f"SELECT {', '.join(parts)}, b.r AS r FROM ({self._coded(select, names, ['b.r AS r'])}) AS b"
        same = " AND ".join(f"b.{key} IS NOT DISTINCT FROM cells.{key}" for key in keys.values())
        return (
            f"SELECT b.r AS r, cells.number AS number FROM ({rows}) AS b JOIN {self.engine.known('cells')} ON {same} "
            f"JOIN {self.engine.known('wrong')} ON cells.number = wrong.number"
        )

    def _first_row(self, names: Sequence[str], found: Found) -> Callable[[NDArray[Any]], FirstRow | None]:
        """Return what finds the first row of some cells by their numbers, for as long as those cells are kept."""
        cells = self._counted_cells

        def first(numbers: NDArray[Any]) -> FirstRow | None:
            if not self.engine.in_order or cells is not self._counted_cells:
                return None
            rows = f"({self._rows_of_cells(numbers, names)}) AS rows_of_cells"
            row = self.engine.fetch(f"SELECT r, number FROM {rows} ORDER BY r LIMIT 1")
            number = int(row["r"][0])
            count = int(found["n"][np.isin(found["number"], numbers)].sum())
            return FirstRow(number, int(row["number"][0]), self._names_of_row(number), count)

        return first

    def _names_of_row(self, row: int) -> dict[str, object]:
        """Return the names of a row's cluster and item, as far as the table has them."""
        roles = [role for role in ("cluster", "item") if role in self.columns]
        if not roles:
            return {}
        keys = ", ".join(NAME_KEYS[role] for role in roles)
        named = self.engine.fetch(
            f"SELECT {keys} FROM ({self.by_name(roles, numbers=True)}) AS b WHERE r = {row}"
        )
        return {role: named[NAME_KEYS[role]][0] for role in roles}

    # Whose the rows are.

    @cached_property
    def _all_answered(self) -> bool:
        return bool((self.kinds.outcome == Outcome.ANSWERED).all())

    @cached_property
    def _all_judged(self) -> bool:
        return bool((self.kinds.outcome <= Outcome.ABSTAINED).all())

    def _clusters(
        self, found: Found, items: Items, problems: Problems
    ) -> tuple[NDArray[Any], Floats | None, int]:
        """Return the unit of each cell, how many judged clusters each stands for, and how many clusters there are."""
        unit = found["u"]
        if self._unit == "c":
            return self._own_units(unit, items, problems)
        group = self._checked_groups(unit, problems)
        if self._named and not self.units and self.kept is None:
            self.check_there(self.columns["cluster"])
        if self._named:
            members = self._all_members
            clusters = int(members.sum()) if self._all_judged else self._distinct()
        else:
            rows, judged = found["n"].astype(np.float64), items.outcome <= Outcome.ABSTAINED
            members = np.bincount(group[judged], weights=rows[judged], minlength=GROUPS).astype(np.float64)
            clusters = int(rows.sum())
        return group, members, clusters

    def _own_units(
        self, unit: NDArray[Any], items: Items, problems: Problems
    ) -> tuple[NDArray[Any], Floats | None, int]:
        names = identifiers(
            _values.as_names(unit, self.columns.get("cluster", "cluster"), problems) if self._named else unit
        )
        distinct, index = numbered(names)
        judged = np.unique(index[items.outcome <= Outcome.ABSTAINED])
        if len(judged) <= MOST_SINGLE:
            return names, None, len(distinct)
        group = group_of(distinct)
        members = np.bincount(group[judged], minlength=GROUPS).astype(np.float64)
        return group[index].astype(np.int16), members, len(distinct)

    def _checked_groups(self, unit: NDArray[Any], problems: Problems) -> NDArray[np.int16]:
        """Return the group of each cell; an error where a row has no cluster, or one whose name no engine reads."""
        nothing = _values.blank(unit)
        if nothing.any():
            self._report_nothing(problems, nothing, self.columns["cluster"])
        group = np.where(nothing, 0, unit).astype(np.int16)
        beyond = group < 0
        if beyond.any():
            raise CountingError(
                self.table.label,
                f"the column {self.columns['cluster']!r} holds numbers of more than {2 * DIGITS} digits "
                f"{problems.place(beyond)}",
            )
        return group

    def _distinct(self) -> int:
        return self._number(f"({self._raw}) AS r", "count(DISTINCT c)")

    @cached_property
    def _all_members(self) -> Floats:
        return self._members()

    def _members(self, part: Indices | None = None) -> Floats:
        """Return how many clusters of each group have a judged row, or by part a row of kinds of that part."""
        judged, rows, kept = self.kinds.outcome <= Outcome.ABSTAINED, f"({self._raw}) AS b", "0"
        if part is not None or not self._all_judged:
            given = np.zeros(len(judged), np.intp) if part is None else part
            self.engine.give("parts", {"number": np.flatnonzero(judged), "part": given[judged]})
            rows, kept = self.with_kinds(self._raw, "parts"), "parts.part"
        parts = 1 if part is None else int(part.max(initial=-1)) + 1
        if part is not None and self._weighed:  # rows of weight 0 are in no group
            rows += " WHERE b.w > 0"
        members = self._present(rows, kept, parts)
        if members is None:
            members = self._grouped(rows, kept, parts)
        return members[0] if part is None else members

    def _grouped(self, rows: str, part: str, parts: int) -> Floats:
        """Return by part how many clusters of each group some rows have."""
        each = f"SELECT {part} AS part{', b.c AS c' if self._named or self.units else ''} FROM {rows}"
        if self._named:  # else every row is a cluster
            each += " GROUP BY 1, 2"
        group = self._group() if self.units else "0"
        found = self.engine.fetch(
            f"SELECT {group} AS g, part, count(*) AS n FROM ({each}) AS e GROUP BY 1, 2"
        )
        members = np.zeros((parts, GROUPS))
        members[found["part"].astype(np.intp), found["g"].astype(np.intp)] = found["n"]
        return members

    def _present(self, rows: str, part: str, parts: int) -> Floats | None:
        """Return the same of whole numbers that lie close together: whether each is there is one bit."""
        if not (self.units and self._named and self._whole_clusters):
            return None
        ends = self.engine.fetch(f"SELECT min(b.c) AS low, max(b.c) AS high FROM {rows}")
        low, high = (int(ends[key][0]) for key in ("low", "high"))
        bits = self.engine.present("b.c", low, high)
        if bits is None or (high - low) * parts > _MOST_BITS:
            return None
        found = self.engine.fetch(f"SELECT {part} AS part, {bits} AS bits FROM {rows} GROUP BY 1")
        members = np.zeros((parts, GROUPS))
        for place, held in zip(found["part"].tolist(), found["bits"].tolist(), strict=True):
            there = np.unpackbits(np.frombuffer(bytes(held), np.uint8))[low - high - 1 :]
            members[int(place)] = np.bincount(group_of(np.flatnonzero(there) + low), minlength=GROUPS)
        return members

    def _having(self, by: tuple[str, ...]) -> dict[str, Floats]:
        """Return by group of items how many clusters of each group of clusters have a judged one of them."""
        found = groups(self.kinds, by)
        members = self._members(group_numbers(found))
        return {group.label: members[place] for place, group in enumerate(found) if place < len(members)}

    # Confidences.

    def _signals(
        self, names: Sequence[str], found: Found, items: Items, problems: Problems
    ) -> tuple[dict[str, Signal], tuple[str, ...]]:
        """Return the signals of the cells, and which of them are per cent."""
        own = [name for name in names if not name.endswith(ABSENT_SUFFIX)]
        columns: dict[str, NDArray[Any]] = {}
        binned: dict[str, Mask] = {}
        for name in names:
            key = self._signal_keys[name]
            if self._is_continuous(name):
                columns[name], binned[name] = _represented(key, found)
            else:
                columns[name] = _values.typed(found[key])
        rows = TableRows(self.table, {"confidence": own[0]} if own else {}, {}, problems)
        reported = replace(rows, problems=Problems())  # by `_check_numbers`
        signals = {name: replace(reported.signal(name, columns), binned=binned.get(name)) for name in own}
        confidence = self.columns.get("confidence")
        if confidence in signals:
            signals["confidence"] = signals[confidence]
            rows.check_confidence(signals[confidence], items.outcome, confidence)
        percent = self._percent(signals, items)
        for name in signals.keys() & set(percent):
            signals[name] = replace(signals[name], values=signals[name].values / 100.0)
        return signals, percent

    def _percent(self, signals: Mapping[str, Signal], items: Items) -> tuple[str, ...]:
        """Return the signals that are per cent; whether the values tell is asked of all rows of the table."""
        table = self if self.whole is None else self.whole
        if self.whole is None and self._many:  # another pass over very many rows takes long
            return in_percent(signals, self.columns, self.roles, items.outcome)
        return table._percent_of_all

    @cached_property
    def _percent_of_all(self) -> tuple[str, ...]:
        outcome = np.full(3, Outcome.ANSWERED, np.uint8)
        signals = self._unseen(3)
        confidence = self.columns.get("confidence")
        if confidence in signals and self.roles.percent is None:
            number = self.as_number(*self.table.column(confidence, "value"))
            largest = self.engine.fetch(f"SELECT max({number}) AS v FROM {self.engine.source()}")["v"][0]
            if not largest > BEYOND_SCALES:
                return ()
            values = f"({self.answered_values(confidence)}) AS r WHERE v IS NOT NULL AND NOT isnan(v)"
            found = self.engine.fetch(
                "SELECT min(v) AS low, max(v) AS high, max(CASE WHEN v > 0 AND v < 1 THEN v END) AS part "
                f"FROM {values}"
            )
            ends = np.array([found[key][0] for key in ("low", "high", "part")], np.float64)
            signals["confidence"] = Signal(ends, np.zeros(3, np.bool_))
        return in_percent(signals, self.columns, self.roles, outcome)


def _represented(key: str, found: Found) -> tuple[Floats, Mask]:
    """Return for each cell the value that represents its bin, and whether the bin holds several values.

    The value is the same in all units: the mean of the bin, or the only value that the bin holds.
    """
    low, high = (found[f"{end}_{key}"].astype(np.float64) for end in ("low", "high"))
    bins, index = np.unique(found[key].astype(np.float64), return_inverse=True)
    count, total = (
        np.bincount(index, weights=found[name].astype(np.float64)) for name in ("n", f"sum_{key}")
    )
    with np.errstate(invalid="ignore"):
        mean = total / count
    mean = np.where(np.isfinite(mean), mean, bins)[index]
    least, largest = np.full(len(bins), np.inf), np.full(len(bins), -np.inf)
    np.fmin.at(least, index, low)
    np.fmax.at(largest, index, high)
    low, high = least[index], largest[index]
    return np.where(low == high, low, mean), low < high


@dataclass(frozen=True, slots=True, kw_only=True)
class _KindsOfRows(TableRows):
    """Kinds of rows; the names and weights of the rows themselves are checked by the engine."""

    counting: AggregatedTable

    def identifiers(self, field: str) -> NDArray[Any]:
        """Return numbers; the names of rows are checked."""
        self.counting.check_names(field)
        return np.arange(len(self))

    def check_unique(self, cluster: NDArray[Any], item: NDArray[Any]) -> None:
        """Report items that stand twice."""
        del cluster, item
        self.counting.check_items()
        self.counting.check_confidence_column()

    def weight(self) -> Floats | None:
        """Report rows without a valid weight."""
        self.counting.check_weights()
        return None
