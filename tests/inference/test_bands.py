from __future__ import annotations

import numpy as np
import pytest

from abstain.errors import ArgumentError
from abstain.inference import Draws, band, estimates, points, replicates
from abstain.metrics._working_points import WorkingPointsPlan


def plan(rows: int = 60, clusters: int = 12, seed: int = 0) -> WorkingPointsPlan:
    rng = np.random.default_rng(seed)
    confidence = rng.integers(0, 9, rows).astype(float)
    cluster = rng.integers(0, clusters, rows)
    cluster[:clusters] = np.arange(clusters)
    thresholds = np.unique(confidence)[::-1]
    return WorkingPointsPlan.build(rng.random(rows), confidence, rng.random(rows) < 0.8, cluster, thresholds)


@pytest.mark.parametrize(("resamples", "level"), [(500, 0.95), (37, 0.8), (2, 0.95)])
def test_a_band_is_the_intervals_of_its_columns(resamples: int, level: float) -> None:
    some = plan()
    draws = Draws(some.clusters, resamples, 42)
    found = estimates(points(some), replicates([some], draws)[0], draws, n=60, level=level)
    ends = band(some, draws, level=level)
    assert ends.low == pytest.approx([one.low for one in found], rel=1e-6)
    assert ends.high == pytest.approx([one.high for one in found], rel=1e-6)


def test_replicates_without_a_value_are_dropped() -> None:
    # The most confident row is alone in its cluster: where that is not drawn, nothing is accepted there.
    loss, confidence, cluster = np.array([0.5, 1.0, 0.0]), np.array([3.0, 2.0, 1.0]), np.arange(3)
    some = WorkingPointsPlan.build(loss, confidence, np.ones(3, bool), cluster, confidence)
    ends = band(some, Draws(3, 400, 1))
    assert (ends.low[0], ends.high[0]) == (0.5, 0.5)


def test_without_resamples_there_is_no_band() -> None:
    some = plan()
    ends = band(some, Draws(some.clusters, 0, 42))
    assert np.isnan(ends.low).all()
    assert np.isnan(ends.high).all()


def test_a_level_is_a_share() -> None:
    some = plan()
    with pytest.raises(ArgumentError, match="level must fulfil 0 < level < 1, got 95"):
        band(some, Draws(some.clusters, 5, 42), level=95)
