"""Zip archives of logs, with zstd members, and with limits on the decompressed size of each member and of all.

`zipfile` opens zstd members (method 93) only from Python 3.14 on, so `zstandard` decompresses them. Members are
decompressed piece by piece until they exceed a limit, because the size that an archive declares may be wrong. Nothing
is written to disk.
"""

from __future__ import annotations

import contextlib
import copy
import struct
import zipfile
import zlib
from pathlib import PurePosixPath
from typing import IO, cast

from abstain.errors import FormatError

_ZSTD = 93
# The window that every decoder must support. It is allocated before the first byte, so no archive may use a larger one.
_ZSTD_WINDOW = 1 << 23
_PIECE = 1 << 18
_ENCRYPTED = 0x1
_DAMAGE = (zipfile.BadZipFile, zlib.error, struct.error, EOFError, NotImplementedError, OSError, ValueError)


class Archive(contextlib.AbstractContextManager["Archive"]):
    """A zip archive with limits on the decompressed bytes of each member and of all members."""

    def __init__(self, file: IO[bytes], path: object, *, member_limit: int, total_limit: int) -> None:
        self.path = path
        self.member_limit = member_limit
        self.total_limit = total_limit
        self._total = 0
        try:
            self._zip = zipfile.ZipFile(file)
        except _DAMAGE:
            raise FormatError(
                f"{path}: the zip archive is damaged or cut off; copy or write it again"
            ) from None
        self.names = list(dict.fromkeys(self._zip.namelist()))
        for name in self.names:
            parts = PurePosixPath(name.replace("\\", "/"))
            if parts.is_absolute() or ".." in parts.parts or "\x00" in name:
                raise FormatError(f"{path}: a member of the archive has a path that leads outside of it")

    def __exit__(self, *problem: object) -> None:
        self._zip.close()

    def read(self, name: str) -> bytes:
        """Return the bytes of a member; raise if it is damaged or larger than allowed."""
        import zstandard  # noqa: PLC0415

        info = self._zip.getinfo(name)
        if info.flag_bits & _ENCRYPTED:
            raise FormatError(f"{self.path}: the member {name} is encrypted")
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, _ZSTD):
            raise FormatError(
                f"{self.path}: the member {name} is compressed by method {info.compress_type}, "
                "which is not supported"
            )
        content = bytearray()
        try:
            with self._open(info) as member:
                self._check_size(name, info.file_size)
                while piece := member.read(_PIECE):
                    content += piece
                    self._check_size(name, len(content))
        except FormatError:
            raise
        except (zstandard.ZstdError, *_DAMAGE):
            raise FormatError(f"{self.path}: the member {name} is damaged or cut off") from None
        self._total += len(content)
        if zlib.crc32(content) != info.CRC:
            raise FormatError(f"{self.path}: the member {name} is damaged (its checksum does not match)")
        return bytes(content)

    def _open(self, info: zipfile.ZipInfo) -> IO[bytes]:
        if info.compress_type != _ZSTD:
            return self._zip.open(info)
        import zstandard  # noqa: PLC0415

        # The compressed bytes are read as if they were stored without compression.
        stored = copy.copy(info)
        stored.compress_type, stored.file_size = zipfile.ZIP_STORED, info.compress_size
        del stored.CRC  # it is the checksum of the decompressed bytes
        decompressor = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW)
        reader = decompressor.stream_reader(self._zip.open(stored), read_across_frames=True)
        return cast("IO[bytes]", reader)

    def _check_size(self, name: str, size: int) -> None:
        if size > self.member_limit:
            raise FormatError(
                f"{self.path}: the member {name} has more than {self.member_limit:,} bytes when decompressed; raise "
                "member_limit if you trust the file"
            )
        if self._total + size > self.total_limit:
            raise FormatError(
                f"{self.path}: has more than {self.total_limit:,} bytes when decompressed; raise total_limit if you "
                "trust the file"
            )
