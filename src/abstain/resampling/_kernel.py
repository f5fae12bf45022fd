"""The interface to the compiled kernel: find, check and call a C library. Without it, numpy computes the same numbers.

The library is in the same folder as this file and is built with the package (see ``hatch_build.py``). A seal file next
to it contains the hash of the source it was built from and the hash of its content. A library that is missing, damaged
or built from another source is not used, and `description` reports the reason. With ``ABSTAIN_KERNEL=skip`` in the
environment numpy is used; with ``require`` it is an error if the kernel is not usable.

All functions take and return arrays. The results agree with the numpy twin up to the last few bits, and do not depend
on the processor or the number of threads.
"""

from __future__ import annotations

import ctypes
import hashlib
import math
import os
import sys
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from abstain.errors import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from abstain.resampling._cluster_sums import StopFlag, WeightBatch

    _Lanes = TypeVar("_Lanes", NDArray[np.uint8], NDArray[np.float64])

# The same words as when the package is built: auto, require, skip.
CHOICE = "ABSTAIN_KERNEL"
ABI = 1
_CHOICES = ("auto", "require", "skip")
_ENDINGS = {"win32": ".dll", "darwin": ".dylib"}
SOURCE = Path(__file__).with_name("_kernel.c")
# A library named after this module would be imported in its place.
LIBRARY = SOURCE.with_name("libabstain" + _ENDINGS.get(sys.platform, ".so"))

# The suffix of the seal file.
SEAL = ".seal"

# Cells are numbered with 32 bits, and sums over more of them would not be accurate enough.
MOST_CELLS = MOST_UNITS = (1 << 31) - 1
_NO_MEMORY, _STOPPED, _TOO_MANY = 1, 2, 3
_BYTES, _DOUBLES = 0, 1
# The limits of the lanes and bytes of a group. As many lanes as a cache line has bytes are fastest.
FEWEST_LANES, _MOST_LANES, _MOST_BYTES = 8, 64, 1 << 25
# The bytes of a cache line.
_LINE = 64
# The processor levels that the library may have been compiled for, in the order of the C source.
_LEVELS = ("", "_avx2", "_avx512")


class Unusable(Exception):  # noqa: N818  (it is always caught in this module)
    """The reason why a library cannot be used."""


@dataclass(frozen=True, slots=True)
class Kernel:
    """The loaded and checked library, or the reason why numpy is used instead."""

    library: Library | None = None
    reason: str = ""

    @property
    def compiled(self) -> bool:
        """True if the compiled library is used."""
        return self.library is not None


class Library:
    """A shared library at one of its processor levels; the functions have the names of the C source.

    Attributes:
        levels: the suffixes of the levels that this machine supports, lowest first.
    """

    def __init__(self, shared: ctypes.CDLL, suffix: str | None = None) -> None:
        self._shared = shared
        supported = _LEVELS[: shared.abstain_level() + 1]
        self.levels = tuple(level for level in supported if hasattr(shared, f"abstain_integrate{level}"))
        level = self.levels[-1] if suffix is None else suffix
        self.stream_size = self._function("stream_size", level, restype=ctypes.c_int64)
        self.seed = self._function("seed", level, ctypes.c_void_p, ctypes.c_uint32)
        numbers, pointers = [ctypes.c_int64] * 5, [ctypes.c_void_p] * 4
        self.draw = self._function("draw", level, ctypes.c_void_p, ctypes.c_uint32, *numbers, *pointers)
        sizes = (ctypes.c_uint32, *[ctypes.c_int64] * 4)
        self.draw_buffer_size = self._function("draw_buffer_size", level, *sizes, restype=ctypes.c_int64)
        self.evaluate = self._function("evaluate", level, ctypes.c_void_p)
        self.integrate = self._function("integrate", level, ctypes.c_void_p)

    def _function(self, name: str, suffix: str, *arguments: Any, restype: Any = ctypes.c_int) -> Any:
        function = getattr(self._shared, f"abstain_{name}{suffix}")
        function.argtypes, function.restype = arguments, restype
        return function

    def at_level(self, suffix: str) -> Library:
        """Return the same library at another level."""
        return Library(self._shared, suffix)


