"""The steps that verbs share: read every input, judge all of them together, and hand over what was found.

`evaluate`, `report` and `plot` ask the same question and differ in what they do with the result.
"""

from __future__ import annotations

import contextlib
import io
import os
import shlex
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from abstain.cli._config import spelled_settings
from abstain.cli._terminal import progress_bar, say, say_json, show
from abstain.errors import ArgumentError, DataError, at

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from abstain.cli._options import (
        EngineOptions,
        InputFile,
        Inputs,
        IntervalOptions,
        MatchOptions,
        MetricOptions,
        ReadOptions,
    )
    from abstain.evaluation import Result
    from abstain.items import Items
    from abstain.metrics.registry import MetricLike
    from abstain.readers.engines import Countable
    from abstain.report.tables import Table
    from abstain.thresholds import Policy

Found = TypeVar("Found")

# A name may have 255 bytes, and a letter takes four at most; a number and an ending follow.
_LONGEST_STEM = 50


class Judged(NamedTuple):
    """The judgement on the inputs, and the stem of a name for what is written about it."""

    stem: str
    result: Result


def evaluated(
    inputs: Inputs,
    question: MetricOptions,
    reading: ReadOptions,
    pairing: MatchOptions,
    judging: IntervalOptions,
    counted: EngineOptions,
    *,
    quiet: bool,
    most: int | None = 2,
    selective: bool | None = None,
    everything: bool = False,
) -> Judged:
    """Read the inputs and judge them together.

    Args:
        inputs: one input per system.
        question: what is asked.
        reading: how they are read.
        pairing: how their items are matched.
        judging: how they are judged.
        counted: what reads large tables.
        quiet: True where nothing is said of what was guessed, and no bar is shown.
        most: how many inputs the verb takes.
        selective: whether the selective metrics are wanted, where it does not go by the question.
        everything: True where columns are needed that the question does not name.
    """
    sources = inputs.sources
    if not sources or (most is not None and len(sources) > most):
        wanted = "one input to judge or two to compare" if most else "at least one input"
        raise ArgumentError(
            f"give {wanted}, got {len(sources)}{'; abstain compare takes more' if sources else ''}"
        )
    settings = {**question.options, **judging.options, **pairing.options, "selective": selective}

    def asked(systems: Mapping[str, Items | Countable], *, show_progress: bool) -> Result:
        if most is not None and len(systems) > most:
            path = next(iter(sources.values())).path
            raise ArgumentError(
                f"{path}: holds {len(systems)} systems; abstain compare takes more than {most}"
            )
        if question.instrument is not None:
            systems = totals(systems, question.instrument)
        return judge(systems, settings, show_progress=show_progress)

    result = judged(
        sources,
        reading,
        counted,
        judge=asked,
        told=came_from,
        confidences=dict.fromkeys(sources, question.confidence),
        metrics=question.metrics,
        everything=everything or bool(settings["by"]),
        row_by_row="--instrument adds up the items of every participant" if question.instrument else "",
        quiet=quiet,
    )
    return Judged(_stem(result), result)


def came_from(result: Result) -> list[Mapping[str, Any]]:
    """Return where the systems of a result came from."""
    return [system.provenance for system in result.systems.values()]


def judged(
    sources: Mapping[str, InputFile],
    reading: ReadOptions,
    counted: EngineOptions,
    *,
    judge: Callable[..., Found],
    told: Callable[[Found], Iterable[Mapping[str, Any]]],
    confidences: Mapping[str, str | Sequence[str] | None],
    metrics: MetricLike | Sequence[MetricLike] | None,
    everything: bool = False,
    row_by_row: str = "",
    quiet: bool,
) -> Found:
    """Judge inputs: tables that an engine counts as they lie, and what cannot be counted once it is loaded.

    Args:
        sources: the inputs by the system's name.
        reading: how they are read.
        counted: what reads large tables.
        judge: judges systems by their names; `show_progress` says whether it may show a bar.
        told: returns where what was judged came from.
        confidences: by system, what ranks its answers.
        metrics: the metrics that are asked for.
        everything: True where columns are needed that the question does not name.
        row_by_row: why every row is needed, where it is.
        quiet: True where nothing is said of what was guessed, and no bar is shown.
    """
    from abstain.readers.engines import countables, counted_or_loaded  # noqa: PLC0415

    tables = None
    if row_by_row:
        counted.refuse(row_by_row)
    else:
        modes = (source.mode for source in sources.values() if source.mode is not None)
        places = {name: source.path for name, source in sources.items()}
        tables = countables(places, mode=next(modes, None), **counted.options, **reading.options)

    def count(tables: Mapping[str, Countable]) -> Found:
        with counting_bar(wanted=not quiet):  # two bars would write over each other
            found = judge(tables, show_progress=False)
        if not quiet:
            settled = _settled(confidences)
            _announce(announcements(provenance, settled) for provenance in told(found))
        return found

    def load() -> Found:
        systems = read_systems(
            sources, reading, confidences=confidences, metrics=metrics, everything=everything, quiet=quiet
        )
        return judge(systems, show_progress=not quiet)

    return counted_or_loaded(tables, count, load)


