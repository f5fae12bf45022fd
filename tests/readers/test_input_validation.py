"""Validation of tables: exact values in every format, one snapshot per read, and low cost for small inputs."""

from __future__ import annotations

import csv
import decimal
import hashlib
import io
import json
import os
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import abstain
from abstain import ArgumentError, DataError, FormatError, _sql, evaluate, read
from abstain.cli import app
from abstain.losses import item_loss
from abstain.readers import open_table, read_systems
from memory import run_measured

FORMS = ["csv", "jsonl", "json", "parquet", "pandas", "polars", "arrow"]


def written(columns: dict[str, list[Any]], form: str, folder: Path) -> Any:
    """Return the same rows in one form; None is null, and in CSV an empty field."""
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    if form == "csv":
        text = io.StringIO()
        writer = csv.writer(text)
        writer.writerow(columns)
        writer.writerows([["" if value is None else value for value in row.values()] for row in rows])
        (folder / "t.csv").write_text(text.getvalue(), encoding="utf-8")
    elif form == "jsonl":
        (folder / "t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    elif form == "json":
        (folder / "t.json").write_text(json.dumps(rows))
    elif form == "pandas":
        return pd.DataFrame(columns)
    else:
        table = pa.table({name: pa.array(values) for name, values in columns.items()})
        if form != "parquet":
            return pl.from_arrow(table) if form == "polars" else table
        pq.write_table(table, folder / "t.parquet")
    return folder / f"t.{form}"


def call(*arguments: object) -> Any:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


# ------------------------------------------------------------------------------------------------ paths


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
def test_the_name_of_a_folder_does_not_become_a_column(tmp_path: Path, form: str) -> None:
    folder = tmp_path / "truth=0"
    folder.mkdir()
    path = written({"truth": [1, 1], "prediction": [1, 1]}, form, folder)
    assert read(path).truth.tolist() == [1.0, 1.0]
    assert open_table(path).numbers("truth").tolist() == [1.0, 1.0]


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
def test_a_folder_called_tilde_is_not_the_home_folder(
    tmp_path: Path, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "~").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    written({"truth": [0], "prediction": [1]}, form, tmp_path / "home")
    written({"truth": [1], "prediction": [1]}, form, tmp_path / "~")
    assert read(f"~/t.{form}").truth.tolist() == [1.0]


# ------------------------------------------------------------------------------------------- exact names


@pytest.mark.parametrize("start", [2**53, 2**63 - 5, 10**17, 10**29])
@pytest.mark.parametrize("form", FORMS)
def test_large_ids_are_distinguished(tmp_path: Path, form: str, start: int) -> None:
    ids = [start + place for place in range(40)]
    columns: dict[str, list[Any]] = {"truth": [1] * 40, "prediction": [1] * 40, "patient_id": ids}
    if start >= 2**62 and form in ("parquet", "polars", "arrow"):
        columns["patient_id"] = [decimal.Decimal(value) for value in ids]
    items = read(written(columns, form, tmp_path))
    assert [str(name) for name in items.cluster.tolist()] == [str(value) for value in ids]


@pytest.mark.parametrize("type_name", ["DECIMAL(38,0)", "HUGEINT", "UHUGEINT", "BIGINT"])
def test_wide_whole_numbers_are_exact(tmp_path: Path, type_name: str) -> None:
    duckdb.sql(
        f"COPY (SELECT 1 AS truth, 1 AS prediction, (i + 100000000000000000)::{type_name} AS patient_id, "
        f"(i + 100000000000000000)::{type_name} AS label FROM range(40) t(i)) "
        f"TO '{tmp_path / 't.parquet'}' (FORMAT parquet)"
    )
    if type_name.endswith("HUGEINT"):  # Parquet has no such type, so DuckDB writes floats, which are an error
        with pytest.raises(
            DataError, match=r"'patient_id' contains names as floating-point numbers beyond 2\*\*53"
        ):
            read(tmp_path / "t.parquet", truth="truth")
        relation = duckdb.sql(
            f"SELECT 1 AS truth, 1 AS prediction, (i + 100000000000000000)::{type_name} AS patient_id "
            "FROM range(40) t(i)"
        )
        assert len(set(read(relation).cluster.tolist())) == 40
        return
    items = read(tmp_path / "t.parquet", truth="truth")
    assert len(set(items.cluster.tolist())) == 40
    labelled = read(tmp_path / "t.parquet", truth="label", prediction="label")
    assert len(set(labelled.truth.tolist())) == 40


@pytest.mark.parametrize("form", FORMS)
def test_large_labels_are_compared_exactly(tmp_path: Path, form: str) -> None:
    columns: dict[str, list[Any]] = {
        "truth": [2**60, 2**60 + 1, None],
        "prediction": [2**60 + 1, 2**60 + 1, 3],
    }
    if form == "pandas":
        source: Any = pd.DataFrame(
            {name: pd.array(values, dtype="Int64") for name, values in columns.items()}
        )
    else:
        source = written(columns, form, tmp_path)
    items = read(source)
    assert items.counts.unscored == 1
    assert item_loss(items).values[:2].tolist() == [1.0, 0.0]


def test_ids_that_end_in_zero_bytes_are_distinguished(tmp_path: Path) -> None:
    items = read(
        written({"truth": [1, 1], "prediction": [1, 1], "cluster": ["a", "a\0"]}, "parquet", tmp_path)
    )
    assert len(set(items.cluster.tolist())) == 2


# ------------------------------------------------------------------------------------------------- flags


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "flags", [["yes", "no", "no"], ["Y", "N", "n"], [1.0, 0.0, 0.0], [1, 0, 0], ["TRUE", "False", "false"]]
)
@pytest.mark.parametrize("name", ["abstained", "failed", "declined"])
def test_flags_may_be_written_in_several_words(
    tmp_path: Path, form: str, flags: list[Any], name: str
) -> None:
    items = read(written({"truth": [1, 1, 0], "prediction": [1, 1, 1], name: flags}, form, tmp_path))
    assert items.outcome.tolist() == [2 if name == "failed" else 1, 0, 0]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("name", "values", "message"),
    [
        ("abstained", ["secret", "no"], "'abstained' must hold true or false"),
        ("failed", [2, 0], "'failed' must hold true or false"),
        ("confidence", ["secret", "0.2"], "'confidence' contains text"),
        ("conf", [True, False], "'conf' contains booleans"),
        ("outcome", ["secret", "answered"], "'outcome' must contain answered"),
    ],
)
def test_a_column_with_the_name_of_a_field_must_have_its_values(
    tmp_path: Path, form: str, name: str, values: list[Any], message: str
) -> None:
    if form == "csv" and name == "conf":
        message = "'conf' contains (booleans|text)"
    with pytest.raises(DataError, match=message) as caught:
        read(written({"truth": [1, 0], "prediction": [1, 1], name: values}, form, tmp_path))
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("form", FORMS)
def test_confidences_written_as_text_are_numbers(tmp_path: Path, form: str) -> None:
    source = written({"truth": [1, 0], "prediction": [1, 1], "confidence": ["0.9", " 2e-1"]}, form, tmp_path)
    assert read(source).signals["confidence"].values.tolist() == [0.9, 0.2]


