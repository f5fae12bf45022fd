"""Tables of predictions: named columns of a CSV, Parquet or JSONL file, through DuckDB, as checked arrays.

A column is asked for as numbers, as labels or as lists of labels, and every value of it must be one: a missing
column, a missing value and text where a number is needed are errors that name the file, the column and the row
(counted from 0, without the header). Names from a file are only ever quoted identifiers. What the columns mean is
known to the callers.
"""

from __future__ import annotations

import glob
import hashlib
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from abstain import _validate
from abstain.errors import ArgumentError, DataError, FormatError

if TYPE_CHECKING:
    import os

    import duckdb
    from numpy.typing import NDArray

__all__ = ["PredictionTable"]

_READERS = {
    ".csv": "read_csv({}, header=true, all_varchar=true, sample_size=-1)",
    ".tsv": "read_csv({}, header=true, all_varchar=true, sample_size=-1, delim='\t')",
    ".parquet": "read_parquet({})",
    ".pq": "read_parquet({})",
    ".jsonl": "read_json({}, format='newline_delimited', sample_size=-1)",
    ".ndjson": "read_json({}, format='newline_delimited', sample_size=-1)",
}
_NUMBERS = re.compile(r"(U?(TINYINT|SMALLINT|INTEGER|BIGINT|HUGEINT)|FLOAT|DOUBLE|BOOLEAN|DECIMAL\(.*\))")
_WHOLE = re.compile(r"-?[1-9][0-9]{0,17}|0")
_LIST_SEPARATOR = "|"
_FLAGS = {"true": 1.0, "1": 1.0, "1.0": 1.0, "false": 0.0, "0": 0.0, "0.0": 0.0}


