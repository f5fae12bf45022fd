"""From the columns of a table to items: what the values of each role mean.

An abstention is said by a column (``abstained`` or ``outcome``), by a rule, or by the user who says what a
missing prediction means. A column that already says right or wrong makes the truth 1 for every row, and the
prediction 1 where it is right, else 0. Every other numeric column becomes a signal, every other plain column
metadata. Which column plays which role is known to `_roles`; rows are never matched here.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from abstain import _validate, labels
from abstain._export import ABSENT_SUFFIX, JSON_SUFFIX, METADATA_PREFIX, OUTCOMES
from abstain.errors import DataError
from abstain.items import Items, Outcome, Signal, checked_intervals, checked_weight
from abstain.labels import is_missing, missing
from abstain.sources import _values
from abstain.sources._roles import Roles, assign_columns, declared, provenance
from abstain.sources._rules import Ruling
from abstain.sources._tables import check_columns
from abstain.sources._values import Problems, listed_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from abstain.sources._tables import SourceTable

    Columns = Mapping[str, str]
    Floats = NDArray[np.float64]
    Mask = NDArray[np.bool_]

__all__ = ["agree_on_labels", "check_label_kinds", "items_from_table"]

_ANSWERS = ("prediction", "correct", "low", "high", "set")


def items_from_table(table: SourceTable, roles: Roles, problems: Problems | None = None) -> Items:
    """Return the items of a table; see `abstain.read`."""
    problems = problems or Problems(collect=False)
    problems.label = table.label
    columns = assign_columns(table, roles)
    signals, metadata = _further(table, roles, columns)
    agree_on_labels(table, columns)
    loaded = table.load(list(dict.fromkeys([*columns.values(), *signals, *metadata])))
    rows = _Rows(table, columns, {role: loaded[name] for role, name in columns.items()}, problems)
    if not len(rows):
        raise DataError(f"{table.label}: the table has no rows")
    truth, prediction = rows.truth_and_prediction()
    check_label_kinds(truth, prediction, columns, table)
    ruling = Ruling(None if "outcome" in columns else roles.rule)
    outcome = rows.outcomes(truth, prediction, ruling, roles.null_prediction)
    cluster, item = rows.identifiers("cluster"), rows.identifiers("item")
    rows.check_unique(cluster, item)
    found = {name: _signal(loaded[name], loaded.get(name + ABSENT_SUFFIX), name) for name in signals}
    if "confidence" in columns:
        found.setdefault("confidence", found[columns["confidence"]])
        rows.check_confidence(found["confidence"], outcome)
    sets, classes = rows.sets(truth, outcome)
    items = Items(
        truth=truth,
        prediction=prediction,
        outcome=outcome,
        cluster=cluster,
        item=item,
        signals=found,
        metadata=rows.metadata({name: loaded[name] for name in metadata}, found),
        **declared(table, columns, roles),
        unnamed=tuple(role for role in ("cluster", "item", "abstained") if role not in columns),
        weight=rows.weight(),
        intervals=rows.intervals(outcome),
        sets=sets,
        classes=classes,
    )
    return items.with_provenance(
        **provenance(table, columns, roles),
        unread=tuple(
            name for name, kind in table.kinds.items() if name not in loaded and kind in ("text", "boolean")
        ),
        **ruling.provenance(),
    )


def _further(table: SourceTable, roles: Roles, columns: Columns) -> tuple[list[str], list[str]]:
    """Return the names of the signal and the metadata columns."""
    check_columns(table, [*(roles.signals or ()), *(roles.metadata or ())])
    taken = {name for role, name in columns.items() if role != "confidence"}
    kept = set(roles.metadata or ())
    others = [
        name for name in table.kinds if name not in taken and table.kinds[name] not in ("list", "other")
    ]
    kept.update(name for name in others if name.startswith(METADATA_PREFIX))
    if roles.signals is None:
        signals = [name for name in others if table.kinds[name] in ("number", "whole") and name not in kept]
    else:
        signals = list(dict.fromkeys(roles.signals))
    if "confidence" in columns and columns["confidence"] not in signals:
        signals.insert(0, columns["confidence"])
    if roles.metadata is not None:
        metadata = list(dict.fromkeys(roles.metadata))
    else:
        plain = [name for name in others if name in kept or table.kinds[name] in ("text", "boolean")]
        metadata = [name for name in plain if name not in signals]
    metadata += [name + ABSENT_SUFFIX for name in signals if name + ABSENT_SUFFIX in table.kinds]
    for name in signals:
        if table.kinds[name] not in ("number", "whole"):
            raise DataError(
                f"{table.label}: the column {name!r} holds {_described(table, name)}, and a confidence or signal needs "
                "numbers"
            )
    return signals, list(dict.fromkeys(metadata))


def _described(table: SourceTable, name: str) -> str:
    if table.kinds[name] != "text":
        return f"{table.kinds[name]}s"
    values = table.load([name])[name]
    words = [value is not None and _values.as_number(value) is None for value in values.tolist()]
    return f"text (first at row {words.index(True)})" if any(words) else "text"


def agree_on_labels(table: SourceTable, columns: Columns) -> None:
    """Where a file does not say what its columns are, truth and prediction must be taken alike."""
    both = [columns[role] for role in ("truth", "prediction") if role in columns]
    kinds = {table.kinds[name] for name in both}
    if len(kinds) > 1 and not kinds <= {"whole", "number"}:
        table.as_text(both)


def check_label_kinds(
    truth: NDArray[Any], prediction: NDArray[Any], columns: Columns, table: SourceTable
) -> None:
    """Raise where truth and prediction can never be equal: numbers in one column and words in the other."""
    if (truth.dtype.kind == "f") == (prediction.dtype.kind == "f"):
        return
    numbers, texts = (truth, prediction) if truth.dtype.kind == "f" else (prediction, truth)
    # A column without any value is of no kind, and a number may be written as text.
    comparable = any(
        not isinstance(labels.canonical(text, "label", 0), str) for text in texts.tolist() if text
    )
    if comparable or np.isnan(numbers).all():
        return
    raise DataError(
        f"{table.label}: {columns['truth']!r} and {columns['prediction']!r} are numbers in one column and text in "
        "the other; they would never be equal"
    )


@dataclass(frozen=True, slots=True)
class _Rows:
    """The rows of a table: the name and the values of each role's column, and where to say what is wrong."""

    table: SourceTable
    columns: Columns
    values: Mapping[str, NDArray[Any]]
    problems: Problems

    def __len__(self) -> int:
        return len(next(iter(self.values.values())))

    def truth_and_prediction(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return what is right and what was said; a verdict is 1 where it is right, and the truth is 1 then."""
        if "correct" in self.values:
            right = _values.as_verdicts(self.values["correct"], self.columns["correct"], self.problems)
            return np.ones(len(right)), right
        truth = self._labels("truth")
        # What is predicted may be an interval or a set, and no single label.
        return truth, self._labels("prediction") if "prediction" in self.values else np.full(
            len(self), np.nan
        )

    def _labels(self, role: str) -> NDArray[Any]:
        values, name = self.values[role], self.columns[role]
        if values.dtype.kind in "fiub":
            return values.astype(np.float64, copy=False)
        numeric = self.table.kinds[name] in ("boolean", "whole", "number")
        if numeric or not any(isinstance(value, str) for value in values.tolist()):
            return _validate.floats(values, name)
        return values

    def outcomes(
        self, truth: NDArray[Any], prediction: NDArray[Any], ruling: Ruling, null_prediction: str | None
    ) -> NDArray[np.uint8]:
        """Return every row's outcome: what is said, what the rule says, and what a missing prediction means."""
        if "outcome" in self.values:
            return self._said_outcomes()
        declined, broken = self._flags("abstained"), self._flags("failed")
        both = declined & broken
        if both.any():
            self.problems.report(
                f"row {listed_rows(both)} is both abstained and failed; an item has one outcome"
            )
        declined = declined | _ruled(ruling, prediction, truth, declined | broken)
        silent = self._silent(prediction) & ~declined & ~broken
        if silent.any() and null_prediction is None:
            names = ", ".join(self.columns[role] for role in _ANSWERS if role in self.columns)
            self.problems.report(
                f"the prediction ({names}) is missing at row {listed_rows(silent)} and nothing says why",
                way_out="name a column of abstentions (abstained, --abstained), or say what it means "
                "(null_prediction, --null-prediction: abstained or failed)",
            )
        outcome = np.full(len(self), Outcome.ANSWERED, dtype=np.uint8)
        outcome[declined | (silent & (null_prediction == "abstained"))] = Outcome.ABSTAINED
        outcome[missing(truth)] = Outcome.UNSCORED
        outcome[broken | (silent & (null_prediction != "abstained"))] = Outcome.FAILED
        return outcome

    def _said_outcomes(self) -> NDArray[np.uint8]:
        codes = {name: code for code, name in enumerate(OUTCOMES)}
        values = self.values["outcome"].tolist()
        found = np.array([codes.get(value, -1) if isinstance(value, str) else -1 for value in values])
        unknown = found < 0
        if unknown.any():
            self.problems.report(
                f"the column {self.columns['outcome']!r} must say {', '.join(OUTCOMES)}, and does not at row "
                f"{listed_rows(unknown)}",
                way_out="rename the column if it means something else",
            )
        return np.where(unknown, Outcome.FAILED, found).astype(np.uint8)

    def _flags(self, role: str) -> Mask:
        if role not in self.values:
            return np.zeros(len(self), np.bool_)
        return _values.as_flags(self.values[role], self.columns[role], self.problems)

    def _silent(self, prediction: NDArray[Any]) -> Mask:
        """True where no answer is given: no label, or where intervals or sets are the answer, none of those."""
        if "prediction" in self.values or "correct" in self.values:
            return missing(prediction)
        silent = np.zeros(len(self), np.bool_)
        for role in ("low", "high"):
            if role in self.values:
                silent |= _values.blank(self.values[role])
        return silent

    def identifiers(self, role: str) -> NDArray[Any]:
        """Return the names of clusters or items: whole numbers where all of them are, else text."""
        values = self.values.get(role, np.arange(len(self)))
        if values.dtype.kind in "iu":
            return values
        gaps = missing(values)
        if gaps.any():
            self.problems.report(
                f"the {role} ({self.columns[role]}) is missing at row {listed_rows(gaps)}; every item needs one"
            )
        if values.dtype.kind == "f":
            whole = np.where(gaps, -1, values)
            if (whole == np.floor(whole)).all():
                return whole.astype(np.int64)
        return np.array(["" if value is None else str(value) for value in values.tolist()], dtype=np.str_)

    def check_unique(self, cluster: NDArray[Any], item: NDArray[Any]) -> None:
        """An item may not stand twice in one cluster; without clusters not twice at all."""
        if "item" not in self.columns:
            return
        where, codes = "", np.unique(item, return_inverse=True)[1]
        if "cluster" in self.columns:
            where = f" within one {self.columns['cluster']}"
            groups = np.unique(cluster, return_inverse=True)[1]
            codes = codes.astype(np.int64) * (int(groups.max()) + 1) + groups
        order = np.argsort(codes, kind="stable")
        again = np.zeros(len(codes), np.bool_)
        again[order[1:]] = np.diff(codes[order]) == 0
        if again.any():
            self.problems.report(
                f"the item ids ({self.columns['item']}) must be unique{where}; one stands again at row "
                f"{listed_rows(again)}",
                way_out="name another item column, or a cluster column if an item is asked of several",
            )

    def check_confidence(self, signal: Signal, outcome: NDArray[np.uint8]) -> None:
        """Add to a list of problems where an answer has no confidence; elsewhere whoever ranks says so."""
        wrong = ~np.isfinite(signal.values) & (outcome == Outcome.ANSWERED)
        if self.problems.collect and wrong.any():
            self.problems.report(
                f"the confidence ({self.columns['confidence']}) is missing or not finite for an answered item at row "
                f"{listed_rows(wrong)}"
            )

    def sets(self, truth: NDArray[Any], outcome: NDArray[np.uint8]) -> tuple[Mask | None, tuple[str, ...]]:
        """Return who is in which set, and the classes: all labels that occur in sets and truths."""
        if "set" not in self.values:
            return None, ()
        name = self.columns["set"]
        # In a table of text, an empty field is an empty set.
        needed = (outcome == Outcome.ANSWERED) & (self.table.kinds[name] == "list")
        lists = _values.as_lists(self.values["set"], name, self.problems, needed=needed)
        classes = self.table.declared.get("classes") or labels.class_names(
            chain(truth[~missing(truth)].tolist(), chain.from_iterable(lists))
        )
        return labels.members(lists, classes, name=f"{self.table.label}: the column {name!r}"), classes

    def metadata(
        self, columns: Mapping[str, NDArray[Any]], signals: Mapping[str, Signal]
    ) -> dict[str, NDArray[Any]]:
        """Return metadata under their own names, without what only says where a signal is absent."""
        found = {}
        for column_name, values in columns.items():
            name = column_name.removeprefix(METADATA_PREFIX)
            if name.endswith(ABSENT_SUFFIX) and name.removesuffix(ABSENT_SUFFIX) in signals:
                continue
            # Only a table that was written here has outcomes, and JSON under such a name.
            if "outcome" in self.columns and name.endswith(JSON_SUFFIX):
                found[name.removesuffix(JSON_SUFFIX)] = self._parsed(values, column_name)
            else:
                found[name] = values
        return found

    def _parsed(self, values: NDArray[Any], name: str) -> NDArray[Any]:
        found = []
        for row, text in enumerate(values.tolist()):
            try:
                found.append(None if text is None else json.loads(text))
            except (RecursionError, TypeError, ValueError):
                self.problems.report(f"the column {name!r} must hold JSON, and does not at row {row}")
                found.append(None)
        return _validate.objects(found)

    def weight(self) -> Floats | None:
        """Return how many rows each row stands for."""
        if "weight" not in self.values:
            return None
        numbers, place = self._numbers("weight"), f"weight ({self.columns['weight']})"
        return self._checked(place, lambda: checked_weight(numbers, len(numbers)))

    def intervals(self, outcome: NDArray[np.uint8]) -> Floats | None:
        """Return the bounds of every prediction."""
        if "low" not in self.values:
            return None
        bounds = np.column_stack([self._numbers(role, gaps=True) for role in ("low", "high")])
        place = f"low ({self.columns['low']}) and high ({self.columns['high']})"
        return self._checked(place, lambda: checked_intervals(bounds, outcome))

    def _numbers(self, role: str, *, gaps: bool = False) -> Floats:
        return _values.as_numbers(self.values[role], self.columns[role], self.problems, gaps=gaps)

    def _checked(self, place: str, check: Callable[[], Floats | None]) -> Floats | None:
        try:
            return check()
        except DataError as problem:
            self.problems.report(f"{place}: {problem}")
            return None


def _ruled(ruling: Ruling, prediction: NDArray[Any], truth: NDArray[Any], settled: Mask) -> Mask:
    ruled = np.zeros(len(prediction), np.bool_)
    for row in np.flatnonzero(~settled) if ruling.rule else ():
        value = prediction[row]
        text = None if is_missing(value) else f"{value:g}" if isinstance(value, float) else str(value)
        ruled[row] = ruling.declines(text, right=bool(value == truth[row]))
    return ruled


def _signal(values: NDArray[Any], absent: NDArray[Any] | None, name: str) -> Signal:
    numbers = _validate.floats(values, f"signal {name}")
    mask = np.zeros(len(numbers), np.bool_) if absent is None else absent.astype(np.bool_)
    return Signal(numbers, mask)
