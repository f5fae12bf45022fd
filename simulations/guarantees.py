"""Risk guarantees: how often the population violates a guaranteed risk, and how many items are answered.

The probability of a wrong answer depends on the difficulty of the item, which the confidence reflects with some noise,
and on an effect of its cluster, which the confidence hardly reflects. This effect makes answers about one patient wrong
together. For each data set, `abstain.choose_threshold` chooses a threshold. The guarantee is violated if the risk of
the population at that threshold exceeds the requested risk. Two methods that abstain does not offer are shown for
comparison: the threshold whose observed risk is low enough ("naive"), and a test that ignores the clusters
("independence").
"""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import asdict, dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

import abstain
from abstain import Items
from abstain.metrics import risk_coverage_curve

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

__all__ = [
    "CELLS",
    "DELTA",
    "Cell",
    "GuaranteeCounts",
    "Population",
    "guarantees_page",
    "run_cell",
    "simulate_guarantees",
]

DELTA = 0.10
RISK = {"frequent": 0.10, "rare": 0.02}
CLUSTERS = (40, 200, 600)
UNEQUAL_CLUSTERS = (20, 40, 80, 200, 300)
_EFFECT = {"none": 0.0, "weak": 0.4, "strong": 1.5}
# With these constants, about 80% of the items can be answered at the requested risk.
_BASE = {
    ("frequent", "none"): -2.25,
    ("frequent", "weak"): -2.3,
    ("frequent", "strong"): -2.6,
    ("rare", "none"): -4.0,
    ("rare", "weak"): -4.05,
    ("rare", "strong"): -4.7,
}
# Clusters of unequal sizes, in which larger clusters are worse: the same constant for them, and how much the log odds
# of an error grow with the logarithm of the size.
_UNEQUAL_BASE = {
    ("frequent", "unequal"): -2.4,
    ("frequent", "very unequal"): -2.7,
    ("frequent", "few large"): -3.35,
    ("rare", "unequal"): -4.2,
    ("rare", "very unequal"): -4.6,
    ("rare", "few large"): -5.2,
}
_SIZE_EFFECT = {"unequal": 0.5, "very unequal": 0.5, "few large": 1.0}
_LARGEST_CLUSTER = 200
_POPULATION = 2_000_000
CLUSTERED = (
    "pseudo-cluster",
    "pseudo-cluster, holm",
    "gaffke",
    "hoeffding-bentkus",
    "independence",
    "naive",
)
JOINT = ("joint pseudo-cluster", "joint gaffke", "crc")
INDEPENDENT = ("binomial", "binomial, holm", "sgr", "hoeffding-bentkus", "gaffke", "naive")
UNEQUAL = ("default", "gaffke", "joint pseudo-cluster")
# These methods are known to violate the risk too often, and are shown for comparison.
_FAILING = ("independence", "naive")


@dataclass(frozen=True, slots=True)
class Population:
    """A population to draw data sets from.

    Attributes:
        errors: "frequent" or "rare".
        effect: the effect of the cluster: "none", "weak" or "strong".
        size: items per cluster, or the name of a distribution of sizes with a mean of about 8. "unequal" and "very
            unequal" are lognormal, with a standard deviation of the logarithm of 1 and 1.5. "few large" has 50 items in
            a tenth of the clusters, and 3 in the others.
    """

    errors: str
    effect: str
    size: int | str

    @property
    def risk(self) -> float:
        """The requested risk."""
        return RISK[self.errors]

    def draw(self, generator: np.random.Generator, clusters: int) -> tuple[NDArray[np.intp], Floats, Floats]:
        """Return the clusters, losses and confidences of one data set."""
        sizes = self._draw_sizes(generator, clusters)
        cluster = np.repeat(np.arange(clusters), sizes)
        count = len(cluster)
        effect = _EFFECT[self.effect] * generator.standard_normal(clusters)[cluster]
        base = _BASE[self.errors, self.effect]
        if isinstance(self.size, str):
            effect += _SIZE_EFFECT[self.size] * np.log(sizes / 8.0)[cluster]
            base = _UNEQUAL_BASE[self.errors, self.size]
        difficulty = base + 1.5 * generator.standard_normal(count)
        wrong = generator.random(count) < _sigmoid(difficulty + effect)
        confidence = _sigmoid(-difficulty - 0.3 * effect + 0.5 * generator.standard_normal(count))
        return cluster, wrong.astype(np.float64), confidence

    def _draw_sizes(self, generator: np.random.Generator, clusters: int) -> NDArray[np.intp]:
        if isinstance(self.size, int):
            return np.full(clusters, self.size, np.intp)
        if self.size == "few large":
            return np.where(generator.random(clusters) < 0.1, 50, 3).astype(np.intp)
        spread = 1.0 if self.size == "unequal" else 1.5
        sizes = np.ceil(np.exp(np.log(8.0) - spread**2 / 2.0 + spread * generator.standard_normal(clusters)))
        return np.minimum(sizes, _LARGEST_CLUSTER).astype(np.intp)

    def items(self, generator: np.random.Generator, clusters: int) -> Items:
        """Return one data set as items, without clusters if every cluster has one item."""
        cluster, wrong, confidence = self.draw(generator, clusters)
        truth = np.arange(len(cluster)) % 2
        prediction = np.where(wrong > 0, 1 - truth, truth)
        cluster_ids = None if self.size == 1 else cluster
        return Items.from_arrays(truth, prediction, confidence=confidence, cluster=cluster_ids)