class _EvaluationStruct(ctypes.Structure):
    _fields_ = (
        *(
            (name, ctypes.c_int64)
            for name in ("keys", "units", "vectors", "width", "columns", "cells", "stride")
        ),
        *((name, ctypes.c_void_p) for name in ("unit", "ends", "sums", "ones", "weights")),
        ("kind", ctypes.c_int64),
        ("out", ctypes.c_void_p),
        ("stop", ctypes.c_void_p),
    )


class _IntegrationStruct(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_int64) for name in ("keys", "units", "vectors", "width", "stride")),
        *((name, ctypes.c_void_p) for name in ("unit", "ends", "count", "loss", "value", "weights")),
        *((name, ctypes.c_int64) for name in ("kind", "wanted")),
        ("table", ctypes.c_void_p),
        *((name, ctypes.c_int64) for name in ("counts", "thresholds")),
        *((name, ctypes.c_void_p) for name in ("threshold", "with_areas")),
        ("bounds", ctypes.c_int64),
        *((name, ctypes.c_void_p) for name in ("bound", "out", "stop")),
    )


@cache
def source_hash() -> str:
    """Return the hash of the C source."""
    return hashlib.sha256(SOURCE.read_bytes()).hexdigest()[:16]


def find(path: Path) -> Kernel:
    """Return the kernel of a library, or the reason why it cannot be used."""
    try:
        return Kernel(_opened(path))
    except Unusable as problem:
        return Kernel(reason=str(problem))


def _opened(path: Path) -> Library:
    if not path.exists():
        raise Unusable("it was not built when abstain was installed")
    damaged = Unusable(f"{path.name} is damaged or built for another machine; reinstall abstain")
    version = f"{ABI} {source_hash()}"
    try:
        # Loading a truncated library would end the process, so its content is checked first.
        seal = path.with_name(path.name + SEAL).read_text(encoding="ascii", errors="replace")
        built_from, _, content = seal.rpartition(" ")
        if hashlib.sha256(path.read_bytes()).hexdigest() != content:
            raise damaged
        shared = ctypes.CDLL(str(path))
        shared.abstain_version.restype = ctypes.c_char_p
        loaded_version = shared.abstain_version().decode("ascii", "replace")
    except (OSError, AttributeError):
        raise damaged from None
    if {built_from, loaded_version} != {version}:
        raise Unusable(f"{path.name} was built from another source; reinstall abstain")
    return Library(shared)


@cache
def _installed() -> Kernel:
    return find(LIBRARY)


_forced: list[Kernel] = []


def kernel() -> Kernel:
    """Return the kernel in use: the library, unless it is unusable or the environment selects numpy."""
    if _forced:
        return _forced[-1]
    choice = os.environ.get(CHOICE) or "auto"
    if choice not in _CHOICES:
        raise ArgumentError(f"{CHOICE} must be one of {', '.join(_CHOICES)}, got {choice!r}")
    if choice == "skip":
        return Kernel(reason=f"{CHOICE} is skip")
    installed = _installed()
    if choice == "require" and not installed.compiled:
        raise ArgumentError(
            f"{CHOICE} is require, but the compiled kernel cannot be used: {installed.reason}"
        )
    return installed


@contextmanager
def use_kernel(chosen: Kernel) -> Iterator[Kernel]:
    """Use another kernel within a block; `Kernel()` is numpy.

    >>> with use_kernel(Kernel()):
    ...     description()
    'numpy'
    """
    _forced.append(chosen)
    try:
        yield chosen
    finally:
        _forced.pop()


def description() -> str:
    """Return the kernel in use, "compiled" or "numpy", and the reason if it is numpy."""
    chosen = kernel()
    if chosen.compiled:
        return "compiled"
    return f"numpy ({chosen.reason})" if chosen.reason else "numpy"


