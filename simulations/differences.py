"""Differences: how often a difference between two systems is detected if they are equally good, and if not.

Both systems answer the same items. The difficulty of an item and the effect of its cluster are the same for both, and
each system has independent random numbers. The second system is as good as the first, or better by a step in the
log-odds of being right. The jackknife and the percentile bootstrap give a p-value for each data set. Their power is
compared at thresholds at which both have the same proportion of false alarms.
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

__all__ = ["CLUSTERS", "METRICS", "STEPS", "p_values", "simulate_differences"]

METRICS = ("aurc", "augrc", "accuracy", "selective_accuracy", "cmax", "brier_score")
CLUSTERS = (10, 20, 41, 100)
METHODS = ("jackknife", "percentile")
# How much better the second system is, in log-odds; 0 gives the false alarms.
STEPS = (0.0, 0.7)
_RESAMPLES = 500


def simulate_differences(scenarios: list[Scenario], runs: int, path: Path) -> None:
    """Simulate comparisons, and write one line per scenario and number of clusters."""
    lines = path.read_text().splitlines() if path.exists() else []
    records = {json.loads(line)["cell"]: json.loads(line) for line in lines}
    for clusters in CLUSTERS:
        for scenario in scenarios:
            cell = "; ".join(map(str, (scenario.name, clusters, runs)))
            if cell in records:
                continue
            by_step = {step: p_values(scenario, clusters, runs, step) for step in STEPS}
            records[cell] = {
                "cell": cell,
                **asdict(scenario),
                "clusters": clusters,
                "runs": runs,
                "metrics": {name: _summary(by_step, name) for name in METRICS},
            }
            path.write_text("".join(json.dumps(record) + "\n" for _, record in sorted(records.items())))


def p_values(
    scenario: Scenario, clusters: int, runs: int, step: float, methods: Sequence[str] = METHODS
) -> dict[str, dict[str, list[float]]]:
    """Return the p-values of all data sets, by metric and method."""
    values: dict[str, dict[str, list[float]]] = {name: {method: [] for method in methods} for name in METRICS}
    for run in range(runs):
        left, right = _pair(scenario, clusters, run, step)
        for interval in methods:
            options: dict[str, Any] = {"interval": interval}
            if interval == "percentile":
                options |= {"resamples": _RESAMPLES, "seed": run}
            result = abstain.compare({"left": left, "right": right}, metrics=METRICS, **options)
            for difference in result.differences:
                if not difference.matched:
                    values[difference.metric][interval].append(difference.p)
    return values


def _summary(by_step: dict[float, dict[str, dict[str, list[float]]]], name: str) -> dict[str, float]:
    summary = {}
    for method in METHODS:
        equal, different = (np.array(by_step[step][name][method]) for step in STEPS)
        equal, different = equal[~np.isnan(equal)], different[~np.isnan(different)]
        summary[f"{method}_false_alarms"] = float((equal <= 0.05).mean()) if len(equal) else 0.0
        # The threshold at which 5% of equal systems are false alarms.
        threshold = float(np.quantile(equal, 0.05)) if len(equal) else 0.05
        summary[f"{method}_power"] = float((different <= threshold).mean()) if len(different) else 0.0
    return summary


def _pair(scenario: Scenario, clusters: int, run: int, step: float) -> tuple[Items, Items]:
    systems = []
    for number in (0, 1):
        # Both systems have the same items, and each has its own random numbers for its answers.
        shared = np.random.default_rng([run, clusters])
        own = np.random.default_rng([run, clusters, number + 1])
        systems.append(scenario.answers(shared, clusters, own=own, step=step * number).items)
    return systems[0], systems[1]
