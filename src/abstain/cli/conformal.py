"""`abstain intervals` and `abstain sets`: coverage of prediction intervals and sets, with verdicts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer

from abstain import _outputs
from abstain._row_names import row_name, rows_named_by
from abstain.cli import _options as opt
from abstain.cli._pipeline import files_of, resampling_bar
from abstain.cli._program import DATA, OUTPUT
from abstain.cli._publishing import OutputFile, Renderers, check_outputs, choose_formats, file_name, publish
from abstain.errors import ArgumentError, DataError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import AbstractContextManager

    import numpy as np
    from numpy.typing import NDArray

    from abstain.cli._publishing import OutputFormats
    from abstain.evaluation.conformal import CoverageResult
    from abstain.readers import SourceTable

_TABLE = "CSV, TSV, Parquet or JSONL file, compressed or not. A pattern in quotes is one table."
_NOMINAL = "Nominal coverage of the predictor: the probability that a prediction contains the truth; may be repeated."
_LOW = "Column of the lower bound; once per --nominal."
_HIGH = "Column of the upper bound; once per --nominal."
_SET = "Column of label lists (a list, a JSON array, or text with |); once per --nominal."
_MEMBERS = "Columns of 0 and 1, one per class, separated by commas. The truth is a column name or number."
_CLASSES = "All possible labels, separated by commas. Default: the labels that occur."
_SET_BINS = "Number of groups of set sizes. Default: one per size."
_ETA = "Penalty of the width criterion for a coverage other than the nominal coverage."
_CLUSTER = "Column of the cluster (e.g. patient) that rows belong to. Default: rows are independent."
_BY = "Columns, separated by commas: also compute the coverage of each group."
_FEATURE = (
    "Numeric column: compute the coverage along it, and the worst slab of all features; may be repeated."
)
_MARGIN = "Difference from the nominal coverage that does not matter."

INTERVALS_EXAMPLES = """\b
Examples:
  abstain intervals preds.parquet --truth y --low lo --high hi --nominal 0.9
  abstain intervals preds.csv --truth y --low lo --high hi --nominal 0.9 \\
      --cluster patient --by site --charts charts
  abstain intervals preds.csv --truth y --low lo50 --high hi50 --nominal 0.5 \\
      --low lo90 --high hi90 --nominal 0.9
"""
SETS_EXAMPLES = """\b
Examples:
  abstain sets preds.jsonl --truth label --set labels --nominal 0.9
  abstain sets preds.csv --truth label --members cat,dog,bird --nominal 0.9 \\
      --cluster patient --by site
  abstain sets preds.parquet --truth label --set top90 --nominal 0.9 \\
      --margin 0.02 -o sets.json
