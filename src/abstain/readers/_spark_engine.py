"""The Spark engine: it aggregates a DataFrame in the cluster, with the same queries as every engine.

Temporary views have unique names, so that they do not hide a table of the session, and are dropped when they are no
longer needed. Spark has no order of rows: the number of a row depends on the partitions, and errors report the number
of wrong rows but not their positions. pyspark is imported only if there is a DataFrame, and pandas is not needed.
"""

from __future__ import annotations

import contextlib
import re
import secrets
import weakref
from functools import cache
from queue import SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from abstain import _sql, labels
from abstain.errors import ArgumentError, DataError, FormatError
from abstain.readers._engine import Engine
from abstain.readers._tables import QueriedColumn, QueriedTable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from abstain.readers._tables import Form

Result = TypeVar("Result")
_LABEL = "the Spark DataFrame"
_FEWEST_PARTITIONS = 4
_MASTER = re.compile(r"local(-cluster)?(\[[^]]+\])?|yarn|(spark|k8s)://.+")
_WHOLE = ("tinyint", "smallint", "int", "bigint")
_PLAIN = ("date", "timestamp", "timestamp_ntz", "string", "char", "varchar")


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


class SparkTable(QueriedTable):
    """A Spark DataFrame as a table."""

    def __init__(self, frame: Any, label: str = _LABEL, *, only_text: bool = False) -> None:
        self.label = label
        self.declared: Mapping[str, Any] = {}
        self.frame = frame
        self._only_text = only_text
        self._types = dict(frame.dtypes)
        if len({name.casefold() for name in frame.columns}) < len(frame.columns):
            raise DataError(f"{label}: has columns whose names differ only in case; rename one of them")
        self._kinds = {
            name: "unknown" if only_text else _kind(type_name) for name, type_name in self._types.items()
        }

    def check_session(self, other: SparkTable) -> None:
        """Raise unless one query can use both tables."""
        if self.frame.sparkSession is not other.frame.sparkSession:
            raise ArgumentError(
                "the Spark DataFrames belong to different sessions; create both in the same session"
            )

    def column(self, name: str, form: Form) -> QueriedColumn:  # noqa: ARG002
        """Return the expression that selects a column; text stays text."""
        kind, type_name, column = self._kinds[name], self._types[name], _quoted(name)
        if type_name == "float":
            return QueriedColumn(f"CAST({column} AS DOUBLE)", kind)
        if type_name in (*_WHOLE, "double", "boolean"):
            return QueriedColumn(column, kind)
        plain = type_name == "string" or kind in ("list", "other")
        return QueriedColumn(column if plain else f"CAST({column} AS STRING)", "text")

    @property
    def rows(self) -> int:
        """The number of rows."""
        return int(_run(self.frame.count, self.label))

    def load(self, names: Sequence[str], form: Form = "text") -> dict[str, NDArray[Any]]:  # noqa: ARG002
        """Raise, because the rows of a DataFrame are aggregated in the cluster."""
        raise ArgumentError(
            f"{self.label}: its rows are aggregated in the cluster; collect {', '.join(names)} first"
        )

    def repeats(self, name: str) -> bool:
        """Return whether a column has at least two different values, and one of them more than once."""
        column = self.column(name, "text").expression
        counts = self.frame.selectExpr(f"count({column}) AS stated", f"count(DISTINCT {column}) AS different")
        row = _run(counts.collect, self.label)[0]
        return bool(1 < row["different"] < row["stated"])

    def marked(self, name: str, marks: NDArray[np.bool_], words: tuple[str, str], part: Path | None) -> Any:
        """Raise, because a DataFrame has no order of rows by which a column could be added."""
        del marks, words, part
        raise ArgumentError(
            f"{self.label}: a column cannot be added to it; add {name!r} with your own expression"
        )


def _kind(type_name: str) -> str:
    if type_name == "boolean":
        return "boolean"
    if type_name in _WHOLE or (type_name.startswith("decimal") and type_name.endswith(",0)")):
        return "whole"
    if type_name in ("float", "double") or type_name.startswith("decimal"):
        return "number"
    if type_name.startswith("array"):
        return "list"
    return "text" if type_name.partition("(")[0] in _PLAIN else "other"


