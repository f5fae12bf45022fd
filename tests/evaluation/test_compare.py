"""Comparisons of systems: matching, paired differences, sentences, and the rate of false alarms."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.stats import nct

from abstain import ArgumentError, DataError, Items, compare, read
from abstain.evaluation import Difference, Rank
from abstain.inference import Estimate, MarginVerdict
from examples import EXAMPLES

CLUSTERS, SIZE = 30, 4


def system(
    seed: int, *, quality: float = 1.0, declines: float = 0.0, clusters: int = CLUSTERS, size: int = SIZE
) -> Items:
    """Return a system whose answers are right more often if its quality is higher; labels do not depend on the seed."""
    cluster = np.repeat(np.arange(clusters), size)
    truth = np.random.default_rng(99).integers(0, 2, clusters * size)
    rng = np.random.default_rng(seed)
    chance = 1 / (1 + np.exp(-(quality + rng.normal(0, 0.5, clusters)[cluster])))
    right = rng.random(len(truth)) < chance
    return Items.from_arrays(
        truth,
        np.where(right, truth, 1 - truth),
        abstained=rng.random(len(truth)) < declines,
        confidence=np.clip(chance + rng.normal(0, 0.2, len(truth)), 0, 1),
        cluster=cluster,
        item=np.tile(np.arange(size), clusters),
    )


def evaluated(systems: dict[str, Items], **options: Any) -> Any:
    return compare(systems, **{"metrics": "augrc", "loss": "zero_one", "resamples": 0, **options})


def rank(found: Any, system: str, metric: str) -> Any:
    """Return the rank of a system by its only confidence."""
    return next(
        rank
        for (name, _, key), rank in found.ranks.items()
        if name == system and key.partition("@")[0] == metric
    )


def shuffled(items: Items, seed: int = 0) -> Items:
    return items.take(np.random.default_rng(seed).permutation(len(items)))


def test_two_systems_by_hand() -> None:
    """Forty clusters of one item: A is wrong in twenty of them, B in none."""
    truth, item = [1] * 40, [f"q{i}" for i in range(40)]
    sure = np.linspace(1, 0.5, 40)
    a = Items.from_arrays(truth, [1] * 20 + [0] * 20, item=item, confidence=sure)
    b = Items.from_arrays(truth, [1] * 40, item=item, confidence=sure)
    found = evaluated({"A": a, "B": b})
    # The loss sum grows from 0 at 20 items to 20 at 40: a triangle of 20 by 20, divided by 40 squared.
    assert found.systems["A"].estimate("augrc").value == pytest.approx(200 / 1600)
    assert found.systems["B"].estimate("augrc").value == 0.0
    (difference,) = found.differences
    assert difference.estimate.value == pytest.approx(-0.125)
    low, high = difference.estimate.interval
    assert (
        difference.sentence
        == f"AUGRC at coverage 1.00: B is better than A by 0.125 [{-high:.3f}, {-low:.3f}]"
    )
    assert difference.winner == "B"
    assert difference.p == difference.p_adjusted < 0.05
    assert (str(rank(found, "A", "augrc")), str(rank(found, "B", "augrc"))) == ("2", "1")


def test_two_sides_and_named_systems_are_one_comparison() -> None:
    """Matching and numbers are the same, whether all selective metrics are requested or two by name."""
    left, right = (read(EXAMPLES / "run_b.json", mode=mode) for mode in ("zero_shot", "few_shot"))
    options: dict[str, Any] = {"resamples": 300, "seed": 3, "intersection_only": True}
    two = compare(left, right, confidence="llm", **options)
    many: Any = compare({"l": left, "r": right}, metrics=["aurc", "augrc"], confidence="llm", **options)
    assert many.matching.evaluated == 8 * many.matching.clusters == 424
    for metric in ("aurc", "augrc"):
        found = many.difference("l", "r", metric, matched=False)
        expected = two.difference("left", "right", metric, matched=False)
        assert found.estimate == expected.estimate == getattr(two.deltas["llm"], metric)
        found, expected = many.difference("l", "r", metric), two.difference("left", "right", metric)
        assert found.matched
        assert found.estimate == expected.estimate
        assert (found.p, found.p_adjusted, found.verdict) == (
            expected.p,
            expected.p_adjusted,
            expected.verdict,
        )


def test_rows_are_matched_by_name_and_never_by_position() -> None:
    systems = {"a": system(1), "b": system(2, quality=2.0)}
    straight = evaluated(systems)
    mixed = evaluated({"a": shuffled(systems["a"], 5), "b": shuffled(systems["b"], 6)})
    for one, other in zip(straight.differences, mixed.differences, strict=True):
        assert one.estimate == other.estimate
        assert one.p == other.p
    assert mixed.matching.by == ("cluster", "item")


def test_unnamed_rows_cannot_be_matched() -> None:
    rows = Items.from_arrays([1, 0], [1, 1], confidence=[1, 0.5])
    with pytest.raises(
        DataError, match=r"rows are not matched by their order unless you request it.*--match rows"
    ):
        evaluated({"a": rows, "b": rows})
    twice = Items.from_arrays([1, 0], [1, 1], confidence=[1, 0.5], cluster=["p", "p"])
    with pytest.raises(DataError, match=r"a: cluster p, row 1 appears twice.*name them \(item=, --item\)"):
        evaluated({"a": twice, "b": twice})


def test_one_name_is_enough_if_it_is_different_for_every_row() -> None:
    truth, answer, sure = [1, 0, 1], [1, 1, 1], [0.9, 0.5, 0.7]
    by_item = Items.from_arrays(truth, answer, confidence=sure, item=["x", "y", "z"])
    found = evaluated({"a": by_item, "b": shuffled(by_item)})
    assert found.matching.by == ("item",)
    assert found.differences[0].estimate.value == 0.0
    by_cluster = Items.from_arrays(truth, answer, confidence=sure, cluster=["x", "y", "z"])
    assert evaluated({"a": by_cluster, "b": shuffled(by_cluster)}).matching.by == ("cluster",)
    # If only one side has clusters, they apply to both.
    grouped = Items.from_arrays(truth, answer, confidence=sure, item=["x", "y", "z"], cluster=["p", "p", "q"])
    assert evaluated({"a": by_item, "b": grouped}).matching.clusters == 2


def test_missing_items_are_an_error_unless_the_intersection_is_requested() -> None:
    complete = system(1)
    part = system(2).take(np.arange(CLUSTERS * SIZE) > 2)
    with pytest.raises(
        DataError,
        match=r"of 120 items b lacks 3 \(the first one that b lacks: cluster 0, item 0\), 117 are in all",
    ):
        evaluated({"a": complete, "b": part})
    found = evaluated({"a": complete, "b": part}, intersection_only=True)
    assert (found.matching.total, found.matching.shared, found.matching.evaluated) == (120, 117, 117)
    assert dict(found.matching.missing) == {"a": 0, "b": 3}
    assert any(warning.code == "missing_items" for warning in found.warnings)


def test_failed_items_are_excluded_from_all_systems_and_counted() -> None:
    items = system(1)
    failed = np.zeros(len(items), bool)
    failed[:5] = True
    broken = Items.from_arrays(
        items.truth, items.prediction, failed=failed, cluster=items.cluster, item=items.item,
        confidence=items.signals["confidence"].values,
    )  # fmt: skip
    found = evaluated({"a": items, "b": broken})
    assert (found.matching.shared, found.matching.evaluated) == (120, 115)
    assert dict(found.matching.left_out) == {"a": 0, "b": 5}
    assert found.systems["a"].population.items == 115
    assert any("5 of 120 shared items are left out" in str(warning) for warning in found.warnings)


def test_invalid_arguments_are_errors() -> None:
    a, b = system(1), system(2)
    with pytest.raises(ArgumentError, match="at least two systems, got 1"):
        evaluated({"a": a})
    with pytest.raises(ArgumentError, match="a system must be Items, a data frame, a path, .* got a list"):
        evaluated([a, b])  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="two systems are called 'left'"):
        compare(a, {"left": b, "right": a}, b)
    with pytest.raises(ArgumentError, match=r"unknown metric 'augcr' \(did you mean 'augrc'\?\)"):
        evaluated({"a": a, "b": b}, metrics="augcr")
    with pytest.raises(ArgumentError, match="no metric was requested"):
        evaluated({"a": a, "b": b}, metrics=[])
    with pytest.raises(ArgumentError, match="unknown reference 'c'; known: a, b"):
        evaluated({"a": a, "b": b}, reference="c")
    with pytest.raises(ArgumentError, match="margin must be greater than 0, got -1"):
        evaluated({"a": a, "b": b}, margin=-1)
    run = read(EXAMPLES / "run_b.json", mode="few_shot")
    with pytest.raises(
        ArgumentError, match="a: a system is ranked by one confidence, got llm, total_evidence"
    ):
        evaluated({"a": run, "b": run}, confidence={"a": "llm,total_evidence"})
    with pytest.raises(ArgumentError, match="unknown system 'z'; known: a, b"):
        evaluated({"a": a, "b": b}, confidence={"z": "confidence"})
    with pytest.raises(ArgumentError, match="an array cannot match the rows of all"):
        evaluated({"a": a, "b": b}, loss=np.zeros(120))
    with pytest.raises(ArgumentError, match=r"level must fulfil 0 < level < 1, got 95; did you mean 0.95"):
        evaluated({"a": a, "b": b}, level=95)
    with pytest.raises(DataError, match="a: cluster 0, item 0 appears twice"):
        evaluated({"a": a.take(np.r_[0, 0, 1:120]), "b": b})
    text = Items.from_arrays([1], [1], cluster=["0"], item=["0"], confidence=[1.0])
    with pytest.raises(DataError, match="the clusters are numbers in .* and text in"):
        evaluated({"a": a, "b": text})
    with pytest.raises(ArgumentError, match=r"different positive labels; name one for all \(positive=\)"):
        evaluated({"a": a.with_positive(1), "b": b.with_positive(0)})
    elsewhere = replace(b, cluster=b.cluster + 1000)
    with pytest.raises(DataError, match="no item in common"):
        evaluated({"a": a, "b": elsewhere}, intersection_only=True)
    empty = Items.from_arrays([None], [None], failed=[1], cluster=[0], item=[0])
    with pytest.raises(DataError, match="b: there is no item to evaluate"):
        evaluated({"a": a, "b": empty})


def test_items_with_different_labels_are_an_error_and_counted() -> None:
    a = system(1)
    truth = a.truth.copy()
    truth[7] = 1 - truth[7]
    pair = {"a": a, "b": replace(system(2), truth=truth)}
    with pytest.raises(
        DataError, match="disagree about the truth of 1 of 120 shared items.*--truth-may-differ"
    ):
        evaluated(pair)
    found = evaluated(pair, truth_may_differ=True)
    assert found.matching.different_truths == 1
    assert [str(warning) for warning in found.warnings] == [
        "1 of 120 items have different truths in different systems: are they the same items?"
    ]
    assert not evaluated({"a": a, "b": system(2)}).warnings
    # A label that is a number in one system and the same text in the other is the same label.
    words = replace(a, truth=np.array([f"{value:.0f}" for value in a.truth], dtype=object))
    assert evaluated({"a": a, "b": words}).matching.different_truths == 0


def test_rows_are_matched_by_their_order_if_requested() -> None:
    truth = [1, 0, 1, 0]
    a = Items.from_arrays(truth, [1, 1, 1, 1], confidence=[0.9, 0.5, 0.7, 0.4])
    b = Items.from_arrays(truth, truth, confidence=[0.9, 0.5, 0.7, 0.4])
    found = evaluated({"a": a, "b": b}, match="rows", metrics="accuracy")
    assert found.matching.by == ("rows",)
    assert found.difference("a", "b").estimate.value == 0.5
    with pytest.raises(DataError, match="equally many: a 4, b 3"):
        evaluated({"a": a, "b": b.take(np.arange(3))}, match="rows")
    with pytest.raises(DataError, match="disagree about the truth of 4 of 4"):
        evaluated({"a": a, "b": replace(b, truth=1 - b.truth)}, match="rows")
    with pytest.raises(ArgumentError, match="unknown match 'row'"):
        evaluated({"a": a, "b": b}, match="row")


def test_all_pairs_of_systems_are_one_family() -> None:
    systems = {
        name: system(seed, quality=q) for name, seed, q in (("a", 1, 0.0), ("b", 2, 0.2), ("c", 3, 3.0))
    }
    found = evaluated(systems)
    assert [(each.left, each.right) for each in found.differences] == [("a", "b"), ("a", "c"), ("b", "c")]
    raw = sorted(each.p for each in found.differences)
    adjusted = sorted(each.p_adjusted for each in found.differences)
    assert adjusted[0] == pytest.approx(min(3 * raw[0], 1))
    assert found.difference("c", "a").winner == "c"
    assert rank(found, "c", "augrc") == Rank(1, 1)
    assert [rank(found, name, "augrc") for name in "ab"] == [Rank(2, 3), Rank(2, 3)]
    against = evaluated(systems, reference="b")
    assert [(each.left, each.right) for each in against.differences] == [("b", "a"), ("b", "c")]


def test_every_metric_is_a_separate_family_and_has_a_name_in_sentences() -> None:
    found = evaluated({"a": system(1), "b": system(2, quality=3.0)}, metrics="augrc,accuracy,cmax")
    assert [each.metric for each in found.differences] == ["accuracy", "cmax", "augrc"]
    assert found.sentences[0].startswith("Accuracy: b is better than a by ")
    assert found.sentences[2].startswith("AUGRC at coverage 1.00: b is better than a by ")
    assert found.difference("a", "b", "accuracy").winner == "b"
    # With two systems the family has one difference, so the p-value is not corrected, whatever else is requested.
    assert all(each.p == each.p_adjusted and each.family == 1 for each in found.differences if each.verdict)
    # Coverage has no better direction, so it has no verdict and no rank.
    assert found.difference("a", "b", "cmax").verdict is None
    assert rank(found, "a", "cmax") is None
    with pytest.raises(ArgumentError, match="a and b were not compared by aurc"):
        found.difference("a", "b", "aurc")


def test_systems_with_different_coverages_are_compared_at_matched_coverage() -> None:
    """The shy system has the smaller AUGRC because it answers less; at matched coverage it is worse."""
    shy, bold = system(1, quality=-0.5, declines=0.6), system(2, quality=1.5)
    found = evaluated({"shy": shy, "bold": bold})
    whole, matched = found.differences
    assert (whole.matched, matched.matched) == (False, True)
    assert matched.coverage == pytest.approx(shy.counts.coverage)
    assert matched.sentence.startswith(
        f"AUGRC at coverage {matched.coverage:.2f}: bold is better than shy by "
    )
    assert whole.verdict is None
    assert whole.no_verdict == f"not comparable: coverages {shy.counts.coverage:.2f} and 1.00"
    assert whole.conclusion == "not comparable"
    assert whole.estimate.interval is not None
    assert found.difference("shy", "bold") is matched
    assert found.headline.winner == "bold"
    assert [str(rank(found, name, "augrc")) for name in ("shy", "bold")] == ["2", "1"]
    assert found.systems["shy"].estimate("augrc").value < found.systems["bold"].estimate("augrc").value
    assert matched.left_value > matched.right_value
    assert any(warning.code == "coverage_differs" for warning in found.warnings)
    # A metric without a form at matched coverage is accompanied by the selective risk there.
    accuracy = evaluated({"shy": shy, "bold": bold}, metrics="accuracy")
    assert [(each.metric, each.matched) for each in accuracy.differences] == [
        ("accuracy", False),
        ("risk", True),
    ]
    assert not any(each.matched for each in evaluated({"a": bold, "b": system(3)}).differences)


def test_both_intervals_at_matched_coverage_lie_on_the_side_of_the_difference() -> None:
    """The right system has far fewer errors, so that every interval of right - left is below 0."""
    shy, bold = system(1, quality=-1.0, declines=0.5), system(2, quality=3.0)
    for metric in ("augrc", "accuracy"):
        matched = evaluated({"shy": shy, "bold": bold}, metrics=metric, resamples=500).differences[-1]
        assert matched.matched
        assert matched.verdict == "right"
        low, high = matched.estimate.percentile
        assert low < matched.estimate.value < high < 0.0
        assert matched.estimate.low < matched.estimate.value < matched.estimate.high < 0.0


def test_without_a_confidence_the_answers_up_to_the_matched_coverage_are_chosen_at_random() -> None:
    """Half of the answers, all tied: the selective accuracy stays, the proportion of wrong answers halves."""
    shy, bold = system(1, declines=0.5), system(2)
    bare = {name: replace(items, signals={}) for name, items in (("shy", shy), ("bold", bold))}
    found = evaluated(bare, metrics="accuracy,selective_accuracy,wrong_rate")
    accuracy = found.difference("shy", "bold", "selective_accuracy")
    assert accuracy.matched
    assert accuracy.coverage == pytest.approx(shy.counts.coverage)
    own = found.systems["bold"].estimate("selective_accuracy").value
    assert accuracy.right_value == pytest.approx(own)
    wrong = found.difference("shy", "bold", "wrong_rate")
    assert wrong.right_value == pytest.approx((1 - own) * accuracy.coverage)
    (warning,) = found.warnings
    assert warning.message.endswith(
        "without a confidence, the answers up to that coverage are chosen at random"
    )


def test_systems_may_have_any_name() -> None:
    systems = {"matched": system(1, declines=0.5), "": system(2), "coverage": system(3, declines=0.2)}
    found = evaluated(systems, resamples=50)
    assert len(found.differences) == 6
    assert found.difference("matched", "coverage", matched=True).coverage < 1.0


def test_a_system_without_answers_never_wins() -> None:
    silent = system(1, declines=1.1)
    assert silent.counts.answered == 0
    for metrics in ("augrc", "aurc", "accuracy", "selective_accuracy", "effective_reliability"):
        found = evaluated({"silent": silent, "b": system(2, quality=-2.0), "c": system(3)}, metrics=metrics)
        assert rank(found, "silent", metrics) is None
        assert rank(found, "c", metrics).best == 1
        for each in found.differences:
            assert each.winner != "silent"
            if "silent" in (each.left, each.right):
                assert math.isnan(each.p)
                assert "silent answered no item, and a system without answers must not win" in each.sentence
        assert any(warning.code == "nothing_answered" for warning in found.warnings)


def test_verdicts_need_no_resamples_and_do_not_depend_on_them() -> None:
    systems = {"a": system(1), "b": system(2, quality=4.0)}
    without, few = evaluated(systems), evaluated(systems, resamples=50)
    assert without.sentences == few.sentences
    assert without.difference("a", "b").verdict == "right"
    assert without.difference("a", "b").estimate.percentile is None
    assert few.difference("a", "b").estimate.percentile is not None


@pytest.mark.parametrize(("quality", "verdict"), [(4.0, "right"), (-4.0, "left"), (1.0, "inconclusive")])
def test_the_verdict_agrees_with_the_interval(quality: float, verdict: str) -> None:
    found = evaluated({"a": system(1), "b": system(2, quality=quality)}, metrics="augrc,accuracy")
    for each in found.differences:
        low, high = each.estimate.interval
        assert each.verdict == verdict
        assert (each.verdict == "inconclusive") == (low <= 0.0 <= high)
        conclusions = {"right": "b is better", "left": "a is better", "inconclusive": "inconclusive"}
        assert each.conclusion == conclusions[verdict]


def test_clear_differences_are_decided_among_many_pairs() -> None:
    """Twelve systems, 66 pairs: a system with 5% right answers is clearly worse than one with 93%."""
    systems = {f"s{index:02}": system(index, quality=-3 + index * 0.5, clusters=60) for index in range(12)}
    found = evaluated(systems, metrics="augrc,accuracy,aurc,cmax")
    for metric in ("augrc", "accuracy", "aurc"):
        extreme = found.difference("s00", "s11", metric)
        assert (extreme.winner, extreme.family) == ("s11", 66)
        assert extreme.p_adjusted < 1e-6
    assert sum(each.winner is not None for each in found.differences) > 100
    for each in found.differences:
        assert "needed" not in each.sentence


def test_the_number_of_clusters_needed_is_in_the_sentence_only_with_a_margin() -> None:
    systems = {"a": system(1), "b": system(4)}
    (without,) = evaluated(systems).differences
    assert without.finding == f"inconclusive, b - a = {without.estimate}"
    assert without.more_clusters > 0
    (each,) = evaluated(systems, margin=0.001).differences
    assert each.finding.endswith(" clusters are needed to detect a difference of 0.001")


def test_intervals_that_hold_together_are_wider() -> None:
    systems = {name: system(seed) for name, seed in (("a", 1), ("b", 2), ("c", 3))}
    separate, together = evaluated(systems), evaluated(systems, simultaneous=True)
    for one, other in zip(separate.differences, together.differences, strict=True):
        assert other.estimate.low < one.estimate.low < one.estimate.high < other.estimate.high
        assert "simultaneous for 3 pairs" in other.estimate.method
        assert one.verdict == other.verdict


def test_one_cluster_gives_no_verdict() -> None:
    found = evaluated({"a": system(1, clusters=1), "b": system(2, quality=4.0, clusters=1)})
    reason = "there is only one cluster, so there is no confidence interval"
    assert found.sentences == (f"AUGRC at coverage 1.00: cannot compare a and b: {reason}",)


def test_undefined_metrics_have_a_reason() -> None:
    found = evaluated({"a": system(1), "b": system(2)}, metrics="deferral_alignment")
    assert "deferral_alignment is undefined for a: " in found.sentences[0]
    assert rank(found, "a", "deferral_alignment") is None


INCONCLUSIVE = "inconclusive, C - A = 0.0030 [-0.0050, 0.0110]"


def difference(**changes: Any) -> Difference:
    """Return an inconclusive difference: 0.003 with a standard error of 0.004 over 60 participants."""
    inconclusive = Difference(
        metric="augrc",
        direction="lower",
        confidence="llm",
        group="",
        left="A",
        right="C",
        left_value=0.100,
        right_value=0.103,
        estimate=Estimate(0.003, -0.005, 0.011, se=0.004, clusters=60),
        p=0.46,
        p_adjusted=0.46,
        cluster_noun="participant",
    )
    return replace(inconclusive, **changes)


@pytest.mark.parametrize(
    ("clusters_needed", "needed"),
    [
        # 838 - 60 = 778, which is rounded up to two digits.
        (838.0, "about 780 more participants"),
        (300.0, "about 240 more participants"),
        (67.0, "about 7 more participants"),
        (1260.0, "about 1,200 more participants"),
        (6000.0, "about 6,000 more participants"),
        (6001.0, "more than 100 times as many participants"),
        (math.inf, "more than 100 times as many participants"),
        (60.0, ""),
        (50.0, ""),
    ],
)
def test_clusters_needed_in_words(clusters_needed: float, needed: str) -> None:
    margin = MarginVerdict(0.002, left_not_worse=False, right_not_worse=False)
    sentence = f"AUGRC of answered items: {INCONCLUSIVE}"
    expected = f"{sentence}; {needed} are needed to detect a difference of 0.002" if needed else sentence
    assert difference(clusters_needed=clusters_needed, margin=margin).sentence == expected
    # Without a margin, the number would only be about the observed difference.
    assert difference(clusters_needed=clusters_needed).sentence == sentence
    # Systems that are equivalent need no further clusters.
    equivalent = MarginVerdict(0.02, left_not_worse=True, right_not_worse=True)
    assert "needed" not in difference(clusters_needed=clusters_needed, margin=equivalent).sentence


def test_margins_in_words() -> None:
    within = difference(margin=MarginVerdict(0.02, left_not_worse=True, right_not_worse=True))
    assert within.finding == f"{INCONCLUSIVE}; they are within 0.02 of each other"
    one = difference(margin=MarginVerdict(0.01, left_not_worse=True, right_not_worse=False))
    assert one.finding == f"{INCONCLUSIVE}; A is not worse than C by more than 0.01"
    none = difference(margin=MarginVerdict(0.001, left_not_worse=False, right_not_worse=False))
    assert none.finding == INCONCLUSIVE


def test_margins_by_hand() -> None:
    """A side is not worse by more than a margin if the interval excludes that margin."""
    systems = {"a": system(1), "b": system(4)}
    (each,) = evaluated(systems, margin=0.5).differences
    low, high = each.estimate.interval
    assert each.margin.equivalent
    margin = (abs(low) + abs(high)) / 2
    (each,) = evaluated(systems, margin=margin).differences
    # Lower is better, so the right side is worse if the difference is large.
    assert each.margin.right_not_worse == (high < margin)
    assert each.margin.left_not_worse == (low > -margin)
    assert not each.margin.equivalent


def test_verdicts_in_words() -> None:
    change = Estimate(-0.012, -0.020, -0.004, se=0.004, clusters=60)
    better = difference(estimate=change, right="B", p=0.001, p_adjusted=0.003)
    assert better.sentence == "AUGRC of answered items: B is better than A by 0.0120 [0.0040, 0.0200]"
    assert (better.verdict, better.conclusion, better.winner) == ("right", "B is better", "B")
    higher = replace(better, direction="higher")
    assert higher.finding == "A is better than B by 0.0120 [0.0040, 0.0200]"
    assert (higher.verdict, higher.conclusion, higher.winner) == ("left", "A is better", "A")
    neither = replace(better, direction="neither", comparison="undirected")
    assert neither.sentence == "AUGRC: A is higher than B by 0.0120 [0.0040, 0.0200]"
    assert (neither.verdict, neither.winner, neither.conclusion) == (None, None, "no winner")
    at = replace(better, comparison="matched", matched=True, coverage=0.625)
    assert at.sentence == "AUGRC at coverage 0.62: B is better than A by 0.0120 [0.0040, 0.0200]"
    whole = replace(better, comparison="matched", left_coverage=1.0, right_coverage=0.14)
    assert whole.sentence == (
        "AUGRC up to coverages 1.00 and 0.14: not comparable, B - A = -0.0120 [-0.0200, -0.0040]"
    )
    assert (whole.verdict, whole.winner) == (None, None)
    answered = replace(better, metric="expected_calibration_error", left_coverage=1.0, right_coverage=0.9999)
    assert answered.sentence.startswith("ECE of answered items (coverages 1.0000 and 0.9999): B is better")
    grouped = replace(better, metric="accuracy", comparison="penalized", group="site=A")
    assert grouped.subject() == "Accuracy in site=A"
    # Significant by itself, but not after the correction.
    assert replace(better, p_adjusted=0.06).winner is None


def test_clusters_needed_are_for_the_margin_or_the_observed_difference() -> None:
    systems = {"a": system(1), "b": system(4)}
    (each,) = evaluated(systems).differences
    assert each.winner is None
    # The standard error has as many degrees of freedom as clusters less one; N - 1 degrees add a little.
    reach = nct.ppf(0.8, CLUSTERS - 1, 1.959964)
    expected = CLUSTERS * (reach * each.estimate.se / each.estimate.value) ** 2
    assert each.clusters_needed == pytest.approx(expected, abs=4)
    (with_margin,) = evaluated(systems, margin=0.01).differences
    expected = CLUSTERS * (reach * each.estimate.se / 0.01) ** 2
    assert with_margin.clusters_needed == pytest.approx(expected, abs=4)


def test_more_clusters_are_needed_among_many_pairs() -> None:
    """Each of three pairs is tested at a third of alpha, which is always sufficient."""
    found = evaluated({"a": system(1), "b": system(4), "c": system(6)})
    inconclusive = [each for each in found.differences if each.winner is None]
    assert inconclusive
    for each in inconclusive:
        assert each.family == 3
        # z(1 - 0.05 / 6) = 2.393980
        reach = nct.ppf(0.8, CLUSTERS - 1, 2.393980)
        expected = CLUSTERS * (reach * each.estimate.se / each.estimate.value) ** 2
        assert each.clusters_needed == pytest.approx(math.ceil(expected), abs=4)


def test_confidences_may_differ_by_system() -> None:
    a = system(1)
    renamed = replace(a, signals={"margin": a.signals["confidence"]})
    found = evaluated({"a": a, "b": renamed}, confidence={"b": "margin"})
    assert [dict(side.confidences) for side in found.systems.values()] == [
        {"own": "confidence"},
        {"own": "margin"},
    ]
    assert found.differences[0].estimate.value == 0.0


def test_same_seed_same_numbers() -> None:
    systems = {"a": system(1), "b": system(2)}
    found = [evaluated(systems, seed=seed, resamples=50).differences[0].estimate for seed in (1, 1, 2)]
    assert found[0].percentile == found[1].percentile != found[2].percentile
    assert found[0].interval == found[2].interval


@pytest.mark.slow
@pytest.mark.parametrize("metric", ["augrc", "aurc"])
def test_false_alarms_with_forty_clusters_are_at_most_nominal(metric: str) -> None:
    """Two systems are equally good, with 40 clusters: one is called better at most 5% of the time."""
    runs = 600
    alarms = 0
    for run in range(runs):
        pair = {"a": system(2 * run, clusters=40, size=3), "b": system(2 * run + 1, clusters=40, size=3)}
        found = evaluated(pair, metrics=metric, seed=run)
        alarms += found.differences[0].winner is not None
    # The nominal rate plus two standard errors.
    assert alarms / runs <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / runs)


@pytest.mark.slow
def test_false_alarms_among_six_pairs_are_at_most_nominal() -> None:
    """Four systems are equally good: any of the six pairs is called different at most 5% of the time."""
    runs = 100
    alarms = 0
    for run in range(runs):
        systems = {name: system(4 * run + index, clusters=40, size=3) for index, name in enumerate("abcd")}
        found = evaluated(systems, seed=run)
        alarms += any(each.winner is not None for each in found.differences)
    assert alarms / runs <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / runs)


def test_every_pair_is_compared_once() -> None:
    systems = {str(seed): system(seed) for seed in range(4)}
    found = evaluated(systems, resamples=50)
    pairs = {(each.left, each.right) for each in found.differences}
    assert pairs == set(itertools.combinations("0123", 2))


def test_few_errors_give_few_degrees_of_freedom() -> None:
    """The AUROC of correctness depends on the errors: in 4 clusters of one system, and in 6 of the other."""
    generator = np.random.default_rng(2)

    def system(clusters_with_errors: int) -> Items:
        cluster = np.arange(60) // 3
        wrong = (np.arange(60) % 3 == 0) & (cluster < clusters_with_errors)
        return Items.from_arrays(
            np.zeros(60, int),
            wrong.astype(int),
            confidence=generator.random(60),
            cluster=cluster,
            item=np.arange(60),
        )

    metrics = ["correctness_auroc", "prediction_rejection_ratio@augrc", "accuracy"]
    result = compare({"a": system(4), "b": system(6)}, metrics=metrics)
    degrees = [result.difference("a", "b", metric).estimate.degrees for metric in metrics]
    assert degrees == pytest.approx([3.0, 3.0, 19.0])


@pytest.mark.parametrize("metric", ["coverage_at_risk@0.1", "risk_at_coverage@0.85"])
def test_metrics_that_jump_differ_by_the_ends_of_both_intervals(metric: str) -> None:
    """A jump between operating points makes the jackknife invalid. With few levels, a coverage is near a jump."""
    generator = np.random.default_rng(4)
    cluster = np.repeat(np.arange(40), 5)
    truth = np.zeros(200, int)

    def system(rate: float) -> Items:
        wrong = (generator.random(200) < rate).astype(int)
        confidence = np.round(generator.random(200) - 0.4 * wrong, 1)
        return Items.from_arrays(truth, wrong, confidence=confidence, cluster=cluster, item=np.arange(200))

    result = compare({"a": system(0.2), "b": system(0.2)}, metrics=metric)
    left, right = (result.systems[name].estimate(metric) for name in "ab")
    found = result.difference("a", "b", metric)
    reach = max(
        math.hypot(left.high - left.value, right.value - right.low),
        math.hypot(left.value - left.low, right.high - right.value),
    )
    value = right.value - left.value
    assert found.estimate.value == pytest.approx(value)
    assert found.estimate.low == pytest.approx(max(value - reach, -1.0))
    assert found.estimate.high == pytest.approx(min(value + reach, 1.0))
    assert found.estimate.method == "from the intervals of both sides, t distribution"
    assert found.verdict == "inconclusive"
    assert found.p > 0.05


@pytest.mark.parametrize("interval", ["percentile", "bca"])
def test_equal_systems_are_equal_by_a_metric_that_jumps_in_every_resample(interval: str) -> None:
    items = shuffled(system(1))
    result = compare(
        {"a": items, "b": items}, metrics="coverage_at_risk@0.3", interval=interval, resamples=50
    )
    found = result.difference("a", "b", "coverage_at_risk@0.3")
    assert (found.estimate.value, found.p, found.verdict) == (0.0, 1.0, "inconclusive")


def test_coverages_within_rounding_are_equal() -> None:
    """0.1 + 0.2 answers of 0.9 items are as many as 0.3, so nothing warns, and systems have ranks."""
    weights = ([0.1, 0.2, 0.3, 0.3], [0.3, 0.1, 0.2, 0.3])
    pair = {}
    for name, weight, answered in zip("ab", weights, ([0, 1], [0]), strict=True):
        abstained = ~np.isin(np.arange(4), answered)
        pair[name] = Items.from_arrays(
            [1] * 4,
            [1] * 4,
            abstained=abstained,
            weight=weight,
            item=[f"{name}{number}" for number in range(4)],
        )
    result = compare(pair, metrics="selective_accuracy", unpaired=True)
    coverages = [each.coverage.value for each in result.systems.values()]
    assert coverages[0] != coverages[1]
    assert not any(warning.code == "coverage_differs" for warning in result.warnings)
    assert str(rank(result, "a", "selective_accuracy")) == "1-2"


def test_systems_without_wrong_answers_are_as_uncertain_as_one_more_of_them() -> None:
    """Brier score of 20 right answers each, with confidences .9 and .8: a wrong one would cost .8 and .6 more.

    The squared error is .01 or .04, and of a wrong answer .81 or .64. All rows agree in the difference of .03, apart
    from one with another confidence, so that there is some spread.
    """
    truth, item = [1] * 20, np.arange(20)
    a = Items.from_arrays(truth, truth, confidence=[0.9] * 20, item=item)
    b = Items.from_arrays(truth, truth, confidence=[0.8] * 19 + [0.7], item=item)
    result = compare({"a": a, "b": b}, metrics="brier_score")
    found = result.difference("a", "b", "brier_score")
    assert found.estimate.value == pytest.approx((19 * 0.04 + 0.09) / 20 - 0.01)
    spread = np.array([0.03] * 19 + [0.08]).std(ddof=1) / math.sqrt(20)
    costs = 0.8 / 20, (19 * 0.6 + 0.4) / 20 / 20
    assert found.estimate.se == pytest.approx(math.hypot(spread, *costs))
    assert found.verdict == "inconclusive"
    assert found.estimate.method == "jackknife over 20 clusters and unseen wrong rows, t distribution"


def test_a_metric_without_an_interval_has_no_interval_of_a_difference() -> None:
    generator = np.random.default_rng(0)
    truth = generator.normal(size=30)

    def system(width: float) -> Items:
        return Items.from_arrays(
            truth, truth, item=np.arange(30), intervals=truth[:, None] + [[-width, width]]
        )

    metric = "interval_coverage_width_criterion@0.9"
    found = compare({"a": system(1.0), "b": system(2.0)}, metrics=metric).difference("a", "b", metric)
    assert found.estimate.interval is None
    assert found.conclusion.startswith("not compared: no interval: it divides by the range of the truths")
