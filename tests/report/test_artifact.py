from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import jsonschema
import pytest

from abstain import Items, compare, evaluate, read
from abstain.report.artifact import comparison_artifact, encode, evaluation_artifact, metrics_schema
from examples import EXAMPLES, differences, load

NOW = datetime(2026, 1, 3, tzinfo=UTC)


def single(items: Items, **settings: Any) -> Any:
    return json.loads(encode(evaluation_artifact(evaluate(items, **settings), NOW)))


def paired(left: Items, right: Items, **settings: Any) -> Any:
    return json.loads(encode(comparison_artifact(compare(left, right, **settings), NOW)))


def test_one_input_gives_the_published_artifact() -> None:
    items = read(EXAMPLES / "run_a.json", mode="few_shot")
    found = single(items, confidence="all", loss="abs", resamples=300, seed=42)
    assert differences(load("expected_single_all.json"), found) == []


def test_two_inputs_give_the_published_artifact() -> None:
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
def test_artifacts_keep_to_the_schema(resamples: int, validator: jsonschema.Draft202012Validator) -> None:
    left, right = (read(EXAMPLES / "run_a.json", mode=mode) for mode in ("zero_shot", "few_shot"))
    one = single(left, confidence="all", resamples=resamples)
    two = paired(left, right, resamples=resamples)
    for artifact in (one, two):
        validator.validate(artifact)
    assert (one["confidence_variants"]["llm"]["bootstrap"] == {}) == (resamples == 0)
    one["confidence_variants"]["llm"]["cmax"] = "much"
    with pytest.raises(jsonschema.ValidationError, match="not valid under any"):
        validator.validate(one)


def test_undefined_is_null_with_a_reason(validator: jsonschema.Draft202012Validator) -> None:
    silent = Items.from_arrays([1, 1], [1, 1], abstained=[True, True], confidence=[1, 2])
    artifact = single(silent, loss="abs", resamples=10, convention="torch-uncertainty")
    validator.validate(artifact)
    variant = artifact["confidence_variants"]["confidence"]
    assert variant["mae_at_coverage"]["0.50"] is None
    assert variant["bootstrap"]["ci95"]["mae_at_coverage"]["0.50"] is None
    assert variant["bootstrap"]["drop_rate"]["mae_at_coverage"]["0.50"] == 1.0
    assert variant["reasons"]["mae_at_coverage.0.50"] == "coverage 0.5 cannot be reached: Cmax is 0.000"
    assert "nothing was answered" in variant["reasons"]["aurc_full"]
    assert artifact["warnings"][0]["code"] == "nothing_answered"


def test_no_nan_ever_reaches_the_file() -> None:
    alone = Items.from_arrays([1], [0], confidence=[1])
    text = encode(
        evaluation_artifact(evaluate(alone, loss="abs", resamples=5, convention="torch-uncertainty"), NOW)
    )
    assert b"NaN" not in text
    assert json.loads(text)["confidence_variants"]["confidence"]["aurc_full"] is None


def test_where_the_numbers_came_from() -> None:
    artifact = single(read(EXAMPLES / "run_a.json", mode="few_shot"), resamples=0)
    (source,) = artifact["inputs"]
    assert (source["run_id"], source["git_commit"], source["mode"]) == ("seeded-101", "0000065", "few_shot")
    assert len(source["sha256"]) == 64
    assert artifact["created_at"] == "2026-01-03T00:00:00Z"
    assert artifact["convention"] == "trapezoid"
