"""CSV, Parquet and JSONL files as tables.

DuckDB reads all of them. The values of CSV and JSON files are read as text, so that DuckDB infers no type. The columns
that are needed are parsed once, into a temporary table.
"""

from __future__ import annotations

import codecs
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
from abstain.readers._duckdb_tables import Database, DuckTable, StoredColumn, unused_name
from abstain.readers._fields import is_usual
from abstain.readers._formats import GZIP
from abstain.readers._table_files import TableFiles

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    import duckdb
    import numpy as np
    from numpy.typing import NDArray

_DELIMITERS = ",;\t|"
_LONGEST_LINE = 1 << 24
# Text at which a spreadsheet begins to read a formula; the last are forms of = + - @ of other widths. An apostrophe in
# front makes it text.
_FORMULA = "^(?:[\\t\\r\\n]|\\s*[=+\\-@\uff1d\uff0b\uff0d\uff20\ufe66\ufe62\ufe63\ufe6b])"
_APOSTROPHE = "'"
_MOST_COLUMNS = 1 << 14
# If most JSON objects lack most keys, at most so many cells are loaded, or so many times the number of values.
_MOST_SPARSE_CELLS, _MOST_SPREAD = 1 << 19, 16
# The number of rows that are compared with the first line to detect whether it is a header.
_COMPARED_ROWS = 100
# Words for a missing number. They do not show that a line is a header.
_MISSING_WORDS = ("na", "n/a", "nan", "none", "null", "missing", "unknown", "inf", "infinity")
# The kind of a column whose JSON values have only these types or are null; the first match counts.
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
    """Open files of one kind ("csv", "parquet" or "jsonl") as one table, in this order.

    Tables that are compared need the same connection.
    """
    tables = {"csv": _CsvTable, "parquet": _ParquetTable, "jsonl": _JsonTable}
    return tables[kind](TableFiles(files), Database(connection or _sql.connect()))


class _FileTable(DuckTable):
    """A table of files."""

    # The name of a view of all rows as they are in the files.
    _file_rows: str
    # The options with which DuckDB writes a file of this format.
    _copy_options: str

    def _create_view(self, statement: str) -> None:
        """Select from a view of a query, which runs again in every statement."""
        self.source = self._file_rows = unused_name()
        self.query(f"CREATE TEMP VIEW {self._file_rows} AS {statement}")

    def marked(self, name: str, marks: NDArray[np.bool_], words: tuple[str, str], part: Path | None) -> Any:
        """Write the rows with one more column, without loading them."""
        self._write_marked(name, marks, words, part, self._kept)

    def _write_marked(
        self,
        name: str,
        marks: NDArray[np.bool_],
        words: tuple[str, str],
        part: Path | None,
        kept: Callable[[str, str], str],
    ) -> None:
        """Write the rows with one more column; `kept` selects a column under its original name."""
        self.fetch(lambda: self.database.give("marks", {"mark": marks}))
        mark = f"CASE WHEN marks.mark THEN {_sql.literal(words[1])} ELSE {_sql.literal(words[0])} END"
        # DuckDB keeps the order of rows in files, and the marks are in that order.
        rows = f"SELECT {self._columns_with(name, mark, kept)} FROM {self._file_rows} AS source POSITIONAL JOIN marks"
        self.query(f"COPY ({rows}) TO {_sql.literal(str(part))} ({self._copy_options})")

    def _columns_with(self, name: str, mark: str, kept: Callable[[str, str], str]) -> str:
        """Return the list of all columns under their original names, and `mark` as `name`."""
        columns = self.query(f"FROM {self._file_rows}").columns
        listed = [
            kept(f"source.{_sql.identifier(column)}", own)
            for own, column in zip(self._kinds, columns, strict=True)
        ]
        return f"{', '.join(listed)}, {mark} AS {_sql.identifier(name)}"

    @staticmethod
    def _kept(column: str, name: str) -> str:
        return f"{column} AS {_sql.identifier(name)}"


class _ExportNote(msgspec.Struct):
    """The properties of items that `Items.to_parquet` stores in a Parquet file."""

    scale: tuple[float, float] | None = None
    cluster_noun: str | None = None
    classes: list[str] | None = None


