"""From judged log rows to items, and from several logs to one: what Inspect logs and lm-eval samples have in common.

Both logs carry a judge's verdict beside each answer, and the verdict rules: an answer may be right though it
is worded differently, and wrong though it looks alike. Where every verdict is right or wrong, truth and
prediction are labels: the target, and for a right answer the target again, else what the model said; so
loss ``zero_one`` counts what the judge counted. Where verdicts are graded (0.5, 7 of 10), the truth is the
highest grade, the prediction the grade given, and the scale is declared; so loss ``abs`` is what was missing.
Answer, target and grade stand in the metadata either way. Long texts are kept by their beginning: items hold
labels, not transcripts.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from abstain import _files, _validate, labels
from abstain._signals import consistency_signals, token_signals
from abstain.errors import ArgumentError, DataError, FormatError
from abstain.items import Items, Outcome, Signal, columns_from_rows, identifiers, signals_from_rows
from abstain.readers._rules import joined_counts, looks_like_refusals
from abstain.readers._values import as_number

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import msgspec
    from numpy.typing import NDArray

    from abstain.readers._rules import Ruling

TEXT_LIMIT = 256
JUDGED_WRONG = "(judged wrong)"


@dataclass(slots=True)
class LogRow:
    """One answer of a log.

    Attributes:
        question: what was asked; answers to the same question are samples of one another.
        item: the name of the item.
        cluster: the id of its cluster.
        outcome: answered until known better.
        answer: what the model said, as the judge read it.
        target: what is right.
        grade: the judge's verdict as a number, NaN where there is none.
        signals: numbers that a confidence may be made of.
        metadata: anything else worth keeping.
        epoch: which time the question was asked.
    """

    question: int | str
    item: int | str
    cluster: int | str
    outcome: Outcome
    answer: str | None
    target: str
    grade: float = math.nan
    signals: dict[str, float | None] = field(default_factory=dict)
    metadata: dict[str, Any] = field(default_factory=dict)
    epoch: int = 1


def apply_rule(ruling: Ruling, row: LogRow, texts: Iterable[str | None]) -> None:
    """Let a rule say whether an answer that the log does not mark is an abstention; what it cannot tell stays."""
    right = None if math.isnan(row.grade) else row.grade >= 1.0
    if row.outcome == Outcome.ANSWERED and ruling.declines(*texts, right=right):
        row.outcome = Outcome.ABSTAINED


def token_log_signals(tokens: Sequence[Mapping[str, Any]], place: str) -> dict[str, float | None]:
    """Return the token signals of an answer: all three with top log-probabilities, else the first alone."""
    if not tokens:
        return {}
    try:
        if all(token.get("top_logprobs") for token in tokens):
            return asdict(token_signals(tokens))
        own = [{"logprob": token.get("logprob"), "top_logprobs": [token]} for token in tokens]
        return {"token_msp": token_signals(own).token_msp}
    except DataError as problem:
        raise DataError(f"{place}: {problem}") from None


def agreement(samples: Sequence[str | None]) -> dict[str, float | None]:
    """Return the consistency signals of repeated answers; None is an abstention.

    Answers that are all numbers are compared as numbers; else by their wording, whatever its case and
    spacing, and then there is no spread to speak of.

    >>> agreement(["Paris", "paris ", None])["consistency_modal_confidence"]
    0.6666666666666666
    """
    numbers = [as_number(sample) for sample in samples]
    numeric = all(
        sample is None or (number is not None and math.isfinite(number))
        for number, sample in zip(numbers, samples, strict=True)
    )
    if not numeric:
        codes: dict[str, float] = {}
        numbers = [
            None if sample is None else codes.setdefault(_plain(sample), float(len(codes)))
            for sample in samples
        ]
    signals = asdict(consistency_signals(numbers))
    signals["consistency_modal_count"] = float(signals["consistency_modal_count"])
    if not numeric:
        del signals["consistency_modal_score"], signals["consistency_score_std"]
    return signals


def items_from_log(
    rows: Sequence[LogRow], path: object, *, scale: Sequence[float] | None, cluster_noun: str
) -> Items:
    """Return the items of judged rows; see the module for what truth and prediction are."""
    if not rows:
        raise DataError(f"{path}: the log holds no samples")
    names, clusters = (
        _name_column([getattr(row, role) for row in rows], f"{path}: the {role}")
        for role in ("item", "cluster")
    )
    again = _first_repeated(names.tolist())
    if again is not None:
        raise DataError(
            f"{path}: the item {rows[again].item} stands twice (again as sample {again + 1}); ids must be unique"
        )
    for row in rows:
        if row.outcome == Outcome.ANSWERED and math.isnan(row.grade):
            row.outcome = Outcome.UNSCORED
    grades = {row.grade for row in rows if row.outcome == Outcome.ANSWERED}
    if scale is None and grades <= {0.0, 1.0}:
        targets = [None if row.outcome == Outcome.UNSCORED else _shorten(row.target) for row in rows]
        truth, prediction = _validate.objects(targets), _validate.objects([_label(row) for row in rows])
        bounds = None
    else:
        truth, prediction, bounds = _grades(rows, scale, grades, path)
    kept = columns_from_rows([row.metadata for row in rows], f"{path}: the metadata of samples")
    metadata: dict[str, NDArray[Any]] = {
        **{name: _validate.objects(column) for name, column in kept.items()},
        # What the log itself says of an answer, which metadata may not say instead.
        "answer": _validate.objects([_shorten(row.answer) for row in rows]),
        "target": _validate.objects([_shorten(row.target) for row in rows]),
        "grade": np.array([row.grade for row in rows]),
    }
    return Items(
        truth=truth,
        prediction=prediction,
        outcome=np.array([row.outcome for row in rows], dtype=np.uint8),
        cluster=clusters,
        item=names,
        signals=signals_from_rows([row.signals for row in rows], what=f"{path}: the signals of samples"),
        metadata=metadata,
        scale=bounds,
        cluster_noun=cluster_noun,
        provenance={
            "path": str(path),
            **looks_like_refusals(
                [
                    (row.answer, row.grade == 1.0)
                    for row in rows
                    if row.outcome == Outcome.ANSWERED and row.answer is not None
                ]
            ),
        },
    )


def _plain(text: str) -> str:
    """Return text without what does not matter when answers are compared."""
    return " ".join(text.casefold().split())


def _shorten(text: str | None) -> str | None:
    """Return the beginning of a text that is too long for a label."""
    return text if text is None or len(text) <= TEXT_LIMIT else text[: TEXT_LIMIT - 1] + "\u2026"


def _name_column(values: Sequence[int | str], what: str) -> NDArray[Any]:
    """Return ids as a column: whole numbers if all are, else text."""
    whole = all(isinstance(value, int) for value in values)
    return identifiers(values if whole else [str(value) for value in values], what)


def keep_scalars(record: Mapping[str, msgspec.Raw], place: str) -> dict[str, Any]:
    """Return what of a record can stand in a table: numbers, booleans and short text."""
    found = {key: scalar(value, f"{place}, {key}") for key, value in record.items() if not is_nested(value)}
    return {key: _shorten(value) if isinstance(value, str) else value for key, value in found.items()}


def is_nested(value: msgspec.Raw) -> bool:
    """True for a list or an object, which no cell of a table can hold."""
    return bytes(memoryview(value)[:1]) in (b"{", b"[")


def scalar(value: msgspec.Raw | bytes, place: object) -> bool | float | str | None:
    """Return the number, text, boolean or null that JSON text stands for."""
    found = _files.decode(value, bool | int | float | str | None, place)  # type: ignore[arg-type]
    if type(found) is int and not math.isfinite(as_number(found) or 0.0):
        raise FormatError(f"{place}: it is too large for a number")
    return found


def named_cluster(record: Mapping[str, msgspec.Raw], key: str, place: str, what: str) -> int | str:
    """Return the cluster id that a record holds under `key`, or say which keys there are."""
    if key not in record:
        hint = _validate.suggestion(key, record)
        raise ArgumentError(
            f"{place}: has no {key!r} in its {what}{hint}; it has: {', '.join(record) or 'none'}"
        )
    value = None if is_nested(record[key]) else scalar(record[key], place)
    if isinstance(value, bool) or not isinstance(value, (int, str)):
        raise DataError(f"{place}: {key!r} must be text or a whole number to be a cluster")
    return value


def _label(row: LogRow) -> str | None:
    if row.outcome != Outcome.ANSWERED:
        return None
    target, answer = _shorten(row.target), _shorten(row.answer)
    if row.grade == 1.0:
        return target
    # What was judged wrong must not count as right because it looks alike.
    alike = answer is None or labels.canonical(answer, "answer", 0) == labels.canonical(target, "target", 0)
    return JUDGED_WRONG if alike else answer


def _grades(
    rows: Sequence[LogRow], scale: Sequence[float] | None, grades: set[float], path: object
) -> tuple[NDArray[Any], NDArray[Any], tuple[float, float]]:
    low, high = (0.0, 1.0) if scale is None else _validate.scale(scale)
    outside = [grade for grade in grades if not low <= grade <= high]
    if outside:
        raise DataError(
            f"{path}: a score of {outside[0]:g} is outside {low:g} to {high:g}; say what the lowest and the highest "
            "score are (scale, --scale)"
        )
    judged = [row.outcome <= Outcome.ABSTAINED for row in rows]
    truth = np.where(judged, high, np.nan)
    prediction = np.array([row.grade if row.outcome == Outcome.ANSWERED else math.nan for row in rows])
    return truth, prediction, (low, high)


def concatenate(parts: Sequence[Items]) -> Items:
    """Return the rows of all parts; where the parts are different tasks, their names keep ids apart."""
    tasks = [part.provenance.get("task") for part in parts]
    if len(set(tasks)) > 1 and all(tasks):
        parts = [_prefixed(part, f"{task}/") for part, task in zip(parts, tasks, strict=True)]
    if len({(part.truth.dtype.kind == "f", part.scale) for part in parts}) > 1:
        raise DataError(
            "the files are not scored alike (labels in one, grades or another scale in the other)"
        )
    if len({(part.intervals is None, part.classes) for part in parts}) > 1:
        raise DataError(
            "the files do not predict alike (intervals, or sets of the same classes, in some alone)"
        )
    joined = stack(parts)
    row = _first_repeated(zip(joined.cluster.tolist(), joined.item.tolist(), strict=True))
    if row is not None:
        raise DataError(
            f"{joined.describe_row(row)} stands in more than one file; read the files one by "
            "one, or compare them"
        )
    paths = ", ".join(str(part.provenance.get("path")) for part in parts)
    return joined.with_provenance(path=paths, sha256=None, **_counts_of_all(joined, parts))


def stack(parts: Sequence[Items]) -> Items:
    """Return the rows of items of one kind one after the other, with the provenance of the first."""
    first = parts[0]
    weighed = any(part.weight is not None for part in parts)
    return Items(
        truth=np.concatenate([part.truth for part in parts]),
        prediction=np.concatenate([part.prediction for part in parts]),
        outcome=np.concatenate([part.outcome for part in parts]),
        cluster=_joined_ids([part.cluster for part in parts]),
        item=_joined_ids([part.item for part in parts]),
        signals={name: _joined_signal(parts, name) for name in _names(part.signals for part in parts)},
        metadata={name: _joined_metadata(parts, name) for name in _names(part.metadata for part in parts)},
        scale=first.scale,
        cluster_noun=first.cluster_noun,
        provenance=first.provenance,
        unnamed=tuple(dict.fromkeys(role for part in parts for role in part.unnamed)),
        weight=np.concatenate([_weight(part) for part in parts]) if weighed else None,
        intervals=_joined([part.intervals for part in parts]),
        sets=_joined([part.sets for part in parts]),
        classes=first.classes,
        positive=first.positive,
    )


def _counts_of_all(joined: Items, parts: Sequence[Items]) -> dict[str, Any]:
    """Return the provenance that counts answers: over all files, not only the first."""
    rules = [part.provenance["abstention_rule"] for part in parts if "abstention_rule" in part.provenance]
    counts: dict[str, Any] = {"abstention_rule": joined_counts(rules)} if rules else {}
    if {"answer", "grade"} <= joined.metadata.keys():
        rows = zip(
            joined.metadata["answer"].tolist(),
            joined.metadata["grade"].tolist(),
            joined.answered,
            strict=True,
        )
        answers = [
            (text, grade == 1.0) for text, grade, answered in rows if answered and isinstance(text, str)
        ]
        counts |= {"refusals": None} | looks_like_refusals(answers)
    return counts


def _prefixed(part: Items, prefix: str) -> Items:
    cluster, item = (
        identifiers([f"{prefix}{value}" for value in ids.tolist()]) for ids in (part.cluster, part.item)
    )
    return replace(part, cluster=cluster, item=item)


def _names(columns: Iterable[Mapping[str, Any]]) -> list[str]:
    return list(dict.fromkeys(name for part in columns for name in part))


def _joined_ids(arrays: Sequence[NDArray[Any]]) -> NDArray[Any]:
    return _name_column([name for array in arrays for name in array.tolist()], "the name")


def _joined_signal(parts: Sequence[Items], name: str) -> Signal:
    missing = [Signal(np.full(len(part), np.nan), np.ones(len(part), np.bool_)) for part in parts]
    found = [part.signals.get(name, gap) for part, gap in zip(parts, missing, strict=True)]
    return Signal(
        np.concatenate([signal.values for signal in found]),
        np.concatenate([signal.absent for signal in found]),
    )


def _joined_metadata(parts: Sequence[Items], name: str) -> NDArray[Any]:
    columns = [part.metadata.get(name, np.full(len(part), None, dtype=object)) for part in parts]
    return np.concatenate(columns)


def _weight(part: Items) -> NDArray[np.float64]:
    return np.ones(len(part)) if part.weight is None else part.weight


def _joined(columns: Sequence[NDArray[Any] | None]) -> NDArray[Any] | None:
    """Return a column that all parts have, or that none has."""
    found = [column for column in columns if column is not None]
    return np.concatenate(found) if found else None


def _first_repeated(keys: Iterable[Any]) -> int | None:
    """Return where a key stands for the second time."""
    seen: set[Any] = set()
    for row, key in enumerate(keys):
        if key in seen:
            return row
        seen.add(key)
    return None
