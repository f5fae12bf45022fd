"""scikit-learn: a classifier that may decline, and metrics, scorers and a display for such classifiers.

The functions take ``(y_true, y_proba)`` and work with `sklearn.metrics.make_scorer`
(``response_method="predict_proba"``); the scorers take ``(estimator, X, y)``, know the estimator's classes,
and serve `cross_validate`, `GridSearchCV` and the like. A scorer's value is higher for a better model, so
losses come with their sign turned. The confidence of a prediction is its probability; a prediction whose
probability lies below `threshold` is an abstention.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self

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

    from abstain.evaluation import WorkingPoints

    Floats = NDArray[np.float64]

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

# Lines on the same axes are told apart by more than their colour.
_DASHES = ("-", "--", "-.", ":")
# Below this coverage a handful of rows make the risk; it may leave the picture.
_EARLY = 0.05


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
        y_proba: probabilities, one column per class, or those of the second class alone.
        labels: the class of each column; the sorted classes of `y_true` when left out.
        sample_weight: multiplicities.
        threshold: the least probability that is answered.
        convention: how the area is integrated.

    >>> aurc_loss([0, 1, 1], [[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]])
    0.05555555555555555
    """
    rows = _Predictions.checked(y_true, y_proba, labels, sample_weight, threshold)
    return rows.metric(selective.aurc, convention=convention)


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
    return rows.metric(selective.augrc, convention=convention)


def selective_accuracy_score(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    coverage: float | None = None,
    labels: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    threshold: float = 0.0,
) -> float:
    """Return the accuracy of what is answered: from `threshold` on, or of the most confident share `coverage`.

    NaN where nothing is answered or the coverage cannot be reached. The other arguments are those of
    `aurc_loss`.

    >>> selective_accuracy_score([0, 1, 1], [0.1, 0.8, 0.4], coverage=0.6)
    1.0
    """
    rows = _Predictions.checked(y_true, y_proba, labels, sample_weight, threshold)
    if coverage is not None:
        return 1.0 - rows.metric(selective.risk_at_coverage, coverage=coverage)
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
    """Return the share of rows whose prediction reaches `threshold`; the arguments are those of `aurc_loss`.

    >>> coverage_score([0, 1, 1], [0.1, 0.8, 0.4], threshold=0.7)
    0.6666666666666666
    """
    return _Predictions.checked(y_true, y_proba, labels, sample_weight, threshold).metric(selective.cmax)


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
    return rows.metric(selective.coverage_at_risk, risk=risk)


@dataclass(frozen=True)
class Scorer:
    """A scorer: ``scorer(estimator, X, y)``, higher is better; ``scorer(threshold=0.7)`` is one with other settings.

    Default threshold: that of a `ThresholdedClassifier`, whose declined rows are abstentions; 0 for other estimators.

    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.model_selection import cross_validate
    >>> X, y = load_iris(return_X_y=True)
    >>> scoring = {"aurc": aurc_scorer, "sure": selective_accuracy_scorer(threshold=0.9)}
    >>> found = cross_validate(LogisticRegression(max_iter=500), X, y, scoring=scoring)
    >>> bool((found["test_aurc"] <= 0).all() and (found["test_sure"] > 0.9).all())
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
            settings.setdefault("threshold", _own_threshold(estimator))
        return self.sign * self.function(y_true, probabilities, **settings)

    def __repr__(self) -> str:
        settings = ", ".join(f"{key}={value!r}" for key, value in self.settings.items())
        return f"{self.name}({settings})" if settings else self.name


aurc_scorer = Scorer("aurc_scorer", aurc_loss, -1)
augrc_scorer = Scorer("augrc_scorer", augrc_loss, -1)
selective_accuracy_scorer = Scorer("selective_accuracy_scorer", selective_accuracy_score, 1)
coverage_scorer = Scorer("coverage_scorer", coverage_score, 1)
coverage_at_risk_scorer = Scorer("coverage_at_risk_scorer", coverage_at_risk_score, 1)


class RiskCoverageDisplay:
    """The risk-coverage curve of a classifier, in the manner of scikit-learn's displays; needs matplotlib to plot.

    Build it with `from_estimator` or `from_predictions`. Several on the same axes (``ax=``) have lines of different
    dashes, and the band of each has the colour of its line.

    Attributes:
        curve: the working points: coverage, selective_risk, generalized_risk, threshold.
        band: the working points with the interval of the risk at each; None where no band was asked for.
        aurc: the area under the curve.
        augrc: the area under the generalized curve.
        estimator_name: what the legend says.
        line_: the line, once plotted.
        band_: the band, once plotted; None where there is none.
        ax_: the axes, once plotted.
        figure_: the figure, once plotted.
    """

    def __init__(
        self,
        curve: curves.RiskCoverageCurve,
        *,
        aurc: float,
        augrc: float,
        band: WorkingPoints | None = None,
        estimator_name: str | None = None,
    ) -> None:
        self.curve = curve
        self.band = band
        self.aurc = aurc
        self.augrc = augrc
        self.estimator_name = estimator_name
        self.line_: Any = None
        self.band_: Any = None
        self.ax_: Any = None
        self.figure_: Any = None

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
            threshold: the least probability that is answered. Default: that of a `ThresholdedClassifier`, else 0.
            cluster: ids of what belongs together, such as a patient; each row is a cluster of its own when left out.
            level: confidence level of the band, which holds the risk at each threshold by itself; None for no band.
            name: for the legend; the estimator's class when left out.
            risk: "selective" or "generalized".
            ax: matplotlib axes; new ones when left out.
            **kwargs: for ``ax.plot``.
        """
        probabilities, classes = _probabilities(estimator, X)
        return cls.from_predictions(
            y,
            probabilities,
            labels=classes,
            sample_weight=sample_weight,
            threshold=_own_threshold(estimator) if threshold is None else threshold,
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
            rows.curve(),
            aurc=rows.metric(selective.aurc),
            augrc=rows.metric(selective.augrc),
            band=None if level is None else rows.band(cluster, level),
            estimator_name=name if name is not None else "Classifier",
        )
        return display.plot(ax=ax, risk=risk, **kwargs)

    def plot(
        self, *, ax: Any = None, name: str | None = None, risk: str = "selective", **kwargs: Any
    ) -> Self:
        """Draw the curve as the step function that it is: every working point holds until the next is reached."""
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
        highest = [*values[self.curve.coverage >= _EARLY], *values[-1:]]
        if self.band is not None:
            highest += self._draw_band(ax, risk)
        ax.set(xlabel="Coverage", ylabel=f"{risk.capitalize()} risk", xlim=(0.0, 1.0))
        ax.set_ylim(0.0, max(top, 1.08 * max(highest, default=0.0)) or 1.0)
        ax.legend(loc="best")
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _draw_band(self, ax: Any, risk: str) -> list[float]:
        """Fill the band, and return how high it reaches where more than a handful of rows make it."""
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
        reached = high[(self.band.coverage >= _EARLY) & ~np.isnan(high)]
        return [float(value) for value in reached]


