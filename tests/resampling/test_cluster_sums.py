"""Cluster sums by hand, in dense and sparse form, and the statistics that are computed from them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from abstain.resampling import (
    ClusterSums,
    RunningSums,
    Statistic,
    WeightBatch,
    _cluster_sums,
    keys_ascending,
    keys_descending,
    prefix_mean_sum,
    total_by,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

KEPT = pytest.mark.parametrize("kept", ["dense", "sparse"], indirect=True)


@pytest.fixture
def kept(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Force the table to be dense or sparse, and return which."""
    if request.param == "sparse":
        monkeypatch.setattr(_cluster_sums, "_DENSE_LIMIT", -1)
    else:
        monkeypatch.setattr(_cluster_sums, "_DENSE_FACTOR", 1 << 40)
    return str(request.param)


def by_hand(
    rows: list[tuple[int, int, float, float]], weights: list[float], keys: int
) -> tuple[list[float], list[float]]:
    """Return counts and sums by key, computed in a loop."""
    count, total = [0.0] * keys, [0.0] * keys
    for unit, key, value, weight in rows:
        count[key] += weights[unit] * weight
        total[key] += weights[unit] * weight * value
    return count, total


@KEPT
def test_sums_by_key_and_running_sums_by_hand(kept: str) -> None:
    # Three units, three keys; the pair (unit 2, key 1) does not occur, and key 2 has a single row.
    sums_by_key = ClusterSums.of_rows(
        unit=[0, 1, 1, 2, 0, 2],
        key=[0, 0, 1, 0, 1, 2],
        columns=[[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [1.0] * 6],
        units=3,
        keys=3,
    )
    assert sums_by_key._dense == (kept == "dense")
    weights = np.array([[1.0, 1.0, 1.0], [2.0, 0.0, 3.0]])
    counts = [[3.0, 2.0, 1.0], [5.0, 2.0, 3.0]]
    sums = [[7.0, 8.0, 6.0], [14.0, 10.0, 18.0]]
    assert sums_by_key.evaluate(weights).tolist() == [counts, sums, counts]
    running = [[0.0, 7.0, 15.0, 21.0], [0.0, 14.0, 24.0, 42.0]]
    assert sums_by_key.run(weights)[1].tolist() == running
    assert sums_by_key.run(weights)[0].tolist() == [[0.0, 3.0, 5.0, 6.0], [0.0, 5.0, 7.0, 10.0]]


def test_units_are_cut_at_a_count_by_hand() -> None:
    # Counts and losses by key. Unit 0: (1, 1), (1, 5). Unit 1: (1, 2), (1, 3). Unit 2: (1, 4), none, (1, 6).
    sums = ClusterSums.of_rows(
        unit=[0, 1, 1, 2, 0, 2],
        key=[0, 0, 1, 0, 1, 2],
        columns=[[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]],
        units=3,
        keys=3,
    )
    # A cut key counts proportionally, and a target beyond the last key gives the sums of all keys.
    assert sums.cut_units(np.array([1.5, 2.0, 3.0])).tolist() == [[1.5, 2.0, 2.0], [3.5, 5.0, 10.0]]
    # Without unit 0, the first key has two rows and a loss of 6.
    others = sums.cut_units(np.array([1.5, 2.0, 4.0]), others=True)
    assert others.tolist() == [[1.5, 2.0, 4.0], [4.5, 5.0, 11.0]]
    assert sums.cut_units(np.zeros(3)).tolist() == [[0.0] * 3, [0.0] * 3]


@pytest.mark.parametrize("others", [False, True])
@pytest.mark.parametrize("whole", [False, True])
def test_cut_units_agree_with_interpolated_running_sums(*, whole: bool, others: bool) -> None:
    rng = np.random.default_rng(11)
    rows, units, keys = 200, 12, 30
    sums = ClusterSums.of_rows(
        unit=rng.integers(0, units - 1, rows),  # the last unit has no rows
        key=rng.integers(0, keys, rows),
        columns=[rng.random(rows)],
        units=units,
        keys=keys,
        weight=rng.integers(0, 3, rows).astype(float) if whole else rng.random(rows),
    )
    weights = 1.0 - np.eye(units) if others else np.eye(units)
    count, loss = sums.run(weights)
    for part in (0.0, 0.3, 1.0, 1.2):
        target = part * count[:, -1]
        expected = [np.interp(*each) for each in zip(target, count, loss, strict=True)]
        cut = sums.cut_units(target, others=others)
        assert cut[0] == pytest.approx(np.minimum(target, count[:, -1]), abs=1e-12)
        assert cut[1] == pytest.approx(expected, abs=1e-12)


rows_of = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 4), st.integers(-4, 4), st.integers(0, 3)), max_size=20
)


