"""Tables: CSV, Parquet and JSONL files, and data frames, column by column, only those that are asked for.

A `SourceTable` says which columns there are and of what kind, loads some of them as arrays, and gives single ones as
numbers, flags, labels or lists, each complete or an error that names the file, the column and the row. Files go
through DuckDB, all of them through `open_files`, each as a snapshot that is opened once; CSV and JSON are read as the
text that they are, so that no type is guessed on the way. Data frames (pandas, polars, PyArrow and whatever else
narwhals knows) go through `open_frame`, and none of their libraries is a dependency. Names from a file are only ever
quoted identifiers or values, never a part of a statement. Errors of DuckDB quote the data, so they are never passed
on: what is wrong is found again and said in our own words. What a text spells is known to `_values`, what a column
means for items to `_roles` and `_columns`.
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
from abstain.errors import ArgumentError, DataError, FormatError, lacks_memory
from abstain.sources import _values
from abstain.sources._roles import is_usual
from abstain.sources._snapshot import Snapshot
from abstain.sources._values import Problems

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    import duckdb
    from numpy.typing import NDArray

__all__ = [
    "DuckTable",
    "QueriedTable",
    "SourceTable",
    "open_files",
    "open_frame",
    "plain_array",
]

_DELIMITERS = ",;\t|"
_LONGEST_LINE = 1 << 24
_MOST_COLUMNS = 1 << 14
_MOST_CELLS = 1 << 25
# Of keys that most objects lack, so many cells may be loaded, and so many times those that there are.
_MOST_SPARSE_CELLS, _MOST_SPREAD = 1 << 19, 16
_SAMPLE = 10_000
# In so many rows the values of a first line that is none of names are looked for.
_BELOW = 100
# What people write where a number is missing; no proof that the line is one of names.
_GAPS = ("na", "n/a", "nan", "none", "null", "missing", "unknown", "inf", "infinity")
# About so many bytes of lines are looked at together.
_PIECE = 1 << 20
_WHOLE = re.compile(r"^U?(TINY|SMALL|BIG)?INT(EGER)?$")
# Numbers that numpy does not hold as they are; they come as text, which is exact.
_EXACT_NUMBER = re.compile(r"^(DECIMAL.*|U?HUGEINT|BIGNUM|VARINT)$")
_LIST = re.compile(r"\[\d*\]$")
_NESTED = re.compile(r"(^(STRUCT|MAP|UNION|BLOB|BIT|LIST|ARRAY|VARIANT|GEOMETRY))")
# What the types of the values of a key in JSON make of the column, the first that holds all of them.
_JSON_KINDS = (
    ("whole", {"UBIGINT", "BIGINT"}),
    ("number", {"UBIGINT", "BIGINT", "DOUBLE"}),
    ("boolean", {"BOOLEAN"}),
    ("list", {"ARRAY"}),
    ("text", {"UBIGINT", "BIGINT", "DOUBLE", "BOOLEAN", "VARCHAR"}),
)


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
        """The kind of each column: "whole", "number", "boolean", "text", "list", "other", or "unknown" until loaded."""

    @property
    @abstractmethod
    def rows(self) -> int:
        """How many rows there are."""

    @abstractmethod
    def load(self, names: Sequence[str]) -> dict[str, NDArray[Any]]:
        """Return columns as the source has them: numbers, NaN for null, or objects, None for null.

        Lists are objects, each a list or a JSON array. `_values` knows what text spells.
        """

    @property
    def listed_columns(self) -> str:
        """The columns in words, for a message."""
        return _validate.listed_columns(self.kinds)

    def check_columns(self, names: Iterable[str], *, lists: bool = False) -> None:
        """Raise unless there are all columns named, plain ones or with `lists` also lists; suggest the nearest."""
        for name in names:
            if name not in self.kinds:
                hint = _validate.suggestion(name, self.kinds)
                raise ArgumentError(f"{self.label}: has no column {name!r}{hint}; {self.listed_columns}")
            if self.kinds[name] == "other" or (self.kinds[name] == "list" and not lists):
                raise DataError(
                    f"{self.label}: the column {name!r} is nested or binary; a plain column is needed"
                )

    def repeats(self, name: str) -> bool:
        """True where a column has several values, and some of them more than once."""
        values = self.load([name])[name]
        known = values[~labels.missing(values)].tolist()
        return 1 < len(set(known)) < len(known)

    def numbers(self, name: str, *, gaps: bool = False) -> NDArray[np.float64]:
        """Return a column of numbers; infinities are numbers, and NaN where `gaps` allows something to be missing."""
        return _values.as_numbers(self._plain(name, "numbers"), name, self._problems, gaps=gaps)

    def bounds(
        self, low: str, high: str, truth: NDArray[np.float64], crossed: str | None = None
    ) -> NDArray[np.float64]:
        """Return the bounds of intervals, (rows, 2); crossed ones in order where `crossed` says how."""
        pair = self.numbers(low), self.numbers(high)
        return np.column_stack(pair if crossed is None else _values.uncrossed(*pair, truth, crossed))

    def flags(self, name: str) -> NDArray[np.bool_]:
        """Return a column of booleans: true and false, or 1 and 0."""
        return _values.as_flags(self._plain(name, "true or false"), name, self._problems)

    def labels(self, name: str) -> NDArray[Any]:
        """Return a column of labels: whole numbers where all of them are, else text."""
        return _values.as_names(self._plain(name, "single labels"), name, self._problems)

    def texts(self, name: str) -> list[str | None]:
        """Return a column as text, as it is written; None where it says nothing."""
        values = self._plain(name, "text")
        gaps = _values.blank(values)
        return [
            None if gap else _values.text_of(value) for value, gap in zip(values.tolist(), gaps, strict=True)
        ]

    def spells_numbers(self, name: str) -> bool:
        """True where a column holds numbers that are not whole; of a file that has no types, a sample is looked at."""
        return self.kinds[name] == "number"

    def loadable(self, names: Sequence[str]) -> Sequence[str]:
        """Return the names of all columns that nobody asked for by name, unless they are too many to load."""
        if len(names) > 100 and len(names) * self.rows > self._most_cells:
            raise ArgumentError(
                f"{self.label}: {self.rows:,} rows of {len(names):,} columns are too many to load; name those that are "
                "needed (signals=, metadata=)"
            )
        return names

    def lists(self, name: str) -> list[list[str]]:
        """Return a column of lists of labels: lists as such, JSON arrays, or text divided by ``|``."""
        self.check_columns([name], lists=True)
        # In a table of text, an empty field is an empty list.
        values = self._loaded(name)
        needed = np.full(len(values), self.kinds[name] == "list")
        return _values.as_lists(values, name, self._problems, needed=needed)

    @abstractmethod
    def marked(self, name: str, marks: NDArray[np.bool_], words: tuple[str, str], part: Path | None) -> Any:
        """Return the table with one more column of two words, second where marked; of files, write it to `part`."""

    def sha256(self) -> str | None:
        """Return the SHA-256 of the files in hexadecimal, one after the other; None for a frame."""
        return None

    @property
    def _most_cells(self) -> int:
        """How many cells may be loaded when nobody says which columns are needed."""
        return _MOST_CELLS

    @property
    def _problems(self) -> Problems:
        return Problems(collect=False, label=self.label)

    def _plain(self, name: str, what: str) -> NDArray[Any]:
        if self.kinds.get(name) in ("list", "other"):
            raise DataError(f"{self.label}: the column {name!r} must hold {what}, and it is nested or binary")
        self.check_columns([name])
        return self._loaded(name)

    def _loaded(self, name: str) -> NDArray[Any]:
        values = self.load([name])[name]
        if not len(values):
            raise DataError(f"{self.label}: the table has no rows")
        return values


class QueriedTable(SourceTable):
    """A table that is asked in SQL."""

    @abstractmethod
    def expression(self, name: str) -> str:
        """Return what to select to get a column as numbers, booleans or text."""

    @abstractmethod
    def is_text(self, name: str) -> bool:
        """True where that is text, whatever the text may spell."""


def open_files(
    files: Sequence[_files.SourceFile], kind: str, *, connection: duckdb.DuckDBPyConnection | None = None
) -> DuckTable:
    """Open files of one kind ("csv", "parquet" or "jsonl") as one table, in the order given.

    Args:
        files: the files.
        kind: what they are.
        connection: that of another table that this one is compared with; one of its own when left out.
    """
    tables = {"csv": _CsvTable, "parquet": _ParquetTable, "jsonl": _JsonTable}
    return tables[kind](Snapshot(files), connection or _sql.connect())


class DuckTable(QueriedTable):
    """A table that DuckDB reads: a relation of the user's, or with a snapshot some files."""

    word = "table"
    # True where a file knows no types.
    text_alone = False

    def __init__(self, relation: Any, label: str) -> None:
        self.label = label
        self.declared: Mapping[str, Any] = {}
        self._snapshot: Snapshot | None = None
        self._connection: duckdb.DuckDBPyConnection | None = None
        self.relation = relation
        self._describe(relation.columns, relation.types)

    def _open(self, snapshot: Snapshot, connection: duckdb.DuckDBPyConnection) -> None:
        """What every table of files begins with; a relation does not keep its connection alive."""
        self.label = snapshot.label
        self.paths = snapshot.paths
        self.declared = {}
        self._snapshot = snapshot
        self._connection = connection

    def _describe(
        self, names: Sequence[str], types: Sequence[Any], inner: Sequence[str] | None = None
    ) -> None:
        """Note the kind of every column, and what to select to get it."""
        self._kinds: dict[str, str] = {}
        self._expressions: dict[str, str] = {}
        for name, type_name, own in zip(names, map(str, types), inner or names, strict=True):
            self._kinds[name] = _kind(type_name)
            self._expressions[name] = _expression(_sql.identifier(own), type_name)

    @property
    def connection(self) -> duckdb.DuckDBPyConnection | None:
        """Where statements about files are run."""
        return self._connection

    def query(self, statement: str) -> Any:
        """Return what DuckDB makes of a statement of ours, not yet run."""
        assert self._connection is not None
        return self._connection.sql(statement)

    def fetch(self, work: Callable[[], Any]) -> Any:
        """Run a query of this table; say in our own words what goes wrong."""
        import duckdb  # noqa: PLC0415

        try:
            found = _sql.run(work, self._connection)
        except duckdb.InterruptException:
            raise KeyboardInterrupt from None
        except Exception as problem:
            if isinstance(problem, duckdb.OutOfMemoryException) or lacks_memory(problem):
                raise DataError(
                    f"{self.label}: reading it takes more memory than there is; name fewer columns, or split the file"
                ) from None
            if not isinstance(problem, duckdb.Error):
                raise
            self._check_snapshot()
            raise self._explained(problem) from None
        self._check_snapshot()
        return found

    def _check_snapshot(self) -> None:
        if self._snapshot is not None:
            self._snapshot.check()

    def _explained(self, problem: Exception) -> FormatError:
        """What is wrong with the files, without the words of DuckDB, which may quote the data."""
        return FormatError(f"{self.label}: cannot be read as {self.word} ({type(problem).__name__})")

    @property
    def kinds(self) -> Mapping[str, str]:
        """The kind of each column."""
        return self._kinds

    def load(self, names: Sequence[str]) -> dict[str, NDArray[Any]]:
        """Return columns as arrays."""
        if not names:
            return {}
        parts = [f"{self.expression(name)} AS c{place}" for place, name in enumerate(names)]
        found = self.fetch(lambda: self.relation.project(", ".join(parts)).fetchnumpy())
        return {name: plain_array(found[f"c{place}"]) for place, name in enumerate(names)}

    def run(self, statement: str) -> None:
        """Run a statement of ours that gives nothing back."""
        assert self._connection is not None
        connection = self._connection
        self.fetch(lambda: connection.execute(statement))

    def give(self, name: str, columns: Mapping[str, NDArray[Any]]) -> None:
        """Make columns of ours known to statements under a name."""
        assert self._connection is not None
        self._connection.register(name, dict(columns))

    # How a file of this kind is written again, and what is selected of each row and its mark.
    _written = ""

    def _columns_with(self, name: str, mark: str) -> str:
        kept = ", ".join(
            f"source.{_sql.identifier(own)} AS {_sql.identifier(column)}"
            for column, own in zip(self._kinds, self.relation.columns, strict=True)
        )
        return f"{kept}, {mark} AS {_sql.identifier(name)}"

    def marked(self, name: str, marks: NDArray[np.bool_], words: tuple[str, str], part: Path | None) -> Any:
        """Write the rows with one more column, one after the other: no more of them is in memory than is needed."""
        if self._connection is None or part is None:
            raise ArgumentError(f"{self.label}: a column cannot be added to it; pass a file or a data frame")
        self.give("marks", {"mark": marks})
        mark = f"CASE WHEN marks.mark THEN {_sql.literal(words[1])} ELSE {_sql.literal(words[0])} END"
        # Rows come in the order of the files, in which the marks were made.
        chosen = f"SELECT {self._columns_with(name, mark)} FROM source POSITIONAL JOIN marks"
        statement = f"COPY ({chosen}) TO {_sql.literal(str(part))} ({self._written})"
        self.relation.create_view("source")
        self.run(statement)
        return None

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return int(self.counted("count(*)")[0])

    def check_columns(self, names: Iterable[str], *, lists: bool = False) -> None:
        """Raise unless there are all columns named, plain ones or with `lists` also lists; suggest the nearest."""
        for name in names:
            if name not in self.kinds:
                hint = _validate.suggestion(name, self.kinds)
                raise ArgumentError(f"{self.label}: has no column {name!r}{hint}; {self.listed_columns}")
            if self.kinds[name] == "other" or (self.kinds[name] == "list" and not lists):
                raise DataError(
                    f"{self.label}: the column {name!r} is nested or binary; a plain column is needed"
                )

    def repeats(self, name: str) -> bool:
        """True where a column has several values, and some of them more than once."""
        column = self.expression(name)
        known, distinct = self.counted(f"count({column}), count(DISTINCT {column})")
        return bool(1 < distinct < known)

    def counted(self, what: str) -> tuple[Any, ...]:
        """Return aggregates over the rows."""
        return tuple(self.fetch(lambda: self.relation.aggregate(what).fetchall()[0]))

    def sha256(self) -> str | None:
        """Return the SHA-256 of the files in hexadecimal, one after the other; None for a frame."""
        return None if self._snapshot is None else self._snapshot.sha256()

    def expression(self, name: str) -> str:
        """Return what to select to get a column as numbers, booleans or text."""
        return self._expressions[name]

    def is_text(self, name: str) -> bool:
        """True where that is text, whatever the text may spell."""
        return (
            self.text_alone
            or self._expressions[name].startswith("CAST(")
            or self._kinds[name] in ("text", "list")
        )


