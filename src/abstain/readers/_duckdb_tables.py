"""Tables that DuckDB reads: files, relations and lazy frames.

Text that spells only numbers or booleans is read as such. `_values` decides that by the distinct values of a column. A
column of very many distinct values must consist of plain numerals.

Names from a file become quoted identifiers or values, and never another part of a statement. DuckDB's error messages
quote the data, so they are never shown: the problem is searched for again, and described in a message of this package.
"""

from __future__ import annotations

import contextlib
import itertools
import secrets
import weakref
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from abstain import _sql
from abstain.errors import DataError, FormatError, lacks_memory
from abstain.readers import _values
from abstain.readers._table_files import TableFiles
from abstain.readers._tables import QueriedColumn, QueriedTable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import duckdb
    from numpy.typing import NDArray

    from abstain.readers._tables import Form

_numbers = itertools.count()

# The kinds of the types that numpy also has.
_NUMPY_KINDS = {
    "boolean": "boolean",
    **dict.fromkeys(("tinyint", "smallint", "integer", "bigint"), "whole"),
    **dict.fromkeys(("utinyint", "usmallint", "uinteger", "ubigint"), "whole"),
    **dict.fromkeys(("float", "double"), "number"),
}
# The kinds of the numeric types that numpy does not have. They are selected as text, which is exact.
_EXACT_KINDS = {"hugeint": "whole", "uhugeint": "whole", "bignum": "number", "varint": "number"}
_OTHER_TYPES = ("struct", "map", "union", "blob", "bit", "variant", "geometry")
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
# If a column has more distinct values, a pattern checks it instead of value by value.
_FEW_VALUES = 1 << 12
# The number of rows that `head` returns, and from which a first guess is made.
_HEAD = 1 << 10
# Text that DuckDB and Python read as the same number, or not as a number.
_EXPONENT = r"([eE][+-]?[0-9]{1,2})?"
_NUMERALS = {
    "whole": r" *|-?[1-9][0-9]{0,16}|0",
    "number": rf" *|0|-?[1-9][0-9]{{0,14}}{_EXPONENT}|-?(0|[1-9][0-9]{{0,14}})\.[0-9]{{0,30}}{_EXPONENT}",
}
_TYPES = {"whole": "BIGINT", "number": "DOUBLE", "boolean": "BOOLEAN"}


class Database:
    """Runs statements about a table on a connection of this package. Everything that it creates is temporary."""

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
        """Create a temporary table from arrays."""
        assert self.connection is not None
        self.connection.register("given", dict(columns))
        self.create(name, "FROM given")
        self.connection.unregister("given")


