"""The cost of a run: an estimate before the first call, and the tokens, the time and the price afterwards."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from abstain.runs._plan import shown_prompts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from abstain.runs._plan import Prepared, RunPlan

# Rough values for English text and for the replies that the prompts request.
_CHARACTERS_PER_TOKEN = 4
_TOKENS_PER_REPLY, _TOKENS_OF_QUOTES = 20, 80
_SECONDS_PER_CALL = 2
# The default of Inspect.
_CONNECTIONS = 10
_MILLION = 1_000_000


@dataclass(slots=True)
class Usage:
    """The tokens of all samples by model, as (input, output), and the duration of a run in seconds."""

    tokens: dict[str, tuple[int, int]] = field(default_factory=lambda: defaultdict(lambda: (0, 0)))
    seconds: float = 0.0

    def add(self, tokens: Mapping[str, tuple[int, int]]) -> None:
        """Add the tokens of a sample."""
        for model, (read, written) in tokens.items():
            before = self.tokens[model]
            self.tokens[model] = before[0] + read, before[1] + written

    def content(self, plan: RunPlan) -> dict[str, Any]:
        """Return the usage for a run file, with the cost in dollars if the plan has a price."""
        content: dict[str, Any] = {
            "tokens": {
                model: {"input": read, "output": written} for model, (read, written) in self.tokens.items()
            },
            "seconds": round(self.seconds, 1),
        }
        if plan.price is not None:
            content["price_per_million_tokens"] = {"input": plan.price[0], "output": plan.price[1]}
            content["cost"] = _cost(plan.price, self.tokens.get(plan.model, (0, 0)))
        return content

    def lines(self, plan: RunPlan) -> list[str]:
        """Return the usage as lines of text, one per model."""
        lines = []
        for model, (read, written) in self.tokens.items():
            line = f"  used: {read:,} input and {written:,} output tokens of {model}"
            if model == plan.model:
                line += f" in {_format_duration(self.seconds)}"
                if plan.price is not None:
                    line += f", ${_cost(plan.price, (read, written)):,.2f}"
            lines.append(line)
        return lines


def estimated_costs(prepared: Prepared) -> list[str]:
    """Return the number of calls, and an estimate of tokens, time and price, as lines of text."""
    plan = prepared.plan
    signals = plan.signals
    if prepared.questions is None:
        return [f"{signals.calls} calls of {plan.model} per sample; no model was called"]
    calls = prepared.samples * signals.calls
    lines = [
        f"{len(prepared.questions.questions):,} items x {len(plan.modes)} modes x {signals.calls} calls = "
        f"{calls:,} calls of {plan.model}, one before them that checks the server, and one more for each unreadable "
        "reply"
    ]
    if signals.judge:
        judge_calls = prepared.samples * signals.judge_calls
        lines.append(f"at most {judge_calls:,} calls of {signals.judge}, which compares the samples")
    if plan.grader:
        lines.append(f"at most {prepared.samples:,} calls of {plan.grader}, which grades the answers")
    tokens = _estimated_tokens(prepared)
    line = f"about {tokens[0]:,} input tokens ({_CHARACTERS_PER_TOKEN} characters each) and {tokens[1]:,} output tokens"
    if plan.price is not None:
        line += f": ${_cost(plan.price, tokens):,.2f}"
    lines.append(line)
    connections = plan.settings.get("max_connections") or _CONNECTIONS
    seconds = calls * _SECONDS_PER_CALL / connections
    lines.append(
        f"about {_format_duration(seconds)}, if a call takes {_SECONDS_PER_CALL} s and {connections} run at a time"
    )
    return [*lines, "no model was called"]


def _estimated_tokens(prepared: Prepared) -> tuple[int, int]:
    plan = prepared.plan
    prompts = [prompt for _, prompt in shown_prompts(prepared, prepared.samples)]
    read = sum(len(prompt) for prompt in prompts) // _CHARACTERS_PER_TOKEN * plan.signals.calls
    reply = _TOKENS_PER_REPLY + _TOKENS_OF_QUOTES * plan.signals.evidence
    reply = min(reply, plan.settings.get("max_tokens") or reply)
    return read, len(prompts) * plan.signals.calls * reply


def _cost(price: tuple[float, float], tokens: tuple[int, int]) -> float:
    """Return the cost in dollars.

    >>> _cost((0.5, 2.0), (1_000_000, 500_000))
    1.5
    """
    return (price[0] * tokens[0] + price[1] * tokens[1]) / _MILLION


def _format_duration(seconds: float) -> str:
    """Return a duration in two units at most.

    >>> _format_duration(12.3), _format_duration(61), _format_duration(7260)
    ('12 s', '1 min 1 s', '2 h 1 min')
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
