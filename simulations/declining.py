"""Declining: how often a system wins a comparison although it only declines more items and is not better.

Both systems answer the same items equally well, with the same answers or with independent ones. The timid system
declines most items, at random or by whole clusters. The confidence is informative or useless. A useless confidence is
the hardest case, because then both systems are exactly equal at matched coverage. A win of the timid system is a
one-sided false alarm, so its nominal proportion is half of ``1 - level``.
"""

from __future__ import annotations

import itertools
import json
import math
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

import abstain
from abstain import Items

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

__all__ = ["CELLS", "METRICS", "Cell", "declining_page", "simulate_declining", "wins"]

METRICS = (
    *("augrc", "aurc", "eaugrc", "eaurc", "aurc_achievable", "auarc", "augrc_at_coverage@0.5"),
    *("selective_accuracy", "wrong_rate", "hallucination_rate", "accuracy", "simpleqa_f"),
    *("expected_calibration_error", "prediction_rejection_ratio@aurc"),
)
# Its confidence interval is too narrow if one of the systems has few answers. The page has a separate column for it.
SHORT = "prediction_rejection_ratio@aurc"
ALLOWED = 0.025


@dataclass(frozen=True, slots=True)
class Cell:
    """One simulated setting.

    Attributes:
        clusters: the number of clusters.
        size: the number of items per cluster.
        wrong: the proportion of wrong answers.
        informative: False if the confidence is random.
        same_answers: True if both systems give the same answers.
        declines: how the timid system declines: "at random" or "by cluster".
        answers: the proportion of items that the timid system answers.
    """

    clusters: int
    size: int
    wrong: float
    informative: bool
    same_answers: bool
    declines: str
    answers: float = 0.14

    @property
    def key(self) -> str:
        """The name of the setting."""
        return "; ".join(map(str, asdict(self).values()))

    def systems(self, run: int) -> dict[str, Items]:
        """Draw both systems."""
        rng = np.random.default_rng([run, *self.key.encode()])
        cluster = np.repeat(np.arange(self.clusters), self.size)
        effect = rng.normal(0.0, 0.5, self.clusters)[cluster]
        declined = rng.random(self.clusters)[cluster] > self.answers
        if self.declines == "at random":
            declined = rng.random(len(cluster)) > self.answers
        first = self._answers(rng, effect)
        second = first if self.same_answers else self._answers(rng, effect)
        return {
            name: Items.from_arrays(
                np.ones(len(cluster)),
                right,
                confidence=confidence,
                abstained=hidden,
                cluster=cluster,
                item=np.arange(len(cluster)),
            )
            for name, (right, confidence), hidden in (
                ("ok", first, np.zeros(len(cluster), bool)),
                ("timid", second, declined),
            )
        }

    def _answers(self, rng: np.random.Generator, effect: Any) -> tuple[Any, Any]:
        skill = math.log((1.0 - self.wrong) / self.wrong) + effect + rng.normal(0.0, 1.0, len(effect))
        right = (rng.random(len(effect)) < 1.0 / (1.0 + np.exp(-skill))).astype(int)
        confidence = 1.0 / (1.0 + np.exp(-skill)) if self.informative else rng.random(len(effect))
        return right, confidence.round(3)


CELLS = tuple(
    Cell(clusters, size, wrong, informative, same, declines)
    for (clusters, size), wrong, informative, same, declines in itertools.product(
        ((400, 1), (40, 10)), (0.3, 0.05), (False, True), (True, False), ("at random", "by cluster")
    )
    if size > 1 or declines == "at random"
)


def wins(cell: Cell, start: int, stop: int) -> dict[str, int]:
    """Return the number of data sets in which the timid system wins, by metric."""
    counts = dict.fromkeys(METRICS, 0)
    for run in range(start, stop):
        systems = cell.systems(run)
        if not systems["timid"].counts.answered:
            continue
        result = abstain.compare(systems, metrics=list(METRICS), loss="zero_one", resamples=0)
        for name in METRICS:
            counts[name] += result.difference("ok", "timid", name).winner == "timid"
    return counts


