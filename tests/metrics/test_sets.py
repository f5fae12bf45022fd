"""Set metrics: values computed by hand, invariants, and invalid input."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from abstain.errors import ArgumentError, DataError
from abstain.metrics import sets
from abstain.metrics._columns import Columns
from abstain.metrics.registry import find_metric

if TYPE_CHECKING:
    from collections.abc import Callable

TRUTH = np.array([0, 1, 2, 2])
SETS = np.array([[1, 0, 0], [1, 1, 0], [1, 1, 0], [0, 0, 0]], dtype=bool)  # covered: yes, yes, no, no

SCORES: dict[str, Callable[..., Any]] = {
    "coverage": sets.set_coverage,
    "width": lambda _, members, **options: sets.set_mean_width(members, **options),
    "strata": lambda *rows, **options: sets.set_size_stratified_coverage(*rows, **options).coverage,
    "strata_two": lambda *rows, **options: sets.set_size_stratified_coverage(*rows, bins=2, **options).score,
    "singleton": lambda _, members, **options: sets.set_singleton_rate(members, **options),
    "empty": lambda _, members, **options: sets.set_empty_rate(members, **options),
    "label": lambda *rows, **options: sets.set_coverage_by_label(*rows, **options).coverage,
    "gap": lambda *rows, **options: sets.set_coverage_gap(*rows, level=0.9, **options),
    "weighted gap": lambda *rows, **options: sets.set_weighted_coverage_gap(*rows, level=0.9, **options),
}


def _random(seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.integers(0, 4, 60), rng.random((60, 4, 3)) < 0.5


def test_values_by_hand() -> None:
    assert sets.set_coverage(TRUTH, SETS) == 0.5
    assert sets.set_mean_width(SETS) == 1.25
    assert sets.set_singleton_rate(SETS) == 0.25
    assert sets.set_empty_rate(SETS) == 0.25
    strata = sets.set_size_stratified_coverage(TRUTH, SETS)
    assert strata.counts.tolist() == [1, 1, 2, 0]
    assert strata.coverage[:3].tolist() == [0.0, 1.0, 0.5]
    assert np.isnan(strata.coverage[3])
    assert strata.score == 0.0
    two = sets.set_size_stratified_coverage(TRUTH, SETS, bins=2)
    assert [(part.low, part.high, part.count, part.coverage) for part in two.bins] == [
        (0, 1, 2, 0.5),
        (2, 3, 2, 0.5),
    ]
    by_label = sets.set_coverage_by_label(TRUTH, SETS)
    assert by_label.groups == (0, 1, 2)
    assert by_label.coverage.tolist() == [1.0, 1.0, 0.0]
    assert sets.set_coverage_gap(TRUTH, SETS, level=0.9) == pytest.approx((0.1 + 0.1 + 0.9) / 3)
    assert sets.set_coverage_gap(TRUTH, SETS, ["a"] * 4, level=0.9) == pytest.approx(0.4)
    assert sets.set_coverage_by_group(TRUTH, SETS, ["a", "b", "b", "b"]).coverage.tolist() == pytest.approx(
        [1, 1 / 3]
    )
    assert sets.set_feature_stratified_coverage(TRUTH, SETS, [1, 2, 3, 4], bins=2).coverage.tolist() == [
        1.0,
        0.0,
    ]


def test_several_levels_give_one_value_each() -> None:
    truth, members = _random(0)
    for name, score in SCORES.items():
        single = np.array([score(truth, members[:, :, level]) for level in range(3)])
        assert np.array_equal(score(truth, members), single), name


@pytest.mark.parametrize("name", SCORES)
def test_row_order_does_not_matter_and_a_weight_is_a_repetition(name: str) -> None:
    truth, members = _random(1)
    rng = np.random.default_rng(2)
    order, weight = rng.permutation(len(truth)), rng.integers(0, 3, len(truth))
    assert SCORES[name](truth[order], members[order]) == pytest.approx(
        SCORES[name](truth, members), nan_ok=True
    )
    repeated = SCORES[name](np.repeat(truth, weight), np.repeat(members, weight, axis=0))
    assert SCORES[name](truth, members, sample_weight=weight) == pytest.approx(repeated, nan_ok=True)


def test_sets_may_be_0_and_1_and_labels_may_be_floats() -> None:
    assert sets.set_coverage([0.0, 1.0], [[1, 0], [1, 0]]) == 0.5
    assert sets.set_coverage([0, 1], np.array([[True, False], [True, False]], dtype=object)) == 0.5
    assert sets.set_coverage([True, False], [[1, 0], [1, 0]]) == 0.5


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: sets.set_coverage([0, 3], [[1, 0, 1]] * 2),
            DataError,
            "class index from 0 to 2, got 3 at row 1",
        ),
        (lambda: sets.set_coverage([0, -1], [[1, 0, 1]] * 2), DataError, "got -1 at row 1"),
        (
            lambda: sets.set_coverage([0, 0.5], [[1, 0, 1]] * 2),
            DataError,
            "class indices, got 0.5 at row 1",
        ),
        (
            lambda: sets.set_coverage(np.array([0, None]), [[1, 0, 1]] * 2),
            DataError,
            "y_true is nan at row 1",
        ),
        (lambda: sets.set_coverage(["cat"], [[1, 0]]), DataError, "y_true must hold numbers"),
        (lambda: sets.set_coverage([0], [[1, 0]] * 2), DataError, "y_true has 1 rows, but 2"),
        (lambda: sets.set_coverage([0, 0], [[0.2, 0.8]] * 2), DataError, "sets must be booleans.*row 0"),
        (lambda: sets.set_coverage([0, 0], np.array([[1, 0], [1, np.nan]])), DataError, "at row 1"),
        (lambda: sets.set_mean_width([["a"]]), DataError, "sets must be booleans"),
        (lambda: sets.set_mean_width([1, 0]), DataError, r"\(rows, classes\) or \(rows, classes, levels\)"),
        (lambda: sets.set_mean_width([[1, 0], [1]]), DataError, "differ in length"),
        (lambda: sets.set_mean_width(np.empty((0, 2), bool)), DataError, "sets is empty"),
        (lambda: sets.set_mean_width(np.empty((2, 0), bool)), DataError, "sets has no class"),
        (
            lambda: sets.set_size_stratified_coverage([0], [[1, 0]], bins=4),
            ArgumentError,
            "bins must be from 1 to 3",
        ),
        (lambda: sets.set_coverage_gap([0], [[1, 0]], level=95), ArgumentError, "did you mean 0.95"),
        (
            lambda: sets.set_worst_slab_coverage([0, 0], [[1, 0]] * 2, [[[1]]]),
            DataError,
            "features must have shape",
        ),
        (
            lambda: sets.set_worst_slab_coverage([0, 0], [[1, 0]] * 2, [1, np.nan]),
            DataError,
            "is nan at row 1",
        ),
    ],
)
def test_wrong_calls_are_refused(call: Callable[[], object], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


def test_the_gap_by_class_and_by_row() -> None:
    # Class 0 and class 1 have one row each, covered; class 2 has two, both missed.
    assert sets.set_coverage_gap(TRUTH, SETS, level=0.9) == pytest.approx((0.1 + 0.1 + 0.9) / 3)
    assert sets.set_weighted_coverage_gap(TRUTH, SETS, level=0.9) == pytest.approx((0.1 + 0.1 + 2 * 0.9) / 4)
    # Groups that are given take the place of the classes.
    assert sets.set_weighted_coverage_gap(TRUTH, SETS, ["a", "a", "a", "b"], level=0.9) == pytest.approx(
        (3 * (0.9 - 2 / 3) + 0.9) / 4
    )


def test_both_gaps_are_in_the_registry() -> None:
    for name in ("covgap@0.8", "set_weighted_coverage_gap@0.8"):
        metric = find_metric(name)
        rows = Columns.of(4, truth=TRUTH.astype(float), sets=SETS)
        expected = metric.function(TRUTH, SETS, level=0.8)
        assert metric.point(rows) == pytest.approx(expected)
        assert (metric.direction, metric.scale(rows).upper_only, metric.scale(rows).high) == (
            "lower",
            True,
            0.8,
        )