class _ParquetTable(DuckTable):
    """Parquet files, which know the types of their columns."""

    _written = "FORMAT parquet"

    def __init__(self, snapshot: Snapshot, connection: duckdb.DuckDBPyConnection) -> None:
        self._open(snapshot, connection)
        source = f"read_parquet({_places(snapshot)}, union_by_name=true, hive_partitioning=false)"
        self.relation = self.fetch(lambda: self.query(f"SELECT * FROM {source}"))
        self._describe(self._true_names(), self.relation.types, self.relation.columns)
        if len(self.paths) == 1:
            self.declared = self._note()

    def _true_names(self) -> list[str]:
        """The names of the columns as they are in the file: DuckDB renames those that differ in case alone."""
        files = [self._top_level(file) for file in range(len(self.paths))]
        every = dict.fromkeys(name for names in files for name in names)
        twice = any(len(set(names)) < len(names) for names in files)
        if twice or (len(files) > 1 and len({name.casefold() for name in every}) < len(every)):
            raise FormatError(
                f"{self.label}: has columns of one name, or several files have names that differ in case alone; "
                "rename them"
            )
        return files[0] if len(files) == 1 else list(self.relation.columns)

    def _top_level(self, file: int) -> list[str]:
        assert self._snapshot is not None
        place = _sql.literal(str(self._snapshot.places[file]))
        found = self.fetch(
            lambda: self.query(f"SELECT name, num_children FROM parquet_schema({place})").fetchall()
        )
        names, below = [], 0
        for name, children in found[1:]:
            if not below:
                names.append(str(name))
            below = max(below - 1, 0) + (children or 0)
        return names

    def _note(self) -> Mapping[str, Any]:
        """What a Parquet file that was written here says of its scale and clusters."""
        assert self._snapshot is not None
        statement = (
            f"SELECT value FROM parquet_kv_metadata({_places(self._snapshot)}) "
            f"WHERE key = {_sql.literal(PARQUET_KEY)}"
        )
        rows = self.fetch(lambda: self.query(statement).fetchall())
        try:
            declared = json.loads(bytes(rows[0][0])) if rows else {}
        except (RecursionError, ValueError):
            return {}
        if not isinstance(declared, dict):
            return {}
        scale, noun, classes = (declared.get(key) for key in ("scale", "cluster_noun", "classes"))
        return {
            "scale": _scale(scale),
            "cluster_noun": noun if isinstance(noun, str) else None,
            "classes": tuple(str(name) for name in classes)
            if isinstance(classes, list) and classes
            else None,
        }

    def _explained(self, problem: Exception) -> FormatError:
        return FormatError(
            f"{self.label}: the Parquet file is damaged or cut off ({type(problem).__name__}); copy or write it anew"
        )


