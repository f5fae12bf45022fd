"""From the columns of a table to items: what the values of each role mean.

An abstention is said by a column (``abstained`` or ``outcome``), by a rule, or by the user who says what a
missing prediction means. A column that already says right or wrong makes the truth 1 for every row, and the
prediction 1 where it is right, else 0. Every other numeric column becomes a signal, every other plain column
metadata. Which column plays which role is known to `_roles`; rows are never matched here.
"""

from __future__ import annotations

import json
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
    Values = Mapping[str, NDArray[Any]]

__all__ = ["agree_on_labels", "check_label_kinds", "items_from_table"]

_ANSWERS = ("prediction", "correct", "low", "high", "set")


def items_from_table(table: SourceTable, roles: Roles, problems: Problems | None = None) -> Items:
    """Return the items of a table; see `abstain.read`."""
    problems = problems or Problems(collect=False)
    problems.label = table.label
    columns = assign_columns(table, roles)
    signals, metadata = _further(table, roles, columns)
    agree_on_labels(table, columns)
    role_columns = table.load(list(dict.fromkeys(columns.values())))
    values = {role: role_columns[name] for role, name in columns.items()}
    length = len(next(iter(values.values())))
    if not length:
        raise DataError(f"{table.label}: the table has no rows")
    truth, prediction = _truth_and_prediction(values, columns, table, problems)
    check_label_kinds(truth, prediction, columns, table)
    ruling = Ruling(roles.rule)
    outcome = _outcomes(values, truth, prediction, roles, ruling, columns, problems)
    further = table.load([name for name in (*signals, *metadata) if name not in role_columns])
    loaded = {**role_columns, **further}
    cluster = _identifiers(values.get("cluster"), "cluster", columns, length, problems)
    item = _identifiers(values.get("item"), "item", columns, length, problems)
    _check_unique(
        cluster if "cluster" in columns else None, item if "item" in columns else None, columns, problems
    )
    found = {name: _signal(loaded[name], loaded.get(name + ABSENT_SUFFIX), name) for name in signals}
    if "confidence" in columns:
        found.setdefault("confidence", found[columns["confidence"]])
        _check_confidence(found["confidence"], outcome, columns["confidence"], problems)
    sets, classes = _sets(values, columns, truth, outcome, table, problems)
    items = Items(
        truth=truth,
        prediction=prediction,
        outcome=outcome,
        cluster=cluster,
        item=item,
        signals=found,
        metadata=_metadata(
            {name: loaded[name] for name in metadata}, found, written_here="outcome" in columns
        ),
        **declared(table, columns, roles),
        unnamed=tuple(role for role in ("cluster", "item") if role not in columns),
        weight=_weight(values, columns, problems),
        intervals=_intervals(values, columns, outcome, problems),
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


def _truth_and_prediction(
    values: Values, columns: Columns, table: SourceTable, problems: Problems
) -> tuple[NDArray[Any], NDArray[Any]]:
    if "correct" in values:
        right = _values.as_verdicts(values["correct"], columns["correct"], problems)
        return np.ones(len(right)), right
    truth = _label_column(values["truth"], columns["truth"], table)
    if "prediction" not in values:
        # What is predicted is an interval or a set, and no single label.
        return truth, np.full(len(truth), np.nan)
    return truth, _label_column(values["prediction"], columns["prediction"], table)


def _label_column(values: NDArray[Any], name: str, table: SourceTable) -> NDArray[Any]:
    if values.dtype.kind in "fiub":
        return values.astype(np.float64, copy=False)
    if table.kinds[name] in ("boolean", "whole", "number") or not any(
        isinstance(value, str) for value in values.tolist()
    ):
        return _validate.floats(values, name)
    return values


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


def _weight(values: Values, columns: Columns, problems: Problems) -> NDArray[np.float64] | None:
    if "weight" not in values:
        return None
    numbers = _values.as_numbers(values["weight"], columns["weight"], problems)
    return _reported(lambda: checked_weight(numbers, len(numbers)), f"weight ({columns['weight']})", problems)


def _intervals(
    values: Values, columns: Columns, outcome: NDArray[np.uint8], problems: Problems
) -> NDArray[np.float64] | None:
    if "low" not in values:
        return None
    bounds = np.column_stack(
        [_values.as_numbers(values[role], columns[role], problems, gaps=True) for role in ("low", "high")]
    )
    place = f"low ({columns['low']}) and high ({columns['high']})"
    return _reported(lambda: checked_intervals(bounds, outcome), place, problems)


def _reported(
    check: Callable[[], NDArray[np.float64] | None], place: str, problems: Problems
) -> NDArray[np.float64] | None:
    try:
        return check()
    except DataError as problem:
        problems.report(f"{place}: {problem}")
        return None


def _sets(
    values: Values,
    columns: Columns,
    truth: NDArray[Any],
    outcome: NDArray[np.uint8],
    table: SourceTable,
    problems: Problems,
) -> tuple[NDArray[np.bool_] | None, tuple[str, ...]]:
    """Return who is in which set, and the classes: all labels that occur in sets and truths."""
    if "set" not in values:
        return None, ()
    name = columns["set"]
    # In a table of text, an empty field is an empty set.
    needed = (outcome == Outcome.ANSWERED) & (table.kinds[name] == "list")
    lists = _values.as_lists(values["set"], name, problems, needed=needed)
    classes = table.declared.get("classes") or labels.class_names(
        chain(truth[~missing(truth)].tolist(), chain.from_iterable(lists))
    )
    return labels.members(lists, classes, name=f"{table.label}: the column {name!r}"), classes


def _outcomes(
    values: Values,
    truth: NDArray[Any],
    prediction: NDArray[Any],
    roles: Roles,
    ruling: Ruling,
    columns: Columns,
    problems: Problems,
) -> NDArray[np.uint8]:
    """Return every row's outcome: what is said, what the rule says, and what a missing prediction means."""
    if "outcome" in values:
        return _said_outcomes(values["outcome"], columns["outcome"], problems)
    length = len(truth)
    declined, broken = (
        _values.as_flags(values[role], columns[role], problems)
        if role in values
        else np.zeros(length, np.bool_)
        for role in ("abstained", "failed")
    )
    both = declined & broken
    if both.any():
        problems.report(f"row {listed_rows(both)} is both abstained and failed; an item has one outcome")
    if roles.rule is not None:
        declined = declined | _ruled(ruling, prediction, truth, declined | broken)
    silent = _silent(values, prediction) & ~declined & ~broken
    if silent.any() and roles.null_prediction is None:
        names = ", ".join(columns[role] for role in _ANSWERS if role in columns)
        problems.report(
            f"the prediction ({names}) is missing at row {listed_rows(silent)} and nothing says why",
            way_out="name a column of abstentions (abstained, --abstained), or say what it means "
            "(null_prediction, --null-prediction: abstained or failed)",
        )
    outcome = np.full(length, Outcome.ANSWERED, dtype=np.uint8)
    outcome[declined | (silent & (roles.null_prediction == "abstained"))] = Outcome.ABSTAINED
    outcome[missing(truth)] = Outcome.UNSCORED
    outcome[broken | (silent & (roles.null_prediction != "abstained"))] = Outcome.FAILED
    return outcome


def _silent(values: Values, prediction: NDArray[Any]) -> NDArray[np.bool_]:
    """True where no answer is given: no label, or where intervals or sets are the answer, none of those."""
    if "prediction" in values or "correct" in values:
        return missing(prediction)
    silent = np.zeros(len(prediction), np.bool_)
    for role in ("low", "high"):
        if role in values:
            silent |= _values.blank(values[role])
    return silent


def _ruled(
    ruling: Ruling, prediction: NDArray[Any], truth: NDArray[Any], settled: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    ruled = np.zeros(len(prediction), np.bool_)
    for row in np.flatnonzero(~settled):
        value = prediction[row]
        text = None if is_missing(value) else f"{value:g}" if isinstance(value, float) else str(value)
        ruled[row] = ruling.declines(text, right=bool(value == truth[row]))
    return ruled


def _said_outcomes(values: NDArray[Any], name: str, problems: Problems) -> NDArray[np.uint8]:
    codes = {name: code for code, name in enumerate(OUTCOMES)}
    found = np.array([codes.get(value, -1) if isinstance(value, str) else -1 for value in values.tolist()])
    unknown = found < 0
    if unknown.any():
        problems.report(
            f"the column {name!r} must say {', '.join(OUTCOMES)}, and does not at row {listed_rows(unknown)}",
            way_out="rename the column if it means something else",
        )
    return np.where(unknown, Outcome.FAILED, found).astype(np.uint8)


def _identifiers(
    values: NDArray[Any] | None, role: str, columns: Columns, length: int, problems: Problems
) -> NDArray[Any]:
    if values is None:
        return np.arange(length)
    if values.dtype.kind in "iu":
        return values
    gaps = missing(values)
    if gaps.any():
        problems.report(
            f"the {role} ({columns[role]}) is missing at row {listed_rows(gaps)}; every item needs one"
        )
    if values.dtype.kind == "f":
        whole = np.where(gaps, -1, values)
        if (whole == np.floor(whole)).all():
            return whole.astype(np.int64)
    return np.array(["" if value is None else str(value) for value in values.tolist()], dtype=np.str_)


def _check_unique(
    cluster: NDArray[Any] | None, item: NDArray[Any] | None, columns: Columns, problems: Problems
) -> None:
    """An item may not stand twice in one cluster; without clusters not twice at all."""
    if item is None:
        return
    codes = np.unique(item, return_inverse=True)[1]
    if cluster is not None:
        groups = np.unique(cluster, return_inverse=True)[1]
        codes = codes.astype(np.int64) * (int(groups.max()) + 1) + groups
    order = np.argsort(codes, kind="stable")
    again = np.zeros(len(codes), np.bool_)
    again[order[1:]] = np.diff(codes[order]) == 0
    if again.any():
        where = f" within one {columns['cluster']}" if cluster is not None else ""
        problems.report(
            f"the item ids ({columns['item']}) must be unique{where}; one stands again at row {listed_rows(again)}",
            way_out="name another item column, or a cluster column if an item is asked of several",
        )


def _check_confidence(signal: Signal, outcome: NDArray[np.uint8], name: str, problems: Problems) -> None:
    if problems.collect:
        wrong = ~np.isfinite(signal.values) & (outcome == Outcome.ANSWERED)
        if wrong.any():
            problems.report(
                f"the confidence ({name}) is missing or not finite for an answered item at row {listed_rows(wrong)}"
            )


def _signal(values: NDArray[Any], absent: NDArray[Any] | None, name: str) -> Signal:
    numbers = _validate.floats(values, f"signal {name}")
    mask = np.zeros(len(numbers), np.bool_) if absent is None else absent.astype(np.bool_)
    return Signal(numbers, mask)


def _metadata(
    columns: Mapping[str, NDArray[Any]], signals: Mapping[str, Signal], *, written_here: bool
) -> dict[str, NDArray[Any]]:
    """Return metadata under their own names, without what only says where a signal is absent."""
    metadata = {}
    for column_name, column in columns.items():
        name, values = column_name.removeprefix(METADATA_PREFIX), column
        if name.endswith(ABSENT_SUFFIX) and name.removesuffix(ABSENT_SUFFIX) in signals:
            continue
        if written_here and name.endswith(JSON_SUFFIX):
            parsed = [None if text is None else json.loads(text) for text in column.tolist()]
            name, values = name.removesuffix(JSON_SUFFIX), _validate.objects(parsed)
        metadata[name] = values
    return metadata
