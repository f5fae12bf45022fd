"""Count the modules and functions that typical calls enter, and print them as a Markdown table.

Run it as `python -m benchmarks.call_paths`. Every call runs twice, and only the second call is profiled, so that
imports and filled caches do not count. Only functions in the package's source files count, without comprehensions and
without code that dataclasses generate. The columns:

- modules, functions: the number of different modules and functions that the call enters.
- cross-module calls: the number of calls from one module of the package to another, directly or through a library such
  as typer.
- depth at which the formula runs: a call enters `abstain.resampling` several times, to sum rows and to integrate the
  curve. At each entry, the functions of the package on the stack are counted, including the entered one. The depth is
  the largest of these counts.

The process is restricted to one core, so that all work happens in the profiled thread.
"""

from __future__ import annotations

import contextlib
import inspect
import io
import os
import sys
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

import abstain
from abstain import metrics
from abstain.__main__ import main
from benchmarks._measure import best_times
from benchmarks.bench_selective import peer_statistic

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

PACKAGE = f"{Path(abstain.__file__).parent}{os.sep}"
FORMULA = f"{PACKAGE}resampling{os.sep}"
RUN = Path(__file__).parent.parent / "tests" / "data" / "examples" / "run_a.json"
COLUMNS = ["call", "modules", "functions", "cross-module calls", "depth at which the formula runs"]


@dataclass
class CallPath:
    """The functions of the package that a call enters, by file and first line."""

    functions: set[tuple[str, int]] = field(default_factory=set)
    cross_module_calls: int = 0
    formula_depth: int = 0

    def record(self, frame: FrameType, event: str, _: Any) -> None:
        """Count one call: a profile function for `sys.setprofile`."""
        if event != "call" or not is_package_function(frame) or is_resumed(frame):
            return
        file = frame.f_code.co_filename
        self.functions.add((file, frame.f_code.co_firstlineno))
        callers = package_files(frame.f_back)
        if callers and callers[0] != file:
            self.cross_module_calls += 1
            if file.startswith(FORMULA) and not callers[0].startswith(FORMULA):
                self.formula_depth = max(self.formula_depth, 1 + len(callers))

    def row(self) -> list[int]:
        """Return the numbers of the table, without the name of the call."""
        modules = {file for file, _ in self.functions}
        return [len(modules), len(self.functions), self.cross_module_calls, self.formula_depth]


def is_package_function(frame: FrameType) -> bool:
    code = frame.f_code
    named = not code.co_name.startswith("<") or code.co_name == "<lambda>"
    return named and code.co_filename.startswith(PACKAGE)


def is_resumed(frame: FrameType) -> bool:
    """Return whether a generator was resumed, which the profiler reports as a call."""
    code = frame.f_code
    return bool(code.co_flags & inspect.CO_GENERATOR) and frame.f_lineno != code.co_firstlineno


def package_files(frame: FrameType | None) -> list[str]:
    """Return the source files of the package's functions on the stack, innermost first."""
    files = []
    while frame is not None:
        if is_package_function(frame):
            files.append(frame.f_code.co_filename)
        frame = frame.f_back
    return files


def trace(call: Callable[[], object]) -> CallPath:
    path = CallPath()
    call()
    sys.setprofile(path.record)
    try:
        call()
    finally:
        sys.setprofile(None)
    return path


def run_command(*arguments: str) -> None:
    """Run a command in this process, discard its output, and exit if it fails."""
    sys.argv = ["abstain", *arguments]
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()) as problem:
        try:
            main()
        except SystemExit as end:
            if end.code:
                sys.exit(f"{' '.join(arguments)}: {problem.getvalue()}")


def make_table(seed: int, rows: int = 1000) -> pd.DataFrame:
    """Return predictions that are mostly right, with higher confidence if right, and a tenth of the items declined."""
    truth = np.random.default_rng(0).integers(0, 2, rows)
    rng = np.random.default_rng(seed)
    confidence = rng.random(rows)
    prediction = np.where(rng.random(rows) < confidence**0.1, truth, 1 - truth)
    return pd.DataFrame(
        {
            "item_id": np.arange(rows),
            "cluster": np.arange(rows) // 5,
            "truth": truth,
            "prediction": prediction,
            "confidence": confidence,
            "abstained": rng.random(rows) < 0.1,
        }
    )


def print_row(cells: list[Any]) -> None:
    print(f"| {' | '.join(map(str, cells))} |")


def print_call_paths() -> None:
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    frame = make_table(1)
    loss, confidence = (frame["truth"] != frame["prediction"]).to_numpy(float), frame["confidence"].to_numpy()
    print_row(COLUMNS)
    print_row(["---"] * len(COLUMNS))
    with TemporaryDirectory() as folder, contextlib.chdir(folder):
        Path("run.json").write_bytes(RUN.read_bytes())
        for seed, name in enumerate(["a.csv", "b.csv", "t.csv"], start=1):
            make_table(seed).to_csv(name, index=False)
        calls: dict[str, Callable[[], object]] = {
            "abstain evaluate run.json --mode few_shot": lambda: run_command(
                "evaluate", "run.json", "--mode", "few_shot"
            ),
            "abstain compare a.csv b.csv": lambda: run_command("compare", "a.csv", "b.csv"),
            "abstain threshold t.csv --risk 5%": lambda: run_command("threshold", "t.csv", "--risk", "5%"),
            "abstain.evaluate(df)": lambda: abstain.evaluate(frame),
            "abstain.metrics.aurc(loss, confidence)": lambda: metrics.aurc(loss, confidence),
        }
        for name, call in calls.items():
            print_row([f"`{name}`", *trace(call).row()])
    np.testing.assert_allclose(metrics.aurc(loss, confidence), peer_statistic(loss, confidence), rtol=1e-12)
    seconds = best_times(
        lambda: metrics.aurc(loss, confidence), lambda: peer_statistic(loss, confidence), rounds=1000
    )
    ours, numpy = (f"{1e6 * best:.0f} µs" for best in seconds)
    print(f"\nAURC of 1,000 rows: {ours}; the same area in ten lines of numpy: {numpy}.")


if __name__ == "__main__":
    print_call_paths()
