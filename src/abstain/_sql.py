"""DuckDB as this package uses it: one way to connect, and names and values that never become statements."""

from __future__ import annotations

import tempfile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb

__all__ = ["connect", "identifier", "literal"]

_MEMORY_LIMIT = "1GB"


def connect() -> duckdb.DuckDBPyConnection:
    """Return a connection without extensions, and so without the network, within a fixed memory."""
    import duckdb  # noqa: PLC0415

    connection = duckdb.connect(
        config={
            "autoinstall_known_extensions": "false",
            "autoload_known_extensions": "false",
            "memory_limit": _MEMORY_LIMIT,
            "temp_directory": tempfile.gettempdir(),
        }
    )
    # It would draw on stdout, which belongs to the caller.
    connection.execute("SET enable_progress_bar = false")
    return connection


def identifier(name: str) -> str:
    """Return a column's name as an SQL identifier, whatever it holds.

    >>> print(identifier('a"; DROP TABLE x; --'))
    "a""; DROP TABLE x; --"
    """
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """Return text as an SQL value.

    >>> print(literal("o'clock"))
    'o''clock'
    """
    return "'" + text.replace("'", "''") + "'"
