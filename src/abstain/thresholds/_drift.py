"""How far confidences and coverage have moved from the data that a policy was chosen on."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from abstain.errors import ResultWarning

if TYPE_CHECKING:
    from abstain._types import Floats
    from abstain.thresholds._policy import Policy


# Smaller changes of the confidences or of the coverage are not reported, however unlikely.
_LEAST_DRIFT = 0.1
# Critical values of the Kolmogorov-Smirnov and normal distributions at 1%.
_KOLMOGOROV, _NORMAL = 1.628, 2.576


def expected_coverage(policy: Policy) -> float:
    """Return the proportion of items that the policy answers on the data that it was chosen on."""
    if policy.by is None or policy.worst:
        return math.nan if policy.observed is None else policy.observed.coverage
    answered = sum(group.observed.answered for group in policy.groups if group.observed is not None)
    return answered / policy.data.items


def confidence_drift(policy: Policy, values: Floats) -> float:
    """Return the Kolmogorov-Smirnov distance between the policy's confidences and these, to about a hundredth.

    A policy stores quantiles only, so differences between two adjacent quantiles cannot be seen.
    """
    if not len(values):
        return math.nan
    quantiles = np.array(policy.confidence.quantiles)
    proportions = np.linspace(0.0, 1.0, len(quantiles))
    ordered = np.sort(values)
    below = np.searchsorted(ordered, quantiles, side="left") / len(ordered)
    up_to = np.searchsorted(ordered, quantiles, side="right") / len(ordered)
    first = np.searchsorted(quantiles, quantiles, side="left")
    last = np.searchsorted(quantiles, quantiles, side="right") - 1
    return float(np.maximum(below - proportions[last], proportions[first] - up_to).max(initial=0.0))


def drift_warnings(
    policy: Policy, values: Floats, coverage: float, clusters: int
) -> tuple[ResultWarning, ...]:
    """Return a warning each if confidences, or coverage, have changed more than chance would explain."""
    warnings = []
    variance = 1.0 / max(policy.confidence.clusters, 1) + 1.0 / max(clusters, 1)
    drift, expected = confidence_drift(policy, values), expected_coverage(policy)
    if drift > max(_LEAST_DRIFT, _KOLMOGOROV * math.sqrt(variance)):
        message = (
            f"the confidences have changed: their distribution differs by {drift:.1%} from that of the data that the "
            "policy was chosen on, which is more than chance explains; the risk guarantee may be void"
        )
        warnings.append(ResultWarning("confidence_drift", message))
    if not math.isnan(expected):
        noise = _NORMAL * math.sqrt(expected * (1.0 - expected) * variance)
        if abs(coverage - expected) > max(_LEAST_DRIFT, noise):
            message = (
                f"the coverage has changed from {expected:.1%} to {coverage:.1%}, which is more than chance explains; "
                "the risk guarantee may be void"
            )
            warnings.append(ResultWarning("coverage_drift", message))
    return tuple(warnings)
