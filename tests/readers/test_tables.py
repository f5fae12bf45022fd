from __future__ import annotations

import gzip
import json
import math
import re
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from abstain import ArgumentError, DataError, FormatError, Items, evaluate, read
from abstain.losses import item_loss
from memory import run_measured

LABELS = ("ill", "well")
ROLES: dict[str, Any] = {
    "truth": "diagnosis",
    "prediction": "said",
    "abstained": "declined",
    "cluster": "patient_id",
    "confidence": "prob",
}


def records(count: int = 60) -> list[dict[str, Any]]:
    rng = np.random.default_rng(5)
    rows = []
    for number in range(count):
        declined = bool(rng.random() < 0.2)
        rows.append(
            {
                "diagnosis": LABELS[int(rng.integers(2))] if number % 17 else None,
                "said": None if declined else LABELS[int(rng.integers(2))],
                "prob": None if declined else round(float(rng.random()), 3),
                "declined": declined,
                "patient_id": int(number // 4),
                "margin": float(number),
                "note": f"text {number}",
            }
        )
    return rows


def sources(folder: Path, rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the same rows in every form that a table can have."""
    frame = pl.DataFrame(rows, infer_schema_length=None)
    frame.write_csv(folder / "t.csv")
    frame.write_csv(folder / "t.tsv", separator="\t")
    (folder / "t.csv.gz").write_bytes(gzip.compress((folder / "t.csv").read_bytes()))
    frame.write_parquet(folder / "t.parquet")
    frame.write_ndjson(folder / "t.jsonl")
    (folder / "t.json").write_text(json.dumps(rows))
    half = len(rows) // 2
    frame[:half].write_parquet(folder / "part_1.parquet")
    frame[half:].write_parquet(folder / "part_2.parquet")
    arrow = frame.to_arrow()
    return {
        "csv": folder / "t.csv",
        "tsv": str(folder / "t.tsv"),
        "compressed csv": folder / "t.csv.gz",
        "parquet": folder / "t.parquet",
        "several files": [folder / "part_1.parquet", folder / "part_2.parquet"],
        "pattern": str(folder / "part_*.parquet"),
        "jsonl": folder / "t.jsonl",
        "json list": folder / "t.json",
        "pandas": pd.DataFrame(rows),
        "pandas arrow": arrow.to_pandas(types_mapper=pd.ArrowDtype),
        "polars": frame,
        "polars lazy": frame.lazy(),
        "arrow": arrow,
        "duckdb": duckdb.sql("SELECT * FROM arrow"),
    }


def expected(rows: list[dict[str, Any]]) -> Items:
    columns = {key: [row[key] for row in rows] for key in rows[0]}
    return Items.from_arrays(
        columns["diagnosis"],
        columns["said"],
        abstained=columns["declined"],
        confidence=columns["prob"],
        cluster=columns["patient_id"],
    )


def test_every_form_of_a_table_has_the_same_numbers(tmp_path: Path) -> None:
    rows = records()
    items = expected(rows)
    right = evaluate(items, loss="zero_one", resamples=200)["confidence"]
    for name, source in sources(tmp_path, rows).items():
        items_read = read(source, **ROLES)
        assert items_read.counts == items.counts, name
        assert items_read.truth.tolist() == items.truth.tolist(), name
        assert (
            items_read.prediction[items_read.answered].tolist() == items.prediction[items.answered].tolist()
        ), name
        assert items_read.cluster.tolist() == items.cluster.tolist(), name
        assert set(items_read.signals) == {"confidence", "prob", "margin"}, name
        assert items_read.metadata["note"].tolist() == [row["note"] for row in rows], name
        result = evaluate(items_read, loss="zero_one", resamples=200)["confidence"]
        for metric in ("cmax", "aurc", "augrc", "eaurc"):
            assert getattr(result, metric) == getattr(right, metric), (name, metric)


def test_an_exported_run_file_has_the_same_numbers(tmp_path: Path) -> None:
    path = Path("tests/data/examples/run_a.json")
    items = read(path, mode="few_shot")
    right = evaluate(items, confidence="token_msp", loss="abs", resamples=100)["token_msp"]
    for backend in ("pandas", "polars", "pyarrow"):
        result = evaluate(read(items.to_frame(backend)), confidence="token_msp", loss="abs", resamples=100)
        assert result["token_msp"].aurc == right.aurc
    items.to_frame("polars").drop("consistency_samples.json").write_csv(tmp_path / "t.csv")
    items.to_parquet(tmp_path / "t.parquet")
    for name in ("t.csv", "t.parquet"):
        result = evaluate(read(tmp_path / name), confidence="token_msp", loss="abs", resamples=100)
        assert result["token_msp"].augrc == right.augrc


def test_columns_with_usual_names_are_guessed_and_reported() -> None:
    frame = pl.DataFrame({"Label": [1, 0], "pred": [1, 1], "prob": [0.9, 0.1], "patient_id": ["a", "b"]})
    items = read(frame)
    assert items.provenance["columns"] == {
        "truth": "Label",
        "prediction": "pred",
        "confidence": "prob",
        "cluster": "patient_id",
    }
    assert items.provenance["guessed"] == ("truth", "prediction", "confidence", "cluster")
    assert items.cluster_noun == "patient"
    named = read(frame, truth="pred", prediction="Label")
    assert named.truth.tolist() == [1.0, 1.0]
    assert named.provenance["guessed"] == ("confidence", "cluster")


def test_ambiguous_columns_are_errors() -> None:
    frame = pl.DataFrame({"label": [1], "target": [1], "pred": [1]})
    with pytest.raises(ArgumentError, match="truth could be label or target; name the column"):
        read(frame)
    assert len(read(frame, truth="label")) == 1
    with pytest.raises(ArgumentError, match="which column is the prediction.*columns: truth, x"):
        read(pl.DataFrame({"truth": [1], "x": [1]}))
    # A column with the name of the field itself is not ambiguous.
    assert read(frame.with_columns(truth=pl.lit(0))).truth.tolist() == [0.0]


def test_the_meaning_of_null_predictions_must_be_set() -> None:
    frame = pd.DataFrame({"truth": [1, 0, 1], "prediction": [1, None, np.nan]})
    with pytest.raises(
        DataError, match=r"prediction \(prediction\) is missing at row 1, 2 for an unknown reason"
    ):
        read(frame)
    assert read(frame, null_prediction="abstained").counts.abstained == 2
    assert read(frame, null_prediction="failed").counts.failed == 2
    with pytest.raises(ArgumentError, match="unknown null_prediction 'wrong'"):
        read(frame, null_prediction="wrong")
    marked = frame.assign(abstained=[False, True, False], failed=[0, 0, 1])
    counts = read(marked).counts
    assert (counts.answered, counts.abstained, counts.failed) == (1, 1, 1)


def test_types_and_nulls_are_kept() -> None:
    frame = pl.DataFrame(
        {
            "truth": [1, 0, None],
            "prediction": [True, False, True],
            "score": [1, None, 3],
            "when": ["2020-01-01", None, "x"],
            "flag": [True, None, False],
            "kind": pl.Series(["a", "b", None], dtype=pl.Categorical),
            "nested": [[1], [2], [3]],
        }
    )
    items = read(frame)
    assert items.counts.unscored == 1
    assert items.prediction.tolist() == [1.0, 0.0, 1.0]
    assert items.signals["score"].null.tolist() == [False, True, False]
    assert items.metadata["when"].tolist() == ["2020-01-01", None, "x"]
    assert items.metadata["flag"].tolist() == [True, None, False]
    assert items.metadata["kind"].tolist() == ["a", "b", None]
    assert "nested" not in items.metadata
    with pytest.raises(DataError, match="'nested' is nested or binary"):
        read(frame, signals=["nested"])


def test_only_requested_columns_are_kept(tmp_path: Path) -> None:
    source = sources(tmp_path, records())["parquet"]
    items = read(source, **ROLES, signals=(), metadata=())
    assert set(items.signals) == {"confidence", "prob"}
    assert not items.metadata
    items = read(source, **ROLES, signals=["margin"], metadata=["prob"])
    assert set(items.signals) == {"margin", "confidence", "prob"}
    assert set(items.metadata) == {"prob"}
    assert set(read(source, **ROLES, metadata=["margin"]).metadata) == {"margin"}


def test_a_signal_may_be_missing_for_an_abstention(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("label,pred,prob,abstained\n1,1,0.5,false\n0,,,true\n")
    result = evaluate(read(tmp_path / "t.csv"), loss="zero_one", resamples=0)["confidence"]
    assert result.cmax.value == 0.5
    (tmp_path / "t.csv").write_text("label,pred,prob,abstained\n1,1,0.5,false\n0,1,,false\n")
    with pytest.raises(
        DataError,
        match=r"the confidence 'confidence' is missing \(empty, null or NaN\) for line 3 of .*t.csv; every",
    ):
        evaluate(read(tmp_path / "t.csv"), loss="zero_one", resamples=0)


def test_an_abstention_rule_is_applied_to_predictions() -> None:
    frame = pl.DataFrame({"truth": ["a", "b", "unsure", "a"], "prediction": ["a", "unsure", "unsure", "b"]})
    items = read(frame, abstain_rule="choice:Unsure")
    assert items.abstained.tolist() == [False, True, False, False]
    counts = items.provenance["abstention_rule"]
    assert counts == {"rule": "choice:Unsure", "answered": 2, "abstained": 1, "undetermined": 1}
    numbers = pl.DataFrame({"truth": [1.0, 2.0], "prediction": [-1.0, 2.0]})
    assert read(numbers, abstain_rule="choice:-1").counts.abstained == 1


def test_csv_values_are_text_until_all_are_numbers(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("truth,prediction,code,x\n1,1,001,1e3\n01,unsure,002, 2\n")
    items = read(path)
    # Truth and prediction are read by the same rule, and 01 is not 1.
    assert items.truth.tolist() == ["1", "01"]
    assert items.prediction.tolist() == ["1", "unsure"]
    assert items.metadata["code"].tolist() == ["001", "002"]
    assert items.signals["x"].values.tolist() == [1000.0, 2.0]
    path.write_text('truth;prediction;"a ""quoted"" name"\n1;0;2.5\n')
    assert read(path).signals['a "quoted" name'].values.tolist() == [2.5]
    path.write_text('\ufefftruth,prediction,"two\nlines"\n1,1,"5"\n')
    assert read(path).signals["two\nlines"].values.tolist() == [5.0]
    pd.DataFrame({"truth": [1], "prediction": [0]}).to_csv(path)
    assert set(read(path).signals) == {"column0"}
    path.write_text("# truth,prediction\n#1,1\n")
    with pytest.raises(ArgumentError, match="which column is the truth"):
        read(path)


def test_numbers_never_equal_text() -> None:
    frame = pl.DataFrame({"truth": [1, 0], "prediction": ["ill", "well"]})
    with pytest.raises(
        DataError, match="numbers in one column and text in the other; they would never be equal"
    ):
        read(frame)


def test_numbers_written_as_text_are_numbers() -> None:
    items = read(pl.DataFrame({"truth": [1, 0], "prediction": ["1", "unsure"]}))
    assert item_loss(items).values.tolist() == [0.0, 1.0]


HOSTILE = '"; DROP TABLE x; --'


def test_names_are_never_statements(tmp_path: Path) -> None:
    frame = pl.DataFrame({HOSTILE: [1, 0], "said'); SELECT 1; --": [1, 1], "a\nb": [0.5, 0.25]})
    frame.write_parquet(tmp_path / "t.parquet")
    frame.write_csv(tmp_path / "t.csv")
    frame.write_ndjson(tmp_path / "t.jsonl")
    roles: dict[str, Any] = {"truth": HOSTILE, "prediction": "said'); SELECT 1; --"}
    for source in (tmp_path / "t.parquet", tmp_path / "t.jsonl", frame):
        items = read(source, **roles, confidence="a\nb")
        assert items.truth.tolist() == [1.0, 0.0]
        back = read(items.to_parquet(tmp_path / "back.parquet"))
        assert back.signals["a\nb"].values.tolist() == [0.5, 0.25]
    odd = tmp_path / "o'dd [1]*?.csv"
    odd.write_text('"""; DROP TABLE x; --",p\n1,1\n')
    assert read(odd, truth=HOSTILE, prediction="p").provenance["path"] == str(odd)


BAD_FILES: dict[str, tuple[str, bytes, str]] = {
    "empty": ("t.csv", b"", "the file is empty"),
    "blank": ("t.jsonl", b" \n ", "the file is empty"),
    "header alone": ("t.csv", b"truth,prediction\n", "the table has no rows"),
    "truncated Parquet": ("t.parquet", b"PAR1" + bytes(300), "the Parquet file is damaged or cut off"),
    "short row": ("t.csv", b"truth,prediction\n1,1\n0\n1,0\n", "line 3 has 1 fields, but the header has 2"),
    "long row": (
        "t.csv",
        b"truth,prediction\n1,1\n0,1,secret\n",
        "line 3 has 3 fields, but the header has 2",
    ),
    "open quote": ("t.csv", b'truth,prediction\n1,"1\n0,1\n', "line . is not a CSV row"),
    "twice": ("t.csv", b"truth,truth\n1,1\n", "columns 1 and 2 have the same name; rename one"),
    "not UTF-8": ("t.csv", b"truth,prediction\n\xff\xfe,1\n", "not UTF-8 text"),
    "binary": ("t.dat", b"\x89PNG\x00\x00", "not text, and not one of the supported formats"),
    "arrow file": ("t.arrow", b"ARROW1\x00\x00", "open it with pyarrow and pass the table"),
    "broken line": (
        "t.jsonl",
        b'{"truth": 1, "prediction": 1}\n{"truth": secret}\n',
        "not JSON with one object per line at line 2$",
    ),
    "half a letter": (
        "t.jsonl",
        b'{"truth": 1, "prediction": 1}\n\n' * 70_000
        + b'{"truth": "\\ud800"}\n{"truth": 1, "prediction": 1}',
        "not JSON with one object per line at line 140001$",
    ),
    "cut off": (
        "t.jsonl.gz",
        gzip.compress(b'\xef\xbb\xbf{"truth": 1, "prediction": 1}\n{"truth": 1, "predic'),
        "not JSON with one object per line at line 2$",
    ),
    "not a table": ("t.json", b'{"a": 1}', "not a run file"),
    "compressed and cut off": (
        "t.csv.gz",
        gzip.compress(b"truth,prediction\n" * 99)[:40],
        "damaged or cut off",
    ),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_bad_files_are_errors(tmp_path: Path, name: str) -> None:
    file_name, content, message = BAD_FILES[name]
    path = tmp_path / file_name
    path.write_bytes(content)
    with pytest.raises((FormatError, DataError), match=message) as caught:
        read(path)
    assert "secret" not in str(caught.value)


def test_a_parquet_file_that_was_cut_off_is_an_error(tmp_path: Path) -> None:
    pl.DataFrame(records()).write_parquet(tmp_path / "t.parquet")
    content = (tmp_path / "t.parquet").read_bytes()
    (tmp_path / "t.parquet").write_bytes(content[: len(content) // 2])
    with pytest.raises(FormatError, match="the Parquet file is damaged or cut off"):
        read(tmp_path / "t.parquet")
    (tmp_path / "t.parquet").write_bytes(content[:200] + bytes(200) + content[400:])
    with pytest.raises((FormatError, DataError, ArgumentError), match="damaged|cannot be read|has no column"):
        read(tmp_path / "t.parquet", **ROLES)


BAD_TABLES: dict[str, tuple[dict[str, list[Any]], dict[str, Any], str]] = {
    "no such column": (
        {},
        {"truth": "tuth"},
        r"has no column 'tuth' \(did you mean 'truth'\?\); columns: truth",
    ),
    "text for numbers": (
        {"prob": ["0.5", "high", "0.2"]},
        {"confidence": "prob"},
        r"text \(first at row 1\)",
    ),
    "booleans for numbers": ({"prob": [True, False, True]}, {"confidence": "prob"}, "contains booleans"),
    "duplicate items": (
        {"item": ["a", "b", "a"]},
        {},
        r"item ids \(item\) must be unique; there is a duplicate at row 2",
    ),
    "duplicates in a cluster": (
        {"item": ["a", "a", "a"], "cluster": [1, 2, 1]},
        {},
        "unique within one cluster; there is a duplicate at row 2",
    ),
    "missing cluster": ({"cluster": ["a", None, "b"]}, {}, "column 'cluster' is empty or nan at row 1"),
    "odd flags": (
        {"gone": ["gone", "no", "never"]},
        {"abstained": "gone"},
        "must hold true or false.* row 0, 2",
    ),
    "null flags": ({"gone": [True, None, False]}, {"abstained": "gone"}, "must hold true or false.* row 1"),
    "both": (
        {"abstained": [True, False, False], "failed": [True, False, False]},
        {},
        "an item can have only one outcome, but is both abstained and failed at row 0",
    ),
    "odd outcomes": (
        {"outcome": ["answered", "gone", "failed"]},
        {},
        "'outcome' must contain answered.* at row 1",
    ),
}


@pytest.mark.parametrize("name", BAD_TABLES)
@pytest.mark.parametrize("form", ["frame", "parquet", "jsonl"])
def test_bad_tables_are_errors(tmp_path: Path, name: str, form: str) -> None:
    columns, options, message = BAD_TABLES[name]
    frame = pl.DataFrame({"truth": [1, 0, 1], "prediction": [1, 1, 0], **columns})
    source: Any = frame
    if form == "parquet":
        frame.write_parquet(source := tmp_path / "t.parquet")
    elif form == "jsonl":
        frame.write_ndjson(source := tmp_path / "t.jsonl")
    # Rows of a frame are counted from 0, rows of a Parquet file from 1, and text files have lines.
    shift, word = {"frame": (0, "row"), "parquet": (1, "row"), "jsonl": (1, "line")}[form]
    message = re.sub(r"row ([\d, ]+)", lambda items_read: f"{word} {_shifted(items_read[1], shift)}", message)
    with pytest.raises((ArgumentError, DataError), match=message):
        read(source, **options)


def _shifted(rows: str, shift: int) -> str:
    return ", ".join(str(int(row) + shift) for row in rows.split(","))


def test_invalid_sources_are_errors(tmp_path: Path) -> None:
    (tmp_path / "preds.csv").write_text("a\n")
    with pytest.raises(ArgumentError, match=r"pred.csv: no such file \(did you mean 'preds.csv'\?\)"):
        read(tmp_path / "pred.csv")
    (tmp_path / "other.parquet").touch()
    with pytest.raises(ArgumentError, match="a folder with 1 .parquet, 1 .csv; pass files"):
        read(tmp_path)
    with pytest.raises(ArgumentError, match="no file matches this pattern"):
        read(str(tmp_path / "*.eval"))
    with pytest.raises(ArgumentError, match="no file was named"):
        read([])
    with pytest.raises(DataError, match="two columns of the frame have the same name"):
        read(pd.DataFrame([[1, 1, 2]], columns=["truth", "prediction", "prediction"]))
    with pytest.raises(ArgumentError, match="a source of type dict cannot be read; pass a path"):
        read({"truth": [1]})
    with pytest.raises(ArgumentError, match="unknown format 'xml'"):
        read(tmp_path / "preds.csv", format="xml")
    with pytest.raises(ArgumentError, match="format applies only to files"):
        read(pl.DataFrame(), format="csv")
    with pytest.raises(ArgumentError, match="a CSV table has no mode to choose"):
        read(tmp_path / "preds.csv", mode="few_shot")
    with pytest.raises(ArgumentError, match="truth names a column of a table, but this is a run file"):
        read("tests/data/examples/run_a.json", truth="x")
    with pytest.raises(
        ArgumentError, match="weight names a column of a table, but this is an evaluation file"
    ):
        read("tests/data/examples/run_a.json", format="evaluation", weight="x")
    with pytest.raises(ArgumentError, match="a run file already has clusters"):
        read("tests/data/examples/run_a.json", cluster="x")
    (tmp_path / "x.jsonl").write_text('{"truth": 1, "prediction": 1}\n')
    with pytest.raises(FormatError, match="of different formats"):
        read([tmp_path / "preds.csv", tmp_path / "x.jsonl"])
    (tmp_path / "other.csv").write_text("b\n")
    with pytest.raises(FormatError, match="its columns differ from those of"):
        read([tmp_path / "preds.csv", tmp_path / "other.csv"])


def test_a_compressed_table_that_is_cut_off_is_an_error(tmp_path: Path) -> None:
    rows = "".join(f"{row % 2},1,{np.sin(row)}\n" for row in range(100_000))
    content = gzip.compress(b"truth,prediction,confidence\n" + rows.encode())
    (tmp_path / "t.csv.gz").write_bytes(content[: len(content) * 3 // 4])
    with pytest.raises(FormatError, match="t.csv.gz: cannot be read; the file may be damaged or cut off"):
        read(tmp_path / "t.csv.gz")


def test_a_table_that_only_looks_like_an_export_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(
        "truth,prediction,outcome,note.json\n1,1,answered,[1]\n1,1,answered,hello\n"
    )
    with pytest.raises(DataError, match="the column 'note.json' must hold JSON, and does not at line 3"):
        read(tmp_path / "t.csv")


def test_the_format_depends_on_the_content_and_not_on_the_ending(tmp_path: Path) -> None:
    pl.DataFrame({"truth": [1], "prediction": [1]}).write_parquet(tmp_path / "t.csv")
    assert read(tmp_path / "t.csv").provenance["format"] == "parquet"
    (tmp_path / "t.parquet").write_text("truth,prediction\n1,1\n")
    assert read(tmp_path / "t.parquet").provenance["format"] == "csv"
    (tmp_path / "t.txt").write_text('{"truth": 1, "prediction": 1}\n{"truth": 0, "prediction": 1}\n')
    assert read(tmp_path / "t.txt").provenance["format"] == "jsonl"
    with pytest.raises(FormatError, match="Parquet file is damaged"):
        read(tmp_path / "t.txt", format="parquet")


@pytest.mark.nightly
def test_a_million_rows_are_evaluated_within_half_a_gigabyte(tmp_path: Path) -> None:
    path = tmp_path / "big.parquet"
    duckdb.sql(
        "COPY (SELECT i % 2 AS label, CASE WHEN i % 5 = 0 THEN 1 ELSE i % 2 END AS pred, sin(i) AS prob, "
        f"'a long text ' || i AS note FROM range(1000000) t(i)) TO '{path}' (FORMAT parquet)"
    )
    program = (
        "import sys, abstain; "
        "items = abstain.read(sys.argv[1], metadata=()); "
        "print(abstain.evaluate(items, loss='zero_one', resamples=0)['confidence'].aurc.value)"
    )
    printed, kilobytes = run_measured(program, path)
    assert float(printed) == pytest.approx(0.1, abs=0.01)
    assert kilobytes < 512 * 1024


def test_an_arrow_table_without_rows_is_an_error() -> None:
    with pytest.raises(DataError, match="the table has no rows"):
        read(pa.table({"truth": pa.array([], pa.float64()), "prediction": pa.array([], pa.float64())}))


def test_columns_without_names_or_values_are_read(tmp_path: Path) -> None:
    assert read(pd.DataFrame([[1, 1]]), truth="0", prediction="1").truth.tolist() == [1.0]
    frame = pl.DataFrame({"truth": ["a", "b"], "prediction": [None, None]})
    frame.write_parquet(tmp_path / "t.parquet")
    for source in (frame, frame.to_pandas(), tmp_path / "t.parquet"):
        items = read(source, null_prediction="abstained")
        assert items.counts.abstained == 2
        assert evaluate(items, loss="zero_one", resamples=0).population.answered == 0


def test_long_answers_in_a_csv_file_are_read(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("truth,prediction,note\n1,1," + "x" * 3_000_000 + "\n")
    assert len(read(tmp_path / "t.csv").metadata["note"][0]) == 3_000_000


BEYOND = 2**53 + 1


@pytest.mark.parametrize(
    ("values", "names"),
    [
        ([date(2026, 1, 31), date(2026, 2, 1)], ["2026-01-31", "2026-02-01"]),
        ([datetime(2026, 1, 31), datetime(2026, 2, 1)], ["2026-01-31 00:00:00", "2026-02-01 00:00:00"]),
        (
            [datetime(2026, 1, 31, 10, 5), datetime(2026, 2, 1, 1, 2, 3, 500_000)],
            ["2026-01-31 10:05:00", "2026-02-01 01:02:03.5"],
        ),
        ([time(10, 5), time(1, 2, 3, 500_000)], ["10:05:00", "01:02:03.5"]),
        (
            [
                datetime(2026, 1, 31, 10, 5, tzinfo=UTC),
                datetime(2026, 2, 1, tzinfo=timezone(timedelta(hours=2))),
            ],
            ["2026-01-31 10:05:00+00:00", "2026-01-31 22:00:00+00:00"],
        ),
        ([BEYOND, BEYOND - 1], [BEYOND, BEYOND - 1]),
    ],
)
def test_dates_times_and_large_numbers_are_the_same_names_in_every_form(
    values: list[Any], names: list[Any], tmp_path: Path
) -> None:
    arrow = pa.table(
        {"truth": [BEYOND, BEYOND - 1, None], "prediction": [BEYOND] * 3, "visit": [*values, values[0]]}
    )
    frame = pl.from_arrow(arrow)
    assert isinstance(frame, pl.DataFrame)
    frame.write_parquet(tmp_path / "t.parquet")
    nullable = {pa.int64(): pd.Int64Dtype(), pa.string(): pd.StringDtype()}
    objects = pd.DataFrame(
        {name: pd.Series(arrow[name].to_pylist(), dtype=object) for name in arrow.column_names}
    )
    forms = {
        "parquet": tmp_path / "t.parquet",
        "relation": duckdb.from_arrow(arrow),
        "arrow": arrow,
        "polars": frame,
        "polars lazy": frame.lazy(),
        "pandas": arrow.to_pandas(integer_object_nulls=True),
        "pandas arrow": arrow.to_pandas(types_mapper=pd.ArrowDtype),
        "pandas nullable": arrow.to_pandas(types_mapper=nullable.get),
        "pandas objects": objects,
        "pandas categories": objects.astype("category"),
        "arrow dictionaries": arrow.set_column(2, "visit", arrow["visit"].dictionary_encode()),
    }
    for form, source in forms.items():
        for role in (
            {"cluster": "visit"},
            {"metadata": ["visit"], "truth": "truth", "prediction": "prediction"},
        ):
            items = read(source, **role)
            found = items.cluster if "cluster" in role else items.metadata["visit"]
            assert found.tolist() == [*names, names[0]], (form, role)
            assert items.truth.tolist() == [BEYOND, BEYOND - 1, None], form
            assert items.prediction.tolist() == [BEYOND] * 3, form


@pytest.mark.parametrize(
    "value", [datetime(2026, 1, 31, 10, 5), datetime(2026, 1, 31, tzinfo=UTC), date(2026, 1, 31)]
)
def test_a_missing_time_is_missing_in_every_form(value: date, tmp_path: Path) -> None:
    arrow = pa.table({"truth": ["a"] * 3, "prediction": ["a", "b", "a"], "visit": [value, None, value]})
    frame = pl.from_arrow(arrow)
    assert isinstance(frame, pl.DataFrame)
    frame.write_parquet(tmp_path / "t.parquet")
    forms = {
        "parquet": tmp_path / "t.parquet",
        "arrow": arrow,
        "arrow dictionaries": arrow.set_column(2, "visit", arrow["visit"].dictionary_encode()),
        "polars": frame,
        "pandas": arrow.to_pandas(),
        "pandas arrow": arrow.to_pandas(types_mapper=pd.ArrowDtype),
        "pandas objects": arrow.to_pandas().astype(object),
        "pandas categories": arrow.to_pandas().astype({"visit": "category"}),
    }
    found = {
        form: read(source, metadata=["visit"]).metadata["visit"].tolist() for form, source in forms.items()
    }
    assert found["arrow"][1] is None
    assert found == dict.fromkeys(forms, found["arrow"])


def test_decimals_are_the_same_in_every_form(tmp_path: Path) -> None:
    values = [Decimal("1.10"), None, Decimal("2.00")]
    arrow = pa.table(
        {"truth": values, "prediction": values[::-1], "dose": values, "patient": ["a", "b", "b"]}
    )
    frame = pl.from_arrow(arrow)
    assert isinstance(frame, pl.DataFrame)
    frame.write_parquet(tmp_path / "t.parquet")
    forms = {
        "parquet": tmp_path / "t.parquet",
        "arrow": arrow,
        "polars": frame,
        "pandas objects": pd.DataFrame(
            {name: pd.Series(arrow[name].to_pylist(), dtype=object) for name in arrow.column_names}
        ),
    }
    for form, source in forms.items():
        items = read(source, metadata=["dose"], null_prediction="abstained")
        for found in (items.metadata["dose"], items.truth):
            assert found.tolist() == pytest.approx([1.1, math.nan, 2.0], nan_ok=True), form


@pytest.mark.parametrize("zone", ["UTC", "Asia/Kolkata"])
def test_times_with_a_zone_do_not_depend_on_the_zone_of_the_session(zone: str) -> None:
    with duckdb.connect() as connection:
        connection.execute(f"SET TimeZone = '{zone}'")
        visit = "TIMESTAMPTZ '2026-01-31 10:05:00.5+02'"
        relation = connection.sql(f"SELECT 'a' AS truth, 'a' AS prediction, {visit} AS visit")
        assert read(relation, metadata=["visit"]).metadata["visit"].tolist() == [
            "2026-01-31 08:05:00.5+00:00"
        ]