def _settled(confidences: Mapping[str, str | Sequence[str] | None]) -> tuple[str, ...]:
    """The roles of which nothing is said, though they were guessed: what is asked for is named."""
    return ("confidence",) if any(confidences.values()) else ()


def read_systems(
    sources: Mapping[str, InputFile],
    reading: ReadOptions,
    *,
    confidences: Mapping[str, str | Sequence[str] | None],
    metrics: MetricLike | Sequence[MetricLike] | None,
    everything: bool = False,
    quiet: bool,
) -> dict[str, Items]:
    """Return the items of every system; of a table only the columns that the judgement needs are read."""
    from abstain import readers as doors  # noqa: PLC0415
    from abstain.confidence import signals_needed  # noqa: PLC0415
    from abstain.metrics.registry import select_metrics  # noqa: PLC0415

    asked = () if metrics is None else select_metrics(metrics)
    everything = everything or any({"should_abstain", "results"} & set(metric.needs) for metric in asked)
    systems = doors.name_systems(
        {
            name: doors.read_systems(
                source.path,
                mode=source.mode,
                signals=None if everything else signals_needed(confidences[name] or "default"),
                metadata=None if everything else (),
                **reading.options,
            )
            for name, source in sources.items()
        }
    )
    if not quiet:
        settled = _settled(confidences)
        _announce(announcements(items.provenance, settled, items.metadata) for items in systems.values())
    return systems


def read_one_system(
    path: Path,
    mode: str | None,
    signals: str | None,
    reading: ReadOptions,
    *,
    purpose: str,
    everything: bool = False,
    quiet: bool,
) -> Items:
    """Return the items of an input that holds one system.

    Args:
        path: the input.
        mode: which experiment of a run file.
        signals: the confidences or signals that are needed. Default: those that `evaluate` takes.
        reading: how the input is read.
        purpose: what is made of the items, for the error if there are several systems.
        everything: True to read every column of a table.
        quiet: True to print nothing about guessed columns.
    """
    from abstain.cli._options import InputFile  # noqa: PLC0415

    systems = read_systems(
        {path.stem: InputFile(path, mode)},
        reading,
        confidences={path.stem: signals},
        metrics=None,
        everything=everything,
        quiet=quiet,
    )
    if len(systems) > 1:
        raise ArgumentError(
            f"{path}: holds {len(systems)} systems, and {purpose} is for one; keep the rows of one"
        )
    return next(iter(systems.values()))


def judge(
    systems: Mapping[str, Items | Countable], settings: Mapping[str, Any], *, show_progress: bool = True
) -> Result:
    """Evaluate one or more systems, with a progress bar where a person would see it."""
    from abstain import evaluate  # noqa: PLC0415

    with (
        at_data(systems),
        resampling_bar(settings["interval"], settings["resamples"], wanted=show_progress) as progress,
    ):
        result = evaluate(systems, **settings, progress=progress)
        for warning in result.warnings:
            if warning.code == "nothing_judged":
                raise DataError(warning.message)
    return result


def at_data(systems: Mapping[str, Items | Countable]) -> AbstractContextManager[None]:
    """Let what is wrong with data say which files they came from."""
    from abstain.items import Items  # noqa: PLC0415

    paths = dict.fromkeys(
        items.provenance.get("path", name) if isinstance(items, Items) else items.label
        for name, items in systems.items()
    )
    return at(*paths, kind=DataError) if paths else contextlib.nullcontext()


