"""Signals from raw model output: token log-probabilities and agreement over samples.

These turn what a model server returns into the numbers that confidence variants are made of. They know
nothing of items.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from abstain.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@dataclass(frozen=True, slots=True)
class TokenSignals:
    """What token log-probabilities say about an answer.

    Attributes:
        token_msp: mean probability of the tokens that were chosen; higher is more confident.
        token_pe: mean entropy of the renormalised top probabilities; lower is more confident.
        token_energy: mean log of the probability mass that the top tokens hold.
    """

    token_msp: float
    token_pe: float
    token_energy: float


@dataclass(frozen=True, slots=True)
class ConsistencySignals:
    """How far repeated samples of one answer agree.

    Attributes:
        consistency_modal_score: the most frequent sample, None for an abstention.
        consistency_modal_count: how many samples it has.
        consistency_modal_confidence: its share of all samples.
        consistency_score_std: population standard deviation of the numeric samples; 0.0 below two of them.
        consistency_na_rate: share of samples that abstained.
    """

    consistency_modal_score: float | None
    consistency_modal_count: int
    consistency_modal_confidence: float
    consistency_score_std: float
    consistency_na_rate: float


def token_signals(tokens: Sequence[Mapping[str, Any]]) -> TokenSignals:
    """Return the signals of a list of ``{"logprob": x, "top_logprobs": [{"logprob": y}, ...]}``, one a token.

    >>> half = math.log(0.5)
    >>> signals = token_signals([{"logprob": half, "top_logprobs": [{"logprob": half}, {"logprob": half}]}])
    >>> round(signals.token_msp, 6), round(signals.token_pe / math.log(2), 6), abs(round(signals.token_energy, 6))
    (0.5, 1.0, 0.0)
    """
    if not tokens:
        raise DataError("tokens is empty; there must be at least one token")
    probabilities, entropies, energies = [], [], []
    for number, token in enumerate(tokens):
        chosen = _logprob(token, f"token {number}")
        if not token.get("top_logprobs"):
            raise DataError(f"token {number} has no top_logprobs; ask the model server for them")
        top = [
            _logprob(other, f"token {number}, top_logprobs {rank}")
            for rank, other in enumerate(token["top_logprobs"])
        ]
        peak = max(top)
        energy = peak + math.log(sum(math.exp(value - peak) for value in top))
        probabilities.append(math.exp(chosen))
        energies.append(energy)
        entropies.append(-sum(math.exp(value - energy) * (value - energy) for value in top))
    count = len(tokens)
    return TokenSignals(sum(probabilities) / count, sum(entropies) / count, sum(energies) / count)


def consistency_signals(samples: Sequence[float | None]) -> ConsistencySignals:
    """Return how far samples agree; None is an abstention. A tie prefers abstention, else the smallest value.

    >>> consistency_signals([2, 2, 1, None]).consistency_modal_confidence
    0.5
    >>> consistency_signals([2, 1, None]).consistency_modal_score is None
    True
    """
    if not samples:
        raise DataError("samples is empty; there must be at least one sample")
    scores = [_score(value, number) for number, value in enumerate(samples) if value is not None]
    abstained = len(samples) - len(scores)
    ranked = sorted(Counter(scores).items(), key=lambda pair: (-pair[1], pair[0]))
    modal: float | None = None
    count = abstained
    if ranked and ranked[0][1] > abstained:
        modal, count = ranked[0]
    spread = 0.0
    if len(scores) >= 2:
        mean = math.fsum(scores) / len(scores)
        spread = math.sqrt(math.fsum((score - mean) ** 2 for score in scores) / len(scores))
    return ConsistencySignals(modal, count, count / len(samples), spread, abstained / len(samples))


def _logprob(token: Mapping[str, Any], location: str) -> float:
    value = _number(token.get("logprob"))
    if value is None or math.isnan(value) or value > 1e-9:
        raise DataError(f"{location}: logprob must be a number of at most 0")
    return value


def _score(value: Any, position: int) -> float:
    number = _number(value)
    if number is None or not math.isfinite(number):
        raise DataError(f"sample {position} must be a finite number or None")
    return number


def _number(value: Any) -> float | None:
    """Return a number as a float; None for anything else, and for what is too large to be one."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        return float(value)
    except OverflowError:
        return None
