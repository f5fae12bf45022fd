"""The options that verbs share, in groups: inputs, metrics, reading, engine, matching and intervals.

A group is a dataclass whose fields are options. A verb takes it as one parameter, and `expand_option_groups` shows
typer the fields. Here are only flags, help and types; the functions behind the verbs decide what an option means.
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
from abstain.cli._program import DATA, INTERVALS, OUTPUT, QUESTION
from abstain.errors import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_INPUT = "Run or evaluation files, tables or logs: one per system; a pattern in quotes is one input."
_MODE = "Which experiment of each input, in order; given once it serves all."
_NAME = "What each input is called in tables and charts, in order; else its file, its task or its mode."
_FORMAT = (
    "What the input is: run, evaluation, inspect, lm-eval, csv, parquet or jsonl; else told from the content."
)
_SCALE = "Lowest and highest score there can be; else what the file declares."
_CLUSTER = "What belongs together: a column, or in a log a key of the sample's metadata or document."
_RULE = "Who declined where the source does not say: choice:E, regex:PATTERN, phrases:A|B or phrases:@FILE."
_FAILED_RULE = (
    "Which answers of a table are none because the run failed: how they begin, such as ERR:, or a rule."
)
_JOIN = "A second table with the columns that the first lacks, such as the truth, and the key that both have."
_SYSTEM = "Whose row it is, in a table of several systems; else a column called system or model."
_PERCENT = "This confidence is per cent; may be repeated. `none` where values above 10 are no per cent."
CROSSED = "What a lower bound above the upper one means: sort or empty; an error when left out."
_POSITIVE = (
    "The label that counts as 1 for binary metrics such as f1 and auroc; others count as 0. Default: 1."
)
_ENGINE = (
    "What reads a table: numpy loads it; duckdb (default from 262,144 rows on) and spark aggregate it where it is. "
    "The numbers are the same."
)
_MASTER = "Where Spark runs, such as local[4]; else what it is set up for."
_MEMORY = "How much memory DuckDB may take, such as 4GB; it goes on on disk beyond."
_MATCH = "How items of several inputs are matched: names, or rows where the order of rows is the match."
_INTERSECTION = "Compare what all inputs have when some lack some."
_TRUTH_DIFFERS = "Compare although the inputs disagree about the truth of items."
_LOSS = "abs, abs_norm or zero_one; else what a declared scale or the kind of labels imply, which is said."
_CALIBRATION = (
    "Artifact of `abstain calibrate`, for the confidences `calibrated`, `verbalized_calibrated` and "
    "`calibrated:<name>`."
)
_CONFIDENCE = (
    "Variants or signals, separated by commas: names, `default` (when left out), `all`, or "
    "`secondary:<a>+<b>:<average|product>`."
)
_METRIC = (
    "Metrics or bundles, separated by commas, such as default_benchmark or ece@10; `abstain metrics` lists them. Your "
    "own: package.module:Class. Without --confidence, these alone are judged."
)
_BY = "Columns, separated by commas: every metric by group, too."
_INSTRUMENT = (
    "Judge one total per participant in place of items: PHQ-8, or a JSON file that declares another."
)
_SEED = "The same seed gives the same numbers."
_LEVEL = "Confidence level of the intervals."
_INTERVAL = "How intervals are made, over clusters: jackknife, percentile or bca; none for none."
_RESAMPLES = (
    "Resamples of the cluster bootstrap, whose percentile intervals stand in the artifact; else 10,000 for run files, "
    "and where --interval needs them."
)
_SIMULTANEOUS = "Let intervals hold together: those of all pairs of systems, and the band of a curve."
_THREADS = "How many threads weigh resamples; else one per core. The numbers are the same."
_DIGITS = (
    "Decimals of printed numbers. Default: three, or more until an interval's half-width shows two digits."
)
_QUIET = "No bar and no remarks; of what is written, the path alone."
_RESULT_OUTPUT = (
    "What to write, by its ending: .json (every number), .html (a report), .md, .csv, .tex or .txt."
)
_NO_CONFIG = "Take nothing from abstain.toml or from [tool.abstain] in pyproject.toml."
_TABLE_FORMAT = "The table as text, markdown, csv, latex or json; the ending of the output says it, too."
_SUMMARY_FORMAT = "Print a table as markdown, csv, latex or json in place of the summary (text)."


def named(flag: str, metavar: str, what: str, *short: str, **look: Any) -> typer.models.OptionInfo:
    """Return an option that is without a value unless it is given."""
    option: typer.models.OptionInfo = typer.Option(
        flag, *short, metavar=metavar, help=what, show_default=False, **look
    )
    return option


def column(flag: str, what: str) -> typer.models.OptionInfo:
    """Return an option that names a column."""
    return named(flag, "COLUMN", what)


def output_to(what: str) -> typer.models.OptionInfo:
    """Return the option that says where a verb writes."""
    return named("--output", "FILE", what, "-o", rich_help_panel=OUTPUT)


Interval = Annotated[str, typer.Option(metavar="NAME", help=_INTERVAL, rich_help_panel=INTERVALS)]
Resamples = Annotated[
    int | None,
    named("--bootstrap-resamples", "N", _RESAMPLES, "--resamples", rich_help_panel=INTERVALS),
]
Seed = Annotated[int, typer.Option(metavar="N", help=_SEED, rich_help_panel=INTERVALS)]
Level = Annotated[float, typer.Option(metavar="P", help=_LEVEL, rich_help_panel=INTERVALS)]
# The commands of a verb's module by name, each with the examples that end its help.
Commands = dict[str, tuple[Any, str | None]]

TableFormat = Annotated[str | None, named("--format", "NAME", _TABLE_FORMAT, rich_help_panel=OUTPUT)]
SummaryFormat = Annotated[str | None, named("--format", "NAME", _SUMMARY_FORMAT, rich_help_panel=OUTPUT)]
Simultaneous = Annotated[bool, typer.Option("--simultaneous", help=_SIMULTANEOUS, rich_help_panel=INTERVALS)]
AsJson = Annotated[
    bool, typer.Option("--json", help="Every number as JSON to stdout; no summary.", rich_help_panel=OUTPUT)
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help=_QUIET, rich_help_panel=OUTPUT)]
ResultOutput = Annotated[Path | None, output_to(_RESULT_OUTPUT)]
RunMode = Annotated[str | None, named("--mode", "MODE", "Which experiment of a run file.")]
RankedBy = Annotated[str | None, named("--confidence", "NAME", "What ranks the answers.")]
Calibrations = Annotated[
    list[Path] | None, named("--calibration", "FILE", "Artifact of a calibrated confidence.")
]


def _use_threads(count: int | None) -> int | None:
    """Set the number of threads of this process."""
    if count is not None:
        from abstain.inference import set_threads  # noqa: PLC0415

        set_threads(count)
    return count


def _use_digits(count: int | None) -> int | None:
    """Print numbers with so many decimals in this process."""
    from abstain.inference import set_digits  # noqa: PLC0415

    set_digits(count)
    return count


Digits = Annotated[int | None, named("--digits", "N", _DIGITS, callback=_use_digits, rich_help_panel=OUTPUT)]
Threads = Annotated[
    int | None, named("--threads", "N", _THREADS, callback=_use_threads, rich_help_panel=INTERVALS)
]


class InputFile(NamedTuple):
    """Where a system's items are: a file, and which experiment of it."""

    path: Path
    mode: str | None


