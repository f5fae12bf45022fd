"""Small systems whose better side is known."""

from __future__ import annotations

from abstain import Items


def careless_and_careful(count: int = 40) -> tuple[Items, Items]:
    """Return a system that is right on every second item, and one that is always right, on the same items."""
    truth, item = [0, 1] * (count // 2), [f"item {place}" for place in range(count)]
    sure = [0.5 + 0.01 * (place % 7) for place in range(count)]
    careless = Items.from_arrays(truth, [0] * count, item=item, confidence=sure)
    careful = Items.from_arrays(truth, truth, item=item, confidence=sure)
    return careless, careful
