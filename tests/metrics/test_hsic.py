"""HSIC without the matrix equals its definition, at every scale, with ties, infinite widths, weights and clusters."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pytest
from numpy.typing import NDArray

from abstain.metrics import _gauss
from abstain.metrics._columns import Rows, weights_and_units
from abstain.metrics._gauss import hsic_statistic

if TYPE_CHECKING:
    from abstain.resampling import Statistic

Floats = NDArray[np.float64]


def _definition(width: Floats, covered: Floats, sizes: tuple[float, float]) -> float:
    """``trace(HKHL)`` with the matrices, in extended precision if the platform supports it."""
    width, covered = width.astype(np.longdouble), covered.astype(np.longdouble)
    with np.errstate(invalid="ignore"):
        distance = np.where(width[:, None] == width, 0.0, np.abs(width[:, None] - width))
    inner = np.exp(-(distance**2) / sizes[0])
    outer = np.exp(-((covered[:, None] - covered) ** 2) / sizes[1])

    def centred(matrix: Floats) -> Floats:
        return np.asarray(matrix - matrix.mean(axis=0) - matrix.mean(axis=1)[:, None] + matrix.mean())

    return float((centred(inner) * centred(outer)).sum())


def _measure(
    width: Floats,
    covered: NDArray[np.bool_],
    sizes: tuple[float, float] = (1.0, 1.0),
    *,
    weight: Floats | None = None,
    unit: NDArray[np.intp] | None = None,
    raw: bool = False,
) -> Statistic:
    rows = Rows(**weights_and_units(len(width), weight)).in_units(unit)
    return hsic_statistic(width, covered, rows, kernel_sizes=sizes, raw=raw)


def _case(seed: int) -> tuple[Floats, NDArray[np.bool_], tuple[float, float], np.random.Generator]:
    rng = np.random.default_rng(seed)
    rows = int(rng.integers(2, 90))
    width = rng.exponential(size=rows) * 10.0 ** rng.uniform(-3, 6)
    if seed % 3 == 0:
        width = np.round(width)
    if seed % 4 == 0:
        width[rng.random(rows) < 0.3] = np.inf
    sizes = (float(10.0 ** rng.uniform(-2, 3)), float(10.0 ** rng.uniform(-1, 1)))
    return width, rng.random(rows) < 0.7, sizes, rng


@pytest.mark.parametrize("seed", range(40))
def test_hsic_equals_its_definition(seed: int) -> None:
    width, covered, sizes, _ = _case(seed)
    trace = _definition(width, covered.astype(float), sizes)
    measure = _measure(width, covered, sizes)
    expected = math.sqrt(max(trace, 0.0)) / (len(width) - 1)
    assert measure.point == pytest.approx(expected, abs=1e-9)
    raw = _measure(width, covered, sizes, raw=True)
    assert raw.point == pytest.approx(trace, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("dense", [True, False])
@pytest.mark.parametrize("seed", range(10))
def test_cluster_weights_are_repetitions(seed: int, dense: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not dense:
        monkeypatch.setattr(_gauss, "_DENSE_LIMIT", 0)
    width, covered, sizes, rng = _case(seed)
    cluster = np.unique(rng.integers(0, 8, len(width)), return_inverse=True)[1]
    row_weight = rng.integers(1, 3, len(width)).astype(float)
    measure = _measure(width, covered, sizes, weight=row_weight, unit=cluster)
    assert measure.width >= measure.units
    weights = rng.integers(0, 3, (6, measure.units)).astype(float)
    weights[0], weights[1] = 1.0, 0.0
    for weight, value in zip(weights, measure(weights)[:, 0], strict=True):
        times = (row_weight * weight[cluster]).astype(int)
        if times.sum() < 2:
            assert math.isnan(value)
            continue
        trace = _definition(np.repeat(width, times), np.repeat(covered, times).astype(float), sizes)
        assert value == pytest.approx(math.sqrt(max(trace, 0.0)) / (times.sum() - 1), abs=1e-9)


def test_the_result_does_not_depend_on_the_chunk_size(monkeypatch: pytest.MonkeyPatch) -> None:
    width, covered, sizes, _ = _case(5)
    whole = _measure(width, covered, sizes).point
    for rows in (1, 2, 7):
        monkeypatch.setattr(_gauss, "_CHUNK", rows)
        pieces = _measure(width, covered, sizes).point
        assert pieces == pytest.approx(whole, rel=1e-13)


def test_the_grid_satisfies_the_documented_error_bound() -> None:
    step, reach = 0.2, 3.9
    assert 4 * math.sqrt(math.erfc(math.pi / (2 * step))) + math.sqrt(math.erfc(2 * (reach - step))) < 4e-13
    for size in (1e-6, 0.3, 1.0, 1.7, 1e5):
        grid = _gauss.Grid.over(np.array([0.0, math.sqrt(size)]), size)
        assert grid.step <= step * math.sqrt(size)
        assert (grid.reach + 0.5) * grid.step >= reach * math.sqrt(size)
        node, other = np.zeros(grid.nodes), np.zeros(grid.nodes)
        (_, value), *_ = grid.chunks()
        index = grid.nodes_of(slice(None))
        node[index[0]], other[index[1]] = grid.height * value
        assert node @ node == pytest.approx(1.0, abs=1e-14)
        assert node @ other == pytest.approx(math.exp(-1.0), abs=1e-14)


def test_extremely_large_widths_are_distinguished() -> None:
    width = np.array([1e308, 1e308, 1.7e308, 3.0, 3.0, np.inf])
    covered = np.array([True, False, True, True, False, True])
    c = covered - covered.mean()
    form = (c[0] + c[1]) ** 2 + c[2] ** 2 + (c[3] + c[4]) ** 2 + c[5] ** 2
    measure = _measure(width, covered, (1e-8, 1.0), raw=True)
    assert measure.point == pytest.approx(2 * (1 - math.exp(-1)) * form, rel=1e-12)
    many = np.array([2.0**60, 2.0**60 + 2.0**9, 7.0])
    assert _gauss.Grid.over(np.sort(many), 1.0).step == 0.125
    assert _gauss.Grid.over(np.array([7.0]), 1.0).step == 0.1875
    for size in (1e-320, 1e308):
        measure = _measure(np.array([1.0, 1.0, 2.0]), covered[:3], (size, size))
        assert math.isfinite(measure.point)
    only_infinite = _measure(np.full(4, np.inf), covered[:4], (1.0, 1.0))
    assert only_infinite.point == 0.0
