"""Read a table of questions and check all of it before the first call.

A row is one item (`read_questions`). With an instrument, a row is one participant, with one question per item about the
participant's text. A prompt is a column, or a template that names columns in braces. Errors name the row, the column
and the item, and never show the content of a cell.
"""

from __future__ import annotations

import hashlib
import string
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from abstain import _files, _validate, labels
from abstain._row_names import row_name, row_of_file, rows_named_by
from abstain.errors import ArgumentError, DataError
from abstain.readers import expand, open_table, usual_column
from abstain.runs._prompts import PROMPTS
from abstain.runs._wordings import find_worded

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Mapping, Sequence

    from abstain.readers import SourceTable
    from abstain.runs._wordings import WordedInstrument

__all__ = ["MODES", "Example", "Question", "QuestionSet", "read_examples", "read_questions"]

MODES = ("zero_shot", "few_shot")
_QUESTION_NAMES = ("question", "prompt", "input")
_TEXT_NAMES = ("text", "transcript", "context", "document_text", "passage")
# The id of a sample becomes a file name inside its log.
_FORBIDDEN_IN_IDS = str.maketrans({"/": "_", "\\": "_"})


@dataclass(frozen=True, slots=True)
class Question:
    """The question about one item, with None for values that the table does not have.

    Attributes:
        id: the unique id of its sample.
        prompt: the question, without the instructions for the reply.
        text: the text that quotes must come from.
        metadata: further columns.
    """

    id: str
    item: int | str
    cluster: int | str | None
    prompt: str = field(repr=False)
    truth: str | None
    choices: tuple[str, ...] | None = field(default=None, repr=False)
    should_abstain: bool | None = None
    text: str | None = field(default=None, repr=False)
    metadata: Mapping[str, str | None] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class QuestionSet:
    """The questions of a table, with the columns and options that they were read with.

    Attributes:
        label: the name of the table.
        columns: the column of each role.
        scale: the lowest and highest answer, if answers are numbers.
        instrument: the instrument, if rows are participants.
    """

    questions: tuple[Question, ...] = field(repr=False)
    label: str
    sha256: str | None
    columns: Mapping[str, str] = field(repr=False)
    template: str | None = None
    scale: tuple[float, float] | None = None
    instrument: WordedInstrument | None = None

    @property
    def has_free_text(self) -> bool:
        """True if the answer of a question is neither a choice nor a number on a scale."""
        return self.scale is None and any(question.choices is None for question in self.questions)


@dataclass(frozen=True, slots=True)
class Example:
    """A question that the prompt shows with its answer (None: the model should decline).

    Attributes:
        item: the item of an instrument that the example belongs to; None if it is shown with every question.
    """

    prompt: str = field(repr=False)
    answer: str | None
    item: int | str | None = None


