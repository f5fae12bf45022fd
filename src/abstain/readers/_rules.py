"""Abstention rules find refusals in sources that do not mark them.

A rule classifies an answer as abstained, answered or undetermined. It is undetermined if there is no text, or if the
rule matches but the source graded the answer as right: a hedge before a good answer is not a refusal. A rule never
changes an outcome that the source records, and the counts of all three are part of the provenance of the items. Rules
are written as text::

    choice:E                          the answer is this choice (its label or its wording)
    regex:(?i)not enough evidence     the answer contains a match
    phrases:I don't know|not sure     the answer contains one of the phrases, in any case and spacing
    phrases:@refusals.txt             the same, one phrase per line of a file
"""

from __future__ import annotations

import enum
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from abstain import _files
from abstain.errors import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# Answers that contain one of these look like refusals. A rule for them is proposed, and never applied by default.
REFUSALS = (
    "I don't know",
    "I do not know",
    "I'm not sure",
    "I am not sure",
    "cannot answer",
    "can't answer",
    "unable to answer",
    "cannot determine",
    "cannot be determined",
    "unable to determine",
    "cannot say",
    "not enough information",
    "insufficient information",
    "not enough evidence",
)
# A rule is proposed for at least so many answers that are at least this proportion of all. Most sources have none, so
# only the first answers are examined before all of them are.
_FEWEST, _PROPORTION, _FIRST = 3, 0.05, 20_000

_FORMS = ("choice", "regex", "phrases")
_KINDS = "choice:<choice>, regex:<pattern> or phrases:<phrase>|<phrase>..."


class Determination(enum.Enum):
    """How a rule classifies an answer."""

    ABSTAINED = "abstained"
    ANSWERED = "answered"
    UNDETERMINED = "undetermined"


@dataclass(frozen=True, slots=True)
class AbstentionRule:
    """A rule that distinguishes refusals from answers; build one with `choice`, `regex`, `phrases` or `parse`.

    Attributes:
        text: the rule as it is written on the command line.
        pattern: the pattern of a refusal.
        whole: True if the whole answer must match.

    >>> rule = AbstentionRule.phrases(["I don't know", "cannot say"])
    >>> [rule.determine(text).value for text in ("Sorry, I  DON'T know.", "Paris", "")]
    ['abstained', 'answered', 'undetermined']
    >>> rule.determine("I don't know, perhaps Paris", right=True).value
    'undetermined'
    """

    text: str
    pattern: re.Pattern[str]
    whole: bool

    @classmethod
    def choice(cls, name: str) -> AbstentionRule:
        """Return the rule that an answer declines if it is this choice and nothing else."""
        if not name.strip():
            raise ArgumentError("a rule needs a choice, such as choice:E")
        return cls(f"choice:{name}", re.compile(re.escape(_plain(name))), whole=True)

    @classmethod
    def regex(cls, pattern: str) -> AbstentionRule:
        """Return the rule that an answer declines if it contains a match of `pattern`."""
        if not pattern:
            raise ArgumentError("a rule needs a pattern, such as regex:(?i)not sure")
        try:
            return cls(f"regex:{pattern}", re.compile(pattern), whole=False)
        except re.error as problem:
            raise ArgumentError(f"the pattern is not a regular expression: {problem}") from None

    @classmethod
    def phrases(cls, phrases: Sequence[str]) -> AbstentionRule:
        """Return the rule that an answer declines if it contains one of `phrases`, in any case and spacing."""
        plain = [_plain(phrase) for phrase in phrases if _plain(phrase)]
        if not plain:
            raise ArgumentError("a rule needs phrases, such as phrases:I don't know|not sure")
        return cls(f"phrases:{'|'.join(phrases)}", re.compile("|".join(map(re.escape, plain))), whole=False)

    @classmethod
    def beginning(cls, text: str) -> AbstentionRule:
        """Return the rule that an answer failed if it begins like this, in any case and spacing."""
        if not text.strip():
            raise ArgumentError("a rule needs the beginning of a failed answer, such as ERR:")
        return cls(f"begins:{text}", re.compile(rf"\A{re.escape(_plain(text))}"), whole=False)

    @classmethod
    def parse_failed(cls, text: str) -> AbstentionRule:
        """Return a rule for failed answers from text: one of the forms above, or the beginning of such answers.

        >>> AbstentionRule.parse_failed("ERR:").determine("err: no reply").value
        'abstained'
        """
        return cls.parse(text) if text.partition(":")[0] in _FORMS else cls.beginning(text)

    @classmethod
    def parse(cls, text: str) -> AbstentionRule:
        """Return a rule from text."""
        kind, _, rest = text.partition(":")
        if kind == "choice":
            return cls.choice(rest)
        if kind == "regex":
            return cls.regex(rest)
        if kind == "phrases" and rest.startswith("@"):
            try:
                lines = _files.read_bytes(rest[1:]).decode("utf-8-sig").splitlines()
            except UnicodeDecodeError:
                raise ArgumentError(f"{rest[1:]}: the phrases must be UTF-8 text, one per line") from None
            return cls.phrases(lines)
        if kind == "phrases":
            return cls.phrases(rest.split("|"))
        raise ArgumentError(f"a rule must be {_KINDS}, got {text!r}")

    def determine(self, *answers: str | None, right: bool | None = None) -> Determination:
        """Classify an answer, which may have several wordings; `right` if it was graded as right."""
        readable = [answer for answer in answers if answer is not None and answer.strip()]
        if not readable:
            return Determination.UNDETERMINED
        if not any(self._matches(answer) for answer in readable):
            return Determination.ANSWERED
        return Determination.UNDETERMINED if right else Determination.ABSTAINED

    def _matches(self, answer: str) -> bool:
        match = self.pattern.fullmatch if self.whole else self.pattern.search
        return match(answer if self.text.startswith("regex:") else _plain(answer)) is not None


