"""The door to the compiled kernel: a C library that is found, checked and called; where there is none, numpy weighs.

The library stands beside this file and is built when the package is (see ``hatch_build.py``), and beside it a seal that
says which source it was built from and what it must hold. One that is missing, damaged or built from another source is
not used, and `description` says so. With
``ABSTAIN_KERNEL=skip`` in the environment numpy weighs, with ``require`` anything but the kernel is an error.

Everything here is arrays in, arrays out. The kernel gives the same numbers as its twin in numpy, to the last few bits,
and the same whatever the processor and the number of threads.
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
# Not called after this module, which Python would then take it for.
LIBRARY = SOURCE.with_name("libabstain" + _ENDINGS.get(sys.platform, ".so"))

# What is added to the library's name for the file that says what it was built from and what it must hold.
SEAL = ".seal"

# Cells are numbered by 32 bits, and a sum over more of them would lose digits that it needs.
MOST_CELLS = MOST_UNITS = (1 << 31) - 1
_NO_MEMORY, _STOPPED, _TOO_MANY = 1, 2, 3
_BYTES, _DOUBLES = 0, 1
# How many lanes a group may have; those of a line of the memory serve best, and no group takes very many bytes.
FEWEST_LANES, _MOST_LANES, _MOST_BYTES = 8, 64, 1 << 25
# How many bytes a line of the memory has.
_LINE = 64
# The levels that the library may have been compiled for, as the source numbers them.
_LEVELS = ("", "_avx2", "_avx512")


class Unusable(Exception):  # noqa: N818  (it is a finding, and never leaves this file)
    """Why a library cannot be used, as a sentence."""


@dataclass(frozen=True, slots=True)
class Kernel:
    """The library, loaded and checked; or, without one, the reason why numpy weighs."""

    library: Library | None = None
    reason: str = ""

    @property
    def compiled(self) -> bool:
        """True where the library weighs."""
        return self.library is not None


class Library:
    """A shared library at one of the levels that it was compiled for; the functions have the names of the source.

    Attributes:
        levels: the suffixes of the levels that this machine can run, lowest first.
    """

    def __init__(self, shared: ctypes.CDLL, suffix: str | None = None) -> None:
        self._shared = shared
        reached = _LEVELS[: shared.abstain_level() + 1]
        self.levels = tuple(level for level in reached if hasattr(shared, f"abstain_walk{level}"))
        chosen = self.levels[-1] if suffix is None else suffix
        self.stream_size = self._function("stream_size", chosen, restype=ctypes.c_int64)
        self.seed = self._function("seed", chosen, ctypes.c_void_p, ctypes.c_uint32)
        numbers, places = [ctypes.c_int64] * 5, [ctypes.c_void_p] * 4
        self.draw = self._function("draw", chosen, ctypes.c_void_p, ctypes.c_uint32, *numbers, *places)
        room = (ctypes.c_uint32, *[ctypes.c_int64] * 4)
        self.draw_room = self._function("draw_room", chosen, *room, restype=ctypes.c_int64)
        self.weigh = self._function("weigh", chosen, ctypes.c_void_p)
        self.walk = self._function("walk", chosen, ctypes.c_void_p)

    def _function(self, name: str, suffix: str, *arguments: Any, restype: Any = ctypes.c_int) -> Any:
        function = getattr(self._shared, f"abstain_{name}{suffix}")
        function.argtypes, function.restype = arguments, restype
        return function

    def at_level(self, suffix: str) -> Library:
        """Return the same library at another level."""
        return Library(self._shared, suffix)


class _Weighing(ctypes.Structure):
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


class _WalkStruct(ctypes.Structure):
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
    """Return what tells one source of the kernel from another."""
    return hashlib.sha256(SOURCE.read_bytes()).hexdigest()[:16]


def find(path: Path) -> Kernel:
    """Return the kernel of a library, or why it cannot be used."""
    try:
        return Kernel(_opened(path))
    except Unusable as problem:
        return Kernel(reason=str(problem))


def _opened(path: Path) -> Library:
    if not path.exists():
        raise Unusable("it was not built when abstain was installed")
    damaged = Unusable(f"{path.name} is damaged or made for another machine; install abstain anew")
    version = f"{ABI} {source_hash()}"
    try:
        # A library that was cut off would end the process when it is loaded, so it is looked at before.
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
        raise Unusable(f"{path.name} was built from another source; install abstain anew")
    return Library(shared)


@cache
def _installed() -> Kernel:
    return find(LIBRARY)


_forced: list[Kernel] = []


def kernel() -> Kernel:
    """Return what weighs: the library, unless it is unusable or the environment asks for numpy."""
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
def weigh_with(chosen: Kernel) -> Iterator[Kernel]:
    """Let another kernel weigh within a block; `Kernel()` is numpy.

    >>> with weigh_with(Kernel()):
    ...     description()
    'numpy'
    """
    _forced.append(chosen)
    try:
        yield chosen
    finally:
        _forced.pop()


def description() -> str:
    """Return which weighs, "compiled" or "numpy", and why where it is not the library."""
    chosen = kernel()
    if chosen.compiled:
        return "compiled"
    return f"numpy ({chosen.reason})" if chosen.reason else "numpy"


def lanes_for(units: int, vectors: int) -> int:
    """Return how many lanes a group of weight vectors has: up to 64, fewer where vectors are few or very long.

    >>> lanes_for(100, 1000), lanes_for(100, 3), lanes_for(10_000_000, 1000)
    (64, 8, 8)
    """
    width = _MOST_LANES
    while width > FEWEST_LANES and (units * width > _MOST_BYTES or width >= 2 * vectors):
        width //= 2
    return width


class RandomStream:
    """MT19937 as ``numpy.random.RandomState(seed).randint`` draws from it, counted at once.

    Threads may draw at the same time from a stream that is shared: each vector is drawn by one of them, and its number
    says which of the stream's it is.
    """

    def __init__(self, library: Library, seed: int, *, shared: bool = False) -> None:
        self._library, self._shared = library, shared
        self._state = _aligned((library.stream_size(),))
        library.seed(_place(self._state), seed)
        # Kept, because memory that is asked for anew costs as much as it takes to fill it.
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
        """Return how often each unit was drawn, as lanes: bytes, or doubles where some multiplicity is beyond 255.

        Args:
            units: how many there are.
            vectors: how many times they are drawn from.
            draws: how many draws are taken each time; as many as there are units when left out, and then no
                multiplicity is beyond 255. With any other number, one thread alone may draw.
            number: takes the number of each vector, counted from the stream's first.
            stop: the flag that asks to leave off.
        """
        number = np.empty(vectors, np.int64) if number is None else number
        width = lanes_for(units, vectors)
        lanes = _kept(self._spare, (-(-vectors // width), units, width))
        if draws is None:
            return self._counted(lanes, units, number, stop)
        before = self._state.copy()
        try:
            return self._counted(lanes, draws, number, stop)
        except OverflowError:
            self._state[:] = before
            width = FEWEST_LANES
            return self._counted(np.empty((-(-vectors // width), units, width)), draws, number, stop)

    def take_back(self, lanes: NDArray[Any]) -> None:
        """Use the memory of lanes again that nobody needs any more."""
        if lanes.dtype == np.uint8:
            self._spare.append(lanes)

    def _counted(self, lanes: _Lanes, draws: int, number: NDArray[np.int64], stop: StopFlag | None) -> _Lanes:
        units, width = lanes.shape[1:]
        kind, shared = _kind(lanes), int(self._shared)
        rows = _kept(self._rows, (self._library.draw_room(units, draws, width, kind, shared),))
        flag = np.zeros(1, np.int32) if stop is None else stop.flag
        ended = self._library.draw(
            _place(self._state),
            units,
            draws,
            len(number),
            width,
            kind,
            shared,
            _place(rows),
            _place(lanes),
            _place(number),
            _place(flag),
        )
        self._rows.append(rows)
        _check(ended)
        return lanes


def _kept(kept: list[NDArray[np.uint8]], shape: tuple[int, ...]) -> NDArray[np.uint8]:
    """Return memory that was kept, or new where none of this shape was."""
    while kept:
        with suppress(IndexError):  # another thread was faster
            spare = kept.pop()
            if spare.shape == shape:
                return spare
    return _aligned(shape)


def _aligned(shape: tuple[int, ...]) -> NDArray[np.uint8]:
    """Return new memory that begins with a line, so that no unit's lanes lie in one more line than they need."""
    size = math.prod(shape)
    room = np.empty(size + _LINE, np.uint8)
    start = -room.ctypes.data % _LINE
    return room[start : start + size].reshape(shape)


