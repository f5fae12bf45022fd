"""Agreement with MAPIE's controller on independent answers that are right or wrong.

If "positive" means "answer", MAPIE's precision at a threshold is 1 minus our risk among answers. Counts, the
Hoeffding-Bentkus test and the searches are the same. The differences, each shown below:

- In MAPIE, ``ceil(n * (k / n))`` is k + 1 for some counts: an additional error that does not exist. Here counts stay
  whole. MAPIE's p-values are then larger, and it may guarantee less.
- If nothing is answered, MAPIE's p-value is NaN or 0/0. Here it is 1.
- MAPIE has no clusters, and its fixed sequence follows the order of the list. Here it begins at a coverage.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from mapie.risk_control import BinaryClassificationController
from scipy import stats

from abstain import Items, choose_threshold
from abstain.thresholds import RiskTable, fixed_sequence, holm_search

GRID = np.linspace(0.0, 0.99, 100)


def drawn(seed: int, count: int = 800) -> tuple[Any, Any]:
    generator = np.random.default_rng(seed)
    sure = generator.random(count)
    right = (generator.random(count) < 1.0 - 0.4 * (1.0 - sure) ** 2).astype(int)
    return sure, right


def controller(
    sure: Any, right: Any, risk: float, how: str, grid: Any = GRID
) -> BinaryClassificationController:
    uncalibrated = BinaryClassificationController(
        lambda features: np.column_stack([1.0 - features[:, 0], features[:, 0]]),
        risk="precision",
        target_level=1.0 - risk,
        confidence_level=0.95,
        list_predict_params=grid,
        fwer_method=how,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return uncalibrated.calibrate(sure[:, None], right)


def our_policy(sure: Any, right: Any, risk: float, **options: Any) -> Any:
    items = Items.from_arrays(np.ones(len(sure)), right, confidence=sure)
    return choose_threshold(items, risk=risk, method="hoeffding-bentkus", grid=GRID.tolist(), **options)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("risk", [0.05, 0.1, 0.15])
def test_p_values_agree_except_for_errors_added_by_rounding(seed: int, risk: float) -> None:
    sure, right = drawn(seed)
    theirs = np.asarray(controller(sure, right, risk, "bonferroni_holm").p_values).ravel()
    table = RiskTable.of_rows(
        sure, 1.0 - right, cluster=None, asked=np.array([float(len(sure))]), thresholds=GRID[::-1]
    )
    ours = table.hoeffding_bentkus(risk)[::-1]
    errors, answers = table.loss[::-1], table.answered[::-1]
    # MAPIE computes the risk as 1 minus the precision. If rounding makes the product larger than k, it adds an error.
    has_added_error = np.ceil(answers * (1.0 - (answers - errors) / answers)) > errors
    answered = answers > 0
    same_errors = answered & ~has_added_error
    assert same_errors.sum() > 20
    assert ours[same_errors] == pytest.approx(theirs[same_errors], rel=1e-6)
    assert (ours[answered] <= theirs[answered] * (1 + 1e-9)).all()
    exact = stats.binom.cdf(errors, answers, risk)
    assert (ours[answered] <= exact[answered] * (1 + 1e-9)).all()


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(
    ("how", "search"), [("bonferroni_holm", "holm"), ("fixed_sequence", "fixed-sequence")]
)
def test_thresholds_agree(seed: int, how: str, search: str) -> None:
    """Holm's method over the whole grid, and a fixed sequence that begins at the same coverage for both."""
    sure, right = drawn(seed, 3000)
    policy = our_policy(sure, right, 0.1, search=search)
    grid = GRID
    if search == "fixed-sequence":
        start = float(np.sort(sure)[::-1][round(0.2 * len(sure)) - 1])
        grid = GRID[start >= GRID][::-1]
    other = controller(sure, right, 0.1, how, grid)
    theirs = other.best_predict_param
    assert policy.threshold is not None
    assert theirs is not None
    # Our threshold is never higher, because the errors that MAPIE adds can only raise its threshold.
    assert policy.threshold <= float(theirs) + 1e-12
    # Our search finds their threshold from their p-values.
    p_values = np.nan_to_num(np.asarray(other.p_values).ravel(), nan=1.0)
    if search == "holm":
        step = holm_search(p_values[::-1], 0.05)
        thresholds = GRID[::-1]
    else:
        step, thresholds = fixed_sequence(p_values, 0.05), grid
    assert step is not None
    assert thresholds[step] == pytest.approx(float(theirs))
