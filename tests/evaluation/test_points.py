from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.stats

from abstain import Items, evaluate
from abstain.inference import Intervals
from abstain.inference.points import points_of
from abstain.metrics import Columns
from abstain.metrics.curves import threshold_statistic


def some_columns(rows: int = 60, clusters: int = 12, seed: int = 0) -> Columns:
    rng = np.random.default_rng(seed)
    cluster = rng.integers(0, clusters, rows)
    cluster[:clusters] = np.arange(clusters)
    return Columns.of(
        rows,
        loss=rng.random(rows),
        confidence=rng.integers(0, 9, rows).astype(float),
        answered=rng.random(rows) < 0.8,
        cluster=cluster,
        units=clusters,
        largest_loss=1.0,
    )


def thresholds(columns: Columns) -> Any:
    return np.unique(columns.confidence[columns.answered])[::-1]


@pytest.mark.parametrize("resamples", [500, 37, 2])
def test_percentile_points_are_the_percentiles_of_their_replicates(resamples: int) -> None:
    columns = some_columns()
    intervals = Intervals.of(np.arange(12), interval="percentile", resamples=resamples, level=0.8)
    found = points_of(columns, thresholds(columns), intervals)
    statistic = threshold_statistic(columns, thresholds(columns))
    drawn = intervals.replicate([statistic])[statistic].drawn
    expected = np.nanquantile(drawn, [0.1, 0.9], axis=0).reshape(2, 3, -1)
    assert found.low == pytest.approx(expected[0])
    assert found.high == pytest.approx(expected[1])


def test_replicates_without_a_value_are_dropped() -> None:
    # The most confident row is the only one of its cluster, so without this cluster no row reaches the threshold.
    loss, confidence, cluster = np.array([0.5, 1.0, 0.0]), np.array([3.0, 2.0, 1.0]), np.arange(3)
    columns = Columns.of(3, loss=loss, confidence=confidence, cluster=cluster, units=3, largest_loss=1.0)
    found = points_of(columns, confidence, Intervals.of(cluster, interval="percentile", resamples=400))
    assert (found.low[0, 0], found.high[0, 0]) == (0.5, 0.5)


def test_without_intervals_there_is_no_band() -> None:
    columns = some_columns()
    one_unit = columns.in_units(np.zeros(len(columns), np.intp), 1)
    found = points_of(one_unit, thresholds(columns), Intervals.of(np.arange(12), interval="none"))
    assert np.isnan(found.low).all()
    assert np.isnan(found.high).all()
    assert not np.isnan(found.value).any()


def test_points_of_some_thresholds_are_those_of_all() -> None:
    columns = some_columns()
    every = thresholds(columns)
    intervals = Intervals.of(np.arange(12))
    some, all_ = points_of(columns, every[1:4], intervals), points_of(columns, every, intervals)
    for name in ("value", "low", "high"):
        assert getattr(some, name) == pytest.approx(getattr(all_, name)[:, 1:4])


def test_points_without_errors_count_each_cluster_as_one_trial() -> None:
    """With k clusters of one right answer each, the upper end is t^2 / (k + t^2); one cluster has no interval."""
    columns = Columns.of(
        12,
        loss=np.zeros(12),
        confidence=np.arange(12.0),
        cluster=np.arange(12),
        units=12,
        largest_loss=1.0,
    )
    found = points_of(columns, np.arange(12.0)[::-1], Intervals.of(np.arange(12)))
    assert np.isnan(found.high[0, 0])
    squares = scipy.stats.t.ppf(0.975, np.arange(1, 12)) ** 2
    assert found.low[0, 1:] == pytest.approx(np.zeros(11))
    assert found.high[0, 1:] == pytest.approx(squares / (np.arange(2, 13) + squares))


def test_simultaneous_intervals_are_wider() -> None:
    columns = some_columns()
    intervals = Intervals.of(np.arange(12))
    each = points_of(columns, thresholds(columns), intervals)
    together = points_of(columns, thresholds(columns), intervals, simultaneous=True)
    assert (together.high - together.low >= each.high - each.low).all()
    assert (together.high[0] - together.low[0] > each.high[0] - each.low[0]).any()


def tied(*, levels: int, seed: int = 3) -> Items:
    rng = np.random.default_rng(seed)
    n = 400
    sure = rng.random(n)
    wrong = rng.random(n) < 0.6 - 0.5 * sure
    confidence = np.ceil(sure * levels) / levels if levels else sure
    return Items.from_arrays(
        np.zeros(n, int),
        wrong.astype(int),
        confidence=confidence,
        cluster=np.arange(n) // 10,
        item=np.arange(n),
    )


def test_a_coverage_between_two_steps_has_the_risk_of_either() -> None:
    """With two levels, half of the items reach the higher one: a coverage of 0.5 falls on one step or on the other."""
    result = evaluate(tied(levels=2), coverage_grid=[0.5])
    found = result["confidence"].risk_at_coverage[0.5]
    points = result.profile().points["confidence"]
    assert "steps" in found.method
    assert found.low == pytest.approx(points.selective_low[0], abs=1e-3)
    assert found.high == pytest.approx(points.selective_high[1], abs=1e-3)
    smooth = evaluate(tied(levels=0), coverage_grid=[0.5])["confidence"].risk_at_coverage[0.5]
    assert "steps" not in smooth.method


def test_the_interval_of_a_coverage_at_a_risk_goes_from_sure_to_possible_coverages() -> None:
    result = evaluate(tied(levels=0), metrics="coverage_at_risk@0.3", selective=True)
    found = result.only.estimate("coverage_at_risk@0.3")
    points = result.profile().points["confidence"]
    sure = points.coverage[points.selective_high <= 0.3]
    possible = points.coverage[points.selective_low <= 0.3]
    assert found.low <= found.value <= found.high
    assert found.low == pytest.approx(sure.max(initial=0.0), abs=0.1)
    assert found.high == pytest.approx(possible.max(initial=0.0), abs=0.1)
