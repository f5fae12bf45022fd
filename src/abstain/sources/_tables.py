"""Tables in files: CSV, Parquet and JSONL, through DuckDB, only the columns that are asked for.

A `Table` says which columns there are and of what kind, and loads some of them as arrays. Names from a file
are only ever quoted identifiers or values, never a part of a statement; extensions, and with them the
network, are off. Errors of DuckDB quote the data, so they are never passed on: what is wrong is found again
and said in our own words.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
import tempfile
from typing import IO, TYPE_CHECKING, Any, NoReturn, Protocol, cast

import numpy as np

from abstain import _validate
from abstain._export import PARQUET_KEY
from abstain.errors import ArgumentError, DataError, FormatError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    import duckdb
    from numpy.typing import NDArray

__all__ = ["DuckTable", "Table", "open_table"]

TABLE_FORMATS = ("csv", "parquet", "jsonl")
_DELIMITERS = ",;\t|"
_HEADER = 1 << 16
_LONGEST_LINE = 1 << 24
_WHOLE = re.compile(r"^U?(TINY|SMALL|BIG)?INT(EGER)?$")
_NUMBER = re.compile(r"^(FLOAT|DOUBLE|DECIMAL.*|U?HUGEINT|BIGNUM)$")
_NESTED = re.compile(r"(\[\d*\]$|^(STRUCT|MAP|UNION|BLOB|BIT|LIST|ARRAY|VARIANT|GEOMETRY))")
_MEMORY_LIMIT = "1GB"


class Table(Protocol):
    """What a source of columns can do.

    Attributes:
        label: what it is called in messages.
        kinds: "whole", "number", "boolean", "text" or "other" for each column.
        declared: what the source says of itself: the scale, what a cluster is called.
    """

    @property
    def label(self) -> str: ...
    @property
    def declared(self) -> Mapping[str, Any]: ...
    @property
    def kinds(self) -> Mapping[str, str]: ...
    def load(self, names: Sequence[str]) -> dict[str, NDArray[Any]]:
        """Return columns: numbers as they are, NaN for null; booleans and text as objects where any is null."""

    def as_text(self, names: Sequence[str]) -> bool:
        """Read these columns as text from now on; False where the source itself says what they are."""


def open_table(paths: Sequence[Path], kind: str) -> DuckTable:
    """Open files of one kind ("csv", "parquet" or "jsonl") as one table, in the order given."""
    label = ", ".join(str(path) for path in paths)
    if kind == "csv":
        return _CsvTable(paths, label)
    function = "read_parquet" if kind == "parquet" else "read_json"
    options = "union_by_name=true"
    if kind == "jsonl":
        options += f", format='{_json_layout(paths[0])}', sample_size=-1, map_inference_threshold=-1, maximum_depth=2"
    connection = _connect()
    try:
        relation = connection.sql(f"SELECT * FROM {function}({_path_list(paths)}, {options})")
        table = DuckTable(relation, label, connection)
        if kind == "parquet" and len(paths) == 1:
            table.declared = _declared(connection, paths[0])
    except _duckdb_error() as problem:
        _explain(problem, label, kind)
    return table


class DuckTable:
    """A DuckDB relation as a table."""

    def __init__(
        self,
        relation: duckdb.DuckDBPyRelation,
        label: str,
        connection: duckdb.DuckDBPyConnection | None = None,
    ) -> None:
        self.label = label
        self.declared: Mapping[str, Any] = {}
        self.relation = relation
        self._connection = connection  # a relation does not keep its connection alive
        types = [str(kind) for kind in relation.types]
        self._types = dict(zip(relation.columns, types, strict=True))

    @property
    def kinds(self) -> Mapping[str, str]:
        """The kind of each column."""
        return {name: _kind(type_name) for name, type_name in self._types.items()}

    def load(self, names: Sequence[str]) -> dict[str, NDArray[Any]]:
        """Return columns as arrays."""
        if not names:
            return {}
        parts = [f"{self.expression(name)} AS c{place}" for place, name in enumerate(names)]
        try:
            found = self.relation.project(", ".join(parts)).fetchnumpy()
        except _duckdb_error() as problem:
            self._explain(problem)
        return {name: _plain_array(found[f"c{place}"]) for place, name in enumerate(names)}

    def as_text(self, names: Sequence[str]) -> bool:  # noqa: ARG002
        """The file says itself what its columns are."""
        return False

    def row_count(self) -> int:
        """Return the number of rows."""
        row = self.relation.aggregate("count(*)").fetchall()[0]
        return int(row[0])

    def expression(self, name: str) -> str:
        """Return what to select to get a column as numbers, booleans or text."""
        quoted, type_name = quote(name), self._types[name]
        if type_name == "JSON":
            return f"({quoted} ->> '$')"
        if _kind(type_name) == "text":
            return f"CAST({quoted} AS VARCHAR)"
        return f"CAST({quoted} AS DOUBLE)" if _kind(type_name) == "number" else quoted

    def _explain(self, problem: Exception) -> NoReturn:
        _explain(problem, self.label, "table")


class _CsvTable(DuckTable):
    """CSV files, whose columns are text until every value of one is found to be a number or a boolean."""

    def __init__(self, paths: Sequence[Path], label: str) -> None:
        self._paths = paths
        names, self._delimiter = _header(paths[0])
        for path in paths[1:]:
            if _header(path)[0] != names:
                raise FormatError(
                    f"{path}: its columns are not those of {paths[0]}; they cannot be read as one table"
                )
        columns = ", ".join(f"{_literal(name)}: 'VARCHAR'" for name in names)
        connection = _connect()
        statement = (
            f"SELECT * FROM read_csv({_path_list(paths)}, columns={{{columns}}}, auto_detect=false, header=true, "
            f"delim={_literal(self._delimiter)}, quote='\"', escape='\"', null_padding=false, strict_mode=true, "
            f"max_line_size={_LONGEST_LINE})"
        )
        try:
            super().__init__(connection.sql(statement), label, connection)
            self._types = self._infer(names)
        except _duckdb_error() as problem:
            self._explain(problem)

    def as_text(self, names: Sequence[str]) -> bool:
        """Take columns as the text that they are in the file."""
        for name in names:
            self._types[name] = "VARCHAR"
        return True

    def expression(self, name: str) -> str:
        """Return what to select to get a column as what all of its values are."""
        quoted, type_name = quote(name), self._types[name]
        return quoted if type_name == "VARCHAR" else f"CAST({_trimmed(name)} AS {type_name})"

    def _infer(self, names: Sequence[str]) -> dict[str, str]:
        tests = {
            # A number written with leading zeros is a name.
            "BIGINT": "regexp_full_match({0}, '[+-]?(0|[1-9][0-9]*)') AND TRY_CAST({0} AS BIGINT) IS NOT NULL",
            "DOUBLE": "TRY_CAST({0} AS DOUBLE) IS NOT NULL AND NOT regexp_full_match({0}, '[+-]?0[0-9]+')",
            "BOOLEAN": "lower({0}) IN ('true', 'false')",
        }
        parts = []
        for name in names:
            value = _trimmed(name)
            parts += [
                f"coalesce(bool_and({test.format(value)}) FILTER (WHERE {value} IS NOT NULL), false)"
                for test in tests.values()
            ]
        row = self.relation.aggregate(", ".join(parts)).fetchall()[0]
        types = {}
        for place, name in enumerate(names):
            fits = row[place * len(tests) : (place + 1) * len(tests)]
            types[name] = next((kind for kind, fit in zip(tests, fits, strict=True) if fit), "VARCHAR")
        return types

    def _explain(self, problem: Exception) -> NoReturn:
        for path in self._paths:
            _find_ragged(path, self._delimiter)
        _explain(problem, self.label, "csv")


def _trimmed(name: str) -> str:
    return f"nullif(trim({quote(name)}), '')"


def quote(name: str) -> str:
    """Return a column's name as an SQL identifier, whatever it holds.

    >>> print(quote('a"; DROP TABLE x; --'))
    "a""; DROP TABLE x; --"
    """
    return '"' + name.replace('"', '""') + '"'


def check_columns(table: Table, names: Iterable[str]) -> None:
    """Raise unless the table has all columns named; the error suggests the nearest."""
    for name in names:
        if name not in table.kinds:
            hint = _validate.suggestion(name, table.kinds)
            listed = ", ".join(list(table.kinds)[:30]) + (" ..." if len(table.kinds) > 30 else "")
            raise ArgumentError(f"{table.label}: has no column {name!r}{hint}; columns: {listed}")
        if table.kinds[name] == "other":
            raise DataError(
                f"{table.label}: the column {name!r} is nested or binary; a plain column is needed"
            )


def _declared(connection: duckdb.DuckDBPyConnection, path: Path) -> Mapping[str, Any]:
    """Return what a Parquet file that was written here says of its scale and clusters."""
    query = f"SELECT value FROM parquet_kv_metadata({_path_list([path])}) WHERE key = {_literal(PARQUET_KEY)}"
    rows = connection.sql(query).fetchall()
    try:
        declared = json.loads(bytes(rows[0][0])) if rows else {}
    except ValueError:
        return {}
    scale, noun = declared.get("scale"), declared.get("cluster_noun")
    return {
        "scale": None if scale is None else _validate.scale(scale),
        "cluster_noun": noun if isinstance(noun, str) else None,
    }


def _kind(type_name: str) -> str:
    if type_name == "BOOLEAN":
        return "boolean"
    if _WHOLE.match(type_name):
        return "whole"
    if _NUMBER.match(type_name):
        return "number"
    return "other" if _NESTED.search(type_name) else "text"


def _plain_array(found: Any) -> NDArray[Any]:
    """Return a column without mask: NaN for a null number, None for any other null."""
    if isinstance(found, np.ma.MaskedArray):
        mask = np.ma.getmaskarray(found)
        if not mask.any():
            return found.data
        if found.dtype.kind in "iuf":
            values = found.data.astype(np.float64)
            values[mask] = np.nan
            return values
        objects = found.data.astype(object)
        objects[mask] = None
        return objects
    return np.asarray(found)


def _connect() -> duckdb.DuckDBPyConnection:
    import duckdb  # noqa: PLC0415

    connection = duckdb.connect(
        config={
            "autoinstall_known_extensions": "false",
            "autoload_known_extensions": "false",
            "memory_limit": _MEMORY_LIMIT,
            "temp_directory": tempfile.gettempdir(),
        }
    )
    # It would draw on stdout, which belongs to the caller.
    connection.execute("SET enable_progress_bar = false")
    return connection


def _duckdb_error() -> type[Exception]:
    import duckdb  # noqa: PLC0415

    return duckdb.Error


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _path_list(paths: Sequence[Path]) -> str:
    # DuckDB takes every path for a pattern; what was a pattern was expanded before.
    escaped = [re.sub(r"([*?\[])", r"[\1]", str(path)) for path in paths]
    return "[" + ", ".join(_literal(path) for path in escaped) + "]"


def _json_layout(path: Path) -> str:
    with _opened(path) as file:
        return "array" if file.read(1 << 12).lstrip()[:1] == b"[" else "newline_delimited"


def _opened(path: Path) -> IO[bytes]:
    with path.open("rb") as file:
        compressed = file.read(2) == b"\x1f\x8b"
    return cast("IO[bytes]", gzip.open(path, "rb")) if compressed else path.open("rb")


def _header(path: Path) -> tuple[list[str], str]:
    with _opened(path) as file, io.TextIOWrapper(file, encoding="utf-8-sig", newline="") as text:
        try:
            beginning = text.read(_HEADER)
            headers = {
                mark: next(csv.reader(io.StringIO(beginning), delimiter=mark), []) for mark in _DELIMITERS
            }
            delimiter = max(headers, key=lambda mark: len(headers[mark]))
            names = headers[delimiter]
        except UnicodeDecodeError:
            raise FormatError(f"{path}: not UTF-8 text; save the table as UTF-8") from None
        except csv.Error:
            raise FormatError(f"{path}: the first line is no header of a CSV file") from None
    if not any(name.strip() for name in names):
        raise FormatError(f"{path}: the first line must name the columns, and it is empty")
    # A row index is often written without a name.
    names = [name.strip() or f"column{place}" for place, name in enumerate(names)]
    twice = [name for place, name in enumerate(names) if name in names[:place]]
    if twice:
        raise FormatError(f"{path}: the column {twice[0]!r} stands twice in the header")
    return names, delimiter


def _find_ragged(path: Path, delimiter: str) -> None:
    """Raise with the line of the first row that has more or fewer fields than the header."""
    with _opened(path) as file, io.TextIOWrapper(file, encoding="utf-8-sig", newline="") as text:
        rows = csv.reader(text, delimiter=delimiter, strict=True)
        limit = csv.field_size_limit(_LONGEST_LINE)
        try:
            width = len(next(rows))
            for row in rows:
                if row and len(row) != width:
                    raise FormatError(
                        f"{path}: line {rows.line_num} has {len(row)} fields where the header has {width}; mend the "
                        "row, or quote fields that hold the delimiter"
                    )
        except UnicodeDecodeError:
            raise FormatError(f"{path}: not UTF-8 text; save the table as UTF-8") from None
        except csv.Error:
            raise FormatError(
                f"{path}: line {rows.line_num} is no CSV row (a quote is not closed or stands within a field, or the "
                f"line is longer than {_LONGEST_LINE:,} bytes)"
            ) from None
        finally:
            csv.field_size_limit(limit)


def _explain(problem: Exception, label: str, kind: str) -> NoReturn:
    """Say what is wrong with a file without the words of DuckDB, which may quote the data."""
    message = str(problem)
    line = re.search(r"(?:line|record/value)[: ]+(\d+)", message, re.IGNORECASE)
    place = f" at line {line.group(1)}" if line else ""
    if kind == "parquet":
        raise FormatError(f"{label}: the Parquet file is damaged or cut off; copy or write it anew") from None
    if kind == "jsonl":
        raise FormatError(f"{label}: not JSON with one object a line{place}") from None
    raise FormatError(
        f"{label}: cannot be read as {kind.upper()}{place} ({type(problem).__name__})"
    ) from None
