"""CSV, Parquet and JSONL files as tables.

DuckDB reads them, all through `open_files`. The values of CSV and JSON are text, so that DuckDB guesses no type. The
columns that are needed are parsed once, into a temporary table.
"""

from __future__ import annotations

import csv
import gzip
import io
import re
import zlib
from abc import abstractmethod
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Any, cast

import msgspec

from abstain import _files, _sql
from abstain._export import PARQUET_KEY
from abstain.errors import FormatError
from abstain.readers import _values
from abstain.readers._duckdb_tables import Database, DuckTable, unused_name
from abstain.readers._fields import is_usual
from abstain.readers._table_files import TableFiles

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    import duckdb

_DELIMITERS = ",;\t|"
_LONGEST_LINE = 1 << 24
_MOST_COLUMNS = 1 << 14
# Of keys that most objects lack, so many cells may be loaded, and so many times those that there are.
_MOST_SPARSE_CELLS, _MOST_SPREAD = 1 << 19, 16
# In so many rows the values of a first line that is none of names are looked for.
_BELOW = 100
# What people write where a number is missing; no proof that the line is one of names.
_GAPS = ("na", "n/a", "nan", "none", "null", "missing", "unknown", "inf", "infinity")
# The kind of a column whose JSON values have only these types; the first that fits. NULL has every type.
_JSON_KINDS: tuple[tuple[str, set[str]], ...] = (
    ("text", set()),
    ("whole", {"UBIGINT", "BIGINT"}),
    ("number", {"UBIGINT", "BIGINT", "DOUBLE"}),
    ("boolean", {"BOOLEAN"}),
    ("list", {"ARRAY"}),
    ("text", {"UBIGINT", "BIGINT", "DOUBLE", "BOOLEAN", "VARCHAR"}),
)


def open_files(
    files: Sequence[_files.SourceFile], kind: str, *, connection: duckdb.DuckDBPyConnection | None = None
) -> DuckTable:
    """Open files of one kind ("csv", "parquet" or "jsonl") as one table, in the order given.

    A table that is compared with another one shares its connection.
    """
    tables = {"csv": _CsvTable, "parquet": _ParquetTable, "jsonl": _JsonTable}
    return tables[kind](TableFiles(files), Database(connection or _sql.connect()))


class _Note(msgspec.Struct):
    scale: tuple[float, float] | None = None
    cluster_noun: str | None = None
    classes: list[str] | None = None


class _ParquetTable(DuckTable):
    """Parquet files, which know the types of their columns."""

    _written = "FORMAT parquet"

    def __init__(self, files: TableFiles, database: Database) -> None:
        self._open(database, files.label, files)
        source = f"read_parquet({_path_list(files)}, union_by_name=true, hive_partitioning=false)"
        self.source = self._files = self._view(f"SELECT * FROM {source}")
        self._describe(self._true_names())
        if len(self.paths) == 1:
            self.declared = self._note()

    def _true_names(self) -> list[str] | None:
        """The names of the columns as they are in the file: DuckDB renames those that differ in case alone."""
        files = [self._top_level(file) for file in range(len(self.paths))]
        every = dict.fromkeys(name for names in files for name in names)
        twice = any(len(set(names)) < len(names) for names in files)
        if twice or (len(files) > 1 and len({name.casefold() for name in every}) < len(every)):
            raise FormatError(
                f"{self.label}: has columns of one name, or several files have names that differ in case alone; "
                "rename them"
            )
        return files[0] if len(files) == 1 else None

    def _top_level(self, file: int) -> list[str]:
        assert self._snapshot is not None
        location = _sql.literal(str(self._snapshot.locations[file]))
        columns = self.rows_of(f"SELECT name, num_children FROM parquet_schema({location})")
        names, below = [], 0
        for name, children in columns[1:]:
            if not below:
                names.append(str(name))
            below = max(below - 1, 0) + (children or 0)
        return names

    def _note(self) -> Mapping[str, Any]:
        """Return what `Items.to_parquet` declared about the items; nothing for any other file."""
        assert self._snapshot is not None
        statement = (
            f"SELECT value FROM parquet_kv_metadata({_path_list(self._snapshot)}) "
            f"WHERE key = {_sql.literal(PARQUET_KEY)}"
        )
        rows = self.rows_of(statement)
        try:
            note = msgspec.json.decode(bytes(rows[0][0]), type=_Note) if rows else _Note()
        except (RecursionError, UnicodeDecodeError, msgspec.DecodeError):
            return {}
        return {
            "scale": note.scale if note.scale and note.scale[0] < note.scale[1] else None,
            "cluster_noun": note.cluster_noun,
            "classes": tuple(note.classes) if note.classes else None,
        }

    def _explained(self, problem: Exception) -> FormatError:
        return FormatError(
            f"{self.label}: the Parquet file is damaged or cut off ({type(problem).__name__}); copy or write it anew"
        )


