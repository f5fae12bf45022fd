"""Run the simulations: `python -m simulations [--runs N] [--clusters 10,20] [--method jackknife] [--quick]`.

Every cell that is finished is kept in ``simulations/results.jsonl``; a run that was stopped goes on where it was. The
table of the documentation is made from that file.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from simulations.coverage import CLUSTERS, Cell, Tallied, run_cell
from simulations.declining import CELLS as DECLINING
from simulations.declining import simulate_declining
from simulations.differences import compared
from simulations.guarantees import CELLS, keep_guarantees
from simulations.scenarios import SCENARIOS

RESULTS = Path(__file__).parent / "results.jsonl"


def kept(path: Path) -> dict[tuple[str, str], dict[str, Any]]:
    """Return what was counted so far, by cell and metric; later lines stand in for earlier ones."""
    lines = path.read_text().splitlines() if path.exists() else []
    records = [json.loads(line) for line in lines]
    return {(record["cell"], record["metric"]): record for record in records}


def write(path: Path, records: dict[tuple[str, str], dict[str, Any]]) -> None:
    """Write all records beside the file, then put them in its place."""
    beside = path.with_suffix(".part")
    beside.write_text("".join(json.dumps(record) + "\n" for _, record in sorted(records.items())))
    beside.replace(path)


def cover(cells: list[Cell], runs: int, path: Path) -> None:
    """Simulate the coverage of intervals, cell by cell."""
    done = kept(path)
    open_ = [cell for cell in cells if _runs(done, cell) < runs]
    with _bar() as progress:
        task = progress.add_task("coverage", total=sum(runs - _runs(done, cell) for cell in open_))
        for cell in open_:
            start = _runs(done, cell)
            found = run_cell(cell, start, runs, lambda count: progress.update(task, advance=count))
            for metric, tallied in found.items():
                before = done.get((cell.key, metric))
                done[cell.key, metric] = _added(cell, metric, before, tallied)
            write(path, done)


def _runs(done: dict[tuple[str, str], dict[str, Any]], cell: Cell) -> int:
    return max((record["runs"] for (key, _), record in done.items() if key == cell.key), default=0)


def _added(cell: Cell, metric: str, before: dict[str, Any] | None, found: Tallied) -> dict[str, Any]:
    counted = asdict(found)
    if before is not None:
        counted = {name: before[name] + value for name, value in counted.items()}
    about = {**asdict(cell.scenario), "clusters": cell.clusters, "method": cell.method}
    return {"cell": cell.key, "metric": metric, **about, **counted}


def _bar() -> Progress:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    return Progress(*columns, console=Console(stderr=True), disable=not sys.stderr.isatty())


def main() -> None:
    """Read the arguments, simulate, and keep what was counted."""
    parser = argparse.ArgumentParser(prog="simulations", description=__doc__.split("\n")[0])
    parser.add_argument("--runs", type=int, default=400, help="data sets per cell")
    parser.add_argument("--clusters", default=",".join(map(str, CLUSTERS)), help="numbers of clusters")
    parser.add_argument(
        "--method", default="jackknife", help="jackknife, percentile or bca; several by commas"
    )
    parser.add_argument("--only", default="", help="scenarios whose name holds this text")
    parser.add_argument("--skip-differences", action="store_true", help="coverage alone")
    parser.add_argument("--skip-promises", action="store_true", help="no thresholds with a promise")
    parser.add_argument("--skip-declining", action="store_true", help="no comparison with a timid system")
    parser.add_argument("--promise-clusters", default="40,200,600", help="numbers of clusters for promises")
    parser.add_argument("--results", type=Path, default=RESULTS, help="the file that is kept")
    asked = parser.parse_args()
    scenarios = [scenario for scenario in SCENARIOS if asked.only in scenario.name]
    cells = [
        Cell(scenario, int(clusters), method)
        for method in asked.method.split(",")
        for clusters in asked.clusters.split(",")
        for scenario in scenarios
    ]
    cover(cells, asked.runs, asked.results)
    if not asked.skip_promises:
        chosen = [cell for cell in CELLS if str(cell.clusters) in asked.promise_clusters.split(",")]
        with _bar() as progress:
            task = progress.add_task("promises", total=len(chosen) * asked.runs)
            place = asked.results.with_name("guarantees.jsonl")
            keep_guarantees(chosen, asked.runs, place, lambda count: progress.update(task, advance=count))
    if not asked.skip_declining:
        with _bar() as progress:
            task = progress.add_task("declining", total=len(DECLINING) * asked.runs)
            place = asked.results.with_name("declining.jsonl")
            simulate_declining(
                DECLINING, asked.runs, place, lambda count: progress.update(task, advance=count)
            )
    if not asked.skip_differences:
        compared(scenarios, asked.runs, asked.results.with_name("differences.jsonl"))


if __name__ == "__main__":
    main()
