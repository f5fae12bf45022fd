from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import pytest

from abstain import ArgumentError, DataError, FormatError, evaluate, read
from memory import run_measured

if TYPE_CHECKING:
    from pathlib import Path


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_multiple_choice_has_confidence_and_token_signals(lm_eval_samples: Path) -> None:
    path = lm_eval_samples / "samples_choices.jsonl"
    items = read(path)
    assert repr(items) == "Items(24 items in 24 documents: 24 answered, 0 abstained, 0 failed, 0 unscored)"
    record = lines(path)[5]
    likelihoods = [float(pair[0]) for pair in record["filtered_resps"]]
    best = likelihoods.index(max(likelihoods))
    assert items.prediction[5] == str(best)
    assert items.truth[5] == record["target"] == "1"
    total = sum(math.exp(value) for value in likelihoods)
    proportion = math.exp(likelihoods[best]) / total
    assert items.signals["confidence"].values[5] == pytest.approx(proportion)
    assert items.signals["token_msp"].values[5] == pytest.approx(math.exp(likelihoods[best]))
    assert items.signals["token_energy"].values[5] == pytest.approx(math.log(total))
    others = sorted((math.exp(value) / total for value in likelihoods), reverse=True)
    assert items.signals["choice_margin"].values[5] == pytest.approx(others[0] - others[1])
    entropy = -sum(other * math.log(other) for other in others)
    assert items.signals["token_pe"].values[5] == pytest.approx(entropy)


@pytest.mark.parametrize("name", ["choices", "words"])
def test_accuracy_equals_that_of_the_harness(lm_eval_samples: Path, name: str) -> None:
    reported = json.loads((lm_eval_samples / "accuracy.json").read_text())[name]
    items = read(lm_eval_samples / f"samples_{name}.jsonl")
    assert (items.truth == items.prediction).mean() == pytest.approx(reported)
    result = evaluate(items, loss="zero_one", resamples=0)["confidence"]
    assert result.curve.selective_risk[-1] == pytest.approx(1.0 - reported)


def test_a_rule_can_mark_one_choice_as_an_abstention(lm_eval_samples: Path) -> None:
    path = lm_eval_samples / "samples_choices.jsonl"
    declining = sum(
        max(range(4), key=lambda k: float(record["filtered_resps"][k][0])) == 3 and record["target"] != "3"
        for record in lines(path)
    )
    for rule in ("choice:3", "choice:Not sure"):
        items = read(path, abstain_rule=rule)
        assert items.counts.abstained == declining
        assert sum(items.provenance["abstention_rule"][key] for key in ("abstained", "answered")) <= 24


