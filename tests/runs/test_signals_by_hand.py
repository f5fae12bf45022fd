"""The signals of the solvers equal values that were worked out by hand, with scripted replies of a mock model."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import pytest
from inspect_ai.model import ChatMessageSystem, ChatMessageUser, ModelOutput, get_model
from inspect_ai.solver import chain

from abstain import read
from abstain.errors import ArgumentError
from abstain.metrics import confidence_target_score
from abstain.runs import (
    ask,
    consistency,
    evidence,
    may_abstain,
    measures,
    p_true,
    semantic_entropy,
    token_signals,
    verbalized_confidence,
)
from runs.mocked import Script, Tokens, output, refusal, reply, run_once

if TYPE_CHECKING:
    from pathlib import Path

YES_NO = {"metadata": {"choices": ["yes", "no"]}}
RATED: dict[str, Any] = {"metadata": {"scale": [0, 3]}, "target": "2"}


def score_of(sample: Any) -> Any:
    assert sample.error is None, sample.error
    return sample.scores["answer_scorer"]


def test_an_answer_is_scored_and_the_prompt_allows_declining(tmp_path: Path) -> None:
    script = Script(reply("Yes "))
    score = score_of(run_once(tmp_path, may_abstain(), script, **YES_NO))
    assert (score.value, score.answer) == ("C", "yes")
    prompt = script.calls[0][-1].text
    assert prompt.startswith("Is 7 prime?\n\nYou may decline")
    assert '"answer": one of "yes", "no"; null to decline.' in prompt
    schema = script.configs[0].response_schema.json_schema
    assert schema.properties["answer"].anyOf[0].enum == ["yes", "no"]
    assert score_of(run_once(tmp_path, may_abstain(), Script(reply("no")), **YES_NO)).value == "I"


def test_without_structured_output_there_is_no_schema(tmp_path: Path) -> None:
    script = Script(reply("yes"))
    run_once(tmp_path, may_abstain(structured=False), script, **YES_NO)
    assert script.configs[0].response_schema is None


def test_the_wording_of_the_prompt_can_be_changed(tmp_path: Path) -> None:
    script = Script(reply("yes", reasoning="It has two divisors."))
    solver = ask(
        "verbalized,consistency:1",
        system_message="You know numbers.",
        decline_instruction="Decline if unsure.",
        reasoning=True,
    )
    sample = [ChatMessageSystem(content="of the task"), ChatMessageUser(content="Is 7 prime?")]
    run_once(tmp_path, solver, script, input=sample, **YES_NO)
    for messages, config in zip((script.calls[0], script.calls[-1]), script.configs[::2], strict=True):
        assert [message.role for message in messages] == ["system", "user"]
        assert messages[0].text == "You know numbers."
        assert messages[1].text.startswith("Is 7 prime?\n\nDecline if unsure.\n\nReply")
        assert '- "reasoning": your reasoning' in messages[1].text
        assert list(config.response_schema.json_schema.properties) == ["reasoning", "answer", "confidence"]


def test_a_confidence_target_states_the_points_of_its_metric(tmp_path: Path) -> None:
    """With a target of 0.75, a wrong answer costs 3 points, as in the metric confidence_target_score."""
    script = Script(reply("yes"))
    run_once(tmp_path, ask(confidence_target=0.75), script, **YES_NO)
    prompt = script.calls[0][-1].text
    assert "only if you are more than 75% sure" in prompt
    assert "a wrong answer loses 3 points" in prompt
    assert "You may decline" not in prompt
    wrong_and_right = confidence_target_score(["a", "a"], ["b", "a"], target=0.75)
    assert wrong_and_right == pytest.approx((1 - 3) / 2)


@pytest.mark.parametrize(
    ("wording", "message"),
    [
        ({"confidence_target": 1.0}, "--confidence-target must be between 0 and 1, such as 0.75, got 1"),
        ({"confidence_target": 75}, "--confidence-target must be between 0 and 1, such as 0.75, got 75"),
        ({"confidence_target": 0.5, "decline_instruction": "Decline."}, "pass only one of them"),
        ({"system_message": " "}, "--system-message is empty"),
        ({"decline_instruction": ""}, "--decline-instruction is empty"),
    ],
)
def test_an_unusable_wording_is_an_error(wording: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        ask(**wording)


def test_null_and_refusals_are_abstentions(tmp_path: Path) -> None:
    score = score_of(run_once(tmp_path, may_abstain(), Script(reply(None)), **YES_NO))
    assert (score.value, score.answer, score.reason) == ("N", None, None)
    refused = output("I cannot help with that", stop="content_filter")
    score = score_of(run_once(tmp_path, may_abstain(), Script(refused), **YES_NO))
    assert (score.value, score.reason) == ("N", "refusal")


def test_a_message_that_the_provider_marks_as_a_refusal_is_an_abstention(tmp_path: Path) -> None:
    script = Script(refusal())
    score = score_of(run_once(tmp_path, may_abstain(), script, **YES_NO))
    assert (score.value, score.reason) == ("N", "refusal")
    assert len(script.calls) == 1
    script = Script(reply(2), reply(2), refusal(), refusal())
    signals = score_of(run_once(tmp_path, chain(may_abstain(), consistency(3)), script, **RATED)).metadata
    assert signals["consistency_samples"] == [2, None, None]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "empty"),
        ("yes", "no_object"),
        ('["yes"]', "no_object"),
        ('The answer: {"answer": "yes"}', "no_object"),
        ('{"answer": "yes", "answer": "no"}', "no_object"),
        ('{"answer": NaN}', "no_object"),
        ('{"reply": "yes"}', "no_answer"),
        ('{"answer": "perhaps"}', "no_choice"),
        ('{"answer": true}', "no_text"),
        ('{"answer": ["yes"]}', "no_text"),
    ],
)
def test_an_item_with_two_unreadable_replies_fails(tmp_path: Path, text: str, code: str) -> None:
    script = Script(output(text))
    sample = run_once(tmp_path, may_abstain(), script, **YES_NO)
    score = score_of(sample)
    assert math.isnan(score.value)
    assert (score.reason, score.metadata["unread"]) == ("invalid_response_format", code)
    assert len(script.calls) == 2
    assert "That reply could not be read" in script.calls[1][-1].text
    items = read(sorted(tmp_path.glob("*.eval"))[-1])
    assert (items.counts.failed, items.counts.abstained) == (1, 0)


def test_a_readable_second_reply_is_scored(tmp_path: Path) -> None:
    script = Script(output("well"), output('```json\n{"answer": "yes"}\n```'))
    assert score_of(run_once(tmp_path, may_abstain(), script, **YES_NO)).value == "C"


def test_a_truncated_reply_is_unreadable(tmp_path: Path) -> None:
    script = Script(output('{"answer": "yes"}', stop="max_tokens"))
    assert score_of(run_once(tmp_path, may_abstain(), script, **YES_NO)).metadata["unread"] == "cut_off"


def test_answers_on_a_scale_are_scored_by_distance(tmp_path: Path) -> None:
    assert score_of(run_once(tmp_path, may_abstain(), Script(reply("2")), **RATED)).value == 1.0
    assert score_of(run_once(tmp_path, may_abstain(), Script(reply(0)), **RATED)).value == pytest.approx(
        1 / 3
    )
    for wrong in (4, -1, 1.5, "two"):
        score = score_of(run_once(tmp_path, may_abstain(), Script(reply(wrong)), **RATED))
        assert score.metadata["unread"] == "off_scale"


def test_choices_of_a_sample_are_answered_by_letter(tmp_path: Path) -> None:
    script = Script(reply("B"))
    sample = run_once(tmp_path, may_abstain(), script, choices=["four", "seven"], target="B")
    assert score_of(sample).value == "C"
    assert "A) four\nB) seven" in script.calls[0][-1].text


def test_a_sample_without_a_target_is_not_scored(tmp_path: Path) -> None:
    score = score_of(run_once(tmp_path, may_abstain(), Script(reply("yes")), target="", **YES_NO))
    assert math.isnan(score.value)
    assert score.reason == "no_target"
    assert read(next(tmp_path.glob("*.eval"))).counts.unscored == 1


@pytest.mark.parametrize(
    ("scale", "stated", "expected"),
    [((1, 5), 4, 4.0), ((1, 5), "2", 2.0), ((0, 100), 75, 4.0), ((0, 1), 0.25, 2.0)],
)
def test_verbalized_confidence_before_and_after_the_answer(
    tmp_path: Path, scale: tuple[float, float], stated: object, expected: float
) -> None:
    script = Script(reply("yes", confidence=stated))
    before = run_once(tmp_path, chain(verbalized_confidence(scale), may_abstain()), script, **YES_NO)
    assert score_of(before).metadata["verbalized_confidence"] == expected
    assert len(script.calls) == 1
    script = Script(reply("yes"), reply(None, confidence=stated))
    after = run_once(tmp_path, chain(may_abstain(), verbalized_confidence(scale)), script, **YES_NO)
    assert score_of(after).metadata["verbalized_confidence"] == expected
    assert len(script.calls) == 2
    assert "About the answer that you just gave" in script.calls[1][-1].text


def test_an_unreadable_confidence_is_null_and_the_answer_is_scored(tmp_path: Path) -> None:
    script = Script(reply("yes", confidence=9))
    score = score_of(run_once(tmp_path, ask("verbalized"), script, **YES_NO))
    assert (score.value, score.metadata["verbalized_confidence"]) == ("C", None)
    assert score.metadata["unread"] == "no_confidence"
    assert len(script.calls) == 2


@pytest.mark.parametrize(
    "second", [output("garbage"), output('{"answer": "no"', stop="max_tokens"), refusal()]
)
def test_an_answer_without_a_confidence_counts_if_the_second_reply_is_unreadable(
    tmp_path: Path, second: ModelOutput
) -> None:
    tokens = [("a", 0.5, {"a": 0.5, "b": 0.5})]
    script = Script(reply("yes", tokens), second)
    score = score_of(run_once(tmp_path, ask("verbalized,tokens"), script, **YES_NO))
    assert (score.value, score.answer) == ("C", "yes")
    assert score.metadata["verbalized_confidence"] is None
    assert score.metadata["unread"] == "no_confidence"
    # The token signals belong to the reply with the answer.
    assert score.metadata["token_msp"] == pytest.approx(0.5)


def test_a_sample_is_not_requested_again_for_its_confidence(tmp_path: Path) -> None:
    script = Script(reply(2, confidence=4), reply(2), reply(1, confidence=3), reply(2))
    signals = score_of(run_once(tmp_path, ask("verbalized,consistency:3"), script, **RATED)).metadata
    assert len(script.calls) == 4
    assert (signals["consistency_samples"], signals["consistency_unread"]) == ([2, 1, 2], 0)


def test_token_signals(tmp_path: Path) -> None:
    tokens = [("a", 0.5, {"a": 0.5, "b": 0.5}), ("c", 0.8, {"c": 0.8, "d": 0.1})]
    script = Script(reply("yes", tokens))
    signals = score_of(run_once(tmp_path, ask("tokens"), script, **YES_NO)).metadata
    assert script.configs[0].logprobs is True
    assert script.configs[0].top_logprobs == 5
    assert signals["token_msp"] == pytest.approx((0.5 + 0.8) / 2)
    proportions = (8 / 9, 1 / 9)
    entropy = -sum(proportion * math.log(proportion) for proportion in proportions)
    assert signals["token_pe"] == pytest.approx((math.log(2) + entropy) / 2)
    assert signals["token_energy"] == pytest.approx((0.0 + math.log(0.9)) / 2)
    after = run_once(tmp_path, chain(may_abstain(), token_signals()), Script(reply("yes", tokens)), **YES_NO)
    assert score_of(after).metadata["token_msp"] == signals["token_msp"]


@pytest.mark.parametrize(
    ("pieces", "expected"),
    [
        # The braces, the names, the confidence and the quotation marks do not count.
        ([('{"answer": "', 0.9), ("ye", 0.5), ("s", 0.4), ('", "confidence": ', 0.9), ("4}", 0.3)], 0.2),
        # A token that also contains a quotation mark counts.
        ([('{"answer":', 0.9), (' "yes', 0.5), ('"}', 0.4)], 0.5),
        ([('{"answer": "yes"}', 0.7)], 0.7),
        # "answer" within another value, and in front of it.
        (
            [('{"quotes": ["answer: yes", "\\"answer\\": 1"], "answer": ', 0.9), ('"yes"', 0.6), ("}", 0.1)],
            0.6,
        ),
        # Reasoning before the reply, a fence around it, and a token for the end behind it.
        (
            [
                ("<think>yes</think>", 0.1),
                ('```json\n{"answer": "', 0.9),
                ("yes", 0.6),
                ('"}\n```', 0.5),
                ("<eos>", 0.1),
            ],
            0.6,
        ),
        # A declined question.
        ([('{"answer": ', 0.9), ("null", 0.25), ("}", 0.9)], 0.25),
        # Tokens of another text.
        ([("other", 0.9)], None),
    ],
)
def test_the_probability_of_the_answer_excludes_the_rest_of_the_reply(
    tmp_path: Path, pieces: list[tuple[str, float]], expected: float | None
) -> None:
    text = "".join(piece for piece, _ in pieces if piece not in ("<think>yes</think>", "<eos>"))
    text = '{"answer": "yes"}' if expected is None else text
    tokens: Tokens = [(piece, probability, {piece: probability}) for piece, probability in pieces]
    script = Script(output(text, tokens))
    signals = score_of(run_once(tmp_path, ask("tokens"), script, **YES_NO)).metadata
    assert signals["answer_token_probability"] == (None if expected is None else pytest.approx(expected))


def test_a_character_of_several_tokens_is_part_of_the_answer() -> None:
    pieces = [(b'{"answer": "', 0.9), (b"caf\xc3", 0.5), (b"\xa9", 0.8), (b'"}', 0.3)]
    tokens = [
        {"token": "?", "bytes": list(piece), "logprob": math.log(probability)}
        for piece, probability in pieces
    ]
    assert measures.answer_probability(tokens, '{"answer": "café"}') == pytest.approx(0.4)


def test_without_log_probabilities_the_signals_are_null_with_one_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    from abstain.runs import solvers  # noqa: PLC0415

    solvers._warned.clear()
    for _ in range(2):
        signals = score_of(run_once(tmp_path, ask("tokens"), Script(reply("yes")), **YES_NO)).metadata
        keys = ("token_msp", "token_pe", "token_energy", "answer_token_probability")
        assert [signals[key] for key in keys] == [None] * 4
    warnings = [record for record in caplog.records if "returns no log-probabilities" in record.getMessage()]
    assert len(warnings) == 1
    no_alternatives: Tokens = [("a", 0.5, {})]
    script = Script(reply("yes", no_alternatives))
    signals = score_of(run_once(tmp_path, ask("tokens"), script, **YES_NO)).metadata
    assert (signals["token_msp"], signals["token_pe"]) == (pytest.approx(0.5), None)


def consistency_signals(tmp_path: Path, *answers: object, **sample: Any) -> dict[str, Any]:
    """Return the signals of an answer (the first) and of further samples."""
    script = Script(reply(answers[0]), *(reply(answer) for answer in answers[1:]))
    solver = chain(may_abstain(seed=5), consistency(len(answers) - 1, 0.9))
    signals: dict[str, Any] = score_of(run_once(tmp_path, solver, script, **sample)).metadata
    assert [config.temperature for config in script.configs] == [None, *[0.9] * (len(answers) - 1)]
    assert [config.seed for config in script.configs] == [5, *range(6, 5 + len(answers))]
    return signals


def test_consistency_of_numbers(tmp_path: Path) -> None:
    signals = consistency_signals(tmp_path, 2, 2, 2, 1, None, **RATED)
    assert signals["consistency_modal_score"] == 2.0
    assert signals["consistency_modal_count"] == 2
    assert signals["consistency_modal_confidence"] == 0.5
    assert signals["consistency_score_std"] == pytest.approx(math.sqrt(2 / 9))
    assert signals["consistency_na_rate"] == 0.25
    assert signals["consistency_samples"] == [2, 2, 1, None]


def test_consistency_of_one_sample(tmp_path: Path) -> None:
    signals = consistency_signals(tmp_path, 2, 3, **RATED)
    assert (signals["consistency_modal_score"], signals["consistency_modal_confidence"]) == (3.0, 1.0)
    assert (signals["consistency_score_std"], signals["consistency_na_rate"]) == (0.0, 0.0)


def test_consistency_if_all_samples_abstain(tmp_path: Path) -> None:
    signals = consistency_signals(tmp_path, 2, None, None, None, **RATED)
    assert (signals["consistency_modal_score"], signals["consistency_modal_confidence"]) == (None, 1.0)
    assert (signals["consistency_score_std"], signals["consistency_na_rate"]) == (0.0, 1.0)
    assert signals["consistency_samples"] == [None] * 3


def test_consistency_of_labels_has_no_standard_deviation(tmp_path: Path) -> None:
    signals = consistency_signals(tmp_path, "yes", "no", "no", "yes", **YES_NO)
    assert signals["consistency_modal_answer"] == "no"
    assert signals["consistency_modal_confidence"] == pytest.approx(2 / 3)
    assert signals["consistency_score_std"] is None


LABELS: dict[str, Any] = {"metadata": {"choices": ["a", "b", "c"]}, "target": "b"}


def ask_and_sample(
    folder: Path, first: ModelOutput, samples: list[object], answer: str = "mode", **sample: Any
) -> Any:
    """Return the score of a first reply and further samples of its answer."""
    script = Script(first, *(reply(value) for value in samples))
    solver = chain(may_abstain(), consistency(len(samples), answer=answer))
    return score_of(run_once(folder, solver, script, **sample))


def test_the_mode_of_the_samples_is_the_answer(tmp_path: Path) -> None:
    score = ask_and_sample(tmp_path, reply("a"), ["b"] * 5, **LABELS)
    assert (score.answer, score.value) == ("b", "C")
    assert score.metadata["consistency_modal_confidence"] == 1.0
    assert score.metadata["consistency_agreement"] == 1.0
    assert score.metadata["consistency_first_answer"] == "a"
    score = ask_and_sample(tmp_path, reply("a"), ["b"] * 5, "first", **LABELS)
    assert (score.answer, score.value) == ("a", "I")
    assert score.metadata["consistency_modal_confidence"] == 1.0
    assert score.metadata["consistency_agreement"] == 0.0


@pytest.mark.parametrize(
    ("first", "samples", "answer", "agreement"),
    [
        (3, [2, 2, 1, 0], "2", 0.5),  # half of the samples is enough
        (3, [2, 2, 1, 0, None], "3", 0.0),  # less than half: the first answer
        (1, [2, 2, 1, 0, None], "1", 0.2),
        (3, [3, 3, 1, 1], "1", 0.5),  # a tie: the smallest
        (3, [3, None], None, 0.5),  # a tie: abstention
        (3, [None, None, 3], None, 2 / 3),
        (None, [1, 1, None], "1", 2 / 3),  # the first reply declined
        (None, [0, 1, 2, None], None, 0.25),
    ],
)
def test_ties_and_abstentions_of_the_mode(
    tmp_path: Path, first: object, samples: list[object], answer: str | None, agreement: float
) -> None:
    score = ask_and_sample(tmp_path, reply(first), samples, **RATED)
    assert score.answer == answer
    assert (score.value == "N") == (answer is None)
    assert score.metadata["consistency_agreement"] == pytest.approx(agreement)


def test_samples_answer_an_item_whose_first_reply_is_unreadable(tmp_path: Path) -> None:
    for samples, expected in (([1, 2, 2], "2"), ([3, 1, 2], "3")):
        script = Script(output("what"), output("what"), *(reply(value) for value in samples))
        score = score_of(run_once(tmp_path, chain(may_abstain(), consistency(3)), script, **RATED))
        assert score.answer == expected
        assert "unread" not in score.metadata
    script = Script(output("what"), output("what"), reply(2))
    solver = chain(may_abstain(), consistency(1, answer="first"))
    score = score_of(run_once(tmp_path, solver, script, **RATED))
    assert math.isnan(score.value)
    assert score.metadata["consistency_agreement"] is None


def test_signals_belong_to_the_sample_whose_answer_is_recorded(tmp_path: Path) -> None:
    fields = {"metadata": {"choices": ["yes", "no"], "text": "Seven has no divisors."}, "target": "no"}
    quotes = ["Seven", "no divisors"]

    def tokens(probability: float) -> Tokens:
        return [("t", probability, {"t": probability, "u": 1 - probability})]

    script = Script(
        reply("yes", tokens(0.9), confidence=5, quotes=[]),
        reply("no", tokens(0.6), confidence=2, quotes=quotes),
        reply("no", tokens(0.7), confidence=3, quotes=[]),
        output("A", [("A", 0.6, {"A": 0.6, "B": 0.2})]),
    )
    sample = run_once(tmp_path, ask("verbalized,tokens,evidence,consistency:2,p_true"), script, **fields)
    signals = score_of(sample).metadata
    assert signals["verbalized_confidence"] == 2.0
    assert signals["token_msp"] == pytest.approx(0.6)
    assert signals["llm_evidence_count"] == 2
    assert signals["p_true"] == pytest.approx(0.75)
    assert '"no"' in script.calls[3][-2].text
    assert [bool(config.logprobs) for config in script.configs] == [True] * 4
    # The log reader takes token signals from the output of the sample.
    items = read(next(tmp_path.glob("*.eval")))
    assert items.signals["token_msp"].values[0] == pytest.approx(0.6)


def test_a_signal_about_an_answer_that_may_be_replaced_is_an_error(tmp_path: Path) -> None:
    script = Script(reply("yes"), output("A", [("A", 0.6, {"A": 0.6, "B": 0.2})]), reply("no"))
    sample = run_once(tmp_path, chain(may_abstain(), p_true(), consistency(1)), script, **YES_NO)
    assert "consistency may replace the answer, which p_true describes" in sample.error.message  # type: ignore[union-attr]


def test_unreadable_samples_are_excluded_and_counted(tmp_path: Path) -> None:
    script = Script(reply(2), output("no form"))
    signals = score_of(run_once(tmp_path, chain(may_abstain(), consistency(2)), script, **RATED)).metadata
    assert signals["consistency_unread"] == 2
    assert (signals["consistency_modal_confidence"], signals["consistency_samples"]) == (None, [])


def test_p_true(tmp_path: Path) -> None:
    letters = [("A", 0.6, {"A": 0.5, " A": 0.1, "B": 0.2, "C": 0.1})]
    script = Script(reply("yes"), output("A", letters))
    solver = chain(may_abstain(), p_true())
    assert score_of(run_once(tmp_path, solver, script, **YES_NO)).metadata["p_true"] == pytest.approx(0.75)
    assert "(A) true\n(B) false" in script.calls[1][-1].text
    for second_reply in (output("A"), output("C", [("C", 0.9, {"C": 0.9})])):
        score = score_of(run_once(tmp_path, solver, Script(reply("yes"), second_reply), **YES_NO))
        assert score.metadata["p_true"] is None
    script = Script(reply(None))
    assert score_of(run_once(tmp_path, solver, script, **YES_NO)).metadata["p_true"] is None
    assert len(script.calls) == 1


def test_semantic_entropy_of_equal_labels(tmp_path: Path) -> None:
    solver = chain(may_abstain(), semantic_entropy(samples=4))
    script = Script(reply("Paris"), reply("Paris"), reply(" paris"), reply("Lyon"), reply(None))
    signals = score_of(run_once(tmp_path, solver, script, target="Paris")).metadata
    assert signals["semantic_entropy"] == pytest.approx(-(0.5 * math.log(0.5) + 2 * 0.25 * math.log(0.25)))
    assert (signals["semantic_meanings"], signals["semantic_equivalence"]) == (3, "normalised")
    script = Script(reply("Paris"), *(reply(None) for _ in range(4)))
    assert score_of(run_once(tmp_path, solver, script, target="Paris")).metadata["semantic_entropy"] == 0.0


def test_semantic_entropy_uses_the_samples_of_consistency(tmp_path: Path) -> None:
    script = Script(reply("yes"), reply("yes"), reply("no"))
    signals = score_of(run_once(tmp_path, ask("consistency:2,semantic_entropy"), script, **YES_NO)).metadata
    assert signals["semantic_entropy"] == pytest.approx(math.log(2))
    assert len(script.calls) == 3


def test_semantic_entropy_with_a_model_that_compares_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    comparisons: list[str] = []

    def verdict(messages: list[Any], *_: object) -> ModelOutput:
        comparisons.append(messages[-1].text)
        same = "the city of Paris" in messages[-1].text and "Lyon" not in messages[-1].text
        return output(f'{{"same": {str(same).lower()}}}')

    judge = get_model("mockllm/judge", custom_outputs=verdict)
    monkeypatch.setattr("abstain.runs.solvers.get_model", lambda *name: judge if name else get_model())
    script = Script(reply("Paris"), reply("Paris"), reply("the city of Paris"), reply("Lyon"), reply("Paris"))
    solver = chain(may_abstain(), semantic_entropy("judge=mockllm/judge", samples=4))
    signals = score_of(run_once(tmp_path, solver, script, target="Paris")).metadata
    # Paris occurs three times in two wordings, Lyon once. Equal wordings need no call.
    assert signals["semantic_entropy"] == pytest.approx(-(0.75 * math.log(0.75) + 0.25 * math.log(0.25)))
    assert len(comparisons) == 2


def test_a_refusal_to_compare_answers_is_not_a_verdict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge = get_model("mockllm/judge", custom_outputs=lambda *_: output("", stop="content_filter"))
    monkeypatch.setattr("abstain.runs.solvers.get_model", lambda *name: judge if name else get_model())
    script = Script(reply("Paris"), reply("Paris"), reply("Lyon"))
    solver = chain(may_abstain(), semantic_entropy("judge=mockllm/judge", samples=2))
    signals = score_of(run_once(tmp_path, solver, script, target="Paris")).metadata
    assert signals["semantic_entropy"] is None


def test_evidence_counts_quotes_that_occur_in_the_text(tmp_path: Path) -> None:
    text = "I slept badly again. Work is fine."
    fields = {"metadata": {"scale": [0, 3], "text": text}, "target": "2"}
    quotes = ["slept badly", "Slept badly", "slept badly", "Work is fine", "felt low"]
    script = Script(reply(2, quotes=quotes))
    signals = score_of(run_once(tmp_path, ask("evidence:verbatim"), script, **fields)).metadata
    assert (signals["llm_evidence_count"], signals["evidence_unsupported_share"]) == (2, 0.5)
    signals = score_of(run_once(tmp_path, ask("evidence"), script, **fields)).metadata
    assert (signals["llm_evidence_count"], signals["evidence_unsupported_share"]) == (3, 0.25)
    script = Script(reply(2, quotes=[]))
    signals = score_of(run_once(tmp_path, ask("evidence"), script, **fields)).metadata
    assert (signals["llm_evidence_count"], signals["evidence_unsupported_share"]) == (0, None)
    script = Script(reply(2), reply(None, quotes=["Work is fine"]))
    after = run_once(tmp_path, chain(may_abstain(), evidence()), script, **fields)
    assert score_of(after).metadata["llm_evidence_count"] == 1


@pytest.mark.parametrize(
    ("quote", "occurs"),
    [
        ("I'm SO tired", True),  # a typographic apostrophe and a tag in the text, capitals in the quote
        ("tired \n all\tday", True),
        ("all\u200b day", True),  # a character without width
        ("the o\ufb03ce", True),  # a ligature
        ("he said \u201cgo\u201d", True),
        ("Im so tired", False),
        ("tiredall day", False),
        ("<sigh>", False),  # nothing but a tag
    ],
)
def test_quotes_are_normalised_like_those_of_the_system_that_defined_the_run_file(
    quote: str, occurs: bool
) -> None:
    text = 'I\u2019m <sigh> so\u00a0 tired all day at the office; he said "go".'
    assert measures.quote_signals([quote], text) == {
        "llm_evidence_count": int(occurs),
        "evidence_unsupported_share": float(not occurs),
    }


def test_solvers_in_the_wrong_order_are_errors(tmp_path: Path) -> None:
    sample = run_once(tmp_path, consistency(), Script(reply("yes")), **YES_NO)
    assert "must come after may_abstain" in sample.error.message  # type: ignore[union-attr]
    sample = run_once(tmp_path, verbalized_confidence(), Script(reply("yes")), **YES_NO)
    assert "no answer to score" in sample.error.message  # type: ignore[union-attr]
    sample = run_once(tmp_path, ask("evidence"), Script(reply("yes")), **YES_NO)
    assert "needs the text in its metadata under 'text'" in sample.error.message  # type: ignore[union-attr]
