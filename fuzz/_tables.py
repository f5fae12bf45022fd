"""Tables with valid or hostile values, written as CSV, TSV, JSONL, JSON and Parquet."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import strategies as st

from fuzz._values import SECRET, labels, names, texts

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["WRITERS", "Table", "hostile_tables", "sound_tables"]

Columns = dict[str, list[Any]]
_INT64 = range(-(2**63), 2**63)


@dataclass(frozen=True, slots=True)
class Table:
    """Columns, and the options of `abstain.read` that they require, by name."""

    columns: Columns
    options: Mapping[str, str]

    @property
    def flags(self) -> list[str]:
        """The options as arguments of the command line."""
        return [
            part for name, value in self.options.items() for part in (f"--{name.replace('_', '-')}", value)
        ]

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The rows."""
        return [dict(zip(self.columns, row, strict=True)) for row in zip(*self.columns.values(), strict=True)]


def _delimited(columns: Columns, delimiter: str) -> bytes:
    text = io.StringIO(newline="")
    writer = csv.writer(text, delimiter=delimiter, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    return text.getvalue().encode("utf-8", "surrogatepass")


def as_csv(table: Table) -> bytes:
    """Return a table as CSV."""
    return _delimited(table.columns, ",")


def as_tsv(table: Table) -> bytes:
    """Return a table as TSV."""
    return _delimited(table.columns, "\t")


def as_jsonl(table: Table) -> bytes:
    """Return a table as one JSON object per line."""
    return "".join(f"{json.dumps(row)}\n" for row in table.rows).encode()


def as_json(table: Table) -> bytes:
    """Return a table as a JSON list of objects."""
    return json.dumps(table.rows).encode()


def as_parquet(table: Table) -> bytes:
    """Return a table as Parquet; integers beyond 64 bits become decimals, and mixed types become text."""
    stored = io.BytesIO()
    pq.write_table(pa.table({name: _arrow(values) for name, values in table.columns.items()}), stored)
    return stored.getvalue()


def _arrow(values: list[Any]) -> Any:
    integers = [value for value in values if isinstance(value, int) and not isinstance(value, bool)]
    try:
        if any(value not in _INT64 for value in integers):
            return pa.array(values, pa.decimal128(38, 0))
        return pa.array(values)
    except (pa.ArrowException, OverflowError, TypeError, ValueError, UnicodeError):
        return pa.array([None if value is None else ascii(value) for value in values])


WRITERS: Mapping[str, Callable[[Table], bytes]] = {
    "csv": as_csv,
    "jsonl": as_jsonl,
    "parquet": as_parquet,
    "json": as_json,
    "tsv": as_tsv,
}

# ------------------------------------------------------------------------------------------------------ sound tables

_KINDS: Mapping[str, tuple[st.SearchStrategy[Any], Mapping[str, str]]] = {
    "whole": (st.integers(0, 3), {}),
    "words": (st.sampled_from(("benign", "malign", "unclear")), {}),
    "flags": (st.booleans(), {}),
    "codes": (st.sampled_from(("01", "02", "10")), {}),
    "dates": (st.sampled_from(("2026-01-02", "2026-01-03", "none")), {}),
    "large": (st.sampled_from((2**53, 2**53 + 1, 2**53 + 2)), {}),
    "scores": (st.integers(0, 3), {"scale": "0,3"}),
    "real": (st.sampled_from((0.25, 1.5, 2.0, 3.75)), {"loss": "abs"}),
}
_CLUSTERS: Mapping[str, Callable[[int], Any]] = {
    "small": lambda number: number,
    "text": lambda number: f"p{number}",
    "codes": lambda number: f"00{number}",
    "beyond 2**53": lambda number: 2**53 + number,
    "beyond 2**63": lambda number: 2**64 + number,
    "30 digits": lambda number: 10**29 + number,
}


@st.composite
def sound_tables(draw: st.DrawFn, *, least: int = 1) -> Table:
    """Draw a valid table: truth, prediction and other columns with their usual names."""
    kind = draw(st.sampled_from(sorted(_KINDS)))
    cells, options = _KINDS[kind]
    count = draw(st.integers(least, 10))

    def column(of: st.SearchStrategy[Any]) -> list[Any]:
        return draw(st.lists(of, min_size=count, max_size=count))

    columns: Columns = {"truth": column(cells), "prediction": column(cells)}
    if draw(st.booleans()):
        columns["confidence"] = column(st.sampled_from((0.1, 0.25, 0.5, 0.75, 0.9, 1.0)))
    if draw(st.booleans()):
        columns["abstained"] = column(st.booleans())
        if draw(st.booleans()):
            pairs = zip(columns["prediction"], columns["abstained"], strict=True)
            columns["prediction"] = [None if declined else value for value, declined in pairs]
    if draw(st.booleans()):
        make_name = _CLUSTERS[draw(st.sampled_from(sorted(_CLUSTERS)))]
        columns["patient_id"] = [make_name(number) for number in column(st.integers(1, 4))]
    if draw(st.booleans()):
        columns["item"] = [f"q{row}" for row in range(count)]
    if draw(st.booleans()):
        columns["site"] = column(st.sampled_from(("north", "south")))
    if draw(st.booleans()):
        columns["note"] = [SECRET + text for text in column(st.sampled_from(("", " a note", ", again", "é")))]
    return Table(columns, options)


# ---------------------------------------------------------------------------------------------------- hostile tables


@st.composite
def hostile_tables(draw: st.DrawFn) -> Table:
    """Draw a valid table with some hostile changes."""
    table = draw(sound_tables())
    columns = {name: list(values) for name, values in table.columns.items()}
    for change in draw(st.lists(st.sampled_from(_CHANGES), max_size=3)):
        columns = change(draw, columns)
    return Table(columns, table.options)


def _first_column(columns: Columns) -> list[Any]:
    return next(iter(columns.values()))


def _hostile_cell(draw: st.DrawFn, columns: Columns) -> Columns:
    name = draw(st.sampled_from(sorted(columns)))
    row = draw(st.integers(0, len(columns[name]) - 1))
    named = ("patient_id", "item")
    columns[name][row] = draw(labels() if name in named else st.one_of(labels(), texts(), _odd_numbers()))
    return columns


def _hostile_column(draw: st.DrawFn, columns: Columns) -> Columns:
    name = draw(
        st.sampled_from(
            ("abstained", "failed", "confidence", "correct", "outcome", "weight", "grade", "note")
        )
    )
    count = len(_first_column(columns))
    columns[name] = draw(st.lists(st.one_of(labels(), _odd_numbers()), min_size=count, max_size=count))
    return columns


def _flags_of_another_kind(draw: st.DrawFn, columns: Columns) -> Columns:
    spelled = draw(st.sampled_from((("Y", "N"), ("yes", "no"), (1.0, 0.0), (1, 0), ("T", "F"), ("true", ""))))
    name = draw(st.sampled_from(("abstained", "failed")))
    columns[name] = [spelled[draw(st.integers(0, 1))] for _ in _first_column(columns)]
    return columns


def _odd_numbers() -> st.SearchStrategy[Any]:
    return st.sampled_from(
        (None, True, -1, 2, 1e308, 50.0, float("nan"), float("inf"), 2**63, 10**29, 10**400, 1e-320)
    )


def _renamed(draw: st.DrawFn, columns: Columns) -> Columns:
    old, new = draw(st.sampled_from(sorted(columns))), draw(names())
    return {new if name == old else name: values for name, values in columns.items()}


def _another_case(draw: st.DrawFn, columns: Columns) -> Columns:
    name = draw(st.sampled_from(sorted(columns)))
    return {**columns, name.swapcase(): columns[name]}


def _wide(draw: st.DrawFn, columns: Columns) -> Columns:
    # With 300 columns, some readers do not infer types.
    count = draw(st.sampled_from((5, 30, 300)))
    return {**columns, **{f"extra{number}": _first_column(columns) for number in range(count)}}


def _long_text(draw: st.DrawFn, columns: Columns) -> Columns:
    name = draw(st.sampled_from(("patient_id", "note", "item")))
    long = "free text " * draw(st.sampled_from((30, 3000))) + SECRET
    values = columns.get(name, list(range(len(_first_column(columns)))))
    return {**columns, name: [long, *values[1:]]}


_CHANGES = (
    *(_hostile_cell, _hostile_cell, _hostile_column, _flags_of_another_kind),
    *(_renamed, _another_case, _wide, _long_text),
)
