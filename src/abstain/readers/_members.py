"""The members of a log, one at a time and within bounds: of a zip archive, or of one large JSON object.

Python's own zipfile opens zstd members (method 93) only from 3.14 on, and trusts the sizes that an archive
declares. Here a member is inflated chunk by chunk and given up as soon as it, or the archive as a whole,
exceeds its limit: an archive that promises little and holds much costs no memory. Nothing is ever written to
disk, so a name that climbs out of its folder has nowhere to go; it is refused all the same.

Of a JSON file a scanner walks over the bytes as the operating system maps them and finds where the members of the
outermost object begin and end; only those that are asked for are parsed. Strings are skipped whole, so braces
within them do not count.
"""

from __future__ import annotations

import contextlib
import io
import mmap
import re
import struct
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import IO, TYPE_CHECKING, cast

from abstain.errors import FormatError

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

# The keys by which a line of lm-eval's samples is known.
LM_EVAL_KEYS = frozenset({"doc_id", "doc", "filtered_resps"})

_ZSTD = 93
# What the standard asks every decoder to support; it is reserved before the first byte, so no archive may ask for more.
_ZSTD_WINDOW = 1 << 23
_CHUNK = 1 << 18
_LOCAL_HEADER = struct.Struct("<4s2B4HL2L2H")
_ENCRYPTED = 0x1
# Possessive, so that no memory is spent on ways back into a string of many megabytes.
# A string that is cut off reaches to the end, lest every quote within it be tried as the beginning of another.
_TOKEN = re.compile(rb'"(?:[^"\\]++|\\.)*+"?|[{}\[\],:]', re.DOTALL)
_BRACKET = re.compile(rb'(?:[^{}\[\]"]++|"(?:[^"\\]++|\\.)*+")*+[{}\[\]]', re.DOTALL)
_CONTENT = re.compile(rb"\S")
_OPENING, _CLOSING, _LIST, _COMMA, _COLON, _QUOTE = b"{[", b"}]", *b'[,:"'
_RELEASE_EVERY = 1 << 26
# A smaller file is read whole: whoever cuts it short meanwhile would end a process that has it mapped.
_MAPPED_FROM = 1 << 26


class Archive(contextlib.AbstractContextManager["Archive"]):
    """A zip archive that can be read within bounds; a context manager.

    Args:
        file: the archive, open for reading.
        path: what it is called in messages.
        member_limit: most bytes that one member may have when decompressed.
        total_limit: most bytes that all members read may have together.
    """

    def __init__(self, file: IO[bytes], path: object, *, member_limit: int, total_limit: int) -> None:
        self.path = path
        self.member_limit = member_limit
        self.total_limit = total_limit
        self._total = 0
        try:
            self._zip = zipfile.ZipFile(file)
        except (zipfile.BadZipFile, ValueError, EOFError, NotImplementedError, OSError, struct.error):
            raise FormatError(
                f"{path}: the zip archive is damaged or cut off; copy or write it anew"
            ) from None
        self._file = file
        self._infos: dict[str, zipfile.ZipInfo] = {}
        for info in self._zip.infolist():
            self._check_name(info.filename)
            # Later entries replace earlier ones, as in every zip reader.
            self._infos[info.filename] = info

    def __exit__(self, *problem: object) -> None:
        self._zip.close()

    @property
    def names(self) -> list[str]:
        """The names of all members, in the order of the archive."""
        return list(self._infos)

    def read(self, name: str) -> bytes:
        """Return the bytes of a member, or raise when it is damaged or larger than allowed."""
        info = self._infos[name]
        if info.file_size > self.member_limit:
            raise self._too_large(name)
        pieces, size, checksum = [], 0, 0
        for piece in self._inflate(info):
            size += len(piece)
            self._total += len(piece)
            if size > self.member_limit:
                raise self._too_large(name)
            if self._total > self.total_limit:
                raise FormatError(
                    f"{self.path}: holds more than {self.total_limit:,} bytes when decompressed; raise total_limit "
                    "if the file is to be trusted"
                )
            checksum = zlib.crc32(piece, checksum)
            pieces.append(piece)
        if checksum != info.CRC:
            raise FormatError(f"{self.path}: the member {name} is damaged (its checksum does not fit)")
        return b"".join(pieces)

    def _inflate(self, info: zipfile.ZipInfo) -> Iterator[bytes]:
        import zstandard  # noqa: PLC0415

        if info.flag_bits & _ENCRYPTED:
            raise FormatError(f"{self.path}: the member {info.filename} is encrypted")
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, _ZSTD):
            raise FormatError(
                f"{self.path}: the member {info.filename} is compressed by method {info.compress_type}, "
                "which is not known here"
            )
        try:
            if info.compress_type == _ZSTD:
                yield from self._inflate_zstd(info)
                return
            with self._zip.open(info) as member:
                while piece := member.read(_CHUNK):
                    yield piece
        except (
            *(zstandard.ZstdError, zipfile.BadZipFile, zlib.error, struct.error),
            *(EOFError, NotImplementedError, OSError, ValueError),
        ):
            raise FormatError(f"{self.path}: the member {info.filename} is damaged or cut off") from None

    def _inflate_zstd(self, info: zipfile.ZipInfo) -> Iterator[bytes]:
        import zstandard  # noqa: PLC0415

        self._file.seek(info.header_offset)
        header = _LOCAL_HEADER.unpack(self._file.read(_LOCAL_HEADER.size))
        if header[0] != b"PK\x03\x04":
            raise zipfile.BadZipFile
        self._file.seek(header[-2] + header[-1], 1)
        source = _Window(self._file, info.compress_size)
        decompressor = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW)
        with decompressor.stream_reader(
            cast("IO[bytes]", source), closefd=False, read_across_frames=True
        ) as reader:
            while piece := reader.read(_CHUNK):
                yield piece

    def _check_name(self, name: str) -> None:
        parts = PurePosixPath(name.replace("\\", "/"))
        if parts.is_absolute() or ".." in parts.parts or "\x00" in name:
            raise FormatError(f"{self.path}: a member of the archive has a path that climbs out of it")

    def _too_large(self, name: str) -> FormatError:
        return FormatError(
            f"{self.path}: the member {name} holds more than {self.member_limit:,} bytes when decompressed; raise "
            "member_limit if the file is to be trusted"
        )


class _Window:
    """The next `size` bytes of a file, as a file."""

    def __init__(self, file: IO[bytes], size: int) -> None:
        self._file = file
        self._left = size

    def read(self, size: int = -1) -> bytes:
        wanted = self._left if size < 0 else min(size, self._left)
        piece = self._file.read(wanted)
        self._left -= len(piece)
        return piece


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
    """The bytes of a file: in memory, or as the operating system maps them where there are very many."""
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
    walk = _KeyReader(arrays)
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
            if walk.depth <= 0:
                break
        walk.release(view, end)
    if walk.depth > 0:
        raise FormatError(f"{path}: not JSON (the file ends too early)")
    if _CONTENT.search(view, end):
        raise FormatError(f"{path}: not JSON (something else stands before or after its one object)")


@dataclass(slots=True)
class _KeyReader:
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

    def release(self, view: bytes | mmap.mmap, end: int) -> None:
        """Give back what was read: it need not stay in memory, the file is still there."""
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
