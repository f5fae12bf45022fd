"""Groups are the same whoever asks for them: the columns there are, their names, what is missing."""

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


def test_names_are_whole_and_no_two_values_share_one() -> None:
    given = items(stage=[3.0, 0.1, 0.1000000001, None, "b", True])
    assert group_names(given, "stage").tolist() == ["3", "0.1", "0.1000000001", "(missing)", "b", "True"]
    assert [group.label for group in groups(given, "stage")] == [
        "stage=0.1",
        "stage=0.1000000001",
        "stage=True",
        "stage=3",
        "stage=b",
        "stage=(missing)",
    ]


def test_metadata_signals_and_items_make_groups() -> None:
    given = items(site=["a", "b"])
    assert columns_for_groups(given) == ("site", "confidence", "item")
    assert group_names(given, "confidence").tolist() == ["0.5", "0.5"]


def test_no_items_make_no_groups() -> None:
    assert groups(items(site=["a", "b"]).take(np.zeros(2, np.bool_)), "site") == ()


def test_a_column_that_is_not_there_is_named_with_those_that_are() -> None:
    for ask in (groups, group_names):
        with pytest.raises(ArgumentError, match=r"unknown group column 'sit' .did you mean 'site'"):
            ask(items(site=["a"]), "sit")
    with pytest.raises(DataError, match="site is a list at row 0"):
        group_names(items(site=[[1]]), "site")


def test_evaluate_and_threshold_have_the_same_groups(tmp_path: Path) -> None:
    """A column of numbers is a signal to the reader of tables; it makes groups all the same, behind both doors."""
    generator = np.random.default_rng(0)
    path = tmp_path / "t.csv"
    with path.open("w", newline="") as opened:
        rows = csv.writer(opened)
        rows.writerow(["truth", "prediction", "confidence", "stage"])
        for row in range(600):
            sure = generator.random()
            rows.writerow([1, int(generator.random() < 0.5 + sure / 2), sure, row % 3])
    given = abstain.read(path)
    table = abstain.evaluate(given, metrics="accuracy", by="stage")
    assert table.metrics is not None
    evaluated = [group.label for group in table.metrics.groups]
    policy = abstain.choose_threshold(given, risk=0.3, by="stage")
    assert evaluated == [f"stage={each.group}" for each in policy.groups] == ["stage=0", "stage=1", "stage=2"]
    decided = policy.apply(given)
    assert decided.coverage > 0.1
