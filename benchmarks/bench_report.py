"""The whole report command against the whole evaluate command: CPU time, in turns, on the same run.

All variants, 10,000 resamples, one thread. A report draws a band at every threshold and a dozen charts on top of what
evaluate does; it should cost at most three times as much.
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


def cpu_seconds(verb: str, output: Path) -> float:
    arguments = [str(EXAMPLE), "--mode", "few_shot", "--confidence", "all", "-q", "-o", str(output)]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    single = os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "abstain", verb, *arguments]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=single)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    verbs = ("evaluate", "report")
    with tempfile.TemporaryDirectory() as scratch:
        taken = [[cpu_seconds(verb, Path(scratch) / verb) for verb in verbs] for _ in range(ROUNDS)]
    evaluate, report = (min(times) for times in zip(*taken, strict=True))
    ratio = report / evaluate
    print(f"  {'CPU time of report over that of evaluate':<62} {ratio:9.1f} x  (wanted: at most {MOST:g})")


if __name__ == "__main__":
    main()