class RelationDatabase(Database):
    """Runs statements about a user's relation, in which its rows are called `name`.

    A relation does not show its connection, so statements run through the relation. Temporary tables are dropped when
    this object is deleted.
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
        """Create a temporary table from arrays of whole numbers."""
        lists = (f"unnest({values.tolist()}::BIGINT[]) AS {column}" for column, values in columns.items())
        self.create(name, f"SELECT {', '.join(lists)}")


def _drop(relation: Any, name: str, created: set[str]) -> None:
    # Older versions of DuckDB make a view of the rows, which is therefore dropped last.
    for target in (*(f"TABLE IF EXISTS {table}" for table in created), f"VIEW IF EXISTS {name}"):
        with contextlib.suppress(Exception):  # the user may have closed the connection
            relation.query(name, f"DROP {target}")


def unused_name() -> str:
    """Return a name that no other table has, including those of the user."""
    return f"abstain_{next(_numbers)}_{secrets.token_hex(4)}"


class StoredColumn(NamedTuple):
    """A column: its kind, the expression that selects it as a type that numpy has, and whether that is text."""

    kind: str
    expression: str
    is_text: bool


class DuckTable(QueriedTable):
    """A table that DuckDB reads: a relation, a lazy frame, or some files.

    A subclass sets `source` and then the columns, most of them by `_describe_columns`.

    Attributes:
        database: runs statements about the table.
        source: the name from which they select.
    """

    format_name = "table"
    source: str

    def __init__(self, database: Database, label: str, files: TableFiles | None = None) -> None:
        self.database, self.label = database, label
        self.declared: Mapping[str, Any] = {}
        # A frame has no files.
        self._files = files or TableFiles(())
        self.paths = self._files.paths
        self._spellings: dict[str, str] = {}

    def _describe_columns(self, names: Sequence[str] | None = None) -> None:
        """Set the kind and the expression of every column.

        DuckDB renames columns whose names differ only in case. `names` are the original names.
        """
        relation = self.query(f"FROM {self.source}")
        if len({column.casefold() for column in relation.columns}) < len(relation.columns):
            raise DataError(f"{self.label}: has columns whose names differ only in case; rename one of them")
        columns = map(_stored_column, relation.columns, relation.types)
        self._columns = dict(zip(names or relation.columns, columns, strict=True))
        self._kinds = {name: column.kind for name, column in self._columns.items()}

    def query(self, statement: str) -> Any:
        """Return the result of a query, not yet run; any other statement is run."""
        return self.fetch(lambda: self.database.query(statement))

    def rows_of(self, statement: str) -> list[tuple[Any, ...]]:
        """Return the rows of a query."""
        rows: list[tuple[Any, ...]] = self.fetch(lambda: self.database.query(statement).fetchall())
        return rows

    def columns_of(self, statement: str) -> dict[str, NDArray[Any]]:
        """Return the columns of a query: numbers, NaN for null, or objects, None for null."""
        columns = self.fetch(lambda: self.database.query(statement).fetchnumpy())
        return {name: plain_array(values) for name, values in columns.items()}

    def join_database(self, other: DuckTable) -> bool:
        """Let statements about another table select from this one; return False if it is in another database.

        Statements about a user's relation can select only from the relation and from temporary tables.
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
            result = _sql.run(work, self.database.connection)
        except duckdb.InterruptException:
            raise KeyboardInterrupt from None
        except Exception as problem:
            if isinstance(problem, duckdb.OutOfMemoryException) or lacks_memory(problem):
                raise DataError(
                    f"{self.label}: reading it needs more memory than is available; name fewer columns, or split "
                    "the file"
                ) from None
            if type(problem) is RuntimeError and str(problem) == "Query interrupted":
                raise KeyboardInterrupt from None  # Ctrl-C while a user's relation is read
            if not isinstance(problem, duckdb.Error):
                raise
            self._files.check()
            if type(problem).__name__ in _OUR_MISTAKES:
                raise RuntimeError(
                    f"{self.label}: DuckDB rejected a statement of abstain ({type(problem).__name__}); the file is not "
                    "the cause, so please report this as a defect of abstain"
                ) from None
            raise self._find_problem(problem) from None
        self._files.check()
        return result

    def _find_problem(self, problem: Exception) -> FormatError:
        """Return an error that describes the problem with the files; DuckDB's message may quote the data."""
        return FormatError(f"{self.label}: cannot be read as {self.format_name} ({type(problem).__name__})")

    def load(self, names: Sequence[str], form: Form = "text") -> dict[str, NDArray[Any]]:
        """Return columns as arrays."""
        if not names:
            return {}
        self.prepare(names)
        selected = [f"{self.column(name, form).expression} AS c{number}" for number, name in enumerate(names)]
        columns = self.columns_of(f"SELECT {', '.join(selected)} FROM {self.source}")
        return dict(zip(names, columns.values(), strict=True))

    def head(self, names: Sequence[str]) -> dict[str, NDArray[Any]]:
        """Return the first rows of columns as arrays."""
        if not names:
            return {}
        columns = self.columns_of(f"{self._select(names)} LIMIT {_HEAD}")
        return dict(zip(names, columns.values(), strict=True))

    def _select(self, names: Sequence[str]) -> str:
        """Return the statement that selects columns as c0, c1, and so on."""
        parts = [f"{self._stored(name).expression} AS c{number}" for number, name in enumerate(names)]
        return f"SELECT {', '.join(parts)} FROM {self.source}"

    def column(self, name: str, form: Form) -> QueriedColumn:
        """Return the expression that selects a column in a form; see `load`."""
        column = self._stored(name)
        if not column.is_text:
            return QueriedColumn(column.expression, column.kind)
        spelling = "text" if form == "text" else self._spelling(name)
        if spelling == "text" or (form == "name" and spelling != "whole"):
            return QueriedColumn(column.expression, "text")
        return QueriedColumn(f"TRY_CAST({column.expression} AS {_TYPES[spelling]})", spelling)

    def _stored(self, name: str) -> StoredColumn:
        return self._columns[name]

    def _spelling(self, name: str) -> str:
        """Return "whole", "number" or "boolean" if all text of a column spells that for DuckDB, too; otherwise "text".

        Whole numbers are those that are also whole as names (see `_values.as_names`).
        """
        if name not in self._spellings:
            self._spellings[name] = self._find_spelling(self._stored(name).expression)
        return self._spellings[name]

    def _find_spelling(self, column: str) -> str:
        values = f"SELECT {column} AS value FROM {self.source}"
        first = self._distinct(f"{values} LIMIT {_HEAD}", _HEAD)
        if _values.spelling(first) == "text":
            return "text"
        # If nearly all values differ, it is quicker to match a pattern than to find the distinct values.
        plain = self._plain_numerals(values) if len(first) > _HEAD * 3 // 4 else None
        if plain is not None:
            return plain
        distinct = self._distinct(values, _FEW_VALUES)
        if len(distinct) < _FEW_VALUES:
            return _values.spelling(distinct)
        return self._plain_numerals(values) or "text"

    def _distinct(self, values: str, most: int) -> dict[str | None, float | None]:
        """Return at most `most` distinct texts, each with the number that DuckDB reads it as."""
        distinct = f"SELECT DISTINCT value FROM ({values}) LIMIT {most}"
        return dict(self.rows_of(f"SELECT value, TRY_CAST(value AS DOUBLE) FROM ({distinct})"))

    def _plain_numerals(self, values: str) -> str | None:
        """Return the kind of a column that consists of plain numerals, otherwise None."""
        for kind, pattern in _NUMERALS.items():
            wrong = f"NOT regexp_full_match(value, {_sql.literal(pattern)})"
            if not self.rows_of(f"SELECT 1 FROM ({values}) WHERE {wrong} LIMIT 1"):
                return kind
        return None

    def spells_numbers(self, name: str) -> bool:
        """Return whether a column contains, or its text spells, booleans, or numbers that are not all whole."""
        kind = self._kinds[name]
        return (self._spelling(name) if kind in ("text", "unknown") else kind) in ("number", "boolean")

    @property
    def rows(self) -> int:
        """The number of rows."""
        return int(self._aggregate("count(*)")[0])

    def repeats(self, name: str) -> bool:
        """Return whether a column has at least two different values, and one of them more than once."""
        column = self._stored(name).expression
        count, distinct = self._aggregate(f"count({column}), count(DISTINCT {column})")
        return bool(1 < distinct < count)

    def _aggregate(self, expressions: str) -> tuple[Any, ...]:
        return self.rows_of(f"SELECT {expressions} FROM {self.source}")[0]

    def sha256(self) -> str | None:
        """Return the SHA-256 of the files in hexadecimal, one after the other; None for a frame."""
        return self._files.sha256() if self.paths else None