@dataclass(frozen=True, slots=True)
class Cell:
    """One simulated setting. With one item per cluster, there are eight times as many clusters."""

    population: Population
    clusters: int
    method: str

    @property
    def key(self) -> str:
        """The name of the cell in the results."""
        return "; ".join(map(str, (*asdict(self.population).values(), self.clusters, self.method)))

    def items(self, run: int) -> Items:
        """Return a data set, which is the same for every method."""
        name = "; ".join(map(str, (*asdict(self.population).values(), self.clusters, run)))
        seed = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "little")
        clusters = 8 * self.clusters if self.population.size == 1 else self.clusters
        return self.population.items(np.random.default_rng(seed), clusters)


@dataclass(slots=True)
class GuaranteeCounts:
    """The counts of one cell.

    Attributes:
        runs: data sets.
        broken: data sets whose risk in the population exceeds the requested risk.
        nothing: data sets without a guarantee.
        coverage: the sum of the coverages.
        risk: the sum of the risks.
    """

    runs: int = 0
    broken: int = 0
    nothing: int = 0
    coverage: float = 0.0
    risk: float = 0.0


CELLS = (
    *(
        Cell(Population(errors, effect, size), clusters, method)
        for clusters in CLUSTERS
        for errors in ("frequent", "rare")
        for effect, size in (("none", 1), ("weak", 8), ("strong", 8), ("weak", 20), ("strong", 20))
        for method in (INDEPENDENT if size == 1 else CLUSTERED + JOINT)
    ),
    *(
        Cell(Population(errors, "weak", size), clusters, method)
        for clusters in UNEQUAL_CLUSTERS
        for errors in ("frequent", "rare")
        for size in _SIZE_EFFECT
        for method in UNEQUAL
    ),
)


def simulate_guarantees(
    cells: Sequence[Cell], runs: int, path: Path, progress: Callable[[int], None] | None = None
) -> None:
    """Simulate cells up to a number of data sets each, and store the counts in a file."""
    lines = path.read_text().splitlines() if path.exists() else []
    records = {json.loads(line)["cell"]: json.loads(line) for line in lines}
    for cell in cells:
        start = records.get(cell.key, {}).get("runs", 0)
        if start >= runs:
            continue
        counts = run_cell(cell, start, runs, progress)
        earlier = records.get(cell.key, {})
        totals = {name: value + earlier.get(name, 0) for name, value in asdict(counts).items()}
        settings = {**asdict(cell.population), "clusters": cell.clusters, "method": cell.method}
        records[cell.key] = {"cell": cell.key, **settings, **totals, "possible": _best_coverage(cell)}
        temporary = path.with_suffix(".part")
        temporary.write_text("".join(json.dumps(record) + "\n" for _, record in sorted(records.items())))
        temporary.replace(path)


def run_cell(
    cell: Cell, start: int, stop: int, progress: Callable[[int], None] | None = None
) -> GuaranteeCounts:
    """Choose a threshold for each data set from `start` to `stop`, and return the counts."""
    counts, joint = GuaranteeCounts(), cell.method in JOINT
    for number in range(start, stop):
        threshold = _choose_threshold(cell, cell.items(number))
        counts.runs += 1
        if threshold is None:
            counts.nothing += 1
        else:
            coverage, risk = _population_coverage_and_risk(cell.population, threshold, joint=joint)
            counts.coverage += coverage
            counts.risk += risk
            counts.broken += risk > cell.population.risk
        if progress is not None:
            progress(1)
    return counts


