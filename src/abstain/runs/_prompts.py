"""All texts that are sent to a model, except those of the user, with a version.

The provenance of a run contains the version, these texts and the user's template, so that the run can be repeated with
the same prompts. Change `VERSION` when you change a text.
"""

from __future__ import annotations

import hashlib

VERSION = "1"

_NO_CONFIDENCE = "; null where you decline."
PROMPTS = {
    "decline": "You may decline: where you cannot tell the answer, decline rather than guess.",
    "reply": "Reply with one JSON object and nothing else, with these fields:",
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
    "examples": "Examples:\n\n{examples}\n\nNow the one to be answered:\n\n{question}",
    "example": "{question}\nAnswer: {answer}",
    "with_text": "Text:\n{text}\n\nQuestion: {question}",
    "instrument": (
        "Below is what one person said.\n\n{text}\n\nRate this person on one item of the {instrument}, on a scale of "
        "{low:g} to {high:g}{words}.\nItem: {item}\nGo by what the person said alone; decline where it does not tell."
    ),
}


def form(*, answer: str | None, confidence: tuple[float, float] | None, quotes: bool) -> str:
    """Return the instructions for a reply; without an `answer`, for fields about an earlier answer.

    >>> print(form(answer='one of "yes", "no"', confidence=None, quotes=False))
    You may decline: where you cannot tell the answer, decline rather than guess.
    <BLANKLINE>
    Reply with one JSON object and nothing else, with these fields:
    - "answer": one of "yes", "no"; null to decline.
    """
    lines = [PROMPTS["follow_up"] if answer is None else f"{PROMPTS['decline']}\n", PROMPTS["reply"]]
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