# ------------------------------------------------------------------------------------------------ labels


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("truth", "prediction", "expected"),
    [
        ([True, False, True], [1, 0, 0], [0.0, 0.0, 1.0]),
        (["True", "False", "true"], ["1", "0", "0"], [0.0, 0.0, 1.0]),
        (["1", "2", "1"], ["1.0", "two", "2.0"], [0.0, 1.0, 1.0]),
        ([1, 2, 1], ["1.0", "two", "2.0"], [0.0, 1.0, 1.0]),
        (["2020-01-01", "2020-01-02", "x"], ["2020-01-01", "2020-01-01", "X"], [0.0, 1.0, 0.0]),
        (["007", "8", "7"], ["007", "08", "x"], [0.0, 0.0, 1.0]),
    ],
)
def test_labels_are_compared_by_the_same_rule_in_every_format(
    tmp_path: Path, form: str, truth: list[Any], prediction: list[Any], expected: list[float]
) -> None:
    items = read(written({"truth": truth, "prediction": prediction}, form, tmp_path))
    assert item_loss(items).values.tolist() == expected


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
def test_predictions_that_never_equal_a_truth_cause_a_warning(tmp_path: Path, form: str) -> None:
    path = written({"truth": ["a", "b"], "prediction": ["class a", "class b"]}, form, tmp_path)
    warning = "no prediction equals its label"
    assert [warning in str(each) for each in evaluate(read(path), metrics=["accuracy"]).only.warnings].count(
        True
    ) == 1
    results_json = json.loads(call("evaluate", path, "--metric", "accuracy", "--json").stdout)
    assert sum(warning in json.dumps(each) for each in results_json["warnings"]) == 1
    for command in (("evaluate", path, "--metric", "accuracy"), ("check", path)):
        assert " ".join(call(*command).stdout.split()).count(warning) == 1
    path = written({"truth": ["a", "b"], "prediction": ["A", "a"]}, form, tmp_path)
    assert not read(path).never_equal
    assert warning not in call("check", path).stdout


