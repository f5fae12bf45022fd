"""Matched coverage by hand: both sides judged over the same range, in every resample."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pytest

from abstain.metrics import selective
from abstain.metrics._columns import Columns
from abstain.metrics.curves import MATCHED_METRICS, matched_measure
from abstain.tally import Batch, Measure

if TYPE_CHECKING:
    from collections.abc import Sequence


def ranking(loss: Sequence[float], confidence: Sequence[float], answered: Sequence[int]) -> Columns:
    """One unit per row."""
    return Columns.of(
        len(loss),
        loss=np.array(loss, dtype=float),
        confidence=np.array(confidence, dtype=float),
        answered=np.array(answered, dtype=bool),
        cluster=np.arange(len(loss)),
        units=len(loss),
    )


def matched(metric: str, left: Columns, right: Columns) -> Measure:
    return matched_measure(left, right, (metric,), "trapezoid")


# Left answers two of four items (losses 0, 1), right all four (losses 0, 1, 0, 1, two of them tied).
LEFT = ranking([0, 1, 9, 9], [4, 3, 0, 0], [1, 1, 0, 0])
RIGHT = ranking([0, 1, 0, 1], [4, 2, 2, 1], [1, 1, 1, 1])


def test_by_hand() -> None:
    # Both reach 1/2. Left there: risks 0 and 1/2 at 1/4 and 1/2, so AURC = 0 + 1/4 * 1/4, AUGRC = 1/2 * 1/4 * 1/4.
    # Right: 0 at 1/4, then a plateau to 3/4 with risk 1/3; at 1/2 the line is at 1/6 (AURC), the sum at 1/2 of 4.
    coverage, left, right = matched("aurc", LEFT, RIGHT).points
    assert (coverage, left, right) == pytest.approx((0.5, 1 / 16, 1 / 4 * 1 / 12))
    _, left, right = matched("augrc", LEFT, RIGHT).points
    assert (left, right) == pytest.approx((1 / 4 * 1 / 8, 1 / 4 * 1 / 16))
    # Of the plateau of two only one fits: in expectation it brings a loss of 1/2, over two items.
    _, left, right = matched("risk", LEFT, RIGHT).points
    assert (left, right) == pytest.approx((1 / 2, 1 / 4))


def test_areas_are_the_truncated_ones() -> None:
    rng = np.random.default_rng(3)
    loss, confidence, answered = rng.random((2, 50)), rng.integers(0, 6, (2, 50)), rng.random((2, 50)) < 0.7
    rankings = [ranking(*(column[i].tolist() for column in (loss, confidence, answered))) for i in range(2)]
    at = float(answered.mean(axis=1).min())
    for metric, function in (("aurc", selective.aurc_at_coverage), ("augrc", selective.augrc_at_coverage)):
        coverage, *sides = matched(metric, *rankings).points
        assert coverage == pytest.approx(at)
        for i in range(2):
            expected = function(loss[i], confidence[i], at, abstained=~answered[i])
            assert sides[i] == pytest.approx(expected)


def test_in_every_resample_both_sides_end_at_the_smaller_coverage() -> None:
    weights = np.array([[1.0, 1, 1, 1], [0, 0, 2, 2], [2, 2, 0, 0], [0, 3, 1, 0]])
    for metric in MATCHED_METRICS:
        values = matched(metric, LEFT, RIGHT)(weights)
        assert values[:, 0].tolist() == [0.5, 0.0, 1.0, 0.75]
        # Where nothing is answered the areas are over an empty range and the risk is undefined.
        assert np.isnan(values[1, 1:]).all() if metric == "risk" else (values[1, 1:] == 0).all()
        assert values[0].tolist() == matched(metric, LEFT, RIGHT).points.tolist()


@pytest.mark.parametrize("metric", MATCHED_METRICS)
def test_a_ranking_equals_itself(metric: str) -> None:
    values = matched(metric, RIGHT, RIGHT)(
        np.random.default_rng(0).multinomial(4, [0.25] * 4, 50).astype(float)
    )
    assert (values[:, 1] == values[:, 2]).all()
    assert not math.isnan(values[0, 1])


def test_several_pairs_and_metrics_are_what_each_is_alone() -> None:
    third = ranking([1, 0, 1, 0], [1, 2, 3, 4], [1, 0, 1, 1])
    weights = np.array([[1.0, 1, 1, 1], [2, 1, 1, 0]])
    pairs = ((LEFT, RIGHT), (third, RIGHT))
    together = Measure.joined([matched_measure(*pair, ("risk", "augrc"), "trapezoid") for pair in pairs])
    # A batch lets each ranking be run along once, in however many pairs it is.
    values = together(Batch(weights))
    assert together.names[:5] == ("coverage", "risk left", "risk right", "augrc left", "augrc right")
    assert len(together.names) == values.shape[1] == 2 * 5
    for place, (left, right) in enumerate(pairs):
        for number, metric in enumerate(("risk", "augrc")):
            alone = matched(metric, left, right)(weights)
            assert (values[:, 5 * place] == alone[:, 0]).all()
            assert (values[:, 5 * place + 1 + 2 * number : 5 * place + 3 + 2 * number] == alone[:, 1:]).all()
