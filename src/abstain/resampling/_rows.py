"""Rows of a table, counted by the compiled kernel as they come: by kind, confidence and group of clusters.

What is counted is defined where tables are counted by statements, in `abstain.readers`; this is the same in one pass,
for columns of numbers without a gap. Anything else is refused.
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

import numpy as np

from abstain._units import GROUPS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from abstain.resampling._kernel import Library

_NO_MEMORY, _MOST_BYTES = 1, 8


class RowsRefused(Exception):  # noqa: N818  (it is a finding, and whoever asked counts in another way)
    """The rows are not what the kernel counts."""


class _ColumnStruct(ctypes.Structure):
    _fields_ = (("values", ctypes.c_void_p), ("size", ctypes.c_int64), ("sign", ctypes.c_int64))


class _RowsStruct(ctypes.Structure):
    """The beginning of what the source calls ``rows``."""

    _fields_ = (
        *(
            (name, ctypes.c_int64)
            for name in ("columns", "low", "high", "rounded", "rows", "kinds", "levels")
        ),
        ("kind", ctypes.c_uint64 * 250),
        ("level", ctypes.POINTER(ctypes.c_double)),
        ("count", ctypes.POINTER(ctypes.POINTER(ctypes.c_uint32))),
        ("bins", ctypes.POINTER(ctypes.POINTER(ctypes.c_double))),
    )


class CountedRows:
    """Rows counted by kind, level of a confidence and group of clusters.

    Args:
        library: the kernel.
        cluster: the type of the clusters: whole numbers.
        ends: the least and the largest of them.
        columns: the types of the columns that tell kinds apart: whole numbers, of eight bytes together at most.
        own: the types that `kinds` gives back.
        rounded: True where confidences are rounded to bins.

    >>> from abstain.resampling import kernel
    >>> library = kernel().library
    >>> if library is not None:
    ...     rows = CountedRows(library, np.dtype(int), (7, 9), [np.dtype("u1")], [np.dtype(bool)], rounded=False)
    ...     right, patient = np.array([1, 1, 0], np.uint8), np.array([7, 9, 9])
    ...     rows.add(3, patient.ctypes.data, np.array([0.5, 0.5, 0.9]).ctypes.data, [right.ctypes.data])
    ...     found = rows.kinds()[0].tolist(), rows.levels().tolist(), rows.counts(0).sum(axis=1).tolist()
    ...     assert found == ([True, False], [0.5, 0.9], [2, 0])
    ...     assert rows.members().sum() == 2
    """

    def __init__(
        self,
        library: Library,
        cluster: np.dtype[Any],
        ends: tuple[int, int],
        columns: Sequence[np.dtype[Any]],
        own: Sequence[np.dtype[Any]],
        *,
        rounded: bool,
    ) -> None:
        self._library, self._cluster, self._columns, self._own = library, cluster, columns, own
        if sum(kind.itemsize for kind in columns) > _MOST_BYTES:
            raise RowsRefused
        self._at = library.rows_new(len(columns), *ends, int(rounded))
        if self._at is None:
            raise MemoryError
        self._rows = _RowsStruct.from_address(self._at)

    def __del__(self) -> None:
        if getattr(self, "_at", None) is not None:
            self._library.rows_free(self._at)

    def add(self, rows: int, cluster: int, confidence: int | None, columns: Sequence[int]) -> None:
        """Count some rows: where in memory their columns are."""
        kinds = (_ColumnStruct * max(len(columns), 1))(
            *(_column(values, kind) for values, kind in zip(columns, self._columns, strict=True))
        )
        named = _column(cluster, self._cluster)
        ended = self._library.rows_add(self._at, rows, ctypes.byref(named), confidence, kinds)
        if ended == _NO_MEMORY:
            raise MemoryError
        if ended:
            raise RowsRefused

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return int(self._rows.rows)

    @property
    def kind_count(self) -> int:
        """How many kinds there are."""
        return int(self._rows.kinds)

    def kinds(self) -> list[NDArray[Any]]:
        """Return by column what each kind has there."""
        packed = np.array(self._rows.kind[: self.kind_count], np.uint64)
        columns, shift = [], 0
        for read, own in zip(self._columns, self._own, strict=True):
            # The bytes of the column are cut out, and read as what they were.
            part = (packed >> np.uint64(shift)).astype(f"u{read.itemsize}")
            columns.append(part.view(read).astype(own))
            shift += 8 * read.itemsize
        return columns

    def levels(self) -> NDArray[np.float64]:
        """Return the confidences, or the bins that they were rounded to."""
        return np.ctypeslib.as_array(self._rows.level, (max(self._rows.levels, 1),)).copy()

    def counts(self, kind: int) -> NDArray[np.uint32]:
        """Return how many rows of a kind there are by (level, group), for as long as this is kept."""
        return np.ctypeslib.as_array(self._rows.count[kind], (max(self._rows.levels, 1), GROUPS))

    def bins(self, kind: int) -> NDArray[np.float64]:
        """Return the sum, the least and the largest of the confidences of a kind in each bin, (level, 3).

        A bin without a row has the sum 0, the least infinity and the largest minus infinity. The array is valid for as
        long as this object is kept.
        """
        return np.ctypeslib.as_array(self._rows.bins[kind], (max(self._rows.levels, 1), 3))

    def members(self) -> NDArray[np.float64]:
        """Return how many clusters each group has."""
        members = np.empty(GROUPS)
        self._library.rows_members(self._at, members.ctypes.data)
        return members


def _column(address: int, kind: np.dtype[Any]) -> _ColumnStruct:
    return _ColumnStruct(address, kind.itemsize, int(kind.kind == "i"))
