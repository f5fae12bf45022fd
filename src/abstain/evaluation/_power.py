"""Power: how many clusters a new study needs to detect a difference between two systems by a metric.

The standard error of a difference falls with the square root of the number of clusters, so a pilot study shows how many
are needed. A pilot of two systems has the standard error of their difference. A pilot of one system has that of its
metric, ``se``; for a difference to a second system on the same items it is ``se * sqrt(2 * (1 - r))`` with an assumed
correlation ``r`` between the two. Without a pilot, the standard error is an argument.

The standard error of a pilot is itself uncertain. The number of clusters gives the requested power on average over such
pilots, and its range comes from the confidence interval of the variance (chi-squared distribution).
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

# A usual correlation between two systems on the same items, if no better value is known. Areas and other metrics of a
# ranking have none: their correlation is often much lower.
CORRELATION = 0.5


@dataclass(frozen=True, slots=True)
class PowerAnswer:
    """The number of clusters needed to detect a difference.

    Attributes:
        metric: the metric.
        difference: the size of the difference.
        clusters_needed: the total number of clusters; infinite for a difference of 0.
        clusters_low: the number if the standard error of the pilot is too large, NaN without a pilot.
        clusters_high: the number if it is too small, NaN without a pilot; both are the ends of an interval at `level`.
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
    clusters_low: float = math.nan
    clusters_high: float = math.nan

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
            basis = f"{error}, and more {self.cluster_noun}s of the same kind"
        else:
            basis = f"{error}, for a correlation of {self.correlation:g} between the systems"
        if math.isnan(self.clusters_low):
            return basis
        ends = f"{self.clusters_low:,.0f} to {self.clusters_high:,.0f}"
        return f"{basis}; a pilot of this size leaves it open whether {ends} {self.cluster_noun}s are needed"


def power(
    *pilot: Any,
    metric: MetricLike,
    difference: float,
    correlation: float | None = None,
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
        correlation: the assumed correlation between two systems on the same items, for a pilot of one system. Default:
            0.5. Areas and other metrics of a ranking have no default.
        se: the standard error of the difference, if there is no pilot.
        clusters: the number of clusters that `se` is for.
        power: the probability of detecting the difference.
        level: the confidence level of the test.
        **options: further arguments of `abstain.evaluate`, such as ``confidence`` and ``loss``.

    >>> from abstain import Items
    >>> items = Items.from_arrays([1] * 30, [1] * 24 + [0] * 6, confidence=[0.9] * 30)
    >>> print(power(items, metric="accuracy", difference=0.1))
    140 rows are needed to detect a difference of 0.1 in accuracy with a power of 80% at level 0.95
    """
    named = find_metric(metric) if isinstance(metric, str) else metric
    key = getattr(named, "key", str(getattr(named, "name", metric)))
    size = _validate.real(difference, "difference")
    if not size > 0.0:
        raise ArgumentError(f"difference must be greater than 0, got {size:g}")
    noun, shared, degrees = "cluster", math.nan, math.inf
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
            shared = _assumed_correlation(correlation, key, ranked=getattr(named, "ranked", False))
            estimate = result.only.estimate(key)
            error = estimate.se * math.sqrt(2.0 * (1.0 - shared))
        count, degrees = estimate.clusters, estimate.degrees or estimate.clusters - 1.0
        if math.isnan(error) or error == 0.0:
            why = estimate.reason or "it does not vary between the clusters of the pilot"
            paths = [system["path"] for system in provenance if "path" in system]
            with at(*paths, kind=DataError) if paths else nullcontext():
                raise DataError(f"{key} has no standard error: {why}")
    needed = clusters_needed(size, error, count, level=level, power=power, degrees=degrees)
    low, high = (
        clusters_needed(size, end, count, level=level, power=power)
        for end in _standard_error_ends(error, degrees, level)
    )
    return PowerAnswer(key, size, needed, error, count, shared, level, power, noun, provenance, low, high)


def _assumed_correlation(correlation: float | None, key: str, *, ranked: bool) -> float:
    if correlation is None and ranked:
        raise ArgumentError(
            f"a pilot of one system does not show how {key} varies between two systems on the same items; pass a pilot "
            "of two systems, or assume a correlation (correlation, --correlation)"
        )
    assumed = CORRELATION if correlation is None else _validate.real(correlation, "correlation")
    if not -1.0 <= assumed < 1.0:
        raise ArgumentError(f"correlation must be at least -1 and less than 1, got {assumed:g}")
    return assumed


def _standard_error_ends(error: float, degrees: float, level: float) -> tuple[float, float]:
    """Return the ends of the interval of a standard error; NaN if it is known."""
    from scipy.special import chdtri  # noqa: PLC0415

    if math.isinf(degrees):
        return math.nan, math.nan
    tail = (1.0 - level) / 2.0
    low, high = (error * math.sqrt(degrees / chdtri(degrees, each)) for each in (tail, 1.0 - tail))
    return low, high
