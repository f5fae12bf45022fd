"""From the rows of Inspect logs and lm-eval samples to items, and from several files to one table.

Both have a grade for each answer, and the grade decides: a right answer may be worded differently from the target, and
a wrong one may look like it. If every grade is 0 or 1, truth and prediction are labels: the truth is the target, and
the prediction is the target if the answer is right, otherwise the answer. So loss ``zero_one`` follows the grades. If
grades have other values (0.5, 7 of 10), the truth is the highest grade, the prediction is the grade, and the scale is
declared. So loss ``abs`` is the missing part of the grade. Answer, target and grade are metadata in both cases. Only
the beginning of a long text is kept.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from abstain import _files, _validate, labels
from abstain._signals import consistency_signals, token_signals
from abstain.errors import ArgumentError, DataError, FormatError, at, list_names
from abstain.items import Items, Outcome, Signal, columns_from_rows, identifiers, signals_from_rows
from abstain.readers._rules import joined_counts, looks_like_refusals
from abstain.readers._values import as_number

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import msgspec
    from numpy.typing import NDArray

    from abstain.readers._rules import Ruling

TEXT_LIMIT = 256
GRADED_WRONG = "(graded wrong)"


@dataclass(slots=True)
class LogRow:
    """One answer of a log.

    Several answers to one question have different epochs, from 1. The answer is the one that the scorer extracted. The
    grade is NaN if there is none.
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
    """Turn an answer into an abstention if a rule finds one in its texts."""
    right = None if math.isnan(row.grade) else row.grade >= 1.0
    if ruling.declines(*texts, right=right):
        row.outcome = Outcome.ABSTAINED


def token_log_signals(tokens: Sequence[Mapping[str, Any]], location: str) -> dict[str, float | None]:
    """Return the token signals of an answer: all three if there are top log-probabilities, otherwise the first."""
    if not tokens:
        return {}
    with at(location):
        if all(token.get("top_logprobs") for token in tokens):
            return asdict(token_signals(tokens))
        own = [{"logprob": token.get("logprob"), "top_logprobs": [token]} for token in tokens]
        return {"token_msp": token_signals(own).token_msp}


def agreement(samples: Sequence[str | None]) -> dict[str, float | None]:
    """Return the consistency signals of repeated answers; None is an abstention.

    Answers that are all numbers are compared as numbers, others as text without regard to case and spacing. Text has no
    standard deviation.

    >>> agreement(["Paris", "paris ", None])["consistency_modal_confidence"]
    0.6666666666666666
    """
    numbers, numeric = _comparable(samples)
    signals = asdict(consistency_signals(numbers))
    signals["consistency_modal_count"] = float(signals["consistency_modal_count"])
    if not numeric:
        del signals["consistency_modal_score"], signals["consistency_score_std"]
    return signals


def agreement_with_others(samples: Sequence[str | None]) -> list[float | None]:
    """Return for each of several answers the proportion of the others that equal it; null for a single answer.

    >>> agreement_with_others(["Paris", "paris ", None])
    [0.5, 0.5, 0.0]
    """
    numbers, _ = _comparable(samples)
    others = len(samples) - 1
    return [(numbers.count(number) - 1) / others if others else None for number in numbers]


def _comparable(samples: Sequence[str | None]) -> tuple[list[float | None], bool]:
    """Return answers as numbers, equal for equal answers, and whether the answers themselves are numbers."""
    numbers = [as_number(sample) for sample in samples]
    numeric = all(
        sample is None or (number is not None and math.isfinite(number))
        for number, sample in zip(numbers, samples, strict=True)
    )
    if not numeric:
        codes: dict[str, float] = {}
        texts = [None if sample is None else " ".join(sample.casefold().split()) for sample in samples]
        numbers = [None if text is None else codes.setdefault(text, float(len(codes))) for text in texts]
    return numbers, numeric


