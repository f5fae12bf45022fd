"""Metrics for Inspect AI: put them on a scorer, and the evaluation reports them itself.

    from abstain.integrations.inspect import augrc, aurc, coverage, selective_accuracy

    @scorer(metrics=[accuracy(), coverage(), selective_accuracy(), aurc("token_msp")])
    def graded(): ...

A score with the value N, or with the reason refusal or no_response, is an abstention; NaN is unscored and
left out. Every epoch counts as an answer of its own, before Inspect reduces epochs, because that reduction
turns an abstention into a zero. The areas rank answers by a number in ``Score.metadata``; `token_confidence`
makes such numbers of the model's log-probabilities. A metric that is undefined is NaN, and a warning in the
log says why: an evaluation that took hours does not fail for want of a number.
"""

from __future__ import annotations

import logging
import math
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from inspect_ai.scorer import NOANSWER, Metric, SampleScore, Score, metric, value_to_float

from abstain.confidence import token_signals
from abstain.errors import ArgumentError
from abstain.metrics import selective

if TYPE_CHECKING:
    from inspect_ai.solver import TaskState

__all__ = ["augrc", "aurc", "coverage", "selective_accuracy", "token_confidence"]

_LOG = logging.getLogger(__name__)
_REFUSALS = ("refusal", "no_response")
_LARGEST = sys.float_info.max


@metric(scores="unreduced")
def coverage() -> Metric:
    """The share of judged answers that were not declined, K / N."""

    def measure(scores: list[SampleScore]) -> float:
        answers = _judged(scores)
        return sum(not answer.abstained for answer in answers) / len(answers) if answers else math.nan

    return measure


@metric(scores="unreduced")
def selective_accuracy() -> Metric:
    """The mean grade of what was answered; abstentions count neither way."""

    def measure(scores: list[SampleScore]) -> float:
        grades = [answer.grade for answer in _judged(scores) if not answer.abstained]
        return sum(grades) / len(grades) if grades else math.nan

    return measure


@metric(scores="unreduced")
def aurc(confidence: str = "confidence", convention: str = "trapezoid") -> Metric:
    """The area under the risk-coverage curve; the loss of an answer is 1 - its grade.

    Args:
        confidence: the key of ``Score.metadata`` that ranks answers; higher is more confident.
        convention: how the area is integrated; see `abstain.metrics.selective`.
    """

    def measure(scores: list[SampleScore]) -> float:
        return _area(selective.aurc, scores, confidence, convention)

    return measure


@metric(scores="unreduced")
def augrc(confidence: str = "confidence", convention: str = "trapezoid") -> Metric:
    """The area under the generalized risk-coverage curve; the loss of an answer is 1 - its grade.

    Args:
        confidence: the key of ``Score.metadata`` that ranks answers; higher is more confident.
        convention: how the area is integrated; see `abstain.metrics.selective`.
    """

    def measure(scores: list[SampleScore]) -> float:
        return _area(selective.augrc, scores, confidence, convention)

    return measure


def token_confidence(state: TaskState) -> dict[str, float]:
    """Return what the log-probabilities of an answer say, for ``Score.metadata``; nothing when there are none.

    ``Score(value=..., metadata=token_confidence(state))`` gives ``token_msp``, ``token_pe`` and
    ``token_energy``, and under ``confidence`` the first of them.
    """
    choices = state.output.choices
    logprobs = choices[0].logprobs if choices else None
    if logprobs is None or not logprobs.content:
        return {}
    tokens = [
        {
            "logprob": token.logprob,
            "top_logprobs": [{"logprob": top.logprob} for top in token.top_logprobs or ()]
            or [{"logprob": token.logprob}],
        }
        for token in logprobs.content
    ]
    found = token_signals(tokens)
    signals = {"confidence": found.token_msp, "token_msp": found.token_msp}
    if all(token.top_logprobs for token in logprobs.content):
        signals |= {"token_pe": found.token_pe, "token_energy": found.token_energy}
    return signals


@dataclass(frozen=True, slots=True)
class _Answer:
    abstained: bool
    grade: float
    metadata: dict[str, Any]
    sample: object


def _judged(scores: list[SampleScore]) -> list[_Answer]:
    answers = [_answer(score.score, score.sample_id) for score in scores]
    return [answer for answer in answers if answer.abstained or not math.isnan(answer.grade)]


def _answer(score: Score, sample: object) -> _Answer:
    if isinstance(score.value, (dict, list)):
        raise ArgumentError("the score has several values; these metrics need one grade for each answer")
    abstained = score.value == NOANSWER or score.reason in _REFUSALS
    grade = math.nan if abstained else float(_TO_FLOAT(score.value))
    return _Answer(abstained, grade, score.metadata or {}, sample)


_TO_FLOAT = value_to_float()


def _area(area: Any, scores: list[SampleScore], confidence: str, convention: str) -> float:
    answers = _judged(scores)
    answered = [answer for answer in answers if not answer.abstained]
    problem = next((found for answer in answered if (found := _problem(answer, confidence))), "")
    if problem:
        _LOG.warning("no risk-coverage area: %s", problem)
    if problem or not answered:
        return math.nan
    losses = [1.0 - answer.grade for answer in answered]
    levels = [float(answer.metadata[confidence]) for answer in answered]
    return float(area(losses, levels, abstained=len(answers) - len(answered), convention=convention))


def _problem(answer: _Answer, key: str) -> str:
    """Return why an answer cannot be ranked, or nothing."""
    if not 0.0 <= answer.grade <= 1.0:
        return f"sample {answer.sample}: the grade must lie in [0, 1], got {answer.grade:g}"
    value = answer.metadata.get(key)
    # Compared, not asked whether it is finite: that would fail for a whole number beyond all floats.
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not abs(value) <= _LARGEST:
        keys = ", ".join(sorted(answer.metadata)) or "none"
        return f"sample {answer.sample}: Score.metadata has no finite number {key!r} to rank by; keys: {keys}"
    return ""
