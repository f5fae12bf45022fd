"""Asking: one question to the model, its reply read strictly, asked again once, and what became of it.

This is the one place that calls the model under test for an answer. A reply that cannot be read twice is a failure with
its reason, never an abstention. A provider that says itself that it refused (its content filter) is an abstention: that
is no guess.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageUser,
    GenerateConfig,
    ModelOutput,
    ResponseSchema,
    get_model,
)
from inspect_ai.util import JSONSchema

from abstain.runs import _prompts
from abstain.runs._replies import PROBLEMS, Reply, UnreadableReply

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from inspect_ai.model import Model

    from abstain.runs._replies import ReplyForm

TOP_LOGPROBS = 5
_SCHEMA_NAME = "reply"


@dataclass(frozen=True, slots=True)
class Exchange:
    """What came of a question.

    Attributes:
        messages: the conversation, the last reply included.
        output: the model's last output.
        reply: what it says; None where it could not be read.
        problem: the code of what could not be read of it, even the second time.
        refused: True where the provider says that it refused.
    """

    messages: list[ChatMessage]
    output: ModelOutput
    reply: Any = None
    problem: str | None = None
    refused: bool = False


async def ask(
    messages: Sequence[ChatMessage],
    read: Callable[..., Any],
    config: GenerateConfig,
    *,
    model: Model | None = None,
) -> Exchange:
    """Ask, read the reply, and if it cannot be read ask once more, saying why."""
    told = list(messages)
    problem: UnreadableReply | None = None
    asked = model or get_model()
    for attempt in range(2):
        output = await asked.generate(told, config=config)
        told = [*told, output.message if output.choices else ChatMessageAssistant(content="")]
        if output.stop_reason == "content_filter":
            return Exchange(told, output, Reply(), refused=True)
        try:
            reply = read(output.completion, cut_off=output.stop_reason in ("max_tokens", "model_length"))
            return Exchange(told, output, reply)
        except UnreadableReply as unreadable:
            problem = unreadable
        if attempt == 0:
            told = [*told, ChatMessageUser(content=_prompts.reminder(str(problem)))]
    assert problem is not None
    return Exchange(told, output, problem.reply, problem.code)


def config_for(form: ReplyForm | None = None, **settings: Any) -> GenerateConfig:
    """Return how the model is asked: with the schema of a form, where structured output is wanted."""
    given = {name: value for name, value in settings.items() if value is not None}
    if form is not None:
        schema = JSONSchema.model_validate(form.schema())
        given["response_schema"] = ResponseSchema(name=_SCHEMA_NAME, json_schema=schema, strict=True)
    return GenerateConfig(**given)


def token_dicts(output: ModelOutput) -> list[dict[str, Any]]:
    """Return the log-probabilities of an output as plain data; none where the backend gave none."""
    logprobs = output.choices[0].logprobs if output.choices else None
    if logprobs is None:
        return []
    return [
        {
            "token": token.token,
            "logprob": token.logprob,
            "top_logprobs": [
                {"token": top.token, "logprob": top.logprob} for top in token.top_logprobs or ()
            ],
        }
        for token in logprobs.content
    ]


def why(code: str) -> str:
    """Return the sentence of a problem."""
    return PROBLEMS[code]