@dataclass(slots=True)
class Ruling:
    """A rule for one source, if there is one, and the counts of its classifications."""

    rule: AbstentionRule | None
    counts: Counter[str] = field(default_factory=Counter)

    def declines(self, *answers: str | None, right: bool | None, rows: int = 1) -> bool:
        """Return whether the rule finds an abstention in an answer that `rows` rows have; see `determine`."""
        if self.rule is None:
            return False
        determination = self.rule.determine(*answers, right=right)
        self.counts[determination.value] += rows
        return determination is Determination.ABSTAINED

    def provenance(self, name: str = "abstention_rule") -> dict[str, Any]:
        """Return the rule and its counts for the provenance of the items."""
        return {} if self.rule is None else {name: {"rule": self.rule.text, **self.counts}}


def joined_counts(parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the provenance of a rule that was applied to several files: its text, and its counts over all of them.

    >>> joined_counts([{"rule": "choice:E", "abstained": 6}, {"rule": "choice:E", "abstained": 4, "answered": 9}])
    {'rule': 'choice:E', 'abstained': 10, 'answered': 9}
    """
    counts: Counter[str] = Counter()
    for part in parts:
        counts.update({name: count for name, count in part.items() if name != "rule"})
    return {"rule": parts[0]["rule"], **counts}


def looks_like_refusals(answers: Sequence[tuple[str, bool]]) -> dict[str, Any]:
    """Return the provenance of answers that look like refusals; each answer comes with whether it was right.

    >>> answers = [("I don\u2019t know.", False)] * 3 + [("Paris", True)] * 7
    >>> looks_like_refusals(answers)
    {'refusals': {'count': 3, 'answers': 10, 'phrases': ("I don't know",)}}
    >>> looks_like_refusals(answers[2:])
    {}
    """
    phrases: dict[str, None] = {}
    for part in (answers[:_FIRST], answers):
        counts = Counter(text for text, right in part if not right)
        refusals = {text: _refusal_in(text) for text in counts}
        count = sum(counts[text] for text, phrase in refusals.items() if phrase)
        if count < max(_FEWEST, _PROPORTION * len(part)):
            return {}
        phrases = dict.fromkeys(phrase for phrase in REFUSALS if phrase in refusals.values())
    return {"refusals": {"count": count, "answers": len(answers), "phrases": tuple(phrases)}}


def _refusal_in(text: str) -> str | None:
    plain = _plain(text)
    return next((phrase for phrase in REFUSALS if _plain(phrase) in plain), None)


def _plain(text: str) -> str:
    # Otherwise phrases with typographic apostrophes would not be found.
    return " ".join(text.replace("\u2019", "'").casefold().split())
