"""The choice between aggregating a table and loading it."""

from __future__ import annotations

import gc
import gzip
from typing import TYPE_CHECKING, Any

import duckdb
import ibis
import narwhals as nw
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pytest
from test_engines import ROLES, assert_same, frame, written

import abstain
from abstain.errors import AbstainError, DataError
from abstain.readers import engines

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ROWS = 3000
CONNECTIONS: list[duckdb.DuckDBPyConnection] = []
# Ibis calls a deprecated DuckDB function.
pytestmark = pytest.mark.filterwarnings("ignore:fetch_arrow_table:DeprecationWarning")


@pytest.fixture(autouse=True)
def aggregated_from_2000_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "AGGREGATED_ROWS", 2000)


def engine_of(source: Any, **options: Any) -> str | None:
    return abstain.evaluate(source, **ROLES, **options).only.provenance.get("engine")


def compressed(path: Path) -> Path:
    return_path = path.with_suffix(".csv.gz")
    return_path.write_bytes(gzip.compress(path.read_bytes()))
    return return_path


@pytest.mark.parametrize("form", ["csv", "csv.gz", "jsonl", "parquet"])
def test_tables_of_many_rows_are_aggregated(tmp_path: Path, form: str) -> None:
    engines_used = []
    for rows in (500, ROWS):
        path = tmp_path / f"{rows}.{form.removesuffix('.gz')}"
        written(frame(rows), path)
        engines_used.append(engine_of(compressed(path) if form == "csv.gz" else path))
    assert engines_used == [None, "duckdb"]


def test_the_rows_of_a_small_parquet_file_are_counted_and_not_its_bytes(tmp_path: Path) -> None:
    table = pl.DataFrame({"truth": [1] * ROWS, "prediction": [1] * ROWS, "confidence": [0.5] * ROWS})
    table.write_parquet(tmp_path / "t.parquet")
    assert (tmp_path / "t.parquet").stat().st_size < ROWS
    result = abstain.evaluate(tmp_path / "t.parquet")
    assert result.only.provenance["engine"] == "duckdb"


def test_the_rows_of_all_files_of_a_folder_are_added_up(tmp_path: Path) -> None:
    for number, part in enumerate(frame(ROWS).iter_slices(1000)):
        written(part, tmp_path / f"{number}.csv")
    assert engine_of(tmp_path / "0.csv") is None
    assert engine_of(tmp_path) == "duckdb"


def test_a_damaged_parquet_file_is_an_error_of_the_reader(tmp_path: Path) -> None:
    (tmp_path / "t.parquet").write_bytes(b"PAR1" + b"x" * 100)
    with pytest.raises(DataError, match=r"t.parquet: the Parquet file is damaged or cut off"):
        abstain.evaluate(tmp_path / "t.parquet")


def connect() -> duckdb.DuckDBPyConnection:
    """Return a connection that stays open; older versions close a connection that only its relations refer to."""
    CONNECTIONS.append(duckdb.connect())
    return CONNECTIONS[-1]


def lazy_frame(kind: str, table: pl.DataFrame, folder: Path) -> Any:
    path = folder / "lazy.parquet"
    table.write_parquet(path)
    makers: dict[str, Callable[[], Any]] = {
        "relation": lambda: connect().sql(f"SELECT * FROM '{path}'"),
        "relation of a frame": lambda: connect().from_arrow(table.to_arrow()).filter("TRUE"),
        "polars": lambda: pl.scan_parquet(path),
        "narwhals": lambda: nw.from_native(pl.scan_parquet(path)),
        "dataset": lambda: pyarrow.dataset.dataset(path),
        "ibis on DuckDB": lambda: ibis.duckdb.connect().read_parquet(path),
        "ibis on polars": lambda: ibis.polars.connect({"t": table.lazy()}).table("t"),
    }
    return makers[kind]()


LAZY = (
    *("relation", "relation of a frame", "polars", "narwhals", "dataset"),
    *("ibis on DuckDB", "ibis on polars"),
)


@pytest.mark.parametrize("clusters", ["number", "text"])
@pytest.mark.parametrize("kind", LAZY)
def test_an_aggregated_lazy_frame_has_the_same_numbers_as_a_loaded_one(
    tmp_path: Path, kind: str, clusters: str
) -> None:
    table = frame(ROWS, clusters=1200)
    if clusters == "text":
        table = table.with_columns(pl.format("patient {}", "patient_id").alias("patient_id"))
    aggregated = abstain.evaluate(lazy_frame(kind, table, tmp_path), **ROLES, by="site")
    assert aggregated.only.provenance["engine"] == "duckdb"
    assert_same(aggregated, abstain.evaluate(table, **ROLES, by="site"))


def test_the_rows_of_another_backend_are_copied_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = lazy_frame("ibis on polars", frame(ROWS), tmp_path)
    copies: list[str] = []
    copy = type(source).to_pyarrow_batches

    def count_and_copy(self: Any, **options: Any) -> Any:
        copies.append("copy")
        return copy(self, **options)

    monkeypatch.setattr(type(source), "to_pyarrow_batches", count_and_copy)
    assert engine_of(source) == "duckdb"
    assert len(copies) == 1


@pytest.mark.parametrize("kind", LAZY)
def test_a_small_lazy_frame_is_loaded_with_the_same_numbers(tmp_path: Path, kind: str) -> None:
    table = frame(500)
    loaded = abstain.evaluate(lazy_frame(kind, table, tmp_path), **ROLES)
    assert "engine" not in loaded.only.provenance
    assert_same(loaded, abstain.evaluate(table, **ROLES))


