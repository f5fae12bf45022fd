"""Lines of text: made printable, measured, wrapped and aligned in columns."""

from __future__ import annotations

import json
import re
import unicodedata
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

_GAP = "  "
# A column of text that may be wrapped keeps at least this many letters, if it has as many.
_LEAST = 24


def plain_text(text: str) -> str:
    """Return a text as one line of printable characters."""
    return printable(" ".join(str(text).split()))


def printable(text: str) -> str:
    r"""Return a text without control characters, changes of direction and invisible characters, which are replaced.

    >>> printable("red \x1b[31m, turned \u202e")
    'red �[31m, turned �'
    """
    return _letter_by_letter(text, lambda letter: " " if letter.isspace() else "\N{REPLACEMENT CHARACTER}")


def printable_json(text: str) -> str:
    r"""Return the same JSON with unprintable characters escaped, so that nothing is lost.

    >>> print(printable_json('["\u202e"]'))
    ["\u202e"]
    """
    return _letter_by_letter(text, lambda letter: json.dumps(letter)[1:-1])


def _letter_by_letter(text: str, replaced: Callable[[str], str]) -> str:
    if all(map(str.isprintable, text.split("\n"))):
        return text
    return "".join(letter if letter.isprintable() or letter == "\n" else replaced(letter) for letter in text)


def display_width(text: str) -> int:
    """Return the width of a text in a terminal."""
    wide = sum(unicodedata.east_asian_width(letter) in "WF" for letter in text)
    return len(text) + wide - sum(unicodedata.combining(letter) > 0 for letter in text)


def wrapped(text: str, width: int) -> list[str]:
    """Return a text as lines within a width, broken at spaces; words that are too long, after ``_ / - @ ,``.

    >>> wrapped("retrieval_similarity_mean is tied", 14)
    ['retrieval_', 'similarity_', 'mean is tied']
    """
    lines = [""]
    for word in text.split(" "):
        pieces = [word] if display_width(word) <= width else re.findall(r"[^_/@,-]+[_/@,-]*|[_/@,-]+", word)
        for number, piece in enumerate(pieces):
            gap = " " if number == 0 and lines[-1] else ""
            if display_width(lines[-1] + gap + piece) <= width:
                lines[-1] += gap + piece
                continue
            if lines[-1]:
                lines.append("")
            for letter in piece:
                if lines[-1] and display_width(lines[-1] + letter) > width:
                    lines.append("")
                lines[-1] += letter
    return lines


def text_lines(
    rows: Sequence[Sequence[str]],
    right: Sequence[bool],
    width: int | None = None,
    *,
    shrink: Collection[int] = (),
    least: int = _LEAST,
) -> tuple[list[str], bool]:
    r"""Return rows, the heading first, as lines in columns with a rule below the heading, and whether they fit.

    The columns in `shrink` are wrapped until the lines fit the width, the widest first. Each keeps at least `least`
    letters, and no word of a heading is broken.

    >>> print("\n".join(text_lines([["x", "n"], ["abc", "1"]], [False, True])[0]))
    x    n
    ---  -
    abc  1
    """
    widths = [max(map(display_width, column)) for column in zip(*rows, strict=True)]
    excess = 0 if width is None else sum(widths) + len(_GAP) * (len(widths) - 1) - width
    floors = [max(least, *map(display_width, title.split(" "))) for title in rows[0]]
    while excess > 0:
        free = [column for column in shrink if widths[column] > floors[column]]
        if not free:
            break
        widths[max(free, key=lambda column: widths[column])] -= 1
        excess -= 1
    lines = []
    for number, row in enumerate(rows):
        parts = [wrapped(text, size) for text, size in zip(row, widths, strict=True)]
        for height in range(max(map(len, parts))):
            cells = [
                _padded(part[height] if height < len(part) else "", size, right=side)
                for part, size, side in zip(parts, widths, right, strict=True)
            ]
            lines.append(_GAP.join(cells).rstrip())
        if number == 0:
            lines.append(_GAP.join("-" * size for size in widths))
    return lines, excess <= 0


def _padded(text: str, width: int, *, right: bool) -> str:
    space = " " * (width - display_width(text))
    return space + text if right else text + space
