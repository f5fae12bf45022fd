"""How an object reads where Python shows it: in a few lines, whatever it holds.

A notebook and a prompt print what an expression gives. An array, a mapping or a long tuple would fill the screen, so
each is told by its size; an object that has words of its own is told by them. The class says ``__repr__ = brief``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

MOST_LINES, MOST_CHARACTERS = 12, 600
_LONGEST_PART = 90
_FEW = 4


def brief(self: object) -> str:
    """Return a record as its class and its fields, each in a few words.

    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class Curve:
    ...     name: str
    ...     risk: np.ndarray
    ...     __repr__ = brief
    >>> Curve("llm", np.array([0.25, 0.5, 1.0]))
    Curve(name='llm', risk=<3 numbers from 0.25 to 1>)
    """
    name = type(self).__name__
    room = MOST_CHARACTERS - len(name) - len("(, ...)")
    parts: list[str] = []
    for field in _shown_fields(self):
        part = f"{field}={_told(getattr(self, field))}"
        room -= len(part) + len(", ")
        if room < 0:
            parts.append("...")
            break
        parts.append(part)
    return f"{name}({', '.join(parts)})"


def few_lines(head: str, lines: Sequence[str], rest: str = "more") -> str:
    """Return a heading and as many lines below it as are read at a glance; the last says how many are left out.

    >>> print(few_lines("Result", ["aurc 0.1", "augrc 0.2"]))
    Result
      aurc 0.1
      augrc 0.2
    """
    shown = [_cut(head, MOST_CHARACTERS // 2)]
    room = MOST_CHARACTERS - len(shown[0]) - len(f"\n  ... and 1,000,000 {rest}")
    for place, line in enumerate(lines):
        short = f"  {_cut(line, MOST_CHARACTERS // 2)}"
        room -= len(short) + 1
        last = place == len(lines) - 1
        if room < 0 or (len(shown) == MOST_LINES - 1 and not last):
            return "\n".join([*shown, f"  ... and {len(lines) - place:,} {rest}"])
        shown.append(short)
    return "\n".join(shown)


def _shown_fields(record: Any) -> list[str]:
    if is_dataclass(record):
        return [field.name for field in fields(record) if field.repr]
    return list(record.__struct_fields__)


def _told(value: Any) -> str:
    """A value in a few words."""
    if isinstance(value, np.ndarray):
        return _array(value)
    if isinstance(value, str):
        return repr(_cut(value, _LONGEST_PART))
    plain = repr(value) if isinstance(value, (bool, int, float, type(None), tuple, list, dict)) else ""
    if plain and len(plain) <= _LONGEST_PART:
        return plain
    if isinstance(value, Mapping):
        names = [str(name) for name in value][:_FEW]
        more = ", ..." if len(value) > _FEW else ""
        return _cut(f"<{len(value):,} by name: {', '.join(names)}{more}>", _LONGEST_PART)
    if isinstance(value, (tuple, list)):
        kinds = {type(each).__name__ for each in value}
        return f"<{len(value):,} {kinds.pop() if len(kinds) == 1 else 'values'}>"
    words = str(value)
    return words if len(words) <= _LONGEST_PART and "\n" not in words else f"<{type(value).__name__}>"


def _array(values: np.ndarray[Any, Any]) -> str:
    size = " x ".join(f"{length:,}" for length in values.shape)
    if values.dtype.kind == "b":
        return f"<{int(values.sum()):,} of {size} true>"
    if values.dtype.kind not in "iuf":
        return f"<{size} values>"
    known = values[~np.isnan(values)]
    ends = f" from {known.min():g} to {known.max():g}" if known.size else ""
    return f"<{size} numbers{ends}>"


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 3]}..."
