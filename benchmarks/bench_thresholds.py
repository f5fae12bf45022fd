"""Choosing a threshold with a promise against sorting the rows by their confidence, at 1e6 rows.

Every row has to be ranked, so that sorting is what it cannot cost less than; the tests themselves should cost little
beside it. Betting plays through every cluster at every step, and is measured beside.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from abstain import Items, choose_threshold
from benchmarks._measure import best_times, report

if TYPE_CHECKING:
    from numpy.typing import NDArray

ROWS, CLUSTERS = 1_000_000, 50_000
MOST = 6.0


def drawn(*, clustered: bool) -> tuple[Items, NDArray[np.float64]]:
    generator = np.random.default_rng(0)
    sure = generator.random(ROWS)
    wrong = generator.random(ROWS) < 0.3 * (1.0 - sure) ** 2
    cluster = generator.integers(0, CLUSTERS, ROWS) if clustered else None
    items = Items.from_arrays(np.ones(ROWS), np.where(wrong, 0, 1), confidence=sure, cluster=cluster)
    # Numbered once, whoever asks for it.
    assert len(items.evaluated.cluster_ids) > 1
    return items, sure


def main() -> None:
    for clustered, name in ((False, "independent rows, exact binomial"), (True, "50,000 clusters, t test")):
        items, sure = drawn(clustered=clustered)
        sorting, choosing = best_times(
            lambda sure=sure: np.argsort(sure, kind="stable"),  # type: ignore[misc]
            lambda items=items: choose_threshold(items),  # type: ignore[misc]
            rounds=3,
        )
        report(f"1e6 rows, {name}, over sorting them", choosing / sorting, most=MOST)
    items, sure = drawn(clustered=True)
    sorting, betting = best_times(
        lambda: np.argsort(sure, kind="stable"), lambda: choose_threshold(items, finite_sample=True), rounds=2
    )
    report("1e6 rows, 50,000 clusters, betting, over sorting them", betting / sorting)


if __name__ == "__main__":
    main()