@pytest.mark.parametrize("form", FORMS)
def test_numbers_against_words_are_refused_in_every_format(tmp_path: Path, form: str) -> None:
    with pytest.raises(DataError, match="numbers in one column and text in the other"):
        read(written({"truth": [1, 0], "prediction": ["ill", "well"]}, form, tmp_path))


# --------------------------------------------------------------------------------------------- CSV, JSON


def test_rows_that_begin_with_a_hash_are_rows(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("site,y,lo,hi\n#1,1,0,2\nb,5,0,2\n#2,1,0,2\n")
    done = call(
        "intervals",
        tmp_path / "t.csv",
        "--truth",
        "y",
        "--low",
        "lo",
        "--high",
        "hi",
        "--nominal",
        0.9,
        "--bootstrap-resamples",
        0,
        "--json",
    )
    assert json.loads(done.stdout)["by_nominal"][0]["metrics"]["coverage"]["value"] == pytest.approx(2 / 3)
    (tmp_path / "t.csv").write_text("y,lo,hi,hi\n1,0,2,0\n")
    done = call(
        "intervals", tmp_path / "t.csv", "--truth", "y", "--low", "lo", "--high", "hi", "--nominal", 0.9
    )
    assert done.exit_code == 3
    assert "columns 3 and 4 have the same name; rename one" in done.stderr


@pytest.mark.parametrize("form", FORMS[:-3])
def test_column_names_may_differ_only_in_case(tmp_path: Path, form: str) -> None:
    path = written({"x": [1, 0], "X": [1, 1], "prediction": [1, 1]}, form, tmp_path)
    assert read(path, truth="x").truth.tolist() == [1.0, 0.0]
    assert read(path, truth="X").truth.tolist() == [1.0, 1.0]
    path = written({"truth": [1, 0], "Truth": [1, 1], "prediction": [1, 1]}, form, tmp_path)
    assert read(path).truth.tolist() == [1.0, 0.0]
    path = written({"Label": [1, 0], "LABEL": [1, 1], "prediction": [1, 1]}, form, tmp_path)
    with pytest.raises(ArgumentError, match="truth could be Label or LABEL"):
        read(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"truth": 1, "truth": 0, "prediction": 1}\n', "a key appears twice in 1 of the objects"),
        ('{"truth": 1, "prediction": 1}\n[1]\n', "1 records are not objects"),
        (
            '{"truth": "\\ud800", "prediction": 1}\n{"truth": 1, "prediction": 1}\n',
            "not JSON with one object",
        ),
    ],
)
def test_json_lines_are_strict(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "t.jsonl").write_text(text)
    with pytest.raises(FormatError, match=message):
        read(tmp_path / "t.jsonl")


# --------------------------------------------------------------------------------------------- snapshots


