"""scikit-learn: a classifier that may decline, and metrics, scorers and a display for such classifiers.

The functions take ``(y_true, y_proba)`` and work with `sklearn.metrics.make_scorer`
(``response_method="predict_proba"``). The scorers take ``(estimator, X, y)`` and work with `cross_validate`,
`GridSearchCV` and similar tools. A scorer's value is higher for a better model, so losses are negative. The confidence
of a prediction is its probability. A prediction whose probability is below `threshold` is an abstention.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self, TypeVar

import numpy as np

from abstain import _validate
from abstain.errors import ArgumentError, DataError
from abstain.evaluation import evaluate
from abstain.integrations._thresholded import ThresholdedClassifier
from abstain.items import Items
from abstain.metrics import curves, selective

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import ArrayLike, NDArray

    from abstain._types import Floats
    from abstain.evaluation import OperatingPoints


__all__ = [
    "RiskCoverageDisplay",
    "Scorer",
    "ThresholdedClassifier",
    "augrc_loss",
    "augrc_scorer",
    "aurc_loss",
    "aurc_scorer",
    "coverage_at_risk_score",
    "coverage_at_risk_scorer",
    "coverage_score",
    "coverage_scorer",
    "selective_accuracy_score",
    "selective_accuracy_scorer",
]

Value = TypeVar("Value")

# Lines on the same axes differ not only in colour.
_DASHES = ("-", "--", "-.", ":")
# At a smaller coverage, the risk depends on few rows and is ignored when the range of the axis is chosen.
_LEAST_COVERAGE = 0.05


def aurc_loss(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    labels: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    threshold: float = 0.0,
    convention: str = "trapezoid",
) -> float:
    """Return the AURC of 0/1 losses ranked by the probability of the predicted class; lower is better.

    Args:
        y_true: the true classes.
        y_proba: probabilities, one column per class, or only those of the second class.
        labels: the class of each column. Default: the sorted classes of `y_true`.
        sample_weight: multiplicities.
        threshold: the smallest probability that is answered.
        convention: how the area is integrated.

    >>> aurc_loss([0, 1, 1], [[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]])
    0.05555555555555555
    """
    rows = _Predictions.checked(y_true, y_proba, labels, sample_weight, threshold)
    return rows.apply(selective.aurc, convention=convention)


def augrc_loss(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    labels: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    threshold: float = 0.0,
    convention: str = "trapezoid",
) -> float:
    """Return the AUGRC of 0/1 losses ranked by the probability of the predicted class; lower is better.

    The arguments are those of `aurc_loss`.

    >>> augrc_loss([0, 1, 1], [0.1, 0.8, 0.4])
    0.05555555555555555
    """
    rows = _Predictions.checked(y_true, y_proba, labels, sample_weight, threshold)
    return rows.apply(selective.augrc, convention=convention)


def selective_accuracy_score(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    coverage: float | None = None,
    labels: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    threshold: float = 0.0,
) -> float:
    """Return the accuracy of answered rows: at `threshold`, or of the most confident proportion `coverage`.

    NaN if no row is answered or the coverage cannot be reached. The other arguments are those of `aurc_loss`.

    >>> selective_accuracy_score([0, 1, 1], [0.1, 0.8, 0.4], coverage=0.6)
    1.0
    """
    rows = _Predictions.checked(y_true, y_proba, labels, sample_weight, threshold)
    if coverage is not None:
        return 1.0 - rows.apply(selective.risk_at_coverage, coverage=coverage)
    weight = rows.weight[~rows.abstained]
    if not weight.sum():
        return float("nan")
    return 1.0 - float(np.average(rows.loss[~rows.abstained], weights=weight))


def coverage_score(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    labels: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    threshold: float = 0.0,
) -> float:
    """Return the proportion of rows whose prediction reaches `threshold`; the arguments are those of `aurc_loss`.

    >>> coverage_score([0, 1, 1], [0.1, 0.8, 0.4], threshold=0.7)
    0.6666666666666666
    """
    return _Predictions.checked(y_true, y_proba, labels, sample_weight, threshold).apply(selective.cmax)


def coverage_at_risk_score(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    risk: float = 0.05,
    labels: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    threshold: float = 0.0,
) -> float:
    """Return the largest coverage whose error rate is at most `risk`; the other arguments are those of `aurc_loss`.

    >>> coverage_at_risk_score([0, 1, 1], [0.1, 0.8, 0.4], risk=0.1)
    0.6666666666666666
    """
    rows = _Predictions.checked(y_true, y_proba, labels, sample_weight, threshold)
    return rows.apply(selective.coverage_at_risk, risk=risk)


@dataclass(frozen=True)
class Scorer:
    """A scorer: ``scorer(estimator, X, y)``, higher is better; ``scorer(threshold=0.7)`` changes settings.

    Default threshold: that of the estimator if it is a `ThresholdedClassifier`, otherwise 0.

    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.model_selection import cross_validate
    >>> X, y = load_iris(return_X_y=True)
    >>> scoring = {"aurc": aurc_scorer, "sure": selective_accuracy_scorer(threshold=0.9)}
    >>> scores = cross_validate(LogisticRegression(max_iter=500), X, y, scoring=scoring)
    >>> bool((scores["test_aurc"] <= 0).all() and (scores["test_sure"] > 0.9).all())
    True
    """

    name: str
    function: Callable[..., float]
    sign: int
    settings: Mapping[str, Any] = field(default_factory=dict)

    def __call__(
        self,
        estimator: Any = None,
        X: Any = None,  # noqa: N803
        y_true: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        **settings: Any,
    ) -> Any:
        """Score an estimator; without one, return a scorer with these settings."""
        if estimator is None:
            return replace(self, settings={**self.settings, **settings})
        probabilities, classes = _probabilities(estimator, X)
        settings = {**self.settings, **settings, "labels": classes, "sample_weight": sample_weight}
        if isinstance(estimator, ThresholdedClassifier):
            settings.setdefault("threshold", _threshold_of(estimator))
        return self.sign * self.function(y_true, probabilities, **settings)

    def __repr__(self) -> str:
        settings = ", ".join(f"{key}={value!r}" for key, value in self.settings.items())
        return f"{self.name}({settings})" if settings else self.name


aurc_scorer = Scorer("aurc_scorer", aurc_loss, -1)
augrc_scorer = Scorer("augrc_scorer", augrc_loss, -1)
selective_accuracy_scorer = Scorer("selective_accuracy_scorer", selective_accuracy_score, 1)
coverage_scorer = Scorer("coverage_scorer", coverage_score, 1)
coverage_at_risk_scorer = Scorer("coverage_at_risk_scorer", coverage_at_risk_score, 1)


@dataclass(eq=False, repr=False)
class RiskCoverageDisplay:
    """The risk-coverage curve of a classifier, like scikit-learn's displays; plotting needs matplotlib.

    Create it with `from_estimator` or `from_predictions`. Curves on the same axes (``ax=``) have different dash
    patterns, and each band has the colour of its line.

    Attributes:
        curve: the operating points: coverage, selective_risk, generalized_risk, threshold.
        band: the operating points with confidence intervals of the risk; None without a band.
        aurc: the area under the curve.
        augrc: the area under the generalized curve.
        estimator_name: the name in the legend.
        line_: the line after plotting.
        band_: the band after plotting; None without a band.
        ax_: the axes after plotting.
        figure_: the figure after plotting.
    """

    curve: curves.RiskCoverageCurve
    _: KW_ONLY
    aurc: float
    augrc: float
    band: OperatingPoints | None = None
    estimator_name: str | None = None
    line_: Any = field(default=None, init=False)
    band_: Any = field(default=None, init=False)
    ax_: Any = field(default=None, init=False)
    figure_: Any = field(default=None, init=False)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,  # noqa: N803
        y: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        threshold: float | None = None,
        cluster: ArrayLike | None = None,
        level: float | None = 0.95,
        name: str | None = None,
        risk: str = "selective",
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Plot the curve of a fitted classifier on data that it has not seen.

        Args:
            estimator: a fitted classifier with ``predict_proba``.
            X: the features.
            y: the true classes.
            sample_weight: multiplicities.
            threshold: the smallest probability that is answered. Default: that of a `ThresholdedClassifier`, or 0.
            cluster: ids of clusters, such as patients. Default: each row is its own cluster.
            level: confidence level of the pointwise band; None for no band.
            name: the name in the legend. Default: the estimator's class.
            risk: "selective" or "generalized".
            ax: matplotlib axes. Default: new ones.
            **kwargs: passed to ``ax.plot``.
        """
        probabilities, classes = _probabilities(estimator, X)
        return cls.from_predictions(
            y,
            probabilities,
            labels=classes,
            sample_weight=sample_weight,
            threshold=_threshold_of(estimator) if threshold is None else threshold,
            cluster=cluster,
            level=level,
            name=name if name is not None else type(estimator).__name__,
            risk=risk,
            ax=ax,
            **kwargs,
        )

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_proba: ArrayLike,
        *,
        labels: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        threshold: float = 0.0,
        cluster: ArrayLike | None = None,
        level: float | None = 0.95,
        name: str | None = None,
        risk: str = "selective",
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Plot the curve of predicted probabilities; the arguments are those of `aurc_loss` and `from_estimator`."""
        rows = _Predictions.checked(y_true, y_proba, labels, sample_weight, threshold)
        display = cls(
            rows.apply(curves.risk_coverage_curve),
            aurc=rows.apply(selective.aurc),
            augrc=rows.apply(selective.augrc),
            band=None if level is None else rows.band(cluster, level),
            estimator_name=name if name is not None else "Classifier",
        )
        return display.plot(ax=ax, risk=risk, **kwargs)

    def plot(
        self, *, ax: Any = None, name: str | None = None, risk: str = "selective", **kwargs: Any
    ) -> Self:
        """Draw the curve as a step function from one operating point to the next."""
        _validate.choice(risk, "risk", ("selective", "generalized"))
        if ax is None:
            try:
                import matplotlib.pyplot as plt  # noqa: PLC0415
            except ImportError:
                raise ArgumentError("plotting needs matplotlib: pip install 'abstain[matplotlib]'") from None
            _, ax = plt.subplots()
        before = len(ax.get_lines())
        top = ax.get_ylim()[1] if before else 0.0
        values = self.curve.selective_risk if risk == "selective" else self.curve.generalized_risk
        area = f"AURC = {self.aurc:.3f}" if risk == "selective" else f"AUGRC = {self.augrc:.3f}"
        label = name if name is not None else self.estimator_name
        settings = {"drawstyle": "steps-pre", "label": f"{label} ({area})", **kwargs}
        if not {"linestyle", "ls"} & set(kwargs):
            settings["linestyle"] = _DASHES[before % len(_DASHES)]
        (self.line_,) = ax.plot(self.curve.coverage, values, **settings)
        highest = [*values[self.curve.coverage >= _LEAST_COVERAGE], *values[-1:]]
        if self.band is not None:
            highest += self._draw_band(ax, risk)
        ax.set(xlabel="Coverage", ylabel=f"{risk.capitalize()} risk", xlim=(0.0, 1.0))
        ax.set_ylim(0.0, max(top, 1.08 * max(highest, default=0.0)) or 1.0)
        ax.legend(loc="best")
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _draw_band(self, ax: Any, risk: str) -> list[float]:
        """Fill the band, and return its upper limits at coverages of at least `_LEAST_COVERAGE`."""
        assert self.band is not None
        low, high = getattr(self.band, f"{risk}_low"), getattr(self.band, f"{risk}_high")
        self.band_ = ax.fill_between(
            self.band.coverage,
            low,
            high,
            step="pre",
            color=self.line_.get_color(),
            alpha=0.15,
            linewidth=0.0,
        )
        return high[(self.band.coverage >= _LEAST_COVERAGE) & ~np.isnan(high)].tolist()


@dataclass(frozen=True, eq=False, slots=True)
class _Predictions:
    """Checked rows: 0/1 losses, the probability of the predicted class, and abstentions."""

    truth: NDArray[Any]
    predicted: NDArray[Any]
    loss: Floats
    confidence: Floats
    abstained: NDArray[np.bool_]
    weight: Floats

    @classmethod
    def checked(
        cls,
        y_true: ArrayLike,
        y_proba: ArrayLike,
        labels: ArrayLike | None,
        sample_weight: ArrayLike | None,
        threshold: float,
    ) -> _Predictions:
        truth = _validate.one_dimensional(y_true, "y_true")
        table = _probability_table(y_proba)
        _validate.same_length(len(truth), y_proba=table)
        classes = _column_classes(truth, labels, table.shape[1])
        unknown = ~np.isin(truth, classes)
        if unknown.any():
            raise DataError(f"y_true at row {int(np.argmax(unknown))} is not one of the labels")
        confidence = table.max(axis=1)
        predicted = classes[table.argmax(axis=1)]
        return cls(
            truth,
            predicted,
            (predicted != truth).astype(np.float64),
            confidence,
            confidence < _validate.real(threshold, "threshold"),
            _validate.weights(sample_weight, len(truth)),
        )

    def apply(self, function: Callable[..., Value], **settings: Any) -> Value:
        """Return a metric or a curve of the rows."""
        return function(
            self.loss, self.confidence, abstained=self.abstained, sample_weight=self.weight, **settings
        )

    def band(self, cluster: ArrayLike | None, level: float) -> OperatingPoints | None:
        """Return the operating points with confidence intervals of the risk; None if no row is answered."""
        items = Items.from_arrays(
            self.truth,
            self.predicted,
            abstained=self.abstained,
            confidence=self.confidence,
            cluster=None if cluster is None else np.asarray(cluster).tolist(),
            weight=self.weight,
        )
        result = evaluate(items, confidence="confidence", loss="zero_one", level=level)
        points = result.profile().points["confidence"]
        return points if len(points) else None


def _probability_table(y_proba: ArrayLike) -> Floats:
    table = np.asarray(y_proba, dtype=np.float64)
    if table.ndim == 1:
        table = np.stack([1.0 - table, table], axis=1)
    if table.ndim != 2 or table.shape[1] < 2:
        raise DataError(
            f"y_proba must have one column per class, or one dimension for two, got shape {table.shape}"
        )
    wrong = ~((table >= 0.0) & (table <= 1.0)).all(axis=1)
    if wrong.any():
        raise DataError(
            f"y_proba must contain probabilities in [0, 1], but does not at row {int(np.argmax(wrong))}"
        )
    return table


def _column_classes(truth: NDArray[Any], labels: ArrayLike | None, columns: int) -> NDArray[Any]:
    classes = np.unique(truth) if labels is None else np.asarray(labels)
    if len(classes) != columns:
        source = "y_true" if labels is None else "labels"
        raise ArgumentError(
            f"y_proba has {columns} columns, but {source} has {len(classes)} classes; pass the class of each column as "
            "labels"
        )
    return classes


def _threshold_of(estimator: Any) -> float:
    """Return the threshold of a `ThresholdedClassifier`; 0 for any other estimator."""
    if not isinstance(estimator, ThresholdedClassifier):
        return 0.0
    # Any threshold above 1 declines every row, like an infinite one, but is a finite number.
    return float(min(estimator.threshold_, 2.0))


def _probabilities(estimator: Any, features: Any) -> tuple[Floats, NDArray[Any]]:
    if not hasattr(estimator, "predict_proba"):
        raise ArgumentError(
            f"{type(estimator).__name__} has no predict_proba, which is needed to rank predictions; wrap it in "
            "CalibratedClassifierCV"
        )
    return np.asarray(estimator.predict_proba(features), dtype=np.float64), np.asarray(estimator.classes_)
