"""The parts of one large JSON object, found without parsing all of it.

A scanner reads the bytes of the file (memory-mapped if it is large) and finds where the members of the outermost object
begin and end, so that a log is decoded one sample at a time. Strings are skipped as a whole, so braces within
them do not count.
"""

from __future__ import annotations

import contextlib
import io
import mmap
import re
from typing import IO, TYPE_CHECKING

from abstain.errors import FormatError

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

# Possessive quantifiers keep no backtracking state for strings of many megabytes. A string that is cut off extends to
# the end of the file, so that the quotes within it are not tried as the beginning of another string.
_TOKEN = re.compile(rb'"(?:[^"\\]++|\\.)*+"?|[{}\[\],:]', re.DOTALL)
_BRACKET = re.compile(rb'(?:[^{}\[\]"]++|"(?:[^"\\]++|\\.)*+")*+[{}\[\]]', re.DOTALL)
_BEGINNING = re.compile(rb"(?:\xef\xbb\xbf)?\s*\{")
_KEY = re.compile(rb'\s*"((?:[^"\\]++|\\.)*+)"\s*:\s*', re.DOTALL)
_CONTENT = re.compile(rb"\S")
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
    released = 0
    with _view(file, path) as view, contextlib.closing(_spans(view, path, arrays)) as spans:
        for key, start, end in spans:
            if end - start > limit:
                raise FormatError(
                    f"{path}: a part of {key!r} has more than {limit:,} bytes; raise member_limit if you trust "
                    "the file"
                )
            yield key, view[start:end]
            if end - released > _RELEASE_EVERY and isinstance(view, mmap.mmap) and hasattr(view, "madvise"):
                view.madvise(mmap.MADV_DONTNEED)  # releases the pages that were read
                released = end


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
    beginning = _BEGINNING.match(view)
    end = beginning.end() - 1 if beginning else -1
    while end >= 0 and view[end] in b"{,":
        key = _KEY.match(view, end + 1)
        name = key[1].decode("utf-8", "replace") if key else ""
        start = key.end() if key else end + 1
        if name in arrays and view[start : start + 1] == b"[":
            end = start
            while view[end] in b"[,":
                start, end = end + 1, _part_end(view, end + 1, path)
                if _CONTENT.search(view, start, end):
                    yield name, start, end
            end = _part_end(view, end + 1, path)
        else:
            end = _part_end(view, start, path)
            if key and _CONTENT.search(view, start, end):
                yield name, start, end
    if _CONTENT.search(view, end + 1):
        raise FormatError(f"{path}: not JSON (there is other text before or after its one object)")


def _part_end(view: bytes | mmap.mmap, start: int, path: object) -> int:
    """Return the position of the comma or closing bracket that follows the value at `start`."""
    depth, end = 0, start
    # Within a list or an object only brackets matter, and everything between two of them is skipped at once.
    while token := _BRACKET.match(view, end) if depth else _TOKEN.search(view, end):
        end = token.end()
        mark = view[end - 1 if depth else token.start()]
        if mark in b"{[":
            depth += 1
        elif depth == 0 and mark in b",}]":
            return end - 1
        elif mark in b"}]":
            depth -= 1
    raise FormatError(f"{path}: not JSON (the file ends too early)")
