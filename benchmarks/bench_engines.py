"""Engines: whole commands against plain DuckDB statements for the same aggregation, and memory for many rows.

`python -m benchmarks.bench_engines 100000000` measures the memory for that number of rows, once.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import duckdb

import abstain
from benchmarks._measure import Usage, best_times, child_usage, report

ROWS = 10_000_000
LIMIT_MB = 1_500
COMMAND_LIMIT_MB = 500
LEVELS = {"100 levels": "(hash(i) % 100) / 100", "all differ": "hash(i * 11) / 18446744073709551616"}

_EVALUATE = (
    "import sys, abstain; result = abstain.evaluate(sys.argv[1], confidence='confidence', engine='duckdb'); "
    "print(int(open('/proc/self/status').read().split('VmHWM:')[1].split()[0]) // 1000)"
)


def table(path: Path, rows: int, confidence: str) -> Path:
    """Write a table with ten rows per cluster, in which one answer of five is wrong."""
    duckdb.sql(
        f"COPY (SELECT hash(i * 7) % {rows // 10} AS patient_id, {confidence} AS confidence, "
        "(hash(i * 3) % 2)::INT AS truth, (hash(i * 3) % 2 = (hash(i * 5) % 5 > 0)::INT)::INT AS prediction, "
        f"(hash(i * 5) % 5 = 0)::INT AS loss FROM range({rows}) t(i)) TO '{path}' (FORMAT parquet)"
    )
    return path


def memory(rows: int) -> None:
    """Report the peak memory of an evaluation with confidence intervals."""
    with tempfile.TemporaryDirectory() as folder:
        for name, confidence in LEVELS.items():
            path = table(Path(folder) / "huge.parquet", rows, confidence)
            start = time.perf_counter()
            done = subprocess.run(
                [sys.executable, "-c", _EVALUATE, path], capture_output=True, text=True, check=True
            )
            used, seconds = int(done.stdout), time.perf_counter() - start
            note = f"{used} MB, {seconds:.0f} s"
            report(f"{rows:,} rows, {name}: 1.5 GB / peak", LIMIT_MB / used, 1.0, note)


def labelled_table(
    path: Path, rows: int, confidence: str, *, text: bool = False, nulls: int = 0, declined: int = 0
) -> Path:
    """Write a table with eight rows per cluster and with 50 x 60 groups.

    `nulls` percent of the rows have no prediction, and `declined` percent are declined; 0 writes no such column.
    Labels and clusters are integers, or strings with `text`. The suffix of the path is the format.
    """
    yes, no = ("'yes'", "'no'") if text else ("1", "0")
    patient = ("'patient-' || " if text else "") + f"hash(i * 7) % {rows // 8}"
    groups = (
        "" if path.suffix == ".csv" else ", hash(i * 13) % 50 AS week, 'site ' || hash(i * 17) % 60 AS site"
    )
    abstained = f", hash(i * 19) % 100 < {declined} AS abstained" if declined else ""
    duckdb.sql(
        f"COPY (SELECT if(hash(i * 3) % 5 < 2, {yes}, {no}) AS truth, "
        f"CASE WHEN hash(i * 2) % 100 < {nulls} THEN NULL WHEN hash(i * 5) % 5 > 0 THEN {yes} ELSE {no} END "
        f"AS prediction, {confidence} AS confidence, {patient} AS patient_id{groups}{abstained} "
        f"FROM range({rows}) t(i)) TO '{path}'"
    )
    return path


def evaluation_command(path: Path, *options: str) -> tuple[str, ...]:
    return (sys.executable, "-m", "abstain", "evaluate", str(path), *options)


def duckdb_command(statement: str) -> tuple[str, ...]:
    return (sys.executable, "-c", f"import duckdb; duckdb.execute({statement!r}).fetchall()")


def report_command(label: str, ours: Usage, peer: Usage, most: float | None = None) -> None:
    """Report the ratio of the CPU times of two processes, and their memory."""
    note = f"{ours.cpu:.1f} s, {ours.megabytes:.0f} MB / {peer.cpu:.1f} s, {peer.megabytes:.0f} MB"
    report(label, ours.cpu / peer.cpu, note=note, most=most)


def csv_commands(folder: Path) -> None:
    """Report `abstain evaluate` of a CSV file with a million rows against DuckDB reading it into a table."""
    for labels, text in (("integers", False), ("strings", True)):
        path = labelled_table(folder / "million.csv", 1_000_000, "(hash(i * 11) % 1000) / 1000", text=text)
        peer, ours = child_usage(
            duckdb_command(f"CREATE TABLE t AS FROM read_csv('{path}')"),
            evaluation_command(path),
            folder=str(folder),
            rounds=3,
        )
        report_command(
            f"a million rows of CSV, {labels}: evaluate / read_csv, CPU", ours, peer, None if text else 4
        )


def parquet_commands(folder: Path) -> None:
    """Report `abstain evaluate` of a Parquet file with ten million rows against a plain GROUP BY."""
    path = labelled_table(folder / "labelled.parquet", ROWS, LEVELS["all differ"])
    peer, ours = child_usage(
        duckdb_command(f"SELECT floor(confidence * 65536), count(*) FROM '{path}' GROUP BY ALL"),
        evaluation_command(path),
        folder=str(folder),
        rounds=2,
    )
    report_command("ten million rows, all confidences differ: evaluate / plain GROUP BY of bins", ours, peer)
    for labels, text in (("integers", False), ("strings", True)):
        path = labelled_table(folder / "labelled.parquet", ROWS, LEVELS["100 levels"], text=text, nulls=20)
        peer, ours = child_usage(
            duckdb_command(f"SELECT truth, prediction, confidence, count(*) FROM '{path}' GROUP BY ALL"),
            evaluation_command(path, "--null-prediction", "abstained"),
            folder=str(folder),
            rounds=2,
        )
        report_command(
            f"ten million rows, {labels}: evaluate / plain GROUP BY, CPU", ours, peer, None if text else 10
        )
        report(
            f"ten million rows, {labels}: 500 MB / peak",
            COMMAND_LIMIT_MB / ours.megabytes,
            None if text else 1.0,
            f"{ours.megabytes:.0f} MB",
        )


def group_commands(folder: Path) -> None:
    """Report `abstain evaluate --by` against the same evaluation without groups."""
    answered, declined = (
        labelled_table(folder / f"groups{percent}.parquet", 5_000_000, LEVELS["all differ"], declined=percent)
        for percent in (0, 10)
    )
    cases = (
        ("50 groups", answered, "week"),
        ("3,000 groups", answered, "week,site"),
        ("50 groups, 10% declined", declined, "week"),
        ("3,000 groups, 10% declined", declined, "week,site"),
    )
    for groups, path, columns in cases:
        label = f"five million rows: evaluate with {groups} / without, CPU"
        commands = evaluation_command(path), evaluation_command(path, "--by", columns)
        try:
            peer, ours = child_usage(*commands, folder=str(folder), rounds=1)
        except subprocess.CalledProcessError as failure:
            print(f"  {label:<62}    failed: {failure.stderr.strip().splitlines()[-1]}")
        else:
            report_command(label, ours, peer)


def main() -> None:
    """Report the ratios."""
    with tempfile.TemporaryDirectory() as folder:
        csv_commands(Path(folder))
        parquet_commands(Path(folder))
        group_commands(Path(folder))
    with tempfile.TemporaryDirectory() as folder:
        arguments: dict[str, Any] = {"confidence": "confidence", "engine": "duckdb"}
        path = table(Path(folder) / "levels.parquet", ROWS, LEVELS["100 levels"])
        without, with_intervals = best_times(
            lambda: abstain.evaluate(path, interval="none", **arguments),
            lambda: abstain.evaluate(path, **arguments),
            rounds=3,
            clock=time.process_time,
        )
        report("a million clusters: evaluate / without intervals", with_intervals / without, most=3)


if __name__ == "__main__":
    memory(int(sys.argv[1]))