def simulate_declining(
    cells: Sequence[Cell], runs: int, path: Path, progress: Callable[[int], None] = lambda _count: None
) -> None:
    """Simulate cells up to a number of data sets each, on every core, and store the counts."""
    lines = path.read_text().splitlines() if path.exists() else []
    records = {json.loads(line)["cell"]: json.loads(line) for line in lines}
    with ProcessPoolExecutor() as pool:
        started = {}
        for cell in cells:
            done = records.get(cell.key, {"runs": 0})["runs"]
            if done < runs:
                started[cell] = done, pool.submit(wins, cell, done, runs)
        for cell, (done, future) in started.items():
            earlier = records.get(cell.key, {"wins": dict.fromkeys(METRICS, 0)})["wins"]
            counts = {name: earlier[name] + count for name, count in future.result().items()}
            records[cell.key] = {"cell": cell.key, **asdict(cell), "runs": runs, "wins": counts}
            path.write_text("".join(json.dumps(record) + "\n" for _, record in sorted(records.items())))
            progress(runs - done)


_INTRODUCTION = """# Simulated comparisons with a timid system

A timid system declines 86% of all items. Its answers are as good as those of another system, which answers every item.
How often does the timid system win the comparison? It should not win more often than by chance. `make docs` generates
this page from `simulations/declining.jsonl`, and `make simulate` adds data sets to that file.

**What was simulated.** A data set has 400 independent items, or 40 clusters of 10 items with a common effect. About 30%
or 5% of the answers are wrong. Both systems give the same answers, or independent answers of the same quality. The
confidence is informative or useless. A useless confidence is the hardest case, because then both systems are exactly
equal at matched coverage. The timid system declines at random or by whole clusters. The settings are defined in
`simulations/declining.py`.

**How to read the table.** The columns from *AUGRC* on contain the proportion of data sets in which the timid system
wins by that metric. The nominal proportion is 0.025, half of 1 - level. The Monte Carlo standard error is in
parentheses. A proportion is **bold** if it exceeds 0.025 by more than two standard errors. *largest of all* is the
largest proportion of 13 metrics, which is above 0.025 by chance in some rows, and *by* is the metric that has it.

**What falls short.** Conditional metrics are compared over the answered items of each system. If one system has few
answers, their differences have a winner too often. The prediction-rejection ratio (PRR) is such a metric and has a
separate column. In 150 data sets of the settings with 400 items, an informative confidence and the same answers, the
timid system won by AUROC, Brier score, macro F1 and negative log-likelihood in 0.05 to 0.06 of the data sets if 30% of
the answers were wrong, and in 0.07 to 0.13 if 5% were wrong. The achievable AURC, which is an area under a convex hull,
exceeds the nominal proportion if the confidence is useless (at most 0.041).
"""


def declining_page(path: Path) -> str:
    """Return the page as Markdown."""
    records = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    lines = [
        _INTRODUCTION,
        "| items | wrong | confidence | answers | declines | data sets | AUGRC | AURC | selective accuracy "
        "| wrong rate | largest of all | by | PRR |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for record in records:
        rates = {name: count / record["runs"] for name, count in record["wins"].items()}
        worst = max((name for name in rates if name != SHORT), key=lambda name: rates[name])
        items = f"{record['clusters']} x {record['size']}" if record["size"] > 1 else f"{record['clusters']}"
        columns = ("augrc", "aurc", "selective_accuracy", "wrong_rate", worst)
        cells = [
            items,
            f"{record['wrong']:g}",
            "informative" if record["informative"] else "useless",
            "same" if record["same_answers"] else "independent",
            record["declines"],
            f"{record['runs']:,}",
            *(_rate(rates[name], record["runs"]) for name in columns),
            f"`{worst}`" if rates[worst] else "",
            _rate(rates[SHORT], record["runs"]),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, "", f"Simulated metrics: {', '.join(f'`{name}`' for name in METRICS)}.", ""])


def _rate(rate: float, runs: int) -> str:
    error = math.sqrt(max(rate * (1.0 - rate), 1.0 / runs) / runs)
    text = f"{rate:.3f} ({error:.3f})"
    return f"**{text}**" if rate > ALLOWED + 2.0 * error else text
