"""The cost of small files: memory is a small multiple of their size; otherwise they are an error."""

from __future__ import annotations

import json
import zipfile
import zlib
from typing import TYPE_CHECKING, Any

import pytest
import zstandard

from abstain import DataError, FormatError, Items, read
from memory import run_measured

if TYPE_CHECKING:
    from pathlib import Path

READ = "import sys, abstain; print(len(abstain.read(sys.argv[1])))"
SIGNALS = {"verdict": {"value": "C"}}


def write_log(path: Path, samples: list[dict[str, Any]]) -> Path:
    filled = [
        {"id": str(number), "target": "t", "scores": SIGNALS, **sample}
        for number, sample in enumerate(samples)
    ]
    path.write_text(json.dumps({"version": 2, "status": "success", "eval": {"task": "t"}, "samples": filled}))
    return path


def write_archive(path: Path, sample: bytes) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in (("header.json", b"{}"), ("samples/x_epoch_1.json", sample)):
            archive.writestr(zipfile.ZipInfo(name), zstandard.ZstdCompressor(level=19).compress(content))
            info = archive.filelist[-1]
            info.compress_type, info.CRC, info.file_size = 93, zlib.crc32(content), len(content)
    return path


def write_run(path: Path, records: list[dict[str, Any]]) -> Path:
    path.write_text(json.dumps({"experiments": [{"results": {"results": records}}]}))
    return path


def test_an_archive_that_expands_too_much_is_an_error(tmp_path: Path) -> None:
    path = write_archive(
        tmp_path / "x.eval", b'{"id": 1, "metadata": {"a": [' + b"[]," * 40_000_000 + b"1]}}"
    )
    assert path.stat().st_size < 20_000
    with pytest.raises(FormatError, match=r"has more than [\d,]+ bytes when decompressed; raise total_limit"):
        read(path)


@pytest.mark.nightly
def test_nested_metadata_of_a_sample_is_not_read(tmp_path: Path) -> None:
    nothing = b"[]," * 1_200_000 + b"1"
    path = write_archive(
        tmp_path / "x.eval",
        b'{"id": 1, "metadata": {"a": [%s]}, "scores": {"s": {"value": "C", "answer": "a"}}}' % nothing,
    )
    printed, kilobytes = run_measured(READ, path)
    assert printed == "1"
    assert kilobytes < 120_000


@pytest.mark.nightly
def test_one_long_name_costs_little(tmp_path: Path) -> None:
    names = ["q" * 1_000_000, *(f"q{number}" for number in range(3_000))]
    log = write_log(tmp_path / "log.json", [{"id": name} for name in names])
    run = write_run(
        tmp_path / "run.json",
        [
            {
                "participant_id": name,
                "success": True,
                "ground_truth_items": {"x": 1},
                "predicted_items": {"x": 1},
            }
            for name in names
        ],
    )
    for path in (log, run):
        printed, kilobytes = run_measured(READ, path)
        assert printed == "3001"
        assert kilobytes < 150_000


def sparse(count: int) -> list[dict[str, float]]:
    return [{f"name{number}": 1.0} for number in range(count)]


@pytest.mark.slow
def test_very_many_different_names_are_an_error(tmp_path: Path) -> None:
    by_kind = {
        "signals of samples": write_log(
            tmp_path / "a.json",
            [{"scores": {"s": {"value": "C", "metadata": part}}} for part in sparse(9_000)],
        ),
        "metadata of samples": write_log(tmp_path / "b.json", [{"metadata": part} for part in sparse(9_000)]),
        "signals of items": write_run(
            tmp_path / "c.json",
            [
                {
                    "participant_id": number,
                    "success": True,
                    "ground_truth_items": {"x": 1},
                    "predicted_items": {"x": 1},
                    "item_signals": {"x": part},
                }
                for number, part in enumerate(sparse(9_000))
            ],
        ),
    }
    rows = [{"prediction": 1, "ground_truth": 1, "metadata": part} for part in sparse(9_000)]
    by_kind["metadata of results"] = tmp_path / "d.json"
    by_kind["metadata of results"].write_text(json.dumps({"evaluation_results": rows}))
    for columns, path in by_kind.items():
        with pytest.raises(
            DataError, match=rf"{path.name}: the {columns} have 9,00\d different names in 9,000 rows"
        ):
            read(path)


@pytest.mark.nightly
def test_wide_records_are_not_sparse(tmp_path: Path) -> None:
    wide = {f"name{number}": 1.0 for number in range(60_000)}
    path = write_log(tmp_path / "log.json", [{"scores": {"s": {"value": "C", "metadata": wide}}}] * 2)
    printed, kilobytes = run_measured(
        "import sys, abstain; print(len(abstain.read(sys.argv[1]).signals))", path
    )
    assert printed == "60000"
    assert kilobytes < 300_000


def test_failed_participants_do_not_multiply_the_items_of_one_participant(tmp_path: Path) -> None:
    items = {f"i{number}": 1 for number in range(2_000)}
    done = {"participant_id": 0, "success": True, "ground_truth_items": items, "predicted_items": items}
    path = write_run(tmp_path / "run.json", [done, *({"participant_id": n} for n in range(1, 10_000))])
    with pytest.raises(
        DataError, match="9,999 of 10,000 participants failed, and the others have 2,000 items"
    ):
        read(path)


def test_large_whole_numbers_as_names_are_exact(tmp_path: Path) -> None:
    names = [10**30, 10**30 + 1, 2**63, -1]
    records = [
        {"participant_id": name, "success": True, "ground_truth_items": {"x": 1}, "predicted_items": {"x": 1}}
        for name in names
    ]
    items = read(write_run(tmp_path / "run.json", records))
    assert items.cluster.tolist() == names
    assert items.cluster_ids.tolist() == sorted(names)
    assert items.cluster_index.tolist() == [2, 3, 1, 0]
    log = read(write_log(tmp_path / "log.json", [{"id": name} for name in names]))
    assert log.item.tolist() == names
    assert Items.from_arrays([1, 2], [1, 2], cluster=[2**63, -1]).cluster.tolist() == [2**63, -1]
    with pytest.raises(DataError, match=r"log.json: the item is a number of more than 308 digits at row 0"):
        read(write_log(tmp_path / "log.json", [{"id": 10**400}]))
    back = read(items.to_run_file(tmp_path / "back.json"))
    assert back.cluster.tolist() == names
    assert read(items.to_parquet(tmp_path / "back.parquet")).cluster.tolist() == [str(name) for name in names]
    assert read(items.to_frame("polars")).cluster.tolist() == [str(name) for name in names]
