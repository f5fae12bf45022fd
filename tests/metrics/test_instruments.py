"""Instruments: totals, bounds with declined items, tiers, and total items."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import abstain
from abstain import Items
from abstain.errors import ArgumentError, DataError
from abstain.metrics._columns import Columns
from abstain.metrics.instruments import (
    INSTRUMENTS,
    Instrument,
    find_instrument,
    severity_tier_accuracy,
    total_items,
    totals,
)
from abstain.metrics.registry import METRICS

EXAMPLE = Path(__file__).parents[1] / "data" / "examples" / "run_a.json"
PAIR = Instrument("pair", ("a", "b"), (0, 3), (("low", 0), ("high", 3)))


def answers(*people: tuple[float | None, float | None]) -> Items:
    """Two items per person with labels 1 and 2."""
    predictions = [value for person in people for value in person]
    return Items.from_arrays(
        [1, 2] * len(people),
        predictions,
        cluster=np.repeat(np.arange(len(people)), 2),
        item=["a", "b"] * len(people),
        null_prediction="abstained",
        scale=(0, 3),
    )


def test_phq8_tiers() -> None:
    form = INSTRUMENTS["PHQ-8"]
    names = [form.tier(total) for total in (0, 4, 5, 9, 10, 14, 15, 19, 20, 24)]
    expected = ["none"] * 2 + ["mild"] * 2 + ["moderate"] * 2 + ["moderately severe"] * 2 + ["severe"] * 2
    assert names == expected
    assert form.total_scale == (0.0, 24.0)


def test_totals_and_their_bounds() -> None:
    actual = totals(answers((3, 1), (2, None), (None, None)), PAIR)
    assert actual.truth.tolist() == [3, 3, 3]
    assert actual.low.tolist() == [4, 2, 0]
    assert actual.high.tolist() == [4, 5, 6]
    assert actual.answered.tolist() == [2, 1, 0]
    assert actual.complete.tolist() == [True, False, False]
    assert actual.decided.tolist() == [True, False, False]
    assert actual.tiers() == ["high"] * 3
    assert actual.tiers("low") == ["high", "low", "low"]


def test_a_tier_may_be_known_although_the_total_is_not() -> None:
    items = answers((3, None))
    assert totals(items, PAIR).decided.tolist() == [True]
    assert total_items(items, PAIR).counts.abstained == 1
    decided = total_items(items, PAIR, answered_when="tier")
    assert decided.prediction.tolist() == [4.5]
    assert decided.scale == (0.0, 6.0)


def test_totals_of_a_run_include_every_participant() -> None:
    items = abstain.read(EXAMPLE, mode="few_shot")
    rows = total_items(items)
    assert len(rows) == len(items.cluster_ids)
    assert rows.counts.failed == 3
    assert rows.cluster_noun == "participant"
    actual = totals(items)
    for index, cluster in enumerate(actual.cluster):
        own = items.cluster == cluster
        if not np.isnan(actual.low[index]):
            assert actual.truth[index] == items.truth[own].sum()
            known = np.where(items.answered[own], items.prediction[own], 0.0)
            assert actual.low[index] == known.sum()
            assert actual.high[index] == known.sum() + 3 * items.abstained[own].sum()


def test_constant_metadata_of_a_participant_are_kept() -> None:
    items = replace(
        answers((3, 1), (2, 2)),
        metadata={"sex": np.array(["F", "F", "M", "M"]), "row": np.arange(4)},
    )
    rows = total_items(items, PAIR)
    assert rows.metadata["sex"].tolist() == ["F", "M"]
    assert "row" not in rows.metadata


def test_severity_tier_accuracy_by_hand() -> None:
    # Tiers: none/none, mild/mild, moderate/mild, declined.
    actual = severity_tier_accuracy([0, 9, 10, 24], [4, 5, 9, None], abstained=[False] * 3 + [True])
    assert actual == pytest.approx(2 / 3)
    assert severity_tier_accuracy([2, 3], [2, 4], instrument=PAIR) == 1.0
    assert math.isnan(severity_tier_accuracy([2], [None], abstained=[True]))


def test_tier_accuracy_is_undefined_for_items_that_are_not_totals() -> None:
    items = abstain.read(EXAMPLE, mode="few_shot")
    metric = METRICS["severity_tier_accuracy"]
    on_items = metric.problem(columns(items))
    assert on_items is not None
    assert "not totals of PHQ-8" in on_items.sentence
    on_totals = columns(total_items(items))
    assert metric.problem(on_totals) is None
    assert metric.point(on_totals) == 0.5


def columns(items: Items) -> Columns:
    """The items of N."""
    evaluated = items.take(np.flatnonzero(items.answered | items.abstained))
    return Columns.of(
        len(evaluated),
        answered=evaluated.answered,
        truth=evaluated.truth,
        prediction=evaluated.prediction,
        scale=evaluated.scale,
    )


class TestBadInput:
    def test_an_item_that_the_instrument_does_not_have(self) -> None:
        items = replace(answers((1, 2)), item=np.array(["a", "c"]))
        with pytest.raises(DataError, match="pair has no item 'c'"):
            totals(items, PAIR)

    def test_an_item_that_is_missing(self) -> None:
        items = answers((1, 2)).take(np.array([0]))
        with pytest.raises(DataError, match="cluster 0 has b 0 times; a total needs every item once"):
            totals(items, PAIR)

    def test_an_unknown_instrument(self) -> None:
        with pytest.raises(ArgumentError, match="unknown instrument 'PHQ8' .did you mean 'PHQ-8'"):
            find_instrument("PHQ8")

    def test_a_total_outside_its_scale(self) -> None:
        with pytest.raises(DataError, match="y_true is 30 at row 0; a total of PHQ-8 is from 0 to 24"):
            severity_tier_accuracy([30], [3])

    @pytest.mark.parametrize("tiers", [(), (("high", 3), ("low", 0)), (("low", 1),)])
    def test_tiers_must_ascend_from_the_lowest(self, tiers: tuple[tuple[str, float], ...]) -> None:
        with pytest.raises(ArgumentError, match="tiers must ascend from the lowest total, 0"):
            Instrument("pair", ("a", "b"), (0, 3), tiers)

    def test_item_names_must_be_unique(self) -> None:
        with pytest.raises(ArgumentError, match="item names are required and must be unique"):
            Instrument("pair", ("a", "a"), (0, 3), (("low", 0),))

    def test_a_declaration_with_a_missing_key(self) -> None:
        with pytest.raises(DataError, match="an instrument needs name, items, item_scale"):
            Instrument.from_mapping({"name": "x"})
