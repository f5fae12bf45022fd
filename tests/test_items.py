from __future__ import annotations

import numpy as np
import pytest

from abstain import DataError, Items, Outcome


def test_the_four_outcomes_are_distinguished() -> None:
    items = Items.from_arrays(
        [1, 1, 1, None],
        [1, None, None, 0],
        abstained=[False, True, False, False],
        failed=[False, False, True, False],
    )
    assert items.outcome.tolist() == [Outcome.ANSWERED, Outcome.ABSTAINED, Outcome.FAILED, Outcome.UNSCORED]
    counts = items.counts
    assert (counts.answered, counts.abstained, counts.failed, counts.unscored) == (1, 1, 1, 1)
    assert counts.n == 2
    assert counts.total == 4
    assert counts.coverage == 0.5
    assert len(items.evaluated) == 2


def test_a_missing_prediction_is_never_guessed_to_be_an_abstention() -> None:
    with pytest.raises(DataError, match=r"prediction is missing at row 1 \(1 such rows\).*null_prediction"):
        Items.from_arrays([1, 1], [1, None])
    items = Items.from_arrays([1, 1], [1, None], null_prediction="abstained")
    assert items.counts.abstained == 1
    assert Items.from_arrays([1, 1], [1, np.nan], null_prediction="failed").counts.failed == 1


def test_an_abstention_keeps_its_stored_prediction() -> None:
    items = Items.from_arrays([1, 0], [1, 0], abstained=[True, False])
    assert items.prediction.tolist() == [1.0, 0.0]
    assert items.counts.answered == 1


def test_text_labels_are_unchanged() -> None:
    items = Items.from_arrays(["stable", "worse"], ["stable", None], abstained=[False, True])
    assert items.truth.tolist() == ["stable", "worse"]


def test_clusters_are_numbered_by_id() -> None:
    items = Items.from_arrays([0, 0, 0], [0, 0, 0], cluster=["b", "a", "b"])
    assert items.cluster_ids.tolist() == ["a", "b"]
    assert items.cluster_index.tolist() == [1, 0, 1]


def test_items_cannot_be_changed_and_do_not_share_memory_with_the_caller() -> None:
    truth, sure = np.array([1.0, 0.0]), np.array([0.5, 0.1])
    items = Items.from_arrays(truth, [1, 1], confidence=sure)
    truth[0] = sure[0] = 9.0
    assert items.truth[0] == 1.0
    assert items.signals["confidence"].values[0] == 0.5
    with pytest.raises(ValueError, match="read-only"):
        items.truth[0] = 2.0
    with pytest.raises(TypeError, match="does not support item assignment"):
        items.signals["x"] = items.signals["confidence"]  # type: ignore[index]


def test_records_distinguish_absent_from_null() -> None:
    items = Items.from_records(
        [
            {"truth": 1, "prediction": 1, "signals": {"a": 1.0, "b": None}},
            {"truth": 1, "prediction": 1, "signals": {"b": 2}, "confidence": 0.5, "metadata": {"sex": "f"}},
        ]
    )
    assert items.signals["a"].absent.tolist() == [False, True]
    assert items.signals["b"].null.tolist() == [True, False]
    assert items.signals["confidence"].absent.tolist() == [True, False]
    assert items.metadata["sex"].tolist() == [None, "f"]


@pytest.mark.parametrize(
    ("records", "message"),
    [
        ([{"truth": 1}], "record 0 has no 'prediction'"),
        (
            [{"truth": 1, "prediction": 1, "confidance": 2}],
            r"unknown key 'confidance' \(did you mean 'confidence'\?\)",
        ),
        (
            [{"truth": 1, "prediction": 1, "cluster": 1}, {"truth": 1, "prediction": 1}],
            "record 1 has no 'cluster'",
        ),
        (
            [{"truth": 1, "prediction": 1, "signals": {"a": "x"}}],
            "signal a must hold numbers, got a str at row 0",
        ),
        (
            [
                {"truth": 1, "prediction": 1, "cluster": "p1", "item": "x", "signals": {"a": 0.5}},
                {"truth": 1, "prediction": 1, "cluster": "p2", "item": "y", "signals": {"a": True}},
            ],
            r"signal a is true or false for cluster p2, item y \(1 such items\); a signal must be a number or null",
        ),
        (
            [{"truth": 1, "prediction": 1, "confidence": False}],
            "signal confidence is true or false for row 0",
        ),
        (
            [{"truth": 1, "prediction": 1, "abstained": True, "failed": True}],
            "row 0 is both abstained and failed",
        ),
        ([{"truth": 1, "prediction": 1, "abstained": "yes"}], "abstained must hold booleans"),
    ],
)
def test_bad_records_are_refused(records: list[dict[str, object]], message: str) -> None:
    with pytest.raises(DataError, match=message):
        Items.from_records(records)


def test_columns_of_different_lengths_are_refused() -> None:
    with pytest.raises(DataError, match="prediction has 1 rows, but 2 were expected"):
        Items.from_arrays([1, 2], [1])
    with pytest.raises(DataError, match="signal s has 1 rows, but 2 were expected"):
        Items.from_arrays([1, 2], [1, 2], signals={"s": [1]})


def test_a_missing_cluster_is_refused() -> None:
    with pytest.raises(DataError, match="cluster is missing at row 1"):
        Items.from_arrays([1, 1], [1, 1], cluster=np.array(["a", None], dtype=object))


def test_an_empty_table_has_no_coverage() -> None:
    items = Items.from_arrays([], [])
    assert len(items) == 0
    assert np.isnan(items.counts.coverage)
    assert repr(items) == "Items(0 items in 0 clusters: 0 answered, 0 abstained, 0 failed, 0 unscored)"


def test_a_number_too_large_for_a_float_is_an_error_with_its_row() -> None:
    with pytest.raises(DataError, match="signal s is too large for a float at row 1"):
        Items.from_arrays([1, 2], [1, 2], signals={"s": [1, 10**400]})


def test_names_are_unchanged() -> None:
    items = Items.from_arrays([1, 2, 3], [1, 2, 3], cluster=np.array(["b", "a", "b"]), item=[2**63, -1, 0])
    assert items.cluster.dtype == object
    assert items.cluster_ids.tolist() == ["a", "b"]
    assert items.cluster_index.tolist() == [1, 0, 1]
    assert items.item.tolist() == [2**63, -1, 0]
    for ragged in ({"intervals": [[1], [1, 2]]}, {"sets": [[1], [1, 0]], "classes": ["1", "2"]}):
        with pytest.raises(DataError, match=r"must contain (two numbers|one boolean per class)"):
            Items.from_arrays([1, 2], [1, 2], **ragged)


def test_a_half_is_rounded_up_however_the_weights_are_added() -> None:
    for weight in (np.full(55, 0.3), np.array([16.5]), np.full(33, 0.5)):
        correct = np.zeros(len(weight), int)
        assert Items.from_arrays(correct, correct, weight=weight).counts.answered == 17


@pytest.mark.parametrize("factor", [0.01, 1.0, 100.0])
def test_whether_no_answer_is_right_depends_on_counted_rows_and_not_on_the_unit_of_weights(
    factor: float,
) -> None:
    def never_equal(*weight: float) -> bool:
        return Items.from_arrays([1, 0, 1], [0, 1, 1], weight=factor * np.array(weight)).never_equal

    assert never_equal(1.0, 2.0, 0.0)
    assert not never_equal(1.0, 2.0, 0.5)
    assert not never_equal(1.0, 0.0, 0.0)