class _TextTable(DuckTable):
    """Files without types: every column is text. Columns that are needed are parsed once, into a temporary table."""

    text_alone = True
    # The columns of the temporary table, which are called c0, c1, and so on.
    _parsed: tuple[str, ...] = ()

    @abstractmethod
    def _parse(self, names: Sequence[str]) -> str:
        """Return the statement that selects columns of the files as c0, c1, and so on."""

    def _select(self, names: Sequence[str]) -> str:
        return self._parse(names)

    def prepare(self, names: Iterable[str]) -> None:
        """Parse columns into a temporary table, unless they are there already."""
        columns = tuple(dict.fromkeys((*self._parsed, *names)))
        if columns == self._parsed:
            return
        table = unused_name()
        self.create(table, self._parse(columns))
        self.source, self._parsed = table, columns

    def expression(self, name: str) -> str:
        """Return what to select to get a column as text."""
        self.prepare([name])
        return f"c{self._parsed.index(name)}"


class _CsvTable(_TextTable):
    """CSV files."""

    word = "CSV"

    def __init__(self, files: TableFiles, database: Database) -> None:
        self._open(database, files.label, files)
        names, self._delimiter = _shared_header(files)
        # Numbered columns, because names may differ in case alone, or hold anything.
        self._numbered = {name: f"column{number}" for number, name in enumerate(names)}
        columns = ", ".join(f"'{name}': 'VARCHAR'" for name in self._numbered.values())
        options = (
            f"columns={{{columns}}}, auto_detect=false, header=true, delim={_sql.literal(self._delimiter)}, "
            f"quote='\"', escape='\"', null_padding=false, strict_mode=true, max_line_size={_LONGEST_LINE}, "
            f"compression='{_compression(files)}', hive_partitioning=false"
        )
        self.source = self._files = self._view(f"SELECT * FROM read_csv({_path_list(files)}, {options})")
        self._kinds = dict.fromkeys(names, "unknown")
        self._written = f"FORMAT csv, HEADER true, DELIMITER {_sql.literal(self._delimiter)}"

    @property
    def headed(self) -> bool:
        """False where the first line may be a record.

        It is one of names where one of them is usual, or stands above numbers alone, and its values do not stand again
        below it.
        """
        names = list(self._kinds)
        rows = self.rows_of(f"FROM {self._files} LIMIT {_BELOW}")
        below = [[cell.strip() for cell in cells if cell] for cells in zip(*rows, strict=True)]
        columns = list(zip(names, below or [[] for _ in names], strict=True))
        # A row index has no name, or what is behind the last comma; whoever names columns leaves no second one without.
        unnamed = sum(name == f"column{number}" for number, name in enumerate(names))
        again = sum(_is_among(name, cells) for name, cells in columns)
        # One of many may be chance: a column called "nan" that has one. Two such signs are none.
        betrayed = unnamed + again >= 2 or 3 * again >= len(names)
        named = self.usual or any(_heads_numbers(name, cells) for name, cells in columns)
        return named and not betrayed

    @property
    def usual(self) -> bool:
        """False where no name of a column is a usual one."""
        return any(map(is_usual, self._kinds))

    def _parse(self, names: Sequence[str]) -> str:
        columns = ", ".join(f"{self._numbered[name]} AS c{number}" for number, name in enumerate(names))
        return f"SELECT {columns} FROM {self._files}"

    def _explained(self, problem: Exception) -> FormatError:
        assert self._snapshot is not None
        for path, location in zip(self.paths, self._snapshot.locations, strict=True):
            _find_ragged(path, location, self._delimiter)
            if _mixes_line_ends(location):
                return FormatError(
                    f"{path}: its lines end in different ways (Windows, Unix, old Mac); save it with one of them"
                )
        return super()._explained(problem)


