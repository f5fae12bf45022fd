"""From the inputs of a command to its result: files and columns to read, remarks and progress bars."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from abstain.cli._terminal import print_text, progress_bar
from abstain.errors import ArgumentError, DataError, at

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from abstain.cli import _options as opt
    from abstain.evaluation import Result
    from abstain.items import Items
    from abstain.metrics.registry import MetricLike
    from abstain.thresholds import Policy

    Confidences = Mapping[str, str | Sequence[str] | None]
    OnRead = Callable[[Mapping[str, Items]], None]
    Metrics = MetricLike | Sequence[MetricLike] | None


def evaluate_inputs(
    inputs: opt.Inputs,
    question: opt.MetricOptions,
    reading: opt.ReadOptions,
    matching: opt.MatchOptions,
    intervals: opt.IntervalOptions,
    engine: opt.EngineOptions,
    *,
    quiet: bool,
    most: int | None = 2,
    selective: bool | None = None,
    all_columns: bool = False,
) -> Result:
    """Read the inputs, at most `most` of them, and evaluate them together.

    With `all_columns`, unrequested columns are read as well. A quiet call prints neither remarks nor progress bars.
    """
    sources = inputs.sources
    if not sources or (most is not None and len(sources) > most):
        expected = "one input to evaluate or two to compare" if most else "at least one input"
        raise ArgumentError(
            f"pass {expected}, got {len(sources)}{'; abstain compare takes more' if sources else ''}"
        )
    confidences = dict.fromkeys(sources, question.confidence)
    announce = announcer(confidences, quiet=quiet)

    def check_systems(systems: Mapping[str, Items]) -> None:
        announce(systems)
        if most is not None and len(systems) > most:
            path = next(iter(sources.values())).path
            raise ArgumentError(f"{path}: has {len(systems)} systems; abstain compare takes more than {most}")

    options = {**question.options, **intervals.options, **matching.options, "selective": selective}
    columns = column_arguments(
        sources, reading, confidences, question.metrics, all_columns=all_columns or bool(options["by"])
    )
    if question.instrument is None:
        systems = {name: source.path for name, source in sources.items()}
        return evaluate_systems(
            systems, **options, **columns, **engine.options, on_read=check_systems, quiet=quiet
        )
    engine.refuse("--instrument needs the items of every participant")
    items = load_systems(sources, columns)
    check_systems(items)
    totals = compute_totals(items, question.instrument)
    with naming_files(total.provenance for total in totals.values()):
        return evaluate_systems(totals, **options, quiet=quiet)


def evaluate_systems(systems: Mapping[str, Any], *, quiet: bool, **options: Any) -> Result:
    """Call `abstain.evaluate` with progress bars; raise if there is nothing to evaluate."""
    from abstain.evaluation import evaluate  # noqa: PLC0415

    with progress_bars(options["interval"], options.get("resamples"), wanted=not quiet) as progress:
        result = evaluate(systems, **options, progress=progress)
    for warning in result.warnings:
        if warning.code == "nothing_evaluated":
            with naming_files(system.provenance for system in result.systems.values()):
                raise DataError(warning.message)
    return result


def column_arguments(
    sources: Mapping[str, opt.InputFile],
    reading: opt.ReadOptions,
    confidences: Confidences,
    metrics: Metrics,
    *,
    all_columns: bool = False,
) -> dict[str, Any]:
    """Return how the inputs are read, as arguments of `abstain.evaluate`.

    Only the columns of confidences and metrics are read from a table, unless `all_columns` is true.
    """
    from abstain.confidence import signals_needed  # noqa: PLC0415
    from abstain.metrics.registry import select_metrics  # noqa: PLC0415

    requested = () if metrics is None else select_metrics(metrics)
    if any({"should_abstain", "results"} & set(metric.needs) for metric in requested):
        all_columns = True
    arguments = {"mode": {name: source.mode for name, source in sources.items()}, **reading.options}
    if not all_columns:
        arguments["signals"] = {name: signals_needed(confidences[name] or "default") for name in sources}
        arguments["metadata"] = ()
    return arguments


def load_systems(sources: Mapping[str, opt.InputFile], columns: Mapping[str, Any]) -> dict[str, Items]:
    """Return the items of every system, for commands that need each row; `columns` as from `column_arguments`."""
    from abstain import readers  # noqa: PLC0415

    each = {
        name: {key: value[name] if isinstance(value, dict) else value for key, value in columns.items()}
        for name in sources
    }
    return readers.name_systems(
        {name: readers.read_systems(source.path, **each[name]) for name, source in sources.items()}
    )


def load_one_system(
    path: Path,
    mode: str | None,
    signals: str | None,
    reading: opt.ReadOptions,
    *,
    purpose: str,
    all_columns: bool = False,
    quiet: bool,
) -> Items:
    """Return the items of an input that holds one system; an error names the `purpose` of the items."""
    from abstain.cli._options import InputFile  # noqa: PLC0415

    sources, confidences = {path.stem: InputFile(path, mode)}, {path.stem: signals}
    columns = column_arguments(sources, reading, confidences, None, all_columns=all_columns)
    systems = load_systems(sources, columns)
    announcer(confidences, quiet=quiet)(systems)
    if len(systems) > 1:
        raise ArgumentError(
            f"{path}: has {len(systems)} systems, and {purpose} is for one; keep the rows of one system"
        )
    return next(iter(systems.values()))


def naming_files(provenances: Iterable[Mapping[str, Any]]) -> AbstractContextManager[None]:
    """Add the files of the items to the messages of data errors."""
    paths = dict.fromkeys(provenance["path"] for provenance in provenances if "path" in provenance)
    return at(*paths, kind=DataError) if paths else contextlib.nullcontext()


def compute_totals(systems: Mapping[str, Items], instrument: str) -> dict[str, Items]:
    """Return the total scores of an instrument, which is built in or declared in a JSON file."""
    from abstain import _files  # noqa: PLC0415
    from abstain.metrics.instruments import INSTRUMENTS, Instrument, find_instrument, total_items  # noqa: PLC0415

    if instrument not in INSTRUMENTS and instrument.endswith(".json"):
        declared = _files.parse_json(_files.read_bytes(instrument), instrument)
        with at(instrument):
            form = Instrument.from_mapping(declared)
    else:
        form = find_instrument(instrument)
    totals = {}
    for name, items in systems.items():
        with at(items.provenance.get("path", name)):
            totals[name] = total_items(items, form)
    return totals


@contextlib.contextmanager
def progress_bars(
    interval: str, resamples: int | None, *, wanted: bool
) -> Iterator[Callable[[int], None] | None]:
    """Show a bar while rows are read and another one for resamples; yield the function that advances the second."""
    with reading_bar(wanted=wanted), resampling_bar(interval, resamples, wanted=wanted) as advance:
        yield advance


def resampling_bar(
    interval: str, resamples: int | None, *, wanted: bool
) -> AbstractContextManager[Callable[[int], None] | None]:
    """Return a progress bar for the resamples; it never appears if none are drawn."""
    from abstain.inference import resamples_wanted  # noqa: PLC0415

    total = resamples_wanted(resamples, interval, of_a_run=True)
    fewer = "fewer --resamples, fewer metrics or confidences"
    other = "none (--resamples 0)" if interval == "jackknife" else "--interval jackknife"
    return progress_bar("resampling", total, wanted=wanted, shorter=f"{fewer}, or {other}")


@contextlib.contextmanager
def reading_bar(*, wanted: bool) -> Iterator[None]:
    """Show the progress of the query that reads a table."""
    from abstain import _sql  # noqa: PLC0415

    with progress_bar("reading rows", 100, wanted=wanted) as advance:
        if advance is None:
            yield
            return
        shown = 0

        def show_percent(percent: float) -> None:
            nonlocal shown
            now = max(int(percent), 0)  # DuckDB reports -1 for unknown progress
            advance(now - shown)
            shown = now

        with _sql.watched(show_percent):
            yield


def announcer(confidences: Confidences, *, quiet: bool) -> OnRead:
    """Return a function that prints remarks on the systems to stderr, each line once.

    A guessed confidence is not mentioned if the call names a confidence.
    """
    named = ("confidence",) if any(confidences.values()) else ()
    printed: set[str] = set()

    def announce(systems: Mapping[str, Items]) -> None:
        for items in () if quiet else systems.values():
            for line in announcements(items.provenance, named, items.metadata):
                if line not in printed:
                    print_text(line, error=True)
                printed.add(line)

    return announce


def announcements(
    provenance: Mapping[str, Any], named: Iterable[str] = (), metadata: Iterable[str] = ()
) -> list[str]:
    """Return remarks on everything that was inferred about a source, except for the roles in `named`."""
    from abstain.readers import FORMATS  # noqa: PLC0415

    path, lines = provenance.get("path", "items"), []
    if "engine" in provenance:
        lines.append(f"{path}: aggregated by {provenance['engine']}; --engine numpy loads it instead")
    if "loaded_because" in provenance:
        lines.append(f"{path}: loaded into memory, because {provenance['loaded_because']}")
    guessed = [role for role in provenance.get("guessed", ()) if role not in named]
    if guessed:
        columns = provenance["columns"]
        listed = ", ".join(f"{role} = {columns[role]}" for role in guessed)
        lines.append(f"{path}: a {FORMATS[provenance['format']].title}; guessed {listed}")
    for key, words, outcome in (
        ("abstention_rule", "abstention rule", "abstained"),
        ("failed_rule", "rule for failed answers", "failed"),
    ):
        counts = provenance.get(key)
        if counts:
            lines.append(
                f"{path}: the {words} found {counts.get('abstained', 0)} {outcome}, {counts.get('answered', 0)} "
                f"answered, {counts.get('undetermined', 0)} undetermined"
            )
    percent = provenance.get("percent")
    if percent:
        lines.append(
            f"{path}: {percent[0]} is read as percent and divided by 100; --percent none if it is not percent"
        )
    join = provenance.get("join")
    if join and join["unused"]:
        lines.append(f"{path}: {join['unused']:,} rows of {join['path']} have a key that does not occur here")
    if provenance.get("format") == "inspect" and provenance.get("status") != "success":
        lines.append(f"{path}: the log's status is {provenance.get('status')}; samples may be missing")
    filters = provenance.get("filters", ())
    if len(filters) > 1 and "filter" in metadata:
        lines.append(f"{path}: {len(filters)} filters are read together; --filter selects one")
    return lines


def read_policy_argument(policy: Path, data: Path, swapped: str) -> Policy:
    """Read the policy that a command takes in addition to its data; `swapped` is the command with both exchanged."""
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


def files_of(*sources: Path | opt.OptionGroup | None) -> list[Path]:
    """Return the files that a command reads: single paths, and the files of option groups."""
    from abstain.readers import expand  # noqa: PLC0415

    files: list[Path] = []
    for source in sources:
        if source is None:
            continue
        for path in [source] if isinstance(source, Path) else source.files:
            try:
                files += expand(path)
            except ArgumentError:  # the reader will report it
                files.append(path)
    return files
