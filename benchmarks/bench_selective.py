"""The cluster bootstrap of all risk-coverage metrics against `scipy.stats.bootstrap` of the AURC alone.

Both draw from the same rows, one thread, percentile intervals, time per resample. The peer gets a numpy statistic that
sorts, joins plateaus and integrates, which is what a user of scipy would write.
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
EVERYTHING = tuple(BUNDLES["selective"])
ARTIFACT = ("cmax", "aurc", "augrc", "aurc_at_coverage", "augrc_at_coverage")


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
        measure = measure_metrics(columns, metrics)
        intervals = Intervals.of(np.arange(units), interval="percentile", resamples=resamples)
        weighed = intervals.replicate([measure])[measure]
        return intervals.estimates(
            measure.points, weighed, [metric.scale(columns) for metric in metrics], n=len(loss)
        )

    return run


def compare(
    what: str, items: int, clusters: int, levels: int | None, wanted: float, resamples: tuple[int, int]
) -> None:
    rng = np.random.default_rng(1)
    loss = rng.integers(0, 4, items).astype(float)
    confidence = rng.random(items) if levels is None else rng.integers(0, levels, items).astype(float)
    cluster = np.repeat(np.arange(clusters), items // clusters)
    results_json, everything, other = best_times(
        ours(loss, confidence, cluster, ARTIFACT, resamples[0]),
        ours(loss, confidence, cluster, EVERYTHING, resamples[0]),
        peer(loss, confidence, resamples[1]),
    )
    per_resample = other / resamples[1]
    report(f"{what}: the artifact's ci95", per_resample / (results_json / resamples[0]), wanted)
    report(f"{what}: with optimal, excess and achievable areas", per_resample / (everything / resamples[0]))


def million() -> None:
    """A million items of their own, 1,000 resamples, in a process of its own whose memory is read afterwards."""
    rng = np.random.default_rng(2)
    items = 1_000_000
    loss = (rng.random(items) < 0.2).astype(float)
    ours(loss, rng.random(items), np.arange(items), EVERYTHING, 1000)()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2
    print(f"  a million items, 1,000 resamples, all metrics: {peak:.2f} GB at most (wanted: below 2)")


def main() -> None:
    compare("328 items, 41 clusters, continuous", 328, 41, None, 8, (10_000, 500))
    compare("328 items, 41 clusters, 7 levels", 328, 41, 7, 25, (10_000, 500))
    compare("10,000 items of their own, continuous", 10_000, 10_000, None, 1.5, (300, 60))
    sys.stdout.flush()
    subprocess.run(
        [sys.executable, "-c", "from benchmarks.bench_selective import million; million()"], check=True
    )
