"""Tables that DuckDB reads: relations of the user's, and files.

DuckDB reads text that spells only numbers or booleans as such. Whether it does is decided by `_values` on the distinct
values of a column; a column of very many values must consist of plain numerals.

Names from a file are only ever quoted identifiers or values, never a part of a statement. Errors of DuckDB quote the
data, so they are never passed on: what is wrong is found again and said in our own words.
"""

from __future__ import annotations

import contextlib
import itertools
import re
import secrets
import weakref
from typing import TYPE_CHECKING, Any

import numpy as np

from abstain import _sql, labels
from abstain.errors import ArgumentError, DataError, FormatError, lacks_memory
from abstain.readers import _values
from abstain.readers._tables import QueriedColumn, QueriedTable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    import duckdb
    from numpy.typing import NDArray

    from abstain.readers._table_files import TableFiles
    from abstain.readers._tables import Form

_numbers = itertools.count()

_WHOLE = re.compile(r"^U?(TINY|SMALL|BIG)?INT(EGER)?$")
# Numbers that numpy does not hold as they are; they come as text, which is exact.
_EXACT_NUMBER = re.compile(r"^(DECIMAL.*|U?HUGEINT|BIGNUM|VARINT)$")
_LIST = re.compile(r"\[\d*\]$")
# The errors that DuckDB raises about a statement. Errors about reading a file are of other classes.
_OUR_MISTAKES = (
    "BinderException",
    "CatalogException",
    "ConversionException",
    "InvalidTypeException",
    "OutOfRangeException",
    "ParserException",
    "SyntaxException",
    "TypeMismatchException",
)
# A column with more distinct values among its first rows is checked by a pattern and not value by value.
_FIRST_ROWS, _FEW_VALUES = 1 << 13, 1 << 12
# How many rows `head` returns.
_HEAD = 1 << 10
# What DuckDB and Python read as the same number, or as none.
_EXPONENT = r"([eE][+-]?[0-9]{1,2})?"
_NUMERALS = {
    "whole": r" *|-?[1-9][0-9]{0,16}|0",
    "number": rf" *|0|-?[1-9][0-9]{{0,14}}{_EXPONENT}|-?(0|[1-9][0-9]{{0,14}})\.[0-9]{{0,30}}{_EXPONENT}",
}
_TYPES = {"whole": "BIGINT", "number": "DOUBLE", "boolean": "BOOLEAN"}
_NESTED = re.compile(r"(^(STRUCT|MAP|UNION|BLOB|BIT|LIST|ARRAY|VARIANT|GEOMETRY))")


