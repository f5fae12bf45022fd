"""Snapshots: files as they are at one moment, however often they are read.

A table is read in several passes: its header, its columns, its hash. In between, another program may put a new file in
its place, or write into it. A snapshot opens every file once and hands out that very file: one that was replaced
meanwhile does not matter, and one that was changed is an error. What a pipe gave is put into a file without a name.
"""

from __future__ import annotations

import io
import os
import tempfile
import time
import weakref
from pathlib import Path
from typing import IO, TYPE_CHECKING

from abstain import _files
from abstain.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

# Times of files advance in steps of at most some ten milliseconds: two writes within one step look like one.
_STEP = 0.02
_OPEN_FILES = Path("/proc/self/fd")


class Snapshot:
    """Some files, opened once.

    Attributes:
        paths: how they were named.
        label: what they are called in messages, all of them.
        places: where the opened files can be read again, in the same order.
    """

    def __init__(self, files: Sequence[_files.SourceFile]) -> None:
        self.paths = tuple(file.path for file in files)
        self.label = ", ".join(map(str, files))
        self._handles: list[int] = []
        weakref.finalize(self, _close, self._handles)
        self._states = [self._open(file) for file in files]
        self._originals = [file.original for file in files]
        self.places = tuple(
            _OPEN_FILES / str(handle) if _OPEN_FILES.is_dir() else path.absolute()
            for handle, path in zip(self._handles, self.paths, strict=True)
        )

    def _open(self, file: _files.SourceFile) -> tuple[int, ...]:
        with file.open() as opened:
            handle = _copied(opened) if isinstance(opened, io.BytesIO) else os.dup(opened.fileno())
        self._handles.append(handle)
        if 0.0 <= time.time() - os.fstat(handle).st_mtime < _STEP:
            time.sleep(_STEP)
        return _state(handle)

    def check(self) -> None:
        """Raise if a file was changed since it was opened."""
        for path, place, handle, state in zip(
            self.paths, self.places, self._handles, self._states, strict=True
        ):
            moved = place.parent != _OPEN_FILES and not os.path.samestat(place.stat(), os.fstat(handle))
            if moved or _state(handle) != state:
                raise DataError(f"{path}: was changed while it was read; read it again when it is complete")

    def sha256(self) -> str:
        """Return the SHA-256 of the files in hexadecimal, one after the other."""
        found = _files.digest(self._opened())
        self.check()
        return found

    def _opened(self) -> Iterator[IO[bytes]]:
        """The files as they are: of one that is read in translation, its own bytes."""
        for place, original in zip(self.places, self._originals, strict=True):
            with place.open("rb") if original is None else io.BytesIO(original) as file:
                yield file


def _state(handle: int) -> tuple[int, ...]:
    found = os.fstat(handle)
    return found.st_size, found.st_mtime_ns


def _copied(given: io.BytesIO) -> int:
    """Put what a pipe gave into a file without a name; return that."""
    with tempfile.TemporaryFile() as copy:
        copy.write(given.getbuffer())
        copy.flush()
        return os.dup(copy.fileno())


def _close(handles: list[int]) -> None:
    for handle in handles:
        os.close(handle)
