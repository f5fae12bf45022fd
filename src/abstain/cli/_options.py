"""The options that commands share, in groups: inputs, metrics, reading, engine, matching and intervals.

A group is a dataclass whose fields are options. A command takes it as one parameter, and `expand_option_groups` shows
its fields to typer. This module has only names, help and types of options; the functions that the commands call
define what an option means.
"""

from __future__ import annotations

import functools
import inspect
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NamedTuple, get_type_hints

import typer

from abstain.cli._config import is_configurable, load_config
from abstain.cli._program import DATA, INTERVALS, MAIN, OUTPUT, show_all_options
from abstain.errors import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_INPUT = "Run file, evaluation file, table or log; one per system. A pattern in quotes is one input."
_INPUT_OPTION = "The same as INPUT, as an option; may be repeated."
_MODE = "Experiment of a run file: once for all inputs, or once per input."
_NAME = "Name of each input in tables and charts, once per input. Default: its file, task or mode."
_FORMAT = "run, evaluation, inspect, lm-eval, csv, parquet or jsonl. Default: detected from the content."
_SCALE = "Lowest and highest possible score. Default: the scale that the file declares."
TRUTH = "Column of the correct labels."
_CORRECT = "Column that is true if the answer is correct; replaces --truth and --prediction."
WEIGHT = "Column of the number of rows that each row represents. Default: 1."
_NULL_PREDICTION = "Meaning of a missing prediction: abstained or failed. Default: an error."
CLUSTER = (
    "Column of the cluster (e.g. patient) that rows belong to. Default: a column such as patient_id, or independent "
    "rows."
)
_RULE = "Rule that detects declined answers: choice:E, regex:PATTERN, phrases:A|B or phrases:@FILE."
_FAILED_RULE = "Answers of a failed run: the text that they begin with, such as ERR:, or a rule."
_JOIN = "Second table with missing columns, such as the truth, and the key column of both tables."
_SYSTEM = "Column of the system that a row belongs to. Default: a column named system or model."
_PERCENT = "Confidence column in percent (may be repeated), or `none`. Default: detected from the values."
CROSSED = "How to read a lower bound above the upper bound: sort or empty. Default: an error."
_POSITIVE = "Label that counts as 1 in binary metrics such as f1 and auroc. Default: 1."
_ENGINE = (
    "Engine that reads a table: numpy, duckdb or spark; the numbers are the same. Default: numpy, and duckdb from "
    "262,144 rows on."
)
_MASTER = "Address of the Spark master, such as local[4]. Default: as Spark is configured."
_MEMORY = "Memory limit of DuckDB, such as 4GB. Beyond it, DuckDB uses the disk."
_MATCH = "How to match the items of several inputs: by names, or by rows (their order)."
_INTERSECTION = "Compare only the items that all inputs have. Default: a missing item is an error."
_TRUTH_DIFFERS = "Compare even if inputs have different truths for an item. Default: that is an error."
_UNPAIRED = "Compare independent samples with different items, such as two weeks."
_LOSS = "Loss of an answer: zero_one, abs or abs_norm. Default: set by the scale or the type of the labels."
_CALIBRATION = "Calibration file for the confidence calibrated, calibrated:<name> or verbalized_calibrated."
_CONFIDENCE = (
    "Confidences, separated by commas: columns, signals, all, or secondary:<a>+<b>:<average|product>. Default: the "
    "usual ones."
)
_METRIC = (
    "Metrics or bundles, separated by commas (see `abstain metrics`), or package.module:Class. Default: the "
    "risk-coverage metrics."
)
_BY = "Columns, separated by commas: also compute every metric for each group."
_INSTRUMENT = "Evaluate one total score per participant: PHQ-8, or a JSON file with an instrument."
_SEED = "Seed of the random numbers: the same seed gives the same results."
LEVEL = "Confidence level: the probability that a confidence interval covers the true value."
_INTERVAL = "Method of the confidence intervals: jackknife, percentile, bca or none."
_RESAMPLES = (
    "Resamples of the cluster bootstrap. Default: 10,000 for run files, percentile and bca; otherwise 0."
)
_SIMULTANEOUS = "Make intervals hold jointly: for all pairs of systems, and for all thresholds of a curve."
_THREADS = "Number of threads; the numbers are the same. Default: one per core."
_DIGITS = "Decimals of printed numbers. Default: 3, or more for narrow confidence intervals."
_QUIET = "Print no progress bar, no remarks, and only the path of a written file."
_RESULT_OUTPUT = (
    "File to write; its ending sets the format: .json (all results), .html, .md, .csv, .tex or .txt."
)
_NO_CONFIG = "Ignore abstain.toml and [tool.abstain] in pyproject.toml."
_TABLE_FORMAT = (
    "text, markdown, csv, latex or json. Default: by the ending of the output file; otherwise text."
)
_SUMMARY_FORMAT = "Print a table as markdown, csv, latex or json instead of the summary (text)."


