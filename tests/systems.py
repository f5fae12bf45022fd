"""Two small systems, one of which is better."""

from __future__ import annotations

from abstain import Items


def careless_and_careful(count: int = 40) -> tuple[Items, Items]:
    """Return a system that is right on every second item, and one that is always right, on the same items."""
    truth, item = [0, 1] * (count // 2), [f"item {number}" for number in range(count)]
    sure = [0.5 + 0.01 * (number % 7) for number in range(count)]
    careless = Items.from_arrays(truth, [0] * count, item=item, confidence=sure)
    careful = Items.from_arrays(truth, truth, item=item, confidence=sure)
    return careless, careful
