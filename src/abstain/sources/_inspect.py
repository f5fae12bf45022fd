"""Inspect AI logs, ``.eval`` and ``.json``, without inspect_ai.

A ``.eval`` file is a zip archive with one zstd member a sample; a ``.json`` file holds all samples in one
array. Both are read one sample at a time, and of each sample only what is judged is kept. A scorer's value N,
or a reason of refusal or no_response, is an abstention; a sample with an error is failed; one without a
score, or with NaN for one, is unscored. Epochs of one question are not independent: they share a cluster,
and how far they agree gives the consistency signals.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
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
from abstain.sources._members import Archive, outer_members
from abstain.sources._rules import Ruling
from abstain.sources._values import as_number

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Sequence

    from abstain.sources._rules import AbstentionRule

__all__ = ["read_inspect"]

_NO_ANSWER = "N"
_REFUSALS = ("refusal", "no_response")
_VALUES = {"C": 1.0, "P": 0.5, "I": 0.0, "yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}


class _Token(msgspec.Struct):
    logprob: float
    top_logprobs: list[_Token] | None = None


class _Logprobs(msgspec.Struct):
    content: list[_Token] | None = None


class _Message(msgspec.Struct):
    content: Any = None


class _Choice(msgspec.Struct):
    message: _Message = msgspec.field(default_factory=_Message)
    logprobs: _Logprobs | None = None


class _Output(msgspec.Struct):
    choices: list[_Choice] = []
    completion: str = ""


class _Score(msgspec.Struct):
    value: Any
    answer: Any = None
    reason: str | None = None
    metadata: dict[str, Any] | None = None


class _Sample(msgspec.Struct):
    id: int | str
    epoch: int = 1
    target: str | list[str] = ""
    output: _Output = msgspec.field(default_factory=_Output)
    scores: dict[str, _Score] | None = None
    metadata: dict[str, Any] | None = None
    error: Any = None


class _Revision(msgspec.Struct):
    commit: str | None = None


class _Spec(msgspec.Struct):
    task: str = ""
    model: str = ""
    run_id: str | None = None
    revision: _Revision | None = None


class _Header(msgspec.Struct):
    eval: _Spec = msgspec.field(default_factory=_Spec)
    status: str = "started"


_SAMPLE = msgspec.json.Decoder(_Sample)


def read_inspect(
    path: str | os.PathLike[str],
    *,
    scorer: str | None = None,
    cluster: str | None = None,
    rule: AbstentionRule | None = None,
    scale: Sequence[float] | None = None,
    member_limit: int,
    total_limit: int,
) -> Items:
    """Read one log; see `abstain.read`."""
    header, rows, ruling = _Header(), [], Ruling(rule)
    reader = _Reader(path, scorer, cluster, ruling)
    for part in _parts(path, member_limit, total_limit):
        if isinstance(part, _Header):
            header = part
        else:
            rows.append(reader.row(part))
    reader.finish()
    epochs = any(row.epoch > 1 for row in rows) or len({row.question for row in rows}) < len(rows)
    if epochs:
        for row in rows:
            row.item = f"{row.question}_epoch_{row.epoch}"
        _add_agreement(rows)
    noun = cluster or ("question" if epochs else "sample")
    items = items_from_log(rows, path, scale=scale, cluster_noun=noun)
    revision = header.eval.revision
    return items.with_provenance(
        run_id=header.eval.run_id,
        git_commit=None if revision is None else revision.commit,
        task=header.eval.task,
        model=header.eval.model,
        status=header.status,
        scorer=reader.scorer,
        **ruling.provenance(),
    )


def _parts(path: str | os.PathLike[str], member_limit: int, total_limit: int) -> Iterator[_Header | _Sample]:
    """Yield the samples of a log, and its header wherever that stands."""
    with Path(path).open("rb") as file:
        archive = file.read(4) == b"PK\x03\x04"
    if not archive:
        header = _Header()
        for key, text in outer_members(path, limit=member_limit, arrays=("samples",)):
            if key == "samples":
                yield _decode_sample(text, path)
            elif key == "eval":
                header.eval = _decode(text, _Spec, f"{path}: eval")
            elif key == "status":
                header.status = _decode(text, str, f"{path}: status")
        yield header
        return
    with Archive(path, member_limit=member_limit, total_limit=total_limit) as log:
        names = log.names
        # A log whose run was cut off has no header yet, but its journal does.
        for name in ("header.json", "_journal/start.json"):
            if name in names:
                yield _decode(log.read(name), _Header, f"{path}: {name}")
                break
        else:
            raise FormatError(f"{path}: a zip archive, but no Inspect log (it has no header.json)")
        for name in names:
            if name.startswith("samples/") and name.endswith(".json"):
                yield _decode_sample(log.read(name), f"{path}: {name}")


def _decode_sample(text: bytes, place: object) -> _Sample:
    try:
        return _SAMPLE.decode(text)
    except msgspec.ValidationError as problem:
        raise FormatError(f"{place}: not a sample of an Inspect log ({problem})") from None
    except (msgspec.DecodeError, RecursionError):
        # Inspect writes NaN for a sample without a score, which strict JSON does not know.
        return _decode(text, _Sample, str(place))


def _decode(text: bytes, kind: type[Any], place: str) -> Any:
    try:
        return msgspec.convert(json.loads(text), kind)
    except msgspec.ValidationError as problem:
        raise FormatError(f"{place}: not the part of an Inspect log that it should be ({problem})") from None
    except (ValueError, RecursionError):
        raise FormatError(f"{place}: not JSON") from None


@dataclass(slots=True)
class _Reader:
    """Turns samples into rows; knows which scorer is asked for and remembers which there are."""

    path: object
    scorer: str | None
    cluster: str | None
    ruling: Ruling
    found: dict[str, None] = field(default_factory=dict)

    def row(self, sample: _Sample) -> LogRow:
        place = f"{self.path}: sample {sample.id}, epoch {sample.epoch}"
        score = self._score(sample.scores or {}, place)
        outcome, grade = _verdict(sample, score, place)
        row = LogRow(
            question=sample.id,
            item=sample.id,
            cluster=sample.id,
            outcome=outcome,
            answer=None if score is None or score.answer is None else str(score.answer),
            target=sample.target if isinstance(sample.target, str) else " | ".join(sample.target),
            grade=grade,
            metadata=keep_scalars(sample.metadata),
            epoch=sample.epoch,
        )
        if self.cluster is not None and self.cluster != "id":
            row.cluster = named_cluster(sample.metadata, self.cluster, place, "metadata")
        choice = sample.output.choices[0] if sample.output.choices else None
        if choice is not None and choice.logprobs is not None:
            tokens = [msgspec.to_builtins(token) for token in choice.logprobs.content or []]
            row.signals |= token_log_signals(tokens, place)
        if score is not None:
            row.signals |= _numbers(score.metadata)
        if outcome == Outcome.ANSWERED:
            completion = _completion(sample.output)
            if row.answer is None:
                row.answer = completion
            apply_rule(self.ruling, row, (row.answer, completion))
        return row

    def finish(self) -> None:
        """Complain about a scorer that no sample has."""
        name = (self.scorer or "").partition(".")[0]
        if (
            self.scorer is not None
            and self.found
            and name not in self.found
            and self.scorer not in self.found
        ):
            hint = _validate.suggestion(name, self.found)
            raise ArgumentError(
                f"{self.path}: has no scorer {name!r}{hint}; scorers here: {', '.join(self.found)}"
            )

    def _score(self, scores: dict[str, _Score], place: str) -> _Score | None:
        self.found.update(dict.fromkeys(scores))
        if not scores:
            return None
        if self.scorer is None:
            if len(scores) > 1:
                raise ArgumentError(
                    f"{self.path}: holds {len(scores)} scorers; choose one (scorer, --scorer): {', '.join(scores)}"
                )
            self.scorer = next(iter(scores))
        name, _, key = self.scorer.partition(".")
        if self.scorer in scores:
            name, key = self.scorer, ""
        score = scores.get(name)
        if score is None or not isinstance(score.value, dict):
            return score
        if key not in score.value:
            keys = ", ".join(f"{name}.{part}" for part in score.value)
            raise ArgumentError(f"{place}: the scorer {name!r} gives several values; choose one of: {keys}")
        return msgspec.structs.replace(score, value=score.value[key])


def _verdict(sample: _Sample, score: _Score | None, place: str) -> tuple[Outcome, float]:
    if sample.error is not None:
        return Outcome.FAILED, math.nan
    if score is None:
        return Outcome.UNSCORED, math.nan
    if score.value == _NO_ANSWER or score.reason in _REFUSALS:
        return Outcome.ABSTAINED, math.nan
    grade = _grade(score.value, place)
    return (Outcome.UNSCORED if math.isnan(grade) else Outcome.ANSWERED), grade


def _grade(value: object, place: str) -> float:
    if isinstance(value, (bool, int, float)):
        return float(value)
    if isinstance(value, str):
        known = _VALUES.get(value, _VALUES.get(value.lower()))
        number = as_number(value) if known is None else known
        if number is not None:
            return number
    if value is None:
        return math.nan
    raise DataError(
        f"{place}: the score must be C, I, P, N, a number or a boolean, got a {type(value).__name__}"
    )


def _completion(output: _Output) -> str:
    if not output.choices:
        return output.completion
    content = output.choices[0].message.content
    if isinstance(content, list):
        texts = [part.get("text") for part in content if isinstance(part, dict)]
        return " ".join(text for text in texts if isinstance(text, str))
    return content if isinstance(content, str) else output.completion


def _numbers(metadata: object) -> dict[str, float | None]:
    found = metadata if isinstance(metadata, dict) else {}
    return {
        str(key): float(value)
        for key, value in found.items()
        if isinstance(value, (int, float)) and not isinstance(value, bool)
    }


def _add_agreement(rows: Sequence[LogRow]) -> None:
    """Give every completed answer the consistency signals of its question."""
    samples: dict[int | str, list[LogRow]] = {}
    for row in rows:
        if row.outcome <= Outcome.ABSTAINED:
            samples.setdefault(row.question, []).append(row)
    for group in samples.values():
        answers = [None if row.outcome == Outcome.ABSTAINED else row.answer for row in group]
        signals = agreement(answers)
        for row in group:
            row.signals |= signals