@pytest.mark.parametrize("kind", [name for name in LAZY if name != "ibis on polars"])
def test_columns_whose_names_differ_in_case_are_not_mixed_up(tmp_path: Path, kind: str) -> None:
    table = frame(ROWS).rename({"c": "s"})
    table = table.with_columns((1.0 - pl.col("s")).alias("S"))
    columns = {**ROLES, "confidence": "S"}
    source = lazy_frame(kind, table, tmp_path)
    if kind in ("polars", "narwhals", "dataset"):
        assert_same(abstain.evaluate(source, **columns), abstain.evaluate(table, **columns))
    else:  # DuckDB renames one of them
        with pytest.raises(AbstainError, match="differ only in case|unknown confidence 'S'"):
            abstain.evaluate(source, **columns)


def relations(tables: dict[str, pl.DataFrame], connect: Callable[[], Any]) -> dict[str, Any]:
    return {name: connect().from_arrow(table.to_arrow()).filter("TRUE") for name, table in tables.items()}


@pytest.mark.parametrize("shared", [True, False])
def test_relations_are_compared(shared: bool) -> None:
    first = frame(ROWS, clusters=1200).with_row_index("item")
    second = first.with_columns((1 - pl.col("p")).alias("p"))
    connection = connect()
    systems = relations({"a": first, "b": second}, lambda: connection if shared else connect())
    options = {**ROLES, "item": "item", "metrics": ["augrc", "accuracy"]}
    aggregated = abstain.compare(systems, **options)
    loaded = abstain.compare({"a": first, "b": second}, **options)
    for metric in ("augrc", "accuracy"):
        found, expected = (result.difference("a", "b", metric=metric) for result in (aggregated, loaded))
        assert found.estimate.interval == pytest.approx(expected.estimate.interval, abs=1e-12)
    origin = aggregated.systems["b"].provenance
    assert origin["engine" if shared else "loaded_because"] == (
        "duckdb" if shared else "it is in another database than the DuckDB relation"
    )


@pytest.mark.parametrize("order", ["relation first", "file first"])
def test_a_relation_is_compared_with_a_file_in_memory(tmp_path: Path, order: str) -> None:
    table = frame(ROWS).with_row_index("item")
    relation = connect().from_arrow(table.to_arrow()).filter("TRUE")
    pair = [("relation", relation), ("file", written(table, tmp_path / "t.parquet"))]
    systems = dict(pair if order == "relation first" else pair[::-1])
    result = abstain.compare(systems, **ROLES, item="item", metrics="augrc")
    for system in result.systems.values():
        assert "it is in another database than" in system.provenance["loaded_because"]


def test_temporary_tables_are_dropped_from_the_connection_of_the_user() -> None:
    connection = duckdb.connect()
    connection.register("t", frame(ROWS).to_arrow())
    result = abstain.evaluate(connection.sql("FROM t"), **ROLES)
    assert result.only.provenance["engine"] == "duckdb"
    ours = "SELECT {0}_name FROM duckdb_{0}s() WHERE {0}_name LIKE 'abstain%'"
    assert connection.sql(ours.format("table")).fetchall()
    del result
    gc.collect()
    for kind in ("table", "view"):
        assert connection.sql(ours.format(kind)).fetchall() == []


LOADED: dict[str, tuple[dict[str, Any], str]] = {
    "bounds": ({"low": "low", "high": "high", "metrics": "interval_coverage"}, "low needs every row"),
    "bootstrap": ({"interval": "percentile", "resamples": 50}, "the bootstrap draws single clusters"),
    "loss per item": ({"loss": [0.5] * ROWS}, "a loss per item needs every row"),
}


@pytest.mark.parametrize("what", LOADED)
def test_a_request_that_needs_every_row_loads_the_table_and_reports_why(tmp_path: Path, what: str) -> None:
    options, reason = LOADED[what]
    table = frame(ROWS, clusters=1200).with_columns(low=pl.col("t") - 1.0, high=pl.col("t") + 1.0)
    path = written(table, tmp_path / "t.parquet")
    result = abstain.evaluate(path, **ROLES, **options)
    assert "engine" not in result.only.provenance
    assert reason in result.only.provenance["loaded_because"]


def test_bins_that_would_show_in_the_printed_digits_are_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nearly all confidences are in one bin, so bins do not show their order."""
    from abstain.readers import _row_query  # noqa: PLC0415

    monkeypatch.setattr(_row_query, "FEW_ROWS", 1000)
    monkeypatch.setattr(_row_query, "HEAD", 2500)
    rng = np.random.default_rng(0)
    table = pl.DataFrame({"correct": rng.random(ROWS) < 0.5, "confidence": 0.75 + 1e-6 * rng.random(ROWS)})
    path = written(table, tmp_path / "t.parquet")
    result = abstain.evaluate(path)
    assert (
        "with bins of confidence, its AURC would be exact only to" in result.only.provenance["loaded_because"]
    )
    requested = abstain.evaluate(path, engine="duckdb")
    assert requested.only.provenance["engine"] == "duckdb"
    assert "binned" in [warning.code for warning in requested["confidence"].warnings]


def test_a_requested_engine_is_not_replaced(tmp_path: Path) -> None:
    path = written(frame(ROWS, clusters=1200), tmp_path / "t.parquet")
    with pytest.raises(AbstainError, match="the bootstrap draws single clusters"):
        abstain.evaluate(path, engine="duckdb", interval="percentile", resamples=50, **ROLES)


def test_arrow_tables_in_memory_are_loaded() -> None:
    table = frame(ROWS).to_arrow()
    assert isinstance(table, pa.Table)
    assert engine_of(table) is None
