"""Columns of an open table: the same in every format, hostile names, and errors that name the row."""

from __future__ import annotations

from typing import TYPE_CHECKING

import duckdb
import numpy as np
import pytest

from abstain.errors import ArgumentError, DataError, FormatError
from abstain.readers import open_table

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from abstain.readers._tables import SourceTable

HOSTILE = 'a"; DROP TABLE x; --'


def _csv(directory: Path, content: str, name: str = "table.csv") -> SourceTable:
    place = directory / name
    place.write_text(content, encoding="utf-8")
    return open_table(place)


def _parquet(directory: Path, statement: str) -> None:
    with duckdb.connect() as connection:
        connection.execute(f"COPY ({statement}) TO '{directory}/t.parquet'")


def test_every_format_gives_the_same_columns(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(
        'y,low,patient,site,set,flag\n1.5,-inf,7,a,"[""x"", ""y""]",true\n'
        '2,0,12,b,[],false\n-3e2,1,3,a,"[""z""]",true\n'
    )
    (tmp_path / "t.tsv").write_text(
        "y\tlow\tpatient\tsite\tset\tflag\n1.5\t-inf\t7\ta\tx|y\t1\n2\t0\t12\tb\t\t0\n-300\t1\t3\ta\tz\t1\n"
    )
    rows = [
        '{"y": 1.5, "low": -1e999, "patient": 7, "site": "a", "set": ["x", "y"], "flag": true}',
        '{"y": 2, "low": 0, "patient": 12, "site": "b", "set": [], "flag": false}',
        '{"y": -300, "low": 1, "patient": 3, "site": "a", "set": ["z"], "flag": true}',
    ]
    (tmp_path / "t.jsonl").write_text("\n".join(rows).replace("-1e999", '"-inf"') + "\n")
    columns = "y::DOUBLE y, low::DOUBLE low, patient::INT patient, site, flag::BOOL flag"
    lists = """from_json(set, '["VARCHAR"]') AS set"""
    _parquet(tmp_path, f"SELECT {columns}, {lists} FROM read_csv('{tmp_path}/t.csv', all_varchar=true)")
    for name in ("t.csv", "t.tsv", "t.jsonl", "t.parquet"):
        table = open_table(tmp_path / name)
        assert table.rows == 3
        assert table.numbers("y").tolist() == [1.5, 2.0, -300.0]
        assert table.numbers("low").tolist() == [-np.inf, 0.0, 1.0]
        assert table.labels("patient").tolist() == [7, 12, 3]
        assert table.labels("site").tolist() == ["a", "b", "a"]
        assert table.lists("set") == [["x", "y"], [], ["z"]]
        assert table.flags("flag").tolist() == [True, False, True]
        assert len(table.sha256() or "") == 64


def test_lists_of_decimals_and_user_defined_types_are_recognised(tmp_path: Path) -> None:
    _parquet(tmp_path, "SELECT [0.5, 1.25]::DECIMAL(5, 2)[] AS set, 7::DECIMAL(5, 0) AS patient")
    table = open_table(tmp_path / "t.parquet")
    assert table.kinds == {"set": "list", "patient": "whole"}
    assert table.lists("set") == [["0.5", "1.25"]]
    with duckdb.connect() as connection:
        connection.execute("CREATE TYPE patient AS INTEGER")
        relation = open_table(connection.sql("SELECT 7::patient AS patient"))
        assert relation.kinds == {"patient": "whole"}


def test_names_are_never_statements(tmp_path: Path) -> None:
    table = _csv(tmp_path, '"a""; DROP TABLE x; --",b\n1,2\n', name="odd'[1]*?.csv")
    assert table.numbers(HOSTILE).tolist() == [1.0]
    (tmp_path / "odd'1x.csv").write_text("other\n5\n")
    assert open_table(tmp_path / "odd'[1]*?.csv").rows == 1


def test_numbers_with_leading_zeros_are_names(tmp_path: Path) -> None:
    table = _csv(tmp_path, "patient\n007\n8\n")
    assert table.labels("patient").tolist() == ["007", "8"]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda table: table.numbers("lo"),
            ArgumentError,
            r"has no column 'lo' \(did you mean 'low'\?\); columns: y, low",
        ),
        (
            lambda table: table.numbers("word"),
            DataError,
            r"the column 'word' must hold numbers, got something else at row 1$",
        ),
        (lambda table: table.numbers("gap"), DataError, "column 'gap' is empty or nan at row 2; every row"),
        (lambda table: table.numbers("nan"), DataError, "column 'nan' is empty or nan at row 0"),
        (lambda table: table.labels("gap"), DataError, "column 'gap' is empty or nan at row 2"),
        (
            lambda table: table.flags("y"),
            DataError,
            r"'y' must hold true or false \(yes and no, or 1 and 0\), and does not at row 1; rename",
        ),
        (
            lambda table: table.lists("broken"),
            DataError,
            "'broken' contains a list that is not JSON at row 0",
        ),
        (lambda table: table.lists("nested"), DataError, "lists of labels, got a nested one at row 0"),
    ],
)
def test_errors_name_the_column_and_the_row(
    tmp_path: Path, call: Callable[[SourceTable], object], error: type[Exception], message: str
) -> None:
    table = _csv(
        tmp_path,
        'y,low,word,gap,nan,broken,nested\n1,2,3,4,nan,"[x","[[1]]"\n2,2,secret,5,1,a,b\n0,1,3,,2,a,b\n',
    )
    with pytest.raises(error, match=message) as raised:
        call(table)
    assert "secret" not in str(raised.value)


def test_files_that_are_not_tables_are_errors(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="no such file"):
        open_table(tmp_path / "absent.csv")
    with pytest.raises(ArgumentError, match="a folder with no log and no table"):
        open_table(tmp_path)
    (tmp_path / "table.xlsx").write_bytes(b"PK\x03\x04")
    with pytest.raises(ArgumentError, match="Inspect log, but a table is required: CSV, Parquet or JSONL"):
        open_table(tmp_path / "table.xlsx")
    with pytest.raises(DataError, match="has no rows"):
        _csv(tmp_path, "y,low\n").numbers("y")
    (tmp_path / "cut.parquet").write_bytes(b"PAR1 and no more")
    with pytest.raises(FormatError, match="the Parquet file is damaged or cut off"):
        open_table(tmp_path / "cut.parquet")
    (tmp_path / "cut.jsonl").write_text('{"y": 1}\n{"y": ')
    with pytest.raises(FormatError, match="not JSON with one object per line"):
        open_table(tmp_path / "cut.jsonl").numbers("y")


def test_a_nested_column_cannot_be_read_as_numbers_or_labels(tmp_path: Path) -> None:
    _parquet(tmp_path, "SELECT [1, 2] AS parts, {'a': 1} AS record")
    table = open_table(tmp_path / "t.parquet")
    with pytest.raises(DataError, match="'record' must hold numbers, but it is nested or binary"):
        table.numbers("record")
    with pytest.raises(DataError, match="must hold single labels"):
        table.labels("parts")
