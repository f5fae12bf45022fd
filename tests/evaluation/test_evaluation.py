from __future__ import annotations

import importlib
import itertools
import tracemalloc
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import polars as pl
import pytest

import abstain
import reference
from abstain import ArgumentError, DataError, Items, read
from abstain.metrics import selective
from examples import EXAMPLES

if TYPE_CHECKING:
    from pathlib import Path

# Typed as Any, because optional attributes of a result are never None in these tests.
compare: Any = abstain.compare
evaluate: Any = abstain.evaluate

TRUTH, SURE = [0, 1, 1, 0], [0.9, 0.8, 0.3, 0.1]


@pytest.fixture(scope="module")
def few_shot() -> Items:
    return read(EXAMPLES / "run_a.json", mode="few_shot")


def test_every_interval_equals_recomputing_on_copied_rows(few_shot: Items) -> None:
    """Draw participants, copy their items, and compute each metric by its definition."""
    result = evaluate(
        few_shot, confidence="token_msp", loss="abs", interval="percentile", resamples=60, seed=7
    )["token_msp"]
    evaluated = few_shot.evaluated
    loss = np.abs(evaluated.prediction - evaluated.truth)
    confidence = evaluated.signals["token_msp"].values
    clusters = len(evaluated.cluster_ids)
    drawn = np.random.RandomState(7).randint(0, clusters, size=(60, clusters))
    areas: dict[str, list[float]] = {"aurc": [], "augrc": [], "aurc_achievable": [], "aurc_optimal": []}
    for some in drawn:
        rows = np.concatenate([np.flatnonzero(evaluated.cluster_index == cluster) for cluster in some])
        kept = rows[evaluated.answered[rows]]
        answered = loss[kept].tolist(), confidence[kept].tolist(), len(rows)
        areas["aurc"].append(reference.aurc(*answered))
        areas["augrc"].append(reference.augrc(*answered))
        areas["aurc_achievable"].append(reference.achievable(*answered))
        best = reference.optimal_confidence(answered[0])
        areas["aurc_optimal"].append(reference.aurc(answered[0], best, answered[2]))
    areas["eaurc"] = [a - b for a, b in zip(areas["aurc"], areas["aurc_optimal"], strict=True)]
    for name, values in areas.items():
        assert getattr(result, name).interval == pytest.approx(
            tuple(np.percentile(values, [2.5, 97.5])), abs=1e-9
        )
        assert getattr(result, name).se == pytest.approx(np.std(values, ddof=1), abs=1e-9)


def test_same_seed_same_numbers_and_the_level_is_a_parameter(few_shot: Items) -> None:
    first, again, wide, other = (
        evaluate(few_shot, confidence="llm", interval="percentile", resamples=200, seed=seed, level=level)[
            "llm"
        ].aurc
        for seed, level in ((1, 0.95), (1, 0.95), (1, 0.99), (2, 0.95))
    )
    assert first == again
    assert wide.low <= first.low <= first.high <= wide.high
    assert other.interval != first.interval


def test_variants_with_the_same_ranking_have_the_same_numbers(few_shot: Items) -> None:
    result = evaluate(few_shot, resamples=50)
    assert list(result) == ["llm", "total_evidence"]
    assert result["llm"].aurc == result["total_evidence"].aurc


def test_percentages() -> None:
    items = Items.from_arrays([0, 1], [0, 0], confidence=[0.1, 0.9])
    result = evaluate(items, loss="zero_one", resamples=0)["confidence"]
    assert result.aurc_gap_pct == pytest.approx(100 * 0.75 / 0.125)
    assert result.augrc_gap_pct == pytest.approx(100 * 0.25 / 0.125)
    assert result.achievable_gain_pct == 0.0
    perfect = evaluate(Items.from_arrays([0], [0], confidence=[1]), loss="abs", resamples=0)["confidence"]
    assert (perfect.aurc_gap_pct, perfect.achievable_gain_pct) == (0.0, 0.0)


@pytest.mark.parametrize("convention", selective.CONVENTIONS)
def test_convention_reaches_the_metrics(convention: str, few_shot: Items) -> None:
    result = evaluate(few_shot, confidence="llm", loss="abs", resamples=20, convention=convention)["llm"]
    evaluated = few_shot.evaluated
    loss = np.abs(evaluated.prediction - evaluated.truth)
    expected = selective.aurc(
        loss,
        evaluated.signals["llm_evidence_count"].values,
        abstained=evaluated.abstained,
        convention=convention,
    )
    assert result.aurc.value == pytest.approx(expected, abs=1e-12)


