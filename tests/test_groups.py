"""Groups of items: the possible columns, the names of groups, and missing values."""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING

import numpy as np
import pytest

import abstain
from abstain.errors import ArgumentError, DataError
from abstain.groups import columns_for_groups, group_names, groups

if TYPE_CHECKING:
    from pathlib import Path


def items(**metadata: list[object]) -> abstain.Items:
    count = len(next(iter(metadata.values())))
    return abstain.Items.from_arrays([1] * count, [1] * count, confidence=[0.5] * count, metadata=metadata)


def test_different_values_have_different_group_names() -> None:
    table_items = items(stage=[3.0, 0.1, 0.1000000001, None, "b", True])
    assert group_names(table_items, "stage").tolist() == [
        "3",
        "0.1",
        "0.1000000001",
        "(missing)",
        "b",
        "True",
    ]
    assert [group.label for group in groups(table_items, "stage")] == [
        "stage=0.1",
        "stage=0.1000000001",
        "stage=True",
        "stage=3",
        "stage=b",
        "stage=(missing)",
    ]


def test_whole_numbers_have_the_same_group_names_as_floats_and_as_integers() -> None:
    numbers = [7, 10**15, 2**53]
    assert group_names(items(site=[float(number) for number in numbers]), "site").tolist() == [
        "7",
        "1000000000000000",
        "9007199254740992",
    ]
    assert group_names(items(site=list[object](numbers)), "site").tolist() == list(map(str, numbers))
    assert group_names(items(site=[2.0**60, 0.25]), "site").tolist() == ["1.152921504606847e+18", "0.25"]


def test_items_can_be_grouped_by_metadata_signals_and_item_names() -> None:
    table_items = items(site=["a", "b"])
    assert columns_for_groups(table_items) == ("site", "confidence", "item")
    assert group_names(table_items, "confidence").tolist() == ["0.5", "0.5"]


def test_an_empty_table_has_no_groups() -> None:
    assert groups(items(site=["a", "b"]).take(np.zeros(2, np.bool_)), "site") == ()


def test_the_error_for_an_unknown_column_suggests_another() -> None:
    for function in (groups, group_names):
        with pytest.raises(ArgumentError, match=r"unknown group column 'sit' .did you mean 'site'"):
            function(items(site=["a"]), "sit")
    with pytest.raises(DataError, match="site is a list at row 0"):
        group_names(items(site=[[1]]), "site")


def test_evaluate_and_threshold_have_the_same_groups(tmp_path: Path) -> None:
    """A numeric column is a signal, and can be used for groups in both functions."""
    generator = np.random.default_rng(0)
    path = tmp_path / "t.csv"
    with path.open("w", newline="") as opened:
        rows = csv.writer(opened)
        rows.writerow(["truth", "prediction", "confidence", "stage"])
        for row in range(600):
            sure = generator.random()
            rows.writerow([1, int(generator.random() < 0.5 + sure / 2), sure, row % 3])
    table_items = abstain.read(path)
    table = abstain.evaluate(table_items, metrics="accuracy", by="stage")
    assert table.metrics is not None
    evaluated = [group.label for group in table.metrics.groups]
    policy = abstain.choose_threshold(table_items, risk=0.3, by="stage")
    assert evaluated == [f"stage={each.group}" for each in policy.groups] == ["stage=0", "stage=1", "stage=2"]
    decided = policy.apply(table_items)
    assert decided.coverage > 0.1
