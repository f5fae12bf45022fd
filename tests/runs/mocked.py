"""Inspect's mock model with scripted replies: every signal has a value that can be worked by hand."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import inspect_ai
from inspect_ai import Task
from inspect_ai.dataset import Sample
from inspect_ai.model import ChatMessage, Logprob, Logprobs, ModelOutput, ModelUsage, TopLogprob, get_model

from abstain.runs import answer_scorer

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from inspect_ai.log import EvalLog, EvalSample

Tokens = list[tuple[str, float, dict[str, float]]]


def output(text: str, tokens: Tokens | None = None, *, stop: str = "stop") -> ModelOutput:
    """A reply; tokens are (token, probability, {alternative: probability})."""
    found = ModelOutput.from_content("mockllm/model", text, stop_reason=stop)  # type: ignore[arg-type]
    found.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
    if tokens is not None:
        found.choices[0].logprobs = Logprobs(
            content=[
                Logprob(
                    token=token,
                    logprob=math.log(chance),
                    top_logprobs=[TopLogprob(token=other, logprob=math.log(p)) for other, p in top.items()]
                    or None,
                )
                for token, chance, top in tokens
            ]
        )
    return found


def reply(answer: object, tokens: Tokens | None = None, **fields: object) -> ModelOutput:
    return output(json.dumps({"answer": answer, **fields}), tokens)


class Script:
    """A model that gives its replies in order, and remembers what it was asked and how."""

    def __init__(self, *replies: ModelOutput) -> None:
        self.replies = list(replies)
        self.asked: list[list[ChatMessage]] = []
        self.configs: list[Any] = []

    def __call__(
        self, messages: list[ChatMessage], _tools: object, _choice: object, config: Any
    ) -> ModelOutput:
        self.asked.append(list(messages))
        self.configs.append(config)
        return self.replies[min(len(self.asked), len(self.replies)) - 1]


def run_once(folder: Path, solver: Any, script: Callable[..., ModelOutput], **sample: Any) -> EvalSample:
    """Ask one question through Inspect, and return its sample."""
    told = {"input": "Is 7 prime?", "target": "yes", "id": 1, **sample}
    log = run_all(folder, solver, script, [Sample(**told)])
    assert log.samples is not None
    return log.samples[0]


def run_all(
    folder: Path, solver: Any, script: Callable[..., ModelOutput], samples: list[Sample], **settings: Any
) -> EvalLog:
    (log,) = inspect_ai.eval(
        Task(dataset=samples, solver=solver, scorer=answer_scorer()),
        model=get_model("mockllm/model", custom_outputs=script),
        log_dir=str(folder),
        display="none",
        fail_on_error=False,
        max_connections=1,
        max_samples=1,
        **settings,
    )
    return log
