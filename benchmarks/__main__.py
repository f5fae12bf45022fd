"""Run every benchmark: `python -m benchmarks [topic ...]`.

A benchmark is a module ``bench_<topic>`` with a function ``main`` that prints ratios. Two programs are timed
alternately in one run, so that other load on the machine slows both. Unlike seconds, ratios can be compared between
machines.
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

from abstain.inference import set_threads


def run(topics: list[str]) -> None:
    topic_names = sorted(
        path.stem.removeprefix("bench_") for path in Path(__file__).parent.glob("bench_*.py")
    )
    unknown = [topic for topic in topics if topic not in topic_names]
    if unknown:
        sys.exit(f"unknown benchmark {unknown[0]!r}; available: {', '.join(topic_names)}")
    for topic in topics or topic_names:
        set_threads(1)
        print(f"\n{topic}")
        import_module(f"benchmarks.bench_{topic}").main()


run(sys.argv[1:])
