"""A table of questions as a task of Inspect AI: ``inspect eval abstain/questions -T table=questions.csv``.

`abstain run` asks through this task, so that Inspect can make it again from its log and go on with it.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample

from abstain import _validate
from abstain.errors import ArgumentError
from abstain.runs._signal_plan import SignalPlan
from abstain.runs.questions import (
    MODES,
    Example,
    QuestionSet,
    read_examples,
    read_questions,
    read_template,
    with_examples,
)
from abstain.runs.scoring import judged
from abstain.runs.solvers import ask

if TYPE_CHECKING:
    from abstain.runs.questions import Question

__all__ = ["TEXT_KEY", "load", "questions", "sample_of"]

TEXT_KEY = "text"


@task
def questions(
    table: str,
    signals: str | list[str] = "",
    mode: str = "zero_shot",
    examples: str | None = None,
    consistency_temperature: float | None = None,
    structured: bool = True,
    seed: int | None = None,
    question: str | None = None,
    template: str | None = None,
    item: str | None = None,
    cluster: str | None = None,
    truth: str | None = None,
    choices: str | None = None,
    scale: list[float] | None = None,
    should_abstain: str | None = None,
    text: str | None = None,
    instrument: str | None = None,
    limit: int | None = None,
    table_format: str | None = None,
) -> Task:
    """Ask the questions of a table with leave to decline; the arguments are those of `abstain run`.

    Args:
        table: CSV, Parquet or JSONL.
        signals: which signals are recorded, as for `ask`.
        mode: "zero_shot", or "few_shot" with examples.
        examples: a table of examples.
        consistency_temperature: at which samples are drawn.
        structured: False for a server that does not take a schema for its reply.
        seed: passed to the provider.
        question: the column with what is asked.
        template: what is asked, with columns in braces; after an ``@``, the file that holds it.
        item: the column with the names of the items.
        cluster: the column that says what belongs together.
        truth: the column with what is right.
        choices: the column with the answers that there can be, or those answers, divided by ``|``.
        scale: the lowest and highest answer, where answers are numbers.
        should_abstain: the column that says which items are better left unanswered.
        text: the column with the text that is asked about.
        instrument: the instrument whose items are asked about each row.
        limit: so many items, or participants, and no more.
        table_format: "csv", "parquet" or "jsonl", where the content does not tell.
    """
    wanted = signals if isinstance(signals, str) else ",".join(signals)
    named = {
        "question": question,
        "template": template,
        "item": item,
        "cluster": cluster,
        "truth": truth,
        "choices": choices,
        "scale": scale,
        "should_abstain": should_abstain,
        "text": text,
        "instrument": instrument,
        "limit": limit,
        "format": table_format,
    }
    found, shown = load(table, SignalPlan.parse(wanted), mode, examples, named)
    return Task(
        dataset=MemoryDataset(
            [sample_of(one, found, shown) for one in found.questions], name=Path(table).stem
        ),
        solver=ask(
            wanted,
            text_key=TEXT_KEY,
            temperature=consistency_temperature,
            structured=structured,
            seed=seed,
        ),
        scorer=judged(),
        name=f"{Path(table).stem}-{mode}",
    )


def load(
    table: str, plan: SignalPlan, mode: str, examples: str | None, named: dict[str, Any]
) -> tuple[QuestionSet, list[Example]]:
    """Return the questions of a mode and the examples that come before each of them."""
    _validate.choice(mode, "mode", MODES)
    settings = {**named, "template": read_template(named.get("template"))}
    found = read_questions(table, needs_text=plan.evidence, **settings)
    if mode != "few_shot":
        return found, []
    if examples is None:
        raise ArgumentError("the mode few_shot needs examples; name their table (examples, --examples)")
    return found, read_examples(examples, found, **settings)


def sample_of(question: Question, among: QuestionSet, examples: list[Example]) -> Sample:
    """Return a question as a sample; what belongs together stands in its metadata under the name of its column."""
    told: dict[str, Any] = {**question.metadata, "item": question.item}
    if among.cluster_key is not None:
        told[among.cluster_key] = question.cluster
    if question.should_abstain is not None:
        told["should_abstain"] = question.should_abstain
    if question.choices is not None:
        told["choices"] = list(question.choices)
    if among.scale is not None:
        told["scale"] = list(among.scale)
    if question.text is not None:
        told[TEXT_KEY] = question.text
    return Sample(
        id=question.id,
        input=with_examples(question.prompt, examples),
        target=question.truth or "",
        metadata=told,
    )
