"""Matched coverage by hand: both sides judged over the same range, in every resample."""

from __future__ import annotations

import math

import numpy as np
import pytest

from abstain.inference import points
from abstain.metrics import selective
from abstain.metrics._matched import MATCHED_FIGURES, MatchedPlan
from abstain.metrics._ranks import RanksPlan


def ranking(loss: list[float], confidence: list[float], answered: list[int]) -> RanksPlan:
    return RanksPlan.build(
        np.array(loss),
        np.array(confidence),
        np.array(answered, dtype=bool),
        cluster=np.arange(len(loss)),
        figures=(),
    )


def matched(figure: str, left: RanksPlan, right: RanksPlan) -> MatchedPlan:
    return MatchedPlan((left, right), ((0, 1),), (figure,))


# Left answers two of four items (losses 0, 1), right all four (losses 0, 1, 0, 1, two of them tied).
LEFT = ranking([0, 1, 9, 9], [4, 3, 0, 0], [1, 1, 0, 0])
RIGHT = ranking([0, 1, 0, 1], [4, 2, 2, 1], [1, 1, 1, 1])


def test_by_hand() -> None:
    # Both reach 1/2. Left there: risks 0 and 1/2 at 1/4 and 1/2, so AURC = 0 + 1/4 * 1/4, AUGRC = 1/2 * 1/4 * 1/4.
    # Right: 0 at 1/4, then a plateau to 3/4 with risk 1/3; at 1/2 the line is at 1/6 (AURC), the sum at 1/2 of 4.
    coverage, left, right = points(matched("aurc", LEFT, RIGHT))
    assert (coverage, left, right) == pytest.approx((0.5, 1 / 16, 1 / 4 * 1 / 12))
    _, left, right = points(matched("augrc", LEFT, RIGHT))
    assert (left, right) == pytest.approx((1 / 4 * 1 / 8, 1 / 4 * 1 / 16))
    # Of the plateau of two only one fits: in expectation it brings a loss of 1/2, over two items.
    _, left, right = points(matched("risk", LEFT, RIGHT))
    assert (left, right) == pytest.approx((1 / 2, 1 / 4))


def test_areas_are_the_truncated_ones() -> None:
    rng = np.random.default_rng(3)
    loss, confidence, answered = rng.random((2, 50)), rng.integers(0, 6, (2, 50)), rng.random((2, 50)) < 0.7
    plans = [
        RanksPlan.build(loss[i], confidence[i].astype(float), answered[i], cluster=np.arange(50), figures=())
        for i in range(2)
    ]
    at = float(answered.mean(axis=1).min())
    for figure, function in (("aurc", selective.aurc_at_coverage), ("augrc", selective.augrc_at_coverage)):
        coverage, *sides = points(matched(figure, plans[0], plans[1]))
        assert coverage == pytest.approx(at)
        for i in range(2):
            expected = function(loss[i], confidence[i], at, abstained=~answered[i])
            assert sides[i] == pytest.approx(expected)


def test_in_every_resample_both_sides_end_at_the_smaller_coverage() -> None:
    weights = np.array([[1.0, 1, 1, 1], [0, 0, 2, 2], [2, 2, 0, 0], [0, 3, 1, 0]])
    for figure in MATCHED_FIGURES:
        values = matched(figure, LEFT, RIGHT)(weights)
        assert values[:, 0].tolist() == [0.5, 0.0, 1.0, 0.75]
        # Where nothing is answered the areas are over an empty range and the risk is undefined.
        assert np.isnan(values[1, 1:]).all() if figure == "risk" else (values[1, 1:] == 0).all()
        assert values[0].tolist() == points(matched(figure, LEFT, RIGHT)).tolist()


@pytest.mark.parametrize("figure", MATCHED_FIGURES)
def test_a_ranking_equals_itself(figure: str) -> None:
    values = matched(figure, RIGHT, RIGHT)(
        np.random.default_rng(0).multinomial(4, [0.25] * 4, 50).astype(float)
    )
    assert (values[:, 1] == values[:, 2]).all()
    assert not math.isnan(values[0, 1])


def test_several_pairs_and_figures_are_what_each_is_alone() -> None:
    third = ranking([1, 0, 1, 0], [1, 2, 3, 4], [1, 0, 1, 1])
    together = MatchedPlan((LEFT, RIGHT, third), ((0, 1), (2, 1)), ("risk", "augrc"))
    weights = np.array([[1.0, 1, 1, 1], [2, 1, 1, 0]])
    values = together(weights)
    assert len(together.names) == values.shape[1] == 2 * 5
    for place, (left, right) in enumerate(((LEFT, RIGHT), (third, RIGHT))):
        for number, figure in enumerate(("risk", "augrc")):
            alone = matched(figure, left, right)(weights)
            assert (values[:, 5 * place] == alone[:, 0]).all()
            assert (values[:, 5 * place + 1 + 2 * number : 5 * place + 3 + 2 * number] == alone[:, 1:]).all()
