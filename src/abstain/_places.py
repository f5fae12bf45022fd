"""Where a row stands, in the words of whoever has to mend it.

One rule. In a file of text a row is the *line* on which its record begins, as an editor numbers lines: the first line
of a CSV file is its header, and a quoted field may run over several. In a Parquet file and in a workbook it is the
*row*, counted from 1; the header of a workbook is row 1. In a list within a JSON file, in several files that are read
as one, and in a file that cannot be read a second time, it is the *record*, counted from 1. In arrays and data frames
it is the *row* by which Python finds it, counted from 0.

Checks know rows by their number from 0 and say `row_name`; whoever reads a file says which one it is, with
`rows_named_by`. The file is only looked into once something is wrong with it.
"""

from __future__ import annotations

import contextlib
import gzip
from contextvars import ContextVar
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

_GZIP, _PARQUET, _UTF_16 = b"\x1f\x8b", b"PAR1", (b"\xff\xfe", b"\xfe\xff")
_WORKBOOKS = (b"PK\x03\x04", b"\xd0\xcf\x11\xe0")
_DELIMITERS = ",;\t|"
_naming: ContextVar[Callable[..., str] | None] = ContextVar("naming", default=None)


@contextlib.contextmanager
def rows_named_by(paths: Sequence[Path]) -> Iterator[None]:
    """Let errors count rows as these files do, which are read as one table."""
    with _named(_FileRows(paths) if paths else None):
        yield


@contextlib.contextmanager
def rows_are_records() -> Iterator[None]:
    """Let errors count rows from 1, as the records of a list that is a part of a file."""
    with _named(_record):
        yield


@contextlib.contextmanager
def _named(naming: Callable[..., str] | None) -> Iterator[None]:
    before = _naming.set(naming)
    try:
        yield
    finally:
        _naming.reset(before)


def row_name(*rows: int) -> str:
    r"""Return what rows, numbered from 0 and ascending, are called in what is being read.

    >>> row_name(3), row_name(0, 7)
    ('row 3', 'row 0, 7')
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "notes.csv"
    >>> _ = path.write_text('id,note\n1,"two\nlines"\n2,one\n')
    >>> with rows_named_by([path]):
    ...     row_name(0, 1)
    'line 2, 4'
    """
    naming = _naming.get()
    return _listed("row", rows) if naming is None else naming(*rows)


def row_of_file(paths: Sequence[Path], *rows: int) -> str:
    """Return what rows of files that are read one after the other are called."""
    return _FileRows(paths)(*rows)


class _FileRows:
    """What the rows of files are called; lines that were found once are not looked for again."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self._path = paths[0] if len(paths) == 1 else None
        self._known: _Lines | None = None

    def __call__(self, *rows: int) -> str:
        if self._path is None:
            return _record(*rows)
        try:
            self._known = self._known or _Lines(self._path)
            return self._known.words(rows)
        except (EOFError, OSError, StopIteration, UnicodeError, ValueError):  # it is gone, or was a pipe
            self._path = None
            return _record(*rows)


class _Lines:
    """The rows of one file that is opened again."""

    def __init__(self, path: Path) -> None:
        if not path.is_file():
            raise ValueError("a pipe is read once")
        self._found: list[int] = []
        self._begun: Iterator[int] | None = None
        with path.open("rb") as file:
            beginning = file.read(4)
        # How rows are counted where no line is looked for.
        self.word, self.first = "record", 1
        if beginning == _PARQUET:
            self.word = "row"
        elif beginning.startswith(_WORKBOOKS):
            self.word, self.first = "row", 2
        else:
            self._begun = _begun(path, beginning)

    def words(self, rows: Sequence[int]) -> str:
        """What rows are called, which are ascending."""
        if self._begun is None:
            return _listed(self.word, [row + self.first for row in rows])
        while len(self._found) <= rows[-1]:
            self._found.append(next(self._begun))
        return _listed("line", [self._found[row] for row in rows])


def _record(*rows: int) -> str:
    return _listed("record", [row + 1 for row in rows])


def _listed(word: str, numbers: Sequence[int]) -> str:
    return f"{word} {', '.join(map(str, numbers))}"


def _begun(path: Path, beginning: bytes) -> Iterator[int] | None:
    """The lines on which the records of a text begin; None where its records are a list of JSON."""
    encoding = "utf-16" if beginning.startswith(_UTF_16) else "utf-8-sig"
    opened = gzip.open if beginning.startswith(_GZIP) else open
    with opened(path, "rt", encoding=encoding, errors="replace") as text:
        first = next(line for line in text if line.strip()).lstrip()[:1]
    if first == "[":
        return None
    records = _json_records if first == "{" else _csv_records
    return _read_along(lambda: opened(path, "rt", encoding=encoding, errors="replace"), records)


def _read_along(
    opened: Callable[[], IO[Any]], records: Callable[[Iterable[str]], Iterator[int]]
) -> Iterator[int]:
    with opened() as text:
        yield from records(text)


def _json_records(text: Iterable[str]) -> Iterator[int]:
    return (number for number, line in enumerate(text, start=1) if line.strip())


def _csv_records(text: Iterable[str]) -> Iterator[int]:
    """The line on which each record after the header begins: one ends with the line on which its quotes are even."""
    header, several, inside = True, False, False
    for number, line in enumerate(text, start=1):
        # An empty line is no record of a table that has several columns.
        if not inside and (line.strip("\n") or not several) and not header:
            yield number
        inside ^= line.count('"') % 2 == 1
        if header:
            several = several or any(mark in line for mark in _DELIMITERS)
            header = inside
