"""lm-eval samples: ``samples_*.jsonl`` of lm-evaluation-harness, one line per document and filter.

Multiple choice: the prediction is the choice of the highest log-likelihood (the harness writes these numbers as text),
the confidence its softmax probability, and the choices together count as one token for the token signals. Generation:
the prediction is the filtered response, graded by the harness's metric, which ignores irrelevant parts of an answer;
repeated responses give the consistency signals. The harness does not record abstentions: they need an abstention rule.
Documents are the clusters.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Annotated, Any

import msgspec

from abstain import _files, _validate
from abstain.errors import ArgumentError, DataError, FormatError, list_names
from abstain.items import Items, Outcome
from abstain.readers import _log_items
from abstain.readers._fields import cluster_noun
from abstain.readers._log_items import LogRow
from abstain.readers._rules import Ruling
from abstain.readers._values import as_number

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from abstain.readers._read import ReadArguments

KEYS = frozenset({"doc_id", "doc", "filtered_resps"})
_MUTUAL_INFORMATION = "acc_mutual_info"
# The usual names of metrics that are right or wrong; the first one that a line has is its grade.
_USUAL_METRICS = ("exact_match", "acc", "exact_match_original", "pass@1", "acc_norm")


def read_items(samples: _files.SourceFile, arguments: ReadArguments) -> Items:
    """Read one file of samples; see `abstain.read`."""
    ruling, path, filter_name = Ruling(arguments.abstain_rule), str(samples), arguments.filter
    filters: dict[str, None] = {}
    rows = []
    with samples.open() as file:
        for sample in _samples(file, path):
            name = sample.get("filter", str, "none")
            filters[name] = None
            if filter_name is None or name == filter_name:
                rows.append((name, _row(sample, arguments.scorer, arguments.cluster, ruling)))
        content = _files.digest([file])
    if filter_name is not None and not rows:
        hint = _validate.suggestion(filter_name, filters)
        raise ArgumentError(
            f"{path}: has no filter {filter_name!r}{hint}; filters here: {list_names(filters)}"
        )
    if len({name for name, _ in rows}) > 1:
        for name, row in rows:
            row.item = f"{row.item}_{name}"
            row.metadata["filter"] = name
    items = _log_items.items_from_log(
        [row for _, row in rows],
        path,
        scale=arguments.scale,
        cluster_noun=cluster_noun(arguments.cluster, "document"),
    )
    return items.with_provenance(filters=tuple(filters), sha256=content, **ruling.provenance())


@dataclass(frozen=True, slots=True)
class _LmEvalSample:
    """One line: its members as JSON text, each decoded when it is needed."""

    members: Mapping[str, msgspec.Raw]
    location: str

    def get(self, name: str, form: Any = Any, default: Any = None) -> Any:
        """Return a member, or `default` if there is none."""
        if name not in self.members:
            return default
        return _files.decode(self.members[name], form, f"{self.location}: {name}")

    @property
    def document(self) -> Mapping[str, msgspec.Raw]:
        """The members of the document; empty if it is not an object."""
        nested = bytes(memoryview(self.members["doc"])[:1]) == b"{"
        return self.get("doc", dict[str, msgspec.Raw]) if nested else {}

    @property
    def metrics(self) -> list[str]:
        """The names of the metrics, which are members too."""
        return self.get("metrics", list[str] | None) or []


def _samples(file: IO[bytes], path: str) -> Iterator[_LmEvalSample]:
    for number, line in enumerate(file, start=1):
        if not line.strip():
            continue
        location = f"{path}: line {number}"
        members = _files.decode(line.removeprefix(b"\xef\xbb\xbf"), dict[str, msgspec.Raw], location)
        missing = KEYS - members.keys()
        if missing:
            raise FormatError(f"{location} is not a sample: it lacks {list_names(sorted(missing))}")
        yield _LmEvalSample(members, location)


def _row(sample: _LmEvalSample, scorer: str | None, cluster: str | None, ruling: Ruling) -> LogRow:
    identifier = sample.get("doc_id", int | str)
    row = LogRow(
        question=identifier,
        item=identifier,
        cluster=identifier,
        outcome=Outcome.ANSWERED,
        answer=None,
        target=_text(sample.get("target")),
        metadata=_log_items.keep_scalars(sample.document, f"{sample.location}: doc"),
    )
    if cluster is not None and cluster not in ("doc", "doc_id"):
        row.cluster = _log_items.named_cluster(sample.document, cluster, sample.location, "doc")
    responses = sample.get("filtered_resps", Annotated[list[Any], msgspec.Meta(min_length=1)])
    likelihoods = [_likelihood(response) for response in responses]
    if all(value is not None for value in likelihoods):
        texts = _grade_choices(row, sample, [value for value in likelihoods if value is not None], scorer)
    else:
        texts = _grade_response(row, sample, responses, scorer)
    _log_items.apply_rule(ruling, row, texts)
    return row


def _grade_choices(
    row: LogRow, sample: _LmEvalSample, likelihoods: list[float], scorer: str | None
) -> tuple[str, ...]:
    """Fill in a multiple-choice row; return the label and the wording of the choice."""
    if _MUTUAL_INFORMATION in sample.metrics:
        # The second half is the likelihood without the question.
        likelihoods = likelihoods[: len(likelihoods) // 2]
    if len(likelihoods) < 2:
        # A single continuation was scored, so its likelihood cannot be compared with others.
        row.grade = _metric(sample, scorer)
        return ()
    best = max(range(len(likelihoods)), key=likelihoods.__getitem__)
    wordings = _wordings(sample, len(likelihoods))
    row.answer = str(best)
    if scorer is not None:
        row.grade = _metric(sample, scorer)
    elif _is_index(row.target, len(likelihoods)):
        row.grade = float(int(row.target) == best)
    elif row.target in wordings:
        row.grade = float(wordings[best] == row.target)
    else:
        row.grade = _metric(sample, None)
    row.signals |= _choice_signals(likelihoods, best, sample.location)
    return (row.answer, wordings[best]) if wordings else (row.answer,)


def _choice_signals(likelihoods: list[float], best: int, location: str) -> dict[str, float | None]:
    peak = likelihoods[best]
    if not math.isfinite(peak):
        raise DataError(f"{location}: the log-likelihood of the best choice is {peak}; it must be finite")
    relative = [math.exp(value - peak) for value in likelihoods]
    total = sum(relative)
    probabilities = sorted((value / total for value in relative), reverse=True)
    alternatives = [{"logprob": min(value, 0.0)} for value in likelihoods]
    token = {"logprob": min(peak, 0.0), "top_logprobs": alternatives}
    return {
        "confidence": probabilities[0],
        "choice_margin": probabilities[0] - probabilities[1],
        **_log_items.token_log_signals([token], location),
    }


def _grade_response(
    row: LogRow, sample: _LmEvalSample, responses: list[Any], scorer: str | None
) -> tuple[str, ...]:
    """Fill in a generated answer; return the filtered response and the most frequent raw one."""
    first = responses[0]
    row.answer = _text(first[0] if isinstance(first, list) and first else first)
    row.grade = _metric(sample, scorer, fallback=float(row.answer.strip() == row.target.strip()))
    raw = sample.get("resps")
    samples = raw[0] if isinstance(raw, list) and raw and isinstance(raw[0], list) else []
    texts = [text for text in samples if isinstance(text, str)]
    if len(texts) > 1:
        row.signals |= _log_items.agreement([text if text.strip() else None for text in texts])
    # A raw response is used if it is more than half of them.
    common = Counter(texts).most_common(1)
    return (row.answer, *(text for text, count in common if 2 * count > len(texts)))


def _metric(sample: _LmEvalSample, scorer: str | None, fallback: float | None = None) -> float:
    named = sample.metrics
    if scorer is not None:
        if scorer not in sample.members:
            hint = _validate.suggestion(scorer, named)
            raise ArgumentError(
                f"{sample.location}: has no metric {scorer!r}{hint}; metrics here: {list_names(named) or 'none'}"
            )
        return _grade(sample, scorer)
    for name in (*(usual for usual in _USUAL_METRICS if usual in named), *named):
        if name in sample.members and not _log_items.is_nested(sample.members[name]):
            return _grade(sample, name)
    if fallback is None:
        raise FormatError(
            f"{sample.location}: it is unknown whether the answer is right, because the sample has no metric"
        )
    return fallback


def _grade(sample: _LmEvalSample, name: str) -> float:
    """Return the value of a metric; NaN if it is null."""
    value = sample.members[name]
    grade = _log_items.scalar_or_none(value, f"{sample.location}: {name}")
    if isinstance(grade, str) or _log_items.is_nested(value):
        raise DataError(f"{sample.location}: the metric {name!r} must be a number for each sample")
    return math.nan if grade is None else float(grade)


def _likelihood(response: object) -> float | None:
    """Return the log-likelihood of a (log-likelihood, is greedy) pair, or None for anything else."""
    if not isinstance(response, list) or len(response) != 2 or str(response[1]) not in ("True", "False"):
        return None
    return as_number(response[0])


def _wordings(sample: _LmEvalSample, count: int) -> list[str]:
    """Return the continuation of each choice; nothing if the file does not have all of them."""
    arguments = sample.get("arguments")
    entries = arguments.values() if isinstance(arguments, dict) else ()
    wordings = [_text(entry.get("arg_1")).strip() for entry in entries if isinstance(entry, dict)]
    return wordings[:count] if len(wordings) >= count else []


def _is_index(text: str, count: int) -> bool:
    return len(text) < 10 and text.isdecimal() and int(text) < count


def _text(value: object) -> str:
    if isinstance(value, list):
        return " | ".join(str(part) for part in value)
    return "" if value is None else str(value)
