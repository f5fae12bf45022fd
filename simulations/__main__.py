"""Run the simulations: `python -m simulations [--runs N] [--clusters 10,20] [--skip coverage,guarantees]`.

Finished cells are stored in JSON Lines files such as ``simulations/results.jsonl``. A run that was stopped continues
with the first unfinished cell. The tables of the documentation are made from these files.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from simulations.coverage import CLUSTERS, Cell, CoverageCounts, run_cell
from simulations.declining import CELLS as DECLINING
from simulations.declining import simulate_declining
from simulations.differences import CELLS as DIFFERENCES
from simulations.differences import simulate_differences
from simulations.groups import CELLS as GROUPS
from simulations.groups import simulate_groups
from simulations.guarantees import CELLS as GUARANTEES
from simulations.guarantees import simulate_guarantees
from simulations.planning import CELLS as PLANNING
from simulations.planning import simulate_planning
from simulations.scenarios import SCENARIOS, SPECIAL

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

RESULTS = Path(__file__).parent / "results.jsonl"
# By name, which is also that of the file with the counts: what simulates cells, and the cells.
OTHERS: dict[str, tuple[Callable[..., None], Sequence[Any]]] = {
    "guarantees": (simulate_guarantees, GUARANTEES),
    "declining": (simulate_declining, DECLINING),
    "differences": (simulate_differences, DIFFERENCES),
    "groups": (simulate_groups, GROUPS),
    "planning": (simulate_planning, PLANNING),
}


def read_records(path: Path) -> dict[tuple[str, str], dict[str, Any]]:
    """Return the counts so far by cell and metric; a later line replaces an earlier one."""
    lines = path.read_text().splitlines() if path.exists() else []
    records = [json.loads(line) for line in lines]
    return {(record["cell"], record["metric"]): record for record in records}


def write_records(path: Path, records: dict[tuple[str, str], dict[str, Any]]) -> None:
    """Write all records to a temporary file, which then replaces the file."""
    temporary = path.with_suffix(".part")
    temporary.write_text("".join(json.dumps(record) + "\n" for _, record in sorted(records.items())))
    temporary.replace(path)


def simulate_coverage(cells: list[Cell], runs: int, path: Path) -> None:
    """Simulate the coverage of confidence intervals, cell by cell."""
    records = read_records(path)
    unfinished = [cell for cell in cells if _count_runs(records, cell) < runs]
    with _progress_bar() as progress:
        total = sum(runs - _count_runs(records, cell) for cell in unfinished)
        task = progress.add_task("coverage", total=total)
        for cell in unfinished:
            start = _count_runs(records, cell)
            counts_by_metric = run_cell(cell, start, runs, lambda count: progress.update(task, advance=count))
            for metric, counts in counts_by_metric.items():
                earlier = records.get((cell.key, metric))
                records[cell.key, metric] = _make_record(cell, metric, earlier, counts)
            write_records(path, records)


def _count_runs(records: dict[tuple[str, str], dict[str, Any]], cell: Cell) -> int:
    return max((record["runs"] for (key, _), record in records.items() if key == cell.key), default=0)


def _make_record(
    cell: Cell, metric: str, earlier: dict[str, Any] | None, counts: CoverageCounts
) -> dict[str, Any]:
    """Return the counts of a metric, added to those of an earlier record."""
    values = asdict(counts)
    if earlier is not None:
        values = {name: earlier[name] + value for name, value in values.items()}
    settings = {**asdict(cell.scenario), "clusters": cell.clusters, "method": cell.method}
    return {"cell": cell.key, "metric": metric, **settings, **values}


def _progress_bar() -> Progress:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    return Progress(*columns, console=Console(stderr=True), disable=not sys.stderr.isatty())


def main() -> None:
    """Parse the arguments, simulate, and store the counts."""
    parser = argparse.ArgumentParser(prog="simulations", description=__doc__.split("\n")[0])
    parser.add_argument("--runs", type=int, default=400, help="data sets per cell (default: 400)")
    parser.add_argument(
        "--clusters",
        default=",".join(map(str, CLUSTERS)),
        help="numbers of clusters, separated by commas (default: %(default)s)",
    )
    parser.add_argument(
        "--method",
        default="jackknife",
        help="jackknife, percentile or bca, separated by commas (default: jackknife)",
    )
    parser.add_argument("--only", default="", help="only scenarios whose name contains this text")
    parser.add_argument(
        "--skip",
        default="",
        help=f"simulations to skip, separated by commas: coverage, {', '.join(OTHERS)} (default: none)",
    )
    parser.add_argument(
        "--results",
        type=Path,
        default=RESULTS,
        help="file of the counts (default: simulations/results.jsonl)",
    )
    arguments = parser.parse_args()
    skipped = arguments.skip.split(",")
    clusters = [int(number) for number in arguments.clusters.split(",")]
    scenarios = [scenario for scenario in SCENARIOS if arguments.only in scenario.name]
    special = [scenario for scenario in SPECIAL if arguments.only in scenario.name]
    cells = [
        Cell(scenario, number, method)
        for method in arguments.method.split(",")
        for number in clusters
        for scenario in (*scenarios, *special)
    ]
    if "coverage" not in skipped:
        simulate_coverage(cells, arguments.runs, arguments.results)
    for name, (run, all_cells) in OTHERS.items():
        # Guarantees, declining systems and groups have other numbers of clusters.
        usual = name not in ("differences", "planning")
        chosen = [cell for cell in all_cells if usual or cell.clusters in clusters]
        if name not in skipped:
            with _progress_bar() as progress:
                task = progress.add_task(name, total=len(chosen) * arguments.runs)
                path = arguments.results.with_name(f"{name}.jsonl")
                run(
                    chosen,
                    arguments.runs,
                    path,
                    lambda count, task=task: progress.update(task, advance=count),
                )


if __name__ == "__main__":
    main()
