"""Calibrators: estimators that turn features into a probability of being right.

As in scikit-learn: create one, `fit` it, `predict` with it. A fitted calibrator is frozen: fitting again or setting an
attribute is an error. Its `model` is a frozen record that becomes part of a calibration file.

Venn-ABERS needs the isotonic value of one additional row, for both outcomes of that row. A new score has only
``2 k + 1`` possible positions: at one of the ``k`` distinct scores, or in one of the ``k + 1`` gaps. For each position
and outcome, the isotonic value is found by merging the row with the blocks to its left and right. The blocks of every
prefix and suffix are computed in two passes, so no position needs its own fit.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np

from abstain import _validate
from abstain.calibrators import _models
from abstain.errors import ArgumentError, DataError
from abstain.metrics.reliability import row_bins
from abstain.resampling import total_by

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from abstain._types import Floats


TEMPERATURES = (0.05, 10.0)
# Bounds of the beta parameters, which would diverge if the scores separate the outcomes perfectly.
_STEEPEST = 100.0
# Squares of larger features would overflow.
_LARGEST = 1e100


class Calibrator(ABC):
    """Base class of all calibrators.

    Attributes:
        method: the name in calibration files and on the command line.
        binary_target: True if targets must be 0 or 1, False if they can be any number in [0, 1].
        one_feature: True if there must be exactly one feature.
    """

    method: ClassVar[str]
    binary_target: ClassVar[bool] = True
    one_feature: ClassVar[bool] = True
    _model: _models.Model | None = None

    def fit(self, features: ArrayLike, target: ArrayLike, *, weights: ArrayLike | None = None) -> Self:
        """Learn from features (rows,) or (rows, features) and one target per row; return self, which is then frozen.

        Args:
            features: finite numbers.
            target: 0 or 1; any number in [0, 1] if `binary_target` is False.
            weights: multiplicities.
        """
        if self.fitted:
            raise ArgumentError(
                f"this {type(self).__name__} is already fitted; create a new one to fit again"
            )
        matrix = self._matrix(features)
        check = _validate.binary if self.binary_target else _validate.unit_interval
        targets = check(target, "target")
        _validate.same_length(len(matrix), target=targets)
        weight = _validate.weights(weights, len(targets), "weights")
        counted = weight > 0
        if not len(targets):
            raise DataError("target is empty; fitting needs at least one row")
        if self.binary_target and len(np.unique(targets[counted])) < 2:
            raise DataError(
                f"target is {targets[counted][0]:g} for all {int(counted.sum())} rows; "
                f"a {self.method} calibrator needs rows of both outcomes"
            )
        model = self._learn(matrix[counted], targets[counted], weight[counted])
        model.check(matrix.shape[1])
        object.__setattr__(self, "_model", model)
        return self

    def predict(self, features: ArrayLike) -> Floats:
        """Return one calibrated confidence per row, in [0, 1]."""
        matrix = self._matrix(features)
        if matrix.shape[1] != self.model.features:
            raise ArgumentError(
                f"this calibrator takes {self.model.features} features, got {matrix.shape[1]}"
            )
        # Finite numbers can overflow in the model; the result is checked below.
        with np.errstate(over="ignore", invalid="ignore"):
            predicted = self.model.predict(matrix)
        return _validate.finite(
            predicted, "the prediction", hint="the model's numbers or the features are too large"
        )

    @classmethod
    def from_model(cls, model: _models.Model) -> Self:
        """Return a fitted calibrator with the numbers of a calibration file."""
        calibrator = cls()
        object.__setattr__(calibrator, "_model", model)
        return calibrator

    @property
    def fitted(self) -> bool:
        """True after `fit`."""
        return self._model is not None

    @property
    def model(self) -> _models.Model:
        """The fitted model."""
        if self._model is None:
            raise ArgumentError(f"this {type(self).__name__} is not fitted; call fit first")
        return self._model

    def __setattr__(self, name: str, value: object) -> None:
        if self.fitted:
            raise AttributeError(f"this {type(self).__name__} is fitted and cannot be changed")
        super().__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
        self.__setattr__(name, None)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.model if self.fitted else 'not fitted'})"

    @abstractmethod
    def _learn(self, features: Floats, target: Floats, weight: Floats) -> _models.Model:
        """Return the model of checked rows with positive weights."""

    def _matrix(self, features: ArrayLike) -> Floats:
        array = np.asarray(features)
        if array.ndim not in (1, 2):
            raise DataError(f"features must have one or two dimensions, got shape {array.shape}")
        columns = [array] if array.ndim == 1 else list(array.T)
        if self.one_feature and len(columns) != 1:
            raise ArgumentError(f"a {self.method} calibrator takes one feature, got {len(columns)}")
        if not columns:
            raise ArgumentError("features are empty; pass at least one")
        checked = [
            _validate.finite(column, "features" if array.ndim == 1 else f"features[:, {index}]")
            for index, column in enumerate(columns)
        ]
        matrix = np.stack(checked, axis=1)
        if matrix.size and np.abs(matrix).max() > _LARGEST:
            raise DataError(
                f"features must be at most {_LARGEST:g} in absolute value, got {np.abs(matrix).max():g}"
            )
        return matrix


class TemperatureScalingCalibrator(Calibrator):
    """Temperature scaling: ``sigmoid(logit(p) / T)`` of one feature in [0, 1], with p clipped to [1e-6, 1 - 1e-6].

    T minimizes the negative log-likelihood on [0.05, 10]. It is convex in ``1/T``, so the minimum is the point with
    slope 0 or one of the ends. Reference: Guo et al., "On Calibration of Modern Neural Networks", 2017.

    >>> calibrator = TemperatureScalingCalibrator().fit([0.9, 0.9, 0.9, 0.1], [1, 1, 0, 0])
    >>> calibrator.predict([0.9]).round(3)
    array([0.75])
    """

    method = "temperature_scaling"

    def _learn(self, features: Floats, target: Floats, weight: Floats) -> _models.TemperatureModel:
        logits = _models.logit(_validate.unit_interval(features[:, 0], "the feature of a temperature"))

        def slope(inverse: float) -> float:
            return float((weight * (_models.sigmoid(inverse * logits) - target) * logits).sum())

        lowest, highest = 1.0 / TEMPERATURES[1], 1.0 / TEMPERATURES[0]
        if slope(lowest) >= 0.0:
            return _models.TemperatureModel(temperature=TEMPERATURES[1])
        if slope(highest) <= 0.0:
            return _models.TemperatureModel(temperature=TEMPERATURES[0])
        from scipy.optimize import brentq  # noqa: PLC0415

        return _models.TemperatureModel(temperature=1.0 / float(brentq(slope, lowest, highest, xtol=1e-12)))


class LogisticCalibrator(Calibrator):
    """Logistic regression on standardized features, with an L2 penalty of C = 1.

    >>> calibrator = LogisticCalibrator().fit([[1, 0.2], [2, 0.1], [4, 0.9], [5, 0.7]], [0, 0, 1, 1])
    >>> calibrator.predict([[5, 0.9]]).round(2)
    array([0.87])
    """

    method = "logistic"
    one_feature = False

    def _learn(self, features: Floats, target: Floats, weight: Floats) -> _models.LinearModel:
        from sklearn.linear_model import LogisticRegression  # noqa: PLC0415

        scaler, standard = _standardized(features, weight)
        # The default tolerance. With a smaller one the coefficients would differ in the fourth digit from calibration
        # files of other implementations.
        learner = LogisticRegression(C=1.0, max_iter=1000)
        learner.fit(standard, target, sample_weight=weight)
        return _models.LinearModel(
            coefficients=tuple(learner.coef_[0].tolist()),
            intercept=float(learner.intercept_[0]),
            link="sigmoid",
            scaler=scaler,
        )


class PlattCalibrator(LogisticCalibrator):
    """Platt scaling: the logistic calibrator of one feature.

    Reference: Platt, "Probabilistic Outputs for Support Vector Machines", 1999 (without his smoothed
    targets).

    >>> PlattCalibrator().fit([1, 2, 4, 5], [0, 0, 1, 1]).predict([3]).round(6)
    array([0.5])
    """

    method = "platt"
    one_feature = True


class LinearCalibrator(Calibrator):
    """Ridge regression (alpha 1) on standardized features, clipped to [0, 1], for targets that are not 0 or 1.

    >>> LinearCalibrator().fit([1, 2, 3, 4], [0.2, 0.4, 0.6, 0.8]).predict([2.5, 100]).round(6)
    array([0.5, 1. ])
    """

    method = "linear"
    binary_target = False
    one_feature = False

    def _learn(self, features: Floats, target: Floats, weight: Floats) -> _models.LinearModel:
        from sklearn.linear_model import Ridge  # noqa: PLC0415

        scaler, standard = _standardized(features, weight)
        learner = Ridge(alpha=1.0).fit(standard, target, sample_weight=weight)
        return _models.LinearModel(
            coefficients=tuple(np.ravel(learner.coef_).tolist()),
            intercept=float(learner.intercept_),
            link="identity",
            scaler=scaler,
        )


class IsotonicCalibrator(Calibrator):
    """Isotonic regression of one feature: the best non-decreasing fit, interpolated linearly.

    Reference: Zadrozny and Elkan, "Transforming Classifier Scores into Accurate Multiclass Probability
    Estimates", 2002.

    >>> IsotonicCalibrator().fit([1, 2, 3, 4], [0, 1, 0, 1]).predict([2.5, 9])
    array([0.5, 1. ])
    """

    method = "isotonic"
    binary_target = False

    def _learn(self, features: Floats, target: Floats, weight: Floats) -> _models.IsotonicModel:
        from sklearn.isotonic import IsotonicRegression  # noqa: PLC0415

        learner = IsotonicRegression(out_of_bounds="clip").fit(features[:, 0], target, sample_weight=weight)
        return _models.IsotonicModel(
            x_thresholds=tuple(learner.X_thresholds_.tolist()),
            y_thresholds=tuple(np.clip(learner.y_thresholds_, 0.0, 1.0).tolist()),
        )


class BetaCalibrator(Calibrator):
    """Beta calibration: ``sigmoid(a log p - b log(1 - p) + c)`` of one feature in [0, 1], with a, b >= 0.

    Unlike temperature scaling, it can correct overconfidence in one part of the range and underconfidence in another.
    Reference: Kull, Silva Filho and Flach, "Beta calibration", 2017.

    >>> confidence, outcome = [0.1, 0.2, 0.2, 0.6, 0.7, 0.9, 0.9], [0, 0, 1, 1, 0, 1, 1]
    >>> bool(BetaCalibrator().fit(confidence, outcome).predict([0.9])[0] > 0.8)
    True
    """

    method = "beta"

    def _learn(self, features: Floats, target: Floats, weight: Floats) -> _models.BetaModel:
        from scipy.optimize import minimize  # noqa: PLC0415

        stated = _models.clipped(_validate.unit_interval(features[:, 0], "the feature of a beta calibrator"))
        columns = np.stack([np.log(stated), -np.log1p(-stated), np.ones(len(stated))], axis=1)
        total = weight.sum()

        def likelihood(parameters: Floats) -> tuple[float, Floats]:
            combined = columns @ parameters
            loss = np.logaddexp(0.0, combined) - target * combined
            residual = weight * (_models.sigmoid(combined) - target)
            return float((weight * loss).sum() / total), columns.T @ residual / total

        bounds = [(0.0, _STEEPEST), (0.0, _STEEPEST), (-_STEEPEST, _STEEPEST)]
        start = np.array([1.0, 1.0, 0.0])
        options = {"ftol": 1e-15, "gtol": 1e-10, "maxiter": 10_000}
        optimum = minimize(likelihood, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
        a, b, c = optimum.x.tolist()
        return _models.BetaModel(a=a, b=b, c=c)


class HistogramBinningCalibrator(Calibrator):
    """Histogram binning: the mean target of each equal-mass bin of one feature; tied values are in the same bin.

    Reference: Zadrozny and Elkan, "Obtaining calibrated probability estimates from decision trees and naive
    Bayesian classifiers", 2001.

    >>> HistogramBinningCalibrator(bins=2).fit([1, 2, 3, 4], [0, 1, 1, 1]).predict([0, 3])
    array([0.5, 1. ])
    """

    method = "histogram_binning"
    binary_target = False

    def __init__(self, bins: int = 10) -> None:
        self.bins = _validate.whole(bins, "bins", least=1)

    def _learn(self, features: Floats, target: Floats, weight: Floats) -> _models.HistogramModel:
        bin_, edges = row_bins(features[:, 0], weight, self.bins, "quantile")
        count, total = total_by(bin_, weight, self.bins), total_by(bin_, weight * target, self.bins)
        filled = count > 0
        # An empty bin has the same lower edge as the next bin.
        lower_edges = edges[:-1][filled]
        values = np.clip(total[filled] / count[filled], 0.0, 1.0)
        return _models.HistogramModel(edges=tuple(lower_edges[1:].tolist()), values=tuple(values.tolist()))


class VennAbersCalibrator(Calibrator):
    """Inductive Venn-ABERS of one feature: two probabilities, of which one is calibrated if rows are exchangeable.

    `predict_interval` returns both. `predict` returns the probability that minimizes the largest regret,
    ``p1 / (1 - p0 + p1)``. Reference: Vovk, Petej and Fedorova, "Large-scale probabilistic predictors with and without
    guarantees of validity", 2015.

    >>> calibrator = VennAbersCalibrator().fit([0.2, 0.8], [0, 1])
    >>> calibrator.predict_interval([0.9]), calibrator.predict([0.9]).round(4)
    ((array([0.5]), array([1.])), array([0.6667]))
    """

    method = "venn_abers"

    def _learn(self, features: Floats, target: Floats, weight: Floats) -> _models.VennAbersModel:
        thresholds, lower, upper = venn_abers_steps(features[:, 0], target, weight)
        return _models.VennAbersModel(
            x_thresholds=tuple(thresholds.tolist()), lower=tuple(lower.tolist()), upper=tuple(upper.tolist())
        )

    def predict_interval(self, features: ArrayLike) -> tuple[Floats, Floats]:
        """Return the lower and the upper probability of every row."""
        model = self.model
        assert isinstance(model, _models.VennAbersModel)
        return model.predict_interval(self._matrix(features))


CALIBRATORS: dict[str, type[Calibrator]] = {
    calibrator.method: calibrator
    for calibrator in (
        TemperatureScalingCalibrator,
        LogisticCalibrator,
        PlattCalibrator,
        LinearCalibrator,
        IsotonicCalibrator,
        BetaCalibrator,
        HistogramBinningCalibrator,
        VennAbersCalibrator,
    )
}


def _standardized(features: Floats, weight: Floats) -> tuple[_models.Scaler, Floats]:
    """Return the features with mean 0 and population standard deviation 1; a standard deviation of 0 becomes 1."""
    mean = np.average(features, axis=0, weights=weight)
    spread = np.sqrt(np.average((features - mean) ** 2, axis=0, weights=weight))
    # The spread of a constant column is exactly 0, but rounding of its mean may give a tiny number.
    spread = np.where(np.ptp(features, axis=0) == 0.0, 1.0, spread)
    return _models.Scaler(mean=tuple(mean.tolist()), std=tuple(spread.tolist())), (features - mean) / spread


def venn_abers_steps(score: Floats, outcome: Floats, weight: Floats) -> tuple[Floats, Floats, Floats]:
    """Return the distinct scores and the lower and upper probability below, at and above each of them.

    >>> thresholds, lower, upper = venn_abers_steps(np.array([0.2, 0.8]), np.array([0.0, 1.0]), np.ones(2))
    >>> lower.tolist(), upper.tolist()
    ([0.0, 0.0, 0.0, 0.5, 0.5], [0.5, 0.5, 1.0, 1.0, 1.0])
    """
    distinct, group = np.unique(score, return_inverse=True)
    blocks = _Blocks(total_by(group, weight), total_by(group, weight * outcome))
    positions = range(2 * len(distinct) + 1)
    lower, upper = (
        np.array([blocks.value_of(position, label) for position in positions]) for label in (0.0, 1.0)
    )
    return distinct, lower, upper


class _Blocks:
    """Groups of tied rows with running sums, and the last block of every prefix and the first of every suffix."""

    def __init__(self, count: Floats, total: Floats) -> None:
        self._count = np.concatenate([[0.0], np.cumsum(count)]).tolist()
        self._total = np.concatenate([[0.0], np.cumsum(total)]).tolist()
        self._groups = len(count)
        # The last block of the isotonic fit to groups 0..j starts at _start[j]; the rest is the fit to
        # 0.._start[j]-1.
        self._start: list[int] = []
        for last in range(self._groups):
            first = last
            while first > 0 and self._mean(self._start[first - 1], first - 1) >= self._mean(first, last):
                first = self._start[first - 1]
            self._start.append(first)
        # Likewise the first block of the fit to groups i..k-1 ends at _end[i].
        self._end = [0] * self._groups
        for first in reversed(range(self._groups)):
            last = first
            while last < self._groups - 1 and self._mean(last + 1, self._end[last + 1]) <= self._mean(
                first, last
            ):
                last = self._end[last + 1]
            self._end[first] = last

    def value_of(self, position: int, label: float) -> float:
        """Return the isotonic value of a new row; even positions are gaps, odd ones are groups."""
        group, inside = divmod(position, 2)
        left, right = group - 1, group + inside
        count, total = 1.0, label
        if inside:
            count += self._size(group, group)
            total += self._sum(group, group)
        merged = True
        while merged:
            merged = False
            while right < self._groups and self._mean(right, self._end[right]) <= total / count:
                end = self._end[right]
                count += self._size(right, end)
                total += self._sum(right, end)
                right, merged = end + 1, True
            while left >= 0 and self._mean(self._start[left], left) >= total / count:
                start = self._start[left]
                count += self._size(start, left)
                total += self._sum(start, left)
                left, merged = start - 1, True
        return min(max(total / count, 0.0), 1.0)

    def _size(self, first: int, last: int) -> float:
        return self._count[last + 1] - self._count[first]

    def _sum(self, first: int, last: int) -> float:
        return self._total[last + 1] - self._total[first]

    def _mean(self, first: int, last: int) -> float:
        return self._sum(first, last) / self._size(first, last)
