"""Invariants of every metric in the registry; no metric is named here.

Random rows have ties, abstentions, missing confidences and missing guidance. Some are degenerate.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from abstain import labels
from abstain.metrics._columns import Columns
from abstain.metrics._specification import measure_metrics
from abstain.metrics.registry import ALIASES, BUNDLES, METRICS, MetricSpecification

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

EVERY = pytest.mark.parametrize("metric", METRICS.values(), ids=lambda metric: metric.name)
ROOT = Path(__file__).parents[2]
WORDS = np.array(["none", "mild", "severe"], dtype=object)


def drawn(
    rng: np.random.Generator,
    size: int,
    *,
    labels: str = "binary",
    abstains: float = 0.3,
    states: float = 1.0,
    guides: float = 0.8,
) -> Columns:
    """Return random rows, each a separate unit."""
    codes = {"binary": 2, "numbers": 5, "words": 3}[labels]
    truth, prediction = rng.integers(0, codes, size), rng.integers(0, codes, size)
    sides: list[Any] = [truth.astype(float), prediction.astype(float)]
    if labels == "words":
        sides = [WORDS[truth], WORDS[prediction]]
    answered = rng.random(size) >= abstains
    confidence = np.where(rng.random(size) < states, rng.integers(0, 11, size) / 10.0, np.nan)
    loss = np.abs(truth - prediction).astype(float)
    low = prediction - rng.integers(0, 3, size) / 2.0
    intervals = np.stack([low, low + rng.integers(0, 4, size)], axis=1)
    intervals[rng.random(size) >= states] = np.nan
    return Columns(
        units=size,
        answered=answered,
        truth=sides[0],
        prediction=sides[1],
        confidence=confidence,
        should_abstain=np.where(rng.random(size) < guides, rng.integers(0, 2, size), np.nan),
        loss=np.where(answered, loss, np.nan),
        cluster=np.arange(size),
        weight=np.ones(size),
        intervals=intervals,
        sets=rng.random((size, codes)) < 0.6 if labels != "words" else np.empty((0, 0), np.bool_),
    )


def many(seed: int, sets: int = 25) -> list[Columns]:
    """Return data of every kind and size, from one row upwards."""
    rng = np.random.default_rng(seed)
    return [
        drawn(
            rng,
            int(rng.choice([1, 2, 5, 30])),
            labels=str(rng.choice(["binary", "numbers", "words"])),
            abstains=float(rng.choice([0.0, 0.3, 1.0])),
            states=float(rng.choice([0.0, 0.7, 1.0])),
            guides=float(rng.choice([0.0, 0.8, 1.0])),
        )
        for _ in range(sets)
    ]


def value(metric: MetricSpecification, rows: Columns) -> float:
    return measure_metrics(rows, [metric]).point


def called(metric: MetricSpecification, columns: Columns) -> float:
    """Return the value of the public function for these rows."""
    rows = columns if metric.rows == "all" else columns.take(getattr(columns, metric.rows))
    arguments = {argument: getattr(rows, column) for argument, column in metric.arguments.items()}
    result = metric.function(**arguments, **metric.settings, **metric.parameters, sample_weight=rows.weight)
    return float(getattr(result, "score", result))


def sound(seed: int = 7, size: int = 60) -> Columns:
    """Return rows for which every metric is defined."""
    return drawn(np.random.default_rng(seed), size)


def same(left: float, right: float) -> bool:
    return (math.isnan(left) and math.isnan(right)) or left == pytest.approx(right, abs=1e-9)


@EVERY
def test_the_function_equals_the_statistic_with_all_weights_one(metric: MetricSpecification) -> None:
    compared = 0
    for rows in [sound(), *many(1)]:
        if metric.problem(rows) is None:
            assert same(called(metric, rows), value(metric, rows))
            compared += 1
    assert compared


@EVERY
def test_a_metric_is_undefined_exactly_if_one_of_its_conditions_holds(metric: MetricSpecification) -> None:
    for rows in many(2, sets=60):
        problem = metric.problem(rows)
        assert (problem is not None) == math.isnan(value(metric, rows))
        if problem is not None:
            assert problem.code
            assert problem.sentence


@EVERY
def test_row_order_does_not_matter(metric: MetricSpecification) -> None:
    rng = np.random.default_rng(3)
    for rows in [sound(), *many(3)]:
        shuffled = rows.take(rng.permutation(len(rows)))
        assert same(value(metric, rows), value(metric, shuffled))


@EVERY
def test_a_weight_is_a_repetition(metric: MetricSpecification) -> None:
    rng = np.random.default_rng(4)
    for rows in [sound(), *many(4)]:
        times = rng.integers(0, 3, len(rows))
        times[0] += 1
        repeated = rows.take(np.repeat(np.arange(len(rows)), times))
        if metric.problem(rows) is None:
            drawn_again = measure_metrics(rows, [metric])(times[None, :].astype(float))[0, 0]
            assert same(drawn_again, value(metric, repeated))
        weighted = replace(rows, weight=times.astype(float), shared={})
        if metric.problem(weighted) is None and metric.problem(repeated) is None:
            assert same(called(metric, weighted), value(metric, repeated))


@EVERY
def test_only_the_ratios_of_weights_matter(metric: MetricSpecification) -> None:
    rng = np.random.default_rng(15)
    for rows in [sound(), *many(15)]:
        for weight in (rng.integers(1, 4, len(rows)).astype(float), 0.1 + rng.random(len(rows))):
            weighted = replace(rows, weight=weight, shared={})
            if metric.problem(weighted) is None:
                scaled = replace(rows, weight=0.01 * weight, shared={})
                assert same(called(metric, scaled), called(metric, weighted))


@EVERY
def test_clusters_only_determine_which_rows_are_drawn_together(metric: MetricSpecification) -> None:
    rng = np.random.default_rng(5)
    for rows in [sound(), *many(5)]:
        # Some of the five units may have no row.
        together = replace(rows, cluster=rng.integers(0, 5, len(rows)), units=5, shared={})
        assert same(value(metric, rows), value(metric, together))
        weights = rng.integers(0, 3, (3, 5)).astype(float)
        weights[:, together.cluster[0]] += 1
        assert np.allclose(
            measure_metrics(together, [metric])(weights),
            measure_metrics(rows, [metric])(weights[:, together.cluster]),
            equal_nan=True,
        )


@EVERY
def test_a_single_cluster_gives_a_value(metric: MetricSpecification) -> None:
    rows = replace(sound(), cluster=np.zeros(60, np.intp), units=1, shared={})
    twice = measure_metrics(rows, [metric])(np.array([[1.0], [2.0]]))
    assert np.isfinite(twice).all()


@EVERY
def test_a_batch_gives_the_same_values_as_single_weight_vectors(metric: MetricSpecification) -> None:
    rows = sound(size=25)
    weights = np.random.default_rng(6).multinomial(25, np.full(25, 0.04), size=8).astype(float)
    measure = measure_metrics(rows, [metric])
    single = np.concatenate([measure(weight[None, :]) for weight in weights])
    assert np.allclose(measure(weights), single, equal_nan=True)


@EVERY
def test_a_metric_without_weight_is_undefined(metric: MetricSpecification) -> None:
    """The jackknife may exclude the only unit."""
    for rows in [sound(), *many(13)]:
        assert np.isnan(measure_metrics(rows, [metric])(np.zeros((2, rows.units)))).all()


@EVERY
def test_a_metric_without_rows_is_undefined(metric: MetricSpecification) -> None:
    """The statistic of no rows is NaN and raises no error, even if no condition holds."""
    rows = sound().take(np.zeros(60, np.bool_))
    weights = np.ones((2, rows.units))
    assert np.isnan(measure_metrics(rows, [metric])(weights)).all()
    # Intervals and sets are checked as arrays, which must not be empty, so a condition must hold.
    if metric.rows in ("bounded", "gathered"):
        assert metric.problem(rows) is not None
    else:
        assert np.isnan(metric.family.build(rows, [metric])(weights)).all()


@cache
def all_at_once() -> list[tuple[Columns, Floats, dict[str, Floats]]]:
    """Return rows, weights, and the values of all metrics computed together."""
    computed = []
    for rows in [sound(), *many(14, sets=6)]:
        weights = np.random.default_rng(14).integers(0, 3, (3, rows.units)).astype(float)
        together = measure_metrics(rows, list(METRICS.values()))
        assert list(together.names) == [metric.key for metric in METRICS.values()]
        computed.append((rows, weights, dict(zip(together.names, together(weights).T, strict=True))))
    return computed


@EVERY
def test_each_metric_has_the_same_value_separately_and_with_all_others(metric: MetricSpecification) -> None:
    for rows, weights, together in all_at_once():
        separate = measure_metrics(rows, [metric])(weights)[:, 0]
        np.testing.assert_array_equal(together[metric.key], separate)


@EVERY
def test_the_prediction_of_an_abstained_row_does_not_matter(metric: MetricSpecification) -> None:
    rng = np.random.default_rng(8)
    for rows in [sound(), *many(8)]:
        prediction = rows.prediction.copy()
        prediction[rows.abstained] = prediction[rng.integers(0, len(rows), int(rows.abstained.sum()))]
        assert same(value(metric, rows), value(metric, replace(rows, prediction=prediction, shared={})))


@EVERY
@pytest.mark.parametrize("abstains", [0.0, 1.0])
def test_all_or_none_abstained_gives_a_number_or_a_reason(
    metric: MetricSpecification, abstains: float
) -> None:
    rows = drawn(np.random.default_rng(9), 20, abstains=abstains)
    actual = value(metric, rows)
    assert math.isfinite(actual) or metric.problem(rows) is not None


@EVERY
def test_proportions_stay_within_zero_and_one(metric: MetricSpecification) -> None:
    for rows in many(10):
        actual = value(metric, rows)
        if metric.unit == "proportion" and not math.isnan(actual):
            assert -1e-12 <= actual <= 1.0 + 1e-12


@EVERY
def test_the_better_of_two_runs_scores_better(metric: MetricSpecification) -> None:
    """A run with few errors, good confidences and correct abstentions is compared with its opposite."""
    rng = np.random.default_rng(11)
    size = 200
    truth = rng.integers(0, 2, size).astype(float)
    hold = np.arange(size) % 4 == 0
    scores = {}
    for name, errs in (("good", 0.05), ("bad", 0.6)):
        wrong = rng.random(size) < errs
        sure = np.where(wrong | hold, 0.2, 0.9) if name == "good" else np.where(wrong | hold, 0.9, 0.2)
        chance = np.where(hold, 0.1, 0.9) if name == "good" else np.where(hold, 0.9, 0.6)
        answered = rng.random(size) < chance
        rows = Columns(
            units=size,
            answered=answered,
            truth=truth,
            prediction=np.where(wrong, 1.0 - truth, truth),
            confidence=sure + rng.random(size) / 100,
            should_abstain=hold.astype(float),
            loss=np.where(answered, wrong, np.nan),
            cluster=np.arange(size),
            weight=np.ones(size),
            intervals=np.stack([truth - 0.1, truth + 0.1], axis=1)
            + np.where(wrong, 0.5, 0.0)[:, None] * [1, 5],
            sets=np.stack([truth == 0, truth == 1], axis=1)
            ^ (wrong[:, None] & np.array([True, name == "good"])),
        )
        scores[name] = value(metric, rows)
    if metric.direction == "higher":
        assert scores["good"] >= scores["bad"]
    if metric.direction == "lower":
        assert scores["good"] <= scores["bad"]


@EVERY
def test_the_specification_is_complete(metric: MetricSpecification) -> None:
    assert metric.summary
    assert metric.unit
    assert metric.needs
    assert METRICS[metric.name] is metric
    path, _, anchor = metric.definition.partition("#")
    headings = [line.lstrip("# ") for line in (ROOT / path).read_text().splitlines() if line.startswith("#")]
    assert anchor in [heading.lower().replace(" ", "-") for heading in headings]


def test_bundles_and_aliases_name_metrics() -> None:
    for names in BUNDLES.values():
        assert set(names) <= set(METRICS)
    assert set(ALIASES.values()) <= set(METRICS)
    assert set(ALIASES).isdisjoint(METRICS)


def test_labels_of_the_drawn_rows_are_canonical() -> None:
    for rows in many(12):
        again = labels.column(rows.truth.tolist(), "y_true")
        assert again.dtype == rows.truth.dtype
        assert (again == rows.truth).all()
