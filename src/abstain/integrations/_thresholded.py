"""A scikit-learn classifier that answers only the rows for which it can guarantee a risk."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold, StratifiedKFold, check_cv, cross_val_predict
from sklearn.utils import assert_all_finite, check_consistent_length, column_or_1d, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from abstain.errors import ArgumentError
from abstain.items import Items
from abstain.thresholds import choose_threshold

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

NUMERIC_LABEL, TEXT_LABEL = -1, "abstain"


def _has_decision_function(classifier: ThresholdedClassifier) -> bool:
    return hasattr(getattr(classifier, "estimator_", classifier._base), "decision_function")


class ThresholdedClassifier(MetaEstimatorMixin, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier that declines rows below a confidence threshold, which is chosen to guarantee the risk of answers.

    `fit` computes out-of-fold probabilities by cross-validation, over whole groups if `groups` is passed. It chooses
    the threshold on them with `abstain.choose_threshold` and then fits the estimator on all rows. The guarantee applies
    to the models of the folds. The final model was fitted on more rows and is usually better, but that is not
    guaranteed. With ``cv="prefit"``, pass rows that the fitted estimator has not seen. The threshold is chosen on them,
    and the guarantee applies to that estimator.

    `predict` returns `abstain_label` for declined rows. If the risk cannot be guaranteed, it declines every row, and
    ``policy_.reason`` gives the reason. `score` is therefore the proportion of all rows that are answered correctly: a
    declined row counts like a wrong answer. For the accuracy among answers and for the proportion of answered rows,
    pass `selective_accuracy_scorer` and `coverage_scorer` to ``cross_validate``. `predict_proba` and
    `decision_function` are those of the fitted estimator, for all rows.

    Features are passed to the estimator as they are: arrays, sparse matrices, pandas and polars data frames.

    Args:
        estimator: a classifier with ``predict_proba``. Default: logistic regression.
        risk: the largest acceptable proportion of wrong answers.
        sure: the confidence level of the guarantee.
        risk_type: "selective" or "joint", see `abstain.choose_threshold`.
        cv: the number of folds or a splitter; "prefit" for an estimator that is already fitted.
        abstain_label: the label that `predict` returns for a declined row; it must not be one of the classes. Default:
            -1 for numbers and booleans (which are then returned as 1 and 0), "abstain" for text.
        finite_sample: use a test that does not need many groups.

    Attributes:
        estimator_: the fitted estimator.
        policy_: the policy. Without a guarantee, its threshold has the value None.
        threshold_: the smallest probability that is answered; infinite without a guarantee.
        abstain_label_: the label for declined rows.
        classes_: the classes, without the label for declined rows.

    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = make_pipeline(StandardScaler(), LogisticRegression())
    >>> careful = ThresholdedClassifier(model, risk=0.02).fit(X, y)
    >>> bool(careful.answers(X).mean() > 0.8), sorted(set(careful.predict(X).tolist()))
    (True, [-1, 0, 1])
    """

    def __init__(
        self,
        estimator: Any = None,
        risk: float = 0.05,
        *,
        sure: float = 0.95,
        risk_type: str = "selective",
        cv: Any = 5,
        abstain_label: Any = None,
        finite_sample: bool = False,
    ) -> None:
        self.estimator = estimator
        self.risk = risk
        self.sure = sure
        self.risk_type = risk_type
        self.cv = cv
        self.abstain_label = abstain_label
        self.finite_sample = finite_sample

    def fit(self, X: Any, y: ArrayLike, groups: ArrayLike | None = None) -> Self:  # noqa: N803
        """Choose the threshold on out-of-fold probabilities, and fit the estimator on all rows.

        Args:
            X: the features.
            y: the classes.
            groups: the group of each row, such as a patient. Folds hold out whole groups, and the guarantee accounts
                for them.
        """
        base = self._base
        if not hasattr(base, "predict_proba"):
            raise ArgumentError(
                f"estimator {type(base).__name__} has no predict_proba, which is needed to choose the threshold; wrap "
                "it in CalibratedClassifierCV"
            )
        truth = column_or_1d(y, warn=True)
        assert_all_finite(truth, input_name="y")
        check_classification_targets(truth)
        check_consistent_length(X, truth)
        if isinstance(self.cv, str) and self.cv == "prefit":
            check_is_fitted(base)
            classes = np.asarray(base.classes_)
            label = _abstain_label(self.abstain_label, classes)
            fitted, probabilities = base, base.predict_proba(X)
        else:
            classes = np.unique(truth)
            if len(classes) < 2:
                raise ValueError(f"Classifier can't train when only one class is present, got {len(classes)}")
            label = _abstain_label(self.abstain_label, classes)
            probabilities = cross_val_predict(
                clone(base),
                X,
                truth,
                groups=groups,
                cv=_splitter(self.cv, truth, groups),
                method="predict_proba",
            )
            fitted = clone(base).fit(X, truth)
        right = classes[probabilities.argmax(axis=1)] == truth
        items = Items.from_arrays(
            np.ones(len(truth)),
            right.astype(np.float64),
            confidence=probabilities.max(axis=1),
            cluster=None if groups is None else np.asarray(groups).tolist(),
        )
        self.policy_ = choose_threshold(
            items,
            risk=self.risk,
            sure=self.sure,
            risk_type=self.risk_type,
            loss="zero_one",
            finite_sample=self.finite_sample,
        )
        self.threshold_ = np.inf if self.policy_.threshold is None else float(self.policy_.threshold)
        self.estimator_, self.classes_, self.abstain_label_ = fitted, classes, label
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(fitted, name):
                setattr(self, name, getattr(fitted, name))
        return self

    def predict(self, X: Any) -> NDArray[Any]:  # noqa: N803
        """Return the class of each row, and `abstain_label_` for rows that are declined."""
        probabilities = self.predict_proba(X)
        predicted, label = self.classes_[probabilities.argmax(axis=1)], np.asarray(self.abstain_label_)
        numeric = {kind in "biuf" for kind in (predicted.dtype.kind, label.dtype.kind)}
        # With numbers and text in one array, NumPy would turn the numbers into text.
        common = np.result_type(predicted, label) if len(numeric) == 1 else np.dtype(object)
        labels = predicted.astype(common)
        labels[probabilities.max(axis=1) < self.threshold_] = self.abstain_label_
        return labels

    def answers(self, X: Any) -> NDArray[np.bool_]:  # noqa: N803
        """Return True for each row that is answered, False for each row that is declined."""
        return np.asarray(self.predict_proba(X).max(axis=1) >= self.threshold_)

    def predict_proba(self, X: Any) -> NDArray[np.float64]:  # noqa: N803
        """Return the probabilities of the fitted estimator, for declined rows too."""
        check_is_fitted(self)
        return np.asarray(self.estimator_.predict_proba(X), dtype=np.float64)

    @available_if(_has_decision_function)  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> NDArray[np.float64]:  # noqa: N803
        """Return the decision function of the fitted estimator, for declined rows too."""
        check_is_fitted(self)
        return np.asarray(self.estimator_.decision_function(X))

    @property
    def _base(self) -> Any:
        return LogisticRegression() if self.estimator is None else self.estimator

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags = get_tags(self._base).input_tags
        return tags


def _abstain_label(requested: Any, classes: NDArray[Any]) -> Any:
    """Return the label for declined rows, which must not be one of the classes."""
    label = requested
    if label is None:
        label = NUMERIC_LABEL if classes.dtype.kind in "biuf" else TEXT_LABEL
    if any(label == name for name in classes.tolist()):
        raise ArgumentError(
            f"abstain_label {label!r} is one of the classes; pass a label that is not (abstain_label=)"
        )
    return label


def _splitter(cv: Any, truth: NDArray[Any], groups: ArrayLike | None) -> Any:
    """Return folds of whole groups, or stratified folds without groups: at most one per row of the rarest class."""
    if not isinstance(cv, int):
        return check_cv(cv, truth, classifier=True)
    if groups is not None:
        return GroupKFold(min(cv, len(set(np.asarray(groups).tolist()))))
    rarest = int(np.unique(truth, return_counts=True)[1].min())
    return StratifiedKFold(max(min(cv, rarest), 2))