@pytest.mark.nightly
def test_a_table_that_is_replaced_during_reading_is_never_mixed(tmp_path: Path) -> None:
    path, other = tmp_path / "t.csv", tmp_path / "new.csv"
    versions = ["truth,prediction,note\n" + f"{value},{value},{'x' * 50}\n" * 500 for value in (1, 2)]
    hashes = {
        hashlib.sha256(text.encode()).hexdigest(): float(value)
        for value, text in zip((1, 2), versions, strict=True)
    }
    path.write_text(versions[0])
    stop, refusals = threading.Event(), set()

    def replace_it() -> None:
        while not stop.is_set():
            for text in versions:
                other.write_text(text)
                other.replace(path)

    writer = threading.Thread(target=replace_it)
    writer.start()
    try:
        for _ in range(20):
            try:
                items = read(path)
            except DataError as problem:
                refusals.add(str(problem))
                continue
            found = {*items.truth.tolist(), *items.prediction.tolist()}
            assert found == {hashes[items.provenance["sha256"]]}
    finally:
        stop.set()
        writer.join()
    assert refusals <= {f"{path}: was changed while it was read; read it again when it is complete"}


def test_a_table_that_is_replaced_during_reading_is_an_error(tmp_path: Path) -> None:
    path, other = tmp_path / "t.csv", tmp_path / "new.csv"
    path.write_text("y,z\n1,2\n")
    table = open_table(path)
    other.write_text("y,z\n5,6\n")
    other.replace(path)
    with pytest.raises(DataError, match="t.csv: was changed while it was read"):
        table.numbers("z")


@pytest.mark.parametrize("name", ["a*b?[c].csv", "back\\slash.csv", os.fsdecode(b"\xff.csv"), "it's.csv"])
@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_file_names_that_look_like_patterns_are_names(tmp_path: Path, name: str, form: str) -> None:
    path = written({"truth": [1, 0], "prediction": [1, 1]}, form, tmp_path).rename(tmp_path / name)
    assert read(path).truth.tolist() == [1.0, 0.0]


def test_a_table_that_is_changed_during_reading_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("y,z\n1,2\n")
    table = open_table(path)
    assert table.numbers("y").tolist() == [1.0]
    path.write_text("y,z\n5,6\n")
    with pytest.raises(DataError, match="t.csv: was changed while it was read"):
        table.numbers("z")
    with pytest.raises(DataError, match="t.csv: was changed while it was read"):
        table.sha256()


# ---------------------------------------------------------------------------------------------- the engine


def test_the_engine_spills_into_a_private_temporary_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    connection = _sql.connect()
    (folder,) = tmp_path.iterdir()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert connection.sql("SELECT current_setting('temp_directory')").fetchall() == [(str(folder),)]
    assert connection.sql("SELECT current_setting('autoload_known_extensions')").fetchall() == [(False,)]
    connection.close()
    del connection
    assert list(tmp_path.iterdir()) == []


def test_ctrl_c_interrupts_a_query() -> None:
    program = (
        "from abstain import _sql; connection = _sql.connect(); print('ready', flush=True)\n"
        "work = connection.sql('SELECT count(*) FROM range(1000000000000) t(i) WHERE sin(i) > 2').fetchall\n"
        "try:\n    _sql.run(work, connection)\n"
        "except KeyboardInterrupt:\n    print('interrupted')"
    )
    command = [sys.executable, "-c", program]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(0.5)  # the query would take days
        os.kill(process.pid, signal.SIGINT)
        assert process.stdout.read() == "interrupted\n"


# ---------------------------------------------------------------------------------------------------- cost


def _cost(
    folder: Path, name: str, content: str, options: str = "signals=(), metadata=()"
) -> tuple[float, int]:
    (folder / name).write_text(content)
    program = (
        "import sys, time, abstain, abstain.readers._columns, duckdb; began = time.process_time(); "
        f"items = abstain.read(sys.argv[1], {options}); print(len(items), time.process_time() - began)"
    )
    printed, kilobytes = run_measured(program, folder / name)
    return float(printed.split()[1]), kilobytes


