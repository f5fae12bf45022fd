"""The compiled kernel agrees with its numpy twin at every processor level, and faulty libraries are refused.

The library is the installed one if it was built from the present source, otherwise it is compiled here. Without a
compiler there is no kernel to test, only its twin.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import threading
from fractions import Fraction
from functools import cache
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import build_kernel
from abstain.errors import ArgumentError
from abstain.inference import BootstrapWeights, JackknifeWeights, replicates, set_threads
from abstain.metrics import Columns, measure_metrics
from abstain.metrics._specification import CONVENTIONS
from abstain.metrics.registry import BUNDLES, METRICS
from abstain.resampling import (
    HARMONIC,
    LOGARITHM,
    ClusterSums,
    CurveRequest,
    RandomStream,
    WeightBatch,
    _kernel,
    integrate_curve,
)
from abstain.resampling._kernel import Kernel, find, use_kernel

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from abstain.resampling import CurveSums

    Floats = NDArray[np.float64]

NUMPY = Kernel()
DAMAGED = "{} is damaged or built for another machine; reinstall abstain"
GRID = [METRICS["risk_at_coverage"].at(coverage) for coverage in (0.05, 0.3, 0.5, 0.9, 1.0)]
SELECTIVE = [*(METRICS[name] for name in BUNDLES["selective"]), *GRID, METRICS["coverage_at_risk"].at(0.3)]


@cache
def built() -> tuple[bytes, bytes] | None:
    """Return the library of the present source and its seal; None without a compiler."""
    if find(build_kernel.LIBRARY).library is not None:
        return build_kernel.LIBRARY.read_bytes(), build_kernel.seal_of(build_kernel.LIBRARY).read_bytes()
    with TemporaryDirectory() as folder:
        try:
            library = build_kernel.build(Path(folder) / build_kernel.LIBRARY.name)
        except build_kernel.CompilerError:
            return None
        return library.read_bytes(), build_kernel.seal_of(library).read_bytes()


def put(path: Path) -> Path:
    """Write the library to a file, and its seal next to it."""
    content = built()
    assert content is not None
    for target, part in zip((path, build_kernel.seal_of(path)), content, strict=True):
        target.write_bytes(part)
    return path


@cache
def compiled() -> tuple[Kernel, ...]:
    """Return the kernel at each level, lowest first."""
    if built() is None:
        return ()
    with TemporaryDirectory() as folder:  # a library that is loaded needs no file
        actual = find(put(Path(folder) / build_kernel.LIBRARY.name))
    assert actual.library is not None, actual.reason
    return tuple(Kernel(actual.library.at_level(level)) for level in actual.library.levels)


def random_sums(seed: int, *, rows: int, units: int, keys: int, whole: bool = True) -> ClusterSums:
    rng = np.random.default_rng(seed)
    weight = None if whole else rng.random(rows) + 0.25
    return ClusterSums.of_rows(
        unit=rng.integers(0, units, rows),
        key=np.sort(rng.integers(0, keys, rows)),
        columns=[rng.integers(0, 4, rows).astype(float) if seed % 2 else rng.random(rows)],
        units=units,
        keys=keys,
        weight=weight,
    )


def requested_parts(curve_sums: CurveSums, requested: CurveRequest) -> dict[str, Floats]:
    """Return the requested quantities by name."""
    parts = {
        name: getattr(curve_sums, name)
        for name in ("count", "loss", "first_count", "first_loss", "loss_area")
    }
    if requested.risk:
        parts["risk_area"] = curve_sums.risk_area
    if requested.hull:
        parts["hull_area"] = curve_sums.hull_area
    parts |= curve_sums.prefix_means
    parts |= {f"within {bound}": count for bound, count in curve_sums.within.items()}
    for index, crossing in enumerate(curve_sums.crossings):
        names = crossing.__slots__ if requested.areas_at[index] else ("count_at", "loss_at")
        parts |= {f"{name} {index}": getattr(crossing, name) for name in names}
    return parts


def close(actual: Any, expected: Any, **named: Any) -> None:
    np.testing.assert_allclose(actual, expected, rtol=1e-12, atol=1e-12, **named)


@settings(deadline=None, max_examples=60)
@given(
    st.integers(0, 10_000),
    st.integers(0, 300),
    st.integers(1, 30),
    st.integers(1, 150),
    st.integers(1, 20),
    st.sampled_from(["multiplicities", "left out", "fractions", "large"]),
    st.booleans(),
)
def test_integration_agrees_with_numpy(
    seed: int, rows: int, units: int, keys: int, vectors: int, kind: str, whole: bool
) -> None:
    cluster_sums = random_sums(seed, rows=rows, units=units, keys=keys, whole=whole)
    rng = np.random.default_rng(seed + 1)
    weights: Floats = {
        "multiplicities": rng.multinomial(units, np.full(units, 1.0 / units), vectors).astype(float),
        "left out": (rng.random((vectors, units)) > 0.1).astype(float),
        "fractions": rng.random((vectors, units)),
        "large": rng.integers(0, 5000, (vectors, units)).astype(float),
    }[kind]
    total = weights.sum(axis=1) * max(rows, 1) / units
    targets = np.array([0.1, 0.25, 0.5, 0.8, 1.1])[:, None] * total
    requested = CurveRequest(
        risk=True,
        hull=True,
        growth=(HARMONIC, LOGARITHM),
        bounds=(0.3, 1.0),
        areas_at=(False, True, False, True, True),
    )
    with use_kernel(NUMPY):
        expected = requested_parts(
            integrate_curve(cluster_sums, WeightBatch(weights), requested, targets), requested
        )
    for kernel in compiled():
        with use_kernel(kernel):
            for quick in (False, True):
                batch = WeightBatch.of_lanes(WeightBatch(weights).lanes, vectors, quick=quick)
                actual = requested_parts(integrate_curve(cluster_sums, batch, requested, targets), requested)
                for name, values in expected.items():
                    close(actual[name], values, err_msg=name)


@pytest.mark.parametrize("rows", [1, 6])
def test_a_target_just_above_a_count_is_not_reached_by_it(rows: int) -> None:
    """With every kernel, a count reaches itself but not the next larger floating-point number."""
    cluster_sums = random_sums(0, rows=50, units=3, keys=4)
    weights = np.random.default_rng(1).multinomial(3, np.full(3, 1 / 3), rows).astype(float)
    count = cluster_sums.run(weights)[0]
    targets = np.stack([count[:, 2], np.nextafter(count[:, 2], np.inf), np.nextafter(count[:, 4], np.inf)])
    for kernel in (NUMPY, *compiled()):
        with use_kernel(kernel):
            at, above, beyond = integrate_curve(
                cluster_sums, WeightBatch(weights), CurveRequest(areas_at=(False,) * 3), targets
            ).crossings
        assert at.count_at.tolist() == count[:, 2].tolist()
        assert above.count_at.tolist() == count[:, 3].tolist()
        assert np.isnan(beyond.count_at).all()


@pytest.mark.parametrize("cells", [1, 3])
@pytest.mark.parametrize("signal", [0.0, 0.4])
def test_hulls_of_many_ranks_agree_with_numpy(cells: int, signal: float) -> None:
    """With more than a few thousand ranks, a coarse hull excludes most of them."""
    rng = np.random.default_rng(cells)
    ranks, units = 5000, 2000
    key = np.repeat(np.arange(ranks), cells)
    wrong = (rng.random(len(key)) < 0.3 + signal * key / ranks).astype(float)
    unit = rng.integers(0, units, len(key))
    cluster_sums = ClusterSums.of_rows(unit=unit, key=key, columns=[wrong], units=units, keys=ranks)
    drawn = rng.multinomial(units, np.full(units, 1.0 / units), 20).astype(float)
    drawn[3, unit[: cells * 3000]] = 0.0  # the first ranks have no weight
    drawn[4] = 0.0
    for weights in (drawn, drawn / 3.0):
        with use_kernel(NUMPY):
            expected = integrate_curve(
                cluster_sums, WeightBatch(weights), CurveRequest(risk=True, hull=True)
            ).hull_area
        for kernel in compiled():
            with use_kernel(kernel):
                batch = WeightBatch.of_lanes(WeightBatch(weights).lanes, 20, quick=True)
                close(
                    integrate_curve(cluster_sums, batch, CurveRequest(risk=True, hull=True)).hull_area,
                    expected,
                )


def test_the_results_do_not_depend_on_the_number_of_lanes() -> None:
    """From as many lanes as a cache line has bytes to as few as fit into a register."""
    rng = np.random.default_rng(8)
    cluster_sums = random_sums(3, rows=700, units=90, keys=300)
    weights = rng.multinomial(90, np.full(90, 1.0 / 90), 70).astype(np.uint8)
    requested = CurveRequest(risk=True, hull=True, growth=(HARMONIC,), bounds=(0.5,), areas_at=(True, False))
    targets = np.array([[100.0], [400.0]]) * np.ones(70)
    for kernel in compiled():
        with use_kernel(kernel):
            actual = []
            for width in (8, 16, 32, 64):
                batch = in_lanes(weights, width)
                parts = requested_parts(integrate_curve(cluster_sums, batch, requested, targets), requested)
                actual.append([*parts.values(), *cluster_sums.evaluate(batch)])
            for others in actual[1:]:
                for one, other in zip(others, actual[0], strict=True):
                    np.testing.assert_array_equal(one, other)


def long_ranking(kind: str) -> tuple[ClusterSums, NDArray[np.uint8]]:
    """Return a ranking of 30,000 or 160,000 rows with losses from 0 to 7, and multiplicities."""
    rng = np.random.default_rng(12)
    rows, vectors = (160_000, 18) if kind == "further" else (30_000, 70)
    units = 3000 if kind == "clusters" else rows
    loss = rng.integers(0, 8 if kind == "grades" else 2, rows)
    if kind == "rare":
        loss[:] = 0
        loss[[9, 15_000, 15_001, 22_000, -3]] = 1
    if kind == "all wrong":
        loss[:] = 7
    unit = rng.permutation(rows) % units
    cluster_sums = ClusterSums.of_rows(
        unit=unit, key=np.arange(rows), columns=[loss.astype(float)], units=units, keys=rows
    )
    weights = rng.multinomial(units, np.full(units, 1.0 / units), vectors)
    if (
        kind == "further"
    ):  # counts so large that fewer powers are enough, in some lanes earlier than in others
        weights[:6] = rng.multinomial(2 * units, np.full(units, 1.0 / units), 6)
        weights[2, unit[155_000:155_016]] = (0, 5) * 8
        weights[3, unit[155_000:155_016]] = 3
        weights[4, unit[:120_000]] = 0
        weights[5] = 44 * (np.arange(units) % 45 == 0)  # one more than the largest count of a stretch
    if kind == "lumps":  # a few clusters are most of a resample, or the resample is empty
        weights[3] = 255 * (rng.random(units) < 0.01)
        weights[4] = 0
        weights[5, unit[:20_000]] = 0
        weights[6] = 44 * (np.arange(units) % 45 == 0)
        weights[7, unit[25_000:25_016]] = (0, 40) * 8
    return cluster_sums, weights.astype(np.uint8)


def in_lanes(weights: NDArray[np.uint8], width: int) -> WeightBatch:
    """Return multiplicities in groups of `width` lanes, for which faster sums are allowed."""
    vectors, units = weights.shape
    groups = -(-vectors // width)
    padded = np.zeros((groups * width, units), np.uint8)
    padded[:vectors] = weights
    lanes = np.ascontiguousarray(padded.reshape(groups, width, units).transpose(0, 2, 1))
    return WeightBatch.of_lanes(lanes, vectors, quick=True)


@pytest.mark.parametrize(
    "kind",
    [
        *("right or wrong", "grades", "rare", "all wrong", "clusters", "lumps"),
        pytest.param("further", marks=pytest.mark.slow),
    ],
)
def test_areas_summed_over_stretches_agree_with_numpy(kind: str) -> None:
    """The relative error is at most 2e-13, and the results do not depend on the level or the width."""
    cluster_sums, weights = long_ranking(kind)
    requested = CurveRequest(risk=True, areas_at=(False, True, False, True))
    proportions = np.array([0.05, 0.5, 0.77, 0.9])[:, None]
    targets = proportions * (weights.sum(axis=1) * (cluster_sums.keys / weights.shape[1]))
    with use_kernel(NUMPY):
        expected = requested_parts(
            integrate_curve(cluster_sums, WeightBatch(weights.astype(float)), requested, targets), requested
        )
    actual = []
    for kernel in compiled():
        with use_kernel(kernel):
            exact = integrate_curve(
                cluster_sums, WeightBatch(weights.astype(float)), requested, targets
            ).risk_area
            for width in (8, 16, 32, 64):
                parts = requested_parts(
                    integrate_curve(cluster_sums, in_lanes(weights, width), requested, targets), requested
                )
                actual.append(parts)
                for name, values in parts.items():
                    np.testing.assert_allclose(values, expected[name], rtol=2.5e-13, err_msg=name)
                    np.testing.assert_array_equal(values, actual[0][name], err_msg=name)
        # The areas differ from sums over single ranks, which shows that stretches were used.
        assert np.any(actual[-1]["risk_area"] != exact)


@pytest.mark.parametrize(
    ("before", "each", "most"), [(12_288, 1, 5e-14), (147_456, 1, 5e-14), (147_456, 2, 1.3e-13)]
)
def test_the_truncated_series_has_the_documented_error(before: int, each: int, most: float) -> None:
    """The error is largest at the first use of a series. Only its ranks have a loss here, so the error is visible."""
    ranks = 64
    loss = np.repeat([0.0, 7.0], [before, ranks])
    cluster_sums = ClusterSums.of_rows(
        unit=np.arange(len(loss)),
        key=np.arange(len(loss)),
        columns=[loss],
        units=len(loss),
        keys=len(loss),
    )
    risks = [Fraction(7 * each * rank, before + each * rank) for rank in range(ranks + 1)]
    exact = sum(each * (one + following) / 2 for one, following in pairwise(risks))
    weights = np.tile(np.repeat([1, each], [before, ranks]).astype(np.uint8), (8, 1))
    for kernel in compiled():
        with use_kernel(kernel):
            for area in integrate_curve(
                cluster_sums, in_lanes(weights, 8), CurveRequest(risk=True)
            ).risk_area.tolist():
                assert 1e-15 < abs(Fraction(area) - exact) / exact < most


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 10_000), st.integers(0, 200), st.integers(1, 20), st.integers(1, 30), st.integers(1, 7))
def test_sums_by_key_agree_with_numpy(seed: int, rows: int, units: int, keys: int, columns: int) -> None:
    rng = np.random.default_rng(seed)
    cluster_sums = ClusterSums.of_rows(
        unit=rng.integers(0, units, rows),
        key=rng.integers(0, keys, rows),
        columns=list(rng.random((columns, rows))),
        units=units,
        keys=keys,
    )
    weights = rng.integers(0, 4, (11, units)).astype(float)
    for kernel in compiled():
        with use_kernel(kernel):
            close(cluster_sums.evaluate(WeightBatch(weights)), cluster_sums.evaluate(weights))
            close(cluster_sums.evaluate(WeightBatch(weights / 7.0)), cluster_sums.evaluate(weights / 7.0))


@pytest.mark.parametrize("convention", CONVENTIONS)
@pytest.mark.parametrize("levels", [None, 7])
def test_bootstrap_and_jackknife_of_selective_metrics_agree_with_numpy(
    convention: str, levels: int | None
) -> None:
    rng = np.random.default_rng(3)
    items, clusters = 400, 37
    columns = Columns.of(
        items,
        loss=rng.integers(0, 4, items).astype(float),
        confidence=rng.random(items) if levels is None else rng.integers(0, levels, items).astype(float),
        answered=rng.random(items) > 0.2,
        cluster=rng.integers(0, clusters, items),
        units=clusters,
    )
    metrics = [metric.in_convention(convention) for metric in SELECTIVE]

    def points_and_replicates() -> list[Floats]:
        measure = measure_metrics(columns, metrics)
        left_out = replicates([measure], JackknifeWeights.of(np.arange(clusters)))
        return [measure.points, *left_out, *replicates([measure], BootstrapWeights(clusters, 77, 5))]

    with use_kernel(NUMPY):
        expected = points_and_replicates()
    by_level = []
    for kernel in compiled():
        with use_kernel(kernel):
            by_level.append(points_and_replicates())
        for one, other in zip(by_level[-1], expected, strict=True):
            close(one, other)
    for actual in by_level:  # exactly the same at every level
        for one, other in zip(actual, by_level[0], strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    "name", ["expected_calibration_error", "accuracy", "correctness_auroc", "brier_score"]
)
def test_metrics_of_bins_sums_and_pairs_agree_with_numpy(name: str) -> None:
    rng = np.random.default_rng(4)
    items, clusters = 300, 20
    truth = rng.integers(0, 2, items).astype(float)
    columns = Columns.of(
        items,
        truth=truth,
        prediction=np.where(rng.random(items) < 0.3, 1.0 - truth, truth),
        confidence=rng.random(items),
        cluster=rng.integers(0, clusters, items),
        units=clusters,
    )
    with use_kernel(NUMPY):
        expected = replicates([measure_metrics(columns, [METRICS[name]])], BootstrapWeights(clusters, 50, 5))[
            0
        ]
    for kernel in compiled():
        with use_kernel(kernel):
            actual = replicates(
                [measure_metrics(columns, [METRICS[name]])], BootstrapWeights(clusters, 50, 5)
            )[0]
        close(actual, expected)


class TestStream:
    # For 65,000 and 1,000,000 units so few numbers are rejected that they are counted as well.
    @pytest.mark.parametrize(
        "units",
        [
            *(1, 2, 3, 41, 64, 65, 1000, 65_000, 70_000),
            *(pytest.param(units, marks=pytest.mark.slow) for units in (600_000, 1_000_000)),
        ],
    )
    def test_the_draws_are_those_of_numpy_for_any_batches(self, units: int) -> None:
        drawn = np.random.RandomState(9).randint(0, units, size=(21, units))
        expected = np.stack([np.bincount(row, minlength=units) for row in drawn])
        for kernel in compiled():
            stream = RandomStream(kernel.library, 9)  # type: ignore[arg-type]
            batches = [
                WeightBatch.of_lanes(stream.multiplicities(units, size), size).weights for size in (8, 3, 10)
            ]
            np.testing.assert_array_equal(np.concatenate(batches), expected)

    def test_the_number_of_units_may_change_between_draws(self) -> None:
        """The next draw continues after the last used number."""
        turns = [41, 65_000, 7, 1000, 65_000, 70_000, 3, 64, 65_536, 41]
        for kernel in compiled():
            stream, numbers = RandomStream(kernel.library, 5), np.random.RandomState(5)  # type: ignore[arg-type]
            for units in turns:
                actual = WeightBatch.of_lanes(stream.multiplicities(units, 9), 9).weights
                expected = [
                    np.bincount(row, minlength=units) for row in numbers.randint(0, units, (9, units))
                ]
                np.testing.assert_array_equal(actual, np.stack(expected))

    @pytest.mark.parametrize("draws", [65_000, 65_001, 400_000])
    def test_rejected_numbers_do_not_appear_in_the_counts(self, draws: int) -> None:
        """If they are counted as well, their counters are after those of the units."""
        drawn = np.random.RandomState(6).randint(0, 65_000, size=(9, draws))
        expected = np.stack([np.bincount(row, minlength=65_000) for row in drawn])
        for kernel in compiled():
            stream = RandomStream(kernel.library, 6)  # type: ignore[arg-type]
            lanes = stream.multiplicities(65_000, 9, draws=draws)
            assert lanes.dtype == np.uint8
            np.testing.assert_array_equal(WeightBatch.of_lanes(lanes, 9).weights, expected)

    def test_lanes_that_are_too_many_for_any_cache(self) -> None:
        """They are written past the caches: 16 lanes of more than a million units."""
        units = 1_100_005
        drawn = np.random.RandomState(7).randint(0, units, size=(10, units))
        for kernel in compiled():
            stream = RandomStream(kernel.library, 7)  # type: ignore[arg-type]
            lanes = stream.multiplicities(units, 10)
            assert lanes.shape == (1, units, 16)
            for lane, row in enumerate(drawn):
                np.testing.assert_array_equal(lanes[0, :, lane], np.bincount(row, minlength=units))

    @pytest.mark.parametrize(("units", "draws"), [(1, 300), (3, 100_000), (2, 511)])
    def test_multiplicities_beyond_a_byte_are_kept(self, units: int, draws: int) -> None:
        drawn = np.random.RandomState(1).randint(0, units, size=(9, draws))
        expected = np.stack([np.bincount(row, minlength=units) for row in drawn])
        for kernel in compiled():
            stream = RandomStream(kernel.library, 1)  # type: ignore[arg-type]
            lanes = stream.multiplicities(units, 9, draws=draws)
            assert lanes.dtype == np.float64
            np.testing.assert_array_equal(WeightBatch.of_lanes(lanes, 9).weights, expected)
            # After the second attempt the stream is at the same position as after one attempt.
            following = WeightBatch.of_lanes(stream.multiplicities(units, 1), 1).weights
            again = np.random.RandomState(1)
            again.randint(0, units, size=(9, draws))
            np.testing.assert_array_equal(
                following[0], np.bincount(again.randint(0, units, size=units), minlength=units)
            )

    def test_the_memory_of_a_batch_is_reused_only_after_done(self) -> None:
        for kernel in compiled()[-1:]:
            stream = RandomStream(kernel.library, 2)  # type: ignore[arg-type]
            first, second = (WeightBatch.drawn(stream, 3000, 10) for _ in range(2))
            kept, taken = second.weights.copy(), first.lanes
            first.done()
            third = WeightBatch.drawn(stream, 3000, 10)
            assert third.lanes is taken
            np.testing.assert_array_equal(WeightBatch.of_lanes(second.lanes, 10).weights, kept)

    @pytest.mark.parametrize("units", [41, 3000, 65_000, 70_000])
    def test_threads_together_draw_the_numbers_of_numpy(self, units: int) -> None:
        drawn = np.random.RandomState(3).randint(0, units, size=(60, units))
        expected = np.stack([np.bincount(row, minlength=units) for row in drawn])
        for kernel in compiled():
            stream, actual = RandomStream(kernel.library, 3, shared=True), np.full((60, units), -1.0)  # type: ignore[arg-type]
            began = threading.Barrier(3)

            def draw(stream: RandomStream = stream, actual: Any = actual, began: Any = began) -> None:
                began.wait()
                for size in (9, 1, 10):
                    batch = WeightBatch.drawn(stream, units, size)
                    assert (actual[batch.places] == -1.0).all()
                    actual[batch.places] = batch.weights

            working = [threading.Thread(target=draw) for _ in range(3)]
            for thread in working:
                thread.start()
            for thread in working:
                thread.join()
            np.testing.assert_array_equal(actual, expected)

    def test_places_are_the_positions_in_the_stream(self) -> None:
        for kernel in compiled()[-1:]:
            stream = RandomStream(kernel.library, 3, shared=True)  # type: ignore[arg-type]
            assert WeightBatch.drawn(stream, 5, 4).places == slice(0, 4)
            assert WeightBatch.drawn(stream, 5, 2).places == slice(4, 6)

    def test_zero_clusters_give_empty_weight_vectors(self) -> None:
        for kernel in (NUMPY, *compiled()):
            with use_kernel(kernel):
                assert [batch.weights.shape for batch in BootstrapWeights(0, 3, 1).batches(1)] == [(3, 0)]


class TestSizes:
    def test_numpy_is_used_for_more_units_or_cells_than_32_bits_can_number(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        huge = ClusterSums(np.zeros(1, np.intp), np.zeros(1, np.intp), np.ones((2, 1)), units=2**31, keys=1)
        assert huge.cells is None
        cluster_sums = random_sums(1, rows=50, units=5, keys=10)
        weights = np.ones((2, 5))
        with use_kernel(NUMPY):
            expected = integrate_curve(cluster_sums, WeightBatch(weights), CurveRequest(risk=True)).risk_area
        monkeypatch.setattr(_kernel, "MOST_CELLS", 10)
        for kernel in compiled():
            with use_kernel(kernel):
                assert cluster_sums.cells is None
                assert (
                    integrate_curve(
                        cluster_sums, WeightBatch(weights), CurveRequest(risk=True)
                    ).risk_area.tolist()
                    == expected.tolist()
                )

    def test_numpy_is_used_if_the_table_of_growth_would_be_too_large(self) -> None:
        light = random_sums(1, rows=20, units=3, keys=5)
        heavy = ClusterSums(light.unit, light.key, light.sums * 2.0**30, light.units, light.keys)
        requested = CurveRequest(growth=(HARMONIC,))
        with use_kernel(NUMPY):
            expected = integrate_curve(heavy, WeightBatch(np.ones((1, 3))), requested).prefix_means[HARMONIC]
        for kernel in compiled():
            with use_kernel(kernel):
                actual = integrate_curve(heavy, WeightBatch(np.ones((1, 3))), requested).prefix_means[
                    HARMONIC
                ]
            assert actual.tolist() == expected.tolist()


class TestFaults:
    """A library that is missing, damaged or of another version is refused with a reason, and numpy is used."""

    def test_missing(self, tmp_path: Path) -> None:
        assert find(tmp_path / "none.so").reason == "it was not built when abstain was installed"

    def test_truncated(self, tmp_path: Path) -> None:
        for _ in compiled()[:1]:
            library = put(tmp_path / "part.so")
            whole = library.read_bytes()
            for content in (b"", whole[:10], whole[: len(whole) // 2], whole[:-1], b"\x00" * len(whole)):
                library.write_bytes(content)
                assert find(library) == Kernel(reason=DAMAGED.format("part.so"))

    def test_without_its_seal(self, tmp_path: Path) -> None:
        for _ in compiled()[:1]:
            library = put(tmp_path / "open.so")
            build_kernel.seal_of(library).unlink()
            assert find(library).reason == DAMAGED.format("open.so")

    @pytest.mark.slow
    def test_of_another_version(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        for _ in compiled()[:1]:
            other = tmp_path / "_kernel.c"
            other.write_bytes(build_kernel.SOURCE.read_bytes() + b"\n")
            monkeypatch.setattr(build_kernel, "SOURCE", other)
            monkeypatch.setattr(build_kernel, "FLAGS", (*build_kernel.FLAGS, "-O0"))  # no number is computed
            actual = find(build_kernel.build(tmp_path / "other.so"))
            assert actual.reason == "other.so was built from another source; reinstall abstain"

    def test_a_foreign_library(self, tmp_path: Path) -> None:
        for _ in compiled()[:1]:
            (tmp_path / "stranger.c").write_text("int stranger(void) { return 1; }\n")
            library = tmp_path / "stranger.so"
            subprocess.run(
                ["cc", "-shared", "-fPIC", str(tmp_path / "stranger.c"), "-o", str(library)], check=True
            )
            digest = hashlib.sha256(library.read_bytes()).hexdigest()
            build_kernel.seal_of(library).write_text(f"1 {_kernel.source_hash()} {digest}", encoding="ascii")
            assert find(library).reason == DAMAGED.format("stranger.so")

    def test_the_environment_variable_selects_the_kernel(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("ABSTAIN_KERNEL", "skip")
        assert _kernel.description() == "numpy (ABSTAIN_KERNEL is skip)"
        monkeypatch.setattr(_kernel, "_installed", lambda: Kernel(reason="it is gone"))
        monkeypatch.setenv("ABSTAIN_KERNEL", "auto")
        assert _kernel.description() == "numpy (it is gone)"
        monkeypatch.setenv("ABSTAIN_KERNEL", "require")
        with pytest.raises(
            ArgumentError, match="require, but the compiled kernel cannot be used: it is gone"
        ):
            _kernel.kernel()
        monkeypatch.setenv("ABSTAIN_KERNEL", "perhaps")
        with pytest.raises(ArgumentError, match="must be one of auto, require, skip, got 'perhaps'"):
            _kernel.kernel()

    def test_a_missing_or_failing_compiler_is_reported(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("CC", "")
        monkeypatch.setenv("PATH", str(tmp_path))
        with pytest.raises(build_kernel.CompilerError, match="there is no C compiler"):
            build_kernel.build(tmp_path / "a.so")
        monkeypatch.setenv("CC", "/nowhere/cc")
        with pytest.raises(build_kernel.CompilerError, match="/nowhere/cc cannot be run"):
            build_kernel.build(tmp_path / "a.so")
        monkeypatch.setenv("CC", f"{sys.executable} -c 'import sys; sys.exit(\"error: no\")'")
        with pytest.raises(build_kernel.CompilerError, match="the C compiler failed: error: no"):
            build_kernel.build(tmp_path / "a.so")


class TestThreads:
    @pytest.fixture(autouse=True)
    def afterwards(self) -> Iterator[None]:
        yield
        set_threads(None)

    def some(self, items: int) -> Any:
        rng = np.random.default_rng(6)
        columns = Columns.of(
            items,
            loss=rng.random(items),
            confidence=rng.random(items),
            cluster=np.arange(items),
            units=items,
        )
        return measure_metrics(columns, SELECTIVE)

    def test_the_number_of_threads_does_not_change_the_results(self) -> None:
        for kernel in compiled()[-1:]:
            with use_kernel(kernel):
                measure, actual = self.some(20_000), list[Any]()
                done: list[int] = []
                for count in (1, 2, 5):
                    set_threads(count)
                    actual += replicates([measure], BootstrapWeights(20_000, 300, 1), done.append)
                assert sum(done) == 900
                for values in actual[1:]:
                    np.testing.assert_array_equal(values, actual[0])

    def test_an_error_in_a_thread_is_raised_in_the_caller(self) -> None:
        for kernel in compiled()[-1:]:
            with use_kernel(kernel):
                measure = self.some(20_000)

                def refuse(_: int) -> None:
                    raise ValueError("no progress")

                with pytest.raises(ValueError, match="no progress"):
                    replicates([measure], BootstrapWeights(20_000, 300, 1), refuse)

    def test_fewer_than_one_is_refused(self) -> None:
        with pytest.raises(ArgumentError, match="threads must be"):
            set_threads(0)

    @pytest.mark.nightly
    def test_an_interrupt_stops_a_long_computation(self) -> None:
        """Ten million resamples of a million items would take hours, much longer than the time limit below."""
        program = """
