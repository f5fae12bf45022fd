from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from sklearn.metrics import roc_auc_score, roc_curve

import reference
from abstain import ArgumentError, DataError
from abstain.metrics import curves, selective

if TYPE_CHECKING:
    from collections.abc import Callable

AREAS = (
    selective.aurc,
    selective.augrc,
    selective.aurc_optimal,
    selective.augrc_optimal,
    selective.eaurc,
    selective.eaugrc,
    selective.aurc_achievable,
)
LOSSES = [0.0, 2.0, 0.0]
LEVELS = [2.0, 2.0, 1.0]

rows = st.lists(
    st.tuples(st.sampled_from([0.0, 1 / 3, 1.0, 2.0, 3.0]), st.integers(0, 4), st.booleans()),
    min_size=1,
    max_size=25,
)


class TestWorkedByHand:
    """Confidences 2, 2, 1 with losses 0, 2, 0 and five abstentions: N = 8."""

    def test_curve(self) -> None:
        curve = curves.risk_coverage_curve(LOSSES, LEVELS, abstained=5)
        assert curve.coverage.tolist() == [2 / 8, 3 / 8]
        assert curve.selective_risk.tolist() == [1.0, 2 / 3]
        assert curve.generalized_risk.tolist() == [2 / 8, 2 / 8]
        assert curve.threshold.tolist() == [2.0, 1.0]
        assert curve.total == 8.0
        assert curve.cmax == 3 / 8

    def test_areas(self) -> None:
        assert selective.cmax(LOSSES, LEVELS, abstained=5) == 3 / 8
        # Flat at 1 to 1/4, then down to 2/3 at 3/8: 1/4 + 1/8 * 5/6.
        assert selective.aurc(LOSSES, LEVELS, abstained=5) == pytest.approx(17 / 48, abs=1e-15)
        # A triangle to 1/4 at height 1/4, then flat: 1/32 + 1/32.
        assert selective.augrc(LOSSES, LEVELS, abstained=5) == pytest.approx(1 / 16, abs=1e-15)

    def test_optimal_areas(self) -> None:
        # Risks 0, 0, 2/3 at 1/8, 2/8, 3/8: one trapezoid of 1/8 * 1/3.
        assert selective.aurc_optimal(LOSSES, abstained=5) == pytest.approx(1 / 24, abs=1e-15)
        # Generalized risks 0, 0, 1/4: one trapezoid of 1/8 * 1/8.
        assert selective.augrc_optimal(LOSSES, abstained=5) == pytest.approx(1 / 64, abs=1e-15)
        assert selective.eaurc(LOSSES, LEVELS, abstained=5) == pytest.approx(17 / 48 - 1 / 24, abs=1e-15)
        assert selective.eaugrc(LOSSES, LEVELS, abstained=5) == pytest.approx(1 / 16 - 1 / 64, abs=1e-15)

    def test_truncated_areas_may_end_between_operating_points(self) -> None:
        # At 5/16, half way from (1/4, 1) to (3/8, 2/3), the risk is 5/6: 1/4 + 1/16 * 11/12.
        assert selective.aurc_at_coverage(LOSSES, LEVELS, 5 / 16, abstained=5) == pytest.approx(
            1 / 4 + 11 / 192
        )
        assert selective.augrc_at_coverage(LOSSES, LEVELS, 5 / 16, abstained=5) == pytest.approx(
            1 / 32 + 1 / 64
        )
        # Inside the first tied block the risk is constant, and the generalized risk is a line from 0.
        assert selective.aurc_at_coverage(LOSSES, LEVELS, 1 / 8, abstained=5) == pytest.approx(1 / 8)
        assert selective.augrc_at_coverage(LOSSES, LEVELS, 1 / 8, abstained=5) == pytest.approx(1 / 128)
        # The area ends at Cmax.
        assert selective.aurc_at_coverage(LOSSES, LEVELS, 1.0, abstained=5) == pytest.approx(17 / 48)

    def test_points(self) -> None:
        assert selective.risk_at_coverage(LOSSES, LEVELS, 0.1, abstained=5) == 1.0
        assert selective.risk_at_coverage(LOSSES, LEVELS, 0.3, abstained=5) == pytest.approx(2 / 3)
        assert math.isnan(selective.risk_at_coverage(LOSSES, LEVELS, 0.4, abstained=5))
        assert selective.coverage_at_risk(LOSSES, LEVELS, 0.7, abstained=5) == 3 / 8
        assert selective.coverage_at_risk(LOSSES, LEVELS, 0.5, abstained=5) == 0.0

    def test_achievable_skips_a_bump(self) -> None:
        # Points (1/4, 0), (2/4, 1/2), (3/4, 1/3), (1, 1/4): the hull runs straight from the first to the last.
        loss, confidence = [0, 1, 0, 0], [4, 3, 2, 1]
        assert selective.aurc_achievable(loss, confidence) == pytest.approx(3 / 4 * 1 / 8, abs=1e-15)
        expected = (0 + 1 / 2) / 8 + (1 / 2 + 1 / 3) / 8 + (1 / 3 + 1 / 4) / 8
        assert selective.aurc(loss, confidence) == pytest.approx(expected, abs=1e-15)

    def test_tie_sensitivity(self) -> None:
        # Best order 0, 2 | 0 with risks 0, 1, 2/3. Worst order 2, 0 | 0 with risks 2, 1, 2/3. Each over eighths.
        ties = curves.tie_sensitivity(LOSSES, LEVELS, abstained=5)
        assert ties.best == pytest.approx((0 + 0.5 + 5 / 6) / 8)
        assert ties.worst == pytest.approx((2 + 1.5 + 5 / 6) / 8)
        assert ties.tied_proportion == pytest.approx(2 / 3)
        assert ties.matters
        general = curves.tie_sensitivity(LOSSES, LEVELS, abstained=5, area="augrc")
        assert general.best == pytest.approx((0 + 1 + 2) / 64)
        assert general.worst == pytest.approx((1 + 2 + 2) / 64)


