"""Sources: the memory for ten million rows of Parquet, loaded and aggregated, and the time to read tables."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd

import abstain
from benchmarks._measure import best_times, report

ROWS = 10_000_000
LIMIT_MB = 2_000

_LOAD = (
    "items = abstain.read(path, truth='label', prediction='pred', confidence='prob', cluster='patient_id', "
    "metadata=()); result = abstain.evaluate(items, loss='zero_one', resamples=0)"
)
_AGGREGATE = (
    "result = abstain.evaluate(path, truth='label', prediction='pred', confidence='prob', cluster='patient_id', "
    "engine='duckdb')"
)
_PEAK = "print(int(open('/proc/self/status').read().split('VmHWM:')[1].split()[0]) // 1000)"


def table(path: Path, rows: int, confidence: str) -> Path:
    duckdb.sql(
        f"COPY (SELECT (random() < 0.5)::INT AS label, (random() < 0.8)::INT AS pred, {confidence} AS prob, "
        f"i % 20000 AS patient_id, 'a long answer ' || i AS said FROM range({rows}) t(i)) TO '{path}' (FORMAT parquet)"
    )
    return path


def peak(program: str, path: Path) -> int:
    """Return the peak memory of a program in a separate process, in megabytes."""
    text = f"import abstain\npath = {str(path)!r}\n{program}\nassert len(list(result.values())[0].curve)\n{_PEAK}"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    return int(done.stdout)


def _wide(folder: Path) -> Path:
    names, values = (",".join(parts) for parts in ([f"column {n}" for n in range(2_000)], ["0.5"] * 2_000))
    path = folder / "wide.csv"
    path.write_text(f"truth,prediction,{names}\n" + f"1,1,{values}\n" * 100)
    return path


def _keys(folder: Path) -> Path:
    path = folder / "keys.jsonl"
    path.write_text("".join(f'{{"truth": 1, "prediction": 1, "key {n}": {n}}}\n' for n in range(9_000)))
    return path


def _long(folder: Path) -> Path:
    path = folder / "long.csv"
    path.write_text("truth,prediction,document\n" + "1,1,a\n" * 50_000 + f"1,1,{'long ' * 50_000}\n")
    return path


def _log(folder: Path, sample: dict[str, object], count: int) -> Path:
    path = folder / "log.json"
    samples = [{"id": number, "scores": {"match": {"value": "C"}}, **sample} for number in range(count)]
    path.write_text(json.dumps({"eval": {"task": "t"}, "status": "success", "samples": samples}))
    return path


def _log_of_signals(folder: Path) -> Path:
    return _log(folder, {"metadata": {f"signal {number}": 0.5 for number in range(6_000)}}, 10)


def _log_of_long_ids(folder: Path) -> Path:
    return _log(folder, {"metadata": {"patient": "long " * 20_000}}, 20)


def costs(folder: Path) -> None:
    """Report the time to read unusual files, relative to a small table plus hashing the same bytes 100 times."""
    plain = folder / "plain.csv"
    plain.write_text("truth,prediction\n1,1\n")
    for label, make, options in (
        ("2,000 columns", _wide, {"signals": (), "metadata": ()}),
        ("9,000 keys", _keys, {"signals": (), "metadata": ()}),
        ("one long name", _long, {"signals": (), "metadata": ()}),
        ("a log of 6,000 signals", _log_of_signals, {}),
        ("a log of long names", _log_of_long_ids, {"cluster": "patient"}),
    ):
        path = make(folder)

        def peer(path: Path = path) -> None:
            abstain.read(plain)
            for _ in range(100):
                hashlib.sha256(path.read_bytes()).digest()

        def ours(path: Path = path, options: dict[str, Any] = options) -> object:
            return abstain.read(path, **options)

        floor, mine = best_times(peer, ours, rounds=3)
        report(f"{label}: a small table and 100 x the same bytes / abstain.read", floor / mine, 0.2)


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        costs(folder)
        for label, confidence in (
            ("all confidences differ", "random()"),
            ("100 levels", "floor(random() * 100) / 100"),
        ):
            path = table(folder / "big.parquet", ROWS, confidence)
            for method, program in (("loaded", _LOAD), ("aggregated", _AGGREGATE)):
                used = peak(program, path)
                report(
                    f"ten million rows, {label}, {method}: 2 GB / peak", LIMIT_MB / used, 1.0, f"{used} MB"
                )
        path = table(folder / "small.parquet", 1_000_000, "random()")

        def ours() -> object:
            return abstain.read(path, truth="label", prediction="pred", confidence="prob", metadata=())

        peer, mine = best_times(lambda: pd.read_parquet(path), ours, rounds=3)
        report("a million rows of Parquet, pandas.read_parquet / abstain.read", peer / mine)


if __name__ == "__main__":
    main()
