"""The child: runs the commands of many cases, one after the other, in one process that knows its limits.

What a command prints is captured where the operating system sees it, because engines print past Python. Everything
that the verbs import is imported here, once: a forked child begins with it.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import resource
import shutil
import sys
import tempfile
import time
import traceback
import warnings
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

import abstain
import abstain.cli
from abstain.errors import AbstainError
from fuzz._case import Case, Outcome

if TYPE_CHECKING:
    from collections.abc import Iterator
    from multiprocessing.connection import Connection

    from abstain.items import Items

__all__ = ["run", "serve"]

# What the verbs import when they run. Imported before the fork, it is paid for once.
for _module in (
    *("abstain.calibrators", "abstain.evaluation.conformal", "abstain.report.artifact_conformal"),
    *("abstain.report.charts.intervals", "abstain.report.html"),
    *("abstain.report.gate", "abstain.report.check"),
    *(
        "abstain.report.views",
        "abstain.readers._inspect",
        "abstain.readers._file_tables",
        "abstain.readers._frame_tables",
        "abstain.readers.aggregation",
        "abstain.readers._duckdb_engine",
    ),
    *("altair", "duckdb", "pandas", "polars", "pyarrow.parquet", "sklearn.isotonic", "sklearn.linear_model"),
    *("vl_convert", "scipy.stats", "scipy.optimize", "jinja2", "rich.table"),
):
    with contextlib.suppress(ImportError):
        importlib.import_module(_module)

# Beyond what the child has at its beginning. Of data, not of addresses: the engine of charts reserves many of those and
# never uses them.
MOST_DATA = 4 << 30


def serve(connection: Connection, folder: str, planted: str | None) -> None:
    """Run what comes through the connection until nothing comes; `planted` names a defect to put in first."""
    limit = _memory("VmData") + MOST_DATA
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.environ.update(COLUMNS="100", HOME=folder, TMPDIR=folder)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    gc.freeze()
    # Sequences of control characters are taken out for files and pipes, and left in for a terminal, which counts here.
    vars(sys.modules[typer.echo.__module__])["should_strip_ansi"] = lambda *_, **__: False
    if planted is not None:
        module, _, name = planted.partition(":")
        getattr(importlib.import_module(module), name)()
    while True:
        try:
            case, command = connection.recv()
        except EOFError:
            return
        connection.send(run(case, command, Path(folder)))


def run(case: Case, command: tuple[str, ...], folder: Path) -> Outcome:
    """Run one command of a case in a folder of its own."""
    place, spill = folder / "case", folder / "spill"
    for fresh in (place, spill):
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir(parents=True)
    tempfile.tempdir = str(spill)
    os.environ["TMPDIR"] = str(spill)
    _lay_out(case, place)
    os.chdir(place)
    gc.collect()
    before = _reset_peak()
    began = time.process_time()
    with _captured(folder) as printed, warnings.catch_warnings(record=True) as warned:
        _filter_as_usual()
        code, crash = _call(command)
        sys.stdout.flush()
        sys.stderr.flush()
    seconds, memory = time.process_time() - began, _memory("VmHWM") - before
    written, gone = _changes(case, place)
    gc.collect()  # a process that ends would have let go of its folders by now
    left = {f"spill/{path.name}": b"" for path in spill.iterdir()}
    return Outcome(
        code=code,
        crash=crash,
        stdout=printed[0].read_bytes().decode("utf-8", "surrogateescape"),
        stderr=printed[1].read_bytes().decode("utf-8", "surrogateescape"),
        written=written | left,
        gone=gone,
        warned=tuple(f"{each.category.__name__}: {each.message}" for each in warned),
        seconds=seconds,
        memory=memory,
    )


def _lay_out(case: Case, place: Path) -> None:
    for name, content in case.files.items():
        path = place / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    for name, target in case.links.items():
        (place / name).symlink_to(target)


def _filter_as_usual() -> None:
    """Show the warnings that Python shows by itself, each of them every time."""
    warnings.simplefilter("always")
    for category in (DeprecationWarning, PendingDeprecationWarning, ImportWarning, ResourceWarning):
        warnings.simplefilter("ignore", category)


@contextlib.contextmanager
def _captured(folder: Path) -> Iterator[tuple[Path, Path]]:
    """Send what goes to stdout and stderr into files, whoever writes it."""
    places = (folder / "stdout", folder / "stderr")
    sys.stdout.flush()
    sys.stderr.flush()
    kept = [os.dup(1), os.dup(2)]
    for number, place in enumerate(places, start=1):
        handle = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(handle, number)
        os.close(handle)
    try:
        yield places
    finally:
        for number, handle in enumerate(kept, start=1):
            os.dup2(handle, number)
            os.close(handle)


def _call(command: tuple[str, ...]) -> tuple[int | None, str]:
    """Return the exit code of a command, or the exception that came out of it and where it came from."""
    sys.argv = ["abstain", *command]
    try:
        if command[0].startswith("frame:"):
            return _ask_in_python(command), ""
        if command[0].startswith("items:"):
            return _read_items(command), ""
        abstain.cli.main()
    except SystemExit as end:
        return (end.code if isinstance(end.code, int) else 0 if end.code is None else 1), ""
    except BaseException as problem:
        traceback.print_exc()
        return None, f"{type(problem).__name__} in {_own_place(problem)}"
    return 0, ""


def _own_place(problem: BaseException) -> str:
    """The deepest function of the product that the exception went through."""
    frames = [frame for frame, _ in traceback.walk_tb(problem.__traceback__)]
    own = [frame for frame in frames if str(frame.f_globals.get("__name__", "")).startswith("abstain")]
    frame = (own or frames)[-1]
    return f"{frame.f_globals.get('__name__')}.{frame.f_code.co_name}"


def _ask_in_python(command: tuple[str, ...]) -> int:
    """Judge a data frame: ``frame:pandas TABLE.parquet role=column ...``, and print the artifact."""
    import pyarrow.parquet  # noqa: PLC0415

    from abstain.report.results_json import encode, results_json  # noqa: PLC0415

    kind, path, *options = command
    said: dict[str, Any] = dict(option.split("=", 1) for option in options)
    judging = {name: said.pop(name) for name in ("loss", "confidence") if name in said}
    if "scale" in said:
        said["scale"] = [float(part) for part in said["scale"].split(",")]
    table = pyarrow.parquet.read_table(path)
    try:
        items = abstain.read(_frame(kind, table), **said)
        result = abstain.evaluate(items, **judging, resamples=5)
    except AbstainError as problem:
        print(f"abstain: {problem}", file=sys.stderr)
        return problem.exit_code
    # Which files it came from is what a frame cannot know.
    result = abstain.evaluate(items.with_provenance(path="frame", sha256=""), **judging, resamples=5)
    sys.stdout.write(encode(results_json(result, datetime.now(UTC))).decode())
    return 0


def _read_items(command: tuple[str, ...]) -> int:
    """Read a file, or a data frame of it, and print the items: ``items:polars TABLE.parquet --cluster c ...``."""
    import pyarrow.parquet  # noqa: PLC0415

    kind, path, *flags = command
    options: dict[str, Any] = {
        option[2:].replace("-", "_"): value for option, value in zip(flags[::2], flags[1::2], strict=True)
    }
    if "scale" in options:
        options["scale"] = [float(part) for part in options["scale"].split(",")]
    if "percent" in options:
        options["percent"] = () if options["percent"] == "none" else [options["percent"]]
    source = path if kind == "items:file" else _frame(kind, pyarrow.parquet.read_table(path))
    try:
        items = abstain.read(source, **options)
    except AbstainError as problem:
        print(f"abstain: {problem}", file=sys.stderr)
        return problem.exit_code
    sys.stdout.write(json.dumps(_columns_of(items), default=str))
    return 0


def _columns_of(items: Items) -> dict[str, Any]:
    """The columns of items, the most important ones first."""
    roles = ("truth", "prediction", "outcome", "cluster", "item", "weight")
    columns = {name: getattr(items, name) for name in roles if getattr(items, name) is not None}
    return {
        **{name: _values_of(column) for name, column in columns.items()},
        "facts": [items.scale, items.cluster_noun, items.positive, items.unnamed],
        "names of signals": list(items.signals),
        "signals": [_values_of(signal.values) for signal in items.signals.values()],
        "metadata": [_values_of(column) for column in items.metadata.values()],
    }


def _values_of(column: Any) -> list[Any]:
    """The values of a column, with "nan" in place of NaN, which is not equal to itself."""
    return ["nan" if value != value else value for value in column.tolist()]  # noqa: PLR0124


def _frame(kind: str, table: Any) -> Any:
    if kind.endswith(":arrow"):
        return table
    if kind.endswith(":pandas"):
        # Where a value is missing, pandas makes whole numbers floats, which cannot hold all of them.
        return table.to_pandas(integer_object_nulls=_beyond_floats(table))
    import polars as pl  # noqa: PLC0415

    return pl.from_arrow(table)


def _beyond_floats(table: Any) -> bool:
    """True where whole numbers stand in a table that a float would change."""
    import pyarrow.types  # noqa: PLC0415

    whole = [column for column in table.columns if pyarrow.types.is_integer(column.type)]
    return any(abs(value) > 2**53 for column in whole for value in column.drop_null().to_pylist())


def _changes(case: Case, place: Path) -> tuple[dict[str, bytes], tuple[str, ...]]:
    """The files that are new or changed, and those that are gone or another kind of file."""
    written, gone = {}, []
    for path in sorted(place.rglob("*")):
        name = str(path.relative_to(place))
        if path.is_file() and name not in case.links and path.read_bytes() != case.files.get(name):
            written[name] = path.read_bytes()
    gone += [name for name in case.files if not (place / name).is_file()]
    gone += [name for name in case.links if not (place / name).is_symlink()]
    return written, tuple(gone)


def _reset_peak() -> int:
    """Begin to measure the peak anew, and return what is in use."""
    Path("/proc/self/clear_refs").write_text("5")
    return _memory("VmRSS")


def _memory(field: str) -> int:
    status = Path("/proc/self/status").read_text()
    return int(status.split(f"{field}:")[1].split()[0]) * 1024
