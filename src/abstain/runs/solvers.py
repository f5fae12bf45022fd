"""Solvers for Inspect AI that allow a model to decline and record signals of its confidence.

    from abstain.runs import ask, answer_scorer

    @task
    def mine():
        return Task(dataset=..., solver=ask("verbalized,tokens,consistency:5"), scorer=answer_scorer())

`ask` combines all of them, with the syntax of ``--signals``. As separate steps: `verbalized_confidence`,
`token_signals` and `evidence` before `may_abstain` extend its call; after it, the first and the last make a separate
call. `consistency`, `p_true` and `semantic_entropy` come after it. `consistency` is the first of them, because it may
replace the answer. Signals are kept in the sample's store under
`RECORD`, and `answer_scorer` writes them to ``Score.metadata`` and thus to the log. The possible answers come from the
arguments of `may_abstain`, from ``choices`` or ``scale`` in the sample's metadata, or from the choices of the sample,
which are then answered by letter.
"""

from __future__ import annotations

import logging
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from inspect_ai.model import ChatMessageSystem, ChatMessageUser, get_model
from inspect_ai.solver import Generate, Solver, TaskState, solver
from inspect_ai.util import collect

from abstain import _validate
from abstain.errors import ArgumentError, DataError
from abstain.runs import measures
from abstain.runs._asking import P_TRUE_TOP, TOP_LOGPROBS, Exchange, ask_model, config_for, token_dicts
from abstain.runs._prompts import PROMPTS, Wording
from abstain.runs._replies import Reply, ReplyForm, parse_verdict
from abstain.runs._signal_plan import (
    ANSWERS,
    DEFAULT_SAMPLES,
    DEFAULT_TEMPERATURE,
    JUDGE,
    MODE,
    NORMALISED,
    VERBATIM,
    SignalPlan,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from inspect_ai.model import ChatMessage, GenerateConfig, Model, ModelOutput

__all__ = [
    "RECORD",
    "ask",
    "consistency",
    "evidence",
    "may_abstain",
    "output_answer",
    "p_true",
    "semantic_entropy",
    "token_signals",
    "verbalized_confidence",
]

RECORD = "abstain"
ANSWERED, ABSTAINED, FAILED = "answered", "abstained", "failed"
_P_TRUE_TOKENS = 16
_LOG = logging.getLogger(__name__)
_warned: set[str] = set()


@solver
def ask(
    signals: str | list[str] = "",
    *,
    text_key: str = "text",
    temperature: float | None = None,
    structured: bool = True,
    seed: int | None = None,
    system_message: str | None = None,
    decline_instruction: str | None = None,
    confidence_target: float | None = None,
    reasoning: bool = False,
) -> Solver:
    """Ask the question, allow the model to decline, and record signals.

    Args:
        signals: such as ``verbalized,tokens,consistency:5,p_true,semantic_entropy,evidence``.
        text_key: the metadata key of the text that quotes must come from.
        temperature: the temperature of further samples. Default: 0.7.
        structured: False for a server that does not accept a schema.
        seed: passed to the provider; each further sample has a different one.
        system_message: the system message. Default: that of the task, if it has one.
        decline_instruction: the text that permits declining.
        confidence_target: the probability of a right answer above which the model should answer, such as 0.75; it
            replaces the text that permits declining.
        reasoning: True for a field with reasoning in front of the answer.
    """
    # Inspect's command line splits a text at commas.
    text = signals if isinstance(signals, str) else ",".join(signals)
    plan = SignalPlan.parse(text).sampled(None, temperature)
    steps: list[Solver] = []
    if plan.verbalized is not None:
        steps.append(verbalized_confidence(plan.verbalized))
    if plan.tokens:
        steps.append(token_signals())
    if plan.evidence:
        steps.append(evidence(text_key, plan.matching))
    wording = Wording(system_message, decline_instruction, confidence_target, reasoning)
    steps.append(may_abstain(structured=structured, seed=seed, **asdict(wording)))
    if plan.samples and plan.consistency:
        steps.append(consistency(plan.samples, plan.temperature, plan.answer))
    if plan.p_true:
        steps.append(p_true())
    if plan.equivalence is not None:
        steps.append(semantic_entropy(plan.equivalence, plan.samples, plan.temperature))

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        for step in steps:
            state = await step(state, generate)
        return state

    return solve


@solver
def may_abstain(
    choices: list[str] | None = None,
    scale: list[float] | None = None,
    *,
    structured: bool = True,
    seed: int | None = None,
    system_message: str | None = None,
    decline_instruction: str | None = None,
    confidence_target: float | None = None,
    reasoning: bool = False,
) -> Solver:
    """Ask the sample's question, allow the model to decline, and read the reply strictly, with one retry.

    Args:
        choices: the possible answers. Default: those of the sample.
        scale: the lowest and highest possible number. Default: that of the sample.
        structured: False for a server that does not accept a schema.
        seed: passed to the provider.
        system_message: the system message. Default: that of the task, if it has one.
        decline_instruction: the text that permits declining.
        confidence_target: the probability of a right answer above which the model should answer, such as 0.75; it
            replaces the text that permits declining.
        reasoning: True for a field with reasoning in front of the answer.
    """
    wording = Wording(system_message, decline_instruction, confidence_target, reasoning)

    async def solve(state: TaskState, generate: Generate) -> TaskState:  # noqa: ARG001
        record = _record(state)
        if "outcome" in record:
            raise ArgumentError("duplicate solver: a task can contain may_abstain or ask only once")
        requested = record.setdefault("requested", {})
        form = _reply_form(state, choices, scale, requested, wording)
        prompt = state.user_prompt
        prompt.text = f"{_question(state, prompt.text, choices)}\n\n{form.instructions}"
        if wording.system_message is not None:
            state.messages = [
                ChatMessageSystem(content=wording.system_message),
                *(message for message in state.messages if message.role != "system"),
            ]
        record |= {"asked": len(state.messages), "form": asdict(form), "structured": structured, "seed": seed}
        exchange = await ask_model(state.messages, form.parse, _answer_config(record, form, seed))
        record["signals"] = {}
        return _save(state, _use_reply(state, record, exchange))

    return solve


@solver
def verbalized_confidence(scale: tuple[float, float] | list[float] = (1.0, 5.0)) -> Solver:
    """Let the model state its confidence, and record it as ``verbalized_confidence`` on a scale of 1 to 5.

    Before `may_abstain`, the confidence is a field of the reply and needs no further call. After `may_abstain`, it
    needs a separate call.

    Args:
        scale: the lowest and highest number that the model may state.
    """
    ends = _validate.scale(scale)

    async def solve(state: TaskState, generate: Generate) -> TaskState:  # noqa: ARG001
        record = _record(state)
        if "outcome" not in record:
            return _request(state, record, confidence=list(ends))
        reply = await _follow_up(state, record, ReplyForm(answered=False, confidence=ends))
        record["signals"]["verbalized_confidence"] = measures.stated_confidence(reply.confidence, ends)
        return _save(state, record)

    return solve


@solver
def token_signals(top_logprobs: int = TOP_LOGPROBS) -> Solver:
    """Request log-probabilities, and record ``token_msp``, ``token_pe`` and ``token_energy`` of the reply.

    ``answer_token_probability`` is the probability of the tokens of the answer itself, without the rest of the reply.

    Before `may_abstain`, the solver requests log-probabilities. After `may_abstain`, it uses those that the reply has.
    If the backend returns none, all of them are null, with one warning.

    Args:
        top_logprobs: number of alternatives per token.
    """

    async def solve(state: TaskState, generate: Generate) -> TaskState:  # noqa: ARG001
        record = _record(state)
        if "outcome" not in record:
            return _request(state, record, top_logprobs=top_logprobs)
        record["signals"] |= _token_signals(state.output)
        return _save(state, record)

    return solve


@solver
def evidence(text_key: str = "text", matching: str = NORMALISED) -> Solver:
    """Request quotes, and count those that occur in the text: ``llm_evidence_count``.

    ``evidence_unsupported_share`` is the proportion of quotes that do not occur. Before `may_abstain`, the quotes are a
    field of the reply and need no further call. After `may_abstain`, they need a separate call.

    Args:
        text_key: the metadata key of the text.
        matching: how a quote is compared with the text: "normalised" (case, blanks, typographic quotation marks, tags
            and Unicode forms do not matter) or "verbatim".
    """
    _validate.choice(matching, "matching", (NORMALISED, VERBATIM))

    async def solve(state: TaskState, generate: Generate) -> TaskState:  # noqa: ARG001
        record = _record(state)
        text = _text(state, text_key)
        if "outcome" not in record:
            return _request(state, record, quotes=True, text_key=text_key, matching=matching)
        reply = await _follow_up(state, record, ReplyForm(answered=False, quotes=True))
        record["signals"] |= measures.quote_signals(reply.quotes, text, matching)
        return _save(state, record)

    return solve


@solver
def consistency(
    samples: int = DEFAULT_SAMPLES, temperature: float = DEFAULT_TEMPERATURE, answer: str = MODE
) -> Solver:
    """Draw further samples of the answer, and record the samples and their agreement.

    By default, the most frequent answer of the samples (an abstention, too) replaces the answer if at least half of
    the samples give it, together with the signals of the first sample that gives it. Then
    ``consistency_modal_confidence`` describes the recorded answer. ``consistency_agreement`` always does: it is the
    proportion of samples that give the recorded answer. If the first reply is unreadable and no answer has this
    proportion, the first sample is the answer. A sample that is unreadable twice is excluded and counted in
    ``consistency_unread``.

    Args:
        samples: number of samples; each needs a call.
        temperature: the temperature of the samples.
        answer: "mode", or "first" to keep the first answer.
    """
    count = _validate.whole(samples, "samples", least=1)
    _validate.choice(answer, "answer", ANSWERS)

    async def solve(state: TaskState, generate: Generate) -> TaskState:  # noqa: ARG001
        record = _asked_record(state, "consistency")
        exchanges = await _draw_samples(state, record, count, temperature)
        drawn = _answers(exchanges)
        first_answer = record["answer"]
        if answer == MODE:
            record = _answer_with_mode(state, record, exchanges)
        record["signals"] |= measures.answer_consistency(drawn)
        record["signals"] |= {
            measures.AGREEMENT: (
                None if record["outcome"] == FAILED else measures.answer_agreement(record["answer"], drawn)
            ),
            "consistency_first_answer": first_answer,
            "consistency_unread": count - len(drawn),
        }
        record["samples"] = drawn
        return _save(state, record)

    return solve


@solver
def p_true() -> Solver:
    """Show the model its answer and record ``p_true``, the probability that it calls the answer true; needs a call.

    Null if the model declined, if the backend returns no log-probabilities, or if neither letter is likely.
    """

    async def solve(state: TaskState, generate: Generate) -> TaskState:  # noqa: ARG001
        record = _asked_record(state, "p_true")
        probability = None
        if record["outcome"] == ANSWERED:
            config = config_for(
                None, seed=record["seed"], logprobs=True, top_logprobs=P_TRUE_TOP, max_tokens=_P_TRUE_TOKENS
            )
            messages = [*state.messages, ChatMessageUser(content=PROMPTS["p_true"])]
            output = await get_model().generate(messages, config=config)
            tokens = token_dicts(output)
            _warn_without_logprobs(tokens, "p_true")
            probability = measures.probability_of_true(tokens)
        record["signals"]["p_true"] = probability
        return _save(state, record)

    return solve


@solver
def semantic_entropy(
    equivalence: str = NORMALISED, samples: int = DEFAULT_SAMPLES, temperature: float = DEFAULT_TEMPERATURE
) -> Solver:
    """Record ``semantic_entropy``, the entropy over the meanings of samples, and the number of meanings.

    Uses the samples of an earlier `consistency`. Without it, draws samples.

    Args:
        equivalence: how to decide that two samples mean the same: "normalised" (they are the same label), or
            ``judge=MODEL`` (that model compares them).
        samples: number of samples.
        temperature: the temperature of the samples.
    """
    count = _validate.whole(samples, "samples", least=1)
    if equivalence != NORMALISED and not equivalence.startswith(JUDGE):
        raise ArgumentError(f"equivalence must be {NORMALISED} or {JUDGE}MODEL, got {equivalence!r}")

    async def solve(state: TaskState, generate: Generate) -> TaskState:  # noqa: ARG001
        record = _asked_record(state, "semantic_entropy")
        drawn = record.get("samples")
        if drawn is None:
            drawn = _answers(await _draw_samples(state, record, count, temperature))
        if equivalence == NORMALISED:
            meanings: list[int] | None = measures.meanings_by_words(drawn)
        else:
            judge = get_model(equivalence.removeprefix(JUDGE))
            meanings = await _judged_meanings(state, drawn, judge)
        record["signals"] |= {
            "semantic_entropy": None if meanings is None else measures.discrete_entropy(meanings),
            "semantic_meanings": None if meanings is None else len(set(meanings)),
            "semantic_equivalence": equivalence,
        }
        return _save(state, record)

    return solve


@solver
def output_answer() -> Solver:
    """Replace the sample's output by the answer and mark the chosen choice, for scorers that expect no JSON object.

    The output of a declined question is empty. It comes last, because other solvers read the whole reply.
    """

    async def solve(state: TaskState, generate: Generate) -> TaskState:  # noqa: ARG001
        record = _asked_record(state, "output_answer")
        answer = record["answer"]
        # The message is also a part of the conversation, which keeps the reply.
        state.output = state.output.model_copy(deep=True)
        state.output.completion = answer or ""
        letters = record["form"]["choices"] or []
        if len(letters) == len(state.choices):
            for number, letter in enumerate(letters):
                state.choices.mark_choice(number, letter == answer)
        return state

    return solve


def _record(state: TaskState) -> dict[str, Any]:
    """Return a copy of a sample's record, because the store does not detect changes inside a value."""
    stored: dict[str, Any] = state.store.get(RECORD, {})
    return {name: value.copy() if isinstance(value, dict) else value for name, value in stored.items()}


def _save(state: TaskState, record: dict[str, Any]) -> TaskState:
    state.store.set(RECORD, record)
    return state


def _asked_record(state: TaskState, name: str) -> dict[str, Any]:
    record = _record(state)
    if "outcome" not in record:
        raise ArgumentError(f"{name} must come after may_abstain, which asks the question")
    return record


def _request(state: TaskState, record: dict[str, Any], **options: Any) -> TaskState:
    """Store further fields or settings that a later `may_abstain` requests together with the answer."""
    return _save(state, {**record, "requested": {**record.get("requested", {}), **options}})


def _reply_form(
    state: TaskState,
    choices: list[str] | None,
    scale: list[float] | None,
    requested: dict[str, Any],
    wording: Wording,
) -> ReplyForm:
    answers = choices or state.metadata.get("choices")
    ends = scale or state.metadata.get("scale")
    if not answers and not ends and len(state.choices):
        answers = [_letter(number) for number in range(len(state.choices))]
    confidence = requested.get("confidence")
    return ReplyForm(
        choices=tuple(str(answer) for answer in answers) if answers and not ends else None,
        scale=_validate.scale(ends) if ends else None,
        confidence=_validate.scale(confidence) if confidence else None,
        quotes=bool(requested.get("quotes")),
        reasoning=wording.reasoning,
        declining=wording.declining,
    )


def _question(state: TaskState, text: str, choices: list[str] | None) -> str:
    """Return the question, with the choices of the sample if they are answered by letter."""
    if choices or state.metadata.get("choices") or state.metadata.get("scale") or not len(state.choices):
        return text
    listed = (f"{_letter(number)}) {choice.value}" for number, choice in enumerate(state.choices))
    return "\n".join([text, "", *listed])


def _letter(number: int) -> str:
    return chr(ord("A") + number) if number < 26 else str(number + 1)


def _outcome(exchange: Exchange) -> dict[str, Any]:
    reply, problem = exchange.reply, exchange.problem
    if reply is None:
        return {"outcome": FAILED, "answer": None, "problem": problem}
    if reply.declined:
        return {"outcome": ABSTAINED, "answer": None, "problem": problem, "refused": exchange.refused}
    return {"outcome": ANSWERED, "answer": reply.answer, "problem": problem}


def _use_reply(state: TaskState, record: dict[str, Any], exchange: Exchange) -> dict[str, Any]:
    """Return the record with the outcome and the signals of a reply, which becomes the output of the sample."""
    state.messages, state.output = exchange.messages, exchange.output
    signals = _reply_signals(state, record, exchange)
    return {
        **record,
        **_outcome(exchange),
        "signals": {**record["signals"], **signals},
        "signals_of_reply": list(signals),
    }


def _reply_signals(state: TaskState, record: dict[str, Any], exchange: Exchange) -> dict[str, Any]:
    """Return the requested signals that a reply contains."""
    requested, form, reply = record["requested"], _stored_form(record), exchange.reply or Reply()
    signals: dict[str, Any] = {}
    if requested.get("top_logprobs"):
        signals |= _token_signals(exchange.output)
    if form.confidence is not None:
        signals["verbalized_confidence"] = measures.stated_confidence(reply.confidence, form.confidence)
    if form.quotes:
        signals |= measures.quote_signals(
            reply.quotes, _text(state, requested["text_key"]), requested["matching"]
        )
    return signals


def _token_signals(output: ModelOutput) -> dict[str, float | None]:
    tokens = token_dicts(output)
    _warn_without_logprobs(tokens, "the signals of tokens")
    return {
        **measures.token_record(tokens),
        measures.ANSWER_PROBABILITY: measures.answer_probability(tokens, output.completion),
    }


def _answer_with_mode(
    state: TaskState, record: dict[str, Any], exchanges: Sequence[Exchange]
) -> dict[str, Any]:
    """Return the record with the most frequent answer of the samples if at least half of them give it."""
    describing = [
        name
        for name in record["signals"]
        if name not in record["signals_of_reply"] and not name.startswith("semantic_")
    ]
    if describing:
        raise ArgumentError(
            f"consistency may replace the answer, which {', '.join(describing)} describes; put it directly after "
            "may_abstain, or pass answer='first'"
        )
    samples = _answers(exchanges)
    position = measures.modal_sample(samples)
    if record["outcome"] == FAILED:
        return _use_reply(state, record, exchanges[position or 0]) if samples else record
    if position is None or measures.answer_agreement(record["answer"], [samples[position]]):
        return record
    return _use_reply(state, record, exchanges[position])


def _warn_without_logprobs(tokens: Sequence[dict[str, Any]], signals: str) -> None:
    """Warn once per model and signal that there are no log-probabilities."""
    warning = f"{get_model()} {signals}"
    if not tokens and warning not in _warned:
        _warned.add(warning)
        _LOG.warning("%s returns no log-probabilities, so %s are null", get_model(), signals)


def _text(state: TaskState, key: str) -> str:
    text = state.metadata.get(key)
    if not isinstance(text, str):
        raise DataError(
            f"sample {_validate.place_name(state.sample_id)}: evidence needs the text in its metadata under {key!r}"
        )
    return text


async def _follow_up(state: TaskState, record: dict[str, Any], form: ReplyForm) -> Reply:
    """Ask about an answer in a separate call; without an answer, or if the reply is unreadable, it is empty."""
    if record["outcome"] != ANSWERED:
        return Reply()
    messages = [*state.messages, ChatMessageUser(content=form.instructions)]
    config = config_for(form if record["structured"] else None, seed=record["seed"])
    return (await ask_model(messages, form.parse, config)).reply or Reply()


async def _draw_samples(
    state: TaskState, record: dict[str, Any], count: int, temperature: float
) -> list[Exchange]:
    """Return the samples with a readable answer."""
    form = _stored_form(record)
    messages: list[ChatMessage] = state.messages[: record["asked"]]

    async def draw(number: int) -> Exchange:
        seed = None if record["seed"] is None else record["seed"] + 1 + number
        config = _answer_config(record, form, seed, temperature)
        return await ask_model(messages, form.parse, config, complete=False)

    exchanges = await collect(*(draw(number) for number in range(count)))
    return [exchange for exchange in exchanges if exchange.reply is not None]


def _answers(exchanges: Sequence[Exchange]) -> list[str | None]:
    """Return the answers of readable replies, with None for an abstention."""
    return [exchange.reply.answer for exchange in exchanges]


def _answer_config(
    record: dict[str, Any], form: ReplyForm, seed: int | None, temperature: float | None = None
) -> GenerateConfig:
    """Return the settings of a call for an answer and the signals of its reply."""
    top_logprobs = record["requested"].get("top_logprobs") or None
    return config_for(
        form if record["structured"] else None,
        seed=seed,
        temperature=temperature,
        logprobs=True if top_logprobs else None,
        top_logprobs=top_logprobs,
    )


def _stored_form(record: dict[str, Any]) -> ReplyForm:
    """Return the form of the answer's reply; the store turns tuples into lists."""
    fields: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in record["form"].items()
    }
    return ReplyForm(**fields)


async def _judged_meanings(state: TaskState, answers: Sequence[str | None], judge: Model) -> list[int] | None:
    """Return a number per answer, equal for answers with the same meaning; None if a verdict is unreadable.

    The model `judge` compares each answer with the first answer of every meaning so far. Equal labels need no call.
    """
    label_numbers = measures.meanings_by_words(answers)
    first_answers: list[str | None] = []
    meaning_of_label: dict[int, int] = {}
    for answer, label in zip(answers, label_numbers, strict=True):
        if label in meaning_of_label:
            continue
        for meaning, first in enumerate(first_answers):
            if answer is None or first is None:
                continue
            prompt = PROMPTS["judge"].format(question=state.input_text, first=first, second=answer)
            verdict = await ask_model(
                [ChatMessageUser(content=prompt)], parse_verdict, config_for(), model=judge
            )
            if verdict.reply is None or verdict.refused:
                return None
            if verdict.reply:
                meaning_of_label[label] = meaning
                break
        else:
            meaning_of_label[label] = len(first_answers)
            first_answers.append(answer)
    return [meaning_of_label[label] for label in label_numbers]
