"""Snapshots: files as they are at one moment, however often they are read.

A table is read in several passes: its header, its columns, its hash. In between, another program may put a new file in
its place, or write into it. A snapshot opens every file once and hands out that very file: one that was replaced
meanwhile does not matter, and one that was changed is an error. What cannot be read twice, such as a pipe, is copied
into a file without a name.
"""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
import time
import weakref
from pathlib import Path
from typing import TYPE_CHECKING

from abstain.errors import ArgumentError, DataError

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Snapshot"]

_PIECE = 1 << 20
# Times of files advance in steps of at most some ten milliseconds: two writes within one step look like one.
_STEP = 0.02
_OPEN_FILES = Path("/proc/self/fd")


class Snapshot:
    """Some files, opened once.

    Attributes:
        paths: how they were named.
        places: where the opened files can be read again, in the same order.
    """

    def __init__(self, paths: Sequence[Path]) -> None:
        self.paths = tuple(paths)
        self._handles: list[int] = []
        weakref.finalize(self, _close, self._handles)
        self._states = [self._open(path) for path in paths]
        self.places = tuple(
            _OPEN_FILES / str(handle) if _OPEN_FILES.is_dir() else path.absolute()
            for handle, path in zip(self._handles, paths, strict=True)
        )

    def _open(self, path: Path) -> tuple[int, ...]:
        try:
            handle = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                handle = _copied(handle)
        except OSError as problem:
            raise ArgumentError(f"{path}: cannot be read ({problem.strerror})") from None
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
        total = hashlib.sha256()
        for place in self.places:
            with place.open("rb") as file:
                while piece := file.read(_PIECE):
                    total.update(piece)
        self.check()
        return total.hexdigest()


def _state(handle: int) -> tuple[int, ...]:
    found = os.fstat(handle)
    return found.st_size, found.st_mtime_ns


def _copied(handle: int) -> int:
    """Copy what can be read once only into a file without a name; return that."""
    with os.fdopen(handle, "rb") as source, tempfile.TemporaryFile() as copy:
        while piece := source.read(_PIECE):
            copy.write(piece)
        copy.flush()
        return os.dup(copy.fileno())


def _close(handles: list[int]) -> None:
    for handle in handles:
        os.close(handle)
