"""The language of gates: one condition per sentence, read by hand so that a mistake is answered with a suggestion.

::

    METRIC above NUMBER                 the metric itself
    METRIC below NUMBER
    METRIC worse by NUMBER              the change from the baseline, in the metric's own direction
    METRIC better by NUMBER
    METRIC higher by NUMBER             the change from the baseline, whatever is better
    METRIC lower by NUMBER
    METRIC at matched coverage worse by NUMBER

METRIC is any name of the registry, with its parameter where it has one: ``aurc``, ``ece``,
``risk_at_coverage@0.8``. How a condition is judged is said in `_gate`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from abstain import _validate
from abstain.errors import ArgumentError
from abstain.metrics.registry import find_metric

if TYPE_CHECKING:
    from abstain.metrics.registry import MetricSpecification

__all__ = ["GateCondition", "parse_condition"]

_LEVELS = ("above", "below")
_CHANGES = ("worse", "better", "higher", "lower")
_MATCHED = ("at", "matched", "coverage")
_MATCHED_METRICS = ("aurc", "augrc")
_SYMBOLS = {">": "above", ">=": "above", "<": "below", "<=": "below", "over": "above", "under": "below"}
_FORM = (
    "write METRIC above NUMBER, METRIC below NUMBER, or METRIC worse by NUMBER "
    "(also better by, higher by, lower by)"
)


@dataclass(frozen=True, eq=False, slots=True)
class GateCondition:
    """One condition, as it was understood.

    Attributes:
        text: the sentence.
        metric: what is measured.
        relation: "above", "below", "worse", "better", "higher" or "lower".
        number: the bound, or the margin of a change.
        matched: True where the change is measured at the coverage that both runs reach.

    >>> condition = parse_condition("augrc worse by 0.005")
    >>> condition.metric.name, condition.relation, condition.number, condition.needs_baseline
    ('augrc', 'worse', 0.005, True)
    """

    text: str
    metric: MetricSpecification
    relation: str
    number: float
    matched: bool = False

    @property
    def needs_baseline(self) -> bool:
        """True where the condition is about a change."""
        return self.relation in _CHANGES

    @property
    def upwards(self) -> bool:
        """True where the condition holds for what is large, else for what is small."""
        if self.relation in ("worse", "better"):
            return (self.relation == "better") == (self.metric.direction == "higher")
        return self.relation in ("above", "higher")

    def __str__(self) -> str:
        return self.text


def parse_condition(text: str) -> GateCondition:
    """Return the condition that a sentence says; an error says what could have been meant.

    >>> parse_condition("ece > 0.1")
    Traceback (most recent call last):
        ...
    abstain.errors.ArgumentError: condition 'ece > 0.1': unknown relation '>' (did you mean 'above'?); write ...
    """
    sentence = " ".join(str(text).split())
    words = sentence.split()
    if len(words) < 3:
        raise _wrong(sentence, f"too short; {_FORM}")
    metric = _metric(sentence, words[0])
    rest = [word.casefold() for word in words[1:]]
    matched = tuple(rest[:3]) == _MATCHED
    rest = rest[3:] if matched else rest
    if not rest or rest[0] not in (*_LEVELS, *_CHANGES):
        raise _wrong(sentence, _unknown_relation(rest[0] if rest else ""))
    relation, *rest = rest
    if relation in _CHANGES:
        if rest[:1] != ["by"]:
            raise _wrong(sentence, f"{relation!r} needs a margin: {words[0]} {relation} by NUMBER")
        rest = rest[1:]
    if len(rest) != 1:
        raise _wrong(sentence, f"one number must stand at its end; {_FORM}")
    number = _number(sentence, rest[0])
    _check(sentence, metric, relation, number, matched=matched)
    return GateCondition(sentence, metric, relation, number, matched)


def _metric(sentence: str, name: str) -> MetricSpecification:
    try:
        return find_metric(name)
    except ArgumentError as problem:
        raise _wrong(sentence, str(problem)) from None


def _unknown_relation(word: str) -> str:
    nearest = _SYMBOLS.get(word)
    hint = f" (did you mean {nearest!r}?)" if nearest else _validate.suggestion(word, (*_LEVELS, *_CHANGES))
    return f"unknown relation {word!r}{hint}; {_FORM}"


def _number(sentence: str, word: str) -> float:
    try:
        number = float(word)
    except ValueError:
        hint = ""
        if word.endswith("%") and word[:-1].replace(".", "", 1).isdigit():
            hint = f" (did you mean {float(word[:-1]) / 100:g}?)"
        raise _wrong(sentence, f"{word!r} is not a number{hint}") from None
    if not math.isfinite(number):
        raise _wrong(sentence, f"{word!r} is not a finite number")
    return number


def _check(
    sentence: str, metric: MetricSpecification, relation: str, number: float, *, matched: bool
) -> None:
    if relation in _CHANGES and number < 0.0:
        raise _wrong(sentence, f"a margin must not be negative, got {number:g}")
    if relation in ("worse", "better") and metric.direction == "neither":
        raise _wrong(
            sentence,
            f"{metric.key} has no better direction; write {metric.key} lower by {number:g} or "
            f"{metric.key} higher by {number:g}",
        )
    if matched and relation in _LEVELS:
        raise _wrong(sentence, "only a change from the baseline can be measured at matched coverage")
    if matched and metric.key not in _MATCHED_METRICS:
        raise _wrong(
            sentence, f"at matched coverage there are {' and '.join(_MATCHED_METRICS)}, not {metric.key}"
        )


def _wrong(sentence: str, what: str) -> ArgumentError:
    return ArgumentError(f"condition {sentence!r}: {what}")
