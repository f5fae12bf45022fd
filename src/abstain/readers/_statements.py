"""The rows of a table as statements: which columns are looked at, what they are called, and what a row's unit is.

What a statement gives back means nothing here; `_counting` says what it does. How to count is chosen by a look at the
beginning of the table: whether clusters are many, whether rows are alike, and whether a confidence is continuous.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from abstain._export import ABSENT_SUFFIX, METADATA_PREFIX
from abstain._row_names import rows_named_by
from abstain._units import MOST_SINGLE, WHOLE_NAME
from abstain._validate import HEAVIEST
from abstain.errors import CountingError
from abstain.items import GUIDANCE
from abstain.labels import EXACT
from abstain.readers import _values
from abstain.readers._columns import is_typed
from abstain.readers._engine import DIGITS, NUMBER, group_of_text, group_of_whole, is_blank
from abstain.readers._values import SHOWN_ROWS, Problems

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from abstain._types import Mask
    from abstain.readers._engine import Engine
    from abstain.readers._read import ReadArguments
    from abstain.readers._tables import Form, QueriedColumn, QueriedTable


# Roles whose columns kinds of rows do not differ by.
NOT_OF_KINDS = ("confidence", "cluster", "item", "weight")
# What names are called in statements.
NAME_KEYS = {"cluster": "c", "item": "i", "rows": "r"}
# How many rows are looked at to choose how to count, and what is few among them.
HEAD = 1 << 16
_FEW_VALUES, _FEW_ALIKE = 1 << 11, 1 << 12
# Continuous confidences of fewer rows are counted as they are.
FEW_ROWS = 1 << 21
_WHOLE_FLOAT = r"(-?[1-9][0-9]*|0)\.0+"


@dataclass(frozen=True, slots=True)
class Name:
    """What clusters or items are known by: whole numbers where all of them are, else text.

    Attributes:
        whole: True for whole numbers.
        form: what makes the name of a value.
    """

    whole: bool
    form: str = "{}"

    def of(self, value: str) -> str:
        """Return the name of a value."""
        return self.form.format(value)


@dataclass(frozen=True, slots=True)
class Kept:
    """The rows that are counted where it is not all of them.

    Attributes:
        names: what to select from, as ``names``: those of the rows, and the cluster ``c`` of each.
        keeper: the engine that keeps them, for as long as somebody may ask for them.
        by: what rows are known by: "cluster", "item" or both, or "rows" for their numbers.
        whole: True where clusters are whole numbers.
    """

    names: str
    keeper: Engine
    by: tuple[str, ...]
    whole: bool


@dataclass(eq=False)
class Statements:
    """A table that is counted: which column plays which role, and how finely to count.

    Attributes:
        table: where the columns are.
        engine: what counts its rows.
        roles: what the user says of the table; `metadata` are the columns of groups, `signals` those that will be asked
            for together.
        columns: the column of each role.
        units: False where nobody leaves clusters out, and they are only counted.
        origin: where the table comes from.
        kept: which of the rows are counted; all of them when left out.
        whole: where some of the rows are counted, the counting of all, which says what the columns mean.
        problems: where to say what is wrong with rows; the first of it is raised when left out.
        asked: True if the caller named the engine; otherwise a table that cannot be aggregated is loaded.
        named: the signals that the user names; all columns of numbers if None.
    """

    table: QueriedTable
    engine: Engine
    roles: ReadArguments
    columns: Mapping[str, str]
    units: bool
    origin: Mapping[str, Any]
    kept: Kept | None = None
    whole: Self | None = None
    problems: Problems = field(default_factory=lambda: Problems(collect=False))
    asked: bool = True
    named: Sequence[str] | None = None

    def _number(self, source: str, what: str = "count(*)") -> int:
        """Return one number about rows; how many there are, when left out."""
        return int(self.engine.fetch(f"SELECT {what} AS n FROM {source}")["n"][0])

    def _wrong(
        self, counts: NDArray[np.int64] | int, first_rows: Callable[[Mask], NDArray[np.intp]]
    ) -> Problems:
        """Return where to say what is wrong: with how many rows, and what finds the first of them."""
        return Problems(
            collect=self.problems.collect,
            label=self.table.label,
            found=self.problems.found,
            counts=np.atleast_1d(np.asarray(counts, np.int64)),
            first_rows=first_rows if self.engine.in_order else None,
        )

    # Which columns are looked at, and what they are called in statements.

    @cached_property
    def signals(self) -> tuple[str, ...]:
        """The names of all signals, that of the confidence first, by the rule of `_columns`."""
        confidence = self.columns.get("confidence")
        names = self.named
        if names is None:
            taken = {name for role, name in self.columns.items() if role != "confidence"}
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
        optional = bool(self.named) and self.roles.confidence is None
        if confidence is None or (confidence not in names and optional and not self._is_numeric(confidence)):
            return tuple(dict.fromkeys(names))
        return tuple(dict.fromkeys((confidence, "confidence", *names)))

    def _is_numeric(self, name: str) -> bool:
        """True if a column holds only numbers that can serve as a signal, by the rule of `_values`."""
        value, kind = self.table.column(name, "value")
        if kind == "whole":
            return _values.is_numeric(_values.typed(self._extremes[name]))
        if kind != "text":
            return kind == "number"
        source = self.engine.source()
        for rows in (
            f"(SELECT {value} AS v FROM {source} LIMIT {HEAD})",
            f"(SELECT {value} AS v FROM {source})",
        ):
            if self._number(f"{rows} AS r WHERE NOT {self.engine.matches('v', NUMBER)}"):
                return False
        values = self.engine.fetch(f"SELECT DISTINCT {value} AS v FROM {source}")["v"]
        return _values.is_numeric(_values.typed(values))

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
        found = self.engine.fetch(f"SELECT {', '.join(parts)} FROM {self.engine.source()}")
        return {
            name: np.concatenate([found[f"low{number}"], found[f"high{number}"]])
            for number, name in enumerate(whole)
        }

    @cached_property
    def _kind_keys(self) -> dict[str, str]:
        """By column that kinds of rows differ by: what it is called."""
        roles = [name for role, name in self.columns.items() if role not in NOT_OF_KINDS]
        names = dict.fromkeys((*roles, *(self.roles.metadata or ())))
        return {name: f"k{place}" for place, name in enumerate(names)}

    @cached_property
    def _signal_keys(self) -> dict[str, str]:
        """By column that a confidence may be made of, or that says where it is absent: what it is called."""
        return {
            name: f"s{place}"
            for place, name in enumerate(self.table.kinds)
            if name in self.signals or name.endswith(ABSENT_SUFFIX)
        }

    def _columns_of(self, signals: Iterable[str]) -> list[str]:
        """The columns that signals are read from: their own, and what says where they are absent."""
        names = [self.columns.get("confidence", name) if name == "confidence" else name for name in signals]
        return list(
            dict.fromkeys(
                part for name in names for part in (name, name + ABSENT_SUFFIX) if part in self._signal_keys
            )
        )

    @cached_property
    def _named(self) -> bool:
        return "cluster" in self.columns or self.kept is not None

    @cached_property
    def _raw(self) -> str:
        """Select every row."""
        return self._select(numbers=not self._named and self.units)

    def _select(self, *, numbers: bool) -> str:
        """Select every row: what kinds differ by, signals, cluster and weight, and with `numbers` its number ``r``."""
        if self.kept is None:
            parts = self._parts(numbers=numbers)
            if "cluster" in self.columns:
                parts["c"] = self._column("cluster").expression
            elif numbers:
                parts["c"] = self.engine.row_number
            return self._selected(parts, numbers=numbers)
        by = self.kept.by
        rows = self.by_name(by, numbers=numbers)
        whole = ", ".join(f"b.{key} AS {key}" for key in self._parts(numbers=numbers))
        same = " AND ".join(f"b.{NAME_KEYS[role]} = names.{NAME_KEYS[role]}" for role in by)
        return f"SELECT {whole}, names.c AS c FROM ({rows}) AS b JOIN {self.kept.names} ON {same}"

    def by_name(self, by: Sequence[str], *, numbers: bool = False) -> str:
        """Select every row of the table with its names, and with its cluster where it has one."""
        numbers = numbers or "rows" in by
        parts = self._parts(numbers=numbers)
        for role in {**dict.fromkeys(by), "cluster": None}:
            if role in self.columns:
                parts[NAME_KEYS[role]] = self.name(role).of(self._column(role).expression)
        return self._selected(parts, numbers=numbers)

    def _parts(self, *, numbers: bool) -> dict[str, str]:
        """What is selected of every row, but for its names."""
        # Few values are distinct, and `_columns` decides what their text spells.
        parts = {key: self.table.column(name, "text").expression for name, key in self._kind_keys.items()}
        parts |= {key: self.table.column(name, "value").expression for name, key in self._signal_keys.items()}
        if "weight" in self.columns:
            weight = self.as_number(*self._column("weight", "value"))
            parts["w"] = f"coalesce({weight}, CAST('nan' AS DOUBLE))"
        return {**parts, "r": self.engine.row_number} if numbers else parts

    def as_number(self, value: str, kind: str) -> str:
        """Return how to select a value of some kind as a number; NULL if it is not one."""
        if kind in ("whole", "number"):
            return f"CAST({value} AS DOUBLE)"
        if kind == "text":  # engines also read other texts as numbers, such as 1_0
            return f"CASE WHEN {self.engine.matches(value, NUMBER)} THEN TRY_CAST({value} AS DOUBLE) END"
        return "CAST(NULL AS DOUBLE)"

    def _column(self, role: str, form: Form = "name") -> QueriedColumn:
        return self.table.column(self.columns[role], form)

    def _selected(self, parts: Mapping[str, str], *, numbers: bool) -> str:
        listed = ", ".join(f"{value} AS {key}" for key, value in parts.items())
        return f"SELECT {listed} FROM {self.engine.source(numbers=numbers)}"

    # What clusters and items are called.

    def name(self, role: str) -> Name:
        """Return what clusters or items are known by, as `_values.as_names` has it."""
        if role not in self._names:
            self._names[role] = self._name(role)
        return self._names[role]

    @cached_property
    def _names(self) -> dict[str, Name]:
        return {}

    def _name(self, role: str) -> Name:
        expression, kind = self._column(role)
        if kind == "number":
            self._check_whole_floats(self.columns[role])
            return Name(True, "CAST({} AS BIGINT)")
        if kind != "text":
            return Name(True) if kind == "whole" else Name(False, f"CAST({{}} AS {self.engine.text})")
        source = self.engine.source()
        few = f"(SELECT {expression} AS c FROM {source} LIMIT {HEAD}) AS few"
        for rows in (few, f"(SELECT {expression} AS c FROM {source}) AS many"):
            # Most names are words, which the first of them tell.
            spelled = self._spelled(rows)
            if spelled is None:
                return Name(False)
        assert spelled is not None
        form, longest = spelled
        return Name(True, f"CAST({form} AS BIGINT)") if longest <= DIGITS else Name(False, form)

    def _spelled(self, rows: str) -> tuple[str, int] | None:
        """Return how to write the whole numbers that all names of some rows are, and how long they get; else None."""
        for pattern, form in ((WHOLE_NAME.pattern, "{}"), (_WHOLE_FLOAT, "split_part({}, '.', 1)")):
            fits, own = self.engine.matches("c", pattern), form.format("c")
            found = self.engine.fetch(
                f"SELECT count(*) AS n, sum(CASE WHEN {fits} THEN 1 ELSE 0 END) AS fits, "
                f"max(length({own})) AS longest FROM {rows}"
            )
            if found["n"][0] and found["n"][0] == found["fits"][0]:
                return form, int(found["longest"][0])
        return None

    @cached_property
    def _head(self) -> Mapping[str, int]:
        """How many rows, clusters and different rows there are at the beginning of the table."""
        signals = [self._signal_keys[name] for name in self._columns_of(self.roles.signals or ())]
        keys = ", ".join((*self._kind_keys.values(), *signals))
        self.engine.keep("head", f"SELECT * FROM ({self._raw}) AS raw_rows LIMIT {HEAD}")
        found = self.engine.fetch(
            f"SELECT count(*) AS n{', count(DISTINCT c) AS c' * self._named} FROM {self.engine.known('head')}"
        )
        alike = self._number(f"(SELECT DISTINCT {keys} FROM {self.engine.known('head')}) AS alike")
        return {**{key: int(values[0]) for key, values in found.items()}, "alike": alike}

    @cached_property
    def _many(self) -> bool:
        """True where there are too many rows to count every value of a continuous confidence."""
        return self._head["n"] == HEAD and self._number(self.engine.source()) > FEW_ROWS

    @cached_property
    def _values(self) -> dict[str, int]:
        """How many values signals have at the beginning of the table, as far as somebody asked."""
        return {}

    def _is_continuous(self, name: str) -> bool:
        """True where a signal takes many values, and in many rows."""
        if name not in self._signal_keys or name.endswith(ABSENT_SUFFIX) or not self._many:
            return False
        if name not in self._values:
            distinct = f"count(DISTINCT {self._signal_keys[name]})"
            self._values[name] = self._number(self.engine.known("head"), distinct)
        return self._values[name] > _FEW_VALUES

    @cached_property
    def _unit(self) -> str:
        """What a row's unit is: nothing, its cluster, or a group of clusters where there are very many."""
        if not self.units:
            return "0"
        if self._head["c" if self._named else "n"] <= MOST_SINGLE:
            return "c"
        return self._group()

    def _group(self) -> str:
        """The group of a row's cluster, by the arithmetic of `abstain._units.group_of`."""
        name = Name(True)
        if self.kept is not None:
            name = Name(self.kept.whole)
        elif self._named:
            name = self.name("cluster")
        return group_of_whole(name.of("c")) if name.whole else group_of_text(name.of("c"), self.engine)

    def _check_whole_floats(self, column: str) -> None:
        self.check_there(column)
        value = self.table.column(column, "name").expression
        wrong = f"{value} <> floor({value}) OR abs({value}) > {float(EXACT)}"
        count = self._number(f"{self.engine.source()} WHERE {wrong}")
        if count:
            raise CountingError(
                self.table.label,
                f"the column {column!r} holds names as floating-point numbers, which are not whole in {count:,} rows",
                way_out="store them as text or as whole numbers, or ",
            )

    def _base(self, names: Iterable[str] = ()) -> Base:
        """Return what to count by some signals: distinct rows with their counts, if these are few; or every row."""
        together = self._columns_of(self.roles.signals or ())
        few = self._head["alike"] <= _FEW_ALIKE and set(names) <= set(together)
        return self._distinct_rows if few else self._every_row

    @cached_property
    def _distinct_rows(self) -> Base:
        """Distinct rows by kind, requested signals and unit, each with how often it occurs."""
        signals = [self._signal_keys[name] for name in self._columns_of(self.roles.signals or ())]
        keys = ", ".join((*self._kind_keys.values(), *signals))
        weights = ", sum(w) AS w" if self._weighed else ""
        statement = f"SELECT {keys}, {self._unit} AS u, count(*) AS n{weights} FROM ({self._raw}) AS r"
        places = range(1, len(self._kind_keys) + len(signals) + 2)
        self.engine.keep("alike", f"{statement} GROUP BY {', '.join(map(str, places))}")
        total = "sum(b.w)" if self._weighed else "CAST(sum(b.n) AS DOUBLE)"
        return Base(
            f"SELECT * FROM {self.engine.known('alike')}",
            "CAST(sum(b.n) AS BIGINT)",
            total,
            counts=True,
            weighed=self._weighed,
        )

    @property
    def _every_row(self) -> Base:
        select = f"SELECT *, {self._unit} AS u FROM ({self._raw}) AS raw_rows"
        if self._weighed:
            return Base(select, "count(*)", "sum(b.w)", weighed=True)
        return Base(select, "count(*)", "CAST(count(*) AS DOUBLE)")

    @cached_property
    def _weighed(self) -> bool:
        """True if rows have weights that are valid; if one is not, every row is one item."""
        if self.whole is not None:
            return self.whole._weighed
        return "weight" in self.columns and not self._weights["wrong"] and self._weights["positive"] > 0

    @cached_property
    def _weights(self) -> Mapping[str, int]:
        """How many weights are wrong, and how many are positive."""
        # To an engine, NaN is greater than any number.
        asked = {"wrong": f"w < 0 OR w > {HEAVIEST}", "positive": "w > 0"}
        counts = ", ".join(f"count(CASE WHEN {what} THEN 1 END) AS {key}" for key, what in asked.items())
        found = self.engine.fetch(f"SELECT {counts} FROM ({self._select(numbers=False)}) AS b")
        return {key: int(values[0]) for key, values in found.items()}

    @property
    def _whole_clusters(self) -> bool:
        """True where clusters are whole numbers to the engine, too."""
        if self.kept is not None:
            return self.kept.whole
        return self._column("cluster").kind == "whole"

    # Where something is wrong.

    def first(self, rows: str) -> NDArray[np.intp]:
        """Return the numbers ``r`` of the first rows that a statement gives."""
        found = self.engine.fetch(f"SELECT r FROM ({rows}) AS found ORDER BY 1 LIMIT {SHOWN_ROWS}")
        return found["r"].astype(np.intp)

    def check_there(self, column: str) -> None:
        """Raise where a row has no name in a column."""
        value, kind = self.table.column(column, "name")
        nothing = f"{value} IS NULL"
        if kind == "text":
            nothing += f" OR {is_blank(value, self.engine)}"
        elif kind == "number":
            nothing += f" OR isnan({value})"
        count = self._number(f"{self.engine.source()} WHERE {nothing}")
        if not count:
            return
        source = self.engine.source(numbers=True)
        numbered = f"SELECT {self.engine.row_number} AS r FROM {source} WHERE {nothing}"
        problems = self._wrong(count, lambda _: self.first(numbered))
        with rows_named_by(self.table.paths):
            self._report_nothing(problems, np.ones(1, np.bool_), column)

    def _report_nothing(self, problems: Problems, wrong: Mask, column: str) -> None:
        problems.report(
            f"the column {column!r} is empty or nan {problems.place(wrong)}",
            way_out="every row needs a value",
        )


@dataclass(frozen=True, slots=True)
class Base:
    """What is counted: how to select it, and how to sum up how many rows there are and their weights."""

    select: str
    count: str
    total: str
    counts: bool = False
    weighed: bool = False