class TestLosses:
    items = Items.from_arrays([0, 3], [3, 2], confidence=[1, 2], scale=(0, 6))

    @pytest.mark.parametrize(("loss", "expected"), [("abs", 2.0), ("abs_norm", 2 / 6), ("zero_one", 1.0)])
    def test_by_name(self, loss: str, expected: float) -> None:
        result = evaluate(self.items, loss=loss, coverage_grid=[1.0], resamples=0)
        assert result["confidence"].risk_at_coverage[1.0].value == pytest.approx(expected)
        assert result.loss.name == loss

    def test_the_declared_scale_is_the_divisor(self) -> None:
        result = evaluate(self.items, loss="abs_norm", resamples=0)
        assert (result.loss.raw_multiplier, result.loss.definition) == (6.0, "abs(pred - gt) / 6")

    def test_a_function_and_an_array(self) -> None:
        # The more confident item costs 1, the other 9: risks 1 and 5 at coverages 1/2 and 1, so 1/2 + 3/2.
        squared = evaluate(self.items, loss=lambda truth, prediction: (truth - prediction) ** 2, resamples=0)
        array = evaluate(self.items, loss=[9.0, 1.0], resamples=0)
        assert squared["confidence"].aurc.value == array["confidence"].aurc.value == pytest.approx(2.0)

    def test_a_loss_array_may_have_any_value_for_items_without_an_answer(self) -> None:
        items = Items.from_arrays(
            [0, 1, 1], [0, 1, 1], failed=[0, 0, 1], abstained=[0, 1, 0], confidence=[1, 1, 1]
        )
        assert evaluate(items, loss=[0.5, np.nan, np.nan], resamples=0)["confidence"].aurc.value == 0.25

    def test_unknown(self) -> None:
        with pytest.raises(ArgumentError, match=r"unknown loss 'abs_nrom' \(did you mean 'abs_norm'\?\)"):
            evaluate(self.items, loss="abs_nrom")

    def test_not_finite(self) -> None:
        with pytest.raises(DataError, match="loss custom is nan for row 1; every answered item"):
            evaluate(self.items, loss=[1.0, np.nan])

    def test_text_has_no_distance(self) -> None:
        words = Items.from_arrays(["a", "b"], ["a", "c"], confidence=[1, 2])
        assert evaluate(words, loss="zero_one", resamples=0)["confidence"].aurc.value == pytest.approx(0.875)
        with pytest.raises(DataError, match="prediction contains text, and this loss needs numbers"):
            evaluate(words, loss="abs")

    def test_wrong_length(self) -> None:
        with pytest.raises(DataError, match="loss has 1 rows, but 2 were expected"):
            evaluate(self.items, loss=[1.0])


class TestUndefinedValuesHaveReasons:
    def test_areas_without_answers_have_a_reason(self) -> None:
        items = Items.from_arrays([0, 1], [0, 0], abstained=[True, True], confidence=[1, 1])
        result = evaluate(items, loss="abs", resamples=30)
        variant = result["confidence"]
        assert (variant.aurc.value, variant.cmax.value) == (0.0, 0.0)
        assert variant.aurc.reason == "no item was answered, so the area is 0 over an empty range"
        assert result.warnings[0].code == "nothing_answered"
        assert not variant.risk_at_coverage[0.1].defined

    def test_a_risk_is_found_by_the_coverage_of_the_grid(self) -> None:
        """By hand: the four most confident of twelve items are right, then every second is wrong: 0 and 4/12."""
        items = Items.from_arrays(
            [1] * 12, [1] * 4 + [0, 1] * 4, confidence=range(12, 0, -1), item=list(range(12))
        )
        found = evaluate(items, coverage_grid=[1 / 3, 1.0], interval="none")["confidence"].risk_at_coverage
        assert (found[1 / 3].value, found[1].value) == (0.0, pytest.approx(1 / 3))
        with pytest.raises(
            ArgumentError,
            match=r"no coverage 0.55: the coverages are 0.333333, 1; add it with coverage_grid=",
        ):
            found[0.55]
        with pytest.raises(ArgumentError, match="coverage must be a number, got 'half'"):
            found["half"]

    def test_a_coverage_that_cannot_be_reached(self, few_shot: Items) -> None:
        risk = evaluate(few_shot, confidence="llm", resamples=30)["llm"].risk_at_coverage[0.9]
        assert not risk.defined
        assert risk.reason == "coverage 0.9 cannot be reached: Cmax is 0.694"
        assert (risk.interval, risk.drop_rate) == (None, 1.0)

    def test_an_empty_source_is_an_error(self) -> None:
        with pytest.raises(DataError, match="no item to evaluate: the source is empty"):
            evaluate(Items.from_arrays([], []))


