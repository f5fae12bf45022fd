"""Holm's method, power, the jackknife and p-values by hand, and verdicts with a known better side."""

from __future__ import annotations

import hashlib
import math
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import t as student
from scipy.stats import ttest_1samp as one_sample

from abstain import ArgumentError, DataError
from abstain._units import group_of
from abstain.inference import (
    DifferenceRange,
    Estimate,
    JackknifeWeights,
    against_margin,
    at_level,
    clusters_needed,
    decide,
    difference_estimate,
    holm,
    p_value,
    within_margin,
)

if TYPE_CHECKING:
    from random import Random


def test_holm_by_hand() -> None:
    # Sorted 0.005, 0.01, 0.03, 0.04 times 4, 3, 2, 1 gives 0.02, 0.03, 0.06, 0.04; the last may not fall below 0.06.
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.6, 0.7]) == pytest.approx([1.0, 1.0])
    assert holm([0.02]) == pytest.approx([0.02])
    assert holm([0.02, 0.02]) == pytest.approx([0.04, 0.04])
    assert holm([]).tolist() == []


def test_holm_ignores_undefined_p_values() -> None:
    adjusted = holm([0.01, math.nan, 0.03])
    assert adjusted[[0, 2]] == pytest.approx([0.02, 0.03])
    assert math.isnan(adjusted[1])


def test_holm_needs_probabilities() -> None:
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
    # t(0.975) + t(0.8) on 315 degrees of freedom = 1.967524 + 0.842803 = 2.810327; squared 7.897938.
    assert clusters_needed(0.01, 0.01, 40) == math.ceil(40 * 7.897938)  # 316
    assert clusters_needed(-0.01, 0.01, 40) == 316
    # On 80 degrees: 1.990063 + 0.846288 = 2.836351; squared 8.044887.
    assert clusters_needed(0.02, 0.01, 40) == math.ceil(40 * 8.044887 / 4)  # 81
    # t(0.995) + t(0.9) on 599 degrees = 2.584083 + 1.283035 = 3.867118; squared 14.954602.
    assert clusters_needed(0.01, 0.01, 40, level=0.99, power=0.9) == math.ceil(40 * 14.954602)  # 599
    assert math.isinf(clusters_needed(0.0, 0.01, 40))
    assert math.isinf(clusters_needed(1e-320, 0.01, 40))
    assert math.isnan(clusters_needed(math.nan, 0.01, 40))
    with pytest.raises(ArgumentError, match="power must fulfil 0 < power < 1, got 80; did you mean 0.8"):
        clusters_needed(0.01, 0.01, 40, power=80)


def estimate(value: float, se: float, clusters: int = 10) -> Estimate:
    return Estimate(value, value - se, value + se, se=se, degrees=clusters - 1, clusters=clusters)


def test_p_value_by_hand() -> None:
    # t = 2.5 on 9 degrees of freedom: two tails of 0.016931 each.
    assert p_value(estimate(5.0, 2.0)) == pytest.approx(2 * student.sf(2.5, 9))
    assert p_value(estimate(5.0, 2.0)) == pytest.approx(0.0338618, abs=1e-6)
    assert p_value(estimate(-5.0, 2.0)) == p_value(estimate(5.0, 2.0))
    assert p_value(estimate(0.0, 2.0)) == 1.0
    # Against a bound of 2, the distance is 3, which is one and a half standard errors.
    assert p_value(estimate(5.0, 2.0), 2.0) == pytest.approx(2 * student.sf(1.5, 9))
    # Very small p-values are not rounded to 0, so a correction for hundreds of pairs can still decide.
    assert p_value(estimate(0.9, 0.01, clusters=100)) < 1e-90


