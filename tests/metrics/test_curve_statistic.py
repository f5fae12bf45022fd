"""The statistic of selective metrics with weights equals that of copied rows, for dense and sparse cluster sums."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import digamma

from abstain.metrics._columns import Columns
from abstain.metrics._curve import CURVE, Ranking
from abstain.metrics._specification import CONVENTIONS
from abstain.metrics.curves import threshold_statistic
from abstain.metrics.registry import METRICS, MetricSpecification, select_metrics
from abstain.resampling._curves import harmonic
from memory import run_measured

GRID = (0.1, 0.35, 0.5, 0.9)


def requested(convention: str = "trapezoid") -> list[MetricSpecification]:
    """Return the whole bundle, with areas up to a coverage of 0.4, and the risks at a grid of coverages."""
    bundle = [metric.at(0.4) if metric.parameter else metric for metric in select_metrics("selective")]
    risks = [METRICS["risk_at_coverage"].at(coverage) for coverage in GRID]
    return [replace(metric, settings={"convention": convention}) for metric in [*bundle, *risks]]


@pytest.mark.parametrize("levels", [3, 12, 1_000_000])
@pytest.mark.parametrize("convention", CONVENTIONS)
@pytest.mark.parametrize("dense", [True, False])
def test_weights_of_units_are_copies_of_their_rows(
    levels: int, convention: str, dense: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("abstain.resampling._cluster_sums._DENSE_LIMIT", 1 << 23 if dense else 0)
    rng = np.random.default_rng(levels)
    units, size = 12, 5
    columns = Columns.of(
        units * size,
        loss=rng.choice([0.0, 1 / 3, 1.0, 2.5], units * size),
        confidence=rng.integers(0, levels, units * size).astype(float),
        answered=rng.random(units * size) < 0.7,
        cluster=np.repeat(np.arange(units), size),
        units=units,
    )
    metrics = requested(convention)
    assert Ranking(columns).by_confidence._dense == dense
    weights = rng.integers(0, 4, (20, units)).astype(float)
    values = CURVE.build(columns, metrics)(weights)
    for weight, actual in zip(weights, values, strict=True):
        copies = np.concatenate(
            [
                np.tile(np.flatnonzero(columns.cluster == number), int(times))
                for number, times in enumerate(weight)
            ]
        )
        one_unit = replace(columns.take(copies), cluster=np.zeros(len(copies), np.intp), units=1)
        np.testing.assert_allclose(actual, CURVE.build(one_unit, metrics).points, atol=1e-12, rtol=0)


def test_columns_are_named_in_order() -> None:
    metrics = [METRICS["aurc"], METRICS["cmax"], METRICS["risk_at_coverage"]]
    measure = CURVE.build(Columns.ranked([1.0], [1.0]), metrics)
    assert measure.names == ("aurc", "cmax", "risk_at_coverage@0.5")
    assert measure.points.tolist() == [1.0, 1.0, 1.0]


def test_a_unit_without_answers_counts_in_n() -> None:
    columns = Columns.of(
        2,
        loss=np.array([1.0, np.nan]),
        confidence=np.array([1.0, np.nan]),
        answered=np.array([True, False]),
        cluster=np.array([0, 1]),
        units=2,
    )
    weights = np.array([[1.0, 1.0], [1.0, 3.0], [0.0, 2.0]])
    measure = CURVE.build(columns, [METRICS["cmax"], METRICS["risk_at_coverage"].at(0.3)])
    assert measure(weights)[:, 0].tolist() == [0.5, 0.25, 0.0]
    assert np.array_equal(measure(weights)[:, 1], [1.0, np.nan, np.nan], equal_nan=True)


def test_long_convex_parts_of_the_curve_do_not_slow_the_hull() -> None:
    # One early error, then tens of thousands of right answers, then errors again: risks fall as 1/k and then rise.
    n = 60_000
    loss = np.zeros(n)
    loss[0] = 1.0
    loss[-n // 3 :: 7] = 1.0
    rows = Columns.ranked(loss, -np.arange(n, dtype=float))
    aurc, hull = CURVE.build(rows, [METRICS["aurc"], METRICS["aurc_achievable"]]).points
    assert 0 < hull < aurc


def test_the_order_of_losses_is_summed_once_for_all_confidences() -> None:
    rows = Columns.ranked([0.0, 1.0, 2.0], [3, 2, 1])
    other = rows.with_confidence(np.array([1.0, 2.0, 3.0]))
    assert Ranking(rows).by_loss is Ranking(other).by_loss
    assert Ranking(rows).by_confidence is not Ranking(other).by_confidence
    assert Ranking(rows.with_loss(np.ones(3))).by_loss is not Ranking(rows).by_loss


def test_risks_at_fixed_thresholds_by_hand() -> None:
    # Confidences 2, 2, 1 with losses 0, 2, 0 and one abstention, each a separate unit.
    columns = replace(Columns.ranked([0, 2, 0], [2, 2, 1], abstained=1), cluster=np.arange(4), units=4)
    measure = threshold_statistic(columns, np.array([2.0, 1.0]))
    kinds = ("selective", "generalized", "coverage")
    assert measure.names == tuple(f"{kind}[{index}]" for kind in kinds for index in (0, 1))
    weights = np.array([[1.0, 1, 1, 1], [2, 1, 0, 1], [0, 0, 1, 1]])
    expected = [
        [1.0, 2 / 3, 0.5, 0.5, 0.5, 0.75],
        [2 / 3, 2 / 3, 0.5, 0.5, 0.75, 0.75],
        [np.nan, 0.0, 0.0, 0.0, 0.0, 0.5],
    ]
    np.testing.assert_allclose(measure(weights), expected)


@pytest.mark.parametrize("step", [1.0, 1e5, 0.1])
def test_harmonic_numbers_agree_with_exact_sums(step: float) -> None:
    count = np.arange(0.0, 60.0) * step
    actual = harmonic(count[None, :])[0]
    if step < 1.0:
        expected = [float(digamma(value + 1.0)) + np.euler_gamma for value in count]
    else:
        # The terms of every step and the steps are summed without rounding errors.
        parts = 1.0 / np.arange(1.0, count[-1] + 1.0).reshape(-1, int(step))
        steps = [math.fsum(part) for part in parts]
        expected = [math.fsum(steps[:number]) for number in range(len(count))]
    assert actual == pytest.approx(expected, abs=1e-12, rel=1e-12)
    assert harmonic(count[None, 7:])[0] == pytest.approx(actual[7:] - actual[7], abs=1e-12)


@pytest.mark.nightly
def test_large_weights_need_little_memory() -> None:
    program = """
import numpy as np, abstain
rng = np.random.default_rng(0)
truth, prediction = rng.integers(0, 2, (2, 1000))
items = abstain.Items.from_arrays(truth, prediction, confidence=rng.random(1000), weight=np.full(1000, 1e5))
before = open('/proc/self/status').read().split('VmHWM:')[1].split()[0]
found = abstain.evaluate(items, loss="zero_one", resamples=0)["confidence"]
print(before, found.aurc_optimal.value)
"""
    printed, peak = run_measured(program)
    before, value = printed.split()
    assert peak - int(before) < 100_000  # kilobytes
    # With so many equal rows, the sum is nearly the integral of (1 - right / c) over c from the accuracy to 1.
    wrong = 0.5
    assert float(value) == pytest.approx(wrong + (1 - wrong) * np.log(1 - wrong), abs=0.02)
