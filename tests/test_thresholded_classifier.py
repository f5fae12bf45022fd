"""The meta-estimator: scikit-learn's own checks, groups, and a promise that new data keep."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score, train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.utils.estimator_checks import estimator_checks_generator

from abstain.integrations.thresholded import ThresholdedClassifier

# Arrays of other libraries are an experiment of scikit-learn's that has to be switched on for the whole process.
CHECKS = [
    check
    for _, check in estimator_checks_generator(ThresholdedClassifier())
    if "array_api" not in check.func.__name__
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.func.__name__)
def test_scikit_learns_own_checks(check: Any) -> None:
    check(ThresholdedClassifier())


def drawn(seed: int, count: int = 3000) -> tuple[Any, Any]:
    return make_classification(
        count, n_features=10, n_informative=5, flip_y=0.02, class_sep=1.5, random_state=seed
    )


def test_what_is_answered_keeps_to_the_risk() -> None:
    X, y = drawn(0, 6000)  # noqa: N806
    train_x, test_x, train_y, test_y = train_test_split(X, y, test_size=0.5, random_state=0)
    model = ThresholdedClassifier(LogisticRegression(), risk=0.08).fit(train_x, train_y)
    answered = model.answers(test_x)
    wrong = model.predict(test_x)[answered] != test_y[answered]
    assert 0.3 < answered.mean() < 1.0
    assert wrong.mean() <= 0.1
    assert model.policy_.method == "binomial"
    assert model.threshold_ == model.policy_.threshold


def test_groups_are_held_out_whole_and_tested_over() -> None:
    X, y = drawn(1)  # noqa: N806
    groups = np.arange(len(y)) // 10
    model = ThresholdedClassifier(GaussianNB(), risk=0.2).fit(X, y, groups=groups)
    assert model.policy_.method == "cluster-t"
    assert model.policy_.data.clusters == 300
    betting = ThresholdedClassifier(GaussianNB(), risk=0.3, finite_sample=True).fit(X, y, groups=groups)
    assert betting.policy_.method == "betting"


def test_a_label_for_abstentions() -> None:
    X, y = drawn(2)  # noqa: N806
    names = np.array(["no", "yes"])[y]
    model = ThresholdedClassifier(LogisticRegression(), risk=0.1, abstain_label="ask").fit(X, names)
    assert set(model.predict(X)) == {"no", "yes", "ask"}
    assert ((model.predict(X) != "ask") == model.answers(X)).all()


def test_a_fitted_estimator_is_left_as_it_is() -> None:
    X, y = drawn(3)  # noqa: N806
    fitted = LogisticRegression().fit(X[:1500], y[:1500])
    model = ThresholdedClassifier(fitted, risk=0.15, cv="prefit").fit(X[1500:], y[1500:])
    assert model.estimator_ is fitted
    assert model.policy_.data.items == 1500


def test_nothing_promised_is_nothing_answered() -> None:
    X, y = drawn(4, 200)  # noqa: N806
    model = ThresholdedClassifier(GaussianNB(), risk=0.001, abstain_label=-1).fit(X, y)
    assert model.policy_.threshold is None
    assert not model.answers(X).any()
    assert (model.predict(X) == -1).all()


def test_it_is_an_estimator_like_others() -> None:
    X, y = drawn(5, 600)  # noqa: N806
    model = ThresholdedClassifier(LogisticRegression(), risk=0.2)
    assert clone(model).get_params()["risk"] == 0.2
    assert cross_val_score(model, X, y, cv=3).mean() > 0.7
