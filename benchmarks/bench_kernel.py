"""The compiled kernel against scipy's bootstrap, fd-shifts' own, and its twin in numpy; its threads; whole processes.

Ours are always the metrics of the artifact's ci95 (Cmax, both areas, both truncated areas, nine risks at coverages),
and where it is said all selective metrics. Peers compute the AURC alone. CPU time of one thread unless it is said, the
best of many short runs, because a busy machine leaves few of them alone. fd-shifts does not install beside current
releases, so its algorithm stands here, written out anew: resample rows, sort, walk from the least confident item to the
most in a loop of Python, integrate by trapezoids.
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
from benchmarks.bench_selective import ARTIFACT, EVERYTHING, GRID, ours, peer

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


def measure(items: int, clusters: int, levels: int | None, names: tuple[str, ...]) -> Statistic:
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
    """Return what weighs the resamples alone: no sorting, no percentiles."""
    chosen = Kernel() if numpy else kernel()
    with use_kernel(chosen):
        made = measure(items, clusters, levels, names)

    def run() -> object:
        with use_kernel(chosen):
            return replicates([made], BootstrapWeights(clusters, resamples, 42))

    return run


def against_scipy() -> None:
    """Per resample, ranking and percentiles included; ours are many enough for those not to be most of it."""
    for what, items, clusters, levels, wanted, resamples in (
        ("328 items, 41 clusters, continuous", 328, 41, None, 70, (10_000, 100)),
        ("328 items, 41 clusters, 7 levels", 328, 41, 7, 100, (10_000, 100)),
        ("10,000 items of their own", 10_000, 10_000, None, 30, (2000, 10)),
        ("100,000 items of their own", 100_000, 100_000, None, 30, (256, 2)),
    ):
        loss, confidence = rows(items, levels)
        cluster = np.repeat(np.arange(clusters), items // clusters)
        mine, theirs = best_times(
            ours(loss, confidence, cluster, ARTIFACT, resamples[0]),
            peer(loss, confidence, resamples[1]),
            clock=time.process_time,
            rounds=15,
        )
        report(f"{what}: scipy.stats.bootstrap", (theirs / resamples[1]) / (mine / resamples[0]), wanted)


def against_numpy() -> None:
    for what, items, clusters, levels, wanted, resamples in (
        ("328 items, 41 clusters, continuous", 328, 41, None, 15, (10_000, 400, 40)),
        ("328 items, 41 clusters, 7 levels", 328, 41, 7, None, (10_000, 1024, 40)),
        ("100,000 items of their own", 100_000, 100_000, None, 20, (256, 2, 12)),
        ("1,000,000 items of their own", 1_000_000, 1_000_000, None, 20, (128, 1, 12)),
    ):
        for kind, names in (("ci95", ARTIFACT), ("all metrics", EVERYTHING)):
            mine, twin = best_times(
                weighing(items, clusters, levels, names, resamples[0]),
                weighing(items, clusters, levels, names, resamples[1], numpy=True),
                clock=time.process_time,
                rounds=resamples[2],
            )
            cost = 1e9 * mine / resamples[0] / items
            note = f"{cost:.2f} ns per item and resample"
            ratio = (twin / resamples[1]) / (mine / resamples[0])
            report(f"{what}, {kind}: numpy", ratio, wanted if kind == "ci95" else None, note)


def threads() -> None:
    """Two threads, and what this machine has to give: the same work in two threads that share nothing."""
    items, resamples = 100_000, 5120
    whole = weighing(items, items, None, ARTIFACT, resamples)
    halves = [weighing(items, items, None, ARTIFACT, resamples // 2) for _ in range(2)]

    def with_threads(count: int) -> Callable[[], object]:
        def run() -> object:
            set_threads(count)
            return whole()

        return run

    def apart() -> None:
        set_threads(1)
        working = [threading.Thread(target=half) for half in halves]
        for thread in working:
            thread.start()
        for thread in working:
            thread.join()

    one, two, most = best_times(with_threads(1), with_threads(2), apart, rounds=10)
    set_threads(1)
    note = f"{one / most:.1f} by two threads that share nothing"
    report("100,000 items: two threads, elapsed time", one / two, 1.7, note)


def loop_of_fd_shifts(loss: Floats, confidence: Floats) -> float:
    order = np.argsort(confidence)
    ranked, levels = loss[order], confidence[order]
    count, total = len(ranked), sum(ranked)
    coverages, risks = [1.0], [total / count]
    for place in range(len(ranked) - 1):
        count -= 1
        total -= ranked[place]
        if levels[place] != levels[place + 1]:
            coverages.append(count / len(ranked))
            risks.append(total / count)
    coverages.append(0.0)
    risks.append(risks[-1])
    return -float(np.trapezoid(risks, coverages))


def points() -> None:
    """A million rows without any interval: time in sorting them, memory in the columns that were read."""
    rng, rows = np.random.default_rng(3), 1_000_000
    sure, truth = rng.random(rows), np.zeros(rows, np.intp)
    said = (rng.random(rows) < 0.5 - 0.4 * sure).astype(np.intp)
    declined = rng.random(rows) < 0.2
    items = abstain.Items.from_arrays(truth, said, abstained=declined, confidence=sure)

    def evaluated() -> object:
        return abstain.evaluate(items, interval="none")

    judging, sorting = best_times(evaluated, lambda: np.argsort(sure), clock=time.process_time)
    report("a million rows, point estimates: in numpy.argsort of them", judging / sorting)
    tracemalloc.start()
    evaluated()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    read = sum(column.nbytes for column in (truth, said, sure, declined))
    report("a million rows, memory: in the columns that were read", peak / read, most=10)


def against_fd_shifts() -> None:
    loss, confidence = rows(10_000)
    rng = np.random.default_rng(0)

    def theirs() -> object:
        drawn = rng.integers(0, len(loss), len(loss))
        return loop_of_fd_shifts(loss[drawn], confidence[drawn])

    cluster = np.arange(len(loss))
    mine, peer_time = best_times(
        ours(loss, confidence, cluster, ARTIFACT, 800), theirs, clock=time.process_time
    )
    report("10,000 items: fd-shifts' bootstrap of the AURC, written out", peer_time / (mine / 800))


def whole_processes() -> None:
    with tempfile.TemporaryDirectory() as folder:
        flags = ("--mode", "few_shot", "--quiet", "--threads", "1", "-o", f"{folder}/metrics.json")
        program = (sys.executable, "-m", "abstain")
        imports, evaluation, help_text = child_usage(
            (sys.executable, "-c", "import numpy"),
            (*program, "evaluate", str(RUN_FILE), *flags),
            (*program, "--help"),
            folder=folder,
        )
    report("`abstain evaluate` of a run file, in `import numpy`, CPU", evaluation.cpu / imports.cpu, most=3)
    report("`abstain --help`, in `import numpy`, CPU", help_text.cpu / imports.cpu, most=1)


def main() -> None:
    if not kernel().compiled:
        print(f"  there is no compiled kernel to measure: {kernel().reason}")
        return
    set_threads(1)
    against_scipy()
    against_numpy()
    against_fd_shifts()
    points()
    threads()
    whole_processes()
    set_threads(None)
