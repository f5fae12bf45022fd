"""Items: the frozen table that every metric reads.

An item is one question to a model. It has exactly one outcome: answered, abstained, failed (the run produced nothing)
or unscored (there is no truth). N is the number of answered and abstained items, K that of answered ones, and coverage
is K / N. Failed and unscored items are kept and reported, but enter no metric. A cluster is the unit of independence: a
participant, a patient, a document.
"""

from __future__ import annotations

import contextlib
import enum
import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from abstain import _validate, labels
from abstain._row_names import first_row_name, row_name, row_of_file
from abstain._units import weight_of_one_item
from abstain.errors import ArgumentError, DataError, SignalError, list_names

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from numpy.typing import ArrayLike, NDArray

    from abstain._types import Mask

    # A list with None is not an ArrayLike.
    Column = ArrayLike | Sequence[Any]

__all__ = ["CONFIDENCE_NAMES", "Aggregation", "Items", "Outcome", "OutcomeCounts", "Signal"]

# Usual names of a confidence, the most specific first, compared without regard to case.
CONFIDENCE_NAMES = ("confidence", "conf", "prob", "probability", "score", "certainty", "logprob", "msp")
# The metadata column with whether the model should have abstained; it is never a signal, even if it is 0 and 1.
GUIDANCE = "should_abstain"

_COLUMNS = ("truth", "prediction", "outcome", "cluster", "item", "weight", "intervals", "sets")
# A run file cannot contain a larger whole number, see `_files.parse_json`.
_LONGEST_NUMBER = 10**308
# Sums of weights that are written with a few digits are at least as exact as this.
_INEXACT = 1e-6
# A table of records may have so many cells, and so many more for each value of the records.
_MOST_CELLS, _MOST_CELLS_PER_VALUE = 1_000_000, 50
_RECORD_KEYS = (
    *("truth", "prediction", "abstained", "failed", "cluster", "item", "confidence", "signals"),
    "metadata",
)


class Outcome(enum.IntEnum):
    """The result of asking one item; every item has exactly one."""

    ANSWERED = 0
    ABSTAINED = 1
    FAILED = 2
    UNSCORED = 3


@dataclass(frozen=True, eq=False, slots=True)
class Signal:
    """One numeric column from which a confidence can be computed.

    Attributes:
        values: the numbers, NaN if null or absent.
        absent: True if the source does not have the key, which differs from a null.
        binned: True if the number represents a bin of different numbers, which an engine aggregated; None if every
            number is exact.
    """

    values: NDArray[np.float64]
    absent: Mask
    binned: Mask | None = None

    def __post_init__(self) -> None:
        for name in ("values", "absent", "binned"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, _frozen(getattr(self, name)))

    def __repr__(self) -> str:
        return f"Signal({len(self.values)} values, {int(self.absent.sum())} absent)"

    @property
    def null(self) -> Mask:
        """True if the source has the key with the value null."""
        return np.isnan(self.values) & ~self.absent

    def take(self, rows: NDArray[np.intp] | Mask) -> Signal:
        """Return the signal of some rows."""
        binned = None if self.binned is None else self.binned[rows]
        return Signal(self.values[rows], self.absent[rows], binned)