class _ParquetTable(_FileTable):
    """Parquet files, whose columns have types."""

    _copy_options = "FORMAT parquet"

    def __init__(self, files: TableFiles, database: Database) -> None:
        super().__init__(database, files.label, files)
        self._create_view(
            f"FROM read_parquet({_path_list(files)}, union_by_name=true, hive_partitioning=false)"
        )
        self._describe_columns(self._original_names())
        if len(self.paths) == 1:
            self.declared = self._read_note()

    def _original_names(self) -> list[str] | None:
        """Return the names of the columns in the file; DuckDB renames those that differ only in case."""
        files = [self._column_names(location) for location in self._files.locations]
        all_names = {name for names in files for name in names}
        duplicates = any(len(set(names)) < len(names) for names in files)
        if duplicates or (len(files) > 1 and len({name.casefold() for name in all_names}) < len(all_names)):
            raise FormatError(
                f"{self.label}: two columns have the same name, or names in several files differ only in case; "
                "rename them"
            )
        return files[0] if len(files) == 1 else None

    def _column_names(self, location: Path) -> list[str]:
        """Return the names of the columns without those that are nested in them."""
        schema = f"parquet_schema({_sql.literal(str(location))})"
        _root, *elements = self.rows_of(f"SELECT name, coalesce(num_children, 0) FROM {schema}")
        names, nested = [], 0
        for name, children in elements:
            if not nested:
                names.append(str(name))
            nested = max(nested - 1, 0) + children
        return names

    def _read_note(self) -> Mapping[str, Any]:
        """Return the properties that `Items.to_parquet` stored, if it wrote the file."""
        rows = self.rows_of(
            f"SELECT value FROM parquet_kv_metadata({_path_list(self._files)}) "
            f"WHERE key = {_sql.literal(PARQUET_KEY)}"
        )
        try:
            note = msgspec.json.decode(bytes(rows[0][0]), type=_ExportNote) if rows else _ExportNote()
        except (RecursionError, UnicodeDecodeError, msgspec.DecodeError):
            return {}
        return {
            "scale": note.scale if note.scale and note.scale[0] < note.scale[1] else None,
            "cluster_noun": note.cluster_noun,
            "classes": tuple(note.classes) if note.classes else None,
        }

    def _find_problem(self, problem: Exception) -> FormatError:
        return FormatError(
            f"{self.label}: the Parquet file is damaged or cut off ({type(problem).__name__}); copy or write it again"
        )


class _TextTable(_FileTable):
    """Files without types: every column is text. Columns that are needed are parsed once, into a temporary table."""

    is_text = True
    # The columns of the temporary table, which are called c0, c1, and so on.
    _parsed: tuple[str, ...] = ()

    @abstractmethod
    def _parse(self, names: Sequence[str]) -> str:
        """Return the statement that selects columns of the files as c0, c1, and so on."""

    def _select(self, names: Sequence[str]) -> str:
        return self._parse(names)

    def prepare(self, names: Iterable[str]) -> None:
        """Parse columns into a temporary table, unless it has them already."""
        columns = tuple(dict.fromkeys((*self._parsed, *names)))
        if columns == self._parsed:
            return
        table = unused_name()
        self.create(table, self._parse(columns))
        self.source, self._parsed = table, columns

    def _stored(self, name: str) -> StoredColumn:
        self.prepare([name])
        return StoredColumn(self._kinds[name], f"c{self._parsed.index(name)}", is_text=True)


