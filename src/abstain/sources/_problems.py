"""Problems of rows: raised one by one, or collected for whoever wants the whole list."""

from __future__ import annotations

from dataclasses import dataclass, field

from abstain.errors import DataError

__all__ = ["Problems"]


@dataclass(slots=True)
class Problems:
    """What is wrong with the rows of a source.

    Attributes:
        collect: False to raise the first problem, True to go on and remember all.
        label: what the source is called.
        found: the problems so far.

    >>> problems = Problems()
    >>> problems.report("the item ids must be unique; one stands again at row 3", way_out="name another column")
    >>> problems.found
    ['the item ids must be unique; one stands again at row 3; name another column']
    """

    collect: bool = True
    label: str = ""
    found: list[str] = field(default_factory=list)

    def report(self, message: str, *, way_out: str = "") -> None:
        """Raise the problem, or remember it."""
        text = f"{message}{way_out and '; ' + way_out}"
        if not self.collect:
            raise DataError(f"{self.label}: {text}")
        self.found.append(text)
