"""Tables of questions: prompts, metadata, examples, instruments, and errors without the content of a cell."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from abstain.errors import ArgumentError, DataError
from abstain.runs import SignalPlan, read_examples, read_questions
from abstain.runs.questions import examples_of, with_examples

if TYPE_CHECKING:
    from pathlib import Path


def table(folder: Path, text: str, name: str = "mine.csv") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_a_template_inserts_cells_unchanged(tmp_path: Path) -> None:
    path = table(tmp_path, "id,note,drug,truth\n1,a {drug} {0} {{x}},aspirin,yes\n")
    question_set = read_questions(path, template="{note}: {{is}} {drug} named?")
    assert question_set.questions[0].prompt == "a {drug} {0} {{x}}: {is} aspirin named?"
    assert question_set.questions[0].metadata == {}


def test_unused_columns_become_metadata(tmp_path: Path) -> None:
    path = table(tmp_path, "id,patient_id,question,truth,site,should_abstain\na,p1,Is it?,yes,north,false\n")
    (question,) = read_questions(path).questions
    assert (question.item, question.cluster, question.should_abstain) == ("a", "p1", False)
    assert question.metadata == {"site": "north"}


def test_ids_include_the_cluster_if_item_names_repeat(tmp_path: Path) -> None:
    path = table(tmp_path, "item,patient,question,truth\nSleep,1,Is it?,yes\nSleep,2,Is it?,no\n")
    assert [question.id for question in read_questions(path).questions] == ["1:Sleep", "2:Sleep"]


def test_ids_are_valid_file_names_in_a_log(tmp_path: Path) -> None:
    path = table(tmp_path, "id,question,truth\n../a,Is it?,yes\n.._a,Is it so?,no\n")
    assert [question.id for question in read_questions(path).questions] == ["0:.._a", "1:.._a"]


def test_examples_have_answers_and_must_not_be_questions(tmp_path: Path) -> None:
    head = "id,question,truth,should_abstain\n"
    question_set = read_questions(table(tmp_path, head + "1,Is 7 prime?,yes,false\n"))
    examples = read_examples(
        table(tmp_path, head + "1,Is 4 prime?,no,false\n2,Is x prime?,,true\n", "shots.csv"), question_set
    )
    assert [example.answer for example in examples] == ["no", None]
    with pytest.raises(DataError, match="mine.csv: the example at line 2 is one of the questions"):
        read_examples(tmp_path / "mine.csv", question_set)


def test_a_custom_instrument(tmp_path: Path) -> None:
    declared = {
        "name": "two",
        "items": ["a", "b"],
        "item_scale": [0, 1],
        "tiers": [["low", 0], ["high", 1]],
        "questions": {"a": "how it began"},
    }
    (tmp_path / "two.json").write_text(json.dumps(declared))
    path = table(tmp_path, "patient_id,text,a,b\np1,He came late.,0,1\n")
    question_set = read_questions(path, instrument=str(tmp_path / "two.json"))
    assert [question.truth for question in question_set.questions] == ["0", "1"]
    assert "Item: how it began" in question_set.questions[0].prompt
    assert "Item: b" in question_set.questions[1].prompt
    with pytest.raises(ArgumentError, match="has no column 'NoInterest' or 'PHQ8_NoInterest'"):
        read_questions(path, instrument="PHQ-8")
    with pytest.raises(DataError, match="participant p1, item a: the truth is not a number on the scale"):
        read_questions(
            table(tmp_path, "patient_id,text,a,b\np1,x,7,1\n"), instrument=str(tmp_path / "two.json")
        )


def test_examples_of_an_instrument_are_other_participants(tmp_path: Path) -> None:
    """A prompt shows only the examples of the same item."""
    declared = {"name": "two", "items": ["a", "b"], "item_scale": [0, 3], "tiers": [["low", 0], ["high", 6]]}
    (tmp_path / "two.json").write_text(json.dumps(declared))
    instrument = str(tmp_path / "two.json")
    head = "patient_id,text,a,b\n"
    path = table(tmp_path, head + "p1,He came late.,0,1\n")
    shots = table(tmp_path, head + "p7,She slept well.,2,3\np8,He ran.,1,0\n", "shots.csv")
    question_set = read_questions(path, instrument=instrument)
    examples = read_examples(shots, question_set, instrument=instrument)
    prompts = [
        with_examples(question.prompt, examples_of(question, examples)) for question in question_set.questions
    ]
    for prompt, item, answers in zip(prompts, ("a", "b"), ((2, 1), (3, 0)), strict=True):
        assert prompt.count("She slept well.") == prompt.count("He ran.") == 1
        assert prompt.count(f"Item: {item}") == 3
        lines = [line for line in prompt.splitlines() if line.startswith("Answer: ")]
        assert lines == [f"Answer: {answer}" for answer in answers]
        assert prompt.index("He ran.") < prompt.index("He came late.")
    for row in ("p1,She slept well.,2,3\n", "p9,He came late.,2,3\n"):
        with pytest.raises(DataError, match=r"the example at line 3 is one of the participants of") as caught:
            read_examples(
                table(tmp_path, head + "p8,He ran.,1,0\n" + row, "bad.csv"),
                question_set,
                instrument=instrument,
            )
        assert "late" not in str(caught.value)


def test_no_error_shows_a_cell(tmp_path: Path) -> None:
    path = table(tmp_path, "id,question,truth\n1,The patient said,secret\n2,Another,2\n")
    with pytest.raises(DataError, match="item 1: the truth") as caught:
        read_questions(path, scale=(0, 3))
    assert "secret" not in str(caught.value)
    assert "patient" not in str(caught.value)


def test_signals_are_parsed_and_formatted() -> None:
    text = "verbalized:0-100,tokens,consistency:5,p_true,semantic_entropy:judge=openai/gpt-4o,evidence"
    plan = SignalPlan.parse(text)
    assert plan.text == text
    assert (plan.calls, plan.judge_calls, plan.judge) == (7, 10, "openai/gpt-4o")
    assert SignalPlan.parse("consistency:3:first").text == "consistency:3:first"
    assert SignalPlan.parse("consistency:3:mode").text == "consistency:3"
    assert SignalPlan.parse("evidence:verbatim").text == "evidence:verbatim"
    assert SignalPlan.parse("evidence:normalised").text == "evidence"
    assert SignalPlan.parse("consistency").answer == "mode"
    assert SignalPlan.parse("semantic_entropy").calls == 6
    assert SignalPlan.parse("").calls == 1
    assert SignalPlan().sampled(3, 0.2).text == "consistency:3"
    for wrong, message in (
        ("consistency:x", "a number of samples"),
        ("evidence:fuzzy", "evidence takes normalised or verbatim"),
        ("consistency:5:last", "the recorded answer, mode or first"),
        ("tokens,tokens", "duplicate signal tokens"),
        ("verbalized:5", "takes a scale"),
        ("semantic_entropy:judge=", "takes normalised or judge=MODEL"),
        ("tokens:5", "takes no value after a colon"),
    ):
        with pytest.raises(ArgumentError, match=message):
            SignalPlan.parse(wrong)
    with pytest.raises(ArgumentError, match="from 0 to 2"):
        SignalPlan().sampled(None, 3.0)