class OptionGroup:
    """A group of options. Its fields are arguments of a function of abstain, except settings of the process."""

    heading: ClassVar[str] = QUESTION

    @property
    def options(self) -> dict[str, Any]:
        """The arguments by name, without options that the call does not use."""
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
    further_inputs: Annotated[list[Path] | None, named("--input", "FILE", "The same, as an option.")] = None
    modes: Annotated[list[str] | None, named("--mode", "MODE", _MODE)] = None
    names: Annotated[list[str] | None, named("--name", "NAME", _NAME)] = None

    @property
    def files(self) -> list[Path]:
        """The inputs, given as arguments or as options."""
        return [*(self.inputs or []), *(self.further_inputs or [])]

    @property
    def sources(self) -> dict[str, InputFile]:
        """The inputs by the names of their systems, which are the same in every verb."""
        paths = self.files
        modes = one_each(self.modes or [], len(paths), "--mode")
        names = self.names or system_names([str(path) for path in paths], modes)
        if len(names) != len(paths) or len(set(names)) != len(names):
            raise ArgumentError(
                f"give --name once per input, each another, got {len(names)} for {len(paths)} inputs"
            )
        return {name: InputFile(path, mode) for name, path, mode in zip(names, paths, modes, strict=True)}


@dataclass(frozen=True)
class ReadOptions(OptionGroup):
    """How a source is to be read: the arguments of `abstain.read`."""

    heading: ClassVar[str] = DATA
    format: Annotated[str | None, named("--input-format", "NAME", _FORMAT)] = None
    scale: Annotated[str | None, named("--scale", "LOW,HIGH", _SCALE)] = None
    truth: Annotated[str | None, column("--truth", "What is right.")] = None
    prediction: Annotated[str | None, column("--prediction", "What the model said.")] = None
    correct: Annotated[
        str | None, column("--correct", "Whether it was right, in place of truth and prediction.")
    ] = None
    abstained: Annotated[str | None, column("--abstained", "True where the model declined.")] = None
    failed: Annotated[str | None, column("--failed", "True where the run produced nothing.")] = None
    low: Annotated[str | None, column("--low", "Lower bound of a prediction interval.")] = None
    high: Annotated[str | None, column("--high", "Upper bound of a prediction interval.")] = None
    set: Annotated[str | None, column("--set", "Labels of a prediction set.")] = None
    weight: Annotated[str | None, column("--weight", "How many rows each row counts for.")] = None
    item: Annotated[str | None, column("--item", "Names of the items.")] = None
    cluster: Annotated[str | None, named("--cluster", "NAME", _CLUSTER, "--cluster-by")] = None
    null_prediction: Annotated[
        str | None,
        named("--null-prediction", "MEANING", "What a missing prediction means: abstained or failed."),
    ] = None
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
        str | None, named("--scorer", "NAME", "Inspect: which scorer. lm-eval: which metric.")
    ] = None
    filter: Annotated[str | None, named("--filter", "NAME", "lm-eval: which filter.")] = None

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
        """The files of phrases that rules name, and the table that is joined."""
        rules = ((rule or "").partition(":@") for rule in (self.abstain_rule, self.failed_rule))
        joined = [self.join[1]] if self.join else []
        return [*(Path(name) for _, marked, name in rules if marked), *joined]


