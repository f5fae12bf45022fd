"""Metrics at matched coverage by hand: both systems are limited to the same coverage for every weight vector."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pytest

from abstain.metrics import selective
from abstain.metrics._columns import Columns
from abstain.metrics.matched import SELECTIVE_RISK, end_coverage, matched_statistic, values_of_groups
from abstain.metrics.registry import MATCHED, METRICS, MetricSpecification, find_metric
from abstain.metrics.selective import CONVENTIONS
from abstain.resampling import Statistic, WeightBatch

if TYPE_CHECKING:
    from collections.abc import Sequence

FORMS = [metric for metric in METRICS.values() if metric.matched is not None]


def ranking(loss: Sequence[float], confidence: Sequence[float], answered: Sequence[int]) -> Columns:
    """One unit per row; a row with a loss is wrong."""
    return Columns.of(
        len(loss),
        loss=np.array(loss, dtype=float),
        confidence=np.array(confidence, dtype=float),
        answered=np.array(answered, dtype=bool),
        truth=np.ones(len(loss)),
        prediction=np.where(np.array(loss) > 0, 0.0, 1.0),
        cluster=np.arange(len(loss)),
        units=len(loss),
    )


def metric_of(name: str) -> MetricSpecification:
    return SELECTIVE_RISK if name == "risk" else find_metric(name)


def matched(name: str, left: Columns, right: Columns) -> Statistic:
    return matched_statistic(left, right, [metric_of(name)])


# Left answers two of four items (losses 0, 1), right all four (losses 0, 1, 0, 1, two of them tied).
LEFT = ranking([0, 1, 9, 9], [4, 3, 0, 0], [1, 1, 0, 0])
RIGHT = ranking([0, 1, 0, 1], [4, 2, 2, 1], [1, 1, 1, 1])
NAMES = ["risk", *(metric.key for metric in FORMS)]


@pytest.mark.parametrize(
    ("name", "left", "right"),
    [
        # Left at 1/2: risks 0 and 1/2 at 1/4 and 1/2. Right: 0 at 1/4, then a tied block to 3/4 with risk 1/3; at 1/2
        # the line is at 1/6, the loss sum at 1/2 of 4 items.
        ("aurc", 1 / 16, 1 / 4 * 1 / 12),
        ("augrc", 1 / 4 * 1 / 8, 1 / 4 * 1 / 16),
        ("auarc", 1 / 2 - 1 / 16, 1 / 2 - 1 / 48),
        # One item of the tied block of two counts: its expected loss is 1/2, over two items.
        ("risk", 1 / 2, 1 / 4),
        ("selective_accuracy", 1 / 2, 3 / 4),
        ("wrong_rate", 1 / 4, 1 / 8),
        # Wrong over wrong and declined: 1 of 3 on the left; on the right 1/2 of 2 + 1/2.
        ("hallucination_rate", 1 / 3, 1 / 5),
        # Left: the two losses are already in the best order.
        ("eaurc", 0.0, None),
        ("eaugrc", 0.0, None),
        # Truncated at a coverage that both reach, the areas end there.
        ("aurc_at_coverage@0.25", 0.0, 0.0),
        ("augrc_at_coverage@0.75", 1 / 4 * 1 / 8, 1 / 4 * 1 / 16),
    ],
)
def test_by_hand(name: str, left: float, right: float | None) -> None:
    coverage, *values = matched(name, LEFT, RIGHT).points
    assert coverage == (0.25 if name.endswith("@0.25") else 0.5)
    assert values[0] == pytest.approx(left)
    if right is not None:
        assert values[1] == pytest.approx(right)


def test_the_best_order_is_that_of_the_remaining_items() -> None:
    """Right answers four items, two of them wrong; limited to two items, one of those is wrong and ranked first."""
    left = ranking([0, 0, 9, 9], [2, 1, 0, 0], [1, 1, 0, 0])
    right = ranking([1, 0, 1, 0], [4, 3, 2, 1], [1, 1, 1, 1])
    # Risks 1 and 1/2 at 1/4 and 1/2: 1/4 + 3/16. The best order of the same two has 0 and 1/2: 1/16.
    assert matched("eaurc", left, right).points[2] == pytest.approx(1 / 4 + 3 / 16 - 1 / 16)
    # The loss sum goes from 0 to 1/4 and stays there: 1/32 + 1/16; in the best order 1/32.
    assert matched("eaugrc", left, right).points[2] == pytest.approx(1 / 16)


def test_the_excess_is_over_the_best_order_for_any_losses() -> None:
    """Losses of 0 to 3: the excess is that of the most confident items with the others declined."""
    rng = np.random.default_rng(8)
    loss = rng.integers(0, 4, 30).astype(float)
    confidence, answered = np.argsort(rng.random(30)), rng.random(30) < 0.5
    right = ranking(loss.tolist(), confidence.tolist(), [1] * 30)
    left = ranking(loss.tolist(), confidence.tolist(), answered.astype(int).tolist())
    top = np.argsort(-confidence)[: int(answered.sum())]
    for name, function in (("eaurc", selective.eaurc), ("eaugrc", selective.eaugrc)):
        expected = function(loss[top], confidence[top], abstained=30 - len(top))
        assert matched(name, left, right).points[2] == pytest.approx(expected)


def test_areas_are_the_truncated_ones() -> None:
    rng = np.random.default_rng(3)
    loss, confidence, answered = rng.random((2, 50)), rng.integers(0, 6, (2, 50)), rng.random((2, 50)) < 0.7
    rankings = [ranking(*(column[i].tolist() for column in (loss, confidence, answered))) for i in range(2)]
    at = float(answered.mean(axis=1).min())
    for metric, function in (("aurc", selective.aurc_at_coverage), ("augrc", selective.augrc_at_coverage)):
        coverage, *sides = matched(metric, *rankings).points
        assert coverage == pytest.approx(at)
        for i in range(2):
            expected = function(loss[i], confidence[i], at, abstained=~answered[i])
            assert sides[i] == pytest.approx(expected)


@pytest.mark.parametrize("name", NAMES)
def test_with_every_weight_vector_both_sides_end_at_the_smaller_coverage(name: str) -> None:
    weights = np.array([[1.0, 1, 1, 1], [2, 2, 0, 0], [0, 3, 1, 0]])
    values = matched(name, LEFT, RIGHT)(weights)
    end = metric_of(name).value if "at_coverage" in name else 1.0
    assert values[:, 0].tolist() == [min(end, each) for each in (0.5, 1.0, 0.75)]
    assert values[0].tolist() == matched(name, LEFT, RIGHT).points.tolist()


@pytest.mark.parametrize("convention", CONVENTIONS)
def test_metrics_without_weight_are_undefined_and_raise_no_error(convention: str) -> None:
    """A resample may contain no row of a group."""
    metrics = [metric.in_convention(convention) for metric in FORMS]
    values = matched_statistic(LEFT, RIGHT, metrics)(np.array([[0.0, 0, 0, 0], [0, 0, 2, 2], [1, 1, 1, 1]]))
    assert np.isnan(values[0]).all()
    coverages = values[1, ::3]
    assert (coverages == 0.0).all()
    assert np.isfinite(values[2]).all()


@pytest.mark.parametrize("convention", CONVENTIONS)
@pytest.mark.parametrize("metric", FORMS, ids=lambda metric: metric.key)
def test_at_equal_coverage_a_metric_is_that_of_the_whole_curve(
    metric: MetricSpecification, convention: str
) -> None:
    rng = np.random.default_rng(5)
    sides = []
    for _ in range(2):
        wrong, answered = rng.random(40) < 0.4, np.arange(40) < 30
        sides.append(
            ranking(wrong.astype(float).tolist(), rng.integers(0, 9, 40).tolist(), answered.tolist())
        )
    metric = metric.in_convention(convention)
    weights = rng.multinomial(40, [1 / 40] * 40, 5).astype(float)
    # The same rows are answered on both sides, so the coverages are equal for all weights.
    measure, whole = (
        matched_statistic(sides[0], sides[1], [metric]),
        [metric.family.build(side, [metric]) for side in sides],
    )
    values = measure(weights)
    for index, side in enumerate(whole, start=1):
        assert values[:, index] == pytest.approx(side(weights)[:, 0])
    assert measure.points[0] == pytest.approx(end_coverage(metric, sides[0]))


@pytest.mark.parametrize("name", NAMES)
def test_a_ranking_compared_with_itself_gives_equal_values(name: str) -> None:
    weights = np.random.default_rng(0).multinomial(4, [0.25] * 4, 50).astype(float)
    values = matched(name, RIGHT, RIGHT)(weights)
    np.testing.assert_array_equal(values[:, 1], values[:, 2])
    assert not math.isnan(matched(name, RIGHT, RIGHT).points[1])


@pytest.mark.parametrize("name", NAMES)
def test_declining_at_random_brings_no_advantage(name: str) -> None:
    """A system that declines 86% of 20,000 items at random is not better at matched coverage by any metric."""
    rng = np.random.default_rng(11)
    n = 20_000
    confidence = rng.integers(0, 50, n) / 50
    wrong = (rng.random(n) > 0.55 + 0.4 * confidence).astype(float)
    everything = ranking(wrong.tolist(), confidence.tolist(), [1] * n)
    thinned = ranking(wrong.tolist(), confidence.tolist(), (rng.random(n) < 0.14).astype(int).tolist())
    _, full, timid = matched(name, everything, thinned).points
    behind = timid - full if metric_of(name).direction == "lower" else full - timid
    assert behind > 0.0 or end_coverage(metric_of(name), everything) == end_coverage(metric_of(name), thinned)


def test_several_pairs_and_metrics_give_the_same_values_as_each_separately() -> None:
    third = ranking([1, 0, 1, 0], [1, 2, 3, 4], [1, 0, 1, 1])
    weights = np.array([[1.0, 1, 1, 1], [2, 1, 1, 0]])
    pairs = ((LEFT, RIGHT), (third, RIGHT))
    both = [SELECTIVE_RISK, METRICS["augrc"]]
    together = Statistic.joined([matched_statistic(*pair, both) for pair in pairs])
    values = together(WeightBatch(weights))
    assert together.names[:4] == ("risk coverage", "risk left", "risk right", "augrc coverage")
    assert len(together.names) == values.shape[1] == 2 * 6
    for index, (left, right) in enumerate(pairs):
        for number, metric in enumerate(("risk", "augrc")):
            start = 6 * index + 3 * number
            assert (values[:, start : start + 3] == matched(metric, left, right)(weights)).all()


def test_every_metric_that_declining_improves_is_matched() -> None:
    """Areas and error rates, which declining improves, have a form at matched coverage."""
    shrinking = {metric.name for metric in METRICS.values() if metric.shrinks_by_declining}
    assert shrinking == {
        "aurc", "augrc", "eaurc", "eaugrc", "aurc_achievable", "aurc_at_coverage", "augrc_at_coverage",
        "class_balanced_aurc", "wrong_rate", "hallucination_rate",
    }  # fmt: skip
    assert all(METRICS[name].comparison == MATCHED for name in shrinking)


@pytest.mark.parametrize("name", NAMES)
def test_values_of_groups_are_those_of_two_separate_rankings(name: str) -> None:
    rng = np.random.default_rng(7)
    rows, groups = 90, 6
    group = rng.integers(0, groups, rows)
    loss, confidence = rng.integers(0, 2, rows), np.round(rng.random(rows), 1)
    answered = rng.random(rows) < 0.5 + 0.08 * group
    columns = ranking(loss.tolist(), confidence.tolist(), answered.tolist())
    values = values_of_groups(columns.in_units(group, groups), metric_of(name))
    for number in range(groups):
        inside = group == number
        expected = matched(name, columns.take(~inside), columns.take(inside)).points
        assert values[:, number] == pytest.approx(expected, rel=1e-12, nan_ok=True)
