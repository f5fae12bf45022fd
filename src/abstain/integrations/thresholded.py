"""A classifier that answers only where its risk is promised, in the manner of scikit-learn's meta-estimators.

It needs scikit-learn to be imported, which the metrics and scorers of `abstain.integrations.sklearn` do not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold, StratifiedKFold, check_cv, cross_val_predict
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from abstain.guarantees import choose_threshold
from abstain.items import Items

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = ["ThresholdedClassifier"]


class ThresholdedClassifier(MetaEstimatorMixin, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier that abstains where it is not confident enough for a risk that is promised.

    Out-of-fold probabilities are made by cross-validation, over whole groups where `groups` is given; the threshold is
    chosen on them by `abstain.choose_threshold`, and the estimator is then fitted on everything. The promise is that of
    the models of the folds; the final one has seen more, and is usually better, but that is hoped for and not promised:
    ``cv="prefit"`` chooses on data that a fitted estimator has not seen, and then the promise is its own.

    Args:
        estimator: a classifier with ``predict_proba``; logistic regression when left out.
        risk: the largest share of wrong answers that is acceptable.
        sure: how sure the promise shall be.
        promise: "selective" or "joint", see `abstain.choose_threshold`.
        cv: folds or a splitter; "prefit" for an estimator that is fitted already.
        abstain_label: what `predict` says where it abstains. When left out, `predict` says the class everywhere, as
            scikit-learn expects it to, and `answers` says which of them are given.
        finite_sample: take a test that holds for any number of groups.

    Attributes:
        estimator_: the fitted estimator.
        policy_: the policy; its threshold is None where nothing can be promised, and then nothing is answered.
        threshold_: the least probability that is answered; infinite where nothing is.
        classes_: the classes.

    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = make_pipeline(StandardScaler(), LogisticRegression())
    >>> careful = ThresholdedClassifier(model, risk=0.02, abstain_label=-1).fit(X, y)
    >>> bool(careful.answers(X).mean() > 0.8), sorted(set(careful.predict(X).tolist()))
    (True, [-1, 0, 1])
    """

    def __init__(
        self,
        estimator: Any = None,
        risk: float = 0.05,
        *,
        sure: float = 0.95,
        promise: str = "selective",
        cv: Any = 5,
        abstain_label: Any = None,
        finite_sample: bool = False,
    ) -> None:
        self.estimator = estimator
        self.risk = risk
        self.sure = sure
        self.promise = promise
        self.cv = cv
        self.abstain_label = abstain_label
        self.finite_sample = finite_sample

    def fit(self, X: Any, y: ArrayLike, groups: ArrayLike | None = None) -> Self:  # noqa: N803
        """Choose the threshold on out-of-fold probabilities, and fit the estimator on everything.

        Args:
            X: the features.
            y: the classes.
            groups: what belongs together, one per row: whole groups are held out, and tested over.
        """
        base = LogisticRegression() if self.estimator is None else self.estimator
        prefit = isinstance(self.cv, str) and self.cv == "prefit"
        features, truth = validate_data(
            self, X, y, dtype=None, ensure_all_finite=False, accept_sparse=True, ensure_min_samples=2
        )
        check_classification_targets(truth)
        if prefit:
            check_is_fitted(base)
            self.estimator_ = base
            table, classes = base.predict_proba(features), np.asarray(base.classes_)
        else:
            classes = np.unique(truth)
            if len(classes) < 2:
                raise ValueError(f"Classifier can't train when only one class is present, got {len(classes)}")
            splitter = _splitter(self.cv, truth, groups)
            table = cross_val_predict(
                clone(base), features, truth, groups=groups, cv=splitter, method="predict_proba"
            )
            self.estimator_ = clone(base).fit(features, truth)
        self.classes_ = classes
        confidence, place = table.max(axis=1), table.argmax(axis=1)
        codes = np.searchsorted(classes, truth)
        items = Items.from_arrays(
            codes,
            place,
            confidence=confidence,
            cluster=None if groups is None else np.asarray(groups).tolist(),
        )
        self.policy_ = choose_threshold(
            items,
            risk=self.risk,
            sure=self.sure,
            promise=self.promise,
            loss="zero_one",
            finite_sample=self.finite_sample,
        )
        self.threshold_ = np.inf if self.policy_.threshold is None else float(self.policy_.threshold)
        return self

    def predict(self, X: Any) -> NDArray[Any]:  # noqa: N803
        """Return the classes; `abstain_label`, where there is one, in the place of those that are not given."""
        table = self.predict_proba(X)
        found = self.classes_[table.argmax(axis=1)]
        if self.abstain_label is None:
            return found
        given = table.max(axis=1) >= self.threshold_
        mixed = np.asarray([self.abstain_label]).dtype.kind == found.dtype.kind
        out = found.copy() if mixed and found.dtype.kind in "if" else found.astype(object)
        out[~given] = self.abstain_label
        return out

    def answers(self, X: Any) -> NDArray[np.bool_]:  # noqa: N803
        """Return True where the prediction is confident enough to be given."""
        return np.asarray(self.predict_proba(X).max(axis=1) >= self.threshold_)

    def predict_proba(self, X: Any) -> NDArray[np.float64]:  # noqa: N803
        """Return the probabilities of the fitted estimator."""
        check_is_fitted(self)
        features = validate_data(
            self, X, reset=False, dtype=None, ensure_all_finite=False, accept_sparse=True
        )
        return np.asarray(self.estimator_.predict_proba(features), dtype=np.float64)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def _splitter(cv: Any, truth: NDArray[Any], groups: ArrayLike | None) -> Any:
    """Folds of whole groups where there are groups, else of all classes alike, as many as the rarest class allows."""
    if not isinstance(cv, int):
        return check_cv(cv, truth, classifier=True)
    if groups is not None:
        return GroupKFold(min(cv, len(set(np.asarray(groups).tolist()))))
    rarest = int(np.unique(truth, return_counts=True)[1].min())
    return StratifiedKFold(max(min(cv, rarest), 2))