def test_if_every_cluster_agrees_the_p_value_is_that_of_as_many_coins() -> None:
    assert p_value(estimate(1.0, 0.0, clusters=6)) == 2.0**-5
    assert p_value(estimate(0.0, 0.0, clusters=6)) == 1.0
    # Six clusters that agree are significant at 5%, five are not, and the interval agrees.
    for clusters, significant in ((6, True), (5, False)):
        found = difference_estimate(
            -1.0, np.full(clusters, -1.0), JackknifeWeights.of(np.arange(clusters)), n=clusters
        )
        assert found.se == 0.0
        assert (found.high < 0.0) == significant == (p_value(found) <= 0.05)
        assert found.low == -1.0
    # Rounding errors are not spread.
    rounded = np.array([0.3, 0.1 + 0.2, 0.3, 0.3])
    assert difference_estimate(0.3, rounded, JackknifeWeights.of(np.arange(4)), n=4).se == 0.0


def test_a_difference_of_exactly_zero_is_not_certain() -> None:
    """With n clusters that agree, u = 1 - 0.025^(1/n) of all clusters could differ, each by the whole range."""
    weights = JackknifeWeights.of(np.arange(20))
    found = difference_estimate(0.0, np.zeros(20), weights, n=20, limits=DifferenceRange(1.0))
    unseen = 1 - 0.025 ** (1 / 20)  # 0.1684
    assert found.interval == pytest.approx((-unseen, unseen))
    assert found.method == "exact bound: all of 20 clusters agree"
    assert p_value(found) == 1.0
    # The p-value of a margin is the level at which the interval just excludes it.
    assert p_value(found, 0.25) == pytest.approx(2 * 0.75**20)
    assert p_value(found, unseen) == pytest.approx(0.05)
    # Between 0 and its largest value, the interval is longer below than above, and the p-value against 0 agrees.
    found = difference_estimate(0.5, np.full(20, 0.5), weights, n=20, limits=DifferenceRange(1.0))
    assert found.interval == pytest.approx((0.5 - 1.5 * unseen, 0.5 + 0.5 * unseen))
    assert p_value(found) == pytest.approx(2 * (1 - 0.5 / 1.5) ** 20)
    assert p_value(found, 0.6) == pytest.approx(2 * (1 - 0.1 / 0.5) ** 20)
    turned = difference_estimate(-0.5, np.full(20, -0.5), weights, n=20, limits=DifferenceRange(1.0))
    assert turned.turned.interval == pytest.approx(found.interval)
    assert p_value(turned) == p_value(found)
    # The effective number of clusters is smaller if their sizes differ.
    fewer = difference_estimate(0.0, np.zeros(20), weights, n=20, limits=DifferenceRange(1.0, clusters=5.0))
    assert fewer.high == pytest.approx(1 - 0.025 ** (1 / 5))
    # The largest possible difference has the p-value of as many coins.
    found = difference_estimate(1.0, np.ones(20), weights, n=20, limits=DifferenceRange(1.0))
    assert found.interval == pytest.approx((1 - 2 * unseen, 1.0))
    assert p_value(found) == pytest.approx(2.0**-19)


def test_no_difference_of_an_unbounded_metric_has_no_interval() -> None:
    found = difference_estimate(0.0, np.zeros(4), JackknifeWeights.of(np.arange(4)), n=4)
    assert found.interval is None
    assert (
        found.reason == "no interval: no cluster shows a difference, and its largest possible size is unknown"
    )
    assert p_value(found) == 1.0


def test_the_standard_error_against_a_margin_adds_two_clusters_like_the_most_different_one() -> None:
    """One of twenty pairs differs: se^2 = 0.05 * 0.95 / 19 = 0.0025, and y = 0.95 for this pair."""
    values = np.array([1.0] + [0.0] * 19)
    left_out = (values.sum() - values) / 19
    found = difference_estimate(0.05, left_out, JackknifeWeights.of(np.arange(20)), n=20)
    assert found.se == pytest.approx(0.05)
    assert found.margin_se == pytest.approx(math.sqrt(0.0025 + 2 * (0.95 / 20) ** 2))
    against = against_margin(found)
    assert against.se == found.margin_se
    assert against.high - against.value == pytest.approx(student.ppf(0.975, 19) * found.margin_se)
    assert against.method.endswith(", against a margin")


