"""Spark as an engine: it aggregates a DataFrame in the cluster, with the same queries as every engine.

Temporary views have unique names, so that they hide no table of the session, and are dropped when they are no longer
needed. Spark has no order of rows: the number of a row depends on the partitions, and errors give the number of wrong
rows but not their positions. pyspark is imported only if there is a DataFrame, and pandas is not needed.
"""

from __future__ import annotations

import contextlib
import secrets
import weakref
from typing import TYPE_CHECKING, Any

import numpy as np

from abstain import labels
from abstain.errors import ArgumentError, DataError, FormatError
from abstain.readers._engine import Engine
from abstain.readers._tables import QueriedColumn, QueriedTable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from abstain.readers._tables import Form

_WHOLE = ("tinyint", "smallint", "int", "bigint")
_PLAIN = ("date", "timestamp", "timestamp_ntz", "string", "char", "varchar")


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


class SparkTable(QueriedTable):
    """A Spark DataFrame as a table."""

    def __init__(self, frame: Any, label: str = "the Spark DataFrame", *, only_text: bool = False) -> None:
        self.label = label
        self.declared: Mapping[str, Any] = {}
        self.frame = frame
        self._only_text = only_text
        self._types = dict(frame.dtypes)
        if len({name.casefold() for name in frame.columns}) < len(frame.columns):
            raise DataError(f"{label}: has columns whose names differ in case alone; rename one of them")
        self._kinds = {name: "unknown" if only_text else _kind(found) for name, found in self._types.items()}

    def check_session(self, other: SparkTable) -> None:
        """Raise unless one query can use both tables."""
        if self.frame.sparkSession is not other.frame.sparkSession:
            raise ArgumentError("the Spark DataFrames are of different sessions; make both in one of them")

    def column(self, name: str, form: Form) -> QueriedColumn:  # noqa: ARG002
        """Return how to select a column; text stays text."""
        kind, found, column = self._kinds[name], self._types[name], _quoted(name)
        if found == "float":
            return QueriedColumn(f"CAST({column} AS DOUBLE)", kind)
        if found in (*_WHOLE, "double", "boolean"):
            return QueriedColumn(column, kind)
        plain = found == "string" or kind in ("list", "other")
        return QueriedColumn(column if plain else f"CAST({column} AS STRING)", "text")

    @property
    def rows(self) -> int:
        """The number of rows."""
        return int(self.frame.count())

    def load(self, names: Sequence[str], form: Form = "text") -> dict[str, NDArray[Any]]:  # noqa: ARG002
        """Refuse: the rows of a DataFrame are aggregated in the cluster."""
        raise ArgumentError(
            f"{self.label}: its rows are aggregated in the cluster; collect {', '.join(names)} yourself"
        )

    def repeats(self, name: str) -> bool:
        """Return whether a column has several values, and some of them more than once."""
        column = self.column(name, "text").expression
        row = self.frame.selectExpr(
            f"count({column}) AS known", f"count(DISTINCT {column}) AS several"
        ).collect()[0]
        return bool(1 < row["several"] < row["known"])

    def marked(self, name: str, marks: NDArray[np.bool_], words: tuple[str, str], part: Path | None) -> Any:
        """Refuse: a DataFrame has no order of rows to add a column by."""
        del marks, words, part
        raise ArgumentError(
            f"{self.label}: a column cannot be added to it; add {name!r} by an expression of your own"
        )


def _kind(found: str) -> str:
    if found == "boolean":
        return "boolean"
    if found in _WHOLE or (found.startswith("decimal") and found.endswith(",0)")):
        return "whole"
    if found in ("float", "double") or found.startswith("decimal"):
        return "number"
    if found.startswith("array"):
        return "list"
    return "text" if found.partition("(")[0] in _PLAIN else "other"


