"""Weighted shares stay within 0 and 1 to the last digit, so that whatever is made of them is defined."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from abstain.evaluation.conformal import evaluate_intervals, evaluate_sets
from abstain.inference import Trials, coverage_verdict


@pytest.mark.parametrize("tiny", [0.0, 1e-300, 1e-20, 1e-16, 0.1])
def test_a_share_of_weights_never_leaves_the_unit_interval(tiny: float) -> None:
    rng = np.random.default_rng(0)
    for _ in range(200):
        rows = int(rng.integers(3, 40))
        weight, hit = rng.random(rows), np.ones(rows, np.bool_)
        weight[0], hit[0] = tiny, False
        trials, missed = Trials.of_rows(hit, weight), Trials.of_rows(~hit, weight)
        assert 0.0 <= missed.share <= trials.share <= 1.0
        assert coverage_verdict(trials, 0.8).estimate.value == trials.share
    agreed = Trials.of_rows(hit | True, weight)
    assert agreed.share == 1.0


@pytest.mark.parametrize("seed", range(20))
def test_random_tables_with_strata_that_are_fully_covered(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = int(rng.integers(4, 50))
    truth, label, site = rng.normal(size=rows), rng.integers(0, 3, rows), rng.integers(0, 3, rows)
    weight = rng.exponential(10.0 ** int(rng.integers(-8, 8)), rows)
    reach = rng.exponential(1.0, (2, rows)) + (site > 0) * 5.0
    options: dict[str, Any] = {
        "claim": 0.8,
        "groups": {"site": site},
        "sample_weight": weight,
        "resamples": 5,
    }
    bounds = np.stack([truth - reach[0], truth + reach[1] - 2.0 * (site == 0)], axis=1)
    bounds[:, 1] = np.maximum(bounds[:, 0], bounds[:, 1])
    members = rng.random((rows, 3)) < 0.5
    members[np.arange(rows), label] |= site > 0
    for result in (
        evaluate_intervals(truth, bounds, **options),
        evaluate_sets(label, members, **options),
    ):
        coverage = result.claims[0]["coverage"].value
        assert 0.0 <= coverage <= 1.0
