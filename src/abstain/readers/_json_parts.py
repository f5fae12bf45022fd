"""The parts of one large JSON object, found without parsing all of it.

A scanner goes over the bytes of the file (memory-mapped if it is large) and finds where the members of the outermost
object begin and end, so that a log is decoded one sample at a time. Strings are skipped as a whole, so braces within
them do not count.
"""

from __future__ import annotations

import contextlib
import io
import mmap
import re
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING

from abstain.errors import FormatError

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

# Possessive quantifiers keep no backtracking state for strings of many megabytes. A string that is cut off extends to
# the end of the file, so that the quotes within it are not tried as the beginning of another string.
_TOKEN = re.compile(rb'"(?:[^"\\]++|\\.)*+"?|[{}\[\],:]', re.DOTALL)
_BRACKET = re.compile(rb'(?:[^{}\[\]"]++|"(?:[^"\\]++|\\.)*+")*+[{}\[\]]', re.DOTALL)
_CONTENT = re.compile(rb"\S")
_OPENING, _CLOSING, _LIST, _COMMA, _COLON, _QUOTE = b"{[", b"}]", *b'[,:"'
_RELEASE_EVERY = 1 << 26
# Smaller files are read into memory: if a mapped file is truncated, the process is killed.
_MAPPED_FROM = 1 << 26


def outer_keys(beginning: bytes) -> list[str]:
    """Return the keys of the outermost object that begin within these first bytes of a file.

    >>> outer_keys(b'{"version": 2, "eval": {"task": 1}, "sam')
    ['version', 'eval']
    """
    keys = []
    depth, last = 0, b""
    for token in _TOKEN.finditer(beginning):
        text = token.group()
        if text in (b"{", b"["):
            depth += 1
        elif text in (b"}", b"]"):
            depth -= 1
        elif text == b":" and depth == 1 and last[:1] == b'"':
            keys.append(last[1:-1].decode("utf-8", "replace"))
        last = text
    return keys


def outer_members(
    file: IO[bytes], path: object, *, limit: int, arrays: tuple[str, ...] = ()
) -> Iterator[tuple[str, bytes]]:
    """Yield (key, JSON text) of each member of the outermost object; the elements of `arrays` one at a time."""
    with _view(file, path) as view, contextlib.closing(_spans(view, path, arrays)) as spans:
        for key, start, end in spans:
            if end - start > limit:
                raise FormatError(
                    f"{path}: a part of {key!r} holds more than {limit:,} bytes; raise member_limit if the file is to "
                    "be trusted"
                )
            yield key, view[start:end]


@contextlib.contextmanager
def _view(file: IO[bytes], path: object) -> Iterator[bytes | mmap.mmap]:
    """Return the bytes of a file: in memory, or memory-mapped if it is large."""
    size = file.seek(0, io.SEEK_END)
    if size == 0:
        raise FormatError(f"{path}: the file is empty")
    if isinstance(file, io.BytesIO) or size < _MAPPED_FROM:
        file.seek(0)
        yield file.read()
        return
    with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as view:
        yield view


def _spans(
    view: bytes | mmap.mmap, path: object, arrays: tuple[str, ...]
) -> Generator[tuple[str, int, int], None, None]:
    """Yield (key, start, end) of every member, or of every element of a member in `arrays`."""
    position = _Position(arrays)
    end = 0
    # Within a part only brackets matter, and everything between two of them is skipped at once.
    while token := _BRACKET.match(view, end) if position.depth > position.level else _TOKEN.search(view, end):
        end = token.end()
        mark = view[end - 1]
        if mark == _QUOTE:
            position.name = (token.start() + 1, end - 1)
        elif mark in _OPENING:
            position.open(mark, end)
        elif mark == _COLON:
            if position.depth == 1 and position.key is None:
                start, stop = position.name
                position.key, position.start = view[start:stop].decode("utf-8", "replace"), end
        else:
            if (
                position.between_parts
                and position.key is not None
                and _CONTENT.search(view, position.start, end - 1)
            ):
                yield position.key, position.start, end - 1
            position.part(mark, end)
            if position.depth <= 0:
                break
        position.release(view, end)
    if position.depth > 0:
        raise FormatError(f"{path}: not JSON (the file ends too early)")
    if _CONTENT.search(view, end):
        raise FormatError(f"{path}: not JSON (something else stands before or after its one object)")


@dataclass(slots=True)
class _Position:
    """The position of the scanner: its depth, the member it is in, and where the part to be yielded began."""

    arrays: tuple[str, ...]
    key: str | None = None
    name: tuple[int, int] = (0, 0)
    depth: int = 0
    start: int = 0
    level: int = 1  # the depth at which commas separate the yielded parts
    released: int = 0

    @property
    def between_parts(self) -> bool:
        return self.depth == self.level

    def open(self, mark: int, end: int) -> None:
        self.depth += 1
        if self.depth == 2 and self.key in self.arrays and mark == _LIST:
            self.level, self.start = 2, end

    def release(self, view: bytes | mmap.mmap, end: int) -> None:
        """Release the memory of the pages that were read."""
        if end - self.released > _RELEASE_EVERY and isinstance(view, mmap.mmap) and hasattr(view, "madvise"):
            view.madvise(mmap.MADV_DONTNEED)
            self.released = end

    def part(self, mark: int, end: int) -> None:
        """Pass a comma or a closing bracket."""
        if self.between_parts:
            self.start = end
        self.depth -= mark in _CLOSING
        if self.depth < self.level or (self.depth == 1 and mark == _COMMA):
            self.level, self.key = 1, None