def resampling_bar(
    interval: str, resamples: int | None, *, wanted: bool
) -> AbstractContextManager[Callable[[int], None] | None]:
    """Return a progress bar for as many resamples as may be drawn; it never shows where none are."""
    from abstain.inference import resamples_wanted  # noqa: PLC0415

    total = resamples_wanted(resamples, interval, of_a_run=True)
    fewer = "fewer --resamples, fewer metrics or confidences"
    shorter = (
        f"{fewer}, or none (--resamples 0)"
        if interval == "jackknife"
        else f"{fewer}, or --interval jackknife"
    )
    return progress_bar("resampling", total, wanted=wanted, shorter=shorter)


@contextlib.contextmanager
def counting_bar(*, wanted: bool) -> Iterator[None]:
    """Show how far the query is that counts rows, where a person would see it."""
    from abstain import _sql  # noqa: PLC0415

    with progress_bar("counting rows", 100, wanted=wanted) as advance:
        if advance is None:
            yield
            return
        done = 0

        def told(percent: float) -> None:
            nonlocal done
            now = max(int(percent), 0)  # below 0 where DuckDB cannot tell
            advance(now - done)
            done = now

        with _sql.watched(told):
            yield


def totals(systems: Mapping[str, Any], instrument: str) -> dict[str, Items]:
    """Return the totals of an instrument, which is known by name or declared in a JSON file."""
    from abstain import _files  # noqa: PLC0415
    from abstain.metrics.instruments import INSTRUMENTS, Instrument, find_instrument, total_items  # noqa: PLC0415

    if instrument not in INSTRUMENTS and instrument.endswith(".json"):
        declared = _files.parse_json(_files.read_bytes(instrument), instrument)
        with at(instrument):
            form = Instrument.from_mapping(declared)
    else:
        form = find_instrument(instrument)
    found = {}
    for name, items in systems.items():
        with at(items.provenance.get("path", name)):
            found[name] = total_items(items, form)
    return found


def announcements(
    provenance: Mapping[str, Any], settled: Iterable[str] = (), metadata: Iterable[str] = ()
) -> list[str]:
    """Return what was found or guessed about a source and must be said aloud, but for roles that are `settled`."""
    from abstain.readers import FORMATS  # noqa: PLC0415

    path, lines = provenance.get("path", "items"), []
    if "engine" in provenance:
        lines.append(f"{path}: its rows are counted by {provenance['engine']}; --engine numpy loads them")
    guessed = [role for role in provenance.get("guessed", ()) if role not in settled]
    if guessed:
        columns = provenance["columns"]
        listed = ", ".join(f"{role} = {columns[role]}" for role in guessed)
        lines.append(f"{path}: a {FORMATS[provenance['format']].title}; guessed {listed}")
    for key, words in (("abstention_rule", "abstention rule"), ("failed_rule", "rule for failed answers")):
        rule = provenance.get(key)
        if rule:
            states = {"abstained": "abstained" if key == "abstention_rule" else "failed"}
            counts = ", ".join(
                f"{rule.get(state, 0)} {states.get(state, state)}"
                for state in ("abstained", "answered", "undetermined")
            )
            lines.append(f"{path}: the {words} found {counts}")
    return [*lines, *_table_announcements(provenance, path), *_log_announcements(provenance, path, metadata)]


def _table_announcements(provenance: Mapping[str, Any], path: str) -> list[str]:
    lines = []
    percent = provenance.get("percent")
    if percent:
        lines.append(
            f"{path}: {percent[0]} is taken for per cent and divided by 100; --percent none if it is not"
        )
    join = provenance.get("join")
    if join and join["unused"]:
        lines.append(f"{path}: {join['unused']:,} rows of {join['path']} have a key that no row here has")
    return lines


def _log_announcements(provenance: Mapping[str, Any], path: str, metadata: Iterable[str]) -> list[str]:
    lines = []
    if provenance.get("format") == "inspect" and provenance.get("status") != "success":
        lines.append(f"{path}: the log's status is {provenance.get('status')}; it may not hold every sample")
    filters = provenance.get("filters", ())
    if len(filters) > 1 and "filter" in metadata:
        lines.append(f"{path}: {len(filters)} filters read together; --filter chooses one")
    return lines


def _announce(found: Iterable[Iterable[str]]) -> None:
    """Say on stderr what was found about sources, every line once."""
    for line in dict.fromkeys(line for lines in found for line in lines):
        say(line, error=True)


