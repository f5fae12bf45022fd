"""The Inspect tasks of `abstain run`, which Inspect can recreate from a log to continue it.

`questions` asks the questions of a table: ``inspect eval abstain/questions -T table=questions.csv``. `samples_of_file`
asks the samples of an Inspect task in a file.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from inspect_ai import Task, task, task_with
from inspect_ai._eval.loader import load_tasks
from inspect_ai._eval.task.constants import TASK_FILE_ATTR
from inspect_ai.dataset import MemoryDataset, Sample

from abstain import _validate
from abstain.errors import ArgumentError
from abstain.runs._signal_plan import SignalPlan
from abstain.runs.questions import (
    MODES,
    Example,
    QuestionSet,
    examples_of,
    read_examples,
    read_questions,
    read_template,
    with_examples,
)
from abstain.runs.scoring import answer_scorer
from abstain.runs.solvers import ask, output_answer

if TYPE_CHECKING:
    from abstain.runs.questions import Question

__all__ = ["questions", "samples_of_file"]

_TEXT_KEY = "text"


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
    system_message: str | None = None,
    decline_instruction: str | None = None,
    confidence_target: float | None = None,
    reasoning: bool = False,
    grader: str | None = None,
) -> Task:
    """Ask the questions of a table and allow the model to decline; the arguments are the options of `abstain run`.

    Args:
        table: CSV, Parquet or JSONL.
        signals: the signals to record, as for `ask`.
        mode: "zero_shot", or "few_shot" with examples.
        examples: a table of examples.
        consistency_temperature: the temperature of further samples.
        structured: False for a server that does not accept a schema.
        seed: passed to the provider.
        question: the column of questions.
        template: the question with columns in braces, or ``@`` and the name of a file that contains it.
        item: the column of item names.
        cluster: the column of clusters.
        truth: the column of right answers.
        choices: the column of possible answers, or the answers, separated by ``|``.
        scale: the lowest and highest answer, if answers are numbers.
        should_abstain: the column with the items that should be declined.
        text: the column of texts.
        instrument: the instrument whose items are the questions about each row.
        limit: the maximum number of items or participants.
        table_format: "csv", "parquet" or "jsonl". Default: detected from the content.
        system_message: the system message.
        decline_instruction: the text that permits declining.
        confidence_target: the probability of a right answer above which the model should answer.
        reasoning: True for a field with reasoning in front of the answer.
        grader: the model that grades free text.
    """
    _validate.choice(mode, "mode", MODES)
    signals = signals if isinstance(signals, str) else ",".join(signals)
    options: dict[str, Any] = {
        "question": question,
        "template": read_template(template),
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
    needs_text = SignalPlan.parse(signals).evidence
    question_set = read_questions(table, needs_text=needs_text, **options)
    example_list: list[Example] = []
    if mode == "few_shot":
        if examples is None:
            raise ArgumentError("the mode few_shot needs examples; pass their table (examples, --examples)")
        example_list = read_examples(examples, question_set, **options)
    samples = [_make_sample(row, question_set, example_list) for row in question_set.questions]
    return Task(
        dataset=MemoryDataset(samples, name=Path(table).stem),
        solver=ask(
            signals,
            text_key=_TEXT_KEY,
            temperature=consistency_temperature,
            structured=structured,
            seed=seed,
            system_message=system_message,
            decline_instruction=decline_instruction,
            confidence_target=confidence_target,
            reasoning=reasoning,
        ),
        scorer=answer_scorer(grader),
        name=f"{Path(table).stem}-{mode}",
    )


@task
def samples_of_file(
    source: str,
    signals: str = "",
    text_key: str = _TEXT_KEY,
    consistency_temperature: float | None = None,
    structured: bool = True,
    seed: int | None = None,
    system_message: str | None = None,
    decline_instruction: str | None = None,
    confidence_target: float | None = None,
    reasoning: bool = False,
    grader: str | None = None,
) -> Task:
    """Ask the samples of a task in a file, allow the model to decline, and keep the scorers of the task.

    The first of these scorers scores the answers, unless there is a grader. They see the answer instead of the reply.

    Args:
        source: the file and the name of the task: ``/path/task.py@name``.
        signals: the signals to record, as for `ask`.
        text_key: the metadata key of the text that quotes must come from.
        consistency_temperature: the temperature of further samples.
        structured: False for a server that does not accept a schema.
        seed: passed to the provider.
        system_message: the system message. Default: that of the task, if it has one.
        decline_instruction: the text that permits declining.
        confidence_target: the probability of a right answer above which the model should answer.
        reasoning: True for a field with reasoning in front of the answer.
        grader: the model that grades free text.
    """
    (own,) = load_tasks([source])
    # Inspect would record a path relative to this directory, and continue a run only there.
    vars(own).pop(TASK_FILE_ATTR, None)
    own_scorers = own.scorer or []
    asking = ask(
        signals,
        text_key=text_key,
        temperature=consistency_temperature,
        structured=structured,
        seed=seed,
        system_message=system_message,
        decline_instruction=decline_instruction,
        confidence_target=confidence_target,
        reasoning=reasoning,
    )
    return task_with(
        own,
        name=own.name,
        solver=[asking, output_answer()],
        scorer=[*own_scorers, answer_scorer(grader, keep_score=bool(own_scorers))],
    )


def _make_sample(question: Question, question_set: QuestionSet, examples: list[Example]) -> Sample:
    """Return a question as a sample, with the cluster in its metadata under the name of its column."""
    metadata: dict[str, Any] = {**question.metadata, "item": question.item}
    if "cluster" in question_set.columns:
        metadata[question_set.columns["cluster"]] = question.cluster
    if question.should_abstain is not None:
        metadata["should_abstain"] = question.should_abstain
    if question.choices is not None:
        metadata["choices"] = list(question.choices)
    if question_set.scale is not None:
        metadata["scale"] = list(question_set.scale)
    if question.text is not None:
        metadata[_TEXT_KEY] = question.text
    return Sample(
        id=question.id,
        input=with_examples(question.prompt, examples_of(question, examples)),
        target=question.truth or "",
        metadata=metadata,
    )
