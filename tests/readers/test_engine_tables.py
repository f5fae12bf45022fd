"""Tables that DuckDB aggregates have the same numbers and errors as tables in memory."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np
import polars as pl
import pytest
from test_engines import assert_same, written

import abstain
from abstain import _sql
from abstain.readers import _row_query

if TYPE_CHECKING:
    from pathlib import Path

ROLES: dict[str, Any] = {
    "truth": "t",
    "prediction": "p",
    "abstained": "a",
    "confidence": "c",
    "cluster": "patient_id",
}
QUESTIONS: dict[str, dict[str, Any]] = {
    "selective": {},
    "no intervals": {"interval": "none"},
    "labels": {"metrics": ["balanced_accuracy", "macro_f1"]},
    "safety": {"metrics": ["accuracy", "selective_accuracy", "abstention_rate"]},
    "calibration": {"metrics": ["expected_calibration_error", "brier_score"]},
    "groups": {"metrics": ["accuracy", "augrc"], "by": "site"},
    "another confidence": {"confidence": ["c", "d"]},
}


def frame(rows: int = 4000, *, clusters: int = 1500, continuous: bool = False) -> pl.DataFrame:
    rng = np.random.default_rng(4)
    truth = rng.integers(-1, 3, rows)
    right = rng.random(rows) < 0.7
    return pl.DataFrame(
        {
            "t": truth.astype(np.int32),
            "p": np.where(right, truth, rng.integers(-1, 3, rows)),
            "a": rng.random(rows) < 0.2,
            "c": rng.random(rows) if continuous else rng.integers(0, 6, rows) / 5,
            "d": rng.integers(0, 3, rows) / 2,
            "site": rng.integers(0, 3, rows).astype(np.uint8),
            "patient_id": rng.integers(-400, clusters - 400, rows),
        }
    )


@pytest.mark.parametrize("form", ["parquet", "csv"])
@pytest.mark.parametrize("question", QUESTIONS)
def test_every_request_has_the_same_result_as_in_memory(tmp_path: Path, question: str, form: str) -> None:
    path = written(frame(), tmp_path / f"t.{form}")
    arguments = {**ROLES, **QUESTIONS[question]}
    aggregated = abstain.evaluate(path, engine="duckdb", **arguments)
    assert_same(aggregated, abstain.evaluate(path, engine="numpy", **arguments))


def test_the_progress_of_an_evaluation_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_sql, "_PATIENCE", 0.0001)
    path = written(frame(1_000_000), tmp_path / "t.parquet")
    progress: list[float] = []
    with _sql.watched(progress.append):
        abstain.evaluate(path, engine="duckdb", interval="none", **ROLES)
    if not hasattr(duckdb.DuckDBPyConnection, "query_progress"):  # older versions report no progress
        assert not progress
        return
    assert {proportion for proportion in progress if 0.0 < proportion < 100.0}
    assert max(progress) <= 100.0


UNUSUAL: dict[str, pl.Expr] = {
    "a gap in the confidence": pl.when(pl.col("a")).then(None).otherwise(pl.col("c")).alias("c"),
    "labels of text": pl.col("t", "p").cast(pl.String),
    "labels of floating-point numbers": pl.col("t", "p").cast(pl.Float64),
    "many row types": (pl.int_range(pl.len()) % 300).alias("t"),
    "clusters far apart": pl.col("patient_id") * 10**9,
    "clusters of text": pl.col("patient_id").cast(pl.String),
    "a confidence of whole numbers": (pl.col("c") * 5).cast(pl.Int64),
}


@pytest.mark.parametrize("what", UNUSUAL)
def test_unusual_columns_have_the_same_result_as_in_memory(tmp_path: Path, what: str) -> None:
    path = written(frame().with_columns(UNUSUAL[what]), tmp_path / "t.parquet")
    arguments = {**ROLES, "metrics": ["accuracy", "augrc"], "by": "site"}
    aggregated = abstain.evaluate(path, engine="duckdb", **arguments)
    assert_same(aggregated, abstain.evaluate(path, engine="numpy", **arguments))


@pytest.mark.parametrize("wrong", [np.nan, np.inf, None])
def test_errors_are_the_same_as_in_memory(tmp_path: Path, wrong: float | None) -> None:
    table = frame().with_columns(a=pl.lit(value=False))
    column = table["c"].to_list()
    column[1234] = wrong
    path = written(table.with_columns(pl.Series("c", column)), tmp_path / "t.parquet")
    messages = []
    for engine in ("duckdb", "numpy"):
        with pytest.raises(abstain.AbstainError) as problem:
            abstain.evaluate(path, engine=engine, **ROLES)
        messages.append(str(problem.value))
    assert messages[0] == messages[1]
    assert f"patient {table['patient_id'][1234]}, row 1235 of {path}" in messages[0]


@pytest.mark.parametrize("continuous", [False, True])
def test_the_row_of_a_wrong_confidence_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, continuous: bool
) -> None:
    monkeypatch.setattr(_row_query, "FEW_ROWS", 1000)
    monkeypatch.setattr(_row_query, "HEAD", 4000)
    table = frame(20_000, continuous=continuous).with_columns(a=pl.lit(value=False))
    column = table["c"].to_list()
    column[1234] = 1.5
    path = written(table.with_columns(pl.Series("c", column)), tmp_path / "t.parquet")
    location = f"patient {table['patient_id'][1234]}, row 1235 of {path}"
    for engine in ("duckdb", "numpy"):
        message = f"needs a confidence in [0, 1], got 1.5 for {location}; use a confidence"
        with pytest.raises(abstain.DataError, match=re.escape(message)):
            abstain.evaluate(path, engine=engine, metrics=["brier_score"], **ROLES)


def test_few_evaluated_clusters_of_many_are_left_out_one_by_one(tmp_path: Path) -> None:
    table = frame().with_columns(
        pl.when(pl.col("patient_id") < -380).then(pl.col("t")).otherwise(None).alias("t"),
    )
    path = written(table, tmp_path / "t.parquet")
    arguments = {**ROLES, "abstained": None}
    assert_same(
        abstain.evaluate(path, engine="duckdb", **arguments),
        abstain.evaluate(path, engine="numpy", **arguments),
    )


def test_clusters_that_only_failed_are_not_counted_as_evaluated(tmp_path: Path) -> None:
    failed = pl.col("patient_id") > 200
    table = frame().with_columns(f=failed, a=pl.col("a") & ~failed)
    path = written(table, tmp_path / "t.parquet")
    arguments = {**ROLES, "failed": "f"}
    aggregated = abstain.evaluate(path, engine="duckdb", **arguments)
    assert_same(aggregated, abstain.evaluate(path, engine="numpy", **arguments))
    assert aggregated["c"].augrc.clusters == table.filter(~pl.col("f"))["patient_id"].n_unique() > 400
