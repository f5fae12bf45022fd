from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import scipy.stats

from abstain import ArgumentError, DataError, Items, bootstrap, compare, evaluate, jackknife, paired_delta
from abstain.inference import (
    BootstrapWeights,
    Estimate,
    Intervals,
    at_level,
    function_measure,
    p_value,
    replicates,
)
from abstain.inference._estimate import Drawn, with_draws
from abstain.losses import item_loss
from abstain.metrics import BaseMetric, Columns, MetricScore, measure_metrics, selective
from abstain.metrics.registry import METRICS
from abstain.metrics.scales import Scale

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from abstain.resampling import Statistic
    from abstain.results import EvaluationResult


def some_items(seed: int = 0, clusters: int = 9, size: int = 4) -> Items:
    rng = np.random.default_rng(seed)
    n = clusters * size
    return Items.from_arrays(
        rng.integers(0, 4, n),
        rng.integers(0, 4, n),
        abstained=rng.random(n) < 0.3,
        confidence=rng.integers(0, 5, n),
        cluster=np.repeat(np.arange(clusters) + 100, size),
        item=np.tile(np.arange(size), clusters),
    ).take(rng.permutation(n))


def aurc(items: Items) -> float:
    loss = item_loss(items, "abs").values
    return selective.aurc(loss, items.signals["confidence"].values, abstained=items.abstained)


class TestBootstrapWeights:
    def test_resamples_do_not_depend_on_the_batch_size(self) -> None:
        clusters, resamples = 7, 50
        drawn = np.random.RandomState(5).randint(0, clusters, size=(resamples, clusters))
        expected = np.stack([np.bincount(row, minlength=clusters) for row in drawn])
        for width in (1, 20_000, 10**9):
            batches = [batch.weights for batch in BootstrapWeights(clusters, resamples, 5).batches(width)]
            np.testing.assert_array_equal(np.concatenate(batches), expected)

    def test_every_resample_has_as_many_clusters_as_the_data(self) -> None:
        for batch in BootstrapWeights(11, 300, 1).batches(11):
            assert (batch.weights.sum(axis=1) == 11).all()

    @pytest.mark.parametrize(
        ("resamples", "seed", "message"), [(-1, 0, "resamples"), (1, -1, "seed"), (1, 2**32, "seed")]
    )
    def test_invalid_settings_are_errors(self, resamples: int, seed: int, message: str) -> None:
        with pytest.raises(ArgumentError, match=f"{message} must be"):
            BootstrapWeights(3, resamples, seed)


def percentile(
    value: float, replicated: list[float], *, level: float = 0.95, clusters: int = 3, n: int = 12
) -> Estimate:
    bare = Estimate(value, level=level, n=n, clusters=clusters)
    return with_draws(
        bare, np.array(replicated), BootstrapWeights(clusters, len(replicated), 0), "percentile"
    )


