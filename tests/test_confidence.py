from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from abstain import ArgumentError, DataError, Items, SignalError, register_confidence
from abstain.confidence import (
    Need,
    confidence_values,
    consistency_signals,
    no_confidence,
    select,
    servable,
    token_signals,
    unregister_confidence,
    variants,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

FULL: dict[str, object] = {
    "llm_evidence_count": 2,
    "retrieval_similarity_mean": 0.5,
    "retrieval_similarity_max": 0.7,
    "verbalized_confidence": 4,
    "token_msp": 0.8,
    "token_pe": 0.25,
    "token_energy": math.log(0.9),
    "consistency_modal_confidence": 0.6,
    "consistency_score_std": 0.5,
    "consistency_agreement": 0.4,
    "answer_token_probability": 0.3,
    "p_true": 0.7,
    "semantic_entropy": 0.25,
    "evidence_unsupported_share": 0.25,
}
# Variants that `all` does not include.
BY_NAME = (
    "consistency_agreement",
    "answer_token_probability",
    "p_true",
    "semantic_entropy",
    "evidence_unsupported_share",
)
BY_HAND = {
    "llm": 2.0,
    "total_evidence": 2.0,
    "retrieval_similarity_mean": 0.5,
    "retrieval_similarity_max": 0.7,
    "hybrid_evidence_similarity": 0.5 * 2 / 3 + 0.5 * 0.5,
    "verbalized": 0.75,
    "hybrid_verbalized": 0.4 * 0.75 + 0.3 * 2 / 3 + 0.3 * 0.5,
    "token_msp": 0.8,
    "token_pe": 0.8,
    "token_energy": 0.9,
    "consistency": 0.6,
    "consistency_inverse_std": 1 / 1.5,
    "hybrid_consistency": 0.4 * 0.6 + 0.3 * 2 / 3 + 0.3 * 0.5,
    "consistency_agreement": 0.4,
    "answer_token_probability": 0.3,
    "p_true": 0.7,
    "semantic_entropy": 0.8,
    "evidence_unsupported_share": 0.75,
    "secondary:token_msp+consistency:average": 0.7,
    "secondary:token_msp+consistency:product": 0.48,
}


def items_with(*signals: dict[str, object]) -> Items:
    return Items.from_records(
        [
            {"truth": 1, "prediction": 1, "cluster": 300 + row, "item": "Sleep", "signals": values}
            for row, values in enumerate(signals)
        ]
    )


@pytest.mark.parametrize("name", BY_HAND)
def test_values_worked_by_hand(name: str) -> None:
    assert confidence_values(items_with(FULL), name)[0] == pytest.approx(BY_HAND[name])


def test_every_variant_has_a_value_worked_by_hand() -> None:
    assert {variant.name for variant in variants()} == {name for name in BY_HAND if ":" not in name}
    in_all = tuple(name for name in BY_HAND if ":" not in name and name not in BY_NAME)
    assert select("all", items_with(FULL)) == in_all


def test_proportions_are_clipped_and_other_values_are_not() -> None:
    items = items_with(FULL | {"retrieval_similarity_mean": -0.2, "llm_evidence_count": 9})
    # Raw similarities and combinations are not clipped, but every part of a hybrid is.
    assert confidence_values(items, "retrieval_similarity_mean")[0] == -0.2
    assert confidence_values(items, "hybrid_evidence_similarity")[0] == 0.5
    assert confidence_values(items, "secondary:llm+token_msp:average")[0] == pytest.approx(4.9)
    assert confidence_values(items, "secondary:llm+token_msp:product")[0] == pytest.approx(7.2)
    outside = items_with(
        FULL | {"token_msp": 1.2, "token_energy": 0.3, "consistency_modal_confidence": 1.5},
        FULL | {"token_msp": -0.1, "token_energy": -800.0, "consistency_modal_confidence": -0.5},
    )
    for name in ("token_msp", "token_energy", "consistency"):
        assert confidence_values(outside, name).tolist() == [1.0, 0.0], name
    proportions = 0.3 * 2 / 3 + 0.3 * 0.5
    assert confidence_values(outside, "hybrid_consistency") == pytest.approx([0.4 + proportions, proportions])
    # A combination uses the clipped values of its variants.
    assert confidence_values(outside, "secondary:token_msp+llm:average").tolist() == [1.5, 1.0]


@pytest.mark.parametrize(
    ("key", "name", "expected"),
    [
        ("retrieval_similarity_mean", "retrieval_similarity_mean", 0.0),
        ("retrieval_similarity_max", "retrieval_similarity_max", 0.0),
        ("verbalized_confidence", "verbalized", 0.5),
        ("llm_evidence_count", "llm", 0.0),
    ],
)
def test_a_null_has_a_default_value(key: str, name: str, expected: float) -> None:
    assert confidence_values(items_with(FULL | {key: None}), name)[0] == expected


def test_a_missing_evidence_count_is_zero_if_other_items_have_one() -> None:
    without = {key: value for key, value in FULL.items() if key != "llm_evidence_count"}
    assert confidence_values(items_with(FULL, without), "llm").tolist() == [2.0, 0.0]


@pytest.mark.parametrize("name", ["token_msp", "token_pe", "token_energy"])
def test_a_null_token_signal_is_an_error(name: str) -> None:
    with pytest.raises(
        SignalError, match=rf"{name} needs the signal {name}, which is null for cluster 301, item Sleep"
    ):
        confidence_values(items_with(FULL, FULL | {name: None}), name)


def test_the_error_for_a_missing_signal_names_the_item_and_the_possible_variants() -> None:
    without = {key: value for key, value in FULL.items() if key != "retrieval_similarity_mean"}
    pattern = (
        r"confidence hybrid_verbalized needs the signal retrieval_similarity_mean, which is missing for "
        r"cluster 301, item Sleep; this source can serve: llm, "
    )
    with pytest.raises(SignalError, match=pattern):
        confidence_values(items_with(FULL, without), "hybrid_verbalized")


def test_a_signal_that_no_item_has_is_an_error() -> None:
    with pytest.raises(SignalError, match="token_msp, which no item has"):
        confidence_values(items_with({"other": 1.0}), "token_msp")
    assert servable(items_with({"other": 1.0})) == ()


def test_a_stated_confidence_outside_its_scale_is_an_error() -> None:
    with pytest.raises(
        SignalError, match="verbalized_confidence from 1 to 5, and it is outside for cluster 300"
    ):
        confidence_values(items_with(FULL | {"verbalized_confidence": 6}), "verbalized")


def test_any_signal_is_a_confidence_by_its_name() -> None:
    items = items_with({"margin": 0.25}, {"margin": 0.5})
    assert confidence_values(items, "margin").tolist() == [0.25, 0.5]
    assert confidence_values(items, "secondary:margin+margin:product").tolist() == [0.0625, 0.25]
    with pytest.raises(SignalError, match=r"the confidence 'margin' is missing \(empty, null or NaN\) for"):
        confidence_values(items_with({"margin": 0.25}, {"margin": None}), "margin")


class TestSelect:
    def test_the_default_depends_on_the_signals(self) -> None:
        assert select("default", items_with(FULL)) == ("llm", "total_evidence")
        own = Items.from_arrays([1], [1], confidence=[0.5])
        assert select("default", own) == ("confidence",)

    def test_lists_and_commas_give_each_name_once(self) -> None:
        assert select(["llm,token_msp", "default"], items_with(FULL)) == (
            "llm",
            "token_msp",
            "total_evidence",
        )

    def test_the_error_for_an_unknown_name_suggests_the_nearest(self) -> None:
        with pytest.raises(
            ArgumentError, match=r"unknown confidence 'token_mps' \(did you mean 'token_msp'\?\)"
        ):
            select("token_mps", items_with(FULL))

    @pytest.mark.parametrize(
        "name",
        ["secondary:a", "secondary:token_msp+:average", "secondary:token_msp+token_pe:sum", "secondary:x:y"],
    )
    def test_malformed_expressions_are_errors(self, name: str) -> None:
        with pytest.raises(ArgumentError, match="must have the form secondary:<a>"):
            select(name, items_with(FULL))

    def test_expressions_combine_only_base_confidences(self) -> None:
        with pytest.raises(ArgumentError, match="base confidences only"):
            select("secondary:calibrated+token_msp:average", items_with(FULL))

    @pytest.mark.parametrize("name", ["calibrated", "verbalized_calibrated", "calibrated:token_msp"])
    def test_calibrated_variants_need_a_calibration_file(self, name: str) -> None:
        with pytest.raises(ArgumentError, match="needs a calibration file"):
            select(name, items_with(FULL))


class TestCustomVariants:
    def test_a_variant_is_registered_and_removed(self) -> None:
        @register_confidence("ratio", needs=["a", Need("b", null=2.0)], description="a by b")
        def ratio(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
            return a / b

        try:
            items = items_with({"a": 1.0, "b": None}, {"a": 1.0, "b": 4})
            assert confidence_values(items, "ratio").tolist() == [0.5, 0.25]
            assert "ratio" in select("all", items)
        finally:
            unregister_confidence("ratio")
        assert "ratio" not in {variant.name for variant in variants()}

    def test_a_value_that_is_not_finite_is_an_error(self) -> None:
        register_confidence("broken", lambda a: a / 0.0, needs=["a"])
        try:
            with (
                np.errstate(divide="ignore"),
                pytest.raises(DataError, match="confidence broken is inf for cluster 300"),
            ):
                confidence_values(items_with({"a": 1.0}), "broken")
        finally:
            unregister_confidence("broken")

    @pytest.mark.parametrize("name", ["llm", "default", "a:b", "", "a b"])
    def test_invalid_and_existing_names_are_errors(self, name: str) -> None:
        with pytest.raises(ArgumentError, match="already|letters, digits"):
            register_confidence(name, lambda a: a, needs=["a"])

    def test_built_in_variants_cannot_be_removed(self) -> None:
        with pytest.raises(ArgumentError, match="'llm' is not a confidence that was added"):
            unregister_confidence("llm")


class TestTokenSignals:
    def test_values_worked_by_hand(self) -> None:
        tokens = [
            {
                "logprob": math.log(0.5),
                "top_logprobs": [{"logprob": math.log(0.5)}, {"logprob": math.log(0.25)}],
            },
            {"logprob": math.log(0.9), "top_logprobs": [{"logprob": math.log(0.9)}]},
        ]
        signals = token_signals(tokens)
        assert signals.token_msp == pytest.approx(0.7)
        first = -(2 / 3 * math.log(2 / 3) + 1 / 3 * math.log(1 / 3))
        assert signals.token_pe == pytest.approx(first / 2)
        assert signals.token_energy == pytest.approx((math.log(0.75) + math.log(0.9)) / 2)

    @pytest.mark.parametrize(
        ("tokens", "message"),
        [
            ([], "tokens is empty"),
            ([{"logprob": -1.0}], "token 0 has no top_logprobs"),
            (
                [{"logprob": 0.5, "top_logprobs": [{"logprob": -1}]}],
                "token 0: logprob must be a number of at most 0",
            ),
            ([{"logprob": -1, "top_logprobs": [{"logprob": "x"}]}], "token 0, top_logprobs 0: logprob"),
        ],
    )
    def test_bad_tokens_are_errors(self, tokens: list[dict[str, object]], message: str) -> None:
        with pytest.raises(DataError, match=message):
            token_signals(tokens)


class TestConsistencySignals:
    def test_values_worked_by_hand(self) -> None:
        signals = consistency_signals([2, 2, 1, None, 2])
        assert signals.consistency_modal_score == 2
        assert signals.consistency_modal_count == 3
        assert signals.consistency_modal_confidence == 0.6
        assert signals.consistency_na_rate == 0.2
        assert signals.consistency_score_std == pytest.approx(np.std([2, 2, 1, 2]))

    def test_in_a_tie_abstention_wins_then_the_smallest_value(self) -> None:
        assert consistency_signals([3, None]).consistency_modal_score is None
        assert consistency_signals([3, 1, 3, 1]).consistency_modal_score == 1
        assert consistency_signals([None, None]).consistency_modal_confidence == 1.0

    def test_fewer_than_two_numbers_have_no_spread(self) -> None:
        assert consistency_signals([2, None]).consistency_score_std == 0.0

    @pytest.mark.parametrize("samples", [[], ["a"], [math.nan], [True]])
    def test_bad_samples_are_errors(self, samples: list[object]) -> None:
        with pytest.raises(DataError, match="samples is empty|sample 0 must be"):
            consistency_signals(samples)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("signals", "expected"),
    [
        ({"llm_evidence_count": 1, "confidence": 0.5}, ("llm", "total_evidence")),
        ({"score": 2, "confidence": 0.5}, ("confidence",)),
        ({"margin": 1, "Score": 2, "msp": 0.5}, ("Score",)),
        ({"margin": 1, "token_msp": 0.5}, ("token_msp",)),
        ({"token_pe": 1, "consistency_modal_confidence": 0.5}, ("consistency",)),
        ({"margin": 1, "age": 2}, ()),
        ({}, ()),
    ],
)
def test_the_default_is_a_usual_name_or_nothing(
    signals: dict[str, object], expected: tuple[str, ...]
) -> None:
    assert select("default", items_with(signals)) == expected


def test_the_default_of_a_run_file_is_that_of_the_format() -> None:
    items = items_with({"confidence": 0.5}).with_provenance(format="run")
    assert select("default", items) == ("llm", "total_evidence")
    assert select("default", items.with_provenance(exported=True)) == ("confidence",)


def test_the_message_for_a_missing_confidence_explains_how_to_record_one() -> None:
    bare = Items.from_arrays([1], [1])
    sentence = "no confidence in this source; name one (--confidence, confidence=) or record one"
    assert no_confidence(bare).startswith(f"{sentence}: add a column with one number per answer")
    # The remedy for a log differs from that for a table.
    message = no_confidence(bare.with_provenance(format="inspect"))
    assert message.startswith(f"{sentence}: request log-probabilities")
    page, _, anchor = message.partition("(")[2].rpartition("(")[2].rstrip(")").partition("#")
    assert "likelihoods" in no_confidence(bare.with_provenance(format="lm-eval"))
    headings = (Path(__file__).parents[1] / page).read_text().lower().splitlines()
    assert f"## {anchor.replace('-', ' ')}" in headings
    with pytest.raises(ArgumentError, match="no confidence was requested"):
        select((), items_with(FULL))


def test_numbers_too_large_for_a_float_are_errors() -> None:
    with pytest.raises(DataError, match="token 0: logprob must be a number of at most 0"):
        token_signals([{"logprob": -(10**400), "top_logprobs": [{"logprob": -1.0}]}])
    with pytest.raises(DataError, match="sample 1 must be a finite number or None"):
        consistency_signals([1.0, 10**400])
