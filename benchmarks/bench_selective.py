"""The cluster bootstrap of all risk-coverage metrics against `scipy.stats.bootstrap` of only the AURC.

Both resample the same rows in one thread and compute percentile intervals; the ratio is of times per resample. scipy
gets a numpy function that sorts, combines tied blocks and integrates, as a user would write it.
"""

from __future__ import annotations

import resource
import subprocess
import sys
from typing import TYPE_CHECKING

import numpy as np
from scipy import stats

from abstain.inference import Intervals
from abstain.metrics import Columns, measure_metrics
from abstain.metrics.registry import BUNDLES, METRICS
from benchmarks._measure import best_times, report

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

GRID = tuple(np.arange(1, 10) / 10)
ALL_METRICS = tuple(BUNDLES["selective"])
REPORTED_METRICS = ("cmax", "aurc", "augrc", "aurc_at_coverage", "augrc_at_coverage")


def peer_statistic(loss: Floats, confidence: Floats) -> float:
    order = np.argsort(-confidence, kind="stable")
    ranked, levels = loss[order], confidence[order]
    count = np.arange(1, len(ranked) + 1)
    ends = np.flatnonzero(np.append(np.diff(levels) != 0, True))
    risk = (np.cumsum(ranked) / count)[ends]
    coverage = count[ends] / len(ranked)
    return float(np.trapezoid(np.append(risk[0], risk), np.append(0.0, coverage)))


def peer(loss: Floats, confidence: Floats, resamples: int) -> Callable[[], object]:
    rng = np.random.default_rng(0)

    def run() -> object:
        return stats.bootstrap(
            (loss, confidence),
            peer_statistic,
            paired=True,
            vectorized=False,
            n_resamples=resamples,
            method="percentile",
            rng=rng,
        )

    return run


def ours(
    loss: Floats, confidence: Floats, cluster: NDArray[np.intp], names: tuple[str, ...], resamples: int
) -> Callable[[], object]:
    metrics = [METRICS[name] for name in names]
    metrics += [METRICS["risk_at_coverage"].at(float(coverage)) for coverage in GRID]
    units = int(cluster.max()) + 1

    def run() -> object:
        columns = Columns.of(len(loss), loss=loss, confidence=confidence, cluster=cluster, units=units)
        statistic = measure_metrics(columns, metrics)
        intervals = Intervals.of(np.arange(units), interval="percentile", resamples=resamples)
        replicates = intervals.replicate([statistic])[statistic]
        return intervals.estimates(
            statistic.points, replicates, [metric.scale(columns) for metric in metrics], n=len(loss)
        )

    return run


def compare(
    label: str, items: int, clusters: int, levels: int | None, target: float, resamples: tuple[int, int]
) -> None:
    rng = np.random.default_rng(1)
    loss = rng.integers(0, 4, items).astype(float)
    confidence = rng.random(items) if levels is None else rng.integers(0, levels, items).astype(float)
    cluster = np.repeat(np.arange(clusters), items // clusters)
    reported_metrics, all_metrics, other = best_times(
        ours(loss, confidence, cluster, REPORTED_METRICS, resamples[0]),
        ours(loss, confidence, cluster, ALL_METRICS, resamples[0]),
        peer(loss, confidence, resamples[1]),
    )
    per_resample = other / resamples[1]
    report(f"{label}: ci95 of the results JSON", per_resample / (reported_metrics / resamples[0]), target)
    report(f"{label}: with optimal, excess and achievable areas", per_resample / (all_metrics / resamples[0]))


def million() -> None:
    """Print the peak memory for a million items without clusters; call it in a new process."""
    rng = np.random.default_rng(2)
    items = 1_000_000
    loss = (rng.random(items) < 0.2).astype(float)
    ours(loss, rng.random(items), np.arange(items), ALL_METRICS, 1000)()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2
    print(f"  a million items, 1,000 resamples, all metrics: {peak:.2f} GB peak memory (target: below 2)")


def main() -> None:
    compare("328 items, 41 clusters, continuous", 328, 41, None, 8, (10_000, 500))
    compare("328 items, 41 clusters, 7 levels", 328, 41, 7, 25, (10_000, 500))
    compare("10,000 items without clusters, continuous", 10_000, 10_000, None, 1.5, (300, 60))
    sys.stdout.flush()
    subprocess.run(
        [sys.executable, "-c", "from benchmarks.bench_selective import million; million()"], check=True
    )