def _stored_column(name: str, data_type: Any) -> StoredColumn:
    """Return a column by its DuckDB type."""
    quoted, type_id = _sql.identifier(name), data_type.id
    as_text = f"CAST({quoted} AS VARCHAR)"
    if type_id in _NUMPY_KINDS:
        column = f"CAST({quoted} AS DOUBLE)" if type_id == "float" else quoted
        return StoredColumn(_NUMPY_KINDS[type_id], column, is_text=False)
    if type_id in _EXACT_KINDS:
        return StoredColumn(_EXACT_KINDS[type_id], as_text, is_text=True)
    if type_id == "decimal":
        whole = dict(data_type.children)["scale"] == 0
        return StoredColumn("whole" if whole else "number", as_text, is_text=True)
    if type_id in ("list", "array"):
        return StoredColumn("list", f"CAST(to_json({quoted}) AS VARCHAR)", is_text=True)
    if type_id in _OTHER_TYPES:
        return StoredColumn("other", quoted, is_text=False)
    if type_id == "timestamp with time zone":  # as text it would depend on the time zone of the session
        as_text = f"CAST(make_timestamp(epoch_us({quoted})) AS VARCHAR) || '+00:00'"
    return StoredColumn("text", f"({quoted} ->> '$')" if str(data_type) == "JSON" else as_text, is_text=True)


def plain_array(column: Any) -> NDArray[Any]:
    """Return a column without mask: NaN for a null number if that is exact, None for any other null."""
    if not isinstance(column, np.ma.MaskedArray):
        return np.asarray(column)
    mask = np.ma.getmaskarray(column)
    if not mask.any():
        return column.data
    if _values.is_numeric(column.compressed()):
        return np.where(mask, np.nan, column.data.astype(np.float64))
    objects = column.data.astype(object)
    objects[mask] = None
    return objects