class Database:
    """Where statements about a table run: a connection of ours. What it creates is temporary."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self.connection: duckdb.DuckDBPyConnection | None = connection

    def query(self, statement: str) -> Any:
        """Return the result of a query, not yet run; any other statement is run."""
        assert self.connection is not None
        return self.connection.sql(statement)

    def create(self, name: str, statement: str) -> None:
        """Create a temporary table from a query."""
        self.query(f"CREATE OR REPLACE TEMP TABLE {name} AS {statement}")

    def give(self, name: str, columns: Mapping[str, NDArray[Any]]) -> None:
        """Create a temporary table from columns of whole numbers."""
        assert self.connection is not None
        self.connection.register("given", dict(columns))
        self.create(name, "FROM given")
        self.connection.unregister("given")


class RelationDatabase(Database):
    """The database of a user's relation. The relation hides its connection, so that statements run through it.

    They find its rows under `name`. Temporary tables are dropped when this object is deleted.
    """

    def __init__(self, relation: Any, name: str) -> None:
        self.connection = None
        self._relation, self._name = relation, name
        self._created: set[str] = set()
        weakref.finalize(self, _drop, relation, name, self._created)

    def query(self, statement: str) -> Any:
        """Return the result of a query, not yet run; any other statement is run."""
        return self._relation.query(self._name, statement)

    def create(self, name: str, statement: str) -> None:
        """Create a temporary table from a query."""
        super().create(name, statement)
        self._created.add(name)

    def give(self, name: str, columns: Mapping[str, NDArray[Any]]) -> None:
        """Create a temporary table from columns of whole numbers."""
        lists = (f"unnest({values.tolist()}::BIGINT[]) AS {column}" for column, values in columns.items())
        self.create(name, f"SELECT {', '.join(lists)}")


def _drop(relation: Any, name: str, created: set[str]) -> None:
    # Older versions of DuckDB make a view of the rows, which is therefore dropped last.
    for what in (*(f"TABLE IF EXISTS {table}" for table in created), f"VIEW IF EXISTS {name}"):
        with contextlib.suppress(Exception):  # the user may have closed the connection
            relation.query(name, f"DROP {what}")


def unused_name() -> str:
    """Return a name that no other table has, including those of the user."""
    return f"abstain_{next(_numbers)}_{secrets.token_hex(4)}"


class DuckTable(QueriedTable):
    """A table that DuckDB reads: a relation of the user's, a lazy frame, or some files.

    Attributes:
        database: where statements about it run.
        source: what they select from.
    """

    word = "table"
    # True if all columns are text.
    text_alone = False

    def __init__(
        self, database: Database, source: str, label: str, names: Sequence[str] | None = None
    ) -> None:
        self._open(database, label)
        self.source = source
        self._describe(names)

    def _open(self, database: Database, label: str, files: TableFiles | None = None) -> None:
        self.database, self.label = database, label
        self.declared: Mapping[str, Any] = {}
        self._snapshot = files
        self._spellings: dict[str, str] = {}
        if files is not None:
            self.paths = files.paths

    def _describe(self, names: Sequence[str] | None = None) -> None:
        """Find the kind of every column, and what to select to get it.

        DuckDB renames columns whose names differ in case only; `names` are their own names.
        """
        relation = self.query(f"SELECT * FROM {self.source}")
        names = names or relation.columns
        if len({column.casefold() for column in relation.columns}) < len(relation.columns):
            raise DataError(f"{self.label}: has columns whose names differ in case alone; rename one of them")
        self._kinds: dict[str, str] = {}
        self._expressions: dict[str, str] = {}
        self._text_columns: set[str] = set()
        for name, type_name, column in zip(names, map(str, relation.types), relation.columns, strict=True):
            self._kinds[name] = _kind(type_name)
            self._expressions[name] = _expression(_sql.identifier(column), type_name)
            if _kind(type_name) in ("text", "list") or _EXACT_NUMBER.match(type_name):
                self._text_columns.add(name)

    def query(self, statement: str) -> Any:
        """Return the result of a query, not yet run."""
        return self.fetch(lambda: self.database.query(statement))

    def rows_of(self, statement: str) -> list[tuple[Any, ...]]:
        """Return the rows that a query gives."""
        rows: list[tuple[Any, ...]] = self.fetch(lambda: self.database.query(statement).fetchall())
        return rows

    def columns_of(self, statement: str) -> dict[str, NDArray[Any]]:
        """Return the columns that a query gives: numbers, NaN for null, or objects, None for null."""
        columns = self.fetch(lambda: self.database.query(statement).fetchnumpy())
        return {name: plain_array(values) for name, values in columns.items()}

    def _view(self, statement: str) -> str:
        """Return the name of a view of a query, which runs whenever a statement selects from the view."""
        name = unused_name()
        self.query(f"CREATE TEMP VIEW {name} AS {statement}")
        return name

    def join_database(self, other: DuckTable) -> bool:
        """Make the rows known to statements about another table; False if that is in another database.

        Statements about a user's relation find no other rows than those of the relation and of temporary tables.
        """
        connections = (self.database.connection, other.database.connection)
        if connections != (None, None):
            return connections[0] is connections[1]
        import duckdb  # noqa: PLC0415

        name = unused_name()
        self.create(name, f"FROM {self.source}")
        self.source = name
        try:
            other.database.query(f"FROM {name} LIMIT 0")
        except duckdb.CatalogException:
            return False
        return True

    def create(self, name: str, statement: str) -> None:
        """Create a temporary table from a query."""
        self.fetch(lambda: self.database.create(name, statement))

    def fetch(self, work: Callable[[], Any]) -> Any:
        """Run a query of this table and show its progress; errors do not quote DuckDB.

        Raises:
            FormatError: DuckDB cannot read the files.
            RuntimeError: DuckDB rejects the statement, which is a defect of this package.
        """
        import duckdb  # noqa: PLC0415

        try:
            found = _sql.run(work, self.database.connection)
        except duckdb.InterruptException:
            raise KeyboardInterrupt from None
        except Exception as problem:
            if isinstance(problem, duckdb.OutOfMemoryException) or lacks_memory(problem):
                raise DataError(
                    f"{self.label}: reading it takes more memory than there is; name fewer columns, or split the file"
                ) from None
            if type(problem) is RuntimeError and str(problem) == "Query interrupted":
                raise KeyboardInterrupt from None  # Ctrl-C while a user's relation is read
            if not isinstance(problem, duckdb.Error):
                raise
            self._check_snapshot()
            if type(problem).__name__ in _OUR_MISTAKES:
                raise RuntimeError(
                    f"{self.label}: DuckDB rejected a statement of abstain ({type(problem).__name__}); the file is not "
                    "the cause, so please report this as a defect of abstain"
                ) from None
            raise self._explained(problem) from None
        self._check_snapshot()
        return found

    def _check_snapshot(self) -> None:
        if self._snapshot is not None:
            self._snapshot.check()

    def _explained(self, problem: Exception) -> FormatError:
        """What is wrong with the files, without the words of DuckDB, which may quote the data."""
        return FormatError(f"{self.label}: cannot be read as {self.word} ({type(problem).__name__})")

    def load(self, names: Sequence[str], form: Form = "text") -> dict[str, NDArray[Any]]:
        """Return columns as arrays."""
        if not names:
            return {}
        self.prepare(names)
        parts = [f"{self.column(name, form).expression} AS c{place}" for place, name in enumerate(names)]
        columns = self.columns_of(f"SELECT {', '.join(parts)} FROM {self.source}")
        return dict(zip(names, columns.values(), strict=True))

    def head(self, names: Sequence[str]) -> dict[str, NDArray[Any]]:
        """Return the first rows of columns as arrays."""
        if not names:
            return {}
        columns = self.columns_of(f"{self._select(names)} LIMIT {_HEAD}")
        return dict(zip(names, columns.values(), strict=True))

    def _select(self, names: Sequence[str]) -> str:
        """Return the statement that selects columns as c0, c1, and so on."""
        parts = [f"{self.expression(name)} AS c{number}" for number, name in enumerate(names)]
        return f"SELECT {', '.join(parts)} FROM {self.source}"

    def column(self, name: str, form: Form) -> QueriedColumn:
        """Return how to select a column in a form; see `load`."""
        column = self.expression(name)
        if not self.is_text(name):
            return QueriedColumn(column, self._kinds[name])
        spelling = "text" if form == "text" else self._spelling(name)
        if spelling == "text" or (form == "name" and spelling != "whole"):
            return QueriedColumn(column, "text")
        return QueriedColumn(f"TRY_CAST({column} AS {_TYPES[spelling]})", spelling)

    def _spelling(self, name: str) -> str:
        """Return what a column of text spells if DuckDB reads it so: "whole", "number" or "boolean", otherwise "text".

        Whole numbers are those that are also whole as names (see `_values.as_names`).
        """
        if name not in self._spellings:
            self._spellings[name] = self._find_spelling(self.expression(name))
        return self._spellings[name]

    def _find_spelling(self, column: str) -> str:
        values = f"SELECT {column} AS value FROM {self.source}"
        spelling = _values.spelling(self._distinct(f"{values} LIMIT {_FIRST_ROWS}", _FIRST_ROWS))
        if spelling == "text":
            return spelling
        distinct = self._distinct(values, _FEW_VALUES)
        if len(distinct) < _FEW_VALUES:
            return _values.spelling(distinct)
        return next((kind for kind, pattern in _NUMERALS.items() if self._all_match(values, pattern)), "text")

    def _distinct(self, values: str, most: int) -> dict[str | None, float | None]:
        """Return distinct texts, at most so many, and the number that DuckDB reads each as."""
        distinct = f"SELECT DISTINCT value FROM ({values}) LIMIT {most}"
        return dict(self.rows_of(f"SELECT value, TRY_CAST(value AS DOUBLE) FROM ({distinct})"))

    def _all_match(self, values: str, pattern: str) -> bool:
        wrong = f"NOT regexp_full_match(value, {_sql.literal(pattern)})"
        return not self.rows_of(f"SELECT 1 FROM ({values}) WHERE {wrong} LIMIT 1")

    def spells_numbers(self, name: str) -> bool:
        """True if a column holds, or its text spells, numbers that are not all whole, or booleans."""
        kind = self._kinds[name]
        return (self._spelling(name) if kind in ("text", "unknown") else kind) in ("number", "boolean")

    # The name of the rows as they are in the files, and how a file of this kind is written again.
    _files = ""
    _written = ""

    def _columns_with(self, name: str, mark: str) -> str:
        kept = ", ".join(
            f"source.{_sql.identifier(own)} AS {_sql.identifier(column)}"
            for column, own in zip(self._kinds, self.query(f"FROM {self._files}").columns, strict=True)
        )
        return f"{kept}, {mark} AS {_sql.identifier(name)}"

    def marked(self, name: str, marks: NDArray[np.bool_], words: tuple[str, str], part: Path | None) -> Any:
        """Write the rows with one more column, one after the other: no more of them is in memory than is needed."""
        if not self._files or part is None:
            raise ArgumentError(f"{self.label}: a column cannot be added to it; pass a file or a data frame")
        self.fetch(lambda: self.database.give("marks", {"mark": marks}))
        mark = f"CASE WHEN marks.mark THEN {_sql.literal(words[1])} ELSE {_sql.literal(words[0])} END"
        # Rows come in the order of the files, in which the marks were made.
        chosen = f"SELECT {self._columns_with(name, mark)} FROM {self._files} AS source POSITIONAL JOIN marks"
        self.query(f"COPY ({chosen}) TO {_sql.literal(str(part))} ({self._written})")
        return None

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return int(self.counted("count(*)")[0])

    def repeats(self, name: str) -> bool:
        """True where a column has several values, and some of them more than once."""
        column = self.expression(name)
        known, distinct = self.counted(f"count({column}), count(DISTINCT {column})")
        return bool(1 < distinct < known)

    def counted(self, what: str) -> tuple[Any, ...]:
        """Return aggregates over the rows."""
        return self.rows_of(f"SELECT {what} FROM {self.source}")[0]

    def sha256(self) -> str | None:
        """Return the SHA-256 of the files in hexadecimal, one after the other; None for a frame."""
        return None if self._snapshot is None else self._snapshot.sha256()

    def expression(self, name: str) -> str:
        """Return what to select to get a column as numbers, booleans or text."""
        return self._expressions[name]

    def is_text(self, name: str) -> bool:
        """True where that is text, whatever the text may spell."""
        return self.text_alone or name in self._text_columns


def _kind(type_name: str) -> str:
    if type_name == "BOOLEAN":
        return "boolean"
    if _WHOLE.match(type_name) or type_name.endswith(("HUGEINT", ",0)")):
        return "whole"
    if type_name in ("FLOAT", "DOUBLE") or _EXACT_NUMBER.match(type_name):
        return "number"
    if _LIST.search(type_name):
        return "list"
    return "other" if _NESTED.search(type_name) else "text"


def _expression(quoted: str, type_name: str) -> str:
    """Return what to select to get a column as numbers, booleans or text."""
    kind = _kind(type_name)
    if type_name == "JSON":
        return f"({quoted} ->> '$')"
    if kind == "list":
        return f"CAST(to_json({quoted}) AS VARCHAR)"
    if type_name == "FLOAT":
        return f"CAST({quoted} AS DOUBLE)"
    return f"CAST({quoted} AS VARCHAR)" if kind == "text" or _EXACT_NUMBER.match(type_name) else quoted


def plain_array(found: Any) -> NDArray[Any]:
    """Return a column without mask: NaN for a null number where that is exact, None for any other null."""
    if isinstance(found, np.ma.MaskedArray):
        mask = np.ma.getmaskarray(found)
        if not mask.any():
            return found.data
        if found.dtype.kind == "f" or (found.dtype.kind in "iu" and _is_exact(found)):
            return np.where(mask, np.nan, found.data.astype(np.float64))
        objects = found.data.astype(object)
        objects[mask] = None
        return objects
    return np.asarray(found)


def _is_exact(numbers: np.ma.MaskedArray[Any, Any]) -> bool:
    """True if a float holds each of some whole numbers."""
    stated = numbers.compressed()
    return not len(stated) or max(int(stated.max()), -int(stated.min())) <= labels.EXACT
