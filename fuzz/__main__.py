"""Run the harness: `python -m fuzz [--seconds S] [--seed N] [--round NAME]`.

All cases of the corpus run first, then new cases. Without ``--seconds`` (or FUZZ_SECONDS) the new cases are the same
every time and take about a minute. With it, new random cases run for that long. The smallest case of each defect is
saved in the corpus.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import time

from fuzz._jobs import Job, run_jobs
from fuzz._rounds import ROUNDS


def main() -> int:
    """Run the corpus and new cases, and print the defects."""
    arguments = _parse_arguments()
    seconds, jobs, seed = arguments.seconds, arguments.jobs, arguments.seed
    if seed is None:
        seed = random.randrange(2**31) if seconds else 0
    rounds = (arguments.round,) if arguments.round else tuple(ROUNDS)
    print(f"fuzz: seed {seed}, {seconds:g} seconds" if seconds else "fuzz: the fixed cases of every commit")
    start = time.monotonic()
    reports = list(run_jobs([Job(number, jobs, seconds, seed, rounds) for number in range(jobs)]))
    commands = sum(report.commands for report in reports)
    failing = {name: violation for report in reports for name, violation in report.failing.items()}
    findings = {finding.what: finding for report in reports for finding in report.findings}
    for name, violation in sorted(failing.items()):
        print(f"corpus {name}: {violation}")
    for finding in findings.values():
        print(f"new    {finding.keep().name}: {finding.what}")
    print(f"fuzz: {commands:,} commands in {time.monotonic() - start:.0f} seconds")
    print(f"fuzz: {len(failing)} cases of the corpus fail, {len(findings)} new defects")
    return 1 if failing or findings else 0


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m fuzz", description="Run every command with hostile and valid input."
    )
    parser.add_argument(
        *("--seconds",),
        type=float,
        default=float(os.environ.get("FUZZ_SECONDS") or 0),
        help="Time for random cases, in seconds. Default: FUZZ_SECONDS, or 0 for the fixed cases.",
    )
    parser.add_argument("--seed", type=int, help="Seed of the cases. Default: random, and printed.")
    parser.add_argument("--round", choices=sorted(ROUNDS), help="Run only this round. Default: all rounds.")
    parser.add_argument(
        "--jobs", type=int, default=os.cpu_count() or 1, help="Number of processes. Default: one per core."
    )
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
