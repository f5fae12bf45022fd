"""The name of a row in an error message: a line, a row or a record.

In a text file a row is the *line* on which its record begins, as an editor numbers lines: the first line of a CSV file
is its header, and a quoted field may extend over several. In a Parquet file or a workbook it is the *row*, counted
from 1; the header of a workbook is row 1. In a list within a JSON file, in several files that are read as one,
and in a file that cannot be read again, it is the *record*, counted from 1. In arrays and data frames it is the *row*,
counted from 0 as in Python.

Checks number rows from 0 and call `row_name`; a reader sets the file with `rows_named_by`. The file is opened only if
an error has to name a row.
"""

from __future__ import annotations

import contextlib
import gzip
from contextvars import ContextVar
from typing import IO, TYPE_CHECKING, cast

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from abstain._types import Mask

_GZIP, _PARQUET, _UTF_16 = b"\x1f\x8b", b"PAR1", (b"\xff\xfe", b"\xfe\xff")
_WORKBOOKS = (b"PK\x03\x04", b"\xd0\xcf\x11\xe0")
_DELIMITERS = ",;\t|"
_name_rows: ContextVar[_FileRows | None] = ContextVar("name_rows", default=None)


@contextlib.contextmanager
def rows_named_by(paths: Sequence[Path], *, records: bool = False) -> Iterator[None]:
    """Name rows in errors as lines, rows or records of these files, which are read as one table.

    Without files rows are numbered from 0, or from 1 if they are the `records` of a list within a file.
    """
    token = _name_rows.set(_FileRows(paths) if paths or records else None)
    try:
        yield
    finally:
        _name_rows.reset(token)


def row_name(*rows: int) -> str:
    r"""Return the name of rows, numbered from 0 and ascending, in the source that is being read.

    >>> row_name(3), row_name(0, 7)
    ('row 3', 'row 0, 7')
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "notes.csv"
    >>> _ = path.write_text('id,note\n1,"two\nlines"\n2,one\n')
    >>> with rows_named_by([path]):
    ...     row_name(0, 1)
    'line 2, 4'
    """
    name_rows = _name_rows.get()
    return _listed("row", rows) if name_rows is None else name_rows(*rows)


def first_row_name(rows: Mask) -> str:
    """Return the name of the first row for which a mask is true, and the number of such rows."""
    return f"{row_name(int(rows.argmax()))} ({int(rows.sum())} such rows)"


def row_of_file(paths: Sequence[Path], *rows: int) -> str:
    """Return the name of rows in files that are read as one table."""
    return _FileRows(paths)(*rows)


class _FileRows:
    """Name the rows of files, and remember the line numbers found so far."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self._unopened = paths[0] if len(paths) == 1 else None
        self._word, self._first = "record", 1
        self._record_lines: Iterator[int] | None = None
        self._lines: list[int] = []

    def __call__(self, *rows: int) -> str:
        try:
            if self._unopened is not None:
                self._open(self._unopened)
            if self._record_lines is not None:
                while len(self._lines) <= rows[-1]:
                    self._lines.append(next(self._record_lines))
                return _listed("line", [self._lines[row] for row in rows])
        except (
            EOFError,
            OSError,
            StopIteration,
            UnicodeError,
            ValueError,
        ):  # the file was removed or changed
            self._record_lines = None
        return _listed(self._word, [row + self._first for row in rows])

    def _open(self, path: Path) -> None:
        self._unopened = None
        if not path.is_file():  # a pipe is read only once
            return
        with path.open("rb") as file:
            head = file.read(4)
        if head == _PARQUET:
            self._word = "row"
        elif head.startswith(_WORKBOOKS):
            self._word, self._first = "row", 2
        else:
            self._record_lines = _record_lines(path, head)


def _listed(word: str, numbers: Sequence[int]) -> str:
    return f"{word} {', '.join(map(str, numbers))}"


def _record_lines(path: Path, head: bytes) -> Iterator[int] | None:
    """Return the lines on which the records of a text begin, or None for a JSON list."""
    with _open_text(path, head) as text:
        first = next(line for line in text if line.strip()).lstrip()[:1]
    if first == "[":
        return None
    return _json_lines(path, head) if first == "{" else _csv_lines(path, head)


def _open_text(path: Path, head: bytes) -> IO[str]:
    encoding = "utf-16" if head.startswith(_UTF_16) else "utf-8-sig"
    opener = gzip.open if head.startswith(_GZIP) else open
    return cast("IO[str]", opener(path, "rt", encoding=encoding, errors="replace"))


def _json_lines(path: Path, head: bytes) -> Iterator[int]:
    with _open_text(path, head) as text:
        yield from (number for number, line in enumerate(text, start=1) if line.strip())


def _csv_lines(path: Path, head: bytes) -> Iterator[int]:
    """Yield the line on which each record after the header begins. A record ends when its quotes are balanced."""
    in_header, has_several_columns, in_quotes = True, False, False
    with _open_text(path, head) as text:
        for number, line in enumerate(text, start=1):
            # An empty line is not a record of a table with several columns.
            if not in_quotes and not in_header and (line.strip("\n") or not has_several_columns):
                yield number
            in_quotes ^= line.count('"') % 2 == 1
            if in_header:
                has_several_columns = has_several_columns or any(mark in line for mark in _DELIMITERS)
                in_header = in_quotes
