"""Metric tables: estimates from the same resamples, groups with their gap, comparisons, and custom metrics."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy.stats import t

import abstain
from abstain import Items
from abstain.errors import ArgumentError, DataError
from abstain.metrics import (
    BaseMetric,
    EvaluationResult,
    MetricScore,
    default_benchmark_metrics,
    expected_calibration_error,
    items_to_results,
    results_to_items,
)
from abstain.metrics.registry import METRICS

if TYPE_CHECKING:
    from abstain.evaluation import MetricTable


class RightAnswers(BaseMetric):
    """Accuracy as a custom metric that a user might write."""

    name = "right_answers"
    direction = "higher"
    unit = "proportion"

    def compute(self, results: list[EvaluationResult]) -> MetricScore:
        right = sum(not row.abstained and row.prediction == row.ground_truth for row in results)
        return MetricScore(self.name, right / len(results), n_evaluated=len(results))


class TokensEach(BaseMetric):
    name = "tokens_each"

    def compute(self, results: list[EvaluationResult]) -> MetricScore:
        tokens = [row.output_tokens for row in results if row.output_tokens is not None]
        return MetricScore(self.name, sum(tokens) / len(tokens))


def drawn(seed: int = 0, size: int = 120, right: float = 0.7) -> list[EvaluationResult]:
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 2, size)
    return [
        EvaluationResult(
            int(label if rng.random() < right else 1 - label),
            int(label),
            abstained=bool(rng.random() < 0.25),
            confidence=float(rng.random()),
            metadata={
                "ckd_stage": int(rng.integers(1, 4)),
                "sex": str(rng.choice(["F", "M"])),
                "patient": f"p{row // 2}",
                "should_abstain": bool(rng.random() < 0.3),
            },
        )
        for row, label in enumerate(truth)
    ]


def table_of(items: Items, **options: Any) -> MetricTable:
    table = abstain.evaluate(items, **{"resamples": 200, **options}).metrics
    assert table is not None
    return table


def test_the_table_agrees_with_the_metric_objects() -> None:
    results = drawn()
    table = table_of(results_to_items(results), metrics="default_benchmark", resamples=0)
    for metric in default_benchmark_metrics():
        assert table[metric.name].value == pytest.approx(metric(results).value)


def test_groups_agree_with_the_breakdowns_of_metric_objects() -> None:
    results = drawn()
    table = table_of(results_to_items(results), metrics="default_benchmark", by="ckd_stage", resamples=0)
    for metric in default_benchmark_metrics()[:2]:
        breakdown = metric(results).breakdown
        for group in table.groups:
            assert group.estimates[metric.name].value == pytest.approx(
                breakdown[f"stage_{group.values['ckd_stage']}"]
            )


@pytest.mark.parametrize("name", METRICS)
def test_every_metric_of_the_registry_can_be_requested(name: str) -> None:
    table = table_of(results_to_items(drawn()), metrics=name, by="sex", resamples=30)
    estimate = table[name]
    assert estimate.defined or estimate.reason
    if estimate.defined:
        assert estimate.interval is not None or estimate.reason
    assert len(table.groups) == 2


def test_a_custom_metric_has_the_interval_of_the_built_in_one() -> None:
    items = results_to_items(drawn(), cluster="patient")
    table = table_of(items, metrics=[RightAnswers, "accuracy"], by="sex")
    mine, ours = table["right_answers"], table["accuracy"]
    assert (mine.value, mine.low, mine.high, mine.se) == pytest.approx(
        (ours.value, ours.low, ours.high, ours.se)
    )
    assert mine.clusters == 60
    for group in table.groups:
        assert group.estimates["right_answers"].interval == pytest.approx(
            group.estimates["accuracy"].interval
        )
    assert table.gaps["right_answers"].gap.interval == pytest.approx(table.gaps["accuracy"].gap.interval)


def test_a_custom_metric_on_items_that_do_not_come_from_results() -> None:
    items = Items.from_arrays([1, 0, 1], [1, 1, None], abstained=[False, False, True])
    assert table_of(items, metrics=RightAnswers)["right_answers"].value == pytest.approx(1 / 3)


def test_division_by_zero_is_undefined() -> None:
    results = drawn(size=20)
    some = [replace(results[0], output_tokens=10), *results[1:]]
    estimate = table_of(results_to_items(some), metrics=TokensEach)["tokens_each"]
    assert estimate.value == 10.0
    assert 0.2 < estimate.drop_rate < 0.6
    none = table_of(results_to_items(results), metrics=TokensEach)["tokens_each"]
    assert math.isnan(none.value)
    assert none.reason == "the metric gives no number for these rows"


def test_intervals_are_those_of_a_bootstrap_of_copied_rows() -> None:
    items = results_to_items(drawn(), cluster="patient")
    stage = items.metadata["ckd_stage"] == 2

    def accuracy_of_stage(rows: Items) -> float:
        own = rows.take(rows.metadata["ckd_stage"] == 2)
        return float(((own.truth == own.prediction) & own.answered).mean()) if len(own) else math.nan

    expected = abstain.bootstrap(accuracy_of_stage, items, resamples=200)
    found = (
        table_of(items, metrics="accuracy", by="ckd_stage", interval="percentile")
        .group("ckd_stage=2")
        .estimates["accuracy"]
    )
    assert (found.value, found.low, found.high) == pytest.approx(
        (expected.value, expected.low, expected.high)
    )
    assert found.n == stage.sum()


class TestGroups:
    def test_the_worst_group_against_the_rest(self) -> None:
        stages, right = (
            np.repeat([1, 2, 3], 20),
            np.array([1] * 18 + [0] * 2 + [1] * 10 + [0] * 10 + [1] * 20),
        )
        items = Items.from_arrays(np.ones(60), right, metadata={"ckd_stage": stages})
        gap = table_of(items, metrics="accuracy", by="ckd_stage").gaps["accuracy"]
        assert gap.group == "ckd_stage=2"
        assert gap.worst.value == 0.5
        assert gap.rest.value == pytest.approx(38 / 40)
        assert gap.gap.value == pytest.approx(0.5 - 38 / 40)
        assert gap.gap.interval is not None
        assert gap.gap.high < 0

    def test_the_interval_of_a_gap_holds_for_all_groups_together(self) -> None:
        """The gap of one of three groups has the interval of a difference at level 1 - 0.05 / 3."""
        right = np.array([1] * 18 + [0] * 2 + [1] * 10 + [0] * 10 + [1] * 20)
        items = Items.from_arrays(np.ones(60), right, metadata={"stage": np.repeat([1, 2, 3], 20)})
        gap = table_of(items, metrics="accuracy", by="stage").gaps["accuracy"].gap
        reach = t.ppf(1 - 0.05 / 6, gap.degrees) * gap.se
        assert gap.interval == pytest.approx((gap.value - reach, gap.value + reach))
        assert gap.level == 0.95
        assert gap.method.endswith("simultaneous for 3 groups")

    def test_the_gap_of_a_binned_error_is_that_of_its_debiased_form(self) -> None:
        """All groups are calibrated, so the smallest one has the highest ECE by its bias only."""
        rng = np.random.default_rng(1)
        site = np.repeat(["a", "b", "c"], [2000, 2000, 60])
        confidence = rng.uniform(0.5, 1.0, len(site))
        right = (rng.random(len(site)) < confidence).astype(int)
        items = Items.from_arrays(np.ones(len(site)), right, confidence=confidence, metadata={"site": site})
        table = table_of(items, metrics="expected_calibration_error,top_label_calibration_error", by="site")
        small = table.group("site=c").estimates["expected_calibration_error"].value
        assert small > 2 * table.group("site=a").estimates["expected_calibration_error"].value
        gap = table.gaps["expected_calibration_error"]
        inside = site == gap.group.removeprefix("site=")
        debiased = [
            expected_calibration_error(right[rows], confidence[rows], debiased=True)
            for rows in (inside, ~inside)
        ]
        assert gap.gap.value == pytest.approx(debiased[0] - debiased[1])
        assert gap.gap.low < 0.0 < gap.gap.high
        assert "around the debiased value" in gap.gap.method
        without_debiased_form = table.gaps["top_label_calibration_error"].gap
        assert without_debiased_form.defined
        assert without_debiased_form.interval is None
        assert without_debiased_form.reason.startswith("no interval: bins bias it upwards")

    def test_if_lower_is_better_the_worst_group_has_the_highest_value(self) -> None:
        items = Items.from_arrays(
            np.zeros(40), np.repeat([0, 2], 20), metadata={"site": np.repeat(["a", "b"], 20)}
        )
        gap = table_of(items, metrics="mae", by="site").gaps["mean_absolute_error"]
        assert (gap.group, gap.gap.value) == ("site=b", 2.0)

    def test_a_metric_without_a_direction_has_no_worst_group(self) -> None:
        abstained = np.repeat([False, False, True], 20)
        items = Items.from_arrays(
            np.zeros(60), np.zeros(60), abstained=abstained, metadata={"site": np.repeat(["a", "b", "c"], 20)}
        )
        table = table_of(items, metrics="answer_rate,accuracy", by="site")
        assert list(table.gaps) == ["accuracy"]

    def test_a_group_does_not_look_good_because_it_declines(self) -> None:
        """Half of the answers of site c are wrong, but it declines most items, so its AUGRC is the smallest."""
        rng = np.random.default_rng(0)
        site = np.repeat(["a", "b", "c"], 100)
        wrong = np.where(site == "c", np.arange(300) % 2 == 0, np.arange(300) % 10 == 0)
        items = Items.from_arrays(
            np.zeros(300),
            wrong.astype(int),
            abstained=(site == "c") & (np.arange(300) % 5 > 0),
            confidence=rng.random(300),
            metadata={"site": site},
        )
        table = table_of(
            items, metrics="augrc,aurc,wrong_rate,selective_accuracy", by="site", confidence="confidence"
        )
        smallest = min(table.groups, key=lambda group: group.estimates["augrc"].value)
        assert smallest.label == "site=c"
        for name in ("augrc", "aurc", "wrong_rate", "selective_accuracy"):
            gap = table.gaps[name]
            assert gap.group == "site=c"
            assert gap.coverage == pytest.approx(0.2)
            assert gap.gap.value == pytest.approx(gap.worst.value - gap.rest.value)
            assert (gap.gap.value > 0.0) == (name != "selective_accuracy")

    def test_gaps_of_areas_at_different_coverages_are_compared_in_proportion(self) -> None:
        """All answers are tied, so that AUGRC up to c is risk * c^2 / 2; sites err in 5, 35 and 60% of their answers.

        Site b reaches 0.6 with the rest: (0.35 - 17/120) * 0.18 = 0.0375. Site c reaches 0.2: (0.6 - 0.2) * 0.02 =
        0.008, which is the smaller area and the larger difference in risk.
        """
        wrong = np.r_[np.arange(100) < 5, np.arange(100) < 35, np.arange(100) < 12]
        items = Items.from_arrays(
            np.zeros(300),
            wrong.astype(int),
            abstained=np.r_[np.zeros(200, bool), np.arange(100) >= 20],
            confidence=np.ones(300),
            metadata={"site": np.repeat(["a", "b", "c"], 100)},
        )
        gap = table_of(items, metrics="augrc", by="site").gaps["augrc"]
        assert gap.group == "site=c"
        assert gap.gap.value == pytest.approx(0.008)

    def test_small_groups_have_a_note_and_are_not_the_worst(self) -> None:
        sites = ["a"] * 20 + ["b"] * 20 + ["c"] * 3
        items = Items.from_arrays(np.ones(43), [1] * 20 + [1] * 19 + [0] * 4, metadata={"site": sites})
        table = table_of(items, metrics="accuracy", by="site")
        small = table.group("site=c")
        assert small.note == "too small to evaluate: 3 of at least 10 clusters"
        assert small.estimates["accuracy"].reason == small.note
        assert table.gaps["accuracy"].group == "site=b"
        assert (small.items, small.answered, small.clusters) == (3, 3, 3)

    @pytest.mark.parametrize(("clusters", "evaluated"), [(9, False), (10, True)])
    def test_ten_clusters_are_enough_and_nine_are_not(self, clusters: int, evaluated: bool) -> None:
        sites = ["a"] * 20 + ["b"] * clusters
        right = [1] * 20 + [0] * clusters
        items = Items.from_arrays(np.ones(len(sites)), right, metadata={"site": sites})
        table = table_of(items, metrics="accuracy", by="site")
        assert (table.group("site=b").note == "") == evaluated
        assert ("accuracy" in table.gaps) == evaluated

    def test_rows_without_a_value_are_a_group(self) -> None:
        items = Items.from_arrays([1, 1, 1], [1, 1, 0], metadata={"sex": ["F", None, None]})
        table = table_of(items, metrics="accuracy", by="sex", resamples=0)
        assert [(group.label, group.items) for group in table.groups] == [("sex=F", 1), ("sex=(missing)", 2)]
        assert table.gaps == {}

    def test_several_columns(self) -> None:
        table = table_of(results_to_items(drawn()), metrics="accuracy", by=["sex", "ckd_stage"], resamples=0)
        assert [group.label for group in table.groups][:2] == ["sex=F, ckd_stage=1", "sex=F, ckd_stage=2"]
        assert table.by == ("sex", "ckd_stage")
        assert sum(group.items for group in table.groups) == 120

    def test_numbers_are_in_their_order(self) -> None:
        items = Items.from_arrays(np.ones(4), np.ones(4), metadata={"age": [10, 9, 100, 10]})
        labels = [g.label for g in table_of(items, metrics="accuracy", by="age", resamples=0).groups]
        assert labels == ["age=9", "age=10", "age=100"]

    def test_by_item(self) -> None:
        items = Items.from_arrays([1, 1], [1, 0], cluster=["p", "p"], item=["Sleep", "Tired"])
        table = table_of(items, metrics="accuracy", by="item", resamples=0)
        assert [g.estimates["accuracy"].value for g in table.groups] == [1.0, 0.0]


class TestConfidences:
    def test_metrics_that_need_a_confidence_are_computed_for_each(self) -> None:
        items = Items.from_arrays(
            [1, 0, 1], [1, 1, 1], signals={"margin": [0.9, 0.1, 0.8], "flat": [0.5] * 3}
        )
        table = table_of(items, metrics="accuracy,aurc", confidence="margin,flat", loss="zero_one")
        assert list(table) == ["accuracy", "aurc[margin]", "aurc[flat]"]

    def test_the_areas_are_those_of_the_variants(self) -> None:
        items = results_to_items(drawn())
        both = abstain.evaluate(
            items,
            metrics="aurc,augrc,eaurc,risk_at_coverage",
            confidence="confidence",
            loss="zero_one",
            resamples=99,
        )
        assert both.metrics is not None
        variant = both["confidence"]
        for name in ("aurc", "augrc", "eaurc"):
            ours = getattr(variant, name)
            assert both.metrics[name].interval == pytest.approx(ours.interval)
        assert both.metrics["risk_at_coverage"].value == variant.risk_at_coverage[0.5].value

    def test_a_confidence_outside_0_and_1_is_an_error_for_calibration_metrics(self) -> None:
        items = Items.from_arrays([1, 0], [1, 1], signals={"margin": [7, 2]})
        assert table_of(items, metrics="aurc", confidence="margin", loss="zero_one")["aurc"].defined
        with pytest.raises(
            DataError, match=r"needs a confidence in \[0, 1\], got 7 for row 0 \(2 such items\)"
        ):
            table_of(items, metrics="ece", confidence="margin", loss="zero_one")

    def test_without_a_confidence_metrics_have_a_reason(self) -> None:
        table = table_of(Items.from_arrays([1, 0], [1, 1]), metrics="ece,aurc")
        assert table["expected_calibration_error"].reason == "no answered row has a confidence"
        assert "no confidence, so they cannot be ranked" in table["aurc"].reason


def test_text_labels_need_no_loss_by_name() -> None:
    items = results_to_items(
        [EvaluationResult("Stable", "stable", confidence=0.9), EvaluationResult("x", "y")]
    )
    table = table_of(items, metrics="accuracy,selective_accuracy,aurc_optimal")
    assert table["accuracy"].value == 0.5
    assert table["aurc_optimal"].value == pytest.approx(0.125)


def test_tables_with_metrics_of_answered_items_include_the_coverage() -> None:
    assert "answer_rate" in table_of(results_to_items(drawn()), metrics="mae")


def test_outcomes_are_counted() -> None:
    items = Items.from_arrays(
        [1, 1, 1, 1, None], [1, 0, None, None, 1], abstained=[0, 0, 1, 0, 0], failed=[0, 0, 0, 1, 0]
    )
    counts = table_of(items, metrics="accuracy").outcomes
    assert (counts.right, counts.wrong, counts.abstained, counts.failed, counts.unscored) == (1, 1, 1, 1, 1)


class TestComparison:
    def test_differences_agree_with_those_of_a_custom_function(self) -> None:
        left, right = (
            results_to_items(drawn(right=proportion), cluster="patient") for proportion in (0.6, 0.9)
        )
        found = abstain.compare(
            left, right, metrics=["accuracy", RightAnswers], by="sex", resamples=200, match="rows"
        )
        expected = abstain.paired_delta(
            lambda rows: float(((rows.truth == rows.prediction) & rows.answered).mean()),
            left,
            right,
            resamples=200,
            match_by="rows",
        )
        for name in ("accuracy", "right_answers"):
            difference = found.difference("left", "right", name)
            ends = [
                (each.value, each.low, each.high, *(each.percentile or ()))
                for each in (difference.estimate, expected)
            ]
            assert ends[0] == pytest.approx(ends[1])
            assert difference.verdict == "right"
        groups = {each.group for each in found.differences}
        assert groups == {"", "sex=F", "sex=M"}
        assert found.left.metrics is not None
        assert found.left.metrics["accuracy"].value < 0.6

    def test_undefined_on_one_side(self) -> None:
        left = results_to_items(drawn(size=30))
        right = results_to_items([replace(row, confidence=None) for row in drawn(size=30)])
        found = abstain.compare(left, right, metrics="brier_score", resamples=20, match="rows")
        (difference,) = (each for each in found.differences if each.metric == "brier_score")
        assert "brier_score is undefined for right" in difference.sentence
        assert difference.verdict == "inconclusive"

    def test_without_requested_metrics_there_is_no_table(self) -> None:
        items = results_to_items(drawn(size=30))
        assert abstain.evaluate(items, loss="zero_one", resamples=10).metrics is None
        assert abstain.compare(items, items, loss="zero_one", resamples=10, match="rows").left.metrics is None


class TestBadInput:
    def test_an_unknown_group_column_is_an_error(self) -> None:
        items = results_to_items(drawn(size=5))
        with pytest.raises(
            ArgumentError,
            match="unknown group column 'ckd_stages' .did you mean 'ckd_stage'..; columns: ckd_stage, sex",
        ):
            table_of(items, metrics="accuracy", by="ckd_stages")

    def test_a_group_column_with_too_many_values_is_an_error(self) -> None:
        rows = 10_001
        items = Items.from_arrays(np.ones(rows), np.ones(rows), metadata={"egfr": np.arange(rows) / 7})
        message = (
            "egfr makes 10,001 groups, and at most 10,000 are evaluated; name a column with fewer values"
        )
        with pytest.raises(DataError, match=message):
            table_of(items, metrics="accuracy", by="egfr")

    def test_a_group_column_of_lists_is_an_error(self) -> None:
        items = Items.from_arrays([1, 1], [1, 1], metadata={"notes": [[1], [2]]})
        with pytest.raises(DataError, match="notes is a list at row 0; a column for groups must"):
            table_of(items, metrics="accuracy", by="notes")

    def test_guidance_that_is_not_boolean_is_an_error(self) -> None:
        items = Items.from_arrays([1, 1], [1, 1], metadata={"should_abstain": [True, "yes"]})
        with pytest.raises(DataError, match="should_abstain must be True or False, got text at row 1"):
            table_of(items, metrics="deferral_alignment")
        assert table_of(items, metrics="accuracy")["accuracy"].value == 1.0

    def test_a_duplicate_group_column_is_an_error(self) -> None:
        with pytest.raises(ArgumentError, match="by must name at least one column"):
            table_of(results_to_items(drawn(size=5)), metrics="accuracy", by=["sex", "sex"])

    def test_an_unknown_metric_is_an_error_with_a_suggestion(self) -> None:
        table = table_of(results_to_items(drawn(size=5)), metrics="accuracy", resamples=0)
        with pytest.raises(ArgumentError, match="unknown metric 'acuracy' .did you mean 'accuracy'"):
            table["acuracy"]


def test_results_of_items_keep_their_metrics() -> None:
    items = results_to_items(drawn())
    again = results_to_items(items_to_results(items))
    left, right = (table_of(rows, metrics="default_benchmark", resamples=50) for rows in (items, again))
    assert repr(left) == repr(right)


def test_intervals_and_sets_of_items_can_be_evaluated() -> None:
    items = Items.from_arrays([1, 2, 3], [1, 1, 1], intervals=[[0, 2], [0, 2], [0, 4]])
    table = table_of(items, metrics="interval_coverage,interval_mean_width,set_empty_rate")
    assert table["interval_coverage"].value == 1.0
    assert table["interval_mean_width"].value == pytest.approx(8 / 3)
    assert "no answered row has a set" in table["set_empty_rate"].reason
    sets = Items.from_arrays(["a", "b"], ["a", "a"], sets=[[True, False], [True, False]], classes=("a", "b"))
    assert table_of(sets, metrics="set_coverage")["set_coverage"].value == 0.5


def test_an_area_without_answers_has_a_reason() -> None:
    items = results_to_items([EvaluationResult(None, 1, abstained=True, confidence=0.1)] * 3)
    found = table_of(items, metrics="aurc", resamples=5)["aurc"]
    assert found.value == 0.0
    assert found.reason.startswith("no item was answered")


def test_the_error_of_a_custom_metric_is_named_without_its_message() -> None:
    class Broken(RightAnswers):
        name = "broken"

        def compute(self, results: list[EvaluationResult]) -> MetricScore:
            raise KeyError("Mrs. Example")

    with pytest.raises(ArgumentError, match=r"metric broken: compute\(\) raised KeyError$"):
        table_of(results_to_items(drawn(size=3)), metrics=Broken)


def test_infinite_values_have_no_difference() -> None:
    endless = Items.from_arrays(
        np.ones(40),
        np.ones(40),
        intervals=np.column_stack([np.zeros(40), np.full(40, math.inf)]),
        metadata={"a": [1, 2] * 20},
    )
    found = abstain.compare(
        endless, endless, metrics="interval_mean_width", by="a", resamples=10, match="rows"
    )
    assert found.left.metrics is not None
    assert found.left.metrics["interval_mean_width"].value == math.inf
    difference = found.difference("left", "right", "interval_mean_width")
    assert not difference.estimate.defined
    assert "interval_mean_width is infinite for left" in difference.sentence


def test_invalid_metrics_are_an_error() -> None:
    with pytest.raises(ArgumentError, match="metrics must be names or metrics, got a number"):
        table_of(results_to_items(drawn(size=3)), metrics=3)
