"""The shipped examples and how two JSON documents are compared."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

EXAMPLES = Path(__file__).parent / "data" / "examples"
# When an artifact was made and under which path its input lay says nothing about its numbers.
_INCIDENTAL = {"created_at", "path"}


def load(name: str) -> Any:
    return json.loads((EXAMPLES / name).read_text())


def differences(expected: Any, found: Any, place: str = "") -> list[str]:
    """Where `found` lacks or contradicts `expected`; numbers may differ by 1e-9, further keys are no contradiction."""
    if isinstance(expected, dict):
        if not isinstance(found, dict):
            return [f"{place}: {found!r} is no object"]
        parts = [
            differences(value, found[key], f"{place}/{key}") if key in found else [f"{place}/{key}: missing"]
            for key, value in expected.items()
            if key not in _INCIDENTAL
        ]
        return [line for part in parts for line in part]
    if isinstance(expected, list):
        if not isinstance(found, list) or len(found) != len(expected):
            return [f"{place}: not {len(expected)} values"]
        parts = [
            differences(a, b, f"{place}[{i}]") for i, (a, b) in enumerate(zip(expected, found, strict=True))
        ]
        return [line for part in parts for line in part]
    if isinstance(expected, (int, float)) and not isinstance(expected, bool):
        close = isinstance(found, (int, float)) and abs(found - expected) <= 1e-9
        return [] if close else [f"{place}: {found!r} is not {expected!r}"]
    return [] if expected == found else [f"{place}: {found!r} is not {expected!r}"]