class _CsvTable(_TextTable):
    """CSV files."""

    format_name = "CSV"

    def __init__(self, files: TableFiles, database: Database) -> None:
        super().__init__(database, files.label, files)
        names, self._delimiter = _shared_header(files)
        # Columns are numbered, because names may differ only in case, or contain anything.
        self._numbered = {name: f"column{number}" for number, name in enumerate(names)}
        columns = ", ".join(f"'{name}': 'VARCHAR'" for name in self._numbered.values())
        options = (
            f"columns={{{columns}}}, auto_detect=false, header=true, delim={_sql.literal(self._delimiter)}, "
            f"quote='\"', escape='\"', null_padding=false, strict_mode=true, max_line_size={_LONGEST_LINE}, "
            f"compression='{_compression(files)}', hive_partitioning=false"
        )
        self._create_view(f"FROM read_csv({_path_list(files)}, {options})")
        self._kinds = dict.fromkeys(names, "unknown")
        self._copy_options = f"FORMAT csv, HEADER true, DELIMITER {_sql.literal(self._delimiter)}"

    def marked_for_spreadsheets(
        self, name: str, marks: NDArray[np.bool_], words: tuple[str, str], part: Path | None
    ) -> None:
        """Write the rows with one more column, with an apostrophe before cells that a spreadsheet would run."""
        self._write_marked(name, marks, words, part, self._kept_as_text)

    @staticmethod
    def _kept_as_text(column: str, name: str) -> str:
        pattern, apostrophe = _sql.literal(_FORMULA), _sql.literal(_APOSTROPHE)
        is_formula = f"regexp_matches({column}, {pattern}) AND TRY_CAST({column} AS DOUBLE) IS NULL"
        safe_name = f"{_APOSTROPHE}{name}" if re.match(_FORMULA, name) else name
        text = f"CASE WHEN {is_formula} THEN {apostrophe} || {column} ELSE {column} END"
        return f"{text} AS {_sql.identifier(safe_name)}"

    @property
    def headed(self) -> bool:
        """False if the first line may be a record.

        It names the columns if one of the names is usual or is a word above numbers only, unless its values occur
        again in the rows below it.
        """
        names = list(self._kinds)
        rows = self.rows_of(f"FROM {self._file_rows} LIMIT {_COMPARED_ROWS}")
        columns = zip(*rows, strict=True) if rows else [()] * len(names)
        cells_below = [[cell.strip() for cell in cells if cell] for cells in columns]
        # A row index often has no name, and neither has the field after a comma at the end of the line. A header has
        # at most one such column.
        unnamed = sum(name == f"column{number}" for number, name in enumerate(names))
        repeated = sum(map(_is_among, names, cells_below))
        # One repeated name among many may be chance, such as a column that is called "nan" and contains "nan".
        is_record = unnamed + repeated >= 2 or 3 * repeated >= len(names)
        return not is_record and (self.usual or any(map(_heads_numbers, names, cells_below)))

    @property
    def usual(self) -> bool:
        """False if no column has a usual name."""
        return any(map(is_usual, self._kinds))

    def _parse(self, names: Sequence[str]) -> str:
        columns = ", ".join(f"{self._numbered[name]} AS c{number}" for number, name in enumerate(names))
        return f"SELECT {columns} FROM {self._file_rows}"

    def _find_problem(self, problem: Exception) -> FormatError:
        for path, location in self._files:
            _check_rows(path, location, self._delimiter)
            if _mixes_line_ends(path, location):
                return FormatError(
                    f"{path}: it has different line endings (Windows, Unix, old Mac); save it with only one kind"
                )
        return super()._find_problem(problem)


