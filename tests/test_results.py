"""Evaluation results: their conversion to items and back, their repr without private text, and errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from abstain import Items, Outcome
from abstain.errors import ArgumentError, DataError
from abstain.metrics import EvaluationResult, MetricScore, items_to_results, results_to_items

SECRET = "Mrs. Example, born 1950"

labels = st.one_of(st.none(), st.integers(-5, 5), st.sampled_from(["stable", "Worse", "1"]), st.floats(0, 1))
values = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.text(max_size=5),
    st.lists(st.integers(), min_size=2, max_size=2),
)
texts = st.text(max_size=8)
numbers = st.one_of(st.none(), st.floats(0, 1e6))
results = st.lists(
    st.builds(
        EvaluationResult,
        labels,
        labels,
        abstained=st.booleans(),
        confidence=st.one_of(st.none(), st.floats(0, 1)),
        raw_response=texts,
        prompt=st.lists(st.dictionaries(st.sampled_from(["role", "content"]), texts), max_size=2),
        prompt_mode=st.sampled_from(["", "single", "batch"]),
        metadata=st.dictionaries(st.sampled_from(["sex", "ckd_stage", "prompt"]), values),
        input_tokens=numbers,
        output_tokens=numbers,
        total_tokens=numbers,
        signals=st.dictionaries(st.sampled_from(["token_msp", "margin"]), numbers),
    ),
    min_size=1,
    max_size=6,
)


@given(results)
def test_results_converted_to_items_and_back_are_equal(rows: list[EvaluationResult]) -> None:
    assert items_to_results(results_to_items(rows)) == rows


@given(results)
def test_items_converted_to_results_and_back_are_equal(rows: list[EvaluationResult]) -> None:
    items = results_to_items(rows)
    again = results_to_items(items_to_results(items))
    assert again.outcome.tolist() == items.outcome.tolist()
    assert np.array_equal(again.cluster, items.cluster)
    for name, signal in items.signals.items():
        assert np.array_equal(again.signals[name].values, signal.values, equal_nan=True)
        assert np.array_equal(again.signals[name].absent, signal.absent)
    assert {name: column.tolist() for name, column in again.metadata.items()} == {
        name: column.tolist() for name, column in items.metadata.items()
    }


def test_clusters_items_failures_and_signals_are_converted() -> None:
    items = Items.from_arrays(
        [1, 0, 1, None],
        [1, None, None, 1],
        abstained=[False, True, False, False],
        failed=[False, False, True, False],
        cluster=["p1", "p1", "p2", "p2"],
        item=["a", "b", "a", "b"],
        confidence=[0.9, 0.4, 0.1, 0.2],
        signals={"evidence": [3, None, 0, 1]},
        metadata={"sex": ["F", "F", "M", "M"]},
    )
    rows = items_to_results(items)
    assert [row.cluster for row in rows] == ["p1", "p1", "p2", "p2"]
    assert [row.failed for row in rows] == [False, False, True, False]
    assert rows[1].signals == {"evidence": None}
    again = results_to_items(rows)
    assert again.outcome.tolist() == items.outcome.tolist()
    assert again.cluster.tolist() == items.cluster.tolist()
    assert again.item.tolist() == items.item.tolist()


def test_an_answered_none_stays_answered() -> None:
    items = results_to_items([EvaluationResult(None, 1), EvaluationResult(None, 1, abstained=True)])
    assert items.outcome.tolist() == [Outcome.ANSWERED, Outcome.ABSTAINED]


def test_clusters_may_come_from_metadata() -> None:
    rows = [EvaluationResult(1, 1, metadata={"patient": p}) for p in ("x", "y", "x")]
    items = results_to_items(rows, cluster="patient")
    assert items.cluster_ids.tolist() == ["x", "y"]


def test_reprs_contain_no_private_text() -> None:
    row = EvaluationResult(
        1, 0, raw_response=SECRET, prompt=[{"content": SECRET}], metadata={"name": SECRET}, confidence=0.5
    )
    items = results_to_items([row])
    for shown in (repr(row), str(row), repr(items), str([row]), repr(MetricScore("m", 1.0))):
        assert "Example" not in shown


class TestBadInput:
    @pytest.mark.parametrize(
        ("wrong", "message"),
        [
            ({"confidence": float("nan")}, "confidence is NaN at row 1; use None"),
            ({"confidence": 1.2}, r"confidence must lie in \[0, 1\], got 1.2 at row 1"),
            ({"confidence": -0.1}, r"confidence must lie in \[0, 1\], got -0.1 at row 1"),
            ({"confidence": "high"}, "confidence must be a number or None, got text at row 1"),
            ({"confidence": True}, "confidence must be a number or None, got a bool at row 1"),
            ({"abstained": "no"}, "abstained must be True or False, got text at row 1"),
            ({"failed": 1}, "failed must be True or False, got a number at row 1"),
            ({"metadata": SECRET}, "metadata must be a mapping, got text at row 1"),
        ],
    )
    def test_an_error_names_the_invalid_row(self, wrong: dict[str, Any], message: str) -> None:
        with pytest.raises(DataError, match=message) as raised:
            results_to_items([EvaluationResult(1, 1), EvaluationResult(1, 1, **wrong)])
        assert "Example" not in str(raised.value)

    def test_an_empty_list_is_an_error(self) -> None:
        with pytest.raises(DataError, match="results is empty; pass at least one EvaluationResult"):
            results_to_items([])

    def test_another_object_than_a_result_is_an_error(self) -> None:
        with pytest.raises(DataError, match="must hold EvaluationResult objects, got a dict at row 0"):
            results_to_items([{"prediction": 1}])

    def test_an_unknown_cluster_key_is_an_error(self) -> None:
        rows = [EvaluationResult(1, 1, metadata={"patient": "x"})]
        with pytest.raises(ArgumentError, match="unknown cluster key 'patients' .did you mean 'patient'"):
            results_to_items(rows, cluster="patients")

    def test_a_row_without_a_cluster_is_an_error(self) -> None:
        rows = [EvaluationResult(1, 1, metadata={"patient": "x"}), EvaluationResult(1, 1)]
        with pytest.raises(DataError, match="row 1 has no 'patient' in its metadata"):
            results_to_items(rows, cluster="patient")
        with pytest.raises(DataError, match="row 1 has no cluster, although other rows do"):
            results_to_items([EvaluationResult(1, 1, cluster="a"), EvaluationResult(1, 1)])

    def test_a_reserved_metadata_key_is_an_error(self) -> None:
        with pytest.raises(DataError, match="keys that begin with 'result.' are reserved"):
            results_to_items([EvaluationResult(1, 1, metadata={"result.prompt": 1})])
