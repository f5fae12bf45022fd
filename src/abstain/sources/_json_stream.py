"""The parts of one large JSON object, one at a time, without parsing the whole.

A scanner walks over the file as the operating system maps it and finds where the members of the outermost
object begin and end; only those that are asked for are parsed. Strings are skipped whole, so braces within
them do not count.
"""

from __future__ import annotations

import contextlib
import mmap
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from abstain.errors import FormatError

if TYPE_CHECKING:
    import os
    from collections.abc import Generator, Iterator

__all__ = ["outer_keys", "outer_members"]

# Possessive, so that no memory is spent on ways back into a string of many megabytes.
_TOKEN = re.compile(rb'"(?:[^"\\]++|\\.)*+"|[{}\[\],:]', re.DOTALL)
_BRACKET = re.compile(rb'(?:[^{}\[\]"]++|"(?:[^"\\]++|\\.)*+")*+[{}\[\]]', re.DOTALL)
_CONTENT = re.compile(rb"\S")
_OPENING, _CLOSING, _LIST, _COMMA, _COLON, _QUOTE = b"{[", b"}]", *b'[,:"'
_RELEASE_EVERY = 1 << 26


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
    path: str | os.PathLike[str], *, limit: int, arrays: tuple[str, ...] = ()
) -> Iterator[tuple[str, bytes]]:
    """Yield (key, JSON text) of each member of the outermost object; the elements of `arrays` one at a time."""
    with (
        Path(path).open("rb") as file,
        mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as view,
        contextlib.closing(_spans(view, path, arrays)) as spans,
    ):
        for key, start, end in spans:
            if end - start > limit:
                raise FormatError(
                    f"{path}: a part of {key!r} holds more than {limit:,} bytes; raise member_limit if the file is to "
                    "be trusted"
                )
            yield key, view[start:end]


def _spans(
    view: mmap.mmap, path: object, arrays: tuple[str, ...]
) -> Generator[tuple[str, int, int], None, None]:
    """Yield (key, start, end) of every member, or of every element of a member in `arrays`."""
    walk = _Walk(arrays)
    end = 0
    # Within a part only brackets matter, and whatever lies between two of them is skipped at once.
    while token := _BRACKET.match(view, end) if walk.depth > walk.level else _TOKEN.search(view, end):
        end = token.end()
        mark = view[end - 1]
        if mark == _QUOTE:
            walk.name = (token.start() + 1, end - 1)
        elif mark in _OPENING:
            walk.open(mark, end)
        elif mark == _COLON:
            if walk.depth == 1 and walk.key is None:
                start, stop = walk.name
                walk.key, walk.start = view[start:stop].decode("utf-8", "replace"), end
        else:
            if walk.between_parts and walk.key is not None and _CONTENT.search(view, walk.start, end - 1):
                yield walk.key, walk.start, end - 1
            walk.part(mark, end)
        if end - walk.released > _RELEASE_EVERY and hasattr(view, "madvise"):
            # What was read need not stay in memory; the file is still there.
            view.madvise(mmap.MADV_DONTNEED)
            walk.released = end
    if walk.depth:
        raise FormatError(f"{path}: not JSON (the file ends too early)")


@dataclass(slots=True)
class _Walk:
    """Where the scanner stands: how deep, in which member, and where the part that is to be yielded began."""

    arrays: tuple[str, ...]
    key: str | None = None
    name: tuple[int, int] = (0, 0)
    depth: int = 0
    start: int = 0
    level: int = 1  # the depth at which commas part what is yielded
    released: int = 0

    @property
    def between_parts(self) -> bool:
        return self.depth == self.level

    def open(self, mark: int, end: int) -> None:
        self.depth += 1
        if self.depth == 2 and self.key in self.arrays and mark == _LIST:
            self.level, self.start = 2, end

    def part(self, mark: int, end: int) -> None:
        """Pass a comma or a closing bracket."""
        if self.between_parts:
            self.start = end
        self.depth -= mark in _CLOSING
        if self.depth < self.level or (self.depth == 1 and mark == _COMMA):
            self.level, self.key = 1, None
