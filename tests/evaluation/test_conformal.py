"""Evaluation of intervals and sets: the bootstrap against copied rows, verdicts and errors."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy.stats import beta, norm
from scipy.stats import t as student

import abstain
from abstain import Items
from abstain.errors import ArgumentError, DataError
from abstain.evaluation.conformal import evaluate_intervals, evaluate_quantiles, evaluate_sets
from abstain.inference import Estimate, coverage_verdict
from abstain.metrics import intervals, sets
from abstain.metrics.quantiles import pinball_loss, pit_histogram

if TYPE_CHECKING:
    from collections.abc import Callable


def _case(rows: int = 60, seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 9, rows).astype(float)
    low = truth[:, None] + rng.integers(-3, 1, (rows, 2))
    bounds = np.stack([low, low + rng.integers(0, 5, (rows, 2))], axis=1)
    return {
        "truth": truth,
        "bounds": bounds,
        "labels": rng.integers(0, 3, rows),
        "members": rng.random((rows, 3)) < 0.6,
        "cluster": rng.integers(0, 12, rows),
        "site": np.array(["a", "b", "c"])[rng.integers(0, 3, rows)],
        "weight": rng.integers(1, 3, rows).astype(float),
    }


INTERVAL_METRICS: dict[str, Callable[..., Any]] = {
    "coverage": intervals.interval_coverage,
    "mean_width": lambda _, bounds, **options: intervals.interval_mean_width(bounds, **options),
    "winkler_score": lambda *rows, **options: intervals.winkler_score(*rows, level=0.8, **options),
    "coverage_width_criterion": lambda *rows, **options: intervals.interval_coverage_width_criterion(
        *rows, eta=30.0, level=0.8, **options
    ),
    "size_stratified_coverage": lambda *rows, **options: (
        intervals.interval_size_stratified_coverage(*rows, **options).score
    ),
    "hsic": intervals.interval_hsic,
    "width_quantile[0.5]": lambda _, bounds, **options: intervals.interval_width_quantiles(
        bounds, probabilities=[0.5], **options
    )[0],
}

SET_METRICS: dict[str, Callable[..., Any]] = {
    "coverage": sets.set_coverage,
    "mean_width": lambda _, members, **options: sets.set_mean_width(members, **options),
    "singleton_rate": lambda _, members, **options: sets.set_singleton_rate(members, **options),
    "empty_rate": lambda _, members, **options: sets.set_empty_rate(members, **options),
    "size_stratified_coverage": lambda *rows, **options: (
        sets.set_size_stratified_coverage(*rows, **options).score
    ),
    "coverage_gap[true class]": lambda *rows, **options: sets.set_coverage_gap(*rows, level=0.8, **options),
}


def _copied_rows(
    case: dict[str, np.ndarray], metric: Callable[..., Any], names: tuple[str, str]
) -> np.ndarray:
    """Return the replicates of a metric on rows that were actually copied."""
    cluster_ids = np.unique(case["cluster"])
    stream = np.random.RandomState(7)
    replicates = []
    for _ in range(25):
        drawn = cluster_ids[stream.randint(0, len(cluster_ids), size=len(cluster_ids))]
        rows = np.concatenate([np.flatnonzero(case["cluster"] == cluster) for cluster in drawn])
        options = {"sample_weight": case["weight"][rows]}
        replicates.append(metric(*(case[name][rows] for name in names), **options))
    return np.array(replicates)


@pytest.mark.parametrize("name", INTERVAL_METRICS)
def test_every_interval_metric_is_resampled_as_if_rows_were_copied(name: str) -> None:
    case = _case()
    case["bounds"] = case["bounds"][:, :, 0]
    result = evaluate_intervals(
        case["truth"],
        case["bounds"],
        nominal=0.8,
        cluster=case["cluster"],
        sample_weight=case["weight"],
        interval="percentile",
        resamples=25,
        seed=7,
    )
    estimate = result.by_nominal[0][name]
    expected = _copied_rows(case, INTERVAL_METRICS[name], ("truth", "bounds"))
    assert (estimate.low, estimate.high) == pytest.approx(
        tuple(np.quantile(expected, [0.025, 0.975])), abs=1e-12
    )
    assert estimate.value == pytest.approx(
        INTERVAL_METRICS[name](case["truth"], case["bounds"], sample_weight=case["weight"]), abs=1e-12
    )
    assert estimate.clusters == len(np.unique(case["cluster"]))


@pytest.mark.parametrize("name", SET_METRICS)
def test_every_set_metric_is_resampled_as_if_rows_were_copied(name: str) -> None:
    case = _case(seed=1)
    result = evaluate_sets(
        case["labels"],
        case["members"],
        nominal=0.8,
        cluster=case["cluster"],
        sample_weight=case["weight"],
        interval="percentile",
        resamples=25,
        seed=7,
    )
    estimate = result.by_nominal[0][name]
    expected = _copied_rows(case, SET_METRICS[name], ("labels", "members"))
    assert (estimate.low, estimate.high) == pytest.approx(
        tuple(np.quantile(expected, [0.025, 0.975])), abs=1e-12
    )
    assert estimate.value == pytest.approx(
        SET_METRICS[name](case["labels"], case["members"], sample_weight=case["weight"]), abs=1e-12
    )


def test_several_levels_groups_and_the_score_over_all_levels() -> None:
    case = _case()
    result = evaluate_intervals(
        case["truth"], case["bounds"], nominal=[0.5, 0.8], groups={"site": case["site"]}, resamples=20
    )
    assert [each.nominal for each in result.by_nominal] == [0.5, 0.8]
    expected = intervals.weighted_interval_score(case["truth"], case["bounds"], level=[0.5, 0.8])
    assert result.metrics["weighted_interval_score"].value == pytest.approx(expected)
    for index, level in enumerate(result.by_nominal):
        by_site = intervals.interval_coverage_by_group(
            case["truth"], case["bounds"][:, :, index], case["site"]
        )
        assert [part.label for part in level.groups["site"]] == list(by_site.groups)
        assert [part.coverage.value for part in level.groups["site"]] == pytest.approx(by_site.coverage)
        assert [part.count for part in level.groups["site"]] == by_site.counts.tolist()
        assert level["worst_coverage[site]"].value == by_site.score
        gap = intervals.interval_coverage_gap(
            case["truth"], case["bounds"][:, :, index], case["site"], level=level.nominal
        )
        assert level["coverage_gap[site]"].value == pytest.approx(gap)
        assert [part.count for part in level.strata] == [20, 20, 20]
        assert level.width_quantiles[50] == np.median(
            case["bounds"][:, 1, index] - case["bounds"][:, 0, index]
        )


def test_without_intervals_the_values_are_the_same() -> None:
    case = _case()
    with_draws = evaluate_intervals(
        case["truth"], case["bounds"], nominal=[0.5, 0.8], interval="percentile", resamples=5
    )
    without = evaluate_intervals(case["truth"], case["bounds"], nominal=[0.5, 0.8], interval="none")
    for left, right in zip(with_draws.by_nominal, without.by_nominal, strict=True):
        assert {name: estimate.value for name, estimate in left.items()} == pytest.approx(
            {name: estimate.value for name, estimate in right.items()}, abs=1e-12
        )
        assert right["coverage"].interval is None
        assert left.verdict.estimate == left["coverage"]


def test_infinite_intervals_have_infinite_means_with_intervals_and_a_warning() -> None:
    bounds = np.array([[0.0, 1.0]] * 40)
    bounds[:2, 1] = math.inf
    result = evaluate_intervals(
        np.linspace(0, 1, 40), bounds, nominal=0.8, interval="percentile", resamples=200
    )
    width = result.by_nominal[0]["mean_width"]
    assert width.value == math.inf
    assert width.reason == "at least one interval is infinite"
    assert (width.low, width.high) == (1.0, math.inf)  # one resample in eight has neither of the two
    assert math.isnan(width.se)
    assert any(
        "5% of the intervals with nominal coverage 0.8 are infinite" in str(warning)
        for warning in result.warnings
    )


def test_intervals_of_one_width_have_no_information_about_conditional_coverage() -> None:
    """The first nominal coverage has one width; the second has two, and keeps its three strata."""
    truth, half = np.r_[np.zeros(70), np.full(30, 9.0)], np.tile([1.0, 2.0], 50)
    bounds = np.stack([np.tile([-1.0, 1.0], (100, 1)), np.column_stack([-half, half])], axis=2)
    feature = {"constant": np.ones(100)}
    result = evaluate_intervals(truth, bounds, nominal=[0.7, 0.8], features=feature)
    constant, varying = result.by_nominal
    sentence = "all intervals have the same width: no information about conditional coverage"
    assert math.isnan(constant["hsic"].value)
    assert (constant["hsic"].interval, constant["hsic"].reason) == (None, sentence)
    assert [(part.label, part.count, part.coverage.value) for part in constant.strata] == [("2", 100, 0.7)]
    assert constant.strata[0].coverage.interval == constant["coverage"].interval
    assert constant["size_stratified_coverage"].interval == constant["coverage"].interval
    assert [part.count for part in constant.groups["feature constant"]] == [100]
    assert varying["hsic"].interval is not None
    assert len(varying.strata) == 3
    messages = [str(each) for each in result.warnings if each.code == "one_width"]
    assert messages == [f"the intervals with nominal coverage 0.7 have {sentence}"]


def test_undefined_metrics_have_a_reason() -> None:
    result = evaluate_intervals([1, 1], [[0, 2], [0, 3]], nominal=0.9, bins=3, resamples=0)
    level = result.by_nominal[0]
    assert level["coverage_width_criterion"].reason == (
        "all true values are equal, and the criterion divides by their range"
    )
    assert level.strata[2].coverage.reason == "there are no such rows"
    assert level.strata[2].verdict is None
    one_row = evaluate_intervals([1], [[0, 2]], nominal=0.9, resamples=10)
    assert one_row.by_nominal[0]["hsic"].reason == "it needs at least two rows"
    assert one_row.by_nominal[0].verdict.verdict == "inconclusive"
    assert one_row.warnings[0].code == "few_clusters"


def test_the_worst_part_has_an_interval_from_the_parts() -> None:
    """By hand: both ends are the lowest of the parts; the upper ends hold for all parts together."""
    site, covered = (
        np.repeat(["a", "b"], 40),
        np.r_[np.ones(38), np.zeros(2), np.ones(30), np.zeros(10)] == 1.0,
    )
    bounds = np.where(covered[:, None], [-1.0, 1.0], [2.0, 3.0])
    result = evaluate_intervals(np.zeros(80), bounds, nominal=0.9, groups={"site": site}).by_nominal[0]
    parts = [part.coverage for part in result.groups["site"]]
    worst = result["worst_coverage[site]"]
    assert worst.value == 0.75
    assert worst.low == min(part.low for part in parts)
    # The exact upper end for 10 misses in 40 at 1 - 0.025/2, in as many trials as the t quantile of 39 degrees implies.
    slack = student.ppf(1 - 0.0125, 39) ** 2 / 39
    trials = norm.ppf(1 - 0.0125) ** 2 / slack
    assert worst.high == pytest.approx(1 - beta.ppf(0.025, 0.25 * trials, 0.75 * trials + 1), rel=1e-6)
    assert worst.high > parts[1].high
    assert worst.method == "the lowest ends of the intervals of 2 parts"


def test_a_part_of_one_cluster_could_be_the_worst() -> None:
    site = ["a"] * 19 + ["b"]
    found = evaluate_intervals(np.zeros(20), [[-1, 1]] * 20, nominal=0.9, groups={"site": site}).by_nominal[0]
    assert found.groups["site"][1].coverage.interval is None
    assert (found["worst_coverage[site]"].low, found["worst_coverage[site]"].high) == (0.0, 1.0)


def test_a_quantile_of_equal_widths_may_lie_beyond_them() -> None:
    few, many = (
        evaluate_intervals(np.zeros(rows), [[-1, 1]] * rows, nominal=0.9).by_nominal[0] for rows in (20, 200)
    )
    assert (few["width_quantile[0.95]"].low, few["width_quantile[0.95]"].high) == (2.0, math.inf)
    assert (many["width_quantile[0.95]"].low, many["width_quantile[0.95]"].high) == (2.0, 2.0)


def test_the_interval_of_a_score_without_a_miss_assumes_one() -> None:
    """By hand: 100 rows of width 2 with nominal coverage 0.9, and one true value a tenth of the width outside."""
    result = evaluate_intervals(np.zeros(100), [[-1, 1]] * 100, nominal=0.9)
    found = result.by_nominal[0]["winkler_score"]
    cost = math.sqrt(2) * 2 / 0.1 * 0.2
    reach = student.ppf(0.975, 99) * cost * math.sqrt(1 / 100 / 100) / 2.0
    assert (found.low, found.high) == pytest.approx((2.0 / math.exp(reach), 2.0 * math.exp(reach)), rel=1e-9)
    (warning,) = [each for each in result.warnings if each.code == "few_misses"]
    assert "miss true values in only 0 clusters; with fewer than 20, the confidence interval" in str(warning)


def test_set_sizes_that_do_not_occur_have_a_warning_if_rows_are_few() -> None:
    few, many = (evaluate_sets([0, 1] * half, [[True, True]] * 2 * half, nominal=0.9) for half in (20, 60))
    (warning,) = [each for each in few.warnings if each.code == "unseen_sizes"]
    assert str(warning).startswith("2 of 3 strata of set size have no set with nominal coverage 0.9; ")
    assert "unseen_sizes" not in [each.code for each in many.warnings]


def test_a_slab_of_one_row_is_undefined_with_a_reason() -> None:
    found = evaluate_intervals([0.0], [[-1, 1]], nominal=0.9, features={"x": [0.1]}).by_nominal[0]
    assert math.isnan(found["worst_slab_coverage"].value)
    assert found["worst_slab_coverage"].reason == "no held-out row falls into the slab"
    assert found.slab is not None
    assert math.isnan(found.slab.proportion)


def test_the_worst_slab_has_an_interval() -> None:
    rng = np.random.default_rng(3)
    features = rng.normal(size=(400, 2))
    truth = np.where(features[:, 0] > 1, 5.0, 0.0)
    result = evaluate_intervals(
        truth,
        [[-1, 1]] * 400,
        nominal=0.9,
        features={"a": features[:, 0], "b": features[:, 1]},
        resamples=100,
    )
    slab = result.by_nominal[0].slab
    estimate = result.by_nominal[0]["worst_slab_coverage"]
    assert slab is not None
    assert estimate.value == slab.coverage
    assert estimate.low <= estimate.value <= estimate.high < 0.9
    by_feature = intervals.interval_feature_stratified_coverage(truth, [[-1, 1]] * 400, features[:, 0])
    assert [part.coverage.value for part in result.by_nominal[0].groups["feature a"]] == pytest.approx(
        by_feature.coverage
    )
    assert result.by_nominal[0]["feature_stratified_coverage[a]"].value == by_feature.score


def test_quantiles_are_evaluated_with_clusters() -> None:
    rng = np.random.default_rng(6)
    truth, table = rng.normal(size=90), np.sort(rng.normal(size=(90, 3)), axis=1)
    cluster, proportions = np.repeat(np.arange(30), 3), [0.1, 0.5, 0.9]
    result = evaluate_quantiles(truth, table, probabilities=proportions, cluster=cluster, resamples=50)
    losses = np.asarray(pinball_loss(truth, table, probabilities=proportions))
    assert [loss.value for loss in result.pinball.values()] == pytest.approx(losses)
    histogram = pit_histogram(truth, table, probabilities=proportions)
    assert [part.proportion.value for part in result.pit] == pytest.approx(histogram.proportion)
    assert [(part.low, part.high) for part in result.pit] == [(0, 0.1), (0.1, 0.5), (0.5, 0.9), (0.9, 1)]
    for part in result.pit:
        assert part.proportion.clusters == 30
        assert part.proportion.low <= part.proportion.value <= part.proportion.high


def test_groups_have_the_names_of_the_classes() -> None:
    result = evaluate_sets(
        [0, 1, 1], [[1, 0], [1, 0], [1, 1]], nominal=0.8, labels=["no", "yes"], resamples=0
    )
    parts = result.by_nominal[0].groups["true class"]
    assert [(part.label, part.coverage.value) for part in parts] == [("no", 1.0), ("yes", 0.5)]
    assert [part.label for part in result.by_nominal[0].strata] == ["0", "1", "2"]


@pytest.mark.parametrize(
    ("hits", "rows", "expected"),
    [
        (8, 10, "inconclusive"),
        (800, 1000, "under-covered"),
        (950, 1000, "over-covered"),
        (900, 1000, "inconclusive"),
    ],
)
def test_the_verdict_follows_the_interval_of_coverage(hits: int, rows: int, expected: str) -> None:
    truth = np.zeros(rows)
    bounds = np.where(np.arange(rows)[:, None] < hits, [[-1.0, 1.0]], [[1.0, 2.0]])
    verdict = evaluate_intervals(truth, bounds, nominal=0.9, resamples=0).by_nominal[0].verdict
    assert verdict.verdict == str(verdict) == expected
    assert verdict.plausible == (expected == "inconclusive")
    assert verdict.estimate.n == rows


@pytest.mark.slow
def test_the_verdict_comes_from_the_printed_interval() -> None:
    """The verdict changes at the same number of hits as the interval of the coverage."""
    seen = set()
    for hits in (*range(860, 940), 800, 1000):
        bounds = np.where(np.arange(1000)[:, None] < hits, [[-1.0, 1.0]], [[1.0, 2.0]])
        nominal = evaluate_intervals(np.zeros(1000), bounds, nominal=0.9).by_nominal[0]
        assert nominal.verdict.estimate == nominal["coverage"]
        low, high = nominal["coverage"].low, nominal["coverage"].high
        expected = "over-covered" if low > 0.9 else "under-covered" if high < 0.9 else "inconclusive"
        assert nominal.verdict.verdict == expected
        seen.add(expected)
    assert seen == {"over-covered", "under-covered", "inconclusive"}


def test_without_an_interval_the_verdict_is_inconclusive() -> None:
    bounds = np.array([[-1.0, 1.0]] * 50 + [[1.0, 2.0]] * 50)
    verdict = evaluate_intervals(np.zeros(100), bounds, nominal=0.9, interval="none").by_nominal[0].verdict
    assert (verdict.verdict, verdict.reason) == ("inconclusive", "no interval was requested")


def test_with_a_margin_a_plausible_level_is_covered() -> None:
    nine, eight = Estimate(0.9, 0.88, 0.917), Estimate(0.8, 0.774, 0.824)
    assert coverage_verdict(nine, 0.9).verdict == "inconclusive"
    assert coverage_verdict(nine, 0.9, margin=0.03).verdict == "covered"
    assert coverage_verdict(eight, 0.9, margin=0.03).verdict == "under-covered"
    with pytest.raises(ArgumentError, match="margin must be at least 0 and below the nominal level 0.9"):
        coverage_verdict(nine, 0.9, margin=-0.1)


@pytest.mark.parametrize(
    ("low", "high", "margin", "expected", "reason"),
    [
        (0.91, 0.95, 0.0, "over-covered", "the whole interval is above 0.9"),
        (0.9, 0.95, 0.0, "covered", "the whole interval is at or above 0.9"),
        (0.91, 0.95, 0.02, "covered", "the whole interval is at or above 0.9 - 0.02"),
        (0.93, 0.95, 0.02, "over-covered", "the whole interval is above 0.9 + 0.02"),
        (0.87, 0.95, 0.02, "inconclusive", "0.9 - 0.02 lies within the interval: plausible, not shown"),
        (0.99, 1.0, 0.1, "covered", "the whole interval is at or above 0.9 - 0.1"),
    ],
)
def test_a_coverage_is_over_covered_if_its_whole_interval_is_above_the_nominal_level_and_the_margin(
    low: float, high: float, margin: float, expected: str, reason: str
) -> None:
    verdict = coverage_verdict(Estimate((low + high) / 2, low, high), 0.9, margin=margin)
    assert (verdict.verdict, verdict.reason) == (expected, reason)


def test_clusters_widen_the_interval_behind_the_verdict() -> None:
    rng = np.random.default_rng(4)
    cluster = np.repeat(np.arange(30), 20)
    hit = np.repeat(rng.random(30) < 0.8, 20)  # a patient is covered throughout, or never
    bounds = np.where(hit[:, None], [[-1.0, 1.0]], [[1.0, 2.0]])
    truth = np.zeros(600)
    apart = evaluate_intervals(truth, bounds, nominal=0.75).by_nominal[0].verdict
    together = evaluate_intervals(truth, bounds, nominal=0.75, cluster=cluster).by_nominal[0].verdict
    once = evaluate_intervals(truth[::20], bounds[::20], nominal=0.75).by_nominal[0].verdict
    assert apart.verdict == "under-covered"
    assert together.verdict == "inconclusive"
    assert together.estimate.interval == pytest.approx(once.estimate.interval, abs=1e-9)
    one_cluster = evaluate_intervals(truth, bounds, nominal=0.5, cluster=np.zeros(600)).by_nominal[0].verdict
    reason = "there is only one cluster, so there is no confidence interval"
    assert (one_cluster.verdict, one_cluster.reason) == ("inconclusive", reason)


@pytest.mark.slow
def test_the_interval_behind_the_verdict_holds_its_level_on_clustered_rows() -> None:
    rng = np.random.default_rng(5)
    inside = 0
    for _ in range(400):
        proportion = rng.beta(9, 1, 25)  # 25 patients whose own coverage differs around 0.9
        hit = (rng.random((25, 8)) < proportion[:, None]).ravel()
        bounds = np.where(hit[:, None], [[-1.0, 1.0]], [[1.0, 2.0]])
        options = {"nominal": 0.9, "cluster": np.repeat(np.arange(25), 8)}
        verdict = evaluate_intervals(np.zeros(200), bounds, **options).by_nominal[0].verdict  # type: ignore[arg-type]
        inside += verdict.plausible
    assert inside / 400 > 0.93


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: evaluate_intervals([1], [[0, 1]], nominal=95), ArgumentError, "did you mean 0.95"),
        (
            lambda: evaluate_intervals([1], [[[0, 0], [1, 1]]], nominal=[0.5, 0.5]),
            ArgumentError,
            "nominal has a duplicate coverage",
        ),
        (
            lambda: evaluate_intervals([1], [[0, 1]], nominal=0.9, eta=-1),
            ArgumentError,
            "eta must be at least 0",
        ),
        (lambda: evaluate_intervals([1], [[0, 1]], nominal=0.9, resamples=-1), ArgumentError, "resamples"),
        (
            lambda: evaluate_intervals([1], [[0, 1]], nominal=0.9, level=95),
            ArgumentError,
            "level must fulfil 0 < level < 1, got 95; did you mean 0.95",
        ),
        (
            lambda: evaluate_intervals([1], [[0, 1]], nominal=0.9, cluster=[1, 2]),
            DataError,
            "cluster has 2 rows",
        ),
        (
            lambda: evaluate_intervals([1], [[0, 1]], nominal=0.9, groups={"site": np.array([None])}),
            DataError,
            r"groups\['site'\] is missing at row 0",
        ),
        (
            lambda: evaluate_intervals([1], [[0, 1]], nominal=0.9, features={"age": [math.nan]}),
            DataError,
            r"features\['age'\] is nan at row 0",
        ),
        (
            lambda: evaluate_sets([0], [[1, 0]], nominal=0.9, labels=["a"]),
            ArgumentError,
            "each of the 2 classes once",
        ),
        (lambda: evaluate_sets([2], [[1, 0]], nominal=0.9), DataError, "class index from 0 to 1, got 2"),
    ],
)
def test_invalid_arguments_are_errors(
    call: Callable[[], object], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        call()


def test_intervals_of_items_are_evaluated_by_metric_names() -> None:
    items = Items.from_arrays([1, 2, 9], [1, 1, 1], intervals=[[0, 2], [0, 2], [0, 4]], weight=[1, 1, 2])
    metrics = "interval_coverage,interval_mean_width,winkler_score@0.5,interval_size_stratified_coverage,set_coverage"
    found = abstain.evaluate(items, metrics=metrics, resamples=20).metrics
    assert found is not None
    assert found["interval_coverage"].value == 0.5  # the third row counts twice
    assert found["interval_mean_width"].value == 3.0
    assert found["winkler_score@0.5"].value == (2 + 2 + 2 * (4 + 4 * 5)) / 4
    assert found["interval_size_stratified_coverage"].value == 0.0  # chunks of 2, 1 and 1 rows
    assert found["set_coverage"].reason == "no answered row has a set; name its column (--set, set=)"


def test_sets_of_items_are_evaluated_by_metric_names_for_text_and_number_labels() -> None:
    truth, members = ["cat", "dog", "cat", "dog"], [[1, 0], [1, 0], [1, 1], [0, 0]]
    items = Items.from_arrays(truth, ["cat"] * 4, sets=np.array(members, bool), classes=["cat", "dog"])
    expected = {
        "set_coverage": 0.5,
        "set_mean_width": 1.0,
        "set_size_stratified_coverage": 0.0,
        "set_coverage_by_label": 0.0,
        "set_singleton_rate": 0.5,
        "set_empty_rate": 0.25,
    }
    found = abstain.evaluate(items, metrics=list(expected), resamples=20).metrics
    assert found is not None
    assert {name: found[name].value for name in expected} == expected
    numbered = Items.from_arrays([0, 1, 0, 1], [0] * 4, sets=np.array(members, bool))
    again = abstain.evaluate(numbered, metrics=list(expected), resamples=20).metrics
    assert again is not None
    assert {name: again[name].value for name in expected} == expected


@pytest.mark.parametrize("interval", ["jackknife", "percentile"])
def test_items_and_arrays_give_the_same_estimates(interval: str) -> None:
    case = _case()
    bounds = case["bounds"][:, :, 0]
    items = Items.from_arrays(
        case["truth"], case["truth"], intervals=bounds, cluster=case["cluster"], weight=case["weight"]
    )
    arrays = evaluate_intervals(
        case["truth"],
        bounds,
        nominal=0.8,
        cluster=case["cluster"],
        sample_weight=case["weight"],
        interval=interval,
        resamples=25,
        seed=7,
    ).by_nominal[0]
    names = {
        "coverage": "interval_coverage",
        "mean_width": "interval_mean_width",
        "winkler_score": "winkler_score@0.8",
        "coverage_width_criterion": "interval_coverage_width_criterion@0.8",
        "size_stratified_coverage": "interval_size_stratified_coverage",
        "hsic": "interval_hsic",
    }
    found = abstain.evaluate(
        items, metrics=list(names.values()), interval=interval, resamples=25, seed=7
    ).metrics
    assert found is not None
    for ours, theirs in names.items():
        for part in ("value", "low", "high"):
            expected = pytest.approx(getattr(arrays[ours], part), abs=1e-12, nan_ok=True)
            assert getattr(found[theirs], part) == expected, ours


def test_weighted_rows_that_are_all_covered_have_a_coverage_of_one() -> None:
    """Sums of weights near 0 or 1 with rounding errors led to a math domain error or to a wrong variance."""
    rng = np.random.default_rng(11)
    site = np.repeat(["a", "b", "c"], 20)
    truth = np.where(np.arange(60) < 10, 9.0, 0.0)  # half of site a is missed, all others are covered
    options = {"groups": {"site": site}, "sample_weight": rng.random(60) + 0.01, "resamples": 10}
    result = evaluate_intervals(truth, [[-1.0, 1.0]] * 60, nominal=0.9, **options)  # type: ignore[arg-type]
    parts = result.by_nominal[0].groups["site"]
    assert [part.coverage.value for part in parts[1:]] == pytest.approx([1.0, 1.0], abs=1e-15)
    assert [part.verdict.estimate.value for part in parts[1:] if part.verdict] == [1.0, 1.0]


@pytest.mark.parametrize("seed", range(20))
def test_random_tables_with_strata_that_are_fully_covered(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = int(rng.integers(4, 50))
    truth, label, site = rng.normal(size=rows), rng.integers(0, 3, rows), rng.integers(0, 3, rows)
    weight = rng.exponential(10.0 ** int(rng.integers(-8, 8)), rows)
    reach = rng.exponential(1.0, (2, rows)) + (site > 0) * 5.0
    options: dict[str, Any] = {
        "nominal": 0.8,
        "groups": {"site": site},
        "sample_weight": weight,
        "resamples": 5,
    }
    bounds = np.stack([truth - reach[0], truth + reach[1] - 2.0 * (site == 0)], axis=1)
    bounds[:, 1] = np.maximum(bounds[:, 0], bounds[:, 1])
    members = rng.random((rows, 3)) < 0.5
    members[np.arange(rows), label] |= site > 0
    for result in (
        evaluate_intervals(truth, bounds, **options),
        evaluate_sets(label, members, **options),
    ):
        coverage = result.by_nominal[0]["coverage"].value
        assert 0.0 <= coverage <= 1.0
