"""Coverage: how often an interval holds the value of the population, and how wide it is.

A *cell* is a scenario, a number of clusters and a method; each of its data sets is judged by `abstain.evaluate`,
`evaluate_intervals` and `evaluate_sets` as a user would. The truth is the metric of a draw so large that its own error
does not matter. Such draws take minutes, so that what they gave is kept in ``simulations/truths.json``.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import abstain
from abstain.evaluation.conformal import evaluate_intervals, evaluate_sets

if TYPE_CHECKING:
    from abstain.inference import Estimate
    from simulations.scenarios import Scenario

__all__ = ["CLUSTERS", "RANGE", "TRUTHS", "Cell", "Judge", "Tallied", "evaluated", "run_cell", "truths"]

TRUTHS = Path(__file__).parent / "truths.json"

CLUSTERS = (10, 20, 41, 100, 1000)
ASKED = (
    *("accuracy", "selective_accuracy", "simpleqa_f", "balanced_accuracy", "correctness_auroc"),
    *("expected_calibration_error", "smooth_calibration_error", "brier_score", "negative_log_likelihood"),
    *("coverage_at_risk@0.1", "coverage_at_accuracy@0.9"),
)
GRID = (0.2, 0.5, 0.7)
# A row-by-row kernel, too slow for populations; its truth is taken from a smaller one.
_POPULATION, _DRAWS = 20_000, 4
# What the coverage of an interval at 0.95 may be, and how unlikely chance must be to say that it is not.
RANGE = (0.93, 0.98)
_ODDS = 0.001
CLAIM = {"frequent": 0.8, "rare": 0.95}


def _at_least(hits: int, trials: int, proportion: float) -> float:
    """The probability of at least so many hits."""
    from scipy.special import bdtrc  # noqa: PLC0415

    return float(bdtrc(hits - 1, trials, proportion)) if hits > 0 else 1.0


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
        proportion = self.coverage
        return math.sqrt(proportion * (1.0 - proportion) / self.intervals) if self.intervals else math.nan

    @property
    def too_narrow(self) -> bool:
        """True where so many misses would be seen once in a thousand simulations, were the coverage `RANGE`'s least."""
        return _at_least(self.below + self.above, self.intervals, 1.0 - RANGE[0]) < _ODDS

    @property
    def too_wide(self) -> bool:
        """True where so few would, were it `RANGE`'s most; exact bounds aside."""
        spread = self.intervals - self.bounds
        return 1.0 - _at_least(self.below + self.above + 1, spread, 1.0 - RANGE[1]) < _ODDS

    def plus(self, other: Tallied) -> Tallied:
        """Return the counts of both."""
        return Tallied(*(one + more for one, more in zip(astuple(self), astuple(other), strict=True)))


Judge = Callable[["Cell", int], Mapping[str, "Estimate"]]


def run_cell(
    cell: Cell,
    start: int,
    stop: int,
    progress: Callable[[int], None] | None = None,
    judge: Judge | None = None,
) -> dict[str, Tallied]:
    """Judge the data sets from `start` to `stop` of a cell, and count.

    Args:
        cell: what is simulated.
        start: the first data set.
        stop: the one after the last.
        progress: called with the number of data sets done since the last call.
        judge: what gives the metrics of a data set with their intervals; `evaluated` when left out.
    """
    known = truths(cell.scenario)
    found: dict[str, Tallied] = defaultdict(Tallied)
    for run in range(start, stop):
        for name, estimate in (judge or evaluated)(cell, run).items():
            found[name].add(estimate, known[name])
        if progress is not None:
            progress(1)
    return dict(found)


def evaluated(
    cell: Cell, run: int, metrics: Sequence[str] = ASKED, *, with_bounds: bool = True
) -> dict[str, Estimate]:
    """Return the metrics of one data set with their intervals: selective ones, those named, those of bounds."""
    generator = cell.generator(run)
    options: dict[str, Any] = {}
    if cell.method != "jackknife":
        options = {"interval": cell.method, "resamples": 1000, "seed": run}
    found = _answers(cell.scenario, generator, cell.clusters, options, metrics)
    if with_bounds:
        found |= _bounds(cell.scenario, generator, cell.clusters, options)
    return found


@cache
def truths(scenario: Scenario, path: Path = TRUTHS) -> Mapping[str, float]:
    """Return every metric of the population: as kept in the file, or computed and put into it."""
    mark = _mark(scenario)
    known = _kept(path).get(scenario.name, {})
    if known.get("mark") != mark:
        known = {"mark": mark, "metrics": _computed(scenario)}
        # Others may have written meanwhile; what they found stays.
        text = json.dumps({**_kept(path), scenario.name: known}, indent=1, sort_keys=True)
        beside = path.with_suffix(f".{os.getpid()}")
        beside.write_text(f"{text}\n")
        beside.replace(path)
    return {name: math.nan if value is None else value for name, value in known["metrics"].items()}


def _kept(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    return found


def _mark(scenario: Scenario) -> str:
    """What a truth depends on: the first rows of the population, and what is asked of it."""
    generator = np.random.default_rng(0)
    answers, bounds = scenario.answers(generator, 5), scenario.bounds(generator, 5)
    rows = (answers.wrong, answers.abstained, answers.confidence, bounds.truth, bounds.intervals, bounds.sets)
    # Rounded, because the last digits are not the same on every machine.
    told = [np.round(np.asarray(part, np.float64), 6).tolist() for part in rows]
    asked = (told, ASKED, GRID, CLAIM[scenario.errors], _POPULATION, _DRAWS)
    return hashlib.sha256(json.dumps(asked).encode()).hexdigest()[:16]


def _computed(scenario: Scenario) -> dict[str, float | None]:
    sums: dict[str, list[float]] = defaultdict(list)
    for draw in range(_DRAWS):
        generator = np.random.default_rng(draw)
        found = {
            **_answers(scenario, generator, _POPULATION, {"interval": "none", "resamples": 0}),
            **_bounds(scenario, generator, _POPULATION, {"interval": "none", "resamples": 0}),
        }
        for name, estimate in found.items():
            sums[name].append(estimate.value)
    means = {name: float(np.mean(values)) for name, values in sums.items()}
    return {name: None if math.isnan(mean) else mean for name, mean in means.items()}


def _answers(
    scenario: Scenario,
    generator: np.random.Generator,
    clusters: int,
    options: Mapping[str, Any],
    metrics: Sequence[str] = ASKED,
) -> dict[str, Estimate]:
    items = scenario.answers(generator, clusters).items
    result = abstain.evaluate(items, metrics=metrics, selective=True, coverage_grid=GRID, **options)
    return {key.metric: estimate for key, estimate in result.only.estimates.items()}


def _bounds(
    scenario: Scenario, generator: np.random.Generator, clusters: int, options: Mapping[str, Any]
) -> dict[str, Estimate]:
    drawn, nominal = scenario.bounds(generator, clusters), CLAIM[scenario.errors]
    intervals = evaluate_intervals(
        drawn.truth, drawn.intervals, nominal=nominal, cluster=drawn.cluster, **options
    )
    sets = evaluate_sets(drawn.label, drawn.sets, nominal=nominal, cluster=drawn.cluster, **options)
    return {
        **{f"interval {name}": estimate for name, estimate in intervals.by_nominal[0].metrics.items()},
        **{f"set {name}": estimate for name, estimate in sets.by_nominal[0].metrics.items()},
    }
