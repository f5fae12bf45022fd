"""From the columns of a table to items: which column plays which role, and what its values mean.

A role is played by the column that the user names, or by one with a usual name; a guess is always announced,
in ``provenance["columns"]`` and on the command line. An abstention is said by a column (``abstained`` or
``outcome``), by a rule, or by the user who says what a missing prediction means. Every other numeric column
becomes a signal, every other plain column metadata.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from abstain import _validate, labels
from abstain._export import ABSENT_SUFFIX, JSON_SUFFIX, METADATA_PREFIX, OUTCOMES
from abstain.errors import ArgumentError, DataError
from abstain.items import Items, Outcome, Signal
from abstain.sources._problems import Problems
from abstain.sources._rules import Determination
from abstain.sources._tables import check_columns

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from abstain.sources._rules import AbstentionRule
    from abstain.sources._tables import Table

__all__ = ["Roles", "items_from_table"]

# The usual names of each role, most telling first; compared without regard to case.
USUAL_NAMES: Mapping[str, tuple[str, ...]] = {
    "outcome": ("outcome",),
    "truth": ("truth", "y_true", "label", "target", "ground_truth", "gold", "gt", "true_label"),
    "prediction": ("prediction", "y_pred", "pred", "predicted", "predicted_label"),
    "confidence": ("confidence", "prob", "probability", "conf"),
    "abstained": ("abstained", "abstain", "declined", "deferred", "refused"),
    "failed": ("failed",),
    "cluster": (
        *("cluster", "cluster_id", "patient_id", "participant_id", "subject_id", "document_id", "doc_id"),
        *("patient", "participant", "subject", "document"),
    ),
    "item": ("item", "item_id", "id", "sample_id", "question_id"),
}
_NOUNS = ("patient", "participant", "subject", "document")
_OUTCOMES = {name: Outcome(code) for code, name in enumerate(OUTCOMES)}


@dataclass(frozen=True, slots=True)
class Roles:
    """What the user says of a table; None leaves a role to its usual names."""

    truth: str | None = None
    prediction: str | None = None
    confidence: str | None = None
    abstained: str | None = None
    failed: str | None = None
    cluster: str | None = None
    item: str | None = None
    signals: Sequence[str] | None = None
    metadata: Sequence[str] | None = None
    null_prediction: str | None = None
    rule: AbstentionRule | None = None
    scale: Sequence[float] | None = None

    def named(self) -> dict[str, str]:
        """The roles whose column the user names."""
        found = {role: getattr(self, role, None) for role in USUAL_NAMES}
        return {role: name for role, name in found.items() if name is not None}

    @property
    def any_column(self) -> bool:
        """True when anything was said that only a table can serve."""
        return bool(self.named()) or self.signals is not None or self.metadata is not None


def items_from_table(table: Table, roles: Roles, problems: Problems | None = None) -> Items:
    """Return the items of a table; see `abstain.read`."""
    problems = problems or Problems(collect=False)
    problems.label = table.label
    columns = assign_columns(table, roles)
    signals, metadata = _further(table, roles, columns)
    agree_on_labels(table, columns)
    role_columns = table.load(list(dict.fromkeys(columns.values())))
    values = {role: role_columns[name] for role, name in columns.items()}
    length = len(values["truth"])
    if not length:
        raise DataError(f"{table.label}: the table has no rows")
    truth, prediction = (
        _label_column(values[role], columns[role], table) for role in ("truth", "prediction")
    )
    _check_kinds(truth, prediction, columns, table)
    outcome, said = _outcomes(values, truth, prediction, roles, columns, problems)
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
        scale=table.declared.get("scale") if roles.scale is None else _validate.scale(roles.scale),
        cluster_noun=table.declared.get("cluster_noun") or cluster_noun(columns.get("cluster")),
        unnamed=tuple(role for role in ("cluster", "item") if role not in columns),
    )
    return items.with_provenance(
        columns=columns,
        guessed=tuple(role for role in columns if role not in roles.named()),
        unread=tuple(
            name for name, kind in table.kinds.items() if name not in loaded and kind in ("text", "boolean")
        ),
        defaults={
            "loss": _usual_loss(items),
            "confidence": "confidence" if "confidence" in found else next(iter(found), "constant"),
        },
        **said,
    )


def assign_columns(table: Table, roles: Roles) -> dict[str, str]:
    """Return the column of every role that has one."""
    named = roles.named()
    check_columns(table, named.values())
    columns: dict[str, str] = {}
    for role in USUAL_NAMES:
        found = [named[role]] if role in named else _guesses(table, role, columns, named)
        if role in ("truth", "prediction") and len(found) > 1:
            raise ArgumentError(
                f"{table.label}: {role} could be {' or '.join(found)}; name the column ({role}, --{role})"
            )
        if found:
            columns[role] = found[0]
    for role in ("truth", "prediction"):
        if role not in columns:
            listed = ", ".join(list(table.kinds)[:30])
            raise ArgumentError(
                f"{table.label}: which column is the {role}? Name it ({role}, --{role}); columns: {listed}"
            )
    # What the user names counts, not a column that happens to be called outcome.
    settled = ("outcome",) if {"abstained", "failed"} & named.keys() else ("abstained", "failed")
    if "outcome" in columns:
        for role in settled:
            columns.pop(role, None)
    return columns


def _guesses(table: Table, role: str, columns: Mapping[str, str], named: Mapping[str, str]) -> list[str]:
    """Return the columns of a usual name and a fitting kind that play no other role."""
    taken = {*columns.values(), *named.values()}
    lowered = {name.casefold(): name for name in reversed(list(table.kinds))}
    usual = [lowered[name] for name in USUAL_NAMES[role] if name in lowered]
    found = [name for name in usual if name not in taken and _fits(role, table.kinds[name])]
    exact = [name for name in found if name.casefold() == role]
    # A column that has the very name of the role leaves no doubt; nor does a table that was written here.
    return exact if exact or (role == "confidence" and "outcome" in columns) else found


def _fits(role: str, kind: str) -> bool:
    """A guess must at least be of the right kind; a column that the user names may not be, and then is an error."""
    if kind == "other":
        return False
    if role == "confidence":
        return kind in ("number", "whole")
    if role in ("abstained", "failed"):
        return kind in ("boolean", "whole")
    return kind == "text" if role == "outcome" else True


def _further(table: Table, roles: Roles, columns: Mapping[str, str]) -> tuple[list[str], list[str]]:
    """Return the names of the signal and the metadata columns."""
    check_columns(table, [*(roles.signals or ()), *(roles.metadata or ())])
    taken = {name for role, name in columns.items() if role != "confidence"}
    kept = set(roles.metadata or ())
    others = [name for name in table.kinds if name not in taken and table.kinds[name] != "other"]
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


def _described(table: Table, name: str) -> str:
    if table.kinds[name] != "text":
        return f"{table.kinds[name]}s"
    values = table.load([name])[name]
    rows = [row for row, value in enumerate(values.tolist()) if value is not None and not _is_number(value)]
    return f"text (first at row {rows[0]})" if rows else "text"


def _is_number(value: object) -> bool:
    try:
        float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return False
    return True


def agree_on_labels(table: Table, columns: Mapping[str, str]) -> None:
    """Where a file does not say what its columns are, truth and prediction must be taken alike."""
    kinds = {table.kinds[columns[role]] for role in ("truth", "prediction")}
    if len(kinds) > 1 and not kinds <= {"whole", "number"}:
        table.as_text([columns[role] for role in ("truth", "prediction")])


def _label_column(values: NDArray[Any], name: str, table: Table) -> NDArray[Any]:
    if values.dtype.kind in "fiub":
        return values.astype(np.float64, copy=False)
    if table.kinds[name] in ("boolean", "whole", "number") or not any(
        isinstance(value, str) for value in values.tolist()
    ):
        return _validate.floats(values, name)
    return values


def _check_kinds(
    truth: NDArray[Any], prediction: NDArray[Any], columns: Mapping[str, str], table: Table
) -> None:
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


def _outcomes(
    values: Mapping[str, NDArray[Any]],
    truth: NDArray[Any],
    prediction: NDArray[Any],
    roles: Roles,
    columns: Mapping[str, str],
    problems: Problems,
) -> tuple[NDArray[np.uint8], dict[str, Any]]:
    """Return every row's outcome, and what there is to say about the rule that helped to find it."""
    if roles.null_prediction is not None:
        _validate.choice(roles.null_prediction, "null_prediction", ("abstained", "failed"))
    if "outcome" in values:
        return _said_outcomes(values["outcome"], columns["outcome"], problems), {}
    length = len(truth)
    declined, broken = (
        _mask(values[role], columns[role], problems) if role in values else np.zeros(length, np.bool_)
        for role in ("abstained", "failed")
    )
    both = declined & broken
    if both.any():
        problems.report(f"row {_rows(both)} is both abstained and failed; an item has one outcome")
    said: dict[str, Any] = {}
    if roles.rule is not None:
        ruled, counts = _ruled(roles.rule, prediction, truth, declined | broken)
        declined = declined | ruled
        said = {"abstention_rule": {"rule": roles.rule.text, **counts}}
    silent = _missing(prediction) & ~declined & ~broken
    if silent.any() and roles.null_prediction is None:
        problems.report(
            f"the prediction ({columns['prediction']}) is missing at row {_rows(silent)} and nothing says why",
            way_out="name a column of abstentions (abstained, --abstained), or say what it means "
            "(null_prediction, --null-prediction: abstained or failed)",
        )
    outcome = np.full(length, Outcome.ANSWERED, dtype=np.uint8)
    outcome[declined | (silent & (roles.null_prediction == "abstained"))] = Outcome.ABSTAINED
    outcome[_missing(truth)] = Outcome.UNSCORED
    outcome[broken | (silent & (roles.null_prediction != "abstained"))] = Outcome.FAILED
    return outcome, said