class _CsvTable(DuckTable):
    """CSV files: all columns are text, and what that spells is found when they are loaded."""

    word = "CSV"
    text_alone = True

    def __init__(self, snapshot: Snapshot, connection: duckdb.DuckDBPyConnection) -> None:
        self._open(snapshot, connection)
        names, self._delimiter = _shared_header(snapshot)
        # Numbered columns, because names may differ in case alone, or hold anything.
        inner = [f"c{place}" for place in range(len(names))]
        columns = ", ".join(f"'{name}': 'VARCHAR'" for name in inner)
        options = (
            f"columns={{{columns}}}, auto_detect=false, header=true, delim={_sql.literal(self._delimiter)}, "
            f"quote='\"', escape='\"', null_padding=false, strict_mode=true, max_line_size={_LONGEST_LINE}, "
            f"compression='{_compression(snapshot)}', hive_partitioning=false"
        )
        self.relation = self.fetch(
            lambda: self.query(f"SELECT * FROM read_csv({_places(snapshot)}, {options})")
        )
        self._kinds = dict.fromkeys(names, "unknown")
        self._expressions = dict(zip(names, inner, strict=True))
        self._written = f"FORMAT csv, HEADER true, DELIMITER {_sql.literal(self._delimiter)}"

    @property
    def listed_columns(self) -> str:
        """The columns in words: none of them where the first line may be a record.

        It is one of names where one of them is usual, or stands above numbers alone, and its values do not stand again
        below it.
        """
        names = list(self._kinds)
        rows = self.fetch(self.relation.limit(_BELOW).fetchall)
        below = [[cell.strip() for cell in cells if cell] for cells in zip(*rows, strict=True)]
        columns = list(zip(names, below or [[] for _ in names], strict=True))
        # A row index has no name, or what is behind the last comma; whoever names columns leaves no second one without.
        unnamed = sum(name == f"column{place}" for place, name in enumerate(names))
        again = sum(_is_among(name, cells) for name, cells in columns)
        # One of many may be chance: a column called "nan" that has one. Two such signs are none.
        betrayed = unnamed + again >= 2 or 3 * again >= len(names)
        named = any(is_usual(name) or _heads_numbers(name, cells) for name, cells in columns)
        return _validate.listed_columns(names, headed=named and not betrayed)

    def spells_numbers(self, name: str) -> bool:
        """True where a column holds numbers that are not whole, in as many different values as are looked at."""
        column = self.relation.project(f"{self.expression(name)} AS c").filter("c IS NOT NULL")
        found = self.fetch(column.distinct().limit(_SAMPLE).fetchnumpy)
        return _values.typed(plain_array(found["c"])).dtype.kind in "fb"

    def _explained(self, problem: Exception) -> FormatError:
        assert self._snapshot is not None
        for path, place in zip(self.paths, self._snapshot.places, strict=True):
            _find_ragged(path, place, self._delimiter)
            if _mixes_line_ends(place):
                return FormatError(
                    f"{path}: its lines end in different ways (Windows, Unix, old Mac); save it with one of them"
                )
        return super()._explained(problem)