def read_policy_argument(policy: Path, data: Path, swapped: str) -> Policy:
    """Read the policy that a command takes next to its data.

    Args:
        policy: the argument that must be the policy.
        data: the argument that must be the data.
        swapped: the command with the two arguments exchanged.
    """
    from abstain import read_policy  # noqa: PLC0415
    from abstain.thresholds import is_policy_file  # noqa: PLC0415

    try:
        return read_policy(policy)
    except DataError:
        if not is_policy_file(data):
            raise
        raise ArgumentError(
            f"the arguments are in the wrong order: {policy} is not a policy, and {data} is one; the policy comes "
            f"first: {swapped}"
        ) from None


class Written(NamedTuple):
    """A file that a verb writes: what it is called, where it goes, and what it holds."""

    name: str
    path: Path
    content: bytes


class Printing(NamedTuple):
    """What a verb prints and writes.

    Attributes:
        form: the table that is printed in place of the summary; text where that is the summary.
        written: the format of what goes to the output.
        as_json: True where the artifact is printed.
        quiet: True where of what is written the path alone is printed.
    """

    form: str
    written: str
    as_json: bool
    quiet: bool


def printing(
    asked: str | None,
    output: Path | None,
    *,
    native: str = "json",
    as_json: bool = False,
    quiet: bool = False,
) -> Printing:
    """Return what a verb prints and writes by its flags, which must not say two things."""
    if as_json and quiet:
        raise ArgumentError(
            "--json and --quiet exclude each other: one prints the artifact, the other its path"
        )
    if asked is not None and (as_json or quiet):
        raise ArgumentError("--format says what to print, and so do --json and --quiet; give one of them")
    if asked is None and output is None:
        return Printing("text", native, as_json, quiet)
    from abstain.report.tables import format_of  # noqa: PLC0415

    written = format_of(asked, output, native=native)
    return Printing("text" if asked is None or output else asked, written, as_json, quiet)


def json_file(output: Path | None, what: str) -> None:
    """Refuse an output whose ending means another format than JSON."""
    if output is not None and output.suffix.lower() not in ("", ".json"):
        raise ArgumentError(f"{output}: {what} is written as JSON; give the file the ending .json")


class Forms(NamedTuple):
    """A result in all its forms, each made when it is asked for: files by their format, and what is on the screen."""

    artifact: Callable[[], bytes]
    page: Callable[[], str]
    tables: Callable[[], Sequence[Table]]
    text: Callable[[], str]
    summary: Callable[[], None]

    def written(self, form: str, path: Path) -> Written:
        """The file at a path in a format."""
        if form == "json":
            return Written("artifact:", path, self.artifact())
        if form == "html":
            return Written("report:", path, encoded(self.page()))
        if form == "text":
            return Written("summary:", path, encoded(self.text()))
        return Written("table:", path, encoded(self.table(form)))

    def table(self, form: str) -> str:
        """The tables in a format."""
        from abstain.report.tables import render  # noqa: PLC0415

        return render(self.tables(), form)


def present(form: str, tables: Callable[[], Sequence[Table]], summary: Callable[[], None]) -> None:
    """Print tables in one of their formats; the summary where that is text."""
    if form == "text":
        summary()
        return
    from abstain.report.tables import render  # noqa: PLC0415

    say(render(tables(), form), end="")


_KEEP = "To keep it: -o NAME.json (every number), .html (a report), .md .csv .tex .txt"


def publish(
    wanted: Printing,
    forms: Forms,
    output: Path | None,
    *,
    inputs: Sequence[Path],
    further: Sequence[Written] = (),
) -> None:
    """Write what was asked for, and print the result; after it, what was written where, or how to keep it."""
    written = [*([] if output is None else [forms.written(wanted.written, output)]), *further]
    alone = wanted.quiet and bool(written)
    with putting({file.path: file.content for file in written}, inputs=inputs):
        if wanted.as_json:
            say_json(forms.artifact().decode())
        elif not alone:
            present(wanted.form, forms.tables, forms.summary)
    if wanted.as_json or wanted.form != "text":
        return
    width = max((len(file.name) for file in written), default=0)
    told = [f"{file.name:<{width}} {file.path}" for file in written] or [_KEEP]
    if not wanted.quiet:
        say("\n".join(["", *told]))
    for file in written if alone else ():
        say(file.path)


