"""Export of items as a data frame, a Parquet file or a run file, each of which can be read back.

The table has the columns ``truth``, ``prediction``, ``outcome``, ``cluster`` and ``item``, then every signal and all
metadata under their names. If a signal is absent for some items, which is not the same as null, a boolean column
``<signal>.absent`` marks them. Metadata that a reader would take for something else (numbers, or a name that a role
has) are called ``metadata.<name>``. Lists and objects become JSON text in a column ``<name>.json``. Weights, bounds and
sets are never inferred from usual names, so their columns are called ``abstain.weight``, ``abstain.low``,
``abstain.high`` and ``abstain.set`` (a JSON array of labels).

A run file has one record per cluster, with a map from item to score. All other information is stored under ``abstain``
in the experiment's provenance, which other readers ignore: labels (scores are their numbers), items that not every
cluster has, outcomes of single items, the order of rows, weights, intervals and sets.
"""

from __future__ import annotations

import json
import math
import tempfile
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from abstain import _outputs, _sql, _validate
from abstain.errors import ArgumentError, DataError
from abstain.items import Items, Outcome, are_numbers, signals_of_row
from abstain.labels import is_missing

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

ABSENT_SUFFIX = ".absent"
METADATA_PREFIX = "metadata."
JSON_SUFFIX = ".json"
OUTCOMES = tuple(outcome.name.lower() for outcome in Outcome)
PARQUET_KEY = "abstain"
EXPORTED_NAMES = {role: f"abstain.{role}" for role in ("weight", "low", "high", "set")}
_ROLES = ("truth", "prediction", "outcome", "cluster", "item")
_BACKENDS = ("pandas", "polars", "pyarrow")


def to_frame(items: Items, backend: str | None) -> Any:
    """Return items as a data frame; see `abstain.Items.to_frame`."""
    return frame_of({name: _frame_column(column) for name, column in _columns(items).items()}, backend)


def frame_of(columns: Mapping[str, Any], backend: str | None = None) -> Any:
    """Return columns as a data frame of a library. Default: the first library that is installed."""
    import narwhals as nw  # noqa: PLC0415

    chosen = _installed() if backend is None else _validate.choice(backend, "backend", _BACKENDS)
    try:
        return nw.from_dict(columns, backend=chosen).to_native()  # type: ignore[arg-type]
    except ImportError:
        raise ArgumentError(
            f"the backend {chosen} is not installed; choose another: {', '.join(_BACKENDS)}"
        ) from None


def columns_frame(record: Any, backend: str | None = None) -> Any:
    """Return the arrays of a dataclass as the columns of a data frame, with NaN as null."""
    columns = {field.name: getattr(record, field.name) for field in fields(record)}
    return frame_of(
        {name: nullable(column) for name, column in columns.items() if isinstance(column, np.ndarray)},
        backend,
    )


def nullable(column: NDArray[Any]) -> list[Any]:
    """Return a column as a list, with None for NaN."""
    return [None if is_missing(value) else value for value in column.tolist()]


def to_parquet(items: Items, path: str | os.PathLike[str]) -> Path:
    """Write items as a Parquet file; see `abstain.Items.to_parquet`."""
    output = _outputs.check_output(path)
    columns = list(_columns(items).items())
    for name, column in columns:
        _check_text([name, *(column.tolist() if column.dtype.kind == "O" else ())], name)
    # Arrays have numbered names, so a name from the data is only ever a quoted identifier of a statement.
    arrays = {f"c{number}": column for number, (_, column) in enumerate(columns)}
    chosen = ", ".join(
        f"{_text_cast(f'c{number}', column)} AS {_sql.identifier(name)}"
        for number, (name, column) in enumerate(columns)
    )
    declared = {"scale": items.scale, "cluster_noun": items.cluster_noun, "classes": items.classes}
    note = _sql.literal(json.dumps(declared))
    with tempfile.TemporaryDirectory() as folder:
        part = Path(folder) / "part"
        with _sql.connect() as connection:
            connection.register("arrays", arrays)
            connection.execute(
                f"COPY (SELECT {chosen} FROM arrays) TO {_sql.literal(str(part))} "
                f"(FORMAT parquet, KV_METADATA {{{PARQUET_KEY}: {note}}})"
            )
        return _outputs.write_whole(output, part.read_bytes())


