"""The options that verbs share, in groups: which inputs, how they are read, how they are matched, how they are judged.

A group is a dataclass whose fields are options. A verb takes it as one parameter; `spelled_out` gives the command line
the fields, and the verb the group. What an option means is decided behind the verbs; here stand its flag, its help and
its type alone.
"""

from __future__ import annotations

import functools
import inspect
from collections import Counter
from dataclasses import dataclass, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, get_type_hints

import typer

from abstain.errors import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from abstain.items import Items

__all__ = [
    "InputFile",
    "Inputs",
    "Judging",
    "Pairing",
    "Quiet",
    "Reading",
    "announce",
    "announcements",
    "numbers",
    "one_each",
    "spelled_out",
    "system_names",
]

_INPUT = "Run or evaluation files, tables or logs: one per system; a pattern in quotes is one input."
_MODE = "Which experiment of each input, in order; given once it serves all."
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
_MATCH = "How items of several inputs are matched: names, or rows where the order of rows is the match."
_INTERSECTION = "Compare what all inputs have when some lack some."
_TRUTH_DIFFERS = "Compare although the inputs disagree about the truth of items."
_LOSS = "abs, abs_norm or zero_one; else what a declared scale or the kind of labels imply, which is said."
_CALIBRATION = (
    "Artifact of `abstain calibrate`, for the confidences `calibrated`, `verbalized_calibrated` and "
    "`calibrated:<name>`."
)


def _named(flag: str, metavar: str, what: str) -> typer.models.OptionInfo:
    option: typer.models.OptionInfo = typer.Option(flag, metavar=metavar, help=what, show_default=False)
    return option


def _column(flag: str, what: str) -> typer.models.OptionInfo:
    option: typer.models.OptionInfo = typer.Option(
        flag, metavar="COLUMN", help=what, show_default=False, rich_help_panel="Tables"
    )
    return option


Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print the path of what was written alone.")]


class InputFile(NamedTuple):
    """Where a system's items are: a file, and which experiment of it."""

    path: Path
    mode: str | None


@dataclass(frozen=True, slots=True)
class Inputs:
    """The inputs, one per system."""

    inputs: Annotated[list[Path] | None, typer.Argument(metavar="INPUT", help=_INPUT, show_default=False)] = (
        None
    )
    further_inputs: Annotated[list[Path] | None, _named("--input", "FILE", "The same, as an option.")] = None
    modes: Annotated[list[str] | None, _named("--mode", "MODE", _MODE)] = None

    @property
    def paths(self) -> list[Path]:
        """The inputs as given, as arguments or as options."""
        return [*(self.inputs or []), *(self.further_inputs or [])]

    @property
    def sources(self) -> dict[str, InputFile]:
        """The inputs by the names of their systems, which are the same in every verb."""
        paths = self.paths
        modes = one_each(self.modes or [], len(paths), "--mode")
        names = system_names([str(path) for path in paths], modes)
        return {name: InputFile(path, mode) for name, path, mode in zip(names, paths, modes, strict=True)}


