"""Send a question to a model and parse its reply strictly; after an unreadable reply, the question is sent once more.

Only this module calls the evaluated model for an answer. Two unreadable replies are a failure with a reason, never an
abstention. A refusal by the provider's content filter is an abstention.
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

from abstain.runs._prompts import PROMPTS
from abstain.runs._replies import Reply, UnreadableReply

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from inspect_ai.model import Model

    from abstain.runs._replies import ReplyForm

TOP_LOGPROBS = 5


@dataclass(frozen=True, slots=True)
class Exchange:
    """A conversation, the model's last output, and the content of its reply.

    An unreadable reply has the value None. `problem` is a key of `PROBLEMS` if the second reply was unreadable as well.
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
) -> Exchange:
    """Send messages and parse the reply; if it is unreadable, send the problem and parse the next reply."""
    conversation = list(messages)
    model = model or get_model()
    reminded = False
    while True:
        output = await model.generate(conversation, config=config)
        conversation.append(output.message if output.choices else ChatMessageAssistant(content=""))
        if output.stop_reason == "content_filter":
            return Exchange(conversation, output, Reply(), refused=True)
        if output.stop_reason in ("max_tokens", "model_length"):
            problem = UnreadableReply("cut_off")
        else:
            try:
                return Exchange(conversation, output, parse(output.completion))
            except UnreadableReply as unreadable:
                problem = unreadable
        if reminded:
            return Exchange(conversation, output, problem.reply, problem.code)
        conversation.append(ChatMessageUser(content=PROMPTS["reminder"].format(problem=problem)))
        reminded = True


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
            "logprob": token.logprob,
            "top_logprobs": [
                {"token": top.token, "logprob": top.logprob} for top in token.top_logprobs or ()
            ],
        }
        for token in logprobs.content
    ]
