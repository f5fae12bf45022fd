"""Sources: ten million rows of Parquet within two gigabytes, loaded and scanned; and tables against pandas."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import duckdb
import pandas as pd

import abstain
from benchmarks._measure import best_times, report

ROWS = 10_000_000
LIMIT_MB = 2_000

_LOAD = (
    "items = abstain.read(path, truth='label', prediction='pred', confidence='prob', cluster='patient_id', "
    "metadata=()); found = abstain.evaluate(items, loss='zero_one', resamples=0)"
)
_SCAN = (
    "found = abstain.scan(path, truth='label', prediction='pred', confidence='prob', cluster='patient_id')"
)
_PEAK = "print(int(open('/proc/self/status').read().split('VmHWM:')[1].split()[0]) // 1000)"


def table(path: Path, rows: int, confidence: str) -> Path:
    duckdb.sql(
        f"COPY (SELECT (random() < 0.5)::INT AS label, (random() < 0.8)::INT AS pred, {confidence} AS prob, "
        f"i % 20000 AS patient_id, 'a long answer ' || i AS said FROM range({rows}) t(i)) TO '{path}' (FORMAT parquet)"
    )
    return path


def peak(program: str, path: Path) -> int:
    """Return the peak memory of a program of its own, in megabytes."""
    text = (
        f"import abstain; path = {str(path)!r}; {program}; assert len(list(found.values())[0].curve); {_PEAK}"
    )
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    return int(done.stdout)


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for words, confidence in (
            ("all confidences differ", "random()"),
            ("100 levels", "floor(random() * 100) / 100"),
        ):
            path = table(folder / "big.parquet", ROWS, confidence)
            for way, program in (("loaded", _LOAD), ("scanned", _SCAN)):
                used = peak(program, path)
                report(f"ten million rows, {words}, {way}: 2 GB / peak", LIMIT_MB / used, 1.0, f"{used} MB")
        path = table(folder / "small.parquet", 1_000_000, "random()")

        def ours() -> object:
            return abstain.read(path, truth="label", prediction="pred", confidence="prob", metadata=())

        peer, mine = best_times(lambda: pd.read_parquet(path), ours, rounds=3)
        report("a million rows of Parquet, pandas.read_parquet / abstain.read", peer / mine)


if __name__ == "__main__":
    main()