def test_generated_answers_have_the_grades_of_the_harness(lm_eval_samples: Path) -> None:
    path = lm_eval_samples / "samples_answers.jsonl"
    items = read(path)
    matches = [record["exact_match"] for record in lines(path)]
    # The target is a whole sentence, which never equals the answer "1".
    assert items.truth[1] == "The answer is 1."
    assert (items.truth == items.prediction).astype(float).tolist() == matches
    assert items.metadata["patient"].tolist() == [number // 3 for number in range(24)]
    items = read(path, abstain_rule="phrases:I don't know")
    assert items.counts.abstained == sum(record["resps"][0][0] == "I don't know" for record in lines(path))
    items = read(path, abstain_rule="phrases:I don\u2019t  KNOW", cluster_by="patient")
    assert len(items.cluster_ids) == 8


def test_filters_are_items_and_repeats_are_consistency_signals(lm_eval_samples: Path) -> None:
    path = lm_eval_samples / "samples_repeated.jsonl"
    items = read(path)
    assert len(items) == 48
    assert len(items.cluster_ids) == 24
    assert items.item[0] == "0_strict"
    assert set(items.metadata["filter"]) == {"strict", "flexible"}
    strict = read(path, filter="strict")
    assert strict.item.tolist() == list(range(24))
    matches = [record["exact_match"] for record in lines(path) if record["filter"] == "strict"]
    assert (strict.truth == strict.prediction).astype(float).tolist() == matches
    responses = lines(path)[0]["resps"][0]
    common = max(responses.count(text) for text in responses)
    assert strict.signals["consistency_modal_confidence"].values[0] == pytest.approx(common / 3)
    with pytest.raises(ArgumentError, match=r"has no filter 'strikt' \(did you mean 'strict'\?\)"):
        read(path, filter="strikt")


def test_another_metric_can_be_the_grade(lm_eval_samples: Path) -> None:
    path = lm_eval_samples / "samples_choices.jsonl"
    items = read(path, scorer="acc_norm")
    expected = [record["acc_norm"] for record in lines(path)]
    assert (items.truth == items.prediction).astype(float).tolist() == expected
    with pytest.raises(ArgumentError, match=r"line 1: has no metric 'ac' \(did you mean 'acc'\?\)"):
        read(path, scorer="ac")
    with pytest.raises(ArgumentError, match=r"has no 'patent' in its doc \(did you mean 'patient'\?\)"):
        read(path, cluster_by="patent")


@pytest.mark.nightly
def test_tens_of_thousands_of_samples_need_little_memory(lm_eval_samples: Path, tmp_path: Path) -> None:
    records = lines(lm_eval_samples / "samples_choices.jsonl")
    path = tmp_path / "samples_many.jsonl"
    with path.open("w") as file:
        for number in range(30_000):
            file.write(json.dumps(records[number % 24] | {"doc_id": number}) + "\n")
    program = "import sys, abstain; print(len(abstain.read(sys.argv[1])))"
    printed, kilobytes = run_measured(program, path)
    assert int(printed) == 30_000
    assert kilobytes < 500_000


def sample(**changes: Any) -> dict[str, Any]:
    pairs = [["-1.0", "False"], ["-2.0", "False"]]
    return {
        "doc_id": 0,
        "doc": {"d": 1},
        "target": "0",
        "filtered_resps": pairs,
        "metrics": ["acc"],
        "acc": 1.0,
    } | changes


def written(path: Path, *records: Any) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def test_the_second_half_of_mutual_information_is_not_a_choice(tmp_path: Path) -> None:
    pairs = [["-3", "False"], ["-2", "False"], ["-0.1", "False"], ["-9", "False"]]
    record = sample(filtered_resps=pairs, metrics=["acc", "acc_mutual_info"], target="1")
    items = read(written(tmp_path / "samples.jsonl", record))
    assert items.prediction.tolist() == ["1"]


def test_a_single_continuation_has_no_confidence(tmp_path: Path) -> None:
    items = read(written(tmp_path / "samples.jsonl", sample(filtered_resps=[["-1", "True"]])))
    assert not items.signals
    assert (items.truth == items.prediction).all()


def test_metrics_between_0_and_1_are_grades(tmp_path: Path) -> None:
    records = [
        sample(doc_id=number, filtered_resps=["text"], metrics=["f1"], f1=grade)
        for number, grade in enumerate((0.25, 1.0))
    ]
    items = read(written(tmp_path / "samples.jsonl", *records))
    assert items.prediction.tolist() == [0.25, 1.0]
    assert items.scale == (0.0, 1.0)


def test_nan_metrics_are_unscored(tmp_path: Path) -> None:
    records = [sample(), sample(doc_id=1, filtered_resps=["x"], acc=math.nan)]
    assert read(written(tmp_path / "samples.jsonl", *records)).counts.unscored == 1


@pytest.mark.parametrize(
    ("records", "error", "message"),
    [
        ([sample(), {"doc_id": 1}], FormatError, "line 2 is not a sample: it lacks doc, filtered_resps"),
        ([sample(), sample()], DataError, "the item 0 appears twice"),
        ([sample(doc_id=1.5)], FormatError, "doc_id: it must be a whole number or text, got a number"),
        ([sample(filtered_resps=[])], FormatError, "filtered_resps: it must be a list of at least 1"),
        ([sample(metrics=[], target="zz")], FormatError, "it is unknown whether the answer is right"),
        ([sample(filtered_resps=[["-inf", "False"], ["-inf", "False"]])], DataError, "it must be finite"),
        ([sample(), [1]], FormatError, "line 2: it must be an object, got a list"),
    ],
)
def test_lines_that_are_not_samples_are_errors(
    tmp_path: Path, records: list[Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        read(written(tmp_path / "samples.jsonl", *records))


def test_a_file_that_was_cut_off_is_an_error(lm_eval_samples: Path, tmp_path: Path) -> None:
    path = tmp_path / "samples_cut.jsonl"
    path.write_bytes((lm_eval_samples / "samples_choices.jsonl").read_bytes()[:5000])
    with pytest.raises(FormatError, match=r"line \d: not JSON \(cut off"):
        read(path)