@dataclass(frozen=True, slots=True)
class OutcomeCounts:
    """The number of items of each outcome.

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
        """The number of all items."""
        return self.answered + self.abstained + self.failed + self.unscored

    @property
    def n(self) -> int:
        """N, the number of items that metrics evaluate: answered and abstained ones."""
        return self.answered + self.abstained

    @property
    def coverage(self) -> float:
        """K / N, which is also the largest possible coverage; NaN if N is 0."""
        return self.answered / self.n if self.n else float("nan")


class FirstRow(NamedTuple):
    """The first of some rows that an engine has aggregated.

    Attributes:
        row: its number.
        item: the name of the item that represents it.
        names: its own names of cluster and item, as far as the table has them.
        rows: the number of all those rows.
    """

    row: int
    item: int
    names: Mapping[str, object]
    rows: int


@dataclass(frozen=True, eq=False, slots=True)
class Aggregation:
    """Facts about a table whose equal rows an engine has aggregated instead of loading them.

    Attributes:
        engine: "duckdb" or "spark".
        row_types: one item for every combination of labels and outcome, regardless of confidence and cluster.
        clusters: the number of clusters.
        members: the number of clusters with an evaluated item in each group of clusters, by group number; None if every
            cluster is a group with its own name.
        view: returns the same items with some of the signals, by their names. With ``unit=``, a number for each of
            `row_types`, that number takes the place of the cluster; with ``part=``, it also distinguishes items.
        first_row: returns the first row that some items represent, by their names; None if it is unknown.
        members_of_groups: returns, for metadata columns and by the label of every group of items, the number of
            clusters in each group of clusters that have an evaluated item of it.
        requested: True if the caller named the engine; otherwise a table that cannot be aggregated is loaded.
        random_units: True if rows have neither names nor an order, so that it is random which are left out together.
        row_weight: the weight that counts as one row in an interval.
        item_weight: the weight that counts as one item.
    """

    engine: str
    row_types: Items = field(repr=False)
    clusters: int
    members: NDArray[np.float64] | None = field(repr=False)
    view: Callable[..., Items] = field(repr=False)
    first_row: Callable[[NDArray[Any]], FirstRow | None] = field(repr=False)
    members_of_groups: Callable[[tuple[str, ...]], Mapping[str, NDArray[np.float64]]] = field(repr=False)
    requested: bool = True
    random_units: bool = False
    row_weight: float = 1.0
    item_weight: float = 1.0

    @property
    def evaluated(self) -> Aggregation:
        """The same facts for evaluated items only."""
        clusters = self.clusters if self.members is None else int(self.members.sum())
        return replace(
            self, clusters=clusters, view=lambda names, **split: self.view(names, **split).evaluated
        )


@dataclass(frozen=True, eq=False)
class Items:
    """A frozen table of items by column, made by `abstain.read`, `from_arrays`, `from_records` or `from_estimator`.

    Attributes:
        truth: the ground truth, float64 for numbers, otherwise objects.
        prediction: the model's answer, without meaning if the item is not answered.
        outcome: one `Outcome` per row.
        cluster: the cluster id of each row.
        item: the item name of each row.
        signals: numeric columns by name, from which confidences are computed.
        metadata: any other columns by name, for example for groups.
        scale: the declared lowest and highest truth, or None.
        cluster_noun: the word for a cluster in messages, such as "participant".
        provenance: the origin of the items: path, run_id, git_commit, mode, sha256.
        unnamed: those of "cluster", "item" and "abstained" that the source does not have. Row numbers then replace
            names, and are never matched; no item could have been abstained from.
        weight: the number of rows that each row represents; None if every row is one.
        intervals: (rows, 2), the lower and upper bound of each prediction, NaN if not answered; or None.
        sets: (rows, classes), True if a class is in the predicted set; or None.
        classes: the names of the classes, one per column of `sets`.
        aggregation: facts about a table that an engine aggregated; None if the items are its rows.
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
    aggregation: Aggregation | None = None
    positive: int | float | str | None = None

    def __post_init__(self) -> None:
        columns = self._columns()
        _validate.same_length(
            len(self.truth),
            **columns,
            **{f"signal {name}": signal.values for name, signal in self.signals.items()},
            **{f"metadata {name}": column for name, column in self.metadata.items()},
        )
        for name, column in columns.items():
            # Text of fixed width takes as much memory in each row as the longest text.
            flexible = column.astype(object) if column.dtype.kind == "U" else column
            object.__setattr__(self, name, _frozen(flexible))
        metadata = {name: _frozen(column) for name, column in self.metadata.items()}
        object.__setattr__(self, "metadata", MappingProxyType(metadata))
        object.__setattr__(self, "signals", MappingProxyType(dict(self.signals)))
        object.__setattr__(self, "provenance", MappingProxyType(dict(self.provenance)))

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
        """Build items from columns of equal length.

        Abstentions are never guessed: pass `abstained`, or define with `null_prediction` what a prediction of None or
        NaN means. An item without a truth is unscored.

        Args:
            truth: the ground truth; None or NaN if unknown.
            prediction: the model's answers.
            abstained: True if the model declined.
            failed: True if the run produced nothing.
            confidence: higher is more confident; becomes the signal "confidence".
            cluster: cluster ids. Default: each item is a cluster.
            item: item names. Default: row numbers.
            signals: further numeric columns by name.
            metadata: further columns of any type by name.
            scale: the lowest and highest possible truth.
            null_prediction: the meaning of a missing prediction: "abstained", "failed", or "answered" (an empty answer,
                which is wrong). Default: a missing prediction is an error.
            weight: the number of rows that each row represents: finite, not negative, not all zero.
            intervals: (rows, 2), lower and upper bounds; NaN only if the row is not answered.
            sets: booleans (rows, classes), True if a class is in the predicted set.
            classes: the names of the classes, one per column of `sets`. Default: 0, 1, 2, ...
            positive: the label that counts as 1 for binary metrics such as F1 and AUROC. Default: 1.
        """
        truths, predictions = _label_column(truth, "truth"), _label_column(prediction, "prediction")
        length = len(truths)
        _validate.same_length(length, prediction=predictions)
        outcome = _outcomes(truths, predictions, abstained, failed, null_prediction)
        members, class_names = checked_sets(sets, classes, truths, outcome)
        named = {"cluster": cluster, "item": item, "abstained": abstained}
        confidences = {} if confidence is None else {"confidence": confidence}
        items = cls(
            truth=truths,
            prediction=predictions,
            outcome=outcome,
            cluster=_identifiers(cluster, "cluster", length),
            item=_identifiers(item, "item", length),
            signals={
                name: _signal_column(values, name)
                for name, values in {**(signals or {}), **confidences}.items()
            },
            metadata={
                name: _validate.untouched(values, name).copy() for name, values in (metadata or {}).items()
            },
            scale=None if scale is None else _validate.scale(scale),
            unnamed=tuple(name for name, column in named.items() if column is None),
            weight=checked_weight(weight, length),
            intervals=checked_intervals(intervals, outcome),
            sets=members,
            classes=class_names,
        )
        return items.with_positive(positive)

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: Column, **columns: Any) -> Self:  # noqa: N803
        """Build items from the predictions of a fitted scikit-learn estimator for data that it has not seen.

        The prediction is ``predict``; the confidence of a classifier is its largest ``predict_proba``. If the estimator
        has a method ``answers``, as `ThresholdedClassifier` does, items for which it is False are abstentions.

        Args:
            estimator: a fitted classifier or regressor.
            X: the features.
            y: the ground truth.
            **columns: further arguments of `from_arrays`, such as ``cluster=``; they override those of the estimator.

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
        if hasattr(estimator, "predict_proba") and "confidence" not in columns:
            columns["confidence"] = _largest_probability(estimator, X)
        if hasattr(estimator, "answers") and "abstained" not in columns:
            columns["abstained"] = ~np.asarray(estimator.answers(X), dtype=np.bool_)
        return cls.from_arrays(y, estimator.predict(X), **columns)

    @classmethod
    def from_records(
        cls,
        records: Iterable[Mapping[str, Any]],
        *,
        scale: Sequence[float] | None = None,
        null_prediction: str | None = None,
    ) -> Self:
        """Build items from one mapping per item.

        Required keys: ``truth`` and ``prediction``. Optional keys: ``abstained``, ``failed``, ``cluster``, ``item``,
        ``confidence``, ``signals`` and ``metadata`` (both mappings). Any other key is an error.

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
        # Columns are optional, except for truth and prediction.
        columns: dict[str, Any] = {
            key: _record_values(rows, key)
            for key in ("cluster", "item", "truth", "prediction")
            if key in ("truth", "prediction") or any(key in record for record in rows)
        }
        items = cls.from_arrays(
            **columns,
            abstained=[record.get("abstained", False) for record in rows],
            failed=[record.get("failed", False) for record in rows],
            metadata=columns_from_rows([record.get("metadata", {}) for record in rows], "metadata"),
            scale=scale,
            null_prediction=null_prediction,
        )
        signals = [
            {**record.get("signals", {}), **{key: record[key] for key in ("confidence",) if key in record}}
            for record in rows
        ]
        return replace(items, signals=signals_from_rows(signals, items.describe_row))

    def __len__(self) -> int:
        return len(self.outcome)

    def __repr__(self) -> str:
        counts, clusters = self.counts, self.clusters
        return (
            f"Items({len(self)} item{'' if len(self) == 1 else 's'} in {clusters} {self.cluster_noun}"
            f"{'' if clusters == 1 else 's'}: {counts.answered} answered, {counts.abstained} abstained, "
            f"{counts.failed} failed, {counts.unscored} unscored)"
        )

    @cached_property
    def counts(self) -> OutcomeCounts:
        """The number of items of each outcome; a row of weight 2 is two items."""
        counts = np.bincount(self.outcome, weights=self.weight, minlength=len(Outcome)).tolist()
        # A positive count is at least 1.
        return OutcomeCounts(*(max(whole_count(count), int(count > 0)) for count in counts))

    @property
    def answered(self) -> Mask:
        """True if the model answered and there is a truth."""
        return self.outcome == Outcome.ANSWERED

    @property
    def abstained(self) -> Mask:
        """True if the model declined."""
        return self.outcome == Outcome.ABSTAINED

    @property
    def may_abstain(self) -> bool:
        """False if the source has no abstentions and nothing that could mark one."""
        return "abstained" not in self.unnamed or bool(self.abstained.any())

    @cached_property
    def never_equal(self) -> bool:
        """True if there are several answers and none equals its truth: probably the wrong column was read."""
        rows = self.labelled
        answered = rows.answered & rows.is_counted & ~labels.missing(rows.prediction)
        truth = labels.column(rows.truth[answered], "truth")
        count = len(truth) if rows.weight is None else float(rows.weight[answered].sum()) / self._item_weight
        if count < 1.5 or not labels.whole(truth):
            return False
        return not labels.matches(truth, labels.column(rows.prediction[answered], "prediction")).any()

    @property
    def _item_weight(self) -> float:
        """The weight of one item of N."""
        if self.aggregation is not None:
            return self.aggregation.item_weight
        return 1.0 if self.weight is None else weight_of_one_item(self.weight[self.is_evaluated])

    @property
    def labelled(self) -> Items:
        """The items with all labels that occur; an engine may have aggregated items of different labels."""
        return self if self.aggregation is None else self.aggregation.row_types

    @property
    def is_counted(self) -> Mask:
        """True if the weight of the item is not 0. An item of weight 0 counts nowhere."""
        return np.ones(len(self), np.bool_) if self.weight is None else self.weight > 0.0

    @cached_property
    def counted(self) -> Items:
        """The items whose weight is not 0."""
        return self if self.is_counted.all() else self.take(self.is_counted)

    @property
    def is_evaluated(self) -> Mask:
        """True if the item belongs to N: answered or abstained, and with a weight that is not 0."""
        return (self.outcome <= Outcome.ABSTAINED) & self.is_counted

    @cached_property
    def evaluated(self) -> Items:
        """The items of N."""
        kept = self.is_evaluated
        if kept.all():
            return self
        evaluated = self.take(kept)
        return (
            evaluated
            if self.aggregation is None
            else replace(evaluated, aggregation=self.aggregation.evaluated)
        )

    @property
    def clusters(self) -> int:
        """The number of clusters."""
        if self.aggregation is None or self.aggregation.members is None:
            return len(self.counted.cluster_ids)
        return self.aggregation.clusters

    @property
    def members(self) -> NDArray[np.float64] | None:
        """The number of clusters that each of `cluster_ids` represents; None if each is one."""
        if self.aggregation is None or self.aggregation.members is None:
            return None
        return self.aggregation.members[self.cluster_ids]

    def under(self, signals: tuple[str, ...]) -> Items:
        """Return the items with some of the signals, for which an engine aggregates the table again."""
        return self if self.aggregation is None else self.aggregation.view(signals)

    def row_by_row(self, request: str) -> None:
        """Raise if an engine aggregated the rows and a request needs each of them."""
        if self.aggregation is not None:
            raise ArgumentError(
                f"{request} needs every row, and the table was aggregated by {self.aggregation.engine}; load the table "
                "(engine, --engine: numpy)"
            )

    @property
    def unit_noun(self) -> str:
        """The noun for a unit of the confidence intervals: a cluster, or a row if the source names no clusters."""
        independent = "cluster" in self.unnamed and self.cluster_noun == "cluster"
        return "row" if independent else self.cluster_noun

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
        """The position of each row's truth in `classes`; -1 if it is not a class or unknown."""
        return _frozen(labels.class_index(labels.column(self.truth, "truth"), self.classes))

    def take(self, rows: NDArray[np.intp] | Mask) -> Items:
        """Return the items of some rows, in this order; a row may be repeated."""
        return replace(
            self,
            **{name: column[rows] for name, column in self._columns().items()},
            signals={name: signal.take(rows) for name, signal in self.signals.items()},
            metadata={name: column[rows] for name, column in self.metadata.items()},
        )

    def to_frame(self, backend: str | None = None) -> Any:
        """Return the items as a data frame that `abstain.read` reads back.

        Args:
            backend: "pandas", "polars" or "pyarrow". Default: the first of these that is installed.

        >>> Items.from_arrays([1, 0], [1, 1], confidence=[0.9, 0.6]).to_frame("polars").columns
        ['truth', 'prediction', 'outcome', 'cluster', 'item', 'confidence']
        """
        from abstain import _export  # noqa: PLC0415

        return _export.to_frame(self, backend)

    def to_parquet(self, path: str | os.PathLike[str]) -> Path:
        """Write the items as a Parquet file that `abstain.read` reads back, and return its path."""
        from abstain import _export  # noqa: PLC0415

        return _export.to_parquet(self, path)

    def to_run_file(self, path: str | os.PathLike[str], *, mode: str = "exported") -> Path:
        """Write the items as a run file that `abstain.read` reads back, and return its path."""
        from abstain import _export  # noqa: PLC0415

        return _export.to_run_file(self, path, mode=mode)

    def with_provenance(self, **provenance: Any) -> Items:
        """Return the same items with further provenance."""
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
        """Return the location of the first row for which a mask is true, and the number of such items, for an error."""
        count = int(rows.sum())
        if self.aggregation is None:
            location = self.describe_row(self.first_row(rows))
        else:
            first = self.aggregation.first_row(self.item[rows])
            if first is None:
                count = 0 if self.weight is None else whole_count(float(self.weight[rows].sum()))
                return (
                    f"{count:,} item{'' if count == 1 else 's'} of {self.provenance.get('path', 'the table')}"
                )
            location, count = self.place_of(first.names, first.row), first.rows
        return f"{location}{f' ({count:,} such items)' if count > 1 else ''}"

    def first_row(self, rows: Mask) -> int:
        """Return the index of the item that is or represents the first row for which a mask is true."""
        if self.aggregation is None and "item" in self.unnamed:
            # Items of a comparison are in the order of clusters, and their names are the numbers of their rows.
            numbered = np.flatnonzero(rows)
            return int(numbered[np.argmin(self.item[numbered])])
        first = None if self.aggregation is None else self.aggregation.first_row(self.item[rows])
        return int(np.argmax(rows if first is None else self.item == first.item))

    def describe_row(self, row: int) -> str:
        """Return the location of a row for an error message: its cluster, its item or line, and its file."""
        named = {role: getattr(self, role)[row] for role in ("cluster", "item") if role not in self.unnamed}
        # Items without names have the numbers of the rows that they were read from.
        number = int(self.item[row]) if "item" in self.unnamed else None
        return self.place_of(named, number)

    def place_of(self, named: Mapping[str, object], row: int | None) -> str:
        """Return the location of an item for an error message: the names of cluster and item, or a row number."""
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
            f"predict_proba of {type(estimator).__name__} must return one column per class, got shape {table.shape}; "
            "evaluate one output at a time with from_arrays"
        )
    return np.asarray(table.max(axis=1))


