from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest

from abstain import ArgumentError, DataError, FormatError, Items, evaluate, read
from examples import EXAMPLES

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def plain(column: Any) -> list[Any]:
    return [None if isinstance(value, float) and math.isnan(value) else value for value in column.tolist()]


def assert_same(left: Items, right: Items, *, declared: bool = True) -> None:
    for name in ("truth", "outcome", "cluster", "item"):
        assert plain(getattr(left, name)) == plain(getattr(right, name)), name
    answered = left.answered
    assert plain(left.prediction[answered]) == plain(right.prediction[answered])
    assert list(left.signals) == list(right.signals)
    for name, signal in left.signals.items():
        np.testing.assert_array_equal(signal.values, right.signals[name].values)
        assert signal.absent.tolist() == right.signals[name].absent.tolist(), name
    assert set(left.metadata) == set(right.metadata)
    for name, column in left.metadata.items():
        assert plain(column) == plain(right.metadata[name]), name
    for name in ("weight", "intervals", "sets"):
        np.testing.assert_array_equal(getattr(left, name), getattr(right, name))
    assert left.classes == right.classes
    if declared:
        assert left.scale == right.scale
        assert left.cluster_noun == right.cluster_noun


def _table() -> Items:
    columns = {
        "truth": [1, 0, 7],
        "prediction": [1, None, 2],
        "x": [0.5, None, 1.0],
        "cluster": ["b", "a", "b"],
    }
    return read(pl.DataFrame(columns), null_prediction="abstained")


def _odd() -> Items:
    return Items.from_records(
        [
            {"truth": "a", "prediction": "b", "signals": {"s": 1}, "metadata": {"flag": True, "item": 3}},
            {"truth": None, "prediction": "b", "signals": {"s": None}, "metadata": {"flag": None, "item": 4}},
            {"truth": "a", "prediction": None, "failed": True, "metadata": {"flag": False, "item": 5}},
            {
                "truth": 'o\'clock "x"',
                "prediction": "a",
                "signals": {"s": 2},
                "metadata": {"flag": True, "item": 6},
            },
        ]
    )


def _weighted() -> Items:
    nothing = [math.nan, math.nan]
    return Items.from_arrays(
        ["b", "a", "c", "a"],
        ["b", "b", None, "a"],
        abstained=[False, False, True, False],
        cluster=["p", "q", "p", "q"],
        confidence=[0.5, 0.25, None, 1.0],
        weight=[1.0, 2.5, 0.0, 3.0],
        intervals=[[0, 1], [-1, 2], nothing, [0.5, 0.5]],
        sets=[[0, 1, 0], [1, 1, 0], [0, 0, 0], [1, 0, 1]],
        classes=["a", "b", "c"],
    )


@pytest.fixture(params=["run", "older run", "inspect", "graded", "lm-eval", "table", "odd", "weighed"])
def items(request: pytest.FixtureRequest, inspect_logs: Path, lm_eval_samples: Path) -> Items:
    older = EXAMPLES / "run_b.json"
    makers: dict[str, Callable[[], Items]] = {
        "run": lambda: read(EXAMPLES / "run_a.json", mode="few_shot"),
        "older run": lambda: read(older, mode=_first_mode(older)),
        "inspect": lambda: read(inspect_logs / "epochs.eval", cluster_by="doc"),
        "graded": lambda: read(inspect_logs / "plain.eval", scorer="graded.content"),
        "lm-eval": lambda: read(
            lm_eval_samples / "samples_repeated.jsonl", abstain_rule="phrases:I don't know"
        ),
        "table": _table,
        "odd": _odd,
        "weighed": _weighted,
    }
    return makers[request.param]()


def _first_mode(path: Path) -> str:
    return str(json.loads(path.read_text())["experiments"][0]["provenance"]["mode"])


@pytest.mark.parametrize("backend", ["pandas", "polars", "pyarrow"])
def test_a_frame_is_read_back_equal(items: Items, backend: str) -> None:
    assert_same(items, read(items.to_frame(backend)), declared=False)


def test_a_parquet_file_is_read_back_equal(items: Items, tmp_path: Path) -> None:
    assert_same(items, read(items.to_parquet(tmp_path / "items.parquet")))
    assert [path.name for path in tmp_path.iterdir()] == ["items.parquet"]


def test_a_run_file_is_read_back_equal(items: Items, tmp_path: Path) -> None:
    path = items.to_run_file(tmp_path / "run.json")
    assert_same(items, read(path))
    assert read(path, mode="exported").provenance["mode"] == "exported"


