"""All texts that a model is asked with, except the user's, in one place and with a version.

The provenance of a run contains the version, these texts and the user's template, so the run can be repeated in the
same words. Change `VERSION` when you change a text.
"""

from __future__ import annotations

import hashlib

VERSION = "1"

DECLINE = "You may decline: where you cannot tell the answer, decline rather than guess."
REPLY = "Reply with one JSON object and nothing else, with these fields:"
ANSWER = '- "answer": {answer}; null to decline.'
CONFIDENCE = (
    '- "confidence": how sure you are that the answer is right, a number from {low:g} (a guess) to {high:g} '
    "(certain)"
)
NO_CONFIDENCE = "; null where you decline."
QUOTES = (
    '- "quotes": the passages of the text that your answer rests on, each copied letter by letter; [] where there are '
    "none."
)
REMINDER = (
    "That reply could not be read: {problem}. Reply again, with one JSON object of the form asked for and nothing "
    "else."
)
FOLLOW_UP = "About the answer that you just gave:"
P_TRUE = "Is the answer that you just gave\n(A) true\n(B) false\nReply with the letter alone, without brackets: A or B."
JUDGE = (
    "Do these two answers to one question mean the same?\n\nQuestion:\n{question}\n\nFirst answer:\n{first}\n\n"
    'Second answer:\n{second}\n\nReply with one JSON object and nothing else: {{"same": true}} or {{"same": false}}.'
)
EXAMPLES = "Examples:\n\n{examples}\n\nNow the one to be answered:\n\n{question}"
EXAMPLE = "{question}\nAnswer: {answer}"
WITH_TEXT = "Text:\n{text}\n\nQuestion: {question}"
INSTRUMENT = (
    "Below is what one person said.\n\n{text}\n\nRate this person on one item of the {instrument}, on a scale of "
    "{low:g} to {high:g}{words}.\nItem: {item}\nGo by what the person said alone; decline where it does not tell."
)

PROMPTS = {
    "decline": DECLINE,
    "reply": REPLY,
    "answer": ANSWER,
    "confidence": CONFIDENCE + NO_CONFIDENCE,
    "quotes": QUOTES,
    "reminder": REMINDER,
    "follow_up": FOLLOW_UP,
    "p_true": P_TRUE,
    "judge": JUDGE,
    "examples": EXAMPLES,
    "example": EXAMPLE,
    "with_text": WITH_TEXT,
    "instrument": INSTRUMENT,
}


def form(*, answer: str | None, confidence: tuple[float, float] | None, quotes: bool) -> str:
    """Return the instructions for a reply; without an `answer`, for fields about an earlier answer.

    >>> print(form(answer='one of "yes", "no"', confidence=None, quotes=False))
    You may decline: where you cannot tell the answer, decline rather than guess.
    <BLANKLINE>
    Reply with one JSON object and nothing else, with these fields:
    - "answer": one of "yes", "no"; null to decline.
    """
    lines = [FOLLOW_UP if answer is None else f"{DECLINE}\n", REPLY]
    if answer is not None:
        lines.append(ANSWER.format(answer=answer))
    if confidence is not None:
        stated = CONFIDENCE.format(low=confidence[0], high=confidence[1])
        lines.append(stated + ("." if answer is None else NO_CONFIDENCE))
    if quotes:
        lines.append(QUOTES)
    return "\n".join(lines)


def sha256() -> str:
    """Return the hash of all texts, which detects a changed text under the same version."""
    return hashlib.sha256(
        "\x00".join(f"{name}={text}" for name, text in PROMPTS.items()).encode()
    ).hexdigest()
