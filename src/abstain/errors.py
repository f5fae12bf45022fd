"""The one error tree of abstain.

Every mistake that a person can make reaches them as one of these, never as a traceback from within::

    AbstainError (a ValueError)
    ├── ArgumentError        the call is wrong: a flag, a parameter, a name       exit code 2
    └── DataError            the data are wrong: a file, a row, a signal          exit code 3
        ├── FormatError      the file is not what it should be
        └── SignalError      an item lacks the signal that a confidence needs

A message names the argument or the place (file, row, participant, item), the rule, the value, and the way
out. It never shows the contents of a text field, because that may be a patient's. What is no mistake, but
must be known by whoever reads a number, is a `ResultWarning`, which travels with the number. Nothing else
belongs in this module.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

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
    """The root: catch this to catch everything that abstain raises on purpose."""

    exit_code = 1


class ArgumentError(AbstainError):
    """A parameter or flag that cannot be what it is: the caller mends the call."""

    exit_code = 2


class AggregationError(ArgumentError):
    """A request that needs single rows of a table, which an engine does not hand over.

    Attributes:
        reason: why it needs them.
    """

    def __init__(self, label: str, reason: str, *, way_out: str = "") -> None:
        super().__init__(f"{label}: {reason}; {way_out}load the table (engine, --engine: numpy)")
        self.reason = reason


class DataError(AbstainError):
    """Data that cannot be judged as they are: the caller mends the data."""

    exit_code = 3


class FormatError(DataError):
    """A file whose form is not the one that was expected."""


class SignalError(DataError):
    """An item without the signal that the asked-for confidence is made of."""


@dataclass(frozen=True, slots=True)
class ResultWarning:
    """Something that the reader of a number must know: a stable code, and a sentence."""

    code: str
    message: str

    def __str__(self) -> str:
        return self.message


@contextlib.contextmanager
def at(*places: object, kind: type[AbstainError] = AbstainError) -> Iterator[None]:
    """Let errors of a kind say where they are: the file or the argument, or which of them, unless they do already."""
    try:
        yield
    except kind as problem:
        if any(str(place) in str(problem) for place in places):
            raise
        raise type(problem)(f"{', '.join(map(str, places))}: {problem}") from None


def lacks_memory(problem: BaseException) -> bool:
    """Return whether an error says that there is no memory, in whichever words, or wrapped in one of an engine.

    >>> lacks_memory(MemoryError()), lacks_memory(RuntimeError("can't start new thread")), lacks_memory(ValueError())
    (True, True, False)
    """
    if isinstance(problem, SystemError):
        return isinstance(problem.__cause__, MemoryError)
    return isinstance(problem, MemoryError) or str(problem) == "can't start new thread"
