"""Replies: the form that a model is asked to answer in, and a parser that never guesses.

A reply is one JSON object. ``answer`` is one of the choices, a number of the scale, or text; null declines, and nothing
else does. Fields beside it carry what the model says of its answer. The form gives the words of the prompt, the schema
for providers with structured output, and the parser: what does not fit is an `UnreadableReply` with a code and a
sentence that show nothing of what was said. Who is asked, and how often, is known to `_asking`.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, NoReturn

from abstain import labels
from abstain.runs import _prompts

# Scales of more values are not listed one by one.
_MOST_LISTED = 101
_FENCED = re.compile(r"```(?:json)?[ \t]*\n(.*?)\n?[ \t]*```", re.DOTALL)
PROBLEMS = {
    "empty": "the reply is empty",
    "cut_off": "the reply was cut off at the most tokens that there may be",
    "no_object": "the reply is not one JSON object",
    "no_answer": 'the object has no "answer"',
    "no_choice": "the answer is none of the choices",
    "off_scale": "the answer is no number of the scale",
    "no_text": "the answer is neither text nor null",
    "no_confidence": 'the object has no "confidence" within its scale',
    "no_quotes": 'the object has no "quotes", a list of texts',
    "no_verdict": 'the object has no "same", true or false',
}


class UnreadableReply(Exception):  # noqa: N818
    """A reply that is not in the form asked for.

    Attributes:
        code: what is wrong, one of `PROBLEMS`.
        reply: what of it could be read, where the answer could.
    """

    def __init__(self, code: str, reply: Reply | None = None) -> None:
        super().__init__(PROBLEMS[code])
        self.code = code
        self.reply = reply


@dataclass(frozen=True, slots=True)
class Reply:
    """What a model said.

    Attributes:
        answer: the answer as text, as the choices spell it; None where the model declined.
        confidence: how sure the model says it is, on the scale of the form; None where it does not say.
        quotes: what it copied from the text; None where it was not asked to.
    """

    answer: str | None = None
    confidence: float | None = None
    quotes: tuple[str, ...] | None = None

    @property
    def declined(self) -> bool:
        """True where the model took the way out."""
        return self.answer is None


@dataclass(frozen=True, slots=True)
class ReplyForm:
    """What a reply must hold.

    Attributes:
        answered: True where an answer is asked for, False where only a field beside an earlier one is.
        choices: the answers that there can be; any text when None.
        scale: the lowest and highest number that an answer can be.
        confidence: the scale of a stated confidence, where one is asked for.
        quotes: True where quotes are asked for.

    >>> form = ReplyForm(scale=(0, 3), confidence=(1, 5))
    >>> form.parse('{"answer": 2, "confidence": "4"}')
    Reply(answer='2', confidence=4.0, quotes=None)
    >>> form.parse('{"answer": null, "confidence": null}').declined
    True
    >>> form.parse("I would say 2")
    Traceback (most recent call last):
    abstain.runs._replies.UnreadableReply: the reply is not one JSON object
    """

    answered: bool = True
    choices: tuple[str, ...] | None = None
    scale: tuple[float, float] | None = None
    confidence: tuple[float, float] | None = None
    quotes: bool = False

    @property
    def instructions(self) -> str:
        """What the prompt says of the form."""
        return _prompts.form(
            answer=self._answer_words() if self.answered else None,
            confidence=self.confidence,
            quotes=self.quotes,
        )

    def schema(self) -> dict[str, Any]:
        """Return the form as a JSON Schema; numbers are enumerated as text, which every provider takes."""
        nothing = {"type": "null"}
        fields: dict[str, Any] = {}
        if self.answered:
            fields["answer"] = {"anyOf": [_one_of(self._answers()), nothing]}
        if self.confidence is not None:
            stated = _one_of(_listed(self.confidence))
            fields["confidence"] = {"anyOf": [stated, nothing]} if self.answered else stated
        if self.quotes:
            fields["quotes"] = {"type": "array", "items": {"type": "string"}}
        return {
            "type": "object",
            "properties": fields,
            "required": list(fields),
            "additionalProperties": False,
        }

    def parse(self, text: str, *, cut_off: bool = False) -> Reply:
        """Return what a reply says, or raise `UnreadableReply`; a reply that is `cut_off` is never read."""
        if cut_off:
            raise UnreadableReply("cut_off")
        record = _object(text)
        answer = self._answer(record) if self.answered else None
        declined = self.answered and answer is None
        code, confidence, quotes = None, None, None
        if self.confidence is not None:
            confidence = _within(record.get("confidence"), self.confidence)
            if confidence is None and not (declined and record.get("confidence") is None):
                code = "no_confidence"
        if self.quotes:
            quotes = _texts(record.get("quotes"))
            code = code or ("no_quotes" if quotes is None else None)
        reply = Reply(answer, confidence, quotes)
        if code is not None:
            raise UnreadableReply(code, reply if self.answered else None)
        return reply

    def _answers(self) -> tuple[str, ...] | None:
        return self.choices if self.scale is None else _listed(self.scale)

    def _answer_words(self) -> str:
        listed = self._answers()
        if listed is not None:
            return "one of " + ", ".join(json.dumps(choice, ensure_ascii=False) for choice in listed)
        if self.scale is not None:
            return "a number from {:g} to {:g}".format(*self.scale)
        return "your answer as text, as short as it can be"

    def _answer(self, record: dict[str, Any]) -> str | None:
        if "answer" not in record:
            raise UnreadableReply("no_answer")
        value = record["answer"]
        if value is None:
            return None
        if self.scale is not None:
            number = _within(value, self.scale)
            if number is None:
                raise UnreadableReply("off_scale")
            return f"{number:g}"
        if isinstance(value, bool) or not isinstance(value, (str, int, float)):
            raise UnreadableReply("no_text")
        if self.choices is None:
            return _own_words(value)
        # One rule says when two labels are the same, here as in every table.
        said = labels.canonical(value, "answer", 0)
        found = [choice for choice in self.choices if labels.canonical(choice, "choice", 0) == said]
        if not found:
            raise UnreadableReply("no_choice")
        return found[0]


def verdict(text: str, *, cut_off: bool = False) -> bool:
    """Return what a judge says of two answers: ``{"same": true}`` or false."""
    if cut_off:
        raise UnreadableReply("cut_off")
    same = _object(text).get("same")
    if not isinstance(same, bool):
        raise UnreadableReply("no_verdict")
    return same


def _object(text: str) -> dict[str, Any]:
    """Return the one object that a text is, bare or in one fence; nothing is looked for within other text."""
    plain = text.strip()
    if not plain:
        raise UnreadableReply("empty")
    fenced = _FENCED.fullmatch(plain)
    try:
        record = json.loads(
            fenced[1] if fenced else plain, object_pairs_hook=_unique, parse_constant=_no_number
        )
    except (ValueError, RecursionError):
        raise UnreadableReply("no_object") from None
    if not isinstance(record, dict):
        raise UnreadableReply("no_object")
    return record


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key stands twice")
    return found


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")


def _own_words(value: str | float) -> str:
    text = value.strip() if isinstance(value, str) else f"{value:g}"
    if not text:
        raise UnreadableReply("empty")
    return text


def _within(value: object, scale: tuple[float, float]) -> float | None:
    """Return the number of a scale that a value is or spells; whole where both ends are."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    number = labels.canonical(value, "answer", 0)
    low, high = scale
    if not isinstance(number, (int, float)) or not low <= number <= high:
        return None
    if _is_whole(scale) and not float(number).is_integer():
        return None
    return float(number)


def _is_whole(scale: tuple[float, float]) -> bool:
    # A scale of 0 to 1 is one of probabilities: nobody means its two ends alone.
    return scale != (0.0, 1.0) and all(float(end).is_integer() for end in scale)


def _listed(scale: tuple[float, float]) -> tuple[str, ...] | None:
    low, high = scale
    if not _is_whole(scale) or high - low >= _MOST_LISTED:
        return None
    return tuple(str(number) for number in range(int(low), int(high) + 1))


def _one_of(listed: tuple[str, ...] | None) -> dict[str, Any]:
    return {"type": "string"} if listed is None else {"type": "string", "enum": list(listed)}


def _texts(value: object) -> tuple[str, ...] | None:
    if not isinstance(value, list) or not all(isinstance(part, str) for part in value):
        return None
    return tuple(value)
