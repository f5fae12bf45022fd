"""The calibration error of a million rows against MAPIE, and its cluster bootstrap against `scipy.stats.bootstrap`.

MAPIE makes one bin fewer than its argument, so it is called with one more. scipy gets a numpy function that computes
only the calibration error, as a user would write it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from mapie.metrics.calibration import expected_calibration_error as mapie_error
from scipy import stats

from abstain.inference.calibration import calibration_estimates
from abstain.metrics.calibration import expected_calibration_error
from benchmarks._measure import best_times, report

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

BINS = 15
ROWS, CLUSTERS = 328, 41
RESAMPLES, PEER_RESAMPLES = 10_000, 100


def peer_statistic(outcome: Floats, confidence: Floats) -> float:
    bin_ = np.minimum((confidence * BINS).astype(int), BINS - 1)
    gap = np.bincount(bin_, weights=outcome - confidence, minlength=BINS)
    return float(np.abs(gap).sum() / len(outcome))


def million() -> None:
    rng = np.random.default_rng(0)
    confidence = rng.random(1_000_000)
    outcome = (rng.random(1_000_000) < confidence).astype(int)
    ours, theirs = best_times(
        lambda: expected_calibration_error(outcome, confidence, bins=BINS),
        lambda: mapie_error(outcome, confidence, num_bins=BINS + 1, split_strategy="uniform"),
    )
    report(f"ECE with {BINS} bins, a million rows, against MAPIE", theirs / ours, 10)


def bootstrap() -> None:
    rng = np.random.default_rng(1)
    confidence = rng.random(ROWS)
    outcome = (rng.random(ROWS) < confidence).astype(float)
    cluster = np.repeat(np.arange(CLUSTERS), ROWS // CLUSTERS)
    draw = np.random.default_rng(2)
    ours, single, theirs = best_times(
        lambda: calibration_estimates(outcome, confidence, cluster=cluster, resamples=RESAMPLES),
        lambda: calibration_estimates(outcome, confidence, resamples=RESAMPLES),
        lambda: stats.bootstrap(
            (outcome, confidence),
            peer_statistic,
            paired=True,
            vectorized=False,
            n_resamples=PEER_RESAMPLES,
            rng=draw,
        ),
    )
    label = f"{RESAMPLES:,} resamples of ECE, Brier and NLL, {ROWS} rows"
    for clusters, time in ((CLUSTERS, ours), (ROWS, single)):
        print(f"  {label}, {clusters} clusters: {time / theirs:.1f} times")
    print(
        f"      the time of {PEER_RESAMPLES} resamples of only the ECE by scipy.stats.bootstrap (target: below 10)"
    )


def main() -> None:
    million()
    bootstrap()
