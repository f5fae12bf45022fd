"""Signals of a run, worked out from what was said: pure functions, each with its definition.

Token signals and agreement over samples are those of `abstain.confidence`; here stand the ones that only a run can
record. None is a signal that could not be measured, and is never replaced by a number.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from abstain import labels
from abstain.confidence import consistency_signals, token_signals
from abstain.labels import is_missing

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = [
    "answer_consistency",
    "discrete_entropy",
    "meanings_by_words",
    "probability_of_true",
    "quote_signals",
    "stated_confidence",
    "token_record",
]

TOKEN_KEYS = ("token_msp", "token_pe", "token_energy")
CONSISTENCY_KEYS = (
    *("consistency_modal_score", "consistency_modal_count", "consistency_modal_confidence"),
    *("consistency_score_std", "consistency_na_rate"),
)


def token_record(tokens: Sequence[Mapping[str, Any]]) -> dict[str, float | None]:
    """Return the three token signals of a reply; null where the backend gave no log-probabilities.

    >>> half = math.log(0.5)
    >>> found = token_record([{"logprob": half, "top_logprobs": [{"logprob": half}, {"logprob": half}]}])
    >>> {name: abs(round(value, 6)) for name, value in found.items()}
    {'token_msp': 0.5, 'token_pe': 0.693147, 'token_energy': 0.0}
    >>> token_record([])
    {'token_msp': None, 'token_pe': None, 'token_energy': None}
    """
    found: dict[str, float | None] = dict.fromkeys(TOKEN_KEYS)
    if not tokens:
        return found
    if all(token.get("top_logprobs") for token in tokens):
        return {**found, **asdict(token_signals(tokens))}
    # The probability of what was chosen needs no alternatives; entropy and mass do.
    own = [{**token, "top_logprobs": [{"logprob": token["logprob"]}]} for token in tokens]
    return {**found, "token_msp": token_signals(own).token_msp}


def stated_confidence(value: float | None, scale: tuple[float, float]) -> float | None:
    """Return a stated confidence on the scale of 1 to 5 that run files have.

    >>> stated_confidence(75, (0, 100)), stated_confidence(4, (1, 5)), stated_confidence(None, (1, 5))
    (4.0, 4.0, None)
    """
    low, high = scale
    return None if value is None else 1.0 + 4.0 * (value - low) / (high - low)


def answer_consistency(samples: Sequence[str | None]) -> dict[str, Any]:
    """Return how far samples agree; None is an abstention. Nothing to compare: every signal is null.

    Answers that are all numbers are compared as numbers and have a spread; others are compared as labels, and have
    none: their ``consistency_score_std`` and ``consistency_modal_score`` are null. A tie prefers abstention, else the
    smallest number, or of other labels the one that was said first. The samples themselves come along.

    >>> found = answer_consistency(["2", "2", "1", None])
    >>> found["consistency_modal_score"], found["consistency_modal_confidence"], found["consistency_na_rate"]
    (2.0, 0.5, 0.25)
    >>> found["consistency_samples"]
    [2, 2, 1, None]
    >>> answer_consistency(["Paris", "paris ", None])["consistency_modal_answer"]
    'Paris'
    """
    keys: dict[str, Any] = dict.fromkeys(CONSISTENCY_KEYS)
    said = [None if sample is None else labels.canonical(sample, "sample", 0) for sample in samples]
    if not samples:
        return {**keys, "consistency_samples": [], "consistency_modal_answer": None}
    numeric = all(value is None or isinstance(value, (int, float)) for value in said)
    codes: dict[Any, float] = {}
    numbers = [
        None if value is None else float(value) if numeric else codes.setdefault(value, float(len(codes)))
        for value in said
    ]
    keys |= asdict(consistency_signals(numbers))
    modal = keys["consistency_modal_score"]
    place = None if modal is None else numbers.index(modal)
    if not numeric:
        keys |= {"consistency_modal_score": None, "consistency_score_std": None}
    return {
        **keys,
        "consistency_samples": said if numeric else list(samples),
        "consistency_modal_answer": None if place is None else samples[place],
    }


def meanings_by_words(answers: Sequence[str | None]) -> list[int]:
    """Return a number per answer, the same for answers that are the same label; to decline is one meaning, too.

    >>> meanings_by_words(["Paris", " paris", None, "Lyon", None])
    [0, 0, 1, 2, 1]
    """
    seen: dict[Any, int] = {}
    keys = [
        ("declined",) if is_missing(answer) else labels.canonical(answer, "answer", 0) for answer in answers
    ]
    return [seen.setdefault(key, len(seen)) for key in keys]


def discrete_entropy(meanings: Sequence[int]) -> float | None:
    """Return the entropy in nats of how often each meaning was said; null where nothing was.

    Discrete semantic entropy: each sample counts the same, whatever its probability (Farquhar, Kossen, Kuhn and Gal,
    2024, doi:10.1038/s41586-024-07421-0).

    >>> discrete_entropy([0, 0, 0]), round(discrete_entropy([0, 0, 1, 1]), 6)
    (0.0, 0.693147)
    """
    if not meanings:
        return None
    shares = [count / len(meanings) for count in Counter(meanings).values()]
    return abs(-math.fsum(share * math.log(share) for share in shares))


def probability_of_true(tokens: Sequence[Mapping[str, Any]]) -> float | None:
    """Return P(True): the mass of A among that of A and B, at the first token that is not blank.

    A model that is shown its answer says A for true and B for false (Kadavath et al., 2022, arXiv:2207.05221). Null
    where the backend gives no log-probabilities, or neither letter is among the likeliest tokens.

    >>> top = [{"token": "A", "logprob": math.log(0.6)}, {"token": " B", "logprob": math.log(0.2)}]
    >>> round(probability_of_true([{"token": "A", "logprob": math.log(0.6), "top_logprobs": top}]), 6)
    0.75
    >>> probability_of_true([]) is None
    True
    """
    first = next((token for token in tokens if str(token.get("token", "")).strip()), None)
    if first is None:
        return None
    mass = {"A": 0.0, "B": 0.0}
    for top in first.get("top_logprobs") or ():
        letter = str(top.get("token", "")).strip()
        if letter in mass:
            mass[letter] += math.exp(top["logprob"])
    total = mass["A"] + mass["B"]
    return mass["A"] / total if total > 0.0 else None


def quote_signals(quotes: Sequence[str] | None, text: str) -> dict[str, float | int | None]:
    """Return how many quotes stand in the text letter by letter, and which share of them does not.

    A quote that is given twice counts once, and one without letters counts as none. No quotes: the share is null.

    >>> quote_signals(["slept badly", "felt fine", "slept badly"], "I slept badly again.")
    {'llm_evidence_count': 1, 'evidence_unsupported_share': 0.5}
    >>> quote_signals([], "I slept badly again.")
    {'llm_evidence_count': 0, 'evidence_unsupported_share': None}
    """
    if quotes is None:
        return {"llm_evidence_count": None, "evidence_unsupported_share": None}
    given = dict.fromkeys(quote.strip() for quote in quotes if quote.strip())
    standing = sum(quote in text for quote in given)
    share = (len(given) - standing) / len(given) if given else None
    return {"llm_evidence_count": standing, "evidence_unsupported_share": share}