def _ruled(
    rule: AbstentionRule, prediction: NDArray[Any], truth: NDArray[Any], settled: NDArray[np.bool_]
) -> tuple[NDArray[np.bool_], dict[str, int]]:
    counts: Counter[str] = Counter()
    ruled = np.zeros(len(prediction), np.bool_)
    for row in np.flatnonzero(~settled):
        value = prediction[row]
        text = None if _is_missing(value) else f"{value:g}" if isinstance(value, float) else str(value)
        found = rule.determine(text, right=bool(value == truth[row]))
        counts[found.value] += 1
        ruled[row] = found is Determination.ABSTAINED
    return ruled, dict(counts)


def _said_outcomes(values: NDArray[Any], name: str, problems: Problems) -> NDArray[np.uint8]:
    found = [_OUTCOMES.get(value if isinstance(value, str) else "") for value in values.tolist()]
    unknown = np.array([outcome is None for outcome in found], dtype=np.bool_)
    if unknown.any():
        problems.report(
            f"the column {name!r} must say {', '.join(OUTCOMES)}, and does not at row {_rows(unknown)}",
            way_out="rename the column if it means something else",
        )
    return np.array([Outcome.FAILED if outcome is None else outcome for outcome in found], dtype=np.uint8)


def _mask(values: NDArray[Any], name: str, problems: Problems) -> NDArray[np.bool_]:
    if values.dtype.kind == "b":
        return values
    if values.dtype.kind in "iuf" and np.isin(values, (0, 1)).all():
        return values.astype(np.bool_)
    wrong = np.array(
        [not isinstance(value, (bool, np.bool_)) and value not in (0, 1) for value in values.tolist()]
    )
    if wrong.any():
        problems.report(f"the column {name!r} must hold true or false, and does not at row {_rows(wrong)}")
    return np.array([value is True or value == 1 for value in values.tolist()], dtype=np.bool_)


