"""Choosing a threshold with a risk guarantee for 1e6 rows, relative to sorting the rows by confidence.

Every row has to be ranked, so sorting is a lower limit, and the tests should add little to it. The test over
clusters processes every cluster at every step, so it has no target.
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


def make_items(*, clustered: bool) -> tuple[Items, NDArray[np.float64]]:
    generator = np.random.default_rng(0)
    confidence = generator.random(ROWS)
    wrong = generator.random(ROWS) < 0.3 * (1.0 - confidence) ** 2
    cluster = generator.integers(0, CLUSTERS, ROWS) if clustered else None
    items = Items.from_arrays(np.ones(ROWS), np.where(wrong, 0, 1), confidence=confidence, cluster=cluster)
    # The clusters are numbered here, outside the timed function.
    assert len(items.evaluated.cluster_ids) > 1
    return items, confidence


def main() -> None:
    for clustered, name in ((False, "independent rows, exact binomial"), (True, "50,000 clusters")):
        items, confidence = make_items(clustered=clustered)
        sorting, choosing = best_times(
            lambda confidence=confidence: np.argsort(confidence, kind="stable"),  # type: ignore[misc]
            lambda items=items: choose_threshold(items),  # type: ignore[misc]
            rounds=3,
        )
        report(
            f"1e6 rows, {name}: choose_threshold / sorting",
            choosing / sorting,
            most=None if clustered else MOST,
        )


if __name__ == "__main__":
    main()
