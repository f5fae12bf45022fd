"""The compiled kernel against the bootstraps of scipy and fd-shifts and against numpy, its threads, and whole commands.

abstain computes the metrics of ``ci95`` in the results JSON (Cmax, both areas, both truncated areas, nine risks at
coverages), or all selective metrics if the label contains "all metrics". The other packages compute only the AURC.
Unless labelled otherwise, times are CPU times of one thread: the best of many short runs, because other load slows most
of them. fd-shifts cannot be installed together with current releases of other packages, so its algorithm is
reimplemented here: resample rows, sort, accumulate from the least to the most confident item in a Python loop, and
integrate by trapezoids.
"""

from __future__ import annotations

import sys
import tempfile
import threading
import time
import tracemalloc
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

import abstain
from abstain.inference import BootstrapWeights, replicates, set_threads
from abstain.metrics import Columns, measure_metrics
from abstain.metrics.registry import METRICS
from abstain.resampling import kernel
from abstain.resampling._kernel import Kernel, use_kernel
from benchmarks._measure import best_times, child_usage, report
from benchmarks.bench_selective import ALL_METRICS, GRID, REPORTED_METRICS, ours, peer

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from abstain.resampling import Statistic

    Floats = NDArray[np.float64]

RUN_FILE = Path(__file__).parent.parent / "tests" / "data" / "examples" / "run_a.json"


def rows(items: int, levels: int | None = None) -> tuple[Floats, Floats]:
    rng = np.random.default_rng(1)
    confidence = rng.random(items) if levels is None else rng.integers(0, levels, items).astype(float)
    return rng.integers(0, 4, items).astype(float), confidence