@dataclass(frozen=True)
class MetricOptions(OptionGroup):
    """What is asked of the inputs, in the words of `abstain.evaluate`."""

    confidence: Annotated[list[str] | None, named("--confidence", "NAMES", _CONFIDENCE)] = None
    metrics: Annotated[list[str] | None, named("--metric", "NAMES", _METRIC, "-m")] = None
    by: Annotated[list[str] | None, named("--by", "COLUMNS", _BY)] = None
    instrument: Annotated[str | None, named("--instrument", "NAME", _INSTRUMENT)] = None
    coverage_grid: Annotated[
        str, typer.Option(metavar="LIST", help="Coverages at which the risk is reported.")
    ] = "0.1,0.2,0.3,0.4,0.5,0.6,0.7,0.8,0.9"
    area_coverage: Annotated[
        float, typer.Option(metavar="C", help="Coverage at which the truncated areas end.")
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
    """What reads large tables: the arguments of that name of `abstain.evaluate`."""

    heading: ClassVar[str] = DATA
    engine: Annotated[str | None, named("--engine", "NAME", _ENGINE)] = None
    memory: Annotated[str | None, named("--memory", "SIZE", _MEMORY)] = None
    master: Annotated[str | None, named("--master", "URL", _MASTER)] = None

    def refuse(self, what: str) -> None:
        """Raise if an engine was named although `what` needs every row."""
        if self.engine is not None and self.engine != "numpy":
            raise ArgumentError(
                f"{what}, and --engine {self.engine} counts rows without handing them over; leave it out to load the "
                "table"
            )


@dataclass(frozen=True)
class MatchOptions(OptionGroup):
    """How the items of several systems are matched: the arguments of that name of `abstain.evaluate`."""

    heading: ClassVar[str] = DATA
    match: Annotated[str, typer.Option(metavar="HOW", help=_MATCH)] = "names"
    intersection_only: Annotated[bool, typer.Option("--intersection-only", help=_INTERSECTION)] = False
    truth_may_differ: Annotated[bool, typer.Option("--truth-may-differ", help=_TRUTH_DIFFERS)] = False


@dataclass(frozen=True)
class IntervalOptions(OptionGroup):
    """How items are judged: the arguments of that name of `abstain.evaluate`, `compare` and `gate`."""

    loss: Annotated[str | None, named("--loss", "NAME", _LOSS)] = None
    calibration: Annotated[list[Path] | None, named("--calibration", "FILE", _CALIBRATION)] = None
    convention: Annotated[
        str, typer.Option(metavar="NAME", help="trapezoid, interpolated, mean or torch-uncertainty.")
    ] = "trapezoid"
    interval: Interval = "jackknife"
    resamples: Resamples = None
    seed: Seed = 42
    level: Level = 0.95
    threads: Threads = None
    digits: Digits = None

    @property
    def files(self) -> list[Path]:
        """The artifacts of calibrations."""
        return self.calibration or []


_KEYWORD = inspect.Parameter.KEYWORD_ONLY
_NoConfig = Annotated[
    bool,
    typer.Option("--no-config", help=_NO_CONFIG, rich_help_panel=DATA, is_eager=True, callback=load_config),
]


def expand_option_groups(verb: Callable[..., None]) -> Callable[..., None]:
    """Return a verb with one option for every field of the option groups among its parameters.

    Typer sees the options; the verb gets the groups. Verbs with a configurable option also get --no-config.

    >>> @dataclass
    ... class ColumnOptions(OptionGroup):
    ...     column: str = "label"
    >>> @expand_option_groups
    ... def verb(path: str, columns: ColumnOptions) -> None:
    ...     print(path, columns.column)
    >>> inspect.signature(verb)
    <Signature (*, path: str, column: str = 'label') -> None>
    >>> verb(path="t.csv", column="gold")
    t.csv gold
    """
    options: list[inspect.Parameter] = []
    groups: dict[str, tuple[type, list[str]]] = {}
    for parameter in _typed_parameters(verb):
        kind = parameter.annotation
        if isinstance(kind, type) and issubclass(kind, OptionGroup):
            parts = _typed_parameters(kind)
            groups[parameter.name] = (kind, [part.name for part in parts])
            heading = kind.heading
        else:
            parts, heading = [parameter], QUESTION
        for part in parts:
            _set_heading(part, heading)
        options += parts
    if is_configurable(option.name for option in options):
        options.append(inspect.Parameter("no_config", _KEYWORD, annotation=_NoConfig, default=False))

    @functools.wraps(verb)
    def call_with_groups(**values: Any) -> None:
        values.pop("no_config", None)
        for name, (kind, fields) in groups.items():
            values[name] = kind(**{field: values.pop(field) for field in fields})
        verb(**values)

    # Keyword-only parameters may follow in any order, whether they have a default or not.
    options = [option.replace(kind=_KEYWORD) for option in options]
    call_with_groups.__signature__ = inspect.Signature(options, return_annotation=None)  # type: ignore[attr-defined]
    call_with_groups.__annotations__ = {option.name: option.annotation for option in options}
    del call_with_groups.__wrapped__  # inspect and typer would look at the signature of the verb
    return call_with_groups


def _set_heading(option: inspect.Parameter, heading: str) -> None:
    """Put an option under a heading of the help unless it has one."""
    for settings in getattr(option.annotation, "__metadata__", ()):
        if getattr(settings, "rich_help_panel", heading) is None:
            settings.rich_help_panel = heading


def _typed_parameters(function: Callable[..., Any]) -> list[inspect.Parameter]:
    """Return the parameters of a function, or the fields of a dataclass, with evaluated annotations."""
    hints = get_type_hints(function, include_extras=True)
    parameters = inspect.signature(function).parameters.values()
    return [one.replace(annotation=hints.get(one.name, one.annotation)) for one in parameters]


def listed(names: Sequence[str] | None) -> list[str]:
    """Return names that were separated by commas, or given one by one."""
    return [name.strip() for part in names or () for name in part.split(",")]


def one_each(values: Sequence[str], count: int, flag: str) -> list[str | None]:
    """Return what was given for each of the inputs: one for all of them, or one per input."""
    if len(values) <= 1:
        return [values[0] if values else None] * count
    if len(values) != count:
        inputs = f"{count} input{'' if count == 1 else 's'}"
        raise ArgumentError(
            f"{flag} was given {len(values)} times for {inputs}; give it once, or once per input"
        )
    return list(values)


def system_names(paths: Sequence[str], modes: Sequence[str | None]) -> list[str]:
    """Return short names that tell inputs apart: stems, else modes, else both, else whole paths, else numbers.

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


# How Inspect and lm-eval name their logs: a task, beside when it was run and an id.
_TIME = r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d[\d.+-]*"
_LOG_NAME = re.compile(rf"{_TIME}_(.+)_[A-Za-z0-9]{{8,}}|samples_(.+)_{_TIME}")


def _plain_name(path: str) -> str:
    """The name of an input by itself: that of its task where the file is a log, for no table needs its time stamp."""
    stem = Path(path).stem or path
    log = _LOG_NAME.fullmatch(stem)
    return stem if log is None else log[1] or log[2]


def numbers(text: str, name: str) -> tuple[float, ...]:
    """Return numbers separated by commas."""
    try:
        return tuple(float(part) for part in text.split(",") if part.strip())
    except ValueError:
        raise ArgumentError(f"{name} must be numbers separated by commas, got {text!r}") from None
