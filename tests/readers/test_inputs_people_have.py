"""Typical inputs: workbooks, UTF-16 text, folders, pipes and URLs."""

from __future__ import annotations

import csv
import hashlib
import io
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import openpyxl
import pytest

import abstain
from abstain.errors import AbstainError, ArgumentError, FormatError

ROWS = [
    ("patient", "truth", "prediction", "confidence", "when"),
    *(
        (f"p{row % 5}", row % 3, (row * 7) % 3, round(1 / (row + 1), 4), f"2026-01-{row + 1:02}")
        for row in range(20)
    ),
]


def as_csv(newline: str = "\n") -> str:
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator=newline).writerows(ROWS)
    return text.getvalue()


def aurc(source: object) -> float:
    return abstain.evaluate(abstain.read(source, cluster="patient"))["confidence"].aurc.value


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    path = tmp_path / "t.csv"
    path.write_text(as_csv())
    return path


def workbook(path: Path, sheets: int = 1) -> Path:
    book = openpyxl.Workbook()
    for number in range(sheets):
        sheet = book.active if not number else book.create_sheet(f"s{number}")
        assert sheet is not None
        for row in ROWS:
            sheet.append(row)
    book.save(path)
    return path


def test_a_workbook_is_read_like_its_csv_export(tmp_path: Path, plain: Path) -> None:
    path = workbook(tmp_path / "t.xlsx")
    items, same = abstain.read(path, cluster="patient"), abstain.read(plain, cluster="patient")
    assert items.truth.tolist() == same.truth.tolist()
    assert aurc(path) == aurc(plain)
    # The hash is that of the workbook file.
    assert items.provenance["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()


def test_damaged_and_ambiguous_workbooks_are_errors(tmp_path: Path) -> None:
    with pytest.raises(
        FormatError, match=r"two.xlsx: is a workbook with 2 filled sheets; save the right one"
    ):
        abstain.read(workbook(tmp_path / "two.xlsx", 2))
    content = workbook(tmp_path / "cut.xlsx").read_bytes()
    (tmp_path / "cut.xlsx").write_bytes(content[: len(content) // 2])
    with pytest.raises(FormatError, match="cut.xlsx"):
        abstain.read(tmp_path / "cut.xlsx")
    with zipfile.ZipFile(tmp_path / "bomb.xlsx", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/workbook.xml", b" " * (1 << 28))
        archive.writestr("xl/more.xml", b" " * 100)
    with pytest.raises(
        FormatError, match="bomb.xlsx: the workbook expands to 256 MiB; save the sheet as CSV or Parquet"
    ):
        abstain.read(tmp_path / "bomb.xlsx")


def test_the_error_without_the_reader_of_workbooks_names_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "python_calamine", None)
    with pytest.raises(ArgumentError, match=r"save the sheet as CSV, or install .*abstain\[excel\]"):
        abstain.read(workbook(tmp_path / "t.xlsx"))


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_text_in_utf_16_is_read(encoding: str, tmp_path: Path, plain: Path) -> None:
    path = tmp_path / "wide.csv"
    mark = {"utf-16": b"", "utf-16-le": b"\xff\xfe", "utf-16-be": b"\xfe\xff"}[encoding]
    path.write_bytes(mark + as_csv("\r\n").encode(encoding))
    assert aurc(path) == aurc(plain)
    path.write_bytes(b"\xff\xfea")
    with pytest.raises(FormatError, match="begins like UTF-16 text, but is not; save it as UTF-8"):
        abstain.read(path)


def test_a_folder_of_files_of_one_kind_is_read_as_one_table(tmp_path: Path, plain: Path) -> None:
    folder = tmp_path / "parts"
    folder.mkdir()
    lines = as_csv().splitlines(keepends=True)
    (folder / "a.csv").write_text("".join(lines[:11]))
    (folder / "b.csv").write_text(lines[0] + "".join(lines[11:]))
    (folder / ".hidden.csv").write_text("no table")
    (folder / "notes.txt").write_text("no table")
    assert aurc(folder) == aurc(plain)
    (folder / "c.parquet").write_bytes(b"")
    with pytest.raises(
        ArgumentError, match=r"parts: is a folder with 1 \.parquet, 2 \.csv; pass files, or a pattern"
    ):
        abstain.read(folder)
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(ArgumentError, match="empty: is a folder with no log and no table"):
        abstain.read(empty)


def test_a_dash_reads_standard_input(tmp_path: Path, plain: Path) -> None:
    call = [sys.executable, "-m", "abstain", "evaluate", "-", "--cluster", "patient", "--format", "csv", "-q"]
    call = call[:-1]
    piped = subprocess.run(call, input=plain.read_bytes(), capture_output=True, check=True, cwd=tmp_path)
    named = subprocess.run([*call[:4], str(plain), *call[5:]], capture_output=True, check=True, cwd=tmp_path)
    assert piped.stdout == named.stdout


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("https://example.org/t.csv", None, "is a URL; download it first"),
        ("s3:/bucket/t.parquet", None, "is a URL; download it first"),
        ("twice.csv", b"1,1,0.5\n0,1,0.7\n", "columns 1 and 2 have the same name; rename one, or add a line"),
        ("values.csv", b"1,0,0.5\n0,1,0.7\n", "does the file have a header"),
        ("ends.csv", b"truth,prediction\r\n1,1\n0,1\r\n", "it has different line endings"),
    ],
)
def test_errors_for_unreadable_inputs_name_the_remedy(
    name: str, content: bytes | None, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    if content is not None:
        Path(name).write_bytes(content)
    with pytest.raises(AbstainError, match=words):
        abstain.read(name)
    assert os.listdir(tmp_path) == ([] if content is None else [name])  # noqa: PTH208
