"""Differences: how often a comparison of two systems draws a wrong conclusion.

Both systems answer the same items. The difficulty of an item and the effect of its cluster are the same for both, and
each system has independent random numbers. If the systems are similar, the second one differs from the first in one
item of twenty only. If they are unpaired, they have different clusters of the same population. The second system is as
good as the first, or better by a step in the log-odds of being right. Each data set is compared by `abstain.compare`,
and three wrong conclusions are counted:

- a false alarm: one of two equally good systems is better.
- a missed difference: the confidence interval does not contain the true difference.
- a false "not worse": the worse system is not worse by more than a margin, although the true difference is the margin.
  This is also the gate that passes a run although it is worse by the whole margin.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections import defaultdict
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import abstain
from abstain import Items
from abstain.inference import within_margin
from abstain.metrics.registry import UNDIRECTED, find_metric
from simulations._cells import FEWEST, Counts, error_of, is_above, read_records, simulate
from simulations.coverage import METRICS as OF_ANSWERS
from simulations.coverage import OF_INTERVALS, OF_SETS, OF_TOTALS
from simulations.scenarios import SPECIAL, Scenario

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from abstain.evaluation import Difference

__all__ = [
    "CELLS",
    "METRICS",
    "Cell",
    "count_conclusions",
    "differences_page",
    "simulate_differences",
    "true_differences",
]

TRUTHS = Path(__file__).parent / "true_differences.json"


def _directed(metrics: Iterable[str]) -> tuple[str, ...]:
    """Return the metrics that have a better direction."""
    return tuple(name for name in metrics if find_metric(name).comparison != UNDIRECTED)


# Every registered metric that has a better direction, by the data that it is computed from.
METRICS = {
    "answers": _directed(OF_ANSWERS),
    "totals": _directed(OF_TOTALS),
    "intervals": _directed(OF_INTERVALS),
    "sets": _directed(OF_SETS),
}
CLUSTERS = (10, 20, 41, 100)
# The numbers of clusters of two unpaired systems.
UNPAIRED = ((10, 10), (10, 41), (41, 41), (100, 20))
# How much better the second system is, in log-odds.
STEPS = (0.0, 0.7)
# The proportion of items in which similar systems differ.
_DIFFERENT = 0.05
# A true difference is the mean over several large samples: the number of clusters of each, and the number of samples.
_POPULATION, _DRAWS = 20_000, 4
# A difference is a margin only if it is this many times as large as its own error.
_CLEAR = 10.0
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Cell:
    """One simulated comparison.

    Attributes:
        scenario: the population.
        clusters: the number of clusters.
        step: how much better the second system is, in log-odds.
        similar: True if the systems differ in few items.
        second: the number of clusters of the second system if it has different ones; 0 if both have the same items.
    """

    scenario: Scenario
    clusters: int
    step: float = 0.0
    similar: bool = False
    second: int = 0

    @property
    def population(self) -> str:
        """The name of the compared populations."""
        similar = ", similar" if self.similar else ""
        return f"{self.scenario.name}{similar}; {self.step:g}"

    @property
    def key(self) -> str:
        """The name of the cell in the results."""
        return f"{self.population}; {_numbers(self.clusters, self.second)}"

    @property
    def metrics(self) -> list[str]:
        """The metrics by which the systems are compared."""
        kinds = ["answers"] if self.similar or self.scenario.setting else list(METRICS)
        return [name for kind in kinds for name in METRICS[kind]]

    def pairs(self, seed: Sequence[int]) -> Iterator[tuple[Sequence[str], list[Items]]]:
        """Yield the pairs of systems of one data set, each with the metrics by which it is compared."""
        first, second = (self.scenario.answers(**self._options(number, seed)) for number in (0, 1))
        if self.similar:
            kept = np.random.default_rng([*seed, 3]).random(len(first.cluster)) >= _DIFFERENT
            second = replace(
                second,
                **{
                    name: np.where(kept, getattr(first, name), getattr(second, name))
                    for name in ("wrong", "abstained", "confidence")
                },
            )
        yield METRICS["answers"], [first.items, second.items]
        if not (self.similar or self.scenario.setting):
            yield (
                METRICS["totals"],
                [self.scenario.totals(**self._options(number, seed)) for number in (0, 1)],
            )
            bounds = [self.scenario.bounds(**self._options(number, seed)) for number in (0, 1)]
            yield METRICS["intervals"], [each.interval_items for each in bounds]
            yield METRICS["sets"], [each.set_items for each in bounds]

    def _options(self, number: int, seed: Sequence[int]) -> dict[str, Any]:
        """Return the random numbers of the items, those of one system, and how much better it is."""
        different = number == 1 and self.second > 0
        return {
            "generator": np.random.default_rng([*seed, 4] if different else seed),
            "clusters": self.second if different else self.clusters,
            "own": np.random.default_rng([*seed, number + 1]),
            "step": self.step * number,
        }

    def differences(self, run: int, **options: Any) -> dict[str, Difference]:
        """Return the difference of one data set by each metric, from which its verdict comes."""
        seed = [*hashlib.sha256(f"{self.key}; {run}".encode()).digest()[:8]]
        decided = {}
        for metrics, (left, right) in self.pairs(seed):
            unpaired = self.second > 0
            result = abstain.compare(
                {"left": left, "right": right}, metrics=metrics, unpaired=unpaired, **options
            )
            for name in metrics:
                decided[name] = result.difference("left", "right", name)
        return decided


_SCENARIOS = (
    *(Scenario(errors) for errors in ("frequent", "rare")),
    *(Scenario(errors, "levels", "unequal", "weak") for errors in ("frequent", "rare")),
    *(scenario for scenario in SPECIAL if scenario.sizes == "equal"),
)
CELLS = (
    *(
        Cell(scenario, clusters, step, similar)
        for clusters, (scenario, similar), step in product(
            CLUSTERS,
            (
                *((scenario, False) for scenario in _SCENARIOS),
                *((scenario, True) for scenario in _SCENARIOS[:2]),
            ),
            STEPS,
        )
    ),
    *(
        Cell(scenario, first, step, second=second)
        for (first, second), scenario, step in product(UNPAIRED, _SCENARIOS, STEPS)
    ),
)


# The counts of one metric in one cell, as numbers of data sets: those with a confidence interval of the difference,
# those with a winner, those whose interval misses the true difference, those whose true difference was the margin, and
# of these, those in which the worse system is not worse by more than the margin.
COMPARED, WINNERS, MISSED, MARGINS, NOT_WORSE = range(5)


def count_conclusions(cell: Cell, start: int, stop: int) -> Counts:
    """Compare the systems of some data sets, and return the counts by metric."""
    truths = true_differences(cell)
    counts: Counts = {name: [0] * 5 for name in truths}
    for run in range(start, stop):
        for name, difference in cell.differences(run).items():
            # A few samples may reach a coverage that the population does not reach.
            if difference.compared and not math.isnan(truths[name][0]):
                own = _count_one(difference, *truths[name])
                counts[name] = [a + b for a, b in zip(counts[name], own, strict=True)]
    return counts


def _count_one(difference: Difference, truth: float, margin: float) -> list[int]:
    """Return the counts of one data set; `margin` is NaN if the true difference is not clear enough to be a margin."""
    counts = [1, int(difference.winner is not None), 0, 0, 0]
    low, high = difference.estimate.interval or (math.nan, math.nan)
    counts[MISSED] = int(not low - _ROUNDING <= truth <= high + _ROUNDING)
    if not math.isnan(margin):
        counts[MARGINS] = 1
        (verdict,) = within_margin([difference.estimate], difference.direction, margin)
        right_is_worse = (truth > 0.0) == (difference.direction == "lower")
        counts[NOT_WORSE] = int(verdict.right_not_worse if right_is_worse else verdict.left_not_worse)
    return counts


@cache
def true_differences(cell: Cell, path: Path = TRUTHS) -> dict[str, tuple[float, float]]:
    """Return the true difference by each metric, and the margin that it is, from the file if it is stored there."""
    if not cell.step:
        return dict.fromkeys(cell.metrics, (0.0, math.nan))
    stored: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    if set(stored.get(cell.population, ())) != set(cell.metrics):
        large = replace(cell, clusters=_POPULATION, second=0)
        draws = [large.differences(draw, interval="none") for draw in range(_DRAWS)]
        values = {name: [float(draw[name].estimate.value) for draw in draws] for name in draws[0]}
        stored = json.loads(path.read_text()) if path.exists() else {}
        stored[cell.population] = {
            name: [float(np.mean(each)), float(np.std(each, ddof=1)) / math.sqrt(_DRAWS)]
            for name, each in values.items()
        }
        path.write_text(json.dumps(stored, indent=1, sort_keys=True) + "\n")
    return {
        name: (mean, abs(mean) if abs(mean) > _CLEAR * error else math.nan)
        for name, (mean, error) in stored[cell.population].items()
    }


def simulate_differences(
    cells: Sequence[Cell], runs: int, path: Path, progress: Callable[[int], None] = lambda _count: None
) -> None:
    """Simulate cells up to a number of data sets each, on every core, and store the counts."""
    for cell in cells:
        true_differences(cell)
    simulate(cells, count_conclusions, runs, path, progress)


def _numbers(clusters: int, second: int) -> str:
    """Return the number of clusters, or the numbers of both systems if they are unpaired."""
    return f"{clusters} and {second}" if second else str(clusters)


_INTRODUCTION = """\
# Simulated differences between two systems

