"""Holm, power and p-values by hand, and that the p-value keeps its level where either half alone would not."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import t as student

from abstain import ArgumentError, DataError
from abstain.inference import clusters_needed, holm, p_value

if TYPE_CHECKING:
    from random import Random


def test_holm_by_hand() -> None:
    # Sorted 0.005, 0.01, 0.03, 0.04 times 4, 3, 2, 1 gives 0.02, 0.03, 0.06, 0.04; the last may not fall below 0.06.
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.6, 0.7]) == pytest.approx([1.0, 1.0])
    assert holm([0.02]) == pytest.approx([0.02])
    assert holm([0.02, 0.02]) == pytest.approx([0.04, 0.04])
    assert holm([]).tolist() == []


def test_holm_leaves_out_what_was_not_tested() -> None:
    adjusted = holm([0.01, math.nan, 0.03])
    assert adjusted[[0, 2]] == pytest.approx([0.02, 0.03])
    assert math.isnan(adjusted[1])


def test_holm_refuses_what_is_no_probability() -> None:
    with pytest.raises(DataError, match=r"p_values must lie in \[0, 1\], got 1.5 at row 1"):
        holm([0.1, 1.5])


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30), st.randoms(use_true_random=False))
def test_holm_is_between_no_correction_and_bonferroni_whatever_the_order(
    p_values: list[float], random: Random
) -> None:
    adjusted = holm(p_values)
    assert (adjusted >= np.array(p_values)).all()
    assert (adjusted <= np.minimum(np.array(p_values) * len(p_values), 1.0) + 1e-15).all()
    order = list(range(len(p_values)))
    random.shuffle(order)
    assert holm(np.array(p_values)[order]) == pytest.approx(adjusted[order])


def test_clusters_needed_by_hand() -> None:
    # z(0.975) + z(0.8) = 1.959964 + 0.841621 = 2.801585; squared 7.848879.
    assert clusters_needed(0.01, 0.01, 40) == math.ceil(40 * 7.848879)  # 314
    assert clusters_needed(-0.01, 0.01, 40) == 314
    assert clusters_needed(0.02, 0.01, 40) == math.ceil(40 * 7.848879 / 4)  # 79
    # z(0.995) + z(0.9) = 2.575829 + 1.281552 = 3.857381; squared 14.879388.
    assert clusters_needed(0.01, 0.01, 40, level=0.99, power=0.9) == math.ceil(40 * 14.879388)  # 596
    assert math.isinf(clusters_needed(0.0, 0.01, 40))
    assert math.isinf(clusters_needed(1e-320, 0.01, 40))
    assert math.isnan(clusters_needed(math.nan, 0.01, 40))
    with pytest.raises(ArgumentError, match="power must fulfil 0 < power < 1, got 80; did you mean 0.8"):
        clusters_needed(0.01, 0.01, 40, power=80)


def test_p_value_by_hand() -> None:
    # 2 of 99 replicates lie at or below zero: tail 3/100, z = -1.880794, times sqrt(9/10) = -1.784277; two tails of
    # t on 9 degrees of freedom beyond that are 0.108044. The other half is far smaller.
    replicates = [-1.0, 0.0] + [10.0] * 97
    by_percentile = 0.108044
    assert p_value(100.0, replicates, clusters=10) == pytest.approx(by_percentile, abs=1e-5)
    # Standard error 2 of replicates that straddle the difference far from zero: t = 5 / (2 * sqrt(10 / 9)) = 2.371708
    # on 9 degrees of freedom, two tails 0.041792; the percentile half with a tail of 1/1001 is 0.0167.
    spread = np.concatenate([np.full(500, 3.0), np.full(500, 7.0)])
    assert spread.std(ddof=1) == pytest.approx(2.0, abs=2e-3)
    assert p_value(5.0, spread, clusters=10) == pytest.approx(0.041792, abs=1e-4)


def test_p_value_is_the_same_for_both_directions_and_one_for_no_difference() -> None:
    replicates = np.random.default_rng(1).normal(1.0, 1.0, 500)
    assert p_value(1.0, replicates, 40) == p_value(-1.0, -replicates, 40)
    assert p_value(0.0, np.zeros(100), 40) == 1.0
    assert p_value(0.0, np.random.default_rng(2).normal(0, 1, 500), 40) == 1.0


def test_p_value_is_undefined_where_nothing_can_be_said() -> None:
    assert math.isnan(p_value(1.0, [1.0, 2.0], clusters=1))
    assert math.isnan(p_value(math.nan, [1.0, 2.0], clusters=9))
    assert math.isnan(p_value(1.0, [math.nan, 2.0], clusters=9))
    assert math.isnan(p_value(1.0, [], clusters=9))
    assert 0.0 < p_value(1.0, [1.0, 1.0, math.nan], clusters=9) <= 1.0


def test_p_value_of_a_mean_approaches_that_of_the_t_test() -> None:
    values = np.random.default_rng(5).normal(0.4, 1.0, 40)
    draws = np.random.default_rng(6).integers(0, 40, size=(20_000, 40))
    t = values.mean() / (values.std(ddof=1) / math.sqrt(40))
    expected = 2 * student.sf(abs(t), 39)
    assert p_value(values.mean(), values[draws].mean(axis=1), 40) == pytest.approx(expected, rel=0.15)
