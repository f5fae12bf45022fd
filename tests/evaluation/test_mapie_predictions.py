"""Return values of MAPIE's estimators can be evaluated directly: intervals and sets, for one or several levels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from mapie.classification import SplitConformalClassifier
from mapie.metrics.classification import classification_coverage_score
from mapie.metrics.regression import regression_coverage_score, regression_mean_width_score
from mapie.regression import SplitConformalRegressor
from sklearn.datasets import load_diabetes, load_iris
from sklearn.linear_model import LinearRegression, LogisticRegression

from abstain import ArgumentError, DataError, evaluate_intervals, evaluate_sets

DIABETES = load_diabetes(return_X_y=True)
IRIS = load_iris()
FLOWERS = IRIS.target_names[IRIS.target]
LEVELS = [0.5, 0.8, 0.95]


def intervals(levels: Any) -> tuple[Any, np.ndarray]:
    """Return the output of `predict_interval`, and the true values."""
    features, truth = DIABETES
    model = SplitConformalRegressor(LinearRegression(), confidence_level=levels, prefit=False)
    model.fit(features[:150], truth[:150]).conformalize(features[150:300], truth[150:300])
    return model.predict_interval(features[300:]), truth[300:]


def sets(levels: Any) -> tuple[Any, np.ndarray, np.ndarray]:
    """Return the output of `predict_set`, the true classes, and the classes of its columns."""
    order = np.random.default_rng(0).permutation(150)
    first, second, third = order[:50], order[50:100], order[100:]
    model = LogisticRegression(max_iter=500).fit(IRIS.data[first], FLOWERS[first])
    conformal = SplitConformalClassifier(model, confidence_level=levels, prefit=True)
    conformal.conformalize(IRIS.data[second], FLOWERS[second])
    return conformal.predict_set(IRIS.data[third]), FLOWERS[third], model.classes_


@pytest.mark.parametrize("levels", [0.8, LEVELS])
def test_intervals_are_evaluated_with_and_without_the_point_predictions(levels: Any) -> None:
    pair, truth = intervals(levels)
    _, bounds = pair
    assert bounds.shape == (142, 2, np.size(levels))
    of_pair, of_bounds = (evaluate_intervals(truth, each, nominal=levels) for each in (pair, bounds))
    assert repr(of_pair) == repr(of_bounds)
    coverage = [nominal["coverage"].value for nominal in of_pair.by_nominal]
    assert coverage == pytest.approx(regression_coverage_score(truth, bounds))
    width = [nominal["mean_width"].value for nominal in of_pair.by_nominal]
    assert width == pytest.approx(regression_mean_width_score(bounds))


@pytest.mark.parametrize("levels", [0.8, LEVELS])
def test_sets_are_evaluated_with_the_classes_of_the_model(levels: Any) -> None:
    pair, truth, classes = sets(levels)
    result = evaluate_sets(truth, pair, nominal=levels, classes=classes)
    indices = np.searchsorted(classes, truth)
    by_index = evaluate_sets(indices, pair[1], nominal=levels, labels=classes.tolist())
    assert repr(result) == repr(by_index)
    assert [nominal["coverage"].value for nominal in result.by_nominal] == pytest.approx(
        classification_coverage_score(indices, pair[1])
    )
    named = {part.label for part in result.by_nominal[0].groups["true class"]}
    assert named == {"setosa", "versicolor", "virginica"}


def test_a_pair_of_rows_is_not_taken_for_the_output_of_mapie() -> None:
    assert evaluate_intervals([0.5, 3.0], ([0.0, 1.0], [2.0, 4.0]), nominal=0.5).rows == 2


def test_classes_are_passed_once_and_contain_every_true_class() -> None:
    member = [[True, False], [False, True]]
    with pytest.raises(DataError, match=r"y_true is not one of the 2 classes at row 1 \(1 such rows\)"):
        evaluate_sets(["a", "c"], member, nominal=0.5, classes=["a", "b"])
    with pytest.raises(ArgumentError, match="classes and labels both name the classes"):
        evaluate_sets(["a", "b"], member, nominal=0.5, classes=["a", "b"], labels=["A", "B"])
    with pytest.raises(
        ArgumentError, match="labels, or classes, must name each of the 2 classes once, got 3"
    ):
        evaluate_sets(["a", "b"], member, nominal=0.5, classes=["a", "b", "c"])