Two systems answer the same items and are compared by `abstain.compare`. How often is the conclusion wrong? `make docs`
generates this page from `simulations/differences.jsonl`, and `make simulate` adds data sets to that file.

**What was simulated.** Populations are those of [simulated coverage](simulated-coverage.md): items in clusters, with
frequent or rare errors, equal or unequal clusters, few answers, or errors that come together. Difficulties and effects
of clusters are the same for both systems, and each system has independent random numbers. *Similar* systems differ in
one item of twenty. *Unpaired* systems have different clusters of the same population, and are compared with
`unpaired=True`. The second system is as good as the first, or its answers are better by 0.7 in log-odds. Metrics of
predicted totals, prediction intervals and sets have such pairs, too. Every registered metric with a better direction is
simulated. The settings are defined in `simulations/differences.py`.

| table | counted | nominal |
|---|---|---|
| False alarms | One of two equally good systems is better. | 0.05 |
| Missed differences | The confidence interval does not contain the true difference, which is 0 or not. | 0.05 |
| False "not worse" | The true difference is the margin, but the verdict is that the worse system is not worse by \
more than the margin. A gate with this margin passes. | 0.025 |

**How to read the tables.** A column combines all populations with a number of clusters. A cell contains the proportion
over all of their data sets, and the highest proportion in one population with its Monte Carlo standard error in
parentheses. The highest of several proportions is too high by chance, by about one and a half standard errors. Data
sets without a confidence interval are not counted. A cell is empty if there are fewer than 20 data sets.
"""
_TABLES = (
    ("False alarms", 0.05, lambda record, own: (own[WINNERS], 0 if record["step"] else own[COMPARED])),
    ("Missed differences", 0.05, lambda _record, own: (own[MISSED], own[COMPARED])),
    ('False "not worse"', 0.025, lambda _record, own: (own[NOT_WORSE], own[MARGINS])),
)
# Part of the name of a setting or a metric, and the reason for too many wrong conclusions; the first that fits applies.
_REASONS = (
    (
        "similar",
        "the systems differ in few items, and many data sets have none of those that cause the difference",
    ),
    (
        "few answers",
        "the coverage is reached only in data sets with unusually many answers, which are not typical",
    ),
    (
        "risk_at_coverage",
        "with few levels of confidence, the coverage falls on another step in some data sets",
    ),
    ("", "not explained yet"),
)


def differences_page(path: Path) -> str:
    """Return the page as Markdown."""
    records = list(read_records(path).values())
    runs = [record["runs"] for record in records]
    lines = [_INTRODUCTION]
    if records:
        lines.append(f"There are {len(records)} settings with {min(runs)} to {max(runs)} data sets each.\n")
    tables, short = [], []
    for title, nominal, count in _TABLES:
        same_items, above = _table(records, [(clusters, 0) for clusters in CLUSTERS], nominal, count)
        unpaired, more_above = _table(records, UNPAIRED, nominal, count)
        tables += [f"## {title}", "", *same_items, "", "Unpaired systems:", "", *unpaired, ""]
        short += [f"| {title.lower()} | {row}" for row in [*above, *more_above]]
    lines += [
        "## What falls short",
        "",
        "These proportions are above the nominal one. Chance would cause them in one setting of a thousand.",
        "",
        "| table | metric | setting | proportion | reason |",
        "|---|---|---|---|---|",
        *short,
        "",
    ]
    return "\n".join([*lines, *tables])


def _table(
    records: Sequence[dict[str, Any]],
    columns: Sequence[tuple[int, int]],
    nominal: float,
    count: Callable[[Any, Any], tuple[int, int]],
) -> tuple[list[str], list[str]]:
    """Return a table of proportions, and the rows of the proportions above the nominal one.

    The columns are numbers of clusters, and those of the second system if it has different ones.
    """
    by_cell: dict[tuple[str, tuple[int, int]], list[tuple[str, int, int]]] = defaultdict(list)
    for record in records:
        for metric, own in record["metrics"].items():
            events, trials = count(record, own)
            if trials >= FEWEST:
                column = record["clusters"], record.get("second", 0)
                by_cell[metric, column].append((record["cell"], events, trials))
    heads = " | ".join(f"{_numbers(*column)} clusters" for column in columns)
    lines, above = [f"| metric | {heads} |", "|---" * (len(columns) + 1) + "|"], []
    for metric in dict.fromkeys(name for names in METRICS.values() for name in names):
        cells = []
        for column in columns:
            settings = by_cell.get((metric, column), [])
            cells.append(_cell(settings))
            for cell, events, trials in settings:
                if is_above(events, trials, nominal):
                    reason = next(text for part, text in _REASONS if part in f"{metric} {cell}")
                    proportion = f"{events / trials:.3f} ({error_of(events, trials):.3f})"
                    above.append(f"`{metric}` | {cell} | {proportion} | {reason} |")
        lines.append(f"| `{metric}` | {' | '.join(cells)} |")
    return lines, above


def _cell(settings: Sequence[tuple[str, int, int]]) -> str:
    if not settings:
        return ""
    _, events, trials = max(settings, key=lambda setting: setting[1] / setting[2])
    total = sum(own for _, own, _ in settings) / sum(own for _, _, own in settings)
    return f"{total:.3f}, at most {events / trials:.3f} ({error_of(events, trials):.3f})"