@pytest.mark.parametrize(
    ("extra", "options"),
    [(300, ""), (2_000, ""), (2_000, "signals=(), metadata=()"), (12_000, "signals=(), metadata=()")],
)
@pytest.mark.nightly
def test_many_columns_cost_little(tmp_path: Path, extra: int, options: str) -> None:
    names = [f"a column with a long name {number}" for number in range(extra)]  # a header above 64 KB
    lines = [",".join(["truth", "prediction", *names]), *[",".join(["1", "1", *["0.5"] * extra])] * 3]
    seconds, kilobytes = _cost(tmp_path, "t.csv", "\n".join(lines) + "\n", options)
    assert seconds < 20
    assert kilobytes < 500_000


def test_many_keys_cost_little(tmp_path: Path) -> None:
    rows = [{"truth": 1, "prediction": 1, f"key {number}": number} for number in range(9_000)]
    text = "".join(json.dumps(row) + "\n" for row in rows)
    seconds, kilobytes = _cost(tmp_path, "t.jsonl", text)
    assert seconds < 20
    assert kilobytes < 500_000
    with pytest.raises(
        ArgumentError, match="9,000 rows of 9,000 columns are too many to load; name the columns"
    ):
        read(tmp_path / "t.jsonl")


@pytest.mark.nightly
def test_one_long_name_costs_little(tmp_path: Path) -> None:
    text = "truth,prediction,document\n" + "1,1,a\n" * 30_000 + f"1,1,{'long ' * 50_000}\n"
    seconds, kilobytes = _cost(tmp_path, "t.csv", text)
    assert seconds < 20
    assert kilobytes < 300_000


# --------------------------------------------------------------------------------- interpretation of tables


@pytest.mark.parametrize("form", FORMS)
def test_predictions_and_truth_can_be_joined_from_two_files(tmp_path: Path, form: str) -> None:
    truth = tmp_path / "truth.csv"
    truth.write_text("id,truth\n3,0\n2,1\n1,1\n9,0\n")
    source = written(
        {"id": [1, 2, 3], "prediction": [1, 0, 0], "confidence": [0.9, 0.5, 0.4]}, form, tmp_path
    )
    items = read(source, join=("id", truth))
    assert items.truth.tolist() == [1.0, 1.0, 0.0]
    assert items.provenance["join"]["unused"] == 1
    assert items.provenance["join"]["sha256"] == hashlib.sha256(truth.read_bytes()).hexdigest()


def test_a_join_with_a_missing_or_duplicate_key_is_an_error(tmp_path: Path) -> None:
    path, truth = tmp_path / "preds.csv", tmp_path / "truth.csv"
    path.write_text("id,prediction\na,1\nb,0\n")
    truth.write_text("id,truth\na,1\nb,1\nc,0\n")
    done = call(
        "evaluate", path, "--join", "id", truth, "--metric", "accuracy", "--bootstrap-resamples", 0, "--json"
    )
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["metrics"]["overall"]["accuracy"]["value"] == 0.5
    assert "1 rows of" in done.stderr
    for content, error, message in [
        ("id,truth\na,1\n", DataError, r"the key \(id\) at line 3 is not in"),
        ("id,truth\na,1\nb,1\na,0\n", DataError, "the key 'id' must be unique, but the one at line 2"),
        ("id,truth,prediction\na,1,1\nb,1,1\n", ArgumentError, "'prediction' is also in .*truth.csv"),
        ("name,truth\na,1\n", ArgumentError, "has no column 'id'"),
    ]:
        truth.write_text(content)
        with pytest.raises(error, match=message):
            read(path, join=("id", truth))


@pytest.mark.parametrize("name", ["model", "System"])
@pytest.mark.parametrize("form", FORMS)
def test_a_long_table_is_one_system_per_value(tmp_path: Path, form: str, name: str) -> None:
    columns: dict[str, list[Any]] = {
        name: ["m1", "m2"] * 2,
        "item": [1, 1, 2, 2],
        "truth": [1, 1, 0, 0],
        "prediction": [1, 0, 0, 0],
    }
    source = written(columns, form, tmp_path)
    systems = read_systems(source)
    assert {key: item_loss(items).values.tolist() for key, items in systems.items()} == {
        "m1": [0, 0],
        "m2": [1, 0],
    }
    with pytest.raises(ArgumentError, match=f"contains 2 systems, named in the column '{name}'"):
        read(source)
    if form in ("csv", "jsonl", "parquet"):
        with pytest.raises(
            ArgumentError,
            match=f"'{name}' names several systems, but only a table of one system can be aggregated",
        ):
            abstain.evaluate(source, confidence="item", engine="duckdb")
    if isinstance(source, Path):
        done = call("compare", source, "--metric", "accuracy", "--bootstrap-resamples", 50, "--format", "csv")
        assert done.exit_code == 0, done.output
        assert "m1" in done.stdout


