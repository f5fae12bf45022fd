"""Deliberate defects. A child process of the fuzzing harness calls one of them before it runs anything.

They wrap public functions of the package, so that they do not depend on private modules.
"""

from __future__ import annotations

import sys
import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from abstain import readers
from abstain.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Callable

    from abstain.items import Items


def _after_reading(then: Callable[[Path, Items], Items]) -> None:
    """Call `then` with the path of every file that is read and its items."""
    read = readers.read_systems

    def defective(source: Any, **options: Any) -> dict[str, Items]:
        path = Path(source) if isinstance(source, (str, Path)) else Path("frame")
        return {name: then(path, items) for name, items in read(source, **options).items()}

    readers.read_systems = defective


def raises_a_key_error() -> None:
    """Three or more items raise a KeyError."""

    def then(path: Path, items: Items) -> Items:
        if len(items) >= 3:
            raise KeyError("row")
        return items

    _after_reading(then)


def quotes_a_cell() -> None:
    """An error message contains the text of a record."""

    def then(path: Path, items: Items) -> Items:
        start = path.read_bytes().find(b"QZXJ")
        if start >= 0:
            raise DataError(f"{path}: row 0: cannot evaluate {path.read_bytes()[start : start + 6]!r}")
        return items

    _after_reading(then)


def doubles_a_row() -> None:
    """The last row of a JSONL file is read twice."""

    def then(path: Path, items: Items) -> Items:
        return (
            items.take(np.append(np.arange(len(items)), len(items) - 1)) if path.suffix == ".jsonl" else items
        )

    _after_reading(then)


def changes_its_input() -> None:
    """A line feed is added to the input file."""

    def then(path: Path, items: Items) -> Items:
        path.write_bytes(path.read_bytes() + b"\n")
        return items

    _after_reading(then)


def leaves_a_file() -> None:
    """A file is written although the command fails."""

    def then(path: Path, items: Items) -> Items:
        Path("half.json").write_text("{")
        raise DataError(f"{path}: row 0: not good enough")

    _after_reading(then)


def colours_the_terminal() -> None:
    """The name of the file is printed in red."""

    def then(path: Path, items: Items) -> Items:
        print(f"\x1b[31m{path}\x1b[0m", file=sys.stderr)
        return items

    _after_reading(then)


def warns() -> None:
    """A Python warning is printed on the terminal."""

    def then(path: Path, items: Items) -> Items:
        warnings.warn("something is odd", RuntimeWarning, stacklevel=2)
        return items

    _after_reading(then)


def hangs() -> None:
    """Reading never ends."""

    def then(path: Path, items: Items) -> Items:
        time.sleep(1000)
        return items

    _after_reading(then)


def takes_memory() -> None:
    """A small file takes a gigabyte."""

    def then(path: Path, items: Items) -> Items:
        held = b"x" * (1 << 30)
        return items.take(np.arange(len(items) * bool(held)))

    _after_reading(then)


def says_two_things() -> None:
    """An error is printed twice, the second time on two lines."""

    def then(path: Path, items: Items) -> Items:
        print(f"abstain: {path}: something is wrong", file=sys.stderr)
        raise DataError(f"{path}: row 0: not\ngood enough")

    _after_reading(then)


def names_no_place() -> None:
    """An error message does not name a location."""

    def then(path: Path, items: Items) -> Items:
        raise DataError("something is wrong")

    _after_reading(then)


def refuses_sound_input() -> None:
    """Valid input is refused for an undocumented reason."""

    def then(path: Path, items: Items) -> Items:
        raise DataError(f"{path}: today is Monday")

    _after_reading(then)
