"""Data frames as tables: pandas, polars, PyArrow and whatever else narwhals knows; none of them is a dependency."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from abstain import _validate, labels
from abstain.errors import ArgumentError, DataError
from abstain.readers._duckdb_tables import DuckTable, RelationDatabase, unused_name
from abstain.readers._tables import SourceTable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from abstain.readers._tables import Form


def open_frame(source: object) -> SourceTable:
    """Return a data frame, eager or lazy, as a table."""
    # A relation is known by its module, so that nothing is imported for the sake of asking.
    if type(source).__module__.partition(".")[0] in ("duckdb", "_duckdb") and hasattr(source, "fetchnumpy"):
        name = unused_name()
        return DuckTable(RelationDatabase(source, name), name, "the DuckDB relation")
    if type(source).__module__.startswith("pyspark"):
        raise ArgumentError(
            "a Spark DataFrame is counted where it is, by abstain.evaluate; for anything else that needs its rows, "
            "collect it first (toPandas, toArrow)"
        )
    import narwhals as nw  # noqa: PLC0415
    from narwhals.exceptions import DuplicateError  # noqa: PLC0415

    try:
        return FrameTable(nw.from_native(source))
    except TypeError:
        raise ArgumentError(
            f"a source of type {type(source).__name__} cannot be read; pass a path, several paths, or a pandas, "
            f"polars, PyArrow or DuckDB table; {_validate.FROM_ARRAYS}"
        ) from None
    except DuplicateError:
        raise DataError("the frame has two columns of one name; rename one of them") from None


class FrameTable(SourceTable):
    """A narwhals frame as a table."""

    def __init__(self, frame: Any) -> None:
        self.label = f"the {frame.implementation.name.lower()} frame"
        self.declared: Mapping[str, Any] = {}
        self._frame = frame
        schema = frame.collect_schema()
        # Not every name is text: pandas numbers columns that have none.
        self._names = {str(name): name for name in schema}
        if len(self._names) < len(schema):
            raise DataError("the frame has two columns of one name; rename one of them")
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
        made = nw.new_series(name, values, nw.String, backend=frame.implementation)
        if frame.implementation.is_pandas_like():  # which joins by row names, not by place
            made = nw.maybe_set_index(made, index=nw.maybe_get_index(frame))
        return frame.with_columns(made).to_native()

    @property
    def rows(self) -> int:
        """How many rows there are."""
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
    if nulls.all():  # a column without any value is of no type
        numeric = kind in ("number", "whole")
        return np.full(len(nulls), np.nan) if numeric else np.full(len(nulls), None, dtype=object)
    if series.dtype.is_float():
        return np.asarray(series.cast(nw.Float64).to_numpy(), dtype=np.float64)
    wide = series.dtype.is_decimal() or series.dtype in (nw.Int128, nw.UInt128)  # numpy has no type for them
    if kind in ("whole", "boolean") and not nulls.any() and not wide:
        return np.asarray(series.to_numpy())
    as_it_is = kind in ("list", "whole") or series.dtype in (nw.Object, nw.String, nw.Boolean)
    values = (series if as_it_is and not series.dtype.is_decimal() else series.cast(nw.String)).to_list()
    # A float NaN in a column of objects is a pandas way to say null.
    cells = _validate.objects([None if null else value for value, null in zip(values, nulls, strict=True)])
    return labels.exact(cells) if kind == "whole" and not series.dtype.is_decimal() else cells
