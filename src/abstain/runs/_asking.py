"""Send a question to a model and parse its reply strictly; after an unreadable reply, the question is sent once more.

Only this module calls the evaluated model for an answer. Two unreadable replies are a failure with a reason, never an
abstention. A refusal is an abstention, whether the provider's content filter refuses or the model in a message that the
provider marks as a refusal.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageUser,
    ContentText,
    GenerateConfig,
    ModelOutput,
    ResponseSchema,
    get_model,
)
from inspect_ai.util import JSONSchema

from abstain.runs._prompts import PROMPTS
from abstain.runs._replies import PROBLEMS, Reply, UnreadableReply

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from inspect_ai.model import Model

    from abstain.runs._replies import ReplyForm

TOP_LOGPROBS = 5
# The largest number of alternatives that any provider returns. Other tokens have a negligible probability.
P_TRUE_TOP = 20


@dataclass(frozen=True, slots=True)
class Exchange:
    """A conversation that ends with the model's reply, its output, and its content.

    An unreadable reply has the value None. `problem` is a key of `PROBLEMS` if the reply is unreadable in part or as a
    whole.
    """

    messages: list[ChatMessage]
    output: ModelOutput
    reply: Any = None
    problem: str | None = None
    refused: bool = False


async def ask_model(
    messages: Sequence[ChatMessage],
    parse: Callable[[str], Any],
    config: GenerateConfig,
    *,
    model: Model | None = None,
    complete: bool = True,
) -> Exchange:
    """Send messages and parse the reply; if it is unreadable, send the problem and parse the next reply.

    A reply whose answer is readable counts, even if another field and the second reply are not. Without `complete`, it
    counts without a second call.
    """
    model = model or get_model()
    first = await _ask_once(messages, parse, config, model)
    if first.problem is None or (first.reply is not None and not complete):
        return first
    reminder = PROMPTS["reminder"].format(problem=PROBLEMS[first.problem])
    second = await _ask_once([*first.messages, ChatMessageUser(content=reminder)], parse, config, model)
    if first.reply is not None and (second.reply is None or second.refused):
        return first
    return second


async def _ask_once(
    messages: Sequence[ChatMessage], parse: Callable[[str], Any], config: GenerateConfig, model: Model
) -> Exchange:
    output = await model.generate(list(messages), config=config)
    conversation = [*messages, output.message if output.choices else ChatMessageAssistant(content="")]
    if _is_refusal(output):
        return Exchange(conversation, output, Reply(), refused=True)
    if output.stop_reason in ("max_tokens", "model_length"):
        return Exchange(conversation, output, problem="cut_off")
    try:
        return Exchange(conversation, output, parse(output.completion))
    except UnreadableReply as unreadable:
        return Exchange(conversation, output, unreadable.reply, unreadable.code)


def _is_refusal(output: ModelOutput) -> bool:
    """Return whether the provider refused, or marked a part of the message as the model's refusal."""
    if output.stop_reason == "content_filter":
        return True
    content = output.message.content if output.choices else ""
    return not isinstance(content, str) and any(
        isinstance(part, ContentText) and bool(part.refusal) for part in content
    )


def config_for(form: ReplyForm | None = None, **settings: Any) -> GenerateConfig:
    """Return the settings of a call, with the schema of a form for structured output."""
    settings = {name: value for name, value in settings.items() if value is not None}
    if form is not None:
        schema = JSONSchema.model_validate(form.schema())
        settings["response_schema"] = ResponseSchema(name="reply", json_schema=schema, strict=True)
    return GenerateConfig(**settings)


def token_dicts(output: ModelOutput) -> list[dict[str, Any]]:
    """Return the log-probabilities of an output as plain data; empty if the backend returned none."""
    logprobs = output.choices[0].logprobs if output.choices else None
    if logprobs is None:
        return []
    return [
        {
            "token": token.token,
            "bytes": token.bytes,
            "logprob": token.logprob,
            "top_logprobs": [
                {"token": top.token, "logprob": top.logprob} for top in token.top_logprobs or ()
            ],
        }
        for token in logprobs.content
    ]