def read_questions(
    table: str | os.PathLike[str],
    *,
    question: str | None = None,
    template: str | None = None,
    item: str | None = None,
    cluster: str | None = None,
    truth: str | None = None,
    choices: str | None = None,
    scale: Sequence[float] | None = None,
    should_abstain: str | None = None,
    text: str | None = None,
    instrument: str | None = None,
    limit: int | None = None,
    needs_text: bool = False,
    format: str | None = None,  # noqa: A002
) -> QuestionSet:
    r"""Read the questions of a table.

    Args:
        table: CSV, Parquet or JSONL.
        question: the column of questions. Default: a column named question, prompt or input.
        template: the question with columns in braces: ``{text} Is {drug} mentioned?``.
        item: the column of item names. Default: a column with a usual name, otherwise the row number.
        cluster: the column of clusters. Default: a column with a usual name.
        truth: the column of right answers. Default: a column with a usual name. An empty cell is an unknown truth.
        choices: the column of possible answers, or the answers themselves, separated by ``|``. Default: a column named
            choices.
        scale: the lowest and highest answer, if answers are numbers.
        should_abstain: the column with the items that should be declined. Default: a column of that name.
        text: the column of texts. Default: a column named text, transcript, context, document_text or passage.
        instrument: the instrument whose items are the questions about each row's text; a row is a participant.
        limit: the maximum number of items or participants to read.
        needs_text: True if quotes are requested, so that a text is required.
        format: "csv", "parquet" or "jsonl". Default: detected from the content.

    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "q.csv"
    >>> _ = path.write_text("id,question,truth,choices\n1,Is 7 prime?,yes,yes|no\n2,Is 9 prime?,no,yes|no\n")
    >>> [(question.item, question.truth, question.choices) for question in read_questions(path).questions]
    [(1, 'yes', ('yes', 'no')), (2, 'no', ('yes', 'no'))]
    """
    source = open_table(table, format=format)
    named = {
        "question": question,
        "item": item,
        "cluster": cluster,
        "truth": truth,
        "choices": choices,
        "should_abstain": should_abstain,
        "text": text,
    }
    if limit is not None:
        _validate.whole(limit, "limit", least=1)
    if instrument is not None:
        if choices is not None or scale is not None or question is not None:
            raise ArgumentError(
                "an instrument has its own questions and scale; omit question, choices and scale"
            )
        with rows_named_by(source.paths):
            return _read_participants(source, named, find_worded(instrument), template, limit)
    ends = None if scale is None else _validate.scale(scale)
    with rows_named_by(source.paths):
        return _read_items(source, named, template, ends, limit, needs_text=needs_text)


def read_examples(table: str | os.PathLike[str], questions: QuestionSet, **named: Any) -> list[Example]:
    """Read the examples of a few-shot prompt from a table like that of the questions; the two must not overlap.

    For an instrument, a row is a participant. Each of its items is an example for the questions about the same item.
    """
    options = {name: value for name, value in named.items() if name not in ("limit", "needs_text")}
    example_set = read_questions(table, **options)
    if questions.instrument is not None:
        return _participant_examples(table, example_set, questions)
    prompts = {question.prompt for question in questions.questions}
    for row, example in enumerate(example_set.questions):
        if example.prompt in prompts:
            raise DataError(
                f"{example_set.label}: the example at {row_of_file(expand(table), row)} is one of the questions of "
                f"{questions.label}; remove it, because examples must not contain the evaluated questions"
            )
        if example.truth is None and not example.should_abstain:
            raise DataError(
                f"{example_set.label}: the example at {row_of_file(expand(table), row)} has no truth; an example "
                "needs one, unless the model should decline it (should_abstain)"
            )
    return [
        Example(example.prompt, None if example.should_abstain else example.truth)
        for example in example_set.questions
    ]


def _participant_examples(
    table: str | os.PathLike[str], example_set: QuestionSet, questions: QuestionSet
) -> list[Example]:
    assert questions.instrument is not None
    participants = {str(question.cluster) for question in questions.questions}
    texts = {question.text for question in questions.questions}
    items = len(questions.instrument.instrument.items)
    for number, example in enumerate(example_set.questions):
        if str(example.cluster) in participants or example.text in texts:
            raise DataError(
                f"{example_set.label}: the example at {row_of_file(expand(table), number // items)} is one of the "
                f"participants of {questions.label}; remove it, because examples must not contain the evaluated "
                "participants"
            )
    return [Example(example.prompt, example.truth, example.item) for example in example_set.questions]


def examples_of(question: Question, examples: Iterable[Example]) -> list[Example]:
    """Return the examples that are shown with a question: for an instrument, those of its item.

    >>> question = Question("300:Sleep", "Sleep", 300, "How is the sleep?", "2")
    >>> examples = [Example("How tired?", "1", "Tired"), Example("How is the sleep?", "3", "Sleep")]
    >>> [example.answer for example in examples_of(question, examples)]
    ['3']
    """
    return [example for example in examples if example.item in (None, question.item)]


