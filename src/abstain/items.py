"""Items: the one frozen table that every metric reads.

An item is one decision that a model was asked for. It has exactly one outcome: answered, abstained, failed
(the run produced nothing) or unscored (there is no truth). N counts answered and abstained items, K the
answered ones, and coverage is K / N; failed and unscored items are kept, counted and reported, and enter no
metric. A cluster is the unit of independence: a participant, a patient, a document.

Files, confidences and metrics are known elsewhere: this module only holds columns that agree with one
another.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from abstain import _validate, labels
from abstain._item_columns import (
    Outcome,
    Signal,
    checked_intervals,
    checked_sets,
    checked_weight,
    frozen,
    identifiers,
    label_column,
    objects,
    outcomes,
    signal_column,
    signals_from_rows,
)
from abstain.errors import DataError

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from abstain._item_columns import Column, Mask

__all__ = ["CONFIDENCE_NAMES", "Items", "Outcome", "OutcomeCounts", "Signal"]

# How a column of confidences is usually called, most telling first; compared without regard to case.
CONFIDENCE_NAMES = ("confidence", "conf", "prob", "probability", "score", "certainty", "logprob", "msp")

_FURTHER = ("weight", "intervals", "sets")
_RECORD_KEYS = (
    "truth",
    "prediction",
    "abstained",
    "failed",
    "cluster",
    "item",
    "confidence",
    "signals",
    "metadata",
)


@dataclass(frozen=True, slots=True)
class OutcomeCounts:
    """How many items came to each outcome.

    >>> counts = OutcomeCounts(answered=6, abstained=2, failed=1, unscored=0)
    >>> counts.n, counts.coverage
    (8, 0.75)
    """

    answered: int
    abstained: int
    failed: int
    unscored: int

    @property
    def total(self) -> int:
        """All rows of the table, whatever their outcome."""
        return self.answered + self.abstained + self.failed + self.unscored

    @property
    def n(self) -> int:
        """The items that metrics judge: answered and abstained."""
        return self.answered + self.abstained

    @property
    def coverage(self) -> float:
        """K / N, which is also the largest coverage that can be reached; NaN when N is 0."""
        return self.answered / self.n if self.n else float("nan")


@dataclass(frozen=True, eq=False)
class Items:
    """A frozen columnar table of items; build one with `from_arrays`, `from_records` or `abstain.read`.

    Attributes:
        truth: what is right, float64 for numbers, else objects.
        prediction: what the model said; it means nothing where the item is not answered.
        outcome: one `Outcome` per row.
        cluster: the cluster's id per row.
        item: the item's name per row.
        signals: numeric columns by name, from which confidences are made.
        metadata: any other columns by name, for groups and for keeping.
        scale: the declared lowest and highest truth, or None.
        cluster_noun: what a cluster is called in messages, such as "participant".
        provenance: where the items came from: path, run_id, git_commit, mode, sha256.
        unnamed: which of "cluster" and "item" nobody named, so that row numbers stand in; nothing is matched by those.
        weight: how many rows each row stands for, None where every row is one.
        intervals: (rows, 2), the lower and the upper bound of a prediction, or None; NaN where nothing is answered.
        sets: (rows, classes), True where a class is in the predicted set, or None.
        classes: the names of the classes that the columns of `sets` stand for.

    >>> items = Items.from_arrays([1, 0, 1], [1, 1, None], abstained=[False, False, True], confidence=[0.9, 0.6, 0.1])
    >>> items
    Items(3 items in 3 clusters: 2 answered, 1 abstained, 0 failed, 0 unscored)
    >>> items.counts.coverage
    0.6666666666666666
    """

    truth: NDArray[Any]
    prediction: NDArray[Any]
    outcome: NDArray[np.uint8]
    cluster: NDArray[Any]
    item: NDArray[Any]
    signals: Mapping[str, Signal] = field(default_factory=dict)
    metadata: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    scale: tuple[float, float] | None = None
    cluster_noun: str = "cluster"
    provenance: Mapping[str, Any] = field(default_factory=dict)
    unnamed: tuple[str, ...] = ()
    weight: NDArray[np.float64] | None = None
    intervals: NDArray[np.float64] | None = None
    sets: Mask | None = None
    classes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        columns = {
            name: getattr(self, name) for name in ("truth", "prediction", "outcome", "cluster", "item")
        }
        columns |= {name: column for name in _FURTHER if (column := getattr(self, name)) is not None}
        length = len(self.truth)
        _validate.same_length(length, **columns)
        for name, signal in self.signals.items():
            _validate.same_length(length, **{f"signal {name}": signal.values})
        for name, column in self.metadata.items():
            _validate.same_length(length, **{f"metadata {name}": column})
        for name, column in columns.items():
            object.__setattr__(self, name, frozen(column))
        for name in ("signals", "metadata", "provenance"):
            object.__setattr__(self, name, MappingProxyType(dict(getattr(self, name))))

    @classmethod
    def from_arrays(
        cls,
        truth: Column,
        prediction: Column,
        *,
        abstained: Column | None = None,
        failed: Column | None = None,
        confidence: Column | None = None,
        cluster: Column | None = None,
        item: Column | None = None,
        signals: Mapping[str, Column] | None = None,
        metadata: Mapping[str, Column] | None = None,
        scale: Sequence[float] | None = None,
        null_prediction: str | None = None,
        weight: Column | None = None,
        intervals: Column | None = None,
        sets: Column | None = None,
        classes: Sequence[Any] | None = None,
    ) -> Self:
        """Build items from columns of one length.

        An abstention is always said, never guessed: pass `abstained`, or let `null_prediction` say what a
        prediction of None or NaN means. An item without a truth is unscored.

        Args:
            truth: what is right; None or NaN where it is not known.
            prediction: what the model said.
            abstained: True where the model declined.
            failed: True where the run produced nothing.
            confidence: higher is more confident; becomes the signal "confidence".
            cluster: ids of what belongs together; each item is a cluster of its own when left out.
            item: names; row numbers when left out.
            signals: further numeric columns by name.
            metadata: further columns of any type by name.
            scale: the lowest and highest truth there can be.
            null_prediction: what a missing prediction means: "abstained", "failed", or "answered" (an answer that
                says nothing, and is wrong); an error when left out.
            weight: how many rows each row stands for: finite, not negative, not all zero.
            intervals: (rows, 2), lower and upper bounds; NaN only where nothing is answered.
            sets: booleans (rows, classes), True where a class is in the predicted set.
            classes: the names of the classes, one per column of `sets`; 0, 1, 2 ... when left out.
        """
        truths, predictions = label_column(truth, "truth"), label_column(prediction, "prediction")
        length = len(truths)
        _validate.same_length(length, prediction=predictions)
        outcome = outcomes(truths, predictions, abstained, failed, null_prediction)
        member, names = checked_sets(sets, classes, truths, outcome)
        columns = dict(signals or {})
        if confidence is not None:
            columns["confidence"] = confidence
        return cls(
            truth=truths,
            prediction=predictions,
            outcome=outcome,
            cluster=identifiers(cluster, "cluster", length),
            item=identifiers(item, "item", length),
            signals={name: signal_column(values, name) for name, values in columns.items()},
            metadata={name: frozen(objects(values, name)) for name, values in (metadata or {}).items()},
            scale=None if scale is None else _validate.scale(scale),
            unnamed=tuple(name for name, ids in (("cluster", cluster), ("item", item)) if ids is None),
            weight=checked_weight(weight, length),
            intervals=checked_intervals(intervals, outcome),
            sets=member,
            classes=names,
        )

    @classmethod
    def from_records(
        cls,
        records: Iterable[Mapping[str, Any]],
        *,
        scale: Sequence[float] | None = None,
        null_prediction: str | None = None,
    ) -> Self:
        """Build items from one mapping per item.

        Keys: ``truth``, ``prediction``, and where wanted ``abstained``, ``failed``, ``cluster``, ``item``,
        ``confidence``, ``signals`` and ``metadata`` (mappings of their own). Any other key is an error.

        >>> Items.from_records([
        ...     {"truth": 2, "prediction": 2, "cluster": "p1", "signals": {"evidence": 3}},
        ...     {"truth": 1, "prediction": None, "abstained": True, "cluster": "p1", "signals": {"evidence": 0}},
        ... ])
        Items(2 items in 1 cluster: 1 answered, 1 abstained, 0 failed, 0 unscored)
        """
        rows = list(records)
        for row, record in enumerate(rows):
            for key in record:
                if key not in _RECORD_KEYS:
                    hint = _validate.suggestion(key, _RECORD_KEYS)
                    raise DataError(
                        f"record {row} has the unknown key {key!r}{hint}; known: {', '.join(_RECORD_KEYS)}"
                    )
        for key in ("cluster", "item"):
            named = [key in record for record in rows]
            if any(named) and not all(named):
                raise DataError(f"record {named.index(False)} has no {key!r}, though other records do")
        result = cls.from_arrays(
            _column(rows, "truth"),
            _column(rows, "prediction"),
            abstained=[record.get("abstained", False) for record in rows],
            failed=[record.get("failed", False) for record in rows],
            cluster=_column(rows, "cluster") if rows and "cluster" in rows[0] else None,
            item=_column(rows, "item") if rows and "item" in rows[0] else None,
            metadata=_nested(rows, "metadata"),
            scale=scale,
            null_prediction=null_prediction,
        )
        merged = [
            {
                **record.get("signals", {}),
                **({"confidence": record["confidence"]} if "confidence" in record else {}),
            }
            for record in rows
        ]
        return replace(result, signals=signals_from_rows(merged, result.describe_row))

    def __len__(self) -> int:
        return len(self.outcome)

    def __repr__(self) -> str:
        counts, clusters = self.counts, len(np.unique(self.cluster))
        return (
            f"Items({len(self)} {_plural(len(self), 'item')} in {clusters} {_plural(clusters, self.cluster_noun)}: "
            f"{counts.answered} answered, {counts.abstained} abstained, {counts.failed} failed, "
            f"{counts.unscored} unscored)"
        )

    @cached_property
    def counts(self) -> OutcomeCounts:
        """How many items came to each outcome; a row of weight 2 is two items."""
        counts = np.bincount(self.outcome, weights=self.weight, minlength=len(Outcome)).tolist()
        # Fractional weights are rounded, but never to nothing where there is something.
        return OutcomeCounts(*(max(round(count), int(count > 0)) for count in counts))

    @property
    def answered(self) -> Mask:
        """True where there is a prediction to judge."""
        return self.outcome == Outcome.ANSWERED

    @property
    def abstained(self) -> Mask:
        """True where the model declined."""
        return self.outcome == Outcome.ABSTAINED

    @cached_property
    def judged(self) -> Items:
        """The items of N: answered and abstained ones, with nothing else left."""
        kept = self.outcome <= Outcome.ABSTAINED
        return self if kept.all() else self.take(kept)

    @cached_property
    def cluster_ids(self) -> NDArray[Any]:
        """The distinct cluster ids, ascending."""
        return frozen(np.unique(self.cluster))

    @cached_property
    def cluster_index(self) -> NDArray[np.intp]:
        """The position of each row's cluster in `cluster_ids`."""
        return frozen(np.searchsorted(self.cluster_ids, self.cluster))

    @cached_property
    def class_index(self) -> NDArray[np.intp]:
        """Which of `classes` the truth of each row is; -1 where it is none of them or not known."""
        return frozen(labels.class_index(labels.column(self.truth, "truth"), self.classes))

    def take(self, rows: NDArray[np.intp] | Mask) -> Items:
        """Return the items of some rows, in the order given; a row may come more than once."""
        further = {name: column for name in _FURTHER if (column := getattr(self, name)) is not None}
        return replace(
            self,
            **{name: column[rows] for name, column in further.items()},
            truth=self.truth[rows],
            prediction=self.prediction[rows],
            outcome=self.outcome[rows],
            cluster=self.cluster[rows],
            item=self.item[rows],
            signals={name: signal.take(rows) for name, signal in self.signals.items()},
            metadata={name: frozen(column[rows]) for name, column in self.metadata.items()},
        )

    def to_frame(self, backend: str | None = None) -> Any:
        """Return the items as a data frame that `abstain.read` takes back.

        Args:
            backend: "pandas", "polars" or "pyarrow"; the first of these that is installed when left out.

        >>> Items.from_arrays([1, 0], [1, 1], confidence=[0.9, 0.6]).to_frame("polars").columns
        ['truth', 'prediction', 'outcome', 'cluster', 'item', 'confidence']
        """
        from abstain import _export  # noqa: PLC0415

        return _export.to_frame(self, backend)

    def to_parquet(self, path: str | os.PathLike[str]) -> Path:
        """Write the items as a Parquet file that `abstain.read` takes back; return its path."""
        from abstain import _export  # noqa: PLC0415

        return _export.to_parquet(self, path)

    def to_run_file(self, path: str | os.PathLike[str], *, mode: str = "exported") -> Path:
        """Write the items as a run file that `abstain.read` takes back; return its path."""
        from abstain import _export  # noqa: PLC0415

        return _export.to_run_file(self, path, mode=mode)

    def with_provenance(self, **provenance: Any) -> Items:
        """Return the same items with more said about where they came from."""
        return replace(self, provenance={**self.provenance, **provenance})

    def describe_row(self, row: int) -> str:
        """Return the place of a row in words for an error message: its cluster, its item and its file."""
        path = self.provenance.get("path")
        return (
            f"{self.cluster_noun} {self.cluster[row]}, item {self.item[row]}{f' of {path}' if path else ''}"
        )


def _column(rows: Sequence[Mapping[str, Any]], key: str) -> list[Any]:
    try:
        return [record[key] for record in rows]
    except KeyError:
        row = next(row for row, record in enumerate(rows) if key not in record)
        raise DataError(f"record {row} has no {key!r}") from None


def _nested(rows: Sequence[Mapping[str, Any]], key: str) -> dict[str, Column]:
    names = dict.fromkeys(name for record in rows for name in record.get(key, {}))
    return {name: [record.get(key, {}).get(name) for record in rows] for name in names}


def _plural(count: int, noun: str) -> str:
    return noun if count == 1 else f"{noun}s"
