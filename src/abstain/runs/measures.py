"""Pure functions that compute the signals of a run from replies.

Token signals and consistency come from `abstain.confidence`; the other signals are defined here. A signal that could
not be measured has the value None and is never replaced by a number.
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
    """Return the three token signals of a reply; null if the backend returned no log-probabilities.

    >>> half = math.log(0.5)
    >>> signals = token_record([{"logprob": half, "top_logprobs": [{"logprob": half}, {"logprob": half}]}])
    >>> {name: abs(round(value, 6)) for name, value in signals.items()}
    {'token_msp': 0.5, 'token_pe': 0.693147, 'token_energy': 0.0}
    >>> token_record([])
    {'token_msp': None, 'token_pe': None, 'token_energy': None}
    """
    signals: dict[str, float | None] = dict.fromkeys(TOKEN_KEYS)
    if not tokens:
        return signals
    if all(token.get("top_logprobs") for token in tokens):
        return signals | asdict(token_signals(tokens))
    # Unlike entropy and energy, the probability of the chosen tokens needs no alternatives.
    chosen = [{**token, "top_logprobs": [{"logprob": token["logprob"]}]} for token in tokens]
    return signals | {"token_msp": token_signals(chosen).token_msp}


def stated_confidence(value: float | None, scale: tuple[float, float]) -> float | None:
    """Return a stated confidence on the scale of run files, 1 to 5.

    >>> stated_confidence(75, (0, 100)), stated_confidence(4, (1, 5)), stated_confidence(None, (1, 5))
    (4.0, 4.0, None)
    """
    low, high = scale
    return None if value is None else 1.0 + 4.0 * (value - low) / (high - low)


def answer_consistency(samples: Sequence[str | None]) -> dict[str, Any]:
    """Return the agreement of samples, and the samples (None: an abstention). Without samples, all signals are null.

    If all answers are numbers, they are compared as numbers. Otherwise they are compared as labels, and
    ``consistency_score_std`` and ``consistency_modal_score`` are null. A tie prefers abstention, then the smallest
    number or the first label.

    >>> signals = answer_consistency(["2", "2", "1", None])
    >>> signals["consistency_modal_score"], signals["consistency_modal_confidence"], signals["consistency_na_rate"]
    (2.0, 0.5, 0.25)
    >>> signals["consistency_samples"]
    [2, 2, 1, None]
    >>> answer_consistency(["Paris", "paris ", None])["consistency_modal_answer"]
    'Paris'
    """
    signals: dict[str, Any] = dict.fromkeys(CONSISTENCY_KEYS)
    if not samples:
        return {**signals, "consistency_samples": [], "consistency_modal_answer": None}
    answers = [None if sample is None else labels.canonical(sample, "sample", 0) for sample in samples]
    numeric = all(answer is None or isinstance(answer, (int, float)) for answer in answers)
    codes: dict[Any, float] = {}
    numbers = [
        None if answer is None else float(answer) if numeric else codes.setdefault(answer, float(len(codes)))
        for answer in answers
    ]
    signals |= asdict(consistency_signals(numbers))
    modal = signals["consistency_modal_score"]
    if not numeric:
        signals |= {"consistency_modal_score": None, "consistency_score_std": None}
    return {
        **signals,
        "consistency_samples": answers if numeric else list(samples),
        "consistency_modal_answer": None if modal is None else samples[numbers.index(modal)],
    }


def meanings_by_words(answers: Sequence[str | None]) -> list[int]:
    """Return a number per answer, equal for equal labels; all declined answers have the same number.

    >>> meanings_by_words(["Paris", " paris", None, "Lyon", None])
    [0, 0, 1, 2, 1]
    """
    numbers: dict[Any, int] = {}
    keys = [
        ("declined",) if is_missing(answer) else labels.canonical(answer, "answer", 0) for answer in answers
    ]
    return [numbers.setdefault(key, len(numbers)) for key in keys]


def discrete_entropy(meanings: Sequence[int]) -> float | None:
    """Return the entropy of the meanings in nats; null without samples.

    Discrete semantic entropy: each sample counts equally, whatever its probability (Farquhar, Kossen, Kuhn and Gal,
    2024, doi:10.1038/s41586-024-07421-0).

    >>> discrete_entropy([0, 0, 0]), round(discrete_entropy([0, 0, 1, 1]), 6)
    (0.0, 0.693147)
    """
    if not meanings:
        return None
    proportions = [count / len(meanings) for count in Counter(meanings).values()]
    return abs(-math.fsum(proportion * math.log(proportion) for proportion in proportions))


def probability_of_true(tokens: Sequence[Mapping[str, Any]]) -> float | None:
    """Return P(True): the probability of A divided by that of A and B, at the first token that is not blank.

    The model sees its answer and replies A for true or B for false (Kadavath et al., 2022, arXiv:2207.05221). Null if
    the backend returns no log-probabilities, or if neither letter is among the most likely tokens.

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
    """Return the number of quotes that occur verbatim in the text, and the proportion that does not.

    Duplicate quotes count once, and blank ones do not count. Without quotes the proportion is null.

    >>> quote_signals(["slept badly", "felt fine", "slept badly"], "I slept badly again.")
    {'llm_evidence_count': 1, 'evidence_unsupported_share': 0.5}
    >>> quote_signals([], "I slept badly again.")
    {'llm_evidence_count': 0, 'evidence_unsupported_share': None}
    """
    if quotes is None:
        return {"llm_evidence_count": None, "evidence_unsupported_share": None}
    distinct = {quote.strip() for quote in quotes if quote.strip()}
    supported = sum(quote in text for quote in distinct)
    unsupported = (len(distinct) - supported) / len(distinct) if distinct else None
    return {"llm_evidence_count": supported, "evidence_unsupported_share": unsupported}