class _JsonTable(_TextTable):
    """JSON files with one object per line or a list of objects. Values are the text that is in the file."""

    format_name = "JSON with one object per line"
    # Each object is text and is written unchanged, one per line.
    _copy_options = "FORMAT csv, HEADER false, QUOTE '', ESCAPE '', DELIMITER E'\x01'"

    def __init__(self, files: TableFiles, database: Database) -> None:
        super().__init__(database, files.label, files)
        self._layout = _json_layout(files)
        options = (
            f"format='{self._layout}', compression='{_compression(files)}', hive_partitioning=false, "
            f"maximum_object_size={_LONGEST_LINE}"
        )
        self._create_view(f"SELECT json FROM read_json_objects({_path_list(files)}, {options})")
        self._kinds = self._find_kinds()

    def _columns_with(self, name: str, mark: str, kept: Callable[[str, str], str]) -> str:  # noqa: ARG002
        return f"CAST(json_merge_patch(source.json, json_object({_sql.literal(name)}, {mark})) AS VARCHAR)"

    def _find_kinds(self) -> dict[str, str]:
        """Return the kind of every key that occurs, those of the first object first."""
        has_duplicate = "len(json_keys(json)) > len(list_distinct(json_keys(json)))"
        not_objects, with_duplicates = self._aggregate(
            "count(*) FILTER (WHERE coalesce(json_type(json), '') <> 'OBJECT'), "
            f"count(*) FILTER (WHERE {has_duplicate})"
        )
        if not_objects:
            raise FormatError(
                f"{self.label}: not {self.format_name}: {not_objects:,} records are not objects"
            )
        if with_duplicates:
            raise FormatError(
                f"{self.label}: a key appears twice in {with_duplicates:,} of the objects; keep one of them"
            )
        values = f"SELECT unnest(json_keys(json)) AS k, unnest(json_extract(json, '$.*')) AS v FROM {self._file_rows}"
        counts = sorted(self.rows_of(f"SELECT k, json_type(v) AS t, count(*) FROM ({values}) GROUP BY k, t"))
        self._value_count = sum(count for *_, count in counts)
        types: dict[str, set[str]] = {}
        for row in self.rows_of(f"SELECT json_keys(json) FROM {self._file_rows} LIMIT 1"):
            types.update({name: set() for name in row[0]})
        for name, type_name, _ in counts:
            types.setdefault(name, set()).add(type_name)
        return {
            name: next((kind for kind, allowed in _JSON_KINDS if found - {"NULL"} <= allowed), "other")
            for name, found in types.items()
        }

    @property
    def _most_cells(self) -> int:
        return min(super()._most_cells, max(_MOST_SPARSE_CELLS, _MOST_SPREAD * self._value_count))

    def _parse(self, names: Sequence[str]) -> str:
        # Every object is parsed once, however many of its keys are needed.
        pointers = ["/" + name.replace("~", "~0").replace("/", "~1") for name in names]
        values = f"json_extract_string(json, [{', '.join(map(_sql.literal, pointers))}])"
        columns = ", ".join(f"v[{number + 1}] AS c{number}" for number in range(len(names)))
        return f"SELECT {columns} FROM (SELECT {values} AS v FROM {self._file_rows}) AS parsed"

    def _find_problem(self, problem: Exception) -> FormatError:  # noqa: ARG002  (its message may quote the data)
        if self._layout == "newline_delimited":
            for path, location in self._files:
                line = _broken_line(path, location)
                if line is not None:
                    return FormatError(f"{path}: not {self.format_name} at line {line}")
        return FormatError(f"{self.label}: not {self.format_name}")


def _broken_line(path: Path, location: Path) -> int | None:
    """Return the number of the first line that is not JSON; DuckDB may report the next one."""
    with _opened(path, location) as file:
        lines = iter(lambda: file.readline(_LONGEST_LINE), b"")
        for number, line in enumerate(lines, start=1):
            text = line.removeprefix(codecs.BOM_UTF8).strip()
            try:
                _files.decode(text or b"null", object, path)
            except FormatError:
                return number
    return None


def _path_list(files: TableFiles) -> str:
    return "[" + ", ".join(_sql.literal(str(location)) for location in files.locations) + "]"


def _is_compressed(location: Path) -> bool:
    with location.open("rb") as file:
        return file.read(2) == GZIP


def _compression(files: TableFiles) -> str:
    states = {_is_compressed(location) for location in files.locations}
    if len(states) > 1:
        raise FormatError(
            f"{files.paths[0]}: some of the files are compressed and some are not; read them separately"
        )
    if states == {False}:
        return "uncompressed"
    _check_ends(files)
    return "gzip"


def _check_ends(files: TableFiles) -> None:
    """Read compressed files to their ends. Before version 2.0, DuckDB does not detect that a file is cut off."""
    import duckdb  # noqa: PLC0415

    if int(duckdb.__version__.partition(".")[0]) >= 2:
        return
    for path, location in files:
        with _opened(path, location) as file:
            while file.read(1 << 20):
                pass


def _json_layout(files: TableFiles) -> str:
    are_lists = set()
    for path, location in files:
        with _opened(path, location) as file:
            are_lists.add(file.read(1 << 12).removeprefix(codecs.BOM_UTF8).lstrip()[:1] == b"[")
    if len(are_lists) > 1:
        raise FormatError(
            f"{files.paths[0]}: some of the files are lists and some have one object per line; read them separately"
        )
    return "array" if are_lists == {True} else "newline_delimited"


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
    """Return whether a heading is one of the values below it, or a flag such as "yes" above a flag."""
    is_flag = heading.casefold() in _values.FLAGS
    return any(cell == heading or (is_flag and cell.casefold() in _values.FLAGS) for cell in cells)