class TestWarnings:
    def codes(self, items: Items) -> list[str]:
        result = evaluate(items, loss="abs", resamples=10)
        both = (
            *result.warnings,
            *itertools.chain.from_iterable(variant.warnings for variant in result.values()),
        )
        return [warning.code for warning in both]

    def test_few_clusters(self) -> None:
        assert "few_clusters" in self.codes(Items.from_arrays([1] * 9, [1] * 9, confidence=range(9)))
        assert "few_clusters" not in self.codes(Items.from_arrays([1] * 10, [1] * 10, confidence=range(10)))

    @pytest.mark.parametrize("interval", ["percentile", "bca"])
    def test_the_warning_about_few_clusters_reports_the_simulated_coverage(self, interval: str) -> None:
        for clusters, warned in ((39, True), (40, False)):
            items = Items.from_arrays([1] * clusters, [1] * clusters, confidence=range(clusters))
            warnings = evaluate(items, interval=interval, resamples=20).warnings
            messages = [warning.message for warning in warnings if warning.code == "few_clusters"]
            assert bool(messages) == warned
            simulated = "in simulations 95% intervals of the AURC contained the true value 90 times in 100"
            assert all(simulated in message for message in messages)

    def test_ties(self) -> None:
        spread = list(range(20))
        assert "ties" not in self.codes(Items.from_arrays([1] * 20, [1] * 20, confidence=spread))
        tied = [*spread[:17], 0, 0, 0]
        wrong = [1] * 18 + [0] * 2
        assert "ties" in self.codes(Items.from_arrays([1] * 20, wrong, confidence=tied))
        # If the order within ties does not matter, there is no warning.
        assert "ties" not in self.codes(Items.from_arrays([1] * 20, [1] * 20, confidence=tied))

    def test_failed_clusters(self, few_shot: Items) -> None:
        assert (
            evaluate(few_shot, resamples=0).warnings[0].message
            == "3 of 30 participants are not in any number: they failed or have no label"
        )

    def test_below_the_optimum(self) -> None:
        # One tied block averages losses that single items would show.
        items = Items.from_arrays([0, 0, 0, 3], [0, 0, 0, 0], confidence=[0, 0, 0, 0])
        assert "below_optimal" not in self.codes(items)
        worse = Items.from_arrays([3, 0, 0, 3], [0, 0, 0, 0], confidence=[1, 2, 2, 1])
        assert "below_optimal" in self.codes(worse)


