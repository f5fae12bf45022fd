"""Engines: tallies with intervals against the bare GROUP BY that anybody would write, and memory at many rows.

`python -m benchmarks.bench_engines 100000000` measures the memory of so many rows, once.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

import abstain
from abstain.readers.engines import countables
from benchmarks._measure import best_times, report

ROWS = 10_000_000
LIMIT_MB = 1_500
LEVELS = {"100 levels": "(hash(i) % 100) / 100", "all differ": "hash(i * 11) / 18446744073709551616"}

_EVALUATE = (
    "import sys, abstain; found = abstain.evaluate(sys.argv[1], confidence='confidence', engine='duckdb'); "
    "print(int(open('/proc/self/status').read().split('VmHWM:')[1].split()[0]) // 1000)"
)


def table(path: Path, rows: int, confidence: str) -> Path:
    """Write rows of a tenth as many clusters; of five answers one is wrong."""
    duckdb.sql(
        f"COPY (SELECT hash(i * 7) % {rows // 10} AS patient_id, {confidence} AS confidence, "
        "(hash(i * 3) % 2)::INT AS truth, (hash(i * 3) % 2 = (hash(i * 5) % 5 > 0)::INT)::INT AS prediction, "
        f"(hash(i * 5) % 5 = 0)::INT AS loss FROM range({rows}) t(i)) TO '{path}' (FORMAT parquet)"
    )
    return path


def bare_query(statement: str) -> object:
    """Run what anybody would write."""
    return duckdb.execute(statement).fetchnumpy()


def tally(path: Path) -> object:
    """Count the rows of a table by unit, right or wrong, and confidence, and its clusters."""
    found = countables({"table": path}, engine="duckdb")
    assert found is not None
    counting = found["table"].count(signals=("confidence",))
    return counting.items(np.arange(len(counting.kinds)), ("confidence",))


def memory(rows: int) -> None:
    """Report the peak memory of an evaluation of so many rows, with intervals."""
    with tempfile.TemporaryDirectory() as folder:
        for words, confidence in LEVELS.items():
            path = table(Path(folder) / "huge.parquet", rows, confidence)
            began = time.perf_counter()
            done = subprocess.run(
                [sys.executable, "-c", _EVALUATE, path], capture_output=True, text=True, check=True
            )
            used, seconds = int(done.stdout), time.perf_counter() - began
            note = f"{used} MB, {seconds:.0f} s"
            report(f"{rows:,} rows, {words}: 1.5 GB / peak", LIMIT_MB / used, 1.0, note)


def main() -> None:
    """Report the ratios."""
    with tempfile.TemporaryDirectory() as folder:
        for words, confidence in LEVELS.items():
            path = table(Path(folder) / f"{words}.parquet", ROWS, confidence)
            key, times = ("confidence", 6) if words == "100 levels" else ("floor(confidence * 65536)", 4)
            statement = f"SELECT {key}, count(*), sum(loss) FROM '{path}' GROUP BY 1"
            bare, ours = best_times(
                partial(bare_query, statement),
                partial(tally, path),
                rounds=8,
                clock=time.process_time,
            )
            report(
                f"ten million rows, {words}: tally with intervals / bare GROUP BY", ours / bare, most=times
            )
        asked: dict[str, Any] = {"confidence": "confidence", "engine": "duckdb"}
        path = Path(folder) / "100 levels.parquet"
        without, with_intervals = best_times(
            lambda: abstain.evaluate(path, interval="none", **asked),
            lambda: abstain.evaluate(path, **asked),
            rounds=3,
            clock=time.process_time,
        )
        report("a million clusters: evaluate / without intervals", with_intervals / without, most=3)


if __name__ == "__main__":
    memory(int(sys.argv[1]))
