"""Load the models of a run, and check their server with one call before the first question."""

from __future__ import annotations

import asyncio
import contextlib
import io
import re
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any

from inspect_ai.model import ChatMessageUser, get_model

from abstain import _process
from abstain.errors import AbstainError, ArgumentError, DataError
from abstain.runs._asking import P_TRUE_TOP, TOP_LOGPROBS, config_for
from abstain.runs._replies import ReplyForm

if TYPE_CHECKING:
    from collections.abc import Callable

    from inspect_ai.model import GenerateConfig, Model

    from abstain.runs._plan import Prepared, RunPlan

_QUESTION = "This call checks the connection. Decline to answer."
# Retries of the first call. Waits grow, so that more of them would delay the report of a missing server for minutes.
_MOST_RETRIES = 3
_REFUSED = ("HTTP 400", "HTTP 422")
# A request that was retried has the name of its last error.
_TOO_MANY = ("HTTP 429", "RateLimitError")
_REMEDIES = {
    "HTTP 401": "check the API key",
    "HTTP 403": "check the API key",
    "HTTP 404": "check the name of the model and --base-url",
}
_MARKUP = re.compile(r"\[/?[a-z_ ]+\]")
_ERROR_NAME = re.compile(r"(?:\w+\.)*([A-Z]\w{0,50}(?:Error|Exception|Timeout|Exceeded))(?=\W|$)", re.ASCII)
# The error of the last attempt.
_RETRIED = re.compile(r"(?:\w+\.)*RetryError\W.{0,100} raised (\w{1,50})>")
_DISK_ERRORS = ("OSError", "OperationalError")
_STATUS = re.compile(r"\b(?:Error code|status(?:_code)?)\W{1,3}(\d{3})\b")


def load_models(plan: RunPlan) -> Model:
    """Return the model; unknown names and missing keys, also of further models, are errors before any call."""
    for other in (plan.signals.judge, plan.grader):
        if other not in (None, plan.model):
            load_model(other)
    return load_model(plan.model, base_url=plan.base_url, **plan.model_args)


def load_model(name: str | None, **options: Any) -> Model:
    """Return a model whose requests are retried only by Inspect, which counts its retries."""
    try:
        # The first call would print the names of Inspect's hooks.
        with contextlib.redirect_stdout(io.StringIO()):
            model = get_model(name, **options)
    except AbstainError:
        raise
    except Exception as problem:
        words = " ".join(_MARKUP.sub("", str(problem)).split()) or type(problem).__name__
        raise ArgumentError(f"cannot call the model {name}: {words}") from None
    # The clients of OpenAI, Anthropic and others would retry each attempt twice.
    client: Any = getattr(model.api, "client", None)
    if "max_retries" not in options and isinstance(getattr(client, "max_retries", None), int):
        client.max_retries = 0
    return model


def check_server(prepared: Prepared) -> None:
    """Send one call in the form of the questions, but without their text; raise if the server does not answer it."""
    plan, signals = prepared.plan, prepared.plan.signals
    form = _probe_form(prepared) if plan.structured else None
    needing = [name for name in ("tokens", "p_true") if getattr(signals, name)]
    top_logprobs = P_TRUE_TOP if signals.p_true else TOP_LOGPROBS if signals.tokens else None
    reason = _probe(plan, form, top_logprobs)
    if reason is None or reason in _TOO_MANY:
        return
    if reason in _REFUSED:
        no_schema = "pass --no-structured"
        omit = f"omit {' and '.join(needing)} from --signals"
        alternatives: list[tuple[str, str, ReplyForm | None, int | None]] = []
        if form is not None:
            alternatives.append(("the JSON schema of the replies", no_schema, None, top_logprobs))
        if len(needing) == 2:
            alternatives.append(
                (
                    f"{P_TRUE_TOP} log-probabilities per token",
                    "omit p_true from --signals",
                    form,
                    TOP_LOGPROBS,
                )
            )
        if needing:
            alternatives.append(("to return log-probabilities", omit, form, None))
        if form is not None and needing:
            both = "the JSON schema of the replies and log-probabilities"
            alternatives.append((both, f"{no_schema} and {omit}", None, None))
        for refused, remedy, other_form, other_logprobs in alternatives:
            if _probe(plan, other_form, other_logprobs) is None:
                raise ArgumentError(f"{plan.model}: the server refuses {refused} ({reason}); {remedy}")
    remedy = _REMEDIES.get(reason, "check that the server runs, and --base-url")
    raise DataError(f"{plan.model}: the first call failed ({reason}), and no question was sent; {remedy}")


def error_name(message: str) -> str:
    """Return the HTTP status of an error, or its class name if it has no status, without its text.

    >>> error_name("Error code: 404 - the prompt was ..."), error_name("TimeoutError('the prompt was ...')")
    ('HTTP 404', 'TimeoutError')
    >>> error_name("RetryError[<Future at 0x7f state=finished raised InternalServerError>]")
    'InternalServerError'
    """
    status, name = _STATUS.search(message), _RETRIED.match(message) or _ERROR_NAME.match(message)
    if status:
        return f"HTTP {status[1]}"
    error = name[1] if name else "error"
    return f"{error}, perhaps because the disk is full" if error in _DISK_ERRORS else error


def _probe_form(prepared: Prepared) -> ReplyForm:
    questions, signals = prepared.questions, prepared.plan.signals
    scale = None if questions is None else questions.scale
    has_choices = questions is not None and any(question.choices for question in questions.questions)
    return ReplyForm(
        choices=("yes", "no") if has_choices and scale is None else None,
        scale=scale,
        confidence=signals.verbalized,
        quotes=signals.evidence,
    )


def _probe(plan: RunPlan, form: ReplyForm | None, top_logprobs: int | None) -> str | None:
    """Call the model once, and return the reason of a failure, or None."""
    retries = plan.settings.get("max_retries")
    timeout = plan.settings.get("timeout")
    config = config_for(
        form,
        seed=plan.seed,
        logprobs=True if top_logprobs else None,
        top_logprobs=top_logprobs,
        temperature=plan.settings.get("temperature"),
        max_tokens=plan.settings.get("max_tokens"),
        max_retries=_MOST_RETRIES if retries is None else min(retries, _MOST_RETRIES),
        timeout=timeout,
        attempt_timeout=timeout,
    )
    instructions = "" if form is None else f"\n\n{form.instructions}"
    call = partial(_call_in_loop, plan, f"{_QUESTION}{instructions}", config)
    if _is_loop_running():
        with ThreadPoolExecutor(1) as pool:
            reason = pool.submit(call).result()
    else:
        reason = call()
    if _process.stop_code() is not None:
        raise KeyboardInterrupt
    return reason


def _call_in_loop(plan: RunPlan, prompt: str, config: GenerateConfig) -> str | None:
    with _process.cancelling_event_loop() as connect:
        return asyncio.run(_call_once(plan, prompt, config, connect))


async def _call_once(
    plan: RunPlan, prompt: str, config: GenerateConfig, connect: Callable[[], object]
) -> str | None:
    connect()
    # The clients of a model belong to one event loop, so the run gets another one.
    model = load_model(plan.model, base_url=plan.base_url, memoize=False, **plan.model_args)
    async with model:
        try:
            await model.generate([ChatMessageUser(content=prompt)], config=config)
        except Exception as problem:
            return error_name(repr(problem)) if (name := error_name(str(problem))) == "error" else name
    return None


def _is_loop_running() -> bool:
    """Return whether this thread has an event loop, as in a notebook, so that another one needs another thread."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