class TestConventions:
    """Losses 0, 2 in one tied block, then 0. No abstentions: N = 3."""

    def test_interpolated(self) -> None:
        # In the tied block the expected risk is always 1; then S remains 2 while k goes from 2 to 3.
        value = selective.aurc(LOSSES, LEVELS, convention="interpolated")
        assert value == pytest.approx((2 + 2 * math.log(3 / 2)) / 3, abs=1e-15)

    def test_mean(self) -> None:
        value = selective.aurc(LOSSES, LEVELS, convention="mean")
        assert value == pytest.approx((1 + 1 + 2 / 3) / 3, abs=1e-15)
        assert selective.augrc(LOSSES, LEVELS, convention="mean") == pytest.approx((1 + 2 + 2) / 9, abs=1e-15)

    def test_torch_uncertainty(self) -> None:
        # Trapezoid over single items on [1/3, 1], divided by 2/3.
        value = selective.aurc(LOSSES, LEVELS, convention="torch-uncertainty")
        assert value == pytest.approx(((1 + 1) / 2 + (1 + 2 / 3) / 2) / 3 / (2 / 3), abs=1e-15)
        general = selective.augrc(LOSSES, LEVELS, convention="torch-uncertainty")
        assert general == pytest.approx(((1 + 2) / 2 + (2 + 2) / 2) / 9 / (2 / 3), abs=1e-15)

    def test_torch_uncertainty_is_undefined_for_a_single_item(self) -> None:
        assert math.isnan(selective.aurc([1.0], [1.0], convention="torch-uncertainty"))

    def test_mean_is_the_expectation_over_all_tie_orders(self) -> None:
        loss, confidence = [0.0, 2.0, 1.0, 0.0], [1, 1, 1, 0]
        actual = []
        for order in itertools.permutations(range(3)):
            ranked = [loss[row] for row in order] + loss[3:]
            actual.append(np.mean(np.cumsum(ranked) / np.arange(1, 5)))
        assert selective.aurc(loss, confidence, convention="mean") == pytest.approx(
            np.mean(actual), abs=1e-14
        )

    def test_interpolated_is_the_limit_of_the_mean_over_repeated_items(self) -> None:
        many = selective.aurc(LOSSES * 4000, LEVELS * 4000, convention="mean")
        assert many == pytest.approx(selective.aurc(LOSSES, LEVELS, convention="interpolated"), abs=1e-4)

    @pytest.mark.parametrize("convention", selective.CONVENTIONS)
    def test_areas_without_ties_agree_with_numpy(self, convention: str) -> None:
        loss, confidence = [0, 1, 0, 1, 1, 0], [6, 5, 4, 3, 2, 1]
        risks = np.cumsum(loss) / np.arange(1, 7)
        expected = {
            "trapezoid": np.trapezoid([risks[0], *risks], np.arange(7) / 6),
            "interpolated": None,
            "mean": risks.mean(),
            "torch-uncertainty": np.trapezoid(risks, np.arange(1, 7) / 6) / (1 - 1 / 6),
        }[convention]
        if expected is not None:
            value = selective.aurc(loss, confidence, convention=convention)
            assert value == pytest.approx(expected, abs=1e-14)

    @pytest.mark.parametrize("convention", selective.CONVENTIONS)
    @pytest.mark.parametrize("area", [selective.aurc_at_coverage, selective.augrc_at_coverage])
    def test_an_area_truncated_at_coverage_one_is_the_whole_area(
        self, convention: str, area: Callable[..., float]
    ) -> None:
        whole = selective.aurc if area is selective.aurc_at_coverage else selective.augrc
        value = area(LOSSES, LEVELS, 1.0, abstained=2, convention=convention)
        assert value == pytest.approx(whole(LOSSES, LEVELS, abstained=2, convention=convention), abs=1e-14)

    @pytest.mark.parametrize("convention", ["mean", "torch-uncertainty"])
    def test_truncated_areas_over_single_items(self, convention: str) -> None:
        # Expected risks 1, 1, 2/3 over thirds; half way between the second and the third item.
        value = selective.aurc_at_coverage(LOSSES, LEVELS, 2.5 / 3, convention=convention)
        by_hand = {
            "mean": (1 + 1 + 0.5 * 2 / 3) / 3,
            "torch-uncertainty": (1 + 0.5 * (1 + 5 / 6) / 2) / 3 / (2 / 3),
        }
        assert value == pytest.approx(by_hand[convention], abs=1e-14)

    @given(rows)
    @settings(max_examples=60, deadline=None)
    def test_mean_agrees_with_the_reference_implementation(self, data: list[tuple[float, int, bool]]) -> None:
        loss, confidence, abstained = _columns(data)
        kept = [row for row, declined in enumerate(abstained) if not declined]
        risks = reference.expected_risks([loss[row] for row in kept], [confidence[row] for row in kept])
        value = selective.aurc(loss, confidence, abstained=abstained, convention="mean")
        assert value == pytest.approx(sum(risks) / len(loss), abs=1e-12)

    def test_unknown_convention_suggests_the_nearest(self) -> None:
        with pytest.raises(
            ArgumentError, match=r"unknown convention 'trapezoids' \(did you mean 'trapezoid'\?\)"
        ):
            selective.aurc([1], [1], convention="trapezoids")


