"""The conditions of a gate.

Conditions are sentences. They are parsed by hand, so that an error can suggest a correction::

    METRIC above NUMBER                 the metric itself
    METRIC below NUMBER
    METRIC worse by NUMBER              the change from the baseline, in the direction of the metric
    METRIC better by NUMBER
    METRIC higher by NUMBER             the change from the baseline, whichever direction is better
    METRIC lower by NUMBER
    METRIC at matched coverage worse by NUMBER

METRIC is any name of the registry, with its parameter if it has one: ``aurc``, ``ece``, ``risk_at_coverage@0.8``. The
words "at matched coverage" are optional: a matched metric is always measured there.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from abstain import _validate
from abstain.errors import ArgumentError
from abstain.metrics.registry import PENALIZED, find_metric

if TYPE_CHECKING:
    from abstain.metrics.registry import MetricSpecification

_LEVELS = ("above", "below")
_CHANGES = ("worse", "better", "higher", "lower")
_MATCHED = ("at", "matched", "coverage")
# Conditions on these metrics, with these relations, keep a run from passing because it declines more.
_COVERAGE_BOUNDS = {
    "answer_rate": ("below", "lower"),
    "cmax": ("below", "lower"),
    "abstention_rate": ("above", "higher"),
    "coverage_at_risk": ("below", "lower", "worse"),
    "coverage_at_accuracy": ("below", "lower", "worse"),
}
_SYMBOLS = {">": "above", ">=": "above", "<": "below", "<=": "below", "over": "above", "under": "below"}
_FORM = (
    "write METRIC above NUMBER, METRIC below NUMBER, or METRIC worse by NUMBER "
    "(also better by, higher by, lower by)"
)


@dataclass(frozen=True, eq=False, slots=True)
class GateCondition:
    """One parsed condition.

    Attributes:
        text: the sentence.
        metric: the metric.
        relation: "above", "below", "worse", "better", "higher" or "lower".
        number: the bound, or the margin of a change.
        relative: True if the margin is a percentage of the baseline's value.

    >>> condition = parse_condition("augrc worse by 0.005")
    >>> condition.metric.name, condition.relation, condition.number, condition.needs_baseline
    ('augrc', 'worse', 0.005, True)
    """

    text: str
    metric: MetricSpecification
    relation: str
    number: float
    relative: bool = False

    @property
    def measured(self) -> str:
        """The key of the metric."""
        return self.metric.key

    @property
    def needs_baseline(self) -> bool:
        """True if the condition is about a change."""
        return self.relation in _CHANGES

    @property
    def upwards(self) -> bool:
        """True if the condition holds for large values, False if it holds for small ones."""
        if self.relation in ("worse", "better"):
            return (self.relation == "better") == (self.metric.direction == "higher")
        return self.relation in ("above", "higher")

    @property
    def passes_by_declining(self) -> bool:
        """True if a run could pass because it declines more items: the metric has a direction and does not penalize."""
        return self.metric.direction != "neither" and self.metric.comparison != PENALIZED

    @property
    def bounds_coverage(self) -> bool:
        """True if the condition fails a run that declines too many items."""
        return self.relation in _COVERAGE_BOUNDS.get(self.metric.name, ())

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class PolicyCondition:
    """The condition that a policy's risk guarantee is broken.

    Attributes:
        text: the sentence.
        number: the risk limit of the guarantee.
        relation: always "above".
        measured: always "risk of the policy".
    """

    text: str
    number: float
    relation: str = "above"
    measured: str = "risk of the policy"

    def __str__(self) -> str:
        return self.text


def parse_condition(text: str) -> GateCondition:
    """Return the condition of a sentence; an error suggests a correction.

    >>> parse_condition("ece > 0.1")
    Traceback (most recent call last):
        ...
    abstain.errors.ArgumentError: condition 'ece > 0.1': unknown relation '>' (did you mean 'above'?); write ...
    """
    sentence = " ".join(str(text).split())
    try:
        return _parse(sentence)
    except ArgumentError as problem:
        raise ArgumentError(f"condition {sentence!r}: {problem}") from None


def _parse(sentence: str) -> GateCondition:
    words = sentence.split()
    if len(words) < 3:
        raise ArgumentError(f"too short; {_FORM}")
    metric = find_metric(words[0])
    rest = [word.casefold() for word in words[1:]]
    matched = tuple(rest[:3]) == _MATCHED
    rest = rest[3:] if matched else rest
    if not rest or rest[0] not in (*_LEVELS, *_CHANGES):
        raise ArgumentError(_unknown_relation(rest[0] if rest else ""))
    relation, *rest = rest
    if relation in _CHANGES:
        if rest[:1] != ["by"]:
            raise ArgumentError(f"{relation!r} needs a margin: {words[0]} {relation} by NUMBER")
        rest = rest[1:]
    if len(rest) != 1:
        raise ArgumentError(f"it must end with one number; {_FORM}")
    number = _number(rest[0])
    if relation in _CHANGES and number < 0.0:
        raise ArgumentError(f"a margin must not be negative, got {number:g}")
    if relation in ("worse", "better") and metric.direction == "neither":
        raise ArgumentError(
            f"{metric.key} has no better direction; write {metric.key} lower by {number:g} or "
            f"{metric.key} higher by {number:g}"
        )
    if matched and relation in _LEVELS:
        raise ArgumentError("only a change from the baseline can be measured at matched coverage")
    if matched and metric.matched is None:
        raise ArgumentError(f"{metric.key} is not compared at matched coverage; remove these words")
    relative = relation in _CHANGES and rest[0].endswith("%")
    return GateCondition(sentence, metric, relation, number, relative)


def _unknown_relation(word: str) -> str:
    nearest = _SYMBOLS.get(word)
    hint = f" (did you mean {nearest!r}?)" if nearest else _validate.suggestion(word, (*_LEVELS, *_CHANGES))
    return f"unknown relation {word!r}{hint}; {_FORM}"


def _number(word: str) -> float:
    try:
        number = float(word.removesuffix("%"))
    except ValueError:
        raise ArgumentError(f"{word!r} is not a number") from None
    if not math.isfinite(number):
        raise ArgumentError(f"{word!r} is not a finite number")
    return number / 100.0 if word.endswith("%") else number
