"""Gates: parsing of conditions, verdicts from intervals worked out by hand, and exit codes."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pytest

from abstain import ArgumentError, DataError, Items, gate
from abstain.evaluation import GateResult, parse_condition
from abstain.evaluation._gate import _checked, _Measured
from abstain.inference import Estimate


def run(right: int, wrong: int, *, declined: int = 0, sure: float = 0.9) -> Items:
    """Return independent items with the same confidence."""
    count = right + wrong + declined
    return Items.from_arrays(
        [1] * count,
        [1] * right + [0] * wrong + [None] * declined,
        abstained=[0] * (right + wrong) + [1] * declined,
        confidence=[sure] * count,
        item=[f"q{number}" for number in range(count)],
    )


def evaluated(items: Items, *conditions: str, **options: Any) -> GateResult:
    return gate(items, conditions, **{"loss": "zero_one", "resamples": 400, **options})


@pytest.mark.parametrize(
    ("text", "name", "relation", "number", "upwards"),
    [
        ("aurc worse by 0.01", "aurc", "worse", 0.01, True),
        ("accuracy worse by 0.01", "accuracy", "worse", 0.01, False),
        ("cmax below 0.6", "cmax", "below", 0.6, False),
        ("ece above 0.1", "expected_calibration_error", "above", 0.1, True),
        ("  risk_at_coverage@0.8   Above  1e-1 ", "risk_at_coverage@0.8", "above", 0.1, True),
        ("cmax lower by 0.05", "cmax", "lower", 0.05, False),
        ("accuracy better by 0", "accuracy", "better", 0.0, True),
        ("augrc higher by 0.1", "augrc", "higher", 0.1, True),
    ],
)
def test_conditions(text: str, name: str, relation: str, number: float, upwards: bool) -> None:
    found = parse_condition(text)
    assert (found.metric.key, found.relation, found.number, found.upwards) == (
        name,
        relation,
        number,
        upwards,
    )
    assert found.needs_baseline == ("by" in text.split())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "too short; write METRIC above NUMBER"),
        ("aurc", "too short"),
        ("aurcc above 0.1", r"unknown metric 'aurcc' \(did you mean 'aurc'\?\)"),
        ("aurc abve 0.1", r"unknown relation 'abve' \(did you mean 'above'\?\)"),
        ("aurc > 0.1", r"unknown relation '>' \(did you mean 'above'\?\)"),
        ("aurc <= 0.1", r"unknown relation '<=' \(did you mean 'below'\?\)"),
        ("aurc wrose by 0.1", r"unknown relation 'wrose' \(did you mean 'worse'\?\)"),
        ("aurc worse 0.1", "'worse' needs a margin: aurc worse by NUMBER"),
        ("aurc above ten", "'ten' is not a number"),
        ("aurc above nan", "'nan' is not a finite number"),
        ("aurc above 0.1 or so", "it must end with one number"),
        ("aurc worse by -0.1", "a margin must not be negative, got -0.1"),
        ("cmax worse by 0.1", "cmax has no better direction; write cmax lower by 0.1 or cmax higher by 0.1"),
        (
            "accuracy at matched coverage worse by 0.1",
            "accuracy is not compared at matched coverage; remove these words",
        ),
        (
            "aurc at matched coverage above 0.1",
            "only a change from the baseline can be measured at matched coverage",
        ),
        ("aurc at matched coverage", "unknown relation ''"),
    ],
)
def test_invalid_conditions_are_errors(text: str, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        parse_condition(text)


@pytest.mark.parametrize(
    ("text", "interval", "verdict"),
    [
        # above: fails if the whole interval lies above, passes if none of it does.
        ("ece above 0.1", (0.11, 0.2), "fail"),
        ("ece above 0.1", (0.05, 0.1), "pass"),
        ("ece above 0.1", (0.1, 0.2), "inconclusive"),
        ("ece above 0.1", (0.05, 0.2), "inconclusive"),
        # below: fails if the whole interval lies below.
        ("cmax below 0.6", (0.4, 0.59), "fail"),
        ("cmax below 0.6", (0.6, 0.8), "pass"),
        ("cmax below 0.6", (0.4, 0.6), "inconclusive"),
        # a change has the sign with which the condition holds for large values.
        ("augrc worse by 0.005", (0.006, 0.02), "fail"),
        ("augrc worse by 0.005", (-0.02, 0.005), "pass"),
        ("augrc worse by 0.005", (-0.001, 0.006), "inconclusive"),
        ("accuracy worse by 0.01", (0.02, 0.05), "fail"),
        ("cmax lower by 0.1", (-0.3, -0.2), "pass"),
    ],
)
def test_verdicts_by_hand(text: str, interval: tuple[float, float], verdict: str) -> None:
    estimate = Estimate(sum(interval) / 2, *interval, clusters=40)
    condition = parse_condition(text)
    measured = _Measured(estimate, condition.number, f"{condition.number:g}")
    assert _checked(condition, measured, without_answers=False).verdict == verdict


def test_a_level_by_hand() -> None:
    # 80 right of 100: the 95% interval of accuracy is about 0.8 +- 0.08.
    found = evaluated(run(80, 20), "accuracy below 0.7", "accuracy below 0.8", "accuracy below 0.9")
    assert [check.verdict for check in found.checks] == ["pass", "inconclusive", "fail"]
    assert found.verdict == "fail"
    assert found.exit_code == 1
    assert found.checks[2].sentence.endswith("below 0.9")
    assert "which spans 0.8" in found.checks[1].sentence


def test_verdicts_and_exit_codes() -> None:
    items = run(80, 20)
    assert evaluated(items, "accuracy below 0.5").exit_code == 0
    assert evaluated(items, "accuracy below 0.8").exit_code == 4
    assert evaluated(items, "accuracy below 0.8", inconclusive="pass").exit_code == 0
    assert evaluated(items, "accuracy below 0.8", inconclusive="fail").exit_code == 1
    # A condition that fails decides, however an inconclusive one counts.
    assert evaluated(items, "accuracy below 0.8", "accuracy below 0.95", inconclusive="pass").exit_code == 1


def test_changes_from_the_baseline() -> None:
    old, new = run(90, 10), run(60, 40)
    found = evaluated(
        new, "accuracy worse by 0.1", "accuracy worse by 0.3", "accuracy worse by 0.5", baseline=old
    )
    assert [check.verdict for check in found.checks] == ["fail", "inconclusive", "pass"]
    assert found.checks[0].estimate.value == pytest.approx(0.3)
    assert found.checks[0].sentence.startswith("accuracy is worse by 0.300 [")
    better = evaluated(old, "accuracy worse by 0.01", "accuracy better by 0.1", baseline=new)
    assert [check.verdict for check in better.checks] == ["pass", "fail"]
    # Lower is better, so the sign of the change is reversed.
    area = evaluated(new, "augrc worse by 0.05", "augrc higher by 0.05", baseline=old)
    assert [check.verdict for check in area.checks] == ["fail", "fail"]


def test_identical_runs_pass_only_with_a_margin_above_the_exact_bound() -> None:
    """If 100 items agree, up to 1 - 0.025^(1/100) = 3.6% of all may differ; 2 items are hardly evidence."""
    found = evaluated(
        run(80, 20),
        "accuracy worse by 0",
        "accuracy worse by 0.03",
        "accuracy worse by 0.04",
        baseline=run(80, 20),
    )
    assert [check.verdict for check in found.checks] == ["inconclusive", "inconclusive", "pass"]
    assert found.checks[2].estimate.interval == pytest.approx((-0.036217, 0.036217), abs=1e-6)
    assert evaluated(run(1, 1), "accuracy worse by 0.001", baseline=run(1, 1)).exit_code == 4


def declined_at_random(items: Items, keep: float, seed: int = 0) -> Items:
    """Return the same answers, most of them declined at random."""
    abstained = np.random.default_rng(seed).random(len(items)) > keep
    return Items.from_arrays(
        items.truth,
        items.prediction,
        abstained=abstained,
        confidence=items.signals["confidence"].values,
        item=items.item,
    )


def honest(n: int = 400, seed: int = 1) -> Items:
    """Return items that are all answered, and more often right if the confidence is higher."""
    rng = np.random.default_rng(seed)
    confidence = rng.random(n)
    right = rng.random(n) < 0.5 + 0.4 * confidence
    return Items.from_arrays([1] * n, right.astype(int), confidence=confidence, item=range(n))


@pytest.mark.parametrize(
    "metric",
    [
        "augrc",
        "aurc",
        "eaurc",
        "augrc_at_coverage@0.5",
        "selective_accuracy",
        "wrong_rate",
        "hallucination_rate",
    ],
)
def test_a_run_does_not_pass_by_declining_at_random(metric: str) -> None:
    baseline = honest()
    timid = declined_at_random(baseline, 0.14)
    for margin in ("0.005", "5%", "0"):
        assert evaluated(timid, f"{metric} worse by {margin}", baseline=baseline).exit_code in (1, 4)
    # Even with a huge margin, the gate is inconclusive because the run answers fewer items.
    (check,) = evaluated(timid, f"{metric} worse by 100", baseline=baseline).checks
    assert check.verdict == "inconclusive"
    assert "the run answers fewer items than the baseline, by 0.8" in check.sentence
    assert check.sentence.endswith('such as --fail-if "cmax lower by 0.05"')


@pytest.mark.parametrize(
    "bound",
    [
        "cmax lower by 0.9",
        "answer_rate below 0.05",
        "abstention_rate higher by 0.95",
        "coverage_at_risk@0.5 below 0.01",
    ],
)
def test_with_a_condition_that_bounds_the_coverage_a_run_can_pass(bound: str) -> None:
    baseline = honest()
    timid = declined_at_random(baseline, 0.14)
    found = evaluated(timid, "ece worse by 0.9", bound, baseline=baseline)
    assert [check.verdict for check in found.checks] == ["pass", "pass"]
    # A bound on the wrong side does not limit declining.
    other = evaluated(timid, "ece worse by 0.9", "cmax above 0.95", baseline=baseline)
    assert other.checks[0].verdict == "inconclusive"


def test_a_run_that_declines_only_wrong_answers_can_pass() -> None:
    baseline = honest()
    declined = (baseline.prediction == 0) & (np.arange(400) % 2 == 0)
    careful = Items.from_arrays(
        baseline.truth,
        baseline.prediction,
        abstained=declined,
        confidence=baseline.signals["confidence"].values,
        item=baseline.item,
    )
    found = evaluated(careful, "augrc worse by 0", "cmax lower by 0.5", baseline=baseline)
    assert [check.verdict for check in found.checks] == ["pass", "pass"]


def test_an_absolute_bound_on_an_area_needs_a_bound_on_the_coverage() -> None:
    items = honest()
    for condition in ("augrc above 0.9", "aurc above 0.9", "wrong_rate above 0.9"):
        (check,) = evaluated(items, condition).checks
        assert check.verdict == "inconclusive"
        assert check.sentence.endswith('add a condition on the coverage, such as --fail-if "cmax below 0.8"')
        bounded = evaluated(items, condition, "cmax below 0.8")
        assert [check.verdict for check in bounded.checks] == ["pass", "pass"]
    # A condition that fails still fails, and metrics that declining does not improve need no further condition.
    assert evaluated(items, "augrc above 0.0001").exit_code == 1
    assert evaluated(items, "accuracy below 0.3", "ece above 0.9", "auarc below 0.1").exit_code == 0


def test_a_margin_is_scaled_down_with_the_coverage_like_the_metric() -> None:
    """All answers are tied, so at half the coverage the AURC is half and the AUGRC a quarter as large."""
    baseline, half = run(160, 40), run(60, 40, declined=100)
    found = evaluated(
        half, "aurc worse by 0.1", "augrc worse by 0.1", "augrc worse by 50%", baseline=baseline
    )
    area, generalized, relative = found.checks
    assert [check.bound for check in (area, generalized)] == pytest.approx([0.05, 0.025])
    assert area.coverage == generalized.coverage == 0.5
    # Baseline 0.2 * 0.5 = 0.1 and run 0.4 * 0.5 = 0.2 for AURC; for AUGRC 0.2 / 8 and 0.4 / 8.
    assert [check.estimate.value for check in found.checks] == pytest.approx([0.1, 0.025, 0.025])
    assert "0.05 (0.1 at the baseline's coverage 1.00, scaled to coverage 0.50)" in area.sentence
    assert "50% of the baseline's 0.025 at coverage 0.50" in relative.sentence
    assert relative.bound == pytest.approx(0.0125)


def test_at_matched_coverage_answering_less_does_not_help() -> None:
    """The new run has the smaller area only because it answers less; more of its answers are wrong."""
    old = run(160, 40)
    new = run(50, 30, declined=120)
    short, spelled = evaluated(
        new, "augrc worse by 0", "augrc at matched coverage worse by 0", baseline=old
    ).checks
    assert short.verdict == spelled.verdict == "fail"
    assert short.sentence == spelled.sentence
    assert short.sentence.startswith("augrc at coverage 0.40 is worse by ")
    # With equal coverage there is nothing to match.
    same = evaluated(run(120, 80), "augrc at matched coverage worse by 0", baseline=old)
    assert same.checks[0].sentence.startswith("augrc is worse by ")


def test_a_run_without_answers_never_passes() -> None:
    silent, old = run(0, 0, declined=100), run(80, 20)
    conditions = ("aurc above 0.1", "augrc worse by 0.01", "ece above 0.1", "cmax below 0.6")
    found = evaluated(silent, *conditions, baseline=old, inconclusive="pass")
    assert [check.verdict for check in found.checks] == ["fail"] * 4
    assert found.exit_code == 1
    assert "never passes" in found.checks[0].sentence
    # With a baseline without answers, the gate is inconclusive.
    assert evaluated(old, "augrc worse by 0.01", baseline=silent).exit_code == 4


def test_undefined_and_single_clusters_are_inconclusive() -> None:
    found = evaluated(run(80, 20), "deferral_alignment below 0.5")
    assert found.checks[0].verdict == "inconclusive"
    assert math.isnan(found.checks[0].estimate.value)
    assert not found.warnings
    one = Items.from_arrays([1, 1], [1, 1], confidence=[1, 1], cluster=["p", "p"], item=["x", "y"])
    one_cluster = evaluated(one, "accuracy below 0.5")
    assert one_cluster.exit_code == 4
    assert [warning.code for warning in one_cluster.warnings] == ["few_clusters"]
    assert evaluated(one, "accuracy worse by 0.5", baseline=one).exit_code == 4


def test_invalid_arguments_are_errors() -> None:
    items = run(8, 2)
    with pytest.raises(
        ArgumentError, match=r"condition 'aurc worse by 0.1' is about a change; pass the baseline"
    ):
        evaluated(items, "aurc worse by 0.1")
    with pytest.raises(ArgumentError, match="a gate needs at least one condition"):
        evaluated(items)
    with pytest.raises(ArgumentError, match="unknown inconclusive 'maybe'; known: pass, fail, inconclusive"):
        evaluated(items, "aurc above 1", inconclusive="maybe")
    with pytest.raises(ArgumentError, match="resamples must be at least 2, got 1"):
        evaluated(items, "aurc above 1", interval="percentile", resamples=1)
    with pytest.raises(DataError, match="do not have the same items"):
        evaluated(items, "aurc worse by 0.1", baseline=run(9, 2))
    assert evaluated(items, "aurc worse by 0.99", baseline=run(9, 2), intersection_only=True).exit_code == 0
    failed = evaluated(Items.from_arrays([None], [None], failed=[1]), "aurc above 1")
    assert (failed.verdict, failed.exit_code) == ("fail", 1)
    assert "never passes" in failed.checks[0].sentence


def test_one_condition_needs_no_list_and_may_be_parsed_before() -> None:
    items = run(80, 20)
    assert gate(items, "accuracy below 0.5", resamples=50).verdict == "pass"
    assert gate(items, parse_condition("accuracy below 0.5"), resamples=50).verdict == "pass"
    assert repr(evaluated(items, "accuracy below 0.5")).startswith("Gate: pass\n  pass: accuracy is 0.800 [")


def test_a_gate_is_deterministic_and_respects_clusters() -> None:
    rng = np.random.default_rng(0)
    right = np.repeat(rng.random(20) < 0.7, 10).astype(int)
    wide = Items.from_arrays([1] * 200, right, cluster=np.repeat(np.arange(20), 10), confidence=[1.0] * 200)
    narrow = Items.from_arrays([1] * 200, right, confidence=[1.0] * 200)
    ends = [
        evaluated(items, "accuracy below 0.5").checks[0].estimate.interval for items in (wide, wide, narrow)
    ]
    assert ends[0] == ends[1]
    assert ends[0][1] - ends[0][0] > 2 * (ends[2][1] - ends[2][0])  # type: ignore[index]


def test_a_margin_in_percent_is_relative_to_the_baseline() -> None:
    assert [parse_condition(text).relative for text in ("augrc worse by 5%", "augrc worse by 0.05")] == [
        True,
        False,
    ]
    level = parse_condition("ece above 10%")
    assert (level.number, level.relative) == (0.1, False)
    truth = [1] * 400
    old = Items.from_arrays(truth, [1] * 320 + [0] * 80, item=range(400))
    new = Items.from_arrays(truth, [1] * 300 + [0] * 100, item=range(400))
    # 0.80 fell to 0.75, which is 6.25% of 0.80; the interval over 400 items is about 0.03 to 0.07.
    checks = gate(
        new, [f"accuracy worse by {proportion}%" for proportion in (1, 5, 20)], baseline=old, loss="zero_one"
    ).checks
    assert [check.verdict for check in checks] == ["fail", "inconclusive", "pass"]
    assert re.fullmatch(
        r"accuracy is worse by 0\.050 \[0\.\d{3}, 0\.\d{3}\], beyond 1% of the baseline's 0\.800",
        checks[0].sentence,
    )


def test_an_improvement_is_reported_as_better_by_a_positive_number() -> None:
    truth = [1] * 400
    old = Items.from_arrays(truth, [1] * 300 + [0] * 100, item=range(400))
    new = Items.from_arrays(truth, [1] * 320 + [0] * 80, item=range(400))
    (check,) = gate(new, "accuracy worse by 0.01", baseline=old).checks
    assert check.verdict == "pass"
    assert check.sentence.startswith("accuracy is better by 0.050 [0.0")
    assert check.estimate.value == pytest.approx(-0.05)


def test_a_gate_counts_the_compared_clusters() -> None:
    truth = [1] * 60
    run = Items.from_arrays(truth, [1] * 50 + [0] * 10, confidence=range(60), item=range(60))
    fewer = Items.from_arrays(truth[:55], [1] * 45 + [0] * 10, confidence=range(55), item=range(55))
    both = gate(run, ["augrc worse by 0.1", "cmax below 0.5"], baseline=fewer, intersection_only=True)
    assert (both.clusters, both.compared, both.confidence) == (60, 55, "confidence")
    change = gate(run, "augrc worse by 0.1", baseline=fewer, intersection_only=True)
    assert (change.clusters, change.compared) == (0, 55)
    no_baseline = gate(run, "accuracy below 0.5")
    assert (no_baseline.clusters, no_baseline.compared, no_baseline.confidence) == (60, 0, "")