def with_examples(prompt: str, examples: Iterable[Example]) -> str:
    """Return a prompt that begins with examples; see `examples_of` for those of a question.

    >>> with_examples("Is 7 prime?", [Example("Is 4 prime?", "no")]).splitlines()[2:4]
    ['Is 4 prime?', 'Answer: no']
    """
    example_texts = [
        PROMPTS["example"].format(
            question=example.prompt, answer="null" if example.answer is None else example.answer
        )
        for example in examples
    ]
    if not example_texts:
        return prompt
    return PROMPTS["examples"].format(examples="\n\n".join(example_texts), question=prompt)


def read_template(template: str | None) -> str | None:
    """Return a template, which is read from a file if it is ``@`` and the name of the file."""
    if template is None or not template.startswith("@"):
        return template
    path = template[1:]
    try:
        return _files.read_bytes(path).decode()
    except UnicodeDecodeError:
        raise DataError(f"{path}: the template must be UTF-8 text") from None


def _read_items(
    table: SourceTable,
    named: Mapping[str, str | None],
    template: str | None,
    scale: tuple[float, float] | None,
    limit: int | None,
    *,
    needs_text: bool,
) -> QuestionSet:
    columns = _find_columns(table, named, template, needs_text=needs_text)
    prompt_template = _prompt_template(columns, template)
    fields = _template_fields(prompt_template, table)
    prompts = _fill_template(table, prompt_template, fields)
    rows = len(prompts)
    nothing: list[Any] = [None] * rows
    truths = table.texts(columns["truth"])
    choices = _read_choices(table, named["choices"], columns, rows)
    if scale is not None and any(choices):
        raise ArgumentError(f"{table.label}: answers have both choices and a scale; pass only one of them")
    names = table.labels(columns["item"]).tolist() if "item" in columns else list(range(1, rows + 1))
    clusters = table.labels(columns["cluster"]).tolist() if "cluster" in columns else nothing
    ids = _unique_ids(table, names, clusters)
    declines = table.flags(columns["should_abstain"]).tolist() if "should_abstain" in columns else nothing
    texts = table.texts(columns["text"]) if "text" in columns else nothing
    used = {*columns.values(), *fields}
    metadata = {
        name: table.texts(name)
        for name, kind in table.kinds.items()
        if name not in used and kind not in ("list", "other")
    }
    questions = [
        Question(
            id=ids[row],
            item=names[row],
            cluster=clusters[row],
            prompt=prompts[row],
            truth=_checked_truth(
                truths[row], choices[row], scale, f"{table.label}: item {_validate.place_name(names[row])}"
            ),
            choices=choices[row],
            should_abstain=declines[row],
            text=texts[row],
            metadata={name: column[row] for name, column in metadata.items()},
        )
        for row in range(rows if limit is None else min(limit, rows))
    ]
    return QuestionSet(tuple(questions), table.label, table.sha256(), columns, template, scale)


def _find_columns(
    table: SourceTable, named: Mapping[str, str | None], template: str | None, *, needs_text: bool
) -> dict[str, str]:
    columns: dict[str, str] = {}
    for role in ("item", "cluster", "truth"):
        column = named[role] or usual_column(table, role, taken=columns.values())
        if column is not None:
            columns[role] = _check_column(table, column)
    if "truth" not in columns:
        raise ArgumentError(
            f"{table.label}: which column is the truth? Name it (truth, --truth); {table.listed_columns}"
        )
    for role, usual_names in (
        ("should_abstain", ("should_abstain",)),
        ("text", _TEXT_NAMES),
        ("question", _QUESTION_NAMES),
    ):
        column = named[role] or next((name for name in usual_names if name in table.kinds), None)
        if column is not None:
            columns[role] = _check_column(table, column)
    if "question" not in columns and template is None:
        raise ArgumentError(
            f"{table.label}: which column is the question? Name it (question, --question), or pass a template "
            f"(template, --template); {table.listed_columns}"
        )
    if needs_text and "text" not in columns:
        raise ArgumentError(
            f"{table.label}: the signal evidence needs the text that quotes must come from; name its column (text, "
            "--text)"
        )
    choices = named["choices"]
    if choices is None and "choices" in table.kinds:
        columns["choices"] = "choices"
    elif choices is not None and "|" not in choices:
        columns["choices"] = _check_column(table, choices)
    return columns