class _JsonTable(DuckTable):
    """JSON files with one object per line, or a list of objects: values are the text that they are in the file."""

    word = "JSON with one object per line"
    text_alone = True
    # An object is text already, and is written as it is: one per line.
    _written = "FORMAT csv, HEADER false, QUOTE '', ESCAPE '', DELIMITER E'\x01'"

    def _columns_with(self, name: str, mark: str) -> str:
        return f"CAST(json_merge_patch(source.json, json_object({_sql.literal(name)}, {mark})) AS VARCHAR)"

    def __init__(self, snapshot: Snapshot, connection: duckdb.DuckDBPyConnection) -> None:
        self._open(snapshot, connection)
        self._layout = _json_layout(snapshot)
        options = (
            f"format='{self._layout}', compression='{_compression(snapshot)}', hive_partitioning=false, "
            f"maximum_object_size={_LONGEST_LINE}"
        )
        self.relation = self.fetch(
            lambda: self.query(f"SELECT json FROM read_json_objects({_places(snapshot)}, {options})")
        )
        self._kinds = self._found_kinds()

    def _found_kinds(self) -> dict[str, str]:
        """Return the kind of every key that occurs, those of the first object first."""
        twice = "len(json_keys(json)) > len(list_distinct(json_keys(json)))"
        odd, doubled = self.counted(
            f"count(*) FILTER (WHERE coalesce(json_type(json), '') <> 'OBJECT'), count(*) FILTER (WHERE {twice})"
        )
        if odd:
            raise FormatError(f"{self.label}: not {self.word}: {odd:,} records are something else")
        if doubled:
            raise FormatError(
                f"{self.label}: a key stands twice in {doubled:,} of the objects; keep one of them"
            )
        cells = self.relation.project("unnest(json_keys(json)) AS k, unnest(json_extract(json, '$.*')) AS v")
        types = cells.project("k, json_type(v) AS t").aggregate("k, t, count(*) AS n", "k, t")
        found: dict[str, set[str]] = {}
        for row in self.fetch(self.relation.project("json_keys(json)").limit(1).fetchall):
            found.update({name: set() for name in row[0]})
        counted = sorted(self.fetch(types.fetchall))
        self._filled = sum(count for *_, count in counted)
        for name, type_name, _ in counted:
            found.setdefault(name, set()).add(type_name)
        return {name: _json_kind(kinds - {"NULL"}) for name, kinds in found.items()}

    @property
    def _most_cells(self) -> int:
        return min(_MOST_CELLS, max(_MOST_SPARSE_CELLS, _MOST_SPREAD * self._filled))

    def expression(self, name: str) -> str:
        """Return what to select to get a key's values as text."""
        pointer = "/" + name.replace("~", "~0").replace("/", "~1")
        return f"(json ->> {_sql.literal(pointer)})"

    def load(self, names: Sequence[str]) -> dict[str, NDArray[Any]]:
        """Return columns as arrays; every object is parsed once, however many of its keys are asked for."""
        if not names:
            return {}
        pointers = ", ".join(self.expression(name)[len("(json ->> ") : -1] for name in names)
        found = self.fetch(
            lambda: self.relation.project(f"json_extract_string(json, [{pointers}]) AS v").fetchall()
        )
        columns = zip(*(row[0] for row in found), strict=True) if found else ([] for _ in names)
        return {name: _validate.objects(list(values)) for name, values in zip(names, columns, strict=True)}

    def _explained(self, problem: Exception) -> FormatError:  # noqa: ARG002  (its words may quote the data)
        assert self._snapshot is not None
        if self._layout == "newline_delimited":
            for path, place in zip(self.paths, self._snapshot.places, strict=True):
                line = self._broken_line(path, place)
                if line is not None:
                    return FormatError(f"{path}: not {self.word} at line {line}")
        return FormatError(f"{self.label}: not {self.word}")

    def _broken_line(self, path: Path, place: Path) -> int | None:
        """Return the first line that DuckDB holds to be no JSON: the one that it names itself may be the next."""
        assert self._connection is not None
        broken = (
            "SELECT min(number) FROM (SELECT unnest($1) AS line, generate_subscripts($1, 1) AS number) AS lines "
            "WHERE line <> '' AND NOT json_valid(line)"
        )
        before = 0
        with _opened(path, place) as file:
            for lines in _pieces(file):
                texts = [line.decode("utf-8", "replace").lstrip("\ufeff").strip() for line in lines]
                found = self._connection.execute(broken, [texts]).fetchone()
                if found is not None and found[0] is not None:
                    return before + int(found[0])
                before += len(lines)
        return None


