"""Inspect's mock model with scripted replies, so that every signal can be worked out by hand."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import inspect_ai
from inspect_ai import Task
from inspect_ai.dataset import Sample
from inspect_ai.model import (
    ChatMessage,
    ContentText,
    Logprob,
    Logprobs,
    ModelOutput,
    ModelUsage,
    TopLogprob,
    get_model,
)

from abstain.runs import answer_scorer

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from inspect_ai.log import EvalLog, EvalSample

Tokens = list[tuple[str, float, dict[str, float]]]


def output(text: str, tokens: Tokens | None = None, *, stop: str = "stop") -> ModelOutput:
    """Return a reply; tokens are (token, probability, {alternative: probability})."""
    model_output = ModelOutput.from_content("mockllm/model", text, stop_reason=stop)  # type: ignore[arg-type]
    model_output.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
    if tokens is not None:
        model_output.choices[0].logprobs = Logprobs(
            content=[
                Logprob(
                    token=token,
                    logprob=math.log(probability),
                    top_logprobs=[TopLogprob(token=other, logprob=math.log(p)) for other, p in top.items()]
                    or None,
                )
                for token, probability, top in tokens
            ]
        )
    return model_output


def reply(answer: object, tokens: Tokens | None = None, **fields: object) -> ModelOutput:
    return output(json.dumps({"answer": answer, **fields}), tokens)


def refusal() -> ModelOutput:
    """Return a message that the provider marks as a refusal, with an ordinary stop reason."""
    refused = output("I cannot help with that.")
    refused.choices[0].message.content = [ContentText(text="I cannot help with that.", refusal=True)]
    return refused


class Script:
    """A model that returns its replies in order, and records the messages and settings of every call."""

    def __init__(self, *replies: ModelOutput) -> None:
        self.replies = list(replies)
        self.calls: list[list[ChatMessage]] = []
        self.configs: list[Any] = []

    def __call__(
        self, messages: list[ChatMessage], _tools: object, _choice: object, config: Any
    ) -> ModelOutput:
        self.calls.append(list(messages))
        self.configs.append(config)
        return self.replies[min(len(self.calls), len(self.replies)) - 1]


def run_once(folder: Path, solver: Any, script: Callable[..., ModelOutput], **sample: Any) -> EvalSample:
    """Ask one question with Inspect, and return its sample."""
    fields = {"input": "Is 7 prime?", "target": "yes", "id": 1, **sample}
    log = run_all(folder, solver, script, [Sample(**fields)])
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