def _check_column(table: SourceTable, name: str) -> str:
    if name not in table.kinds:
        hint = _validate.suggestion(name, table.kinds)
        raise ArgumentError(f"{table.label}: has no column {name!r}{hint}; {table.listed_columns}")
    return name


def _prompt_template(columns: Mapping[str, str], template: str | None) -> str:
    """Return the user's template. Default: the question, preceded by the text if there is one."""
    if template is not None:
        if not template.strip():
            raise ArgumentError("the template is empty")
        return template
    question = "{" + columns["question"] + "}"
    if "text" not in columns:
        return question
    return PROMPTS["with_text"].replace("{text}", "{" + columns["text"] + "}").replace("{question}", question)


def _template_fields(template: str, table: SourceTable) -> list[str]:
    """Return the columns that a template names; formats and conversions are errors."""
    try:
        parts = list(string.Formatter().parse(template))
    except ValueError:
        raise ArgumentError(
            "the template has an unmatched brace; write {{ and }} for literal braces"
        ) from None
    fields = []
    for _, name, form, conversion in parts:
        if name is None:
            continue
        if form or conversion or name not in table.kinds:
            shown = _validate.place_name(name)
            hint = _validate.suggestion(name, table.kinds)
            raise ArgumentError(
                f"the template names {shown!r}, which is not a column of {table.label}{hint}; "
                f"{table.listed_columns}"
            )
        fields.append(name)
    return list(dict.fromkeys(fields))


def _fill_template(table: SourceTable, template: str, fields: Sequence[str]) -> list[str]:
    """Return the template filled in for every row; a named column must not have empty cells."""
    cells = {name: table.texts(name) for name in fields}
    for name, column in cells.items():
        empty = [row for row, cell in enumerate(column) if cell is None]
        if empty:
            raise DataError(
                f"{table.label}: the column {name!r} is part of the prompt, but is empty at {row_name(empty[0])} "
                f"({len(empty)} such rows)"
            )
    parts = [(before, name) for before, name, _, _ in string.Formatter().parse(template)]
    rows = len(next(iter(cells.values()))) if cells else table.rows
    if not rows:
        raise DataError(f"{table.label}: the table has no rows")
    # Not str.format, which cannot handle column names such as "a.b".
    return [
        "".join(before + ("" if name is None else str(cells[name][row])) for before, name in parts)
        for row in range(rows)
    ]


def _read_choices(
    table: SourceTable, named: str | None, columns: Mapping[str, str], rows: int
) -> list[tuple[str, ...] | None]:
    if named is not None and "|" in named:
        listed = tuple(dict.fromkeys(part.strip() for part in named.split("|") if part.strip()))
        if len(listed) < 2:
            raise ArgumentError(f"choices must be at least two answers separated by |, got {len(listed)}")
        return [listed] * rows
    if "choices" not in columns:
        return [None] * rows
    choices = [tuple(dict.fromkeys(cell)) or None for cell in table.lists(columns["choices"])]
    for row, answers in enumerate(choices):
        if answers is not None and len(answers) < 2:
            raise DataError(f"{table.label}: fewer than two choices at {row_name(row)}")
    return choices


def _unique_ids(table: SourceTable, names: Sequence[Any], clusters: Sequence[Any]) -> list[str]:
    pairs = list(zip(clusters, names, strict=True))
    duplicates = [pair for pair, count in Counter(pairs).items() if count > 1]
    if duplicates:
        cluster, name = duplicates[0]
        whose = "" if cluster is None else f" of {_validate.place_name(cluster)}"
        rows = [row for row, pair in enumerate(pairs) if pair == duplicates[0]]
        raise DataError(
            f"{table.label}: duplicate item {_validate.place_name(name)}{whose} (rows {rows[0]} and {rows[1]}, "
            f"{len(duplicates)} such items); items must be unique"
        )
    if len(set(map(str, names))) == len(names):
        ids = [str(name) for name in names]
    else:
        ids = [f"{cluster}:{name}" for cluster, name in pairs]
    ids = [name.translate(_FORBIDDEN_IN_IDS) for name in ids]
    # Names that differ only in forbidden characters get the row as a prefix.
    return ids if len(set(ids)) == len(ids) else [f"{row}:{name}" for row, name in enumerate(ids)]


