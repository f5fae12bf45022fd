"""Files in as they are, strict JSON out of them; whole files out.

A file is read as bytes: a regular one, or a pipe, which gives what it gives once. JSON is read without NaN,
Infinity, numbers beyond a float, lone surrogates, endless nesting or duplicate keys, and then decoded by the schema
of its record (`convert`; `decode` for the parts of a log), so that whoever reads a field finds what it must be.
Everything that is written goes through `putting`: all files of one call are written beside their places and then
renamed, so that each is found whole, old or new, and all of them change or none. An input is never an output, links
are followed, and devices and pipes are written to, not replaced. What the content means is known to the callers.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import io
import json
import math
import os
import re
import secrets
import select
import shutil
import stat
import sys
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NoReturn, TypeVar

import msgspec

from abstain.errors import AbstainError, ArgumentError, FormatError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    AnyPath = str | os.PathLike[str]

# A folder that cannot be opened, or a file system that knows no such request, has nothing to bring to the disk.
_NOTHING_TO_SYNC = (errno.EACCES, errno.EINVAL, errno.ENOTSUP)
_MOST_LINKS = 40
_PATIENCE_SECONDS = 10.0
Form = TypeVar("Form")

_PIECE = 1 << 20
# How long a pipe that nobody writes to is waited for, in seconds, and how much one may give.
PIPE_PATIENCE = 3.0
PIPE_LIMIT = 1 << 30
_DEEPEST = 100
# No whole number of more digits fits a float; more of them are nobody's name either.
_MOST_DIGITS = 308
_CONSTANT = re.compile(rb'"(?:[^"\\]++|\\.)*+"|-?Infinity|NaN', re.DOTALL)
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_EXPECTED = re.compile(r"Expected `(?P<kinds>[^`]+)`(?P<rule>[^`]*?)(?:, got `(?P<got>[^`]+)`)?")
_MISSING = re.compile(r"Object missing required field `(?P<field>[^`]+)`")
_KINDS = {
    "int": "a whole number",
    "float": "a number",
    "str": "text",
    "bool": "true or false",
    "array": "a list",
    "object": "an object",
}


class SourceFile:
    """A file that may be opened more than once; a pipe gives what it gives once, so that is kept.

    Args:
        path: where it is; as text, bytes that are no UTF-8 are spelled out.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._kept: bytes | None = None

    def __str__(self) -> str:
        return os.fsencode(self.path).decode("utf-8", "backslashreplace")

    def exists(self) -> bool:
        """True where there is something to read; an error where it cannot even be looked at."""
        try:
            self.path.stat()
        except (OSError, ValueError) as problem:
            if _is_absence(problem):
                return False
            raise self._unreadable(problem) from None
        return True

    def open(self) -> IO[bytes]:
        """Return the file, opened for reading at its beginning; or say why it cannot be read."""
        try:
            mode = self.path.stat().st_mode
            if stat.S_ISREG(mode):
                return self.path.open("rb")
            if stat.S_ISFIFO(mode):
                if self._kept is None:
                    self._kept = self._drained()
                return io.BytesIO(self._kept)
        except AbstainError:
            raise
        except (OSError, ValueError) as problem:
            raise self._unreadable(problem) from None
        if stat.S_ISDIR(mode):
            raise ArgumentError(f"{self}: is a directory; name the file")
        raise ArgumentError(f"{self}: is a device; name a file or a pipe")

    def read(self) -> bytes:
        """Return all bytes of the file."""
        with self.open() as file:
            try:
                return file.read()
            except OSError as problem:
                raise self._unreadable(problem) from None

    def _unreadable(self, problem: OSError | ValueError) -> ArgumentError:
        if _is_absence(problem):
            return ArgumentError(f"{self}: no such file")
        return ArgumentError(f"{self}: cannot be read ({getattr(problem, 'strerror', problem)})")

    def _drained(self) -> bytes:
        descriptor = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK)
        try:
            return b"".join(self._pieces(descriptor))
        finally:
            os.close(descriptor)

    def _pieces(self, descriptor: int) -> Iterable[bytes]:
        total, until = 0, time.monotonic() + PIPE_PATIENCE
        while True:
            try:
                piece = os.read(descriptor, _PIECE)
            except BlockingIOError:  # somebody holds the other end, and may take as long as need be
                select.select([descriptor], [], [])
                continue
            total += len(piece)
            if total > PIPE_LIMIT:
                raise ArgumentError(
                    f"{self}: the pipe gives more than {PIPE_LIMIT:,} bytes; write them to a file first"
                )
            if piece:
                yield piece
            elif total:
                return
            elif (
                time.monotonic() > until
            ):  # without a writer a pipe reads as empty, before one comes and after
                raise ArgumentError(f"{self}: nothing was written to this pipe in {PIPE_PATIENCE:g} seconds")
            else:
                time.sleep(0.01)


