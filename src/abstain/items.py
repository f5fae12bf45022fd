"""Items: the one frozen table that every metric reads.

An item is one decision that a model was asked for. It has exactly one outcome: answered, abstained, failed
(the run produced nothing) or unscored (there is no truth). N counts answered and abstained items, K the
answered ones, and coverage is K / N; failed and unscored items are kept, counted and reported, and enter no
metric. A cluster is the unit of independence: a participant, a patient, a document.

Files, confidences and metrics are known elsewhere: this module only holds columns that agree with one
another.
"""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from abstain import _validate, labels
from abstain._row_names import row_name, row_of_file
from abstain.errors import ArgumentError, DataError, SignalError

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from numpy.typing import ArrayLike, NDArray

    from abstain._types import Mask

    # Lists with None are no ArrayLike to numpy, and yet what people have.
    Column = ArrayLike | Sequence[Any]

__all__ = ["CONFIDENCE_NAMES", "Aggregation", "Items", "Outcome", "OutcomeCounts", "Signal"]

# How a column of confidences is usually called, most telling first; compared without regard to case.
CONFIDENCE_NAMES = ("confidence", "conf", "prob", "probability", "score", "certainty", "logprob", "msp")

_COLUMNS = ("truth", "prediction", "outcome", "cluster", "item", "weight", "intervals", "sets")
_ABSENT = object()
_SMALLEST, _LARGEST = -(2**63), 2**63 - 1
# No file of ours could hold a longer whole number, see `_files.parse_json`.
_NO_NAME = 10**308
# How many cells a table of records may have beyond all reason, and how many per value that the records hold.
_MOST_CELLS = 1_000_000
_MOST_SPREAD = 50
_RECORD_KEYS = (
    *("truth", "prediction", "abstained", "failed", "cluster", "item", "confidence", "signals"),
    "metadata",
)


class Outcome(enum.IntEnum):
    """What became of an item; every item has exactly one."""

    ANSWERED = 0
    ABSTAINED = 1
    FAILED = 2
    UNSCORED = 3


@dataclass(frozen=True, eq=False, slots=True)
class Signal:
    """One numeric column that a confidence may be made of.

    Attributes:
        values: the numbers, NaN where the source says null or says nothing.
        absent: True where the source does not even have the key, which is not the same as a null.
        binned: True if the number stands for a bin of several different numbers, which an engine counted as one; None
            if every number is exact.
    """

    values: NDArray[np.float64]
    absent: Mask
    binned: Mask | None = field(default=None)

    def __repr__(self) -> str:
        return f"Signal({len(self.values)} values, {int(self.absent.sum())} absent)"

    @property
    def null(self) -> Mask:
        """True where the source has the key and says null."""
        return np.isnan(self.values) & ~self.absent

    def take(self, rows: NDArray[np.intp] | Mask) -> Signal:
        """Return the signal of some rows."""
        binned = None if self.binned is None else _frozen(self.binned[rows])
        return Signal(_frozen(self.values[rows]), _frozen(self.absent[rows]), binned)


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


@dataclass(frozen=True, eq=False, slots=True)
class Aggregation:
    """What an engine found out about rows that it counted and did not hand over.

    Attributes:
        engine: which one: "duckdb" or "spark".
        kinds: one item for every pair of labels and outcome that occurs, whatever the confidence and the cluster.
        clusters: how many clusters the items come from.
        members: how many clusters with a judged item each group has, by its number; None where every cluster is its
            own group, and known by its name.
        view: returns the same items with some of the signals, by their names.
        first: returns the number of the first row that some items stand for, by what they are called; None where that
            is not known any more, or never was.
        having: returns, for columns of metadata and by the label of every group of items that they make, how many
            clusters of each group of clusters have a judged one of them.
        by_chance: True where rows have neither names nor an order, and which of them are left out together is chance.
    """

    engine: str
    kinds: Items = field(repr=False)
    clusters: int
    members: NDArray[np.float64] | None = field(repr=False)
    view: Callable[[tuple[str, ...]], Items] = field(repr=False)
    first: Callable[[NDArray[Any]], int | None] = field(repr=False)
    having: Callable[[tuple[str, ...]], Mapping[str, NDArray[np.float64]]] = field(repr=False)
    by_chance: bool = False

    @property
    def judged(self) -> Aggregation:
        """The same of judged items alone."""
        clusters = self.clusters if self.members is None else int(self.members.sum())
        return replace(self, clusters=clusters, view=lambda names: self.view(names).judged)