def _record_values(rows: Sequence[Mapping[str, Any]], key: str) -> list[Any]:
    for row, record in enumerate(rows):
        if key not in record:
            others = "" if key in ("truth", "prediction") else ", although other records do"
            raise DataError(f"record {row} has no {key!r}{others}")
    return [record[key] for record in rows]


def columns_from_rows(rows: Sequence[Mapping[str, Any]], subject: str) -> dict[str, list[Any]]:
    """Turn one mapping per row into columns, with None if a row lacks a key.

    Rows with few common keys would make a table far larger than themselves, which is an error about the `subject`.

    >>> columns_from_rows([{"a": 1}, {"a": 2, "b": 3}], "signals")
    {'a': [1, 2], 'b': [None, 3]}
    """
    names = dict.fromkeys(name for row in rows for name in row)
    values = sum(map(len, rows))
    if is_too_sparse(len(names) * len(rows), values):
        raise DataError(
            f"{subject} have {len(names):,} different names in {len(rows):,} rows, but only {values:,} values; a table "
            "needs names that many rows share, so store varying content under one name"
        )
    return {name: [row.get(name) for row in rows] for name in names}


def is_too_sparse(cells: int, values: int) -> bool:
    """Return whether a table would have far more cells than values."""
    return cells > _MOST_CELLS + _MOST_CELLS_PER_VALUE * values