class TestEstimates:
    def test_percentiles_of_the_valid_replicates(self) -> None:
        first = percentile(2.5, [1.0, 2.0, 3.0, 4.0], level=0.5)
        assert (first.low, first.high) == first.percentile == (1.75, 3.25)
        assert first.se == pytest.approx(np.std([1, 2, 3, 4], ddof=1))
        assert first.drop_rate == 0.0
        # With only one valid replicate, the interval is the point itself.
        second = percentile(7.0, [1.0, np.nan, np.nan, np.nan])
        assert (second.low, second.high, second.drop_rate) == (7.0, 7.0, 0.75)
        assert math.isnan(second.se)
        assert (second.n, second.clusters, second.resamples, second.seed) == (12, 3, 4, 0)

    def test_an_undefined_point_has_no_interval(self) -> None:
        found = percentile(math.nan, [1.0, 2.0])
        assert found.interval is None
        assert found.drop_rate == 1.0

    def test_no_resamples_no_interval(self) -> None:
        found = percentile(0.25, [])
        assert found.interval is None
        assert found.method == "none"
        assert str(found) == "0.250"

    def test_the_level_must_be_between_0_and_1(self) -> None:
        with pytest.raises(ArgumentError, match=r"0 < level < 1, got 95; did you mean 0.95\?"):
            Intervals.of(np.arange(3), level=95)

    def test_bca_agrees_with_scipy(self) -> None:
        """Bias correction and acceleration are Efron's, as in scipy."""
        values = np.random.default_rng(5).exponential(size=30)

        def mean(items: Items) -> float:
            return float(items.signals["x"].values.mean())

        items = Items.from_arrays([0] * 30, [0] * 30, signals={"x": values}, cluster=np.arange(30))
        intervals = Intervals.of(np.arange(30), interval="bca", resamples=5000, seed=1)
        measure = function_measure(mean, items, intervals)
        (found,) = intervals.estimates(
            measure.points, intervals.replicate([measure])[measure], [Scale()], n=30
        )
        # The name of the argument for the generator changed with scipy 1.15.
        name = (
            "rng" if [int(part) for part in scipy.__version__.split(".")[:2]] >= [1, 15] else "random_state"
        )
        drawn: dict[str, Any] = {"n_resamples": 20_000, name: np.random.default_rng(2)}
        peer = scipy.stats.bootstrap((values,), np.mean, method="BCa", **drawn).confidence_interval
        assert found.interval == pytest.approx((peer.low, peer.high), abs=0.02)
        assert found.method == "cluster bootstrap, BCa interval"
        assert found.percentile != found.interval

    def test_replicates_that_equal_the_value_within_rounding_count_half(self) -> None:
        """The value is 0.3, and 0.1 + 0.2 is above it in the last digit: half of the replicates are below it."""
        values = np.array([0.2, 0.1 + 0.2, 0.3, 0.4])
        assert Drawn.corrected(values, 0.3, values).bias == 0.0
        assert Drawn(values).p_value(0.3) == 1.0

    def test_the_bootstrap_p_value_agrees_with_the_interval(self) -> None:
        drawn = np.random.default_rng(0).normal(0.1, 0.05, 4000)
        for kind in ("percentile", "bca"):
            found = with_draws(
                Estimate(0.1, clusters=20),
                drawn,
                BootstrapWeights(20, 4000, 0),
                kind,
                np.linspace(0.05, 0.16, 20),
            )
            p = p_value(found)
            assert at_level(found, 1.0 - p + 0.004).low < 0.0 < at_level(found, 1.0 - p - 0.004).low
            assert 0.02 < p < 0.08


def median(items: Items) -> float:
    return float(np.median(items.prediction))


class MedianPrediction(BaseMetric):
    name = "median_prediction"
    direction = "lower"

    def compute(self, results: list[EvaluationResult]) -> MetricScore:
        return MetricScore(self.name, float(np.median([result.prediction for result in results])))


