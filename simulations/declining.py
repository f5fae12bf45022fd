"""Declining: how often a system wins that declines most items and is no better than the other one.

Both systems answer the same items equally well: with the same answers, or each with its own luck. The timid one
declines most items, at random or by whole clusters. The confidence is worth something, or nothing at all, which is the
hardest case: at matched coverage the two are then exactly equal. A win of the timid system is a false alarm on one
side, so that at most half of ``1 - level`` may be.
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
# Its interval is too narrow with few answers, whichever system has them; see the page.
SHORT = "prediction_rejection_ratio@aurc"
ALLOWED = 0.025


@dataclass(frozen=True, slots=True)
class Cell:
    """One setting: how many clusters of how many items, how often answers are wrong, and how the timid one declines."""

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
    """Count how often the timid system wins, by metric."""
    counted = dict.fromkeys(METRICS, 0)
    for run in range(start, stop):
        systems = cell.systems(run)
        if not systems["timid"].counts.answered:
            continue
        found = abstain.compare(systems, metrics=list(METRICS), loss="zero_one", resamples=0)
        for name in METRICS:
            counted[name] += found.difference("ok", "timid", name).winner == "timid"
    return counted


def simulate_declining(
    cells: Sequence[Cell], runs: int, path: Path, progress: Callable[[int], None] = lambda _count: None
) -> None:
    """Simulate cells up to a number of data sets each, on every core, and keep what was counted."""
    lines = path.read_text().splitlines() if path.exists() else []
    records = {json.loads(line)["cell"]: json.loads(line) for line in lines}
    with ProcessPoolExecutor() as pool:
        started = {}
        for cell in cells:
            done = records.get(cell.key, {"runs": 0})["runs"]
            if done < runs:
                started[cell] = done, pool.submit(wins, cell, done, runs)
        for cell, (done, counting) in started.items():
            before = records.get(cell.key, {"wins": dict.fromkeys(METRICS, 0)})["wins"]
            counted = {name: before[name] + count for name, count in counting.result().items()}
            records[cell.key] = {"cell": cell.key, **asdict(cell), "runs": runs, "wins": counted}
            path.write_text("".join(json.dumps(record) + "\n" for _, record in sorted(records.items())))
            progress(runs - done)


_INTRODUCTION = """# Simulated comparisons with a timid system

Generated from `simulations/declining.jsonl` by `make docs`; `make simulate` adds to it. How often does a system win a
comparison that declines 86% of all items and is no better than the other one?

**Populations.** 400 independent items, or 40 clusters of 10 that share an effect. Answers are wrong in about 30% or 5%
of all items. Both systems give the same answers, or each has its own luck with equal quality. The confidence is worth
something, or nothing (*useless*): then the two are exactly equal at matched coverage, which is the hardest case. The
timid system declines at random, or by whole clusters. The exact populations are in `simulations/declining.py`.

**How to read it.** The proportion of data sets in which the timid system wins by a metric; at most 0.025 is nominal,
half of 1 - level. Its Monte Carlo error is in brackets; **bold** if it exceeds 0.025 by more than twice that error.
*Largest of all* is the largest of 13 proportions, and so larger than 0.025 by chance in some rows.

**What falls short.** Conditional metrics are compared over the answered items of each system, and their differences
have a winner too often if one system has few answers. The prediction-rejection ratio (PRR) has a column for itself. In
150 data sets of the settings "400, informative, same" the timid system won by AUROC, Brier score, macro F1 and negative
log-likelihood in 0.05 to 0.06 (30% wrong) and 0.07 to 0.13 (5% wrong). The achievable AURC, an area under a convex
hull, is above the nominal rate with a useless confidence (0.041 at most).
"""


def declining_page(path: Path) -> str:
    """Return the page of what was counted so far."""
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
        shown = ("augrc", "aurc", "selective_accuracy", "wrong_rate", worst)
        cells = [
            items,
            f"{record['wrong']:g}",
            "informative" if record["informative"] else "useless",
            "same" if record["same_answers"] else "own",
            record["declines"],
            f"{record['runs']:,}",
            *(_rate(rates[name], record["runs"]) for name in shown),
            f"`{worst}`" if rates[worst] else "",
            _rate(rates[SHORT], record["runs"]),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, "", f"Metrics: {', '.join(f'`{name}`' for name in METRICS)}.", ""])


def _rate(rate: float, runs: int) -> str:
    error = math.sqrt(max(rate * (1.0 - rate), 1.0 / runs) / runs)
    text = f"{rate:.3f} ({error:.3f})"
    return f"**{text}**" if rate > ALLOWED + 2.0 * error else text
