"""Abstention safety: every metric computed by hand, and the cases in which it is undefined."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import pytest

from abstain import Items
from abstain.errors import ArgumentError, DataError
from abstain.metrics import abstention

if TYPE_CHECKING:
    from collections.abc import Callable

# Ten rows. Rows that should be answered: N1 = 3 right, N2 = 2 wrong, N3 = 1 declined.
# Rows that should be declined: N4 = 1 answered (correctly, which does not count), N5 = 3 declined.
TRUTH = [1, 1, 0, 1, 0, 1, 1, 0, 1, 0]
PREDICTION: list[int | None] = [1, 1, 0, 0, 1, None, 1, None, 1, None]
ABSTAINED = [False] * 5 + [True] + [False] + [True] * 3
SHOULD = [False] * 6 + [True] * 4
GUIDED = {"abstained": ABSTAINED, "should_abstain": SHOULD}


@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        (abstention.abstention_accuracy, (3 + 3) / 10),
        (abstention.abstention_precision, 3 / (1 + 3)),
        (abstention.abstention_recall, 3 / (2 + 1 + 3)),
        (abstention.abstention_f1, 2 * 0.75 * 0.5 / (0.75 + 0.5)),
        (abstention.reliable_accuracy, 3 / (3 + 2 + 1)),
        (abstention.effective_reliability, (3 - 2 - 1) / 10),
        (abstention.over_conservativeness, 1 / (3 + 2 + 1)),
    ],
)
def test_metrics_of_the_five_cells_by_hand(metric: Callable[..., float], expected: float) -> None:
    assert metric(TRUTH, PREDICTION, **GUIDED) == pytest.approx(expected)


def test_rates_and_accuracy_when_answered() -> None:
    assert abstention.abstention_rate(ABSTAINED) == 0.4
    assert abstention.answer_rate(ABSTAINED) == 0.6
    # Four of six answers match their label; guidance is not used here.
    assert abstention.selective_accuracy(TRUTH, PREDICTION, abstained=ABSTAINED) == pytest.approx(4 / 6)
    assert abstention.accuracy_when_answered(TRUTH, PREDICTION, abstained=ABSTAINED) == pytest.approx(4 / 6)


def test_deferral() -> None:
    table = abstention.deferral_confusion(ABSTAINED, SHOULD)
    assert table.defer_when_needed == 3
    assert table.answer_when_safe == 5
    assert table.abstain_when_should_answer == 1
    assert table.answer_when_should_defer == 1
    assert table.n_labeled == 10
    assert abstention.deferral_alignment(ABSTAINED, SHOULD) == 0.8
    assert abstention.deferral_alignment([True, False], [None, False]) == 1.0


@pytest.mark.parametrize(("cost", "expected"), [(0.0, 0.3), (1.0, 0.0), (2.0, -0.3), (0.5, 0.15)])
def test_effective_reliability_at_a_cost(cost: float, expected: float) -> None:
    actual = abstention.effective_reliability(TRUTH, PREDICTION, **GUIDED, cost=cost)
    assert actual == pytest.approx(expected)


def test_without_guidance_every_row_should_be_answered() -> None:
    actual = abstention.effective_reliability(TRUTH, PREDICTION, abstained=ABSTAINED)
    assert actual == pytest.approx((4 - 2) / 10)
    assert abstention.reliable_accuracy(TRUTH, PREDICTION, abstained=ABSTAINED) == pytest.approx(4 / 6)


def test_simpleqa_f() -> None:
    # c = 0.4 and i = 0.2, so CGA = 2/3 and F = 2 * (2/3) * 0.4 / (2/3 + 0.4) = 0.5.
    assert abstention.simpleqa_f(TRUTH, PREDICTION, abstained=ABSTAINED) == pytest.approx(0.5)
    assert abstention.simpleqa_f([1, 1], [0, None], abstained=[False, True]) == 0.0
    assert math.isnan(abstention.simpleqa_f([1], [None], abstained=[True]))


@pytest.mark.parametrize(("target", "expected"), [(0.0, 0.4), (0.5, 0.2), (0.75, -0.2), (0.9, -1.4)])
def test_confidence_target_score(target: float, expected: float) -> None:
    actual = abstention.confidence_target_score(TRUTH, PREDICTION, abstained=ABSTAINED, target=target)
    assert actual == pytest.approx(expected)


def test_coverage_at_accuracy_never_splits_a_tied_block() -> None:
    truth, prediction = [1, 1, 1, 1, 1], [1, 1, 0, 1, None]
    confidence = [0.9, 0.8, 0.7, 0.7, 0.1]
    rows = {"abstained": [False] * 4 + [True]}
    # Accuracy is 1 at coverage 2/5 and 3/4 at 4/5, after the tied block at 0.7.
    assert abstention.coverage_at_accuracy(truth, prediction, confidence, 1.0, **rows) == 0.4
    assert abstention.coverage_at_accuracy(truth, prediction, confidence, 0.75, **rows) == 0.8
    assert abstention.coverage_at_accuracy(truth, prediction, confidence, 0.76, **rows) == 0.4
    assert abstention.coverage_at_accuracy([1], [0], [0.5], 0.5) == 0.0
    assert abstention.coverage_at_risk([0, 0, 1, 0], confidence[:4], 0.25, abstained=1) == 0.8


def test_abstention_auroc() -> None:
    # Pairs (should be declined, should be answered): 0.2 < 0.9 wins, 0.2 = 0.2 ties, 0.6 < 0.9 wins, 0.6 > 0.2 loses.
    assert abstention.abstention_auroc([0.2, 0.6, 0.9, 0.2], [True, True, False, False]) == 2.5 / 4
    assert math.isnan(abstention.abstention_auroc([0.2, 0.6], [True, True]))
    assert abstention.abstention_auroc([0.2, None, 0.9], [True, True, False]) == 1.0


def test_weights_are_multiplicities_in_the_population_table() -> None:
    items = Items.from_arrays([1, 0, 1, 1], [1, 1, 0, None], abstained=[0, 0, 0, 1], weight=[2, 3, 0.2, 4])
    assert abstention.population_table(items) == abstention.PopulationTable(
        right=2, wrong=3, abstained=4, failed=0, unscored=0
    )


def test_population_table_has_all_outcomes() -> None:
    items = Items.from_arrays(
        [1, 0, 1, 1, None],
        [1, 1, None, None, 1],
        abstained=[False, False, True, False, False],
        failed=[False, False, False, True, False],
    )
    table = abstention.population_table(items)
    assert (table.right, table.wrong, table.abstained, table.failed, table.unscored) == (1, 1, 1, 1, 1)
    assert table.total == 5
    assert table.proportions() == {"right": 0.25, "wrong": 0.25, "abstained": 0.25, "failed": 0.25}


class TestUndefined:
    def test_a_ratio_with_denominator_zero_is_nan(self) -> None:
        none_abstained: dict[str, Any] = {"abstained": [False], "should_abstain": [False]}
        assert math.isnan(abstention.abstention_precision([1], [1], **none_abstained))
        assert math.isnan(abstention.abstention_recall([1], [1], **none_abstained))
        assert math.isnan(abstention.abstention_f1([1], [1], **none_abstained))
        all_declined: dict[str, Any] = {"abstained": [True], "should_abstain": [True]}
        assert math.isnan(abstention.over_conservativeness([1], [None], **all_declined))
        assert math.isnan(abstention.reliable_accuracy([1], [None], **all_declined))
        assert math.isnan(abstention.selective_accuracy([1], [None], abstained=[True]))

    def test_f1_is_zero_if_precision_and_recall_are_zero(self) -> None:
        rows: dict[str, Any] = {"abstained": [True, False], "should_abstain": [False, True]}
        assert abstention.abstention_f1([1, 1], [None, 1], **rows) == 0.0


class TestBadInput:
    def test_guidance_must_be_boolean(self) -> None:
        with pytest.raises(DataError, match="should_abstain must be True or False, got text at row 1"):
            abstention.deferral_alignment([True, False], [True, "yes"])
        with pytest.raises(DataError, match="should_abstain must be True or False, got 2 at row 1"):
            abstention.deferral_alignment([True, False], [1, 2])

    def test_lengths_must_be_equal(self) -> None:
        with pytest.raises(DataError, match="y_pred has 1 rows, but 2 were expected"):
            abstention.selective_accuracy([1, 0], [1])

    def test_empty_input_is_refused(self) -> None:
        with pytest.raises(DataError, match="abstained is empty"):
            abstention.abstention_rate([])

    def test_a_missing_label_is_refused(self) -> None:
        with pytest.raises(DataError, match="y_true is missing at row 1"):
            abstention.selective_accuracy([1, None], [1, 1])

    @pytest.mark.parametrize("target", [1.0, -0.1, 75])
    def test_a_target_must_be_at_least_zero_and_less_than_one(self, target: float) -> None:
        with pytest.raises(ArgumentError, match="target must be at least 0 and less than 1"):
            abstention.confidence_target_score([1], [1], target=target)

    def test_a_negative_cost_is_refused(self) -> None:
        with pytest.raises(ArgumentError, match="cost must not be negative, got -1"):
            abstention.effective_reliability([1], [1], cost=-1)

    def test_an_accuracy_must_be_a_proportion(self) -> None:
        with pytest.raises(ArgumentError, match=r"accuracy must lie in \[0, 1\], got 90; did you mean 0.9"):
            abstention.coverage_at_accuracy([1], [1], [0.5], 90)

    def test_a_ranking_needs_the_confidence_of_every_row(self) -> None:
        with pytest.raises(DataError, match="confidence is nan at row 0"):
            abstention.coverage_at_accuracy([1], [1], [None], 0.9)