class TestCustomMetrics:
    def test_a_function_of_items_has_the_same_resamples_as_the_built_in_metric(self) -> None:
        items = some_items()
        mine = bootstrap(aurc, items, resamples=200, seed=3)
        built_in = evaluate(items, loss="abs", interval="percentile", resamples=200, seed=3)[
            "confidence"
        ].aurc
        assert mine.value == pytest.approx(built_in.value, abs=1e-12)
        assert mine.interval == pytest.approx(built_in.interval, abs=1e-12)
        assert mine.se == pytest.approx(built_in.se, abs=1e-12)

    def test_difference_of_two(self) -> None:
        left, right = some_items(1), some_items(2)
        found = paired_delta(aurc, left, right, resamples=150, seed=9, truth_may_differ=True)
        assert found.value == pytest.approx(aurc(right) - aurc(left))
        draws = BootstrapWeights(9, 150, 9)
        values = replicates([function_measure(aurc, left), function_measure(aurc, right)], draws)
        expected = np.percentile(values[1] - values[0], [2.5, 97.5])
        assert found.percentile == pytest.approx(tuple(expected))

    def test_items_are_matched_by_name(self) -> None:
        left, right = some_items(1), some_items(2)
        options: dict[str, Any] = {"resamples": 0, "truth_may_differ": True}
        straight = paired_delta(aurc, left, right, **options)
        mixed = paired_delta(
            aurc, left, right.take(np.random.default_rng(3).permutation(len(right))), **options
        )
        assert straight == mixed
        fewer = right.take(right.cluster != 103)
        with pytest.raises(DataError, match="do not have the same items"):
            paired_delta(aurc, left, fewer, **options)
        both = paired_delta(aurc, left.take(left.cluster != 103), fewer, **options)
        assert paired_delta(aurc, left, fewer, intersection_only=True, **options) == both
        bare = Items.from_arrays([1, 0], [1, 1], confidence=[1, 2])
        with pytest.raises(DataError, match="rows are not matched by their order unless you request it"):
            paired_delta(aurc, bare, bare)
        assert paired_delta(aurc, bare, bare, match_by="rows", resamples=0).value == 0.0

    def test_a_custom_mean_has_the_interval_of_the_built_in_metric(self) -> None:
        items = some_items()
        found = jackknife(aurc, items)
        built_in = evaluate(items, loss="abs")["confidence"].aurc
        assert found.se == pytest.approx(built_in.se, abs=1e-12)
        assert found.method.startswith("jackknife over 9 clusters")

    def test_a_median_has_the_spread_of_random_halves(self) -> None:
        """Without any of 9 zeros, 2 ones and 9 twos, the median is still 1, but in halves of these rows it varies.

        A half has ``zeros`` and ``twos`` with the multivariate hypergeometric probability, and its median is the mean
        of its fifth and sixth row.
        """
        items = Items.from_arrays([0] * 20, [0] * 9 + [1, 1] + [2] * 9, cluster=np.arange(20))
        squares = 0.0
        for zeros, twos in itertools.product(range(10), repeat=2):
            ones = 10 - zeros - twos
            if 0 <= ones <= 2:
                half = [0] * zeros + [1] * ones + [2] * twos
                ways = math.comb(9, zeros) * math.comb(2, ones) * math.comb(9, twos)
                squares += ways / math.comb(20, 10) * ((half[4] + half[5]) / 2 - 1) ** 2
        found = jackknife(median, items)
        assert found.value == 1.0
        assert found.se == pytest.approx(math.sqrt(squares), rel=0.15)
        assert found.method == "random halves of 20 clusters, t distribution"
        limited = jackknife(median, items, low=0.0, high=2.0)
        assert limited.method == "random halves of 20 clusters, t distribution, Wilson's score interval"
        assert 0.0 < limited.low < limited.high < 2.0

    def test_medians_that_agree_without_every_cluster_are_not_certainly_different(self) -> None:
        """Without any single row, the medians are still 0 and 1. In halves of the rows, they often are the same."""
        left = Items.from_arrays([0] * 21, [0] * 12 + [1] * 9, cluster=np.arange(21))
        right = Items.from_arrays([0] * 21, [0] * 9 + [1] * 12, cluster=np.arange(21))
        found = paired_delta(median, left, right, match_by="rows")
        assert found.value == 1.0
        assert found.method == "random halves of 21 clusters, t distribution"
        assert found.low < 0.0

    def test_metric_objects_and_functions_have_the_same_intervals(self) -> None:
        options: dict[str, Any] = {"cluster": np.arange(20), "item": np.arange(20)}
        left = Items.from_arrays([0] * 20, [0] * 9 + [1, 1] + [2] * 9, **options)
        right = Items.from_arrays([0] * 20, [2] * 9 + [1, 1] + [0] * 9, **options)
        result = compare({"left": left, "right": right}, metrics=[MedianPrediction])
        for name, items in (("left", left), ("right", right)):
            found = result.systems[name].estimate("median_prediction")
            assert found.interval == pytest.approx(jackknife(median, items).interval)
            assert found.method == "random halves of 20 clusters, t distribution"
        difference = result.difference("left", "right", "median_prediction")
        assert difference.estimate.interval == pytest.approx(paired_delta(median, left, right).interval)
        assert difference.estimate.se > 0.5
        assert difference.verdict == "inconclusive"

    def test_the_bootstrap_does_not_need_halves(self) -> None:
        items = Items.from_arrays([0] * 20, [0, 1] * 10, cluster=np.arange(20))
        found = paired_delta(median, items, items, match_by="rows", interval="percentile", resamples=50)
        assert found.method == "cluster bootstrap, percentile interval"

    def test_a_metric_that_is_sometimes_undefined_drops_those_resamples(self) -> None:
        items = Items.from_arrays([1, 1, 1], [1, 0, 0], abstained=[0, 1, 1])

        def accuracy(items: Items) -> float | None:
            return (
                float((items.truth == items.prediction)[items.answered].mean())
                if items.answered.any()
                else None
            )

        found = bootstrap(accuracy, items, resamples=400)
        assert found.value == 1.0
        assert 0.2 < found.drop_rate < 0.4

    def test_without_evaluated_items_there_is_an_error(self) -> None:
        items = Items.from_arrays([1], [1], failed=[True])
        with pytest.raises(DataError, match="no item to evaluate"):
            bootstrap(aurc, items)

    def test_sides_without_a_common_item_are_an_error(self) -> None:
        left = Items.from_arrays([1], [1], cluster=["a"])
        right = Items.from_arrays([1], [1], cluster=["b"])
        with pytest.raises(DataError, match="no item in common"):
            paired_delta(aurc, left, right, intersection_only=True)