def signals_from_rows(
    rows: Sequence[Mapping[str, Any]],
    describe: Callable[[int], str] = row_name,
    subject: str = "the signals",
) -> dict[str, Signal]:
    """Turn one mapping of numbers per row into columns; a key is absent in rows that lack it, and None is null.

    True and false are not numbers, and raise an error that names the key and, as `describe` does, the row.
    """
    signals = {}
    for name, column in columns_from_rows(rows, subject).items():
        flags = [isinstance(value, (bool, np.bool_)) for value in column]
        if any(flags):
            location = describe(flags.index(True))
            raise DataError(
                f"signal {name} is true or false for {location} ({sum(flags)} such items); a signal must be a number "
                "or null"
            )
        absent = np.array([name not in row for row in rows], dtype=np.bool_)
        signals[name] = Signal(_validate.floats(_validate.objects(column), f"signal {name}"), absent)
    return signals


def signals_of_row(items: Items, row: int) -> dict[str, float | None]:
    """Return the signals of a row by name, None for a null: the inverse of `signals_from_rows`."""
    return {
        name: None if math.isnan(signal.values[row]) else float(signal.values[row])
        for name, signal in items.signals.items()
        if not signal.absent[row]
    }


def whole_count(weight: float) -> int:
    """Return a sum of weights as a whole number; a half is rounded up, also if the order of the sum made it inexact.

    >>> whole_count(0.4), whole_count(16.5), whole_count(29.499999999999996)
    (0, 17, 30)
    """
    return math.floor(weight + 0.5 + _INEXACT)