def forms_of(result: Result, **page: Any) -> Forms:
    """Return a result in all its forms; `page` are further arguments of the report."""

    def artifact_content() -> bytes:
        from abstain.report.artifact import artifact, encode  # noqa: PLC0415

        return encode(artifact(result, datetime.now(UTC)))

    def page_content() -> str:
        from abstain.report.html import report_html  # noqa: PLC0415

        return report_html(result, command=command_line(sys.argv[1:]), **page)

    return Forms(
        artifact_content,
        page_content,
        lambda: tables_of(result),
        lambda: _summary_text(result),
        lambda: show_result(result),
    )


def show_result(result: Result) -> None:
    """Print the summary of a result."""
    from abstain.report.views import summary  # noqa: PLC0415

    show(summary, result)


def tables_of(result: Result) -> list[Table]:
    """Return the tables of a result."""
    from abstain.report.views import tables  # noqa: PLC0415

    return tables(result)


def on_paper(summary: Callable[..., Any], result: Any) -> str:
    """Return a summary for a file, which has no width and no colours."""
    from rich.console import Console  # noqa: PLC0415

    from abstain.report.console import WIDTH  # noqa: PLC0415

    paper = Console(file=io.StringIO(), width=WIDTH, highlight=False, color_system=None)
    with paper.capture() as printed:
        paper.print(summary(result, width=WIDTH))
    return printed.get()


def _summary_text(result: Result) -> str:
    from abstain.report.views import summary  # noqa: PLC0415

    return on_paper(summary, result)


def hand_over(text: str, output: Path | None, *, inputs: Sequence[Path]) -> None:
    """Print a text, or write it whole and say nothing."""
    if output is None:
        say(text, end="")
        return
    with putting({output: encoded(text)}, inputs=inputs):
        pass


def encoded(text: str) -> bytes:
    """Return a text as what a file holds."""
    return text.encode("utf-8", "replace")


def _stem(result: Result) -> str:
    """The stem of an artifact's name: the inputs and their modes."""
    parts = []
    for system in result.systems.values():
        parts += [Path(str(system.provenance["path"])).stem, system.provenance.get("mode")]
    return "-".join(dict.fromkeys(str(part) for part in parts if part))


def file_name(text: str) -> str:
    """Return a text as the name of a file."""
    return "".join(letter if letter.isalnum() or letter in "._-" else "_" for letter in text)


def new_name(stem: str, ending: str) -> Path:
    """Return the name of a file that nobody named; one that is there already is not written over."""
    place = Path(f"{file_name(stem)[:_LONGEST_STEM]}{ending}")
    if os.path.lexists(place):
        raise ArgumentError(f"{place} is there already; name what is to be written (-o), and it is replaced")
    return place


def command_line(arguments: Sequence[str]) -> str:
    """Return a command as one would type it, with what a file of the project set."""
    return shlex.join(["abstain", *arguments, *spelled_settings()])


def check_outputs(*places: Path | None, inputs: Sequence[Path]) -> None:
    """Find out before the work whether its results can be put where they should go, and harm none of the inputs."""
    named = [place for place in places if place is not None]
    if named:
        from abstain import _outputs  # noqa: PLC0415

        _outputs.check_outputs(named, inputs=inputs)


@contextlib.contextmanager
def putting(contents: Mapping[Path, bytes | Path], *, inputs: Sequence[Path]) -> Iterator[None]:
    """Put files in their places when what is printed is printed; from then on it is too late to stop."""
    from abstain import _process  # noqa: PLC0415

    with contextlib.ExitStack() as door:
        if contents:
            from abstain import _outputs  # noqa: PLC0415

            door.enter_context(_outputs.putting(contents, inputs=inputs))
        yield
        _process.begin_to_write()


def files_of(*named: Path | Inputs | MetricOptions | ReadOptions | IntervalOptions | None) -> list[Path]:
    """Return the files that a call reads: those that its groups of options name, and single ones."""
    from abstain.readers import expand  # noqa: PLC0415

    found: list[Path] = []
    for one in named:
        for path in [one] if isinstance(one, Path) else one.files if one is not None else []:
            try:
                found += expand(path)
            except ArgumentError:  # whoever reads it says what is wrong
                found.append(path)
    return found
