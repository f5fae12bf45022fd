"""The statements about MAPIE in our definitions: each is tested, so that a new MAPIE release cannot make one untrue."""

from __future__ import annotations

import numpy as np
import pytest
from mapie.metrics import calibration as mapie
from mapie.metrics import regression as mapie_intervals

from abstain.metrics import calibration, intervals

RNG = np.random.default_rng(3)
SCORES = np.round(RNG.random(60), 2)
RIGHT = (RNG.random(60) < SCORES).astype(int)


def test_split_arrays_depend_on_the_order_of_rows() -> None:
    scores, settings = np.round(SCORES, 1), {"num_bins": 7, "split_strategy": "array split"}
    there = mapie.expected_calibration_error(RIGHT, scores, **settings)
    turned = mapie.expected_calibration_error(RIGHT[::-1], scores[::-1], **settings)
    assert there != pytest.approx(turned)
    ours = [
        calibration.expected_calibration_error(RIGHT[::way], scores[::way], bins=7, strategy="quantile")
        for way in (1, -1)
    ]
    assert ours[0] == pytest.approx(ours[1], abs=1e-15)


def test_mapie_orders_tied_scores_at_random() -> None:
    scores = np.full(40, 0.5)
    right = np.r_[np.ones(20), np.zeros(20)]
    differences = [mapie.cumulative_differences(right, scores, random_state=seed) for seed in (1, 2)]
    assert np.abs(differences[0] - differences[1]).max() > 0.01
    assert len(calibration.cumulative_differences(right, scores).difference) == 2


def test_kuipers_range_does_not_include_the_start() -> None:
    right, scores = np.ones(4), np.array([0.5, 0.6, 0.7, 0.8])
    assert mapie.kuiper_statistic(right, scores) < calibration.kuiper(right, scores).statistic


def test_spiegelhalters_test_is_one_sided() -> None:
    there = mapie.spiegelhalter_p_value(RIGHT, SCORES)
    assert there == pytest.approx(calibration.spiegelhalter(RIGHT, SCORES, alternative="greater").p_value)
    assert there != pytest.approx(calibration.spiegelhalter(RIGHT, SCORES).p_value)


def test_mapie_refuses_as_many_strata_as_widths() -> None:
    truth, bounds = np.zeros(4), np.column_stack([np.zeros(4), [1.0, 1.0, 2.0, 2.0]])[:, :, None]
    with pytest.raises(ValueError, match="number of bins"):
        mapie_intervals.regression_ssc(truth, bounds, num_bins=3)
    assert len(intervals.interval_size_stratified_coverage(truth, bounds, bins=3).coverage[0]) == 3


def test_one_level_is_an_array_in_mapie_and_a_number_in_abstain() -> None:
    truth, bounds = np.zeros(2), np.array([[-1.0, 1.0], [1.0, 2.0]])
    assert mapie_intervals.regression_coverage_score(truth, bounds[:, :, None]).shape == (1,)
    assert intervals.interval_coverage(truth, bounds) == 0.5