@settings(deadline=None, max_examples=80)
@given(rows_of, st.lists(st.integers(0, 3), min_size=4, max_size=4), st.randoms(use_true_random=False))
def test_dense_sparse_copied_and_shuffled_rows_agree_with_a_loop(
    rows: list[tuple[int, int, int, int]], weights: list[int], random: Any
) -> None:
    weighted = np.array([weights], dtype=float)
    expected = by_hand([tuple(row) for row in rows], [float(weight) for weight in weights], 5)  # type: ignore[misc]
    shuffled = random.sample(rows, len(rows))
    copied = [(unit, key, value, 1) for unit, key, value, times in rows for _ in range(times)]
    for limit in (1 << 23, -1):
        for chosen in (rows, shuffled, copied):
            with pytest.MonkeyPatch.context() as patched:
                patched.setattr(_cluster_sums, "_DENSE_LIMIT", limit)
                unit, key, value, weight = (np.array([row[index] for row in chosen]) for index in range(4))
                sums_by_key = ClusterSums.of_rows(
                    unit=unit.astype(np.intp),
                    key=key.astype(np.intp),
                    columns=[value.astype(float)],
                    units=4,
                    keys=5,
                    weight=weight.astype(float),
                )
                assert sums_by_key.evaluate(weighted)[:, 0].tolist() == list(expected)
                running = np.cumsum(np.array(expected), axis=1)
                assert sums_by_key.run(weighted)[:, 0, 1:].tolist() == running.tolist()


@pytest.mark.parametrize("units", [1, 3])
@pytest.mark.parametrize("keys", [0, 4])
def test_the_sums_of_no_rows_are_zero(units: int, keys: int) -> None:
    sums_by_key = ClusterSums.of_rows(
        unit=np.empty(0, np.intp), key=np.empty(0, np.intp), columns=[np.empty(0)], units=units, keys=keys
    )
    weights = np.ones((2, units))
    assert sums_by_key.evaluate(weights).shape == (2, 2, keys)
    assert not sums_by_key.evaluate(weights).any()
    assert sums_by_key.run(weights).shape == (2, 2, keys + 1)
    assert not sums_by_key.run(weights).any()
    assert sums_by_key.width >= units


def test_the_sums_of_a_single_unit_are_scaled_by_the_weight() -> None:
    sums_by_key = ClusterSums.of_rows(
        unit=[0, 0, 0], key=[1, 0, 1], columns=[[0.5, 1.0, 2.0]], units=1, keys=2
    )
    assert sums_by_key.evaluate(np.array([[1.0], [3.0]])).tolist() == [
        [[1.0, 2.0], [3.0, 6.0]],
        [[1.0, 2.5], [3.0, 7.5]],
    ]
    assert sums_by_key.run(np.array([[2.0]])).tolist() == [[[0.0, 2.0, 6.0]], [[0.0, 2.0, 7.0]]]


@KEPT
def test_a_unit_without_a_row_changes_nothing(kept: str) -> None:
    few = ClusterSums.of_rows(unit=[0, 1], key=[0, 1], columns=[[1.0, 2.0]], units=2, keys=2)
    more = ClusterSums.of_rows(unit=[0, 2], key=[0, 1], columns=[[1.0, 2.0]], units=4, keys=2)
    assert more._dense == (kept == "dense")
    assert (
        few.evaluate(np.array([[2.0, 3.0]])).tolist()
        == more.evaluate(np.array([[2.0, 9.0, 3.0, 9.0]])).tolist()
    )


def test_a_large_table_is_not_dense() -> None:
    units = keys = 5000
    rows = np.arange(units)
    sums_by_key = ClusterSums.of_rows(
        unit=rows, key=rows[::-1].copy(), columns=[rows.astype(float)], units=units, keys=keys
    )
    assert not sums_by_key._dense
    weights = np.random.default_rng(0).integers(0, 3, (2, units)).astype(float)
    assert sums_by_key.evaluate(weights)[1].tolist() == (weights * rows)[:, ::-1].tolist()
    assert sums_by_key.run(weights)[1, :, -1].tolist() == (weights @ rows).tolist()


def test_keys_number_distinct_values_in_order() -> None:
    values = np.array([0.5, 0.1, 0.5, 0.9])
    key, distinct = keys_ascending(values)
    assert (key.tolist(), distinct.tolist()) == ([1, 0, 1, 2], [0.1, 0.5, 0.9])
    key, distinct = keys_descending(values)
    assert (key.tolist(), distinct.tolist()) == ([1, 2, 1, 0], [0.9, 0.5, 0.1])
    assert total_by(np.array([1, 1]), None, 3).tolist() == [0.0, 2.0, 0.0]


