"""Tables that DuckDB reads: relations of the user's, and files.

Names from a file are only ever quoted identifiers or values, never a part of a statement. Errors of DuckDB quote the
data, so they are never passed on: what is wrong is found again and said in our own words.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

from abstain import _sql, labels
from abstain.errors import ArgumentError, DataError, FormatError, lacks_memory
from abstain.readers._tables import QueriedTable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    import duckdb
    from numpy.typing import NDArray

    from abstain.readers._table_files import TableFiles

_WHOLE = re.compile(r"^U?(TINY|SMALL|BIG)?INT(EGER)?$")
# Numbers that numpy does not hold as they are; they come as text, which is exact.
_EXACT_NUMBER = re.compile(r"^(DECIMAL.*|U?HUGEINT|BIGNUM|VARINT)$")
_LIST = re.compile(r"\[\d*\]$")
# The errors that DuckDB raises about a statement. Errors about reading a file are of other classes.
_OUR_MISTAKES = (
    "BinderException",
    "CatalogException",
    "ConversionException",
    "InvalidTypeException",
    "OutOfRangeException",
    "ParserException",
    "SyntaxException",
    "TypeMismatchException",
)
_NESTED = re.compile(r"(^(STRUCT|MAP|UNION|BLOB|BIT|LIST|ARRAY|VARIANT|GEOMETRY))")


class DuckTable(QueriedTable):
    """A table that DuckDB reads: a relation of the user's, or some files."""

    word = "table"
    # True where a file knows no types.
    text_alone = False

    def __init__(self, relation: Any, label: str) -> None:
        self.label = label
        self.declared: Mapping[str, Any] = {}
        self._snapshot: TableFiles | None = None
        self._connection: duckdb.DuckDBPyConnection | None = None
        self.relation = relation
        self._describe(relation.columns, relation.types)

    def _open(self, snapshot: TableFiles, connection: duckdb.DuckDBPyConnection) -> None:
        """What every table of files begins with; a relation does not keep its connection alive."""
        self.label = snapshot.label
        self.paths = snapshot.paths
        self.declared = {}
        self._snapshot = snapshot
        self._connection = connection

    def _describe(
        self, names: Sequence[str], types: Sequence[Any], inner: Sequence[str] | None = None
    ) -> None:
        """Note the kind of every column, and what to select to get it."""
        self._kinds: dict[str, str] = {}
        self._expressions: dict[str, str] = {}
        self._text_columns: set[str] = set()
        for name, type_name, own in zip(names, map(str, types), inner or names, strict=True):
            self._kinds[name] = _kind(type_name)
            self._expressions[name] = _expression(_sql.identifier(own), type_name)
            if _kind(type_name) in ("text", "list") or _EXACT_NUMBER.match(type_name):
                self._text_columns.add(name)

    @property
    def connection(self) -> duckdb.DuckDBPyConnection | None:
        """Where statements about files are run."""
        return self._connection

    def query(self, statement: str) -> Any:
        """Return what DuckDB makes of a statement of ours, not yet run."""
        assert self._connection is not None
        return self._connection.sql(statement)

    def fetch(self, work: Callable[[], Any], progress: Callable[[], float] | None = None) -> Any:
        """Run a query of this table and show its progress; errors do not quote DuckDB.

        Raises:
            FormatError: DuckDB cannot read the files.
            RuntimeError: DuckDB rejects the statement, which is a defect of this package.
        """
        import duckdb  # noqa: PLC0415

        try:
            found = _sql.run(work, self._connection, progress)
        except duckdb.InterruptException:
            raise KeyboardInterrupt from None
        except Exception as problem:
            if isinstance(problem, duckdb.OutOfMemoryException) or lacks_memory(problem):
                raise DataError(
                    f"{self.label}: reading it takes more memory than there is; name fewer columns, or split the file"
                ) from None
            if not isinstance(problem, duckdb.Error):
                raise
            self._check_snapshot()
            if type(problem).__name__ in _OUR_MISTAKES:
                raise RuntimeError(
                    f"{self.label}: DuckDB rejected a statement of abstain ({type(problem).__name__}); the file is not "
                    "the cause, so please report this as a defect of abstain"
                ) from None
            raise self._explained(problem) from None
        self._check_snapshot()
        return found

    def _check_snapshot(self) -> None:
        if self._snapshot is not None:
            self._snapshot.check()

    def _explained(self, problem: Exception) -> FormatError:
        """What is wrong with the files, without the words of DuckDB, which may quote the data."""
        return FormatError(f"{self.label}: cannot be read as {self.word} ({type(problem).__name__})")

    def load(self, names: Sequence[str]) -> dict[str, NDArray[Any]]:
        """Return columns as arrays."""
        if not names:
            return {}
        parts = [f"{self.expression(name)} AS c{place}" for place, name in enumerate(names)]
        found = self.fetch(lambda: self.relation.project(", ".join(parts)).fetchnumpy())
        return {name: plain_array(found[f"c{place}"]) for place, name in enumerate(names)}

    def run(self, statement: str) -> None:
        """Run a statement of ours that gives nothing back."""
        assert self._connection is not None
        connection = self._connection
        self.fetch(lambda: connection.execute(statement))

    def give(self, name: str, columns: Mapping[str, NDArray[Any]]) -> None:
        """Make columns of ours known to statements under a name."""
        assert self._connection is not None
        self._connection.register(name, dict(columns))

    # How a file of this kind is written again, and what is selected of each row and its mark.
    _written = ""

    def _columns_with(self, name: str, mark: str) -> str:
        kept = ", ".join(
            f"source.{_sql.identifier(own)} AS {_sql.identifier(column)}"
            for column, own in zip(self._kinds, self.relation.columns, strict=True)
        )
        return f"{kept}, {mark} AS {_sql.identifier(name)}"

    def marked(self, name: str, marks: NDArray[np.bool_], words: tuple[str, str], part: Path | None) -> Any:
        """Write the rows with one more column, one after the other: no more of them is in memory than is needed."""
        if self._connection is None or part is None:
            raise ArgumentError(f"{self.label}: a column cannot be added to it; pass a file or a data frame")
        self.give("marks", {"mark": marks})
        mark = f"CASE WHEN marks.mark THEN {_sql.literal(words[1])} ELSE {_sql.literal(words[0])} END"
        # Rows come in the order of the files, in which the marks were made.
        chosen = f"SELECT {self._columns_with(name, mark)} FROM source POSITIONAL JOIN marks"
        statement = f"COPY ({chosen}) TO {_sql.literal(str(part))} ({self._written})"
        self.relation.create_view("source")
        self.run(statement)
        return None

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return int(self.counted("count(*)")[0])

    def repeats(self, name: str) -> bool:
        """True where a column has several values, and some of them more than once."""
        column = self.expression(name)
        known, distinct = self.counted(f"count({column}), count(DISTINCT {column})")
        return bool(1 < distinct < known)

    def counted(self, what: str) -> tuple[Any, ...]:
        """Return aggregates over the rows."""
        return tuple(self.fetch(lambda: self.relation.aggregate(what).fetchall()[0]))

    def sha256(self) -> str | None:
        """Return the SHA-256 of the files in hexadecimal, one after the other; None for a frame."""
        return None if self._snapshot is None else self._snapshot.sha256()

    def expression(self, name: str) -> str:
        """Return what to select to get a column as numbers, booleans or text."""
        return self._expressions[name]

    def is_text(self, name: str) -> bool:
        """True where that is text, whatever the text may spell."""
        return self.text_alone or name in self._text_columns


