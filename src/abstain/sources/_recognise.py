"""What a file is, by what it holds; its ending only helps to word an error."""

from __future__ import annotations

import glob
import gzip
import hashlib
import json
import os
import zlib
from pathlib import Path
from typing import TYPE_CHECKING

from abstain import _files, _validate
from abstain.errors import ArgumentError, FormatError
from abstain.sources._json_stream import outer_keys
from abstain.sources._lm_eval import LM_EVAL_KEYS

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["FORMATS", "digest", "expand", "recognise"]

FORMATS = {
    "run": "run file",
    "evaluation": "evaluation file",
    "inspect": "Inspect log",
    "lm-eval": "lm-eval samples",
    "csv": "CSV table",
    "parquet": "Parquet table",
    "jsonl": "JSONL table",
}
_BEGINNING = 1 << 20
_PATTERN = "*?["
_LINES = (".jsonl", ".ndjson")


def expand(source: str | os.PathLike[str] | Iterable[str | os.PathLike[str]]) -> list[Path]:
    """Return the files that a path, a pattern or several of either name; a name that exists is no pattern."""
    parts = [source] if isinstance(source, (str, os.PathLike)) else list(source)
    paths: list[Path] = []
    for part in parts:
        path = Path(part)
        if any(letter in str(part) for letter in _PATTERN) and not path.exists():
            found = sorted(glob.glob(str(part), recursive=True))  # noqa: PTH207  (patterns may be absolute)
            if not found:
                raise ArgumentError(f"{part}: no file fits this pattern")
            paths += [Path(name) for name in found if Path(name).is_file()]
        else:
            paths.append(path)
    if not paths:
        raise ArgumentError("no file was named; pass a path, a pattern or several paths")
    for path in paths:
        if path.is_dir():
            raise ArgumentError(f"{path}: is a directory; name files, or a pattern such as {path}/*.eval")
        if not path.exists():
            near = _near(path)
            raise ArgumentError(f"{path}: no such file{near}")
    return paths


def recognise(path: Path) -> str:
    """Return the format of a file, one of `FORMATS`."""
    beginning, whole = _beginning(path)
    if beginning.startswith(b"PK\x03\x04"):
        return "inspect"
    if beginning.startswith(b"PAR1"):
        return "parquet"
    if beginning.startswith((b"ARROW1", b"FEA1")):
        raise FormatError(f"{path}: an Arrow file; open it with pyarrow and pass the table")
    text = beginning.removeprefix(b"\xef\xbb\xbf").lstrip()
    if not text:
        raise FormatError(f"{path}: the file is empty")
    if path.suffix == ".json" and text[:1] not in (b"{", b"["):
        raise _unknown_json(path, whole=whole)
    if b"\x00" in beginning[:4096]:
        raise FormatError(f"{path}: neither text nor any format known here ({', '.join(FORMATS.values())})")
    return _json_kind(text, path, whole=whole) if text[:1] in (b"{", b"[") else "csv"


def digest(paths: Iterable[Path]) -> str:
    """Return the SHA-256 of files, one after the other."""
    total = hashlib.sha256()
    for path in paths:
        with path.open("rb") as file:
            while piece := file.read(_BEGINNING):
                total.update(piece)
    return total.hexdigest()


def _json_kind(text: bytes, path: Path, *, whole: bool) -> str:
    line, _, rest = text.partition(b"\n")
    first = _keys(line)
    keys = first if first is not None else set(outer_keys(text))
    if keys >= LM_EVAL_KEYS or (first is None and not whole and keys >= {"doc_id", "doc"}):
        return "lm-eval"
    if "experiments" in keys:
        return "run"
    if "evaluation_results" in keys or {"backend_name", "suite"} <= keys or keys == {"metrics", "execution"}:
        return "evaluation"
    if "eval" in keys and keys & {"version", "status", "samples", "plan"}:
        return "inspect"
    lines = first is not None and (rest.lstrip()[:1] == b"{" or path.suffix in _LINES)
    # A list of objects is a table too; so, by its ending alone, is a line longer than what was looked at.
    if lines or (text[1:].lstrip()[:1] == b"{" and text[:1] == b"[") or (not whole and path.suffix in _LINES):
        return "jsonl"
    raise _unknown_json(path, whole=whole)


def _unknown_json(path: Path, *, whole: bool) -> FormatError:
    if whole:
        _files.parse_json(_files.read_bytes(path), path)  # says where it is no JSON at all
    return FormatError(
        f"{path}: not a run file (an object with a list of experiments), nor any other form of JSON known here "
        "(evaluation results, an Inspect log, one object per line); say which it is (format, --input-format)"
    )


def _keys(line: bytes) -> set[str] | None:
    """Return the keys of a line that is one whole object, else None."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return set(record) if isinstance(record, dict) else None


def _beginning(path: Path) -> tuple[bytes, bool]:
    try:
        with path.open("rb") as file:
            beginning = file.read(_BEGINNING)
        if beginning.startswith(b"\x1f\x8b"):
            with gzip.open(path) as file:
                beginning = file.read(_BEGINNING)
    except PermissionError:
        raise ArgumentError(f"{path}: cannot be read (permission denied)") from None
    except (OSError, EOFError, zlib.error):
        raise FormatError(f"{path}: cannot be read; the file may be damaged or cut off") from None
    return beginning, len(beginning) < _BEGINNING


def _near(path: Path) -> str:
    names = [other.name for other in path.parent.iterdir()] if path.parent.is_dir() else []
    return _validate.suggestion(path.name, names)