def checked_weight(values: Column | None, length: int) -> NDArray[np.float64] | None:
    """Return a copy of valid weights: finite, not negative, not all zero; None if there are none."""
    return None if values is None else _validate.weights(values, length, "weight").copy()


def checked_intervals(values: Column | None, outcome: NDArray[np.uint8]) -> NDArray[np.float64] | None:
    """Return a copy of bounds (rows, 2) that are complete and in order for every answered item."""
    if values is None:
        return None
    try:
        bounds = np.array(values, dtype=np.float64)
    except (OverflowError, TypeError, ValueError):
        raise DataError("intervals must contain two numbers per row, the lower and the upper bound") from None
    if bounds.shape != (len(outcome), 2):
        raise DataError(f"intervals must have the shape ({len(outcome)}, 2), got {bounds.shape}")
    answered = outcome == Outcome.ANSWERED
    gaps = answered & np.isnan(bounds).any(axis=1)
    if gaps.any():
        raise DataError(
            f"the interval has no lower or no upper bound at {first_row_name(gaps)}; every answered row needs both"
        )
    crossed = answered & (bounds[:, 0] > bounds[:, 1])
    if crossed.any():
        low, high = bounds[np.argmax(crossed)]
        raise DataError(
            f"the lower bound {low:g} is above the upper bound {high:g} at {first_row_name(crossed)}; swap them, or "
            'read the table with --crossed sort (crossed="sort")'
        )
    return bounds


