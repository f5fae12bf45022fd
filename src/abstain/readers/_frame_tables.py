"""Data frames as tables: pandas, polars, PyArrow and others that narwhals supports. None of them is a dependency.

DuckDB reads lazy frames without loading them. Any other frame is read through narwhals.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np

from abstain import _sql, _validate, labels
from abstain.errors import ArgumentError, DataError
from abstain.readers._duckdb_tables import Database, DuckTable, RelationDatabase, unused_name
from abstain.readers._tables import SourceTable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    import duckdb
    from numpy.typing import NDArray

    from abstain.readers._tables import Form


def open_frame(source: object) -> SourceTable:
    """Return a data frame, eager or lazy, as a table."""
    if type(source).__module__.startswith("pyspark"):
        raise ArgumentError(
            "a Spark DataFrame is aggregated by abstain.evaluate, in the cluster; for anything that needs its rows, "
            "collect it first (toPandas, toArrow)"
        )
    lazy = open_lazy(source)
    if lazy is not None:
        return lazy
    import narwhals as nw  # noqa: PLC0415
    from narwhals.exceptions import DuplicateError  # noqa: PLC0415

    try:
        return FrameTable(nw.from_native(source))
    except TypeError:
        raise ArgumentError(
            f"a source of type {type(source).__name__} cannot be read; pass a path, several paths, or a pandas, "
            f"polars, PyArrow or DuckDB table ({_validate.FROM_ARRAYS})"
        ) from None
    except DuplicateError:
        raise DataError("two columns of the frame have the same name; rename one of them") from None


def open_lazy(
    source: Any, memory: str | None = None, connection: duckdb.DuckDBPyConnection | None = None
) -> DuckTable | None:
    """Return a lazy frame that DuckDB can read as a table; None for any other source.

    These are DuckDB relations, Ibis tables of any backend, polars LazyFrames and PyArrow datasets. A connection of this
    package reads the last two: `connection`, or a new one with the limit `memory`. No package is imported for this.
    """
    package, kind = type(source).__module__.partition(".")[0], type(source).__name__
    if package == "narwhals" and kind == "LazyFrame":
        return open_lazy(source.to_native(), memory, connection)
    if package in ("duckdb", "_duckdb") and hasattr(source, "fetchnumpy"):
        name = unused_name()
        return _LazyTable(RelationDatabase(source, name), name, "the DuckDB relation")
    if package == "ibis" and hasattr(source, "get_backend"):
        return _open_ibis(source, memory, connection)
    if package == "polars" and kind == "LazyFrame":
        return _open_scanned(
            source, source.collect_schema().names(), "the polars LazyFrame", memory, connection
        )
    if package == "pyarrow" and hasattr(source, "scanner"):
        return _open_scanned(source, source.schema.names, "the PyArrow dataset", memory, connection)
    return None


def _open_scanned(
    source: Any,
    names: Sequence[str],
    label: str,
    memory: str | None,
    connection: duckdb.DuckDBPyConnection | None,
) -> DuckTable | None:
    """Return a source of Arrow data that DuckDB scans in every query; None if this version of DuckDB cannot."""
    import duckdb  # noqa: PLC0415

    connection, name = connection or _sql.connect(memory), unused_name()
    try:
        connection.register(name, source)
    except (ImportError, duckdb.Error):
        return None
    return _LazyTable(Database(connection), name, label, names, source)


class _LazyTable(DuckTable):
    """A relation or a lazy frame, which is called `source` in DuckDB.

    `names` are the names of its columns if DuckDB may rename them, and `frame` is the source of Arrow data.
    """

    def __init__(
        self,
        database: Database,
        source: str,
        label: str,
        names: Sequence[str] | None = None,
        frame: object = None,
    ) -> None:
        super().__init__(database, label)
        self.source, self._frame = source, frame
        self._describe_columns(names)

    def marked(self, name: str, marks: NDArray[np.bool_], words: tuple[str, str], part: Path | None) -> Any:
        """Return a frame of the same library with one more column, if narwhals supports it."""
        import narwhals as nw  # noqa: PLC0415

        frame = nw.from_native(self._frame, pass_through=True)
        if not isinstance(frame, nw.LazyFrame):
            raise ArgumentError(f"{self.label}: a column cannot be added to it; pass a file or a data frame")
        return FrameTable(frame).marked(name, marks, words, part)


def _open_ibis(source: Any, memory: str | None, connection: duckdb.DuckDBPyConnection | None) -> DuckTable:
    """Return an Ibis table: as a relation if its backend is DuckDB, otherwise as a copy of its rows."""
    label = "the Ibis table"
    if len({name.casefold() for name in source.columns}) < len(source.columns):
        # DuckDB and other backends would silently confuse them.
        raise DataError(f"{label}: has columns whose names differ only in case; rename one of them")
    backend, name = source.get_backend(), unused_name()
    if backend.name == "duckdb":
        relation = backend.con.sql(str(source.compile()))
        return _LazyTable(RelationDatabase(relation, name), name, label)
    connection = connection or _sql.connect(memory)
    connection.register(f"{name}_rows", source.to_pyarrow_batches())
    database = Database(connection)
    database.create(name, f"FROM {name}_rows")
    return _LazyTable(database, name, label)


class FrameTable(SourceTable):
    """A narwhals frame as a table."""

    def __init__(self, frame: Any) -> None:
        self.label = f"the {frame.implementation.name.lower()} frame"
        self.declared: Mapping[str, Any] = {}
        self._frame = frame
        schema = frame.collect_schema()
        # Not every name is text: pandas numbers columns without names.
        self._names = {str(name): name for name in schema}
        if len(self._names) < len(schema):
            raise DataError("two columns of the frame have the same name; rename one of them")
        self._kinds = {str(name): _frame_kind(dtype) for name, dtype in schema.items()}

    def load(self, names: Sequence[str], form: Form = "text") -> dict[str, NDArray[Any]]:  # noqa: ARG002
        """Return columns as arrays; text stays text."""
        import narwhals as nw  # noqa: PLC0415

        if not names:
            return {}
        chosen = self._frame.select(*(nw.col(self._names[name]) for name in names))
        if isinstance(chosen, nw.LazyFrame):
            chosen = chosen.collect()
        return {name: _frame_array(chosen.get_column(self._names[name]), self._kinds[name]) for name in names}

    def marked(self, name: str, marks: NDArray[np.bool_], words: tuple[str, str], part: Path | None) -> Any:
        """Return a frame of the same library with one more column."""
        import narwhals as nw  # noqa: PLC0415

        assert part is None  # a frame is returned and never written
        frame = self._frame.collect() if isinstance(self._frame, nw.LazyFrame) else self._frame
        values = np.where(marks, words[1], words[0]).tolist()
        column = nw.new_series(name, values, nw.String, backend=frame.implementation)
        if frame.implementation.is_pandas_like():  # pandas joins by index and not by position
            column = nw.maybe_set_index(column, index=nw.maybe_get_index(frame))
        return frame.with_columns(column).to_native()

    @property
    def rows(self) -> int:
        """The number of rows."""
        name = next(iter(self._names), None)
        return 0 if name is None else len(self.load([name])[name])


def _frame_kind(dtype: Any) -> str:
    import narwhals as nw  # noqa: PLC0415

    if dtype == nw.Boolean:
        return "boolean"
    if dtype.is_integer() or (dtype.is_decimal() and getattr(dtype, "scale", None) == 0):
        return "whole"
    if dtype.is_numeric():
        return "number"
    if dtype in (nw.List, nw.Array):
        return "list"
    if dtype.is_nested() or dtype == nw.Binary:
        return "other"
    return "text"


def _frame_array(series: Any, kind: str) -> NDArray[Any]:
    import narwhals as nw  # noqa: PLC0415

    nulls = series.is_null().to_numpy()
    if series.dtype == nw.Categorical and series.implementation.is_pandas_like() and not nulls.all():
        return _cells_of_categories(series.to_native())
    if nulls.all():  # a column without values has no type
        numeric = kind in ("number", "whole")
        return np.full(len(nulls), np.nan) if numeric else np.full(len(nulls), None, dtype=object)
    if series.dtype == nw.Categorical and series.implementation.is_pyarrow():
        series = nw.from_native(series.to_native().cast(series.to_native().type.value_type), series_only=True)
    zone = ""
    if series.dtype == nw.Datetime and series.dtype.time_zone is not None:
        series, zone = series.dt.convert_time_zone("UTC").dt.replace_time_zone(None), "+00:00"
    if series.dtype.is_float():
        return np.asarray(series.cast(nw.Float64).to_numpy(), dtype=np.float64)
    wide = series.dtype.is_decimal() or series.dtype in (nw.Int128, nw.UInt128)  # numpy has no such types
    if kind in ("whole", "boolean") and not nulls.any() and not wide:
        return np.asarray(series.to_numpy())
    unchanged = kind in ("list", "whole") or series.dtype in (nw.Object, nw.String, nw.Boolean)
    values = (series if unchanged and not series.dtype.is_decimal() else series.cast(nw.String)).to_list()
    # In a column of objects, pandas uses a float NaN as null.
    values = [None if null else value for value, null in zip(values, nulls, strict=True)]
    if series.dtype in (nw.Object, nw.Time):
        values = [_text_of_object(value, text) for value, text in zip(series.to_list(), values, strict=True)]
    elif series.dtype == nw.Datetime:
        values = [None if text is None else _as_in_files(text) + zone for text in values]
    cells = _validate.objects(values)
    return labels.exact(cells) if kind == "whole" and not series.dtype.is_decimal() else cells


def _cells_of_categories(column: Any) -> NDArray[Any]:
    """Return the cells of a pandas column of categories; converted at once, large numbers with gaps become floats."""
    import narwhals as nw  # noqa: PLC0415

    categories = nw.from_native(column.cat.categories.to_series(), series_only=True)
    cells = _frame_array(categories, _frame_kind(categories.dtype)).tolist()
    return _validate.objects([None if code < 0 else cells[code] for code in column.cat.codes.tolist()])


def _text_of_object(value: Any, otherwise: Any) -> Any:
    """Return the text of a date, a time or a decimal, as a file of the same table would give it; or `otherwise`."""
    if otherwise is None:
        return None
    if isinstance(value, datetime):
        if value.tzinfo is None:
            return _as_in_files(str(value))
        return _as_in_files(str(value.astimezone(UTC).replace(tzinfo=None))) + "+00:00"
    if isinstance(value, Decimal) and value.is_finite():
        return f"{value:f}"
    if isinstance(value, time):
        return _as_in_files(str(value))
    return str(value) if isinstance(value, date) else otherwise


def _as_in_files(text: str) -> str:
    """Return the text of a date with a time of day, or of a time, in the form of the engine that reads files.

    >>> _as_in_files("2026-01-31T10:05:00.500000"), _as_in_files("2026-01-31"), _as_in_files("10:05:00.000000")
    ('2026-01-31 10:05:00.5', '2026-01-31 00:00:00', '10:05:00')
    """
    text = text.replace("T", " ")
    if ":" not in text:
        text = f"{text} 00:00:00"
    return text.rstrip("0").rstrip(".") if "." in text else text
