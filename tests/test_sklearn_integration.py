from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import make_scorer
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.multioutput import MultiOutputClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

import abstain
from abstain import ArgumentError, DataError
from abstain.integrations import sklearn as integration
from abstain.integrations.sklearn import ThresholdedClassifier
from abstain.metrics import curves, selective

mpl.use("Agg")
X, y = load_iris(return_X_y=True)
MODEL = make_pipeline(StandardScaler(), LogisticRegression())


def test_metrics_equal_values_worked_out_by_hand() -> None:
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


def test_scorers_work_in_cross_validation_and_grid_search() -> None:
    scoring = {
        "aurc": integration.aurc_scorer,
        "augrc": integration.augrc_scorer(convention="interpolated"),
        "sure": integration.selective_accuracy_scorer(coverage=0.5),
        "coverage": integration.coverage_scorer(threshold=0.9),
        "at_risk": integration.coverage_at_risk_scorer(risk=0.02),
    }
    scores = cross_validate(MODEL, X, y, scoring=scoring, cv=3, error_score="raise")
    assert (scores["test_aurc"] <= 0).all()
    assert (scores["test_sure"] == 1.0).all()
    assert (scores["test_coverage"] < 1.0).all()
    search = GridSearchCV(
        LogisticRegression(max_iter=2000),
        {"C": [1e-6, 1.0]},
        scoring=integration.augrc_scorer,
        error_score="raise",
    )
    assert search.fit(X, y).best_params_ == {"C": 1.0}
    assert repr(integration.aurc_scorer) == "aurc_scorer"
    assert repr(scoring["at_risk"]) == "coverage_at_risk_scorer(risk=0.02)"


def test_make_scorer_accepts_the_functions() -> None:
    cancer, labels = load_breast_cancer(return_X_y=True)
    ours = cross_validate(GaussianNB(), cancer, labels, scoring=integration.aurc_scorer)["test_score"]
    made = make_scorer(integration.aurc_loss, response_method="predict_proba", greater_is_better=False)
    theirs = cross_validate(GaussianNB(), cancer, labels, scoring=made, error_score="raise")["test_score"]
    # scikit-learn passes only the second column. Its complement is rounded, which can break a tie.
    np.testing.assert_allclose(ours, theirs, atol=1e-3)


def test_a_scorer_accepts_a_fold_without_some_class() -> None:
    model = MODEL.fit(X, y)
    fold = y < 2
    assert integration.aurc_scorer(model, X[fold], y[fold]) == pytest.approx(0.0, abs=0.01)
    with pytest.raises(ArgumentError, match="3 columns, but y_true has 2 classes; pass the class of each"):
        integration.aurc_loss(y[fold], model.predict_proba(X[fold]))


def test_the_display_draws_the_curve() -> None:
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


def band_corners(display: integration.RiskCoverageDisplay) -> np.ndarray:
    """Return the corners of the band as an array of shape (corners, 2)."""
    (path,) = display.band_.get_paths()
    return path.vertices


def test_the_band_is_the_confidence_interval_of_the_risk_at_each_threshold() -> None:
    model = GaussianNB().fit(X[::2], y[::2])
    cluster = np.arange(75) // 5
    display = integration.RiskCoverageDisplay.from_estimator(model, X[1::2], y[1::2], cluster=cluster)
    items = abstain.Items.from_estimator(model, X[1::2], y[1::2], cluster=cluster)
    points = abstain.evaluate(items, loss="zero_one").profile().points["confidence"]
    assert display.band is not None
    np.testing.assert_array_equal(display.band.selective_high, points.selective_high)
    corners = band_corners(display)
    assert corners[:, 1].max() == points.selective_high.max()
    assert (points.selective_low <= points.selective_risk).all()
    assert (points.selective_risk <= points.selective_high).all()
    assert tuple(display.band_.get_facecolor()[0][:3]) == mpl.colors.to_rgb(display.line_.get_color())
    unclustered = integration.RiskCoverageDisplay.from_estimator(model, X[1::2], y[1::2])
    assert band_corners(unclustered).tolist() != corners.tolist()
    wider = integration.RiskCoverageDisplay.from_estimator(model, X[1::2], y[1::2], level=0.99)
    assert band_corners(wider)[:, 1].mean() > band_corners(unclustered)[:, 1].mean()
    without_band = integration.RiskCoverageDisplay.from_estimator(model, X[1::2], y[1::2], level=None)
    assert without_band.band is without_band.band_ is None
    mpl.pyplot.close("all")


