"""Spark with two threads aggregates rows and gives the same results as numpy in memory."""

from __future__ import annotations

import gc
import socket
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

import abstain
from abstain import ArgumentError, DataError
from abstain.readers import _row_query
from abstain.readers._spark_engine import SparkEngine, SparkTable

sys.path[:0] = [str(Path(__file__).parent.parent / "tests" / part) for part in ("readers", "cli", "")]

import test_engine_checks as checks  # noqa: E402
import test_engine_comparisons as comparisons  # noqa: E402
from test_engines import (  # noqa: E402
    FORMS,
    NAMES,
    QUESTIONS,
    ROLES,
    assert_same,
    binning_error,
    frame,
    tied_frame,
    written,
)

from commands import caller  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    from pyspark.sql import SparkSession  # noqa: PLC0415

    settings = {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.log.level": "ERROR",
        # With hundreds of small statements, generating and compiling Java code would take most of the time.
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.adaptive.enabled": "false",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    }
    builder = SparkSession.builder.master("local[2]").appName("abstain")
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    yield session
    session.stop()


# With few clusters, the jackknife leaves out single clusters. The DuckDB tests check that for all requests.
@pytest.mark.parametrize(("question", "clusters"), [("groups", 40), *((name, 5000) for name in QUESTIONS)])
def test_every_evaluation_has_the_same_result(
    spark: Any, tmp_path: Path, question: str, clusters: int
) -> None:
    path = written(frame(3000, clusters=clusters), tmp_path / "t.parquet")
    arguments = {**ROLES, **QUESTIONS[question]}
    rows = spark.read.parquet(str(path)).repartition(3)
    assert_same(abstain.evaluate(rows, **arguments), abstain.evaluate(path, engine="numpy", **arguments))


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
    clusters = pl.Series("patient_id", [NAMES[names](number) for number in table["patient_id"].to_list()])
    path = written(table.with_columns(clusters), tmp_path / "t.parquet")
    assert_same(
        abstain.evaluate(spark.read.parquet(str(path)), **ROLES),
        abstain.evaluate(path, engine="numpy", **ROLES),
    )


def test_a_number_with_a_line_end_is_not_a_number(spark: Any, tmp_path: Path) -> None:
    """In Java, $ also matches before the last line end. The groups matter for more than 1,000 clusters."""
    table = frame(4000, clusters=1400)
    names = [f"{number}\n" if number % 3 else str(number) for number in table["patient_id"].to_list()]
    path = written(table.with_columns(pl.Series("patient_id", names)), tmp_path / "t.parquet")
    rows = spark.read.parquet(str(path))
    assert_same(abstain.evaluate(rows, **ROLES), abstain.evaluate(path, engine="numpy", **ROLES))


def test_a_system_that_declines_more_does_not_win(spark: Any, tmp_path: Path) -> None:
    """The timid system declines most of the answers that the other gives; the conclusion is that of rows in memory."""
    number = pl.arange(400, eager=True)
    table = pl.DataFrame(
        {"id": number, "patient": number // 4, "truth": 1, "confidence": number * 37 % 101 / 101}
    )
    answer = (pl.col("id") % 3 > 0).cast(pl.Int64)
    tables = {
        "ok": table.with_columns(prediction=answer),
        "timid": table.with_columns(prediction=pl.when(pl.col("id") * 7 % 10 < 2).then(answer)),
    }
    arguments: dict[str, Any] = {
        "metrics": ["augrc", "selective_accuracy", "wrong_rate"],
        "null_prediction": "abstained",
        "cluster": "patient",
        "item": "id",
    }
    loaded = abstain.compare(tables, **arguments)
    systems = comparisons.files(tables, tmp_path)
    rows = {name: spark.read.parquet(str(path)) for name, path in systems.items()}
    aggregated = abstain.compare(rows, **arguments)
    comparisons.assert_same_comparison(aggregated, loaded)
    assert loaded.headline is not None
    assert aggregated.headline is not None
    assert aggregated.headline.winner == loaded.headline.winner != "timid"
    assert aggregated.headline.sentence == loaded.headline.sentence
    assert aggregated.headline.basis == "matched coverage"
    assert not any(difference.winner == "timid" for difference in aggregated.differences)


@pytest.mark.parametrize("question", ["selective", "a metric by group", "only items", "weights"])
def test_systems_are_compared_in_spark(spark: Any, tmp_path: Path, question: str) -> None:
    arguments = {**comparisons.ROLES, **comparisons.QUESTIONS[question]}
    tables = comparisons.pair(2000, clusters=900)
    if question == "only items":
        tables = {name: table.drop("patient_id") for name, table in tables.items()}
    systems = comparisons.files(tables, tmp_path)
    rows = {name: spark.read.parquet(str(path)).repartition(3) for name, path in systems.items()}
    loaded = abstain.compare(systems, engine="numpy", **arguments)
    comparisons.assert_same_comparison(abstain.compare(rows, **arguments), loaded)


def test_a_gate_gives_the_same_verdict(spark: Any, tmp_path: Path) -> None:
    systems = comparisons.files(comparisons.pair(clusters=700), tmp_path)
    gates = [
        abstain.gate(
            systems["new"],
            ["augrc worse by 0.01", "accuracy below 0.9"],
            baseline=systems["old"],
            engine=engine,
            **comparisons.ROLES,
        )
        for engine in ("spark", "numpy")
    ]
    assert [check.sentence for check in gates[0].checks] == [check.sentence for check in gates[1].checks]
    assert gates[0].warnings == gates[1].warnings


def test_rows_that_cannot_be_matched_are_errors(spark: Any, tmp_path: Path) -> None:
    tables = comparisons.pair(500)
    rows = {name: spark.read.parquet(str(path)) for name, path in comparisons.files(tables, tmp_path).items()}
    old, new, roles = rows["old"], rows["new"], comparisons.ROLES
    with pytest.raises(ArgumentError, match="spark has no order of rows to match them by; name the items"):
        abstain.compare(rows, match="rows", **roles)
    with pytest.raises(
        DataError, match=r"new lacks 1 \(the first one that new lacks: patient \d+, item 21\), 499 are in"
    ):
        abstain.compare({"old": old, "new": new.where("name <> 21")}, **roles)
    with pytest.raises(
        DataError,
        match=r"the Spark DataFrame: the item ids \(name\) must be .*there is a duplicate in 500 rows",
    ):
        abstain.compare({"old": old, "new": new.union(new)}, **roles)
    with pytest.raises(DataError, match=r"old: patient \d+ appears twice; the items have no names"):
        abstain.compare({"old": old.drop("name"), "new": new.drop("name")}, **{**roles, "item": None})
    with pytest.raises(
        ArgumentError, match="old is a Spark DataFrame and can be compared only .*; new is not one"
    ):
        abstain.compare({"old": old, "new": tables["new"]}, **roles)
    nameless = new.selectExpr("* EXCEPT (name)", "CASE WHEN name = 21 THEN NULL ELSE name END AS name")
    with pytest.raises(DataError, match="'name' is empty or nan in 1 row; every row needs a value"):
        abstain.compare({"old": old, "new": nameless}, **roles)


@pytest.mark.parametrize("command", checks.COMMAND_ARGUMENTS)
def test_the_documented_support_matrix_is_right(
    spark: Any,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    command: str,
) -> None:
    assert spark is not None  # the session that reads the files
    checks.written_pair(tmp_path)
    run = caller(monkeypatch, capsys, tmp_path)
    checks.assert_documented(run, command, "spark", checks.matrix()[command][2])


def test_check_has_the_same_result(spark: Any, tmp_path: Path) -> None:
    path = written(frame(1500, clusters=900), tmp_path / "t.parquet")
    checks.assert_same_check(spark.read.parquet(str(path)), "spark", path, **ROLES)


def test_a_bin_with_one_value_adds_no_binning_error(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_row_query, "FEW_ROWS", 1000)
    monkeypatch.setattr(_row_query, "HEAD", 4000)
    path = written(tied_frame(), tmp_path / "t.parquet")
    rows = spark.read.parquet(str(path)).repartition(3)
    aggregated = abstain.evaluate(rows, cluster="cluster")["confidence"]
    loaded = abstain.evaluate(path, engine="numpy", cluster="cluster")["confidence"]
    (binned,) = (warning for warning in aggregated.warnings if warning.code == "binned")
    assert abs(aggregated.aurc.value - loaded.aurc.value) < binning_error(binned.message) < 0.002
    assert aggregated.curve.threshold[0] == 1.0


def test_results_do_not_depend_on_partitions_and_order(spark: Any, tmp_path: Path) -> None:
    path = written(frame(4000, clusters=900), tmp_path / "t.parquet")
    rows = spark.read.parquet(str(path))
    expected = abstain.evaluate(rows.coalesce(1), **ROLES)["c"].aurc
    for other in (rows.repartition(7), rows.orderBy("c"), rows.repartition(4, "site")):
        aurc = abstain.evaluate(other, **ROLES)["c"].aurc
        assert aurc.value == expected.value
        assert aurc.low == pytest.approx(expected.low, abs=1e-12)


@pytest.mark.parametrize("form", FORMS)
def test_engine_spark_reads_files(spark: Any, tmp_path: Path, form: str) -> None:
    path = written(frame(2000, clusters=900), tmp_path / f"t.{form}")
    aggregated = abstain.evaluate(path, engine="spark", **ROLES)
    assert_same(aggregated, abstain.evaluate(path, engine="numpy", **ROLES))
    assert aggregated.only.provenance["engine"] == "spark"


def test_rows_without_names_are_grouped_with_a_warning(spark: Any, tmp_path: Path) -> None:
    path = written(frame(2000).drop("patient_id"), tmp_path / "t.parquet")
    roles = {role: name for role, name in ROLES.items() if role != "cluster"}
    aggregated = abstain.evaluate(spark.read.parquet(str(path)), **roles)
    loaded = abstain.evaluate(path, engine="numpy", **roles)
    assert aggregated["c"].aurc.value == pytest.approx(loaded["c"].aurc.value, rel=1e-12)
    assert aggregated["c"].aurc.se == pytest.approx(loaded["c"].aurc.se, rel=0.3)
    assert "rows have no names" in next(
        warning.message for warning in aggregated.warnings if warning.code == "rows_unnamed"
    )


def test_only_aggregated_rows_reach_the_driver_and_no_view_remains(spark: Any, tmp_path: Path) -> None:
    path = written(frame(3000, clusters=900), tmp_path / "t.parquet")
    rows = spark.read.parquet(str(path))
    rows.createOrReplaceTempView("kinds")  # a table of the user whose name abstain uses in its statements
    result = abstain.evaluate(rows, **ROLES)
    assert result.only.basis.evaluated.aggregation is not None
    assert len(result.only.basis.evaluated) < 2500
    assert spark.sql("SELECT count(*) AS n FROM kinds").collect()[0]["n"] == rows.count()
    del result
    gc.collect()
    assert_no_view_remains(spark)
    spark.catalog.dropTempView("kinds")


def test_an_engine_may_be_deleted_during_a_call_of_spark(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = SparkEngine(SparkTable(spark.range(3)))
    engine.itself = engine  # type: ignore[attr-defined]  # so that only garbage collection deletes it
    read = socket.SocketIO.readinto

    def collect_and_read(stream: socket.SocketIO, buffer: Any) -> int | None:
        gc.collect()
        return read(stream, buffer)

    gc.disable()
    try:
        del engine
        monkeypatch.setattr(socket.SocketIO, "readinto", collect_and_read)
        assert spark.sql("SELECT 1 AS one").collect()[0]["one"] == 1
    finally:
        gc.enable()
    assert_no_view_remains(spark)


def assert_no_view_remains(spark: Any) -> None:
    """Wait until the views are dropped, which happens in another thread."""
    end = time.monotonic() + 60
    # Listing tables through the catalog fails if one is dropped meanwhile.
    while spark.sql("SHOW VIEWS LIKE 'abstain_*'").collect():
        assert time.monotonic() < end, "a view remains"
        time.sleep(0.05)


def test_errors_give_the_number_of_rows(spark: Any) -> None:
    rows = spark.createDataFrame(
        [(1, 1, 0.5), (0, None, 0.2), (1, 0, None)], "truth int, prediction int, confidence double"
    )
    with pytest.raises(
        DataError,
        match=r"the Spark DataFrame: the prediction \(prediction\) is missing in 1 row for an unknown reason",
    ):
        abstain.evaluate(rows)
    with pytest.raises(DataError, match="the confidence .confidence. is missing .* for 1 item of the table"):
        abstain.evaluate(rows, null_prediction="abstained")
    with pytest.raises(ArgumentError, match="has no column 'truht'"):
        abstain.evaluate(rows, truth="truht")
    with pytest.raises(
        ArgumentError, match="engine duckdb does not aggregate a Spark DataFrame; omit the engine"
    ):
        abstain.evaluate(rows, engine="duckdb")
    with pytest.raises(
        ArgumentError,
        match="is aggregated by abstain.evaluate, in the cluster; for anything that needs its rows",
    ):
        abstain.read(rows)
    twins = spark.createDataFrame([(1, 1, 0.5)], "truth int, prediction int, Truth double")
    with pytest.raises(DataError, match="names differ only in case"):
        abstain.evaluate(twins)
