"""Run the harness: `python -m fuzz [--seconds S] [--seed N] [--round NAME]`.

First every case of the corpus is run again. Then come new ones: without seconds (FUZZ_SECONDS) the same ones every
time, within a minute; with them others, for as long. What is found is made small and put into the corpus.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import time

from fuzz._jobs import Job, together
from fuzz._rounds import ROUNDS


def main() -> int:
    """Replay the corpus, hunt, and say what was found."""
    asked = _arguments()
    seed = asked.seed if asked.seed is not None else random.randrange(2**31) if asked.seconds else 0
    rounds = (asked.round,) if asked.round else tuple(ROUNDS)
    print(
        f"fuzz: seed {seed}, {asked.seconds:g} seconds"
        if asked.seconds
        else "fuzz: the cases of every commit"
    )
    began = time.monotonic()
    found = list(
        together([Job(number, asked.jobs, asked.seconds, seed, rounds) for number in range(asked.jobs)])
    )
    commands = sum(report.commands for report in found)
    failing = {name: what for report in found for name, what in report.failing.items()}
    findings = {finding.what: finding for report in found for finding in report.findings}
    for path, what in sorted(failing.items()):
        print(f"corpus {path}: {what}")
    for finding in findings.values():
        print(f"new    {finding.keep().name}: {finding.what}")
    took = time.monotonic() - began
    print(f"fuzz: {commands:,} commands in {took:.0f} seconds")
    print(f"fuzz: {len(failing)} cases of the corpus fail, {len(findings)} are new")
    return 1 if failing or findings else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m fuzz", description="Hostile and sound input for every verb."
    )
    parser.add_argument(
        *("--seconds",),
        type=float,
        default=float(os.environ.get("FUZZ_SECONDS") or 0),
        help="How long to hunt; the same cases every time when left out (FUZZ_SECONDS).",
    )
    parser.add_argument("--seed", type=int, help="Where a hunt begins; told by every hunt.")
    parser.add_argument("--round", choices=sorted(ROUNDS), help="One round alone.")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="How many processes.")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
