"""Samples of lm-evaluation-harness: ``samples_*.jsonl``, one line per document and filter.

Multiple choice: the prediction is the choice of highest log-likelihood (numbers that this harness writes as
text), the confidence its share of the softmax, and the choices together count as one token for the token
signals. Generation: the prediction is the filtered response, judged by the harness's own metric, because
that knows which parts of an answer to ignore; repeated responses give the consistency signals. The harness
has no notion of abstaining: that takes an abstention rule. Documents are the clusters.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from abstain import _validate
from abstain.errors import ArgumentError, DataError, FormatError
from abstain.items import Items, Outcome
from abstain.sources._log_items import (
    LogRow,
    agreement,
    apply_rule,
    items_from_log,
    keep_scalars,
    named_cluster,
    token_log_signals,
)
from abstain.sources._rules import Ruling
from abstain.sources._values import as_number

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Mapping, Sequence

    from abstain.sources._rules import AbstentionRule

__all__ = ["LM_EVAL_KEYS", "read_lm_eval"]

LM_EVAL_KEYS = frozenset({"doc_id", "doc", "filtered_resps"})
_MUTUAL_INFORMATION = "acc_mutual_info"
# How a metric that says right or wrong is called; the first that a line has is its judge.
_USUAL_METRICS = ("exact_match", "acc", "exact_match_original", "pass@1", "acc_norm")
# What the items themselves say of an answer, and a document may not say instead.
_RESERVED = ("answer", "target", "grade")


def read_lm_eval(
    path: str | os.PathLike[str],
    *,
    scorer: str | None = None,
    filter_name: str | None = None,
    cluster: str | None = None,
    rule: AbstentionRule | None = None,
    scale: Sequence[float] | None = None,
) -> Items:
    """Read one file of samples; see `abstain.read`."""
    ruling = Ruling(rule)
    filters: dict[str, None] = {}
    rows = []
    for number, record in _records(path):
        place = f"{path}: line {number}"
        name = str(record.get("filter", "none"))
        filters[name] = None
        if filter_name is None or name == filter_name:
            rows.append((name, _row(record, place, scorer, cluster, ruling)))
    if filter_name is not None and not rows:
        hint = _validate.suggestion(filter_name, filters)
        raise ArgumentError(
            f"{path}: has no filter {filter_name!r}{hint}; filters here: {', '.join(filters)}"
        )
    if len({name for name, _ in rows}) > 1:
        for name, row in rows:
            row.item = f"{row.item}_{name}"
            row.metadata["filter"] = name
    items = items_from_log([row for _, row in rows], path, scale=scale, cluster_noun=cluster or "document")
    return items.with_provenance(filters=tuple(filters), **ruling.provenance())


def _records(path: str | os.PathLike[str]) -> Iterator[tuple[int, dict[str, Any]]]:
    with Path(path).open("rb") as file:
        for number, line in enumerate(file, start=1):
            if not line.strip():
                continue
            record = _record(line, f"{path}: line {number}")
            missing = LM_EVAL_KEYS - record.keys()
            if missing:
                raise FormatError(
                    f"{path}: line {number} is no sample: it lacks {', '.join(sorted(missing))}"
                )
            yield number, record


def _record(line: bytes, place: str) -> dict[str, Any]:
    try:
        record = msgspec.json.decode(line)
    except (msgspec.DecodeError, RecursionError):
        try:  # the harness writes NaN where a metric is undefined, which strict JSON does not know
            record = json.loads(line)
        except (ValueError, RecursionError):
            raise FormatError(f"{place}: not JSON; the file may be cut off") from None
    if not isinstance(record, dict):
        raise FormatError(f"{place}: must be an object")
    return record


def _row(
    record: Mapping[str, Any], place: str, scorer: str | None, cluster: str | None, ruling: Ruling
) -> LogRow:
    identifier = record["doc_id"]
    if isinstance(identifier, bool) or not isinstance(identifier, (int, str)):
        raise FormatError(f"{place}: doc_id must be a whole number or text")
    row = LogRow(
        question=identifier,
        item=identifier,
        cluster=identifier,
        outcome=Outcome.ANSWERED,
        answer=None,
        target=_text(record.get("target")),
        metadata={key: value for key, value in keep_scalars(record["doc"]).items() if key not in _RESERVED},
    )
    if cluster is not None and cluster not in ("doc", "doc_id"):
        row.cluster = named_cluster(record["doc"], cluster, place, "doc")
    responses = record["filtered_resps"]
    if not isinstance(responses, list) or not responses:
        raise FormatError(f"{place}: filtered_resps must be a list of at least one response")
    likelihoods = [_likelihood(response) for response in responses]
    if all(value is not None for value in likelihoods):
        texts = _judge_choices(
            row, record, [value for value in likelihoods if value is not None], scorer, place
        )
    else:
        texts = _judge_response(row, record, responses, scorer, place)
    apply_rule(ruling, row, texts)
    return row


def _judge_choices(
    row: LogRow, record: Mapping[str, Any], likelihoods: list[float], scorer: str | None, place: str
) -> tuple[str, ...]:
    """Fill in a multiple-choice row; return the label and the wording of the choice."""
    if _MUTUAL_INFORMATION in (record.get("metrics") or ()):
        # The second half is the likelihood without the question.
        likelihoods = likelihoods[: len(likelihoods) // 2]
    if len(likelihoods) < 2:
        # A single continuation was scored: its likelihood says nothing about other answers.
        row.grade = _metric(record, scorer, place)
        return ()
    best = max(range(len(likelihoods)), key=likelihoods.__getitem__)
    wordings = _wordings(record, len(likelihoods))
    row.answer = str(best)
    if scorer is not None:
        row.grade = _metric(record, scorer, place)
    elif _is_index(row.target, len(likelihoods)):
        row.grade = float(int(row.target) == best)
    elif row.target in wordings:
        row.grade = float(wordings[best] == row.target)
    else:
        row.grade = _metric(record, None, place)
    row.signals |= _choice_signals(likelihoods, best, place)
    return (row.answer, wordings[best]) if wordings else (row.answer,)


def _choice_signals(likelihoods: list[float], best: int, place: str) -> dict[str, float | None]:
    peak = likelihoods[best]
    if not math.isfinite(peak):
        raise DataError(f"{place}: the log-likelihood of the best choice is {peak}; it must be finite")
    shares = [math.exp(value - peak) for value in likelihoods]
    total = sum(shares)
    ranked = sorted((share / total for share in shares), reverse=True)
    alternatives = [{"logprob": min(value, 0.0)} for value in likelihoods]
    token = {"logprob": min(peak, 0.0), "top_logprobs": alternatives}
    return {
        "confidence": ranked[0],
        "choice_margin": ranked[0] - ranked[1],
        **token_log_signals([token], place),
    }


def _judge_response(
    row: LogRow, record: Mapping[str, Any], responses: list[Any], scorer: str | None, place: str
) -> tuple[str, ...]:
    """Fill in a generated answer; return what was filtered out of it and what was said."""
    first = responses[0]
    row.answer = _text(first[0] if isinstance(first, list) and first else first)
    row.grade = _metric(record, scorer, place, fallback=float(row.answer.strip() == row.target.strip()))
    said = record.get("resps")
    samples = said[0] if isinstance(said, list) and said and isinstance(said[0], list) else []
    texts = [sample for sample in samples if isinstance(sample, str)]
    if len(texts) > 1:
        row.signals |= agreement([text if text.strip() else None for text in texts])
    # Of several responses, what was said is what most of them say.
    common = Counter(texts).most_common(1)
    return (row.answer, *(text for text, count in common if 2 * count > len(texts)))


def _metric(
    record: Mapping[str, Any], scorer: str | None, place: str, fallback: float | None = None
) -> float:
    named = [name for name in record.get("metrics") or () if isinstance(name, str)]
    if scorer is not None:
        if scorer not in record:
            hint = _validate.suggestion(scorer, named)
            raise ArgumentError(
                f"{place}: has no metric {scorer!r}{hint}; metrics here: {', '.join(named) or 'none'}"
            )
        return _grade(record[scorer], scorer, place)
    for name in (*(usual for usual in _USUAL_METRICS if usual in named), *named):
        value = record.get(name)
        if isinstance(value, (bool, int, float)):
            return _grade(value, name, place)
    if fallback is None:
        raise FormatError(f"{place}: nothing says whether the answer is right; the sample has no metric")
    return fallback


def _grade(value: object, name: str, place: str) -> float:
    if isinstance(value, (bool, int, float)):
        return float(value)
    raise DataError(f"{place}: the metric {name!r} must be a number for each sample to be a verdict")


def _likelihood(response: object) -> float | None:
    """Return the log-likelihood of a (log-likelihood, is greedy) pair, or None for anything else."""
    if not isinstance(response, list) or len(response) != 2 or str(response[1]) not in ("True", "False"):
        return None
    return as_number(response[0])


def _wordings(record: Mapping[str, Any], count: int) -> list[str]:
    """Return the continuation of each choice, as it was asked for; nothing when the file does not say."""
    asked = record.get("arguments")
    found = list(asked.values()) if isinstance(asked, dict) else []
    wordings = [_text(entry.get("arg_1")).strip() for entry in found if isinstance(entry, dict)]
    return wordings[:count] if len(wordings) >= count else []


def _is_index(text: str, count: int) -> bool:
    return text.isdecimal() and int(text) < count


def _text(value: object) -> str:
    if isinstance(value, list):
        return " | ".join(str(part) for part in value)
    return "" if value is None else str(value)
