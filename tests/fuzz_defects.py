"""Defects that are put in on purpose: each is called in a child of the harness, before it runs anything.

They stand around the public doors of the package, so that whoever rebuilds a room behind them need not come here.
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
    """Let `then` see every file that was read, and its items."""
    read = readers.read_systems

    def defective(source: Any, **options: Any) -> dict[str, Items]:
        place = Path(source) if isinstance(source, (str, Path)) else Path("frame")
        return {name: then(place, items) for name, items in read(source, **options).items()}

    readers.read_systems = defective


def raises_a_key_error() -> None:
    """Three items are too many."""

    def then(path: Path, items: Items) -> Items:
        if len(items) >= 3:
            raise KeyError("row")
        return items

    _after_reading(then)


def quotes_a_cell() -> None:
    """The message of an error has the text of a record in it."""

    def then(path: Path, items: Items) -> Items:
        place = path.read_bytes().find(b"QZXJ")
        if place >= 0:
            raise DataError(f"{path}: row 0: cannot judge {path.read_bytes()[place : place + 6]!r}")
        return items

    _after_reading(then)


def doubles_a_row() -> None:
    """JSONL has its last row twice."""

    def then(path: Path, items: Items) -> Items:
        return (
            items.take(np.append(np.arange(len(items)), len(items) - 1)) if path.suffix == ".jsonl" else items
        )

    _after_reading(then)


def changes_its_input() -> None:
    """A line feed is added to what is read."""

    def then(path: Path, items: Items) -> Items:
        path.write_bytes(path.read_bytes() + b"\n")
        return items

    _after_reading(then)


def leaves_a_file() -> None:
    """A file is written before it is known that all is well."""

    def then(path: Path, items: Items) -> Items:
        Path("half.json").write_text("{")
        raise DataError(f"{path}: row 0: not good enough")

    _after_reading(then)


def colours_the_terminal() -> None:
    """What was read is said in red."""

    def then(path: Path, items: Items) -> Items:
        print(f"\x1b[31m{path}\x1b[0m", file=sys.stderr)
        return items

    _after_reading(then)


def warns() -> None:
    """A warning of Python reaches whoever looks at the terminal."""

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
    """An error is said twice, and the second time over two lines."""

    def then(path: Path, items: Items) -> Items:
        print(f"abstain: {path}: something is wrong", file=sys.stderr)
        raise DataError(f"{path}: row 0: not\ngood enough")

    _after_reading(then)


def names_no_place() -> None:
    """An error says that something is wrong, and not where."""

    def then(path: Path, items: Items) -> Items:
        raise DataError("something is wrong")

    _after_reading(then)


def refuses_sound_input() -> None:
    """What is sound is refused, by a rule that nobody wrote down."""

    def then(path: Path, items: Items) -> Items:
        raise DataError(f"{path}: today is Monday")

    _after_reading(then)