def _is_absence(problem: OSError | ValueError) -> bool:
    # A name with a null byte in it is no name of any file.
    return not isinstance(problem, OSError) or problem.errno in (errno.ENOENT, errno.ENOTDIR)


def read_bytes(path: str | os.PathLike[str]) -> bytes:
    """Return the bytes of the file at `path`, or say why it cannot be read."""
    return SourceFile(path).read()


def sha256(content: bytes) -> str:
    """Return the SHA-256 of `content` in hexadecimal."""
    return hashlib.sha256(content).hexdigest()


def digest(paths: Iterable[Path]) -> str:
    """Return the SHA-256 of files of any size, one after the other."""
    total = hashlib.sha256()
    for path in paths:
        with path.open("rb") as file:
            while piece := file.read(_PIECE):
                total.update(piece)
    return total.hexdigest()


def digest_of(file: IO[bytes]) -> str:
    """Return the SHA-256 of a file that is open already."""
    file.seek(0)
    return hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]


def parse_json(content: bytes, path: object) -> Any:
    """Return the value of strict JSON; `path` is for the error message alone."""
    if not content.strip():
        raise FormatError(f"{path}: the file is empty")
    if content.startswith(b"\x1f\x8b"):
        raise FormatError(f"{path}: is compressed; unpack it first")
    try:
        value = json.loads(
            content.decode("utf-8-sig"),
            parse_constant=_refuse_constant,
            parse_float=_finite_float,
            parse_int=_bounded_int,
            object_pairs_hook=_unique_keys,
        )
        if isinstance(value, (dict, list)):
            _refuse_depth(value)
        if _SURROGATE.search(content):
            json.dumps(value, ensure_ascii=False).encode()
    except UnicodeDecodeError as problem:
        raise FormatError(f"{path}: not JSON (not UTF-8 text at byte {problem.start})") from None
    except UnicodeEncodeError:
        raise FormatError(f"{path}: not JSON (a \\u escape is half of a pair, and no character)") from None
    except json.JSONDecodeError as problem:
        raise FormatError(
            f"{path}: not JSON (line {problem.lineno}, column {problem.colno}: {problem.msg})"
        ) from None
    except RecursionError:
        raise FormatError(f"{path}: JSON nested too deeply") from None
    except FormatError as problem:
        raise FormatError(f"{path}: {problem}") from None
    return value


def convert(value: Any, form: type[Form], place: object) -> Form:
    """Return a parsed value as the record that `form` describes; the error names `place` and the field."""
    try:
        return msgspec.convert(value, form)
    except msgspec.ValidationError as problem:
        raise FormatError(f"{place}: {_reworded(problem)}") from None


def decode(text: bytes, form: type[Form], place: object) -> Form:
    """Return JSON text of another tool as the record that `form` describes, without reading what `form` leaves out.

    Such tools write NaN and Infinity, which JSON does not know: they count as null and as the largest numbers.
    """
    try:
        try:
            return msgspec.json.decode(text, type=form)
        except msgspec.ValidationError:
            raise
        except msgspec.DecodeError:
            return msgspec.json.decode(_CONSTANT.sub(_known_constant, text), type=form)
    except msgspec.ValidationError as problem:
        raise FormatError(f"{place}: {_reworded(problem)}") from None
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise FormatError(f"{place}: not JSON (cut off, or not UTF-8 text)") from None
    except RecursionError:
        raise FormatError(f"{place}: JSON nested too deeply") from None