"""

Source = Annotated[Path, typer.Argument(metavar="TABLE", help=_TABLE, show_default=False)]
Truth = Annotated[str, opt.column("--truth", "Column of the true values.")]
NominalCoverages = Annotated[list[float], opt.named("--nominal", "PROPORTION", _NOMINAL)]


@dataclass(frozen=True)
class ColumnOptions(opt.OptionGroup):
    """The columns that intervals and sets have in common."""

    heading: ClassVar[str] = DATA
    cluster: Annotated[str | None, opt.column("--cluster", _CLUSTER)] = None
    by: Annotated[list[str] | None, opt.named("--by", "COLUMNS", _BY)] = None
    features: Annotated[list[str] | None, opt.column("--feature", _FEATURE)] = None
    weight: Annotated[str | None, opt.column("--weight", opt.WEIGHT)] = None

    def read(self, table: SourceTable) -> dict[str, Any]:
        """Return the content of the columns, as arguments of `evaluate_intervals` and `evaluate_sets`."""
        return {
            "cluster": None if self.cluster is None else table.labels(self.cluster),
            "groups": {name: table.labels(name) for name in opt.listed(self.by)},
            "features": {name: table.numbers(name) for name in self.features or []},
            "sample_weight": None if self.weight is None else table.numbers(self.weight),
        }


@dataclass(frozen=True)
class CoverageOptions(opt.OptionGroup):
    """How to evaluate coverage: arguments of `abstain.evaluate_intervals` and `abstain.evaluate_sets`."""

    margin: Annotated[float, typer.Option(metavar="X", help=_MARGIN)] = 0.0
    interval: opt.Interval = "jackknife"
    resamples: opt.Resamples = None
    seed: opt.Seed = 42
    level: opt.Level = 0.95
    threads: opt.Threads = None
    digits: opt.Digits = None

    def progress_bar(self, formats: OutputFormats) -> AbstractContextManager[Callable[[int], None] | None]:
        """Return the progress bar of the resamples."""
        return resampling_bar(self.interval, self.resamples, wanted=not (formats.quiet or formats.as_json))


@dataclass(frozen=True)
class OutputOptions(opt.OptionGroup):
    """Written files and printed output."""

    heading: ClassVar[str] = OUTPUT
    output: opt.ResultOutput = None
    charts: Annotated[Path | None, opt.named("--charts", "DIR", "Directory for charts.")] = None
    chart_format: Annotated[
        str,
        typer.Option("--chart-format", metavar="NAME", help="Format of charts: svg, png, pdf, html or json."),
    ] = "svg"
    as_json: opt.AsJson = False
    quiet: opt.Quiet = False
    table_format: opt.SummaryFormat = None

    def check(self, inputs: Sequence[Path]) -> OutputFormats:
        """Return the formats; raise before the evaluation if an output cannot be written."""
        from abstain import _validate  # noqa: PLC0415
        from abstain.report import CHART_FORMATS  # noqa: PLC0415

        formats = choose_formats(self.table_format, self.output, as_json=self.as_json, quiet=self.quiet)
        check_outputs(self.output, inputs=inputs)
        _validate.choice(self.chart_format, "chart format", [form.lstrip(".") for form in CHART_FORMATS])
        if self.charts is not None:
            _outputs.check_folder(self.charts)
        return formats


@opt.expand_option_groups
def intervals_command(
    *,
    table: Source,
    truth: Truth,
    low: Annotated[list[str], opt.column("--low", _LOW)],
    high: Annotated[list[str], opt.column("--high", _HIGH)],
    by_nominal: NominalCoverages,
    columns: ColumnOptions,
    bins: Annotated[int, typer.Option(metavar="N", help="Number of strata by width.")] = 3,
    eta: Annotated[float, typer.Option(metavar="X", help=_ETA)] = 30.0,
    crossed: Annotated[str | None, opt.named("--crossed", "HOW", opt.CROSSED)] = None,
    coverage: CoverageOptions,
    outputs: OutputOptions,
) -> None:
    """Evaluate prediction intervals: coverage overall and by group, width, and verdicts on the nominal coverage."""
    if not len(low) == len(high) == len(by_nominal):
        raise ArgumentError(
            f"pass --low, --high and --nominal equally often, got {len(low)}, {len(high)} and {len(by_nominal)}"
        )
    files = files_of(table)
    formats = outputs.check(files)
    import numpy as np  # noqa: PLC0415

    from abstain.evaluation.conformal import evaluate_intervals  # noqa: PLC0415
    from abstain.readers import open_table  # noqa: PLC0415

    source = open_table(table)
    with rows_named_by(source.paths), coverage.progress_bar(formats) as progress:
        truths = source.numbers(truth)
        bounds = [
            source.bounds(lower, upper, truths, crossed) for lower, upper in zip(low, high, strict=True)
        ]
        result = evaluate_intervals(
            truths,
            np.stack(bounds, axis=2),
            nominal=by_nominal,
            bins=bins,
            eta=eta,
            progress=progress,
            **columns.read(source),
            **coverage.options,
        )
    result = _with_provenance(result, source, columns, {"truth": truth, "low": low, "high": high})
    _publish(result, outputs, formats, files)


@opt.expand_option_groups
def sets_command(
    *,
    table: Source,
    truth: Truth,
    by_nominal: NominalCoverages,
    sets: Annotated[list[str] | None, opt.column("--set", _SET)] = None,
    members: Annotated[str | None, opt.named("--members", "COLUMNS", _MEMBERS)] = None,
    classes: Annotated[str | None, opt.named("--classes", "LABELS", _CLASSES)] = None,
    columns: ColumnOptions,
    bins: Annotated[int | None, opt.named("--bins", "N", _SET_BINS)] = None,
    coverage: CoverageOptions,
    outputs: OutputOptions,
) -> None:
    """Evaluate prediction sets: coverage overall and by group, size, and verdicts on the nominal coverage."""
    if bool(sets) == bool(members):
        raise ArgumentError(
            "name the columns of the sets: either --set COLUMN or --members COLUMN,COLUMN,..."
        )
    if members and classes:
        raise ArgumentError("--classes is an option for --set; with --members, the columns are the classes")
    if len(sets or [members]) != len(by_nominal):
        raise ArgumentError(f"pass one --nominal per set, got {len(by_nominal)} for {len(sets or [members])}")
    files = files_of(table)
    formats = outputs.check(files)
    from abstain.evaluation.conformal import evaluate_sets  # noqa: PLC0415
    from abstain.readers import open_table  # noqa: PLC0415

    source = open_table(table)
    with rows_named_by(source.paths), coverage.progress_bar(formats) as progress:
        if members:
            names = [name.strip() for name in members.split(",") if name.strip()]
            truths, table_of_sets = _from_members(source, truth, names)
        else:
            names, truths, table_of_sets = _from_lists(source, truth, sets or [], classes)
        result = evaluate_sets(
            truths,
            table_of_sets,
            nominal=by_nominal,
            labels=names,
            bins=bins,
            progress=progress,
            **columns.read(source),
            **coverage.options,
        )
    own = {"truth": truth, "set": sets, "members": names if members else None}
    _publish(_with_provenance(result, source, columns, own), outputs, formats, files)


def _with_provenance(
    result: CoverageResult, source: SourceTable, columns: ColumnOptions, own: Mapping[str, Any]
) -> CoverageResult:
    """Return the result with the source file and its columns; `own` are the columns of the command."""
    shared = {"cluster": columns.cluster, "by": opt.listed(columns.by), "weight": columns.weight}
    used = {**own, **shared, "feature": columns.features}
    read = {role: column for role, column in used.items() if column}
    return replace(result, provenance={"path": source.label, "sha256": source.sha256(), "columns": read})


def _publish(
    result: CoverageResult, outputs: OutputOptions, formats: OutputFormats, inputs: Sequence[Path]
) -> None:
    """Print the result, and write its file and its charts."""
    from abstain.report.coverage import coverage_summary, coverage_tables  # noqa: PLC0415
    from abstain.report.results_json import encode  # noqa: PLC0415
    from abstain.report.results_json_conformal import conformal_results_json  # noqa: PLC0415

    renderers = Renderers(
        result,
        lambda result: encode(conformal_results_json(result, datetime.now(UTC))),
        coverage_tables,
        coverage_summary,
    )
    if outputs.charts is None:
        publish(formats, renderers, outputs.output, inputs=inputs)
        return
    with _outputs.new_folder(outputs.charts):
        charts = _charts(result, outputs.charts, outputs.chart_format)
        publish(formats, renderers, outputs.output, further=charts, inputs=inputs)


def _charts(result: CoverageResult, folder: Path, form: str) -> list[OutputFile]:
    from abstain.report.charts import chart_content  # noqa: PLC0415
    from abstain.report.charts.intervals import charts  # noqa: PLC0415

    return [
        OutputFile("chart:", folder / f"{file_name(name)}.{form}", chart_content(chart, f".{form}"))
        for name, chart in charts(result).items()
    ]


def _from_members(
    source: SourceTable, truth: str, names: list[str]
) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    import numpy as np  # noqa: PLC0415

    member = np.column_stack([source.flags(name) for name in names])[:, :, None]
    true_labels = source.labels(truth)
    by_number = true_labels.dtype.kind == "i" and not {str(label) for label in true_labels} <= set(names)
    return true_labels if by_number else _indices(source, truth, true_labels, names), member


def _from_lists(
    source: SourceTable, truth: str, sets: list[str], classes: str | None
) -> tuple[list[str], NDArray[np.intp], NDArray[np.bool_]]:
    import numpy as np  # noqa: PLC0415

    from abstain.labels import class_names, members  # noqa: PLC0415

    true_labels = source.labels(truth)
    lists = {name: source.lists(name) for name in sets}
    occurring = [*true_labels.tolist(), *(label for rows in lists.values() for row in rows for label in row)]
    names = list(class_names(occurring) if classes is None else class_names(classes.split(",")))
    member = [
        members(rows, names, name=f"{source.label}: the column {name!r}") for name, rows in lists.items()
    ]
    return names, _indices(source, truth, true_labels, names), np.stack(member, axis=2)


def _indices(
    source: SourceTable, truth: str, true_labels: NDArray[Any], names: list[str]
) -> NDArray[np.intp]:
    import numpy as np  # noqa: PLC0415

    from abstain.labels import class_index, column  # noqa: PLC0415

    indices = class_index(column(true_labels, truth), names)
    if (indices < 0).any():
        row = int(np.argmax(indices < 0))
        raise DataError(
            f"{source.label}: the column {truth!r} has a label that is not a class at {row_name(row)}"
        )
    return indices


COMMANDS: opt.Commands = {
    "intervals": (intervals_command, INTERVALS_EXAMPLES),
    "sets": (sets_command, SETS_EXAMPLES),
}