def items_from_log(
    rows: Sequence[LogRow], path: object, *, scale: Sequence[float] | None, cluster_noun: str
) -> Items:
    """Return the items of graded rows; the docstring of the module defines their truth and prediction."""
    if not rows:
        raise DataError(f"{path}: the log has no samples")
    names, clusters = (
        _name_column([getattr(row, role) for row in rows], f"{path}: the {role}")
        for role in ("item", "cluster")
    )
    duplicate = _first_repeated(names.tolist())
    if duplicate is not None:
        raise DataError(
            f"{path}: the item {rows[duplicate].item} appears twice (again as sample {duplicate + 1}); "
            "ids must be unique"
        )
    for row in rows:
        if row.outcome == Outcome.ANSWERED and math.isnan(row.grade):
            row.outcome = Outcome.UNSCORED
    answered = [row for row in rows if row.outcome == Outcome.ANSWERED]
    grades = {row.grade for row in answered}
    if scale is None and grades <= {0.0, 1.0}:
        targets = [None if row.outcome == Outcome.UNSCORED else _shorten(row.target) for row in rows]
        truth, prediction = _validate.objects(targets), _validate.objects([_label(row) for row in rows])
        bounds = None
    else:
        truth, prediction, bounds = _grades(rows, scale, grades, path)
    columns = columns_from_rows([row.metadata for row in rows], f"{path}: the metadata of samples")
    metadata: dict[str, NDArray[Any]] = {
        **{name: _validate.objects(column) for name, column in columns.items()},
        # These take precedence over metadata of the same name.
        "answer": _validate.objects([_shorten(row.answer) for row in rows]),
        "target": _validate.objects([_shorten(row.target) for row in rows]),
        "grade": np.array([row.grade for row in rows]),
    }
    answers = [(row.answer, row.grade == 1.0) for row in answered if row.answer is not None]
    return Items(
        truth=truth,
        prediction=prediction,
        outcome=np.array([row.outcome for row in rows], dtype=np.uint8),
        cluster=clusters,
        item=names,
        signals=signals_from_rows([row.signals for row in rows], subject=f"{path}: the signals of samples"),
        metadata=metadata,
        scale=bounds,
        cluster_noun=cluster_noun,
        provenance={"path": str(path), **looks_like_refusals(answers)},
    )


def _shorten(text: str | None) -> str | None:
    """Return the beginning of a text that is too long for a label."""
    return text if text is None or len(text) <= TEXT_LIMIT else text[: TEXT_LIMIT - 1] + "\u2026"


def _name_column(values: Sequence[int | str], label: str) -> NDArray[Any]:
    """Return ids as a column: whole numbers if all of them are, otherwise text."""
    are_whole = all(isinstance(value, int) for value in values)
    return identifiers(values if are_whole else [str(value) for value in values], label)


def keep_scalars(record: Mapping[str, msgspec.Raw], location: str) -> dict[str, Any]:
    """Return the numbers, booleans and texts of a record, long texts by their beginning."""
    values = {
        key: scalar(value, f"{location}, {key}") for key, value in record.items() if not is_nested(value)
    }
    return {key: _shorten(value) if isinstance(value, str) else value for key, value in values.items()}


def is_nested(value: msgspec.Raw) -> bool:
    """Return whether JSON text is a list or an object, which cannot be a cell of a table."""
    return bytes(memoryview(value)[:1]) in (b"{", b"[")


def scalar_or_none(value: msgspec.Raw, location: object) -> bool | float | str | None:
    """Return the number, text or boolean of JSON text, or None for null, a list or an object."""
    return None if is_nested(value) else scalar(value, location)


def scalar(value: msgspec.Raw | bytes, location: object) -> bool | float | str | None:
    """Return the number, text, boolean or null of JSON text."""
    decoded = _files.decode(value, bool | int | float | str | None, location)  # type: ignore[arg-type]
    if type(decoded) is int and not math.isfinite(as_number(decoded) or 0.0):
        raise FormatError(f"{location}: it is too large for a number")
    return decoded


def named_cluster(record: Mapping[str, msgspec.Raw], key: str, location: str, part: str) -> int | str:
    """Return the cluster id of a record under `key`; the error for a missing key lists the other keys."""
    if key not in record:
        hint = _validate.suggestion(key, record)
        raise ArgumentError(
            f"{location}: has no {key!r} in its {part}{hint}; it has: {list_names(record) or 'none'}"
        )
    value = scalar_or_none(record[key], location)
    if isinstance(value, bool) or not isinstance(value, (int, str)):
        raise DataError(f"{location}: {key!r} must be text or a whole number to be a cluster")
    return value


def _label(row: LogRow) -> str | None:
    if row.outcome != Outcome.ANSWERED:
        return None
    target, answer = _shorten(row.target), _shorten(row.answer)
    if row.grade == 1.0:
        return target
    # A wrong answer that looks like the target must not count as right.
    alike = answer is None or labels.canonical(answer, "answer", 0) == labels.canonical(target, "target", 0)
    return GRADED_WRONG if alike else answer