def _known_constant(found: re.Match[bytes]) -> bytes:
    largest = repr(float.fromhex("0x1.fffffffffffffp+1023")).encode()
    return {b"NaN": b"null", b"Infinity": largest, b"-Infinity": b"-" + largest}.get(
        found.group(), found.group()
    )


def _reworded(problem: msgspec.ValidationError) -> str:
    """Say what is wrong with a record, and where in it; what stands there is never part of it."""
    # The place comes last, after a value that the message may quote; whatever quotes one is not passed on.
    text, _, where = f"{problem}{'' if ' - at `$' in str(problem) else ' - at `$`'}".rpartition(" - at `$")
    name = where.rstrip("`").removeprefix(".") or "it"
    if found := _MISSING.fullmatch(text):
        return f"{name} has no {found['field']}"
    if found := _EXPECTED.fullmatch(text):
        rule = found["rule"].replace(" of length >= ", " of at least ")
        got = f", got {_in_words(found['got'])}" if found["got"] else ""
        return f"{name} must be {_in_words(found['kinds'])}{rule}{got}"
    if "out of range" in text:
        return f"{name} is too large for a number"
    return f"{name} is none of the values that are known for it"


def _in_words(kinds: str) -> str:
    names = kinds.split(" | ")
    # A number may be whole; that needs no saying.
    words = [_KINDS.get(name, name) for name in names if name != "int" or "float" not in names]
    return " or ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def _refuse_depth(value: Any) -> None:
    """Refuse what is nested more deeply than any record: code that walks through it would come to its own end."""
    level = [value]
    for _ in range(_DEEPEST):
        parts = (part.values() if isinstance(part, dict) else part for part in level)
        level = [child for part in parts for child in part if isinstance(child, (dict, list))]
        if not level:
            return
    raise RecursionError


def _refuse_constant(name: str) -> NoReturn:
    raise FormatError(f"{name} is not JSON; write null for an undefined number")


def _finite_float(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise FormatError(f"the number {text[:20]} is too large for a float")
    return number


def _bounded_int(text: str) -> int:
    if len(text) > _MOST_DIGITS:
        raise FormatError(f"a whole number has {len(text):,} digits; at most {_MOST_DIGITS} can be read")
    return int(text)


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) != len(pairs):
        twice = next(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
        raise FormatError(f"the key {twice!r} stands twice in one object")
    return record


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
def putting(contents: Mapping[Any, bytes], *, inputs: Iterable[AnyPath] = ()) -> Iterator[None]:
    """Put files in their places together at the end of a `with` statement, or none of them if anything fails.

    They are written to the disk before the statement's body runs, beside their places; the body prints, for example.
    What cannot be taken back (a device, a pipe) is written to after the body and before any file is renamed.
    """
    places = check_outputs(contents, inputs=inputs)
    files = [_File(path, place) for path, place in places.items() if _is_file(place)]
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
class _File:
    """A file on its way: written beside its place, renamed there, and taken back if another one fails."""

    path: AnyPath
    place: Path
    part: Path | None = None
    old: Path | None = None
    moving: bool = False

    def stage(self, content: bytes) -> None:
        """Write the content beside the place; it is on the disk when this returns."""
        with _said(self.path):
            before = _state(self.place)
            self.part = self._beside("part")
            mode = 0o666 if before is None else 0o600
            with open(self.part, "xb", opener=lambda name, flags: os.open(name, flags, mode)) as file:
                file.write(content)
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


def _rename(files: list[_File]) -> None:
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


def _pour(path: AnyPath, place: Path, content: bytes) -> None:
    """Write to a device, a pipe or a descriptor of this process, after what was printed before."""
    number = _descriptor(place)
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    with _said(path), os.fdopen(_opened(path, place) if number is None else os.dup(number), "wb") as file:
        file.write(content)


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
