"""Interval metrics: values computed by hand, infinite bounds, invariants, and invalid input."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from abstain.errors import ArgumentError, DataError
from abstain.evaluation.conformal import evaluate_intervals
from abstain.metrics import intervals
from abstain.metrics._columns import Columns
from abstain.metrics.coverage import _split, _worst_range
from abstain.metrics.registry import find_metric

if TYPE_CHECKING:
    from collections.abc import Callable

INF = math.inf
TRUTH = np.array([1.0, 2.0, 3.0, 4.0])
BOUNDS = np.array([[0.0, 2.0], [2.0, 3.0], [4.0, 7.0], [0.0, 3.0]])  # covered: yes, yes (an end), no, no


def _random(seed: int, rows: int = 40, levels: int = 3) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 6, rows).astype(float)
    low = truth[:, None] + rng.integers(-3, 3, (rows, levels))
    return truth, np.stack([low, low + rng.integers(0, 5, (rows, levels))], axis=1)


SCORES: dict[str, Callable[..., Any]] = {
    "coverage": intervals.interval_coverage,
    "width": lambda _, bounds, **options: intervals.interval_mean_width(bounds, **options),
    "strata": lambda *rows, **options: intervals.interval_size_stratified_coverage(*rows, **options).coverage,
    "strata_score": lambda *rows, **options: (
        intervals.interval_size_stratified_coverage(*rows, **options).score
    ),
    "hsic": intervals.interval_hsic,
    "hsic_raw": lambda *rows, **options: intervals.interval_hsic(*rows, raw=True, **options),
    "cwc": lambda *rows, **options: intervals.interval_coverage_width_criterion(
        *rows, eta=2.0, level=0.8, **options
    ),
    "winkler": lambda *rows, **options: intervals.winkler_score(*rows, level=0.8, **options),
    "wis": lambda *rows, **options: intervals.weighted_interval_score(*rows, level=0.8, **options),
    "gap": lambda *rows, **options: intervals.interval_coverage_gap(*rows, level=0.8, **options),
    "width_quantiles": lambda _, bounds, **options: intervals.interval_width_quantiles(bounds, **options),
}


def test_values_by_hand() -> None:
    assert intervals.interval_coverage(TRUTH, BOUNDS) == 0.5
    assert intervals.interval_mean_width(BOUNDS) == 2.25
    # 2, 1, 3 + 20 * 1, 3 + 20 * 1
    assert intervals.winkler_score(TRUTH, BOUNDS, level=0.9) == pytest.approx(49 / 4)
    expected = (1 - 2.25 / 3) * math.exp(-30 * 0.16)
    assert intervals.interval_coverage_width_criterion(TRUTH, BOUNDS, eta=30, level=0.9) == pytest.approx(
        expected
    )
    assert intervals.interval_coverage_gap(TRUTH, BOUNDS, level=0.9) == pytest.approx(0.4)
    assert intervals.interval_coverage_gap(TRUTH, BOUNDS, [0, 0, 0, 1], level=0.9) == pytest.approx(
        (0.9 - 2 / 3 + 0.9) / 2
    )


def test_hsic_by_hand() -> None:
    # Widths 1, 1, 3 and coverage 1, 1, 0: c = (1, 1, -2) / 3, so c'Kc = 8/9 * (1 - exp(-4)).
    trace = 2 * (1 - math.exp(-1)) * 8 / 9 * (1 - math.exp(-4))
    bounds = [[0, 1], [0, 1], [0, 3]]
    assert intervals.interval_hsic([0, 0, 5], bounds, raw=True) == pytest.approx(trace, rel=1e-12)
    assert intervals.interval_hsic([0, 0, 5], bounds) == pytest.approx(math.sqrt(trace / 4), rel=1e-12)
    wider = 2 * (1 - math.exp(-1 / 3)) * 8 / 9 * (1 - math.exp(-4 / 2))
    assert intervals.interval_hsic([0, 0, 5], bounds, raw=True, kernel_sizes=(2, 3)) == pytest.approx(
        wider, rel=1e-12
    )


def test_weighted_interval_score_by_hand() -> None:
    # Levels 0.5 and 0.9 around the median 2, truth 5: 1 + 4 * 2 = 9 times 1/4; 4 + 20 * 1 = 24 times 1/20.
    bounds = np.array([[[2.0, 0.0], [3.0, 4.0]]])
    with_median = (3 / 2 + 9 / 4 + 24 / 20) / 2.5
    assert intervals.weighted_interval_score([5], bounds, level=[0.5, 0.9], median=[2]) == pytest.approx(
        with_median
    )
    assert intervals.weighted_interval_score([5], bounds, level=[0.5, 0.9]) == pytest.approx(
        (9 / 4 + 24 / 20) / 2
    )


def test_strata_contain_every_row_and_the_first_ones_are_larger() -> None:
    bounds = np.column_stack([np.zeros(7), [3, 1, 2, 7, 6, 5, 4]])
    truth = np.array([9.0, 0, 0, 0, 9, 0, 0])  # the intervals of widths 3 and 6 do not cover
    strata = intervals.interval_size_stratified_coverage(truth, bounds)
    assert strata.counts.tolist() == [3, 2, 2]
    assert strata.coverage.tolist() == pytest.approx([2 / 3, 1.0, 0.5])
    assert strata.low.tolist() == [1, 4, 6]
    assert strata.high.tolist() == [3, 5, 7]
    assert strata.score == 0.5
    assert strata.bins[2] == intervals.CoverageBin(low=6.0, high=7.0, count=2, coverage=0.5)


def test_ties_between_two_strata_are_divided() -> None:
    one_tie = intervals.interval_size_stratified_coverage(
        [0, 9, 0, 0], [[0, 1], [0, 2], [0, 2], [0, 3]], bins=2
    )
    assert one_tie.coverage.tolist() == [0.75, 0.75]


def test_empty_strata_do_not_count_in_the_score() -> None:
    strata = intervals.interval_size_stratified_coverage([0, 0], [[0, 1], [0, 2]], bins=4)
    assert strata.counts.tolist() == [1, 1, 0, 0]
    assert np.isnan(strata.coverage[2:]).all()
    assert strata.score == 1.0


def test_several_levels_give_one_value_each() -> None:
    truth, bounds = _random(0)
    for name, score in SCORES.items():
        several = np.asarray(score(truth, bounds))
        if name == "wis":
            continue
        single = [score(truth, bounds[:, :, level]) for level in range(3)]
        assert np.array_equal(several, np.array(single)), name
    strata = intervals.interval_size_stratified_coverage(truth, bounds)
    assert strata.coverage.shape == strata.counts.shape == (3, 3)
    assert len(strata.bins) == 3
    assert strata.bins[1][0].count == strata.counts[1, 0]
    levels = [0.5, 0.8, 0.9]
    each = [intervals.winkler_score(truth, bounds[:, :, k], level=levels[k]) for k in range(3)]
    assert intervals.winkler_score(truth, bounds, level=levels).tolist() == each  # type: ignore[union-attr]
    assert isinstance(intervals.interval_coverage(truth, bounds[:, :, 0]), float)


@pytest.mark.parametrize("name", SCORES)
def test_row_order_does_not_matter(name: str) -> None:
    truth, bounds = _random(1)
    order = np.random.default_rng(2).permutation(len(truth))
    assert SCORES[name](truth[order], bounds[order]) == pytest.approx(SCORES[name](truth, bounds), abs=1e-13)


@pytest.mark.parametrize("name", SCORES)
def test_a_weight_is_a_repetition(name: str) -> None:
    truth, bounds = _random(3)
    weight = np.random.default_rng(4).integers(0, 4, len(truth))
    repeated = SCORES[name](np.repeat(truth, weight), np.repeat(bounds, weight, axis=0))
    assert SCORES[name](truth, bounds, sample_weight=weight) == pytest.approx(repeated, rel=1e-12, abs=1e-13)


@pytest.mark.parametrize("name", sorted(set(SCORES) - {"hsic", "hsic_raw"}))
def test_equal_fractional_weights_do_not_change_a_metric(name: str) -> None:
    truth, bounds = _random(5, rows=12)
    score = SCORES[name]
    tenth = score(truth, bounds, sample_weight=np.full(12, 0.1))
    half = score(truth, bounds, sample_weight=np.full(12, 0.5))
    assert tenth == pytest.approx(half, rel=1e-12)


def test_infinite_bounds_cover_and_have_infinite_widths() -> None:
    truth = [1.0, 2.0, 3.0, 4.0]
    bounds = [[-INF, INF], [-INF, 1.0], [3.0, INF], [3.0, 5.0]]
    assert intervals.interval_coverage(truth, bounds) == 0.75
    assert intervals.interval_mean_width(bounds) == INF
    assert intervals.winkler_score(truth, bounds, level=0.9) == INF
    assert intervals.weighted_interval_score(truth, bounds, level=0.9) == INF
    assert intervals.interval_coverage_width_criterion(truth, bounds, eta=1e9, level=0.9) == -INF
    strata = intervals.interval_size_stratified_coverage(truth, bounds, bins=2)
    assert strata.coverage.tolist() == pytest.approx([(1 + 2 / 3) / 2, 2 / 3])
    assert strata.high.tolist() == [INF, INF]
    assert intervals.interval_width_quantiles(bounds, probabilities=(0.0, 0.2, 1.0)).tolist() == [
        2.0,
        INF,
        INF,
    ]
    # A row of weight 0 has no effect.
    assert intervals.interval_mean_width(bounds, sample_weight=[0, 0, 0, 2]) == 2.0


def test_width_quantiles_are_those_of_numpy() -> None:
    widths = np.random.default_rng(6).exponential(size=31)
    probabilities = [0.0, 0.013, 0.25, 0.5, 0.77, 1.0]
    actual = intervals.interval_width_quantiles(
        np.column_stack([-widths, np.zeros(31)]), probabilities=probabilities
    )
    assert actual == pytest.approx(np.quantile(widths, probabilities))


def test_groups_and_features() -> None:
    by_site = intervals.interval_coverage_by_group(TRUTH, BOUNDS, ["b", "a", "b", "b"])
    assert by_site.groups == ("a", "b")
    assert by_site.coverage.tolist() == pytest.approx([1.0, 1 / 3])
    assert by_site.counts.tolist() == [1, 3]
    assert by_site.score == pytest.approx(1 / 3)
    several = intervals.interval_coverage_by_group(
        TRUTH, np.stack([BOUNDS, BOUNDS], axis=2), [1, 1, 2, 2], sample_weight=[1, 1, 2, 0.5]
    )
    assert several.coverage.tolist() == [[1.0, 0.0]] * 2
    assert several.counts.tolist() == [2.0, 2.5]
    by_age = intervals.interval_feature_stratified_coverage(TRUTH, BOUNDS, [50, 40, 20, 30], bins=2)
    assert by_age.coverage.tolist() == [0.0, 1.0]
    assert by_age.low.tolist() == [20, 40]


def _brute_force_slab(position: np.ndarray, covered: np.ndarray, proportion: float) -> float:
    worst = INF
    for low in np.unique(position):
        for high in np.unique(position[position >= low]):
            inside = (position >= low) & (position <= high)
            if inside.mean() >= proportion - 1e-12:
                worst = min(worst, covered[inside].mean())
    return worst


def test_the_worst_slab_is_found_exactly() -> None:
    rng = np.random.default_rng(7)
    for _ in range(40):
        rows = int(rng.integers(2, 25))
        position = rng.integers(0, 12, rows).astype(float)
        covered = rng.random(rows) < 0.7
        proportion = float(rng.uniform(0.05, 0.9))
        actual, low, high = _worst_range(position, covered, np.ones(rows), proportion)
        inside = (position >= low) & (position <= high)
        assert actual == pytest.approx(_brute_force_slab(position, covered, proportion))
        assert covered[inside].mean() == pytest.approx(actual)
        assert inside.mean() >= proportion - 1e-12


def test_the_worst_slab_is_evaluated_on_held_out_rows() -> None:
    rng = np.random.default_rng(8)
    features = rng.normal(size=(600, 2))
    noise = rng.random(600) < 0.9
    bounds = np.column_stack([np.zeros(600), np.ones(600)])
    truth = np.where(noise, 0.5, 2.0)
    fair = intervals.interval_worst_slab_coverage(truth, bounds, features, proportion=0.2, directions=50)
    assert isinstance(fair, intervals.WorstSlab)
    assert fair.searched_coverage < 0.8 < fair.coverage  # only the searched coverage is biased
    truth = np.where(features[:, 0] > 1.0, 2.0, 0.5)
    bad = intervals.interval_worst_slab_coverage(truth, bounds, features, proportion=0.1, directions=200)
    assert isinstance(bad, intervals.WorstSlab)
    assert bad.coverage < 0.3
    assert abs(bad.direction[0]) > 0.8
    again = intervals.interval_worst_slab_coverage(truth, bounds, features, proportion=0.1, directions=200)
    assert isinstance(again, intervals.WorstSlab)
    assert again.coverage == bad.coverage


def test_the_worst_slab_splits_no_cluster_and_has_a_reason_if_it_is_empty() -> None:
    cluster = np.repeat(np.arange(10), 5)
    held_out = _split(cluster, np.ones(50), 0.5, np.random.default_rng(0))
    assert {int(part.sum()) for part in held_out.reshape(10, 5)} == {0, 5}
    slab = intervals.interval_worst_slab_coverage(
        [0, 0], [[0, 1], [0, 1]], [1, 2], proportion=0.5, held_out=0.5
    )
    assert isinstance(slab, intervals.WorstSlab)
    assert math.isnan(slab.coverage)
    assert slab.reason == "no held-out row falls into the slab"
    single = intervals.interval_worst_slab_coverage([0], [[0, 1]], [1])
    assert isinstance(single, intervals.WorstSlab)
    assert math.isnan(single.coverage)
    assert single.reason == "no held-out row falls into the slab"


def test_intervals_of_one_width_have_no_hsic_and_one_stratum() -> None:
    truth, center = np.zeros(50), np.linspace(0.0, 0.7, 50)
    bounds = np.column_stack([center - 0.1, center + 0.1])  # 0.2 up to rounding
    assert math.isnan(intervals.interval_hsic(truth, bounds))
    assert math.isnan(intervals.interval_hsic(truth, bounds, raw=True))
    strata = intervals.interval_size_stratified_coverage(truth, bounds)
    assert strata.counts.tolist() == [50, 0, 0]
    assert strata.coverage[0] == strata.score == np.mean(center <= 0.1)
    assert math.isnan(intervals.interval_hsic([1], [[0, 2]]))


def test_a_row_of_weight_zero_is_not_a_second_width() -> None:
    truth, bounds = [0, 5, 0], [[0, 1], [0, 1], [0, 3]]
    assert math.isnan(intervals.interval_hsic(truth, bounds, sample_weight=[1, 1, 0]))
    strata = intervals.interval_size_stratified_coverage(truth, bounds, sample_weight=[1, 1, 0])
    assert (strata.counts.tolist(), strata.score) == ([2, 0, 0], 0.5)


def test_coverage_that_does_not_depend_on_two_widths_has_an_hsic_of_zero() -> None:
    bounds = np.array([[0.0, 1.0], [0.0, 3.0]] * 20)
    truth = np.repeat([0.5, 9.0], 20)  # half of either width is covered
    assert intervals.interval_hsic(truth, bounds) < 1e-15
    assert intervals.interval_size_stratified_coverage(truth, bounds, bins=2).counts.tolist() == [20, 20]


@pytest.mark.parametrize(
    ("bounds", "message"),
    [
        ([[0, 1], [3, 2], [5, 4]], r"crossed at row 1: low 3 > high 2 \(2 such rows\)"),
        ([[0, 1], [0, 1], [math.nan, 2]], "the low bound is nan at row 2"),
        ([[0, 1], [0, None], [0, 2]], "the high bound is nan at row 1"),
        ([[0, 1], [0, 1], [INF, INF]], "both bounds of row 2 are the same infinity"),
        ([[0, 1], [-INF, -INF], [0, 1]], "both bounds of row 1 are the same infinity"),
        ([0, 1, 2], r"shape \(rows, 2\) or \(rows, 2, levels\), got \(3,\)"),
        ([[0, 1, 2]] * 3, r"got \(3, 3\)"),
        ([[0, 1], [0, 1]], "y_true has 3 rows, but 2 were expected"),
        ([["a", "b"]] * 3, "intervals must be numbers"),
        ([[0, 1], [0, 1], [0]], "differ in length"),
        (np.empty((0, 2)), "intervals is empty"),
        (np.empty((3, 2, 0)), "intervals has no level"),
        (np.array([[[0, 1], [1, 0]], [[0, 0], [1, 1]], [[0, 0], [1, 1]]]), "crossed at row 0, level 1"),
    ],
)
def test_wrong_intervals_are_refused(bounds: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        intervals.interval_coverage([1.0, 2.0, 3.0], bounds)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: intervals.interval_coverage([1, math.nan], [[0, 1]] * 2),
            DataError,
            "y_true is nan at row 1",
        ),
        (lambda: intervals.interval_coverage([1, INF], [[0, 1]] * 2), DataError, "y_true is inf at row 1"),
        (lambda: intervals.interval_coverage(["a"], [[0, 1]]), DataError, "y_true must hold numbers"),
        (
            lambda: intervals.interval_coverage([1], [[0, 1]], sample_weight=[-1]),
            DataError,
            "negative, got -1 at row 0",
        ),
        (lambda: intervals.winkler_score([1], [[0, 1]], level=95), ArgumentError, "did you mean 0.95"),
        (lambda: intervals.winkler_score([1], [[0, 1]], level=1), ArgumentError, "0 < level < 1, got 1"),
        (lambda: intervals.winkler_score([1], [[0, 1]], level=[0.5, 0.9]), ArgumentError, "has 2 values"),
        (
            lambda: intervals.interval_coverage_gap([1], [[0, 1]], level=95),
            ArgumentError,
            "did you mean 0.95",
        ),
        (
            lambda: intervals.interval_coverage_width_criterion([2, 2], [[0, 1]] * 2, eta=1, level=0.9),
            DataError,
            r"y_true is constant \(2 in every row\)",
        ),
        (
            lambda: intervals.interval_coverage_width_criterion([2, 3], [[0, 1]] * 2, eta=-1, level=0.9),
            ArgumentError,
            "eta must be at least 0",
        ),
        (
            lambda: intervals.interval_hsic([1], [[0, 1]], kernel_sizes=(1, 0)),
            ArgumentError,
            "greater than 0",
        ),
        (lambda: intervals.interval_hsic([1], [[0, 1]], kernel_sizes=(1,)), ArgumentError, "two numbers"),  # type: ignore[arg-type]
        (
            lambda: intervals.interval_size_stratified_coverage([1], [[0, 1]], bins=0),
            ArgumentError,
            "bins must be at least 1",
        ),
        (
            lambda: intervals.interval_coverage_by_group([1], [[0, 1]], np.array([None])),
            DataError,
            "groups is missing at row 0",
        ),
        (
            lambda: intervals.interval_coverage_by_group(
                [1, 2], [[0, 1]] * 2, np.array(["2020-01-01", "NaT"], dtype="M8[D]")
            ),
            DataError,
            "groups is missing at row 1",
        ),
        (
            lambda: intervals.interval_coverage_by_group([1, 2], [[0, 1]] * 2, np.array([1, "a"], object)),
            DataError,
            "groups must be all text or all numbers",
        ),
        (
            lambda: intervals.interval_coverage_by_group([1, 2], [[0, 1]] * 2, [1]),
            DataError,
            "groups has 1 rows",
        ),
        (
            lambda: intervals.interval_width_quantiles([[0, 1]], probabilities=[50]),
            DataError,
            r"lie in \[0, 1\]",
        ),
        (
            lambda: intervals.weighted_interval_score([1], [[0, 1]], level=0.9, median=[1, 2]),
            DataError,
            "median has 2",
        ),
    ],
)
def test_wrong_calls_are_refused(call: Callable[[], object], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


def test_the_arguments_are_not_changed() -> None:
    truth, bounds = _random(9)
    kept = truth.copy(), bounds.copy()
    for array in (truth, bounds):
        array.setflags(write=False)
    for score in SCORES.values():
        score(truth, bounds)
    assert np.array_equal(truth, kept[0])
    assert np.array_equal(bounds, kept[1])


class TestWidthsThatDifferByRounding:
    def test_a_constant_width_is_one_stratum(self) -> None:
        rng = np.random.default_rng(2)
        for size in (1e-3, 1.0, 1e6):
            y = size * rng.normal(size=300)
            bounds = np.stack([y - 0.1 * size, y + 0.1 * size], axis=1)
            assert len(np.unique(bounds[:, 1] - bounds[:, 0])) > 1
            # Coverage depends on the rounding error of the width, which must not define the strata.
            noise = (bounds[:, 1] - bounds[:, 0]) > 0.2 * size
            truth = np.where(noise, y, y + size)
            strata = intervals.interval_size_stratified_coverage(truth, bounds)
            assert strata.counts.tolist() == [300, 0, 0]
            assert strata.coverage[0] == pytest.approx(noise.mean())
            columns = Columns.of(300, truth=truth, intervals=bounds)
            actual = find_metric("interval_size_stratified_coverage").point(columns)
            assert actual == pytest.approx(noise.mean())
            problem = find_metric("interval_hsic").problem(columns)
            assert problem is not None
            assert problem.sentence == (
                "all intervals have the same width: no information about conditional coverage"
            )
            evaluated = evaluate_intervals(truth, bounds, nominal=0.9).by_nominal[0]
            assert evaluated["size_stratified_coverage"].value == pytest.approx(noise.mean())

    def test_different_widths_stay_different(self) -> None:
        bounds = [[0.0, 1.0], [0.0, 1.0 + 1e-12], [0.0, 1e9], [0.0, INF], [-INF, INF]]
        strata = intervals.interval_size_stratified_coverage([0, 9, 0, 0, 0], bounds, bins=5)
        assert strata.low.tolist() == [1.0, 1.0 + 1e-12, 1e9, INF, INF]
        assert strata.coverage.tolist() == [1.0, 0.0, 1.0, 1.0, 1.0]
