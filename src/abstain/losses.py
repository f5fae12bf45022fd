"""Losses: how wrong an answer is.

``abs`` is ``|prediction - truth|``; ``abs_norm`` divides that by the width of the scale (0 to 3 unless
declared); ``zero_one`` is 1 for a wrong answer, else 0. Any function of (truth, prediction) arrays and any
array of one number an item serves as well. A loss is only asked for where an item is answered.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from abstain import _labels, _validate
from abstain.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike, NDArray

    from abstain.items import Items

    Floats = NDArray[np.float64]
    Loss = str | Callable[[NDArray[Any], NDArray[Any]], ArrayLike] | ArrayLike

__all__ = ["LOSS_NAMES", "ItemLoss", "item_loss", "named_loss"]

LOSS_NAMES = ("abs", "abs_norm", "zero_one")
DEFAULT_SCALE = (0.0, 3.0)


@dataclass(frozen=True, eq=False, slots=True)
class ItemLoss:
    """The loss of every item, and what it means.

    Attributes:
        name: one of the names above, or "custom".
        definition: the formula in words.
        raw_multiplier: what to multiply by to be back on the scale of the truth.
        values: one number an item; NaN where the item is not answered.
    """

    name: str
    definition: str
    raw_multiplier: float
    values: Floats


def item_loss(items: Items, loss: Loss = "abs_norm") -> ItemLoss:
    """Return the loss of every answered item.

    Args:
        items: the items to judge.
        loss: a name, a function of (truth, prediction) arrays of the answered items, or one number an item.

    >>> from abstain import Items
    >>> items = Items.from_arrays([3, 0, 2], [1, 0, None], abstained=[0, 0, 1])
    >>> item_loss(items, "abs").values.tolist()
    [2.0, 0.0, nan]
    >>> item_loss(items, lambda truth, prediction: (truth - prediction) ** 2).values.tolist()
    [4.0, 0.0, nan]
    """
    if isinstance(loss, str):
        return _named(items, _validate.choice(loss, "loss", LOSS_NAMES))
    if callable(loss):
        answered = items.answered
        computed = _validate.floats(loss(items.truth[answered], items.prediction[answered]), "loss")
        _validate.same_length(int(answered.sum()), loss=computed)
        values = np.full(len(items), np.nan)
        values[answered] = computed
        name = getattr(loss, "__name__", "custom").strip("<>")
        return _checked(items, name, "a function of the user's", 1.0, values)
    values = _validate.floats(loss, "loss")
    _validate.same_length(len(items), loss=values)
    return _checked(items, "custom", "given for each item", 1.0, np.where(items.answered, values, np.nan))


def named_loss(
    name: str, truth: NDArray[Any], prediction: NDArray[Any], scale: tuple[float, float] | None = None
) -> Floats:
    """Return a loss by its name for arrays that all have a truth and a prediction.

    >>> named_loss("abs_norm", np.array([3.0, 0.0]), np.array([0.0, 1.5]))
    array([1. , 0.5])
    """
    _validate.choice(name, "loss", LOSS_NAMES)
    if name == "zero_one":
        same = _labels.matches(_labels.column(truth, "truth"), _labels.column(prediction, "prediction"))
        return (~same).astype(np.float64)
    distance = np.abs(_numbers(prediction, "prediction") - _numbers(truth, "truth"))
    return distance if name == "abs" else distance / _width(scale)


def _named(items: Items, name: str) -> ItemLoss:
    answered = items.answered
    values = np.full(len(items), np.nan)
    values[answered] = named_loss(name, items.truth[answered], items.prediction[answered], items.scale)
    if name == "abs_norm":
        width = _width(items.scale)
        return _checked(items, name, f"abs(pred - gt) / {width:g}", width, values)
    definition = "abs(pred - gt)" if name == "abs" else "1 if pred != gt else 0"
    return _checked(items, name, definition, 1.0, values)


def _width(scale: tuple[float, float] | None) -> float:
    low, high = scale or DEFAULT_SCALE
    return high - low


def _checked(items: Items, name: str, definition: str, raw_multiplier: float, values: Floats) -> ItemLoss:
    wrong = items.answered & ~np.isfinite(values)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise DataError(
            f"loss {name} is {values[row]} for {items.describe_row(row)} (row {row}; {int(wrong.sum())} such items); "
            "every answered item needs a finite loss"
        )
    return ItemLoss(name, definition, raw_multiplier, values)


def _numbers(values: NDArray[Any], column: str) -> Floats:
    try:
        return _validate.floats(values, column)
    except DataError:
        raise DataError(
            f"{column} holds text, and this loss needs numbers; loss zero_one compares labels"
        ) from None