def _scale(value: Any) -> tuple[float, float] | None:
    """Return the scale that a file declares, if it is one."""
    numbers = (
        isinstance(value, list) and len(value) == 2 and all(type(part) in (int, float) for part in value)
    )
    return _validate.scale(value) if numbers and value[0] < value[1] else None


def _json_kind(types: set[str]) -> str:
    return next((kind for kind, held in _JSON_KINDS if types <= held), "other") if types else "text"


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
        objects = found.data.astype(object)
        objects[mask] = None
        return labels.exact(objects) if found.dtype.kind in "iuf" else objects
    return np.asarray(found)


def _places(snapshot: Snapshot) -> str:
    # DuckDB takes every path for a pattern; what was a pattern was expanded before.
    escaped = [re.sub(r"([*?\[])", r"[\1]", str(place)) for place in snapshot.places]
    return "[" + ", ".join(_sql.literal(path) for path in escaped) + "]"


def _is_compressed(place: Path) -> bool:
    with place.open("rb") as file:
        return file.read(2) == b"\x1f\x8b"


def _compression(snapshot: Snapshot) -> str:
    found = {_is_compressed(place) for place in snapshot.places}
    if len(found) > 1:
        raise FormatError(
            f"{snapshot.paths[0]}: some of the files are compressed and some are not; read them apart"
        )
    if found == {False}:
        return "uncompressed"
    _check_ends(snapshot)
    return "gzip"