def checked_sets(
    values: Column | None, classes: Sequence[Any] | None, truth: NDArray[Any], outcome: NDArray[np.uint8]
) -> tuple[Mask | None, tuple[str, ...]]:
    """Return sets (rows, classes) and class names, which include the truth of every answered row."""
    if values is None:
        if classes is not None:
            raise ArgumentError(
                "classes are the names of the columns of sets, but there are no sets; pass sets="
            )
        return None, ()
    try:
        members = np.array(values)
    except ValueError:
        raise DataError("sets must contain one boolean per class in every row") from None
    if members.ndim != 2 or len(members) != len(outcome):
        raise DataError(f"sets must have the shape ({len(outcome)}, classes), got {members.shape}")
    if members.dtype.kind != "b" and not (members.dtype.kind in "iuf" and np.isin(members, (0, 1)).all()):
        raise DataError(f"sets must hold booleans, got values of type {members.dtype.name}")
    columns = members.shape[1]
    names = tuple(map(str, range(columns) if classes is None else classes))
    if len(names) != columns or len(labels.class_names(names)) != columns:
        raise ArgumentError(f"classes must name each of the {columns} columns of sets once")
    unknown = labels.class_index(labels.column(truth, "truth"), names) < 0
    unknown &= outcome == Outcome.ANSWERED
    if unknown.any():
        raise DataError(
            f"the truth is not one of the {columns} classes at {first_row_name(unknown)}; name them all in classes="
        )
    return members.astype(np.bool_), names