@dataclass(frozen=True, eq=False, slots=True)
class PredictionTable:
    """A file that was found to be a table; columns are read when they are asked for.

    Attributes:
        path: the file.
        types: the type of each column, in the words of DuckDB.
        rows: how many rows it has.
    """

    path: Path
    types: dict[str, str]
    rows: int
    _connection: duckdb.DuckDBPyConnection
    _source: str

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> PredictionTable:
        """Open a file by its ending; an empty table is an error."""
        import duckdb  # noqa: PLC0415

        place = Path(path)
        if place.is_dir():
            raise ArgumentError(f"{place}: is a directory; name the file")
        if not place.is_file():
            raise ArgumentError(f"{place}: no such file")
        if place.suffix.lower() not in _READERS:
            raise ArgumentError(
                f"{place}: cannot tell its format; the name must end in {', '.join(_READERS)}"
            )
        # No extension is ever fetched, and DuckDB takes paths for patterns unless they are escaped.
        connection = duckdb.connect(config={"autoinstall_known_extensions": "false"})
        name = "'" + glob.escape(str(place)).replace("'", "''") + "'"
        source = _READERS[place.suffix.lower()].format(name)
        try:
            described = connection.execute(f"DESCRIBE SELECT * FROM {source}").fetchall()
            count = connection.execute(f"SELECT count(*) FROM {source}").fetchone()
        except duckdb.Error as problem:
            # The words of DuckDB may quote the data, so that only the kind of problem is passed on.
            raise FormatError(f"{place}: cannot be read as a table ({type(problem).__name__})") from None
        rows = int(count[0]) if count else 0
        if not rows:
            raise DataError(f"{place}: the table has no rows")
        return cls(place, {row[0]: row[1] for row in described}, rows, connection, source)

    def numbers(self, name: str) -> NDArray[np.float64]:
        """Return a column of numbers; infinities are numbers, nothing may be missing."""
        kind = self._kind(name)
        if _NUMBERS.fullmatch(kind):
            expression = f"CAST({_quoted(name)} AS DOUBLE)"
        elif kind in {"VARCHAR", "JSON"}:
            expression = f"TRY_CAST(trim({self._text(name)}) AS DOUBLE)"
        else:
            raise DataError(f"{self.path}: column {name!r} must hold numbers, and its type is {kind}")
        values, missing = self._fetch(expression, self._missing(name))
        self._complete(name, missing)
        wrong = np.ma.getmaskarray(values)
        if wrong.any():
            row, count = int(np.argmax(wrong)), int(wrong.sum())
            raise DataError(
                f"{self.path}: column {name!r} must hold numbers, got text at row {row} ({count} such rows)"
            )
        numbers = np.asarray(np.ma.getdata(values), dtype=np.float64)
        self._complete(name, np.isnan(numbers), "is nan")
        return numbers

    def flags(self, name: str) -> NDArray[np.bool_]:
        """Return a column of booleans: true and false, or 1 and 0."""
        if self._kind(name) == "VARCHAR":
            values, missing = self._fetch(f"lower(trim({self._text(name)}))", self._missing(name))
            self._complete(name, missing)
            numbers = np.array([_FLAGS.get(str(value), np.nan) for value in np.ma.getdata(values)])
        else:
            numbers = self.numbers(name)
        wrong = ~np.isin(numbers, (0.0, 1.0))
        if wrong.any():
            row = int(np.argmax(wrong))
            raise DataError(
                f"{self.path}: column {name!r} must hold true and false, or 1 and 0; row {row} has neither"
            )
        return numbers == 1.0

    def labels(self, name: str) -> NDArray[Any]:
        """Return a column of labels: whole numbers where all of them are, else text."""
        kind = self._kind(name)
        if kind.endswith("]") or kind.startswith(("STRUCT", "MAP", "UNION")):
            raise DataError(f"{self.path}: column {name!r} must hold single labels, and its type is {kind}")
        values, missing = self._fetch(self._text(name), self._missing(name))
        self._complete(name, missing)
        texts = [str(value) for value in np.ma.getdata(values)]
        # A number written with leading zeros is a name, and so is every other label beside it.
        whole = all(_WHOLE.fullmatch(text) for text in texts)
        return np.array([int(text) for text in texts] if whole else texts)

    def lists(self, name: str) -> list[list[str]]:
        """Return a column of lists of labels: lists as such, JSON arrays, or text divided by ``|``."""
        kind = self._kind(name)
        text = f"CAST(to_json({_quoted(name)}) AS VARCHAR)" if kind.endswith("]") else self._text(name)
        values, missing = self._fetch(text, f"{_quoted(name)} IS NULL")
        if kind != "VARCHAR":  # in a table of text, an empty field is an empty list
            self._complete(name, missing)
        absent = np.ma.getmaskarray(values)
        return [
            [] if absent[row] else self._list(str(value), name, row)
            for row, value in enumerate(np.ma.getdata(values))
        ]

    def sha256(self) -> str:
        """Return the SHA-256 of the file in hexadecimal."""
        with self.path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    def _list(self, text: str, name: str, row: int) -> list[str]:
        if not text.lstrip().startswith("["):
            return [part.strip() for part in text.split(_LIST_SEPARATOR) if part.strip()]
        try:
            parts = json.loads(text)
        except ValueError:
            raise DataError(
                f"{self.path}: column {name!r} holds a list that is not JSON at row {row}"
            ) from None
        if any(isinstance(part, (list, dict)) or part is None for part in parts):
            raise DataError(
                f"{self.path}: column {name!r} must hold lists of labels, got a nested one at row {row}"
            )
        return [str(part) for part in parts]

    def _kind(self, name: str) -> str:
        if name not in self.types:
            hint = _validate.suggestion(name, self.types)
            listed = ", ".join(list(self.types)[:30]) + (" ..." if len(self.types) > 30 else "")
            raise ArgumentError(f"{self.path}: has no column {name!r}{hint}; columns: {listed}")
        return self.types[name]

    def _text(self, name: str) -> str:
        column = _quoted(name)
        return f"({column} ->> '$')" if self.types[name] == "JSON" else f"CAST({column} AS VARCHAR)"

    def _missing(self, name: str) -> str:
        return f"{self._text(name)} IS NULL OR trim({self._text(name)}) = ''"

    def _fetch(self, *expressions: str) -> list[Any]:
        import duckdb  # noqa: PLC0415

        parts = ", ".join(f"{expression} AS c{place}" for place, expression in enumerate(expressions))
        try:
            found = self._connection.execute(f"SELECT {parts} FROM {self._source}").fetchnumpy()
        except duckdb.Error as problem:
            raise FormatError(f"{self.path}: cannot be read as a table ({type(problem).__name__})") from None
        return [found[f"c{place}"] for place in range(len(expressions))]

    def _complete(self, name: str, missing: NDArray[Any], what: str = "is empty") -> None:
        gaps = np.asarray(np.ma.filled(missing, True), dtype=np.bool_)
        if gaps.any():
            raise DataError(
                f"{self.path}: column {name!r} {what} at row {int(np.argmax(gaps))} ({int(gaps.sum())} such rows); "
                "every row needs a value"
            )


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