class TestMeasure:
    """Two rows in two units: counts 1 and 1, sums 2 and 4."""

    measure = Statistic.of_sums(
        ("mean", "sum"), [[2.0, 4.0]], unit=[0, 1], units=2, compute=lambda n, total: [total / n, total]
    )

    def test_by_hand(self) -> None:
        assert self.measure.points.tolist() == [3.0, 6.0]
        assert self.measure.point == 3.0
        assert self.measure(np.array([[3.0, 1.0], [0.0, 2.0]])).tolist() == [[2.5, 10.0], [4.0, 8.0]]

    def test_row_weights_are_repetitions(self) -> None:
        weighted = Statistic.of_sums(
            ("mean",),
            [[2.0, 4.0]],
            unit=[0, 1],
            units=2,
            compute=lambda n, total: [total / n],
            weight=np.array([3.0, 1.0]),
        )
        assert weighted.point == 2.5

    def test_undefined(self) -> None:
        nothing = Statistic.undefined(("a", "b"), 2)
        assert nothing.names == ("a", "b")
        assert np.isnan(nothing(np.ones((3, 2)))).tolist() == [[True, True]] * 3

    def test_joined_statistics_keep_their_order_or_have_another_one(self) -> None:
        nothing = Statistic.undefined(("none",), 2)
        side_by_side = Statistic.joined([self.measure, nothing])
        assert side_by_side.names == ("mean", "sum", "none")
        assert side_by_side.points[:2].tolist() == [3.0, 6.0]
        assert np.isnan(side_by_side.points[2])
        reordered = Statistic.joined([self.measure, nothing], [1, 2, 0])
        assert reordered.names == ("sum", "none", "mean")
        assert reordered.points[[0, 2]].tolist() == [6.0, 3.0]
        assert Statistic.joined([self.measure]) is self.measure
        assert side_by_side.width == self.measure.width

    def test_only_some_columns(self) -> None:
        assert self.measure.only(1).names == ("sum",)
        assert self.measure.only(-1).points.tolist() == [6.0]
        assert self.measure.only(1, 0).points.tolist() == [6.0, 3.0]


def test_a_batch_computes_shared_results_only_once() -> None:
    done: list[str] = []

    def work() -> NDArray[np.float64]:
        done.append("work")
        return np.ones(2)

    batch = WeightBatch(np.ones((2, 3)))
    assert len(batch) == 2
    first, second = batch.compute_once("key", work), batch.compute_once("key", work)
    assert first is second
    assert done == ["work"]
    batch.compute_once("other", work)
    WeightBatch(batch.weights).compute_once("key", work)
    assert done == ["work"] * 3


def test_a_statistic_takes_a_batch_or_an_array() -> None:
    measure = TestMeasure.measure
    batch = WeightBatch(np.array([[1.0, 0.0]]))
    assert measure(batch).tolist() == measure(batch.weights).tolist() == [[2.0, 2.0]]


def test_rounding_never_makes_a_proportion_exceed_one() -> None:
    rng = np.random.default_rng(0)
    for rows in range(1, 300):
        weight, hit = rng.random(rows), rng.random(rows) < 0.9
        for column in (np.ones(rows, np.bool_), hit):
            count, total = ClusterSums.of_rows(
                unit=np.zeros(rows, np.intp),
                key=np.zeros(rows, np.intp),
                columns=[column],
                units=1,
                keys=1,
                weight=weight,
            ).sums[:, 0]
            assert total == count if column.all() else total <= count


def test_subtracting_excluded_units_equals_summing_all_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """The running sums are the same as those of gathered cells, exactly the same for whole numbers."""
    monkeypatch.setattr(_cluster_sums, "_DENSE_LIMIT", -1)
    rng = np.random.default_rng(4)
    unit, key = rng.integers(0, 40, 3000), rng.integers(0, 500, 3000)
    sums_by_key = ClusterSums.of_rows(
        unit=unit, key=key, columns=[rng.integers(0, 2, 3000).astype(float)], units=40, keys=500
    )
    weights = np.ones((6, 40))
    weights[1, 7] = weights[2, [0, 39]] = weights[3, :30] = 0.0
    weights[4] = rng.integers(0, 3, 40)
    np.testing.assert_array_equal(sums_by_key.run(weights), sums_by_key._run_of_cells(weights))
    halves = ClusterSums.of_rows(
        unit=unit, key=key, columns=[rng.random(3000)], units=40, keys=500, weight=np.full(3000, 0.5)
    )
    np.testing.assert_allclose(halves.run(weights), halves._run_of_cells(weights), atol=1e-12)


def test_a_rank_without_weight_has_no_effect_despite_a_rounding_error_in_its_loss() -> None:
    run = RunningSums(np.array([[0.0, 2.0, 2.0, 3.0]]), np.array([[0.0, 0.3, 0.30000000000000004, 1.3]]))
    without = RunningSums(np.array([[0.0, 2.0, 3.0]]), np.array([[0.0, 0.3, 1.3]]))
    assert prefix_mean_sum(run) == pytest.approx(prefix_mean_sum(without), rel=1e-12)
