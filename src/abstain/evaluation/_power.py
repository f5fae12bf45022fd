"""Power: how many clusters a new study needs to detect a difference between two systems by a metric.

The standard error of a difference falls with the square root of the number of clusters, so a pilot study shows how many
are needed. A pilot of two systems has the standard error of their difference. A pilot of one system has that of its
metric, ``se``; for a difference to a second system on the same items it is ``se * sqrt(2 * (1 - r))`` with an assumed
correlation ``r`` between the two. Without a pilot, the standard error is an argument.
"""

from __future__ import annotations

import math
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from abstain import _validate
from abstain.errors import ArgumentError, DataError, at
from abstain.evaluation._evaluate import evaluate
from abstain.inference import POWER, clusters_needed
from abstain.metrics.registry import find_metric

if TYPE_CHECKING:
    from collections.abc import Mapping

    from abstain.metrics.registry import MetricLike

# A usual correlation between two systems on the same items, if no better value is known.
CORRELATION = 0.5


@dataclass(frozen=True, slots=True)
class PowerAnswer:
    """The number of clusters needed to detect a difference.

    Attributes:
        metric: the metric.
        difference: the size of the difference.
        clusters_needed: the total number of clusters; infinite for a difference of 0.
        se: the standard error of the difference with as many clusters as the pilot has.
        clusters: number of clusters of the pilot, or those that the standard error was assumed for.
        correlation: the assumed correlation between the systems; NaN if none was needed.
        level: the confidence level of the test.
        power: the probability of detecting the difference.
        cluster_noun: the noun for a cluster.
        provenance: the origin of the systems of the pilot.

    >>> print(PowerAnswer("augrc", 0.02, 126.0, 0.0125, 41, 0.5, 0.95, 0.8))
    126 clusters are needed to detect a difference of 0.02 in augrc with a power of 80% at level 0.95
    """

    metric: str
    difference: float
    clusters_needed: float
    se: float
    clusters: int
    correlation: float
    level: float
    power: float
    cluster_noun: str = "cluster"
    provenance: tuple[Mapping[str, Any], ...] = ()

    def __str__(self) -> str:
        needed = f"no number of {self.cluster_noun}s is enough"
        if math.isfinite(self.clusters_needed):
            needed = f"{self.clusters_needed:,.0f} {self.cluster_noun}s are needed"
        detected = f"to detect a difference of {self.difference:g} in {self.metric}"
        return f"{needed} {detected} with a power of {100 * self.power:g}% at level {self.level:g}"

    @property
    def basis(self) -> str:
        """The assumptions of the calculation, as a sentence."""
        error = f"assumed: a standard error of {self.se:.3g} with {self.clusters:,} {self.cluster_noun}s"
        if math.isnan(self.correlation):
            return f"{error}, and more {self.cluster_noun}s of the same kind"
        return f"{error}, for a correlation of {self.correlation:g} between the systems"


def power(
    *pilot: Any,
    metric: MetricLike,
    difference: float,
    correlation: float = CORRELATION,
    se: float | None = None,
    clusters: int | None = None,
    power: float = POWER,
    level: float = 0.95,
    **options: Any,
) -> PowerAnswer:
    """Return how many clusters a new study needs to detect a difference.

    Args:
        pilot: one system, or two on the same items, as for `abstain.evaluate`. Pass no pilot with `se` and `clusters`.
        metric: the metric.
        difference: the smallest difference that would matter.
        correlation: the assumed correlation between two systems on the same items, for a pilot of one system.
        se: the standard error of the difference, if there is no pilot.
        clusters: the number of clusters that `se` is for.
        power: the probability of detecting the difference.
        level: the confidence level of the test.
        **options: further arguments of `abstain.evaluate`, such as ``confidence`` and ``loss``.

    >>> from abstain import Items
    >>> items = Items.from_arrays([1] * 30, [1] * 24 + [0] * 6, confidence=[0.9] * 30)
    >>> print(power(items, metric="accuracy", difference=0.1))
    132 rows are needed to detect a difference of 0.1 in accuracy with a power of 80% at level 0.95
    """
    named = find_metric(metric) if isinstance(metric, str) else metric
    key = getattr(named, "key", str(getattr(named, "name", metric)))
    size = _validate.real(difference, "difference")
    if not size > 0.0:
        raise ArgumentError(f"difference must be greater than 0, got {size:g}")
    noun, shared = "cluster", math.nan
    provenance: tuple[Mapping[str, Any], ...] = ()
    if not pilot:
        if se is None or clusters is None:
            raise ArgumentError(
                "without a pilot, pass a standard error and the number of clusters that it is for (se=, clusters=)"
            )
        error, count = _validate.real(se, "se"), _validate.whole(clusters, "clusters", least=2)
        if not error > 0.0:
            raise ArgumentError(f"se must be greater than 0, got {error:g}")
    else:
        if se is not None or clusters is not None:
            raise ArgumentError("se= and clusters= replace a pilot; pass either these or the pilot")
        result = evaluate(*pilot, metrics=metric, selective=False, level=level, resamples=0, **options)
        noun = result.cluster_noun
        provenance = tuple(system.provenance for system in result.systems.values())
        if len(result.systems) > 2:
            raise ArgumentError(f"a pilot has one system or two, got {len(result.systems)}")
        if len(result.systems) == 2:
            left, right = result.systems
            estimate = result.difference(left, right, key).estimate
            error = estimate.se
        else:
            shared = _validate.real(correlation, "correlation")
            if not -1.0 <= shared < 1.0:
                raise ArgumentError(f"correlation must be at least -1 and less than 1, got {shared:g}")
            estimate = result.only.estimate(key)
            error = estimate.se * math.sqrt(2.0 * (1.0 - shared))
        count = estimate.clusters
        if math.isnan(error) or error == 0.0:
            why = estimate.reason or "it does not vary between the clusters of the pilot"
            paths = [system["path"] for system in provenance if "path" in system]
            with at(*paths, kind=DataError) if paths else nullcontext():
                raise DataError(f"{key} has no standard error: {why}")
    needed = clusters_needed(size, error, count, level=level, power=power)
    return PowerAnswer(key, size, needed, error, count, shared, level, power, noun, provenance)
