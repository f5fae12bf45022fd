"""Plot the time per item and resample by the number of items: `python -m benchmarks.plot_kernel [SECONDS]`.

Writes ``docs/images/kernel-cost.svg`` and prints the table. The lower limit is set by the memory of this machine: for
64 resamples, the kernel must read 12 bytes per item and one byte per item and resample, at the speed at which this
machine reads an array that is larger than its caches. As in `make bench`, numpy must have one thread
(``OPENBLAS_NUM_THREADS=1``), because the CPU time of waiting threads would be counted as well.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np

from abstain.inference import set_threads
from benchmarks.bench_kernel import weighing
from benchmarks.bench_selective import ALL_METRICS, REPORTED_METRICS

PICTURE = Path(__file__).parent.parent / "docs" / "images" / "kernel-cost.svg"
SIZES = (100, 1000, 10_000, 100_000, 1_000_000, 10_000_000)
BYTES = 12 / 64 + 1
KINDS = (
    ("compiled, ci95", REPORTED_METRICS, False),
    ("compiled, all metrics", ALL_METRICS, False),
    ("numpy, ci95", REPORTED_METRICS, True),
)
# With more items, numpy takes minutes and much memory.
NUMPY_UP_TO = 1_000_000


def memory_speed() -> float:
    """Return the number of bytes per nanosecond that are read from an array of 256 MB."""
    array = np.ones(1 << 25)
    best = float("inf")
    for _ in range(5):
        start = time.process_time()
        array.sum()
        best = min(best, time.process_time() - start)
    return array.nbytes / best / 1e9


def _resamples(items: int, *, numpy: bool) -> int:
    """Return a number of resamples that can be timed: for the kernel, whole groups of 64 unless items are many."""
    if numpy:
        return 1 if items > 100_000 else min(max(2_000_000 // items, 8), 4096)
    return 16 if items > 1_000_000 else min(max(4_000_000 // items // 64, 1) * 64, 4096)


def costs(seconds: float) -> list[dict[str, float | int | str]]:
    """Return the time of each kind at each size, in nanoseconds per item and resample."""
    rows: list[dict[str, float | int | str]] = []
    for kind, names, numpy in KINDS:
        for items in SIZES:
            if numpy and items > NUMPY_UP_TO:
                continue
            resamples = _resamples(items, numpy=numpy)
            work = weighing(items, items, None, names, resamples, numpy=numpy)
            best, end = float("inf"), time.monotonic() + seconds
            while best == float("inf") or time.monotonic() < end:
                start = time.process_time()
                work()
                best = min(best, time.process_time() - start)
            rows.append({"kind": kind, "items": items, "cost": 1e9 * best / resamples / items})
            print(
                f"  {kind:<24} {items:>12,} items  {rows[-1]['cost']:8.2f} ns per item and resample",
                flush=True,
            )
    return rows


def main(seconds: float = 2.0) -> None:
    import altair as alt  # noqa: PLC0415

    set_threads(1)
    speed = memory_speed()
    limit = BYTES / speed
    print(
        f"  memory speed: {speed:.1f} bytes per nanosecond, so at least {limit:.2f} ns per item and resample"
    )
    rows = costs(seconds)
    lines = (
        alt.Chart(alt.InlineData(values=rows))
        .mark_line(point=True)
        .encode(
            x=alt.X("items:Q", scale=alt.Scale(type="log"), title="items, without clusters"),
            y=alt.Y("cost:Q", scale=alt.Scale(type="log"), title="ns per item and resample"),
            color=alt.Color("kind:N", title=None),
        )
    )
    floor = alt.Chart(alt.InlineData(values=[{"cost": limit, "kind": "limit of memory speed"}])).mark_rule(
        strokeDash=[4, 4]
    )
    chart = lines + floor.encode(y="cost:Q", color="kind:N")
    chart.properties(width=460, height=260).save(str(PICTURE))
    print(PICTURE)


if __name__ == "__main__":
    main(*map(float, sys.argv[1:]))
