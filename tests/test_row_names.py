"""Row numbers in messages, counted as in an editor, a spreadsheet or Python."""

from __future__ import annotations

import gzip
import os
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest

import abstain
from abstain import DataError
from abstain._row_names import row_name, row_of_file, rows_named_by

if TYPE_CHECKING:
    from collections.abc import Callable

NOTES = 'id,note\n1,"two\nlines, and a ""quote"""\n\n2,one\n3,"x\n\ny"\n4,last\n'


def written(path: Path, text: str) -> Path:
    path.write_bytes(text.encode())
    return path


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("plain.csv", lambda text: text.encode()),
        ("marked.csv", lambda text: b"\xef\xbb\xbf" + text.encode()),
        ("windows.csv", lambda text: text.replace("\n", "\r\n").encode()),
        ("mac.csv", lambda text: text.replace("\n", "\r").encode()),
        ("wide.csv", lambda text: text.encode("utf-16")),
        ("small.csv.gz", lambda text: gzip.compress(text.encode())),
    ],
)
def test_lines_are_numbered_as_in_an_editor(tmp_path: Path, name: str, make: Callable[[str], bytes]) -> None:
    (tmp_path / name).write_bytes(make(NOTES))
    # Records begin on lines 2 (and end on 3), 5, 6 (and end on 8) and 9. Line 4 is empty.
    assert row_of_file([tmp_path / name], 0, 1, 2, 3) == "line 2, 5, 6, 9"
    with rows_named_by([tmp_path / name]):
        assert [row_name(row) for row in (3, 0, 2)] == ["line 9", "line 2", "line 6"]
    assert row_name(3) == "row 3"


def test_lines_after_a_long_header_and_in_a_single_column(tmp_path: Path) -> None:
    header = written(tmp_path / "h.csv", '"a\nb",c\n1,2\n')
    assert row_of_file([header], 0) == "line 3"
    # In a table of one column an empty line is a row.
    single = written(tmp_path / "s.csv", "a\n1\n\n3\n")
    assert row_of_file([single], 2) == "line 4"


def test_names_of_rows_in_json_parquet_workbooks_and_lists(tmp_path: Path) -> None:
    assert row_of_file([written(tmp_path / "a.jsonl", '{"a": 1}\n\n{"a": 2}\n')], 1) == "line 3"
    assert row_of_file([written(tmp_path / "a.json", '[{"a": 1}, {"a": 2}]')], 1) == "record 2"
    pl.DataFrame({"a": [1, 2]}).write_parquet(tmp_path / "a.parquet")
    assert row_of_file([tmp_path / "a.parquet"], 0, 1) == "row 1, 2"
    (tmp_path / "book.xlsx").write_bytes(b"PK\x03\x04 and so on")
    assert row_of_file([tmp_path / "book.xlsx"], 0) == "row 2"
    with rows_named_by((), records=True):
        assert row_name(0) == "record 1"


def test_files_that_cannot_be_read_again_have_records(tmp_path: Path) -> None:
    assert row_of_file([tmp_path / "gone.csv"], 0) == "record 1"
    short = written(tmp_path / "short.csv", "a,b\n1,2\n")
    assert row_of_file([short], 5) == "record 6"
    assert row_of_file([written(tmp_path / "empty.csv", "")], 0) == "record 1"
    assert row_of_file([short, short], 1) == "record 2"


def test_a_pipe_is_not_read_twice(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.csv"
    os.mkfifo(pipe)
    content = b"truth,prediction,confidence\n1,1,0.5\n1,,0.4\n"
    writer = threading.Thread(target=pipe.write_bytes, args=(content,))
    writer.start()
    with pytest.raises(DataError, match="missing at record 2 for an unknown reason"):
        abstain.read(pipe)
    writer.join()


def test_naming_many_rows_reads_the_file_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path / "t.csv", "a,b\n" + "1,2\n" * 2000)
    opened, real = [], Path.open

    def counted(self: Path, *arguments: Any, **options: Any) -> Any:
        opened.append(self)
        return real(self, *arguments, **options)

    monkeypatch.setattr(Path, "open", counted)
    with rows_named_by([path]):
        assert [row_name(row) for row in range(2000)][-1] == "line 2001"
    assert len(opened) == 1


def test_items_without_names_are_identified_by_their_line(tmp_path: Path) -> None:
    path = written(tmp_path / "t.csv", "truth,prediction,prob,person\n1,1,0.5,p\n0,1,7,q\n")
    items = abstain.read(path, cluster="person", confidence="prob")
    assert items.describe_row(1) == f"person q, line 3 of {path}"
    assert items.take(np.array([1])).describe_row(0) == f"person q, line 3 of {path}"
    bare = abstain.Items.from_arrays([1, 0], [1, 1], confidence=[0.5, 7])
    assert bare.describe_row(1) == "row 1"
    named = abstain.Items.from_arrays([1, 0], [1, 1], cluster=["p", "q"], item=["x", "y"])
    assert named.describe_row(1) == "cluster q, item y"