class TestCompare:
    left = Items.from_arrays(TRUTH, [0, 0, 0, 1], confidence=SURE, cluster=[1, 2, 3, 4])
    right = Items.from_arrays(TRUTH, [0, 1, 1, 1], confidence=SURE, cluster=[1, 2, 3, 4])

    def test_right_minus_left_with_the_same_draws(self) -> None:
        found = compare(self.left, self.right, loss="zero_one", resamples=100, seed=5)
        delta = found.deltas["confidence"]
        assert delta.augrc.value == pytest.approx(
            found.right["confidence"].augrc.value - found.left["confidence"].augrc.value
        )
        drawn = np.random.RandomState(5).randint(0, 4, size=(100, 4))
        wrong = [np.array([0, 1, 1, 1.0]), np.array([0, 0, 0, 1.0])]
        expected = [
            reference.augrc(wrong[1][rows].tolist(), np.array(SURE)[rows].tolist(), 4)
            - reference.augrc(wrong[0][rows].tolist(), np.array(SURE)[rows].tolist(), 4)
            for rows in drawn
        ]
        assert delta.augrc.percentile == pytest.approx(tuple(np.percentile(expected, [2.5, 97.5])), abs=1e-12)

    def test_the_interval_is_that_of_leaving_out_clusters(self) -> None:
        found = compare(self.left, self.right, loss="zero_one", resamples=0).deltas["confidence"].augrc
        wrong = [np.array([0, 1, 1, 1.0]), np.array([0, 0, 0, 1.0])]
        values = []
        for out in range(4):
            kept = np.arange(4) != out
            ends = [reference.augrc(side[kept].tolist(), np.array(SURE)[kept].tolist(), 3) for side in wrong]
            values.append(ends[1] - ends[0])
        squared = 3 / 4 * ((np.array(values) - np.mean(values)) ** 2).sum()
        # One more wrong answer of four adds about 0.5 / 4. With 3 wrong answers a quarter of that counts, with 1 three.
        squared += (0.5 / 4 * 1 / 4) ** 2 + (0.5 / 4 * 3 / 4) ** 2
        reach = 3.182446305284263 * np.sqrt(squared)  # the t distribution on 3 degrees of freedom
        # An AUGRC is at most a half, and so is the difference of two.
        assert found.value - reach < -0.5
        assert found.interval == pytest.approx((-0.5, found.value + reach))

    def test_of_itself_is_zero(self, few_shot: Items) -> None:
        found = compare(few_shot, few_shot, confidence="llm", resamples=50)
        delta = found.deltas["llm"]
        # Nothing varies, but 27 clusters of unequal size do not make that certain.
        assert delta.aurc.value == 0.0
        assert delta.aurc.low == -delta.aurc.high < 0.0
        assert found.difference("left", "right", "aurc").verdict == "inconclusive"

    def test_swapping_sides_changes_the_sign_and_the_side(self) -> None:
        there = compare(self.left, self.right, loss="zero_one", resamples=0).deltas["confidence"]
        back = compare(self.right, self.left, loss="zero_one", resamples=0).deltas["confidence"]
        assert (back.aurc.value, back.aurc.low, back.aurc.high) == pytest.approx(
            (-there.aurc.value, -there.aurc.high, -there.aurc.low)
        )
        opposite = {"left": "right", "right": "left", "inconclusive": "inconclusive", None: None}
        for name, difference in there.differences.items():
            assert opposite[difference.verdict] == back.differences[name].verdict

    def test_sets_that_differ(self) -> None:
        fewer = self.right.take(np.array([0, 1, 2]))
        with pytest.raises(DataError, match="of 4 items right lacks 1 .*--intersection-only"):
            compare(self.left, fewer, loss="zero_one")
        found = compare(self.left, fewer, loss="zero_one", resamples=20, intersection_only=True)
        assert (
            found.matching.clusters_unmatched["left"],
            found.matching.clusters,
            found.population.items,
        ) == (
            1,
            3,
            3,
        )

    def test_failed_on_either_side_is_left_out_of_both(self) -> None:
        a, b = (read(EXAMPLES / "run_a.json", mode=mode) for mode in ("zero_shot", "few_shot"))
        found = compare(a, b, confidence="llm", resamples=10)
        assert (found.matching.clusters_shared, found.matching.clusters) == (30, 25)
        assert dict(found.matching.clusters_failed) == {"left": 2, "right": 3}
        assert found.left["llm"].aurc.clusters == found.right["llm"].aurc.clusters == 25

    def test_run_files_are_matched_by_participant(self) -> None:
        a, b = (read(EXAMPLES / "run_a.json", mode=mode) for mode in ("zero_shot", "few_shot"))
        assert compare(a, b, confidence="llm", resamples=0).matching.by == ("participant",)
        fewer = b.take(b.cluster != b.cluster[0])
        with pytest.raises(
            DataError, match="do not have the same participants: 1 only in left, 0 only in right"
        ):
            compare(a, fewer, confidence="llm")
        other = replace(b, truth=(b.truth + 1) % 4)
        with pytest.raises(DataError, match="disagree about the truth of"):
            compare(a, other, confidence="llm")

    def test_different_coverages_have_a_warning(self) -> None:
        silent = Items.from_arrays(TRUTH, TRUTH, abstained=[True] * 4, confidence=SURE, cluster=[1, 2, 3, 4])
        found = compare(self.left, silent, loss="zero_one", resamples=20)
        assert {"nothing_answered", "few_clusters"} <= {warning.code for warning in found.warnings}
        assert found.difference("left", "right", "augrc").verdict is None
        assert found.headline is None
        half = Items.from_arrays(TRUTH, TRUTH, abstained=[1, 1, 0, 0], confidence=SURE, cluster=[1, 2, 3, 4])
        codes = {warning.code for warning in compare(self.left, half, loss="zero_one", resamples=20).warnings}
        assert "coverage_differs" in codes

    def test_nothing_in_common(self) -> None:
        other = Items.from_arrays([1], [1], cluster=["x"], confidence=[1])
        with pytest.raises(DataError, match="numbers in .* and text in"):
            compare(self.left, other)
        apart = Items.from_arrays([1], [1], cluster=[9], confidence=[1])
        with pytest.raises(DataError, match="no item in common"):
            compare(self.left, apart, intersection_only=True)

    def test_a_loss_by_array_cannot_serve_two_sides(self) -> None:
        with pytest.raises(ArgumentError, match="an array cannot match the rows of all"):
            compare(self.left, self.right, loss=[1.0] * 4)