def named(flag: str, metavar: str, text: str, *short: str, **settings: Any) -> typer.models.OptionInfo:
    """Return an option without a default value."""
    option: typer.models.OptionInfo = typer.Option(
        flag, *short, metavar=metavar, help=text, show_default=False, **settings
    )
    return option


def column(flag: str, text: str) -> typer.models.OptionInfo:
    """Return an option that names a column."""
    return named(flag, "COLUMN", text)


def output_to(text: str) -> typer.models.OptionInfo:
    """Return the option for the output file of a command."""
    return named("--output", "FILE", text, "-o", rich_help_panel=OUTPUT)


Interval = Annotated[str, typer.Option(metavar="NAME", help=_INTERVAL, rich_help_panel=INTERVALS)]
Resamples = Annotated[
    int | None,
    named("--bootstrap-resamples", "N", _RESAMPLES, "--resamples", rich_help_panel=INTERVALS),
]
Seed = Annotated[int, typer.Option(metavar="N", help=_SEED, rich_help_panel=INTERVALS)]
Level = Annotated[float, typer.Option(metavar="PROPORTION", help=LEVEL, rich_help_panel=INTERVALS)]
# The commands of a module by name, each with the examples at the end of its help.
Commands = dict[str, tuple[Any, str | None]]

TableFormat = Annotated[str | None, named("--format", "NAME", _TABLE_FORMAT, rich_help_panel=OUTPUT)]
SummaryFormat = Annotated[str | None, named("--format", "NAME", _SUMMARY_FORMAT, rich_help_panel=OUTPUT)]
By = Annotated[list[str] | None, named("--by", "COLUMNS", _BY)]
Simultaneous = Annotated[bool, typer.Option("--simultaneous", help=_SIMULTANEOUS, rich_help_panel=INTERVALS)]
AsJson = Annotated[
    bool,
    typer.Option("--json", help="Print all results as JSON instead of the summary.", rich_help_panel=OUTPUT),
]
Explain = Annotated[
    bool, typer.Option("--explain", help="Explain the numbers below the tables.", rich_help_panel=OUTPUT)
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help=_QUIET, rich_help_panel=OUTPUT)]
ResultOutput = Annotated[Path | None, output_to(_RESULT_OUTPUT)]
RunMode = Annotated[
    str | None, named("--mode", "MODE", "Experiment of a run file; required if it has several.")
]
RankedBy = Annotated[
    str | None,
    named("--confidence", "NAME", "Confidence that ranks the answers: a column or a signal."),
]
Calibrations = Annotated[
    list[Path] | None, named("--calibration", "FILE", "Calibration file for a calibrated confidence.")
]


def _use_threads(count: int | None) -> int | None:
    """Set the number of threads of this process."""
    if count is not None:
        from abstain.inference import set_threads  # noqa: PLC0415

        set_threads(count)
    return count


def _use_digits(count: int | None) -> int | None:
    """Set the number of printed decimals of this process."""
    from abstain.inference import set_digits  # noqa: PLC0415

    set_digits(count)
    return count


Digits = Annotated[int | None, named("--digits", "N", _DIGITS, callback=_use_digits, rich_help_panel=OUTPUT)]
Threads = Annotated[
    int | None, named("--threads", "N", _THREADS, callback=_use_threads, rich_help_panel=INTERVALS)
]


class InputFile(NamedTuple):
    """The file of a system, and the experiment in it."""

    path: Path
    mode: str | None


class OptionGroup:
    """A group of options: arguments of a function of abstain, and settings of the process (threads, digits)."""

    heading: ClassVar[str] = MAIN

    @property
    def options(self) -> dict[str, Any]:
        """The arguments by name, without unused options."""
        used = {name: value for name, value in vars(self).items() if value not in (None, [])}
        return {name: value for name, value in used.items() if name not in ("threads", "digits")}

    @property
    def files(self) -> list[Path]:
        """The files that the options name."""
        return []


