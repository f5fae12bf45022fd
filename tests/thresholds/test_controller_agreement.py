"""Agreement with MAPIE's controller on independent answers that are right or wrong, and where it differs.

Its precision at a threshold is one less the risk of what is answered here, if "positive" is "answer": the same counts,
the same test of Hoeffding and Bentkus, the same searches. Differences, each shown below:

- ``ceil(n * (k / n))`` comes out as k + 1 for some counts there, one error that nobody made; here counts stay whole.
  Its p-values are then larger, and it may promise less.
- Its p-value where nothing is answered is NaN or 0/0; here it is 1.
- It has no clusters, and takes the order of its list as the fixed sequence; here it begins at a coverage.
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
    made = BinaryClassificationController(
        lambda features: np.column_stack([1.0 - features[:, 0], features[:, 0]]),
        risk="precision",
        target_level=1.0 - risk,
        confidence_level=0.95,
        list_predict_params=grid,
        fwer_method=how,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return made.calibrate(sure[:, None], right)


def ours(sure: Any, right: Any, risk: float, **options: Any) -> Any:
    items = Items.from_arrays(np.ones(len(sure)), right, confidence=sure)
    return choose_threshold(items, risk=risk, method="hoeffding-bentkus", grid=GRID.tolist(), **options)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("risk", [0.05, 0.1, 0.15])
def test_p_values_agree_but_for_errors_that_nobody_made(seed: int, risk: float) -> None:
    sure, right = drawn(seed)
    theirs = np.asarray(controller(sure, right, risk, "bonferroni_holm").p_values).ravel()
    evidence = RiskTable.of_rows(
        sure, 1.0 - right, cluster=None, asked=np.array([float(len(sure))]), thresholds=GRID[::-1]
    )
    found = evidence.hoeffding_bentkus(risk)[::-1]
    errors, answers = evidence.loss[::-1], evidence.answered[::-1]
    # Where the risk is one less a precision, its ceiling adds an error wherever rounding lifts the product above k.
    phantom = np.ceil(answers * (1.0 - (answers - errors) / answers)) > errors
    counted = answers > 0
    alike = counted & ~phantom
    assert alike.sum() > 20
    assert found[alike] == pytest.approx(theirs[alike], rel=1e-6)
    assert (found[counted] <= theirs[counted] * (1 + 1e-9)).all()
    exact = stats.binom.cdf(errors, answers, risk)
    assert (found[counted] <= exact[counted] * (1 + 1e-9)).all()


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(
    ("how", "search"), [("bonferroni_holm", "holm"), ("fixed_sequence", "fixed-sequence")]
)
def test_thresholds_agree(seed: int, how: str, search: str) -> None:
    """Holm over the whole grid; a fixed sequence from the coverage on at which both begin."""
    sure, right = drawn(seed, 3000)
    policy = ours(sure, right, 0.1, search=search)
    grid = GRID
    if search == "fixed-sequence":
        began = float(np.sort(sure)[::-1][round(0.2 * len(sure)) - 1])
        grid = GRID[began >= GRID][::-1]
    other = controller(sure, right, 0.1, how, grid)
    theirs = other.best_predict_param
    assert policy.threshold is not None
    assert theirs is not None
    # Never a higher threshold than theirs: errors that nobody made can only cost them.
    assert policy.threshold <= float(theirs) + 1e-12
    # And their very threshold, when their p-values are searched here.
    p_values = np.nan_to_num(np.asarray(other.p_values).ravel(), nan=1.0)
    if search == "holm":
        place = holm_search(p_values[::-1], 0.05)
        found = GRID[::-1]
    else:
        place, found = fixed_sequence(p_values, 0.05), grid
    assert place is not None
    assert found[place] == pytest.approx(float(theirs))
