"""Tables: CSV, Parquet and JSONL files, and data frames, column by column, only those that are asked for.

A `SourceTable` says which columns there are and of what kind, loads some of them as arrays, and gives single ones as
numbers, flags, labels or lists, each complete or an error that names the file, the column and the row. Files go
through DuckDB. Names from a file are only ever quoted identifiers or values, never a part of a statement.
Errors of DuckDB quote the data, so they are never passed on: what is wrong is found again and said in our own
words. What a column means for items is known to `_roles` and `_columns`.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
from abc import ABC, abstractmethod
from typing import IO, TYPE_CHECKING, Any, NoReturn, cast

import numpy as np

from abstain import _sql, _validate
from abstain._export import PARQUET_KEY
from abstain.errors import ArgumentError, DataError, FormatError
from abstain.sources import _values
from abstain.sources._problems import Problems
from abstain.sources._recognise import digest

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    import duckdb
    from numpy.typing import NDArray

__all__ = ["DuckTable", "SourceTable", "check_columns", "open_files"]

TABLE_FORMATS = ("csv", "parquet", "jsonl")
_DELIMITERS = ",;\t|"
_HEADER = 1 << 16
_LONGEST_LINE = 1 << 24
_WHOLE = re.compile(r"^U?(TINY|SMALL|BIG)?INT(EGER)?$")
_NUMBER = re.compile(r"^(FLOAT|DOUBLE|DECIMAL.*|U?HUGEINT|BIGNUM)$")
_LIST = re.compile(r"\[\d*\]$")
_NESTED = re.compile(r"(^(STRUCT|MAP|UNION|BLOB|BIT|LIST|ARRAY|VARIANT|GEOMETRY))")


class SourceTable(ABC):
    """A source of columns; `abstain.sources.open_table` makes one.

    Attributes:
        label: what it is called in messages.
        paths: the files it is read from, none for a frame.
        declared: what the source says of itself: the scale, what a cluster is called, the classes of sets.
    """

    label: str
    paths: tuple[Path, ...] = ()
    declared: Mapping[str, Any]

    @property
    @abstractmethod
    def kinds(self) -> Mapping[str, str]:
        """The kind of each column: "whole", "number", "boolean", "text", "list" or "other"."""

    @property
    @abstractmethod
    def rows(self) -> int:
        """How many rows there are."""

    @abstractmethod
    def load(self, names: Sequence[str]) -> dict[str, NDArray[Any]]:
        """Return columns: numbers as they are, NaN for null; booleans and text as objects where any is null.

        Lists are objects, each a list or a JSON array.
        """

    def as_text(self, names: Sequence[str]) -> bool:  # noqa: ARG002
        """Read these columns as text from now on; False where the source itself says what they are."""
        return False

    def repeats(self, name: str) -> bool:
        """True where a column has several values, and some of them more than once."""
        values = self.load([name])[name]
        known = values[~_values.missing(values)].tolist()
        return 1 < len(set(known)) < len(known)

    def numbers(self, name: str) -> NDArray[np.float64]:
        """Return a column of numbers; infinities are numbers, nothing may be missing."""
        return _values.as_numbers(self._plain(name, "numbers"), name, self._problems)

    def flags(self, name: str) -> NDArray[np.bool_]:
        """Return a column of booleans: true and false, or 1 and 0."""
        return _values.as_flags(self._plain(name, "true or false"), name, self._problems)

    def labels(self, name: str) -> NDArray[Any]:
        """Return a column of labels: whole numbers where all of them are, else text."""
        return _values.as_labels(self._plain(name, "single labels"), name, self._problems)

    def lists(self, name: str) -> list[list[str]]:
        """Return a column of lists of labels: lists as such, JSON arrays, or text divided by ``|``."""
        check_columns(self, [name], lists=True)
        # In a table of text, an empty field is an empty list.
        values = self._loaded(name)
        needed = np.full(len(values), self.kinds[name] == "list")
        return _values.as_lists(values, name, self._problems, needed=needed)

    def sha256(self) -> str | None:
        """Return the SHA-256 of the files in hexadecimal, one after the other; None for a frame."""
        return digest(self.paths) if self.paths else None

    @property
    def _problems(self) -> Problems:
        return Problems(collect=False, label=self.label)

    def _plain(self, name: str, what: str) -> NDArray[Any]:
        if self.kinds.get(name) in ("list", "other"):
            raise DataError(f"{self.label}: the column {name!r} must hold {what}, and it is nested or binary")
        check_columns(self, [name])
        return self._loaded(name)

    def _loaded(self, name: str) -> NDArray[Any]:
        values = self.load([name])[name]
        if not len(values):
            raise DataError(f"{self.label}: the table has no rows")
        return values


def open_files(paths: Sequence[Path], kind: str) -> DuckTable:
    """Open files of one kind ("csv", "parquet" or "jsonl") as one table, in the order given."""
    if kind == "csv":
        return _CsvTable(paths)
    function = "read_parquet" if kind == "parquet" else "read_json"
    options = "union_by_name=true"
    if kind == "jsonl":
        options += f", format='{_json_layout(paths[0])}', sample_size=-1, map_inference_threshold=-1, maximum_depth=2"
    connection = _sql.connect()
    try:
        relation = connection.sql(f"SELECT * FROM {function}({_path_list(paths)}, {options})")
        table = DuckTable(relation, _label(paths), connection)
        if kind == "parquet" and len(paths) == 1:
            table.declared = _declared(connection, paths[0])
    except _duckdb_error() as problem:
        _explain(problem, _label(paths), kind)
    table.paths = tuple(paths)
    return table


def _label(paths: Sequence[Path]) -> str:
    return ", ".join(str(path) for path in paths)


class DuckTable(SourceTable):
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

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return int(self._counted("count(*)")[0])

    def repeats(self, name: str) -> bool:
        """True where a column has several values, and some of them more than once."""
        column = self.expression(name)
        known, distinct = self._counted(f"count({column}), count(DISTINCT {column})")
        return bool(1 < distinct < known)

    def _counted(self, what: str) -> tuple[Any, ...]:
        try:
            return tuple(self.relation.aggregate(what).fetchall()[0])
        except _duckdb_error() as problem:
            self._explain(problem)

    def expression(self, name: str) -> str:
        """Return what to select to get a column as numbers, booleans or text."""
        quoted, type_name = _sql.identifier(name), self._types[name]
        if type_name == "JSON":
            return f"({quoted} ->> '$')"
        if _kind(type_name) == "list":
            return f"CAST(to_json({quoted}) AS VARCHAR)"
        if _kind(type_name) == "text":
            return f"CAST({quoted} AS VARCHAR)"
        return f"CAST({quoted} AS DOUBLE)" if _kind(type_name) == "number" else quoted

    def _explain(self, problem: Exception) -> NoReturn:
        _explain(problem, self.label, "table")


class _CsvTable(DuckTable):
    """CSV files, whose columns are text until every value of one is found to be a number or a boolean."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self.paths, self.label = tuple(paths), _label(paths)
        names, self._delimiter = _header(paths[0])
        for path in paths[1:]:
            if _header(path)[0] != names:
                raise FormatError(
                    f"{path}: its columns are not those of {paths[0]}; they cannot be read as one table"
                )
        columns = ", ".join(f"{_sql.literal(name)}: 'VARCHAR'" for name in names)
        connection = _sql.connect()
        statement = (
            f"SELECT * FROM read_csv({_path_list(paths)}, columns={{{columns}}}, auto_detect=false, header=true, "
            f"delim={_sql.literal(self._delimiter)}, quote='\"', escape='\"', null_padding=false, strict_mode=true, "
            f"max_line_size={_LONGEST_LINE})"
        )
        try:
            super().__init__(connection.sql(statement), self.label, connection)
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
        quoted, type_name = _sql.identifier(name), self._types[name]
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
        for path in self.paths:
            _find_ragged(path, self._delimiter)
        _explain(problem, self.label, "csv")


