"""Coverage: how often a confidence interval contains the value of the population, and how wide it is.

A *cell* is a scenario, a number of clusters and a method. Each of its data sets is evaluated by `abstain.evaluate`,
`evaluate_intervals` and `evaluate_sets`. The true value is the metric of a sample so large that its own error is
negligible. Such samples take minutes, so the true values are stored in ``simulations/truths.json``.
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
from abstain import Items
from abstain.evaluation.conformal import evaluate_intervals, evaluate_sets
from abstain.metrics.registry import METRICS as REGISTERED

if TYPE_CHECKING:
    from abstain.inference import Estimate
    from simulations.scenarios import Scenario

__all__ = [
    "CLUSTERS",
    "RANGE",
    "TRUTHS",
    "Cell",
    "CoverageCounts",
    "Evaluator",
    "evaluate_data_set",
    "run_cell",
    "truths",
]

TRUTHS = Path(__file__).parent / "truths.json"

CLUSTERS = (10, 20, 41, 100, 1000)
GRID = (0.2, 0.5, 0.7)
# Every registered metric is simulated, for answers, totals, prediction intervals or sets. The coverage at an accuracy
# is the coverage at the corresponding risk, which takes longest.
OF_TOTALS = ("mean_absolute_error", "root_mean_squared_error", "pearson_r", "severity_tier_accuracy@PHQ-8")
OF_INTERVALS = tuple(metric.key for metric in REGISTERED.values() if metric.rows == "bounded")
OF_SETS = tuple(metric.key for metric in REGISTERED.values() if metric.rows == "gathered")
METRICS = (
    *(
        metric.key
        for metric in REGISTERED.values()
        if metric.key not in {*OF_TOTALS, *OF_INTERVALS, *OF_SETS} and metric.parameter is None
    ),
    *(f"risk_at_coverage@{coverage}" for coverage in (0.05, *GRID)),
    *("aurc_at_coverage@0.5", "augrc_at_coverage@0.5", "coverage_at_risk@0.1"),
    *("prediction_rejection_ratio@aurc", "prediction_rejection_ratio@augrc"),
    *("expected_calibration_error", "top_label_calibration_error"),
    *("effective_reliability@1", "effective_reliability@5", "confidence_target_score@0.75"),
)
# A true value is the mean over several large samples: the number of clusters of each, and the number of samples.
_POPULATION, _DRAWS = 20_000, 4
# The acceptable coverage of an interval at level 0.95, and the level of the test for leaving that range.
RANGE = (0.93, 0.98)
_ODDS = 0.001
# The nominal coverage of the drawn prediction intervals and sets.
NOMINAL = {"frequent": 0.8, "rare": 0.95}


def _at_least(hits: int, trials: int, proportion: float) -> float:
    """Return the probability of at least this number of hits."""
    from scipy.special import bdtrc  # noqa: PLC0415

    return float(bdtrc(hits - 1, trials, proportion)) if hits > 0 else 1.0


@dataclass(frozen=True, slots=True)
class Cell:
    """One simulated setting."""

    scenario: Scenario
    clusters: int
    method: str = "jackknife"

    @property
    def key(self) -> str:
        """The name of the cell in the results."""
        return "; ".join((self.scenario.name, str(self.clusters), self.method))

    def generator(self, run: int) -> np.random.Generator:
        """Return the random numbers of one data set, which depend neither on the method nor on earlier data sets."""
        name = "; ".join(map(str, (self.scenario.name, self.clusters, run)))
        return np.random.default_rng(int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "little"))


@dataclass(slots=True)
class CoverageCounts:
    """The counts of one metric in one cell.

    Attributes:
        runs: data sets.
        intervals: data sets with an interval.
        bounds: intervals of values that no cluster changes, for example because there is no error.
        below: intervals below the true value.
        above: intervals above the true value.
        width: the sum of the widths.
        undefined: data sets without an interval.
    """

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
        self.bounds += estimate.se == 0.0
        self.below += truth > high + slack
        self.above += truth < low - slack
        self.width += high - low

    @property
    def coverage(self) -> float:
        """The proportion of intervals that contain the true value; NaN without intervals."""
        missed = self.below + self.above
        return 1.0 - missed / self.intervals if self.intervals else math.nan

    @property
    def error(self) -> float:
        """The Monte Carlo standard error of the coverage."""
        proportion = self.coverage
        return math.sqrt(proportion * (1.0 - proportion) / self.intervals) if self.intervals else math.nan

    @property
    def too_narrow(self) -> bool:
        """True if the coverage is below `RANGE`."""
        return _at_least(self.below + self.above, self.intervals, 1.0 - RANGE[0]) < _ODDS

    @property
    def too_wide(self) -> bool:
        """True if the coverage is above `RANGE`, without intervals of values that no cluster changes."""
        other_intervals = self.intervals - self.bounds
        return 1.0 - _at_least(self.below + self.above + 1, other_intervals, 1.0 - RANGE[1]) < _ODDS

    def plus(self, other: CoverageCounts) -> CoverageCounts:
        """Return the sum of both counts."""
        return CoverageCounts(
            *(value + addend for value, addend in zip(astuple(self), astuple(other), strict=True))
        )


Evaluator = Callable[["Cell", int], Mapping[str, "Estimate"]]


def run_cell(
    cell: Cell,
    start: int,
    stop: int,
    progress: Callable[[int], None] | None = None,
    evaluator: Evaluator | None = None,
) -> dict[str, CoverageCounts]:
    """Evaluate some data sets of a cell, and return the counts of each metric.

    Args:
        cell: the simulated setting.
        start: the first data set.
        stop: the data set after the last.
        progress: called with the number of data sets since the last call.
        evaluator: returns the metrics of a data set with their intervals. Default: `evaluate_data_set`.
    """
    true_values = truths(cell.scenario)
    counts: dict[str, CoverageCounts] = defaultdict(CoverageCounts)
    for run in range(start, stop):
        for name, estimate in (evaluator or evaluate_data_set)(cell, run).items():
            counts[name].add(estimate, true_values[name])
        if progress is not None:
            progress(1)
    return dict(counts)


def evaluate_data_set(
    cell: Cell, run: int, metrics: Sequence[str] = METRICS, *, with_bounds: bool = True
) -> dict[str, Estimate]:
    """Return the estimates of one data set: selective metrics, the named metrics, and those of intervals and sets."""
    generator = cell.generator(run)
    options: dict[str, Any] = {}
    if cell.method != "jackknife":
        options = {"interval": cell.method, "resamples": 1000, "seed": run}
    estimates = _evaluate_answers(cell.scenario, generator, cell.clusters, options, metrics)
    if with_bounds:
        estimates |= _evaluate_bounds(cell.scenario, generator, cell.clusters, options)
    return estimates


@cache
def truths(scenario: Scenario, path: Path = TRUTHS) -> Mapping[str, float]:
    """Return every metric of the population, from the file if it is up to date; otherwise compute and store them."""
    mark = _mark(scenario)
    record = _read_truths(path).get(scenario.name, {})
    if record.get("mark") != mark:
        record = {"mark": mark, "metrics": _compute_truths(scenario)}
        # The file is read again, because another process may have added scenarios in the meantime.
        text = json.dumps({**_read_truths(path), scenario.name: record}, indent=1, sort_keys=True)
        temporary = path.with_suffix(f".{os.getpid()}")
        temporary.write_text(f"{text}\n")
        temporary.replace(path)
    return {name: math.nan if value is None else value for name, value in record["metrics"].items()}


def _read_truths(path: Path) -> dict[str, Any]:
    records: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    return records


def _mark(scenario: Scenario) -> str:
    """Return the hash of everything that true values depend on: the first rows of the population, and the settings."""
    generator = np.random.default_rng(0)
    answers, bounds = scenario.answers(generator, 5), scenario.bounds(generator, 5)
    rows = (answers.wrong, answers.abstained, answers.confidence, bounds.truth, bounds.intervals, bounds.sets)
    # Rounded, because the last digits differ between machines.
    rounded = [np.round(np.asarray(column, np.float64), 6).tolist() for column in rows]
    content = (rounded, METRICS, GRID, NOMINAL[scenario.errors], _POPULATION, _DRAWS)
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:16]


def _compute_truths(scenario: Scenario) -> dict[str, float | None]:
    values: dict[str, list[float]] = defaultdict(list)
    for draw in range(_DRAWS):
        generator = np.random.default_rng(draw)
        estimates = {
            **_evaluate_answers(scenario, generator, _POPULATION, {"interval": "none", "resamples": 0}),
            **_evaluate_bounds(scenario, generator, _POPULATION, {"interval": "none", "resamples": 0}),
        }
        for name, estimate in estimates.items():
            values[name].append(estimate.value)
    means = {name: float(np.mean(by_draw)) for name, by_draw in values.items()}
    return {name: None if math.isnan(mean) else mean for name, mean in means.items()}


def _evaluate_answers(
    scenario: Scenario,
    generator: np.random.Generator,
    clusters: int,
    options: Mapping[str, Any],
    metrics: Sequence[str] = METRICS,
) -> dict[str, Estimate]:
    return _evaluate_items(scenario.answers(generator, clusters).items, metrics, options)


def _evaluate_items(items: Items, metrics: Sequence[str], options: Mapping[str, Any]) -> dict[str, Estimate]:
    result = abstain.evaluate(items, metrics=metrics, **options)
    assert result.metrics is not None
    return {name: result.metrics[name] for name in metrics}


def _evaluate_bounds(
    scenario: Scenario, generator: np.random.Generator, clusters: int, options: Mapping[str, Any]
) -> dict[str, Estimate]:
    data, nominal = scenario.bounds(generator, clusters), NOMINAL[scenario.errors]
    intervals = evaluate_intervals(
        data.truth, data.intervals, nominal=nominal, cluster=data.cluster, **options
    )
    sets = evaluate_sets(data.label, data.sets, nominal=nominal, cluster=data.cluster, **options)
    seed = generator.integers(1 << 32)
    scaled, unscaled = (
        _evaluate_items(
            scenario.totals(np.random.default_rng(seed), clusters, scaled=has_scale), OF_TOTALS, options
        )
        for has_scale in (True, False)
    )
    return {
        **{f"interval {name}": estimate for name, estimate in intervals.by_nominal[0].metrics.items()},
        **{f"set {name}": estimate for name, estimate in sets.by_nominal[0].metrics.items()},
        **_evaluate_items(data.interval_items, OF_INTERVALS, options),
        **_evaluate_items(data.set_items, OF_SETS, options),
        **scaled,
        **{f"{name} without a scale": unscaled[name] for name in OF_TOTALS[:2]},
    }