def test_a_model_column_that_is_named_for_another_field_is_not_a_system(tmp_path: Path) -> None:
    columns = {"model": ["a", "b"], "truth": [1, 0], "prediction": [1, 1]}
    frame = pl.DataFrame(columns)
    assert read(frame, metadata=["model"]).metadata["model"].tolist() == ["a", "b"]
    assert read(frame, cluster="model").cluster.tolist() == ["a", "b"]
    assert len(read(pl.DataFrame({**columns, "model": ["a", "a"]}))) == 2


@pytest.mark.parametrize("form", FORMS)
def test_a_confidence_in_percent_is_detected_and_reported(tmp_path: Path, form: str) -> None:
    columns: dict[str, list[Any]] = {"truth": [1, 0, 1], "prediction": [1, 1, 1], "confidence": [95, 60, 0]}
    source = written(columns, form, tmp_path)
    items = read(source)
    assert items.signals["confidence"].values.tolist() == [0.95, 0.6, 0.0]
    assert items.provenance["percent"] == ("confidence",)
    assert read(source, percent=()).signals["confidence"].values.tolist() == [95.0, 60.0, 0.0]
    if isinstance(source, Path):
        done = call("evaluate", source, "--bootstrap-resamples", 0, "--json")
        assert "confidence is read as percent and divided by 100" in done.stderr


@pytest.mark.parametrize("values", [[1, 5, 3], [0.5, 12.0, 3.0], [1, 101, 3], [-1, 50, 3], [0.1, 0.9, 1.0]])
def test_other_confidences_are_unchanged(values: list[float]) -> None:
    frame = pl.DataFrame({"truth": [1, 0, 1], "prediction": [1, 1, 1], "confidence": values})
    items = read(frame)
    assert items.signals["confidence"].values.tolist() == values
    assert "percent" not in items.provenance
    divided = read(frame, percent=["confidence"]).signals["confidence"].values
    np.testing.assert_allclose(divided, np.array(values) / 100)