def _kind(type_name: str) -> str:
    if type_name == "BOOLEAN":
        return "boolean"
    if _WHOLE.match(type_name) or type_name.endswith(("HUGEINT", ",0)")):
        return "whole"
    if type_name in ("FLOAT", "DOUBLE") or _EXACT_NUMBER.match(type_name):
        return "number"
    if _LIST.search(type_name):
        return "list"
    return "other" if _NESTED.search(type_name) else "text"


def _expression(quoted: str, type_name: str) -> str:
    """Return what to select to get a column as numbers, booleans or text."""
    kind = _kind(type_name)
    if type_name == "JSON":
        return f"({quoted} ->> '$')"
    if kind == "list":
        return f"CAST(to_json({quoted}) AS VARCHAR)"
    if type_name == "FLOAT":
        return f"CAST({quoted} AS DOUBLE)"
    return f"CAST({quoted} AS VARCHAR)" if kind == "text" or _EXACT_NUMBER.match(type_name) else quoted


def plain_array(found: Any) -> NDArray[Any]:
    """Return a column without mask: NaN for a null number where that is exact, None for any other null."""
    if isinstance(found, np.ma.MaskedArray):
        mask = np.ma.getmaskarray(found)
        if not mask.any():
            return found.data
        objects = found.data.astype(object)
        objects[mask] = None
        return labels.exact(objects) if found.dtype.kind in "iuf" else objects
    return np.asarray(found)