def _check_ends(snapshot: Snapshot) -> None:
    """Read compressed files to their ends where DuckDB would take the place of a cut for one, as it did before 2.0."""
    import duckdb  # noqa: PLC0415

    if int(duckdb.__version__.partition(".")[0]) >= 2:
        return
    for path, place in zip(snapshot.paths, snapshot.places, strict=True):
        with _opened(path, place) as file:
            while file.read(1 << 20):
                pass


def _json_layout(snapshot: Snapshot) -> str:
    beginnings = set()
    for path, place in zip(snapshot.paths, snapshot.places, strict=True):
        with _opened(path, place) as file:
            beginnings.add(file.read(1 << 12).removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"[")
    if len(beginnings) > 1:
        raise FormatError(
            f"{snapshot.paths[0]}: some of the files are lists and some have one object per line"
        )
    return "array" if beginnings == {True} else "newline_delimited"


@contextmanager
def _opened(path: Path, place: Path) -> Iterator[IO[bytes]]:
    with gzip.open(place, "rb") if _is_compressed(place) else place.open("rb") as file:
        try:
            yield cast("IO[bytes]", file)
        except UnicodeDecodeError:
            raise FormatError(f"{path}: not UTF-8 text; save the table as UTF-8") from None
        except (EOFError, OSError, zlib.error):
            raise FormatError(f"{path}: cannot be read; the file may be damaged or cut off") from None


