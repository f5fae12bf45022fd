from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import jsonschema
import pytest

from abstain import ArgumentError, Items, read
from abstain.evaluation import compare, evaluate
from abstain.report.results_json import encode, metrics_schema, results_json
from examples import EXAMPLES, differences, load
from systems import careless_and_careful

NOW = datetime(2026, 1, 3, tzinfo=UTC)


def single(items: Items, **settings: Any) -> Any:
    return json.loads(encode(results_json(evaluate(items, **settings), NOW)))


def paired(left: Items, right: Items, **settings: Any) -> Any:
    return json.loads(encode(results_json(compare(left, right, **settings), NOW)))


def test_one_input_gives_the_published_results_json() -> None:
    items = read(EXAMPLES / "run_a.json", mode="few_shot")
    found = single(items, confidence="all", loss="abs", resamples=300, seed=42)
    assert differences(load("expected_single_all.json"), found) == []


def test_two_inputs_give_the_published_results_json() -> None:
    left, right = (read(EXAMPLES / "run_a.json", mode=mode) for mode in ("zero_shot", "few_shot"))
    found = paired(left, right, confidence="default", loss="abs_norm", resamples=300, seed=42)
    assert differences(load("expected_paired_default.json"), found) == []


def test_the_comparison_of_documents_can_fail() -> None:
    expected = load("expected_single_all.json")
    changed = json.loads(json.dumps(expected))
    changed["confidence_variants"]["llm"]["aurc_full"] += 1e-8
    del changed["population"]["items_total"]
    assert len(differences(expected, changed)) == 2


@pytest.fixture(scope="module")
def validator() -> jsonschema.Draft202012Validator:
    schema = metrics_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


@pytest.mark.parametrize("resamples", [0, 1, 40])
def test_results_follow_the_schema(resamples: int, validator: jsonschema.Draft202012Validator) -> None:
    left, right = (read(EXAMPLES / "run_a.json", mode=mode) for mode in ("zero_shot", "few_shot"))
    one = single(left, confidence="all", resamples=resamples)
    two = paired(left, right, resamples=resamples)
    for document in (one, two):
        validator.validate(document)
    assert (one["confidence_variants"]["llm"]["bootstrap"] == {}) == (resamples == 0)
    one["confidence_variants"]["llm"]["cmax"] = "much"
    with pytest.raises(jsonschema.ValidationError, match="not valid under any"):
        validator.validate(one)


def test_undefined_is_null_with_a_reason(validator: jsonschema.Draft202012Validator) -> None:
    silent = Items.from_arrays([1, 1], [1, 1], abstained=[True, True], confidence=[1, 2])
    document = single(silent, loss="abs", resamples=10, convention="torch-uncertainty")
    validator.validate(document)
    variant = document["confidence_variants"]["confidence"]
    assert variant["mae_at_coverage"]["0.50"] is None
    assert variant["bootstrap"]["ci95"]["mae_at_coverage"]["0.50"] is None
    assert variant["bootstrap"]["drop_rate"]["mae_at_coverage"]["0.50"] == 1.0
    assert variant["reasons"]["mae_at_coverage.0.50"] == "coverage 0.5 cannot be reached: Cmax is 0.000"
    assert "no item was answered" in variant["reasons"]["aurc_full"]
    assert document["warnings"][0]["code"] == "nothing_answered"


def test_a_run_without_any_answer_gives_results_with_a_reason(
    validator: jsonschema.Draft202012Validator,
) -> None:
    failed = Items.from_arrays([1, 0], [None, None], failed=[True, True], confidence=[0.5, 0.6])
    document = single(failed, resamples=10)
    validator.validate(document)
    assert document["population"]["items_failed"] == 2
    assert document["confidence_variants"]["confidence"]["aurc_full"] is None
    assert document["warnings"][0]["message"].startswith("there is no item to evaluate: of 2 items, 2 failed")


def test_no_nan_ever_reaches_the_file() -> None:
    alone = Items.from_arrays([1], [0], confidence=[1])
    text = encode(results_json(evaluate(alone, loss="abs", resamples=5, convention="torch-uncertainty"), NOW))
    assert b"NaN" not in text
    assert json.loads(text)["confidence_variants"]["confidence"]["aurc_full"] is None


def test_the_source_of_the_numbers() -> None:
    document = single(read(EXAMPLES / "run_a.json", mode="few_shot"), resamples=0)
    (source,) = document["inputs"]
    assert (source["run_id"], source["git_commit"], source["mode"]) == ("seeded-101", "0000065", "few_shot")
    assert len(source["sha256"]) == 64
    assert document["created_at"] == "2026-01-03T00:00:00Z"
    assert document["convention"] == "trapezoid"
    assert document["loss"]["rule"] == "loss abs_norm: the source declares a scale of 0 to 3"


@pytest.mark.parametrize("mirrored", [False, True])
@pytest.mark.parametrize("resamples", [0, 50])
def test_a_delta_carries_its_verdict_and_its_systems(
    resamples: int, mirrored: bool, validator: jsonschema.Draft202012Validator
) -> None:
    careless, careful = careless_and_careful()
    sides = {"B": careful, "A": careless} if mirrored else {"A": careless, "B": careful}
    result = evaluate(sides, metrics=["accuracy"], confidence="confidence", resamples=resamples)
    document = json.loads(encode(results_json(result, NOW)))
    validator.validate(document)
    delta = document["comparison"]["deltas"]["confidence"]["augrc_full"]
    # Lower is better, and B is: on the right the difference is negative, on the left positive.
    assert delta["verdict"] == ("left" if mirrored else "right")
    assert (delta["left"], delta["right"]) == (("B", "A") if mirrored else ("A", "B"))
    assert (delta["delta"] > 0) == mirrored
    assert delta["p"] == delta["p_holm"] < 0.001
    low, high = delta["interval"]
    assert low < delta["delta"] < high
    # B has no wrong answer.
    assert delta["method"] == "jackknife over 40 clusters and unseen wrong rows, t distribution"
    if resamples:
        assert delta["ci95"] != delta["interval"]
    else:
        assert delta["ci95"] == [delta["delta"], delta["delta"]]
    accuracy = document["metrics"]["deltas"]["accuracy"]
    assert (accuracy["value"], accuracy["verdict"]) == ((-0.5, "left") if mirrored else (0.5, "right"))


def test_requested_metrics_need_no_confidences(
    validator: jsonschema.Draft202012Validator,
) -> None:
    careless, careful = careless_and_careful()
    alone = single(careless, metrics=["accuracy"], resamples=5)
    both = paired(careless, careful, metrics=["accuracy"], resamples=5)
    for document in (alone, both):
        validator.validate(document)
        assert document["confidence_variants"] == {}
    assert alone["loss"] is None
    assert alone["metrics"]["overall"]["accuracy"]["value"] == 0.5
    assert both["comparison"]["deltas"] == {}
    assert both["metrics"]["deltas"]["accuracy"]["verdict"] == "right"


def test_three_systems_have_no_results_json() -> None:
    careless, careful = careless_and_careful()
    three = compare({"A": careless, "B": careful, "C": careful}, metrics="accuracy", resamples=0)
    with pytest.raises(ArgumentError, match=r"one system or two, and there are 3; .*--format json"):
        results_json(three, NOW)
