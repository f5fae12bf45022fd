"""A real Spark of two threads counts rows, and gives what numpy gives in memory."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

import abstain
from abstain import ArgumentError, DataError

sys.path[:0] = [str(Path(__file__).parent.parent / "tests" / part) for part in ("sources", "cli", "")]

from test_engines import FORMS, NAMES, QUESTIONS, ROLES, assert_same, frame, written  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    from pyspark.sql import SparkSession  # noqa: PLC0415

    settings = {"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "3", "spark.log.level": "ERROR"}
    builder = SparkSession.builder.master("local[2]").appName("abstain")
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    yield session
    session.stop()


# Few clusters are left out one by one, as for DuckDB; here it is enough to see that for one question.
@pytest.mark.parametrize(("question", "clusters"), [("groups", 40), *((name, 5000) for name in QUESTIONS)])
def test_every_question_has_the_same_answer(spark: Any, tmp_path: Path, question: str, clusters: int) -> None:
    path = written(frame(3000, clusters=clusters), tmp_path / "t.parquet")
    asked = {**ROLES, **QUESTIONS[question]}
    rows = spark.read.parquet(str(path)).repartition(3)
    assert_same(abstain.evaluate(rows, **asked), abstain.evaluate(path, engine="numpy", **asked))


@pytest.mark.parametrize(
    "names",
    [
        "negative numbers",
        "words and numbers",
        "negative ones",
        "such floats as text",
        "letters of other scripts",
    ],
)
def test_clusters_are_in_the_same_groups(spark: Any, tmp_path: Path, names: str) -> None:
    table = frame(1500, clusters=800)
    named = pl.Series("patient_id", [NAMES[names](number) for number in table["patient_id"].to_list()])
    path = written(table.with_columns(named), tmp_path / "t.parquet")
    assert_same(
        abstain.evaluate(spark.read.parquet(str(path)), **ROLES),
        abstain.evaluate(path, engine="numpy", **ROLES),
    )


def test_partitions_and_order_change_nothing(spark: Any, tmp_path: Path) -> None:
    path = written(frame(4000, clusters=900), tmp_path / "t.parquet")
    rows = spark.read.parquet(str(path))
    whole = abstain.evaluate(rows.coalesce(1), **ROLES)
    for other in (rows.repartition(7), rows.orderBy("c"), rows.repartition(4, "site")):
        found = abstain.evaluate(other, **ROLES)
        assert found["c"].aurc.value == whole["c"].aurc.value
        assert found["c"].aurc.low == pytest.approx(whole["c"].aurc.low, abs=1e-12)


@pytest.mark.parametrize("form", FORMS)
def test_files_are_read_by_spark_where_that_is_asked_for(spark: Any, tmp_path: Path, form: str) -> None:
    path = written(frame(2000, clusters=900), tmp_path / f"t.{form}")
    counted = abstain.evaluate(path, engine="spark", **ROLES)
    assert_same(counted, abstain.evaluate(path, engine="numpy", **ROLES))
    assert counted.only.provenance["engine"] == "spark"


def test_rows_without_names_are_grouped_and_it_is_said(spark: Any, tmp_path: Path) -> None:
    path = written(frame(2000).drop("patient_id"), tmp_path / "t.parquet")
    roles = {role: name for role, name in ROLES.items() if role != "cluster"}
    counted = abstain.evaluate(spark.read.parquet(str(path)), **roles)
    loaded = abstain.evaluate(path, engine="numpy", **roles)
    assert counted["c"].aurc.value == pytest.approx(loaded["c"].aurc.value, rel=1e-12)
    assert counted["c"].aurc.se == pytest.approx(loaded["c"].aurc.se, rel=0.3)
    assert "rows have no names here" in next(
        warning.message for warning in counted.warnings if warning.code == "rows_unnamed"
    )


def test_only_tallies_reach_the_driver_and_nothing_is_left(spark: Any, tmp_path: Path) -> None:
    path = written(frame(3000, clusters=900), tmp_path / "t.parquet")
    rows = spark.read.parquet(str(path))
    rows.createOrReplaceTempView("kinds")  # a table of the user's own, of a name that is ours
    result = abstain.evaluate(rows, **ROLES)
    assert result.only.basis.judged.counted is not None
    assert len(result.only.basis.judged) < 2500
    assert spark.sql("SELECT count(*) AS n FROM kinds").collect()[0]["n"] == rows.count()
    del result
    import gc  # noqa: PLC0415

    gc.collect()
    assert [view.name for view in spark.catalog.listTables() if view.name.startswith("abstain_")] == []
    spark.catalog.dropTempView("kinds")


def test_what_is_wrong_is_counted(spark: Any) -> None:
    rows = spark.createDataFrame(
        [(1, 1, 0.5), (0, None, 0.2), (1, 0, None)], "truth int, prediction int, confidence double"
    )
    with pytest.raises(
        DataError, match=r"the Spark DataFrame: the prediction \(prediction\) is missing in 1 row and"
    ):
        abstain.evaluate(rows)
    with pytest.raises(DataError, match=r"confidence \(confidence\) is missing or not finite .* in 1 row"):
        abstain.evaluate(rows, null_prediction="abstained")
    with pytest.raises(ArgumentError, match="has no column 'truht'"):
        abstain.evaluate(rows, truth="truht")
    with pytest.raises(
        ArgumentError, match="engine duckdb does not count a Spark DataFrame; leave the engine out"
    ):
        abstain.evaluate(rows, engine="duckdb")
    with pytest.raises(ArgumentError, match="several systems are matched row by row"):
        abstain.compare({"a": rows, "b": rows})
    with pytest.raises(ArgumentError, match="is counted where it is, by abstain.evaluate; for anything else"):
        abstain.read(rows)
    twins = spark.createDataFrame([(1, 1, 0.5)], "truth int, prediction int, Truth double")
    with pytest.raises(DataError, match="names differ in case alone"):
        abstain.evaluate(twins)
