"""Run files that were written from items: what their form has no place for, taken back.

See `abstain._export` for what stands under ``abstain`` in the experiment's provenance.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from abstain._export import OUTCOMES, decode_rows
from abstain._item_columns import signals_from_rows
from abstain.errors import FormatError
from abstain.items import Items

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

__all__ = ["exported_items"]

_MAPS = ("ground_truth_items", "predicted_items", "item_signals", "outcomes")


def exported_items(records: Sequence[Mapping[str, Any]], said: Mapping[str, Any], path: object) -> Items:
    """Return the items of a run file that `Items.to_run_file` wrote."""
    rows = [row for record in records for row in _record_rows(record, path)]
    try:
        return _items(rows, said)
    except (KeyError, IndexError, TypeError, ValueError) as problem:
        raise FormatError(
            f"{path}: what stands under provenance.abstain does not fit the records ({type(problem).__name__})"
        ) from None


def _record_rows(record: Mapping[str, Any], path: object) -> list[tuple[Any, str, Any, Any, Any, Any]]:
    cluster = record["participant_id"]
    maps = [record.get(key) for key in _MAPS]
    for key, found in zip(_MAPS, maps, strict=True):
        if not isinstance(found, dict) or found.keys() != record["ground_truth_items"].keys():
            raise FormatError(f"{path}: participant {cluster} has no {key} for each of its items")
    truths, predictions, signals, outcomes = maps
    return [
        (cluster, name, truths[name], predictions[name], signals[name], outcomes[name])  # type: ignore[index]
        for name in truths  # type: ignore[union-attr]
    ]


def _items(rows: Sequence[tuple[Any, str, Any, Any, Any, Any]], said: Mapping[str, Any]) -> Items:
    labels, kept = said.get("labels"), list(said.get("metadata") or ())
    numbers = [{key: value for key, value in row[4].items() if key not in kept} for row in rows]
    names = [row[1] for row in rows]
    scale = said.get("scale")
    items = Items(
        truth=_scores([row[2] for row in rows], labels),
        prediction=_scores([row[3] for row in rows], labels),
        outcome=np.array([OUTCOMES.index(row[5]) for row in rows], dtype=np.uint8),
        cluster=np.array([row[0] for row in rows]),
        item=np.array([int(name) for name in names])
        if said.get("whole_items")
        else np.array(names, dtype=np.str_),
        signals=signals_from_rows(numbers),
        metadata={key: _column([row[4].get(key) for row in rows]) for key in kept},
        scale=None if scale is None else (float(scale[0]), float(scale[1])),
        cluster_noun=str(said.get("cluster_noun") or "cluster"),
        provenance={"exported": True},
        weight=_floats(said.get("weight")),
        intervals=_floats(said.get("intervals")),
        sets=None if said.get("sets") is None else np.array(said["sets"], dtype=np.bool_),
        classes=tuple(said.get("classes") or ()),
    )
    order = said.get("rows")
    return items if order is None else items.take(decode_rows(order))


def _scores(values: Sequence[Any], labels: Sequence[str] | None) -> NDArray[Any]:
    if labels is None:
        return np.array([math.nan if value is None else float(value) for value in values])
    return _column([None if value is None else labels[int(value)] for value in values])


def _floats(values: Sequence[Any] | None) -> NDArray[np.float64] | None:
    return None if values is None else np.array(values, dtype=np.float64)


def _column(values: Sequence[Any]) -> NDArray[Any]:
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column
