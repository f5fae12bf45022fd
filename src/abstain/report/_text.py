"""Lines of text: made harmless, measured, wrapped and lined up in columns. What stands in them is not known here."""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

__all__ = ["display_width", "plain_text", "text_lines", "wrapped"]

_GAP = "  "
# A column of text that may be wrapped keeps at least this many letters, if it has as many.
_LEAST = 24


def plain_text(text: str) -> str:
    """One line without anything that a terminal, an editor or a reader could take for more than letters."""
    one_line = " ".join(str(text).split())
    return "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in one_line)


def display_width(text: str) -> int:
    """Return how many places of a terminal a text takes."""
    wide = sum(unicodedata.east_asian_width(letter) in "WF" for letter in text)
    return len(text) + wide - sum(unicodedata.combining(letter) > 0 for letter in text)


def wrapped(text: str, width: int) -> list[str]:
    """Return a text as lines within a width: broken at spaces, else after ``_ / - @ , [``, else anywhere.

    >>> wrapped("retrieval_similarity_mean is tied", 14)
    ['retrieval_', 'similarity_', 'mean is tied']
    """
    lines, line = [], ""
    for piece in re.findall(r"[^\s_/@,\[-]*[_/@,\[-]?|\s+", text):
        # A piece that fits on no line is cut.
        while display_width(line + piece.rstrip()) > width:
            if line.strip():
                lines.append(line.rstrip())
                line, piece = "", piece.lstrip()
                continue
            cut = max((end for end in range(1, len(piece)) if display_width(piece[:end]) <= width), default=1)
            if cut >= len(piece):
                break
            lines.append(piece[:cut])
            line, piece = "", piece[cut:]
        line += piece if line or not lines else piece.lstrip()
    return [*lines, line.rstrip()] if line.strip() or not lines else lines


def text_lines(
    rows: Sequence[Sequence[str]],
    right: Sequence[bool],
    width: int | None = None,
    *,
    shrink: Collection[int] = (),
    least: int = _LEAST,
) -> tuple[list[str], bool]:
    """Return rows, the heading first, as lines in columns with a rule below the heading, and whether they fit.

    Args:
        rows: the cells, plain text.
        right: for each column, whether it stands to the right.
        width: what the lines keep to; None for any.
        shrink: the columns that may be wrapped, the widest first.
        least: the letters that a wrapped column keeps.

    >>> print("\\n".join(text_lines([["x", "n"], ["abc", "1"]], [False, True])[0]))
    x    n
    ---  -
    abc  1
    """
    widths = [max(map(display_width, column)) for column in zip(*rows, strict=True)]
    excess = 0 if width is None else sum(widths) + len(_GAP) * (len(widths) - 1) - width
    while excess > 0:
        widest = max(shrink, key=lambda place: widths[place], default=None)
        if widest is None or widths[widest] <= least:
            break
        widths[widest] -= 1
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
