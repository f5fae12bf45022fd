"""Measures: what turns weights into metrics.

A measure prepares its data once; after that it only sees weights. Most measures are tallies with a finisher; a few
metrics are no function of sums (kernels over rows, a metric that a user wrote), and their measures weigh rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from abstain.tally._batch import Batch
from abstain.tally._table import Tally

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Indices = NDArray[np.intp]
    Values = Sequence[float] | Floats | NDArray[np.bool_]

__all__ = ["Measure"]


@dataclass(frozen=True, eq=False, slots=True)
class Measure:
    """Data prepared once that turn weights into metrics.

    Attributes:
        names: the metrics, one per column of the result.
        units: how many units a weight vector has.
        width: how many numbers one weight vector occupies while it is worked on; batches are sized by it.
        finish: maps a batch to values (batch, metrics), NaN where a metric is undefined.

    >>> accuracy = Measure.of_sums(("accuracy",), [[1.0, 0.0]], unit=[0, 1], units=2, finish=lambda n, hit: [hit / n])
    >>> accuracy.points, accuracy(np.array([[2.0, 0.0]]))
    (array([0.5]), array([[1.]]))
    """

    names: tuple[str, ...]
    units: int
    width: int
    finish: Callable[[Batch], Floats]

    @classmethod
    def of_sums(
        cls,
        names: tuple[str, ...],
        columns: Sequence[Values],
        *,
        unit: Sequence[int] | Indices,
        units: int,
        finish: Callable[..., Sequence[Floats]],
        weight: Floats | None = None,
    ) -> Measure:
        """Return metrics that are functions of sums over rows: `finish` gets the count, then the sum of each column."""
        key = np.zeros(len(unit), np.intp)
        tally = Tally.of_rows(unit=unit, key=key, columns=columns, units=units, keys=1, weight=weight)

        def finished(batch: Batch) -> Floats:
            return np.stack(finish(*tally.weigh(batch)[:, :, 0]), axis=1)

        return cls(names, units, max(units, len(columns)), finished)

    @classmethod
    def undefined(cls, names: tuple[str, ...], units: int) -> Measure:
        """Return metrics of which nothing is known: NaN, whatever the weights."""
        return cls(names, units, 1, lambda batch: np.full((len(batch), len(names)), np.nan))

    @classmethod
    def joined(cls, parts: Sequence[Measure], order: Sequence[int] | None = None) -> Measure:
        """Return several measures over the same units as one: their columns side by side, or in another order."""
        if len(parts) == 1 and order is None:
            return parts[0]
        names = tuple(name for part in parts for name in part.names)
        places = list(range(len(names))) if order is None else list(order)

        def finished(batch: Batch) -> Floats:
            return np.concatenate([part.finish(batch) for part in parts], axis=1)[:, places]

        width = max(part.width for part in parts)
        return cls(tuple(names[place] for place in places), parts[0].units, width, finished)

    def only(self, *places: int) -> Measure:
        """Return some of the columns."""
        return Measure.joined([self], [place % len(self.names) for place in places])

    def __call__(self, weights: Floats | Batch) -> Floats:
        """Map weights (batch, units) to values (batch, metrics)."""
        return self.finish(weights if isinstance(weights, Batch) else Batch(weights))

    @property
    def points(self) -> Floats:
        """The point estimates: the values at weights all one."""
        return self(np.ones((1, self.units)))[0]

    @property
    def point(self) -> float:
        """The first of the point estimates."""
        return float(self.points[0])
