"""Tests of calibration: by hand, distributions, invariants, agreement with MAPIE, uniform p-values under the null."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mapie.metrics import calibration as mapie
from scipy import integrate, stats

from abstain.errors import ArgumentError, DataError
from abstain.metrics.calibration import cumulative_differences, kolmogorov_smirnov, kuiper, spiegelhalter
from abstain.metrics.calibration_tests import range_survival, supremum_quantile, supremum_survival

TESTS: list[Any] = [kolmogorov_smirnov, kuiper, spiegelhalter]


def null_sample(n: int, rng: np.random.Generator) -> tuple[Any, Any]:
    s = rng.beta(2, 1.5, n)
    return (rng.random(n) < s).astype(int), s


# Distributions


def test_known_values() -> None:
    assert supremum_survival(2.241) == pytest.approx(0.05, abs=2e-4)
    assert range_survival(2.50) == pytest.approx(0.05, abs=5e-4)
    assert supremum_quantile(0.95) == pytest.approx(2.2414, abs=1e-4)


@pytest.mark.parametrize("survival", [supremum_survival, range_survival])
def test_survival_functions_fall_from_one_to_zero(survival: Any) -> None:
    grid = np.concatenate(
        [[0.0, 5e-324, 1e-200, 1e-9], np.linspace(0.01, 12, 4000), [38.0, 1e9, 1e300, math.inf]]
    )
    values = np.array([survival(float(x)) for x in grid])
    assert values[0] == 1.0
    assert values[-1] == 0.0
    assert ((values >= 0) & (values <= 1)).all()
    assert (np.diff(values) <= 0).all()
    assert math.isnan(survival(math.nan))


@pytest.mark.parametrize(("survival", "switch"), [(supremum_survival, 1.5), (range_survival, 2.0)])
def test_the_two_series_of_a_distribution_agree_at_the_switch(survival: Any, switch: float) -> None:
    assert survival(math.nextafter(switch, 0)) == pytest.approx(survival(switch), rel=1e-14)


def test_tails_keep_their_relative_precision() -> None:
    # For large x only one term remains: 4 Q(x) and 8 Q(x).
    for x in (6.0, 9.0, 30.0):
        assert supremum_survival(x) == pytest.approx(4 * stats.norm.sf(x), rel=1e-12)
        assert range_survival(x) == pytest.approx(8 * stats.norm.sf(x), rel=1e-12)


def test_distributions_have_their_known_means() -> None:
    # E sup|B| = sqrt(pi/2), E range = 2 sqrt(2/pi).
    assert integrate.quad(supremum_survival, 0, 12)[0] == pytest.approx(math.sqrt(math.pi / 2), rel=1e-8)
    assert integrate.quad(range_survival, 0, 12)[0] == pytest.approx(2 * math.sqrt(2 / math.pi), rel=1e-8)


def test_distributions_agree_with_mapie() -> None:
    for x in (0.5, 1.0, 1.7, 2.241, 3.0, 4.5):
        assert 1 - supremum_survival(x) == pytest.approx(mapie.kolmogorov_smirnov_cdf(x), abs=1e-9)
        assert 1 - range_survival(x) == pytest.approx(mapie.kuiper_cdf(x), abs=1e-9)


# By hand


def test_cumulative_differences_by_hand() -> None:
    curve = cumulative_differences([1, 0, 0], [0.8, 0.2, 0.6])
    assert curve.difference == pytest.approx([0, -0.2 / 3, -0.8 / 3, -0.6 / 3])
    assert curve.proportion == pytest.approx([0, 1 / 3, 2 / 3, 1])
    assert curve.sigma == pytest.approx(math.sqrt(0.16 + 0.24 + 0.16) / 3)
    assert curve.deviation[-1] == curve.sigma
    assert curve.statistic == pytest.approx(0.8 / math.sqrt(0.56))
    assert curve.n == 3
    assert curve.band(0.95) == pytest.approx(2.2414 * curve.sigma, rel=1e-4)


def test_tied_scores_are_one_step() -> None:
    curve = cumulative_differences([0, 0, 1, 1], [0.5] * 4)
    assert curve.difference.tolist() == [0.0, 0.0]
    assert kolmogorov_smirnov([0, 0, 1, 1], [0.5] * 4).statistic == 0.0
    assert kuiper([0, 0, 1, 1], [0.5] * 4).p_value == 1.0


def test_constant_scores() -> None:
    # One step of (3/4 - 1/2), sigma = sqrt(4 / 4) / 4.
    y, s = [1, 1, 1, 0], [0.5] * 4
    assert kolmogorov_smirnov(y, s).statistic == pytest.approx(1.0)
    assert kuiper(y, s).statistic == pytest.approx(1.0)


def test_one_row() -> None:
    assert kolmogorov_smirnov([1], [0.8]).statistic == pytest.approx(0.5)
    assert kuiper([1], [0.8]).statistic == pytest.approx(0.5)
    assert spiegelhalter([1], [0.8]).statistic == pytest.approx(0.2 * -0.6 / math.sqrt(0.36 * 0.16))
    assert all(test([1], [0.8]).n == 1 for test in TESTS)


def test_kuiper_includes_the_start() -> None:
    # The differences only rise: without C_0 their range would not include the first step.
    y, s = [1, 1], [0.4, 0.6]
    assert kuiper(y, s).statistic == pytest.approx(1.0 / math.sqrt(0.48))
    assert kuiper(y, s).statistic == kolmogorov_smirnov(y, s).statistic


def test_spiegelhalter_sides() -> None:
    y, s = [0, 0, 1], [0.9, 0.8, 0.7]
    both, up, down = (spiegelhalter(y, s, alternative=side) for side in ("two-sided", "greater", "less"))
    assert up.p_value + down.p_value == pytest.approx(1.0)
    assert both.p_value == pytest.approx(2 * min(up.p_value, down.p_value))
    assert up.statistic > 0
    with pytest.raises(ArgumentError, match="unknown alternative 'both'"):
        spiegelhalter(y, s, alternative="both")


def test_tests_of_certain_confidences_are_undefined_with_a_reason() -> None:
    for test in (kolmogorov_smirnov, kuiper):
        result = test([1, 0], [1.0, 0.0])
        assert math.isnan(result.statistic)
        assert math.isnan(result.p_value)
        assert result.reason == "every confidence is 0 or 1, so the outcomes have no variance"
        assert test([0, 0], [1.0, 0.0]).reason.endswith("1 of the outcomes contradict their confidence")
    result = spiegelhalter([1, 0, 1], [0.5, 0.5, 1.0])
    assert math.isnan(result.p_value)
    assert "has no variance" in result.reason
    assert "undefined" in str(result)


def test_results_are_frozen() -> None:
    result = kuiper([1, 0], [0.5, 0.6])
    with pytest.raises(dataclasses.FrozenInstanceError, match="p_value"):
        result.p_value = 0.0  # type: ignore[misc]
    assert result.reason == ""


# Invariants


@pytest.mark.parametrize("test", TESTS)
def test_row_order_and_repetition(test: Any) -> None:
    rng = np.random.default_rng(0)
    y, s = null_sample(80, rng)
    s = s.round(1)
    order, weights = rng.permutation(80), rng.integers(0, 4, 80)
    assert test(y[order], s[order]).statistic == pytest.approx(test(y, s).statistic, abs=1e-12)
    weighted = test(y, s, sample_weight=weights)
    repeated = test(np.repeat(y, weights), np.repeat(s, weights))
    assert weighted.statistic == pytest.approx(repeated.statistic, abs=1e-12)
    assert weighted.n == repeated.n == weights.sum()


@settings(deadline=None, max_examples=100)
@given(st.lists(st.tuples(st.booleans(), st.floats(0, 1)), min_size=1, max_size=30))
def test_p_values_stay_within_zero_and_one(rows: list[tuple[bool, float]]) -> None:
    y, s = [row[0] for row in rows], [row[1] for row in rows]
    for test in TESTS:
        result = test(y, s)
        assert (0.0 <= result.p_value <= 1.0) != bool(result.reason)


@pytest.mark.parametrize("test", [*TESTS, cumulative_differences])
def test_bad_rows_are_named(test: Any) -> None:
    with pytest.raises(DataError, match="y_true must be 0 or 1, got 3 at row 1"):
        test([0, 3], [0.5, 0.5])
    with pytest.raises(DataError, match=r"confidence must lie in \[0, 1\], got -0.1 at row 0"):
        test([0, 1], [-0.1, 0.5])
    with pytest.raises(DataError, match="y_true is empty"):
        test([], [])


# Agreement with MAPIE if the definitions agree: no ties, C_0 within the range, one-sided Spiegelhalter


@pytest.mark.parametrize("seed", range(4))
def test_agreement_with_mapie(seed: int) -> None:
    y, s = null_sample(400, np.random.default_rng(seed))
    ks = kolmogorov_smirnov(y, s)
    assert ks.statistic == pytest.approx(mapie.kolmogorov_smirnov_statistic(y, s), rel=1e-6)
    assert ks.p_value == pytest.approx(mapie.kolmogorov_smirnov_p_value(y, s), abs=1e-6)
    z = spiegelhalter(y, s, alternative="greater")
    assert z.statistic == pytest.approx(mapie.spiegelhalter_statistic(y, s))
    assert z.p_value == pytest.approx(mapie.spiegelhalter_p_value(y, s))
    curve = cumulative_differences(y, s)
    np.testing.assert_allclose(curve.difference[1:], mapie.cumulative_differences(y, s), atol=1e-7)
    without_start = float(np.ptp(curve.difference[1:])) / curve.sigma
    assert without_start == pytest.approx(mapie.kuiper_statistic(y, s), rel=1e-6)
    assert kuiper(y, s).statistic >= without_start - 1e-12


# Under the null


@pytest.mark.slow
@pytest.mark.parametrize("test", TESTS)
def test_p_values_are_uniform_under_the_null(test: Any) -> None:
    rng = np.random.default_rng(20)
    p = np.array([test(*null_sample(3000, rng)).p_value for _ in range(1500)])
    assert ((p >= 0) & (p <= 1)).all()
    assert stats.kstest(p, "uniform").statistic < 0.045
    assert abs((p < 0.05).mean() - 0.05) < 0.02