def test_two_curves_on_the_same_axes_differ_in_dashes_and_colour() -> None:
    first, second = GaussianNB().fit(X[::2], y[::2]), MODEL.fit(X[::2], y[::2])
    display = integration.RiskCoverageDisplay.from_estimator(first, X[1::2], y[1::2])
    other = integration.RiskCoverageDisplay.from_estimator(second, X[1::2], y[1::2], ax=display.ax_)
    lines = display.ax_.get_lines()
    assert [line.get_linestyle() for line in lines] == ["-", "--"]
    assert len(display.ax_.collections) == 2
    labels = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert [label.partition(" ")[0] for label in labels] == ["GaussianNB", "Pipeline"]
    # Above the lowest coverages, the axis shows both bands completely.
    top = display.ax_.get_ylim()[1]
    for curve in (display, other):
        assert curve.band is not None
        assert curve.band.selective_high[curve.band.coverage >= 0.05].max() <= top
    dotted = integration.RiskCoverageDisplay.from_estimator(
        first, X[1::2], y[1::2], ax=display.ax_, linestyle=":"
    )
    assert dotted.line_.get_linestyle() == ":"
    mpl.pyplot.close("all")


def test_there_is_no_band_if_no_row_is_answered() -> None:
    display = integration.RiskCoverageDisplay.from_predictions([0, 1], [0.4, 0.6], threshold=0.9)
    assert display.band is None
    assert len(display.curve) == 0
    mpl.pyplot.close("all")


class TestItemsFromAnEstimator:
    def test_the_confidence_of_a_classifier_is_its_probability(self) -> None:
        model = MODEL.fit(X[::2], y[::2])
        items = abstain.Items.from_estimator(model, X[1::2], y[1::2], cluster=np.arange(75) // 5)
        table = model.predict_proba(X[1::2])
        np.testing.assert_array_equal(items.prediction, table.argmax(axis=1))
        np.testing.assert_array_equal(items.signals["confidence"].values, table.max(axis=1))
        assert len(items.cluster_ids) == 15
        result = abstain.evaluate(items)
        assert result["confidence"].aurc.value == pytest.approx(
            -integration.aurc_scorer(model, X[1::2], y[1::2])
        )

    def test_labels_are_unchanged(self) -> None:
        names = load_iris().target_names[y]
        items = abstain.Items.from_estimator(GaussianNB().fit(X, names), X, names)
        assert set(items.prediction) == {"setosa", "versicolor", "virginica"}

    def test_a_regressor_has_no_confidence(self) -> None:
        model = LinearRegression().fit(X[:, :3], X[:, 3])
        items = abstain.Items.from_estimator(model, X[:, :3], X[:, 3], signals={"width": X[:, 0]})
        assert list(items.signals) == ["width"]
        np.testing.assert_array_equal(items.prediction, model.predict(X[:, :3]))

    def test_declined_rows_are_abstentions(self) -> None:
        cancer, labels = load_breast_cancer(return_X_y=True)
        model = ThresholdedClassifier(GaussianNB(), risk=0.1).fit(cancer[::2], labels[::2])
        items = abstain.Items.from_estimator(model, cancer[1::2], labels[1::2])
        np.testing.assert_array_equal(items.answered, model.answers(cancer[1::2]))
        assert set(items.prediction[items.answered]) <= {0.0, 1.0}
        assert "abstained" not in items.unnamed

    def test_arguments_override_the_values_of_the_estimator(self) -> None:
        model = GaussianNB().fit(X, y)
        items = abstain.Items.from_estimator(
            model, X, y, confidence=np.arange(150), abstained=np.arange(150) < 3
        )
        assert items.signals["confidence"].values[-1] == 149.0
        assert items.counts.abstained == 3

    def test_unsupported_estimators_are_errors(self) -> None:
        with pytest.raises(
            ArgumentError, match="estimator must be a fitted estimator with predict, got a list"
        ):
            abstain.Items.from_estimator([1, 2], X, y)
        both = MultiOutputClassifier(GaussianNB()).fit(X, np.column_stack([y, y]))
        with pytest.raises(
            DataError, match=r"predict_proba of MultiOutputClassifier must return one column per"
        ):
            abstain.Items.from_estimator(both, X, y)


def test_invalid_arguments_are_errors() -> None:
    with pytest.raises(ArgumentError, match="LinearSVC has no predict_proba"):
        integration.aurc_scorer(LinearSVC(dual=False).fit(X, y), X, y)
    with pytest.raises(DataError, match=r"probabilities in \[0, 1\], but does not at row 1"):
        integration.aurc_loss([0, 1], [0.5, 1.5])
    with pytest.raises(DataError, match="one column per class"):
        integration.aurc_loss([0, 1], np.zeros((2, 2, 2)))
    with pytest.raises(DataError, match="y_true at row 1 is not one of the labels"):
        integration.aurc_loss([0, 5], [0.5, 0.5], labels=[0, 1])
    with pytest.raises(ArgumentError, match="unknown risk 'all'"):
        integration.RiskCoverageDisplay.from_predictions([0, 1], [0.1, 0.9], risk="all")
    with pytest.raises(DataError, match="y_proba has 1 rows, but 2 were expected"):
        integration.aurc_loss([0, 1], [[0.5, 0.5]])
