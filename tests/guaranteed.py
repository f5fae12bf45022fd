"""Data sets for risk guarantees: answers in clusters, with some errors and an informative confidence."""

from __future__ import annotations

from typing import Any

import numpy as np

from abstain import Items


def drawn(
    clusters: int = 120, size: int = 6, *, seed: int = 0, base: float = -2.6, effect: float = 0.7
) -> dict[str, Any]:
    """Return the columns of a data set; clusters of different seeds have different names."""
    generator = np.random.default_rng(seed)
    cluster = np.repeat(np.arange(clusters), size)
    difficulty = base + 1.5 * generator.standard_normal(len(cluster))
    shared = effect * generator.standard_normal(clusters)[cluster]
    wrong = generator.random(len(cluster)) < 1.0 / (1.0 + np.exp(-difficulty - shared))
    sure = 1.0 / (1.0 + np.exp(difficulty - 0.5 * generator.standard_normal(len(cluster))))
    truth = generator.integers(0, 2, len(cluster))
    return {
        "patient": [f"s{seed}-{number}" for number in cluster.tolist()],
        "site": np.array(["north", "south"])[cluster % 2].tolist(),
        "label": truth.tolist(),
        "pred": np.where(wrong, 1 - truth, truth).tolist(),
        "prob": sure.round(4).tolist(),
    }


def promised_items(clusters: int = 120, size: int = 6, **options: Any) -> Items:
    """Return such a data set as items in clusters."""
    columns = drawn(clusters, size, **options)
    return Items.from_arrays(
        columns["label"],
        columns["pred"],
        confidence=columns["prob"],
        cluster=columns["patient"],
        metadata={"site": columns["site"]},
    )