def _grades(
    rows: Sequence[LogRow], scale: Sequence[float] | None, grades: set[float], path: object
) -> tuple[NDArray[Any], NDArray[Any], tuple[float, float]]:
    low, high = (0.0, 1.0) if scale is None else _validate.scale(scale)
    outside = [grade for grade in grades if not low <= grade <= high]
    if outside:
        raise DataError(
            f"{path}: a score of {outside[0]:g} is outside {low:g} to {high:g}; set the lowest and the highest "
            "score (scale, --scale)"
        )
    evaluated = [row.outcome <= Outcome.ABSTAINED for row in rows]
    truth = np.where(evaluated, high, np.nan)
    prediction = np.array([row.grade if row.outcome == Outcome.ANSWERED else math.nan for row in rows])
    return truth, prediction, (low, high)


def concatenate(parts: Sequence[Items]) -> Items:
    """Return the rows of all parts; the names of different tasks are put before their ids."""
    tasks = [part.provenance.get("task") for part in parts]
    if len(set(tasks)) > 1 and all(tasks):
        parts = [_prefixed(part, f"{task}/") for part, task in zip(parts, tasks, strict=True)]
    if len({(part.truth.dtype.kind == "f", part.scale) for part in parts}) > 1:
        raise DataError(
            "the files are scored differently (labels in one, grades or another scale in another); read them one by one"
        )
    if len({(part.intervals is None, part.classes) for part in parts}) > 1:
        raise DataError(
            "the files have different predictions (only some have intervals, or sets of the same classes); "
            "read them one by one"
        )
    joined = stack(parts)
    row = _first_repeated(zip(joined.cluster.tolist(), joined.item.tolist(), strict=True))
    if row is not None:
        raise DataError(
            f"{joined.describe_row(row)} is in more than one file; read the files one by one, or compare them"
        )
    paths = ", ".join(str(part.provenance.get("path")) for part in parts)
    return joined.with_provenance(path=paths, sha256=None, **_counts_of_all(joined, parts))


def stack(parts: Sequence[Items]) -> Items:
    """Return the rows of items with the same columns one after the other, with all properties of the first."""
    columns: dict[str, Any] = {
        name: np.concatenate([getattr(part, name) for part in parts])
        for name in ("truth", "prediction", "outcome", "intervals", "sets")
        if getattr(parts[0], name) is not None
    }
    for name in ("cluster", "item"):
        ids = [identifier for part in parts for identifier in getattr(part, name).tolist()]
        columns[name] = _name_column(ids, "the name")
    if any(part.weight is not None for part in parts):
        weights = [np.ones(len(part)) if part.weight is None else part.weight for part in parts]
        columns["weight"] = np.concatenate(weights)
    signal_names = dict.fromkeys(name for part in parts for name in part.signals)
    metadata_names = dict.fromkeys(name for part in parts for name in part.metadata)
    return replace(
        parts[0],
        **columns,
        signals={name: _joined_signal(parts, name) for name in signal_names},
        metadata={
            name: np.concatenate([part.metadata.get(name, np.full(len(part), None)) for part in parts])
            for name in metadata_names
        },
        unnamed=tuple(dict.fromkeys(field for part in parts for field in part.unnamed)),
        aggregation=None,
    )


def _counts_of_all(joined: Items, parts: Sequence[Items]) -> dict[str, Any]:
    """Return the provenance that counts answers, over all files and not only the first."""
    rules = [part.provenance["abstention_rule"] for part in parts if "abstention_rule" in part.provenance]
    counts: dict[str, Any] = {"abstention_rule": joined_counts(rules)} if rules else {}
    if {"answer", "grade"} <= joined.metadata.keys():
        texts, grades = (joined.metadata[name][joined.answered].tolist() for name in ("answer", "grade"))
        rows = zip(texts, grades, strict=True)
        answers = [(text, grade == 1.0) for text, grade in rows if isinstance(text, str)]
        counts |= {"refusals": None} | looks_like_refusals(answers)
    return counts


def _prefixed(part: Items, prefix: str) -> Items:
    cluster, item = (
        identifiers([f"{prefix}{value}" for value in ids.tolist()]) for ids in (part.cluster, part.item)
    )
    return replace(part, cluster=cluster, item=item)


def _joined_signal(parts: Sequence[Items], name: str) -> Signal:
    signals = [
        part.signals.get(name) or Signal(np.full(len(part), np.nan), np.ones(len(part), np.bool_))
        for part in parts
    ]
    return Signal(
        np.concatenate([signal.values for signal in signals]),
        np.concatenate([signal.absent for signal in signals]),
    )


def _first_repeated(keys: Iterable[Any]) -> int | None:
    """Return the position of the first key that occurred before."""
    seen: set[Any] = set()
    for row, key in enumerate(keys):
        if key in seen:
            return row
        seen.add(key)
    return None
