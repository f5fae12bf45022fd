"""DuckDB connections, interruptible queries, and quoting of names.

A connection loads no extensions, so it has no network access. It uses a fixed amount of memory and spills into a
temporary folder that only the owner may open and that is deleted with the connection. Queries run in a second thread,
because DuckDB does not react to Ctrl-C.
"""

from __future__ import annotations

import re
import shutil
import tempfile
import threading
import weakref
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, TypeVar

from abstain.errors import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import duckdb

_MEMORY_LIMIT = "1GB"
_MEMORY = re.compile(r"[1-9][0-9]{0,5}(\.[0-9]{1,3})? ?[KMGT]i?B", re.ASCII | re.IGNORECASE)
_PATIENCE = 0.05

# The function that is called with the progress of a query in percent.
_report_progress: ContextVar[Callable[[float], None] | None] = ContextVar("report_progress", default=None)

Result = TypeVar("Result")


def check_memory(text: str) -> None:
    """Raise unless a text is an amount of memory.

    >>> check_memory("4GB")
    """
    if not _MEMORY.fullmatch(text):
        raise ArgumentError(f"memory must be a number with its unit, such as 4GB or 800MB, got {text!r}")


def connect(memory: str | None = None) -> duckdb.DuckDBPyConnection:
    """Return a connection without extensions and network access, with a memory limit."""
    import duckdb  # noqa: PLC0415

    folder = tempfile.mkdtemp(prefix="abstain-")  # only its owner may read it
    connection = duckdb.connect(
        config={
            "autoinstall_known_extensions": "false",
            "autoload_known_extensions": "false",
            "allow_community_extensions": "false",
            "memory_limit": memory or _MEMORY_LIMIT,
            "temp_directory": folder,
        }
    )
    weakref.finalize(connection, shutil.rmtree, folder, ignore_errors=True)
    # DuckDB measures progress only if its progress bar is enabled; the bar itself must not be printed to stdout.
    connection.execute("SET enable_progress_bar = true; SET enable_progress_bar_print = false")
    return connection


def run(
    work: Callable[[], Result],
    connection: duckdb.DuckDBPyConnection | None,
) -> Result:
    """Return the result of `work`; Ctrl-C interrupts the query of the connection and raises KeyboardInterrupt.

    Args:
        work: runs a query.
        connection: the connection that runs it.

    >>> run(lambda: 1 + 1, None)
    2
    """
    if connection is None or threading.current_thread() is not threading.main_thread():
        return work()
    from concurrent.futures import ThreadPoolExecutor, wait  # noqa: PLC0415

    with ThreadPoolExecutor(max_workers=1) as pool:
        future = pool.submit(work)
        # Older versions of DuckDB do not report progress.
        report_progress = _report_progress.get()
        progress = getattr(connection, "query_progress", None)
        try:
            while (
                report_progress is not None
                and progress is not None
                and wait([future], timeout=_PATIENCE).not_done
            ):
                report_progress(progress())
            return future.result()
        except KeyboardInterrupt:
            # A query that has not started yet would miss a single interrupt.
            while not future.done():
                connection.interrupt()
                wait([future], timeout=_PATIENCE)
            raise


@contextmanager
def watched(report_progress: Callable[[float], None]) -> Iterator[None]:
    """Call `report_progress` many times per second while a query runs, with its progress in percent."""
    before = _report_progress.set(report_progress)
    try:
        yield
    finally:
        _report_progress.reset(before)


def is_watched() -> bool:
    """Return whether the progress of queries is shown."""
    return _report_progress.get() is not None


def identifier(name: str) -> str:
    """Return a column name as a quoted SQL identifier.

    >>> print(identifier('a"; DROP TABLE x'))
    "a""; DROP TABLE x"
    """
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """Return text as a quoted SQL string.

    >>> print(literal("o'clock"))
    'o''clock'
    """
    return "'" + text.replace("'", "''") + "'"
