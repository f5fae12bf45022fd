"""Inspect AI logs, ``.eval`` and ``.json``, without inspect_ai.

A ``.eval`` file is a zip archive with one zstd member per sample; a ``.json`` file holds all samples in one array. Both
are read one sample at a time, and only the parts that become items are kept. A score of N, or the reason refusal or
no_response, is an abstention. A sample with an error is failed, and so is one whose answer could not be parsed (NaN
with the reason invalid_response_format). A sample without a score, or with NaN, is unscored. Epochs of one question are
not independent: they share a cluster, and their agreement gives the consistency signals.
"""

from __future__ import annotations

import io
import math
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING

import msgspec

from abstain import _files, _validate
from abstain.errors import ArgumentError, DataError, FormatError
from abstain.items import Items, Outcome
from abstain.readers import _log_items
from abstain.readers._archive import Archive
from abstain.readers._fields import cluster_noun
from abstain.readers._json_parts import outer_members
from abstain.readers._log_items import LogRow
from abstain.readers._rules import Ruling
from abstain.readers._values import as_number

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from abstain.readers._read import ReadArguments

# Default limit of the decompressed size of an archive: a multiple of its compressed size, plus a constant.
EXPANSION = 200
EXPANSION_FLOOR = 1 << 22
_NO_ANSWER = "N"
_REFUSALS = ("refusal", "no_response")
# The statuses that Inspect writes. Any other text is not shown.
_STATUSES = ("started", "success", "cancelled", "error")
# The scorer of `abstain.runs`, which is used if a log has several.
_OWN_SCORER = "answer_scorer"
_UNREADABLE = "invalid_response_format"
_VALUES = {"C": 1.0, "P": 0.5, "I": 0.0, "yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}

# Members of any type stay JSON text until they are needed, because they may be whole transcripts.
_NULL = msgspec.Raw(b"null")


class _Token(msgspec.Struct):
    logprob: float
    top_logprobs: list[_Token] | None = None


class _Logprobs(msgspec.Struct):
    content: list[_Token] | None = None


class _Content(msgspec.Struct):
    text: msgspec.Raw = _NULL


class _Message(msgspec.Struct):
    content: msgspec.Raw = _NULL


class _Choice(msgspec.Struct):
    message: _Message = msgspec.field(default_factory=_Message)
    logprobs: _Logprobs | None = None


class _Output(msgspec.Struct):
    choices: list[_Choice] = []
    completion: str = ""


class _InspectScore(msgspec.Struct):
    value: msgspec.Raw
    answer: msgspec.Raw = _NULL
    reason: str | None = None
    metadata: dict[str, msgspec.Raw] | None = None


class _InspectSample(msgspec.Struct):
    id: int | str
    epoch: int = 1
    target: str | list[str] = ""
    output: _Output = msgspec.field(default_factory=_Output)
    scores: dict[str, _InspectScore] | None = None
    metadata: dict[str, msgspec.Raw] | None = None
    error: msgspec.Raw = _NULL


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


def read_items(log: _files.SourceFile, arguments: ReadArguments) -> Items:
    """Read one log; see `abstain.read`."""
    header, rows, ruling, path = _Header(), [], Ruling(arguments.abstain_rule), str(log)
    reader = _Reader(path, arguments.scorer, arguments.cluster, ruling)
    with log.open() as file:
        for part in _parts(file, path, arguments.member_limit, arguments.total_limit):
            if isinstance(part, _Header):
                header = part
            else:
                rows.append(reader.row(part))
        content = _files.digest([file])
    reader.finish()
    items = _items(rows, path, arguments.cluster, arguments.scale)
    revision = header.eval.revision
    return items.with_provenance(
        run_id=header.eval.run_id,
        git_commit=None if revision is None else revision.commit,
        task=header.eval.task,
        model=header.eval.model,
        status=header.status if header.status in _STATUSES else "unknown",
        scorer=reader.scorer,
        sha256=content,
        **ruling.provenance(),
    )


def items_of_samples(
    samples: Iterable[bytes], *, cluster: str | None = None, label: str = "the log"
) -> Items:
    """Return the items of samples in the form of an Inspect log, each a JSON text, by the rules of `read`.

    Args:
        samples: the samples, which need not be in a log.
        cluster: the key of a sample's metadata with its cluster.
        label: the name of the samples in messages.

    >>> items_of_samples([b'{"id": 1, "target": "a", "scores": {"s": {"value": "N"}}}'])
    Items(1 item in 1 sample: 0 answered, 1 abstained, 0 failed, 0 unscored)
    """
    reader = _Reader(label, None, cluster, Ruling(None))
    rows = [
        reader.row(_decode_sample(text, f"{label}: samples[{number}]")) for number, text in enumerate(samples)
    ]
    return _items(rows, label, cluster, None)


def _items(rows: Sequence[LogRow], path: object, cluster: str | None, scale: Sequence[float] | None) -> Items:
    epochs = any(row.epoch > 1 for row in rows) or len({row.question for row in rows}) < len(rows)
    if epochs:
        for row in rows:
            row.item = f"{row.question}_epoch_{row.epoch}"
        _add_agreement(rows)
    usual = "question" if epochs else "sample"
    return _log_items.items_from_log(rows, path, scale=scale, cluster_noun=cluster_noun(cluster, usual))


def _parts(
    file: IO[bytes], path: str, member_limit: int, total_limit: int | None
) -> Iterator[_Header | _InspectSample]:
    """Yield the samples of a log, and its header in the order of the file."""
    archive = file.read(4) == b"PK\x03\x04"
    if not archive:
        header, count = _Header(), 0
        for key, text in outer_members(file, path, limit=member_limit, arrays=("samples",)):
            if key == "samples":
                yield _decode_sample(text, f"{path}: samples[{count}]")
                count += 1
            elif key == "eval":
                header.eval = _files.decode(text, _Spec, f"{path}: eval")
            elif key == "status":
                header.status = _files.decode(text, str, f"{path}: status")
        yield header
        return
    most = EXPANSION_FLOOR + EXPANSION * file.seek(0, io.SEEK_END) if total_limit is None else total_limit
    with Archive(file, path, member_limit=member_limit, total_limit=most) as log:
        names = log.names
        # The log of an interrupted run has its header only in the journal.
        for name in ("header.json", "_journal/start.json"):
            if name in names:
                yield _files.decode(log.read(name), _Header, f"{path}: {name}")
                break
        else:
            raise FormatError(f"{path}: a zip archive, but not an Inspect log (it has no header.json)")
        for name in names:
            if name.startswith("samples/") and name.endswith(".json"):
                yield _decode_sample(log.read(name), f"{path}: {name}")


def _decode_sample(text: bytes, location: str) -> _InspectSample:
    return _files.decode(text, _InspectSample, f"{location}: not a sample of an Inspect log")


@dataclass(slots=True)
class _Reader:
    """Converts samples to rows, and records all scorers for the error if the requested one does not exist."""

    path: object
    scorer: str | None
    cluster: str | None
    ruling: Ruling
    scorers: dict[str, None] = field(default_factory=dict)

    def row(self, sample: _InspectSample) -> LogRow:
        location = f"{self.path}: sample {sample.id}, epoch {sample.epoch}"
        score = self._score(sample.scores or {}, location)
        outcome, grade = _verdict(sample, score, location)
        row = LogRow(
            question=sample.id,
            item=sample.id,
            cluster=sample.id,
            outcome=outcome,
            answer=None if score is None else _text(score.answer, location),
            target=sample.target if isinstance(sample.target, str) else " | ".join(sample.target),
            grade=grade,
            metadata=_log_items.keep_scalars(sample.metadata or {}, f"{location}, metadata"),
            epoch=sample.epoch,
        )
        if self.cluster is not None and self.cluster != "id":
            row.cluster = _log_items.named_cluster(sample.metadata or {}, self.cluster, location, "metadata")
        choice = sample.output.choices[0] if sample.output.choices else None
        if choice is not None and choice.logprobs is not None:
            tokens = msgspec.to_builtins(choice.logprobs.content or [])
            row.signals |= _log_items.token_log_signals(tokens, location)
        if score is not None:
            values = _log_items.keep_scalars(score.metadata or {}, location)
            row.signals |= {
                key: float(value)
                for key, value in values.items()
                if isinstance(value, (int, float)) and not isinstance(value, bool)
            }
        if outcome == Outcome.ANSWERED:
            completion = _completion(sample.output, location)
            if row.answer is None:
                row.answer = completion
            _log_items.apply_rule(self.ruling, row, (row.answer, completion))
        return row

    def finish(self) -> None:
        """Raise if no sample has the requested scorer."""
        if self.scorer is None or not self.scorers:
            return
        name = self.scorer.partition(".")[0]
        if name not in self.scorers and self.scorer not in self.scorers:
            hint = _validate.suggestion(name, self.scorers)
            raise ArgumentError(
                f"{self.path}: has no scorer {name!r}{hint}; scorers here: {', '.join(self.scorers)}"
            )

    def _score(self, scores: dict[str, _InspectScore], location: str) -> _InspectScore | None:
        self.scorers.update(dict.fromkeys(scores))
        if not scores:
            return None
        if self.scorer is None:
            if len(scores) > 1 and _OWN_SCORER not in scores:
                raise ArgumentError(
                    f"{self.path}: has {len(scores)} scorers; choose one (scorer, --scorer): {', '.join(scores)}"
                )
            self.scorer = _OWN_SCORER if _OWN_SCORER in scores else next(iter(scores))
        name, _, key = self.scorer.partition(".")
        if self.scorer in scores:
            name, key = self.scorer, ""
        score = scores.get(name)
        if score is None or bytes(memoryview(score.value)[:1]) != b"{":
            return score
        values = _files.decode(score.value, dict[str, msgspec.Raw], f"{location}, scorer {name}")
        if key not in values:
            keys = ", ".join(f"{name}.{part}" for part in values)
            raise ArgumentError(
                f"{location}: the scorer {name!r} returns several values; choose one of: {keys}"
            )
        return msgspec.structs.replace(score, value=values[key])


def _verdict(sample: _InspectSample, score: _InspectScore | None, location: str) -> tuple[Outcome, float]:
    if sample.error != _NULL:
        return Outcome.FAILED, math.nan
    if score is None:
        return Outcome.UNSCORED, math.nan
    value = _log_items.scalar_or_none(score.value, f"{location}, score")
    if value == _NO_ANSWER or score.reason in _REFUSALS:
        return Outcome.ABSTAINED, math.nan
    grade = None if _log_items.is_nested(score.value) else _grade(value)
    if grade is None:
        raise DataError(
            f"{location}: the score must be C, I, P, N, a number or a boolean, got something else"
        )
    if math.isnan(grade):
        return (Outcome.FAILED if score.reason == _UNREADABLE else Outcome.UNSCORED), grade
    return Outcome.ANSWERED, grade


def _grade(value: float | str | None) -> float | None:
    if value is None:
        return math.nan
    if not isinstance(value, str):
        return float(value)
    grade = _VALUES.get(value, _VALUES.get(value.lower()))
    return as_number(value) if grade is None else grade


def _completion(output: _Output, location: str) -> str:
    if not output.choices:
        return output.completion
    content = output.choices[0].message.content
    if not _log_items.is_nested(content):
        text = _log_items.scalar(content, f"{location}, content")
        return text if isinstance(text, str) else output.completion
    parts = _files.decode(content, list[_Content], f"{location}, content")
    texts = [_log_items.scalar_or_none(part.text, f"{location}, content") for part in parts]
    return " ".join(text for text in texts if isinstance(text, str))


def _text(value: msgspec.Raw, location: str) -> str | None:
    """Return an answer as text; a list or an object as JSON."""
    if _log_items.is_nested(value):
        return bytes(value).decode("utf-8", "replace")
    answer = _log_items.scalar(value, f"{location}, answer")
    return None if answer is None else str(answer)


def _add_agreement(rows: Sequence[LogRow]) -> None:
    """Give every completed answer the consistency signals of its question."""
    samples: dict[int | str, list[LogRow]] = {}
    for row in rows:
        if row.outcome <= Outcome.ABSTAINED:
            samples.setdefault(row.question, []).append(row)
    for group in samples.values():
        answers = [None if row.outcome == Outcome.ABSTAINED else row.answer for row in group]
        signals = _log_items.agreement(answers)
        for row, own in zip(group, _log_items.agreement_with_others(answers), strict=True):
            row.signals |= signals | {"consistency_agreement": own}
