"""Rows that the compiled kernel counts as they come, against numpy; and what it refuses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from abstain._units import GROUPS, group_of
from abstain.resampling import CountedRows, RowsRefused, kernel

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Columns = Sequence[NDArray[Any]]

pytestmark = pytest.mark.skipif(
    not kernel().compiled, reason="without the compiled kernel nothing counts rows"
)


def counted(
    cluster: NDArray[Any],
    confidence: NDArray[Any] | None,
    columns: Columns,
    *,
    rounded: bool = False,
    pieces: int = 1,
) -> CountedRows:
    library = kernel().library
    assert library is not None
    types = [column.dtype for column in columns]
    ends = (int(cluster.min()), int(cluster.max())) if len(cluster) else (0, 0)
    rows = CountedRows(library, cluster.dtype, ends, types, types, rounded=rounded)
    for part in np.array_split(np.arange(len(cluster)), pieces):
        piece = [np.ascontiguousarray(column[part]) for column in (cluster, *columns)]
        sure = None if confidence is None else np.ascontiguousarray(confidence[part])
        rows.add(
            len(part),
            piece[0].ctypes.data,
            None if sure is None else sure.ctypes.data,
            [column.ctypes.data for column in piece[1:]],
        )
    return rows


def bins(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Ten leading bits, of a number or of what it lacks of 1, as the definition has it."""

    def leading(number: NDArray[np.float64]) -> NDArray[np.float64]:
        mantissa, exponent = np.frexp(number)
        return np.ldexp(np.round(mantissa * 1024.0), exponent - 10)

    return np.where((values > 0.5) & (values <= 1.0), 1.0 - leading(1.0 - values), leading(values))


@settings(deadline=None, max_examples=60)
@given(
    st.integers(0, 10_000),
    st.integers(1, 2000),
    st.sampled_from(["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"]),
    st.sampled_from([("u1",), ("i1", "u1"), ("i4", "i4"), ("u2", "i2", "i1", "u1"), ("i8",), ()]),
    st.integers(1, 5),
)
def test_rows_are_counted_as_numpy_counts_them(
    seed: int, size: int, named: str, types: tuple[str, ...], pieces: int
) -> None:
    rng = np.random.default_rng(seed)
    limit = np.iinfo(named)
    low = max(int(limit.min), -(2**61))
    high = min(int(limit.max), low + 2**20) if seed % 2 else min(int(limit.max), 10_000)
    cluster = rng.integers(max(low, high - 2**20), high, size, endpoint=True).astype(named)
    columns = [rng.integers(-2 if kind[0] == "i" else 0, 3, size).astype(kind) for kind in types]
    sure = rng.integers(-3, 4, size) / 3.0
    rows = counted(cluster, sure, columns, pieces=pieces)
    kinds, levels = rows.kinds(), rows.levels()
    group = group_of(cluster)
    expected: dict[tuple[Any, ...], int] = {}
    for key in zip(*(column.tolist() for column in (*columns, sure + 0.0, group)), strict=True):
        expected[key] = expected.get(key, 0) + 1
    found = {}
    for kind in range(rows.kind_count):
        count = rows.counts(kind)
        for level, unit in zip(*np.nonzero(count), strict=True):
            values = tuple(column[kind].item() for column in kinds)
            found[*values, float(levels[level]), int(unit)] = int(count[level, unit])
    assert found == expected
    assert [column.dtype for column in kinds] == [np.dtype(kind) for kind in types]
    assert rows.rows == size
    assert rows.members().tolist() == np.bincount(group_of(np.unique(cluster)), minlength=GROUPS).tolist()


def test_bins_are_the_leading_bits_and_keep_their_sums_and_ends() -> None:
    rng = np.random.default_rng(1)
    sure = np.concatenate(
        [rng.random(5000), 1.0 - 1e-6 * rng.random(5000), -40.0 * rng.random(5000), [0.5, 1.0, -0.0]]
    )
    rows = counted(np.zeros(len(sure), np.int64), sure, [], rounded=True, pieces=3)
    levels, index = np.unique(bins(sure) + 0.0, return_inverse=True)
    order = np.argsort(rows.levels())
    assert rows.levels()[order].tolist() == levels.tolist()
    assert rows.counts(0).sum(axis=1)[order].tolist() == np.bincount(index).tolist()
    sums, low, high = rows.bins(0)[order].T
    np.testing.assert_allclose(sums, np.bincount(index, weights=sure), rtol=1e-12)
    ends = [(part.min(), part.max()) for part in (sure[index == place] for place in range(len(levels)))]
    assert list(zip(low, high, strict=True)) == ends


def test_without_a_confidence_there_is_one_level() -> None:
    rows = counted(np.array([3, 4, 4], np.int64), None, [np.array([1, 0, 1], np.uint8)])
    assert [int(rows.counts(kind).sum()) for kind in (0, 1)] == [2, 1]
    assert len(rows.levels()) == 1


SOME = np.arange(300, dtype=np.int64)


@pytest.mark.parametrize(
    ("cluster", "confidence", "columns"),
    [
        (SOME, np.full(300, np.nan), []),
        (SOME, np.full(300, np.inf), []),
        (SOME, np.full(300, -1e290), []),
        (SOME, np.zeros(300), [SOME]),  # more kinds than are counted
        (SOME, np.zeros(300), [SOME, SOME]),  # more than eight bytes
        (np.full(3, 2**63 + 5, np.uint64), np.zeros(3), []),
        (np.arange(70_000), np.arange(70_000) / 7.0, []),  # more levels than are counted
        (np.arange(70_000), np.arange(70_000) % 30_000 / 7.0, [(np.arange(70_000) % 20).astype(np.uint8)]),
    ],
    ids=["nan", "infinite", "huge", "kinds", "bytes", "beyond 2^63", "levels", "kinds of levels"],
)
def test_what_it_cannot_count_is_refused(
    cluster: NDArray[Any], confidence: NDArray[np.float64], columns: Columns
) -> None:
    with pytest.raises(RowsRefused):
        counted(cluster, confidence, columns)


def test_a_cluster_beyond_the_ends_is_refused() -> None:
    library = kernel().library
    assert library is not None
    rows = CountedRows(library, np.dtype(np.int64), (5, 9), [], [], rounded=False)
    for wrong in (4, 10):
        with pytest.raises(RowsRefused):
            rows.add(1, np.array([wrong]).ctypes.data, None, [])
