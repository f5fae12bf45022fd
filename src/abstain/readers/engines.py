"""Engines: DuckDB or Spark aggregates a table without loading it, or numpy evaluates the loaded table.

A table in files and a lazy frame of at least 2**18 rows are aggregated by DuckDB, smaller ones are loaded. A Spark
DataFrame is aggregated by Spark. Data frames in memory, run files and logs are always loaded. If the caller names an
engine, that one is used. If a request cannot be aggregated, the table is loaded, unless an engine was named.
"""

from __future__ import annotations

import os
import zlib
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, TypeVar

from abstain import _sql, _validate
from abstain.errors import AggregationError, ArgumentError
from abstain.readers._formats import FORMATS, GZIP
from abstain.readers._read import ReadArguments, expand, recognise_files, table_origin

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from abstain._files import SourceFile
    from abstain.readers._duckdb_tables import DuckTable
    from abstain.readers._engine import Engine
    from abstain.readers._formats import Format
    from abstain.readers._tables import QueriedTable
    from abstain.readers._values import Problems
    from abstain.readers.aggregation import AggregatedTable

    Opened = tuple[QueriedTable, Engine, Mapping[str, Any]]
    Opening = Callable[[AggregatedTable | None], Opened]

__all__ = ["ENGINES", "EngineTable", "aggregate_or_load_tables", "engine_tables"]

Result = TypeVar("Result")

NUMPY, DUCKDB, SPARK = ENGINES = ("numpy", "duckdb", "spark")
# Tables of so many rows or more are aggregated and not loaded.
AGGREGATED_ROWS = 1 << 18
# The size of the beginning of a text file from which the number of its rows is estimated.
_HEAD_BYTES = 1 << 16
# The arguments that need every row.
_LOADED_ONLY = ("join", "low", "high", "set", "crossed", "mode", "scorer", "filter", "problems")


@dataclass(frozen=True, eq=False, slots=True)
class EngineTable:
    """A table that an engine aggregates once the request is known; `engine_tables` returns some.

    Attributes:
        engine: "duckdb" or "spark".
        label: the name of the table in messages.
        requested: True if the caller named the engine; otherwise a table that cannot be aggregated is loaded.
    """

    engine: str
    label: str
    requested: bool
    _open: Opening
    _arguments: ReadArguments

    def aggregate(
        self,
        *,
        metadata: Sequence[str] = (),
        further: Sequence[str] = (),
        units: bool = True,
        other: AggregatedTable | None = None,
        problems: Problems | None = None,
    ) -> AggregatedTable:
        """Return the aggregated table.

        Args:
            metadata: the columns that distinguish rows.
            further: the same, but only those that the table has.
            units: False if clusters are only counted.
            other: another table that is queried together with this one.
            problems: collects the problems with rows. Default: the first problem is raised.
        """
        from abstain.readers.aggregation import aggregate  # noqa: PLC0415

        needing_rows = _needing_rows(self._arguments)
        if needing_rows is not None:
            raise AggregationError(self.label, f"{needing_rows} needs every row")
        table, engine, origin = self._open(other)
        kept = (*metadata, *(name for name in further if name in table.kinds and name not in metadata))
        return aggregate(
            table,
            engine,
            replace(self._arguments, metadata=kept, problems=problems),
            units=units,
            origin={**origin, "engine": self.engine},
            requested=self.requested,
        )