@dataclass(frozen=True, eq=False, slots=True)
class _Predictions:
    """The checked rows of one call: 0/1 losses, the probability of the predicted class, who abstains."""

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
        table = _table(y_proba)
        _validate.same_length(len(truth), y_proba=table)
        classes = _classes(truth, labels, table.shape[1])
        unknown = ~np.isin(truth, classes)
        if unknown.any():
            raise DataError(f"y_true at row {int(np.argmax(unknown))} is none of the labels")
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

    def metric(self, function: Callable[..., float], **settings: Any) -> float:
        return float(
            function(
                self.loss, self.confidence, abstained=self.abstained, sample_weight=self.weight, **settings
            )
        )

    def band(self, cluster: ArrayLike | None, level: float) -> WorkingPoints | None:
        """The interval of the risk at each threshold, made as `evaluate` makes it; None where nothing is answered."""
        items = Items.from_arrays(
            self.truth,
            self.predicted,
            abstained=self.abstained,
            confidence=self.confidence,
            cluster=None if cluster is None else np.asarray(cluster).tolist(),
            weight=self.weight,
        )
        judged = evaluate(items, confidence="confidence", loss="zero_one", level=level)
        points = judged.profile().points["confidence"]
        return points if len(points) else None

    def curve(self) -> curves.RiskCoverageCurve:
        return curves.risk_coverage_curve(
            self.loss, self.confidence, abstained=self.abstained, sample_weight=self.weight
        )


def _table(y_proba: ArrayLike) -> Floats:
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
            f"y_proba must hold probabilities in [0, 1], and does not at row {int(np.argmax(wrong))}"
        )
    return table


def _classes(truth: NDArray[Any], labels: ArrayLike | None, columns: int) -> NDArray[Any]:
    classes = np.unique(truth) if labels is None else np.asarray(labels)
    if len(classes) != columns:
        whose = "y_true has" if labels is None else "labels has"
        raise ArgumentError(
            f"y_proba has {columns} columns and {whose} {len(classes)} classes; pass labels, the class of each column"
        )
    return classes


def _own_threshold(estimator: Any) -> float:
    """Return the threshold of an estimator that declines rows itself; 0 for any other."""
    if not isinstance(estimator, ThresholdedClassifier):
        return 0.0
    # An infinite threshold declines every row, and so does any number above 1.
    return float(min(estimator.threshold_, 2.0))


def _probabilities(estimator: Any, features: Any) -> tuple[Floats, NDArray[Any]]:
    if not hasattr(estimator, "predict_proba"):
        raise ArgumentError(
            f"{type(estimator).__name__} has no predict_proba, which these metrics rank predictions by; "
            "CalibratedClassifierCV gives it one"
        )
    return np.asarray(estimator.predict_proba(features), dtype=np.float64), np.asarray(estimator.classes_)
