"""Systems compared: matched by name, paired by cluster, told in words, and no more false alarms than promised."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from abstain import ArgumentError, DataError, Items, compare, compare_systems, read
from abstain.evaluation import Rank, SystemDifference
from abstain.inference import Estimate
from examples import EXAMPLES

CLUSTERS, SIZE = 30, 4


def system(
    seed: int, *, quality: float = 1.0, declines: float = 0.0, clusters: int = CLUSTERS, size: int = SIZE
) -> Items:
    """A system whose answers are right more often the better it is; truths are the same for every seed."""
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


def judged(systems: dict[str, Items], **options: Any) -> Any:
    return compare_systems(systems, **{"loss": "zero_one", "resamples": 400, **options})


def shuffled(items: Items, seed: int = 0) -> Items:
    return items.take(np.random.default_rng(seed).permutation(len(items)))


def test_two_systems_by_hand() -> None:
    """Twenty clusters of one item: A errs in ten of them, B in none; augrc without ties is a sum of prefix sums."""
    truth, item = [1] * 20, [f"q{i}" for i in range(20)]
    sure = np.linspace(1, 0.5, 20)
    a = Items.from_arrays(truth, [1] * 10 + [0] * 10, item=item, confidence=sure)
    b = Items.from_arrays(truth, [1] * 20, item=item, confidence=sure)
    found = judged({"A": a, "B": b})
    # The loss sum climbs from 0 at 10 items to 10 at 20: a triangle of 10 by 10, over 20 squared.
    assert found.systems["A"].estimates["augrc"].value == pytest.approx(50 / 400)
    assert found.systems["B"].estimates["augrc"].value == 0.0
    (difference,) = found.differences
    assert difference.difference.value == pytest.approx(-0.125)
    low, high = difference.difference.interval
    assert difference.words == f"B is better than A by 0.125 [{-high:.3f}, {-low:.3f}]"
    assert difference.winner == "B"
    assert difference.p == difference.p_adjusted < 0.05
    assert (str(found.systems["A"].ranks["augrc"]), str(found.systems["B"].ranks["augrc"])) == ("2", "1")


def test_the_difference_is_that_of_compare() -> None:
    """The same draws, the same matching, the same numbers as the comparison of two sides."""
    left, right = (read(EXAMPLES / "run_b.json", mode=mode) for mode in ("zero_shot", "few_shot"))
    options: dict[str, Any] = {"resamples": 300, "seed": 3, "intersection_only": True}
    two = compare(left, right, confidence="llm", **options).deltas["llm"]
    many = compare_systems({"l": left, "r": right}, metrics=["aurc", "augrc"], confidence="llm", **options)
    assert many.matching.judged == 8 * many.matching.clusters == 424
    for metric in ("aurc", "augrc"):
        found, expected = many.difference("l", "r", metric).difference, getattr(two, metric)
        assert found.interval is not None
        assert (found.value, *found.interval) == pytest.approx((expected.value, expected.low, expected.high))


def test_rows_are_matched_by_name_and_never_by_place() -> None:
    systems = {"a": system(1), "b": system(2, quality=2.0)}
    straight = judged(systems)
    mixed = judged({"a": shuffled(systems["a"], 5), "b": shuffled(systems["b"], 6)})
    for one, other in zip(straight.differences, mixed.differences, strict=True):
        assert one.difference == other.difference
        assert one.p == other.p
    assert mixed.matching.by == ("cluster", "item")


def test_unnamed_rows_cannot_be_matched() -> None:
    rows = Items.from_arrays([1, 0], [1, 1], confidence=[1, 0.5])
    with pytest.raises(DataError, match="rows are never matched by their places; name the items"):
        judged({"a": rows, "b": rows})
    twice = Items.from_arrays([1, 0], [1, 1], confidence=[1, 0.5], cluster=["p", "p"])
    with pytest.raises(DataError, match=r"a: cluster p, item 1 stands twice .*name them \(item=, --item\)"):
        judged({"a": twice, "b": twice})


def test_one_name_is_enough_where_it_tells_all_rows_apart() -> None:
    truth, answer, sure = [1, 0, 1], [1, 1, 1], [0.9, 0.5, 0.7]
    by_item = Items.from_arrays(truth, answer, confidence=sure, item=["x", "y", "z"])
    found = judged({"a": by_item, "b": shuffled(by_item)})
    assert found.matching.by == ("item",)
    assert found.differences[0].difference.value == 0.0
    by_cluster = Items.from_arrays(truth, answer, confidence=sure, cluster=["x", "y", "z"])
    assert judged({"a": by_cluster, "b": shuffled(by_cluster)}).matching.by == ("cluster",)
    # Where one side names clusters and the other does not, the named ones say what belongs together.
    grouped = Items.from_arrays(truth, answer, confidence=sure, item=["x", "y", "z"], cluster=["p", "p", "q"])
    assert judged({"a": by_item, "b": grouped}).matching.clusters == 2


def test_missing_items_are_an_error_unless_the_intersection_is_asked_for() -> None:
    whole = system(1)
    part = system(2).take(np.arange(CLUSTERS * SIZE) > 2)
    with pytest.raises(
        DataError, match=r"of 120 items b lacks 3 \(b the first one: cluster 0, item 0\), 117 are in all"
    ):
        judged({"a": whole, "b": part})
    found = judged({"a": whole, "b": part}, intersection_only=True)
    assert (found.matching.total, found.matching.shared, found.matching.judged) == (120, 117, 117)
    assert dict(found.matching.missing) == {"a": 0, "b": 3}
    assert any(caution.code == "missing_items" for caution in found.cautions)


def test_failed_items_are_left_out_of_all_systems_and_counted() -> None:
    items = system(1)
    failed = np.zeros(len(items), bool)
    failed[:5] = True
    broken = Items.from_arrays(
        items.truth, items.prediction, failed=failed, cluster=items.cluster, item=items.item,
        confidence=items.signals["confidence"].values,
    )  # fmt: skip
    found = judged({"a": items, "b": broken})
    assert (found.matching.shared, found.matching.judged) == (120, 115)
    assert dict(found.matching.left_out) == {"a": 0, "b": 5}
    assert found.systems["a"].items == 115
    assert any("5 of 120 shared items are left out" in str(caution) for caution in found.cautions)


def test_bad_calls() -> None:
    a, b = system(1), system(2)
    with pytest.raises(ArgumentError, match="at least two systems, got 1"):
        judged({"a": a})
    with pytest.raises(ArgumentError, match="systems must be a mapping"):
        judged([a, b])  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match=r"unknown metric 'augcr' \(did you mean 'augrc'\?\)"):
        judged({"a": a, "b": b}, metrics="augcr")
    with pytest.raises(ArgumentError, match="no metric was asked for"):
        judged({"a": a, "b": b}, metrics=[])
    with pytest.raises(ArgumentError, match="unknown reference 'c'; known: a, b"):
        judged({"a": a, "b": b}, reference="c")
    with pytest.raises(ArgumentError, match="margin must be greater than 0, got -1"):
        judged({"a": a, "b": b}, margin=-1)
    with pytest.raises(ArgumentError, match="one confidence ranks a system, got llm, verbalized"):
        judged({"a": a, "b": b}, confidence="llm,verbalized")
    with pytest.raises(ArgumentError, match="unknown system 'z'; known: a, b"):
        judged({"a": a, "b": b}, confidence={"z": "confidence"})
    with pytest.raises(ArgumentError, match="an array cannot fit the rows of all systems"):
        judged({"a": a, "b": b}, loss=np.zeros(120))
    with pytest.raises(ArgumentError, match=r"level must fulfil 0 < level < 1, got 95; did you mean 0.95"):
        judged({"a": a, "b": b}, level=95)
    with pytest.raises(DataError, match="a: cluster 0, item 0 stands twice"):
        judged({"a": a.take(np.r_[0, 0, 1:120]), "b": b})
    text = Items.from_arrays([1], [1], cluster=["0"], item=["0"], confidence=[1.0])
    with pytest.raises(DataError, match="the clusters are numbers in one system and text in another"):
        judged({"a": a, "b": text})
    elsewhere = replace(b, cluster=b.cluster + 1000)
    with pytest.raises(DataError, match="no item in common"):
        judged({"a": a, "b": elsewhere}, intersection_only=True)
    empty = Items.from_arrays([None], [None], failed=[1], cluster=[0], item=[0])
    with pytest.raises(DataError, match="b: there is no item to judge"):
        judged({"a": a, "b": empty})


def test_items_that_have_not_the_same_truth_are_counted() -> None:
    a = system(1)
    truth = a.truth.copy()
    truth[7] = 1 - truth[7]
    found = judged({"a": a, "b": replace(system(2), truth=truth)})
    assert found.matching.different_truths == 1
    assert [str(caution) for caution in found.cautions] == [
        "1 of 120 items have not the same truth in all systems: are they the same items?"
    ]
    assert not judged({"a": a, "b": system(2)}).cautions


def test_many_systems_every_pair_one_family() -> None:
    systems = {
        name: system(seed, quality=q) for name, seed, q in (("a", 1, 0.0), ("b", 2, 0.2), ("c", 3, 3.0))
    }
    found = judged(systems)
    assert [(each.left, each.right) for each in found.differences] == [("a", "b"), ("a", "c"), ("b", "c")]
    raw = sorted(each.p for each in found.differences)
    adjusted = sorted(each.p_adjusted for each in found.differences)
    assert adjusted[0] == pytest.approx(min(3 * raw[0], 1))
    assert found.difference("c", "a").winner == "c"
    assert found.systems["c"].ranks["augrc"] == Rank(1, 1, 1)
    ranks = [found.systems[name].ranks["augrc"] for name in "ab"]
    assert sorted(rank.place for rank in ranks) == [2, 3]
    assert {(rank.best, rank.worst) for rank in ranks} == {(2, 3)}
    against = judged(systems, reference="b")
    assert [(each.left, each.right) for each in against.differences] == [("b", "a"), ("b", "c")]


def test_several_metrics_are_one_family_and_named_in_words() -> None:
    found = judged({"a": system(1), "b": system(2, quality=3.0)}, metrics="augrc,accuracy,cmax")
    assert list(found.metrics) == ["augrc", "accuracy", "cmax"]
    assert found.words[1].startswith("accuracy: b is better than a by ")
    assert found.difference("a", "b", "accuracy").winner == "b"
    tested = [each.p for each in found.differences]
    assert min(each.p_adjusted for each in found.differences) == pytest.approx(min(tested) * 3)
    # Coverage is neither good nor bad, so nobody is ranked by it.
    assert found.systems["a"].ranks["cmax"] is None
    with pytest.raises(ArgumentError, match="a and b were not compared by aurc"):
        found.difference("a", "b", "aurc")


def test_different_coverage_is_compared_at_matched_coverage_too() -> None:
    """The shy system has the smaller AUGRC for answering less; where both answer as much, it is the worse one."""
    shy, bold = system(1, quality=0.3, declines=0.6), system(2, quality=1.5)
    found = judged({"shy": shy, "bold": bold}, resamples=1000)
    whole, matched = found.differences
    assert (whole.matched, matched.matched) == (False, True)
    assert matched.coverage == pytest.approx(shy.counts.coverage)
    assert matched.words.startswith(f"at coverage {matched.coverage:.2f}, ")
    assert found.systems["shy"].estimates["augrc"].value < found.systems["bold"].estimates["augrc"].value
    assert matched.left_value > matched.right_value
    assert any(caution.code == "coverage_differs" for caution in found.cautions)
    # A metric without a form at matched coverage is accompanied by the selective risk there.
    accuracy = judged({"shy": shy, "bold": bold}, metrics="accuracy")
    assert [(each.metric, each.matched) for each in accuracy.differences] == [
        ("accuracy", False),
        ("risk", True),
    ]
    assert not any(each.matched for each in judged({"a": bold, "b": system(3)}).differences)


def test_where_nothing_can_be_matched_it_is_said() -> None:
    shy, bold = system(1, declines=0.5), system(2)
    bare = {name: replace(items, signals={}) for name, items in (("shy", shy), ("bold", bold))}
    found = judged(bare, metrics="accuracy")
    assert not any(each.matched for each in found.differences)
    (caution,) = found.cautions
    assert caution.message.endswith(
        "without a confidence and a loss they cannot be compared at matched coverage"
    )


def test_any_name_will_do() -> None:
    systems = {"matched": system(1, declines=0.5), "": system(2), "coverage": system(3, declines=0.2)}
    found = judged(systems, resamples=50)
    assert len(found.differences) == 6
    assert found.difference("matched", "coverage", matched=True).coverage < 1.0


def test_nothing_answered_never_wins() -> None:
    silent = system(1, declines=1.1)
    assert silent.counts.answered == 0
    for metrics in ("augrc", "aurc", "accuracy", "selective_accuracy", "effective_reliability"):
        found = judged({"silent": silent, "b": system(2, quality=-2.0), "c": system(3)}, metrics=metrics)
        assert found.systems["silent"].ranks[metrics] is None
        assert found.systems["c"].ranks[metrics].place == 1
        for each in found.differences:
            assert each.winner != "silent"
            if "silent" in (each.left, each.right):
                assert math.isnan(each.p)
                assert "silent answered nothing, and what is not answered must not win" in each.words
        assert any(caution.code == "nothing_answered" for caution in found.cautions)


def test_without_resamples_there_are_values_but_no_verdicts() -> None:
    found = judged({"a": system(1), "b": system(2, quality=4.0)}, resamples=0)
    assert found.words == ("cannot compare a and b: without resamples there is no verdict",)
    assert found.differences[0].difference.defined
    assert found.differences[0].winner is None


def test_one_cluster_is_no_verdict() -> None:
    found = judged({"a": system(1, clusters=1), "b": system(2, quality=4.0, clusters=1)})
    assert found.words == ("cannot compare a and b: one cluster alone says nothing about others",)


def test_undefined_metrics_say_why() -> None:
    found = judged({"a": system(1), "b": system(2)}, metrics="deferral_alignment")
    assert "deferral_alignment is undefined for a: " in found.words[0]
    assert found.systems["a"].ranks["deferral_alignment"] is None


def difference(**changes: Any) -> SystemDifference:
    """A difference that cannot be told: 0.003 with a standard error of 0.004 over 60 participants."""
    made = SystemDifference(
        metric="augrc",
        direction="lower",
        left="A",
        right="C",
        left_value=0.100,
        right_value=0.103,
        difference=Estimate(0.003, -0.005, 0.011, se=0.004, clusters=60),
        coverage=math.nan,
        p=0.46,
        p_adjusted=0.46,
        alpha=0.05,
        clusters_needed=math.nan,
        margin=math.nan,
        cluster_noun="participant",
    )
    return replace(made, **changes)


def test_power_in_words() -> None:
    # 60 * (2.801585 * 0.004 / 0.003)^2 = 837.2, so 778 more, which two figures round up to 780.
    assert (
        difference(clusters_needed=838.0).words
        == "cannot tell A and C apart; about 780 more participants would"
    )
    assert (
        difference(clusters_needed=300.0).words
        == "cannot tell A and C apart; about 240 more participants would"
    )
    assert (
        difference(clusters_needed=67.0).words == "cannot tell A and C apart; about 7 more participants would"
    )
    assert difference(clusters_needed=math.inf).words == "cannot tell A and C apart; they do not differ here"
    assert "more than a million more participants would" in difference(clusters_needed=2e7).words
    shown = difference(clusters_needed=50.0, margin=0.02).words
    assert shown == "cannot tell A and C apart, though a difference of 0.02 would have shown"
    assert difference(clusters_needed=1260.0).words.endswith("about 1,200 more participants would")


def test_verdicts_in_words() -> None:
    told = {"p": 0.001, "p_adjusted": 0.003}
    change = Estimate(-0.012, -0.020, -0.004, se=0.004, clusters=60)
    better = difference(difference=change, right="B", **told)
    assert better.words == "B is better than A by 0.012 [0.004, 0.020]"
    assert replace(better, direction="higher").words == "A is better than B by 0.012 [0.004, 0.020]"
    assert replace(better, direction="neither").words == "A is higher than B by 0.012 [0.004, 0.020]"
    assert (
        replace(better, coverage=0.625).words
        == "at coverage 0.62, B is better than A by 0.012 [0.004, 0.020]"
    )
    # Significant alone, but not among the others.
    assert replace(better, p_adjusted=0.06).winner is None


def test_power_is_of_the_observed_difference_or_of_the_margin() -> None:
    systems = {"a": system(1), "b": system(4)}
    (each,) = judged(systems).differences
    assert not each.told
    reach = 1.959964 + 0.841621
    expected = CLUSTERS * (reach * each.difference.se / each.difference.value) ** 2
    assert each.clusters_needed == math.ceil(expected)
    (asked,) = judged(systems, margin=0.01).differences
    assert asked.clusters_needed == math.ceil(CLUSTERS * (reach * each.difference.se / 0.01) ** 2)


def test_confidences_may_differ_by_system() -> None:
    a = system(1)
    renamed = replace(a, signals={"margin": a.signals["confidence"]})
    found = judged({"a": a, "b": renamed}, confidence={"b": "margin"})
    assert found.systems["b"].confidence == "margin"
    assert found.differences[0].difference.value == 0.0


def test_too_few_resamples_to_tell_anything_are_said() -> None:
    found = judged({"a": system(1, quality=-3.0), "b": system(2, quality=3.0)}, resamples=20)
    assert found.differences[0].winner is None
    assert [str(caution) for caution in found.cautions] == [
        "20 resamples are too few to tell any of 1 differences; ask for more"
    ]


def test_same_seed_same_numbers() -> None:
    systems = {"a": system(1), "b": system(2)}
    values = [judged(systems, seed=seed).differences[0].difference.interval for seed in (1, 1, 2)]
    assert values[0] == values[1] != values[2]


@pytest.mark.slow
@pytest.mark.parametrize("metric", ["augrc", "aurc"])
def test_false_alarms_with_forty_clusters_are_at_most_nominal(metric: str) -> None:
    """Two systems that are equally good, 40 clusters: how often is one called better, at 5%?"""
    runs = 300
    alarms = 0
    for run in range(runs):
        pair = {"a": system(2 * run, clusters=40, size=3), "b": system(2 * run + 1, clusters=40, size=3)}
        found = judged(pair, metrics=metric, resamples=300, seed=run)
        alarms += found.differences[0].told
    assert alarms / runs <= 0.05


@pytest.mark.slow
def test_false_alarms_of_a_whole_table_are_at_most_nominal() -> None:
    """Four systems that are equally good, six pairs: how often is any called better?"""
    runs = 100
    alarms = 0
    for run in range(runs):
        systems = {name: system(4 * run + place, clusters=40, size=3) for place, name in enumerate("abcd")}
        found = judged(systems, resamples=300, seed=run)
        alarms += any(each.told for each in found.differences)
    assert alarms / runs <= 0.05


def test_every_pair_is_there_once() -> None:
    systems = {str(seed): system(seed) for seed in range(4)}
    found = judged(systems, resamples=50)
    pairs = {(each.left, each.right) for each in found.differences}
    assert pairs == set(itertools.combinations("0123", 2))
