"""The signals of a run and the number of calls that they need, parsed from the option ``--signals``.

``verbalized`` (``verbalized:0-100``), ``tokens``, ``consistency:5`` (``consistency:5:first``), ``p_true``,
``semantic_entropy`` (``semantic_entropy:judge=MODEL``) and ``evidence`` (``evidence:verbatim``), separated by commas.
`solvers` measures them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from abstain import _validate
from abstain.errors import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Callable

DEFAULT_SCALE = (1.0, 5.0)
DEFAULT_SAMPLES = 5
DEFAULT_TEMPERATURE = 0.7
MOST_SAMPLES = 1000
NORMALISED, VERBATIM = "normalised", "verbatim"
JUDGE = "judge="
MODE, FIRST = "mode", "first"
ANSWERS = (MODE, FIRST)


@dataclass(frozen=True, slots=True)
class SignalPlan:
    """The signals that are recorded with each answer.

    Attributes:
        verbalized: the scale of the verbalized confidence; None without it.
        tokens: True if log-probabilities are requested.
        samples: number of further samples per item.
        consistency: True if the agreement of the samples is recorded.
        answer: the recorded answer if there is consistency: the "mode" of the samples if at least half of them have it,
            or the "first" answer.
        temperature: the temperature of the samples.
        p_true: True if the model rates whether its answer is true.
        equivalence: how to decide that two samples mean the same: "normalised" (equal labels) or ``judge=MODEL``; None
            without semantic entropy.
        evidence: True if quotes are requested.
        matching: how quotes are compared with the text: "normalised" or "verbatim".

    >>> plan = SignalPlan.parse("verbalized,tokens,consistency:3")
    >>> plan.samples, plan.calls, plan.verbalized
    (3, 4, (1.0, 5.0))
    """

    verbalized: tuple[float, float] | None = None
    tokens: bool = False
    samples: int = 0
    consistency: bool = False
    answer: str = MODE
    temperature: float = DEFAULT_TEMPERATURE
    p_true: bool = False
    equivalence: str | None = None
    evidence: bool = False
    matching: str = NORMALISED

    @classmethod
    def parse(cls, text: str) -> SignalPlan:
        """Parse a text such as ``verbalized,consistency:5``; ``none`` means no signals."""
        plan, seen = cls(), set[str]()
        for part in (piece.strip() for piece in text.split(",")):
            if part in ("", "none"):
                continue
            name, _, detail = part.partition(":")
            _validate.choice(name, "signal", _PARSERS)
            if name in seen:
                raise ArgumentError(f"duplicate signal {name}; pass it once")
            seen.add(name)
            plan = replace(plan, **_PARSERS[name](detail))
        if plan.equivalence is not None and not plan.samples:
            plan = replace(plan, samples=DEFAULT_SAMPLES)
        return plan

    def sampled(self, samples: int | None, temperature: float | None) -> SignalPlan:
        """Return the plan with another number of samples, which turns consistency on, or another temperature."""
        plan = self
        if temperature is not None:
            if not 0.0 <= _validate.real(temperature, "--consistency-temperature") <= 2.0:
                raise ArgumentError(f"--consistency-temperature must be from 0 to 2, got {temperature:g}")
            plan = replace(plan, temperature=float(temperature))
        if samples is None:
            return plan
        _validate.whole(samples, "--consistency-samples", least=1, most=MOST_SAMPLES)
        if plan.consistency and plan.samples != samples:
            raise ArgumentError(
                f"--signals has consistency:{plan.samples} and --consistency-samples is {samples}; pass only one of "
                "them"
            )
        return replace(plan, samples=samples, consistency=True)

    @property
    def judge(self) -> str | None:
        """The model that decides whether samples mean the same; None without one."""
        if self.equivalence is None or self.equivalence == NORMALISED:
            return None
        return self.equivalence.removeprefix(JUDGE)

    @property
    def calls(self) -> int:
        """Number of model calls per item if every first reply is readable."""
        return 1 + self.samples + self.p_true

    @property
    def judge_calls(self) -> int:
        """Maximum number of calls per item that compare samples: one per pair."""
        return self.samples * (self.samples - 1) // 2 if self.judge else 0

    @property
    def confidences(self) -> list[str]:
        """The confidences that the signals provide, by their names in `abstain.evaluate`."""
        recorded = {
            "llm": self.evidence,
            "verbalized": self.verbalized is not None,
            "token_msp": self.tokens,
            "answer_token_probability": self.tokens,
            "consistency": self.consistency,
            "consistency_agreement": self.consistency,
            "p_true": self.p_true,
            "semantic_entropy": self.equivalence is not None,
        }
        return [name for name, is_recorded in recorded.items() if is_recorded]

    @property
    def text(self) -> str:
        """The plan as text for `parse`, without the temperature."""
        scale = "" if self.verbalized in (None, DEFAULT_SCALE) else ":{:g}-{:g}".format(*self.verbalized)
        answer = "" if self.answer == MODE else f":{self.answer}"
        equivalence = "" if self.equivalence == NORMALISED else f":{self.equivalence}"
        parts = {
            f"verbalized{scale}": self.verbalized is not None,
            "tokens": self.tokens,
            f"consistency:{self.samples}{answer}": self.consistency,
            "p_true": self.p_true,
            f"semantic_entropy{equivalence}": self.equivalence is not None,
            "evidence" if self.matching == NORMALISED else f"evidence:{self.matching}": self.evidence,
        }
        return ",".join(part for part, is_recorded in parts.items() if is_recorded)


def _parse_scale(detail: str) -> dict[str, Any]:
    if not detail:
        return {"verbalized": DEFAULT_SCALE}
    low, dash, high = detail.partition("-")
    try:
        ends = (float(low), float(high)) if dash else None
    except ValueError:
        ends = None
    if ends is None:
        raise ArgumentError(f"verbalized takes a scale such as 1-5 or 0-100, got {detail!r}")
    return {"verbalized": _validate.scale(ends, "the scale of verbalized")}


def _parse_samples(detail: str) -> dict[str, Any]:
    number, _, answer = detail.partition(":")
    if (number and not number.isdecimal()) or answer not in ("", *ANSWERS):
        raise ArgumentError(
            "consistency takes a number of samples and optionally the recorded answer, mode or first, such as "
            f"consistency:5 or consistency:5:first, got {detail!r}"
        )
    count = int(number) if number else DEFAULT_SAMPLES
    _validate.whole(count, "the samples of consistency", least=1, most=MOST_SAMPLES)
    return {"samples": count, "consistency": True, "answer": answer or MODE}


def _parse_equivalence(detail: str) -> dict[str, Any]:
    if detail not in ("", NORMALISED) and not (detail.startswith(JUDGE) and detail != JUDGE):
        raise ArgumentError(f"semantic_entropy takes {NORMALISED} or {JUDGE}MODEL, got {detail!r}")
    return {"equivalence": detail or NORMALISED}


def _parse_matching(detail: str) -> dict[str, Any]:
    if detail not in ("", NORMALISED, VERBATIM):
        raise ArgumentError(f"evidence takes {NORMALISED} or {VERBATIM}, got {detail!r}")
    return {"evidence": True, "matching": detail or NORMALISED}


def _flag(name: str) -> Callable[[str], dict[str, Any]]:
    def read(detail: str) -> dict[str, Any]:
        if detail:
            raise ArgumentError(f"the signal {name} takes no value after a colon, got {detail!r}")
        return {name: True}

    return read


_PARSERS: dict[str, Callable[[str], dict[str, Any]]] = {
    "verbalized": _parse_scale,
    "tokens": _flag("tokens"),
    "consistency": _parse_samples,
    "p_true": _flag("p_true"),
    "semantic_entropy": _parse_equivalence,
    "evidence": _parse_matching,
}
