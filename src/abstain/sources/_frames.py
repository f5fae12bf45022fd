"""Data frames as tables: pandas, polars, PyArrow and whatever else narwhals knows; none is a dependency."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from abstain.errors import ArgumentError, DataError
from abstain.sources._tables import DuckTable, SourceTable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

__all__ = ["open_frame"]


def open_frame(source: object) -> SourceTable:
    """Return a data frame, eager or lazy, as a table."""
    # A relation is known by its module, so that nothing is imported for the sake of asking.
    if type(source).__module__.partition(".")[0] in ("duckdb", "_duckdb") and hasattr(source, "fetchnumpy"):
        return DuckTable(source, "the DuckDB relation")  # type: ignore[arg-type]
    import narwhals as nw  # noqa: PLC0415
    from narwhals.exceptions import DuplicateError  # noqa: PLC0415

    try:
        return FrameTable(nw.from_native(source))
    except TypeError:
        raise ArgumentError(
            f"a source of type {type(source).__name__} cannot be read; pass a path, several paths, or a pandas, "
            "polars, PyArrow or DuckDB table"
        ) from None
    except DuplicateError:
        raise DataError("the frame has two columns of one name; rename one of them") from None


class FrameTable(SourceTable):
    """A narwhals frame as a table."""

    def __init__(self, frame: Any) -> None:
        self.label = f"the {frame.implementation.name.lower()} frame"
        self.declared: Mapping[str, Any] = {}
        self._frame = frame
        # Not every name is text: pandas numbers columns that have none.
        self._names = {str(name): name for name in frame.collect_schema()}
        self._schema = dict(frame.collect_schema())

    @property
    def kinds(self) -> Mapping[str, str]:
        """The kind of each column."""
        return {str(name): _kind(dtype) for name, dtype in self._schema.items()}

    def load(self, names: Sequence[str]) -> dict[str, NDArray[Any]]:
        """Return columns as arrays."""
        import narwhals as nw  # noqa: PLC0415

        if not names:
            return {}
        chosen = self._frame.select(*(nw.col(self._names[name]) for name in names))
        if isinstance(chosen, nw.LazyFrame):
            chosen = chosen.collect()
        kinds = self.kinds
        return {name: _array(chosen.get_column(self._names[name]), kinds[name]) for name in names}

    @property
    def rows(self) -> int:
        """How many rows there are."""
        name = next(iter(self._names), None)
        return 0 if name is None else len(self.load([name])[name])


def _kind(dtype: Any) -> str:
    import narwhals as nw  # noqa: PLC0415

    if dtype == nw.Boolean:
        return "boolean"
    if dtype.is_integer():
        return "whole"
    if dtype.is_numeric():
        return "number"
    if dtype in (nw.List, nw.Array):
        return "list"
    if dtype.is_nested() or dtype == nw.Binary:
        return "other"
    return "text"


def _array(series: Any, kind: str) -> NDArray[Any]:
    import narwhals as nw  # noqa: PLC0415

    nulls = series.is_null().to_numpy()
    if nulls.all():  # a column without any value is of no type
        return (
            np.full(len(nulls), np.nan)
            if kind in ("number", "whole")
            else np.full(len(nulls), None, dtype=object)
        )
    if kind == "number" or (kind == "whole" and nulls.any()):
        return np.asarray(series.cast(nw.Float64).to_numpy(), dtype=np.float64)
    if kind == "whole" or (kind == "boolean" and not nulls.any()):
        return np.asarray(series.to_numpy())
    values = series.to_list() if kind == "list" or series.dtype == nw.Object else _text(series).to_list()
    column = np.empty(len(values), dtype=object)
    # A float NaN in a column of objects is a pandas way to say null.
    column[:] = [None if missing else value for value, missing in zip(values, nulls, strict=True)]
    return column


def _text(series: Any) -> Any:
    import narwhals as nw  # noqa: PLC0415

    return series if series.dtype in (nw.String, nw.Boolean) else series.cast(nw.String)
