"""Questions: from a table to what a model is asked, item by item, with everything checked before the first call.

A row is one item (`read_questions`), or with an instrument one participant, whose text is asked about once per item. A
prompt is a column, or a template that names columns in braces; a template knows columns and nothing else. Errors name
the row, the column and the item, and show nothing of what a cell says.
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
from abstain.runs import _prompts
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
# A name of a sample is the name of a member of its log.
_NO_NAME = str.maketrans({"/": "_", "\\": "_"})


@dataclass(frozen=True, slots=True)
class Question:
    """One item that a model is asked for.

    Attributes:
        id: the name of its sample, unique.
        item: its name.
        cluster: what it belongs to; None where the table has no clusters.
        prompt: what is asked, before the form of the reply.
        truth: what is right, as text; None where that is not known.
        choices: the answers that there can be, where they are listed.
        should_abstain: whether it is better left unanswered; None where nobody says.
        text: what quotes must stand in.
        metadata: further columns, as text.
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
    """The questions of a table, and how they were read.

    Attributes:
        questions: the items, in the order of the table.
        label: what the table is called.
        sha256: the hash of its content.
        columns: which column plays which part.
        template: the user's template, where there is one.
        scale: the lowest and highest answer, where answers are numbers.
        instrument: the instrument, where the rows are participants.
        cluster_key: the name of the cluster's column.
    """

    questions: tuple[Question, ...] = field(repr=False)
    label: str
    sha256: str | None
    columns: Mapping[str, str] = field(repr=False)
    template: str | None = None
    scale: tuple[float, float] | None = None
    instrument: WordedInstrument | None = None
    cluster_key: str | None = None


