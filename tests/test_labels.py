"""Matching of labels, and missing and invalid labels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from abstain import Items, labels
from abstain.errors import DataError
from abstain.losses import item_loss


@pytest.mark.parametrize(
    ("truth", "prediction", "expected"),
    [
        (1, 1, True),
        (1, "1", True),
        (1, " 1 ", True),
        (1, "+1", True),
        (-1, "-1", True),
        (1, "01", True),
        (1, 1.0, True),
        (1, True, True),
        (1, "1.0", True),
        ("1", "1.0", True),
        ("0.5", 0.50, True),
        ("1e3", 1000, True),
        (True, "TRUE", True),
        ("False", 0, True),
        ("true", "1", True),
        ("nan", 1, False),
        ("inf", "Inf", True),
        (1, 2, False),
        (1, "one", False),
        ("stable", " STABLE ", True),
        ("straße", "STRASSE", True),
        ("stable", "worse", False),
        ("1", 1, True),
        (1.5, 1, False),
        (1, None, False),
        ("a", None, False),
        (10, "1_0", False),
        (2**53, 2**53 + 1, False),
        (np.int64(2**60), np.int64(2**60 + 1), False),
        (2**60, str(2**60), True),
        (10**400, 10**400, True),
        ("1" * 5000, 1, False),
        ("1" + "0" * 310, "1" + "0" * 310, True),
        ("1" + "0" * 310, "1" + "0" * 311, False),
        ("1e998", "1E998", True),
        ("1e998", "1e999", False),
    ],
)
def test_labels_match_as_numbers_or_as_text(truth: Any, prediction: Any, expected: bool) -> None:
    pair = labels.column([truth], "y_true"), labels.column([prediction], "y_pred")
    assert labels.matches(*pair).tolist() == [expected]


def test_whole_numbers_in_arrays_are_compared_exactly() -> None:
    truth = labels.column(np.array([2**60, 2**60 + 1]), "y_true")
    assert labels.matches(truth, labels.column(np.array([2**60, 2**60]), "y_pred")).tolist() == [True, False]
    items = Items.from_arrays([2**60, 2**60 + 1], [2**60 + 1, 2**60 + 1])
    assert item_loss(items).values.tolist() == [1.0, 0.0]


def test_missing_labels_match_nothing() -> None:
    column = labels.column([None, float("nan"), "a"], "y_true")
    assert labels.missing(column).tolist() == [True, True, False]
    assert labels.matches(column, column).tolist() == [False, False, True]


def test_classes_are_numbered_in_order() -> None:
    codes, count = labels.classes(labels.column([3, 1, None, 3], "y_true"))
    assert codes.tolist() == [1, 0, -1, 1]
    assert count == 2
    codes, count = labels.classes(labels.column(["b", "2", "a"], "y_true"))
    assert codes.tolist() == [2, 0, 1]


def test_text_is_nan_among_numbers() -> None:
    numbers = labels.numbers(labels.column([1, "two", None, 3], "y_pred"))
    assert np.isnan(numbers).tolist() == [False, True, True, False]


def test_truths_are_all_numbers_or_all_text() -> None:
    assert labels.truths(["1", 2, None]).tolist()[:2] == [1, 2]
    with pytest.raises(DataError, match="mixed label types: a number at row 1 and text at row 0"):
        labels.truths(["stable", 2])
    with pytest.raises(DataError, match="ground_truth is a dict at row 0; a label must be a number or text"):
        labels.truths([{}], "ground_truth")
