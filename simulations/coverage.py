"""Coverage: how often an interval holds the value of the population, and how wide it is.

A *cell* is a scenario, a number of clusters and a method; each of its data sets is judged by `abstain.evaluate`,
`evaluate_intervals` and `evaluate_sets` as a user would. The truth is the metric of a draw so large that its own error
does not matter.
"""

from __future__ import annotations

import hashlib
import math
from collections import defaultdict
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

import abstain
from abstain.evaluation.conformal import evaluate_intervals, evaluate_sets

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from abstain.inference import Estimate
    from simulations.scenarios import Scenario

__all__ = ["CLUSTERS", "Cell", "Tallied", "run_cell", "truths"]

CLUSTERS = (10, 20, 41, 100, 1000)
ASKED = (
    *("accuracy", "selective_accuracy", "simpleqa_f", "balanced_accuracy", "correctness_auroc"),
    *("expected_calibration_error", "smooth_calibration_error", "brier_score", "negative_log_likelihood"),
    *("coverage_at_risk@0.1", "coverage_at_accuracy@0.9"),
)
GRID = (0.2, 0.5, 0.7)
# A row-by-row kernel, too slow for populations; its truth is taken from a smaller one.
_POPULATION, _DRAWS = 20_000, 4
CLAIM = {"frequent": 0.8, "rare": 0.95}


@dataclass(frozen=True, slots=True)
class Cell:
    """What is simulated at once."""

    scenario: Scenario
    clusters: int
    method: str = "jackknife"

    @property
    def key(self) -> str:
        """What the cell is known by."""
        return f"{self.scenario.name}; {self.clusters}; {self.method}"

    def generator(self, run: int) -> np.random.Generator:
        """The random numbers of one of its data sets, the same for every method and in whatever order they are made."""
        place = f"{self.scenario.name}; {self.clusters}; {run}"
        return np.random.default_rng(int.from_bytes(hashlib.sha256(place.encode()).digest()[:8], "little"))


@dataclass(slots=True)
class Tallied:
    """What was counted of one metric in one cell."""

    runs: int = 0
    intervals: int = 0
    bounds: int = 0
    below: int = 0
    above: int = 0
    width: float = 0.0
    undefined: int = field(default=0)

    def add(self, estimate: Estimate, truth: float) -> None:
        """Count one data set."""
        self.runs += 1
        if not estimate.defined or estimate.interval is None:
            self.undefined += 1
            return
        low, high = estimate.interval
        slack = 1e-9 * max(1.0, abs(truth))
        self.intervals += 1
        self.bounds += estimate.method.startswith("exact bound")
        self.below += truth > high + slack
        self.above += truth < low - slack
        self.width += high - low

    @property
    def coverage(self) -> float:
        """The share of intervals that hold the truth; NaN without any."""
        missed = self.below + self.above
        return 1.0 - missed / self.intervals if self.intervals else math.nan

    @property
    def error(self) -> float:
        """The standard error of the coverage by chance of the simulation."""
        share = self.coverage
        return math.sqrt(share * (1.0 - share) / self.intervals) if self.intervals else math.nan


def run_cell(cell: Cell, start: int, stop: int, progress: Callable[[int], None]) -> dict[str, Tallied]:
    """Judge the data sets from `start` to `stop` of a cell, and count."""
    known = truths(cell.scenario)
    found: dict[str, Tallied] = defaultdict(Tallied)
    for run in range(start, stop):
        for name, estimate in judged(cell, run).items():
            found[name].add(estimate, known[name])
        progress(1)
    return dict(found)


def judged(cell: Cell, run: int) -> dict[str, Estimate]:
    """Return every metric of one data set with its interval."""
    generator = cell.generator(run)
    options: dict[str, Any] = {}
    if cell.method != "jackknife":
        options = {"interval": cell.method, "resamples": 1000, "seed": run}
    return {
        **_answers(cell.scenario, generator, cell.clusters, options),
        **_bounds(cell.scenario, generator, cell.clusters, options),
    }


@cache
def truths(scenario: Scenario) -> Mapping[str, float]:
    """Return every metric of the population."""
    sums: dict[str, list[float]] = defaultdict(list)
    for draw in range(_DRAWS):
        generator = np.random.default_rng(draw)
        found = {
            **_answers(scenario, generator, _POPULATION, {"interval": "none", "resamples": 0}),
            **_bounds(scenario, generator, _POPULATION, {"interval": "none", "resamples": 0}),
        }
        for name, estimate in found.items():
            sums[name].append(estimate.value)
    return {name: float(np.mean(values)) for name, values in sums.items()}


def _answers(
    scenario: Scenario, generator: np.random.Generator, clusters: int, options: Mapping[str, Any]
) -> dict[str, Estimate]:
    items = scenario.answers(generator, clusters).items
    result = abstain.evaluate(items, metrics=ASKED, selective=True, coverage_grid=GRID, **options)
    return {key.metric: estimate for key, estimate in result.only.estimates.items()}


def _bounds(
    scenario: Scenario, generator: np.random.Generator, clusters: int, options: Mapping[str, Any]
) -> dict[str, Estimate]:
    drawn, claim = scenario.bounds(generator, clusters), CLAIM[scenario.errors]
    intervals = evaluate_intervals(
        drawn.truth, drawn.intervals, claim=claim, cluster=drawn.cluster, **options
    )
    sets = evaluate_sets(drawn.label, drawn.sets, claim=claim, cluster=drawn.cluster, **options)
    return {
        **{f"interval {name}": estimate for name, estimate in intervals.claims[0].metrics.items()},
        **{f"set {name}": estimate for name, estimate in sets.claims[0].metrics.items()},
    }
