"""Reading files as bytes, and strict JSON.

A file is a regular file or a pipe, which can be read only once. JSON is parsed without NaN, Infinity, numbers beyond a
float, lone surrogates, deep nesting or duplicate keys, and then decoded by the schema of its record (`convert`;
`decode` for the parts of a log). `abstain._outputs` writes files.
"""

from __future__ import annotations

import errno
import hashlib
import io
import json
import math
import os
import re
import select
import stat
import time
from collections import Counter
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NoReturn, TypeVar

import msgspec

from abstain.errors import AbstainError, ArgumentError, FormatError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

Record = TypeVar("Record")

_PIECE = 1 << 20
# Seconds to wait for the first bytes of a pipe, and the most bytes that are read from one.
PIPE_PATIENCE = 3.0
PIPE_LIMIT = 1 << 30
_DEEPEST = 100
# No whole number of more digits fits a float.
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
    """A file that may be opened more than once. The bytes of a pipe or of a translated file are kept in memory.

    `original` contains the bytes of a file before its translation; None if it was not translated.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._kept: bytes | None = None
        self.original: bytes | None = None

    def __str__(self) -> str:
        # Bytes of a path that are not UTF-8 are escaped in messages.
        return os.fsencode(self.path).decode("utf-8", "backslashreplace")

    def exists(self) -> bool:
        """Return whether the file exists; raise if the operating system refuses to answer."""
        try:
            self.path.stat()
        except (OSError, ValueError) as problem:
            if _is_absence(problem):
                return False
            raise self._unreadable(problem) from None
        return True

    def translate(self, translation: Callable[[bytes], bytes]) -> None:
        """Replace the content by its translation, which is read from now on."""
        self.original = self.read()
        self._kept = translation(self.original)

    def open(self) -> IO[bytes]:
        """Return the file, opened for reading at its beginning."""
        if self._kept is not None:
            return io.BytesIO(self._kept)
        try:
            mode = self.path.stat().st_mode
            if stat.S_ISREG(mode):
                return self.path.open("rb")
            if stat.S_ISFIFO(mode):
                self._kept = self._read_pipe()
                return io.BytesIO(self._kept)
        except AbstainError:
            raise
        except (OSError, ValueError) as problem:
            raise self._unreadable(problem) from None
        if stat.S_ISDIR(mode):
            raise ArgumentError(f"{self}: is a directory; pass the path of a file")
        raise ArgumentError(f"{self}: is a device; pass the path of a file or a pipe")

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

    def _read_pipe(self) -> bytes:
        content, until = bytearray(), time.monotonic() + PIPE_PATIENCE
        descriptor = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb", buffering=0) as pipe:
            while len(content) <= PIPE_LIMIT:
                piece = pipe.read(_PIECE)
                if piece is None:  # a writer has the pipe open, and may take its time
                    select.select([pipe], [], [])
                elif piece:
                    content += piece
                elif content:
                    return bytes(content)
                elif time.monotonic() <= until:
                    # A pipe without a writer reads as empty, both before and after a writer had it open.
                    time.sleep(0.01)
                else:
                    raise ArgumentError(
                        f"{self}: nothing was written to this pipe in {PIPE_PATIENCE:g} seconds"
                    )
        raise ArgumentError(
            f"{self}: the pipe contains more than {PIPE_LIMIT:,} bytes; write them to a file first"
        )


def _is_absence(problem: OSError | ValueError) -> bool:
    # A ValueError means a null byte in the name; no file has such a name.
    return not isinstance(problem, OSError) or problem.errno in (errno.ENOENT, errno.ENOTDIR)


def read_bytes(path: str | os.PathLike[str]) -> bytes:
    """Return the bytes of the file at `path`."""
    return SourceFile(path).read()


def sha256(content: bytes) -> str:
    """Return the SHA-256 of `content` in hexadecimal."""
    return hashlib.sha256(content).hexdigest()


def digest(files: Iterable[IO[bytes]]) -> str:
    """Return the SHA-256 of open files of any size, one after the other, each from its beginning."""
    total = hashlib.sha256()
    for file in files:
        file.seek(0)
        while piece := file.read(_PIECE):
            total.update(piece)
    return total.hexdigest()


def parse_json(content: bytes, path: object) -> Any:
    """Return the value of strict JSON; `path` is only for error messages."""
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
        raise FormatError(f"{path}: not JSON (a \\u escape is half of a surrogate pair)") from None
    except json.JSONDecodeError as problem:
        raise FormatError(
            f"{path}: not JSON (line {problem.lineno}, column {problem.colno}: {problem.msg})"
        ) from None
    except RecursionError:
        raise FormatError(f"{path}: JSON nested too deeply") from None
    except FormatError as problem:
        raise FormatError(f"{path}: {problem}") from None
    return value


def convert(value: Any, form: type[Record], location: object) -> Record:
    """Return a parsed value as a record of type `form`; an error names `location` and the field."""
    try:
        return msgspec.convert(value, form)
    except msgspec.ValidationError as problem:
        raise FormatError(f"{location}: {_describe(problem)}") from None


def decode(text: bytes, form: type[Record], location: object) -> Record:
    """Return JSON text of another tool as a record of type `form`; other fields are ignored.

    Such tools write NaN and Infinity, which are not JSON: they are read as null and as the largest numbers.
    """
    try:
        try:
            return msgspec.json.decode(text, type=form)
        except msgspec.ValidationError:
            raise
        except msgspec.DecodeError:
            return msgspec.json.decode(_CONSTANT.sub(_known_constant, text), type=form)
    except msgspec.ValidationError as problem:
        raise FormatError(f"{location}: {_describe(problem)}") from None
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise FormatError(f"{location}: not JSON (cut off, or not UTF-8 text)") from None
    except RecursionError:
        raise FormatError(f"{location}: JSON nested too deeply") from None


def _known_constant(constant: re.Match[bytes]) -> bytes:
    largest = repr(float.fromhex("0x1.fffffffffffffp+1023")).encode()
    return {b"NaN": b"null", b"Infinity": largest, b"-Infinity": b"-" + largest}.get(
        constant.group(), constant.group()
    )


def _describe(problem: msgspec.ValidationError) -> str:
    """Describe a wrong field of a record without quoting its value."""
    # The field comes last. The text before it may quote a value, so only known texts are passed on.
    text, _, path = f"{problem}{'' if ' - at `$' in str(problem) else ' - at `$`'}".rpartition(" - at `$")
    name = path.rstrip("`").removeprefix(".") or "it"
    if match := _MISSING.fullmatch(text):
        return f"{name} has no {match['field']}"
    if match := _EXPECTED.fullmatch(text):
        rule = match["rule"].replace(" of length >= ", " of at least ")
        got = f", got {_in_words(match['got'])}" if match["got"] else ""
        return f"{name} must be {_in_words(match['kinds'])}{rule}{got}"
    if "out of range" in text:
        return f"{name} is too large for a number"
    return f"{name} is not one of the allowed values"


def _in_words(kinds: str) -> str:
    names = kinds.split(" | ")
    # "a number" includes whole numbers.
    words = [_KINDS.get(name, name) for name in names if name != "int" or "float" not in names]
    return " or ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def _refuse_depth(value: Any) -> None:
    """Raise if JSON is nested more deeply than any record, because recursive code would fail on it."""
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
        duplicate = next(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
        raise FormatError(f"the key {duplicate!r} appears twice in one object")
    return record
