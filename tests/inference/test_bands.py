from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from abstain.errors import ArgumentError
from abstain.inference import Draws, band, estimates, replicates
from abstain.metrics import Columns
from abstain.metrics.curves import threshold_measure

if TYPE_CHECKING:
    from abstain.tally import Measure


def measure(rows: int = 60, clusters: int = 12, seed: int = 0) -> Measure:
    rng = np.random.default_rng(seed)
    confidence = rng.integers(0, 9, rows).astype(float)
    cluster = rng.integers(0, clusters, rows)
    cluster[:clusters] = np.arange(clusters)
    columns = Columns.of(
        rows,
        loss=rng.random(rows),
        confidence=confidence,
        answered=rng.random(rows) < 0.8,
        cluster=cluster,
        units=clusters,
    )
    return threshold_measure(columns, np.unique(confidence)[::-1])


@pytest.mark.parametrize(("resamples", "level"), [(500, 0.95), (37, 0.8), (2, 0.95)])
def test_a_band_is_the_intervals_of_its_columns(resamples: int, level: float) -> None:
    some = measure()
    draws = Draws(some.units, resamples, 42)
    found = estimates(some.points, replicates([some], draws)[0], draws, n=60, level=level)
    ends = band(some, draws, level=level)
    assert ends.low == pytest.approx([one.low for one in found], rel=1e-6)
    assert ends.high == pytest.approx([one.high for one in found], rel=1e-6)


def test_replicates_without_a_value_are_dropped() -> None:
    # The most confident row is alone in its cluster: where that is not drawn, nothing is accepted there.
    loss, confidence, cluster = np.array([0.5, 1.0, 0.0]), np.array([3.0, 2.0, 1.0]), np.arange(3)
    columns = Columns.of(3, loss=loss, confidence=confidence, cluster=cluster, units=3)
    some = threshold_measure(columns, confidence)
    ends = band(some, Draws(3, 400, 1))
    assert (ends.low[0], ends.high[0]) == (0.5, 0.5)


def test_without_resamples_there_is_no_band() -> None:
    some = measure()
    ends = band(some, Draws(some.units, 0, 42))
    assert np.isnan(ends.low).all()
    assert np.isnan(ends.high).all()


def test_a_level_is_a_share() -> None:
    some = measure()
    with pytest.raises(ArgumentError, match="level must fulfil 0 < level < 1, got 95"):
        band(some, Draws(some.units, 5, 42), level=95)
