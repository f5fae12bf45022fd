"""Engines that run SQL over the rows of a table, and SQL expressions that mean the same in every engine.

`_row_query` and `aggregation` build queries from them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import TYPE_CHECKING, Any

from abstain._units import FACTOR, GROUPS, PRIME, WHOLE_NAME

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

_BITS = 10
# Above this number the arithmetic of rounding overflows.
_LARGEST_ROUNDED = 1e290
# Engines have integers of so many digits. Longer ones, of up to twice as many, are read in two parts.
DIGITS = 18
# The short names of clusters, items and row numbers in queries.
NAME_KEYS = {"cluster": "c", "item": "i", "rows": "r"}
# Text that is blank in Python, and text that Python reads as a number or as missing; see `_values`.
_BLANK = r"[\t-\r\x1c-\x20\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}]*"
_DECIMAL = r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?"
NUMBER = rf"{_BLANK}|[\t-\r\x1c-\x20]*({_DECIMAL}|[+-]?(?i:inf|infinity|nan))[\t-\r\x1c-\x20]*"


class Engine(ABC):
    """An engine that runs queries over the rows of one table.

    Attributes:
        name: "duckdb" or "spark".
        text: the name of its text type.
        row_number: the expression that selects the number of a row.
        in_order: True if rows are numbered from 0 in the order of the table.
    """

    name: str
    text: str
    row_number: str
    in_order: bool

    @abstractmethod
    def again(self) -> Engine:
        """Return an engine for the same rows that keeps nothing yet."""

    @abstractmethod
    def source(self, *, numbers: bool = False) -> str:
        """Return the source of the rows, as ``source``; with `numbers` they have a number."""

    @abstractmethod
    def fetch(self, statement: str) -> dict[str, NDArray[Any]]:
        """Return the columns of a result: numbers, NaN for null, or objects, None for null."""

    def keep(self, name: str, statement: str, *, number: bool = False) -> object:
        """Keep the result of a query under a name; with `number` its rows get a column ``number``, from 0.

        Return an object that identifies the result (see `keeps`) until another one is kept under the name.
        """
        self._keep(name, statement, number=number)
        self._kept[name] = object()
        return self._kept[name]

    def keeps(self, name: str, kept: object) -> bool:
        """Return whether the result that is kept under a name is still the same."""
        return self._kept.get(name) is kept

    @cached_property
    def _kept(self) -> dict[str, object]:
        return {}

    @abstractmethod
    def _keep(self, name: str, statement: str, *, number: bool) -> None:
        """Keep the result of a query."""

    @abstractmethod
    def give(self, name: str, columns: Mapping[str, NDArray[Any]]) -> None:
        """Keep columns of whole numbers under a name."""

    @abstractmethod
    def known(self, name: str) -> str:
        """Return the source of a kept result, by its name."""

    @abstractmethod
    def matches(self, text: str, pattern: str) -> str:
        """Return the condition that all of a text matches a pattern."""

    @abstractmethod
    def from_hexadecimal(self, digits: str) -> str:
        """Return the expression that reads hexadecimal digits as a whole number."""


def is_blank(text: str, engine: Engine) -> str:
    """Return the condition that a text is blank. For most texts the first character decides."""
    return f"CASE WHEN {text} < '!' OR {text} >= '\x85' THEN {engine.matches(text, _BLANK)} ELSE FALSE END"


def group_of_whole(number: str) -> str:
    """Return the group of a cluster that is a whole number; see `abstain._units.group_of`."""
    folded = f"(CAST({number} % {PRIME} AS BIGINT) + {PRIME}) % {PRIME}"
    return f"CAST(({folded} * {FACTOR}) % {PRIME} % {GROUPS} AS SMALLINT)"


def group_of_text(name: str, engine: Engine) -> str:
    """Return the group of a cluster whose name is text, which may spell a whole number."""
    digits = f"replace({name}, '-', '')"
    high = f"TRY_CAST(substr({digits}, 1, length({digits}) - {DIGITS}) AS BIGINT)"
    low = f"TRY_CAST(substr({digits}, length({digits}) - {DIGITS - 1}) AS BIGINT)"
    long = f"(({high} % {PRIME}) * {10**DIGITS % PRIME} + {low} % {PRIME}) % {PRIME}"
    signed = f"CASE WHEN substr({name}, 1, 1) = '-' THEN {PRIME} - {long} ELSE {long} END"
    digest = engine.from_hexadecimal(f"substr(md5({name}), 1, 8)")
    return (
        f"CASE WHEN {name} IS NULL OR {is_blank(name, engine)} THEN NULL "
        # Most names begin with a letter, which is quicker to test than the pattern of a number.
        f"WHEN {name} >= ':' OR NOT {engine.matches(name, WHOLE_NAME.pattern)} "
        f"THEN CAST({digest} % {GROUPS} AS SMALLINT) "
        f"WHEN length({digits}) <= {DIGITS} THEN {group_of_whole(f'TRY_CAST({name} AS BIGINT)')} "
        f"WHEN length({digits}) <= {2 * DIGITS} THEN {group_of_whole(f'({signed})')} "
        "ELSE -1 END"
    )


def rounded(number: str) -> str:
    """Return a number rounded to its leading bits; between 1/2 and 1, its difference to 1 is rounded instead."""
    split = float(2 ** (53 - _BITS) + 1)

    def leading(value: str) -> str:
        return f"(({value}) * {split} - (({value}) * {split} - ({value})))"

    return (
        f"CASE WHEN {number} > 0.5 AND {number} <= 1.0 THEN 1.0 - {leading(f'1.0 - {number}')} "
        f"WHEN abs({number}) < {_LARGEST_ROUNDED} THEN {leading(number)} ELSE {number} END"
    )
