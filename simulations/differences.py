"""Differences: how often two systems are told apart that are equally good, and how often where they are not.

Both systems answer the same items: they share the difficulty of an item and its cluster's effect, and have luck of
their own. The second one is as good as the first, or better by a step in the log-odds of being right. The p-value of
the percentile bootstrap, from the same data sets, stands beside that of the jackknife; power is compared at the
thresholds at which both give the same share of false alarms.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

import abstain
from abstain import Items

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from simulations.scenarios import Scenario

__all__ = ["CLUSTERS", "METRICS", "STEPS", "compared", "p_values"]

METRICS = ("aurc", "augrc", "accuracy", "selective_accuracy", "cmax", "brier_score")
CLUSTERS = (10, 20, 41, 100)
METHODS = ("jackknife", "percentile")
# By how much the second system is better, in log-odds; 0 for false alarms.
STEPS = (0.0, 0.7)
_RESAMPLES = 500


def compared(scenarios: list[Scenario], runs: int, path: Path) -> None:
    """Simulate comparisons, and write one line per scenario, number of clusters, step and metric."""
    lines = path.read_text().splitlines() if path.exists() else []
    records = {json.loads(line)["cell"]: json.loads(line) for line in lines}
    for clusters in CLUSTERS:
        for scenario in scenarios:
            cell = f"{scenario.name}; {clusters}; {runs}"
            if cell in records:
                continue
            found = {step: p_values(scenario, clusters, runs, step) for step in STEPS}
            records[cell] = {
                "cell": cell,
                **asdict(scenario),
                "clusters": clusters,
                "runs": runs,
                "metrics": {name: _summary(found, name) for name in METRICS},
            }
            path.write_text("".join(json.dumps(record) + "\n" for _, record in sorted(records.items())))


def p_values(
    scenario: Scenario, clusters: int, runs: int, step: float, methods: Sequence[str] = METHODS
) -> dict[str, dict[str, list[float]]]:
    """Return the p-values of every metric by each method."""
    found: dict[str, dict[str, list[float]]] = {name: {method: [] for method in methods} for name in METRICS}
    for run in range(runs):
        left, right = _pair(scenario, clusters, run, step)
        for interval in methods:
            options: dict[str, Any] = {"interval": interval}
            if interval == "percentile":
                options |= {"resamples": _RESAMPLES, "seed": run}
            result = abstain.compare({"left": left, "right": right}, metrics=METRICS, **options)
            for each in result.differences:
                if not each.matched:
                    found[each.metric][interval].append(each.p)
    return found


def _summary(found: dict[float, dict[str, dict[str, list[float]]]], name: str) -> dict[str, float]:
    summary = {}
    for method in METHODS:
        null, shifted = (np.array(found[step][name][method]) for step in STEPS)
        told = null[~np.isnan(null)]
        summary[f"{method}_false_alarms"] = float((told <= 0.05).mean()) if len(told) else 0.0
        # At the threshold that gives one false alarm in twenty.
        threshold = float(np.quantile(told, 0.05)) if len(told) else 0.05
        power = shifted[~np.isnan(shifted)]
        summary[f"{method}_power"] = float((power <= threshold).mean()) if len(power) else 0.0
    return summary


def _pair(scenario: Scenario, clusters: int, run: int, step: float) -> tuple[Items, Items]:
    drawn = []
    for side in (0, 1):
        # The same items for both sides: the first generator is theirs, the second one is the side's own.
        shared = np.random.default_rng([run, clusters])
        own = np.random.default_rng([run, clusters, side + 1])
        drawn.append(scenario.answers(shared, clusters, own=own, step=step * side).items)
    return drawn[0], drawn[1]
