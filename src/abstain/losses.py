"""Losses: how wrong an answer is, and the default loss.

``abs`` is ``|prediction - truth|``, and ``abs_norm`` divides that by the width of the declared scale. ``zero_one`` is 1
for a wrong answer and 0 for a right one. A loss can also be a function of (truth, prediction) arrays, or an array with
one number per item. Only answered items have a loss.

The default is ``abs_norm`` if a scale is declared, otherwise ``zero_one`` if labels are text, booleans or whole numbers
in every answered row, otherwise an error that lists the choices. The loss carries a sentence with the rule that was
applied. `possible_scale` finds labels that look like scores without a declared scale, so that the evaluation can warn.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from abstain import _validate, labels
from abstain.errors import ArgumentError, DataError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import ArrayLike, NDArray

    from abstain._types import Floats
    from abstain.items import Items

    Loss = str | Callable[[NDArray[Any], NDArray[Any]], ArrayLike] | ArrayLike

__all__ = [
    "LOSS_NAMES",
    "SHARES",
    "ItemLoss",
    "check_loss_name",
    "common_loss",
    "item_loss",
    "named_loss",
    "possible_scale",
]

LOSS_NAMES = ("abs", "abs_norm", "zero_one")
# Losses from 0 to 1, whose means are proportions and can be printed in percent.
SHARES = ("zero_one", "abs_norm")
# Labels look like scores if the truth has at least so many values, and truth and prediction lie within so many points.
_FEWEST_SCORES, _MOST_SCORES = 3, 11
# Names of losses elsewhere; the error for one of them suggests the loss.
_OTHER_NAMES = {
    **dict.fromkeys(("mae", "absolute", "absolute_error", "mean_absolute_error", "l1"), "abs"),
    **dict.fromkeys(("nmae", "normalized", "abs_normalized"), "abs_norm"),
    **dict.fromkeys(("0-1", "0/1", "01", "zero-one", "error", "accuracy", "correctness"), "zero_one"),
}
_CHOICES = "abs, zero_one, or abs_norm with a scale (scale=, --scale)"


@dataclass(frozen=True, eq=False, slots=True)
class ItemLoss:
    """The loss of every item.

    Attributes:
        name: one of `LOSS_NAMES`, the name of a function, or "custom".
        definition: the formula in words.
        raw_multiplier: the factor that converts the loss to the scale of the truth.
        values: one number per item; NaN if the item is not answered.
        rule: a sentence with the reason for this loss.
    """

    name: str
    definition: str
    raw_multiplier: float
    values: Floats = field(repr=False)
    rule: str


def check_loss_name(name: str) -> str:
    """Return the name of a loss; the error for an unknown name suggests one.

    >>> check_loss_name("mae")
    Traceback (most recent call last):
        ...
    abstain.errors.ArgumentError: unknown loss 'mae' (did you mean 'abs'?); known: abs, abs_norm, zero_one
    """
    meant = _OTHER_NAMES.get(name.casefold())
    if meant is not None:
        raise ArgumentError(
            f"unknown loss {name!r} (did you mean {meant!r}?); known: {', '.join(LOSS_NAMES)}"
        )
    return _validate.choice(name, "loss", LOSS_NAMES)


def item_loss(items: Items, loss: Loss | None = None) -> ItemLoss:
    """Return the loss of every answered item.

    Args:
        items: the items.
        loss: a name, a function of (truth, prediction) arrays of the answered items, or one number per item. Default:
            the rule of this module.

    >>> from abstain import Items
    >>> items = Items.from_arrays([3, 0, 2], [1, 0, None], abstained=[0, 0, 1])
    >>> item_loss(items).values.tolist(), item_loss(items).rule
    ([1.0, 0.0, nan], 'loss zero_one: whole-number labels, no scale declared')
    >>> item_loss(items, "abs").values.tolist()
    [2.0, 0.0, nan]
    >>> item_loss(items, lambda truth, prediction: (truth - prediction) ** 2).values.tolist()
    [4.0, 0.0, nan]
    """
    if loss is None:
        return _named(items, *_implied(items))
    if isinstance(loss, str):
        return _named(items, check_loss_name(loss), "requested")
    if callable(loss):
        answered = items.answered
        computed = _validate.floats(loss(items.truth[answered], items.prediction[answered]), "loss")
        _validate.same_length(int(answered.sum()), loss=computed)
        values = np.full(len(items), np.nan)
        values[answered] = computed
        name = getattr(loss, "__name__", "custom").strip("<>")
        return _checked(items, name, "a custom function", 1.0, values, "a custom function")
    values = _validate.floats(loss, "loss")
    _validate.same_length(len(items), loss=values)
    values = np.where(items.answered, values, np.nan)
    return _checked(items, "custom", "one value per item", 1.0, values, "one value per item")


def common_loss(systems: Sequence[Items], loss: Loss | None = None) -> tuple[ItemLoss, ...]:
    """Return the loss of every system's items, which must be the same loss.

    Args:
        systems: the items of each system.
        loss: a name or a function of (truth, prediction) arrays. Default: the rule of this module.

    >>> from abstain import Items
    >>> rated = Items.from_arrays([3, 0], [1, 0], scale=(0, 3))
    >>> [loss.name for loss in common_loss([rated, rated])]
    ['abs_norm', 'abs_norm']
    >>> common_loss([rated, Items.from_arrays([3, 0], [1, 0])])
    Traceback (most recent call last):
        ...
    abstain.errors.ArgumentError: the systems imply different losses (loss abs_norm: the source declares a scale ...
    """
    if loss is not None and not isinstance(loss, str) and not callable(loss):
        raise ArgumentError(
            "loss must be a name or a function for several systems: an array cannot match the rows of all of them"
        )
    losses = tuple(item_loss(items, loss) for items in systems)
    rules = {(each.name, each.raw_multiplier): each.rule for each in losses}
    if len(rules) > 1:
        raise ArgumentError(
            f"the systems imply different losses ({'; '.join(rules.values())}) and cannot be compared; name "
            "one loss for all (loss=, --loss), or one scale (scale=, --scale)"
        )
    return losses


def named_loss(
    name: str, truth: NDArray[Any], prediction: NDArray[Any], scale: tuple[float, float] | None = None
) -> Floats:
    """Return a loss by its name, for arrays without missing truths and predictions.

    >>> named_loss("abs_norm", np.array([3.0, 0.0]), np.array([0.0, 1.5]), (0.0, 3.0))
    array([1. , 0.5])
    """
    check_loss_name(name)
    if name == "zero_one":
        same = labels.matches(labels.column(truth, "truth"), labels.column(prediction, "prediction"))
        return (~same).astype(np.float64)
    if name == "abs_norm" and scale is None:
        raise ArgumentError(
            "loss abs_norm divides by the width of the scale, but no scale is declared; declare the lowest and highest "
            "score (scale=, --scale), or choose abs or zero_one"
        )
    distance = np.abs(_numbers(prediction, "prediction") - _numbers(truth, "truth"))
    return distance if name == "abs" else distance / _width(scale)


def _implied(items: Items) -> tuple[str, str]:
    """Return the default loss of the items, and the reason."""
    if items.scale is not None:
        low, high = items.scale
        return "abs_norm", f"the source declares a scale of {low:g} to {high:g}"
    rows = items.labelled
    answered = rows.answered
    columns = {name: labels.column(getattr(rows, name)[answered], name) for name in ("truth", "prediction")}
    if not answered.any():
        return "zero_one", "nothing is answered, no scale declared"
    if labels.missing(columns["prediction"]).all():
        raise ArgumentError(
            "no loss is named, and there is no prediction to evaluate by one: these items have only intervals or sets"
        )
    for name, column in columns.items():
        if not labels.whole(column):
            raise ArgumentError(
                f"no loss is named, and the {name} is not a whole number in every answered row; choose one (loss=, "
                f"--loss): {_CHOICES}"
            )
    text = any(column.dtype.kind != "f" for column in columns.values())
    return "zero_one", f"{'text' if text else 'whole-number'} labels, no scale declared"


def possible_scale(items: Items) -> tuple[int, int] | None:
    """Return the lowest and highest label if labels look like scores and no scale is declared, otherwise None.

    They do if truths and predictions are whole numbers of at least 0, the truth has at least 3 different values, and
    all of them lie on a scale of at most 11 points. Class numbers can look the same, so this only justifies a warning.

    >>> from abstain import Items
    >>> possible_scale(Items.from_arrays([0, 1, 3], [0, 2, 3]))
    (0, 3)
    >>> possible_scale(Items.from_arrays([0, 1, 1], [0, 1, 0])) is None
    True
    """
    if items.scale is not None:
        return None
    rows = items.labelled.evaluated
    truth = labels.column(rows.truth, "truth")
    prediction = labels.column(rows.prediction[rows.answered], "prediction")
    if not all(column.dtype.kind == "f" and labels.whole(column) for column in (truth, prediction)):
        return None
    truth, prediction = truth[~np.isnan(truth)], prediction[~np.isnan(prediction)]
    if not len(prediction) or len(np.unique(truth)) < _FEWEST_SCORES:
        return None
    low = int(min(truth.min(), prediction.min()))
    high = int(max(truth.max(), prediction.max()))
    return (low, high) if low >= 0 and high - low < _MOST_SCORES else None


def _named(items: Items, name: str, reason: str) -> ItemLoss:
    answered = items.answered
    if name != "zero_one":
        for column in ("truth", "prediction"):
            commas = answered & labels.decimal_commas(getattr(items, column))
            if commas.any():
                raise DataError(
                    f"{column} has a decimal comma for {items.where(commas)}; write numbers with a decimal point, "
                    "such as 1.5"
                )
    values = np.full(len(items), np.nan)
    values[answered] = named_loss(name, items.truth[answered], items.prediction[answered], items.scale)
    if name == "abs_norm":
        width = _width(items.scale)
        return _checked(items, name, f"abs(pred - gt) / {width:g}", width, values, reason)
    definition = "abs(pred - gt)" if name == "abs" else "1 if pred != gt else 0"
    return _checked(items, name, definition, 1.0, values, reason)


def _width(scale: tuple[float, float] | None) -> float:
    assert scale is not None
    return scale[1] - scale[0]


def _checked(
    items: Items, name: str, definition: str, raw_multiplier: float, values: Floats, reason: str
) -> ItemLoss:
    wrong = items.answered & ~np.isfinite(values)
    if wrong.any():
        raise DataError(
            f"loss {name} is {values[int(np.argmax(wrong))]} for {items.where(wrong)}; every answered item needs a "
            "finite loss"
        )
    return ItemLoss(name, definition, raw_multiplier, values, f"loss {name}: {reason}")


def _numbers(values: NDArray[Any], column: str) -> Floats:
    try:
        return _validate.floats(values, column)
    except DataError:
        raise DataError(
            f"{column} contains text, and this loss needs numbers; to compare labels, use the loss zero_one"
        ) from None