@dataclass(frozen=True)
class Inputs(OptionGroup):
    """The inputs, one per system."""

    heading: ClassVar[str] = DATA
    inputs: Annotated[
        list[Path] | None, typer.Argument(metavar="INPUT...", help=_INPUT, show_default=False)
    ] = None
    further_inputs: Annotated[list[Path] | None, named("--input", "FILE", _INPUT_OPTION)] = None
    modes: Annotated[list[str] | None, named("--mode", "MODE", _MODE)] = None
    names: Annotated[list[str] | None, named("--name", "NAME", _NAME)] = None

    @property
    def files(self) -> list[Path]:
        """The inputs, passed as arguments or as options."""
        return [*(self.inputs or []), *(self.further_inputs or [])]

    @property
    def sources(self) -> dict[str, InputFile]:
        """The inputs by the names of their systems, which are the same in every command."""
        paths = self.files
        modes = one_each(self.modes or [], len(paths), "--mode")
        names = self.names or system_names([str(path) for path in paths], modes)
        if len(names) != len(paths) or len(set(names)) != len(names):
            raise ArgumentError(
                f"pass --name once per input, with different names, got {len(names)} for {len(paths)} inputs"
            )
        return {name: InputFile(path, mode) for name, path, mode in zip(names, paths, modes, strict=True)}


@dataclass(frozen=True)
class ReadOptions(OptionGroup):
    """How to read a source: the arguments of `abstain.read`."""

    heading: ClassVar[str] = DATA
    format: Annotated[str | None, named("--input-format", "NAME", _FORMAT)] = None
    scale: Annotated[str | None, named("--scale", "LOW,HIGH", _SCALE)] = None
    truth: Annotated[str | None, column("--truth", TRUTH)] = None
    prediction: Annotated[str | None, column("--prediction", "Column of the model's answers.")] = None
    correct: Annotated[str | None, column("--correct", _CORRECT)] = None
    abstained: Annotated[str | None, column("--abstained", "Column that is true if the model declined.")] = (
        None
    )
    failed: Annotated[
        str | None, column("--failed", "Column that is true if the run produced no answer.")
    ] = None
    low: Annotated[str | None, column("--low", "Column of the lower bound of a prediction interval.")] = None
    high: Annotated[str | None, column("--high", "Column of the upper bound of a prediction interval.")] = (
        None
    )
    set: Annotated[str | None, column("--set", "Column of the labels in a prediction set.")] = None
    weight: Annotated[str | None, column("--weight", WEIGHT)] = None
    item: Annotated[str | None, column("--item", "Column of the names of the items.")] = None
    cluster: Annotated[str | None, named("--cluster", "NAME", CLUSTER, "--cluster-by")] = None
    null_prediction: Annotated[str | None, named("--null-prediction", "MEANING", _NULL_PREDICTION)] = None
    abstain_rule: Annotated[str | None, named("--abstain-rule", "RULE", _RULE)] = None
    failed_rule: Annotated[str | None, named("--failed-rule", "RULE", _FAILED_RULE)] = None
    join: Annotated[
        tuple[str, Path] | None,
        typer.Option("--join", metavar="KEY FILE", help=_JOIN, show_default=False),
    ] = None
    system: Annotated[str | None, column("--system", _SYSTEM)] = None
    percent: Annotated[list[str] | None, column("--percent", _PERCENT)] = None
    crossed: Annotated[str | None, named("--crossed", "HOW", CROSSED)] = None
    positive: Annotated[str | None, named("--positive", "LABEL", _POSITIVE)] = None
    scorer: Annotated[
        str | None, named("--scorer", "NAME", "Scorer of an Inspect log, or metric of an lm-eval log.")
    ] = None
    filter: Annotated[
        str | None, named("--filter", "NAME", "Filter of an lm-eval log. Default: all filters.")
    ] = None

    @property
    def options(self) -> dict[str, Any]:
        """The arguments of `abstain.read`."""
        options = super().options
        if self.scale is not None:
            options["scale"] = numbers(self.scale, "--scale")
        if self.percent == ["none"]:
            options["percent"] = ()
        return options

    @property
    def files(self) -> list[Path]:
        """The phrase files of the rules, and the joined table."""
        rules = ((rule or "").partition(":@") for rule in (self.abstain_rule, self.failed_rule))
        joined = [self.join[1]] if self.join else []
        return [*(Path(name) for _, marked, name in rules if marked), *joined]