@pytest.mark.slow
@given(rows)
@settings(max_examples=150, deadline=None)
def test_every_metric_agrees_with_the_reference_implementation(data: list[tuple[float, int, bool]]) -> None:
    loss, confidence, abstained = _columns(data)
    kept = [row for row, declined in enumerate(abstained) if not declined]
    answered = [loss[row] for row in kept], [confidence[row] for row in kept], len(loss)
    best = (answered[0], reference.optimal_confidence(answered[0]), answered[2])
    common: dict[str, Any] = {"abstained": abstained}
    expected = {
        "aurc": reference.aurc(*answered),
        "augrc": reference.augrc(*answered),
        "aurc_optimal": reference.aurc(*best),
        "augrc_optimal": reference.augrc(*best),
        "aurc_achievable": reference.achievable(*answered),
    }
    for name, value in expected.items():
        assert getattr(selective, name)(loss, confidence, **common) == pytest.approx(value, abs=1e-10), name
    for end in (0.05, 0.37, 0.5, 0.8, 1.0):
        assert selective.aurc_at_coverage(loss, confidence, end, **common) == pytest.approx(
            reference.aurc_at(*answered, end), abs=1e-12
        )
        assert selective.augrc_at_coverage(loss, confidence, end, **common) == pytest.approx(
            reference.augrc_at(*answered, end), abs=1e-12
        )
        risk = reference.risk_at(*answered, end)
        assert selective.risk_at_coverage(loss, confidence, end, **common) == pytest.approx(
            math.nan if risk is None else risk, nan_ok=True
        )