def lanes_for(units: int, vectors: int) -> int:
    """Return the number of lanes of a group of weight vectors: up to 64, fewer if vectors are few or very long.

    >>> lanes_for(100, 1000), lanes_for(100, 3), lanes_for(10_000_000, 1000)
    (64, 8, 8)
    """
    width = _MOST_LANES
    while width > FEWEST_LANES and (units * width > _MOST_BYTES or width >= 2 * vectors):
        width //= 2
    return width


class RandomStream:
    """The draws of ``numpy.random.RandomState(seed).randint`` (MT19937), counted by unit.

    Several threads may draw from a shared stream at the same time. Each vector is drawn by one thread, and its number
    is its position in the stream.
    """

    def __init__(self, library: Library, seed: int, *, shared: bool = False) -> None:
        self._library, self._shared = library, shared
        self._state = _aligned((library.stream_size(),))
        library.seed(_address(self._state), seed)
        # Buffers are reused, because allocating them takes as long as filling them.
        self._rows: list[NDArray[np.uint8]] = []
        self._spare: list[NDArray[np.uint8]] = []

    def multiplicities(
        self,
        units: int,
        vectors: int,
        *,
        draws: int | None = None,
        number: NDArray[np.int64] | None = None,
        stop: StopFlag | None = None,
    ) -> NDArray[np.uint8] | NDArray[np.float64]:
        """Return how often each unit was drawn, as lanes of bytes, or of doubles if a multiplicity exceeds 255.

        Args:
            units: the number of units.
            vectors: the number of vectors.
            draws: the number of draws per vector. Default: the number of units, with which no multiplicity exceeds 255.
                With any other number, only one thread may draw.
            number: receives the position of each vector in the stream.
            stop: the flag that requests a stop.
        """
        number = np.empty(vectors, np.int64) if number is None else number
        width = lanes_for(units, vectors)
        lanes = _reused(self._spare, (-(-vectors // width), units, width))
        if draws is None:
            return self._count_draws(lanes, units, number, stop)
        before = self._state.copy()
        try:
            return self._count_draws(lanes, draws, number, stop)
        except OverflowError:
            self._state[:] = before
            width = FEWEST_LANES
            return self._count_draws(np.empty((-(-vectors // width), units, width)), draws, number, stop)

    def take_back(self, lanes: NDArray[Any]) -> None:
        """Keep the memory of lanes that are no longer needed, to use it again."""
        if lanes.dtype == np.uint8:
            self._spare.append(lanes)

    def _count_draws(
        self, lanes: _Lanes, draws: int, number: NDArray[np.int64], stop: StopFlag | None
    ) -> _Lanes:
        units, width = lanes.shape[1:]
        kind, shared = _kind(lanes), int(self._shared)
        rows = _reused(self._rows, (self._library.draw_buffer_size(units, draws, width, kind, shared),))
        flag = np.zeros(1, np.int32) if stop is None else stop.flag
        status = self._library.draw(
            _address(self._state),
            units,
            draws,
            len(number),
            width,
            kind,
            shared,
            _address(rows),
            _address(lanes),
            _address(number),
            _address(flag),
        )
        self._rows.append(rows)
        _check(status)
        return lanes


def _reused(buffers: list[NDArray[np.uint8]], shape: tuple[int, ...]) -> NDArray[np.uint8]:
    """Return one of the kept buffers, or a new one if none has this shape."""
    while buffers:
        with suppress(IndexError):  # another thread took the last buffer
            buffer = buffers.pop()
            if buffer.shape == shape:
                return buffer
    return _aligned(shape)


def _aligned(shape: tuple[int, ...]) -> NDArray[np.uint8]:
    """Return new memory that begins at a cache line, so that the lanes of a unit are in as few lines as possible."""
    size = math.prod(shape)
    buffer = np.empty(size + _LINE, np.uint8)
    start = -buffer.ctypes.data % _LINE
    return buffer[start : start + size].reshape(shape)


def evaluate(library: Library, cells: Any, batch: WeightBatch) -> NDArray[np.float64]:
    """Return the sums by key (columns, batch, keys) of the cells of cluster sums."""
    if batch.total is not None and cells.even is not None:
        return np.repeat(cells.even * batch.total, len(batch)).reshape(len(cells.sums), len(batch), 1)
    lanes = batch.lanes
    columns, keys, stride = len(cells.sums), cells.keys, _padded_length(batch)
    out = np.empty((columns, keys, stride))
    arguments = _EvaluationStruct(
        keys=keys,
        units=batch.units,
        vectors=len(batch),
        width=lanes.shape[2],
        columns=columns,
        cells=cells.sums.shape[1],
        stride=stride,
        unit=_address(cells.unit),
        ends=_address(cells.ends),
        sums=_address(cells.sums),
        ones=_address(cells.ones),
        weights=_address(lanes),
        kind=_kind(lanes),
        out=_address(out),
        stop=_address(batch.stop.flag),
    )
    _check(library.evaluate(ctypes.addressof(arguments)))
    return out[:, :, : len(batch)].transpose(0, 2, 1)


def integrate(
    library: Library,
    cells: Any,
    batch: WeightBatch,
    *,
    wanted: int,
    value: NDArray[np.float64] | None,
    table: NDArray[np.float64] | None = None,
    threshold: NDArray[np.float64],
    with_areas: NDArray[np.uint8],
    bound: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Integrate along the ranks; returns (quantities, batch) in the order of the enumerations of the C source.

    A count beyond the table of growth is an OverflowError.
    """
    lanes = batch.lanes
    stride = _padded_length(batch) + FEWEST_LANES
    out = np.empty((FIXED + len(bound) + PER_CROSSING * len(threshold), stride))
    padded = np.empty((len(threshold), stride))
    padded[:, len(batch) :] = np.inf
    padded[:, : len(batch)] = threshold
    arguments = _IntegrationStruct(
        keys=cells.keys,
        units=batch.units,
        vectors=len(batch),
        width=lanes.shape[2],
        stride=stride,
        unit=_address(cells.unit),
        ends=_address(cells.ends if value is not None else cells.ends_if_several),
        count=_address(cells.counts),
        loss=_address(cells.sums[1]),
        value=_address(value),
        weights=_address(lanes),
        kind=_kind(lanes),
        wanted=wanted,
        table=_address(table),
        counts=0 if table is None else len(table),
        thresholds=len(threshold),
        threshold=_address(padded),
        with_areas=_address(with_areas),
        bounds=len(bound),
        bound=_address(bound),
        out=_address(out),
        stop=_address(batch.stop.flag),
    )
    _check(library.integrate(ctypes.addressof(arguments)))
    return out[:, : len(batch)]


# The options and the results of an integration, in the order of the enumerations of the C source.
WANT_RISK, WANT_HULL, WANT_GROWTH, BY_STRETCHES = 1, 2, 4, 8
COUNT, LOSS, FIRST_COUNT, FIRST_LOSS, RISK_AREA, LOSS_AREA, HULL_AREA, GROWTH, FIXED = range(9)
PER_CROSSING = 6


def _address(array: NDArray[Any] | None) -> int | None:
    # Faster than `array.ctypes.data`.
    return None if array is None else int(array.__array_interface__["data"][0])


def _padded_length(batch: WeightBatch) -> int:
    """Return the length of a batch, padded to a multiple of the fewest lanes."""
    return -(-len(batch) // FEWEST_LANES) * FEWEST_LANES


def _kind(lanes: NDArray[Any]) -> int:
    return _BYTES if lanes.dtype == np.uint8 else _DOUBLES


def _check(status: int) -> None:
    if status == _NO_MEMORY:
        raise MemoryError
    if status == _STOPPED:
        raise KeyboardInterrupt
    if status == _TOO_MANY:
        raise OverflowError("a multiplicity exceeds 255, or a count is beyond the table of growth")