@dataclass(frozen=True)
class MetricOptions(OptionGroup):
    """The requested metrics: the arguments of that name of `abstain.evaluate`."""

    confidence: Annotated[list[str] | None, named("--confidence", "NAMES", _CONFIDENCE)] = None
    metrics: Annotated[list[str] | None, named("--metric", "NAMES", _METRIC, "-m")] = None
    by: By = None
    instrument: Annotated[str | None, named("--instrument", "NAME", _INSTRUMENT)] = None
    coverage_grid: Annotated[
        str, typer.Option(metavar="LIST", help="Coverages at which the risk is reported.")
    ] = "0.1,0.2,0.3,0.4,0.5,0.6,0.7,0.8,0.9"
    area_coverage: Annotated[
        float, typer.Option(metavar="PROPORTION", help="Coverage at which the truncated areas end.")
    ] = 0.5
    simultaneous: Simultaneous = False

    @property
    def options(self) -> dict[str, Any]:
        """The arguments of `abstain.evaluate`."""
        return {
            "confidence": self.confidence or None,
            "metrics": self.metrics or None,
            "by": listed(self.by) or None,
            "coverage_grid": numbers(self.coverage_grid, "--coverage-grid"),
            "area_coverage": self.area_coverage,
            "simultaneous": self.simultaneous,
        }

    @property
    def files(self) -> list[Path]:
        """The file that declares an instrument."""
        return [Path(self.instrument)] if self.instrument else []


@dataclass(frozen=True)
class EngineOptions(OptionGroup):
    """The engine for large tables: the arguments of that name of `abstain.evaluate`."""

    heading: ClassVar[str] = DATA
    engine: Annotated[str | None, named("--engine", "NAME", _ENGINE)] = None
    memory: Annotated[str | None, named("--memory", "SIZE", _MEMORY)] = None
    master: Annotated[str | None, named("--master", "URL", _MASTER)] = None

    def refuse(self, reason: str) -> None:
        """Raise if an aggregating engine was named although every row is needed, for a `reason`."""
        if self.engine is not None and self.engine != "numpy":
            raise ArgumentError(
                f"{reason}, and --engine {self.engine} aggregates rows; omit --engine to load the table"
            )


@dataclass(frozen=True)
class MatchOptions(OptionGroup):
    """How to match the items of several systems: the arguments of that name of `abstain.evaluate`."""

    heading: ClassVar[str] = DATA
    match: Annotated[str, typer.Option(metavar="HOW", help=_MATCH)] = "names"
    intersection_only: Annotated[bool, typer.Option("--intersection-only", help=_INTERSECTION)] = False
    truth_may_differ: Annotated[bool, typer.Option("--truth-may-differ", help=_TRUTH_DIFFERS)] = False
    unpaired: Annotated[bool, typer.Option("--unpaired", help=_UNPAIRED)] = False


@dataclass(frozen=True)
class IntervalOptions(OptionGroup):
    """Loss and intervals: the arguments of that name of `abstain.evaluate`, `compare` and `gate`."""

    loss: Annotated[str | None, named("--loss", "NAME", _LOSS)] = None
    calibration: Annotated[list[Path] | None, named("--calibration", "FILE", _CALIBRATION)] = None
    convention: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Integration rule of areas: trapezoid, interpolated, mean or torch-uncertainty.",
        ),
    ] = "trapezoid"
    interval: Interval = "jackknife"
    resamples: Resamples = None
    seed: Seed = 42
    level: Level = 0.95
    threads: Threads = None
    digits: Digits = None

    @property
    def files(self) -> list[Path]:
        """The calibration files."""
        return self.calibration or []


_KEYWORD = inspect.Parameter.KEYWORD_ONLY
_NoConfig = Annotated[
    bool,
    typer.Option("--no-config", help=_NO_CONFIG, rich_help_panel=DATA, is_eager=True, callback=load_config),
]
_HelpAll = Annotated[
    bool,
    typer.Option(
        "--help-all",
        help="Show all options and exit.",
        rich_help_panel="Options",
        is_eager=True,
        callback=show_all_options,
    ),
]
# Options that every command with a configurable option has.
_GENERAL_OPTIONS = {"no_config": _NoConfig, "help_all": _HelpAll}


