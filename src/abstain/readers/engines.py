"""Engines: what counts the rows of a table where they are, and when that is done.

Arrays and data frames are in memory already, and numpy judges them. Of files, small tables are loaded and large ones
counted by DuckDB; a Spark DataFrame is counted by Spark. Runs and logs are always loaded. What the user names counts;
what cannot be counted is loaded, unless he named an engine.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from abstain import _sql, _validate
from abstain.errors import ArgumentError, CountingError
from abstain.readers._read import ReadArguments, expand, recognise_files, table_origin

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from abstain._files import SourceFile
    from abstain.readers._engine import Engine
    from abstain.readers._formats import Format
    from abstain.readers._tables import QueriedTable
    from abstain.readers._values import Problems
    from abstain.readers.counting import AggregatedTable

    Opened = tuple[QueriedTable, Engine, Mapping[str, Any]]
    Opening = Callable[[AggregatedTable | None], Opened]

__all__ = ["ENGINES", "Countable", "countables", "counted_or_loaded"]

Found = TypeVar("Found")

NUMPY, DUCKDB, SPARK = ENGINES = ("numpy", "duckdb", "spark")
# Tables of more bytes are counted and not loaded.
COUNTED_BYTES = 1 << 28
# What is read row by row, and said of tables that are loaded alone.
_LOADED_ONLY = ("join", "low", "high", "set", "crossed", "mode", "scorer", "filter", "problems")


@dataclass(frozen=True, eq=False, slots=True)
class Countable:
    """A table whose rows are counted once it is known what is asked of them; `countables` makes some.

    Attributes:
        engine: what counts them: "duckdb" or "spark".
        label: what the table is called.
        asked: True where the user named the engine, and would not have the table loaded instead.
    """

    engine: str
    label: str
    asked: bool
    _open: Opening
    _arguments: ReadArguments

    def count(
        self,
        *,
        signals: Sequence[str] = (),
        metadata: Sequence[str] = (),
        further: Sequence[str] = (),
        units: bool = True,
        beside: AggregatedTable | None = None,
        problems: Problems | None = None,
    ) -> AggregatedTable:
        """Return the counting of the table.

        Args:
            signals: the signals that will be asked for together.
            metadata: the columns that rows must be told apart by.
            further: the same, of those that there are.
            units: False where clusters are only counted.
            beside: the counting of another table, to be asked together with this one.
            problems: where to say what is wrong with rows; the first of it is raised when left out.
        """
        from abstain.readers.counting import AggregatedTable  # noqa: PLC0415

        table, engine, origin = self._open(beside)
        kept = (*metadata, *(name for name in further if name in table.kinds and name not in metadata))
        roles = replace(self._arguments, signals=tuple(signals), metadata=kept)
        return AggregatedTable.of(
            table, engine, roles, units=units, origin={**origin, "engine": self.engine}, problems=problems
        )


def countables(
    systems: Mapping[str, Any],
    *,
    engine: str | None = None,
    memory: str | None = None,
    master: str | None = None,
    format: str | None = None,  # noqa: A002
    **given: Any,
) -> dict[str, Countable] | None:
    """Return the tables of systems that are to be counted, all by one engine; None where they are to be loaded.

    Args:
        systems: by name, what `abstain.read` takes.
        engine: "numpy", "duckdb" or "spark"; what fits the systems and their size when left out.
        memory: how much DuckDB may take, such as "4GB".
        master: where Spark runs, such as "local[4]"; the session that runs, or what Spark is set up for, when left out.
        format: what the files are, where their content does not tell.
        **given: the further arguments of `abstain.read`.
    """
    if engine is not None:
        _validate.choice(engine, "engine", ENGINES)
    if memory is not None:
        _sql.check_memory(memory)
    frames = [name for name, system in systems.items() if _is_spark(system)]
    others = [name for name in systems if name not in frames]
    if frames:
        if engine not in (None, SPARK):
            raise ArgumentError(f"engine {engine} does not count a Spark DataFrame; leave the engine out")
        if others:
            raise ArgumentError(
                f"{frames[0]} is a Spark DataFrame and is compared with others where they are; {others[0]} is none"
            )
    elif engine == NUMPY or (engine is None and not any(map(_is_large, systems.values()))):
        return None
    asked = bool(frames) or engine is not None
    found = {}
    for name, system in systems.items():
        opened = (
            ("the Spark DataFrame", SPARK, partial(_spark_frame, system))
            if frames
            else _files_of(system, engine, format, memory, master)
        )
        table = None if opened is None else _countable(opened, given, asked=asked)
        if table is None:
            return None
        found[name] = table
    return found


def counted_or_loaded(
    tables: Mapping[str, Countable] | None,
    count: Callable[[Mapping[str, Countable]], Found],
    load: Callable[[], Found],
) -> Found:
    """Return what counting tables gives; what loading gives where they cannot be counted, and nobody asked for it."""
    if tables is None:
        return load()
    try:
        return count(tables)
    except CountingError:
        if any(table.asked for table in tables.values()):
            raise
    return load()


def _files_of(
    source: Any,
    engine: str | None,
    kind: str | None,
    memory: str | None,
    master: str | None,
) -> tuple[str, str, Opening] | None:
    """Return what the files of a table are called, what counts them and what opens them; None for what is no table."""
    files, form = recognise_files(source, kind)
    if form is None or not form.is_table:
        if engine is None:
            return None
        what = "a data frame in memory" if form is None else form.described
        raise ArgumentError(
            f"engine {engine} counts tables in files, and this is {what}; leave the engine out"
        )
    if engine == SPARK:
        return str(files[0]), SPARK, partial(_spark_files, files, form, master)
    return str(files[0]), DUCKDB, partial(_duckdb_files, files, form, memory)


def _is_large(source: Any) -> bool:
    """True where a source is files that are better counted than loaded; what is in a pipe can be read but once."""
    parts = list(source) if isinstance(source, (list, tuple)) else [source]
    if not all(isinstance(part, (str, os.PathLike)) for part in parts):
        return False
    paths = expand(parts)
    return (
        all(path.is_file() for path in paths) and sum(path.stat().st_size for path in paths) >= COUNTED_BYTES
    )


def _is_spark(source: Any) -> bool:
    """True for a DataFrame of Spark; nothing is imported for the sake of asking."""
    return type(source).__module__.startswith("pyspark.sql") and hasattr(source, "createOrReplaceTempView")


def _countable(named: tuple[str, str, Opening], given: Mapping[str, Any], *, asked: bool) -> Countable | None:
    """Return a table that is counted; None, or an error where an engine was asked for, if it must be loaded."""
    said = {name: value for name, value in given.items() if value is not None}
    refused = [name for name in _LOADED_ONLY if name in said]
    if refused:
        if asked:
            raise ArgumentError(f"{refused[0]} is for tables that are loaded; leave it out, or the engine")
        return None
    label, engine, opened = named
    return Countable(engine, label, asked, opened, ReadArguments.parse(**said))


def _duckdb_files(
    files: Sequence[SourceFile], form: Format, memory: str | None, beside: AggregatedTable | None
) -> Opened:
    from abstain.readers._duckdb_engine import DuckEngine  # noqa: PLC0415
    from abstain.readers._duckdb_tables import DuckTable  # noqa: PLC0415
    from abstain.readers._file_tables import open_files  # noqa: PLC0415

    shared = (
        beside.table.database.connection
        if beside is not None and isinstance(beside.table, DuckTable)
        else None
    )
    table = open_files(files, form.name, connection=shared or _sql.connect(memory))
    return table, DuckEngine(table), table_origin(table, form)


def _spark_frame(frame: Any, beside: AggregatedTable | None) -> Opened:
    from abstain.readers._spark_engine import SparkEngine, SparkTable  # noqa: PLC0415

    table = SparkTable(frame)
    if beside is not None and isinstance(beside.table, SparkTable):
        table.check_session(beside.table)
    return table, SparkEngine(table), {"format": "frame"}


def _spark_files(
    files: Sequence[SourceFile],
    form: Format,
    master: str | None,
    beside: AggregatedTable | None,  # noqa: ARG001  (there is one session, and it serves all)
) -> Opened:
    """Open files with the session of Spark that runs, or one of its own."""
    try:
        from pyspark.sql import SparkSession  # noqa: PLC0415
    except ImportError:
        raise ArgumentError(
            "engine spark needs pyspark; install abstain[spark], and Java 17 or later"
        ) from None
    from abstain.readers._spark_engine import SparkEngine, read_files  # noqa: PLC0415

    builder = SparkSession.builder.appName("abstain")
    session = (builder if master is None else builder.master(master)).getOrCreate()
    table = read_files(session, [file.path for file in files], form.name)
    return table, SparkEngine(table), {"path": table.label, "format": form.name}
