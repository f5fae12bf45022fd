"""Intervals of single metrics: worked out by hand, compared with peers, and without any spread."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import scipy.stats

import abstain
from abstain import ArgumentError, Items
from abstain.inference import (
    INTERVALS,
    Estimate,
    Intervals,
    JackknifeWeights,
    p_value,
    resamples_wanted,
    with_uncertain_bias,
)
from abstain.inference._intervals import jackknife_estimates
from abstain.metrics.scales import Scale


def means(values: np.ndarray[Any, Any], scale: Scale, **options: Any) -> abstain.Estimate:
    """Return the jackknife estimate of a mean over clusters of one row each."""
    n = len(values)
    left_out = (values.sum() - values)[:, None] / (n - 1)
    weights = JackknifeWeights.of(np.arange(n))
    return jackknife_estimates(np.array([values.mean()]), left_out, weights, [scale], n=n, **options)[0]


def wilson(point: float, slack: float) -> tuple[float, float]:
    centre = (point + slack / 2) / (1 + slack)
    reach = math.sqrt(slack * point * (1 - point) + slack**2 / 4) / (1 + slack)
    return centre - reach, centre + reach


def test_a_proportion_has_wilsons_interval_by_hand() -> None:
    """30 of 100: se^2 = 0.21/99, so the slack is t^2/99; then Wilson's formula."""
    found = means(np.array([1.0] * 30 + [0.0] * 70), Scale(0.0, 1.0, 100))
    slack = scipy.stats.t.ppf(0.975, 99) ** 2 / 99.0
    assert found.interval == pytest.approx(wilson(0.3, slack), abs=1e-9)
    assert found.method == "jackknife over 100 clusters, t distribution, Wilson's score interval"
    assert found.degrees == 99


def test_after_few_errors_the_lower_end_is_an_exact_bound() -> None:
    """1 of 100: Wilson's lower end would exclude rates at which an error is seen 16% of the time."""
    found = means(np.array([1.0] + [0.0] * 99), Scale(0.0, 1.0, 100))
    slack = scipy.stats.t.ppf(0.975, 99) ** 2 / 99.0
    trials = scipy.stats.norm.ppf(0.975) ** 2 / slack
    bound = scipy.stats.beta.ppf(0.05, 0.01 * trials, 0.99 * trials + 1.0)
    assert bound < wilson(0.01, slack)[0]
    assert found.interval == pytest.approx((bound, wilson(0.01, slack)[1]), rel=1e-6)
    mirrored = means(np.array([0.0] + [1.0] * 99), Scale(0.0, 1.0, 100))
    assert mirrored.interval == pytest.approx((1.0 - found.high, 1.0 - found.low))


def test_a_logarithmic_end_grows_linearly_for_a_very_uncertain_value() -> None:
    """One of ten rows has a loss of 100: the standard error of the logarithm times t is far above 1."""
    costs = np.array([1.0] * 9 + [100.0])
    found = means(costs, Scale(low=0.0))
    logs = np.log((costs.sum() - costs) / 9)
    reach = scipy.stats.t.ppf(0.975, 9) * math.sqrt(0.9 * ((logs - logs.mean()) ** 2).sum())
    assert reach > 1.0
    assert found.interval == pytest.approx((10.9 / math.exp(reach), 10.9 * math.e * reach), rel=1e-9)


def test_an_interval_is_not_narrower_than_that_of_independent_rows() -> None:
    """Ten clusters that are all half right have hardly any spread, but there are only twenty rows."""
    rng = np.random.default_rng(0)
    nearly = 0.5 + 1e-4 * rng.standard_normal(10)
    found = means(nearly, Scale(0.0, 1.0, 20))
    peer = scipy.stats.binomtest(10, 20).proportion_ci(method="wilson")
    assert found.interval == pytest.approx((peer.low, peer.high), abs=1e-4)


