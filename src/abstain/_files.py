"""Strict JSON in, whole files out.

JSON is read without NaN, Infinity, numbers beyond a float, or duplicate keys; a file is written beside its
place and then renamed, so that nobody ever finds half of one. What the content means is known to the callers.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import tempfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from abstain.errors import ArgumentError, FormatError

if TYPE_CHECKING:
    from collections.abc import Iterable

_PIECE = 1 << 20


def read_bytes(path: str | os.PathLike[str]) -> bytes:
    """Return the bytes of the file at `path`, or say why it cannot be read."""
    try:
        return Path(path).read_bytes()
    except FileNotFoundError:
        raise ArgumentError(f"{path}: no such file") from None
    except IsADirectoryError:
        raise ArgumentError(f"{path}: is a directory; name the file") from None
    except OSError as problem:
        raise ArgumentError(f"{path}: cannot be read ({problem.strerror})") from None


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


def parse_json(content: bytes, path: str | os.PathLike[str]) -> Any:
    """Return the value of strict JSON; `path` is for the error message alone."""
    if not content.strip():
        raise FormatError(f"{path}: the file is empty")
    try:
        return json.loads(
            content.decode("utf-8-sig"),
            parse_constant=_refuse_constant,
            parse_float=_finite_float,
            object_pairs_hook=_unique_keys,
        )
    except UnicodeDecodeError as problem:
        raise FormatError(f"{path}: not JSON (not UTF-8 text at byte {problem.start})") from None
    except json.JSONDecodeError as problem:
        raise FormatError(
            f"{path}: not JSON (line {problem.lineno}, column {problem.colno}: {problem.msg})"
        ) from None
    except RecursionError:
        raise FormatError(f"{path}: JSON nested too deeply") from None
    except FormatError as problem:
        raise FormatError(f"{path}: {problem}") from None
    except ValueError:
        raise FormatError(f"{path}: holds an integer with more digits than can be read") from None


def _refuse_constant(name: str) -> NoReturn:
    raise FormatError(f"{name} is not JSON; write null for an undefined number")


def _finite_float(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise FormatError(f"the number {text[:20]} is too large for a float")
    return number


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) != len(pairs):
        twice = next(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
        raise FormatError(f"the key {twice!r} stands twice in one object")
    return record


def check_output(path: str | os.PathLike[str]) -> Path:
    """Return `path` if a file can be put there: call this before the work, not after it."""
    place = Path(path)
    if place.is_dir():
        raise ArgumentError(f"{place}: is a directory; name the output file")
    if not place.parent.is_dir():
        raise ArgumentError(f"{place}: the directory {place.parent} does not exist; create it first")
    return place


def write_whole(path: str | os.PathLike[str], content: bytes) -> Path:
    """Write `content` beside `path` and rename it there: the file is whole or it is not there."""
    place = check_output(path)
    try:
        handle, name = tempfile.mkstemp(dir=place.parent, prefix=f".{place.name}.", suffix=".part")
    except OSError as problem:
        raise ArgumentError(f"{place}: cannot be written ({problem.strerror})") from None
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        Path(name).chmod(0o666 & ~_umask())
        Path(name).replace(place)
    except BaseException as problem:
        with contextlib.suppress(OSError):
            Path(name).unlink()
        if isinstance(problem, OSError):
            raise ArgumentError(f"{place}: cannot be written ({problem.strerror})") from None
        raise
    return place


def _umask() -> int:
    # The mask can only be read by setting it.
    current = os.umask(0)
    os.umask(current)
    return current
