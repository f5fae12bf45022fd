"""Members of a zip archive, decompressed within bounds.

Python's own zipfile opens zstd members (method 93) only from 3.14 on, and trusts the sizes that an archive
declares. Here a member is inflated chunk by chunk and given up as soon as it, or the archive as a whole,
exceeds its limit: an archive that promises little and holds much costs no memory. Nothing is ever written to
disk, so a name that climbs out of its folder has nowhere to go; it is refused all the same.
"""

from __future__ import annotations

import struct
import zipfile
import zlib
from pathlib import PurePosixPath
from typing import IO, TYPE_CHECKING, cast

from abstain.errors import FormatError

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator
    from types import TracebackType

__all__ = ["Archive"]

ZSTD = 93
# The standard's own limit for what every decoder must support is 8 MiB; Inspect writes well below that.
_ZSTD_WINDOW = 1 << 27
_CHUNK = 1 << 18
_LOCAL_HEADER = struct.Struct("<4s2B4HL2L2H")
_ENCRYPTED = 0x1


class Archive:
    """A zip archive that can be read within bounds; a context manager.

    Args:
        path: the archive.
        member_limit: most bytes that one member may have when decompressed.
        total_limit: most bytes that all members read may have together.
    """

    def __init__(self, path: str | os.PathLike[str], *, member_limit: int, total_limit: int) -> None:
        self.path = path
        self.member_limit = member_limit
        self.total_limit = total_limit
        self._total = 0
        try:
            self._zip = zipfile.ZipFile(path)
        except (zipfile.BadZipFile, ValueError, EOFError, NotImplementedError, struct.error):
            raise FormatError(
                f"{path}: the zip archive is damaged or cut off; copy or write it anew"
            ) from None
        self._file: IO[bytes] = self._zip.fp  # type: ignore[assignment]
        self._infos: dict[str, zipfile.ZipInfo] = {}
        for info in self._zip.infolist():
            self._check_name(info.filename)
            # Later entries replace earlier ones, as in every zip reader.
            self._infos[info.filename] = info

    def __enter__(self) -> Archive:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
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

        try:
            if info.flag_bits & _ENCRYPTED:
                raise FormatError(f"{self.path}: the member {info.filename} is encrypted")
            if info.compress_type == ZSTD:
                yield from self._inflate_zstd(info)
                return
            with self._zip.open(info) as member:
                while piece := member.read(_CHUNK):
                    yield piece
        except NotImplementedError:
            raise FormatError(
                f"{self.path}: the member {info.filename} is compressed by method {info.compress_type}, "
                "which is not known here"
            ) from None
        except (zstandard.ZstdError, zipfile.BadZipFile, zlib.error, EOFError, struct.error, OSError):
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
