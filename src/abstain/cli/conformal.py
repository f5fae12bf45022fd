"""`abstain intervals` and `abstain sets`: from a table of truths and predictions that claim a coverage to a verdict."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer

from abstain._row_names import row_name, rows_named_by
from abstain.cli._options import (
    CROSSED,
    AsJson,
    Commands,
    Digits,
    Interval,
    Level,
    OptionGroup,
    Quiet,
    Resamples,
    Seed,
    SummaryFormat,
    Threads,
    expand_option_groups,
    listed,
    named,
    output_to,
)
from abstain.cli._pipeline import files_of, resampling_bar
from abstain.cli._program import DATA, OUTPUT
from abstain.cli._publishing import (
    OutputFile,
    Renderers,
    check_outputs,
    choose_formats,
    file_name,
    publish,
    report_page,
    summary_text,
)
from abstain.cli._terminal import show
from abstain.errors import ArgumentError, DataError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from abstain.cli._publishing import OutputFormats
    from abstain.evaluation.conformal import CoverageResult
    from abstain.readers import SourceTable

_TABLE = "A CSV, TSV, Parquet or JSONL file, compressed or not; a pattern in quotes is one table."
_CLAIM = "Coverage that the predictions claim, such as 0.9; once per set of them."
_OUTPUT = "What to write, by its ending: .json (every number), .html (a report), .md, .csv, .tex or .txt."
_SET = "Lists of labels (a list, a JSON array, or text divided by |); once per claim."
_MEMBERS = "Columns of 0 and 1, one per class, separated by commas; a truth is the column's name or number."
_ETA = "How hard the width criterion punishes coverage off its claim."

INTERVALS_EXAMPLES = """\b
Examples:
  abstain intervals preds.parquet --truth y --low lo --high hi --claim 0.9
  abstain intervals preds.csv --truth y --low lo --high hi --claim 0.9 \\
      --cluster patient --by site --charts charts
  abstain intervals preds.csv --truth y --low lo50 --high hi50 --claim 0.5 \\
      --low lo90 --high hi90 --claim 0.9
"""
SETS_EXAMPLES = """\b
Examples:
  abstain sets preds.jsonl --truth label --set labels --claim 0.9
  abstain sets preds.csv --truth label --members cat,dog,bird --claim 0.9 \\
      --cluster patient --by site
  abstain sets preds.parquet --truth label --set top90 --claim 0.9 \\
      --margin 0.02 -o sets.json
