"""Interval and set metrics beside MAPIE's, in one run: ratios of time, and memory where MAPIE cannot follow."""

from __future__ import annotations

import time
import tracemalloc
from typing import TYPE_CHECKING

import numpy as np
from mapie.metrics import classification as mapie_sets
from mapie.metrics import regression as mapie_intervals

from abstain.metrics import intervals, sets

if TYPE_CHECKING:
    from collections.abc import Callable

ROWS = 1_000_000


def main() -> None:
    """Print one line a metric: how many times as fast as MAPIE it is."""
    rng = np.random.default_rng(0)
    _hsic(rng)
    truth, bounds = _intervals(rng, ROWS)
    flat = bounds[:, :, 0]
    labels, members = rng.integers(0, 10, ROWS), rng.random((ROWS, 10, 1)) < 0.3
    low, high = flat[:, 0], flat[:, 1]
    print(f"\ninterval and set metrics at {ROWS:,} rows")
    _beside(
        "coverage_score",
        lambda: intervals.coverage_score(truth, bounds),
        lambda: mapie_intervals.regression_coverage_score(truth, bounds),
    )
    _beside(
        "mean_width_score",
        lambda: intervals.mean_width_score(bounds),
        lambda: mapie_intervals.regression_mean_width_score(bounds),
    )
    _beside(
        "size_stratified_coverage",
        lambda: intervals.size_stratified_coverage(truth, bounds),
        lambda: mapie_intervals.regression_ssc_score(truth, bounds),
    )
    _beside(
        "coverage_width_criterion",
        lambda: intervals.coverage_width_criterion(truth, flat, eta=2.0, level=0.9),
        lambda: mapie_intervals.coverage_width_based(truth, low, high, 2.0, 0.9),
    )
    _beside(
        "winkler_score",
        lambda: intervals.winkler_score(truth, bounds, level=0.9),
        lambda: mapie_intervals.regression_mwi_score(truth, bounds, 0.9),
    )
    _beside(
        "sets.coverage_score",
        lambda: sets.coverage_score(labels, members),
        lambda: mapie_sets.classification_coverage_score(labels, members),
    )
    _beside(
        "sets.mean_width_score",
        lambda: sets.mean_width_score(members),
        lambda: mapie_sets.classification_mean_width_score(members),
    )
    _beside(
        "sets.size_stratified_coverage",
        lambda: sets.size_stratified_coverage(labels, members),
        lambda: mapie_sets.classification_ssc_score(labels, members),
    )


def _hsic(rng: np.random.Generator) -> None:
    truth, bounds = _intervals(rng, 5_000)
    print("HSIC of width and coverage")
    _beside(
        "hsic, 5,000 rows",
        lambda: intervals.hsic(truth, bounds),
        lambda: mapie_intervals.hsic(truth, bounds),
        rounds=1,
    )
    for rows in (100_000, 1_000_000):
        truth, bounds = _intervals(rng, rows)
        seconds = _seconds(lambda: intervals.hsic(truth, bounds), 1)  # noqa: B023
        tracemalloc.start()
        intervals.hsic(truth, bounds)
        peak = tracemalloc.get_traced_memory()[1] / 2**20
        tracemalloc.stop()
        needed = rows * rows * 8 / 2**30
        print(
            f"  hsic, {rows:>9,} rows: {seconds:.2f} s, {peak:.0f} MiB (one n-by-n matrix: {needed:,.0f} GiB)"
        )


def _intervals(rng: np.random.Generator, rows: int) -> tuple[np.ndarray, np.ndarray]:
    truth = rng.normal(size=rows)
    half = rng.gamma(8.0, 0.2, rows)
    center = truth + rng.normal(size=rows)
    return truth, np.stack([center - half, center + half], axis=1)[:, :, None]


def _beside(name: str, ours: Callable[[], object], theirs: Callable[[], object], rounds: int = 5) -> None:
    mine, peer = _seconds(ours, max(rounds, 3)), _seconds(theirs, rounds)
    print(f"  {name:30} {1e3 * mine:9.1f} ms  MAPIE {1e3 * peer:9.1f} ms  {peer / mine:8.1f} times as fast")


def _seconds(work: Callable[[], object], rounds: int) -> float:
    best = np.inf
    for _ in range(rounds):
        began = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - began)
    return float(best)


if __name__ == "__main__":
    main()
