"""The classifier that declines: scikit-learn's estimator checks, labels, data frames, groups and the risk guarantee."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score, cross_validate, train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import estimator_checks_generator

from abstain import ArgumentError
from abstain.integrations.sklearn import ThresholdedClassifier, coverage_scorer, selective_accuracy_scorer

# These two checks expect `predict` to return a class for every row.
UNSUPPORTED_CHECKS = ("check_classifiers_classes", "check_classifiers_train")
# scikit-learn's experimental support for array libraries has to be enabled for the whole process.
CHECKS = [
    check
    for _, check in estimator_checks_generator(ThresholdedClassifier())
    if "array_api" not in check.func.__name__ and check.func.__name__ not in UNSUPPORTED_CHECKS
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.func.__name__)
def test_scikit_learn_estimator_check(check: Any) -> None:
    check(ThresholdedClassifier())


def make_data(seed: int, count: int = 3000) -> tuple[Any, Any]:
    return make_classification(
        count, n_features=10, n_informative=5, flip_y=0.02, class_sep=1.5, random_state=seed
    )


def test_answers_stay_within_the_guaranteed_risk() -> None:
    X, y = make_data(0, 6000)  # noqa: N806
    train_x, test_x, train_y, test_y = train_test_split(X, y, test_size=0.5, random_state=0)
    model = ThresholdedClassifier(LogisticRegression(), risk=0.08).fit(train_x, train_y)
    answered = model.answers(test_x)
    wrong = model.predict(test_x)[answered] != test_y[answered]
    assert 0.3 < answered.mean() < 1.0
    assert wrong.mean() <= 0.1
    assert model.policy_.method == "binomial"
    assert model.threshold_ == model.policy_.threshold


def test_groups_are_the_clusters_of_the_guarantee() -> None:
    X, y = make_data(1)  # noqa: N806
    groups = np.arange(len(y)) // 10
    model = ThresholdedClassifier(GaussianNB(), risk=0.2).fit(X, y, groups=groups)
    assert model.policy_.method == "pseudo-cluster"
    assert model.policy_.data.clusters == 300
    finite = ThresholdedClassifier(GaussianNB(), risk=0.3, finite_sample=True).fit(X, y, groups=groups)
    assert finite.policy_.method == "gaffke"


NAMED = np.array(["no", "yes"])


@pytest.mark.parametrize(
    ("classes", "label", "values"),
    [
        (np.array([0, 1]), -1, {0, 1, -1}),
        (np.array([0, 1], np.uint8), -1, {0, 1, -1}),
        (np.array([0.0, 1.0]), -1.0, {0.0, 1.0, -1.0}),
        (np.array([False, True]), -1, {0, 1, -1}),
        (NAMED, "abstain", {"no", "yes", "abstain"}),
        (NAMED.astype(object), "abstain", {"no", "yes", "abstain"}),
    ],
    ids=["integers", "unsigned", "floats", "booleans", "text", "objects"],
)
def test_the_label_of_declined_rows_has_the_type_of_the_classes(
    classes: Any, label: Any, values: set[Any]
) -> None:
    X, y = make_data(2)  # noqa: N806
    truth = classes[y]
    model = ThresholdedClassifier(LogisticRegression(), risk=0.1).fit(X, truth)
    predicted, answered = model.predict(X), model.answers(X)
    assert set(predicted.tolist()) == values
    assert ((predicted != label) == answered).all()
    assert model.abstain_label_ == label
    assert (predicted[answered] == model.estimator_.predict(X)[answered]).all()
    # A declined row counts like a wrong answer.
    assert model.score(X, truth) == pytest.approx((answered & (model.estimator_.predict(X) == truth)).mean())


def test_the_label_of_declined_rows_can_be_set() -> None:
    X, y = make_data(2)  # noqa: N806
    named = ThresholdedClassifier(LogisticRegression(), risk=0.1, abstain_label="ask").fit(X, NAMED[y])
    assert set(named.predict(X)) == {"no", "yes", "ask"}
    mixed = ThresholdedClassifier(LogisticRegression(), risk=0.1, abstain_label="ask").fit(X, y)
    assert set(mixed.predict(X).tolist()) == {0, 1, "ask"}


@pytest.mark.parametrize(
    ("classes", "label"),
    [([-1, 1], None), (["abstain", "act"], None), (["no", "yes"], "yes"), ([False, True], 1)],
)
def test_a_label_that_is_a_class_is_an_error(classes: list[Any], label: Any) -> None:
    X, y = make_data(2, 200)  # noqa: N806
    model = ThresholdedClassifier(LogisticRegression(), abstain_label=label)
    with pytest.raises(ArgumentError, match="is one of the classes; pass a label that is not"):
        model.fit(X, np.array(classes)[y])
    fitted = LogisticRegression().fit(X, np.array(classes)[y])
    with pytest.raises(ArgumentError, match="is one of the classes; pass a label that is not"):
        ThresholdedClassifier(fitted, cv="prefit", abstain_label=label).fit(X, np.array(classes)[y])


def test_an_estimator_without_probabilities_is_an_error() -> None:
    X, y = make_data(2, 200)  # noqa: N806
    with pytest.raises(
        ArgumentError, match="LinearSVC has no predict_proba, .* wrap it in CalibratedClassifierCV"
    ):
        ThresholdedClassifier(LinearSVC()).fit(X, y)


def pipeline_with_named_columns() -> Any:
    """Return a pipeline that selects its columns by name."""
    columns = make_column_transformer((StandardScaler(), ["age"]), (OneHotEncoder(), ["site"]))
    return make_pipeline(columns, LogisticRegression())


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_data_frames_are_passed_to_the_estimator_unchanged(library: str) -> None:
    generator = np.random.default_rng(0)
    age, site = generator.normal(50, 10, 900), np.array(["north", "south"])[generator.integers(0, 2, 900)]
    truth = NAMED[((age - 50) / 4 + (site == "north") + generator.logistic(size=900) / 2 > 0).astype(int)]
    frame: Any = {"pandas": pd.DataFrame, "polars": pl.DataFrame}[library]({"age": age, "site": site})
    model = ThresholdedClassifier(pipeline_with_named_columns(), risk=0.1).fit(frame, truth)
    assert set(model.predict(frame)) == {"no", "yes", "abstain"}
    assert model.feature_names_in_.tolist() == ["age", "site"]
    inside = make_pipeline(ThresholdedClassifier(pipeline_with_named_columns(), risk=0.1)).fit(frame, truth)
    assert (inside.predict(frame) == model.predict(frame)).all()
    scores = cross_validate(
        ThresholdedClassifier(pipeline_with_named_columns(), risk=0.1),
        frame,
        truth,
        cv=3,
        scoring={
            "score": "accuracy",
            "accuracy": selective_accuracy_scorer,
            "coverage": coverage_scorer,
            "auc": "roc_auc",
        },
        error_score="raise",
    )
    # The model declines some rows of every fold. The score is the proportion of all rows that are answered correctly.
    assert (scores["test_coverage"] < 1.0).all()
    assert scores["test_score"] == pytest.approx(scores["test_accuracy"] * scores["test_coverage"])
    plain = cross_validate(pipeline_with_named_columns(), frame, truth, cv=3, scoring="roc_auc")
    assert scores["test_auc"] == pytest.approx(plain["test_score"])


def test_probabilities_and_decision_function_are_those_of_the_estimator() -> None:
    X, y = make_data(2, 600)  # noqa: N806
    model = ThresholdedClassifier(LogisticRegression(), risk=0.1).fit(X, y)
    plain = LogisticRegression().fit(X, y)
    assert (model.predict_proba(X) == plain.predict_proba(X)).all()
    assert (model.decision_function(X) == plain.decision_function(X)).all()
    assert not hasattr(ThresholdedClassifier(GaussianNB()), "decision_function")


def test_a_prefit_estimator_is_not_refitted() -> None:
    X, y = make_data(3)  # noqa: N806
    fitted = LogisticRegression().fit(X[:1500], y[:1500])
    model = ThresholdedClassifier(fitted, risk=0.15, cv="prefit").fit(X[1500:], y[1500:])
    assert model.estimator_ is fitted
    assert model.policy_.data.items == 1500


def test_a_class_unknown_to_a_prefit_estimator_counts_as_wrong() -> None:
    X, y = make_data(3)  # noqa: N806
    fitted = LogisticRegression().fit(X, np.array(["a", "c"])[y])
    model = ThresholdedClassifier(fitted, risk=0.15, cv="prefit").fit(X, ["b"] * len(y))
    assert model.policy_.data.risk == 1.0
    assert not model.answers(X).any()


def test_without_a_guarantee_every_row_is_declined() -> None:
    X, y = make_data(4, 200)  # noqa: N806
    model = ThresholdedClassifier(GaussianNB(), risk=0.001).fit(X, y)
    assert model.policy_.threshold is None
    assert not model.answers(X).any()
    assert (model.predict(X) == -1).all()
    assert model.score(X, y) == 0.0
    assert coverage_scorer(model, X, y) == 0.0
    assert np.isnan(selective_accuracy_scorer(model, X, y))
    assert coverage_scorer(threshold=0.5)(model, X, y) == 1.0


def test_the_classifier_can_be_cloned_and_cross_validated() -> None:
    X, y = make_data(5, 600)  # noqa: N806
    model = ThresholdedClassifier(LogisticRegression(), risk=0.2)
    assert clone(model).get_params()["risk"] == 0.2
    assert cross_val_score(model, X, y, cv=3).mean() > 0.7
    copy = clone(model.fit(X, y))
    assert not hasattr(copy, "policy_")
    assert copy.abstain_label is None