def engine_tables(
    systems: Mapping[str, Any],
    *,
    engine: str | None = None,
    memory: str | None = None,
    master: str | None = None,
    format: str | None = None,  # noqa: A002
    **arguments: Any,
) -> dict[str, EngineTable] | None:
    """Return the tables of systems if one engine aggregates all of them; None if they are loaded.

    Args:
        systems: the sources by the names of the systems, as `abstain.read` takes them.
        engine: "numpy", "duckdb" or "spark". Default: chosen by the kind of the sources and their number of rows.
        memory: the memory that DuckDB may use, such as "4GB".
        master: the Spark master, such as "local[4]". Default: the running session, or the configuration of Spark.
        format: the format of the files. Default: recognised.
        **arguments: the other arguments of `abstain.read`.
    """
    if engine is not None:
        _validate.choice(engine, "engine", ENGINES)
    if memory is not None:
        _sql.check_memory(memory)
    frames = [name for name, system in systems.items() if _is_spark(system)]
    if frames:
        _check_all_spark(systems, frames, engine)
    elif engine == NUMPY:
        return None
    # Opening a lazy frame may copy its rows, and is done once.
    lazy = {name: _open_lazy(system, memory) for name, system in systems.items()}
    requested = bool(frames) or engine is not None
    if not requested and not any(_is_large(system, lazy[name]) for name, system in systems.items()):
        return None
    parsed = ReadArguments.parse(**{name: value for name, value in arguments.items() if value is not None})
    needing_rows = _needing_rows(parsed)
    if requested and needing_rows is not None:
        raise ArgumentError(f"{needing_rows} needs a table that is loaded; omit it, or omit the engine")
    tables = {}
    for name, system in systems.items():
        chosen = _opening(system, lazy[name], engine, format, memory, master)
        if chosen is None:
            return None
        used, label, opening = chosen
        tables[name] = EngineTable(used, label, requested, opening, parsed)
    return tables


def _needing_rows(arguments: ReadArguments) -> str | None:
    """Return the first argument that needs every row, if there is one."""
    return next((name for name in _LOADED_ONLY if getattr(arguments, name) is not None), None)


def _check_all_spark(systems: Mapping[str, Any], frames: Sequence[str], engine: str | None) -> None:
    others = [name for name in systems if name not in frames]
    if engine not in (None, SPARK):
        raise ArgumentError(f"engine {engine} does not aggregate a Spark DataFrame; omit the engine")
    if others:
        raise ArgumentError(
            f"{frames[0]} is a Spark DataFrame and can be compared only with other ones; {others[0]} is not one"
        )


def aggregate_or_load_tables(
    tables: Mapping[str, EngineTable] | None,
    aggregate: Callable[[Mapping[str, EngineTable]], Result],
    load: Callable[[str | None], Result],
) -> Result:
    """Return the result of aggregating tables or, if that is impossible, of loading them; `load` gets the reason."""
    if tables is None:
        return load(None)
    try:
        return aggregate(tables)
    except AggregationError as problem:
        if any(table.requested for table in tables.values()):
            raise
        return load(problem.reason)


def _opening(
    source: Any,
    lazy: DuckTable | None,
    engine: str | None,
    kind: str | None,
    memory: str | None,
    master: str | None,
) -> tuple[str, str, Opening] | None:
    """Return the engine of a table, its name in messages, and a function that opens it; None if it must be loaded."""
    if _is_spark(source):
        return SPARK, "the Spark DataFrame", partial(_spark_frame, source)
    if lazy is not None and engine != SPARK:
        return DUCKDB, lazy.label, partial(_duckdb_frame, source, lazy, memory)
    files, form = recognise_files(source, kind)
    if form is None or not form.is_table:
        if engine is None:
            return None
        described = "a data frame in memory" if form is None else form.described
        raise ArgumentError(
            f"engine {engine} aggregates tables in files, but this is {described}; omit the engine"
        )
    if engine == SPARK:
        return SPARK, str(files[0]), partial(_spark_files, files, form, master)
    return DUCKDB, str(files[0]), partial(_duckdb_files, files, form, memory)


def _is_large(source: Any, lazy: DuckTable | None) -> bool:
    """Return whether a source is large enough to be aggregated; a pipe is not, because it can be read only once."""
    if lazy is not None:
        return lazy.rows >= AGGREGATED_ROWS
    parts = list(source) if isinstance(source, (list, tuple)) else [source]
    if not all(isinstance(part, (str, os.PathLike)) for part in parts):
        return False
    paths = expand(parts)
    return all(path.is_file() for path in paths) and sum(map(_estimated_rows, paths)) >= AGGREGATED_ROWS


