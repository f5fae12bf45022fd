"""A lock on the folder of a run, so that two runs at the same time do not both ask its questions."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import TYPE_CHECKING

from abstain.errors import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@contextlib.contextmanager
def locked_folder(folder: Path) -> Iterator[None]:
    """Create a folder and lock it while a `with` statement runs; raise if another process has locked it.

    The system removes the lock when the process ends, even if it is killed. On Windows there is no lock.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if sys.platform == "win32":
        yield
        return
    import fcntl  # noqa: PLC0415

    descriptor = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ArgumentError(
                f"{folder}: another run is writing to this directory; wait until it ends, or pass another --log-dir"
            ) from None
        except OSError:
            pass  # some network file systems have no locks
        yield
    finally:
        os.close(descriptor)
        with contextlib.suppress(OSError):  # only an empty directory can be removed
            folder.rmdir()