def _choose_threshold(cell: Cell, items: Items) -> float | None:
    """Return the threshold that the method of the cell chooses; None without a guarantee."""
    method, risk = cell.method, cell.population.risk
    if method == "naive":
        curve = risk_coverage_curve(
            (items.truth != items.prediction).astype(float), items.signals["confidence"].values
        )
        acceptable = np.flatnonzero(curve.selective_risk <= risk)
        return float(curve.threshold[acceptable[-1]]) if len(acceptable) else None
    options: dict[str, Any] = {"risk": risk, "sure": 1.0 - DELTA}
    name, _, search = method.removeprefix("joint ").partition(", ")
    if search:
        options["search"] = search
    if method in JOINT:
        options["risk_type"] = "joint"
    if method == "independence":
        items = Items.from_arrays(
            items.truth, items.prediction, confidence=items.signals["confidence"].values
        )
        name = "binomial"
    return abstain.choose_threshold(items, method=None if name == "default" else name, **options).threshold


@cache
def _population(population: Population) -> tuple[Floats, Floats]:
    """Return the descending confidences of a very large sample, and the number of errors at or above each."""
    generator = np.random.default_rng(0)
    size = population.size if isinstance(population.size, int) else 8
    _, wrong, confidence = population.draw(generator, _POPULATION // size)
    order = np.argsort(-confidence)
    return confidence[order], np.cumsum(wrong[order])


def _population_coverage_and_risk(
    population: Population, threshold: float, *, joint: bool
) -> tuple[float, float]:
    confidence, errors = _population(population)
    count = int(np.searchsorted(-confidence, -threshold, side="right"))
    if not count:
        return 0.0, 0.0
    return count / len(confidence), float(errors[count - 1]) / (len(confidence) if joint else count)


def _best_coverage(cell: Cell) -> float:
    """Return the largest coverage whose risk in the population is at most the requested risk."""
    confidence, errors = _population(cell.population)
    denominator = len(confidence) if cell.method in JOINT else np.arange(1, len(confidence) + 1)
    acceptable = np.flatnonzero(errors / denominator <= cell.population.risk)
    return float(acceptable[-1] + 1) / len(confidence) if len(acceptable) else 0.0


def _sigmoid(value: Floats) -> Any:
    return 1.0 / (1.0 + np.exp(-value))


_INTRODUCTION = f"""\
# Simulated risk guarantees

A threshold with a risk guarantee is chosen on one data set. How often is the risk in the population higher than
guaranteed, and how many items are answered? Thresholds are chosen with the function that users call. `make docs`
generates this page from `simulations/guarantees.jsonl`, and `make simulate` adds data sets to that file.

**What was simulated.** Errors are frequent (the requested risk is {100 * RISK["frequent"]:g}%) or rare
({100 * RISK["rare"]:g}%). Items belong to clusters of 8 or 20 items with a common effect, which is weak or strong and
which the confidence hardly reflects. In clusters of unequal sizes, larger clusters are worse. Their sizes are lognormal
with a mean of about 8 and a standard deviation of the logarithm of 1 (*unequal*) or 1.5 (*very unequal*), or a tenth of
the clusters has 50 items and the others 3 (*few large*). The *default* method is *pseudo-cluster*, or *gaffke* if the
clusters count like fewer than 12 of equal size. For independent items, a data set has eight times as many items as
there are clusters in the other data sets. Every guarantee has a confidence level of {100 * (1 - DELTA):g}%, so at most
{100 * DELTA:g}% of the data sets may violate it. Conformal risk control (`crc`) guarantees the mean risk instead: the
table shows that mean, and the proportion of single data sets that exceed the requested risk. The populations are
defined in `simulations/guarantees.py`.

**How to read the tables.** Each row is one method in one setting.

| column | meaning |
|---|---|
| violated | The proportion of data sets whose threshold has a higher risk in the population than requested. The Monte \
Carlo standard error is in parentheses. **Bold**: the proportion exceeds {DELTA:g} by more than two standard errors. |
| no guarantee | The proportion of data sets for which no threshold could be guaranteed |
| coverage | The mean proportion of answered items, which is 0 without a guarantee |
| best coverage | The largest proportion of items that can be answered at the requested risk in the population |

**What falls short.** Two methods that abstain does not offer violate the risk too often. *independence* treats the
items of a cluster as independent. *naive* takes the largest coverage whose observed risk is at most the requested risk.
With clusters, *hoeffding-bentkus* gave no guarantee in any data set. *gaffke* rarely gives one with few, unequal or
rarely wrong clusters: every finite-sample test is limited in this way, see
[the definition](risk-guarantees.md#tests-and-search).
"""
_REASON = (
    "If clusters are very unequal and larger ones are worse, the few largest clusters have most of the errors, and a "
    "data set may contain none of these. No test over clusters detects this without giving up nearly all guarantees. "
    "The default is *gaffke* if clusters count like fewer than 12 of equal size, so it avoids part of these settings."
)


def guarantees_page(path: Path) -> str:
    """Return the page as Markdown."""
    lines = path.read_text().splitlines() if path.exists() else []
    records = [json.loads(line) for line in lines]
    parts = [_INTRODUCTION, *_shortfalls(records), *_summary(records)]
    sizes = {record["size"] for record in records}
    for size in [*sorted(sizes - set(_SIZE_EFFECT)), *(name for name in _SIZE_EFFECT if name in sizes)]:
        parts += _table(size, [record for record in records if record["size"] == size])
    return "\n".join([*parts, ""])


def _shortfalls(records: Sequence[dict[str, Any]]) -> list[str]:
    """Return the list of settings in which a method of abstain violates too many guarantees."""
    lines = [
        f"- {record['clusters']} clusters, sizes {record['size']}, {record['errors']} errors, "
        f"effect {record['effect']}, method {record['method']}: {_violated(record)}"
        for record in sorted(records, key=_sort_key)
        if record["method"] not in _FAILING and _falls_short(record)
    ]
    if not lines:
        return [
            "No method of abstain violated more than the agreed proportion, beyond two standard errors.",
            "",
        ]
    return ["Methods of abstain violated too many guarantees in these settings:", "", *lines, "", _REASON, ""]


def _summary(records: Sequence[dict[str, Any]]) -> list[str]:
    """Return the table with the worst setting of every method, and its coverage with 200 clusters."""
    lines = [
        "## Summary",
        "",
        "The last column is the coverage divided by the best coverage, in the settings with 200 clusters.",
        "",
        "| method | items | settings | violated, worst setting | relative coverage |",
    ]
    lines.append("|---|---|---|---|---|")
    kinds = {"independent": (1,), "in clusters": (8, 20), "in unequal clusters": tuple(_SIZE_EFFECT)}
    for items, sizes in kinds.items():
        group = [record for record in records if record["size"] in sizes]
        methods = dict.fromkeys(record["method"] for record in group)
        for method in sorted(methods, key=lambda name: (name in _FAILING, name)):
            settings = [record for record in group if record["method"] == method]
            worst = max(settings, key=lambda record: record["broken"] / record["runs"])
            relative = [
                record["coverage"] / record["runs"] / max(record["possible"], 1e-9)
                for record in settings
                if record["clusters"] == 200
            ]
            extremes = f"{min(relative):.2f} to {max(relative):.2f}" if relative else ""
            lines.append(f"| {method} | {items} | {len(settings)} | {_violated(worst)} | {extremes} |")
    return [*lines, ""]


def _table(size: int | str, records: Sequence[dict[str, Any]]) -> list[str]:
    title = f"Cluster sizes: {size}" if isinstance(size, str) else f"{size} items per cluster"
    if size == 1:
        title = "Independent items"
    unit = "items" if size == 1 else "clusters"
    lines = [
        f"## {title}",
        "",
        f"| {unit} | errors | effect | method | data sets | violated | no guarantee | coverage | best coverage |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for record in sorted(records, key=_sort_key):
        runs = record["runs"]
        count = f"{8 * record['clusters']:,}" if size == 1 else f"{record['clusters']:,}"
        violated = _violated(record)
        if record["method"] == "crc":
            violated = f"{violated}, mean risk {record['risk'] / runs:.4f}"
        cells = (count, record["errors"], record["effect"], record["method"], f"{runs:,}", violated)
        proportions = (
            f"{record['nothing'] / runs:.2f}",
            f"{record['coverage'] / runs:.3f}",
            f"{record['possible']:.3f}",
        )
        lines.append(f"| {' | '.join((*cells, *proportions))} |")
    return [*lines, ""]


def _sort_key(record: dict[str, Any]) -> tuple[Any, ...]:
    order = ("default", *CLUSTERED, *JOINT, *INDEPENDENT)
    return (record["errors"], record["effect"], record["clusters"], order.index(record["method"]))


def _proportion_and_error(record: dict[str, Any]) -> tuple[float, float]:
    proportion = record["broken"] / record["runs"]
    return proportion, math.sqrt(max(proportion, 1.0 / record["runs"]) * (1.0 - proportion) / record["runs"])


def _falls_short(record: dict[str, Any]) -> bool:
    proportion, error = _proportion_and_error(record)
    return proportion > DELTA + 2.0 * error and record["method"] != "crc"


def _violated(record: dict[str, Any]) -> str:
    proportion, error = _proportion_and_error(record)
    text = f"{proportion:.3f} ({error:.3f})"
    return f"**{text}**" if _falls_short(record) else text
