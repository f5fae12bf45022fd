"""The example files, and the comparison of two JSON documents."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

EXAMPLES = Path(__file__).parent / "data" / "examples"
# Fields of a results JSON that do not depend on its numbers.
_INCIDENTAL = {"created_at", "path"}


def load(name: str) -> Any:
    return json.loads((EXAMPLES / name).read_text())


def differences(expected: Any, actual: Any, location: str = "") -> list[str]:
    """Return the differences of `actual` to `expected`, except numbers that differ by at most 1e-9 and further keys."""
    if isinstance(expected, dict):
        if not isinstance(actual, dict):
            return [f"{location}: {actual!r} is not an object"]
        parts = [
            differences(value, actual[key], f"{location}/{key}")
            if key in actual
            else [f"{location}/{key}: missing"]
            for key, value in expected.items()
            if key not in _INCIDENTAL
        ]
        return [line for part in parts for line in part]
    if isinstance(expected, list):
        if not isinstance(actual, list) or len(actual) != len(expected):
            return [f"{location}: not {len(expected)} values"]
        parts = [
            differences(a, b, f"{location}[{i}]")
            for i, (a, b) in enumerate(zip(expected, actual, strict=True))
        ]
        return [line for part in parts for line in part]
    if isinstance(expected, (int, float)) and not isinstance(expected, bool):
        close = isinstance(actual, (int, float)) and abs(actual - expected) <= 1e-9
        return [] if close else [f"{location}: {actual!r} is not {expected!r}"]
    return [] if expected == actual else [f"{location}: {actual!r} is not {expected!r}"]