def expand_option_groups(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command with one option for every field of the option groups among its parameters.

    Typer sees the options, and the command gets the groups. Commands with a configurable option also get --no-config
    and --help-all.

    >>> @dataclass
    ... class ColumnOptions(OptionGroup):
    ...     column: str = "label"
    >>> @expand_option_groups
    ... def command(path: str, columns: ColumnOptions) -> None:
    ...     print(path, columns.column)
    >>> inspect.signature(command)
    <Signature (*, path: str, column: str = 'label') -> None>
    >>> command(path="t.csv", column="gold")
    t.csv gold
    """
    options: list[inspect.Parameter] = []
    groups: dict[str, tuple[type, list[str]]] = {}
    for parameter in _typed_parameters(command):
        kind = parameter.annotation
        if isinstance(kind, type) and issubclass(kind, OptionGroup):
            parts = _typed_parameters(kind)
            groups[parameter.name] = (kind, [part.name for part in parts])
            heading = kind.heading
        else:
            parts, heading = [parameter], MAIN
        for part in parts:
            _set_heading(part, heading)
        options += parts
    if is_configurable(option.name for option in options):
        options += [
            inspect.Parameter(name, _KEYWORD, annotation=annotation, default=False)
            for name, annotation in _GENERAL_OPTIONS.items()
        ]

    @functools.wraps(command)
    def call_with_groups(**values: Any) -> None:
        for name in _GENERAL_OPTIONS:
            values.pop(name, None)
        for name, (kind, fields) in groups.items():
            values[name] = kind(**{field: values.pop(field) for field in fields})
        command(**values)

    # Keyword-only parameters may follow in any order, whether they have a default or not.
    options = [option.replace(kind=_KEYWORD) for option in options]
    call_with_groups.__signature__ = inspect.Signature(options, return_annotation=None)  # type: ignore[attr-defined]
    call_with_groups.__annotations__ = {option.name: option.annotation for option in options}
    del call_with_groups.__wrapped__  # otherwise inspect and typer would use the signature of `command`
    return call_with_groups


def _set_heading(option: inspect.Parameter, heading: str) -> None:
    """Set the heading of an option in the help unless it has one."""
    for settings in getattr(option.annotation, "__metadata__", ()):
        if getattr(settings, "rich_help_panel", heading) is None:
            settings.rich_help_panel = heading


def _typed_parameters(function: Callable[..., Any]) -> list[inspect.Parameter]:
    """Return the parameters of a function, or the fields of a dataclass, with evaluated annotations."""
    hints = get_type_hints(function, include_extras=True)
    parameters = inspect.signature(function).parameters.values()
    return [one.replace(annotation=hints.get(one.name, one.annotation)) for one in parameters]


def listed(names: Sequence[str] | None) -> list[str]:
    """Return names that were separated by commas or passed one by one."""
    return [name.strip() for part in names or () for name in part.split(",")]


def one_each(values: Sequence[str], count: int, flag: str) -> list[str | None]:
    """Return the value of an option for each input: one value serves all of them, otherwise one per input."""
    if len(values) <= 1:
        return [values[0] if values else None] * count
    if len(values) != count:
        inputs = f"{count} input{'' if count == 1 else 's'}"
        raise ArgumentError(
            f"{flag} was passed {len(values)} times for {inputs}; pass it once, or once per input"
        )
    return list(values)


def system_names(paths: Sequence[str], modes: Sequence[str | None]) -> list[str]:
    """Return the shortest distinct names of inputs: stems, modes, both, whole paths, or numbered stems.

    >>> system_names(["runs/a.json", "runs/b.json"], ["few_shot", "few_shot"])
    ['a', 'b']
    >>> system_names(["run.json", "run.json"], ["zero_shot", "few_shot"])
    ['zero_shot', 'few_shot']
    >>> system_names(["2026-11-15T10-00-00+00-00_triage_Gprr29Mv.eval"], [None])
    ['triage']
    """
    stems = [_plain_name(path) for path in paths]
    pairs = list(zip(stems, modes, strict=True))
    choices = [
        stems,
        [mode or stem for stem, mode in pairs],
        [f"{stem} {mode}" if mode else stem for stem, mode in pairs],
        [f"{path} {mode}" if mode else path for path, mode in zip(paths, modes, strict=True)],
    ]
    for names in choices:
        if len(names) == len(Counter(names)):
            return names
    return [f"{name} ({number})" for number, name in enumerate(stems, start=1)]


# Inspect and lm-eval put the task, the time and an id into the names of their logs.
_TIME = r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d[\d.+-]*"
_LOG_NAME = re.compile(rf"{_TIME}_(.+)_[A-Za-z0-9]{{8,}}|samples_(.+)_{_TIME}")


def _plain_name(path: str) -> str:
    """Return the name of an input: the task of a log, without time and id; otherwise the stem of the file."""
    stem = Path(path).stem or path
    log = _LOG_NAME.fullmatch(stem)
    return stem if log is None else log[1] or log[2]


def numbers(text: str, name: str) -> tuple[float, ...]:
    """Return numbers separated by commas."""
    try:
        return tuple(float(part) for part in text.split(",") if part.strip())
    except ValueError:
        raise ArgumentError(f"{name} must be numbers separated by commas, got {text!r}") from None
