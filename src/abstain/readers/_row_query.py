"""SQL queries of the rows of a table: the columns that are needed, and their short names.

k0, k1, ... are the columns that distinguish row types, s0, s1, ... those of signals. The cluster is ``c``, the item
``i``, the weight ``w``, the number of the row ``r``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from abstain._export import ABSENT_SUFFIX, METADATA_PREFIX
from abstain._units import WHOLE_NAME
from abstain.items import GUIDANCE
from abstain.readers import _values
from abstain.readers._columns import is_typed
from abstain.readers._engine import DIGITS, NAME_KEYS, NUMBER, group_of_text, group_of_whole
from abstain.readers._row_checks import check_whole_names
from abstain.readers._values import LONGEST_NUMBER

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from abstain.readers._engine import Engine
    from abstain.readers._read import ReadArguments
    from abstain.readers._tables import Form, QueriedColumn, QueriedTable
    from abstain.readers._values import Problems

# The fields whose columns do not distinguish row types.
OTHER_FIELDS = ("confidence", "cluster", "item", "weight")
# Continuous confidences are binned only if there are more rows than this.
FEW_ROWS = 1 << 21
# The rows at the beginning of a table from which the number of clusters and of confidences is estimated. A confidence
# with more distinct values among them is continuous.
HEAD = 1 << 16
_FEW_VALUES = 1 << 11
_WHOLE_FLOAT = r"(-?[1-9][0-9]*|0)\.0+"


@dataclass(frozen=True, slots=True)
class Name:
    """The form in which clusters or items are compared: whole numbers if all of them are, otherwise text.

    `template` converts the value of a column to that form.
    """

    whole: bool
    template: str = "{}"

    def expression(self, value: str) -> str:
        """Return the expression that selects the name of a value."""
        return self.template.format(value)

    def group(self, value: str, engine: Engine) -> str:
        """Return the expression that selects the group of a cluster, as `abstain._units.group_of` computes it."""
        name = self.expression(value)
        return group_of_whole(name) if self.whole else group_of_text(name, engine)


@dataclass(eq=False)
class RowQuery:
    """The columns of a table that metrics need, and the SQL that selects them.

    Attributes:
        table: the table.
        engine: runs the queries.
        columns: the column of each field.
        arguments: the arguments of the reader; `metadata` are the columns of groups.
        problems: collects or raises the problems with rows.
        counted_only: True to select only rows whose weight is not 0.
    """

    table: QueriedTable
    engine: Engine
    columns: Mapping[str, str]
    arguments: ReadArguments
    problems: Problems
    counted_only: bool = False

    def number(self, source: str, expression: str = "count(*)") -> int:
        """Return one whole number about a source of rows. Default: the number of rows."""
        return int(self.engine.fetch(f"SELECT {expression} AS n FROM {source}")["n"][0])

    # Columns and their short names.

    @cached_property
    def type_keys(self) -> dict[str, str]:
        """The short name of each column that distinguishes row types."""
        fields = [name for field, name in self.columns.items() if field not in OTHER_FIELDS]
        names = dict.fromkeys((*fields, *(self.arguments.metadata or ())))
        return {name: f"k{number}" for number, name in enumerate(names)}

    @cached_property
    def signal_keys(self) -> dict[str, str]:
        """The short name of each column of a signal, and of the columns that mark absent signals."""
        return {
            name: f"s{number}"
            for number, name in enumerate(self.table.kinds)
            if name in self.signals or name.endswith(ABSENT_SUFFIX)
        }

    def signal_columns(self, signals: Iterable[str]) -> list[str]:
        """Return the columns of some signals, and the columns that mark them as absent."""
        names = [self.columns.get("confidence", name) if name == "confidence" else name for name in signals]
        return list(
            dict.fromkeys(
                part for name in names for part in (name, name + ABSENT_SUFFIX) if part in self.signal_keys
            )
        )

    @cached_property
    def signals(self) -> tuple[str, ...]:
        """The names of all signals, the confidence first, by the rule of `_columns`."""
        confidence, names = self.columns.get("confidence"), self.arguments.signals
        if names is None:
            taken = {name for field, name in self.columns.items() if field != "confidence"}
            names = [
                name
                for name, kind in self.table.kinds.items()
                if kind in ("number", "whole", "text", "unknown")
                and is_typed(name, self.table, self.columns)
                and name not in (*taken, GUIDANCE)
                and not name.startswith(METADATA_PREFIX)
                and not name.endswith(ABSENT_SUFFIX)
                and self._is_numeric(name)
            ]
        optional = bool(self.arguments.signals) and self.arguments.confidence is None
        if confidence is None or (confidence not in names and optional and not self._is_numeric(confidence)):
            return tuple(dict.fromkeys(names))
        return tuple(dict.fromkeys((confidence, "confidence", *names)))

    def _is_numeric(self, name: str) -> bool:
        """Return whether a column contains only numbers that can be a signal, by the rule of `_values`."""
        value, kind = self.table.column(name, "value")
        if kind == "whole":
            return _values.is_numeric(_values.typed(self._extremes[name]))
        if kind != "text":
            return kind == "number"
        if not self._all_match(value, NUMBER):
            return False
        distinct = self.engine.fetch(f"SELECT DISTINCT {value} AS v FROM {self.engine.source()}")["v"]
        return _values.is_numeric(_values.typed(distinct))

    @cached_property
    def _extremes(self) -> dict[str, NDArray[Any]]:
        """The lowest and the highest value of every column of whole numbers, from one query."""
        columns = {
            name: self.table.column(name, "value")
            for name, kind in self.table.kinds.items()
            if kind in ("whole", "number", "text", "unknown")
        }
        whole = [name for name, column in columns.items() if column.kind == "whole"]
        parts = [
            f"min({columns[name].expression}) AS low{number}, max({columns[name].expression}) AS high{number}"
            for number, name in enumerate(whole)
        ]
        extremes = self.engine.fetch(f"SELECT {', '.join(parts)} FROM {self.engine.source()}")
        return {
            name: np.concatenate([extremes[f"low{number}"], extremes[f"high{number}"]])
            for number, name in enumerate(whole)
        }

    def _all_match(self, text: str, pattern: str) -> bool:
        """Return whether every text that is not null matches a pattern."""
        other = f"SELECT 1 FROM {self.engine.source()} WHERE NOT {self.engine.matches(text, pattern)} LIMIT 1"
        return not self.number(f"({other}) AS other")

    # Size.

    @cached_property
    def has_many_rows(self) -> bool:
        """Whether continuous confidences are binned, and checks that cost more than the evaluation are skipped."""
        return self.number(self.engine.source()) > FEW_ROWS

    def is_continuous(self, name: str) -> bool:
        """Return whether a signal takes many values, in a table of many rows."""
        if name not in self.signal_keys or name.endswith(ABSENT_SUFFIX) or not self.has_many_rows:
            return False
        if name not in self._distinct_signals:
            value = self.table.column(name, "value").expression
            self._distinct_signals[name] = self.distinct_in_head(self.engine.source(), value)
        return self._distinct_signals[name] > _FEW_VALUES

    @cached_property
    def _distinct_signals(self) -> dict[str, int]:
        return {}

    def distinct_in_head(self, source: str, value: str) -> int:
        """Return the number of distinct values at the beginning of a source of rows."""
        return self.number(f"(SELECT {value} AS v FROM {source} LIMIT {HEAD}) AS head", "count(DISTINCT v)")

    # Selecting rows.

    def select(self, *, numbers: bool = False) -> str:
        """Return a query of every row; with `numbers` rows have a number, which replaces a missing cluster column."""
        parts = self._parts()
        if "cluster" in self.columns:
            parts["c"] = self.column("cluster").expression
        elif numbers:
            parts["c"] = self.engine.row_number
        return self._selected(parts, numbers=numbers)

    def select_named(self, fields: Sequence[str], *, numbers: bool = False) -> str:
        """Return a query of every row with the names of some fields and of its cluster, if the table has them."""
        parts = self._parts()
        for field in {**dict.fromkeys(fields), "cluster": None}:
            if field in self.columns:
                parts[NAME_KEYS[field]] = self.name(field).expression(self.column(field).expression)
        return self._selected(parts, numbers=numbers or "rows" in fields)

    def _parts(self) -> dict[str, str]:
        """Return the expressions that select row types, signals and weights, by short name."""
        # Row types have few distinct values, and `_columns` decides what their text spells.
        parts = {key: self.table.column(name, "text").expression for name, key in self.type_keys.items()}
        parts |= {key: self.table.column(name, "value").expression for name, key in self.signal_keys.items()}
        if "weight" in self.columns:
            weight = self.as_number(*self.column("weight", "value"))
            parts["w"] = f"coalesce({weight}, CAST('nan' AS DOUBLE))"
        return parts

    def _selected(self, parts: Mapping[str, str], *, numbers: bool) -> str:
        all_parts = {**parts, "r": self.engine.row_number} if numbers else parts
        listed = ", ".join(f"{value} AS {key}" for key, value in all_parts.items())
        rows = f"SELECT {listed} FROM {self.engine.source(numbers=numbers)}"
        return f"SELECT * FROM ({rows}) AS counted WHERE w > 0" if self.counted_only else rows

    def join_types(self, rows: str, types: str) -> str:
        """Join rows, as ``b``, to the source of their types, which is called ``row_types``."""
        same = (f"b.{key} IS NOT DISTINCT FROM row_types.{key}" for key in self.type_keys.values())
        return f"({rows}) AS b JOIN {types} ON {' AND '.join(same)}"

    def column(self, field: str, form: Form = "name") -> QueriedColumn:
        """Return the expression that selects the column of a field."""
        return self.table.column(self.columns[field], form)

    def as_number(self, value: str, kind: str) -> str:
        """Return the expression that selects a value of some kind as a number; NULL if it is not one."""
        if kind in ("whole", "number"):
            return f"CAST({value} AS DOUBLE)"
        if kind == "text":  # engines also read other texts as numbers, such as 1_0
            return f"CASE WHEN {self.spells_number(value)} THEN TRY_CAST({value} AS DOUBLE) END"
        return "CAST(NULL AS DOUBLE)"

    def spells_number(self, value: str) -> str:
        """Return the condition that a text spells a number, as `_values` decides it."""
        return f"(length({value}) <= {LONGEST_NUMBER} AND {self.engine.matches(value, NUMBER)})"

    # The names of clusters and items.

    def name(self, field: str) -> Name:
        """Return the form in which clusters or items are compared, as `_values.as_names` decides it."""
        if field not in self._names:
            self._names[field] = self._find_name(field)
        return self._names[field]

    @cached_property
    def _names(self) -> dict[str, Name]:
        return {}

    def _find_name(self, field: str) -> Name:
        value, kind = self.column(field)
        if kind == "whole":
            return Name(True)
        if kind == "number":
            check_whole_names(self, field)
            return Name(True, "CAST({} AS BIGINT)")
        if kind != "text":
            return Name(False, f"CAST({{}} AS {self.engine.text})")
        stated = f"coalesce({value}, '')"
        for pattern, template in ((WHOLE_NAME.pattern, "{}"), (_WHOLE_FLOAT, "split_part({}, '.', 1)")):
            if self._all_match(stated, pattern):
                longest = self.number(self.engine.source(), f"max(length({template.format(value)}))")
                if longest <= DIGITS:
                    return Name(True, f"CAST({template} AS BIGINT)")
                return Name(False, template)
        return Name(False)
