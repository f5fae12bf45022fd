"""The cost of default confidence intervals, relative to 10,000 resamples and to sorting the confidences once.

All timings are of `abstain.evaluate`, with all selective metrics and a grid of nine coverages. The cost of intervals is
the difference between a call with intervals and the same call without.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

import abstain
from abstain.resampling._kernel import Kernel, kernel, use_kernel
from benchmarks._measure import best_times, report

if TYPE_CHECKING:
    from collections.abc import Callable

    from abstain import Items

GRID = tuple((np.arange(1, 10) / 10).tolist())


def make_items(items: int, clusters: int, levels: int | None = None) -> Items:
    rng = np.random.default_rng(3)
    confidence = rng.random(items) if levels is None else rng.integers(1, levels + 1, items) / levels
    return abstain.Items.from_arrays(
        np.zeros(items, np.intp),
        (rng.random(items) < 0.5 - 0.4 * confidence).astype(np.intp),
        abstained=rng.random(items) < 0.2,
        confidence=confidence,
        cluster=np.arange(items) % clusters,
    )


def evaluation(items: Items, interval: str, resamples: int | None = None) -> Callable[[], object]:
    def run() -> object:
        return abstain.evaluate(items, coverage_grid=GRID, interval=interval, resamples=resamples)

    return run


def against_resamples(label: str, levels: int | None) -> None:
    """Compare both with numpy and with the compiled kernel, which gains most with many weight vectors."""
    items = make_items(328, 41, levels)
    calls = (
        evaluation(items, "jackknife"),
        evaluation(items, "percentile", 10_000),
        evaluation(items, "none"),
    )
    for name, implementation in (("numpy", Kernel()), ("the kernel", kernel())):
        with use_kernel(implementation):
            jackknife, bootstrap, no_interval = best_times(*calls, rounds=10)
        target = 50 if name == "numpy" and levels is None else None
        ratio = (bootstrap - no_interval) / max(jackknife - no_interval, 1e-9)
        report(f"{label}: against 10,000 resamples, both with {name}", ratio, target)
        report(f"{label}: the whole call, with {name}", bootstrap / jackknife)


def against_sorting() -> None:
    items = make_items(1_000_000, 100_000)
    confidence = items.signals["confidence"].values
    jackknife, no_interval, sorting = best_times(
        evaluation(items, "jackknife"), evaluation(items, "none"), lambda: np.argsort(confidence), rounds=2
    )
    note = f"({no_interval / sorting:.1f} x without intervals)"
    report(
        "1e6 items, 1e5 clusters: evaluate / numpy.argsort of the confidences",
        jackknife / sorting,
        most=100,
        note=note,
    )


def main() -> None:
    against_resamples("328 items, 41 clusters", None)
    against_resamples("the same, 7 levels", 7)
    against_sorting()
