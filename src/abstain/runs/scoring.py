"""The Inspect scorer for abstain's solvers: it scores the answer and writes the signals to the log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from inspect_ai.model import ChatMessageUser, get_model
from inspect_ai.scorer import CORRECT, INCORRECT, NOANSWER, Score, Scorer, Target, scorer

from abstain import labels
from abstain.errors import ArgumentError
from abstain.integrations.inspect import METRICS
from abstain.runs._asking import ask_model, config_for
from abstain.runs._prompts import PROMPTS
from abstain.runs._replies import PROBLEMS, parse_grade
from abstain.runs.solvers import ABSTAINED, ANSWERED, FAILED, RECORD

if TYPE_CHECKING:
    from inspect_ai.solver import TaskState

__all__ = ["answer_scorer"]

UNREADABLE = "invalid_response_format"
UNGRADED = "no_grade"


@scorer(metrics=[METRICS["coverage"](), METRICS["selective_accuracy"]()])
def answer_scorer(grader: str | None = None, *, keep_score: bool = False) -> Scorer:
    """Score an answer of the solvers in `abstain.runs`: C or I, N for an abstention, NaN for an unreadable reply.

    On a scale, the score is ``1 - |answer - target| / (high - low)``. ``Score.metadata`` contains the signals by name
    and the target as text. A sample without a target is not scored.

    Free text is right if it is the target, without regard to case and blanks. With a `grader`, that model grades other
    answers as correct (C), incorrect (I) or not attempted (N), and ``Score.metadata`` contains its name and grade. An
    answer whose grade is unreadable twice is not scored.

    Args:
        grader: the name of the model that grades free text.
        keep_score: True to give an answer the score of the task's first scorer, which comes before this one, if it is
            one number or grade. ``Score.metadata`` contains its name. A grader has priority.
    """

    async def score(state: TaskState, target: Target) -> Score:
        record = state.store.get(RECORD)
        if not record or "outcome" not in record:
            raise ArgumentError(
                "no answer to score; the task needs an abstain solver before answer_scorer: may_abstain or ask"
            )
        metadata: dict[str, Any] = {**record.get("signals", {}), "target": target.text}
        if record.get("problem"):
            metadata["unread"] = record["problem"]
        is_free_text = record["form"]["scale"] is None and record["form"]["choices"] is None
        if (
            grader is not None
            and is_free_text
            and target.text
            and record["outcome"] == ANSWERED
            and not _same(record["answer"], target.text)
        ):
            return await _grade(grader, state.input_text, record["answer"], target.text, metadata)
        if keep_score and grader is None and state.scores and record["outcome"] == ANSWERED:
            name, first = next(iter(state.scores.items()))
            if isinstance(first.value, (str, int, float)):
                return first.model_copy(
                    update={"answer": record["answer"], "metadata": {**metadata, "scorer": name}}
                )
        return _score(record, target.text, metadata)

    return score


async def _grade(grader: str, question: str, answer: str, target: str, metadata: dict[str, Any]) -> Score:
    """Return the score of an answer that a model grades."""
    prompt = PROMPTS["grade"].format(question=question, target=target, answer=answer)
    exchange = await ask_model(
        [ChatMessageUser(content=prompt)], parse_grade, config_for(temperature=0.0), model=get_model(grader)
    )
    grade = None if exchange.refused else exchange.reply
    metadata |= {"grader": grader, "grade": grade}
    if grade is None:
        return Score.unscored(reason=UNGRADED, answer=answer, metadata=metadata)
    value = {"correct": CORRECT, "incorrect": INCORRECT, "not_attempted": NOANSWER}[grade]
    return Score(value=value, answer=answer, metadata=metadata)


def _score(record: dict[str, Any], target: str, metadata: dict[str, Any]) -> Score:
    if record["outcome"] == FAILED:
        return Score.unscored(reason=UNREADABLE, explanation=PROBLEMS[record["problem"]], metadata=metadata)
    if record["outcome"] == ABSTAINED:
        reason = "refusal" if record.get("refused") else None
        return Score(value=NOANSWER, reason=reason, metadata=metadata)
    assert record["outcome"] == ANSWERED
    answer = record["answer"]
    if not target:
        return Score.unscored(reason="no_target", answer=answer, metadata=metadata)
    scale = record["form"]["scale"]
    if scale is None:
        return Score(value=CORRECT if _same(answer, target) else INCORRECT, answer=answer, metadata=metadata)
    low, high = scale
    grade = 1.0 - abs(float(answer) - float(target)) / (high - low)
    return Score(value=grade, answer=answer, metadata=metadata)


def _same(answer: str, target: str) -> bool:
    return labels.canonical(answer, "answer", 0) == labels.canonical(target, "target", 0)
