"""The form of a reply, and a parser that never guesses.

A reply is one JSON object. ``answer`` is one of the choices, a number on the scale, or text; only null declines. Other
fields contain the confidence and the quotes. `ReplyForm` provides the instructions for the prompt, the schema for
structured output, and the parser. A reply in another form raises `UnreadableReply`, whose code and sentence reveal
nothing of its text.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, NoReturn

from abstain import labels
from abstain.runs import _prompts

# Larger scales are not listed value by value.
_MOST_LISTED = 101
_FENCED = re.compile(r"```(?:json)?[ \t]*\n(.*?)\n?[ \t]*```", re.DOTALL)
GRADES = ("correct", "incorrect", "not_attempted")
# These sentences are sent to the model in the "reminder" of `_prompts`.
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
    "no_grade": 'the object has no "grade", one of "correct", "incorrect" and "not_attempted"',
}


class UnreadableReply(Exception):  # noqa: N818
    """A reply that is not in the requested form: a key of `PROBLEMS`, and the readable part if it has the answer."""

    def __init__(self, code: str, reply: Reply | None = None) -> None:
        super().__init__(PROBLEMS[code])
        self.code = code
        self.reply = reply


@dataclass(frozen=True, slots=True)
class Reply:
    """The content of a reply. The answer is spelled as in the choices; None if the model declined."""

    answer: str | None = None
    confidence: float | None = None
    quotes: tuple[str, ...] | None = None

    @property
    def declined(self) -> bool:
        """True if the model declined."""
        return self.answer is None


@dataclass(frozen=True, slots=True)
class ReplyForm:
    """The requested content of a reply.

    Attributes:
        answered: True if an answer is requested, False for fields about an earlier answer.
        choices: the possible answers; None for any text.
        scale: the lowest and highest possible number.
        confidence: the scale of the stated confidence; None if none is requested.
        quotes: True if quotes are requested.
        reasoning: True if reasoning is requested before the answer. It is not read.
        declining: the text that permits declining.

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
    reasoning: bool = False
    declining: str = _prompts.PROMPTS["decline"]

    @property
    def instructions(self) -> str:
        """The instructions for the prompt."""
        return _prompts.form(
            answer=self._answer_words() if self.answered else None,
            confidence=self.confidence,
            quotes=self.quotes,
            declining=self.declining,
            reasoning=self.reasoning,
        )

    def schema(self) -> dict[str, Any]:
        """Return the form as a JSON Schema; numbers are enumerated as text, which every provider accepts."""
        nothing = {"type": "null"}
        fields: dict[str, Any] = {}
        if self.reasoning:
            fields["reasoning"] = {"type": "string"}
        if self.answered:
            fields["answer"] = {"anyOf": [_one_of(self._answers()), nothing]}
        if self.confidence is not None:
            stated = _one_of(_scale_values(self.confidence))
            fields["confidence"] = {"anyOf": [stated, nothing]} if self.answered else stated
        if self.quotes:
            fields["quotes"] = {"type": "array", "items": {"type": "string"}}
        return {
            "type": "object",
            "properties": fields,
            "required": list(fields),
            "additionalProperties": False,
        }

    def parse(self, text: str) -> Reply:
        """Return the content of a reply, or raise `UnreadableReply`."""
        record = _parse_object(text)
        answer = self._answer(record) if self.answered else None
        declined = self.answered and answer is None
        code, confidence, quotes = None, None, None
        if self.confidence is not None:
            confidence = _number_on_scale(record.get("confidence"), self.confidence)
            if confidence is None and not (declined and record.get("confidence") is None):
                code = "no_confidence"
        if self.quotes:
            quotes = _string_tuple(record.get("quotes"))
            code = code or ("no_quotes" if quotes is None else None)
        reply = Reply(answer, confidence, quotes)
        if code is not None:
            raise UnreadableReply(code, reply if self.answered else None)
        return reply

    def _answers(self) -> tuple[str, ...] | None:
        return self.choices if self.scale is None else _scale_values(self.scale)

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
            number = _number_on_scale(value, self.scale)
            if number is None:
                raise UnreadableReply("off_scale")
            return f"{number:g}"
        if isinstance(value, bool) or not isinstance(value, (str, int, float)):
            raise UnreadableReply("no_text")
        if self.choices is None:
            return _nonempty_text(value)
        label = labels.canonical(value, "answer", 0)
        matching = [choice for choice in self.choices if labels.canonical(choice, "choice", 0) == label]
        if not matching:
            raise UnreadableReply("no_choice")
        return matching[0]


def parse_verdict(text: str) -> bool:
    """Return whether two answers mean the same, from a reply such as ``{"same": true}``."""
    same = _parse_object(text).get("same")
    if not isinstance(same, bool):
        raise UnreadableReply("no_verdict")
    return same


def parse_grade(text: str) -> str:
    """Return the grade of an answer, from a reply such as ``{"grade": "correct"}``."""
    grade = _parse_object(text).get("grade")
    if grade not in GRADES:
        raise UnreadableReply("no_grade")
    return str(grade)


def _parse_object(text: str) -> dict[str, Any]:
    """Parse a text that is one JSON object, optionally in one code fence; an object inside other text is refused."""
    plain = text.strip()
    if not plain:
        raise UnreadableReply("empty")
    fenced = _FENCED.fullmatch(plain)
    try:
        record = json.loads(
            fenced[1] if fenced else plain,
            object_pairs_hook=_refuse_duplicate_keys,
            parse_constant=_refuse_constant,
        )
    except (ValueError, RecursionError):
        raise UnreadableReply("no_object") from None
    if not isinstance(record, dict):
        raise UnreadableReply("no_object")
    return record


def _refuse_duplicate_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) < len(pairs):
        raise ValueError("duplicate key")
    return record


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


def _nonempty_text(value: str | float) -> str:
    text = value.strip() if isinstance(value, str) else f"{value:g}"
    if not text:
        raise UnreadableReply("empty")
    return text


def _number_on_scale(value: object, scale: tuple[float, float]) -> float | None:
    """Return a number on a scale, also if it is given as text; None if it is outside the scale.

    On a scale with integer ends, it must be an integer.
    """
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
    # A scale of 0 to 1 means probabilities.
    return scale != (0.0, 1.0) and all(float(end).is_integer() for end in scale)


def _scale_values(scale: tuple[float, float]) -> tuple[str, ...] | None:
    low, high = scale
    if not _is_whole(scale) or high - low >= _MOST_LISTED:
        return None
    return tuple(str(number) for number in range(int(low), int(high) + 1))


def _one_of(listed: tuple[str, ...] | None) -> dict[str, Any]:
    return {"type": "string"} if listed is None else {"type": "string", "enum": list(listed)}


def _string_tuple(value: object) -> tuple[str, ...] | None:
    if not isinstance(value, list) or not all(isinstance(part, str) for part in value):
        return None
    return tuple(value)
