"""Power: how many clusters a new study needs to tell two systems apart by a metric.

The standard error of a difference falls with the square root of the clusters, so that what a pilot shows for its own
clusters says how many would do. A pilot of two systems has the standard error of their difference. A pilot of one has
that of the metric alone; a second system on the same items would make it ``se * sqrt(2 * (1 - r))``, with the
correlation ``r`` between the two, which is assumed. Without a pilot, the standard error itself is assumed.
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

# What two systems on the same items often have in common; to be replaced by what is known of them.
CORRELATION = 0.5


@dataclass(frozen=True, slots=True)
class PowerAnswer:
    """How many clusters tell a difference of some size.

    Attributes:
        metric: by which metric.
        difference: how large the difference is.
        clusters_needed: how many clusters in all; infinite for a difference of 0.
        se: the standard error of the difference with as many clusters as the pilot has.
        clusters: how many clusters the pilot has, or those that the standard error was assumed for.
        correlation: the correlation between the systems that was assumed; NaN where none was needed.
        level: the confidence level at which the difference is told.
        power: the chance of telling it.
        cluster_noun: what a cluster is called.
        provenance: where the systems of the pilot came from.

    >>> print(PowerAnswer("augrc", 0.02, 126.0, 0.0125, 41, 0.5, 0.95, 0.8))
    126 clusters tell a difference of 0.02 in augrc with a chance of 80% at level 0.95
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
        many = f"{self.clusters_needed:,.0f}" if math.isfinite(self.clusters_needed) else "no number of"
        finding = f"{many} {self.cluster_noun}s tell a difference of {self.difference:g} in {self.metric}"
        return f"{finding} with a chance of {100 * self.power:g}% at level {self.level:g}"

    @property
    def basis(self) -> str:
        """What the answer rests on, as a sentence."""
        rests = f"it rests on a standard error of {self.se:.3g} with {self.clusters:,} {self.cluster_noun}s"
        if math.isnan(self.correlation):
            return f"{rests}, and on clusters like these"
        return f"{rests}, for which a correlation of {self.correlation:g} between the systems is assumed"


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
    """Return how many clusters a new study needs to tell a difference of some size.

    Args:
        pilot: the items of one system, or of two on the same items, or what else `abstain.evaluate` takes; none where
            `se` and `clusters` are assumed.
        metric: by which metric.
        difference: the smallest difference that would matter.
        correlation: how far two systems agree on the same items, for a pilot of one.
        se: the standard error of the difference, where there is no pilot.
        clusters: for how many clusters that is.
        power: the chance of telling the difference.
        level: the confidence level at which it is told.
        **options: further arguments of `abstain.evaluate`, such as ``confidence`` and ``loss``.

    >>> from abstain import Items
    >>> items = Items.from_arrays([1] * 30, [1] * 24 + [0] * 6, confidence=[0.9] * 30)
    >>> print(power(items, metric="accuracy", difference=0.1))
    132 clusters tell a difference of 0.1 in accuracy with a chance of 80% at level 0.95
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
                "without a pilot, se= and clusters= are needed: a standard error, and for how many"
            )
        error, count = _validate.real(se, "se"), _validate.whole(clusters, "clusters", least=2)
        if not error > 0.0:
            raise ArgumentError(f"se must be greater than 0, got {error:g}")
    else:
        if se is not None or clusters is not None:
            raise ArgumentError("se= and clusters= go without a pilot; give one or the other")
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
                raise ArgumentError(f"correlation must fulfil -1 <= correlation < 1, got {shared:g}")
            estimate = result.only.estimate(key)
            error = estimate.se * math.sqrt(2.0 * (1.0 - shared))
        count = estimate.clusters
        if math.isnan(error) or error == 0.0:
            why = estimate.reason or "it does not vary from cluster to cluster in the pilot"
            paths = [system["path"] for system in provenance if "path" in system]
            with at(*paths, kind=DataError) if paths else nullcontext():
                raise DataError(f"{key} has no standard error to go by: {why}")
    needed = clusters_needed(size, error, count, level=level, power=power)
    return PowerAnswer(key, size, needed, error, count, shared, level, power, noun, provenance)