@pytest.mark.parametrize("clusters", [3, 5, 40])
def test_without_errors_wilsons_interval_has_as_many_trials_as_there_are_clusters(clusters: int) -> None:
    right = Items.from_arrays([1] * clusters, [1] * clusters, confidence=np.linspace(0.5, 0.9, clusters))
    result = abstain.evaluate(right, metrics="accuracy,brier_score", selective=True)
    found = result.only.estimate("accuracy")
    slack = scipy.stats.t.ppf(0.975, clusters - 1) ** 2 / clusters
    highest = slack / (1.0 + slack)
    assert found.interval == pytest.approx((1.0 - highest, 1.0), abs=1e-9)
    # Clopper and Pearson's bound is closer, because it needs no approximation.
    assert found.low < scipy.stats.binomtest(clusters, clusters).proportion_ci(method="exact").low
    own = result["confidence"]
    assert own.aurc.interval == pytest.approx((0.0, highest))
    assert own.augrc.interval == pytest.approx((0.0, 0.5 * highest))


def test_without_errors_unequal_clusters_count_as_fewer() -> None:
    """11 of 20 rows in one cluster: 20^2 / (121 + 9) clusters by Kish's formula."""
    even = Items.from_arrays([1] * 20, [1] * 20, cluster=np.arange(20) // 2)
    uneven = Items.from_arrays([1] * 20, [1] * 20, cluster=[0] * 11 + list(range(1, 10)))
    for items, effective in ((even, 10.0), (uneven, 400.0 / 130.0)):
        found = abstain.evaluate(items, metrics="accuracy").metrics["accuracy"]  # type: ignore[index]
        slack = scipy.stats.t.ppf(0.975, effective - 1.0) ** 2 / effective
        assert found.low == pytest.approx(1.0 / (1.0 + slack))


def test_a_group_has_the_same_bound_as_its_items_evaluated_separately() -> None:
    n = 200
    group = np.array(["a"] * 20 + ["b"] * 180)
    wrong = np.r_[np.zeros(20, int), np.random.default_rng(0).integers(0, 2, 180)]
    items = Items.from_arrays(np.zeros(n, int), wrong, metadata={"g": group}, cluster=np.arange(n))
    table = abstain.evaluate(items, metrics="accuracy", by="g").metrics
    separate = abstain.evaluate(items.take(group == "a"), metrics="accuracy").metrics
    assert table is not None
    assert separate is not None
    assert table.group("g=a").estimates["accuracy"].interval == pytest.approx(separate["accuracy"].interval)


def test_evaluate_intervals_and_evaluate_have_the_same_bound() -> None:
    """24 intervals of 12 clusters, 13 of them in one: the effective number is 24^2/180 clusters for both functions."""
    cluster = np.r_[np.zeros(13, int), np.arange(1, 12)]
    truth, bounds = np.zeros(24), np.tile([-1.0, 1.0], (24, 1))
    own = abstain.evaluate_intervals(truth, bounds, nominal=0.9, cluster=cluster).by_nominal[0]["coverage"]
    items = Items.from_arrays(truth, truth, intervals=bounds, cluster=cluster, item=np.arange(24))
    found = abstain.evaluate(items, metrics="interval_coverage").metrics
    assert found is not None
    slack = scipy.stats.t.ppf(0.975, 24**2 / 180 - 1.0) ** 2 / (24**2 / 180)
    assert own.interval == pytest.approx((1.0 / (1.0 + slack), 1.0))
    assert found["interval_coverage"].interval == pytest.approx(own.interval)


def test_the_interval_of_a_metric_that_cannot_vary_has_no_width() -> None:
    never = Items.from_arrays([1, 0] * 10, [1, 1] * 10, confidence=[0.9, 0.5] * 10)
    found = abstain.evaluate(never)["confidence"].cmax
    assert (found.low, found.high, found.method) == (1.0, 1.0, "it cannot vary")
    could = Items.from_arrays([1, 0] * 10, [1, 1] * 10, abstained=[False] * 20, confidence=[0.9, 0.5] * 10)
    found = abstain.evaluate(could)["confidence"].cmax
    assert found.interval == pytest.approx((1.0 / (1.0 + scipy.stats.t.ppf(0.975, 19) ** 2 / 20), 1.0))


def test_the_interval_of_a_mean_of_positive_numbers_is_logarithmic() -> None:
    values = np.random.default_rng(1).lognormal(size=30)
    found = means(values, Scale(low=0.0))
    logs = np.log((values.sum() - values) / 29)
    se = math.sqrt(29 / 30 * ((logs - logs.mean()) ** 2).sum())
    factor = math.exp(scipy.stats.t.ppf(0.975, 29) * se)
    assert found.interval == pytest.approx((values.mean() / factor, values.mean() * factor), rel=1e-3)


def test_differences_and_signed_metrics_have_the_plain_t_interval() -> None:
    values = np.random.default_rng(2).standard_normal(25)
    peer = scipy.stats.ttest_1samp(values, 0.0).confidence_interval()
    assert means(values, Scale()).interval == pytest.approx((peer.low, peer.high))


def test_metrics_that_are_positive_by_chance_have_an_upper_end_only() -> None:
    found = means(np.array([0.1, 0.3, 0.2, 0.4]), Scale(0.0, 1.0, 100, upper_only=True))
    assert found.low == 0.0
    assert found.method.endswith("upper end only")
    refused = means(np.array([0.1, 0.3]), Scale(refused="no interval: it depends on the number of rows"))
    assert (refused.interval, refused.reason) == (None, "no interval: it depends on the number of rows")


def test_the_lowest_of_several_parts_has_an_upper_end_for_all_of_them() -> None:
    values = np.array([1.0] * 12 + [0.0] * 8)
    one, chosen = (means(values, Scale(0.0, 1.0, 20, chosen=parts)) for parts in (1, 4))
    assert chosen.low == one.low
    # A tail of 0.025 / 4 at the upper end only.
    assert chosen.high == pytest.approx(means(values, Scale(0.0, 1.0, 20), level=1 - 0.05 / 4).high)


def test_degrees_of_freedom_are_those_of_clusters_by_their_size() -> None:
    ids = np.arange(4)
    assert JackknifeWeights.of(ids).degrees == 3
    assert JackknifeWeights.of(ids, np.array([5.0, 5, 5, 5])).degrees == 3
    # (2 + 1 + 1)^2 / (4 + 1 + 1) - 1
    assert JackknifeWeights.of(np.arange(3), np.array([2.0, 1, 1])).degrees == pytest.approx(16 / 6 - 1)
    assert JackknifeWeights.of(ids, np.array([1000.0, 1, 1, 1])).degrees == 1.0


def some(n: int, clusters: int, seed: int = 0) -> Items:
    rng = np.random.default_rng(seed)
    sure = rng.random(n)
    wrong = rng.random(n) < 0.5 - 0.4 * sure
    return Items.from_arrays(
        np.zeros(n, int),
        wrong.astype(int),
        abstained=rng.random(n) < 0.2,
        confidence=sure,
        cluster=np.arange(n) % clusters,
        item=np.arange(n),
    )


def test_very_many_clusters_are_left_out_in_groups() -> None:
    result = abstain.evaluate(some(10_000, 5000))["confidence"]
    assert result.aurc.method.startswith("jackknife over 200 groups of 5,000 clusters, t distribution")
    assert result.aurc.clusters == 5000
    drawn = abstain.evaluate(some(10_000, 5000), interval="percentile", resamples=400)["confidence"]
    for name in ("aurc", "augrc", "cmax", "eaurc"):
        assert getattr(result, name).se == pytest.approx(getattr(drawn, name).se, rel=0.2)


def test_intervals_do_not_depend_on_the_order_of_rows_nor_on_how_weights_are_written() -> None:
    items = some(120, 15)
    order = np.random.default_rng(7).permutation(120)
    multiplicity = np.arange(120) % 3 + 1
    repeated = items.take(np.repeat(np.arange(120), multiplicity))
    weighed = Items.from_arrays(
        items.truth,
        items.prediction,
        abstained=items.abstained,
        confidence=items.signals["confidence"].values,
        cluster=items.cluster,
        weight=multiplicity.astype(float),
    )
    first = abstain.evaluate(items)["confidence"]
    for name in ("aurc", "augrc", "aurc_achievable", "aurc_optimal", "cmax"):
        mixed = getattr(abstain.evaluate(items.take(order))["confidence"], name)
        assert mixed.interval == pytest.approx(getattr(first, name).interval, abs=1e-12)
        one, other = (getattr(abstain.evaluate(rows)["confidence"], name) for rows in (repeated, weighed))
        assert one.interval == pytest.approx(other.interval, abs=1e-12)


@pytest.mark.parametrize("interval", ["jackknife", "percentile", "bca"])
def test_a_verdict_and_its_interval_never_contradict_each_other(interval: str) -> None:
    verdicts = set()
    for seed in range(12):
        pair = {"a": some(160, 20, seed), "b": some(160, 20, seed + 100)}
        found = abstain.compare(pair, interval=interval, resamples=999, truth_may_differ=True)
        for each in found.differences:
            if each.estimate.interval is None or not each.compared:
                continue
            low, high = each.estimate.interval
            # Ends near 0 are not precise enough, because they are quantiles of 999 replicates.
            if min(abs(low), abs(high)) > 2e-3 and each.verdict is not None:
                assert (each.verdict != "inconclusive") == (low > 0.0 or high < 0.0), each
            verdicts.add(each.verdict)
    assert len(verdicts) > 1


def test_any_function_of_items_has_a_jackknife_interval() -> None:
    items = some(160, 20)

    def accuracy(rows: Items) -> float:
        return float(((rows.truth == rows.prediction) & rows.answered).mean())

    mine = abstain.jackknife(accuracy, items, low=0.0, high=1.0)
    ours = abstain.evaluate(items, metrics="accuracy").metrics["accuracy"]  # type: ignore[index]
    assert mine.se == pytest.approx(ours.se)
    assert mine.interval == pytest.approx(ours.interval, abs=0.02)
    assert mine.resamples == 0


def test_the_default_number_of_resamples() -> None:
    assert [resamples_wanted(None, interval) for interval in INTERVALS] == [0, 10_000, 10_000, 0]
    assert resamples_wanted(None, "jackknife", of_a_run=True) == 10_000
    assert resamples_wanted(0, "jackknife", of_a_run=True) == 0
    with pytest.raises(ArgumentError, match="resamples must be at least 2, got 0"):
        resamples_wanted(0, "percentile")
    with pytest.raises(ArgumentError, match=r"unknown interval 'jacknife' \(did you mean 'jackknife'\?\)"):
        Intervals.of(np.arange(4), interval="jacknife")


def test_without_an_interval_the_p_value_is_undefined() -> None:
    assert math.isnan(p_value(abstain.Estimate(0.1)))


def test_the_interval_of_auarc_is_1_minus_that_of_aurc() -> None:
    rng = np.random.default_rng(9)
    truth = rng.integers(0, 2, 120)
    wrong = rng.random(120) < 0.2
    rows: dict[str, Any] = {"truth": truth, "confidence": rng.random(120), "cluster": np.arange(120) % 15}
    for prediction in (truth ^ wrong, truth):
        metrics = abstain.evaluate(
            Items.from_arrays(prediction=prediction, **rows), metrics="aurc,auarc"
        ).metrics
        assert metrics is not None
        risk, accuracy = metrics["aurc"], metrics["auarc"]
        assert accuracy.value == pytest.approx(1.0 - risk.value)
        assert accuracy.interval == pytest.approx((1.0 - risk.high, 1.0 - risk.low), abs=1e-9)
        assert accuracy.method == risk.method


def test_rounding_of_weights_does_not_move_the_ends_of_a_proportion_of_0_or_1() -> None:
    """Sums of these weights are inexact, so that a risk of 1 is below 1 in some units."""
    generator = np.random.default_rng(2)
    weight = np.round(generator.random(16), 2) + 0.01
    cluster, confidence = generator.integers(0, 6, 16), generator.choice([0.2, 0.5, 0.9], 16)
    ends = []
    for unit in (1.0, 0.1, 1 / 3, 7.0):
        items = Items.from_arrays(
            np.zeros(16), np.ones(16), confidence=confidence, weight=weight * unit, cluster=cluster
        )
        ends.append(abstain.evaluate(items, metrics="aurc").only.estimate("aurc").low)
    assert ends == pytest.approx([ends[0]] * 4)


def test_the_bias_of_a_debiased_gap_is_uncertain() -> None:
    gap = with_uncertain_bias(Estimate(0.1, 0.04, 0.16, se=0.03, degrees=50.0), 0.04)
    assert gap.se == pytest.approx(0.05)
    reach = 0.05 * scipy.stats.t.ppf(0.975, 50)
    assert gap.interval == pytest.approx((0.1 - reach, 0.1 + reach))
