"""Solvers for Inspect AI: ask with leave to decline, and record what tells how sure the answer is.

    from abstain.runs import ask, judged

    @task
    def mine():
        return Task(dataset=..., solver=ask("verbalized,tokens,consistency:5"), scorer=judged())

`ask` is all of them in one, by the words of ``--signals``. One by one: `verbalized_confidence`, `token_signals` and
`evidence` before `may_abstain` add to its one call; after it, the first and the last ask in a call of their own.
`consistency`, `p_true` and `semantic_entropy` come after it. What they find is kept in the sample's store under
`RECORD`, and `judged` writes it to ``Score.metadata``, so that the log carries it. Which answers there can be is said
by the arguments of `may_abstain`, by ``choices`` or ``scale`` in the sample's metadata, or by the choices of the
sample, which are then answered by letter.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from inspect_ai.model import ChatMessageUser, get_model
from inspect_ai.solver import Generate, Solver, TaskState, solver
from inspect_ai.util import collect

from abstain import _validate
from abstain.errors import ArgumentError, DataError
from abstain.runs import _prompts, measures
from abstain.runs._asking import TOP_LOGPROBS, Exchange, config_for, token_dicts
from abstain.runs._asking import ask as ask_model
from abstain.runs._replies import Reply, ReplyForm, verdict
from abstain.runs._signal_plan import DEFAULT_SAMPLES, DEFAULT_TEMPERATURE, JUDGE, NORMALISED, SignalPlan

if TYPE_CHECKING:
    from collections.abc import Sequence

    from inspect_ai.model import ChatMessage, Model

__all__ = [
    "RECORD",
    "ask",
    "consistency",
    "evidence",
    "may_abstain",
    "p_true",
    "semantic_entropy",
    "token_signals",
    "verbalized_confidence",
]

RECORD = "abstain"
ANSWERED, ABSTAINED, FAILED = "answered", "abstained", "failed"
# As many alternatives as any provider gives: a letter that is not among them has next to no probability.
_P_TRUE_TOP = 20
_P_TRUE_TOKENS = 16
_LOG = logging.getLogger(__name__)
_said: set[str] = set()


@solver
def ask(
    signals: str | list[str] = "",
    *,
    text_key: str = "text",
    temperature: float | None = None,
    structured: bool = True,
    seed: int | None = None,
) -> Solver:
    """Ask with leave to decline, and record signals.

    Args:
        signals: which, as in ``verbalized,tokens,consistency:5,p_true,semantic_entropy,evidence``.
        text_key: the key of the sample's metadata with the text that quotes must stand in.
        temperature: at which samples are drawn; 0.7 when left out.
        structured: False for a server that does not take a schema for its reply.
        seed: passed to the provider; each sample has one of its own.
    """
    # The command line of Inspect makes a list of what is divided by commas.
    plan = SignalPlan.parse(signals if isinstance(signals, str) else ",".join(signals)).sampled(
        None, temperature
    )
    steps: list[Solver] = []
    if plan.verbalized is not None:
        steps.append(verbalized_confidence(plan.verbalized))
    if plan.tokens:
        steps.append(token_signals())
    if plan.evidence:
        steps.append(evidence(text_key))
    steps.append(may_abstain(structured=structured, seed=seed))
    if plan.samples and plan.consistency:
        steps.append(consistency(plan.samples, plan.temperature))
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
) -> Solver:
    """Ask the sample's question with a way out, and read the reply strictly; what cannot be read is asked again once.

    Args:
        choices: the answers that there can be; else what the sample says.
        scale: the lowest and highest number that an answer can be; else what the sample says.
        structured: False for a server that does not take a schema for its reply.
        seed: passed to the provider.
    """

    async def solve(state: TaskState, generate: Generate) -> TaskState:  # noqa: ARG001
        record = _record(state)
        if "outcome" in record:
            raise ArgumentError("may_abstain was asked twice for one sample; name it once")
        wishes = record.pop("wishes", {})
        form = _form(state, choices, scale, wishes)
        prompt = state.user_prompt
        prompt.text = f"{_question(state, prompt.text, choices)}\n\n{form.instructions}"
        settings = {"seed": seed} | _logprobs(wishes)
        asked = await ask_model(
            state.messages, form.parse, config_for(form if structured else None, **settings)
        )
        record |= {"asked": len(state.messages), "form": _told(form), "structured": structured, "seed": seed}
        state.messages, state.output = asked.messages, asked.output
        record |= _outcome(asked)
        signals = record.setdefault("signals", {})
        if wishes.get("logprobs"):
            signals |= _tokens(asked)
        if form.confidence is not None:
            signals["verbalized_confidence"] = _stated(asked.reply, form.confidence)
        if form.quotes:
            signals |= measures.quote_signals(_quotes(asked.reply), _source(state, wishes["text_key"]))
        state.store.set(RECORD, record)
        return state

    return solve


@solver
def verbalized_confidence(scale: tuple[float, float] | list[float] = (1.0, 5.0)) -> Solver:
    """Let the model state how sure it is; recorded as ``verbalized_confidence``, on the scale of 1 to 5.

    Before `may_abstain` it is a field of the reply and costs no call; after it, it is asked for in a call of its own.

    Args:
        scale: the lowest and highest number that the model may state.
    """
    ends = _validate.scale(scale)

    async def solve(state: TaskState, generate: Generate) -> TaskState:  # noqa: ARG001
        record = _record(state)
        if "outcome" not in record:
            return _wish(state, record, confidence=list(ends))
        stated = None
        if record["outcome"] == ANSWERED:
            asked = await _follow_up(state, record, ReplyForm(answered=False, confidence=ends))
            stated = _stated(asked.reply, ends)
        record["signals"]["verbalized_confidence"] = stated
        state.store.set(RECORD, record)
        return state

    return solve


@solver
def token_signals(top_logprobs: int = TOP_LOGPROBS) -> Solver:
    """Ask for log-probabilities, and record ``token_msp``, ``token_pe`` and ``token_energy`` of the reply.

    Before `may_abstain` they are asked for; after it, what the reply has of them is taken. A backend that gives none
    leaves all three null, and that is said once.

    Args:
        top_logprobs: how many alternatives per token.
    """

    async def solve(state: TaskState, generate: Generate) -> TaskState:  # noqa: ARG001
        record = _record(state)
        if "outcome" not in record:
            return _wish(state, record, logprobs=top_logprobs)
        record["signals"] |= measures.token_record(token_dicts(state.output))
        state.store.set(RECORD, record)
        return state

    return solve


@solver
def evidence(text_key: str = "text") -> Solver:
    """Ask for quotes, and count those that stand in the text letter by letter: ``llm_evidence_count``.

    ``evidence_unsupported_share`` is the share of the quotes that do not. Before `may_abstain` it is a field of the
    reply and costs no call; after it, it is asked for in a call of its own.

    Args:
        text_key: the key of the sample's metadata with the text.
    """

    async def solve(state: TaskState, generate: Generate) -> TaskState:  # noqa: ARG001
        record = _record(state)
        text = _source(state, text_key)
        if "outcome" not in record:
            return _wish(state, record, quotes=True, text_key=text_key)
        quotes = None
        if record["outcome"] == ANSWERED:
            asked = await _follow_up(state, record, ReplyForm(answered=False, quotes=True))
            quotes = _quotes(asked.reply)
        record["signals"] |= measures.quote_signals(quotes, text)
        state.store.set(RECORD, record)
        return state

    return solve


@solver
def consistency(samples: int = DEFAULT_SAMPLES, temperature: float = DEFAULT_TEMPERATURE) -> Solver:
    """Draw further samples of the answer and record how far they agree; the samples are kept.

    A sample that cannot be read, even the second time, is left out and counted: ``consistency_unread``.

    Args:
        samples: how many; each costs a call.
        temperature: at which they are drawn.
    """
    count = _validate.whole(samples, "samples", least=1)

    async def solve(state: TaskState, generate: Generate) -> TaskState:  # noqa: ARG001
        record = _answered(state, "consistency")
        drawn = await _drawn(state, record, count, temperature)
        record["signals"] |= measures.answer_consistency(drawn)
        record["signals"]["consistency_unread"] = count - len(drawn)
        record["samples"] = drawn
        state.store.set(RECORD, record)
        return state

    return solve


@solver
def p_true() -> Solver:
    """Show the model its answer and record ``p_true``, the probability that it calls it true; costs a call.

    Null where nothing was answered, where the backend gives no log-probabilities, and where neither letter is likely.
    """

    async def solve(state: TaskState, generate: Generate) -> TaskState:  # noqa: ARG001
        record = _answered(state, "p_true")
        found = None
        if record["outcome"] == ANSWERED:
            config = config_for(
                None, seed=record["seed"], logprobs=True, top_logprobs=_P_TRUE_TOP, max_tokens=_P_TRUE_TOKENS
            )
            messages = [*state.messages, ChatMessageUser(content=_prompts.P_TRUE)]
            output = await get_model().generate(messages, config=config)
            tokens = token_dicts(output)
            _say_missing(tokens, "p_true")
            found = measures.probability_of_true(tokens)
        record["signals"]["p_true"] = found
        state.store.set(RECORD, record)
        return state

    return solve


@solver
def semantic_entropy(
    equivalence: str = NORMALISED, samples: int = DEFAULT_SAMPLES, temperature: float = DEFAULT_TEMPERATURE
) -> Solver:
    """Record ``semantic_entropy``, the entropy over the meanings of samples, and how many meanings there are.

    The samples of `consistency` are used where it came before; else samples are drawn.

    Args:
        equivalence: when two samples mean the same: "normalised" where they are the same label, or "judge=MODEL" where
            that model says so.
        samples: how many are drawn.
        temperature: at which they are drawn.
    """
    count = _validate.whole(samples, "samples", least=1)
    if equivalence != NORMALISED and not equivalence.startswith(JUDGE):
        raise ArgumentError(f"equivalence must be {NORMALISED} or {JUDGE}MODEL, got {equivalence!r}")

    async def solve(state: TaskState, generate: Generate) -> TaskState:  # noqa: ARG001
        record = _answered(state, "semantic_entropy")
        drawn = record.get("samples")
        if drawn is None:
            drawn = await _drawn(state, record, count, temperature)
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
        state.store.set(RECORD, record)
        return state

    return solve


def _record(state: TaskState) -> dict[str, Any]:
    """Return a copy of what is kept of a sample: the store notices what is set, not what is changed within."""
    kept: dict[str, Any] = state.store.get(RECORD, {})
    return {name: value.copy() if isinstance(value, dict) else value for name, value in kept.items()}


def _answered(state: TaskState, name: str) -> dict[str, Any]:
    record = _record(state)
    if "outcome" not in record:
        raise ArgumentError(f"{name} comes after may_abstain, which asks the question")
    return record


def _wish(state: TaskState, record: dict[str, Any], **wishes: Any) -> TaskState:
    """Let `may_abstain` ask for more than an answer."""
    state.store.set(RECORD, {**record, "wishes": {**record.get("wishes", {}), **wishes}})
    return state


def _form(
    state: TaskState, choices: list[str] | None, scale: list[float] | None, wishes: dict[str, Any]
) -> ReplyForm:
    given = choices or state.metadata.get("choices")
    ends = scale or state.metadata.get("scale")
    if not given and not ends and len(state.choices):
        given = [_letter(number) for number in range(len(state.choices))]
    stated = wishes.get("confidence")
    return ReplyForm(
        choices=tuple(str(choice) for choice in given) if given and not ends else None,
        scale=_validate.scale(ends) if ends else None,
        confidence=_validate.scale(stated) if stated else None,
        quotes=bool(wishes.get("quotes")),
    )


def _question(state: TaskState, text: str, choices: list[str] | None) -> str:
    """Return the question, with the choices of the sample where they are answered by letter."""
    if choices or state.metadata.get("choices") or state.metadata.get("scale") or not len(state.choices):
        return text
    listed = (f"{_letter(number)}) {choice.value}" for number, choice in enumerate(state.choices))
    return "\n".join([text, "", *listed])


def _letter(number: int) -> str:
    return chr(ord("A") + number) if number < 26 else str(number + 1)


def _logprobs(wishes: dict[str, Any]) -> dict[str, Any]:
    count = wishes.get("logprobs")
    return {"logprobs": True, "top_logprobs": count} if count else {}


def _told(form: ReplyForm) -> dict[str, Any]:
    return {name: getattr(form, name) for name in form.__slots__}


def _outcome(asked: Exchange) -> dict[str, Any]:
    if asked.reply is None:
        return {"outcome": FAILED, "answer": None, "problem": asked.problem}
    if asked.reply.declined:
        return {"outcome": ABSTAINED, "answer": None, "problem": asked.problem, "refused": asked.refused}
    return {"outcome": ANSWERED, "answer": asked.reply.answer, "problem": asked.problem}


def _tokens(asked: Exchange) -> dict[str, float | None]:
    tokens = token_dicts(asked.output)
    _say_missing(tokens, "token_msp, token_pe and token_energy")
    return measures.token_record(tokens)


def _say_missing(tokens: Sequence[dict[str, Any]], what: str) -> None:
    """Say once per model that it gives no log-probabilities."""
    name = f"{get_model()} {what}"
    if not tokens and name not in _said:
        _said.add(name)
        _LOG.warning("%s gives no log-probabilities, so that %s are null", get_model(), what)


def _stated(reply: Reply | None, scale: tuple[float, float]) -> float | None:
    return measures.stated_confidence(None if reply is None else reply.confidence, scale)


def _quotes(reply: Reply | None) -> tuple[str, ...] | None:
    return None if reply is None else reply.quotes


def _source(state: TaskState, key: str) -> str:
    text = state.metadata.get(key)
    if not isinstance(text, str):
        raise DataError(
            f"sample {_validate.place_name(state.sample_id)}: evidence needs the text in its metadata under {key!r}"
        )
    return text


async def _follow_up(state: TaskState, record: dict[str, Any], form: ReplyForm) -> Exchange:
    """Ask about the answer that was given, in a call of its own."""
    messages = [*state.messages, ChatMessageUser(content=form.instructions)]
    config = config_for(form if record["structured"] else None, seed=record["seed"])
    return await ask_model(messages, form.parse, config)


async def _drawn(
    state: TaskState, record: dict[str, Any], count: int, temperature: float
) -> list[str | None]:
    """Return samples of the answer that could be read, None for an abstention."""
    told: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in record["form"].items()
    }
    form = ReplyForm(**told)
    messages: list[ChatMessage] = state.messages[: record["asked"]]
    settings = {"temperature": temperature}

    async def draw(number: int) -> Exchange:
        seed = None if record["seed"] is None else record["seed"] + 1 + number
        config = config_for(form if record["structured"] else None, seed=seed, **settings)
        return await ask_model(messages, form.parse, config)

    found = await collect(*(draw(number) for number in range(count)))
    return [asked.reply.answer for asked in found if asked.reply is not None]


async def _judged_meanings(state: TaskState, answers: Sequence[str | None], judge: Model) -> list[int] | None:
    """Return a number per answer, the same where the judge says that they mean the same; None where it cannot be read.

    Each answer is compared with the first of every meaning so far; the same words are not asked about.
    """
    question = state.input_text
    words = measures.meanings_by_words(answers)
    firsts: list[int] = []
    meaning_of_words: dict[int, int] = {}
    for place, word in enumerate(words):
        if word in meaning_of_words:
            continue
        for meaning, first in enumerate(firsts):
            if answers[place] is None or answers[first] is None:
                continue
            prompt = _prompts.JUDGE.format(question=question, first=answers[first], second=answers[place])
            asked = await ask_model([ChatMessageUser(content=prompt)], verdict, config_for(), model=judge)
            if asked.reply is None:
                return None
            if asked.reply:
                meaning_of_words[word] = meaning
                break
        else:
            meaning_of_words[word] = len(firsts)
            firsts.append(place)
    return [meaning_of_words[word] for word in words]