def read_files(session: Any, paths: Sequence[Path], kind: str) -> SparkTable:
    """Open files of one kind ("csv", "parquet" or "jsonl") as one table; without types, every column is text."""
    locations, label = [str(path.absolute()) for path in paths], str(paths[0])
    read = session.read
    if kind == "parquet":
        return SparkTable(_run(lambda: read.parquet(*locations), label), label)
    if kind == "csv":
        options = {"header": True, "quote": '"', "escape": '"', "multiLine": True}
        frame = _run(lambda: read.csv(locations, mode="FAILFAST", **options), label)
    else:
        frame = _run(lambda: read.json(locations, primitivesAsString=True, mode="FAILFAST"), label)
    return SparkTable(frame, label, only_text=True)


def open_session(master: str | None) -> Any:
    """Return the running session, or start one; raise an ArgumentError if Spark cannot start it."""
    from pyspark.sql import SparkSession  # noqa: PLC0415

    if master is not None and master.startswith("sc:"):
        raise ArgumentError(
            "master cannot be the address of a Spark Connect server; open its session in Python, and pass a DataFrame "
            "to abstain.evaluate"
        )
    if master is not None and not _MASTER.fullmatch(master):
        raise ArgumentError(
            f"master must be an address such as local[4], spark://HOST:7077, yarn or k8s://HOST, got {master!r}"
        )
    running = SparkSession.getActiveSession()
    if running is not None:
        return running
    builder = SparkSession.builder.appName("abstain")
    # Otherwise Spark would print a Java trace, and draw its progress bar even without a terminal.
    settings = {"spark.log.level": "OFF", "spark.ui.showConsoleProgress": str(_sql.is_watched()).lower()}
    for name, value in settings.items():
        builder = builder.config(name, value)
    try:
        session = (builder if master is None else builder.master(master)).getOrCreate()
        _limit_partitions(session)
    except Exception as problem:
        address = "" if master is None else f" with the master {master}"
        raise ArgumentError(
            f"Spark cannot start a session{address} ({_error_class(problem)}); check that Java 17 or later is "
            "installed, the address of the master (--master), and that the master runs"
        ) from None
    return session


def _limit_partitions(session: Any) -> None:
    """Use few partitions in a session that runs on this machine, unless the configuration sets their number.

    Spark's default of 200 is meant for clusters. Here most of them would be almost empty.
    """
    name = "spark.sql.shuffle.partitions"
    context = getattr(session, "sparkContext", None)  # a session of Spark Connect has none
    if context is not None and context.master.startswith("local") and not context.getConf().contains(name):
        session.conf.set(name, str(max(_FEWEST_PARTITIONS, context.defaultParallelism)))


def _error_class(problem: Exception) -> str:
    """Return the condition or the class of an error of Spark or Java, because its message may quote the data."""
    from pyspark.errors import PySparkException  # noqa: PLC0415

    condition = problem.getCondition() if isinstance(problem, PySparkException) else None
    java = getattr(problem, "java_exception", None)
    if condition is None and java is not None:
        with contextlib.suppress(Exception):  # Java may have ended
            return str(java.getClass().getSimpleName())
    return str(condition or type(problem).__name__)


def _run(work: Callable[[], Result], label: str) -> Result:
    """Return the result of a call of Spark; raise a FormatError without the message, which may quote the data."""
    try:
        return work()
    except Exception as problem:
        if not type(problem).__module__.startswith(("pyspark.", "py4j.")):
            raise
        raise FormatError(f"{label}: Spark could not read it ({_error_class(problem)})") from None