"""

Source = Annotated[Path, typer.Argument(metavar="TABLE", help=_TABLE, show_default=False)]
Truth = Annotated[str, named("--truth", "COLUMN", "What is right.")]
Claims = Annotated[list[float], named("--claim", "P", _CLAIM)]


@dataclass(frozen=True, slots=True)
class ColumnOptions:
    """The columns that intervals and sets have in common."""

    heading: ClassVar[str] = DATA
    cluster: Annotated[
        str | None, named("--cluster", "COLUMN", "What belongs together, such as a patient.")
    ] = None
    by: Annotated[
        list[str] | None, named("--by", "COLUMNS", "Coverage within each group; separated by commas.")
    ] = None
    features: Annotated[
        list[str] | None,
        named("--feature", "COLUMN", "Coverage by a number, and the worst slab of all."),
    ] = None
    weight: Annotated[str | None, named("--weight", "COLUMN", "How often each row counts.")] = None

    def read(self, table: SourceTable) -> dict[str, Any]:
        """Return what the columns hold, as arguments of a judgement."""
        return {
            "cluster": None if self.cluster is None else table.labels(self.cluster),
            "groups": {name: table.labels(name) for name in listed(self.by)},
            "features": {name: table.numbers(name) for name in self.features or []},
            "sample_weight": None if self.weight is None else table.numbers(self.weight),
        }


@dataclass(frozen=True, slots=True)
class Measuring(OptionGroup):
    """How coverage is judged: arguments of `abstain.evaluate_intervals` and `abstain.evaluate_sets`."""

    margin: Annotated[
        float, typer.Option(metavar="X", help="Distance from the claim that does not matter to the verdict.")
    ] = 0.0
    interval: Interval = "jackknife"
    resamples: Resamples = None
    seed: Seed = 42
    level: Level = 0.95
    threads: Threads = None
    digits: Digits = None


@dataclass(frozen=True, slots=True)
class Publishing:
    """What is written and printed."""

    heading: ClassVar[str] = OUTPUT
    output: Annotated[Path | None, output_to(_OUTPUT)] = None
    charts: Annotated[Path | None, named("--charts", "DIR", "Write charts there.")] = None
    chart_format: Annotated[
        str, typer.Option("--chart-format", metavar="NAME", help="svg, png, pdf, html or json.")
    ] = "svg"
    as_json: AsJson = False
    quiet: Quiet = False
    table_format: SummaryFormat = None

    def check(self, inputs: Sequence[Path]) -> OutputFormats:
        """Return what is printed; find out before the work whether its results can be put where they should go."""
        from abstain import _outputs, _validate  # noqa: PLC0415
        from abstain.report import CHART_FORMATS  # noqa: PLC0415

        formats = choose_formats(self.table_format, self.output, as_json=self.as_json, quiet=self.quiet)
        check_outputs(self.output, inputs=inputs)
        _validate.choice(self.chart_format, "chart format", [form.lstrip(".") for form in CHART_FORMATS])
        if self.charts is not None:
            _outputs.check_folder(self.charts)
        return formats


@expand_option_groups
def intervals_command(
    *,
    table: Source,
    truth: Truth,
    low: Annotated[list[str], named("--low", "COLUMN", "Lower bound; once per claim.")],
    high: Annotated[list[str], named("--high", "COLUMN", "Upper bound; once per claim.")],
    claims: Claims,
    columns: ColumnOptions,
    bins: Annotated[int, typer.Option(metavar="N", help="Strata of width.")] = 3,
    eta: Annotated[float, typer.Option(metavar="X", help=_ETA)] = 30.0,
    crossed: Annotated[str | None, named("--crossed", "HOW", CROSSED)] = None,
    measuring: Measuring,
    publishing: Publishing,
) -> None:
    """Judge prediction intervals: does coverage hold, where does it fail, how certain is that?"""
    if not len(low) == len(high) == len(claims):
        raise ArgumentError(
            f"give --low, --high and --claim equally often, got {len(low)}, {len(high)} and {len(claims)}"
        )
    files = files_of(table)
    formats = publishing.check(files)
    import numpy as np  # noqa: PLC0415

    from abstain.evaluation.conformal import evaluate_intervals  # noqa: PLC0415
    from abstain.readers import open_table  # noqa: PLC0415

    source = open_table(table)
    with rows_named_by(source.paths):
        truths = source.numbers(truth)
        pairs = [source.bounds(lower, upper, truths, crossed) for lower, upper in zip(low, high, strict=True)]
        judge = partial(
            evaluate_intervals,
            truths,
            np.stack(pairs, axis=2),
            claim=claims,
            bins=bins,
            eta=eta,
            **measuring.options,
        )
        own: dict[str, str | list[str] | None] = {"truth": truth, "low": low, "high": high}
        result = _judged(source, own, columns, judge, measuring, formats)
    _publish(result, publishing, formats, files)


@expand_option_groups
def sets_command(
    *,
    table: Source,
    truth: Truth,
    claims: Claims,
    sets: Annotated[list[str] | None, named("--set", "COLUMN", _SET)] = None,
    members: Annotated[str | None, named("--members", "COLUMNS", _MEMBERS)] = None,
    classes: Annotated[
        str | None, named("--classes", "LABELS", "All labels there are; else those that occur.")
    ] = None,
    columns: ColumnOptions,
    bins: Annotated[int | None, named("--bins", "N", "Groups of set sizes; else one per size.")] = None,
    measuring: Measuring,
    publishing: Publishing,
) -> None:
    """Judge prediction sets: does coverage hold, where does it fail, how certain is that?"""
    if bool(sets) == bool(members):
        raise ArgumentError("say where the sets are: either --set COLUMN or --members COLUMN,COLUMN,...")
    if members and classes:
        raise ArgumentError("--classes goes with --set; with --members the columns are the classes")
    if len(sets or [members]) != len(claims):
        raise ArgumentError(f"give one --claim per set, got {len(claims)} for {len(sets or [members])}")
    files = files_of(table)
    formats = publishing.check(files)
    from abstain.evaluation.conformal import evaluate_sets  # noqa: PLC0415
    from abstain.readers import open_table  # noqa: PLC0415

    source = open_table(table)
    with rows_named_by(source.paths):
        if members:
            names = [name.strip() for name in members.split(",") if name.strip()]
            labels, table_of_sets = _from_members(source, truth, names)
        else:
            names, labels, table_of_sets = _from_lists(source, truth, sets or [], classes)
        judge = partial(
            evaluate_sets, labels, table_of_sets, claim=claims, labels=names, bins=bins, **measuring.options
        )
        own = {"truth": truth, "set": sets, "members": names if members else None}
        result = _judged(source, own, columns, judge, measuring, formats)
    _publish(result, publishing, formats, files)


def _judged(
    source: SourceTable,
    own: Mapping[str, str | list[str] | None],
    columns: ColumnOptions,
    judge: Callable[..., CoverageResult],
    measuring: Measuring,
    formats: OutputFormats,
) -> CoverageResult:
    """Run a judgement under a progress bar and note where its rows came from."""
    shared = columns.read(source)
    watched = not (formats.quiet or formats.as_json)
    with resampling_bar(measuring.interval, measuring.resamples, wanted=watched) as progress:
        result = judge(**shared, progress=progress)
    named_columns = {**own, "cluster": columns.cluster, "by": listed(columns.by), "weight": columns.weight}
    named_columns["feature"] = columns.features
    read = {role: column for role, column in named_columns.items() if column}
    return replace(result, provenance={"path": source.label, "sha256": source.sha256(), "columns": read})


def _publish(
    result: CoverageResult, publishing: Publishing, formats: OutputFormats, inputs: Sequence[Path]
) -> None:
    """Write the artifact and the charts, and print what was asked for."""
    from abstain import _outputs  # noqa: PLC0415

    with contextlib.nullcontext() if publishing.charts is None else _outputs.new_folder(publishing.charts):
        charts = _charts(result, publishing)
        publish(formats, _renderers(result), publishing.output, further=charts, inputs=inputs)


def _renderers(result: CoverageResult) -> Renderers:
    def results_json() -> bytes:
        from abstain.report.artifact import encode  # noqa: PLC0415
        from abstain.report.artifact_conformal import conformal_artifact  # noqa: PLC0415

        return encode(conformal_artifact(result, datetime.now(UTC)))

    from abstain.report.coverage import coverage_summary, coverage_tables  # noqa: PLC0415

    return Renderers(
        results_json,
        lambda: coverage_tables(result),
        lambda: show(coverage_summary, result),
        lambda: report_page(result),
        lambda: summary_text(coverage_summary, result),
    )


def _charts(result: CoverageResult, publishing: Publishing) -> list[OutputFile]:
    if publishing.charts is None:
        return []
    from abstain.report.charts import chart_content  # noqa: PLC0415
    from abstain.report.charts.intervals import charts  # noqa: PLC0415

    form = publishing.chart_format
    return [
        OutputFile(
            "chart:", publishing.charts / f"{file_name(name)}.{form}", chart_content(chart, f".{form}")
        )
        for name, chart in charts(result).items()
    ]


def _from_members(
    source: SourceTable, truth: str, names: list[str]
) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    import numpy as np  # noqa: PLC0415

    member = np.column_stack([source.flags(name) for name in names])[:, :, None]
    given = source.labels(truth)
    by_number = given.dtype.kind == "i" and not {str(label) for label in given} <= set(names)
    return given if by_number else _indices(source, truth, given, names), member


def _from_lists(
    source: SourceTable, truth: str, sets: list[str], classes: str | None
) -> tuple[list[str], NDArray[np.intp], NDArray[np.bool_]]:
    import numpy as np  # noqa: PLC0415

    from abstain.labels import class_names, members  # noqa: PLC0415

    given = source.labels(truth)
    lists = {name: source.lists(name) for name in sets}
    occurring = [*given.tolist(), *(label for rows in lists.values() for row in rows for label in row)]
    names = list(class_names(occurring) if classes is None else class_names(classes.split(",")))
    member = [
        members(rows, names, name=f"{source.label}: the column {name!r}") for name, rows in lists.items()
    ]
    return names, _indices(source, truth, given, names), np.stack(member, axis=2)


def _indices(source: SourceTable, truth: str, given: NDArray[Any], names: list[str]) -> NDArray[np.intp]:
    import numpy as np  # noqa: PLC0415

    from abstain.labels import class_index, column  # noqa: PLC0415

    found = class_index(column(given, truth), names)
    if (found < 0).any():
        row = int(np.argmax(found < 0))
        raise DataError(
            f"{source.label}: the column {truth!r} has a label that is no class at {row_name(row)}"
        )
    return found


COMMANDS: Commands = {
    "intervals": (intervals_command, INTERVALS_EXAMPLES),
    "sets": (sets_command, SETS_EXAMPLES),
}