def test_one_cluster_has_no_jackknife_interval() -> None:
    items = Items.from_arrays([0, 1, 2], [0, 2, 2], confidence=[3, 2, 1], cluster=[1, 1, 1])
    jackknife = evaluate(items, loss="abs")["confidence"].aurc
    assert jackknife.interval is None
    assert jackknife.reason == "there is only one cluster, so there is no confidence interval"
    found = evaluate(items, loss="abs", interval="percentile", resamples=50)["confidence"].aurc
    assert found.low == found.high == pytest.approx(found.value)
    assert found.se == pytest.approx(0.0, abs=1e-15)


def aurc_measure(
    loss: NDArray[np.float64], confidence: NDArray[np.float64], cluster: NDArray[np.intp]
) -> Statistic:
    units = int(cluster.max()) + 1
    columns = Columns.of(len(loss), loss=loss, confidence=confidence, cluster=cluster, units=units)
    return measure_metrics(columns, [METRICS["aurc"]])


def test_statistics_of_different_clusters_cannot_be_evaluated_together() -> None:
    measures = [aurc_measure(np.ones(n), np.ones(n), np.arange(n)) for n in (2, 3)]
    with pytest.raises(DataError, match="same clusters"):
        replicates(measures, BootstrapWeights(2, 5, 0))


def test_progress_counts_every_resample_once() -> None:
    seen: list[int] = []
    measure = function_measure(aurc, some_items())
    replicates([measure], BootstrapWeights(9, 123, 0), seen.append)
    assert sum(seen) == 123


def test_the_point_estimate_has_weights_of_one() -> None:
    items = some_items()
    assert function_measure(aurc, items).point == pytest.approx(aurc(items))


class TestEstimate:
    def test_str_shows_the_number_with_its_interval(self) -> None:
        assert str(Estimate(0.1342, 0.0941, 0.1759)) == "0.134 [0.094, 0.176]"
        assert f"{Estimate(1.0, 0.5, 2.0):.1f}" == "1.0 [0.5, 2.0]"
        assert float(Estimate(0.5)) == 0.5

    def test_str_of_an_undefined_estimate_shows_the_reason(self) -> None:
        assert str(Estimate(math.nan, reason="no item was answered")) == "undefined (no item was answered)"
        assert not Estimate(math.nan).defined


@pytest.mark.slow
def test_intervals_cover_and_ignoring_clusters_does_not() -> None:
    """The 95% interval contains the true AURC in about 95% of simulated data sets with 40 clusters of 8 items.

    Items of a cluster have a common random shift of their error rate. The true AURC is the average over very many
    clusters. If every item is treated as its own cluster, the intervals are too narrow.
    """
    clusters, size, worlds = 40, 8, 600

    def world(rng: np.random.Generator, count: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        shift = np.repeat(rng.normal(scale=2.0, size=count), size)
        confidence = rng.random(count * size)
        chance = 1 / (1 + np.exp(-(shift + 0.5 - 2.5 * confidence)))
        return (rng.random(count * size) < chance).astype(float), confidence

    rng = np.random.default_rng(2024)
    truth = selective.aurc(*world(rng, 60_000))
    inside = {"clustered": 0, "single": 0}
    for number in range(worlds):
        loss, confidence = world(rng, clusters)
        for kind in inside:
            cluster = (
                np.repeat(np.arange(clusters), size) if kind == "clustered" else np.arange(clusters * size)
            )
            measure = aurc_measure(loss, confidence, cluster)
            intervals = Intervals.of(
                np.arange(measure.units), interval="percentile", resamples=400, seed=number
            )
            replicated = intervals.replicate([measure])[measure]
            (found,) = intervals.estimates(measure.points, replicated, [Scale()], n=len(loss))
            inside[kind] += found.low <= truth <= found.high
    assert 0.92 <= inside["clustered"] / worlds <= 0.97
    assert inside["single"] / worlds < 0.85