def test_augrc_is_a_function_of_auroc_and_accuracy() -> None:
    rng = np.random.default_rng(0)
    for size in (20, 400):
        loss = rng.integers(0, 2, size).astype(float)
        confidence = rng.integers(0, 7, size) / 7
        accuracy = 1 - loss.mean()
        auroc = roc_auc_score(1 - loss, confidence)
        expected = (1 - auroc) * accuracy * (1 - accuracy) + (1 - accuracy) ** 2 / 2
        assert selective.augrc(loss, confidence) == pytest.approx(expected, abs=1e-14)


class TestInvariants:
    rng = np.random.default_rng(3)
    loss = rng.integers(0, 4, 60).astype(float)
    confidence = rng.integers(0, 12, 60).astype(float)
    abstained = rng.random(60) < 0.3
    functions: tuple[Callable[..., float], ...] = (*AREAS, selective.cmax)

    def test_row_order(self) -> None:
        order = self.rng.permutation(60)
        for function in self.functions:
            before = function(self.loss, self.confidence, abstained=self.abstained)
            after = function(self.loss[order], self.confidence[order], abstained=self.abstained[order])
            assert after == pytest.approx(before, abs=1e-12)

    @pytest.mark.parametrize("convention", selective.CONVENTIONS)
    def test_a_weight_is_a_repetition(self, convention: str) -> None:
        weights = self.rng.integers(0, 4, 60)
        repeated = np.repeat(np.arange(60), weights)
        for function in AREAS:
            weighted = function(
                self.loss,
                self.confidence,
                abstained=self.abstained,
                sample_weight=weights,
                convention=convention,
            )
            copied = function(
                self.loss[repeated],
                self.confidence[repeated],
                abstained=self.abstained[repeated],
                convention=convention,
            )
            assert weighted == pytest.approx(copied, abs=1e-12), function.__name__

    def test_only_the_order_of_confidences_matters(self) -> None:
        for function in self.functions:
            before = function(self.loss, self.confidence, abstained=self.abstained)
            assert function(self.loss, np.exp(self.confidence) - 50, abstained=self.abstained) == before

    def test_values_of_abstained_rows_do_not_matter(self) -> None:
        loss, confidence = self.loss.copy(), self.confidence.copy()
        loss[self.abstained] = confidence[self.abstained] = np.nan
        for function in self.functions:
            before = function(self.loss, self.confidence, abstained=self.abstained)
            assert function(loss, confidence, abstained=self.abstained) == before

    def test_best_and_worst_tie_orders_enclose_every_order(self) -> None:
        loss, confidence = [0.0, 2.0, 1.0, 0.0, 3.0], [1.0, 1.0, 1.0, 0.0, 0.0]
        ties = curves.tie_sensitivity(loss, confidence)
        areas = []
        for first in itertools.permutations(range(3)):
            for second in itertools.permutations(range(3, 5)):
                order = [*first, *second]
                areas.append(selective.aurc([loss[row] for row in order], [5, 4, 3, 2, 1]))
        assert ties.best == pytest.approx(min(areas))
        assert ties.worst == pytest.approx(max(areas))

    def test_fractional_weights_lie_between_whole_ones(self) -> None:
        low, high = (selective.aurc_optimal([0.0, 1.0], sample_weight=[1.0, weight]) for weight in (1.0, 2.0))
        assert low < selective.aurc_optimal([0.0, 1.0], sample_weight=[1.0, 1.5]) < high


