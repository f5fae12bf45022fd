"""Worst groups: how often the worst of several groups seems to differ from all other rows although all are alike.

Every row belongs to one of eight groups, drawn at random for each row or for each cluster. `abstain.evaluate` finds the
worst group by each metric and its gap to all other rows. A confidence interval of the gap that excludes 0 is a false
alarm.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

import abstain
from simulations._cells import FEWEST, Counts, error_of, is_above, read_records, simulate
from simulations.differences import METRICS
from simulations.scenarios import Scenario

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

__all__ = ["CELLS", "Cell", "count_alarms", "groups_page", "simulate_groups"]

_GROUPS, _NOMINAL = 8, 0.05


@dataclass(frozen=True, slots=True)
class Cell:
    """One simulated setting.

    Attributes:
        errors: "frequent" or "rare".
        drawn_for: "rows" or "clusters", whichever the groups are drawn for.
        clusters: the number of clusters.
    """

    errors: str
    drawn_for: str
    clusters: int

    @property
    def key(self) -> str:
        """The name of the cell in the results."""
        return f"{self.errors}, groups of {self.drawn_for}, {self.clusters} clusters"


# Groups of fewer than ten clusters are never the worst, so groups of clusters need many clusters.
_CLUSTERS = {"rows": 41, "clusters": 160}
CELLS = tuple(
    Cell(errors, drawn_for, clusters)
    for errors in ("frequent", "rare")
    for drawn_for, clusters in _CLUSTERS.items()
)


def count_alarms(cell: Cell, start: int, stop: int) -> Counts:
    """Return by metric the numbers of false alarms, and of data sets with a confidence interval of the gap."""
    counts = {name: [0, 0] for name in METRICS["answers"]}
    for run in range(start, stop):
        seed = hashlib.sha256(f"{cell.key}; {run}".encode()).digest()[:8]
        generator = np.random.default_rng([*seed])
        items = Scenario(cell.errors).answers(generator, cell.clusters).items
        names = np.arange(len(items)) if cell.drawn_for == "rows" else np.unique(items.cluster)
        group = generator.integers(0, _GROUPS, len(names))
        group = group if cell.drawn_for == "rows" else group[np.searchsorted(names, items.cluster)]
        items = replace(items, metadata={**items.metadata, "group": group})
        result = abstain.evaluate(items, metrics=METRICS["answers"], by="group", selective=False)
        assert result.metrics is not None
        for name, found in result.metrics.gaps.items():
            if found.gap.interval is not None:
                low, high = found.gap.interval
                counts[name][0] += not low <= 0.0 <= high
                counts[name][1] += 1
    return counts


def simulate_groups(
    cells: Sequence[Cell], runs: int, path: Path, progress: Callable[[int], None] = lambda _count: None
) -> None:
    """Simulate cells up to a number of data sets each, on every core, and store the counts."""
    simulate(cells, count_alarms, runs, path, progress)


_INTRODUCTION = """\
# Simulated gaps of worst groups

Items belong to eight groups that do not differ. How often does the worst group seem to differ from all other rows,
because the confidence interval of its gap excludes 0? It should be in at most 0.05 of the data sets. `make docs`
generates this page from `simulations/groups.jsonl`, and `make simulate` adds data sets to that file.

**What was simulated.** Clusters of 8 items with a strong common effect, with frequent or rare errors. Groups are drawn
for every row, so that a cluster has items of several groups, or for every cluster. All metrics of answers with a better
direction are simulated. The settings are defined in `simulations/groups.py`.

**How to read the table.** A cell contains the proportion of data sets whose interval excludes 0, with its Monte Carlo
standard error in parentheses. It is **bold** if chance would cause such a proportion in one setting of a thousand, and
empty if fewer than 20 data sets have an interval.

**What falls short.** The top-label calibration error is biased upwards by binning, more so in small groups, and has no
debiased form. So its gap has no interval. Use the smooth or the expected calibration error for groups.
"""


def groups_page(path: Path) -> str:
    """Return the page as Markdown."""
    records = read_records(path)
    shown = [cell for cell in CELLS if cell.key in records]
    heads = [cell.key for cell in shown]
    runs = sorted({record["runs"] for record in records.values()})
    table = [
        f"{len(shown)} settings with {' to '.join(map(str, runs[:: max(len(runs) - 1, 1)]))} data sets each.",
        "",
        f"| metric | {' | '.join(heads)} |",
        "|---" * (len(shown) + 1) + "|",
    ]
    for name in METRICS["answers"]:
        cells = []
        for cell in shown:
            alarms, trials = records[cell.key]["metrics"].get(name, (0, 0))
            text = f"{alarms / trials:.3f} ({error_of(alarms, trials):.3f})" if trials >= FEWEST else ""
            cells.append(f"**{text}**" if text and is_above(alarms, trials, _NOMINAL) else text)
        table.append(f"| `{name}` | {' | '.join(cells)} |")
    return "\n".join([_INTRODUCTION, *table, ""])