def _pieces(file: IO[bytes]) -> Iterator[list[bytes]]:
    """Yield the lines of a file, about a megabyte of them at a time."""
    lines, size = list[bytes](), 0
    for line in iter(lambda: file.readline(_LONGEST_LINE), b""):
        lines.append(line)
        size += len(line)
        if size >= _PIECE:
            yield lines
            lines, size = [], 0
    if lines:
        yield lines


def _is_among(heading: str, cells: Iterable[str]) -> bool:
    """True where a heading is one of the values below it, or as they are true or false."""
    flag = heading.casefold() in _values.FLAGS
    return any(cell == heading or (flag and cell.casefold() in _values.FLAGS) for cell in cells)


def _heads_numbers(heading: str, cells: Sequence[str]) -> bool:
    """True where a heading is a word above numbers alone, and none that says that a number is missing."""
    return (
        heading.casefold() not in _GAPS
        and any(map(str.isalpha, heading))
        and bool(cells)
        and all(_values.as_number(cell) is not None for cell in cells)
    )


def _shared_header(snapshot: Snapshot) -> tuple[list[str], str]:
    headers = [_header(path, place) for path, place in zip(snapshot.paths, snapshot.places, strict=True)]
    for path, header in zip(snapshot.paths, headers, strict=True):
        if header != headers[0]:
            raise FormatError(
                f"{path}: its columns are not those of {snapshot.paths[0]}; they cannot be read as one table"
            )
    return headers[0]


@contextmanager
def _csv_rows(path: Path, place: Path, delimiter: str, *, strict: bool) -> Iterator[Any]:
    """Give a reader of rows as Python's own library sees them."""
    limit = csv.field_size_limit(_LONGEST_LINE)
    with _opened(path, place) as file, io.TextIOWrapper(file, encoding="utf-8-sig", newline="") as text:
        try:
            # A line without end is cut rather than read into memory.
            lines = iter(lambda: text.readline(_LONGEST_LINE), "")
            yield csv.reader(lines, delimiter=delimiter, strict=strict)
        finally:
            csv.field_size_limit(limit)


