"""The child process, which runs the commands of many cases one after the other with limited memory.

Output is captured at the file descriptors, because engines write to them directly and not through Python. The modules
that commands import are imported here once, before the fork.
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

# Modules that commands import when they run.
for _module in (
    *("abstain.calibrators", "abstain.evaluation.conformal", "abstain.report.results_json_conformal"),
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

# The memory limit above that of a new child. It limits data and not addresses, because the chart engine reserves many
# addresses that it never uses.
MOST_DATA = 4 << 30


def serve(connection: Connection, folder: str, planted: str | None) -> None:
    """Run commands from a connection until it is closed; `planted` names a function that first plants a defect."""
    limit = _memory("VmData") + MOST_DATA
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.environ.update(COLUMNS="100", HOME=folder, TMPDIR=folder)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    gc.freeze()
    # typer removes control characters when it writes to a file, but not for a terminal, which is tested here.
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
    """Run one command of a case in a new folder."""
    case_folder, spill = folder / "case", folder / "spill"
    for new_folder in (case_folder, spill):
        shutil.rmtree(new_folder, ignore_errors=True)
        new_folder.mkdir(parents=True)
    tempfile.tempdir = str(spill)
    os.environ["TMPDIR"] = str(spill)
    _write_files(case, case_folder)
    os.chdir(case_folder)
    gc.collect()
    memory_before = _reset_peak()
    start = time.process_time()
    with _capture_output(folder) as captured, warnings.catch_warnings(record=True) as warned:
        _set_usual_warning_filters()
        code, crash = _call(command)
        sys.stdout.flush()
        sys.stderr.flush()
    seconds, memory = time.process_time() - start, _memory("VmHWM") - memory_before
    written, gone = _find_changes(case, case_folder)
    gc.collect()  # deletes temporary folders, as the end of a process would
    temporary = {f"spill/{path.name}": b"" for path in spill.iterdir()}
    return Outcome(
        code=code,
        crash=crash,
        stdout=captured[0].read_bytes().decode("utf-8", "surrogateescape"),
        stderr=captured[1].read_bytes().decode("utf-8", "surrogateescape"),
        written=written | temporary,
        gone=gone,
        warned=tuple(f"{warning.category.__name__}: {warning.message}" for warning in warned),
        seconds=seconds,
        memory=memory,
    )


def _write_files(case: Case, folder: Path) -> None:
    for name, content in case.files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    for name, target in case.links.items():
        (folder / name).symlink_to(target)


def _set_usual_warning_filters() -> None:
    """Record the warnings that Python shows by default, every time they occur."""
    warnings.simplefilter("always")
    for category in (DeprecationWarning, PendingDeprecationWarning, ImportWarning, ResourceWarning):
        warnings.simplefilter("ignore", category)


@contextlib.contextmanager
def _capture_output(folder: Path) -> Iterator[tuple[Path, Path]]:
    """Redirect the file descriptors of stdout and stderr to files, and yield their paths."""
    paths = (folder / "stdout", folder / "stderr")
    sys.stdout.flush()
    sys.stderr.flush()
    originals = [os.dup(1), os.dup(2)]
    for number, path in enumerate(paths, start=1):
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(handle, number)
        os.close(handle)
    try:
        yield paths
    finally:
        for number, handle in enumerate(originals, start=1):
            os.dup2(handle, number)
            os.close(handle)


def _call(command: tuple[str, ...]) -> tuple[int | None, str]:
    """Return the exit code of a command, or the exception that it raised and the function that raised it."""
    sys.argv = ["abstain", *command]
    try:
        if command[0].startswith("frame:"):
            return _evaluate_frame(command), ""
        if command[0].startswith("items:"):
            return _read_items(command), ""
        abstain.cli.main()
    except SystemExit as end:
        return (end.code if isinstance(end.code, int) else 0 if end.code is None else 1), ""
    except BaseException as problem:
        traceback.print_exc()
        return None, f"{type(problem).__name__} in {_innermost_function(problem)}"
    return 0, ""


def _innermost_function(problem: BaseException) -> str:
    """Return the innermost function of abstain in a traceback, or the innermost function if there is none."""
    frames = [frame for frame, _ in traceback.walk_tb(problem.__traceback__)]
    own = [frame for frame in frames if str(frame.f_globals.get("__name__", "")).startswith("abstain")]
    frame = (own or frames)[-1]
    return f"{frame.f_globals.get('__name__')}.{frame.f_code.co_name}"


def _evaluate_frame(command: tuple[str, ...]) -> int:
    """Evaluate a data frame (``frame:pandas TABLE.parquet role=column ...``) and print the results JSON."""
    import pyarrow.parquet  # noqa: PLC0415

    from abstain.report.results_json import encode, results_json  # noqa: PLC0415

    kind, path, *options = command
    read_options: dict[str, Any] = dict(option.split("=", 1) for option in options)
    evaluate_options = {
        name: read_options.pop(name) for name in ("loss", "confidence") if name in read_options
    }
    if "scale" in read_options:
        read_options["scale"] = [float(part) for part in read_options["scale"].split(",")]
    table = pyarrow.parquet.read_table(path)
    try:
        items = abstain.read(_frame(kind, table), **read_options)
        result = abstain.evaluate(items, **evaluate_options, resamples=5)
    except AbstainError as problem:
        print(f"abstain: {problem}", file=sys.stderr)
        return problem.exit_code
    # A data frame has no path and no hash, but the results JSON needs them.
    items = items.with_provenance(path="frame", sha256="")
    result = abstain.evaluate(items, **evaluate_options, resamples=5)
    sys.stdout.write(encode(results_json(result, datetime.now(UTC))).decode())
    return 0


def _read_items(command: tuple[str, ...]) -> int:
    """Read a file or its data frame (``items:polars TABLE.parquet --cluster c ...``) and print the items."""
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
    sys.stdout.write(json.dumps(_columns(items), default=str))
    return 0


def _columns(items: Items) -> dict[str, Any]:
    """Return the columns of items, the most important columns first."""
    roles = ("truth", "prediction", "outcome", "cluster", "item", "weight")
    columns = {name: getattr(items, name) for name in roles if getattr(items, name) is not None}
    return {
        **{name: _values(column) for name, column in columns.items()},
        "facts": [items.scale, items.cluster_noun, items.positive, items.unnamed],
        "names of signals": list(items.signals),
        "signals": [_values(signal.values) for signal in items.signals.values()],
        "metadata": [_values(column) for column in items.metadata.values()],
    }


def _values(column: Any) -> list[Any]:
    """Return the values of a column, with "nan" instead of NaN, which does not equal itself."""
    return ["nan" if value != value else value for value in column.tolist()]  # noqa: PLR0124


def _frame(kind: str, table: Any) -> Any:
    if kind.endswith(":arrow"):
        return table
    if kind.endswith(":relation"):
        import duckdb  # noqa: PLC0415

        return duckdb.from_arrow(table)
    if kind.endswith((":typed", ":objects", ":categories")):
        import pandas as pd  # noqa: PLC0415

        if kind.endswith(":typed"):
            return table.to_pandas(types_mapper=pd.ArrowDtype)
        objects = pd.DataFrame(table.to_pydict(), dtype=object)
        return objects if kind.endswith(":objects") else objects.astype("category")
    if kind.endswith(":pandas"):
        # In a column with missing values, pandas turns integers into floats, which changes large integers.
        return table.to_pandas(integer_object_nulls=_has_large_integers(table))
    import polars as pl  # noqa: PLC0415

    return pl.from_arrow(table)


def _has_large_integers(table: Any) -> bool:
    """Return whether a table contains integers that a float cannot represent."""
    import pyarrow.types  # noqa: PLC0415

    integers = [column for column in table.columns if pyarrow.types.is_integer(column.type)]
    return any(abs(value) > 2**53 for column in integers for value in column.drop_null().to_pylist())


def _find_changes(case: Case, folder: Path) -> tuple[dict[str, bytes], tuple[str, ...]]:
    """Return new and changed files, and the names of files and links that are gone or of another type."""
    written, gone = {}, []
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_file() and name not in case.links and path.read_bytes() != case.files.get(name):
            written[name] = path.read_bytes()
    gone += [name for name in case.files if not (folder / name).is_file()]
    gone += [name for name in case.links if not (folder / name).is_symlink()]
    return written, tuple(gone)


def _reset_peak() -> int:
    """Reset the peak memory, and return the memory in use."""
    Path("/proc/self/clear_refs").write_text("5")
    return _memory("VmRSS")


def _memory(field: str) -> int:
    status = Path("/proc/self/status").read_text()
    return int(status.split(f"{field}:")[1].split()[0]) * 1024
