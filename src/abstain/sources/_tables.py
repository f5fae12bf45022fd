"""Tables: CSV, Parquet and JSONL files, and data frames, column by column, only those that are asked for.

A `SourceTable` says which columns there are and of what kind, loads some of them as arrays, and gives single ones as
numbers, flags, labels or lists, each complete or an error that names the file, the column and the row. Files go
through DuckDB, all of them through `open_files`; data frames (pandas, polars, PyArrow and whatever else narwhals
knows) through `open_frame`, and none of their libraries is a dependency. Names from a file are only ever quoted
identifiers or values, never a part of a statement. Errors of DuckDB quote the data, so they are never passed on:
what is wrong is found again and said in our own words. What a column means for items is known to `_roles` and
`_columns`.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
import zlib
from abc import ABC, abstractmethod
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Any, cast

import numpy as np

from abstain import _files, _sql, _validate, labels
from abstain._export import PARQUET_KEY
from abstain.errors import ArgumentError, DataError, FormatError
from abstain.sources import _values
from abstain.sources._values import Problems

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    import duckdb
    from numpy.typing import NDArray

__all__ = ["DuckTable", "SourceTable", "check_columns", "open_files", "open_frame"]

_READERS = {"csv": "read_csv", "parquet": "read_parquet", "jsonl": "read_json"}
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
        known = values[~labels.missing(values)].tolist()
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
        return _files.digest(self.paths) if self.paths else None

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


def open_files(paths: Sequence[Path], kind: str) -> DuckTable:
    """Open files of one kind ("csv", "parquet" or "jsonl") as one table, in the order given."""
    label = ", ".join(str(path) for path in paths)
    names, delimiter = _shared_header(paths) if kind == "csv" else ([], "")
    options = "union_by_name=true"
    if kind == "csv":
        columns = ", ".join(f"{_sql.literal(name)}: 'VARCHAR'" for name in names)
        options = (
            f"columns={{{columns}}}, auto_detect=false, header=true, delim={_sql.literal(delimiter)}, quote='\"', "
            f"escape='\"', null_padding=false, strict_mode=true, max_line_size={_LONGEST_LINE}"
        )
    elif kind == "jsonl":
        options += f", format='{_json_layout(paths[0])}', sample_size=-1, map_inference_threshold=-1, maximum_depth=2"
    connection = _sql.connect()
    with _explained(label, kind, paths, delimiter):
        relation = connection.sql(f"SELECT * FROM {_READERS[kind]}({_path_list(paths)}, {options})")
        table = (_CsvTable if kind == "csv" else DuckTable)(relation, label, connection, paths, delimiter)
        if kind == "parquet" and len(paths) == 1:
            table.declared = _declared(connection, paths[0])
        return table


@contextmanager
def _explained(label: str, kind: str, paths: Sequence[Path] = (), delimiter: str = "") -> Iterator[None]:
    """Say what is wrong with a file without the words of DuckDB, which may quote the data."""
    import duckdb  # noqa: PLC0415

    try:
        yield
    except duckdb.Error as problem:
        if delimiter:
            for path in paths:
                _find_ragged(path, delimiter)
        line = re.search(r"(?:line|record/value)[: ]+(\d+)", str(problem), re.IGNORECASE)
        place = f" at line {line.group(1)}" if line else ""
        said = {
            "parquet": "the Parquet file is damaged or cut off; copy or write it anew",
            "jsonl": f"not JSON with one object per line{place}",
        }
        otherwise = f"cannot be read as {kind.upper()}{place} ({type(problem).__name__})"
        raise FormatError(f"{label}: {said.get(kind, otherwise)}") from None


class DuckTable(SourceTable):
    """A DuckDB relation as a table."""

    def __init__(
        self,
        relation: duckdb.DuckDBPyRelation,
        label: str,
        connection: duckdb.DuckDBPyConnection | None = None,
        paths: Sequence[Path] = (),
        delimiter: str = "",
    ) -> None:
        self.label = label
        self.paths = tuple(paths)
        self.declared: Mapping[str, Any] = {}
        self.relation = relation
        self._connection = connection  # a relation does not keep its connection alive
        self._delimiter = delimiter  # of CSV files alone
        self._types = self._found_types()

    def explained(self) -> AbstractContextManager[None]:
        """Say in our own words what goes wrong while the relation is read."""
        return _explained(self.label, "csv" if self._delimiter else "table", self.paths, self._delimiter)

    @property
    def kinds(self) -> Mapping[str, str]:
        """The kind of each column."""
        return {name: _kind(type_name) for name, type_name in self._types.items()}

    def load(self, names: Sequence[str]) -> dict[str, NDArray[Any]]:
        """Return columns as arrays."""
        if not names:
            return {}
        parts = [f"{self.expression(name)} AS c{place}" for place, name in enumerate(names)]
        with self.explained():
            found = self.relation.project(", ".join(parts)).fetchnumpy()
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

    def _found_types(self) -> dict[str, str]:
        types = [str(kind) for kind in self.relation.types]
        return dict(zip(self.relation.columns, types, strict=True))

    def _counted(self, what: str) -> tuple[Any, ...]:
        with self.explained():
            return tuple(self.relation.aggregate(what).fetchall()[0])

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


class _CsvTable(DuckTable):
    """CSV files, whose columns are text until every value of one is found to be a number or a boolean."""

    def as_text(self, names: Sequence[str]) -> bool:
        """Take columns as the text that they are in the file."""
        for name in names:
            self._types[name] = "VARCHAR"
        return True

    def expression(self, name: str) -> str:
        """Return what to select to get a column as what all of its values are."""
        quoted, type_name = _sql.identifier(name), self._types[name]
        return quoted if type_name == "VARCHAR" else f"CAST({_trimmed(name)} AS {type_name})"

    def _found_types(self) -> dict[str, str]:
        names = self.relation.columns
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
        row = self._counted(", ".join(parts))
        types = {}
        for place, name in enumerate(names):
            fits = row[place * len(tests) : (place + 1) * len(tests)]
            types[name] = next((kind for kind, fit in zip(tests, fits, strict=True) if fit), "VARCHAR")
        return types


def _trimmed(name: str) -> str:
    return f"nullif(trim({_sql.identifier(name)}), '')"


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


def _shared_header(paths: Sequence[Path]) -> tuple[list[str], str]:
    names, delimiter = _header(paths[0])
    for path in paths[1:]:
        if _header(path)[0] != names:
            raise FormatError(
                f"{path}: its columns are not those of {paths[0]}; they cannot be read as one table"
            )
    return names, delimiter


@contextmanager
def _text(path: Path) -> Iterator[IO[str]]:
    with _opened(path) as file, io.TextIOWrapper(file, encoding="utf-8-sig", newline="") as text:
        try:
            yield text
        except UnicodeDecodeError:
            raise FormatError(f"{path}: not UTF-8 text; save the table as UTF-8") from None
        except (EOFError, OSError, zlib.error):
            raise FormatError(f"{path}: cannot be read; the file may be damaged or cut off") from None


def _header(path: Path) -> tuple[list[str], str]:
    with _text(path) as text:
        beginning = text.read(_HEADER)
    try:
        headers = {mark: next(csv.reader(io.StringIO(beginning), delimiter=mark), []) for mark in _DELIMITERS}
    except csv.Error:
        raise FormatError(f"{path}: the first line is no header of a CSV file") from None
    delimiter = max(headers, key=lambda mark: len(headers[mark]))
    names = headers[delimiter]
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
    with _text(path) as text:
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
        except csv.Error:
            raise FormatError(
                f"{path}: line {rows.line_num} is no CSV row (a quote is not closed or stands within a field, or the "
                f"line is longer than {_LONGEST_LINE:,} bytes)"
            ) from None
        finally:
            csv.field_size_limit(limit)


def open_frame(source: object) -> SourceTable:
    """Return a data frame, eager or lazy, as a table."""
    # A relation is known by its module, so that nothing is imported for the sake of asking.
    if type(source).__module__.partition(".")[0] in ("duckdb", "_duckdb") and hasattr(source, "fetchnumpy"):
        return DuckTable(source, "the DuckDB relation")  # type: ignore[arg-type]
    import narwhals as nw  # noqa: PLC0415
    from narwhals.exceptions import DuplicateError  # noqa: PLC0415

    try:
        return FrameTable(nw.from_native(source))
    except TypeError:
        raise ArgumentError(
            f"a source of type {type(source).__name__} cannot be read; pass a path, several paths, or a pandas, "
            "polars, PyArrow or DuckDB table"
        ) from None
    except DuplicateError:
        raise DataError("the frame has two columns of one name; rename one of them") from None


class FrameTable(SourceTable):
    """A narwhals frame as a table."""

    def __init__(self, frame: Any) -> None:
        self.label = f"the {frame.implementation.name.lower()} frame"
        self.declared: Mapping[str, Any] = {}
        self._frame = frame
        schema = frame.collect_schema()
        # Not every name is text: pandas numbers columns that have none.
        self._names = {str(name): name for name in schema}
        self._kinds = {str(name): _frame_kind(dtype) for name, dtype in schema.items()}

    @property
    def kinds(self) -> Mapping[str, str]:
        """The kind of each column."""
        return self._kinds

    def load(self, names: Sequence[str]) -> dict[str, NDArray[Any]]:
        """Return columns as arrays."""
        import narwhals as nw  # noqa: PLC0415

        if not names:
            return {}
        chosen = self._frame.select(*(nw.col(self._names[name]) for name in names))
        if isinstance(chosen, nw.LazyFrame):
            chosen = chosen.collect()
        return {name: _frame_array(chosen.get_column(self._names[name]), self._kinds[name]) for name in names}

    @property
    def rows(self) -> int:
        """How many rows there are."""
        name = next(iter(self._names), None)
        return 0 if name is None else len(self.load([name])[name])


def _frame_kind(dtype: Any) -> str:
    import narwhals as nw  # noqa: PLC0415

    if dtype == nw.Boolean:
        return "boolean"
    if dtype.is_integer():
        return "whole"
    if dtype.is_numeric():
        return "number"
    if dtype in (nw.List, nw.Array):
        return "list"
    if dtype.is_nested() or dtype == nw.Binary:
        return "other"
    return "text"


def _frame_array(series: Any, kind: str) -> NDArray[Any]:
    import narwhals as nw  # noqa: PLC0415

    nulls = series.is_null().to_numpy()
    if nulls.all():  # a column without any value is of no type
        numeric = kind in ("number", "whole")
        return np.full(len(nulls), np.nan) if numeric else np.full(len(nulls), None, dtype=object)
    if kind == "number" or (kind == "whole" and nulls.any()):
        return np.asarray(series.cast(nw.Float64).to_numpy(), dtype=np.float64)
    if kind == "whole" or (kind == "boolean" and not nulls.any()):
        return np.asarray(series.to_numpy())
    as_it_is = kind == "list" or series.dtype in (nw.Object, nw.String, nw.Boolean)
    values = (series if as_it_is else series.cast(nw.String)).to_list()
    # A float NaN in a column of objects is a pandas way to say null.
    return _validate.objects([None if null else value for value, null in zip(values, nulls, strict=True)])
