"""Short text representations of results."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

MOST_LINES, MOST_CHARACTERS = 12, 600


def few_lines(head: str, lines: Sequence[str], rest: str = "more") -> str:
    """Return a heading and as many lines as fit on a small screen; the last line counts the omitted ones.

    >>> print(few_lines("Result", ["aurc 0.1", "augrc 0.2"]))
    Result
      aurc 0.1
      augrc 0.2
    """
    shown = [_cut(head)]
    characters_left = MOST_CHARACTERS - len(shown[0]) - len(f"\n  ... and 1,000,000 {rest}")
    for number, line in enumerate(lines):
        short = f"  {_cut(line)}"
        characters_left -= len(short) + 1
        last = number == len(lines) - 1
        if characters_left < 0 or (len(shown) == MOST_LINES - 1 and not last):
            return "\n".join([*shown, f"  ... and {len(lines) - number:,} {rest}"])
        shown.append(short)
    return "\n".join(shown)


def _cut(text: str) -> str:
    return text if len(text) <= MOST_CHARACTERS // 2 else f"{text[: MOST_CHARACTERS // 2 - 3]}..."
