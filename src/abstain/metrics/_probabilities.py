"""Checks of what a calibration metric is given: outcomes that are 0 or 1, probabilities, labels, ids.

Every calibration function checks its arguments with these, so that each says the same about the same mistake. What
is made of the rows is known to the callers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from abstain import _validate
from abstain.errors import ArgumentError, DataError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]
    Indices = NDArray[np.intp]


def probabilities(values: ArrayLike, name: str) -> Floats:
    """Return `values` as numbers in [0, 1]; the error names the first row that is not one."""
    array = _validate.floats(values, name)
    # Two reductions settle the usual case; a NaN fails both comparisons.
    if len(array) and array.min() >= 0.0 and array.max() <= 1.0:
        return array
    return _validate.unit_interval(array, name)


def numbered(values: ArrayLike, name: str, length: int) -> Indices:
    """Number distinct labels or ids from 0, ascending; one that is missing, or cannot be ordered, is an error."""
    labels = _validate.one_dimensional(values, name)
    _validate.same_length(length, **{name: labels})
    if labels.dtype.kind in "fO":
        missing = [value is None or value != value for value in labels.tolist()]  # noqa: PLR0124  (NaN)
        if True in missing:
            raise DataError(f"{name} is missing at row {missing.index(True)}; every row needs one")
    try:
        return np.unique(labels, return_inverse=True)[1].astype(np.intp)
    except TypeError:
        raise DataError(f"{name} must hold text or numbers, not a mixture") from None


def comparable(truth: NDArray[Any], label: NDArray[Any]) -> None:
    """Raise unless true and predicted labels are of one kind: 1 never equals "1"."""
    kinds = ["text" if column.dtype.kind in "US" else "numbers" for column in (truth, label)]
    if "O" not in (truth.dtype.kind, label.dtype.kind) and kinds[0] != kinds[1]:
        raise DataError(f"y_true holds {kinds[0]} and y_pred holds {kinds[1]}; they could never agree")


def class_columns(
    y_true: ArrayLike, matrix: ArrayLike, classes: Sequence[Any] | NDArray[Any] | None
) -> tuple[Indices, Floats]:
    """Return the column that is right for each row, and the checked (rows, classes) probabilities."""
    try:
        scores = np.asarray(matrix, dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError(
            "probabilities must be a table of numbers, one row per item and one column per class"
        ) from None
    if scores.ndim != 2 or scores.shape[1] < 2:
        raise DataError(
            f"probabilities must have one row per item and at least two classes, got shape {scores.shape}"
        )
    labels = np.arange(scores.shape[1]) if classes is None else _validate.one_dimensional(classes, "classes")
    if len(labels) != scores.shape[1] or len(np.unique(labels)) != len(labels):
        raise ArgumentError(
            f"classes must name each of the {scores.shape[1]} columns of probabilities once, got {len(labels)} names"
        )
    for column in range(scores.shape[1]):
        probabilities(scores[:, column], f"probabilities[:, {column}]")
    truth = _validate.one_dimensional(y_true, "y_true")
    _validate.same_length(len(scores), y_true=truth)
    if not len(truth):
        raise DataError("y_true is empty; there must be at least one row")
    match = truth[:, None] == labels[None, :]
    unknown = ~match.any(axis=1)
    if unknown.any():
        raise DataError(
            f"y_true at row {int(np.argmax(unknown))} is none of the {len(labels)} classes "
            f"({int(unknown.sum())} such rows); pass classes= in the order of the columns"
        )
    return match.argmax(axis=1), scores
