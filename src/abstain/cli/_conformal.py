"""What `abstain intervals` and `abstain sets` share: options, and what is done with a result."""

from __future__ import annotations

import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from abstain.cli._tables import print_tables
from abstain.errors import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from abstain.evaluation.conformal import CoverageResult
    from abstain.sources import SourceTable

_TABLE = "A CSV, TSV, Parquet or JSONL file, compressed or not; a pattern in quotes is one table."
_OUTPUT = (
    "Where the artifact goes, or the report if it ends in .html; else the artifact into a new file here."
)

Source = Annotated[
    Path,
    typer.Argument(
        metavar="TABLE",
        help=_TABLE,
        show_default=False,
    ),
]
Truth = Annotated[str, typer.Option(metavar="COLUMN", help="What is right.", show_default=False)]
Claims = Annotated[
    list[float],
    typer.Option(
        "--claim",
        metavar="P",
        help="Coverage that the predictions claim, such as 0.9; once per set of them.",
        show_default=False,
    ),
]
Cluster = Annotated[
    str | None,
    typer.Option(metavar="COLUMN", help="What belongs together, such as a patient.", show_default=False),
]
By = Annotated[
    list[str] | None,
    typer.Option(
        "--by", metavar="COLUMN", help="Coverage within each group; may be repeated.", show_default=False
    ),
]
Features = Annotated[
    list[str] | None,
    typer.Option(
        "--feature",
        metavar="COLUMN",
        help="Coverage by a number, and the worst slab of all.",
        show_default=False,
    ),
]
Weight = Annotated[
    str | None, typer.Option(metavar="COLUMN", help="How often each row counts.", show_default=False)
]
Margin = Annotated[float, typer.Option(metavar="X", help="How far below its claim coverage still holds.")]
Resamples = Annotated[
    int, typer.Option("--bootstrap-resamples", metavar="N", help="Cluster resamples; 0 for none.")
]
Seed = Annotated[int, typer.Option(metavar="N", help="The same seed gives the same intervals.")]
Level = Annotated[
    float, typer.Option("--level", metavar="P", help="Level of our intervals around the metrics.")
]
Output = Annotated[
    Path | None,
    typer.Option("--output", "-o", metavar="FILE", help=_OUTPUT, show_default=False),
]
Charts = Annotated[
    Path | None, typer.Option("--charts", metavar="DIR", help="Write charts there.", show_default=False)
]
ChartFormat = Annotated[
    str, typer.Option("--chart-format", metavar="NAME", help="svg, png, pdf, html or json.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Artifact to stdout; no summary.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print the paths of what was written alone.")]


def check_outputs(
    output: Path | None, charts: Path | None, chart_format: str, *, as_json: bool, quiet: bool
) -> None:
    """Find out before the work whether its results can be put where they should go."""
    from abstain import _files, _validate  # noqa: PLC0415
    from abstain.report.charts import FORMATS  # noqa: PLC0415

    if as_json and quiet:
        raise ArgumentError(
            "--json and --quiet exclude each other: one prints the artifact, the other its path"
        )
    if output is not None:
        _files.check_output(output)
    _validate.choice(chart_format, "chart format", [form.lstrip(".") for form in FORMATS])
    if charts is not None and charts.exists() and not charts.is_dir():
        raise ArgumentError(f"{charts}: is a file; --charts names a directory")


def options_of(
    table: SourceTable,
    cluster: str | None,
    by: Sequence[str],
    features: Sequence[str],
    weight: str | None,
) -> dict[str, Any]:
    """Read the columns that intervals and sets have in common."""
    return {
        "cluster": None if cluster is None else table.labels(cluster),
        "groups": {name: table.labels(name) for name in by},
        "features": {name: table.numbers(name) for name in features},
        "sample_weight": None if weight is None else table.numbers(weight),
    }


def judged(
    table: SourceTable,
    columns: Mapping[str, str | list[str] | None],
    judge: Callable[..., CoverageResult],
    resamples: int,
    *,
    show_progress: bool,
) -> CoverageResult:
    """Run a judgement under a progress bar and note where its rows came from."""
    from abstain.cli._progress import progress_bar  # noqa: PLC0415

    with progress_bar("resampling", resamples, wanted=show_progress) as progress:
        result = judge(progress=progress)
    named = {role: column for role, column in columns.items() if column}
    return replace(result, provenance={"path": table.label, "sha256": table.sha256(), "columns": named})


def publish(
    result: CoverageResult,
    output: Path | None,
    charts: Path | None,
    chart_format: str,
    form: str,
    *,
    as_json: bool,
    quiet: bool,
) -> None:
    """Write the artifact and the charts, and print what was asked for."""
    from abstain import _files  # noqa: PLC0415
    from abstain.cli.report import REPORT_ENDINGS, command_line  # noqa: PLC0415
    from abstain.report.artifact import encode  # noqa: PLC0415
    from abstain.report.artifact_conformal import conformal_artifact  # noqa: PLC0415

    content = encode(conformal_artifact(result, datetime.now(UTC)))
    if output is None and not as_json and form == "text":
        output = _new_name(f"{Path(result.provenance['path']).stem}-{result.kind}")
    as_report = output is not None and output.suffix.lower() in REPORT_ENDINGS
    if output is not None and as_report:
        result.report(output, command=command_line(sys.argv[1:]))
    elif output is not None:
        _files.write_whole(output, content)
    drawn = [] if charts is None else _draw(result, charts, chart_format)
    if as_json:
        typer.echo(content.decode(), nl=False)
        return
    if form != "text":
        from abstain.report.coverage import coverage_tables  # noqa: PLC0415

        print_tables(coverage_tables(result), form)
        return
    if not quiet:
        from abstain.report.console import console_for  # noqa: PLC0415
        from abstain.report.coverage import coverage_summary  # noqa: PLC0415

        console = console_for()
        console.print(coverage_summary(result, console.width))
        typer.echo()
    what = "report:  " if as_report else "artifact:"
    typer.echo(f"{output}" if quiet else f"{what} {output}")
    for place in drawn:
        typer.echo(f"{place}" if quiet else f"chart:    {place}")


def _draw(result: CoverageResult, directory: Path, chart_format: str) -> list[Path]:
    from abstain.report.charts import save_chart  # noqa: PLC0415
    from abstain.report.charts.intervals import charts  # noqa: PLC0415

    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise ArgumentError(f"{directory}: cannot be created ({problem.strerror})") from None
    return [
        save_chart(chart, directory / f"{_safe(name)}.{chart_format}")
        for name, chart in charts(result).items()
    ]


def _new_name(stem: str) -> Path:
    """A name that is not taken: an artifact of yesterday is not overwritten by one that nobody named."""
    place, number = Path(f"{_safe(stem)}.json"), 1
    while place.exists():
        number += 1
        place = Path(f"{_safe(stem)}-{number}.json")
    return place


def _safe(name: str) -> str:
    return "".join(letter if letter.isalnum() or letter in "._-" else "_" for letter in name)
