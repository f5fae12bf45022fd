"""The batch of weight vectors under work, as numpy takes them and as the compiled kernel does.

The kernel takes vectors in groups of eight, their *lanes*: an array (groups, units, 8) of bytes where weights are
multiplicities up to 255, else of doubles; lanes beyond the last vector are 0. Each form is made of the other when it
is first asked for.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Lanes = NDArray[np.uint8] | NDArray[np.float64]

__all__ = ["LANES", "Batch", "Stop"]

LANES = 8


class Stop:
    """A flag that asks the kernel to leave off; it looks at it many times per millisecond."""

    def __init__(self) -> None:
        self.flag = np.zeros(1, np.int32)

    def set(self) -> None:
        """Ask."""
        self.flag[0] = 1

    @property
    def asked(self) -> bool:
        """True once somebody asked."""
        return bool(self.flag[0])


class Batch:
    """Weights (batch, units) under work, and what several measures have in common, worked out once.

    >>> batch = Batch(np.array([[1.0, 2.0]]))
    >>> batch.lanes.shape, batch.lanes[0, :, 0].tolist()
    ((1, 2, 8), [1, 2])
    >>> Batch.of_lanes(batch.lanes, 1).weights.tolist()
    [[1.0, 2.0]]
    """

    def __init__(self, weights: Floats, stop: Stop | None = None) -> None:
        self.weights = weights
        self.units = weights.shape[1]
        self.stop = Stop() if stop is None else stop
        self._length = len(weights)
        self._done: dict[Hashable, Any] = {}

    @classmethod
    def of_lanes(cls, lanes: Lanes, length: int, stop: Stop | None = None) -> Batch:
        """Return the batch of the first so many vectors of some lanes."""
        made = cls.__new__(cls)
        made.units, made._length, made._done = lanes.shape[1], length, {}
        made.stop = Stop() if stop is None else stop
        made.lanes = lanes
        return made

    def __len__(self) -> int:
        return self._length

    @cached_property
    def weights(self) -> Floats:
        """The weights (batch, units)."""
        every = self.lanes.transpose(0, 2, 1).reshape(-1, self.units)
        return every[: self._length].astype(np.float64)

    @cached_property
    def lanes(self) -> Lanes:
        """The weights (groups, units, 8)."""
        weights = self.weights
        small = bool(((weights >= 0.0) & (weights <= 255.0) & (weights == np.floor(weights))).all())
        groups = -(-self._length // LANES)
        padded = np.zeros((groups * LANES, self.units), np.uint8 if small else np.float64)
        padded[: self._length] = weights
        return np.ascontiguousarray(padded.reshape(groups, LANES, self.units).transpose(0, 2, 1))

    @property
    def whole(self) -> bool:
        """True where all weights are multiplicities up to 255."""
        return self.lanes.dtype == np.uint8

    def once(self, key: Hashable, work: Callable[[], Any]) -> Any:
        """Return what `work` gives, calling it the first time that `key` is asked for."""
        if key not in self._done:
            self._done[key] = work()
        return self._done[key]
