"""Run the simulations: `python -m simulations [--runs N] [--clusters 10,20] [--method jackknife]`.

Finished cells are stored in JSON Lines files such as ``simulations/results.jsonl``. A run that was stopped continues
with the first unfinished cell. The tables of the documentation are made from these files.
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

from simulations.coverage import CLUSTERS, Cell, CoverageCounts, run_cell
from simulations.declining import CELLS as DECLINING
from simulations.declining import simulate_declining
from simulations.differences import simulate_differences
from simulations.guarantees import CELLS as GUARANTEES
from simulations.guarantees import simulate_guarantees
from simulations.scenarios import SCENARIOS, SPECIAL

RESULTS = Path(__file__).parent / "results.jsonl"


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
    parser.add_argument("--skip-differences", action="store_true", help="skip comparisons of two systems")
    parser.add_argument(
        "--skip-guarantees", action="store_true", help="skip thresholds with a risk guarantee"
    )
    parser.add_argument("--skip-declining", action="store_true", help="skip comparisons with a timid system")
    parser.add_argument(
        "--guarantee-clusters",
        default=",".join(map(str, sorted({cell.clusters for cell in GUARANTEES}))),
        help="numbers of clusters for risk guarantees, separated by commas (default: %(default)s)",
    )
    parser.add_argument(
        "--results",
        type=Path,
        default=RESULTS,
        help="file of the counts (default: simulations/results.jsonl)",
    )
    arguments = parser.parse_args()
    scenarios = [scenario for scenario in SCENARIOS if arguments.only in scenario.name]
    special = [scenario for scenario in SPECIAL if arguments.only in scenario.name]
    cells = [
        Cell(scenario, int(clusters), method)
        for method in arguments.method.split(",")
        for clusters in arguments.clusters.split(",")
        for scenario in (*scenarios, *special)
    ]
    simulate_coverage(cells, arguments.runs, arguments.results)
    if not arguments.skip_guarantees:
        cluster_counts = arguments.guarantee_clusters.split(",")
        guarantees = [cell for cell in GUARANTEES if str(cell.clusters) in cluster_counts]
        with _progress_bar() as progress:
            task = progress.add_task("guarantees", total=len(guarantees) * arguments.runs)
            path = arguments.results.with_name("guarantees.jsonl")
            simulate_guarantees(
                guarantees, arguments.runs, path, lambda count: progress.update(task, advance=count)
            )
    if not arguments.skip_declining:
        with _progress_bar() as progress:
            task = progress.add_task("declining", total=len(DECLINING) * arguments.runs)
            path = arguments.results.with_name("declining.jsonl")
            simulate_declining(
                DECLINING, arguments.runs, path, lambda count: progress.update(task, advance=count)
            )
    if not arguments.skip_differences:
        simulate_differences(scenarios, arguments.runs, arguments.results.with_name("differences.jsonl"))


if __name__ == "__main__":
    main()
