"""Shrink a case that shows a defect by removing parts of it.

Hypothesis shrinks the random choices of a case. It cannot remove parts that every choice produces: files that no
command reads, commands that agree, and irrelevant rows, columns and fields. This module removes them.
"""

from __future__ import annotations

import copy
import io
import json
from dataclasses import replace
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from fuzz._tables import WRITERS, Columns, Table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from fuzz._case import Case

__all__ = ["shrink_case"]

# Options that are not removed: results are compared by them, or they keep a case fast.
_KEPT = ("--json", "--bootstrap-resamples", "--engine")


def shrink_case(case: Case, shows_defect: Callable[[Case], bool]) -> Case:
    """Return a smaller case from which no part can be removed without losing the defect."""
    while True:
        smaller = next((candidate for candidate in _candidates(case) if shows_defect(candidate)), None)
        if smaller is None:
            return case
        case = smaller


def _candidates(case: Case) -> Iterator[Case]:
    """Yield the case without one of its parts, large parts first."""
    yield from _fewer_commands(case)
    for name in case.files:
        yield replace(case, files={other: content for other, content in case.files.items() if other != name})
    yield from _fewer_arguments(case)
    if case.alike and len(case.files) > len({PurePath(name).stem for name in case.files}):
        yield from (replace(case, files=files) for files in _shrink_formats(case.files))
        return
    for name, content in case.files.items():
        for smaller in _shrink_content(content):
            if len(smaller) < len(content):
                yield replace(case, files={**case.files, name: smaller})


def _shrink_formats(files: Mapping[str, bytes]) -> Iterator[dict[str, bytes]]:
    """Yield the files of one table in several formats, without one column or row in all of them."""
    columns = next(
        (_columns(name, content) for name, content in files.items() if not name.endswith("sv")), {}
    )
    rows = range(max(map(len, columns.values()), default=0))
    smaller = [{name: columns[name] for name in columns if name != left_out} for left_out in columns]
    smaller += [
        {name: [*values[:row], *values[row + 1 :]] for name, values in columns.items()}
        for row in rows
        if len(rows) > 1
    ]
    for candidate in smaller if len(columns) > 1 else ():
        yield {name: WRITERS[PurePath(name).suffix[1:]](Table(candidate, {})) for name in files}


def _columns(name: str, content: bytes) -> Columns:
    """Return the columns of a Parquet or JSON file that the harness wrote."""
    if name.endswith("parquet"):
        columns: Columns = pq.read_table(io.BytesIO(content)).to_pydict()
        return columns
    text = content.decode()
    records = json.loads(text) if name.endswith("json") else [json.loads(line) for line in text.splitlines()]
    return {key: [record[key] for record in records] for key in records[0]}


def _fewer_commands(case: Case) -> Iterator[Case]:
    if len(case.commands) > 1 + case.alike:
        for index in range(len(case.commands)):
            yield replace(case, commands=case.commands[:index] + case.commands[index + 1 :])


def _fewer_arguments(case: Case) -> Iterator[Case]:
    """Yield the case without one option, with or without the value after it, in every command that has it."""
    options = [part for command in case.commands for part in command[2:] if part.startswith("-")]
    for option in dict.fromkeys(option for option in options if option not in _KEPT):
        for length in (2, 1):
            commands = tuple(_without(command, option, length) for command in case.commands)
            if commands != case.commands:
                yield replace(case, commands=commands)


def _without(command: tuple[str, ...], option: str, length: int) -> tuple[str, ...]:
    index = command.index(option) if option in command else len(command)
    return command[:index] + command[index + length :]


def _shrink_content(content: bytes) -> Iterator[bytes]:
    """Yield the content of a text or Parquet file without some of its lines, columns or fields."""
    if content.startswith(b"PAR1"):
        yield from _shrink_parquet(content)
        return
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return
    document = _parse_document(text)
    if document is not None:
        yield from (json.dumps(smaller).encode() for smaller in _shrink_document(document))
        return
    lines = text.splitlines(keepends=True)
    if len(lines) > 8:
        yield "".join(lines[: len(lines) // 2]).encode()
    for index in range(len(lines)):
        yield "".join(lines[:index] + lines[index + 1 :]).encode()
    if text[:1] not in "{[":
        for index in range(lines[0].count(",") + 1 if lines else 0):
            yield "\n".join(_without_cell(line, index) for line in text.split("\n")).encode()


def _shrink_parquet(content: bytes) -> Iterator[bytes]:
    """Yield the table without one of its columns or rows."""
    try:
        table = pq.read_table(io.BytesIO(content))
    except (pa.ArrowException, OSError):
        return
    rows = range(table.num_rows)
    smaller = [table.drop_columns([name]) for name in table.column_names if table.num_columns > 1]
    smaller += [
        pa.concat_tables([table.slice(0, row), table.slice(row + 1)]) for row in rows if len(rows) > 1
    ]
    for candidate in smaller:
        stored = io.BytesIO()
        pq.write_table(candidate, stored)
        yield stored.getvalue()


def _without_cell(line: str, index: int) -> str:
    cells = line.split(",")
    return ",".join(cells[:index] + cells[index + 1 :])


def _parse_document(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _shrink_document(document: Any) -> Iterator[Any]:
    """Yield the document without one of its fields or elements, the outermost first."""
    paths = sorted(_paths(document), key=len)
    for path in paths:
        smaller = copy.deepcopy(document)
        parent = smaller
        for key in path[:-1]:
            parent = parent[key]
        del parent[path[-1]]
        yield smaller


def _paths(node: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    keys = list(node) if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ()
    for key in keys:
        yield (*path, key)
        yield from _paths(node[key], (*path, key))
