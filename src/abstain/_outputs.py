"""Whole files out: the one door for everything that is written.

All files of one call are written beside their places and then renamed, so that each is found whole, old or new, and
all of them change or none. An input is never an output, links are followed, and devices and pipes are written to, not
replaced. What the content means is known to the callers.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
import shutil
import stat
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from abstain.errors import AbstainError, ArgumentError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    AnyPath = str | os.PathLike[str]

# A folder that cannot be opened, or a file system that knows no such request, has nothing to bring to the disk.
_NOTHING_TO_SYNC = (errno.EACCES, errno.EINVAL, errno.ENOTSUP)
_MOST_LINKS = 40
_PATIENCE_SECONDS = 10.0


def check_output(path: AnyPath, *, inputs: Iterable[AnyPath] = ()) -> Path:
    """Return `path` if it can be written and is none of the `inputs`: call this before the work, not after it."""
    check_outputs([path], inputs=inputs)
    return Path(path)


def check_outputs(paths: Iterable[AnyPath], *, inputs: Iterable[AnyPath] = ()) -> dict[AnyPath, Path]:
    """Return the places that all outputs of a call name in the end, if they can be written together."""
    sources = tuple(inputs)
    places: dict[AnyPath, Path] = {}
    for path in paths:
        place = _destination(path, sources)
        if place in places.values() and _is_file(place):
            raise ArgumentError(f"{path}: is named as two outputs; name another file for one of them")
        places[path] = place
    return places


def check_folder(path: AnyPath) -> Path:
    """Return `path` if it is a folder that can be written in, or can be made."""
    folder = Path(path)
    with _said(folder, "created"):
        nearest = next(place for place in (folder, *folder.absolute().parents) if os.path.lexists(place))
        if not nearest.is_dir():
            raise ArgumentError(f"{nearest}: is a file; name a directory")
        _check_writable(nearest, folder)
    return folder


def write_whole(path: AnyPath, content: bytes) -> Path:
    """Write `content` to `path`, whole or not at all."""
    with putting({path: content}):
        return Path(path)


@contextlib.contextmanager
def new_folder(path: AnyPath) -> Iterator[None]:
    """Make a folder, and its parents, for what follows; if that fails, none of them is left."""
    made: list[Path] = []
    folder = Path(path)
    try:
        with _said(folder, "created"):
            for place in (*reversed(folder.parents), folder):
                if not place.is_dir():
                    made.append(place)
                    place.mkdir()
        yield
    except BaseException:
        for place in reversed(made):
            with contextlib.suppress(OSError):
                place.rmdir()
        raise


@contextlib.contextmanager
def putting(contents: Mapping[Any, bytes | Path], *, inputs: Iterable[AnyPath] = ()) -> Iterator[None]:
    """Put files in their places together at the end of a `with` statement, or none of them if anything fails.

    Contents are bytes, or the path of a file that is copied: what is larger than the memory is written elsewhere first.

    They are written to the disk before the statement's body runs, beside their places; the body prints, for example.
    What cannot be taken back (a device, a pipe) is written to after the body and before any file is renamed.
    """
    places = check_outputs(contents, inputs=inputs)
    files = [_OutputFile(path, place) for path, place in places.items() if _is_file(place)]
    try:
        for file in files:
            file.stage(contents[file.path])
        yield
        for path, place in places.items():
            if not _is_file(place):
                _pour(path, place, contents[path])
        _rename(files)
    except BaseException:
        for file in reversed(files):
            file.undo()
        raise
    for file in files:
        file.forget()


def _destination(path: AnyPath, inputs: Iterable[AnyPath]) -> Path:
    """The place that a path names in the end, if something may be written there."""
    with _said(path):
        place = _followed(Path(path))
        state = _state(place)
        if state is None:
            if not place.parent.is_dir():
                missing = place.parent if Path(path).parent.is_dir() else Path(path).parent
                raise ArgumentError(f"{path}: the directory {missing} does not exist; create it first")
            _check_writable(place.parent, path)
            return place
        if stat.S_ISDIR(state.st_mode):
            raise ArgumentError(f"{path}: is a directory; name the output file")
        if stat.S_ISBLK(state.st_mode) or stat.S_ISSOCK(state.st_mode):
            raise ArgumentError(f"{path}: is a disk or a socket; name a file or a pipe")
        if _descriptor(place) is None and not os.access(place, os.W_OK):
            raise ArgumentError(f"{path}: is write-protected; name another file, or allow writing to it")
        if stat.S_ISREG(state.st_mode):
            _check_no_input(path, state, inputs)
            if _is_file(place):
                _check_writable(place.parent, path)
    return place


def _check_no_input(path: AnyPath, state: os.stat_result, inputs: Iterable[AnyPath]) -> None:
    for source in inputs:
        try:
            same = os.path.samestat(state, Path(source).stat())
        except (OSError, ValueError):  # whoever reads it says what is wrong
            continue
        if same:
            raise ArgumentError(f"{path}: is the input {source} itself; name another file for the output")


def _check_writable(folder: Path, path: AnyPath) -> None:
    if not os.access(folder, os.W_OK | os.X_OK):
        raise ArgumentError(f"{path}: cannot be written (the directory {folder} is write-protected)")


def _followed(path: Path) -> Path:
    """The name behind links: that of a file, a device or a pipe, or of a descriptor of this process."""
    for _ in range(_MOST_LINKS):
        place = Path(os.path.realpath(path.parent), path.name)
        if _descriptor(place) is not None or not place.is_symlink():
            return place
        _check_link(place)
        path = place.parent / place.readlink()
    raise ArgumentError(f"{path}: links that lead nowhere; name the file itself")


def _check_link(link: Path) -> None:
    """Refuse a link that a stranger put into a folder that all may write in, as systems do that protect from it."""
    folder, owner = link.parent.stat(), link.lstat().st_uid
    shared = folder.st_mode & stat.S_ISVTX and folder.st_mode & stat.S_IWOTH
    if shared and hasattr(os, "geteuid") and owner not in (os.geteuid(), folder.st_uid):
        raise ArgumentError(
            f"{link}: is a link that somebody else put into a shared directory; name the file itself"
        )


def _descriptor(place: Path) -> int | None:
    """The number of the descriptor of this process that a path such as /dev/stdout stands for."""
    found = re.fullmatch(rf"(?:/dev/fd|/proc/{os.getpid()}/fd)/(\d+)", str(place))
    return None if found is None else int(found[1])


def _state(place: Path) -> os.stat_result | None:
    try:
        return place.stat()
    except FileNotFoundError:
        return None


def _is_file(place: Path) -> bool:
    """True where a new file is renamed to; what else there is, is written to."""
    state = _state(place)
    return _descriptor(place) is None and (state is None or stat.S_ISREG(state.st_mode))


@dataclass(slots=True)
class _OutputFile:
    """A file on its way: written beside its place, renamed there, and taken back if another one fails."""

    path: AnyPath
    place: Path
    part: Path | None = None
    old: Path | None = None
    moving: bool = False

    def stage(self, content: bytes | Path) -> None:
        """Write the content beside the place; it is on the disk when this returns."""
        with _said(self.path):
            before = _state(self.place)
            self.part = self._beside("part")
            mode = 0o666 if before is None else 0o600
            with open(self.part, "xb", opener=lambda name, flags: os.open(name, flags, mode)) as file:
                _write(file, content)
                file.flush()
                os.fsync(file.fileno())
            if before is not None:
                _inherit(self.part, before)

    def keep_old(self) -> None:
        """Keep what stands at the place under a second name."""
        with _said(self.path):
            if _state(self.place) is not None:
                self.old = self._beside("old")
                try:
                    self.old.hardlink_to(self.place)
                except OSError:  # not every file system has links
                    shutil.copy2(self.place, self.old)

    def move(self) -> None:
        """Put the new file in its place."""
        with _said(self.path):
            self.moving = True
            if self.part is not None:
                self.part.replace(self.place)

    def undo(self) -> None:
        """Leave the place as it was."""
        with contextlib.suppress(OSError):
            if self.part is None:
                return
            moved = self.moving and not self.part.exists()
            if moved and self.old is not None:
                self.old.replace(self.place)
            elif moved:
                self.place.unlink()
            self.part.unlink(missing_ok=True)
        self.forget()

    def forget(self) -> None:
        """Remove the second name of what stood at the place."""
        with contextlib.suppress(OSError):
            if self.old is not None:
                self.old.unlink(missing_ok=True)

    def _beside(self, ending: str) -> Path:
        return self.place.parent / f".abstain-{secrets.token_hex(8)}.{ending}"


def _inherit(part: Path, before: os.stat_result) -> None:
    """Give a file the owner and the permissions of the one that it replaces."""
    mode = stat.S_IMODE(before.st_mode)
    try:
        shutil.chown(part, before.st_uid, before.st_gid)
    except (OSError, AttributeError):
        # Another group than before must not read what the former one could.
        if part.stat().st_gid != before.st_gid:
            mode &= ~stat.S_IRWXG
    part.chmod(mode)


def _rename(files: list[_OutputFile]) -> None:
    if len(files) > 1:
        for file in files:
            file.keep_old()
    for file in files:
        file.move()
    for folder, path in {file.place.parent: file.path for file in files}.items():
        with _said(path):
            _sync(folder)


def _sync(folder: Path) -> None:
    """Bring the names in a folder to the disk; without this a new name may be lost with the power."""
    try:
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
    except OSError as problem:
        if problem.errno not in _NOTHING_TO_SYNC:
            raise


def _write(file: IO[bytes], content: bytes | Path) -> None:
    if isinstance(content, bytes):
        file.write(content)
        return
    with content.open("rb") as source:
        shutil.copyfileobj(source, file)


def _pour(path: AnyPath, place: Path, content: bytes | Path) -> None:
    """Write to a device, a pipe or a descriptor of this process, after what was printed before."""
    number = _descriptor(place)
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    with _said(path), os.fdopen(_opened(path, place) if number is None else os.dup(number), "wb") as file:
        _write(file, content)


def _opened(path: AnyPath, place: Path) -> int:
    """Open a device or a pipe; who reads the pipe may come a little later, but must come."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while True:
        try:
            handle = os.open(place, os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK)
        except OSError as problem:
            if problem.errno != errno.ENXIO:
                raise
            if time.monotonic() > deadline:
                raise ArgumentError(f"{path}: nobody reads this pipe; start its reader first") from None
            time.sleep(0.05)
        else:
            os.set_blocking(handle, True)
            return handle


@contextlib.contextmanager
def _said(path: AnyPath, what: str = "written") -> Iterator[None]:
    """Say what the system refuses as a sentence about the output."""
    try:
        yield
    except OSError as problem:
        raise ArgumentError(f"{path}: cannot be {what} ({problem.strerror})") from None
    except AbstainError:
        raise
    except ValueError:
        raise ArgumentError(f"{str(path)!r}: cannot be the name of a file") from None
