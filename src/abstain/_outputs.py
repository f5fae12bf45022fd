"""Output files: every file that abstain writes is written here.

A file is written next to its destination and then renamed, so a reader finds the old file or the new one, never a
part. An output is never an input. Links are followed. Pipes and devices are written to and not replaced.
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
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from abstain.errors import AbstainError, ArgumentError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    AnyPath = str | os.PathLike[str]

# Errors of fsync if a folder cannot be opened, or if its file system does not support fsync.
_NOTHING_TO_SYNC = (errno.EACCES, errno.EINVAL, errno.ENOTSUP)
_MOST_LINKS = 40


def check_output(path: AnyPath, *, inputs: Iterable[AnyPath] = ()) -> Path:
    """Return `path` if it can be written and is not one of the `inputs`. Call this before any long computation."""
    check_outputs([path], inputs=inputs)
    return Path(path)


def check_outputs(paths: Iterable[AnyPath], *, inputs: Iterable[AnyPath] = ()) -> None:
    """Raise unless all outputs of a call can be written, and are different files and not inputs."""
    sources = tuple(inputs)
    destinations: list[Path] = []
    for path in paths:
        destination = _check_destination(path, sources)
        if destination in destinations and _is_replaced(destination):
            raise ArgumentError(f"{path}: is the path of two outputs; choose another file for one of them")
        destinations.append(destination)


def check_folder(path: AnyPath) -> Path:
    """Return `path` if it is a folder that can be written in, or can be created."""
    folder = Path(path)
    with _reporting(folder, "created"):
        nearest = next(parent for parent in (folder, *folder.absolute().parents) if os.path.lexists(parent))
        if not nearest.is_dir():
            raise ArgumentError(f"{nearest}: is a file; pass the path of a directory")
        _check_writable(nearest, folder)
    return folder


@contextlib.contextmanager
def new_folder(path: AnyPath) -> Iterator[None]:
    """Create a folder and its parents for the files of a `with` statement; remove them if the statement fails."""
    created: list[Path] = []
    folder = Path(path)
    try:
        with _reporting(folder, "created"):
            for parent in (*reversed(folder.parents), folder):
                if not parent.is_dir():
                    created.append(parent)
                    parent.mkdir()
        yield
    except BaseException:
        for parent in reversed(created):
            with contextlib.suppress(OSError):
                parent.rmdir()
        raise


def write_files(contents: Mapping[Any, bytes | Path], *, inputs: Iterable[AnyPath] = ()) -> None:
    """Check all files of a call, then write one after the other; no file is ever partly written.

    Args:
        contents: by path, the bytes to write or the path of a file to copy.
        inputs: files that must not be overwritten.
    """
    check_outputs(contents, inputs=inputs)
    for path, content in contents.items():
        write_whole(path, content)


def write_whole(path: AnyPath, content: bytes | Path) -> Path:
    """Write bytes, or a copy of a file, to `path`, completely or not at all."""
    destination = _check_destination(path, ())
    with _reporting(path):
        if _is_replaced(destination):
            _replace_file(destination, content)
        else:
            _write_to_stream(destination, content)
    return Path(path)


def _replace_file(destination: Path, content: bytes | Path) -> None:
    before = _state(destination)
    part = destination.parent / f".abstain-{secrets.token_hex(8)}.part"
    mode = 0o666 if before is None else 0o600
    try:
        with open(part, "xb", opener=lambda name, flags: os.open(name, flags, mode)) as file:
            _write(file, content)
            file.flush()
            os.fsync(file.fileno())
        if before is not None:
            _copy_permissions(part, before)
        part.replace(destination)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    _sync_folder(destination.parent)


def _write_to_stream(destination: Path, content: bytes | Path) -> None:
    """Write to a pipe, a device or a descriptor of this process, after the text that was printed before."""
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    number = _descriptor(destination)
    with destination.open("wb") if number is None else os.fdopen(os.dup(number), "wb") as file:
        _write(file, content)


def _write(file: IO[bytes], content: bytes | Path) -> None:
    if isinstance(content, bytes):
        file.write(content)
        return
    with content.open("rb") as source:
        shutil.copyfileobj(source, file)


def _check_destination(path: AnyPath, inputs: Iterable[AnyPath]) -> Path:
    """Return the file, pipe or device that a path leads to, if it can be written and is not an input."""
    with _reporting(path):
        destination = _follow_links(Path(path))
        state = _state(destination)
        if state is None:
            if not destination.parent.is_dir():
                missing = destination.parent if Path(path).parent.is_dir() else Path(path).parent
                raise ArgumentError(f"{path}: the directory {missing} does not exist; create it first")
            _check_writable(destination.parent, path)
            return destination
        if stat.S_ISDIR(state.st_mode):
            raise ArgumentError(f"{path}: is a directory; pass the path of an output file")
        if stat.S_ISBLK(state.st_mode) or stat.S_ISSOCK(state.st_mode):
            raise ArgumentError(f"{path}: is a disk or a socket; pass the path of a file or a pipe")
        if _descriptor(destination) is None and not os.access(destination, os.W_OK):
            raise ArgumentError(f"{path}: is write-protected; choose another file, or allow writing to it")
        if stat.S_ISREG(state.st_mode):
            _check_no_input(path, state, inputs)
            if _is_replaced(destination):
                _check_writable(destination.parent, path)
    return destination


def _check_no_input(path: AnyPath, state: os.stat_result, inputs: Iterable[AnyPath]) -> None:
    for source in inputs:
        try:
            same = os.path.samestat(state, Path(source).stat())
        except (OSError, ValueError):  # the reader reports the problem
            continue
        if same:
            raise ArgumentError(f"{path}: is the input {source} itself; choose another file for the output")


def _check_writable(folder: Path, path: AnyPath) -> None:
    if not os.access(folder, os.W_OK | os.X_OK):
        raise ArgumentError(f"{path}: cannot be written (the directory {folder} is write-protected)")


def _follow_links(path: Path) -> Path:
    """Return the name behind links: of a file, a pipe or a device, or of a descriptor of this process."""
    for _ in range(_MOST_LINKS):
        destination = Path(os.path.realpath(path.parent), path.name)
        if _descriptor(destination) is not None or not destination.is_symlink():
            return destination
        _check_link(destination)
        path = destination.parent / destination.readlink()
    raise ArgumentError(f"{path}: leads through too many links; pass the path of the file itself")


def _check_link(link: Path) -> None:
    """Raise if another user created the link in a folder that is writable for all users."""
    folder, owner = link.parent.stat(), link.lstat().st_uid
    shared = folder.st_mode & stat.S_ISVTX and folder.st_mode & stat.S_IWOTH
    if shared and hasattr(os, "geteuid") and owner not in (os.geteuid(), folder.st_uid):
        raise ArgumentError(
            f"{link}: is a link that another user created in a shared directory; pass the path of the file itself"
        )


def _descriptor(path: Path) -> int | None:
    """Return the number of the descriptor of this process that a path such as /dev/stdout leads to."""
    match = re.fullmatch(rf"(?:/dev/fd|/proc/{os.getpid()}/fd)/(\d+)", str(path))
    return None if match is None else int(match[1])


def _state(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except FileNotFoundError:
        return None


def _is_replaced(destination: Path) -> bool:
    """Return whether a new file is renamed to the destination; pipes, devices and descriptors are written to."""
    state = _state(destination)
    return _descriptor(destination) is None and (state is None or stat.S_ISREG(state.st_mode))


def _copy_permissions(part: Path, before: os.stat_result) -> None:
    """Give a file the owner and the permissions of the one that it replaces."""
    mode = stat.S_IMODE(before.st_mode)
    try:
        shutil.chown(part, before.st_uid, before.st_gid)
    except (OSError, AttributeError):
        # If the group changed, the new group must not get the rights of the old one.
        if part.stat().st_gid != before.st_gid:
            mode &= ~stat.S_IRWXG
    part.chmod(mode)


def _sync_folder(folder: Path) -> None:
    """Write the names in a folder to the disk; otherwise a power failure may lose a new name."""
    try:
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
    except OSError as problem:
        if problem.errno not in _NOTHING_TO_SYNC:
            raise


@contextlib.contextmanager
def _reporting(path: AnyPath, action: str = "written") -> Iterator[None]:
    """Turn errors of the operating system into a message about the output."""
    try:
        yield
    except OSError as problem:
        raise ArgumentError(f"{path}: cannot be {action} ({problem.strerror})") from None
    except AbstainError:
        raise
    except ValueError:
        raise ArgumentError(f"{str(path)!r}: cannot be the name of a file") from None