def to_run_file(items: Items, path: str | os.PathLike[str], *, mode: str) -> Path:
    """Write items as a run file; see `abstain.Items.to_run_file`."""
    output = _outputs.check_output(path)
    provenance = items.provenance
    metadata = {"run_id": provenance.get("run_id"), "git_commit": provenance.get("git_commit")}
    return _outputs.write_whole(output, run_file(metadata, [experiment_of(items, mode=mode)]))


def experiment_of(items: Items, *, mode: str) -> dict[str, Any]:
    """Return items as one experiment of a run file."""
    labels = _label_codes(items)
    records, order = _records(items, labels)
    low, high = _scale(items, labels)
    extension = {
        "cluster_noun": items.cluster_noun,
        "scale": items.scale,
        "labels": None if labels is None else list(labels),
        "whole_items": are_numbers(items.item),
        "metadata": [name for name in items.metadata if name not in items.signals],
        "rows": None if order == sorted(order) else order,
        **_optional_values(items, order),
    }
    return {
        "provenance": {"mode": mode, "scale": [low, high], "abstain": extension},
        "results": {"mode": mode, "total_subjects": len(records), "results": records},
    }


def run_file(metadata: Mapping[str, Any], experiments: Sequence[Mapping[str, Any]]) -> bytes:
    """Return the content of a run file. A lone surrogate is an error, because a file cannot contain it."""
    run = {"run_metadata": metadata, "experiments": experiments}
    text = json.dumps(run, allow_nan=False, ensure_ascii=False)
    _check_text([text], "a label, a name or metadata")
    return text.encode() + b"\n"


def _check_text(values: Iterable[Any], subject: str) -> None:
    """Raise if text has a lone surrogate, which a Python string can contain but a file cannot."""
    try:
        for value in values:
            if isinstance(value, str):
                value.encode()
    except UnicodeEncodeError:
        raise DataError(
            f"{subject} contains half of a character (a lone surrogate), which cannot be written to a file; remove it"
        ) from None


def _columns(items: Items) -> dict[str, NDArray[Any]]:
    columns: dict[str, NDArray[Any]] = {
        "truth": items.truth,
        "prediction": items.prediction,
        "outcome": np.array(OUTCOMES, dtype=object)[items.outcome],
        "cluster": _name_column(items.cluster),
        "item": _name_column(items.item),
        **_optional_columns(items),
    }
    for name, signal in items.signals.items():
        if name in (*_ROLES, *EXPORTED_NAMES.values()):
            raise DataError(
                f"the signal {name!r} has the name of a column that every export has; rename the signal"
            )
        columns[name] = signal.values
        if signal.absent.any():
            columns[name + ABSENT_SUFFIX] = signal.absent
    for name, column in items.metadata.items():
        plain, nested = _single_type(column)
        hidden = plain.dtype.kind in "iuf" or name in columns
        columns[f"{METADATA_PREFIX if hidden else ''}{name}{JSON_SUFFIX if nested else ''}"] = plain
    return columns


def _name_column(names: NDArray[Any]) -> NDArray[Any]:
    # A name may be a whole number that is too large for a column of integers.
    return names if names.dtype.kind != "O" else _validate.objects([str(name) for name in names.tolist()])


def _optional_columns(items: Items) -> dict[str, NDArray[Any]]:
    """Return the weights, bounds and sets that the items have, by the names of their columns."""
    columns: dict[str, NDArray[Any]] = {}
    if items.weight is not None:
        columns["weight"] = items.weight
    if items.intervals is not None:
        columns["low"], columns["high"] = items.intervals.T
    if items.sets is not None:
        classes = np.array(items.classes, dtype=object)
        columns["set"] = _validate.objects([json.dumps(classes[row].tolist()) for row in items.sets])
    return {EXPORTED_NAMES[role]: column for role, column in columns.items()}


def _optional_values(items: Items, order: Sequence[int]) -> dict[str, Any]:
    """Return the weights, bounds and sets for a run file, in the order of its records."""
    columns: dict[str, Any] = {}
    if items.weight is not None:
        columns["weight"] = items.weight[order].tolist()
    if items.intervals is not None:
        infinite = np.isinf(items.intervals).any(axis=1)
        if infinite.any():
            row = int(np.argmax(infinite))
            raise DataError(f"the interval is infinite at row {row}; JSON cannot contain infinite numbers")
        columns["intervals"] = [
            [None if math.isnan(end) else end for end in pair] for pair in items.intervals[order].tolist()
        ]
    if items.sets is not None:
        columns["sets"], columns["classes"] = items.sets[order].astype(int).tolist(), list(items.classes)
    return columns