@dataclass(frozen=True, eq=False)
class Items:
    """A frozen columnar table of items; made by `abstain.read`, `from_arrays`, `from_records` or `from_estimator`.

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
        unnamed: which of "cluster", "item" and "abstained" nobody named: row numbers stand in for names, and nothing is
            matched by those; nothing says who could have abstained.
        weight: how many rows each row stands for, None where every row is one.
        intervals: (rows, 2), the lower and the upper bound of a prediction, or None; NaN where nothing is answered.
        sets: (rows, classes), True where a class is in the predicted set, or None.
        classes: the names of the classes that the columns of `sets` stand for.
        counted: what an engine counted, where rows that are alike are one item with a weight; None where every row of
            the source is here.
        positive: the label that counts as 1 for binary metrics such as F1 and AUROC, in its canonical form (see
            `abstain.labels`); all other labels count as 0. None if labels are 0 and 1, or there is no such label.

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
    counted: Aggregation | None = None
    positive: int | float | str | None = None

    def __post_init__(self) -> None:
        columns = self._columns()
        length = len(self.truth)
        _validate.same_length(length, **columns)
        for name, signal in self.signals.items():
            _validate.same_length(length, **{f"signal {name}": signal.values})
        for name, column in self.metadata.items():
            _validate.same_length(length, **{f"metadata {name}": column})
        for name, column in columns.items():
            # Text of a fixed width costs as much per row as the longest text of all.
            held = column.astype(object) if column.dtype.kind == "U" else column
            object.__setattr__(self, name, _frozen(held))
        for name in ("signals", "metadata", "provenance"):
            object.__setattr__(self, name, MappingProxyType(dict(getattr(self, name))))

    def _columns(self) -> dict[str, Any]:
        return {name: column for name in _COLUMNS if (column := getattr(self, name)) is not None}

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
        positive: int | float | str | None = None,
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
            positive: the label that counts as 1 for binary metrics such as F1 and AUROC. Default: 1.
        """
        truths, predictions = _label_column(truth, "truth"), _label_column(prediction, "prediction")
        length = len(truths)
        _validate.same_length(length, prediction=predictions)
        outcome = _outcomes(truths, predictions, abstained, failed, null_prediction)
        member, names = checked_sets(sets, classes, truths, outcome)
        columns = dict(signals or {})
        if confidence is not None:
            columns["confidence"] = confidence
        items = cls(
            truth=truths,
            prediction=predictions,
            outcome=outcome,
            cluster=_identifiers(cluster, "cluster", length),
            item=_identifiers(item, "item", length),
            signals={name: _signal_column(values, name) for name, values in columns.items()},
            metadata={
                name: _frozen(_validate.untouched(values, name).copy())
                for name, values in (metadata or {}).items()
            },
            scale=None if scale is None else _validate.scale(scale),
            unnamed=tuple(
                name
                for name, given in (("cluster", cluster), ("item", item), ("abstained", abstained))
                if given is None
            ),
            weight=checked_weight(weight, length),
            intervals=checked_intervals(intervals, outcome),
            sets=member,
            classes=names,
        )
        return items.with_positive(positive)

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: Column, **columns: Any) -> Self:  # noqa: N803
        """Build items from what a fitted estimator of scikit-learn's kind says of data that it has not seen.

        The prediction is ``predict``; the confidence of a classifier is the largest of its ``predict_proba``. Where the
        estimator says itself which answers it gives (``answers``, as `ThresholdedClassifier` does), the others are
        abstentions.

        Args:
            estimator: a fitted classifier or regressor.
            X: the features.
            y: what is right.
            **columns: further arguments of `from_arrays`, such as ``cluster=``; they go before what the estimator says.

        >>> from sklearn.dummy import DummyClassifier
        >>> model = DummyClassifier(strategy="prior").fit([[0]] * 4, ["a", "a", "a", "b"])
        >>> items = Items.from_estimator(model, [[0]] * 2, ["a", "b"])
        >>> items.prediction.tolist(), items.signals["confidence"].values.tolist()
        (['a', 'a'], [0.75, 0.75])
        """
        if not hasattr(estimator, "predict"):
            raise ArgumentError(
                f"estimator must be a fitted estimator with predict, got {_validate.kind(estimator)}"
            )
        said: dict[str, Any] = {}
        if hasattr(estimator, "predict_proba") and "confidence" not in columns:
            said["confidence"] = _largest_probability(estimator, X)
        if hasattr(estimator, "answers") and "abstained" not in columns:
            said["abstained"] = ~np.asarray(estimator.answers(X), dtype=np.bool_)
        return cls.from_arrays(y, estimator.predict(X), **said, **columns)

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
        counts, clusters = self.counts, self.clusters
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

    @property
    def may_abstain(self) -> bool:
        """False where nothing in the source says who abstained, so that no item could have."""
        return "abstained" not in self.unnamed or bool(self.abstained.any())

    @cached_property
    def never_equal(self) -> bool:
        """True where no answer is its truth, of several: more often a misreading than a model that is always wrong."""
        rows = self.labelled
        answered = rows.answered & ~labels.missing(rows.prediction)
        truth = labels.column(rows.truth[answered], "truth")
        several = len(truth) > 1 if rows.weight is None else float(rows.weight[answered].sum()) > 1.0
        if not several or not labels.whole(truth):
            return False
        return not labels.matches(truth, labels.column(rows.prediction[answered], "prediction")).any()

    @property
    def labelled(self) -> Items:
        """The items with all labels that occur; where rows were counted, one of many may stand for others."""
        return self if self.counted is None else self.counted.kinds

    @cached_property
    def judged(self) -> Items:
        """The items of N: answered and abstained ones, with nothing else left."""
        kept = self.outcome <= Outcome.ABSTAINED
        if kept.all():
            return self
        judged = self.take(kept)
        return judged if self.counted is None else replace(judged, counted=self.counted.judged)

    @property
    def clusters(self) -> int:
        """How many clusters the items come from."""
        if self.counted is None or self.counted.members is None:
            return len(self.cluster_ids)
        return self.counted.clusters

    @property
    def members(self) -> NDArray[np.float64] | None:
        """How many clusters each of `cluster_ids` stands for; None where each is one."""
        if self.counted is None or self.counted.members is None:
            return None
        return self.counted.members[self.cluster_ids]

    def under(self, signals: tuple[str, ...]) -> Items:
        """Return the items with the signals that are asked for; an engine counts rows anew for them."""
        return self if self.counted is None else self.counted.view(signals)

    def row_by_row(self, what: str) -> None:
        """Raise where an engine counted the rows and `what` needs each of them."""
        if self.counted is not None:
            raise ArgumentError(
                f"{what} needs every row, and the rows were counted by {self.counted.engine}; load the table (engine, "
                "--engine: numpy)"
            )

    @cached_property
    def cluster_ids(self) -> NDArray[Any]:
        """The distinct cluster ids, ascending."""
        return self._numbered_clusters[0]

    @cached_property
    def cluster_index(self) -> NDArray[np.intp]:
        """The position of each row's cluster in `cluster_ids`."""
        return self._numbered_clusters[1]

    @cached_property
    def _numbered_clusters(self) -> tuple[NDArray[Any], NDArray[np.intp]]:
        ids, index = numbered(self.cluster)
        return _frozen(ids), _frozen(index)

    @cached_property
    def class_index(self) -> NDArray[np.intp]:
        """Which of `classes` the truth of each row is; -1 where it is none of them or not known."""
        return _frozen(labels.class_index(labels.column(self.truth, "truth"), self.classes))

    def take(self, rows: NDArray[np.intp] | Mask) -> Items:
        """Return the items of some rows, in the order given; a row may come more than once."""
        return replace(
            self,
            **{name: column[rows] for name, column in self._columns().items()},
            signals={name: signal.take(rows) for name, signal in self.signals.items()},
            metadata={name: _frozen(column[rows]) for name, column in self.metadata.items()},
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

    @property
    def usual_confidence(self) -> str | None:
        """The signal with a usual name of a confidence, in the order of `CONFIDENCE_NAMES`; None if there is none."""
        lowered = {name.casefold(): name for name in reversed(list(self.signals))}
        return next((lowered[usual] for usual in CONFIDENCE_NAMES if usual in lowered), None)

    def check_stated(self, name: str, missing: Mask) -> None:
        """Raise if the confidence of that name is missing for an item."""
        if missing.any():
            raise SignalError(
                f"the confidence {name!r} is missing (empty, null or NaN) for {self.where(missing)}; every answered "
                "item needs one: fill it in, mark the item as abstained or failed, or name another confidence"
            )

    def with_positive(self, label: int | float | str | None) -> Self:
        """Return the same items with a positive label; None keeps them as they are.

        >>> items = Items.from_arrays(["yes", "no"], ["yes", "yes"])
        >>> items.with_positive("Yes").positive
        'yes'
        """
        if label is None:
            return self
        positive = labels.canonical(label, "positive", 0)
        if positive not in labels.column(self.truth, "truth").tolist():
            raise DataError(
                f"the positive label {label!r} never occurs in the truth; name one that does (--positive, positive=)"
            )
        return replace(self, positive=positive)

    def where(self, rows: Mask) -> str:
        """Return in words for an error message where a mask is true: the first row, and how many there are."""
        count = int(rows.sum())
        if self.counted is None:
            place = self.describe_row(int(np.argmax(rows)))
        else:
            count = 0 if self.weight is None else round(float(self.weight[rows].sum()))
            row = self.counted.first(self.item[rows])
            if row is None:
                return (
                    f"{count:,} item{'' if count == 1 else 's'} of {self.provenance.get('path', 'the table')}"
                )
            place = self.place_of({}, row)
        return f"{place}{f' ({count:,} such items)' if count > 1 else ''}"

    def describe_row(self, row: int) -> str:
        """Return the place of a row in words for an error message: its cluster, its item or line, and its file."""
        named = {role: getattr(self, role)[row] for role in ("cluster", "item") if role not in self.unnamed}
        # Where nobody named the items, their numbers are those of the rows that they were read from.
        number = int(self.item[row]) if "item" in self.unnamed else None
        return self.place_of(named, number)

    def place_of(self, named: Mapping[str, object], row: int | None) -> str:
        """Return a place of these items in words: by the names of cluster and item, or by the number of a row."""
        path = self.provenance.get("path")
        nouns = {"cluster": self.cluster_noun, "item": "item"}
        words = [f"{nouns[role]} {_validate.place_name(name)}" for role, name in named.items()]
        if "item" not in named and row is not None:
            words.append(row_of_file([Path(path)], row) if path else row_name(row))
        return f"{', '.join(words)}{f' of {path}' if path else ''}"


def _largest_probability(estimator: Any, features: Any) -> NDArray[np.float64]:
    table = np.asarray(estimator.predict_proba(features), dtype=np.float64)
    if table.ndim != 2:
        raise DataError(
            f"predict_proba of {type(estimator).__name__} must give one column per class, got shape {table.shape}; "
            "judge one output after the other with from_arrays"
        )
    return np.asarray(table.max(axis=1))


def _column(rows: Sequence[Mapping[str, Any]], key: str) -> list[Any]:
    try:
        return [record[key] for record in rows]
    except KeyError:
        row = next(row for row, record in enumerate(rows) if key not in record)
        raise DataError(f"record {row} has no {key!r}") from None


def _nested(rows: Sequence[Mapping[str, Any]], key: str) -> dict[str, Column]:
    return dict(columns_from_rows([record.get(key, {}) for record in rows], key))


def _plural(count: int, noun: str) -> str:
    return noun if count == 1 else f"{noun}s"


def columns_from_rows(
    rows: Sequence[Mapping[str, Any]], what: str, absent: Any = None
) -> dict[str, list[Any]]:
    """Turn one mapping per row into columns, with `absent` where a row lacks a key.

    Rows that share few keys would make a table far larger than they are themselves: an error that says of `what`.

    >>> columns_from_rows([{"a": 1}, {"a": 2, "b": 3}], "signals")
    {'a': [1, 2], 'b': [None, 3]}
    """
    names = dict.fromkeys(name for row in rows for name in row)
    given = sum(map(len, rows))
    if far_more(len(names) * len(rows), given):
        raise DataError(
            f"{what} have {len(names):,} different names over {len(rows):,} rows, and only {given:,} values; a table "
            "needs names that many rows share, so keep what differs from row to row under one name"
        )
    columns = {name: [absent] * len(rows) for name in names}
    for number, row in enumerate(rows):
        for name, value in row.items():
            columns[name][number] = value
    return columns


def far_more(cells: int, given: int) -> bool:
    """True where a table would have far more cells than values were given for it, and would cost accordingly."""
    return cells > _MOST_CELLS + _MOST_SPREAD * given


def signals_from_rows(
    rows: Sequence[Mapping[str, Any]],
    describe: Callable[[int], str] = row_name,
    what: str = "the signals",
) -> dict[str, Signal]:
    """Turn one mapping of numbers per row into columns; a key that some rows lack is absent there, None is null.

    True and false are no numbers: an error that names the key and, with the words of `describe`, the row.
    """
    signals = {}
    for name, column in columns_from_rows(rows, what, absent=_ABSENT).items():
        flags = [isinstance(value, (bool, np.bool_)) for value in column]
        if any(flags):
            place = describe(flags.index(True))
            raise DataError(
                f"signal {name} is true or false for {place} ({sum(flags)} such items); a signal must be a number or "
                "null"
            )
        absent = np.array([value is _ABSENT for value in column], dtype=np.bool_)
        known = [None if value is _ABSENT else value for value in column]
        values = _validate.floats(_validate.objects(known), f"signal {name}")
        signals[name] = Signal(_frozen(values), _frozen(absent))
    return signals


def signals_of_row(items: Items, row: int) -> dict[str, float | None]:
    """Return the signals that a row has by name, None for a null: the way back from `signals_from_rows`."""
    found = {
        name: float(signal.values[row]) for name, signal in items.signals.items() if not signal.absent[row]
    }
    return {name: None if math.isnan(value) else value for name, value in found.items()}


def checked_weight(values: Column | None, length: int) -> NDArray[np.float64] | None:
    """Return weights that can count rows: finite, not negative, not all zero; None where there are none."""
    return None if values is None else _validate.weights(values, length, "weight").copy()


def checked_intervals(values: Column | None, outcome: NDArray[np.uint8]) -> NDArray[np.float64] | None:
    """Return bounds (rows, 2) that are there, and in order, wherever an item is answered."""
    if values is None:
        return None
    try:
        bounds = np.array(values, dtype=np.float64)
    except (OverflowError, TypeError, ValueError):
        raise DataError("intervals must hold two numbers per row, the lower and the upper bound") from None
    if bounds.shape != (len(outcome), 2):
        raise DataError(f"intervals must have the shape ({len(outcome)}, 2), got {bounds.shape}")
    answered = outcome == Outcome.ANSWERED
    gaps = answered & np.isnan(bounds).any(axis=1)
    if gaps.any():
        raise DataError(
            f"the interval has no lower or no upper bound at {row_name(int(np.argmax(gaps)))} "
            f"({int(gaps.sum())} such rows); every answered row needs both"
        )
    crossed = answered & (bounds[:, 0] > bounds[:, 1])
    if crossed.any():
        row = int(np.argmax(crossed))
        raise DataError(
            f"the lower bound {bounds[row, 0]:g} is above the upper bound {bounds[row, 1]:g} at {row_name(row)} "
            f"({int(crossed.sum())} such rows); swap them, or read the table with --crossed sort "
            '(crossed="sort")'
        )
    return bounds


def checked_sets(
    values: Column | None, classes: Sequence[Any] | None, truth: NDArray[Any], outcome: NDArray[np.uint8]
) -> tuple[Mask | None, tuple[str, ...]]:
    """Return sets (rows, classes) and the names of the classes, among them the truth of every answered row."""
    if values is None:
        if classes is not None:
            raise ArgumentError("classes name the columns of sets, and there are no sets")
        return None, ()
    try:
        member = np.array(values)
    except ValueError:
        raise DataError("sets must hold one boolean per class in every row") from None
    if member.ndim != 2 or len(member) != len(outcome):
        raise DataError(f"sets must have the shape ({len(outcome)}, classes), got {member.shape}")
    if member.dtype.kind != "b" and not (member.dtype.kind in "iuf" and np.isin(member, (0, 1)).all()):
        raise DataError(f"sets must hold booleans, got values of type {member.dtype.name}")
    given = range(member.shape[1]) if classes is None else classes
    names = tuple(str(name) for name in given)
    if len(names) != member.shape[1] or len(labels.class_names(names)) != len(names):
        raise ArgumentError(f"classes must name each of the {member.shape[1]} columns of sets once")
    unknown = labels.class_index(labels.column(truth, "truth"), names) < 0
    unknown &= outcome == Outcome.ANSWERED
    if unknown.any():
        raise DataError(
            f"the truth is none of the {len(names)} classes at {row_name(int(np.argmax(unknown)))} "
            f"({int(unknown.sum())} such rows); name them all in classes="
        )
    return member.astype(np.bool_), names


def _outcomes(
    truth: NDArray[Any],
    prediction: NDArray[Any],
    abstained: Column | None,
    failed: Column | None,
    null_prediction: str | None,
) -> NDArray[np.uint8]:
    length = len(truth)
    declined = (
        np.zeros(length, np.bool_) if abstained is None else _validate.mask(abstained, "abstained", length)
    )
    broken = np.zeros(length, np.bool_) if failed is None else _validate.mask(failed, "failed", length)
    both = declined & broken
    if both.any():
        raise DataError(
            f"{row_name(int(np.argmax(both)))} is both abstained and failed; an item has one outcome"
        )
    if null_prediction is not None:
        _validate.choice(null_prediction, "null_prediction", ("abstained", "failed", "answered"))
    silent = labels.missing(prediction) & ~declined & ~broken
    if silent.any() and null_prediction is None:
        raise DataError(
            f"prediction is missing at {row_name(int(np.argmax(silent)))} ({int(silent.sum())} such rows) and the row "
            'is not marked; pass abstained= or failed=, or null_prediction="abstained"'
        )
    if null_prediction == "abstained":
        declined = declined | silent
    elif null_prediction == "failed":
        broken = broken | silent
    return combine_outcomes(truth, declined, broken)


def combine_outcomes(truth: NDArray[Any], abstained: Mask, failed: Mask) -> NDArray[np.uint8]:
    """Return the outcome of every item: failed, otherwise unscored without a truth, otherwise abstained or answered."""
    outcome = np.where(abstained, Outcome.ABSTAINED, Outcome.ANSWERED).astype(np.uint8)
    outcome[labels.missing(truth)] = Outcome.UNSCORED
    outcome[failed] = Outcome.FAILED
    return outcome


def _label_column(values: Column, name: str) -> NDArray[Any]:
    """Numbers become float64 where that is exact (None is NaN); else objects, each label as it was."""
    array = _validate.untouched(values, name).copy()
    if array.dtype.kind in "fiub":
        return labels.exact(array)
    if all(value is None or isinstance(value, (bool, int, float, np.number, np.bool_)) for value in array):
        return labels.exact(array)
    return array


def _identifiers(values: Column | None, name: str, length: int) -> NDArray[Any]:
    if values is None:
        return np.arange(length)
    array = _validate.untouched(values, name)
    _validate.same_length(length, **{name: array})
    return identifiers(array, name)


def identifiers(values: Column, name: str = "name") -> NDArray[Any]:
    """Return names as a column: int64 where all are whole numbers of that size, else each exactly as it is.

    A name is never a float, which would make one of two neighbours, and never text of a fixed width.

    >>> identifiers([3, 1]).dtype, identifiers(["b", "a"]).dtype, identifiers([10**30, 1]).tolist()[1]
    (dtype('int64'), dtype('O'), 1)
    """
    array = _validate.untouched(values, name)
    if array.dtype.kind == "i":
        return array.astype(np.int64)
    plain = array.tolist()
    kinds = {type(value) for value in plain}
    if kinds <= {int}:
        if all(_SMALLEST <= value <= _LARGEST for value in plain):
            return np.array(plain, dtype=np.int64)
        row = next((row for row, value in enumerate(plain) if abs(value) >= _NO_NAME), None)
        if row is not None:
            raise DataError(
                f"{name} is a number of more than 308 digits at {row_name(row)}; write it as text"
            )
        return _validate.objects(plain)
    if kinds <= {str}:
        return _validate.objects(plain)
    missing = labels.missing(array)
    if missing.any():
        raise DataError(f"{name} is missing at {row_name(int(np.argmax(missing)))}; every item needs one")
    raise ArgumentError(
        f"{name} must hold text or whole numbers, not {', '.join(sorted(k.__name__ for k in kinds))}"
    )


def are_numbers(names: NDArray[Any]) -> bool:
    """True for a column of `identifiers` that holds whole numbers, of whatever size."""
    return names.dtype.kind in "iu" or (len(names) > 0 and isinstance(names[0], int))


def numbered(names: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """Return the distinct names, ascending, and which of them stands in each row.

    >>> numbered(identifiers(["b", "a", "b"]))
    (array(['a', 'b'], dtype=object), array([1, 0, 1]))
    """
    if names.dtype.kind != "O":
        distinct, index = np.unique(names, return_inverse=True)
        return distinct, index.astype(np.intp, copy=False)
    plain = names.tolist()
    # Names are hashed and only the distinct ones compared: many rows share few of them.
    order = sorted(set(plain))
    place = {name: number for number, name in enumerate(order)}
    return _validate.objects(order), np.fromiter(map(place.__getitem__, plain), np.intp, count=len(plain))


def _signal_column(values: Column, name: str) -> Signal:
    numbers = _validate.floats(values, f"signal {name}").copy()
    return Signal(_frozen(numbers), _frozen(np.zeros(len(numbers), dtype=np.bool_)))


def _frozen(array: NDArray[Any]) -> NDArray[Any]:
    # A view, so that the caller's own array stays writeable; user data were copied on their way in.
    view = array.view()
    view.flags.writeable = False
    return view