import os, signal, sys, threading, time
import numpy as np
from abstain.inference import BootstrapWeights, replicates
from abstain.metrics import Columns, measure_metrics
from abstain.metrics.registry import METRICS
n = 1_000_000
rng = np.random.default_rng(0)
columns = Columns.of(n, loss=rng.random(n), confidence=rng.random(n), cluster=np.arange(n), units=n)
measure = measure_metrics(columns, [METRICS["aurc_achievable"]])
def interrupt():
    time.sleep(1.0)
    os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=interrupt).start()
try:
    replicates([measure], BootstrapWeights(n, 10_000_000, 1))
except KeyboardInterrupt:
    print("interrupted")
"""
        environment = os.environ | {"ABSTAIN_KERNEL": "auto"}
        done = subprocess.run(
            [sys.executable, "-c", program],
            capture_output=True,
            text=True,
            timeout=3600,
            check=True,
            env=environment,
        )
        assert done.stdout == "interrupted\n"


@pytest.mark.nightly
def test_the_sanitizers_find_no_errors_in_the_kernel(tmp_path: Path) -> None:
    """The kernel runs with the address and undefined-behaviour sanitizers."""
    for _ in compiled()[:1]:
        library = build_kernel.build(tmp_path / "sanitized.so", sanitize=True)
        sanitizer = subprocess.run(
            ["cc", "-print-file-name=libasan.so"], capture_output=True, text=True, check=True
        )
        environment = os.environ | {
            "LD_PRELOAD": sanitizer.stdout.strip(),
            "ASAN_OPTIONS": "detect_leaks=0",
            "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
        }
        done = subprocess.run(
            [sys.executable, "-c", _SANITIZED_PROGRAM, str(library)],
            capture_output=True,
            text=True,
            check=False,
            env=environment,
        )
        assert done.returncode == 0, done.stderr[-2000:]
        assert done.stdout.split() == ["done"]


_SANITIZED_PROGRAM = """
import sys
from pathlib import Path
import numpy as np
from abstain.resampling import HARMONIC, CurveRequest, WeightBatch
from abstain.resampling import RandomStream, ClusterSums, integrate_curve
from abstain.resampling._kernel import Kernel, find, use_kernel
loaded = find(Path(sys.argv[1])).library
assert loaded is not None
for level in loaded.levels:
    library = loaded.at_level(level)
    with use_kernel(Kernel(library)):
        for rows, units, keys in ((0, 1, 1), (1, 1, 1), (7, 3, 2), (63, 9, 64), (500, 41, 7), (9000, 700, 5000)):
            rng = np.random.default_rng(rows)
            cluster_sums = ClusterSums.of_rows(
                unit=rng.integers(0, units, rows), key=rng.integers(0, keys, rows),
                columns=[rng.random(rows)], units=units, keys=keys,
            )
            stream = RandomStream(library, rows)
            for vectors in (1, 13, 70):
                batch = WeightBatch.drawn(stream, units, vectors)
                targets = np.linspace(0.0, 2.0, 7)[:, None] * np.full(vectors, float(rows))
                areas = {"hull": True, "areas_at": (True,) * 7}
                request = CurveRequest(risk=True, growth=(HARMONIC,), bounds=(0.2, 9.0), **areas)
                integrate_curve(cluster_sums, batch, request, targets)
                request = CurveRequest(risk=True, **areas)
                integrate_curve(cluster_sums, WeightBatch(batch.weights / 3.0), request, targets)
                cluster_sums.evaluate(batch)
            stream.multiplicities(2, 3, draws=1000)
        rows = 20_000
        cluster_sums = ClusterSums.of_rows(
            unit=np.arange(rows)[::-1], key=np.arange(rows), columns=[np.arange(rows) % 8.0], units=rows, keys=rows
        )
        batch = WeightBatch.drawn(RandomStream(library, 5), rows, 21)
        integrate_curve(cluster_sums, batch, CurveRequest(risk=True, areas_at=(True,)), np.full((1, 21), 15_000.0))
print("done")
"""
