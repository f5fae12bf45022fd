"""What default intervals cost: against 10,000 resamples of the same metrics, and against sorting the confidences once.

Everything goes through `abstain.evaluate`, as a user would ask: all selective metrics with a grid of nine coverages.
The cost of intervals is that of the call less that of the same call without any.
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


def some(items: int, clusters: int, levels: int | None = None) -> Items:
    rng = np.random.default_rng(3)
    sure = rng.random(items) if levels is None else rng.integers(1, levels + 1, items) / levels
    return abstain.Items.from_arrays(
        np.zeros(items, np.intp),
        (rng.random(items) < 0.5 - 0.4 * sure).astype(np.intp),
        abstained=rng.random(items) < 0.2,
        confidence=sure,
        cluster=np.arange(items) % clusters,
    )


def evaluated(items: Items, interval: str, resamples: int | None = None) -> Callable[[], object]:
    def run() -> object:
        return abstain.evaluate(items, coverage_grid=GRID, interval=interval, resamples=resamples)

    return run


def against_resamples(what: str, levels: int | None) -> None:
    """Once where numpy weighs both, and once where the kernel does, which serves many vectors better than few."""
    items = some(328, 41, levels)
    calls = (evaluated(items, "jackknife"), evaluated(items, "percentile", 10_000), evaluated(items, "none"))
    for who, chosen in (("numpy", Kernel()), ("the kernel", kernel())):
        with use_kernel(chosen):
            default, drawn, none = best_times(*calls, rounds=10)
        wanted = 50 if who == "numpy" and levels is None else None
        ratio = (drawn - none) / max(default - none, 1e-9)
        report(f"{what}: against 10,000 resamples, both by {who}", ratio, wanted)
        report(f"{what}: the whole call, by {who}", drawn / default)


def against_sorting() -> None:
    items = some(1_000_000, 100_000)
    sure = items.signals["confidence"].values
    default, none, sorting = best_times(
        evaluated(items, "jackknife"), evaluated(items, "none"), lambda: np.argsort(sure), rounds=2
    )
    note = f"({none / sorting:.1f} x without intervals)"
    report(
        "1e6 items, 1e5 clusters: in numpy.argsort of the confidences",
        default / sorting,
        most=100,
        note=note,
    )


def main() -> None:
    against_resamples("328 items, 41 clusters", None)
    against_resamples("the same, 7 levels", 7)
    against_sorting()
