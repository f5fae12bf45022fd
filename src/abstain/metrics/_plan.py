"""What a plan is: data prepared once, then weighed many times.

A bootstrap resample gives every cluster a whole number of copies. A plan sorts, bins and sums its rows once;
then it maps a batch of cluster weights to metric values, so that no metric is ever recomputed on copied rows.
The point estimate is the plan at weights all one. The interface is narrow on purpose: a compiled kernel can
stand behind it unseen.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Plan"]


class Plan(Protocol):
    """Prepared data that turn cluster weights into metric values."""

    @property
    def names(self) -> tuple[str, ...]:
        """The metrics, one a column of the result."""

    @property
    def clusters(self) -> int:
        """How many clusters a weight vector has."""

    @property
    def width(self) -> int:
        """How many numbers one resample occupies while it is worked on; batches are sized by it."""

    def __call__(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Map weights (resamples, clusters) to values (resamples, metrics); NaN where a metric is undefined."""