def _single_type(column: NDArray[Any]) -> tuple[NDArray[Any], bool]:
    """Return a column with values of one type (objects become numbers or text), and whether its text is JSON."""
    if column.dtype.kind != "O":
        return column, False
    values = [value for value in column.tolist() if value is not None]
    if values and all(isinstance(value, bool) for value in values):
        return (column if len(values) < len(column) else column.astype(np.bool_)), False
    if values and all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in values):
        is_whole = len(values) == len(column) and all(isinstance(value, int) for value in values)
        if not any(isinstance(value, int) and abs(value) >= 2**63 for value in values):
            return column.astype(np.int64 if is_whole else np.float64), False
    if all(isinstance(value, str) for value in values):
        return column, False
    texts = [None if value is None else json.dumps(value, default=str) for value in column.tolist()]
    return _validate.objects(texts), True


def _frame_column(column: NDArray[Any]) -> Any:
    # Text as a list: every backend makes its own kind of string column of that, and None a null.
    return column.tolist() if column.dtype.kind in "OU" else column


def _installed() -> str:
    from importlib.util import find_spec  # noqa: PLC0415

    for backend in _BACKENDS:
        if find_spec(backend) is not None:
            return backend
    raise ArgumentError(f"a data frame needs one of {', '.join(_BACKENDS)} to be installed")


def _text_cast(name: str, column: NDArray[Any]) -> str:
    if column.dtype.kind == "O" and any(isinstance(value, bool) for value in column.tolist()):
        return f"CAST({name} AS BOOLEAN)"
    return f"CAST({name} AS VARCHAR)" if column.dtype.kind in "OU" else name


def _label_codes(items: Items) -> dict[str, int] | None:
    """Return a number for every label, or None if the labels are numbers."""
    if items.truth.dtype.kind == "f" and items.prediction.dtype.kind == "f":
        return None
    labels = {
        str(value)
        for column in (items.truth, items.prediction)
        for value in column.tolist()
        if not is_missing(value)
    }
    return {label: code for code, label in enumerate(sorted(labels))}


def _scale(items: Items, labels: dict[str, int] | None) -> tuple[float, float]:
    if labels is not None:
        return 0.0, float(max(len(labels) - 1, 1))
    if items.scale is not None:
        return items.scale
    evaluated = np.concatenate([items.truth, items.prediction])
    finite = evaluated[np.isfinite(evaluated)]
    # A run file always has a scale. Other readers assume 0 to 3, so use that unless a score lies outside it.
    return float(min(finite.min(initial=0.0), 0.0)), float(max(finite.max(initial=3.0), 3.0))


def _records(items: Items, labels: dict[str, int] | None) -> tuple[list[dict[str, Any]], list[int]]:
    groups: dict[Any, list[int]] = {}
    for row, cluster in enumerate(items.cluster.tolist()):
        groups.setdefault(cluster, []).append(row)
    names = [str(name) for name in items.item.tolist()]
    records, order = [], []
    for cluster, rows in groups.items():
        if len({names[row] for row in rows}) < len(rows):
            raise DataError(
                f"{items.cluster_noun} {_validate.place_name(cluster)} has a duplicate item; "
                "a run file needs unique items"
            )
        order += rows
        records.append(
            {
                "participant_id": cluster,
                "success": any(items.outcome[row] != Outcome.FAILED for row in rows),
                "ground_truth_items": {names[row]: _score(items.truth[row], labels) for row in rows},
                "predicted_items": {
                    names[row]: _score(items.prediction[row], labels)
                    if items.outcome[row] == Outcome.ANSWERED
                    else None
                    for row in rows
                },
                "item_signals": {names[row]: _row_signals(items, row) for row in rows},
                "outcomes": {names[row]: OUTCOMES[items.outcome[row]] for row in rows},
            }
        )
    return records, order


def _row_signals(items: Items, row: int) -> dict[str, Any]:
    signals: dict[str, Any] = {**signals_of_row(items, row)}
    for name, number in signals.items():
        if number is not None and math.isinf(number):
            raise DataError(
                f"the signal {name} is {number} at row {row}; JSON cannot contain infinite numbers"
            )
    for name, column in items.metadata.items():
        value = column[row].item() if isinstance(column[row], np.generic) else column[row]
        signals.setdefault(name, None if isinstance(value, float) and not math.isfinite(value) else value)
    return signals


def _score(value: Any, labels: dict[str, int] | None) -> float | int | None:
    if is_missing(value):
        return None
    return float(value) if labels is None else labels[str(value)]
