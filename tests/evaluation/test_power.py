from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import nct, t

import abstain
from abstain import ArgumentError, DataError, Items
from abstain.inference import clusters_needed


def pilot(seed: int = 0, clusters: int = 30, right: float = 0.8) -> Items:
    rng = np.random.default_rng(seed)
    n = 4 * clusters
    shared = np.random.default_rng(99).random(n)
    wrong = (rng.random(n) + shared) / 2 > right
    return Items.from_arrays(
        np.zeros(n, int),
        wrong.astype(int),
        confidence=rng.random(n),
        cluster=np.repeat(np.arange(clusters), 4),
        item=np.arange(n),
    )


def test_a_pilot_of_one_assumes_a_correlation() -> None:
    items = pilot()
    se = abstain.evaluate(items, metrics="accuracy").metrics["accuracy"].se  # type: ignore[index]
    for correlation in (0.0, 0.5, 0.9):
        found = abstain.power(items, metric="accuracy", difference=0.05, correlation=correlation)
        expected = se * math.sqrt(2 * (1 - correlation))
        assert found.se == pytest.approx(expected)
        assert found.clusters_needed == clusters_needed(0.05, expected, 30, degrees=29)
        assert f", for a correlation of {correlation:g} between the systems; " in found.basis


def test_a_pilot_of_two_has_the_error_of_their_difference() -> None:
    left, right = pilot(1), pilot(2)
    compared = abstain.compare({"a": left, "b": right}, metrics="augrc")
    difference = compared.difference("a", "b", "augrc").estimate
    found = abstain.power({"a": left, "b": right}, metric="augrc", difference=0.02)
    assert found.se == difference.se
    assert found.clusters == 30
    assert math.isnan(found.correlation)
    assert found.clusters_needed == clusters_needed(0.02, difference.se, 30, degrees=29)


def test_a_standard_error_instead_of_a_pilot() -> None:
    answer = abstain.power(metric="augrc", difference=0.02, se=0.0125, clusters=41)
    assert answer.clusters_needed == clusters_needed(0.02, 0.0125, 41)
    assert str(answer) == (
        f"{answer.clusters_needed:.0f} clusters are needed to detect a difference of 0.02 in augrc with a power of 80% "
        "at level 0.95"
    )
    assert (
        answer.basis
        == "assumed: a standard error of 0.0125 with 41 clusters, and more clusters of the same kind"
    )


def test_a_metric_of_a_ranking_has_no_default_correlation() -> None:
    with pytest.raises(
        ArgumentError, match="how augrc varies between two systems on the same items; pass a pilot"
    ):
        abstain.power(pilot(), metric="augrc", difference=0.02)
    assert abstain.power(pilot(), metric="augrc", difference=0.02, correlation=0.2).correlation == 0.2


def test_the_range_comes_from_the_chi_squared_interval_of_the_variance() -> None:
    """With 29 degrees of freedom, 29 / 45.722 = 0.6343 and 29 / 16.047 = 1.8072 times the variance."""
    answer = abstain.power(pilot(), metric="accuracy", difference=0.05)
    assert answer.clusters_low == clusters_needed(0.05, answer.se * math.sqrt(0.634266), 30)
    assert answer.clusters_high == clusters_needed(0.05, answer.se * math.sqrt(1.807178), 30)
    assert answer.clusters_low < answer.clusters_needed < answer.clusters_high
    ends = f"{answer.clusters_low:.0f} to {answer.clusters_high:.0f} clusters are needed"
    assert answer.basis.endswith(f"a pilot of this size leaves it open whether {ends}")
    assert math.isnan(abstain.power(metric="accuracy", difference=0.1, se=0.1, clusters=9).clusters_low)


@pytest.mark.parametrize("clusters", [10, 40])
def test_the_power_is_right_on_average_over_pilots(clusters: int) -> None:
    """One value per cluster, normal with variance 1; the power of each planned study is known exactly."""
    rng = np.random.default_rng(3)
    variances = rng.chisquare(clusters - 1, 2000) / (clusters - 1)
    powers = []
    for error in np.sqrt(variances / clusters):
        needed = clusters_needed(0.3, error, clusters, degrees=clusters - 1)
        powers.append(nct.sf(t.ppf(0.975, needed - 1), needed - 1, 0.3 * math.sqrt(needed)))
    assert np.mean(powers) == pytest.approx(0.8, abs=0.02)


def test_twice_the_difference_needs_about_a_quarter() -> None:
    small, large = (abstain.power(pilot(), metric="accuracy", difference=size) for size in (0.02, 0.04))
    assert small.clusters_needed / large.clusters_needed == pytest.approx(4.0, rel=0.05)


def test_studies_with_the_needed_clusters_have_the_requested_power() -> None:
    """About 80% of simulated studies with the returned number of clusters detect the difference."""
    rng = np.random.default_rng(5)
    clusters = int(abstain.power(metric="accuracy", difference=0.5, se=0.2, clusters=25).clusters_needed)
    detected = 0
    for _ in range(400):
        # One value per cluster, with a standard error of 0.2 for 25 of them.
        values = rng.normal(0.5, 1.0, clusters)
        t = values.mean() / (values.std(ddof=1) / math.sqrt(clusters))
        detected += abs(t) > 2.0 + 2.4 / clusters
    assert 0.74 < detected / 400 < 0.87


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"difference": 0.0}, "difference must be greater than 0"),
        ({"se": 0.1}, "without a pilot, pass a standard error"),
        ({"se": 0.0, "clusters": 10}, "se must be greater than 0"),
        ({"se": 0.1, "clusters": 1}, "clusters must be at least 2"),
        ({"metric": "no_such", "se": 0.1, "clusters": 5}, "no_such"),
    ],
)
def test_invalid_arguments_are_errors(options: dict[str, float], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        abstain.power(**{"metric": "augrc", "difference": 0.1, **options})  # type: ignore[arg-type]


def test_a_pilot_without_a_standard_error_is_an_error() -> None:
    items = Items.from_arrays([1] * 12, [1] * 12, confidence=[0.9] * 12)
    with pytest.raises(DataError, match="accuracy has no standard error: it does not vary"):
        abstain.power(items, metric="accuracy", difference=0.1)
    with pytest.raises(ArgumentError, match="se= and clusters= replace a pilot"):
        abstain.power(items, metric="accuracy", difference=0.1, se=0.1, clusters=3)
    with pytest.raises(ArgumentError, match="correlation must be at least -1 and less than 1, got 1"):
        abstain.power(pilot(), metric="accuracy", difference=0.1, correlation=1.0)