@dataclass(frozen=True, slots=True)
class Example:
    """A question that is shown with its answer; the answer is None where declining is right."""

    prompt: str = field(repr=False)
    answer: str | None


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
        question: the column with what is asked; else one called question, prompt or input.
        template: what is asked, with columns in braces: ``{text} Is {drug} mentioned?``.
        item: the column with the names of the items; else by its usual names, else the number of the row.
        cluster: the column that says what belongs together; else by its usual names.
        truth: the column with what is right; else by its usual names. An empty cell is an item without a truth.
        choices: the column with the answers that there can be, or those answers themselves, divided by ``|``; else a
            column called choices.
        scale: the lowest and highest answer, where answers are numbers.
        should_abstain: the column that says which items are better left unanswered; else one of that name.
        text: the column with the text that is asked about; else one called text, transcript, context or passage.
        instrument: ask the items of an instrument about the text of each row, which is a participant.
        limit: read so many items, or participants, and no more.
        needs_text: True where quotes are asked for, so that there must be a text.
        format: "csv", "parquet" or "jsonl", where the content does not tell.

    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "q.csv"
    >>> _ = path.write_text("id,question,truth,choices\n1,Is 7 prime?,yes,yes|no\n2,Is 9 prime?,no,yes|no\n")
    >>> [(found.item, found.truth, found.choices) for found in read_questions(path).questions]
    [(1, 'yes', ('yes', 'no')), (2, 'no', ('yes', 'no'))]
    """
    source = open_table(table, format=format)
    named = _Named(question, item, cluster, truth, choices, should_abstain, text)
    if limit is not None:
        _validate.whole(limit, "limit", least=1)
    if instrument is not None:
        if choices is not None or scale is not None or question is not None:
            raise ArgumentError(
                "an instrument has its own questions and scale; leave question, choices and scale out"
            )
        with rows_named_by(source.paths):
            return _of_instrument(source, named, find_worded(instrument), template, limit)
    with rows_named_by(source.paths):
        return _of_rows(source, named, template, _scale(scale), limit, needs_text=needs_text)


def read_examples(table: str | os.PathLike[str], questions: QuestionSet, **named: Any) -> list[Example]:
    """Read the examples of a few-shot prompt: a table in the form of the questions; none of them may be a question."""
    if questions.instrument is not None:
        raise ArgumentError("examples go with a table of questions, not with an instrument")
    given = {name: value for name, value in named.items() if name not in ("limit", "needs_text")}
    found = read_questions(table, **given)
    asked = {question.prompt for question in questions.questions}
    for row, example in enumerate(found.questions):
        if example.prompt in asked:
            raise DataError(
                f"{found.label}: the example at {row_of_file(expand(table), row)} is one of the questions of "
                f"{questions.label}; a model must not be shown what it is asked"
            )
        if example.truth is None and not example.should_abstain:
            raise DataError(
                f"{found.label}: the example at {row_of_file(expand(table), row)} has no truth to be shown"
            )
    return [
        Example(example.prompt, None if example.should_abstain else example.truth)
        for example in found.questions
    ]


def with_examples(prompt: str, examples: Iterable[Example]) -> str:
    """Return a prompt that begins with examples.

    >>> with_examples("Is 7 prime?", [Example("Is 4 prime?", "no")]).splitlines()[2:4]
    ['Is 4 prime?', 'Answer: no']
    """
    shown = [
        _prompts.EXAMPLE.format(
            question=example.prompt, answer="null" if example.answer is None else example.answer
        )
        for example in examples
    ]
    return _prompts.EXAMPLES.format(examples="\n\n".join(shown), question=prompt) if shown else prompt


def read_template(given: str | None) -> str | None:
    """Return a template: the text itself, or after an ``@`` the file that holds it."""
    if given is None or not given.startswith("@"):
        return given
    try:
        return _files.read_bytes(given[1:]).decode()
    except UnicodeDecodeError:
        raise DataError(f"{given[1:]}: the template must be UTF-8 text") from None


@dataclass(frozen=True, slots=True)
class _Named:
    """The columns that the user names."""

    question: str | None
    item: str | None
    cluster: str | None
    truth: str | None
    choices: str | None
    should_abstain: str | None
    text: str | None


def _of_rows(
    table: SourceTable,
    named: _Named,
    template: str | None,
    scale: tuple[float, float] | None,
    limit: int | None,
    *,
    needs_text: bool,
) -> QuestionSet:
    columns = _columns(table, named, template, needs_text=needs_text)
    prompt = _template(columns, template)
    fields = _fields(prompt, table)
    prompts = _filled(table, prompt, fields)
    rows = len(prompts)
    truths = table.texts(columns["truth"])
    options = _options(table, named.choices, columns, rows)
    if scale is not None and any(options):
        raise ArgumentError(f"{table.label}: answers have choices or a scale, not both; leave one out")
    names = _names(table, columns, rows)
    clusters: list[Any] = table.labels(columns["cluster"]).tolist() if "cluster" in columns else [None] * rows
    ids = _ids(table, names, clusters)
    guides: list[Any] = (
        table.flags(columns["should_abstain"]).tolist() if "should_abstain" in columns else [None] * rows
    )
    texts = table.texts(columns["text"]) if "text" in columns else [None] * rows
    used = {*columns.values(), *fields}
    kept = {
        name: table.texts(name)
        for name, kind in table.kinds.items()
        if name not in used and kind not in ("list", "other")
    }
    found = []
    for row in range(rows if limit is None else min(limit, rows)):
        place = f"{table.label}: item {_validate.place_name(names[row])}"
        truth = _truth(truths[row], options[row], scale, place)
        found.append(
            Question(
                id=ids[row],
                item=names[row],
                cluster=clusters[row],
                prompt=prompts[row],
                truth=truth,
                choices=options[row],
                should_abstain=guides[row],
                text=texts[row],
                metadata={name: column[row] for name, column in kept.items()},
            )
        )
    return QuestionSet(
        tuple(found),
        table.label,
        table.sha256(),
        columns,
        template,
        scale,
        cluster_key=columns.get("cluster"),
    )


def _columns(table: SourceTable, named: _Named, template: str | None, *, needs_text: bool) -> dict[str, str]:
    columns: dict[str, str] = {}
    for role in ("item", "cluster", "truth"):
        given = getattr(named, role)
        found = given or usual_column(table, role, taken=columns.values())
        if found is not None:
            columns[role] = _has(table, found)
    if "truth" not in columns:
        raise ArgumentError(
            f"{table.label}: which column is the truth? Name it (truth, --truth); {table.listed_columns}"
        )
    for role, usual in (
        ("should_abstain", ("should_abstain",)),
        ("text", _TEXT_NAMES),
        ("question", _QUESTION_NAMES),
    ):
        found = getattr(named, role) or next((name for name in usual if name in table.kinds), None)
        if found is not None:
            columns[role] = _has(table, found)
    if "question" not in columns and template is None:
        raise ArgumentError(
            f"{table.label}: which column is the question? Name it (question, --question), or give a template "
            f"(template, --template); {table.listed_columns}"
        )
    if needs_text and "text" not in columns:
        raise ArgumentError(
            f"{table.label}: the signal evidence needs the text that quotes must stand in; name its column (text, "
            "--text)"
        )
    if named.choices is None and "choices" in table.kinds:
        columns["choices"] = "choices"
    elif named.choices is not None and "|" not in named.choices:
        columns["choices"] = _has(table, named.choices)
    return columns


def _has(table: SourceTable, name: str) -> str:
    if name not in table.kinds:
        hint = _validate.suggestion(name, table.kinds)
        raise ArgumentError(f"{table.label}: has no column {name!r}{hint}; {table.listed_columns}")
    return name


def _template(columns: Mapping[str, str], template: str | None) -> str:
    """Return the template, or the one that asks the question, about the text where there is one."""
    if template is not None:
        if not template.strip():
            raise ArgumentError("the template is empty")
        return template
    question = "{" + columns["question"] + "}"
    if "text" not in columns:
        return question
    return _prompts.WITH_TEXT.replace("{text}", "{" + columns["text"] + "}").replace("{question}", question)


def _fields(template: str, table: SourceTable) -> tuple[str, ...]:
    """Return the columns that a template names; anything but a plain name is refused."""
    try:
        parts = list(string.Formatter().parse(template))
    except ValueError:
        raise ArgumentError(
            "the template has a brace without its other half; write {{ and }} for braces that are meant"
        ) from None
    fields: dict[str, None] = {}
    for _, name, form, conversion in parts:
        if name is None:
            continue
        if form or conversion or name not in table.kinds:
            shown = _validate.place_name(name)
            hint = _validate.suggestion(name, table.kinds)
            raise ArgumentError(
                f"the template names {shown!r}, which is no column of {table.label}{hint}; "
                f"{table.listed_columns}"
            )
        fields[name] = None
    return tuple(fields)


def _filled(table: SourceTable, template: str, fields: Sequence[str]) -> list[str]:
    """Return the template filled in for every row; a column that is named must say something."""
    cells = {name: table.texts(name) for name in fields}
    for name, column in cells.items():
        empty = [row for row, cell in enumerate(column) if cell is None]
        if empty:
            raise DataError(
                f"{table.label}: the column {name!r} is part of the prompt, and empty at {row_name(empty[0])} "
                f"({len(empty)} such rows)"
            )
    parts = [(before, name) for before, name, _, _ in string.Formatter().parse(template)]
    rows = len(next(iter(cells.values()))) if cells else table.rows
    if not rows:
        raise DataError(f"{table.label}: the table has no rows")
    # Put together by hand: a cell may hold braces of its own.
    return [
        "".join(before + ("" if name is None else str(cells[name][row])) for before, name in parts)
        for row in range(rows)
    ]


def _options(
    table: SourceTable, given: str | None, columns: Mapping[str, str], rows: int
) -> list[tuple[str, ...] | None]:
    if given is not None and "|" in given:
        listed = tuple(dict.fromkeys(part.strip() for part in given.split("|") if part.strip()))
        if len(listed) < 2:
            raise ArgumentError(f"choices must be at least two answers divided by |, got {len(listed)}")
        return [listed] * rows
    if "choices" not in columns:
        return [None] * rows
    found = [tuple(dict.fromkeys(options)) or None for options in table.lists(columns["choices"])]
    for row, options in enumerate(found):
        if options is not None and len(options) < 2:
            raise DataError(f"{table.label}: the choices at {row_name(row)} are fewer than two")
    return found


def _names(table: SourceTable, columns: Mapping[str, str], rows: int) -> list[Any]:
    return table.labels(columns["item"]).tolist() if "item" in columns else list(range(1, rows + 1))


def _ids(table: SourceTable, names: Sequence[Any], clusters: Sequence[Any]) -> list[str]:
    pairs = list(zip(clusters, names, strict=True))
    twice = [pair for pair, count in Counter(pairs).items() if count > 1]
    if twice:
        cluster, name = twice[0]
        whose = "" if cluster is None else f" of {_validate.place_name(cluster)}"
        rows = [row for row, pair in enumerate(pairs) if pair == twice[0]]
        raise DataError(
            f"{table.label}: the item {_validate.place_name(name)}{whose} stands twice (rows {rows[0]} and {rows[1]}; "
            f"{len(twice)} such items); items must be unique"
        )
    if len(set(map(str, names))) == len(names):
        found = [str(name) for name in names]
    else:
        found = [f"{cluster}:{name}" for cluster, name in pairs]
    safe = [name.translate(_NO_NAME) for name in found]
    # Names that only differ in what a log cannot hold are told apart by their rows.
    return safe if len(set(safe)) == len(safe) else [f"{row}:{name}" for row, name in enumerate(safe)]


def _truth(
    value: str | None, choices: Sequence[str] | None, scale: tuple[float, float] | None, place: str
) -> str | None:
    if value is None:
        return None
    said = labels.canonical(value, "truth", 0)
    if choices is not None:
        found = [choice for choice in choices if labels.canonical(choice, "choice", 0) == said]
        if not found:
            raise DataError(f"{place}: the truth is none of its {len(choices)} choices")
        return found[0]
    if scale is None:
        return value
    if not isinstance(said, (int, float)) or not scale[0] <= said <= scale[1]:
        raise DataError(f"{place}: the truth is no number of the scale of {scale[0]:g} to {scale[1]:g}")
    return f"{said:g}"


def _scale(given: Sequence[float] | None) -> tuple[float, float] | None:
    return None if given is None else _validate.scale(given)


def _of_instrument(
    table: SourceTable, named: _Named, form: WordedInstrument, template: str | None, limit: int | None
) -> QuestionSet:
    columns: dict[str, str] = {}
    cluster = named.cluster or usual_column(table, "cluster")
    text = named.text or next((name for name in _TEXT_NAMES if name in table.kinds), None)
    for role, found in (("cluster", cluster), ("text", text)):
        if found is None:
            raise ArgumentError(
                f"{table.label}: which column is the {role}? Name it ({role}, --{role}); "
                f"{table.listed_columns}"
            )
        columns[role] = _has(table, found)
    people = table.labels(columns["cluster"]).tolist()
    _ids(table, people, [None] * len(people))
    texts = _filled(table, "{" + columns["text"] + "}", [columns["text"]])
    shown = texts if template is None else _filled(table, template, _fields(template, table))
    instrument = form.instrument
    truths = {name: table.texts(_item_column(table, name, instrument.name)) for name in instrument.items}
    low, high = instrument.item_scale
    asked: list[Question] = []
    for row, person in enumerate(people[:limit]):
        for name in instrument.items:
            place = f"{table.label}: participant {_validate.place_name(person)}, item {name}"
            prompt = _prompts.INSTRUMENT.format(
                text=shown[row],
                instrument=instrument.name,
                low=low,
                high=high,
                words=form.meaning,
                item=form.questions.get(name, name),
            )
            truth = _truth(truths[name][row], None, (low, high), place)
            if truth is None:
                raise DataError(
                    f"{place}: the truth is missing, and a run file of an instrument has all of them"
                )
            asked.append(
                Question(
                    id=f"{person}:{name}".translate(_NO_NAME),
                    item=name,
                    cluster=person,
                    prompt=prompt,
                    truth=truth,
                    text=texts[row],
                )
            )
    return QuestionSet(
        tuple(asked),
        table.label,
        table.sha256(),
        columns,
        template,
        (float(low), float(high)),
        form,
        columns["cluster"],
    )


def _item_column(table: SourceTable, item: str, instrument: str) -> str:
    """Return the column with the truth of an item: its name, or that with the instrument's before it."""
    prefixed = f"{instrument.replace('-', '')}_{item}"
    found = next((name for name in (item, prefixed) if name in table.kinds), None)
    if found is None:
        raise ArgumentError(
            f"{table.label}: has no column {item!r} or {prefixed!r} with the truth of that item of {instrument}; "
            f"{table.listed_columns}"
        )
    return found


def digest(questions: QuestionSet, examples: Sequence[Example] = ()) -> str:
    """Return the hash of what is asked, word by word, so that a run goes on with what it began with."""
    content = hashlib.sha256()
    for question in questions.questions:
        parts = (question.id, question.prompt, question.truth, question.choices, questions.scale)
        content.update(repr(parts).encode())
    for example in examples:
        content.update(repr((example.prompt, example.answer)).encode())
    return content.hexdigest()