def _outcomes(
    truth: NDArray[Any],
    prediction: NDArray[Any],
    abstained: Column | None,
    failed: Column | None,
    null_prediction: str | None,
) -> NDArray[np.uint8]:
    declined, broken = (
        np.zeros(len(truth), np.bool_) if flags is None else _validate.mask(flags, name, len(truth))
        for name, flags in (("abstained", abstained), ("failed", failed))
    )
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
            f"prediction is missing at {first_row_name(silent)} and the row is not marked as abstained or failed; pass "
            'abstained= or failed=, or null_prediction="abstained"'
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
    """Return numbers as float64 if that is exact (None is NaN), otherwise unchanged objects."""
    array = _validate.untouched(values, name).copy()
    numeric = array.dtype.kind in "fiub" or all(
        value is None or isinstance(value, (bool, int, float, np.number, np.bool_)) for value in array
    )
    return labels.exact(array) if numeric else array


def _identifiers(values: Column | None, name: str, length: int) -> NDArray[Any]:
    if values is None:
        return np.arange(length)
    array = _validate.untouched(values, name)
    _validate.same_length(length, **{name: array})
    return identifiers(array, name)


def identifiers(values: Column, name: str = "name") -> NDArray[Any]:
    """Return names as a column: int64 if all are whole numbers that fit, otherwise unchanged objects.

    Names are never floats, which cannot distinguish neighbouring large numbers, and never text of fixed width.

    >>> identifiers([3, 1]).dtype, identifiers(["b", "a"]).dtype, identifiers([10**30, 1]).tolist()[1]
    (dtype('int64'), dtype('O'), 1)
    """
    array = _validate.untouched(values, name)
    if array.dtype.kind == "i":
        return array.astype(np.int64)
    names = array.tolist()
    types = {type(value) for value in names}
    if types <= {int}:
        with contextlib.suppress(OverflowError):
            return np.array(names, dtype=np.int64)
        row = next((row for row, value in enumerate(names) if abs(value) >= _LONGEST_NUMBER), None)
        if row is not None:
            raise DataError(
                f"{name} is a number of more than 308 digits at {row_name(row)}; write it as text"
            )
    elif types != {str}:
        missing = labels.missing(array)
        if missing.any():
            raise DataError(f"{name} is missing at {row_name(int(np.argmax(missing)))}; every item needs one")
        raise ArgumentError(
            f"{name} must contain text or whole numbers, not {list_names(sorted(kind.__name__ for kind in types))}"
        )
    return _validate.objects(names)


def are_numbers(names: NDArray[Any]) -> bool:
    """Return whether a column of `identifiers` holds whole numbers, of any size."""
    return names.dtype.kind in "iu" or (len(names) > 0 and isinstance(names[0], int))


def numbered(names: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """Return the distinct names, ascending, and the position of each row's name among them.

    >>> numbered(identifiers(["b", "a", "b"]))
    (array(['a', 'b'], dtype=object), array([1, 0, 1]))
    """
    if names.dtype.kind != "O":
        distinct, index = np.unique(names, return_inverse=True)
        return distinct, index.astype(np.intp, copy=False)
    # Only distinct names are sorted, because many rows share few names.
    ordered = sorted(set(names.tolist()))
    position = {name: number for number, name in enumerate(ordered)}
    return _validate.objects(ordered), np.array([position[name] for name in names.tolist()], dtype=np.intp)


def _signal_column(values: Column, name: str) -> Signal:
    numbers = _validate.floats(values, f"signal {name}").copy()
    return Signal(numbers, np.zeros(len(numbers), dtype=np.bool_))


def _frozen(array: NDArray[Any]) -> NDArray[Any]:
    # The flag is set on a view, so that the caller's array stays writeable.
    view = array.view()
    view.flags.writeable = False
    return view