@pytest.mark.slow
@pytest.mark.parametrize(("n", "better", "worse"), [(100, 0.01, 0.02), (100, 0.02, 0.03), (50, 0.05, 0.06)])
def test_a_run_that_is_worse_by_the_margin_rarely_passes(n: int, better: float, worse: float) -> None:
    """The true difference is the margin, 0.01: "not worse by more" in at most 2.5% of data sets, plus two errors.

    Without the addition to the standard error, it would be 9% in the first setting.
    """
    rng, passed, sets = np.random.default_rng(n), 0, 3000
    weights, limits = JackknifeWeights.of(np.arange(n)), DifferenceRange(1.0)
    for _ in range(sets):
        drawn = rng.random(n)
        change = (drawn < better).astype(float) - (drawn > 1.0 - worse)
        without = (change.sum() - change) / (n - 1)
        found = difference_estimate(float(change.mean()), without, weights, n=n, limits=limits)
        passed += against_margin(found).low >= -0.01
    assert passed / sets <= 0.025 + 2 * math.sqrt(0.025 * 0.975 / sets)


def test_the_p_value_is_undefined_without_an_interval() -> None:
    assert math.isnan(p_value(Estimate(math.nan)))
    assert math.isnan(p_value(Estimate(1.0)))
    one_cluster = difference_estimate(1.0, np.array([1.0]), JackknifeWeights.of(np.arange(1)), n=1)
    assert one_cluster.reason == "there is only one cluster, so there is no confidence interval"
    assert math.isnan(p_value(one_cluster))


def test_the_jackknife_of_a_mean_is_the_t_test() -> None:
    values = np.random.default_rng(5).normal(0.4, 1.0, 40)
    left_out = (values.sum() - values) / 39
    found = difference_estimate(values.mean(), left_out, JackknifeWeights.of(np.arange(40)), n=40)
    expected = one_sample(values, 0.0)
    assert found.se == pytest.approx(values.std(ddof=1) / math.sqrt(40))
    assert found.interval == pytest.approx(expected.confidence_interval(0.95))
    assert p_value(found) == pytest.approx(expected.pvalue)
    assert found.method == "jackknife over 40 clusters, t distribution"


def test_unequal_groups_follow_the_delete_m_formula() -> None:
    """Three groups of 1, 2 and 3 clusters, worked out by hand from the pseudo-values."""
    weights = JackknifeWeights(np.array([0, 1, 1, 2, 2, 2]), np.array([1.0, 2.0, 3.0]), 2.0, 6)
    value, left_out = 2.0, np.array([2.1, 1.8, 2.4])
    # h = 6, 3, 2: pseudo-values 12 - 5*2.1 = 1.5, 6 - 2*1.8 = 2.4, 4 - 2.4 = 1.6;
    # centre 6 - (5/6*2.1 + 2/3*1.8 + 1/2*2.4) = 1.85; squares .1225/5 + .3025/2 + .0625/1 = .23825, over 3.
    found = difference_estimate(value, left_out, weights, n=6)
    assert found.se == pytest.approx(math.sqrt(0.23825 / 3))
    assert found.degrees == 2
    assert found.method == "jackknife over 3 groups of 6 clusters, t distribution"


def test_a_few_undefined_values_do_not_matter_and_many_do() -> None:
    values = np.random.default_rng(1).normal(1.0, 0.1, 40)
    weights = JackknifeWeights.of(np.arange(40))
    gaps = values.copy()
    gaps[:3] = math.nan
    assert difference_estimate(1.0, gaps, weights, n=40).interval is not None
    gaps[:5] = math.nan
    found = difference_estimate(1.0, gaps, weights, n=40)
    reason = "no confidence interval: the value is undefined without some of the clusters"
    assert (found.interval, found.reason) == (None, reason)


