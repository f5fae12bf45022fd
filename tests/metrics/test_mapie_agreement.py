"""MAPIE gives the same numbers if its definitions agree; otherwise a test here shows the difference."""

from __future__ import annotations

import numpy as np
import pytest
from mapie.metrics import classification as mapie_sets
from mapie.metrics import regression as mapie_intervals

from abstain.metrics import intervals, sets


def _intervals(seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    rows, levels = int(rng.integers(6, 80)), int(rng.integers(1, 5))
    if seed % 2:
        truth = rng.normal(size=rows)
        low = truth[:, None] + rng.normal(-1.0, 1.0, (rows, levels))
        return truth, np.stack([low, low + rng.exponential(2.0, (rows, levels))], axis=1)
    truth = rng.integers(0, 9, rows).astype(float)  # ties everywhere: truths on bounds, equal widths
    low = truth[:, None] + rng.integers(-4, 2, (rows, levels))
    return truth, np.stack([low, low + rng.integers(0, 6, (rows, levels))], axis=1)


def _sets(seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    rows, classes, levels = int(rng.integers(1, 80)), int(rng.integers(2, 7)), int(rng.integers(1, 5))
    return rng.integers(0, classes, rows), rng.random((rows, classes, levels)) < rng.uniform(0.1, 0.9)


@pytest.mark.parametrize("seed", range(30))
def test_intervals(seed: int) -> None:
    truth, bounds = _intervals(seed)
    assert intervals.interval_coverage(truth, bounds) == pytest.approx(
        mapie_intervals.regression_coverage_score(truth, bounds), rel=1e-14
    )
    assert intervals.interval_mean_width(bounds) == pytest.approx(
        mapie_intervals.regression_mean_width_score(bounds), rel=1e-13
    )
    first = bounds[:, :, :1]
    assert intervals.winkler_score(truth, first[:, :, 0], level=0.8) == pytest.approx(
        mapie_intervals.regression_mwi_score(truth, first, 0.8), rel=1e-12
    )
    assert intervals.interval_coverage_width_criterion(
        truth, first[:, :, 0], eta=3.0, level=0.8
    ) == pytest.approx(
        mapie_intervals.coverage_width_based(truth, first[:, 0, 0], first[:, 1, 0], 3.0, 0.8), rel=1e-12
    )


@pytest.mark.parametrize("seed", range(30))
def test_hsic(seed: int) -> None:
    truth, bounds = _intervals(seed)
    # MAPIE takes the root of a trace that rounding may have made negative; the squares can be compared safely.
    with np.errstate(invalid="ignore"):
        peer = mapie_intervals.hsic(truth, bounds, kernel_sizes=(1.5, 0.5))
    ours = np.asarray(intervals.interval_hsic(truth, bounds, kernel_sizes=(1.5, 0.5)))
    assert ours**2 == pytest.approx(np.where(np.isnan(peer), 0.0, peer) ** 2, abs=1e-12)
    large = peer > 1e-3
    assert ours[large] == pytest.approx(peer[large], abs=1e-9)


@pytest.mark.parametrize("seed", range(1, 31, 2))
@pytest.mark.parametrize("bins", [1, 2, 3, 5])
def test_size_stratified_intervals(seed: int, bins: int) -> None:
    truth, bounds = _intervals(seed)
    ours = intervals.interval_size_stratified_coverage(truth, bounds, bins=bins)
    assert ours.coverage == pytest.approx(
        mapie_intervals.regression_ssc(truth, bounds, num_bins=bins), rel=1e-12
    )
    assert ours.score == pytest.approx(
        mapie_intervals.regression_ssc_score(truth, bounds, num_bins=bins), rel=1e-12
    )


def test_ties_within_a_stratum_agree_and_ties_between_strata_are_divided() -> None:
    truth = np.array([0.0, 9, 0, 0, 9, 0])
    within = np.column_stack([np.zeros(6), [1.0, 1, 2, 2, 3, 4]])[:, :, None]
    peer = mapie_intervals.regression_ssc(truth, within, num_bins=3)
    assert intervals.interval_size_stratified_coverage(truth, within, bins=3).coverage == pytest.approx(peer)
    # Between strata MAPIE depends on the order of the rows; abstain returns the mean over all orders.
    across = np.column_stack([np.zeros(4), [1.0, 2, 2, 3]])[:, :, None]
    one = mapie_intervals.regression_ssc(np.array([0.0, 9, 0, 0]), across, num_bins=2)
    other = mapie_intervals.regression_ssc(np.array([0.0, 0, 9, 0]), across, num_bins=2)
    assert one.tolist() != other.tolist()
    ours = intervals.interval_size_stratified_coverage(np.array([0.0, 9, 0, 0]), across, bins=2)
    assert ours.coverage == pytest.approx((one + other) / 2)


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.filterwarnings("ignore:Mean of empty slice:RuntimeWarning")
@pytest.mark.filterwarnings("ignore:invalid value encountered in divide:RuntimeWarning")
def test_sets(seed: int) -> None:
    truth, members = _sets(seed)
    assert sets.set_coverage(truth, members) == pytest.approx(
        mapie_sets.classification_coverage_score(truth, members), rel=1e-14
    )
    assert sets.set_mean_width(members) == pytest.approx(mapie_sets.classification_mean_width_score(members))
    ours = sets.set_size_stratified_coverage(truth, members)
    peer = mapie_sets.classification_ssc(truth, members)
    assert ours.coverage == pytest.approx(peer, nan_ok=True)
    assert ours.score == pytest.approx(mapie_sets.classification_ssc_score(truth, members))
    sizes = members.sum(axis=1)
    if all(
        len(np.unique(column)) > 2 for column in sizes.T
    ):  # MAPIE refuses bins that are not fewer than sizes
        two = sets.set_size_stratified_coverage(truth, members, bins=2)
        assert two.coverage == pytest.approx(
            mapie_sets.classification_ssc(truth, members, num_bins=2), nan_ok=True
        )


def test_crossed_and_infinite_bounds_differ_intentionally() -> None:
    crossed = np.array([[[2.0], [0.0]], [[0.0], [1.0]]])
    assert mapie_intervals.regression_mean_width_score(crossed).tolist() == [1.5]  # it takes |high - low|
    with pytest.raises(ValueError, match="crossed at row 0"):
        intervals.interval_mean_width(crossed)
    infinite = np.array([[[0.0], [np.inf]]])
    with pytest.raises(ValueError, match="infinite values"):
        mapie_intervals.regression_coverage_score(np.array([1.0]), infinite)
    assert intervals.interval_coverage([1.0], infinite) == 1.0
