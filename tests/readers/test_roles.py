"""Fields of a table other than truth and prediction: which are guessed, and how they are read."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest

from abstain import ArgumentError, DataError, Items, check, evaluate, read
from abstain.confidence import no_confidence, select
from abstain.readers import open_table
from abstain.readers.engines import engine_tables

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def through(frame: pl.DataFrame, form: str, folder: Path) -> Any:
    """Return a table as a frame or as a file."""
    if form == "frame":
        return frame
    path = folder / f"t.{form}"
    getattr(frame, f"write_{'ndjson' if form == 'jsonl' else form}")(path)
    return path


FORMS = ["frame", "csv", "parquet", "jsonl"]


# Confidence


@pytest.mark.parametrize(
    "name", ["confidence", "CONF", "prob", "Probability", "score", "certainty", "logprob", "msp"]
)
def test_a_confidence_is_guessed_by_its_usual_names(name: str) -> None:
    items = read(pl.DataFrame({"truth": [1, 0], "prediction": [1, 1], "row": [1, 2], name: [0.5, 0.25]}))
    assert items.provenance["columns"]["confidence"] == name
    assert items.signals["confidence"].values.tolist() == [0.5, 0.25]
    assert select("default", items) == ("confidence",)


@pytest.mark.parametrize("form", FORMS)
def test_a_numeric_column_is_not_guessed_to_be_a_confidence(tmp_path: Path, form: str) -> None:
    frame = pl.DataFrame({"row": [1, 2, 3], "truth": [1, 0, 1], "prediction": [1, 1, 1], "age": [5, 7, 9]})
    items = read(through(frame, form, tmp_path))
    assert "confidence" not in items.provenance["columns"]
    assert "defaults" not in items.provenance
    assert set(items.signals) == {"row", "age"}
    assert select("default", items) == ()
    result = evaluate(items, resamples=0)
    assert list(result) == []
    assert no_confidence(items) in str(result.warnings[0])
    with pytest.raises(ArgumentError, match="unknown confidence 'constant'"):
        select("constant", items)


# Right or wrong


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("correct", [True, False, True]),
        ("is_correct", [1, 0, 1]),
        ("grade", ["C", "I", "c"]),
        ("Correct", [1.0, 0.0, 1.0]),
    ],
)
def test_a_verdict_replaces_truth_and_prediction(
    tmp_path: Path, form: str, name: str, values: list[Any]
) -> None:
    source = through(pl.DataFrame({name: values, "prob": [0.9, 0.4, 0.2]}), form, tmp_path)
    items = read(source)
    assert items.truth.tolist() == [1.0, 1.0, 1.0]
    assert items.prediction.tolist() == [1.0, 0.0, 1.0]
    assert items.provenance["columns"] == {"correct": name, "confidence": "prob"}
    if form != "frame":
        aggregated = evaluate(source, confidence="prob", engine="duckdb")
        loaded = evaluate(items, confidence="prob", resamples=0)
        assert aggregated["prob"].aurc.value == loaded["prob"].aurc.value
        assert aggregated.loss is not None
        assert loaded.loss is not None
        assert (
            aggregated.loss.rule
            == loaded.loss.rule
            == "loss zero_one: whole-number labels, no scale declared"
        )


def test_a_verdict_is_guessed_only_if_there_is_no_prediction() -> None:
    columns = {"truth": [1, 0], "prediction": [1, 1], "correct": [False, True]}
    items = read(pl.DataFrame(columns))
    assert items.prediction.tolist() == [1.0, 1.0]
    assert items.metadata["correct"].tolist() == [False, True]
    named = read(pl.DataFrame(columns), correct="correct")
    assert named.prediction.tolist() == [0.0, 1.0]
    without = read(pl.DataFrame({"label": ["a", "b"], "gold": ["a", "b"], "correct": [False, True]}))
    assert without.prediction.tolist() == [0.0, 1.0]
    assert set(without.metadata) == {"label", "gold"}
    with pytest.raises(ArgumentError, match="which column is the prediction"):
        read(pl.DataFrame({"answer": ["a"], "correct": [True]}), truth="answer")
    with pytest.raises(
        ArgumentError, match="correct already marks the right answers; name either correct, or truth"
    ):
        read(pl.DataFrame(columns), correct="correct", truth="truth")


def test_an_abstention_has_no_verdict() -> None:
    frame = pl.DataFrame({"correct": [True, None, False], "abstained": [False, True, False]})
    assert read(frame).counts.abstained == 1
    with pytest.raises(
        DataError, match=r"the prediction \(correct\) is missing at row 1 for an unknown reason"
    ):
        read(frame.drop("abstained"))
    with pytest.raises(
        DataError, match="'correct' must contain right or wrong .* does not at row 0; name the columns"
    ):
        read(pl.DataFrame({"correct": ["secret", "C"]}))


# Weights


@pytest.mark.parametrize("form", FORMS)
def test_a_row_of_weight_two_is_two_rows(tmp_path: Path, form: str) -> None:
    frame = pl.DataFrame({"truth": [1, 0, 1, 1], "prediction": [1, 1, 0, 1], "prob": [0.9, 0.8, 0.7, 0.7]})
    heavy = frame.with_columns(w=pl.Series([2, 1, 0, 3]))
    items = read(through(heavy, form, tmp_path), weight="w")
    assert items.weight is not None
    assert items.weight.tolist() == [2.0, 1.0, 0.0, 3.0]
    assert items.take(np.array([3, 0])).weight.tolist() == [3.0, 2.0]  # type: ignore[union-attr]
    result = evaluate(items, confidence="prob", metrics=["accuracy"], resamples=0)
    copies = read(frame[[0, 0, 1, 3, 3, 3]])
    right = evaluate(copies, confidence="prob", metrics=["accuracy"], resamples=0)
    assert result["prob"].aurc.value == pytest.approx(right["prob"].aurc.value)
    assert result.metrics is not None
    assert result.metrics["accuracy"].value == pytest.approx(5 / 6)


def test_bad_weights_are_errors() -> None:
    frame = pl.DataFrame({"truth": [1, 0], "prediction": [1, 1], "weight": [1.0, -1.0], "zero": [0, 0]})
    assert read(frame).weight is None  # never guessed: it may be the weight of a patient
    with pytest.raises(DataError, match=r"weight \(weight\): weight must not be negative, got -1 at row 1"):
        read(frame, weight="weight")
    with pytest.raises(DataError, match=r"weight \(zero\): weight is zero in every row"):
        read(frame, weight="zero")
    with pytest.raises(
        DataError, match="the column 'weight' is empty or nan at row 1; every row needs a value"
    ):
        read(frame.with_columns(weight=pl.Series([1.0, None])), weight="weight")


def test_an_engine_uses_weights(tmp_path: Path) -> None:
    columns = {"truth": [1, 0, 1], "prediction": [1, 1, None], "prob": [0.9, 0.4, 0.1], "w": [2.0, 1.0, 5.0]}
    pl.DataFrame(columns).write_parquet(tmp_path / "t.parquet")
    path = tmp_path / "t.parquet"
    tables = engine_tables({"t": path}, engine="duckdb", weight="w", null_prediction="abstained")
    assert tables is not None
    aggregated = tables["t"].aggregate()
    items = aggregated.items(np.arange(len(aggregated.row_types)), ("prob",))
    assert items.weight is not None
    assert sorted(zip(items.outcome.tolist(), items.weight.tolist(), strict=True)) == [
        (0, 1.0),
        (0, 2.0),
        (1, 5.0),
    ]
    assert (items.counts.answered, items.counts.abstained) == (3, 5)


# Intervals


@pytest.mark.parametrize("form", FORMS)
def test_intervals_are_evaluated_from_a_table(tmp_path: Path, form: str) -> None:
    frame = pl.DataFrame(
        {
            "y": [1.0, 2.5, 3.0, 4.0],
            "lo": [0.0, 0.0, 0.0, None],
            "hi": [2.0, 2.0, 4.0, None],
            "gone": [0, 0, 0, 1],
        }
    )
    items = read(through(frame, form, tmp_path), truth="y", low="lo", high="hi", abstained="gone")
    assert items.intervals is not None
    assert items.intervals[:3].tolist() == [[0.0, 2.0], [0.0, 2.0], [0.0, 4.0]]
    assert items.counts.abstained == 1
    result = evaluate(items, metrics=["interval_coverage", "interval_mean_width"], resamples=0).metrics
    assert result is not None
    assert result["interval_coverage"].value == pytest.approx(2 / 3)
    assert result["interval_mean_width"].value == pytest.approx(8 / 3)


def test_bounds_are_never_guessed_and_must_be_in_order() -> None:
    frame = pl.DataFrame({"truth": [1, 2], "prediction": [1, 2], "low": [0, 3], "high": [2, 1]})
    assert read(frame).intervals is None
    with pytest.raises(ArgumentError, match="an interval has two bounds; name both low and high"):
        read(frame, low="low")
    with pytest.raises(
        DataError, match=r"low \(low\) and high \(high\): the lower bound 3 is above .* 1 at row 1"
    ):
        read(frame, low="low", high="high")
    gap = frame.with_columns(high=pl.Series([2, None]))
    with pytest.raises(DataError, match="the interval has no lower or no upper bound at row 1"):
        read(gap, low="low", high="high")
    with pytest.raises(
        DataError, match=r"the prediction \(low, high\) is missing at row 1 for an unknown reason"
    ):
        read(gap.drop("prediction"), low="low", high="high")


# Sets

LISTS = [["cat", "dog"], ["dog"], [], ["Cat"]]
TRUTH = ["cat", "cat", "bird", " CAT"]


def _as_lists(lists: list[list[str]]) -> list[Any]:
    return lists


def _as_json(lists: list[list[str]]) -> list[Any]:
    return [str(labels).replace("'", '"') for labels in lists]


def _as_text(lists: list[list[str]]) -> list[Any]:
    return [" | ".join(labels) for labels in lists]


@pytest.mark.parametrize("written", [_as_lists, _as_json, _as_text])
@pytest.mark.parametrize("form", FORMS)
def test_sets_are_evaluated_from_a_table(
    tmp_path: Path, form: str, written: Callable[[list[list[str]]], list[Any]]
) -> None:
    if form == "csv" and written is _as_lists:
        written = _as_json  # a CSV file has no lists
    frame = pl.DataFrame({"label": TRUTH, "labels": written(LISTS)})
    items = read(through(frame, form, tmp_path), truth="label", set="labels")
    assert items.classes == ("bird", "cat", "dog")
    assert items.sets is not None
    assert items.sets.astype(int).tolist() == [[0, 1, 1], [0, 0, 1], [0, 0, 0], [0, 1, 0]]
    assert items.class_index.tolist() == [1, 1, 0, 1]
    result = evaluate(items, metrics=["set_coverage", "set_mean_width"], resamples=0).metrics
    assert result is not None
    # The sets of rows 0 and 3 contain the truth, and the sets have 2, 1, 0 and 1 labels.
    assert result["set_coverage"].value == 0.5
    assert result["set_mean_width"].value == 1.0


def test_sets_may_contain_numbers_and_be_missing_for_abstentions() -> None:
    frame = pl.DataFrame(
        {
            "truth": [10, 2, 2],
            "prediction": [10, 2, None],
            "abstained": [False, False, True],
            "set": [[10.0, 2.0], [10.0], None],
        }
    )
    assert read(frame).sets is None  # never guessed
    items = read(frame, set="set")
    assert items.classes == ("2", "10")
    assert items.class_index.tolist() == [1, 0, 0]
    result = evaluate(items, metrics=["set_coverage", "accuracy"], resamples=0).metrics
    assert result is not None
    assert result["set_coverage"].value == 0.5
    missing = frame.with_columns(
        abstained=pl.Series([False, True, False]), prediction=pl.Series([1, None, 2])
    )
    with pytest.raises(DataError, match="the column 'set' is empty or nan at row 2"):
        read(missing, set="set")


# Clusters


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ({"patient_name": ["a", "a", "b"]}, "patient_name"),
        ({"visitID": [1, 1, 2]}, "visitID"),
        ({"conversation": ["x", "y", "x"]}, "conversation"),
        ({"batch_id": [1, 2, 1], "user": ["a", "b", "a"]}, "user"),
        ({"batch_id": [1, 2, 1]}, "batch_id"),
        ({"user": ["a", "b", "c"]}, None),
        ({"model_id": ["m", "m", "m"]}, None),
        ({"age": [5, 5, 6]}, None),
        ({"user_score": [0.5, 0.5, 0.6]}, None),
        ({"caseload": ["a", "a", "b"]}, None),
    ],
)
@pytest.mark.parametrize("form", FORMS)
def test_a_possible_cluster_column_is_reported(
    tmp_path: Path, form: str, columns: dict[str, list[Any]], expected: str | None
) -> None:
    frame = pl.DataFrame({"truth": [1, 0, 1], "prediction": [1, 1, 1], "prob": [0.1, 0.2, 0.3], **columns})
    source = through(frame, form, tmp_path)
    items = read(source, signals=(), metadata=())
    assert items.provenance.get("possible_cluster") == expected
    if form != "frame":
        aggregated = evaluate(source, confidence="prob", engine="duckdb")
        assert aggregated.provenance.get("possible_cluster") == expected
    if expected is not None:
        assert "possible_cluster" not in read(source, cluster=expected).provenance


# Opening


def test_an_open_frame_has_the_columns_of_a_file(tmp_path: Path) -> None:
    frame = pl.DataFrame({"y": [1, 2], "text": ["a", None], "flag": [True, False], "parts": [["a"], []]})
    frame.write_parquet(tmp_path / "t.parquet")
    for table in (open_table(frame), open_table(frame.lazy()), open_table(tmp_path / "t.parquet")):
        assert table.rows == 2
        assert dict(table.kinds) == {"y": "whole", "text": "text", "flag": "boolean", "parts": "list"}
        assert table.lists("parts") == [["a"], []]
        assert table.flags("flag").tolist() == [True, False]
        with pytest.raises(DataError, match="the column 'text' is empty or nan at row 1"):
            table.labels("text")
        with pytest.raises(DataError, match="the column 'parts' must hold numbers, but it is nested"):
            table.numbers("parts")
    with pytest.raises(ArgumentError, match="run_a.json: is a run file, but a table is required"):
        open_table("tests/data/examples/run_a.json")
    with pytest.raises(ArgumentError, match="format applies only to files"):
        open_table(frame, format="csv")


def test_items_keep_weights_intervals_and_sets_of_arrays() -> None:
    items = Items.from_arrays(
        [0, 1, 1],
        [0, None, 1],
        abstained=[False, True, False],
        weight=[1, 2, 0],
        intervals=[[0, 1], [math.nan, math.nan], [-math.inf, 2]],
        sets=[[1, 0], [0, 0], [1, 1]],
    )
    assert items.classes == ("0", "1")
    part = items.take(np.array([2, 0]))
    assert part.intervals is not None
    assert part.intervals.tolist() == [[-math.inf, 2.0], [0.0, 1.0]]
    assert part.sets is not None
    assert part.sets.tolist() == [[True, True], [True, False]]
    assert part.class_index.tolist() == [1, 0]
    with pytest.raises(ValueError, match="read-only"):
        part.intervals[0, 0] = 1.0


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"weight": [1, math.nan]}, DataError, "weight is nan at row 1"),
        ({"weight": [1]}, DataError, "weight has 1 rows, but 2 were expected"),
        ({"intervals": [[0, 1]]}, DataError, r"intervals must have the shape \(2, 2\), got \(1, 2\)"),
        ({"intervals": [[0, 1], [math.nan, 1]]}, DataError, "no lower or no upper bound at row 1"),
        (
            {"intervals": [[0, 1], [2, 1]]},
            DataError,
            r"the lower bound 2 is above the upper bound 1 at row 1 .* --crossed sort \(crossed=\"sort\"\)",
        ),
        ({"sets": [[1, 0]]}, DataError, r"sets must have the shape \(2, classes\)"),
        ({"sets": [[1, 0], [0.5, 1]]}, DataError, "sets must hold booleans"),
        ({"sets": [[1], [1]]}, DataError, "the truth is not one of the 1 classes at row 1"),
        (
            {"sets": [[1, 0], [0, 1]], "classes": ["a", "A"]},
            ArgumentError,
            "name each of the 2 columns of sets once",
        ),
        (
            {"classes": ["a"]},
            ArgumentError,
            "classes are the names of the columns of sets, but there are no sets",
        ),
    ],
)
def test_bad_arrays_are_refused(given: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        Items.from_arrays([0, 1], [0, 1], **given)


@pytest.mark.parametrize(
    ("column", "noun"),
    [
        ("image_id", "image"),
        ("question", "question"),
        ("Documents", "document"),
        ("patientId", "patient"),
        ("care home", "care home"),
        ("study_id", "cluster"),
        ("site_17", "cluster"),
        ("bus", "cluster"),
    ],
)
def test_the_noun_for_clusters_is_the_name_of_their_column(tmp_path: Path, column: str, noun: str) -> None:
    frame = pl.DataFrame({"truth": [1, 0, 1], "prediction": [1, 1, 1], column: ["a", "b", "b"]})
    assert read(frame, cluster=column).cluster_noun == noun
    frame.write_csv(tmp_path / "t.csv")
    result = check(tmp_path / "t.csv", cluster=column)
    assert result.clusters.noun == noun
    # The noun is the same in a log with the same key.
    log = {"version": 2, "status": "success", "eval": {"task": "t"}, "samples": []}
    log["samples"] = [
        {
            "id": row,
            "epoch": 1,
            "target": "x",
            "metadata": {column: "a"},
            "scores": {"s": {"value": "C", "answer": "x"}},
        }
        for row in range(2)
    ]
    (tmp_path / "log.json").write_text(json.dumps(log))
    assert read(tmp_path / "log.json", cluster_by=column).cluster_noun == noun


def test_a_guessed_confidence_of_words_is_ignored_if_signals_are_named() -> None:
    frame = pl.DataFrame(
        {"truth": [1, 0], "prediction": [1, 1], "confidence": ["high", "low"], "margin": [0.9, 0.1]}
    )
    items = read(frame, signals=["margin"])
    assert list(items.signals) == ["margin"]
    assert items.metadata["confidence"].tolist() == ["high", "low"]