class TestDefaults:
    """Each default has one rule, which is reported."""

    def test_labels_are_right_or_wrong(self) -> None:
        sure = [0.9, 0.8, 0.7, 0.6]
        for truth, prediction in (
            ([0, 1, 1, 0], [0, 1, 0, 0]),
            ([9, 3, 5, 0], [9, 3, 4, 0]),
            (list("abca"), list("abaa")),
        ):
            result = evaluate(Items.from_arrays(truth, prediction, confidence=sure), resamples=0)
            assert result.loss.name == "zero_one"
            assert result["confidence"].risk_at_coverage[0.9].value == 0.25
        assert "no scale declared" in result.loss.rule or "text" in result.loss.rule

    def test_a_declared_scale_is_divided_by(self) -> None:
        ratings = Items.from_arrays([1, 10, 5], [10, 10, 5], confidence=[3, 2, 1], scale=(1, 10))
        result = evaluate(ratings, resamples=0)
        assert (result.loss.name, result.loss.raw_multiplier) == ("abs_norm", 9.0)
        assert result["confidence"].aurc.value <= 1.0

    def test_the_error_for_real_numbers_names_the_losses(self) -> None:
        real = Items.from_arrays([0.5, 1.25], [0.5, 1.0], confidence=[2, 1])
        with pytest.raises(ArgumentError, match="abs, zero_one, or abs_norm with a scale"):
            evaluate(real)
        assert evaluate(real, loss="abs", resamples=0)["confidence"].risk_at_coverage[0.9].value == 0.125
        assert (
            evaluate(real, metrics="mean_absolute_error", resamples=0).metrics["mean_absolute_error"].value
            == 0.125
        )

    def test_without_a_confidence_there_is_a_warning_and_no_area(self) -> None:
        items = Items.from_arrays(TRUTH, [0, 0, 0, 1], signals={"row": [1, 2, 3, 4]})
        result = evaluate(items, interval="none")
        assert list(result) == []
        assert [warning.code for warning in result.warnings] == ["no_confidence"]
        assert "name one (--confidence, confidence=) or record one" in str(result.warnings[0])
        # Metrics that need no confidence are computed, but no optimal area that could be mistaken for an AURC.
        assert list(result.metrics or ()) == [
            "accuracy", "selective_accuracy", "answer_rate", "wrong_rate", "hallucination_rate", "simpleqa_f",
        ]  # fmt: skip
        assert evaluate(items, confidence="row", resamples=0)["row"].aurc.defined
        named = evaluate(items, metrics="augrc,accuracy", resamples=0)
        assert named.metrics["accuracy"].value == 0.25
        assert not named.metrics["augrc"].defined
        assert "confidence" in named.metrics["augrc"].reason

    def test_weights_count_rows_and_never_clusters(self) -> None:
        twice = Items.from_arrays([1, 1, 1], [1, 0, 0], confidence=[3, 2, 2], cluster=[1, 2, 2])
        weighed = Items.from_arrays([1, 1], [1, 0], confidence=[3, 2], cluster=[1, 2], weight=[1, 2])
        one, other = (evaluate(items, resamples=200)["confidence"] for items in (twice, weighed))
        for metric in ("aurc", "augrc", "aurc_optimal", "cmax"):
            assert getattr(one, metric) == getattr(other, metric)
        assert (one.aurc.n, one.aurc.clusters) == (3, 2)

    def test_repeated_names_that_are_not_a_cluster_have_a_warning(self) -> None:
        items = Items.from_arrays(TRUTH, TRUTH, confidence=SURE).with_provenance(possible_cluster="visit_id")
        codes = [warning.code for warning in evaluate(items, interval="none").warnings]
        assert codes == ["cluster_unnamed"]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"resamples": -1}, "resamples must be at least 0, got -1"),
        ({"resamples": 1.5}, "resamples must be a whole number"),
        ({"seed": -3}, "seed must be from 0 to"),
        ({"level": 1.0}, "0 < level < 1"),
        ({"area_coverage": 0}, r"area_coverage must be in \(0, 1\]"),
        ({"coverage_grid": [0.5, 1.5]}, r"coverage_grid must be in \(0, 1\], got 1.5"),
        ({"coverage_grid": [0.501, 0.502]}, "must differ in the first two decimals"),
        ({"convention": "simpson"}, "unknown convention 'simpson'"),
        ({"confidence": "confidense"}, "did you mean 'confidence'"),
        ({"confidence": []}, "no confidence was requested"),
    ],
)
def test_invalid_settings_are_errors(settings: dict[str, object], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        evaluate(TestCompare.left, **settings)


def test_a_result_is_a_mapping_whose_errors_suggest_names(few_shot: Items) -> None:
    result = evaluate(few_shot, confidence="llm", resamples=0)
    assert dict(result) == {"llm": result["llm"]}
    assert "llm" in result
    with pytest.raises(ArgumentError, match="unknown confidence 'lm'"):
        result["lm"]
    assert "llm: AURC" in repr(result)


class TestItemsWithoutResult:
    def test_bounds_by_hand(self) -> None:
        """Four answers, of which the least confident one is wrong; a fifth item failed."""
        items = Items.from_arrays(
            [1] * 5, [1, 1, 1, 0, None], failed=[0, 0, 0, 0, 1], confidence=[0.9, 0.8, 0.7, 0.6, 0.1]
        )
        result = evaluate(items, metrics="accuracy", confidence="confidence", resamples=0)
        assert result.metrics["accuracy"].value == 3 / 4
        assert result.metrics["accuracy"].bounds == (3 / 5, 4 / 5)
        # If it is wrong and ranked first, loss sums are 1, 1, 1, 1, 2 after 1 to 5 items; if right, 0, 0, 0, 0, 1.
        wrong, right = (1 / 2 + 1 + 1 + 1 + 3 / 2) / 25, (1 / 2) / 25
        assert result["confidence"].augrc.bounds == pytest.approx((wrong, right))
        messages = [str(warning) for warning in result.warnings if warning.code == "left_out"]
        assert messages == [
            "1 of 5 items is not in any number: it failed or has no label; if it were wrong, or right, augrc by "
            "confidence would be 0.200 or 0.020, aurc by confidence would be 0.557 or 0.020, accuracy would be 0.600 "
            "or 0.800"
        ]

    def test_one_percent_has_no_bounds(self) -> None:
        items = Items.from_arrays([1] * 100, [1] * 100, failed=[0] * 99 + [1], confidence=range(100))
        assert evaluate(items, resamples=0)["confidence"].aurc.bounds is None

    def test_the_design_effect_by_hand(self) -> None:
        """Two clusters of two equal losses: deviations +-1/2, sums +-1, so 2 * 2/1 divided by 1 * 4/3."""
        items = Items.from_arrays([1, 1, 1, 1], [1, 1, 0, 0], confidence=[1, 2, 3, 4], cluster=[1, 1, 2, 2])
        assert evaluate(items, resamples=0).only.design_effect == pytest.approx(3.0)
        for unit in (1 / 6, 1e-3, 7.0):  # the unit of the weights does not matter
            weighted = replace(items, weight=np.full(len(items), unit))
            assert evaluate(weighted, resamples=0).only.design_effect == pytest.approx(3.0)
        independent = Items.from_arrays([1, 1], [1, 0], confidence=[1, 2])
        assert np.isnan(evaluate(independent, resamples=0).only.design_effect)


class TestFrames:
    @pytest.mark.parametrize("backend", ["pandas", "polars", "pyarrow"])
    def test_estimates_and_differences(self, backend: str) -> None:
        found = compare(TestCompare.left, TestCompare.right, resamples=0, loss="zero_one")
        frame = found.to_frame(backend=backend)
        rows = (
            frame.to_pylist()
            if backend == "pyarrow"
            else frame.to_dict("records")
            if backend == "pandas"
            else frame.to_dicts()
        )
        keys = {(row["system"], row["confidence"], row["metric"], row["group"]) for row in rows}
        assert len(keys) == len(rows) == sum(len(system.estimates) for system in found.systems.values())
        assert ("left", "confidence", "aurc", "") in keys
        changes = found.to_frame("differences", backend=backend)
        assert len(changes) == len(found.differences)
        assert "verdict" in (changes.column_names if backend == "pyarrow" else list(changes.columns))

    def test_an_unknown_frame_is_an_error(self) -> None:
        with pytest.raises(ArgumentError, match="unknown what 'curves'; known: estimates, differences"):
            evaluate(TestCompare.left, resamples=0).to_frame("curves")


def test_errors_of_views_name_the_alternatives() -> None:
    result = compare(TestCompare.left, TestCompare.right, resamples=0, loss="zero_one")
    with pytest.raises(ArgumentError, match="there are 2 systems; name one: left, right"):
        result["confidence"]
    with pytest.raises(AttributeError, match="metric 'aucr' was not requested; there are"):
        assert result.left["confidence"].aucr
    with pytest.raises(ArgumentError, match="left and right are for two systems, and there are 1"):
        assert evaluate(TestCompare.left, resamples=0).left
    assert set(result.left["confidence"].risk_at_coverage) == {0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9}
    assert result.left["confidence"].aurc_at_coverage.defined
    assert "aurc" in dir(result.left["confidence"])
    assert repr(result).startswith("Result of 2 systems over 4 items\n")


def test_a_run_whose_only_participant_failed_has_a_warning() -> None:
    items = Items.from_arrays([None], [None], failed=[1], confidence=[1])
    result = evaluate(items, metrics="accuracy", confidence="confidence")
    assert (result.population.items, result.population.items_failed, result.population.failed) == (0, 1, 1)
    message = "there is no item to evaluate: of 1 items, 1 failed and 0 have no label"
    assert [str(warning) for warning in result.warnings] == [message]
    for estimate in (*result.only.estimates.values(), result["confidence"].aurc, result.metrics["accuracy"]):
        assert not estimate.defined
        assert estimate.reason == message
    assert len(result.profile().points) == 0


class TestSourcesAreRead:
    """Every source of `abstain.read` can be passed to `evaluate`."""

    FRAME: ClassVar[dict[str, list[Any]]] = {
        "y": [0, 1, 1, 0] * 5,
        "p": [0, 1, 0, 0] * 5,
        "sure": [0.9, 0.8, 0.3, 0.6] * 5,
        "patient": [row // 2 for row in range(20)],
    }
    COLUMNS: ClassVar[dict[str, Any]] = {"truth": "y", "prediction": "p", "cluster": "patient"}

    @pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
    def test_a_frame_is_read(self, library: str) -> None:
        module = importlib.import_module(library)
        make = module.table if library == "pyarrow" else module.DataFrame
        frame = make(self.FRAME)
        found = evaluate(frame, confidence="sure", **self.COLUMNS)
        expected = evaluate(read(frame, **self.COLUMNS), confidence="sure")
        assert found["sure"].aurc == expected["sure"].aurc
        assert found.population.included == 10
        both = compare(
            {"a": frame, "b": frame}, metrics="augrc", confidence="sure", match="rows", **self.COLUMNS
        )
        assert both.difference("a", "b").estimate.value == 0.0

    def test_a_path_is_read(self, tmp_path: Path) -> None:
        path = tmp_path / "t.csv"
        path.write_text("y,p,sure\n1,1,0.9\n0,1,0.2\n")
        assert evaluate(path, truth="y", prediction="p", confidence="sure")["sure"].aurc.value == 0.125

    def test_unknown_arguments_are_errors(self) -> None:
        items = Items.from_arrays([1, 0], [1, 1], confidence=[0.9, 0.1])
        with pytest.raises(
            ArgumentError, match="truth applies only to a data frame or a file, but system 1 is"
        ):
            evaluate(items, truth="y")
        with pytest.raises(ArgumentError, match=r"evaluate has no argument confidense"):
            evaluate(items, confidense="c")
        with pytest.raises(ArgumentError, match="a system must be Items, a data frame, a path, or a mapping"):
            evaluate(3)


def test_point_estimates_need_little_memory_beyond_the_columns() -> None:
    rng, rows = np.random.default_rng(3), 300_000
    sure, truth = rng.random(rows), np.zeros(rows, np.intp)
    predicted, declined = (rng.random(rows) < 0.5 - 0.4 * sure).astype(np.intp), rng.random(rows) < 0.2
    items = Items.from_arrays(truth, predicted, abstained=declined, confidence=sure)
    tracemalloc.start()
    try:
        evaluate(items, interval="none")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 10 * sum(column.nbytes for column in (truth, predicted, sure, declined))


FRAME = pl.DataFrame({"truth": [1, 0, 1], "prediction": [1, 1, 0], "sure": [50, 60, 70], "g": [1, 1, 2]})


@pytest.mark.parametrize("function", [abstain.evaluate, abstain.read, abstain.check])
def test_errors_about_wrong_arguments_name_the_right_ones(function: Any) -> None:
    if function is not abstain.read:  # whose arguments Python itself checks
        with pytest.raises(ArgumentError, match=r"has no argument y_true; pass truth="):
            function(FRAME, y_true="truth")
        with pytest.raises(ArgumentError, match=r"has no argument y_pred; pass prediction="):
            function(FRAME, y_pred="prediction")
    message = "cluster must be the name of a column, got a Series; pass the name, such as cluster='g'"
    with pytest.raises(ArgumentError, match=message):
        function(FRAME, cluster=FRAME["g"])
    with pytest.raises(ArgumentError, match=r"for arrays, pass abstain.Items.from_arrays\(truth, prediction"):
        function(np.array([1, 0, 1]))


def test_arrays_in_place_of_a_system_name_from_arrays() -> None:
    arrays = np.array([1, 0, 1]), np.array([1, 1, 0]), np.array([0.5, 0.6, 0.7])
    for arguments in (arrays, [array.tolist() for array in arrays]):
        with pytest.raises(
            ArgumentError, match=r"for arrays, pass abstain.Items.from_arrays\(truth, prediction"
        ):
            abstain.evaluate(*arguments)
    with pytest.raises(
        ArgumentError, match="confidence must be the name of a signal or a column, got values"
    ):
        abstain.evaluate(FRAME, confidence=FRAME["sure"])  # type: ignore[arg-type]


def test_percentages_that_are_not_recognized_name_the_option() -> None:
    with pytest.raises(DataError, match=r'if it is in percent, add --percent sure \(percent=\["sure"\]\)'):
        abstain.evaluate(FRAME, confidence="sure", metrics="brier_score")
    items = abstain.read(FRAME, percent=["sure"])
    assert items.signals["sure"].values.tolist() == [0.5, 0.6, 0.7]


def test_a_constant_confidence_has_a_warning() -> None:
    items = Items.from_arrays([1, 0, 1, 0], [1, 1, 1, 1], confidence=[0.5] * 4)
    (warning,) = abstain.evaluate(items)["confidence"].warnings
    assert warning.code == "constant_confidence"
    assert "every answered item has the same confidence, so it cannot rank them" in warning.message


def test_the_error_rate_is_the_complement_of_the_selective_accuracy() -> None:
    """Five items: three answered, of which one is wrong. The ends of the interval change places."""
    items = Items.from_arrays([1] * 5, [1, 1, 0, 1, 1], abstained=[0, 0, 0, 1, 1], confidence=range(5))
    system = evaluate(items, resamples=0).only
    selective = system.estimate("selective_accuracy")
    assert (system.error_rate.value, system.accuracy.value) == pytest.approx((1 / 3, 2 / 5))
    assert (system.error_rate.low, system.error_rate.high) == (1.0 - selective.high, 1.0 - selective.low)
    assert system.error_rate.low < 1 / 3 < system.error_rate.high
