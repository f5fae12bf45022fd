"""Tables that an engine aggregates: equal rows become one item with a weight.

No metric depends on the position of a row. So an engine groups the rows by all values that metrics use, and only the
groups are fetched. This takes three steps:

1. **Row types**: the rows grouped by all columns except confidence and cluster: labels, outcome, columns of groups.
   There are few, and `_columns` interprets them as in every other table.
2. **Codes**: the caller gives the same number to row types that are equal for the requested metrics, such as all with
   the same loss.
3. **Cells**: the rows grouped by unit, code and confidence. A unit is a cluster, or a group of clusters if there
   are very many (see `abstain._units`).

Confidences with few values are used as they are. Continuous ones are rounded to ten leading bits, of the confidence or
of its difference to 1, by floating-point operations that give the same result in every engine. The rounded values are
bins in the order of the confidence, and each bin is represented by its mean. A bin whose lowest and highest confidence
are equal contains one value, so that nothing is lost.

`_row_query` selects rows, `_row_checks` finds those that are wrong, `_row_types` and `_cells` group them,
`_cluster_members` counts clusters, and `_engine` has the SQL in which engines differ.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from abstain._export import ABSENT_SUFFIX
from abstain._row_names import rows_named_by
from abstain._units import GROUPS, MOST_SINGLE, MOST_WEIGHTS, ROUNDING, group_of, weight_of_one_item
from abstain.errors import AggregationError, at
from abstain.groups import group_numbers, groups
from abstain.items import Aggregation, Items, Outcome, Signal, identifiers, numbered
from abstain.readers import _values
from abstain.readers._cells import RowCells
from abstain.readers._cluster_members import count_members
from abstain.readers._columns import BEYOND_SCALES, TableRows, in_percent, unread_columns
from abstain.readers._engine import DIGITS, NAME_KEYS
from abstain.readers._fields import assign_columns, system_column
from abstain.readers._row_checks import (
    check_all_named,
    check_numbers,
    check_rows,
    count_weights,
    problems_of,
    report_weights,
)
from abstain.readers._row_query import Name, RowQuery
from abstain.readers._row_types import (
    RowTypes,
    find_row_types,
    group_row_types,
    items_of_row_types,
    total_weight,
)
from abstain.readers._values import Problems

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from abstain._types import Floats, Indices, Mask
    from abstain.readers._engine import Engine
    from abstain.readers._read import ReadArguments
    from abstain.readers._tables import QueriedTable

    Fetched = Mapping[str, NDArray[Any]]

__all__ = ["AggregatedTable", "aggregate"]

# Intervals and sets are evaluated row by row.
_LOADED_ONLY = ("low", "high", "set")


def aggregate(
    table: QueriedTable,
    engine: Engine,
    arguments: ReadArguments,
    *,
    units: bool = True,
    origin: Mapping[str, Any] | None = None,
    requested: bool = True,
) -> AggregatedTable:
    """Return a table whose rows are grouped by row type.

    Args:
        table: the table.
        engine: the engine of the table.
        arguments: the arguments of the reader; `metadata` are the columns of groups.
        units: False if clusters are only counted, because the jackknife does not use them.
        origin: the provenance of the table.
        requested: True if the caller named the engine; otherwise a table that cannot be aggregated is loaded.
    """
    columns = assign_columns(table, arguments)
    if any(field in columns for field in _LOADED_ONLY):
        raise AggregationError(table.label, "intervals and sets are evaluated row by row")
    table.check_columns([*(arguments.signals or ()), *(arguments.metadata or ()), *(arguments.percent or ())])
    table.prepare([name for name, kind in table.kinds.items() if kind not in ("list", "other")])
    query = RowQuery(table, engine, columns, arguments, arguments.problems or Problems(collect=False))
    _check_one_system(query)
    wrong, positive, zero = count_weights(query) if "weight" in columns else (0, 0, 0)
    weighted = positive > 0 and not wrong
    fetched = group_row_types(query, weighted=weighted)
    with rows_named_by(table.paths):
        items = items_of_row_types(query, fetched, origin or {})
        check_rows(query)
        if "weight" in columns and not weighted:
            report_weights(query, wrong)
    with at(table.label):
        items = items.with_positive(arguments.positive)
    if weighted and zero:  # the labels of all rows decide what labels are, but only rows with a weight count
        query = replace(query, counted_only=True)
        counted = group_row_types(query, weighted=True)
        kept = items.take(find_row_types(counted, fetched, list(query.type_keys.values())))
        items, fetched = replace(kept, weight=counted["total"].astype(np.float64)), counted
    types = RowTypes(engine, np.arange(len(items)), fetched["n"].astype(np.int64), items)
    aggregated = AggregatedTable(query, engine, types, weighted, units, requested)
    if table.is_text or arguments.metadata:
        aggregated = replace(aggregated, types=replace(types, kept_signals=_keep_rows(aggregated)))
    return replace(aggregated, percent=_find_percent(aggregated))


def _keep_rows(table: AggregatedTable) -> frozenset[str]:
    """Keep the rows with the number of their type, so that queries need not convert text or compare group columns.

    Return the columns of the signals that are kept.
    """
    query, columns = table.query, table.columns
    signals = query.signal_columns(["confidence"])
    keys = ["t", *(query.signal_keys[name] for name in signals), *["w"] * ("weight" in columns)]
    keys += ["c"] * (table.has_clusters or table.units)
    table.engine.keep("rows", f"SELECT {', '.join(keys)} FROM ({table.select(signals)}) AS typed")
    return frozenset(signals)


def _check_one_system(query: RowQuery) -> None:
    column = system_column(query.table, query.arguments, query.columns)
    if column is None:
        return
    names = f"count(DISTINCT {query.table.column(column, 'text').expression})"
    if query.number(query.engine.source(), names) > 1:
        raise AggregationError(
            query.table.label,
            f"the column {column!r} names several systems, but only a table of one system can be aggregated",
        )


@dataclass(frozen=True, eq=False)
class AggregatedTable:
    """A table whose rows an engine groups; `aggregate` returns one.

    Attributes:
        query: selects its rows.
        engine: keeps the tables that belong to this object.
        types: its row types.
        weighted: True if rows have weights.
        units: False if clusters are only counted, because the jackknife does not use them.
        requested: True if the caller named the engine.
        percent: the signals that are percent.
        matched_clusters: the form of cluster names if only some rows are used; the engine keeps those as ``matched``.
    """

    query: RowQuery
    engine: Engine
    types: RowTypes
    weighted: bool
    units: bool
    requested: bool
    percent: tuple[str, ...] = ()
    matched_clusters: Name | None = None

    @property
    def row_types(self) -> Items:
        """One item for each row type, with the weight of its rows."""
        return self.types.items

    @property
    def columns(self) -> Mapping[str, str]:
        """The column of each field."""
        return self.query.columns

    @property
    def unread(self) -> tuple[str, ...]:
        """The plain columns that are not used."""
        query = self.query
        used = {*query.columns.values(), *query.signals, *(query.arguments.metadata or ())}
        return unread_columns(query.table, used)

    def restrict(self, names: str, fields: Sequence[str], clusters: Name) -> AggregatedTable:
        """Return the same table with only the rows whose names occur in a source of names and clusters ``c``."""
        engine = self.engine.again()
        rows = self.type_rows(self.query.select_named(fields, numbers=engine.in_order))
        keys = ["t", *self.query.signal_keys.values()]
        keys += ["w"] * ("weight" in self.columns) + ["r"] * engine.in_order
        same = " AND ".join(f"b.{NAME_KEYS[name]} = names.{NAME_KEYS[name]}" for name in fields)
        listed = ", ".join(f"b.{key} AS {key}" for key in keys)
        engine.keep("matched", f"SELECT {listed}, names.c AS c FROM ({rows}) AS b JOIN {names} ON {same}")
        matched = replace(self, engine=engine, matched_clusters=clusters)
        engine.give("numbers", {"number": self.types.numbers})
        found = engine.fetch(
            f"SELECT numbers.number AS number, count(*) AS n, {total_weight(self.weighted)} AS total "
            f"FROM {matched.join(matched.select(), 'numbers')} GROUP BY 1 ORDER BY 1"
        )
        numbers = found["number"].astype(np.intp)
        items = replace(self.row_types.take(numbers), weight=found["total"].astype(np.float64))
        types = replace(self.types, numbers=numbers, counts=found["n"].astype(np.int64), items=items)
        return replace(matched, types=types)

    # Selecting rows.

    def select(self, signals: Sequence[str] = (), *, numbers: bool | None = None, typed: bool = True) -> str:
        """Return a query of the used rows.

        Args:
            signals: the columns of signals that are needed.
            numbers: whether rows have a number. Default: only if that number is the cluster.
            typed: whether the number of their type is needed.
        """
        if self.matched_clusters is not None:
            return f"SELECT * FROM {self.engine.known('matched')}"
        if (
            numbers is None
            and self.types.kept_signals is not None
            and self.types.kept_signals.issuperset(signals)
        ):
            return f"SELECT * FROM {self.types.engine.known('rows')}"
        rows = self.query.select(numbers=not self.has_clusters and self.units if numbers is None else numbers)
        return self.type_rows(rows) if typed else rows

    def type_rows(self, rows: str) -> str:
        """Return a query of rows with the number ``t`` of their type."""
        typed = self.query.join_types(rows, self.types.engine.known("row_types"))
        return f"SELECT row_types.number AS t, b.* FROM {typed}"

    def join(self, rows: str, given: str) -> str:
        """Join typed rows, as ``b``, to a table of numbers by type that the engine keeps."""
        return f"({rows}) AS b JOIN {self.engine.known(given)} ON b.t = {given}.number"

    def give_by_type(self, name: str, chosen: Mask | None = None, **columns: NDArray[Any]) -> None:
        """Give columns with one number for each row type, or each chosen one, to the engine."""
        rows = np.ones(len(self.row_types), np.bool_) if chosen is None else chosen
        given = {"number": self.types.numbers, **columns}
        self.engine.give(name, {key: values[rows] for key, values in given.items()})

    def select_answered(self, name: str) -> str:
        """Return a query of the numbers ``v`` of a signal, of answered rows only."""
        self.give_by_type("answers", self.row_types.outcome == Outcome.ANSWERED)
        number = self.query.as_number(
            f"b.{self.query.signal_keys[name]}", self.query.table.column(name, "value").kind
        )
        return f"SELECT {number} AS v FROM {self.join(self.select([name]), 'answers')}"

    # Cells: rows by unit, code and confidence.

    def items(
        self,
        code: Indices,
        signals: Sequence[str] = (),
        *,
        unit: Indices | None = None,
        view: Callable[..., Items] | None = None,
        ranks_declined: bool = False,
    ) -> Items:
        """Return one item for each combination of unit, code and confidence.

        Args:
            code: a number for each of `row_types`; equal ones are not distinguished.
            signals: the confidences that distinguish answered rows.
            unit: a number for each of `row_types`, which takes the place of the cluster. Default: units are clusters,
                or groups of them.
            view: returns items with other signals; see `Aggregation.view`. Default: items of the same code and unit.
            ranks_declined: also distinguish abstained rows by the confidences.
        """
        names = self.query.signal_columns(signals)
        for name in names:
            if not name.endswith(ABSENT_SUFFIX):
                check_numbers(self.query, name)
        ranked = self.row_types.outcome == Outcome.ANSWERED
        if ranks_declined:
            ranked |= self.row_types.outcome == Outcome.ABSTAINED
        unit_of_type = np.zeros(len(code), np.int32) if unit is None else unit.astype(np.int32)
        self.give_by_type(
            "codes", code=code.astype(np.int32), ranked=ranked.astype(np.int8), unit=unit_of_type
        )
        cells = RowCells.group(self, names, self._unit if unit is None else "codes.unit")
        fetched = cells.fetched
        first_type = np.unique(code, return_index=True)[1].astype(np.intp)
        items = self._bare_types.take(first_type[fetched["code"].astype(np.intp)])
        problems = problems_of(self.query, fetched["n"].astype(np.int64, copy=False), cells.first_rows)
        with rows_named_by(self.query.table.paths):
            if unit is None:
                cluster, members, clusters = self._clusters(fetched, items, problems)
            else:
                cluster, members, clusters = fetched["u"].astype(np.int32), None, len(np.unique(unit))
            values = self._signals(names, fetched, items, problems)
        in_order = self.engine.in_order
        return replace(
            items,
            weight=fetched["total"].astype(np.float64, copy=False),
            cluster=cluster,
            item=fetched["number"].astype(np.int32) if in_order else np.broadcast_to(np.int8(0), len(items)),
            signals={**self.unread_signals(len(items)), **values},
            aggregation=Aggregation(
                engine=self.engine.name,
                row_types=self.row_types,
                clusters=clusters,
                members=members,
                view=view or (lambda names: self.items(code, names, unit=unit)),
                first_row=cells.without_values().first_row,
                members_of_groups=self._members_of_groups,
                requested=self.requested,
                row_weight=self._weights[0],
                item_weight=self._weights[1],
                random_units=self.units and not self.has_clusters and not in_order,
            ),
        ).with_provenance(**({"percent": self.percent} if self.percent else {}))

    @cached_property
    def _weights(self) -> tuple[float, float]:
        """The weight of one row and of one item among the evaluated rows, as for rows in memory."""
        evaluated = self.row_types.outcome <= Outcome.ABSTAINED
        if not self.weighted or not evaluated.any():
            return 1.0, 1.0
        self.give_by_type("evaluated", evaluated)
        rows = f"SELECT b.w AS w FROM {self.join(self.select(), 'evaluated')}"
        smallest = float(self.engine.fetch(f"SELECT min(w) AS w FROM ({rows}) AS b")["w"][0])
        multiple = f"(w / CAST({smallest!r} AS DOUBLE))"
        sums = self.engine.fetch(
            f"SELECT sum({multiple}) AS total, sum({multiple} * {multiple}) AS squares, "
            f"max(abs({multiple} - round({multiple})) - {ROUNDING} * {multiple}) AS remainder FROM ({rows}) AS b"
        )
        one_row = smallest
        if sums["remainder"][0] > 0.0:
            one_row *= float(sums["squares"][0] / sums["total"][0])
        distinct = self.engine.fetch(f"SELECT DISTINCT w FROM ({rows}) AS b LIMIT {MOST_WEIGHTS + 1}")["w"]
        return one_row, weight_of_one_item(distinct.astype(np.float64))

    @property
    def _bare_types(self) -> Items:
        """The row types without names and weights: cells have their own."""
        nothing = np.broadcast_to(np.int8(0), len(self.row_types))
        return replace(self.row_types, cluster=nothing, item=nothing, weight=None)

    def unread_signals(self, rows: int) -> dict[str, Signal]:
        """Return all signals without values, which are fetched only for the signals of a view."""
        nothing = np.broadcast_to(np.nan, rows)
        return {name: Signal(nothing, np.broadcast_to(np.False_, rows)) for name in self.query.signals}

    # Clusters and units.

    @property
    def has_clusters(self) -> bool:
        """Whether rows have a cluster; otherwise every row is one."""
        return "cluster" in self.columns or self.matched_clusters is not None

    @cached_property
    def cluster_name(self) -> Name:
        """The form of the names of clusters."""
        if self.matched_clusters is not None:
            return Name(self.matched_clusters.whole)
        return self.query.name("cluster") if self.has_clusters else Name(True)

    @cached_property
    def _unit(self) -> str:
        """The expression of the unit of a row: a constant, its cluster, or a group of clusters if there are many."""
        if not self.units:
            return "0"
        return "b.c" if self._has_few_clusters else self.cluster_name.group("b.c", self.engine)

    @cached_property
    def _has_few_clusters(self) -> bool:
        """Whether cells are distinguished by cluster, of which there may be more than the first rows show."""
        evaluated = self.row_types.outcome <= Outcome.ABSTAINED
        if not self.has_clusters:
            return int(self.types.counts[evaluated].sum()) <= MOST_SINGLE
        in_head = self.query.distinct_in_head(f"({self.select(typed=False)}) AS b", "c")
        return in_head <= MOST_SINGLE or self._members.sum() <= MOST_SINGLE

    @cached_property
    def _members(self) -> Floats:
        """The number of clusters with an evaluated row in each group of clusters."""
        return count_members(self)[0]

    def _members_of_groups(self, by: tuple[str, ...]) -> dict[str, Floats]:
        """Return the same numbers for each group of items, by its label."""
        item_groups = groups(self.row_types, by)
        members = count_members(self, group_numbers(item_groups))
        return {
            group.label: members[number] for number, group in enumerate(item_groups) if number < len(members)
        }

    def _clusters(
        self, cells: Fetched, items: Items, problems: Problems
    ) -> tuple[NDArray[Any], Floats | None, int]:
        """Return the unit of each cell, the number of evaluated clusters in each unit, and the number of clusters."""
        if self._unit == "b.c":
            return self._single_clusters(cells["u"], items, problems)
        group = self._checked_groups(cells["u"], problems)
        evaluated = items.outcome <= Outcome.ABSTAINED
        if not self.has_clusters:
            rows = cells["n"].astype(np.float64)
            members = np.bincount(group[evaluated], weights=rows[evaluated], minlength=GROUPS)
            return group, members.astype(np.float64), int(rows.sum())
        if not self.units and self.matched_clusters is None:
            check_all_named(self.query, "cluster")
        if (self.row_types.outcome <= Outcome.ABSTAINED).all():
            return group, self._members, int(self._members.sum())
        clusters = self.query.number(f"({self.select(typed=False)}) AS b", "count(DISTINCT c)")
        return group, self._members, clusters

    def _single_clusters(
        self, unit: NDArray[Any], items: Items, problems: Problems
    ) -> tuple[NDArray[Any], Floats | None, int]:
        names = identifiers(
            _values.as_names(unit, self.columns.get("cluster", "cluster"), problems)
            if self.has_clusters
            else unit
        )
        distinct, index = numbered(names)
        evaluated = np.unique(index[items.outcome <= Outcome.ABSTAINED])
        if len(evaluated) <= MOST_SINGLE:
            return names, None, len(distinct)
        group = group_of(distinct)
        members = np.bincount(group[evaluated], minlength=GROUPS).astype(np.float64)
        return group[index].astype(np.int16), members, len(distinct)

    def _checked_groups(self, unit: NDArray[Any], problems: Problems) -> NDArray[np.int16]:
        """Return the group of each cell; an error if a row has no cluster, or one whose name an engine cannot read."""
        missing = _values.blank(unit)
        _values.report_missing(missing, self.columns.get("cluster", "cluster"), problems)
        group = np.where(missing, 0, unit).astype(np.int16)
        beyond = group < 0
        if beyond.any():
            raise AggregationError(
                self.query.table.label,
                f"the column {self.columns['cluster']!r} contains numbers of more than {2 * DIGITS} digits "
                f"{problems.place(beyond)}",
            )
        return group

    # Confidences.

    def _signals(
        self, names: Sequence[str], cells: Fetched, items: Items, problems: Problems
    ) -> dict[str, Signal]:
        """Return the signals of the cells."""
        columns: dict[str, NDArray[Any]] = {}
        binned: dict[str, Mask] = {}
        for name in names:
            key = self.query.signal_keys[name]
            if self.query.is_continuous(name):
                columns[name], binned[name] = _represent_bins(key, cells)
            else:
                columns[name] = _values.typed(cells[key])
        own = [name for name in names if not name.endswith(ABSENT_SUFFIX)]
        rows = TableRows(self.query.table, {"confidence": own[0]} if own else {}, {}, problems)
        quiet = replace(rows, problems=Problems())  # `check_numbers` has already reported text
        signals = {name: replace(quiet.signal(name, columns), binned=binned.get(name)) for name in own}
        confidence = self.columns.get("confidence")
        if confidence in signals:
            signals["confidence"] = signals[confidence]
            rows.check_confidence(signals[confidence], items.answered, confidence)
        for name in signals.keys() & set(self.percent):
            signals[name] = replace(signals[name], values=signals[name].values / 100.0)
        return signals


def _find_percent(table: AggregatedTable) -> tuple[str, ...]:
    """Return the signals that are percent, by the values of all answered rows."""
    query, confidence = table.query, table.columns.get("confidence")
    signals = table.unread_signals(3)
    if confidence in signals and query.arguments.percent is None:
        number = query.as_number(query.signal_keys[confidence], query.table.column(confidence, "value").kind)
        rows = table.select([confidence], typed=False)
        largest = query.engine.fetch(f"SELECT max({number}) AS v FROM ({rows}) AS b")["v"][0]
        if not largest > BEYOND_SCALES:
            return ()
        found = query.engine.fetch(
            "SELECT min(v) AS low, max(v) AS high, max(CASE WHEN v > 0 AND v < 1 THEN v END) AS part "
            f"FROM ({table.select_answered(confidence)}) AS answered WHERE NOT isnan(v)"
        )
        values = np.array([found[key][0] for key in ("low", "high", "part")], np.float64)
        signals["confidence"] = Signal(values, np.zeros(3, np.bool_))
    return in_percent(signals, query.columns, query.arguments, np.ones(3, np.bool_))


def _represent_bins(key: str, cells: Fetched) -> tuple[Floats, Mask]:
    """Return for each cell the value that represents its bin, and whether the bin contains several values.

    The value is the same in all units: the mean of the bin, or its only value.
    """
    low, high = (cells[f"{end}_{key}"].astype(np.float64) for end in ("low", "high"))
    bins, index = np.unique(cells[key].astype(np.float64), return_inverse=True)
    count, total = (
        np.bincount(index, weights=cells[name].astype(np.float64)) for name in ("n", f"sum_{key}")
    )
    with np.errstate(invalid="ignore"):
        mean = total / count
    mean = np.where(np.isfinite(mean), mean, bins)[index]
    lowest, highest = np.full(len(bins), np.inf), np.full(len(bins), -np.inf)
    np.fmin.at(lowest, index, low)
    np.fmax.at(highest, index, high)
    low, high = lowest[index], highest[index]
    return np.where(low == high, low, mean), low < high