class TestEdges:
    @pytest.mark.parametrize("function", AREAS)
    def test_an_area_without_answers_is_zero(self, function: Callable[..., float]) -> None:
        assert function([0, 0], [1, 2], abstained=[True, True]) == 0.0

    def test_a_curve_without_answers_is_empty(self) -> None:
        curve = curves.risk_coverage_curve([0, 0], [1, 2], abstained=[True, True])
        assert len(curve) == 0
        assert curve.cmax == 0.0
        assert list(curve) == []
        assert math.isnan(selective.risk_at_coverage([0], [1], 0.5, abstained=[True]))
        assert selective.coverage_at_risk([0], [1], 0.5, abstained=[True]) == 0.0

    def test_one_item(self) -> None:
        assert selective.aurc([2.0], [0.1]) == 2.0
        assert selective.augrc([2.0], [0.1]) == 1.0
        assert selective.aurc_optimal([2.0]) == 2.0
        assert selective.aurc_achievable([2.0], [0.1]) == 2.0

    def test_perfect_answers(self) -> None:
        for function in AREAS:
            assert function([0, 0, 0], [3, 2, 1]) == 0.0

    def test_curve_is_a_sequence(self) -> None:
        curve = curves.risk_coverage_curve([0, 1, 1], [3, 2, 1])
        assert len(curve) == 3
        assert curve[0] == (1 / 3, 0.0)
        assert curve[-1] == (1.0, 2 / 3)
        assert curve[1:] == list(curve)[1:]
        assert (1 / 3, 0.0) in curve

    def test_a_million_items_are_computed_accurately(self) -> None:
        # Losses 1, 0, 1, 0, ... by confidence: after k items the loss sum is ceil(k / 2).
        n = 1_000_000
        loss = np.tile([1.0, 0.0], n // 2)
        confidence = -np.arange(n, dtype=float)
        assert selective.risk_at_coverage(loss, confidence, 1.0) == 0.5
        sums = np.ceil(np.arange(n + 1) / 2)
        assert selective.augrc(loss, confidence) == pytest.approx(np.trapezoid(sums) / n**2, abs=1e-12)
        risks = math.fsum(sums[1:] / np.arange(1, n + 1))
        assert selective.aurc(loss, confidence, convention="mean") == pytest.approx(risks / n, abs=1e-12)
        assert selective.aurc(loss, confidence) == pytest.approx((risks + (1 - 0.5) / 2) / n, abs=1e-12)
        # All even counts have risk 1/2 and odd ones more: the hull falls from (1, 1) to (2, 1/2) and is constant then.
        assert selective.aurc_achievable(loss, confidence) == pytest.approx(
            (1 + 0.75 + (n - 2) / 2) / n, abs=1e-12
        )


class TestBadInput:
    @pytest.mark.parametrize(
        ("loss", "confidence", "message"),
        [
            ([1.0, math.nan], [1, 2], r"loss is nan at row 1 \(1 such rows\).*abstained="),
            ([1.0, 2.0], [math.inf, 2], "confidence is inf at row 0"),
            ([1.0, 2.0], [1], "confidence has 1 rows, but 2 were expected"),
            ([[1.0]], [1], "loss must have one dimension"),
            (["a"], [1], "loss must hold numbers"),
            ([], [], "loss is empty"),
        ],
    )
    def test_data(self, loss: list[Any], confidence: list[Any], message: str) -> None:
        with pytest.raises(DataError, match=message):
            selective.aurc(loss, confidence)

    @pytest.mark.parametrize(
        ("coverage", "message"), [(0.0, "got 0"), (1.2, "0.012"), (-1, "got -1"), (50, "0.5")]
    )
    def test_coverage_outside_its_range(self, coverage: float, message: str) -> None:
        with pytest.raises(ArgumentError, match=rf"coverage must be in \(0, 1\].*{message}"):
            selective.risk_at_coverage([1], [1], coverage)

    def test_weights(self) -> None:
        with pytest.raises(DataError, match="sample_weight must not be negative, got -1 at row 0"):
            selective.aurc([1], [1], sample_weight=[-1])
        with pytest.raises(DataError, match="sample_weight is zero in every row"):
            selective.aurc([1], [1], sample_weight=[0])

    def test_abstained(self) -> None:
        with pytest.raises(DataError, match="abstained must hold booleans"):
            selective.aurc([1, 2], [1, 2], abstained=["x", "y"])
        with pytest.raises(ArgumentError, match="abstained must be at least 0"):
            selective.aurc([1], [1], abstained=-1)


def _columns(data: list[tuple[float, int, bool]]) -> tuple[list[float], list[float], list[bool]]:
    return [row[0] for row in data], [float(row[1]) for row in data], [row[2] for row in data]


def test_one_row_of_weight_five_is_five_tied_items() -> None:
    whole = curves.tie_sensitivity([0, 1, 1, 1, 1, 1], [2, 1, 1, 1, 1, 1])
    assert curves.tie_sensitivity([0, 1], [2, 1], sample_weight=[1, 5]) == whole
    assert whole.tied_proportion == pytest.approx(5 / 6)


class TestAccuracyRejection:
    """Losses 0, 1, 0, 0 from the most confident on: risks 0, 1/2, 1/3, 1/4."""

    LOSS, CONFIDENCE = [0, 1, 0, 0], [4, 3, 2, 1]

    def test_by_hand(self) -> None:
        # Accuracies 1, 1/2, 2/3, 3/4 a quarter apart, flat before the first: (1 + 3/4 + 7/12 + 17/24) / 4.
        assert selective.auarc(self.LOSS, self.CONFIDENCE) == pytest.approx(73 / 96, abs=1e-15)

    @pytest.mark.parametrize("convention", selective.CONVENTIONS)
    def test_auarc_is_the_coverage_minus_the_aurc(self, convention: str) -> None:
        for abstained, reached in ((0, 1.0), (4, 0.5)):
            whole = (4 - 1) / (4 + abstained - 1) if convention == "torch-uncertainty" else reached
            settings: dict[str, Any] = {"abstained": abstained, "convention": convention}
            area = selective.aurc(self.LOSS, self.CONFIDENCE, **settings)
            assert selective.auarc(self.LOSS, self.CONFIDENCE, **settings) == pytest.approx(whole - area)

    def test_auarc_without_answers_is_zero(self) -> None:
        assert selective.auarc([], [], abstained=3) == 0.0

    def test_other_losses_are_refused(self) -> None:
        with pytest.raises(DataError, match="loss must be 0 or 1, got 0.5 at row 1"):
            selective.auarc([0, 0.5], [2, 1])
        # The loss of an abstained row may be anything.
        assert selective.auarc([0, 7], [2, 1], abstained=[False, True]) == 0.5


class TestRejectionRatio:
    def test_by_hand(self) -> None:
        # Areas: random 1/4, of the ranking 7/24 - 1/32 = 23/96, perfect (0 + 0 + 0 + 1/8) / 4 = 1/32.
        assert selective.aurc([0, 1, 0, 0], [4, 3, 2, 1]) == pytest.approx(23 / 96)
        actual = selective.prediction_rejection_ratio([0, 1, 0, 0], [4, 3, 2, 1])
        assert actual == pytest.approx((1 / 4 - 23 / 96) / (1 / 4 - 1 / 32), abs=1e-15)

    @pytest.mark.parametrize("area", ["aurc", "augrc"])
    @pytest.mark.parametrize("convention", selective.CONVENTIONS)
    def test_the_ratio_of_a_perfect_ranking_is_1_and_of_one_tied_block_0(
        self, area: str, convention: str
    ) -> None:
        loss = [0.0, 0.5, 1.0, 1.0, 3.0]
        for confidence, expected in (([5, 4, 3, 2, 1], 1.0), ([1] * 5, 0.0)):
            actual = selective.prediction_rejection_ratio(
                loss, confidence, area, abstained=2, convention=convention
            )
            assert actual == pytest.approx(expected, abs=1e-12)

    def test_the_ratio_of_augrc_areas_is_the_gini_coefficient(self) -> None:
        rng = np.random.default_rng(3)
        wrong, confidence = rng.integers(0, 2, 200), rng.random(200)
        actual = selective.prediction_rejection_ratio(wrong, confidence, "augrc")
        assert actual == pytest.approx(2 * roc_auc_score(1 - wrong, confidence) - 1)

    def test_the_ratio_is_undefined_if_all_losses_are_equal(self) -> None:
        assert math.isnan(selective.prediction_rejection_ratio([1, 1], [2, 1]))
        assert math.isnan(selective.prediction_rejection_ratio([0.1] * 3, [3, 2, 1], abstained=1))
        assert math.isnan(selective.prediction_rejection_ratio([], [], abstained=2))
        # Here rounding errors make the areas differ.
        assert math.isnan(selective.prediction_rejection_ratio([0.3] * 26, [1] * 26, abstained=3))
        with pytest.raises(ArgumentError, match="unknown area 'auroc'.*known: aurc, augrc"):
            selective.prediction_rejection_ratio([0, 1], [2, 1], "auroc")


def test_the_optimum_does_not_depend_on_the_unit_of_the_weights() -> None:
    # Risks 0 and 1/2 at coverages 1/2 and 1: the trapezoids have areas 0 and 1/8.
    assert selective.aurc_optimal([1, 0], [0.1, 0.2]) == 0.125
    for weight in (0.1, 1e-9, 2.0, 1e9):
        assert selective.aurc_optimal([1, 0], [0.1, 0.2], sample_weight=[weight, weight]) == pytest.approx(
            0.125
        )
    # Weights of 2 and 4 count as 1 and 2 items: risks 0, 0 and 1/3.
    assert selective.aurc_optimal([1, 0], [0.1, 0.2], sample_weight=[2, 4]) == pytest.approx(1 / 18)


class TestClassBalance:
    """Three items of class a with weight 2/3 each, one of class b with weight 2."""

    LOSS, CONFIDENCE, TRUTH = [0, 1, 0, 1], [4, 3, 2, 1], ["a", "a", "a", "b"]

    def test_by_hand(self) -> None:
        # Risks 0, 1/2, 1/3, 2/3 at coverages 1/6, 1/3, 1/2, 1.
        actual = selective.class_balanced_aurc(self.LOSS, self.CONFIDENCE, self.TRUTH)
        assert actual == pytest.approx(13 / 36, abs=1e-15)
        # The third is declined but still counts in its class: risks 0, 1/2, 4/5 at 1/6, 1/3, 5/6.
        mask = [False, False, True, False]
        actual = selective.class_balanced_aurc(self.LOSS, self.CONFIDENCE, self.TRUTH, abstained=mask)
        assert actual == pytest.approx(11 / 30, abs=1e-15)

    # The other conventions depend on the number of items, which is 80 for the balanced area only.
    @pytest.mark.parametrize("convention", ["trapezoid", "interpolated"])
    def test_class_balanced_aurc_is_the_aurc_of_weighted_rows(self, convention: str) -> None:
        rng = np.random.default_rng(5)
        truth = rng.choice(3, 80, p=[0.7, 0.2, 0.1])
        loss, confidence = rng.random(80), rng.integers(0, 30, 80)
        mask = rng.random(80) < 0.2
        weight = 80 / 3 / np.bincount(truth)[truth]
        actual = selective.class_balanced_aurc(loss, confidence, truth, abstained=mask, convention=convention)
        expected = selective.aurc(
            loss, confidence, abstained=mask, sample_weight=weight, convention=convention
        )
        assert actual == pytest.approx(expected, rel=1e-9)

    def test_with_classes_of_equal_size_it_is_the_aurc(self) -> None:
        actual = selective.class_balanced_aurc([0, 1, 0, 1], [4, 3, 2, 1], [0, 1, 1, 0])
        assert actual == pytest.approx(selective.aurc([0, 1, 0, 1], [4, 3, 2, 1]))

    def test_abstentions_without_a_class_are_refused(self) -> None:
        with pytest.raises(ArgumentError, match="abstained must be a mask with one entry per item"):
            selective.class_balanced_aurc([0], [1], ["a"], abstained=2)
        with pytest.raises(DataError, match="y_true is missing at row 1"):
            selective.class_balanced_aurc([0, 1], [1, 2], np.array(["a", None]))


class TestAchievableByMixing:
    """In the convention `interpolated`, as in fd-shifts for 0/1 losses."""

    def test_by_hand(self) -> None:
        mixed = {"convention": "interpolated"}
        # The first answer is the wrong one: every mixture of answering none and all has the risk 1/3.
        assert selective.aurc_achievable([1, 0, 0], [3, 2, 1], **mixed) == pytest.approx(1 / 3)
        # From 1 of 3 items on, the loss sum grows by 1/2 per item: the integral of (k - 1) / 2k from 1 to 3.
        expected = (1 - math.log(3) / 2) / 3
        assert selective.aurc_achievable([0, 1, 0], [3, 2, 1], **mixed) == pytest.approx(expected)
        assert selective.aurc_achievable([0, 1, 0], [3, 2, 1], abstained=3, **mixed) == pytest.approx(
            expected / 2
        )
        assert selective.aurc_achievable([], [], abstained=3, **mixed) == 0.0

    def test_it_agrees_with_the_hull_of_the_roc_curve(self) -> None:
        rng = np.random.default_rng(8)
        for levels in (5, 40, 10_000):
            wrong, confidence = rng.integers(0, 2, 60), rng.integers(0, levels, 60).astype(float)
            actual = selective.aurc_achievable(wrong, confidence, convention="interpolated")
            assert actual == pytest.approx(_roc_hull_area(wrong, confidence), rel=1e-7)
            assert actual <= selective.aurc(wrong, confidence, convention="interpolated") + 1e-12

    def test_weights_are_repetitions(self) -> None:
        loss, confidence, times = [0, 1, 0, 0.5], [4, 3, 2, 1], [1, 2, 0, 3]
        repeated = [np.repeat(column, times) for column in (loss, confidence)]
        assert selective.aurc_achievable(
            loss, confidence, sample_weight=times, convention="interpolated"
        ) == pytest.approx(selective.aurc_achievable(*repeated, convention="interpolated"))


def _roc_hull_area(wrong: np.ndarray, confidence: np.ndarray) -> float:
    """The area under the risk of mixtures along the convex hull of the ROC curve, by numerical integration."""
    false, true, _ = roc_curve(1 - wrong, confidence, drop_intermediate=False)
    corners = [0]
    for index in range(1, len(false)):
        # A corner remains if the curve turns right at it.
        while len(corners) > 1:
            before, last = corners[-2], corners[-1]
            turn = (false[last] - false[before]) * (true[index] - true[before]) - (
                true[last] - true[before]
            ) * (false[index] - false[before])
            if turn < 0:
                break
            corners.pop()
        corners.append(index)
    errors = wrong.sum()
    loss = false[corners] * errors
    count = loss + true[corners] * (len(wrong) - errors)
    area = loss[1]
    for start in range(1, len(corners) - 1):
        ends = slice(start, start + 2)
        area += quad(lambda k, ends=ends: np.interp(k, count[ends], loss[ends]) / k, *count[ends])[0]
    return float(area / len(wrong))


def test_a_row_without_weight_is_not_an_operating_point() -> None:
    weight = [1.0, 0.0, 2.0]
    curve = curves.risk_coverage_curve([0, 1, 1], [0.9, 0.5, 0.4], sample_weight=weight)
    assert (curve.threshold.tolist(), curve.selective_risk.tolist()) == (
        [0.9, 0.4],
        [0.0, pytest.approx(2 / 3)],
    )
    # Without this row all confidences are distinct, except for the row that counts twice.
    ties = curves.tie_sensitivity([0, 1, 1], [0.9, 0.9, 0.4], sample_weight=weight)
    assert ties == curves.tie_sensitivity([0, 1], [0.9, 0.4], sample_weight=[1.0, 2.0])
    assert ties.tied_proportion == pytest.approx(2 / 3)
