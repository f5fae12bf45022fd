from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import make_scorer
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from abstain import ArgumentError, DataError
from abstain.integrations import sklearn as integration
from abstain.metrics import curves, selective

mpl.use("Agg")
X, y = load_iris(return_X_y=True)
MODEL = make_pipeline(StandardScaler(), LogisticRegression())


def test_values_worked_by_hand() -> None:
    probabilities = [[0.9, 0.1], [0.2, 0.8], [0.6, 0.4], [0.3, 0.7]]
    truth = ["a", "b", "b", "b"]
    # Confidences 0.9, 0.8, 0.7, 0.6; only the last is wrong: risks 0, 0, 0, 1/4.
    assert integration.aurc_loss(truth, probabilities) == pytest.approx(1 / 32)
    assert integration.augrc_loss(truth, probabilities) == pytest.approx(1 / 32)
    assert integration.selective_accuracy_score(truth, probabilities) == 0.75
    assert integration.selective_accuracy_score(truth, probabilities, coverage=0.75) == 1.0
    assert integration.selective_accuracy_score(truth, probabilities, threshold=0.65) == 1.0
    assert np.isnan(integration.selective_accuracy_score(truth, probabilities, threshold=0.95))
    assert integration.coverage_score(truth, probabilities, threshold=0.65) == 0.75
    assert integration.coverage_at_risk_score(truth, probabilities, risk=0.0) == 0.75
    weighted = integration.selective_accuracy_score(truth, probabilities, sample_weight=[1, 1, 2, 0])
    assert weighted == 0.5


def test_scorers_serve_cross_validation_and_search() -> None:
    scoring = {
        "aurc": integration.aurc_scorer,
        "augrc": integration.augrc_scorer(convention="interpolated"),
        "sure": integration.selective_accuracy_scorer(coverage=0.5),
        "coverage": integration.coverage_scorer(threshold=0.9),
        "at_risk": integration.coverage_at_risk_scorer(risk=0.02),
    }
    found = cross_validate(MODEL, X, y, scoring=scoring, cv=3, error_score="raise")
    assert (found["test_aurc"] <= 0).all()
    assert (found["test_sure"] == 1.0).all()
    assert (found["test_coverage"] < 1.0).all()
    search = GridSearchCV(
        LogisticRegression(max_iter=2000),
        {"C": [1e-6, 1.0]},
        scoring=integration.augrc_scorer,
        error_score="raise",
    )
    assert search.fit(X, y).best_params_ == {"C": 1.0}
    assert repr(integration.aurc_scorer) == "aurc_scorer"
    assert repr(scoring["at_risk"]) == "coverage_at_risk_scorer(risk=0.02)"


def test_make_scorer_takes_the_functions() -> None:
    cancer, labels = load_breast_cancer(return_X_y=True)
    ours = cross_validate(GaussianNB(), cancer, labels, scoring=integration.aurc_scorer)["test_score"]
    made = make_scorer(integration.aurc_loss, response_method="predict_proba", greater_is_better=False)
    theirs = cross_validate(GaussianNB(), cancer, labels, scoring=made, error_score="raise")["test_score"]
    # scikit-learn hands over the second column alone; its complement rounds, and so a tie may come apart.
    np.testing.assert_allclose(ours, theirs, atol=1e-3)


def test_a_class_that_a_fold_lacks_is_no_problem_for_a_scorer() -> None:
    model = MODEL.fit(X, y)
    few = y < 2
    assert integration.aurc_scorer(model, X[few], y[few]) == pytest.approx(0.0, abs=0.01)
    with pytest.raises(ArgumentError, match="3 columns and y_true has 2 classes; pass labels"):
        integration.aurc_loss(y[few], model.predict_proba(X[few]))


def test_the_display_is_the_curve() -> None:
    model = MODEL.fit(X[::2], y[::2])
    display = integration.RiskCoverageDisplay.from_estimator(model, X[1::2], y[1::2], name="iris")
    probabilities = model.predict_proba(X[1::2])
    loss = (probabilities.argmax(axis=1) != y[1::2]).astype(float)
    curve = curves.risk_coverage_curve(loss, probabilities.max(axis=1))
    np.testing.assert_array_equal(display.line_.get_xdata(), curve.coverage)
    np.testing.assert_array_equal(display.line_.get_ydata(), curve.selective_risk)
    assert display.aurc == pytest.approx(selective.aurc(loss, probabilities.max(axis=1)))
    assert display.ax_.get_xlabel() == "Coverage"
    assert display.line_.get_label() == f"iris (AURC = {display.aurc:.3f})"
    other = integration.RiskCoverageDisplay.from_predictions(
        y[1::2], probabilities, ax=display.ax_, risk="generalized", color="red", threshold=0.5
    )
    assert other.ax_ is display.ax_
    assert other.line_.get_color() == "red"
    assert len(display.ax_.get_lines()) == 2
    assert display.plot(name="again").figure_ is not other.figure_
    mpl.pyplot.close("all")


def test_bad_calls() -> None:
    with pytest.raises(ArgumentError, match="LinearSVC has no predict_proba"):
        integration.aurc_scorer(LinearSVC(dual=False).fit(X, y), X, y)
    with pytest.raises(DataError, match=r"probabilities in \[0, 1\], and does not at row 1"):
        integration.aurc_loss([0, 1], [0.5, 1.5])
    with pytest.raises(DataError, match="one column per class"):
        integration.aurc_loss([0, 1], np.zeros((2, 2, 2)))
    with pytest.raises(DataError, match="y_true at row 1 is none of the labels"):
        integration.aurc_loss([0, 5], [0.5, 0.5], labels=[0, 1])
    with pytest.raises(ArgumentError, match="unknown risk 'all'"):
        integration.RiskCoverageDisplay.from_predictions([0, 1], [0.1, 0.9], risk="all")
    with pytest.raises(DataError, match="y_proba has 1 rows where 2 were expected"):
        integration.aurc_loss([0, 1], [[0.5, 0.5]])