class _JsonTable(_TextTable):
    """JSON files with one object per line, or a list of objects: values are the text that they are in the file."""

    word = "JSON with one object per line"
    # An object is text already, and is written as it is: one per line.
    _written = "FORMAT csv, HEADER false, QUOTE '', ESCAPE '', DELIMITER E'\x01'"

    def _columns_with(self, name: str, mark: str) -> str:
        return f"CAST(json_merge_patch(source.json, json_object({_sql.literal(name)}, {mark})) AS VARCHAR)"

    def __init__(self, files: TableFiles, database: Database) -> None:
        self._open(database, files.label, files)
        self._layout = _json_layout(files)
        options = (
            f"format='{self._layout}', compression='{_compression(files)}', hive_partitioning=false, "
            f"maximum_object_size={_LONGEST_LINE}"
        )
        objects = f"read_json_objects({_path_list(files)}, {options})"
        self.source = self._files = self._view(f"SELECT json FROM {objects}")
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
        cells = (
            f"SELECT unnest(json_keys(json)) AS k, unnest(json_extract(json, '$.*')) AS v FROM {self._files}"
        )
        types = f"SELECT k, json_type(v) AS t, count(*) FROM ({cells}) GROUP BY k, t"
        kinds: dict[str, set[str]] = {}
        for row in self.rows_of(f"SELECT json_keys(json) FROM {self._files} LIMIT 1"):
            kinds.update({name: set() for name in row[0]})
        counted = sorted(self.rows_of(types))
        self._filled = sum(count for *_, count in counted)
        for name, type_name, _ in counted:
            kinds.setdefault(name, set()).add(type_name)
        return {
            name: next((kind for kind, held in _JSON_KINDS if types - {"NULL"} <= held), "other")
            for name, types in kinds.items()
        }

    @property
    def _most_cells(self) -> int:
        return min(super()._most_cells, max(_MOST_SPARSE_CELLS, _MOST_SPREAD * self._filled))

    def _parse(self, names: Sequence[str]) -> str:
        # Every object is parsed once, however many of its keys are needed.
        pointers = ["/" + name.replace("~", "~0").replace("/", "~1") for name in names]
        values = f"json_extract_string(json, [{', '.join(map(_sql.literal, pointers))}])"
        columns = ", ".join(f"v[{number + 1}] AS c{number}" for number in range(len(names)))
        return f"SELECT {columns} FROM (SELECT {values} AS v FROM {self._files}) AS parsed"

    def _explained(self, problem: Exception) -> FormatError:  # noqa: ARG002  (its words may quote the data)
        assert self._snapshot is not None
        if self._layout == "newline_delimited":
            for path, location in zip(self.paths, self._snapshot.locations, strict=True):
                line = _broken_line(path, location)
                if line is not None:
                    return FormatError(f"{path}: not {self.word} at line {line}")
        return FormatError(f"{self.label}: not {self.word}")


def _broken_line(path: Path, location: Path) -> int | None:
    """Return the first line that is not JSON; the one that DuckDB names may be the next."""
    with _opened(path, location) as file:
        lines = iter(lambda: file.readline(_LONGEST_LINE), b"")
        for number, line in enumerate(lines, start=1):
            text = line.removeprefix(b"\xef\xbb\xbf").strip()
            try:
                _files.decode(text or b"null", object, path)
            except FormatError:
                return number
    return None


