"""Signals from raw model output: token log-probabilities and agreement over samples.

They convert the output of a model server to the numbers from which confidences are computed.
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
    """Signals from the token log-probabilities of an answer.

    Attributes:
        token_msp: mean probability of the chosen tokens; higher is more confident.
        token_pe: mean entropy of the renormalised top probabilities; lower is more confident.
        token_energy: mean log of the probability mass that the top tokens hold.
    """

    token_msp: float
    token_pe: float
    token_energy: float


@dataclass(frozen=True, slots=True)
class ConsistencySignals:
    """Agreement of repeated samples of one answer.

    Attributes:
        consistency_modal_score: the most frequent sample, None for an abstention.
        consistency_modal_count: the number of such samples.
        consistency_modal_confidence: the proportion of such samples.
        consistency_score_std: population standard deviation of the numeric samples; 0.0 if there are fewer than two.
        consistency_na_rate: proportion of samples that abstained.
    """

    consistency_modal_score: float | None
    consistency_modal_count: int
    consistency_modal_confidence: float
    consistency_score_std: float
    consistency_na_rate: float


def token_signals(tokens: Sequence[Mapping[str, Any]]) -> TokenSignals:
    """Return the signals of a list of ``{"logprob": x, "top_logprobs": [{"logprob": y}, ...]}``, one per token.

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
            raise DataError(f"token {number} has no top_logprobs; request them from the model server")
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
    """Return the agreement of samples; None is an abstention. In a tie, abstention wins, then the smallest value.

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
    """Return a number as a float; None for anything else, and for a number that is too large."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        return float(value)
    except OverflowError:
        return None
