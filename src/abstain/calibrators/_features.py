"""Features and targets: what a calibrator learns from, read off items.

A feature is a signal by its name. Where the signal is null a cautious default stands in, and how often that
happened is counted, so that it can be said aloud; a signal that an item does not have at all is an error. A
target says what it means to be right.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from abstain import _validate
from abstain.errors import ArgumentError, SignalError
from abstain.losses import item_loss

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from abstain.items import Items

    Floats = NDArray[np.float64]

__all__ = ["TARGETS", "Features", "extract_features", "target_values"]

TARGETS = ("correctness", "near_correct", "loss")
BINARY_TARGETS = ("correctness", "near_correct")

# The middle of the scale of 1 to 5 on which models state their confidence.
_MIDDLE = 3.0


@dataclass(frozen=True, eq=False, slots=True)
class Features:
    """The features of items, one column each.

    Attributes:
        names: the signals, in the order of the columns.
        matrix: the values, (items, features).
        filled: True where a null was filled in, (items, features).
    """

    names: tuple[str, ...]
    matrix: Floats
    filled: NDArray[np.bool_]

    def filled_counts(self, rows: NDArray[np.bool_] | None = None) -> dict[str, int]:
        """Return how many values of each feature were filled in, among `rows`; features without any are left out."""
        filled = self.filled if rows is None else self.filled[rows]
        counts = filled.sum(axis=0).tolist()
        return {name: count for name, count in zip(self.names, counts, strict=True) if count}


def extract_features(items: Items, names: Iterable[str]) -> Features:
    """Return signals as features; a null becomes 0 (similarities and most others) or 3 (``*confidence*``).

    >>> from abstain import Items
    >>> items = Items.from_arrays([1, 0], [1, 1], signals={"verbalized_confidence": [5, None]})
    >>> features = extract_features(items, ["verbalized_confidence"])
    >>> features.matrix.tolist(), features.filled_counts()
    ([[5.0], [3.0]], {'verbalized_confidence': 1})
    """
    wanted = tuple(names)
    if not wanted or len(set(wanted)) != len(wanted):
        raise ArgumentError(
            f"features must name at least one signal and none twice, got {', '.join(wanted) or 'none'}"
        )
    columns, filled = [], []
    for name in wanted:
        signal = items.signals.get(name)
        if signal is None:
            hint = _validate.suggestion(name, items.signals)
            raise SignalError(
                f"there is no signal {name!r} to make a feature of{hint}; signals here: "
                f"{', '.join(sorted(items.signals)) or 'none'}"
            )
        if signal.absent.any():
            row = int(np.argmax(signal.absent))
            raise SignalError(
                f"feature {name} is missing for {items.describe_row(row)} ({int(signal.absent.sum())} such items)"
            )
        filled.append(signal.null)
        columns.append(np.where(signal.null, null_default(name), signal.values))
    return Features(wanted, np.stack(columns, axis=1), np.stack(filled, axis=1))


def null_default(name: str) -> float:
    """Return what a null counts as: the middle of 1 to 5 for a stated confidence, else 0."""
    return _MIDDLE if "confidence" in name and "similarity" not in name else 0.0


def target_values(items: Items, target: str) -> Floats:
    """Return the target of every answered item; NaN elsewhere.

    ``correctness`` is 1 where the answer is right, ``near_correct`` where it is off by at most 1, and
    ``loss`` is ``1 - |prediction - truth| / width`` of the declared scale.

    >>> from abstain import Items
    >>> target_values(Items.from_arrays([3, 0, 2], [1, 0, 1], scale=(0, 3)), "loss").round(4)
    array([0.3333, 1.    , 0.6667])
    """
    _validate.choice(target, "target", TARGETS)
    if target == "correctness":
        return 1.0 - item_loss(items, "zero_one").values
    if target == "near_correct":
        distance = item_loss(items, "abs").values
        return np.where(np.isnan(distance), np.nan, (distance <= 1.0).astype(np.float64))
    return 1.0 - item_loss(items, "abs_norm").values