def _identifiers(
    values: NDArray[Any] | None, role: str, columns: Mapping[str, str], length: int, problems: Problems
) -> NDArray[Any]:
    if values is None:
        return np.arange(length)
    if values.dtype.kind in "iu":
        return values
    missing = _missing(values)
    if missing.any():
        problems.report(
            f"the {role} ({columns[role]}) is missing at row {_rows(missing)}; every item needs one"
        )
    if values.dtype.kind == "f":
        whole = np.where(missing, -1, values)
        if (whole == np.floor(whole)).all():
            return whole.astype(np.int64)
    return np.array(["" if value is None else str(value) for value in values.tolist()], dtype=np.str_)


def _check_unique(
    cluster: NDArray[Any] | None, item: NDArray[Any] | None, columns: Mapping[str, str], problems: Problems
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
            f"the item ids ({columns['item']}) must be unique{where}; one stands again at row {_rows(again)}",
            way_out="name another item column, or a cluster column if an item is asked of several",
        )


def _check_confidence(signal: Signal, outcome: NDArray[np.uint8], name: str, problems: Problems) -> None:
    if problems.collect:
        wrong = ~np.isfinite(signal.values) & (outcome == Outcome.ANSWERED)
        if wrong.any():
            problems.report(
                f"the confidence ({name}) is missing or not finite for an answered item at row {_rows(wrong)}"
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
            name, values = name.removesuffix(JSON_SUFFIX), np.empty(len(column), dtype=object)
            values[:] = [None if text is None else json.loads(text) for text in column.tolist()]
        metadata[name] = values
    return metadata


def _rows(wrong: NDArray[np.bool_]) -> str:
    rows = np.flatnonzero(wrong)
    listed = ", ".join(str(row) for row in rows[:5])
    return listed if len(rows) <= 5 else f"{listed} ... ({len(rows):,} such rows)"


def _missing(values: NDArray[Any]) -> NDArray[np.bool_]:
    if values.dtype.kind == "f":
        return np.isnan(values)
    if values.dtype.kind != "O":
        return np.zeros(len(values), np.bool_)
    return np.array([_is_missing(value) for value in values.tolist()], dtype=np.bool_)


def _is_missing(value: object) -> bool:
    return value is None or value != value  # noqa: PLR0124  (NaN is the one value that is not itself)


def _usual_loss(items: Items) -> str:
    """Scores are as wrong as they are far off; labels, and the numbers 0 and 1, are right or wrong."""
    if items.truth.dtype.kind != "f" or items.prediction.dtype.kind != "f":
        return "zero_one"
    answered = items.answered
    binary = all(np.isin(column[answered], (0.0, 1.0)).all() for column in (items.truth, items.prediction))
    return "zero_one" if binary and items.scale is None else "abs_norm"


def cluster_noun(column: str | None) -> str:
    lowered = (column or "").casefold()
    return next((noun for noun in _NOUNS if lowered.startswith(noun)), "cluster")
