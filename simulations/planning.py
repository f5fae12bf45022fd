"""Planning: the power of studies whose number of clusters comes from a pilot, by `abstain.power`.

The difference to detect is the true one, so that the planned power is the nominal one if the standard error is known.
It is estimated from a pilot, which is sometimes too optimistic and sometimes too pessimistic.
"""

from __future__ import annotations

import itertools
import json
import math
from dataclasses import asdict, dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

import abstain
from abstain.errors import DataError
from abstain.inference import clusters_needed
from simulations.differences import Cell as Comparison
from simulations.scenarios import Scenario

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from abstain import Items

__all__ = ["CELLS", "Cell", "planning_page", "simulate_planning", "true_power"]

POWER = 0.8
# The clusters of the sample that true differences and standard errors come from.
_POPULATION = 20_000


@dataclass(frozen=True, slots=True)
class Cell:
    """One simulated setting.

    Attributes:
        metric: the metric.
        errors: "frequent" or "rare".
        systems: the number of systems in the pilot: 2, or 1 if a correlation of one half is assumed.
        clusters: the number of clusters of the pilot.
    """

    metric: str
    errors: str
    systems: int
    clusters: int

    @property
    def key(self) -> str:
        """The name of the cell in the results."""
        return "; ".join(map(str, (self.metric, self.errors, self.systems, self.clusters)))

    def pair(self, run: int) -> list[Items]:
        """Return two systems on the same items."""
        comparison = Comparison(Scenario(self.errors), self.clusters, step=0.7)
        _, systems = next(comparison.pairs([run, self.clusters]))
        return systems


CELLS = tuple(
    Cell(metric, errors, systems, clusters)
    for metric, errors, systems, clusters in itertools.product(
        ("accuracy", "augrc", "aurc"), ("frequent", "rare"), (2, 1), (10, 20, 40)
    )
    if systems == 2 or metric == "accuracy"
)


@cache
def _population(metric: str, errors: str) -> tuple[float, float]:
    """Return the size of the true difference, and its standard error with one cluster."""
    left, right = Cell(metric, errors, 2, _POPULATION).pair(0)
    found = abstain.compare({"left": left, "right": right}, metrics=metric).difference(
        "left", "right", metric
    )
    return abs(found.estimate.value), found.estimate.se * math.sqrt(_POPULATION)


def true_power(cell: Cell, clusters: float) -> float:
    """Return the probability that a study with some clusters detects the true difference at level 0.95."""
    from scipy.stats import nct, t  # noqa: PLC0415

    difference, error = _population(cell.metric, cell.errors)
    degrees = clusters - 1.0
    return float(nct.sf(t.ppf(0.975, degrees), degrees, difference * math.sqrt(clusters) / error))


def _plan(cell: Cell, run: int) -> tuple[float, float, bool] | None:
    """Return the planned clusters, their true power, and whether the printed range has the clusters truly needed."""
    difference, error = _population(cell.metric, cell.errors)
    needed = clusters_needed(difference, error, 1, power=POWER)
    try:
        planned = abstain.power(*cell.pair(run)[: cell.systems], metric=cell.metric, difference=difference)
    except DataError:  # the metric does not vary between the clusters of the pilot
        return None
    within = planned.clusters_low <= needed <= planned.clusters_high
    return planned.clusters_needed, true_power(cell, planned.clusters_needed), within


def simulate_planning(
    cells: Sequence[Cell], runs: int, path: Path, progress: Callable[[int], None] = lambda _count: None
) -> None:
    """Simulate the cells that are not stored with this number of pilots, and store their results."""
    lines = path.read_text().splitlines() if path.exists() else []
    records = {record["cell"]: record for record in map(json.loads, lines)}
    for cell in cells:
        if records.get(cell.key, {"runs": 0})["runs"] < runs:
            plans = [plan for run in range(runs) if (plan := _plan(cell, run)) is not None]
            clusters, power, within = np.array(plans).T
            records[cell.key] = {
                "cell": cell.key,
                **asdict(cell),
                "runs": runs,
                "plans": len(plans),
                "needed": clusters_needed(*_population(cell.metric, cell.errors), 1, power=POWER),
                "clusters": np.quantile(clusters, (0.1, 0.5, 0.9)).tolist(),
                "power": float(power.mean()),
                "power_error": float(power.std(ddof=1)) / math.sqrt(len(plans)),
                "within": float(within.mean()),
            }
            path.write_text("".join(json.dumps(record) + "\n" for _, record in sorted(records.items())))
        progress(runs)


_INTRODUCTION = """\
# Simulated power of planned studies

`abstain power` computes how many clusters a study needs, from a pilot. How often does a study with this number of
clusters detect the difference? `make docs` generates this page from `simulations/planning.jsonl`, and `make simulate`
adds settings to that file.

**What was simulated.** Clusters of 8 items with a strong common effect, with frequent or rare errors. The second system
is better by 0.7 in log-odds, and the difference to detect is the true one. A pilot has both systems on the same items,
or one system, and then a correlation of 0.5 between the systems is assumed. The settings are defined in
`simulations/planning.py`.

| column | meaning |
|---|---|
| needed | The number of clusters with a power of 80%, if the standard error is known |
| planned | The median number of clusters that `abstain power` returns, and the numbers that 10% and 90% of the pilots \
do not exceed |
| power | The mean power of the planned studies, with its Monte Carlo standard error. It should be 0.80. |
| range | The proportion of pilots whose printed range contains the number needed. It should be 0.95. |
| none | The proportion of pilots in which the metric does not vary, so that no number is returned |

**What falls short.** The power for a difference of AURC is about 0.75 after a pilot of 10 or 20 clusters, because the
standard error of an area is skewed. The printed range assumes that standard errors vary as those of a mean. So it is
too short for areas, and for one system with an assumed correlation: here the true correlation is above one half, and
studies are larger than necessary. With few errors, standard errors include the cost of one more wrong answer, and plans
from small pilots are too large.
"""


def planning_page(path: Path) -> str:
    """Return the page as Markdown."""
    lines = path.read_text().splitlines() if path.exists() else []
    records: dict[str, dict[str, Any]] = {record["cell"]: record for record in map(json.loads, lines)}
    table = [
        "| metric | errors | systems | clusters of the pilot | pilots | needed | planned | power | range | none |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for cell in CELLS:
        if cell.key not in records:
            continue
        record = records[cell.key]
        low, median, high = (f"{clusters:,.0f}" for clusters in record["clusters"])
        none = 1.0 - record["plans"] / record["runs"]
        cells = [
            f"`{cell.metric}`",
            cell.errors,
            str(cell.systems),
            str(cell.clusters),
            f"{record['runs']:,}",
            f"{record['needed']:,.0f}",
            f"{median} ({low} to {high})",
            f"{record['power']:.3f} ({record['power_error']:.3f})",
            f"{record['within']:.3f}",
            f"{none:.2f}" if none else "",
        ]
        table.append(f"| {' | '.join(cells)} |")
    return "\n".join([_INTRODUCTION, *table, ""])