def test_a_rule_finds_failed_answers(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("truth,prediction\nyes,yes\nno,ERR: timeout\nno, err:  x\nno,no error\n")
    items = read(path, failed_rule="ERR:")
    assert items.outcome.tolist() == [0, 2, 2, 0]
    assert read(path, failed_rule="regex:timeout$").outcome.tolist() == [0, 2, 0, 0]
    done = call(
        "evaluate",
        path,
        "--failed-rule",
        "ERR:",
        "--metric",
        "accuracy",
        "--bootstrap-resamples",
        0,
        "--json",
    )
    assert done.exit_code == 0, done.output
    assert "the rule for failed answers found 2 failed, 2 answered" in done.stderr
    with pytest.raises(ArgumentError, match="failed_rule: a rule needs the beginning"):
        read(path, failed_rule="  ")


def test_crossed_bounds_are_an_error_unless_an_option_defines_them(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("y,lo,hi\n1,0,2\n2,3,1\n5,0,2\n")

    def coverage(*options: str) -> Any:
        command = ["intervals", path, "--truth", "y", "--low", "lo", "--high", "hi", "--nominal", 0.9]
        return call(*command, "--bootstrap-resamples", 0, "--json", *options)

    assert coverage().exit_code == 3
    for how, value, width in (("sort", 2 / 3, 2.0), ("empty", 1 / 3, 4 / 3)):
        printed = json.loads(coverage("--crossed", how).stdout)["by_nominal"][0]["metrics"]
        assert printed["coverage"]["value"] == pytest.approx(value)
        assert printed["mean_width"]["value"] == pytest.approx(width)
        items = read(path, truth="y", low="lo", high="hi", crossed=how)
        evaluated = evaluate(items, metrics=["interval_coverage"], resamples=0).metrics
        assert evaluated is not None
        assert evaluated["interval_coverage"].value == pytest.approx(value)
    done = coverage("--crossed", "ignore")
    assert done.exit_code == 2
    assert "unknown crossed 'ignore'; known: sort, empty" in done.stderr


# ------------------------------------------------------------------------------------- one table, any format

LABELS = st.one_of(
    st.lists(
        st.sampled_from(["a", "B", "b", "1", "1.0", "01", "true", "2020-01-01", "x y"]),
        min_size=3,
        max_size=9,
    ),
    st.lists(st.integers(-3, 3), min_size=3, max_size=9),
    st.lists(st.integers(2**60, 2**60 + 3), min_size=3, max_size=9),
    st.lists(st.booleans(), min_size=3, max_size=9),
)


@pytest.mark.slow
@given(st.data())
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_same_rows_give_the_same_numbers_in_every_format(tmp_path: Path, data: st.DataObject) -> None:
    truth = data.draw(LABELS)
    count = len(truth)

    def column(values: st.SearchStrategy[Any]) -> list[Any]:
        return data.draw(st.lists(values, min_size=count, max_size=count))

    columns: dict[str, list[Any]] = {
        "truth": truth,
        "prediction": data.draw(st.permutations(truth)),
        "confidence": column(st.sampled_from([0.1, 0.25, 0.5, 1e-7, 1.0, 0.30000000000000004])),
        "abstained": column(
            st.sampled_from(data.draw(st.sampled_from([("yes", "no"), (True, False), (1.0, 0.0)])))
        ),
        "cluster": column(
            data.draw(
                st.sampled_from([st.integers(0, 4), st.integers(2**62, 2**62 + 4), st.sampled_from("ab")])
            )
        ),
    }
    answers = {}
    for form in FORMS:
        items = read(written(columns, form, tmp_path))
        loss = item_loss(items, "zero_one").values
        result = evaluate(items, loss="zero_one", resamples=0)["confidence"]
        found = {
            "outcome": items.outcome.tolist(),
            "loss": str(loss.tolist()),
            "cluster": [str(name) for name in items.cluster.tolist()],
            "confidence": items.signals["confidence"].values.tolist(),
            "aurc": repr(result.aurc.value),
        }
        answers[form] = found
        if form in ("csv", "jsonl", "parquet"):
            counted = evaluate(tmp_path / f"t.{form}", loss="zero_one", engine="duckdb")["confidence"]
            assert counted.aurc.value == pytest.approx(result.aurc.value, nan_ok=True), form
    for form, found in answers.items():
        assert found == answers["csv"], form


@pytest.mark.parametrize(
    ("column", "values", "arguments", "may"),
    [
        (None, None, {}, False),
        ("abstained", [False] * 4, {}, True),
        ("outcome", ["answered"] * 4, {}, True),
        (None, None, {"null_prediction": "abstained"}, True),
        (None, None, {"abstain_rule": "choice:E"}, True),
    ],
)
def test_coverage_varies_only_if_the_source_could_mark_abstentions(
    tmp_path: Path, column: str | None, values: list[Any] | None, arguments: dict[str, Any], *, may: bool
) -> None:
    """Without any abstention, coverage is 1 in both cases; only its interval differs."""
    table: dict[str, Any] = {
        "truth": [1, 0, 1, 0],
        "prediction": [1, 0, 0, 0],
        "confidence": [0.9, 0.8, 0.7, 0.6],
    }
    if column:
        table[column] = values
    path = written(table, "csv", tmp_path)
    loaded = evaluate(read(path, **arguments)).only.coverage
    assert (loaded.value, loaded.low < 1.0) == (1.0, may)
    counted = evaluate(path, engine="duckdb", **arguments).only.coverage
    assert (counted.value, counted.low) == (loaded.value, loaded.low)
