"""The profile: exact operating points, their intervals, reference curves, contrasts, and invisible thinning."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from abstain import Items, evaluate, read
from abstain.errors import ArgumentError
from abstain.evaluation._profile import thinned
from examples import EXAMPLES

if TYPE_CHECKING:
    from abstain import Result


def run(confidence: str | list[str] = "llm", resamples: int = 300) -> Result:
    items = read(EXAMPLES / "run_a.json", mode="few_shot")
    return evaluate(items, confidence=confidence, loss="abs", resamples=resamples)


def test_operating_points_by_hand() -> None:
    # Confidences 2, 2, 1 with losses 0, 2, 0, and five abstentions.
    items = Items.from_arrays(
        [0] * 8,
        [0, 2, 0] + [None] * 5,
        abstained=[False] * 3 + [True] * 5,
        confidence=[2, 2, 1, 0, 0, 0, 0, 0],
    )
    profile = evaluate(items, loss="abs", interval="none").profile()
    points = profile.points["confidence"]
    assert points.threshold.tolist() == [2, 1]
    assert points.answered.tolist() == [2, 3]
    assert points.wrong.tolist() == [1, 1]
    assert points.coverage.tolist() == [2 / 8, 3 / 8]
    assert points.selective_risk.tolist() == [1.0, 2 / 3]
    assert points.generalized_risk.tolist() == [2 / 8, 2 / 8]
    assert np.isnan(points.selective_low).all()
    assert points.in_curve == 2
    # A perfect ranking has the losses 0, 0, 2; a random one has their mean at every coverage.
    assert profile.optimal.coverage.tolist() == [1 / 8, 2 / 8, 3 / 8]
    assert profile.optimal.selective_risk == pytest.approx([0, 0, 2 / 3])
    assert profile.optimal.generalized_risk == pytest.approx([0, 0, 2 / 8])
    assert profile.random.selective_risk == pytest.approx([2 / 3, 2 / 3])
    assert profile.random_augrc == pytest.approx(0.5 * 2 / 8 * 3 / 8)


def test_the_last_operating_point_answers_all_answered_items() -> None:
    result = run()
    points = result.profile().points["llm"]
    assert points.answered[-1] == result.population.answered
    assert points.coverage[-1] == result["llm"].cmax.value


def test_the_interval_of_the_generalized_risk_of_everything_is_that_of_a_mean_loss() -> None:
    # If every item is answered, the lowest threshold accepts all rows of every resample.
    rng = np.random.default_rng(3)
    loss, cluster = rng.random(80), np.arange(80) // 4
    items = Items.from_arrays(np.zeros(80), loss, confidence=rng.integers(0, 5, 80), cluster=cluster)
    for interval in ("jackknife", "percentile"):
        result = evaluate(items, loss="abs", interval=interval, coverage_grid=[1.0])
        points = result.profile().points["confidence"]
        full = result["confidence"].risk_at_coverage[1.0]
        ends = (points.selective_low[-1], points.selective_high[-1])
        assert ends == pytest.approx(full.interval, rel=1e-6)
        assert points.generalized_low[-1] == pytest.approx(points.selective_low[-1])


def test_contrasts_are_paired_differences_from_the_best() -> None:
    result = run(confidence=["llm", "total_evidence", "token_msp"])
    profile = result.profile()
    assert profile.leader == min(result, key=lambda name: result[name].augrc.value)
    assert set(profile.contrasts) <= set(result) - {profile.leader}
    for name, contrast in profile.contrasts.items():
        change = result[name].augrc.value - result[profile.leader].augrc.value
        assert contrast.estimate.value == pytest.approx(change)
        assert contrast.estimate.value >= 0
        assert (contrast.left, contrast.right) == (profile.leader, name)
        assert contrast.verdict in ("left", "inconclusive")
    # Two names of the same ranking are not compared with each other.
    assert profile.points["llm"] is profile.points["total_evidence"]


def test_reliability_is_for_confidences_that_may_be_probabilities() -> None:
    found = run(confidence=["llm", "token_msp", "token_pe", "verbalized"]).profile().reliability
    assert set(found) == {"token_msp", "verbalized"}
    assert found["token_msp"].count.sum() == 150


def test_without_answers_there_is_no_curve_and_no_leader() -> None:
    items = Items.from_arrays([0, 1], [None, None], abstained=[True, True], confidence=[0.2, 0.4])
    profile = evaluate(items, loss="abs", resamples=20).profile()
    assert len(profile.points["confidence"]) == 0
    assert (profile.leader, profile.contrasts, profile.reliability) == ("", {}, {})


def test_a_long_curve_is_thinned_to_exact_points_with_those_of_the_grid() -> None:
    rng = np.random.default_rng(0)
    n = 5_000
    items = Items.from_arrays(
        np.zeros(n), rng.random(n) < 0.3, confidence=rng.random(n), cluster=np.arange(n) // 50
    )
    result = evaluate(items, loss="zero_one", resamples=50)
    curve = result["confidence"].curve
    points = result.profile(most=100).points["confidence"]
    assert 100 <= len(points) <= 110
    assert points.in_curve == n
    indices = np.searchsorted(curve.coverage, points.coverage)
    assert curve.selective_risk[indices].tolist() == points.selective_risk.tolist()
    assert points.answered.tolist() == (indices + 1).tolist()
    for coverage, risk in result["confidence"].risk_at_coverage.items():
        assert risk.value in points.selective_risk, coverage


def test_a_million_items_are_thinned_within_a_pixel() -> None:
    rng = np.random.default_rng(0)
    n = 1_000_000
    wrong = rng.random(n) < 0.3
    order = np.argsort(-(rng.random(n) - 0.3 * wrong))
    x, y = np.arange(1, n + 1) / n, np.cumsum(wrong[order]) / np.arange(1, n + 1)
    columns = 480
    kept = thinned(x, y, columns)
    assert len(kept) <= 4 * columns
    assert (kept[0], kept[-1]) == (0, n - 1)
    # In every column of pixels the thinned line reaches from the same lowest to the same highest point.
    column = np.minimum((x - x[0]) / (x[-1] - x[0]) * columns, columns - 1).astype(int)
    edges = np.flatnonzero(np.r_[True, np.diff(column) != 0])
    kept_edges = np.flatnonzero(np.r_[True, np.diff(column[kept]) != 0])
    for reduce in (np.minimum, np.maximum):
        assert np.array_equal(reduce.reduceat(y, edges), reduce.reduceat(y[kept], kept_edges))


def test_a_profile_needs_two_points() -> None:
    with pytest.raises(ArgumentError, match="most must be at least 2, got 1"):
        run(resamples=0).profile(most=1)
