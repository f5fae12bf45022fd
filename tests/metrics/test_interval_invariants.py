"""Invariants of the confidence intervals of every metric in the registry.

The same statistic has the same interval, however the data are written. Intervals are computed by `abstain.evaluate`.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

import abstain
from abstain import Estimate, Items
from abstain.inference.calibration import calibration_estimates
from abstain.metrics.registry import METRICS, MetricSpecification

EVERY = pytest.mark.parametrize("metric", METRICS.values(), ids=lambda metric: metric.name)
KEYS = [metric.key for metric in METRICS.values()]
CLUSTERS, SIZE = 30, 5


def rows(seed: int = 0, clusters: int = CLUSTERS, size: int = SIZE) -> dict[str, Any]:
    """Return the columns of rows for which every metric is defined."""
    rng = np.random.default_rng(seed)
    n = clusters * size
    truth = rng.integers(0, 2, n)
    wrong = rng.random(n) < 0.2
    return {
        "truth": truth,
        "prediction": truth ^ wrong,
        "confidence": np.clip(rng.random(n).round(2) - 0.3 * wrong, 0.0, 1.0),
        "abstained": rng.random(n) < 0.2,
        "cluster": np.repeat(np.arange(clusters), size),
        "intervals": (truth + rng.normal(0.0, 0.5, n))[:, None] + np.outer(0.2 + rng.random(n), [-1.0, 1.0]),
        "sets": np.column_stack([rng.random((n, 2)) < 0.7, np.zeros(n, np.bool_)]),
        "should_abstain": rng.random(n) < 0.3,
        "weight": None,
    }


def items(columns: dict[str, Any]) -> Items:
    own = dict(columns)
    guidance = own.pop("should_abstain")
    return Items.from_arrays(
        **own, item=np.arange(len(guidance)), metadata={"should_abstain": guidance.tolist()}
    )


def take(columns: dict[str, Any], which: Any) -> dict[str, Any]:
    return {name: None if values is None else values[which] for name, values in columns.items()}


def join(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    return {
        name: None if first[name] is None else np.concatenate([first[name], second[name]]) for name in first
    }


def evaluate(columns: dict[str, Any]) -> dict[str, Estimate]:
    result = abstain.evaluate(items(columns), metrics=KEYS)
    assert result.metrics is not None
    return {key: result.metrics[key] for key in KEYS}


@cache
def usual() -> dict[str, Estimate]:
    return evaluate(rows())


def check_same(found: Estimate, expected: Estimate, tolerance: float = 1e-9) -> None:
    assert found.value == pytest.approx(expected.value, rel=tolerance, nan_ok=True)
    assert (found.interval is None) == (expected.interval is None)
    if found.interval is not None:
        assert found.interval == pytest.approx(expected.interval, rel=tolerance, abs=tolerance)


WEIGHTS = {
    "whole": np.random.default_rng(1).integers(1, 4, CLUSTERS * SIZE).astype(float),
    "fractional": 0.1 + np.random.default_rng(1).random(CLUSTERS * SIZE),
}


@cache
def reweighted(kind: str, factor: float) -> dict[str, Estimate]:
    return evaluate(rows() | {"weight": factor * WEIGHTS[kind]})


@EVERY
@pytest.mark.parametrize("factor", [1e-60, 0.01, 3.0, 1e9])
@pytest.mark.parametrize("kind", WEIGHTS)
def test_the_unit_of_the_weights_does_not_matter(
    metric: MetricSpecification, kind: str, factor: float
) -> None:
    check_same(reweighted(kind, factor)[metric.key], reweighted(kind, 1.0)[metric.key])


@cache
def wrong_in_one_cluster(seed: int, factor: float) -> dict[str, Estimate]:
    """Return the estimates if one cluster has all wrong answers and nearly all abstentions."""
    columns = rows(seed, clusters=4, size=12)
    first = columns["cluster"] == 0
    columns["prediction"] = np.where(first, columns["prediction"], columns["truth"])
    columns["abstained"] &= first | (np.arange(48) == 40)
    return evaluate(columns | {"weight": factor * np.random.default_rng(seed).lognormal(0.0, 2.0, 48)})


@EVERY
@pytest.mark.parametrize("seed", range(6))
def test_sums_without_a_cluster_do_not_depend_on_the_unit_of_the_weights(
    metric: MetricSpecification, seed: int
) -> None:
    expected = wrong_in_one_cluster(seed, 1.0)[metric.key]
    for factor in (3.0, 0.1, 1 / 3):
        found = wrong_in_one_cluster(seed, factor)[metric.key]
        assert (found.method, found.reason) == (expected.method, expected.reason)
        check_same(found, expected, 1e-8)


@cache
def with_rows_of_weight_zero(kind: str) -> dict[str, Estimate]:
    """Return the estimates with further rows of weight 0, most of them in further clusters."""
    unused = take(rows(5), np.arange(40)) | {"weight": np.zeros(40)}
    unused["cluster"] = unused["cluster"] + CLUSTERS - 2
    return evaluate(join(rows() | {"weight": WEIGHTS[kind]}, unused))


@EVERY
@pytest.mark.parametrize("kind", WEIGHTS)
def test_rows_of_weight_zero_change_nothing(metric: MetricSpecification, kind: str) -> None:
    found, expected = with_rows_of_weight_zero(kind)[metric.key], reweighted(kind, 1.0)[metric.key]
    check_same(found, expected)
    assert (found.n, found.clusters) == (expected.n, expected.clusters)


@pytest.mark.parametrize("interval", ["jackknife", "percentile"])
def test_clusters_of_weight_zero_change_no_other_interval(interval: str) -> None:
    columns = rows() | {"weight": WEIGHTS["fractional"]}
    columns["abstained"] = np.zeros(CLUSTERS * SIZE, np.bool_)
    unused = take(columns, np.arange(40)) | {"weight": np.zeros(40)}
    unused["cluster"] = unused["cluster"] - 100
    estimates = []
    for part in (columns, join(unused, columns)):
        own = {"cluster": part["cluster"], "sample_weight": part["weight"]}
        how: dict[str, Any] = {"interval": interval, "resamples": 50 if interval == "percentile" else 0}
        bounds = abstain.evaluate_intervals(part["truth"], part["intervals"], nominal=0.9, **own, **how)
        sets = abstain.evaluate_sets(part["truth"], part["sets"], nominal=0.9, **own, **how)
        correct = part["truth"] == part["prediction"]
        calibration = calibration_estimates(correct, part["confidence"], **own, **how)
        estimates.append(
            [bounds.by_nominal[0]["coverage"], sets.by_nominal[0]["coverage"], *calibration.values()]
        )
    for found, expected in zip(*estimates, strict=True):
        check_same(found, expected)
        assert found.clusters == expected.clusters == CLUSTERS


@cache
def repeated() -> tuple[dict[str, Estimate], dict[str, Estimate]]:
    times = np.random.default_rng(2).integers(1, 4, CLUSTERS * SIZE)
    return evaluate(rows() | {"weight": times.astype(float)}), evaluate(
        take(rows(), np.repeat(np.arange(len(times)), times))
    )


@EVERY
def test_a_weight_is_a_repetition(metric: MetricSpecification) -> None:
    weighted, written_out = (by_key[metric.key] for by_key in repeated())
    check_same(weighted, written_out)


@cache
def renamed() -> list[dict[str, Estimate]]:
    columns = rows(clusters=450, size=2)
    names = [
        columns["cluster"],
        7 * columns["cluster"] + 100_000,
        np.char.add("patient ", columns["cluster"].astype(str)),
    ]
    return [evaluate(columns | {"cluster": name}) for name in names]


@EVERY
def test_the_names_of_clusters_do_not_matter(metric: MetricSpecification) -> None:
    first, *others = (by_key[metric.key] for by_key in renamed())
    for other in others:
        check_same(other, first)


@cache
def with_declining_clusters() -> dict[str, Estimate]:
    declined = take(rows(3), np.arange(40))
    declined |= {"abstained": np.ones(40, np.bool_), "cluster": 1000 + np.arange(40) // 4}
    return evaluate(join(rows(), declined))


@EVERY
def test_clusters_that_only_decline_do_not_count_for_metrics_of_answers(metric: MetricSpecification) -> None:
    if metric.answered_only:
        check_same(with_declining_clusters()[metric.key], usual()[metric.key])
        assert with_declining_clusters()[metric.key].degrees == pytest.approx(usual()[metric.key].degrees)


@cache
def with_unused_classes() -> dict[str, Estimate]:
    columns = rows()
    unused = np.zeros((CLUSTERS * SIZE, 46), np.bool_)
    return evaluate(columns | {"sets": np.column_stack([columns["sets"], unused])})


@EVERY
def test_classes_that_never_occur_do_not_matter(metric: MetricSpecification) -> None:
    check_same(with_unused_classes()[metric.key], usual()[metric.key])


@cache
def with_few_errors(errors: int) -> dict[str, Estimate]:
    columns = rows(4, clusters=10, size=8)
    columns["abstained"] = np.zeros(80, np.bool_)
    columns["confidence"] = np.linspace(0.99, 0.01, 80)
    wrong = np.arange(80) >= 80 - errors
    columns["cluster"] = np.arange(80) % 10
    columns["prediction"] = columns["truth"] ^ wrong
    return evaluate(columns)


@EVERY
def test_the_first_error_does_not_improve_the_worse_end(metric: MetricSpecification) -> None:
    """The least confident of 80 answers is wrong, or none is. Correlations have no number of trials."""
    none, one = (with_few_errors(errors)[metric.key] for errors in (0, 1))
    if none.interval is None or one.interval is None or metric.rows in ("bounded", "gathered", "stated"):
        return
    if metric.unit == "correlation":
        return
    if metric.direction == "lower":
        assert one.high >= none.high - 1e-9
    if metric.direction == "higher":
        assert one.low <= none.low + 1e-9


@EVERY
def test_an_interval_contains_the_value_and_lies_within_the_range(metric: MetricSpecification) -> None:
    for by_key in (usual(), with_few_errors(0), with_few_errors(1), with_few_errors(3)):
        found = by_key[metric.key]
        if found.interval is None:
            continue
        assert found.low <= found.value <= found.high
        if metric.unit in ("proportion", "squared probability", "dependence", "loss"):
            assert found.low >= 0.0
            assert found.high <= 1.0
        if metric.unit in ("correlation", "ratio"):
            assert found.low >= -1.0
            assert found.high <= 1.0


@EVERY
def test_the_interval_of_a_difference_lies_within_its_range(metric: MetricSpecification) -> None:
    """Four clusters give a t quantile of 3.2, so that intervals without ends would be far too long."""
    pair = {
        name: items(rows(seed, clusters=4, size=6) | {"truth": rows(5, 4, 6)["truth"]})
        for name, seed in (("a", 5), ("b", 6))
    }
    if metric.unit not in ("proportion", "loss", "ratio", "squared probability"):
        return
    for each in abstain.compare(pair, metrics=[metric.key], match="rows").differences:
        if each.metric == metric.key and each.estimate.interval is not None:
            largest = 2.0 if metric.unit == "ratio" else 1.0
            assert -largest <= each.estimate.low <= each.estimate.high <= largest


@pytest.mark.parametrize("coverage", [0.1, 0.4, 0.9])
def test_the_risk_at_a_coverage_depends_on_its_operating_point_only(coverage: float) -> None:
    wrong = np.arange(100) % 4 == 0
    one_point = Items.from_arrays(np.zeros(100, int), wrong.astype(int), confidence=np.full(100, 0.7))
    metrics = abstain.evaluate(
        one_point, metrics=[f"risk_at_coverage@{coverage}", "risk_at_coverage@1"]
    ).metrics
    assert metrics is not None
    check_same(metrics[f"risk_at_coverage@{coverage}"], metrics["risk_at_coverage@1"])
    accuracy = abstain.evaluate(one_point, metrics="accuracy").metrics
    assert accuracy is not None
    low, high = accuracy["accuracy"].interval or (math.nan, math.nan)
    assert metrics["risk_at_coverage@1"].interval == pytest.approx((1.0 - high, 1.0 - low))


@pytest.mark.parametrize("errors", [0.03, 0.3])
def test_the_rejection_ratio_by_augrc_has_the_interval_of_the_auroc(errors: float) -> None:
    rng = np.random.default_rng(8)
    wrong = rng.random(240) < errors
    data = Items.from_arrays(
        np.zeros(240, int),
        wrong.astype(int),
        confidence=rng.random(240) - 0.2 * wrong,
        cluster=np.arange(240) // 4,
        item=np.arange(240),
    )
    metrics = abstain.evaluate(
        data, metrics=["correctness_auroc", "prediction_rejection_ratio@augrc"]
    ).metrics
    assert metrics is not None
    auroc, ratio = metrics["correctness_auroc"], metrics["prediction_rejection_ratio@augrc"]
    transformed = replace(auroc, value=2 * auroc.value - 1, low=2 * auroc.low - 1, high=2 * auroc.high - 1)
    check_same(ratio, transformed)


def test_a_proportion_and_its_complement_have_mirrored_intervals() -> None:
    for by_key in (with_few_errors(0), with_few_errors(1), with_few_errors(5)):
        accuracy, wrong = by_key["accuracy"], by_key["wrong_rate"]
        assert wrong.interval == pytest.approx((1.0 - accuracy.high, 1.0 - accuracy.low))


def test_every_entry_point_gives_the_same_intervals_of_sets_and_intervals() -> None:
    columns = rows()
    own = take(columns | {"abstained": np.zeros(CLUSTERS * SIZE, np.bool_)}, slice(None))
    registered = evaluate(own)
    sets = abstain.evaluate_sets(own["truth"], own["sets"], nominal=0.9, cluster=own["cluster"]).by_nominal[0]
    bounds = abstain.evaluate_intervals(
        own["truth"], own["intervals"], nominal=0.9, cluster=own["cluster"]
    ).by_nominal[0]
    for key, found in {
        "set_coverage": sets["coverage"],
        "set_mean_width": sets["mean_width"],
        "set_singleton_rate": sets["singleton_rate"],
        "set_empty_rate": sets["empty_rate"],
        "set_size_stratified_coverage": sets["size_stratified_coverage"],
        "set_coverage_by_label": sets["worst_coverage[true class]"],
        "set_coverage_gap@0.9": sets["coverage_gap[true class]"],
        "interval_coverage": bounds["coverage"],
        "interval_mean_width": bounds["mean_width"],
        "winkler_score@0.9": bounds["winkler_score"],
        "interval_size_stratified_coverage": bounds["size_stratified_coverage"],
        "interval_hsic": bounds["hsic"],
    }.items():
        check_same(found, registered[key])
