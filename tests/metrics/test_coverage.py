"""Statistics of coverage by hand, with rows of weight 0, units without rows, and no weight at all."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from abstain.metrics._columns import Rows, weights_and_units
from abstain.metrics._gauss import hsic_statistic
from abstain.metrics.coverage import (
    Strata,
    criterion_statistic,
    groups_statistic,
    means_statistic,
    quantiles_statistic,
    size_borders,
    size_stratum,
    slab_statistic,
)
from abstain.metrics.predictions import IntervalRows

if TYPE_CHECKING:
    from collections.abc import Callable

    from abstain.resampling import Statistic

INF = math.inf
# Units 0, 0, 1, 3; unit 2 has no row. Covered: yes, yes, no, yes; widths 2, 1, 4, inf.
BOUNDS = np.array([[0, 2], [2, 3], [4, 8], [0, INF]])
ROWS = IntervalRows.with_truth([1, 2, 9, 4], BOUNDS).in_units(np.array([0, 0, 1, 3]), 4)
COVERED, WIDTH = ROWS.covered[0], ROWS.width[0]
ONES = [1.0, 1.0, 1.0, 1.0]


def at(measure: Statistic, *weights: list[float]) -> list[list[float]]:
    values: list[list[float]] = measure(np.array(weights)).tolist()
    return values


def test_rows_of_weight_zero_have_no_effect_on_means() -> None:
    measure = means_statistic(("coverage", "width"), (COVERED, WIDTH), ROWS)
    actual = at(measure, ONES, [1, 1, 1, 0], [2, 1, 0, 0], [0, 1, 0, 0])
    assert actual == [[0.75, INF], [2 / 3, 7 / 3], [0.8, 2.0], [0.0, 4.0]]
    assert np.isnan(at(measure, [0, 0, 0, 0], [0, 0, 5, 0])).all()


def test_the_criterion_uses_the_range_of_the_drawn_units() -> None:
    measure = criterion_statistic("criterion", ROWS.truth, COVERED, WIDTH, ROWS, eta=2.0, level=0.5)
    (whole,), (some,), (first,), (single,) = at(measure, ONES, [1, 1, 0, 0], [3, 0, 0, 0], [0, 1, 0, 0])
    assert whole == -INF
    assert some == pytest.approx((1 - (7 / 3) / 8) * math.exp(-2 * (2 / 3 - 0.5) ** 2))
    assert first == pytest.approx((1 - 1.5 / 1) * math.exp(-2 * 0.25))
    assert math.isnan(single)  # the range of a single truth is 0


def test_strata_depend_on_the_weights() -> None:
    strata = Strata.of_rows(WIDTH, COVERED, ROWS, bins=2)
    assert [part.tolist() for part in strata.ends()] == [[1.0, 4.0], [2.0, INF], [2.0, 2.0]]
    measure = strata.statistic("worst")
    assert measure.names == ("worst[0]", "worst[1]", "worst")
    # Widths by weight vector: (1, 2 | 4, inf), (1, 1, 2 | 2, 4) and (1 | 2).
    assert at(measure, ONES, [2, 1, 0, 0], [1, 0, 0, 0]) == [
        [1.0, 0.5, 0.5],
        [1.0, 0.5, 0.5],
        [1.0, 1.0, 1.0],
    ]
    (single,) = at(measure, [0, 1, 0, 0])
    assert single[0] == single[2] == 0.0
    assert math.isnan(single[1])  # one row fills one chunk
    assert np.isnan(at(measure, [0, 0, 1, 0])).all()


def test_quantiles_and_groups_without_weight_are_undefined() -> None:
    quantiles = quantiles_statistic(WIDTH, ROWS, probabilities=[0.0, 0.5, 1.0], name="width")
    assert quantiles.names == ("width[0]", "width[0.5]", "width[1]")
    assert at(quantiles, [1, 1, 0, 0]) == [[1.0, 2.0, 4.0]]
    assert at(quantiles, ONES) == [[1.0, 3.0, INF]]
    assert np.isnan(at(quantiles, [0, 0, 1, 0])).all()
    groups = groups_statistic(COVERED, np.array([0, 1, 1, 1]), 3, ROWS, name="worst", level=0.9)
    (actual,) = at(groups, ONES)
    assert actual[:2] == [1.0, 2 / 3]
    assert math.isnan(actual[2])  # the third group has no row and does not count in the other two values
    assert actual[3] == 2 / 3
    assert actual[4] == pytest.approx((0.1 + 0.9 - 2 / 3) / 2)
    assert np.isnan(at(groups, [0, 0, 1, 0])).all()


def test_the_slab_statistic_counts_the_rows_inside() -> None:
    measure = slab_statistic(COVERED, np.array([True, False, True, False]), ROWS)
    assert at(measure, ONES, [3, 1, 0, 0]) == [[0.5], [0.75]]
    assert np.isnan(at(measure, [0, 0, 0, 1])).all()


def test_a_unit_without_rows_changes_no_statistic() -> None:
    compact = ROWS.in_units(np.array([0, 0, 1, 2]))
    builders: list[Callable[[Any], Statistic]] = [
        lambda rows: means_statistic(("a",), (WIDTH,), rows),
        lambda rows: Strata.of_rows(WIDTH, COVERED, rows, bins=3).statistic("a"),
        lambda rows: quantiles_statistic(WIDTH, rows, probabilities=[0.3], name="a"),
        lambda rows: groups_statistic(COVERED, np.array([0, 1, 1, 0]), 2, rows, name="a", level=0.5),
        lambda rows: hsic_statistic(WIDTH, COVERED, rows),
        lambda rows: criterion_statistic("a", rows.truth, COVERED, WIDTH, rows, eta=1.0, level=0.5),
    ]
    weights = np.array([[1.0, 2.0, 5.0, 1.0], [0.0, 1.0, 1.0, 1.0]])
    for build in builders:
        assert build(ROWS).units == 4
        assert np.allclose(
            build(ROWS)(weights), build(compact)(weights[:, [0, 1, 3]]), equal_nan=True, rtol=1e-12
        )


def test_set_sizes_are_assigned_to_strata() -> None:
    assert size_borders(3, None).tolist() == [0, 1, 2, 3]
    assert size_borders(3, 2).tolist() == [0, 2]
    assert size_stratum(np.array([0.0, 1.0, 2.0, 3.0]), size_borders(3, 2)).tolist() == [0, 0, 1, 1]


def test_rows_are_whole_if_their_weights_have_a_common_divisor() -> None:
    assert Rows(**weights_and_units(2)).whole
    assert Rows(**weights_and_units(2, [2.0, 0.0])).whole
    assert Rows(**weights_and_units(2, [0.5, 0.75])).items_in_rows.tolist() == [2.0, 3.0]
    assert not Rows(**weights_and_units(2, [1.0, np.sqrt(2.0)])).whole
    assert Rows(**weights_and_units(2)).weight.tolist() == [1.0, 1.0]
