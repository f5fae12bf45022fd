"""The checked arrays of one call to a selective metric: a loss and a confidence a row, who abstained, what it weighs.

A whole number of further abstentions becomes that many rows of weight one. Nothing is computed here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from abstain import _validate
from abstain.errors import DataError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False, slots=True)
class RankedRows:
    """The checked arrays of one call."""

    loss: Floats
    confidence: Floats
    answered: NDArray[np.bool_]
    weight: Floats

    @classmethod
    def checked(
        cls,
        loss: ArrayLike,
        confidence: ArrayLike | None,
        abstained: ArrayLike | int | None,
        weights: ArrayLike | None,
    ) -> RankedRows:
        losses = _validate.floats(loss, "loss")
        length = len(losses)
        levels = np.zeros(length) if confidence is None else _validate.floats(confidence, "confidence")
        _validate.same_length(length, confidence=levels)
        weight = _validate.weights(weights, length)
        declined = np.zeros(length, np.bool_)
        if abstained is not None and np.ndim(abstained) == 0:
            further = _validate.whole(abstained, "abstained")  # type: ignore[arg-type]
            declined = np.r_[declined, np.ones(further, np.bool_)]
            weight = np.r_[weight, np.ones(further)]
            losses, levels = np.r_[losses, np.zeros(further)], np.r_[levels, np.zeros(further)]
        elif abstained is not None:
            declined = _validate.mask(abstained, "abstained", length)
        if not len(losses):
            raise DataError("loss is empty; there must be at least one item")
        answered = ~declined
        hint = "mark the item in abstained= if the model declined"
        _validate.finite(losses, "loss", among=answered, hint=hint)
        _validate.finite(levels, "confidence", among=answered, hint=hint)
        return cls(losses, levels, answered, weight)
