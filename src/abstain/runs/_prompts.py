"""All texts that are sent to a model, except those of the user, with a version.

The provenance of a run contains the version, these texts and the user's template, so that the run can be repeated with
the same prompts. Change `VERSION` when you change a text.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

from abstain.errors import ArgumentError

VERSION = "2"

_NO_CONFIDENCE = "; null where you decline."
PROMPTS = {
    "decline": "You may decline: if you do not know the answer, decline rather than guess.",
    "confidence_target": (
        "Answer only if you are more than {percent:g}% sure that your answer is right, and decline otherwise. A right "
        "answer scores 1 point, a wrong answer loses {penalty:g} points, and declining scores 0 points."
    ),
    "reply": "Reply with one JSON object and nothing else, with these fields:",
    "reasoning": '- "reasoning": your reasoning in a few sentences, before you answer.',
    "answer": '- "answer": {answer}; null to decline.',
    "confidence": (
        '- "confidence": how sure you are that the answer is right, a number from {low:g} (a guess) to {high:g} '
        f"(certain){_NO_CONFIDENCE}"
    ),
    "quotes": (
        '- "quotes": the passages of the text that your answer rests on, each copied letter by letter; [] where there '
        "are none."
    ),
    "reminder": (
        "That reply could not be read: {problem}. Reply again, with one JSON object of the form asked for and nothing "
        "else."
    ),
    "follow_up": "About the answer that you just gave:",
    "p_true": (
        "Is the answer that you just gave\n(A) true\n(B) false\nReply with the letter alone, without brackets: A or B."
    ),
    "judge": (
        "Do these two answers to one question mean the same?\n\nQuestion:\n{question}\n\nFirst answer:\n{first}\n\n"
        "Second answer:\n{second}\n\nReply with one JSON object and nothing else: "
        '{{"same": true}} or {{"same": false}}.'
    ),
    "grade": (
        "Grade an answer to a question by comparing it with the right answer.\n\nQuestion:\n{question}\n\n"
        "Right answer:\n{target}\n\nAnswer to grade:\n{answer}\n\n"
        'Use one of three grades:\n"correct": the answer contains all facts of the right answer, and nothing in it '
        "contradicts them. Wording, spelling, order and further details do not matter.\n"
        '"incorrect": a part of the answer contradicts the right answer, even if the answer expresses doubt.\n'
        '"not_attempted": the answer does not contain all facts of the right answer, but contradicts none of them, for '
        "example because it declines.\n\nReply with one JSON object and nothing else: "
        '{{"grade": "correct"}}, {{"grade": "incorrect"}} or {{"grade": "not_attempted"}}.'
    ),
    "examples": "Examples:\n\n{examples}\n\nNow the one to be answered:\n\n{question}",
    "example": "{question}\nAnswer: {answer}",
    "with_text": "Text:\n{text}\n\nQuestion: {question}",
    "instrument": (
        "Below is what one person said.\n\n{text}\n\nRate this person on one item of the {instrument}, on a scale of "
        "{low:g} to {high:g}{words}.\nItem: {item}\nGo by what the person said alone; decline where it does not tell."
    ),
}


@dataclass(frozen=True, slots=True)
class Wording:
    """The parts of a prompt that the user may change.

    Attributes:
        system_message: the system message; None for none.
        decline_instruction: the text that permits declining. Default: ``PROMPTS["decline"]``.
        confidence_target: the probability of a right answer above which the model should answer; it replaces the text
            that permits declining.
        reasoning: True if the reply has a field with reasoning in front of the answer.

    >>> print(Wording(confidence_target=0.75).declining)
    Answer only if you are more than 75% sure that your answer is right, and decline otherwise. A right answer scores 1 point, a wrong answer loses 3 points, and declining scores 0 points.
    """  # noqa: E501

    system_message: str | None = field(default=None, repr=False)
    decline_instruction: str | None = field(default=None, repr=False)
    confidence_target: float | None = None
    reasoning: bool = False

    def __post_init__(self) -> None:
        for option, text in (
            ("--system-message", self.system_message),
            ("--decline-instruction", self.decline_instruction),
        ):
            if text is not None and not text.strip():
                raise ArgumentError(f"{option} is empty; pass a text, or omit it for the default")
        target = self.confidence_target
        if target is not None and not 0.0 < target < 1.0:
            raise ArgumentError(f"--confidence-target must be between 0 and 1, such as 0.75, got {target:g}")
        if target is not None and self.decline_instruction is not None:
            raise ArgumentError(
                "--confidence-target replaces the text of --decline-instruction; pass only one of them"
            )

    @property
    def declining(self) -> str:
        """The text that permits declining."""
        if self.confidence_target is None:
            return self.decline_instruction or PROMPTS["decline"]
        target = self.confidence_target
        return PROMPTS["confidence_target"].format(percent=100 * target, penalty=target / (1 - target))


def form(
    *,
    answer: str | None,
    confidence: tuple[float, float] | None,
    quotes: bool,
    declining: str = PROMPTS["decline"],
    reasoning: bool = False,
) -> str:
    """Return the instructions for a reply; without an `answer`, for fields about an earlier answer.

    >>> print(form(answer='one of "yes", "no"', confidence=None, quotes=False))
    You may decline: if you do not know the answer, decline rather than guess.
    <BLANKLINE>
    Reply with one JSON object and nothing else, with these fields:
    - "answer": one of "yes", "no"; null to decline.
    """
    lines = [PROMPTS["follow_up"] if answer is None else f"{declining}\n", PROMPTS["reply"]]
    if reasoning:
        lines.append(PROMPTS["reasoning"])
    if answer is not None:
        lines.append(PROMPTS["answer"].format(answer=answer))
    if confidence is not None:
        line = PROMPTS["confidence"].format(low=confidence[0], high=confidence[1])
        lines.append(f"{line.removesuffix(_NO_CONFIDENCE)}." if answer is None else line)
    if quotes:
        lines.append(PROMPTS["quotes"])
    return "\n".join(lines)


def sha256() -> str:
    """Return the hash of all texts, which detects a changed text under the same version."""
    texts = "\x00".join(f"{name}={text}" for name, text in PROMPTS.items())
    return hashlib.sha256(texts.encode()).hexdigest()
