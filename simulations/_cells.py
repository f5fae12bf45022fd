"""Simulate cells on every core, and store counts by metric in a file of JSON lines, one per cell."""

from __future__ import annotations

import json
import math
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

__all__ = ["FEWEST", "Counts", "error_of", "is_above", "read_records", "simulate"]

# By metric, some counts that are added up over data sets.
Counts = dict[str, list[int]]
# Proportions of fewer data sets are not shown.
FEWEST = 20
_RUNS_PER_JOB = 20
# A proportion is above the nominal one if chance would cause it in fewer settings than this.
_ODDS = 0.001


class Setting(Protocol):
    """A cell: a data class with a name."""

    @property
    def key(self) -> str:
        """The name of the cell in the results."""


def read_records(path: Path) -> dict[str, dict[str, Any]]:
    """Return the stored records by cell."""
    lines = path.read_text().splitlines() if path.exists() else []
    return {record["cell"]: record for record in map(json.loads, lines)}


def simulate(
    cells: Sequence[Any],
    count: Callable[[Any, int, int], Mapping[str, Sequence[int]]],
    runs: int,
    path: Path,
    progress: Callable[[int], None] = lambda _count: None,
) -> None:
    """Simulate cells up to a number of data sets each, and store the counts after each cell.

    Args:
        cells: data classes with a `key`.
        count: returns the counts of a cell by metric, from the first data set to the one after the last.
        runs: the number of data sets per cell; those that are stored are not simulated again.
        path: the file of the counts.
        progress: called with the number of data sets since the last call.
    """
    records = read_records(path)
    with ProcessPoolExecutor() as pool:
        jobs: dict[str, list[tuple[int, Future[Mapping[str, Sequence[int]]]]]] = {}
        for cell in cells:
            done = records.get(cell.key, {"runs": 0})["runs"]
            jobs[cell.key] = [
                (stop := min(start + _RUNS_PER_JOB, runs), pool.submit(count, cell, start, stop))
                for start in range(done, runs, _RUNS_PER_JOB)
            ]
        for cell in cells:
            record = records.get(cell.key, {"cell": cell.key, **asdict(cell), "runs": 0, "metrics": {}})
            for stop, job in jobs[cell.key]:
                for name, own in job.result().items():
                    earlier = record["metrics"].get(name, [0] * len(own))
                    record["metrics"][name] = [a + b for a, b in zip(earlier, own, strict=True)]
                progress(stop - record["runs"])
                record["runs"] = stop
            if jobs[cell.key]:
                records[cell.key] = record
                path.write_text("".join(json.dumps(each) + "\n" for _, each in sorted(records.items())))


def error_of(events: int, trials: int) -> float:
    """Return the Monte Carlo standard error of a proportion, as if there was at least one event and one other trial."""
    proportion = min(max(events, 1), trials - 1) / trials
    return math.sqrt(proportion * (1.0 - proportion) / trials)


def is_above(events: int, trials: int, nominal: float) -> bool:
    """Return whether chance would hardly cause so many events."""
    from scipy.special import bdtrc  # noqa: PLC0415

    return bool(events and bdtrc(events - 1, trials, nominal) < _ODDS)