def _heads_numbers(heading: str, cells: Sequence[str]) -> bool:
    """Return whether a heading is a word above numbers only, and does not mean a missing number."""
    return (
        heading.casefold() not in _MISSING_WORDS
        and any(map(str.isalpha, heading))
        and bool(cells)
        and all(_values.as_number(cell) is not None for cell in cells)
    )


def _shared_header(files: TableFiles) -> tuple[list[str], str]:
    headers = [_header(path, location) for path, location in files]
    for path, header in zip(files.paths, headers, strict=True):
        if header != headers[0]:
            raise FormatError(
                f"{path}: its columns differ from those of {files.paths[0]}; the files cannot be read as one table"
            )
    return headers[0]


@contextmanager
def _csv_rows(path: Path, location: Path, delimiter: str, *, strict: bool) -> Iterator[Any]:
    """Provide the rows as a reader of Python's csv module."""
    limit = csv.field_size_limit(_LONGEST_LINE)
    with _opened(path, location) as file, io.TextIOWrapper(file, encoding="utf-8-sig", newline="") as text:
        try:
            # A very long line is cut off, so that it does not fill the memory.
            lines = iter(lambda: text.readline(_LONGEST_LINE), "")
            yield csv.reader(lines, delimiter=delimiter, strict=strict)
        finally:
            csv.field_size_limit(limit)


def _header(path: Path, location: Path) -> tuple[list[str], str]:
    """Return the names of the columns, and the delimiter that yields the most columns."""
    headers: dict[str, list[str]] = {}
    try:
        for delimiter in _DELIMITERS:
            with _csv_rows(path, location, delimiter, strict=False) as rows:
                headers[delimiter] = next(rows, [])
    except csv.Error:
        raise FormatError(f"{path}: the first line is not the header of a CSV file") from None
    delimiter, fields = max(headers.items(), key=lambda header: len(header[1]))
    # A row index is often written without a name.
    names = [field.strip() or f"column{number}" for number, field in enumerate(fields)]
    if not any(map(str.strip, fields)):
        raise FormatError(f"{path}: the first line must contain the names of the columns, but it is empty")
    if len(names) > _MOST_COLUMNS:
        raise FormatError(f"{path}: has {len(names):,} columns, but at most {_MOST_COLUMNS:,} can be read")
    numbers: dict[str, int] = {}
    for number, name in enumerate(names, start=1):
        if numbers.setdefault(name, number) < number:
            # The first line may contain values, which no message may show.
            raise FormatError(
                f"{path}: columns {numbers[name]} and {number} have the same name; rename one, or add a line with the "
                "names of the columns if the file has none"
            )
    return names, delimiter


def _check_rows(path: Path, location: Path, delimiter: str) -> None:
    """Raise with the line of the first row that has more or fewer fields than the header."""
    with _csv_rows(path, location, delimiter, strict=True) as rows:
        try:
            width = len(next(rows))
            for row in rows:
                if row and len(row) != width:
                    raise FormatError(
                        f"{path}: line {rows.line_num} has {len(row)} fields, but the header has {width}; fix the "
                        "row, or quote fields that contain the delimiter"
                    )
        except csv.Error:
            raise FormatError(
                f"{path}: line {rows.line_num} is not a CSV row (a quote is not closed or is within a field, or the "
                f"line is longer than {_LONGEST_LINE:,} bytes)"
            ) from None


def _mixes_line_ends(path: Path, location: Path) -> bool:
    """Return whether lines end in more than one way, within fields or between rows."""
    with _opened(path, location) as file, io.TextIOWrapper(file, encoding="latin-1") as text:
        pieces = iter(lambda: text.read(1 << 20), "")
        # Python collects the line endings that it has seen; if there are several, in a tuple.
        return any(isinstance(text.newlines, tuple) for _ in pieces)
