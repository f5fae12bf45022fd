"""Promises: how often a threshold that was promised is broken by the population, and how much is answered by it.

An item is wrong with a chance that depends on its difficulty, which the confidence sees but for noise, and on an effect
of its cluster, which it hardly sees: that is what makes answers of one patient go wrong together. A data set is drawn,
`abstain.choose_threshold` chooses as a user would let it, and the risk of the population at that threshold says whether
the promise was broken. Beside the methods stand two that are none of ours: the threshold that merely looks good
("naive"), and items taken as independent although they are not ("independence").
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

__all__ = ["CELLS", "DELTA", "Cell", "Counted", "Population", "guarantees_page", "keep_guarantees", "run"]

DELTA = 0.10
RISK = {"frequent": 0.10, "rare": 0.02}
CLUSTERS = (40, 200, 600)
_EFFECT = {"none": 0.0, "weak": 0.4, "strong": 1.5}
# So that about eight in ten answers could be given at the risk that is asked for.
_BASE = {
    ("frequent", "none"): -2.25,
    ("frequent", "weak"): -2.3,
    ("frequent", "strong"): -2.6,
    ("rare", "none"): -4.0,
    ("rare", "weak"): -4.05,
    ("rare", "strong"): -4.7,
}
_POPULATION = 2_000_000
CLUSTERED = ("cluster-t", "cluster-t, holm", "betting", "hoeffding-bentkus", "independence", "naive")
JOINT = ("joint cluster-t", "joint betting", "crc")
INDEPENDENT = ("binomial", "binomial, holm", "sgr", "hoeffding-bentkus", "betting", "naive")
# What these promise is broken more often than delta, and is meant to be seen doing so.
_FAILING = ("independence", "naive")


@dataclass(frozen=True, slots=True)
class Population:
    """What is drawn from.

    Attributes:
        errors: "frequent" or "rare".
        effect: how much clusters share: "none", "weak" or "strong".
        size: items per cluster.
    """

    errors: str
    effect: str
    size: int

    @property
    def risk(self) -> float:
        """The risk that is asked for."""
        return RISK[self.errors]

    def draw(self, generator: np.random.Generator, clusters: int) -> tuple[NDArray[np.intp], Floats, Floats]:
        """Return the clusters, losses and confidences of so many clusters."""
        cluster = np.repeat(np.arange(clusters), self.size)
        count = len(cluster)
        hidden = _EFFECT[self.effect] * generator.standard_normal(clusters)[cluster]
        difficulty = _BASE[self.errors, self.effect] + 1.5 * generator.standard_normal(count)
        wrong = generator.random(count) < _sigmoid(difficulty + hidden)
        seen = _sigmoid(-difficulty - 0.3 * hidden + 0.5 * generator.standard_normal(count))
        return cluster, wrong.astype(np.float64), seen

    def items(self, generator: np.random.Generator, clusters: int) -> Items:
        """Return one data set as items; where clusters have one item, no cluster is named."""
        cluster, wrong, seen = self.draw(generator, clusters)
        truth = np.arange(len(cluster)) % 2
        prediction = np.where(wrong > 0, 1 - truth, truth)
        named = None if self.size == 1 else cluster
        return Items.from_arrays(truth, prediction, confidence=seen, cluster=named)


@dataclass(frozen=True, slots=True)
class Cell:
    """What is simulated at once; clusters of one item are as many as the items of clusters of eight."""

    population: Population
    clusters: int
    method: str

    @property
    def key(self) -> str:
        """What the cell is known by."""
        return "; ".join(map(str, (*asdict(self.population).values(), self.clusters, self.method)))

    def items(self, run: int) -> Items:
        """Return one of its data sets, the same for every method."""
        place = "; ".join(map(str, (*asdict(self.population).values(), self.clusters, run)))
        seed = int.from_bytes(hashlib.sha256(place.encode()).digest()[:8], "little")
        many = 8 * self.clusters if self.population.size == 1 else self.clusters
        return self.population.items(np.random.default_rng(seed), many)


@dataclass(slots=True)
class Counted:
    """What was counted: data sets, broken promises, data sets without one, and sums of coverage and of risk."""

    runs: int = 0
    broken: int = 0
    nothing: int = 0
    coverage: float = 0.0
    risk: float = 0.0


CELLS = tuple(
    Cell(Population(errors, effect, size), clusters, method)
    for clusters in CLUSTERS
    for errors in ("frequent", "rare")
    for effect, size in (("none", 1), ("weak", 8), ("strong", 8), ("weak", 20), ("strong", 20))
    for method in (INDEPENDENT if size == 1 else CLUSTERED + JOINT)
)


def keep_guarantees(
    cells: Sequence[Cell], runs: int, path: Path, progress: Callable[[int], None] | None = None
) -> None:
    """Simulate cells that have fewer runs than asked for, and keep what was counted in a file."""
    lines = path.read_text().splitlines() if path.exists() else []
    records = {json.loads(line)["cell"]: json.loads(line) for line in lines}
    for cell in cells:
        start = records.get(cell.key, {}).get("runs", 0)
        if start >= runs:
            continue
        found = run(cell, start, runs, progress)
        before = records.get(cell.key, {})
        counted = {name: value + before.get(name, 0) for name, value in asdict(found).items()}
        about = {**asdict(cell.population), "clusters": cell.clusters, "method": cell.method}
        records[cell.key] = {"cell": cell.key, **about, **counted, "possible": _possible(cell)}
        beside = path.with_suffix(".part")
        beside.write_text("".join(json.dumps(record) + "\n" for _, record in sorted(records.items())))
        beside.replace(path)


def run(cell: Cell, start: int, stop: int, progress: Callable[[int], None] | None = None) -> Counted:
    """Choose on the data sets from `start` to `stop`, and count."""
    counted, joint = Counted(), cell.method in JOINT
    for number in range(start, stop):
        threshold = _threshold(cell, cell.items(number))
        counted.runs += 1
        if threshold is None:
            counted.nothing += 1
        else:
            coverage, risk = _truth(cell.population, threshold, joint=joint)
            counted.coverage += coverage
            counted.risk += risk
            counted.broken += risk > cell.population.risk
        if progress is not None:
            progress(1)
    return counted


def _threshold(cell: Cell, items: Items) -> float | None:
    """The threshold that a method chooses."""
    method, risk = cell.method, cell.population.risk
    if method == "naive":
        curve = risk_coverage_curve(
            (items.truth != items.prediction).astype(float), items.signals["confidence"].values
        )
        kept = np.flatnonzero(curve.selective_risk <= risk)
        return float(curve.threshold[kept[-1]]) if len(kept) else None
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
    return abstain.choose_threshold(items, method=name, **options).threshold


@cache
def _population(population: Population) -> tuple[Floats, Floats]:
    """Confidences of a draw so large that its own error does not matter, descending, and the errors above each."""
    generator = np.random.default_rng(0)
    _, wrong, seen = population.draw(generator, _POPULATION // population.size)
    order = np.argsort(-seen)
    return seen[order], np.cumsum(wrong[order])


def _truth(population: Population, threshold: float, *, joint: bool) -> tuple[float, float]:
    seen, wrong = _population(population)
    count = int(np.searchsorted(-seen, -threshold, side="right"))
    if not count:
        return 0.0, 0.0
    return count / len(seen), float(wrong[count - 1]) / (len(seen) if joint else count)


def _possible(cell: Cell) -> float:
    """The largest coverage whose risk in the population is at most what was asked for."""
    seen, wrong = _population(cell.population)
    over = len(seen) if cell.method in JOINT else np.arange(1, len(seen) + 1)
    kept = np.flatnonzero(wrong / over <= cell.population.risk)
    return float(kept[-1] + 1) / len(seen) if len(kept) else 0.0


def _sigmoid(value: Floats) -> Any:
    return 1.0 / (1.0 + np.exp(-value))


_INTRODUCTION = f"""\
# Simulated promises