def make_statistic(items: int, clusters: int, levels: int | None, names: tuple[str, ...]) -> Statistic:
    loss, confidence = rows(items, levels)
    metrics = [METRICS[name] for name in names]
    metrics += [METRICS["risk_at_coverage"].at(float(coverage)) for coverage in GRID]
    cluster = np.repeat(np.arange(clusters), items // clusters)
    return measure_metrics(
        Columns.of(items, loss=loss, confidence=confidence, cluster=cluster, units=clusters), metrics
    )


def weighing(
    items: int,
    clusters: int,
    levels: int | None,
    names: tuple[str, ...],
    resamples: int,
    *,
    numpy: bool = False,
) -> Callable[[], object]:
    """Return a function that only evaluates the resamples, without sorting and percentiles."""
    implementation = Kernel() if numpy else kernel()
    with use_kernel(implementation):
        statistic = make_statistic(items, clusters, levels, names)

    def run() -> object:
        with use_kernel(implementation):
            return replicates([statistic], BootstrapWeights(clusters, resamples, 42))

    return run


def against_scipy() -> None:
    """Compare times per resample, including ranking and percentiles, which are a small part if resamples are many."""
    for label, items, clusters, levels, target, resamples in (
        ("328 items, 41 clusters, continuous", 328, 41, None, 70, (10_000, 100)),
        ("328 items, 41 clusters, 7 levels", 328, 41, 7, 100, (10_000, 100)),
        ("10,000 items without clusters", 10_000, 10_000, None, 30, (2000, 10)),
        ("100,000 items without clusters", 100_000, 100_000, None, 30, (256, 2)),
    ):
        loss, confidence = rows(items, levels)
        cluster = np.repeat(np.arange(clusters), items // clusters)
        mine, theirs = best_times(
            ours(loss, confidence, cluster, REPORTED_METRICS, resamples[0]),
            peer(loss, confidence, resamples[1]),
            clock=time.process_time,
            rounds=15,
        )
        report(f"{label}: scipy.stats.bootstrap", (theirs / resamples[1]) / (mine / resamples[0]), target)


def against_numpy() -> None:
    for label, items, clusters, levels, target, resamples in (
        ("328 items, 41 clusters, continuous", 328, 41, None, 15, (10_000, 400, 40)),
        ("328 items, 41 clusters, 7 levels", 328, 41, 7, None, (10_000, 1024, 40)),
        ("100,000 items without clusters", 100_000, 100_000, None, 20, (256, 2, 12)),
        ("1,000,000 items without clusters", 1_000_000, 1_000_000, None, 20, (128, 1, 12)),
    ):
        for kind, names in (("ci95", REPORTED_METRICS), ("all metrics", ALL_METRICS)):
            mine, twin = best_times(
                weighing(items, clusters, levels, names, resamples[0]),
                weighing(items, clusters, levels, names, resamples[1], numpy=True),
                clock=time.process_time,
                rounds=resamples[2],
            )
            cost = 1e9 * mine / resamples[0] / items
            note = f"{cost:.2f} ns per item and resample"
            ratio = (twin / resamples[1]) / (mine / resamples[0])
            report(f"{label}, {kind}: numpy", ratio, target if kind == "ci95" else None, note)


def against_one_thread() -> None:
    """Compare two threads with one, and with the best that this machine allows: two independent threads."""
    items, resamples = 100_000, 5120
    all_resamples = weighing(items, items, None, REPORTED_METRICS, resamples)
    halves = [weighing(items, items, None, REPORTED_METRICS, resamples // 2) for _ in range(2)]

    def with_threads(count: int) -> Callable[[], object]:
        def run() -> object:
            set_threads(count)
            return all_resamples()

        return run

    def in_independent_threads() -> None:
        set_threads(1)
        threads = [threading.Thread(target=half) for half in halves]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    one, two, independent = best_times(with_threads(1), with_threads(2), in_independent_threads, rounds=10)
    set_threads(1)
    note = f"{one / independent:.1f} with two independent threads"
    report("100,000 items: two threads, elapsed time", one / two, 1.7, note)


def loop_of_fd_shifts(loss: Floats, confidence: Floats) -> float:
    order = np.argsort(confidence)
    ranked, levels = loss[order], confidence[order]
    count, total = len(ranked), sum(ranked)
    coverages, risks = [1.0], [total / count]
    for rank in range(len(ranked) - 1):
        count -= 1
        total -= ranked[rank]
        if levels[rank] != levels[rank + 1]:
            coverages.append(count / len(ranked))
            risks.append(total / count)
    coverages.append(0.0)
    risks.append(risks[-1])
    return -float(np.trapezoid(risks, coverages))


def points() -> None:
    """Measure point estimates of a million rows: time relative to sorting, memory relative to the columns."""
    rng, rows = np.random.default_rng(3), 1_000_000
    confidence, truth = rng.random(rows), np.zeros(rows, np.intp)
    prediction = (rng.random(rows) < 0.5 - 0.4 * confidence).astype(np.intp)
    declined = rng.random(rows) < 0.2
    items = abstain.Items.from_arrays(truth, prediction, abstained=declined, confidence=confidence)

    def evaluate() -> object:
        return abstain.evaluate(items, interval="none")

    evaluating, sorting = best_times(evaluate, lambda: np.argsort(confidence), clock=time.process_time)
    report("a million rows, point estimates: evaluate / numpy.argsort", evaluating / sorting)
    tracemalloc.start()
    evaluate()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    column_bytes = sum(column.nbytes for column in (truth, prediction, confidence, declined))
    report("a million rows, memory: peak / size of the columns", peak / column_bytes, most=10)


def against_fd_shifts() -> None:
    loss, confidence = rows(10_000)
    rng = np.random.default_rng(0)

    def theirs() -> object:
        drawn = rng.integers(0, len(loss), len(loss))
        return loop_of_fd_shifts(loss[drawn], confidence[drawn])

    cluster = np.arange(len(loss))
    mine, peer_time = best_times(
        ours(loss, confidence, cluster, REPORTED_METRICS, 800), theirs, clock=time.process_time
    )
    report("10,000 items: fd-shifts' bootstrap of the AURC, reimplemented", peer_time / (mine / 800))


def whole_processes() -> None:
    with tempfile.TemporaryDirectory() as folder:
        options = ("--mode", "few_shot", "--quiet", "--threads", "1", "-o", f"{folder}/metrics.json")
        program = (sys.executable, "-m", "abstain")
        imports, evaluation, help_text = child_usage(
            (sys.executable, "-c", "import numpy"),
            (*program, "evaluate", str(RUN_FILE), *options),
            (*program, "--help"),
            folder=folder,
        )
    report("`abstain evaluate` of a run file / `import numpy`, CPU", evaluation.cpu / imports.cpu, most=3)
    report("`abstain --help` / `import numpy`, CPU", help_text.cpu / imports.cpu, most=1)


def main() -> None:
    if not kernel().compiled:
        print(f"  there is no compiled kernel to measure: {kernel().reason}")
        return
    set_threads(1)
    against_scipy()
    against_numpy()
    against_fd_shifts()
    points()
    against_one_thread()
    whole_processes()
    set_threads(None)