def _path_list(files: TableFiles) -> str:
    return "[" + ", ".join(_sql.literal(str(location)) for location in files.locations) + "]"


def _is_compressed(location: Path) -> bool:
    with location.open("rb") as file:
        return file.read(2) == b"\x1f\x8b"


def _compression(files: TableFiles) -> str:
    states = {_is_compressed(location) for location in files.locations}
    if len(states) > 1:
        raise FormatError(
            f"{files.paths[0]}: some of the files are compressed and some are not; read them apart"
        )
    if states == {False}:
        return "uncompressed"
    _check_ends(files)
    return "gzip"


def _check_ends(files: TableFiles) -> None:
    """Read compressed files to their ends where DuckDB would take the place of a cut for one, as it did before 2.0."""
    import duckdb  # noqa: PLC0415

    if int(duckdb.__version__.partition(".")[0]) >= 2:
        return
    for path, location in zip(files.paths, files.locations, strict=True):
        with _opened(path, location) as file:
            while file.read(1 << 20):
                pass


def _json_layout(files: TableFiles) -> str:
    beginnings = set()
    for path, location in zip(files.paths, files.locations, strict=True):
        with _opened(path, location) as file:
            beginnings.add(file.read(1 << 12).removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"[")
    if len(beginnings) > 1:
        raise FormatError(f"{files.paths[0]}: some of the files are lists and some have one object per line")
    return "array" if beginnings == {True} else "newline_delimited"


@contextmanager
def _opened(path: Path, location: Path) -> Iterator[IO[bytes]]:
    with gzip.open(location, "rb") if _is_compressed(location) else location.open("rb") as file:
        try:
            yield cast("IO[bytes]", file)
        except UnicodeDecodeError:
            raise FormatError(f"{path}: not UTF-8 text; save the table as UTF-8") from None
        except (EOFError, OSError, zlib.error):
            raise FormatError(f"{path}: cannot be read; the file may be damaged or cut off") from None


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


def _shared_header(files: TableFiles) -> tuple[list[str], str]:
    headers = [_header(path, location) for path, location in zip(files.paths, files.locations, strict=True)]
    for path, header in zip(files.paths, headers, strict=True):
        if header != headers[0]:
            raise FormatError(
                f"{path}: its columns are not those of {files.paths[0]}; they cannot be read as one table"
            )
    return headers[0]


@contextmanager
def _csv_rows(path: Path, location: Path, delimiter: str, *, strict: bool) -> Iterator[Any]:
    """Give a reader of rows as Python's own library sees them."""
    limit = csv.field_size_limit(_LONGEST_LINE)
    with _opened(path, location) as file, io.TextIOWrapper(file, encoding="utf-8-sig", newline="") as text:
        try:
            # A line without end is cut rather than read into memory.
            lines = iter(lambda: text.readline(_LONGEST_LINE), "")
            yield csv.reader(lines, delimiter=delimiter, strict=strict)
        finally:
            csv.field_size_limit(limit)


def _header(path: Path, location: Path) -> tuple[list[str], str]:
    headers: dict[str, list[str]] = {}
    try:
        for mark in _DELIMITERS:
            with _csv_rows(path, location, mark, strict=False) as rows:
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


def _find_ragged(path: Path, location: Path, delimiter: str) -> None:
    """Raise with the line of the first row that has more or fewer fields than the header."""
    with _csv_rows(path, location, delimiter, strict=True) as rows:
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


def _mixes_line_ends(location: Path) -> bool:
    """True where lines end in more than one way, within fields or between rows."""
    line_ends: set[bytes] = set()
    with location.open("rb") as file:
        while len(line_ends) < 2 and (piece := file.read(1 << 20)):
            line_ends |= set(
                re.findall(rb"\r\n|\r|\n", piece + (file.read(1) if piece.endswith(b"\r") else b""))
            )
    return len(line_ends) > 1
