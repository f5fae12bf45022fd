"""The files of a table, which are read in several passes: header, columns, hash.

It is an error if another program replaces or changes a file between two passes, which its size and times show.
"""

from __future__ import annotations

import io
import re
import shutil
import tempfile
import weakref
from pathlib import Path
from typing import IO, TYPE_CHECKING

from abstain import _files
from abstain.errors import LONGEST_PATH, DataError, list_names

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

# DuckDB accepts only UTF-8, and interprets these characters as a pattern.
_PLAIN_PATH = re.compile(r"[^*?\[\\\ud800-\udfff]+")


class TableFiles:
    """Some files that are read as one table, in this order; iterating yields pairs of path and location.

    Attributes:
        paths: the paths that the caller named.
        label: the names of all files, for messages.
        locations: the paths that are read, in the same order. A pipe or a translated file is copied into a temporary
            folder, and a path that DuckDB would misread gets a link there.
    """

    def __init__(self, files: Sequence[_files.SourceFile]) -> None:
        self.paths = tuple(file.path for file in files)
        self.label = list_names(map(str, files), longest=LONGEST_PATH)
        self._originals = [file.original for file in files]
        self._folder: Path | None = None
        self.locations = tuple(self._locate(file, number) for number, file in enumerate(files))
        self._states = [_state(location) for location in self.locations]

    def __iter__(self) -> Iterator[tuple[Path, Path]]:
        return zip(self.paths, self.locations, strict=True)

    def _locate(self, file: _files.SourceFile, number: int) -> Path:
        path = file.path.absolute()
        with file.open() as opened:
            content = opened.getvalue() if isinstance(opened, io.BytesIO) else None
            if content is None and _PLAIN_PATH.fullmatch(str(path)):
                return path
            if self._folder is None:
                self._folder = Path(tempfile.mkdtemp(prefix="abstain-"))
                weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
            location = self._folder / str(number)
            if content is None:
                location.symlink_to(path)
            else:
                location.write_bytes(content)
        return location

    def check(self) -> None:
        """Raise if a file was replaced or changed since it was opened."""
        for (path, location), state in zip(self, self._states, strict=True):
            if _state(location) != state:
                raise DataError(f"{path}: was changed while it was read; read it again when it is complete")

    def sha256(self) -> str:
        """Return the SHA-256 of the files in hexadecimal, one after the other."""
        digest = _files.digest(self._open_originals())
        self.check()
        return digest

    def _open_originals(self) -> Iterator[IO[bytes]]:
        """Open each file as it is on disk, before any translation."""
        for location, original in zip(self.locations, self._originals, strict=True):
            with location.open("rb") if original is None else io.BytesIO(original) as file:
                yield file


def _state(path: Path) -> tuple[int, ...] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns
