"""Pure functions that compute the signals of a run from replies.

Token signals and consistency come from `abstain.confidence`; the other signals are defined here. A signal that could
not be measured has the value None and is never replaced by a number.
"""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections import Counter
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from abstain import labels
from abstain.confidence import consistency_signals, token_signals
from abstain.labels import is_missing
from abstain.runs._signal_plan import NORMALISED, VERBATIM

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = [
    "answer_agreement",
    "answer_consistency",
    "answer_probability",
    "discrete_entropy",
    "meanings_by_words",
    "modal_sample",
    "normalise_quote",
    "probability_of_true",
    "quote_signals",
    "stated_confidence",
    "token_record",
]

ANSWER_PROBABILITY = "answer_token_probability"
TOKEN_KEYS = ("token_msp", "token_pe", "token_energy")
CONSISTENCY_KEYS = (
    *("consistency_modal_score", "consistency_modal_count", "consistency_modal_confidence"),
    *("consistency_score_std", "consistency_na_rate"),
)
_TAG = re.compile(r"<[^>]+>")
# Typographic quotation marks, and characters without width.
_PLAIN_CHARACTERS = str.maketrans(
    {"\u2018": "'", "\u2019": "'", "\u201c": '"', "\u201d": '"'}
    | dict.fromkeys("\u200b\u200c\u200d\ufeff", "")
)
AGREEMENT = "consistency_agreement"
# The system that defined the run file answers with the mode if at least this proportion of the samples gives it.
_MODE_AT_LEAST = 0.5


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


def answer_probability(tokens: Sequence[Mapping[str, Any]], text: str) -> float | None:
    """Return the probability of the tokens that form the answer's value in a reply, given the text before them.

    It is the product of their probabilities. Unlike ``token_msp``, it does not contain the braces, names and other
    fields of the reply. A token counts if any of its characters belongs to the value, without its quotation marks. Null
    without log-probabilities, or if the tokens do not form the reply.

    >>> pieces = [('{"answer": "', 0.99), ("ye", 0.5), ("s", 0.8), ('"}', 1.0)]
    >>> tokens = [{"token": piece, "logprob": math.log(probability)} for piece, probability in pieces]
    >>> round(answer_probability(tokens, '{"answer": "yes"}'), 6)
    0.4
    """
    pieces = [_token_bytes(token) for token in tokens]
    reply = text.strip().encode()
    # Reasoning may precede the reply, and special tokens may follow it.
    begin = b"".join(pieces).rfind(reply)
    span = _answer_span(text.strip())
    if not reply or begin < 0 or span is None:
        return None
    low, high = (begin + len(text.strip()[:end].encode()) for end in span)
    total, start = 0.0, 0
    for token, piece in zip(tokens, pieces, strict=True):
        if start < high and start + len(piece) > low:
            total += token["logprob"]
        start += len(piece)
    return min(math.exp(total), 1.0)


def _token_bytes(token: Mapping[str, Any]) -> bytes:
    """Return a token's bytes, because a token may end within a character."""
    stored = token.get("bytes")
    if stored is None or not all(0 <= byte < 256 for byte in stored):
        return str(token.get("token", "")).encode()
    return bytes(stored)


def _answer_span(text: str) -> tuple[int, int] | None:
    """Return the start and the end of the value of "answer" in a JSON object, without the quotation marks of a text."""
    decoder, blank = json.JSONDecoder(), re.compile(r"[\s,:]*")
    position = text.find("{") + 1
    try:
        while position:
            name, position = decoder.raw_decode(text, _end_of_match(blank, text, position))
            start = _end_of_match(blank, text, position)
            value, position = decoder.raw_decode(text, start)
            if name == "answer":
                is_text = isinstance(value, str)
                return start + is_text, position - is_text
    except (ValueError, RecursionError):
        pass
    return None


def _end_of_match(pattern: re.Pattern[str], text: str, position: int) -> int:
    match = pattern.match(text, position)
    return position if match is None else match.end()


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


def modal_sample(samples: Sequence[str | None]) -> int | None:
    """Return the position of the first sample with the most frequent answer; None if less than half give it.

    Abstention (None) can be the most frequent answer. Ties are decided as in `answer_consistency`.

    >>> modal_sample(["1", "2", "2", None]), modal_sample(["2", None]), modal_sample(["2", "1", "0"])
    (1, 1, None)
    """
    signals = answer_consistency(samples)
    if not samples or signals["consistency_modal_confidence"] < _MODE_AT_LEAST:
        return None
    return list(samples).index(signals["consistency_modal_answer"])


def answer_agreement(answer: str | None, samples: Sequence[str | None]) -> float | None:
    """Return the proportion of samples that give an answer (None: an abstention); null without samples.

    >>> answer_agreement("Paris", [" paris", "Lyon", None, "Lyon"]), answer_agreement("1", ["1.0", "2"])
    (0.25, 0.5)
    """
    if not samples:
        return None
    key, *keys = meanings_by_words([answer, *samples])
    return keys.count(key) / len(keys)


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


def quote_signals(
    quotes: Sequence[str] | None, text: str, matching: str = NORMALISED
) -> dict[str, float | int | None]:
    """Return the number of quotes that occur in the text, and the proportion that does not.

    Quote and text are normalised, or compared letter by letter ("verbatim"). Duplicate quotes count once, and blank
    ones do not count. Without quotes the proportion is null.

    >>> quote_signals(["slept badly", "felt fine", "slept badly"], "I slept badly again.")
    {'llm_evidence_count': 1, 'evidence_unsupported_share': 0.5}
    >>> quote_signals(["i SLEPT  badly"], "I slept badly again.", "verbatim")
    {'llm_evidence_count': 0, 'evidence_unsupported_share': 1.0}
    >>> quote_signals([], "I slept badly again.")
    {'llm_evidence_count': 0, 'evidence_unsupported_share': None}
    """
    if quotes is None:
        return {"llm_evidence_count": None, "evidence_unsupported_share": None}
    distinct = {quote.strip() for quote in quotes if quote.strip()}
    if matching == VERBATIM:
        supported = sum(quote in text for quote in distinct)
    else:
        normalised = normalise_quote(text)
        supported = sum(normalise_quote(quote) in normalised for quote in distinct if normalise_quote(quote))
    unsupported = (len(distinct) - supported) / len(distinct) if distinct else None
    return {"llm_evidence_count": supported, "evidence_unsupported_share": unsupported}


def normalise_quote(text: str) -> str:
    """Return a text in the form in which quotes are compared by the system that defined the run file.

    Unicode compatibility forms, typographic quotation marks, case, and the number of blanks do not matter. Characters
    without width are removed, and tags such as ``<laughter>`` count as blanks.

    >>> normalise_quote("I\u2019m <laughter> So\u00a0 tired")
    "i'm so tired"
    """
    plain = unicodedata.normalize("NFKC", text).translate(_PLAIN_CHARACTERS)
    return " ".join(_TAG.sub(" ", plain).split()).lower()