@dataclass(frozen=True, slots=True)
class Reading:
    """How a source is to be read: the arguments of `abstain.read`."""

    format: Annotated[str | None, _named("--input-format", "NAME", _FORMAT)] = None
    scale: Annotated[str | None, _named("--scale", "LOW,HIGH", _SCALE)] = None
    truth: Annotated[str | None, _column("--truth", "What is right.")] = None
    prediction: Annotated[str | None, _column("--prediction", "What the model said.")] = None
    correct: Annotated[
        str | None, _column("--correct", "Whether it was right, in place of truth and prediction.")
    ] = None
    abstained: Annotated[str | None, _column("--abstained", "True where the model declined.")] = None
    failed: Annotated[str | None, _column("--failed", "True where the run produced nothing.")] = None
    low: Annotated[str | None, _column("--low", "Lower bound of a prediction interval.")] = None
    high: Annotated[str | None, _column("--high", "Upper bound of a prediction interval.")] = None
    set: Annotated[str | None, _column("--set", "Labels of a prediction set.")] = None
    weight: Annotated[str | None, _column("--weight", "How many rows each row counts for.")] = None
    item: Annotated[str | None, _column("--item", "Names of the items.")] = None
    cluster: Annotated[
        str | None,
        typer.Option("--cluster", "--cluster-by", metavar="NAME", show_default=False, help=_CLUSTER),
    ] = None
    null_prediction: Annotated[
        str | None,
        _named("--null-prediction", "MEANING", "What a missing prediction means: abstained or failed."),
    ] = None
    abstain_rule: Annotated[str | None, _named("--abstain-rule", "RULE", _RULE)] = None
    failed_rule: Annotated[str | None, _named("--failed-rule", "RULE", _FAILED_RULE)] = None
    join: Annotated[
        tuple[str, Path] | None,
        typer.Option("--join", metavar="KEY FILE", help=_JOIN, show_default=False, rich_help_panel="Tables"),
    ] = None
    system: Annotated[str | None, _column("--system", _SYSTEM)] = None
    percent: Annotated[list[str] | None, _column("--percent", _PERCENT)] = None
    crossed: Annotated[str | None, _named("--crossed", "HOW", CROSSED)] = None
    scorer: Annotated[
        str | None, _named("--scorer", "NAME", "Inspect: which scorer. lm-eval: which metric.")
    ] = None
    filter: Annotated[str | None, _named("--filter", "NAME", "lm-eval: which filter.")] = None

    @property
    def options(self) -> dict[str, Any]:
        """What was given, by the names that `abstain.read` knows."""
        given = {name: getattr(self, name) for name in self.__slots__}
        if self.scale is not None:
            given["scale"] = numbers(self.scale, "--scale")
        if self.percent == ["none"]:
            given["percent"] = ()
        return {name: value for name, value in given.items() if value is not None and value != []}


