"""The error types of abstain.

Every mistake of a user raises one of these errors, never another exception from inside the package::

    AbstainError (a ValueError)
    ├── ArgumentError        the call is wrong: an option, a parameter, a name    exit code 2
    └── DataError            the data are wrong: a file, a row, a signal          exit code 3
        ├── FormatError      the file does not have the expected format
        └── SignalError      an item lacks the signal that a confidence needs

A message names the argument or the location (file, row, participant, item), the rule, the value, and the remedy. It
never contains text from a record, because that may be confidential. A `ResultWarning` is not an error: it is a fact
that the reader of a number must know, and it is stored with the number.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = [
    "AbstainError",
    "AggregationError",
    "ArgumentError",
    "DataError",
    "FormatError",
    "ResultWarning",
    "SignalError",
    "at",
    "lacks_memory",
]


class AbstainError(ValueError):
    """The base class of all errors that abstain raises on purpose."""

    exit_code = 1


class ArgumentError(AbstainError):
    """An invalid parameter or option: the caller must fix the call."""

    exit_code = 2


class AggregationError(ArgumentError):
    """A request that needs single rows of a table, which an engine does not return.

    Attributes:
        reason: why the request needs them.
    """

    def __init__(self, label: str, reason: str, *, way_out: str = "") -> None:
        super().__init__(f"{label}: {reason}; {way_out}load the table (engine, --engine: numpy)")
        self.reason = reason


class DataError(AbstainError):
    """Invalid data: the caller must fix the data."""

    exit_code = 3


class FormatError(DataError):
    """A file that does not have the expected format."""


class SignalError(DataError):
    """An item lacks the signal from which the requested confidence is computed."""


@dataclass(frozen=True, slots=True)
class ResultWarning:
    """A fact that the reader of a number must know: a stable code, and a sentence."""

    code: str
    message: str

    def __str__(self) -> str:
        return self.message


# A message lists at most so many names, of at most so many characters each.
_MOST_NAMES, _LONGEST_NAME, LONGEST_PATH = 20, 60, 4096


def list_names(names: Iterable[object], *, longest: int = _LONGEST_NAME) -> str:
    """Return names for a message: all of them, or the first ones and the number of the others.

    Names of more than `longest` characters are cut.

    >>> list_names(["a", "b", "c"])
    'a, b, c'
    >>> list_names(range(300_000)).partition("18, ")[2]
    '19 and 299,980 more'
    """
    every = [name if isinstance(name, str) else str(name) for name in names]
    shown = [name if len(name) <= longest else f"{name[:longest]}…" for name in every[:_MOST_NAMES]]
    more = f" and {len(every) - len(shown):,} more" if len(every) > len(shown) else ""
    return f"{', '.join(shown)}{more}"


@contextlib.contextmanager
def at(*locations: object, kind: type[AbstainError] = AbstainError) -> Iterator[None]:
    """Prefix the messages of errors with locations, such as a file or an argument, unless they already name one."""
    try:
        yield
    except kind as problem:
        if any(str(location) in str(problem) for location in locations):
            raise
        raise type(problem)(f"{list_names(locations, longest=LONGEST_PATH)}: {problem}") from None


def lacks_memory(problem: BaseException) -> bool:
    """Return whether an error means that memory ran out, also if an engine wrapped it in another error.

    >>> lacks_memory(MemoryError()), lacks_memory(RuntimeError("can't start new thread")), lacks_memory(ValueError())
    (True, True, False)
    """
    if isinstance(problem, SystemError):
        return isinstance(problem.__cause__, MemoryError)
    return isinstance(problem, MemoryError) or str(problem) == "can't start new thread"