class SparkEngine(Engine):
    """The rows of a DataFrame."""

    name = "spark"
    text = "STRING"
    row_number = "monotonically_increasing_id()"
    in_order = False

    def __init__(self, table: SparkTable) -> None:
        self._table = table
        self._session = table.frame.sparkSession
        self._prefix = f"abstain_{secrets.token_hex(8)}"
        self._views: dict[str, Any] = {}
        table.frame.createOrReplaceTempView(f"{self._prefix}_source")
        _start_forgetting()
        weakref.finalize(self, _deleted.put, (self._session, self._prefix, self._views)).atexit = False

    def again(self) -> SparkEngine:
        """Return an engine for the same rows that keeps nothing yet."""
        return SparkEngine(self._table)

    def source(self, *, numbers: bool = False) -> str:  # noqa: ARG002  (numbers need no column here)
        """Return the source of the rows, as ``source``; with `numbers` they have a number."""
        return f"{self._prefix}_source AS source"

    def fetch(self, statement: str) -> dict[str, NDArray[Any]]:
        """Return the columns of a result."""
        result = _run(lambda: self._session.sql(statement).toArrow(), _LABEL)
        return {name: _plain(result.column(name)) for name in result.column_names}

    def _keep(self, name: str, statement: str, *, number: bool) -> None:
        if not number:
            self._view(name, _run(lambda: self._session.sql(statement).persist(), _LABEL))
            return
        result = _run(lambda: self._session.sql(statement).toArrow(), _LABEL)
        import pyarrow as pa  # noqa: PLC0415

        numbers = pa.array(np.arange(len(result)))
        self._view(name, self._session.createDataFrame(result.append_column("number", numbers)))

    def give(self, name: str, columns: Mapping[str, NDArray[Any]]) -> None:
        """Keep columns of whole numbers under a name."""
        import pyarrow as pa  # noqa: PLC0415

        table = pa.table({key: pa.array(np.ascontiguousarray(values)) for key, values in columns.items()})
        self._view(name, self._session.createDataFrame(table))

    def known(self, name: str) -> str:
        """Return the source of a kept result, by its name."""
        return f"{self._prefix}_{name} AS {name}"

    def matches(self, text: str, pattern: str) -> str:
        """Return the condition that all of a text matches a pattern."""
        # In Java, $ also matches before a line end at the end of the text.
        return f"({text} RLIKE r'\\A(?:{pattern})\\z')"

    def from_hexadecimal(self, digits: str) -> str:
        """Return the expression that reads hexadecimal digits as a whole number."""
        return f"CAST(conv({digits}, 16, 10) AS BIGINT)"

    def _view(self, name: str, frame: Any) -> None:
        previous = self._views.pop(name, None)
        if previous is not None:
            previous.unpersist()
        self._views[name] = frame
        frame.createOrReplaceTempView(f"{self._prefix}_{name}")


# The sessions, prefixes and views of deleted engines. Garbage collection may delete an engine during a call of Spark,
# and a thread cannot call Spark again before its first call returns. So another thread drops the views.
_deleted: SimpleQueue[tuple[Any, str, dict[str, Any]]] = SimpleQueue()


@cache
def _start_forgetting() -> None:
    def forget() -> None:
        while True:
            _forget(*_deleted.get())

    Thread(target=forget, name="abstain-views", daemon=True).start()


def _forget(session: Any, prefix: str, views: dict[str, Any]) -> None:
    """Drop the temporary views, if the session still runs; a view may depend on one that was dropped before."""
    for frame in views.values():
        with contextlib.suppress(Exception):
            frame.unpersist()
    for name in ("source", *views):
        with contextlib.suppress(Exception):
            session.catalog.dropTempView(f"{prefix}_{name}")


def _plain(column: Any) -> NDArray[Any]:
    """Return an Arrow column as numbers, NaN for null, or objects, None for null."""
    import pyarrow as pa  # noqa: PLC0415

    arrow_type = column.type
    if not column.null_count and (pa.types.is_integer(arrow_type) or pa.types.is_floating(arrow_type)):
        return np.asarray(column.to_numpy())
    if pa.types.is_floating(arrow_type):
        return np.asarray(column.to_numpy(), dtype=np.float64)
    objects = np.empty(len(column), dtype=object)
    objects[:] = column.to_pylist()
    return labels.exact(objects) if pa.types.is_integer(arrow_type) else objects