@dataclass(frozen=True, slots=True)
class Pairing:
    """How the items of several systems are matched: the arguments of that name of `abstain.evaluate`."""

    match: Annotated[str, typer.Option(metavar="HOW", help=_MATCH)] = "names"
    intersection_only: Annotated[bool, typer.Option("--intersection-only", help=_INTERSECTION)] = False
    truth_may_differ: Annotated[bool, typer.Option("--truth-may-differ", help=_TRUTH_DIFFERS)] = False

    @property
    def options(self) -> dict[str, Any]:
        """The arguments by name."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class Judging:
    """How items are judged: the arguments of that name of `abstain.evaluate`, `compare` and `gate`."""

    loss: Annotated[str | None, _named("--loss", "NAME", _LOSS)] = None
    calibration: Annotated[list[Path] | None, _named("--calibration", "FILE", _CALIBRATION)] = None
    convention: Annotated[
        str, typer.Option(metavar="NAME", help="trapezoid, interpolated, mean or torch-uncertainty.")
    ] = "trapezoid"
    resamples: Annotated[
        int, typer.Option("--bootstrap-resamples", metavar="N", help="Cluster resamples; 0 for none.")
    ] = 10_000
    seed: Annotated[int, typer.Option(metavar="N", help="The same seed gives the same numbers.")] = 42
    level: Annotated[float, typer.Option(metavar="P", help="Confidence level of the intervals.")] = 0.95

    @property
    def options(self) -> dict[str, Any]:
        """The arguments by name."""
        return {name: getattr(self, name) for name in self.__slots__}


def spelled_out(verb: Callable[..., None]) -> Callable[..., None]:
    """Return a verb with an option for every field of the groups among its parameters.

    >>> @dataclass
    ... class Reading:
    ...     truth: str = "label"
    >>> @spelled_out
    ... def verb(path: str, reading: Reading) -> None:
    ...     print(path, reading)
    >>> inspect.signature(verb)
    <Signature (*, path: str, truth: str = 'label') -> None>
    >>> verb(path="t.csv", truth="gold")
    t.csv Reading(truth='gold')
    """
    options: list[inspect.Parameter] = []
    groups: dict[str, list[str]] = {}
    hints = get_type_hints(verb, include_extras=True)
    for option in _parameters(verb):
        if isinstance(option.annotation, type) and is_dataclass(option.annotation):
            own = _parameters(option.annotation)
            groups[option.name] = [part.name for part in own]
            options += own
        else:
            options.append(option)

    @functools.wraps(verb)
    def with_groups(**given: Any) -> None:
        for name, parts in groups.items():
            given[name] = hints[name](**{part: given.pop(part) for part in parts})
        verb(**given)

    # Keywords have no order, so that an option that must be given may stand after one that need not.
    options = [option.replace(kind=inspect.Parameter.KEYWORD_ONLY) for option in options]
    with_groups.__signature__ = inspect.Signature(options, return_annotation=None)  # type: ignore[attr-defined]
    with_groups.__annotations__ = {option.name: option.annotation for option in options}
    del with_groups.__wrapped__
    return with_groups


def _parameters(function: Callable[..., Any]) -> list[inspect.Parameter]:
    """The parameters of a function, or the fields of a dataclass, with their annotations looked up."""
    hints = get_type_hints(function, include_extras=True)
    found = inspect.signature(function).parameters.values()
    return [option.replace(annotation=hints.get(option.name, option.annotation)) for option in found]


def one_each(given: Sequence[str], count: int, flag: str) -> list[str | None]:
    """Return what was given for each of the inputs: one for all of them, or one per input."""
    if len(given) <= 1:
        return [given[0] if given else None] * count
    if len(given) != count:
        inputs = f"{count} input{'' if count == 1 else 's'}"
        raise ArgumentError(
            f"{flag} was given {len(given)} times for {inputs}; give it once, or once per input"
        )
    return list(given)


def system_names(paths: Sequence[str], modes: Sequence[str | None]) -> list[str]:
    """Return short names that tell inputs apart: stems, else modes, else both, else whole paths, else numbers.

    >>> system_names(["runs/a.json", "runs/b.json"], ["few_shot", "few_shot"])
    ['a', 'b']
    >>> system_names(["run.json", "run.json"], ["zero_shot", "few_shot"])
    ['zero_shot', 'few_shot']
    """
    stems = [Path(path).stem or path for path in paths]
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


def numbers(text: str, name: str) -> tuple[float, ...]:
    """Return numbers separated by commas."""
    try:
        return tuple(float(part) for part in text.split(",") if part.strip())
    except ValueError:
        raise ArgumentError(f"{name} must be numbers separated by commas, got {text!r}") from None


def announcements(items: Items, settled: Iterable[str] = ()) -> list[str]:
    """Return what was found or guessed about a source and must be said aloud, but for roles that are `settled`."""
    from abstain.sources import FORMATS  # noqa: PLC0415

    provenance = items.provenance
    path, lines = provenance.get("path", "items"), []
    guessed = [role for role in provenance.get("guessed", ()) if role not in settled]
    if guessed:
        columns = provenance["columns"]
        listed = ", ".join(f"{role} = {columns[role]}" for role in guessed)
        lines.append(f"{path}: a {FORMATS[provenance['format']]}; guessed {listed}")
    for key, words in (("abstention_rule", "abstention rule"), ("failed_rule", "rule for failed answers")):
        rule = provenance.get(key)
        if rule:
            states = {"abstained": "abstained" if key == "abstention_rule" else "failed"}
            counts = ", ".join(
                f"{rule.get(state, 0)} {states.get(state, state)}"
                for state in ("abstained", "answered", "undetermined")
            )
            lines.append(f"{path}: the {words} found {counts}")
    return [*lines, *_table_announcements(items, path), *_log_announcements(items, path)]


def _table_announcements(items: Items, path: str) -> list[str]:
    provenance, lines = items.provenance, []
    percent = provenance.get("percent")
    if percent:
        lines.append(
            f"{path}: {percent[0]} is taken for per cent and divided by 100; --percent none if it is not"
        )
    join = provenance.get("join")
    if join and join["unused"]:
        lines.append(f"{path}: {join['unused']:,} rows of {join['path']} have a key that no row here has")
    if provenance.get("never_equal"):
        lines.append(
            f"{path}: warning: no prediction ever equals its truth; are truth and prediction the right columns, and "
            "written alike?"
        )
    return lines


def _log_announcements(items: Items, path: str) -> list[str]:
    provenance, lines = items.provenance, []
    if provenance.get("format") == "inspect" and provenance.get("status") != "success":
        lines.append(f"{path}: the log's status is {provenance.get('status')}; it may not hold every sample")
    filters = provenance.get("filters", ())
    if len(filters) > 1 and "filter" in items.metadata:
        lines.append(
            f"{path}: {len(filters)} filters read together ({', '.join(filters)}); --filter chooses one"
        )
    return lines


def announce(sources: Iterable[Items], settled: Iterable[str] = ()) -> None:
    """Say it, once, on stderr."""
    for line in dict.fromkeys(line for items in sources for line in announcements(items, settled)):
        typer.echo(line, err=True)