def _trimmed(name: str) -> str:
    return f"nullif(trim({_sql.identifier(name)}), '')"


def check_columns(table: SourceTable, names: Iterable[str], *, lists: bool = False) -> None:
    """Raise unless the table has all columns named, plain ones or with `lists` also lists; suggest the nearest."""
    for name in names:
        if name not in table.kinds:
            hint = _validate.suggestion(name, table.kinds)
            listed = ", ".join(list(table.kinds)[:30]) + (" ..." if len(table.kinds) > 30 else "")
            raise ArgumentError(f"{table.label}: has no column {name!r}{hint}; columns: {listed}")
        if table.kinds[name] == "other" or (table.kinds[name] == "list" and not lists):
            raise DataError(
                f"{table.label}: the column {name!r} is nested or binary; a plain column is needed"
            )


def _declared(connection: duckdb.DuckDBPyConnection, path: Path) -> Mapping[str, Any]:
    """Return what a Parquet file that was written here says of its scale and clusters."""
    query = (
        f"SELECT value FROM parquet_kv_metadata({_path_list([path])}) WHERE key = {_sql.literal(PARQUET_KEY)}"
    )
    rows = connection.sql(query).fetchall()
    try:
        declared = json.loads(bytes(rows[0][0])) if rows else {}
    except ValueError:
        return {}
    scale, noun, classes = (declared.get(key) for key in ("scale", "cluster_noun", "classes"))
    return {
        "scale": None if scale is None else _validate.scale(scale),
        "cluster_noun": noun if isinstance(noun, str) else None,
        "classes": tuple(str(name) for name in classes) if isinstance(classes, list) and classes else None,
    }


def _kind(type_name: str) -> str:
    if type_name == "BOOLEAN":
        return "boolean"
    if _WHOLE.match(type_name):
        return "whole"
    if _NUMBER.match(type_name):
        return "number"
    if _LIST.search(type_name):
        return "list"
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


def _duckdb_error() -> type[Exception]:
    import duckdb  # noqa: PLC0415

    return duckdb.Error


def _path_list(paths: Sequence[Path]) -> str:
    # DuckDB takes every path for a pattern; what was a pattern was expanded before.
    escaped = [re.sub(r"([*?\[])", r"[\1]", str(path)) for path in paths]
    return "[" + ", ".join(_sql.literal(path) for path in escaped) + "]"


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
        raise FormatError(f"{label}: not JSON with one object per line{place}") from None
    raise FormatError(
        f"{label}: cannot be read as {kind.upper()}{place} ({type(problem).__name__})"
    ) from None
