"""Several items as one: rows after one another, columns by name."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from abstain.errors import DataError
from abstain.items import Items, Signal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = ["concatenate"]


def concatenate(parts: Sequence[Items]) -> Items:
    """Return the rows of all parts; where the parts are different tasks, their names keep ids apart."""
    tasks = [part.provenance.get("task") for part in parts]
    if len(set(tasks)) > 1 and all(tasks):
        parts = [_prefixed(part, f"{task}/") for part, task in zip(parts, tasks, strict=True)]
    first = parts[0]
    numeric = {part.truth.dtype.kind == "f" for part in parts}
    if len(numeric) > 1 or len({part.scale for part in parts}) > 1:
        raise DataError(
            "the files are not scored alike (labels in one, grades or another scale in the other)"
        )
    joined = Items(
        truth=np.concatenate([part.truth for part in parts]),
        prediction=np.concatenate([part.prediction for part in parts]),
        outcome=np.concatenate([part.outcome for part in parts]),
        cluster=_ids([part.cluster for part in parts]),
        item=_ids([part.item for part in parts]),
        signals={name: _signal(parts, name) for name in _names(part.signals for part in parts)},
        metadata={name: _metadata(parts, name) for name in _names(part.metadata for part in parts)},
        scale=first.scale,
        cluster_noun=first.cluster_noun,
        provenance=first.provenance,
        unnamed=tuple(dict.fromkeys(role for part in parts for role in part.unnamed)),
    )
    _check_unique(joined)
    paths = ", ".join(str(part.provenance.get("path")) for part in parts)
    return joined.with_provenance(path=paths, sha256=None)


def _prefixed(part: Items, prefix: str) -> Items:
    return replace(
        part,
        cluster=np.array([f"{prefix}{value}" for value in part.cluster]),
        item=np.array([f"{prefix}{value}" for value in part.item]),
    )


def _names(columns: Any) -> list[str]:
    return list(dict.fromkeys(name for part in columns for name in part))


def _ids(arrays: Sequence[NDArray[Any]]) -> NDArray[Any]:
    if all(array.dtype.kind in "iu" for array in arrays):
        return np.concatenate(arrays)
    return np.concatenate([array.astype(np.str_) for array in arrays])


def _signal(parts: Sequence[Items], name: str) -> Signal:
    missing = [Signal(np.full(len(part), np.nan), np.ones(len(part), np.bool_)) for part in parts]
    found = [part.signals.get(name, gap) for part, gap in zip(parts, missing, strict=True)]
    return Signal(
        np.concatenate([signal.values for signal in found]),
        np.concatenate([signal.absent for signal in found]),
    )


def _metadata(parts: Sequence[Items], name: str) -> NDArray[Any]:
    columns = [part.metadata.get(name, np.full(len(part), None, dtype=object)) for part in parts]
    return np.concatenate(columns)


def _check_unique(items: Items) -> None:
    seen: set[tuple[Any, Any]] = set()
    for row, pair in enumerate(zip(items.cluster.tolist(), items.item.tolist(), strict=True)):
        if pair in seen:
            raise DataError(
                f"{items.cluster_noun} {pair[0]}, item {pair[1]} stands in more than one file (again at row {row}); "
                "read the files one by one, or compare them"
            )
        seen.add(pair)
