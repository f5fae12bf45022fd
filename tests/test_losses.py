"""The default loss, and the sentence that explains it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest

from abstain import ArgumentError, DataError, Items, evaluate, read
from abstain.losses import common_loss, item_loss, possible_scale

if TYPE_CHECKING:
    from pathlib import Path

LABELS: dict[str, tuple[list[Any], list[Any], list[float]]] = {
    "0 and 1": ([1, 0, 1], [1, 1, 0], [0.0, 1.0, 1.0]),
    "booleans": ([True, False, True], [True, True, True], [0.0, 1.0, 0.0]),
    "class numbers": ([9, 0, 4], [0, 0, 9], [1.0, 0.0, 1.0]),
    "ratings": ([1, 10, 7], [10, 10, 6], [1.0, 0.0, 1.0]),
    "whole by value": ([1.0, 2.0, 3.0], [1.0, 3.0, 3.0], [0.0, 1.0, 0.0]),
    "text": (["ill", "well", "ill"], ["ill", "ill", " Ill"], [0.0, 1.0, 0.0]),
}


@pytest.mark.parametrize("name", LABELS)
@pytest.mark.parametrize("form", ["csv", "parquet", "frame", "arrays"])
def test_the_default_loss_of_labels_is_zero_one(tmp_path: Path, name: str, form: str) -> None:
    truth, prediction, expected = LABELS[name]
    frame = pl.DataFrame({"truth": truth, "prediction": prediction})
    if form == "csv":
        frame.write_csv(tmp_path / "t.csv")
    elif form == "parquet":
        frame.write_parquet(tmp_path / "t.parquet")
    items = {
        "csv": lambda: read(tmp_path / "t.csv"),
        "parquet": lambda: read(tmp_path / "t.parquet"),
        "frame": lambda: read(frame),
        "arrays": lambda: Items.from_arrays(truth, prediction),
    }[form]()
    loss = item_loss(items)
    assert loss.values.tolist() == expected
    kind = "text" if name == "text" else "whole-number"
    assert loss.rule == f"loss zero_one: {kind} labels, no scale declared"


def test_the_default_loss_is_divided_by_the_declared_scale() -> None:
    frame = pl.DataFrame({"truth": [1, 10, 7], "prediction": [10, 10, 4]})
    loss = item_loss(read(frame, scale=(1, 10)))
    assert loss.values == pytest.approx([1.0, 0.0, 1 / 3])
    assert (loss.name, loss.raw_multiplier) == ("abs_norm", 9.0)
    assert loss.rule == "loss abs_norm: the source declares a scale of 1 to 10"


def test_a_run_file_declares_its_scale() -> None:
    loss = item_loss(read("tests/data/examples/run_a.json", mode="few_shot"))
    assert loss.rule == "loss abs_norm: the source declares a scale of 0 to 3"
    assert loss.definition == "abs(pred - gt) / 3"


@pytest.mark.parametrize(
    ("truth", "prediction", "which"), [([1.5, 2.0], [1, 2], "truth"), ([1, 2], [1.0, 2.25], "prediction")]
)
def test_real_numbers_need_a_named_loss(truth: list[float], prediction: list[float], which: str) -> None:
    items = read(pl.DataFrame({"truth": truth, "prediction": prediction, "confidence": [0.1, 0.2]}))
    message = (
        rf"no loss is named, and the {which} is not a whole number in every answered row; choose one \(loss=, "
        r"--loss\): abs, zero_one, or abs_norm with a scale"
    )
    with pytest.raises(ArgumentError, match=message):
        item_loss(items)
    with pytest.raises(ArgumentError, match=message):
        evaluate(items, resamples=0)
    assert item_loss(items, "abs").rule == "loss abs: requested"


def test_only_answered_rows_determine_the_default_loss() -> None:
    items = Items.from_arrays([1, 0.5], [1, None], abstained=[False, True])
    assert item_loss(items).name == "zero_one"
    unanswered = Items.from_arrays([0.5], [None], abstained=[True])
    assert item_loss(unanswered).rule == "loss zero_one: nothing is answered, no scale declared"


def test_abs_norm_without_a_scale_is_refused() -> None:
    with pytest.raises(
        ArgumentError, match="loss abs_norm divides by the width of the scale, but no scale is declared"
    ):
        item_loss(Items.from_arrays([3], [1]), "abs_norm")


def test_a_custom_loss_is_reported_as_custom() -> None:
    items = Items.from_arrays([3, 1], [1, 1])
    assert item_loss(items, [0.5, 0.25]).rule == "loss custom: one value per item"

    def squared(truth: Any, prediction: Any) -> Any:
        return (truth - prediction) ** 2

    assert item_loss(items, squared).rule == "loss squared: a custom function"


def test_items_without_predictions_have_no_default_loss() -> None:
    items = read(pl.DataFrame({"y": [1, 2], "lo": [0, 0], "hi": [2, 1]}), truth="y", low="lo", high="hi")
    with pytest.raises(
        ArgumentError, match="there is no prediction to evaluate by one: these items have only"
    ):
        item_loss(items)


def test_all_systems_must_have_the_same_loss() -> None:
    plain = Items.from_arrays([3, 0], [1, 0])
    rated = Items.from_arrays([3, 0], [1, 0], scale=(0, 3))
    wider = Items.from_arrays([3, 0], [1, 0], scale=(0, 9))
    assert [loss.name for loss in common_loss([plain, plain])] == ["zero_one", "zero_one"]
    assert common_loss([rated, rated])[1].values == pytest.approx([2 / 3, 0])
    with pytest.raises(
        ArgumentError, match=r"different losses \(loss zero_one: .*; loss abs_norm: .* 0 to 3\)"
    ):
        common_loss([plain, rated])
    with pytest.raises(
        ArgumentError, match="a scale of 0 to 3; loss abs_norm: the source declares a scale of 0 to 9"
    ):
        common_loss([rated, wider])
    assert [loss.name for loss in common_loss([plain, rated], "abs")] == ["abs", "abs"]
    with pytest.raises(ArgumentError, match="an array cannot match the rows of all of them"):
        common_loss([plain, rated], np.array([0.0, 1.0]))


@pytest.mark.parametrize(
    ("truth", "prediction", "expected"),
    [
        ([0, 1, 2, 3], [0, 1, 1, 3], (0, 3)),
        ([1, 2, 5], [1, 1, 4], (1, 5)),
        (["0", "1", "2"], ["0", "3", "2"], (0, 3)),
        ([0, 5, 10], [1, 2, 3], (0, 10)),
        ([0, 1, 1, 0], [0, 1, 2, 3], None),  # two classes
        ([-1, 0, 1], [0, 0, 1], None),
        ([0, 1, 11], [0, 1, 2], None),  # a scale of 12 points
        ([0, 1, 2], [0, 99, 2], None),
        ([0.5, 1, 2], [0, 1, 2], None),
        (["ill", "well", "dead"], ["ill", "ill", "well"], None),
        ([True, False, True], [True, True, True], None),
    ],
)
def test_labels_look_like_scores_on_a_scale_of_few_points(
    truth: list[Any], prediction: list[Any], expected: tuple[int, int] | None
) -> None:
    assert possible_scale(Items.from_arrays(truth, prediction)) == expected
    assert possible_scale(Items.from_arrays(truth, prediction, scale=(0, 100))) is None


@pytest.mark.parametrize(
    ("name", "meant"), [("mae", "abs"), ("MAE", "abs"), ("0-1", "zero_one"), ("abs_nrm", "abs_norm")]
)
def test_another_name_of_a_loss_suggests_the_loss(name: str, meant: str) -> None:
    with pytest.raises(ArgumentError, match=rf"unknown loss '{name}' \(did you mean '{meant}'\?\)"):
        evaluate(Items.from_arrays([1, 0], [1, 1]), loss=name)


def test_a_decimal_comma_in_a_label_is_an_error_if_the_loss_needs_numbers(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("truth;prediction;confidence\n1;1;0.5\n0,5;1;0.6\n")
    with pytest.raises(
        DataError, match="truth has a decimal comma for line 3 of .*t.csv; write numbers with a decimal"
    ):
        evaluate(path, loss="abs")
