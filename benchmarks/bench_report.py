"""The CPU time of the command `report` relative to the command `evaluate`, for the same run.

Both evaluate all confidences in one thread. A report also computes confidence intervals at every threshold and draws a
dozen charts. It should take at most three times as long.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

EXAMPLE = Path(__file__).parent.parent / "tests" / "data" / "examples" / "run_b.json"
ROUNDS = 3
MOST = 3.0


def cpu_seconds(command: str, output: Path) -> float:
    arguments = [str(EXAMPLE), "--mode", "few_shot", "--confidence", "all", "-q", "-o", str(output)]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    single = os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    program = [sys.executable, "-m", "abstain", command, *arguments]
    subprocess.run(program, check=True, stdout=subprocess.DEVNULL, env=single)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    commands = ("evaluate", "report")
    with tempfile.TemporaryDirectory() as folder:
        rounds = [
            [cpu_seconds(command, Path(folder) / command) for command in commands] for _ in range(ROUNDS)
        ]
    evaluate, report = (min(times) for times in zip(*rounds, strict=True))
    ratio = report / evaluate
    print(f"  {'CPU time of report / CPU time of evaluate':<62} {ratio:9.1f} x  (target: at most {MOST:g})")


if __name__ == "__main__":
    main()
