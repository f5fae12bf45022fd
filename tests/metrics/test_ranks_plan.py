"""The ranks plan at any weights equals the plan of copied rows, whichever way it holds its ladders."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from abstain.metrics import _ladder
from abstain.metrics._areas import CONVENTIONS
from abstain.metrics._ranks import FIGURES, RanksPlan

if TYPE_CHECKING:
    from numpy.typing import NDArray

GRID = (0.1, 0.35, 0.5, 0.9)


@pytest.mark.parametrize("levels", [3, 12, 1_000_000])
@pytest.mark.parametrize("convention", CONVENTIONS)
@pytest.mark.parametrize("dense", [True, False])
def test_weights_of_clusters_are_copies_of_their_rows(
    levels: int, convention: str, dense: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_ladder, "_DENSE_LIMIT", 1 << 23 if dense else 0)
    rng = np.random.default_rng(levels)
    clusters, size = 12, 5
    cluster = np.repeat(np.arange(clusters), size)
    loss = rng.choice([0.0, 1 / 3, 1.0, 2.5], clusters * size)
    confidence = rng.integers(0, levels, clusters * size).astype(float)
    answered = rng.random(clusters * size) < 0.7

    def build(rows: NDArray[np.intp], *, clustered: bool = False) -> RanksPlan:
        return RanksPlan.build(
            loss[rows],
            confidence[rows],
            answered[rows],
            cluster=cluster[rows] if clustered else None,
            area_coverage=0.4,
            coverage_grid=GRID,
            convention=convention,
        )

    plan = build(np.arange(clusters * size), clustered=True)
    assert (plan.by_confidence.tables is not None) == dense
    weights = rng.integers(0, 4, (20, clusters)).astype(float)
    values = plan(weights)
    for weight, found in zip(weights, values, strict=True):
        copies = np.concatenate(
            [np.tile(np.flatnonzero(cluster == number), int(times)) for number, times in enumerate(weight)]
        )
        alone = build(copies)(np.ones((1, 1)))[0]
        np.testing.assert_allclose(found, alone, atol=1e-12, rtol=0)


def test_columns_are_named_in_order() -> None:
    plan = RanksPlan.build(
        np.ones(1), np.ones(1), np.ones(1, bool), figures=("aurc", "cmax"), coverage_grid=(0.5,)
    )
    assert plan.names == ("aurc", "cmax", "risk_at_coverage[0.5]")
    assert plan(np.ones((1, 1))).tolist() == [[1.0, 1.0, 1.0]]
    assert set(FIGURES) >= set(plan.figures)


def test_a_cluster_without_answers_counts_in_n() -> None:
    plan = RanksPlan.build(
        np.array([1.0, np.nan]), np.array([1.0, np.nan]), np.array([True, False]), cluster=np.array([0, 1])
    )
    cmax = plan.names.index("cmax")
    assert plan(np.array([[1.0, 1.0], [1.0, 3.0], [0.0, 2.0]]))[:, cmax].tolist() == [0.5, 0.25, 0.0]


def test_long_convex_stretches_do_not_slow_the_hull() -> None:
    # One early error, then tens of thousands of right answers, then errors again: risks fall as 1/k and bend up.
    n = 60_000
    loss = np.zeros(n)
    loss[0] = 1.0
    loss[-n // 3 :: 7] = 1.0
    plan = RanksPlan.build(
        loss, -np.arange(n, dtype=float), np.ones(n, bool), figures=("aurc", "aurc_achievable")
    )
    aurc, hull = plan(np.ones((1, 1)))[0]
    assert 0 < hull < aurc
