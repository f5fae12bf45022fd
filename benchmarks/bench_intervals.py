"""Interval and set metrics against MAPIE in one thread, and HSIC for tables that are too large for MAPIE's memory."""

from __future__ import annotations

import tracemalloc
from typing import TYPE_CHECKING

import numpy as np
from mapie.metrics import classification as mapie_sets
from mapie.metrics import regression as mapie_intervals

from abstain.metrics import intervals, sets
from benchmarks._measure import best_times, report

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

ROWS = 1_000_000


def predictions(rng: np.random.Generator, rows: int) -> tuple[Floats, Floats]:
    truth = rng.normal(size=rows)
    center, half = truth + rng.normal(size=rows), rng.gamma(8.0, 0.2, rows)
    return truth, np.stack([center - half, center + half], axis=1)[:, :, None]


def hsic(rng: np.random.Generator) -> None:
    truth, bounds = predictions(rng, 5_000)
    ours = best_times(lambda: intervals.interval_hsic(truth, bounds), rounds=20)[0]
    peer = best_times(lambda: mapie_intervals.hsic(truth, bounds), rounds=1)[0]
    report("hsic, 5,000 rows, MAPIE / ours", peer / ours, target=1000, note=f"{1e3 * ours:.1f} ms")
    for rows, target in ((100_000, 300.0), (1_000_000, None)):
        truth, bounds = predictions(rng, rows)
        tracemalloc.start()
        intervals.interval_hsic(truth, bounds)
        peak = tracemalloc.get_traced_memory()[1] / 1e6
        tracemalloc.stop()
        seconds = best_times(lambda t=truth, b=bounds: intervals.interval_hsic(t, b), rounds=2)[0]  # type: ignore[misc]
        limit = "" if target is None else f" (target: under {target:g})"
        matrix = rows * rows * 8 / 2**30
        print(
            f"  hsic, {rows:,} rows: {peak:.0f} MB{limit}, {seconds:.2f} s; one n-by-n matrix is {matrix:,.0f} GiB"
        )


def million(rng: np.random.Generator) -> None:
    truth, bounds = predictions(rng, ROWS)
    flat = bounds[:, :, 0]
    low, high = np.ascontiguousarray(flat.T)
    labels, members = rng.integers(0, 10, ROWS), rng.random((ROWS, 10, 1)) < 0.3
    pairs: dict[str, tuple[Callable[[], object], Callable[[], object]]] = {
        "interval_coverage": (
            lambda: mapie_intervals.regression_coverage_score(truth, bounds),
            lambda: intervals.interval_coverage(truth, bounds),
        ),
        "interval_mean_width": (
            lambda: mapie_intervals.regression_mean_width_score(bounds),
            lambda: intervals.interval_mean_width(bounds),
        ),
        "interval_size_stratified_coverage": (
            lambda: mapie_intervals.regression_ssc_score(truth, bounds),
            lambda: intervals.interval_size_stratified_coverage(truth, bounds),
        ),
        "interval_coverage_width_criterion": (
            lambda: mapie_intervals.coverage_width_based(truth, low, high, 2.0, 0.9),
            lambda: intervals.interval_coverage_width_criterion(truth, flat, eta=2.0, level=0.9),
        ),
        "winkler_score": (
            lambda: mapie_intervals.regression_mwi_score(truth, bounds, 0.9),
            lambda: intervals.winkler_score(truth, bounds, level=0.9),
        ),
        "set_coverage": (
            lambda: mapie_sets.classification_coverage_score(labels, members),
            lambda: sets.set_coverage(labels, members),
        ),
        "set_mean_width": (
            lambda: mapie_sets.classification_mean_width_score(members),
            lambda: sets.set_mean_width(members),
        ),
        "set_size_stratified_coverage": (
            lambda: mapie_sets.classification_ssc_score(labels, members),
            lambda: sets.set_size_stratified_coverage(labels, members),
        ),
    }
    for name, (theirs, ours) in pairs.items():
        peer, mine = best_times(theirs, ours)
        report(f"{name}, {ROWS:,} rows, MAPIE / ours", peer / mine, target=1)


def main() -> None:
    rng = np.random.default_rng(0)
    hsic(rng)
    million(rng)