def _header(path: Path, place: Path) -> tuple[list[str], str]:
    headers: dict[str, list[str]] = {}
    try:
        for mark in _DELIMITERS:
            with _csv_rows(path, place, mark, strict=False) as rows:
                headers[mark] = next(rows, [])
    except csv.Error:
        raise FormatError(f"{path}: the first line is no header of a CSV file") from None
    delimiter = max(headers, key=lambda mark: len(headers[mark]))
    # A row index is often written without a name.
    names = [name.strip() or f"column{number}" for number, name in enumerate(headers[delimiter])]
    if not any(name.strip() for name in headers[delimiter]):
        raise FormatError(f"{path}: the first line must name the columns, and it is empty")
    if len(names) > _MOST_COLUMNS:
        raise FormatError(f"{path}: has {len(names):,} columns, and at most {_MOST_COLUMNS:,} are read")
    first = {name: number for number, name in reversed(list(enumerate(names, start=1)))}
    twice = [(first[name], number) for number, name in enumerate(names, start=1) if first[name] < number]
    if twice:
        # The first line may hold values, which no message shows.
        raise FormatError(
            f"{path}: columns {twice[0][0]} and {twice[0][1]} have the same name; rename one, or add a line with the "
            "names of the columns if the file has none"
        )
    return names, delimiter


def _find_ragged(path: Path, place: Path, delimiter: str) -> None:
    """Raise with the line of the first row that has more or fewer fields than the header."""
    with _csv_rows(path, place, delimiter, strict=True) as rows:
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


def _mixes_line_ends(place: Path) -> bool:
    """True where lines end in more than one way, within fields or between rows."""
    found: set[bytes] = set()
    with place.open("rb") as file:
        while len(found) < 2 and (piece := file.read(1 << 20)):
            found |= set(re.findall(rb"\r\n|\r|\n", piece + (file.read(1) if piece.endswith(b"\r") else b"")))
    return len(found) > 1


def open_frame(source: object) -> SourceTable:
    """Return a data frame, eager or lazy, as a table."""
    # A relation is known by its module, so that nothing is imported for the sake of asking.
    if type(source).__module__.partition(".")[0] in ("duckdb", "_duckdb") and hasattr(source, "fetchnumpy"):
        return DuckTable(source, "the DuckDB relation")
    if type(source).__module__.startswith("pyspark"):
        raise ArgumentError(
            "a Spark DataFrame is counted where it is, by abstain.evaluate; for anything else that needs its rows, "
            "collect it first (toPandas, toArrow)"
        )
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
        if len(self._names) < len(schema):
            raise DataError("the frame has two columns of one name; rename one of them")
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

    def marked(self, name: str, marks: NDArray[np.bool_], words: tuple[str, str], part: Path | None) -> Any:
        """Return a frame of the same library with one more column."""
        import narwhals as nw  # noqa: PLC0415

        if part is not None:
            raise ArgumentError(f"{self.label}: is no file; leave the output out, and write what is returned")
        frame = self._frame.collect() if isinstance(self._frame, nw.LazyFrame) else self._frame
        values = np.where(marks, words[1], words[0]).tolist()
        made = nw.new_series(name, values, nw.String, backend=frame.implementation)
        if frame.implementation.is_pandas_like():  # which joins by row names, not by place
            made = nw.maybe_set_index(made, index=nw.maybe_get_index(frame))
        return frame.with_columns(made).to_native()

    @property
    def rows(self) -> int:
        """How many rows there are."""
        name = next(iter(self._names), None)
        return 0 if name is None else len(self.load([name])[name])


def _frame_kind(dtype: Any) -> str:
    import narwhals as nw  # noqa: PLC0415

    if dtype == nw.Boolean:
        return "boolean"
    if dtype.is_integer() or (dtype.is_decimal() and getattr(dtype, "scale", None) == 0):
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
    if series.dtype.is_float():
        return np.asarray(series.cast(nw.Float64).to_numpy(), dtype=np.float64)
    if kind in ("whole", "boolean") and not nulls.any() and not _wide(series.dtype):
        return np.asarray(series.to_numpy())
    as_it_is = kind in ("list", "whole") or series.dtype in (nw.Object, nw.String, nw.Boolean)
    values = (series if as_it_is and not series.dtype.is_decimal() else series.cast(nw.String)).to_list()
    # A float NaN in a column of objects is a pandas way to say null.
    found = _validate.objects([None if null else value for value, null in zip(values, nulls, strict=True)])
    return labels.exact(found) if kind == "whole" and not series.dtype.is_decimal() else found


def _wide(dtype: Any) -> bool:
    """True for whole numbers that numpy has no type for."""
    import narwhals as nw  # noqa: PLC0415

    return dtype.is_decimal() or dtype in (nw.Int128, nw.UInt128)
