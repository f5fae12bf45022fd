"""Quantiles against scipy's, for all probabilities and degrees of freedom that intervals need, and beyond."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtri, stdtr, stdtrit

from abstain.inference._distributions import normal_quantile, t_quantile

PROBABILITIES = st.floats(1e-9, 1.0 - 1e-9)


@given(PROBABILITIES)
def test_normal_quantiles_are_those_of_scipy(probability: float) -> None:
    assert normal_quantile(probability) == pytest.approx(float(ndtri(probability)), rel=1e-12, abs=1e-14)


@settings(deadline=None)
@given(st.floats(0.5, 1000.0), PROBABILITIES)
def test_t_quantiles_are_those_of_scipy(degrees: float, probability: float) -> None:
    found = t_quantile(degrees, probability)
    # Far in a tail, scipy itself is not exact to twelve digits, so the probability is compared, too.
    assert found == pytest.approx(float(stdtrit(degrees, probability)), rel=1e-7, abs=1e-9)
    assert float(stdtr(degrees, found)) == pytest.approx(probability, rel=1e-9)


@pytest.mark.parametrize("degrees", [1.0, 2.0, 9.0, 9.7, 40.0, 199.0, 400.0])
@pytest.mark.parametrize("probability", [0.005, 0.025, 0.05, 0.5, 0.8, 0.975, 0.995])
def test_quantiles_of_intervals_are_the_same_numbers(degrees: float, probability: float) -> None:
    expected = float(stdtrit(degrees, probability))
    # Releases of scipy differ among each other in the eleventh digit.
    assert t_quantile(degrees, probability) == pytest.approx(expected, rel=1e-10, abs=1e-12)


def test_the_ends_are_infinite() -> None:
    assert [normal_quantile(end) for end in (0.0, 1.0)] == [-math.inf, math.inf]
    assert [t_quantile(4.0, end) for end in (0.0, 0.5, 1.0)] == [-math.inf, 0.0, math.inf]
    assert t_quantile(math.inf, 0.975) == normal_quantile(0.975)