Made from `simulations/guarantees.jsonl` by `make docs`; `make simulate` counts further. How often is a promise broken,
and how much is answered, when thresholds are chosen through the same function that users call?

**Populations.** Errors are frequent (a risk of {100 * RISK["frequent"]:g}% is asked for) or rare
({100 * RISK["rare"]:g}%). Items come in clusters of 8 or 20 that share an effect which the confidence hardly sees, weak
or strong; or each by itself, eight times as many as there would be clusters. Every promise is made
{100 * (1 - DELTA):g}% sure, so that at most {100 * DELTA:g}% of them may be broken; for conformal risk control (`crc`)
it is the mean risk that must keep to the risk asked for, and how many single data sets exceed it is shown beside. The
exact populations are in `simulations/guarantees.py`.

**How to read it.** *Broken* is the share of data sets whose threshold has a higher risk in the population, with its
Monte-Carlo error in brackets; **bold** where it exceeds what may be broken by more than twice that error. *Nothing* is
the share of data sets for which nothing could be promised. *Coverage* is the mean share of items answered, 0 where
nothing is promised; *possible* is the largest share that keeps to the risk in the population. *independence* takes
items of one cluster as independent, and *naive* takes the largest coverage whose risk was seen to keep to the risk:
neither is offered by abstain.
"""


def guarantees_page(path: Path) -> str:
    """Return the page of what was counted so far."""
    lines = path.read_text().splitlines() if path.exists() else []
    records = [json.loads(line) for line in lines]
    parts = [_INTRODUCTION, *_summary(records)]
    for size in sorted({record["size"] for record in records}):
        parts += _table(size, [record for record in records if record["size"] == size])
    return "\n".join([*parts, ""])


def _summary(records: Sequence[dict[str, Any]]) -> list[str]:
    """The worst cell of every method, and what it keeps at 200 clusters."""
    lines = [
        "## In short",
        "",
        "| method | items | cells | broken, worst cell | coverage of what is possible, 200 clusters |",
    ]
    lines.append("|---|---|---|---|---|")
    for kind, wanted in (("independent", True), ("in clusters", False)):
        methods = dict.fromkeys(record["method"] for record in records if (record["size"] == 1) is wanted)
        for method in sorted(methods, key=lambda name: (name in _FAILING, name)):
            own = [
                record for record in records if record["method"] == method and (record["size"] == 1) is wanted
            ]
            worst = max(own, key=lambda record: record["broken"] / record["runs"])
            middle = [record for record in own if record["clusters"] == 200]
            kept = [record["coverage"] / record["runs"] / max(record["possible"], 1e-9) for record in middle]
            told = f"{min(kept):.2f} to {max(kept):.2f}" if kept else ""
            lines.append(f"| {method} | {kind} | {len(own)} | {_broken(worst)} | {told} |")
    return [*lines, ""]


def _table(size: int, records: Sequence[dict[str, Any]]) -> list[str]:
    title = "Independent items" if size == 1 else f"{size} items per cluster"
    head = "| clusters | errors | effect | method | data sets | broken | nothing | coverage | possible |"
    lines = [f"## {title}", "", head]
    lines.append("|---|---|---|---|---|---|---|---|---|")
    for record in sorted(records, key=_place):
        runs = record["runs"]
        many = f"{8 * record['clusters']:,} items" if size == 1 else f"{record['clusters']:,}"
        broken = _broken(record)
        if record["method"] == "crc":
            broken = f"mean risk {record['risk'] / runs:.4f}; {broken} exceed it"
        cells = (many, record["errors"], record["effect"], record["method"], f"{runs:,}", broken)
        proportions = (
            f"{record['nothing'] / runs:.2f}",
            f"{record['coverage'] / runs:.3f}",
            f"{record['possible']:.3f}",
        )
        lines.append(f"| {' | '.join((*cells, *proportions))} |")
    return [*lines, ""]


def _place(record: dict[str, Any]) -> tuple[Any, ...]:
    order = (*CLUSTERED, *JOINT, *INDEPENDENT)
    return (record["errors"], record["effect"], record["clusters"], order.index(record["method"]))


def _broken(record: dict[str, Any]) -> str:
    proportion = record["broken"] / record["runs"]
    error = math.sqrt(max(proportion, 1.0 / record["runs"]) * (1.0 - proportion) / record["runs"])
    told = f"{proportion:.3f} ({error:.3f})"
    over = proportion > DELTA + 2.0 * error and record["method"] != "crc"
    return f"**{told}**" if over else told
