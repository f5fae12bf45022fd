"""From the columns of a table to items.

An abstention comes from a column (``abstained`` or ``outcome``), from a rule, or from a missing prediction if the
caller requests that. With a column of verdicts, the truth is 1 for every row, and the prediction is 1 if the verdict is
right and 0 if it is wrong. Every other column of numbers, or of text that spells only numbers, becomes a signal. Every
other plain column becomes metadata. `_fields` chooses the column of each field.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from abstain import _validate, labels
from abstain._export import ABSENT_SUFFIX, JSON_SUFFIX, METADATA_PREFIX, OUTCOMES
from abstain._row_names import row_name
from abstain.errors import ArgumentError, DataError, at
from abstain.items import (
    GUIDANCE,
    Items,
    Outcome,
    Signal,
    checked_intervals,
    checked_weight,
    combine_outcomes,
)
from abstain.labels import is_missing, missing
from abstain.readers import _values
from abstain.readers._fields import (
    assign_columns,
    column_provenance,
    scale_and_noun,
    system_column,
    unnamed_fields,
)
from abstain.readers._rules import Ruling, looks_like_refusals
from abstain.readers._values import Problems

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from numpy.typing import NDArray

    from abstain._types import Floats, Mask
    from abstain.readers._read import ReadArguments
    from abstain.readers._tables import Form, SourceTable

    Columns = Mapping[str, str]

_ANSWERS = ("prediction", "correct", "low", "high", "set")
_MOST_SYSTEMS = 100
# Stated confidences are percent if none lies between 0 and 1 and the largest is beyond scales of 1 to 5 or 10.
_PERCENT_NAMES = ("confidence", "conf", "prob", "probability", "certainty")
BEYOND_SCALES = 10.0


def items_from_table(table: SourceTable, arguments: ReadArguments) -> dict[str, Items]:
    """Return the items of every system in a table, by name; without a column of systems, all items under ""."""
    problems = arguments.problems or Problems(collect=False)
    problems.label = table.label
    columns = assign_columns(table, arguments)
    system = system_column(table, arguments, columns)
    others = _other_columns(table, arguments, columns)
    table.prepare([*columns.values(), *others, *([system] if system else [])])
    values = _load_fields(table, columns)
    if not len(next(iter(values.values()))):
        raise DataError(f"{table.label}: the table has no rows")
    systems = None
    if system is not None:
        systems = _values.as_names(table.load([system], "name")[system], system, problems)
    texts = [name for name in others if not is_typed(name, table, columns)]
    further = table.load(texts) | table.load([name for name in others if name not in texts], "value")
    rows = TableRows(table, columns, values, problems, systems)
    items = items_from_rows(rows, arguments, {name: further[name] for name in others})
    used = {*columns.values(), *items.signals, *items.metadata, system}
    unread = unread_columns(table, used)
    items = items.with_provenance(**column_provenance(table, columns, arguments), unread=unread)
    return _by_system(items, system, systems, table)


def is_typed(name: str, table: SourceTable, columns: Columns) -> bool:
    """Return whether text of a column is read as the numbers or booleans that it spells; not in an exported table."""
    return "outcome" not in columns or table.kinds[name] != "text" or name == GUIDANCE


def unread_columns(table: SourceTable, used: Collection[str | None]) -> tuple[str, ...]:
    """Return the plain columns of a table that are not used."""
    return tuple(
        name for name, kind in table.kinds.items() if name not in used and kind not in ("list", "other")
    )


def _load_fields(table: SourceTable, columns: Columns) -> dict[str, NDArray[Any]]:
    """Return the values of every field."""
    forms: dict[str, Form] = {"cluster": "name", "item": "name", "set": "text", "outcome": "text"}
    values: dict[str, NDArray[Any]] = {}
    for form in ("name", "text", "value"):
        fields = [field for field in columns if forms.get(field, "value") == form]
        loaded = table.load(list(dict.fromkeys(columns[field] for field in fields)), form)
        values |= {field: loaded[columns[field]] for field in fields}
    return values


def items_from_rows(rows: TableRows, arguments: ReadArguments, others: Mapping[str, NDArray[Any]]) -> Items:
    """Return the items of rows; `others` are the columns without a field, and that of the confidence."""
    table, columns = rows.table, rows.columns
    truth, prediction = rows.truth_and_prediction()
    rules = (arguments.abstain_rule, arguments.failed_rule)
    rulings = [Ruling(None if "outcome" in columns else rule) for rule in rules]
    outcome = rows.outcomes(truth, prediction, rulings, arguments.null_prediction)
    rows.check_labels(truth, prediction, outcome)
    cluster, item = rows.identifiers("cluster"), rows.identifiers("item")
    rows.check_unique(cluster, item)
    signals, metadata = _signals_and_metadata(rows, arguments, others)
    sets, classes = rows.sets(truth, outcome)
    items = Items(
        truth=truth,
        prediction=prediction,
        outcome=outcome,
        cluster=cluster,
        item=item,
        signals=signals,
        metadata=metadata,
        **scale_and_noun(table, columns, arguments),
        unnamed=unnamed_fields(columns, arguments),
        weight=rows.weight(),
        intervals=rows.intervals(outcome, truth, arguments.crossed),
        sets=sets,
        classes=classes,
    )
    with at(table.label):
        items = items.with_positive(arguments.positive)
    percent = in_percent(signals, columns, arguments, items.answered & items.is_counted)
    if percent:
        divided = {name: Signal(signals[name].values / 100.0, signals[name].absent) for name in percent}
        items = replace(items, signals={**items.signals, **divided})
    if "confidence" in columns and "confidence" in signals:
        rows.check_confidence(
            items.signals["confidence"], items.answered & items.is_counted, columns["confidence"]
        )
    return items.with_provenance(
        **({"percent": percent} if percent else {}),
        **rulings[0].provenance(),
        **rulings[1].provenance("failed_rule"),
        # A row of an aggregated table represents many rows, which cannot be counted here.
        **(_refusals(items) if rows.problems.counts is None else {}),
    )


def _refusals(items: Items) -> dict[str, Any]:
    """Return the provenance of text answers that look like refusals."""
    if items.prediction.dtype.kind != "O":
        return {"refusals": None}
    answered = items.outcome == Outcome.ANSWERED
    pairs = zip(items.truth[answered].tolist(), items.prediction[answered].tolist(), strict=True)
    texts = [(answer, answer == truth) for truth, answer in pairs if isinstance(answer, str)]
    return {"refusals": None} | looks_like_refusals(texts)


def _by_system(
    items: Items, column: str | None, systems: NDArray[Any] | None, table: SourceTable
) -> dict[str, Items]:
    """Return the items of each system by name; all of them under "" if there is only one."""
    if column is None or systems is None or (systems == systems[0]).all():
        return {"": items}
    names = dict.fromkeys(systems.tolist())
    if len(names) > _MOST_SYSTEMS:
        raise ArgumentError(
            f"{table.label}: the column {column!r} would make {len(names):,} systems, and at most {_MOST_SYSTEMS} are "
            "evaluated together; rename the column if it does not name systems"
        )
    parts = {str(name): items.take(systems == name) for name in names}
    return {
        name: part.with_provenance(system=name, system_column=column, **_refusals(part))
        for name, part in parts.items()
    }


def _other_columns(table: SourceTable, arguments: ReadArguments, columns: Columns) -> list[str]:
    """Return the columns to load that are not fields, and the column of the confidence."""
    chosen = [*(arguments.signals or ()), *(arguments.metadata or ()), *(arguments.percent or ())]
    table.check_columns(chosen)
    taken = {name for field, name in columns.items() if field != "confidence"}
    if "confidence" in columns:
        chosen.insert(0, columns["confidence"])
    chosen += [name + ABSENT_SUFFIX for name in chosen if name + ABSENT_SUFFIX in table.kinds]
    kinds = ["text", "unknown"]
    kinds += ["number", "whole"] if arguments.signals is None else []
    kinds += ["boolean"] if arguments.metadata is None else []
    if arguments.signals is None or arguments.metadata is None:
        others = table.loadable(
            [
                name
                for name, kind in table.kinds.items()
                if name not in taken and (kind in kinds or name.endswith(ABSENT_SUFFIX))
            ]
        )
        chosen += others if arguments.metadata is None else _without_words(table, others)
    names = set(chosen)
    return [name for name in table.kinds if name in names]


def _without_words(table: SourceTable, names: Sequence[str]) -> list[str]:
    """Return the columns whose first rows may be numbers, so that long texts such as prompts are not loaded."""
    texts = [name for name in names if table.kinds[name] in ("text", "unknown")]
    heads = table.head([name for name in texts if not name.endswith(ABSENT_SUFFIX)])
    words = {name for name, values in heads.items() if _values.parse_numbers(values)[1].any()}
    return [name for name in names if name not in words]


def _signals_and_metadata(
    rows: TableRows, arguments: ReadArguments, others: Mapping[str, NDArray[Any]]
) -> tuple[dict[str, Signal], dict[str, NDArray[Any]]]:
    """Split the other columns into signals, which are numbers, and metadata."""
    confidence = rows.columns.get("confidence")
    typed = {
        name: _values.typed(values) if is_typed(name, rows.table, rows.columns) else values
        for name, values in others.items()
    }
    absent = {
        name for name in typed if name.endswith(ABSENT_SUFFIX) and name.removesuffix(ABSENT_SUFFIX) in typed
    }
    named = set(arguments.metadata or ())
    kept = {name for name in typed if name in named or name.startswith(METADATA_PREFIX) or name in absent}
    chosen = arguments.signals
    if chosen is None:
        kept.add(GUIDANCE)
        chosen = [name for name, values in typed.items() if _values.is_numeric(values) and name not in kept]
    names = dict.fromkeys(chosen)
    if confidence is not None and confidence not in names:
        # If the caller names other signals, a column that only looks like a confidence need not be numeric.
        optional = bool(arguments.signals) and arguments.confidence is None
        if not optional or _values.is_numeric(typed[confidence]):
            names = {confidence: None, **names}
    signals = {name: rows.signal(name, typed) for name in names}
    if confidence in signals:
        signals.setdefault("confidence", signals[confidence])
    metadata = {
        name: values
        for name, values in typed.items()
        if name not in absent and (name in named or (arguments.metadata is None and name not in signals))
    }
    return signals, rows.metadata(metadata)


def in_percent(
    signals: Mapping[str, Signal], columns: Columns, arguments: ReadArguments, answered: Mask
) -> tuple[str, ...]:
    """Return the signals that are percent: those that the caller names, or a confidence with such values.

    Only the values of answered rows count.
    """
    column = columns.get("confidence")
    if arguments.percent is not None:
        named = [name for name in arguments.percent if name in signals]
        return tuple([*named, "confidence"] if column in named and column != "confidence" else named)
    if "confidence" not in signals or column is None:
        return ()
    if arguments.confidence is None and column.casefold() not in _PERCENT_NAMES:
        return ()
    values = signals["confidence"].values
    if not np.fmax.reduce(values, initial=-np.inf) > BEYOND_SCALES:
        return ()
    values = values[answered & ~np.isnan(values)]
    proportions = (values > 0.0) & (values < 1.0)
    is_percent = (
        len(values)
        and values.min() >= 0.0
        and BEYOND_SCALES < values.max() <= 100.0
        and not proportions.any()
    )
    return tuple(dict.fromkeys((column, "confidence"))) if is_percent else ()


@dataclass(frozen=True, slots=True)
class TableRows:
    """The rows of a table, with the column name and the values of each field, and the system of each row."""

    table: SourceTable
    columns: Columns
    values: Mapping[str, NDArray[Any]]
    problems: Problems
    systems: NDArray[Any] | None = None

    def __len__(self) -> int:
        return len(next(iter(self.values.values())))

    def truth_and_prediction(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return truth and prediction; for a column of verdicts, ones, and 1 if the verdict is right, otherwise 0."""
        if "correct" in self.values:
            right = _values.as_verdicts(self.values["correct"], self.columns["correct"], self.problems)
            return np.ones(len(right)), right
        truth = _values.as_labels(self.values["truth"])
        if "prediction" not in self.values:  # the answer is an interval or a set, and not a single label
            return truth, np.full(len(self), np.nan)
        return truth, _values.as_labels(self.values["prediction"])

    def check_labels(self, truth: NDArray[Any], prediction: NDArray[Any], outcome: NDArray[np.uint8]) -> None:
        """Report truths and predictions that can never be equal: numbers in one column and words in the other."""
        kinds = [_label_kinds(column) for column in (truth, prediction)]
        if all(kinds) and not kinds[0] & kinds[1] and (outcome == Outcome.ANSWERED).any():
            self.problems.report(
                f"{self.columns['truth']!r} and {self.columns['prediction']!r} are numbers in one column and text in "
                "the other; they would never be equal"
            )

    def outcomes(
        self,
        truth: NDArray[Any],
        prediction: NDArray[Any],
        rulings: Sequence[Ruling],
        null_prediction: str | None,
    ) -> NDArray[np.uint8]:
        """Return every row's outcome, from columns, from rules, and from missing predictions.

        The first ruling finds abstentions, the second failures.
        """
        if "outcome" in self.values:
            return self._stated_outcomes()
        declined, broken = self._flags("abstained"), self._flags("failed")
        self.problems.report_rows(
            declined & broken, "an item can have only one outcome, but is both abstained and failed"
        )
        broken = broken | self._ruled(rulings[1], prediction, truth, declined | broken)
        declined = declined | self._ruled(rulings[0], prediction, truth, declined | broken)
        silent = self._silent(prediction) & ~declined & ~broken
        if silent.any() and null_prediction is None:
            names = ", ".join(self.columns[field] for field in _ANSWERS if field in self.columns)
            self.problems.report(
                f"the prediction ({names}) is missing {self.problems.place(silent)} for an unknown reason",
                way_out="name a column of abstentions (abstained, --abstained), or set the meaning of a missing "
                "prediction (null_prediction, --null-prediction: abstained or failed)",
            )
        if null_prediction == "abstained":
            return combine_outcomes(truth, declined | silent, broken)
        return combine_outcomes(truth, declined, broken | silent)

    def _ruled(self, ruling: Ruling, prediction: NDArray[Any], truth: NDArray[Any], settled: Mask) -> Mask:
        """Return the rows that a rule finds, among those that are not `settled`."""
        ruled = np.zeros(len(prediction), np.bool_)
        counts = self.problems.counts
        for row in np.flatnonzero(~settled) if ruling.rule else ():
            value = prediction[row]
            text = None if is_missing(value) else f"{value:g}" if isinstance(value, float) else str(value)
            rows = 1 if counts is None else int(counts[row])
            ruled[row] = ruling.declines(text, right=bool(value == truth[row]), rows=rows)
        return ruled

    def _stated_outcomes(self) -> NDArray[np.uint8]:
        codes = {name: code for code, name in enumerate(OUTCOMES)}
        values = self.values["outcome"].tolist()
        outcomes = np.array([codes.get(value, -1) if isinstance(value, str) else -1 for value in values])
        unknown = outcomes < 0
        self.problems.report_rows(
            unknown,
            f"the column {self.columns['outcome']!r} must contain {', '.join(OUTCOMES)}, and does not",
            way_out="rename the column if it means something else",
        )
        return np.where(unknown, Outcome.FAILED, outcomes).astype(np.uint8)

    def _flags(self, field: str) -> Mask:
        if field not in self.values:
            return np.zeros(len(self), np.bool_)
        return _values.as_flags(self.values[field], self.columns[field], self.problems)

    def _silent(self, prediction: NDArray[Any]) -> Mask:
        """Return True for each row without an answer: a label, or an interval if the answers are intervals."""
        if "prediction" in self.values or "correct" in self.values:
            return missing(prediction)
        silent = np.zeros(len(self), np.bool_)
        for field in ("low", "high"):
            if field in self.values:
                silent |= _values.blank(self.values[field])
        return silent

    def identifiers(self, field: str) -> NDArray[Any]:
        """Return the names of clusters or items: whole numbers if all of them are, otherwise text."""
        if field not in self.values:
            return np.arange(len(self))
        return _values.as_names(self.values[field], self.columns[field], self.problems)

    def check_unique(self, cluster: NDArray[Any], item: NDArray[Any]) -> None:
        """Report duplicate items within a cluster; without clusters, in the whole table."""
        if "item" not in self.columns:
            return
        codes = np.unique(item, return_inverse=True)[1].astype(np.int64)
        for column in (cluster if "cluster" in self.columns else None, self.systems):
            if column is not None:
                groups = np.unique(column, return_inverse=True)[1]
                pairs = codes * (int(groups.max()) + 1) + groups
                codes = np.unique(pairs, return_inverse=True)[1].astype(np.int64)
        duplicate = np.ones(len(codes), np.bool_)
        duplicate[np.unique(codes, return_index=True)[1]] = False
        self.report_duplicates(duplicate)

    def report_duplicates(self, duplicate: Mask) -> None:
        """Report the rows of a mask, if there are any: their items appear in earlier rows."""
        scope = f" within one {self.columns['cluster']}" if "cluster" in self.columns else ""
        self.problems.report_rows(
            duplicate,
            f"the item ids ({self.columns['item']}) must be unique{scope}; there is a duplicate",
            way_out="name another item column, or a cluster column if several clusters have the same items",
        )

    def signal(self, name: str, columns: Mapping[str, NDArray[Any]]) -> Signal:
        """Return a column of numbers, and its absent rows if another column marks them."""
        values = columns[name]
        numbers, wrong = _values.parse_numbers(values)
        if wrong.any() and not _values.report_decimal_commas(values, name, self.problems):
            types = {type(value) for value in values[wrong].tolist()}
            content = "booleans" if types <= {bool, np.bool_} else "text"
            first = self.problems.place(wrong, most=1)
            self.problems.report(
                f"the column {name!r} contains {content} (first {first}), but a confidence or signal needs numbers",
                way_out="name another column, or rename this one if it means something else",
            )
        absent = columns.get(name + ABSENT_SUFFIX)
        mask = np.zeros(len(values), np.bool_) if absent is None else absent.astype(np.bool_)
        return Signal(numbers, mask)

    def check_confidence(self, signal: Signal, answered: Mask, name: str) -> None:
        """Report answers without a confidence if problems are collected; otherwise the ranking raises the error."""
        if self.problems.collect:
            self.problems.report_rows(
                ~np.isfinite(signal.values) & answered,
                f"the confidence ({name}) is missing or not finite for an answered item",
            )

    def sets(self, truth: NDArray[Any], outcome: NDArray[np.uint8]) -> tuple[Mask | None, tuple[str, ...]]:
        """Return the members of each set, and the classes: all labels that occur in sets and truths."""
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

    def metadata(self, columns: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """Return metadata under the names that they had before an export."""
        metadata = {}
        for column_name, values in columns.items():
            name = column_name.removeprefix(METADATA_PREFIX)
            # Only an exported table has outcomes, and JSON in columns of such names.
            if "outcome" in self.columns and name.endswith(JSON_SUFFIX):
                metadata[name.removesuffix(JSON_SUFFIX)] = self._parsed(values, column_name)
            else:
                metadata[name] = values
        return metadata

    def _parsed(self, values: NDArray[Any], name: str) -> NDArray[Any]:
        parsed = []
        for row, text in enumerate(values.tolist()):
            try:
                parsed.append(None if text is None else json.loads(text))
            except (RecursionError, TypeError, ValueError):
                self.problems.report(f"the column {name!r} must hold JSON, and does not at {row_name(row)}")
                parsed.append(None)
        return _validate.objects(parsed)

    def weight(self) -> Floats | None:
        """Return the number of rows that each row represents."""
        if "weight" not in self.values:
            return None
        numbers, label = self._numbers("weight"), f"weight ({self.columns['weight']})"
        return self._checked(label, lambda: checked_weight(numbers, len(numbers)))

    def intervals(
        self, outcome: NDArray[np.uint8], truth: NDArray[Any], crossed: str | None
    ) -> Floats | None:
        """Return the bounds of every prediction."""
        if "low" not in self.values:
            return None
        low, high = (self._numbers(field, gaps=True) for field in ("low", "high"))
        if crossed is not None:
            low, high = _values.uncrossed(low, high, labels.numbers(truth), crossed)
        label = f"low ({self.columns['low']}) and high ({self.columns['high']})"
        return self._checked(label, lambda: checked_intervals(np.column_stack([low, high]), outcome))

    def _numbers(self, field: str, *, gaps: bool = False) -> Floats:
        return _values.as_numbers(self.values[field], self.columns[field], self.problems, gaps=gaps)

    def _checked(self, label: str, check: Callable[[], Floats | None]) -> Floats | None:
        try:
            return check()
        except DataError as problem:
            self.problems.report(f"{label}: {problem}")
            return None


def _label_kinds(column: NDArray[Any]) -> set[bool]:
    """Return a set with True if some labels are words, and with False if some are numbers."""
    stated = labels.column(column[~missing(column)], "label")
    if stated.dtype.kind in "biuf":
        return {False} if len(stated) else set()
    return {isinstance(value, str) for value in stated.tolist()}
