"""Unpaired comparisons: independent samples with different items."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
from scipy.stats import t

from abstain import ArgumentError, DataError, Items, compare, evaluate, gate
from abstain.evaluation._pairs import _matched_pairs
from abstain.metrics.registry import select_metrics

if TYPE_CHECKING:
    from pathlib import Path

METRICS = ["augrc", "aurc", "accuracy", "selective_accuracy", "brier_score", "coverage_at_risk@0.3"]
READING: dict[str, Any] = {"confidence": "confidence", "null_prediction": "abstained"}


def frame(seed: int, *, items: int = 240, clusters: int = 40, declines: float = 0.2) -> pl.DataFrame:
    """Return a sample; names of clusters and items contain the seed, so that two samples share none."""
    generator = np.random.default_rng(seed)
    truth, confidence = generator.integers(0, 2, items), np.round(generator.random(items), 2)
    wrong = generator.random(items) < 0.3 * (1.5 - confidence)
    declined = generator.random(items) < declines
    prediction = np.where(wrong, 1 - truth, truth).tolist()
    return pl.DataFrame(
        {
            "truth": truth,
            "prediction": [None if no else value for no, value in zip(declined, prediction, strict=True)],
            "confidence": confidence,
            "cluster": [f"{seed}-{number}" for number in generator.integers(0, clusters, items)],
            "item": [f"{seed}.{number}" for number in range(items)],
            "site": generator.choice(["A", "B"], items),
        }
    )


def unpaired(left: Any, right: Any, **options: Any) -> Any:
    options = {"metrics": METRICS, **READING, **options}
    return compare({"left": left, "right": right}, unpaired=True, **options)


def numbers(result: Any) -> dict[tuple[Any, ...], list[float]]:
    return {
        (each.metric, each.group, each.matched): [
            each.estimate.value,
            each.estimate.low,
            each.estimate.high,
            each.p,
            each.left_value,
            each.coverage,
        ]
        for each in result.differences
    }


def test_by_hand() -> None:
    """48 of 80 and 56 of 70 right rows, the example of Newcombe (1998) for the difference of two proportions.

    His interval from both sides, in which every end has its own distance, is from .0524 to .3339. Here the larger
    distance counts for both ends, and quantiles are those of t distributions with 79 and 69 degrees of freedom.
    """
    left = Items.from_arrays([1] * 80, [1] * 48 + [0] * 32, item=[f"a{number}" for number in range(80)])
    right = Items.from_arrays([1] * 70, [1] * 56 + [0] * 14, item=[f"b{number}" for number in range(70)])
    found = compare({"left": left, "right": right}, metrics="accuracy", unpaired=True)
    difference = found.difference("left", "right", "accuracy")
    ends = []
    for right_rows, count in ((48, 80), (56, 70)):
        rate, square = right_rows / count, t.ppf(0.975, count - 1) ** 2 / (count - 1)
        centre, spread = rate + square / 2, math.sqrt(square * rate * (1 - rate) + square**2 / 4)
        ends.append(((centre - spread) / (1 + square), (centre + spread) / (1 + square)))
    reach = math.hypot(ends[0][1] - 0.6, 0.8 - ends[1][0])
    assert difference.estimate.value == pytest.approx(0.2)
    assert difference.estimate.interval == pytest.approx((0.2 - reach, 0.2 + reach))
    assert difference.estimate.low == pytest.approx(0.0524, abs=0.004)
    assert difference.estimate.degrees == 69.0
    assert difference.p == pytest.approx(2 * t.sf(0.2 / (reach / t.ppf(0.975, 69)), 69))
    assert difference.winner == "right"
    assert difference.estimate.method == "from the intervals of both sides, t distribution"


@pytest.mark.parametrize("by", [None, "site"])
def test_single_values_are_those_of_each_sample(by: str | None) -> None:
    left, right = frame(1), frame(2, items=150, clusters=20, declines=0.5)
    result = unpaired(left, right, by=by)
    for name, own in (("left", left), ("right", right)):
        alone = evaluate(own, metrics=METRICS, by=by, selective=False, **READING).only
        found = result.systems[name]
        assert found.population == alone.population
        assert {key: repr(value) for key, value in found.estimates.items()} == {
            key: repr(value) for key, value in alone.estimates.items()
        }


def test_the_order_of_rows_and_systems_does_not_matter() -> None:
    left, right = frame(1), frame(2, declines=0.5)
    expected = numbers(unpaired(left, right))
    shuffled = numbers(unpaired(left.sample(fraction=1.0, shuffle=True, seed=3), right))
    assert {key: pytest.approx(values, nan_ok=True) for key, values in expected.items()} == shuffled
    turned = unpaired(right, left)
    for each in turned.differences:
        value, low, high, p, *_ = expected[each.metric, each.group, each.matched]
        found = (each.estimate.value, each.estimate.low, each.estimate.high, each.p)
        assert found == pytest.approx((-value, -high, -low, p), nan_ok=True)


@pytest.mark.parametrize("clusters", [40, 1400])
def test_engines_agree(tmp_path: Path, clusters: int) -> None:
    """Beyond a thousand clusters, groups of them are left out."""
    paths = []
    for seed, declines in ((1, 0.2), (2, 0.5)):
        paths.append(tmp_path / f"week-{seed}.parquet")
        frame(seed, items=4 * clusters, clusters=clusters, declines=declines).write_parquet(paths[-1])
    in_memory, aggregated = (unpaired(*paths, by="site", engine=engine) for engine in ("numpy", "duckdb"))
    assert aggregated.systems["left"].provenance["engine"] == "duckdb"
    expected = numbers(in_memory)
    assert {key: pytest.approx(values, rel=1e-9, nan_ok=True) for key, values in expected.items()} == numbers(
        aggregated
    )
    at_matched_coverage = {(metric, group) for metric, group, matched in expected if matched}
    assert {("augrc", ""), ("aurc", "site=A"), ("selective_accuracy", "site=B")} < at_matched_coverage


def test_values_at_matched_coverage_are_those_of_a_paired_comparison() -> None:
    """They do not depend on whether items are matched. With 15 and 30 of 40 answers, the coverage is 0.375."""
    truth, confidence = [1] * 40, np.linspace(0, 1, 40)
    prediction = [number % 5 > 0 for number in range(40)]
    left, right = (
        Items.from_arrays(
            truth, prediction, abstained=np.arange(40) >= answers, confidence=confidence, item=range(40)
        )
        for answers in (15, 30)
    )
    pairs = {"left": left, "right": right}
    of_samples, of_pairs = (
        compare(pairs, metrics="augrc", unpaired=each).difference("left", "right", "augrc")
        for each in (True, False)
    )
    assert of_samples.matched
    assert of_samples.coverage == of_pairs.coverage == pytest.approx(0.375)
    assert (of_samples.left_value, of_samples.right_value) == (of_pairs.left_value, of_pairs.right_value)
    assert of_samples.estimate.value == of_pairs.estimate.value


def test_each_cluster_of_both_samples_is_left_out_at_matched_coverage() -> None:
    """A cluster changes the coverage of one sample, and with it the matched coverage and both values."""
    samples = {"left": frame(1, items=60, clusters=8), "right": frame(2, items=50, clusters=6, declines=0.3)}
    options = {"metrics": "augrc", "unpaired": True, **READING}
    systems = {name: system.basis for name, system in compare(samples, **options).systems.items()}
    (pair,) = _matched_pairs(
        systems, [("left", "right")], select_metrics("augrc", coverage=False), paired=False
    )
    found = pair.intervals.replicate([pair.statistic])[pair.statistic].left_out
    expected = []
    for name, sample in samples.items():
        for cluster in sorted(set(sample["cluster"])):
            without = {**samples, name: sample.filter(pl.col("cluster") != cluster)}
            difference = compare(without, interval="none", **options).difference("left", "right", "augrc")
            expected.append([difference.coverage, difference.left_value, difference.right_value])
    assert found == pytest.approx(np.array(expected))


def test_only_common_groups_are_compared() -> None:
    result = unpaired(frame(1), frame(2).with_columns(site=pl.Series(["B", "C"] * 120)), by="site")
    assert {each.group for each in result.differences} == {"", "site=B"}


def test_one_cluster_has_no_interval() -> None:
    """Over all items the reason is that of the sample with one cluster, and at matched coverage, too."""
    result = unpaired(frame(1), frame(2, clusters=1, declines=0.5))
    for each in result.differences:
        assert each.estimate.interval is None
        assert not each.compared
    accuracy = result.difference("left", "right", "accuracy")
    assert accuracy.estimate.reason == "there is only one cluster, so there is no confidence interval"
    at_coverage = result.difference("left", "right", "augrc")
    assert at_coverage.matched
    assert at_coverage.estimate.reason == accuracy.estimate.reason
    single = unpaired(frame(1, clusters=1), frame(2, clusters=1, declines=0.5))
    assert not any(each.compared for each in single.differences)


def test_without_intervals_there_is_no_verdict() -> None:
    result = unpaired(frame(1), frame(2, declines=0.5), interval="none")
    assert all(each.estimate.interval is None and each.verdict != "left" for each in result.differences)
    accuracy = result.difference("left", "right", "accuracy")
    assert accuracy.sentence.startswith("Accuracy: no verdict without a confidence interval")


def test_a_source_that_cannot_abstain_has_no_different_coverage() -> None:
    left, right = (frame(seed, declines=0.0) for seed in (1, 2))
    found = unpaired(left, right, metrics=["answer_rate", "accuracy"], null_prediction=None)
    difference = found.difference("left", "right", "answer_rate")
    assert (difference.estimate.value, difference.estimate.interval) == (0.0, (0.0, 0.0))
    assert difference.p == 1.0


def test_gate_and_comparison_draw_the_same_conclusion() -> None:
    left, right = frame(1), frame(2, clusters=25, declines=0.5)
    difference = unpaired(left, right).difference("left", "right", "augrc")
    result = gate(right, "augrc worse by 0.01", baseline=left, unpaired=True, **READING)
    (check,) = result.checks
    assert check.estimate.value == difference.estimate.value
    assert check.coverage == difference.coverage
    assert check.estimate.interval == pytest.approx(difference.estimate.interval)
    assert result.compared == len(set(right["cluster"]))
    assert (result.unpaired, result.verdict) == (True, "inconclusive")


@pytest.mark.parametrize(
    "option", [{"match": "rows"}, {"intersection_only": True}, {"truth_may_differ": True}]
)
def test_matching_contradicts_independent_samples(option: dict[str, Any]) -> None:
    with pytest.raises(ArgumentError, match="unpaired systems have different items, and nothing is matched"):
        unpaired(frame(1), frame(2), **option)


@pytest.mark.parametrize("option", [{"interval": "percentile"}, {"interval": "bca"}, {"resamples": 100}])
def test_only_the_jackknife_has_intervals_of_independent_samples(option: dict[str, Any]) -> None:
    with pytest.raises(ArgumentError, match="unpaired systems have jackknife intervals only"):
        unpaired(frame(1), frame(2), **option)


@pytest.mark.parametrize("engine", ["numpy", "duckdb"])
def test_systems_without_common_items_suggest_it(tmp_path: Path, engine: str) -> None:
    paths = [tmp_path / f"{seed}.csv" for seed in (1, 2)]
    for seed, path in enumerate(paths, start=1):
        frame(seed).write_csv(path)
    with pytest.raises(DataError, match=r"as independent samples, set unpaired=True \(--unpaired\)"):
        compare(*paths, metrics="accuracy", engine=engine, **READING)
    with pytest.raises(DataError, match=r"as independent samples, set unpaired=True \(--unpaired\)"):
        compare(*paths, metrics="accuracy", engine=engine, intersection_only=True, **READING)


def test_texts_name_independent_samples() -> None:
    result = unpaired(frame(1), frame(2, clusters=5, declines=0.5))
    (few,) = [warning for warning in result.warnings if warning.code == "few_clusters"]
    assert few.message.startswith("right: the confidence intervals are based on 5 clusters")
    clusters = {each.estimate.clusters for each in result.differences}
    assert clusters == {40 + 5}
    assert (
        "The systems left and right have different items: 240 items of 40 clusters for left"
        in result.methods()
    )
    assert "Systems were compared as independent samples." in result.methods()
    assert result.settings.unpaired
    assert result.matching is not None
    assert not result.matching.paired