def weigh(library: Library, cells: Any, batch: WeightBatch) -> NDArray[np.float64]:
    """Return the sums by key (columns, batch, keys) of a tally's cells."""
    if batch.total is not None and cells.even is not None:
        return np.repeat(cells.even * batch.total, len(batch)).reshape(len(cells.sums), len(batch), 1)
    lanes = batch.lanes
    columns, keys, stride = len(cells.sums), cells.keys, _room(batch)
    out = np.empty((columns, keys, stride))
    asked = _Weighing(
        keys=keys,
        units=batch.units,
        vectors=len(batch),
        width=lanes.shape[2],
        columns=columns,
        cells=cells.sums.shape[1],
        stride=stride,
        unit=_place(cells.unit),
        ends=_place(cells.ends),
        sums=_place(cells.sums),
        ones=_place(cells.ones),
        weights=_place(lanes),
        kind=_kind(lanes),
        out=_place(out),
        stop=_place(batch.stop.flag),
    )
    _check(library.weigh(ctypes.addressof(asked)))
    return out[:, :, : len(batch)].transpose(0, 2, 1)


def walk(
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
    """Walk along ranks; returns (quantities, batch) in the order of the enumerations of the source.

    A count beyond the table of growth is an OverflowError.
    """
    lanes = batch.lanes
    stride = _room(batch) + FEWEST_LANES
    out = np.empty((FIXED + len(bound) + PER_CROSSING * len(threshold), stride))
    padded = np.empty((len(threshold), stride))
    padded[:, len(batch) :] = np.inf
    padded[:, : len(batch)] = threshold
    asked = _WalkStruct(
        keys=cells.keys,
        units=batch.units,
        vectors=len(batch),
        width=lanes.shape[2],
        stride=stride,
        unit=_place(cells.unit),
        ends=_place(cells.ends if value is not None else cells.several),
        count=_place(cells.counts),
        loss=_place(cells.sums[1]),
        value=_place(value),
        weights=_place(lanes),
        kind=_kind(lanes),
        wanted=wanted,
        table=_place(table),
        counts=0 if table is None else len(table),
        thresholds=len(threshold),
        threshold=_place(padded),
        with_areas=_place(with_areas),
        bounds=len(bound),
        bound=_place(bound),
        out=_place(out),
        stop=_place(batch.stop.flag),
    )
    _check(library.walk(ctypes.addressof(asked)))
    return out[:, : len(batch)]


# What a walk writes, in order: the enumerations of the source.
WANT_RISK, WANT_HULL, WANT_GROWTH, BY_STRETCHES = 1, 2, 4, 8
COUNT, LOSS, FIRST_COUNT, FIRST_LOSS, RISK_AREA, LOSS_AREA, HULL_AREA, GROWTH, FIXED = range(9)
PER_CROSSING = 6


def _place(array: NDArray[Any] | None) -> int | None:
    # Twice as fast as `array.ctypes.data`.
    return None if array is None else int(array.__array_interface__["data"][0])


def _room(batch: WeightBatch) -> int:
    """How many places the results of a batch need: whole packs."""
    return -(-len(batch) // FEWEST_LANES) * FEWEST_LANES


def _kind(lanes: NDArray[Any]) -> int:
    return _BYTES if lanes.dtype == np.uint8 else _DOUBLES


def _check(ended: int) -> None:
    if ended == _NO_MEMORY:
        raise MemoryError
    if ended == _STOPPED:
        raise KeyboardInterrupt
    if ended == _TOO_MANY:
        raise OverflowError("a multiplicity is beyond 255, or a count beyond the table of growth")