class TestGroups:
    def test_up_to_a_thousand_clusters_are_left_out_one_by_one(self) -> None:
        assert JackknifeWeights.of(np.arange(1000)).vectors == 1000
        assert JackknifeWeights.of(np.arange(1001)).vectors <= 200

    def test_the_group_of_a_name_is_the_same_written_as_text(self) -> None:
        ids = np.array([0, 1, -7, 12345, 2147483647, 10**15])
        assert group_of(ids).tolist() == group_of(ids.astype(str)).tolist()
        # ((7 mod p) * 62089911) mod p mod 200 for a number, and the MD5 digest for other names.
        assert group_of(np.array([7])).tolist() == [7 * 62089911 % 2147483647 % 200]
        expected = int(hashlib.md5(b"007").hexdigest()[:8], 16) % 200
        assert group_of(np.array(["007"])).tolist() == [expected]

    @pytest.mark.parametrize("step", [1, 200, 1_000, 65_536, 10**6])
    def test_groups_are_nearly_equal(self, step: int) -> None:
        sizes = np.bincount(group_of(np.arange(20_000) * step), minlength=200)
        assert sizes.min() > 50
        assert sizes.max() < 200

    def test_every_cluster_is_left_out_once(self) -> None:
        weights = JackknifeWeights.of(np.array([f"patient {number}" for number in range(5000)]))
        vectors = np.concatenate([batch.weights for batch in weights.batches(5000)])
        assert ((1.0 - vectors).sum(axis=0) == 1.0).all()
        assert ((1.0 - vectors).sum(axis=1) == weights.sizes).all()


class TestDecide:
    """The verdict, with a known better side."""

    @pytest.mark.parametrize(
        ("value", "direction", "verdict"),
        [
            (-0.2, "lower", "right"),
            (0.2, "lower", "left"),
            (0.2, "higher", "right"),
            (-0.2, "higher", "left"),
            (0.2, "neither", "right"),
            (-0.2, "neither", "left"),
        ],
    )
    def test_sides(self, value: float, direction: str, verdict: str) -> None:
        found = estimate(value, 0.01, clusters=40)
        assert decide(found, direction, 0.001) == verdict
        assert decide(found, direction, 0.0501) == "inconclusive"
        assert decide(found, direction, math.nan) == "inconclusive"

    def test_a_difference_of_zero_is_inconclusive(self) -> None:
        assert decide(estimate(0.0, 0.0), "lower", 0.0) == "inconclusive"

    @given(st.floats(-1, 1), st.floats(1e-6, 1), st.integers(2, 60), st.sampled_from([0.9, 0.95, 0.99]))
    def test_the_verdict_of_one_pair_agrees_with_its_interval(
        self, value: float, se: float, clusters: int, level: float
    ) -> None:
        made = Estimate(value, 0.0, 0.0, level=level, se=se, degrees=clusters - 1, clusters=clusters)
        found = at_level(made, level)
        decided = decide(found, "lower", p_value(found)) != "inconclusive"
        # If the p-value equals 1 - level except for rounding, both verdicts are right.
        if abs(p_value(found) - (1 - level)) > 1e-9:
            assert decided == (found.low > 0.0 or found.high < 0.0)


def test_verdicts_against_a_margin_agree_with_the_interval() -> None:
    found = at_level(estimate(0.01, 0.005, clusters=41), 0.95)  # about [-0.0001, 0.0201]
    near, far = within_margin([found], "lower", 0.015)[0], within_margin([found], "lower", 0.05)[0]
    # Lower is better: the left side is shown to be not worse by 0.015, the right side is not.
    assert (near.left_not_worse, near.right_not_worse, near.equivalent) == (True, False, False)
    assert far.equivalent
    turned = within_margin([found], "higher", 0.015)[0]
    assert (turned.left_not_worse, turned.right_not_worse) == (False, True)
    # One of many differences needs stronger evidence.
    many = within_margin([found] * 30, "lower", 0.0225)
    assert within_margin([found], "lower", 0.0225)[0].right_not_worse
    assert not many[0].right_not_worse