def _estimated_rows(path: Path) -> float:
    """Return the number of rows of a Parquet file, or an estimate of that of a text file."""
    with path.open("rb") as file:
        head = file.read(_HEAD_BYTES)
    if head.startswith(FORMATS["parquet"].magic or b""):
        return _parquet_rows(path)
    size = float(path.stat().st_size)
    if head.startswith(GZIP):
        try:
            text = zlib.decompressobj(wbits=31).decompress(head)
        except zlib.error:
            return 0.0  # the reader reports the problem
        size, head = size * len(text) / len(head), text
    return size * head.count(b"\n") / max(len(head), 1)


def _parquet_rows(path: Path) -> float:
    import duckdb  # noqa: PLC0415

    statement = f"SELECT num_rows FROM parquet_file_metadata({_sql.literal(str(path))})"
    try:
        return float(_sql.connect().execute(statement).fetchall()[0][0])
    except (duckdb.Error, RuntimeError):  # DuckDB does not open every path
        return 0.0  # the reader reports the problem


def _is_spark(source: Any) -> bool:
    """Return whether a source is a Spark DataFrame, without importing pyspark."""
    return type(source).__module__.startswith("pyspark.sql") and hasattr(source, "createOrReplaceTempView")


def _open_lazy(source: Any, memory: str | None, other: DuckTable | None = None) -> DuckTable | None:
    if isinstance(source, (str, os.PathLike, list, tuple)) or _is_spark(source):
        return None
    from abstain.readers._frame_tables import open_lazy  # noqa: PLC0415

    return open_lazy(source, memory, None if other is None else other.database.connection)


def _duckdb_frame(source: Any, lazy: DuckTable, memory: str | None, other: AggregatedTable | None) -> Opened:
    """Return a lazy frame that is open already, or open it again in the connection of another table."""
    from abstain.readers._duckdb_engine import DuckEngine  # noqa: PLC0415

    table = lazy if other is None else _open_lazy(source, memory, _duckdb_table(other))
    assert table is not None
    _join_database(table, other)
    return table, DuckEngine(table), {"format": "frame"}


def _duckdb_files(
    files: Sequence[SourceFile], form: Format, memory: str | None, other: AggregatedTable | None
) -> Opened:
    from abstain.readers._duckdb_engine import DuckEngine  # noqa: PLC0415
    from abstain.readers._file_tables import open_files  # noqa: PLC0415

    other_table = _duckdb_table(other)
    connection = None if other_table is None else other_table.database.connection
    table = open_files(files, form.name, connection=connection or _sql.connect(memory))
    _join_database(table, other)
    return table, DuckEngine(table), table_origin(table, form)


def _duckdb_table(aggregated: AggregatedTable | None) -> DuckTable | None:
    from abstain.readers._duckdb_tables import DuckTable  # noqa: PLC0415

    table = None if aggregated is None else aggregated.query.table
    return table if isinstance(table, DuckTable) else None


def _join_database(table: DuckTable, other: AggregatedTable | None) -> None:
    other_table = _duckdb_table(other)
    if other_table is not None and not table.join_database(other_table):
        raise AggregationError(table.label, f"it is in another database than {other_table.label}")


def _spark_frame(frame: Any, other: AggregatedTable | None) -> Opened:
    from abstain.readers._spark_engine import SparkEngine, SparkTable  # noqa: PLC0415

    table = SparkTable(frame)
    if other is not None and isinstance(other.query.table, SparkTable):
        table.check_session(other.query.table)
    return table, SparkEngine(table), {"format": "frame"}


def _spark_files(
    files: Sequence[SourceFile],
    form: Format,
    master: str | None,
    other: AggregatedTable | None,  # noqa: ARG001  (all tables share the session)
) -> Opened:
    """Open files with the running Spark session, or with a new one."""
    if find_spec("pyspark") is None:
        raise ArgumentError("engine spark needs pyspark; install abstain[spark], and Java 17 or later")
    from abstain.readers._spark_engine import SparkEngine, open_session, read_files  # noqa: PLC0415

    session = open_session(master)
    table = read_files(session, [file.path for file in files], form.name)
    return table, SparkEngine(table), {"path": table.label, "format": form.name}