def read_files(session: Any, paths: Sequence[Path], kind: str) -> SparkTable:
    """Open files of one kind ("csv", "parquet" or "jsonl") as one table; without types, every column is text."""
    places, label = [str(path.absolute()) for path in paths], str(paths[0])
    read = session.read
    if kind == "parquet":
        return SparkTable(read.parquet(*places), label)
    if kind == "csv":
        frame = read.csv(places, header=True, quote='"', escape='"', multiLine=True, mode="FAILFAST")
    else:
        frame = read.json(places, primitivesAsString=True, mode="FAILFAST")
    return SparkTable(frame, label, only_text=True)


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
        weakref.finalize(self, _forget, self._session, self._prefix, self._views)

    def again(self) -> SparkEngine:
        """Return an engine for the same rows that keeps nothing yet."""
        return SparkEngine(self._table)

    def source(self, *, numbers: bool = False) -> str:  # noqa: ARG002  (numbers need no column here)
        """Return the source of the rows, as ``source``; with `numbers` they have a number."""
        return f"{self._prefix}_source AS source"

    def fetch(self, statement: str) -> dict[str, NDArray[Any]]:
        """Return the columns of a result."""
        found = self._run(lambda: self._session.sql(statement).toArrow())
        return {name: _plain(found.column(name)) for name in found.column_names}

    def _keep(self, name: str, statement: str, *, number: bool) -> None:
        if not number:
            self._view(name, self._run(lambda: self._session.sql(statement).persist()))
            return
        found = self._run(lambda: self._session.sql(statement).toArrow())
        import pyarrow as pa  # noqa: PLC0415

        numbers = pa.array(np.arange(len(found)))
        self._view(name, self._session.createDataFrame(found.append_column("number", numbers)))

    def give(self, name: str, columns: Mapping[str, NDArray[Any]]) -> None:
        """Keep columns of whole numbers under a name."""
        import pyarrow as pa  # noqa: PLC0415

        table = pa.table({key: pa.array(np.ascontiguousarray(values)) for key, values in columns.items()})
        self._view(name, self._session.createDataFrame(table))

    def known(self, name: str) -> str:
        """Return the source of a kept result, by its name."""
        return f"{self._prefix}_{name} AS {name}"

    def matches(self, text: str, pattern: str) -> str:
        """Return a condition: all of a text matches a pattern."""
        return f"({text} RLIKE r'^(?:{pattern})$')"

    def from_hexadecimal(self, digits: str) -> str:
        """Return how to read hexadecimal digits as a whole number."""
        return f"CAST(conv({digits}, 16, 10) AS BIGINT)"

    def _view(self, name: str, frame: Any) -> None:
        previous = self._views.pop(name, None)
        if previous is not None:
            previous.unpersist()
        self._views[name] = frame
        frame.createOrReplaceTempView(f"{self._prefix}_{name}")

    def _run(self, work: Any) -> Any:
        from pyspark.errors import PySparkException  # noqa: PLC0415

        try:
            return work()
        except PySparkException as problem:
            # The message of Spark may quote the data.
            kind = problem.getCondition() or type(problem).__name__
            raise FormatError(f"the Spark DataFrame: Spark could not read it ({kind})") from None


def _forget(session: Any, prefix: str, views: dict[str, Any]) -> None:
    """Drop the temporary views, if the session still runs; a view may depend on one that was dropped before."""
    for frame in views.values():
        with contextlib.suppress(Exception):
            frame.unpersist()
    for name in ("source", *views):
        with contextlib.suppress(Exception):
            session.catalog.dropTempView(f"{prefix}_{name}")


def _plain(column: Any) -> NDArray[Any]:
    """Return a column of Arrow as numbers, NaN for null, or objects, None for null."""
    import pyarrow as pa  # noqa: PLC0415

    found = column.type
    if not column.null_count and (pa.types.is_integer(found) or pa.types.is_floating(found)):
        return np.asarray(column.to_numpy())
    if pa.types.is_floating(found):
        return np.asarray(column.to_numpy(), dtype=np.float64)
    objects = np.empty(len(column), dtype=object)
    objects[:] = column.to_pylist()
    return labels.exact(objects) if pa.types.is_integer(found) else objects