def test_exported_items_have_the_same_numbers(tmp_path: Path, inspect_logs: Path) -> None:
    items = read(inspect_logs / "epochs.eval")
    right = evaluate(items, confidence="consistency", loss="zero_one", resamples=50)["consistency"]
    for path in (items.to_run_file(tmp_path / "run.json"), items.to_parquet(tmp_path / "t.parquet")):
        evaluated = evaluate(read(path), confidence="consistency", loss="zero_one", resamples=50)[
            "consistency"
        ]
        assert evaluated.aurc == right.aurc


def test_the_default_frame_and_an_unknown_backend(tmp_path: Path) -> None:
    items = Items.from_arrays([1], [1])
    assert type(items.to_frame()).__module__.startswith("pandas")
    with pytest.raises(ArgumentError, match="unknown backend 'spark'; known: pandas, polars, pyarrow"):
        items.to_frame("spark")
    with pytest.raises(ArgumentError, match="the directory .* does not exist"):
        items.to_parquet(tmp_path / "none" / "x.parquet")


def test_values_that_cannot_be_written_are_errors(tmp_path: Path) -> None:
    items = Items.from_arrays([1, 1], [1, 1], cluster=[0, 0], item=["a", "a"])
    with pytest.raises(DataError, match="cluster 0 has a duplicate item"):
        items.to_run_file(tmp_path / "run.json")
    items = Items.from_arrays([1], [1], signals={"x": [np.inf]})
    with pytest.raises(DataError, match="the signal x is inf at row 0; JSON cannot contain infinite numbers"):
        items.to_run_file(tmp_path / "run.json")
    items = Items.from_arrays([1], [1], intervals=[[-np.inf, 1]])
    with pytest.raises(
        DataError, match="the interval is infinite at row 0; JSON cannot contain infinite numbers"
    ):
        items.to_run_file(tmp_path / "run.json")
    back = read(items.to_parquet(tmp_path / "t.parquet")).intervals
    assert back is not None
    assert back.tolist() == [[-np.inf, 1.0]]
    with pytest.raises(DataError, match="the signal 'abstain.weight' has the name of a column"):
        Items.from_arrays([1], [1], signals={"abstain.weight": [1]}).to_frame()
    with pytest.raises(DataError, match="the signal 'truth' has the name of a column"):
        Items.from_arrays([1], [1], signals={"truth": [1]}).to_frame()


def test_classes_that_never_occur_are_kept_in_a_file(tmp_path: Path) -> None:
    items = Items.from_arrays(["a"], ["a"], sets=[[1, 0]], classes=["a", "z"])
    for path in (items.to_parquet(tmp_path / "t.parquet"), items.to_run_file(tmp_path / "run.json")):
        assert read(path).classes == ("a", "z")


def test_an_inconsistent_exported_run_is_an_error(tmp_path: Path) -> None:
    path = Items.from_arrays(["a"], ["b"]).to_run_file(tmp_path / "run.json")
    run = json.loads(path.read_text())
    run["experiments"][0]["results"]["results"][0]["predicted_items"]["0"] = 9
    path.write_text(json.dumps(run))
    with pytest.raises(FormatError, match="provenance.abstain does not match the records"):
        read(path)
    run["experiments"][0]["results"]["results"][0]["item_signals"]["0"] = 5
    path.write_text(json.dumps(run))
    with pytest.raises(FormatError, match="participant 0, item 0: item_signals must be an object"):
        read(path)
    del run["experiments"][0]["results"]["results"][0]["outcomes"]
    path.write_text(json.dumps(run))
    with pytest.raises(FormatError, match="participant 0 has no outcomes for each of its items"):
        read(path)


def test_several_run_files_keep_weights_intervals_and_sets(tmp_path: Path) -> None:
    parts = [
        Items.from_arrays(
            ["a", "b"],
            ["a", "a"],
            cluster=[2 * number, 2 * number + 1],
            item=["x", "x"],
            weight=[2, 3] if number else None,
            intervals=[[0, 1], [number, 2]],
            sets=[[1, 0], [1, 1]],
            classes=["a", "b"],
        )
        for number in (0, 1)
    ]
    paths = [part.to_run_file(tmp_path / f"{number}.json") for number, part in enumerate(parts)]
    joined = read(paths)
    assert joined.weight is not None
    assert joined.intervals is not None
    assert joined.sets is not None
    assert joined.weight.tolist() == [1, 1, 2, 3]
    assert joined.intervals.tolist() == [[0, 1], [0, 2], [0, 1], [1, 2]]
    assert joined.sets.tolist() == [[True, False], [True, True]] * 2
    assert joined.classes == ("a", "b")
    Items.from_arrays(["a"], ["a"], cluster=[9], item=["x"]).to_run_file(tmp_path / "plain.json")
    with pytest.raises(DataError, match="the files have different predictions"):
        read([paths[0], tmp_path / "plain.json"])