def _checked_truth(
    value: str | None, choices: Sequence[str] | None, scale: tuple[float, float] | None, location: str
) -> str | None:
    if value is None:
        return None
    label = labels.canonical(value, "truth", 0)
    if choices is not None:
        matching = [choice for choice in choices if labels.canonical(choice, "choice", 0) == label]
        if not matching:
            raise DataError(f"{location}: the truth is not one of its {len(choices)} choices")
        return matching[0]
    if scale is None:
        return value
    if not isinstance(label, (int, float)) or not scale[0] <= label <= scale[1]:
        raise DataError(f"{location}: the truth is not a number on the scale of {scale[0]:g} to {scale[1]:g}")
    return f"{label:g}"


def _read_participants(
    table: SourceTable,
    named: Mapping[str, str | None],
    form: WordedInstrument,
    template: str | None,
    limit: int | None,
) -> QuestionSet:
    columns: dict[str, str] = {}
    cluster = named["cluster"] or usual_column(table, "cluster")
    text = named["text"] or next((name for name in _TEXT_NAMES if name in table.kinds), None)
    for role, column in (("cluster", cluster), ("text", text)):
        if column is None:
            raise ArgumentError(
                f"{table.label}: which column is the {role}? Name it ({role}, --{role}); "
                f"{table.listed_columns}"
            )
        columns[role] = _check_column(table, column)
    participants = table.labels(columns["cluster"]).tolist()
    _unique_ids(table, participants, [None] * len(participants))  # raises an error for duplicates
    texts = _fill_template(table, "{" + columns["text"] + "}", [columns["text"]])
    prompt_texts = (
        texts if template is None else _fill_template(table, template, _template_fields(template, table))
    )
    instrument = form.instrument
    truths = {name: table.texts(_item_column(table, name, instrument.name)) for name in instrument.items}
    low, high = instrument.item_scale
    questions: list[Question] = []
    for row, participant in enumerate(participants[:limit]):
        for name in instrument.items:
            location = f"{table.label}: participant {_validate.place_name(participant)}, item {name}"
            prompt = PROMPTS["instrument"].format(
                text=prompt_texts[row],
                instrument=instrument.name,
                low=low,
                high=high,
                words=form.meaning,
                item=form.questions.get(name, name),
            )
            truth = _checked_truth(truths[name][row], None, (low, high), location)
            if truth is None:
                raise DataError(
                    f"{location}: the truth is missing; an instrument needs the truth of every item"
                )
            questions.append(
                Question(
                    id=f"{participant}:{name}".translate(_FORBIDDEN_IN_IDS),
                    item=name,
                    cluster=participant,
                    prompt=prompt,
                    truth=truth,
                    text=texts[row],
                )
            )
    scale = float(low), float(high)
    return QuestionSet(tuple(questions), table.label, table.sha256(), columns, template, scale, form)


def _item_column(table: SourceTable, item: str, instrument: str) -> str:
    """Return the column with the truth of an item: its name, with or without the instrument as a prefix."""
    prefixed = f"{instrument.replace('-', '')}_{item}"
    for name in (item, prefixed):
        if name in table.kinds:
            return name
    raise ArgumentError(
        f"{table.label}: has no column {item!r} or {prefixed!r} with the truth of that item of {instrument}; "
        f"{table.listed_columns}"
    )


def digest(questions: QuestionSet, examples: Sequence[Example] = ()) -> str:
    """Return the hash of questions and examples; a run can be resumed only with the same ones."""
    content = hashlib.sha256()
    for question in questions.questions:
        parts = (question.id, question.prompt, question.truth, question.choices, questions.scale)
        content.update(repr(parts).encode())
    for example in examples:
        content.update(repr((example.prompt, example.answer)).encode())
    return content.hexdigest()
